/* The kernels of one instruction set: the walk, its loader and its verbs, for float and for double.
 *
 * Compiled once per instruction set, with TK_KERNELS the name of the table to define and the compiler's flags saying
 * which instructions may be used. */
#include <math.h>
#include <stddef.h>

#include "kernels.h"
#include "scratch.h"
#include "train/losses.h"
#include "walk/factor.h"

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
static void series_float(const tk_map *map, double s, const double *others, const float *z, int64_t n, int onto,
                         double *to);
static void series_double(const tk_map *map, double s, const double *others, const double *z, int64_t n, int onto,
                          double *to);

/* Compilers like to compute the address of each load by itself, from the parts that an address was made of. */
#if defined(__GNUC__)
#define KEEP_ADDRESS(p) __asm__("" : "+r"(p))
#else
#define KEEP_ADDRESS(p) (void)0
#endif

/* Below the tile that has this first row, and column, in the matrix gram[n][n]: what is right of it. */
static void copy_below(double *gram, int64_t n, int64_t first)
{
    const double *from = gram + first * n;
    for (int64_t j = first + GRAM_TILE; j < n; j++) UNROLL
        for (int64_t i = 0; i < GRAM_TILE; i++)
            gram[j * n + first + i] = from[i * n + j];
}

#define real float
#define TK_IS_FLOAT 1
#define NAME(x) x##_float
#define square_root_float sqrtf
#include "vec/vec.h"
#include "walk/walk.h"
#include "walk/tables.h"
#include "walk/row_factor.h"
#include "walk/load.h"
#include "verbs/dot.h"
#include "verbs/add.h"
#include "verbs/adapt.h"
#include "verbs/expand.h"
#include "verbs/gram.h"
#undef real
#undef TK_IS_FLOAT
#undef NAME

#define real double
#define TK_IS_FLOAT 0
#define NAME(x) x##_double
#define square_root_double sqrt
#include "vec/vec.h"
#include "walk/walk.h"
#include "walk/tables.h"
#include "walk/row_factor.h"
#include "walk/load.h"
#include "verbs/dot.h"
#include "verbs/add.h"
#include "verbs/adapt.h"
#include "verbs/expand.h"
#include "verbs/gram.h"
#include "data/nearest.h"
#include "train/sweep.inc"

/* Some vectors at once, so that none waits for another. */
static FORCE_INLINE void series_vectors(const tk_map *map, double s, const double *others, const void *z,
                                        const int is_float, int onto, double *to, const int n)
{
    V x[4], sum[4];
    UNROLL for (int g = 0; g < n; g++) {
        x[g] = is_float ? v_widen((const float *)z + g * VLEN) : v_load((const double *)z + g * VLEN);
        sum[g] = v_set1(map->series[map->degree]);
    }
    for (int k = map->degree - 1; k >= 0; k--) {
        const V c = v_set1(map->series[k]);
        UNROLL for (int g = 0; g < n; g++)
            sum[g] = v_fma(sum[g], x[g], c);
    }
    UNROLL for (int g = 0; g < n; g++) {
        const V both = v_mul(v_set1(s), v_load(others + g * VLEN));
        v_store(to + g * VLEN, v_fma(both, sum[g], onto ? v_load(to + g * VLEN) : v_zero()));
    }
}

/* What is left at the end is computed in room of its own. */
static FORCE_INLINE void series(const tk_map *map, double s, const double *others, const void *z, const int is_float,
                                int64_t n, int onto, double *to)
{
    const char *at = z;
    const int64_t size = is_float ? 4 : 8;
    int64_t j = 0;
    for (; j + 4 * VLEN <= n; j += 4 * VLEN)
        series_vectors(map, s, others + j, at + j * size, is_float, onto, to + j, 4);
    if (j + 2 * VLEN <= n) {
        series_vectors(map, s, others + j, at + j * size, is_float, onto, to + j, 2);
        j += 2 * VLEN;
    }
    if (j + VLEN <= n) {
        series_vectors(map, s, others + j, at + j * size, is_float, onto, to + j, 1);
        j += VLEN;
    }
    if (j < n) {
        double rest[3][VLEN] = {{0}};
        for (int64_t k = j; k < n; k++) {
            rest[0][k - j] = others[k];
            rest[1][k - j] = is_float ? (double)((const float *)z)[k] : ((const double *)z)[k];
            rest[2][k - j] = onto ? to[k] : 0;
        }
        series_vectors(map, s, rest[0], rest[1], 0, 1, rest[2], 1);
        for (int64_t k = j; k < n; k++)
            to[k] = rest[2][k - j];
    }
}

static void series_float(const tk_map *map, double s, const double *others, const float *z, int64_t n, int onto,
                         double *to)
{
    series(map, s, others, z, 1, n, onto, to);
}

static void series_double(const tk_map *map, double s, const double *others, const double *z, int64_t n, int onto,
                          double *to)
{
    series(map, s, others, z, 0, n, onto, to);
}

const tk_kernels TK_KERNELS = {
    nearest,
    sweep,
    {
        {dot_float, add_float, expand_float, weigh_float, adapt_float, shrink_float, gram_float, factors_float},
        {dot_double, add_double, expand_double, weigh_double, adapt_double, shrink_double, gram_double, factors_double},
    }};
