/* gram: inner products of features in closed form, without a walk. Included once per real type. */

/* What is known of n rows in the form at hand, in the scratch: see tk_gram_parts. */
typedef struct {
    real *spread;    /* [n_columns] zero, but within products */
    real *columns;   /* [n_columns][stride] the scaled numbers of the rows; or NULL */
    int64_t stride;  /* n, and what is missing to whole vectors, and to GRAM_ROWS */
    int64_t *stored; /* [n] */
    double *s;       /* [n]; rows without features (s = 0) count as rows of zeros */
    double *here;    /* [n] the same, but 0 for rows in other cells than the one at hand */
    double *scale;   /* [n] of their numbers, and */
    double *shrink;  /* [n] their constant coordinate: see factor.h */
    int far;         /* whether that is not 1 for all */
    real *z;         /* [GRAM_ROWS][stride] inner products */
} NAME(known_rows);

static NAME(known_rows) NAME(know_rows)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t n, void *scratch)
{
    const tk_gram_parts parts = tk_gram_parts_of(rows, n);
    char *at = (char *)scratch + parts.spread;
    NAME(known_rows) k = {.spread = scratch, .stride = (n + GRAM_PAD - 1) / GRAM_PAD * GRAM_PAD};
    k.columns = parts.columns ? (real *)at : NULL;
    k.stored = (int64_t *)(at + parts.columns);
    k.s = (double *)(k.stored + n);
    k.here = k.s + n;
    k.scale = k.here + n;
    k.shrink = k.scale + n;
    k.z = (real *)(k.shrink + n);
    /* Other threads may have seen some of them, and have these in their caches. */
    for (int64_t i = 0; i < n; i++) {
        k.stored[i] = tk_stored(rows, first + i);
        if (rows->indptr) {
            TK_PREFETCH((const real *)rows->data + rows->indptr[k.stored[i]]);
            TK_PREFETCH(rows->indices + rows->indptr[k.stored[i]]);
        } else {
            TK_PREFETCH((const real *)rows->data + k.stored[i] * rows->n_columns);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const tk_factor f = NAME(stored_factor)(rows, map, k.stored[i]);
        k.s[i] = (double)(real)f.s;
        k.scale[i] = f.scale;
        k.shrink[i] = f.shrink;
        k.far |= f.shrink != 1;
    }
    return k;
}

/* The rows column by column: their inner products with one of them are then sums of whole vectors, one for each of its
 * nonzeros. Rows without features are zeros, as is what is beyond the last row. */
static NOINLINE void NAME(fill_columns)(const tk_rows *rows, int64_t n, const NAME(known_rows) *k)
{
    const int64_t stride = k->stride;
    for (int64_t j = 0; j < rows->n_columns * stride; j += VLEN)
        v_store(k->columns + j, v_zero());
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = rows->indptr[k->stored[i]], m = rows->indptr[k->stored[i] + 1] - begin;
        const real *data = (const real *)rows->data + begin;
        const int32_t *indices = rows->indices + begin;
        const real scale = (real)k->scale[i];
        real *column = k->columns + i;
        for (int64_t j = 0, used = k->s[i] != 0 ? m : 0; j < used; j++)
            column[indices[j] * stride] = scale * data[j];
    }
}

/* The same of dense rows, some at a time. */
static NOINLINE void NAME(fill_dense_columns)(const tk_rows *rows, int64_t n, const NAME(known_rows) *k)
{
    const int64_t d = rows->n_columns;
    for (int64_t i = 0; i < k->stride; i += GRAM_ROWS) {
        const real *data[GRAM_ROWS];
        real by[GRAM_ROWS];
        for (int b = 0; b < GRAM_ROWS; b++) {
            const int64_t row = i + b < n ? i + b : 0;
            data[b] = (const real *)rows->data + k->stored[row] * d;
            by[b] = i + b < n && k->s[row] != 0 ? (real)k->scale[row] : 0;
        }
        real *column = k->columns + i;
        for (int64_t j = 0; j < d; j++, column += k->stride) UNROLL
            for (int b = 0; b < GRAM_ROWS; b++)
                column[b] = by[b] * data[b][j];
    }
}

/* z[j] = <x, x_j> for some vectors of j: x has the numbers scale * data[k] in the columns at[k]. */
static FORCE_INLINE void NAME(products_of)(const real *columns, int64_t stride, real scale, const real *data,
                                           const int32_t *at, int64_t m, real *z, const int vectors)
{
    V sum[8];
    UNROLL for (int g = 0; g < vectors; g++)
        sum[g] = v_zero();
    for (int64_t k = 0; k < m; k++) {
        const real *column = columns + at[k] * stride;
        const V x = v_set1(scale * data[k]);
        KEEP_ADDRESS(column);
        UNROLL for (int g = 0; g < vectors; g++)
            sum[g] = v_fma(x, v_load(column + g * VLEN), sum[g]);
    }
    UNROLL for (int g = 0; g < vectors; g++)
        v_store(z + g * VLEN, sum[g]);
}

static NOINLINE void NAME(products_by_columns)(const NAME(known_rows) *k, int64_t from, real scale, const real *data,
                                               const int32_t *at, int64_t m, real *z)
{
    for (int64_t j = from, n; j < k->stride; j += n * VLEN) {
        n = tk_share((k->stride - j) / VLEN, 8);
        switch (n) {
#define TK_CASE(N)                                                                                                     \
    case N:                                                                                                            \
        NAME(products_of)(k->columns + j, k->stride, scale, data, at, m, z + j, N);                                    \
        break;
            TK_CASE(1) TK_CASE(2) TK_CASE(3) TK_CASE(4) TK_CASE(5) TK_CASE(6) TK_CASE(7) TK_CASE(8)
#undef TK_CASE
        }
    }
}

/* Dense rows have all columns: some rows share each load, as in a product of matrices. */
static FORCE_INLINE void NAME(products_of_some)(const real *columns, int64_t stride, int64_t d, int64_t i, int64_t j,
                                                real *z, const int vectors)
{
    V sum[GRAM_ROWS][TILE_VECTORS];
    UNROLL for (int b = 0; b < GRAM_ROWS; b++) UNROLL
        for (int g = 0; g < vectors; g++)
            sum[b][g] = v_zero();
    for (int64_t k = 0; k < d; k++, columns += stride) {
        V y[TILE_VECTORS];
        UNROLL for (int g = 0; g < vectors; g++)
            y[g] = v_load(columns + j + g * VLEN);
        UNROLL for (int b = 0; b < GRAM_ROWS; b++) {
            const V x = v_set1(columns[i + b]);
            UNROLL for (int g = 0; g < vectors; g++)
                sum[b][g] = v_fma(x, y[g], sum[b][g]);
        }
    }
    UNROLL for (int b = 0; b < GRAM_ROWS; b++) UNROLL
        for (int g = 0; g < vectors; g++)
            v_store(z + b * stride + j + g * VLEN, sum[b][g]);
}

static NOINLINE void NAME(products_of_dense)(const NAME(known_rows) *k, int64_t d, int64_t i, int64_t from)
{
    for (int64_t j = from, n; j < k->stride; j += n * VLEN) {
        n = tk_share((k->stride - j) / VLEN, TILE_VECTORS);
        if (n == 3)
            NAME(products_of_some)(k->columns, k->stride, d, i, j, k->z, 3);
        else if (n == 2)
            NAME(products_of_some)(k->columns, k->stride, d, i, j, k->z, 2);
        else
            NAME(products_of_some)(k->columns, k->stride, d, i, j, k->z, 1);
    }
}

/* The same for few rows, or where columns are too many: the row is spread over all columns, so that the others find
 * their factors by their indices. In vectors, of which one number counts: the same sums to the bit, fused or not. */
static void NAME(products_by_rows)(const tk_rows *rows, const NAME(known_rows) *k, int64_t from, int64_t n, real scale,
                                   const real *data, const int32_t *at, int64_t m, real *z)
{
    for (int64_t j = 0; j < m; j++)
        k->spread[at ? at[j] : j] = scale * data[j];
    for (int64_t i = from; i < n; i++) {
        const int64_t d = rows->n_columns, begin = rows->indptr ? rows->indptr[k->stored[i]] : k->stored[i] * d;
        const int64_t end = rows->indptr ? rows->indptr[k->stored[i] + 1] : begin + d;
        const real scale_i = (real)k->scale[i];
        real first[VLEN];
        V sum = v_zero();
        for (int64_t j = begin; k->s[i] != 0 && j < end; j++)
            sum = v_fma(v_set1(k->spread[rows->indptr ? rows->indices[j] : j - begin]),
                        v_set1(scale_i * ((const real *)rows->data)[j]), sum);
        v_store(first, sum);
        z[i] = first[0];
    }
    for (int64_t j = 0; j < m; j++)
        k->spread[at ? at[j] : j] = 0;
}

/* The same as series, where some rows are far out: sum_k series[k] z^k c^(r - k), c the product of their constant
 * coordinates. */
static NOINLINE void NAME(far_series)(const tk_map *map, const NAME(known_rows) *k, int64_t i, const double *others,
                                      int64_t from, int64_t n, int onto, double *to)
{
    const real *z = k->z + i % GRAM_ROWS * k->stride;
    for (int64_t j = from; j < n; j++) {
        const double c = k->shrink[i] * k->shrink[j];
        double sum = map->series[map->degree], power = 1;
        for (int p = map->degree - 1; p >= 0; p--) {
            power *= c;
            sum = sum * (double)z[j] + map->series[p] * power;
        }
        sum *= k->s[i] * others[j - from];
        to[j] = onto ? to[j] + sum : sum;
    }
}

/* A product of two rows is the sum over the columns of either, rising, whichever of them is spread: the matrix is
 * symmetric, and what is below the tiles of its diagonal is copied from above. Forms but the first are added. */
static void NAME(gram)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch,
                       int onto)
{
    const int64_t n = last - first;
    const NAME(known_rows) k = NAME(know_rows)(rows, map, first, n, scratch);
    if (k.columns && rows->indptr)
        NAME(fill_columns)(rows, n, &k);
    else if (k.columns)
        NAME(fill_dense_columns)(rows, n, &k);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = k.stored[i], begin = rows->indptr ? rows->indptr[row] : row * rows->n_columns;
        const int64_t m = rows->indptr ? rows->indptr[row + 1] - begin : rows->n_columns, used = k.s[i] != 0 ? m : 0;
        const real *data = (const real *)rows->data + begin, scale = (real)k.scale[i];
        const int32_t *at = rows->indptr ? rows->indices + begin : NULL;
        const int64_t from = i - i % GRAM_TILE;
        real *z = k.z + i % GRAM_ROWS * k.stride;
        if (!k.columns)
            NAME(products_by_rows)(rows, &k, from, n, scale, data, at, used, z);
        else if (at)
            NAME(products_by_columns)(&k, from, scale, data, at, used, z);
        else if (i % GRAM_ROWS == 0)
            NAME(products_of_dense)(&k, rows->n_columns, i, from);
        for (int64_t j = from; rows->base && j < n; j++)
            k.here[j] = rows->base[row] == rows->base[k.stored[j]] ? k.s[j] : 0;
        const double *others = (rows->base ? k.here : k.s) + from;
        if (k.far)
            NAME(far_series)(map, &k, i, others, from, n, onto, gram + i * n);
        else
            NAME(series)(map, k.s[i], others, z + from, n - from, onto, gram + i * n + from);
        if (i == from + GRAM_TILE - 1)
            copy_below(gram, n, from);
    }
}
