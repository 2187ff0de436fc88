/* adapt with several tables. Included by adapt.h. */

/* The step sizes of a vector of tables. */
static FORCE_INLINE V NAME(rates_of)(const NAME(adapt_verb) *v, int32_t at, int rest)
{
    const V eta = v_set1(v->eta);
    return v->rate ? v_mul(eta, NAME(load_vector)(v->rate + at, rest)) : eta;
}

/* n slots by the gradients sum_b x[b][k] t[b]. */
static FORCE_INLINE void NAME(adapt_tile)(real *u, real *h, int64_t width, V eta, const V *t, const real *const *x,
                                          int64_t n, int rows, int rest)
{
    for (int64_t k = 0; k < n; k++) {
        V g = v_zero();
        for (int b = 0; b < rows; b++)
            g = v_fma(v_set1(x[b][k]), t[b], g);
        NAME(adapt_vector)(u + k * width, h + k * width, eta, g, rest);
    }
}

static NOINLINE void NAME(adapt_matrix)(const NAME(adapt_verb) *v, const real *scale, int64_t slot, const real *value,
                                        int64_t n)
{
    const NAME(add_verb) *s = &v->slab;
    const int64_t width = s->width, step = tk_chunk(width, sizeof(real));
    for (int64_t first = 0; first < n; first += step) {
        const int64_t some = n - first < step ? n - first : step;
        for (int g = 0; g < s->n_vectors; g++) {
            const int rest = NAME(rest_of)(s, s->at[g]);
            const int64_t at = (slot + first) * width + s->at[g];
            V t[LANES];
            const real *x[LANES];
            const int rows = NAME(gather_rows)(s, s->rows[g], 0, s->at[g], scale, value + first, t, x);
            NAME(adapt_tile)(v->u + at, v->h + at, width, NAME(rates_of)(v, s->at[g], rest), t, x, some, rows, rest);
        }
    }
}

static FORCE_INLINE void NAME(adapt_suffixes_matrix)(const NAME(walker) *w, void *verb, int p,
                                                     const NAME(suffix) *suffix, int n)
{
    (void)n;
    NAME(adapt_matrix)(verb, suffix->scale, suffix->base, w->value + w->at[p], suffix->n);
}

/* A single slot, for one row or for LANES of them. */
static NOINLINE void NAME(adapt_one_matrix)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    const NAME(adapt_verb) *v = verb;
    (void)w;
    const NAME(add_verb) *s = &v->slab;
    for (int g = 0; g < s->n_vectors; g++) {
        const int rest = NAME(rest_of)(s, s->at[g]);
        const int64_t at = slot * s->width + s->at[g];
        V sum = v_zero();
        for (int b = 0; b < s->n_rows; b++)
            sum = v_fma(v_set1(scale[b]), NAME(load_vector)(s->t + b * (int64_t)s->width + s->at[g], rest), sum);
        NAME(adapt_vector)(v->u + at, v->h + at, NAME(rates_of)(v, s->at[g], rest), sum, rest);
    }
}

static NOINLINE void NAME(adapt_wide)(const NAME(adapt_verb) *v, const uint32_t *offset, const real *value,
                                      const NAME(suffix) *suffix)
{
    const NAME(add_verb) *s = &v->slab;
    const V scale = v_set1(suffix->scale[0]);
    for (int g = 0; g < s->n_vectors; g++) {
        const int rest = NAME(rest_of)(s, s->at[g]);
        const V t = v_mul(scale, NAME(load_vector)(s->t + s->at[g], rest)), eta = NAME(rates_of)(v, s->at[g], rest);
        for (int64_t k = 0; k < suffix->n; k++) {
            const int64_t at = (suffix->base + offset[k]) * s->width + s->at[g];
            const V x = v_set1(value[k]);
            NAME(adapt_vector)(v->u + at, v->h + at, eta, v_mul(x, t), rest);
        }
    }
}

static FORCE_INLINE void NAME(adapt_suffixes_wide)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                   int n)
{
    (void)n;
    NAME(adapt_wide)(verb, w->offset + w->at[p], w->value + w->at[p], suffix);
}
