"""Anything array-like -> rows that C can trust: checked once, and not copied when they come in C's own layout."""

import os

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from . import _core
from ._expansion import MAX_COLUMNS

# Monomials walked between two looks at Ctrl-C: about 10 ms.
PASS_MONOMIALS = 2**23
# A dense walk visits a monomial this many times faster than a sparse one (bench/micro.py: Walk).
DENSE_GAIN = 4


class Rows:
    """Checked rows.

    Parameters
    ----------
    X : ndarray in C order, or canonical CSR, of float32 or float64
        As `check_rows` returns it.
    """

    def __init__(self, X):
        self.X = X
        self.dtype = X.dtype
        self.n_rows, self.n_columns = X.shape
        if sparse.issparse(X):
            indices = X.indices.astype(np.int32, copy=False)
            indptr = X.indptr.astype(np.int64, copy=False)
            longest = max((int(np.diff(indptr[i : i + 2**18 + 1]).max()) for i in range(0, self.n_rows, 2**18)), default=0)
            self.core = _core.Rows(X.data, indices, indptr, self.n_columns, longest)
        else:
            self.core = _core.Rows(X, None, None, self.n_columns, self.n_columns)

    def _lengths(self):
        """The number of nonzeros of each row, a bounded number of rows at a time: (first row, lengths)."""
        step = 2**18 if self.core.indptr is not None else max(1, 2**20 // max(self.n_columns, 1))
        for first in range(0, self.n_rows, step):
            last = min(first + step, self.n_rows)
            if self.core.indptr is not None:
                yield first, np.diff(self.core.indptr[first : last + 1])
            else:
                yield first, np.count_nonzero(self.X[first:last], axis=1)

    def histogram(self):
        """How many rows have 0, 1, 2, ... nonzeros."""
        counts = np.zeros(self.n_columns + 1, dtype=np.int64) if self.core.indptr is None else np.zeros(1, np.int64)
        for _, lengths in self._lengths():
            more = np.bincount(lengths, minlength=len(counts))
            more[: len(counts)] += counts
            counts = more
        return counts

    def monomials(self, expansion):
        """(total, longest row): numbers of nonzero monomials, exactly."""
        counts = self.histogram()
        present = np.flatnonzero(counts)
        total = sum(int(counts[m]) * expansion.monomials(m) for m in present)
        return total, (expansion.monomials(present[-1]) if len(present) else 0)

    def passes(self, expansion):
        """Ranges of rows (first, last), each worth about PASS_MONOMIALS; whole blocks of dense rows."""
        if self.core.walk_dense:
            step = max(8, PASS_MONOMIALS * DENSE_GAIN // expansion.n_slots // 8 * 8)
            for first in range(0, self.n_rows, step):
                yield first, min(first + step, self.n_rows)
            return
        for first, lengths in self._lengths():
            cost = np.array([min(expansion.monomials(m), PASS_MONOMIALS) for m in range(int(lengths.max()) + 1)])
            end = np.cumsum(cost[lengths])
            begin, last = 0, len(lengths)
            while begin < last:
                done = end[begin - 1] if begin else 0
                stop = max(begin + 1, int(np.searchsorted(end, done + PASS_MONOMIALS, side="right")))
                yield first + begin, first + min(stop, last)
                begin = stop

    def ends(self, expansion, dtype):
        """Where each row's monomials end when they lie one row after the other: an indptr."""
        ends = np.zeros(self.n_rows + 1, dtype=dtype)
        for first, lengths in self._lengths():
            counts = np.array([expansion.monomials(m) for m in range(int(lengths.max()) + 1)], dtype=dtype)
            part = ends[first + 1 : first + 1 + len(lengths)]
            np.cumsum(counts[lengths], out=part)
            part += ends[first]
        return ends

    def check_longest(self, expansion):
        """Refuse rows with too many monomials to be walked in one go."""
        expansion.check_row(max((int(lengths.max()) for _, lengths in self._lengths()), default=0))

    def choose_walk(self, expansion):
        """Walk all columns of these rows, or their nonzeros only: whichever costs less."""
        total, _ = self.monomials(expansion)
        self.core.walk_dense = self.n_columns > 0 and self.n_rows * expansion.n_slots < DENSE_GAIN * total

    def scratch(self, expansion_map):
        """Memory for the C calls of one thread."""
        return np.empty(_core.scratch_bytes(self.core, expansion_map), dtype=np.uint8)


def check_rows(X, *, estimator=None, reset=False, empty=True):
    """Check X and bring it into the layout that `Rows` takes, without a copy where it has it already.

    With an estimator, also check against (or, with `reset`, set) its `n_features_in_` and `feature_names_in_`.
    `empty` allows matrices without rows or columns.
    """
    if sparse.issparse(X):
        _check_sparse_structure(X)
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
        X = validate_data(estimator, X, reset=reset, **options)
    return _canonical(X) if sparse.issparse(X) else np.ascontiguousarray(X)


def _check_sparse_structure(X):
    """Refuse matrices whose index arrays would lead scipy or us outside of memory."""
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions; got a sparse array of {X.ndim}")
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(f"X has {X.shape[1]} columns; at most {MAX_COLUMNS} can be numbered")
    if X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        n_major, n_minor = X.shape[0] // block[0], X.shape[1] // block[1]
        if X.format == "csc":
            n_major, n_minor = n_minor, n_major
        problem, _ = _structure(X, n_major, n_minor)
    elif X.format == "coo":
        problem = None
        coords = (X.row, X.col)
        if not len(X.row) == len(X.col) == len(X.data):
            problem = f"row, col and data have lengths {len(X.row)}, {len(X.col)} and {len(X.data)}"
        for name, at, n in zip(("row", "col"), coords, X.shape, strict=True):
            if problem is None and len(at) and not (at.min() >= 0 and at.max() < n):
                problem = f"{name} indices reach from {at.min()} to {at.max()}, outside 0 to {n - 1}"
    else:
        return  # lil, dok and dia are checked by their conversion to CSR
    if problem:
        raise ValueError(f"X is a broken {X.format.upper()} matrix: {problem}")


def _structure(X, n_major, n_minor):
    """(problem, canonical) of a compressed matrix; see `_core.check_structure`."""
    indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
    if len(indptr) != n_major + 1:
        return f"indptr has {len(indptr)} entries, not {n_major + 1}", False
    wide = np.int32 if indptr.dtype == indices.dtype == np.int32 else np.int64
    indptr, indices = (np.ascontiguousarray(a, dtype=wide) for a in (indptr, indices))
    return _core.check_structure(indptr, indices, n_minor, len(X.data))


def _canonical(X):
    """CSR with strictly rising indices, no stored zeros and no spare room. Never changes the caller's matrix."""
    problem, canonical = _structure(X, *X.shape)
    if problem:
        raise ValueError(f"X is a broken CSR matrix: {problem}")
    n_stored = int(X.indptr[-1])
    data, indices = (np.ascontiguousarray(a[:n_stored]) for a in (X.data, X.indices))
    if not canonical or np.count_nonzero(data) < n_stored:
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


def available_memory():
    """Bytes that can be allocated now, or None where the system does not tell."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(n_bytes, memory_limit, what):
    """Refuse what does not fit, before it is allocated."""
    if memory_limit is None:
        limit, whose = available_memory(), "free on this machine"
    else:
        limit, whose = memory_limit, "allowed by memory_limit"
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer) or not limit > 0:
            raise ValueError(f"memory_limit must be a number of bytes > 0 or None; got {memory_limit!r}")
    if limit is not None and n_bytes > limit:
        raise ValueError(f"{what} would take {n_bytes} bytes ({_readable(n_bytes)}), more than the {_readable(limit)} {whose}")


def _readable(n_bytes):
    """12345678 -> '11.8 MiB'."""
    amount, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.4g} {unit}"
