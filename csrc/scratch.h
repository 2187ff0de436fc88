/* How large things are: shared by the kernels, which carve their scratch, and by tk_scratch_bytes, which sizes it. */
#ifndef TK_SCRATCH_H
#define TK_SCRATCH_H

#include <stdint.h>

enum {
    PIECE = 8,             /* inner tables are written in pieces of this many entries */
    GROUP = 4,             /* suffixes that a sparse walk takes at once */
    LANES = 8,             /* rows that a dense walk takes at once */
    SPARSE_ENTRIES = 1024, /* an inner table of a sparse row: 8 or 12 bytes an entry, within the first cache */
    DENSE_BYTES = 1 << 16  /* the inner tables of all lanes together */
};

/* Bytes of the parts of a pass's scratch; see load.inc. */
typedef struct {
    int64_t coord, x, offset, value, sums;
    int64_t room; /* entries of an inner table: one place always fits, more when they stay below the limits above */
} tk_sizes;

static inline int64_t tk_aligned(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static inline tk_sizes tk_sizes_of(int dense, int64_t max_nonzeros, int64_t real_bytes)
{
    const int64_t lanes = dense ? LANES : 1, places = max_nonzeros + 1;
    const int64_t limit = dense ? DENSE_BYTES / (LANES * real_bytes) : SPARSE_ENTRIES;
    tk_sizes z;
    z.room = ((places > limit ? places : limit) + PIECE + 15) / 16 * 16;
    z.coord = dense ? 0 : tk_aligned((places + PIECE) * 4);
    z.x = tk_aligned(places * lanes * real_bytes);
    z.offset = dense ? 0 : tk_aligned(z.room * 4);
    z.value = tk_aligned(z.room * lanes * real_bytes);
    z.sums = tk_aligned(LANES * real_bytes);
    return z;
}

static inline int64_t tk_total(const tk_sizes *z)
{
    return z->coord + z->x + 2 * (z->offset + z->value) + z->sums;
}

#endif
