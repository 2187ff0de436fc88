/* How large things are: shared by the kernels, which carve their scratch, and by tk_scratch_bytes, which sizes it. */
#ifndef TK_SCRATCH_H
#define TK_SCRATCH_H

#include "tk.h"

enum {
    SLACK = 16,            /* tables may be read and written this many entries past their end: whole vectors */
    GROUP = 4,             /* suffixes that a sparse walk takes at once */
    LEAST_HEAD = 48,       /* entries that lie one behind the other: fewer are taken one by one */
    LANES = 8,             /* rows that a dense walk takes at once; */
    MATRIX_LANES = 32,     /* with several tables, which are too large to be read for each eight rows */
    SLAB = 64,             /* vectors of tables that are added to in one walk */
    SPARSE_ENTRIES = 1024, /* the tables of a sparse row: 8 or 12 bytes an entry, within the first-level cache */
    STEPS = 1024,          /* of a sparse row, that AdaGrad takes together */
    DENSE_BYTES = 1 << 16, /* the tables of LANES lanes together */
    /* Entries from one lane's tables to the next one's: a constant, so that one register addresses all lanes; and not a
     * power of two, lest they all compete for the same few cache lines. Memory between them is never touched. */
    LANE_STRIDE = TK_MAX_DENSE_COLUMNS + 3 * SLACK
};

/* Where the table of one place begins, behind that of none, which has one entry. */
enum { ONE_PLACE = (1 + SLACK + 15) / 16 * 16 };

/* Bytes of the parts of a pass's scratch; see load.h. */
typedef struct {
    int64_t x, offset, value, slot, g, sums, constant;
    int64_t
        room; /* entries of a row's tables: up to one place always fits, more as long as they stay below the limits */
} tk_sizes;

static inline int64_t tk_aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Where a table ends that begins at `at`, in a row's tables of 0, 1, ... places one behind the other. */
static inline int64_t tk_table_end(int64_t at, int64_t entries)
{
    return at + ((entries + SLACK + 15) & ~(int64_t)15);
}

/* How many of n to take at once, at most `most`, so that all shares are about alike. */
static inline int64_t tk_share(int64_t n, int64_t most)
{
    const int64_t shares = (n + most - 1) / most;
    return (n + shares - 1) / shares;
}

/* Slots of several tables that are taken at once: they stay in the first-level cache. */
static inline int64_t tk_chunk(int64_t width, int64_t real_bytes)
{
    const int64_t n = (1 << 14) / (width * real_bytes);
    return n < 8 ? 8 : n > 256 ? 256 : n;
}

static inline tk_sizes tk_sizes_of(int lanes, int64_t max_nonzeros, int64_t real_bytes)
{
    const int dense = lanes > 1;
    const int64_t places = max_nonzeros + 1;
    const int64_t one_place = tk_table_end(tk_table_end(0, 1), places);
    const int64_t limit = dense ? DENSE_BYTES / (LANES * real_bytes) : SPARSE_ENTRIES;
    tk_sizes z;
    z.room = one_place > limit ? one_place : limit;
    z.x = tk_aligned((places * lanes + SLACK) * real_bytes);
    z.offset = dense ? 0 : tk_aligned(z.room * 4);
    z.value = tk_aligned((dense ? lanes * (int64_t)LANE_STRIDE : z.room) * real_bytes);
    z.slot = dense ? 0 : tk_aligned((STEPS + SLACK) * 4);
    z.g = dense ? 0 : tk_aligned((STEPS + SLACK) * real_bytes);
    z.sums = tk_aligned(lanes * real_bytes);
    z.constant = tk_aligned((TK_MAX_DEGREE + 1) * lanes * real_bytes);
    return z;
}

/* Bytes of the parts of the scratch for a Gram matrix of n rows: one row over all columns; all rows by columns, where
 * they are worth it and are not more than some megabytes; and a few numbers of each. */
typedef struct {
    int64_t spread, columns, numbers;
} tk_gram_parts;

enum {
    LEAST_BY_COLUMNS = 8,
    MOST_BY_COLUMNS = 1 << 22,
    GRAM_TILE = 16, /* rows on the diagonal that are multiplied with each other both ways */
    GRAM_ROWS = 4,  /* dense rows that are multiplied at once */
    GRAM_PAD = 16   /* rows are laid out by columns in multiples of this: of whole vectors, and of GRAM_ROWS */
};

static inline tk_gram_parts tk_gram_parts_of(const tk_rows *rows, int64_t n)
{
    const int64_t real_bytes = rows->real == TK_FLOAT64 ? 8 : 4;
    const int64_t stride = (n + GRAM_PAD - 1) / GRAM_PAD * GRAM_PAD;
    const int64_t columns = tk_aligned(rows->n_columns * stride * real_bytes);
    tk_gram_parts parts = {.spread = tk_aligned(rows->n_columns * real_bytes)};
    parts.columns = n < LEAST_BY_COLUMNS || columns > MOST_BY_COLUMNS ? 0 : columns;
    parts.numbers = tk_aligned(8 * 5 * n + GRAM_ROWS * stride * real_bytes);
    return parts;
}

/* Where row i is stored. */
static inline int64_t tk_stored(const tk_rows *rows, int64_t i)
{
    return rows->order ? rows->order[i] : i;
}

/* The first slot of row i's tables. */
static inline int64_t tk_base(const tk_rows *rows, int64_t i)
{
    return rows->base ? rows->base[tk_stored(rows, i)] : 0;
}

/* How many of the rows from i on, at most n of them and before last, are of one cell. */
static inline int tk_alike(const tk_rows *rows, int64_t i, int64_t last, int n)
{
    n = last - i < n ? (int)(last - i) : n;
    for (int b = 1; rows->base && b < n; b++)
        if (tk_base(rows, i + b) != tk_base(rows, i))
            return b;
    return n;
}

/* Another form of the same rows, in the same order. */
static inline tk_rows tk_form(const tk_rows *form, const tk_rows *rows)
{
    tk_rows same = *form;
    same.order = rows->order;
    return same;
}

/* Rows that are walked at once. */
static inline int tk_lanes(const tk_rows *rows, int32_t width)
{
    return !rows->walk_dense ? 1 : width > 1 ? MATRIX_LANES : LANES;
}

static inline int64_t tk_total(const tk_sizes *z)
{
    return z->x + z->offset + z->value + z->slot + z->g + z->sums + z->constant;
}

#endif
