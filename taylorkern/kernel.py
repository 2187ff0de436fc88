"""What needs no walk: kernels in closed form, how far they are from the exact ones, and what features cost.

Everything here is for the kernels of `TaylorFeatures`; r is the degree, d the number of columns, m the number of
nonzeros of a row, gamma = 1 / (2 sigma^2).
"""

from math import comb, lgamma
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammainc, lambertw
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from ._data.checks import check_rows
from ._data.expansion import MAX_DEGREE, Expansion, canonical_kernel, check_degree, check_positive, resolve_gamma
from ._data.memory import check_memory
from ._data.randomness import fixed_random_state
from ._data.rows import Rows

SERIES_BYTES = 2**24  # of temporary arrays


def taylor_kernel(
    X, Y=None, *, degree=3, gamma="scale", kernel="gaussian", coef0=1.0, normalize=False, memory_limit=None
):
    """The inner products of the features of `TaylorFeatures`, without the features.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples_X, n_features)
        Rows.
    Y : array-like or sparse matrix of shape (n_samples_Y, n_features), default=None
        More rows; by default those of X.
    degree : int, default=3
        The degree r at which the series is cut.
    gamma : {"scale", "auto"} or float, default="scale"
        The bandwidth, with the meaning that it has in `sklearn.svm.SVC`, computed on X.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float, default="gaussian"
        See `TaylorFeatures`.
    coef0 : float, default=1.0
        The constant of the polynomial kernel; others ignore it.
    normalize : bool, default=False
        Whether to take unit rows, as the estimators do: K(x, x') / sqrt(K(x, x) K(x', x')).
    memory_limit : int, default=None
        The largest result in bytes. None stands for what the machine has free.

    Returns
    -------
    K : ndarray of shape (n_samples_X, n_samples_Y)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from taylorkern import taylor_kernel
    >>> X = np.array([[0.0, 1.0], [1.0, 1.0], [0.5, -0.5]])
    >>> bool(np.abs(taylor_kernel(X, degree=8, gamma=0.5) - rbf_kernel(X, gamma=0.5)).max() < 1e-3)
    True
    """
    X = check_rows(X)
    Y = X if Y is None else check_rows(Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, but Y has {Y.shape[1]}")
    gamma = resolve_gamma(gamma, X)
    expansion = Expansion(X.shape[1], degree=degree, gamma=gamma, kernel=kernel, coef0=coef0, normalize=normalize)
    dtype = np.result_type(X.dtype, Y.dtype)
    n_bytes = X.shape[0] * Y.shape[0] * dtype.itemsize
    check_memory(n_bytes + SERIES_BYTES, memory_limit, f"{X.shape[0]} x {Y.shape[0]} kernel values")
    for part in (X, Y):
        Rows(part).check_reach(expansion)
    Z, s, c = _scaled(X.astype(dtype, copy=False), expansion)
    Z2, s2, c2 = (Z, s, c) if Y is X else _scaled(Y.astype(dtype, copy=False), expansion)
    K = np.asarray(safe_sparse_dot(Z, Z2.T, dense_output=True), dtype=dtype)
    # The series in double precision, some rows at a time: 1 / k! and s(x) are soon too small for a float32.
    step = max(1, SERIES_BYTES // (24 * max(K.shape[1], 1)))
    for first in range(0, len(K), step):
        some = slice(first, first + step)
        part = K[some].astype(np.float64)
        part = expansion.homogeneous(part, np.multiply.outer(c[some], c2)) if normalize else expansion.series(part)
        part *= s[some, None]
        part *= s2
        K[first : first + step] = part
    return K


def _scaled(X, expansion):
    """scale * X, s(x) and 1. Of unit rows instead those / rho, and s(x) rho^r, rho = max(1, |scale * x|): see factor.h.

    Rows whose s(x) underflows are emptied: all of their features are zero.
    """
    if expansion.normalize:
        return _unit(X, expansion)
    Z = X * X.dtype.type(expansion.scale)
    with np.errstate(over="ignore"):
        s = np.exp(-expansion.decay * row_norms(Z, squared=True).astype(np.float64))
    gone = s.astype(X.dtype) == 0
    if gone.any():
        s[gone] = 0
        if sparse.issparse(Z):
            Z.data[np.repeat(gone, np.diff(Z.indptr))] = 0
        else:
            Z[gone] = 0
    return Z, s, np.ones(len(s))


def _unit(X, expansion):
    largest = np.asarray(abs(X).max(axis=1).todense() if sparse.issparse(X) else np.abs(X).max(axis=1, initial=0.0))
    largest = np.maximum(largest.ravel().astype(np.float64), np.finfo(np.float64).tiny)
    Z = _times(1 / largest, X.astype(np.float64))
    norm = np.sqrt(row_norms(Z, squared=True)) * (largest * expansion.scale)
    c = 1 / np.maximum(norm, 1.0)
    norms = expansion.homogeneous(np.minimum(norm, 1.0) ** 2, c**2)
    with np.errstate(divide="ignore"):
        s = np.where(norms > 0, 1 / np.sqrt(norms), 0.0)
    return _times(largest * expansion.scale * c, Z).astype(X.dtype), s, c


def _times(by, X):
    """Each row by its own factor."""
    return (sparse.diags(by) @ X).tocsr() if sparse.issparse(X) else by[:, None] * X


def squared_norms(X, gamma):
    """2 gamma |x|^2 of each row: the squared norm in units of sigma."""
    return 2 * gamma * row_norms(check_rows(X), squared=True).astype(np.float64)


def residual(X, *, degree, gamma):
    """res(x) = 1 - K~(x, x) of each row: what the Gaussian feature map loses by the cut.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    degree : int
        The degree r.
    gamma : float
        The bandwidth.

    Returns
    -------
    residual : ndarray of shape (n_samples,)
        Each between 0 and 1.

    Examples
    --------
    >>> from taylorkern.kernel import residual
    >>> residual([[0.0, 0.0], [1.0, 1.0]], degree=3, gamma=0.5).round(4).tolist()
    [0.0, 0.1429]
    """
    return gammainc(check_degree(degree) + 1, squared_norms(X, check_positive("gamma", gamma)))


def taylor_bound(norm, other_norm, *, degree, gamma):
    """(2 gamma |x| |x'|)^(r+1) / (r+1)! >= |K - K~|, the paper's bound for the Gaussian kernel.

    Parameters
    ----------
    norm, other_norm : float or ndarray
        |x| and |x'|.
    degree : int
        The degree r.
    gamma : float
        The bandwidth.

    Returns
    -------
    bound : float or ndarray
    """
    r = check_degree(degree)
    z = 2 * check_positive("gamma", gamma) * np.multiply(norm, other_norm)
    with np.errstate(divide="ignore", over="ignore"):
        return np.exp((r + 1) * np.log(z) - lgamma(r + 2))


def cauchy_schwarz_bound(residuals, other_residuals):
    """sqrt(res(x) res(x')) >= |K - K~|: never worse than `taylor_bound`.

    Parameters
    ----------
    residuals, other_residuals : float or ndarray
        Of the rows x and x', by `residual`.

    Returns
    -------
    bound : float or ndarray
    """
    return np.sqrt(np.multiply(residuals, other_residuals))


def theorem1_bound(residuals, *, C=1.0):
    """Theorem 1 of the paper: how much the optimal SVM objective can rise by the cut.

    With lambda = 1 / (C n) the optimum p~* of the cut kernel and p* of the Gaussian obey
    p* <= p~* <= p* + mean_i sqrt(res(x_i)) / sqrt(lambda).

    Parameters
    ----------
    residuals : ndarray of shape (n_samples,)
        Of the training rows, by `residual`.
    C : float, default=1.0
        The SVM's C.

    Returns
    -------
    bound : float
        The second summand on the right. The objective itself never exceeds 1, so a bound beyond that says nothing.
    """
    residuals = np.asarray(residuals, dtype=np.float64)
    return (
        float(np.sqrt(check_positive("C", C) * len(residuals)) * np.sqrt(residuals).mean()) if len(residuals) else 0.0
    )


def fourier_failure(epsilon, *, n_components, n_columns, radius, gamma):
    """Rahimi and Recht's Claim 1: the probability that D random Fourier features miss the Gaussian kernel by epsilon.

    Parameters
    ----------
    epsilon : float
        The largest error anywhere in the ball.
    n_components : int
        The number D of random Fourier features.
    n_columns : int
        The dimension d.
    radius : float
        The radius R of a ball that holds the data.
    gamma : float
        The bandwidth.

    Returns
    -------
    probability : float
        A bound on it: 2^8 d (R / (sigma epsilon))^2 exp(-D epsilon^2 / (4 (d + 2))), at most 1.
    """
    ratio = 2 * check_positive("gamma", gamma) * radius**2 / check_positive("epsilon", epsilon) ** 2
    return float(min(1.0, 2**8 * n_columns * ratio * np.exp(-n_components * epsilon**2 / (4 * (n_columns + 2)))))


def fourier_bound(*, n_components, n_columns, radius, gamma, delta=0.05):
    """Claim 1 the other way round: the error that D random Fourier features keep with probability 1 - delta.

    Parameters
    ----------
    n_components, n_columns, radius, gamma
        As in `fourier_failure`.
    delta : float, default=0.05
        The probability of failure.

    Returns
    -------
    epsilon : float
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1; got {delta!r}")
    # delta = a / y exp(-b y) with y = epsilon^2, so b y exp(b y) = a b / delta.
    a = 2**8 * n_columns * 2 * check_positive("gamma", gamma) * radius**2
    b = check_positive("n_components", n_components) / (4 * (n_columns + 2))
    return float(np.sqrt(lambertw(a * b / delta).real / b))


def fourier_error(values, n_components):
    """The mean |K - K~| of random Fourier features, in closed form.

    D features sqrt(2 / D) cos(<w, x> + b), as `sklearn.kernel_approximation.RBFSampler` makes them, err by a mean of D
    independent terms of variance 1 + K^4 / 2 - K^2; their mean is taken for normal, as it nearly is.

    Parameters
    ----------
    values : ndarray
        The Gaussian kernel K of some pairs of rows.
    n_components : int
        The number D of random Fourier features.

    Returns
    -------
    error : float
        The mean over the pairs; infinite when there are no features.

    Examples
    --------
    >>> from taylorkern.kernel import fourier_error
    >>> round(fourier_error([1.0, 0.5, 0.0], 1000), 4)
    0.0218
    """
    if n_components < 1:
        return float("inf")
    values = np.asarray(values, dtype=np.float64)
    return float(np.sqrt(2 / np.pi * (1 + values**4 / 2 - values**2) / n_components).mean())


class KernelError(NamedTuple):
    """|K - K~| over sampled pairs of rows; see `kernel_error`."""

    mean: float
    stderr: float
    maximum: float
    n_pairs: int


def kernel_error(X, *, degree, gamma, kernel="gaussian", normalize=False, n_pairs=100_000, random_state=None):
    """How far the cut kernel is from the exact one, on random pairs of rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    degree : int
        The degree r.
    gamma : {"scale", "auto"} or float
        The bandwidth.
    kernel : {"gaussian", "exponential"}, default="gaussian"
        The kernel; "rbf" is "gaussian".
    normalize : bool, default=False
        Whether the cut kernel is that of unit rows.
    n_pairs : int, default=100_000
        The number of pairs, drawn with replacement.
    random_state : int, RandomState or None, default=None
        Which pairs are drawn. None stands for a fixed choice: equal data give equal errors.

    Returns
    -------
    error : KernelError
        A named tuple: mean, its standard error, the maximum, n_pairs.
    """
    X = check_rows(X)
    if not isinstance(kernel, str) or canonical_kernel(kernel) not in ("gaussian", "exponential"):
        raise ValueError(f"kernel must be gaussian or exponential (the others are not cut); got {kernel!r}")
    if X.shape[0] == 0:
        raise ValueError("X has no rows to draw pairs from")
    gamma = resolve_gamma(gamma, X)
    expansion = Expansion(X.shape[1], degree=degree, gamma=gamma, kernel=kernel, normalize=normalize)
    exact_decay = 0.5 if normalize or expansion.kernel == "gaussian" else 0.0
    check_positive("n_pairs", n_pairs)
    random = fixed_random_state(random_state)
    norms = row_norms(X, squared=True).astype(np.float64) * expansion.scale**2
    total, squares, worst, done = 0.0, 0.0, 0.0, 0
    while done < n_pairs:
        n = min(n_pairs - done, 10_000)
        i, j = random.randint(X.shape[0], size=(2, n))
        z = pair_products(X, i, j) * expansion.scale**2
        exact = np.exp(z - exact_decay * (norms[i] + norms[j]))
        errors = np.abs(exact - expansion.kernel_of(z, norms[i], norms[j]))
        total += errors.sum()
        squares += (errors**2).sum()
        worst = max(worst, float(errors.max()))
        done += n
    mean = total / n_pairs
    variance = max(squares / n_pairs - mean**2, 0.0)
    return KernelError(float(mean), float(np.sqrt(variance / n_pairs)), worst, n_pairs)


def pair_products(X, i, j):
    """<x_i, x_j> for each pair."""
    if sparse.issparse(X):
        return np.asarray(X[i].multiply(X[j]).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X[i], X[j], dtype=np.float64)


# The cost model of the paper's Section 4: one operation for each nonzero Taylor feature, m for each Fourier feature.


def taylor_operations(X, degree):
    """Operations a row, on average, of the Taylor features of this degree: the mean of C(m + r, r).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    degree : int
        The degree r.

    Returns
    -------
    operations : float
    """
    rows = Rows(check_rows(X))
    r = check_degree(degree)
    counts = rows.histogram
    return sum(int(n) * comb(m + r, r) for m, n in enumerate(counts) if n) / max(rows.n_rows, 1)


def fourier_operations(X, n_components):
    """Operations a row, on average, of this many random Fourier features: D times the mean of m.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    n_components : int
        The number D of random Fourier features.

    Returns
    -------
    operations : float
    """
    return n_components * Rows(check_rows(X)).mean_nonzeros


def degree_within(X, budget):
    """The largest degree whose Taylor features take at most `budget` operations a row; 0 when not even degree 1 does.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    budget : float
        Operations a row, on average.

    Returns
    -------
    degree : int
    """
    X = check_rows(X)
    degree = 0
    while degree < MAX_DEGREE and taylor_operations(X, degree + 1) <= budget:
        degree += 1
    return degree


def components_within(X, budget):
    """The number of random Fourier features that `budget` operations a row buy.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    budget : float
        Operations a row, on average.

    Returns
    -------
    n_components : int
    """
    nonzeros = Rows(check_rows(X)).mean_nonzeros
    return int(budget / nonzeros) if nonzeros else 0


class BudgetBounds(NamedTuple):
    """Both bounds at one budget; see `bounds_at_budget`."""

    degree: int
    taylor: float
    n_components: int
    fourier: float


def bounds_at_budget(X, budget, *, gamma, delta=0.05):
    """What the theory promises for a budget of operations a row: Taylor against random Fourier features.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    budget : float
        Operations a row, on average.
    gamma : float
        The bandwidth.
    delta : float, default=0.05
        The probability with which the Fourier bound may fail. The Taylor bound holds always.

    Returns
    -------
    bounds : BudgetBounds
        A named tuple: the degree and the number of Fourier features that the budget buys, and for each the bound on
        |K - K~| in the ball that holds the data (infinite when the budget buys none).
    """
    X = check_rows(X)
    radius = float(np.sqrt(row_norms(X, squared=True).max(initial=0.0)))
    degree, n_components = degree_within(X, budget), components_within(X, budget)
    taylor = float(taylor_bound(radius, radius, degree=degree, gamma=gamma)) if degree else float("inf")
    fourier = float("inf")
    if n_components:
        fourier = fourier_bound(
            n_components=n_components, n_columns=X.shape[1], radius=radius, gamma=gamma, delta=delta
        )
    return BudgetBounds(degree, taylor, n_components, fourier)
