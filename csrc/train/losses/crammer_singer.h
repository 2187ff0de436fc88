/* Crammer and Singer's: max_k (f_k + [k != y]) - f_y, where g(q) is 1 - q_y. */

/* The class with the largest f_k, other than y. */
static inline int32_t crammer_singer_rival(int32_t n, const double *f, int32_t y)
{
    int32_t best = y == 0 ? 1 : 0;
    for (int32_t k = best + 1; k < n; k++)
        if (k != y && f[k] > f[best])
            best = k;
    return best;
}

static inline double crammer_singer_value(int32_t n, const double *f, int32_t y)
{
    const double beyond = 1 + f[crammer_singer_rival(n, f, y)] - f[y];
    return beyond > 0 ? beyond : 0;
}

static inline void crammer_singer_slopes(int32_t n, const double *f, int32_t y, double omega, double *alpha)
{
    const int32_t rival = crammer_singer_rival(n, f, y);
    const int beyond = 1 + f[rival] - f[y] > 0;
    for (int32_t k = 0; k < n; k++)
        alpha[k] = 0;
    if (beyond) {
        alpha[y] = omega;
        alpha[rival] = -omega;
    }
}

static inline double crammer_singer_dual(int32_t n, const double *alpha, int32_t y, double omega)
{
    (void)n, (void)omega;
    return alpha[y];
}

static inline int crammer_singer_is_settled(int32_t n, const double *f, const double *alpha, int32_t y, double omega,
                                            double slack, double near)
{
    const int32_t rival = crammer_singer_rival(n, f, y);
    const double beyond = 1 + f[rival] - f[y];
    (void)near;
    if (!alpha || alpha[y] == 0)
        return beyond < -slack;
    if (alpha[rival] > -omega || beyond < slack)
        return 0;
    for (int32_t k = 0; k < n; k++)
        if (k != y && k != rival && f[k] > f[rival] - slack)
            return 0;
    return 1;
}

/* The point of the simplex {z >= 0, sum z = size} that is nearest to z is max(0, z - tau). The tau (Michelot, 1986):
 * the mean excess over those that are above the last tau, until none falls below. */
static inline double crammer_singer_tau(int32_t n, const double *z, double size)
{
    double tau = -HUGE_VAL;
    for (int32_t count = n + 1;;) {
        double sum = 0;
        int32_t above = 0;
        for (int32_t k = 0; k < n; k++)
            if (z[k] > tau) {
                sum += z[k];
                above++;
            }
        if (above == 0 || above >= count)
            return tau;
        count = above;
        tau = (sum - size) / above;
    }
}

/* The step projects z_k = [k = y] (omega - 1/q) - alpha_k + f_k / q onto a simplex. Only differences count, and they
 * are taken before the division: z_k - z_j. */
static inline double crammer_singer_above(const double *alpha, double omega, const double *f, double q, int32_t y,
                                          int32_t k, int32_t j)
{
    const int32_t at = (k == y) - (j == y);
    return (at * omega - (alpha[k] - alpha[j])) + ((f[k] - f[j]) - at) / q;
}

static inline void crammer_singer_step(int32_t n, double *alpha, double omega, const double *f, double q, int32_t y,
                                       double *room)
{
    int32_t top = 0;
    for (int32_t k = 1; k < n; k++)
        if (crammer_singer_above(alpha, omega, f, q, y, k, top) > 0)
            top = k;
    for (int32_t k = 0; k < n; k++)
        room[k] = k == top ? 0 : crammer_singer_above(alpha, omega, f, q, y, k, top);
    const double tau = crammer_singer_tau(n, room, omega);
    double others = 0;
    int32_t above = 0;
    for (int32_t k = 0; k < n; k++)
        above += room[k] > tau;
    for (int32_t k = 0; k < n; k++)
        if (k != y) { /* at a corner it is omega, without rounding: there the row may rest */
            alpha[k] = room[k] <= tau ? 0 : above == 1 ? -omega : tau - room[k];
            others += alpha[k];
        }
    alpha[y] = -others;
}

static inline double crammer_singer_radius2(int32_t n_outputs)
{
    (void)n_outputs;
    return 1;
}

static const tk_loss tk_crammer_singer = {
    .name = "crammer_singer",
    .number = TK_NUMBER(crammer_singer),
    .of = TK_CLASSES,
    .lipschitz = 1.4142135623730951, /* sqrt(2) */
    .radius2 = crammer_singer_radius2,
    .joint = {crammer_singer_value, crammer_singer_slopes, crammer_singer_dual, crammer_singer_is_settled,
              crammer_singer_step},
};
