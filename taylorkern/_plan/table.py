"""What `plan` returns: a table that prints, draws itself and names a choice."""

from collections.abc import Sequence
from html import escape
from math import inf, isnan
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc

from .._data.memory import readable
from .lost import TOLERANCE

USELESS = 0.75  # a share of the outputs: who loses more than this is advised against
CLOSE = 0.05  # a mean residual that is small
FEW_ROWS = 10_000  # the exact kernel takes seconds


class PlanRow(NamedTuple):
    """What is known of one degree, with one number of cells or axes; a line of a `Plan`."""

    degree: int
    """The degree r."""
    n_cells: int
    """The number of centres around which the kernel is expanded."""
    n_axes: int | None
    """The number of principal axes along which it is expanded; None: the columns are."""
    n_slots: int
    """The number of monomials, D = C(d + r, r); with cells, of all of them together, as the sample has them."""
    monomials: float
    """Nonzero monomials of a row as it is walked, on average."""
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
    """The mean of |K - K~| over pairs of rows; with cells, K is 0 between rows of different ones."""
    theorem1: float
    """Theorem 1: how much the cut can raise the SVM's objective, which is never more than 1; NaN for unit rows."""
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
    n_cells: int = 1
    """The number of cells."""
    n_axes: int | None = None
    """The number of principal axes, or None."""

    def __str__(self):
        return self.reason


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
        highest within the budget, as long as it keeps a quarter of them. Cells are for when no degree without them will
        do, and then as few as will; of rows with equal cells and degree the one whose fit is quickest is taken.

        Returns
        -------
        choice : Choice
            A named tuple: use, degree, reason, n_cells, n_axes.
        """
        within = [row for row in self.rows if not row.problem]
        if not within:
            least = self.rows[0]
            return Choice(False, None, f"do not use taylorkern here: at {_name(least)}, {least.problem}")
        enough = [row for row in within if row.lost <= TOLERANCE]
        row = min(enough, key=_rank) if enough else self._closest(within)
        lost = 100 * row.lost
        model = "an exact model" if row.n_cells == 1 else "a model that is exact within cells"
        share = f"the cut takes {short(round(lost) if lost >= 10 else lost)} % of what {model} says"
        highest = "the highest within the budget" if any(r.problem for r in self.rows) else "the highest looked at"
        what = {"n_cells": row.n_cells, "n_axes": row.n_axes}
        if row.lost <= TOLERANCE:
            reason = f"{_name(row)}: the least that is close enough; {share}. {_cost(row)}"
            return Choice(True, row.degree, reason, **what)
        help_ = "What would help: " + "; ".join(self._help(row))
        if row.lost <= USELESS:
            reason = f"{_name(row)}: {highest}, but {share}. {_cost(row)} {help_}"
            return Choice(True, row.degree, reason, **what)
        reason = f"do not use taylorkern here: even at {_name(row)}, {highest}, {share}"
        return Choice(False, row.degree, f"{reason}. {help_}", **what)

    def _closest(self, within):
        """Where none is enough: of the highest degrees, each with its cells or axes, the one that loses least."""
        highest: dict = {}
        for row in within:
            highest[row.n_cells, row.n_axes] = row  # degrees rise
        return min(highest.values(), key=lambda row: inf if isnan(row.lost) else row.lost)

    def _help(self, row):
        """What would bring the cut kernel closer."""
        beyond = [other for other in self.rows if other.problem and other.lost <= TOLERANCE]
        if beyond:
            yield f"a larger budget: {_name(beyond[0])} would do, but {beyond[0].problem}"
        elif not any(other.problem for other in self.rows):
            yield f"a higher degree than {row.degree}"
        column, energy = int(np.argmax(self._energy)), self._energy.max()
        if energy > 0.5 and len(self._energy) > 2:
            yield f"scaling: column {column} has {100 * energy:.0f} % of the squared distances"
        if row.residual > CLOSE and row.n_cells == 1 and row.n_axes is None:
            factor = brentq(lambda f: gammainc(row.degree + 1, np.exp(f) * self._norms).mean() - CLOSE, -99, 0)
            yield f"a smaller gamma: {self.gamma * np.exp(factor):.2g}, not {self.gamma:.2g}"
        most = max(other.n_cells for other in self.rows)
        yield "n_cells, to expand around several centres" if most == 1 else f"more cells than {most}"
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
        beside = ax.twinx()
        timed = "epoch_seconds" if isnan(self.rows[0].fit_seconds) else "fit_seconds"
        what = "seconds of an epoch" if timed == "epoch_seconds" else "seconds of a fit"
        lines = []
        for k, (apart, rows) in enumerate(self._groups().items()):
            degrees, style = [row.degree for row in rows], ("-", "--", "-.")[k % 3]
            for j, (name, label) in enumerate(DRAWN.items()):
                values = [getattr(row, name) for row in rows]
                lines += ax.plot(degrees, values, f"C{j}", linestyle=style, marker="o", label=label + apart)
            seconds = [getattr(row, timed) for row in rows]
            lines += beside.plot(degrees, seconds, color=str(k / 6 % 1), linestyle=":", label=what + apart)
        ax.axhline(TOLERANCE, color="grey", linewidth=0.5)
        ax.set(xlabel="degree", ylabel="error", yscale="log", xticks=sorted({row.degree for row in self.rows}))
        beside.set(ylabel=what, yscale="log")
        ax.legend(lines, [line.get_label() for line in lines], fontsize="small")
        return ax

    def _groups(self):
        """{what tells them apart from rows without cells and axes: rows}."""
        groups: dict = {}
        for row in self.rows:
            groups.setdefault(_apart(row), []).append(row)
        return groups

    def _cells(self):
        """The table as text: a list of lines, the head first; of axes it tells where there are such."""
        shown = [list(HEADS)]
        for row in self.rows:
            numbers = (row.epoch_seconds, row.fit_seconds)
            epoch, fit = (short(n) if row.measured or isnan(n) else f"~{short(n)}" for n in numbers)
            others = (row.residual, row.kernel_error, row.theorem1, row.n_fourier, row.fourier_error, row.lost)
            axes = "" if row.n_axes is None else str(row.n_axes)
            counts = (row.n_slots, row.monomials, row.monomials_99, row.monomials_worst)
            shown.append([
                str(row.degree), str(row.n_cells), axes, *map(short, counts), readable(row.bytes),
                short(row.operations), epoch, fit, *map(short, others), short(row.held_out), row.problem,
            ])  # fmt: skip
        if all(row.n_axes is None for row in self.rows):
            for line in shown:
                del line[AXES]
        return shown

    def __str__(self):
        cells = self._cells()
        widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
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
    *(
        "degree",
        "cells",
        "axes",
        "D",
        "monomials",
        "99 %",
        "worst",
        "memory",
        "operations",
        "epoch s",
        "fit s",
        "residual",
    ),
    *("|K-K~|", "theorem 1", "Fourier", "their |K-K~|", "lost", "held out", "beyond budget"),
)
AXES = HEADS.index("axes")
DRAWN = {
    "lost": "lost of an exact model",
    "residual": "mean residual",
    "kernel_error": "mean |K - K~|",
    "fourier_error": "the same of Fourier features",
}


def progress_line(row):
    """What to say when a row is done."""
    cost = _cost(row)
    return f"{_name(row)}: {row.problem or cost[0].lower() + cost[1:-1]}"


def _rank(row):
    """What comes first of rows that are close enough."""
    return row.n_cells, row.degree, row.epoch_seconds if isnan(row.fit_seconds) else row.fit_seconds


def _apart(row):
    if row.n_axes is not None:
        return f", {row.n_axes} axes"
    return "" if row.n_cells == 1 else f", {row.n_cells} cells"


def _name(row):
    return f"degree {row.degree}{_apart(row)}"


def _cost(row):
    what, seconds = ("An epoch", row.epoch_seconds) if isnan(row.fit_seconds) else ("A fit", row.fit_seconds)
    return f"{what} takes about {short(seconds)} s, and training {readable(row.bytes)}."


def short(number):
    """Three digits; nothing for NaN."""
    if isnan(number):
        return ""
    return str(number) if isinstance(number, int) and number < 10**6 else f"{number:.3g}"
