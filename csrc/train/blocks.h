/* What the training passes share: a block of rows and its margins. */
#ifndef TK_BLOCKS_H
#define TK_BLOCKS_H

#include <stddef.h>

#include "kernels.h"
#include "loss.h"
#include "team.h"

/* The block at hand, carved out of the scratch of a pass. Threads share all of it but what is marked as each one's own;
 * what they share is written by one thread, or by each its part, between two barriers. */
typedef struct {
    tk_rows rows;    /* with an order of n rows: those of the block */
    int64_t n;       /* rows; the same in each thread */
    int32_t *row;    /* [block] where they are stored */
    double *margin;  /* [block][K] v */
    double *t;       /* [block][K] the coefficients that a step makes of them */
    double *gram;    /* [block][block] */
    void *reals;     /* [n_parts][block][width] outputs, or [block][width] coefficients, in the type of the rows */
    uint8_t *wanted; /* [block] whether a step has a use for the row */
    int64_t *kept;   /* [1] how many rows are left */
    double *factors; /* [2][K] what coefficients are multiplied by */
    void *for_gram;  /* scratch of tk_gram, for whoever is alone with the block */
    tk_swept swept;  /* own: with room for a block */
    double *part;    /* own: [block][block] the Gram matrix of swept rows, if they are not all; */
    int32_t *some;   /* own: [block] which of the block they are */
    double *outputs; /* own: [2][K] of one row */
    void *for_walk;  /* own */
    int32_t me, n_threads;
} tk_block;

tk_block tk_carve_block(const tk_training *training, int32_t me);

/* What a step makes of row i of a block and its margins, whatever the others are; in any thread. */
typedef void tk_see(const tk_training *training, const tk_block *block, int64_t i, void *state);

/* What one thread does alone with a block; it may leave fewer rows in it. */
typedef void tk_alone(const tk_training *training, tk_block *block, void *state);

/* When all threads have come here the last of them does that; then all go on, and know how many rows are left. */
void tk_once(const tk_training *training, tk_block *block, tk_alone *work, void *state);

/* The rows from order[first] on, but before order[last], and their margins under w, or scale_k * w_k. All threads call
 * it; when it returns, `see` has been called for each row, and `then` once for all. */
void tk_next_block(const tk_training *training, int64_t first, int64_t last, const double *scale, tk_block *block,
                   tk_see *see, tk_alone *then, void *state);

/* Keeps the rows that are wanted; and those that have a coefficient other than 0. For one thread. */
void tk_keep_wanted(const tk_training *training, tk_block *block);
void tk_keep_changed(const tk_training *training, tk_block *block);

/* factor * factors_k * t_k (NULL: all 1) in the type of the rows; 0 for the padding. For one thread. */
void tk_coefficients(const tk_training *training, tk_block *block, double factor, const double *factors);

/* table_k += the sum over the block's rows of their coefficients times phi(x_i). All threads call it. */
void tk_add_block(const tk_training *training, tk_block *block, void *table);

#endif
