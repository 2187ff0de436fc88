/* taylorkern: the whole C interface.
 *
 * A row x of d columns has one feature per monomial of degree at most r,
 *
 *     phi_a(x) = s(x) * m_a * x^a,        a multi-index, |a| <= r
 *
 * with a factor m_a that depends on the monomial only (the metric) and a factor s(x) that depends on the row only.
 * Put a constant coordinate 0 of value 1 in front: a monomial is then a multiset 0 <= j_1 <= ... <= j_r <= d, and its
 * slot in a table is its colexicographic rank, the sum over p of C(j_p + p - 1, p).
 *
 * Nothing here allocates, prints, fails or checks: Python owns all memory and has validated every argument.
 * Functions may be called from several threads at once as long as no two of them write the same memory.
 */
#ifndef TK_H
#define TK_H

#include <stdint.h>

enum {
    TK_MAX_DEGREE = 170,           /* 170! is the largest factorial that a double holds */
    TK_MAX_DENSE_COLUMNS = 1 << 12 /* of rows that are walked dense */
};

typedef enum { TK_FLOAT32 = 0, TK_FLOAT64 = 1 } tk_real;

/* Rows as they were given: CSR, or dense in C order. New numbers of columns are for CSR that is walked sparse, by
 * tk_dot, tk_add or tk_expand.
 *
 * Rows may belong to cells, each of which has tables of its own: their features are 0 in all others, and K~ of rows in
 * different cells is 0. And they may be given several times, shifted and divided into cells otherwise: all of a row's
 * features together are then those of its forms, and K~ is the sum. Neither is for tk_expand. */
typedef struct tk_rows tk_rows;
struct tk_rows {
    tk_real real;           /* type of data, and of every table and vector used with these rows */
    const void *data;       /* CSR: the stored values; dense: [n_rows][n_columns] */
    const int32_t *indices; /* CSR: columns, rising within a row; dense: NULL */
    const int64_t *indptr;  /* CSR: [n_rows + 1]; dense: NULL */
    const int32_t *order;   /* NULL; or where row i is to be found in the arrays above: at order[i] */
    const int32_t *place;   /* NULL; or the new number of each column that rows have */
    int32_t n_front;        /* numbers below this rise as the columns do, and so do the others */
    int32_t n_columns;      /* d; of new numbers, when there are such */
    int32_t max_nonzeros;   /* no row has more nonzeros than this */
    int32_t walk_dense;     /* 1: visit all d <= TK_MAX_DENSE_COLUMNS columns, eight rows at a time; 0: the nonzeros */
    const int64_t *base;    /* NULL; or for each stored row the first slot of its cell's tables */
    const double *beyond; /* NULL; or for each stored row what its columns that have no number add to |x|^2, unscaled */
    const double *factor; /* NULL; or for each stored row its s(x), by tk_factors, under every map that has one and that
                             they are walked with */
    const tk_rows *next;  /* NULL; or another form of the same rows; its order is not looked at */
};

/* The feature map: the monomials, s(x), and the metric m_a. */
typedef struct {
    int32_t degree;         /* r, 1 to TK_MAX_DEGREE */
    int32_t n_columns;      /* d */
    double scale;           /* x stands for scale * (the row as it was given) */
    double decay;           /* s(x) = exp(-decay * |x|^2) */
    int32_t unit;           /* 1: s(x) is instead what makes |phi(x)| = 1; what is beyond the columns does not count */
    const int64_t *ranks;   /* [r + 1][d + 2]: ranks[p][j] = C(j + p - 1, p) */
    const double *constant; /* [r + 1]: factor of a monomial in which coordinate 0 fills exactly the lowest p places */
    const double *repeat; /* [r + 1]: factor for a coordinate that comes up for the e-th time (not 0); repeat[1] = 1 */
    int32_t bare;         /* 1: all of these factors are 1 */
    const double *series; /* [r + 1]: c_k / k!, for tk_gram and unit rows */
} tk_map;

/* K tables over the same slots, interleaved: table[slot * K + k]. */
typedef struct {
    void *values;  /* [n_slots][width] */
    int32_t width; /* K >= 1 */
} tk_table;

/* Bytes of scratch, 64-byte aligned, that a call needs: tk_dot, tk_add and tk_expand for these rows, and tk_weigh. */
int64_t tk_scratch_bytes(const tk_rows *rows);
int64_t tk_weigh_scratch_bytes(tk_real real, const tk_map *map);

/* out[i - first][k] = sum_a phi_a(x_i) table[a][k], for the rows first <= i < last. */
void tk_dot(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, void *out,
            void *scratch);

/* The same in parts: out[p * stride + (i - first) * width + k] is the sum over the slots whose highest coordinate j_r
 * is in tops[p] <= j_r < tops[p + 1] (0 <= j_r <= d). It does not depend on which parts are asked for together. */
typedef struct {
    int32_t n;
    const int32_t *tops; /* [n + 1] rising */
    int64_t stride;      /* entries from one part of out to the next */
} tk_parts;

void tk_dot_parts(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, void *out,
                  void *scratch, const tk_parts *parts);

/* table[a][k] += sum_i t[i - first][k] phi_a(x_i), over the rows first <= i < last, in the order of the rows. */
void tk_add(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, const void *t,
            void *scratch);

/* The same for the slots whose highest coordinate j_r is in top <= j_r < end (0 <= j_r <= d) alone: all such parts, in
 * any order or at once in several threads, make up tk_add, bit for bit. */
void tk_add_part(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                 const void *t, void *scratch, int32_t top, int32_t end);

/* s[i - first] = s(x_i) of the rows first <= i < last: 0 where the row has no features, or where it is so far out that
 * its s(x) is to be computed when the row is walked. */
void tk_factors(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *s);

/* Features, one row after the other. */
typedef struct {
    void *slots;  /* [room] int64_t when wide, else int32_t */
    void *values; /* [room] */
    int64_t room;
    int32_t wide;
} tk_features;

/* The features of the rows first <= i < last, slots rising within a row: exactly C(m + r, r) of them for a row of m
 * nonzeros. There has to be room for them all. */
void tk_expand(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_features *out,
               void *scratch);

/* table[a][k] *= m_a, for the slots whose highest coordinate j_r is in first <= j_r < last (0 <= j_r <= d). */
void tk_weigh(tk_real real, const tk_map *map, int32_t first, int32_t last, const tk_table *table, void *scratch);

/* Tables with a step size for each slot: AdaGrad's. */
typedef struct {
    void *values;  /* [n_slots][width] */
    void *squares; /* [n_slots][width]: sums of squared gradients, > 0 */
    int32_t width;
    double eta;
    const void *rate; /* NULL; or [width], in the type of the tables: table k takes steps of rate[k] * eta */
} tk_adaptive;

/* For the rows first <= i < last one after the other (dense walks: up to eight at a time, of one cell, their gradients
 * summed up) and each table k: g = t[i - first][k] phi_a(x_i), then squares[a][k] += g^2 and values[a][k] += eta g /
 * sqrt(squares[a][k]).
 */
void tk_adapt(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
              const void *t, void *scratch);
/* The same for the slots whose highest coordinate is in top <= j_r < end; see tk_add_part. */
void tk_adapt_part(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
                   const void *t, void *scratch, int32_t top, int32_t end);

/* gram[i - first][j - first] = K~(x_i, x_j), in closed form, for the rows first <= i, j < last; it is symmetric to the
 * last bit. Scratch, for at most n rows: zero before the first call; a call leaves zero what the next one wants zero.
 */
int64_t tk_gram_scratch_bytes(const tk_rows *rows, int64_t n);
void tk_gram(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch);

/* Whether n values are all finite and, when that is asked for, none of them is 0. */
int tk_all_finite(tk_real real, const void *values, int64_t n, int nonzero);

/* counts[m] += 1 for each of the rows first <= i < last that has m nonzeros (CSR: stored entries). */
void tk_count_nonzeros(const tk_rows *rows, int64_t first, int64_t last, int64_t *counts);

/* squares[i - first] = |x_i|^2 of the rows first <= i < last, unscaled and in double precision. */
void tk_squares(const tk_rows *rows, int64_t first, int64_t last, double *squares);

/* t[i] becomes exp(-t) sum_{k > degree} t^k / k! of it, t >= 0: the share of |phi(x)|^2 that is cut, in rows of |x|^2 =
 * t when scaled. */
void tk_cut_shares(double *t, int64_t n, int32_t degree);

/* Of the stored rows 0, step, 2 step, ... below n_rows: how many have column j stored (all of dense rows), and in how
 * many of these it is by[j]; both are added to. by is in the type of the rows. */
void tk_count_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const void *by, int32_t *stored,
                      int32_t *equal);

/* Of the same rows, some columns: column j becomes values[line[j]], [lines][rows looked at], or is left out when that
 * is below 0. What is not stored stays as it is in values. */
void tk_take_columns(const tk_rows *rows, int64_t n_rows, int64_t step, const int32_t *line, void *values);

/* Centres of cells, in some of the columns. */
typedef struct {
    int32_t n_cells;
    const int32_t *use;   /* [n_columns] a column's number among those that are looked at, or -1 */
    const double *values; /* [columns looked at][n_cells padded to TK_CELL_GROUP] the centres */
    const double *half;   /* [n_cells padded] half of a centre's squared norm; infinite for what is padding */
} tk_centres;

enum { TK_CELL_GROUP = 64 };

/* cell[i - first]: the centre that is nearest to row i, the first of them when there are several. */
void tk_nearest(const tk_rows *rows, const tk_centres *centres, int64_t first, int64_t last, int32_t *cell);

/* Rows shifted by a vector, their columns renumbered: new rows in CSR. */
typedef struct {
    const int32_t *cell;      /* NULL: one cell; or [n_rows], by where a row is stored, the cell of each */
    int32_t n_columns;        /* that by and place have; rows may have fewer */
    const void *by;           /* [cells][n_columns], in the type of the rows */
    const int64_t *moved_ptr; /* [cells + 1] */
    const int32_t *moved;     /* [moved_ptr[cell]] .. are the columns where it is not 0, rising */
    const int32_t *place;     /* [cells][n_columns] the new number of each column; or -1: it is left out, and */
    double *beyond;           /* [n_rows] OUT what those add to |x|^2; NULL when there are none */
    int64_t *indptr;          /* [n_rows + 1] */
    int32_t *indices;         /* NULL: indptr[i + 1] becomes the number of entries of row i; else they are written */
    void *data;
    void *scratch;  /* of tk_shift_scratch_bytes(), 0 at first, to write entries; NULL: they are sorted */
    int32_t append; /* 1: only indptr[first] is known, and indptr[i + 1] becomes where row i ends that is written */
} tk_shift;

int64_t tk_shift_scratch_bytes(int32_t n_columns);
void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last);

/* What is asked of the rows. Each has K outputs f_k(x) = <w_k, phi(x)>. All arrays of one entry for each row are
 * indexed by where a row is stored, not by its place in an order.
 *
 * A loss looks at one output at a time, by the margin v = y f (of labels) or v = f - target (of numbers); or it is a
 * joint one, which looks at all f of a row, and v = f. They are numbered from 0 on; see train/losses.h and loss.h. */
typedef struct tk_loss tk_loss;

int32_t tk_n_losses(void);
const tk_loss *tk_loss_at(int32_t number);

typedef struct {
    const tk_loss *loss;
    double epsilon;       /* of the losses that have such a parameter */
    int32_t n_outputs;    /* K */
    const int8_t *y;      /* [n_rows][K] -1 or 1; joint losses: 1 for the row's class; NULL for numbers */
    const double *target; /* [n_rows][K] for numbers, else NULL */
    const double *weight; /* [n_rows] > 0; NULL: all 1 */
    const double *favour; /* [K] a further weight for the rows with y = 1; NULL: all 1 */
} tk_targets;

/* What the objectives are made of, for the rows which[first] .. which[last - 1] (NULL: first .. last - 1). A joint loss
 * counts as one problem, else there is one for each output. omega is a row's weight, p = alpha / omega. */
typedef struct {
    const double *alpha;  /* [n_rows][K]; NULL: all 0 */
    const double *margin; /* [n_rows][K] v */
    const uint8_t *live;  /* NULL; or [K], 0 for outputs that are not looked at; not for joint losses */
    double *sums;         /* [4][problems], added to: omega loss(v); the dual's omega g(p) + alpha target; the gap,
                             omega (loss(v) - g(p)) + alpha v; and alpha y f */
    uint8_t *active;      /* NULL; or [n_rows] OUT: whether a row may yet want to move; those that may not are not in
                             the sums */
    const double *slack;  /* [problems], with active: how much a margin may yet change, */
    const double *near;   /* and how near, relatively, a p without bounds has to be to where it should be */
} tk_terms;

void tk_terms_pass(const tk_targets *targets, const int32_t *which, int64_t first, int64_t last, const tk_terms *terms);

/* margin[i][k] for the rows first <= i < last, from their outputs f[i - first][k], k < K <= width. */
void tk_margins(const tk_targets *targets, tk_real real, const void *f, int32_t width, int64_t first, int64_t last,
                double *margin);

/* alpha[i][k] for the rows first <= i < last: the dual point that goes with the slopes of the losses at margins v. */
void tk_slopes(const tk_targets *targets, const double *margin, int64_t first, int64_t last, double *alpha);

/* Threads that run a pass together: each of them calls it, with its own number `me`, and they meet at barriers inside.
 * What they compute does not depend on how many they are. */
typedef struct {
    int32_t n;              /* threads */
    int32_t arrived, round; /* 0 at first */
} tk_team;

/* Training. A pass takes the rows order[first] .. order[last - 1], in blocks. */
typedef struct {
    const tk_rows *rows;  /* with an order */
    const tk_map *margin; /* f(x) is the inner product of these monomials with the table; */
    const tk_map *update; /* these are added to it: their metric times that of margin is c_|a| / a! */
    tk_table w;           /* [n_slots][width], width >= K: what is beyond K is padding */
    const tk_targets *targets;
    int32_t block;         /* rows whose margins are taken together */
    tk_team *team;         /* NULL: one thread */
    const int32_t *shares; /* [threads + 1] rising from 0 to d + 1: each thread updates the slots whose highest
                              coordinate is in its range */
    int32_t n_parts;       /* margins are sums over so many ranges of the highest coordinate, */
    const int32_t *parts;  /* [n_parts + 1] which rise from 0 to d + 1 and do not depend on how many threads there are.
                              Where those are as many for each part, a thread reads the slots of one part only, among
                              them those that it updates: they stay in its cache */
    void *scratch;         /* tk_training_scratch_bytes of it, 64-byte aligned, all zero before the first pass */
} tk_training;

int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block, int32_t n_outputs, int32_t width, int32_t n_parts,
                                  int32_t n_threads);

/* Dual coordinate ascent. */
typedef struct {
    double C;            /* w_k = C sum_i alpha_ik y_ik phi(x_i) */
    double *alpha;       /* [n_rows][K] */
    double *margin;      /* [n_rows][K] OUT: v as it was when the row was visited */
    double *norm2;       /* [K] |w_k|^2, kept up to date */
    const uint8_t *live; /* NULL; or [K], 0 for outputs that stay as they are; not for joint losses */
    int32_t sweeps;      /* over each block, at most */
    int64_t changed;     /* OUT: rows of which an alpha changed are counted on */
} tk_dual;

void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual, int32_t me);

/* Pegasos: w_k = scale_k * values; a step for each block. */
typedef struct {
    double lambda;
    double share;         /* of a row in a step: blocks of an epoch / rows of an epoch */
    int64_t t;            /* steps done */
    double *scale;        /* [K] begins as 1 */
    double *alpha;        /* [n_rows][K] values = sum_i alpha_ik y_ik phi(x_i) */
    double *norm2;        /* [K] |w_k|^2, kept up to date when there is a radius */
    const double *radius; /* NULL; or [problems]: after each step w is projected to |w| <= radius */
    void *average;        /* NULL; or [n_slots][width], begins as 0: the mean of the last n_averaged iterates is
                             (average + shift * values) / n_averaged */
    double *shift;        /* [K] begins as 0 */
    int64_t n_averaged;
} tk_pegasos;

void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos, int32_t me);

/* AdaGrad, for the loss alone; the regulariser is applied by tk_shrink now and then. */
void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state, int32_t me);

/* values[a] /= 1 + factor * rate / sqrt(squares[a]), for first <= a < last, counted over all tables. */
void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last);

/* Where monomials over reordered columns are in a table over the columns' own order: slots[k] belongs to slot
 * ranks[r][first] + k of the map, up to the last whose highest coordinate j_r is below last. Coordinate j of the map is
 * coordinate own[j] of the table (own[0] = 0), whose ranks are laid out as the map's, with width columns. r > 1. */
void tk_own_slots(const tk_map *map, const int32_t *own, const int64_t *own_ranks, int64_t width, int32_t first,
                  int32_t last, int64_t *slots);

/* Brings n < 2^31 rows into a random order, by as many random numbers. */
void tk_shuffle(int32_t *rows, int64_t n, const uint32_t *draws);

/* Those of n < 2^31 rows that are active, in the same order; rows NULL: 0, 1, 2, ... kept may be rows. Returns how
 * many. */
int64_t tk_active_rows(const int32_t *rows, int64_t n, const uint8_t *active, int32_t *kept);

/* order[i - first]: where the rows first <= i < last < 2^31 of a CSR matrix are stored, those with the same last
 * columns one after the other. Such rows meet what those before them have brought into the caches, for a row's last
 * columns tell where in a table its slots are. Scratch: [2 (last - first)]. */
void tk_sort_rows(const tk_rows *rows, int64_t first, int64_t last, int32_t *order, uint64_t *scratch);

/* What is wrong with the structure of a compressed sparse matrix (CSR; CSC with rows and columns exchanged). */
typedef enum {
    TK_CANONICAL = 0, /* nothing: indices rise strictly within each row */
    TK_UNSORTED,      /* legal, but indices of a row are out of order or repeated */
    TK_INDPTR_START,  /* indptr[0] is not 0 */
    TK_INDPTR_FALLS,  /* indptr[at + 1] < indptr[at] */
    TK_INDPTR_BEYOND, /* indptr[at] is more than the number of stored entries */
    TK_INDEX_RANGE    /* indices[at] is negative or not below n_minor */
} tk_structure;

/* Looks at the rows first to last - 1 of an untrusted structure without reading outside the arrays. *at tells where.
 * Index types: int64_t when wide, else int32_t (both arrays alike). */
tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t first, int64_t last,
                                int64_t n_minor, int64_t n_stored, int64_t *at);

/* Instruction sets compiled in, best first, and whether this CPU and operating system can run each. */
int tk_n_instruction_sets(void);
const char *tk_instruction_set_name(int i);
int tk_instruction_set_usable(int i);
/* The one in use, chosen at the first call of tk_init as the best usable; tk_use_instruction_set is for tests. */
void tk_init(void);
int tk_instruction_set(void);
void tk_use_instruction_set(int i);

#endif
