"""Frequent columns first: a small table of its own for the rows that have no rare column.

A row's slots lie all over a table, because its columns do. With the frequent columns in front and the rare ones left
out, most monomials of most rows are in a part of the table that stays in the nearest cache.
"""

import numpy as np

from .. import _core
from .expansion import passes

# A slot of the small table costs as much, when it is filled, as is saved on this many monomials; and beyond so many
# monomials for each slot, the table is less than a hundredth of the features' memory.
SLOT_COST = 12
SLOT_MONOMIALS = 100
FRONT_SHARE = 4  # columns in front are in at least one row of so many
STEP = 2**14  # slots that are moved at once


class Reordering:
    """Tables over some columns, in another order.

    Parameters
    ----------
    columns : ndarray of int
        The columns that are numbered 0, 1, ...
    whole : Expansion
        The expansion of all columns in their own order, of degree 2 at least.
    """

    def __init__(self, columns, whole):
        self.expansion = whole.grow(len(columns))
        self._ranks = whole.ranks
        self._own = np.concatenate([[0], columns + 1]).astype(np.int32)

    def _moves(self):
        """(slots of the small table, where they are in the whole one), a few at a time."""
        ends = self.expansion.ranks[-1]
        for first, last in passes(ends, STEP):
            slots = np.empty(ends[last] - ends[first], dtype=np.int64)
            _core.own_slots(self.expansion.bare, self._own, self._ranks, first, last, slots)
            yield slice(ends[first], ends[last]), slots

    @property
    def longest_move(self):
        """Bytes of the slots that are moved at once, at most."""
        return max(slots.nbytes for _, slots in self._moves())

    def take(self, whole, small):
        """Fill the small table from the whole one. Both in C order and of one type: then nothing is copied twice."""
        for here, there in self._moves():
            np.take(whole, there, axis=0, out=small[here], mode="clip")

    def add(self, small, whole):
        """Add the small table to the whole one."""
        for here, there in self._moves():
            whole[there] += small[here]


def frequent_columns(rows, expansion):
    """(columns, n_front, inside): columns in a better order, how many of them are in front, which rows have no others.

    None when it does not pay: the columns are nearly in that order, or there are too few rows.
    """
    if rows.core.indptr is None or expansion.degree == 1 or rows.n_rows > np.iinfo(np.int32).max:
        return None
    indices, indptr = rows.core.indices, rows.core.indptr
    counts = np.zeros(rows.n_columns, dtype=np.int64)
    for first in range(0, len(indices), 2**16):
        counts += np.bincount(indices[first : first + 2**16], minlength=len(counts))
    by_count = np.argsort(-counts, kind="stable")
    rank = np.empty(len(counts), dtype=np.int32)
    rank[by_count] = np.arange(1, len(counts) + 1)

    rarest = np.zeros(rows.n_rows, dtype=np.int32)  # the highest rank among a row's columns
    covered = np.zeros(len(counts) + 1)  # monomials of the rows that have only the 0, 1, ... most frequent columns
    for first, lengths in rows.lengths():
        begin, last = indptr[first], first + len(lengths)
        filled = first + np.flatnonzero(lengths)
        if len(filled):
            rarest[filled] = np.maximum.reduceat(rank[indices[begin : indptr[last]]], indptr[filled] - begin)
        monomials = np.array([expansion.monomials(m) for m in range(int(lengths.max()) + 1)], dtype=float)
        covered += np.bincount(rarest[first:last], weights=monomials[lengths], minlength=len(covered))
    covered = np.cumsum(covered)
    n_slots = expansion.ranks[-1, 1:].astype(float)
    gain = np.where(SLOT_MONOMIALS * n_slots <= covered[-1], covered - SLOT_COST * n_slots, -1)
    kept = int(np.argmax(gain))
    if gain[kept] <= 0:
        return None
    n_front = min(kept, int(np.count_nonzero(FRONT_SHARE * counts >= rows.n_rows)))
    columns = np.concatenate([np.sort(by_count[:n_front]), np.sort(by_count[n_front:kept])])
    nearly_so = 2 * counts[columns] @ np.arange(kept) > counts @ np.arange(len(counts))
    return None if nearly_so else (columns, n_front, rarest <= kept)
