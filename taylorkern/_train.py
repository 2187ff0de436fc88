"""Training: the problem, and the solvers' loops, schedules and stopping rules. The steps themselves are in csrc/.

A solver has `epoch()`, which runs one and returns what it knows of the objective, and `model()`, the table that
predicts (see `Expansion.margin`; the stochastic solvers work on weights of features, the dual one on such a table).
`train` runs epochs until the gap between primal and dual objective is small enough.
"""

from math import isfinite, log, log2, sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._rows import PASS_MONOMIALS, Rows, dot_rows

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
        self.gap = np.inf  # when all margins were last computed
        self.total = self._terms(self.active)[0]
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
    nonzeros = float(rows.histogram @ np.arange(len(rows.histogram))) / n_rows
    monomials, eight = problem.n_monomials / n_rows, 8 if rows.core.walk_dense else 1
    pairs = monomials / eight / (nonzeros / eight + 5)
    return int(2 ** np.clip(round(log2(1.5 * pairs)), 4, 8))


SEEN_FRACTION = 0.1  # of the last true gap: time to compute the true gap anew


class Pegasos:
    """The paper's solver: mini-batches, step 1 / (lambda t), the average of the iterates.

    w(alpha) is the last iterate, and its alpha is feasible after each whole epoch: a certificate at no cost.
    """

    certified = True
    block = 16

    def __init__(self, problem, random, tol, alpha=None):
        self.problem, self.random, self.tol = problem, random, tol
        self.w, self.average = problem.table(), problem.table()
        self.alpha = np.zeros(problem.n_rows)
        n_blocks = -(-problem.n_rows // self.block)
        # Without the projection, early steps of a loss with unbounded slopes run away.
        radius = 0.0 if problem.loss.lipschitz else problem.loss.radius / sqrt(problem.lambda_)
        t, norm2 = 0, 0.0
        if alpha is not None and alpha.any():  # it counts as one epoch
            self.alpha[:] = problem.C * alpha
            problem.add(self.w, self.alpha * problem.y, problem.expansion.features)
            t, norm2 = n_blocks, squared_norm(self.w)
        training, self.rows = problem.training(self.w, self.block)
        self.state = _core.Pegasos(training, problem.lambda_, n_blocks / problem.n_rows, radius, self.alpha, t, norm2)
        self.epochs = 0

    def epoch(self, last=False):
        """One epoch over all rows."""
        problem, state = self.problem, self.state
        if self.epochs & (self.epochs - 1) == 0:  # a power of two: so the average is always over half of the epochs
            self.average[:] = 0
            state.begin_average(self.average)
        order = self.random.permutation(problem.n_rows).astype(np.int32)
        self.rows.set_order(order)
        for begin, end in problem.passes(len(order), self.block):
            state.run(begin, end)
        self.epochs += 1
        return self._evaluate()

    def _evaluate(self):
        """The objective at the last iterate and at the averaged one; the better one is the model."""
        problem, state = self.problem, self.state
        margins = problem.margins(self.w)
        alpha = state.scale / problem.C * self.alpha
        norm2 = problem.norm2(alpha, state.scale * margins)
        last, dual = problem.primal(state.scale * margins, norm2), problem.dual(alpha, norm2)
        a, b = (self.w.dtype.type(factor) for factor in state.averaging)
        model = a * self.average
        model += b * self.w
        averaged = problem.primal(problem.margins(model), squared_norm(model))
        if last < averaged:
            np.multiply(self.w, self.w.dtype.type(state.scale), out=model)
        self._next = model, alpha, norm2
        return Record(min(last, averaged), dual, problem.n_rows, NAN)

    def keep(self):
        """Remember this epoch's end."""
        self._kept = self._next

    def restore(self):
        """Nothing to do: the model is that of the last whole epoch already."""

    def known(self, record):
        """The true objective is always known."""
        return record

    def model(self):
        """The table that predicts: the averaged iterate, or the last one where that is better."""
        return self.problem.expansion.to_table(self._kept[0].copy())

    def point(self):
        """A feasible dual point, and |w(alpha)|^2."""
        return self._kept[1:]


class Adagrad:
    """Steps with a size of their own for each slot, and the average of the iterates. It has no dual point.

    Parameters are those of the other solvers (alpha is of no use to it), and the state of a stream to go on with.
    """

    certified = False

    def __init__(self, problem, random, tol, alpha=None, stream=None):
        self.problem, self.random, self.tol = problem, random, tol
        if stream is None:
            stream = Stream(problem.table(), problem.table(), problem.table(), 0, 0, 0, NAN)
            stream.squares[:] = FLOOR
        self.w, self.squares, self.average = (
            _grown(table, problem, fill) for table, fill in zip(stream[:3], (0, FLOOR, 0), strict=True)
        )
        self.n_averaged, self.n_seen, self.n_restarted, self.eta = stream[3:]
        # Dense rows share each load of the table; sparse ones learn from one another at once.
        self.block = 8 if problem.rows.core.walk_dense else 1
        self.training, self.rows = problem.training(self.w, self.block)
        if np.isnan(self.eta):
            self.eta = self._search() if problem.n_rows >= SEARCH_FROM else UNSEARCHED
        self.epochs, self._reached = 0, np.inf

    def stream(self):
        """The state, for the next batch."""
        return Stream(self.w, self.squares, self.average, self.n_averaged, self.n_seen, self.n_restarted, self.eta)

    def take_batch(self):
        """One pass over rows that are part of a stream."""
        # So that the average is over at least the later half of the rows.
        if self.n_seen >= 2 * self.n_restarted or not self.n_averaged:
            self.average[:], self.n_averaged, self.n_restarted = 0, 0, self.n_seen
        weight = self.problem.weight
        self.n_seen += self.problem.n_rows if weight is None else float(weight.sum())
        self._better = True
        try:
            self._steps(1 / (self.problem.C * self.n_seen))
        finally:  # after Ctrl-C it stands where it is
            self.keep()

    def _steps(self, lambda_):
        state = _core.Adagrad(self.training, self.squares, self.eta)
        self._run(state, self.random.permutation(self.problem.n_rows).astype(np.int32), lambda_)

    def _run(self, state, order, lambda_):
        problem, n_slots = self.problem, self.problem.expansion.n_slots
        self.rows.set_order(order)
        # The regulariser takes a pass over the table: several times an epoch, but not so often that it costs much.
        parts = int(np.clip(problem.n_monomials // (8 * n_slots), 1, 16))
        for part in range(parts):
            begin, end = (len(order) * k // parts for k in (part, part + 1))
            for first, last in problem.passes(end - begin, self.block):
                state.run(begin + first, begin + last)
            for slot in range(0, n_slots, PASS_MONOMIALS):
                state.shrink(lambda_ * self.eta * (end - begin), slot, min(slot + PASS_MONOMIALS, n_slots))
            self.average += self.w
            self.n_averaged += 1

    def epoch(self, last=False):
        """One epoch over all rows."""
        problem = self.problem
        if self.epochs & (self.epochs - 1) == 0:  # a power of two: so the average is always over half of the epochs
            self.average[:], self.n_averaged = 0, 0
        self._steps(problem.lambda_)
        self.n_seen += problem.n_rows
        self.epochs += 1
        last = problem.primal(problem.margins(self.w), squared_norm(self.w))
        n = self.n_averaged
        averaged = problem.primal(problem.margins(self.average) / n, squared_norm(self.average) / n**2)
        self._better = averaged <= last
        if min(last, averaged) > self._reached:  # it went too far
            self.eta *= 0.7
        self._reached = min(last, averaged)
        return Record(min(last, averaged), NAN, problem.n_rows, NAN)

    def keep(self):
        """Remember this epoch's end."""
        averaged = self._better and self.n_averaged
        self._kept = self.average / self.average.dtype.type(self.n_averaged) if averaged else self.w.copy()

    def restore(self):
        """Nothing to do: the model is that of the last whole epoch already."""

    def known(self, record):
        """The true objective is always known."""
        return record

    def model(self):
        """The table that predicts: the averaged iterate, or the last one where that is better."""
        return self.problem.expansion.to_table(self._kept.copy())

    def point(self):
        """It has none."""
        return None, NAN

    def _search(self):
        """The step size that does best on a sample of the rows: up or down from 1, as long as that is better."""
        problem = self.problem
        n_sample = min(max(problem.n_rows // 8, SEARCH_ROWS // 8), SEARCH_ROWS)
        order = self.random.permutation(problem.n_rows)[:n_sample].astype(np.int32)
        found = {1.0: self._try(1.0, order)}
        for factor in (3.0, 1 / 3):
            eta = factor
            while abs(log(eta)) < 5 and found.setdefault(eta, self._try(eta, order)) < found[eta / factor]:
                eta *= factor
            if len(found) > 2:
                break
        self.w[:], self.squares[:], self.average[:], self.n_averaged = 0, FLOOR, 0, 0
        return min(found, key=lambda eta: found[eta])

    def _try(self, eta, order):
        """The objective after some epochs over a sample, the last of which is averaged."""
        self.w[:], self.squares[:], self.eta = 0, FLOOR, eta
        state = _core.Adagrad(self.training, self.squares, eta)
        for _ in range(SEARCH_EPOCHS):
            self.average[:], self.n_averaged = 0, 0
            self._run(state, order, self.problem.lambda_)
        value = self._sample_objective(order)
        return value if isfinite(value) else float("inf")

    def _sample_objective(self, order):
        """The objective of the averaged iterate, with the loss on the rows of the sample."""
        problem = self.problem
        scratch, out = problem.rows.scratch(), np.empty((len(order), 1), dtype=problem.dtype)
        for first, last in problem.passes(len(order)):
            part = out[first:last]
            _core.dot(self.rows, problem.expansion.features, first, last, self.average[:, None], part, scratch)
        margins = out[:, 0] * problem.y[order] / self.n_averaged
        loss = problem.loss.value(margins.astype(np.float64))
        weight = 1 if problem.weight is None else problem.weight[order]
        return float(np.mean(weight * loss)) + problem.lambda_ / 2 * squared_norm(self.average) / self.n_averaged**2


class Stream(NamedTuple):
    """What AdaGrad carries from one batch to the next."""

    w: np.ndarray
    squares: np.ndarray
    average: np.ndarray
    n_averaged: int
    n_seen: float  # rows, by their weights
    n_restarted: float  # rows that had been seen when the average began
    eta: float

    @classmethod
    def after(cls, problem, table):
        """A stream that goes on from a model of another solver: the batch tells how large gradients are."""
        w, squares = _grown(table.copy(), problem), np.full(problem.expansion.n_slots, FLOOR, dtype=problem.dtype)
        training, rows = problem.training(w, 1)
        rows.set_order(np.arange(problem.n_rows, dtype=np.int32))
        state = _core.Adagrad(training, squares, 0.0)
        for first, last in problem.passes(problem.n_rows):
            state.run(first, last)
        return cls(w, squares, problem.table(), 0, problem.n_rows, 0, CAREFUL)


def _grown(table, problem, fill=0):
    """The table with slots for new columns, which come behind the others."""
    more = problem.expansion.n_slots - len(table)
    return table if more == 0 else np.concatenate([table, np.full(more, fill, dtype=table.dtype)])


FLOOR = 1e-12  # of the sums of squared gradients
UNSEARCHED, SEARCH_FROM = 0.3, 32  # the step size where there are fewer rows than this to search on
CAREFUL = 0.1  # the step size for a model that another solver has trained
SEARCH_ROWS, SEARCH_EPOCHS = 16384, 3


def inner(a, b):
    """<a, b> of two vectors; not by BLAS, whose results depend on its number of threads."""
    return float(np.einsum("i,i->", a, b, dtype=np.float64))


def squared_norm(w):
    """|w|^2, in double precision."""
    return inner(w, w)


def dual_start(problem, margins):
    """A dual point to begin with, from the margins of a primal solution: the slopes of the losses."""
    slopes = problem.loss.slope(margins)
    return slopes if problem.weight is None else slopes * problem.weight


SOLVERS: dict[str, Any] = {"dual": Dual, "pegasos": Pegasos, "adagrad": Adagrad}


class Outcome(NamedTuple):
    """How a training ended."""

    n_iter: int
    converged: bool
    interrupted: bool
    record: Record  # of the last epoch


def train(solver, *, tol, max_iter, observer=None):
    """Run epochs until the gap is at most tol times the primal objective.

    Parameters
    ----------
    solver : Dual, Pegasos or Adagrad
        The solver. Afterwards it stands at the end of an epoch, also after Ctrl-C.
    tol : float
        For a solver without a dual point: training ends when the objective falls by no more than this share in each of
        two epochs.
    max_iter : int
        Epochs at most.
    observer : Observer, default=None
        Told when an epoch begins; and when one has ended its number, the seconds since the start and its record:
        training ends when it then returns True.

    Returns
    -------
    outcome : Outcome
    """
    begin, n_iter, slow, stop, interrupted = perf_counter(), 0, 0, False, False
    record = Record(NAN, NAN, 0, NAN)
    converged = finished = False
    try:
        while n_iter < max_iter and not converged and not stop:
            finished = False
            if observer:
                observer.begin_epoch()
            before, record = record, solver.epoch(last=n_iter + 1 == max_iter)
            finished = True
            n_iter += 1
            solver.keep()
            if solver.certified:
                converged = record.primal - record.dual <= tol * record.primal
            else:
                slow = slow + 1 if 0 <= before.primal - record.primal <= tol * record.primal else 0
                converged = slow >= 2
            if observer:
                stop = observer.end_epoch(n_iter, perf_counter() - begin, record)
        record = solver.known(record)
    except KeyboardInterrupt:
        interrupted = True
        if not finished and n_iter:
            solver.restore()
    return Outcome(n_iter, converged, interrupted, record)
