"""Isometries: the Gaussian kernel does not change when rows are shifted or columns renumbered, but its cost does.

Each column loses its most frequent value where that makes the column sparse, and its mean otherwise; and columns are
numbered by how often they are not zero, so that the slots of frequent monomials lie together.
"""

from math import floor, log10, sqrt
from typing import NamedTuple

import numpy as np

from .. import _core
from .._data.rows import Csr, Rows, is_csr
from .._data.threads import share_out

# Rows that are looked at for the most frequent value of a column, its mean, and how often it is not zero.
SAMPLE = 2**12
# A column is sparse when one value takes at least this share of the rows.
SPARSE_SHARE = 0.5
# Rows are centred when their mean would take no more than this share off the squares of their columns, those that are
# not sparse: standardised rows stay as they are, and are not copied.
CENTRED = 0.001
# Rows that are shifted at once; and entries that take so little memory that they need not be counted before.
CHUNK, ROOM = 2**13, 2**20


class Shift:
    """x - by, with column j as number place[j]; rows come out as CSR or, when they are to be walked dense, as arrays.

    Attributes
    ----------
    by : ndarray of shape (n_columns,)
        In float64, in the user's order of columns.
    place : ndarray of int32 of shape (n_columns,), or None
        The new number of each column; None for dense rows, whose columns stay where they are.
    nonzeros : float
        How many a shifted row has, about.
    """

    def __init__(self, by, place, nonzeros):
        self.by = by
        self.place = place
        self.nonzeros = nonzeros
        self._moved = Moved.of(by[None])

    def __call__(self, X):
        """Rows as `check_rows` returns them -> shifted ones, in the same type; X itself when there is nothing to do."""
        if self.place is None:
            if is_csr(X):
                X = X.toarray()
            return X - self.by.astype(X.dtype) if self.by.any() else X
        return self._shifted(X).to_scipy()

    def _shifted(self, X, n_jobs=1):
        """Rows whose columns are renumbered: `Csr`."""
        return shift_rows(X, self._moved, self.place[None], n_jobs=n_jobs)

    @property
    def n_features(self):
        """Columns of the rows as they are given."""
        return len(self.by)

    def rows(self, X, n_jobs=1):
        """The same as `Rows`."""
        return Rows(self(X) if self.place is None else self._shifted(X, n_jobs))

    def bytes(self, X):
        """About how much memory shifted rows take; 0 when X itself is used."""
        if self.place is None:
            return X.shape[0] * X.shape[1] * X.dtype.itemsize if self.by.any() or is_csr(X) else 0
        return int(X.shape[0] * (self.nonzeros * (X.dtype.itemsize + 4) + 8))

    def grow(self, n_columns):
        """The same with more columns, which are neither shifted nor renumbered."""
        old = len(self.by)
        by = np.concatenate([self.by, np.zeros(n_columns - old)])
        place = self.place
        if place is not None:
            place = np.concatenate([place, np.arange(old, n_columns, dtype=np.int32)])
        return Shift(by, place, self.nonzeros)


class Moved(NamedTuple):
    """By what the rows of each cell are shifted, [cells, columns], and in which columns that is not 0."""

    by: np.ndarray
    columns: np.ndarray
    ptr: np.ndarray

    @classmethod
    def of(cls, by):
        """For the rows of `by`."""
        cell, column = np.nonzero(by)
        return cls(by, column.astype(np.int32), np.searchsorted(cell, np.arange(len(by) + 1)))


def shift_rows(X, moved, place, cell=None, beyond=None, n_jobs=1):
    """Rows less the by of their cells: `Csr`, with column j as number place[cell, j]; -1: it is left out.

    What is left out of a row adds to its squared norm; that is written to `beyond`.
    """
    rows, n_rows = Rows(X).core, X.shape[0]
    shift = moved.by.astype(X.dtype, copy=False), place, moved.columns, moved.ptr, cell
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    if cell is None and beyond is None and (n_jobs == 1 or n_rows <= CHUNK):
        stored = int(X.indptr[-1]) if is_csr(X) else 0
        room = stored + n_rows * len(moved.columns) if is_csr(X) else X.size
        if room <= max(2 * stored, ROOM):
            # Counting takes half as long as writing. Of memory that is not written to, most systems give none.
            indices, data = np.empty(room, dtype=np.int32), np.empty(room, dtype=X.dtype)
            for first in range(0, n_rows, CHUNK):
                last = min(first + CHUNK, n_rows)
                _core.shift_rows(rows, first, last, *shift, indptr, indices, data, None, True)
            end = int(indptr[-1])
            if room <= ROOM:
                return Csr(data[:end], indices[:end], indptr, X.shape)
            for array in (indices, data):
                array.resize(end, refcheck=False)
            return Csr(data, indices, indptr, X.shape)

    def write(*out):
        def take(parts):
            for first in parts:
                _core.shift_rows(rows, first, min(first + CHUNK, n_rows), *shift, indptr, *out)

        share_out(take, iter(range(0, n_rows, CHUNK)), n_jobs if n_rows > CHUNK else 1)

    write(None, None, beyond)
    np.cumsum(indptr, out=indptr)
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=X.dtype)
    write(indices, data, None)
    return Csr(data, indices, indptr, X.shape)


def choose_shift(X, shift, expansion):
    """The shift for training rows, as `check_rows` returns them.

    Parameters
    ----------
    X : ndarray or CSR
        The rows.
    shift : "auto", None or array-like of shape (n_columns,)
        The user's wish.
    expansion : Expansion
        It tells whether the kernel allows a shift.

    Returns
    -------
    shift : Shift or None
        None when rows are to be used as they are.
    """
    n_columns = X.shape[1]
    if shift is None:
        return None
    rows = Rows(X)
    invariant = expansion.kernel == "gaussian"
    if isinstance(shift, str):
        if shift != "auto":
            raise ValueError(f'shift must be "auto", None or {n_columns} numbers; got {shift!r}')
        if not invariant:
            return None
        by, filled = _centre(rows)
    else:
        try:
            by = np.array(shift, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError) as problem:
            raise ValueError(f'shift must be "auto", None or {n_columns} numbers; got {shift!r}') from problem
        if len(by) != n_columns:
            raise ValueError(f"shift must have one number for each of {n_columns} columns; got {len(by)}")
        if not np.isfinite(by).all():
            raise ValueError(f"shift must hold finite numbers; got {shift!r}")
        if not invariant and by.any():
            raise ValueError(f"the {expansion.kernel} kernel changes when rows are shifted; use shift=None")
        by = by.astype(X.dtype).astype(np.float64)
        filled = _share_filled(rows, by)
    nonzeros = float(filled.sum())
    if not is_csr(X) and expansion.n_slots < 2 * expansion.monomials(round(nonzeros)):
        return Shift(by, None, nonzeros)
    place = np.empty(n_columns, dtype=np.int32)
    place[np.argsort(-filled, kind="stable")] = np.arange(n_columns, dtype=np.int32)
    return Shift(by, place, nonzeros)


def _step(n_rows, n_some):
    """From one row to the next, of at most n_some that are evenly spread."""
    return max(-(-n_rows // n_some), 1)


def _centre(rows):
    """What the columns of rows are shifted by: (by, in what share of the rows each column differs from it).

    For each column its most frequent value, or its mean when no value is frequent; all of that of a sample.
    """
    by = np.zeros(rows.n_columns)
    filled = _share_filled(rows, by)
    columns = np.flatnonzero(filled > 1 - SPARSE_SHARE)  # in others zero is the most frequent value
    if not len(columns):
        return by, filled
    step = _step(rows.n_rows, SAMPLE)
    dense = np.zeros((len(columns), -(-rows.n_rows // step)), dtype=rows.dtype)
    line = np.full(rows.n_columns, -1, dtype=np.int32)
    line[columns] = np.arange(len(columns))
    _core.take_columns(rows.core, step, line, dense)
    values = _commonest(dense)
    counts = _counts(dense, values)
    frequent = counts >= SPARSE_SHARE * dense.shape[1]
    by[columns] = np.where(frequent, values, 0.0)
    others = dense[~frequent]
    if len(others):
        means, variances = others.mean(axis=1, dtype=np.float64), others.var(axis=1, dtype=np.float64)
        if (means**2).sum() > CENTRED * variances.sum():
            pairs = zip(means, variances, strict=True)
            by[columns[~frequent]] = [_readable(mean, sqrt(variance)) for mean, variance in pairs]
    by = by.astype(rows.dtype)
    counts[~frequent] = _counts(others, by[columns[~frequent]])
    filled[columns] = 1 - counts / dense.shape[1]
    return by.astype(np.float64), filled


def _counts(lines, values):
    """How often each line has its value."""
    return np.array([np.count_nonzero(line == value) for line, value in zip(lines, values, strict=True)])


def _commonest(lines):
    """For each line the value that takes half of it or more; if there is none, any."""
    some = np.sort(lines[:, :: -(-lines.shape[1] // 512)], axis=1)
    # Such a value takes more than a quarter of some of the line, too, and so stands at one of these places.
    candidates = some[:, [some.shape[1] * k // 4 for k in (1, 2, 3)]]
    counts = (some[:, None] == candidates[:, :, None]).sum(axis=2)
    return np.take_along_axis(candidates, np.argmax(counts, axis=1)[:, None], axis=1)[:, 0]


def _readable(mean, deviation):
    """The mean, rounded to about a hundredth of the deviation: as good a shift, and easier to read."""
    digits = 2 - floor(log10(deviation)) if deviation > 0 else 15
    return round(float(mean), digits)


def _share_filled(rows, by):
    """In what share of the rows each column differs from `by`; in a sample of them."""
    step = _step(rows.n_rows, SAMPLE)
    n_some = -(-rows.n_rows // step)
    stored, equal = np.zeros((2, len(by)), dtype=np.int32)
    _core.count_columns(rows.core, step, by.astype(rows.dtype), stored, equal)
    return (np.where(by != 0, n_some, stored) - equal) / max(n_some, 1)
