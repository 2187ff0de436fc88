/* The monomial walk: every nonzero monomial of a row (or of a few rows at once). Read this first.
 *
 * Included once per real type. load.h makes rows ready for the walk, and the verbs (verbs/) are its visitors. A row is
 * its nonzeros 1..m with coordinates coord[1] < ... < coord[m], and the constant coordinate 0 in front. A monomial is a
 * multiset t_1 <= ... <= t_r of 0..m; its slot is the sum of ranks[p][coord[t_p]].
 *
 * Two ideas carry everything:
 *
 * 1. All multisets of p places over 0..m, in the order of their slots, are a table of (offset, value). Those that use
 *    0..t only are a prefix of it, of length C(t + p, p). So for a fixed suffix t_{q+1} <= ... <= t_r the monomials are
 *    a run over the first C(t_{q+1} + q, q) entries of the table of q places: slot = base + offset, monomial =
 *    scale * value. The tables of 0, 1, ..., q places are small, are built once per row (tables.h), and stay in the
 * first-level cache while the suffixes go by. Neighbouring suffixes share the loads of (offset, value).
 *
 * 2. Rows that share their coordinates (dense rows) share suffixes, bases and offsets. They are walked several at a
 * time, and each number of the big table that is loaded serves them all.
 *
 * Sparse rows, too, often begin with the same columns, those that are hardly ever zero: they have the lowest numbers.
 * The entries of a table that use no other coordinates than 0..head have the offsets 0, 1, 2, ...: their slots are
 * taken by whole vectors.
 *
 * The metric: an entry of a table that is all constant, in p places, has the value constant[p]; and a coordinate that
 * comes up for the e-th time, within an entry or along a suffix, multiplies by repeat[e], where repeat[1] = 1. A
 * table's values do not know the suffix, which matters to entries that use t itself after a suffix whose lowest
 * coordinate is t. So a suffix goes with entries that use 0..t-1 only; then t takes one place more, and one more, each
 * time with a factor of its own and with a smaller table, until no place is left. Under a bare map all factors are 1,
 * and a suffix takes all entries that use 0..t at once.
 */

/* The row or rows under the walk. Sparse: one lane. Dense: several, coord[t] = t, and offset[k] would be k. */
typedef struct {
    const tk_map *map;
    int32_t m;              /* nonzeros */
    int32_t head;           /* sparse: coord[t] is t up to here, for entries to be taken by whole vectors; or 0 */
    int32_t q;              /* places of the largest table */
    const int32_t *coord;   /* sparse: [m + 1] */
    const real *x;          /* [m + 1][lanes]; x[0] is not used */
    const uint32_t *offset; /* sparse: the tables of 0..q places, that of p places from [at[p]] on */
    const real *value;      /* likewise; dense: one row's behind the other, LANE_STRIDE entries apart */
    int64_t at[TK_MAX_DEGREE + 1];
    int32_t placed; /* q and at[] are those of rows with so many nonzeros, less 1, wherever these are; 0: of none */
    real s[MATRIX_LANES];        /* s(x), by factor.h */
    const real *constant;        /* [r + 1][lanes]: map->constant for rows whose constant coordinate is shrink */
    double shrink[MATRIX_LANES]; /* 0 at first: of none */
} NAME(walker);

/* A suffix, with the entries of a table that go with it: the monomials scale * value[k] in the slots base + offset[k],
 * for k < n. */
typedef struct {
    int64_t base, n;
    real scale[MATRIX_LANES];
} NAME(suffix);

/* How a verb looks at the walk. */
typedef struct {
    /* n suffixes, at most group, that go with the table of p places, each with as many entries as the one before or
     * more. */
    void (*suffixes)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix, int n);
    /* A single slot. */
    void (*one)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale);
    int group; /* suffixes to visit together; 1 when the slots have to rise */
    int lanes;
    int bare; /* as the map says */
} NAME(visitor);

/* ranks[p]: C(j + p - 1, p) at j; and at t + 1 the number of multisets of p places over 0..t. */
static inline const int64_t *NAME(ranks)(const tk_map *map, int p)
{
    return map->ranks + p * ((int64_t)map->n_columns + 2);
}

/* suffix: the one above with t at place q + 1. */
static FORCE_INLINE void NAME(take_up)(const NAME(walker) *w, NAME(visitor) visit, const NAME(suffix) *above, int32_t t,
                                       NAME(suffix) *suffix)
{
    const int64_t *ranks = NAME(ranks)(w->map, w->q + 1), *counts = NAME(ranks)(w->map, w->q);
    const real *restrict x = w->x + (int64_t)t * visit.lanes;
    suffix->base = above->base + ranks[w->coord ? w->coord[t] : t];
    suffix->n = counts[visit.bare ? t + 1 : t];
    for (int b = 0; b < visit.lanes; b++)
        suffix->scale[b] = above->scale[b] * x[b];
}

/* n suffixes that end with t, t + 1, ... at place q + 1, the e-th time that these come up in them. */
static FORCE_INLINE void NAME(visit_suffixes)(const NAME(walker) *w, NAME(visitor) visit, void *verb,
                                              NAME(suffix) *suffix, const int n, int32_t t, int e)
{
    const tk_map *map = w->map;
    if (w->q > 0)
        visit.suffixes(w, verb, w->q, suffix, n);
    if (w->q > 0 && visit.bare)
        return;
    for (int p = w->q - 1; p >= 0; p--) {
        const int64_t *ranks = NAME(ranks)(map, p + 1), *counts = NAME(ranks)(map, p);
        const real repeat = (real)map->repeat[++e];
        UNROLL for (int g = 0; g < n; g++) {
            const real *restrict x = w->x + (int64_t)(t + g) * visit.lanes;
            suffix[g].base += ranks[w->coord ? w->coord[t + g] : t + g];
            suffix[g].n = counts[t + g];
            for (int b = 0; b < visit.lanes; b++)
                suffix[g].scale[b] *= x[b] * repeat;
        }
        if (p > 0)
            visit.suffixes(w, verb, p, suffix, n);
    }
    UNROLL for (int g = 0; g < n; g++) {
        for (int b = 0; b < visit.lanes; b++)
            suffix[g].scale[b] *= (real)map->constant[0];
        visit.one(w, verb, suffix[g].base, suffix[g].scale);
    }
}

/* All monomials with the suffix above (places q + 2 to r, with top, its lowest coordinate, e times) and with first <= t
 * <= top at place q + 1. */
static FORCE_INLINE void NAME(walk_place)(const NAME(walker) *w, NAME(visitor) visit, void *verb,
                                          const NAME(suffix) *above, int32_t first, int32_t top, int e)
{
    const int repeated = !visit.bare && e > 0;
    const int32_t last = top + 1 - repeated;
    NAME(suffix) group[GROUP];
    int32_t t = first;
    /* What is no whole group comes first, where the runs are short. */
    for (int n = (last - first) % visit.group; n > 0; n--, t++) {
        NAME(take_up)(w, visit, above, t, group);
        NAME(visit_suffixes)(w, visit, verb, group, 1, t, 1);
    }
    for (; t < last; t += visit.group) {
        UNROLL for (int g = 0; g < visit.group; g++)
            NAME(take_up)(w, visit, above, t + g, &group[g]);
        NAME(visit_suffixes)(w, visit, verb, group, visit.group, t, 1);
    }
    if (repeated) {
        NAME(take_up)(w, visit, above, top, group);
        for (int b = 0; b < visit.lanes; b++)
            group->scale[b] *= (real)w->map->repeat[e + 1];
        NAME(visit_suffixes)(w, visit, verb, group, 1, top, e + 1);
    }
}

/* Visits the monomials whose highest place t_r is in first <= t_r < last, 0 <= first. */
static FORCE_INLINE void NAME(walk)(const NAME(walker) *w, NAME(visitor) visit, void *verb, int32_t first, int32_t last)
{
    const tk_map *map = w->map;
    const int r = map->degree, q = w->q, lanes = visit.lanes;
    /* At place p the walk stands on coordinate t[p]; above[p] is the suffix p..r, with t[p] in it e[p] times. */
    int32_t t[TK_MAX_DEGREE + 2];
    int e[TK_MAX_DEGREE + 2];
    NAME(suffix) above[TK_MAX_DEGREE + 2];
    real constant[MATRIX_LANES];

    t[r + 1] = last - 1;
    e[r + 1] = 0;
    above[r + 1].base = 0;
    for (int b = 0; b < lanes; b++)
        above[r + 1].scale[b] = w->s[b];
    int p = r;
    t[p] = first;
    for (;;) {
        if (t[p] == 0 && t[p] <= t[p + 1]) {
            /* Only the constant is left for this place and below. */
            for (int b = 0; b < lanes; b++)
                constant[b] = above[p + 1].scale[b] * w->constant[p * lanes + b];
            visit.one(w, verb, above[p + 1].base, constant);
            t[p] = 1;
        }
        if (p == q + 1) {
            if (t[p] <= t[p + 1])
                NAME(walk_place)(w, visit, verb, &above[p + 1], t[p], t[p + 1], e[p + 1]);
            t[p] = t[p + 1] + 1;
        }
        while (t[p] > t[p + 1]) {
            if (p == r)
                return;
            t[++p]++;
        }
        e[p] = p < r && t[p] == t[p + 1] ? e[p + 1] + 1 : 1;
        above[p].base = above[p + 1].base + NAME(ranks)(map, p)[w->coord ? w->coord[t[p]] : t[p]];
        const real *x = w->x + (int64_t)t[p] * lanes, repeat = (real)map->repeat[e[p]];
        for (int b = 0; b < lanes; b++)
            above[p].scale[b] = above[p + 1].scale[b] * x[b] * repeat;
        t[--p] = 0;
    }
}

/* How many of the first entries of the table of p places have their own numbers as offsets; few are not worth it. */
static FORCE_INLINE int64_t NAME(head_of)(const NAME(walker) *w, int p)
{
    const int64_t n = w->head ? NAME(ranks)(w->map, p)[w->head + 1] : 0;
    return n < LEAST_HEAD ? 0 : n;
}

/* Coordinates from <= j < to -> the places of a row that have them. */
static FORCE_INLINE void NAME(find_places)(const NAME(walker) *w, int32_t *from, int32_t *to)
{
    int32_t first = 0, last = w->m + 1;
    if (!w->coord)
        return;
    while (first < last && w->coord[first] < *from)
        first++;
    while (last > first && w->coord[last - 1] >= *to)
        last--;
    *from = first;
    *to = last;
}
