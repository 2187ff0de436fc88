/* Block dual coordinate ascent (after Hsieh et al., A Dual Coordinate Descent Method for Large-scale Linear SVM, 2008).
 *
 *     maximise  sum_i omega_i g(alpha_i / omega_i) + alpha_i target_i - C/2 |sum_i alpha_i y_i phi(x_i)|^2
 *
 * over alpha in its domain, with the g of each loss (docs/mathematics.md), for each output by itself; or for all at
 * once when the loss is a joint one. w = C sum_i alpha_i y_i phi(x_i) is kept as it goes. The rows of a block are
 * visited with the block's Gram matrix, so that each sees what the others have changed; the walk sees them twice only,
 * once for the margins and once for the changes. */
#include "blocks.h"

/* Each output by itself. */

static int is_live(const tk_dual *dual, int32_t k)
{
    return !dual->live || dual->live[k];
}

static int can_move(const tk_training *training, const tk_dual *dual, const tk_block *block, int64_t i, int32_t k)
{
    const tk_targets *targets = training->targets;
    const int64_t row = block->row[i], n = targets->n_outputs;
    return targets->loss->one.can_move(targets->epsilon, dual->alpha[row * n + k], tk_omega(targets, row, k),
                                       block->margin[i * n + k]);
}

/* Only rows of which a first step would change an alpha stay in the block. The others would only cost time, in
 * the Gram matrix and in each sweep. */
static int is_movable(const tk_training *training, const tk_dual *dual, const tk_block *block, int64_t i)
{
    for (int32_t k = 0; k < training->targets->n_outputs; k++)
        if (is_live(dual, k) && can_move(training, dual, block, i, k))
            return 1;
    return 0;
}

/* The Gram matrix of those rows of the block that are in `some`. */
static const double *gram_of_some(tk_block *block, int64_t n)
{
    if (n == block->n)
        return block->gram;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            block->part[i * n + j] = block->gram[block->some[i] * block->n + block->some[j]];
    return block->part;
}

/* Rows of the block that output k may move: where they are, their f and alpha, and what is asked of them, side by side.
 */
static void choose_rows(const tk_training *training, const tk_dual *dual, tk_block *block, int32_t k)
{
    const tk_targets *targets = training->targets;
    const int64_t n_outputs = targets->n_outputs;
    tk_swept *rows = &block->swept;
    int64_t n = 0;
    for (int64_t i = 0; i < block->n; i++) {
        const int64_t row = block->row[i];
        block->t[i * n_outputs + k] = 0;
        if (n_outputs > 1 && !can_move(training, dual, block, i, k))
            continue;
        rows->sign[n] = tk_sign(targets, row, k);
        rows->omega[n] = tk_omega(targets, row, k);
        rows->target[n] = tk_target(targets, row, k);
        rows->f[n] = rows->sign[n] * (block->margin[i * n_outputs + k] + rows->target[n]);
        rows->alpha[n] = dual->alpha[row * n_outputs + k];
        block->some[n++] = (int32_t)i;
    }
    rows->C = dual->C;
    rows->n = n;
    rows->gram = gram_of_some(block, n);
}

/* Rounds over all rows, and from the third on over those that the one before has moved: most of the others are at a
 * bound, and stay there. */
static void take_sweeps(tk_swept *rows, int32_t sweeps)
{
    double first = 0;
    for (int32_t s = 0; s < sweeps; s++) {
        if (s < 2)
            for (rows->n_moving = 0; rows->n_moving < rows->n; rows->n_moving++)
                rows->moving[rows->n_moving] = rows->n_moving;
        const double largest = tk_sweep(rows, 0.001 * first);
        if (s == 0)
            first = largest;
        else if (largest <= 0.05 * first)
            return;
    }
}

static void take_output(const tk_training *training, tk_dual *dual, tk_block *block, int32_t k)
{
    const int64_t n_outputs = training->targets->n_outputs;
    const tk_swept *rows = &block->swept;
    choose_rows(training, dual, block, k);
    take_sweeps(&block->swept, dual->sweeps);
    for (int64_t i = 0; i < rows->n; i++) {
        const int64_t at = block->some[i] * n_outputs + k;
        double *alpha = dual->alpha + block->row[block->some[i]] * n_outputs + k;
        const double change = rows->alpha[i] - *alpha;
        /* |w + dw|^2 = |w|^2 + <dw, 2 w + dw>, of which outputs before and after are the parts */
        dual->norm2[k] += dual->C * change * (block->margin[at] + rows->target[i] + rows->sign[i] * rows->f[i]);
        block->t[at] = change * rows->sign[i];
        *alpha = rows->alpha[i];
    }
}

/* Every step-th output, from the first on. */
static void take_outputs(const tk_training *training, tk_dual *dual, tk_block *block, int32_t first, int32_t step)
{
    const int32_t n_outputs = training->targets->n_outputs;
    for (int32_t k = first; k < n_outputs; k += step)
        if (is_live(dual, k))
            take_output(training, dual, block, k);
        else
            for (int64_t i = 0; i < block->n; i++)
                block->t[i * n_outputs + k] = 0;
}

/* All outputs of a row together. */

/* The row's alphas after a step, and their largest change; NULL: none. */
static const double *joint_step(const tk_training *training, const tk_dual *dual, const tk_block *block, int64_t i,
                                double q, double *largest)
{
    const tk_targets *targets = training->targets;
    const int32_t n = targets->n_outputs;
    const int64_t row = block->row[i];
    const int32_t y = tk_class_of(targets, row);
    const double *old = dual->alpha + row * n, omega = tk_omega(targets, row, y);
    double *new = block->outputs, change = 0;
    for (int32_t k = 0; k < n; k++)
        new[k] = old[k];
    q = q > 1e-12 ? q : 1e-12; /* a row without features: nothing depends on it */
    targets->loss->joint.step(n, new, omega, block->margin + i * n, q, y, new + n);
    for (int32_t k = 0; k < n; k++)
        change = fmax(change, fabs(new[k] - old[k]));
    *largest = fmax(*largest, change);
    return change > 1e-14 * omega ? new : NULL; /* less than that is rounding */
}

static double joint_sweep(const tk_training *training, tk_dual *dual, tk_block *block)
{
    const int64_t n = block->n, n_outputs = training->targets->n_outputs;
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *gram = block->gram + i * n;
        const double *new = joint_step(training, dual, block, i, dual->C * gram[i], &largest);
        double *alpha = dual->alpha + block->row[i] * n_outputs;
        for (int64_t k = 0; new && k < n_outputs; k++) {
            const double change = new[k] - alpha[k], by = dual->C * change;
            alpha[k] = new[k];
            if (change != 0)
                for (int64_t j = 0; j < n; j++)
                    block->margin[j * n_outputs + k] += by * gram[j];
        }
    }
    return largest;
}

static void sweep_rows(const tk_training *training, tk_dual *dual, tk_block *block)
{
    const int64_t n_outputs = training->targets->n_outputs;
    for (int64_t i = 0; i < block->n; i++)
        for (int64_t k = 0; k < n_outputs; k++)
            block->t[i * n_outputs + k] = dual->alpha[block->row[i] * n_outputs + k];
    const double enough = 0.05 * joint_sweep(training, dual, block);
    for (int s = 1; s < dual->sweeps && joint_sweep(training, dual, block) > enough; s++)
        ;
    for (int64_t i = 0; i < block->n; i++)
        for (int64_t k = 0; k < n_outputs; k++) {
            const int64_t at = i * n_outputs + k, of_row = block->row[i] * n_outputs + k;
            const double change = dual->alpha[of_row] - block->t[at];
            dual->norm2[k] += dual->C * change * (dual->margin[of_row] + block->margin[at]);
            block->t[at] = change;
        }
}

/* What is to be known of a row before the block is swept. */
static void see_row(const tk_training *training, const tk_block *block, int64_t i, void *state)
{
    tk_dual *dual = state;
    const int64_t n_outputs = training->targets->n_outputs;
    double largest = 0;
    for (int64_t k = 0; k < n_outputs; k++)
        dual->margin[block->row[i] * n_outputs + k] = block->margin[i * n_outputs + k];
    block->wanted[i] = tk_is_joint(training->targets) ? joint_step(training, dual, block, i, dual->C, &largest) != NULL
                                                      : is_movable(training, dual, block, i);
}

/* What is to be done when all steps have been taken. */
static void end_block(const tk_training *training, tk_block *block, void *state)
{
    tk_dual *dual = state;
    tk_keep_changed(training, block);
    dual->changed += block->n;
    tk_coefficients(training, block, dual->C, NULL);
}

/* Takes the steps that change a block's alphas, where they are not for several outputs by themselves. Its Gram matrix
 * is quicker made than taken to another thread. */
static void take_steps(const tk_training *training, tk_block *block, void *state)
{
    tk_dual *dual = state;
    tk_keep_wanted(training, block);
    if (block->n == 0)
        return;
    tk_gram(&block->rows, training->update, 0, block->n, block->gram, block->for_gram);
    if (tk_is_joint(training->targets)) /* the steps depend on one another, row after row */
        sweep_rows(training, dual, block);
    else if (training->targets->n_outputs == 1)
        take_outputs(training, dual, block, 0, 1);
    else
        return;
    end_block(training, block, state);
}

void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual, int32_t me)
{
    const int64_t n_outputs = training->targets->n_outputs;
    tk_block block = tk_carve_block(training, me);
    for (int64_t i = first; i < last; i += training->block) {
        const int64_t n = last - i < training->block ? last - i : training->block;
        for (int64_t b = i + n * me / block.n_threads; b < i + n * (me + 1) / block.n_threads; b++) {
            TK_PREFETCH_LATER(dual->alpha + training->rows->order[b] * n_outputs);
            TK_PREFETCH_LATER(dual->margin + training->rows->order[b] * n_outputs);
        }
        tk_next_block(training, i, last, NULL, &block, see_row, take_steps, dual);
        if (block.n == 0)
            continue;
        if (n_outputs > 1 && !tk_is_joint(training->targets)) {
            take_outputs(training, dual, &block, me, block.n_threads);
            tk_once(training, &block, end_block, dual);
        }
        tk_add_block(training, &block, training->w.values);
    }
}
