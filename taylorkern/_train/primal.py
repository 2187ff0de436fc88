"""Stochastic steps on the primal objective: Pegasos and AdaGrad. The steps are in csrc/train/primal.c.

Both work on weights of features; `model` makes the table that predicts.
"""

from math import isfinite, log
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._data.expansion import PASS_MONOMIALS
from .._data.threads import share_out
from .problem import NAN, Record, Trained, squared_norms


class Pegasos:
    """The paper's solver: mini-batches, step 1 / (lambda t), the average of the iterates.

    w(alpha) is the last iterate, and its alpha is feasible after each whole epoch: a certificate at no cost.
    Ctrl-C leaves the model of the last whole epoch.
    """

    certified = True
    block = 16
    SHARED = ("w", "average", "alpha", "scale", "norm2", "shift")  # with C
    STATE = ("t", "n_averaged", "epochs")

    def __init__(self, problem, random, tol, alpha=None):
        self.problem, self.random, self.tol = problem, random, tol
        self.w, self.average = problem.table(), problem.table()
        n_outputs = problem.n_outputs
        self.alpha = np.zeros((problem.n_rows, n_outputs))
        n_blocks = -(-problem.n_rows // self.block)
        # Slopes of squared losses have no bound: steps of 1 / (lambda t) would run away at first. So they begin at a t
        # that makes them about as short as those of gradient descent, and what leaves the optimum's ball is projected.
        t, radius, norm2 = 0, None, np.zeros(n_outputs)
        if not problem.loss.lipschitz:
            t, radius = int(min(problem.steepest() / (2 * problem.lambda_), 2**53)), problem.radius()
        if alpha is not None and alpha.any():  # it counts as one epoch
            self.alpha[:] = problem.C * alpha
            problem.add(self.w, alpha, problem.expansion.features)
            t, norm2 = max(t, n_blocks), squared_norms(self.w)[:n_outputs]
        self.team = problem.team()
        self.training, self.rows = problem.training(self.w, self.block, team=self.team)
        self.share, self.radius = n_blocks / problem.n_rows, radius
        self.scale, self.norm2, self.shift = np.ones(n_outputs), norm2, np.zeros(n_outputs)
        self.t, self.n_averaged, self.epochs = t, 0, 0
        self._kept: Any = None

    @staticmethod
    def blank(problem):
        """Arguments for one that is to be told of its state."""
        return {}

    def epoch(self, last=False):
        """One epoch over all rows."""
        problem = self.problem
        if self.epochs:
            self._ended()
        if self.epochs & (self.epochs - 1) == 0:  # a power of two: so the average is always over half of the epochs
            self.average[:], self.shift[:], self.n_averaged = 0, 0, 0
        vectors = self.alpha, self.scale, self.norm2
        state = _core.Pegasos(self.training, problem.lambda_, self.share, self.radius, *vectors, self.t)
        state.begin_average(self.average, self.shift)
        order = problem.together(self.random.permutation(problem.n_rows))
        self.rows.set_order(order)
        for begin, end in problem.passes(len(order), self.block):
            self.team.run(state, begin, end)
        self.t += state.n_averaged
        self.n_averaged += state.n_averaged
        self.epochs += 1
        return self._evaluate()

    def _evaluate(self):
        """The objectives at the last iterate and at the averaged one; the better one is the model."""
        problem, scale, shift = self.problem, self.scale, self.shift
        margins = problem.to_margins(scale * problem.outputs(self.w))
        alpha = scale / problem.C * self.alpha
        norm2 = problem.norm2(alpha, margins)
        last, dual = problem.primal(margins, norm2), problem.dual(alpha, norm2)
        n = self.n_averaged
        model = self.w * by_table(shift, self.w)
        model += self.average
        model /= self.w.dtype.type(n)
        averaged = problem.primal(problem.margins(model), norms(problem, model))
        for k in np.flatnonzero(np.broadcast_to(last < averaged, problem.n_outputs)):
            np.multiply(self.w[:, k], self.w.dtype.type(scale[k]), out=model[:, k])
        self._kept = model, alpha, norm2
        return Record(np.minimum(last, averaged), dual, problem.n_rows, np.full_like(last, NAN))

    def _ended(self):
        """The last whole epoch: the model, and alpha and |w(alpha)|^2 of its last iterate."""
        if self._kept is None:  # it was another solver's, and has come with a checkpoint
            self._evaluate()
        return self._kept

    def known(self, record):
        """The true objective is always known."""
        return record

    def model(self):
        """The table that predicts: the averaged iterate, or the last one where that is better."""
        return self.problem.to_table(self._ended()[0].copy())

    def point(self):
        """A feasible dual point, and |w(alpha)|^2 for each problem."""
        return self._ended()[1:]

    def trained(self):
        """The model, for its certificate."""
        return trained(self.problem, self._ended()[0])

    def in_cells(self):
        """|w|^2 of each cell, of the model and of w(alpha), the last iterate."""
        problem, (model, alpha, _) = self.problem, self._ended()
        margins = problem.to_margins(self.scale * problem.outputs(self.w))
        return problem.weight_norms_in_cells(model), problem.norms_in_cells(alpha, margins)


class Adagrad:
    """Steps with a size of their own for each slot, and the average of the iterates. It has no dual point.

    Parameters are those of the other solvers (alpha is of no use to it), and the state of a stream to go on with.
    Ctrl-C finds it where it stands, after some of an epoch's steps.
    """

    certified = False
    SHARED = ("w", "squares", "average")  # with C
    STATE = ("n_averaged", "n_seen", "n_restarted", "eta", "unit", "epochs", "_reached", "_better")

    def __init__(self, problem, random, tol, alpha=None, stream=None):
        self.problem, self.random, self.tol = problem, random, tol
        if stream is None:
            stream = Stream.new(problem)
        self.n_averaged, self.n_seen, self.n_restarted, self.eta, self.unit = stream[3:]
        self.w, self.squares, self.average = (
            _grown(table, problem, fill) for table, fill in zip(stream[:3], (0, self.floor, 0), strict=True)
        )
        self.block, self.team = adagrad_block(problem), problem.team(ADAGRAD_STEPS)
        self.training, self.rows = problem.training(self.w, self.block, team=self.team)
        if np.isnan(self.eta):
            self.eta = self._search() if problem.n_rows >= SEARCH_FROM else UNSEARCHED
        self.epochs, self._reached, self._better = 0, np.inf, np.ones(problem.n_outputs, dtype=bool)

    @staticmethod
    def blank(problem):
        """Arguments for one that is to be told of its state: nothing to search for."""
        return {"stream": Stream.new(problem)._replace(eta=UNSEARCHED)}

    @property
    def floor(self):
        """Where the sums of squared gradients begin."""
        return floor_of(self.problem, self.unit)

    def stream(self):
        """The state, for the next batch."""
        counts = self.n_averaged, self.n_seen, self.n_restarted
        return Stream(self.w, self.squares, self.average, *counts, self.eta, self.unit)

    def take_batch(self):
        """One pass over rows that are part of a stream."""
        # So that the average is over at least the later half of the rows.
        if self.n_seen >= 2 * self.n_restarted or not self.n_averaged:
            self.n_averaged, self.n_restarted, self.average[:] = 0, self.n_seen, 0
        weight = self.problem.weight
        self.n_seen += self.problem.n_rows if weight is None else float(weight.sum())
        self._better[:] = True
        self._steps(1 / (self.problem.C * self.n_seen))

    def _steps(self, lambda_):
        state = _core.Adagrad(self.training, self.squares, self.eta, self.unit)
        self._run(state, self.problem.together(self.random.permutation(self.problem.n_rows)), lambda_)

    def _run(self, state, order, lambda_):
        problem, n_slots = self.problem, self.problem.n_slots
        self.rows.set_order(order)
        # The regulariser takes a pass over the tables: several times an epoch, but not so often that it costs much.
        parts = int(np.clip(problem.n_monomials // (8 * n_slots), 1, 16))
        for part in range(parts):
            begin, end = (len(order) * k // parts for k in (part, part + 1))
            for first, last in problem.passes(end - begin, self.block):
                self.team.run(state, begin + first, begin + last)
            try:
                settle(state, lambda_ * self.eta * (end - begin), self.average, problem.n_jobs)
                self.n_averaged += 1
            except KeyboardInterrupt:  # some slots have one iterate more in their average than others
                self.n_averaged = 0
                raise

    def epoch(self, last=False):
        """One epoch over all rows."""
        problem = self.problem
        if self.epochs & (self.epochs - 1) == 0:  # a power of two: so the average is always over half of the epochs
            self.n_averaged, self.average[:] = 0, 0
        self._steps(problem.lambda_)
        self.n_seen += problem.n_rows
        self.epochs += 1
        last = problem.primal(problem.margins(self.w), norms(problem, self.w))
        n = self.n_averaged
        margins = problem.to_margins(problem.outputs(self.average) / n)
        averaged = problem.primal(margins, norms(problem, self.average) / n**2)
        self._better[:] = averaged <= last
        reached = np.minimum(last, averaged)
        if reached.sum() > self._reached:  # it went too far
            self.eta *= 0.7
        self._reached = reached.sum()
        return Record(reached, np.full_like(last, NAN), problem.n_rows, np.full_like(last, NAN))

    def _weights(self):
        """The model: the averaged iterate, or the last one where that is better or there is no average."""
        weights = self.w.copy()
        for k in np.flatnonzero(self._better) if self.n_averaged else ():
            np.divide(self.average[:, k], self.average.dtype.type(self.n_averaged), out=weights[:, k])
        return weights

    def known(self, record):
        """The true objective is always known."""
        return record

    def model(self):
        """The table that predicts: the averaged iterate, or the last one where that is better."""
        return self.problem.to_table(self._weights())

    def point(self):
        """It has none."""
        return None, NAN

    def trained(self):
        """The model, for its certificate."""
        return trained(self.problem, self._weights())

    def in_cells(self):
        """|w|^2 of each cell, of the model; None of w(alpha)."""
        return self.problem.weight_norms_in_cells(self._weights()), None

    def _search(self):
        """The step size that does best on a sample of the rows: up or down from 1, as long as that is better."""
        problem = self.problem
        order = problem.together(self.random.permutation(problem.n_rows)[: n_searched(problem.n_rows)])
        found = {1.0: self._try(1.0, order)}
        for factor in (3.0, 1 / 3):
            eta = factor
            while abs(log(eta)) < 5 and found.setdefault(eta, self._try(eta, order)) < found[eta / factor]:
                eta *= factor
            if len(found) > 2:
                break
        self.w[:], self.squares[:], self.average[:], self.n_averaged = 0, self.floor, 0, 0
        return min(found, key=lambda eta: found[eta])

    def _try(self, eta, order):
        """The objective after some epochs over a sample, the last of which is averaged."""
        self.w[:], self.squares[:], self.eta = 0, self.floor, eta
        state = _core.Adagrad(self.training, self.squares, eta, self.unit)
        for _ in range(SEARCH_EPOCHS):
            self.average[:], self.n_averaged = 0, 0
            self._run(state, order, self.problem.lambda_)
        value = self._sample_objective(order)
        return value if isfinite(value) else float("inf")

    def _sample_objective(self, order):
        """The objective of the averaged iterate, with the loss on the rows of the sample."""
        problem = self.problem
        scratch, out = problem.rows.scratch(), np.empty((len(order), problem.width), dtype=problem.dtype)
        for first, last in problem.passes(len(order)):
            part = out[first:last]
            _core.dot(self.rows, problem.expansion.features, first, last, self.average, part, scratch)
        margins = np.zeros((problem.n_rows, problem.n_outputs))
        margins[order] = problem.to_margins(out[:, : problem.n_outputs] / np.float64(self.n_averaged), order)
        loss = problem.terms(margins, which=order)[0].sum() * problem.n_rows / len(order)
        return float(loss + problem.lambda_ / 2 * norms(problem, self.average).sum() / self.n_averaged**2)


class Stream(NamedTuple):
    """What AdaGrad carries from one batch to the next."""

    w: np.ndarray
    squares: np.ndarray
    average: np.ndarray
    n_averaged: int
    n_seen: float  # rows, by their weights
    n_restarted: float  # rows that had been seen when the average began
    eta: float
    unit: np.ndarray  # of each table: how large targets are, and so weights

    @classmethod
    def new(cls, problem):
        """Before the first batch."""
        unit = np.ones(problem.width, dtype=problem.dtype)
        unit[: problem.n_outputs] = problem.unit
        squares = problem.table()
        squares[:] = floor_of(problem, unit)
        return cls(problem.table(), squares, problem.table(), 0, 0, 0, NAN, unit)

    def copy(self):
        """With tables of its own."""
        return self._replace(w=self.w.copy(), squares=self.squares.copy(), average=self.average.copy())

    @classmethod
    def after(cls, problem, table):
        """A stream that goes on from a model of another solver: the batch tells how large gradients are."""
        new = cls.new(problem)
        w = _grown(table.copy(), problem)
        training, rows = problem.training(w, 1)
        rows.set_order(np.arange(problem.n_rows, dtype=np.int32))
        state = _core.Adagrad(training, new.squares, 0.0, new.unit)
        for first, last in problem.passes(problem.n_rows):
            state.run(first, last)
        return new._replace(w=w, n_seen=problem.n_rows, eta=CAREFUL)


def n_searched(n_rows):
    """How many of the rows the step size is searched on."""
    return min(max(n_rows // 8, SEARCH_ROWS // 8), SEARCH_ROWS, n_rows)


def adagrad_block(problem):
    """Rows that AdaGrad takes together, none of which learns from another: few beside all those of a table.

    So many are worth the while of several threads; and dense rows share each load of the table.
    """
    cells = problem.rows.cells
    few = problem.n_rows / ((1 if cells is None else len(cells.bases[0])) * ROWS_TO_LEARN_FROM)
    return int(2 ** np.clip(np.floor(np.log2(few)), 3 if problem.rows.core.walk_dense else 0, 5))


def settle(state, factor, average, n_jobs):
    """The regulariser's step for some rows, `factor` in all, and one more iterate for the average."""
    w, average = state.training.w.reshape(-1), average.reshape(-1)

    def take(entries):
        for first in entries:
            part = slice(first, min(first + PASS_MONOMIALS, w.size))
            state.shrink(factor, part.start, part.stop)
            average[part] += w[part]

    starts = range(0, w.size, PASS_MONOMIALS)
    share_out(take, iter(starts), min(n_jobs, max(len(starts), 1)))


def floor_of(problem, unit):
    """Where sums of squared gradients begin, for each table: gradients of squared losses are as large as targets."""
    return FLOOR if problem.loss.lipschitz else FLOOR * unit**2


def _grown(table, problem, fill=0):
    """The table with slots for new columns, which come behind the others."""
    more = problem.n_slots - len(table)
    if more == 0:
        return table
    behind = np.empty((more, table.shape[1]), dtype=table.dtype)
    behind[:] = fill
    return np.concatenate([table, behind])


def norms(problem, w):
    """|w|^2 for each problem, of weights of features."""
    return problem.per_problem(squared_norms(w)[: problem.n_outputs])


def trained(problem, w):
    """A model of weights of features, for its certificate."""
    return Trained(w, "features", problem.margins(w), norms(problem, w))


def by_table(values, w):
    """One number for each output, as a row for the tables w."""
    row = np.zeros(w.shape[1], dtype=w.dtype)
    row[: len(values)] = values
    return row


FLOOR = 1e-12  # of the sums of squared gradients
UNSEARCHED, SEARCH_FROM = 0.3, 32  # the step size where there are fewer rows than this to search on
ADAGRAD_STEPS = 4  # times the walk that a step takes
ROWS_TO_LEARN_FROM = 128  # of the same table, for each row of a block
CAREFUL = 0.1  # the step size for a model that another solver has trained
SEARCH_ROWS, SEARCH_EPOCHS = 16384, 3
