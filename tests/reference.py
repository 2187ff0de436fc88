"""What the package computes, in slow and obvious numpy: the formulas, and nothing that the package does itself.

A monomial of degree <= r in d columns is a multiset 0 <= j_1 <= ... <= j_r <= d, where coordinate 0 is the constant 1
and coordinate j + 1 is column j. Everything is computed in float64.
"""

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial, prod, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, expit, logsumexp, softmax, wrightomega
from threadpoolctl import threadpool_limits


class Kernel(NamedTuple):
    """One of the kernels of the family, with everything that the formulas need."""

    name: object
    degree: int
    gamma: float
    coef0: float
    scale: float
    decay: float
    coefficients: tuple
    unit: bool = False

    @property
    def parameters(self):
        """The keyword arguments that the package takes for this kernel."""
        known = {"degree": self.degree, "gamma": self.gamma, "kernel": self.name, "coef0": self.coef0}
        return known | ({"normalize": True} if self.unit else {})


def kernel_of(name, degree, gamma, coef0=1.0, unit=False):
    """The kernel family: s(x) = exp(-decay |scale x|^2), the coefficients c_k, and the scale of the input.

    With unit rows, s(x) is what makes K~(x, x) = 1.
    """
    if unit:
        return kernel_of(name, degree, gamma, coef0)._replace(unit=True)
    if name == "gaussian":
        return Kernel(name, degree, gamma, coef0, sqrt(2 * gamma), 0.5, (1.0,) * (degree + 1))
    if name == "exponential":
        return Kernel(name, degree, gamma, coef0, sqrt(2 * gamma), 0.0, (1.0,) * (degree + 1))
    if name == "polynomial":
        c = [factorial(degree) / factorial(degree - k) * coef0 ** (degree - k) for k in range(degree + 1)]
        return Kernel(name, degree, gamma, coef0, sqrt(gamma), 0.0, tuple(c))
    return Kernel(name, degree, gamma, coef0, sqrt(gamma), 0.0, tuple(name))


def all_kernels(degree, gamma=0.3):
    """One kernel of each kind: all of the table in the design, coefficients of zero included."""
    return {
        "gaussian": kernel_of("gaussian", degree, gamma),
        "exponential": kernel_of("exponential", degree, gamma),
        "polynomial": kernel_of("polynomial", degree, gamma, coef0=0.7),
        "homogeneous": kernel_of("polynomial", degree, gamma, coef0=0.0),
        "sequence": kernel_of([0.5 + k for k in range(degree + 1)], degree, gamma),
        "odd sequence": kernel_of([float(k % 2) for k in range(degree + 1)], degree, gamma),
        "unit gaussian": kernel_of("gaussian", degree, gamma, unit=True),
        "unit polynomial": kernel_of("polynomial", degree, gamma, coef0=0.7, unit=True),
    }


# Monomials and their slots.


def slot(multiset):
    """The colexicographic rank, sum over the places p = 1 .. r of C(j_p + p - 1, p)."""
    return sum(comb(j + p - 1, p) for p, j in enumerate(sorted(multiset), start=1))


def multisets(coordinates, degree):
    """All multisets of the constant and of these coordinates, in the order of their slots."""
    return sorted(combinations_with_replacement([0, *coordinates], degree), key=slot)


def powers(multiset):
    """(0, 1, 1, 4) -> {0: 2, 3: 1}: column -> power."""
    return {j - 1: multiset.count(j) for j in sorted(set(multiset)) if j > 0}


def metric(multiset, coefficients):
    """c_|a| / a!, the factor of a monomial in the kernel's series."""
    a = powers(multiset).values()
    return coefficients[sum(a)] / prod(factorial(e) for e in a)


def row_factor(X, kernel):
    """s(x) of each row."""
    t = ((kernel.scale * np.asarray(X, dtype=np.float64)) ** 2).sum(axis=1)
    if kernel.unit:
        return sum(c / factorial(k) * t**k for k, c in enumerate(kernel.coefficients)) ** -0.5
    return np.exp(-kernel.decay * t)


class Basis:
    """All monomials of d columns, as arrays in the order of the slots."""

    def __init__(self, n_columns, degree):
        self.multisets = multisets(range(1, n_columns + 1), degree)
        self.places = np.array(self.multisets).reshape(len(self.multisets), degree)

    @lru_cache  # noqa: B019
    def _metric(self, coefficients):
        return np.sqrt([metric(m, coefficients) for m in self.multisets])

    def metric(self, kernel):
        """sqrt(c_|a| / a!) of each monomial."""
        return self._metric(kernel.coefficients)

    def of_nonzeros(self, x):
        """The slots of the monomials of a row's nonzeros."""
        present = np.concatenate([[True], np.asarray(x) != 0])
        return np.flatnonzero(present[self.places].all(axis=1))

    def bare(self, X, kernel):
        """s(x) (scale x)^a: [n_rows, D]."""
        X = np.asarray(X, dtype=np.float64)
        Z = np.hstack([np.ones((len(X), 1)), kernel.scale * X])
        values = np.ones((len(X), len(self.multisets)))
        for place in self.places.T:
            values *= Z[:, place]
        return row_factor(X, kernel)[:, None] * values

    def features(self, X, kernel):
        """phi_a(x) = s(x) sqrt(c_|a| / a!) (scale x)^a: [n_rows, D]."""
        return self.bare(X, kernel) * self.metric(kernel)

    def far_features(self, X, kernel):
        """The same of unit rows however far out: with all coordinates, the constant one too, divided by |scale x|."""
        Z = kernel.scale * np.asarray(X, dtype=np.float64)
        rho = np.maximum(1.0, np.linalg.norm(Z, axis=1))
        Z = np.hstack([1 / rho[:, None], Z / rho[:, None]])
        values = self.metric(kernel) * np.prod(Z[:, self.places], axis=2)
        return values / np.linalg.norm(values, axis=1, keepdims=True)


def row_features(x, kernel):
    """(slots, values) of the monomials of a row's nonzeros, slots rising; x is {column: value}."""
    coordinates = sorted(j + 1 for j in x)
    z = {0: 1.0} | {j + 1: kernel.scale * float(v) for j, v in x.items()}
    s = row_factor([list(x.values())], kernel)[0]
    chosen = multisets(coordinates, kernel.degree)
    values = [s * sqrt(metric(m, kernel.coefficients)) * prod(z[j] for j in m) for m in chosen]
    return [slot(m) for m in chosen], np.array(values)


# Kernels.


def kernel_matrix(X, Y, kernel):
    """s(x) s(x') sum_k c_k / k! <scale x, scale x'>^k."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    z = kernel.scale**2 * (X @ Y.T)
    series = sum(c / factorial(k) * z**k for k, c in enumerate(kernel.coefficients))
    return row_factor(X, kernel)[:, None] * row_factor(Y, kernel) * series


def kernel_terms(X, Y, kernel):
    """The same with all terms made positive: what rounding errors are measured against."""
    return kernel_matrix(np.abs(X), np.abs(Y), kernel)


def gaussian(X, Y, gamma):
    """exp(-gamma |x - x'|^2)."""
    return np.exp(-gamma * ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


def residual(X, degree, gamma):
    """1 - K~(x, x) = exp(-a) sum_{k > r} a^k / k! with a = 2 gamma |x|^2: the rest of the series."""
    a = 2 * gamma * (np.asarray(X, dtype=np.float64) ** 2).sum(axis=1)
    term = np.exp(-a) * a**degree / factorial(degree)
    total = np.zeros_like(a)
    for k in range(degree + 1, degree + 1000):
        term = term * a / k
        total += term
    return total


def svm_optimum(K, y, lam, n_sweeps=20_000, tolerance=1e-12):
    """(lower, upper) end of the optimum of lambda/2 |w|^2 + mean hinge loss, no bias, by dual coordinate ascent.

    The dual is max over 0 <= alpha <= 1 of mean(alpha) - alpha' Q alpha / (2 lambda n^2) with Q = y y' * K.
    """
    n = len(y)
    Q = K * np.outer(y, y) / (lam * n)
    alpha = np.zeros(n)
    margins = np.zeros(n)  # y_i f(x_i) = (Q alpha)_i
    for _ in range(n_sweeps):
        for i in range(n):
            step = np.clip(alpha[i] + (1 - margins[i]) / Q[i, i], 0, 1) - alpha[i]
            alpha[i] += step
            margins += step * Q[i]
        margins = Q @ alpha
        half_norm = alpha @ margins / (2 * n)
        dual = alpha.mean() - half_norm
        primal = half_norm + np.maximum(0, 1 - margins).mean()
        if primal - dual < tolerance:
            break
    return dual, primal


# Losses: docs/mathematics.md, section 5. Weights are omega; p = alpha / omega.

LABEL_LOSSES = ("hinge", "squared_hinge", "log_loss")
NUMBER_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
JOINT_LOSSES = ("crammer_singer", "multinomial")  # they look at all outputs of a row together
SINGLE_LOSSES = LABEL_LOSSES + NUMBER_LOSSES
LOSSES = SINGLE_LOSSES + JOINT_LOSSES


def value(loss, v, epsilon=0.0):
    """The loss of an output with margin v."""
    beyond = np.maximum(0, np.abs(v) - epsilon)
    return {
        "hinge": np.maximum(0, 1 - v),
        "squared_hinge": np.maximum(0, 1 - v) ** 2,
        "log_loss": np.logaddexp(0, -v),
        "epsilon_insensitive": beyond,
        "squared_epsilon_insensitive": beyond**2,
    }[loss]


def slope(loss, v, epsilon=0.0):
    """-loss'(v)."""
    beyond = np.maximum(0, np.abs(v) - epsilon)
    return {
        "hinge": 1.0 * (v < 1),
        "squared_hinge": 2 * np.maximum(0, 1 - v),
        "log_loss": expit(-v),
        "epsilon_insensitive": -np.sign(v) * (beyond > 0),
        "squared_epsilon_insensitive": -2 * np.sign(v) * beyond,
    }[loss]


def dual_term(loss, p, epsilon=0.0):
    """g(p), with loss(v) = max_p g(p) - p v."""
    return {
        "hinge": p,
        "squared_hinge": p - p**2 / 4,
        "log_loss": entr(p) + entr(1 - p),
        "epsilon_insensitive": -epsilon * np.abs(p),
        "squared_epsilon_insensitive": -epsilon * np.abs(p) - p**2 / 4,
    }[loss]


def domain(loss):
    """(lowest, highest) p on which g is defined."""
    highest = np.inf if loss.startswith("squared") else 1.0
    return (-highest if loss in NUMBER_LOSSES else 0.0), highest


def joint_value(loss, f, k):
    """The loss of a row of class k with outputs f."""
    if loss == "multinomial":
        return logsumexp(f) - f[k]
    return np.max(f + (np.arange(len(f)) != k)) - f[k]


def joint_slope(loss, f, k):
    """e_k - q, where q is the slope of the loss + f_k: a probability for each class."""
    own = np.eye(len(f))[k]
    if loss == "multinomial":
        return own - softmax(f)
    reach = f + 1 - own
    # Where the row's own class is as good as any other, the loss is 0.
    return own - (own if reach[k] == reach.max() else np.eye(len(f))[reach.argmax()])


def joint_dual_term(loss, p, k):
    """g, as a function of p = e_k - q: joint_value(f) = max over probabilities q of g - <p, f>."""
    return p[k] if loss == "crammer_singer" else entr(np.maximum(0, np.eye(len(p))[k] - p)).sum()  # 0: but for rounding


def targets(loss, scores):
    """What some loss may ask of rows, made of numbers: labels by their sign, the class with the largest, or these."""
    if loss in NUMBER_LOSSES:
        return np.ascontiguousarray(scores, dtype=np.float64)
    positive = np.eye(scores.shape[1])[scores.argmax(axis=1)] > 0 if loss in JOINT_LOSSES else scores > 0
    return np.where(positive, 1, -1).astype(np.int8)


def weights(loss, y, weight=None, favour=None):
    """omega: the weight of each row, times that of an output where y is 1 (joint losses: of the row's class)."""
    omega = np.ones(y.shape) if weight is None else np.repeat(weight[:, None], y.shape[1], axis=1)
    if favour is not None:
        omega = omega * np.where(y > 0, favour, 1.0)
    if loss in JOINT_LOSSES:
        omega = np.repeat(omega[y > 0][:, None], y.shape[1], axis=1)
    return omega


class Asked(NamedTuple):
    """What is asked of the rows; arrays are [n_rows, K].

    y holds labels -1 and 1, or numbers; for joint losses 1 for a row's class, else -1. There, omega is alike in a row.
    """

    loss: str
    y: np.ndarray
    omega: np.ndarray
    epsilon: float = 0.0

    @property
    def joint(self):
        return self.loss in JOINT_LOSSES

    @property
    def problems(self):
        """The outputs of each problem."""
        n_outputs = self.y.shape[1]
        return [list(range(n_outputs))] if self.joint else [[k] for k in range(n_outputs)]

    @property
    def signs(self):
        """w_k = C sum_i alpha_ik signs_ik phi(x_i)."""
        return self.y.astype(float) if self.loss in LABEL_LOSSES else np.ones(self.y.shape)

    @property
    def target(self):
        return self.y if self.loss in NUMBER_LOSSES else np.zeros(self.y.shape)

    def margins(self, f):
        """v = y f, f - y, or f."""
        return self.signs * f - self.target

    def outputs(self, v):
        return self.signs * (v + self.target)

    def rows(self, which):
        return self._replace(y=self.y[which], omega=self.omega[which])

    def losses(self, f):
        """omega loss: [n_rows, problems]."""
        if self.joint:
            classes = self.y.argmax(axis=1)
            values = [joint_value(self.loss, *row) for row in zip(f, classes, strict=True)]
            return self.omega[:, :1] * np.reshape(values, (-1, 1))
        return self.omega * value(self.loss, self.margins(f), self.epsilon)

    def slopes(self, f):
        """The dual point that goes with the slopes of the losses: [n_rows, K]."""
        if self.joint:
            classes = self.y.argmax(axis=1)
            return self.omega * np.array([joint_slope(self.loss, *row) for row in zip(f, classes, strict=True)])
        return self.omega * slope(self.loss, self.margins(f), self.epsilon)

    def dual_terms(self, alpha):
        """omega g(alpha / omega) + alpha target: [n_rows, problems]."""
        p = alpha / self.omega
        if self.joint:
            classes = self.y.argmax(axis=1)
            g = [joint_dual_term(self.loss, *row) for row in zip(p, classes, strict=True)]
            return self.omega[:, :1] * np.reshape(g, (-1, 1))
        return self.omega * dual_term(self.loss, p, self.epsilon) + alpha * self.target

    def feasible(self, alpha, rounding=0.0):
        """Whether alpha is where g is defined, up to a part of omega."""
        p = alpha / self.omega
        if self.joint:
            q = (self.y > 0) - p
            return (np.abs(p.sum(axis=1)) <= rounding).all() and (q >= -rounding).all()
        low, high = domain(self.loss)
        return (p >= low - rounding).all() and (p <= high + rounding).all()

    def per_problem(self, values):
        """[K] -> [problems]."""
        return np.array([values[of].sum() for of in self.problems])


def objectives(asked, K, C, alpha):
    """W times the primal and the dual objective at w(alpha): ([problems], [problems]).

    The primal one is |w|^2 / (2 C) + sum_i omega_i loss_i, where w_k = C sum_i beta_ik phi(x_i), beta = alpha signs.
    """
    beta = alpha * asked.signs
    half_norms = asked.per_problem(C / 2 * np.einsum("ik,ij,jk->k", beta, K, beta))
    primal = half_norms + asked.losses(C * K @ beta).sum(axis=0)
    return primal, asked.dual_terms(alpha).sum(axis=0) - half_norms


# The optimum on a kernel matrix, without a bias.


@threadpool_limits.wrap(limits=1)  # these matrices are too small to share
def optimum(asked, K, C, relative=1e-10):
    """(W times the lower and the upper end of the optimum of each problem, alpha, outputs f), by Newton's method."""
    lower, upper, alpha = [], [], np.zeros(asked.y.shape)
    for of in asked.problems:
        one = asked._replace(y=asked.y[:, of], omega=asked.omega[:, of])
        for alpha[:, of] in _alphas(one, K, C):
            primal, dual = (ends[0] for ends in objectives(one, K, C, alpha[:, of]))
            if primal - dual <= relative * primal + 1e-13 * one.losses(np.zeros(one.y.shape)).sum():
                break
        else:
            raise AssertionError(f"the exact solver stopped at a gap of {primal - dual}")
        lower.append(dual)
        upper.append(primal)
    return np.array(lower), np.array(upper), alpha, C * K @ (alpha * asked.signs)


def _alphas(one, K, C):
    """The dual points of one problem, one better than the other.

    As a quadratic program in other variables: those of each sign of numbers; the weights of all outcomes where there
    are entropies or several classes, which add up to omega.
    """
    n, n_outputs = one.y.shape
    omega = one.omega[:, 0]
    if one.joint:  # a = omega e - alpha
        own = omega[:, None] * (one.y > 0)
        H, c = np.kron(C * K, np.eye(n_outputs)), (C * K @ own).ravel()
        A, start = np.kron(np.eye(n), np.ones(n_outputs)), np.repeat(omega / n_outputs, n_outputs)
        if one.loss == "multinomial":
            steps = _entropic(H, c, A, omega, np.repeat(omega, n_outputs), start)
        else:
            steps = _interior(H, c - (one.y > 0).ravel(), 2 * np.repeat(omega, n_outputs), A, omega, start)
        yield from (own - a.reshape(n, n_outputs) for a in steps)
        return
    if one.loss in NUMBER_LOSSES:  # alpha = a_1 - a_2
        signs = np.concatenate([np.ones(n), -np.ones(n)])
        linear = signs * np.tile(one.y[:, 0], 2) - one.epsilon
    elif one.loss == "log_loss":  # alpha = a_1, omega - alpha = a_2
        signs, linear = np.concatenate([one.y[:, 0], np.zeros(n)]), np.zeros(2 * n)
    else:
        signs, linear = one.y[:, 0], np.ones(n)
    parts = len(signs) // n
    top = omegas = np.tile(omega, parts)
    H = C * np.tile(K, (parts, parts)) * np.outer(signs, signs)
    if one.loss == "log_loss":
        yield from (a[:n, None] for a in _entropic(H, linear, np.tile(np.eye(n), 2), omega, omegas, omegas / 2))
        return
    if one.loss.startswith("squared"):
        H, top = H + np.diag(1 / (2 * omegas)), 1e3 * (1 + np.abs(one.y).max()) * omegas  # which no alpha reaches
    for a in _interior(H, linear, top, np.zeros((0, len(top))), np.zeros(0), omegas / 2):
        yield (a[:n] - a[n:] if parts == 2 else a)[:, None]


def _interior(H, c, top, A, b, a):
    """Points on the way to the largest c'a - a'Ha / 2 with 0 <= a <= top and A a = b: path following.

    z and u are the multipliers of the bounds.
    """
    z, u = np.ones(len(a)), np.ones(len(a))
    for _ in range(200):
        room = top - a
        mu = 0.1 * (a @ z + room @ u) / (2 * len(a))
        step = _newton_step(H + np.diag(z / a + u / room), c - H @ a + mu / a - mu / room, A, b - A @ a)
        step_z, step_u = mu / a - z - z / a * step, mu / room - u + u / room * step
        pairs = ((a, step), (room, -step), (z, step_z), (u, step_u))
        t = min(1.0, 0.995 * min(_reach(x, dx) for x, dx in pairs))
        a, z, u = a + t * step, z + t * step_z, u + t * step_u
        yield a


def _entropic(H, c, A, b, omega, a):
    """Points on the way to the largest c'a - a'Ha / 2 - sum a log(a / omega) with A a = b, from an a with A a = b."""

    def height(a):
        return c @ a - a @ H @ a / 2 + (omega * entr(a / omega)).sum()

    for _ in range(200):
        step = _newton_step(H + np.diag(1 / a), c - H @ a - np.log(a / omega), A, b - A @ a)
        t = min(1.0, 0.99 * _reach(a, step))
        while height(a + t * step) < height(a) and t > 1e-12:
            t /= 2
        a = a + t * step
        yield a


def _newton_step(H, slope, A, missing):
    """The x with H x + A' y = slope for some y, and A x = missing."""
    system = np.block([[H, A.T], [A, np.zeros((len(A), len(A)))]])
    return np.linalg.solve(system, np.concatenate([slope, missing]))[: len(H)]


def _reach(x, step):
    """How often the step can be made before an x becomes negative."""
    falls = step < 0
    return np.min(-x[falls] / step[falls], initial=np.inf)


# Steps: docs/mathematics.md, section 7.


def best_alpha(loss, alpha, omega, v, q, epsilon=0.0):
    """Where omega g(a / omega) - (a - alpha) v - q/2 (a - alpha)^2 is largest, over the a on which g is defined."""
    if loss == "hinge":
        return np.clip(alpha + (1 - v) / q, 0, omega) if q > 0 else omega if v < 1 else alpha
    if loss == "squared_hinge":
        return max(0, alpha + (1 - v - alpha / (2 * omega)) / (q + 1 / (2 * omega)))
    if loss in NUMBER_LOSSES:
        curvature = q + (1 / (2 * omega) if loss.startswith("squared") else 0)
        if curvature == 0:  # a row without features
            return omega * slope(loss, v, epsilon)
        limit = omega * domain(loss)[1]
        # The vertex of the parabola of each side of 0; at most one of them lies on its own side.
        above, below = ((q * alpha - v - side * epsilon) / curvature for side in (1, -1))
        return min(above, limit) if above > 0 else max(below, -limit) if below < 0 else 0.0
    p = alpha / omega  # the derivative is 0 at omega expit(h), where h + v + omega q (expit(h) - p) = 0
    low, high = -v - omega * q * (1 - p) - 1, -v + omega * q * p + 1
    return omega * expit(brentq(lambda h: h + v + omega * q * (expit(h) - p), low, high, xtol=1e-14))


def simplex_projection(z, size):
    """The nearest point of {u >= 0, sum u = size}: max(0, z - tau), by trying how many are above tau."""
    z = z - z.max()
    largest = np.sort(z)[::-1]
    for n in range(1, len(z) + 1):
        tau = (largest[:n].sum() - size) / n
        if n == len(z) or largest[n] <= tau:
            break
    return np.maximum(0, z - tau)


def best_alphas(loss, alpha, omega, f, q, k):
    """The same for all outputs of a row of class k: over a = omega (e_k - probabilities)."""
    own = np.eye(len(f))[k]
    q = max(q, 1e-12)  # without features any alpha of some kind is as good: the limit as they vanish
    if loss == "crammer_singer":
        # a_k - <a - alpha, f> - q/2 |a - alpha|^2: the nearest a to alpha + (e_k - f) / q.
        return omega * own - simplex_projection(omega * own - alpha - (own - f) / q, omega)
    # The derivative is 0 at probabilities with log z + s z = c - mu: Wright's omega function. mu makes their sum 1.
    s, c = omega * q, f + q * (omega * own - alpha)
    top = c.max()

    def probabilities(mu):
        return wrightomega(np.log(s) + (c - top) - mu).real / s

    mu = brentq(lambda mu: probabilities(mu).sum() - 1, -s - 1, np.log(len(f)) - s / len(f) + 1, xtol=1e-14)
    z = probabilities(mu)
    return omega * (own - z / z.sum())


# A sweep over a block is the last when it changes no alpha by more than this part of the first sweep's largest change.
ENOUGH = 0.05
# From then on, and but under a joint loss, those rows are swept that have moved by more than so much of it in the sweep
# before.
SWEEPS_OVER_ALL, LITTLE = 2, 0.001


def dual_pass(asked, K, C, alpha, order, block=1, sweeps=1, live=None):
    """Dual coordinate ascent on the kernel matrix: (alpha, each row's margins when its block began).

    Each problem by itself, when it is live. Rows that it would not move by those margins are left out of its block.
    """
    alpha, margins = alpha.copy(), np.full(alpha.shape, np.nan)

    def outputs(rows):
        return C * K[rows] @ (asked.signs * alpha)

    def best(i, of):
        """The new alphas of a row, of a problem's outputs."""
        f, omega, q = outputs([i])[0], asked.omega[i, of[0]], C * K[i, i]
        if asked.joint:
            return best_alphas(asked.loss, alpha[i], omega, f, q, asked.y[i].argmax())
        v = asked.signs[i] * f - asked.target[i]
        return np.array([best_alpha(asked.loss, alpha[i, k], omega, v[k], q, asked.epsilon) for k in of])

    def moves(i, of):
        """Whether a step is more than rounding error; those of entropies always count."""
        step = np.abs(best(i, of) - alpha[i, of]).max()
        return step > 1e-13 * asked.omega[i, of[0]] or asked.loss in ("log_loss", "multinomial")

    for first in range(0, len(order), block):
        batch = order[first : first + block]
        margins[batch] = asked.rows(batch).margins(outputs(batch))
        for of in asked.problems:
            if live is not None and not live[of[0]]:
                continue
            swept = [i for i in batch if moves(i, of)]
            changes = []  # the largest one of each sweep
            while len(changes) < sweeps and (len(changes) < 2 or changes[-1] > ENOUGH * changes[0]):
                before = alpha.copy()
                for i in swept:
                    alpha[i, of] = best(i, of)
                changes.append(np.abs(alpha - before).max())
                if not asked.joint and len(changes) >= SWEEPS_OVER_ALL:
                    swept = [i for i in swept if np.abs(alpha[i] - before[i]).max() > LITTLE * changes[0]]
    return alpha, margins


def pegasos(asked, Phi, lam, batches, share, radius=None):
    """The iterates of steps 1 / (lambda k), as (w, alpha) with w_k = sum_i alpha_ik signs_ik phi(x_i).

    radius has one entry for each problem; None is infinity.
    """
    w, alpha = np.zeros((Phi.shape[1], asked.y.shape[1])), np.zeros(asked.y.shape)
    iterates = []
    for k, rows in enumerate(batches, start=1):
        some = asked.rows(rows)
        slopes = some.slopes(Phi[rows] @ w)
        w, alpha = (1 - 1 / k) * w, (1 - 1 / k) * alpha
        w += share / (lam * k) * Phi[rows].T @ (slopes * some.signs)
        alpha[rows] += share / (lam * k) * slopes
        for problem, of in enumerate(asked.problems if radius is not None else []):
            norm = np.linalg.norm(w[:, of])
            if norm > radius[problem]:
                w[:, of] *= radius[problem] / norm
                alpha[:, of] *= radius[problem] / norm
        iterates.append((w, alpha))
    return iterates


def adapt(Phi, t, w, squares, eta, together=1):
    """AdaGrad's steps by t_i phi(x_i), the gradients of so many rows summed up: (w, squares)."""
    for first in range(0, len(t), together):
        g = Phi[first : first + together].T @ t[first : first + together]
        squares = squares + g**2
        w = w + eta * g / np.sqrt(squares)
    return w, squares


def adagrad(asked, Phi, w, squares, eta, batches, together=1):
    """The same by the slopes of the loss, with the margins of a batch taken together: (w, squares)."""
    for rows in batches:
        some = asked.rows(rows)
        t = some.slopes(Phi[rows] @ w) * some.signs
        moving = t.any(axis=1)
        w, squares = adapt(Phi[rows[moving]], t[moving], w, squares, eta, together)
    return w, squares


def shifted(X, by, place):
    """X - by, in the type of X, with column j as number place[j]."""
    moved = np.empty_like(X)
    moved[:, place] = X - by.astype(X.dtype)
    return moved


# Cells: docs/mathematics.md, section 9.


class Partition(NamedTuple):
    """Rows divided once: by the nearest of the centres, which look at some columns. Each cell has a shift, and columns
    of which it has monomials; the others count for a row's norm only."""

    columns: np.ndarray
    centres: np.ndarray
    by: np.ndarray
    has: np.ndarray  # [cells, d], bool

    def cell(self, X):
        """The first of the nearest centres."""
        return ((X[:, None, self.columns] - self.centres) ** 2).sum(axis=2).argmin(axis=1)

    def features(self, X, cell, kernel):
        """Those of each cell, one cell after the other; 0 for rows of other cells."""
        blocks = []
        for c, (by, has) in enumerate(zip(self.by, self.has, strict=True)):
            moved = X - by
            Phi = Basis(has.sum(), kernel.degree).features(moved[:, has], kernel)
            blocks.append((cell == c)[:, None] * row_factor(moved[:, ~has], kernel)[:, None] * Phi)
        return np.hstack(blocks)

    def kernel_matrix(self, X, Y, cell, other_cell, kernel):
        """1[same cell] K~(x - m, x' - m), in closed form."""
        K = np.zeros((len(X), len(Y)))
        for c, (by, has) in enumerate(zip(self.by, self.has, strict=True)):
            inside = np.ix_(cell == c, other_cell == c)
            x, y = (Z[of == c] - by for Z, of in ((X, cell), (Y, other_cell)))
            left_out = row_factor(x[:, ~has], kernel)[:, None] * row_factor(y[:, ~has], kernel)
            K[inside] = left_out * kernel_matrix(x[:, has], y[:, has], kernel)
        return K


def in_cells(Phi, base, sizes, n_slots):
    """Features of rows in the tables of their cells: the first so many of each row, from its base on."""
    out = np.zeros((len(Phi), n_slots))
    for row, phi, begin, size in zip(out, Phi, base, sizes, strict=True):
        row[begin : begin + size] = phi[:size]
    return out


# Rounding.


def rounding(X, kernel, n_terms=1):
    """How far a sum of monomials of these rows may be off, as a part of the sum of its absolute terms.

    A monomial takes at most five roundings a place (the input's scaling and its conversion, a repeat factor and its
    conversion, the product), and a few more for s(x), the constant's factor and the coefficient. A sum of n terms adds
    n roundings in the worst order; they are independent, so that four square roots of n of them are hardly ever passed.
    The exponent of s(x) is a sum over the columns in double precision: its absolute error is a relative one of s(x).
    """
    exponent = kernel.decay * kernel.scale**2 * (np.asarray(X, dtype=np.float64) ** 2).sum(axis=1).max(initial=0)
    of_sums = np.finfo(X.dtype).eps / 2 * (5 * kernel.degree + 12 + 4 * sqrt(n_terms))
    return of_sums + np.finfo(np.float64).eps / 2 * min(exponent, 745) * (4 + 4 * sqrt(X.shape[1]))
