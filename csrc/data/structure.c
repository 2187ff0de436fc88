/* Is an untrusted sparse structure safe to read? */
#include "tk.h"

static inline int64_t at_index(const void *array, const int wide, int64_t i)
{
    return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

enum { COUNTED = 1 << 20 };

/* How many of the indices from <= k < to are not larger than the one before. Narrow ones are compared as they are, and
 * counted some at a time in numbers as wide: compilers make vectors of that, of twice as many. */
static inline int64_t count_falls(const void *indices, const int wide, int64_t from, int64_t to)
{
    const int64_t *wide_ones = indices;
    const int32_t *narrow_ones = indices;
    int64_t falls = 0;
    for (int64_t k = from; wide && k < to; k++)
        falls += wide_ones[k] <= wide_ones[k - 1];
    for (int64_t k = from, end; !wide && k < to; k = end) {
        int32_t some = 0;
        end = to - k < COUNTED ? to : k + COUNTED;
        for (int64_t i = k; i < end; i++)
            some += narrow_ones[i] <= narrow_ones[i - 1];
        falls += some;
    }
    return falls;
}

/* Indices rise within each row if they fall, or repeat, between rows only: that is counted without regard to rows.
 * Of rising indices only the first and the last of a row can be out of range. */
static inline tk_structure check(const void *indptr, const void *indices, const int wide, int64_t first, int64_t last,
                                 int64_t n_minor, int64_t n_stored, int64_t *at)
{
    const int64_t start = at_index(indptr, wide, first);
    int64_t end = start, falls = 0;
    int outside = 0;
    *at = first;
    if (first == 0 && start != 0)
        return TK_INDPTR_START;
    if (start > n_stored)
        return TK_INDPTR_BEYOND;
    if (start < 0) { /* the rows before have come down to it */
        *at = first - 1;
        return TK_INDPTR_FALLS;
    }
    for (int64_t i = first; i < last; i++) {
        const int64_t begin = end;
        end = at_index(indptr, wide, i + 1);
        if (end < begin) {
            *at = i;
            return TK_INDPTR_FALLS;
        }
        if (end > n_stored) {
            *at = i + 1;
            return TK_INDPTR_BEYOND;
        }
        if (begin < end) {
            const int64_t j = at_index(indices, wide, begin);
            falls -= begin > start && j <= at_index(indices, wide, begin - 1);
            outside |= j < 0 || at_index(indices, wide, end - 1) >= n_minor;
        }
    }
    falls += count_falls(indices, wide, start + 1, end);
    if (falls == 0 && !outside)
        return TK_CANONICAL;
    for (*at = start; *at < end; ++*at)
        if ((uint64_t)at_index(indices, wide, *at) >= (uint64_t)n_minor)
            return TK_INDEX_RANGE;
    return TK_UNSORTED;
}

tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t first, int64_t last,
                                int64_t n_minor, int64_t n_stored, int64_t *at)
{
    return wide ? check(indptr, indices, 1, first, last, n_minor, n_stored, at)
                : check(indptr, indices, 0, first, last, n_minor, n_stored, at);
}
