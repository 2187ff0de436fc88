"""plan(X): which degree, what it costs on this machine and how good it is, before anything is trained on all rows."""

import re
import sys
from collections.abc import Mapping
from itertools import product
from math import comb, inf, isnan, nan

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from .._data.expansion import MAX_INDEX, MAX_ROW_MONOMIALS, canonical_kernel, check_count, check_degree, check_positive
from .._data.memory import available_memory, readable
from .._model.estimator import row_bytes, table_bytes
from .._place.cells import LEAST_SAMPLE
from ..kernel import components_within, fourier_error, theorem1_bound
from ..svc import TaylorSVC
from ..svr import TaylorSVR
from .pace import measure
from .sample import LOOKED_AT, Sample
from .table import Plan, PlanRow, progress_line, short
from .view import View

FIRST_GUESS = 2e-8  # seconds of a fit for each monomial
TIMED_BYTES = 2**29  # of tables: larger ones are not made to time them
UNITS = {f"{letter}{i}B": (1024 if i else 1000) ** k for k, letter in enumerate(["", *"KMGT"]) for i in ("", "I")}


def plan(
    X,
    y=None,
    *,
    gamma="scale",
    degrees=range(1, 9),
    cells=(1,),
    axes=(None,),
    budget=None,
    C=1.0,
    estimator=None,
    **parameters,
):
    """What each degree would cost on this machine, and how close it would come to the exact Gaussian kernel.

    Looks at a sample of at most 262144 rows, whatever the size of X, and takes seconds. Parts of the sample are trained
    on, to tell how long an epoch and a fit of all rows would take. With y it also tells what the data needs: see
    docs/mathematics.md, section 8.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. Only the rows of the sample are copied and checked (sparse matrices that have no quick access to rows,
        such as COO, are converted first).
    y : array-like of shape (n_samples,) or more, default=None
        Labels or numbers.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, as for `TaylorSVC`; "scale" is computed on the sample.
    degrees : iterable of int, default=range(1, 9)
        The degrees.
    cells : iterable of int, default=(1,)
        Numbers of cells (`n_cells`) to look at, each with every degree. The sample is divided into as many; what it can
        tell is what cells cost, and how close the expansion is within them. Whether their number suits all rows it
        cannot tell: in a cell of the sample there are fewer rows to learn from than there will be, so that `held_out`
        is too high for many cells. The exact kernel that is compared to is then 0 between rows of different cells.
    axes : iterable of int or None, default=(None,)
        Numbers of principal axes (`n_axes`) to look at, each with every degree; None are the columns as they are.
        Axes and more than one cell do not go together: of these there are no lines.
    budget : float, str or dict, default=None
        What may be spent on a fit: seconds, as a number (without y: on an epoch); or memory beside X, as a string such
        as "2GB" or "500 MiB"; or both, as {"seconds": 60, "bytes": "2GB"}. What is not given is bounded by the memory
        that the machine has free, and not at all in time.
    C : float, default=1.0
        As for `TaylorSVC`.
    estimator : {TaylorSVC, TaylorSVR}, default=None
        What is to be trained. By default TaylorSVR for a y of numbers that are not whole, else TaylorSVC.
    **parameters
        Further parameters of that estimator, such as solver, loss, tol, max_iter, shift and n_jobs. verbose=1 tells on
        the standard error when a degree has been looked at.

    Returns
    -------
    plan : Plan
        A sequence of `PlanRow`. Prints as a table, also in notebooks; `best` names the choice, and `plot` draws it.

    Examples
    --------
    >>> import numpy as np
    >>> import taylorkern as tk
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> plan = tk.plan(X, X[:, 0] * X[:, 1] > 0, gamma=0.1, degrees=range(1, 5))
    >>> [row.n_slots for row in plan]
    [6, 21, 56, 126]
    >>> plan.best().use
    True
    """
    degrees, budget = _check_degrees(degrees), Budget(budget)
    views = check_views(cells, axes)
    n_rows = _count_rows(X)
    model = _model(y, estimator, {"gamma": gamma, "C": C, "random_state": 0, "verbose": 0} | parameters)
    n_outputs = 1
    if y is not None:
        y = model._check_y(y)
        check_consistent_length(X, y)
        n_outputs = model._n_outputs(model._learn_y(y))
    sample, rows = Sample(X, y, n_rows, model), []
    for n_cells, n_axes in views:
        view, before = View(sample, model, n_cells, n_axes), None
        for degree, lost in zip(degrees, view.shares(degrees), strict=True):
            before = _row(degree, float(lost), view, n_outputs, budget, before)
            rows.append(before)
            if model.verbose:
                print(progress_line(before), file=sys.stderr, flush=True)
    return Plan(rows, sample)


def _row(degree, lost, view, n_outputs, budget, before):
    """The line of a degree; `before` is that of a lower one, or None."""
    sample, model = view.sample, view.model
    n_rows, n_slots = sample.n_rows, view.n_slots(degree)
    counts = view.monomials(degree)
    monomials, longest = sum(counts) / len(counts), comb(view.longest + degree, degree)
    of_tables = table_bytes(n_slots, n_outputs, sample.X.dtype, model.solver)
    n_bytes = of_tables + row_bytes(sample.X, view.shift, n_outputs, model.solver) * n_rows // sample.X.shape[0]
    problem = budget.memory_problem(n_bytes, model.memory_limit)
    if n_slots > MAX_INDEX:
        problem = f"{n_slots} monomials are more than can be numbered"
    elif longest > MAX_ROW_MONOMIALS:
        problem = f"a row has {longest} monomials, more than {MAX_ROW_MONOMIALS}"

    walked, pace = monomials, None
    if not problem:
        walked = view.rows.choose_walk(view.expansion(degree)) / len(counts)
    operations = float(n_rows) * walked * n_outputs
    epoch, fit = operations * FIRST_GUESS / 4, operations * FIRST_GUESS
    if before is not None:  # as many monomials a second as before
        more = operations / before.operations
        epoch, fit = before.epoch_seconds * more, before.fit_seconds * more
    if not problem and of_tables <= TIMED_BYTES:
        known = model.get_params() | {"degree": degree, "gamma": sample.gamma}
        known |= {"n_cells": view.n_cells, "n_axes": view.n_axes}
        guess = (4 * epoch if isnan(fit) else fit) / n_rows
        # Centres are found from so many rows at most: the line that is drawn on has to lie beyond them.
        n_touched = max(n_slots / walked, 4 * LEAST_SAMPLE if view.n_cells > 1 else 0)
        X, y, held_out = sample.parts
        pace = measure(type(model)(**known), X, y, held_out, n_rows, guess, n_touched)
    error = nan
    if pace is not None:
        error, epoch = pace.error, pace.epoch
        fit = pace.fit if pace.large or before is None else epoch * before.fit_seconds / before.epoch_seconds
    if sample.parts[1] is None:
        fit = nan
    problem = problem or budget.time_problem(epoch if isnan(fit) else fit)

    residuals = view.residuals(degree)
    exact, cut = view.kernels(degree)
    n_fourier = components_within(sample.X[:LOOKED_AT], monomials)
    return PlanRow(
        degree=degree,
        n_cells=view.n_cells,
        n_axes=view.n_axes,
        n_slots=n_slots,
        monomials=monomials,
        monomials_99=counts[-(-99 * len(counts) // 100) - 1],
        monomials_worst=counts[-1],
        bytes=n_bytes,
        operations=operations,
        epoch_seconds=epoch,
        fit_seconds=fit,
        measured=pace is not None,
        residual=float(residuals.mean()),
        kernel_error=float(np.abs(exact - cut).mean()),
        theorem1=nan if model._normalized else theorem1_bound(residuals, C=model.C) * (n_rows / len(residuals)) ** 0.5,
        n_fourier=n_fourier,
        fourier_error=fourier_error(sample.exact, n_fourier),
        lost=lost,
        held_out=error,
        problem=problem,
    )


class Budget:
    """Seconds and bytes."""

    def __init__(self, budget):
        self.seconds, self.bytes = inf, None
        wrong = ValueError(
            f'budget must be seconds, bytes as in "2GB", or {{"seconds": ..., "bytes": ...}}; got {budget!r}'
        )
        parts = budget
        if not isinstance(budget, Mapping):
            parts = {} if budget is None else {"bytes" if isinstance(budget, str) else "seconds": budget}
        if not set(parts) <= {"seconds", "bytes"}:
            raise wrong
        if parts.get("seconds") is not None:
            self.seconds = check_positive("budget in seconds", parts["seconds"])
        given = parts.get("bytes")
        if isinstance(given, str):
            found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*((?:[KMGT]i?)?B)?\s*", given, re.IGNORECASE)
            if found is None:
                raise wrong
            given = float(found[1]) * UNITS[(found[2] or "B").upper()]
        if given is not None:
            self.bytes = check_positive("budget in bytes", given)

    def memory_problem(self, n_bytes, memory_limit):
        """Why so many bytes are too many, or nothing."""
        limit = min((n for n in (self.bytes, memory_limit) if n is not None), default=available_memory())
        if limit is None or n_bytes <= limit:
            return ""
        return f"{readable(n_bytes)} are more than {readable(limit)}"

    def time_problem(self, seconds):
        """Why so many seconds are too many, or nothing."""
        return "" if seconds <= self.seconds else f"{short(seconds)} s are more than {short(self.seconds)} s"


def _count_rows(X):
    try:
        n_rows = _num_samples(X)
    except TypeError:
        raise ValueError(f"X must hold rows and columns; got {type(X).__name__}") from None
    if n_rows == 0 or isinstance(X, str | bytes):
        raise ValueError(f"X must hold rows and columns; got {X!r}")
    return n_rows


def _check_degrees(degrees):
    try:
        degrees = sorted({check_degree(degree) for degree in degrees})
    except TypeError:
        raise ValueError(f"degrees must be integers; got {degrees!r}") from None
    if not degrees:
        raise ValueError("degrees must hold at least one; got none")
    return degrees


def check_views(cells, axes):
    """(n_cells, n_axes) of all lines of a degree, in rising order."""
    try:
        cells, axes = set(cells), set(axes)
    except TypeError:
        raise ValueError(f"cells and axes must be collections; got {cells!r} and {axes!r}") from None
    for number in cells:
        check_count("cells", number)
    for number in axes - {None}:
        check_count("axes", number)
    ordered = sorted(cells), sorted(axes, key=lambda number: number or 0)
    views = [(n, k) for n, k in product(*ordered) if n == 1 or k is None]
    if not views:
        raise ValueError(f"cells {ordered[0]} and axes {ordered[1]} leave nothing to look at together")
    return views


def _model(y, estimator, parameters):
    """The estimator that is to be trained."""
    if estimator is None:
        estimator = TaylorSVR if y is not None and str(type_of_target(y)).startswith("continuous") else TaylorSVC
    if estimator not in (TaylorSVC, TaylorSVR):
        raise ValueError(f"estimator must be TaylorSVC or TaylorSVR; got {estimator!r}")
    for name, said in (("n_cells", "cells"), ("n_axes", "axes")):
        if name in parameters:
            raise ValueError(f"plan looks at several {name}: give {said}=({parameters[name]!r},)")
    for name in parameters:
        if name == "degree" or name not in estimator._get_param_names():
            raise ValueError(f"{estimator.__name__} has no parameter {name!r} that plan takes")
    if canonical_kernel(parameters.get("kernel", "gaussian")) != "gaussian":
        raise ValueError(f"plan is for the gaussian kernel; got kernel={parameters['kernel']!r}")
    model = estimator(**parameters)
    model._check_parameters()
    return model
