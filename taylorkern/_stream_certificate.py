"""The certificate of a stream: the sums of certificate.py, gathered in one pass over the chunks."""

from typing import Any

import numpy as np
from scipy import sparse

from ._loss import radius2
from .certificate import draw, in_one, of_drawn, residuals_of, sums_in_cells


class Gathering:
    """What a pass over all chunks gathers, at the end of a training.

    Parameters
    ----------
    solver : StreamDual or StreamPegasos
        It has its tables among `candidates`, and a dual point.
    problem : Problem
        Of the first chunk: for all that does not depend on the rows.
    n_rows : int
        All rows.
    random : RandomState
        Draws the pairs.
    problem_of : callable
        The problem of some rows and targets.
    """

    def __init__(self, solver, problem, n_rows, random, problem_of):
        self.solver, self.like, self.n_rows, self.problem_of = solver, problem, n_rows, problem_of
        self.candidates = solver.candidates(problem.expansion)
        self.size, self.total, self.drawn = draw(solver.dual_point(0, n_rows), random)
        self.wanted = np.unique(self.drawn)
        self.drawn_rows: list = []
        self.terms = np.zeros((4, problem.n_problems))
        self.losses = np.zeros((len(self.candidates), problem.n_problems))
        self.weight = np.zeros(problem.n_problems)
        self.zero = np.zeros_like(self.weight)
        self.roots: Any = 0.0  # for each cell, as in certificate.py
        self.cut: Any = 0.0
        self.n_underflowed = 0

    def add(self, chunk, problem):
        """A chunk, and its problem."""
        first, last, share = chunk.first, chunk.end, problem.n_rows / self.n_rows
        alpha = self.solver.dual_point(first, last)
        for number, (tables, walked, factor, _) in enumerate(self.candidates):
            margins = problem.to_margins(factor * problem.outputs(tables, walked))
            terms = problem.terms(margins, alpha) * share
            self.losses[number] += terms[0]
            if number == 0:
                self.terms += terms
        forms = [residuals_of(problem, form) for form in problem.rows.forms()]
        self.n_underflowed += int(np.all([gone for _, gone in forms], axis=0).sum())
        roots = [np.sqrt(residuals) for residuals, _ in forms]
        self.cut = self.cut + sums_in_cells(problem, np.abs(alpha), roots)
        self.weight += problem.mean(np.ones(problem.n_rows)) * share
        self.roots = self.roots + sums_in_cells(problem, problem.omega(), roots) / self.n_rows
        self.zero += problem.at_zero() * share
        here = self.wanted[(self.wanted >= first) & (self.wanted < last)] - first
        if len(here):
            self.drawn_rows.append((chunk.X[here], chunk.y[here]))

    def end(self):
        """(the tables that predict, the objective for each problem, the certificate)."""
        problem = self.like
        lambda_ = 1 / (problem.C * self.n_rows)
        norm2 = np.maximum(problem.C * self.n_rows * self.terms[3], 0.0)
        dual = self.terms[1] - lambda_ / 2 * norm2
        squares = [norm2 if of is None else of(problem, tables) for tables, _, _, of in self.candidates]
        values = [lambda_ / 2 * square + loss for square, loss in zip(squares, self.losses, strict=True)]
        primal = np.minimum.reduce(values)
        per_sum = problem.C / (2 * self.n_rows)
        estimate, stderr, of_sum = self._sampled()
        cut = problem.per_problem(per_sum * (self.cut**2).sum(axis=0))
        columns = primal, dual, cut, per_sum * estimate, per_sum * stderr, per_sum * of_sum, self._theorem1(lambda_)
        # In memory the weights of rows are divided by their mean; weights of classes one by one are not.
        unit = 1.0 if problem.weight is None else float(self.weight[0])
        primal, dual, cut, estimate, stderr, of_sum, theorem1 = (values / unit for values in columns)
        low = np.maximum(dual - cut, 0.0)
        certificate = in_one(primal, dual, low, cut, estimate, stderr, of_sum, theorem1, self.n_underflowed)
        return self._best(values), (primal, dual), certificate

    def _theorem1(self, lambda_):
        problem = self.like
        if not problem.loss.lipschitz:
            return np.full(problem.n_problems, np.nan)
        known = radius2(problem.loss, problem.n_outputs)
        radius = np.sqrt((self.zero if known is None else known * self.weight) / lambda_)
        return problem.loss.lipschitz * np.sqrt((self.roots**2).sum(axis=0)) * radius

    def _sampled(self):
        problem = self.like
        if not len(self.drawn):
            return np.zeros(problem.n_problems), np.zeros(problem.n_problems), 0.0
        xs, ys = zip(*self.drawn_rows, strict=True)
        X = sparse.vstack(xs, format="csr") if sparse.issparse(xs[0]) else np.concatenate(xs)
        few = self.problem_of(X, np.concatenate(ys))
        alpha = np.concatenate([self.solver.dual_point(i, i + 1) for i in self.wanted])
        places = np.searchsorted(self.wanted, self.drawn)
        forms = [residuals_of(few, form) for form in few.rows.forms()]
        return of_drawn(few, alpha, self.size[self.wanted], self.total, forms, places)

    def _best(self, values):
        """Of each output the best candidate, as tables that predict."""
        problem = self.like
        if len(values) == 1:
            return self.candidates[0][0]
        (w, _, scale, _), (model, *_) = self.candidates
        for k in np.flatnonzero(np.broadcast_to(values[0] < values[1], problem.n_outputs)):
            np.multiply(w[:, k], w.dtype.type(scale[k]), out=model[:, k])
        return problem.to_table(model)
