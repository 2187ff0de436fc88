/* What the training passes share: a block of rows and its margins. */
#ifndef TK_TRAIN_H
#define TK_TRAIN_H

#include "tk.h"

/* The block at hand, carved out of the scratch of a pass. */
typedef struct {
    tk_rows rows;   /* with an order of n rows: those of the block */
    int64_t n;      /* rows */
    int32_t *row;   /* [block] where they are stored */
    double *margin; /* [block] y f(x) */
    double *t;      /* [block] the coefficients that a step makes of them */
    double *gram;   /* [block][block] */
    void *reals;    /* [block] margins or coefficients, in the type of the rows */
    void *for_gram, *for_walk;
} tk_block;

tk_block tk_carve_block(const tk_training *training);

/* The rows from order[first] on, but before order[last], and their margins under scale * w. */
void tk_next_block(const tk_training *training, int64_t first, int64_t last, double scale, tk_block *block);

/* Keeps the rows whose coefficient is not 0. */
void tk_keep_changed(tk_block *block);

/* factor * t in the type of the rows. */
const void *tk_coefficients(tk_block *block, double factor);

/* table += factor * sum_i t_i phi(x_i), over the block. */
void tk_add_block(const tk_training *training, tk_block *block, double factor, void *table);

static inline double tk_weight(const tk_training *training, int64_t row)
{
    return training->weight ? training->weight[row] : 1;
}

#endif
