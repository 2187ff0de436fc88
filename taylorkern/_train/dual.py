"""Dual coordinate ascent: the loop, shrinking and the true gap. The steps are in csrc/train/dual.c."""

from math import log2
from typing import Any

import numpy as np

from .. import _core
from .problem import NAN, Record, Trained


class Dual:
    """Block dual coordinate ascent with shrinking.

    Rows that sit at a bound, with a margin well beyond what would move them, are left out of the next epochs. When the
    gap that is seen along the way has fallen far enough, the margins of all rows are computed at one w: that gives the
    true gap, and the rows to go on with. Outputs whose true gap is small enough stay as they are from there on.

    Ctrl-C finds the table, alpha and |w|^2 as the last whole pass has left them: they belong together.
    """

    certified = True
    sweeps = 10
    SHARED = ("table", "alpha", "margin", "norm2", "live")  # with C
    STATE = ("active", "visited", "total", "of_active", "gap", "primal", "dual")

    def __init__(self, problem, random, tol, alpha=None):
        self.problem, self.random, self.tol = problem, random, tol
        self.table = problem.table()
        n, n_outputs = problem.n_rows, problem.n_outputs
        self.alpha = np.zeros((n, n_outputs)) if alpha is None else alpha
        self.margin = problem.to_margins(np.zeros((n, n_outputs)))
        self.norm2 = np.zeros(n_outputs)
        self.live = np.ones(n_outputs, dtype=np.uint8)
        self.block = block_of(problem)
        expansion = problem.expansion
        self.team = problem.team()
        maps = expansion.margin, expansion.update
        training, self.rows = problem.training(self.table, self.block, *maps, team=self.team)
        self.state = _core.Dual(training, problem.C, self.alpha, self.margin, self.norm2, self.live, self.sweeps)
        self.active = np.arange(n, dtype=np.int32)
        self.visited = 0  # rows, since all margins were last known
        terms = problem.terms(self.margin, self.alpha)
        self.total, self.gap = terms[1], terms[2]  # the gap when all margins were last known: at w = 0 they are
        self.of_active = terms[1]  # what the active rows have of the total
        self.primal, self.dual = terms[0], terms[1]
        self._active = np.empty(n, dtype=np.uint8)
        self._spare = np.empty((2, n), dtype=np.int32)  # for active rows, in turn
        if alpha is not None and alpha.any():
            problem.add(self.table, alpha)
            self._evaluate()

    @staticmethod
    def blank(problem):
        """Arguments for one that is to be told of its state."""
        return {}

    def epoch(self, last=False):
        """One epoch over the active rows; the last one ends with the true gap."""
        problem, active = self.problem, self.active
        order = problem.shuffled(self.random, active)
        self.rows.set_order(order)
        for begin, end in problem.passes(len(order), self.block):
            self.team.run(self.state, begin, end)
        terms = problem.terms(self.margin, self.alpha, active, self.live)
        self.total = self.total + (terms[1] - self.of_active)
        self.dual = self.total - problem.lambda_ / 2 * problem.per_problem(self.norm2)
        gap = np.maximum(terms[2], 0.0)  # of rows as they were visited; that of the others is taken for 0
        live: Any = slice(None)
        if not (problem.loss.joint or all(self.live.tolist())):
            live = self.live.view(bool)
            gap = np.where(live, gap, self.gap)
        seen = self.dual + gap
        self.visited += len(active)
        if last or not len(active) or self._is_time(gap[live], seen[live], self.gap[live]):
            self._evaluate(last)
            return Record(self.primal, self.dual, len(active), seen)
        self._choose(active, gap / np.where(seen > 0, seen, 1))
        primal = self.primal.copy()
        primal[live] = NAN
        return Record(primal, self.dual, len(active), seen)

    def _is_time(self, gap, seen, before):
        """Whether the true gap may be small enough, or far enough below the one `before`, to be worth its time.

        It is more than what was seen along the way: rows have been left out.
        """
        of_tol, of_gap = SEEN_LATE if self.visited >= 2 * self.problem.n_rows else SEEN_SOON
        small = (gap <= of_tol * self.tol * seen).tolist()  # of one number or of a few numpy's sums take longer
        return 2 * sum(small) >= len(small) or sum(gap.tolist()) <= of_gap * sum(before.tolist())

    def known(self, record):
        """The record of an epoch that ended without it, with the true objective."""
        if np.isfinite(record.primal).all():
            return record
        self._evaluate()
        return record._replace(primal=self.primal, dual=self.dual)

    def _choose(self, among, gap):
        """Who is active, when the relative gap is this."""
        problem = self.problem
        self.of_active = problem.terms(self.margin, self.alpha, among, self.live, self._active, gap)[1]
        kept = self._spare[0, : problem.n_rows if among is None else len(among)]
        self._spare = self._spare[::-1]
        self.active = kept[: _core.active_rows(among, self._active, kept)]

    def _evaluate(self, last=False):
        """All margins at the present w: the objectives as they are, who is live, who is active from here on."""
        problem = self.problem
        problem.margins(self.table, problem.expansion.margin, out=self.margin)
        self.visited = 0
        terms = problem.terms(self.margin, self.alpha)
        norm2 = np.maximum(problem.C * problem.n_rows * terms[3], 0.0)
        self.norm2[:] = norm2 * (len(norm2) / len(self.norm2))  # under a joint loss only their sum counts
        self.total, self.gap = terms[1], terms[2]
        self.dual = self.total - problem.lambda_ / 2 * norm2
        self.primal = self.dual + self.gap
        if not problem.loss.joint:
            self.live[:] = self.gap > self.tol * self.primal
        if self.live.any() and not last:
            self._choose(None, self.gap / np.where(self.primal > 0, self.primal, 1))

    def model(self):
        """The tables that predict."""
        return self.table

    def point(self):
        """A feasible dual point, and |w(alpha)|^2 for each problem."""
        return self.alpha, self.problem.per_problem(self.norm2)

    def trained(self):
        """The model, for its certificate: when the last epoch has ended with all margins."""
        return Trained(self.table, "margin", self.margin, self.problem.per_problem(self.norm2))

    def in_cells(self):
        """|w|^2 of each cell, of the model and of w(alpha), which is the same."""
        norms = self.problem.norms_in_cells(self.alpha, self.margin)
        return norms, norms


def block_of(problem):
    """Rows in a block: as many as make its Gram matrix about as many multiply-adds as its margins, or half of that.

    Both for each row: of the walk, and of the inner product with each other row, with what surrounds it. A dense walk
    does eight of them in the time of one; a Gram matrix, too, is made by vectors. Larger blocks take fewer epochs, and
    threads wait less often for one another; but of dense rows more of them move.
    """
    n_rows, rows = problem.n_rows, problem.rows
    monomials, eight = problem.n_monomials / n_rows, 8 if rows.core.walk_dense else 1
    pairs = monomials / eight / (rows.mean_nonzeros / eight + 5)
    return 2 ** min(max(round(log2((0.75 if rows.core.walk_dense else 1.5) * pairs)), 4), 8)


# It is time to compute the true gap when the one that is seen is at most this share of tol, for half of the problems,
# or this share of the last true gap. Once so many rows have been visited that the margins of all are little beside
# them, it is time somewhat earlier.
SEEN_SOON, SEEN_LATE = (0.7, 0.003), (1.0, 0.03)


def dual_start(problem, margins):
    """A dual point to begin with, from the margins of a primal solution: the slopes of the losses."""
    alpha = np.empty_like(margins)
    problem.targets.slopes(margins, alpha)
    return alpha
