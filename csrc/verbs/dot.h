/* dot: the inner products of rows with tables, as leaves of the walk. Included once per real type. */

/* One table, one row. */

typedef struct {
    const real *u;
    int32_t width;
    real sum;       /* sparse, one table */
    V lanes[LANES]; /* sparse, one table: more of it, spread over lane 0; dense: of the sum of lane b */
    real *sums;     /* dense: one for each lane; several tables: [width], or [n_rows][width] */
    int32_t n_rows; /* several tables: of the lanes */
} NAME(dot_verb);

/* Not inlined, here and below: the loops need all the registers that there are. */
static NOINLINE real NAME(dot_suffix)(const real *u, const uint32_t *offset, const real *value,
                                      const NAME(suffix) *suffix, int64_t from)
{
    real a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    int64_t k = from, n = suffix->n;
    u += suffix->base;
    for (; k + 4 <= n; k += 4) {
        a0 += value[k] * u[offset[k]];
        a1 += value[k + 1] * u[offset[k + 1]];
        a2 += value[k + 2] * u[offset[k + 2]];
        a3 += value[k + 3] * u[offset[k + 3]];
    }
    for (; k < n; k++)
        a0 += value[k] * u[offset[k]];
    return suffix->scale[0] * ((a0 + a1) + (a2 + a3));
}

/* Entry k for the suffixes from g on. */
static FORCE_INLINE void NAME(dot_step)(real *sum, const real *const *u, const uint32_t *offset, const real *value,
                                        int64_t k, const int g)
{
    UNROLL for (int i = g; i < GROUP; i++)
        sum[i] += value[k] * u[i][offset[k]];
}

/* The entries from <= k < n, in two sums each, or four where only one or two suffixes are left: one addition need not
 * wait for the other. Returns where they end. */
static FORCE_INLINE int64_t NAME(dot_steps)(real *even, real *odd, const real *const *u, const uint32_t *offset,
                                            const real *value, int64_t from, int64_t n, const int g)
{
    int64_t k = from;
    if (g > 1 && k + 4 <= n) {
        real more[2][GROUP] = {{0}, {0}};
        for (; k + 4 <= n; k += 4) {
            NAME(dot_step)(even, u, offset, value, k, g);
            NAME(dot_step)(odd, u, offset, value, k + 1, g);
            NAME(dot_step)(more[0], u, offset, value, k + 2, g);
            NAME(dot_step)(more[1], u, offset, value, k + 3, g);
        }
        UNROLL for (int i = g; i < GROUP; i++)
            even[i] += more[0][i] + more[1][i];
    }
    for (; k + 2 <= n; k += 2) {
        NAME(dot_step)(even, u, offset, value, k, g);
        NAME(dot_step)(odd, u, offset, value, k + 1, g);
    }
    if (k < n)
        NAME(dot_step)(even, u, offset, value, k++, g);
    return k;
}

/* Each (offset, value) that is loaded serves all the suffixes that reach that far. */
static NOINLINE real NAME(dot_group)(const real *table, const uint32_t *offset, const real *value,
                                     const NAME(suffix) *suffix, int64_t from)
{
    const real *u[GROUP];
    real even[GROUP], odd[GROUP], total = 0;
    UNROLL for (int g = 0; g < GROUP; g++) {
        u[g] = table + suffix[g].base;
        even[g] = odd[g] = 0;
    }
    int64_t k = NAME(dot_steps)(even, odd, u, offset, value, from, suffix[0].n, 0);
    k = NAME(dot_steps)(odd, even, u, offset, value, k, suffix[1].n, 1);
    k = NAME(dot_steps)(even, odd, u, offset, value, k, suffix[2].n, 2);
    NAME(dot_steps)(odd, even, u, offset, value, k, suffix[3].n, 3);
    UNROLL for (int g = 0; g < GROUP; g++)
        total += suffix[g].scale[0] * (even[g] + odd[g]);
    return total;
}

/* The last of some vectors may be shorter: `rest` numbers of it, or 0 when it is whole. */
static FORCE_INLINE V NAME(load_vector)(const real *at, int rest)
{
    return rest ? v_load_n(at, rest) : v_load(at);
}

/* The first entries of a suffix, whose offsets are their numbers. */
static NOINLINE V NAME(dot_head)(V total, const real *u, const real *value, const NAME(suffix) *suffix, int64_t head)
{
    const int64_t n = suffix->n < head ? suffix->n : head;
    V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int64_t k = 0;
    u += suffix->base;
    for (; k + 4 * VLEN <= n; k += 4 * VLEN) UNROLL
        for (int j = 0; j < 4; j++)
            sum[j] = v_fma(v_load(value + k + j * VLEN), v_load(u + k + j * VLEN), sum[j]);
    for (; k + VLEN <= n; k += VLEN)
        sum[0] = v_fma(v_load(value + k), v_load(u + k), sum[0]);
    if (k < n)
        sum[1] = v_fma(v_load_n(value + k, (int)(n - k)), v_load_n(u + k, (int)(n - k)), sum[1]);
    return v_fma(v_set1(suffix->scale[0]), v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])), total);
}

static FORCE_INLINE void NAME(dot_suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix, int n)
{
    NAME(dot_verb) *v = verb;
    const real *value = w->value + w->at[p];
    const uint32_t *offset = w->offset + w->at[p];
    const int64_t head = NAME(head_of)(w, p);
    for (int g = 0; head && g < n; g++)
        v->lanes[0] = NAME(dot_head)(v->lanes[0], v->u, value, &suffix[g], head);
    if (suffix[n - 1].n <= head)
        return;
    if (n == GROUP)
        v->sum += NAME(dot_group)(v->u, offset, value, suffix, head);
    else
        for (int g = 0; g < n; g++)
            v->sum += NAME(dot_suffix)(v->u, offset, value, &suffix[g], head);
}

static FORCE_INLINE void NAME(dot_one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(dot_verb) *v = verb;
    (void)w;
    v->sum += *scale * v->u[slot];
}

#include "dot_tables.h"

/* One table, LANES rows. */

static FORCE_INLINE void NAME(dot_one_dense)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(dot_verb) *v = verb;
    real *restrict sums = v->sums;
    const real u = v->u[slot];
    (void)w;
    for (int b = 0; b < LANES; b++)
        sums[b] += scale[b] * u;
}

/* sum[g][b] += u[slot[g] + k] value[b][k] for n suffixes and a vector of k, or the first rest of it. */
static FORCE_INLINE void NAME(dot_vector_dense)(V (*sum)[LANES], const real *u, const int64_t *slot, const int n,
                                                const real *value, int64_t k, int rest)
{
    V uk[DENSE_GROUP];
    UNROLL for (int g = 0; g < n; g++)
        uk[g] = NAME(load_vector)(u + slot[g] + k, rest);
    UNROLL for (int b = 0; b < LANES; b++) {
        V x = NAME(load_vector)(value + b * LANE_STRIDE + k, rest);
        v_keep(x);
        UNROLL for (int g = 0; g < n; g++)
            sum[g][b] = v_fma(uk[g], x, sum[g][b]);
    }
}

/* n suffixes share what is loaded of the rows as far as they reach. */
static FORCE_INLINE void NAME(dot_some_dense)(NAME(dot_verb) *v, const real *value, const NAME(suffix) *suffix,
                                              const int n)
{
    V sum[DENSE_GROUP][LANES];
    int64_t slot[DENSE_GROUP], k = 0;
    UNROLL for (int g = 0; g < n; g++) {
        slot[g] = suffix[g].base;
        UNROLL for (int b = 0; b < LANES; b++)
            sum[g][b] = v_zero();
    }
    UNROLL for (int g = 0; g < n; g++) {
        for (; k + VLEN <= suffix[g].n; k += VLEN)
            NAME(dot_vector_dense)(sum + g, v->u, slot + g, n - g, value, k, 0);
        if (k < suffix[g].n)
            NAME(dot_vector_dense)(sum + g, v->u, slot + g, 1, value, k, (int)(suffix[g].n - k));
    }
    UNROLL for (int b = 0; b < LANES; b++) UNROLL
        for (int g = 0; g < n; g++)
            v->lanes[b] = v_fma(v_set1(suffix[g].scale[b]), sum[g][b], v->lanes[b]);
}

static FORCE_INLINE void NAME(dot_suffixes_dense)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                  int n)
{
    const real *value = w->value + w->at[p];
    if (n == DENSE_GROUP)
        NAME(dot_some_dense)(verb, value, suffix, DENSE_GROUP);
    else
        for (int g = 0; g < n; g++)
            NAME(dot_some_dense)(verb, value, suffix + g, 1);
}

/* The arguments of tk_dot_parts. */
typedef struct {
    const tk_rows *rows;
    const tk_map *map;
    int64_t first, last;
    const tk_table *table;
    real *out;
    void *memory;
    const tk_parts *parts;
} NAME(dot_call);

/* Sparse rows, one table. */
static FORCE_INLINE void NAME(dot_sparse)(const NAME(dot_call) *call, const int bare)
{
    const NAME(visitor) visit = {NAME(dot_suffixes), NAME(dot_one), GROUP, 1, bare};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const tk_parts *parts = call->parts;
    const NAME(scratch) c = NAME(carve)(call->memory, 1, rows->max_nonzeros);
    NAME(walker) w = {.placed = 0};
    NAME(dot_verb) verb = {.width = 1};
    const real *table = call->table->values;
    real *out = call->out;
    for (int64_t i = first; i < last; i++, out++) {
        verb.u = table + tk_base(rows, i);
        NAME(load_sparse)(rows, map, bare, 1, i, parts->tops[parts->n], &c, &w);
        NAME(prefetch_row)(rows, i + 1, last);
        for (int p = 0; p < parts->n; p++) {
            int32_t top = parts->tops[p], end = parts->tops[p + 1];
            NAME(find_places)(&w, &top, &end);
            verb.sum = 0;
            verb.lanes[0] = v_zero();
            NAME(walk)(&w, visit, &verb, top, end);
            out[p * parts->stride] += verb.sum + (w.head ? NAME(v_sum)(verb.lanes[0]) : 0);
        }
    }
}

/* Dense rows, one table. */
static FORCE_INLINE void NAME(dot_dense)(const NAME(dot_call) *call, const int bare)
{
    const NAME(visitor) visit = {NAME(dot_suffixes_dense), NAME(dot_one_dense), DENSE_GROUP, LANES, bare};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const tk_parts *parts = call->parts;
    const NAME(scratch) c = NAME(carve)(call->memory, LANES, rows->n_columns);
    NAME(walker) w = {.placed = 0};
    NAME(dot_verb) verb = {.width = 1, .sums = c.sums};
    const real *table = call->table->values;
    real *out = call->out;
    for (int64_t i = first; i < last && i < first + LANES; i++)
        NAME(prefetch_lane)(rows, tk_stored(rows, i));
    for (int64_t i = first, n; i < last; i += n, out += n) {
        verb.u = table + tk_base(rows, i);
        n = NAME(load_dense)(rows, map, i, last, parts->tops[parts->n], LANES, &c, &w);
        for (int p = 0; p < parts->n; p++) {
            for (int b = 0; b < LANES; b++) {
                verb.lanes[b] = v_zero();
                c.sums[b] = 0;
            }
            NAME(walk)(&w, visit, &verb, parts->tops[p], parts->tops[p + 1]);
            for (int b = 0; b < n; b++)
                out[p * parts->stride + b] += c.sums[b] + NAME(v_sum)(verb.lanes[b]);
        }
    }
}

/* Several tables. */
static FORCE_INLINE void NAME(dot_tables)(const NAME(dot_call) *call, const int bare)
{
    const NAME(visitor) sparse = {NAME(dot_suffixes_wide), NAME(dot_one_wide), 1, 1, bare},
                        dense = {NAME(dot_suffixes_matrix), NAME(dot_one_matrix), 1, MATRIX_LANES, bare};
    const tk_rows *rows = call->rows;
    const tk_parts *parts = call->parts;
    const int walk_dense = rows->walk_dense, lanes = walk_dense ? MATRIX_LANES : 1;
    const NAME(scratch) c = NAME(carve)(call->memory, lanes, walk_dense ? rows->n_columns : rows->max_nonzeros);
    const int64_t width = call->table->width;
    NAME(walker) w = {.placed = 0};
    NAME(dot_verb) verb = {.width = call->table->width, .n_rows = 1};
    real *out = call->out;
    for (int64_t i = call->first; i < call->last; i += verb.n_rows, out += verb.n_rows * width) {
        verb.u = (const real *)call->table->values + tk_base(rows, i) * width;
        if (walk_dense)
            verb.n_rows = NAME(load_dense)(rows, call->map, i, call->last, parts->tops[parts->n], MATRIX_LANES, &c, &w);
        else
            NAME(load_sparse)(rows, call->map, bare, 0, i, parts->tops[parts->n], &c, &w);
        if (!walk_dense)
            NAME(prefetch_row)(rows, i + 1, call->last);
        for (int p = 0; p < parts->n; p++) {
            int32_t top = parts->tops[p], end = parts->tops[p + 1];
            NAME(find_places)(&w, &top, &end);
            verb.sums = out + p * parts->stride;
            if (walk_dense)
                NAME(walk)(&w, dense, &verb, top, end);
            else
                NAME(walk)(&w, sparse, &verb, top, end);
        }
    }
}

TK_BARE_AND_WEIGHED(dot_sparse, NAME(dot_call))
TK_BARE_AND_WEIGHED(dot_dense, NAME(dot_call))
TK_BARE_AND_WEIGHED(dot_tables, NAME(dot_call))

static void NAME(dot)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                      void *out, void *memory, const tk_parts *parts, int onto)
{
    const NAME(dot_call) call = {rows, map, first, last, table, out, memory, parts};
    for (int64_t p = 0; !onto && p < parts->n; p++)
        for (int64_t i = 0; i < (last - first) * table->width; i++)
            call.out[p * parts->stride + i] = 0;
    if (table->width > 1)
        map->bare ? NAME(dot_tables_bare)(&call) : NAME(dot_tables_weighed)(&call);
    else if (rows->walk_dense)
        map->bare ? NAME(dot_dense_bare)(&call) : NAME(dot_dense_weighed)(&call);
    else
        map->bare ? NAME(dot_sparse_bare)(&call) : NAME(dot_sparse_weighed)(&call);
}
