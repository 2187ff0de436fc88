/* The core by itself: every verb on a few rows of each kind, for each usable instruction set, against sums over
 * monomials that are enumerated one by one. What is tested at length is tested from Python, in tests/.
 *
 *     test_core                   all tests; the last line counts them
 *     test_core plant-overflow    misuses the core so that it writes behind an array
 *     test_core plant-undefined   misuses the core so that a signed sum overflows
 *
 * The two planted bugs are there for the sanitizers: a job that does not stop at them proves nothing. */
#include "testing.h"

typedef struct {
    tk_real real;
    const feature_map *map;
    const stored_rows *rows;
    const matrix *x;
    int64_t n_slots;
    const double *phi; /* [n][n_slots] */
    void *scratch;
} test_case;

static double phi_of(const test_case *c, int64_t i, int64_t slot)
{
    return c->phi[i * c->n_slots + slot];
}

static void test_dot(const test_case *c, int32_t width)
{
    const int64_t n = c->x->n;
    const array table = random_reals(c->real, c->n_slots * width), out = new_reals(c->real, n * width);
    const tk_table u = {table.data, width};
    int good = 1;
    tk_dot(&c->rows->c, &c->map->c, 0, n, &u, out.data, c->scratch);
    for (int64_t i = 0; i < n; i++)
        for (int32_t k = 0; k < width; k++) {
            double sum = 0, size = 0;
            for (int64_t slot = 0; slot < c->n_slots; slot++) {
                const double term = phi_of(c, i, slot) * get(c->real, table, slot * width + k);
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, out, i * width + k), sum, size);
        }
    check(good, "dot");
    free_array(table, "dot leaves the table alone");
    free_array(out, "dot writes its results only");
}

/* In two parts, the higher slots first: together they are all of it. */
static void test_add(const test_case *c, int32_t width)
{
    const int64_t n = c->x->n;
    const int32_t end = c->map->c.n_columns + 1, cut = end / 2;
    const array table = filled_reals(c->real, c->n_slots * width, 0.5), t = random_reals(c->real, n * width);
    const tk_table u = {table.data, width};
    int good = 1;
    tk_add_part(&c->rows->c, &c->map->c, 0, n, &u, t.data, c->scratch, cut, end);
    tk_add_part(&c->rows->c, &c->map->c, 0, n, &u, t.data, c->scratch, 0, cut);
    for (int64_t slot = 0; slot < c->n_slots; slot++)
        for (int32_t k = 0; k < width; k++) {
            double sum = 0.5, size = 0.5;
            for (int64_t i = 0; i < n; i++) {
                const double term = get(c->real, t, i * width + k) * phi_of(c, i, slot);
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, table, slot * width + k), sum, size);
        }
    check(good, "add");
    free_array(table, "add writes the table only");
    free_array(t, "add leaves the coefficients alone");
}

/* The rows of one step. */
static void test_adapt(const test_case *c, int32_t width)
{
    const double floor = 0.25, eta = 0.3;
    const int64_t n = c->rows->c.walk_dense && c->x->n > TOGETHER ? TOGETHER : c->rows->c.walk_dense ? c->x->n : 1;
    const array values = filled_reals(c->real, c->n_slots * width, 0),
                squares = filled_reals(c->real, c->n_slots * width, floor), t = random_reals(c->real, n * width);
    const tk_adaptive state = {values.data, squares.data, width, eta, NULL};
    int good = 1;
    tk_adapt(&c->rows->c, &c->map->c, 0, n, &state, t.data, c->scratch);
    for (int64_t slot = 0; slot < c->n_slots; slot++)
        for (int32_t k = 0; k < width; k++) {
            double g = 0, size = 0;
            for (int64_t i = 0; i < n; i++) {
                g += get(c->real, t, i * width + k) * phi_of(c, i, slot);
                size += fabs(get(c->real, t, i * width + k) * phi_of(c, i, slot));
            }
            const double h = floor + g * g;
            good &= close_to(c->real, get(c->real, squares, slot * width + k), h, floor + size * size);
            good &= close_to(c->real, get(c->real, values, slot * width + k), eta * g / sqrt(h), 1 + size);
        }
    check(good, "adapt");
    free_array(values, "adapt writes the table only");
    free_array(squares, "adapt writes the squares only");
    free_array(t, "adapt leaves the coefficients alone");
}

static void test_expand(const test_case *c, int wide)
{
    const int r = c->map->c.degree;
    int64_t n = 0, k = 0;
    int good = 1;
    for (int64_t i = 0; i < c->x->n; i++)
        n += choose(c->x->count[i] + r, r);
    const array slots = new_array(n * (wide ? 8 : 4)), values = new_reals(c->real, n);
    const tk_features out = {slots.data, values.data, n, wide};
    tk_expand(&c->rows->c, &c->map->c, 0, c->x->n, &out, c->scratch);
    for (int64_t i = 0; i < c->x->n; i++) {
        const int64_t end = k + choose(c->x->count[i] + r, r);
        for (int64_t slot = 0; slot < c->n_slots; slot++) {
            const double phi = phi_of(c, i, slot);
            const int64_t next = k == end ? -1 : wide ? ((int64_t *)slots.data)[k] : ((int32_t *)slots.data)[k];
            good &= next == slot ? close_to(c->real, get(c->real, values, k), phi, fabs(phi)) : phi == 0;
            k += next == slot;
        }
        good &= k == end; /* slots rise */
    }
    check(good, "expand");
    free_array(slots, "expand writes the slots only");
    free_array(values, "expand writes the values only");
}

static void test_weigh(const test_case *c, const monomial *list, int32_t width)
{
    const array table = filled_reals(c->real, c->n_slots * width, 2),
                scratch = new_array(tk_weigh_scratch_bytes(c->real, &c->map->c));
    const tk_table u = {table.data, width};
    int good = 1;
    tk_weigh(c->real, &c->map->c, 0, c->map->c.n_columns + 1, &u, scratch.data);
    for (int64_t a = 0; a < c->n_slots * width; a++) {
        const double expected = 2 * metric_of(c->map, &list[a / width]);
        good &= close_to(c->real, get(c->real, table, a), expected, fabs(expected));
    }
    check(good, "weigh");
    free_array(table, "weigh writes the table only");
    free_array(scratch, "weigh stays in its scratch");
}

static void test_verbs(const matrix *x, int r, metric m, const monomial *list, int64_t n_slots)
{
    feature_map map;
    double *phi = malloc((size_t)(x->n * n_slots) * sizeof *phi);
    if (!phi)
        exit(2);
    make_map(&map, r, x->d, m == UPDATE ? SERIES : GAUSSIAN, m);
    for (int variant = 0; variant < 8 * tk_n_instruction_sets(); variant++) {
        const tk_real real = variant & 1 ? TK_FLOAT64 : TK_FLOAT32;
        const int as_csr = variant >> 1 & 1, walk_dense = variant >> 2 & 1, set_of = variant >> 3;
        if (!tk_instruction_set_usable(set_of))
            continue;
        tk_use_instruction_set(set_of);
        snprintf(where, sizeof where, "%s, %s, %s walk of %s rows, degree %d, %d columns, metric %d",
                 tk_instruction_set_name(set_of), variant & 1 ? "double" : "float", walk_dense ? "dense" : "sparse",
                 as_csr ? "CSR" : "dense", r, (int)x->d, (int)m);
        for (int64_t i = 0; i < x->n; i++)
            features_of(x, i, &map, real, list, n_slots, phi + i * n_slots);
        const stored_rows rows = store(x, real, as_csr, walk_dense);
        const array scratch = new_array(tk_scratch_bytes(&rows.c));
        const test_case c = {real, &map, &rows, x, n_slots, phi, scratch.data};
        for (int32_t width = 1; width <= 3; width += 2) {
            test_dot(&c, width);
            test_add(&c, width);
            test_adapt(&c, width);
            test_weigh(&c, list, width);
        }
        test_expand(&c, 0);
        test_expand(&c, 1);
        free_array(scratch, "scratch is not overrun");
        free_rows(rows);
    }
    free(phi);
    free_array(map.ranks, "ranks are left alone");
}

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
    /* Tables of all sizes, columns beyond them, and rows that are no multiple of what a dense walk takes at once. */
    static const struct {
        int32_t d, n;
        int degree;
    } shapes[] = {{0, 3, 2}, {1, 7, 5}, {7, 19, 1}, {7, 19, 3}, {18, 9, 4}, {3, 37, 5}, {45, 10, 2}, {1100, 6, 1}};
    if (n_arguments > 1)
        return plant(arguments[1]);
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        const int r = shapes[i].degree;
        const int32_t d = shapes[i].d;
        const int64_t n_slots = choose(d + r, r);
        monomial *list = all_monomials(r, d, n_slots);
        for (int m = 0; m < N_METRICS; m++) {
            const matrix x = make_matrix(shapes[i].n, d, m != UPDATE);
            test_verbs(&x, r, (metric)m, list, n_slots);
            free(x.x);
            free(x.count);
        }
        free(list);
    }
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
