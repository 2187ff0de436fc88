/* Is an untrusted sparse structure safe to read? */
#include "tk.h"

static int64_t at_index(const void *array, int wide, int64_t i)
{
    return wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t n_major, int64_t n_minor,
                                int64_t n_stored, int64_t *at)
{
    tk_structure found = TK_CANONICAL;
    int64_t end = at_index(indptr, wide, 0);
    *at = 0;
    if (end != 0)
        return TK_INDPTR_START;
    for (int64_t i = 0; i < n_major; i++) {
        const int64_t begin = end;
        int64_t before = -1;
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
            if (j < 0 || j >= n_minor) {
                *at = k;
                return TK_INDEX_RANGE;
            }
            if (j <= before)
                found = TK_UNSORTED;
            before = j;
        }
    }
    return found;
}
