"""The boundary to the C core: arrays in, one C call each, the GIL released.

Arguments are IN unless marked OUT. Everything handed over here has been validated by `_rows` and `_expansion`; what
is checked again is only what keeps C inside its arrays when a caller in this package has a bug.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t


cdef extern from "train/loss.h" nogil:
    ctypedef enum tk_asked:
        TK_LABELS
        TK_NUMBERS
        TK_CLASSES

    ctypedef struct tk_loss:
        const char *name
        tk_asked of
        double lipschitz
        double low
        double high
        double (*radius2)(int32_t n_outputs)


cdef extern from "tk.h" nogil:
    enum:
        TK_MAX_DEGREE
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
        const int64_t *base
        const double *beyond
        const double *factor
        const tk_rows *next

    ctypedef struct tk_map:
        int32_t degree
        int32_t n_columns
        double scale
        double decay
        int32_t unit
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

    ctypedef struct tk_centres:
        int32_t n_cells
        const int32_t *use
        const double *values
        const double *half

    const int TK_CELL_GROUP

    ctypedef struct tk_shift:
        const int32_t *cell
        int32_t n_columns
        const void *by
        const int64_t *moved_ptr
        const int32_t *moved
        const int32_t *place
        double *beyond
        int64_t *indptr
        int32_t *indices
        void *data
        void *scratch
        int32_t append

    int32_t tk_n_losses()
    const tk_loss *tk_loss_at(int32_t number)

    ctypedef struct tk_targets:
        const tk_loss *loss
        double epsilon
        int32_t n_outputs
        const int8_t *y
        const double *target
        const double *weight
        const double *favour

    ctypedef struct tk_terms:
        const double *alpha
        const double *margin
        const uint8_t *live
        double *sums
        uint8_t *active
        const double *slack
        const double *near

    ctypedef struct tk_team:
        int32_t n
        int32_t arrived
        int32_t round

    ctypedef struct tk_training:
        const tk_rows *rows
        const tk_map *margin
        const tk_map *update
        tk_table w
        const tk_targets *targets
        int32_t block
        tk_team *team
        const int32_t *shares
        int32_t n_parts
        const int32_t *parts
        void *scratch

    ctypedef struct tk_dual:
        double C
        double *alpha
        double *margin
        double *norm2
        const uint8_t *live
        int32_t sweeps
        int64_t changed

    ctypedef struct tk_pegasos:
        double lambda_ "lambda"
        double share
        int64_t t
        double *scale
        double *alpha
        double *norm2
        const double *radius
        void *average
        double *shift
        int64_t n_averaged

    ctypedef struct tk_adaptive:
        void *values
        void *squares
        int32_t width
        double eta
        const void *rate

    int64_t tk_scratch_bytes(const tk_rows *rows)
    int64_t tk_weigh_scratch_bytes(tk_real real, const tk_map *map)
    void tk_dot(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                void *out, void *scratch)
    void tk_add_part(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                     const void *t, void *scratch, int32_t top, int32_t end)
    void tk_factors(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *s)
    void tk_expand(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_features *out,
                   void *scratch)
    void tk_weigh(tk_real real, const tk_map *map, int32_t first, int32_t last, const tk_table *table,
                  void *scratch)
    int64_t tk_gram_scratch_bytes(const tk_rows *rows, int64_t n)
    void tk_gram(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch)
    void tk_adapt(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
                  const void *t, void *scratch)
    int tk_all_finite(tk_real real, const void *values, int64_t n, int nonzero)
    void tk_count_nonzeros(const tk_rows *rows, int64_t first, int64_t last, int64_t *counts)
    void tk_squares(const tk_rows *rows, int64_t first, int64_t last, double *squares)
    void tk_cut_shares(double *t, int64_t n, int32_t degree)
    void tk_count_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const void *by, int32_t *stored,
                          int32_t *equal)
    void tk_take_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const int32_t *line, void *values)
    void tk_nearest(const tk_rows *rows, const tk_centres *centres, int64_t first, int64_t last, int32_t *cell)
    int64_t tk_shift_scratch_bytes(int32_t n_columns)
    void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last)
    void tk_terms_pass(const tk_targets *targets, const int32_t *which, int64_t first, int64_t last,
                       const tk_terms *terms)
    void tk_margins(const tk_targets *targets, tk_real real, const void *f, int32_t width, int64_t first, int64_t last,
                    double *margin)
    void tk_slopes(const tk_targets *targets, const double *margin, int64_t first, int64_t last, double *alpha)
    int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block, int32_t n_outputs, int32_t width,
                                      int32_t n_parts, int32_t n_threads)
    void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual, int32_t me)
    void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos, int32_t me)
    void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state,
                         int32_t me)
    void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last)
    void tk_own_slots(const tk_map *map, const int32_t *own, const int64_t *own_ranks, int64_t width, int32_t first,
                      int32_t last, int64_t *slots)
    void tk_shuffle(int32_t *rows, int64_t n, const uint32_t *draws)
    int64_t tk_active_rows(const int32_t *rows, int64_t n, const uint8_t *active, int32_t *kept)
    void tk_sort_rows(const tk_rows *rows, int64_t first, int64_t last, int32_t *order, uint64_t *scratch)
    tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t first, int64_t last,
                                    int64_t n_minor, int64_t n_stored, int64_t *at)
    int tk_n_instruction_sets()
    const char *tk_instruction_set_name(int i)
    int tk_instruction_set_usable(int i)
    void tk_init()
    int tk_instruction_set()
    void tk_use_instruction_set(int i)


MAX_DENSE_COLUMNS = TK_MAX_DENSE_COLUMNS
CELL_GROUP = TK_CELL_GROUP

ctypedef fused real:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


cdef class Rows:
    """Rows of data, borrowed: keeps the arrays alive and C's view of them."""

    cdef tk_rows c
    cdef readonly object data, indices, indptr, order, place, base, beyond, factor
    cdef readonly Rows next
    cdef readonly int64_t n_slots
    cdef readonly Py_ssize_t n_rows, n_columns
    cdef readonly Py_ssize_t itemsize
    cdef Py_ssize_t n_stored

    def __init__(self, data, indices, indptr, Py_ssize_t n_columns, Py_ssize_t max_nonzeros=-1):
        cdef const int32_t[::1] indices_view
        cdef const int64_t[::1] indptr_view
        cdef Py_ssize_t i
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
        if max_nonzeros < 0:  # it has not been counted yet
            max_nonzeros = n_columns if indptr is None else 0
            for i in range(self.n_rows if indptr is not None else 0):
                max_nonzeros = max(max_nonzeros, indptr_view[i + 1] - indptr_view[i])
        self.n_stored = self.n_rows
        self.c.n_columns = <int32_t>n_columns
        self.c.max_nonzeros = <int32_t>max_nonzeros
        self.c.order = NULL
        self.c.place = NULL
        self.c.n_front = 0
        self.c.walk_dense = 0
        self.c.base, self.c.beyond, self.c.factor, self.c.next = NULL, NULL, NULL, NULL
        self.n_slots = 0

    def set_cells(self, base, beyond, int64_t n_slots):
        """Let row i have tables from slot base[i] on, of n_slots in all, and columns left out that add beyond[i] to
        its squared norm; both may be None."""
        cdef const int64_t[::1] view = base
        cdef const double[::1] more = beyond
        cdef Py_ssize_t i
        for part in (base, beyond):
            if part is not None and part.shape[0] != self.n_stored:
                raise ValueError("base or beyond does not belong to these rows")
        for i in range(view.shape[0] if view is not None else 0):
            if not 0 <= view[i] < n_slots:
                raise ValueError(f"base has the slot {view[i]}, outside 0 to {n_slots - 1}")
        self.base, self.beyond, self.n_slots = base, beyond, n_slots
        self.c.base = &view[0] if view is not None and view.shape[0] else NULL
        self.c.beyond = &more[0] if more is not None and more.shape[0] else NULL

    def set_factor(self, factor):
        """Let s(x) of stored row i be factor[i], by `factors`, under every map used with these rows that has one."""
        cdef const double[::1] view = factor
        if view.shape[0] != self.n_stored:
            raise ValueError("factor does not belong to these rows")
        self.factor = factor
        self.c.factor = &view[0] if view.shape[0] else NULL

    def set_next(self, Rows other not None):
        """Let `other` be another form of these rows."""
        if other.n_stored != self.n_stored or other.n_columns != self.n_columns or other.itemsize != self.itemsize:
            raise ValueError("the rows are not the same")
        if other.n_slots != self.n_slots:
            raise ValueError("the rows have not the same tables")
        self.next = other
        self.c.next = &other.c

    cdef int64_t slots(self, Map map):
        """How many slots tables have."""
        return self.n_slots if self.c.base != NULL else map.n_slots

    def set_order(self, order):
        """Let row i be the one that is stored at order[i]; there are then as many rows as order has entries."""
        cdef const int32_t[::1] view = order
        cdef Py_ssize_t outside = _outside(&view[0], view.shape[0], self.n_stored)
        if outside >= 0:
            raise ValueError(f"order has the row {view[outside]}, outside 0 to {self.n_stored - 1}")
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

    def __init__(self, double scale, double decay, bint unit, const int64_t[:, ::1] ranks,
                 const double[::1] constant, const double[::1] repeat, const double[::1] series, bint bare):
        self.arrays = (ranks, constant, repeat, series)
        self.degree = ranks.shape[0] - 1
        self.n_columns = ranks.shape[1] - 2
        self.n_slots = ranks[self.degree, self.n_columns + 1]
        self.c.degree = <int32_t>self.degree
        self.c.n_columns = <int32_t>self.n_columns
        self.c.scale = scale
        self.c.decay = decay
        self.c.unit = unit
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


cdef Py_ssize_t _outside(const int32_t *rows, Py_ssize_t n, Py_ssize_t end) noexcept nogil:
    """The place of the first of n rows that is not at least 0 and below end; -1 when there is none."""
    cdef Py_ssize_t i
    cdef uint32_t odd = 0, highest = <uint32_t>(min(end, <Py_ssize_t>2**31) - 1)
    for i in range(n):  # the signs of all of them are looked at together: compilers make vectors of that
        odd |= <uint32_t>rows[i] | (highest - <uint32_t>rows[i])
    if odd >> 31 or end == 0:
        for i in range(n):
            if not 0 <= rows[i] < end:
                return i
    return -1


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
    if table.shape[0] != rows.slots(map) or table.shape[1] != out.shape[1]:
        raise ValueError("table and out have the wrong shape")
    if first == last or table.shape[1] == 0:
        return
    c_table.values = <void *>&table[0, 0]
    c_table.width = <int32_t>table.shape[1]
    with nogil:
        tk_dot(&rows.c, &map.c, first, last, &c_table, &out[0, 0], _aligned(scratch))


def dot_in_order(Rows rows, Map map, int64_t first, const int32_t[::1] order, const real[:, ::1] table,
                 real[:, ::1] out, unsigned char[::1] scratch):
    """The same for rows that are in no order, from row first on, which are visited in one (OUT: out).

    out[order[i] - first] is of row order[i].
    """
    cdef tk_table c_table
    cdef tk_rows c = rows.c
    cdef int64_t n = order.shape[0]
    cdef Py_ssize_t i, k, width = out.shape[1]
    cdef real[:, ::1] products
    _check(rows, map, sizeof(real), first, first + n, out.shape[0], scratch)
    if rows.order is not None or table.shape[0] != rows.slots(map) or table.shape[1] != width:
        raise ValueError("rows are in an order already, or table and out have the wrong shape")
    for i in range(n):
        if not first <= order[i] < first + n:
            raise ValueError(f"order has the row {order[i]}, outside {first} to {first + n - 1}")
    if n == 0 or width == 0:
        return
    products = out.copy()
    c.order = &order[0]
    c_table.values, c_table.width = <void *>&table[0, 0], <int32_t>width
    with nogil:
        tk_dot(&c, &map.c, 0, n, &c_table, &products[0, 0], _aligned(scratch))
        for i in range(n):
            for k in range(width):
                out[order[i] - first, k] = products[i, k]


def add(Rows rows, Map map, int64_t first, int64_t last, real[:, ::1] table, const real[:, ::1] t,
        unsigned char[::1] scratch, int32_t top=0, int32_t end=-1):
    """table[:, k] += sum_i t[i, k] phi(row first + i) (OUT: table).

    With top and end, in the slots whose highest coordinate is in top <= j_r < end alone.
    """
    cdef tk_table c_table
    end = <int32_t>map.n_columns + 1 if end < 0 else end
    if not 0 <= top <= end <= map.n_columns + 1:
        raise ValueError(f"there are no coordinates {top} to {end}")
    _check(rows, map, sizeof(real), first, last, t.shape[0], scratch)
    if table.shape[0] != rows.slots(map) or table.shape[1] != t.shape[1]:
        raise ValueError("table and t have the wrong shape")
    if first == last or table.shape[1] == 0:
        return
    c_table.values = &table[0, 0]
    c_table.width = <int32_t>table.shape[1]
    with nogil:
        tk_add_part(&rows.c, &map.c, first, last, &c_table, &t[0, 0], _aligned(scratch), top, end)


def factors(Rows rows, Map map, int64_t first, int64_t last, double[::1] s):
    """s[i]: s(x) of row first + i; 0 where that is to be computed when the row is walked (OUT: s)."""
    if rows.n_columns != map.n_columns or not 0 <= first <= last <= rows.n_rows or s.shape[0] != last - first:
        raise ValueError("rows, map and s do not belong together")
    if first < last:
        with nogil:
            tk_factors(&rows.c, &map.c, first, last, &s[0])


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
    if not 0 <= first <= last <= map.n_columns + 1 or table.shape[0] < map.first_slot(last):
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


def adapt(Rows rows, Map map, int64_t first, int64_t last, real[:, ::1] values, real[:, ::1] squares, double eta,
          const real[:, ::1] t, unsigned char[::1] scratch):
    """AdaGrad's step by t[i, k] phi(row first + i), row after row (OUT: values, squares)."""
    cdef tk_adaptive state
    _check(rows, map, sizeof(real), first, last, t.shape[0], scratch)
    if values.shape[0] != rows.slots(map) or squares.shape[0] != values.shape[0]:
        raise ValueError("values and squares have the wrong shape")
    if values.shape[1] != t.shape[1] or squares.shape[1] != t.shape[1]:
        raise ValueError("values, squares and t have the wrong shape")
    if first == last or t.shape[1] == 0:
        return
    state.values, state.squares, state.eta = &values[0, 0], &squares[0, 0], eta
    state.width, state.rate = <int32_t>t.shape[1], NULL
    with nogil:
        tk_adapt(&rows.c, &map.c, first, last, &state, &t[0, 0], _aligned(scratch))


def all_finite(const real[::1] values, bint nonzero=False):
    """Whether all values are finite and, when that is asked for, none of them is 0."""
    cdef bint found = True
    if values.shape[0]:
        with nogil:
            found = tk_all_finite(TK_FLOAT64 if sizeof(real) == 8 else TK_FLOAT32, &values[0], values.shape[0], nonzero)
    return found


def count_nonzeros(Rows rows, int64_t first, int64_t last, int64_t[::1] counts):
    """counts[m] += 1 for each of the rows first to last - 1 that has m nonzeros (OUT: counts)."""
    if not 0 <= first <= last <= rows.n_rows or counts.shape[0] <= rows.c.max_nonzeros:
        raise ValueError(f"rows {first} to {last} are not there, or counts has too few entries")
    with nogil:
        tk_count_nonzeros(&rows.c, first, last, &counts[0])


def squares(Rows rows, int64_t first, int64_t last, double[::1] out):
    """out[i] = |row first + i|^2, unscaled (OUT: out)."""
    if not 0 <= first <= last <= rows.n_rows or out.shape[0] != last - first:
        raise ValueError(f"rows {first} to {last} are not there, or out has the wrong length")
    if first == last:
        return
    with nogil:
        tk_squares(&rows.c, first, last, &out[0])


def cut_shares(double[::1] t, int32_t degree):
    """t = exp(-t) sum_{k > degree} t^k / k!, which is gammainc(degree + 1, t), of numbers that are not below 0."""
    if not 1 <= degree <= TK_MAX_DEGREE:
        raise ValueError(f"degree must be 1 to {TK_MAX_DEGREE}; got {degree}")
    if t.shape[0]:
        with nogil:
            tk_cut_shares(&t[0], t.shape[0], degree)


def count_columns(Rows rows, int64_t step, const real[::1] by, int32_t[::1] stored, int32_t[::1] equal):
    """Of the stored rows 0, step, 2 step, ...: stored[j] += 1 where column j is stored (always, in dense rows), and
    equal[j] += 1 where it then is by[j] (OUT: stored, equal)."""
    if rows.itemsize != sizeof(real) or rows.c.place != NULL or step < 1 or by.shape[0] != rows.n_columns:
        raise ValueError("rows and by do not belong together, or there is no such step")
    if stored.shape[0] != by.shape[0] or equal.shape[0] != by.shape[0]:
        raise ValueError("stored or equal has the wrong length")
    if by.shape[0]:
        with nogil:
            tk_count_columns(&rows.c, rows.n_stored, step, &by[0], &stored[0], &equal[0])


def take_columns(Rows rows, int64_t step, const int32_t[::1] line, real[:, ::1] values):
    """Of the same rows, column j as values[line[j]], where that is not below 0 (OUT: values, where it is stored)."""
    cdef Py_ssize_t j
    if rows.itemsize != sizeof(real) or rows.c.place != NULL or step < 1 or line.shape[0] != rows.n_columns:
        raise ValueError("rows and lines do not belong together, or there is no such step")
    if values.shape[1] != (rows.n_stored + step - 1) // step:
        raise ValueError("values has the wrong shape")
    for j in range(line.shape[0]):
        if line[j] >= values.shape[0]:
            raise ValueError(f"there is no line {line[j]}")
    if line.shape[0] and values.shape[0] and values.shape[1]:
        with nogil:
            tk_take_columns(&rows.c, rows.n_stored, step, &line[0], &values[0, 0])


def nearest(Rows rows, int64_t first, int64_t last, const int32_t[::1] use, const double[:, ::1] centres,
            const double[::1] half, Py_ssize_t n_cells, int32_t[::1] cell):
    """The nearest centre of rows first to last - 1 (OUT: cell).

    centres has a line for each column j that has a number use[j] >= 0, and half, the halves of their squared norms, as
    many entries as these lines: n_cells, padded with infinities to a multiple of CELL_GROUP.
    """
    cdef tk_centres c
    cdef Py_ssize_t j
    if use.shape[0] != rows.n_columns or centres.shape[1] != half.shape[0] or half.shape[0] % TK_CELL_GROUP:
        raise ValueError("rows and centres do not belong together")
    if not 0 < n_cells <= half.shape[0] or not 0 <= first <= last <= rows.n_rows or cell.shape[0] != last - first:
        raise ValueError(f"rows {first} to {last} are not there, or there are no {n_cells} centres")
    for j in range(use.shape[0]):
        if use[j] >= centres.shape[0]:
            raise ValueError(f"there is no line {use[j]} of the centres")
    if first == last or centres.shape[0] == 0:
        cell[:] = 0
        return
    c.n_cells, c.use, c.values, c.half = <int32_t>n_cells, &use[0], &centres[0, 0], &half[0]
    with nogil:
        tk_nearest(&rows.c, &c, first, last, &cell[0])


cdef enum:
    FEW_SHIFTED = 64


def shift_rows(Rows rows, int64_t first, int64_t last, const real[:, ::1] by, const int32_t[:, ::1] place,
               const int32_t[::1] moved, const int64_t[::1] moved_ptr, const int32_t[::1] cell,
               int64_t[::1] indptr, int32_t[::1] indices, real[::1] data, double[::1] beyond, bint append=False):
    """Rows first to last - 1, less the by of each one's cell (None: all 0), with their columns renumbered.

    Without indices: how many entries each row has (OUT: indptr[first + 1 ..], and beyond, when columns are left out).
    With them: its entries (OUT: indices, data), from indptr[i] on; or, to append where they have not been counted, one
    row after the other from indptr[first] on (OUT: indptr[first + 1 ..], too): for rows that are not in cells.
    """
    cdef tk_shift shift
    cdef uint8_t[::1] scratch
    cdef Py_ssize_t i, at, n_cells = by.shape[0]
    cdef int64_t end
    if rows.itemsize != sizeof(real) or by.shape[1] != rows.n_columns or place.shape[1] != rows.n_columns:
        raise ValueError("rows and shift do not belong together")
    if place.shape[0] != n_cells or moved_ptr.shape[0] != n_cells + 1 or n_cells == 0:
        raise ValueError("the parts of a shift do not belong together")
    for i in range(n_cells):
        if not 0 <= moved_ptr[i] <= moved_ptr[i + 1] <= moved.shape[0]:
            raise ValueError("moved_ptr does not belong to moved")
    if not 0 <= first <= last <= rows.n_rows or indptr.shape[0] != rows.n_rows + 1:
        raise ValueError(f"rows {first} to {last} are not there")
    if (cell is not None and cell.shape[0] != rows.n_stored) or (cell is None and n_cells != 1):
        raise ValueError("cell has the wrong length")
    if beyond is not None and beyond.shape[0] != rows.n_rows:
        raise ValueError("beyond has the wrong length")
    if first == last or rows.n_columns == 0:
        return
    shift.cell, shift.beyond = NULL, NULL
    if cell is not None:
        for i in range(first, last):
            at = rows.c.order[i] if rows.c.order != NULL else i
            if not 0 <= cell[at] < n_cells:
                raise ValueError(f"there is no cell {cell[at]}")
        shift.cell = &cell[0]
    if beyond is not None:
        shift.beyond = &beyond[0]
    shift.n_columns = <int32_t>rows.n_columns
    shift.by, shift.place, shift.indptr, shift.append = &by[0, 0], &place[0, 0], &indptr[0], append
    shift.moved = &moved[0] if moved.shape[0] else NULL
    shift.moved_ptr = &moved_ptr[0]
    shift.indices, shift.data, shift.scratch = NULL, NULL, NULL
    if indices is not None:
        end = indptr[last]
        if append:
            if rows.c.order != NULL or cell is not None:
                raise ValueError("the entries of such rows have to be counted before")
            end = indptr[first]
            if rows.c.indptr == NULL:
                end += (last - first) * rows.n_columns
            else:
                end += rows.c.indptr[last] - rows.c.indptr[first] + (last - first) * moved.shape[0]
        if indices.shape[0] < end or data.shape[0] < end:
            raise ValueError("there is no room for the entries")
        if indices.shape[0] == 0:
            return
        shift.indices, shift.data = &indices[0], &data[0]
        if end - indptr[first] > FEW_SHIFTED:  # fewer are sorted in the time that it takes to clear it
            scratch = bytearray(tk_shift_scratch_bytes(shift.n_columns))
            if scratch.shape[0]:
                shift.scratch = &scratch[0]
    with nogil:
        tk_shift_rows(&rows.c, &shift, first, last)


ASKED_OF = {TK_LABELS: "labels", TK_NUMBERS: "numbers", TK_CLASSES: "classes"}


cdef const tk_loss *_loss(name) except NULL:
    cdef int32_t i
    cdef const tk_loss *loss
    for i in range(tk_n_losses()):
        loss = tk_loss_at(i)
        if loss.name.decode() == name:
            return loss
    raise ValueError(f"there is no loss {name!r}")


def losses():
    """What there is to know of each loss: {name: {"of": "labels", "numbers" or "classes", and other numbers}}."""
    cdef int32_t i
    cdef const tk_loss *loss
    known = {}
    for i in range(tk_n_losses()):
        loss = tk_loss_at(i)
        known[loss.name.decode()] = {
            "of": ASKED_OF[loss.of], "lipschitz": loss.lipschitz, "low": loss.low, "high": loss.high
        }
    return known


def radius2(name, int32_t n_outputs):
    """The optimum lies within lambda |w|^2 <= this, for weights of mean 1; None: it depends on the targets."""
    cdef const tk_loss *loss = _loss(name)
    return loss.radius2(n_outputs) if loss.radius2 != NULL else None


cdef class Targets:
    """What is asked of the rows: a loss, and labels y or numbers `target` of shape [n_rows, K]; with weights.

    The other of the two is None. `favour` is a weight for the rows of which an output's label is 1.
    """

    cdef tk_targets c
    cdef readonly object y, target, weight, favour
    cdef readonly Py_ssize_t n_rows, n_outputs

    def __init__(self, loss, const int8_t[:, ::1] y, const double[:, ::1] target=None, const double[::1] weight=None,
                 const double[::1] favour=None, double epsilon=0):
        self.c.loss = _loss(loss)
        if (y is None) == (target is None) or (target is None) != self.of_labels:
            raise ValueError("the loss is one of labels and there are none, or one of numbers and there are none")
        self.n_rows = target.shape[0] if y is None else y.shape[0]
        self.n_outputs = target.shape[1] if y is None else y.shape[1]
        if self.n_rows < 1 or self.n_outputs < (2 if self.joint else 1):
            raise ValueError("there are no rows, or too few outputs")
        if weight is not None and weight.shape[0] != self.n_rows:
            raise ValueError("weights have the wrong shape")
        if favour is not None and (favour.shape[0] != self.n_outputs or y is None):
            raise ValueError("favour has the wrong shape")
        self.y, self.target, self.weight, self.favour = y, target, weight, favour
        self.c.epsilon, self.c.n_outputs = epsilon, <int32_t>self.n_outputs
        self.c.y = &y[0, 0] if y is not None else NULL
        self.c.target = &target[0, 0] if target is not None else NULL
        self.c.weight = &weight[0] if weight is not None else NULL
        self.c.favour = &favour[0] if favour is not None else NULL

    @property
    def of_labels(self):
        """Whether the loss is one of labels."""
        return self.c.loss.of != TK_NUMBERS

    @property
    def joint(self):
        """Whether the loss looks at all outputs of a row together."""
        return self.c.loss.of == TK_CLASSES

    cdef int check(self, Py_ssize_t n_rows, Py_ssize_t n_outputs) except -1:
        if n_rows != self.n_rows or n_outputs != self.n_outputs:
            raise ValueError("an array of one entry for each row and output has the wrong shape")
        return 0

    def margins(self, const real[:, ::1] f, int64_t first, double[:, ::1] margin):
        """The margins of the rows first, first + 1, ... from their outputs; more columns are padding (OUT: margin)."""
        cdef int64_t last = first + f.shape[0]
        self.check(margin.shape[0], margin.shape[1])
        if not 0 <= first <= last <= self.n_rows or f.shape[1] < self.n_outputs:
            raise ValueError(f"rows {first} to {last} are not there, or have too few outputs")
        if first < last:
            with nogil:
                tk_margins(&self.c, TK_FLOAT64 if sizeof(real) == 8 else TK_FLOAT32, &f[0, 0], <int32_t>f.shape[1],
                           first, last, &margin[0, 0])

    def add_terms(self, const double[:, ::1] margin, const double[:, ::1] alpha, const int32_t[::1] which,
                  int64_t first, int64_t last, const uint8_t[::1] live, double[:, ::1] sums, uint8_t[::1] active,
                  const double[:, ::1] near):
        """Add up what the objectives are made of, see tk.h, over rows first to last - 1 of `which` (None: of all).

        alpha None is 0, live None is all; active may be None, else near holds (slack, near), and only rows that turn
        out to be active are added (OUT: sums, active).
        """
        cdef tk_terms terms
        cdef const int32_t *c_which = NULL
        cdef Py_ssize_t outside
        cdef Py_ssize_t n_problems = 1 if self.joint else self.n_outputs
        self.check(margin.shape[0], margin.shape[1])
        if alpha is not None:
            self.check(alpha.shape[0], alpha.shape[1])
        if sums.shape[0] != 4 or sums.shape[1] != n_problems:
            raise ValueError("sums has the wrong shape")
        if live is not None and live.shape[0] != self.n_outputs:
            raise ValueError("live has the wrong shape")
        if not 0 <= first <= last <= (self.n_rows if which is None else which.shape[0]):
            raise ValueError(f"rows {first} to {last} are not there")
        terms.active, terms.slack, terms.near = NULL, NULL, NULL
        if active is not None:
            if active.shape[0] != self.n_rows or alpha is None or near.shape[0] != 2 or near.shape[1] != n_problems:
                raise ValueError("active or near has the wrong shape, or there is no alpha")
            terms.active, terms.slack, terms.near = &active[0], &near[0, 0], &near[1, 0]
        if first == last:
            return
        if which is not None:
            c_which = &which[0]
            outside = _outside(c_which + first, last - first, self.n_rows)
            if outside >= 0:
                raise ValueError(f"row {c_which[first + outside]} is not there")
        terms.margin = &margin[0, 0]
        terms.alpha = &alpha[0, 0] if alpha is not None else NULL
        terms.live = &live[0] if live is not None else NULL
        terms.sums = &sums[0, 0]
        with nogil:
            tk_terms_pass(&self.c, c_which, first, last, &terms)

    def slopes(self, const double[:, ::1] margin, double[:, ::1] alpha):
        """The dual point that goes with the slopes of the losses at these margins (OUT: alpha)."""
        self.check(margin.shape[0], margin.shape[1])
        self.check(alpha.shape[0], alpha.shape[1])
        with nogil:
            tk_slopes(&self.c, &margin[0, 0], 0, margin.shape[0], &alpha[0, 0])


cdef bint _bad_shares(const int32_t[::1] shares, Py_ssize_t n_columns):
    cdef Py_ssize_t k, n = shares.shape[0] - 1
    return n < 1 or shares[0] != 0 or shares[n] != n_columns + 1 or any(shares[k] > shares[k + 1] for k in range(n))


cdef class Training:
    """Rows and what is asked of them, tables w [n_slots, width] to train, and the scratch of a pass.

    There are as many threads as `shares` has ranges: each updates the slots whose highest coordinate is in its own.
    Margins are sums over the ranges of `parts`, on which, other than on `shares`, results depend; None: one range.

    The order of the rows is set at each epoch. Tables beyond the number of outputs are padding.
    """

    cdef tk_training c
    cdef tk_team team
    cdef readonly Rows rows
    cdef readonly Map margin, update
    cdef readonly object w
    cdef readonly Targets targets
    cdef unsigned char[::1] scratch
    cdef const int32_t[::1] shares, parts
    cdef int32_t whole[2]

    def __init__(self, Rows rows not None, Map margin not None, Map update not None, w, Targets targets not None,
                 int32_t block, unsigned char[::1] scratch, const int32_t[::1] shares not None,
                 const int32_t[::1] parts=None):
        if rows.n_columns != margin.n_columns or w.ndim != 2 or w.shape[0] != rows.slots(margin):
            raise ValueError("rows, map and table do not belong together")
        if update.n_slots != margin.n_slots or update.n_columns != margin.n_columns or w.itemsize != rows.itemsize:
            raise ValueError("rows, map and table do not belong together")
        if rows.order is not None:
            raise ValueError("rows are in an order already")
        if targets.n_rows != rows.n_stored or targets.n_outputs > w.shape[1]:
            raise ValueError("targets have the wrong shape")
        self.rows, self.margin, self.update, self.w, self.targets = rows, margin, update, w, targets
        self.c.w.width = <int32_t>w.shape[1]
        if _bad_shares(shares, rows.n_columns):
            raise ValueError("shares do not go from 0 to d + 1")
        n_threads = <int32_t>shares.shape[0] - 1
        self.team.n, self.team.arrived, self.team.round = n_threads, 0, 0
        self.shares = shares
        self.c.shares = &shares[0]
        self.whole[0], self.whole[1] = 0, rows.n_columns + 1
        self.c.parts, self.c.n_parts = self.whole, 1
        if parts is not None:
            if _bad_shares(parts, rows.n_columns):
                raise ValueError("parts do not go from 0 to d + 1")
            self.parts = parts
            self.c.parts, self.c.n_parts = &parts[0], <int32_t>parts.shape[0] - 1
        if block < 1 or scratch.shape[0] < training_scratch_bytes(
                rows, block, targets.n_outputs, w.shape[1], self.c.n_parts, n_threads):
            raise ValueError("scratch is too small")
        self.scratch = scratch
        self.c.team = &self.team
        self.c.rows = &rows.c
        self.c.margin = &margin.c
        self.c.update = &update.c
        self.c.w.values = self.table(w)
        self.c.targets = &targets.c
        self.c.block = block
        self.c.scratch = _aligned(scratch)

    cdef int check(self, int64_t first, int64_t last, int32_t me) except -1:
        if not 0 <= me < self.team.n:
            raise ValueError(f"there is no thread {me}")
        if self.rows.c.order == NULL or not 0 <= first <= last <= self.rows.n_rows:
            raise ValueError(f"rows {first} to {last} are not there")
        if self.scratch.shape[0] < training_scratch_bytes(
                self.rows, self.c.block, self.targets.n_outputs, self.c.w.width, self.c.n_parts, self.team.n):
            raise ValueError("scratch is too small")
        return 0

    @property
    def block(self):
        """Rows in a block."""
        return self.c.block

    cdef double *per_row(self, double[:, ::1] array) except? NULL:
        self.targets.check(array.shape[0], array.shape[1])
        return &array[0, 0]

    cdef double *per_output(self, double[::1] array) except? NULL:
        if array.shape[0] != self.targets.n_outputs:
            raise ValueError("an array of one entry for each output has the wrong shape")
        return &array[0]

    cdef void *table(self, array) except? NULL:
        if array.shape != self.w.shape or array.dtype.kind != "f" or array.itemsize != self.w.itemsize:
            raise ValueError("a table has the wrong shape or type")
        if not array.flags.writeable:
            raise ValueError("a table is read-only")
        return <void *>_address(array)


def training_scratch_bytes(Rows rows, int32_t block, Py_ssize_t n_outputs=1, Py_ssize_t width=1,
                           int32_t n_parts=1, int32_t n_threads=1):
    """How large the scratch of a training has to be. It has to be zero."""
    return tk_training_scratch_bytes(&rows.c, block, <int32_t>n_outputs, <int32_t>width, n_parts, n_threads) + 63


cdef class Dual:
    """The state of dual coordinate ascent: w_k = C sum_i alpha_ik y_ik phi(x_i) (OUT: all, and the training's w).

    alpha and margin are of shape [n_rows, K]; norm2, of shape [K], is |w_k|^2. `live` tells which outputs take steps.
    """

    cdef tk_dual c
    cdef readonly Training training
    cdef readonly object alpha, margin, norm2, live

    def __init__(self, Training training not None, double C, double[:, ::1] alpha, double[:, ::1] margin,
                 double[::1] norm2, const uint8_t[::1] live, int32_t sweeps):
        self.training, self.alpha, self.margin, self.norm2, self.live = training, alpha, margin, norm2, live
        self.c.alpha, self.c.margin = training.per_row(alpha), training.per_row(margin)
        self.c.norm2 = training.per_output(norm2)
        if live is not None and live.shape[0] != norm2.shape[0]:
            raise ValueError("live has the wrong shape")
        self.c.live = &live[0] if live is not None else NULL
        self.c.C, self.c.sweeps, self.c.changed = C, sweeps, 0

    @property
    def changed(self):
        """How many visits of a row have changed an alpha."""
        return self.c.changed

    def run(self, int64_t first, int64_t last, int32_t me=0):
        """One pass over the rows from first to last - 1 of the order.

        With several threads, each of them calls it at the same time with its own number.
        """
        self.training.check(first, last, me)
        with nogil:
            tk_dual_pass(&self.training.c, first, last, &self.c, me)


cdef class Pegasos:
    """The state of Pegasos; see tk.h (OUT: all, and the training's w).

    scale and norm2 are of shape [K]: w_k is scale_k times the training's. radius has one entry for each problem, or is
    None.
    """

    cdef tk_pegasos c
    cdef readonly Training training
    cdef readonly object alpha, scale, norm2, radius, average, shift

    def __init__(self, Training training not None, double lambda_, double share, double[::1] radius,
                 double[:, ::1] alpha, double[::1] scale, double[::1] norm2, int64_t t=0):
        self.training, self.alpha, self.scale, self.norm2, self.radius = training, alpha, scale, norm2, radius
        self.c.lambda_, self.c.share, self.c.t = lambda_, share, t
        if radius is not None and radius.shape[0] != (1 if training.targets.joint else training.targets.n_outputs):
            raise ValueError("radius has the wrong shape")
        self.c.radius = &radius[0] if radius is not None else NULL
        self.c.alpha = training.per_row(alpha)
        self.c.scale, self.c.norm2 = training.per_output(scale), training.per_output(norm2)
        self.begin_average(None, scale.copy())

    def begin_average(self, average, double[::1] shift):
        """Average the iterates from here on. `average` and `shift`, [K], are 0 now (OUT: both); None: do not."""
        self.c.average = NULL if average is None else self.training.table(average)
        self.c.shift, self.c.n_averaged = self.training.per_output(shift), 0
        self.average, self.shift = average, shift

    @property
    def n_averaged(self):
        """The averaged iterate is (average + shift * the training's w) / n_averaged."""
        return self.c.n_averaged

    def run(self, int64_t first, int64_t last, int32_t me=0):
        """One pass over the rows from first to last - 1 of the order; see `Dual.run`."""
        self.training.check(first, last, me)
        with nogil:
            tk_pegasos_pass(&self.training.c, first, last, &self.c, me)


cdef class Adagrad:
    """The state of AdaGrad (OUT: squares, and the training's w). Table k takes steps of rate[k] * eta; None: eta."""

    cdef tk_adaptive c
    cdef readonly Training training
    cdef readonly object squares, rate

    def __init__(self, Training training not None, squares, double eta, rate=None):
        self.training, self.squares, self.rate = training, squares, rate
        self.c.values, self.c.squares, self.c.eta = training.c.w.values, training.table(squares), eta
        self.c.width, self.c.rate = training.c.w.width, NULL
        if rate is not None:
            if rate.shape != (training.c.w.width,) or rate.dtype != squares.dtype:
                raise ValueError("rate has the wrong shape or type")
            self.c.rate = _address(rate)

    def run(self, int64_t first, int64_t last, int32_t me=0):
        """One pass over the rows from first to last - 1 of the order; see `Dual.run`."""
        self.training.check(first, last, me)
        with nogil:
            tk_adagrad_pass(&self.training.c, first, last, &self.c, me)

    def shrink(self, double factor, int64_t first, int64_t last):
        """The regulariser's step in the entries first to last - 1: w[a] /= 1 + factor / sqrt(squares[a])."""
        if not 0 <= first <= last <= self.squares.size:
            raise ValueError(f"entries {first} to {last} are not there")
        with nogil:
            tk_shrink(self.training.c.rows.real, &self.c, factor, first, last)


def shuffle(int32_t[::1] rows, const uint32_t[::1] draws):
    """Bring rows into a random order by as many random numbers of 32 bits (OUT: rows)."""
    if draws.shape[0] != rows.shape[0] or rows.shape[0] >= 2**31:
        raise ValueError("there are more or fewer draws than rows, or too many rows")
    if rows.shape[0]:
        with nogil:
            tk_shuffle(&rows[0], rows.shape[0], &draws[0])


def active_rows(const int32_t[::1] rows, const uint8_t[::1] active, int32_t[::1] kept):
    """Those of the rows (None: all) that are active, in their order (OUT: kept, as long as they). Returns how many.

    kept may be rows.
    """
    cdef Py_ssize_t n = active.shape[0] if rows is None else rows.shape[0]
    cdef Py_ssize_t outside = -1 if rows is None else _outside(&rows[0], n, active.shape[0])
    cdef int64_t n_kept
    if kept.shape[0] != n or n >= 2**31:
        raise ValueError("kept has another length than the rows, or there are too many")
    if outside >= 0:
        raise ValueError(f"there is no row {rows[outside]}")
    if n == 0:
        return 0
    with nogil:
        n_kept = tk_active_rows(&rows[0] if rows is not None else NULL, n, &active[0], &kept[0])
    return n_kept


def sort_rows(Rows rows, int64_t first, int64_t last, int32_t[::1] order, uint64_t[:, ::1] scratch):
    """Where the rows first to last - 1 are stored, those with the same last columns together (OUT: order)."""
    if rows.indptr is None or rows.n_stored >= 2**31 or not 0 <= first <= last <= rows.n_rows:
        raise ValueError(f"rows {first} to {last} are not there, or not stored as they have to be")
    if order.shape[0] != last - first or scratch.shape[0] < 2 or scratch.shape[1] < last - first:
        raise ValueError("order or scratch has not the room that it has to have")
    if first < last:
        with nogil:
            tk_sort_rows(&rows.c, first, last, &order[0], &scratch[0, 0])


STRUCTURE_PROBLEMS = {
    TK_INDPTR_START: "indptr[0] is {indptr}, not 0",
    TK_INDPTR_FALLS: "indptr falls from {indptr} at position {at} to {indptr_next}",
    TK_INDPTR_BEYOND: "indptr[{at}] is {indptr}, but only {n_stored} entries are stored",
    TK_INDEX_RANGE: "indices[{at}] is {index}, outside 0 to {highest}",
}


def check_structure(const index[::1] indptr, const index[::1] indices, int64_t n_minor, int64_t n_stored,
                    int64_t first=0, int64_t last=-1):
    """(problem, canonical): a sentence on what is wrong, or None; and whether indices rise strictly in each row.

    Of all rows, or of the rows first to last - 1.
    """
    cdef int64_t at = 0, n_major = indptr.shape[0] - 1
    cdef bint wide = sizeof(index) == 8
    cdef const void *stored = <const void *>&indptr[0]
    cdef tk_structure found
    last = n_major if last < 0 else last
    if not 0 <= first <= last <= n_major:
        raise ValueError(f"rows {first} to {last} are not there")
    n_stored = min(n_stored, indices.shape[0])
    if indices.shape[0]:
        stored = <const void *>&indices[0]
    with nogil:
        found = tk_check_structure(&indptr[0], stored, wide, first, last, n_minor, n_stored, &at)
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
