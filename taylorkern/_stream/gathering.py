"""The certificate of a stream: what certificate.py adds up, gathered in one pass over the chunks."""

import numpy as np
from scipy import sparse

from .._train.certificate import Ends, draw, in_one, of_drawn
from .._train.problem import Trained


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
        self.candidates = solver.candidates()
        self.size, self.total, self.drawn = draw(solver.dual_point(0, n_rows), random)
        self.wanted = np.unique(self.drawn)
        self.drawn_rows: list = []
        self.terms = np.zeros((4, problem.n_problems))
        self.losses = np.zeros((len(self.candidates), problem.n_problems))
        self.ends = Ends(problem, n_rows)

    def add(self, chunk, problem):
        """A chunk, and its problem."""
        first, last, share = chunk.first, chunk.end, problem.n_rows / self.n_rows
        alpha, exact = self.solver.dual_point(first, last), []
        for number, (tables, walked, factor, _) in enumerate(self.candidates):
            margins = problem.to_margins(factor * problem.outputs(tables, getattr(problem.expansion, walked)))
            terms = problem.terms(margins, alpha) * share
            self.losses[number] += terms[0]
            if number == 0:
                self.terms += terms
            unknown = np.full(problem.n_problems, np.nan)
            exact.append(self.ends.exact_margins(problem, Trained(tables, walked, margins, unknown), factor))
        self.ends.add(problem, exact, alpha)
        here = self.wanted[(self.wanted >= first) & (self.wanted < last)] - first
        if len(here):
            self.drawn_rows.append((chunk.X[here], chunk.y[here]))

    def end(self):
        """(the tables that predict, the objective for each problem, the certificate)."""
        problem, ends = self.like, self.ends
        norm2 = np.maximum(problem.C * self.n_rows * self.terms[3], 0.0)
        dual = self.terms[1] - ends.half * norm2
        squares = np.array([norm2 if of is None else of(problem, tables) for tables, _, _, of in self.candidates])
        values = ends.half * squares + self.losses
        best = np.argmin(values, axis=0)
        primal, model_norm2 = (np.take_along_axis(part, best[None], axis=0)[0] for part in (values, squares))
        bounds = ends.bounds(primal, model_norm2, norm2, self._sampled(), best)
        # In memory the weights of rows are divided by their mean; weights of classes one by one are not.
        unit = 1.0 if problem.weight is None else float(ends.weight[0])
        certificate = in_one(primal / unit, dual / unit, bounds.over(unit), ends.theorem1() / unit, ends.n_underflowed)
        return self._best(best), (primal / unit, dual / unit), certificate

    def _sampled(self):
        problem = self.like
        if not len(self.drawn):
            return np.zeros(problem.n_problems), np.zeros(problem.n_problems), 0.0
        xs, ys = zip(*self.drawn_rows, strict=True)
        X = sparse.vstack(xs, format="csr") if sparse.issparse(xs[0]) else np.concatenate(xs)
        few = self.problem_of(X, np.concatenate(ys))
        alpha = np.concatenate([self.solver.dual_point(i, i + 1) for i in self.wanted])
        places = np.searchsorted(self.wanted, self.drawn)
        return of_drawn(few, alpha, self.size[self.wanted], self.total, places)

    def _best(self, best):
        """Of each output the best candidate, as tables that predict."""
        problem = self.like
        if len(self.candidates) == 1:
            return self.candidates[0][0]
        (w, _, scale, _), (model, *_) = self.candidates
        for k in np.flatnonzero(np.broadcast_to(best == 0, problem.n_outputs)):
            np.multiply(w[:, k], w.dtype.type(scale[k]), out=model[:, k])
        return problem.to_table(model)
