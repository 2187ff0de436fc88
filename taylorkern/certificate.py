"""The certificate: how far a trained model can be from the exact Gaussian SVM. The proof is in docs/mathematics.md."""

from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np
from scipy.special import gammainc
from sklearn.utils.extmath import row_norms

from . import _core
from ._expansion import Expansion
from ._problem import inner

BLOCKS, BLOCK_ROWS = 32, 32  # of the sampled estimate: pairs within a block of rows, independent from block to block
STANDARD_ERRORS = 2  # by which the sampled interval reaches further: about 97 % for its one end that is estimated


@dataclass(frozen=True)
class Certificate:
    """What is known of a model's objective, lambda/2 |w|^2 + mean loss, and of the optimum p* of the exact kernel.

    It is about the training objective with the same C and gamma, and without a separate bias. It says nothing of test
    errors, and does not count rounding.

    Attributes
    ----------
    primal : float
        The objective of the model: the same for the cut and for the exact kernel.
    dual : float
        A lower bound for the optimum of the cut kernel's objective; NaN without a dual point.
    gap : float
        primal - dual.
    relative_gap : float
        gap / primal.
    exact_interval : tuple of float
        p* lies in it, proven: from dual - cut (never below 0) to primal.
    sampled_interval : tuple of float
        The same with the cut estimated from pairs of rows, plus two standard errors: much narrower, and true in at
        least about 97 of 100 cases.
    sampled_stderr : float
        The standard error of the estimate.
    theorem1 : float
        Theorem 1 of the paper, known before training: how much the cut raises the optimum at most. NaN for the squared
        hinge, of which it does not speak.
    n_underflowed : int
        Rows so far from the origin that all of their features are zero in the working precision.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    exact_interval: tuple[float, float]
    sampled_interval: tuple[float, float]
    sampled_stderr: float
    theorem1: float
    n_underflowed: int

    def __str__(self):
        lines = [("objective of this model", f"{self.primal:.6g}")]
        if isnan(self.dual):
            lines.append(("dual bound", "none: this solver makes no dual point; certify(X, y) does"))
        else:
            lines.append(("dual bound", f"{self.dual:.6g}  (gap {self.gap:.2g}, relative {self.relative_gap:.2g})"))
        low, high = self.exact_interval
        lines.append(("exact SVM's optimum, proven", f"{low:.6g} to {high:.6g}"))
        if not isnan(self.sampled_stderr):
            low, high = self.sampled_interval
            text = f"{low:.6g} to {high:.6g}  (standard error {self.sampled_stderr:.2g})"
            lines.append(("exact SVM's optimum, sampled", text))
        if not isnan(self.theorem1):
            lines.append(("Theorem 1: the cut costs at most", f"{self.theorem1:.4g}"))
        if self.n_underflowed:
            lines.append(("rows without features (underflow)", str(self.n_underflowed)))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def certify(problem, primal, alpha, norm2, random):
    """The certificate of a model with this primal objective and, when there is one, this dual point.

    Parameters
    ----------
    problem : Problem
        What was trained on.
    primal : float
        The objective of the model.
    alpha : ndarray, or None
        A feasible dual point; None: there is none.
    norm2 : float
        |w(alpha)|^2.
    random : RandomState
        Draws the pairs.

    Returns
    -------
    certificate : Certificate
    """
    residuals, n_underflowed = row_residuals(problem)
    n = problem.n_rows
    theorem1 = float("nan")
    if problem.loss.lipschitz:
        theorem1 = problem.mean(np.sqrt(residuals)) / sqrt(problem.lambda_)
    if alpha is None:
        nan = float("nan")
        return Certificate(primal, nan, nan, nan, (0.0, primal), (0.0, primal), nan, theorem1, n_underflowed)
    dual = problem.dual(alpha, norm2)
    per_sum = problem.C / (2 * n)  # of |sum_i alpha_i y_i Pperp phi(x_i)|^2
    cut = per_sum * inner(alpha, np.sqrt(residuals)) ** 2
    estimate, stderr = _sampled_sum(problem, alpha, residuals, random)
    sampled = min(max(per_sum * (estimate + STANDARD_ERRORS * stderr), 0.0), cut)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=primal - dual,
        relative_gap=(primal - dual) / primal if primal > 0 else 0.0,
        exact_interval=(max(dual - cut, 0.0), primal),
        sampled_interval=(max(dual - sampled, 0.0), primal),
        sampled_stderr=per_sum * stderr,
        theorem1=theorem1,
        n_underflowed=n_underflowed,
    )


def interrupted_certificate(problem, record):
    """What is known without another pass over the rows: the objective where it was computed, and P(0) >= p*."""
    nan, ceiling = float("nan"), float(problem.loss.value(0.0))
    if record.primal <= ceiling:
        ceiling = record.primal
    gap = record.primal - record.dual
    return Certificate(
        record.primal, record.dual, gap, gap / record.primal, (0.0, ceiling), (0.0, ceiling), nan, nan, 0
    )


def row_residuals(problem):
    """(|Pperp phi(x)|^2 of each row, how many rows have no features left)."""
    expansion = problem.expansion
    t = expansion.scale**2 * row_norms(problem.rows.X, squared=True).astype(np.float64)
    if expansion.kernel == "gaussian":
        gone = np.exp(-expansion.decay * t).astype(problem.dtype) == 0
        return np.where(gone, 1.0, gammainc(expansion.degree + 1, t)), int(gone.sum())
    if expansion.kernel == "exponential":
        with np.errstate(over="ignore"):
            return gammainc(expansion.degree + 1, t) * np.exp(t), 0
    return np.zeros(problem.n_rows), 0


def _sampled_sum(problem, alpha, residuals, random):
    """An unbiased estimate of |sum_i alpha_i y_i Pperp phi(x_i)|^2, and its standard error.

    Rows are drawn with probabilities proportional to alpha, in independent blocks; the mean over the pairs of different
    draws in a block is unbiased.
    """
    total = float(alpha.sum())
    if total <= 0 or not residuals.any():
        return 0.0, 0.0
    cumulated = np.cumsum(alpha)
    drawn = np.searchsorted(cumulated, random.uniform(0, cumulated[-1], BLOCKS * BLOCK_ROWS), side="right")
    drawn = np.minimum(drawn, problem.n_rows - 1).astype(np.int32)
    means = np.empty(BLOCKS)
    different = ~np.eye(BLOCK_ROWS, dtype=bool)
    for k, (rows, z) in enumerate(_products(problem, drawn)):
        y = problem.y[rows].astype(np.float64)
        means[k] = (_cut(problem.expansion, z, residuals[rows]) * y * y[:, None])[different].mean()
    means *= total**2
    return float(means.mean()), float(means.std(ddof=1) / sqrt(BLOCKS))


def _products(problem, drawn):
    """(rows, their inner products) for each block of rows."""
    expansion = problem.expansion
    # The kernel whose series is its argument, z itself.
    linear = Expansion(expansion.n_columns, degree=1, gamma=expansion.scale**2, kernel=(0.0, 1.0)).features
    rows = problem.rows.twin()
    rows.set_order(drawn)
    scratch = np.zeros(_core.gram_scratch_bytes(rows, BLOCK_ROWS), dtype=np.uint8)
    for first in range(0, len(drawn), BLOCK_ROWS):
        z = np.empty((BLOCK_ROWS, BLOCK_ROWS))
        _core.gram(rows, linear, first, first + BLOCK_ROWS, z, scratch)
        yield drawn[first : first + BLOCK_ROWS], z


def _cut(expansion, z, residuals):
    """K - K~ of all pairs of rows with these inner products."""
    norms = np.diag(z)
    exponent = -expansion.decay * (norms[:, None] + norms)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(z + exponent)
        cut = expansion.series(z) * np.exp(exponent)
    gone = residuals >= 1  # they have no features
    cut[gone] = 0
    cut[:, gone] = 0
    return exact - cut
