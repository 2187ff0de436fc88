/* Stochastic steps on the primal objective
 *
 *     lambda/2 |w|^2 + mean_i omega_i loss(v_i),        the omega_i have mean 1
 *
 * of each output by itself, or of all at once when the loss is a joint one. */
#include "blocks.h"

/* t_ik: how much of phi(x_i) would lessen the loss of row i, omega_i y_ik times its slope. */
static void see_slopes(const tk_training *training, const tk_block *block, int64_t i, void *state)
{
    const tk_targets *targets = training->targets;
    const int64_t n = targets->n_outputs, row = block->row[i];
    const double *v = block->margin + i * n;
    double *t = block->t + i * n;
    (void)state;
    if (tk_is_joint(targets)) {
        const int32_t y = tk_class_of(targets, row);
        targets->loss->joint.slopes((int32_t)n, v, y, tk_omega(targets, row, y), t);
        return;
    }
    for (int32_t k = 0; k < n; k++)
        t[k] = tk_omega(targets, row, k) * tk_sign(targets, row, k) * targets->loss->one.slope(targets->epsilon, v[k]);
}

/* |w_k + factor sum_i t_ik phi(x_i)|^2 - |w_k|^2; the outputs are `shrink` times those of the block's margins. */
static double norm_change(const tk_training *training, const tk_block *block, double shrink, double factor, int32_t k)
{
    const tk_targets *targets = training->targets;
    const int64_t n = block->n, n_outputs = targets->n_outputs;
    double change = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = block->row[i], at = i * n_outputs + k;
        const double v = block->margin[at] + tk_target(targets, row, k);
        double f = 2 * shrink * v * tk_sign(targets, row, k);
        for (int64_t j = 0; j < n; j++)
            f += factor * block->gram[i * n + j] * block->t[j * n_outputs + k];
        change += factor * block->t[at] * f;
    }
    return change;
}

/* w is brought back to where |w| <= radius: each output by itself, or all together. */
static void project(const tk_training *training, tk_pegasos *pegasos)
{
    const int32_t n = training->targets->n_outputs, joint = tk_is_joint(training->targets);
    double total = 0;
    for (int32_t k = 0; k < n; k++)
        total += pegasos->norm2[k];
    for (int32_t k = 0; k < n; k++) {
        const double norm2 = joint ? total : pegasos->norm2[k], radius = pegasos->radius[joint ? 0 : k];
        if (norm2 > radius * radius) {
            pegasos->scale[k] *= radius / sqrt(norm2);
            pegasos->norm2[k] *= radius * radius / norm2;
        }
    }
}

/* Pegasos (Shalev-Shwartz et al., 2011), step 1 / (lambda t):
 *
 *     w <- (1 - 1/t) w + share / (lambda t) sum_i t_i phi(x_i)
 */

/* All of a step but for the tables, to which step_k and back_k times the slopes are added. */
static void pegasos_step(const tk_training *training, tk_block *block, void *state)
{
    tk_pegasos *pegasos = state;
    const tk_targets *targets = training->targets;
    const int32_t n_outputs = targets->n_outputs;
    double *step = block->factors, *back = step + n_outputs;
    const double t = (double)++pegasos->t, shrink = t > 1 ? 1 - 1 / t : 1;
    const double eta = pegasos->share / (pegasos->lambda * t);
    if (pegasos->radius)
        tk_gram(&block->rows, training->update, 0, block->n, block->gram, block->for_gram);
    for (int32_t k = 0; k < n_outputs; k++) {
        if (pegasos->radius)
            pegasos->norm2[k] = shrink * shrink * pegasos->norm2[k] + norm_change(training, block, shrink, eta, k);
        pegasos->scale[k] *= shrink;
        step[k] = eta / pegasos->scale[k];
        back[k] = -pegasos->shift[k] * step[k];
    }
    tk_keep_changed(training, block);
    for (int64_t i = 0; i < block->n; i++)
        for (int32_t k = 0; k < n_outputs; k++) {
            const int64_t row = block->row[i];
            pegasos->alpha[row * n_outputs + k] += step[k] * block->t[i * n_outputs + k] * tk_sign(targets, row, k);
        }
    if (pegasos->radius)
        project(training, pegasos);
    for (int32_t k = 0; k < n_outputs; k++)
        pegasos->shift[k] += pegasos->scale[k];
    pegasos->n_averaged++;
    tk_coefficients(training, block, 1, step);
}

static void pegasos_back(const tk_training *training, tk_block *block, void *state)
{
    (void)state;
    tk_coefficients(training, block, 1, block->factors + training->targets->n_outputs);
}

void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos, int32_t me)
{
    tk_block block = tk_carve_block(training, me);
    for (int64_t i = first; i < last; i += training->block) {
        tk_next_block(training, i, last, pegasos->scale, &block, see_slopes, pegasos_step, pegasos);
        tk_add_block(training, &block, training->w.values);
        if (!pegasos->average)
            continue;
        /* What was averaged so far holds shift * values: take the change out of it again. */
        tk_once(training, &block, pegasos_back, NULL);
        tk_add_block(training, &block, pegasos->average);
    }
}

/* AdaGrad (Duchi et al., 2011). */
static void keep_slopes(const tk_training *training, tk_block *block, void *state)
{
    (void)state;
    tk_keep_changed(training, block);
    tk_coefficients(training, block, 1, NULL);
}

void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state, int32_t me)
{
    tk_block block = tk_carve_block(training, me);
    const int32_t *share = training->shares + me;
    for (int64_t i = first; i < last; i += training->block) {
        tk_next_block(training, i, last, NULL, &block, see_slopes, keep_slopes, NULL);
        tk_adapt_part(&block.rows, training->update, 0, block.n, state, block.reals, block.for_walk, share[0],
                      share[1]);
        tk_meet(training->team);
    }
}
