/* Rows as they are stored -> rows under the walk: scaled, with s(x) and their tables. Included once per real type. */

/* What a pass keeps for the rows at hand, carved out of the caller's scratch. */
typedef struct {
    real *x;          /* [max_nonzeros + 1][lanes], and SLACK more */
    uint32_t *offset; /* sparse: [room] */
    real *value;      /* sparse: [room]; dense: [lanes][LANE_STRIDE] */
    uint32_t *slot;   /* sparse: see adapt.h */
    real *g;          /* likewise */
    int64_t room;
    real *sums;     /* dense: [lanes] */
    real *constant; /* [TK_MAX_DEGREE + 1][lanes] */
} NAME(scratch);

static NAME(scratch) NAME(carve)(void *memory, int lanes, int64_t max_nonzeros)
{
    const tk_sizes z = tk_sizes_of(lanes, max_nonzeros, sizeof(real));
    char *at = memory;
    NAME(scratch) c = {.room = z.room};
    c.x = (real *)at;
    at += z.x;
    c.offset = (uint32_t *)at;
    at += z.offset;
    c.value = (real *)at;
    at += z.value;
    c.slot = (uint32_t *)at;
    at += z.slot;
    c.g = (real *)at;
    at += z.g;
    c.sums = (real *)at;
    at += z.sums;
    c.constant = (real *)at;
    return c;
}

/* What a row in lane b makes of its constants: p of them count as constant[p] shrink^p. */
static FORCE_INLINE void NAME(set_constants)(NAME(walker) *w, const NAME(scratch) *c, const int lanes, int b,
                                             double shrink)
{
    const tk_map *map = w->map;
    w->constant = c->constant;
    if (w->shrink[b] == shrink)
        return;
    double power = 1;
    for (int p = 0; p <= map->degree; p++) {
        c->constant[p * lanes + b] = (real)(map->constant[p] * power);
        power *= shrink;
    }
    w->shrink[b] = shrink;
}

/* How many of a row's coordinates are 1, 2, 3, ...; 0 when its largest table would have few entries of those alone. */
static FORCE_INLINE int32_t NAME(find_head)(const NAME(walker) *w)
{
    const int64_t *ranks = NAME(ranks)(w->map, w->q);
    int32_t head = 2;
    if (w->m < head || w->coord[head] != head)
        return 0;
    while (head <= w->m && ranks[head + 1] < LEAST_HEAD)
        head++;
    if (head > w->m || w->coord[head] != head) /* coordinates rise: so those before it are theirs, too */
        return 0;
    while (head < w->m && w->coord[head + 1] == head + 1)
        head++;
    return head;
}

/* Prefetches row i while the row before it is walked: its first and last cache lines. The CPU itself prefetches what is
 * between. */
static FORCE_INLINE void NAME(prefetch_row)(const tk_rows *rows, int64_t i, int64_t last)
{
    if (i >= last || !rows->indptr)
        return;
    const int64_t *ends = rows->indptr + tk_stored(rows, i);
    if (ends[0] == ends[1])
        return;
    if (rows->factor)
        TK_PREFETCH(rows->factor + tk_stored(rows, i));
    if (i + 1 < last)
        TK_PREFETCH(rows->indptr + tk_stored(rows, i + 1));
    TK_PREFETCH((const real *)rows->data + ends[0]);
    TK_PREFETCH((const real *)rows->data + ends[1] - 1);
    TK_PREFETCH(rows->indices + ends[0]);
    TK_PREFETCH(rows->indices + ends[1] - 1);
}

/* Prefetches the row that is stored at i, for a lane. */
static FORCE_INLINE void NAME(prefetch_lane)(const tk_rows *rows, int64_t i)
{
    const int32_t d = rows->n_columns;
    if (!rows->indptr)
        tk_fetch((const real *)rows->data + i * d, d * (int64_t)sizeof(real), 0);
    if (rows->factor)
        TK_PREFETCH(rows->factor + i);
}

/* The nonzeros of the row that is stored at i, as coordinates and scaled numbers from coord[1] and x[1] on; returns how
 * many there are. coord[0] and x[0] are there to be overwritten. */
static FORCE_INLINE int32_t NAME(load_nonzeros)(const tk_rows *rows, int64_t i, real scale, const NAME(scratch) *c,
                                                int32_t *coord, real *x)
{
    const real *data = rows->data;
    int32_t m = 0;
    if (rows->place) {
        /* Those in front first; where the others are is kept until then. No branch: none could be foreseen. */
        const int32_t *indices = rows->indices + rows->indptr[i], n = (int32_t)(rows->indptr[i + 1] - rows->indptr[i]);
        int32_t *later = (int32_t *)c->value, n_later = 0;
        data += rows->indptr[i];
        for (int32_t k = 0; k < n; k++) {
            const int32_t j = rows->place[indices[k]], in_front = j < rows->n_front;
            coord[m + 1] = j + 1;
            x[m + 1] = scale * data[k];
            later[n_later] = k;
            m += in_front;
            n_later += !in_front;
        }
        for (int32_t k = 0; k < n_later; k++) {
            coord[++m] = rows->place[indices[later[k]]] + 1;
            x[m] = scale * data[later[k]];
        }
    } else if (rows->indptr) {
        const int64_t begin = rows->indptr[i];
        m = (int32_t)(rows->indptr[i + 1] - begin);
        for (int32_t t = 1; t <= m; t++)
            coord[t] = rows->indices[begin + t - 1] + 1;
        NAME(scale_row)(x + 1, scale, data + begin, m);
    } else {
        data += i * rows->n_columns;
        for (int32_t j = 0; j < rows->n_columns; j++)
            if (data[j] != 0) {
                m++;
                coord[m] = j + 1;
                x[m] = scale * data[j];
            }
    }
    return m;
}

/* The same of a row that is far out. */
static NOINLINE void NAME(load_far)(const tk_rows *rows, int64_t i, double scale, const NAME(scratch) *c,
                                    int32_t *coord, real *x)
{
    NAME(load_nonzeros)(rows, i, (real)scale, c, coord, x);
}

/* What walkers of all kinds begin with. */
static FORCE_INLINE void NAME(begin_row)(NAME(walker) *w, const tk_map *map, int32_t m, int32_t highest,
                                         const NAME(scratch) *c)
{
    w->map = map;
    w->m = m;
    w->x = c->x;
    w->value = c->value;
    NAME(place_tables)(w, c->room, highest);
}

/* Row i by its nonzeros. Their coordinates are the offsets of the table of one place. With `heads`, the verb knows
 * about w->head. Coordinates from `end` on count in s(x) only: tables and walk go without them, and are otherwise as
 * they would be with them. */
static FORCE_INLINE void NAME(load_sparse)(const tk_rows *rows, const tk_map *map, const int bare, const int heads,
                                           int64_t i, int32_t end, const NAME(scratch) *c, NAME(walker) *w)
{
    int32_t *coord = (int32_t *)c->offset + ONE_PLACE;
    real *x = c->x;
    i = tk_stored(rows, i);
    const int32_t m = NAME(load_nonzeros)(rows, i, (real)map->scale, c, coord, x);
    /* By its nonzeros, one after the other: zeros that are stored or not make no difference. */
    const tk_factor f = NAME(row_factor)(rows, map, i, 1, x + 1, m);
    if (f.shrink != 1)
        NAME(load_far)(rows, i, f.scale, c, coord, x);
    for (int32_t t = 1; f.s == 0 && t <= m; t++)
        x[t] = 0;
    coord[0] = 0;
    c->offset[0] = 0;
    w->coord = coord;
    w->offset = c->offset;
    NAME(begin_row)(w, map, m, coord[m], c);
    w->s[0] = (real)f.s;
    NAME(set_constants)(w, c, 1, 0, f.shrink);
    w->head = heads ? NAME(find_head)(w) : 0;
    while (w->m > 0 && coord[w->m] >= end)
        w->m--;
    NAME(built) row = {1, x, w->constant, 1, 0};
    NAME(build_tables)(w, &row, bare, 1, x, c->offset, c->value);
}

/* Row i into a lane: all columns, zeros too, as x and, one behind the other, from column[1] on. A lane without a row
 * (i < 0) has s = 0 and adds nothing. */
static FORCE_INLINE void NAME(load_lane)(const tk_rows *rows, int64_t i, int lanes, int b, const NAME(scratch) *c,
                                         NAME(walker) *w, real *column)
{
    const int32_t d = rows->n_columns;
    const real *data = rows->data;
    tk_factor f = {0, 1, 0};
    if (i >= 0)
        f = NAME(stored_factor)(rows, w->map, i = tk_stored(rows, i));
    w->s[b] = (real)f.s;
    NAME(set_constants)(w, c, lanes, b, f.shrink);
    if (f.s == 0 || rows->indptr)
        for (int32_t j = 1; j <= d; j++)
            column[j] = 0;
    if (f.s != 0 && !rows->indptr)
        NAME(scale_row)(column + 1, (real)f.scale, data + i * d, d);
    else if (f.s != 0)
        for (int64_t k = rows->indptr[i]; k < rows->indptr[i + 1]; k++)
            column[rows->indices[k] + 1] = (real)f.scale * data[k];
}

/* The rows i .. min(i + lanes, last) - 1 with all their columns, as far as they are of one cell; coordinates from `end`
 * on as above. lanes is a multiple of LANES. Returns how many rows there are. */
static NOINLINE int NAME(load_dense)(const tk_rows *rows, const tk_map *map, int64_t i, int64_t last, int32_t end,
                                     int lanes, const NAME(scratch) *c, NAME(walker) *w)
{
    static const uint32_t lane_at[LANES] = {0,
                                            LANE_STRIDE,
                                            2 * LANE_STRIDE,
                                            3 * LANE_STRIDE,
                                            4 * LANE_STRIDE,
                                            5 * LANE_STRIDE,
                                            6 * LANE_STRIDE,
                                            7 * LANE_STRIDE};
    const int n = tk_alike(rows, i, last, lanes);
    for (int64_t next = i + n; next < last && next < i + 2 * n; next++)
        NAME(prefetch_lane)(rows, tk_stored(rows, next));
    w->coord = NULL;
    w->offset = NULL;
    NAME(begin_row)(w, map, rows->n_columns, rows->n_columns, c);
    w->m = w->m < end ? w->m : end - 1;
    for (int first = 0; first < lanes; first += LANES) {
        real *value = c->value + first * LANE_STRIDE, *column = value + ONE_PLACE, *x = c->x + first;
        for (int b = 0; b < LANES; b++)
            NAME(load_lane)(rows, first + b < n ? i + first + b : -1, lanes, first + b, c, w, column + b * LANE_STRIDE);
        for (int32_t j = 1; j <= w->m; j++)
            for (int b = 0; b < LANES; b += WLEN)
                w_store(x + (int64_t)j * lanes + b, NAME(w_gather)(column + j, lane_at + b));
        NAME(built) row = {lanes, x, w->constant + first, 1, 0};
        if (first < n)
            NAME(build_tables)(w, &row, map->bare, LANES, column, NULL, value);
    }
    return n;
}

/* A row of ones, as long as the map has columns. */
static void NAME(load_ones)(const tk_map *map, const NAME(scratch) *c, NAME(walker) *w)
{
    w->coord = NULL;
    w->offset = NULL;
    NAME(begin_row)(w, map, map->n_columns, map->n_columns, c);
    w->s[0] = 1;
    NAME(set_constants)(w, c, 1, 0, 1);
    for (int32_t t = 1; t <= w->m; t++)
        c->x[t] = 1;
    NAME(built) row = {1, c->x, w->constant, 1, 0};
    NAME(build_tables)(w, &row, 0, 1, c->x, NULL, c->value);
}
