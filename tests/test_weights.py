"""weights="fitted": weights of the degrees that come as close to the Gaussian kernel as they can."""

import pickle
from math import factorial

import numpy as np
import pytest
from scipy import sparse

from taylorkern import TaylorSVC, TaylorSVR, load
from taylorkern._expansion import Expansion
from taylorkern._weights import _nonnegative

GAMMA = 0.3


def rows(n=240, d=5, seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) * (random.uniform(size=(n, d)) < 0.8)


def labels(X):
    return np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0, 1, -1)


def fitted(X, y, estimator=TaylorSVC, **settings):
    settings = {"degree": 3, "gamma": GAMMA, "weights": "fitted", "tol": 1e-5, "max_iter": 2000, **settings}
    return estimator(random_state=0, **settings).fit(X, y)


def exact_kernel(X):
    return np.exp(-GAMMA * ((X[:, None] - X) ** 2).sum(axis=-1))


def forms(model, X):
    """(rows as they are expanded, what they are beyond that, their cells) for each partition of a model."""
    shift = model._shift
    if model._cells is not None:
        for partition in shift.partitions:
            cell = partition.cell(X)
            yield X - partition.by[cell], np.zeros(len(X)), cell
        return
    Z = X - shift.by
    if hasattr(shift, "axes"):
        along = Z @ shift.axes
        yield along, (Z**2).sum(axis=1) - (along**2).sum(axis=1), np.zeros(len(X))
    else:
        yield Z, np.zeros(len(X)), np.zeros(len(X))


def kernel(model, X, weights):
    """K~, and the Gaussian kernel, both within cells: means over the partitions."""
    cut, exact, n = 0.0, 0.0, 0
    for Z, beyond, cell in forms(model, X):
        norms = (Z**2).sum(axis=1) + beyond
        z, same = 2 * GAMMA * Z @ Z.T, cell[:, None] == cell
        series = sum(c * z**k / factorial(k) for k, c in enumerate(weights))
        cut = cut + same * series * np.exp(-GAMMA * (norms[:, None] + norms))
        exact, n = exact + same * exact_kernel(X), n + 1
    return cut / n, exact / n


MODELS = [{}, {"n_cells": 4}, {"n_cells": 3, "n_partitions": 2}, {"n_axes": 3}]


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_the_kernel_is_that_of_the_weights_and_closer_to_the_gaussian(settings):
    X = rows()
    y = labels(X)
    model = fitted(X, y, C=2.0, warm_start=True, **settings)
    weights = model._expansion.weights
    assert len(weights) == 4 and min(weights) >= 0
    cut, exact = kernel(model, X, weights)
    taylor, _ = kernel(model, X, np.ones(4))
    others = ~np.eye(len(X), dtype=bool)
    share = np.square(cut - exact)[others].mean() / np.square(taylor - exact)[others].mean()
    assert share < (1 if "n_axes" in settings else 0.9)  # weights cannot make up for what lies beyond the axes
    outputs = 2.0 * cut @ (model._alpha[:, 0] * y)
    assert np.allclose(model.decision_function(X), outputs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("degree", [1, 2, 3, 6])
def test_no_weights_come_closer(degree):
    X = rows(200)  # all of which are looked at
    model = fitted(X, labels(X), degree=degree, max_iter=5, tol=0.5)
    weights = np.array(model._expansion.weights)
    others = np.triu_indices(len(X), 1)
    cut, exact = (part[others] for part in kernel(model, X, weights))
    least = np.square(cut - exact).mean()
    for k in range(degree + 1):
        for change in (-1e-3, 1e-3):
            near = weights.copy()
            near[k] = max(near[k] + change, 0)
            assert np.square(kernel(model, X, near)[0][others] - exact).mean() >= least * (1 - 1e-9)


def test_the_certificate_is_about_this_kernel():
    X = rows()
    certificate = fitted(X, labels(X)).certificate_
    assert certificate.exact_interval == (certificate.dual, certificate.primal)
    assert certificate.relative_gap <= 1e-5


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_models_are_saved_with_their_weights(tmp_path, make, settings):
    X = make(rows())
    model = fitted(X, rows()[:, 0], TaylorSVR, tol=0.1, **settings)
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again._expansion.weights == model._expansion.weights
        assert np.array_equal(again.predict(X), model.predict(X)) and np.array_equal(again.coef_, model.coef_)


def test_one_seed_gives_one_result():
    X = rows(900)
    models = [fitted(X, labels(X), tol=0.1, n_jobs=n_jobs) for n_jobs in (1, 2, 3)]
    assert all(np.array_equal(models[0]._table, model._table) for model in models)


def test_batches_keep_the_weights_of_the_first():
    X = rows(900)
    model = TaylorSVC(weights="fitted", random_state=0)
    model.partial_fit(X[:300], labels(X[:300]), classes=[-1, 1])
    weights = model._expansion.weights
    assert model.partial_fit(X[300:], labels(X[300:]))._expansion.weights == weights


@pytest.mark.filterwarnings("ignore:6 of 6 rows are so far:RuntimeWarning")
@pytest.mark.parametrize("X", [np.zeros((6, 3)), np.ones((6, 3)), np.eye(6), 1e3 * np.eye(6)], ids=str)
def test_odd_rows_have_weights(X):
    model = TaylorSVC(weights="fitted", gamma=0.5, random_state=0, tol=0.5, max_iter=50)
    with np.errstate(all="ignore"):
        model.fit(X, [0, 1, 0, 1, 0, 1])
    assert np.isfinite(model._expansion.weights).all() and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-160, np.inf])
def test_terms_that_tell_nothing_keep_taylors_weights(size):
    A = np.full((5, 3), size)
    assert _nonnegative(A, np.zeros(5)) == (1.0, 1.0, 1.0)
    A[:, 0] = 1
    if np.isfinite(size):
        assert _nonnegative(A, np.full(5, 0.25)) == (pytest.approx(0.25), 1.0, 1.0)


def test_what_is_wrong_is_refused():
    X = rows(20)
    with pytest.raises(ValueError, match="weights must be one of taylor, fitted; got 'best'"):
        TaylorSVC(weights="best").fit(X, labels(X))
    with pytest.raises(ValueError, match="for the Gaussian kernel; got kernel='polynomial'"):
        TaylorSVC(weights="fitted", kernel="polynomial").fit(X, labels(X))
    with pytest.raises(ValueError, match="for the Gaussian kernel"):
        Expansion(2, degree=2, gamma=1.0, kernel="exponential", weights=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="must be finite numbers >= 0; got -1"):
        Expansion(2, degree=2, gamma=1.0, weights=(1.0, -1.0, 1.0))
