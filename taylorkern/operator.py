"""TaylorOperator: the feature matrix as a linear operator, never stored."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import LinearOperator

from . import _core
from ._data.checks import check_rows
from ._data.expansion import BARE_TO_DEGREE, Expansion, check_normalize, resolve_gamma
from ._data.memory import check_memory
from ._data.reorder import Reordering, frequent_columns
from ._data.rows import SORT_FROM, Rows
from ._data.threads import check_jobs, share_out

# Bytes of a table beyond those of the second cache: there it pays to give frequent columns a table of their own
# (bench/features.py, part d: Adult at degree 3).
REORDER_FROM = 2**20
# Monomials walked for each slot from which on a pass over all slots costs less than it saves; see _split.
WEIGH_FROM = 50


class TaylorOperator(LinearOperator):
    """The feature matrix Phi(X) of `TaylorFeatures`, to multiply with.

    Each product walks the monomials of every row and keeps none of them. Beyond X, the vector and the result it takes
    next to no memory, or, when there are many rows for each slot, one table of at most n_slots numbers. The
    interpreter's lock is released while a product runs.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. Dense arrays in C order and CSR matrices with sorted indices, of float32 or float64, are used as
        they are, without a copy.
    degree : int, default=3
        The degree r at which the kernel's series is cut.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    normalize : bool, default=False
        Whether rows are unit rows; see `TaylorFeatures`.
    memory_limit : int, default=None
        The largest array of a product in bytes. None stands for what the machine has free.
    n_jobs : int, default=None
        Threads for each product, whose bits do not depend on it. None is one; -1 is as many as there are cores.

    Attributes
    ----------
    shape : tuple
        (n_samples, n_slots).
    dtype : dtype
        The real type of X, in which products are computed and returned.
    gamma : float
        The bandwidth as a number.
    n_slots : int
        The number of features, C(n_features + r, r).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import lsmr
    >>> from taylorkern import TaylorOperator
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> Phi = TaylorOperator(X, degree=3, gamma=0.1)
    >>> Phi.shape
    (200, 56)
    >>> target = np.exp(-((X - 0.5) ** 2).sum(axis=1) / 10)
    >>> weights = lsmr(Phi, target)[0]
    >>> bool(np.abs(Phi @ weights - target).max() < 0.01)
    True
    """

    def __init__(
        self,
        X,
        *,
        degree=3,
        gamma="scale",
        kernel="gaussian",
        coef0=1.0,
        normalize=False,
        memory_limit=None,
        n_jobs=None,
    ):
        X = check_rows(X, n_jobs=n_jobs)
        check_normalize(normalize)
        gamma = resolve_gamma(gamma, X)
        self._expansion = Expansion(
            X.shape[1], degree=degree, gamma=gamma, kernel=kernel, coef0=coef0, normalize=normalize
        )
        self._parts = _split(X, self._expansion)
        check_memory(0, memory_limit, "nothing")
        self.memory_limit = memory_limit
        self._n_jobs = check_jobs(n_jobs)
        self.gamma = self._expansion.gamma
        self.n_slots = self._expansion.n_slots
        super().__init__(X.dtype, (X.shape[0], self.n_slots))

    def _matmat(self, V):
        if np.iscomplexobj(V):
            return self._matmat(V.real) + 1j * self._matmat(V.imag)
        out = self._empty(self.shape[0], V.shape[1])
        for columns in self._together(V.shape[1]):
            for part in self._parts:
                self._multiply(part, self._table(part, V[:, columns]), out[:, columns])
        return out

    def _multiply(self, part, table, out):
        rows = part.rows

        def take(passes):
            scratch = rows.scratch()
            for first, last in passes:
                products = np.empty((last - first, table.shape[1]), dtype=self.dtype)
                _core.dot(rows.core, part.walked, first, last, table, products, scratch)
                out[rows.stored(first, last)] = products

        share_out(take, iter(part.passes), self._n_jobs)

    def _table(self, part, V):
        """V as the rows of a part are multiplied with it."""
        if not part.weigh_apart:
            return np.ascontiguousarray(V, dtype=self.dtype)
        table = self._empty(part.expansion.n_slots, V.shape[1])
        if part.reordering:
            part.reordering.take(np.ascontiguousarray(V, dtype=self.dtype), table)
        else:
            table[...] = V
        part.expansion.weigh(part.expansion.features, table)
        return table

    def _rmatmat(self, T):
        if np.iscomplexobj(T):
            return self._rmatmat(T.real) + 1j * self._rmatmat(T.imag)
        out = self._empty(self.n_slots, T.shape[1])
        for columns in self._together(T.shape[1]):
            whole = out if columns.stop - columns.start == T.shape[1] else self._empty(self.n_slots, 1)
            whole[...] = 0
            for part in self._parts:
                table = whole
                if part.reordering:
                    table = self._empty(part.expansion.n_slots, whole.shape[1])
                    table[...] = 0
                self._add(part, T[:, columns], table)
                if part.weigh_apart:
                    part.expansion.weigh(part.expansion.features, table)
                if part.reordering:
                    part.reordering.add(table, whole)
            if whole is not out:
                out[:, columns] = whole
        return out

    def _add(self, part, T, table):
        """Each thread has slots of its own: all of them see their additions in the same order."""
        rows, shares = part.rows, part.rows.shares(part.expansion, self._n_jobs)

        def take(ranges):
            scratch = rows.scratch()
            for top, end in ranges:
                for first, last in part.passes:
                    t = np.ascontiguousarray(T[rows.stored(first, last)], dtype=self.dtype)
                    _core.add(rows.core, part.walked, first, last, table, t, scratch, top, end)

        share_out(take, pairwise(shares.tolist()), self._n_jobs)

    def _matvec(self, v):
        return self._matmat(np.reshape(v, (-1, 1))).ravel()

    def _rmatvec(self, t):
        return self._rmatmat(np.reshape(t, (-1, 1))).ravel()

    def _transpose(self):
        return self.adjoint()  # it is real

    def _together(self, width):
        """The columns that are multiplied in one walk. Dense walks are faster one by one."""
        if self._parts[0].rows.core.walk_dense and width > 1:
            return [slice(j, j + 1) for j in range(width)]
        return [slice(0, width)]

    def _empty(self, n_rows, width):
        n_bytes = n_rows * width * self.dtype.itemsize
        check_memory(n_bytes, self.memory_limit, f"an array of {n_rows} x {width} numbers")
        return np.empty((n_rows, width), dtype=self.dtype)


@dataclass
class Part:
    """Rows that are multiplied with the same table."""

    rows: Rows
    expansion: Expansion
    weigh_apart: bool
    """Whether monomials are walked bare, and the factors sqrt(c / a!) take a pass of their own over a table."""
    reordering: Reordering | None = None
    """What the table's columns are; None stands for all of them in their own order."""

    @property
    def walked(self):
        """The map of the walk."""
        return self.expansion.bare if self.weigh_apart else self.expansion.features

    @cached_property
    def passes(self):
        """The rows in ranges (first, last)."""
        return list(self.rows.passes(self.expansion))


def _split(X, expansion):
    """The parts of X; those with a table of their own come first."""
    rows = Rows(X)
    rows.check_longest(expansion)
    rows.check_reach(expansion)
    total = rows.choose_walk(expansion)
    # Bare monomials are walked faster; but at high degrees their factors are too small for a float32, as bare monomials
    # are too large.
    may_weigh = expansion.degree <= BARE_TO_DEGREE
    table_bytes = expansion.n_slots * X.dtype.itemsize
    parts = [Part(rows, expansion, may_weigh and total > WEIGH_FROM * expansion.n_slots)]
    if rows.core.walk_dense:
        return parts
    frequent = frequent_columns(rows, expansion) if may_weigh and table_bytes > REORDER_FROM else None
    if frequent:
        columns, n_front, inside = frequent
        reordering = Reordering(columns, expansion)
        which = None if inside.all() else np.flatnonzero(inside)
        parts = [Part(rows.part(which, columns, n_front), reordering.expansion, True, reordering)]
        if which is not None:
            parts.append(Part(rows.part(np.flatnonzero(~inside)), expansion, False))
    if table_bytes > SORT_FROM and rows.n_rows <= np.iinfo(np.int32).max:
        for part in parts:
            part.rows.core.set_order(part.rows.sorted(0, part.rows.n_rows))
    return parts
