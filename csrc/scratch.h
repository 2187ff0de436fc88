/* How large things are: shared by the kernels, which carve their scratch, and by tk_scratch_bytes, which sizes it. */
#ifndef TK_SCRATCH_H
#define TK_SCRATCH_H

#include <stdint.h>

enum {
    SLACK = 16,            /* tables may be read and written this many entries past their end: whole vectors */
    GROUP = 4,             /* suffixes that a sparse walk takes at once */
    LANES = 8,             /* rows that a dense walk takes at once */
    SPARSE_ENTRIES = 1024, /* the tables of a sparse row: 8 or 12 bytes an entry, within the first cache */
    DENSE_BYTES = 1 << 16, /* the tables of all lanes together */
    /* Entries from one lane's tables to the next one's: a constant, so that one register addresses all lanes; and not a
     * power of two, lest they all compete for the same few cache lines. Memory between them is never touched. */
    LANE_STRIDE = TK_MAX_DENSE_COLUMNS + 3 * SLACK
};

/* Where the table of one place begins, behind that of none, which has one entry. */
enum { ONE_PLACE = (1 + SLACK + 15) / 16 * 16 };

/* Bytes of the parts of a pass's scratch; see load.inc. */
typedef struct {
    int64_t x, offset, value, sums;
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

static inline tk_sizes tk_sizes_of(int dense, int64_t max_nonzeros, int64_t real_bytes)
{
    const int64_t lanes = dense ? LANES : 1, places = max_nonzeros + 1;
    const int64_t one_place = tk_table_end(tk_table_end(0, 1), places);
    const int64_t limit = dense ? DENSE_BYTES / (LANES * real_bytes) : SPARSE_ENTRIES;
    tk_sizes z;
    z.room = one_place > limit ? one_place : limit;
    z.x = tk_aligned(places * lanes * real_bytes);
    z.offset = dense ? 0 : tk_aligned(z.room * 4);
    z.value = tk_aligned((dense ? LANES * (int64_t)LANE_STRIDE : z.room) * real_bytes);
    z.sums = tk_aligned(LANES * real_bytes);
    return z;
}

static inline int64_t tk_total(const tk_sizes *z)
{
    return z->x + z->offset + 2 * z->value + z->sums;
}

#endif
