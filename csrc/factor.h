/* s(x), the factor of a row.
 *
 *     decay:  s(x) = exp(-decay |x|^2)
 *     unit:   s(x) = e(t)^(-1/2),  e(t) = sum_k (c_k / k!) t^k,  t = |x|^2 when scaled:  |phi(x)| = 1
 *
 * Of a row that is far out, x^a and e(t) are beyond any real type, though their product is not. As each feature is a
 * product of r coordinates, the constant one among them, and s(x), it stays as it is when
 *
 *     coordinates are x / rho,  the constant coordinate is 1 / rho,  and the factor is s(x) rho^r.
 *
 * rho is a power of two, so that nothing is rounded by it, about e(t)^(1 / 2r): the factor is then about 1. It is 1 for
 * nearly all rows. */
#ifndef TK_FACTOR_H
#define TK_FACTOR_H

#include <math.h>

#include "kernels.h"

static const double FAR_FROM = 0x1p80; /* e(t) from which on a row is far out: less is well within a float */

typedef struct {
    double s;      /* s(x) rho^r; 0: the row has no features */
    double shrink; /* 1 / rho */
    double scale;  /* of its numbers as they are stored: the map's / rho */
} tk_factor;

/* e(t); any number, or none, where that is far out. */
static inline double tk_unit_norm(const tk_map *map, double t)
{
    double e = map->series[map->degree];
    for (int k = map->degree - 1; k >= 0; k--)
        e = e * t + map->series[k];
    return e;
}

/* A row that is far out, by log2 t. */
static inline tk_factor tk_far_factor(const tk_map *map, double log2_t)
{
    double largest = -HUGE_VAL, sum = 0;
    for (int k = 0; k <= map->degree; k++)
        if (map->series[k] > 0)
            largest = fmax(largest, log2(map->series[k]) + k * log2_t);
    for (int k = 0; k <= map->degree; k++)
        if (map->series[k] > 0)
            sum += exp2(log2(map->series[k]) + k * log2_t - largest);
    const double log2_e = largest + log2(sum), shift = rint(log2_e / (2 * map->degree));
    const tk_factor f = {exp2(shift * map->degree - log2_e / 2), ldexp(1, -(int)shift), ldexp(map->scale, -(int)shift)};
    return f;
}

#endif
