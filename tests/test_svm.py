"""TaylorSVC keeps the contract of scikit-learn's classifiers, and shows its model in the user's terms."""

import pickle
import re
import sys
import tracemalloc
from math import comb, inf, nan

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from taylorkern import ApproximationWarning, TaylorFeatures, TaylorSVC
from taylorkern._data import memory as _memory
from taylorkern.kernel import residual

LOSSES = ("hinge", "squared_hinge", "log_loss")
SOLVERS = ("dual", "pegasos", "adagrad")

slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def not_exact(estimator):
    reason = (
        "weights are equivalent to repeated rows only to the accuracy of the gap, since rows are visited in another "
        "order, and the shift differs (see test_train.py for the equivalence); SVC and LinearSVC fail this check too"
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


KINDS = (*(("ovr", loss) for loss in LOSSES), ("crammer_singer", "hinge"), ("multinomial", "log_loss"))


@parametrize_with_checks(
    [
        *(
            TaylorSVC(multi_class=multi_class, loss=loss, solver=solver, max_iter=50 if solver == "pegasos" else 1000)
            for multi_class, loss in KINDS
            for solver in SOLVERS
        ),
        TaylorSVC(),
        TaylorSVC(normalize=False),
        # On rows far from 0, as one check has them, the squared hinge of several classes does not get to its optimum.
        TaylorSVC(degree=2, kernel="polynomial", gamma="auto", loss="hinge", warm_start=True),
    ],
    expected_failed_checks=not_exact,
)
@slow
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def dense_data(n_rows=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3)) + np.array([0.5, -1.0, 2.0])
    y = np.where(X[:, 0] + X[:, 1] + (X[:, 1] + 1) * (X[:, 2] - 2) + 0.2 * random.normal(size=n_rows) > -0.5, 1, -1)
    y[:2] = -1, 1
    return X, y


def sparse_data(n_rows=200, seed=0):
    """CSR: the columns differ in how often they are filled, and column 2 is mostly 1."""
    random = np.random.default_rng(seed)
    X = (random.uniform(size=(n_rows, 8)) < [0.05, 0.3, 0.9, 0.2, 0.4, 0.1, 0.35, 0.25]).astype(float)
    X[:, 6] *= random.normal(size=n_rows)
    y = np.where(X[:, 1] + X[:, 2] * X[:, 4] - X[:, 3] + X[:, 6] + 0.3 * random.normal(size=n_rows) > 0.7, 1, -1)
    y[:2] = -1, 1
    return sparse.csr_array(X), y


DATA = {"dense": dense_data, "sparse": sparse_data}


def as_array(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def stored_features(model, X):
    unit = model.kernel == "gaussian" if model.normalize == "auto" else model.normalize
    kernel = {"kernel": model.kernel, "coef0": model.coef0, "normalize": unit}
    features = TaylorFeatures(degree=model.degree_, gamma=model.gamma_, **kernel)
    return features.fit(as_array(X)).transform(as_array(X) - model.shift_)


# Parameters and attributes.


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.25])
@pytest.mark.parametrize("data", DATA)
def test_gamma_means_what_it_means_in_svc_on_the_data_as_given(gamma, data):
    X, y = DATA[data]()
    expected = SVC(gamma=gamma).fit(X, y)._gamma
    assert TaylorSVC(gamma=gamma).fit(X, y).gamma_ == pytest.approx(expected, rel=1e-12)


def test_attributes_say_what_was_fitted():
    X, y = dense_data()
    model = TaylorSVC(degree=4, gamma=0.1).fit(X, y)
    assert model.degree_ == 4
    assert model.n_features_in_ == 3
    assert model.n_slots_ == comb(7, 4)
    assert model.monomial_coef_.shape == (1, comb(7, 4))
    assert model.shift_.shape == (3,)
    assert model.classes_.tolist() == [-1, 1]
    assert model.interrupted_ is False
    assert not hasattr(model, "feature_names_in_")


def test_everything_asks_for_fit_first():
    X, y = dense_data()
    for call in (
        lambda m: m.predict(X),
        lambda m: m.decision_function(X),
        lambda m: m.predict_proba(X),
        lambda m: m.score(X, y),
        lambda m: m.monomial_coef_,
        lambda m: m.top_monomials(),
    ):
        with pytest.raises(NotFittedError):
            call(TaylorSVC(loss="log_loss"))


def test_accuracy_is_that_of_the_kernel_svm_where_the_data_ask_for_a_kernel():
    """XOR, which no linear model can do."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = X[:, 0] * X[:, 1] > 0
    exact = SVC(gamma=0.5).fit(X[:400], y[:400]).score(X[400:], y[400:])
    model = TaylorSVC(degree=4, gamma=0.5, random_state=0).fit(X[:400], y[:400])
    assert exact > 0.9 and model.score(X[400:], y[400:]) >= exact - 0.02


# Labels.


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([7, -3]),
        np.array([2.0, 1.0]),
        np.array([False, True]),
        np.array(["no", "yes"]),
        np.array(["spam", "ham"], dtype=object),
        np.array([1, 2], dtype=np.uint8),
    ],
    ids=lambda labels: f"{labels.dtype} {labels[0]}",
)
def test_labels_of_any_kind_come_back_from_predict(labels):
    X, sign = dense_data()
    y = labels[(sign == 1).astype(int)]
    model = TaylorSVC(random_state=0).fit(X, y)
    assert model.classes_.tolist() == sorted(labels.tolist())
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype == labels.dtype
    assert (predicted == y).mean() > 0.9
    assert np.array_equal(predicted == model.classes_[1], model.decision_function(X) > 0)


@slow
def test_names_of_labels_do_not_change_the_model():
    X, y = dense_data()
    model = TaylorSVC(max_iter=5, random_state=0)
    coef = model.fit(X, y).monomial_coef_
    assert np.array_equal(model.fit(X, np.where(y == 1, "b", "a")).monomial_coef_, coef)
    assert np.array_equal(model.fit(X, np.where(y == 1, "a", "b")).monomial_coef_, -coef)


def test_labels_in_a_data_frame_are_labels():
    pandas = pytest.importorskip("pandas")
    X, y = dense_data()
    words = np.where(y == 1, "yes", "no")
    expected = TaylorSVC(random_state=0).fit(X, words).predict(X)
    for labels in (pandas.Series(words), pandas.Series(words, dtype="category"), words.tolist()):
        assert (TaylorSVC(random_state=0).fit(X, labels).predict(X) == expected).all()


def test_values_of_zero_belong_to_the_first_class():
    X, y = dense_data()
    model = TaylorSVC(gamma=1.0, normalize=False, shift=None, random_state=0).fit(X, y)
    far = np.full((1, 3), 1e3)  # no features
    assert model.decision_function(far).tolist() == [0.0]
    assert model.predict(far).tolist() == [-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unit_rows_that_are_far_have_the_value_of_their_direction(dtype):
    """Of them, the monomials of the highest degree are left: those of a homogeneous kernel."""
    X, y = dense_data()
    model = TaylorSVC(degree=4, gamma=0.3, shift=None, random_state=0).fit(X.astype(dtype), y)
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    homogeneous = reference.kernel_of([0.0, 0.0, 0.0, 0.0, 1.0], 4, 0.3, unit=True)
    limit = reference.Basis(3, 4).features(directions, homogeneous) @ model.monomial_coef_[0].astype(float)
    assert np.ptp(limit) > 1
    close = 1e-4 if dtype == np.float32 else 1e-8
    for scale in (1e10, 1e18, 1e37) if dtype == np.float32 else (1e10, 1e100, 1e150, 1e300):
        far = (scale * directions).astype(dtype)
        for rows in (far, sparse.csr_array(far)):
            assert np.allclose(model.decision_function(rows), limit, rtol=0, atol=close * np.abs(limit).max())


# Prediction.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shift", ["auto", None])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
@pytest.mark.parametrize("data", DATA)
@slow
def test_decision_values_are_features_of_shifted_rows_times_coef(data, kernel, shift, solver):
    X, y = DATA[data]()
    model = TaylorSVC(
        degree=3, gamma=0.2, kernel=kernel, coef0=0.5, shift=shift, solver=solver, max_iter=5, random_state=0
    )
    model.fit(X, y)
    new, _ = DATA[data](50, seed=1)
    expected = stored_features(model, new) @ model.monomial_coef_[0]
    assert np.ptp(expected) > 0.1
    assert np.allclose(model.decision_function(new), expected, rtol=1e-10, atol=1e-10)


@given(seed=st.integers(0, 2**32 - 1), degree=st.integers(1, 4), density=st.floats(0.05, 1.0), n_jobs=st.integers(1, 2))
@settings(max_examples=20)
@slow
def test_rows_are_predicted_one_by_one(seed, degree, density, n_jobs):
    """Dense or sparse, alone or together, in any order: a row's value is its own."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(30, 7)) * (random.uniform(size=(30, 7)) < density)
    X[:, 3] = random.uniform(size=30) < 0.8
    y = np.arange(30) % 2
    model = TaylorSVC(degree=degree, gamma=0.1, max_iter=3, n_jobs=n_jobs, random_state=0)
    model.fit(sparse.csr_array(X) if seed % 2 else X, y)
    values = model.decision_function(X)
    order = random.permutation(30)
    close = {"rtol": 1e-12, "atol": 1e-13}
    assert np.allclose(model.decision_function(X[order]), values[order], **close)
    assert np.allclose(model.decision_function(sparse.csr_matrix(X)), values, **close)
    assert np.allclose(np.concatenate([model.decision_function(x[None]) for x in X]), values, **close)
    assert np.allclose(stored_features(model, X) @ model.monomial_coef_[0], values, rtol=1e-10, atol=1e-10)


def test_single_precision_stays_single():
    X, y = dense_data()
    for rows in (X.astype(np.float32), sparse.csr_matrix(X.astype(np.float32))):
        model = TaylorSVC(random_state=0).fit(rows, y)
        assert model.monomial_coef_.dtype == np.float32
        assert model.decision_function(rows).dtype == np.float32
        assert model.decision_function(X).dtype == np.float32
    double = TaylorSVC(random_state=0).fit(X, y)
    assert double.monomial_coef_.dtype == double.decision_function(X.astype(np.float32)).dtype == np.float64
    assert np.abs(double.decision_function(X) - model.decision_function(X)).max() < 0.1


@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool, np.float16])
def test_other_numbers_are_computed_in_double_precision(dtype):
    X, y = sparse_data()
    X = (as_array(X) != 0).astype(dtype)
    model = TaylorSVC(random_state=0).fit(X, y)
    assert model.monomial_coef_.dtype == np.float64
    expected = TaylorSVC(random_state=0).fit(X.astype(np.float64), y)
    assert np.array_equal(model.monomial_coef_, expected.monomial_coef_)


@pytest.mark.parametrize("shift", ["auto", None])
@pytest.mark.parametrize("empty", [np.zeros((0, 8)), sparse.csr_array((0, 8)), sparse.csc_matrix((0, 8))])
def test_no_rows_have_no_values(empty, shift):
    """As for TaylorFeatures: batches may be empty."""
    X, y = sparse_data()
    model = TaylorSVC(shift=shift, loss="log_loss", random_state=0).fit(X, y)
    assert model.decision_function(empty).shape == (0,)
    assert model.predict(empty).shape == (0,) and model.predict(empty).dtype == y.dtype
    assert model.predict_proba(empty).shape == (0, 2)


@pytest.mark.parametrize("shift", ["auto", None])
def test_rows_of_zeros_are_rows(shift):
    X, y = sparse_data()
    model = TaylorSVC(shift=shift, degree=2, random_state=0).fit(X, y)
    zeros = np.zeros((3, 8))
    expected = (stored_features(model, zeros) @ model.monomial_coef_[0])[0]
    assert np.allclose(model.decision_function(sparse.csr_array((3, 8))), expected, rtol=1e-12)
    assert np.allclose(model.decision_function(zeros), expected, rtol=1e-12)
    assert shift == "auto" or expected == pytest.approx(model.monomial_coef_[0, 0])


def test_training_takes_rows_of_zeros():
    X = np.vstack([np.zeros((5, 2)), np.eye(2)])
    y = [0, 0, 0, 0, 0, 1, 1]
    for rows in (X, sparse.csr_array(X)):
        assert TaylorSVC(gamma=1.0, C=10.0, random_state=0).fit(rows, y).predict(X).tolist() == y


# Probabilities.


@pytest.mark.parametrize("loss", LOSSES)
def test_only_the_log_loss_has_probabilities(loss):
    X, y = dense_data()
    for model in (TaylorSVC(loss=loss), TaylorSVC(loss=loss).fit(X, y)):
        assert hasattr(model, "predict_proba") == hasattr(model, "predict_log_proba") == (loss == "log_loss")
    if loss != "log_loss":
        with pytest.raises(AttributeError, match="predict_proba"):
            model.predict_proba(X)


def test_probabilities_are_the_logistic_function_of_decision_values():
    X, y = dense_data()
    model = TaylorSVC(loss="log_loss", C=10.0, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert np.allclose(p[:, 1], expit(model.decision_function(X)), rtol=1e-14)
    assert np.allclose(np.exp(model.predict_log_proba(X)), p, rtol=1e-12)
    assert np.array_equal(p[:, 1] > 0.5, model.predict(X) == 1)


def test_logarithms_of_tiny_probabilities_are_finite():
    X = np.array([[-1.0], [1.0]])
    model = TaylorSVC(kernel="polynomial", degree=1, gamma=1.0, C=100.0, loss="log_loss", tol=1e-6, max_iter=10_000)
    model.fit(X, [0, 1])
    far = model.predict_log_proba([[1e6], [-1e6]])
    value = model.decision_function([[1e6]])[0]
    assert value > 800  # exp(-value) is 0
    assert far[0, 0] == pytest.approx(-value, rel=1e-6) and far[0, 1] == 0
    assert far[1, 1] == pytest.approx(-value, rel=1e-2) and far[1, 0] == 0


def test_probabilities_are_calibrated():
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2))
    truth = expit(1.5 * X[:, 0] * X[:, 1])
    y = random.uniform(size=3000) < truth
    p = TaylorSVC(loss="log_loss", gamma=0.3, degree=4, C=3.0, random_state=0).fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(p - truth).mean() < 0.05


def test_calibrated_classifier_cv_gives_probabilities_for_the_hinge():
    X, y = dense_data(400)
    model = CalibratedClassifierCV(TaylorSVC(random_state=0), cv=3).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (400, 2) and np.allclose(p.sum(axis=1), 1)
    assert -np.log(p[np.arange(400), (y == 1).astype(int)]).mean() < 0.35
    assert model.score(X, y) > 0.9


# Shift.


def mixed_columns(n_rows=400):
    """Columns: mostly 1, mostly 0, a normal number, always 5, mostly 7, and half 0, a third 1."""
    random = np.random.default_rng(0)
    X = np.column_stack(
        [
            random.uniform(size=n_rows) < 0.8,
            random.uniform(size=n_rows) < 0.2,
            random.normal(38.6, 10, size=n_rows),
            np.full(n_rows, 5.0),
            np.where(random.uniform(size=n_rows) < 0.7, 7.0, random.normal(size=n_rows)),
            np.where(np.arange(n_rows) % 2 == 0, 0.0, random.normal(size=n_rows)),
        ]
    ).astype(float)
    y = np.where((X[:, 0] - 1) * 10 + (X[:, 2] - 38.6) > -3, 1, 0)
    return X, y


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_auto_shift_takes_the_mode_of_sparse_columns_and_the_mean_of_dense_ones(make):
    X, y = mixed_columns()
    model = TaylorSVC(gamma=0.01, random_state=0).fit(make(X), y)
    assert model.shift_[[0, 1, 3, 4, 5]].tolist() == [1, 0, 5, 7, 0]
    assert model.shift_[2] == pytest.approx(X[:, 2].mean(), abs=0.01 * X[:, 2].std())  # it may be rounded to be read
    order = [4, 2, 0, 5, 3, 1]
    permuted = TaylorSVC(gamma=0.01, random_state=0).fit(make(X[:, order]), y)
    assert np.allclose(permuted.shift_, model.shift_[order], rtol=1e-12)


@pytest.mark.parametrize("data", DATA)
@slow
def test_no_shift_uses_the_rows_as_they_are(data):
    X, y = DATA[data]()
    none = TaylorSVC(gamma=0.1, degree=2, shift=None, max_iter=5, random_state=0).fit(X, y)
    assert none.shift_.tolist() == [0.0] * X.shape[1]
    expected = TaylorFeatures(degree=2, gamma=0.1, normalize=True).fit_transform(X) @ none.monomial_coef_[0]
    assert np.allclose(none.decision_function(X), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", [list, np.array, tuple])
def test_shift_takes_numbers(data, kind):
    X, y = DATA[data]()
    by = np.linspace(-1, 2, X.shape[1])
    model = TaylorSVC(gamma=0.1, degree=2, shift=kind(by), tol=1e-9, max_iter=20_000, random_state=0).fit(X, y)
    assert np.array_equal(model.shift_, by)
    plain = clone(model).set_params(shift=None).fit(as_array(X) - by, y)
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-9)
    assert np.abs(model.decision_function(X) - plain.decision_function(as_array(X) - by)).max() < 1e-3


def test_shift_is_an_isometry():
    """At a degree where nothing is cut, decision values do not depend on it."""
    X, y = dense_data(100)
    gamma = 0.02
    assert residual(X, degree=14, gamma=gamma).max() < 1e-12
    values = []
    for shift in (None, "auto", [1.0, -2.0, 0.3]):
        model = TaylorSVC(degree=14, gamma=gamma, C=20.0, shift=shift, tol=1e-9, max_iter=50_000, random_state=0)
        values.append(model.fit(X, y).decision_function(X))
    assert np.ptp(values[0]) > 1
    assert np.abs(values[1] - values[0]).max() < 1e-3
    assert np.abs(values[2] - values[0]).max() < 1e-3


@pytest.mark.parametrize("normalize", [True, False])
def test_shift_makes_the_approximation_better(normalize):
    X, y = dense_data()
    far = X + 2
    known = {"gamma": 0.1, "normalize": normalize, "tol": 1e-5, "max_iter": 10_000, "random_state": 0}
    low = TaylorSVC(degree=3, **known).fit(far, y).certificate_
    with pytest.warns(ApproximationWarning, match="degree=3 is low for gamma=0.1"):
        high = TaylorSVC(degree=3, shift=None, **known).fit(far, y).certificate_
    assert low.primal < 0.95 * high.primal and low.exact_interval[1] < 0.95 * high.exact_interval[1]
    low, high = (TaylorSVC(shift=shift, **known).fit(far, y) for shift in ("auto", None))
    assert low.degree_ < high.degree_ / 2  # that is chosen


@pytest.mark.parametrize("kernel", ["polynomial", "exponential", [1.0, 1.0, 0.5]])
def test_kernels_that_are_not_shift_invariant_are_not_shifted(kernel):
    X, y = mixed_columns()
    X = X / 10
    model = TaylorSVC(kernel=kernel, degree=2, gamma=0.05, random_state=0).fit(X, y)
    assert model.shift_.tolist() == [0.0] * 6
    given = TaylorSVC(kernel=kernel, degree=2, gamma=0.05, shift=np.ones(6))
    with pytest.raises(ValueError, match="kernel changes when rows are shifted; use shift=None"):
        given.fit(X, y)


def permuted_slots(n_columns, degree, order):
    """Where each monomial lies when column order[j] becomes column j."""
    features = TaylorFeatures(degree=degree, gamma=1.0).fit(np.zeros((1, n_columns)))
    new = {int(old): j for j, old in enumerate(order)}
    monomials = [features.powers_of(slot) for slot in range(features.n_features_out_)]
    return [features.slot_of({new[j]: power for j, power in powers.items()}) for powers in monomials]


@pytest.mark.parametrize("data", DATA)
def test_order_of_columns_never_shows(data):
    X, y = DATA[data]()
    order = np.random.default_rng(5).permutation(X.shape[1])
    model = TaylorSVC(degree=2, gamma=0.1, tol=1e-9, max_iter=20_000, random_state=0).fit(X, y)
    permuted = clone(model).fit(X[:, order], y)
    assert permuted.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-9)
    back = permuted.monomial_coef_[0, permuted_slots(X.shape[1], 2, order)]
    distance = np.linalg.norm(back - model.monomial_coef_[0])
    # The objective is lambda-strongly convex: w is no farther from the optimum than its gap allows.
    gaps = [m.certificate_.gap for m in (model, permuted)]
    assert distance <= np.sqrt(2 * len(y) * np.array(gaps)).sum()
    assert distance < 1e-2 * np.linalg.norm(model.monomial_coef_)


def test_fitting_does_not_change_what_it_is_given():
    by = np.array([1.0, 2.0, 0.5])
    X, y = dense_data()
    weight = np.linspace(0, 2, len(y))
    before = X.copy(), y.copy(), weight.copy()
    TaylorSVC(shift=by, random_state=0).fit(X, y, sample_weight=weight).predict(X)
    assert np.array_equal(X, before[0]) and np.array_equal(y, before[1]) and np.array_equal(weight, before[2])
    assert by.tolist() == [1.0, 2.0, 0.5]
    S, y = sparse_data()
    S.data[::5] = 0  # stored zeros
    before = S.data.copy(), S.indices.copy(), S.indptr.copy()
    TaylorSVC(random_state=0).fit(S, y).predict(S)
    assert all(np.array_equal(a, b) for a, b in zip(before, (S.data, S.indices, S.indptr), strict=True))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@slow
def test_rows_are_not_copied_when_they_are_used_as_they_are(make):
    random = np.random.default_rng(0)
    X = make(random.normal(size=(60_000, 60)))
    y = random.integers(0, 2, size=60_000)
    size = 60_000 * 60 * 8
    model = TaylorSVC(degree=1, gamma=0.01, shift=None, max_iter=2, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * size


# Monomials in the user's terms.


def test_names_of_monomials_have_columns_and_shifts():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    age = random.normal(size=300)
    age = 38.6 + 12 * (age - age.mean())
    frame = pandas.DataFrame(
        {
            "age": age,
            "married": (random.uniform(size=300) < 0.2).astype(float),
            "sex_male": (random.uniform(size=300) < 0.7).astype(float),
            "debt": random.uniform(-2, -1, size=300),
        }
    )
    frame["debt"] += -1.25 - frame["debt"].mean()
    y = np.where((frame["sex_male"] - 1) * (frame["age"] - 38.6) + 3 * frame["married"] > 0.5, "yes", "no")
    model = TaylorSVC(degree=2, gamma=0.01, C=100.0, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "married", "sex_male", "debt"]
    assert {m.name for m in model.top_monomials(2)} == {"(age - 38.6) * (sex_male - 1)", "married"}
    names = {m.name: m for m in model.top_monomials(15)}
    assert names["(age - 38.6) * (sex_male - 1)"].powers == {0: 1, 2: 1}
    assert names["(age - 38.6)^2"].powers == {0: 2}
    assert names["(age - 38.6) * married"].powers == {0: 1, 1: 1}
    assert names["(debt + 1.25)"].powers == {3: 1}
    assert names["1"].powers == {}
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["married", "age", "sex_male", "debt"]])


def test_standardised_rows_are_not_shifted():
    X = np.random.default_rng(0).normal(size=(10_000, 30))
    model = TaylorSVC(degree=1, tol=0.5, random_state=0).fit(X, X[:, 0] > 0)
    assert not model.shift_.any()
    model.fit(X + 0.1, X[:, 0] > 0)
    assert np.allclose(model.shift_, 0.1, atol=0.1)


@pytest.mark.parametrize(("mean", "deviation"), [(2011.5678, 0.5), (-0.01234, 0.1), (1e6, 300.0), (-31.0, 1e-3)])
def test_names_tell_the_shift_to_a_small_part_of_the_deviation(mean, deviation):
    random = np.random.default_rng(0)
    X = random.normal(mean, deviation, size=(100, 1))
    model = TaylorSVC(degree=1, random_state=0).fit(X, X[:, 0] > mean)
    name = next(m.name for m in model.top_monomials() if m.powers)
    sign, number = re.fullmatch(r"\(x0 ([-+]) (.*)\)", name).groups()
    told = float(number) if sign == "-" else -float(number)
    assert told == pytest.approx(model.shift_[0], abs=0.001 * deviation)
    assert told == pytest.approx(X.mean(), abs=0.02 * deviation)


@pytest.mark.parametrize("data", DATA)
@slow
def test_monomials_have_the_weights_of_coef_and_the_shares_of_the_rows(data):
    X, y = DATA[data]()
    model = TaylorSVC(degree=3, gamma=0.1, max_iter=20, random_state=0).fit(X, y)
    features = TaylorFeatures(degree=3, gamma=0.1).fit(as_array(X))
    top = model.top_monomials(30 if data == "sparse" else 12)
    sizes = [abs(m.weight) for m in top]
    assert sizes == sorted(np.abs(model.monomial_coef_[0]), reverse=True)[: len(top)]
    for m in top:
        assert m.weight == model.monomial_coef_[0, features.slot_of(m.powers)]
        there = np.all([as_array(X)[:, j] != model.shift_[j] for j in m.powers], axis=0) if m.powers else True
        assert m.share == pytest.approx(np.mean(there), abs=1e-12)
    lines = str(top).splitlines()
    assert len(lines) == len(top) + 1
    assert lines[1].startswith(top[0].name) and f"{top[0].weight:.4g}" in lines[1] and f"{top[0].share:.2%}" in lines[1]


def test_top_monomials_have_no_weights_of_zero_and_no_wrong_k():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    model = TaylorSVC(degree=2, gamma=0.5, shift=None, random_state=0).fit(X, [0, 1, 0, 1])
    assert "x0 * x1" not in [m.name for m in model.top_monomials(100)]
    assert len(model.top_monomials()) == np.count_nonzero(model.monomial_coef_)
    for k in (0, -1, 2.0, True, "3"):
        with pytest.raises(ValueError, match=f"k must be an integer > 0; got {k!r}"):
            model.top_monomials(k)


# Streams.


def batches(X, y, size):
    for first in range(0, X.shape[0], size):
        yield X[first : first + size], y[first : first + size]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_one_pass_over_a_stream_comes_close_to_fit_of_all_of_it(data, loss):
    X, y = DATA[data](4000)
    best = TaylorSVC(gamma=0.1, loss=loss, random_state=0).fit(X, y)
    model = TaylorSVC(gamma=0.1, loss=loss, shift=best.shift_, random_state=0)
    objectives = []
    for part in batches(X, y, 200):
        model.partial_fit(*part, classes=[-1, 1])
        if model.n_iter_ in (1, 4, 20):
            objectives.append(model.certify(X, y, max_iter=1).primal)
    assert model.n_iter_ == 20
    assert objectives == sorted(objectives, reverse=True)
    assert best.certificate_.dual <= objectives[-1] < 1.15 * best.certificate_.primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("data", DATA)
def test_rows_of_a_stream_that_come_again_count_again(data, loss):
    """Several passes come close to a fit with as many times the C."""
    X, y = DATA[data](400)
    best = TaylorSVC(gamma=0.1, C=20.0, loss=loss, tol=1e-5, max_iter=10_000, random_state=0).fit(X, y)
    model = TaylorSVC(gamma=0.1, C=1.0, loss=loss, shift=best.shift_, random_state=0)
    objectives = []
    for n_pass in range(1, 21):
        for part in batches(X, y, 100):
            model.partial_fit(*part, classes=[-1, 1])
        if n_pass in (1, 3, 7, 20):
            at_twenty = pickle.loads(pickle.dumps(model)).set_params(C=20.0)
            objectives.append(at_twenty.certify(X, y, max_iter=1).primal)
    assert objectives == sorted(objectives, reverse=True)
    assert best.certificate_.dual <= objectives[-1] < 1.15 * best.certificate_.primal


def test_partial_fit_goes_on_from_the_last_batch():
    X, y = dense_data(400)
    model = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X[:200], y[:200], classes=[-1, 1])
    again = pickle.loads(pickle.dumps(model))
    fresh = TaylorSVC(gamma=0.1, shift=model.shift_, random_state=0).partial_fit(X[200:], y[200:], classes=[-1, 1])
    model.partial_fit(X[200:], y[200:])
    assert not np.array_equal(model.monomial_coef_, fresh.monomial_coef_)
    assert np.array_equal(again.partial_fit(X[200:], y[200:]).monomial_coef_, model.monomial_coef_)
    assert model.n_iter_ == 2


def test_bandwidth_and_shift_are_those_of_the_first_batch():
    X, y = dense_data()
    model = TaylorSVC(random_state=0).partial_fit(X, y, classes=[-1, 1])
    gamma, shift = model.gamma_, model.shift_
    assert gamma == pytest.approx(SVC().fit(X, y)._gamma, rel=1e-12)
    assert np.allclose(shift, X.mean(axis=0), rtol=0, atol=0.01)
    model.partial_fit(10 * X + 3, y)
    assert model.gamma_ == gamma and np.array_equal(model.shift_, shift)


@slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_partial_fit_goes_on_from_fit(solver):
    X, y = dense_data(400)
    model = TaylorSVC(gamma=0.1, solver=solver, max_iter=40, random_state=0).fit(X, y)
    reached = model.certificate_.primal
    model.partial_fit(X, y)
    assert not hasattr(model, "certificate_")
    assert model.certify(X, y).primal < 1.1 * reached
    begun = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X, y, classes=[-1, 1])
    assert begun.certify(X, y).primal > model.certificate_.primal


def test_fit_forgets_the_stream():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X[:, :2], -y, classes=[-1, 1])
    expected = TaylorSVC(gamma=0.1, random_state=0).fit(X, y)
    assert np.array_equal(model.fit(X, y).monomial_coef_, expected.monomial_coef_)
    assert model.n_iter_ == expected.n_iter_


def test_batches_of_one_class_are_taken():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, random_state=0)
    for part in (y == 1, y == -1):
        model.partial_fit(X[part], y[part], classes=[-1, 1])
    assert model.classes_.tolist() == [-1, 1]
    assert model.score(X, y) > 0.7


def test_batches_may_have_one_row():
    X, y = dense_data(400)
    shift = X.mean(axis=0)
    objectives = []
    for size in (100, 1):
        model = TaylorSVC(gamma=0.1, shift=shift, random_state=0)
        for part in batches(X, y, size):
            model.partial_fit(*part, classes=[-1, 1])
        objectives.append(model.certify(X, y).primal)
    assert objectives[1] < 1.2 * objectives[0]


def test_weights_of_a_stream_count():
    X, y = dense_data()
    weight = np.where(y == 1, 50.0, 1e-3)
    model = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X, y, classes=[-1, 1], sample_weight=weight)
    assert (model.predict(X) == 1).mean() > 0.9
    by_class = TaylorSVC(gamma=0.1, class_weight={1: 50.0, -1: 1e-3}, random_state=0).partial_fit(X, y, [-1, 1])
    assert np.array_equal(model.monomial_coef_, by_class.monomial_coef_)


def test_weights_of_a_stream_count_from_batch_to_batch():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, random_state=0)
    for label, weight in ((1, 50.0), (-1, 1e-3)):
        part = y == label
        model.partial_fit(X[part], y[part], classes=[-1, 1], sample_weight=np.full(part.sum(), weight))
    assert (model.predict(X) == 1).mean() > 0.9


def test_partial_fit_keeps_its_precision():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X.astype(np.float32), y, classes=[-1, 1])
    assert model.partial_fit(X, y).monomial_coef_.dtype == np.float32


def test_classes_are_needed_at_first_and_stay():
    X, y = dense_data()
    model = TaylorSVC(random_state=0)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="label .*1.* not one of the classes"):
        model.partial_fit(X, y, classes=[-1, 2])
    with pytest.raises(ValueError, match="greater than one; got 1 class"):
        model.partial_fit(X, y, classes=[1])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y, classes=[1, -1])
    coef = model.monomial_coef_
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="label .*3.* not one of the classes"):
        model.partial_fit(X, np.where(y == 1, 3, -1))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full_like(X, nan), y)
    assert np.array_equal(model.monomial_coef_, coef) and model.n_iter_ == 1


@pytest.mark.parametrize("data", DATA)
def test_more_columns_are_refused_unless_the_model_may_grow(data):
    X, y = DATA[data]()
    wider = sparse.hstack([X, X[:, :2]], format="csr") if data == "sparse" else np.hstack([X, X[:, :2]])
    model = TaylorSVC(gamma=0.1, random_state=0).partial_fit(X, y, classes=[-1, 1])
    with pytest.raises(ValueError, match=f"X has {wider.shape[1]} features, but TaylorSVC is expecting {X.shape[1]}"):
        model.partial_fit(wider, y)
    assert model.n_features_in_ == X.shape[1]
    model.set_params(grow=True)
    with pytest.raises(ValueError, match="features, but TaylorSVC is expecting"):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="features, but TaylorSVC is expecting"):
        model.predict(wider)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("shift", ["auto", None])
def test_grown_models_keep_the_weights_of_old_monomials(data, shift):
    X, y = DATA[data]()
    model = TaylorSVC(gamma=0.1, degree=2, shift=shift, grow=True, random_state=0).partial_fit(X, y, classes=[-1, 1])
    old_shift = model.shift_
    narrow = pickle.loads(pickle.dumps(model)).partial_fit(X[:50], y[:50])
    wider = sparse.hstack([X, sparse.csr_array((X.shape[0], 3))], format="csr")
    wider = wider if data == "sparse" else wider.toarray()
    model.partial_fit(wider[:50], y[:50])  # the new columns are there, and empty
    n_old, n_new = comb(X.shape[1] + 2, 2), comb(X.shape[1] + 5, 2)
    assert model.n_features_in_ == X.shape[1] + 3 and model.n_slots_ == n_new == len(model.monomial_coef_[0])
    assert model.shift_.tolist() == [*old_shift, 0.0, 0.0, 0.0]
    assert (model.monomial_coef_[0, n_old:] == 0).all()
    difference = model.monomial_coef_[0, :n_old] - narrow.monomial_coef_[0]
    assert np.linalg.norm(difference) < 0.05 * np.linalg.norm(narrow.monomial_coef_)
    expected = stored_features(model, wider) @ model.monomial_coef_[0]
    assert np.allclose(model.decision_function(wider), expected, rtol=1e-10, atol=1e-10)
    # And the new columns can be learnt from.
    filled = as_array(wider)
    filled[:, -1] = np.where(y == 1, -1.0, 1.0)
    filled = sparse.csr_array(filled) if data == "sparse" else filled
    for _ in range(8):
        model.partial_fit(filled, -y)
    assert model.score(filled, -y) > 0.97


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_fitted_models_can_grow(solver):
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, solver=solver, max_iter=20, grow=True, random_state=0).fit(X, y)
    values, r = model.decision_function(X), model.degree_
    assert model.monomial_coef_.shape == (1, comb(3 + r, r))
    wider = np.hstack([X, np.zeros((len(y), 1))])
    model.partial_fit(wider, y)
    assert model.n_features_in_ == 4 and model.degree_ == r and model.monomial_coef_.shape == (1, comb(4 + r, r))
    assert np.corrcoef(model.decision_function(wider), values)[0, 1] > 0.95


def test_growing_keeps_the_degree_that_was_fitted():
    X, y = dense_data()
    model = TaylorSVC(gamma=0.1, degree=3, grow=True, random_state=0).partial_fit(X, y, classes=[-1, 1])
    values = model.decision_function(X)
    wider = np.hstack([X, np.zeros((len(y), 1))])
    model.set_params(degree=2).partial_fit(wider[:2], y[:2], sample_weight=[1e-9, 1e-9])
    assert model.degree_ == 3 and model.n_slots_ == comb(7, 3)
    assert np.corrcoef(model.decision_function(wider), values)[0, 1] > 0.99


def test_models_with_named_columns_do_not_grow():
    pandas = pytest.importorskip("pandas")
    X, y = dense_data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = TaylorSVC(grow=True, random_state=0).partial_fit(frame, y, classes=[-1, 1])
    with pytest.raises(ValueError, match="named columns cannot grow"):
        model.partial_fit(frame.assign(d=1.0), y)


# What can be seen of a training.


def test_verbose_shows_a_progress_bar_with_the_gap(capsys):
    pytest.importorskip("tqdm")
    X, y = dense_data()
    model = TaylorSVC(verbose=1, random_state=0).fit(X, y)
    out, errors = capsys.readouterr()
    assert out == ""
    assert f"{model.n_iter_}/1000" in errors
    last = errors.rstrip().splitlines()[-1].split("\r")[-1]
    assert f"objective {model.certificate_.primal:.5g}" in last
    assert f"gap {model.certificate_.relative_gap:.1e}" in last
    assert "rows active" in last


@pytest.mark.parametrize("solver", SOLVERS)
@slow
def test_verbose_does_without_tqdm(solver, monkeypatch, capsys):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)
    X, y = dense_data()
    model = TaylorSVC(verbose=1, solver=solver, max_iter=7, random_state=0).fit(X, y)
    out, errors = capsys.readouterr()
    lines = errors.splitlines()
    assert out == "" and len(lines) == model.n_iter_
    assert lines[-1].startswith(f"epoch {model.n_iter_}: objective {model.certificate_.primal:.5g}")
    assert ("gap" in lines[-1]) == (solver != "adagrad")
    assert "nan" not in errors


def test_training_is_silent_by_default(capsys):
    X, y = dense_data()
    TaylorSVC(random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")


class Watcher:
    """A callback that notes what it is told, and stops after some epochs."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.told = []
        self.snapshots = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata):
        self.told.append(("begin", context.task_name, context.task_id))
        self.data = X, y, metadata

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.told.append(("end", context.task_name, context.task_id))
        assert (X, y, metadata) == self.data or (X is self.data[0] and y is self.data[1])
        if context.task_name != "fit":
            self.snapshots.append((fitted_estimator, fitted_estimator.decision_function(X)))
            return len(self.snapshots) == self.stop_after
        return False


@pytest.fixture
def callbacks():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks before 1.9")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [4, 1000, -1])
@pytest.mark.usefixtures("callbacks")
@slow
def test_callbacks_are_told_of_each_epoch(solver, max_iter):
    X, y = dense_data()
    max_iter = 40 if solver == "pegasos" and max_iter != 4 else max_iter
    watcher = Watcher()
    weight = np.ones(len(y))
    model = TaylorSVC(solver=solver, tol=0.01, max_iter=max_iter, random_state=0).set_callbacks(watcher)
    model.fit(X, y, sample_weight=weight)
    expected = ["setup", ("begin", "fit", 0)]
    for k in range(model.n_iter_):
        expected += [(when, watcher.told[2][1], k) for when in ("begin", "end")]
    assert watcher.told == [*expected, ("end", "fit", 0), "teardown"]
    assert watcher.data[2]["sample_weight"] is weight


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.usefixtures("callbacks")
@slow
def test_callbacks_see_the_model_of_each_epoch(solver):
    X, y = dense_data()
    watcher = Watcher()
    model = TaylorSVC(solver=solver, tol=1e-9, max_iter=4, random_state=0)
    clone(model).set_callbacks(watcher).fit(X, y)
    for k, (fitted, values) in enumerate(watcher.snapshots, start=1):
        expected = clone(model).set_params(max_iter=k).fit(X, y).decision_function(X)
        assert np.array_equal(values, expected)
        assert np.array_equal(fitted.decision_function(X), expected)  # also later, when training has gone on


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.usefixtures("callbacks")
@slow
def test_callbacks_do_not_change_the_result(solver):
    X, y = dense_data()
    model = TaylorSVC(solver=solver, max_iter=6, random_state=0)
    watched = clone(model).set_callbacks(Watcher()).fit(X, y)
    assert np.array_equal(watched.monomial_coef_, model.fit(X, y).monomial_coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_epochs", [1, 2, 3])
@pytest.mark.usefixtures("callbacks")
@slow
def test_callbacks_can_stop_training(solver, n_epochs):
    X, y = dense_data()
    model = TaylorSVC(solver=solver, tol=1e-9, max_iter=50, random_state=0)
    stopped = clone(model).set_callbacks(Watcher(stop_after=n_epochs)).fit(X, y)
    expected = model.set_params(max_iter=n_epochs).fit(X, y)
    assert stopped.n_iter_ == n_epochs and stopped.interrupted_ is False
    assert np.array_equal(stopped.monomial_coef_, expected.monomial_coef_)
    assert stopped.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-12)
    assert "nan" not in str(stopped.certificate_)


@pytest.mark.usefixtures("callbacks")
def test_callbacks_of_scikit_learn_work():
    from sklearn.callback import ScoringMonitor

    X, y = dense_data()
    monitor = ScoringMonitor(scoring="accuracy")
    model = TaylorSVC(tol=0.1, random_state=0).set_callbacks(monitor).fit(X, y)
    assert model.score(X, y) > 0.9


class Interrupter(Watcher):
    """Ctrl-C, at the end of an epoch or at the beginning of the first."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata):
        self.data = X, y, metadata
        if self.at == 0 and context.task_name != "fit":
            raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        super().on_fit_task_end(estimator, context, X=X, y=y, metadata=metadata, fitted_estimator=fitted_estimator)
        if context.task_name != "fit" and len(self.snapshots) == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.usefixtures("callbacks")
@slow
def test_estimators_interrupted_after_an_epoch_hold_its_model(solver):
    X, y = dense_data()
    model = TaylorSVC(solver=solver, tol=1e-9, max_iter=50, random_state=0)
    stopped = clone(model).set_callbacks(Interrupter(at=3))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    assert stopped.interrupted_ is True and stopped.n_iter_ == 3
    assert stopped.history_["epoch"].tolist() == [1, 2, 3]
    assert np.array_equal(stopped.monomial_coef_, model.set_params(max_iter=3).fit(X, y).monomial_coef_)
    assert 0 <= stopped.certificate_.exact_interval[0] < stopped.certificate_.exact_interval[1] <= 1
    assert "nan" not in str(stopped.certificate_).splitlines()[2]
    stopped.set_callbacks().fit(X, y)
    assert stopped.interrupted_ is False


@pytest.mark.usefixtures("callbacks")
def test_interruption_before_the_first_epoch_changes_nothing():
    X, y = dense_data()
    model = TaylorSVC(random_state=0).set_callbacks(Interrupter(at=0))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_callbacks().fit(X, y)
    coef = model.monomial_coef_
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(Interrupter(at=0)).fit(X[:, :2], -y)
    assert np.array_equal(model.monomial_coef_, coef) and model.n_features_in_ == 3


# What is refused.


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("degree", 0),
        ("degree", 2.5),
        ("degree", True),
        ("gamma", 0),
        ("gamma", -1.0),
        ("gamma", nan),
        ("gamma", "foo"),
        ("gamma", None),
        ("kernel", "sigmoid"),
        ("kernel", None),
        ("C", 0),
        ("C", -1.0),
        ("C", nan),
        ("C", inf),
        ("C", "1"),
        ("C", None),
        ("loss", "logistic"),
        ("loss", None),
        ("solver", "sgd"),
        ("solver", None),
        ("shift", "mean"),
        ("tol", 0),
        ("tol", -1e-3),
        ("tol", nan),
        ("tol", "small"),
        ("max_iter", 0),
        ("max_iter", -2),
        ("max_iter", 10.0),
        ("max_iter", True),
        ("max_iter", None),
        ("memory_limit", 0),
        ("memory_limit", "1 GB"),
        ("class_weight", "uniform"),
        ("class_weight", 3),
        ("n_jobs", 0),
    ],
)
def test_wrong_parameters_are_refused_with_their_name_and_value(parameter, value):
    X, y = dense_data(20)
    with pytest.raises(ValueError, match=rf"{parameter}.*{re.escape(repr(value))}|n_jobs == 0"):
        TaylorSVC(**{parameter: value}).fit(X, y)
    if parameter != "n_jobs":
        with pytest.raises(ValueError, match=rf"{parameter}.*{re.escape(repr(value))}"):
            TaylorSVC(**{parameter: value}).partial_fit(X, y, classes=[-1, 1])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("loss", ["hinge"]),
        ("solver", ["dual"]),
        ("shift", {}),
        ("shift", [nan, 0.0, 0.0]),
        ("class_weight", {1: -1.0}),
        ("class_weight", {1: nan}),
        ("class_weight", {1: inf}),
        ("grow", "yes"),
        ("warm_start", "no"),
        ("verbose", "loud"),
        ("n_jobs", "two"),
        ("n_jobs", 1.5),
    ],
)
def test_strange_parameters_are_refused_with_their_name(parameter, value):
    X, y = dense_data(20)
    with pytest.raises(ValueError, match=parameter):
        TaylorSVC(**{parameter: value}).fit(X, y)


@pytest.mark.parametrize(
    ("shift", "message"),
    [([1.0, 2.0], "one number for each of 3 columns; got 2"), (1.0, "one number for each of 3 columns; got 1")],
)
def test_shifts_of_another_length_are_refused(shift, message):
    with pytest.raises(ValueError, match=message):
        TaylorSVC(shift=shift).fit(*dense_data())


def test_coef0_below_zero_is_refused():
    with pytest.raises(ValueError, match="coef0 must be a finite number >= 0; got -1"):
        TaylorSVC(kernel="polynomial", coef0=-1).fit(*dense_data())


def test_classes_that_are_not_in_y_cannot_have_weights():
    with pytest.raises(ValueError, match="class_weight"):
        TaylorSVC(class_weight={"yes": 2.0}).fit(*dense_data())


def test_one_class_is_refused():
    X, y = dense_data()
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1 class"):
        TaylorSVC().fit(X, np.ones(len(y)))


def test_numbers_that_are_no_labels_are_refused():
    X, y = dense_data()
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        TaylorSVC().fit(X, 0.5 * y)
    with pytest.raises(ValueError, match="NaN"):
        TaylorSVC().fit(X, np.where(y == 1, nan, 0.0))
    with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
        TaylorSVC().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="Unknown label type: continuous-multioutput"):
        TaylorSVC().fit(X, np.column_stack([y, 0.5 * y]))
    with pytest.raises(ValueError, match="requires y to be passed"):
        TaylorSVC().fit(X, None)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_nan_and_infinity_are_refused(bad, make):
    X, y = dense_data()
    wrong = X.copy()
    wrong[3, 2] = bad
    model = TaylorSVC(random_state=0).fit(X, y)
    for call in (
        lambda: TaylorSVC().fit(make(wrong), y),
        lambda: TaylorSVC().partial_fit(make(wrong), y, classes=[-1, 1]),
        lambda: model.predict(make(wrong)),
        lambda: model.decision_function(make(wrong)),
    ):
        with pytest.raises(ValueError, match="NaN|infinity"):
            call()


def test_mismatched_lengths_are_refused():
    X, y = dense_data()
    with pytest.raises(ValueError, match="inconsistent numbers of samples: .*200, 199"):
        TaylorSVC().fit(X, y[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TaylorSVC().partial_fit(X, y[1:], classes=[-1, 1])
    with pytest.raises(ValueError, match="sample_weight.shape == .199,., expected .200,."):
        TaylorSVC().fit(X, y, sample_weight=np.ones(199))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("settings", [{}, {"shift": None}, {"n_cells": 3}, {"n_cells": 3, "n_partitions": 2}])
def test_more_rows_than_are_kept_to_count_monomials(make, settings, monkeypatch):
    monkeypatch.setattr("taylorkern._model.estimator.SAMPLE", 8)
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = TaylorSVC(gamma=0.1, degree=2, random_state=0, **settings).fit(make(X), X[:, 0] * X[:, 1] > 0)
    assert len(model.top_monomials(3)) == 3


@pytest.mark.parametrize(
    ("weight", "message"),
    [(-1.0, "Negative values in data passed to `sample_weight`"), (nan, "NaN"), (inf, "infinity"), (0.0, "non-zero")],
)
def test_wrong_sample_weights_are_refused(weight, message):
    X, y = dense_data()
    weights = np.full(len(y), weight)
    with pytest.raises(ValueError, match=message):
        TaylorSVC().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_another_number_of_columns_is_refused(make):
    X, y = dense_data()
    model = TaylorSVC(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but TaylorSVC is expecting 3"):
        model.predict(make(X[:, :2]))


def test_broken_csr_is_refused():
    X, y = sparse_data()
    model = TaylorSVC(random_state=0).fit(X, y)
    outside, falling = X.copy(), X.copy()
    outside.indices[5] = 8
    falling.indptr[3] = falling.indptr[5] + 1
    for broken in (outside, falling):
        for call in (
            lambda broken=broken: TaylorSVC().fit(broken, y),
            lambda broken=broken: TaylorSVC().partial_fit(broken, y, classes=[-1, 1]),
            lambda broken=broken: model.predict(broken),
            lambda broken=broken: model.certify(broken, y),
        ):
            with pytest.raises(ValueError, match="X is a broken CSR matrix"):
                call()


@pytest.mark.parametrize("data", DATA)
def test_unsorted_and_repeated_entries_are_sorted_and_added(data):
    X, y = DATA[data]()
    model = TaylorSVC(gamma=0.1, random_state=0).fit(sparse.csr_array(X), y)
    parts = sparse.coo_array(X)
    order = np.random.default_rng(0).permutation(parts.nnz)
    row, col = (index[order] for index in parts.coords)
    counts = np.bincount(row, minlength=X.shape[0])
    by_row = np.argsort(row, kind="stable")
    messy = sparse.csr_array(
        (
            np.repeat(parts.data[order][by_row] / 2, 2),
            np.repeat(col[by_row], 2),
            2 * np.concatenate([[0], np.cumsum(counts)]),
        ),
        shape=X.shape,
    )
    assert np.array_equal(clone(model).fit(messy, y).monomial_coef_, model.monomial_coef_)


def test_a_failed_fit_changes_nothing():
    X, y = dense_data()
    model = TaylorSVC(random_state=0).fit(X, y)
    before = dict(model.__dict__)
    for call in (
        lambda: model.fit(np.full((9, 2), nan), np.arange(9) % 2),
        lambda: model.fit(X[:, :2], np.zeros(len(y))),
        lambda: model.fit(X[:, :2], y, sample_weight=-np.ones(len(y))),
        lambda: model.fit(X[:, :2], y, sample_weight=np.zeros(len(y))),
    ):
        with pytest.raises(ValueError, match="NaN|class|Negative|non-zero"):
            call()
        assert model.__dict__.keys() == before.keys()
        assert all(model.__dict__[name] is value for name, value in before.items())


def forbid_allocation(monkeypatch):
    """From now on large arrays cannot be made."""

    def small_only(allocate):
        def small(shape, *args, **kwargs):
            assert np.prod(shape, dtype=float) < 10**6, "memory was asked for before the refusal"
            return allocate(shape, *args, **kwargs)

        return small

    for name in ("empty", "zeros", "full"):
        monkeypatch.setattr(np, name, small_only(getattr(np, name)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_training_beyond_memory_limit_is_refused_before_it_allocates(solver, method, monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 30))
    y = np.arange(50) % 2
    n_slots = comb(38, 8)
    model = TaylorSVC(degree=8, gamma=0.01, solver=solver, memory_limit=10**8)
    arguments = (X, y) if method == "fit" else (X, y, [0, 1])
    forbid_allocation(monkeypatch)
    with pytest.raises(ValueError, match=r"would take \d+ bytes .* 95.37 MiB allowed by memory_limit") as refusal:
        getattr(model, method)(*arguments)
    message = str(refusal.value)
    n_bytes = int(re.search(r"take (\d+) bytes", message)[1])
    tables = n_bytes / (8 * n_slots)
    assert f"{n_slots} monomials" in message and "50 rows" in message
    assert 2 <= tables < 5.1


def test_training_beyond_free_memory_is_refused_before_it_allocates(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 30))
    monkeypatch.setattr(_memory, "available_memory", lambda: 10**8)
    forbid_allocation(monkeypatch)
    with pytest.raises(ValueError, match=r"would take \d+ bytes .* free on this machine"):
        TaylorSVC(degree=8, gamma=0.01).fit(X, np.arange(50) % 2)


def test_memory_limit_counts_the_shifted_rows(monkeypatch):
    X = np.random.default_rng(0).normal(1.0, 1.0, size=(20_000, 20))
    y = np.arange(20_000) % 2
    limit = 4_000_000  # enough for what training keeps of each row; X takes 3.2 MB
    monkeypatch.setattr("taylorkern.svc.TaylorSVC._problem", lambda *args, **kwargs: 1 / 0)  # once all is checked
    with pytest.raises(ZeroDivisionError):
        TaylorSVC(degree=1, shift=None, memory_limit=limit).fit(X, y)
    with pytest.raises(ValueError, match="allowed by memory_limit"):
        TaylorSVC(degree=1, memory_limit=limit).fit(X, y)


def test_too_many_monomials_are_refused_with_the_degree_that_fits(monkeypatch):
    X = sparse.csr_array(np.eye(4, 100_000))
    with pytest.raises(
        ValueError, match=f"degree=5 on 100000 columns makes {comb(100_005, 5)} monomials.*; degree=[12] would take"
    ):
        TaylorSVC(degree=5).fit(X, [0, 1, 0, 1])
    forbid_allocation(monkeypatch)
    model = TaylorSVC(degree=4, gamma=0.1, shift=None, memory_limit=10**15)
    with pytest.raises(ValueError, match=f"a row with 768 nonzeros has {comb(772, 4)} monomials"):
        model.fit(np.ones((2, 768)), [0, 1])


def test_convergence_warnings_are_warnings():
    """The settings of these tests make errors of them: fit must have set everything before it warns."""
    X, y = dense_data()
    model = TaylorSVC(tol=1e-9, max_iter=2, random_state=0)
    with pytest.raises(ConvergenceWarning):
        model.fit(X, y)
    assert model.n_iter_ == 2 and model.predict(X).shape == (len(y),)
