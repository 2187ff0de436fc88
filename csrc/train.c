#include "train.h"

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block)
{
    const int64_t vector = aligned(block * (int64_t)sizeof(double));
    return 4 * vector + aligned(block * (int64_t)block * 8) + aligned(tk_gram_scratch_bytes(rows, block))
           + tk_scratch_bytes(rows);
}

tk_block tk_carve_block(const tk_training *training)
{
    const int64_t n = training->block, vector = aligned(n * (int64_t)sizeof(double));
    char *at = training->scratch;
    tk_block b = {.rows = *training->rows};
    b.for_gram = at;
    at += aligned(tk_gram_scratch_bytes(training->rows, n));
    b.row = (int32_t *)at;
    at += vector;
    b.margin = (double *)at;
    at += vector;
    b.t = (double *)at;
    at += vector;
    b.reals = at;
    at += vector;
    b.gram = (double *)at;
    at += aligned(n * n * 8);
    b.for_walk = at;
    b.rows.order = b.row;
    return b;
}

void tk_next_block(const tk_training *training, int64_t first, int64_t last, double scale, tk_block *block)
{
    const tk_rows *rows = training->rows;
    const tk_table table = {training->w, 1};
    block->n = last - first < training->block ? last - first : training->block;
    for (int64_t i = 0; i < block->n; i++)
        block->row[i] = rows->order[first + i];
    tk_dot(&block->rows, training->margin, 0, block->n, &table, block->reals, block->for_walk);
    for (int64_t i = 0; i < block->n; i++) {
        const double f = rows->real == TK_FLOAT64 ? ((double *)block->reals)[i] : ((float *)block->reals)[i];
        block->margin[i] = scale * f * training->y[block->row[i]];
    }
}

void tk_keep_changed(tk_block *block)
{
    int64_t n = 0;
    for (int64_t i = 0; i < block->n; i++)
        if (block->t[i] != 0) {
            block->row[n] = block->row[i];
            block->t[n++] = block->t[i];
        }
    block->n = n;
}

const void *tk_coefficients(tk_block *block, double factor)
{
    for (int64_t i = 0; i < block->n; i++)
        if (block->rows.real == TK_FLOAT64)
            ((double *)block->reals)[i] = factor * block->t[i];
        else
            ((float *)block->reals)[i] = (float)(factor * block->t[i]);
    return block->reals;
}

void tk_add_block(const tk_training *training, tk_block *block, double factor, void *table)
{
    const tk_table to = {table, 1};
    tk_add(&block->rows, training->update, 0, block->n, &to, tk_coefficients(block, factor), block->for_walk);
}
