/* max(0, |v| - epsilon). */

static inline double epsilon_insensitive_value(double epsilon, double v)
{
    return fabs(tk_beyond(v, epsilon));
}

static inline double epsilon_insensitive_slope(double epsilon, double v)
{
    const double e = tk_beyond(v, epsilon);
    return e > 0 ? -1 : e < 0 ? 1 : 0;
}

static inline double epsilon_insensitive_dual(double epsilon, double p)
{
    return -epsilon * fabs(p);
}

static inline int epsilon_insensitive_is_settled(double epsilon, double v, double p, double slack, double near)
{
    (void)near;
    return (p == 0 && fabs(v) < epsilon - slack) || (p >= 1 && v < -epsilon - slack)
           || (p <= -1 && v > epsilon + slack);
}

static inline double epsilon_insensitive_step(double epsilon, double alpha, double omega, double v, double q)
{
    const double next =
        q <= TINY ? omega * epsilon_insensitive_slope(epsilon, v) : tk_beyond(alpha - v * (1 / q), epsilon / q);
    return tk_clip(next, -omega, omega);
}

static inline int epsilon_insensitive_can_move(double epsilon, double alpha, double omega, double v)
{
    return epsilon_insensitive_step(epsilon, alpha, omega, v, 1) != alpha;
}

static const tk_loss tk_epsilon_insensitive = {
    .name = "epsilon_insensitive",
    .number = TK_NUMBER(epsilon_insensitive),
    .of = TK_NUMBERS,
    .lipschitz = 1,
    .low = -1,
    .high = 1,
    .one = {epsilon_insensitive_value, epsilon_insensitive_slope, epsilon_insensitive_dual,
            epsilon_insensitive_is_settled, epsilon_insensitive_step, epsilon_insensitive_can_move},
};
