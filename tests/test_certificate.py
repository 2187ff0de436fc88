"""The certificate tells the truth about the exact kernel: its intervals hold the optimum that an exact solver finds."""

import warnings
from dataclasses import FrozenInstanceError
from math import e, isnan, nan, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.special import gammainc, lambertw
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from taylorkern import TaylorFeatures, TaylorSVC, _core, taylor_kernel
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._train.certificate import FACTORS, THETAS, Certificate, Ends, certify, interrupted_certificate
from taylorkern._train.loop import SOLVERS, train
from taylorkern._train.loss import JOINT_LOSSES, LABEL_LOSSES, regression_loss
from taylorkern._train.problem import Problem, Record, Trained
from taylorkern.kernel import residual, theorem1_bound

LOSSES = reference.LABEL_LOSSES

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def optimum(K, y, C, loss, weight=None):
    """(lower end, upper end, alpha, margins) of min lambda/2 |w|^2 + mean loss, lambda = 1 / (C sum of weights)."""
    omega = np.ones(len(y)) if weight is None else weight
    asked = reference.Asked(loss, np.asarray(y)[:, None], omega[:, None])
    lower, upper, alpha, f = reference.optimum(asked, K, C)
    return lower[0] / omega.sum(), upper[0] / omega.sum(), alpha[:, 0], y * f[:, 0]


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def explicit_objective(model, X, y, C, loss, weight=None):
    """lambda/2 |w|^2 + mean loss of the model's weights on stored features."""
    weight = np.ones(len(y)) if weight is None else weight
    known = {"kernel": model.kernel, "coef0": model.coef0, "normalize": model._normalized}
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, **known)
    f = features.fit_transform(dense(X) - model.shift_) @ model.monomial_coef_[0]
    norm2 = (model.monomial_coef_**2).sum()
    return norm2 / (2 * C * weight.sum()) + weight @ reference.value(loss, y * f) / weight.sum()


def unit_kernel(model, X):
    """K^ of the rows as a model shifts them."""
    return taylor_kernel(X - model.shift_, degree=model.degree_, gamma=model.gamma_, normalize=True)


def labelled(n_rows=80, n_columns=3, seed=0, scale=1.0):
    random = np.random.default_rng(seed)
    X = scale * random.normal(size=(n_rows, n_columns))
    y = np.where(np.sin(3 * X[:, 0] / scale) + X[:, 1] / scale + 0.4 * random.normal(size=n_rows) > 0.3, 1, -1)
    return X, y


# Against the exact kernel.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_decision_values_are_those_of_the_exact_kernel_where_nothing_is_cut(loss, make):
    X, y = labelled(n_rows=70)
    X *= 0.5 / np.abs(X).max()
    C, gamma = 40.0, 0.4
    new = 0.6 * X[::3] + 0.4 * X[1::3][: len(X[::3])].mean(axis=0)
    assert residual(np.vstack([X, new]), degree=12, gamma=gamma).max() < 1e-12
    model = TaylorSVC(degree=12, gamma=gamma, C=C, loss=loss, shift=None, tol=1e-9, max_iter=3000, random_state=0)
    model.fit(make(X), y)
    *_, alpha, v = optimum(reference.gaussian(X, X, gamma), y, C, loss)
    expected = C * reference.gaussian(new, X, gamma) @ (alpha * y)
    assert np.ptp(expected) > 0.5  # there is something to agree on
    assert np.abs(model.decision_function(make(X)) * y - v).max() < 1e-3
    assert np.abs(model.decision_function(make(new)) - expected).max() < 1e-3


N_PROBLEMS = 210


def random_problem(seed):
    """A small problem of any kind: (parameters, X, y, weights or None)."""
    random = np.random.default_rng(seed)
    n, d = random.integers(20, 61), random.integers(1, 7)
    X = random.normal(size=(n, d)) * (random.uniform(size=(n, d)) < random.choice([0.3, 0.7, 1.0]))
    X = X * 10 ** random.uniform(-0.8, 0.3) + random.choice([0.0, 0.5]) * random.normal(size=d)
    y = np.where(X @ random.normal(size=d) + random.normal(size=n) * X.std() > X.mean(), 1, -1)
    y[:2] = -1, 1
    parameters = {
        "degree": int(random.integers(1, 6)),
        "gamma": float(10 ** random.uniform(-1.5, 0.3)),
        "C": float(10 ** random.uniform(-1.5, 1.7)),
        "loss": LOSSES[seed % 3],
        "solver": ["dual", "dual", "dual", "pegasos", "adagrad"][seed % 5],
        "shift": [None, "auto"][seed % 2],
        "normalize": bool(seed // 6 % 2),
        "tol": float(10 ** random.uniform(-6, -2)),
        "max_iter": 60,
        "random_state": seed,
    }
    weight = None
    if seed % 4 == 0:
        weight = random.uniform(0.1, 3, size=n)
    if seed % 7 == 0:
        X = sparse.csr_array(X)
    if seed % 11 == 0:
        X = X.astype(np.float32)
    return parameters, X, y, weight


@pytest.fixture(scope="module")
def outcomes():
    """(model, lower end, upper end of p*, exact margins, X, y, weights) of each random problem."""
    out = []
    for seed in range(N_PROBLEMS):
        parameters, X, y, weight = random_problem(seed)
        model = TaylorSVC(**parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight=weight)
        if model.solver == "adagrad":
            model.certify(X, y, sample_weight=weight)
        points = dense(X).astype(np.float64)
        K = reference.gaussian(points, points, parameters["gamma"])
        lower, upper, _, v = optimum(K, y, parameters["C"], parameters["loss"], weight)
        out.append((model, lower, upper, v, X, y, weight))
    return out


def rounding_of(X):
    return 1e-9 if X.dtype == np.float64 else 1e-5


def test_rigorous_interval_holds_the_exact_optimum(outcomes):
    for model, lower, upper, *_, X, _, _ in outcomes:
        low, high = model.certificate_.exact_interval
        assert 0 <= low <= upper + rounding_of(X), model
        assert high >= lower - rounding_of(X), model


def test_rigorous_interval_is_mostly_worth_something(outcomes):
    """From 0 to P(0) would hold the optimum, too."""
    ends = np.array([model.certificate_.exact_interval for model, *_ in outcomes])
    exact = np.array([lower for _, lower, *_ in outcomes])
    assert (ends[:, 0] > 0.5 * exact).mean() > 0.4
    assert (ends[:, 1] < 1.1 * exact).mean() > 0.4


def test_sampled_interval_holds_the_exact_optimum_at_its_rate_and_lies_in_the_rigorous_one(outcomes):
    held = 0
    for model, lower, upper, *_, X, _, _ in outcomes:
        certificate = model.certificate_
        low, high = certificate.sampled_interval
        held += low <= upper + rounding_of(X) and high >= lower - rounding_of(X)
        assert low >= certificate.exact_interval[0]
        assert high == certificate.exact_interval[1]
    assert held >= 0.95 * N_PROBLEMS


def test_width_of_the_interval_bounds_the_distance_of_decision_values(outcomes):
    """|f(x) - f*(x)| <= sqrt(2 width / lambda), for the f whose objective is an end of the interval."""
    for model, lower, upper, v, X, y, weight in outcomes:
        if model.normalize:
            continue
        W = len(y) if weight is None else weight.sum()
        low, high = model.certificate_.exact_interval
        width = max(high, upper) - min(low, lower)
        distance = np.abs(y * model.decision_function(X) - v).max()
        assert distance <= sqrt(2 * (width + rounding_of(X)) * model.C * W) + rounding_of(X), model


def test_certificate_is_about_the_model_at_hand(outcomes):
    for model, *_, X, y, weight in outcomes:
        expected = explicit_objective(model, X.astype(np.float64), y, model.C, model.loss, weight)
        assert model.certificate_.primal == pytest.approx(expected, rel=10 * rounding_of(X))


@given(
    X=arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 3)), elements=st.floats(-2, 2, width=32)),
    ones=st.sets(st.integers(1, 11)),
    loss=st.sampled_from(LOSSES),
    solver=st.sampled_from(["dual", "pegasos"]),
    C=st.sampled_from([0.01, 0.3, 1.0, 8.0, 100.0]),
    degree=st.integers(1, 4),
    n_epochs=st.integers(1, 4),
    as_sparse=st.booleans(),
    normalize=st.booleans(),
)
@slow
def test_primal_and_dual_enclose_the_optimum_of_the_cut_kernel_at_any_moment(
    X, ones, loss, solver, C, degree, n_epochs, as_sparse, normalize
):
    y = np.array([1 if i in ones or i == 1 else -1 for i in range(len(X))])
    y[0] = -1
    known = {"degree": degree, "gamma": 0.3, "normalize": normalize}
    model = TaylorSVC(**known, C=C, loss=loss, solver=solver, shift=None, max_iter=n_epochs, random_state=0)
    certificate = model.fit(sparse.csr_array(X) if as_sparse else X, y).certificate_
    lower, upper, *_ = optimum(taylor_kernel(X, **known), y, C, loss)
    assert certificate.dual <= upper * (1 + 1e-9) + 1e-12
    assert certificate.primal >= lower * (1 - 1e-9) - 1e-12
    assert certificate.gap >= -1e-12


# Several outputs, numbers, and losses that look at all outputs.

KINDS = [
    ("hinge", 3),
    ("log_loss", 2),
    ("squared_hinge", 2),
    ("epsilon_insensitive", 1),
    ("epsilon_insensitive", 3),
    ("squared_epsilon_insensitive", 2),
    ("squared_error", 1),
    ("crammer_singer", 2),
    ("crammer_singer", 4),
    ("multinomial", 2),
    ("multinomial", 3),
]
N_SEVERAL = 8 * len(KINDS)


class Several:
    """A small problem of several outputs, trained for a while: its certificate, and what the reference says."""

    def __init__(self, seed):
        random = np.random.default_rng(seed)
        loss, n_outputs = KINDS[seed % len(KINDS)]
        name = "squared_epsilon_insensitive" if loss == "squared_error" else loss
        epsilon = 0.0 if loss == "squared_error" else float(random.choice([0.0, 0.1, 0.5]))
        n, d = random.integers(15, 41), random.integers(1, 5)
        X = random.normal(size=(n, d)) * 10 ** random.uniform(-0.6, 0.2) + random.choice([0.0, 0.3])
        scores = X @ random.normal(size=(d, n_outputs)) + X.std() * random.normal(size=(n, n_outputs))
        y = reference.targets(name, scores)
        weight = random.uniform(0.1, 3, size=n) if seed % 3 == 0 else None
        favour = random.uniform(0.3, 2, size=n_outputs) if loss in LABEL_LOSSES and seed % 2 else None
        degree, gamma = int(random.integers(1, 6)), float(10 ** random.uniform(-1.5, 0))
        self.C, tol = float(10 ** random.uniform(-1.5, 1.3)), float(10 ** random.uniform(-6, -2))
        self.asked = reference.Asked(name, y, reference.weights(name, y, weight, favour), epsilon)
        self.W = n if weight is None else weight.sum()
        self.exact = reference.gaussian(X, X, gamma)
        self.unit = bool(seed // len(KINDS) % 2)
        self.kernel = reference.kernel_of("gaussian", degree, gamma, unit=self.unit)
        self.Phi = reference.Basis(d, degree).features(X, self.kernel)
        self.projected = reference.Basis(d, degree).features(X, self.kernel._replace(unit=False))
        self.roots = np.sqrt(np.maximum(1 - (self.projected**2).sum(axis=1), 0))
        losses = LABEL_LOSSES | JOINT_LOSSES
        the_loss = losses[loss] if loss in losses else regression_loss(loss, epsilon)
        self.expansion = Expansion(d, **self.kernel.parameters)
        rows = check_rows(sparse.csr_array(X) if seed % 4 == 0 else X)
        self.problem = Problem(rows, y, weight, self.expansion, the_loss, self.C, favour=favour)
        random_state = np.random.RandomState(seed)
        self.solver = SOLVERS["pegasos" if seed % 5 == 0 else "dual"](self.problem, random_state, tol)
        self.record = train(self.solver, tol=tol, max_iter=60).record
        trained = self.solver.trained()
        self.certificate = certify(self.problem, self.record.primal, trained, *self.solver.point(), random_state)
        self.parts = self.certificate.parts or (self.certificate,)

    def optimum(self, K):
        """(lower end, upper end) of the optimum of each problem."""
        lower, upper, *_ = reference.optimum(self.asked, K, self.C)
        return lower / self.W, upper / self.W


@pytest.fixture(scope="module")
def several():
    """(problem, lower ends, upper ends of p* of its parts), for each of them."""
    problems = [Several(seed) for seed in range(N_SEVERAL)]
    return [(each, *each.optimum(each.exact)) for each in problems]


def test_rigorous_intervals_hold_the_exact_optimum_of_each_part_and_of_the_sum(several):
    worth, held, n = [], 0, 0
    for each, lower, upper in several:
        assert len(each.parts) == len(lower)
        for part, low, high in zip(each.parts, lower, upper, strict=True):
            assert 0 <= part.exact_interval[0] <= high * (1 + 1e-9) + 1e-12, each.asked.loss
            assert part.exact_interval[1] >= low * (1 - 1e-9) - 1e-12, each.asked.loss
            worth.append([part.exact_interval[0] > 0.5 * low, part.exact_interval[1] < 1.1 * high])
            held += part.exact_interval[1] == part.primal
            n += not each.unit
        low, high = each.certificate.exact_interval
        assert low <= upper.sum() * (1 + 1e-9) + 1e-12 and high >= lower.sum() * (1 - 1e-9) - 1e-12
    assert (np.mean(worth, axis=0) > 0.4).all()  # from 0 to P(0) would hold the optimum, too
    assert n == held  # without unit rows, the model's objective is one of the exact kernel's


def test_sampled_intervals_hold_the_exact_optimum_at_their_rate(several):
    held = []
    for each, lower, upper in several:
        for part, low, high in zip(each.parts, lower, upper, strict=True):
            assert part.exact_interval[0] <= part.sampled_interval[0] <= part.sampled_interval[1]
            assert part.sampled_interval[1] == part.exact_interval[1]
            held.append(part.sampled_interval[0] <= high + 1e-12 and part.sampled_interval[1] >= low - 1e-12)
        certificate = each.certificate
        assert certificate.exact_interval[0] <= certificate.sampled_interval[0] <= certificate.sampled_interval[1]
        held.append(certificate.sampled_interval[0] <= upper.sum() + 1e-12)
    assert np.mean(held) >= 0.95


def test_theorem1_bounds_what_the_cut_costs(several):
    some = 0
    for each, lower, _ in several:
        if each.unit or not each.problem.loss.lipschitz:
            assert isnan(each.certificate.theorem1) and all(isnan(part.theorem1) for part in each.parts)
            continue
        of_cut, _ = each.optimum(each.Phi @ each.Phi.T)
        for part, exact, cut in zip(each.parts, lower, of_cut, strict=True):
            assert exact <= cut * (1 + 1e-9)
            assert cut - exact <= part.theorem1 * (1 + 1e-9) + 1e-10, each.asked.loss
            some += cut - exact > 0.01 * part.theorem1
    assert some > 5  # the bound is not just far away


def test_theorem1_is_that_of_the_formula(several):
    """B = L R mean_i omega_i sqrt(res(x_i)), where the loss changes by L at most and the optimum lies within R."""
    for each, *_ in several:
        asked, n_outputs = each.asked, each.problem.n_outputs
        omega = asked.omega[:, [of[0] for of in asked.problems]] / each.W
        at_zero = asked.losses(np.zeros(asked.y.shape)).sum(axis=0) / each.W
        steepest, squares = {
            "hinge": (1, omega.sum(axis=0)),
            "log_loss": (1, 0.2785 * omega.sum(axis=0)),
            "epsilon_insensitive": (1, at_zero),
            "crammer_singer": (sqrt(2), omega.sum(axis=0)),
            "multinomial": (sqrt(2), lambertw((n_outputs - 1) / e).real * omega.sum(axis=0)),
        }.get(asked.loss, (nan, at_zero))
        roots = each.roots if not each.unit else np.full_like(each.roots, nan)
        expected = steepest * np.sqrt(squares * each.C * each.W) * (roots @ omega)
        assert [part.theorem1 for part in each.parts] == pytest.approx(expected, rel=1e-6, abs=1e-7, nan_ok=True)


def test_certificates_of_several_outputs_are_about_the_model_at_hand(several):
    for each, *_ in several:
        w = each.expansion.to_weights(each.solver.model().copy())[:, : each.problem.n_outputs]
        norms = each.asked.per_problem((w**2).sum(axis=0))
        primal = (norms / (2 * each.C) + each.asked.losses(each.Phi @ w).sum(axis=0)) / each.W
        assert [part.primal for part in each.parts] == pytest.approx(primal, rel=1e-9)
        alpha, _ = each.solver.point()
        mean = 1.0 if each.problem.weight is None else each.W / len(alpha)
        _, dual = reference.objectives(each.asked, each.Phi @ each.Phi.T, each.C, mean * alpha)
        assert [part.dual for part in each.parts] == pytest.approx(dual / each.W, rel=1e-9, abs=1e-12)


def test_the_whole_is_the_sum_of_its_parts(several):
    for each, *_ in several:
        whole, parts = each.certificate, each.certificate.parts
        if each.problem.n_problems == 1:
            assert parts == ()
            continue
        rounding = 4 * np.finfo(np.float64).eps * whole.primal  # of a gap, however small that is
        for name, error in (("primal", 0), ("dual", 0), ("gap", rounding), ("theorem1", 0)):
            total = sum(getattr(part, name) for part in parts)
            assert getattr(whole, name) == pytest.approx(total, rel=1e-12, abs=max(error, 1e-15), nan_ok=True)
        assert whole.relative_gap == pytest.approx(whole.gap / whole.primal, rel=1e-12)
        assert whole.exact_interval == pytest.approx(np.sum([part.exact_interval for part in parts], axis=0), rel=1e-12)
        assert whole.sampled_interval[1] == whole.exact_interval[1]
        # The parts are estimated from the same draws: errors may add up, but no more than that.
        assert whole.sampled_stderr <= sum(part.sampled_stderr for part in parts) * (1 + 1e-12)
        assert whole.exact_interval[0] <= whole.sampled_interval[0] <= whole.sampled_interval[1]
        assert all(part.parts == () and part.n_underflowed == whole.n_underflowed for part in parts)


FINE = np.linspace(0, 4, 4001)


def between(points, values, x):
    """The chords through values [points, problems], at x."""
    return np.array([np.interp(x, points, column) for column in np.transpose(values)]).T


def lower_ends(each, points):
    """D(theta alpha) less theta^2 times a bound on lambda/2 |w|^2 in the exact kernel's space, by chords."""
    mean = 1.0 if each.problem.weight is None else each.W / len(each.Phi)
    alpha, theta = mean * each.solver.point()[0], np.linspace(0, 1, 50_001) ** 2
    kept = each.projected.T @ (alpha * each.asked.signs)
    squares = (kept**2).sum(axis=0) + (each.roots @ np.abs(alpha)) ** 2
    terms = between(points, [each.asked.dual_terms(p * alpha).sum(axis=0) for p in points], theta)
    return (terms - theta[:, None] ** 2 * each.C / 2 * each.asked.per_problem(squares)) / each.W


def upper_ends(each, chords=False):
    """The objectives of c w, whose margins in the exact kernel's space are those of the projected features."""
    w = each.expansion.to_weights(each.solver.model().copy())[:, : each.problem.n_outputs]
    norms = each.asked.per_problem((w**2).sum(axis=0))
    points = FACTORS if chords else FINE[::10]
    losses = between(points, [each.asked.losses(c * each.projected @ w).sum(axis=0) for c in points], FINE)
    return (FINE[:, None] ** 2 * norms / (2 * each.C) + losses) / each.W


def test_both_ends_are_those_of_the_formulas(several):
    """The best over theta from 0 to 1, and, of unit rows, over c >= 0; but for chords, which are bounds, too."""
    for each, *_ in several:
        found = np.array([part.exact_interval for part in each.parts])
        assert np.allclose(found[:, 0], lower_ends(each, THETAS).max(axis=0), rtol=1e-5, atol=1e-9)
        if each.unit:
            assert np.allclose(found[:, 1], upper_ends(each, chords=True).min(axis=0), rtol=1e-5, atol=1e-9)
            assert (found[:, 1] <= 1.05 * upper_ends(each).min(axis=0)).all()
        else:
            assert (found[:, 1] == [part.primal for part in each.parts]).all()
        assert (found[:, 0] >= lower_ends(each, [0, 1])[-1] - 1e-9).all()  # theta = 1


def test_models_of_unit_rows_are_elements_of_the_exact_kernels_space(several):
    """Their outputs are those of the projected features, but for a factor of each row from 0 to 1."""
    for each, *_ in several:
        if each.unit:
            w = each.expansion.to_weights(each.solver.model().copy())[:, : each.problem.n_outputs]
            kept = np.sqrt(1 - each.roots**2)
            assert np.allclose(each.projected @ w, kept[:, None] * (each.Phi @ w), rtol=1e-7, atol=1e-9)
            ends = Ends(each.problem, each.problem.n_rows)
            exact = ends.exact_margins(each.problem, each.solver.trained())
            assert np.allclose(exact, each.asked.margins(each.projected @ w), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("loss", "n_outputs"), [("hinge", 3), ("crammer_singer", 4)])
def test_sampled_estimates_of_several_outputs_are_unbiased_and_their_standard_errors_right(loss, n_outputs):
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 2))
    y = reference.targets(loss, np.sin(2 * X @ random.normal(size=(2, n_outputs))) + random.normal(size=n_outputs) / 4)
    kernel = reference.kernel_of("gaussian", 2, 0.7)
    the_loss = (LABEL_LOSSES | JOINT_LOSSES).get(loss) or regression_loss(loss, 0.1)
    problem = Problem(X, y, None, Expansion(2, **kernel.parameters), the_loss, 1e-3)
    asked = reference.Asked(loss, y, np.ones(y.shape), 0.1)
    alpha = asked.slopes(np.zeros(y.shape))
    beta, error = alpha * asked.signs, reference.gaussian(X, X, 0.7) - reference.kernel_matrix(X, X, kernel)
    cuts = asked.per_problem(1e-3 / (2 * 150) * np.einsum("ik,ij,jk->k", beta, error, beta))
    primal, norm2 = problem.at_zero(), np.zeros(problem.n_problems)
    trained = Trained(problem.table(), "features", problem.to_margins(np.zeros(y.shape)), norm2)
    estimates, errors = [], []
    for seed in range(120):
        whole = certify(problem, primal, trained, alpha, norm2, np.random.RandomState(seed))
        each = [*whole.parts, whole]
        errors.append([part.sampled_stderr for part in each])
        estimates.append([part.dual - part.sampled_interval[0] - 2 * part.sampled_stderr for part in each])
    spread = np.std(estimates, axis=0, ddof=1)
    expected = [*cuts[: len(whole.parts)], cuts.sum()]
    assert (np.abs(np.mean(estimates, axis=0) - expected) < 4 * spread / sqrt(120)).all()
    ratio = np.mean(errors, axis=0) / spread
    assert (ratio > 0.8).all() and (ratio < 1.25).all()


def test_certificates_of_several_outputs_print_the_sum_and_the_worst():
    part = Certificate(0.5, 0.375, 0.125, 0.25, (0.0625, 0.5), (0.3125, 0.5), 0.015625, 1.75, 0)
    worse = Certificate(0.25, 0.125, 0.125, 0.5, (0.0, 0.25), (0.0625, 0.25), 0.015625, 1.75, 0)
    whole = Certificate(0.75, 0.5, 0.25, 1 / 3, (0.0625, 0.75), (0.375, 0.75), 0.0221, 3.5, 0, (part, worse))
    lines = str(whole).splitlines()
    assert len(lines) == 7
    assert "sum of 2" in lines[0] and lines[0].endswith("0.75")
    assert "largest relative gap" in lines[2] and "0.5" in lines[2] and lines[2].endswith("(of number 1)")
    assert "nan" not in str(whole)


@pytest.mark.parametrize(("loss", "n_outputs"), [("hinge", 3), ("epsilon_insensitive", 2), ("crammer_singer", 3)])
def test_certificates_without_a_dual_point_know_the_objective_only(loss, n_outputs):
    each = Several(KINDS.index((loss, n_outputs)) if (loss, n_outputs) in KINDS else 0)
    none = each.problem, each.record.primal, each.solver.trained(), None, nan
    certificate = certify(*none, np.random.RandomState(0))
    assert isnan(certificate.dual) and isnan(certificate.gap) and isnan(certificate.relative_gap)
    assert isnan(certificate.sampled_stderr)
    assert certificate.primal == pytest.approx(each.record.primal.sum())
    assert certificate.exact_interval == certificate.sampled_interval == (0.0, certificate.primal)
    assert certificate.verdict == "uninformative"
    assert len(certificate.parts) == (0 if each.problem.n_problems == 1 else each.problem.n_problems)
    assert "nan" not in str(certificate)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_interrupted_certificates_promise_no_more_than_they_know(kind):
    each = Several(kind)
    at_zero = each.asked.losses(np.zeros(each.asked.y.shape)).sum(axis=0) / each.W
    unknown = np.full(each.problem.n_problems, nan)
    for primal, dual, high in [
        (each.record.primal, each.record.dual, each.record.primal),
        (unknown, each.record.dual, at_zero),
        (3 * at_zero, unknown, at_zero),
    ]:
        certificate = interrupted_certificate(each.problem, Record(primal, dual, 1, unknown))
        assert certificate.exact_interval == certificate.sampled_interval
        assert certificate.exact_interval == (0.0, pytest.approx(high.sum(), rel=1e-12))
        assert isnan(certificate.theorem1) and isnan(certificate.sampled_stderr)
        assert certificate.primal == pytest.approx(primal.sum(), rel=1e-12, nan_ok=True)
        for part, end in zip(certificate.parts, high, strict=False):
            assert part.exact_interval == (0.0, pytest.approx(end, rel=1e-12))


# The numbers in it.


def test_lower_end_is_attained_when_all_rests_point_the_same_way():
    """n equal rows of one class: all alphas are 1, the triangle inequality is an equality, and p* = 1 - C n / 2."""
    X, y = np.full((9, 1), 1.3), np.ones(9)
    X[0], y[0] = 0.0, -1  # a second class is needed, and takes no part
    weight = np.array([0.0] + [1.0] * 8)
    C = 0.05
    model = TaylorSVC(degree=2, gamma=0.6, normalize=False, C=C, shift=None, tol=1e-12, random_state=0)
    model.fit(X, y, sample_weight=weight)
    res = residual([[1.3]], degree=2, gamma=0.6)[0]
    assert res > 0.2
    certificate = model.certificate_
    assert certificate.dual == pytest.approx(1 - C * 8 / 2 * (1 - res), rel=1e-12)
    assert certificate.exact_interval[0] == pytest.approx(1 - C * 8 / 2, rel=1e-12)
    assert certificate.exact_interval[1] == pytest.approx(1 - C * 8 / 2 * (1 - res), rel=1e-12)
    assert certificate.sampled_interval[0] == pytest.approx(1 - C * 8 / 2, rel=1e-12)
    assert certificate.sampled_stderr == pytest.approx(0, abs=1e-12)


# So small a C that all margins stay below 1, and the alpha of each row is its weight.
SMALL = {"degree": 2, "gamma": 0.7, "normalize": False, "C": 1e-3, "tol": 1e-10}


@pytest.mark.parametrize("degree", [1, 3, 20, 170])
def test_what_is_cut_is_the_incomplete_gamma_function(degree):
    t = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 20_001), [degree + 1, 1e300]])
    for order in (np.arange(len(t)), np.random.default_rng(0).permutation(len(t)), [7000], []):
        shares = t[order]
        _core.cut_shares(shares, degree)
        assert np.allclose(shares, gammainc(degree + 1, t[order]), rtol=1e-12, atol=1e-290)


def test_degrees_that_are_not_there_are_refused():
    for degree in (0, -1, 171):
        with pytest.raises(ValueError, match=f"degree must be 1 to 170; got {degree}"):
            _core.cut_shares(np.ones(3), degree)


def true_cut(model, X, y, weight):
    """(C / (2 W)) |sum_i omega_i y_i rest(x_i)|^2, and its bound by the triangle inequality."""
    assert (y * model.decision_function(X) < 1).all()
    Z = X - model.shift_
    error = reference.gaussian(Z, Z, 0.7) - taylor_kernel(Z, degree=2, gamma=0.7)
    t, roots = weight * y, np.sqrt(residual(Z, degree=2, gamma=0.7))
    factor = model.C / (2 * weight.sum())
    return factor * t @ error @ t, factor * (weight @ roots) ** 2


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_rigorous_bound_is_that_of_the_formula(make, weighted):
    X, y = labelled(n_columns=2)
    weight = np.random.default_rng(1).uniform(0.5, 4, size=len(y)) if weighted else np.ones(len(y))
    model = TaylorSVC(**SMALL, random_state=0).fit(make(X), y, sample_weight=weight if weighted else None)
    _, bound = true_cut(model, X, y, weight)
    certificate = model.certificate_
    assert certificate.dual - certificate.exact_interval[0] == pytest.approx(bound, rel=1e-9)
    assert certificate.theorem1 == pytest.approx(sqrt(2 * bound), rel=1e-9)  # B, of which the bound is B^2 / 2


@pytest.mark.filterwarnings("ignore::taylorkern.ApproximationWarning")
def test_sampled_estimate_is_unbiased_and_its_standard_error_is_right():
    X, y = labelled(n_rows=200, n_columns=2)
    weight = np.random.default_rng(2).uniform(0.5, 4, size=200)
    model = TaylorSVC(**SMALL)
    cut, _ = true_cut(model.fit(X, y, sample_weight=weight), X, y, weight)
    estimates, errors, held = [], [], 0
    for seed in range(200):
        certificate = model.set_params(random_state=seed).fit(X, y, sample_weight=weight).certificate_
        taken = certificate.dual - certificate.sampled_interval[0]
        estimates.append(taken - 2 * certificate.sampled_stderr)
        errors.append(certificate.sampled_stderr)
        held += taken >= cut
    spread = np.std(estimates, ddof=1)
    assert abs(np.mean(estimates) - cut) < 4 * spread / sqrt(200)
    assert 0.8 < np.mean(errors) / spread < 1.25
    assert 0.94 * 200 <= held < 200  # about 97 of 100: not all of them, or the interval is too wide


def test_interval_closes_on_the_optimum_as_the_degree_rises():
    X, y = labelled(n_rows=60)
    C, gamma = 2.0, 0.3
    lower, upper, *_ = optimum(reference.gaussian(X, X, gamma), y, C, "hinge")
    widths = []
    for degree in (2, 4, 6, 8, 12, 20):
        model = TaylorSVC(degree=degree, gamma=gamma, C=C, tol=1e-7, max_iter=10_000, random_state=0).fit(X, y)
        low, high = model.certificate_.exact_interval
        assert low <= upper + 1e-12 and high >= lower - 1e-12
        widths.append(high - low)
    assert np.all(np.diff(widths) < 0)
    assert widths[-1] < 2e-7 < 1e-3 < widths[0]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_fields_follow_from_one_another(loss, normalize):
    X, y = labelled()
    model = TaylorSVC(degree=3, gamma=0.2, normalize=normalize, loss=loss, random_state=0)
    certificate = model.fit(X, y).certificate_
    assert isinstance(certificate, Certificate)
    assert certificate.gap == certificate.primal - certificate.dual
    assert certificate.relative_gap == certificate.gap / certificate.primal
    assert certificate.relative_gap <= 1e-3
    high = certificate.exact_interval[1]
    assert high == certificate.sampled_interval[1] and (high == certificate.primal or normalize)
    assert certificate.exact_interval[0] < certificate.sampled_interval[0] < high
    assert certificate.verdict in ("close", "loose", "uninformative")
    assert certificate.sampled_stderr > 0
    assert certificate.n_underflowed == 0
    with pytest.raises(FrozenInstanceError):
        certificate.primal = 0.0


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_theorem1_is_that_of_the_kernel_module(loss):
    X, y = labelled()
    model = TaylorSVC(degree=3, gamma=0.2, normalize=False, C=0.3, loss=loss, random_state=0).fit(X, y)
    expected = theorem1_bound(residual(X - model.shift_, degree=3, gamma=0.2), C=0.3)
    if loss == "log_loss":  # its optimum lies within lambda |w|^2 <= lambertW(1 / e), which is 0.2785 rounded up
        expected *= sqrt(0.2785)
    assert model.certificate_.theorem1 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("loss", "normalize"), [("squared_hinge", False), ("hinge", True)])
def test_theorem1_speaks_neither_of_squared_losses_nor_of_unit_rows(loss, normalize):
    X, y = labelled()
    model = TaylorSVC(loss=loss, normalize=normalize, random_state=0).fit(X, y)
    assert isnan(model.certificate_.theorem1) and "Theorem" not in str(model.certificate_)


def test_weights_of_theorem1_count_like_repeated_rows():
    X, y = labelled()
    shift = X.mean(axis=0)
    repeats = np.arange(len(y)) % 3
    model = TaylorSVC(degree=2, gamma=0.3, normalize=False, shift=shift, random_state=0)
    weighted = model.fit(X, y, sample_weight=repeats).certificate_.theorem1
    repeated = model.fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)).certificate_.theorem1
    assert weighted == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("kernel", ["polynomial", [0.5, 1.0, 2.0]])
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_nothing_is_cut_from_kernels_that_are_polynomials(kernel, loss):
    X, y = labelled()
    model = TaylorSVC(degree=2, kernel=kernel, gamma=0.4, coef0=0.5, loss=loss, random_state=0).fit(X, y)
    certificate = model.certificate_
    assert certificate.exact_interval == certificate.sampled_interval == (certificate.dual, certificate.primal)
    assert certificate.sampled_stderr == 0 == certificate.theorem1
    K = reference.kernel_matrix(X, X, reference.kernel_of(kernel, 2, 0.4, 0.5))
    lower, upper, *_ = optimum(K, y, 1.0, loss)
    assert certificate.dual <= upper and lower <= certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_interval_holds_the_optimum_of_the_exponential_kernel(loss, degree):
    X, y = labelled(n_rows=40)
    certificate = TaylorSVC(kernel="exponential", degree=degree, gamma=0.1, loss=loss, random_state=0).fit(X, y)
    low, high = certificate.certificate_.exact_interval
    lower, upper, *_ = optimum(np.exp(0.2 * X @ X.T), y, 1.0, loss)
    assert low <= upper and lower <= high
    assert low < certificate.certificate_.dual
    assert degree < 4 or low > 0.9 * lower


# Rows that underflow.


@pytest.mark.parametrize(("dtype", "inside", "outside"), [(np.float64, 744.0, 746.0), (np.float32, 103.0, 105.0)])
def test_rows_without_features_are_counted_and_warned_of(dtype, inside, outside):
    gamma = 0.5
    exponents = np.array([0.1, 0.2, inside, outside, 0.3, outside, 0.4])  # gamma |x|^2 of each row
    X = np.zeros((7, 2), dtype=dtype)
    X[:, 1] = np.sqrt(exponents / gamma)
    y = [0, 1, 0, 1, 1, 0, 0]
    model = TaylorSVC(degree=2, gamma=gamma, normalize=False, shift=None, random_state=0)
    with pytest.warns(RuntimeWarning, match=rf"2 of 7 rows .* is 0 in {np.dtype(dtype)}: .* smaller gamma") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.certificate_.n_underflowed == 2
    line = next(line for line in str(model.certificate_).splitlines() if "underflow" in line)
    assert line.endswith("2")
    unit = model.set_params(normalize=True).fit(X, y)
    assert unit.certificate_.n_underflowed == 0 and (unit.decision_function(X) != 0).all()
    model.set_params(normalize=False)
    with pytest.warns(RuntimeWarning, match="2 of 7"):
        model.fit(X, y)
    assert (model.decision_function(X) == 0).tolist() == [False, False, False, True, False, True, False]
    K = reference.gaussian(X.astype(float), X.astype(float), gamma)
    lower, upper, *_ = optimum(K, np.where(np.array(y) == 1, 1, -1), 1.0, "hinge")
    low, high = model.certificate_.exact_interval
    assert low <= upper + rounding_of(X) and high >= lower - rounding_of(X)


def test_no_row_underflows_once_the_data_are_shifted():
    X, y = labelled()
    far = X + 100
    model = TaylorSVC(gamma=0.5, normalize=False, random_state=0).fit(far, y)
    assert model.certificate_.n_underflowed == 0
    with pytest.warns(RuntimeWarning, match=f"{len(y)} of {len(y)} rows"):
        model.set_params(shift=None).fit(far, y)
    assert model.certificate_.n_underflowed == len(y)
    assert model.certificate_.primal == 1.0  # the loss of a model that says 0


# As text.


def test_certificate_prints_as_a_short_table():
    certificate = Certificate(0.5, 0.375, 0.125, 0.25, (0.0625, 0.5), (0.3125, 0.5), 0.015625, 1.75, 0)
    lines = str(certificate).splitlines()
    assert len(lines) == 6
    assert lines[0].split()[-1] == "0.5"
    assert "0.375" in lines[1] and "gap 0.12" in lines[1] and "relative 0.25" in lines[1]
    assert "proven" in lines[2] and lines[2].endswith("0.0625 to 0.5")
    assert "sampled" in lines[3] and "0.3125 to 0.5" in lines[3] and "standard error 0.016" in lines[3]
    assert "Theorem 1" in lines[4] and lines[4].endswith("1.75")
    assert lines[5].split(maxsplit=1) == ["verdict", "loose: training stopped early; raise max_iter, or lower C"]
    values = ["0.5", "0.375", "0.0625 to", "0.3125", "1.75", "loose"]
    starts = {line.index("  " + value) for line, value in zip(lines, values, strict=True)}
    assert len(starts) == 1  # one column
    assert max(map(len, lines)) <= 100
    assert "certify" not in str(certificate) and "underflow" not in str(certificate) and "nan" not in str(certificate)


@slow
def test_certificate_without_a_dual_point_says_how_to_get_one():
    X, y = labelled()
    model = TaylorSVC(solver="adagrad", degree=3, gamma=0.2, normalize=False, max_iter=3, random_state=0).fit(X, y)
    certificate = model.certificate_
    assert isnan(certificate.dual) and isnan(certificate.gap) and isnan(certificate.relative_gap)
    assert isnan(certificate.sampled_stderr)
    assert certificate.exact_interval == certificate.sampled_interval == (0.0, certificate.primal)
    assert certificate.theorem1 == pytest.approx(theorem1_bound(residual(X - model.shift_, degree=3, gamma=0.2)))
    assert "certify" in str(certificate) and "nan" not in str(certificate)
    assert "certify" not in str(model.certify(X, y))


# A certificate on request.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@slow
def test_certify_finds_a_dual_point_for_adagrad_and_leaves_the_model_alone(loss, make):
    X, y = labelled(n_rows=60)
    weight = np.random.default_rng(3).uniform(0, 2, size=60)
    model = TaylorSVC(solver="adagrad", gamma=0.2, C=2.0, loss=loss, class_weight="balanced", random_state=0)
    model.fit(make(X), y, sample_weight=weight)
    before, coef, n_iter = model.certificate_, model.monomial_coef_, model.n_iter_
    certificate = model.certify(make(X), y, sample_weight=weight)
    assert certificate is model.certificate_ is not before
    assert np.array_equal(model.monomial_coef_, coef) and model.n_iter_ == n_iter
    assert certificate.primal == pytest.approx(before.primal, rel=1e-12)
    balanced = len(y) / (2 * np.array([(y == -1).sum(), (y == 1).sum()]))
    total = weight * balanced[(y == 1).astype(int)]
    assert certificate.primal == pytest.approx(explicit_objective(model, X, y, 2.0, loss, total), rel=1e-10)
    lower, upper, *_ = optimum(
        unit_kernel(model, X),
        y[total > 0],
        2.0,
        loss,
        total[total > 0],
    )
    assert 0.97 * lower < certificate.dual <= upper


@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_certify_improves_the_dual_point_of_pegasos(loss):
    X, y = labelled(n_rows=60)
    model = TaylorSVC(solver="pegasos", gamma=0.2, C=2.0, loss=loss, max_iter=5, random_state=0).fit(X, y)
    before, coef = model.certificate_, model.monomial_coef_
    few = model.certify(X, y, max_iter=1)
    many = model.certify(X, y, max_iter=50)
    assert before.dual < few.dual <= many.dual
    assert before.primal == pytest.approx(many.primal, rel=1e-12)
    assert np.array_equal(model.monomial_coef_, coef)
    _, upper, *_ = optimum(unit_kernel(model, X), y, 2.0, loss)
    assert 0.99 * upper < many.dual <= upper


def test_certify_does_not_spoil_the_certificate_of_a_converged_model():
    X, y = labelled()
    model = TaylorSVC(gamma=0.2, tol=1e-6, max_iter=10_000, random_state=0).fit(X, y)
    before = model.certificate_
    after = model.certify(X, y, max_iter=1000)
    assert after.primal == pytest.approx(before.primal, rel=1e-12)
    assert after.dual == pytest.approx(before.dual, rel=2e-6)


def test_certify_after_partial_fit():
    X, y = labelled()
    model = TaylorSVC(gamma=0.2, random_state=0).partial_fit(X, y, classes=[-1, 1])
    assert not hasattr(model, "certificate_")
    certificate = model.certify(X, y)
    assert certificate.primal == pytest.approx(explicit_objective(model, X, y, 1.0, "hinge"), rel=1e-10)
    assert 0 < certificate.dual < certificate.primal


def test_certify_takes_the_precision_of_the_model():
    X, y = labelled()
    model = TaylorSVC(gamma=0.2, solver="adagrad", random_state=0).fit(X.astype(np.float32), y)
    certificate = model.certify(X, y)
    assert model.monomial_coef_.dtype == np.float32
    assert certificate.primal == pytest.approx(explicit_objective(model, X, y, 1.0, "hinge"), rel=1e-5)


def test_certify_refuses_what_the_model_was_not_trained_on():
    X, y = labelled()
    with pytest.raises(NotFittedError):
        TaylorSVC().certify(X, y)
    model = TaylorSVC(solver="adagrad", random_state=0).fit(X, y)
    before = model.certificate_
    with pytest.raises(ValueError, match="X has 2 features, but TaylorSVC is expecting 3"):
        model.certify(X[:, :2], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.certify(X, y[1:])
    with pytest.raises(ValueError, match="NaN"):
        model.certify(np.full_like(X, nan), y)
    assert model.certificate_ is before


@pytest.mark.parametrize("strange", [3, -7])
def test_certify_refuses_labels_that_are_not_among_the_classes(strange):
    X, y = labelled()
    model = TaylorSVC(solver="adagrad", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"{strange}"):
        model.certify(X, np.where(y == -1, strange, y))


@pytest.mark.parametrize("max_iter", [-1, 0, 2.5, "many", None])
def test_certify_refuses_wrong_numbers_of_epochs(max_iter):
    X, y = labelled()
    model = TaylorSVC(solver="adagrad", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"max_iter.*{max_iter}"):
        model.certify(X, y, max_iter=max_iter)
