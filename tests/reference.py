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
from scipy.special import entr, expit


class Kernel(NamedTuple):
    """One of the kernels of the family, with everything that the formulas need."""

    name: object
    degree: int
    gamma: float
    coef0: float
    scale: float
    decay: float
    coefficients: tuple

    @property
    def parameters(self):
        """The keyword arguments that the package takes for this kernel."""
        return {"degree": self.degree, "gamma": self.gamma, "kernel": self.name, "coef0": self.coef0}


def kernel_of(name, degree, gamma, coef0=1.0):
    """The kernel family: s(x) = exp(-decay |scale x|^2), the coefficients c_k, and the scale of the input."""
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
    Z = kernel.scale * np.asarray(X, dtype=np.float64)
    return np.exp(-kernel.decay * (Z**2).sum(axis=1))


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


def row_features(x, kernel):
    """(slots, values) of the monomials of a row's nonzeros, slots rising; x is {column: value}."""
    coordinates = sorted(j + 1 for j in x)
    z = {0: 1.0} | {j + 1: kernel.scale * float(v) for j, v in x.items()}
    s = np.exp(-kernel.decay * sum(z[j] ** 2 for j in coordinates))
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


# Losses and steps: docs/mathematics.md, sections 5 and 7. Margins are v_i = y_i f(x_i), weights omega_i.

LOSSES = ("hinge", "squared_hinge", "log_loss")


def slope(loss, v):
    """-loss'(v)."""
    return {"hinge": 1.0 * (v < 1), "squared_hinge": 2 * np.maximum(0, 1 - v), "log_loss": expit(-v)}[loss]


def dual_term(loss, p):
    """g(p), with loss(v) = max_p g(p) - p v."""
    return {"hinge": p, "squared_hinge": p - p**2 / 4, "log_loss": entr(p) + entr(1 - p)}[loss]


def dual_objective(loss, K, y, omega, C, alpha):
    """W D(alpha) = sum_i omega_i g(alpha_i / omega_i) - C/2 |sum_i alpha_i y_i phi(x_i)|^2."""
    return (omega * dual_term(loss, alpha / omega)).sum() - C / 2 * (alpha * y) @ K @ (alpha * y)


def best_alpha(loss, alpha, omega, v, q):
    """Where omega g(a / omega) - (a - alpha) v - q/2 (a - alpha)^2 is largest, over the a on which g is defined."""
    if loss == "hinge":
        return np.clip(alpha + (1 - v) / q, 0, omega) if q > 0 else omega if v < 1 else alpha
    if loss == "squared_hinge":
        return max(0, alpha + (1 - v - alpha / (2 * omega)) / (q + 1 / (2 * omega)))
    p = alpha / omega  # the derivative is 0 at omega expit(h), where h + v + omega q (expit(h) - p) = 0
    low, high = -v - omega * q * (1 - p) - 1, -v + omega * q * p + 1
    return omega * expit(brentq(lambda h: h + v + omega * q * (expit(h) - p), low, high, xtol=1e-14))


# A sweep over a block is the last when it changes no alpha by more than this part of the first sweep's largest change.
ENOUGH = 0.05


def dual_pass(loss, K, y, omega, C, alpha, order, block=1, sweeps=1):
    """Dual coordinate ascent on the kernel matrix: (alpha, each row's margin when its block began).

    Rows that would not move by that margin are left out of the block.
    """
    Q = C * np.outer(y, y) * K
    alpha, margins = alpha.copy(), np.full(len(y), np.nan)
    for first in range(0, len(order), block):
        rows = order[first : first + block]
        margins[rows] = Q[rows] @ alpha
        rows = [i for i in rows if best_alpha(loss, alpha[i], omega[i], margins[i], Q[i, i]) != alpha[i]]
        changes = []  # the largest one of each sweep
        while len(changes) < sweeps and (len(changes) < 2 or changes[-1] > ENOUGH * changes[0]):
            before = alpha.copy()
            for i in rows:
                alpha[i] = best_alpha(loss, alpha[i], omega[i], Q[i] @ alpha, Q[i, i])
            changes.append(np.abs(alpha - before).max())
    return alpha, margins


def pegasos(loss, Phi, y, omega, lam, batches, share, radius=0.0):
    """The iterates of steps 1 / (lambda k), as (w, alpha) with w = sum_i alpha_i y_i phi(x_i); radius 0 is infinity."""
    w, alpha = np.zeros(Phi.shape[1]), np.zeros(len(y))
    iterates = []
    for k, rows in enumerate(batches, start=1):
        slopes = omega[rows] * slope(loss, y[rows] * (Phi[rows] @ w))
        w, alpha = (1 - 1 / k) * w, (1 - 1 / k) * alpha
        w += share / (lam * k) * (slopes * y[rows]) @ Phi[rows]
        alpha[rows] += share / (lam * k) * slopes
        norm = np.linalg.norm(w)
        if radius and norm > radius:
            w, alpha = radius / norm * w, radius / norm * alpha
        iterates.append((w, alpha))
    return iterates


def adapt(Phi, t, w, squares, eta, together=1):
    """AdaGrad's steps by t_i phi(x_i), the gradients of so many rows summed up: (w, squares)."""
    for first in range(0, len(t), together):
        g = t[first : first + together] @ Phi[first : first + together]
        squares = squares + g**2
        w = w + eta * g / np.sqrt(squares)
    return w, squares


def adagrad(loss, Phi, y, omega, w, squares, eta, batches, together=1):
    """The same by the slopes of the loss, with the margins of a batch taken together: (w, squares)."""
    for rows in batches:
        t = omega[rows] * y[rows] * slope(loss, y[rows] * (Phi[rows] @ w))
        moving = t != 0
        w, squares = adapt(Phi[rows[moving]], t[moving], w, squares, eta, together)
    return w, squares


def shifted(X, by, place):
    """X - by, in the type of X, with column j as number place[j]."""
    moved = np.empty_like(X)
    moved[:, place] = X - by.astype(X.dtype)
    return moved


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
