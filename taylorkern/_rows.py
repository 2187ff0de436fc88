"""Anything array-like -> rows that C can trust: checked once, and not copied when they come in C's own layout.

Whatever predicts from a model file comes by here, the command line too: scipy and scikit-learn, which take many times
longer to import than it takes to predict, are imported where they are needed.
"""

import sys
from copy import copy
from functools import cached_property, partial
from math import comb
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._expansion import MAX_COLUMNS, PASS_MONOMIALS, passes
from ._threads import check_jobs, cut_evenly

# A dense walk visits a monomial this many times faster than a sparse one (bench/micro.py: Walk).
DENSE_GAIN = 5
PASS_GAIN = 16  # the same where vectors are long, in margins and training: for passes of some milliseconds
# Bytes of a table from which on it pays to sort rows before they are multiplied with it, those of so many passes at
# once: most of it is then in no cache (bench/roofline.py, part d: Adult at degree 4 gains a quarter or more, covertype
# at degree 4 would lose a tenth, because sorted rows are fetched one by one).
SORT_FROM, SORTED_PASSES = 2**24, 32
GROUP = 32  # rows that are walked dense at once, with several tables
# How threads share the slots: by so many rows; what a run of monomials costs beside them, in monomials; the bytes of
# tables that are quick to reach (bench/roofline.py, part e).
SHARES_SAMPLE, DENSE_RUN, SPARSE_RUN, TABLE_ENTRIES, SECOND_CACHE = 1000, 96, 12, 1024, 2**20
# Rows: a pass of so many may be shorter than it could be, as if all of them were as long as the longest.
LONG_PASS = 2**10
SURVEYED = 2**15  # rows whose nonzeros are counted, or squares added up, between two looks at Ctrl-C
LOOKED_AT = 2**16  # numbers that are checked by one thread, between two looks at Ctrl-C
WORTH_THREAD = 4  # times that much, or terms of objectives, is worth another thread
SPARE_BYTES = 2**21  # of scratch that is kept for the next call


class _Spare(local):
    """Scratch of earlier calls in this thread: for one row, new memory takes longer than the walk.

    By type and walk, so that what is left in it are numbers as they will be there again; see `Rows.scratch`.
    """

    def __init__(self):
        self.kept = {}


_SPARE = _Spare()


class Csr(NamedTuple):
    """CSR rows, where scipy is not needed for anything else."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]

    @property
    def dtype(self):
        """The type of the numbers."""
        return self.data.dtype

    def part(self, first, last):
        """The rows first to last - 1."""
        begin, end = self.indptr[first], self.indptr[last]
        indptr = np.subtract(self.indptr[first : last + 1], begin, dtype=np.int64)
        return Csr(self.data[begin:end], self.indices[begin:end], indptr, (last - first, self.shape[1]))

    def every(self, step):
        """Where the rows 0, step, 2 step, ... have entries."""
        begin = self.indptr[:-1:step]
        lengths = self.indptr[1::step] - begin
        narrow = np.int32 if self.indptr[-1] <= np.iinfo(np.int32).max else np.int64
        indptr = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=indptr[1:])
        at = np.repeat((begin - indptr[:-1]).astype(narrow), lengths)
        at += np.arange(indptr[-1], dtype=narrow)
        return Csr(np.ones(len(at), dtype=bool), self.indices.take(at), indptr, (len(lengths), self.shape[1]))

    def astype(self, dtype):
        """The same rows in another type."""
        return self._replace(data=self.data.astype(dtype))

    def to_scipy(self):
        """The same rows as scipy's, which has indices and indptr in one type: the narrower one, if that will do."""
        from scipy import sparse

        narrow = self.indptr[-1] <= np.iinfo(np.int32).max
        indptr = self.indptr.astype(np.int32) if narrow else self.indptr
        return sparse.csr_array((self.data, self.indices, indptr), shape=self.shape)

    def toarray(self):
        """The rows with their zeros."""
        dense = np.zeros(self.shape, dtype=self.dtype)
        dense[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.data
        return dense


class Rows:
    """Checked rows.

    Parameters
    ----------
    X : ndarray in C order, or canonical CSR, of float32 or float64
        As `check_rows` returns it; or `Csr`.

    Attributes
    ----------
    cells : Cells or None
        What divided them into cells.
    next : Rows or None
        Another form of the same rows: shifted and divided otherwise.
    """

    def __init__(self, X):
        self.X = X
        self.cells: Any = None
        self.next: Rows | None = None
        self.dtype = X.dtype
        self.n_rows, self.n_columns = X.shape
        if is_csr(X):
            indices = _in_order(X.indices, np.int32)
            indptr = _in_order(X.indptr, np.int64)
            self.core = _core.Rows(X.data, indices, indptr, self.n_columns)
        else:
            self.core = _core.Rows(X, None, None, self.n_columns)

    def twin(self, alone=False):
        """C's view of the same rows once more: one to put in an order of its own; `alone`, without its other forms."""
        core = self.core
        twin = _core.Rows(core.data, core.indices, core.indptr, self.n_columns, core.max_nonzeros)
        twin.walk_dense = core.walk_dense
        if core.base is not None or core.beyond is not None:
            twin.set_cells(core.base, core.beyond, core.n_slots)
        if core.factor is not None:
            twin.set_factor(core.factor)
        if core.next is not None and not alone:
            twin.set_next(core.next)
        return twin

    def part(self, which, columns=None, n_front=0):
        """Some of these rows, which[0], which[1], ..., or all when that is None.

        With columns, those are numbered 0, 1, ...; the rows may have no others. The first n_front of them have to rise,
        and so have the others. Only for CSR.
        """
        part = copy(self)
        part.__dict__.pop("histogram", None)
        part.core = self.twin()
        if which is not None:
            part.core.set_order(which.astype(np.int32))
        if columns is not None:
            place = np.zeros(self.n_columns, dtype=np.int32)
            place[columns] = np.arange(len(columns))
            part.core.set_place(place, n_front, len(columns))
        part.n_rows, part.n_columns = part.core.n_rows, part.core.n_columns
        return part

    def forms(self):
        """These rows, and the other forms of them."""
        yield self
        if self.next is not None:
            yield from self.next.forms()

    def squares(self, finish=None, n_jobs=1):
        """(|x|^2 of each row, what has been left out of it), unscaled.

        `finish` is called with parts of the squares, which it may change, and the rows that they are of.
        """
        squares = np.empty(self.n_rows)

        def take(starts):
            for first in starts:
                part = squares[first : first + SURVEYED]
                _core.squares(self.core, first, first + len(part), part)
                if finish is not None:
                    finish(part, slice(first, first + len(part)))

        starts = range(0, self.n_rows, SURVEYED)
        share_out(take, iter(starts), min(n_jobs, max(len(starts) // WORTH_THREAD, 1)))
        return squares, self.beyond

    def know_factors(self, expansion, n_jobs=1):
        """Compute s(x) of each row once and for all, in all forms: from here on they go with this expansion alone."""
        for form in self.forms() if expansion.decay else ():
            beyond: Any = form.core.beyond
            unknown: list[slice] = []

            def to_factors(squares, rows, beyond=beyond, unknown=unknown):
                if beyond is not None:
                    squares += beyond[rows]
                if not np.isfinite(squares).all():
                    unknown.append(rows)
                squares *= -expansion.decay * expansion.scale**2
                np.exp(squares, out=squares)

            factors, _ = form.squares(to_factors, n_jobs)
            if not unknown:
                form.core.set_factor(factors)

    @property
    def beyond(self):
        """What the columns that have been left out of each row add to its |x|^2, unscaled."""
        return np.zeros(self.n_rows) if self.core.beyond is None else self.core.beyond

    def lengths(self):
        """The number of nonzeros of each row, a bounded number of rows at a time: (first row, lengths)."""
        step = 2**14 if self.core.indptr is not None else max(1, 2**18 // max(self.n_columns, 1))
        for first in range(0, self.n_rows, step):
            last = min(first + step, self.n_rows)
            order = self.core.order
            if self.core.indptr is None:
                rows = self.X[first:last] if order is None else self.X[order[first:last]]
                yield first, np.count_nonzero(rows, axis=1)
            elif order is None:
                yield first, np.diff(self.core.indptr[first : last + 1])
            else:
                yield first, self.core.indptr[order[first:last] + 1] - self.core.indptr[order[first:last]]

    @cached_property
    def histogram(self):
        """How many rows have 0, 1, 2, ... nonzeros."""
        counts = np.zeros(self.core.max_nonzeros + 1, dtype=np.int64)
        for first in range(0, self.n_rows, SURVEYED):
            _core.count_nonzeros(self.core, first, min(first + SURVEYED, self.n_rows), counts)
        return counts

    @property
    def mean_nonzeros(self):
        """How many nonzeros a row has, on average, in all its forms together."""
        counts = (form.histogram for form in self.forms())
        return sum(float(count @ np.arange(len(count))) for count in counts) / max(self.n_rows, 1)

    def monomials(self, expansion):
        """(total, longest row): numbers of nonzero monomials, exactly. Of all forms, and of the longest."""
        total = longest = 0
        for form in self.forms():
            counts = form.histogram
            present = np.flatnonzero(counts)
            total += sum(int(counts[m]) * expansion.monomials(m) for m in present)
            longest = max(longest, int(present[-1]) if len(present) else 0)
        return total, expansion.monomials(longest) if self.n_rows else 0

    def passes(self, expansion, cost=1, times=1, n_jobs=1):
        """Ranges of rows (first, last), each worth about times PASS_MONOMIALS / cost; whole blocks of dense rows.

        For several threads there are more of them, and as many for each where they are few.
        """
        worth = times * PASS_MONOMIALS // (cost * n_jobs * sum(1 for _ in self.forms()))
        if self.core.walk_dense:
            step = max(1, worth * PASS_GAIN // expansion.n_slots // GROUP) * GROUP
            for first in range(0, self.n_rows, step):
                yield first, min(first + step, self.n_rows)
            return
        most = min(expansion.monomials(self.core.max_nonzeros), PASS_MONOMIALS)
        step = worth // most
        if step >= min(LONG_PASS, self.n_rows):
            rounds = -(-self.n_rows // max(step * n_jobs, 1))
            step = max(-(-self.n_rows // max(rounds * n_jobs, 1)), 1)
            for first in range(0, self.n_rows, step):
                yield first, min(first + step, self.n_rows)
            return
        longest = self.core.max_nonzeros
        count = np.array([min(expansion.monomials(m), PASS_MONOMIALS) for m in range(longest + 1)])
        for first, lengths in self.lengths():
            for begin, end in passes(np.concatenate([[0], np.cumsum(count[lengths])]), worth):
                yield first + begin, first + end

    def ends(self, expansion, dtype):
        """Where each row's monomials end when they lie one row after the other: an indptr."""
        ends = np.zeros(self.n_rows + 1, dtype=dtype)
        for first, lengths in self.lengths():
            counts = np.array([expansion.monomials(m) for m in range(int(lengths.max()) + 1)], dtype=dtype)
            part = ends[first + 1 : first + 1 + len(lengths)]
            np.cumsum(counts[lengths], out=part)
            part += ends[first]
        return ends

    def check_longest(self, expansion):
        """Refuse rows with too many monomials to be walked in one go."""
        for form in self.forms():
            expansion.check_row(np.flatnonzero(form.histogram)[-1] if self.n_rows else 0)

    def choose_walk(self, expansion, dense=None):
        """Walk all columns of these rows, or their nonzeros only: whichever costs less. Returns how many monomials."""
        total, _ = self.monomials(expansion)
        forms = list(self.forms())
        every = self.n_rows * expansion.n_slots * len(forms)
        if dense is None:
            dense = 0 < self.n_columns <= _core.MAX_DENSE_COLUMNS and every < DENSE_GAIN * total
            dense = dense and (self.cells is None or self.cells.alike)
        self.walk_dense(dense)
        return every if self.core.walk_dense else total

    def walk_dense(self, dense):
        """Walk all columns, in all forms, or not."""
        for form in self.forms():
            form.core.walk_dense = dense

    def sorted(self, first, last):
        """Where the rows first to last - 1 are stored, those with the same last columns one after the other.

        The last columns choose the parts of a table in which a row's slots lie, so that such rows meet what the one
        before has brought into the caches.
        """
        order = np.empty(last - first, dtype=np.int32)
        _core.sort_rows(self.core, first, last, order, np.empty((2, last - first), dtype=np.uint64))
        return order

    def shares(self, expansion, n, width=1):
        """Coordinates from 0 to d + 1, in n ranges: monomials that have their highest in one take about as long."""
        return cut_evenly(self.costs(expansion, width), n) if n > 1 else np.array([0, self.n_columns + 1], np.int32)

    def costs(self, expansion, width=1):
        """About what the monomials cost that have each coordinate as their highest."""
        cost = self._cost_of_highest(expansion.degree)
        # Slots beyond the second cache take about twice as long.
        ends = expansion.ranks[expansion.degree, : self.n_columns + 1] * (width * self.dtype.itemsize)
        cost[ends > SECOND_CACHE] *= 2
        return cost

    def _cost_of_highest(self, degree):
        """What monomials cost that have each coordinate as their highest, in a sample of the rows.

        As many as there are, and some more for each run of them.
        """
        core: Any = self.core
        dense = core.walk_dense or core.indptr is None
        n_places = self.n_columns if dense else core.max_nonzeros
        in_run = 1  # places, as many as have tables of limited size; see csrc/scratch.h
        while in_run + 1 < degree and comb(n_places + in_run + 1, in_run + 1) <= TABLE_ENTRIES:
            in_run += 1
        above = max(degree - 1 - in_run, 0)  # places of runs that have the highest in common
        run = DENSE_RUN if dense else SPARSE_RUN
        of_place = np.array(
            [float(comb(t + degree - 1, degree - 1) + run * comb(t + above, above)) for t in range(n_places + 1)]
        )
        if dense:
            return of_place
        some = np.linspace(0, self.n_rows - 1, min(SHARES_SAMPLE, self.n_rows), dtype=np.int64)
        some = some if core.order is None else core.order[some].astype(np.int64)
        begin, lengths = core.indptr[some], core.indptr[some + 1] - core.indptr[some]
        row = np.repeat(np.arange(len(some)), lengths)
        place = np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]
        column = core.indices[begin[row] + place]
        if core.place is not None:
            column = core.place[column]
            column = column[np.lexsort((column, row))]
        counts = np.bincount(column + 1, weights=of_place[place + 1], minlength=self.n_columns + 1)
        counts[0] = len(some)
        return counts

    def stored(self, first, last):
        """Where the rows first to last - 1 are stored: an index into X."""
        return slice(first, last) if self.core.order is None else self.core.order[first:last]

    def scratch(self):
        """Memory for the C calls of one thread.

        It is zero: whole vectors read a little past the end of a row's tables, and arithmetic on what a used piece of
        memory holds there, taken for tiny numbers, is slow on some processors.
        """
        return np.zeros(_core.scratch_bytes(self.core), dtype=np.uint8)


def dot_rows(rows, expansion, walked, table, n_jobs=1, deliver=None):
    """The inner products of all rows, under the map `walked` of an expansion, with tables [n_slots, width].

    With `deliver`, nothing is returned: deliver(first, last, products) is called for parts of the rows as they come.
    """
    width = table.shape[1]
    if rows.core.walk_dense and rows.cells is not None:
        out = _dot_cells(rows, expansion, walked, table, n_jobs)
        return out if deliver is None else deliver(0, rows.n_rows, out)
    core, dtype = rows.core, rows.dtype
    out = np.empty((rows.n_rows, width), dtype=dtype) if deliver is None else None
    if rows.n_rows == 1 and out is not None:  # what follows would take longer than the walk
        with_scratch(rows, lambda scratch: _core.dot(core, walked, 0, 1, table, out, scratch))
        return out
    unordered = core.indptr is not None and core.order is None and core.base is None and not core.walk_dense
    sorting = unordered and table.nbytes > SORT_FROM and rows.n_rows <= np.iinfo(np.int32).max

    def take(passes, scratch):
        for first, last in passes:
            part = np.empty((last - first, width), dtype=dtype) if out is None else out[first:last]
            if sorting:
                _core.dot_in_order(core, walked, first, rows.sorted(first, last), table, part, scratch)
            else:
                _core.dot(core, walked, first, last, table, part, scratch)
            if deliver is not None:
                deliver(first, last, part)

    passes = rows.passes(expansion, max(width // 4, 1), SORTED_PASSES if sorting else 1, n_jobs)
    share_out(lambda passes: with_scratch(rows, partial(take, passes)), passes, n_jobs)
    return out


def with_scratch(rows, work):
    """work(scratch) with memory for the C calls of one thread: that of earlier calls, if there is enough of it."""
    kind = rows.dtype.char, rows.core.walk_dense
    scratch = _SPARE.kept.pop(kind, None)
    if scratch is None or len(scratch) < _core.scratch_bytes(rows.core):
        scratch = rows.scratch()
    work(scratch)
    if len(scratch) <= SPARE_BYTES:
        _SPARE.kept[kind] = scratch


def _dot_cells(rows, expansion, walked, table, n_jobs):
    """The same for dense rows in cells: those of one cell are walked together."""
    out = np.zeros((rows.n_rows, table.shape[1]), dtype=rows.dtype)
    for form in rows.forms():
        order = np.argsort(form.core.base, kind="stable").astype(np.int32)
        twin = form.twin(alone=True)
        twin.set_order(order)

        def take(passes, twin=twin, order=order):
            scratch = rows.scratch()
            for first, last in passes:
                part = np.empty((last - first, table.shape[1]), dtype=rows.dtype)
                _core.dot(twin, walked, first, last, table, part, scratch)
                out[order[first:last]] += part

        share_out(take, rows.passes(expansion, max(table.shape[1] // 4, 1)), n_jobs)
    return out


def share_out(take, passes, n_jobs):
    """take(passes) in each of n_jobs threads, which get passes as they come: nothing may depend on who takes which.

    The caller's is one of them.
    """
    if n_jobs == 1:
        take(passes)
        return
    from concurrent.futures import ThreadPoolExecutor

    in_turn = _InTurn(passes)
    with ThreadPoolExecutor(n_jobs - 1) as pool:
        try:
            others = [pool.submit(take, in_turn) for _ in range(n_jobs - 1)]
            take(in_turn)
            for future in others:
                future.result()
        except BaseException:
            in_turn.stopped = True
            raise


class _InTurn:
    """An iterator that several threads may ask."""

    def __init__(self, iterator):
        self.iterator, self.lock, self.stopped = iterator, Lock(), False

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            if self.stopped:
                raise StopIteration
            return next(self.iterator)


def is_csr(X):
    """Whether rows as `check_rows` returns them are CSR, and not an array."""
    return hasattr(X, "indptr")


def check_rows(X, *, estimator=None, empty=True, n_jobs=None):
    """Check X and bring it into the layout that `Rows` takes, without a copy where it has it already.

    With an estimator, also check against its `n_features_in_` and `feature_names_in_`. `empty` allows matrices without
    rows or columns. Threads share large matrices; n_jobs is an estimator's.
    """
    look = look_at(X, estimator, empty)
    if look is not None and _all_plain(X, look, n_jobs):
        return X
    canonical = _check_sparse_structure(X) if _is_sparse(X) else None
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
    return _canonical(X, canonical) if _is_sparse(X) else _in_order(X)


def look_at(X, estimator=None, empty=True):
    """What tells of rows first to last - 1 whether they need no checks: look(first, last); None: all of X does.

    scikit-learn's own checks take longer than to predict a few rows, and large data is better looked at where it is
    used. When in doubt, `check_rows` tells what is wrong.
    """
    as_csr = _is_sparse(X) and X.format == "csr"
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


def _is_sparse(X):
    """Whether X is of one of scipy's sparse kinds: where those have not been imported, nothing is."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and module.issparse(X)


def _check_sparse_structure(X):
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
    indptr, indices = _in_order(indptr, wide), _in_order(indices, wide)
    return _core.check_structure(indptr, indices, n_minor, len(X.data))


def _in_order(array, dtype=None):
    """The array itself when it is contiguous and aligned, else a copy that is."""
    if type(array) is np.ndarray and array.flags.carray:  # as np.require, but at once
        return array if dtype in (None, array.dtype) else array.astype(dtype)
    return np.require(array, dtype=dtype, requirements=["C", "A"])


def _canonical(X, canonical):
    """CSR with strictly rising indices, no stored zeros and no spare room. Never changes the caller's matrix.

    `canonical` is what `_check_sparse_structure` said of the matrix that X was made from.
    """
    if canonical is None:  # it came in another format
        problem, canonical = _structure(X, *X.shape)
        if problem:
            raise ValueError(f"X is a broken CSR matrix: {problem}")
    n_stored = int(X.indptr[-1])
    data, indices = (_in_order(a[:n_stored]) for a in (X.data, X.indices))
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
