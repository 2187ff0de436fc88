"""Cells: rows divided by the nearest of some centres, each cell with a shift and tables of its own.

A Taylor expansion is good near the point that it is taken at. With many such points, and each row expanded at the one
that is nearest, small bandwidths come within reach. The kernel is then the Gaussian one between rows of one cell, and 0
between others; or the mean of several such kernels, whose cells have other borders.
"""

import warnings
from math import comb
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._data.expansion import MAX_INDEX, TooManyMonomials
from .._data.memory import check_memory
from .._data.rows import Rows, is_csr
from .._data.threads import share_out
from .shift import SPARSE_SHARE, Moved, _centre, _readable, shift_rows

SAMPLE_ROWS = 48  # that the centres are found from, for each of them
LEAST_SAMPLE = 2**14
ROUNDS = 8  # of k-means
CHUNK = 2**14  # rows that are assigned at once


class Partition:
    """Rows divided into cells once.

    Attributes
    ----------
    use : ndarray of int32 of shape (n_features,)
        A column's number among those that the centres have, or -1.
    centres : ndarray of shape (n_cells, n_used)
        The centres.
    by : ndarray of shape (n_cells, n_features)
        What is subtracted from the rows of each cell.
    place : ndarray of int32 of shape (n_cells, n_features), or None
        The number of each column in a cell, or -1 for those that it does not have; None for dense rows.
    """

    def __init__(self, use, centres, by, place, known=None):
        self.use, self.centres, self.by, self.place = use, centres, by, place
        self._known = known  # (rows, their cells): they will be asked for once
        n_cells, group = len(centres), _core.CELL_GROUP
        padded = -(-n_cells // group) * group
        self._centres = np.zeros((centres.shape[1], padded))
        self._centres[:, :n_cells] = centres.T
        self._half = np.full(padded, np.inf)
        self._half[:n_cells] = np.einsum("ij,ij->i", centres, centres) / 2

    @property
    def n_columns(self):
        """How many columns each cell has."""
        n_cells, n_features = self.by.shape
        return np.full(n_cells, n_features) if self.place is None else np.count_nonzero(self.place >= 0, axis=1)

    def same(self, other):
        """Whether it is the same partition, with the same shifts."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("use", "centres", "by", "place"))
        return all(np.array_equal(one, another) for one, another in pairs)

    def cell(self, X, n_jobs=1):
        """The cell of each row."""
        known, self._known = self._known, None
        if known is not None and known[0] is X:
            return known[1]
        rows, cell = Rows(X).core, np.empty(X.shape[0], dtype=np.int32)

        def take(parts):
            for first in parts:
                part = cell[first : first + CHUNK]
                _core.nearest(
                    rows, first, first + len(part), self.use, self._centres, self._half, len(self.centres), part
                )

        share_out(take, iter(range(0, len(cell), CHUNK)), n_jobs)
        return cell

    def shifted(self, X, cell, beyond=None, n_jobs=1):
        """The rows of these cells, shifted and renumbered."""
        if self.place is not None:
            return shift_rows(X, Moved.of(self.by), self.place, cell, beyond, n_jobs)
        X = X.toarray() if is_csr(X) else X
        return X - self.by.astype(X.dtype)[cell]


class Cells:
    """Some partitions, and where the tables of their cells lie.

    Attributes
    ----------
    partitions : list of Partition
    degree : int
        Of the expansion.
    n_features : int
        Columns of the rows as they are given.
    n_columns : int
        The most that a cell has.
    bases : list of ndarray of int64
        The first slot of each cell, for each partition.
    n_slots : int
        Of all tables together.
    """

    def __init__(self, partitions, degree):
        self.partitions, self.degree = partitions, degree
        self.n_features = partitions[0].by.shape[1]
        columns = [partition.n_columns for partition in partitions]
        self.n_columns = max(int(n.max()) for n in columns)
        sizes = [comb(int(n) + degree, degree) for each in columns for n in each]
        self.n_slots = sum(sizes)
        if self.n_slots > MAX_INDEX:
            raise TooManyMonomials(
                f"{len(sizes)} cells have {self.n_slots} monomials together, more than a 64-bit index can number "
                f"({MAX_INDEX})"
            )
        ends = np.cumsum([0, *sizes], dtype=np.int64)
        self.bases = np.split(ends[:-1], np.cumsum([len(n) for n in columns])[:-1])

    @property
    def alike(self):
        """Whether all cells have all columns."""
        return all((partition.n_columns == self.n_columns).all() for partition in self.partitions)

    def bytes(self, X):
        """About how much memory rows take in all their forms."""
        dense = sum(partition.place is None for partition in self.partitions)
        n_bytes = dense * X.shape[0] * X.shape[1] * X.dtype.itemsize
        stored = len(X.data) if is_csr(X) else X.size
        return n_bytes + (len(self.partitions) - dense) * stored * (X.dtype.itemsize + 4)

    def same(self, other):
        """Whether these are the same cells, with the same shifts."""
        pairs = zip(self.partitions, other.partitions, strict=False)
        return len(self.partitions) == len(other.partitions) and all(one.same(another) for one, another in pairs)

    def tables(self):
        """(the first slot, the number of columns) of each cell."""
        for partition, base in zip(self.partitions, self.bases, strict=True):
            yield from zip(base.tolist(), partition.n_columns.tolist(), strict=True)

    def places(self):
        """(its slots, the numbers in it of the columns that it has, in the user's order) for each cell."""
        every = np.arange(self.n_features)
        for partition, base in zip(self.partitions, self.bases, strict=True):
            for k, (begin, n) in enumerate(zip(base.tolist(), partition.n_columns.tolist(), strict=True)):
                place = every if partition.place is None else partition.place[k]
                yield slice(begin, begin + comb(n + self.degree, self.degree)), place[place >= 0]

    def columns(self):
        """The user's columns that each cell has, rising: those whose numbers `places` tells."""
        every = np.arange(self.n_features)
        for partition in self.partitions:
            for k in range(len(partition.by)):
                yield every if partition.place is None else np.flatnonzero(partition.place[k] >= 0)

    def rows(self, X, n_jobs=1):
        """Rows in all their forms: `Rows`, one behind the other."""
        following = None
        for partition, base in reversed(list(zip(self.partitions, self.bases, strict=True))):
            cell = partition.cell(X, n_jobs)
            some = partition.place is not None and bool((partition.place < 0).any())
            beyond = np.zeros(X.shape[0]) if some else None
            X_shifted = partition.shifted(X, cell, beyond, n_jobs)
            if is_csr(X_shifted):  # it has as many columns as the largest cell of all partitions
                X_shifted = X_shifted._replace(shape=(X.shape[0], self.n_columns))
            rows = Rows(X_shifted)
            rows.core.set_cells(base[cell], beyond, self.n_slots)
            rows.cells, rows.next = self, following
            if following is not None:
                rows.core.set_next(following.core)
            following = rows
        return following


class Sample(NamedTuple):
    """Where some training rows are not zero, one form of them after the other, and the first slots of their cells."""

    filled: Any
    base: np.ndarray

    @classmethod
    def of(cls, rows):
        """Of `Rows` in cells."""
        from scipy import sparse

        base = np.concatenate([form.core.base for form in rows.forms()])
        forms = [form.X for form in rows.forms()]
        if not any(map(is_csr, forms)):
            return cls(np.concatenate(forms) != 0, base)
        forms = [sparse.csr_array(form[:3], form.shape) if is_csr(form) else form for form in forms]
        return cls(sparse.csr_array(sparse.vstack(forms)) != 0, base)


def choose_cells(X, n_cells, n_partitions, degree, random, *, compact=True, n_jobs=1, memory_limit=None):
    """Cells for training rows, as `check_rows` returns them.

    Parameters
    ----------
    X : ndarray or CSR
        The rows.
    n_cells, n_partitions : int
        How many cells, at most, how many times. There are fewer where there are not as many different rows.
    degree : int or callable
        Of the expansion. A function takes the cells, and returns it.
    random : RandomState
        It chooses the rows that k-means looks at.
    compact : bool, default=True
        Whether a cell has only the columns that vary among its rows, which are then all that there will be.
    n_jobs : int, default=1
        Threads.
    memory_limit : int, default=None
        The user's.

    Returns
    -------
    cells : Cells
    """
    n_features = X.shape[1]
    n_cells = min(n_cells, X.shape[0])
    check_memory(n_partitions * n_cells * n_features * 24, memory_limit, f"{n_cells} centres in {n_features} columns")
    around, filled = _centre(Rows(X))
    continuous = filled > 1 - SPARSE_SHARE
    chosen = np.flatnonzero(continuous if continuous.any() else filled > 0)
    use = np.full(n_features, -1, dtype=np.int32)
    use[chosen] = np.arange(len(chosen))
    moved = shift_rows(X, Moved.of(around[None]), np.arange(n_features, dtype=np.int32)[None])
    divided, n_stored = [], 0
    for _ in range(n_partitions):
        centres = _centres(X, n_cells, chosen, random)
        cell = Partition(use, centres, around[None], None).cell(X, n_jobs)
        sizes = np.bincount(cell, minlength=len(centres))
        if not sizes.all():  # a centre next to which there is no row
            number = np.cumsum(sizes > 0, dtype=np.int32) - 1
            centres, cell, sizes = centres[sizes > 0], number[cell], sizes[sizes > 0]
        by = (around + _shifts(moved, cell, sizes, continuous)).astype(X.dtype).astype(np.float64)
        place, nonzeros = _places(X, cell, by, compact)
        divided.append((centres, by, place, (X, cell)))
        n_stored += nonzeros
    if callable(degree):
        degree = degree(Cells([Partition(use, centres, by, place) for centres, by, place, _ in divided], 1))
    nonzeros = round(n_stored / (n_partitions * X.shape[0]))
    # All forms of the rows alike: C relies on it.
    dense = not is_csr(X) and comb(n_features + degree, degree) < 2 * comb(nonzeros + degree, degree)
    return Cells(
        [Partition(use, centres, by, None if dense else place, known) for centres, by, place, known in divided], degree
    )


def _places(X, cell, by, compact):
    """(the numbers of columns in each cell, by how often they are not zero; how many nonzeros all rows have)."""
    identity = np.broadcast_to(np.arange(X.shape[1], dtype=np.int32), by.shape).copy()
    shifted = shift_rows(X, Moved.of(by), identity, cell)
    filled = _sums(shifted, cell, len(by))
    place = np.empty(by.shape, dtype=np.int32)
    np.put_along_axis(place, np.argsort(-filled, axis=1, kind="stable"), identity, axis=1)
    if compact:
        place[filled == 0] = -1
    return place, len(shifted.data)


def _centres(X, n_cells, columns, random):
    """Centres by k-means on a sample of the rows, in some columns."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    n_sample = min(X.shape[0], max(LEAST_SAMPLE, SAMPLE_ROWS * n_cells))
    sample = X[np.sort(random.permutation(X.shape[0])[:n_sample])][:, columns]
    if is_csr(sample) and len(columns) <= 256:
        sample = sample.toarray()
    if not len(columns):
        return np.zeros((1, 0))
    different = n_sample if is_csr(sample) else len(np.unique(sample, axis=0))
    means = KMeans(min(n_cells, different), init="random", n_init=1, max_iter=ROUNDS, random_state=random)
    with threadpool_limits(limits=1), warnings.catch_warnings():  # the order in which threads add up shows in last bits
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows that are alike have one cell
        return means.fit(sample.astype(np.float64)).cluster_centers_


def _sums(X, cell, n_cells, weights=None):
    """How many rows of each cell have an entry in each column; or the sums of weights of such entries."""
    keys = np.repeat(cell.astype(np.int64) * X.shape[1], np.diff(X.indptr)) + X.indices
    return np.bincount(keys, weights, minlength=n_cells * X.shape[1]).reshape(n_cells, X.shape[1])


def _shifts(X, cell, sizes, continuous):
    """The mean of each cell in continuous columns, its most frequent value in the others."""
    n_cells, n_columns, sizes = len(sizes), X.shape[1], sizes[:, None]
    means = _sums(X, cell, n_cells, X.data) / sizes
    deviations = np.sqrt(np.maximum(_sums(X, cell, n_cells, X.data**2) / sizes - means**2, 0))
    by = np.zeros((n_cells, n_columns))
    for j in np.flatnonzero(continuous):
        by[:, j] = [_readable(mean, deviation) for mean, deviation in zip(means[:, j], deviations[:, j], strict=True)]
    often = (_sums(X, cell, n_cells) > SPARSE_SHARE * sizes) & ~continuous
    if often.any():  # most rows of a cell differ from the most frequent value of all rows
        of_cell = np.repeat(cell, np.diff(X.indptr))
        entries = np.flatnonzero(often[of_cell, X.indices])
        keys = of_cell[entries].astype(np.int64) * n_columns + X.indices[entries]
        which, modes, counts = _modes(keys, X.data[entries])
        frequent = counts >= SPARSE_SHARE * sizes[which // n_columns, 0]
        by.reshape(-1)[which] = np.where(frequent, modes, means.reshape(-1)[which])
    return by


def _modes(keys, values):
    """(the different keys, the most frequent of the values that come with each, how often that comes)."""
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    begin = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])]))
    counts = np.diff(np.concatenate([begin, [len(keys)]]))
    best = np.lexsort((-counts, keys[begin]))
    best = best[np.concatenate([[True], np.diff(keys[begin][best]) != 0])]
    return keys[begin][best], values[begin][best], counts[best]
