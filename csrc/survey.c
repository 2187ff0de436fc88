/* What there is to know of rows before they are walked: whether they are numbers, how many of them are not 0, and the
 * squared norms. */
#include <math.h>

#include "scratch.h"

#define real float
#define magnitude fabsf
#define NAME(x) x##_float
#include "survey.inc"
#undef real
#undef magnitude
#undef NAME

#define real double
#define magnitude fabs
#define NAME(x) x##_double
#include "survey.inc"
#undef real
#undef magnitude
#undef NAME

void tk_count_nonzeros(const tk_rows *rows, int64_t first, int64_t last, int64_t *counts)
{
    for (int64_t i = first; i < last; i++) {
        const int64_t stored = tk_stored(rows, i), d = rows->n_columns;
        if (rows->indptr)
            counts[rows->indptr[stored + 1] - rows->indptr[stored]]++;
        else if (rows->real == TK_FLOAT32)
            counts[nonzeros_float((const float *)rows->data + stored * d, d)]++;
        else
            counts[nonzeros_double((const double *)rows->data + stored * d, d)]++;
    }
}

void tk_squares(const tk_rows *rows, int64_t first, int64_t last, double *squares)
{
    for (int64_t i = first; i < last; i++) {
        const int64_t stored = tk_stored(rows, i), d = rows->n_columns;
        const int64_t begin = rows->indptr ? rows->indptr[stored] : stored * d;
        const int64_t n = rows->indptr ? rows->indptr[stored + 1] - begin : d;
        squares[i - first] = rows->real == TK_FLOAT32 ? square_float((const float *)rows->data + begin, n)
                                                      : square_double((const double *)rows->data + begin, n);
    }
}

int tk_all_finite(tk_real real, const void *values, int64_t n, int nonzero)
{
    return real == TK_FLOAT32 ? all_finite_float(values, n, nonzero) : all_finite_double(values, n, nonzero);
}

void tk_count_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const void *by, int32_t *stored,
                      int32_t *equal)
{
    if (rows->real == TK_FLOAT32)
        count_columns_float(rows, step, by, stored, equal, n_rows);
    else
        count_columns_double(rows, step, by, stored, equal, n_rows);
}

void tk_take_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const int32_t *line, void *values)
{
    if (rows->real == TK_FLOAT32)
        take_columns_float(rows, step, line, values, n_rows);
    else
        take_columns_double(rows, step, line, values, n_rows);
}
