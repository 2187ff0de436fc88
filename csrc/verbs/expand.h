/* expand and weigh: the features of rows written out, and the metric alone, as leaves of the walk. Included once per
 * real type. */

typedef struct {
    int32_t *narrow; /* the slots go to one of these two */
    int64_t *wide;
    real *values;
    const real *end; /* of the room for values */
} NAME(expand_verb);

/* values[k] = a * value[k] for k < n. Where the room allows it, past the end: what follows overwrites that. */
static FORCE_INLINE void NAME(expand_values)(NAME(expand_verb) *v, real a, const real *value, int64_t n)
{
    real *values = v->values;
    if (v->end - values >= n + SLACK) {
        NAME(scale_entries)(values, a, value, n);
    } else {
        for (int64_t k = 0; k < n; k++)
            values[k] = a * value[k];
    }
    v->values += n;
}

/* The slots base + offset[k] for k < n; called before the values of the same entries are written. */
static FORCE_INLINE void NAME(expand_slots)(NAME(expand_verb) *v, int64_t base, const uint32_t *offset, int64_t n)
{
    if (v->wide) {
        int64_t *slots = v->wide;
        for (int64_t k = 0; k < n; k++)
            slots[k] = base + offset[k];
        v->wide += n;
    } else {
        uint32_t *slots = (uint32_t *)v->narrow;
        if (v->end - v->values >= n + SLACK) {
            NAME(shift_entries)(slots, (uint32_t)base, offset, n);
        } else {
            for (int64_t k = 0; k < n; k++)
                slots[k] = (uint32_t)base + offset[k];
        }
        v->narrow += n;
    }
}

static FORCE_INLINE void NAME(expand_suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                               int n)
{
    (void)n;
    NAME(expand_slots)(verb, suffix->base, w->offset + w->at[p], suffix->n);
    NAME(expand_values)(verb, suffix->scale[0], w->value + w->at[p], suffix->n);
}

static FORCE_INLINE void NAME(expand_one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(expand_verb) *v = verb;
    (void)w;
    if (v->wide)
        *v->wide++ = slot;
    else
        *v->narrow++ = (int32_t)slot;
    *v->values++ = *scale;
}

static void NAME(expand)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_features *out,
                         void *memory)
{
    const NAME(visitor) visit = {NAME(expand_suffixes), NAME(expand_one), 1, 1, 0};
    const NAME(scratch) c = NAME(carve)(memory, 1, rows->max_nonzeros);
    real *values = out->values;
    NAME(expand_verb) verb = {out->wide ? NULL : out->slots, out->wide ? out->slots : NULL, values, values + out->room};
    NAME(walker) w = {.placed = 0};
    for (int64_t i = first; i < last; i++) {
        NAME(load_sparse)(rows, map, 0, 0, i, map->n_columns + 1, &c, &w);
        const int64_t n = NAME(ranks)(map, map->degree)[w.m + 1];
        if (w.q == map->degree - 1 && w.q > 0 && !out->wide && verb.end - verb.values >= n + SLACK) {
            /* A short row: its features are one more of its tables. */
            const NAME(built) row = {1, w.x, w.constant, w.s[0], 0};
            NAME(build_table)(&w, &row, 0, 1, w.q + 1, w.offset, w.value, (uint32_t *)verb.narrow, verb.values);
            verb.narrow += n;
            verb.values += n;
        } else {
            NAME(walk)(&w, visit, &verb, 0, w.m + 1);
        }
    }
}

typedef struct {
    real *u;
    int32_t width;
} NAME(weigh_verb);

static FORCE_INLINE void NAME(weigh_one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    const NAME(weigh_verb) *v = verb;
    real *u = v->u + slot * v->width;
    (void)w;
    for (int32_t j = 0; j < v->width; j++)
        u[j] *= *scale;
}

static FORCE_INLINE void NAME(weigh_suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                              int n)
{
    const NAME(weigh_verb) *v = verb;
    const real *value = w->value + w->at[p], a = suffix->scale[0];
    int64_t k = 0;
    (void)n;
    if (v->width == 1) {
        real *u = v->u + suffix->base;
        for (; k + VLEN <= suffix->n; k += VLEN)
            v_store(u + k, v_mul(v_load(u + k), v_mul(v_set1(a), v_load(value + k))));
    }
    for (; k < suffix->n; k++) {
        const real factor = a * value[k];
        NAME(weigh_one)(w, verb, suffix->base + k, &factor);
    }
}

/* The metric by itself is the feature map of a row of ones, whose slots follow one another. */
static void NAME(weigh)(const tk_map *map, int32_t first, int32_t last, const tk_table *table, void *memory)
{
    const NAME(visitor) visit = {NAME(weigh_suffixes), NAME(weigh_one), 1, 1, 0};
    const NAME(scratch) c = NAME(carve)(memory, 1, map->n_columns);
    NAME(weigh_verb) verb = {table->values, table->width};
    NAME(walker) w = {.placed = 0};
    NAME(load_ones)(map, &c, &w);
    NAME(walk)(&w, visit, &verb, first, last);
}
