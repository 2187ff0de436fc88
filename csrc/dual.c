/* Block dual coordinate ascent (after Hsieh et al., A Dual Coordinate Descent Method for Large-scale Linear SVM, 2008).
 *
 *     maximise  sum_i omega_i g(alpha_i / omega_i) - C/2 |sum_i alpha_i y_i phi(x_i)|^2   over alpha in its domain
 *
 * with the g of each loss (docs/mathematics.md). w = C sum_i alpha_i y_i phi(x_i) is kept as it goes. The rows of a
 * block are visited with the block's Gram matrix, so that each sees what the others have changed; the walk sees them
 * twice only, once for the margins and once for the changes. */
#include "loss.h"
#include "train.h"

/* gram[i][j] = C y_i y_j K~(x_i, x_j): what alpha_i adds to the margin of j. */
static void make_gram(const tk_training *training, const tk_dual *dual, tk_block *block)
{
    const int64_t n = block->n;
    tk_gram(&block->rows, training->update, 0, n, block->gram, block->for_gram);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            block->gram[i * n + j] *= dual->C * training->y[block->row[i]] * training->y[block->row[j]];
}

/* Leaves in the block those rows whose alpha the first step would change; which those are does not depend on how large
 * K~(x, x) is. The others would only cost time: their Gram matrix is most of what a block of short rows takes. */
static void keep_movable(const tk_training *training, const tk_dual *dual, tk_block *block)
{
    int64_t n = 0;
    for (int64_t i = 0; i < block->n; i++) {
        const int64_t row = block->row[i];
        const double alpha = dual->alpha[row], margin = block->margin[i];
        if (tk_dual_step(training->loss, alpha, tk_weight(training, row), margin, 1) != alpha) {
            block->row[n] = (int32_t)row;
            block->margin[n++] = margin;
        }
    }
    block->n = n;
}

/* One round of coordinate steps. Returns the largest change. */
static double sweep(const tk_training *training, tk_dual *dual, tk_block *block)
{
    const int64_t n = block->n;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = block->row[i];
        const double *gram = block->gram + i * n, old = dual->alpha[row];
        const double new = tk_dual_step(training->loss, old, tk_weight(training, row), block->margin[i], gram[i]);
        const double change = new - old;
        if (change == 0)
            continue;
        dual->alpha[row] = new;
        for (int64_t j = 0; j < n; j++)
            block->margin[j] += change * gram[j];
        largest = fabs(change) > largest ? fabs(change) : largest;
    }
    return largest;
}

static void take_block(const tk_training *training, tk_dual *dual, tk_block *block)
{
    keep_movable(training, dual, block);
    if (block->n == 0)
        return;
    make_gram(training, dual, block);
    for (int64_t i = 0; i < block->n; i++)
        block->t[i] = dual->alpha[block->row[i]];
    const double enough = 0.05 * sweep(training, dual, block);
    for (int s = 1; s < dual->sweeps && sweep(training, dual, block) > enough; s++)
        ;
    for (int64_t i = 0; i < block->n; i++) {
        const int64_t row = block->row[i];
        const double change = dual->alpha[row] - block->t[i];
        /* |w + dw|^2 = |w|^2 + <dw, 2 w + dw>, of which margins before and after are the parts */
        dual->norm2 += dual->C * change * (dual->margin[row] + block->margin[i]);
        dual->changed += change != 0;
        block->t[i] = change * training->y[row];
    }
    tk_keep_changed(block);
    tk_add_block(training, block, dual->C, training->w);
}

void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual)
{
    tk_block block = tk_carve_block(training);
    for (int64_t i = first; i < last; i += training->block) {
        tk_next_block(training, i, last, 1, &block);
        for (int64_t k = 0; k < block.n; k++)
            dual->margin[block.row[k]] = block.margin[k];
        take_block(training, dual, &block);
    }
}
