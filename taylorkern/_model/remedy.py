"""What would fit, when a training is refused since it does not: settings to follow, with the bytes that they take."""

from bisect import bisect_right
from math import comb, inf

import numpy as np

from .._data.expansion import MAX_INDEX, MAX_ROW_MONOMIALS, Expansion, canonical_kernel
from .._data.memory import readable
from .._data.rows import Rows, is_csr
from .._place.shift import choose_shift

WORTH_AXES = 8  # fewer keep less of most rows than a lower degree does


def remedy(model, rows, degree, takes, limit):
    """Settings under which training on these rows is accepted, as text; "" where there are none.

    Parameters
    ----------
    model : TaylorModel
        With the settings that are refused.
    rows : ndarray or CSR
        Training rows, as `check_rows` returns them.
    degree : int
        The degree that is refused.
    takes : callable
        takes(n_slots, moved) is how many bytes training takes with so many slots, and so many bytes of shifted rows;
        takes(n_slots, moved, n_rows, solver) the same for another number of rows and another solver.
    limit : int or None
        How many there are.
    """
    if limit is None:
        return ""
    room = _Room(model, rows, takes, int(min(limit, MAX_INDEX)))  # memory_limit may be infinite
    if model.n_axes is not None:
        found = [room.lower(degree, room.along_axes(model.n_axes)) or room.fewer_axes(degree)]
    elif model.n_cells != 1:
        found = [room.fewer_cells(degree) or room.lower(degree + 1, room.whole) or room.fewer_axes(degree)]
    else:
        found = [room.lower(degree, room.whole, least=2)]
        if not found[0]:  # degree 1 is no more than a linear model
            found = [room.lower(2, room.whole) if degree > 1 else "", room.fewer_axes(degree)]
        if not any(found):
            found = [room.batches(degree)]
    return "; ".join(filter(None, found))


class _Room:
    """What fits into a limit."""

    def __init__(self, model, rows, takes, limit):
        self.model, self.rows, self.takes, self.limit = model, rows, takes, limit
        self.n_rows, self.n_columns = rows.shape
        self.size = rows.dtype.itemsize
        kernel = canonical_kernel(model.kernel)
        self.invariant = isinstance(kernel, str) and kernel == "gaussian"
        self.of_gaussian = self.invariant and isinstance(model.shift, str)  # as cells and axes ask for
        self._without_cells = {} if model.n_cells == 1 else {"n_cells": 1}

    def lower(self, degree, bytes_at, least=1):
        """The highest degree below this one that fits; bytes_at(r) is what it takes."""
        for r in range(degree - 1, least - 1, -1):
            n_bytes = bytes_at(r)
            if n_bytes <= self.limit:
                return self._text(n_bytes, **self._without_cells, **self._degree(r))
        return ""

    def whole(self, r):
        """The bytes of all columns, without cells."""
        n_slots = comb(self.n_columns + r, r)
        if n_slots > MAX_INDEX or self.takes(n_slots, 0) > self.limit:
            return inf
        shift = None
        if self.model.shift is not None:
            kernel = "gaussian" if self.invariant else "exponential"  # all that a shift asks
            expansion = Expansion(self.n_columns, degree=r, gamma=1.0, kernel=kernel)
            shift = choose_shift(self.rows, self.model.shift, expansion)
        longest = self.n_columns
        if is_csr(self.rows):
            filled = 0 if shift is None else np.count_nonzero(shift.by)
            longest = min(Rows(self.rows).core.max_nonzeros + filled, longest)
        if comb(longest + r, r) > MAX_ROW_MONOMIALS:
            return inf
        return self.takes(n_slots, 0 if shift is None else shift.bytes(self.rows))

    def along_axes(self, k):
        """The bytes along so many axes, by degree."""

        def bytes_at(r):
            n_slots = comb(k + r, r)
            if n_slots > MAX_ROW_MONOMIALS:
                return inf
            return self.takes(n_slots, self.n_rows * (k * self.size + 8))

        return bytes_at

    def fewer_axes(self, degree):
        """The most axes that fit, at this degree or, where that leaves none worth having, at degree 2.

        Sparse rows would not be sparse along axes: those are for dense rows, unless they are asked for.
        """
        if not self.of_gaussian or (self.model.n_axes is None and is_csr(self.rows)):
            return ""
        most = min(self.n_columns, self.n_rows - 1, self.model.n_axes or self.n_columns)
        for r in (degree, min(degree, 2)):
            k = self._most_axes(most, r)
            if k >= WORTH_AXES or (k and r <= 2):
                return self._text(self.along_axes(k)(r), **self._without_cells, n_axes=k, **self._degree(r))
        return ""

    def _most_axes(self, most, r):
        return bisect_right(range(1, most + 1), self.limit, key=lambda k: self.along_axes(k)(r))

    def fewer_cells(self, degree):
        """The most cells that fit, if all of them had all columns."""
        n_partitions = self.model.n_partitions
        one = n_partitions * comb(self.n_columns + degree, degree)
        if comb(self.n_columns + degree, degree) > MAX_ROW_MONOMIALS:
            return ""
        entries = n_partitions * (self.size + 4) * (len(self.rows.data) if is_csr(self.rows) else self.rows.size)
        most = self.n_rows if isinstance(self.model.n_cells, str) else min(self.model.n_cells - 1, self.n_rows)
        n_cells = bisect_right(range(1, most + 1), self.limit, key=lambda n: self.takes(n * one, entries))
        if n_cells < 2:
            return ""
        return self._text(self.takes(n_cells * one, entries), "at most ", n_cells=n_cells, **self._degree(degree))

    def batches(self, degree):
        """How many rows `partial_fit` can take at once."""
        n_slots = comb(self.n_columns + degree, degree)
        longest = Rows(self.rows).core.max_nonzeros if is_csr(self.rows) else self.n_columns
        if n_slots > MAX_INDEX or comb(longest + degree, degree) > MAX_ROW_MONOMIALS:
            return ""
        tables = self.takes(n_slots, 0, 0, "adagrad")
        each = self.takes(0, self.n_columns * (self.size + 4) + 8, 1, "adagrad")
        n_rows = (self.limit - tables) // each
        return f"partial_fit can take up to {n_rows} rows at a time" if n_rows > 0 else ""

    def _degree(self, r):
        return {} if r == self.model.degree else {"degree": r}

    def _text(self, n_bytes, about="", **settings):
        """'degree=2 would take 12.3 MiB'."""
        said = ", ".join(f"{name}={value}" for name, value in settings.items())
        if "degree" in settings and not isinstance(self.model.kernel, str):
            said += f" (with {settings['degree'] + 1} kernel coefficients)"
        return f"{said} would take {about}{readable(n_bytes)}"
