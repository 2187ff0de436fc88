/* The losses that look at one output of a row: what steps and objectives need to know of them. v is the margin, omega
 * the row's weight.
 *
 *     hinge                         max(0, 1 - v)
 *     squared hinge                 max(0, 1 - v)^2
 *     log loss                      log(1 + exp(-v))
 *     epsilon insensitive           max(0, |v| - epsilon)
 *     squared epsilon insensitive   max(0, |v| - epsilon)^2, with epsilon = 0 the squared error
 */
#ifndef TK_LOSS_H
#define TK_LOSS_H

#include <math.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels.h"

static const double TINY = 1e-300; /* what is not above it has no finite inverse, or may have none */

static inline int tk_is_joint(const tk_targets *targets)
{
    return targets->loss >= TK_CRAMMER_SINGER;
}

static inline double tk_omega(const tk_targets *t, int64_t row, int32_t k)
{
    const double omega = t->weight ? t->weight[row] : 1;
    return t->favour && t->y[row * t->n_outputs + k] > 0 ? omega * t->favour[k] : omega;
}

/* v = sign f - target. */
static inline double tk_sign(const tk_targets *t, int64_t row, int32_t k)
{
    return t->y && !tk_is_joint(t) ? t->y[row * t->n_outputs + k] : 1;
}

static inline double tk_target(const tk_targets *t, int64_t row, int32_t k)
{
    return t->target ? t->target[row * t->n_outputs + k] : 0;
}

/* 0 within epsilon, else what v is beyond it. */
static inline double tk_beyond(double v, double epsilon)
{
    return v > epsilon ? v - epsilon : v < -epsilon ? v + epsilon : 0;
}

/* e > 0 ? e : 0. Of that compilers make a branch, which no CPU can foresee. */
static inline double tk_positive(double e)
{
#if defined(__SSE2__)
    return _mm_cvtsd_f64(_mm_max_sd(_mm_set_sd(e), _mm_setzero_pd()));
#else
    return e > 0 ? e : 0;
#endif
}

/* x, brought to low <= x <= high; likewise. */
static inline double tk_clip(double x, double low, double high)
{
#if defined(__SSE2__)
    return _mm_cvtsd_f64(_mm_min_sd(_mm_max_sd(_mm_set_sd(x), _mm_set_sd(low)), _mm_set_sd(high)));
#else
    return x <= low ? low : x >= high ? high : x;
#endif
}

static inline double tk_loss_value(const tk_targets *t, double v)
{
    double e = 1 - v;
    switch (t->loss) {
    case TK_HINGE:
        return tk_positive(e);
    case TK_SQUARED_HINGE:
        e = tk_positive(e);
        return e * e;
    case TK_LOG_LOSS:
        return v > 0 ? log1p(exp(-v)) : log1p(exp(v)) - v;
    case TK_EPSILON_INSENSITIVE:
        return fabs(tk_beyond(v, t->epsilon));
    default:
        e = tk_beyond(v, t->epsilon);
        return e * e;
    }
}

/* -d loss / d v. */
static inline double tk_slope(const tk_targets *t, double v)
{
    double e;
    switch (t->loss) {
    case TK_HINGE:
        return v < 1 ? 1 : 0;
    case TK_SQUARED_HINGE:
        return v < 1 ? 2 * (1 - v) : 0;
    case TK_LOG_LOSS:
        return v > 0 ? exp(-v) / (1 + exp(-v)) : 1 / (1 + exp(v));
    case TK_EPSILON_INSENSITIVE:
        e = tk_beyond(v, t->epsilon);
        return e > 0 ? -1 : e < 0 ? 1 : 0;
    default:
        return -2 * tk_beyond(v, t->epsilon);
    }
}

static inline double tk_entropy(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

/* g(p), with loss(v) = max_p g(p) - p v. */
static inline double tk_dual_value(const tk_targets *t, double p)
{
    switch (t->loss) {
    case TK_HINGE:
        return p;
    case TK_SQUARED_HINGE:
        return p - p * p / 4;
    case TK_LOG_LOSS:
        return tk_entropy(p) + tk_entropy(1 - p);
    case TK_EPSILON_INSENSITIVE:
        return -t->epsilon * fabs(p);
    default:
        return -t->epsilon * fabs(p) - p * p / 4;
    }
}

/* Whether an output needs no visit for now: p is at a bound, and the margin is farther than the slack from where that
 * would change; or, for the log loss, p is where it should be. */
static inline int tk_is_settled(const tk_targets *t, double v, double p, double slack, double near)
{
    switch (t->loss) {
    case TK_HINGE:
        return ((p <= 0) & (v > 1 + slack)) | ((p >= 1) & (v < 1 - slack)); /* no branch: none could be foreseen */
    case TK_SQUARED_HINGE:
        return p <= 0 && v > 1 + slack;
    case TK_LOG_LOSS:
        return fabs(p - tk_slope(t, v)) < near * p * (1 - p);
    case TK_EPSILON_INSENSITIVE:
        return (p == 0 && fabs(v) < t->epsilon - slack) || (p >= 1 && v < -t->epsilon - slack)
               || (p <= -1 && v > t->epsilon + slack);
    default:
        return p == 0 && fabs(v) < t->epsilon - slack;
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

/* The alpha in its domain (squared losses: without an upper end) that makes the dual objective largest when the others
 * stay: q = C K~(x, x), and v is the margin with alpha as it is. Divisions are by what does not depend on v, which is
 * known late when steps follow one another. */
static FORCE_INLINE double tk_dual_step(const tk_targets *t, double alpha, double omega, double v, double q)
{
    double next, steep;
    switch (t->loss) {
    case TK_HINGE:
        next = q > TINY ? alpha + (1 - v) * (1 / q) : v < 1 ? omega : v > 1 ? 0 : alpha;
        return tk_clip(next, 0, omega);
    case TK_SQUARED_HINGE:
        next = alpha + (1 - v - alpha / (2 * omega)) * (1 / (q + 1 / (2 * omega)));
        return tk_positive(next);
    case TK_LOG_LOSS:
        return omega * tk_log_step(alpha / omega, v, q * omega);
    case TK_EPSILON_INSENSITIVE:
        if (q <= TINY)
            next = omega * tk_slope(t, v);
        else
            next = tk_beyond(alpha - v * (1 / q), t->epsilon / q);
        return tk_clip(next, -omega, omega);
    default:
        steep = q + 1 / (2 * omega);
        return tk_beyond((q * alpha - v) * (1 / steep), t->epsilon / steep);
    }
}

/* Whether a step would change alpha at all: this does not depend on how large q is. */
static inline int tk_can_move(const tk_targets *t, double alpha, double omega, double v)
{
    return t->loss == TK_LOG_LOSS || tk_dual_step(t, alpha, omega, v, 1) != alpha;
}

#endif
