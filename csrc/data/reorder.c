/* Tables over reordered columns: where their monomials are in the columns' own order. */
#include "tk.h"

void tk_own_slots(const tk_map *map, const int32_t *own, const int64_t *own_ranks, int64_t width, int32_t first,
                  int32_t last, int64_t *slots)
{
    const int r = map->degree;
    int32_t t[TK_MAX_DEGREE + 2] = {0}, suffix[TK_MAX_DEGREE];
    int64_t base[TK_MAX_DEGREE];
    t[r] = first;
    t[r + 1] = last - 1;
    for (int p = 2; p <= r;) {
        /* The coordinates at the places 2 to r, sorted by what they are in the table. */
        for (int n = 0; n < r - 1; n++) {
            const int32_t j = own[t[n + 2]];
            int i = n;
            for (; i > 0 && suffix[i - 1] > j; i--)
                suffix[i] = suffix[i - 1];
            suffix[i] = j;
        }
        /* base[i]: what they add to the slot when i of them are below that of place 1. */
        base[0] = 0;
        for (int n = 0; n < r - 1; n++)
            base[0] += own_ranks[(n + 2) * width + suffix[n]];
        for (int n = 0; n < r - 1; n++)
            base[n + 1] = base[n] - own_ranks[(n + 2) * width + suffix[n]] + own_ranks[(n + 1) * width + suffix[n]];
        /* Place 1, in stretches over which its coordinate rises and stays between the same two of the suffix. */
        for (int32_t j = 0; j <= t[2];) {
            int below = 0;
            while (below < r - 1 && suffix[below] < own[j])
                below++;
            const int64_t *ranks = own_ranks + (below + 1) * width;
            const int32_t limit = below < r - 1 ? suffix[below] : INT32_MAX;
            do
                *slots++ = base[below] + ranks[own[j++]];
            while (j <= t[2] && own[j - 1] < own[j] && own[j] <= limit);
        }
        for (p = 2; p <= r && t[p] == t[p + 1]; p++)
            t[p] = 0;
        if (p <= r)
            t[p]++;
    }
}
