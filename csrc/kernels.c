/* The kernels of one instruction set: the walk, its loader and its verbs, for float and for double.
 *
 * Compiled once per instruction set, with TK_KERNELS the name of the table to define and the compiler's flags saying
 * which instructions may be used. */
#include <math.h>
#include <stddef.h>

#include "kernels.h"
#include "scratch.h"

/* A function for bare maps and one for others. They are not inlined: compilers do better with each kind of rows and
 * maps by itself than with one function for all. */
#define TK_BARE_AND_WEIGHED(name, call)                                                                                \
    static NOINLINE void NAME(name##_bare)(const call *c)                                                              \
    {                                                                                                                  \
        NAME(name)(c, 1);                                                                                              \
    }                                                                                                                  \
    static NOINLINE void NAME(name##_weighed)(const call *c)                                                           \
    {                                                                                                                  \
        NAME(name)(c, 0);                                                                                              \
    }

/* to[j] = s others[j] sum_k map->series[k] z[j]^k for j < n, or added to it. */
static void series(const tk_map *map, double s, const double *others, const double *z, int64_t n, int onto, double *to);

/* Below the tile that has this first row, and column, in the matrix gram[n][n]: what is right of it. */
static void copy_below(double *gram, int64_t n, int64_t first)
{
    const double *from = gram + first * n;
    for (int64_t j = first + GRAM_TILE; j < n; j++)
        for (int64_t i = 0; i < GRAM_TILE; i++)
            gram[j * n + first + i] = from[i * n + j];
}

#define real float
#define TK_IS_FLOAT 1
#define NAME(x) x##_float
#define square_root_float sqrtf
#include "simd.h"
#include "walk.inc"
#include "short.inc"
#include "load.inc"
#include "dot.inc"
#include "add.inc"
#include "adapt.inc"
#include "expand.inc"
#include "gram.inc"
#undef real
#undef TK_IS_FLOAT
#undef NAME

#define real double
#define TK_IS_FLOAT 0
#define NAME(x) x##_double
#define square_root_double sqrt
#include "simd.h"
#include "walk.inc"
#include "short.inc"
#include "load.inc"
#include "dot.inc"
#include "add.inc"
#include "adapt.inc"
#include "expand.inc"
#include "gram.inc"
#include "nearest.inc"

static void add_multiple(double *f, double by, const double *q, int64_t n)
{
    const V times = v_set1(by);
    int64_t j = 0;
    for (; j + VLEN <= n; j += VLEN)
        v_store(f + j, v_fma(times, v_load(q + j), v_load(f + j)));
    for (; j < n; j++)
        f[j] += by * q[j];
}

static FORCE_INLINE V series_vector(const tk_map *map, V s, V others, V z, V onto)
{
    V sum = v_set1(map->series[map->degree]);
    for (int k = map->degree - 1; k >= 0; k--)
        sum = v_fma(sum, z, v_set1(map->series[k]));
    return v_fma(v_mul(s, others), sum, onto);
}

static void series(const tk_map *map, double s, const double *others, const double *z, int64_t n, int onto, double *to)
{
    const V both = v_set1(s);
    int64_t j = 0;
    for (; j + VLEN <= n; j += VLEN)
        v_store(to + j, series_vector(map, both, v_load(others + j), v_load(z + j), onto ? v_load(to + j) : v_zero()));
    if (j < n) {
        const int rest = (int)(n - j);
        v_store_n(to + j,
                  series_vector(map, both, v_load_n(others + j, rest), v_load_n(z + j, rest),
                                onto ? v_load_n(to + j, rest) : v_zero()),
                  rest);
    }
}

const tk_kernels TK_KERNELS = {
    nearest,
    add_multiple,
    {
        {dot_float, add_float, expand_float, weigh_float, adapt_float, shrink_float, gram_float},
        {dot_double, add_double, expand_double, weigh_double, adapt_double, shrink_double, gram_double},
    }};
