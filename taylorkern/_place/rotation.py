"""Rows along their principal axes: another isometry, for rows that are too long for their monomials to be walked.

The Gaussian kernel does not change when rows are rotated. Along their principal axes most of a row lies in its first
coordinates, and only monomials of those are kept; the others count in s(x) alone, and not even there in unit rows. That
is still an orthogonal projection of the exact features, so that everything that holds for a model holds for this one.
"""

import numpy as np

from .. import _core
from .._data.expansion import Expansion
from .._data.rows import Csr, Rows, dot_rows, is_csr

SAMPLE = 2**13  # rows from which the axes are found
CHUNK = 2**13
COVARIANCE = 1000  # columns up to which the axes are those of the matrix of covariances


class Rotation:
    """(x - mean) along some axes.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Of the rows.
    axes : ndarray of shape (n_features, k)
        Orthonormal columns.
    """

    def __init__(self, mean, axes):
        self.mean, self.axes = mean, axes
        n_features, k = axes.shape
        # The axes, and the mean, as tables of a linear map, whose constant coordinate makes up for the shift.
        self._table = np.zeros((n_features + 1, k + 1))
        self._table[1:, :k], self._table[1:, k] = axes, mean
        self._table[0, :k] = -(mean @ axes)
        self._linear = Expansion(n_features, degree=1, gamma=1.0, kernel=(0.0, 1.0))

    place = None  # as a `Shift` of dense rows

    @property
    def by(self):
        """What is subtracted from rows."""
        return self.mean

    @property
    def n_features(self):
        """Columns of the rows as they are given."""
        return len(self.mean)

    def __call__(self, X):
        """Rows along the axes."""
        return self.rows(X).X

    def rows(self, X, n_jobs=1):
        """Rows along the axes, and what they are beyond them: `Rows`."""
        n_rows, k = X.shape[0], self.axes.shape[1]
        Z, beyond = np.empty((n_rows, k), dtype=X.dtype), np.empty(n_rows)
        for first in range(0, n_rows, CHUNK):
            part = slice(first, first + CHUNK)
            Z[part], beyond[part] = self._along(_part(X, first, min(first + CHUNK, n_rows)), n_jobs)
        rows = Rows(Z)
        rows.core.set_cells(None, beyond, 0)
        return rows

    def _along(self, X, n_jobs):
        """(coordinates, what is left of the squared norms)."""
        k, table = self.axes.shape[1], self._table
        if is_csr(X):  # in double precision: the mean comes off afterwards, and may be much larger than what is left
            X = Csr(X.data.astype(np.float64), X.indices, X.indptr, X.shape)
        else:
            X, table = X - self.mean.astype(X.dtype), table.astype(X.dtype)
            table[0], table[:, k] = 0, 0
        rows = Rows(X)
        rows.walk_dense(not is_csr(X) and X.shape[1] <= _core.MAX_DENSE_COLUMNS)
        products = dot_rows(rows, self._linear, self._linear.bare, table, n_jobs).astype(np.float64, copy=False)
        squares, _ = rows.squares()
        if is_csr(X):
            squares += self.mean @ self.mean - 2 * products[:, k]
        return products[:, :k], np.maximum(squares - np.einsum("ij,ij->i", products[:, :k], products[:, :k]), 0.0)

    def bytes(self, X):
        """How much memory these rows take."""
        return X.shape[0] * (self.axes.shape[1] * X.dtype.itemsize + 8)


def _part(X, first, last):
    return X.part(first, last) if hasattr(X, "part") else X[first:last]


def choose_rotation(X, n_axes, random):
    """The principal axes of training rows, as `check_rows` returns them; fewer where there are not as many."""
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    some = X
    if X.shape[0] > SAMPLE:
        some = X[np.sort(random.permutation(X.shape[0])[:SAMPLE])]
    some = some.astype(np.float64)
    n_rows, n_features = some.shape
    k = min(n_axes, max(n_rows - 1, 1), n_features)  # about their mean n rows have n - 1 directions at most
    if _all_equal(some):
        row = some[:1].toarray()[0] if is_csr(some) else some[0]
        return Rotation(row, np.eye(n_features, k))
    solver = "arpack" if is_csr(some) else "auto"
    if n_features <= max(COVARIANCE, n_axes):
        solver = "covariance_eigh"
        if n_features <= COVARIANCE and is_csr(some):  # products of dense matrices are many times as fast
            some = some.toarray()
    with threadpool_limits(limits=1):  # the order in which threads add up would show in the last bits
        pca = PCA(k, svd_solver=solver, random_state=random).fit(some)
    return Rotation(pca.mean_, np.ascontiguousarray(pca.components_.T))


def _all_equal(X):
    """Whether all rows are the same, so that there are no principal axes."""
    if is_csr(X):
        from sklearn.utils.sparsefuncs import min_max_axis

        return np.array_equal(*min_max_axis(X, axis=0))
    return not np.ptp(X, axis=0).any()
