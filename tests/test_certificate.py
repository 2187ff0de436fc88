"""The certificate tells the truth about the exact kernel: its intervals hold the optimum that an exact solver finds."""

import warnings
from dataclasses import FrozenInstanceError
from math import inf, isnan, nan, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from taylorkern import TaylorFeatures, TaylorSVC, taylor_kernel
from taylorkern.certificate import Certificate
from taylorkern.kernel import residual, theorem1_bound

LOSSES = {
    "hinge": lambda v: np.maximum(0, 1 - v),
    "squared_hinge": lambda v: np.maximum(0, 1 - v) ** 2,
    "log_loss": lambda v: np.logaddexp(0, -v),
}
DUALS = {
    "hinge": lambda p: p,
    "squared_hinge": lambda p: p - p**2 / 4,
    "log_loss": lambda p: entr(p) + entr(1 - p),
}

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# An exact solver: no bias, any kernel matrix, a relative gap of 1e-10.


def optimum(K, y, C, loss, weight=None):
    """(lower end, upper end, alpha, margins) of min lambda/2 |w|^2 + mean loss, with lambda = 1 / (C sum of weights).

    The dual, times the sum of the weights, is  max  sum_i omega_i g(alpha_i / omega_i) - alpha' Q alpha / 2  with
    Q_ij = C y_i y_j K_ij; by an interior point method, or by Newton's for the log loss, which is its own barrier.
    """
    omega = np.ones(len(y)) if weight is None else weight
    Q = C * K * np.outer(y, y)
    for alpha in (_newton if loss == "log_loss" else _interior)(Q, omega, loss):
        v = Q @ alpha
        lower = (omega @ DUALS[loss](alpha / omega) - alpha @ v / 2) / omega.sum()
        upper = (omega @ LOSSES[loss](v) + alpha @ v / 2) / omega.sum()
        if upper - lower <= 1e-10 * upper:
            return lower, upper, alpha, v
    raise AssertionError(f"the exact solver stopped at a gap of {upper - lower}")


def _interior(Q, omega, loss):
    """Alphas of a primal-dual path following method; z and u are the multipliers of 0 <= alpha <= top."""
    top = omega if loss == "hinge" else 1e3 * omega  # which no alpha reaches
    H = Q if loss == "hinge" else Q + np.diag(1 / (2 * omega))
    alpha, z, u = omega / 2, np.ones(len(omega)), np.ones(len(omega))
    for _ in range(200):
        room = top - alpha
        mu = 0.1 * (alpha @ z + room @ u) / (2 * len(omega))
        step = np.linalg.solve(H + np.diag(z / alpha + u / room), 1 - H @ alpha + mu / alpha - mu / room)
        step_z, step_u = mu / alpha - z - z / alpha * step, mu / room - u + u / room * step
        pairs = ((alpha, step), (room, -step), (z, step_z), (u, step_u))
        t = min(1.0, 0.995 * min(_reach(x, dx) for x, dx in pairs))
        alpha, z, u = alpha + t * step, z + t * step_z, u + t * step_u
        yield alpha


def _newton(Q, omega, loss):
    """Alphas of Newton's method on the dual of the log loss, inside 0 < alpha < omega."""
    alpha = omega / 2

    def value(alpha):
        return omega @ DUALS[loss](alpha / omega) - alpha @ Q @ alpha / 2

    for _ in range(200):
        p = alpha / omega
        slope = np.log((1 - p) / p) - Q @ alpha
        step = np.linalg.solve(Q + np.diag(1 / (omega * p * (1 - p))), slope)
        t = min(1.0, 0.99 * min(_reach(alpha, step), _reach(omega - alpha, -step)))
        while value(alpha + t * step) < value(alpha) and t > 1e-12:
            t /= 2
        alpha = alpha + t * step
        yield alpha


def _reach(x, step):
    """How often the step can be made before an x becomes negative."""
    falls = step < 0
    return np.min(-x[falls] / step[falls], initial=inf)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def explicit_objective(model, X, y, C, loss, weight=None):
    """lambda/2 |w|^2 + mean loss of the model's weights on stored features."""
    weight = np.ones(len(y)) if weight is None else weight
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, kernel=model.kernel, coef0=model.coef0)
    f = features.fit_transform(dense(X) - model.shift_) @ model.coef_[0]
    norm2 = (model.coef_**2).sum()
    return norm2 / (2 * C * weight.sum()) + weight @ LOSSES[loss](y * f) / weight.sum()


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
        "loss": list(LOSSES)[seed % 3],
        "solver": ["dual", "dual", "dual", "pegasos", "adagrad"][seed % 5],
        "shift": [None, "auto"][seed % 2],
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
    """|f(x) - f*(x)| <= sqrt(2 width / lambda)."""
    for model, lower, upper, v, X, y, weight in outcomes:
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
    loss=st.sampled_from(list(LOSSES)),
    solver=st.sampled_from(["dual", "pegasos"]),
    C=st.sampled_from([0.01, 0.3, 1.0, 8.0, 100.0]),
    degree=st.integers(1, 4),
    n_epochs=st.integers(1, 4),
    as_sparse=st.booleans(),
)
@slow
def test_primal_and_dual_enclose_the_optimum_of_the_cut_kernel_at_any_moment(
    X, ones, loss, solver, C, degree, n_epochs, as_sparse
):
    y = np.array([1 if i in ones or i == 1 else -1 for i in range(len(X))])
    y[0] = -1
    model = TaylorSVC(
        degree=degree, gamma=0.3, C=C, loss=loss, solver=solver, shift=None, max_iter=n_epochs, random_state=0
    )
    certificate = model.fit(sparse.csr_array(X) if as_sparse else X, y).certificate_
    lower, upper, *_ = optimum(taylor_kernel(X, degree=degree, gamma=0.3), y, C, loss)
    assert certificate.dual <= upper * (1 + 1e-9) + 1e-12
    assert certificate.primal >= lower * (1 - 1e-9) - 1e-12
    assert certificate.gap >= -1e-12


# The numbers in it.


def test_lower_end_is_attained_when_all_rests_point_the_same_way():
    """n equal rows of one class: all alphas are 1, the triangle inequality is an equality, and p* = 1 - C n / 2."""
    X, y = np.full((9, 1), 1.3), np.ones(9)
    X[0], y[0] = 0.0, -1  # a second class is needed, and takes no part
    weight = np.array([0.0] + [1.0] * 8)
    C = 0.05
    model = TaylorSVC(degree=2, gamma=0.6, C=C, shift=None, tol=1e-12, random_state=0).fit(X, y, sample_weight=weight)
    res = residual([[1.3]], degree=2, gamma=0.6)[0]
    assert res > 0.2
    certificate = model.certificate_
    assert certificate.dual == pytest.approx(1 - C * 8 / 2 * (1 - res), rel=1e-12)
    assert certificate.exact_interval[0] == pytest.approx(1 - C * 8 / 2, rel=1e-12)
    assert certificate.exact_interval[1] == pytest.approx(1 - C * 8 / 2 * (1 - res), rel=1e-12)
    assert certificate.sampled_interval[0] == pytest.approx(1 - C * 8 / 2, rel=1e-12)
    assert certificate.sampled_stderr == pytest.approx(0, abs=1e-12)


# So small a C that all margins stay below 1, and the alpha of each row is its weight.
SMALL = {"degree": 2, "gamma": 0.7, "C": 1e-3, "tol": 1e-10}


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


@pytest.mark.parametrize("loss", LOSSES)
def test_fields_follow_from_one_another(loss):
    X, y = labelled()
    certificate = TaylorSVC(gamma=0.2, loss=loss, random_state=0).fit(X, y).certificate_
    assert isinstance(certificate, Certificate)
    assert certificate.gap == certificate.primal - certificate.dual
    assert certificate.relative_gap == certificate.gap / certificate.primal
    assert certificate.relative_gap <= 1e-3
    assert certificate.exact_interval[1] == certificate.sampled_interval[1] == certificate.primal
    assert certificate.exact_interval[0] < certificate.sampled_interval[0] < certificate.dual
    assert certificate.sampled_stderr > 0
    assert certificate.n_underflowed == 0
    with pytest.raises(FrozenInstanceError):
        certificate.primal = 0.0


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_theorem1_is_that_of_the_kernel_module(loss):
    X, y = labelled()
    model = TaylorSVC(degree=3, gamma=0.2, C=0.3, loss=loss, random_state=0).fit(X, y)
    expected = theorem1_bound(residual(X - model.shift_, degree=3, gamma=0.2), C=0.3)
    assert model.certificate_.theorem1 == pytest.approx(expected, rel=1e-12)


def test_theorem1_does_not_speak_of_the_squared_hinge():
    X, y = labelled()
    assert isnan(TaylorSVC(loss="squared_hinge", random_state=0).fit(X, y).certificate_.theorem1)


def test_weights_of_theorem1_count_like_repeated_rows():
    X, y = labelled()
    shift = X.mean(axis=0)
    repeats = np.arange(len(y)) % 3
    model = TaylorSVC(degree=2, gamma=0.3, shift=shift, random_state=0)
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
    model = TaylorSVC(degree=2, gamma=gamma, shift=None, random_state=0)
    with pytest.warns(RuntimeWarning, match=rf"2 of 7 rows .* is 0 in {np.dtype(dtype)}: .* smaller gamma") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.certificate_.n_underflowed == 2
    assert "2" in str(model.certificate_).splitlines()[-1] and "underflow" in str(model.certificate_).splitlines()[-1]
    assert (model.decision_function(X) == 0).tolist() == [False, False, False, True, False, True, False]
    K = reference.gaussian(X.astype(float), X.astype(float), gamma)
    lower, upper, *_ = optimum(K, np.where(np.array(y) == 1, 1, -1), 1.0, "hinge")
    low, high = model.certificate_.exact_interval
    assert low <= upper + rounding_of(X) and high >= lower - rounding_of(X)


def test_no_row_underflows_once_the_data_are_shifted():
    X, y = labelled()
    far = X + 100
    model = TaylorSVC(gamma=0.5, random_state=0).fit(far, y)
    assert model.certificate_.n_underflowed == 0
    with pytest.warns(RuntimeWarning, match=f"{len(y)} of {len(y)} rows"):
        model.set_params(shift=None).fit(far, y)
    assert model.certificate_.n_underflowed == len(y)
    assert model.certificate_.primal == 1.0  # the loss of a model that says 0


# As text.


def test_certificate_prints_as_a_short_table():
    certificate = Certificate(0.5, 0.375, 0.125, 0.25, (0.0625, 0.5), (0.3125, 0.5), 0.015625, 1.75, 0)
    lines = str(certificate).splitlines()
    assert len(lines) == 5
    assert lines[0].split()[-1] == "0.5"
    assert "0.375" in lines[1] and "gap 0.12" in lines[1] and "relative 0.25" in lines[1]
    assert "proven" in lines[2] and lines[2].endswith("0.0625 to 0.5")
    assert "sampled" in lines[3] and "0.3125 to 0.5" in lines[3] and "standard error 0.016" in lines[3]
    assert "Theorem 1" in lines[4] and lines[4].endswith("1.75")
    values = ["0.5", "0.375", "0.0625 to", "0.3125", "1.75"]
    starts = {line.index("  " + value) for line, value in zip(lines, values, strict=True)}
    assert len(starts) == 1  # one column
    assert max(map(len, lines)) <= 100
    assert "certify" not in str(certificate) and "underflow" not in str(certificate) and "nan" not in str(certificate)


@slow
def test_certificate_without_a_dual_point_says_how_to_get_one():
    X, y = labelled()
    model = TaylorSVC(solver="adagrad", gamma=0.2, max_iter=3, random_state=0).fit(X, y)
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
    before, coef, n_iter = model.certificate_, model.coef_, model.n_iter_
    certificate = model.certify(make(X), y, sample_weight=weight)
    assert certificate is model.certificate_ is not before
    assert np.array_equal(model.coef_, coef) and model.n_iter_ == n_iter
    assert certificate.primal == pytest.approx(before.primal, rel=1e-12)
    balanced = len(y) / (2 * np.array([(y == -1).sum(), (y == 1).sum()]))
    total = weight * balanced[(y == 1).astype(int)]
    assert certificate.primal == pytest.approx(explicit_objective(model, X, y, 2.0, loss, total), rel=1e-10)
    lower, upper, *_ = optimum(
        taylor_kernel(X - model.shift_, degree=3, gamma=0.2), y[total > 0], 2.0, loss, total[total > 0]
    )
    assert 0.97 * lower < certificate.dual <= upper


@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_certify_improves_the_dual_point_of_pegasos(loss):
    X, y = labelled(n_rows=60)
    model = TaylorSVC(solver="pegasos", gamma=0.2, C=2.0, loss=loss, max_iter=5, random_state=0).fit(X, y)
    before, coef = model.certificate_, model.coef_
    few = model.certify(X, y, max_iter=1)
    many = model.certify(X, y, max_iter=50)
    assert before.dual < few.dual <= many.dual
    assert before.primal == pytest.approx(many.primal, rel=1e-12)
    assert np.array_equal(model.coef_, coef)
    _, upper, *_ = optimum(taylor_kernel(X - model.shift_, degree=3, gamma=0.2), y, 2.0, loss)
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
    assert model.coef_.dtype == np.float32
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
