"""The losses: the formulas that Python needs of them. The steps' share of them is in csrc/loss.h.

A row's loss is a function of its margin v = y f(x). In the dual it has a variable p, 0 <= p <= 1 (squared hinge:
p >= 0), and g(p) = -loss*(-p), so that loss(v) + p v - g(p) >= 0, with equality at the optimum; see
docs/mathematics.md.
"""

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

    def settled(self, v, p, slack):
        """Rows that need no visit as long as margins change by less than `slack`."""
        raise NotImplementedError


class Hinge(Loss):
    """max(0, 1 - v)."""

    name, radius, lipschitz = "hinge", 1.0, True

    def value(self, v):
        return np.maximum(0, 1 - v)

    def dual(self, p):
        return p

    def slope(self, v):
        return (v < 1).astype(np.float64)

    def settled(self, v, p, slack):
        return ((p <= 0) & (v > 1 + slack)) | ((p >= 1) & (v < 1 - slack))


class SquaredHinge(Loss):
    """max(0, 1 - v)^2."""

    name, radius, lipschitz = "squared_hinge", 0.5**0.5, False

    def value(self, v):
        return np.maximum(0, 1 - v) ** 2

    def dual(self, p):
        return p - p**2 / 4

    def slope(self, v):
        return 2 * np.maximum(0, 1 - v)

    def settled(self, v, p, slack):
        return (p <= 0) & (v > 1 + slack)


class LogLoss(Loss):
    """log(1 + exp(-v))."""

    name, radius, lipschitz = "log_loss", 0.2785**0.5, True

    def value(self, v):
        return np.logaddexp(0, -v)

    def dual(self, p):
        return entr(p) + entr(1 - p)

    def slope(self, v):
        return expit(-v)

    def settled(self, v, p, slack):
        return np.abs(p - expit(-v)) < 0.01 * slack * p * (1 - p)


LOSSES = {loss.name: loss for loss in (Hinge(), SquaredHinge(), LogLoss())}
