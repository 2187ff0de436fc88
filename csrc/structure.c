/* Is an untrusted sparse structure safe to read? */
#include "tk.h"

static inline int64_t at_index(const void *array, const int wide, int64_t i)
{
    return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

/* One pass, without a branch for each index; where the first bad one is, is looked for only when there is one. */
static inline tk_structure check(const void *indptr, const void *indices, const int wide, int64_t n_major,
                                 int64_t n_minor, int64_t n_stored, int64_t *at)
{
    int unsorted = 0;
    int64_t end = at_index(indptr, wide, 0);
    *at = 0;
    if (end != 0)
        return TK_INDPTR_START;
    for (int64_t i = 0; i < n_major; i++) {
        const int64_t begin = end;
        int64_t before = -1;
        int outside = 0;
        end = at_index(indptr, wide, i + 1);
        if (end < begin) {
            *at = i;
            return TK_INDPTR_FALLS;
        }
        if (end > n_stored) {
            *at = i + 1;
            return TK_INDPTR_BEYOND;
        }
        for (int64_t k = begin; k < end; k++) {
            const int64_t j = at_index(indices, wide, k);
            outside |= (uint64_t)j >= (uint64_t)n_minor;
            unsorted |= j <= before;
            before = j;
        }
        if (outside) {
            *at = begin;
            while ((uint64_t)at_index(indices, wide, *at) < (uint64_t)n_minor)
                ++*at;
            return TK_INDEX_RANGE;
        }
    }
    return unsorted ? TK_UNSORTED : TK_CANONICAL;
}

tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t n_major, int64_t n_minor,
                                int64_t n_stored, int64_t *at)
{
    return wide ? check(indptr, indices, 1, n_major, n_minor, n_stored, at)
                : check(indptr, indices, 0, n_major, n_minor, n_stored, at);
}
