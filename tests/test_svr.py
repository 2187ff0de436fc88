"""TaylorSVR finds the optimum of scikit-learn's regressions on stored features, and keeps their contract."""

import pickle
import re
import sys
import warnings
from math import comb, inf, nan

import numpy as np
import pytest
import reference
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from taylorkern import TaylorFeatures, TaylorSVR
from taylorkern._data import rows as _rows

LOSSES = {
    "epsilon_insensitive": lambda e, epsilon: np.maximum(0, np.abs(e) - epsilon),
    "squared_epsilon_insensitive": lambda e, epsilon: np.maximum(0, np.abs(e) - epsilon) ** 2,
    "squared_error": lambda e, epsilon: e**2,
}
SOLVERS = ("dual", "pegasos", "adagrad")

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def not_exact(estimator):
    reason = (
        "weights are equivalent to repeated rows only to the accuracy of the gap, since rows are visited in another "
        "order, and the shift differs (see below for the equivalence); SVR and LinearSVR fail this check too"
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


@parametrize_with_checks(
    [
        *(
            TaylorSVR(loss=loss, solver=solver, max_iter=50 if solver == "pegasos" else 1000)
            for loss in LOSSES
            for solver in SOLVERS
        ),
        TaylorSVR(center=False, warm_start=True),
    ],
    expected_failed_checks=not_exact,
)
@slow
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


# Two test sets; the targets have a mean that is not 0.


def dense_data(n_rows=201, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)) + np.array([0.5, -1.0, 0.0, 2.0])
    y = 3 + np.sin(2 * X[:, 0]) + (X[:, 1] + 1) * X[:, 2] + 0.2 * random.normal(size=n_rows)
    return X, y


def sparse_data(n_rows=253, seed=0):
    """CSR rows: columns of 0 and 1, one of them mostly 1, and two of other numbers."""
    random = np.random.default_rng(seed)
    X = (random.uniform(size=(n_rows, 9)) < [0.1, 0.3, 0.9, 0.2, 0.4, 0.05, 0.3, 0.3, 0.2]).astype(float)
    X[:, 7:] *= random.normal(size=(n_rows, 2))
    y = X[:, 1] + X[:, 2] * X[:, 4] - X[:, 3] + X[:, 7] + 0.2 * random.normal(size=n_rows)
    return sparse.csr_array(X), y


DATA = {"dense": dense_data, "sparse": sparse_data}
SETTINGS = {
    "dense": {"degree": 3, "gamma": 0.15, "C": 2.0, "epsilon": 0.1, "random_state": 0},
    "sparse": {"degree": 2, "gamma": 0.2, "C": 1.0, "epsilon": 0.05, "random_state": 0},
}


def three_targets(data, n_rows=150, seed=0):
    X, y = DATA[data](n_rows, seed)
    x = as_array(X)
    return X, np.column_stack([y, 10 + 5 * x[:, 1] * x[:, 2], -0.1 * np.cos(x[:, 0])])


def as_array(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def stored_features(model, X):
    unit = model.kernel == "gaussian" if model.normalize == "auto" else model.normalize
    kernel = {"kernel": model.kernel, "coef0": model.coef0, "normalize": unit}
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, **kernel)
    return as_array(features.fit_transform(as_array(X).astype(np.float64) - model.shift_))


def objective(w, Phi, y, C, loss, epsilon, weight=None):
    """lambda/2 |w|^2 + mean loss, lambda = 1 / (C sum of weights)."""
    weight, w = np.ones(len(y)) if weight is None else weight, np.asarray(w, dtype=np.float64)
    return (w @ w / (2 * C) + weight @ LOSSES[loss](Phi @ w - y, epsilon)) / weight.sum()


def optimal_weights(Phi, y, C, loss, epsilon, weight=None):
    """What scikit-learn's solvers find."""
    if loss == "squared_error":
        return Ridge(alpha=1 / (2 * C), fit_intercept=False, solver="cholesky").fit(Phi, y, sample_weight=weight).coef_
    linear = LinearSVR(C=C, epsilon=epsilon, loss=loss, dual=True, fit_intercept=False, random_state=0)
    linear.set_params(tol=1e-10, max_iter=1_000_000)
    return linear.fit(Phi, y, sample_weight=weight).coef_


def true_objective(model, X, y, weight=None):
    """Of the model's own weights, for the targets that it was trained on: the centred ones."""
    Phi = stored_features(model, X)
    return objective(model.monomial_coef_, Phi, y - model.offset_, model.C, model.loss, model.epsilon, weight)


def best_objective(model, X, y, weight=None):
    Phi, y = stored_features(model, X), y - model.offset_
    w = optimal_weights(Phi, y, model.C, model.loss, model.epsilon, weight)
    return objective(w, Phi, y, model.C, model.loss, model.epsilon, weight)


def sample_weight(n_rows):
    random = np.random.default_rng(7)
    return random.uniform(0.5, 1.5, size=n_rows) * (random.uniform(size=n_rows) < 0.8)


# The optimum.


@pytest.mark.parametrize(("weighted", "normalize"), [(False, "auto"), (True, "auto"), (True, False)])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_dual_objective_and_weights_equal_those_of_scikit_learn(data, loss, center, weighted, normalize):
    X, y = DATA[data]()
    weight = sample_weight(len(y)) if weighted else None
    model = TaylorSVR(**SETTINGS[data], loss=loss, center=center, normalize=normalize, tol=1e-5, max_iter=10_000)
    model.fit(X, y, sample_weight=weight)
    found = true_objective(model, X, y, weight)
    Phi, centred = stored_features(model, X), y - model.offset_
    w = optimal_weights(Phi, centred, model.C, loss, model.epsilon, weight)
    best = objective(w, Phi, centred, model.C, loss, model.epsilon, weight)
    assert best * (1 - 1e-7) <= found <= best * (1 + 1.1e-5)  # 1e-5 is what tol promises
    assert model.certificate_.primal == pytest.approx(found, rel=1e-9)
    assert found * (1 - 1e-5) <= model.certificate_.dual <= best * (1 + 1e-7)
    # Strong convexity: so far can w be from the optimum, which is unique.
    total = len(y) if weight is None else weight.sum()
    reach = np.sqrt(2 * model.C * total * (abs(found - best) + 1e-7 * best))
    assert np.linalg.norm(model.monomial_coef_ - w) <= reach < 0.1 * np.linalg.norm(w)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_come_within_five_percent_in_50_epochs(data, solver, weighted, loss):
    X, y = DATA[data]()
    weight = sample_weight(len(y)) if weighted else None
    model = TaylorSVR(**SETTINGS[data], loss=loss, solver=solver, tol=1e-9, max_iter=50)
    model.fit(X, y, sample_weight=weight)
    found, best = true_objective(model, X, y, weight), best_objective(model, X, y, weight)
    assert best * (1 - 1e-7) <= found <= 1.05 * best
    assert model.certificate_.primal == pytest.approx(found, rel=1e-9)
    assert solver == "adagrad" or model.certificate_.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_any_width_of_the_tube_is_trained(loss, epsilon):
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"] | {"epsilon": epsilon}, loss=loss, tol=1e-5, max_iter=20_000).fit(X, y)
    best = best_objective(model, X, y)
    assert true_objective(model, X, y) == pytest.approx(best, rel=1.1e-5)
    assert (best == 0) == (epsilon == 100)  # all within it
    assert epsilon < 100 or np.allclose(model.predict(X), y.mean())


def test_no_tube_is_the_squared_error():
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"] | {"epsilon": 0.0}, loss="squared_epsilon_insensitive").fit(X, y)
    other = clone(model).set_params(loss="squared_error", epsilon=3.0).fit(X, y)
    assert np.array_equal(model.monomial_coef_, other.monomial_coef_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["exponential", "polynomial", [0.5, 2.0, 0.0, 1.0]])
def test_other_kernels_are_trained_to_their_optimum(loss, kernel):
    X, y = sparse_data()
    model = TaylorSVR(degree=3, gamma=0.1, kernel=kernel, coef0=0.5, C=0.1, loss=loss, random_state=0)
    model.set_params(tol=1e-5, max_iter=20_000).fit(X, y)
    best = best_objective(model, X, y)
    assert best * (1 - 1e-6) <= true_objective(model, X, y) <= best * (1 + 1.1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_single_precision_costs_no_more_than_its_rounding(data, loss):
    X, y = DATA[data]()
    model = TaylorSVR(**SETTINGS[data], loss=loss, tol=1e-4, max_iter=10_000).fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == model._outputs(X).dtype == np.float32
    found, best = true_objective(model, X, y), best_objective(model, X, y)
    assert best * (1 - 1e-6) <= found <= best * (1 + 1.2e-4)
    assert model.certificate_.primal == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_work_in_single_precision(data, solver, loss):
    X, y = DATA[data]()
    model = TaylorSVR(**SETTINGS[data], loss=loss, solver=solver, tol=1e-9, max_iter=30)
    double = model.fit(X, y).certificate_.primal
    model.fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == np.float32 and np.isfinite(model.monomial_coef_).all()
    assert true_objective(model, X, y) == pytest.approx(double, rel=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_each_instruction_set_finds_the_optimum(loss, solver, instruction_set):
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, tol=1e-9, max_iter=50).fit(X, y)
    assert true_objective(model, X, y) <= 1.05 * best_objective(model, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_any_tolerance_can_be_reached(loss):
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, tol=1e-10, max_iter=20_000).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-10
    assert true_objective(model, X, y) == pytest.approx(best_objective(model, X, y), rel=1e-8)


@pytest.mark.parametrize("n_rows", [1, 3, 17])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_few_rows_are_trained_on_too(loss, solver, n_rows):
    X, y = dense_data(20)
    X, y = X[:n_rows], y[:n_rows]
    # Many epochs, for there are few steps in one of them.
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, center=False, tol=1e-4, max_iter=400).fit(X, y)
    assert true_objective(model, X, y) <= 1.05 * best_objective(model, X, y)


@pytest.mark.parametrize("C", [0.01, 100.0])
@pytest.mark.parametrize("solver", ["dual", "adagrad"])
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_small_and_large_C_are_trained(loss, solver, C):
    X, y = dense_data(100)
    model = TaylorSVR(**SETTINGS["dense"] | {"C": C}, loss=loss, solver=solver, tol=1e-4, max_iter=1000).fit(X, y)
    assert true_objective(model, X, y) <= 1.05 * best_objective(model, X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-3, 1e3])
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_pegasos_stays_finite(loss, C, dtype):
    X, y = dense_data(100)
    model = TaylorSVR(**SETTINGS["dense"] | {"C": C}, loss=loss, solver="pegasos", max_iter=30).fit(X.astype(dtype), y)
    assert np.isfinite(model.monomial_coef_).all() and 0 < model.certificate_.primal < inf
    if C == 1e-3:
        assert model.certificate_.primal < LOSSES[loss](y - y.mean(), 0.1 * (loss != "squared_error")).mean()


# Against the kernel machines of scikit-learn.


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_squared_error_with_the_polynomial_kernel_is_kernel_ridge(degree):
    """Nothing is cut there."""
    X, y = dense_data()
    model = TaylorSVR(kernel="polynomial", degree=degree, gamma=0.2, coef0=0.7, C=0.5, loss="squared_error")
    model.set_params(tol=1e-10, max_iter=50_000, random_state=0, center=False).fit(X[:150], y[:150])
    ridge = KernelRidge(kernel="poly", degree=degree, gamma=0.2, coef0=0.7, alpha=1.0).fit(X[:150], y[:150])
    expected = ridge.predict(X[150:])
    assert np.allclose(model.predict(X[150:]), expected, rtol=0, atol=1e-4 * np.ptp(expected))
    centred = clone(model).set_params(center=True).fit(X[:150], y[:150])
    mean = y[:150].mean()
    expected = mean + ridge.fit(X[:150], y[:150] - mean).predict(X[150:])
    assert centred.offset_ == pytest.approx(mean, rel=1e-14)
    assert np.allclose(centred.predict(X[150:]), expected, rtol=0, atol=1e-4 * np.ptp(expected))


def test_squared_error_with_the_gaussian_kernel_is_kernel_ridge_where_nothing_is_cut():
    X, y = dense_data(120)
    model = TaylorSVR(degree=12, gamma=0.02, C=2.0, loss="squared_error", center=False, random_state=0)
    model.set_params(tol=1e-9, max_iter=20_000).fit(X, y)
    ridge = KernelRidge(kernel="rbf", gamma=0.02, alpha=1 / 4).fit(X, y)
    new, _ = dense_data(50, seed=1)
    assert np.allclose(model.predict(X), ridge.predict(X), rtol=0, atol=1e-3)
    assert np.abs(model.predict(new) - ridge.predict(new)).max() < 0.02 * np.ptp(y)


def test_predictions_are_about_those_of_svr():
    """Which has a bias that is not regularised."""
    X, y = dense_data()
    model = TaylorSVR(kernel="polynomial", degree=3, gamma=0.2, coef0=1.0, C=1.0, epsilon=0.1, random_state=0)
    exact = SVR(kernel="poly", degree=3, gamma=0.2, coef0=1.0, C=1.0, epsilon=0.1).fit(X, y)
    found, expected = model.set_params(tol=1e-5, max_iter=20_000).fit(X, y).predict(X), exact.predict(X)
    assert np.corrcoef(found, expected)[0, 1] > 0.999
    assert np.abs(found - expected).max() < 0.05 * np.ptp(expected)
    assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)


@slow
def test_functions_are_learnt():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(600, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 5
    for loss in LOSSES:
        model = TaylorSVR(degree=5, gamma=1.0, C=10.0, epsilon=0.02, loss=loss, random_state=0)
        assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.98


# Targets.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_shapes_follow_the_targets(loss, solver):
    X, Y = three_targets("dense")
    n_slots = comb(7, 3)
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, max_iter=10)
    one = clone(model).fit(X, Y[:, 0])
    assert one.predict(X).shape == (150,) and one.monomial_coef_.shape == (n_slots,) and isinstance(one.offset_, float)
    column = clone(model).fit(X, Y[:, :1])
    assert (
        column.predict(X).shape == (150, 1)
        and column.monomial_coef_.shape == (1, n_slots)
        and column.offset_.shape == (1,)
    )
    assert np.array_equal(column.predict(X)[:, 0], one.predict(X)) and np.array_equal(
        column.monomial_coef_[0], one.monomial_coef_
    )
    three = clone(model).fit(X, Y)
    assert (
        three.predict(X).shape == (150, 3)
        and three.monomial_coef_.shape == (3, n_slots)
        and three.offset_.shape == (3,)
    )
    assert len(three.certificate_.parts) == 3 and column.certificate_.parts == one.certificate_.parts == ()
    for fitted in (one, column, three):
        expected = stored_features(fitted, X) @ fitted.monomial_coef_.T + fitted.offset_
        assert np.allclose(fitted.predict(X), expected, rtol=1e-10, atol=1e-10)
        for empty in (X[:0], sparse.csr_array((0, 4))):
            assert fitted.predict(empty).shape == (0, *expected.shape[1:])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_several_targets_are_as_many_fits(data, loss):
    """Both P(w) - P* and P* - D are at least lambda/2 |w - w*|^2 when w = w(alpha): |w - w*|^2 <= gap / lambda."""
    X, Y = three_targets(data)
    weight = sample_weight(len(Y))
    model = TaylorSVR(**SETTINGS[data], loss=loss, tol=1e-7, max_iter=100_000)
    together = clone(model).fit(X, Y, sample_weight=weight)
    whole = together.certificate_
    for name in ("primal", "dual", "gap"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(part, name) for part in whole.parts), rel=1e-9)
    for k, part in enumerate(whole.parts):
        alone = clone(model).fit(X, Y[:, k], sample_weight=weight)
        assert 0 <= part.relative_gap <= 1e-7
        reach = np.sqrt(2 * model.C * weight.sum() * (part.gap + alone.certificate_.gap))
        difference = np.abs(together.predict(X)[:, k] - alone.predict(X)).max()
        assert difference <= reach + 1e-12 and difference < 1e-2 * np.ptp(Y[:, k])
        assert part.primal == pytest.approx(alone.certificate_.primal, rel=2e-7)
        assert together.offset_[k] == pytest.approx(alone.offset_, rel=1e-13)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -7.3, 1e9, 1e-9])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_targets_that_are_all_equal_are_predicted(loss, solver, value):
    """And there is nothing to warn of."""
    X, _ = dense_data(50)
    new, _ = dense_data(20, seed=1)
    weight = sample_weight(50)
    model = TaylorSVR(loss=loss, solver=solver, random_state=0)
    for given in (None, weight):
        model.fit(X, np.full(50, value), sample_weight=given)
        assert (model.predict(new) == value).all() and model.certificate_.primal == 0
        assert model.n_iter_ <= 3 and "nan" not in str(model.certificate_)
    model.fit(X, np.column_stack([np.full(50, value), np.zeros(50)]))
    assert (model.predict(new) == [value, 0.0]).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_of_zero_are_predicted_without_centring(loss):
    X, _ = dense_data(50)
    model = TaylorSVR(loss=loss, center=False, random_state=0).fit(X, np.zeros(50))
    assert (model.predict(X) == 0).all() and (model.monomial_coef_ == 0).all()
    assert model.certificate_.primal == model.certificate_.dual == 0
    assert model.top_monomials() == []


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_target_does_not_disturb_the_others(loss):
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, tol=1e-6, max_iter=20_000)
    pair = clone(model).fit(X, np.column_stack([y, np.full(len(y), 0.3)]))
    alone = clone(model).fit(X, y)
    assert np.abs(pair.predict(X)[:, 0] - alone.predict(X)).max() < 0.02
    assert np.allclose(pair.predict(X)[:, 1], 0.3, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_the_unit_of_the_targets_does_not_matter(loss, solver, dtype, scale):
    """With epsilon in the same unit, and C where the loss grows as the error itself: |w|^2 grows as its square."""
    X, y = dense_data()
    X = X.astype(dtype)
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, tol=1e-3, max_iter=100)
    plain = clone(model).fit(X, y)
    factor = scale if loss == "epsilon_insensitive" else 1.0
    other = clone(model).set_params(epsilon=0.1 * scale, C=2.0 * factor).fit(X, scale * y)
    assert np.abs(other.predict(X) / scale - plain.predict(X)).max() < 0.05 * np.ptp(y)
    unit = scale if loss == "epsilon_insensitive" else scale**2
    assert other.certificate_.primal / unit == pytest.approx(plain.certificate_.primal, rel=0.02)
    assert other.n_iter_ == pytest.approx(plain.n_iter_, rel=0.5, abs=3)


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_targets_of_different_units_are_trained_together(solver):
    X, Y = three_targets("dense")
    Y = Y * [1.0, 1e4, 1e-4]
    model = TaylorSVR(**SETTINGS["dense"], loss="squared_error", solver=solver, tol=1e-4, max_iter=60).fit(X, Y)
    for k in range(3):
        alone = TaylorSVR(**SETTINGS["dense"], loss="squared_error").fit(X, Y[:, k])
        assert np.abs(model.predict(X)[:, k] - alone.predict(X)).max() < 0.05 * np.ptp(Y[:, k])


@pytest.mark.parametrize("kind", [list, np.float32, np.int64, "column frame", "series"])
def test_targets_of_any_kind_are_numbers(kind):
    X, y = dense_data()
    y = np.round(y)
    expected = TaylorSVR(random_state=0).fit(X, y).predict(X)
    if kind in ("column frame", "series"):
        pandas = pytest.importorskip("pandas")
        given = pandas.DataFrame({"a": y}) if kind == "column frame" else pandas.Series(y)
    else:
        given = y.tolist() if kind is list else y.astype(kind)
    found = TaylorSVR(random_state=0).fit(X, given).predict(X)
    assert np.array_equal(found.ravel(), expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_targets_in_any_order_of_memory(order):
    X, Y = three_targets("dense")
    expected = TaylorSVR(random_state=0).fit(X, Y.tolist()).predict(X)
    assert np.array_equal(TaylorSVR(random_state=0).fit(X, np.array(Y, order=order)).predict(X), expected)
    assert np.array_equal(TaylorSVR(random_state=0).fit(X, np.repeat(Y, 2, axis=1)[:, ::2]).predict(X), expected)


# Centring.


def test_center_takes_the_weighted_mean():
    X, y = dense_data()
    weight = sample_weight(len(y))
    assert TaylorSVR().fit(X, y).offset_ == pytest.approx(y.mean(), rel=1e-14)
    mean = np.average(y, weights=weight)
    assert TaylorSVR().fit(X, y, sample_weight=weight).offset_ == pytest.approx(mean, rel=1e-14)
    assert TaylorSVR(center=False).fit(X, y, sample_weight=weight).offset_ == 0
    X, Y = three_targets("dense")
    weight = sample_weight(len(Y))
    assert np.allclose(TaylorSVR().fit(X, Y, sample_weight=weight).offset_, np.average(Y, axis=0, weights=weight))
    assert TaylorSVR(center=False).fit(X, Y).offset_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("loss", LOSSES)
def test_center_is_a_shift_of_the_targets(loss):
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"], loss=loss)
    centred = clone(model).fit(X, y)
    by_hand = clone(model).set_params(center=False).fit(X, y - y.mean())
    assert np.array_equal(centred.monomial_coef_, by_hand.monomial_coef_)
    assert np.allclose(centred.predict(X), by_hand.predict(X) + y.mean(), rtol=1e-13)
    exact = clone(model).set_params(tol=1e-6)  # y + 1024 has fewer digits of y: steps go another way to the same end
    moved = clone(exact).fit(X, y + 1024)
    assert np.allclose(moved.predict(X) - 1024, exact.fit(X, y).predict(X), rtol=0, atol=0.002)


def test_center_helps_where_the_constant_is_dear():
    X, y = dense_data()
    errors = [
        np.abs(TaylorSVR(**SETTINGS["dense"] | {"C": 0.02}, center=center).fit(X, y + 100).predict(X) - y - 100).mean()
        for center in (True, False)
    ]
    assert errors[0] < 2 < 10 < errors[1]


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_left_out_to_the_accuracy_of_the_gap(loss):
    X, y = dense_data(100)
    repeats = np.random.default_rng(1).integers(0, 4, size=100)
    model = TaylorSVR(degree=3, gamma=0.15, loss=loss, tol=1e-8, max_iter=50_000, random_state=0)
    model.set_params(shift=[0.5, -1.0, 0.0, 2.0])  # the one that is chosen would depend on how often a row is there
    weighted = clone(model).fit(X, y, sample_weight=repeats)
    at = np.repeat(np.arange(100), repeats)
    repeated = clone(model).fit(X[at], y[at])
    one, other = weighted.certificate_, repeated.certificate_
    assert one.primal == pytest.approx(other.primal, rel=2e-8)
    reach = np.sqrt(2 * repeats.sum() * (one.gap + other.gap))
    assert np.abs(weighted.predict(X) - repeated.predict(X)).max() <= reach + 1e-12 < 0.01


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_rows_of_weight_zero_take_no_part_in_training(solver):
    X, y = dense_data()
    y = y.copy()
    weight = sample_weight(len(y))
    used = weight > 0
    y[~used] = 1e9
    model = TaylorSVR(**SETTINGS["dense"], solver=solver, shift=[0.5, -1.0, 0.0, 2.0], max_iter=10)
    coef = model.fit(X, y, sample_weight=weight).monomial_coef_
    assert np.array_equal(model.fit(X[used], y[used], sample_weight=weight[used]).monomial_coef_, coef)


# The certificate.


def exact_optimum(K, y, C):
    """min over f of |f|^2 / (2 C n) + mean (f(x_i) - y_i)^2, in the space of the kernel K."""
    alpha = np.linalg.solve(K + np.eye(len(y)) / (2 * C), y)
    f = K @ alpha
    return (alpha @ f / (2 * C) + ((f - y) ** 2).sum()) / len(y)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("degree", [2, 6])
@pytest.mark.parametrize("gamma", [0.02, 0.15])
@pytest.mark.parametrize("solver", ["dual", "pegasos"])
@slow
def test_the_optimum_of_the_exact_kernel_lies_in_the_interval(solver, gamma, degree, normalize):
    X, Y = three_targets("dense")
    model = TaylorSVR(degree=degree, gamma=gamma, C=1.0, loss="squared_error", solver=solver, random_state=0)
    model.set_params(max_iter=50, normalize=normalize).fit(X, Y)
    K = reference.gaussian(X, X, gamma)
    optima = [exact_optimum(K, Y[:, k] - Y[:, k].mean(), 1.0) for k in range(3)]
    for part, best in zip(model.certificate_.parts, optima, strict=True):
        assert part.exact_interval[0] <= best <= part.exact_interval[1]
        assert part.exact_interval[0] <= part.sampled_interval[0] and best <= part.sampled_interval[1]
    highs = np.array([part.exact_interval[1] for part in model.certificate_.parts])
    if normalize:
        # Each model is, times the best factor, an element of the exact kernel's space: with the same |w|, and outputs
        # times the root of what is kept of a row. The losses between some factors are bounded by chords.
        Q = 1 - reference.residual(X - model.shift_, degree, gamma)
        f, y = np.sqrt(Q)[:, None] * (model.predict(X) - model.offset_), Y - model.offset_
        curvature = (model.monomial_coef_**2).sum(axis=1) / (2 * len(y)) + (f**2).mean(axis=0)
        ends = (y**2).mean(axis=0) - (f * y).mean(axis=0) ** 2 / curvature
        assert (ends * (1 - 1e-12) <= highs).all() and (highs <= ends * 1.05).all()
    else:
        assert np.array_equal(highs, [part.primal for part in model.certificate_.parts])
    low, high = model.certificate_.exact_interval
    assert low <= sum(optima) <= high
    if gamma == 0.02 and degree == 6 and solver == "dual":
        assert low > 0.95 * high  # the interval says something


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("gamma", "degree"), [(0.02, 2), (0.15, 2), (0.15, 6)])
def test_the_sampled_interval_holds_about_as_often_as_it_says(gamma, degree, normalize):
    """In 95 of 100 cases, and in somewhat fewer on a few hundred rows."""
    missed = 0
    for seed in range(30):
        X, Y = three_targets("dense", seed=seed)
        model = TaylorSVR(degree=degree, gamma=gamma, C=1.0, loss="squared_error", normalize=normalize)
        model.set_params(random_state=seed).fit(X, Y)
        K = reference.gaussian(X, X, gamma)
        for k, part in enumerate(model.certificate_.parts):
            missed += exact_optimum(K, Y[:, k] - Y[:, k].mean(), 1.0) < part.sampled_interval[0]
    assert missed <= 0.1 * 90


def test_the_cut_problem_has_its_optimum_above_the_dual():
    """The same closed form, with the cut kernel."""
    X, y = dense_data(100)
    model = TaylorSVR(**SETTINGS["dense"], loss="squared_error", tol=1e-9, max_iter=20_000).fit(X, y)
    Phi = stored_features(model, X)
    best = exact_optimum(Phi @ Phi.T, y - y.mean(), 2.0)
    assert model.certificate_.dual <= best * (1 + 1e-12) and best <= model.certificate_.primal * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_certify_finds_a_dual_point_for_adagrad(loss):
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver="adagrad", tol=1e-4).fit(X, Y)
    assert np.isnan(model.certificate_.dual) and len(model.certificate_.parts) == 3
    primal, coef = model.certificate_.primal, model.monomial_coef_
    certificate = model.certify(X, Y, max_iter=200)
    assert np.array_equal(model.monomial_coef_, coef) and certificate.primal == pytest.approx(primal, rel=1e-9)
    best = TaylorSVR(**SETTINGS["dense"], loss=loss, tol=1e-5, max_iter=10_000).fit(X, Y).certificate_
    for part, other in zip(certificate.parts, best.parts, strict=True):
        # Both may be at the optimum, where they are the same number but for their rounding.
        assert 0.98 * other.dual <= part.dual <= (1 + 1e-12) * other.primal


@pytest.mark.parametrize("solver", SOLVERS)
def test_training_that_ends_early_warns(solver):
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"], solver=solver, tol=1e-7, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"2 epochs.*tol=1e-07.*squared_epsilon_insensitive") as caught:
        model.fit(X, Y)
    assert len(caught) == 1 and caught[0].filename == __file__


@pytest.mark.parametrize("loss", LOSSES)
def test_history_has_the_sums(loss):
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, tol=1e-4, max_iter=10_000).fit(X, Y)
    history = model.history_
    assert all(column.shape == (model.n_iter_,) for column in history.values())
    assert history["primal"][-1] == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert history["dual"][-1] == pytest.approx(model.certificate_.dual, rel=1e-12)
    assert (np.diff(history["dual"]) >= -1e-9).all()


# The model in the user's terms.


@pytest.mark.parametrize("data", DATA)
def test_monomials_have_the_weights_of_coef(data):
    X, Y = three_targets(data)
    model = TaylorSVR(**SETTINGS[data], loss="squared_error").fit(X, Y)
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_).fit(as_array(X))
    top = model.top_monomials(8)
    assert len(top) == 3
    for k, monomials in enumerate(top):
        assert [abs(m.weight) for m in monomials] == sorted(np.abs(model.monomial_coef_[k]), reverse=True)[:8]
        assert all(m.weight == model.monomial_coef_[k, features.slot_of(m.powers)] for m in monomials)
        assert model.top_monomials(8, target=k) == monomials
        assert len(str(monomials).splitlines()) == 9
    for target in (3, -1, "a"):
        with pytest.raises(ValueError, match=f"target must be one of 0 to 2; got {target!r}"):
            model.top_monomials(8, target=target)
    one = TaylorSVR(**SETTINGS[data]).fit(X, Y[:, 0])
    assert one.top_monomials(8) == one.top_monomials(8, target=0)
    with pytest.raises(ValueError, match="target must be one of 0 to 0; got 1"):
        one.top_monomials(8, target=1)


def test_monomials_tell_what_makes_the_target():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).choice([0.0, 1.0], size=(400, 3), p=[0.7, 0.3])
    frame = pandas.DataFrame(X, columns=["age", "sex", "debt"])
    model = TaylorSVR(degree=2, gamma=0.5, C=100.0, random_state=0).fit(frame, X[:, 0] * X[:, 2])
    assert model.top_monomials(1)[0].name == "age * debt"
    assert model.feature_names_in_.tolist() == ["age", "sex", "debt"]


def test_everything_asks_for_fit_first():
    X, y = dense_data()
    for call in (
        lambda m: m.predict(X),
        lambda m: m.score(X, y),
        lambda m: m.monomial_coef_,
        lambda m: m.top_monomials(),
        lambda m: m.certify(X, y),
    ):
        with pytest.raises(NotFittedError):
            call(TaylorSVR())


def test_attributes_say_what_was_fitted():
    X, y = dense_data()
    model = TaylorSVR(degree=4).fit(X, y)
    assert model.degree_ == 4 and model.n_features_in_ == 4 and model.n_slots_ == comb(8, 4)
    assert model.gamma_ == pytest.approx(SVR().fit(X, y)._gamma, rel=1e-12)
    assert model.shift_.shape == (4,) and model.interrupted_ is False
    assert is_regressor(model) and not hasattr(model, "classes_")


# Streams.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_one_pass_over_a_stream_comes_close_to_fit_of_all_of_it(data, loss):
    X, y = DATA[data](3000)
    best = TaylorSVR(**SETTINGS[data], loss=loss).fit(X, y)
    model = TaylorSVR(**SETTINGS[data], loss=loss, shift=best.shift_)
    found = []
    for first in range(0, 3000, 200):
        model.partial_fit(X[first : first + 200], y[first : first + 200])
        if model.n_iter_ in (1, 4, 15):
            found.append(model.certify(X, y, max_iter=1).primal)
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1.25 * best.certificate_.primal
    assert model.offset_ == pytest.approx(y[:200].mean(), rel=1e-14)  # of the first batch
    assert model.score(X, y) > best.score(X, y) - 0.05


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_partial_fit_goes_on_from_fit(loss, solver):
    X, Y = three_targets("dense", 400)
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, max_iter=40).fit(X, Y)
    reached, offset = model.certificate_.primal, model.offset_
    model.partial_fit(X, Y)
    assert not hasattr(model, "certificate_") and np.array_equal(model.offset_, offset)
    assert model.certify(X, Y).primal < 1.1 * reached


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_the_unit_of_the_targets_does_not_matter_to_a_stream(scale):
    X, y = dense_data(2000)
    scores = []
    for factor in (1.0, scale):
        model = TaylorSVR(**SETTINGS["dense"], loss="squared_error")
        for first in range(0, 2000, 200):
            model.partial_fit(X[first : first + 200], factor * y[first : first + 200])
        scores.append(model.score(X, factor * y))
    assert scores[0] > 0.7 and scores[1] == pytest.approx(scores[0], abs=0.03)


def test_streams_keep_their_targets_and_columns():
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"]).partial_fit(X.astype("f"), Y)
    assert model.partial_fit(X, Y).monomial_coef_.dtype == np.float32 and model.n_iter_ == 2
    coef = model.monomial_coef_
    for wrong in (Y[:, 0], Y[:, :2], Y[:, :1]):
        with pytest.raises(ValueError, match="y has the shape .*; it had 3 targets before"):
            model.partial_fit(X, wrong)
        with pytest.raises(ValueError, match="y has the shape .*; it had 3 targets before"):
            model.certify(X, wrong)
    with pytest.raises(ValueError, match="X has 5 features, but TaylorSVR is expecting 4"):
        model.partial_fit(np.hstack([X, X[:, :1]]), Y)
    assert np.array_equal(model.monomial_coef_, coef) and model.n_iter_ == 2
    model.set_params(grow=True).partial_fit(np.hstack([X, X[:, :1]]), Y)
    assert model.monomial_coef_.shape == (3, comb(8, 3)) and np.isfinite(model.monomial_coef_).all()


def test_weights_of_a_stream_count():
    X, y = dense_data()
    low = y < np.median(y)
    model = TaylorSVR(**SETTINGS["dense"]).partial_fit(
        X, np.where(low, 0.0, 1.0), sample_weight=np.where(low, 1e-3, 50)
    )
    assert model.offset_ > 0.99 and np.median(model.predict(X)) > 0.9


# Warm starts.


def warm(loss, **parameters):
    return TaylorSVR(**SETTINGS["dense"] | {"loss": loss, "tol": 1e-5, "max_iter": 20_000} | parameters)


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_goes_on_where_the_last_fit_ended(loss, n_targets):
    X, Y = three_targets("dense")
    y = Y if n_targets == 3 else Y[:, 0]
    model = warm(loss, warm_start=True).fit(X, y)
    first, n_first = model.certificate_, model.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < n_first / 2
    assert model.certificate_.primal == pytest.approx(first.primal, rel=1e-5)
    assert model.certificate_.dual >= first.dual * (1 - 1e-12)
    assert warm(loss).fit(X, y).n_iter_ == n_first


@pytest.mark.parametrize("change", [{"C": 0.2}, {"C": 20.0}, {"epsilon": 0.5}, {"epsilon": 0.0}, {"center": False}])
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_takes_other_parameters(loss, change):
    X, y = dense_data()
    model = warm(loss, warm_start=True).fit(X, y).set_params(**change).fit(X, y)
    cold = warm(loss, **change).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-5
    assert model.certificate_.primal == pytest.approx(true_objective(model, X, y), rel=1e-9)
    assert model.certificate_.dual <= cold.certificate_.primal and cold.certificate_.dual <= model.certificate_.primal


@pytest.mark.parametrize("new", LOSSES)
@pytest.mark.parametrize("old", LOSSES)
@slow
def test_warm_start_takes_another_loss(old, new):
    X, y = dense_data()
    cold = warm(new).fit(X, y).certificate_
    for n_epochs in (1, 20_000):
        model = warm(old, warm_start=True).fit(X, y).set_params(loss=new, max_iter=n_epochs).fit(X, y)
        assert model.certificate_.dual <= cold.primal and cold.dual <= model.certificate_.primal
    assert model.certificate_.relative_gap <= 1e-5


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_stays_feasible_when_weights_or_targets_change(loss):
    X, y = dense_data()
    weight = sample_weight(len(y)) + 0.05
    model = warm(loss, warm_start=True).fit(X, y)
    model.fit(X, -2 * y, sample_weight=weight)
    cold = warm(loss).fit(X, -2 * y, sample_weight=weight)
    assert model.certificate_.relative_gap <= 1e-5
    assert model.certificate_.dual <= cold.certificate_.primal and cold.certificate_.dual <= model.certificate_.primal


def test_warm_start_begins_afresh_with_other_rows_or_targets():
    X, Y = three_targets("dense")
    model = warm("squared_error", warm_start=True).fit(X, Y)
    assert np.array_equal(model.fit(X, Y[:, :2]).monomial_coef_, warm("squared_error").fit(X, Y[:, :2]).monomial_coef_)
    assert np.array_equal(
        model.fit(X[:90], Y[:90, :2]).monomial_coef_, warm("squared_error").fit(X[:90], Y[:90, :2]).monomial_coef_
    )


@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_warm_start_goes_on_with_adagrad_too(loss):
    X, y = dense_data()
    model = warm(loss, solver="adagrad", warm_start=True, max_iter=20, tol=1e-9).fit(X, y)
    reached = model.certificate_.primal
    begun = clone(model).set_params(max_iter=1).fit(X, y).certificate_.primal
    assert begun > 1.02 * reached
    model.set_params(max_iter=1).fit(X, y)
    assert model.certificate_.primal < 1.02 * reached


# The same bits.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
@slow
def test_equal_seeds_give_equal_bits(data, loss, solver):
    X, Y = three_targets(data)
    model = TaylorSVR(**SETTINGS[data], loss=loss, solver=solver, max_iter=8)
    one, other = clone(model).fit(X, Y), clone(model).fit(X, Y)
    assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
    assert str(one.certificate_) == str(other.certificate_) and one.certificate_.primal == other.certificate_.primal
    assert not np.array_equal(clone(model).set_params(random_state=4).fit(X, Y).monomial_coef_, other.monomial_coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_n_jobs_does_not_change_a_bit(data, solver, monkeypatch):
    monkeypatch.setattr(_rows, "PASS_MONOMIALS", 2**12)  # so that several threads have something to do
    X, Y = three_targets(data, 600)
    model = TaylorSVR(**SETTINGS[data], solver=solver, max_iter=3)
    one = clone(model).fit(X, Y)
    for n_jobs in (2, -1):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, Y)
        assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
        assert one.certificate_.primal == other.certificate_.primal
        assert np.array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_targets", [1, 3])
@slow
def test_pickled_models_do_the_same(n_targets, solver):
    X, Y = three_targets("sparse")
    y = Y if n_targets == 3 else Y[:, 0]
    model = TaylorSVR(**SETTINGS["sparse"], solver=solver, max_iter=5, warm_start=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert str(again.certificate_) == str(model.certificate_) and again.top_monomials(3) == model.top_monomials(3)
    assert np.array_equal(
        again.fit(X, y).monomial_coef_, model.fit(X, y).monomial_coef_
    )  # a warm start from the same point
    assert np.array_equal(again.partial_fit(X, y).monomial_coef_, model.partial_fit(X, y).monomial_coef_)


def test_grid_search_and_pipelines_work():
    X, y = dense_data()
    pipeline = make_pipeline(StandardScaler(), TaylorSVR(random_state=0))
    grid = {"taylorsvr__loss": list(LOSSES), "taylorsvr__C": [0.001, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["taylorsvr__C"] == 10.0 and search.score(X, y) > 0.6
    model = TaylorSVR(epsilon=0.3, center=False)
    assert clone(model).get_params() == model.get_params() and model.get_params()["epsilon"] == 0.3


# What can be seen of a training.


@pytest.mark.parametrize("n_targets", [1, 3])
def test_verbose_shows_the_objective_and_the_gap(n_targets, monkeypatch, capsys):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"], verbose=1).fit(X, Y if n_targets == 3 else Y[:, 0])
    out, errors = capsys.readouterr()
    lines = errors.splitlines()
    assert out == "" and len(lines) == model.n_iter_ and "nan" not in errors
    assert f"objective {model.certificate_.primal:.5g}" in lines[-1] and "gap" in lines[-1]


class Interrupter:
    """Ctrl-C at the end of an epoch, or at the beginning of the first."""

    def __init__(self, at):
        self.at, self.values = at, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata):
        if self.at == 0 and context.task_name != "fit":
            raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        if context.task_name != "fit":
            self.values.append(fitted_estimator.predict(X))
            if len(self.values) == self.at:
                raise KeyboardInterrupt


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@slow
def test_estimators_interrupted_after_an_epoch_hold_its_model(loss, solver):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")
    X, Y = three_targets("dense")
    model = TaylorSVR(**SETTINGS["dense"], loss=loss, solver=solver, tol=1e-9, max_iter=50)
    watcher = Interrupter(at=3)
    stopped = clone(model).set_callbacks(watcher)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y)
    assert stopped.interrupted_ is True and stopped.n_iter_ == 3
    assert np.array_equal(stopped.monomial_coef_, model.set_params(max_iter=3).fit(X, Y).monomial_coef_)
    assert np.array_equal(watcher.values[-1], stopped.predict(X))
    low, high = stopped.certificate_.exact_interval
    assert 0 <= low < high < inf and len(stopped.certificate_.parts) == 3
    best = clone(model).set_params(solver="dual", tol=1e-4, max_iter=10_000).fit(X, Y).certificate_.exact_interval
    assert best[0] <= high * (1 + 1e-9)
    stopped.set_callbacks().fit(X, Y)
    assert stopped.interrupted_ is False


def test_interruption_before_the_first_epoch_changes_nothing():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")
    X, y = dense_data()
    model = TaylorSVR(**SETTINGS["dense"]).fit(X, y)
    before = model.predict(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupter(at=0)).fit(X[:, :2], y + 5)
    assert np.array_equal(model.predict(X), before)


# What is refused.


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("epsilon", -0.1),
        ("epsilon", nan),
        ("epsilon", inf),
        ("epsilon", "0.1"),
        ("epsilon", None),
        ("epsilon", True),
        ("center", "yes"),
        ("center", 1),
        ("center", None),
        ("loss", "hinge"),
        ("loss", "squared_loss"),
        ("loss", None),
        ("solver", "sgd"),
        ("C", 0),
        ("C", nan),
        ("tol", 0),
        ("gamma", -1.0),
        ("degree", 0),
        ("max_iter", 0),
        ("memory_limit", 0),
    ],
)
def test_wrong_parameters_are_refused_with_their_name_and_value(parameter, value):
    X, y = dense_data(20)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=rf"{parameter}.*{re.escape(repr(value))}"):
            getattr(TaylorSVR(**{parameter: value}), method)(X, y)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_wrong_targets_are_refused(method):
    X, y = dense_data(20)

    def refuse(wrong, message):
        with pytest.raises(ValueError, match=message):
            getattr(TaylorSVR(), method)(X, wrong)

    refuse(np.where(y > 3, nan, y), "y contains NaN")
    refuse(np.where(y > 3, inf, y), "y contains infinity")
    refuse(np.column_stack([y, np.where(y > 3, nan, y)]), "y contains NaN")
    refuse(["a"] * 20, "could not convert string to float")
    refuse(y[1:], "inconsistent numbers of samples")
    refuse(np.column_stack([y, y])[1:], "inconsistent numbers of samples")
    refuse(np.zeros((20, 2, 2)), "y must have one or two dimensions|Found array with dim 3")
    refuse(np.zeros((20, 0)), r"at least one column; got the shape \(20, 0\)|0 feature")
    refuse(None, "requires y to be passed")
    refuse(y + 1j, "[Cc]omplex")


def test_wrong_weights_are_refused():
    X, y = dense_data(20)
    for weight, message in (
        (np.full(20, -1.0), "Negative values in data passed to `sample_weight`"),
        (np.full(20, nan), "NaN"),
        (np.zeros(20), "non-zero"),
        (np.ones(19), "sample_weight.shape"),
    ):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=message):
                getattr(TaylorSVR(), method)(X, y, sample_weight=weight)


def test_a_failed_fit_changes_nothing():
    X, y = dense_data()
    model = TaylorSVR(random_state=0).fit(X, y)
    before = dict(model.__dict__)
    for call in (
        lambda: model.fit(X[:, :2], np.full(len(y), nan)),
        lambda: model.fit(X[:, :2], y, sample_weight=np.zeros(len(y))),
        lambda: model.fit(X[:, :2], y[1:]),
        lambda: model.partial_fit(X, np.column_stack([y, y])),
        lambda: model.partial_fit(X[:, :2], y),
    ):
        with pytest.raises(ValueError, match="NaN|non-zero|inconsistent|targets before|expecting 4"):
            call()
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is value for name, value in before.items())


def test_many_targets_are_refused_when_they_take_too_much_memory():
    X, _ = dense_data(50)
    Y = np.random.default_rng(0).normal(size=(50, 300))
    assert TaylorSVR(loss="squared_error", tol=0.01, random_state=0).fit(X, Y).predict(X).shape == (50, 300)
    with pytest.raises(ValueError, match=r"35 monomials for each of 300 outputs on 50 rows would take \d+ bytes"):
        TaylorSVR(degree=3, memory_limit=10**6).fit(X, Y)
    # The degree that is chosen is one that fits; 1 is the least.
    assert TaylorSVR(loss="squared_error", tol=0.01, memory_limit=1_200_000).fit(X, Y).degree_ == 2
    with pytest.raises(ValueError, match=r"5 monomials for each of 300 outputs on 50 rows would take \d+ bytes"):
        TaylorSVR(memory_limit=10**6).fit(X, Y)


def test_fitting_does_not_change_what_it_is_given():
    X, Y = three_targets("dense")
    weight = sample_weight(len(Y))
    before = X.copy(), Y.copy(), weight.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for solver in SOLVERS:
            TaylorSVR(solver=solver, center=False, max_iter=5).fit(X, Y, sample_weight=weight).predict(X)
    assert all(np.array_equal(a, b) for a, b in zip(before, (X, Y, weight), strict=True))
