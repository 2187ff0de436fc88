/* Rows in random order. */
#include "tk.h"

/* Fisher and Yates. A draw of 32 bits stands for one of i + 1 places: of fewer than 2^31 rows, none is preferred by
 * more than one draw. */
void tk_shuffle(int32_t *rows, int64_t n, const uint32_t *draws)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(((uint64_t)draws[i] * (uint64_t)(i + 1)) >> 32);
        const int32_t row = rows[i];
        rows[i] = rows[j];
        rows[j] = row;
    }
}
