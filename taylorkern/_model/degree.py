"""degree="auto": the least degree that keeps nearly all of a row, from a closed form of the rows alone.

Of a row with t = 2 gamma |x|^2 the terms up to degree r keep the share Q(x) = gammaincc(r + 1, t); the rest is cut.
docs/mathematics.md, section 8, says how the rule was found.
"""

from math import comb

import numpy as np
from scipy.special import gammainc

from .._data.expansion import MAX_DEGREE, MAX_INDEX, Expansion
from .._data.rows import is_csr

SAMPLE = 2**11  # rows, evenly spread
TOLERANCE = 1e-3  # of the mean share that is cut
# Beyond degree 2: monomials of the median row, or, where there are hardly more slots than that and rows are walked
# dense, several times as fast, slots. And bytes of tables where no memory_limit is set: a number that does not change
# with what the machine happens to have free. bench.parity shows what they trade.
MONOMIALS, SLOTS, BYTES = 1000, 2500, 2**28
LEAST = 2
UNCUT = 3  # of the polynomial kernel: that of scikit-learn


def some_rows(X, weight=None):
    """The rows that the degree is chosen by; of weights, which nobody has checked yet, those of 0 are left out."""
    used = np.arange(X.shape[0])
    weight = None if weight is None else np.asarray(weight)
    if weight is not None and weight.shape == used.shape and weight.dtype.kind in "biuf":
        used = np.flatnonzero(weight)
    some = X[used[:: max(-(-len(used) // SAMPLE), 1)]]
    return some if is_csr(X) else np.ascontiguousarray(some)


def degree_of(coefficients):
    """The degree of a kernel of so many coefficients; 1 of anything else, which is refused later."""
    return max(len(coefficients) - 1, 1) if hasattr(coefficients, "__len__") else 1


def auto_degree(kernel, gamma, rows, fits):
    """The least degree whose mean residual is small.

    Beyond 2 it rises only as far as the median row has about a thousand monomials (dense rows of few columns: 2500); it
    is below 2 only where the tables of degree 2 do not fit.

    Parameters
    ----------
    kernel : str or sequence of float
        As `Expansion` takes it. Of a kernel that is not cut, the degree is that of its coefficients, or scikit-learn's.
    gamma : float
        The bandwidth.
    rows : Rows
        Some rows as they are walked.
    fits : callable
        Takes a degree, and returns whether its tables fit into memory.

    Returns
    -------
    degree : int
        At least 1, whether or not that fits.
    """
    if not isinstance(kernel, str):
        return degree_of(kernel)
    forms = list(rows.forms())
    if not Expansion(1, degree=1, gamma=gamma, kernel=kernel).is_cut:
        return UNCUT
    lengths = [np.concatenate([some for _, some in form.lengths()]) for form in forms if form.n_rows]
    typical = int(np.median(lengths)) if lengths else 0
    t = 2 * gamma * np.concatenate([form.squares()[0] for form in forms])
    degree = 1
    for next_degree in range(LEAST, MAX_DEGREE + 1):
        n_slots, monomials = (comb(m + next_degree, next_degree) for m in (rows.n_columns, typical))
        if next_degree > LEAST and monomials > MONOMIALS and n_slots > SLOTS:
            break
        if n_slots > MAX_INDEX or not fits(next_degree):
            break
        degree = next_degree
        if not len(t) or gammainc(degree + 1, t).mean() <= TOLERANCE:
            break
    return degree
