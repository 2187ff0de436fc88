/* What a loss is: one table of operations, and a few numbers. losses/ has one file a loss, losses.h lists them.
 *
 * v is a margin, omega a row's weight, p = alpha / omega, and epsilon the loss's parameter, if it has one. */
#ifndef TK_LOSS_H
#define TK_LOSS_H

#include <math.h>
#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels.h"

/* A loss that looks at one output of a row, by its margin. */
typedef struct {
    double (*value)(double epsilon, double v);
    double (*slope)(double epsilon, double v); /* -d loss / d v */
    double (*dual)(double epsilon, double p);  /* g(p), with loss(v) = max_p g(p) - p v */
    /* Whether an output needs no visit for now: p is at a bound, and the margin is farther than the slack from where
     * that would change; or, where there are no bounds, p is where it should be, relatively as near as that. */
    int (*is_settled)(double epsilon, double v, double p, double slack, double near);
    /* The alpha in its domain that makes the dual objective largest when the others stay: q = C K~(x, x), and v is the
     * margin with alpha as it is. Divisions are by what does not depend on v, which is known late when steps follow one
     * another. */
    double (*step)(double epsilon, double alpha, double omega, double v, double q);
    /* Whether a step would change alpha at all: this does not depend on how large q is. */
    int (*can_move)(double epsilon, double alpha, double omega, double v);
} tk_output_loss;

/* A loss that looks at all n outputs f of a row together; y is the row's class. It is the largest value over
 * probabilities q of  sum_k q_k f_k - f_y + g(q),  and the dual variables are alpha_k = omega ([k = y] - q_k): they add
 * up to 0, and w_k = C sum_i alpha_ik phi(x_i). An alpha of NULL is all 0. */
typedef struct {
    double (*value)(int32_t n, const double *f, int32_t y);
    /* OUT alpha: omega ([k = y] - d (loss + f_y) / d f_k). */
    void (*slopes)(int32_t n, const double *f, int32_t y, double omega, double *alpha);
    double (*dual)(int32_t n, const double *alpha, int32_t y, double omega); /* omega g(q) */
    int (*is_settled)(int32_t n, const double *f, const double *alpha, int32_t y, double omega, double slack,
                      double near);
    /* INOUT alpha: as above, of the row; q = C K~(x, x) > 0. `room` is for n numbers. */
    void (*step)(int32_t n, double *alpha, double omega, const double *f, double q, int32_t y, double *room);
} tk_row_loss;

/* What it is asked of: labels, v = y f; numbers, v = f - target; or classes, where it is one of all outputs of a row.
 */
typedef enum { TK_LABELS, TK_NUMBERS, TK_CLASSES } tk_asked;

struct tk_loss {
    const char *name;
    int32_t number; /* its place in the list of losses.h */
    tk_asked of;
    double lipschitz; /* by how much it changes at most, for each unit by which the outputs of a row change, as a
                         vector; 0: there is no such bound */
    double low, high; /* p is between these; of classes: not looked at */
    double (*radius2)(int32_t n_outputs); /* the optimum lies within lambda |w|^2 <= this, for weights of mean 1
                                             (docs/mathematics.md, section 5); NULL: it depends on the targets */
    tk_output_loss one;                   /* of labels and numbers, */
    tk_row_loss joint;                    /* of classes */
};

static inline int tk_is_joint(const tk_targets *t)
{
    return t->loss->of == TK_CLASSES;
}

static inline double tk_omega(const tk_targets *t, int64_t row, int32_t k)
{
    const double omega = t->weight ? t->weight[row] : 1;
    return t->favour && t->y[row * t->n_outputs + k] > 0 ? omega * t->favour[k] : omega;
}

/* v = sign f - target. */
static inline double tk_sign(const tk_targets *t, int64_t row, int32_t k)
{
    return t->loss->of == TK_LABELS ? t->y[row * t->n_outputs + k] : 1;
}

static inline double tk_target(const tk_targets *t, int64_t row, int32_t k)
{
    return t->target ? t->target[row * t->n_outputs + k] : 0;
}

static inline int32_t tk_class_of(const tk_targets *t, int64_t row)
{
    const int8_t *y = t->y + row * t->n_outputs;
    int32_t k = 0;
    while (k + 1 < t->n_outputs && y[k] < 1)
        k++;
    return k;
}

/* For formulas. */

static const double TINY = 1e-300; /* what is not above it has no finite inverse, or may have none */

/* 0 within epsilon, else what v is beyond it. */
static inline double tk_beyond(double v, double epsilon)
{
    return v > epsilon ? v - epsilon : v < -epsilon ? v + epsilon : 0;
}

/* e > 0 ? e : 0. Of that compilers make a branch, which would often be mispredicted. */
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

static inline double tk_entropy(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

#endif
