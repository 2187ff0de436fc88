/* adapt: AdaGrad's step, with a step size for each slot, as leaves of the walk. Included once per real type.
 *
 *     h_a += g_a^2,   u_a += eta g_a / sqrt(h_a),        g_a = t phi_a(x)
 */

typedef struct {
    real *u, *h;
    real eta;
    const real *rate; /* several tables: [width] or NULL */
    /* One table, sparse rows: steps of one row that are yet to be taken. */
    uint32_t *slot; /* [STEPS + SLACK]: slots, all different, counted from origin on */
    real *g;        /* [STEPS + SLACK]: their gradients */
    int64_t n_steps, origin;
    NAME(add_verb) slab; /* several tables: which vectors of them, as in add.h */
} NAME(adapt_verb);

/* Takes them. Runs are short, so they are put together first: all vectors are whole. */
static NOINLINE void NAME(take_steps)(NAME(adapt_verb) *v)
{
    real *u = v->u + v->origin, *h = v->h + v->origin;
    const W eta = w_set1(v->eta);
    const int64_t n = v->n_steps;
    v->n_steps = 0;
    /* The last vector is filled up with its last step: all of them write the same. */
    for (int j = 0; n > 0 && j < WLEN; j++) {
        v->slot[n + j] = v->slot[n - 1];
        v->g[n + j] = v->g[n - 1];
    }
    for (int64_t k = 0; k < n; k += WLEN) {
        const uint32_t *slot = v->slot + k;
        const W g = w_load(v->g + k), uk = NAME(w_gather)(u, slot), hk = w_fma(g, g, NAME(w_gather)(h, slot));
        NAME(w_scatter)(h, slot, hk);
        NAME(w_scatter)(u, slot, w_fma(w_mul(eta, g), NAME(w_rsqrt)(hk), uk));
    }
}

/* The next steps are in slots that are counted from base on, by at most INT32_MAX. */
static FORCE_INLINE void NAME(make_room)(NAME(adapt_verb) *v, int64_t base)
{
    const int64_t origin = base & ~(int64_t)INT32_MAX;
    if (v->n_steps == STEPS || v->origin != origin)
        NAME(take_steps)(v);
    v->origin = origin;
}

static FORCE_INLINE void NAME(adapt_one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(adapt_verb) *v = verb;
    (void)w;
    NAME(make_room)(v, slot);
    v->slot[v->n_steps] = (uint32_t)(slot - v->origin);
    v->g[v->n_steps++] = *scale;
}

/* The slots base + offset[k], k < n, by the gradients a value[k]. */
static FORCE_INLINE void NAME(adapt_stretch)(NAME(adapt_verb) *v, int64_t base, real a, const uint32_t *offset,
                                             const real *value, int64_t n)
{
    for (int64_t k = 0, some; k < n; k += some) {
        NAME(make_room)(v, base);
        some = n - k < STEPS - v->n_steps ? n - k : STEPS - v->n_steps;
        NAME(move_entries)(v->g + v->n_steps, a, value + k, v->slot + v->n_steps, (uint32_t)(base - v->origin),
                           offset + k, some);
        v->n_steps += some;
    }
}

/* A vector of slots, or of tables in one slot, or the first rest of it. */
static FORCE_INLINE void NAME(adapt_vector)(real *u, real *h, V eta, V g, int rest)
{
    V hk = NAME(load_vector)(h, rest);
    hk = v_fma(g, g, hk);
    NAME(store_vector)(h, hk, rest);
    const V step = v_mul(v_mul(eta, g), NAME(v_rsqrt)(hk)); /* any number where there is no slot */
    NAME(store_vector)(u, v_add(NAME(load_vector)(u, rest), step), rest);
}

/* The slots base + k, k < n: whole vectors at once, what is left with the steps of other runs. */
static FORCE_INLINE void NAME(adapt_head)(NAME(adapt_verb) *v, int64_t base, real a, const real *value, int64_t n)
{
    static const uint32_t behind[2 * SLACK] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    int64_t k = 0;
    for (; k + VLEN <= n; k += VLEN)
        NAME(adapt_vector)(v->u + base + k, v->h + base + k, v_set1(v->eta), v_mul(v_set1(a), v_load(value + k)), 0);
    NAME(adapt_stretch)(v, base + k, a, behind, value + k, n - k);
}

/* Not inlined: as in dot.h. */
static NOINLINE void NAME(adapt_run)(NAME(adapt_verb) *v, const uint32_t *offset, const real *value,
                                     const NAME(suffix) *suffix, int64_t head)
{
    const int64_t n = suffix->n, from = n < head ? n : head;
    NAME(adapt_head)(v, suffix->base, suffix->scale[0], value, from);
    NAME(adapt_stretch)(v, suffix->base, suffix->scale[0], offset + from, value + from, n - from);
}

static FORCE_INLINE void NAME(adapt_suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                              int n)
{
    (void)n;
    NAME(adapt_run)(verb, w->offset + w->at[p], w->value + w->at[p], suffix, NAME(head_of)(w, p));
}

/* LANES rows: their gradients add up to one step. */

static FORCE_INLINE void NAME(adapt_one_dense)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    const NAME(adapt_verb) *v = verb;
    real g = 0;
    (void)w;
    for (int b = 0; b < LANES; b++)
        g += scale[b];
    if (g == 0)
        return;
    v->h[slot] += g * g;
    v->u[slot] += v->eta * g / NAME(square_root)(v->h[slot]);
}

static FORCE_INLINE void NAME(adapt_run_dense)(const NAME(adapt_verb) *v, int64_t base, const V *a, const real *value,
                                               int64_t n)
{
    real *u = v->u + base, *h = v->h + base;
    for (int64_t k = 0; k < n; k += VLEN) {
        const int rest = n - k < VLEN ? (int)(n - k) : 0;
        V g = v_zero();
        UNROLL for (int b = 0; b < LANES; b++)
            g = v_fma(a[b], v_load(value + b * LANE_STRIDE + k), g);
        NAME(adapt_vector)(u + k, h + k, v_set1(v->eta), g, rest);
    }
}

static FORCE_INLINE void NAME(adapt_suffixes_dense)(const NAME(walker) *w, void *verb, int p,
                                                    const NAME(suffix) *suffix, int n)
{
    const real *value = w->value + w->at[p];
    V a[LANES];
    (void)n;
    UNROLL for (int b = 0; b < LANES; b++)
        a[b] = v_set1(suffix->scale[b]);
    NAME(adapt_run_dense)(verb, suffix->base, a, value, suffix->n);
}

#include "adapt_tables.h"

/* The arguments of tk_adapt_part. */
typedef struct {
    const tk_rows *rows;
    const tk_map *map;
    int64_t first, last;
    const tk_adaptive *state;
    const real *t;
    void *memory;
    int32_t top, end;
} NAME(adapt_call);

/* Sparse rows, one table. */
static NOINLINE void NAME(adapt_sparse)(const NAME(adapt_call) *call)
{
    const NAME(visitor) visit = {NAME(adapt_suffixes), NAME(adapt_one), 1, 1, 0};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const NAME(scratch) c = NAME(carve)(call->memory, 1, rows->max_nonzeros);
    const int32_t top = call->top, end = call->end;
    const real *rate = call->state->rate, *t = call->t;
    real *values = call->state->values, *squares = call->state->squares;
    NAME(walker) w = {.placed = 0};
    NAME(adapt_verb) verb = {.eta = (real)call->state->eta * (rate ? *rate : 1), .slot = c.slot, .g = c.g};
    for (int64_t i = first; i < last; i++, t++) {
        int32_t from = top, to = end;
        verb.u = values + tk_base(rows, i);
        verb.h = squares + tk_base(rows, i);
        NAME(load_sparse)(rows, map, 0, 1, i, end, &c, &w);
        NAME(prefetch_row)(rows, i + 1, last);
        NAME(find_places)(&w, &from, &to);
        w.s[0] *= *t;
        NAME(walk)(&w, visit, &verb, from, to);
        NAME(take_steps)(&verb);
    }
}

/* Dense rows, one table. */
static NOINLINE void NAME(adapt_dense)(const NAME(adapt_call) *call)
{
    const NAME(visitor) visit = {NAME(adapt_suffixes_dense), NAME(adapt_one_dense), 1, LANES, 0};
    const tk_rows *rows = call->rows;
    const tk_map *map = call->map;
    const int64_t first = call->first, last = call->last;
    const NAME(scratch) c = NAME(carve)(call->memory, LANES, rows->n_columns);
    const int32_t top = call->top, end = call->end;
    const real *rate = call->state->rate, *t = call->t;
    real *values = call->state->values, *squares = call->state->squares;
    NAME(walker) w = {.placed = 0};
    NAME(adapt_verb) verb = {.eta = (real)call->state->eta * (rate ? *rate : 1)};
    for (int64_t i = first; i < last && i < first + LANES; i++)
        NAME(prefetch_lane)(rows, tk_stored(rows, i));
    for (int64_t i = first, n; i < last; i += n, t += n) {
        verb.u = values + tk_base(rows, i);
        verb.h = squares + tk_base(rows, i);
        n = NAME(load_dense)(rows, map, i, last, end, LANES, &c, &w);
        for (int b = 0; b < n; b++)
            w.s[b] *= t[b];
        NAME(walk)(&w, visit, &verb, top, end);
    }
}

/* Several tables. */
static NOINLINE void NAME(adapt_tables)(const NAME(adapt_call) *call)
{
    const NAME(visitor) sparse = {NAME(adapt_suffixes_wide), NAME(adapt_one_matrix), 1, 1, 0},
                        dense = {NAME(adapt_suffixes_matrix), NAME(adapt_one_matrix), 1, LANES, 0};
    const tk_rows *rows = call->rows;
    const int walk_dense = rows->walk_dense, lanes = walk_dense ? LANES : 1;
    const NAME(scratch) c = NAME(carve)(call->memory, lanes, walk_dense ? rows->n_columns : rows->max_nonzeros);
    const int32_t width = call->state->width;
    NAME(walker) w = {.placed = 0};
    NAME(adapt_verb) verb = {.eta = (real)call->state->eta, .rate = call->state->rate};
    NAME(add_verb) *slab = &verb.slab;
    slab->width = width;
    slab->t = call->t;
    slab->n_rows = 1;
    for (int64_t i = call->first; i < call->last; i += slab->n_rows, slab->t += slab->n_rows * (int64_t)width) {
        int32_t from = call->top, to = call->end;
        verb.u = (real *)call->state->values + tk_base(rows, i) * width;
        verb.h = (real *)call->state->squares + tk_base(rows, i) * width;
        if (walk_dense)
            slab->n_rows = NAME(load_dense)(rows, call->map, i, call->last, call->end, LANES, &c, &w);
        else
            NAME(load_sparse)(rows, call->map, 0, 0, i, call->end, &c, &w);
        if (!walk_dense)
            NAME(prefetch_row)(rows, i + 1, call->last);
        NAME(find_places)(&w, &from, &to);
        for (int32_t begin = 0; begin < width;) {
            begin = NAME(begin_slab)(slab, begin, slab->n_rows);
            if (!slab->n_vectors)
                continue;
            if (walk_dense)
                NAME(walk)(&w, dense, &verb, from, to);
            else
                NAME(walk)(&w, sparse, &verb, from, to);
        }
    }
}

static void NAME(adapt)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
                        const void *t, void *memory, int32_t top, int32_t end)
{
    const NAME(adapt_call) call = {rows, map, first, last, state, t, memory, top, end};
    if (state->width > 1)
        NAME(adapt_tables)(&call);
    else if (rows->walk_dense)
        NAME(adapt_dense)(&call);
    else
        NAME(adapt_sparse)(&call);
}

/* The regulariser's step, in vectors: of all entries, or of some tables in each slot when those have rates. */
static void NAME(shrink)(const tk_adaptive *state, double factor, int64_t first, int64_t last)
{
    const int several = state->rate && state->width > 1;
    const real *rate = state->rate, all = (real)factor * (rate ? *rate : 1);
    const int64_t width = several ? state->width : last;
    real *u = state->values, *h = state->squares;
    for (int64_t a = first, end; a < last; a = end) {
        const int64_t slot = a / width * width;
        end = slot + width < last ? slot + width : last;
        for (; a < end; a += VLEN) {
            const int rest = end - a < VLEN ? (int)(end - a) : 0;
            V by = v_set1(all);
            if (several)
                by = v_mul(v_set1((real)factor), NAME(load_vector)(rate + (a - slot), rest));
            by = v_fma(by, NAME(v_rsqrt)(NAME(load_vector)(h + a, rest)), v_set1(1));
            NAME(store_vector)(u + a, v_div(NAME(load_vector)(u + a, rest), by), rest);
        }
    }
}
