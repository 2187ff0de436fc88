"""weights="fitted": weights of the degrees that bring the cut kernel as close to the Gaussian as they can."""

from math import factorial

import numpy as np

from ._rows import Rows, is_csr

SAMPLE = 512  # rows, all pairs of which are looked at


def fitted_weights(expansion, shift, X, random):
    """c_0 .. c_r >= 0 of the least mean square of K - K~, over pairs of some rows (with cells: of the same cell).

    Parameters
    ----------
    expansion : Expansion
        Of the Gaussian kernel.
    shift : Shift, Cells, Rotation or None
        What is done to rows before they are expanded.
    X : ndarray or CSR
        Training rows, as `check_rows` returns them.
    random : RandomState
        It chooses the rows.

    Returns
    -------
    weights : tuple of float
    """
    some = X[np.sort(random.permutation(X.shape[0])[:SAMPLE])]
    whole = _products(Rows(some))
    norms = np.diag(whole)
    exact = np.exp(-expansion.gamma * np.maximum(norms[:, None] + norms - 2 * whole, 0.0))
    pairs = np.triu_indices(some.shape[0], 1)
    lines, targets = [], []
    for form in (Rows(some) if shift is None else shift.rows(some)).forms():
        z = expansion.scale**2 * _products(form)
        squares, beyond = (expansion.scale**2 * part for part in form.squares())
        s = np.exp(-expansion.decay * (squares + beyond))
        same = np.ones(len(pairs[0]), dtype=bool)
        if form.core.base is not None:
            same = form.core.base[pairs[0]] == form.core.base[pairs[1]]
        i, j = (part[same] for part in pairs)
        terms = (z[i, j] ** k / factorial(k) for k in range(expansion.degree + 1))
        lines.append(np.stack([s[i] * s[j] * term for term in terms], axis=1))
        targets.append(exact[i, j])
    return _nonnegative(np.concatenate(lines), np.concatenate(targets))


def _nonnegative(A, b):
    """The c >= 0 of least |A c - b|, but 1 where a column of A is too small to tell.

    By the normal equations: a few columns, whose sums do not depend on how many threads add them up.
    """
    from scipy.optimize import nnls

    weights = np.ones(A.shape[1])
    squares = np.einsum("ij,ij->j", A, A)
    told = squares > 1e-20 * max(squares.max(), 1e-100 * len(b)) if len(b) and np.isfinite(A).all() else squares < 0
    if not told.any():
        return tuple(weights.tolist())
    rest = b - np.einsum("ij->i", A[:, ~told])
    size = np.sqrt(squares[told])
    A = A[:, told] / size
    gram, right = np.einsum("ij,ik->jk", A, A), np.einsum("ij,i->j", A, rest)
    values, vectors = np.linalg.eigh(gram)
    root = np.sqrt(np.maximum(values, 0.0))
    kept = root > 1e-7 * root[-1]
    line = root[kept, None] * vectors.T[kept]
    weights[told] = np.maximum(nnls(line, (vectors.T[kept] @ right) / root[kept])[0], 0.0) / size
    return tuple(weights.tolist()) if weights.any() else (1.0,) * len(weights)


def _products(rows):
    """The inner products of all pairs of rows."""
    from scipy import sparse

    if not is_csr(rows.X):
        return np.einsum("ij,kj->ik", rows.X, rows.X, dtype=np.float64)
    core = rows.core
    X = sparse.csr_array((core.data.astype(np.float64), core.indices, core.indptr), shape=rows.X.shape)
    return (X @ X.T).toarray()
