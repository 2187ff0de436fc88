/* max(0, 1 - v)^2. */

static inline double squared_hinge_value(double epsilon, double v)
{
    const double e = tk_positive(1 - v);
    (void)epsilon;
    return e * e;
}

static inline double squared_hinge_slope(double epsilon, double v)
{
    (void)epsilon;
    return v < 1 ? 2 * (1 - v) : 0;
}

static inline double squared_hinge_dual(double epsilon, double p)
{
    (void)epsilon;
    return p - p * p / 4;
}

static inline int squared_hinge_is_settled(double epsilon, double v, double p, double slack, double near)
{
    (void)epsilon, (void)near;
    return p <= 0 && v > 1 + slack;
}

static inline double squared_hinge_step(double epsilon, double alpha, double omega, double v, double q)
{
    (void)epsilon;
    return tk_positive(alpha + (1 - v - alpha / (2 * omega)) * (1 / (q + 1 / (2 * omega))));
}

static inline int squared_hinge_can_move(double epsilon, double alpha, double omega, double v)
{
    return squared_hinge_step(epsilon, alpha, omega, v, 1) != alpha;
}

static inline double squared_hinge_radius2(int32_t n_outputs)
{
    (void)n_outputs;
    return 0.5;
}

static const tk_loss tk_squared_hinge = {
    .name = "squared_hinge",
    .number = TK_NUMBER(squared_hinge),
    .of = TK_LABELS,
    .lipschitz = 0,
    .low = 0,
    .high = HUGE_VAL,
    .radius2 = squared_hinge_radius2,
    .one = {squared_hinge_value, squared_hinge_slope, squared_hinge_dual, squared_hinge_is_settled, squared_hinge_step,
            squared_hinge_can_move},
};
