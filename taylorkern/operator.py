"""TaylorOperator: the feature matrix as a linear operator, never stored."""

import numpy as np
from scipy.sparse.linalg import LinearOperator

from . import _core
from ._expansion import Expansion, resolve_gamma
from ._memory import check_memory
from ._rows import PASS_MONOMIALS, Rows, check_rows

# Monomials walked, for each slot, from which on a pass over the table costs less than it saves (bench/micro.py).
WEIGH_FROM = 64
WEIGH_TO_DEGREE = 20


class TaylorOperator(LinearOperator):
    """The feature matrix Phi(X) of `TaylorFeatures`, to multiply with.

    Each product walks the monomials of every row and keeps none of them. The memory beyond X, the vector and the result
    is at most one table of n_slots numbers (one for each column of a matrix that is multiplied). The interpreter's lock
    is released while a product runs.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data. Dense arrays in C order and CSR matrices with sorted indices, of float32 or float64, are used as
        they are, without a copy.
    degree : int, default=3
        The degree r at which the kernel's series is cut.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`.
    kernel : {"gaussian", "exponential", "polynomial"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    memory_limit : int, default=None
        The largest table in bytes. None stands for what the machine has free.

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

    def __init__(self, X, *, degree=3, gamma="scale", kernel="gaussian", coef0=1.0, memory_limit=None):
        X = check_rows(X)
        self._expansion = Expansion(
            X.shape[1], degree=degree, gamma=resolve_gamma(gamma, X), kernel=kernel, coef0=coef0
        )
        self._rows = Rows(X)
        self._rows.check_longest(self._expansion)
        total = self._rows.choose_walk(self._expansion)
        # A walk of bare monomials is faster. But the factors sqrt(c / a!) have then to be applied to a whole table; and
        # at high degrees they are too small for a float32, as bare monomials are too large.
        self._weigh_first = total > WEIGH_FROM * self._expansion.n_slots and self._expansion.degree <= WEIGH_TO_DEGREE
        check_memory(0, memory_limit, "nothing")
        self.memory_limit = memory_limit
        self.gamma = self._expansion.gamma
        self.n_slots = self._expansion.n_slots
        super().__init__(X.dtype, (X.shape[0], self.n_slots))

    def _matmat(self, V):
        if np.iscomplexobj(V):
            return self._matmat(V.real) + 1j * self._matmat(V.imag)
        rows, expansion = self._rows, self._expansion
        if self._weigh_first:
            walked, table = expansion.bare, self._table(V.shape[1])
            table[...] = V
            self._weigh(table)
        else:
            walked, table = expansion.features, np.ascontiguousarray(V, dtype=self.dtype)
        out = np.empty((rows.n_rows, table.shape[1]), dtype=self.dtype)
        scratch = rows.scratch(walked)
        for first, last in rows.passes(expansion):
            _core.dot(rows.core, walked, first, last, table, out[first:last], scratch)
        return out

    def _rmatmat(self, T):
        if np.iscomplexobj(T):
            return self._rmatmat(T.real) + 1j * self._rmatmat(T.imag)
        rows, expansion = self._rows, self._expansion
        walked = expansion.bare if self._weigh_first else expansion.features
        T = np.ascontiguousarray(T, dtype=self.dtype)
        table = self._table(T.shape[1])
        table[...] = 0
        scratch = rows.scratch(walked)
        for first, last in rows.passes(expansion):
            _core.add(rows.core, walked, first, last, table, T[first:last], scratch)
        if self._weigh_first:
            self._weigh(table)
        return table

    def _matvec(self, v):
        return self._matmat(np.reshape(v, (-1, 1))).ravel()

    def _rmatvec(self, t):
        return self._rmatmat(np.reshape(t, (-1, 1))).ravel()

    def _table(self, width):
        n_bytes = self.n_slots * width * self.dtype.itemsize
        check_memory(n_bytes, self.memory_limit, f"a table of {self.n_slots} x {width} numbers")
        return np.empty((self.n_slots, width), dtype=self.dtype)

    def _weigh(self, table):
        """Multiply each slot by its monomial's factor sqrt(c / a!)."""
        features, tops = self._expansion.features, self._expansion.ranks[-1]
        scratch = self._rows.scratch(features)
        first, end = 0, self._expansion.n_columns + 1
        while first < end:
            last = int(np.searchsorted(tops, tops[first] + PASS_MONOMIALS, side="right")) - 1
            last = min(max(last, first + 1), end)
            _core.weigh(features, first, last, table, scratch)
            first = last
