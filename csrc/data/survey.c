/* What there is to know of rows without a walk: whether they are numbers, how many of them are not 0, the squared
 * norms, and how much of their features is cut. */
#include <math.h>

#include "kernels.h"
#include "scratch.h"

#define real float
#define magnitude fabsf
#define NAME(x) x##_float
#include "survey.h"
#undef real
#undef magnitude
#undef NAME

#define real double
#define magnitude fabs
#define NAME(x) x##_double
#include "survey.h"
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

/* What is cut, of some t at once: loops over them are those that compilers make vectors of. */
enum { CUT_AT_ONCE = 64, CUT_TERMS = 200 };

/* For t <= degree + 1, by the terms of the sum: the first of them times a series in t / (degree + 1), of which factor
 * has the coefficients from the second on. */
static void cut_tail(const double *t, int32_t degree, const double *factor, double *out)
{
    double part[CUT_AT_ONCE], most = 0, power = 1;
    for (int i = 0; i < CUT_AT_ONCE; i++) {
        part[i] = t[i] / (degree + 1);
        most = part[i] > most ? part[i] : most;
    }
    int n = 0;
    while (n < CUT_TERMS - 1 && factor[n] * (power *= most) >= 1e-17)
        n++;
    for (int i = 0; i < CUT_AT_ONCE; i++)
        out[i] = factor[n];
    for (int k = n - 1; k >= -1; k--)
        for (int i = 0; i < CUT_AT_ONCE; i++)
            out[i] = out[i] * part[i] + (k < 0 ? 1 : factor[k]);
    for (int i = 0; i < CUT_AT_ONCE; i++)
        out[i] *= exp(-t[i]);
    for (int k = 1; k <= degree + 1; k++)
        for (int i = 0; i < CUT_AT_ONCE; i++)
            out[i] *= t[i] * (1.0 / k);
}

/* For t > degree + 1, by the terms that are not in the sum: of 1, they leave about a half or more. */
static double cut_beyond(double t, int32_t degree)
{
    double head = 1;
    t = t < 700 ? t : 700; /* at degrees up to 170 it is 1 from there on */
    for (int k = degree; k > 0; k--)
        head = head * t * (1.0 / k) + 1;
    return 1 - head * exp(-t);
}

void tk_cut_shares(double *t, int64_t n, int32_t degree)
{
    double factor[CUT_TERMS], last = 1;
    for (int k = 0; k < CUT_TERMS; k++)
        factor[k] = last *= (degree + 1.0) / (degree + 2.0 + k);
    for (int64_t first = 0; first < n; first += CUT_AT_ONCE) {
        const int m = n - first < CUT_AT_ONCE ? (int)(n - first) : CUT_AT_ONCE;
        double near[CUT_AT_ONCE] = {0}, shares[CUT_AT_ONCE];
        for (int i = 0; i < m; i++)
            near[i] = t[first + i] <= degree + 1 ? t[first + i] : 0;
        cut_tail(near, degree, factor, shares);
        for (int i = 0; i < m; i++)
            t[first + i] = t[first + i] <= degree + 1 ? shares[i] : cut_beyond(t[first + i], degree);
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
