"""Whether a fitted model shows that much of its kernel was cut: the warning that says so, and what would help.

Some training rows are predicted by the exact kernel, each from the rows that are nearest to it, without itself and its
duplicates. Where that comes out better than the model, which was trained on these rows, an exact model would do much
better on others.
"""

from math import ceil

import numpy as np
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from .._data.rows import is_csr
from .._train.certificate import residuals_in_forms

# The mean share that is cut, from which on it is looked at, and from which on hardly anything of the kernel is left.
# Rows that are predicted, from so many others each, among so many. What their mean score has to be better by; where
# that is less, by which share of what is missing; by how much at least: enough where hardly anything is left; and by
# how many standard errors.
CUT, NEARLY_ALL = 0.25, 0.95
PREDICTED, NEAREST, AMONG = 400, 100, 20_000
DUPLICATE = 1e-12  # less than 1, a kernel value of rows that are taken for the same
NUMBERS, DENSE = 2**18, 2**20  # that are held at once: of rows, and of kernel values; and of rows with their zeros
BETTER, OF_ERRORS, LEAST, ERRORS = 0.03, 0.5, 0.01, 2
FEWEST = 100  # of fewer rows, scores tell little
ROWS_OF_CELL, MOST_CELLS = 50, 1024


class ApproximationWarning(UserWarning):
    """Much of the Gaussian kernel was cut, and the model is the worse for it."""


def warning_of(problem, margins):
    """The text of the warning that a trained model deserves, or None.

    Parameters
    ----------
    problem : Problem
        What was trained on; its `given` are the rows as they came.
    margins : ndarray of shape (n_rows, K)
        Those of all rows.
    """
    expansion = problem.expansion
    if expansion.kernel != "gaussian" or not expansion.is_cut or problem.n_rows < FEWEST:
        return None
    cut = float(np.mean([residuals for residuals, _ in residuals_in_forms(problem)]))
    if cut <= CUT:
        return None
    among = min(AMONG, int(NUMBERS / max(problem.rows.mean_nonzeros, 1)))
    step = max(-(-problem.n_rows // among), 1)
    n_some = -(-problem.n_rows // step)
    judged = np.linspace(0, n_some - 1, min(PREDICTED, n_some)).astype(np.int64)
    rows = judged * step
    weight = _row_weights(problem)[rows]
    ours = _scores(problem, rows, weight, problem.to_outputs(margins[rows], rows))
    if np.average(ours, weights=weight) > 1 - LEAST:
        return None
    exact = _exact_outputs(problem, slice(None, None, step), judged)
    each = np.array([_scores(problem, rows, weight, exact), ours])
    scores, more = np.average(each, axis=1, weights=weight), each[0] - each[1]
    better = scores[0] - scores[1]
    least = LEAST if cut > NEARLY_ALL else max(LEAST, min(BETTER, OF_ERRORS * (1 - scores[1])))
    if better < max(least, ERRORS * more.std() / len(more) ** 0.5):
        return None
    what = "R2" if not problem.of_labels else "accuracy"
    return (
        f"degree={expansion.degree} is low for gamma={expansion.gamma:.4g}: of the rows' norm {100 * cut:.0f} % is cut "
        f"on average, and on training rows this model has {what} {scores[1]:.3f} where the exact kernel has "
        f"{scores[0]:.3f}, each row predicted from its neighbours. {_remedy(problem)}"
    )


def _exact_outputs(problem, some, judged):
    """The outputs of kernel ridge regressions with the exact kernel, one for each judged row, on its neighbours."""
    X = problem.given[some].astype(np.float64, copy=False)
    if is_csr(X) and X.shape[0] * X.shape[1] <= DENSE:
        X = X.toarray()
    if not is_csr(X):
        X = X - X.mean(axis=0)  # so that distances are not lost in what all rows have in common
    gamma, targets = problem.expansion.gamma, problem.y[some].astype(np.float64)
    if not problem.of_labels:
        targets -= targets.mean(axis=0)
    n_forms = sum(1 for _ in problem.rows.forms())  # by which C was divided
    ridge = 1 / (2 * n_forms * problem.C * _row_weights(problem)[some])
    norms = row_norms(X, squared=True)
    n, step = min(NEAREST, X.shape[0] - 1), max(NUMBERS // (4 * max(X.shape[0], NEAREST**2)), 1)
    outputs = np.empty((len(judged), problem.n_outputs))
    for first in range(0, len(judged), step):
        part = judged[first : first + step]
        values = _gaussian(X[part], X, norms[part], norms, gamma)
        values[values >= 1 - DUPLICATE] = 0.0
        near = np.argpartition(-values, n - 1, axis=1)[:, :n]
        K = _kernels_of(X, near, norms, gamma)
        K[:, np.arange(n), np.arange(n)] += ridge[near]
        alpha = np.linalg.solve(K, targets[near])
        outputs[first : first + step] = np.einsum("in,ink->ik", np.take_along_axis(values, near, axis=1), alpha)
    return outputs if problem.of_labels else outputs + problem.y[some].mean(axis=0)


def _kernels_of(X, some, norms, gamma):
    """The exact kernel within each line of some rows: [lines, n, n]."""
    if is_csr(X):
        return np.array([_gaussian(X[line], X[line], norms[line], norms[line], gamma) for line in some])
    lines = X[some]
    squares = norms[some]
    distances = squares[:, :, None] + squares[:, None] - 2 * (lines @ lines.transpose(0, 2, 1))
    return np.exp(-gamma * np.maximum(distances, 0.0))


def _gaussian(X, Y, norms, other_norms, gamma):
    products = np.asarray(safe_sparse_dot(X, Y.T, dense_output=True))
    return np.exp(-gamma * np.maximum(norms[:, None] + other_norms - 2 * products, 0.0))


def _row_weights(problem):
    """One for each row: of an output for each class, that of the row's own class."""
    omega = problem.omega()
    return omega[np.arange(len(omega)), problem.y.argmax(axis=1)] if omega.shape[1] > 1 else omega[:, 0]


def _scores(problem, rows, weight, f):
    """What each of some rows with these outputs adds to the mean that is the accuracy, or R2."""
    y = problem.y[rows]
    if not problem.of_labels:
        around = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, axis=0, weights=weight)
        return np.mean(1 - (f - y) ** 2 / np.where(around > 0, around, 1.0), axis=1)
    one_class = problem.n_outputs > 1 and ((y > 0).sum(axis=1) == 1).all()
    return 1.0 * (f.argmax(axis=1) == y.argmax(axis=1)) if one_class else ((f > 0) == (y > 0)).mean(axis=1)


def _remedy(problem):
    """The setting that would help: cells in which rows are near enough to their centre, axes, or a smaller gamma."""
    expansion, rows = problem.expansion, problem.rows
    squares, beyond = (float(expansion.scale**2 * part.mean()) for part in (rows.squares()[0], rows.beyond))
    if rows.cells is None and beyond > squares:
        return f"n_axes={2 * expansion.n_columns} would come closer to it"
    factor = 2 * (squares + beyond) / (expansion.degree + 1)
    now = 1 if rows.cells is None else len(rows.cells.bases[0])
    wanted = now * 2 ** ceil(np.log2(max(factor ** min(max(rows.mean_nonzeros, 1) / 2, 4), 2)))
    cells = min(wanted, MOST_CELLS, problem.n_rows // ROWS_OF_CELL)
    if cells > now:
        return f"n_cells={cells} would come closer to it"
    return f"A smaller gamma, such as {expansion.gamma / max(factor, 2):.2g}, would lose less"
