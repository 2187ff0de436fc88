/* x - shift, with columns renumbered: CSR rows from rows of any kind. */
#include <stddef.h>

#include "tk.h"

#define real float
#define NAME(x) x##_float
#include "shift.inc"
#undef real
#undef NAME

#define real double
#define NAME(x) x##_double
#include "shift.inc"
#undef real
#undef NAME

void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last)
{
    if (rows->real == TK_FLOAT32)
        shift_rows_float(rows, shift, first, last);
    else
        shift_rows_double(rows, shift, first, last);
}
