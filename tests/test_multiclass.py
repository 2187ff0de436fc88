"""TaylorSVC of several classes, and of several labels a row: LIBLINEAR's optimum, and scikit-learn's contract."""

import pickle
import re
import sys
import tracemalloc
from math import comb, inf, nan

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.special import expit, logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from taylorkern import TaylorFeatures, TaylorSVC
from taylorkern._data import rows as _rows

KINDS = {
    "hinge": {"multi_class": "ovr", "loss": "hinge"},
    "squared_hinge": {"multi_class": "ovr", "loss": "squared_hinge"},
    "log_loss": {"multi_class": "ovr", "loss": "log_loss"},
    "crammer_singer": {"multi_class": "crammer_singer", "loss": "hinge"},
    "multinomial": {"multi_class": "multinomial", "loss": "log_loss"},
}
ONE_BY_ONE, JOINT = ("hinge", "squared_hinge", "log_loss"), ("crammer_singer", "multinomial")
SOLVERS = ("dual", "pegasos", "adagrad")

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# Two test sets; classes are 0, 1, ... and of different sizes.


def classes_of(score, n_classes):
    shares = np.arange(1, n_classes + 1) / comb(n_classes + 1, 2)
    y = np.digitize(score, np.quantile(score, np.cumsum(shares)[:-1]))
    y[:n_classes] = np.arange(n_classes)
    return y


def dense_data(n_rows=201, n_classes=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)) + np.array([0.5, -1.0, 0.0, 2.0])
    score = np.sin(2 * X[:, 0]) + (X[:, 1] + 1) * X[:, 2] + 0.4 * random.normal(size=n_rows)
    return X, classes_of(score, n_classes)


def sparse_data(n_rows=253, n_classes=5, seed=0):
    """CSR rows: columns of 0 and 1, one of them mostly 1, and two of other numbers."""
    random = np.random.default_rng(seed)
    X = (random.uniform(size=(n_rows, 9)) < [0.1, 0.3, 0.9, 0.2, 0.4, 0.05, 0.3, 0.3, 0.2]).astype(float)
    X[:, 7:] *= random.normal(size=(n_rows, 2))
    score = X[:, 1] + X[:, 2] * X[:, 4] - X[:, 3] + X[:, 7] + 0.4 * random.normal(size=n_rows)
    return sparse.csr_array(X), classes_of(score, n_classes)


DATA = {"dense": dense_data, "sparse": sparse_data}
SETTINGS = {
    "dense": {"degree": 3, "gamma": 0.15, "C": 2.0, "random_state": 0},
    "sparse": {"degree": 2, "gamma": 0.2, "C": 1.0, "random_state": 0},
}


def labels_data(n_rows=150, n_labels=3, seed=0):
    """An indicator matrix."""
    X, _ = dense_data(n_rows, seed=seed)
    score = np.column_stack([np.sin(X[:, 0] + k) + X[:, 1] * X[:, 2] * (k % 2) for k in range(n_labels)])
    return X, (score > 0.3).astype(int)


def as_array(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


# What is trained, as a linear model on stored features.


def stored_features(model, X):
    unit = model.kernel == "gaussian" if model.normalize == "auto" else model.normalize
    kernel = {"kernel": model.kernel, "coef0": model.coef0, "normalize": unit}
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, **kernel)
    out = features.fit_transform(as_array(X).astype(np.float64) - model.shift_)
    return as_array(out)


def losses(kind, f, y):
    """The loss of each row and class [n, K]; for the joint ones of each row, [n, 1]."""
    own = np.arange(f.shape[1]) == y[:, None]
    if kind == "crammer_singer":
        return (np.where(own, f, f + 1).max(axis=1) - f[own])[:, None]
    if kind == "multinomial":
        return (logsumexp(f, axis=1) - f[own])[:, None]
    v = np.where(own, f, -f)
    return {
        "hinge": np.maximum(0, 1 - v),
        "squared_hinge": np.maximum(0, 1 - v) ** 2,
        "log_loss": np.logaddexp(0, -v),
    }[kind]


def objectives(kind, W, Phi, y, C, weight=None, per_class=None):
    """lambda/2 |w|^2 + mean loss, lambda = 1 / (C sum of weights): of each class, or of the joint problem."""
    W = np.asarray(W, dtype=np.float64)
    weight, per_class = np.ones(len(y)) if weight is None else weight, per_class or {}
    per_class = np.array([per_class.get(k, 1.0) for k in range(len(W))])
    loss, norm2 = losses(kind, Phi @ W.T, y), (W**2).sum(axis=1)
    if kind in JOINT:
        weight = weight * per_class[y]
        return (norm2.sum(keepdims=True) / (2 * C) + weight @ loss) / weight.sum()
    omega = weight[:, None] * np.where(np.arange(len(W)) == y[:, None], per_class, 1.0)
    return (norm2 / (2 * C) + (omega * loss).sum(axis=0)) / weight.sum()


def optimal_weights(kind, Phi, y, C, class_weight=None, weight=None, per_class=None):
    """What scikit-learn's solvers find."""
    if kind == "multinomial":
        linear = LogisticRegression(C=C, fit_intercept=False, tol=1e-7, max_iter=100_000, class_weight=class_weight)
        return linear.fit(Phi, y, sample_weight=weight).coef_
    if kind == "log_loss":
        linear = LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=1000)
        weight, per_class = np.ones(len(y)) if weight is None else weight, per_class or {}
        of_class = (weight * np.where(y == k, per_class.get(k, 1.0), 1.0) for k in np.unique(y))
        fits = zip(np.unique(y), of_class, strict=True)
        return np.concatenate([linear.fit(Phi, y == k, sample_weight=omega).coef_ for k, omega in fits])
    linear = LinearSVC(C=C, dual=True, fit_intercept=False, class_weight=class_weight, max_iter=1_000_000)
    linear.set_params(tol=1e-7, random_state=0, **KINDS[kind])
    return linear.fit(Phi, y, sample_weight=weight).coef_


def true_objectives(model, kind, X, y, weight=None, per_class=None):
    """Of the model's own weights, which must be one for each class."""
    return objectives(kind, model.monomial_coef_, stored_features(model, X), y, model.C, weight, per_class)


def sample_weight(n_rows):
    random = np.random.default_rng(7)
    return random.uniform(0.5, 1.5, size=n_rows) * (random.uniform(size=n_rows) < 0.8)


# (class_weight, with sample_weight)
WEIGHTS = {
    "no weights": (None, False),
    "balanced": ("balanced", False),
    "by class": ({0: 2.5, 1: 0.4, 3: 1.5}, False),
    "by row": (None, True),
    "by class and row": ({0: 3.0, 2: 0.5}, True),
}


def weights_of(name, y):
    """(class_weight, sample_weight, the weight of each class)."""
    class_weight, by_row = WEIGHTS[name]
    per_class = class_weight
    if class_weight == "balanced":
        counts = np.bincount(y)
        per_class = dict(enumerate(len(y) / (len(counts) * counts)))
    return class_weight, sample_weight(len(y)) if by_row else None, per_class


def certified(certificate):
    """The certificates of single problems."""
    return certificate.parts or (certificate,)


# The optimum.


@pytest.mark.parametrize(("weights", "normalize"), [*((name, "auto") for name in WEIGHTS), ("by class and row", False)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_dual_objectives_and_weights_equal_those_of_scikit_learn(data, kind, weights, normalize):
    X, y = DATA[data]()
    class_weight, weight, per_class = weights_of(weights, y)
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], class_weight=class_weight, tol=1e-5, max_iter=10_000)
    model.set_params(normalize=normalize).fit(X, y, sample_weight=weight)
    found = true_objectives(model, kind, X, y, weight, per_class)
    Phi = stored_features(model, X)
    W = optimal_weights(kind, Phi, y, model.C, class_weight, weight, per_class)
    best = objectives(kind, W, Phi, y, model.C, weight, per_class)
    assert len(best) == len(found) == (1 if kind in JOINT else len(np.unique(y)))
    assert (best * (1 - 1e-7) <= found).all() and (found <= best * (1 + 1.1e-5)).all()  # tol promises 1e-5
    parts = certified(model.certificate_)
    assert np.allclose([part.primal for part in parts], found, rtol=1e-9)
    assert (np.array([part.dual for part in parts]) <= best * (1 + 1e-7)).all()
    # Strong convexity: so far can w be from the optimum, which is unique.
    total = len(y) if weight is None else weight.sum()
    if kind in JOINT and per_class:
        omega = np.array([per_class.get(k, 1.0) for k in y]) * (1 if weight is None else weight)
        total = omega.sum()
    reach = np.sqrt(2 * model.C * total * (np.abs(found - best) + 1e-7 * best).sum())
    assert np.linalg.norm(model.monomial_coef_ - W) <= reach < 0.1 * np.linalg.norm(W)


@pytest.mark.parametrize("kind", ["log_loss", "hinge", "squared_hinge"])
def test_one_against_the_rest_is_what_the_meta_estimator_of_scikit_learn_does(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], shift=None, tol=1e-7, max_iter=100_000).fit(X, y)
    Phi = TaylorFeatures(degree=3, gamma=0.15, normalize=True).fit_transform(X)
    if kind == "log_loss":
        linear = LogisticRegression(C=2.0, fit_intercept=False, solver="newton-cg", tol=1e-8, max_iter=1000)
    else:
        linear = LinearSVC(C=2.0, loss=kind, dual=True, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0)
    meta = OneVsRestClassifier(linear).fit(Phi, y)
    assert np.allclose(model.decision_function(X), meta.decision_function(Phi), rtol=0, atol=5e-3)
    assert (model.predict(X) == meta.predict(Phi)).mean() > 0.99
    if kind == "log_loss":
        assert np.allclose(model.predict_proba(X), meta.predict_proba(Phi), rtol=0, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_come_within_five_percent(data, solver, kind, weighted):
    X, y = DATA[data]()
    class_weight, weight, per_class = weights_of("by class and row" if weighted else "no weights", y)
    n_epochs = 100 if (kind, solver) == ("squared_hinge", "pegasos") else 30  # its steps are short at first
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, class_weight=class_weight, tol=1e-9)
    model.set_params(max_iter=n_epochs).fit(X, y, sample_weight=weight)
    Phi = stored_features(model, X)
    W = optimal_weights(kind, Phi, y, model.C, class_weight, weight, per_class)
    best = objectives(kind, W, Phi, y, model.C, weight, per_class)
    found = true_objectives(model, kind, X, y, weight, per_class)
    assert (best * (1 - 1e-7) <= found).all() and found.sum() <= 1.05 * best.sum()
    parts = certified(model.certificate_)
    assert np.allclose([part.primal for part in parts], found, rtol=1e-9)
    if solver == "pegasos":
        assert (np.array([part.dual for part in parts]) <= best * (1 + 1e-7)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_single_precision_costs_no_more_than_its_rounding(data, kind):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], tol=1e-4, max_iter=10_000).fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == np.float32
    Phi = stored_features(model, X)
    best = objectives(kind, optimal_weights(kind, Phi, y, model.C), Phi, y, model.C)
    found = true_objectives(model, kind, X, y)
    assert (best * (1 - 1e-6) <= found).all() and (found <= best * (1 + 1.2e-4)).all()
    assert np.allclose([part.primal for part in certified(model.certificate_)], found, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["pegasos", "adagrad"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_stochastic_solvers_work_in_single_precision(data, solver, kind):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, tol=1e-9, max_iter=30)
    double = model.fit(X, y).certificate_.primal
    model.fit(X.astype("f"), y)
    assert model.monomial_coef_.dtype == np.float32 and np.isfinite(model.monomial_coef_).all()
    assert true_objectives(model, kind, X, y).sum() == pytest.approx(double, rel=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [3, 5, 8, 9, 17])
@pytest.mark.parametrize("kind", ["squared_hinge", "crammer_singer", "multinomial"])
def test_any_number_of_classes_is_trained(kind, n_classes, dtype):
    """Tables lie side by side in whole vectors: the last one may be full or not."""
    X, y = dense_data(120, n_classes)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-4, max_iter=10_000).fit(X.astype(dtype), y)
    assert model.monomial_coef_.shape == (n_classes, comb(7, 3)) and model.decision_function(X).shape == (
        120,
        n_classes,
    )
    parts = certified(model.certificate_)
    assert len(parts) == (1 if kind in JOINT else n_classes)
    found = true_objectives(model, kind, X, y)
    assert np.allclose([part.primal for part in parts], found, rtol=1e-9 if dtype == np.float64 else 1e-4)
    if kind != "multinomial":
        Phi = stored_features(model, X)
        best = objectives(kind, optimal_weights(kind, Phi, y, model.C), Phi, y, model.C)
        assert (best * (1 - 1e-6) <= found).all() and (found <= best * (1 + 1.3e-4)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["hinge", "crammer_singer"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_each_instruction_set_finds_the_optimum(data, kind, solver, instruction_set):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], max_iter=10_000)
    best = model.fit(X, y).certificate_.dual
    model.set_params(solver=solver, tol=1e-9, max_iter=20).fit(X, y)
    assert best <= true_objectives(model, kind, X, y).sum() <= 1.05 * best


@pytest.mark.parametrize("kind", ONE_BY_ONE)
@pytest.mark.parametrize("data", DATA)
def test_classes_one_against_the_rest_are_as_many_binary_fits(data, kind):
    """Both P(w) - P* and P* - D are at least lambda/2 |w - w*|^2 when w = w(alpha): |w - w*|^2 <= gap / lambda."""
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], tol=1e-6, max_iter=100_000)
    together = clone(model).fit(X, y)
    f = together.decision_function(X)
    for k, part in enumerate(together.certificate_.parts):
        alone = clone(model).fit(X, y == k)
        gaps = part.gap + alone.certificate_.gap
        lambda_ = 1 / (model.C * len(y))
        reach = np.sqrt(2 / lambda_ * gaps)  # |phi(x)| <= 1
        assert np.linalg.norm(together.monomial_coef_[k] - alone.monomial_coef_[0]) <= reach
        assert np.abs(f[:, k] - alone.decision_function(X)).max() <= reach < 0.04
        assert part.primal == pytest.approx(alone.certificate_.primal, rel=2e-6)
    assert np.ptp(f) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_any_tolerance_can_be_reached(kind):
    X, y = dense_data(120)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-9, max_iter=20_000).fit(X, y)
    assert all(part.relative_gap <= 1e-9 for part in certified(model.certificate_))


@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_left_out_to_the_accuracy_of_the_gap(kind):
    X, y = dense_data(100)
    repeats = np.random.default_rng(1).integers(0, 4, size=100)
    model = TaylorSVC(degree=3, gamma=0.15, **KINDS[kind], tol=1e-8, max_iter=50_000, random_state=0)
    model.set_params(shift=[0.5, -1.0, 0.0, 2.0])  # the one that is chosen would depend on how often a row is there
    weighted = clone(model).fit(X, y, sample_weight=repeats)
    at = np.repeat(np.arange(100), repeats)
    repeated = clone(model).fit(X[at], y[at])
    one, other = weighted.certificate_, repeated.certificate_
    assert one.primal == pytest.approx(other.primal, rel=2e-8)
    reach = np.sqrt(2 * repeats.sum() * (one.gap + other.gap))
    assert np.abs(weighted.decision_function(X) - repeated.decision_function(X)).max() <= reach < 0.01


# Two classes that are trained together.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", JOINT)
@pytest.mark.parametrize("data", DATA)
@slow
def test_two_classes_have_one_function(data, kind, solver):
    X, y = DATA[data](n_classes=2)
    words = np.array(["no", "yes"])[y]
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, max_iter=30).fit(X, words)
    f = model.decision_function(X)
    assert f.shape == (len(y),) and model.monomial_coef_.shape == (1, model.n_slots_)
    assert np.allclose(stored_features(model, X) @ model.monomial_coef_[0], f, rtol=1e-10, atol=1e-10)
    assert np.array_equal(model.predict(X), np.where(f > 0, "yes", "no"))
    assert model.score(X, words) > 0.75
    assert [m.weight for m in model.top_monomials(3)] == [m.weight for m in model.top_monomials(3, label="yes")]
    if kind == "multinomial":
        assert np.allclose(model.predict_proba(X), np.column_stack([expit(-f), expit(f)]), rtol=1e-12)
        assert np.allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-9)


@pytest.mark.parametrize("kind", JOINT)
def test_two_classes_together_are_a_binary_problem_of_twice_the_C(kind):
    """w_1 = -w_0 at the optimum: |w_0|^2 + |w_1|^2 is half of |w_1 - w_0|^2."""
    X, y = dense_data(n_classes=2)
    together = TaylorSVC(degree=3, gamma=0.15, C=1.0, **KINDS[kind], tol=1e-8, max_iter=100_000, random_state=0)
    binary = clone(together).set_params(multi_class="ovr", C=2.0).fit(X, y)
    together.fit(X, y)
    assert together.certificate_.parts == ()
    assert together.certificate_.primal == pytest.approx(binary.certificate_.primal, rel=2e-8)
    assert together.certificate_.dual == pytest.approx(binary.certificate_.dual, rel=2e-8)
    assert np.abs(together.monomial_coef_ - binary.monomial_coef_).max() < 1e-3 * np.abs(binary.monomial_coef_).max()


@pytest.mark.parametrize("kind", JOINT)
@slow
def test_two_classes_together_can_go_on(kind):
    """The model holds their difference; partial_fit, certify and warm starts take it from there."""
    X, y = dense_data(n_classes=2)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-5, max_iter=10_000, warm_start=True).fit(X, y)
    reached, n_first = model.certificate_, model.n_iter_
    assert model.certify(X, y).primal == pytest.approx(reached.primal, rel=1e-5)
    model.fit(X, y)
    assert model.n_iter_ < n_first / 2
    model.partial_fit(X, y)
    assert model.certify(X, y).primal < 1.1 * reached.primal
    fresh = TaylorSVC(**SETTINGS["dense"], **KINDS[kind]).partial_fit(X, y, classes=[0, 1])
    first = fresh.certify(X, y).primal
    assert fresh.partial_fit(X, y).decision_function(X).shape == (len(y),)
    assert fresh.certify(X, y).primal < first


def test_two_classes_may_be_trained_otherwise_from_batch_to_batch():
    X, y = dense_data(n_classes=2)
    for old, new in (("hinge", "crammer_singer"), ("crammer_singer", "hinge")):
        model = TaylorSVC(**SETTINGS["dense"], **KINDS[old]).partial_fit(X, y, classes=[0, 1])
        before = model.set_params(**KINDS[new]).certify(X, y).primal
        model.partial_fit(X, y)
        assert model.certify(X, y).primal < before and model.monomial_coef_.shape == (1, comb(7, 3))


# Prediction.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_decision_values_are_features_of_shifted_rows_times_coef(data, solver, kind, dtype):
    X, y = DATA[data]()
    X = X.astype(dtype)
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, max_iter=5).fit(X, y)
    new = DATA[data](50, seed=1)[0].astype(dtype)
    f, n_classes = model.decision_function(new), y.max() + 1
    assert f.shape == (50, n_classes) and f.dtype == model.monomial_coef_.dtype == dtype
    assert model.monomial_coef_.shape == (n_classes, model.n_slots_)
    expected = stored_features(model, new) @ model.monomial_coef_.T.astype(np.float64)
    assert np.ptp(expected) > 0.1
    close = 1e-10 if dtype == np.float64 else 1e-4 * np.abs(expected).max()
    assert np.allclose(f, expected, rtol=1e-10, atol=close)
    assert np.array_equal(model.predict(new), model.classes_[f.argmax(axis=1)])
    again = sparse.csc_matrix(new) if data == "dense" else as_array(new)
    assert np.allclose(model.decision_function(again), f, rtol=0, atol=close)
    assert np.allclose(np.concatenate([model.decision_function(x[None]) for x in as_array(new)[:9]]), f[:9], atol=close)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_learnt(kind):
    """Rings around the origin, which no linear model can tell apart."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = np.digitize((X**2).sum(axis=1), [0.6, 2.0])
    train, test = slice(400), slice(400, None)
    exact = SVC(gamma=0.5).fit(X[train], y[train]).score(X[test], y[test])
    model = TaylorSVC(degree=6, gamma=0.5, C=10.0, **KINDS[kind], random_state=0).fit(X[train], y[train])
    assert exact > 0.9 and model.score(X[test], y[test]) >= exact - 0.03
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["b", "a", "c", "d"]),
        np.array(["blue", "red", "green", "black"], dtype=object),
        np.array([7, -3, 0, 100]),
        np.array([2.0, 1.0, 4.0, 3.0]),
        np.array([3, 2, 1, 0], dtype=np.uint8),
    ],
    ids=lambda labels: f"{labels.dtype} {labels[0]}",
)
@pytest.mark.parametrize("kind", ["hinge", "crammer_singer"])
def test_labels_of_any_kind_come_back_from_predict(labels, kind):
    X, number = dense_data()
    y = labels[number]
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind]).fit(X, y)
    assert model.classes_.tolist() == sorted(labels.tolist())
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype == labels.dtype
    assert (predicted == y).mean() > 0.5
    assert np.array_equal(predicted, model.classes_[model.decision_function(X).argmax(axis=1)])


@pytest.mark.parametrize("kind", KINDS)
@slow
def test_names_of_labels_do_not_change_the_model(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], max_iter=5)
    coef = model.fit(X, y).monomial_coef_
    assert np.array_equal(model.fit(X, np.array(["a", "b", "c", "d"])[y]).monomial_coef_, coef)
    assert np.array_equal(model.fit(X, (10 * y).tolist()).monomial_coef_, coef)
    turned = model.fit(X, 3 - y).monomial_coef_[::-1]
    assert np.allclose(turned, coef, rtol=0, atol=1e-9 * np.abs(coef).max())


def test_no_rows_have_no_values():
    X, y = dense_data()
    for kind in KINDS:
        model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind]).fit(X, y)
        for empty in (np.zeros((0, 4)), sparse.csr_array((0, 4))):
            assert model.decision_function(empty).shape == (0, 4)
            assert model.predict(empty).shape == (0,) and model.predict(empty).dtype == y.dtype
            if model.loss == "log_loss":
                assert model.predict_proba(empty).shape == (0, 4)


# Probabilities.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_one_against_the_rest_are_divided_by_their_sum(dtype):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], loss="log_loss").fit(X.astype(dtype), y)
    p, single = model.predict_proba(X), expit(model.decision_function(X))
    assert p.shape == (len(y), 4)
    close = {"rtol": 1e-5 if dtype == np.float32 else 1e-13}
    assert np.allclose(p.sum(axis=1), 1, **close)
    assert np.allclose(p, single / single.sum(axis=1, keepdims=True), **close)
    assert np.allclose(np.exp(model.predict_log_proba(X)), p, **close)
    assert np.array_equal(p.argmax(axis=1), model.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multinomial_probabilities_are_the_softmax(dtype):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS["multinomial"]).fit(X.astype(dtype), y)
    p = model.predict_proba(X)
    close = {"rtol": 1e-5 if dtype == np.float32 else 1e-13}
    assert p.shape == (len(y), 4) and np.allclose(p.sum(axis=1), 1, **close)
    assert np.allclose(p, softmax(model.decision_function(X), axis=1), **close)
    assert np.allclose(np.exp(model.predict_log_proba(X)), p, **close)
    assert np.array_equal(p.argmax(axis=1), model.predict(X))


def test_multinomial_probabilities_are_calibrated():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2))
    truth = softmax(1.5 * np.column_stack([X[:, 0] * X[:, 1], X[:, 0], -X[:, 1]]), axis=1)
    y = (random.uniform(size=(3000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    p = TaylorSVC(**KINDS["multinomial"], gamma=0.3, degree=4, C=3.0, random_state=0).fit(X, y).predict_proba(X)
    assert np.abs(p - truth).mean() < 0.04


@pytest.mark.parametrize("kind", ["log_loss", "multinomial"])
def test_rows_far_from_all_classes_have_probabilities_too(kind):
    """Large decision values, in both directions: nothing overflows, and rows still add up to 1."""
    X, y = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([0, 1, 2, 2])
    model = TaylorSVC(**KINDS[kind], kernel="polynomial", degree=1, gamma=1.0, C=100.0, max_iter=10_000)
    p = model.fit(X, y).predict_proba([[1e6], [-1e6], [0.0]])
    assert np.abs(model.decision_function([[1e6]])).max() > 800
    assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)
    assert p[0].argmax() == 2 and p[1].argmax() == 0
    logarithms = model.predict_log_proba([[1e6], [-1e6]])
    assert not np.isnan(logarithms).any() and logarithms[0, 2] == pytest.approx(0, abs=1e-6)
    if kind == "multinomial":
        f = model.decision_function([[1e6]])[0]
        assert logarithms[0, 0] == pytest.approx(f[0] - f[2], rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_log_losses_have_probabilities(kind):
    X, y = dense_data()
    for model in (TaylorSVC(**KINDS[kind]), TaylorSVC(**KINDS[kind]).fit(X, y)):
        there = kind in ("log_loss", "multinomial")
        assert hasattr(model, "predict_proba") == hasattr(model, "predict_log_proba") == there


def test_probabilities_ask_for_fit_first():
    for kind in ("log_loss", "multinomial"):
        for name in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
            with pytest.raises(NotFittedError):
                getattr(TaylorSVC(**KINDS[kind]), name)(np.zeros((3, 2)))


# The certificate.


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["dual", "pegasos"])
@slow
def test_certificates_have_a_part_for_each_class_and_their_sum(solver, kind, normalize):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], normalize=normalize, solver=solver, tol=0.05, max_iter=300)
    whole = model.fit(X, y).certificate_
    assert 0 < whole.relative_gap <= 0.05 and whole.relative_gap == pytest.approx(whole.gap / whole.primal)
    assert whole.gap == pytest.approx(whole.primal - whole.dual)
    assert whole.dual <= whole.primal
    assert 0 <= whole.exact_interval[0] <= whole.sampled_interval[0] <= whole.sampled_interval[1]
    assert whole.exact_interval[1] == whole.sampled_interval[1]
    if normalize:
        # Of unit rows, each model is, times the best factor, an element of the exact kernel's space: with the same |w|,
        # and outputs times the root of what is kept of a row. Between some factors it looks at chords.
        Q = 1 - reference.residual(X - model.shift_, 3, 0.15)
        of_element, W = np.sqrt(Q)[:, None] * stored_features(model, X), model.monomial_coef_
        factors = np.linspace(0.0, 4.0, 401)
        ends = np.min([objectives(kind, factor * W, of_element, y, model.C) for factor in factors], axis=0)
        highs = np.array([part.exact_interval[1] for part in certified(whole)])
        assert (ends * (1 - 1e-4) <= highs).all() and (highs <= ends * 1.02).all()  # 1e-4: of the steps between factors
        assert (highs <= objectives(kind, W, of_element, y, model.C) * (1 + 1e-12)).all()
    else:
        assert whole.sampled_interval[0] <= whole.dual and whole.exact_interval[1] == pytest.approx(whole.primal)
    if kind in JOINT:
        assert whole.parts == () and "sum of" not in str(whole)
        return
    assert len(whole.parts) == 4
    for name in ("primal", "dual", "gap"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(part, name) for part in whole.parts), rel=1e-10)
    assert whole.exact_interval == pytest.approx(tuple(np.sum([part.exact_interval for part in whole.parts], axis=0)))
    for part in whole.parts:
        assert part.parts == () and 0 <= part.relative_gap <= 0.05  # each of them, not only their sum
        assert part.exact_interval[0] <= part.exact_interval[1] and part.dual <= part.primal
        assert normalize or part.exact_interval[0] <= part.dual
    worst = int(np.argmax([part.relative_gap for part in whole.parts]))
    assert "sum of 4" in str(whole) and f"of number {worst}" in str(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_history_has_the_sums(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-4, max_iter=10_000).fit(X, y)
    history = model.history_
    assert all(column.shape == (model.n_iter_,) for column in history.values())
    assert history["primal"][-1] == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert history["dual"][-1] == pytest.approx(model.certificate_.dual, rel=1e-12)
    assert (np.diff(history["dual"]) >= -1e-9).all() and np.isfinite(history["primal_seen"]).all()
    known = ~np.isnan(history["primal"])
    assert (history["primal"][known] >= history["dual"][-1] * (1 - 1e-12)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_certify_finds_a_dual_point_for_adagrad(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], solver="adagrad", tol=1e-4).fit(X, y)
    assert np.isnan(model.certificate_.dual) and len(model.certificate_.parts) == (0 if kind in JOINT else 4)
    primal, coef = model.certificate_.primal, model.monomial_coef_
    certificate = model.certify(X, y, max_iter=50)
    assert certificate is model.certificate_ and np.array_equal(model.monomial_coef_, coef)
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    assert 0 <= certificate.relative_gap < 0.03
    assert len(certificate.parts) == (0 if kind in JOINT else 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_training_that_ends_early_warns(solver, kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], solver=solver, tol=1e-7, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"2 epochs.*tol=1e-07") as caught:
        model.fit(X, y)
    assert len(caught) == 1 and caught[0].filename == __file__
    if solver != "adagrad":
        worst = max(part.relative_gap for part in certified(model.certificate_))
        assert f"gap is {worst:.2g}" in str(caught[0].message)


# Monomials in the user's terms.


@pytest.mark.parametrize("kind", KINDS)
@slow
def test_monomials_are_told_for_each_class(kind):
    X, y = sparse_data()
    words = np.array(["one", "two", "three", "four", "five"])[y]
    model = TaylorSVC(**SETTINGS["sparse"], **KINDS[kind], max_iter=20).fit(X, words)
    features = TaylorFeatures(degree=2, gamma=0.2).fit(as_array(X))
    top = model.top_monomials(10)
    assert list(top) == model.classes_.tolist() == sorted(set(words))
    for k, (label, monomials) in enumerate(top.items()):
        coef = model.monomial_coef_[k]
        assert [abs(m.weight) for m in monomials] == sorted(np.abs(coef), reverse=True)[:10]
        for m in monomials:
            assert m.weight == coef[features.slot_of(m.powers)]
            there = np.all([as_array(X)[:, j] != model.shift_[j] for j in m.powers], axis=0) if m.powers else True
            assert m.share == pytest.approx(np.mean(there), abs=1e-12)
        assert model.top_monomials(10, label=label) == monomials
        assert model.top_monomials(10, label=model.classes_[k]) == monomials
        assert len(str(monomials).splitlines()) == 11
    with pytest.raises(ValueError, match="label must be one of the classes .*'five'.*; got 'six'"):
        model.top_monomials(10, label="six")


def test_monomials_tell_what_makes_a_class():
    X = np.random.default_rng(0).choice([0.0, 1.0], size=(300, 4))
    y = np.where(X[:, 0] * X[:, 2] > 0, 2, np.where(X[:, 1] * X[:, 3] > 0, 1, 0))
    model = TaylorSVC(degree=2, gamma=0.5, shift=None, random_state=0).fit(X, y)
    assert model.top_monomials(1, label=2)[0].name == "x0 * x2"
    assert "x1 * x3" in [m.name for m in model.top_monomials(2, label=1)]


def test_two_classes_have_one_table_whatever_the_label():
    X, y = dense_data(n_classes=2)
    model = TaylorSVC(**SETTINGS["dense"]).fit(X, y)
    assert model.top_monomials(4, label=1) == model.top_monomials(4)
    with pytest.raises(ValueError, match="label must be one of the classes .*; got 2"):
        model.top_monomials(4, label=2)


# Several labels for each row.


FORMS = {
    "array": np.asarray,
    "list of lists": lambda Y: Y.tolist(),
    "list of arrays": list,
    "bool": lambda Y: Y.astype(bool),
    "float": lambda Y: Y.astype(float),
    "Fortran": np.asfortranarray,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
}


@pytest.mark.parametrize("form", FORMS)
@slow
def test_indicator_matrices_of_any_form_give_the_same_model(form):
    X, Y = labels_data()
    model = TaylorSVC(**SETTINGS["dense"], max_iter=5)
    expected = clone(model).fit(X, Y)
    found = clone(model).fit(X, FORMS[form](Y))
    assert np.array_equal(found.monomial_coef_, expected.monomial_coef_)
    assert np.array_equal(found.predict(X), expected.predict(X))


def test_indicator_data_frames_are_taken():
    pandas = pytest.importorskip("pandas")
    X, Y = labels_data()
    model = TaylorSVC(**SETTINGS["dense"])
    frame = pandas.DataFrame(Y, columns=["a", "b", "c"])
    assert np.array_equal(clone(model).fit(X, frame).monomial_coef_, clone(model).fit(X, Y).monomial_coef_)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_each_label_has_its_column(n_labels, solver):
    X, Y = labels_data(n_labels=n_labels)
    model = TaylorSVC(**SETTINGS["dense"], loss="log_loss", solver=solver, max_iter=30).fit(X, Y)
    f = model.decision_function(X)
    assert f.shape == Y.shape and model.monomial_coef_.shape == (n_labels, comb(7, 3))
    assert model.classes_.tolist() == list(range(n_labels))
    assert np.allclose(f, stored_features(model, X) @ model.monomial_coef_.T, rtol=1e-10, atol=1e-10)
    predicted = model.predict(X)
    assert predicted.dtype.kind == "i" and np.array_equal(predicted, f > 0)
    assert np.allclose(model.predict_proba(X), expit(f), rtol=1e-12)
    assert np.allclose(np.exp(model.predict_log_proba(X)), expit(f), rtol=1e-12)
    assert (predicted == Y).mean() > 0.8
    assert model.score(X, Y) == (predicted == Y).all(axis=1).mean()
    assert len(model.certificate_.parts) == n_labels
    assert list(model.top_monomials(3)) == list(range(n_labels))


@pytest.mark.parametrize("kind", ONE_BY_ONE)
def test_labels_are_as_many_binary_fits(kind):
    X, Y = labels_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-6, max_iter=100_000)
    weight = sample_weight(len(Y))
    together = clone(model).fit(X, Y, sample_weight=weight)
    for k, part in enumerate(together.certificate_.parts):
        alone = clone(model).fit(X, Y[:, k], sample_weight=weight)
        reach = np.sqrt(2 * model.C * weight.sum() * (part.gap + alone.certificate_.gap))
        assert np.abs(together.decision_function(X)[:, k] - alone.decision_function(X)).max() <= reach < 0.04
        assert part.primal == pytest.approx(alone.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ONE_BY_ONE)
@slow
def test_labels_that_all_rows_have_or_none_are_learnt(kind, solver):
    X, Y = labels_data()
    Y = np.column_stack([np.zeros(len(Y)), Y[:, 0], np.ones(len(Y))]).astype(int)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], solver=solver, max_iter=30).fit(X, Y)
    predicted = model.predict(X)
    assert (predicted[:, 0] == 0).all() and (predicted[:, 2] == 1).all()
    assert (predicted[:, 1] == Y[:, 1]).mean() > 0.8
    assert np.isfinite(model.monomial_coef_).all()


def test_rows_may_have_no_label_at_all():
    X, Y = labels_data()
    Y[:40] = 0
    assert TaylorSVC(**SETTINGS["dense"]).fit(X, Y).predict(X).shape == Y.shape
    model = TaylorSVC(**SETTINGS["dense"]).fit(X, np.zeros((len(X), 2), dtype=int))
    assert (model.predict(X) == 0).all()


def test_weights_of_labels_are_weights_of_the_rows_that_have_them():
    X, Y = labels_data()
    weights = {0: 3.0, 2: 0.2}
    model = TaylorSVC(**SETTINGS["dense"], tol=1e-6, max_iter=100_000)
    together = clone(model).set_params(class_weight=weights).fit(X, Y)
    for k in range(3):
        omega = np.where(Y[:, k] == 1, weights.get(k, 1.0), 1.0)
        alone = clone(model).fit(X, Y[:, k], sample_weight=omega)
        # The objective of the part is not divided by the sum of these weights.
        part = together.certificate_.parts[k]
        assert part.primal * len(Y) == pytest.approx(alone.certificate_.primal * omega.sum(), rel=2e-6)
        assert np.abs(together.decision_function(X)[:, k] - alone.decision_function(X)).max() < 0.04


@pytest.mark.parametrize("kind", JOINT)
def test_several_labels_cannot_be_trained_together(kind):
    X, Y = labels_data()
    model = TaylorSVC(**KINDS[kind])
    with pytest.raises(ValueError, match=f'several labels for a row go with multi_class="ovr"; got {kind!r}'):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=f"got {kind!r}"):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert not hasattr(model, "classes_")


def test_wrong_indicators_are_refused():
    X, Y = labels_data()
    with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
        TaylorSVC().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
        TaylorSVC().fit(X, 2 * Y - 1)
    with pytest.raises(ValueError, match="NaN"):
        TaylorSVC().fit(X, np.where(Y == 1, nan, 0.0))
    with pytest.raises(ValueError, match="Unknown label type|indicator"):
        TaylorSVC().fit(X, 0.5 * Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TaylorSVC().fit(X, Y[1:])
    with pytest.raises(ValueError, match="class_weight must be a dict or None for an indicator matrix; got 'balanced'"):
        TaylorSVC(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="class_weight must be > 0 for each of several classes"):
        TaylorSVC(class_weight={1: 0.0}).fit(X, Y)


def test_streams_of_labels():
    X, Y = labels_data(800)
    model = TaylorSVC(**SETTINGS["dense"])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"classes must be the numbers of the 3 columns of y; got \[0, 1\]"):
        model.partial_fit(X, Y, classes=[0, 1])
    for first in range(0, 800, 100):
        model.partial_fit(X[first : first + 100], Y[first : first + 100], classes=[0, 1, 2])
    assert model.n_iter_ == 8 and (model.predict(X) == Y).mean() > 0.85
    coef = model.monomial_coef_
    with pytest.raises(ValueError, match="indicator matrix if it was one before"):
        model.partial_fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="y has 2 columns; it had 3 before"):
        model.partial_fit(X, Y[:, :2])
    with pytest.raises(ValueError, match="y has 2 columns; it had 3 before"):
        model.certify(X, Y[:, :2])
    assert np.array_equal(model.monomial_coef_, coef) and model.n_iter_ == 8
    vector = TaylorSVC(**SETTINGS["dense"]).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="a vector if it was one"):
        vector.partial_fit(X, Y)


# Classes that are rare, or not there.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@slow
def test_a_class_may_have_one_row(kind, solver):
    X, y = dense_data()
    y = y.copy()
    y[y == 0] = 1
    y[7] = 0
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], class_weight="balanced", solver=solver, max_iter=100)
    model.fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2, 3] and model.predict(X[7:8]).tolist() == [0]
    f = model.set_params(class_weight=None).fit(X, y).decision_function(X)
    assert f.shape == (len(y), 4) and np.isfinite(f).all()


@pytest.mark.parametrize("kind", KINDS)
def test_classes_may_have_weight_zero_in_all_rows(kind):
    """They stay classes, and nothing speaks for them."""
    X, y = dense_data()
    weight = np.where(y == 2, 0.0, 1.0)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], tol=1e-6, max_iter=100_000)
    model.fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert not (model.predict(X) == 2).any()
    found = true_objectives(model, kind, X, y, weight)
    parts = certified(model.certificate_)
    assert np.allclose([part.primal for part in parts], found, rtol=1e-9)
    assert all(part.relative_gap <= 1e-6 for part in parts)
    if kind in ONE_BY_ONE:
        used = y != 2
        Phi, numbers = stored_features(model, X)[used], np.array([0, 1, 3])
        best = objectives(kind, optimal_weights(kind, Phi, y[used], 2.0), Phi, np.searchsorted(numbers, y[used]), 2.0)
        assert np.allclose(found[numbers], best, rtol=1e-5)


@pytest.mark.parametrize("kind", JOINT)
def test_weight_zero_leaves_a_class_out_of_joint_problems(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], shift=None)
    by_class = clone(model).set_params(class_weight={2: 0.0}).fit(X, y)
    by_row = clone(model).fit(X, y, sample_weight=np.where(y == 2, 0.0, 1.0))
    assert np.array_equal(by_class.monomial_coef_, by_row.monomial_coef_)


@pytest.mark.parametrize("kind", JOINT)
def test_class_weights_of_joint_problems_are_weights_of_the_rows(kind):
    X, y = dense_data()
    weights = np.array([3.0, 0.5, 1.0, 2.0])
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind])
    by_row = clone(model).fit(X, y, sample_weight=weights[y]).monomial_coef_
    assert np.array_equal(
        clone(model).set_params(class_weight=dict(enumerate(weights))).fit(X, y).monomial_coef_, by_row
    )


def test_rows_of_weight_zero_take_no_part_in_training():
    X, y = dense_data()
    weight = sample_weight(len(y))
    used = weight > 0
    for kind in KINDS:
        model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], shift=[0.5, -1.0, 0.0, 2.0])
        coef = model.fit(X, y, sample_weight=weight).monomial_coef_
        assert np.array_equal(model.fit(X[used], y[used], sample_weight=weight[used]).monomial_coef_, coef)


# Streams.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_one_pass_over_a_stream_comes_close_to_fit_of_all_of_it(data, kind):
    X, y = DATA[data](2000)
    best = TaylorSVC(**SETTINGS[data], **KINDS[kind]).fit(X, y)
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], shift=best.shift_)
    found = []
    for first in range(0, 2000, 200):
        model.partial_fit(X[first : first + 200], y[first : first + 200], classes=np.unique(y))
        if model.n_iter_ in (1, 4, 10):
            found.append(model.certify(X, y, max_iter=1).primal)
    assert found == sorted(found, reverse=True)
    assert best.certificate_.dual <= found[-1] < 1.15 * best.certificate_.primal


@pytest.mark.parametrize("kind", KINDS)
def test_batches_may_lack_classes(kind):
    X, y = dense_data(800)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind])
    early = y <= 1
    model.partial_fit(X[early], y[early], classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3] and model.decision_function(X).shape == (800, 4)
    assert np.isin(model.predict(X), [0, 1]).mean() > 0.95
    for _ in range(4):
        model.partial_fit(X[~early], y[~early])
        model.partial_fit(X[early], y[early])
    assert set(model.predict(X)) == {0, 1, 2, 3}
    assert model.score(X, y) > 0.55
    only = y == 3
    assert np.isfinite(model.partial_fit(X[only], y[only]).monomial_coef_).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_partial_fit_goes_on_from_fit(solver, kind):
    X, y = dense_data(400)
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], solver=solver, max_iter=40).fit(X, y)
    reached = model.certificate_.primal
    model.partial_fit(X, y)
    assert not hasattr(model, "certificate_")
    assert model.certify(X, y).primal < 1.1 * reached
    begun = TaylorSVC(**SETTINGS["dense"], **KINDS[kind]).partial_fit(X, y, classes=np.unique(y))
    assert begun.certify(X, y).primal > model.certificate_.primal


@pytest.mark.parametrize("kind", ["squared_hinge", "crammer_singer"])
def test_grown_models_keep_the_weights_of_old_monomials(kind):
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], grow=True).partial_fit(X, y, classes=np.unique(y))
    narrow = pickle.loads(pickle.dumps(model)).partial_fit(X[:50], y[:50])
    wider = np.hstack([X, np.zeros((len(y), 2))])
    model.partial_fit(wider[:50], y[:50])
    n_old = comb(7, 3)
    assert model.monomial_coef_.shape == (4, comb(9, 3)) and (model.monomial_coef_[:, n_old:] == 0).all()
    assert np.linalg.norm(model.monomial_coef_[:, :n_old] - narrow.monomial_coef_) < 0.05 * np.linalg.norm(
        narrow.monomial_coef_
    )
    wider[:, -1] = y - 1.5
    for _ in range(8):
        model.partial_fit(wider, y)
    assert model.score(wider, y) > 0.9


def test_weights_of_a_stream_count():
    X, y = dense_data()
    for kind in KINDS:
        model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind])
        weight = np.where(y == 1, 50.0, 1e-3)
        model.partial_fit(X, y, classes=np.unique(y), sample_weight=weight)
        assert (model.predict(X) == 1).mean() > 0.9


def test_wrong_classes_are_refused():
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"])
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="label .*3.* not one of the classes"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y, classes=[3, 2, 1, 0, 9])
    assert model.classes_.tolist() == [0, 1, 2, 3, 9]
    coef = model.monomial_coef_
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="label .*5.* not one of the classes"):
        model.partial_fit(X, np.where(y == 1, 5, y))
    with pytest.raises(ValueError, match="label .*5.* not one of the classes"):
        model.certify(X, np.where(y == 1, 5, y))
    assert np.array_equal(model.monomial_coef_, coef) and model.n_iter_ == 1


# A thousand classes.


def thousand(n_rows=2000):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 2))
    return X, np.arange(n_rows) % 1000


@pytest.mark.parametrize("kind", ["squared_hinge", "crammer_singer"])
@slow
def test_a_thousand_classes_are_fitted(kind):
    X, y = thousand()
    model = TaylorSVC(degree=2, gamma=0.5, **KINDS[kind], max_iter=1, random_state=0).fit(X, y)
    assert model.monomial_coef_.shape == (1000, 6) and model.decision_function(X).shape == (2000, 1000)
    found = true_objectives(model, kind, X, y)
    assert np.allclose([part.primal for part in certified(model.certificate_)], found, rtol=1e-9)
    assert len(found) == (1 if kind in JOINT else 1000)


@pytest.mark.parametrize(
    ("shape", "kind", "solver"),
    [
        ("many rows", "hinge", "dual"),
        ("many rows", "crammer_singer", "pegasos"),
        ("many monomials", "crammer_singer", "dual"),
        ("many monomials", "hinge", "pegasos"),
        ("many monomials", "hinge", "adagrad"),
    ],
)
@slow
def test_training_takes_no_more_memory_than_it_says(shape, kind, solver):
    if shape == "many rows":
        X, y, degree = np.random.default_rng(0).normal(size=(2000, 2)), np.arange(2000) % 500, 2
    else:
        X, y, degree = np.random.default_rng(0).normal(size=(64, 30)), np.arange(64) % 32, 4
    model = TaylorSVC(degree=degree, gamma=0.05, **KINDS[kind], solver=solver, max_iter=2, random_state=0)
    with pytest.raises(ValueError, match="memory_limit") as refusal:
        clone(model).set_params(memory_limit=1000).fit(X, y)
    n_bytes = int(re.search(r"would take (\d+) bytes", str(refusal.value))[1])
    tracemalloc.start()
    try:
        model.set_params(memory_limit=n_bytes).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.25 * n_bytes < peak <= n_bytes + 10**7  # scratch of a few MB for the walk is not told


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_too_many_classes_for_the_memory_are_refused_and_change_nothing(method):
    X, y = thousand()
    model = TaylorSVC(degree=2, gamma=0.5, memory_limit=10**6, random_state=0)
    small = X[:30], y[:30] % 3
    model.fit(*small) if method == "fit" else model.partial_fit(*small, classes=[0, 1, 2])
    before = dict(model.__dict__)
    arguments = (X, y) if method == "fit" else (np.tile(small[0], (200, 1)), np.tile(small[1], 200))
    with pytest.raises(ValueError, match=r"would take \d+ bytes .* allowed by memory_limit") as refusal:
        getattr(model, method)(*arguments)
    assert f"6 monomials for each of {1000 if method == 'fit' else 3} outputs" in str(refusal.value)
    assert model.__dict__.keys() == before.keys()
    assert all(model.__dict__[name] is value for name, value in before.items())
    assert model.predict(small[0]).shape == (30,)


def test_a_failed_fit_changes_nothing():
    X, y = dense_data()
    model = TaylorSVC(random_state=0).fit(X, y)
    before = dict(model.__dict__)
    for call in (
        lambda: model.fit(X[:, :2], y, sample_weight=np.zeros(len(y))),
        lambda: model.fit(X[:, :2], y[1:]),
        lambda: model.fit(X[:, :2], np.zeros((len(y), 3)) + 7),
        lambda: model.fit(X[:, :2], 0.5 * y),
        lambda: model.partial_fit(X, y + 1),
    ):
        with pytest.raises(ValueError, match="non-zero|inconsistent|indicator|Unknown label type|not one of"):
            call()
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is value for name, value in before.items())


# Warm starts.


def warm(kind, **parameters):
    return TaylorSVC(**SETTINGS["dense"] | {"tol": 1e-5, "max_iter": 20_000} | KINDS[kind] | parameters)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_goes_on_where_the_last_fit_ended(kind, weighted):
    X, y = dense_data()
    weight = sample_weight(len(y)) if weighted else None
    model = warm(kind, warm_start=True).fit(X, y, sample_weight=weight)
    first, n_first = model.certificate_, model.n_iter_
    model.fit(X, y, sample_weight=weight)
    assert model.n_iter_ < n_first / 2
    assert all(part.relative_gap <= 1e-5 for part in certified(model.certificate_))
    assert model.certificate_.primal == pytest.approx(first.primal, rel=1e-5)
    assert model.certificate_.dual >= first.dual * (1 - 1e-12)
    cold = warm(kind).fit(X, y, sample_weight=weight)
    assert cold.n_iter_ == n_first


@pytest.mark.parametrize("factor", [0.1, 1.1, 10.0])
@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_takes_another_C(kind, factor):
    X, y = dense_data()
    model = warm(kind, warm_start=True).fit(X, y)
    model.set_params(C=2.0 * factor).fit(X, y)
    cold = warm(kind, C=2.0 * factor).fit(X, y)
    found = true_objectives(model, kind, X, y)
    for value, part, other in zip(found, certified(model.certificate_), certified(cold.certificate_), strict=True):
        assert part.primal == pytest.approx(value, rel=1e-9)
        assert part.relative_gap <= 1e-5
        assert part.dual <= other.primal and other.dual <= part.primal
    assert factor != 1.1 or model.n_iter_ <= 1.2 * cold.n_iter_


@pytest.mark.parametrize("change", [{1: 0.2, 3: 2.0}, "balanced"])
@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_stays_feasible_when_weights_change(kind, change):
    X, y = dense_data()
    weight = sample_weight(len(y)) + 0.05
    model = warm(kind, warm_start=True).fit(X, y)
    model.set_params(class_weight=change).fit(X, y, sample_weight=weight)
    cold = warm(kind, class_weight=change).fit(X, y, sample_weight=weight)
    for part, other in zip(certified(model.certificate_), certified(cold.certificate_), strict=True):
        assert part.relative_gap <= 1e-5
        assert part.dual <= other.primal and other.dual <= part.primal


def far_apart():
    """Classes most rows of which are told apart with margins to spare: those rows need no visit."""
    random = np.random.default_rng(24)
    y = np.arange(60) % 5
    return 3 * random.normal(size=(5, 2))[y] + 0.5 * random.normal(size=(60, 2)), y


@pytest.mark.parametrize("n_epochs", [1, 3, 3000])
@pytest.mark.parametrize("new", KINDS)
@pytest.mark.parametrize("old", KINDS)
@slow
def test_warm_start_takes_another_kind_of_problem(old, new, n_epochs):
    """Its dual point must be one of the new problem: else the bound is none."""
    X, y = far_apart()
    settings = {"gamma": 0.1, "C": 10.0, "degree": 2, "max_iter": 3000}
    model = warm(old, warm_start=True, **settings).fit(X, y)
    model.set_params(**KINDS[new], max_iter=n_epochs).fit(X, y)
    cold = warm(new, **settings).fit(X, y)
    for part, other in zip(certified(model.certificate_), certified(cold.certificate_), strict=True):
        assert part.dual <= other.primal * (1 + 1e-9) and other.dual <= part.primal * (1 + 1e-9)
        assert n_epochs < 3000 or part.relative_gap <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_takes_changed_labels(kind):
    X, y = far_apart()
    model = warm(kind, warm_start=True, gamma=0.1).fit(X, y)
    model.fit(X, 4 - y)
    cold = warm(kind, gamma=0.1).fit(X, 4 - y)
    for part, other in zip(certified(model.certificate_), certified(cold.certificate_), strict=True):
        assert part.relative_gap <= 1e-5
        assert part.dual <= other.primal * (1 + 1e-9) and other.dual <= part.primal * (1 + 1e-9)


def test_warm_start_begins_afresh_with_other_classes():
    X, y = dense_data()
    for kind in ("hinge", "crammer_singer"):
        model = warm(kind, warm_start=True).fit(X, y)
        model.fit(X, np.minimum(y, 2))
        assert np.array_equal(model.monomial_coef_, warm(kind).fit(X, np.minimum(y, 2)).monomial_coef_)


@pytest.mark.parametrize("kind", KINDS)
@slow
def test_warm_start_goes_on_with_adagrad_too(kind):
    X, y = dense_data()
    model = warm(kind, solver="adagrad", warm_start=True, max_iter=20, tol=1e-9).fit(X, y)
    reached = model.certificate_.primal
    begun = clone(model).set_params(max_iter=1).fit(X, y).certificate_.primal
    assert begun > 1.02 * reached
    model.set_params(max_iter=1).fit(X, y)
    assert model.certificate_.primal < 1.02 * reached


# The same bits.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
@slow
def test_equal_seeds_give_equal_bits(data, kind, solver):
    X, y = DATA[data]()
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, max_iter=8)
    one, other = clone(model).fit(X, y), clone(model).fit(X, y)
    assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
    assert str(one.certificate_) == str(other.certificate_) and one.certificate_.primal == other.certificate_.primal
    assert np.array_equal(one.fit(X, y).monomial_coef_, other.monomial_coef_)
    assert not np.array_equal(clone(model).set_params(random_state=4).fit(X, y).monomial_coef_, other.monomial_coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["log_loss", "crammer_singer"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_n_jobs_does_not_change_a_bit(data, kind, solver, monkeypatch):
    monkeypatch.setattr(_rows, "PASS_MONOMIALS", 2**12)  # so that several threads have something to do
    X, y = DATA[data](600)
    model = TaylorSVC(**SETTINGS[data], **KINDS[kind], solver=solver, max_iter=3)
    one = clone(model).fit(X, y)
    for n_jobs in (2, -1):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        assert np.array_equal(one.monomial_coef_, other.monomial_coef_)
        assert one.certificate_.primal == other.certificate_.primal
        assert np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@slow
def test_pickled_models_do_the_same(kind, solver):
    X, y = sparse_data()
    model = TaylorSVC(**SETTINGS["sparse"], **KINDS[kind], solver=solver, max_iter=5, warm_start=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert str(again.certificate_) == str(model.certificate_)
    assert again.top_monomials(3) == model.top_monomials(3)
    assert np.array_equal(
        again.fit(X, y).monomial_coef_, model.fit(X, y).monomial_coef_
    )  # a warm start from the same point
    assert np.array_equal(again.partial_fit(X, y).monomial_coef_, model.partial_fit(X, y).monomial_coef_)


def test_parameters_are_those_of_scikit_learn():
    model = TaylorSVC(multi_class="crammer_singer", class_weight={0: 2.0})
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(multi_class="ovr").multi_class == "ovr"
    X, y = dense_data()
    fitted = model.fit(X, y)
    assert not hasattr(clone(fitted), "classes_")
    assert model.__sklearn_tags__().classifier_tags.multi_class
    assert model.__sklearn_tags__().classifier_tags.multi_label
    assert not TaylorSVC(multi_class="crammer_singer").__sklearn_tags__().classifier_tags.multi_label


def test_grid_search_and_pipelines_work():
    X, y = dense_data()
    words = np.array(["a", "b", "c", "d"])[y]
    pipeline = make_pipeline(StandardScaler(), TaylorSVC(random_state=0))
    grid = [
        {"taylorsvc__multi_class": ["ovr", "crammer_singer"], "taylorsvc__C": [0.01, 10.0]},
        {"taylorsvc__multi_class": ["multinomial"], "taylorsvc__loss": ["log_loss"]},
    ]
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, words)
    assert search.best_params_ not in [{"taylorsvc__multi_class": m, "taylorsvc__C": 0.01} for m in KINDS]
    assert search.score(X, words) > 0.6 and search.predict(X).dtype == words.dtype


# What can be seen of a training.


@pytest.mark.parametrize("kind", ["hinge", "crammer_singer"])
def test_verbose_shows_the_objective_and_the_gap(kind, monkeypatch, capsys):
    X, y = dense_data()
    for tqdm in ("there", "absent"):
        if tqdm == "absent":
            for name in ("tqdm", "tqdm.auto"):
                monkeypatch.setitem(sys.modules, name, None)
        model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], verbose=1).fit(X, y)
        out, errors = capsys.readouterr()
        last = errors.rstrip().splitlines()[-1].split("\r")[-1]
        assert out == "" and "nan" not in errors
        assert f"objective {model.certificate_.primal:.5g}" in last
        assert f"gap {model.certificate_.relative_gap:.1e}" in last and "rows active" in last


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
            self.values.append(fitted_estimator.decision_function(X))
            if len(self.values) == self.at:
                raise KeyboardInterrupt


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@slow
def test_estimators_interrupted_after_an_epoch_hold_its_model(kind, solver):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind], solver=solver, tol=1e-9, max_iter=50)
    watcher = Interrupter(at=3)
    stopped = clone(model).set_callbacks(watcher)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    assert stopped.interrupted_ is True and stopped.n_iter_ == 3
    assert np.array_equal(stopped.monomial_coef_, model.set_params(max_iter=3).fit(X, y).monomial_coef_)
    assert np.array_equal(watcher.values[-1], stopped.decision_function(X))
    low, high = stopped.certificate_.exact_interval
    assert 0 <= low < high < inf
    assert len(stopped.certificate_.parts) == (0 if kind in JOINT else 4)
    assert str(stopped.certificate_)
    stopped.set_callbacks().fit(X, y)
    assert stopped.interrupted_ is False


@pytest.mark.parametrize("kind", ["hinge", "multinomial"])
def test_interruption_before_the_first_epoch_changes_nothing(kind):
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")
    X, y = dense_data()
    model = TaylorSVC(**SETTINGS["dense"], **KINDS[kind]).fit(X, y)
    coef = model.monomial_coef_
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupter(at=0)).fit(X[:, :2], y % 3)
    assert np.array_equal(model.monomial_coef_, coef) and model.classes_.tolist() == [0, 1, 2, 3]


# What is refused.


@pytest.mark.parametrize("value", ["bogus", None, ["ovr"], 3])
def test_unknown_ways_to_train_are_refused_with_their_value(value):
    X, y = dense_data()
    with pytest.raises(ValueError, match=rf"multi_class must be one of ovr, .*; got {re.escape(repr(value))}"):
        TaylorSVC(multi_class=value).fit(X, y)
    with pytest.raises(ValueError, match=rf"multi_class must be one of ovr, .*; got {re.escape(repr(value))}"):
        TaylorSVC(multi_class=value).partial_fit(X, y, classes=[0, 1, 2, 3])


@pytest.mark.parametrize(
    ("multi_class", "loss", "needed"),
    [
        ("crammer_singer", "log_loss", "hinge"),
        ("crammer_singer", "squared_hinge", "hinge"),
        ("multinomial", "hinge", "log_loss"),
        ("multinomial", "squared_hinge", "log_loss"),
    ],
)
def test_losses_that_do_not_go_together_are_refused(multi_class, loss, needed):
    X, y = dense_data()
    with pytest.raises(ValueError, match=f"multi_class='{multi_class}' goes with loss='{needed}'; got loss='{loss}'"):
        TaylorSVC(multi_class=multi_class, loss=loss).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "class_weight"),
    [
        ("hinge", {1: 0.0}),
        ("hinge", {1: -1.0}),
        ("hinge", {1: nan}),
        ("log_loss", {1: inf}),
        ("crammer_singer", {1: -1.0}),
        ("multinomial", {1: nan}),
    ],
)
def test_wrong_class_weights_are_refused_with_their_value(kind, class_weight):
    X, y = dense_data()
    with pytest.raises(ValueError, match=rf"class_weight must .*; got {re.escape(repr(class_weight))}"):
        TaylorSVC(**KINDS[kind], class_weight=class_weight).fit(X, y)


def test_strange_class_weights_are_refused():
    X, y = dense_data()
    for class_weight in ({"yes": 2.0}, "uniform", 3):
        with pytest.raises(ValueError, match="class_weight"):
            TaylorSVC(class_weight=class_weight).fit(X, y)
