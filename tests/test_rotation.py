"""Principal axes: monomials of a row's first coordinates along them.

s(x) is that of the whole row, and its features a projection; of unit rows it is that of the coordinates alone.
"""

import copy
import pickle
import re
import warnings
from functools import cache
from math import sqrt

import numpy as np
import pytest
import reference
from reference import Basis, gaussian, kernel_of, svm_optimum
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from taylorkern import TaylorSVC, TaylorSVR, load
from taylorkern._core import MAX_DENSE_COLUMNS
from taylorkern._data.expansion import Expansion
from taylorkern._model.predictor import Predictor
from taylorkern._place import rotation as _rotation
from taylorkern._place.rotation import Rotation, choose_rotation
from taylorkern._train.certificate import _whole_products, residuals_of

SOLVERS = ("dual", "pegasos", "adagrad")
FORMS = (np.asarray, sparse.csr_array)
REALS = (np.float64, np.float32)
NORMALIZE = pytest.mark.parametrize("normalize", ["auto", False], ids=["unit", "paper"])
GAMMA = 0.05

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def not_exact(estimator):
    reason = "weights are equivalent to repeated rows only to the accuracy of the gap, and the axes differ"
    failing = {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
    if estimator.n_axes == 3:
        failing["check_regressors_train"] = "one of ten columns decides, and three axes of ten that vary alike miss it"
    return failing


@parametrize_with_checks(
    [TaylorSVC(n_axes=2), TaylorSVR(n_axes=3), TaylorSVR(n_axes=10)],
    expected_failed_checks=not_exact,
)
@pytest.mark.filterwarnings("ignore::taylorkern.ApproximationWarning")  # three axes of ten miss the one that decides
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def data(n_rows=200, n_columns=9, form=np.asarray, real=np.float64, seed=0):
    """Rows that lie near four directions, away from the origin; some entries are zero. Two columns decide."""
    random = np.random.default_rng(seed)
    axes, centre = random.normal(size=(4, n_columns)), random.normal(size=n_columns)
    X = 0.6 * random.normal(size=(n_rows, 4)) @ axes + 0.1 * random.normal(size=(n_rows, n_columns)) + centre
    X[:, 3] *= random.uniform(size=n_rows) < 0.3
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    return form(X.astype(real)), np.where(score > np.median(score), 1, -1)


@cache
def exact_optimum(real):
    """(lower, upper) end of the exact SVM's optimum for these rows."""
    X, y = data(real=real)
    return svm_optimum(gaussian(as_array(X), as_array(X), GAMMA), y, 1 / (3.0 * len(y)), tolerance=1e-5)


def as_array(X):
    return (X.toarray() if sparse.issparse(X) else np.asarray(X)).astype(np.float64)


def along(model, X):
    """(coordinates along the axes, |x - mean|^2)."""
    X = as_array(X) - model.shift_
    return X @ model.axes_.T, (X**2).sum(axis=1)


def cut_kernel(model, X, Y, unit=None):
    """sum_{k <= r} (2 gamma <z, z'>)^k / k! exp(-gamma (|x - m|^2 + |x' - m|^2)); of unit rows, sqrt(K~ K~') less.

    What lies beyond the axes is a factor of each row, which cancels in unit rows.
    """
    (Z, norms), (Z2, norms2) = along(model, X), along(model, Y)
    K = reference.kernel_matrix(Z, Z2, kernel_like(model, unit))
    return K if is_unit(model, unit) else decays(model, Z, norms)[:, None] * K * decays(model, Z2, norms2)


def features(model, X):
    """The same kernel's features."""
    Z, norms = along(model, X)
    Phi = Basis(Z.shape[1], model.degree_).features(Z, kernel_like(model))
    return Phi if is_unit(model) else Phi * decays(model, Z, norms)[:, None]


def is_unit(model, unit=None):
    return model.normalize is not False if unit is None else unit


def kernel_like(model, unit=None):
    return kernel_of("gaussian", model.degree_, model.gamma_, unit=is_unit(model, unit))


def decays(model, Z, norms):
    """The factors of what is beyond the axes."""
    return np.exp(-model.gamma_ * (norms - (Z**2).sum(axis=1)))


def tolerance(real):
    return 1e-9 if real == np.float64 else 2e-4


def outputs(model, X):
    return model._outputs(X).astype(np.float64)


def fitted(X, y, estimator=TaylorSVC, **settings):
    settings = {"degree": 3, "gamma": GAMMA, "n_axes": 3, "C": 3.0, "max_iter": 30, "random_state": 0, **settings}
    return estimator(**settings).fit(X, y)


# What is trained.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("case", ["two", "three", "joint", "number", "numbers"])
@NORMALIZE
def test_outputs_are_sums_of_the_cut_kernel(form, real, case, normalize):
    X, y = data(form=form, real=real)
    settings = {"normalize": normalize} | ({"multi_class": "crammer_singer"} if case == "joint" else {})
    estimator, signs = TaylorSVC, np.where(y[:, None] > 0, 1.0, -1.0)
    if case in ("three", "joint"):
        y = y + 2 * (as_array(X)[:, 0] > 1)
        signs = np.where(y[:, None] == np.unique(y), 1.0, -1.0) if case == "three" else 1.0
    if case.startswith("number"):
        estimator, signs = TaylorSVR, 1.0
        y = as_array(X)[:, 0] if case == "number" else as_array(X)[:, :2]
    model = fitted(X, y, estimator, warm_start=True, **settings)
    new, _ = data(50, form=form, real=real, seed=1)
    expected = 3.0 * cut_kernel(model, new, X) @ (model._alpha * signs)
    assert np.ptp(expected) > 0.1
    assert np.allclose(outputs(model, new), expected, rtol=0, atol=tolerance(real) * np.abs(model._alpha).sum())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("degree", [1, 3])
@NORMALIZE
def test_outputs_and_objectives_are_those_of_the_weights(form, real, solver, degree, normalize):
    X, y = data(form=form, real=real)
    model = fitted(X, y, degree=degree, solver=solver, normalize=normalize)
    expected = features(model, X) @ model.monomial_coef_[0]
    assert np.allclose(
        model.decision_function(X), expected, rtol=0, atol=tolerance(real) * np.abs(model.monomial_coef_).sum()
    )
    primal = (model.monomial_coef_**2).sum() / (2 * 3.0 * len(y)) + np.maximum(0, 1 - y * expected).mean()
    assert model.certificate_.primal == pytest.approx(primal, rel=100 * tolerance(real) if real == np.float32 else 1e-8)
    assert model.certificate_.primal < 0.9


@pytest.mark.parametrize("form", FORMS)
def test_columns_beyond_what_is_walked_whole(form):
    X, y = data(60, MAX_DENSE_COLUMNS + 5, form=form)
    model = fitted(X, y, gamma=0.001, warm_start=True)
    expected = 3.0 * cut_kernel(model, X, X) @ (model._alpha[:, 0] * y)
    assert np.allclose(model.decision_function(X), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_axes", [9, 1000])
@NORMALIZE
def test_all_axes_are_a_rotation(form, n_axes, normalize):
    """Nothing lies beyond: K~ is what it is for the rows shifted by their mean."""
    X, y = data(form=form)
    model = fitted(X, y, n_axes=n_axes, tol=1e-6, max_iter=2000, normalize=normalize)
    assert model.axes_.shape == (9, 9) and model.n_slots_ == 220
    centred = as_array(X) - as_array(X).mean(axis=0)
    K = reference.kernel_matrix(centred, centred, kernel_like(model))
    assert np.allclose(cut_kernel(model, X, X), K, rtol=0, atol=1e-12)
    plain = fitted(X, y, n_axes=None, shift=as_array(X).mean(axis=0), tol=1e-6, max_iter=2000, normalize=normalize)
    for name in ("primal", "dual"):
        assert getattr(model.certificate_, name) == pytest.approx(getattr(plain.certificate_, name), rel=3e-6)
    assert model.certificate_.theorem1 == pytest.approx(plain.certificate_.theorem1, rel=1e-9, nan_ok=True)
    assert np.allclose(model.decision_function(X), plain.decision_function(X), rtol=0, atol=0.02)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("wide", [False, True])
def test_axes_are_orthonormal_and_principal(monkeypatch, form, real, wide):
    if wide:
        monkeypatch.setattr(_rotation, "COVARIANCE", 0)
    X, y = data(form=form, real=real)
    model = fitted(X, y, max_iter=2)
    assert model.axes_.shape == (3, 9) and model.n_features_in_ == 9 and model.n_slots_ == 20
    assert np.allclose(model.axes_ @ model.axes_.T, np.eye(3), rtol=0, atol=1e-12)
    assert np.allclose(model.shift_, as_array(X).mean(axis=0), rtol=0, atol=1e-5)
    variances = np.linalg.eigvalsh(np.cov(as_array(X).T))[::-1][:3]
    assert np.allclose(along(model, X)[0].var(axis=0, ddof=1), variances, rtol=1e-4)
    assert set(re.findall(r"axis\d+", str(model.top_monomials(20)))) == {"axis0", "axis1", "axis2"}
    with pytest.raises(AttributeError, match="no principal axes"):
        _ = fitted(X, y, n_axes=None, max_iter=2).axes_


def test_axes_of_many_rows_are_found_from_a_sample(monkeypatch):
    monkeypatch.setattr(_rotation, "SAMPLE", 50)
    X, _ = data()
    some = X[np.sort(np.random.RandomState(3).permutation(200)[:50])]
    rotation = choose_rotation(X, 2, np.random.RandomState(3))
    assert np.allclose(rotation.mean, some.mean(axis=0))
    assert np.allclose(np.abs(rotation.axes.T @ np.linalg.eigh(np.cov(some.T))[1][:, [-1, -2]]), np.eye(2), atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_rows_are_split_into_coordinates_and_what_is_beyond(monkeypatch, form, real, offset):
    """Wherever they lie."""
    monkeypatch.setattr(_rotation, "CHUNK", 64)
    X, y = data()
    X = form((X + offset).astype(real))
    model = fitted(X, y, max_iter=2)
    Z, norms = along(model, X)
    rows = model._shift.rows(X)
    # Squares of the offset cancel; of dense rows in single precision, a rounded mean comes off.
    exact = {"rtol": 0, "atol": 1e-12 + 1e-14 * offset**2 if real == np.float64 else 3e-5 + 1e-6 * offset}
    assert rows.dtype == real and np.allclose(rows.X, Z, **exact)
    assert np.allclose(sum(rows.squares()), norms, **exact) and (rows.squares()[1] >= 0).all()
    assert rows.squares()[1].max() > 0.01
    assert np.array_equal(model._shift.rows(X, n_jobs=3).X, rows.X)


# What is certified.


def problem_of(model, X, y):
    rows, y = model._check_data(X, y)
    return model._problem(rows, y, None, model._meaning(), model._expansion, model._shift)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("degree", [1, 4])
@NORMALIZE
def test_residuals_in_closed_form(form, degree, normalize):
    """They are of the whole rows' exact features, unit rows or not."""
    X, y = data(form=form)
    model = fitted(X, y, degree=degree, max_iter=2, normalize=normalize)
    problem = problem_of(model, X, y)
    residuals, gone = residuals_of(problem, problem.rows)
    assert np.allclose(residuals, 1 - np.diag(cut_kernel(model, X, X, unit=False)), rtol=0, atol=1e-13)
    assert not gone.any()
    theorem1 = sqrt(3.0 / len(y)) * np.sqrt(residuals).sum() if normalize is False else np.nan
    assert model.certificate_.theorem1 == pytest.approx(theorem1, rel=1e-9, nan_ok=True)


def test_small_residuals_keep_their_digits():
    """Of a row t = 2 gamma |z|^2 and b = 2 gamma (|x - m|^2 - |z|^2): about b + t^(r+1) / (r+1)!"""
    X, y = data()
    model = fitted(X, y, gamma=1e-9, max_iter=2)
    problem = problem_of(model, X, y)
    residuals, _ = residuals_of(problem, problem.rows)
    Z, norms = along(model, X)
    assert np.allclose(residuals, 2e-9 * (norms - (Z**2).sum(axis=1)), rtol=1e-6, atol=0)


def far_from_one_axis():
    """Rows along a line, and one far beside it."""
    X = np.zeros((40, 2))
    X[:, 0] = np.linspace(-50, 50, 40)
    X[20, 1] = 64.0
    return X, np.arange(40) % 2


def test_rows_underflow_by_what_is_beyond_the_axes():
    X, y = far_from_one_axis()
    with pytest.warns(RuntimeWarning, match="1 of 40 rows are so far"):
        model = fitted(X, y, gamma=0.2, n_axes=1, max_iter=2, normalize=False)
    assert model.certificate_.n_underflowed == 1
    assert along(model, X)[0][20] ** 2 < 10 and np.flatnonzero(model.decision_function(X) == 0).tolist() == [20]


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("far", [64.0, 1e15])
def test_unit_rows_do_not_underflow_however_far_beyond_the_axes(real, far):
    """Their features are those of what lies along the axes."""
    X, y = far_from_one_axis()
    model = fitted(X.astype(real), y, gamma=0.2, n_axes=1, max_iter=2)
    assert model.certificate_.n_underflowed == 0
    beside = model.axes_[0][::-1] * [far, -far]  # at right angles to the axis
    near, away = X[5:7], (X[5:7] + beside).astype(real)
    expected = features(model, away) @ model.monomial_coef_[0]
    rounding = np.finfo(real).eps * far
    assert np.allclose(model.decision_function(away), expected, rtol=0, atol=tolerance(real) + rounding)
    if far < 1e3:
        assert np.allclose(model.decision_function(near), expected, rtol=0, atol=tolerance(real) + rounding)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("solver", SOLVERS)
@NORMALIZE
def test_the_intervals_contain_the_exact_optimum(form, real, solver, normalize):
    X, y = data(form=form, real=real)
    model = fitted(X, y, degree=4, n_axes=5, solver=solver, tol=1e-4, max_iter=300, normalize=normalize)
    certificate = model.certificate_ if solver == "dual" else model.certify(X, y)
    low, high = exact_optimum(real)
    rounding = 1e-5 if real == np.float32 else 0
    for interval in (certificate.exact_interval, certificate.sampled_interval):
        assert interval[0] - rounding <= high and low <= interval[1] + rounding
    assert certificate.exact_interval[0] <= certificate.sampled_interval[0] < certificate.exact_interval[1]
    assert certificate.sampled_interval[0] > 0.25 * certificate.dual  # and it says something
    if normalize is False:
        assert certificate.sampled_interval[0] < certificate.dual
        assert certificate.exact_interval[1] == certificate.primal


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("offset", [0.0, 300.0])
@NORMALIZE
def test_the_sampled_cut_is_that_of_the_whole_rows(form, real, offset, normalize):
    """The exact kernel minus the cut one, over all pairs; wherever the rows lie."""
    X, y = data(form=np.asarray)
    X = form((X + offset).astype(real))
    model = fitted(X, y, warm_start=True, tol=1e-4, max_iter=300, normalize=normalize)
    signed, per_sum = model._alpha[:, 0] * y, 3.0 / (2 * len(y))
    K = cut_kernel(model, X, X, unit=False)
    kept = per_sum * signed @ K @ signed
    cut = per_sum * signed @ (gaussian(as_array(X), as_array(X), GAMMA) - K) @ signed
    bound = per_sum * (np.abs(signed) @ np.sqrt(1 - np.diag(K))) ** 2
    certificate, alpha = model.certificate_, model._alpha.mean()
    assert certificate.exact_interval[0] == pytest.approx(low_of(alpha, kept, bound), abs=1e-6)
    stderr = certificate.sampled_stderr
    # With the cut three standard errors off, and the end two more of them away.
    worst, best = (low_of(alpha, kept, cut + errors * stderr) for errors in (5, -1))
    assert worst - 1e-6 < certificate.sampled_interval[0] < best + 1e-6
    assert cut > 0.01 and 3 * stderr < cut and best - worst < 0.7 * best


def low_of(alpha, kept, cut):
    """The largest theta mean alpha - theta^2 (kept + cut) with 0 <= theta <= 1."""
    theta = min(alpha / (2 * (kept + cut)), 1)
    return theta * alpha - theta**2 * (kept + cut)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
def test_kernels_of_whole_rows_far_from_the_origin_keep_their_digits(form, real):
    X, _ = data(32)
    X = (X + 3000).astype(real)
    z = _whole_products(form(X), Expansion(3, degree=2, gamma=GAMMA))
    K = np.exp(z - (np.diag(z)[:, None] + np.diag(z)) / 2)
    assert np.allclose(K, gaussian(as_array(X), as_array(X), GAMMA), rtol=0, atol=1e-7)


@NORMALIZE
def test_steps_are_as_long_as_the_whole_rows_allow(normalize):
    """The first steps of Pegasos on a squared loss depend on the largest K~(x, x)."""
    X, y = data()
    model = fitted(X, y, max_iter=2, normalize=normalize)
    assert problem_of(model, X, y).steepest() == pytest.approx(np.diag(cut_kernel(model, X, X)).max(), rel=1e-9)


def test_more_axes_come_closer_to_the_exact_kernel():
    X, y = data()
    exact = gaussian(X, X, GAMMA)
    errors = []
    for k in (1, 2, 4, 9):
        model = fitted(X, y, degree=6, n_axes=k, max_iter=2, normalize=False)
        errors.append(np.abs(exact - cut_kernel(model, X, X)).mean())
        assert np.linalg.eigvalsh(exact - cut_kernel(model, X, X))[0] > -1e-12  # that of what the projection takes away
    assert errors == sorted(errors, reverse=True) and errors[2] < errors[0] / 3


# Models that are kept, and rows that come later.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_saved_and_pickled_models_are_the_same(tmp_path, form, real, solver):
    X, y = data(form=form, real=real)
    model = fitted(X, y + 2 * (as_array(X)[:, 0] > 1), solver=solver, warm_start=True, max_iter=3)
    model.save(tmp_path / "model")
    expected = outputs(model, X)
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(outputs(again, X), expected)
        for name in ("axes_", "shift_", "monomial_coef_"):
            assert np.array_equal(getattr(again, name), getattr(model, name))
        assert again.n_features_in_ == 9 and str(again.top_monomials(4)) == str(model.top_monomials(4))
        assert repr(again.certificate_) == repr(model.certificate_)
        assert again.get_params() == model.get_params()
    assert np.array_equal(load(tmp_path / "model").fit(X, y).monomial_coef_, model.fit(X, y).monomial_coef_)


@pytest.mark.parametrize("real", REALS)
def test_the_command_lines_predictor_has_the_same_values(tmp_path, real):
    X, _ = data(form=sparse.csr_array, real=real)
    model = fitted(X, as_array(X)[:, 0], TaylorSVR, max_iter=3)
    model.save(tmp_path / "model")
    predictor = Predictor(tmp_path / "model")
    assert predictor.n_columns == 9
    values = predictor(X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64))
    assert np.array_equal(values, model.predict(X))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n_axes", [1, 3, 8])
@pytest.mark.parametrize("n_columns", [9, 40])
@pytest.mark.filterwarnings("ignore::taylorkern.ApproximationWarning")  # of one axis, or after two epochs
def test_the_value_of_a_row_does_not_depend_on_those_beside_it(instruction_set, form, real, n_axes, n_columns):
    X, y = data(form=form, real=real, n_columns=n_columns)
    model = fitted(X, y, n_axes=n_axes, gamma=0.02, max_iter=2)
    values = model.decision_function(X)
    for part in (slice(0, 1), slice(3, 12), slice(5, 200)):
        assert np.array_equal(model.decision_function(X[part]), values[part])
    order = np.random.default_rng(0).permutation(200)
    assert np.array_equal(model.decision_function(X[order]), values[order])
    assert np.array_equal(model.set_params(n_jobs=3).decision_function(X), values)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_and_seeds(form, solver):
    """One seed, one model, for any number of threads."""
    X, y = data(700, form=form)
    model, again = (fitted(X, y, solver=solver, max_iter=4, n_jobs=n_jobs) for n_jobs in (None, 3))
    assert np.array_equal(model._table, again._table) and np.array_equal(model.axes_, again.axes_)
    assert repr(model.certificate_) == repr(again.certificate_)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
def test_batches_are_along_the_axes_of_the_first(form, real):
    X, y = data(form=form, real=real)
    model = TaylorSVC(gamma=GAMMA, n_axes=3, C=30.0, random_state=0)
    model.partial_fit(X[:100], y[:100], classes=[-1, 1])
    first = TaylorSVC(gamma=GAMMA, n_axes=3, random_state=0, max_iter=1).fit(X[:100], y[:100])
    assert np.array_equal(model.axes_, first.axes_) and np.array_equal(model.shift_, first.shift_)
    for _ in range(30):
        model.partial_fit(X[100:], y[100:])
    assert np.array_equal(model.axes_, first.axes_) and model.n_iter_ == 31
    expected = features(model, X) @ model.monomial_coef_[0]
    assert np.allclose(
        model.decision_function(X), expected, rtol=0, atol=tolerance(real) * np.abs(model.monomial_coef_).sum()
    )
    assert model.score(X[100:], y[100:]) > 0.8
    with pytest.raises(ValueError, match="along principal axes cannot grow"):
        model.set_params(grow=True).partial_fit(np.ones((2, 11)), [-1, 1])
    with pytest.raises(ValueError, match="11 features"):
        model.set_params(grow=False).partial_fit(np.ones((2, 11)), [-1, 1])


@pytest.mark.parametrize("solver", ["dual", "adagrad"])
def test_warm_starts_go_on(solver):
    X, y = data()
    model = fitted(X, y, solver=solver, warm_start=True, tol=1e-9, max_iter=20)
    before = model.certificate_.primal
    model.set_params(max_iter=1).fit(X, y)
    assert model.certificate_.primal < 1.02 * before
    assert fitted(X, y, solver=solver, tol=1e-9, max_iter=1).certificate_.primal > 1.05 * before


def test_a_warm_start_looks_at_the_mean_too():
    """The same axes about another mean are another expansion."""
    X, y = data()
    model = fitted(X, y, solver="adagrad", warm_start=True, max_iter=3)
    model._shift = Rotation(model._shift.mean + 1.0, model._shift.axes)
    assert np.array_equal(model.fit(X, y).monomial_coef_, fitted(X, y, solver="adagrad", max_iter=3).monomial_coef_)


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
@pytest.mark.parametrize("form", FORMS)
@NORMALIZE
def test_streams_are_certified_against_the_exact_kernel(solver, form, normalize):
    """How rows are cut and checkpoints: test_fit_stream.py and test_checkpoint.py."""
    X, y = data(form=form)
    model = TaylorSVC(degree=4, gamma=GAMMA, n_axes=5, C=3.0, solver=solver, normalize=normalize, random_state=1)
    model.fit_stream([(X[:70], y[:70]), (X[70:], y[70:])], epochs=100)
    low, high = exact_optimum(np.float64)
    for interval in (model.certificate_.exact_interval, model.certificate_.sampled_interval):
        assert interval[0] <= high and low <= interval[1]
    expected = features(model, X) @ model.monomial_coef_[0]
    primal = (model.monomial_coef_**2).sum() / (2 * 3.0 * len(y)) + np.maximum(0, 1 - y * expected).mean()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-8)
    assert model.certificate_.sampled_interval[0] > 0.25 * model.certificate_.dual


def test_names_of_columns_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(9)])
    model = fitted(frame, y, max_iter=2)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == frame.columns.tolist()
    assert np.array_equal(again.decision_function(frame), model.decision_function(frame))


# What is odd, and what is refused.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n_axes", [1, 2, 5, 9])
@pytest.mark.parametrize("case", ["constant columns", "one row", "few rows", "zero", "equal rows", "one column"])
@pytest.mark.parametrize("wide", [False, True])
def test_odd_rows(monkeypatch, form, real, n_axes, case, wide):
    if wide:  # as if there were too many columns for a matrix of covariances
        monkeypatch.setattr(_rotation, "COVARIANCE", 0)
    X, _ = data(form=np.asarray)
    X = {
        "constant columns": np.hstack([X[:, :2], np.full((200, 7), 2.5)]),
        "one row": X[:1],
        "few rows": X[:3],
        "zero": np.zeros((20, 9)),
        "equal rows": np.ones((20, 9)),
        "one column": X[:, :1],
    }[case].astype(real)
    y = np.arange(len(X)) % 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fitted(form(X), y, TaylorSVR, n_axes=n_axes, warm_start=True, center=False)
    k, n_features = model.axes_.shape
    assert n_features == X.shape[1] and 1 <= k <= min(n_axes, *X.shape)
    assert np.allclose(model.axes_ @ model.axes_.T, np.eye(k), rtol=0, atol=1e-12)
    expected = 3.0 * cut_kernel(model, X, X) @ model._alpha[:, 0]
    assert np.allclose(model.predict(form(X)), expected, rtol=0, atol=tolerance(real) * (1 + np.abs(expected).max()))
    assert model.certificate_.exact_interval[0] <= model.certificate_.primal


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_axes": 0}, "n_axes must be an integer > 0; got 0"),
        ({"n_axes": -1}, "n_axes must be an integer > 0; got -1"),
        ({"n_axes": 2.0}, r"n_axes must be an integer > 0; got 2\.0"),
        ({"n_axes": True}, "n_axes must be an integer > 0; got True"),
        ({"n_axes": "x"}, "n_axes must be an integer > 0; got 'x'"),
        ({"n_cells": 2}, "n_axes=3 rotates .* no cells; .* n_cells=2"),
        ({"kernel": "polynomial"}, "takes the Gaussian kernel, .* got kernel='polynomial'"),
        ({"kernel": [1.0, 1.0, 1.0, 1.0]}, "takes the Gaussian kernel"),
        ({"shift": None}, 'takes .* shift="auto" .* shift=None'),
        ({"shift": np.zeros(9)}, 'takes .* shift="auto"'),
        ({"degree": 0}, "degree must be an integer from 1"),
    ],
)
@pytest.mark.parametrize("way", ["fit", "partial_fit", "fit_stream"])
@pytest.mark.parametrize("estimator", [TaylorSVC, TaylorSVR])
def test_what_does_not_go_together_is_refused(estimator, way, settings, message):
    X, y = data(30)
    model = estimator(**{"n_axes": 3, **settings})
    given = ([(X, y)],) if way == "fit_stream" else (X, y)
    if way == "partial_fit" and estimator is TaylorSVC:
        given += ([-1, 1],)
    with pytest.raises(ValueError, match=message):
        getattr(model, way)(*given)
    assert not hasattr(model, "_table")
