/* Rows shifted and renumbered. Included by shift.c once per real type. */

/* Shell's sort: for so many columns that marks for all of them would take too much memory. */
static void NAME(sort_row)(int32_t *indices, real *data, int64_t n)
{
    static const int64_t steps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    int s = 0;
    while (steps[s] > 1 && steps[s] * 3 > n)
        s++;
    for (; s < (int)(sizeof steps / sizeof steps[0]); s++)
        for (int64_t i = steps[s]; i < n; i++) {
            const int32_t index = indices[i];
            const real value = data[i];
            int64_t j = i;
            for (; j >= steps[s] && indices[j - steps[s]] > index; j -= steps[s]) {
                indices[j] = indices[j - steps[s]];
                data[j] = data[j - steps[s]];
            }
            indices[j] = index;
            data[j] = value;
        }
}

/* One entry of a shifted row: written, or only counted when there is no place for it. With scratch it is written at
 * its new number, and marked. */
static inline void NAME(put)(const tk_shift *shift, const int32_t *place, int64_t i, int32_t column, real value,
                             int64_t *at)
{
    const int32_t p = place[column];
    if (value == 0)
        return;
    if (p < 0) {
        if (shift->beyond)
            shift->beyond[i] += (double)value * (double)value;
        return;
    }
    if (shift->scratch) {
        mark(shift, p);
        ((real *)values_of(shift))[p] = value;
    } else if (shift->indices) {
        shift->indices[*at] = p;
        ((real *)shift->data)[*at] = value;
    }
    (*at)++;
}

/* The entries that were marked, in the order of their numbers, written from `at` on. */
static void NAME(collect)(const tk_shift *shift, int64_t at)
{
    uint64_t *marks = shift->scratch, *above = marks + words(shift->n_columns);
    const real *value = (const real *)values_of(shift);
    for (int64_t a = 0; a < words(words(shift->n_columns)); a++) {
        for (; above[a]; above[a] &= above[a] - 1) {
            const int64_t word = a * 64 + lowest_bit(above[a]);
            for (; marks[word]; marks[word] &= marks[word] - 1, at++) {
                const int64_t p = word * 64 + lowest_bit(marks[word]);
                shift->indices[at] = (int32_t)p;
                ((real *)shift->data)[at] = value[p];
            }
        }
    }
}

/* How many columns the rows of a cell are shifted in, by a number that is not 0 in their type. */
static int64_t NAME(count_moved)(const tk_shift *shift, int64_t cell)
{
    const real *by = (const real *)shift->by + cell * shift->n_columns;
    int64_t n = 0;
    for (int64_t k = shift->moved_ptr[cell]; k < shift->moved_ptr[cell + 1]; k++)
        n += by[shift->moved[k]] != 0;
    return n;
}

/* How many entries a row has of which no column is left out. */
static int64_t NAME(count_entries)(const tk_rows *rows, const real *by, int64_t n_moved, int64_t stored)
{
    const real *from = rows->data;
    int64_t n = 0;
    if (!rows->indptr) {
        from += stored * rows->n_columns;
        for (int32_t j = 0; j < rows->n_columns; j++)
            n += from[j] != by[j];
        return n;
    }
    for (int64_t k = rows->indptr[stored]; k < rows->indptr[stored + 1]; k++) {
        const real b = by[rows->indices[k]];
        n += (from[k] != b) - (b != 0);
    }
    return n + n_moved; /* moved columns that are not stored have an entry, too */
}

/* The entries of the row that is stored at `stored`, which is row i of the new ones, from `begin` on. Returns where
 * they end. */
static int64_t NAME(shift_row)(const tk_rows *rows, const tk_shift *shift, int64_t i, int64_t stored, int64_t begin)
{
    const int64_t cell = shift->cell ? shift->cell[stored] : 0, d = shift->n_columns;
    const real *from = rows->data, *by = (const real *)shift->by + cell * d;
    const int32_t *place = shift->place + cell * d, *moved = shift->moved + shift->moved_ptr[cell];
    const int64_t n_moved = shift->moved_ptr[cell + 1] - shift->moved_ptr[cell];
    int64_t at = begin, next = 0; /* of the moved columns: those that are not stored are 0 before the shift */
    if (shift->beyond)
        shift->beyond[i] = 0;
    if (!rows->indptr) {
        from += stored * rows->n_columns;
        for (int32_t j = 0; j < rows->n_columns; j++)
            NAME(put)(shift, place, i, j, from[j] - by[j], &at);
    } else {
        for (int64_t k = rows->indptr[stored]; k < rows->indptr[stored + 1]; k++) {
            const int32_t column = rows->indices[k];
            for (; next < n_moved && moved[next] < column; next++)
                NAME(put)(shift, place, i, moved[next], -by[moved[next]], &at);
            next += next < n_moved && moved[next] == column;
            NAME(put)(shift, place, i, column, from[k] - by[column], &at);
        }
        for (; next < n_moved; next++)
            NAME(put)(shift, place, i, moved[next], -by[moved[next]], &at);
    }
    if (shift->scratch)
        NAME(collect)(shift, begin);
    else if (shift->indices)
        NAME(sort_row)(shift->indices + begin, (real *)shift->data + begin, at - begin);
    return at;
}

/* CSR rows of at most MOST_FEW columns, written: the marks are one or two words then, which stay in registers. Moved
 * columns that are not stored in a row, of which there are few, come last. No branch on values: none could be foreseen.
 */
static FORCE_INLINE void NAME(write_few)(const tk_rows *rows, const tk_shift *shift, const int n_words, int64_t first,
                                         int64_t last)
{
    const int64_t d = shift->n_columns;
    const real *by = NULL;
    const int32_t *place = NULL;
    real value[MOST_FEW], unstored[MOST_FEW];
    uint64_t moved[2] = {0, 0};
    int64_t at = shift->indptr[first];
    for (int64_t i = first; i < last; i++) {
        const int64_t stored = rows->order ? rows->order[i] : i, cell = shift->cell ? shift->cell[stored] : 0;
        if (place != shift->place + cell * d) {
            by = (const real *)shift->by + cell * d;
            place = shift->place + cell * d;
            moved[0] = moved[1] = 0;
            for (int64_t k = shift->moved_ptr[cell]; k < shift->moved_ptr[cell + 1]; k++) {
                const int32_t column = shift->moved[k], p = place[column];
                if (p < 0 || by[column] == 0)
                    continue;
                unstored[p] = -by[column];
                moved[p / 64] |= (uint64_t)1 << (p % 64);
            }
        }
        uint64_t there[2] = {0, 0}, filled[2] = {0, 0};
        for (int64_t k = rows->indptr[stored]; k < rows->indptr[stored + 1]; k++) {
            const int32_t column = rows->indices[k], p = place[column];
            const real x = ((const real *)rows->data)[k] - by[column];
            if (p < 0)
                continue;
            const uint64_t bit = (uint64_t)1 << (p & 63), low = n_words == 1 || p < 64 ? bit : 0, high = bit - low;
            const uint64_t if_filled = 0 - (uint64_t)(x != 0);
            value[p] = x;
            there[0] |= low;
            there[1] |= high;
            filled[0] |= low & if_filled;
            filled[1] |= high & if_filled;
        }
        for (int32_t half = 0; half < n_words; half++) {
            uint64_t more = moved[half] & ~there[half], all = filled[half] | more;
            for (; more; more &= more - 1) {
                const int p = 64 * half + lowest_bit(more);
                value[p] = unstored[p];
            }
            for (; all; all &= all - 1) {
                const int p = 64 * half + lowest_bit(all);
                shift->indices[at] = (int32_t)p;
                ((real *)shift->data)[at++] = value[p];
            }
        }
        if (shift->append)
            shift->indptr[i + 1] = at;
    }
}

static void NAME(shift_rows)(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last)
{
    int64_t last_cell = -1, n_moved = 0;
    if (shift->indices && rows->indptr && shift->n_columns <= MOST_FEW) {
        if (shift->n_columns <= 64)
            NAME(write_few)(rows, shift, 1, first, last);
        else
            NAME(write_few)(rows, shift, 2, first, last);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        const int64_t stored = rows->order ? rows->order[i] : i, cell = shift->cell ? shift->cell[stored] : 0;
        if (shift->indices) {
            const int64_t end = NAME(shift_row)(rows, shift, i, stored, shift->indptr[i]);
            if (shift->append)
                shift->indptr[i + 1] = end;
            continue;
        }
        if (shift->beyond) {
            shift->indptr[i + 1] = NAME(shift_row)(rows, shift, i, stored, 0);
            continue;
        }
        if (cell != last_cell)
            n_moved = NAME(count_moved)(shift, cell);
        last_cell = cell;
        shift->indptr[i + 1] =
            NAME(count_entries)(rows, (const real *)shift->by + cell * shift->n_columns, n_moved, stored);
    }
}
