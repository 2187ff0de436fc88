/* x - shift, with columns renumbered: CSR rows from rows of any kind. */
#include <stddef.h>

#include "kernels.h"

#if defined(_MSC_VER)
#include <intrin.h>
static inline int lowest_bit(uint64_t bits)
{
    unsigned long at;
    _BitScanForward64(&at, bits);
    return (int)at;
}
#else
#define lowest_bit __builtin_ctzll
#endif

/* The scratch: a bit for each number of a column, a bit for each word of those, and a value for each number. Entries
 * come in the order of the columns as they were, are marked, and are collected in the order of their new numbers. */
enum { MOST_MARKED = 1 << 16, MOST_FEW = 128 };

static inline int64_t words(int64_t bits)
{
    return (bits + 63) / 64;
}

static inline void *values_of(const tk_shift *shift)
{
    const int64_t n = words(shift->n_columns);
    return (uint64_t *)shift->scratch + n + words(n);
}

static inline void mark(const tk_shift *shift, int32_t p)
{
    uint64_t *marks = shift->scratch, *above = marks + words(shift->n_columns);
    marks[p / 64] |= (uint64_t)1 << (p % 64);
    above[p / 4096] |= (uint64_t)1 << (p / 64 % 64);
}

int64_t tk_shift_scratch_bytes(int32_t n_columns)
{
    const int64_t n = words(n_columns);
    return n_columns > MOST_MARKED ? 0 : 8 * (n + words(n) + n_columns);
}

#define real float
#define NAME(x) x##_float
#include "shift.h"
#undef real
#undef NAME

#define real double
#define NAME(x) x##_double
#include "shift.h"
#undef real
#undef NAME

void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last)
{
    if (rows->real == TK_FLOAT32)
        shift_rows_float(rows, shift, first, last);
    else
        shift_rows_double(rows, shift, first, last);
}
