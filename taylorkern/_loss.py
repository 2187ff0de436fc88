"""The losses: the formulas that Python needs of them. The steps' share of them is in csrc/loss.h.

A row's loss is a function of its margin v = y f(x). In the dual it has a variable p, 0 <= p <= 1 (squared hinge:
p >= 0), and g(p) = -loss*(-p), so that loss(v) + p v - g(p) >= 0, with equality at the optimum; see
docs/mathematics.md.
"""

from math import sqrt

import numpy as np
from scipy.special import entr, expit


class Loss:
    """One of the losses.

    Attributes
    ----------
    name : str
        As it is given to the estimators.
    radius : float
        The optimum lies within |w| <= radius / sqrt(lambda).
    lipschitz : bool
        Whether it changes by no more than its margin: what Theorem 1 asks for. Then p <= 1, too.
    """

    name: str
    radius: float
    lipschitz: bool

    def value(self, v):
        """loss(v)."""
        raise NotImplementedError

    def dual(self, p):
        """g(p)."""
        raise NotImplementedError

    def slope(self, v):
        """-loss'(v)."""
        raise NotImplementedError

    def settled(self, v, p, gap):
        """Rows that need no visit for now: margins change less and less as the relative gap closes."""
        raise NotImplementedError


def slack(gap):
    """How much a margin may yet change: the gap bounds the square of a change."""
    return min(max(2 * sqrt(gap), 0.03), 0.3)


class Hinge(Loss):
    """max(0, 1 - v)."""

    name, radius, lipschitz = "hinge", 1.0, True

    def value(self, v):
        return np.maximum(0, 1 - v)

    def dual(self, p):
        return p

    def slope(self, v):
        return (v < 1).astype(np.float64)

    def settled(self, v, p, gap):
        return ((p <= 0) & (v > 1 + slack(gap))) | ((p >= 1) & (v < 1 - slack(gap)))


class SquaredHinge(Loss):
    """max(0, 1 - v)^2."""

    name, radius, lipschitz = "squared_hinge", 0.5**0.5, False

    def value(self, v):
        return np.maximum(0, 1 - v) ** 2

    def dual(self, p):
        return p - p**2 / 4

    def slope(self, v):
        return 2 * np.maximum(0, 1 - v)

    def settled(self, v, p, gap):
        return (p <= 0) & (v > 1 + slack(gap))


class LogLoss(Loss):
    """log(1 + exp(-v))."""

    name, radius, lipschitz = "log_loss", 0.2785**0.5, True

    def value(self, v):
        return np.logaddexp(0, -v)

    def dual(self, p):
        return entr(p) + entr(1 - p)

    def slope(self, v):
        return expit(-v)

    def settled(self, v, p, gap):
        return np.abs(p - expit(-v)) < 0.02 * sqrt(gap) * p * (1 - p)


LOSSES = {loss.name: loss for loss in (Hinge(), SquaredHinge(), LogLoss())}
