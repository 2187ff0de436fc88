/* The losses that look at all outputs f of a row together; y is the row's class.
 *
 *     Crammer and Singer    max_k (f_k + [k != y]) - f_y
 *     multinomial           log sum_k exp(f_k) - f_y
 *
 * Both are largest values over probabilities q of  sum_k q_k f_k - f_y + g(q),  where g is 1 - q_y, or the entropy of
 * q. The dual variables are alpha_k = omega ([k = y] - q_k): they add up to 0, and w_k = C sum_i alpha_ik phi(x_i). */
#ifndef TK_JOINT_H
#define TK_JOINT_H

#include "loss.h"

static inline int32_t tk_class_of(const tk_targets *t, int64_t row)
{
    const int8_t *y = t->y + row * t->n_outputs;
    int32_t k = 0;
    while (k + 1 < t->n_outputs && y[k] < 1)
        k++;
    return k;
}

/* The class with the largest f_k, other than y. */
static inline int32_t tk_rival(int32_t n, const double *f, int32_t y)
{
    int32_t best = y == 0 ? 1 : 0;
    for (int32_t k = best + 1; k < n; k++)
        if (k != y && f[k] > f[best])
            best = k;
    return best;
}

/* log sum_k exp(f_k). */
static inline double tk_log_sum(int32_t n, const double *f)
{
    double top = f[0], sum = 0;
    for (int32_t k = 1; k < n; k++)
        top = f[k] > top ? f[k] : top;
    for (int32_t k = 0; k < n; k++)
        sum += exp(f[k] - top);
    return top + log(sum);
}

static inline double tk_joint_value(const tk_targets *t, const double *f, int32_t y)
{
    const int32_t n = t->n_outputs;
    if (t->loss == TK_MULTINOMIAL)
        return tk_log_sum(n, f) - f[y];
    const double beyond = 1 + f[tk_rival(n, f, y)] - f[y];
    return beyond > 0 ? beyond : 0;
}

/* omega g(q). */
static inline double tk_joint_dual(const tk_targets *t, const double *alpha, int32_t y, double omega)
{
    if (t->loss == TK_CRAMMER_SINGER)
        return alpha[y];
    double sum = 0;
    for (int32_t k = 0; k < t->n_outputs; k++)
        sum += tk_entropy((k == y) - alpha[k] / omega);
    return omega * sum;
}

/* The alpha that goes with the slopes of the loss at f: omega ([k = y] - d (loss + f_y) / d f_k). */
static inline void tk_joint_slopes(const tk_targets *t, const double *f, int32_t y, double omega, double *alpha)
{
    const int32_t n = t->n_outputs;
    if (t->loss == TK_MULTINOMIAL) {
        const double log_sum = tk_log_sum(n, f);
        double others = 0;
        for (int32_t k = 0; k < n; k++)
            if (k != y) {
                alpha[k] = -omega * exp(f[k] - log_sum);
                others += alpha[k];
            }
        alpha[y] = -others;
        return;
    }
    const int32_t rival = tk_rival(n, f, y);
    const int beyond = 1 + f[rival] - f[y] > 0;
    for (int32_t k = 0; k < n; k++)
        alpha[k] = 0;
    if (beyond) {
        alpha[y] = omega;
        alpha[rival] = -omega;
    }
}

static inline int tk_joint_is_settled(const tk_targets *t, const double *f, const double *alpha, int32_t y,
                                      double omega, double slack, double near)
{
    const int32_t n = t->n_outputs;
    if (t->loss == TK_MULTINOMIAL) {
        const double log_sum = tk_log_sum(n, f);
        double off = 0, rest = 1;
        for (int32_t k = 0; k < n; k++) {
            const double q = (k == y) - (alpha ? alpha[k] / omega : 0);
            off = fmax(off, fabs(q - exp(f[k] - log_sum)));
            rest = fmin(rest, 1 - q);
        }
        return off < near * rest;
    }
    const int32_t rival = tk_rival(n, f, y);
    const double beyond = 1 + f[rival] - f[y];
    if (!alpha || alpha[y] == 0)
        return beyond < -slack;
    if (alpha[rival] > -omega || beyond < slack)
        return 0;
    for (int32_t k = 0; k < n; k++)
        if (k != y && k != rival && f[k] > f[rival] - slack)
            return 0;
    return 1;
}

/* The point of the simplex {z >= 0, sum z = size} that is nearest to z is max(0, z - tau). The tau (Michelot, 1986):
 * the mean excess over those that are above the last tau, until none falls below. */
static inline double tk_simplex(int32_t n, const double *z, double size)
{
    double tau = -HUGE_VAL;
    for (int32_t count = n + 1;;) {
        double sum = 0;
        int32_t above = 0;
        for (int32_t k = 0; k < n; k++)
            if (z[k] > tau) {
                sum += z[k];
                above++;
            }
        if (above == 0 || above >= count)
            return tau;
        count = above;
        tau = (sum - size) / above;
    }
}

/* The probabilities with  log q_k + a q_k = c_k - mu,  with the mu at which they add up to 1. Newton's method on all of
 * them and mu at once, begun where each q_k is too large and mu too small. */
static inline void tk_multinomial_step(int32_t n, double a, const double *c, double *q)
{
    double mu = -HUGE_VAL;
    for (int32_t k = 0; k < n; k++)
        mu = fmax(mu, c[k] - a);
    for (int32_t k = 0; k < n; k++) {
        const double b = c[k] - mu, start = (fmax(b, 0) + fmax(log(a), 1)) / a;
        q[k] = fmin(b, log(start));
    }
    for (int i = 0; i < 60; i++) { /* q holds the logarithms */
        double sum = -1, steep = 0, largest = 0;
        for (int32_t k = 0; k < n; k++) {
            const double p = exp(q[k]), d = 1 + a * p;
            sum += p - p * (q[k] + a * p - c[k] + mu) / d;
            steep += p / d;
        }
        const double by = sum / steep;
        for (int32_t k = 0; k < n; k++) {
            const double p = exp(q[k]), step = (q[k] + a * p - c[k] + mu + by) / (1 + a * p);
            q[k] -= step;
            largest = fmax(largest, fabs(step) * p);
        }
        mu += by;
        if (largest < 1e-14)
            break;
    }
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += q[k] = exp(q[k]);
    for (int32_t k = 0; k < n; k++)
        q[k] /= sum;
}

/* The step of Crammer and Singer's loss projects z_k = [k = y] (omega - 1/q) - alpha_k + f_k / q onto a simplex. Only
 * differences count, and they are taken before the division: z_k - z_j. */
static inline double tk_above(const double *alpha, double omega, const double *f, double q, int32_t y, int32_t k,
                              int32_t j)
{
    const int32_t at = (k == y) - (j == y);
    return (at * omega - (alpha[k] - alpha[j])) + ((f[k] - f[j]) - at) / q;
}

/* The alpha of a row that makes the dual objective largest when the other rows stay: q = C K~(x, x), and f are the
 * outputs with alpha as it is. `room` is for n_outputs numbers. */
static inline void tk_joint_step(const tk_targets *t, double *alpha, double omega, const double *f, double q, int32_t y,
                                 double *room)
{
    const int32_t n = t->n_outputs;
    q = q > 1e-12 ? q : 1e-12; /* a row without features: nothing depends on it */
    if (t->loss == TK_MULTINOMIAL) {
        double others = 0;
        for (int32_t k = 0; k < n; k++) /* c_k = f_k + a q_k, a = omega q */
            alpha[k] = f[k] + q * ((k == y) * omega - alpha[k]);
        tk_multinomial_step(n, omega * q, alpha, room);
        for (int32_t k = 0; k < n; k++)
            if (k != y) {
                alpha[k] = -omega * room[k];
                others += alpha[k];
            }
        alpha[y] = -others;
        return;
    }
    int32_t top = 0;
    for (int32_t k = 1; k < n; k++)
        if (tk_above(alpha, omega, f, q, y, k, top) > 0)
            top = k;
    for (int32_t k = 0; k < n; k++)
        room[k] = k == top ? 0 : tk_above(alpha, omega, f, q, y, k, top);
    const double tau = tk_simplex(n, room, omega);
    double others = 0;
    int32_t above = 0;
    for (int32_t k = 0; k < n; k++)
        above += room[k] > tau;
    for (int32_t k = 0; k < n; k++)
        if (k != y) { /* at a corner it is omega, without rounding: there the row may rest */
            alpha[k] = room[k] <= tau ? 0 : above == 1 ? -omega : tau - room[k];
            others += alpha[k];
        }
    alpha[y] = -others;
}

#endif
