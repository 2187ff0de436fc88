"""The rows of a plan as they would be expanded: shifted, divided into cells, or along principal axes."""

from math import comb
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from scipy.special import gammainc
from sklearn.base import is_classifier

from .._data.expansion import Expansion
from .._data.rows import Rows, is_csr
from .._place.cells import choose_cells
from .._place.rotation import choose_rotation
from ..kernel import pair_products
from .lost import SAMPLE, cut_shares, targets_of

DEGREE = 2  # at which it is decided whether the rows of cells are dense: the sample is divided once for all degrees


class Form(NamedTuple):
    """Rows in one of their forms; the kernel is the mean over forms."""

    X: Any  # as they are walked
    squares: np.ndarray  # their |x|^2
    beyond: np.ndarray  # what is left out of that
    cell: np.ndarray | None  # None: all are in the same one

    def first(self, n_rows):
        """The first rows."""
        cell = None if self.cell is None else self.cell[:n_rows]
        return Form(self.X[:n_rows], self.squares[:n_rows], self.beyond[:n_rows], cell)


class View:
    """The sample with a number of cells or axes.

    Parameters
    ----------
    sample : Sample
        The rows.
    model : TaylorSVC or TaylorSVR
        What is to be trained.
    n_cells : int
        Cells.
    n_axes : int or None
        Axes; only with one cell.
    """

    def __init__(self, sample, model, n_cells, n_axes):
        self.sample, self.model, self.n_cells, self.n_axes = sample, model, n_cells, n_axes
        self.shift, random = sample.shift, np.random.RandomState(0)
        if n_cells > 1:
            limits = {"n_jobs": effective_n_jobs(model.n_jobs), "memory_limit": model.memory_limit}
            self.shift = choose_cells(sample.X, n_cells, model.n_partitions, DEGREE, random, **limits)
        elif n_axes is not None:
            self.shift = choose_rotation(sample.X, n_axes, random)
        if self.is_plain:
            self.rows = Rows(sample.looked_at)
        else:
            self.rows = self.shift.rows(sample.X[: sample.looked_at.shape[0]])
        self.forms = [self._form(form) for form in self.rows.forms()]
        self._lengths = np.array([np.concatenate([some for _, some in form.lengths()]) for form in self.rows.forms()])
        self.longest = int(self._lengths.max())

    @property
    def is_plain(self):
        """Whether there are neither cells nor axes."""
        return self.n_cells == 1 and self.n_axes is None

    def _form(self, rows):
        X = rows.X
        if is_csr(X):
            X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        squares, beyond = rows.squares()
        return Form(X, squares, beyond, rows.core.base if self.n_cells > 1 else None)

    def n_slots(self, degree):
        """The number of monomials in all tables."""
        if self.n_cells == 1:
            return comb(self.rows.n_columns + degree, degree)
        columns = [int(n) for partition in self.shift.partitions for n in partition.n_columns]
        return sum(comb(n + degree, degree) for n in columns)

    def monomials(self, degree):
        """How many a row has that are not zero, in all its forms, for each row that is looked at; in rising order."""
        lengths, which = np.unique(self._lengths, return_inverse=True)
        counts = np.array([comb(int(m) + degree, degree) for m in lengths], dtype=object)  # they may be beyond int64
        return sorted(counts[which.reshape(self._lengths.shape)].sum(axis=0))

    def expansion(self, degree):
        """The expansion of these rows."""
        own = self.sample.expansion
        return Expansion(self.rows.n_columns, degree=degree, gamma=own.gamma, kernel=own.kernel, coef0=own.coef0)

    def residuals(self, degree):
        """1 - K~(x, x) of each row."""
        scale2 = self.sample.expansion.scale**2
        each = []
        for form in self.forms:
            kept = -scale2 * form.beyond
            each.append(np.exp(kept) * gammainc(degree + 1, scale2 * form.squares) - np.expm1(kept))
        return np.mean(each, axis=0)

    def kernels(self, degree):
        """The exact and the cut kernel of some pairs; between rows of different cells both are 0."""
        i, j = self.sample.pairs
        scale2, gamma = self.sample.expansion.scale**2, self.sample.gamma
        cut_kernel = Expansion(1, degree=degree, gamma=gamma, normalize=self.model._normalized).kernel_of
        exact, cut = [], []
        for form in self.forms:
            same = 1.0 if form.cell is None else form.cell[i] == form.cell[j]
            t, beyond = scale2 * form.squares, scale2 * form.beyond
            z = scale2 * pair_products(form.X, i, j)
            exact.append(same * self.sample.exact)
            cut.append(same * cut_kernel(z, t[i], t[j], beyond[i], beyond[j]))
        return np.mean(exact, axis=0), np.mean(cut, axis=0)

    def shares(self, degrees):
        """What each degree loses."""
        sample, model = self.sample, self.model
        X, y, forms = sample.few, sample.few_y, None
        if not self.is_plain:  # rows that the cells were made for
            X, y = sample.looked_at[:SAMPLE], None if sample.y is None else sample.y[:SAMPLE]
            forms = [form.first(X.shape[0]) for form in self.forms]
        targets = None if y is None else targets_of(y, is_classifier(model))
        known = {"gamma": sample.gamma, "C": float(model.C), "n_rows": sample.n_rows, "normalize": model._normalized}
        return cut_shares(X, targets, degrees, **known, forms=forms)
