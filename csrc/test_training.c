/* Tests of what training is made of: gram, adapt, shifted rows, and the passes of the solvers, for each usable
 * instruction set, against loops over monomials enumerated one by one. The last line counts them. */
#include "testing.h"

enum {
    LANES = 8, /* rows of a dense walk whose gradients tk_adapt sums up */
    MOST_ROWS = 32
};

static const char *const kernel_names[] = {"Gaussian", "series"};
static const char *const loss_names[] = {"hinge", "squared hinge", "log loss"};

typedef struct {
    tk_real real;
    const feature_map *maps; /* [N_METRICS] */
    const stored_rows *rows;
    const matrix *x;
    int64_t n_slots;
    const double *phi;    /* [n][n_slots] the features */
    const double *metric; /* [n_slots] sqrt(c_|a| / a!) */
    double *w, *more;     /* [n_slots] room for a check */
} test_case;

static double inner(const test_case *c, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t slot = 0; slot < c->n_slots; slot++)
        sum += a[slot] * b[slot];
    return sum;
}

static const double *phi_of(const test_case *c, int64_t row)
{
    return c->phi + row * c->n_slots;
}

static array new_numbers(int64_t n, double value)
{
    const array a = new_array(n * 8);
    for (int64_t i = 0; i < n; i++)
        ((double *)a.data)[i] = value;
    return a;
}

static array new_zeros(int64_t bytes)
{
    const array a = new_array(bytes);
    if (bytes > 0)
        memset(a.data, 0, (size_t)bytes);
    return a;
}

static array filled_reals(tk_real real, int64_t n, double value)
{
    const array a = new_reals(real, n);
    for (int64_t i = 0; i < n; i++)
        set(real, a, i, value);
    return a;
}

/* An order of all n rows: (i * step + 2) mod n, with a step that has no divisor in common with n. */
static array new_order(int64_t n)
{
    const array a = new_array(n * 4);
    int64_t step = n > 4 ? 3 : 1;
    while (step > 1 && n % step == 0)
        step += 2;
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)a.data)[i] = (int32_t)((i * step + 2) % n);
    return a;
}

/* Steps feed the rounding errors of the earlier ones into the later ones. */
static int nearly(tk_real real, double got, double expected, double size)
{
    return fabs(got - expected) <= (real == TK_FLOAT64 ? 1e-9 : 2e-3) * size;
}

/* ---- gram ---- */

static void test_gram(const test_case *c)
{
    static const int64_t ranges[][2] = {{0, 5}, {2, 5}, {1, 6}, {3, 4}};
    const array order = new_order(c->x->n), scratch = new_zeros(tk_gram_scratch_bytes(&c->rows->c, 5));
    for (int ordered = 0; ordered < 2; ordered++)
        for (int k = 0; k < 4; k++) {
            const int64_t first = ranges[k][0], n = ranges[k][1] - first;
            const array gram = new_numbers(n * n, NAN);
            tk_rows rows = c->rows->c;
            int good = 1;
            rows.order = ordered ? (const int32_t *)order.data : NULL;
            tk_gram(&rows, &c->maps[FEATURES].c, first, first + n, (double *)gram.data, scratch.data);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < n; j++) {
                    const int64_t row_i = ordered ? rows.order[first + i] : first + i;
                    const int64_t row_j = ordered ? rows.order[first + j] : first + j;
                    const double *a = phi_of(c, row_i), *b = phi_of(c, row_j);
                    const double size = sqrt(inner(c, a, a) * inner(c, b, b));
                    good &= close_to(c->real, ((double *)gram.data)[i * n + j], inner(c, a, b), size);
                    good &= ((double *)gram.data)[i * n + j] == ((double *)gram.data)[j * n + i];
                }
            check(good, ordered ? "gram of rows in an order" : "gram");
            free_array(gram, "gram writes its results only");
        }
    free_array(order, "gram leaves the order alone");
    free_array(scratch, "gram stays in its scratch");
}

/* ---- adapt ---- */

/* The steps of AdaGrad for n gradients t[i] phi(row[i]), `together` at a time. */
static void plain_adapt(const test_case *c, const int64_t *row, const double *t, int64_t n, int together, double eta,
                        double *w, double *squares)
{
    for (int64_t first = 0; first < n; first += together)
        for (int64_t a = 0; a < c->n_slots; a++) {
            double g = 0;
            for (int64_t i = first; i < n && i < first + together; i++)
                g += t[i] * phi_of(c, row[i])[a];
            squares[a] += g * g;
            w[a] += eta * g / sqrt(squares[a]);
        }
}

static void test_adapt(const test_case *c, int64_t first, int64_t last, double eta)
{
    const int64_t n = last - first;
    const array values = random_reals(c->real, c->n_slots), squares = filled_reals(c->real, c->n_slots, 0.25),
                t = random_reals(c->real, n), scratch = new_array(tk_scratch_bytes(&c->rows->c));
    const tk_adaptive table = {values.data, squares.data, eta};
    int64_t row[MOST_ROWS];
    double coefficient[MOST_ROWS];
    int good = 1, rises = 1;
    for (int64_t i = 0; i < n; i++) {
        row[i] = first + i;
        coefficient[i] = get(c->real, t, i);
    }
    for (int64_t a = 0; a < c->n_slots; a++) {
        c->w[a] = get(c->real, values, a);
        c->more[a] = 0.25;
    }
    tk_adapt(&c->rows->c, &c->maps[FEATURES].c, first, last, &table, t.data, scratch.data);
    plain_adapt(c, row, coefficient, n, c->rows->c.walk_dense ? LANES : 1, eta, c->w, c->more);
    for (int64_t a = 0; a < c->n_slots; a++) {
        double move = 0; /* if no two gradients cancelled, and the step sizes stayed as they are at first */
        for (int64_t i = 0; i < n; i++)
            move += fabs(coefficient[i] * phi_of(c, row[i])[a]);
        good &= close_to(c->real, get(c->real, values, a), c->w[a], 1 + 2 * eta * move);
        good &= close_to(c->real, get(c->real, squares, a), c->more[a], 0.25 + move * move);
        rises &= get(c->real, squares, a) >= 0.25;
    }
    check(good, eta == 0 ? "adapt with steps of 0" : "adapt");
    check(rises, "sums of squares do not fall");
    free_array(values, "adapt writes the table only");
    free_array(squares, "adapt writes the squares only");
    free_array(t, "adapt leaves the coefficients alone");
    free_array(scratch, "adapt stays in its scratch");
}

/* ---- shifted rows ---- */

static void test_shift(const test_case *c)
{
    const int64_t n = c->x->n, cut = n / 2;
    const int32_t d = c->x->d;
    const array by = new_reals(c->real, d), place = new_array(d * 4), moved = new_array(d * 4),
                indptr = new_array((n + 1) * 8);
    int64_t *ends = (int64_t *)indptr.data;
    tk_shift shift = {by.data, (const int32_t *)moved.data, 0, (const int32_t *)place.data, ends, NULL, NULL};
    int good = 1, rises = 1;
    for (int32_t j = 0; j < d; j++) {
        const double value = c->x->x[4 * d + j]; /* row 4: nothing is left of it */
        set(c->real, by, j, value);
        if (value != 0)
            ((int32_t *)moved.data)[shift.n_moved++] = j;
        ((int32_t *)place.data)[j] = (j % 2 ? j / 2 : d - 1 - j / 2);
    }
    ends[0] = 0;
    tk_shift_rows(&c->rows->c, &shift, 0, cut);
    tk_shift_rows(&c->rows->c, &shift, cut, n);
    const array indices = new_array(ends[n] * 4), data = new_reals(c->real, ends[n]);
    shift.indices = (int32_t *)indices.data;
    shift.data = data.data;
    tk_shift_rows(&c->rows->c, &shift, cut, n);
    tk_shift_rows(&c->rows->c, &shift, 0, cut);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = 0;
        for (int32_t j = 0; j < d; j++) {
            double value = c->x->x[i * d + j] - get(c->real, by, j);
            if (c->real == TK_FLOAT32)
                value = (float)value;
            int64_t at = ends[i];
            while (at < ends[i + 1] && shift.indices[at] != shift.place[j])
                at++;
            good &= at < ends[i + 1] ? value != 0 && get(c->real, data, at) == value : value == 0;
            left += value != 0;
        }
        good &= ends[i + 1] - ends[i] == left;
        for (int64_t at = ends[i] + 1; at < ends[i + 1]; at++)
            rises &= shift.indices[at - 1] < shift.indices[at];
    }
    check(good, "shifted rows");
    check(rises, "columns of shifted rows rise");
    free_array(by, "the shift is left alone");
    free_array(place, "the shift's columns are left alone");
    free_array(moved, "the shift's moved columns are left alone");
    free_array(indptr, "only the ends of rows are counted");
    free_array(indices, "indices of shifted rows stay in their array");
    free_array(data, "shifted rows stay in their array");
}

/* ---- training: a table, labels and weights ---- */

typedef struct {
    tk_training c;
    tk_rows rows;
    array w, y, weight, order, scratch;
} a_training;

/* With the table as weights of features, or as those of bare monomials. */
static void begin_training(a_training *t, const test_case *c, tk_loss loss, int32_t block, int bare)
{
    const int64_t n = c->x->n;
    t->rows = c->rows->c;
    t->w = filled_reals(c->real, c->n_slots, 0);
    t->y = new_array(n);
    t->weight = new_array(n * 8);
    t->order = new_order(n);
    t->scratch = new_zeros(tk_training_scratch_bytes(&t->rows, block));
    for (int64_t i = 0; i < n; i++) {
        ((int8_t *)t->y.data)[i] = uniform() < 0 ? -1 : 1;
        ((double *)t->weight.data)[i] = 1.25 + uniform();
    }
    t->rows.order = (const int32_t *)t->order.data;
    t->c.rows = &t->rows;
    t->c.margin = &c->maps[bare ? BARE : FEATURES].c;
    t->c.update = &c->maps[bare ? UPDATE : FEATURES].c;
    t->c.w = t->w.data;
    t->c.loss = loss;
    t->c.y = (const int8_t *)t->y.data;
    t->c.weight = (const double *)t->weight.data;
    t->c.block = block;
    t->c.scratch = t->scratch.data;
}

static void end_training(a_training *t)
{
    free_array(t->w, "training stays in its table");
    free_array(t->y, "training leaves labels alone");
    free_array(t->weight, "training leaves weights alone");
    free_array(t->order, "training leaves the order alone");
    free_array(t->scratch, "training stays in its scratch");
}

/* Whether a table, times scale, is w (or makes the same margins with bare monomials), which took steps of this size. */
static int table_is(const test_case *c, array table, double scale, int bare, const double *w, double size)
{
    int good = 1;
    for (int64_t a = 0; a < c->n_slots; a++) {
        const double expected = bare ? w[a] * c->metric[a] : w[a];
        good &= nearly(c->real, scale * get(c->real, table, a), expected, bare ? size * c->metric[a] : size);
    }
    return good;
}

/* -d loss / d v. */
static double slope(tk_loss loss, double v)
{
    return loss == TK_LOG_LOSS ? 1 / (1 + exp(v)) : v >= 1 ? 0 : loss == TK_HINGE ? 1 : 2 * (1 - v);
}

/* ---- dual coordinate ascent ---- */

/* d/da of omega g(a / omega) - (a - alpha) v - q/2 (a - alpha)^2. */
static double dual_slope(tk_loss loss, double a, double alpha, double omega, double v, double q)
{
    const double g = loss == TK_HINGE ? 1 : loss == TK_SQUARED_HINGE ? 1 - a / (2 * omega) : log((omega - a) / a);
    return g - v - q * (a - alpha);
}

/* The a that makes it largest: its slope falls. */
static double best_alpha(tk_loss loss, double alpha, double omega, double v, double q)
{
    double low = 0, high = loss == TK_SQUARED_HINGE ? alpha + 2 * omega * (1 + fabs(v)) : omega;
    for (int i = 0; i < 200; i++) {
        const double a = low + (high - low) / 2;
        if (dual_slope(loss, a, alpha, omega, v, q) > 0)
            low = a;
        else
            high = a;
    }
    return low;
}

/* The passes with blocks of one row are the textbook's; with larger ones they keep its promises. */
static void test_dual(const test_case *c, tk_loss loss, int32_t block, int bare)
{
    enum { PASSES = 2 };
    const double C = 20;
    const int64_t n = c->x->n;
    a_training t;
    begin_training(&t, c, loss, block, bare);
    const array alpha = new_numbers(n, 0), margin = new_numbers(n, NAN), expected = new_numbers(n, 0);
    tk_dual dual = {C, (double *)alpha.data, (double *)margin.data, 0, block == 1 ? 1 : 3, 0};
    double *plain = (double *)expected.data;
    int same = 1, feasible = 1;
    memset(c->w, 0, (size_t)c->n_slots * sizeof *c->w);
    for (int pass = 0; pass < PASSES; pass++) {
        tk_dual_pass(&t.c, 0, 2 * block, &dual);
        tk_dual_pass(&t.c, 2 * block, n, &dual);
        for (int64_t k = 0; k < n && block == 1; k++) {
            const int64_t i = t.rows.order[k];
            const double *phi = phi_of(c, i), y = t.c.y[i], q = C * inner(c, phi, phi), v = y * inner(c, c->w, phi);
            const double change = best_alpha(loss, plain[i], t.c.weight[i], v, q) - plain[i];
            plain[i] += change;
            for (int64_t a = 0; a < c->n_slots; a++)
                c->w[a] += C * change * y * phi[a];
            same &= nearly(c->real, dual.alpha[i], plain[i], 1 + plain[i]);
            same &= nearly(c->real, dual.margin[i], v, 1 + sqrt(inner(c, c->w, c->w) * q));
        }
    }
    memset(c->w, 0, (size_t)c->n_slots * sizeof *c->w);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t a = 0; a < c->n_slots; a++)
            c->w[a] += C * dual.alpha[i] * t.c.y[i] * phi_of(c, i)[a];
        feasible &= dual.alpha[i] >= 0 && (loss == TK_SQUARED_HINGE || dual.alpha[i] <= t.c.weight[i]);
    }
    const double norm2 = inner(c, c->w, c->w);
    check(same, "dual pass");
    check(feasible, "alpha stays in its domain");
    check(table_is(c, t.w, 1, bare, c->w, 1 + sqrt(norm2)), "w = C sum alpha y phi");
    check(nearly(c->real, dual.norm2, norm2, 1 + norm2), "|w|^2");
    free_array(alpha, "a dual pass stays in alpha");
    free_array(margin, "a dual pass stays in the margins");
    free_array(expected, "the test stays in its array");
    end_training(&t);
}

/* ---- Pegasos ---- */

/* Steps 1 / (lambda k) over the blocks of the order; returns the largest |w|. w and the sum of iterates are written. */
static double plain_pegasos(const test_case *c, const a_training *t, const tk_pegasos *pegasos, double radius,
                            double *w, double *sum)
{
    const int64_t n = c->x->n, block = t->c.block;
    double largest = 0, slopes[MOST_ROWS];
    for (int64_t a = 0; a < c->n_slots; a++)
        w[a] = sum[a] = 0;
    for (int64_t first = 0, k = 1; first < n; first += block, k++) {
        const int64_t last = first + block < n ? first + block : n;
        for (int64_t i = first; i < last; i++) {
            const int32_t row = t->rows.order[i];
            const double y = t->c.y[row];
            slopes[i] = t->c.weight[row] * y * slope(t->c.loss, y * inner(c, w, phi_of(c, row)));
        }
        for (int64_t a = 0; a < c->n_slots; a++) {
            w[a] *= 1 - 1 / (double)k;
            for (int64_t i = first; i < last; i++)
                w[a] += pegasos->share / (pegasos->lambda * (double)k) * slopes[i] * phi_of(c, t->rows.order[i])[a];
        }
        const double norm = sqrt(inner(c, w, w));
        largest = norm > largest ? norm : largest;
        for (int64_t a = 0; a < c->n_slots; a++) {
            w[a] *= radius > 0 && norm > radius ? radius / norm : 1;
            sum[a] += w[a];
        }
    }
    return largest;
}

static void test_pegasos(const test_case *c, tk_loss loss, int32_t block, int bare, int projected)
{
    const int64_t n = c->x->n, n_blocks = (n + block - 1) / block;
    a_training t;
    begin_training(&t, c, loss, block, bare);
    const array alpha = new_numbers(n, 0), average = filled_reals(c->real, c->n_slots, 0);
    tk_pegasos p = {.share = (double)n_blocks / (double)n, .scale = 1, .alpha = (double *)alpha.data};
    p.average = average.data;
    p.lambda = 1; /* large enough that no step makes rounding errors much larger */
    for (int64_t i = 0; i < n; i++)
        p.lambda += 2 * inner(c, phi_of(c, i), phi_of(c, i));
    if (projected)
        p.radius = plain_pegasos(c, &t, &p, 0, c->w, c->more) / 2;
    const double size = (double)n_blocks * plain_pegasos(c, &t, &p, p.radius, c->w, c->more);
    tk_pegasos_pass(&t.c, 0, block, &p);
    tk_pegasos_pass(&t.c, block, n, &p);
    check(table_is(c, t.w, p.scale, bare, c->w, size), projected ? "Pegasos with projections" : "Pegasos");
    check(p.t == n_blocks && p.n_averaged == n_blocks, "steps are counted");
    const array mean = new_reals(c->real, c->n_slots);
    for (int64_t a = 0; a < c->n_slots; a++) {
        set(c->real, mean, a, get(c->real, average, a) + p.shift * get(c->real, t.w, a));
        c->w[a] = 0;
    }
    check(table_is(c, mean, 1, bare, c->more, size), "the average of the iterates");
    for (int64_t i = 0; i < n; i++)
        for (int64_t a = 0; a < c->n_slots; a++)
            c->w[a] += p.alpha[i] * t.c.y[i] * phi_of(c, i)[a];
    check(table_is(c, t.w, 1, bare, c->w, size / p.scale), "values = sum alpha y phi");
    check(!projected || nearly(c->real, p.norm2, p.scale * p.scale * inner(c, c->w, c->w), p.radius * p.radius),
          "|w|^2 of Pegasos");
    free_array(mean, "the test stays in its array");
    free_array(alpha, "a Pegasos pass stays in alpha");
    free_array(average, "a Pegasos pass stays in the average");
    end_training(&t);
}

/* ---- AdaGrad ---- */

static void test_adagrad(const test_case *c, tk_loss loss)
{
    enum { BLOCK = 3 };
    const double eta = 0.3, floor = 0.25;
    const int64_t n = c->x->n;
    a_training t;
    begin_training(&t, c, loss, BLOCK, 0);
    const array squares = filled_reals(c->real, c->n_slots, floor);
    const tk_adaptive table = {t.w.data, squares.data, eta};
    int good = 1, untouched = 1;
    for (int64_t a = 0; a < c->n_slots; a++) {
        c->w[a] = 0;
        c->more[a] = floor;
    }
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t row[BLOCK], k = 0;
        double steps[BLOCK];
        for (; k < BLOCK && first + k < n; k++) {
            row[k] = t.rows.order[first + k];
            const double y = t.c.y[row[k]];
            steps[k] = t.c.weight[row[k]] * y * slope(loss, y * inner(c, c->w, phi_of(c, row[k])));
        }
        plain_adapt(c, row, steps, k, t.rows.walk_dense ? LANES : 1, eta, c->w, c->more);
    }
    tk_adagrad_pass(&t.c, 0, 2 * BLOCK, &table);
    tk_adagrad_pass(&t.c, 2 * BLOCK, n, &table);
    check(table_is(c, t.w, 1, 0, c->w, 1), "AdaGrad");
    for (int64_t a = 0; a < c->n_slots; a++)
        good &= nearly(c->real, get(c->real, squares, a), c->more[a], c->more[a]);
    check(good, "AdaGrad's sums of squares");
    good = 1;
    const int64_t first = c->n_slots / 3, last = c->n_slots - c->n_slots / 4;
    for (int64_t a = 0; a < c->n_slots; a++)
        c->w[a] = get(c->real, t.w, a);
    tk_shrink(c->real, &table, 0.4, first, last);
    for (int64_t a = 0; a < c->n_slots; a++) {
        const double w = c->w[a] / (1 + 0.4 / sqrt(get(c->real, squares, a)));
        if (a >= first && a < last)
            good &= close_to(c->real, get(c->real, t.w, a), w, fabs(w));
        else
            untouched &= get(c->real, t.w, a) == c->w[a];
    }
    check(good, "shrink");
    check(untouched, "shrink touches its range only");
    free_array(squares, "AdaGrad stays in its squares");
    end_training(&t);
}

/* ---- all of it ---- */

static void test_rows(const test_case *c)
{
    const int64_t n = c->x->n;
    test_gram(c);
    test_adapt(c, 0, n, 0.3);
    test_adapt(c, 2, n - 1, 0.3);
    test_adapt(c, 1, n, 0);
    test_shift(c);
    for (int loss = TK_HINGE; loss <= TK_LOG_LOSS; loss++) {
        const size_t end = strlen(where);
        snprintf(where + end, sizeof where - end, ", %s", loss_names[loss]);
        test_dual(c, (tk_loss)loss, 1, 0);
        test_dual(c, (tk_loss)loss, 1, 1);
        test_dual(c, (tk_loss)loss, 3, 1);
        test_pegasos(c, (tk_loss)loss, 4, 0, 0);
        test_pegasos(c, (tk_loss)loss, 1, 1, 1);
        test_pegasos(c, (tk_loss)loss, 4, 0, 1);
        test_adagrad(c, (tk_loss)loss);
        where[end] = 0;
    }
}

static void test_kernel(const matrix *x, int r, kernel k, const monomial *list, int64_t n_slots)
{
    feature_map maps[N_METRICS];
    double *phi = malloc((size_t)((x->n + 3) * n_slots) * sizeof *phi);
    if (!phi)
        exit(2);
    for (int m = 0; m < N_METRICS; m++)
        make_map(&maps[m], r, x->d, k, (metric)m);
    double *factors = phi + x->n * n_slots;
    test_case c = {.maps = maps, .x = x, .n_slots = n_slots, .phi = phi, .metric = factors};
    c.w = factors + n_slots;
    c.more = c.w + n_slots;
    for (int64_t a = 0; a < n_slots; a++)
        factors[a] = metric_of(&maps[FEATURES], &list[a]);
    for (int kind = 0; kind < 8; kind++) {
        const int as_csr = kind & 1, walk_dense = kind >> 1 & 1;
        c.real = kind >> 2 ? TK_FLOAT64 : TK_FLOAT32;
        for (int64_t i = 0; i < x->n; i++)
            features_of(x, i, &maps[FEATURES], c.real, list, n_slots, phi + i * n_slots);
        const stored_rows rows = store(x, c.real, as_csr, walk_dense);
        c.rows = &rows;
        for (int set_of = 0; set_of < tk_n_instruction_sets(); set_of++) {
            if (!tk_instruction_set_usable(set_of))
                continue;
            tk_use_instruction_set(set_of);
            snprintf(where, sizeof where, "%s, %s, %s walk of %s rows, degree %d, %d columns, %s",
                     tk_instruction_set_name(set_of), c.real == TK_FLOAT64 ? "double" : "float",
                     walk_dense ? "dense" : "sparse", as_csr ? "CSR" : "dense", r, (int)x->d, kernel_names[k]);
            test_rows(&c);
        }
        free_rows(rows);
    }
    for (int m = 0; m < N_METRICS; m++)
        free_array(maps[m].ranks, "ranks are left alone");
    free(phi);
}

int main(void)
{
    /* No columns, one, a few, and enough that rows are longer than a vector, and tables of several places do and do
     * not fit. Rows: not a multiple of what a dense walk takes at once, nor of a block. */
    static const struct {
        int32_t d;
        int64_t n;
        int lowest, highest; /* degrees */
    } shapes[] = {{0, 7, 1, 2},   {1, 7, 1, 5},   {3, 11, 1, 5},  {7, 19, 2, 4},
                  {18, 11, 1, 3}, {45, 10, 2, 2}, {1100, 7, 1, 1}};
    tk_init();
    for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++)
        for (int r = shapes[i].lowest; r <= shapes[i].highest; r++) {
            const int32_t d = shapes[i].d;
            const int64_t n_slots = choose(d + r, r);
            snprintf(where, sizeof where, "degree %d, %d columns", r, (int)d);
            monomial *list = all_monomials(r, d, n_slots);
            for (int k = 0; k < N_KERNELS; k++) {
                const matrix x = make_matrix(shapes[i].n, d, k == GAUSSIAN);
                test_kernel(&x, r, (kernel)k, list, n_slots);
                free(x.x);
                free(x.count);
            }
            free(list);
        }
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
