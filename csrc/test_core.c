/* Tests of the core alone: every verb, for each usable instruction set, against monomials enumerated one by one.
 *
 *     test_core                   all tests; the last line counts them
 *     test_core plant-overflow    misuses the core so that it writes behind an array
 *     test_core plant-undefined   misuses the core so that a signed sum overflows
 *
 * The two planted bugs are there for the sanitizers: a job that does not stop at them proves nothing. */
#include "testing.h"

/* ---- the verbs against the monomials ---- */

static const char *const metric_names[] = {"bare", "features", "update"};

/* Tables side by side: fewer than a vector, vectors with and without a rest, and more than a walk adds to at once. */
enum { MOST_TABLES = 1050 };
static const int32_t widths[] = {2, 3, 4, 5, 8, 26, 40, 70, MOST_TABLES};
enum { N_WIDTHS = (int)(sizeof widths / sizeof widths[0]) };

typedef struct {
    tk_real real;
    const feature_map *map;
    const stored_rows *rows;
    const matrix *x;
    const monomial *list;
    int64_t n_slots;
    double *phi;  /* [n][n_slots] */
    double *sums; /* [n_slots], and so is sizes: room for the check of one table */
    double *sizes;
    array scratch;
} test_case;

/* Coefficients of n rows, [n][width]. */
typedef enum { ANY, SPARSE, NONE } coefficients;

/* SPARSE: those of eight tables out of sixteen are all zero; so are some rows of the first sixteen; and half of the
 * others, but for a few tables that have no other zeros. */
static array make_coefficients(tk_real real, int64_t n, int32_t width, coefficients kind)
{
    const array t = random_reals(real, n * width);
    for (int64_t i = 0; i < n; i++)
        for (int32_t k = 0; k < width; k++) {
            const int zero = k / 8 % 2 == 1 || (i < 16 && i % 4 == 2) || (k / 4 % 3 > 0 && uniform() < 0);
            if (kind == NONE || (kind == SPARSE && zero))
                set(real, t, i * width + k, 0);
        }
    return t;
}

static int is_used(tk_real real, array t, int64_t n, int32_t width, int32_t k)
{
    for (int64_t i = 0; i < n; i++)
        if (get(real, t, i * width + k) != 0)
            return 1;
    return 0;
}

static void test_dot(const test_case *c, int64_t first, int64_t last, int32_t width)
{
    const array table = random_reals(c->real, c->n_slots * width), out = new_reals(c->real, (last - first) * width);
    const tk_table u = {table.data, width};
    int good = 1;
    tk_dot(&c->rows->c, &c->map->c, first, last, &u, out.data, c->scratch.data);
    for (int32_t k = 0; k < width; k++) {
        for (int64_t slot = 0; slot < c->n_slots; slot++)
            c->sums[slot] = get(c->real, table, slot * width + k);
        for (int64_t i = first; i < last; i++) {
            double sum = 0, size = 0;
            for (int64_t slot = 0; slot < c->n_slots; slot++) {
                const double term = c->phi[i * c->n_slots + slot] * c->sums[slot];
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, out, (i - first) * width + k), sum, size);
        }
    }
    check(good, width == 1 ? "dot" : "dot with several tables");
    free_array(table, "dot leaves the table alone");
    free_array(out, "dot writes its results only");
}

static void test_add(const test_case *c, int64_t first, int64_t last, int32_t width, coefficients kind)
{
    const int64_t n = last - first;
    const array table = random_reals(c->real, c->n_slots * width), t = make_coefficients(c->real, n, width, kind);
    const array before = new_array(table.bytes), in_parts = new_array(table.bytes);
    const tk_table u = {table.data, width}, part = {in_parts.data, width};
    const int32_t d = c->map->c.n_columns, cuts[] = {0, d / 3, d / 3 + d / 2, d + 1};
    int good = 1, untouched = 1;
    memcpy(before.data, table.data, (size_t)table.bytes);
    memcpy(in_parts.data, table.data, (size_t)table.bytes);
    for (int i = 2; i >= 0; i--)
        tk_add_part(&c->rows->c, &c->map->c, first, last, &part, t.data, c->scratch.data, cuts[i], cuts[i + 1]);
    tk_add(&c->rows->c, &c->map->c, first, last, &u, t.data, c->scratch.data);
    for (int32_t k = 0; k < width; k++) {
        const int used = is_used(c->real, t, n, width, k);
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            c->sums[slot] = get(c->real, before, slot * width + k);
            c->sizes[slot] = fabs(c->sums[slot]);
        }
        for (int64_t i = 0; i < n && used; i++)
            for (int64_t slot = 0; slot < c->n_slots; slot++) {
                const double term = c->phi[(first + i) * c->n_slots + slot] * get(c->real, t, i * width + k);
                c->sums[slot] += term;
                c->sizes[slot] += fabs(term);
            }
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            const double got = get(c->real, table, slot * width + k);
            good &= close_to(c->real, got, c->sums[slot], c->sizes[slot]);
            untouched &= used || got == c->sums[slot];
        }
    }
    check(good, width == 1 ? "add" : "add with several tables");
    check(untouched, "add leaves tables alone that have no coefficients");
    check(memcmp(in_parts.data, table.data, (size_t)table.bytes) == 0, "add in parts");
    free_array(in_parts, "parts of add write the table only");
    free_array(before, "the test stays in its array");
    free_array(table, "add writes the table only");
    free_array(t, "add leaves the coefficients alone");
}

static void test_adapt(const test_case *c, int64_t first, int64_t last, int32_t width, coefficients kind, double eta)
{
    const double floor = 0.25;
    const int64_t n = last - first;
    const array values = random_reals(c->real, c->n_slots * width), before = new_array(values.bytes),
                squares = filled_reals(c->real, c->n_slots * width, floor),
                t = make_coefficients(c->real, n, width, kind);
    const array rates = random_reals(c->real, width);
    const int with_rates = (width + n) % 2 == 0;
    const tk_adaptive state = {values.data, squares.data, width, eta, with_rates ? rates.data : NULL};
    const array in_parts = new_array(values.bytes), squares_of_parts = filled_reals(c->real, c->n_slots * width, floor);
    const tk_adaptive parts = {in_parts.data, squares_of_parts.data, width, eta, state.rate};
    const int32_t d = c->map->c.n_columns, cuts[] = {0, d / 3, d / 3 + d / 2, d + 1};
    int64_t row[MOST_ROWS];
    double coefficient[MOST_ROWS];
    int good = 1, rises = 1, untouched = 1;
    memcpy(before.data, values.data, (size_t)values.bytes);
    memcpy(in_parts.data, values.data, (size_t)values.bytes);
    for (int i = 2; i >= 0; i--)
        tk_adapt_part(&c->rows->c, &c->map->c, first, last, &parts, t.data, c->scratch.data, cuts[i], cuts[i + 1]);
    tk_adapt(&c->rows->c, &c->map->c, first, last, &state, t.data, c->scratch.data);
    for (int32_t k = 0; k < width; k++) {
        const int used = is_used(c->real, t, n, width, k);
        const double eta_k = with_rates ? eta * get(c->real, rates, k) : eta;
        for (int64_t i = 0; i < n; i++) {
            row[i] = first + i;
            coefficient[i] = get(c->real, t, i * width + k);
        }
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            c->sums[slot] = get(c->real, before, slot * width + k);
            c->sizes[slot] = floor;
        }
        if (used)
            plain_adapt(c->phi, c->n_slots, row, coefficient, n, c->rows->c.walk_dense ? TOGETHER : 1, eta_k, c->sums,
                        c->sizes);
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            const double value = get(c->real, values, slot * width + k), h = get(c->real, squares, slot * width + k);
            double move = 0; /* if no two gradients cancelled, and the step sizes stayed as they are at first */
            for (int64_t i = 0; i < n && used; i++)
                move += fabs(coefficient[i] * c->phi[row[i] * c->n_slots + slot]);
            good &= close_to(c->real, value, c->sums[slot], 1 + 2 * eta * move);
            good &= close_to(c->real, h, c->sizes[slot], floor + move * move);
            rises &= h >= floor;
            untouched &= used || (value == c->sums[slot] && h == floor);
        }
    }
    check(good, eta == 0 ? "adapt with steps of 0" : width == 1 ? "adapt" : "adapt with several tables");
    check(rises, "sums of squares do not fall");
    check(memcmp(in_parts.data, values.data, (size_t)values.bytes) == 0, "adapt in parts");
    check(memcmp(squares_of_parts.data, squares.data, (size_t)squares.bytes) == 0, "adapt in parts, squares");
    free_array(in_parts, "parts of adapt write the table only");
    free_array(squares_of_parts, "parts of adapt write the squares only");
    check(untouched, "adapt leaves tables alone that have no coefficients");
    free_array(before, "the test stays in its array");
    free_array(rates, "adapt leaves the rates alone");
    free_array(values, "adapt writes the table only");
    free_array(squares, "adapt writes the squares only");
    free_array(t, "adapt leaves the coefficients alone");
}

/* <t, dot(u)> = <add(t), u>, whatever the reference says. */
static void test_adjoint(const test_case *c)
{
    const int64_t n = c->x->n;
    const array u = random_reals(c->real, c->n_slots), t = random_reals(c->real, n), out = new_reals(c->real, n),
                sum = new_reals(c->real, c->n_slots);
    const tk_table table = {u.data, 1}, result = {sum.data, 1};
    double left = 0, right = 0, size = 0;
    for (int64_t a = 0; a < c->n_slots; a++)
        set(c->real, sum, a, 0);
    tk_dot(&c->rows->c, &c->map->c, 0, n, &table, out.data, c->scratch.data);
    tk_add(&c->rows->c, &c->map->c, 0, n, &result, t.data, c->scratch.data);
    for (int64_t i = 0; i < n; i++) {
        left += get(c->real, t, i) * get(c->real, out, i);
        for (int64_t a = 0; a < c->n_slots; a++)
            size += fabs(get(c->real, t, i) * c->phi[i * c->n_slots + a] * get(c->real, u, a));
    }
    for (int64_t a = 0; a < c->n_slots; a++)
        right += get(c->real, sum, a) * get(c->real, u, a);
    check(close_to(c->real, left, right, size), "dot and add are adjoint");
    free_array(u, "dot leaves u alone");
    free_array(t, "add leaves t alone");
    free_array(out, "dot writes its results only");
    free_array(sum, "add writes the table only");
}

static void test_expand(const test_case *c, int64_t first, int64_t last, int wide)
{
    const int r = c->map->c.degree;
    int64_t n = 0, k = 0;
    int good = 1;
    for (int64_t i = first; i < last; i++)
        n += choose(c->x->count[i] + r, r);
    const array slots = new_array(n * (wide ? 8 : 4)), values = new_reals(c->real, n);
    const tk_features out = {slots.data, values.data, n, wide};
    tk_expand(&c->rows->c, &c->map->c, first, last, &out, c->scratch.data);
    for (int64_t i = first; i < last; i++) {
        const double *row = c->x->x + i * c->x->d;
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            int there = 1; /* all of the monomial's coordinates are among the row's nonzeros */
            for (int p = 0; p < r; p++)
                if (c->list[slot].j[p] > 0 && row[c->list[slot].j[p] - 1] == 0)
                    there = 0;
            if (!there)
                continue;
            const double phi = c->phi[i * c->n_slots + slot];
            const int64_t got = wide ? ((const int64_t *)slots.data)[k] : ((const int32_t *)slots.data)[k];
            good &= got == slot;
            good &= close_to(c->real, get(c->real, values, k), phi, fabs(phi));
            k++;
        }
    }
    check(k == n && good, wide ? "expand with 64-bit slots" : "expand");
    free_array(slots, "expand writes the slots only");
    free_array(values, "expand writes the values only");
}

static void test_weigh(const test_case *c, int32_t width)
{
    const int32_t d = c->map->c.n_columns, cut = d / 2;
    const array table = random_reals(c->real, c->n_slots * width), before = new_array(table.bytes);
    const tk_table u = {table.data, width};
    const int r = c->map->c.degree;
    int good = 1, untouched = 1;
    memcpy(before.data, table.data, (size_t)table.bytes);
    /* In two parts; after the first, slots of the second are as they were. */
    const array scratch = new_array(tk_weigh_scratch_bytes(c->real, &c->map->c));
    tk_weigh(c->real, &c->map->c, cut, d + 1, &u, scratch.data);
    for (int64_t a = 0; a < c->n_slots * width; a++)
        if (c->list[a / width].j[r - 1] < cut)
            untouched &= get(c->real, table, a) == get(c->real, before, a);
    tk_weigh(c->real, &c->map->c, 0, cut, &u, scratch.data);
    for (int64_t a = 0; a < c->n_slots * width; a++) {
        const double expected = get(c->real, before, a) * metric_of(c->map, &c->list[a / width]);
        good &= close_to(c->real, get(c->real, table, a), expected, fabs(expected));
    }
    check(untouched, "weigh touches its range only");
    check(good, width == 1 ? "weigh" : "weigh with several tables");
    free_array(before, "the test stays in its array");
    free_array(table, "weigh writes the table only");
    free_array(scratch, "weigh stays in its scratch");
}

/* The verbs with one table. */
static void test_one_table(const test_case *c)
{
    const int64_t n = c->x->n;
    test_dot(c, 0, n, 1);
    test_dot(c, 2, n - 1, 1);
    test_add(c, 0, n, 1, ANY);
    test_add(c, 2, n - 1, 1, ANY);
    test_adapt(c, 0, n, 1, ANY, 0.3);
    test_adapt(c, 2, n - 1, 1, SPARSE, 0.3);
    test_adapt(c, 1, n, 1, ANY, 0);
    test_adjoint(c);
    test_expand(c, 0, n, 0);
    test_expand(c, 2, n - 1, 1);
    test_weigh(c, 1);
}

/* And with several, of as many widths as do not take too long. Blocks end with all numbers of rows. */
static void test_tables(const test_case *c)
{
    enum { MOST_TERMS = 150000 };
    const int64_t n = c->x->n;
    const size_t end = strlen(where);
    for (int i = 0; i < N_WIDTHS; i++) {
        const int32_t width = widths[i];
        if (width > 3 && c->n_slots * n * width > MOST_TERMS)
            continue;
        snprintf(where + end, sizeof where - end, ", %d tables", (int)width);
        test_dot(c, 0, n, width);
        test_dot(c, i % 4, n - i % 3, width);
        test_add(c, 0, n, width, i % 2 ? ANY : SPARSE);
        test_add(c, i % 3, n - i % 4, width, i % 2 ? SPARSE : ANY);
        test_adapt(c, i % 5, n, width, i % 2 ? SPARSE : ANY, 0.3);
        if (c->n_slots < 100) {
            test_add(c, 1, n, width, NONE);
            test_adapt(c, 0, n - i % 4, width, i % 2 ? ANY : SPARSE, 0.3);
            test_adapt(c, 1, n, width, NONE, 0.3);
        }
        if (width == 3 || width == 26)
            test_weigh(c, width);
    }
    where[end] = 0;
}

/* The kernel that a metric is tested with. */
static kernel kernel_of(metric m)
{
    return m == UPDATE ? SERIES : GAUSSIAN;
}

static void test_verbs(const matrix *x, int r, metric m, const monomial *list, int64_t n_slots)
{
    feature_map map;
    make_map(&map, r, x->d, kernel_of(m), m);
    double *phi = malloc((size_t)(x->n * n_slots) * sizeof *phi), *sums = malloc((size_t)n_slots * 2 * sizeof *sums);
    if (!phi || !sums)
        exit(2);
    for (int real = TK_FLOAT32; real <= TK_FLOAT64; real++) {
        for (int64_t i = 0; i < x->n; i++)
            features_of(x, i, &map, (tk_real)real, list, n_slots, phi + i * n_slots);
        for (int kind = 0; kind < 4; kind++) {
            const stored_rows rows = store(x, (tk_real)real, kind & 1, kind >> 1);
            const array scratch = new_array(tk_scratch_bytes(&rows.c));
            for (int set_of = 0; set_of < tk_n_instruction_sets(); set_of++) {
                if (!tk_instruction_set_usable(set_of))
                    continue;
                tk_use_instruction_set(set_of);
                snprintf(where, sizeof where, "%s, %s, %s walk of %s rows, degree %d, %d columns, %s metric",
                         tk_instruction_set_name(set_of), real == TK_FLOAT64 ? "double" : "float",
                         kind >> 1 ? "dense" : "sparse", kind & 1 ? "CSR" : "dense", r, (int)x->d, metric_names[m]);
                test_case c = {.real = (tk_real)real, .map = &map, .rows = &rows, .x = x, .list = list, .phi = phi};
                c.n_slots = n_slots;
                c.sums = sums;
                c.sizes = sums + n_slots;
                c.scratch = scratch;
                test_one_table(&c);
                test_tables(&c);
            }
            free_array(scratch, "scratch is not overrun");
            free_rows(rows);
        }
    }
    free(phi);
    free(sums);
    free_array(map.ranks, "ranks are left alone");
}

static void test_all_verbs(void)
{
    /* No columns, one, a few, enough that inner tables of 2, 3 and 4 places do and do not fit, and more columns than
     * an inner table has entries. Rows: more than a dense walk takes at once (8; with several tables 32), and not a
     * multiple of it. */
    static const struct {
        int32_t d;
        int64_t n;
        int lowest, highest; /* degrees */
    } shapes[] = {{0, 7, 1, 5},   {1, 7, 1, 5},    {3, 11, 1, 5},   {7, 19, 1, 5}, {18, 11, 1, 4}, {18, 6, 5, 5},
                  {45, 10, 1, 3}, {1100, 6, 1, 1}, {2100, 6, 1, 1}, {3, 75, 2, 2}, {7, 45, 3, 3},  {18, 39, 2, 2}};
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        const int32_t d = shapes[i].d;
        for (int r = shapes[i].lowest; r <= shapes[i].highest; r++) {
            snprintf(where, sizeof where, "degree %d, %d columns", r, (int)d);
            const int64_t n_slots = choose(d + r, r);
            monomial *list = all_monomials(r, d, n_slots);
            for (int m = 0; m < N_METRICS; m++) {
                const matrix x = make_matrix(shapes[i].n, d, kernel_of((metric)m) == GAUSSIAN);
                test_verbs(&x, r, (metric)m, list, n_slots);
                free(x.x);
                free(x.count);
            }
            free(list);
        }
    }
}

/* ---- reordered columns ---- */

/* Rows whose columns get new numbers, against the same rows stored with these; and where their monomials are. */
static void test_reordered(int r, tk_real real)
{
    enum { D = 6, N_FRONT = 2, N = 9, N_SLOTS = 210 }; /* at degree 4 */
    static const int32_t columns[D] = {1, 4, 0, 2, 3, 5};
    int32_t place[D], own[D + 1] = {0};
    feature_map map;
    make_map(&map, r, D, GAUSSIAN, FEATURES);
    const matrix x = make_matrix(N, D, 0);
    matrix y = {N, D, calloc(N * D, sizeof(double)), x.count};
    if (!y.x)
        exit(2);
    for (int32_t j = 0; j < D; j++) {
        place[columns[j]] = j;
        own[j + 1] = columns[j] + 1;
        for (int i = 0; i < N; i++)
            y.x[i * D + j] = x.x[i * D + columns[j]];
    }
    stored_rows given = store(&x, real, 1, 0), stored = store(&y, real, 1, 0);
    given.c.place = place;
    given.c.n_front = N_FRONT;
    const int64_t n_slots = choose(D + r, r);
    const array table = random_reals(real, n_slots), scratch = new_array(tk_scratch_bytes(&given.c)),
                left = new_reals(real, N), right = new_reals(real, N), slots = new_array(n_slots * 8);
    const tk_table u = {table.data, 1};
    int good = 1;
    tk_dot(&given.c, &map.c, 0, N, &u, left.data, scratch.data);
    tk_dot(&stored.c, &map.c, 0, N, &u, right.data, scratch.data);
    for (int i = 0; i < N; i++)
        good &= close_to(real, get(real, left, i), get(real, right, i), N_SLOTS);
    check(good, "columns with new numbers");

    monomial *list = all_monomials(r, D, n_slots);
    for (int32_t j = 0; j <= D; j++)
        tk_own_slots(&map.c, own, map.c.ranks, D + 2, j, j + 1, (int64_t *)slots.data + choose(j + r - 1, r));
    good = 1;
    for (int64_t a = 0; a < n_slots; a++) {
        /* The same coordinates, counted: their order does not matter. */
        const monomial *there = &list[((int64_t *)slots.data)[a]];
        int count[D + 1] = {0};
        for (int p = 0; p < r; p++) {
            count[own[list[a].j[p]]]++;
            count[there->j[p]]--;
        }
        for (int32_t j = 0; j <= D; j++)
            good &= count[j] == 0;
    }
    check(good, "slots of reordered columns");
    free(list);
    free(x.x);
    free(x.count);
    free(y.x);
    free_rows(given);
    free_rows(stored);
    free_array(table, "dot leaves the table alone");
    free_array(scratch, "scratch is not overrun");
    free_array(left, "dot writes its results only");
    free_array(right, "dot writes its results only");
    free_array(slots, "slots are written once each");
    free_array(map.ranks, "ranks are left alone");
}

static void test_all_reordered(void)
{
    for (int set_of = 0; set_of < tk_n_instruction_sets(); set_of++)
        for (int r = 2; r <= 4 && tk_instruction_set_usable(set_of); r++)
            for (int real = TK_FLOAT32; real <= TK_FLOAT64; real++) {
                tk_use_instruction_set(set_of);
                snprintf(where, sizeof where, "%s, degree %d, reordered", tk_instruction_set_name(set_of), r);
                test_reordered(r, (tk_real)real);
            }
}

/* ---- structures ---- */

static void test_structure(const char *what, const int64_t *indptr, int64_t n_major, const int64_t *indices,
                           int64_t n_stored, tk_structure expected, int64_t expected_at)
{
    for (int wide = 0; wide < 2; wide++) {
        const int64_t bytes = wide ? 8 : 4;
        const array p = new_array((n_major + 1) * bytes), j = new_array(n_stored * bytes);
        for (int64_t i = 0; i <= n_major; i++)
            if (wide)
                ((int64_t *)p.data)[i] = indptr[i];
            else
                ((int32_t *)p.data)[i] = (int32_t)indptr[i];
        for (int64_t k = 0; k < n_stored; k++)
            if (wide)
                ((int64_t *)j.data)[k] = indices[k];
            else
                ((int32_t *)j.data)[k] = (int32_t)indices[k];
        int64_t at = -1;
        snprintf(where, sizeof where, "structure, %d-bit: %s", wide ? 64 : 32, what);
        const tk_structure found = tk_check_structure(p.data, j.data, wide, 0, n_major, 4, n_stored, &at);
        check(found == expected, "the kind of problem");
        check(expected == TK_CANONICAL || expected == TK_UNSORTED || at == expected_at, "where the problem is");
        free_array(p, "indptr is left alone");
        free_array(j, "indices are left alone");
    }
}

static void test_structures(void)
{
    /* Three rows of four columns: {0, 2}, {}, {1, 2, 3}. */
    const int64_t good_p[] = {0, 2, 2, 5}, good_j[] = {0, 2, 1, 2, 3};
    const int64_t starts_late[] = {1, 2, 2, 5}, starts_below[] = {-1, 2, 2, 5}, falls[] = {0, 2, 1, 5};
    const int64_t negative[] = {0, -3, 2, 5}, beyond[] = {0, 2, 2, 6}, far_beyond[] = {0, INT32_MAX, 2, 5};
    const int64_t unsorted[] = {2, 0, 1, 2, 3}, repeated[] = {0, 2, 1, 2, 2};
    const int64_t high[] = {0, 2, 1, 2, 4}, below_zero[] = {0, -1, 1, 2, 3}, unsorted_high[] = {2, 0, 1, 2, INT32_MAX};
    test_structure("canonical", good_p, 3, good_j, 5, TK_CANONICAL, 0);
    test_structure("more stored than used", good_p, 3, good_j, 5, TK_CANONICAL, 0);
    test_structure("no rows", good_p, 0, good_j, 0, TK_CANONICAL, 0);
    test_structure("no entries", good_p, 0, good_j, 5, TK_CANONICAL, 0);
    test_structure("unsorted", good_p, 3, unsorted, 5, TK_UNSORTED, 0);
    test_structure("repeated", good_p, 3, repeated, 5, TK_UNSORTED, 0);
    test_structure("indptr starts at 1", starts_late, 3, good_j, 5, TK_INDPTR_START, 0);
    test_structure("indptr starts below 0", starts_below, 3, good_j, 5, TK_INDPTR_START, 0);
    test_structure("indptr falls", falls, 3, good_j, 5, TK_INDPTR_FALLS, 1);
    test_structure("indptr negative", negative, 3, good_j, 5, TK_INDPTR_FALLS, 0);
    test_structure("indptr ends beyond", beyond, 3, good_j, 5, TK_INDPTR_BEYOND, 3);
    test_structure("indptr beyond in between", far_beyond, 3, good_j, 5, TK_INDPTR_BEYOND, 1);
    test_structure("data shorter than indptr says", good_p, 3, good_j, 4, TK_INDPTR_BEYOND, 3);
    test_structure("index too high", good_p, 3, high, 5, TK_INDEX_RANGE, 4);
    test_structure("index below zero", good_p, 3, below_zero, 5, TK_INDEX_RANGE, 1);
    test_structure("unsorted, then too high", good_p, 3, unsorted_high, 5, TK_INDEX_RANGE, 4);
}

/* ---- dispatch ---- */

static void test_dispatch(void)
{
    const int n = tk_n_instruction_sets();
    int best = 0;
    snprintf(where, sizeof where, "dispatch");
    check(n >= 1 && strcmp(tk_instruction_set_name(n - 1), "baseline") == 0, "the last instruction set is baseline");
    check(tk_instruction_set_usable(n - 1), "baseline is usable");
    while (!tk_instruction_set_usable(best))
        best++;
    tk_init();
    check(tk_instruction_set() == best, "the best usable one is chosen");
    tk_use_instruction_set(n - 1);
    check(tk_instruction_set() == n - 1, "another one can be chosen");
    tk_init();
    printf("instruction sets tested:");
    for (int i = 0; i < n; i++)
        if (tk_instruction_set_usable(i))
            printf(" %s", tk_instruction_set_name(i));
    printf("\n");
}

/* ---- planted bugs ---- */

static int plant(const char *what)
{
    enum { DEGREE = 3, COLUMNS = 4 };
    const int overflow = strcmp(what, "plant-overflow") == 0;
    if (!overflow && strcmp(what, "plant-undefined") != 0) {
        fprintf(stderr, "unknown argument: %s\n", what);
        return 2;
    }
    feature_map map;
    const matrix x = make_matrix(1, COLUMNS, 0);
    const stored_rows rows = store(&x, TK_FLOAT64, 1, 0);
    make_map(&map, DEGREE, COLUMNS, GAUSSIAN, FEATURES);
    const int64_t n = choose(COLUMNS + DEGREE, DEGREE);
    const array scratch = new_array(tk_scratch_bytes(&rows.c)), slots = new_array(n * 8);
    const array values = new_reals(TK_FLOAT64, overflow ? n - 1 : n); /* one entry too few */
    if (!overflow)
        ((int64_t *)map.ranks.data)[DEGREE * (COLUMNS + 2) + 1] = INT64_MAX; /* no slot lies behind this one */
    const tk_features out = {slots.data, values.data, n, 1};
    tk_expand(&rows.c, &map.c, 0, 1, &out, scratch.data);
    printf("the planted bug went unseen\n");
    return 0;
}

int main(int n_arguments, char **arguments)
{
    if (n_arguments > 1)
        return plant(arguments[1]);
    test_dispatch();
    test_structures();
    test_all_verbs();
    test_all_reordered();
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
