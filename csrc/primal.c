/* Stochastic steps on the primal objective
 *
 *     lambda/2 |w|^2 + mean_i omega_i loss(y_i <w, phi(x_i)>),        the omega_i have mean 1
 */
#include "loss.h"
#include "train.h"

/* t_i: how much of phi(x_i) would lessen the loss of row i, omega_i y_i times its slope. */
static void make_slopes(const tk_training *training, tk_block *block)
{
    for (int64_t i = 0; i < block->n; i++) {
        const int64_t row = block->row[i];
        block->t[i] = tk_weight(training, row) * training->y[row] * tk_slope(training->loss, block->margin[i]);
    }
}

/* |w + factor sum_i t_i phi(x_i)|^2 - |w|^2; the margins are those under w. */
static double norm_change(const tk_training *training, tk_block *block, double factor)
{
    const int64_t n = block->n;
    double change = 0;
    tk_gram(&block->rows, training->update, 0, n, block->gram, block->for_gram);
    for (int64_t i = 0; i < n; i++) {
        double f = 2 * block->margin[i] * training->y[block->row[i]];
        for (int64_t j = 0; j < n; j++)
            f += factor * block->gram[i * n + j] * block->t[j];
        change += factor * block->t[i] * f;
    }
    return change;
}

/* Pegasos (Shalev-Shwartz et al., 2011), step 1 / (lambda t):
 *
 *     w <- (1 - 1/t) w + share / (lambda t) sum_i t_i phi(x_i)
 */
static void pegasos_step(const tk_training *training, tk_pegasos *pegasos, tk_block *block)
{
    const double t = (double)++pegasos->t, shrink = t > 1 ? 1 - 1 / t : 1;
    const double eta = pegasos->share / (pegasos->lambda * t);
    make_slopes(training, block);
    if (pegasos->radius > 0) {
        for (int64_t i = 0; i < block->n; i++)
            block->margin[i] *= shrink;
        pegasos->norm2 = shrink * shrink * pegasos->norm2 + norm_change(training, block, eta);
    }
    pegasos->scale *= shrink;
    tk_keep_changed(block);
    const double step = eta / pegasos->scale;
    for (int64_t i = 0; i < block->n; i++)
        pegasos->alpha[block->row[i]] += step * block->t[i] * training->y[block->row[i]];
    tk_add_block(training, block, step, training->w);
    if (pegasos->average) /* what was averaged so far holds shift * values: take the change out of it again */
        tk_add_block(training, block, -pegasos->shift * step, pegasos->average);
    if (pegasos->radius > 0 && pegasos->norm2 > pegasos->radius * pegasos->radius) {
        pegasos->scale *= pegasos->radius / sqrt(pegasos->norm2);
        pegasos->norm2 = pegasos->radius * pegasos->radius;
    }
    pegasos->shift += pegasos->scale;
    pegasos->n_averaged++;
}

void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos)
{
    tk_block block = tk_carve_block(training);
    for (int64_t i = first; i < last; i += training->block) {
        tk_next_block(training, i, last, pegasos->scale, &block);
        pegasos_step(training, pegasos, &block);
    }
}

/* AdaGrad (Duchi et al., 2011). */
void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state)
{
    tk_block block = tk_carve_block(training);
    for (int64_t i = first; i < last; i += training->block) {
        tk_next_block(training, i, last, 1, &block);
        make_slopes(training, &block);
        tk_keep_changed(&block);
        tk_adapt(&block.rows, training->update, 0, block.n, state, tk_coefficients(&block, 1), block.for_walk);
    }
}

void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last)
{
    if (real == TK_FLOAT64) {
        double *w = state->values;
        const double *h = state->squares;
        for (int64_t a = first; a < last; a++)
            w[a] /= 1 + factor / sqrt(h[a]);
    } else {
        float *w = state->values;
        const float *h = state->squares;
        for (int64_t a = first; a < last; a++)
            w[a] /= 1 + (float)factor / sqrtf(h[a]);
    }
}
