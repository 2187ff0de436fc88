"""Training finds the optimum that LIBLINEAR finds on stored features, the same bits each time, and can be watched."""

import json
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from math import sqrt

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from taylorkern import TaylorFeatures, TaylorSVC
from taylorkern._data import rows as _rows
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.threads import Team
from taylorkern._model import observe as _observe
from taylorkern._train import dual as _dual
from taylorkern._train import loop as _train
from taylorkern._train import primal as _primal
from taylorkern._train.dual import Dual, dual_start
from taylorkern._train.loss import JOINT_LOSSES, LABEL_LOSSES, regression_loss
from taylorkern._train.problem import Problem, padded

LOSSES = {
    "hinge": lambda v: np.maximum(0, 1 - v),
    "squared_hinge": lambda v: np.maximum(0, 1 - v) ** 2,
    "log_loss": lambda v: np.logaddexp(0, -v),
}
SOLVERS = ("dual", "pegasos", "adagrad")

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# Two test sets, with labels -1 and 1, the latter in fewer rows.


def dense_data(n_rows=301, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)) + np.array([0.5, -1.0, 0.0, 2.0])
    y = np.sin(2 * X[:, 0]) + (X[:, 1] + 1) * X[:, 2] + 0.4 * random.normal(size=n_rows) > 0.5
    return X, np.where(y, 1, -1)


def sparse_data(n_rows=403, seed=0):
    """CSR rows: columns of 0 and 1, one of them mostly 1, and two of other numbers."""
    random = np.random.default_rng(seed)
    X = (random.uniform(size=(n_rows, 9)) < [0.1, 0.3, 0.9, 0.2, 0.4, 0.05, 0.3, 0.3, 0.2]).astype(float)
    X[:, 7:] *= random.normal(size=(n_rows, 2))
    y = X[:, 1] + X[:, 2] * X[:, 4] - X[:, 3] + X[:, 7] + 0.4 * random.normal(size=n_rows) > 0.8
    return sparse.csr_array(X), np.where(y, 1, -1)


DATA = {"dense": dense_data, "sparse": sparse_data}
SETTINGS = {
    "dense": {"degree": 3, "gamma": 0.15, "C": 2.0},
    "sparse": {"degree": 2, "gamma": 0.2, "C": 1.0},
}


# What the package trains on, as an ordinary linear model on stored features.


def stored_features(model, X):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    unit = model.kernel == "gaussian" if model.normalize == "auto" else model.normalize
    kernel = {"kernel": model.kernel, "coef0": model.coef0, "normalize": unit}
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, **kernel)
    return features.fit_transform(X.astype(np.float64) - model.shift_).toarray()


def objective(w, Phi, y, C, loss, weight=None):
    """lambda/2 |w|^2 + mean loss, lambda = 1 / (C sum of weights)."""
    weight = np.ones(len(y)) if weight is None else weight
    return (w @ w / (2 * C) + weight @ LOSSES[loss](y * (Phi @ w))) / weight.sum()


def optimum(Phi, y, C, loss, weight=None):
    """The objective that scikit-learn's solvers reach."""
    if loss == "log_loss":
        linear = LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    else:
        linear = LinearSVC(C=C, loss=loss, dual=True, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0)
    linear.fit(Phi, y, sample_weight=weight)
    return objective(linear.coef_[0].astype(np.float64), Phi, y, C, loss, weight)


def true_objective(model, X, y, weight=None):
    """Of the model's own weights."""
    w = model.monomial_coef_[0].astype(np.float64)
    return objective(w, stored_features(model, X), y, model.C, model.loss_, weight)


def sample_weight(n_rows):
    random = np.random.default_rng(7)
    return random.uniform(0.5, 1.5, size=n_rows) * (random.uniform(size=n_rows) < 0.8)


# (class_weight, with sample_weight)
WEIGHTS = {
    "no weights": (None, False),
    "balanced": ("balanced", False),
    "by class": ({1: 2.5, -1: 0.4}, False),
    "by row": (None, True),
    "by class and row": ({1: 1.5}, True),
}


def weights_of(name, y):
    """(class_weight, sample_weight, what each row weighs)."""
    class_weight, by_row = WEIGHTS[name]
    given = sample_weight(len(y)) if by_row else None
    per_class = {-1: 1.0, 1: 1.0}
    if class_weight == "balanced":
        per_class = {c: len(y) / (2 * (y == c).sum()) for c in (-1, 1)}
    elif class_weight:
        per_class |= class_weight
    return class_weight, given, np.array([per_class[c] for c in y]) * (1.0 if given is None else given)


# The optimum.


@pytest.mark.parametrize(("weights", "normalize"), [*((name, "auto") for name in WEIGHTS), ("by class and row", False)])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_dual_objective_equals_liblinears(data, loss, weights, normalize):
    X, y = DATA[data]()
    class_weight, given, weight = weights_of(weights, y)
    model = TaylorSVC(**SETTINGS[data], loss=loss, class_weight=class_weight, tol=1e-5, max_iter=10_000, random_state=0)
    model.set_params(normalize=normalize).fit(X, y, sample_weight=given)
    found = true_objective(model, X, y, weight)
    best = optimum(stored_features(model, X), y, model.C, loss, weight)
    assert best * (1 - 1e-7) <= found <= best * (1 + 1.1e-5)  # 1e-5 is what tol promises
    assert model.certificate_.primal == pytest.approx(found, rel=1e-10)
    assert found * (1 - 1e-5) <= model.certificate_.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("weights", ["no weights", "by class and row"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_come_within_two_percent_of_liblinear_in_30_epochs(data, solver, loss, weights):
    X, y = DATA[data]()
    class_weight, given, weight = weights_of(weights, y)
    model = TaylorSVC(
        **SETTINGS[data],
        loss=loss,
        solver=solver,
        class_weight=class_weight,
        tol=1e-9,
        max_iter=30,
        random_state=0,
    )
    model.fit(X, y, sample_weight=given)
    found = true_objective(model, X, y, weight)
    best = optimum(stored_features(model, X), y, model.C, loss, weight)
    assert best * (1 - 1e-7) <= found <= 1.02 * best
    assert model.certificate_.primal == pytest.approx(found, rel=1e-10)
    assert solver == "adagrad" or 0.5 * best < model.certificate_.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("kernel", ["exponential", "polynomial", [0.5, 2.0, 0.0, 1.0]])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_other_kernels_are_trained_to_their_optimum(data, loss, kernel):
    X, y = DATA[data]()
    model = TaylorSVC(
        degree=3, gamma=0.1, kernel=kernel, coef0=0.5, C=0.1, loss=loss, tol=1e-5, max_iter=20_000, random_state=0
    )
    model.fit(X, y)
    found, best = true_objective(model, X, y), optimum(stored_features(model, X), y, 0.1, loss)
    assert best * (1 - 1e-6) <= found <= best * (1 + 1.1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_single_precision_costs_no_more_than_its_rounding(data, loss):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], loss=loss, tol=1e-4, max_iter=10_000, random_state=0).fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == np.float32
    found, best = true_objective(model, X, y), optimum(stored_features(model, X), y, model.C, loss)
    assert best * (1 - 1e-6) <= found <= best * (1 + 1.2e-4)
    assert model.certificate_.primal == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_work_in_single_precision(data, solver):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], solver=solver, tol=1e-9, max_iter=30, random_state=0).fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == np.float32
    assert true_objective(model, X, y) <= 1.02 * optimum(stored_features(model, X), y, model.C, "hinge")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_each_instruction_set_finds_the_optimum(data, solver, instruction_set):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], solver=solver, tol=1e-9, max_iter=30, random_state=0).fit(X, y)
    assert true_objective(model, X, y) <= 1.02 * optimum(stored_features(model, X), y, model.C, "hinge")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_any_tolerance_can_be_reached(data, loss):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], loss=loss, tol=1e-10, max_iter=3000, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-10
    best = optimum(stored_features(model, X), y, model.C, loss)
    assert true_objective(model, X, y) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("n_rows", [2, 3, 17, 65])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_few_rows_are_trained_on_too(data, solver, n_rows):
    X, y = DATA[data](70)
    X, y = X[:n_rows], y[:n_rows].copy()
    y[:2] = -1, 1
    # Many epochs, for there are few steps in one of them.
    model = TaylorSVC(**SETTINGS[data], solver=solver, tol=1e-5, max_iter=400, random_state=0).fit(X, y)
    assert true_objective(model, X, y) <= 1.02 * optimum(stored_features(model, X), y, model.C, "hinge")


# Weights.


def settings_for_weights(data, solver, loss):
    """The shift that is chosen would depend on how often a row is there."""
    shift = [0.5, -1.0, 0.0, 2.0] if data == "dense" else None
    return TaylorSVC(
        degree=2, gamma=0.2, C=1.0, loss=loss, solver=solver, shift=shift, tol=1e-9, max_iter=10_000, random_state=0
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("data", DATA)
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_left_out_to_the_accuracy_of_the_gap(data, loss):
    X, y = DATA[data](150)
    repeats = np.random.default_rng(1).integers(0, 4, size=150)
    weighted = settings_for_weights(data, "dual", loss).fit(X, y, sample_weight=repeats)
    at = np.repeat(np.arange(150), repeats)
    repeated = settings_for_weights(data, "dual", loss).fit(X[at], y[at])
    one, other = weighted.certificate_, repeated.certificate_
    assert one.primal == pytest.approx(other.primal, rel=2e-9)
    assert one.dual == pytest.approx(other.dual, rel=2e-9)
    # The objective is lambda-strongly convex, so that each w is no farther than this from the optimum.
    radius = sqrt(2 * repeats.sum()) * (sqrt(one.gap) + sqrt(other.gap))
    assert radius < 2e-3
    assert np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max() <= radius


@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_weights_are_repetitions_for_stochastic_solvers_too(data, solver):
    X, y = DATA[data](150)
    repeats = np.random.default_rng(1).integers(0, 4, size=150)
    at = np.repeat(np.arange(150), repeats)
    model = settings_for_weights(data, solver, "hinge").set_params(max_iter=60)
    weighted = model.fit(X, y, sample_weight=repeats).certificate_.primal
    repeated = model.fit(X[at], y[at]).certificate_.primal
    assert weighted == pytest.approx(repeated, rel=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_rows_of_weight_zero_take_no_part_in_training(solver):
    """The order of the rows is drawn among the others: the same bits. (Shift and degree are chosen by all rows.)"""
    X, y = dense_data()
    weight = sample_weight(len(y))
    used = weight > 0
    model = TaylorSVC(**SETTINGS["dense"], solver=solver, shift=[0.5, -1.0, 0.0, 2.0], max_iter=10, random_state=0)
    coef = model.fit(X, y, sample_weight=weight).monomial_coef_
    assert np.array_equal(model.fit(X[used], y[used], sample_weight=weight[used]).monomial_coef_, coef)


@given(
    factor=st.sampled_from([0.25, 2.0, 1024.0]),
    solver=st.sampled_from(SOLVERS),
    loss=st.sampled_from(list(LOSSES)),
    seed=st.integers(0, 2**32 - 1),
    data=st.sampled_from(list(DATA)),
)
@settings(max_examples=25)
@slow
def test_larger_weights_are_a_larger_C(factor, solver, loss, seed, data):
    """By powers of two, which do not round: the same bits."""
    X, y = DATA[data](60, seed)
    y[:2] = -1, 1
    weight = np.random.default_rng(seed).uniform(0.1, 2, size=60)
    one, other = (
        TaylorSVC(gamma=0.2, C=C, solver=solver, loss=loss, max_iter=4, random_state=0) for C in (3.0, 3.0 / factor)
    )
    one.fit(X, y, sample_weight=weight)
    other.fit(X, y, sample_weight=factor * weight)
    assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
    assert one.certificate_.primal == other.certificate_.primal


def test_class_weights_are_weights_of_the_rows():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.15, tol=1e-6, max_iter=10_000, random_state=0)
    by_row = model.fit(X, y, sample_weight=np.where(y == 1, 3.0, 0.5)).monomial_coef_
    by_class = model.set_params(class_weight={1: 3.0, -1: 0.5}).fit(X, y).monomial_coef_
    assert np.array_equal(by_row, by_class)


# The same bits.


@pytest.fixture
def short_passes(monkeypatch):
    """Many passes over few rows, so that several threads have something to do."""
    monkeypatch.setattr(_rows, "PASS_MONOMIALS", 2**12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@slow
def test_equal_seeds_give_equal_bits(data, solver, loss):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], solver=solver, loss=loss, max_iter=15, random_state=3)
    one, other = clone(model).fit(X, y), clone(model).fit(X, y)
    assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
    assert np.isnan(one.certificate_.theorem1)  # of unit rows: NaN is not equal to itself
    assert repr(one.certificate_) == repr(other.certificate_)
    assert one.certificate_.primal == other.certificate_.primal
    for name in ("primal", "dual", "active"):
        assert np.array_equal(one.history_[name], other.history_[name], equal_nan=True)
    assert np.array_equal(one.fit(X, y).monomial_coef_, other.monomial_coef_)  # again, on a fitted one
    assert not np.array_equal(clone(model).set_params(random_state=4).fit(X, y).monomial_coef_, other.monomial_coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("worth_parts", [1, 10**9])
@pytest.mark.usefixtures("short_passes")
@slow
def test_n_jobs_does_not_change_a_bit(data, solver, worth_parts, monkeypatch):
    monkeypatch.setattr("taylorkern._train.problem.WORTH_THREADS", 1)
    monkeypatch.setattr("taylorkern._train.problem.WORTH_PARTS", worth_parts)
    X, y = DATA[data](2000)
    model = TaylorSVC(**SETTINGS[data], solver=solver, max_iter=3, random_state=0)
    one = clone(model).fit(X, y)
    for n_jobs in (2, 4, -1):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
        assert one.certificate_.primal == other.certificate_.primal
        assert np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_are_little_work_are_left_to_one_thread(monkeypatch):
    X, y = DATA["sparse"](200)
    model = TaylorSVC(degree=3, gamma=0.1, n_jobs=2, max_iter=2, random_state=0)
    sizes = []
    monkeypatch.setattr("taylorkern._train.problem.Team", lambda n: sizes.append(n) or Team(n))
    for worth in (1, 10**9):
        monkeypatch.setattr("taylorkern._train.problem.WORTH_THREADS", worth)
        for solver in SOLVERS:
            clone(model).set_params(solver=solver).fit(X, y)
    assert sizes == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.usefixtures("short_passes")
@slow
def test_threads_that_fit_at_the_same_time_do_not_disturb_one_another(solver):
    jobs = [(data, seed) for seed in range(4) for data in DATA]
    # One matrix for all threads of a kind.
    given = {data: DATA[data](1200) for data in DATA}

    def fit(job):
        data, seed = job
        model = TaylorSVC(**SETTINGS[data], solver=solver, max_iter=6, n_jobs=2, random_state=seed)
        return model.fit(*given[data]).monomial_coef_

    alone = [fit(job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, jobs))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


@pytest.mark.parametrize("data", DATA)
@pytest.mark.usefixtures("short_passes")
@slow
def test_threads_that_use_one_model_do_not_disturb_one_another(data):
    X, y = DATA[data](2000)
    model = TaylorSVC(**SETTINGS[data], max_iter=1, random_state=0).fit(X, y)
    alone = model.decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: model.decision_function(X), range(8)))
    assert all(np.array_equal(alone, values) for values in together)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@slow
def test_pickled_models_do_the_same(solver, dtype):
    X, y = sparse_data()
    X = X.astype(dtype)
    model = TaylorSVC(**SETTINGS["sparse"], solver=solver, max_iter=5, warm_start=True, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.decision_function(X).dtype == again.monomial_coef_.dtype == dtype
    assert str(again.certificate_) == str(model.certificate_)
    assert [m.name for m in again.top_monomials(5)] == [m.name for m in model.top_monomials(5)]
    assert np.array_equal(
        again.fit(X, y).monomial_coef_, model.fit(X, y).monomial_coef_
    )  # a warm start from the same point
    batch = X[:50], y[:50]
    assert np.array_equal(again.partial_fit(*batch).monomial_coef_, model.partial_fit(*batch).monomial_coef_)


# History, and when training stops.


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_history_of_the_dual_solver(data, loss):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], loss=loss, tol=1e-6, max_iter=5000, random_state=0).fit(X, y)
    history = model.history_
    n = model.n_iter_
    assert set(history) == {"epoch", "seconds", "primal", "dual", "active", "primal_seen"}
    assert all(isinstance(column, np.ndarray) and column.shape == (n,) for column in history.values())
    assert history["epoch"].tolist() == list(range(1, n + 1))
    assert history["seconds"][0] > 0 and (np.diff(history["seconds"]) > 0).all()
    assert (np.diff(history["dual"]) >= -1e-12).all() and history["dual"][-1] > history["dual"][0]
    known = ~np.isnan(history["primal"])
    assert known[-1]
    assert (history["primal"][known] >= history["dual"][known]).all()
    assert (history["primal"][known] >= history["dual"][-1]).all()
    assert np.isfinite(history["primal_seen"]).all()
    assert history["primal"][-1] == model.certificate_.primal
    assert history["dual"][-1] == pytest.approx(model.certificate_.dual, rel=1e-14)
    gaps = (history["primal"] - history["dual"]) / history["primal"]
    assert gaps[-1] <= 1e-6 and not (gaps[:-1] <= 1e-6).any()  # it stops when it can, and not before
    assert history["active"][0] == len(y) and (history["active"] <= len(y)).all() and (history["active"] >= 0).all()
    assert loss == "log_loss" or history["active"].min() < len(y)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_true_gap_is_computed_when_it_is_time(tol, loss):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], loss=loss, tol=tol, max_iter=5000, random_state=0).fit(X, y)
    history = model.history_
    visited, known = 0, np.log(2) if loss == "log_loss" else 1.0  # at w = 0
    ways = set()
    columns = (history[name] for name in ("active", "primal_seen", "primal", "dual"))
    for active, seen, primal, dual in zip(*columns, strict=True):
        visited += active
        late = visited >= 2 * len(y)
        of_tol, of_gap = (1.0, 0.03) if late else (0.7, 0.003)
        wanted = max(of_tol * tol * seen, of_gap * known)
        if np.isnan(primal):
            assert seen - dual > wanted * (1 - 1e-6)
        else:
            assert seen - dual <= wanted * (1 + 1e-6)
            visited, known = 0, primal - dual
            ways.add(late)
    assert True in ways and np.isnan(history["primal"]).any()


@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@slow
def test_history_of_the_stochastic_solvers(solver):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], solver=solver, tol=1e-9, max_iter=12, random_state=0).fit(X, y)
    history = model.history_
    assert model.n_iter_ == 12 and all(column.shape == (12,) for column in history.values())
    assert (np.diff(history["seconds"]) > 0).all()
    assert np.isfinite(history["primal"]).all() and np.isnan(history["primal_seen"]).all()
    assert (history["active"] == len(y)).all()
    assert history["primal"][-1] == model.certificate_.primal
    assert history["primal"][-1] < history["primal"][0]
    if solver == "adagrad":
        assert np.isnan(history["dual"]).all() and np.isnan(model.certificate_.dual)
    else:
        assert (history["dual"] <= history["primal"]).all()
        assert history["dual"][-1] == pytest.approx(model.certificate_.dual, rel=1e-14)


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_fewer_epochs_are_a_prefix_of_more(solver):
    """What the history says of an epoch is true of a model that is trained no further."""
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], solver=solver, tol=1e-9, random_state=0)
    long = clone(model).set_params(max_iter=9).fit(X, y).history_
    for n_epochs in (1, 2, 5):
        short = clone(model).set_params(max_iter=n_epochs).fit(X, y)
        assert short.n_iter_ == n_epochs
        assert short.history_["dual"] == pytest.approx(long["dual"][:n_epochs], rel=1e-12, nan_ok=True)
        known = long["primal"][n_epochs - 1]
        assert np.isnan(known) or short.certificate_.primal == known
        assert short.certificate_.primal == pytest.approx(true_objective(short, X, y), rel=1e-10)


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_training_that_ends_early_warns_with_gap_tolerance_and_epochs(solver):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], solver=solver, tol=1e-7, max_iter=4, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    message = str(caught[0].message)
    assert len(caught) == 1 and caught[0].filename == __file__  # it points at who called fit
    assert "4 epochs" in message and "tol=1e-07" in message
    assert f"gap is {model.certificate_.relative_gap:.2g}" in message
    assert "max_iter" in message and "C (it is 2)" in message


def test_adagrad_warns_when_the_objective_still_falls():
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], solver="adagrad", tol=1e-7, max_iter=2, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"2 epochs.*objective .* still fell by more than tol=1e-07") as caught:
        model.fit(X, y)
    assert f"{model.certificate_.primal:.4g}" in str(caught[0].message)


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-4])
def test_training_stops_at_the_tolerance_and_says_nothing(tol):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], tol=tol, max_iter=1000, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= tol
    assert model.interrupted_ is False
    stricter = TaylorSVC(**SETTINGS["dense"], tol=tol / 100, max_iter=10_000, random_state=0).fit(X, y)
    assert stricter.n_iter_ > model.n_iter_


def test_adagrad_stops_when_two_epochs_gain_little():
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], solver="adagrad", tol=1e-3, random_state=0).fit(X, y)
    primal = model.history_["primal"]
    gains = (primal[:-1] - primal[1:]) / primal[1:]
    slow_epochs = gains <= 1e-3
    assert slow_epochs[-2:].all()
    assert not (slow_epochs[1:-1] & slow_epochs[:-2]).any()


# Warm starts.


def warm(**parameters):
    return TaylorSVC(**SETTINGS["dense"] | {"tol": 1e-5, "max_iter": 10_000, "random_state": 0} | parameters)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_warm_start_goes_on_where_the_last_fit_ended(loss, weighted):
    X, y = dense_data()
    weight = sample_weight(len(y)) if weighted else None
    model = warm(loss=loss, warm_start=True).fit(X, y, sample_weight=weight)
    first = model.certificate_
    n_first = model.n_iter_
    model.fit(X, y, sample_weight=weight)
    assert model.n_iter_ < n_first / 2 and model.n_iter_ <= 8
    assert model.certificate_.relative_gap <= 1e-5
    assert model.certificate_.primal == pytest.approx(first.primal, rel=1e-5)
    assert model.certificate_.dual >= first.dual - 1e-12
    cold = warm(loss=loss).fit(X, y, sample_weight=weight)
    assert cold.n_iter_ == cold.fit(X, y, sample_weight=weight).n_iter_ == n_first


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("factor", [0.1, 0.9, 1.1, 10.0])
def test_warm_start_takes_another_C(loss, factor):
    X, y = dense_data()
    model = warm(loss=loss, warm_start=True).fit(X, y)
    C = 2.0 * factor
    model.set_params(C=C).fit(X, y)
    cold = warm(loss=loss).set_params(C=C).fit(X, y)
    best = optimum(stored_features(cold, X), y, C, loss)
    assert best * (1 - 1e-7) <= true_objective(model, X, y) <= best * (1 + 1.1e-5)
    assert model.certificate_.primal == pytest.approx(true_objective(model, X, y), rel=1e-10)
    assert model.certificate_.dual <= best * (1 + 1e-7)
    # Epochs are over few rows or many: what counts is how many are visited in all.
    assert factor not in (0.9, 1.1) or model.history_["active"].sum() <= 0.8 * cold.history_["active"].sum()


@pytest.mark.parametrize("change", [{1: 0.2}, {1: 4.0}, "balanced"])
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_stays_feasible_when_weights_change(change, loss):
    X, y = dense_data()
    weight = sample_weight(len(y)) + 0.05
    model = warm(loss=loss, warm_start=True).fit(X, y)
    model.set_params(class_weight=change).fit(X, y, sample_weight=weight)
    cold = warm(loss=loss, class_weight=change).fit(X, y, sample_weight=weight)
    assert model.certificate_.relative_gap <= 1e-5
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1.1e-5)
    assert model.certificate_.dual <= cold.certificate_.primal


@pytest.mark.parametrize("old", LOSSES)
@pytest.mark.parametrize("new", LOSSES)
def test_warm_start_takes_another_loss(old, new):
    X, y = dense_data()
    model = warm(loss=old, warm_start=True).fit(X, y)
    model.set_params(loss=new).fit(X, y)
    best = optimum(stored_features(model, X), y, 2.0, new)
    assert best * (1 - 1e-7) <= true_objective(model, X, y) <= best * (1 + 1.1e-5)
    assert model.certificate_.dual <= best * (1 + 1e-7)


def test_warm_start_takes_changed_labels_and_columns():
    X, y = dense_data()
    model = warm(warm_start=True).fit(X, y)
    model.fit(X[:, ::-1][:, :3] + 1, -y)
    cold = warm().fit(X[:, ::-1][:, :3] + 1, -y)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1.1e-5)


def test_warm_start_begins_afresh_with_another_number_of_rows():
    X, y = dense_data()
    model = warm(warm_start=True).fit(X, y)
    model.fit(X[:200], y[:200])
    assert np.array_equal(model.monomial_coef_, warm().fit(X[:200], y[:200]).monomial_coef_)


def test_warm_start_does_not_change_the_first_fit():
    X, y = dense_data()
    assert np.array_equal(warm(warm_start=True).fit(X, y).monomial_coef_, warm().fit(X, y).monomial_coef_)


@slow
def test_dual_solver_goes_on_from_the_dual_point_of_pegasos():
    X, y = dense_data()
    model = warm(solver="pegasos", max_iter=30, warm_start=True).fit(X, y)
    reached = model.certificate_.dual
    model.set_params(solver="dual", max_iter=1).fit(X, y)
    assert model.history_["dual"][0] > reached > 0


@slow
def test_warm_start_goes_on_with_adagrad_too():
    X, y = dense_data()
    model = warm(solver="adagrad", warm_start=True, max_iter=20, tol=1e-9).fit(X, y)
    reached = model.certificate_.primal
    begun = clone(model).set_params(max_iter=1).fit(X, y).certificate_.primal
    assert begun > 1.05 * reached
    model.set_params(max_iter=1).fit(X, y)
    assert model.certificate_.primal < 1.02 * reached


# Several outputs, numbers, and losses that look at all outputs: the problem, and its solvers by themselves.

CASES = [
    ("hinge", 3),
    ("squared_hinge", 2),
    ("log_loss", 5),
    ("epsilon_insensitive", 1),
    ("epsilon_insensitive", 3),
    ("squared_epsilon_insensitive", 1),
    ("squared_epsilon_insensitive", 4),
    ("squared_error", 2),
    ("crammer_singer", 2),
    ("crammer_singer", 4),
    ("multinomial", 2),
    ("multinomial", 7),
]


class Several:
    """A problem of the package, and what the reference needs to know of it."""

    def __init__(
        self, loss, n_outputs, data="dense", n_rows=60, weighted=False, favoured=False, dtype="d", C=2.0, unit=True
    ):
        random = np.random.default_rng(0)
        X = DATA[data](n_rows)[0].astype(dtype)
        rows = X.toarray() if sparse.issparse(X) else X
        name = "squared_epsilon_insensitive" if loss == "squared_error" else loss
        self.epsilon = {"squared_error": 0.0}.get(loss, 0.2)
        scores = np.sin(1.3 * rows @ random.normal(size=(rows.shape[1], n_outputs))) + random.normal(size=n_outputs) / 2
        y = reference.targets(name, scores + 0.3 * random.normal(size=scores.shape))
        weight = random.uniform(0.2, 3, size=n_rows) if weighted else None
        favour = random.uniform(0.5, 2, size=n_outputs) if favoured else None
        kernel = reference.kernel_of("gaussian", SETTINGS[data]["degree"], SETTINGS[data]["gamma"], unit=unit)
        losses = LABEL_LOSSES | JOINT_LOSSES
        the_loss = losses[loss] if loss in losses else regression_loss(loss, 0.2)
        self.expansion = Expansion(rows.shape[1], **kernel.parameters)
        self.problem = Problem(check_rows(X), y, weight, self.expansion, the_loss, C, favour=favour)
        mean = 1.0 if weight is None else weight.mean()
        omega = reference.weights(name, y, None if weight is None else weight / mean, favour)
        self.asked = reference.Asked(name, y, omega, self.epsilon)
        self.C, self.n_rows = C * mean, n_rows
        self.Phi = reference.Basis(rows.shape[1], kernel.degree).features(rows, kernel)
        self.K = self.Phi @ self.Phi.T

    @cached_property
    def optimum(self):
        """(lower, upper) end for each problem."""
        lower, upper, *_ = reference.optimum(self.asked, self.K, self.C)
        return lower / self.n_rows, upper / self.n_rows

    def objectives(self, alpha):
        """(primal, dual) for each problem, at w(alpha)."""
        primal, dual = reference.objectives(self.asked, self.K, self.C, alpha)
        return primal / self.n_rows, dual / self.n_rows

    def w_of(self, alpha):
        return self.C * self.Phi.T @ (alpha * self.asked.signs)

    def norms(self, w):
        return self.asked.per_problem((w**2).sum(axis=0))

    def primal_of(self, w):
        """The objective for each problem, at any w."""
        return self.norms(w) / (2 * self.C * self.n_rows) + self.asked.losses(self.Phi @ w).mean(axis=0)

    def weights_of(self, model):
        """The tables of a solver's model -> w; what is beyond the outputs has to be 0."""
        w = self.expansion.to_weights(model.astype(np.float64))
        assert not w[:, self.problem.n_outputs :].any()
        return w[:, : self.problem.n_outputs]


@pytest.fixture(scope="module")
def several():
    """The problems, made once."""
    return cache(Several)


def random_alpha(asked, seed=0):
    """A feasible dual point: the slopes at random outputs."""
    return asked.slopes(np.random.default_rng(seed).normal(size=asked.y.shape))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("loss", "n_outputs"), CASES)
class TestProblem:
    @pytest.mark.parametrize("unit", [True, False])
    def test_objectives_equal_the_reference(self, several, loss, n_outputs, data, weighted, unit):
        favoured = weighted and loss in LABEL_LOSSES
        case = several(loss, n_outputs, data, weighted=weighted, favoured=favoured, unit=unit)
        problem, asked = case.problem, case.asked
        assert problem.n_problems == len(asked.problems)
        assert problem.lambda_ == pytest.approx(1 / (case.C * case.n_rows))
        assert np.allclose(np.broadcast_to(problem.omega(), asked.omega.shape), asked.omega)
        assert np.allclose(problem.mean_weight(), asked.omega[:, [of[0] for of in asked.problems]].mean(axis=0))
        alpha = random_alpha(asked)
        w = case.w_of(alpha)
        table = problem.table()
        problem.add(table, alpha)
        assert np.allclose(case.weights_of(table), w, rtol=0, atol=1e-12 * np.abs(w).max())
        margins = problem.margins(table, case.expansion.margin)
        assert np.allclose(margins, asked.margins(case.Phi @ w), rtol=0, atol=1e-10)
        norm2 = problem.norm2(alpha, margins)
        assert np.allclose(norm2, case.norms(w), rtol=1e-10)
        primal, dual = case.objectives(alpha)
        assert np.allclose(problem.primal(margins, norm2), primal, rtol=1e-10)
        assert np.allclose(problem.dual(alpha, norm2), dual, rtol=1e-10, atol=1e-10)
        terms = problem.terms(margins, alpha)
        assert np.allclose(terms[2], primal - dual, rtol=1e-9)
        zero = np.zeros(asked.y.shape)
        assert np.allclose(problem.at_zero(), asked.losses(zero).mean(axis=0), rtol=1e-12)

    def test_optimum_lies_within_the_radius(self, several, loss, n_outputs, data, weighted):
        favoured = weighted and loss in LABEL_LOSSES
        for C in (0.1, 30.0):
            case = several(loss, n_outputs, data, weighted=weighted, favoured=favoured, n_rows=40, C=C)
            *_, alpha, _ = reference.optimum(case.asked, case.K, case.C)
            norms = np.sqrt(case.norms(case.w_of(alpha)))
            radius = case.problem.radius()
            assert radius.shape == norms.shape
            assert (norms <= radius * (1 + 1e-9)).all()
            # No more than what follows from convexity alone, lambda |w|^2 <= P(0).
            assert (case.problem.lambda_ * radius**2 <= case.problem.at_zero() * (1 + 1e-3)).all()

    def test_alphas_of_other_weights_and_labels_are_made_feasible(self, several, loss, n_outputs, data, weighted):
        case = several(loss, n_outputs, data, weighted=weighted)
        asked, alpha = case.asked, random_alpha(case.asked)
        same = case.problem.feasible(alpha)
        assert np.allclose(same, alpha, rtol=1e-14, atol=1e-15)
        assert not np.shares_memory(same, alpha)
        larger = np.random.default_rng(1).uniform(0.5, 3, size=(case.n_rows, 1)) * alpha
        brought = case.problem.feasible(larger)
        assert asked.feasible(brought, 1e-14)
        limit = asked.omega if case.problem.loss.lipschitz else np.inf
        inside = (np.abs(larger) <= limit).all(axis=1)
        assert np.allclose(brought[inside], larger[inside], rtol=1e-14, atol=1e-15)
        of_other_labels = alpha[np.random.default_rng(2).permutation(case.n_rows)]
        assert asked.feasible(case.problem.feasible(of_other_labels), 1e-14)

    def test_dual_points_of_margins_are_the_slopes(self, several, loss, n_outputs, data, weighted):
        case = several(loss, n_outputs, data, weighted=weighted)
        f = np.random.default_rng(2).normal(size=case.asked.y.shape)
        alpha = dual_start(case.problem, case.asked.margins(f))
        assert np.allclose(alpha, case.asked.slopes(f), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("loss", "n_outputs"), CASES)
class TestSolvers:
    @pytest.mark.parametrize(("weighted", "unit"), [(False, True), (True, True), (True, False)])
    def test_dual_solver_reaches_the_optimum_of_each_problem(self, several, loss, n_outputs, data, weighted, unit):
        favoured = weighted and loss in LABEL_LOSSES
        case = several(loss, n_outputs, data, weighted=weighted, favoured=favoured, unit=unit)
        solver = Dual(case.problem, np.random.RandomState(0), 1e-5)
        outcome = _train.train(solver, tol=1e-5, max_iter=5000)
        lower, upper = case.optimum
        record = outcome.record
        assert outcome.converged and not outcome.interrupted
        assert record.primal.shape == record.dual.shape == lower.shape
        assert (record.primal - record.dual <= 1e-5 * record.primal).all()
        assert (record.dual <= upper * (1 + 1e-9)).all() and (record.primal >= lower * (1 - 1e-9)).all()
        alpha, norm2 = solver.point()
        w = case.weights_of(solver.model())
        assert case.asked.feasible(alpha, 1e-13)
        assert np.allclose(w, case.w_of(alpha), rtol=0, atol=1e-9 * np.abs(w).max())
        assert np.allclose(norm2, case.norms(w), rtol=1e-9)
        assert np.allclose(record.primal, case.primal_of(w), rtol=1e-9)
        assert np.allclose(record.dual, case.objectives(alpha)[1], rtol=1e-9)

    def test_single_precision_is_enough_for_a_small_gap(self, several, loss, n_outputs, data):
        case = several(loss, n_outputs, data, dtype="f")
        solver = Dual(case.problem, np.random.RandomState(0), 1e-4)
        outcome = _train.train(solver, tol=1e-4, max_iter=2000)
        assert outcome.converged and solver.model().dtype == np.float32
        assert np.allclose(outcome.record.primal, case.primal_of(case.weights_of(solver.model())), rtol=1e-5)
        assert (outcome.record.dual <= case.optimum[1] * (1 + 1e-5)).all()

    @pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
    def test_stochastic_solvers_come_near_the_optimum_of_each_problem(self, several, loss, n_outputs, data, solver):
        case = several(loss, n_outputs, data)
        solver = _train.SOLVERS[solver](case.problem, np.random.RandomState(0), 1e-9)
        record = _train.train(solver, tol=1e-9, max_iter=100).record
        lower, upper = case.optimum
        assert (lower * (1 - 1e-9) <= record.primal).all() and (record.primal <= 1.05 * upper).all()
        assert np.allclose(record.primal, case.primal_of(case.weights_of(solver.model())), rtol=1e-9)
        if solver.certified:
            alpha, norm2 = solver.point()
            assert case.asked.feasible(alpha, 1e-12)
            assert np.allclose(norm2, case.norms(case.w_of(alpha)), rtol=1e-9)
            assert (record.dual <= upper * (1 + 1e-9)).all()
            assert np.allclose(record.dual, case.objectives(alpha)[1], rtol=1e-9, atol=1e-12)

    def test_solver_goes_on_from_a_dual_point(self, several, loss, n_outputs, data):
        case = several(loss, n_outputs, data)
        solver = Dual(case.problem, np.random.RandomState(0), 1e-4)
        n_cold = _train.train(solver, tol=1e-4, max_iter=2000).n_iter
        alpha = solver.point()[0].copy()
        warm = Dual(case.problem, np.random.RandomState(1), 1e-4, alpha.copy())
        before = case.objectives(alpha)[1]
        outcome = _train.train(warm, tol=1e-4, max_iter=2000)
        assert outcome.converged and outcome.n_iter <= max(n_cold / 2, 2) and outcome.n_iter <= 8
        assert (outcome.record.dual >= before * (1 - 1e-12)).all()

    def test_after_ctrl_c_w_and_alpha_belong_together(self, several, loss, n_outputs, data, monkeypatch):
        case = several(loss, n_outputs, data)
        solver, seen = Dual(case.problem, np.random.RandomState(0), 1e-9), []
        run = solver.team.run

        def stopped(*args):
            run(*args)
            seen.append(solver.point()[0].copy())
            if len(seen) == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(solver.team, "run", stopped)
        monkeypatch.setattr(case.problem, "passes", lambda n, block=8: ((i, min(i + 16, n)) for i in range(0, n, 16)))
        outcome = _train.train(solver, tol=1e-9, max_iter=5)
        alpha, norm2 = solver.point()
        assert outcome.interrupted and outcome.n_iter == 0
        assert not np.array_equal(seen[1], alpha)
        w = case.w_of(alpha)
        assert np.allclose(case.weights_of(solver.model()), w, rtol=0, atol=1e-11 * np.abs(w).max())
        assert np.allclose(norm2, case.norms(w), rtol=1e-9)


def test_ridge_regression_is_scikit_learns():
    """C sum e^2 + |w|^2 / 2 is sum e^2 + |w|^2 / (2 C)."""
    case = Several("squared_error", 2)
    solver = Dual(case.problem, np.random.RandomState(0), 1e-12)
    _train.train(solver, tol=1e-12, max_iter=3000)
    ridge = KernelRidge(alpha=1 / (2 * case.C), kernel="precomputed").fit(case.K, case.asked.y)
    assert np.allclose(case.Phi @ case.weights_of(solver.model()), ridge.predict(case.K), rtol=0, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_epsilon_insensitive"])
def test_outputs_that_have_converged_are_left_alone(loss):
    """One of them is easy: all of its targets are alike, and near 0."""
    case = Several(loss, 3, C=20.0)
    y = case.asked.y.copy()
    y[:, 1] = -1 if loss == "hinge" else 0.25
    problem = Problem(case.problem.rows.X, y, None, case.expansion, case.problem.loss, case.C)
    solver = Dual(problem, np.random.RandomState(0), 1e-5)
    alphas = []
    for _ in range(3000):
        record = solver.epoch()
        alphas.append((solver.live.copy(), solver.alpha[:, 1].copy()))
        if (record.primal - record.dual <= 1e-5 * record.primal).all():
            break
    settled = [alpha for live, alpha in alphas if not live[1]]
    assert 5 < len(settled) < len(alphas)
    assert all(np.array_equal(alpha, settled[0]) for alpha in settled)
    asked = case.asked._replace(y=y)
    lower, upper, *_ = reference.optimum(asked, case.K, case.C)
    assert (record.dual <= upper / case.n_rows * (1 + 1e-9)).all()
    assert (record.primal <= lower / case.n_rows * (1 + 1.1e-5)).all()


def test_an_output_that_is_left_alone_is_seen_as_it_is():
    solver = Dual(Several("hinge", 3, C=20.0).problem, np.random.RandomState(0), 1e-9)
    for _ in range(4):
        before = solver.known(solver.epoch())
    gaps = (before.primal - before.dual) / before.primal
    assert gaps.min() > 0.01
    solver.tol = np.sort(gaps)[:2].mean()  # enough for one of them
    before = solver.known(before._replace(primal=np.full(3, np.nan)))
    (alone,) = np.flatnonzero(solver.live == 0)
    solver.tol = 1e-9
    after = solver.epoch()
    for values in (after.primal, after.seen):
        assert values[alone] == pytest.approx(before.primal[alone], rel=1e-12)
    assert after.dual[alone] == pytest.approx(before.dual[alone], rel=1e-12)
    assert (np.delete(after.dual, alone) > np.delete(before.dual, alone)).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss", "epsilon_insensitive", "squared_error"])
@pytest.mark.parametrize("data", DATA)
def test_pegasos_does_for_each_output_what_it_does_for_one(loss, data):
    """The rows come in the same order, and outputs have nothing to do with one another."""
    case = Several(loss, 5, data)
    together = _train.SOLVERS["pegasos"](case.problem, np.random.RandomState(0), 1e-9)
    outcome = _train.train(together, tol=1e-9, max_iter=5)
    for k in (0, 3, 4):
        y = np.ascontiguousarray(case.asked.y[:, [k]])
        problem = Problem(case.problem.rows.X, y, None, case.expansion, case.problem.loss, case.C)
        alone = _train.SOLVERS["pegasos"](problem, np.random.RandomState(0), 1e-9)
        record = _train.train(alone, tol=1e-9, max_iter=5).record
        assert np.allclose(alone.model()[:, 0], together.model()[:, k], rtol=0, atol=1e-11)
        assert record.primal[0] == pytest.approx(outcome.record.primal[k], rel=1e-11)
        assert record.dual[0] == pytest.approx(outcome.record.dual[k], rel=1e-11, abs=1e-12)


@pytest.mark.parametrize(("dtype", "widths"), [("d", [1, 4, 4, 4, 8, 28]), ("f", [1, 8, 8, 8, 8, 32])])
def test_several_tables_are_padded_to_vectors_of_32_bytes(dtype, widths):
    assert [padded(n, dtype) for n in (1, 2, 3, 4, 5, 26)] == widths


# Ctrl-C.


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_ctrl_c_between_any_two_lines_leaves_a_model(solver):
    X, y = dense_data(60)
    model = TaylorSVC(solver=solver, tol=1e-9, random_state=0)
    # These rows are one pass, and so the model is that of the epochs that were noted, or of one more; but AdaGrad's.
    more = 1 if solver != "adagrad" else None
    whole = {n: clone(model).set_params(max_iter=n).fit(X, y).monomial_coef_ for n in (1, 2, 3)}
    watched = {module.__file__ for module in (_train, _observe, _dual, _primal)}
    seen, at = 0, None  # lines; and the one where it comes

    def trace(frame, event, argument):
        nonlocal seen
        if frame.f_code.co_filename not in watched:
            return None
        if event == "line":
            seen += 1
            if seen == at:
                raise KeyboardInterrupt
        return trace

    def watched_fit():
        nonlocal seen
        fitted, seen = clone(model).set_params(max_iter=3), 0
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            fitted.fit(X, y)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return fitted

    watched_fit()
    ends = set()
    for at in range(1, seen + 1):
        stopped = watched_fit()
        ends.add(getattr(stopped, "n_iter_", 0))
        if hasattr(stopped, "monomial_coef_"):
            assert len(stopped.history_["epoch"]) == stopped.n_iter_, at
            n, coef = stopped.n_iter_, stopped.monomial_coef_
            assert np.isfinite(coef).all() and coef.any(), at
            if more is not None:
                known = [whole[i] for i in range(n, min(n + more, 3) + 1)]
                assert any(np.allclose(coef, one, rtol=0, atol=1e-13) for one in known), at
    assert ends == {0, 1, 2, 3}


CHILD = """
    import json, os, signal, sys, threading, time, warnings
    import numpy as np
    from taylorkern import TaylorSVC, taylor_kernel

    warnings.simplefilter("ignore")
    random = np.random.default_rng(0)
    X = random.normal(size=(12_000, 12))
    y = random.integers(0, 2, size=len(X))


    def stopped_after(work, delay=0.4):
        \"\"\"Seconds from SIGINT, sent after a while, to KeyboardInterrupt; None when that was not raised.\"\"\"
        sent = []

        def send():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(delay, send).start()
        try:
            work()
        except KeyboardInterrupt:
            return time.perf_counter() - sent[0]
        return None


    def sound(model, fresh, solver):
        \"\"\"Whether the model is what it ought to be: the dual's is that of its alpha.\"\"\"
        if solver == "pegasos":
            return bool(np.array_equal(model.monomial_coef_, fresh.monomial_coef_))
        if solver == "adagrad":
            return bool(model.score(X, y) > 0.55)
        known = {"degree": 3, "gamma": 0.05, "normalize": True}
        f = 100 * taylor_kernel(X[:99] - model.shift_, X - model.shift_, **known) @ (model._alpha[:, 0] * (2 * y - 1))
        return bool(np.allclose(model.decision_function(X[:99]), f, rtol=0, atol=1e-8 * np.abs(f).max()))


    def interrupted_fit(solver, n_jobs):
        model = TaylorSVC(degree=3, gamma=0.05, C=100.0, solver=solver, tol=1e-12, max_iter=10**7, n_jobs=n_jobs,
                          random_state=0, warm_start=True)
        begin = time.perf_counter()
        TaylorSVC(**model.get_params()).set_params(max_iter=1).fit(X, y)  # how long an epoch takes, with all around it
        seconds = stopped_after(lambda: model.fit(X, y), 0.4 + 2 * (time.perf_counter() - begin))
        fresh = TaylorSVC(**model.get_params()).set_params(max_iter=model.n_iter_, n_jobs=1).fit(X, y)
        return {
            "seconds": seconds,
            "n_iter": model.n_iter_,
            "marks": [model.interrupted_, fresh.interrupted_],
            "lengths": sorted({len(column) for column in model.history_.values()}),
            "interval": model.certificate_.exact_interval,
            "sound": sound(model, fresh, solver),
        }


    def interrupted_predict(n_jobs):
        model = TaylorSVC(degree=6, gamma=0.05, max_iter=1, shift=None, n_jobs=n_jobs).fit(X[:200], y[:200])
        return {"seconds": stopped_after(lambda: [model.predict(many) for _ in range(1000)])}


    def interrupted_stream():
        model = TaylorSVC(degree=6, gamma=0.05, shift=None, random_state=0)
        model.partial_fit(X[:200], y[:200], classes=[0, 1])
        seconds = stopped_after(lambda: model.partial_fit(many, np.tile(y, 12)))
        return {"seconds": seconds, "finite": bool(np.isfinite(model.partial_fit(X[:9], y[:9]).monomial_coef_).all())}


    out = {solver: interrupted_fit(solver, n_jobs) for solver, n_jobs in [("dual", 1), ("pegasos", 2), ("adagrad", 1)]}
    many = np.tile(X, (12, 1))
    out |= {f"predict {n_jobs}": interrupted_predict(n_jobs) for n_jobs in (1, 2)}
    out["stream"] = interrupted_stream()
    print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def after_ctrl_c():
    """What a process found that was sent SIGINT in the middle of fits and predictions of several seconds."""
    if os.name == "nt":
        pytest.skip("Windows has no SIGINT for one process")
    child = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(CHILD)], capture_output=True, text=True, check=False, timeout=120
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


SOON = 1.5  # a quarter second, and what a busy machine adds


@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_stops_fit_soon_and_leaves_the_model_so_far(solver, after_ctrl_c):
    found = after_ctrl_c[solver]
    assert found["seconds"] is not None, "KeyboardInterrupt was not raised"
    assert found["seconds"] < SOON
    assert found["n_iter"] >= 1 and found["lengths"] == [found["n_iter"]]
    assert found["marks"] == [True, False]
    assert 0 == found["interval"][0] < found["interval"][1] <= 1
    assert found["sound"]


def test_ctrl_c_stops_partial_fit_soon_and_the_stream_can_go_on(after_ctrl_c):
    assert after_ctrl_c["stream"]["seconds"] < SOON
    assert after_ctrl_c["stream"]["finite"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_predict_soon(n_jobs, after_ctrl_c):
    assert after_ctrl_c[f"predict {n_jobs}"]["seconds"] < SOON
