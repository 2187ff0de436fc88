"""Unit rows: features of norm 1 however far a row is out, and what models make of them."""

import warnings
from math import comb

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.svm import SVC, SVR

from taylorkern import (
    ApproximationWarning,
    TaylorFeatures,
    TaylorOperator,
    TaylorSVC,
    TaylorSVR,
    _core,
    taylor_kernel,
)
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows
from taylorkern.kernel import kernel_error

REALS = [np.float32, np.float64]
FAR = {np.float32: [1.0, 30.0, 1e3, 1e10, 1e30], np.float64: [1.0, 30.0, 1e3, 1e10, 1e100, 1e150]}


def rows_at(times, n_columns, dtype, seed=0):
    """Rows of length about 1, some of them sparse, each as many times as long."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(11, n_columns)) * (random.uniform(size=(11, n_columns)) < 0.7)
    return (X * random.choice(times, size=(11, 1))).astype(dtype)


def walked(X, how):
    """Rows that are walked by all columns, by their nonzeros, or stored sparse."""
    rows = Rows(check_rows(sparse.csr_array(X) if how == "csr" else X))
    rows.walk_dense(how == "dense")
    return rows


# Features.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", ["dense", "nonzeros", "csr"])
@pytest.mark.parametrize(("n_columns", "degree"), [(6, 1), (6, 2), (6, 3), (18, 3), (3, 8), (2, 40), (1, 170)])
def test_features_of_far_rows_have_length_one_and_keep_their_direction(instruction_set, dtype, how, n_columns, degree):
    kernel = reference.kernel_of("gaussian", degree, 0.4, unit=True)
    X = rows_at(FAR[dtype], n_columns, dtype)
    Phi = reference.Basis(n_columns, degree).far_features(X, kernel)
    expansion, rows = Expansion(n_columns, **kernel.parameters), walked(X, how)
    tolerance = reference.rounding(X[:0], kernel, Phi.shape[1])
    for width in (1, 3):
        table = np.random.default_rng(1).normal(size=(Phi.shape[1], width)).astype(dtype)
        for known in (False, True):
            if known:
                rows.know_factors(expansion)
            products, scratch = np.empty((len(X), width), dtype=dtype), rows.scratch()
            _core.dot(rows.core, expansion.features, 0, len(X), table, products, scratch)
            assert np.abs(products - Phi @ table).max() <= tolerance * (np.abs(Phi) @ np.abs(table)).max()
            added = np.zeros((Phi.shape[1], width), dtype=dtype)
            t = np.ones((len(X), width), dtype=dtype)
            _core.add(rows.core, expansion.features, 0, len(X), added, t, scratch)
            assert np.abs(added - Phi.sum(axis=0)[:, None]).max() <= tolerance * np.abs(Phi).sum(axis=0).max()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", ["nonzeros", "csr"])
@pytest.mark.parametrize("n_rows", [3, 11])
def test_gram_matrices_of_far_rows_are_those_of_their_features(instruction_set, dtype, how, n_rows):
    kernel = reference.kernel_of("gaussian", 4, 0.4, unit=True)
    X = rows_at(FAR[dtype], 6, dtype)[:n_rows]
    Phi = reference.Basis(6, 4).far_features(X, kernel)
    rows, gram = walked(X, how), np.empty((n_rows, n_rows))
    scratch = np.zeros(_core.gram_scratch_bytes(rows.core, n_rows), dtype=np.uint8)
    _core.gram(rows.core, Expansion(6, **kernel.parameters).features, 0, n_rows, gram, scratch)
    assert np.allclose(gram, Phi @ Phi.T, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert np.allclose(np.diag(gram), 1.0, rtol=100 * np.finfo(dtype).eps)
    assert np.array_equal(gram, gram.T)


@given(
    times=st.sampled_from([1e-100, 1.0, 40.0, 1e20, 1e150]),
    degree=st.integers(1, 9),
    n_columns=st.integers(1, 4),
    as_csr=st.booleans(),
    name=st.sampled_from(["gaussian", "exponential", "polynomial"]),
)
def test_features_products_and_closed_forms_agree(times, degree, n_columns, as_csr, name):
    X = rows_at([1.0, times], n_columns, np.float64, seed=degree)
    known = {"degree": degree, "gamma": 0.3, "kernel": name, "normalize": True}
    X = sparse.csr_array(X) if as_csr else X
    Phi = TaylorFeatures(**known).fit_transform(X)
    K = taylor_kernel(X, **known)
    assert np.isfinite(K).all()
    assert np.allclose((Phi @ Phi.T).toarray(), K, rtol=0, atol=1e-12)
    assert np.allclose(np.diag(K), 1.0, rtol=1e-12)
    v = np.random.default_rng(0).normal(size=Phi.shape[1])
    assert np.allclose(TaylorOperator(X, **known) @ v, Phi @ v, rtol=0, atol=1e-11 * np.abs(v).sum())


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "polynomial", [0.5, 1.0, 0.0, 2.0]])
def test_normalised_kernels_are_quotients(kernel):
    X, Y = np.random.default_rng(0).normal(size=(2, 20, 3))
    known = {"degree": 3, "gamma": 0.3, "kernel": kernel, "coef0": 0.7}
    norms = [np.sqrt(np.diag(taylor_kernel(Z, **known))) for Z in (X, Y)]
    expected = taylor_kernel(X, Y, **known) / np.multiply.outer(*norms)
    assert np.allclose(taylor_kernel(X, Y, **known, normalize=True), expected, rtol=1e-12)


def test_rows_without_features_stay_without():
    """The kernel <x, x'>^2 knows nothing of a row of zeros."""
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    known = {"degree": 2, "gamma": 1.0, "kernel": "polynomial", "coef0": 0.0, "normalize": True}
    assert np.allclose(taylor_kernel(X, **known), [[0, 0], [0, 1]])
    Phi = TaylorFeatures(**known).fit_transform(X).toarray()
    assert np.allclose(Phi @ Phi.T, [[0, 0], [0, 1]])


def test_a_kernel_without_its_highest_degree_is_not_normalised():
    with pytest.raises(ValueError, match="last coefficient"):
        taylor_kernel([[1.0]], degree=2, kernel=[1.0, 1.0, 0.0], gamma=1.0, normalize=True)


@pytest.mark.parametrize("normalize", [1, "yes", None, "auto"])
def test_tools_take_yes_or_no(normalize):
    for call in (
        lambda: TaylorFeatures(normalize=normalize).fit([[1.0]]),
        lambda: TaylorOperator([[1.0]], normalize=normalize),
    ):
        with pytest.raises(ValueError, match="normalize must be True or False"):
            call()


@pytest.mark.parametrize("normalize", [1, "yes", None])
def test_estimators_take_auto_too(normalize):
    for model in (TaylorSVC(normalize=normalize), TaylorSVR(normalize=normalize)):
        with pytest.raises(ValueError, match=f"normalize must be .* got {normalize!r}"):
            model.fit([[1.0], [2.0]], [0, 1])


def test_auto_is_for_the_gaussian_kernel():
    X, y = make_moons(60, random_state=0)
    for kernel, unit in (("gaussian", True), ("rbf", True), ("exponential", False), ("poly", False)):
        model = TaylorSVC(kernel=kernel, degree=3, gamma=0.2).fit(X, y)
        other = TaylorSVC(kernel=kernel, degree=3, gamma=0.2, normalize=unit).fit(X, y)
        assert np.array_equal(model.decision_function(X), other.decision_function(X))


def test_the_error_of_unit_rows_is_measured_against_the_gaussian_kernel():
    X = np.random.default_rng(0).normal(size=(50, 3))
    known = {"degree": 3, "gamma": 0.3, "normalize": True, "n_pairs": 20_000, "random_state": 0}
    K = reference.gaussian(X, X, 0.3)
    expected = np.abs(taylor_kernel(X, degree=3, gamma=0.3, normalize=True) - K).mean()
    for kernel in ("gaussian", "exponential"):
        error = kernel_error(X, kernel=kernel, **known)
        assert abs(error.mean - expected) < 5 * error.stderr


# Kernels that have no s(x).


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("kernel", ["exponential", "polynomial", [1.0, 1.0, 1.0, 1.0]])
def test_rows_beyond_a_kernel_are_refused_by_name(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(dtype)
    far = X.copy()
    far[7] *= dtype(1e17 if dtype == np.float32 else 1e120)
    y = X[:, 0] > 0
    model = TaylorSVC(kernel=kernel, degree=3, gamma=0.1).fit(X, y)
    known = {"kernel": kernel, "degree": 3, "gamma": 0.1}
    for call in (
        lambda: model.decision_function(far),
        lambda: TaylorSVC(**known).fit(far, y),
        lambda: TaylorSVR(**known).fit(far, y),
        lambda: TaylorFeatures(**known).fit_transform(far),
        lambda: TaylorOperator(far, **known),
        lambda: taylor_kernel(far, **known),
    ):
        with pytest.raises(ValueError, match=r"row 7 is too long for the .* kernel .*normalize=True"):
            call()
    unit = TaylorSVC(**known, normalize=True).fit(X, y)
    assert np.isfinite(unit.decision_function(far)).all()


# What users met: each of these was silently wrong.


def checkerboard(n_rows, fields, seed=0):
    X = np.random.default_rng(seed).uniform(size=(n_rows, 2))
    return X, (np.floor(fields * X).astype(int).sum(axis=1)) % 2


SETS = {
    "blobs": (lambda: make_blobs(1500, centers=5, random_state=1), {"gamma": 0.1}),
    "circles": (lambda: make_circles(1500, noise=0.1, factor=0.5, random_state=0), {"gamma": 2.0}),
    "moons": (lambda: make_moons(1500, noise=0.15, random_state=0), {"gamma": 25.0}),
    "checkerboard": (lambda: checkerboard(1500, 2), {}),
    "narrow checkerboard": (lambda: checkerboard(1500, 4), {"gamma": 80.0}),
}


@pytest.mark.parametrize("name", SETS)
def test_a_class_name_swapped_is_as_good_a_model(name):
    (X, y), parameters = SETS[name][0](), SETS[name][1]
    train, test = slice(0, 1000), slice(1000, None)
    exact = SVC(**parameters).fit(X[train], y[train]).score(X[test], y[test])
    ours = TaylorSVC(**parameters).fit(X[train], y[train]).score(X[test], y[test])
    assert exact > 0.7 and ours >= exact - 0.02


def test_a_product_of_signs_is_learned():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    y = np.sign(X.prod(axis=1))
    exact = SVC().fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
    assert TaylorSVC().fit(X[:2000], y[:2000]).score(X[2000:], y[2000:]) >= exact - 0.02


def test_numbers_are_learned_at_small_bandwidths():
    X = np.random.default_rng(0).uniform(-3, 3, size=(900, 1))
    y = np.sin(4 * X[:, 0])
    exact = SVR(gamma=2.0).fit(X[:600], y[:600]).score(X[600:], y[600:])
    assert TaylorSVR(gamma=2.0).fit(X[:600], y[:600]).score(X[600:], y[600:]) >= exact - 0.02


# Rows that are far from all training rows.


@pytest.mark.filterwarnings("ignore::taylorkern.ApproximationWarning")  # of two axes of three
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("parameters", [{}, {"n_cells": 4}, {"n_axes": 2}, {"n_cells": 3, "n_partitions": 2}])
def test_far_rows_keep_their_class_and_are_no_surer_than_near_ones(parameters, dtype):
    """Along a ray the output tends to a number; |f(x)| <= |w| there as everywhere."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3)).astype(dtype)
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    model = TaylorSVC(gamma=0.3, degree=4, **parameters).fit(X, y)
    rays = random.normal(size=(50, 3)).astype(dtype)
    bound = np.linalg.norm(model.monomial_coef_) * max(parameters.get("n_partitions", 1), 1) ** 0.5
    at = [model.decision_function(rays * dtype(k)) for k in FAR[dtype][2:]]
    for values in at:
        assert np.isfinite(values).all() and (np.abs(values) <= bound * 1.001).all()
        assert np.abs(values - at[0]).max() <= 0.05 * max(np.abs(at[0]).max(), 0.1)
    beside = model.decision_function(rays * dtype(FAR[dtype][3] * 1.01))
    assert np.abs(beside - at[1]).max() <= 1e-3 * max(np.abs(at[1]).max(), 0.1)


def test_numbers_of_far_rows_are_bounded():
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = TaylorSVR(gamma=0.3).fit(X, X[:, 0] ** 2)
    far = model.predict(np.array([[1e3, 0.0], [1e100, -1e100], [0.0, 1e200]]))
    assert np.abs(far - model.offset_).max() <= np.linalg.norm(model.monomial_coef_) * 1.001


# The warning.


def test_what_is_cut_too_much_is_told_with_what_would_help():
    X, y = checkerboard(2000, 8)
    X = 8 * X
    with pytest.warns(ApproximationWarning, match=r"degree=\d+ is low for gamma=5: .* n_cells=\d+") as caught:
        model = TaylorSVC(gamma=5.0).fit(X, y)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    n_cells = int(str(caught[0].message).split("n_cells=")[1].split()[0])
    better = TaylorSVC(gamma=5.0, n_cells=n_cells).fit(X, y)  # without a warning: they are errors here
    new = checkerboard(1000, 8, seed=1)
    assert better.score(8 * new[0], new[1]) > model.score(8 * new[0], new[1]) + 0.05


def test_streams_tell_it_too():
    X, y = checkerboard(2000, 8)
    with pytest.warns(ApproximationWarning, match="n_cells") as caught:
        TaylorSVC(gamma=5.0, normalize=False).fit_stream(lambda: [(8 * X, y)], epochs=3)
    assert caught[0].filename == __file__


def test_numbers_that_are_cut_too_much_are_told():
    X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    with pytest.warns(ApproximationWarning, match="R2"):
        TaylorSVR(gamma=20.0, degree=5).fit(X, np.sin(9 * X[:, 0]))


@pytest.mark.parametrize("name", SETS)
def test_good_models_give_no_warning(name):
    (X, y), parameters = SETS[name][0](), SETS[name][1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TaylorSVC(**parameters).fit(X, y)


def test_kernels_that_are_not_cut_give_no_warning():
    X, y = checkerboard(300, 8)
    for kernel in ("polynomial", "exponential"):
        TaylorSVC(kernel=kernel, gamma=0.1, tol=0.1).fit(X, y)


# Defaults.


def test_two_columns_go_to_high_degrees_and_many_to_low_ones():
    random = np.random.default_rng(0)
    for n_columns, gamma, least, most in ((2, 50.0, 40, 80), (3, 0.1, 2, 20), (16, 0.06, 2, 3), (600, 0.002, 2, 2)):
        X = random.normal(size=(200, n_columns))
        degree = TaylorSVC(gamma=gamma, tol=0.1, max_iter=3000).fit(X[:90], X[:90, 0] > 0).degree_
        assert least <= degree <= most
        assert degree == 2 or comb(n_columns + degree, degree) <= 2500 or comb(n_columns + degree, degree) <= 1000
