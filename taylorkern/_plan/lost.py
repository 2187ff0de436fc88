"""What each degree would lose of an exact model, from a sample and before training: docs/mathematics.md, section 8.

A ridge regression with the exact kernel is solved on a half of the sample. Its outputs on the other half lose something
when the kernel is cut at a degree: that share of them, which counts what the targets make of the kernel, tells whether
the degree is enough.
"""

import numpy as np
from scipy.linalg import solve
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.random import sample_without_replacement

from .._data.expansion import Expansion

SAMPLE = 2**11  # rows, half of which are learned from
FEW = 64  # fewer rows than this are all learned from, and all judged by
NOISE = 16  # columns of random targets, where there are none
# A share of the outputs that may be lost. On the sets of bench/plan.py, a higher degree gains less than a tenth of the
# test error from there on.
TOLERANCE = 1 / 3


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


def cut_shares(X, targets, degrees, *, gamma, C, n_rows, kernel="gaussian", weight=None, forms=None, normalize=False):
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
    normalize : bool, default=False
        Whether rows are unit rows.

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
    norms = row_norms(Z, squared=True)
    walked = [(Z, norms, np.zeros(n), None)]
    if forms is not None:
        scale2 = expansion.scale**2
        walked = [
            (form.X.astype(np.float64) * expansion.scale, scale2 * form.squares, scale2 * form.beyond, form.cell)
            for form in forms
        ]

    def products(some, Z):
        return np.asarray(safe_sparse_dot(Z[some], Z[learned].T, dense_output=True))

    def same(some, cell):
        """Which rows are in the same cell."""
        return 1.0 if cell is None else cell[some, None] == cell[learned]

    def exact_kernel(some):
        exponent = -expansion.decay * (norms[some, None] + norms[learned])
        return np.exp(products(some, Z) + exponent) * np.mean([same(some, cell) for *_, cell in walked], axis=0)

    with np.errstate(over="ignore", invalid="ignore"):
        K = exact_kernel(learned)
        if not np.isfinite(K).all():
            return np.full(len(degrees), np.nan)
        ridge = half / (2 * C * n_rows * weight[learned])  # as much regularised as all rows are
        K[np.diag_indices(half)] += np.maximum(ridge, 1e-8 * K.max())
        alpha = solve(K, targets[learned], assume_a="pos")
        exact = exact_kernel(judged)
        inner = [products(judged, form[0]) for form in walked]
        root = np.sqrt(weight[judged, None])
        total = np.linalg.norm(root * (exact @ alpha))
        shares = []
        for degree in degrees:
            cut_kernel = Expansion(1, degree=degree, gamma=gamma, kernel=kernel, normalize=normalize).kernel_of
            cut = [
                same(judged, cell) * cut_kernel(z, t[judged, None], t[learned], left[judged, None], left[learned])
                for z, (_, t, left, cell) in zip(inner, walked, strict=True)
            ]
            lost = exact - np.mean(cut, axis=0)
            shares.append(np.linalg.norm(root * (lost @ alpha)) / total if total > 0 else 0.0)
    return np.array(shares)
