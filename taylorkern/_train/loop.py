"""Training: epochs of a solver, until the gap between primal and dual objective is small enough.

A solver has `epoch()`, which runs one and returns what it knows of the objective; `model()`, the table that predicts
(see `Expansion.margin`), also when Ctrl-C has come in the middle of an epoch; `point()`, a feasible dual point when it
has one; `trained()`, the model, and `in_cells()`, what there is to know of each cell, both for a certificate; and
`SHARED` and `STATE`, names of all that it has to know to go on.
"""

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .dual import Dual
from .primal import Adagrad, Pegasos
from .problem import NAN, Record

SOLVERS: dict[str, Any] = {"dual": Dual, "pegasos": Pegasos, "adagrad": Adagrad}


class Outcome(NamedTuple):
    """How a training ended."""

    n_iter: int
    converged: bool
    interrupted: bool
    record: Record  # of the last epoch


def train(solver, *, tol, max_iter, observer=None, epochs=None):
    """Run epochs until the gap of each problem is at most tol times its primal objective.

    Parameters
    ----------
    solver : Dual, Pegasos or Adagrad
        The solver. After Ctrl-C it may have taken some steps of an epoch more than the outcome tells of.
    tol : float
        For a solver without a dual point: training ends when the objective falls by no more than this share in each of
        two epochs.
    max_iter : int or inf
        Epochs at most.
    observer : Observer, default=None
        Told when an epoch begins; and when one has ended its number, the seconds since the start and its record:
        training ends when it then returns True.
    epochs : Epochs, default=None
        The checkpoint that it goes on from, and to which it saves; only with an observer.

    Returns
    -------
    outcome : Outcome
    """
    begin, n_iter, slow = perf_counter(), 0, 0
    converged = stop = interrupted = False
    unknown = np.full(solver.problem.n_problems, NAN)
    record = Record(unknown, unknown, 0, unknown)
    earlier = epochs.resume(solver, observer) if epochs else None
    if earlier is not None:
        n_iter, slow, seconds, record = earlier
        begin -= seconds
    # Ctrl-C may come anywhere. An epoch is over as soon as it stands in `ended`, by one assignment.
    ended = n_iter, record
    try:
        while n_iter < max_iter and not converged and not stop:
            if observer:
                observer.begin_epoch()
            before = record
            ended = n_iter + 1, solver.epoch(last=n_iter + 1 == max_iter)
            n_iter, record = ended
            if solver.certified:
                converged = all((record.primal - record.dual <= tol * record.primal).tolist())
            else:
                fall, value = before.primal.sum() - record.primal.sum(), record.primal.sum()
                slow = slow + 1 if 0 <= fall <= tol * value else 0
                converged = slow >= 2
            if observer:
                stop = observer.end_epoch(n_iter, perf_counter() - begin, record)
            if epochs and n_iter < max_iter and not converged and not stop:
                epochs.save(solver, observer, n_iter, slow, perf_counter() - begin, record)
        record = solver.known(record)
    except KeyboardInterrupt:
        interrupted = True
        n_iter, record = ended
        if n_iter and observer:
            observer.note(n_iter, perf_counter() - begin, record)
    return Outcome(n_iter, converged, interrupted, record)
