/* max(0, 1 - v). */

static inline double hinge_value(double epsilon, double v)
{
    (void)epsilon;
    return tk_positive(1 - v);
}

static inline double hinge_slope(double epsilon, double v)
{
    (void)epsilon;
    return v < 1 ? 1 : 0;
}

static inline double hinge_dual(double epsilon, double p)
{
    (void)epsilon;
    return p;
}

static inline int hinge_is_settled(double epsilon, double v, double p, double slack, double near)
{
    (void)epsilon, (void)near;
    return ((p <= 0) & (v > 1 + slack)) | ((p >= 1) & (v < 1 - slack)); /* no branch: it would be mispredicted */
}

static inline double hinge_step(double epsilon, double alpha, double omega, double v, double q)
{
    const double next = q > TINY ? alpha + (1 - v) * (1 / q) : v < 1 ? omega : v > 1 ? 0 : alpha;
    (void)epsilon;
    return tk_clip(next, 0, omega);
}

static inline int hinge_can_move(double epsilon, double alpha, double omega, double v)
{
    return hinge_step(epsilon, alpha, omega, v, 1) != alpha;
}

static inline double hinge_radius2(int32_t n_outputs)
{
    (void)n_outputs;
    return 1;
}

static const tk_loss tk_hinge = {
    .name = "hinge",
    .number = TK_NUMBER(hinge),
    .of = TK_LABELS,
    .lipschitz = 1,
    .low = 0,
    .high = 1,
    .radius2 = hinge_radius2,
    .one = {hinge_value, hinge_slope, hinge_dual, hinge_is_settled, hinge_step, hinge_can_move},
};
