/* Tests of what training is made of: the losses; and gram, shifted rows, and the passes of the solvers, for each usable
 * instruction set, against loops over monomials enumerated one by one. The last line counts them. */
#include "testing.h"
#include "joint.h"

enum { N_LOSSES = TK_MULTINOMIAL + 1, MOST_OUTPUTS = 8, MOST_BLOCK = 20 };

static const char *const kernel_names[] = {"Gaussian", "series"};
static const char *const loss_names[] = {"hinge",
                                         "squared hinge",
                                         "log loss",
                                         "epsilon insensitive",
                                         "squared epsilon insensitive",
                                         "Crammer and Singer",
                                         "multinomial"};

static array new_numbers(int64_t n, double value)
{
    const array a = new_array(n * 8);
    for (int64_t i = 0; i < n; i++)
        ((double *)a.data)[i] = value;
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

/* ---- the losses, by their definitions ---- */

typedef struct {
    tk_targets c;
    array y, target, weight, favour;
} some_targets;

static int is_joint(tk_loss loss)
{
    return loss == TK_CRAMMER_SINGER || loss == TK_MULTINOMIAL;
}

static int of_numbers(tk_loss loss)
{
    return loss == TK_EPSILON_INSENSITIVE || loss == TK_SQUARED_EPSILON_INSENSITIVE;
}

/* Random labels, classes or numbers for K outputs of n rows. */
static some_targets make_targets(tk_loss loss, int64_t n, int32_t n_outputs, int weighted)
{
    const int numbers = of_numbers(loss);
    some_targets t = {.y = new_array(numbers ? 0 : n * n_outputs),
                      .target = new_array(numbers ? n * n_outputs * 8 : 0)};
    t.weight = new_array(n * 8);
    t.favour = new_array(n_outputs * 8);
    for (int64_t i = 0; i < n; i++) {
        const int32_t class = (int32_t)((uniform() + 1) / 2 * n_outputs);
        ((double *)t.weight.data)[i] = 1.25 + uniform();
        for (int32_t k = 0; k < n_outputs; k++)
            if (numbers)
                ((double *)t.target.data)[i * n_outputs + k] = uniform();
            else
                ((int8_t *)t.y.data)[i * n_outputs + k] = (is_joint(loss) ? k == class : uniform() >= 0) ? 1 : -1;
    }
    for (int32_t k = 0; k < n_outputs; k++)
        ((double *)t.favour.data)[k] = 1.5 + uniform();
    t.c.loss = loss;
    t.c.epsilon = numbers ? 0.1 : 0;
    t.c.n_outputs = n_outputs;
    t.c.y = numbers ? NULL : (const int8_t *)t.y.data;
    t.c.target = numbers ? (const double *)t.target.data : NULL;
    t.c.weight = weighted ? (const double *)t.weight.data : NULL;
    t.c.favour = weighted && !numbers ? (const double *)t.favour.data : NULL;
    return t;
}

static void free_targets(some_targets t)
{
    free_array(t.y, "labels are left alone");
    free_array(t.target, "numbers are left alone");
    free_array(t.weight, "weights are left alone");
    free_array(t.favour, "weights of labels are left alone");
}

static int32_t n_problems(const tk_targets *t)
{
    return is_joint(t->loss) ? 1 : t->n_outputs;
}

static int32_t class_of(const tk_targets *t, int64_t row)
{
    int32_t k = 0;
    while (t->y[row * t->n_outputs + k] != 1)
        k++;
    return k;
}

static double omega_of(const tk_targets *t, int64_t row, int32_t k)
{
    const int favoured = t->favour && t->y[row * t->n_outputs + k] == 1;
    return (t->weight ? t->weight[row] : 1) * (favoured ? t->favour[k] : 1);
}

/* v = sign f - target. */
static double sign_of(const tk_targets *t, int64_t row, int32_t k)
{
    return is_joint(t->loss) || !t->y ? 1 : t->y[row * t->n_outputs + k];
}

static double target_of(const tk_targets *t, int64_t row, int32_t k)
{
    return t->target ? t->target[row * t->n_outputs + k] : 0;
}

static double plain_loss(const tk_targets *t, double v)
{
    const double below = fmax(1 - v, 0), beyond = fmax(fabs(v) - t->epsilon, 0);
    const double values[] = {below, below * below, fmax(-v, 0) + log(1 + exp(-fabs(v))), beyond, beyond * beyond};
    return values[t->loss];
}

/* -d loss / d v. */
static double plain_slope(const tk_targets *t, double v)
{
    const double below = fmax(1 - v, 0), beyond = fmax(fabs(v) - t->epsilon, 0);
    const double values[] = {below > 0, 2 * below, 1 / (1 + exp(v)), copysign(beyond > 0, -v),
                             copysign(2 * beyond, -v)};
    return values[t->loss];
}

static double plain_entropy(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

/* g(p), with loss(v) = max_p g(p) - p v. */
static double plain_dual(const tk_targets *t, double p)
{
    const double tube = -t->epsilon * fabs(p);
    const double values[] = {p, p - p * p / 4, plain_entropy(p) + plain_entropy(1 - p), tube, tube - p * p / 4};
    return values[t->loss];
}

static double plain_joint_loss(const tk_targets *t, const double *f, int32_t y)
{
    double most = 0, sum = 0;
    for (int32_t k = 0; k < t->n_outputs; k++) {
        most = fmax(most, f[k] + (k != y) - f[y]);
        sum += exp(f[k] - f[y]);
    }
    return t->loss == TK_CRAMMER_SINGER ? most : log(sum);
}

static double plain_joint_dual(const tk_targets *t, const double *alpha, int32_t y, double omega)
{
    double entropy = 0;
    for (int32_t k = 0; k < t->n_outputs; k++)
        entropy += plain_entropy((k == y) - alpha[k] / omega);
    return t->loss == TK_CRAMMER_SINGER ? alpha[y] / omega : entropy;
}

/* The dual point of a row that goes with the slopes of its losses at v. */
static void plain_slopes(const tk_targets *t, int64_t row, const double *v, double *alpha)
{
    const int32_t n = t->n_outputs, y = is_joint(t->loss) ? class_of(t, row) : 0;
    double sum = 0;
    int32_t best = y;
    for (int32_t k = 0; k < n; k++) {
        sum += exp(v[k] - v[y]);
        if (v[k] + (k != y) > v[best] + (best != y))
            best = k;
    }
    for (int32_t k = 0; k < n; k++)
        if (t->loss == TK_MULTINOMIAL)
            alpha[k] = omega_of(t, row, y) * ((k == y) - exp(v[k] - v[y]) / sum);
        else if (t->loss == TK_CRAMMER_SINGER)
            alpha[k] = omega_of(t, row, y) * ((k == y) - (k == best));
        else
            alpha[k] = omega_of(t, row, k) * plain_slope(t, v[k]);
}

/* Whether the alphas of a row are in their domain. */
static int is_feasible(const tk_targets *t, int64_t row, const double *alpha)
{
    const double rounding = 1e-12;
    double sum = 0;
    int good = 1;
    for (int32_t k = 0; k < t->n_outputs; k++) {
        const double omega = omega_of(t, row, k), a = alpha[k];
        sum += a;
        if (is_joint(t->loss) && t->y[row * t->n_outputs + k] == 1)
            good &= a >= 0 && a <= omega * (1 + rounding);
        else if (is_joint(t->loss))
            good &= a <= 0;
        else if (of_numbers(t->loss))
            good &= t->loss == TK_EPSILON_INSENSITIVE ? fabs(a) <= omega : isfinite(a);
        else
            good &= a >= 0 && (t->loss == TK_SQUARED_HINGE ? isfinite(a) : a <= omega);
    }
    return good && (!is_joint(t->loss) || fabs(sum) <= rounding * omega_of(t, row, class_of(t, row)));
}

/* d/da of omega g(a / omega) - (a - alpha) v - q/2 (a - alpha)^2. */
static double dual_slope(const tk_targets *t, double a, double alpha, double omega, double v, double q)
{
    const double tube = copysign(t->epsilon, -a), square = -a / (2 * omega);
    const double g[] = {1, 1 + square, t->loss == TK_LOG_LOSS ? log((omega - a) / a) : 0, tube, tube + square};
    return g[t->loss] - v - q * (a - alpha);
}

/* The a that makes it largest: its slope falls. */
static double best_alpha(const tk_targets *t, double alpha, double omega, double v, double q)
{
    const int squared = t->loss == TK_SQUARED_HINGE || t->loss == TK_SQUARED_EPSILON_INSENSITIVE;
    double high = squared ? fabs(alpha) + 2 * omega * (1 + fabs(v)) : omega, low = of_numbers(t->loss) ? -high : 0;
    for (int i = 0; i < 70; i++) {
        const double a = low + (high - low) / 2;
        if (dual_slope(t, a, alpha, omega, v, q) > 0)
            low = a;
        else
            high = a;
    }
    return low;
}

/* The p with  log p + a p = b,  by Newton's method for log p: the left side is convex. */
static double plain_root(double a, double b)
{
    double z = fmin(b, log(fmax(b, 1) / a));
    for (int i = 0; i < 50; i++) {
        const double next = z - (z + a * exp(z) - b) / (1 + a * exp(z));
        if (fabs(next - z) < 1e-14)
            break;
        z = next;
    }
    return exp(z);
}

/* The same for all alphas of a row. They are omega ([k = y] - p_k), with the probabilities p that make
 *
 *     sum_k p_k c_k - a/2 p_k^2 + (Crammer and Singer: sum_{k != y} p_k; multinomial: the entropy of p)
 *
 * largest. With the multiplier mu, p_k = max(0, (c_k + [k != y] - mu) / a)  or  log p_k + a p_k = c_k - mu. */
static void best_alphas(const tk_targets *t, double *alpha, double omega, const double *f, double q, int32_t y)
{
    const int32_t n = t->n_outputs;
    const int multinomial = t->loss == TK_MULTINOMIAL;
    const double a = omega * fmax(q, 1e-12); /* a row without features */
    double c[MOST_OUTPUTS], p[MOST_OUTPUTS], low = HUGE_VAL, high = -HUGE_VAL;
    for (int32_t k = 0; k < n; k++) { /* Crammer and Singer: divided by a */
        const double before = (k == y) - alpha[k] / omega;
        c[k] = multinomial ? f[k] + a * before : (f[k] - (k == y)) / a + before;
        low = fmin(low, c[k] - (multinomial ? a : 1));
        high = fmax(high, c[k] + log(n));
    }
    for (int i = 0; i < (multinomial ? 60 : 100); i++) {
        const double mu = low + (high - low) / 2;
        double sum = 0;
        for (int32_t k = 0; k < n; k++)
            sum += p[k] = multinomial ? plain_root(a, c[k] - mu) : fmax(0, c[k] - mu);
        if (sum > 1)
            low = mu;
        else
            high = mu;
    }
    for (int32_t k = 0; k < n; k++)
        alpha[k] = omega * ((k == y) - p[k]);
}

/* ---- the losses ---- */

static void name_loss(tk_loss loss, const char *what)
{
    snprintf(where, sizeof where, "%s, %s", loss_names[loss], what);
}

/* A step for one output goes to the best alpha, whatever the arguments. */
static void test_steps(tk_loss loss)
{
    static const double shares[] = {0, 0.3, 1, -0.4, -1}, omegas[] = {1e-6, 1, 1e5};
    static const double margins[] = {-1e6, -30, -1, -0.125, 0, 0.125, 0.9, 1, 1.1, 40, 1e6};
    static const double grams[] = {0, 1e-300, 1e-9, 1, 50, 1e12};
    const tk_targets t = {.loss = loss, .epsilon = of_numbers(loss) ? 0.125 : 0, .n_outputs = 1};
    name_loss(loss, "a step for one output");
    for (int i = 0; i < (of_numbers(loss) ? 5 : 3); i++)
        for (int j = 0; j < 3 * 11 * 6; j++) {
            const double omega = omegas[j % 3], v = margins[j / 3 % 11], q = grams[j / 33];
            const double alpha = shares[i] * omega, step = tk_dual_step(&t, alpha, omega, v, q);
            const int squared = loss == TK_SQUARED_HINGE || loss == TK_SQUARED_EPSILON_INSENSITIVE;
            const int unbounded = squared || of_numbers(loss);
            check(isfinite(step) && (unbounded || step >= 0) && (squared || fabs(step) <= omega),
                  "stays in its domain");
            if (q == 0 && v != 0 && !of_numbers(loss))
                continue; /* no row without features has such a margin */
            if (q * omega < 1e-3 && fabs(v) == t.epsilon && loss == TK_EPSILON_INSENSITIVE)
                continue; /* all alphas are as good */
            const double best = best_alpha(&t, alpha, omega, v, q);
            check(fabs(step - best) <= 1e-9 * (omega + fabs(best)), "goes where the dual objective is largest");
            check(fabs(best - alpha) <= 1e-9 * omega || tk_can_move(&t, alpha, omega, v), "is not left out");
        }
}

static double sum_above(int32_t n, const double *z, double tau)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += fmax(0, z[k] - tau);
    return sum;
}

static void test_simplex(void)
{
    enum { MOST = 300 };
    static const double spreads[] = {0, 1e-9, 1, 1e6, 1e15}, sizes[] = {1e-6, 1, 1e6};
    static const int32_t counts[] = {1, 2, 3, 26, MOST};
    double z[MOST];
    snprintf(where, sizeof where, "the nearest point of a simplex");
    for (int i = 0; i < 5 * 3 * 5 * 4; i++) {
        const double spread = spreads[i % 5], size = sizes[i / 5 % 3];
        const int32_t n = counts[i / 15 % 5];
        double most = size;
        for (int32_t k = 0; k < n; k++) {
            z[k] = spread * uniform();
            if (i / 75 == 2)
                z[k] = spread * (k % 3); /* many are equal */
            most = fmax(most, fabs(z[k]));
            if (i / 75 == 1 && n > 1 && k == n / 2)
                z[k] = -1e12; /* as that of a class whose row has hardly any features */
            if (i / 75 == 3 && k % 2)
                z[k] = -1e300;
        }
        const double tau = tk_simplex(n, z, size);
        check(isfinite(tau), "is found");
        check(fabs(sum_above(n, z, tau) - size) <= 1e-14 * n * most, "is in the simplex");
    }
    for (int i = 0; i < 4; i++) {
        const double ends[4][3] = {
            {1e300, 1e300, -1e300}, {-1e300, -1e300, -1e300}, {1e300, 0, 1}, {0, -1e-300, 1e-300}};
        const double tau = tk_simplex(3, ends[i], 1);
        check(isfinite(tau) && isfinite(sum_above(3, ends[i], tau)), "is finite");
    }
}

/* q_k with  log q_k + a q_k = c_k - mu,  all with the same mu: how far Newton's method would move any of them. */
static double multinomial_error(int32_t n, double a, const double *c, const double *q)
{
    int32_t top = 0;
    double error = 0, sum = 0;
    for (int32_t k = 0; k < n; k++) {
        top = q[k] > q[top] ? k : top;
        sum += q[k];
    }
    const double mu = c[top] - log(q[top]) - a * q[top];
    for (int32_t k = 0; k < n; k++) {
        const double off = q[k] > 0 ? log(q[k]) + a * q[k] - (c[k] - mu) : 0;
        error = fmax(error, q[k] >= 0 && q[k] <= 1 ? fabs(off) * q[k] / (1 + a * q[k]) : HUGE_VAL);
        if (q[k] < 1e-300 && !(c[k] - mu < -600))
            error = HUGE_VAL;
    }
    return isfinite(sum) ? fmax(error, fabs(sum - 1)) : HUGE_VAL;
}

static void test_multinomial_step(void)
{
    enum { MOST = 300 };
    static const double steepness[] = {1e-12, 1e-6, 1e-2, 0.5, 1, 3, 10, 100, 1e4, 1e6, 1e9, 1e12};
    static const double spreads[] = {0, 1e-6, 1, 5, 30, 1e3, 1e6, 1e9};
    static const int32_t counts[] = {2, 3, 26, MOST};
    double c[MOST], q[MOST];
    for (int i = 0; i < 12 * 8 * 4 * 3; i++) {
        const double a = steepness[i % 12], spread = spreads[i / 12 % 8];
        const int32_t n = counts[i / 96 % 4];
        snprintf(where, sizeof where, "the multinomial step, %d classes, a = %g, c of size %g, kind %d", (int)n, a,
                 spread, i / 384);
        for (int32_t k = 0; k < n; k++) {
            c[k] = spread * uniform();
            if (i / 384 == 1) /* as when one class has all: c_k = f_k + a q_k */
                c[k] += k == n / 2 ? a : 0;
            if (i / 384 == 2)
                c[k] = k % 2 ? spread : -spread;
        }
        tk_multinomial_step(n, a, c, q);
        check(multinomial_error(n, a, c, q) <= 1e-10 + 1e-15 * (spread + a), "solves its equations");
    }
}

/* Alphas of a row: a corner of their domain, or from its inside. */
static void make_alphas(int32_t n, double omega, int32_t y, int corner, double *alpha)
{
    double sum = 0, p[MOST_OUTPUTS];
    for (int32_t k = 0; k < n; k++)
        sum += p[k] = corner >= 0 ? k == corner : 1.0 / 64 + (uniform() + 1) / 2;
    for (int32_t k = 0; k < n; k++)
        alpha[k] = k == y ? 0 : -omega * p[k] / sum;
    sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += k == y ? 0 : alpha[k];
    alpha[y] = -sum;
}

/* How far from optimal alpha is, for the f that go with it: in f, or (multinomial) in probabilities. */
static double joint_error(const tk_targets *t, const double *alpha, double omega, const double *f, int32_t y)
{
    const int32_t n = t->n_outputs;
    double top = -HUGE_VAL, sum = 0, error = 0;
    const int multinomial = t->loss == TK_MULTINOMIAL;
    for (int32_t k = 0; k < n; k++)
        top = fmax(top, f[k] + (!multinomial && k != y));
    for (int32_t k = 0; k < n; k++)
        sum += exp(f[k] - top);
    for (int32_t k = 0; k < n; k++) {
        const double p = (k == y) - alpha[k] / omega;
        if (multinomial)
            error = fmax(error, fabs(p - exp(f[k] - top) / sum));
        else if (p > 1e-9)
            error = fmax(error, top - f[k] - (k != y));
    }
    return error;
}

static void test_joint_steps(tk_loss loss)
{
    static const double grams[] = {0, 1e-15, 1e-9, 1e-3, 1, 100, 1e6}, spreads[] = {0, 1, 30, 1e4};
    static const double omegas[] = {1e-3, 1, 1e3};
    static const int32_t counts[] = {2, 3, 8};
    for (int i = 0; i < 7 * 4 * 3 * 3 * 5; i++) {
        const double gram = grams[i % 7], spread = spreads[i / 7 % 4], omega = omegas[i / 28 % 3];
        const int32_t n = counts[i / 84 % 3], y = i % n;
        const tk_targets t = {.loss = loss, .n_outputs = n};
        double alpha[MOST_OUTPUTS], f[MOST_OUTPUTS], room[MOST_OUTPUTS];
        char what[120];
        snprintf(what, sizeof what, "a step for %d outputs of size %g, q = %g, omega = %g", (int)n, spread, gram,
                 omega);
        name_loss(loss, what);
        make_alphas(n, omega, y, i / 252 < 3 ? (y + i / 252) % n : -1, alpha);
        for (int32_t k = 0; k < n; k++)
            f[k] = spread * uniform() * (gram < 1e-9 ? sqrt(gram) : 1); /* |f| <= |w| sqrt(gram) */
        if (i % 2 == 0 && n > 2)                                        /* two are the largest */
            f[(y + 1) % n] = f[(y + 2) % n] = fmax(f[(y + 1) % n], f[y]) + gram * omega / 3;
        double after[MOST_OUTPUTS], sum = 0;
        memcpy(after, alpha, sizeof after);
        tk_joint_step(&t, after, omega, f, gram, y, room);
        int feasible = 1;
        for (int32_t k = 0; k < n; k++) {
            feasible &= isfinite(after[k]) && (k == y ? after[k] >= 0 : after[k] <= 0);
            sum += after[k];
            f[k] += gram * (after[k] - alpha[k]);
        }
        check(feasible && after[y] <= omega * (1 + 1e-12), "stays in its domain");
        check(fabs(sum) <= 1e-14 * n * omega, "alphas add up to 0");
        check(joint_error(&t, after, omega, f, y) <= 1e-9 + 1e-12 * (1 + spread + gram * omega),
              "goes where the dual objective is largest");
    }
}

/* ---- objectives ---- */

enum { TERM_ROWS = 240, TERM_OUTPUTS = 4 };

/* Random margins, some of them large, and feasible alphas, many of them at bounds. */
static void make_points(const tk_targets *t, double size, double *margin, double *alpha)
{
    for (int64_t i = 0; i < TERM_ROWS; i++) {
        const int32_t y = is_joint(t->loss) ? class_of(t, i) : 0;
        for (int32_t k = 0; k < TERM_OUTPUTS; k++) {
            const double share = (double)((i + k) % 3) / 2, sign = of_numbers(t->loss) ? copysign(1, uniform()) : 1;
            margin[i * TERM_OUTPUTS + k] = size * uniform();
            alpha[i * TERM_OUTPUTS + k] = sign * omega_of(t, i, k) * (share == 0.5 ? (uniform() + 1) / 2 : share);
        }
        if (is_joint(t->loss))
            make_alphas(TERM_OUTPUTS, omega_of(t, i, y), y, i % 5 - 1, alpha + i * TERM_OUTPUTS);
    }
}

/* What tk_terms.sums are for one row. */
static void plain_terms(const tk_targets *t, int64_t row, const double *v, const double *alpha,
                        double sums[4][MOST_OUTPUTS])
{
    const int joint = is_joint(t->loss);
    for (int32_t k = 0; k < n_problems(t); k++) {
        const int32_t y = joint ? class_of(t, row) : k;
        const double omega = omega_of(t, row, y), target = target_of(t, row, k);
        const double loss = joint ? plain_joint_loss(t, v, y) : plain_loss(t, v[k]);
        const double g = joint ? plain_joint_dual(t, alpha, y, omega) : plain_dual(t, alpha[k] / omega);
        double product = 0; /* alpha v */
        for (int32_t i = joint ? 0 : k; i < (joint ? t->n_outputs : k + 1); i++)
            product += alpha[i] * v[i];
        sums[0][k] = omega * loss;
        sums[1][k] = omega * g + (joint ? 0 : alpha[k] * target);
        sums[2][k] = omega * (loss - g) + product;
        sums[3][k] = product + (joint ? 0 : alpha[k] * target);
    }
}

static void test_terms(tk_loss loss, int weighted, int with_live, int with_alpha)
{
    static const uint8_t live_outputs[TERM_OUTPUTS] = {1, 0, 1, 1};
    const double begin = 1.5;
    const some_targets s = make_targets(loss, TERM_ROWS, TERM_OUTPUTS, weighted);
    const tk_targets *t = &s.c;
    const array margin = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0), alpha = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0),
                sums = new_numbers(4 * n_problems(t), begin), which = new_order(TERM_ROWS);
    double *a = (double *)alpha.data, *got = (double *)sums.data, expected[4][MOST_OUTPUTS], size[4] = {begin};
    const uint8_t *live = with_live ? live_outputs : NULL;
    tk_terms terms = {with_alpha ? a : NULL, (const double *)margin.data, live, got, NULL, NULL, NULL};
    int good = 1;
    name_loss(loss, "objectives");
    make_points(t, 4, (double *)margin.data, a);
    for (int64_t i = 0; i < TERM_ROWS * TERM_OUTPUTS && !with_alpha; i++)
        a[i] = 0;
    for (int j = 0; j < 4; j++)
        for (int32_t k = 0; k < MOST_OUTPUTS; k++)
            expected[j][k] = begin;
    for (int with_which = 0; with_which < 2; with_which++) {
        const int64_t first = with_which ? 3 : 2, last = TERM_ROWS - 5;
        tk_terms_pass(t, with_which ? (const int32_t *)which.data : NULL, first, last, &terms);
        for (int64_t i = first; i < last; i++) {
            const int64_t row = with_which ? ((int32_t *)which.data)[i] : i;
            double of_row[4][MOST_OUTPUTS];
            plain_terms(t, row, terms.margin + row * TERM_OUTPUTS, a + row * TERM_OUTPUTS, of_row);
            for (int32_t k = 0; k < n_problems(t); k++)
                for (int j = 0; j < 4 && (!live || live[k] || is_joint(loss)); j++) {
                    expected[j][k] += of_row[j][k];
                    size[j] += fabs(of_row[j][k]);
                    good &= j != 2 || of_row[j][k] >= -1e-14 * (of_row[0][k] + 1);
                }
        }
    }
    check(good, "no gap is below 0");
    for (int32_t k = 0; k < n_problems(t); k++)
        for (int j = 0; j < 4; j++)
            check(fabs(got[j * n_problems(t) + k] - expected[j][k]) <= 1e-12 * (size[j] + size[0]), "sums");
    free_array(margin, "margins are left alone");
    free_array(alpha, "alphas are left alone");
    free_array(sums, "there are as many sums as problems");
    free_array(which, "which rows is left alone");
    free_targets(s);
}

/* Whether alpha stays where it is when no margin (no difference of two outputs) changes by more than the slack; under
 * losses whose p has no bounds: whether it is near enough to where it should be. */
static int stays(const tk_targets *t, int64_t row, int32_t k, const double *v, const double *alpha, double slack,
                 double near)
{
    const int32_t y = is_joint(t->loss) ? class_of(t, row) : k;
    const double omega = omega_of(t, row, y), p = alpha[k] / omega;
    double slopes[MOST_OUTPUTS], off = 0, rest = 1, f[MOST_OUTPUTS], moved[MOST_OUTPUTS];
    if (t->loss == TK_LOG_LOSS)
        return fabs(p - plain_slope(t, v[k])) < near * p * (1 - p);
    if (t->loss == TK_MULTINOMIAL) {
        plain_slopes(t, row, v, slopes);
        for (int32_t j = 0; j < t->n_outputs; j++) {
            off = fmax(off, fabs(slopes[j] - alpha[j]) / omega);
            rest = fmin(rest, 1 - ((j == y) - alpha[j] / omega));
        }
        return off < near * rest;
    }
    if (t->loss != TK_CRAMMER_SINGER)
        return fabs(best_alpha(t, alpha[k], omega, v[k] - slack, 1) - alpha[k]) < 1e-9
               && fabs(best_alpha(t, alpha[k], omega, v[k] + slack, 1) - alpha[k]) < 1e-9;
    for (int corner = 0; corner < 1 << t->n_outputs; corner++) {
        memcpy(moved, alpha, sizeof *alpha * (size_t)t->n_outputs);
        for (int32_t j = 0; j < t->n_outputs; j++)
            f[j] = v[j] + (corner >> j & 1 ? slack : -slack) / 2;
        best_alphas(t, moved, omega, f, 1, y);
        for (int32_t j = 0; j < t->n_outputs; j++)
            if (fabs(moved[j] - alpha[j]) > 1e-9)
                return 0;
    }
    return 1;
}

/* Margins where the loss is 0; or close to the end of that. */
static void make_small_loss(const tk_targets *t, int64_t row, int zero, double *v)
{
    const int joint = is_joint(t->loss);
    const int32_t y = joint ? class_of(t, row) : 0;
    double others = -HUGE_VAL;
    for (int32_t k = 0; k < t->n_outputs; k++) {
        const double close = uniform() / 8;
        others = k == y ? others : fmax(others, v[k]);
        if (of_numbers(t->loss))
            v[k] = zero ? v[k] / 128 : copysign(t->epsilon + close, v[k]);
        else if (!joint)
            v[k] = 1 + (zero ? fabs(v[k]) : close);
    }
    if (joint)
        v[y] = others + 1 + (zero ? 3 : uniform() / 8);
}

static void test_active(tk_loss loss, int with_live)
{
    static const uint8_t live_outputs[TERM_OUTPUTS] = {1, 0, 0, 1};
    const some_targets s = make_targets(loss, TERM_ROWS, TERM_OUTPUTS, 1);
    const tk_targets *t = &s.c;
    const array margin = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0), alpha = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0),
                sums = new_numbers(4 * n_problems(t), 0), active = new_array(TERM_ROWS),
                slack = new_numbers(n_problems(t), 0), near = new_numbers(n_problems(t), 0);
    const double *v = (double *)margin.data, *a = (double *)alpha.data;
    const tk_terms terms = {.alpha = a,
                            .margin = v,
                            .live = with_live ? live_outputs : NULL,
                            .sums = (double *)sums.data,
                            .active = active.data,
                            .slack = (double *)slack.data,
                            .near = (double *)near.data};
    int n_active = 0, n_settled = 0, sound = 1, complete = 1;
    name_loss(loss, with_live ? "who is active, of some outputs" : "who is active");
    make_points(t, 4, (double *)margin.data, (double *)alpha.data);
    for (int32_t k = 0; k < n_problems(t); k++) {
        ((double *)slack.data)[k] = 0.08 / (k + 1);
        ((double *)near.data)[k] = 0.9 / (k + 1);
    }
    for (int64_t i = 1; i < TERM_ROWS; i += 2) { /* alphas where they should be, or near it */
        double *here = (double *)alpha.data + i * TERM_OUTPUTS, by = 1 + uniform() / 8;
        if (i % 4 == 1)
            make_small_loss(t, i, i % 8 == 1, (double *)margin.data + i * TERM_OUTPUTS);
        plain_slopes(t, i, v + i * TERM_OUTPUTS, here);
        for (int32_t k = 0; k < TERM_OUTPUTS && (loss == TK_LOG_LOSS || loss == TK_MULTINOMIAL); k++)
            here[k] *= by;
    }
    tk_terms_pass(t, NULL, 1, TERM_ROWS - 1, &terms);
    for (int64_t i = 1; i < TERM_ROWS - 1; i++) {
        int surely = 1, perhaps = 1;
        for (int32_t k = 0; k < n_problems(t); k++) {
            const double *vi = v + i * TERM_OUTPUTS, *ai = a + i * TERM_OUTPUTS;
            if (!is_joint(loss) && with_live && !live_outputs[k])
                continue;
            surely &= stays(t, i, k, vi, ai, 1.01 * terms.slack[k], 0.99 * terms.near[k]);
            perhaps &= stays(t, i, k, vi, ai, 0.99 * terms.slack[k], 1.01 * terms.near[k]);
        }
        sound &= terms.active[i] || perhaps;
        complete &= !terms.active[i] || !surely;
        n_active += terms.active[i] == 1;
        n_settled += terms.active[i] == 0;
    }
    check(sound, "who may want to move is active");
    check(complete, "who cannot want to move is not");
    check(n_active + n_settled == TERM_ROWS - 2 && n_active > 0 && n_settled > 0,
          "rows of both kinds, told by 0 and 1");
    check(terms.active[0] == 0xff && terms.active[TERM_ROWS - 1] == 0xff, "rows that are not asked for are left out");
    int32_t which[TERM_ROWS];
    double of_active[4 * TERM_OUTPUTS] = {0};
    int64_t n_which = 0;
    for (int32_t i = 1; i < TERM_ROWS - 1; i++)
        if (terms.active[i])
            which[n_which++] = i;
    const tk_terms again = {.alpha = a, .margin = v, .live = terms.live, .sums = of_active};
    tk_terms_pass(t, which, 0, n_which, &again);
    check(memcmp(of_active, terms.sums, (size_t)sums.bytes) == 0, "the sums are those of the active rows");
    free_array(margin, "margins are left alone");
    free_array(alpha, "alphas are left alone");
    free_array(sums, "there are as many sums as problems");
    free_array(active, "there is a byte for each row");
    free_array(slack, "slacks are left alone");
    free_array(near, "near is left alone");
    free_targets(s);
}

/* No alpha is one of zeros. */
static void test_without_alpha(tk_loss loss)
{
    const some_targets s = make_targets(loss, TERM_ROWS, TERM_OUTPUTS, 1);
    const tk_targets *t = &s.c;
    const array margin = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0), alpha = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0),
                active = new_array(2 * TERM_ROWS);
    double slack[TERM_OUTPUTS] = {0.08, 0.08, 0.08, 0.08}, sums[2][4 * TERM_OUTPUTS] = {{0}};
    name_loss(loss, "objectives without alpha");
    make_points(t, 4, (double *)margin.data, (double *)alpha.data);
    memset(alpha.data, 0, (size_t)alpha.bytes);
    for (int i = 0; i < 2; i++) {
        const tk_terms terms = {.alpha = i ? (double *)alpha.data : NULL,
                                .margin = (double *)margin.data,
                                .sums = sums[i],
                                .active = active.data + i * TERM_ROWS,
                                .slack = slack,
                                .near = slack};
        tk_terms_pass(t, NULL, 0, TERM_ROWS, &terms);
    }
    check(memcmp(active.data, active.data + TERM_ROWS, TERM_ROWS) == 0, "who is active");
    check(memcmp(sums[0], sums[1], sizeof sums[0]) == 0, "sums");
    free_array(margin, "margins are left alone");
    free_array(alpha, "alphas are left alone");
    free_array(active, "there is a byte for each row");
    free_targets(s);
}

/* Slopes make a dual point that is feasible, and without a gap. */
static void test_slopes(tk_loss loss, double size)
{
    const some_targets s = make_targets(loss, TERM_ROWS, TERM_OUTPUTS, 1);
    const tk_targets *t = &s.c;
    const array margin = new_numbers(TERM_ROWS * TERM_OUTPUTS, 0), alpha = new_numbers(TERM_ROWS * TERM_OUTPUTS, NAN),
                sums = new_numbers(4 * n_problems(t), 0);
    double *v = (double *)margin.data, *a = (double *)alpha.data, *got = (double *)sums.data, expected[MOST_OUTPUTS];
    const tk_terms terms = {.alpha = a, .margin = v, .sums = got};
    int good = 1, feasible = 1, untouched = 1;
    name_loss(loss, "slopes");
    make_points(t, size, v, a);
    for (int64_t i = 0; i < TERM_ROWS * TERM_OUTPUTS; i++)
        a[i] = NAN;
    tk_slopes(t, v, 1, TERM_ROWS - 1, a);
    for (int64_t i = 1; i < TERM_ROWS - 1; i++) {
        plain_slopes(t, i, v + i * TERM_OUTPUTS, expected);
        for (int32_t k = 0; k < TERM_OUTPUTS; k++)
            good &= size > 500 || fabs(a[i * TERM_OUTPUTS + k] - expected[k]) <= 1e-14 * (1 + fabs(expected[k]));
        feasible &= is_feasible(t, i, a + i * TERM_OUTPUTS);
    }
    for (int32_t k = 0; k < TERM_OUTPUTS; k++)
        untouched &= isnan(a[k]) && isnan(a[(TERM_ROWS - 1) * TERM_OUTPUTS + k]);
    tk_terms_pass(t, NULL, 1, TERM_ROWS - 1, &terms);
    check(good, "are those of the definition");
    check(feasible, "are a dual point");
    check(untouched, "are written for the rows that are asked for");
    for (int32_t k = 0; k < n_problems(t); k++)
        check(fabs(got[2 * n_problems(t) + k]) <= 1e-13 * (1 + got[k]), "leave no gap");
    free_array(margin, "margins are left alone");
    free_array(alpha, "slopes are written within alpha");
    free_array(sums, "there are as many sums as problems");
    free_targets(s);
}

static void test_losses(void)
{
    test_simplex();
    test_multinomial_step();
    for (int loss = 0; loss < N_LOSSES; loss++) {
        if (is_joint((tk_loss)loss))
            test_joint_steps((tk_loss)loss);
        else
            test_steps((tk_loss)loss);
        for (int kind = 0; kind < 8; kind++)
            test_terms((tk_loss)loss, kind & 1, kind >> 1 & 1, kind >> 2);
        test_active((tk_loss)loss, 0);
        test_active((tk_loss)loss, 1);
        test_slopes((tk_loss)loss, 1);
        test_slopes((tk_loss)loss, 40);
        test_slopes((tk_loss)loss, 1e6);
    }
}

/* ---- rows with features ---- */

typedef struct {
    tk_real real;
    const feature_map *maps; /* [N_METRICS] */
    const stored_rows *rows;
    const matrix *x;
    int64_t n_slots;
    const double *phi;    /* [n][n_slots] the features */
    const double *metric; /* [n_slots] sqrt(c_|a| / a!) */
    double *w, *more;     /* [MOST_OUTPUTS][n_slots] room for a check */
    array scratch;        /* enough for any training of these rows */
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

/* ---- gram ---- */

static void test_gram(const test_case *c)
{
    /* All rows; and few of them, which are multiplied in another way. */
    const int64_t all = c->x->n, ranges[][2] = {{0, 5}, {0, all}, {2, 5}, {1, 6}, {all > 9 ? all - 9 : 0, all}, {3, 4}};
    const array order = new_order(all), scratch = new_zeros(tk_gram_scratch_bytes(&c->rows->c, all));
    for (int ordered = 0; ordered < 2; ordered++)
        for (int k = 0; k < 6; k++) {
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

/* ---- shifted rows ---- */

static void test_shift(const test_case *c, int marked)
{
    const int64_t n = c->x->n, cut = n / 2;
    const int32_t d = c->x->d;
    const array scratch = new_zeros(marked ? tk_shift_scratch_bytes(d) : 0);
    const array by = new_reals(c->real, d), place = new_array(d * 4), moved = new_array(d * 4),
                indptr = new_array((n + 1) * 8);
    int64_t *ends = (int64_t *)indptr.data;
    int64_t moved_ptr[] = {0, 0};
    tk_shift shift = {.n_columns = d,
                      .by = by.data,
                      .moved_ptr = moved_ptr,
                      .moved = (const int32_t *)moved.data,
                      .place = (const int32_t *)place.data,
                      .indptr = ends};
    int good = 1, rises = 1;
    for (int32_t j = 0; j < d; j++) {
        const double value = c->x->x[4 * d + j]; /* row 4: nothing is left of it */
        set(c->real, by, j, value);
        if (value != 0)
            ((int32_t *)moved.data)[moved_ptr[1]++] = j;
        ((int32_t *)place.data)[j] = (j % 2 ? j / 2 : d - 1 - j / 2);
    }
    ends[0] = 0;
    tk_shift_rows(&c->rows->c, &shift, cut, n);
    tk_shift_rows(&c->rows->c, &shift, 0, cut);
    for (int64_t i = 0; i < n; i++)
        ends[i + 1] += ends[i];
    const array indices = new_array(ends[n] * 4), data = new_reals(c->real, ends[n]);
    shift.indices = (int32_t *)indices.data;
    shift.data = data.data;
    shift.scratch = marked ? scratch.data : NULL;
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
    for (int64_t i = 0; i < scratch.bytes; i++)
        good &= i >= scratch.bytes - 8 * d || ((char *)scratch.data)[i] == 0;
    check(good, "no mark is left");
    free_array(scratch, "marks stay in their scratch");
    free_array(by, "the shift is left alone");
    free_array(place, "the shift's columns are left alone");
    free_array(moved, "the shift's moved columns are left alone");
    free_array(indptr, "only the ends of rows are counted");
    free_array(indices, "indices of shifted rows stay in their array");
    free_array(data, "shifted rows stay in their array");
}

/* ---- training: tables and what is asked of the rows ---- */

typedef struct {
    tk_loss loss;
    int32_t n_outputs, width, block;
    int bare; /* the tables hold weights of bare monomials, else those of features */
} a_problem;

typedef struct {
    tk_training c;
    tk_rows rows;
    some_targets targets;
    array w, order;
    int32_t shares[2], parts[3];
} a_training;

static const double padding = 7;

static int is_padding(const a_training *t, int64_t at)
{
    return at % t->c.w.width >= t->c.targets->n_outputs;
}

static array new_tables(const test_case *c, const a_training *t, double value)
{
    const array a = filled_reals(c->real, c->n_slots * t->c.w.width, value);
    for (int64_t i = 0; i < c->n_slots * t->c.w.width; i++)
        if (is_padding(t, i))
            set(c->real, a, i, padding);
    return a;
}

/* The end of the case's scratch, with its guard behind. What a walk needs is the largest part by far, the last, and the
 * only one that need not be zero. */
static void *zero_scratch(const test_case *c, const a_problem *p)
{
    const int64_t bytes = tk_training_scratch_bytes(&c->rows->c, p->block, p->n_outputs, p->width, 2, 1);
    unsigned char *at = c->scratch.data + c->scratch.bytes - bytes;
    memset(at, 0, (size_t)(bytes - tk_scratch_bytes(&c->rows->c)));
    return at;
}

static void begin_training(a_training *t, const test_case *c, const a_problem *p)
{
    const int64_t n = c->x->n;
    t->rows = c->rows->c;
    t->order = new_order(n);
    t->rows.order = (const int32_t *)t->order.data;
    t->targets = make_targets(p->loss, n, p->n_outputs, p->n_outputs != 2);
    t->c.rows = &t->rows;
    t->c.margin = &c->maps[p->bare ? BARE : FEATURES].c;
    t->c.update = &c->maps[p->bare ? UPDATE : FEATURES].c;
    t->c.targets = &t->targets.c;
    t->c.block = p->block;
    t->c.scratch = zero_scratch(c, p);
    t->c.team = NULL;
    t->shares[0] = 0;
    t->shares[1] = c->rows->c.n_columns + 1;
    t->c.shares = t->shares;
    t->c.spent = NULL;
    t->parts[0] = 0;
    t->parts[1] = t->shares[1] / 2;
    t->parts[2] = t->shares[1];
    t->c.n_parts = 2;
    t->c.parts = t->parts;
    t->c.w.width = p->width;
    t->w = new_tables(c, t, 0);
    t->c.w.values = t->w.data;
}

static void end_training(a_training *t)
{
    free_array(t->w, "training stays in its tables");
    free_array(t->order, "training leaves the order alone");
    free_targets(t->targets);
}

/* Whether tables, times scale_k, are w (or make the same margins with bare monomials), which took steps of this size.
 */
static int tables_are(const test_case *c, const a_training *t, array tables, const double *scale, const double *w,
                      double size)
{
    const int bare = t->c.margin->bare;
    int good = 1;
    for (int64_t at = 0; at < c->n_slots * t->c.w.width; at++) {
        const int64_t a = at / t->c.w.width, k = at % t->c.w.width;
        const double got = get(c->real, tables, at), factor = bare ? c->metric[a] : 1;
        if (is_padding(t, at))
            good &= got == padding;
        else
            good &= nearly(c->real, scale ? scale[k] * got : got, w[k * c->n_slots + a] * factor, size * factor);
    }
    return good;
}

static double *of_output(const test_case *c, double *w, int64_t k)
{
    return w + k * c->n_slots;
}

static void plain_margins(const test_case *c, const a_training *t, double *w, int64_t row, double *v)
{
    const tk_targets *targets = t->c.targets;
    for (int32_t k = 0; k < targets->n_outputs; k++)
        v[k] = sign_of(targets, row, k) * inner(c, of_output(c, w, k), phi_of(c, row)) - target_of(targets, row, k);
}

/* w_k = factor sum_i alpha_ik y_ik phi(x_i). */
static void weights_of(const test_case *c, const a_training *t, double factor, const double *alpha, double *w)
{
    const tk_targets *targets = t->c.targets;
    const int64_t n = targets->n_outputs;
    memset(w, 0, (size_t)(n * c->n_slots) * sizeof *w);
    for (int64_t i = 0; i < c->x->n; i++)
        for (int32_t k = 0; k < n; k++)
            for (int64_t a = 0; a < c->n_slots; a++)
                of_output(c, w, k)[a] += factor * alpha[i * n + k] * sign_of(targets, i, k) * phi_of(c, i)[a];
}

static double largest_norm(const test_case *c, int32_t n_outputs, double *w)
{
    double most = 0;
    for (int32_t k = 0; k < n_outputs; k++)
        most = fmax(most, sqrt(inner(c, of_output(c, w, k), of_output(c, w, k))));
    return most;
}

/* ---- dual coordinate ascent ---- */

static const uint8_t live_outputs[MOST_OUTPUTS] = {1, 0, 1, 1, 0, 1, 1, 1};

/* One row: the best alphas, and w with them. v is as it was before. */
static void plain_dual_step(const test_case *c, const a_training *t, const tk_dual *dual, int64_t i, double *alpha,
                            double *v)
{
    const tk_targets *targets = t->c.targets;
    const int32_t n = targets->n_outputs;
    const double *phi = phi_of(c, i), q = dual->C * inner(c, phi, phi);
    double new[MOST_OUTPUTS];
    plain_margins(c, t, c->w, i, v);
    memcpy(new, alpha, (size_t)n * sizeof *new);
    if (is_joint(targets->loss))
        best_alphas(targets, new, omega_of(targets, i, class_of(targets, i)), v, q, class_of(targets, i));
    for (int32_t k = 0; k < n; k++) {
        if (!is_joint(targets->loss) && (!dual->live || dual->live[k]))
            new[k] = best_alpha(targets, alpha[k], omega_of(targets, i, k), v[k], q);
        for (int64_t a = 0; a < c->n_slots; a++)
            of_output(c, c->w, k)[a] += dual->C * (new[k] - alpha[k]) * sign_of(targets, i, k) * phi[a];
        alpha[k] = new[k];
    }
}

/* The dual objective, summed over all outputs; w is that of alpha. */
static double dual_objective(const test_case *c, const a_training *t, double C, const double *alpha, double *w)
{
    const tk_targets *targets = t->c.targets;
    const int32_t n = targets->n_outputs;
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum -= inner(c, of_output(c, w, k), of_output(c, w, k)) / (2 * C);
    for (int64_t i = 0; i < c->x->n; i++) {
        const int32_t y = is_joint(targets->loss) ? class_of(targets, i) : 0;
        const double omega = omega_of(targets, i, y), *here = alpha + i * n;
        if (is_joint(targets->loss))
            sum += omega * plain_joint_dual(targets, here, y, omega);
        else
            for (int32_t k = 0; k < n; k++)
                sum += omega_of(targets, i, k) * plain_dual(targets, here[k] / omega_of(targets, i, k))
                       + here[k] * target_of(targets, i, k);
    }
    return sum;
}

/* Rows of which an alpha differs. */
static int64_t count_changes(const tk_targets *t, int64_t n, const double *before, const double *after)
{
    int64_t changes = 0;
    for (int64_t i = 0; i < n; i++) {
        int differs = 0;
        for (int64_t k = i * t->n_outputs; k < (i + 1) * t->n_outputs; k++)
            differs |= before[k] != after[k];
        changes += differs;
    }
    return changes;
}

/* The passes with blocks of one row are the textbook's; with larger ones they keep its promises. */
static void test_dual(const test_case *c, const a_problem *p, int some_live)
{
    enum { PASSES = 2 };
    const double C = 20;
    const int64_t n = c->x->n, block = p->block, n_outputs = p->n_outputs;
    a_training t;
    begin_training(&t, c, p);
    const tk_targets *targets = t.c.targets;
    const array alpha = new_numbers(n * n_outputs, 0), margin = new_numbers(n * n_outputs, NAN),
                expected = new_numbers(n * n_outputs, 0), before = new_numbers(n * n_outputs, 0),
                norm2 = new_numbers(n_outputs, 0);
    tk_dual dual = {C, (double *)alpha.data, (double *)margin.data, (double *)norm2.data, NULL, block == 1 ? 1 : 3, 0};
    double *plain = (double *)expected.data, objective = 0;
    int same = 1, feasible = 1, rises = 1, counted = 1, stay = 1, good = 1;
    dual.live = some_live ? live_outputs : NULL;
    memset(c->w, 0, (size_t)(n_outputs * c->n_slots) * sizeof *c->w);
    for (int pass = 0; pass < PASSES; pass++) {
        memcpy(before.data, alpha.data, (size_t)alpha.bytes);
        dual.changed = 3;
        tk_dual_pass(&t.c, 0, 2 * block, &dual, 0);
        tk_dual_pass(&t.c, 2 * block, n, &dual, 0);
        counted &= dual.changed == 3 + count_changes(targets, n, (double *)before.data, dual.alpha);
        for (int64_t k = 0; k < n && block == 1; k++) {
            const int64_t i = t.rows.order[k];
            double v[MOST_OUTPUTS];
            plain_dual_step(c, &t, &dual, i, plain + i * n_outputs, v);
            const double size =
                1 + largest_norm(c, p->n_outputs, c->w) * sqrt(inner(c, phi_of(c, i), phi_of(c, i)) * C);
            for (int64_t j = 0; j < n_outputs; j++) {
                const double a = plain[i * n_outputs + j];
                same &= nearly(c->real, dual.alpha[i * n_outputs + j], a, 1 + fabs(a));
                same &= nearly(c->real, dual.margin[i * n_outputs + j], v[j], size);
            }
        }
        weights_of(c, &t, C, dual.alpha, c->more);
        const double now = dual_objective(c, &t, C, dual.alpha, c->more);
        rises &= now >= objective - (c->real == TK_FLOAT64 ? 1e-9 : 1e-3) * (1 + fabs(objective));
        objective = now;
    }
    for (int64_t i = 0; i < n; i++) {
        feasible &= is_feasible(targets, i, dual.alpha + i * n_outputs);
        for (int64_t k = 0; k < n_outputs; k++)
            stay &= !some_live || live_outputs[k] || dual.alpha[i * n_outputs + k] == 0;
    }
    const double most = largest_norm(c, p->n_outputs, c->more);
    for (int64_t k = 0; k < n_outputs; k++) {
        const double exact = inner(c, of_output(c, c->more, k), of_output(c, c->more, k));
        good &= nearly(c->real, dual.norm2[k], exact, 1 + most * most);
    }
    check(same, "dual pass");
    check(feasible, "alpha stays in its domain");
    check(stay, "outputs that are not live stay as they are");
    check(rises, "the dual objective does not fall");
    check(counted, "changes are counted");
    check(tables_are(c, &t, t.w, NULL, c->more, 1 + most), "w = C sum alpha y phi");
    check(good, "|w|^2");
    free_array(alpha, "a dual pass stays in alpha");
    free_array(margin, "a dual pass stays in the margins");
    free_array(norm2, "a dual pass stays in the norms");
    free_array(before, "the test stays in its array");
    free_array(expected, "the test stays in its array");
    end_training(&t);
}

/* Many passes close the gap. Many: the rows have much in common. */
static void test_convergence(const test_case *c, const a_problem *p)
{
    const int passes = p->loss == TK_LOG_LOSS || p->loss == TK_MULTINOMIAL ? 200 : 1500;
    const double C = 1;
    const int64_t n = c->x->n, n_outputs = p->n_outputs;
    a_training t;
    begin_training(&t, c, p);
    const array alpha = new_numbers(n * n_outputs, 0), margin = new_numbers(n * n_outputs, NAN),
                norm2 = new_numbers(n_outputs, 0), sums = new_numbers(4 * n_problems(t.c.targets), 0);
    tk_dual dual = {C, (double *)alpha.data, (double *)margin.data, (double *)norm2.data, NULL, 5, 0};
    const double *got = (double *)sums.data;
    const tk_terms terms = {.alpha = dual.alpha, .margin = dual.margin, .sums = (double *)sums.data};
    for (int pass = 0; pass < passes; pass++)
        tk_dual_pass(&t.c, 0, n, &dual, 0);
    weights_of(c, &t, C, dual.alpha, c->w);
    for (int64_t i = 0; i < n; i++)
        plain_margins(c, &t, c->w, i, dual.margin + i * n_outputs);
    tk_terms_pass(t.c.targets, NULL, 0, n, &terms);
    for (int32_t k = 0; k < n_problems(t.c.targets); k++)
        check(got[2 * n_problems(t.c.targets) + k] <= (c->real == TK_FLOAT64 ? 1e-3 : 5e-3) * got[k], "the gap closes");
    free_array(alpha, "a dual pass stays in alpha");
    free_array(margin, "a dual pass stays in the margins");
    free_array(norm2, "a dual pass stays in the norms");
    free_array(sums, "there are as many sums as problems");
    end_training(&t);
}

/* ---- Pegasos ---- */

/* t_ik phi(x_i) is what lessens the loss of row i. */
static void plain_coefficients(const test_case *c, const a_training *t, double *w, int64_t row, double *coefficient)
{
    double v[MOST_OUTPUTS];
    plain_margins(c, t, w, row, v);
    plain_slopes(t->c.targets, row, v, coefficient);
    for (int32_t k = 0; k < t->c.targets->n_outputs; k++)
        coefficient[k] *= sign_of(t->c.targets, row, k);
}

/* Steps 1 / (lambda k) over the blocks of the order. w and the sum of iterates are written, and the largest |w| of each
 * problem before projections. */
static void plain_pegasos(const test_case *c, const a_training *t, const tk_pegasos *pegasos, const double *radius,
                          double *w, double *sum, double *largest)
{
    const int64_t n = c->x->n, block = t->c.block;
    const int32_t n_outputs = t->c.targets->n_outputs, problems = n_problems(t->c.targets);
    double slopes[MOST_ROWS][MOST_OUTPUTS], norm2[MOST_OUTPUTS];
    for (int64_t a = 0; a < n_outputs * c->n_slots; a++)
        w[a] = sum[a] = 0;
    for (int32_t k = 0; k < n_outputs; k++)
        largest[k] = 0;
    for (int64_t first = 0, step = 1; first < n; first += block, step++) {
        const int64_t last = first + block < n ? first + block : n;
        for (int64_t i = first; i < last; i++)
            plain_coefficients(c, t, w, t->rows.order[i], slopes[i]);
        memset(norm2, 0, sizeof norm2);
        for (int32_t k = 0; k < n_outputs; k++) {
            double *wk = of_output(c, w, k);
            for (int64_t a = 0; a < c->n_slots; a++) {
                wk[a] *= 1 - 1 / (double)step;
                for (int64_t i = first; i < last; i++)
                    wk[a] += pegasos->share / (pegasos->lambda * (double)step) * slopes[i][k]
                             * phi_of(c, t->rows.order[i])[a];
            }
            norm2[problems == 1 ? 0 : k] += inner(c, wk, wk);
        }
        for (int32_t k = 0; k < n_outputs; k++) {
            const int32_t problem = problems == 1 ? 0 : k;
            const double norm = sqrt(norm2[problem]);
            largest[problem] = fmax(largest[problem], norm);
            for (int64_t a = 0; a < c->n_slots; a++) {
                of_output(c, w, k)[a] *= radius && norm > radius[problem] ? radius[problem] / norm : 1;
                of_output(c, sum, k)[a] += of_output(c, w, k)[a];
            }
        }
    }
}

static void test_pegasos(const test_case *c, const a_problem *p, int projected, int averaged)
{
    const int64_t n = c->x->n, block = p->block, n_blocks = (n + block - 1) / block, n_outputs = p->n_outputs;
    a_training t;
    begin_training(&t, c, p);
    const array alpha = new_numbers(n * n_outputs, 0), average = new_tables(c, &t, 0),
                scale = new_numbers(n_outputs, 1), shift = new_numbers(n_outputs, 0), norm2 = new_numbers(n_outputs, 0),
                radius = new_numbers(n_problems(t.c.targets), NAN);
    double largest[MOST_OUTPUTS], size = 0;
    tk_pegasos s = {.share = (double)n_blocks / (double)n,
                    .scale = (double *)scale.data,
                    .alpha = (double *)alpha.data,
                    .norm2 = projected ? (double *)norm2.data : NULL,
                    .average = averaged ? average.data : NULL,
                    .shift = (double *)shift.data};
    s.lambda = 1; /* large enough that no step makes rounding errors much larger */
    for (int64_t i = 0; i < n; i++)
        s.lambda += 2 * inner(c, phi_of(c, i), phi_of(c, i));
    plain_pegasos(c, &t, &s, NULL, c->w, c->more, largest);
    for (int32_t k = 0; k < n_problems(t.c.targets); k++)
        ((double *)radius.data)[k] = largest[k] / 2;
    s.radius = projected ? (double *)radius.data : NULL;
    plain_pegasos(c, &t, &s, s.radius, c->w, c->more, largest);
    for (int32_t k = 0; k < n_problems(t.c.targets); k++)
        size = fmax(size, (double)n_blocks * largest[k]);
    tk_pegasos_pass(&t.c, 0, block, &s, 0);
    tk_pegasos_pass(&t.c, block, n, &s, 0);
    check(tables_are(c, &t, t.w, s.scale, c->w, size), projected ? "Pegasos with projections" : "Pegasos");
    check(s.t == n_blocks && s.n_averaged == n_blocks, "steps are counted");
    const array mean = new_tables(c, &t, 0);
    for (int64_t at = 0; at < c->n_slots * p->width; at++)
        if (!is_padding(&t, at))
            set(c->real, mean, at, get(c->real, average, at) + s.shift[at % p->width] * get(c->real, t.w, at));
    check(!averaged || tables_are(c, &t, mean, NULL, c->more, size), "the average of the iterates");
    weights_of(c, &t, 1, s.alpha, c->w);
    double smallest = s.scale[0];
    for (int64_t k = 0; k < n_outputs; k++)
        smallest = fmin(smallest, s.scale[k]);
    check(tables_are(c, &t, t.w, NULL, c->w, size / smallest), "values = sum alpha y phi");
    for (int64_t k = 0; k < n_outputs && projected; k++) {
        const double *wk = of_output(c, c->w, k), r = s.radius[n_problems(t.c.targets) == 1 ? 0 : k];
        check(nearly(c->real, s.norm2[k], s.scale[k] * s.scale[k] * inner(c, wk, wk), r * r), "|w|^2 of Pegasos");
    }
    free_array(mean, "the test stays in its array");
    free_array(alpha, "a Pegasos pass stays in alpha");
    free_array(average, "a Pegasos pass stays in the average");
    free_array(scale, "a Pegasos pass stays in the scales");
    free_array(shift, "a Pegasos pass stays in the shifts");
    free_array(norm2, "a Pegasos pass stays in the norms");
    free_array(radius, "a Pegasos pass leaves the radii alone");
    end_training(&t);
}

/* ---- AdaGrad ---- */

static void test_adagrad(const test_case *c, const a_problem *p)
{
    const double eta = 0.3, floor = 0.25;
    const int64_t n = c->x->n, block = p->block, n_outputs = p->n_outputs;
    a_training t;
    begin_training(&t, c, p);
    const array squares = new_tables(c, &t, floor);
    const array rates = random_reals(c->real, p->width);
    const tk_adaptive state = {t.w.data, squares.data, p->width, eta, n_outputs > 3 ? rates.data : NULL};
    int good = 1, untouched = 1;
    for (int64_t a = 0; a < n_outputs * c->n_slots; a++) {
        c->w[a] = 0;
        c->more[a] = floor;
    }
    for (int64_t first = 0; first < n; first += block) {
        int64_t row[MOST_ROWS], some = 0; /* rows without a slope are left out */
        double steps[MOST_OUTPUTS][MOST_ROWS], of_row[MOST_OUTPUTS];
        for (int64_t i = first; i < first + block && i < n; i++) {
            int any = 0;
            row[some] = t.rows.order[i];
            plain_coefficients(c, &t, c->w, row[some], of_row);
            for (int64_t k = 0; k < n_outputs; k++) {
                steps[k][some] = of_row[k];
                any |= of_row[k] != 0;
            }
            some += any;
        }
        for (int64_t k = 0; k < n_outputs; k++)
            plain_adapt(c->phi, c->n_slots, row, steps[k], some, t.rows.walk_dense ? TOGETHER : 1,
                        state.rate ? eta * get(c->real, rates, k) : eta, of_output(c, c->w, k),
                        of_output(c, c->more, k));
    }
    tk_adagrad_pass(&t.c, 0, 2 * block, &state, 0);
    tk_adagrad_pass(&t.c, 2 * block, n, &state, 0);
    check(tables_are(c, &t, t.w, NULL, c->w, 1), "AdaGrad");
    for (int64_t at = 0; at < c->n_slots * p->width; at++) {
        const double got = get(c->real, squares, at);
        if (is_padding(&t, at)) {
            good &= got == padding;
        } else {
            const double expected = of_output(c, c->more, at % p->width)[at / p->width];
            good &= nearly(c->real, got, expected, expected);
        }
    }
    check(good, "AdaGrad's sums of squares");
    good = 1;
    const array before = new_array(t.w.bytes);
    const int64_t all = c->n_slots * p->width, first = all / 3, last = all - all / 4;
    memcpy(before.data, t.w.data, (size_t)t.w.bytes);
    tk_shrink(c->real, &state, 0.4, first, last);
    for (int64_t at = 0; at < all; at++) {
        const double was = get(c->real, before, at), by = state.rate ? 0.4 * get(c->real, rates, at % p->width) : 0.4;
        const double w = was / (1 + by / sqrt(get(c->real, squares, at)));
        if (at >= first && at < last)
            good &= close_to(c->real, get(c->real, t.w, at), w, fabs(w));
        else
            untouched &= get(c->real, t.w, at) == was;
    }
    check(good, "shrink");
    check(untouched, "shrink touches its range only");
    free_array(before, "the test stays in its array");
    free_array(rates, "AdaGrad leaves the rates alone");
    free_array(squares, "AdaGrad stays in its squares");
    end_training(&t);
}

/* ---- all of it ---- */

static void test_one_output(const test_case *c, tk_loss loss)
{
    const a_problem row = {loss, 1, 1, 1, 0}, bare_row = {loss, 1, 1, 1, 1}, block = {loss, 1, 1, 4, 0};
    const a_problem of_3 = {loss, 1, 1, 3, 0}, bare_of_3 = {loss, 1, 1, 3, 1};
    test_dual(c, &row, 0);
    test_dual(c, &bare_row, 0);
    test_dual(c, &bare_of_3, 0);
    test_pegasos(c, &block, 0, 1);
    test_pegasos(c, &bare_row, 1, 1);
    test_pegasos(c, &block, 1, 0);
    test_adagrad(c, &of_3);
}

/* Widths: no padding, or as much as a vector of either type wants. */
static void test_outputs(const test_case *c, tk_loss loss)
{
    const int32_t block = c->x->n > 40 ? MOST_BLOCK : 3;
    const a_problem three = {loss, 3, 3, 1, 0}, five = {loss, 5, 8, 1, 1}, two = {loss, 2, 2, block, 1};
    const a_problem padded = {loss, 3, 4, block, 0}, eight = {loss, 8, 8, block, 0};
    test_dual(c, &three, 0);
    test_dual(c, &five, !is_joint(loss));
    test_dual(c, &two, 0);
    test_dual(c, &padded, !is_joint(loss));
    test_pegasos(c, &five, 1, 1);
    test_pegasos(c, &padded, 0, 0);
    test_pegasos(c, &eight, 1, 1);
    test_adagrad(c, &padded);
    test_adagrad(c, &eight);
    if (c->x->d == 3 && block == 3 && c->maps[0].c.degree == 2 && c->rows->c.walk_dense && c->rows->c.indptr)
        test_convergence(c, &padded);
}

/* Where there are many slots, several outputs are tested with one loss, the next one each time. */
static void test_rows(const test_case *c)
{
    static int n_cases;
    n_cases++;
    test_gram(c);
    test_shift(c, 0);
    test_shift(c, 1);
    for (int loss = 0; loss < N_LOSSES; loss++) {
        const size_t end = strlen(where);
        snprintf(where + end, sizeof where - end, ", %s", loss_names[loss]);
        if (!is_joint((tk_loss)loss))
            test_one_output(c, (tk_loss)loss);
        snprintf(where + end, sizeof where - end, ", %s, several outputs", loss_names[loss]);
        if (c->n_slots < 40 || n_cases % N_LOSSES == loss)
            test_outputs(c, (tk_loss)loss);
        where[end] = 0;
    }
}

static void test_kernel(const matrix *x, int r, kernel k, const monomial *list, int64_t n_slots)
{
    feature_map maps[N_METRICS];
    double *phi = malloc((size_t)((x->n + 1 + 2 * MOST_OUTPUTS) * n_slots) * sizeof *phi);
    if (!phi)
        exit(2);
    for (int m = 0; m < N_METRICS; m++)
        make_map(&maps[m], r, x->d, k, (metric)m);
    double *factors = phi + x->n * n_slots;
    test_case c = {.maps = maps, .x = x, .n_slots = n_slots, .phi = phi, .metric = factors};
    c.w = factors + n_slots;
    c.more = c.w + MOST_OUTPUTS * n_slots;
    for (int64_t a = 0; a < n_slots; a++)
        factors[a] = metric_of(&maps[FEATURES], &list[a]);
    for (int kind = 0; kind < 8; kind++) {
        const int as_csr = kind & 1, walk_dense = kind >> 1 & 1;
        c.real = kind >> 2 ? TK_FLOAT64 : TK_FLOAT32;
        for (int64_t i = 0; i < x->n; i++)
            features_of(x, i, &maps[FEATURES], c.real, list, n_slots, phi + i * n_slots);
        const stored_rows rows = store(x, c.real, as_csr, walk_dense);
        c.rows = &rows;
        c.scratch = new_zeros(tk_training_scratch_bytes(&rows.c, MOST_BLOCK, MOST_OUTPUTS, MOST_OUTPUTS, 2, 1));
        for (int set_of = 0; set_of < tk_n_instruction_sets(); set_of++) {
            if (!tk_instruction_set_usable(set_of))
                continue;
            tk_use_instruction_set(set_of);
            snprintf(where, sizeof where, "%s, %s, %s walk of %s rows, degree %d, %d columns, %s",
                     tk_instruction_set_name(set_of), c.real == TK_FLOAT64 ? "double" : "float",
                     walk_dense ? "dense" : "sparse", as_csr ? "CSR" : "dense", r, (int)x->d, kernel_names[k]);
            test_rows(&c);
        }
        free_array(c.scratch, "training stays in its scratch");
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
    } shapes[] = {{0, 7, 1, 2},  {1, 7, 1, 5},   {3, 11, 1, 5},  {3, 45, 2, 2},
                  {7, 19, 2, 4}, {18, 11, 1, 3}, {45, 10, 2, 2}, {1100, 7, 1, 1}};
    tk_init();
    test_losses();
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
    for (int loss = 0; loss < N_LOSSES; loss++)
        test_without_alpha((tk_loss)loss);
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
