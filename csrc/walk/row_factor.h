/* s(x) of a row as it is stored: known, or by factor.h. Included once per real type. */

/* The sum of n squares (scale * x)^2. In several sums: one addition need not wait for another. */
static double NAME(sum_of_squares)(double scale, const real *x, int64_t n)
{
    double sum[8] = {0}, rest = 0;
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += scale * x[j + k] * (scale * x[j + k]);
    for (; j < n; j++)
        rest += scale * x[j] * (scale * x[j]);
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7])) + rest;
}

/* The numbers of the row that is stored at i, and how many they are. */
static FORCE_INLINE const real *NAME(stored_row)(const tk_rows *rows, int64_t i, int64_t *n)
{
    const int64_t first = rows->indptr ? rows->indptr[i] : i * rows->n_columns;
    *n = rows->indptr ? rows->indptr[i + 1] - first : rows->n_columns;
    return (const real *)rows->data + first;
}

/* The factor of the row that is stored at i and is far out: its squares may be beyond a double. */
static NOINLINE tk_factor NAME(far_factor)(const tk_rows *rows, const tk_map *map, int64_t i)
{
    int64_t n;
    const real *values = NAME(stored_row)(rows, i, &n);
    double largest = 0, sum = 0;
    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs((double)values[k]));
    const int exponent = ilogb(largest);
    for (int64_t k = 0; k < n; k++) {
        const double x = ldexp((double)values[k], -exponent);
        sum += x * x;
    }
    int of_scale;
    const double scale = frexp(map->scale, &of_scale);
    return tk_far_factor(map, scale * scale * sum, exponent + of_scale);
}

/* The factor of the row that is stored at i: known, or from its n values times `scale`, and what its columns that have
 * no number add to their squares. Where it underflows all features are zero; the row is then emptied, so that 0 * inf
 * never is. */
static FORCE_INLINE tk_factor NAME(row_factor)(const tk_rows *rows, const tk_map *map, int64_t i, double scale,
                                               const real *values, int64_t n)
{
    tk_factor f = {1, 1, map->scale};
    if (!map->unit && map->decay == 0)
        return f;
    if (rows->factor && rows->factor[i] != 0) {
        f.s = (double)(real)rows->factor[i];
        return f;
    }
    double t = NAME(sum_of_squares)(scale, values, n);
    if (!map->unit) {
        t += rows->beyond ? map->scale * map->scale * rows->beyond[i] : 0;
        f.s = (double)(real)exp(-map->decay * t);
        return f;
    }
    const double e = tk_unit_norm(map, t);
    if (!(e <= FAR_FROM))
        return NAME(far_factor)(rows, map, i);
    f.s = e > 0 ? 1 / sqrt(e) : 0;
    return f;
}

/* The same from the values as they are stored. */
static tk_factor NAME(stored_factor)(const tk_rows *rows, const tk_map *map, int64_t i)
{
    int64_t n;
    const real *values = NAME(stored_row)(rows, i, &n);
    return NAME(row_factor)(rows, map, i, map->scale, values, n);
}

static void NAME(factors)(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *s)
{
    for (int64_t i = first; i < last; i++) {
        const tk_factor f = NAME(stored_factor)(rows, map, tk_stored(rows, i));
        s[i - first] = f.shrink == 1 ? f.s : 0;
    }
}
