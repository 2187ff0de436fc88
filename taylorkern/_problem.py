"""The problem that is trained: rows, labels, weights, a kernel expansion, a loss and C; and its objectives."""

from typing import NamedTuple

import numpy as np

from . import _core
from ._expansion import PASS_MONOMIALS
from ._rows import Rows, dot_rows

NAN = float("nan")


class Problem:
    """Rows with labels and weights, a kernel expansion, a loss and C.

    The objective is lambda/2 |w|^2 + mean_i omega_i loss(y_i <w, phi(x_i)>), with weights omega_i of mean 1 and
    lambda = 1 / (C n), where this C is the user's times the mean of the user's weights.

    Parameters
    ----------
    X : ndarray or CSR
        Rows as they are walked.
    y : ndarray of int8
        -1 or 1.
    weight : ndarray of float64, or None
        The user's weights, > 0; None: all 1.
    expansion : Expansion
        The features.
    loss : Loss
        The loss.
    C : float
        The user's C.
    n_jobs : int
        Threads that compute margins.
    unit : float, default=None
        What weights are divided by: their mean, or 1 for rows that are part of a stream.
    """

    def __init__(self, X, y, weight, expansion, loss, C, n_jobs=1, unit=None):
        self.rows = Rows(X)
        self.y = y
        self.expansion = expansion
        self.loss = loss
        self.n_jobs = n_jobs
        self.n_rows = self.rows.n_rows
        self.dtype = self.rows.dtype
        unit = 1.0 if weight is None else unit or float(weight.mean())
        self.weight = None if weight is None else weight / unit
        self.C = C * unit
        self.lambda_ = 1 / (self.C * self.n_rows)
        self.rows.check_longest(expansion)
        self.n_monomials = self.rows.choose_walk(expansion)
        self._scratch = self.rows.scratch()

    def table(self):
        """A table of zeros, one for each slot."""
        return np.zeros(self.expansion.n_slots, dtype=self.dtype)

    def training(self, w, block, margin=None, update=None):
        """C's view of the problem, with a table to train, and the rows to put in order: (training, rows).

        By default the table holds the weights of features.
        """
        rows = self.rows.twin()
        scratch = np.zeros(_core.training_scratch_bytes(rows, block), dtype=np.uint8)
        margin, update = margin or self.expansion.features, update or self.expansion.features
        return _core.Training(rows, margin, update, w, self.loss.name, self.y, self.weight, block, scratch), rows

    def margins(self, w, walked=None):
        """y_i f(x_i) of all rows, in float64; w holds weights of features, or goes with the map `walked`."""
        f = dot_rows(self.rows, self.expansion, walked or self.expansion.features, w, self.n_jobs)
        return np.multiply(f, self.y, dtype=np.float64)

    def add(self, table, coefficients, walked=None):
        """Add sum_i coefficients_i phi(x_i) to a model's table, or to weights when `walked` are the features."""
        walked = walked or self.expansion.update
        used = np.flatnonzero(coefficients).astype(np.int32)
        rows = self.rows.twin()
        rows.set_order(used)
        t = coefficients[used].astype(self.dtype)[:, None]
        for first, last in self.passes(len(used)):
            _core.add(rows, walked, first, last, table[:, None], t[first:last], self._scratch)

    def passes(self, n, block=8):
        """Ranges of n rows in random order, each of about 10 ms."""
        step = max(1, PASS_MONOMIALS * self.n_rows // max(self.n_monomials, 1) // block) * block
        for first in range(0, n, step):
            yield first, min(first + step, n)

    def mean(self, values):
        """The weighted mean over rows."""
        return float(values.mean() if self.weight is None else inner(values, self.weight) / self.n_rows)

    def share(self, alpha):
        """p_i = alpha_i / omega_i."""
        return alpha if self.weight is None else alpha / self.weight

    def primal(self, margins, norm2):
        """The objective at a w with these margins and this |w|^2."""
        return self.lambda_ / 2 * norm2 + self.mean(self.loss.value(margins))

    def dual(self, alpha, norm2):
        """The dual objective at alpha, where |w(alpha)|^2 is norm2."""
        return self.mean(self.loss.dual(self.share(alpha))) - self.lambda_ / 2 * norm2

    def norm2(self, alpha, margins):
        """|w(alpha)|^2 = C sum_i alpha_i y_i f(x_i), from the margins under w(alpha) itself."""
        return max(self.C * inner(alpha, margins), 0.0)


class Record(NamedTuple):
    """What is known after an epoch; NaN where nothing is."""

    primal: float
    dual: float
    active: int
    seen: float  # the primal objective with each row's margin as it was when the row was visited


def inner(a, b):
    """<a, b> of two vectors; not by BLAS, whose results depend on its number of threads."""
    return float(np.einsum("i,i->", a, b, dtype=np.float64))


def squared_norm(w):
    """|w|^2, in double precision."""
    return inner(w, w)
