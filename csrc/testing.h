/* What the tests of the core share: counting, arrays with guards, monomials enumerated one by one, maps, and rows. */
#ifndef TK_TESTING_H
#define TK_TESTING_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tk.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

enum {
    MAX_TEST_DEGREE = 5,
    SHOWN_FAILURES = 20,
    TOGETHER = 8, /* rows of a dense walk whose gradients tk_adapt sums up */
    MOST_ROWS = 80
};

/* ---- counting ---- */

static int64_t n_passed, n_failed;
static char where[240]; /* the case at hand, for messages */

static inline void check(int good, const char *what)
{
    if (good) {
        n_passed++;
    } else if (++n_failed <= SHOWN_FAILURES) {
        printf("FAILED: %s: %s\n", where, what);
    }
}

/* ---- memory with guards ---- */

/* Bytes on both sides of an array that nobody may write. The address sanitizer has guards of its own, which catch
 * reads as well, so there the array takes the whole allocation. */
enum { GUARD = UNDER_ASAN ? 0 : 256, ALIGNMENT = 64, GUARD_BYTE = 0xa5 };

typedef struct {
    unsigned char *block, *data;
    int64_t bytes;
} array;

static inline array new_zeros(int64_t bytes)
{
    array a;
    a.bytes = bytes;
#if UNDER_ASAN
    a.block = bytes % ALIGNMENT ? malloc((size_t)bytes) : aligned_alloc(ALIGNMENT, (size_t)bytes);
    a.data = a.block;
    if (a.block && bytes > 0)
        memset(a.data, 0, (size_t)bytes);
#else
    a.block = calloc((size_t)bytes + 2 * GUARD + ALIGNMENT, 1);
    a.data = (unsigned char *)(((uintptr_t)a.block + GUARD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
#endif
    if (!a.block && bytes > 0) {
        printf("out of memory\n");
        exit(2);
    }
#if !UNDER_ASAN
    memset(a.data - GUARD, GUARD_BYTE, GUARD);
    memset(a.data + bytes, GUARD_BYTE, GUARD);
#endif
    return a;
}

/* Begins as NaN when it is read as reals: a number that was never written does not go unseen. */
static inline array new_array(int64_t bytes)
{
    array a = new_zeros(bytes);
    if (bytes > 0)
        memset(a.data, 0xff, (size_t)bytes);
    return a;
}

static inline void free_array(array a, const char *what)
{
    int intact = 1;
    for (int i = 0; i < GUARD; i++)
        if (a.data[-1 - i] != GUARD_BYTE || a.data[a.bytes + i] != GUARD_BYTE)
            intact = 0;
    check(intact, what);
    free(a.block);
}

static inline int64_t real_bytes(tk_real real)
{
    return real == TK_FLOAT64 ? 8 : 4;
}

static inline double get(tk_real real, array a, int64_t i)
{
    return real == TK_FLOAT64 ? ((const double *)a.data)[i] : ((const float *)a.data)[i];
}

static inline void set(tk_real real, array a, int64_t i, double x)
{
    if (real == TK_FLOAT64)
        ((double *)a.data)[i] = x;
    else
        ((float *)a.data)[i] = (float)x;
}

static inline array new_reals(tk_real real, int64_t n)
{
    return new_array(n * real_bytes(real));
}

/* ---- random numbers: the same ones everywhere ---- */

static uint64_t random_state;

static inline double uniform(void) /* in [-1, 1), a multiple of 2^-12: the same as float and as double */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(random_state >> 51) / 4096 - 1;
}

static inline array filled_reals(tk_real real, int64_t n, double value)
{
    array a = new_reals(real, n);
    for (int64_t i = 0; i < n; i++)
        set(real, a, i, value);
    return a;
}

static inline array random_reals(tk_real real, int64_t n)
{
    array a = new_reals(real, n);
    for (int64_t i = 0; i < n; i++)
        set(real, a, i, uniform());
    return a;
}

/* ---- the monomials, one by one ---- */

static inline int64_t choose(int64_t n, int64_t k)
{
    int64_t c = 1;
    for (int64_t i = 1; i <= k; i++)
        c = c * (n - k + i) / i;
    return c;
}

typedef struct {
    int32_t j[MAX_TEST_DEGREE]; /* 0 <= j[0] <= ... <= j[r - 1] <= d; 0 is the constant coordinate */
} monomial;

/* Every monomial of degree at most r, each at its slot. */
static inline monomial *all_monomials(int r, int32_t d, int64_t n_slots)
{
    monomial *list = malloc((size_t)n_slots * sizeof *list);
    char *seen = calloc((size_t)n_slots, 1);
    monomial a = {{0}};
    int every_slot = 1;
    if (!list || !seen)
        exit(2);
    for (int64_t n = 0; n < n_slots; n++) {
        int64_t slot = 0;
        for (int p = 0; p < r; p++)
            slot += choose(a.j[p] + p, p + 1);
        if (slot >= n_slots || seen[slot]) {
            every_slot = 0;
        } else {
            seen[slot] = 1;
            list[slot] = a;
        }
        /* Counting upwards, the last place fastest; lower places that overflow start again at the one before. */
        int p = r - 1;
        while (p >= 0 && a.j[p] == d)
            p--;
        if (p < 0)
            break;
        const int32_t next = a.j[p] + 1;
        for (; p < r; p++)
            a.j[p] = next;
    }
    check(every_slot, "the slots are 0 to D - 1, each once");
    free(seen);
    return list;
}

/* ---- a feature map ---- */

/* Gaussian: s(x) decays, all coefficients c_k are 1. Series: no decay, each degree has a coefficient of its own, that
 * of degree 1 is 0. */
typedef enum { GAUSSIAN, SERIES, N_KERNELS } kernel;

/* m_a: 1; sqrt(c_|a| / a!); c_|a| / a!. */
typedef enum { BARE, FEATURES, UPDATE, N_METRICS } metric;

typedef struct {
    tk_map c;
    array ranks;
    double constant[MAX_TEST_DEGREE + 1], repeat[MAX_TEST_DEGREE + 1], series[MAX_TEST_DEGREE + 1];
} feature_map;

static inline void make_map(feature_map *map, int r, int32_t d, kernel k, metric m)
{
    map->ranks = new_array((int64_t)(r + 1) * (d + 2) * 8);
    for (int p = 0; p <= r; p++)
        for (int64_t j = 0; j < d + 2; j++)
            ((int64_t *)map->ranks.data)[p * (d + 2) + j] = p == 0 ? 1 : choose(j + p - 1, p);
    double factorial = 1;
    for (int p = 0; p <= r; p++) {
        const double c = k == GAUSSIAN ? 1 : p == 1 ? 0 : 0.5 + r - p; /* of degree p */
        factorial *= p > 0 ? p : 1;
        map->series[p] = c / factorial;
        map->constant[r - p] = m == BARE ? 1 : m == FEATURES ? sqrt(c) : c;
        map->repeat[p] = p == 0 || m == BARE ? 1 : m == FEATURES ? 1 / sqrt(p) : 1.0 / p;
    }
    map->c.degree = r;
    map->c.n_columns = d;
    map->c.scale = 0.75;
    map->c.decay = k == GAUSSIAN ? 0.5 : 0;
    map->c.unit = 0;
    map->c.ranks = (const int64_t *)map->ranks.data;
    map->c.constant = map->constant;
    map->c.repeat = map->repeat;
    map->c.series = map->series;
    map->c.bare = m == BARE;
}

/* m_a, by its definition in tk.h. */
static inline double metric_of(const feature_map *map, const monomial *a)
{
    const int r = map->c.degree;
    int zeros = 0, times = 0;
    double product = 1;
    for (int p = 0; p < r; p++)
        if (a->j[p] == 0) {
            zeros++;
        } else {
            times = p > 0 && a->j[p - 1] == a->j[p] ? times + 1 : 1;
            product *= map->repeat[times];
        }
    return product * map->constant[zeros];
}

/* ---- rows ---- */

enum { HUGE_ROW = 5 };
static const double huge_value = 7.4e19; /* its square is beyond a float; s(x) of such a row is 0 when it decays */

typedef struct {
    int64_t n;
    int32_t d;
    double *x;      /* [n][d] */
    int32_t *count; /* [n]: nonzeros */
} matrix;

static inline matrix make_matrix(int64_t n, int32_t d, int with_huge_row)
{
    matrix x = {n, d, calloc((size_t)(n * d) + 1, sizeof(double)), calloc((size_t)n, sizeof(int32_t))};
    if (!x.x || !x.count)
        exit(2);
    for (int64_t i = 0; i < n; i++)
        for (int32_t j = 0; j < d; j++) {
            /* A full row, an empty one, one entry in front, one at the end; then rows of all densities. */
            const int32_t wanted = d < 40 ? d : 40;
            const int present = i == 0   ? j < wanted || j >= d - 2
                                : i == 1 ? 0
                                : i == 2 ? j == 0
                                : i == 3 ? j == d - 1
                                         : uniform() < (double)(2 * i * wanted) / (double)(n * d) - 1;
            double value = i == HUGE_ROW && with_huge_row ? huge_value : uniform();
            if (value == 0)
                value = 0.25;
            if (present) {
                x.x[i * d + j] = value;
                x.count[i]++;
            }
        }
    return x;
}

/* phi(x_i), every slot; a row whose s(x) underflows in the real type has none. */
static inline void features_of(const matrix *x, int64_t i, const feature_map *map, tk_real real, const monomial *list,
                               int64_t n_slots, double *phi)
{
    const double *row = x->x + i * x->d;
    double norm2 = 0;
    for (int32_t j = 0; j < x->d; j++)
        norm2 += map->c.scale * row[j] * map->c.scale * row[j];
    const double s = exp(-map->c.decay * norm2);
    for (int64_t slot = 0; slot < n_slots; slot++) {
        double value = metric_of(map, &list[slot]);
        for (int p = 0; p < map->c.degree; p++)
            if (list[slot].j[p] > 0)
                value *= map->c.scale * row[list[slot].j[p] - 1];
        phi[slot] = s * value;
    }
    if (real == TK_FLOAT32 ? (float)s == 0 : s == 0)
        memset(phi, 0, (size_t)n_slots * sizeof *phi);
}

/* AdaGrad's steps for n gradients t[i] phi(row[i]) to one table, `together` at a time. phi is [][n_slots]. */
static inline void plain_adapt(const double *phi, int64_t n_slots, const int64_t *row, const double *t, int64_t n,
                               int together, double eta, double *values, double *squares)
{
    for (int64_t first = 0; first < n; first += together)
        for (int64_t a = 0; a < n_slots; a++) {
            double g = 0;
            for (int64_t i = first; i < n && i < first + together; i++)
                g += t[i] * phi[row[i] * n_slots + a];
            squares[a] += g * g;
            values[a] += eta * g / sqrt(squares[a]);
        }
}

typedef struct {
    tk_rows c;
    array data, indices, indptr;
} stored_rows;

static inline stored_rows store(const matrix *x, tk_real real, int as_csr, int walk_dense)
{
    stored_rows s;
    int64_t n_stored = 0;
    int32_t longest = 0;
    for (int64_t i = 0; i < x->n; i++) {
        n_stored += x->count[i];
        longest = x->count[i] > longest ? x->count[i] : longest;
    }
    s.data = new_reals(real, as_csr ? n_stored : x->n * x->d);
    s.indices = new_array(as_csr ? n_stored * 4 : 0);
    s.indptr = new_array(as_csr ? (x->n + 1) * 8 : 0);
    int64_t k = 0;
    for (int64_t i = 0; i < x->n; i++) {
        if (as_csr)
            ((int64_t *)s.indptr.data)[i] = k;
        for (int32_t j = 0; j < x->d; j++)
            if (!as_csr) {
                set(real, s.data, k++, x->x[i * x->d + j]);
            } else if (x->x[i * x->d + j] != 0) {
                ((int32_t *)s.indices.data)[k] = j;
                set(real, s.data, k++, x->x[i * x->d + j]);
            }
    }
    if (as_csr)
        ((int64_t *)s.indptr.data)[x->n] = k;
    s.c.real = real;
    s.c.data = s.data.data;
    s.c.indices = as_csr ? (const int32_t *)s.indices.data : NULL;
    s.c.indptr = as_csr ? (const int64_t *)s.indptr.data : NULL;
    s.c.order = NULL;
    s.c.place = NULL;
    s.c.n_front = 0;
    s.c.n_columns = x->d;
    s.c.max_nonzeros = longest;
    s.c.walk_dense = walk_dense;
    s.c.base = NULL;
    s.c.beyond = NULL;
    s.c.factor = NULL;
    s.c.next = NULL;
    return s;
}

static inline void free_rows(stored_rows s)
{
    free_array(s.data, "rows' data is left alone");
    free_array(s.indices, "rows' indices are left alone");
    free_array(s.indptr, "rows' indptr is left alone");
}

/* ---- numbers that ought to be equal ---- */

/* size is what the sum would be if nothing cancelled, which is what rounding errors are proportional to. */
static inline int close_to(tk_real real, double got, double expected, double size)
{
    const double epsilon = real == TK_FLOAT64 ? 2.3e-16 : 1.2e-7, smallest = real == TK_FLOAT64 ? 1e-300 : 1e-36;
    return fabs(got - expected) <= 64 * epsilon * size + smallest; /* false when got is NaN */
}

#endif
