"""Dual coordinate ascent: the loop, shrinking and the true gap. The steps are in csrc/dual.c."""

from math import isfinite, log2

import numpy as np

from . import _core
from ._problem import NAN, Record, inner


class Dual:
    """Block dual coordinate ascent with shrinking.

    Rows that sit at a bound, with a margin well beyond what would move them, are left out of the next epochs. When the
    gap that is seen along the way has fallen far enough, the margins of all rows are computed at one w: that gives the
    true gap, and the rows to go on with.
    """

    certified = True
    sweeps = 10

    def __init__(self, problem, random, tol, alpha=None):
        self.problem, self.random, self.tol = problem, random, tol
        self.table = problem.table()
        n = problem.n_rows
        self.alpha = np.zeros(n) if alpha is None else alpha
        self.margin = np.zeros(n)
        self.block = block_of(problem)
        expansion = problem.expansion
        training, self.rows = problem.training(self.table, self.block, expansion.margin, expansion.update)
        self.state = _core.Dual(training, problem.C, self.alpha, self.margin, self.sweeps)
        self.active = np.arange(n, dtype=np.int32)
        self.total, gaps, _ = self._terms(self.active)
        self.gap = gaps / n  # when all margins were last known: at w = 0 they are
        self._kept_table = None
        if alpha is not None and alpha.any():
            problem.add(self.table, problem.C * alpha * problem.y)
            self._evaluate()

    def epoch(self, last=False):
        """One epoch over the active rows; the last one ends with the true gap."""
        problem, state, active = self.problem, self.state, self.active
        others = self.total - self._terms(active)[0]
        order = self.random.permutation(active)
        self.rows.set_order(order)
        for begin, end in problem.passes(len(order), self.block):
            state.run(begin, end)
        terms, gaps, p = self._terms(active)
        self.total = others + terms
        dual = self.total / problem.n_rows - problem.lambda_ / 2 * state.norm2
        gap = max(gaps, 0.0) / problem.n_rows  # of rows as they were visited; that of the others is taken for 0
        seen = dual + gap
        if last or gap <= self.tol * seen or gap <= SEEN_FRACTION * self.gap or not len(active):
            primal, dual = self._evaluate()
            return Record(primal, dual, len(active), seen)
        self.active = active[~problem.loss.settled(self.margin[active], p, gap / seen)]
        return Record(NAN, dual, len(active), seen)

    def known(self, record):
        """The record of an epoch that ended without it, with the true objective."""
        if isfinite(record.primal):
            return record
        primal, dual = self._evaluate()
        return record._replace(primal=primal, dual=dual)

    def _terms(self, rows):
        """(sum of omega g(p), sum of omega (loss(v) + p v - g(p)), p) over some rows."""
        weight, loss, v = self.problem.weight, self.problem.loss, self.margin[rows]
        p = self.alpha[rows]
        if weight is not None:
            weight = weight[rows]
            p = p / weight
        dual = loss.dual(p)
        gaps = loss.value(v) + p * v - dual
        if weight is None:
            return float(dual.sum()), float(gaps.sum()), p
        return inner(weight, dual), inner(weight, gaps), p

    def _evaluate(self):
        """All margins at the present w: who is active, and (primal, dual) as they are."""
        problem = self.problem
        self.margin[:] = problem.margins(self.table, problem.expansion.margin)
        self.state.norm2 = norm2 = problem.norm2(self.alpha, self.margin)
        self.total, gaps, p = self._terms(slice(None))
        dual = self.total / problem.n_rows - problem.lambda_ / 2 * norm2
        self.gap = gaps / problem.n_rows
        primal = dual + self.gap
        settled = problem.loss.settled(self.margin, p, max(self.gap / primal, 0.0) if primal > 0 else 0.0)
        self.active = np.flatnonzero(~settled).astype(np.int32)
        return primal, dual

    def keep(self):
        """Remember this epoch's end."""
        self._kept = self.alpha.copy(), self.state.norm2
        # Where the table is larger than what an epoch changes, it is quicker to undo the epoch than to copy the table.
        problem = self.problem
        self._kept_table = None
        if problem.expansion.n_slots * problem.n_rows <= problem.n_monomials * len(self.active):
            self._kept_table = self.table.copy()

    def restore(self):
        """Return to the end of the last whole epoch."""
        alpha, norm2 = self._kept
        if self._kept_table is not None:
            self.table[:] = self._kept_table
        else:
            self.problem.add(self.table, self.problem.C * (alpha - self.alpha) * self.problem.y)
        self.alpha[:], self.state.norm2 = alpha, norm2

    def model(self):
        """The table that predicts."""
        return self.table

    def point(self):
        """A feasible dual point, and |w(alpha)|^2."""
        return self.alpha, self.state.norm2


def block_of(problem):
    """Rows in a block: as many as make its Gram matrix cost about as much as its margins.

    Both in multiply-adds a row: of the walk, and of the inner product with each other row, with what surrounds it. A
    dense walk does eight of them in the time of one.
    """
    n_rows, rows = problem.n_rows, problem.rows
    monomials, eight = problem.n_monomials / n_rows, 8 if rows.core.walk_dense else 1
    pairs = monomials / eight / (rows.mean_nonzeros / eight + 5)
    return int(2 ** np.clip(round(log2(1.5 * pairs)), 4, 8))


SEEN_FRACTION = 0.03  # of the last true gap: time to compute the true gap anew


def dual_start(problem, margins):
    """A dual point to begin with, from the margins of a primal solution: the slopes of the losses."""
    slopes = problem.loss.slope(margins)
    return slopes if problem.weight is None else slopes * problem.weight
