/* Tests of rows in cells: every verb on two forms of the same rows, against monomials enumerated one by one; nearest
 * centres; and rows that are shifted by their cells. For each usable instruction set. */
#include "testing.h"

enum { N = 43, N_FORMS = 2, MOST_CELLS = 3, TABLES = 3 };
static const int32_t widths[TABLES] = {1, 3, 8};

/* One form of the rows. */
typedef struct {
    matrix x;
    stored_rows rows;
    array base, beyond;
    int cell[N];
} form;

typedef struct {
    tk_real real;
    feature_map map;
    form forms[N_FORMS];
    const tk_rows *rows;
    int64_t n_slots; /* of all tables */
    int64_t n;       /* rows, with their order */
    int32_t order[N + 7];
    double *phi[N_FORMS]; /* [n][n_slots] */
    array scratch;
} test_case;

static int64_t stored_at(const test_case *c, int64_t i)
{
    return c->rows->order ? c->order[i] : i;
}

/* Cells with all columns, for dense walks; else the second one has none, and the first has one fewer. */
static int32_t columns_of(int cell, int32_t d, int walk_dense)
{
    return walk_dense || cell == 2 ? d : cell == 0 ? d - 1 : 0;
}

static void make_form(form *f, tk_real real, int32_t d, int n_cells, int as_csr, int walk_dense, int sorted)
{
    f->x = make_matrix(N, d, 0);
    f->base = new_array(N * 8);
    f->beyond = new_array(N * 8);
    for (int64_t i = 0; i < N; i++) {
        f->cell[i] = sorted ? (int)(i * n_cells / N) : (int)((uniform() + 1) / 2 * n_cells);
        ((double *)f->beyond.data)[i] = i % 3 == 0 ? 0 : uniform() + 1;
        for (int32_t j = columns_of(f->cell[i], d, walk_dense); j < d; j++)
            if (f->x.x[i * d + j] != 0) {
                f->x.x[i * d + j] = 0;
                f->x.count[i]--;
            }
    }
    f->rows = store(&f->x, real, as_csr, walk_dense);
}

/* Two forms, of three cells and of two; their tables fill the slots to the last. */
static void make_case(test_case *c, tk_real real, int r, int32_t d, int kind, int sorted, int ordered)
{
    const int as_csr = kind & 1, walk_dense = kind >> 1;
    const int64_t most = choose(d + r, r);
    monomial *list = all_monomials(r, d, most);
    double *features = malloc((size_t)most * sizeof *features);
    make_map(&c->map, r, d, GAUSSIAN, FEATURES);
    c->real = real;
    c->n_slots = 0;
    for (int k = 0; k < N_FORMS; k++) {
        int64_t begin[MOST_CELLS];
        make_form(&c->forms[k], real, d, MOST_CELLS - k, as_csr, walk_dense, sorted);
        for (int cell = 0; cell < MOST_CELLS - k; cell++) {
            begin[cell] = c->n_slots;
            c->n_slots += choose(columns_of(cell, d, walk_dense) + r, r);
        }
        for (int64_t i = 0; i < N; i++)
            ((int64_t *)c->forms[k].base.data)[i] = begin[c->forms[k].cell[i]];
        c->forms[k].rows.c.base = (const int64_t *)c->forms[k].base.data;
        c->forms[k].rows.c.beyond = (const double *)c->forms[k].beyond.data;
    }
    c->forms[0].rows.c.next = &c->forms[1].rows.c;
    c->n = ordered ? N + 7 : N;
    for (int64_t i = 0; i < N + 7; i++)
        c->order[i] = (int32_t)(i * 17 % N); /* 17 and 43 have no common factor: all rows, the first ones twice */
    c->forms[0].rows.c.order = ordered ? c->order : NULL;
    c->rows = &c->forms[0].rows.c;
    for (int k = 0; k < N_FORMS; k++) {
        const form *f = &c->forms[k];
        c->phi[k] = calloc((size_t)(c->n * c->n_slots), sizeof **c->phi);
        if (!features || !c->phi[k])
            exit(2);
        for (int64_t i = 0; i < c->n; i++) {
            const int64_t at = stored_at(c, i), size = choose(columns_of(f->cell[at], d, walk_dense) + r, r);
            const double scale = c->map.c.scale, more = scale * scale * ((const double *)f->beyond.data)[at];
            features_of(&f->x, at, &c->map, real, list, most, features);
            for (int64_t a = 0; a < size; a++)
                c->phi[k][i * c->n_slots + ((const int64_t *)f->base.data)[at] + a] =
                    exp(-c->map.c.decay * more) * features[a];
        }
    }
    c->scratch = new_array(tk_scratch_bytes(c->rows));
    free(features);
    free(list);
}

static void free_case(test_case *c)
{
    for (int k = 0; k < N_FORMS; k++) {
        free_rows(c->forms[k].rows);
        free_array(c->forms[k].base, "bases are left alone");
        free_array(c->forms[k].beyond, "beyond is left alone");
        free(c->forms[k].x.x);
        free(c->forms[k].x.count);
        free(c->phi[k]);
    }
    free_array(c->scratch, "scratch is not overrun");
    free_array(c->map.ranks, "ranks are left alone");
}

static double phi_of(const test_case *c, int64_t i, int64_t slot)
{
    return c->phi[0][i * c->n_slots + slot] + c->phi[1][i * c->n_slots + slot]; /* one of them is 0 */
}

static void test_dot(const test_case *c, int64_t first, int64_t last, int32_t width)
{
    const array table = random_reals(c->real, c->n_slots * width), out = new_reals(c->real, (last - first) * width);
    const tk_table u = {table.data, width};
    int good = 1;
    tk_dot(c->rows, &c->map.c, first, last, &u, out.data, c->scratch.data);
    for (int64_t i = first; i < last; i++)
        for (int32_t k = 0; k < width; k++) {
            double sum = 0, size = 0;
            for (int64_t a = 0; a < c->n_slots; a++) {
                const double term = phi_of(c, i, a) * get(c->real, table, a * width + k);
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, out, (i - first) * width + k), sum, size);
        }
    check(good, "dot");
    free_array(table, "dot leaves the table alone");
    free_array(out, "dot writes its results only");
}

static void test_add(const test_case *c, int64_t first, int64_t last, int32_t width)
{
    const int64_t n = last - first;
    const array table = random_reals(c->real, c->n_slots * width), t = random_reals(c->real, n * width);
    const array before = new_array(table.bytes), in_parts = new_array(table.bytes);
    const tk_table u = {table.data, width}, part = {in_parts.data, width};
    const int32_t d = c->map.c.n_columns, cuts[] = {0, 1, d / 2 + 1, d + 1};
    int good = 1;
    memcpy(before.data, table.data, (size_t)table.bytes);
    memcpy(in_parts.data, table.data, (size_t)table.bytes);
    tk_add(c->rows, &c->map.c, first, last, &u, t.data, c->scratch.data);
    for (int p = 2; p >= 0; p--)
        tk_add_part(c->rows, &c->map.c, first, last, &part, t.data, c->scratch.data, cuts[p], cuts[p + 1]);
    for (int64_t a = 0; a < c->n_slots; a++)
        for (int32_t k = 0; k < width; k++) {
            double sum = get(c->real, before, a * width + k), size = fabs(sum);
            for (int64_t i = 0; i < n; i++) {
                const double term = phi_of(c, first + i, a) * get(c->real, t, i * width + k);
                sum += term;
                size += fabs(term);
            }
            good &= close_to(c->real, get(c->real, table, a * width + k), sum, size);
        }
    check(good, "add");
    check(memcmp(in_parts.data, table.data, (size_t)table.bytes) == 0, "add in parts");
    free_array(in_parts, "parts of add write the table only");
    free_array(before, "the test stays in its array");
    free_array(table, "add writes the table only");
    free_array(t, "add leaves the coefficients alone");
}

/* One form after the other; in dense walks the gradients of rows of one cell, one behind the other, are summed up. */
static void test_adapt(const test_case *c, int32_t width)
{
    const double floor = 0.25, eta = 0.3;
    const array values = random_reals(c->real, c->n_slots * width), before = new_array(values.bytes),
                squares = filled_reals(c->real, c->n_slots * width, floor), t = random_reals(c->real, c->n * width);
    const tk_adaptive state = {values.data, squares.data, width, eta, NULL};
    double *sums = malloc((size_t)c->n_slots * 2 * sizeof *sums), *grown = sums + c->n_slots;
    int good = 1;
    if (!sums)
        exit(2);
    memcpy(before.data, values.data, (size_t)values.bytes);
    tk_adapt(c->rows, &c->map.c, 0, c->n, &state, t.data, c->scratch.data);
    for (int32_t k = 0; k < width; k++) {
        for (int64_t a = 0; a < c->n_slots; a++) {
            sums[a] = get(c->real, before, a * width + k);
            grown[a] = floor;
        }
        for (int f = 0; f < N_FORMS; f++)
            for (int64_t first = 0, last; first < c->n; first = last) {
                int64_t row[MOST_ROWS];
                double coefficient[MOST_ROWS];
                const int cell = c->forms[f].cell[stored_at(c, first)];
                for (last = first; last < c->n && c->forms[f].cell[stored_at(c, last)] == cell; last++) {
                    row[last - first] = last;
                    coefficient[last - first] = get(c->real, t, last * width + k);
                }
                plain_adapt(c->phi[f], c->n_slots, row, coefficient, last - first, c->rows->walk_dense ? TOGETHER : 1,
                            eta, sums, grown);
            }
        for (int64_t a = 0; a < c->n_slots; a++) {
            double move = 0;
            for (int64_t i = 0; i < c->n; i++)
                move += fabs(get(c->real, t, i * width + k) * phi_of(c, i, a));
            good &= close_to(c->real, get(c->real, values, a * width + k), sums[a], 1 + 2 * eta * move);
            good &= close_to(c->real, get(c->real, squares, a * width + k), grown[a], floor + move * move);
        }
    }
    check(good, "adapt");
    free(sums);
    free_array(before, "the test stays in its array");
    free_array(values, "adapt writes the table only");
    free_array(squares, "adapt writes the squares only");
    free_array(t, "adapt leaves the coefficients alone");
}

static void test_gram(const test_case *c)
{
    const int64_t n = c->n;
    const array gram = new_array(n * n * 8), scratch = new_zeros(tk_gram_scratch_bytes(c->rows, n));
    int good = 1;
    tk_gram(c->rows, &c->map.c, 0, n, (double *)gram.data, scratch.data);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int64_t a = 0; a < c->n_slots; a++) {
                const double term = phi_of(c, i, a) * phi_of(c, j, a);
                sum += term;
                size += fabs(term);
            }
            const double got = ((const double *)gram.data)[i * n + j];
            good &= close_to(c->real, got, sum, size) && (size != 0 || got == 0);
        }
    check(good, "gram");
    free_array(gram, "gram writes its results only");
    free_array(scratch, "gram stays in its scratch");
}

static void test_verbs(int r, int32_t d, tk_real real, int kind, int sorted)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        test_case c;
        make_case(&c, real, r, d, kind, sorted, ordered);
        for (int i = 0; i < TABLES; i++) {
            test_dot(&c, 0, c.n, widths[i]);
            test_dot(&c, 3, c.n - 2, widths[i]);
            test_add(&c, 0, c.n, widths[i]);
            test_add(&c, 3, c.n - 2, widths[i]);
            test_adapt(&c, widths[i]);
        }
        test_gram(&c);
        free_case(&c);
    }
}

/* Whole numbers, of which all sums are exact: there are ties, of which the first counts. */
static void test_nearest(tk_real real, int as_csr, int32_t n_cells)
{
    enum { D = 4, USED = 2 };
    static const int32_t use[D] = {1, -1, -1, 0}, column[USED] = {3, 0};
    const int64_t padded = ((uint32_t)n_cells + TK_CELL_GROUP - 1) / TK_CELL_GROUP * TK_CELL_GROUP;
    matrix x = make_matrix(N, D, 0);
    for (int64_t i = 0; i < N * D; i++)
        x.x[i] = x.x[i] == 0 ? 0 : x.x[i] < 0 ? -2 : 1;
    const stored_rows rows = store(&x, real, as_csr, 0);
    const array centres = new_zeros(USED * padded * 8), half = new_array(padded * 8), cell = new_array((N - 3) * 4);
    for (int64_t c = 0; c < padded; c++) {
        ((double *)half.data)[c] = c < n_cells ? 0 : INFINITY;
        for (int k = 0; k < USED && c < n_cells; k++) {
            const double at = floor(3 * uniform());
            ((double *)centres.data)[k * padded + c] = at;
            ((double *)half.data)[c] += at * at / 2;
        }
    }
    const tk_centres all = {n_cells, use, (const double *)centres.data, (const double *)half.data};
    int good = 1;
    tk_nearest(&rows.c, &all, 2, N - 1, (int32_t *)cell.data);
    for (int64_t i = 2; i < N - 1; i++) {
        double least = INFINITY;
        int32_t nearest = -1;
        for (int32_t c = 0; c < n_cells; c++) {
            double distance = 0;
            for (int k = 0; k < USED; k++) {
                const double apart = x.x[i * D + column[k]] - ((const double *)centres.data)[k * padded + c];
                distance += apart * apart;
            }
            if (distance < least) {
                least = distance;
                nearest = c;
            }
        }
        good &= ((const int32_t *)cell.data)[i - 2] == nearest;
    }
    check(good, "nearest");
    free(x.x);
    free(x.count);
    free_rows(rows);
    free_array(centres, "centres are left alone");
    free_array(half, "norms are left alone");
    free_array(cell, "nearest writes its results only");
}

/* Rows of three cells, the last of which has no columns; entries are exact. */
static void test_shift(tk_real real, int as_csr)
{
    enum { D = 5, CELLS = 3 };
    static const int32_t place[CELLS][D] = {{3, 1, 4, 0, 2}, {-1, 1, -1, 0, 2}, {-1, -1, -1, -1, -1}};
    static const double by[CELLS][D] = {{0, 0.5, 0, -0.25, 0}, {1, 0, 0.5, 0, 0}, {0, 0, 0.125, 0, 2}};
    static const int32_t moved[] = {1, 3, 0, 2, 2, 4};
    static const int64_t moved_ptr[] = {0, 2, 4, 6};
    int32_t cell[N];
    matrix x = make_matrix(N, D, 0);
    const stored_rows rows = store(&x, real, as_csr, 0);
    const array shifts = new_reals(real, CELLS * D), beyond = new_array(N * 8), indptr = new_zeros((N + 1) * 8);
    for (int i = 0; i < CELLS * D; i++)
        set(real, shifts, i, by[i / D][i % D]);
    for (int i = 0; i < N; i++)
        cell[i] = i % 7 % CELLS;
    tk_shift shift = {cell, D,    shifts.data, moved_ptr, moved, place[0], (double *)beyond.data,
                      NULL, NULL, NULL,        NULL,      0};
    shift.indptr = (int64_t *)indptr.data;
    tk_shift_rows(&rows.c, &shift, 0, N);
    for (int i = 0; i < N; i++)
        shift.indptr[i + 1] += shift.indptr[i];
    const int64_t n_entries = shift.indptr[N];
    const array indices = new_array(n_entries * 4), data = new_reals(real, n_entries);
    shift.indices = (int32_t *)indices.data;
    shift.data = data.data;
    shift.beyond = NULL;
    tk_shift_rows(&rows.c, &shift, 0, N);
    int good = 1;
    for (int64_t i = 0, k = 0; i < N; i++) {
        double row[D] = {0}, left_out = 0;
        for (int j = 0; j < D; j++) {
            const double value = x.x[i * D + j] - by[cell[i]][j];
            if (place[cell[i]][j] < 0)
                left_out += value * value;
            else
                row[place[cell[i]][j]] = value;
        }
        good &= fabs(((const double *)beyond.data)[i] - left_out) <= 1e-14 * left_out;
        for (int j = 0; j < D; j++)
            if (row[j] != 0) {
                good &= k < shift.indptr[i + 1] && shift.indices[k] == j && get(real, data, k) == row[j];
                k++;
            }
        good &= k == shift.indptr[i + 1];
    }
    check(good, "rows shifted by their cells");
    free(x.x);
    free(x.count);
    free_rows(rows);
    free_array(shifts, "shifts are left alone");
    free_array(beyond, "beyond is written once a row");
    free_array(indptr, "shift writes the ends of rows only");
    free_array(indices, "shift writes the columns only");
    free_array(data, "shift writes the entries only");
}

int main(void)
{
    static const int32_t columns[] = {0, 21, 9, 5, 4, 3}; /* by degree */
    static const int32_t n_cells[] = {1, 2, 63, 64, 65, 200};
    tk_init();
    for (int set_of = 0; set_of < tk_n_instruction_sets(); set_of++) {
        if (!tk_instruction_set_usable(set_of))
            continue;
        tk_use_instruction_set(set_of);
        for (int real = TK_FLOAT32; real <= TK_FLOAT64; real++) {
            const char *const name = tk_instruction_set_name(set_of), *const type = real ? "double" : "float";
            for (int r = 1; r <= MAX_TEST_DEGREE; r++)
                for (int kind = 0; kind < 8; kind++) {
                    snprintf(where, sizeof where, "%s, %s, %s walk of %s rows, degree %d, cells %s", name, type,
                             kind >> 1 & 1 ? "dense" : "sparse", kind & 1 ? "CSR" : "dense", r,
                             kind >> 2 ? "sorted" : "mixed");
                    test_verbs(r, columns[r], (tk_real)real, kind & 3, kind >> 2);
                }
            for (int as_csr = 0; as_csr < 2; as_csr++) {
                snprintf(where, sizeof where, "%s, %s, %s rows", name, type, as_csr ? "CSR" : "dense");
                for (int i = 0; i < (int)(sizeof n_cells / sizeof n_cells[0]); i++)
                    test_nearest((tk_real)real, as_csr, n_cells[i]);
                test_shift((tk_real)real, as_csr);
            }
        }
    }
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
