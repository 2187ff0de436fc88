"""TaylorFeatures: the explicit feature map of a truncated kernel, as a scikit-learn transformer."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._data.checks import check_rows, learn_columns
from ._data.expansion import Expansion, check_normalize, passes, resolve_gamma
from ._data.memory import check_memory
from ._data.rows import Rows
from ._data.threads import check_jobs, share_out
from ._model.degree import BYTES, auto_degree, some_rows
from ._model.files import ModelFileMixin
from ._model.names import monomial_name

NAME_BYTES = 120  # of one feature name, about: the string and its place in the array


class Cost(NamedTuple):
    """What a transform takes; see `TaylorFeatures.estimate_cost`."""

    n_slots: int
    """The number of features D = C(d + r, r)."""
    nonzeros: int
    """The entries that the output stores."""
    longest_row: int
    """The entries of its longest row."""
    bytes: int
    """The memory of the output."""
    operations: int
    """Multiplications: one for each entry."""


class TaylorFeatures(TransformerMixin, ModelFileMixin, BaseEstimator):
    """Monomials of the columns, scaled such that inner products are a truncated kernel.

    The Gaussian kernel is exp(-gamma |x|^2) exp(-gamma |x'|^2) exp(2 gamma <x, x'>). Cutting the Taylor series of the
    last factor after degree r leaves an inner product of monomials of degree at most r: one feature for each, most of
    them zero when the data is sparse. The output is a CSR matrix with sorted indices; a row with m nonzeros has
    C(m + r, r) entries.

    Use this to look at the features or to feed them to another linear model. To multiply with them without storing
    them, use `TaylorOperator`.

    Parameters
    ----------
    degree : int or "auto", default=3
        The degree r at which the series is cut. "auto" takes the least one that keeps nearly all of the rows, as
        `TaylorSVC` does, among those whose features of the training rows fit into memory_limit (by default 256 MiB).
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float, default="gaussian"
        "gaussian" is exp(-gamma |x - x'|^2) and "exponential" is exp(2 gamma <x, x'>), both cut after degree r;
        "polynomial" is (gamma <x, x'> + coef0)^r, exactly. "rbf" and "poly", scikit-learn's names, mean the first and
        the last. A sequence of r + 1 numbers c_k >= 0 stands for
        sum_k c_k / k! (gamma <x, x'>)^k.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    normalize : bool, default=False
        Whether each row's features are divided by their norm. They are then unit rows, as the estimators take them.
    memory_limit : int, default=None
        The largest output in bytes. None stands for what the machine has free. Larger ones are refused before
        anything is allocated.
    n_jobs : int, default=None
        Threads for `transform`, whose result does not depend on it. None is one; -1 is as many as there are cores.

    Attributes
    ----------
    degree_ : int
        The degree.
    gamma_ : float
        The bandwidth as a number.
    n_features_in_ : int
        The number of columns d.
    n_features_out_ : int
        The number of features, C(d + r, r).
    feature_names_in_ : ndarray of str
        The names of the columns, when they have names.

    See Also
    --------
    TaylorOperator : Products with the same features, which are then never stored.
    taylor_kernel : Their inner products in closed form.

    Examples
    --------
    >>> from taylorkern import TaylorFeatures
    >>> X = [[1.0, 0.0], [0.5, 2.0]]
    >>> features = TaylorFeatures(degree=2, gamma=0.5).fit(X)
    >>> features.get_feature_names_out().tolist()
    ['1', 'x0', 'x0^2', 'x1', 'x0 x1', 'x1^2']
    >>> features.transform(X).toarray().round(3).tolist()[0]
    [0.607, 0.607, 0.429, 0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        *,
        degree=3,
        gamma="scale",
        kernel="gaussian",
        coef0=1.0,
        normalize=False,
        memory_limit=None,
        n_jobs=None,
    ):
        self.degree = degree
        self.gamma = gamma
        self.kernel = kernel
        self.coef0 = coef0
        self.normalize = normalize
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Learn the number of columns and the bandwidth.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : ignored

        Returns
        -------
        self : TaylorFeatures
        """
        checked = check_rows(X, empty=False, n_jobs=self.n_jobs)
        expansion = self._expand(checked)
        learn_columns(self, X)  # last, so that a failed fit changes nothing
        self._expansion = expansion
        self.degree_ = self._expansion.degree
        self.gamma_ = self._expansion.gamma
        self.n_features_out_ = self._expansion.n_slots
        return self

    def transform(self, X):
        """The features of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.

        Returns
        -------
        features : CSR matrix (CSR array for sparse arrays) of shape (n_samples, n_features_out_)
            In the real type of X. Indices are sorted, of 32 bits where that is enough.
        """
        check_is_fitted(self)
        given, n_jobs = X, check_jobs(self.n_jobs)
        X = check_rows(X, estimator=self, n_jobs=self.n_jobs)
        rows, expansion = Rows(X), self._expansion
        cost = _cost(rows, expansion)
        rows.check_longest(expansion)
        rows.check_reach(expansion)
        check_memory(cost.bytes, self.memory_limit, f"{cost.nonzeros} features of {rows.n_rows} rows")

        index = _index_type(expansion, cost.nonzeros)
        indptr = rows.ends(expansion, index)
        slots = np.empty(cost.nonzeros, dtype=index)
        values = np.empty(cost.nonzeros, dtype=rows.dtype)

        def take(ranges):
            scratch = rows.scratch()
            for first, last in ranges:
                part = slice(indptr[first], indptr[last])
                _core.expand(rows.core, expansion.features, first, last, slots[part], values[part], scratch)

        share_out(take, passes(indptr), n_jobs)
        return csr_type(given)((values, slots, indptr), shape=(rows.n_rows, expansion.n_slots))

    def estimate_cost(self, X):
        """What `transform(X)` will take, found without building anything.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data. The transformer need not be fitted.

        Returns
        -------
        cost : Cost
            A named tuple of exact integers: n_slots, nonzeros, longest_row, bytes, operations.
        """
        fitted = hasattr(self, "_expansion")
        X = check_rows(X, estimator=self) if fitted else check_rows(X)
        return _cost(Rows(X), self._expansion if fitted else self._expand(X))

    def get_feature_names_out(self, input_features=None):
        """The names of all features, such as "1", "x0" and "x0^2 x3".

        They are made when asked for, never before. For one name of many, see `powers_of`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the columns; by default `feature_names_in_`, or else x0, x1, ...

        Returns
        -------
        names : ndarray of object, of shape (n_features_out_,)
        """
        check_is_fitted(self)
        columns = self._column_names(input_features)
        check_memory(self.n_features_out_ * NAME_BYTES, self.memory_limit, f"{self.n_features_out_} feature names")
        names = (monomial_name(_powers(m), columns) for m in _multisets(self.degree_, len(columns)))
        return np.fromiter(names, dtype=object, count=self.n_features_out_)

    def slot_of(self, powers):
        """The column of the output that holds a monomial.

        Parameters
        ----------
        powers : mapping of int to int, or sequence of int
            {column: power}, or one power for each column.

        Returns
        -------
        slot : int

        Examples
        --------
        >>> from taylorkern import TaylorFeatures
        >>> features = TaylorFeatures(degree=3).fit([[1.0, 2.0], [3.0, 4.0]])
        >>> features.slot_of({0: 1, 1: 2}), features.slot_of([1, 2])
        (8, 8)
        """
        check_is_fitted(self)
        return self._expansion.slot_of(powers)

    def powers_of(self, slot):
        """The monomial in a column of the output.

        Parameters
        ----------
        slot : int
            A column of the output.

        Returns
        -------
        powers : dict of int to int
            {column: power}; columns with power 0 are left out.

        Examples
        --------
        >>> from taylorkern import TaylorFeatures
        >>> TaylorFeatures(degree=3).fit([[1.0, 2.0], [3.0, 4.0]]).powers_of(8)
        {0: 1, 1: 2}
        """
        check_is_fitted(self)
        return self._expansion.powers_of(slot)

    def _expand(self, X):
        gamma, degree = resolve_gamma(self.gamma, X), self.degree
        if isinstance(degree, str) and degree == "auto":
            check_memory(0, self.memory_limit, "nothing")
            limit, rows = BYTES if self.memory_limit is None else self.memory_limit, Rows(X)

            def fits(degree):
                return _cost(rows, Expansion(X.shape[1], degree=degree, gamma=gamma, kernel=self.kernel)).bytes <= limit

            degree = auto_degree(self.kernel, gamma, Rows(some_rows(X)), fits)
        check_normalize(self.normalize)
        known = {"kernel": self.kernel, "coef0": self.coef0, "normalize": self.normalize}
        return Expansion(X.shape[1], degree=degree, gamma=gamma, **known)

    def _column_names(self, input_features):
        own = getattr(self, "feature_names_in_", None)
        if input_features is None:
            return [f"x{j}" for j in range(self.n_features_in_)] if own is None else list(own)
        names = list(input_features)
        if len(names) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(names)}"
            )
        if own is not None and names != list(own):
            raise ValueError("input_features is not equal to feature_names_in_")
        return names

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _multisets(places, highest) -> Iterator[tuple[int, ...]]:
    """All multisets 0 <= j_1 <= ... <= j_places <= highest, in the order of their slots."""
    if places == 0:
        yield ()
        return
    for j in range(highest + 1):
        for below in _multisets(places - 1, j):
            yield (*below, j)


def _powers(multiset):
    powers: dict[int, int] = {}
    for j in multiset:
        if j > 0:
            powers[j - 1] = powers.get(j - 1, 0) + 1
    return powers


def _cost(rows, expansion):
    nonzeros, longest = rows.monomials(expansion)
    index = np.dtype(_index_type(expansion, nonzeros)).itemsize
    n_bytes = nonzeros * (rows.dtype.itemsize + index) + (rows.n_rows + 1) * index
    return Cost(expansion.n_slots, nonzeros, longest, n_bytes, nonzeros)


def _index_type(expansion, nonzeros):
    return np.int32 if max(expansion.n_slots, nonzeros) <= np.iinfo(np.int32).max else np.int64


def csr_type(X):
    """Sparse array in, sparse array out; everything else as scikit-learn is configured."""
    if sparse.issparse(X):
        return sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    return sparse.csr_array if get_config().get("sparse_interface") == "sparray" else sparse.csr_matrix
