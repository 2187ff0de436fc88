/* One row of numbers. Included by survey.c once per real type. Loops over LANES are those that compilers make vectors
 * of. */

enum { NAME(LANES) = 8, NAME(WIDE) = 128 / sizeof(real), NAME(AT_ONCE) = 16 * NAME(WIDE) };

static int64_t NAME(nonzeros)(const real *x, int64_t n)
{
    int32_t count = 0; /* as wide as a float: n is a number of columns */
    for (int64_t j = 0; j < n; j++)
        count += x[j] != 0;
    return count;
}

/* One kind of test after the other, each with few enough numbers at hand for all of them to be in registers. Numbers
 * that are looked at twice come from the cache the second time: memory brings the next ones meanwhile. */
static int NAME(all_finite)(const real *x, int64_t n, int nonzero)
{
    real odd[NAME(WIDE)] = {0}, least[NAME(WIDE)];
    for (int l = 0; l < NAME(WIDE); l++)
        least[l] = 1;
    const int64_t whole = n - n % NAME(WIDE);
    for (int64_t begin = 0, end; begin < whole; begin = end) {
        end = whole - begin < NAME(AT_ONCE) ? whole : begin + NAME(AT_ONCE);
        for (int64_t j = begin; j < end; j += NAME(WIDE))
            for (int l = 0; l < NAME(WIDE); l++)
                odd[l] += x[j + l] - x[j + l]; /* NaN from the first one on that is not finite */
        for (int64_t j = begin; nonzero && j < end; j += NAME(WIDE)) {
            TK_PREFETCH(x + j + 2 * NAME(AT_ONCE));
            TK_PREFETCH(x + j + 2 * NAME(AT_ONCE) + NAME(WIDE) / 2);
            for (int l = 0; l < NAME(WIDE); l++)
                least[l] = magnitude(x[j + l]) < least[l] ? magnitude(x[j + l]) : least[l];
        }
    }
    for (int64_t j = whole; j < n; j++) {
        odd[0] += x[j] - x[j];
        least[0] = x[j] == 0 ? 0 : least[0];
    }
    for (int l = 0; l < NAME(WIDE); l++)
        if (odd[l] != 0 || (nonzero && least[l] == 0))
            return 0;
    return 1;
}

static double NAME(square)(const real *x, int64_t n)
{
    double sums[NAME(LANES)] = {0}, total = 0;
    int64_t j = 0;
    for (; j + NAME(LANES) <= n; j += NAME(LANES))
        for (int l = 0; l < NAME(LANES); l++)
            sums[l] += (double)x[j + l] * (double)x[j + l];
    for (; j < n; j++)
        total += (double)x[j] * (double)x[j];
    for (int l = 0; l < NAME(LANES); l++)
        total += sums[l];
    return total;
}

static void NAME(count_columns)(const tk_rows *rows, int64_t step, const real *by, int32_t *stored, int32_t *equal,
                                int64_t n_rows)
{
    const int64_t d = rows->n_columns;
    for (int64_t i = 0; i < n_rows; i += step) {
        const real *x = rows->data;
        if (!rows->indptr) {
            x += i * d;
            for (int64_t j = 0; j < d; j++)
                equal[j] += x[j] == by[j];
            for (int64_t j = 0; j < d; j++)
                stored[j]++;
            continue;
        }
        for (int64_t k = rows->indptr[i]; k < rows->indptr[i + 1]; k++) {
            const int32_t j = rows->indices[k];
            equal[j] += x[k] == by[j];
            stored[j]++;
        }
    }
}

static void NAME(take_columns)(const tk_rows *rows, int64_t step, const int32_t *line, real *values, int64_t n_rows)
{
    const int64_t d = rows->n_columns, n_some = (n_rows + step - 1) / step;
    for (int64_t i = 0, at = 0; i < n_rows; i += step, at++) {
        const int64_t begin = rows->indptr ? rows->indptr[i] : i * d,
                      end = rows->indptr ? rows->indptr[i + 1] : begin + d;
        for (int64_t k = begin; k < end; k++) {
            const int32_t l = line[rows->indptr ? rows->indices[k] : k - begin];
            if (l >= 0)
                values[l * n_some + at] = ((const real *)rows->data)[k];
        }
    }
}
