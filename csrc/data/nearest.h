/* nearest: which centre a row is next to. Included once, for centres in double precision. */

enum { NEAREST = 8 * VLEN }; /* centres that are looked at together: their scores stay in registers */

/* score[c] = |c|^2 / 2 - <x, c>: by as much as that is less, a centre is nearer. Returns the least of them. */
static FORCE_INLINE double score_centres(const tk_rows *rows, const tk_centres *centres, int64_t i, int64_t padded,
                                         int64_t first, double *score, const int wide, const int csr)
{
    const int64_t begin = csr ? rows->indptr[i] : i * rows->n_columns;
    const int64_t end = csr ? rows->indptr[i + 1] : begin + rows->n_columns;
    V sum[8], least;
    double part[VLEN], smallest;
    UNROLL for (int g = 0; g < 8; g++)
        sum[g] = v_load(centres->half + first + g * VLEN);
    for (int64_t k = begin; k < end; k++) {
        const int32_t j = centres->use[csr ? rows->indices[k] : k - begin];
        if (j < 0)
            continue;
        const double *c = centres->values + j * padded + first;
        const V x = v_set1(wide ? -((const double *)rows->data)[k] : -(double)((const float *)rows->data)[k]);
        UNROLL for (int g = 0; g < 8; g++)
            sum[g] = v_fma(x, v_load(c + g * VLEN), sum[g]);
    }
    least = sum[0];
    UNROLL for (int g = 0; g < 8; g++) {
        v_store(score + g * VLEN, sum[g]);
        least = v_min(least, sum[g]);
    }
    v_store(part, least);
    smallest = part[0];
    for (int k = 1; k < VLEN; k++)
        smallest = part[k] < smallest ? part[k] : smallest;
    return smallest;
}

static FORCE_INLINE void nearest_rows(const tk_rows *rows, const tk_centres *centres, int64_t first, int64_t last,
                                      int32_t *cell, const int wide, const int csr)
{
    const int64_t padded = (centres->n_cells + TK_CELL_GROUP - 1) / TK_CELL_GROUP * TK_CELL_GROUP;
    for (int64_t i = first; i < last; i++) {
        const int64_t stored = tk_stored(rows, i);
        double score[NEAREST], least = INFINITY;
        int32_t found = 0;
        for (int64_t group = 0; group < padded; group += NEAREST) {
            const double smallest = score_centres(rows, centres, stored, padded, group, score, wide, csr);
            if (!(smallest < least))
                continue;
            least = smallest;
            for (found = (int32_t)group; score[found - group] != smallest;)
                found++;
        }
        cell[i - first] = found;
    }
}

static void nearest(const tk_rows *rows, int wide, const tk_centres *centres, int64_t first, int64_t last,
                    int32_t *cell)
{
    if (wide && rows->indptr)
        nearest_rows(rows, centres, first, last, cell, 1, 1);
    else if (wide)
        nearest_rows(rows, centres, first, last, cell, 1, 0);
    else if (rows->indptr)
        nearest_rows(rows, centres, first, last, cell, 0, 1);
    else
        nearest_rows(rows, centres, first, last, cell, 0, 0);
}
