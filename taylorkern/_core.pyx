"""The boundary to the C core: arrays in, one C call each, the GIL released.

Arguments are IN unless marked OUT. Everything handed over here has been validated by `_rows` and `_expansion`; what
is checked again is only what keeps C inside its arrays when a caller in this package has a bug.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uintptr_t


cdef extern from "tk.h" nogil:
    enum:
        TK_MAX_DENSE_COLUMNS

    ctypedef enum tk_real:
        TK_FLOAT32
        TK_FLOAT64

    ctypedef struct tk_rows:
        tk_real real
        const void *data
        const int32_t *indices
        const int64_t *indptr
        const int32_t *order
        const int32_t *place
        int32_t n_front
        int32_t n_columns
        int32_t max_nonzeros
        int32_t walk_dense

    ctypedef struct tk_map:
        int32_t degree
        int32_t n_columns
        double scale
        double decay
        const int64_t *ranks
        const double *constant
        const double *repeat
        int32_t bare
        const double *series

    ctypedef struct tk_table:
        void *values
        int32_t width

    ctypedef struct tk_features:
        void *slots
        void *values
        int64_t room
        int32_t wide

    ctypedef enum tk_structure:
        TK_CANONICAL
        TK_UNSORTED
        TK_INDPTR_START
        TK_INDPTR_FALLS
        TK_INDPTR_BEYOND
        TK_INDEX_RANGE

    ctypedef struct tk_shift:
        const void *by
        const int32_t *moved
        int32_t n_moved
        const int32_t *place
        int64_t *indptr
        int32_t *indices
        void *data

    ctypedef enum tk_loss:
        TK_HINGE
        TK_SQUARED_HINGE
        TK_LOG_LOSS

    ctypedef struct tk_training:
        const tk_rows *rows
        const tk_map *margin
        const tk_map *update
        void *w
        tk_loss loss
        const int8_t *y
        const double *weight
        int32_t block
        void *scratch

    ctypedef struct tk_dual:
        double C
        double *alpha
        double *margin
        double norm2
        int32_t sweeps
        int64_t changed

    ctypedef struct tk_pegasos:
        double lambda_ "lambda"
        double share
        int64_t t
        double scale
        double *alpha
        double norm2
        double radius
        void *average
        double shift
        int64_t n_averaged

    ctypedef struct tk_adaptive:
        void *values
        void *squares
        double eta

    int64_t tk_scratch_bytes(const tk_rows *rows)
    int64_t tk_weigh_scratch_bytes(tk_real real, const tk_map *map)
    void tk_dot(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                void *out, void *scratch)
    void tk_add(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                const void *t, void *scratch)
    void tk_expand(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_features *out,
                   void *scratch)
    void tk_weigh(tk_real real, const tk_map *map, int32_t first, int32_t last, const tk_table *table,
                  void *scratch)
    int64_t tk_gram_scratch_bytes(const tk_rows *rows, int64_t n)
    void tk_gram(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch)
    void tk_adapt(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
                  const void *t, void *scratch)
    void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last)
    int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block)
    void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual)
    void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos)
    void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state)
    void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last)
    void tk_own_slots(const tk_map *map, const int32_t *own, const int64_t *own_ranks, int64_t width, int32_t first,
                      int32_t last, int64_t *slots)
    tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t n_major,
                                    int64_t n_minor, int64_t n_stored, int64_t *at)
    int tk_n_instruction_sets()
    const char *tk_instruction_set_name(int i)
    int tk_instruction_set_usable(int i)
    void tk_init()
    int tk_instruction_set()
    void tk_use_instruction_set(int i)


MAX_DENSE_COLUMNS = TK_MAX_DENSE_COLUMNS

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef class Rows:
    """Rows of data, borrowed: keeps the arrays alive and C's view of them."""

    cdef tk_rows c
    cdef readonly object data, indices, indptr, order, place
    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly Py_ssize_t itemsize
    cdef Py_ssize_t n_stored

    def __init__(self, data, indices, indptr, Py_ssize_t n_columns, Py_ssize_t max_nonzeros):
        cdef const int32_t[::1] indices_view
        cdef const int64_t[::1] indptr_view
        self.data, self.indices, self.indptr = data, indices, indptr
        self.n_columns = n_columns
        self.itemsize = data.itemsize
        self.c.real = TK_FLOAT64 if data.itemsize == 8 else TK_FLOAT32
        self.c.data = _address(data)
        if indptr is None:
            self.n_rows = data.shape[0]
            self.c.indices = NULL
            self.c.indptr = NULL
        else:
            indices_view, indptr_view = indices, indptr
            self.n_rows = indptr_view.shape[0] - 1
            self.c.indices = &indices_view[0] if indices_view.shape[0] else NULL
            self.c.indptr = &indptr_view[0]
        self.n_stored = self.n_rows
        self.c.n_columns = <int32_t>n_columns
        self.c.max_nonzeros = <int32_t>max_nonzeros
        self.c.order = NULL
        self.c.place = NULL
        self.c.n_front = 0
        self.c.walk_dense = 0

    def set_order(self, order):
        """Let row i be the one that is stored at order[i]; there are then as many rows as order has entries."""
        cdef const int32_t[::1] view = order
        cdef Py_ssize_t i
        for i in range(view.shape[0]):
            if not 0 <= view[i] < self.n_stored:
                raise ValueError(f"order has the row {view[i]}, outside 0 to {self.n_stored - 1}")
        self.order = order
        self.n_rows = view.shape[0]
        self.c.order = &view[0] if view.shape[0] else NULL

    def set_place(self, place, Py_ssize_t n_front, Py_ssize_t n_columns):
        """Let column j have the number place[j] < n_columns. Those below n_front rise with j, and so do the others."""
        cdef const int32_t[::1] view = place
        if self.indptr is None or view.shape[0] != self.n_columns:
            raise ValueError("place does not belong to these rows")
        self.place = place
        self.n_columns = n_columns
        self.c.n_columns = <int32_t>n_columns
        self.c.n_front = <int32_t>n_front
        self.c.place = &view[0] if view.shape[0] else NULL

    @property
    def max_nonzeros(self):
        """No row has more nonzeros than this."""
        return self.c.max_nonzeros

    @property
    def walk_dense(self):
        """Whether all columns are visited, several rows at a time, instead of each row's nonzeros."""
        return self.c.walk_dense != 0

    @walk_dense.setter
    def walk_dense(self, value):
        self.c.walk_dense = 1 if value else 0


cdef class Map:
    """A feature map with one metric: keeps its arrays alive and C's view of them."""

    cdef tk_map c
    cdef object arrays
    cdef readonly Py_ssize_t degree, n_columns, n_slots

    def __init__(self, double scale, double decay, const int64_t[:, ::1] ranks, const double[::1] constant,
                 const double[::1] repeat, const double[::1] series, bint bare):
        self.arrays = (ranks, constant, repeat, series)
        self.degree = ranks.shape[0] - 1
        self.n_columns = ranks.shape[1] - 2
        self.n_slots = ranks[self.degree, self.n_columns + 1]
        self.c.degree = <int32_t>self.degree
        self.c.n_columns = <int32_t>self.n_columns
        self.c.scale = scale
        self.c.decay = decay
        self.c.ranks = &ranks[0, 0]
        self.c.constant = &constant[0]
        self.c.repeat = &repeat[0]
        self.c.series = &series[0]
        self.c.bare = bare

    cdef int64_t first_slot(self, int32_t top):
        """The first of the slots whose highest coordinate is at least top."""
        return self.c.ranks[self.degree * (self.n_columns + 2) + top]


cdef const void *_address(array) except? NULL:
    """Where a C-contiguous array begins (any address will do when it is empty)."""
    cdef const unsigned char[::1] view
    if array.size == 0:
        return <const void *>array
    view = memoryview(array).cast("B")
    return &view[0]


cdef void *_aligned(unsigned char[::1] scratch) noexcept nogil:
    return <void *>((<uintptr_t>&scratch[0] + 63) // 64 * 64)


cdef int _check(Rows rows, Map map, Py_ssize_t itemsize, int64_t first, int64_t last, int64_t room,
                unsigned char[::1] scratch) except -1:
    if rows.n_columns != map.n_columns or rows.itemsize != itemsize:
        raise ValueError("rows, map and table do not belong together")
    if not 0 <= first <= last <= rows.n_rows or last - first > room:
        raise ValueError(f"rows {first} to {last} are not there")
    if scratch.shape[0] < tk_scratch_bytes(&rows.c) + 63:
        raise ValueError("scratch is too small")
    return 0


def scratch_bytes(Rows rows):
    """How large the scratch of the calls below has to be."""
    return tk_scratch_bytes(&rows.c) + 63


def dot(Rows rows, Map map, int64_t first, int64_t last, const real[:, ::1] table, real[:, ::1] out,
        unsigned char[::1] scratch):
    """out[i, k] = <phi(row first + i), table[:, k]> (OUT: out)."""
    cdef tk_table c_table
    _check(rows, map, sizeof(real), first, last, out.shape[0], scratch)
    if table.shape[0] != map.n_slots or table.shape[1] != out.shape[1]:
        raise ValueError("table and out have the wrong shape")
    if first == last or table.shape[1] == 0:
        return
    c_table.values = <void *>&table[0, 0]
    c_table.width = <int32_t>table.shape[1]
    with nogil:
        tk_dot(&rows.c, &map.c, first, last, &c_table, &out[0, 0], _aligned(scratch))


def add(Rows rows, Map map, int64_t first, int64_t last, real[:, ::1] table, const real[:, ::1] t,
        unsigned char[::1] scratch):
    """table[:, k] += sum_i t[i, k] phi(row first + i) (OUT: table)."""
    cdef tk_table c_table
    _check(rows, map, sizeof(real), first, last, t.shape[0], scratch)
    if table.shape[0] != map.n_slots or table.shape[1] != t.shape[1]:
        raise ValueError("table and t have the wrong shape")
    if first == last or table.shape[1] == 0:
        return
    c_table.values = &table[0, 0]
    c_table.width = <int32_t>table.shape[1]
    with nogil:
        tk_add(&rows.c, &map.c, first, last, &c_table, &t[0, 0], _aligned(scratch))


def expand(Rows rows, Map map, int64_t first, int64_t last, index[::1] slots, real[::1] values,
           unsigned char[::1] scratch):
    """The features of rows first to last - 1, one row after the other (OUT: slots, values)."""
    cdef tk_features out
    _check(rows, map, sizeof(real), first, last, slots.shape[0], scratch)
    if slots.shape[0] != values.shape[0]:
        raise ValueError("slots and values have the wrong shape")
    if first == last:
        return
    out.slots = &slots[0]
    out.values = &values[0]
    out.room = slots.shape[0]
    out.wide = sizeof(index) == 8
    with nogil:
        tk_expand(&rows.c, &map.c, first, last, &out, _aligned(scratch))


def weigh_scratch_bytes(Map map, Py_ssize_t itemsize):
    """How large the scratch of `weigh` has to be, for a table of this item size."""
    return tk_weigh_scratch_bytes(TK_FLOAT64 if itemsize == 8 else TK_FLOAT32, &map.c) + 63


def weigh(Map map, int32_t first, int32_t last, real[:, ::1] table, unsigned char[::1] scratch):
    """table[a, :] *= metric of a, for the monomials a whose highest coordinate is in first <= j < last."""
    cdef tk_table c_table
    cdef tk_real kind = TK_FLOAT64 if sizeof(real) == 8 else TK_FLOAT32
    if not 0 <= first <= last <= map.n_columns + 1 or table.shape[0] != map.n_slots:
        raise ValueError("table has the wrong shape")
    if scratch.shape[0] < tk_weigh_scratch_bytes(kind, &map.c) + 63:
        raise ValueError("scratch is too small")
    if first == last or table.shape[1] == 0:
        return
    c_table.values = &table[0, 0]
    c_table.width = <int32_t>table.shape[1]
    with nogil:
        tk_weigh(kind, &map.c, first, last, &c_table, _aligned(scratch))


def own_slots(Map map, const int32_t[::1] own, const int64_t[:, ::1] own_ranks, int32_t first, int32_t last,
              int64_t[::1] slots):
    """Where monomials over reordered columns are in the columns' own order: those whose highest coordinate is in
    first <= j < last (OUT: slots)."""
    if not 0 <= first < last <= map.n_columns + 1 or map.degree < 2 or own_ranks.shape[0] != map.degree + 1:
        raise ValueError("there are no such slots")
    if own.shape[0] != map.n_columns + 1 or slots.shape[0] != map.first_slot(last) - map.first_slot(first):
        raise ValueError("own or slots has the wrong length")
    with nogil:
        tk_own_slots(&map.c, &own[0], &own_ranks[0, 0], own_ranks.shape[1], first, last, &slots[0])


def gram_scratch_bytes(Rows rows, int64_t n):
    """How large the scratch of `gram` has to be for n rows. It has to be zero."""
    return tk_gram_scratch_bytes(&rows.c, n) + 63


def gram(Rows rows, Map map, int64_t first, int64_t last, double[:, ::1] out, unsigned char[::1] scratch):
    """out[i, j] = K~(row first + i, row first + j) (OUT: out)."""
    if not 0 <= first < last <= rows.n_rows or out.shape[0] != last - first or out.shape[1] != last - first:
        raise ValueError("out has the wrong shape")
    if rows.n_columns != map.n_columns or scratch.shape[0] < tk_gram_scratch_bytes(&rows.c, last - first) + 63:
        raise ValueError("scratch is too small, or rows and map do not belong together")
    with nogil:
        tk_gram(&rows.c, &map.c, first, last, &out[0, 0], _aligned(scratch))


def adapt(Rows rows, Map map, int64_t first, int64_t last, real[::1] values, real[::1] squares, double eta,
          const real[::1] t, unsigned char[::1] scratch):
    """AdaGrad's step by t[i] phi(row first + i), row after row (OUT: values, squares)."""
    cdef tk_adaptive state
    _check(rows, map, sizeof(real), first, last, t.shape[0], scratch)
    if values.shape[0] != map.n_slots or squares.shape[0] != map.n_slots:
        raise ValueError("values and squares have the wrong shape")
    if first == last:
        return
    state.values, state.squares, state.eta = &values[0], &squares[0], eta
    with nogil:
        tk_adapt(&rows.c, &map.c, first, last, &state, &t[0], _aligned(scratch))


def shift_rows(Rows rows, int64_t first, int64_t last, const real[::1] by, const int32_t[::1] moved,
               const int32_t[::1] place, int64_t[::1] indptr, int32_t[::1] indices, real[::1] data):
    """Rows first to last - 1, less `by`, with their columns renumbered.

    Without indices: where each row ends (OUT: indptr). With them: its entries (OUT: indices, data).
    """
    cdef tk_shift shift
    if rows.itemsize != sizeof(real) or by.shape[0] != rows.n_columns or place.shape[0] != rows.n_columns:
        raise ValueError("rows and shift do not belong together")
    if not 0 <= first <= last <= rows.n_rows or indptr.shape[0] != rows.n_rows + 1:
        raise ValueError(f"rows {first} to {last} are not there")
    if first == last or rows.n_columns == 0:
        return
    shift.by, shift.place, shift.indptr = &by[0], &place[0], &indptr[0]
    shift.moved = &moved[0] if moved.shape[0] else NULL
    shift.n_moved = <int32_t>moved.shape[0]
    shift.indices, shift.data = NULL, NULL
    if indices is not None:
        if indices.shape[0] < indptr[last] or data.shape[0] < indptr[last]:
            raise ValueError("there is no room for the entries")
        if indices.shape[0] == 0:
            return
        shift.indices, shift.data = &indices[0], &data[0]
    with nogil:
        tk_shift_rows(&rows.c, &shift, first, last)


LOSSES = {"hinge": TK_HINGE, "squared_hinge": TK_SQUARED_HINGE, "log_loss": TK_LOG_LOSS}


cdef class Training:
    """Rows with labels, a table w to train, and the scratch of a pass. The order of the rows is set at each epoch."""

    cdef tk_training c
    cdef readonly object rows, margin, update, w, y, weight
    cdef unsigned char[::1] scratch
    cdef Py_ssize_t n_stored

    def __init__(self, Rows rows, Map margin, Map update, w, loss, const int8_t[::1] y, const double[::1] weight,
                 int32_t block, unsigned char[::1] scratch):
        if rows.n_columns != margin.n_columns or w.shape != (margin.n_slots,) or w.itemsize != rows.itemsize:
            raise ValueError("rows, map and table do not belong together")
        if update.n_slots != margin.n_slots or update.n_columns != margin.n_columns:
            raise ValueError("rows, map and table do not belong together")
        if rows.order is not None:
            raise ValueError("rows are in an order already")
        self.n_stored = rows.n_stored
        if y.shape[0] != self.n_stored or (weight is not None and weight.shape[0] != self.n_stored):
            raise ValueError("labels or weights have the wrong shape")
        if block < 1 or scratch.shape[0] < tk_training_scratch_bytes(&rows.c, block) + 63:
            raise ValueError("scratch is too small")
        self.rows, self.margin, self.update, self.w, self.y, self.weight = rows, margin, update, w, y, weight
        self.scratch = scratch
        self.c.rows = &rows.c
        self.c.margin = &margin.c
        self.c.update = &update.c
        self.c.w = self.table(w)
        self.c.loss = LOSSES[loss]
        self.c.y = &y[0]
        self.c.weight = &weight[0] if weight is not None else NULL
        self.c.block = block
        self.c.scratch = _aligned(scratch)

    cdef int check(self, int64_t first, int64_t last) except -1:
        cdef Rows rows = self.rows
        if rows.c.order == NULL or not 0 <= first <= last <= rows.n_rows:
            raise ValueError(f"rows {first} to {last} are not there")
        if self.scratch.shape[0] < tk_training_scratch_bytes(&rows.c, self.c.block) + 63:
            raise ValueError("scratch is too small")
        return 0

    cdef double *per_row(self, double[::1] array) except? NULL:
        if array.shape[0] != self.n_stored:
            raise ValueError("an array has the wrong shape")
        return &array[0]

    cdef void *table(self, array) except? NULL:
        if array.shape != self.w.shape or array.dtype.kind != "f" or array.itemsize != self.w.itemsize:
            raise ValueError("a table has the wrong shape or type")
        if not array.flags.writeable:
            raise ValueError("a table is read-only")
        return <void *>_address(array)


def training_scratch_bytes(Rows rows, int32_t block):
    """How large the scratch of a training has to be. It has to be zero."""
    return tk_training_scratch_bytes(&rows.c, block) + 63


cdef class Dual:
    """The state of dual coordinate ascent: w = C sum_i alpha_i y_i phi(x_i) (OUT: all, and the training's w)."""

    cdef tk_dual c
    cdef readonly Training training
    cdef readonly object alpha, margin

    def __init__(self, Training training not None, double C, double[::1] alpha, double[::1] margin, int32_t sweeps):
        self.training, self.alpha, self.margin = training, alpha, margin
        self.c.alpha, self.c.margin = training.per_row(alpha), training.per_row(margin)
        self.c.C, self.c.sweeps, self.c.norm2, self.c.changed = C, sweeps, 0, 0

    @property
    def norm2(self):
        """|w|^2."""
        return self.c.norm2

    @norm2.setter
    def norm2(self, double value):
        self.c.norm2 = value

    @property
    def changed(self):
        """How many steps have changed an alpha."""
        return self.c.changed

    def run(self, int64_t first, int64_t last):
        """One pass over the rows from first to last - 1 of the order."""
        self.training.check(first, last)
        with nogil:
            tk_dual_pass(&self.training.c, first, last, &self.c)


cdef class Pegasos:
    """The state of Pegasos; see tk.h (OUT: all, and the training's w)."""

    cdef tk_pegasos c
    cdef readonly Training training
    cdef readonly object alpha, average

    def __init__(self, Training training not None, double lambda_, double share, double radius, double[::1] alpha,
                 int64_t t=0, double norm2=0):
        self.training, self.alpha = training, alpha
        self.c.lambda_, self.c.share, self.c.radius = lambda_, share, radius
        self.c.alpha = training.per_row(alpha)
        self.c.t, self.c.scale, self.c.norm2 = t, 1, norm2
        self.c.average, self.c.shift, self.c.n_averaged = NULL, 0, 0

    def begin_average(self, average):
        """Average the iterates from here on; `average` is zero."""
        self.c.average, self.c.shift, self.c.n_averaged = self.training.table(average), 0, 0
        self.average = average

    @property
    def scale(self):
        """w is this times the training's w."""
        return self.c.scale

    @property
    def averaging(self):
        """(a, b): the averaged iterate is a * average + b * the training's w."""
        return 1 / <double>max(self.c.n_averaged, 1), self.c.shift / max(self.c.n_averaged, 1)

    def run(self, int64_t first, int64_t last):
        """One pass over the rows from first to last - 1 of the order."""
        self.training.check(first, last)
        with nogil:
            tk_pegasos_pass(&self.training.c, first, last, &self.c)


cdef class Adagrad:
    """The state of AdaGrad (OUT: squares, and the training's w)."""

    cdef tk_adaptive c
    cdef readonly Training training
    cdef readonly object squares

    def __init__(self, Training training not None, squares, double eta):
        self.training, self.squares = training, squares
        self.c.values, self.c.squares, self.c.eta = training.c.w, training.table(squares), eta

    def run(self, int64_t first, int64_t last):
        """One pass over the rows from first to last - 1 of the order."""
        self.training.check(first, last)
        with nogil:
            tk_adagrad_pass(&self.training.c, first, last, &self.c)

    def shrink(self, double factor, int64_t first, int64_t last):
        """The regulariser's step in the slots from first to last - 1: w[a] /= 1 + factor / sqrt(squares[a])."""
        if not 0 <= first <= last <= self.squares.shape[0]:
            raise ValueError(f"slots {first} to {last} are not there")
        with nogil:
            tk_shrink(self.training.c.rows.real, &self.c, factor, first, last)


STRUCTURE_PROBLEMS = {
    TK_INDPTR_START: "indptr[0] is {indptr}, not 0",
    TK_INDPTR_FALLS: "indptr falls from {indptr} at position {at} to {indptr_next}",
    TK_INDPTR_BEYOND: "indptr[{at}] is {indptr}, but only {n_stored} entries are stored",
    TK_INDEX_RANGE: "indices[{at}] is {index}, outside 0 to {highest}",
}


def check_structure(const index[::1] indptr, const index[::1] indices, int64_t n_minor, int64_t n_stored):
    """(problem, canonical): a sentence on what is wrong, or None; and whether indices rise strictly in each row."""
    cdef int64_t at = 0, n_major = indptr.shape[0] - 1
    cdef bint wide = sizeof(index) == 8
    cdef const void *stored = <const void *>&indptr[0]
    cdef tk_structure found
    n_stored = min(n_stored, indices.shape[0])
    if indices.shape[0]:
        stored = <const void *>&indices[0]
    with nogil:
        found = tk_check_structure(&indptr[0], stored, wide, n_major, n_minor, n_stored, &at)
    if found in (TK_CANONICAL, TK_UNSORTED):
        return None, found == TK_CANONICAL
    return STRUCTURE_PROBLEMS[found].format(
        at=at,
        n_stored=n_stored,
        highest=n_minor - 1,
        indptr=indptr[at] if at <= n_major else None,
        indptr_next=indptr[at + 1] if at < n_major else None,
        index=indices[at] if at < indices.shape[0] else None,
    ), False


def instruction_sets():
    """Names of the instruction sets that this machine can run, best first."""
    return [tk_instruction_set_name(i).decode() for i in range(tk_n_instruction_sets())
            if tk_instruction_set_usable(i)]


def instruction_set():
    """The name of the instruction set in use."""
    return tk_instruction_set_name(tk_instruction_set()).decode()


def use_instruction_set(name):
    """Switch to another instruction set: for tests and benchmarks."""
    for i in range(tk_n_instruction_sets()):
        if tk_instruction_set_name(i).decode() == name and tk_instruction_set_usable(i):
            tk_use_instruction_set(i)
            return
    raise ValueError(f"instruction set {name!r} is not usable here; usable: {instruction_sets()}")


tk_init()
