"""Which degree the data needs, from a sample and before training. docs/mathematics.md says why, in section 8.

A ridge regression with the exact kernel is solved on a half of the sample. Its outputs on the other half lose something
when the kernel is cut at a degree: that share of them, which counts what the targets make of the kernel, tells whether
the degree is enough.
"""

from math import comb

import numpy as np
from scipy.linalg import solve
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.random import sample_without_replacement

from ._expansion import MAX_INDEX, MAX_ROW_MONOMIALS, Expansion, canonical_kernel
from ._rows import Rows
from ._shift import choose_shift

SAMPLE = 2**11  # rows, half of which are learned from
FEW = 64  # fewer rows than this are all learned from, and all judged by
NOISE = 16  # columns of random targets, where there are none
# A share of the outputs that may be lost. On the sets of bench/plan.py, a higher degree gains less than a tenth of the
# test error from there on.
TOLERANCE = 1 / 3
DEGREES = range(1, 9)
# What "auto" allows: monomials a row, on average; and bytes of tables where no memory_limit is set, a number that does
# not change with what the machine happens to have free.
MONOMIALS = 2**15
BYTES = 2**30


def draw(n_rows, n_drawn):
    """Numbers of n_drawn rows, or of all when there are not as many, in random order; the same ones every time."""
    random = check_random_state(0)
    if n_drawn >= n_rows:
        return random.permutation(n_rows)
    return random.permutation(sample_without_replacement(n_rows, n_drawn, random_state=random))


def targets_of(y, of_classes):
    """Labels or numbers -> columns of mean 0 and of equal size."""
    if of_classes and y.ndim == 1:
        y = y[:, None] == np.unique(y)
    y = y.reshape(len(y), -1).astype(np.float64)
    y -= y.mean(axis=0)
    size = y.std(axis=0)
    return y / np.where(size > 0, size, 1.0)


def cut_shares(X, targets, degrees, *, gamma, C, n_rows, kernel="gaussian", weight=None, forms=None):
    """The share of the outputs that each degree loses, root mean squares over rows that were not learned from.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        Shifted rows in random order.
    targets : ndarray of shape (n, K), or None
        As `targets_of` returns them. None: noise, which needs more than most targets do.
    degrees : sequence of int
        The degrees.
    gamma, C, kernel
        As in `TaylorSVC`.
    n_rows : int
        How many rows are to be trained on.
    weight : ndarray of shape (n,), default=None
        Weights of rows.
    forms : list of Form, default=None
        The rows as they are walked, where that is in cells or along axes. The exact kernel is then 0 between rows of
        different cells, and the mean over the forms.

    Returns
    -------
    shares : ndarray of float
        One for each degree: 0 where nothing is lost, about 1 where all is. NaN where numbers get too large.
    """
    n = X.shape[0]
    if targets is None:
        targets = np.random.RandomState(0).standard_normal((n, NOISE))
    half = n // 2 if n >= FEW else n
    learned, judged = slice(0, half), slice(n - half, n)
    weight = np.ones(n) if weight is None else weight
    expansion = Expansion(1, degree=1, gamma=gamma, kernel=kernel)
    Z = X.astype(np.float64) * expansion.scale
    walked = [(Z, row_norms(Z, squared=True), None)]
    if forms is not None:
        scale2 = expansion.scale**2
        walked = [
            (form.X.astype(np.float64) * expansion.scale, scale2 * (form.squares + form.beyond), form.cell)
            for form in forms
        ]

    def pairs(some, Z, norms):
        z = np.asarray(safe_sparse_dot(Z[some], Z[learned].T, dense_output=True))
        return z, -expansion.decay * (norms[some, None] + norms[learned])

    def same(some, cell):
        """Which rows are in the same cell."""
        return 1.0 if cell is None else cell[some, None] == cell[learned]

    def exact_kernel(some):
        z, exponent = pairs(some, Z, row_norms(Z, squared=True))
        return np.exp(z + exponent) * np.mean([same(some, cell) for _, _, cell in walked], axis=0)

    with np.errstate(over="ignore", invalid="ignore"):
        K = exact_kernel(learned)
        if not np.isfinite(K).all():
            return np.full(len(degrees), np.nan)
        ridge = half / (2 * C * n_rows * weight[learned])  # as much regularised as all rows are
        K[np.diag_indices(half)] += np.maximum(ridge, 1e-8 * K.max())
        alpha = solve(K, targets[learned], assume_a="pos")
        exact = exact_kernel(judged)
        products = [(*pairs(judged, *form[:2]), same(judged, form[2])) for form in walked]
        root = np.sqrt(weight[judged, None])
        total = np.linalg.norm(root * (exact @ alpha))
        shares = []
        for degree in degrees:
            series = Expansion(1, degree=degree, gamma=gamma, kernel=kernel).series
            cut = [
                beside * np.where(exponent < -745, 0.0, series(z.copy()) * np.exp(exponent))
                for z, exponent, beside in products
            ]
            lost = exact - np.mean(cut, axis=0)
            shares.append(np.linalg.norm(root * (lost @ alpha)) / total if total > 0 else 0.0)
    return np.array(shares)


def auto_degree(X, y, weight, fits, *, gamma, C, kernel, shift, of_classes=False):
    """The least degree that loses no more than `TOLERANCE`; of those that can be afforded, the highest if none does.

    Parameters
    ----------
    X : ndarray or CSR
        Training rows, as `check_rows` returns them.
    y : ndarray, or None
        Their checked targets.
    weight : ndarray, or None
        Their weights.
    fits : callable
        Takes an `Expansion` and a `Shift` or None, and returns whether there is memory for them.
    gamma, C, kernel, shift
        As in `TaylorSVC`, gamma a number.
    of_classes : bool
        Whether y holds labels.

    Returns
    -------
    degree : int
        At least 1, whether or not that can be afforded.
    """
    if not isinstance(kernel, str) or canonical_kernel(kernel) not in ("gaussian", "exponential"):
        raise ValueError(f'degree="auto" is for kernels that are cut, gaussian and exponential; got kernel={kernel!r}')
    n_columns = X.shape[1]
    used = np.arange(X.shape[0]) if weight is None else np.flatnonzero(weight)
    drawn = used[draw(len(used), SAMPLE)] if len(used) else np.arange(min(X.shape[0], SAMPLE))
    if not len(drawn):
        return 1
    moved = choose_shift(X, shift, Expansion(n_columns, degree=1, gamma=gamma, kernel=kernel))
    some = X[drawn] if moved is None else moved(X[drawn])
    by = None if moved is None else moved.by
    longest = min(Rows(X).core.max_nonzeros + (0 if by is None else np.count_nonzero(by)), n_columns)
    affordable: list[int] = []
    for degree in DEGREES:
        if comb(n_columns + degree, degree) > MAX_INDEX or comb(longest + degree, degree) > MAX_ROW_MONOMIALS:
            break
        expansion = Expansion(n_columns, degree=degree, gamma=gamma, kernel=kernel)
        monomials = Rows(some).monomials(expansion)[0] / len(drawn)
        if monomials > MONOMIALS or not fits(expansion, choose_shift(X, by, expansion)):
            break
        affordable.append(degree)
    if len(affordable) < 2:
        return 1
    targets = None if y is None else targets_of(y[drawn], of_classes)
    weight = None if weight is None or not len(used) else weight[drawn]
    shares = cut_shares(some, targets, affordable, gamma=gamma, C=C, n_rows=len(used), kernel=kernel, weight=weight)
    return next((r for r, share in zip(affordable, shares, strict=True) if share <= TOLERANCE), affordable[-1])
