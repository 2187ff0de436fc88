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

/* The p in [0, 1] with  log((1 - p) / p) = m + q (p - p0),  q >= 0: by Newton's method on z = log(p / (1 - p)), where
 *
 *     z + m + q (p(z) - p0) = 0
 *
 * rises with z and has its root between -m - q (1 - p0) and -m + q p0. */
static inline double tk_log_step(double p0, double m, double q)
{
    double low = -m - q * (1 - p0), high = -m + q * p0, p = p0;
    double z = p0 > 0 && p0 < 1 ? log(p0 / (1 - p0)) : high;
    for (int i = 0; i < 60; i++) {
        if (!(z >= low && z <= high))
            z = low + (high - low) / 2;
        p = z > 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z));
        const double value = z + m + q * (p - p0), next = z - value / (1 + q * p * (1 - p));
        if (value > 0)
            high = z;
        else
            low = z;
        if (fabs(next - z) <= 1e-13 * (1 + fabs(z)))
            break;
        z = next;
    }
    return p;
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
