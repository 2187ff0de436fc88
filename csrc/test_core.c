/* Tests of the core alone: every verb, for each usable instruction set, against monomials enumerated one by one.
 *
 *     test_core                   all tests; the last line counts them
 *     test_core plant-overflow    misuses the core so that it writes behind an array
 *     test_core plant-undefined   misuses the core so that a signed sum overflows
 *
 * The two planted bugs are there for the sanitizers: a job that does not stop at them proves nothing. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tk.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

enum { MAX_TEST_DEGREE = 5, SHOWN_FAILURES = 20 };

/* ---- counting ---- */

static int64_t n_passed, n_failed;
static char where[160]; /* the case at hand, for messages */

static void check(int good, const char *what)
{
    if (good) {
        n_passed++;
    } else if (++n_failed <= SHOWN_FAILURES) {
        printf("FAILED: %s: %s\n", where, what);
    }
}

/* ---- memory with guards ---- */

/* Bytes on both sides of an array that nobody may write. The address sanitizer has guards of its own, which catch
 * reads as well, so there the array takes the whole allocation. */
enum { GUARD = UNDER_ASAN ? 0 : 256, ALIGNMENT = 64, GUARD_BYTE = 0xa5 };

typedef struct {
    unsigned char *block, *data;
    int64_t bytes;
} array;

/* Begins as NaN when it is read as reals: a number that was never written does not go unseen. */
static array new_array(int64_t bytes)
{
    array a;
    a.bytes = bytes;
#if UNDER_ASAN
    a.block = bytes % ALIGNMENT ? malloc((size_t)bytes) : aligned_alloc(ALIGNMENT, (size_t)bytes);
    a.data = a.block;
#else
    a.block = malloc((size_t)bytes + 2 * GUARD + ALIGNMENT);
    a.data = (unsigned char *)(((uintptr_t)a.block + GUARD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
#endif
    if (!a.block && bytes > 0) {
        printf("out of memory\n");
        exit(2);
    }
#if !UNDER_ASAN
    memset(a.data - GUARD, GUARD_BYTE, GUARD);
    memset(a.data + bytes, GUARD_BYTE, GUARD);
#endif
    if (bytes > 0)
        memset(a.data, 0xff, (size_t)bytes);
    return a;
}

static void free_array(array a, const char *what)
{
    int intact = 1;
    for (int i = 0; i < GUARD; i++)
        if (a.data[-1 - i] != GUARD_BYTE || a.data[a.bytes + i] != GUARD_BYTE)
            intact = 0;
    check(intact, what);
    free(a.block);
}

static int64_t real_bytes(tk_real real)
{
    return real == TK_FLOAT64 ? 8 : 4;
}

static double get(tk_real real, array a, int64_t i)
{
    return real == TK_FLOAT64 ? ((const double *)a.data)[i] : ((const float *)a.data)[i];
}

static void set(tk_real real, array a, int64_t i, double x)
{
    if (real == TK_FLOAT64)
        ((double *)a.data)[i] = x;
    else
        ((float *)a.data)[i] = (float)x;
}

static array new_reals(tk_real real, int64_t n)
{
    return new_array(n * real_bytes(real));
}

/* ---- random numbers: the same ones everywhere ---- */

static uint64_t state;

static double uniform(void) /* in [-1, 1), a multiple of 2^-12: the same as float and as double */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 51) / 4096 - 1;
}

static array random_reals(tk_real real, int64_t n)
{
    array a = new_reals(real, n);
    for (int64_t i = 0; i < n; i++)
        set(real, a, i, uniform());
    return a;
}

/* ---- the monomials, one by one ---- */

static int64_t choose(int64_t n, int64_t k)
{
    int64_t c = 1;
    for (int64_t i = 1; i <= k; i++)
        c = c * (n - k + i) / i;
    return c;
}

typedef struct {
    int32_t j[MAX_TEST_DEGREE]; /* 0 <= j[0] <= ... <= j[r - 1] <= d; 0 is the constant coordinate */
} monomial;

/* Every monomial of degree at most r, each at its slot. */
static monomial *all_monomials(int r, int32_t d, int64_t n_slots)
{
    monomial *list = malloc((size_t)n_slots * sizeof *list);
    char *seen = calloc((size_t)n_slots, 1);
    monomial a = {{0}};
    int every_slot = 1;
    if (!list || !seen)
        exit(2);
    for (int64_t n = 0; n < n_slots; n++) {
        int64_t slot = 0;
        for (int p = 0; p < r; p++)
            slot += choose(a.j[p] + p, p + 1);
        if (slot >= n_slots || seen[slot]) {
            every_slot = 0;
        } else {
            seen[slot] = 1;
            list[slot] = a;
        }
        /* Counting upwards, the last place fastest; lower places that overflow start again at the one before. */
        int p = r - 1;
        while (p >= 0 && a.j[p] == d)
            p--;
        if (p < 0)
            break;
        const int32_t next = a.j[p] + 1;
        for (; p < r; p++)
            a.j[p] = next;
    }
    check(every_slot, "the slots are 0 to D - 1, each once");
    free(seen);
    return list;
}

/* ---- a feature map ---- */

typedef enum { BARE, FEATURES, UPDATE, N_METRICS } metric;
static const char *const metric_names[] = {"bare", "features", "update"};

typedef struct {
    tk_map c;
    array ranks;
    double constant[MAX_TEST_DEGREE + 1], repeat[MAX_TEST_DEGREE + 1];
} feature_map;

static int has_decay(metric m)
{
    return m != UPDATE;
}

static void make_map(feature_map *map, int r, int32_t d, metric m)
{
    map->ranks = new_array((int64_t)(r + 1) * (d + 2) * 8);
    for (int p = 0; p <= r; p++)
        for (int64_t j = 0; j < d + 2; j++)
            ((int64_t *)map->ranks.data)[p * (d + 2) + j] = p == 0 ? 1 : choose(j + p - 1, p);
    for (int p = 0; p <= r; p++) {
        /* UPDATE has a coefficient of its own for each degree, one of them 0. */
        const double c = m == UPDATE ? (r - p == 1 ? 0 : 0.5 + p) : 1;
        map->constant[p] = m == FEATURES ? sqrt(c) : c;
        map->repeat[p] = p == 0 || m == BARE ? 1 : m == FEATURES ? 1 / sqrt(p) : 1.0 / p;
    }
    map->c.degree = r;
    map->c.n_columns = d;
    map->c.scale = 0.75;
    map->c.decay = has_decay(m) ? 0.5 : 0;
    map->c.ranks = (const int64_t *)map->ranks.data;
    map->c.constant = map->constant;
    map->c.repeat = map->repeat;
    map->c.bare = m == BARE;
}

/* m_a, by its definition in tk.h. */
static double metric_of(const feature_map *map, const monomial *a)
{
    const int r = map->c.degree;
    int zeros = 0, times = 0;
    double product = 1;
    for (int p = 0; p < r; p++)
        if (a->j[p] == 0) {
            zeros++;
        } else {
            times = p > 0 && a->j[p - 1] == a->j[p] ? times + 1 : 1;
            product *= map->repeat[times];
        }
    return product * map->constant[zeros];
}

/* ---- rows ---- */

enum { HUGE_ROW = 5 };
static const double huge_value = 7.4e19; /* its square is beyond a float; in such a row s(x) is 0 when there is decay */

typedef struct {
    int64_t n;
    int32_t d;
    double *x;      /* [n][d] */
    int32_t *count; /* [n]: nonzeros */
} matrix;

static matrix make_matrix(int64_t n, int32_t d, int with_huge_row)
{
    matrix x = {n, d, calloc((size_t)(n * d) + 1, sizeof(double)), calloc((size_t)n, sizeof(int32_t))};
    if (!x.x || !x.count)
        exit(2);
    for (int64_t i = 0; i < n; i++)
        for (int32_t j = 0; j < d; j++) {
            /* A full row, an empty one, one entry in front, one at the end; then rows of all densities. */
            const int32_t wanted = d < 40 ? d : 40;
            const int present = i == 0   ? j < wanted || j >= d - 2
                                : i == 1 ? 0
                                : i == 2 ? j == 0
                                : i == 3 ? j == d - 1
                                         : uniform() < (double)(2 * i * wanted) / (double)(n * d) - 1;
            double value = i == HUGE_ROW && with_huge_row ? huge_value : uniform();
            if (value == 0)
                value = 0.25;
            if (present) {
                x.x[i * d + j] = value;
                x.count[i]++;
            }
        }
    return x;
}

/* phi(x_i), every slot; a row whose s(x) underflows in the real type has none. */
static void features_of(const matrix *x, int64_t i, const feature_map *map, tk_real real, const monomial *list,
                        int64_t n_slots, double *phi)
{
    const double *row = x->x + i * x->d;
    double norm2 = 0;
    for (int32_t j = 0; j < x->d; j++)
        norm2 += map->c.scale * row[j] * map->c.scale * row[j];
    const double s = exp(-map->c.decay * norm2);
    for (int64_t slot = 0; slot < n_slots; slot++) {
        double value = metric_of(map, &list[slot]);
        for (int p = 0; p < map->c.degree; p++)
            if (list[slot].j[p] > 0)
                value *= map->c.scale * row[list[slot].j[p] - 1];
        phi[slot] = s * value;
    }
    if (real == TK_FLOAT32 ? (float)s == 0 : s == 0)
        memset(phi, 0, (size_t)n_slots * sizeof *phi);
}

typedef struct {
    tk_rows c;
    array data, indices, indptr;
} stored_rows;

static stored_rows store(const matrix *x, tk_real real, int as_csr, int walk_dense)
{
    stored_rows s;
    int64_t n_stored = 0;
    int32_t longest = 0;
    for (int64_t i = 0; i < x->n; i++) {
        n_stored += x->count[i];
        longest = x->count[i] > longest ? x->count[i] : longest;
    }
    s.data = new_reals(real, as_csr ? n_stored : x->n * x->d);
    s.indices = new_array(as_csr ? n_stored * 4 : 0);
    s.indptr = new_array(as_csr ? (x->n + 1) * 8 : 0);
    int64_t k = 0;
    for (int64_t i = 0; i < x->n; i++) {
        if (as_csr)
            ((int64_t *)s.indptr.data)[i] = k;
        for (int32_t j = 0; j < x->d; j++)
            if (!as_csr) {
                set(real, s.data, k++, x->x[i * x->d + j]);
            } else if (x->x[i * x->d + j] != 0) {
                ((int32_t *)s.indices.data)[k] = j;
                set(real, s.data, k++, x->x[i * x->d + j]);
            }
    }
    if (as_csr)
        ((int64_t *)s.indptr.data)[x->n] = k;
    s.c.real = real;
    s.c.data = s.data.data;
    s.c.indices = as_csr ? (const int32_t *)s.indices.data : NULL;
    s.c.indptr = as_csr ? (const int64_t *)s.indptr.data : NULL;
    s.c.order = NULL;
    s.c.place = NULL;
    s.c.n_front = 0;
    s.c.n_columns = x->d;
    s.c.max_nonzeros = longest;
    s.c.walk_dense = walk_dense;
    return s;
}

static void free_rows(stored_rows s)
{
    free_array(s.data, "rows' data is left alone");
    free_array(s.indices, "rows' indices are left alone");
    free_array(s.indptr, "rows' indptr is left alone");
}

/* ---- the verbs against the monomials ---- */

typedef struct {
    tk_real real;
    const feature_map *map;
    const stored_rows *rows;
    const matrix *x;
    const monomial *list;
    int64_t n_slots;
    double *phi;  /* [n][n_slots] */
    double *sums; /* [n_slots * width], and so is sizes: room for a check */
    double *sizes;
    array scratch;
} test_case;

/* size is what the sum would be if nothing cancelled, which is what rounding errors are proportional to. */
static int close_to(tk_real real, double got, double expected, double size)
{
    const double epsilon = real == TK_FLOAT64 ? 2.3e-16 : 1.2e-7, smallest = real == TK_FLOAT64 ? 1e-300 : 1e-36;
    return fabs(got - expected) <= 64 * epsilon * size + smallest; /* false when got is NaN */
}

static void test_dot(const test_case *c, int64_t first, int64_t last, int32_t width)
{
    const array table = random_reals(c->real, c->n_slots * width), out = new_reals(c->real, (last - first) * width);
    const tk_table u = {table.data, width};
    int good = 1;
    tk_dot(&c->rows->c, &c->map->c, first, last, &u, out.data, c->scratch.data);
    for (int64_t i = first; i < last; i++)
        for (int32_t k = 0; k < width; k++) {
            double sum = 0, size = 0;
            for (int64_t slot = 0; slot < c->n_slots; slot++) {
                const double term = c->phi[i * c->n_slots + slot] * get(c->real, table, slot * width + k);
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, out, (i - first) * width + k), sum, size);
        }
    check(good, width == 1 ? "dot" : "dot with several tables");
    free_array(table, "dot leaves the table alone");
    free_array(out, "dot writes its results only");
}

static void test_add(const test_case *c, int64_t first, int64_t last, int32_t width)
{
    const array table = random_reals(c->real, c->n_slots * width), t = random_reals(c->real, (last - first) * width);
    const tk_table u = {table.data, width};
    const int64_t n = c->n_slots * width;
    int good = 1;
    for (int64_t a = 0; a < n; a++) {
        c->sums[a] = get(c->real, table, a);
        c->sizes[a] = fabs(c->sums[a]);
    }
    for (int64_t i = first; i < last; i++)
        for (int64_t a = 0; a < n; a++) {
            const double term = c->phi[i * c->n_slots + a / width] * get(c->real, t, (i - first) * width + a % width);
            c->sums[a] += term;
            c->sizes[a] += fabs(term);
        }
    tk_add(&c->rows->c, &c->map->c, first, last, &u, t.data, c->scratch.data);
    for (int64_t a = 0; a < n; a++)
        good &= close_to(c->real, get(c->real, table, a), c->sums[a], c->sizes[a]);
    check(good, width == 1 ? "add" : "add with several tables");
    free_array(table, "add writes the table only");
    free_array(t, "add leaves the coefficients alone");
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
    const array table = random_reals(c->real, c->n_slots * width);
    const tk_table u = {table.data, width};
    const int r = c->map->c.degree;
    int good = 1, untouched = 1;
    for (int64_t a = 0; a < c->n_slots * width; a++)
        c->sums[a] = get(c->real, table, a);
    /* In two parts; after the first, slots of the second are as they were. */
    const array scratch = new_array(tk_weigh_scratch_bytes(c->real, &c->map->c));
    tk_weigh(c->real, &c->map->c, cut, d + 1, &u, scratch.data);
    for (int64_t a = 0; a < c->n_slots * width; a++)
        if (c->list[a / width].j[r - 1] < cut)
            untouched &= get(c->real, table, a) == c->sums[a];
    tk_weigh(c->real, &c->map->c, 0, cut, &u, scratch.data);
    for (int64_t a = 0; a < c->n_slots * width; a++) {
        const double expected = c->sums[a] * metric_of(c->map, &c->list[a / width]);
        good &= close_to(c->real, get(c->real, table, a), expected, fabs(expected));
    }
    check(untouched, "weigh touches its range only");
    check(good, width == 1 ? "weigh" : "weigh with several tables");
    free_array(table, "weigh writes the table only");
    free_array(scratch, "weigh stays in its scratch");
}

static void test_verbs(const matrix *x, int r, metric m, const monomial *list, int64_t n_slots)
{
    enum { WIDTH = 3 };
    feature_map map;
    make_map(&map, r, x->d, m);
    double *phi = malloc((size_t)(x->n * n_slots) * sizeof *phi),
           *sums = malloc((size_t)n_slots * WIDTH * 2 * sizeof *sums);
    if (!phi || !sums)
        exit(2);
    for (int real = TK_FLOAT32; real <= TK_FLOAT64; real++) {
        for (int64_t i = 0; i < x->n; i++)
            features_of(x, i, &map, (tk_real)real, list, n_slots, phi + i * n_slots);
        for (int kind = 0; kind < 4; kind++) {
            const stored_rows rows = store(x, (tk_real)real, kind & 1, kind >> 1);
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
                c.sizes = sums + n_slots * WIDTH;
                c.scratch = new_array(tk_scratch_bytes(&rows.c));
                test_dot(&c, 0, x->n, 1);
                test_dot(&c, 0, x->n, WIDTH);
                test_dot(&c, 2, x->n - 1, 1);
                test_add(&c, 0, x->n, 1);
                test_add(&c, 0, x->n, WIDTH);
                test_add(&c, 2, x->n - 1, 1);
                test_adjoint(&c);
                test_expand(&c, 0, x->n, 0);
                test_expand(&c, 2, x->n - 1, 1);
                test_weigh(&c, 1);
                test_weigh(&c, WIDTH);
                free_array(c.scratch, "scratch is not overrun");
            }
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
     * an inner table has entries. Rows: more than a dense walk takes at once, and not a multiple of it. */
    static const struct {
        int32_t d;
        int64_t n;
        int lowest, highest; /* degrees */
    } shapes[] = {{0, 7, 1, 5},  {1, 7, 1, 5},   {3, 11, 1, 5},   {7, 19, 1, 5},  {18, 11, 1, 4},
                  {18, 6, 5, 5}, {45, 10, 1, 3}, {1100, 6, 1, 1}, {2100, 6, 1, 1}};
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++) {
        const int32_t d = shapes[i].d;
        for (int r = shapes[i].lowest; r <= shapes[i].highest; r++) {
            snprintf(where, sizeof where, "degree %d, %d columns", r, (int)d);
            const int64_t n_slots = choose(d + r, r);
            monomial *list = all_monomials(r, d, n_slots);
            for (int m = 0; m < N_METRICS; m++) {
                const matrix x = make_matrix(shapes[i].n, d, has_decay((metric)m));
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
    make_map(&map, r, D, FEATURES);
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
        const tk_structure found = tk_check_structure(p.data, j.data, wide, n_major, 4, n_stored, &at);
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
    make_map(&map, DEGREE, COLUMNS, FEATURES);
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
