"""What users of scikit-learn's SVC rely on: its names, its limits, the same model twice."""

import copy
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from taylorkern import TaylorFeatures, TaylorOperator, TaylorSVC, TaylorSVR, kernel, load, plan, taylor_kernel
from taylorkern._data.expansion import ALIASES, Expansion

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Two axes of four that vary alike, at degree 2: it is right that they are warned of.
half_the_axes = pytest.mark.filterwarnings("ignore:degree=2 is low:taylorkern.ApproximationWarning")


def rows(n_rows=120, n_columns=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def classes(X, n=2):
    values = X[:, 0] + X[:, 1] * X[:, 2]
    return np.searchsorted(np.quantile(values, np.arange(1, n) / n), values)


# Names of kernels.


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_scikit_learns_names_of_kernels_mean_ours(tmp_path, alias, name):
    X = rows()
    y = classes(X)
    for estimator in (TaylorSVC, TaylorSVR):
        settings = {"degree": 2, "gamma": 0.1, "max_iter": 3, "random_state": 0}
        one, two = (estimator(kernel=each, **settings).fit(X, y) for each in (alias, name))
        assert one.get_params()["kernel"] == alias and one._expansion.kernel == name
        assert np.array_equal(one._table, two._table) and str(one.certificate_) == str(two.certificate_)
        one.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.kernel == alias and again._expansion.kernel == name
        assert np.array_equal(again.predict(X), two.predict(X))
    one, two = (TaylorFeatures(degree=2, kernel=each).fit_transform(X).toarray() for each in (alias, name))
    assert np.array_equal(one, two)
    one, two = (TaylorOperator(X, degree=2, kernel=each) @ np.ones(15) for each in (alias, name))
    assert np.array_equal(one, two)
    assert np.array_equal(*(taylor_kernel(X, degree=2, kernel=each) for each in (alias, name)))
    one, two = (Expansion(3, degree=2, gamma=1.0, kernel=each) for each in (alias, name))
    assert one.__reduce__() == two.__reduce__()


@pytest.mark.parametrize("settings", [{"n_cells": 3}, {"n_cells": "auto"}, {"n_axes": 2}, {"degree": "auto"}], ids=str)
@half_the_axes
def test_rbf_is_as_good_as_gaussian_where_only_that_is_allowed(settings):
    X = rows()
    y = classes(X)
    models = [TaylorSVC(**{"degree": 2, "kernel": each, **settings}).fit(X, y) for each in ("rbf", "gaussian")]
    assert np.array_equal(models[0]._table, models[1]._table) and models[0].degree_ == models[1].degree_


def test_kernel_error_and_plan_take_rbf():
    X = rows()
    settings = {"degree": 2, "gamma": 0.1, "n_pairs": 1000}
    assert kernel.kernel_error(X, kernel="rbf", **settings) == kernel.kernel_error(X, kernel="gaussian", **settings)
    assert plan(X, classes(X), degrees=[1, 2], kernel="rbf") is not None
    with pytest.raises(ValueError, match="plan is for the gaussian kernel; got kernel='poly'"):
        plan(X, classes(X), kernel="poly")
    with pytest.raises(ValueError, match="kernel must be gaussian or exponential .* got 'poly'"):
        kernel.kernel_error(X, kernel="poly", **settings)


# No limit of epochs.


@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
@pytest.mark.parametrize("solver", ["dual", "adagrad"])
@pytest.mark.parametrize("verbose", [0, 1])
def test_max_iter_of_minus_one_is_no_limit(estimator, solver, verbose):
    X = rows()
    y = classes(X)
    settings = {"degree": 2, "gamma": 0.1, "C": 100.0, "solver": solver, "random_state": 0, "tol": 1e-4}
    free = estimator(max_iter=-1, verbose=verbose, **settings).fit(X, y)
    bound = estimator(max_iter=10**6, **settings).fit(X, y)
    assert np.array_equal(free._table, bound._table) and free.n_iter_ == bound.n_iter_ > 5


@pytest.mark.parametrize("max_iter", [0, -2, -1.0, True, None, "1"])
def test_other_limits_are_refused(max_iter):
    with pytest.raises(ValueError, match=f"max_iter must be an integer > 0, or -1 for no limit; got {max_iter!r}"):
        TaylorSVC(max_iter=max_iter).fit(rows(), classes(rows()))


# The same model twice.


@pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"n_cells": 3, "n_partitions": 2}, {"n_cells": "auto"}, {"n_axes": 2}, {"loss": "other"}],
    ids=str,
)
@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
@half_the_axes
def test_equal_data_give_equal_models_without_a_seed(estimator, solver, settings):
    X = rows(400)
    y = classes(X, 3) if estimator is TaylorSVC else X[:, 0] * X[:, 1]
    if "loss" in settings:
        settings = {"loss": "log_loss" if estimator is TaylorSVC else "squared_error"}
    models = []
    for _ in range(2):
        model = estimator(degree=2, gamma=0.2, solver=solver, max_iter=3, **settings)
        models.append(model.fit(X, y))
    assert np.array_equal(models[0]._table, models[1]._table)
    assert str(models[0].certificate_) == str(models[1].certificate_)
    certificates = [model.certify(X, y, max_iter=2) for model in models]
    assert str(certificates[0]) == str(certificates[1])
    other = estimator(degree=2, gamma=0.2, solver=solver, max_iter=3, random_state=1, **settings).fit(X, y)
    assert not np.array_equal(models[0]._table, other._table)


@pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
def test_equal_streams_give_equal_models_without_a_seed(solver):
    X = rows(300)
    batches = [(X[:100], classes(X)[:100]), (X[100:], classes(X)[100:])]
    fitted = [TaylorSVC(degree=2, solver=solver).fit_stream(batches, epochs=2) for _ in range(2)]
    assert np.array_equal(fitted[0]._table, fitted[1]._table)
    parts = [TaylorSVC(degree=2), TaylorSVC(degree=2)]
    for model in parts:
        for X_part, y_part in batches:
            model.partial_fit(X_part, y_part, classes=[0, 1])
    assert np.array_equal(parts[0]._table, parts[1]._table)


def test_kernel_error_is_the_same_twice():
    X = sparse.csr_array(rows())
    settings = {"degree": 2, "gamma": 0.1, "n_pairs": 1000}
    assert kernel.kernel_error(X, **settings) == kernel.kernel_error(X, **settings)
    assert kernel.kernel_error(X, **settings) != kernel.kernel_error(X, random_state=1, **settings)


# One number a column, and not one a monomial.


MODELS = (
    {},
    {"shift": None},
    {"solver": "adagrad"},
    {"n_cells": 3, "n_partitions": 2},
    {"n_axes": 2},
    {"kernel": "poly", "shift": None},
)


def importance_by_hand(model):
    """Monomial by monomial, in the user's order of columns."""
    coef = np.atleast_2d(model.monomial_coef_).astype(np.float64)
    axes = getattr(model, "axes_", np.eye(model.n_features_in_))  # [axes, columns]
    total = np.zeros(model.n_features_in_)
    if model._cells is None:
        parts = [(slice(None), np.arange(len(axes)))]
    else:
        parts = list(zip((slots for slots, _ in model._cells.places()), model._cells.columns(), strict=True))
    for slots, columns in parts:
        for slot, weights in enumerate(coef[:, slots].T):
            powers = model._expansion.powers_of(slot)
            for j, power in powers.items():
                total += (weights @ weights) * power / sum(powers.values()) * axes[columns[j]] ** 2
    return total / total.sum()


@pytest.mark.parametrize("settings", MODELS, ids=str)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("kind", ["two", "three", "labels", "number", "numbers"])
def test_column_importance_is_the_share_of_squared_weights(monkeypatch, settings, make, kind):
    monkeypatch.setattr("taylorkern._model.names.CHUNK", 7)
    X = rows(90, 5)
    X[:, 1] = X[:, 1] > 1  # columns are renumbered by how often they are not 0
    X[:, 3] = X[:, 3] > 0.5
    y = {
        "two": classes(X),
        "three": classes(X, 3),
        "labels": (X[:, :2] > 0).astype(int),
        "number": X[:, 0] * X[:, 1],
        "numbers": X[:, :3],
    }[kind]
    estimator = TaylorSVR if kind.startswith("number") else TaylorSVC
    model = estimator(**{"degree": 3, "gamma": 0.2, "max_iter": 3, **settings}).fit(make(X), y)
    importance = model.column_importance_
    assert importance.shape == (5,) and importance.dtype == np.float64
    assert (importance >= 0).all() and importance.sum() == pytest.approx(1)
    assert np.allclose(importance, importance_by_hand(model), rtol=1e-5, atol=1e-9)


def test_a_model_of_zeros_has_no_important_column():
    X = rows()
    model = TaylorSVR(degree=2).fit(X, np.ones(len(X)))
    assert model.column_importance_.tolist() == [0.0] * 4
    with pytest.raises(NotFittedError):
        _ = TaylorSVC().column_importance_


@pytest.mark.parametrize("place", ["dense", "sparse"])
def test_columns_are_selected_by_their_importance(place):
    X = rows(400, 6)
    y = (X[:, 4] * X[:, 1] > 0).astype(int)
    X = sparse.csr_array(X) if place == "sparse" else X
    model = TaylorSVC(degree=2, gamma=0.1, C=10.0)
    assert set(np.argsort(model.fit(X, y).column_importance_)[-2:]) == {1, 4}
    chosen = RFE(model, n_features_to_select=2, importance_getter="column_importance_").fit(X, y)
    assert np.flatnonzero(chosen.support_).tolist() == [1, 4]
    assert chosen.predict(X).shape == y.shape and chosen.score(X, y) > 0.9
    chosen = SelectFromModel(model, importance_getter="column_importance_").fit(X, y)
    assert np.flatnonzero(chosen.get_support()).tolist() == [1, 4]


@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
def test_nothing_is_selected_by_weights_that_are_none_of_columns(estimator):
    X = rows()
    y = classes(X)
    model = estimator(degree=2).fit(X, y)
    assert not hasattr(model, "coef_") and not hasattr(model, "feature_importances_")
    for selector in (RFE(model), SelectFromModel(model)):
        with pytest.raises(ValueError, match="`coef_` or `feature_importances_`"):
            selector.fit(X, y).transform(X)


# Support vectors.


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("settings", [{}, {"n_cells": 3, "n_partitions": 2}, {"loss": "log_loss"}], ids=str)
def test_no_other_row_has_a_part_in_the_model(make, settings):
    X = rows(200)
    y = classes(X)
    X = make(X)
    model = TaylorSVC(degree=2, gamma=0.1, C=10.0, tol=1e-9, warm_start=True, **settings).fit(X, y)
    assert model.support_.dtype == model.n_support_.dtype == np.int32
    assert np.array_equal(model.support_, np.flatnonzero(model._alpha[:, 0]))
    assert model.n_support_.tolist() == np.bincount(y[model.support_], minlength=2).tolist()
    if settings.get("loss"):
        assert len(model.support_) == len(y)  # as a logistic regression has it
        return
    assert 0 < len(model.support_) < len(y)
    if not settings:
        model.set_params(shift=None).fit(X, y)
        alone = clone(model).fit(X[model.support_], y[model.support_])
        assert np.allclose(alone.decision_function(X), model.decision_function(X), rtol=0, atol=1e-3)


def test_support_vectors_are_about_those_of_svc():
    X = rows(200)
    y = classes(X)
    exact = SVC(gamma=0.05, C=10.0, tol=1e-6).fit(X, y)
    model = TaylorSVC(degree=10, gamma=0.05, C=10.0, tol=1e-7, max_iter=-1).fit(X, y)
    assert len(np.setxor1d(model.support_, exact.support_)) <= 0.1 * len(exact.support_)  # the bias differs
    assert np.abs(model.n_support_ - exact.n_support_).max() <= 0.1 * len(exact.support_)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_support_vectors_of_several_classes(multi_class):
    X = rows(200)
    y = classes(X, 3)
    model = TaylorSVC(degree=2, gamma=0.1, C=10.0, multi_class=multi_class, warm_start=True).fit(X, y)
    assert np.array_equal(model.support_, np.flatnonzero(model._alpha.any(axis=1)))
    assert model.n_support_.tolist() == np.bincount(y[model.support_], minlength=3).tolist()
    two = TaylorSVC(degree=2, gamma=0.1, C=10.0, multi_class=multi_class).fit(X, y > 0)
    assert two.n_support_.tolist() == np.bincount(y[two.support_] > 0, minlength=2).tolist()


def test_support_vectors_of_labels_and_of_numbers():
    X = rows(200)
    Y = (X[:, :3] + 0.5 * X[:, 1:] > 0).astype(int)
    model = TaylorSVC(degree=2, gamma=0.1, warm_start=True).fit(X, Y)
    assert np.array_equal(model.support_, np.flatnonzero(model._alpha.any(axis=1)))
    assert model.n_support_.tolist() == np.count_nonzero(model._alpha, axis=0).tolist()
    for y in (X[:, 0], X[:, :2]):
        model = TaylorSVR(degree=2, gamma=0.1, warm_start=True, epsilon=0.2).fit(X, y)
        assert np.array_equal(model.support_, np.flatnonzero(model._alpha.any(axis=1)))
        assert model.n_support_.tolist() == [len(model.support_)] and model.n_support_.dtype == np.int32
        assert 0 < len(model.support_) < len(X)


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_rows_of_weight_0_count_in_the_numbers_of_support_vectors(solver):
    X = rows(200)
    y = classes(X)
    weight = np.where(np.arange(200) % 3 == 0, 0.0, 1.5)
    settings = {"degree": 2, "gamma": 0.1, "shift": None, "solver": solver, "tol": 0.05}
    model = TaylorSVC(**settings).fit(X, y, sample_weight=weight)
    used = np.flatnonzero(weight)
    same = TaylorSVC(**settings).fit(X[used], y[used], sample_weight=weight[used])
    assert np.array_equal(model.support_, used[same.support_])
    assert model.n_support_.tolist() == np.bincount(y[model.support_]).tolist() == same.n_support_.tolist()


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_support_vectors_of_a_stream_are_those_of_its_rows(monkeypatch, solver, kind):
    X = rows(300)
    y = classes(X, 3) if kind == "classes" else X[:, 0]
    settings = {"degree": 2, "gamma": 0.2, "solver": solver}
    model = (TaylorSVC if kind == "classes" else TaylorSVR)(**settings)
    model.fit_stream([(X[:100], y[:100]), (X[100:], y[100:])], epochs=4)
    assert model.support_.dtype == np.int32 and 0 < len(model.support_) <= 300
    assert (np.diff(model.support_) > 0).all() and model.support_[-1] < 300
    counts = np.bincount(y[model.support_], minlength=3) if kind == "classes" else [len(model.support_)]
    assert model.n_support_.tolist() == list(counts)


@pytest.mark.parametrize("way", ["adagrad", "partial_fit", "adagrad stream"])
def test_without_a_dual_point_there_are_no_support_vectors(way):
    X = rows()
    y = classes(X)
    model = TaylorSVC(degree=2, gamma=0.1).fit(X, y)
    assert hasattr(model, "support_")
    if way == "partial_fit":
        model.partial_fit(X, y)
    elif way == "adagrad":
        model.set_params(solver="adagrad").fit(X, y)
    else:
        model.set_params(solver="adagrad").fit_stream([(X, y)])
    for name in ("support_", "n_support_"):
        with pytest.raises(AttributeError, match='no support vectors: .* solver="dual"'):
            getattr(model, name)
    with pytest.raises(NotFittedError):
        _ = TaylorSVC().support_


def test_support_vectors_are_kept(tmp_path):
    X = rows()
    for y in (classes(X), classes(X, 3), (X[:, :2] > 0).astype(int), X[:, 0]):
        model = (TaylorSVR if y.dtype.kind == "f" else TaylorSVC)().fit(X, y)
        model.save(tmp_path / "model")
        for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert np.array_equal(again.support_, model.support_) and again.support_.dtype == np.int32
            assert np.array_equal(again.n_support_, model.n_support_) and again.n_support_.dtype == np.int32


# Interactions of columns under the caller's names.


def table(n_rows=300):
    """A mixed DataFrame, and what is to be learned: the product of a flag and a number."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "colour": random.choice(["red", "green", "blue"], n_rows),
            "size": random.choice(["S", "M", "L"], n_rows),
            "age": random.normal(40, 12, n_rows),
            "income": random.lognormal(10, 1, n_rows),
        }
    )
    return frame, np.where((frame["colour"] == "red") & (frame["age"] > 40), 2, 1)


@pytest.mark.parametrize("sparse_threshold", [0.0, 1.0])
def test_monomials_speak_in_a_pipeline_of_a_column_transformer(sparse_threshold):
    frame, y = table()
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour", "size"]),
        (StandardScaler(), ["age", "income"]),
        sparse_threshold=sparse_threshold,
        verbose_feature_names_out=False,
    )
    model = make_pipeline(columns, TaylorSVC(degree=2, gamma=0.1, C=10.0, shift=None)).fit(frame, y)
    assert sparse.issparse(model[:-1].transform(frame)) == (sparse_threshold > 0)
    assert model[-1].top_monomials(1)[0].name.startswith("x")
    top = model[-1].top_monomials(3, feature_names=model[:-1].get_feature_names_out())
    assert "colour_red * age" in [monomial.name for monomial in top]
    assert [m[1:] for m in top] == [m[1:] for m in model[-1].top_monomials(3)]
    assert "colour_red * age" in str(top)


@pytest.mark.parametrize("settings", [{}, {"n_cells": 2}, {"n_axes": 2}], ids=str)
@half_the_axes
def test_names_that_do_not_fit_are_refused(settings):
    X = rows()
    names = ["north", "east", "south", "west"]
    models = [
        TaylorSVC(degree=2, gamma=0.1, **settings).fit(X, classes(X)),
        TaylorSVC(degree=2, gamma=0.1, **settings).fit(X, classes(X, 3)),
        TaylorSVR(degree=2, gamma=0.1, **settings).fit(X, X[:, 0]),
        TaylorSVR(degree=2, gamma=0.1, **settings).fit(X, X[:, :2]),
    ]
    for model, which in zip(models, ({}, {"label": 1}, {}, {"target": 1}), strict=True):
        told = model.top_monomials(5, **which, feature_names=np.array(names))
        word = "axis" if "n_axes" in settings else "|".join(names)
        assert all(re.search(word, monomial.name) for monomial in told if monomial.powers)
        framed = clone(model).fit(
            pd.DataFrame(X, columns=names), X[:, 0] if isinstance(model, TaylorSVR) else classes(X)
        )
        turned = framed.top_monomials(5, feature_names=names[::-1])
        assert [m.weight for m in turned] == [m.weight for m in framed.top_monomials(5)]
        for wrong in (names[:3], [*names, "up"], "west", ()):
            n = 1 if wrong == "west" else len(wrong)
            with pytest.raises(ValueError, match=f"feature_names has {n} names; the model has 4 columns"):
                model.top_monomials(feature_names=wrong)


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_importance_does_not_depend_on_the_size_of_weights(size):
    X = rows()
    y = X[:, 0] * X[:, 1]
    settings = {"degree": 2, "gamma": 0.1, "loss": "squared_error", "tol": 1e-6, "max_iter": -1}
    one, other = (TaylorSVR(**settings).fit(X, factor * y) for factor in (1.0, size))
    assert np.allclose(one.column_importance_, other.column_importance_, rtol=1e-3)
