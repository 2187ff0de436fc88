"""The reader of svmlight text in C: bytes in, rows out, the GIL released. `stream` has what is public."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "Python.h":
    int PyByteArray_Resize(object memory, Py_ssize_t size) except -1
    char *PyByteArray_AsString(object memory) except NULL
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1


cdef extern from "svmlight.h" nogil:
    const double TK_FLOAT_END

    ctypedef enum tk_text:
        TK_TEXT_GOOD
        TK_TEXT_LABEL
        TK_TEXT_QID
        TK_TEXT_PAIR
        TK_TEXT_NEGATIVE
        TK_TEXT_ZERO
        TK_TEXT_BEYOND
        TK_TEXT_FALLS
        TK_TEXT_VALUE
        TK_TEXT_NOT_FINITE
        TK_TEXT_TOO_LARGE

    ctypedef struct tk_hard_number:
        int64_t begin
        int64_t place

    ctypedef struct tk_svmlight:
        int32_t wide
        int32_t first_index
        int32_t n_columns
        int32_t max_index
        int64_t row_cost
        int64_t entry_cost
        int64_t enough
        double *labels
        int64_t *label_ptr
        int64_t *indptr
        int32_t *indices
        void *values
        tk_hard_number *hard
        int64_t n_rows
        int64_t n_labels
        int64_t n_entries
        int64_t n_hard

    tk_text tk_read_svmlight(tk_svmlight *rows, const char *text, int64_t end, int64_t *at)
    int64_t tk_count_bytes(const char *text, int64_t n, char which)


TEXT_PROBLEMS = {
    TK_TEXT_GOOD: None,
    TK_TEXT_LABEL: "the label {seen} is not a number",
    TK_TEXT_QID: "{seen} is not qid: and an integer",
    TK_TEXT_PAIR: "{seen} is not index:value",
    TK_TEXT_NEGATIVE: "the index of {seen} is negative",
    TK_TEXT_ZERO: "the index of {seen} is 0, but indices begin at 1 here",
    TK_TEXT_BEYOND: "the index of {seen} is too high for {n_columns} columns",
    TK_TEXT_FALLS: "the index of {seen} is not above the one before",
    TK_TEXT_VALUE: "the value {seen} is not a number",
    TK_TEXT_NOT_FINITE: "{seen} is not finite",
    TK_TEXT_TOO_LARGE: "{seen} is too large",
}


cdef enum:
    VALUES, INDICES, INDPTR, LABELS, LABEL_PTR, HARD, N_ARRAYS


cdef class Svmlight:
    """Rows read from svmlight text, in memory that grows with them; see svmlight.h."""

    cdef tk_svmlight c
    cdef bint multilabel
    cdef Py_ssize_t itemsize
    cdef list memory, before  # a bytearray for each array, and how many bytes it had when rows were last taken
    cdef const unsigned char[::1] text
    cdef int64_t at, n_lines, n_pairs, n_commas
    cdef double ahead

    def __init__(self, Py_ssize_t itemsize, int32_t first_index, int32_t n_columns, bint multilabel, int64_t row_cost,
                 int64_t entry_cost, int64_t enough):
        self.itemsize, self.multilabel = itemsize, multilabel
        self.c.wide = itemsize == 8
        self.c.first_index, self.c.n_columns, self.c.max_index = first_index, n_columns, -1
        self.c.row_cost, self.c.entry_cost, self.c.enough = row_cost, entry_cost, enough
        self.memory, self.before = [bytearray() for _ in range(N_ARRAYS)], [0] * N_ARRAYS
        self.clear()
        self.feed(b"\n")

    def clear(self):
        """Forget the rows, but not which indices there were."""
        self.c.n_rows = self.c.n_labels = self.c.n_entries = 0

    @property
    def n_rows(self):
        """How many rows there are."""
        return self.c.n_rows

    @property
    def first_index(self):
        """0 or 1; -1: 1 as far as is known."""
        return self.c.first_index

    @property
    def max_index(self):
        """The highest index in all that was read; -1 when there was none."""
        return self.c.max_index

    @property
    def full(self):
        """Whether the rows are enough, so that no more will be read."""
        return self.c.n_rows * self.c.row_cost + self.c.n_entries * self.c.entry_cost >= self.c.enough

    def feed(self, const unsigned char[::1] text not None, double ahead=1):
        """Give the text to read next, whole lines; returns their number.

        All text together is expected to be `ahead` times as long as what was given so far.
        """
        cdef const char *begin
        cdef int64_t n = text.shape[0]
        if n == 0 or text[n - 1] != c"\n":
            raise ValueError("the text is not of whole lines")
        begin = <const char *>&text[0]
        self.text, self.at, self.ahead = text, 0, ahead
        with nogil:
            self.n_lines = tk_count_bytes(begin, n, c"\n")
            self.n_pairs = tk_count_bytes(begin, n, c":")
            self.n_commas = tk_count_bytes(begin, n, c",") if self.multilabel else 0
        return self.n_lines

    def read(self):
        """Read on, until it is enough.

        Returns (None, where the next line begins), or (what is wrong, where): the rows are then of no use.
        """
        cdef const char *begin = <const char *>&self.text[0]
        cdef tk_text found
        cdef int64_t i
        self.reserve()
        with nogil:
            found = tk_read_svmlight(&self.c, begin, self.text.shape[0], &self.at)
        for i in range(self.c.n_hard):  # they all stand before what is wrong
            if not self.put(self.c.hard[i].place, begin + self.c.hard[i].begin):
                found, self.at = TK_TEXT_TOO_LARGE, self.c.hard[i].begin
                break
        if found == TK_TEXT_BEYOND:
            return TEXT_PROBLEMS[found].replace("{n_columns}", str(self.c.n_columns)), self.at
        return TEXT_PROBLEMS[found], self.at

    cdef int reserve(self) except -1:
        """Make room for what the text may have."""
        cdef int64_t n_labels = self.n_lines + self.n_commas, n_rows = self.c.n_rows + 1 + self.n_lines
        cdef int64_t n_entries = self.c.n_entries + self.n_pairs
        self.c.values = self.room(VALUES, n_entries * self.itemsize)
        self.c.indices = <int32_t *>self.room(INDICES, n_entries * 4)
        self.c.indptr = <int64_t *>self.room(INDPTR, n_rows * 8)
        self.c.labels = <double *>self.room(LABELS, (self.c.n_labels + n_labels) * 8)
        self.c.hard = <tk_hard_number *>self.room(HARD, (n_labels + self.n_pairs) * sizeof(tk_hard_number))
        self.c.indptr[0], self.c.n_hard = 0, 0
        self.c.label_ptr = NULL
        if self.multilabel:
            self.c.label_ptr = <int64_t *>self.room(LABEL_PTR, n_rows * 8)
            self.c.label_ptr[0] = 0
        return 0

    cdef void *room(self, int which, Py_ssize_t size) except NULL:
        """Where an array begins that has this size at least.

        More than that is asked for when more is expected, for it takes no memory until it is written to.
        """
        memory = self.memory[which]
        if len(memory) < size:
            ample = 2 * len(memory) if which == HARD else max(
                2 * len(memory), self.before[which] // 16 * 17, <Py_ssize_t>(size * self.ahead))
            try:
                PyByteArray_Resize(memory, max(size, ample))
            except MemoryError:
                PyByteArray_Resize(memory, size)
        return PyByteArray_AsString(memory)

    cdef bint put(self, int64_t place, const char *text) except? False:
        """Convert a hard number as float() does; returns whether it is finite."""
        cdef char *end
        cdef double x = PyOS_string_to_double(text, &end, NULL)
        if x - x != 0:
            return False
        if place < 0:
            self.c.labels[-1 - place] = x
        elif self.c.wide:
            (<double *>self.c.values)[place] = x
        elif -TK_FLOAT_END < x < TK_FLOAT_END:
            (<float *>self.c.values)[place] = <float>x
        else:
            return False
        return True

    def take(self):
        """(values, indices, indptr, labels, label_ptr) as bytearrays; then there are no rows."""
        if self.c.n_rows == 0:
            self.reserve()  # the first entry of indptr is there even so
        taken = self.memory[:HARD]
        PyByteArray_Resize(taken[VALUES], self.c.n_entries * self.itemsize)
        PyByteArray_Resize(taken[INDICES], self.c.n_entries * 4)
        PyByteArray_Resize(taken[INDPTR], (self.c.n_rows + 1) * 8)
        PyByteArray_Resize(taken[LABELS], self.c.n_labels * 8)
        PyByteArray_Resize(taken[LABEL_PTR], (self.c.n_rows + 1) * 8 if self.multilabel else 0)
        self.memory[:HARD] = [bytearray() for _ in taken]
        self.before[:HARD] = map(len, taken)
        self.clear()
        return taken
