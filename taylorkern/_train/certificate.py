"""The certificate: how far a trained model can be from the exact Gaussian SVM. The proof is in docs/mathematics.md."""

from dataclasses import dataclass, replace
from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._data.expansion import Expansion
from .._data.rows import Rows, dot_rows, is_csr
from .loss import radius2
from .problem import squared_norms

BLOCKS, BLOCK_ROWS = 32, 32  # of the sampled estimate: pairs within a block of rows, independent from block to block
PAIRS = 2**15  # that are looked at together
NAN = float("nan")
STANDARD_ERRORS = 2  # by which the sampled interval reaches further: about 95 % for its one end that is estimated
# Where the dual objective of theta alpha and the losses of c w are computed. Between them the former is concave and the
# latter convex: chords are bounds, too.
THETAS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
FACTORS = np.array([0.0, 0.5, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0])
CLOSE, LOOSE = 0.1, 0.75  # relative widths of an interval, up to which it is called so


@dataclass(frozen=True)
class Certificate:
    """What is known of a model's objective, lambda/2 |w|^2 + mean loss, and of the optimum p* of the exact kernel.

    It is about the training objective with the same C and gamma, and without a separate bias. It says nothing of test
    errors, and does not count rounding. With unit rows (`normalize=True`) the model's objective is that of its own
    kernel; the ends of the intervals are those of an element of the exact kernel's space that says the same class for
    every row, and the same times a factor from 0 to 1 for every value (with `n_partitions` > 1: nearly so). With cells
    (`n_cells`), the exact kernel is the Gaussian one between rows of one cell and 0 between others, or the mean of such
    kernels: nothing is said of the Gaussian kernel across cells.

    Attributes
    ----------
    primal : float
        The objective of the model; without unit rows the same for the cut and for the exact kernel.
    dual : float
        A lower bound for the optimum of the cut kernel's objective; NaN without a dual point.
    gap : float
        primal - dual.
    relative_gap : float
        gap / primal.
    exact_interval : tuple of float
        p* lies in it, proven.
    sampled_interval : tuple of float
        The same with the cut estimated from pairs of rows, plus two standard errors: much narrower, and true in about
        95 of 100 cases; on a few hundred rows in somewhat fewer, about 92.
    sampled_stderr : float
        The standard error of the estimate.
    theorem1 : float
        Theorem 1 of the paper, known before training: how much the cut raises the optimum at most. NaN for squared
        losses and for unit rows, of which it does not speak.
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

    @property
    def verdict(self):
        """What the intervals are worth: "close" (the width is at most a tenth), "loose", or "uninformative"."""
        low, high = self.exact_interval if isnan(self.sampled_stderr) else self.sampled_interval
        width = (high - low) / high if high > 0 else 0.0
        return "close" if width <= CLOSE else "loose" if width <= LOOSE else "uninformative"

    def _advice(self):
        """What would narrow the intervals."""
        if isnan(self.dual):
            return ": certify(X, y) makes a dual point"
        if self.relative_gap > CLOSE:
            return ": training stopped early; raise max_iter, or lower C"
        return ": much was cut; a higher degree, n_cells or a smaller gamma"

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
        lines.append(("verdict", self.verdict + (self._advice() if self.verdict != "close" else "")))
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def certify(problem, primal, trained, alpha, norm2, random, in_cells=None):
    """The certificate of a model with these primal objectives and, when there is one, this dual point.

    Parameters
    ----------
    problem : Problem
        What was trained on.
    primal : ndarray
        The objective of the model, for each problem.
    trained : Trained
        The model.
    alpha : ndarray of shape (n_rows, K), or None
        A feasible dual point; None: there is none.
    norm2 : ndarray
        |w(alpha)|^2 for each problem.
    random : RandomState
        Draws the pairs.
    in_cells : tuple, default=None
        For rows that are divided into cells once: |w|^2 of each cell, [cells, problems], of the model and of w(alpha).

    Returns
    -------
    certificate : Certificate
        Of the sum of the objectives, with one for each of them in `parts` when there are several.
    """
    ends = Ends(problem, problem.n_rows)
    margins = ends.exact_margins(problem, trained)
    ends.add(problem, [margins], alpha)
    dual = np.full(problem.n_problems, NAN) if alpha is None else problem.dual(alpha, norm2)
    sampled = None if alpha is None else sampled_sums(problem, alpha, random)
    bounds = ends.bounds(primal, trained.norm2, norm2, sampled)
    if not problem.cells:
        return in_one(primal, dual, bounds, ends.theorem1(), ends.n_underflowed)
    cells, bounds = _of_cells(problem, trained, margins, alpha, in_cells, ends, bounds)
    return replace(in_one(primal, dual, bounds, ends.theorem1(), ends.n_underflowed), cells=cells)


class Bounds(NamedTuple):
    """What is known of the exact optimum, for each problem."""

    low: np.ndarray
    high: np.ndarray
    sampled_low: np.ndarray
    stderr: np.ndarray
    sampled_low_of_sum: float
    stderr_of_sum: float
    factor: np.ndarray
    """`high` is the objective of this times w in the exact kernel's space."""
    theta: np.ndarray
    """`low` is the dual objective of this times alpha."""

    def over(self, unit):
        """In another unit of objectives."""
        low, high, sampled_low, stderr = (part / unit for part in self[:4])
        return Bounds(low, high, sampled_low, stderr, self[4] / unit, self[5] / unit, self.factor, self.theta)


class Ends:
    """What both ends of the proven interval are made of, added up over chunks of rows; docs/mathematics.md, section 6.

    Parameters
    ----------
    problem : Problem
        Of the first chunk: for all that does not depend on the rows.
    n_rows : int
        All rows.
    """

    def __init__(self, problem, n_rows):
        self.problem, self.n_rows, self.half = problem, n_rows, 1 / (2 * problem.C * n_rows)
        expansion, n_problems = problem.expansion, problem.n_problems
        # Whether a model of unit rows is another element of the exact kernel's space than it is of its own.
        self.projected = expansion.projected() if expansion.normalize and expansion.is_cut else None
        # P w(alpha), the part of the exact kernel's w(alpha) that has features; without unit rows it is w(alpha).
        self.kept = None if self.projected is None else problem.table()
        self.dual_terms: Any = 0.0  # [THETAS, problems]
        self.losses: Any = 0.0  # [candidates, FACTORS, problems]
        self.cut: Any = 0.0  # [cells, K]: sums of |alpha_i| |Pperp psi(x_i)|
        self.roots: Any = 0.0  # the same of the weights
        self.zero, self.weight = np.zeros(n_problems), np.zeros(n_problems)
        self.n_underflowed = 0

    def exact_margins(self, problem, trained, by=1.0):
        """The margins of some rows under the element of the exact kernel's space that a model is.

        The model is `by` times the tables; its margins are known.
        """
        if self.projected is None:
            return trained.margins
        if problem.rows.next is None:
            ((residuals, _),) = residuals_in_forms(problem)
            return problem.scaled(trained.margins, np.sqrt(1 - residuals)[:, None])
        walked, rows = getattr(self.projected, trained.walked), problem.rows.without_factors()
        f = dot_rows(rows, self.projected, walked, trained.table, problem.n_jobs)[:, : problem.n_outputs]
        return problem.to_margins(by * f.astype(np.float64))

    def add(self, problem, margins, alpha):
        """A chunk: its problem, the exact margins of its rows for each candidate, and their dual point or None."""
        share = problem.n_rows / self.n_rows
        forms = residuals_in_forms(problem)
        roots = [np.sqrt(residuals) for residuals, _ in forms]
        self.n_underflowed += int(np.all([gone for _, gone in forms], axis=0).sum())
        self.roots = self.roots + sums_in_cells(problem, problem.omega(), roots) / self.n_rows
        self.zero += problem.at_zero() * share
        self.weight += problem.mean(np.ones(problem.n_rows)) * share
        if self.projected is not None:
            losses = [[problem.terms(problem.scaled(v, factor))[0] for factor in FACTORS] for v in margins]
            self.losses = self.losses + np.array(losses) * share
        if alpha is None:
            return
        self.dual_terms = self.dual_terms + share * np.array([problem.terms(alpha, p * alpha)[1] for p in THETAS])
        self.cut = self.cut + sums_in_cells(problem, np.abs(alpha), roots)
        if self.projected is not None:
            problem.add(self.kept, alpha, self.projected.features, problem.rows.without_factors())

    def bounds(self, primal, model_norm2, norm2, sampled, best=0):
        """Of a model with this |w|^2 and, when there are sampled sums, a dual point with this |w(alpha)|^2.

        `best` is the number of the candidate for each problem.
        """
        problem, half = self.problem, self.half
        high, factor = np.array(primal, dtype=np.float64), np.ones(problem.n_problems)
        if self.projected is not None:
            losses = np.take_along_axis(self.losses, np.broadcast_to(best, (1, 1, problem.n_problems)), axis=0)[0]
            high, factor = _extreme(FACTORS, losses, half * model_norm2, -1)
        zero, unknown = np.zeros(problem.n_problems), np.full(problem.n_problems, NAN)
        if sampled is None:
            return Bounds(zero, high, zero, unknown, 0.0, NAN, factor, zero)
        if self.kept is not None:
            kept2 = half * problem.per_problem(squared_norms(self.kept)[: problem.n_outputs])
        else:
            kept2 = half * norm2
        most = kept2 + self.cuts().sum(axis=0)
        low, theta = _extreme(THETAS, self.dual_terms, most, 1)
        estimate, stderr, of_sum = (problem.C / (2 * self.n_rows) * part for part in sampled)
        if np.isnan(estimate).any():
            return Bounds(low, high, low, unknown, float(low.sum()), NAN, factor, theta)
        ends = []
        for errors in (STANDARD_ERRORS, 0):
            guess = np.clip(kept2 + estimate + errors * stderr, kept2, most)
            ends.append(np.maximum(_extreme(THETAS, self.dual_terms, guess, 1)[0], low))
        of_all = max(float(ends[1].sum() - STANDARD_ERRORS * of_sum), float(low.sum()))
        return Bounds(low, high, ends[0], stderr, of_all, float(of_sum), factor, theta)

    def cuts(self):
        """A bound on lambda/2 |(I - P) w(alpha)|^2, [cells, problems]."""
        cuts = self.problem.C / (2 * self.n_rows) * self.cut**2
        return cuts.sum(axis=1, keepdims=True) if self.problem.loss.joint else cuts

    def theorem1(self):
        """For each problem; NaN where it does not speak."""
        problem = self.problem
        if not problem.loss.lipschitz or self.projected is not None:
            return np.full(problem.n_problems, NAN)
        known = radius2(problem.loss, problem.n_outputs)
        radius = np.sqrt((self.zero if known is None else known * self.weight) / (2 * self.half))
        return problem.loss.lipschitz * np.sqrt((self.roots**2).sum(axis=0)) * radius


def _extreme(points, values, half, sign):
    """(the best of the chords through values [points, problems] less, or plus, half x^2; where it is).

    With sign 1 the largest of chord - half x^2; with -1 the least of chord + half x^2.
    """
    left, right = points[:-1, None], points[1:, None]
    slope = np.diff(values, axis=0) / (right - left)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        x = np.clip(np.nan_to_num(sign * slope / (2 * half), nan=0.0), left, right)
    ends = values[:-1] + slope * (x - left) - sign * half * x**2
    best = np.argmax(sign * ends, axis=0)
    return tuple(np.take_along_axis(part, best[None], axis=0)[0] for part in (ends, x))


def in_one(primal, dual, bounds, theorem1, n_underflowed):
    """One certificate for the sum, with one for each problem in it when there are several."""
    columns = np.stack([primal, dual, bounds.low, bounds.high, bounds.sampled_low, bounds.stderr, theorem1], axis=1)
    parts = [_certificate(numbers, n_underflowed) for numbers in columns]
    if len(parts) == 1:
        return parts[0]
    sums = columns.sum(axis=0)
    sums[4], sums[5] = bounds.sampled_low_of_sum, bounds.stderr_of_sum
    return replace(_certificate(sums, n_underflowed), parts=tuple(parts))


def _certificate(numbers, n_underflowed):
    primal, dual, low, high, sampled_low, stderr, theorem1 = (float(number) for number in numbers)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=primal - dual,
        relative_gap=(primal - dual) / primal if primal > 0 else primal - dual,
        exact_interval=(low, high),
        sampled_interval=(sampled_low, high),
        sampled_stderr=stderr,
        theorem1=theorem1,
        n_underflowed=n_underflowed,
    )


def _of_cells(problem, trained, margins, alpha, in_cells, ends, bounds):
    """(a certificate for each cell, the bounds that their ends add up to); `margins` are the exact ones."""
    model, point = in_cells
    kept, ((_, gone),) = point, residuals_in_forms(problem)
    cuts: Any = ends.cuts() if alpha is not None else None
    if alpha is not None and ends.kept is not None:
        kept = problem.weight_norms_in_cells(ends.kept)
    cells, lows, highs = [], np.zeros(problem.n_problems), np.zeros(problem.n_problems)
    of_high = problem.scaled(margins, bounds.factor)
    for c, which in enumerate(problem.cells):
        primal = ends.half * model[c] + problem.terms(trained.margins, which=which)[0]
        high, dual, low = primal, np.full_like(primal, NAN), np.zeros_like(primal)
        if ends.projected is not None:
            high = ends.half * model[c] * bounds.factor**2 + problem.terms(of_high, which=which)[0]
        if alpha is not None:
            dual = problem.terms(alpha, alpha, which)[1] - ends.half * point[c]
            terms = problem.terms(alpha, bounds.theta * alpha, which)[1]
            low = np.maximum(terms - bounds.theta**2 * (ends.half * kept[c] + cuts[c]), 0.0)
        lows += low
        highs += high
        numbers = *(part.sum() for part in (primal, dual, low, high)), NAN, NAN, NAN
        cell = _certificate(numbers, int(gone[which].sum()))
        cells.append(replace(cell, sampled_interval=(NAN, NAN)))
    sampled_low = np.maximum(bounds.sampled_low, lows)
    of_sum = max(bounds.sampled_low_of_sum, float(lows.sum()))
    return tuple(cells), bounds._replace(low=lows, high=highs, sampled_low=sampled_low, sampled_low_of_sum=of_sum)


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
    projected = problem.expansion.normalize and problem.expansion.is_cut  # then the model's objective is no upper end
    for primal, dual, ceiling in zip(record.primal, record.dual, problem.at_zero(), strict=True):
        high = ceiling if projected or not primal <= ceiling else primal
        parts.append(_interrupted(float(primal), float(dual), float(high)))
    if len(parts) == 1:
        return parts[0]
    high = sum(part.exact_interval[1] for part in parts)
    whole = _interrupted(float(record.primal.sum()), float(record.dual.sum()), high)
    return replace(whole, parts=tuple(parts))


def _interrupted(primal, dual, high):
    gap = primal - dual
    return Certificate(primal, dual, gap, gap / primal if primal != 0 else 0.0, (0.0, high), (0.0, high), NAN, NAN, 0)


def residuals_in_forms(problem):
    """What `residuals_of` says of each form of a problem's rows, computed once."""
    if problem.residuals is None:
        problem.residuals = [residuals_of(problem, form) for form in problem.rows.forms()]
    return problem.residuals


def residuals_of(problem, form):
    """(|Pperp phi(x)|^2 of each row in one form of it, whether it has no features left)."""
    expansion, gone = problem.expansion, np.zeros(problem.n_rows, dtype=bool)
    beyond = form.core.beyond

    def to_residuals(t, rows):
        t *= expansion.scale**2
        more = 0.0 if beyond is None else expansion.scale**2 * beyond[rows]
        if expansion.decay:
            gone[rows] = _gone(expansion, t + more, problem.dtype)
        if not expansion.is_cut:
            t[:] = 0.0
        elif expansion.kernel == "exponential" and not expansion.normalize:
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


def sampled_sums(problem, alpha, random):
    """Unbiased estimates of |sum_i alpha_ik y_ik Pperp psi(x_i)|^2, for each problem.

    Returns them, their standard errors, and the standard error of their sum. Rows are drawn with probabilities
    proportional to the norms of their alphas, in independent blocks; the mean over the pairs of different draws in a
    block is unbiased. All are NaN where rows have columns that their cells have not: only their norms are known.
    """
    if problem.whole is None and any(form.beyond.any() for form in problem.rows.forms()):
        unknown = np.full(problem.n_problems, NAN)
        return unknown, unknown, NAN
    none = np.zeros(problem.n_problems), np.zeros(problem.n_problems), 0.0
    if not any(residuals.any() for residuals, _ in residuals_in_forms(problem)):
        return none
    size, total, drawn = draw(alpha, random)
    return none if total <= 0 else of_drawn(problem, alpha, size, total, drawn)


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


def of_drawn(problem, alpha, size, total, drawn):
    """The estimates of `sampled_sums` from rows of a problem that were drawn."""
    rows = drawn.astype(np.int32).reshape(BLOCKS, -1)
    n, at_once = rows.shape[1], max(1, PAIRS // rows.shape[1] ** 2)
    parts = [_products_of_sums(problem, alpha, size, rows[b : b + at_once]) for b in range(0, BLOCKS, at_once)]
    means = np.concatenate(parts) * (total**2 / (n * (n - 1)))
    return means.mean(axis=0), *(values.std(axis=0, ddof=1) / sqrt(BLOCKS) for values in (means, means.sum(axis=1)))


def _products_of_sums(problem, alpha, size, rows):
    """What the pairs in each block (each line) of rows add up to, for each problem."""
    pairs = zip(problem.rows.forms(), residuals_in_forms(problem), strict=True)
    cut = sum(_cuts(problem, form, residuals, rows) for form, (residuals, _) in pairs)
    cut[:, np.eye(rows.shape[1], dtype=bool)] = 0
    signed = alpha[rows] / size[rows, None]
    if problem.signs is not None:
        signed *= problem.signs[rows]
    products = np.einsum("bik,bik->bk", signed, cut @ signed)
    return products.sum(axis=1, keepdims=True) if problem.loss.joint else products


def _cuts(problem, form, residuals, rows):
    """K - K~ of all pairs in each block (each line) of rows, in one form of them; not of unit rows."""
    expansion = problem.expansion.projected() if problem.expansion.normalize else problem.expansion
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
    t, norms = (np.diagonal(products, axis1=1, axis2=2) for products in (z, whole))
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(whole - expansion.decay * (norms[:, :, None] + norms[:, None]))
    cut = expansion.kernel_of(z, t[:, :, None], t[:, None], beyond[:, :, None], beyond[:, None])
    gone = residuals >= 1  # they have no features
    cut[gone] = 0
    cut.swapaxes(1, 2)[gone] = 0
    return exact - cut
