"""The solvers for streams: the same steps as in memory, chunk by chunk.

A solver is made with the problem of the first chunk, the number of all rows, what the objective is at most at w = 0
(both if they are known), and whether it begins anew. `begin_epoch` comes before the first chunk of an epoch, `take`
runs one pass over a chunk, and `finish` comes after the last one of all. The rows of a chunk are visited in random
order; chunks are not mixed. Nothing is shrunk: a row at its bound costs a walk, and to leave it out would not save
reading it.
"""

from typing import Any

import numpy as np

from .. import _core
from .._train.dual import Dual, block_of
from .._train.primal import ADAGRAD_STEPS, Adagrad, Pegasos, Stream, adagrad_block, by_table, norms, settle
from .._train.problem import NAN, Record


class StreamDual:
    """Dual coordinate ascent; alpha is kept for each row of the stream."""

    certified = True
    SHARED = ("table", "alpha", "norm2")
    STATE = ("dual_terms", "gap_terms")

    def __init__(self, problem, random, n_rows, ceiling, fresh=True):
        self.random, self.n_rows, self.lambda_ = random, n_rows, 1 / (problem.C * n_rows)
        self.table, self.alpha = problem.table(), np.zeros((n_rows, problem.n_outputs))
        self.norm2, self.live = np.zeros(problem.n_outputs), np.ones(problem.n_outputs, dtype=np.uint8)
        self.block, self.team = block_of(problem), problem.team()
        self.dual_terms, self.gap_terms = np.zeros(problem.n_problems), np.zeros(problem.n_problems)

    def begin_epoch(self):
        """Before an epoch."""
        self.dual_terms[:], self.gap_terms[:] = 0, 0

    def take(self, problem, first):
        """One pass over a chunk whose first row has this number."""
        maps = problem.expansion.margin, problem.expansion.update
        training, rows = problem.training(self.table, self.block, *maps, team=self.team)
        alpha, margin = self.alpha[first : first + problem.n_rows], np.zeros((problem.n_rows, problem.n_outputs))
        state = _core.Dual(training, problem.C, alpha, margin, self.norm2, self.live, Dual.sweeps)
        rows.set_order(problem.shuffled(self.random))
        for begin, end in problem.passes(problem.n_rows, self.block):
            self.team.run(state, begin, end)
        terms = problem.terms(margin, alpha) * (problem.n_rows / self.n_rows)
        self.dual_terms += terms[1]
        self.gap_terms += terms[2]

    def record(self, problem):
        """What is known after an epoch: the dual objective, and the primal one as it was seen along the way."""
        dual = self.dual_terms - self.lambda_ / 2 * problem.per_problem(self.norm2)
        seen = dual + np.maximum(self.gap_terms, 0.0)
        return Record(np.full_like(dual, NAN), dual, self.n_rows, seen)

    def finish(self):
        """Nothing is left to do."""

    def model(self, problem):
        """The tables that predict."""
        return self.table

    def candidates(self):
        """[(tables, the map they go with, a factor for their outputs, |w|^2 or None)]: the model is one of them."""
        return [(self.table, "margin", 1.0, None)]

    def dual_point(self, first, last):
        """The dual point of some rows, which goes with the first candidate."""
        return self.alpha[first:last]


class StreamPegasos:
    """The paper's solver; alpha is kept for each row of the stream."""

    certified = True
    SHARED = ("w", "average", "alpha", "scale", "norm2", "shift")
    STATE = ("t", "n_averaged", "epochs")

    def __init__(self, problem, random, n_rows, ceiling, fresh=True):
        self.random, self.n_rows = random, n_rows
        self.C, self.lambda_ = problem.C, 1 / (problem.C * n_rows)
        n_outputs = problem.n_outputs
        self.w, self.average, self.alpha = problem.table(), problem.table(), np.zeros((n_rows, n_outputs))
        self.scale, self.norm2, self.shift = np.ones(n_outputs), np.zeros(n_outputs), np.zeros(n_outputs)
        self.share, self.team = -(-n_rows // Pegasos.block) / n_rows, problem.team()
        self.t, self.n_averaged, self.epochs, self.radius = 0, 0, 0, None
        if not problem.loss.lipschitz:  # see Pegasos
            self.t = int(min(problem.steepest() / (2 * self.lambda_), 2**53))
            self.radius = np.sqrt(ceiling / self.lambda_)

    def begin_epoch(self):
        """Before an epoch."""
        if self.epochs & (self.epochs - 1) == 0:  # a power of two: so the average is always over half of the epochs
            self.average[:], self.shift[:], self.n_averaged = 0, 0, 0
        self.epochs += 1

    def take(self, problem, first):
        """One pass over a chunk whose first row has this number."""
        training, rows = problem.training(self.w, Pegasos.block, team=self.team)
        vectors = self.alpha[first : first + problem.n_rows], self.scale, self.norm2
        state = _core.Pegasos(training, self.lambda_, self.share, self.radius, *vectors, self.t)
        state.begin_average(self.average, self.shift)
        rows.set_order(problem.together(self.random.permutation(problem.n_rows)))
        try:
            for begin, end in problem.passes(problem.n_rows, Pegasos.block):
                self.team.run(state, begin, end)
        finally:  # after Ctrl-C the steps that were taken count
            self.t += state.n_averaged
            self.n_averaged += state.n_averaged

    def record(self, problem):
        """Nothing is known of the objective without a pass of its own."""
        unknown = np.full(problem.n_problems, NAN)
        return Record(unknown, unknown, self.n_rows, unknown)

    def finish(self):
        """Nothing is left to do."""

    def _averaged(self):
        if not self.n_averaged:  # by Ctrl-C, just when an average began
            return self.w * by_table(self.scale, self.w)
        return (self.w * by_table(self.shift, self.w) + self.average) / self.w.dtype.type(self.n_averaged)

    def model(self, problem):
        """The tables that predict, from the averaged iterate."""
        return problem.to_table(self._averaged())

    def candidates(self):
        """The last iterate and the averaged one; see StreamDual."""
        return [(self.w, "features", self.scale, None), (self._averaged(), "features", 1.0, norms)]

    def dual_point(self, first, last):
        """The dual point of some rows, which goes with the last iterate."""
        return self.scale / self.C * self.alpha[first:last]


class StreamAdagrad:
    """Steps with a size of their own for each slot. It has no dual point, and keeps nothing for each row.

    As in `partial_fit`, C has the meaning that it has for the rows seen so far; those of later epochs are no new ones.
    """

    certified = False
    SHARED = ("w", "squares", "average")
    STATE = (
        *("n_averaged", "n_seen", "n_restarted", "eta", "unit"),
        *("n_different", "n_monomials", "pending", "pending_monomials"),
    )

    def __init__(self, problem, random, n_rows, ceiling, fresh=True):
        self.random, self.team = random, problem.team(ADAGRAD_STEPS)
        stream = Stream.new(problem)
        if fresh:
            stream = Adagrad(problem, random, 0.0, stream=stream).stream()
        self.w, self.squares, self.average = stream[:3]
        self.n_averaged, self.n_seen, self.n_restarted, self.eta, self.unit = stream[3:]
        self.n_different = 0  # rows seen, each counted once
        self.n_monomials = 0  # walked
        self.pending, self.pending_monomials = 0, 0  # what the regulariser and the average have not seen yet
        self._last = None

    def begin_epoch(self):
        """Before an epoch."""

    def take(self, problem, first):
        """One pass over a chunk whose first row has this number."""
        # So that the average is over at least the later half of the rows.
        if self.n_seen >= 2 * self.n_restarted or not self.n_averaged:
            self.average[:], self.n_averaged, self.n_restarted = 0, 0, self.n_seen
        self.n_seen += problem.n_rows
        self.n_different = max(self.n_different, first + problem.n_rows)
        block = adagrad_block(problem)
        training, rows = problem.training(self.w, block, team=self.team)
        state = _core.Adagrad(training, self.squares, self.eta, self.unit)
        rows.set_order(problem.together(self.random.permutation(problem.n_rows)))
        lambda_ = 1 / (problem.C * self.n_different)
        # The regulariser takes a pass over the tables: often, but not so often that it costs much.
        often = max(8 * problem.n_slots, self.n_monomials // OFTEN)
        self.n_monomials += problem.n_monomials
        parts = int(np.clip(problem.n_monomials // often, 1, 16))
        for part in range(parts):
            begin, end = (problem.n_rows * k // parts for k in (part, part + 1))
            for a, b in problem.passes(end - begin, block):
                self.team.run(state, begin + a, begin + b)
            self.pending += end - begin
            self.pending_monomials += problem.n_monomials // parts
            if self.pending_monomials >= often:
                self._settle(state, lambda_)
        self._last = state, lambda_

    def _settle(self, state, lambda_):
        settle(state, lambda_ * self.eta * self.pending, self.average, self.team.n)
        self.n_averaged += 1
        self.pending, self.pending_monomials = 0, 0

    def record(self, problem):
        """Nothing is known of the objective without a pass of its own."""
        unknown = np.full(problem.n_problems, NAN)
        return Record(unknown, unknown, self.n_different, unknown)

    def finish(self):
        """What is pending is done."""
        if self.pending and self._last is not None:
            self._settle(*self._last)
        self._last = None

    def model(self, problem):
        """The tables that predict, from the averaged iterate."""
        if not self.n_averaged:
            return problem.to_table(self.w.copy())
        return problem.to_table(self.average / self.w.dtype.type(self.n_averaged))

    def stream(self):
        """The state, for `partial_fit` to go on with."""
        counts = self.n_averaged, self.n_seen, self.n_restarted
        return Stream(self.w, self.squares, self.average, *counts, self.eta, self.unit)


OFTEN = 64  # passes of the regulariser over tables, while the rows seen become about e times as many

STREAM_SOLVERS: dict[str, Any] = {"dual": StreamDual, "pegasos": StreamPegasos, "adagrad": StreamAdagrad}
