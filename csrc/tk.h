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
    TK_MAX_DENSE_COLUMNS = 1 << 15 /* of rows that are walked dense */
};

typedef enum { TK_FLOAT32 = 0, TK_FLOAT64 = 1 } tk_real;

/* Rows as they were given: CSR, or dense in C order. New numbers of columns are for CSR that is walked sparse, by
 * tk_dot, tk_add or tk_expand. */
typedef struct {
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
} tk_rows;

/* The feature map: the monomials, s(x), and the metric m_a. */
typedef struct {
    int32_t degree;         /* r, 1 to TK_MAX_DEGREE */
    int32_t n_columns;      /* d */
    double scale;           /* x stands for scale * (the row as it was given) */
    double decay;           /* s(x) = exp(-decay * |x|^2) */
    const int64_t *ranks;   /* [r + 1][d + 2]: ranks[p][j] = C(j + p - 1, p) */
    const double *constant; /* [r + 1]: factor of a monomial in which coordinate 0 fills exactly the lowest p places */
    const double *repeat;   /* [r + 1]: factor for a coordinate that comes up for the e-th time (not coordinate 0) */
    int32_t bare;           /* 1: all of these factors are 1 */
    const double *series;   /* [r + 1]: c_k / k!, for tk_gram */
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

/* table[a][k] += sum_i t[i - first][k] phi_a(x_i), over the rows first <= i < last, in the order of the rows. */
void tk_add(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, const void *t,
            void *scratch);

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

/* A table with a step size for each slot: AdaGrad's. */
typedef struct {
    void *values;  /* [n_slots] */
    void *squares; /* [n_slots]: sums of squared gradients, > 0 */
    double eta;
} tk_adaptive;

/* For the rows first <= i < last one after the other (dense walks: eight at a time, their gradients summed up):
 * g_a = t[i - first] phi_a(x_i), then squares[a] += g_a^2 and values[a] += eta g_a / sqrt(squares[a]). */
void tk_adapt(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
              const void *t, void *scratch);

/* gram[i - first][j - first] = K~(x_i, x_j), in closed form, for the rows first <= i, j < last. Scratch, for at most n
 * rows: zero before the first call; a call leaves zero what the next one wants zero. */
int64_t tk_gram_scratch_bytes(const tk_rows *rows, int64_t n);
void tk_gram(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch);

/* Rows shifted by a vector, their columns renumbered: new rows in CSR. */
typedef struct {
    const void *by;       /* [n_columns], in the type of the rows */
    const int32_t *moved; /* [n_moved] the columns where it is not 0, rising */
    int32_t n_moved;
    const int32_t *place; /* [n_columns] the new number of each column */
    int64_t *indptr;      /* [n_rows + 1] */
    int32_t *indices; /* NULL: indptr[first + 1 ..] is counted up from indptr[first]; else the entries are written */
    void *data;
} tk_shift;

void tk_shift_rows(const tk_rows *rows, const tk_shift *shift, int64_t first, int64_t last);

/* Training. A pass takes the rows order[first] .. order[last - 1], in blocks. All arrays of one entry for each row are
 * indexed by where a row is stored, not by its place in the order. */
typedef enum { TK_HINGE = 0, TK_SQUARED_HINGE = 1, TK_LOG_LOSS = 2 } tk_loss; /* see loss.h */

typedef struct {
    const tk_rows *rows;  /* with an order */
    const tk_map *margin; /* f(x) is the inner product of these monomials with the table; */
    const tk_map *update; /* these are added to it: their metric times that of margin is c_|a| / a! */
    void *w;              /* [n_slots] */
    tk_loss loss;
    const int8_t *y;      /* [n_rows] -1 or 1 */
    const double *weight; /* [n_rows] omega_i > 0; NULL: all 1 */
    int32_t block;        /* rows whose margins are taken together */
    void *scratch;        /* tk_training_scratch_bytes of it, 64-byte aligned, all zero before the first pass */
} tk_training;

int64_t tk_training_scratch_bytes(const tk_rows *rows, int32_t block);

/* Dual coordinate ascent. */
typedef struct {
    double C;        /* w = C sum_i alpha_i y_i phi(x_i) */
    double *alpha;   /* [n_rows] */
    double *margin;  /* [n_rows] OUT: y_i <w, phi(x_i)> as it was when the row was visited */
    double norm2;    /* |w|^2, kept up to date */
    int32_t sweeps;  /* over each block, at most */
    int64_t changed; /* OUT: rows whose alpha changed are counted on */
} tk_dual;

void tk_dual_pass(const tk_training *training, int64_t first, int64_t last, tk_dual *dual);

/* Pegasos: w = scale * values; a step for each block. */
typedef struct {
    double lambda;
    double share;  /* of a row in a step: blocks of an epoch / rows of an epoch */
    int64_t t;     /* steps done */
    double scale;  /* begins as 1 */
    double *alpha; /* [n_rows] values = sum_i alpha_i y_i phi(x_i) */
    double norm2;  /* |w|^2, kept up to date when radius > 0 */
    double radius; /* after each step w is projected to |w| <= radius; 0: it is not */
    void *average; /* NULL; or [n_slots], begins as 0: the mean of the last n_averaged iterates is
                      (average + shift * values) / n_averaged */
    double shift;  /* begins as 0 */
    int64_t n_averaged;
} tk_pegasos;

void tk_pegasos_pass(const tk_training *training, int64_t first, int64_t last, tk_pegasos *pegasos);

/* AdaGrad, for the loss alone; the regulariser is applied by tk_shrink now and then. */
void tk_adagrad_pass(const tk_training *training, int64_t first, int64_t last, const tk_adaptive *state);

/* values[a] /= 1 + factor / sqrt(squares[a]), for first <= a < last. */
void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last);

/* Where monomials over reordered columns are in a table over the columns' own order: slots[k] belongs to slot
 * ranks[r][first] + k of the map, up to the last whose highest coordinate j_r is below last. Coordinate j of the map is
 * coordinate own[j] of the table (own[0] = 0), whose ranks are laid out as the map's, with width columns. r > 1. */
void tk_own_slots(const tk_map *map, const int32_t *own, const int64_t *own_ranks, int64_t width, int32_t first,
                  int32_t last, int64_t *slots);

/* What is wrong with the structure of a compressed sparse matrix (CSR; CSC with rows and columns exchanged). */
typedef enum {
    TK_CANONICAL = 0, /* nothing: indices rise strictly within each row */
    TK_UNSORTED,      /* legal, but indices of a row are out of order or repeated */
    TK_INDPTR_START,  /* indptr[0] is not 0 */
    TK_INDPTR_FALLS,  /* indptr[at + 1] < indptr[at] */
    TK_INDPTR_BEYOND, /* indptr[at] is more than the number of stored entries */
    TK_INDEX_RANGE    /* indices[at] is negative or not below n_minor */
} tk_structure;

/* Looks at an untrusted structure without reading outside the arrays. *at tells where. Index types: int64_t when
 * wide, else int32_t (both arrays alike). */
tk_structure tk_check_structure(const void *indptr, const void *indices, int wide, int64_t n_major, int64_t n_minor,
                                int64_t n_stored, int64_t *at);

/* Instruction sets compiled in, best first, and whether this CPU and operating system can run each. */
int tk_n_instruction_sets(void);
const char *tk_instruction_set_name(int i);
int tk_instruction_set_usable(int i);
/* The one in use, chosen at the first call of tk_init as the best usable; tk_use_instruction_set is for tests. */
void tk_init(void);
int tk_instruction_set(void);
void tk_use_instruction_set(int i);

#endif
