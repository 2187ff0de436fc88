/* The losses: what a step needs to know of them. m = y f(x) is a row's margin, omega its weight.
 *
 *     hinge            max(0, 1 - m)
 *     squared hinge    max(0, 1 - m)^2
 *     log loss         log(1 + exp(-m))
 */
#ifndef TK_LOSS_H
#define TK_LOSS_H

#include <math.h>

#include "tk.h"

/* -d loss / d m, a number >= 0. */
static inline double tk_slope(tk_loss loss, double m)
{
    switch (loss) {
    case TK_HINGE:
        return m < 1 ? 1 : 0;
    case TK_SQUARED_HINGE:
        return m < 1 ? 2 * (1 - m) : 0;
    default:
        return m > 0 ? exp(-m) / (1 + exp(-m)) : 1 / (1 + exp(m));
    }
}

/* The p in [0, 1] with  log((1 - p) / p) = m + q (p - p0),  q >= 0. With z = log(p / (1 - p)) and a = q p0 - m it is
 * where
 *
 *     F(z) = z - a + q p(z)
 *
 * vanishes. F rises; it is convex for z < 0 and concave for z > 0. A root above 0 is brought below by exchanging p with
 * 1 - p. Then Newton's method, begun to the right of the root, goes straight down to it. */
static inline double tk_log_step(double p0, double m, double q)
{
    const int above = q * p0 - m > q / 2;
    const double a = above ? q * (1 - p0) + m : q * p0 - m;
    /* Here z <= 0, and F(z) >= 0: at z = 0; at a if that is below 0; and where q p = max(a, 0) + max(log q, 1). */
    const double p_start = (fmax(a, 0) + fmax(log(q), 1)) / q;
    double z = p_start < 0.5 ? log(p_start / (1 - p_start)) : 0, p = 0.5;
    z = a < z ? a : z;
    for (int i = 0; i < 100; i++) {
        p = exp(z) / (1 + exp(z));
        const double next = z - (z - a + q * p) / (1 + q * p * (1 - p));
        if (!(next < z - 1e-15 * (1 - z)))
            break;
        z = next;
    }
    return above ? 1 - p : p;
}

/* The alpha in its domain (0 to omega; squared hinge: 0 to infinity) that makes the dual objective largest when the
 * others stay: q = C K~(x, x), and m is the margin with alpha as it is. */
static inline double tk_dual_step(tk_loss loss, double alpha, double omega, double m, double q)
{
    double next;
    switch (loss) {
    case TK_HINGE:
        next = q > 0 ? alpha + (1 - m) / q : (m < 1 ? omega : alpha);
        return next <= 0 ? 0 : next >= omega ? omega : next;
    case TK_SQUARED_HINGE:
        next = alpha + (1 - m - alpha / (2 * omega)) / (q + 1 / (2 * omega));
        return next <= 0 ? 0 : next;
    default:
        return omega * tk_log_step(alpha / omega, m, q * omega);
    }
}

#endif
