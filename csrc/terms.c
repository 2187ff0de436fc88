/* Objectives and slopes, for rows whose margins are known. */
#include <stddef.h>

#include "joint.h"
#include "kernels.h"

/* One output of a row, to be added to sums[0], sums[step], .. */
static FORCE_INLINE void add_output(const tk_targets *t, const tk_terms *terms, int64_t row, int32_t k, double *sums,
                                    int64_t step)
{
    const int64_t at = row * t->n_outputs + k;
    const double v = terms->margin[at], alpha = terms->alpha ? terms->alpha[at] : 0;
    const double omega = tk_omega(t, row, k), target = tk_target(t, row, k);
    const double loss = tk_loss_value(t, v), g = tk_dual_value(t, alpha / omega);
    sums[0] += omega * loss;
    sums[step] += omega * g + alpha * target;
    sums[2 * step] += omega * (loss - g) + alpha * v;
    sums[3 * step] += alpha * (v + target);
}

/* Whether an output of a row may yet want to move. */
static FORCE_INLINE int output_may_move(const tk_targets *t, const tk_terms *terms, int64_t row, int32_t k)
{
    const int64_t at = row * t->n_outputs + k;
    const double alpha = terms->alpha ? terms->alpha[at] : 0;
    return !tk_is_settled(t, terms->margin[at], alpha / tk_omega(t, row, k), terms->slack[k], terms->near[k]);
}

/* All outputs of a row under a joint loss: added, unless it turns out not to be active. */
static void add_outputs(const tk_targets *t, const tk_terms *terms, int64_t row)
{
    const int32_t n = t->n_outputs, y = tk_class_of(t, row);
    const double *f = terms->margin + row * n, *alpha = terms->alpha ? terms->alpha + row * n : NULL;
    const double omega = tk_omega(t, row, y);
    if (terms->active) {
        terms->active[row] = !tk_joint_is_settled(t, f, alpha, y, omega, terms->slack[0], terms->near[0]);
        if (!terms->active[row])
            return;
    }
    const double loss = tk_joint_value(t, f, y), g = alpha ? tk_joint_dual(t, alpha, y, omega) : 0;
    double product = 0;
    for (int32_t k = 0; alpha && k < n; k++)
        product += alpha[k] * f[k];
    terms->sums[0] += omega * loss;
    terms->sums[1] += g;
    terms->sums[2] += omega * loss - g + product;
    terms->sums[3] += product;
}

/* Rows with one output: the sums stay in registers, and nobody asks for each row which loss it is. */
static FORCE_INLINE void only_output(const tk_targets *targets, const tk_loss loss, const int32_t *which, int64_t first,
                                     int64_t last, const tk_terms *terms)
{
    tk_targets t = *targets;
    double sums[4] = {terms->sums[0], terms->sums[1], terms->sums[2], terms->sums[3]};
    t.loss = loss;
    t.n_outputs = 1;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = which ? which[i] : i;
        if (terms->active) {
            const int active = output_may_move(&t, terms, row, 0);
            terms->active[row] = (uint8_t)active;
            if (!active)
                continue;
        }
        add_output(&t, terms, row, 0, sums, 1);
    }
    for (int s = 0; s < 4; s++)
        terms->sums[s] = sums[s];
}

void tk_terms_pass(const tk_targets *targets, const int32_t *which, int64_t first, int64_t last, const tk_terms *terms)
{
    const int32_t n = targets->n_outputs;
    if (n == 1 && (!terms->live || terms->live[0]))
        switch (targets->loss) {
#define TK_CASE(loss)                                                                                                  \
    case loss:                                                                                                         \
        only_output(targets, loss, which, first, last, terms);                                                         \
        return;
            TK_CASE(TK_HINGE)
            TK_CASE(TK_SQUARED_HINGE)
            TK_CASE(TK_LOG_LOSS)
            TK_CASE(TK_EPSILON_INSENSITIVE)
            TK_CASE(TK_SQUARED_EPSILON_INSENSITIVE)
#undef TK_CASE
        default:
            break;
        }
    for (int64_t i = first; i < last; i++) {
        const int64_t row = which ? which[i] : i;
        if (tk_is_joint(targets)) {
            add_outputs(targets, terms, row);
            continue;
        }
        int active = !terms->active; /* then nobody asks, and all are added */
        for (int32_t k = 0; k < n && !active; k++)
            active = (!terms->live || terms->live[k]) && output_may_move(targets, terms, row, k);
        if (terms->active)
            terms->active[row] = (uint8_t)active;
        for (int32_t k = 0; k < n && active; k++)
            if (!terms->live || terms->live[k])
                add_output(targets, terms, row, k, terms->sums + k, n);
    }
}

void tk_margins(const tk_targets *targets, tk_real real, const void *f, int32_t width, int64_t first, int64_t last,
                double *margin)
{
    const int32_t n = targets->n_outputs;
    for (int64_t row = first; row < last; row++)
        for (int32_t k = 0; k < n; k++) {
            const int64_t at = (row - first) * width + k;
            const double output = real == TK_FLOAT64 ? ((const double *)f)[at] : ((const float *)f)[at];
            margin[row * n + k] = output * tk_sign(targets, row, k) - tk_target(targets, row, k);
        }
}

void tk_slopes(const tk_targets *targets, const double *margin, int64_t first, int64_t last, double *alpha)
{
    const int64_t n = targets->n_outputs;
    for (int64_t i = first; i < last; i++) {
        if (tk_is_joint(targets)) {
            const int32_t y = tk_class_of(targets, i);
            tk_joint_slopes(targets, margin + i * n, y, tk_omega(targets, i, y), alpha + i * n);
            continue;
        }
        for (int32_t k = 0; k < n; k++)
            alpha[i * n + k] = tk_omega(targets, i, k) * tk_slope(targets, margin[i * n + k]);
    }
}
