#include "blocks.h"

static int64_t aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The parts of a block's scratch: first what threads share, then what each has of its own. */
enum {
    ROW,
    MARGIN,
    T,
    REALS,
    GRAM,
    WANTED,
    KEPT,
    FACTORS,
    GRAM_SCRATCH,
    N_SHARED,
    PART = N_SHARED,
    F,
    ALPHA,
    SIGN,
    OMEGA,
    TARGET,
    SOME,
    MOVING,
    OUTPUTS,
    WALK,
    N_PARTS
};

static void sizes(const tk_rows *rows, int64_t block, int64_t n_outputs, int64_t width, int64_t n_parts, int64_t *bytes)
{
    bytes[ROW] = bytes[SOME] = bytes[MOVING] = block * 4;
    bytes[MARGIN] = bytes[T] = block * n_outputs * 8;
    bytes[REALS] = n_parts * block * width * 8;
    bytes[GRAM] = (block * block + SPARE) * 8;
    bytes[WANTED] = block;
    bytes[KEPT] = 8;
    bytes[GRAM_SCRATCH] = tk_gram_scratch_bytes(rows, block);
    bytes[PART] = n_outputs > 1 ? bytes[GRAM] : 0;
    bytes[F] = (block + SPARE) * 8;
    bytes[ALPHA] = bytes[SIGN] = bytes[OMEGA] = bytes[TARGET] = block * 8;
    bytes[OUTPUTS] = bytes[FACTORS] = 2 * n_outputs * 8;
    bytes[WALK] = tk_scratch_bytes(rows);
    for (int part = 0; part < N_PARTS; part++)
        bytes[part] = aligned(bytes[part]);
}

static int64_t sum_of(const int64_t *bytes, int first, int last)
{
    int64_t total = 0;
    for (int part = first; part < last; part++)
        total += bytes[part];
    return total;
}

int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block, int32_t n_outputs, int32_t width, int32_t n_parts,
                                  int32_t n_threads)
{
    int64_t bytes[N_PARTS];
    sizes(rows, block, n_outputs, width, n_parts, bytes);
    return sum_of(bytes, 0, N_SHARED) + n_threads * sum_of(bytes, N_SHARED, N_PARTS);
}

tk_block tk_carve_block(const tk_training *training, int32_t me)
{
    int64_t bytes[N_PARTS];
    void *at[N_PARTS];
    char *next = training->scratch;
    sizes(training->rows, training->block, training->targets->n_outputs, training->w.width, training->n_parts, bytes);
    for (int part = 0; part < N_PARTS; part++) {
        if (part == N_SHARED)
            next += me * sum_of(bytes, N_SHARED, N_PARTS);
        at[part] = next;
        next += bytes[part];
    }
    tk_block b = {.rows = *training->rows,
                  .row = at[ROW],
                  .margin = at[MARGIN],
                  .t = at[T],
                  .gram = at[GRAM],
                  .reals = at[REALS],
                  .wanted = at[WANTED],
                  .kept = at[KEPT],
                  .factors = at[FACTORS],
                  .swept = {.targets = training->targets,
                            .f = at[F],
                            .alpha = at[ALPHA],
                            .sign = at[SIGN],
                            .omega = at[OMEGA],
                            .target = at[TARGET],
                            .moving = at[MOVING]},
                  .part = at[PART],
                  .some = at[SOME],
                  .outputs = at[OUTPUTS],
                  .for_gram = at[GRAM_SCRATCH],
                  .for_walk = at[WALK],
                  .me = me,
                  .n_threads = tk_team_size(training->team)};
    b.rows.order = b.row;
    return b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum { MOST_FETCHED = 256 }; /* bytes of a row: processors go on by themselves */

/* Rows come in random order, and large data is in no cache: these will be there when it is their turn. Where they begin
 * is known by then, see fetch_ends. */
static void fetch_rows(const tk_training *training, int64_t first, int64_t last)
{
    const tk_targets *targets = training->targets;
    const int64_t real = training->rows->real == TK_FLOAT64 ? 8 : 4;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = training->rows->order[i];
        for (const tk_rows *rows = training->rows; rows; rows = rows->next) {
            const int64_t d = rows->n_columns, begin = rows->indptr ? rows->indptr[row] : row * d;
            const int64_t n = rows->indptr ? rows->indptr[row + 1] - begin : d;
            tk_fetch((const char *)rows->data + begin * real, least(n * real, MOST_FETCHED), 1);
            if (rows->indptr)
                tk_fetch(rows->indices + begin, least(n * 4, MOST_FETCHED), 1);
            if (rows->factor)
                TK_PREFETCH_LATER(rows->factor + row);
        }
        if (targets->y)
            TK_PREFETCH_LATER(targets->y + row * targets->n_outputs);
        else
            TK_PREFETCH_LATER(targets->target + row * targets->n_outputs);
    }
}

static void fetch_ends(const tk_training *training, int64_t first, int64_t last)
{
    const int32_t *order = training->rows->order;
    for (const tk_rows *rows = training->rows; rows && rows->indptr; rows = rows->next)
        for (int64_t i = first; i < last; i++)
            TK_PREFETCH_LATER(rows->indptr + order[i]);
}

static double output(const tk_training *training, const tk_block *block, int64_t i, int32_t k)
{
    const int64_t width = training->w.width;
    double f = 0;
    for (int64_t p = 0; p < training->n_parts; p++) {
        const int64_t at = (p * training->block + i) * width + k;
        f += training->rows->real == TK_FLOAT64 ? ((double *)block->reals)[at] : ((float *)block->reals)[at];
    }
    return f;
}

/* A block under way: its first row, and what tk_next_block was told. */
typedef struct {
    int64_t first, last;
    const double *scale;
    tk_see *see;
    void *state;
} block_call;

static void see_rows(const tk_training *training, const block_call *call, tk_block *block, int64_t begin, int64_t end)
{
    const tk_targets *targets = training->targets;
    const int32_t n_outputs = targets->n_outputs;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = block->row[i] = training->rows->order[call->first + i];
        for (int32_t k = 0; k < n_outputs; k++)
            block->margin[i * n_outputs + k] =
                (call->scale ? call->scale[k] : 1) * output(training, block, i, k) * tk_sign(targets, row, k)
                - tk_target(targets, row, k);
        call->see(training, block, i, call->state);
    }
}

enum { FEW = 8, MANY = 32 }; /* rows that are walked together: sparse or of one table; dense ones of several tables */

/* Outputs of some rows, of some of the parts. As many rows of the next block are fetched meanwhile; sparse ones a few
 * at a time, for they are more cache lines than can be under way at once. */
static void take_margins(const tk_training *training, const block_call *call, tk_block *block, int64_t begin,
                         int64_t end, int32_t part, int32_t n_parts)
{
    const int64_t width = training->w.width, real = training->rows->real == TK_FLOAT64 ? 8 : 4;
    const tk_parts parts = {n_parts, training->parts + part, training->block * width};
    const int64_t last = call->last, next = call->first + training->block, next_but_one = next + training->block;
    for (int64_t to; begin < end; begin = to) {
        to = training->rows->walk_dense ? end : least(begin + FEW, end);
        fetch_ends(training, least(next_but_one + begin, last), least(next_but_one + to, last));
        fetch_rows(training, least(next + begin, last), least(next + to, last));
        tk_dot_parts(training->rows, training->margin, call->first + begin, call->first + to, &training->w,
                     (char *)block->reals + (part * parts.stride + begin * width) * real, block->for_walk, &parts);
    }
}

void tk_once(const tk_training *training, tk_block *block, tk_alone *work, void *state)
{
    if (tk_arrive(training->team)) {
        work(training, block, state);
        *block->kept = block->n;
        tk_release(training->team);
    }
    block->n = *block->kept;
}

void tk_next_block(const tk_training *training, int64_t first, int64_t last, const double *scale, tk_block *block,
                   tk_see *see, tk_alone *then, void *state)
{
    const block_call call = {first, last, scale, see, state};
    /* Either threads are as many for each part, or each sees all of them; and each has some of the rows. */
    const int32_t teams = block->n_threads % training->n_parts == 0 ? training->n_parts : 1;
    const int32_t together = training->n_parts / teams, in_team = block->n_threads / teams, me = block->me % in_team;
    const int64_t n = block->n = least(last - first, training->block);
    const int64_t step = training->rows->walk_dense && training->w.width > 1 ? MANY : FEW;
    const int64_t begin = n * me / in_team / step * step;
    const int64_t end = me + 1 == in_team ? n : n * (me + 1) / in_team / step * step;
    take_margins(training, &call, block, begin, end, block->me / in_team * together, together);
    if (teams == 1) {
        see_rows(training, &call, block, begin, end);
    } else {
        tk_meet(training->team);
        see_rows(training, &call, block, n * block->me / block->n_threads, n * (block->me + 1) / block->n_threads);
    }
    tk_once(training, block, then, state);
}

/* Row `from` of the block becomes row `to`. */
static void move_row(const tk_training *training, tk_block *block, int64_t to, int64_t from)
{
    const int64_t n_outputs = training->targets->n_outputs;
    if (to == from)
        return;
    block->row[to] = block->row[from];
    for (int64_t k = 0; k < n_outputs; k++) {
        block->margin[to * n_outputs + k] = block->margin[from * n_outputs + k];
        block->t[to * n_outputs + k] = block->t[from * n_outputs + k];
    }
}

void tk_keep_wanted(const tk_training *training, tk_block *block)
{
    int64_t n = 0;
    for (int64_t i = 0; i < block->n; i++)
        if (block->wanted[i])
            move_row(training, block, n++, i);
    block->n = n;
}

void tk_keep_changed(const tk_training *training, tk_block *block)
{
    const int64_t n_outputs = training->targets->n_outputs;
    for (int64_t i = 0; i < block->n; i++) {
        block->wanted[i] = 0;
        for (int64_t k = 0; k < n_outputs; k++)
            block->wanted[i] |= block->t[i * n_outputs + k] != 0;
    }
    tk_keep_wanted(training, block);
}

void tk_coefficients(const tk_training *training, tk_block *block, double factor, const double *factors)
{
    const int64_t n_outputs = training->targets->n_outputs, width = training->w.width;
    for (int64_t i = 0; i < block->n; i++)
        for (int64_t k = 0; k < width; k++) {
            const double by = factors && k < n_outputs ? factor * factors[k] : factor;
            const double t = k < n_outputs ? by * block->t[i * n_outputs + k] : 0;
            if (block->rows.real == TK_FLOAT64)
                ((double *)block->reals)[i * width + k] = t;
            else
                ((float *)block->reals)[i * width + k] = (float)t;
        }
}

void tk_add_block(const tk_training *training, tk_block *block, void *table)
{
    const tk_table to = {table, training->w.width};
    const int32_t *share = training->shares + block->me;
    tk_add_part(&block->rows, training->update, 0, block->n, &to, block->reals, block->for_walk, share[0], share[1]);
    tk_meet(training->team);
}
