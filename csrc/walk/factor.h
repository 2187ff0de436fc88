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

/* A row that is far out: t = part * 4^exponent. */
static inline tk_factor tk_far_factor(const tk_map *map, double part, int exponent)
{
    const double log2_t = log2(part) + 2.0 * exponent;
    double log2_e = -HUGE_VAL; /* about */
    for (int k = 0; k <= map->degree; k++)
        if (map->series[k] > 0)
            log2_e = fmax(log2_e, log2(map->series[k]) + k * log2_t);
    const int shift = (int)rint(log2_e / (2 * map->degree));
    const double u = ldexp(part, 2 * (exponent - shift)), v = ldexp(1, -2 * shift);
    double e = map->series[map->degree], power = 1;
    for (int k = map->degree - 1; k >= 0; k--) {
        power *= v;
        e = e * u + map->series[k] * power;
    }
    const tk_factor f = {1 / sqrt(e), ldexp(1, -shift), ldexp(map->scale, -shift)};
    return f;
}

#endif
