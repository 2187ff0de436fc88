/* Is an untrusted sparse structure safe to read? */
#include "tk.h"

static inline int64_t at_index(const void *array, const int wide, int64_t i)
{
    return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

/* Indices rise within each row if they fall, or repeat, between rows only: that is counted without regard to rows, in a
 * loop that compilers make vectors of. Of rising indices only the first and the last of a row can be out of range. */
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
    for (int64_t k = start + 1; k < end; k++)
        falls += at_index(indices, wide, k) <= at_index(indices, wide, k - 1);
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
