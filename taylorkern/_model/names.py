"""Monomials in the user's terms: slots in the order of the user's columns, names, and the strongest ones."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._data.rows import Csr

CHUNK = 2**18  # slots that are renumbered at once


def coordinates(expansion, slots):
    """The multisets j_1 <= ... <= j_r in these slots: an array of shape (len(slots), r)."""
    rest = np.array(slots, dtype=np.int64)
    out = np.empty((len(rest), expansion.degree), dtype=np.int64)
    for p in range(expansion.degree, 0, -1):
        ranks = expansion.ranks[p, :-1]
        out[:, p - 1] = np.searchsorted(ranks, rest, side="right") - 1
        rest -= ranks[out[:, p - 1]]
    return out


def renumbered(expansion, slots, place):
    """Where the monomials in these slots lie when column j becomes column place[j]."""
    new = np.concatenate([[0], np.asarray(place, dtype=np.int64) + 1])[coordinates(expansion, slots)]
    new.sort(axis=1)
    return sum(expansion.ranks[p + 1][new[:, p]] for p in range(expansion.degree))


def in_user_order(expansion, table, place):
    """The table with its slots in the order of the user's columns."""
    if place is None:
        return table.copy()
    out = np.empty_like(table)
    for first in range(0, len(table), CHUNK):
        slots = np.arange(first, min(first + CHUNK, len(table)))
        out[slots] = table[renumbered(expansion, slots, place)]
    return out


def column_shares(expansion, table):
    """sum_a |w_a|^2 a_j / |a| for each column j of the expansion, of weights w_a of features: [d].

    The constant monomial has no columns and counts for none.
    """
    total = np.zeros(expansion.n_columns + 1)
    for first in range(0, len(table), CHUNK):
        part = table[first : first + CHUNK]
        squares = np.einsum("ik,ik->i", part, part, dtype=np.float64)
        some = np.flatnonzero(squares)
        at = coordinates(expansion, first + some)
        squares = squares[some] / np.maximum(np.count_nonzero(at, axis=1), 1)
        for p in range(expansion.degree):
            total += np.bincount(at[:, p], weights=squares, minlength=len(total))
    return total[1:]


def monomial_name(powers: Mapping[int, int], columns, times=" ") -> str:
    """{0: 2, 3: 1} -> "x0^2 x3", by the names of the columns; the constant is "1"."""
    factors = [f"{columns[j]}^{e}" if e > 1 else str(columns[j]) for j, e in sorted(powers.items())]
    return times.join(factors) or "1"


def shifted_name(name, by):
    """("age", 38.6) -> "(age - 38.6)"."""
    if by == 0:
        return str(name)
    return f"({name} {'-' if by > 0 else '+'} {abs(by):.8g})"


class Monomial(NamedTuple):
    """An interaction of columns and its weight."""

    name: str
    """By the user's column names, such as "(sex_male - 1) * (age - 38.6)"."""
    weight: float
    """The weight of its feature: the entry of `monomial_coef_`."""
    share: float
    """In what share of the training rows it is not zero, from at most 4096 of them."""
    powers: dict[int, int]
    """{column: power}."""


class CellMonomial(NamedTuple):
    """The same in a cell, where it differs in its shift."""

    name: str
    weight: float
    share: float
    powers: dict[int, int]
    cell: int
    """Which cell: counted over all partitions."""


class MonomialTable(list):
    """Monomials, which print as a table."""

    def __str__(self):
        width = max((len(m.name) for m in self), default=0)
        cells = any(isinstance(m, CellMonomial) for m in self)
        lines = [f"{'monomial':<{max(width, 8)}} {'weight':>12} {'share':>8}" + (f" {'cell':>6}" if cells else "")]
        for m in self:
            cell = f" {m.cell:>6}" if cells else ""
            lines.append(f"{m.name:<{max(width, 8)}} {m.weight:>12.4g} {m.share:>8.2%}{cell}")
        return "\n".join(lines)


def strongest(expansion, table, place, names, sample, k):
    """The k monomials with the largest weights.

    Parameters
    ----------
    expansion : Expansion
        The features.
    table : ndarray of shape (n_slots,)
        Their weights.
    place : ndarray of int32, or None
        The number that each of the user's columns has in the expansion.
    names : list of str
        The user's columns, with their shifts.
    sample : ndarray, CSR or `Csr`
        Rows, shifted and renumbered.
    k : int
        How many.

    Returns
    -------
    monomials : MonomialTable
        Strongest first; zero weights are left out.
    """
    slots = _largest(table, k)
    user = np.arange(expansion.n_columns) if place is None else np.argsort(place)
    filled = _filled(sample)
    out = MonomialTable()
    for slot in slots:
        powers = expansion.powers_of(int(slot))
        by_user = dict(sorted((int(user[j]), power) for j, power in powers.items()))
        name = monomial_name(by_user, names, " * ")
        out.append(Monomial(name, float(table[slot]), float(_present(filled, powers).mean()), by_user))
    return out


def strongest_in_cells(expansion, table, cells, names, sample, k):
    """The same for the tables of cells; the sample is a `Sample`."""
    begins = np.concatenate(cells.bases)
    first_cells = np.cumsum([0] + [len(base) for base in cells.bases])
    filled, n_sample = _filled(sample.filled), len(sample.base) // len(cells.partitions)
    out = MonomialTable()
    for slot in _largest(table, k):
        cell = int(np.searchsorted(begins, slot, side="right")) - 1
        p = int(np.searchsorted(first_cells, cell, side="right")) - 1
        partition, number = cells.partitions[p], cell - first_cells[p]
        powers = expansion.powers_of(int(slot - begins[cell]))
        user = np.arange(cells.n_features)
        if partition.place is not None:
            user = np.argsort(np.where(partition.place[number] < 0, cells.n_features, partition.place[number]))
        here = (sample.base == begins[cell]) & _present(filled, powers)
        by_user = dict(sorted((int(user[j]), power) for j, power in powers.items()))
        shifted = {j: shifted_name(names[j], partition.by[number, j]) for j in by_user}
        name = monomial_name(by_user, shifted, " * ")
        out.append(CellMonomial(name, float(table[slot]), float(here.sum() / n_sample), by_user, cell))
    return out


def _largest(table, k):
    """The slots of the k largest weights, largest first, without zeros."""
    size = np.abs(table)
    slots = np.argpartition(size, -k)[-k:] if k < len(table) else np.arange(len(table))
    slots = slots[np.lexsort((slots, -size[slots]))]
    return slots[size[slots] > 0]


def _filled(X):
    X = X.to_scipy() if isinstance(X, Csr) else X
    return sparse.csc_array(X != 0) if sparse.issparse(X) else X != 0


def _present(filled, columns):
    """Which rows have all of these columns."""
    here = np.ones(filled.shape[0], dtype=bool)
    for j in columns:
        column = filled[:, [j]]
        here &= column.toarray()[:, 0] if sparse.issparse(column) else column[:, 0]
    return here
