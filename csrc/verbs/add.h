/* add: rows added to tables, as leaves of the walk. Included once per real type. */

/* One table, one row. */

typedef struct {
    real *u;
    int32_t width;
    /* When there are several tables: */
    const real *t;       /* [n_rows][width]: coefficients */
    int32_t n_rows;      /* of the lanes */
    int32_t n_vectors;   /* of tables, in the slab at hand */
    int32_t at[SLAB];    /* the first table of each */
    unsigned rows[SLAB]; /* the rows that have coefficients in it, as bits */
} NAME(add_verb);

static NOINLINE void NAME(add_suffix)(real *u, const uint32_t *offset, const real *value, const NAME(suffix) *suffix,
                                      int64_t from)
{
    const real a = suffix->scale[0];
    const int64_t n = suffix->n;
    u += suffix->base;
    for (int64_t k = from; k < n; k++)
        u[offset[k]] += a * value[k];
}

/* Slots of different suffixes are different, so the order of these updates does not matter. */
static NOINLINE void NAME(add_group)(real *u, const uint32_t *offset, const real *value, const NAME(suffix) *suffix,
                                     int64_t from)
{
    real *u0 = u + suffix[0].base, *u1 = u + suffix[1].base, *u2 = u + suffix[2].base, *u3 = u + suffix[3].base;
    const real a0 = suffix[0].scale[0], a1 = suffix[1].scale[0], a2 = suffix[2].scale[0], a3 = suffix[3].scale[0];
    int64_t k = from;
    for (; k < suffix[0].n; k++) {
        const uint32_t o = offset[k];
        const real x = value[k];
        const real y0 = u0[o] + a0 * x, y1 = u1[o] + a1 * x, y2 = u2[o] + a2 * x, y3 = u3[o] + a3 * x;
        u0[o] = y0;
        u1[o] = y1;
        u2[o] = y2;
        u3[o] = y3;
    }
    for (; k < suffix[1].n; k++) {
        const uint32_t o = offset[k];
        const real x = value[k], y1 = u1[o] + a1 * x, y2 = u2[o] + a2 * x, y3 = u3[o] + a3 * x;
        u1[o] = y1;
        u2[o] = y2;
        u3[o] = y3;
    }
    for (; k < suffix[2].n; k++) {
        const uint32_t o = offset[k];
        const real y2 = u2[o] + a2 * value[k], y3 = u3[o] + a3 * value[k];
        u2[o] = y2;
        u3[o] = y3;
    }
    for (; k < suffix[3].n; k++)
        u3[offset[k]] += a3 * value[k];
}

/* The first entries of a suffix, whose offsets are their numbers. One by one at the end: a vector of which a part is
 * written would hold up the next one that is read. */
static NOINLINE void NAME(add_head)(real *u, const real *value, const NAME(suffix) *suffix, int64_t head)
{
    const int64_t n = suffix->n < head ? suffix->n : head;
    const real a = suffix->scale[0];
    int64_t k = 0;
    u += suffix->base;
    for (; k + VLEN <= n; k += VLEN)
        v_store(u + k, v_fma(v_set1(a), v_load(value + k), v_load(u + k)));
    for (; k < n; k++)
        u[k] += a * value[k];
}

static FORCE_INLINE void NAME(add_suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix, int n)
{
    NAME(add_verb) *v = verb;
    const real *value = w->value + w->at[p];
    const uint32_t *offset = w->offset + w->at[p];
    const int64_t head = NAME(head_of)(w, p);
    for (int g = 0; head && g < n; g++)
        NAME(add_head)(v->u, value, &suffix[g], head);
    if (suffix[n - 1].n <= head)
        return;
    if (n == GROUP)
        NAME(add_group)(v->u, offset, value, suffix, head);
    else
        for (int g = 0; g < n; g++)
            NAME(add_suffix)(v->u, offset, value, &suffix[g], head);
}

static FORCE_INLINE void NAME(add_one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(add_verb) *v = verb;
    (void)w;
    v->u[slot] += *scale;
}

#include "add_tables.h"

/* One table, LANES rows; as in dot.h. */

static FORCE_INLINE void NAME(add_one_dense)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(add_verb) *v = verb;
    real sum = v->u[slot];
    (void)w;
    for (int b = 0; b < LANES; b++)
        sum += scale[b];
    v->u[slot] = sum;
}

/* u[slot[g] + k] += sum_b a[g][b] value[b][k] for n suffixes and some vectors of k, or the first rest of one: one row
 * after the other, so that it does not matter which of them are taken together. What comes behind the rest may be any
 * numbers, and is not stored. */
static FORCE_INLINE void NAME(add_vectors_dense)(real *u, const int64_t *slot, V (*a)[LANES], const int n,
                                                 const real *value, int64_t k, const int vectors, int rest)
{
    V sum[DENSE_GROUP][2];
    UNROLL for (int g = 0; g < n; g++) UNROLL
        for (int j = 0; j < vectors; j++)
            sum[g][j] = NAME(load_vector)(u + slot[g] + k + j * VLEN, rest);
    UNROLL for (int b = 0; b < LANES; b++) UNROLL
        for (int j = 0; j < vectors; j++) {
            V x = v_load(value + b * LANE_STRIDE + k + j * VLEN);
            v_keep(x);
            UNROLL for (int g = 0; g < n; g++)
                sum[g][j] = v_fma(a[g][b], x, sum[g][j]);
        }
    UNROLL for (int g = 0; g < n; g++) UNROLL
        for (int j = 0; j < vectors; j++)
            NAME(store_vector)(u + slot[g] + k + j * VLEN, sum[g][j], rest);
}

/* The same for a whole vector of k of n suffixes, whose numbers are in sum already; those of the next vector, if there
 * are more, are loaded before anything waits for them. */
static FORCE_INLINE void NAME(add_vector_ahead)(real *u, const int64_t *slot, V (*a)[LANES], const int n,
                                                const real *value, int64_t k, V *sum, const int more)
{
    V next[DENSE_GROUP];
    UNROLL for (int g = 0; more && g < n; g++) {
        next[g] = v_load(u + slot[g] + k + VLEN);
        v_keep(next[g]);
    }
    UNROLL for (int b = 0; b < LANES; b++) {
        V x = v_load(value + b * LANE_STRIDE + k);
        v_keep(x);
        UNROLL for (int g = 0; g < n; g++)
            sum[g] = v_fma(a[g][b], x, sum[g]);
    }
    UNROLL for (int g = 0; g < n; g++) {
        v_store(u + slot[g] + k, sum[g]);
        if (more)
            sum[g] = next[g];
    }
}

/* Whole vectors of the entries from <= k < to; two at once where there is one suffix, so that no sum waits for another.
 * Returns where they end. */
static FORCE_INLINE int64_t NAME(add_run_dense)(real *u, const int64_t *slot, V (*a)[LANES], const int n,
                                                const real *value, int64_t from, int64_t to)
{
    int64_t k = from;
    V sum[DENSE_GROUP];
    for (; n == 1 && k + 2 * VLEN <= to; k += 2 * VLEN)
        NAME(add_vectors_dense)(u, slot, a, n, value, k, 2, 0);
    if (k + VLEN > to)
        return k;
    UNROLL for (int g = 0; g < n; g++)
        sum[g] = v_load(u + slot[g] + k);
    for (; k + 2 * VLEN <= to; k += VLEN)
        NAME(add_vector_ahead)(u, slot, a, n, value, k, sum, 1);
    NAME(add_vector_ahead)(u, slot, a, n, value, k, sum, 0);
    return k + VLEN;
}

/* n suffixes share what is loaded of the rows as far as they reach. */
static FORCE_INLINE void NAME(add_some_dense)(NAME(add_verb) *v, const real *value, const NAME(suffix) *suffix,
                                              const int n)
{
    V a[DENSE_GROUP][LANES];
    int64_t slot[DENSE_GROUP], k = 0;
    UNROLL for (int g = 0; g < n; g++) {
        slot[g] = suffix[g].base;
        UNROLL for (int b = 0; b < LANES; b++)
            a[g][b] = v_set1(suffix[g].scale[b]);
    }
    UNROLL for (int g = 0; g < n; g++) {
        k = NAME(add_run_dense)(v->u, slot + g, a + g, n - g, value, k, suffix[g].n);
        if (k < suffix[g].n)
            NAME(add_vectors_dense)(v->u, slot + g, a + g, 1, value, k, 1, (int)(suffix[g].n - k));
    }
}

static FORCE_INLINE void NAME(add_suffixes_dense)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                  int n)
{
    const real *value = w->value + w->at[p];
    if (n == DENSE_GROUP)
        NAME(add_some_dense)(verb, value, suffix, DENSE_GROUP);
    else
        for (int g = 0; g < n; g++)
            NAME(add_some_dense)(verb, value, suffix + g, 1);
}

/* The arguments of tk_add_part. */
typedef struct {
    const tk_rows *rows;
    const tk_map *map;
    int64_t first, last;
    const tk_table *table;
    const real *t;
    void *memory;
    int32_t top, end;
} NAME(add_call);

/* Sparse rows, one table. */
static FORCE_INLINE void NAME(add_sparse)(const NAME(add_call) *call, const int bare)
{
    const NAME(visitor) visit = {NAME(add_suffixes), NAME(add_one), GROUP, 1, bare};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const NAME(scratch) c = NAME(carve)(call->memory, 1, rows->max_nonzeros);
    NAME(walker) w = {.placed = 0};
    NAME(add_verb) verb = {.width = 1};
    const int32_t top = call->top, end = call->end;
    const real *t = call->t;
    real *table = call->table->values;
    for (int64_t i = first; i < last; i++, t++) {
        int32_t from = top, to = end;
        verb.u = table + tk_base(rows, i);
        NAME(load_sparse)(rows, map, bare, 1, i, end, &c, &w);
        NAME(prefetch_row)(rows, i + 1, last);
        NAME(find_places)(&w, &from, &to);
        w.s[0] *= *t;
        NAME(walk)(&w, visit, &verb, from, to);
    }
}

/* Dense rows, one table. */
static FORCE_INLINE void NAME(add_dense)(const NAME(add_call) *call, const int bare)
{
    const NAME(visitor) visit = {NAME(add_suffixes_dense), NAME(add_one_dense), DENSE_GROUP, LANES, bare};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const NAME(scratch) c = NAME(carve)(call->memory, LANES, rows->n_columns);
    NAME(walker) w = {.placed = 0};
    NAME(add_verb) verb = {.width = 1};
    const int32_t top = call->top, end = call->end;
    const real *t = call->t;
    real *table = call->table->values;
    for (int64_t i = first; i < last && i < first + LANES; i++)
        NAME(prefetch_lane)(rows, tk_stored(rows, i));
    for (int64_t i = first, n; i < last; i += n, t += n) {
        verb.u = table + tk_base(rows, i);
        n = NAME(load_dense)(rows, map, i, last, end, LANES, &c, &w);
        for (int b = 0; b < n; b++)
            w.s[b] *= t[b];
        NAME(walk)(&w, visit, &verb, top, end);
    }
}

/* Several tables. */
static FORCE_INLINE void NAME(add_tables)(const NAME(add_call) *call, const int bare)
{
    const NAME(visitor) sparse = {NAME(add_suffixes_wide), NAME(add_one_wide), 1, 1, bare},
                        dense = {NAME(add_suffixes_matrix), NAME(add_one_matrix), 1, MATRIX_LANES, bare};
    const tk_rows *rows = call->rows;
    const int walk_dense = rows->walk_dense, lanes = walk_dense ? MATRIX_LANES : 1;
    const NAME(scratch) c = NAME(carve)(call->memory, lanes, walk_dense ? rows->n_columns : rows->max_nonzeros);
    const int32_t width = call->table->width;
    NAME(walker) w = {.placed = 0};
    NAME(add_verb) verb = {.width = width, .t = call->t, .n_rows = 1};
    for (int64_t i = call->first; i < call->last; i += verb.n_rows, verb.t += verb.n_rows * (int64_t)width) {
        int32_t from = call->top, to = call->end;
        verb.u = (real *)call->table->values + tk_base(rows, i) * width;
        if (walk_dense)
            verb.n_rows = NAME(load_dense)(rows, call->map, i, call->last, call->end, MATRIX_LANES, &c, &w);
        else
            NAME(load_sparse)(rows, call->map, bare, 0, i, call->end, &c, &w);
        NAME(find_places)(&w, &from, &to);
        for (int32_t slab = 0; slab < width;) {
            slab = NAME(begin_slab)(&verb, slab, verb.n_rows);
            if (!verb.n_vectors)
                continue;
            if (walk_dense)
                NAME(walk)(&w, dense, &verb, from, to);
            else
                NAME(walk)(&w, sparse, &verb, from, to);
        }
    }
}

TK_BARE_AND_WEIGHED(add_sparse, NAME(add_call))
TK_BARE_AND_WEIGHED(add_dense, NAME(add_call))
TK_BARE_AND_WEIGHED(add_tables, NAME(add_call))

static void NAME(add)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                      const void *t, void *memory, int32_t top, int32_t end)
{
    const NAME(add_call) call = {rows, map, first, last, table, t, memory, top, end};
    if (table->width > 1)
        map->bare ? NAME(add_tables_bare)(&call) : NAME(add_tables_weighed)(&call);
    else if (rows->walk_dense)
        map->bare ? NAME(add_dense_bare)(&call) : NAME(add_dense_weighed)(&call);
    else
        map->bare ? NAME(add_sparse_bare)(&call) : NAME(add_sparse_weighed)(&call);
}
