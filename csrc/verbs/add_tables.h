/* add with several tables: vectors of them at a time, up to SLAB vectors in a walk, of which those whose coefficients
 * are all zero are left out. Included by add.h. */

/* The vectors from table `begin` on in which a coefficient of the n rows is not zero; for each a bit for each such row.
 * Returns where the next slab begins. */
static int32_t NAME(begin_slab)(NAME(add_verb) *v, int32_t begin, int n)
{
    v->n_vectors = 0;
    int32_t j = begin;
    for (int g = 0; g < SLAB && j < v->width; g++, j += VLEN) {
        const int32_t end = j + VLEN < v->width ? j + VLEN : v->width;
        unsigned rows = 0;
        for (int b = 0; b < n; b++)
            for (int32_t k = j; k < end; k++)
                rows |= (unsigned)(v->t[b * (int64_t)v->width + k] != 0) << b;
        if (rows) {
            v->at[v->n_vectors] = j;
            v->rows[v->n_vectors++] = rows;
        }
    }
    return j;
}

static FORCE_INLINE int NAME(rest_of)(const NAME(add_verb) *v, int32_t at)
{
    return at + VLEN > v->width ? v->width - at : 0;
}

/* One row. */

static FORCE_INLINE void NAME(add_one_wide)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(add_verb) *v = verb;
    real *u = v->u + slot * v->width;
    (void)w;
    for (int g = 0; g < v->n_vectors; g++) {
        const int32_t end = v->at[g] + VLEN < v->width ? v->at[g] + VLEN : v->width;
        for (int32_t j = v->at[g]; j < end; j++)
            u[j] += *scale * v->t[j];
    }
}

static FORCE_INLINE void NAME(add_vectors)(real *u, const NAME(add_verb) *v, int first, const uint32_t *offset,
                                           const real *value, const NAME(suffix) *suffix, const int vectors,
                                           const int part, int rest)
{
    const int64_t width = v->width, n = suffix->n;
    const int32_t *at = v->at + first;
    const int last = vectors - 1, n_rest = part ? rest : 0;
    const V scale = v_set1(suffix->scale[0]);
    V t[4];
    UNROLL for (int g = 0; g < vectors; g++)
        t[g] = v_mul(scale, NAME(load_vector)(v->t + at[g], g == last ? n_rest : 0));
    for (int64_t k = 0; k < n; k++) {
        real *uk = u + offset[k] * width;
        const V x = v_set1(value[k]);
        UNROLL for (int g = 0; g < vectors; g++) {
            const int r = g == last ? n_rest : 0;
            NAME(store_vector)(uk + at[g], v_fma(x, t[g], NAME(load_vector)(uk + at[g], r)), r);
        }
    }
}

static NOINLINE void NAME(add_wide)(const NAME(add_verb) *v, const uint32_t *offset, const real *value,
                                    const NAME(suffix) *suffix)
{
    real *u = v->u + suffix->base * v->width;
    for (int g = 0, n; g < v->n_vectors; g += n) {
        n = (int)tk_share(v->n_vectors - g, 4);
        const int rest = NAME(rest_of)(v, v->at[g + n - 1]);
        switch (2 * n + (rest != 0)) {
#define TK_CASE(N)                                                                                                     \
    case 2 * N:                                                                                                        \
        NAME(add_vectors)(u, v, g, offset, value, suffix, N, 0, 0);                                                    \
        break;                                                                                                         \
    case 2 * N + 1:                                                                                                    \
        NAME(add_vectors)(u, v, g, offset, value, suffix, N, 1, rest);                                                 \
        break;
            TK_CASE(1) TK_CASE(2) TK_CASE(3) TK_CASE(4)
#undef TK_CASE
        }
    }
}

static FORCE_INLINE void NAME(add_suffixes_wide)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                 int n)
{
    (void)n;
    NAME(add_wide)(verb, w->offset + w->at[p], w->value + w->at[p], suffix);
}

/* MATRIX_LANES rows: a product of matrices, LANES of them at a time. */

static FORCE_INLINE void NAME(add_one_matrix)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(add_verb) *v = verb;
    real *u = v->u + slot * v->width;
    (void)w;
    for (int g = 0; g < v->n_vectors; g++) {
        const int32_t end = v->at[g] + VLEN < v->width ? v->at[g] + VLEN : v->width;
        for (int b = 0; b < v->n_rows; b++)
            for (int32_t j = v->at[g]; j < end; j++)
                u[j] += scale[b] * v->t[b * (int64_t)v->width + j];
    }
}

/* The rows of a bit set, LANES bits from row `first` on: their coefficients of one vector of tables times their scales,
 * and where their values are. Returns how many. */
static FORCE_INLINE int NAME(gather_rows)(const NAME(add_verb) *v, unsigned rows, int first, int32_t at,
                                          const real *scale, const real *value, V *t, const real **x)
{
    const int rest = NAME(rest_of)(v, at);
    int n = 0;
    for (int b = 0; b < LANES; b++)
        if (rows >> b & 1) {
            t[n] =
                v_mul(v_set1(scale[first + b]), NAME(load_vector)(v->t + (first + b) * (int64_t)v->width + at, rest));
            x[n++] = value + (first + b) * LANE_STRIDE;
        }
    return n;
}

/* u[k] += sum_b x[b][k] t[b], k < n, for one vector of tables. */
static FORCE_INLINE void NAME(add_tile)(real *u, int64_t width, const V *t, const real *const *x, int64_t n,
                                        const int rows, const int part, int rest)
{
    const int n_rest = part ? rest : 0;
    for (int64_t k = 0; k < n; k++) {
        V sum = NAME(load_vector)(u + k * width, n_rest);
        UNROLL for (int b = 0; b < rows; b++)
            sum = v_fma(v_set1(x[b][k]), t[b], sum);
        NAME(store_vector)(u + k * width, sum, n_rest);
    }
}

/* The same for two vectors and all LANES rows: each value that is loaded serves both. */
static FORCE_INLINE void NAME(add_pair)(real *u0, real *u1, int64_t width, const V *t0, const V *t1, const real *value,
                                        int64_t n, const int part, int rest)
{
    const int n_rest = part ? rest : 0;
    for (int64_t k = 0; k < n; k++) {
        V sum0 = v_load(u0 + k * width), sum1 = NAME(load_vector)(u1 + k * width, n_rest);
        UNROLL for (int b = 0; b < LANES; b++) {
            const V x = v_set1(value[b * LANE_STRIDE + k]);
            sum0 = v_fma(x, t0[b], sum0);
            sum1 = v_fma(x, t1[b], sum1);
        }
        v_store(u0 + k * width, sum0);
        NAME(store_vector)(u1 + k * width, sum1, n_rest);
    }
}

/* LANES rows from row `first` on, and the vector g of tables; or two when all of these rows have coefficients in them
 * and there are registers for that. Returns how many vectors. */
static FORCE_INLINE int NAME(add_some)(const NAME(add_verb) *v, int g, int first, const real *scale, real *u,
                                       const real *value, int64_t n)
{
    const unsigned every = (1u << LANES) - 1, rows = v->rows[g] >> first & every;
    V t[LANES], t1[LANES];
    const real *x[LANES];
    const int n_t = NAME(gather_rows)(v, rows, first, v->at[g], scale, value, t, x);
    if (PAIRS && rows == every && g + 1 < v->n_vectors && (v->rows[g + 1] >> first & every) == every) {
        const int rest = NAME(rest_of)(v, v->at[g + 1]);
        real *u0 = u + v->at[g], *u1 = u + v->at[g + 1];
        NAME(gather_rows)(v, every, first, v->at[g + 1], scale, value, t1, x);
        if (rest)
            NAME(add_pair)(u0, u1, v->width, t, t1, x[0], n, 1, rest);
        else
            NAME(add_pair)(u0, u1, v->width, t, t1, x[0], n, 0, 0);
        return 2;
    }
    const int rest = NAME(rest_of)(v, v->at[g]);
    switch (2 * n_t + (rest != 0)) {
#define TK_CASE(N)                                                                                                     \
    case 2 * N:                                                                                                        \
        NAME(add_tile)(u + v->at[g], v->width, t, x, n, N, 0, 0);                                                      \
        break;                                                                                                         \
    case 2 * N + 1:                                                                                                    \
        NAME(add_tile)(u + v->at[g], v->width, t, x, n, N, 1, rest);                                                   \
        break;
        TK_CASE(1) TK_CASE(2) TK_CASE(3) TK_CASE(4) TK_CASE(5) TK_CASE(6) TK_CASE(7) TK_CASE(8)
#undef TK_CASE
    }
    return 1;
}

static NOINLINE void NAME(add_matrix)(const NAME(add_verb) *v, const real *scale, real *u, const real *value, int64_t n)
{
    const int64_t width = v->width, step = tk_chunk(width, sizeof(real));
    for (int64_t first = 0; first < n; first += step) {
        const int64_t some = n - first < step ? n - first : step;
        for (int b = 0; b < v->n_rows; b += LANES)
            for (int g = 0; g < v->n_vectors;)
                g += NAME(add_some)(v, g, b, scale, u + first * width, value + first, some);
    }
}

static FORCE_INLINE void NAME(add_suffixes_matrix)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                   int n)
{
    const NAME(add_verb) *v = verb;
    real *u = v->u + suffix->base * v->width;
    (void)n;
    NAME(add_matrix)(v, suffix->scale, u, w->value + w->at[p], suffix->n);
}
