"""Rows as they are walked: C's view of checked ones (see _check.py), how they are walked, and what is known of them.

Whatever predicts from a model file comes by here, the command line too: scipy and scikit-learn, which take many times
longer to import than it takes to predict, are imported where they are needed.
"""

from copy import copy
from functools import cached_property, partial
from math import comb
from threading import local
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .expansion import PASS_MONOMIALS, passes
from .threads import cut_evenly, share_out

# A dense walk visits a monomial this many times faster than a sparse one (bench/micro.py: Walk).
DENSE_GAIN = 5
PASS_GAIN = 16  # the same where vectors are long, in margins and training: for passes of some milliseconds
# Bytes of a table from which on it pays to sort rows before they are multiplied with it, those of so many passes at
# once: most of it is then in no cache (bench/roofline.py, part d: Adult at degree 4 gains a quarter or more, covertype
# at degree 4 would lose a tenth, because sorted rows are fetched one by one).
SORT_FROM, SORTED_PASSES = 2**24, 32
GROUP = 32  # rows that are walked dense at once, with several tables
REACH = 1e-10  # of the largest number, that K~(x, x) may be: monomials and sums over rows may be larger
# How threads share the slots: by so many rows; what a run of monomials costs beside them, in monomials; the bytes of
# tables that are quick to reach (bench/roofline.py, part e).
SHARES_SAMPLE, DENSE_RUN, SPARSE_RUN, TABLE_ENTRIES, SECOND_CACHE = 1000, 96, 12, 1024, 2**20
# Rows: a pass of so many may be shorter than it could be, as if all of them were as long as the longest.
LONG_PASS = 2**10
SURVEYED = 2**15  # rows whose nonzeros are counted, or squares added up, between two looks at Ctrl-C
WORTH_THREAD = 2  # times that much, or terms of objectives, is worth another thread
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
            indices = in_order(X.indices, np.int32)
            indptr = in_order(X.indptr, np.int64)
            self.core = _core.Rows(X.data, indices, indptr, self.n_columns)
        else:
            self.core = _core.Rows(X, None, None, self.n_columns)

    def twin(self, alone=False, factors=True):
        """C's view of the same rows once more: one to put in an order of its own; `alone`, without its other forms."""
        core = self.core
        twin = _core.Rows(core.data, core.indices, core.indptr, self.n_columns, core.max_nonzeros)
        twin.walk_dense = core.walk_dense
        if core.base is not None or core.beyond is not None:
            twin.set_cells(core.base, core.beyond, core.n_slots)
        if core.factor is not None and factors:
            twin.set_factor(core.factor)
        if core.next is not None and not alone:
            twin.set_next(core.next)
        return twin

    def without_factors(self):
        """The same rows, for another expansion than their s(x) go with."""
        other = copy(self)
        other.core = self.twin(alone=True, factors=False)
        other.next = None if self.next is None else self.next.without_factors()
        if other.next is not None:
            other.core.set_next(other.next.core)
        return other

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
        if not expansion.has_factor:
            return
        starts = range(0, self.n_rows, SURVEYED)
        for form in self.forms():
            factors = np.empty(self.n_rows)

            def take(parts, core=form.core, factors=factors):
                for first in parts:
                    part = factors[first : first + SURVEYED]
                    _core.factors(core, expansion.bare, first, first + len(part), part)

            share_out(take, iter(starts), min(n_jobs, max(len(starts) // WORTH_THREAD, 1)))
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

    def check_reach(self, expansion, first=0):
        """Refuse rows whose K~(x, x) is beyond their type, where no s(x) keeps it from that; `first` is a number."""
        if expansion.has_factor:
            return
        for form in self.forms():
            t = expansion.scale**2 * form.squares()[0]
            with np.errstate(over="ignore", invalid="ignore"):
                beyond = ~(expansion.series(t.copy()) <= REACH * float(np.finfo(self.dtype).max))
            if beyond.any():
                row = int(np.argmax(beyond))
                name = expansion.kernel if isinstance(expansion.kernel, str) else "given"
                raise ValueError(
                    f"row {first + row} is too long for the {name} kernel at degree={expansion.degree}: with "
                    f"|x|^2 = {form.squares()[0][row]:.4g} its K(x, x) is beyond what {self.dtype} holds. Scale the "
                    "data, or set normalize=True"
                )

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


def is_csr(X):
    """Whether rows as `check_rows` returns them are CSR, and not an array."""
    return hasattr(X, "indptr")


def in_order(array, dtype=None):
    """The array itself when it is contiguous and aligned, else a copy that is."""
    if type(array) is np.ndarray and array.flags.carray:  # as np.require, but at once
        return array if dtype in (None, array.dtype) else array.astype(dtype)
    return np.require(array, dtype=dtype, requirements=["C", "A"])
