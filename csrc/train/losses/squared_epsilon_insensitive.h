/* max(0, |v| - epsilon)^2, with epsilon = 0 the squared error. */

static inline double squared_epsilon_insensitive_value(double epsilon, double v)
{
    const double e = tk_beyond(v, epsilon);
    return e * e;
}

static inline double squared_epsilon_insensitive_slope(double epsilon, double v)
{
    return -2 * tk_beyond(v, epsilon);
}

static inline double squared_epsilon_insensitive_dual(double epsilon, double p)
{
    return -epsilon * fabs(p) - p * p / 4;
}

static inline int squared_epsilon_insensitive_is_settled(double epsilon, double v, double p, double slack, double near)
{
    (void)near;
    return p == 0 && fabs(v) < epsilon - slack;
}

static inline double squared_epsilon_insensitive_step(double epsilon, double alpha, double omega, double v, double q)
{
    const double steep = q + 1 / (2 * omega);
    return tk_beyond((q * alpha - v) * (1 / steep), epsilon / steep);
}

static inline int squared_epsilon_insensitive_can_move(double epsilon, double alpha, double omega, double v)
{
    return squared_epsilon_insensitive_step(epsilon, alpha, omega, v, 1) != alpha;
}

static const tk_loss tk_squared_epsilon_insensitive = {
    .name = "squared_epsilon_insensitive",
    .number = TK_NUMBER(squared_epsilon_insensitive),
    .of = TK_NUMBERS,
    .lipschitz = 0,
    .low = -HUGE_VAL,
    .high = HUGE_VAL,
    .one = {squared_epsilon_insensitive_value, squared_epsilon_insensitive_slope, squared_epsilon_insensitive_dual,
            squared_epsilon_insensitive_is_settled, squared_epsilon_insensitive_step,
            squared_epsilon_insensitive_can_move},
};
