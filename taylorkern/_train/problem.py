"""The problem that is trained: rows, what is asked of them, a kernel expansion, a loss and C; and its objectives."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._data.expansion import PASS_MONOMIALS, padded
from .._data.rows import PASS_GAIN, WORTH_THREAD, Rows, dot_rows
from .._data.threads import Team, share_out
from .loss import radius2

NAN = float("nan")
TOGETHER = 2**15  # rows of several partitions that are brought into the order of the first one's cells
# Multiply-adds for each row from which on margins are taken in parts, on the number of which results depend. Each
# thread takes one: it reads the slots that it updates, which nobody else reads then.
WORTH_PARTS, PARTS = 4000, 2
# The same from which on there is more than one thread (bench/roofline.py, part e). With fewer, and so without parts,
# slots go from one core to the other in each block: on near cores that gains a tenth, on far or busy ones it loses
# more than half.
WORTH_THREADS = 4000
TERMS = 2**15  # of the objectives, that a thread adds up at once


class Problem:
    """Rows with labels or numbers and weights, a kernel expansion, a loss and C.

    Each row has K outputs f_k(x) = <w_k, phi(x)>. For each of them, or for all together when the loss is a joint one,
    the objective is lambda/2 |w|^2 + mean_i omega_i loss(v_i), with weights omega_i of mean 1 and lambda = 1 / (C n),
    where this C is the user's times the mean of the user's weights. The margins are v = y f of labels, v = f - y of
    numbers, and v = f under a joint loss. Objectives and norms are arrays of one entry for each problem.

    Parameters
    ----------
    X : ndarray, CSR or Rows
        Rows as they are walked.
    y : ndarray of shape (n_rows, K), of int8 or float64
        -1 or 1 (joint losses: 1 for a row's class); or numbers.
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
    favour : ndarray of shape (K,), default=None
        A further weight for the rows with a label of 1.
    walk_dense : bool, default=None
        Whether all columns are walked, or nonzeros only; None: whichever costs less.
    """

    def __init__(self, X, y, weight, expansion, loss, C, n_jobs=1, unit=None, favour=None, walk_dense=None):
        self.rows = X if isinstance(X, Rows) else Rows(X)
        self.y = y if y.ndim == 2 else y[:, None]
        self.expansion = expansion
        self.loss = loss
        self.n_jobs = n_jobs
        self.n_rows = self.rows.n_rows
        self.n_outputs = self.y.shape[1]
        self.n_problems = 1 if loss.joint else self.n_outputs
        self.dtype = self.rows.dtype
        unit = 1.0 if weight is None else unit or float(weight.mean())
        self.weight = None if weight is None else weight / unit
        if favour is not None and loss.joint:
            raise ValueError("a row has one weight under a joint loss")
        self.favour = favour
        # The kernel is the mean over the forms of the rows, and what is walked its sum.
        self.C = C * unit / sum(1 for _ in self.rows.forms())
        self.lambda_ = 1 / (self.C * self.n_rows)
        self.of_labels = self.y.dtype == np.int8
        labels, numbers = (self.y, None) if self.of_labels else (None, self.y)
        self.targets = _core.Targets(loss.name, labels, numbers, self.weight, favour, loss.epsilon)
        self.rows.check_longest(expansion)
        self.rows.check_reach(expansion)
        self.n_monomials = self.rows.choose_walk(expansion, walk_dense)
        self.rows.know_factors(expansion, n_jobs)
        self._scratch = self.rows.scratch()
        self.sample: Any = None  # some of the rows, for the model to keep
        self.used: Any = None  # the numbers of these rows among the user's, when some were left out
        self.whole: Any = None  # an array or CSR: the rows with all that has been left out of them, or None
        self.given: Any = None  # the same rows as they came
        self.residuals: Any = None  # see certificate.residuals_in_forms

    @property
    def width(self):
        """Tables side by side."""
        return padded(self.n_outputs, self.dtype)

    def table(self):
        """Tables of zeros, [n_slots, width]."""
        return np.zeros((self.n_slots, self.width), self.dtype)

    @property
    def n_slots(self):
        """Of the tables; with cells, of all of them together."""
        return self.rows.core.n_slots or self.expansion.n_slots

    def to_table(self, w):
        """Weights of features -> a model's table, in place."""
        return self.expansion.to_table(w, self.rows.cells)

    def shuffled(self, random, rows=None):
        """Some rows, or all, in a random order; see `together`.

        It takes a third of the time of random.permutation, which is much beside an epoch of the dual.
        """
        order = np.arange(self.n_rows, dtype=np.int32) if rows is None else rows.copy()
        _core.shuffle(order, random.randint(0, 2**32, len(order), dtype=np.uint32))
        return self.together(order)

    def together(self, order):
        """Rows in an order, but those of one cell together, as far as they come in the same part of it."""
        order = order.astype(np.int32, copy=False)
        base = self.rows.core.base
        if base is None:
            return order
        # The tables of one partition know nothing of other cells: the order of the cells is of no importance.
        step = len(order) if self.rows.next is None else TOGETHER
        for first in range(0, len(order), max(step, 1)):
            part = order[first : first + step]
            part[:] = part[np.argsort(base[part], kind="stable")]
        return order

    def training(self, w, block, margin=None, update=None, team=None):
        """C's view of the problem, with tables to train, and the rows to put in order: (training, rows).

        By default the tables hold the weights of features.
        """
        rows = self.rows.twin()
        n_parts, n_threads = PARTS if self.work_of_row >= WORTH_PARTS else 1, 1 if team is None else team.n
        n_bytes = _core.training_scratch_bytes(rows, block, self.n_outputs, self.width, n_parts, n_threads)
        scratch = np.zeros(n_bytes, dtype=np.uint8)
        margin, update = margin or self.expansion.features, update or self.expansion.features
        parts, shares = (self.rows.shares(self.expansion, n, self.width) for n in (n_parts, n_threads))
        return _core.Training(rows, margin, update, w, self.targets, block, scratch, shares, parts), rows

    def team(self, steps=1):
        """The threads that run passes together: one where a row is so little work that they would mostly wait.

        `steps` is how much longer a solver takes for a monomial than the walk does.
        """
        return Team(self.n_jobs if steps * self.work_of_row >= WORTH_THREADS else 1)

    @property
    def work_of_row(self):
        """Multiply-adds for each row, where a dense walk does eight in the time of one."""
        eight = 8 if self.rows.core.walk_dense else 1
        return self.n_outputs * self.n_monomials / (eight * self.n_rows)

    def outputs(self, w, walked=None):
        """f(x_i) of all rows, [n_rows, K] in float64; w holds weights of features, or goes with the map `walked`."""
        f = np.empty((self.n_rows, self.n_outputs))

        def deliver(first, last, values):
            f[first:last] = values[:, : self.n_outputs]

        dot_rows(self.rows, self.expansion, walked or self.expansion.features, w, self.n_jobs, deliver)
        return f

    def margins(self, w, walked=None, out=None):
        """The margins of all rows; see `outputs`."""
        margin = np.empty((self.n_rows, self.n_outputs)) if out is None else out

        def deliver(first, last, values):
            self.targets.margins(values, first, margin)

        dot_rows(self.rows, self.expansion, walked or self.expansion.features, w, self.n_jobs, deliver)
        return margin

    def to_margins(self, f, rows=slice(None)):
        """Outputs -> margins, in place."""
        if not self.of_labels:
            return np.subtract(f, self.y[rows], out=f)
        return f if self.loss.joint else np.multiply(f, self.y[rows], out=f)

    def to_outputs(self, margins, rows=slice(None)):
        """Margins of some rows -> outputs."""
        if not self.of_labels:
            return margins + self.y[rows]
        return margins if self.loss.joint else margins * self.y[rows]

    def scaled(self, margins, by):
        """The margins when outputs are multiplied by a number, or by one for each row or problem."""
        return margins * by if self.of_labels else (margins + self.y) * by - self.y

    def add(self, table, alpha, walked=None, rows=None):
        """Add C sum_i alpha_ik y_ik phi(x_i) to a model's tables, or to weights when `walked` are the features."""
        walked = walked or self.expansion.update
        used = np.flatnonzero(alpha.any(axis=1)).astype(np.int32)
        rows = (rows or self.rows).twin()
        rows.set_order(used)
        for first, last in self.passes(len(used)):
            some = used[first:last]
            t = np.zeros((last - first, self.width), dtype=self.dtype)
            t[:, : self.n_outputs] = self.C * alpha[some] * (self.signs[some] if self.signs is not None else 1)
            _core.add(rows, walked, first, last, table, t, self._scratch)

    @property
    def signs(self):
        """y where margins are y f, else None."""
        return self.y if self.of_labels and not self.loss.joint else None

    def passes(self, n, block=8):
        """Ranges of n rows in random order, each of about 40 ms: to begin one takes threads a part of a millisecond."""
        gain = 4 * (PASS_GAIN if self.rows.core.walk_dense else 1)
        cost = max(self.n_monomials * max(self.n_outputs // 4, 1), 1)
        step = max(1, gain * PASS_MONOMIALS * self.n_rows // cost // block) * block
        for first in range(0, n, step):
            yield first, min(first + step, n)

    def terms(self, margins, alpha=None, which=None, live=None, active=None, gap=None):
        """Means over rows (all, or which): [loss, dual term, gap, alpha y f] for each problem. See tk.h.

        With `active`, an array of one byte for each row, it is told there who may yet want to move when this is the
        relative gap, and the means are over those: the others count as 0.
        """
        near = None
        if active is not None:
            root = np.sqrt(np.maximum(gap, 0.0))
            near = np.array([np.minimum(np.maximum(2 * root, 0.03), 0.3) * self.unit, 0.02 * root])
        n, step = self.n_rows if which is None else len(which), max(1, TERMS // self.n_outputs)
        starts = range(0, n, step)
        sums = np.zeros((len(starts), 4, self.n_problems))  # of each part, so that threads do not change a bit

        def take(parts):
            for part, first in parts:
                last = min(first + step, n)
                self.targets.add_terms(margins, alpha, which, first, last, live, sums[part], active, near)

        share_out(take, enumerate(starts), min(self.n_jobs, max(len(starts) // WORTH_THREAD, 1)))
        sums = sums.sum(axis=0)
        return sums / self.n_rows

    @cached_property
    def unit(self):
        """What a margin is measured by: 1 for labels; for numbers, how large they are."""
        if self.of_labels:
            return np.ones(self.n_outputs if not self.loss.joint else 1)
        size = np.abs(self.y).mean(axis=0)
        return np.where(size > 0, size, 1.0)

    def per_problem(self, values):
        """Of each output -> of each problem: the sum, under a joint loss."""
        return values.sum(keepdims=True) if self.loss.joint else values

    def primal(self, margins, norm2):
        """The objectives at a w with these margins and this |w|^2."""
        return self.lambda_ / 2 * norm2 + self.terms(margins)[0]

    def dual(self, alpha, norm2):
        """The dual objectives at alpha, where |w(alpha)|^2 is norm2."""
        return self.terms(alpha, alpha)[1] - self.lambda_ / 2 * norm2

    def norm2(self, alpha, margins):
        """|w(alpha)|^2 = C sum_i alpha_i y_i f(x_i), from the margins under w(alpha) itself."""
        return np.maximum(self.C * self.n_rows * self.terms(margins, alpha)[3], 0.0)

    @cached_property
    def cells(self):
        """The rows of each cell, when they are divided into cells once; else nothing."""
        base = self.rows.core.base
        if base is None or self.rows.next is not None:
            return []
        order = np.argsort(base, kind="stable").astype(np.int32)
        return np.split(order, np.searchsorted(base[order], self.rows.cells.bases[0][1:]))

    def norms_in_cells(self, alpha, margins):
        """|w(alpha)|^2 of each cell, [cells, problems]; see `norm2`."""
        norms = [self.C * self.n_rows * self.terms(margins, alpha, which)[3] for which in self.cells]
        return np.maximum(norms, 0.0)

    def weight_norms_in_cells(self, w):
        """|w|^2 of each cell, [cells, problems], of weights of features."""
        norms = [squared_norms(w[slots])[: self.n_outputs] for slots, _ in self.rows.cells.places()]
        return np.array([self.per_problem(norm) for norm in norms])

    def steepest(self):
        """The largest omega K~(x, x)."""
        norms = np.zeros(self.n_rows)
        for form in self.rows.forms():
            t, beyond = (self.expansion.scale**2 * part for part in form.squares())
            norms += self.expansion.kernel_of(t, t, t, beyond, beyond)
        return float(np.max(np.nan_to_num(norms, posinf=np.finfo(np.float64).max) * self.omega().max(axis=1)))

    def at_zero(self):
        """The objectives at w = 0."""
        return self.terms(self.to_margins(np.zeros((self.n_rows, self.n_outputs))))[0]

    def omega(self):
        """The weights, [n_rows, K] or [n_rows, 1]."""
        weight = np.ones((self.n_rows, 1)) if self.weight is None else self.weight[:, None]
        return weight if self.favour is None else weight * np.where(self.y > 0, self.favour, 1.0)

    def mean_weight(self):
        """The mean of omega for each problem."""
        return np.ones(self.n_problems) if self.favour is None else self.omega().mean(axis=0)

    def mean(self, values):
        """The weighted mean over rows of one number for each, for each problem."""
        mean = np.einsum("i,ik->k", values, self.omega()) / self.n_rows
        return np.broadcast_to(mean, self.n_problems)

    def feasible(self, alpha):
        """An alpha of a problem with other weights or labels, brought to where it is feasible here."""
        omega = self.omega()
        if not self.loss.joint:
            return np.clip(alpha, self.loss.low * omega, self.loss.high * omega)
        own = self.y > 0
        others = np.minimum(np.where(own, 0.0, alpha), 0.0)
        total = -others.sum(axis=1, keepdims=True)
        others *= omega / np.maximum(total, omega)
        return np.where(own, -others.sum(axis=1, keepdims=True), others)

    def radius(self):
        """The optimum lies within |w| <= this."""
        known = radius2(self.loss, self.n_outputs)
        squares = self.at_zero() if known is None else known * self.mean_weight()
        return np.sqrt(squares / self.lambda_)


class Record(NamedTuple):
    """What is known after an epoch, for each problem; NaN where nothing is."""

    primal: np.ndarray
    dual: np.ndarray
    active: int
    seen: np.ndarray  # the primal objective with each row's margin as it was when the row was visited


class Trained(NamedTuple):
    """A model, as its certificate has to know it."""

    table: np.ndarray
    """Its tables, [n_slots, width]."""
    walked: str
    """The map of the expansion that they go with: "margin" or "features"."""
    margins: np.ndarray
    """All margins under it, [n_rows, K]."""
    norm2: np.ndarray
    """|w|^2 for each problem."""


def inner(a, b):
    """<a, b> of two vectors; not by BLAS, whose results depend on its number of threads."""
    return float(np.einsum("i,i->", a, b, dtype=np.float64))


def squared_norms(w):
    """|w_k|^2 of each column, in double precision."""
    total = np.zeros(w.shape[1])
    for first in range(0, len(w), 2**16):
        part = w[first : first + 2**16]
        total += np.einsum("ik,ik->k", part, part, dtype=np.float64)
    return total
