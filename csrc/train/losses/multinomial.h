/* The multinomial log loss: log sum_k exp(f_k) - f_y, where g(q) is the entropy of q. */

/* log sum_k exp(f_k). */
static inline double multinomial_log_sum(int32_t n, const double *f)
{
    double top = f[0], sum = 0;
    for (int32_t k = 1; k < n; k++)
        top = f[k] > top ? f[k] : top;
    for (int32_t k = 0; k < n; k++)
        sum += exp(f[k] - top);
    return top + log(sum);
}

static inline double multinomial_value(int32_t n, const double *f, int32_t y)
{
    return multinomial_log_sum(n, f) - f[y];
}

static inline void multinomial_slopes(int32_t n, const double *f, int32_t y, double omega, double *alpha)
{
    const double log_sum = multinomial_log_sum(n, f);
    double others = 0;
    for (int32_t k = 0; k < n; k++)
        if (k != y) {
            alpha[k] = -omega * exp(f[k] - log_sum);
            others += alpha[k];
        }
    alpha[y] = -others;
}

static inline double multinomial_dual(int32_t n, const double *alpha, int32_t y, double omega)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += tk_entropy((k == y) - alpha[k] / omega);
    return omega * sum;
}

static inline int multinomial_is_settled(int32_t n, const double *f, const double *alpha, int32_t y, double omega,
                                         double slack, double near)
{
    const double log_sum = multinomial_log_sum(n, f);
    double off = 0, rest = 1;
    (void)slack;
    for (int32_t k = 0; k < n; k++) {
        const double q = (k == y) - (alpha ? alpha[k] / omega : 0);
        off = fmax(off, fabs(q - exp(f[k] - log_sum)));
        rest = fmin(rest, 1 - q);
    }
    return off < near * rest;
}

/* The probabilities with  log q_k + a q_k = c_k - mu,  with the mu at which they add up to 1. Newton's method on all of
 * them and mu at once, begun where each q_k is too large and mu too small. */
static inline void multinomial_root(int32_t n, double a, const double *c, double *q)
{
    double mu = -HUGE_VAL;
    for (int32_t k = 0; k < n; k++)
        mu = fmax(mu, c[k] - a);
    for (int32_t k = 0; k < n; k++) {
        const double b = c[k] - mu, start = (fmax(b, 0) + fmax(log(a), 1)) / a;
        q[k] = fmin(b, log(start));
    }
    for (int i = 0; i < 60; i++) { /* q holds the logarithms */
        double sum = -1, steep = 0, largest = 0;
        for (int32_t k = 0; k < n; k++) {
            const double p = exp(q[k]), d = 1 + a * p;
            sum += p - p * (q[k] + a * p - c[k] + mu) / d;
            steep += p / d;
        }
        const double by = sum / steep;
        for (int32_t k = 0; k < n; k++) {
            const double p = exp(q[k]), step = (q[k] + a * p - c[k] + mu + by) / (1 + a * p);
            q[k] -= step;
            largest = fmax(largest, fabs(step) * p);
        }
        mu += by;
        if (largest < 1e-14)
            break;
    }
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += q[k] = exp(q[k]);
    for (int32_t k = 0; k < n; k++)
        q[k] /= sum;
}

static inline void multinomial_step(int32_t n, double *alpha, double omega, const double *f, double q, int32_t y,
                                    double *room)
{
    double others = 0;
    for (int32_t k = 0; k < n; k++) /* c_k = f_k + a q_k, a = omega q */
        alpha[k] = f[k] + q * ((k == y) * omega - alpha[k]);
    multinomial_root(n, omega * q, alpha, room);
    for (int32_t k = 0; k < n; k++)
        if (k != y) {
            alpha[k] = -omega * room[k];
            others += alpha[k];
        }
    alpha[y] = -others;
}

/* Lambert's W((K - 1) / e), the w with w exp(w) = (K - 1) / e, by Newton's method from its right. */
static inline double multinomial_radius2(int32_t n_outputs)
{
    const double x = (n_outputs - 1) / exp(1);
    double w = log1p(x);
    for (int i = 0; i < 30; i++)
        w -= (w - x * exp(-w)) / (1 + w);
    return w;
}

static const tk_loss tk_multinomial = {
    .name = "multinomial",
    .number = TK_NUMBER(multinomial),
    .of = TK_CLASSES,
    .lipschitz = 1.4142135623730951, /* sqrt(2) */
    .radius2 = multinomial_radius2,
    .joint = {multinomial_value, multinomial_slopes, multinomial_dual, multinomial_is_settled, multinomial_step},
};
