"""Anything array-like -> rows that C can trust: checked once, and not copied when they come in C's own layout."""

import sys

import numpy as np

from .. import _core
from .expansion import MAX_COLUMNS
from .rows import in_order
from .threads import check_jobs, share_out

LOOKED_AT = 2**18  # numbers that are checked by one thread, between two looks at Ctrl-C


def check_rows(X, *, estimator=None, empty=True, n_jobs=None):
    """Check X and bring it into the layout that `Rows` takes, without a copy where it has it already.

    With an estimator, also check against its `n_features_in_` and `feature_names_in_`. `empty` allows matrices without
    rows or columns. Threads share large matrices; n_jobs is an estimator's.
    """
    look = look_at(X, estimator, empty)
    if look is not None and _all_plain(X, look, n_jobs):
        return X
    canonical = check_sparse_structure(X) if is_sparse(X) else None
    from sklearn.utils.validation import check_array, validate_data

    options = {
        "accept_sparse": "csr",
        "dtype": (np.float64, np.float32),
        "order": "C",
        "ensure_min_samples": 0 if empty else 1,
        "ensure_min_features": 0 if empty else 1,
    }
    if estimator is None:
        X = check_array(X, input_name="X", **options)
    else:
        X = validate_data(estimator, X, reset=False, **options)
    return _canonical(X, canonical) if is_sparse(X) else in_order(X)


def look_at(X, estimator=None, empty=True):
    """What tells of rows first to last - 1 whether they need no checks: look(first, last); None: all of X does.

    scikit-learn's own checks take longer than to predict a few rows, and large data is better looked at where it is
    used. When in doubt, `check_rows` tells what is wrong.
    """
    as_csr = is_sparse(X) and X.format == "csr"
    if (type(X) is not np.ndarray and not as_csr) or X.ndim != 2 or not (empty or all(X.shape)):
        return None
    if estimator is not None:
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None or X.shape[1] != getattr(estimator, "n_features_in_", None):
            return None
    values = X.data if as_csr else X
    if values.dtype not in (np.float64, np.float32) or not values.flags.carray or not values.dtype.isnative:
        return None
    if not as_csr:
        return lambda first, last: _core.all_finite(X[first:last].reshape(-1))
    indptr, indices, (n_rows, n_columns) = X.indptr, X.indices, X.shape
    for array in (indptr, indices):
        if type(array) is not np.ndarray or array.dtype not in (np.int32, np.int64) or not array.flags.carray:
            return None
    if indptr.dtype != indices.dtype or indptr.shape != (n_rows + 1,) or indices.ndim != 1 or n_columns > MAX_COLUMNS:
        return None
    if values.shape != (indptr[-1],):
        return None

    def look(first, last):
        _, canonical = _core.check_structure(indptr, indices, n_columns, len(values), first, last)
        return canonical and _core.all_finite(values[indptr[first] : indptr[last]], True)

    return look


def learn_columns(estimator, X):
    """Set `n_features_in_` and `feature_names_in_`, as scikit-learn does: arrays have no names to ask for."""
    if type(X) is np.ndarray or is_sparse(X):
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        return
    from sklearn.utils.validation import validate_data

    validate_data(estimator, X, skip_check_array=True)


def _all_plain(X, look, n_jobs):
    n_rows = X.shape[0]
    step = max(LOOKED_AT * n_rows // max(X.size, 1), 1)
    if n_rows <= step:
        return look(0, n_rows)
    plain = []

    def take(starts):
        for first in starts:
            plain.append(look(first, min(first + step, n_rows)))

    share_out(take, iter(range(0, n_rows, step)), check_jobs(n_jobs))
    return all(plain)


def is_sparse(X):
    """Whether X is of one of scipy's sparse kinds: where those have not been imported, nothing is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and module.issparse(X)


def check_sparse_structure(X):
    """Refuse matrices whose index arrays would lead scipy or us outside of memory.

    Returns whether a CSR matrix has strictly rising indices; None for other formats.
    """
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got a sparse array of {X.ndim}")
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(f"X has {X.shape[1]} columns; at most {MAX_COLUMNS} can be numbered")
    canonical = None
    if X.format == "csr":
        problem, canonical = _structure(X, *X.shape)
    else:
        check = STRUCTURE_CHECKS.get(X.format)
        problem = check(X) if check else None
    if problem:
        raise ValueError(f"X is a broken {X.format.upper()} matrix: {problem}")
    return canonical


def _bsr_problem(X):
    if X.data.ndim != 3 or 0 in X.blocksize or any(np.remainder(X.shape, X.blocksize)):
        return f"data of shape {X.data.shape} are not blocks of {X.shape[0]} x {X.shape[1]} entries"
    n_major, n_minor = np.floor_divide(X.shape, X.blocksize)
    return _structure(X, n_major, n_minor)[0]


def _coo_problem(X):
    if not len(X.row) == len(X.col) == len(X.data):
        return f"row, col and data have lengths {len(X.row)}, {len(X.col)} and {len(X.data)}"
    for name, at, n in zip(("row", "col"), (X.row, X.col), X.shape, strict=True):
        if len(at) and not (at.min() >= 0 and at.max() < n):
            return f"{name} indices reach from {at.min()} to {at.max()}, outside 0 to {n - 1}"
    return None


def _dia_problem(X):
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1]:
        return f"data of shape {X.data.shape} do not go with offsets of shape {X.offsets.shape}"
    return None


def _lil_problem(X):
    if not len(X.rows) == len(X.data) == X.shape[0]:
        return f"rows and data have lengths {len(X.rows)} and {len(X.data)}, not {X.shape[0]}"
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            return f"row {i} has {len(columns)} columns and {len(values)} values"
    return None


# By format other than CSR: what is wrong with a matrix, or None. A dok matrix is a dictionary, which its conversion to
# CSR checks.
STRUCTURE_CHECKS = {
    "csc": lambda X: _structure(X, *reversed(X.shape))[0],
    "bsr": _bsr_problem,
    "coo": _coo_problem,
    "dia": _dia_problem,
    "lil": _lil_problem,
}


def _structure(X, n_major, n_minor):
    """(problem, canonical) of a compressed matrix; see `_core.check_structure`."""
    indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            return f"{name} is an array of {array.ndim} dimensions and type {array.dtype}, not a row of integers", False
    if len(indptr) != n_major + 1:
        return f"indptr has {len(indptr)} entries, not {n_major + 1}", False
    wide: type = np.int32 if indptr.dtype == indices.dtype == np.int32 else np.int64
    indptr, indices = in_order(indptr, wide), in_order(indices, wide)
    return _core.check_structure(indptr, indices, n_minor, len(X.data))


def _canonical(X, canonical):
    """CSR with strictly rising indices, no stored zeros and no spare room. Never changes the caller's matrix.

    `canonical` is what `check_sparse_structure` said of the matrix that X was made from.
    """
    if canonical is None:  # it came in another format
        problem, canonical = _structure(X, *X.shape)
        if problem:
            raise ValueError(f"X is a broken CSR matrix: {problem}")
    n_stored = int(X.indptr[-1])
    data, indices = (in_order(a[:n_stored]) for a in (X.data, X.indices))
    if not canonical or not data.all():
        X = type(X)((data, indices, X.indptr), shape=X.shape, copy=True)
        X.has_canonical_format = canonical
        X.sum_duplicates()
        X.eliminate_zeros()
        if not np.isfinite(X.data).all():
            raise ValueError("X has repeated entries that add up to infinity or NaN")
        return X
    if len(data) == len(X.data) and data is X.data and indices is X.indices:
        return X
    return type(X)((data, indices, X.indptr), shape=X.shape)
