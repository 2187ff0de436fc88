/* dot with several tables. Included by dot.h. */

/* One row: a monomial is multiplied with all of its slot, vectors of tables at a time. */

static FORCE_INLINE void NAME(dot_one_wide)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(dot_verb) *v = verb;
    const real *u = v->u + slot * v->width;
    (void)w;
    for (int32_t j = 0; j < v->width; j++)
        v->sums[j] += *scale * u[j];
}

static FORCE_INLINE void NAME(store_vector)(real *at, V v, int rest)
{
    if (rest)
        v_store_n(at, v, rest);
    else
        v_store(at, v);
}

/* So many vectors of tables, from u and sums on. */
static FORCE_INLINE void NAME(dot_vectors)(real *sums, const real *u, int64_t width, const uint32_t *offset,
                                           const real *value, const NAME(suffix) *suffix, const int vectors,
                                           const int part, int rest)
{
    const int64_t n = suffix->n;
    const int last = vectors - 1, n_rest = part ? rest : 0;
    V even[8], odd[8];
    int64_t k = 0;
    UNROLL for (int g = 0; g < vectors; g++)
        even[g] = odd[g] = v_zero();
    if (vectors <= 4) /* two sums each: one addition need not wait for the other */
        for (; k + 2 <= n; k += 2) {
            const real *u0 = u + offset[k] * width, *u1 = u + offset[k + 1] * width;
            const V x0 = v_set1(value[k]), x1 = v_set1(value[k + 1]);
            UNROLL for (int g = 0; g < vectors; g++) {
                even[g] = v_fma(x0, NAME(load_vector)(u0 + g * VLEN, g == last ? n_rest : 0), even[g]);
                odd[g] = v_fma(x1, NAME(load_vector)(u1 + g * VLEN, g == last ? n_rest : 0), odd[g]);
            }
        }
    for (; k < n; k++) {
        const real *uk = u + offset[k] * width;
        const V x = v_set1(value[k]);
        UNROLL for (int g = 0; g < vectors; g++)
            even[g] = v_fma(x, NAME(load_vector)(uk + g * VLEN, g == last ? n_rest : 0), even[g]);
    }
    const V scale = v_set1(suffix->scale[0]);
    UNROLL for (int g = 0; g < vectors; g++) {
        const V sum = vectors <= 4 ? v_add(even[g], odd[g]) : even[g];
        const int r = g == last ? n_rest : 0;
        NAME(store_vector)(sums + g * VLEN, v_fma(scale, sum, NAME(load_vector)(sums + g * VLEN, r)), r);
    }
}

static NOINLINE void NAME(dot_wide)(real *sums, const real *u, int64_t width, const uint32_t *offset, const real *value,
                                    const NAME(suffix) *suffix)
{
    const int64_t all = (width + VLEN - 1) / VLEN;
    u += suffix->base * width;
    for (int64_t g = 0, n; g < all; g += n) {
        n = tk_share(all - g, 8);
        const int rest = g + n == all ? (int)(width % VLEN) : 0;
        switch (2 * n + (rest != 0)) {
#define TK_CASE(N)                                                                                                     \
    case 2 * N:                                                                                                        \
        NAME(dot_vectors)(sums + g * VLEN, u + g * VLEN, width, offset, value, suffix, N, 0, 0);                       \
        break;                                                                                                         \
    case 2 * N + 1:                                                                                                    \
        NAME(dot_vectors)(sums + g * VLEN, u + g * VLEN, width, offset, value, suffix, N, 1, rest);                    \
        break;
            TK_CASE(1) TK_CASE(2) TK_CASE(3) TK_CASE(4) TK_CASE(5) TK_CASE(6) TK_CASE(7) TK_CASE(8)
#undef TK_CASE
        }
    }
}

static FORCE_INLINE void NAME(dot_suffixes_wide)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                 int n)
{
    NAME(dot_verb) *v = verb;
    (void)n;
    NAME(dot_wide)(v->sums, v->u, v->width, w->offset + w->at[p], w->value + w->at[p], suffix);
}

/* MATRIX_LANES rows: a product of matrices, in tiles of rows and vectors of tables. */

static FORCE_INLINE void NAME(dot_one_matrix)(const NAME(walker) *w, void *verb, int64_t slot, const real *scale)
{
    NAME(dot_verb) *v = verb;
    const real *u = v->u + slot * v->width;
    (void)w;
    for (int b = 0; b < v->n_rows; b++)
        for (int32_t j = 0; j < v->width; j++)
            v->sums[b * (int64_t)v->width + j] += scale[b] * u[j];
}

/* sums[b][j] += scale[b] sum_{k < n} value[b][k] u[k][j]. */
static FORCE_INLINE void NAME(dot_tile)(real *sums, int64_t width, const real *scale, const real *u, const real *value,
                                        int64_t n, const int rows, const int vectors, const int part, int rest)
{
    V sum[TILE_ROWS][TILE_VECTORS];
    const int last = vectors - 1, n_rest = part ? rest : 0;
    UNROLL for (int b = 0; b < rows; b++) UNROLL
        for (int g = 0; g < vectors; g++)
            sum[b][g] = v_zero();
    for (int64_t k = 0; k < n; k++) {
        V uk[TILE_VECTORS];
        UNROLL for (int g = 0; g < vectors; g++)
            uk[g] = NAME(load_vector)(u + k * width + g * VLEN, g == last ? n_rest : 0);
        UNROLL for (int b = 0; b < rows; b++) {
            const V x = v_set1(value[b * LANE_STRIDE + k]);
            UNROLL for (int g = 0; g < vectors; g++)
                sum[b][g] = v_fma(x, uk[g], sum[b][g]);
        }
    }
    UNROLL for (int b = 0; b < rows; b++) UNROLL
        for (int g = 0; g < vectors; g++) {
            real *at = sums + b * width + g * VLEN;
            const int r = g == last ? n_rest : 0;
            NAME(store_vector)(at, v_fma(v_set1(scale[b]), sum[b][g], NAME(load_vector)(at, r)), r);
        }
}

/* All rows, for so many vectors of tables. */
static FORCE_INLINE void NAME(dot_tiles)(real *sums, int64_t width, const real *scale, const real *u, const real *value,
                                         int64_t n, int rows, const int vectors, const int part, int rest)
{
    int b = 0;
    for (; b + TILE_ROWS <= rows; b += TILE_ROWS)
        NAME(dot_tile)(sums + b * width, width, scale + b, u, value + b * LANE_STRIDE, n, TILE_ROWS, vectors, part,
                       rest);
    for (; b < rows; b++)
        NAME(dot_tile)(sums + b * width, width, scale + b, u, value + b * LANE_STRIDE, n, 1, vectors, part, rest);
}

static NOINLINE void NAME(dot_matrix)(const NAME(dot_verb) *v, const real *scale, const real *u, const real *value,
                                      int64_t n)
{
    const int64_t width = v->width, all = (width + VLEN - 1) / VLEN, step = tk_chunk(width, sizeof(real));
    for (int64_t first = 0; first < n; first += step) {
        const int64_t some = n - first < step ? n - first : step;
        for (int64_t g = 0, m; g < all; g += m) {
            m = tk_share(all - g, TILE_VECTORS);
            const int rest = g + m == all ? (int)(width % VLEN) : 0;
            const real *uk = u + first * width + g * VLEN, *x = value + first;
            real *sums = v->sums + g * VLEN;
            switch (2 * m + (rest != 0)) {
#define TK_CASE(N)                                                                                                     \
    case 2 * N:                                                                                                        \
        NAME(dot_tiles)(sums, width, scale, uk, x, some, v->n_rows, N, 0, 0);                                          \
        break;                                                                                                         \
    case 2 * N + 1:                                                                                                    \
        NAME(dot_tiles)(sums, width, scale, uk, x, some, v->n_rows, N, 1, rest);                                       \
        break;
                TK_CASE(1) TK_CASE(2) TK_CASE(3)
#undef TK_CASE
            }
        }
    }
}

static FORCE_INLINE void NAME(dot_suffixes_matrix)(const NAME(walker) *w, void *verb, int p, const NAME(suffix) *suffix,
                                                   int n)
{
    const NAME(dot_verb) *v = verb;
    const real *u = v->u + suffix->base * v->width;
    (void)n;
    NAME(dot_matrix)(v, suffix->scale, u, w->value + w->at[p], suffix->n);
}
