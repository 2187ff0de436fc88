/* Objectives and slopes, for rows whose margins are known. */
#include <stddef.h>

#include "losses.h"

/* One output of a row, to be added to sums[0], sums[step], .. */
static FORCE_INLINE void add_output(const tk_targets *t, const tk_loss *loss, const tk_terms *terms, int64_t row,
                                    int32_t k, double *sums, int64_t step)
{
    const int64_t at = row * t->n_outputs + k;
    const double v = terms->margin[at], alpha = terms->alpha ? terms->alpha[at] : 0;
    const double omega = tk_omega(t, row, k), target = tk_target(t, row, k);
    const double value = loss->one.value(t->epsilon, v), g = loss->one.dual(t->epsilon, alpha / omega);
    sums[0] += omega * value;
    sums[step] += omega * g + alpha * target;
    sums[2 * step] += omega * (value - g) + alpha * v;
    sums[3 * step] += alpha * (v + target);
}

/* Whether an output of a row may yet want to move. */
static FORCE_INLINE int output_may_move(const tk_targets *t, const tk_loss *loss, const tk_terms *terms, int64_t row,
                                        int32_t k)
{
    const int64_t at = row * t->n_outputs + k;
    const double alpha = terms->alpha ? terms->alpha[at] : 0;
    return !loss->one.is_settled(t->epsilon, terms->margin[at], alpha / tk_omega(t, row, k), terms->slack[k],
                                 terms->near[k]);
}

/* All outputs of a row under a joint loss: added, unless it turns out not to be active. */
static void add_outputs(const tk_targets *t, const tk_terms *terms, int64_t row)
{
    const tk_row_loss *loss = &t->loss->joint;
    const int32_t n = t->n_outputs, y = tk_class_of(t, row);
    const double *f = terms->margin + row * n, *alpha = terms->alpha ? terms->alpha + row * n : NULL;
    const double omega = tk_omega(t, row, y);
    if (terms->active) {
        terms->active[row] = !loss->is_settled(n, f, alpha, y, omega, terms->slack[0], terms->near[0]);
        if (!terms->active[row])
            return;
    }
    const double value = loss->value(n, f, y), g = alpha ? loss->dual(n, alpha, y, omega) : 0;
    double product = 0;
    for (int32_t k = 0; alpha && k < n; k++)
        product += alpha[k] * f[k];
    terms->sums[0] += omega * value;
    terms->sums[1] += g;
    terms->sums[2] += omega * value - g + product;
    terms->sums[3] += product;
}

/* Rows with one output, for a loss that the compiler knows: the sums stay in registers. */
static FORCE_INLINE void only_output(const tk_loss *loss, const tk_targets *targets, const int32_t *which,
                                     int64_t first, int64_t last, const tk_terms *terms)
{
    tk_targets t = *targets;
    double sums[4] = {terms->sums[0], terms->sums[1], terms->sums[2], terms->sums[3]};
    t.n_outputs = 1;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = which ? which[i] : i;
        if (terms->active) {
            const int active = output_may_move(&t, loss, terms, row, 0);
            terms->active[row] = (uint8_t)active;
            if (!active)
                continue;
        }
        add_output(&t, loss, terms, row, 0, sums, 1);
    }
    for (int s = 0; s < 4; s++)
        terms->sums[s] = sums[s];
}

typedef void only_output_pass(const tk_targets *, const int32_t *, int64_t, int64_t, const tk_terms *);

#define ONLY_OUTPUT(name)                                                                                              \
    static void only_output_##name(const tk_targets *targets, const int32_t *which, int64_t first, int64_t last,       \
                                   const tk_terms *terms)                                                              \
    {                                                                                                                  \
        only_output(&tk_##name, targets, which, first, last, terms);                                                   \
    }
TK_OUTPUT_LOSSES(ONLY_OUTPUT)
#define ENTRY(name) [TK_NUMBER(name)] = only_output_##name,
static only_output_pass *const only_output_of[N_LOSSES] = {TK_OUTPUT_LOSSES(ENTRY)};
#undef ENTRY
#undef ONLY_OUTPUT

void tk_terms_pass(const tk_targets *targets, const int32_t *which, int64_t first, int64_t last, const tk_terms *terms)
{
    const int32_t n = targets->n_outputs;
    if (n == 1 && (!terms->live || terms->live[0])) { /* then the loss is no joint one */
        only_output_of[targets->loss->number](targets, which, first, last, terms);
        return;
    }
    for (int64_t i = first; i < last; i++) {
        const int64_t row = which ? which[i] : i;
        if (tk_is_joint(targets)) {
            add_outputs(targets, terms, row);
            continue;
        }
        int active = !terms->active; /* then nobody asks, and all are added */
        for (int32_t k = 0; k < n && !active; k++)
            active = (!terms->live || terms->live[k]) && output_may_move(targets, targets->loss, terms, row, k);
        if (terms->active)
            terms->active[row] = (uint8_t)active;
        for (int32_t k = 0; k < n && active; k++)
            if (!terms->live || terms->live[k])
                add_output(targets, targets->loss, terms, row, k, terms->sums + k, n);
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
            targets->loss->joint.slopes((int32_t)n, margin + i * n, y, tk_omega(targets, i, y), alpha + i * n);
            continue;
        }
        for (int32_t k = 0; k < n; k++)
            alpha[i * n + k] = tk_omega(targets, i, k) * targets->loss->one.slope(targets->epsilon, margin[i * n + k]);
    }
}
