/* log(1 + exp(-v)). */

static inline double log_loss_value(double epsilon, double v)
{
    (void)epsilon;
    return v > 0 ? log1p(exp(-v)) : log1p(exp(v)) - v;
}

static inline double log_loss_slope(double epsilon, double v)
{
    (void)epsilon;
    return v > 0 ? exp(-v) / (1 + exp(-v)) : 1 / (1 + exp(v));
}

static inline double log_loss_dual(double epsilon, double p)
{
    (void)epsilon;
    return tk_entropy(p) + tk_entropy(1 - p);
}

static inline int log_loss_is_settled(double epsilon, double v, double p, double slack, double near)
{
    (void)slack;
    return fabs(p - log_loss_slope(epsilon, v)) < near * p * (1 - p);
}

/* The p in [0, 1] with  log((1 - p) / p) = m + q (p - p0),  q >= 0. With z = log(p / (1 - p)) and a = q p0 - m it is
 * where
 *
 *     F(z) = z - a + q p(z)
 *
 * vanishes. F rises; it is convex for z < 0 and concave for z > 0. A root above 0 is brought below by exchanging p with
 * 1 - p. Then Newton's method, begun to the right of the root, goes straight down to it. */
static inline double log_loss_root(double p0, double m, double q)
{
    const int above = q * p0 - m > q / 2;
    const double a = above ? q * (1 - p0) + m : q * p0 - m;
    /* Here z <= 0, and F(z) >= 0: at z = 0; at a if that is below 0; and where q p = max(a, 0) + max(log q, 1). */
    const double p_start = (fmax(a, 0) + fmax(log(q), 1)) / q;
    double z = p_start < 0.5 ? log(p_start / (1 - p_start)) : 0, p = 0.5;
    z = a < z ? a : z;
    for (int i = 0; i < 100; i++) {
        p = exp(z) / (1 + exp(z));
        const double next = z - (z - a + q * p) / (1 + q * p * (1 - p));
        if (!(next < z - 1e-15 * (1 - z)))
            break;
        z = next;
    }
    return above ? 1 - p : p;
}

static inline double log_loss_step(double epsilon, double alpha, double omega, double v, double q)
{
    (void)epsilon;
    return omega * log_loss_root(alpha / omega, v, q * omega);
}

/* The slope is never 0, and no bound is ever reached. */
static inline int log_loss_can_move(double epsilon, double alpha, double omega, double v)
{
    (void)epsilon, (void)alpha, (void)omega, (void)v;
    return 1;
}

/* W(1 / e), rounded up. */
static inline double log_loss_radius2(int32_t n_outputs)
{
    (void)n_outputs;
    return 0.2785;
}

static const tk_loss tk_log_loss = {
    .name = "log_loss",
    .number = TK_NUMBER(log_loss),
    .of = TK_LABELS,
    .lipschitz = 1,
    .low = 0,
    .high = 1,
    .radius2 = log_loss_radius2,
    .one = {log_loss_value, log_loss_slope, log_loss_dual, log_loss_is_settled, log_loss_step, log_loss_can_move},
};
