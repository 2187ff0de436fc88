"""plan(X): which degree, what it costs on this machine and how good it is, before anything is trained on all rows."""

import re
import sys
from collections.abc import Mapping, Sequence
from html import escape
from math import comb, inf, isnan, nan
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from ._degree import TOLERANCE
from ._expansion import MAX_INDEX, MAX_ROW_MONOMIALS, _positive, check_degree
from ._memory import _readable, available_memory
from ._model import row_bytes, table_bytes
from ._pace import measure
from ._plan_sample import LOOKED_AT, Sample
from ._rows import Rows
from .kernel import components_within, fourier_error, theorem1_bound
from .svm import TaylorSVC, TaylorSVR

USELESS = 0.75  # a share of the outputs: who loses more than this is advised against
CLOSE = 0.05  # a mean residual that is small
FEW_ROWS = 10_000  # the exact kernel takes seconds
FIRST_GUESS = 2e-8  # seconds of a fit for each monomial
TIMED_BYTES = 2**29  # of tables: larger ones are not made to time them
UNITS = {f"{letter}{i}B": (1024 if i else 1000) ** k for k, letter in enumerate(["", *"KMGT"]) for i in ("", "I")}


class PlanRow(NamedTuple):
    """What is known of one degree; a line of a `Plan`."""

    degree: int
    """The degree r."""
    n_cells: int
    """The number of centres around which the kernel is expanded."""
    n_slots: int
    """The number of monomials, D = C(d + r, r)."""
    monomials: float
    """Nonzero monomials of a shifted row, on average."""
    monomials_99: int
    """As many as 99 of 100 rows have at most."""
    monomials_worst: int
    """Those of the worst row that was looked at."""
    bytes: int
    """Memory that training takes beside X."""
    operations: float
    """Multiply-adds for the outputs of all rows: what one pass takes."""
    epoch_seconds: float
    """Of the first epoch."""
    fit_seconds: float
    """Of a whole fit; NaN without y."""
    measured: bool
    """Whether the seconds come from fits of this degree, and not from those of a lower one."""
    residual: float
    """The mean of res(x) = 1 - K~(x, x)."""
    kernel_error: float
    """The mean of |K - K~| over pairs of rows."""
    theorem1: float
    """Theorem 1: how much the cut can raise the SVM's objective, which is never more than 1."""
    n_fourier: int
    """How many random Fourier features take as many operations a row."""
    fourier_error: float
    """Their mean |K - K~|."""
    lost: float
    """The share of an exact model's outputs that the cut takes away, on a sample; without y, of one of noise."""
    held_out: float
    """1 - score of a model of this degree that was trained on a sample, on other rows; NaN without y."""
    problem: str
    """Why it is beyond the budget; empty when it is within."""


class Choice(NamedTuple):
    """What `Plan.best` recommends; prints as its reason."""

    use: bool
    """Whether to use taylorkern at all."""
    degree: int | None
    """The degree; None when none is within the budget."""
    reason: str
    """Why."""

    def __str__(self):
        return self.reason


def plan(X, y=None, *, gamma="scale", degrees=range(1, 9), budget=None, C=1.0, estimator=None, **parameters):
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
    degrees, budget = _check_degrees(degrees), _Budget(budget)
    n_rows = _count_rows(X)
    model = _model(y, estimator, {"gamma": gamma, "C": C, "random_state": 0, "verbose": 0} | parameters)
    n_outputs = 1
    if y is not None:
        y = model._check_y(y)
        check_consistent_length(X, y)
        n_outputs = model._n_outputs(model._learn_y(y))
    sample = Sample(X, y, n_rows, model)
    before, rows = None, []
    for degree, lost in zip(degrees, sample.shares(degrees, model), strict=True):
        before = _row(degree, 1, float(lost), sample, model, n_outputs, budget, before)
        rows.append(before)
        if model.verbose:
            print(f"degree {degree}: {_told(before)}", file=sys.stderr, flush=True)
    return Plan(rows, sample)


def _row(degree, n_cells, lost, sample, model, n_outputs, budget, before):
    """The line of a degree; `before` is that of a lower one, or None."""
    n_columns, n_rows = sample.X.shape[1], sample.n_rows
    n_slots = comb(n_columns + degree, degree)
    lengths = np.sort(sample.lengths)
    counts = {int(m): comb(int(m) + degree, degree) for m in np.unique(lengths)}
    monomials = sum(counts[int(m)] for m in lengths) / len(lengths)
    worst = counts[int(lengths[-1])]
    of_tables = table_bytes(n_slots, n_outputs, sample.X.dtype, model.solver)
    n_bytes = of_tables + row_bytes(sample.X, sample.shift, n_outputs, model.solver) * n_rows // sample.X.shape[0]
    problem = budget.memory_problem(n_bytes, model.memory_limit)
    if n_slots > MAX_INDEX:
        problem = f"{n_slots} monomials are more than can be numbered"
    elif worst > MAX_ROW_MONOMIALS:
        problem = f"a row has {worst} monomials, more than {MAX_ROW_MONOMIALS}"

    walked, pace = monomials, None
    if not problem:
        walked = Rows(sample.looked_at).choose_walk(sample.expansion_at(degree)) / len(lengths)
    operations = float(n_rows) * walked * n_outputs
    epoch, fit = operations * FIRST_GUESS / 4, operations * FIRST_GUESS
    if before is not None:  # as many monomials a second as before
        more = operations / before.operations
        epoch, fit = before.epoch_seconds * more, before.fit_seconds * more
    if not problem and of_tables <= TIMED_BYTES:
        known = model.get_params() | {"degree": degree, "gamma": sample.gamma}
        guess = (4 * epoch if isnan(fit) else fit) / n_rows
        X, y, held_out = sample.parts
        pace = measure(type(model)(**known), X, y, held_out, n_rows, guess, n_slots / walked)
    error = nan
    if pace is not None:
        error, epoch = pace.error, pace.epoch
        fit = pace.fit if pace.large or before is None else epoch * before.fit_seconds / before.epoch_seconds
    if sample.parts[1] is None:
        fit = nan
    problem = problem or budget.time_problem(epoch if isnan(fit) else fit)

    residuals = gammainc(degree + 1, sample.norms)
    exact, cut = sample.kernels(degree)
    n_fourier = components_within(sample.X[:LOOKED_AT], monomials)
    return PlanRow(
        degree=degree,
        n_cells=n_cells,
        n_slots=n_slots,
        monomials=monomials,
        monomials_99=counts[int(lengths[-(-99 * len(lengths) // 100) - 1])],
        monomials_worst=worst,
        bytes=n_bytes,
        operations=operations,
        epoch_seconds=epoch,
        fit_seconds=fit,
        measured=pace is not None,
        residual=float(residuals.mean()),
        kernel_error=float(np.abs(exact - cut).mean()),
        theorem1=theorem1_bound(residuals, C=model.C) * (n_rows / len(residuals)) ** 0.5,
        n_fourier=n_fourier,
        fourier_error=fourier_error(exact, n_fourier),
        lost=lost,
        held_out=error,
        problem=problem,
    )


class Plan(Sequence):
    """The degrees that were looked at, from `plan`: a sequence of `PlanRow` that prints as a table."""

    def __init__(self, rows, sample):
        self.rows = tuple(rows)
        self.n_rows, self.gamma = sample.n_rows, sample.gamma
        self._norms, self._energy = sample.norms, sample.energy()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, which):
        return self.rows[which]

    def best(self):
        """The choice, and why.

        The least degree within the budget that loses at most a third of an exact model's outputs; if there is none, the
        highest within the budget, as long as it keeps a quarter of them.

        Returns
        -------
        choice : Choice
            A named tuple: use, degree, reason.
        """
        within = [row for row in self.rows if not row.problem]
        if not within:
            least = self.rows[0]
            return Choice(False, None, f"do not use taylorkern here: at degree {least.degree}, {least.problem}")
        row = next((row for row in within if row.lost <= TOLERANCE), max(within, key=lambda row: row.degree))
        lost = 100 * row.lost
        share = f"the cut takes {_short(round(lost) if lost >= 10 else lost)} % of what an exact model says"
        highest = "the highest within the budget" if any(r.problem for r in self.rows) else "the highest looked at"
        if row.lost <= TOLERANCE:
            return Choice(
                True, row.degree, f"degree {row.degree}: the least that is close enough; {share}. {_cost(row)}"
            )
        help_ = "What would help: " + "; ".join(self._help(row))
        if row.lost <= USELESS:
            reason = f"degree {row.degree}: {highest}, but {share}. {_cost(row)} {help_}"
            return Choice(True, row.degree, reason)
        reason = f"do not use taylorkern here: even at degree {row.degree}, {highest}, {share}"
        return Choice(False, row.degree, f"{reason}. {help_}")

    def _help(self, row):
        """What would bring the cut kernel closer."""
        beyond = [other for other in self.rows if other.problem and other.lost <= TOLERANCE]
        if beyond:
            yield f"a larger budget: degree {beyond[0].degree} would do, but {beyond[0].problem}"
        elif not any(other.problem for other in self.rows):
            yield f"a higher degree than {row.degree}"
        column, energy = int(np.argmax(self._energy)), self._energy.max()
        if energy > 0.5 and len(self._energy) > 2:
            yield f"scaling: column {column} has {100 * energy:.0f} % of the squared distances"
        if row.residual > CLOSE:
            factor = brentq(lambda f: gammainc(row.degree + 1, np.exp(f) * self._norms).mean() - CLOSE, -99, 0)
            yield f"a smaller gamma: {self.gamma * np.exp(factor):.2g}, not {self.gamma:.2g}"
        if "n_cells" in TaylorSVC._get_param_names():
            yield "n_cells, to expand around several centres"
        if row.fourier_error < row.kernel_error:
            yield f"{row.n_fourier} random Fourier features (RBFSampler): as many operations, and closer to the kernel"
        if self.n_rows <= FEW_ROWS:
            yield f"the exact kernel (sklearn.svm.SVC), quick enough with {self.n_rows} rows"

    def plot(self, ax=None):
        """Draw errors and seconds by degree; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to; None: on a new figure.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.figure().add_subplot()
        degrees = [row.degree for row in self.rows]
        for name, label in DRAWN.items():
            ax.plot(degrees, [getattr(row, name) for row in self.rows], marker="o", label=label)
        ax.axhline(TOLERANCE, color="grey", linewidth=0.5)
        ax.set(xlabel="degree", ylabel="error", yscale="log", xticks=degrees)
        beside = ax.twinx()
        seconds = [row.epoch_seconds if isnan(row.fit_seconds) else row.fit_seconds for row in self.rows]
        what = "seconds of an epoch" if isnan(self.rows[0].fit_seconds) else "seconds of a fit"
        beside.plot(degrees, seconds, color="black", linestyle=":", label=what)
        beside.set(ylabel=what, yscale="log")
        lines = ax.get_lines()[: len(DRAWN)] + beside.get_lines()
        ax.legend(lines, [line.get_label() for line in lines], fontsize="small")
        return ax

    def _cells(self):
        """The table as text: a list of lines, the head first."""
        shown = [list(HEADS)]
        for row in self.rows:
            numbers = (row.epoch_seconds, row.fit_seconds)
            epoch, fit = (_short(n) if row.measured or isnan(n) else f"~{_short(n)}" for n in numbers)
            others = (row.residual, row.kernel_error, row.theorem1, row.n_fourier, row.fourier_error, row.lost)
            counts = (row.degree, row.n_cells, row.n_slots, row.monomials, row.monomials_99, row.monomials_worst)
            shown.append([
                *map(_short, counts), _readable(row.bytes), _short(row.operations), epoch, fit,
                *map(_short, others), _short(row.held_out), row.problem,
            ])  # fmt: skip
        return shown

    def __str__(self):
        cells = self._cells()
        widths = [max(len(line[k]) for line in cells) for k in range(len(HEADS))]
        lines = ["  ".join(f"{c:>{w}}" for c, w in zip(line, widths, strict=True)).rstrip() for line in cells]
        return "\n".join([*lines, f"{self.n_rows} rows, gamma {self.gamma:.4g}", str(self.best())])

    __repr__ = __str__

    def _repr_html_(self):
        head, *lines = self._cells()
        table = "".join(f"<th>{escape(name)}</th>" for name in head)
        table = f"<tr>{table}</tr>" + "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines
        )
        return f"<table>{table}</table><p>{escape(str(self.best()))}</p>"


HEADS = (
    *("degree", "cells", "D", "monomials", "99 %", "worst", "memory", "operations", "epoch s", "fit s", "residual"),
    *("|K-K~|", "theorem 1", "Fourier", "their |K-K~|", "lost", "held out", "beyond budget"),
)
DRAWN = {
    "lost": "lost of an exact model",
    "residual": "mean residual",
    "kernel_error": "mean |K - K~|",
    "fourier_error": "the same of Fourier features",
}


class _Budget:
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
            self.seconds = _positive("budget in seconds", parts["seconds"])
        given = parts.get("bytes")
        if isinstance(given, str):
            found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*((?:[KMGT]i?)?B)?\s*", given, re.IGNORECASE)
            if found is None:
                raise wrong
            given = float(found[1]) * UNITS[(found[2] or "B").upper()]
        if given is not None:
            self.bytes = _positive("budget in bytes", given)

    def memory_problem(self, n_bytes, memory_limit):
        """Why so many bytes are too many, or nothing."""
        limit = min((n for n in (self.bytes, memory_limit) if n is not None), default=available_memory())
        if limit is None or n_bytes <= limit:
            return ""
        return f"{_readable(n_bytes)} are more than {_readable(limit)}"

    def time_problem(self, seconds):
        """Why so many seconds are too many, or nothing."""
        return "" if seconds <= self.seconds else f"{_short(seconds)} s are more than {_short(self.seconds)} s"


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


def _model(y, estimator, parameters):
    """The estimator that is to be trained."""
    if estimator is None:
        estimator = TaylorSVR if y is not None and str(type_of_target(y)).startswith("continuous") else TaylorSVC
    if estimator not in (TaylorSVC, TaylorSVR):
        raise ValueError(f"estimator must be TaylorSVC or TaylorSVR; got {estimator!r}")
    for name in parameters:
        if name == "degree" or name not in estimator._get_param_names():
            raise ValueError(f"{estimator.__name__} has no parameter {name!r} that plan takes")
    if parameters.get("kernel", "gaussian") != "gaussian":
        raise ValueError(f"plan is for the gaussian kernel; got kernel={parameters['kernel']!r}")
    model = estimator(**parameters)
    model._check_parameters()
    return model


def _told(row):
    cost = _cost(row)
    return row.problem or cost[0].lower() + cost[1:-1]


def _cost(row):
    what, seconds = ("An epoch", row.epoch_seconds) if isnan(row.fit_seconds) else ("A fit", row.fit_seconds)
    return f"{what} takes about {_short(seconds)} s, and training {_readable(row.bytes)}."


def _short(number):
    """Three digits; nothing for NaN."""
    if isnan(number):
        return ""
    return str(number) if isinstance(number, int) and number < 10**6 else f"{number:.3g}"
