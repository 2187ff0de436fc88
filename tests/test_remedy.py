"""Refusals for memory name what would fit; and who follows them is accepted."""

import re
from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from taylorkern import TaylorSVC, TaylorSVR
from taylorkern._data import memory as _memory

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MIB = 2**20
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def dense(n_rows=60, n_columns=30, seed=0):
    return np.random.default_rng(seed).normal(1.0, 1.0, size=(n_rows, n_columns))


def flags(n_rows=60, n_columns=300, seed=0):
    return sparse.csr_array((np.random.default_rng(seed).uniform(size=(n_rows, n_columns)) < 0.03).astype(float))


def refusal(model, X, y, method="fit", **arguments):
    with pytest.raises(ValueError, match="would take|64-bit") as refused:
        getattr(model, method)(X, y, **arguments)
    return str(refused.value)


def remedies(message):
    """[(settings, bytes)] of all that a message names."""
    found = []
    for part in message.split("; ")[1:]:
        said, number, unit = re.fullmatch(r"(.*) would take (?:at most )?([\d.]+(?:e\+\d+)?) (\w+)", part).groups()
        said = re.sub(r" \(with \d+ kernel coefficients\)", "", said)
        settings = {name: int(value) for name, value in (pair.split("=") for pair in said.split(", "))}
        found.append((settings, float(number) * UNITS[unit]))
    return found


def follow(model, settings, X, y):
    """Fit with a remedy, whatever else is asked."""
    model = clone(model).set_params(**settings, max_iter=1, tol=0.9)
    if not isinstance(model.kernel, str) and "degree" in settings:
        model.set_params(kernel=model.kernel[: settings["degree"] + 1])
    return model.fit(X, y)


def check(model, X, y, limit, expected):
    model.set_params(memory_limit=limit)
    message = refusal(model, X, y)
    found = remedies(message)
    assert [set(settings) for settings, _ in found] == expected, message
    for settings, n_bytes in found:
        assert n_bytes <= limit * 1.001
        fitted = follow(model, settings, X, y)
        assert fitted.degree_ == settings.get("degree", model.degree)
    return [settings for settings, _ in found]


@pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_lower_degree_that_fits_is_named(solver, estimator, n_outputs, dtype):
    X = dense().astype(dtype)
    y = np.arange(60) % (n_outputs + (n_outputs == 1))
    y = np.eye(3)[y] if estimator is TaylorSVR and n_outputs > 1 else y
    model = estimator(degree=8, gamma=0.01, solver=solver)
    (settings,) = check(model, X, y, 16 * MIB, [{"degree"}])
    assert 2 <= settings["degree"] <= 6
    more = settings["degree"] + 1  # it is the highest one
    assert f"degree={settings['degree']} " in refusal(clone(model).set_params(degree=more), X, y)


@pytest.mark.parametrize("make", [sparse.csr_array, lambda X: X.toarray()], ids=["sparse", "dense"])
@pytest.mark.parametrize("shift", ["auto", None])
def test_rows_that_are_mostly_zero_have_a_lower_degree_too(make, shift):
    X = make(flags())
    model = TaylorSVC(degree=4, gamma=0.01, shift=shift)
    (settings,) = check(model, X, np.arange(60) % 2, 8 * MIB, [{"degree"}])
    assert settings == {"degree": 2}


@pytest.mark.parametrize(("kernel", "degree"), [("poly", 8), ("exponential", 8), ("rbf", 8), ((1.0,) * 9, 8)], ids=str)
def test_all_kernels_have_remedies(kernel, degree):
    model = TaylorSVC(kernel=kernel, degree=degree, gamma=0.01)
    check(model, dense(), np.arange(60) % 2, 10 * MIB, [{"degree"}])


def test_where_only_degree_1_fits_axes_are_named_too():
    X = dense(100, 400)
    model = TaylorSVC(degree=3, gamma=0.001)
    linear, axes = check(model, X, np.arange(100) % 2, MIB, [{"degree"}, {"n_axes"}])
    assert linear == {"degree": 1} and 10 < axes["n_axes"] < 100
    more = {"n_axes": axes["n_axes"] + 1}  # they are as many as fit
    assert "would take" in refusal(clone(model).set_params(**more), X, np.arange(100) % 2)


def test_where_not_even_degree_1_fits_axes_are_named():
    X = dense(100, 3000)
    y = np.arange(100) % 50
    (axes,) = check(TaylorSVC(degree=2, gamma=0.001), X, y, 2 * MIB, [{"n_axes"}])
    assert axes["n_axes"] > 10
    model = TaylorSVC(degree=12, gamma=0.001)
    (axes,) = check(model, X, y, 10**6, [{"n_axes", "degree"}])  # at degree 12 it would be 3 axes
    assert axes["degree"] == 2


@pytest.mark.parametrize("settings", [{"kernel": "exponential"}, {"shift": None}, {"shift": np.zeros(3000)}], ids=str)
def test_axes_are_not_named_where_they_are_refused(settings):
    model = TaylorSVC(degree=2, gamma=0.001, memory_limit=2 * MIB, **settings)
    assert "n_axes" not in refusal(model, dense(100, 3000), np.arange(100) % 50)


def test_fewer_axes_are_named():
    X = dense(100, 400)
    y = np.arange(100) % 2
    (settings,) = check(TaylorSVC(degree=4, n_axes=60, gamma=0.001), X, y, 4 * MIB, [{"degree"}])
    assert settings == {"degree": 3}
    (settings,) = check(TaylorSVC(degree=1, n_axes=80, gamma=0.001), X, y, 60_000, [{"n_axes"}])
    assert 2 <= settings["n_axes"] < 80


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_fewer_cells_are_named(make, n_partitions):
    X = make(dense(400, 40) * (dense(400, 40, 1) > 1.5))
    y = np.arange(400) % 2
    model = TaylorSVC(degree=3, gamma=0.05, n_cells=40, n_partitions=n_partitions, random_state=0)
    (settings,) = check(model, X, y, 2_000_000 * n_partitions, [{"n_cells"}])
    assert 2 <= settings["n_cells"] < 40


def test_no_cells_are_named_where_none_fit():
    X = dense(400, 20)
    y = np.arange(400) % 2
    model = TaylorSVC(degree=4, gamma=0.05, n_cells=4, random_state=0)
    (settings,) = check(model, X, y, 200_000, [{"n_cells", "degree"}])
    assert settings == {"n_cells": 1, "degree": 3}


@pytest.mark.parametrize("X", [dense(4000, 5), flags(4000, 40)], ids=["dense", "sparse"])
def test_batches_are_named_where_the_rows_are_what_is_large(X):
    y = np.arange(4000) % 2
    model = TaylorSVC(degree=2, memory_limit=200_000)
    message = refusal(model, X, y)
    n_rows = int(re.search(r"; partial_fit can take up to (\d+) rows at a time$", message)[1])
    assert 200 < n_rows < 4000
    model.partial_fit(X[:n_rows], y[:n_rows], classes=[0, 1]).partial_fit(X[-n_rows:], y[-n_rows:])


def test_free_memory_has_remedies_as_well(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**8)
    ((settings, n_bytes),) = remedies(refusal(TaylorSVC(degree=8), dense(), np.arange(60) % 2))
    assert settings == {"degree": 6} and n_bytes < 10**8
    TaylorSVC(**settings, max_iter=1, tol=0.9).fit(dense(), np.arange(60) % 2)


def test_what_nobody_can_follow_is_not_named():
    X, y = dense(50, 5), np.arange(50) % 2
    model = TaylorSVC(degree=2).fit(X, y)
    model.set_params(memory_limit=1000)
    assert refusal(model, X, y, "certify").endswith("allowed by memory_limit")  # the model has its degree
    assert refusal(model, X, y, "partial_fit").endswith("allowed by memory_limit")
    assert refusal(model.set_params(memory_limit=1), X, y).endswith("allowed by memory_limit")


def test_more_monomials_than_can_be_numbered_have_the_same_remedies():
    X, y = sparse.csr_array(np.eye(40, 20_000)), np.arange(40) % 2
    model = TaylorSVC(degree=6, gamma=0.1)
    message = refusal(model.set_params(memory_limit=100 * MIB), X, y)
    assert f"degree=6 on 20000 columns makes {comb(20_006, 6)} monomials, more than a 64-bit index can" in message
    (settings,) = check(model, X, y, 100 * MIB, [{"degree"}])
    assert settings == {"degree": 1}
    X = dense(50, 700)
    check(model.set_params(degree=9), X, np.arange(50) % 2, 100 * MIB, [{"degree"}])
    check(model, X, np.arange(50) % 2, float("inf"), [{"degree"}])
    check(model.set_params(n_cells=3, degree=40), dense(50, 30), np.arange(50) % 2, MIB, [{"n_cells", "degree"}])


@pytest.mark.parametrize("solver", ["dual", "adagrad"])
@pytest.mark.parametrize("make", [dense, flags])
@pytest.mark.parametrize("settings", [{}, {"n_axes": 15}], ids=str)
def test_streams_name_a_degree_that_fits(solver, make, settings):
    X = make(200, 40)
    y = np.arange(200) % 2
    model = TaylorSVC(degree=6, gamma=0.01, solver=solver, memory_limit=500_000, **settings)
    with pytest.raises(ValueError, match="training on a stream") as refused:
        model.fit_stream([(X, y)])
    ((remedy, n_bytes),) = remedies(str(refused.value))
    assert set(remedy) == {"degree"} and n_bytes <= 500_000
    model.set_params(**remedy).fit_stream([(X, y)])
