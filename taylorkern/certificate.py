"""The certificate: how far a trained model can be from the exact Gaussian SVM. The proof is in docs/mathematics.md."""

from dataclasses import dataclass, replace
from math import isnan, sqrt

import numpy as np

from . import _core
from ._expansion import Expansion
from ._rows import Rows, is_csr

BLOCKS, BLOCK_ROWS = 32, 32  # of the sampled estimate: pairs within a block of rows, independent from block to block
PAIRS = 2**15  # that are looked at together
NAN = float("nan")
STANDARD_ERRORS = 2  # by which the sampled interval reaches further: about 95 % for its one end that is estimated


@dataclass(frozen=True)
class Certificate:
    """What is known of a model's objective, lambda/2 |w|^2 + mean loss, and of the optimum p* of the exact kernel.

    It is about the training objective with the same C and gamma, and without a separate bias. It says nothing of test
    errors, and does not count rounding. With cells (`n_cells`), the exact kernel is the Gaussian one between rows of
    one cell and 0 between others, or the mean of such kernels: nothing is said of the Gaussian kernel across cells.

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
        The same with the cut estimated from pairs of rows, plus two standard errors: much narrower, and true in about
        95 of 100 cases; on a few hundred rows in somewhat fewer, about 92.
    sampled_stderr : float
        The standard error of the estimate.
    theorem1 : float
        Theorem 1 of the paper, known before training: how much the cut raises the optimum at most. NaN for squared
        losses, of which it does not speak.
    n_underflowed : int
        Rows so far from the origin that all of their features are zero in the working precision.
    parts : tuple of Certificate
        With several outputs that are trained each by itself (classes one against the rest, labels, targets): the
        certificate of each. All figures above are then about the sum of their objectives. Else empty.
    cells : tuple of Certificate
        With `n_cells` and `n_partitions=1`: the certificate of each cell, whose rows and weights make up a problem by
        themselves, lambda/2 |w_c|^2 + 1/n times the losses of its rows, summed over outputs. Objectives, gaps and both
        ends of `exact_interval` add up to those above. What is sampled is NaN, and so is `theorem1`. Several partitions
        share their rows: then, and without cells, it is empty.
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
    parts: "tuple[Certificate, ...]" = ()
    cells: "tuple[Certificate, ...]" = ()

    def __str__(self):
        lines = [("objective of this model", f"{self.primal:.6g}")]
        if self.parts:
            lines = [(f"objective of this model, sum of {len(self.parts)}", f"{self.primal:.6g}")]
        if isnan(self.dual):
            lines.append(("dual bound", "none: this solver makes no dual point; certify(X, y) does"))
        else:
            lines.append(("dual bound", f"{self.dual:.6g}  (gap {self.gap:.2g}, relative {self.relative_gap:.2g})"))
            if self.parts:
                worst = max(range(len(self.parts)), key=lambda k: self.parts[k].relative_gap)
                lines.append(("largest relative gap", f"{self.parts[worst].relative_gap:.2g}  (of number {worst})"))
            if self.cells:
                worst = max(range(len(self.cells)), key=lambda c: self.cells[c].gap)
                gap, relative = self.cells[worst].gap, self.cells[worst].relative_gap
                lines.append(
                    (
                        f"largest gap of {len(self.cells)} cells",
                        f"{gap:.2g}, relative {relative:.2g}  (of number {worst})",
                    )
                )
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


def certify(problem, primal, alpha, norm2, random, in_cells=None):
    """The certificate of a model with these primal objectives and, when there is one, this dual point.

    Parameters
    ----------
    problem : Problem
        What was trained on.
    primal : ndarray
        The objective of the model, for each problem.
    alpha : ndarray of shape (n_rows, K), or None
        A feasible dual point; None: there is none.
    norm2 : ndarray
        |w(alpha)|^2, for each problem.
    random : RandomState
        Draws the pairs.
    in_cells : tuple, default=None
        For rows that are divided into cells once: (all margins, |w|^2 of each cell) of the model, and of w(alpha).

    Returns
    -------
    certificate : Certificate
        Of the sum of the objectives, with one for each of them in `parts` when there are several.
    """
    forms = [residuals_of(problem, form) for form in problem.rows.forms()]
    roots = [np.sqrt(residuals) for residuals, _ in forms]
    n_underflowed = int(np.all([gone for _, gone in forms], axis=0).sum())
    theorem1 = np.full(problem.n_problems, NAN)
    if problem.loss.lipschitz:
        sums = sums_in_cells(problem, problem.omega(), roots)
        theorem1[:] = problem.loss.lipschitz * np.sqrt((sums**2).sum(axis=0)) / problem.n_rows * problem.radius()
    if alpha is None:
        unknown = np.full(problem.n_problems, NAN)
        whole = in_one(primal, unknown, unknown, unknown, unknown, unknown, NAN, theorem1, n_underflowed)
        cells, _ = _of_cells(problem, in_cells, None, None, forms)
        return replace(whole, cells=cells)
    dual = problem.dual(alpha, norm2)
    per_sum = problem.C / (2 * problem.n_rows)  # of |sum_i alpha_i y_i Pperp phi(x_i)|^2
    cuts = per_sum * sums_in_cells(problem, np.abs(alpha), roots) ** 2
    if problem.loss.joint:
        cuts = cuts.sum(axis=1, keepdims=True)
    cut = cuts.sum(axis=0)
    cells, low = _of_cells(problem, in_cells, alpha, cuts, forms)
    if not cells:
        low = np.maximum(dual - cut, 0.0)
    estimate, stderr, of_sum = _sampled_sums(problem, alpha, forms, random)
    estimate, stderr, of_sum = per_sum * estimate, per_sum * stderr, per_sum * of_sum
    whole = in_one(primal, dual, low, cut, estimate, stderr, of_sum, theorem1, n_underflowed)
    return replace(whole, cells=cells)


def in_one(primal, dual, low, cut, estimate, stderr, stderr_of_sum, theorem1, n_underflowed):
    """One certificate for the sum, with one for each problem in it when there are several."""
    columns = np.stack([primal, dual, low, cut, estimate, stderr, theorem1], axis=1)
    parts = [_certificate(numbers, n_underflowed) for numbers in columns]
    if len(parts) == 1:
        return parts[0]
    sums = columns.sum(axis=0)
    sums[5] = stderr_of_sum
    return replace(_certificate(sums, n_underflowed), parts=tuple(parts))


def _certificate(numbers, n_underflowed):
    primal, dual, low, cut, estimate, stderr, theorem1 = (float(number) for number in numbers)
    if isnan(dual):
        return Certificate(primal, NAN, NAN, NAN, (0.0, primal), (0.0, primal), NAN, theorem1, n_underflowed)
    sampled_low = low
    if not isnan(stderr):
        sampled_low = max(dual - min(max(estimate + STANDARD_ERRORS * stderr, 0.0), cut), low)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=primal - dual,
        relative_gap=(primal - dual) / primal if primal > 0 else 0.0,
        exact_interval=(low, primal),
        sampled_interval=(sampled_low, primal),
        sampled_stderr=stderr,
        theorem1=theorem1,
        n_underflowed=n_underflowed,
    )


def _of_cells(problem, in_cells, alpha, cuts, forms):
    """(a certificate for each cell, the sums of their low ends for each problem); for several partitions none."""
    if not problem.cells:
        return (), None
    (margins, norms), point = in_cells
    cells, lows, ((_, gone),) = [], np.zeros(problem.n_problems), forms
    for c, which in enumerate(problem.cells):
        primal = float(np.sum(problem.lambda_ / 2 * norms[c] + problem.terms(margins, which=which)[0]))
        dual, low = NAN, 0.0
        if alpha is not None:
            duals = problem.terms(alpha, alpha, which)[1] - problem.lambda_ / 2 * point[1][c]
            ends = np.maximum(duals - cuts[c], 0.0)
            lows += ends
            dual, low = float(duals.sum()), float(ends.sum())
        gap = primal - dual
        relative = gap / primal if primal > 0 else gap
        n_gone = int(gone[which].sum())
        cells.append(Certificate(primal, dual, gap, relative, (low, primal), (NAN, NAN), NAN, NAN, n_gone))
    return tuple(cells), lows


def sums_in_cells(problem, weights, roots):
    """sum_i weights_ik |Pperp phi(x_i)| over the rows of each cell, of all partitions: [cells, K].

    `roots` holds |Pperp phi(x_i)| in each form of the rows.
    """
    cells = problem.rows.cells
    if cells is None:
        return np.einsum("ik,i->k", weights, roots[0])[None]
    sums = []
    for form, bases, root in zip(problem.rows.forms(), cells.bases, roots, strict=True):
        number = np.searchsorted(bases, form.core.base)
        sums.append([np.bincount(number, column * root, len(bases)) for column in weights.T])
    return np.concatenate([np.transpose(of_form) for of_form in sums])


def interrupted_certificate(problem, record):
    """What is known without another pass over the rows: the objective where it was computed, and P(0) >= p*."""
    parts = []
    for primal, dual, ceiling in zip(record.primal, record.dual, problem.at_zero(), strict=True):
        parts.append(_interrupted(float(primal), float(dual), float(primal if primal <= ceiling else ceiling)))
    if len(parts) == 1:
        return parts[0]
    high = sum(part.exact_interval[1] for part in parts)
    whole = _interrupted(float(record.primal.sum()), float(record.dual.sum()), high)
    return replace(whole, parts=tuple(parts))


def _interrupted(primal, dual, high):
    gap = primal - dual
    return Certificate(primal, dual, gap, gap / primal if primal != 0 else 0.0, (0.0, high), (0.0, high), NAN, NAN, 0)


def residuals_of(problem, form):
    """(|Pperp phi(x)|^2 of each row in one form of it, whether it has no features left)."""
    expansion, gone = problem.expansion, np.zeros(problem.n_rows, dtype=bool)
    beyond = form.core.beyond

    def to_residuals(t, rows):
        t *= expansion.scale**2
        more = 0.0 if beyond is None else expansion.scale**2 * beyond[rows]
        if expansion.kernel == "gaussian":
            gone[rows] = _gone(expansion, t + more, problem.dtype)
        if expansion.weights is not None or expansion.kernel not in ("gaussian", "exponential"):
            t[:] = 0.0  # a kernel of its own, of which nothing is cut
        elif expansion.kernel == "exponential":
            with np.errstate(over="ignore"):
                whole = np.exp(t)
                _core.cut_shares(t, expansion.degree)
                t *= whole
        else:
            # 1 - exp(-more) gammaincc(r + 1, t): monomials of the columns that were left out are cut, too.
            _core.cut_shares(t, expansion.degree)
            if beyond is not None:
                t *= np.exp(-more)
                t -= np.expm1(-more)
            t[gone[rows]] = 1.0

    return form.squares(to_residuals, problem.n_jobs)[0], gone


def _gone(expansion, squares, dtype):
    """Whether a row of such a scaled squared norm has no features left: s(x) is 0 in this type."""
    gone = expansion.decay * squares > 100  # before that, it is not in any type
    gone[gone] = np.exp(-expansion.decay * squares[gone]).astype(dtype) == 0
    return gone


def _sampled_sums(problem, alpha, forms, random):
    """Unbiased estimates of |sum_i alpha_ik y_ik Pperp phi(x_i)|^2, for each problem.

    Returns them, their standard errors, and the standard error of their sum. Rows are drawn with probabilities
    proportional to the norms of their alphas, in independent blocks; the mean over the pairs of different draws in a
    block is unbiased. All are NaN where rows have columns that their cells have not: only their norms are known.
    """
    if problem.whole is None and any(form.beyond.any() for form in problem.rows.forms()):
        unknown = np.full(problem.n_problems, NAN)
        return unknown, unknown, NAN
    none = np.zeros(problem.n_problems), np.zeros(problem.n_problems), 0.0
    if not any(residuals.any() for residuals, _ in forms):
        return none
    size, total, drawn = draw(alpha, random)
    return none if total <= 0 else of_drawn(problem, alpha, size, total, forms, drawn)


def draw(alpha, random):
    """(|alpha_i| of each row, their sum, rows that are drawn with probabilities proportional to them)."""
    size = np.sqrt(np.einsum("ik,ik->i", alpha, alpha))
    cumulated = np.cumsum(size)
    total = cumulated[-1]
    if total <= 0:
        return size, total, np.empty(0, dtype=np.int64)
    block_rows = BLOCK_ROWS if alpha.shape[1] == 1 else 2 * BLOCK_ROWS
    drawn = np.searchsorted(cumulated, random.uniform(0, total, BLOCKS * block_rows), side="right")
    return size, total, np.minimum(drawn, len(size) - 1)


def of_drawn(problem, alpha, size, total, forms, drawn):
    """The estimates of `_sampled_sums` from rows of a problem that were drawn."""
    rows = drawn.astype(np.int32).reshape(BLOCKS, -1)
    n, at_once = rows.shape[1], max(1, PAIRS // rows.shape[1] ** 2)
    parts = [_products_of_sums(problem, alpha, size, forms, rows[b : b + at_once]) for b in range(0, BLOCKS, at_once)]
    means = np.concatenate(parts) * (total**2 / (n * (n - 1)))
    return means.mean(axis=0), *(values.std(axis=0, ddof=1) / sqrt(BLOCKS) for values in (means, means.sum(axis=1)))


def _products_of_sums(problem, alpha, size, forms, rows):
    """What the pairs in each block (each line) of rows add up to, for each problem."""
    pairs = zip(problem.rows.forms(), forms, strict=True)
    cut = sum(_cuts(problem, form, residuals, rows) for form, (residuals, _) in pairs)
    cut[:, np.eye(rows.shape[1], dtype=bool)] = 0
    signed = alpha[rows] / size[rows, None]
    if problem.signs is not None:
        signed *= problem.signs[rows]
    products = np.einsum("bik,bik->bk", signed, cut @ signed)
    return products.sum(axis=1, keepdims=True) if problem.loss.joint else products


def _cuts(problem, form, residuals, rows):
    """K - K~ of all pairs in each block (each line) of rows, in one form of them."""
    expansion = problem.expansion
    z = whole = _products(form, expansion, rows)
    if problem.whole is not None:
        whole = np.stack([_whole_products(problem.whole[some], expansion) for some in rows])
    cut = _cut(expansion, z, expansion.scale**2 * form.beyond[rows], whole, residuals[rows])
    if form.core.base is not None:
        base = form.core.base[rows]
        cut[base[:, :, None] != base[:, None]] = 0
    return cut


def _products(form, expansion, rows):
    """The inner products of all pairs in each block of rows."""
    # The kernel whose series is its argument, z itself.
    linear = Expansion(form.n_columns, degree=1, gamma=expansion.scale**2, kernel=(0.0, 1.0)).features
    n_blocks, n = rows.shape
    twin = form.twin(alone=True)
    twin.set_order(rows.ravel())
    scratch = np.zeros(_core.gram_scratch_bytes(twin, n), dtype=np.uint8)
    z = np.empty((n_blocks, n, n))
    for block in range(n_blocks):
        _core.gram(twin, linear, block * n, (block + 1) * n, z[block], scratch)
    return z


def _whole_products(X, expansion):
    """The inner products of rows of which not all is walked, about some origin."""
    # They may be far from theirs: only in double precision, and about one of them, is what they differ by not lost.
    X = X.astype(np.float64)
    rows = Rows(X if is_csr(X) else X - X[0])
    return _products(rows, expansion, np.arange(rows.n_rows, dtype=np.int32)[None])[0]


def _cut(expansion, z, beyond, whole, residuals):
    """K - K~ of all pairs in blocks of rows with these inner products, of what is walked and of the whole rows."""
    norms, whole_norms = (np.diagonal(products, axis1=1, axis2=2) for products in (z, whole))
    norms = norms + beyond
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(whole - expansion.decay * (whole_norms[:, :, None] + whole_norms[:, None]))
        cut = expansion.series(z) * np.exp(-expansion.decay * (norms[:, :, None] + norms[:, None]))
    gone = residuals >= 1  # they have no features
    cut[gone] = 0
    cut.swapaxes(1, 2)[gone] = 0
    return exact - cut
