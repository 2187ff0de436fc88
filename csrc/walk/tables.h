/* The tables of a row: the one builder, for sparse rows, for dense rows, for rows of ones, and for features that are
 * written out. Included once per real type.
 *
 * The table of p places lists the multisets of p places over 0..m in the order of their slots. The first is all
 * constant; then comes, for each t, the run of those whose highest coordinate is t. Under a bare map that is the table
 * of p - 1 places over 0..t, times x_t. The metric tells apart how often t comes up: once, in front of the entries of
 * p - 1 places over 0..t-1; twice, in front of those of p - 2 places; and so on. Each of these stretches is the
 * beginning of a table that is there already, times a factor.
 *
 * Runs are written past their end, by whole vectors: what comes next overwrites that, and there is room behind the
 * last.
 */

/* to[k] = factor * from[k] for k < n, and up to SLACK entries more: both have room for that. */
static FORCE_INLINE void NAME(scale_entries)(real *to, real factor, const real *from, int64_t n)
{
    const V f = v_set1(factor);
    for (int64_t k = 0; k < n; k += VLEN)
        v_store(to + k, v_mul(f, v_load(from + k)));
}

/* to[k] = base + from[k], likewise. */
static FORCE_INLINE void NAME(shift_entries)(uint32_t *to, uint32_t base, const uint32_t *from, int64_t n)
{
    for (int64_t k = 0; k < n; k += ULEN)
        u_shift(to + k, base, from + k);
}

/* Both at once: half the loops, where they are short. */
static FORCE_INLINE void NAME(move_entries)(real *to, real factor, const real *from, uint32_t *to_offset, uint32_t base,
                                            const uint32_t *from_offset, int64_t n)
{
    const V f = v_set1(factor);
    for (int64_t k = 0; k < n; k += ULEN) {
        u_shift(to_offset + k, base, from_offset + k);
        UNROLL for (int j = 0; j < ULEN; j += VLEN)
            v_store(to + k + j, v_mul(f, v_load(from + k + j)));
    }
}

/* The same where nothing behind from[n - 1] may be read. */
static FORCE_INLINE void NAME(scale_row)(real *to, real factor, const real *from, int64_t n)
{
    const V f = v_set1(factor);
    int64_t k = 0;
    for (; k + VLEN <= n; k += VLEN)
        v_store(to + k, v_mul(f, v_load(from + k)));
    if (k < n)
        v_store(to + k, v_mul(f, v_load_n(from + k, (int)(n - k))));
}

/* How many places the tables of a row take: as many as there is room for, but not all. Offsets are of 32 bits. */
static FORCE_INLINE void NAME(place_tables)(NAME(walker) *w, int64_t room, int64_t highest)
{
    const tk_map *map = w->map;
    const int64_t width = (int64_t)map->n_columns + 2, *ranks = map->ranks + width;
    if (w->placed == w->m + 1)
        return;
    w->placed = ranks[width * (map->degree - 1) + width - 1] <= INT32_MAX ? w->m + 1 : 0;
    int64_t end = tk_table_end(ONE_PLACE, w->m + 1);
    int q = map->degree > 1;
    w->at[0] = 0;
    w->at[q] = q * ONE_PLACE;
    for (; q > 0 && q + 1 < map->degree; q++) {
        const int64_t next = tk_table_end(end, ranks[width + w->m + 1]);
        if (next > room || ranks[width + highest + 1] > INT32_MAX)
            break;
        ranks += width;
        w->at[q + 1] = end;
        end = next;
    }
    w->q = q;
}

/* to[k] = factor * from[k], likewise, for each of so many lanes: 1 or LANES. */
static FORCE_INLINE void NAME(scale_lanes)(real *to, const real *factor, const real *from, int64_t n, const int lanes)
{
    V f[LANES];
    UNROLL for (int b = 0; b < lanes; b++)
        f[b] = v_set1(factor[b]);
    for (int64_t k = 0; k < n; k += VLEN) UNROLL
        for (int b = 0; b < lanes; b++)
            v_store(to + b * LANE_STRIDE + k, v_mul(f[b], v_load(from + b * LANE_STRIDE + k)));
}

/* Rows whose tables are built together: one, or LANES of a walker's lanes. */
typedef struct {
    int step;             /* lanes of the walker */
    const real *x;        /* x[t * step + b] */
    const real *constant; /* constant[p * step + b] */
    real s;               /* multiplies the table */
    int32_t known;        /* the offsets of entries that use coordinates up to this one only are never read */
} NAME(built);

/* The table of p places, from the smaller ones. Of dense rows there are no offsets: offset[k] would be k. */
static FORCE_INLINE void NAME(build_table)(const NAME(walker) *w, const NAME(built) *rows, const int bare,
                                           const int lanes, int p, const uint32_t *offset, const real *value,
                                           uint32_t *to_offset, real *to)
{
    const tk_map *map = w->map;
    const int64_t *ranks = NAME(ranks)(map, p), *counts = NAME(ranks)(map, p - 1) + 1;
    const int32_t m = w->m, *coord = w->coord;
    const uint32_t *from_offset = offset ? offset + w->at[p - 1] : NULL;
    const real *from = value + w->at[p - 1], *x = rows->x;
    int64_t at = 1;
    UNROLL for (int b = 0; b < lanes; b++)
        to[b * LANE_STRIDE] = rows->s * rows->constant[p * rows->step + b];
    if (offset)
        to_offset[0] = 0;
    for (int32_t t = 1; t <= m; at += counts[t++]) {
        real factor[LANES];
        x += rows->step;
        UNROLL for (int b = 0; b < lanes; b++)
            factor[b] = rows->s * x[b];
        if (!offset || t <= rows->known)
            NAME(scale_lanes)(to + at, factor, from, counts[t], lanes);
        else
            NAME(move_entries)(to + at, *factor, from, to_offset + at, (uint32_t)ranks[coord[t]], from_offset,
                               counts[t]);
        if (bare)
            continue;
        int64_t k = at + counts[t - 1];
        for (int e = 2; e <= p; e++) { /* t comes up e times */
            const int64_t n = NAME(ranks)(map, p - e)[t];
            UNROLL for (int b = 0; b < lanes; b++)
                factor[b] *= x[b] * (real)map->repeat[e];
            if (e < p)
                NAME(scale_lanes)(to + k, factor, value + w->at[p - e], n, lanes);
            k += n;
        }
        UNROLL for (int b = 0; b < lanes; b++)
            to[b * LANE_STRIDE + k - 1] = factor[b] * value[b * LANE_STRIDE];
    }
}

/* All tables of so many rows, whose numbers 1..m are also contiguous at x. The offsets of the table of one place are
 * the coordinates, which the caller has written. */
static FORCE_INLINE void NAME(build_tables)(const NAME(walker) *w, NAME(built) *rows, const int bare, const int lanes,
                                            const real *x, uint32_t *offset, real *value)
{
    UNROLL for (int b = 0; b < lanes; b++) {
        real *own = value + b * LANE_STRIDE;
        own[0] = (real)w->map->constant[0];
        NAME(scale_entries)(own + ONE_PLACE + 1, own[0], x + b * LANE_STRIDE + 1, w->m);
        own[ONE_PLACE] = rows->constant[rows->step + b];
    }
    for (int p = 2; p <= w->q; p++) {
        rows->known = p == w->q ? w->head : 0;
        NAME(build_table)(w, rows, bare, lanes, p, offset, value, offset ? offset + w->at[p] : NULL, value + w->at[p]);
    }
}
