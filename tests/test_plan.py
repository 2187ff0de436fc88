"""plan, and degree="auto"."""

import pickle
import re
import tracemalloc
from math import comb, factorial, isnan, nan

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammainc
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import taylorkern
from taylorkern import (
    TaylorFeatures,
    TaylorSVC,
    TaylorSVR,
    plan,
    taylor_kernel,
)
from taylorkern._data import memory as _memory
from taylorkern._model import degree as _degree
from taylorkern._place.cells import choose_cells
from taylorkern._plan import lost as _plan_lost
from taylorkern._plan import pace as _pace
from taylorkern._plan import plan as _plan
from taylorkern._plan import sample as _plan_sample
from taylorkern.kernel import fourier_error, kernel_error, residual, theorem1_bound

NORMALIZE = pytest.mark.parametrize("normalize", ["auto", False], ids=["unit", "paper"])
slow = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def numbers(n_rows=600, n_columns=6, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n_rows, n_columns))


def sparse_rows(n_rows=500, n_columns=30, seed=0):
    return sparse.random(n_rows, n_columns, density=0.2, format="csr", random_state=seed)


def not_exact(estimator):
    reason = "weights are equivalent to repeated rows only to the accuracy of the gap, and the shift differs"
    checks = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    failing = {} if isinstance(estimator, TaylorFeatures) else dict.fromkeys(checks, reason)
    if getattr(estimator, "warm_start", False):
        failing["check_classifiers_multilabel_representation_invariance"] = "the second fit goes on from the first"
    return failing


# degree="auto".


@parametrize_with_checks(
    [
        TaylorSVC(degree="auto"),
        TaylorSVC(degree="auto", solver="adagrad", warm_start=True),
        TaylorSVR(degree="auto"),
        TaylorFeatures(degree="auto"),
    ],
    expected_failed_checks=not_exact,
)
@slow
def test_scikit_learn_accepts_estimators_that_choose_their_degree(estimator, check):
    check(estimator)


@pytest.mark.parametrize("normalize", [False, True])
def test_shares_are_those_of_a_ridge_regression_cut_at_each_degree(normalize):
    X, y = numbers(200), np.random.default_rng(1).standard_normal((200, 3))
    gamma, C, n_rows = 0.4, 3.0, 1000
    weight = np.random.default_rng(2).uniform(0.5, 2, 200)
    learned, judged = X[:100], X[100:]
    ridge = np.diag(100 / (2 * C * n_rows * weight[:100]))
    alpha = np.linalg.inv(rbf_kernel(learned, gamma=gamma) + ridge) @ y[:100]
    exact = rbf_kernel(judged, learned, gamma=gamma) @ alpha
    expected = []
    for degree in (1, 2, 5):
        cut = exact - taylor_kernel(judged, learned, degree=degree, gamma=gamma, normalize=normalize) @ alpha
        norms = [np.sum(weight[100:, None] * values**2) for values in (cut, exact)]
        expected.append(np.sqrt(norms[0] / norms[1]))
    for rows in (X, sparse.csr_array(X)):
        known = {"gamma": gamma, "C": C, "n_rows": n_rows, "weight": weight, "normalize": normalize}
        found = _plan_lost.cut_shares(rows, y, [1, 2, 5], **known)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def least_degree(t, tolerance=1e-3):
    """The least degree from 2 on with a mean residual that is small: exp(-t) sum_{k > r} t^k / k! on average."""
    return next(r for r in range(2, 171) if gammainc(r + 1, t).mean() <= tolerance)


def squares(X):
    X = X.toarray() if sparse.issparse(X) else X
    return (X.astype(np.float64) ** 2).sum(axis=1)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("gamma", [0.01, 0.1, 0.5, 1.5])
def test_the_degree_is_the_least_that_cuts_a_thousandth(make, gamma):
    """Of rows as they are walked, shifted or not; by every way to train, and for features."""
    X = numbers(400, 3) + 0.5
    X[:, 2] = np.abs(X[:, 2]) > 0.4
    y, X = X[:, 0] * X[:, 1] > 0.25, make(X)
    expected = least_degree(2 * gamma * squares(X))
    assert TaylorFeatures(degree="auto", gamma=gamma).fit(X).degree_ == expected
    settings = {"gamma": gamma, "max_iter": 1, "tol": 10.0}
    for estimator in (TaylorSVC, TaylorSVR):
        assert estimator(shift=None, **settings).fit(X, y).degree_ == expected
        for normalize in (True, False):
            model = estimator(normalize=normalize, **settings).fit(X, y)
            moved = (X.toarray() if sparse.issparse(X) else X) - model.shift_
            assert model.degree_ == least_degree(2 * gamma * squares(moved)) <= expected
    assert {least_degree(2 * g * squares(X)) for g in (0.01, 0.1, 0.5, 1.5)} > {2}


def test_the_degree_of_the_exponential_kernel_is_chosen_in_the_same_way():
    X = numbers(100, 3)
    model = TaylorSVC(kernel="exponential", gamma=0.4).fit(X, X[:, 0] > 0)
    assert model.degree_ == least_degree(0.8 * squares(X)) > 2


def test_the_sample_is_spread_evenly_over_the_rows():
    X = numbers(5000, 2)
    X[1::3] *= 50
    X[2::3] *= 50
    assert 2 * _degree.SAMPLE < 5000 <= 3 * _degree.SAMPLE
    for make in (np.asarray, sparse.csr_array):
        degree = TaylorFeatures(degree="auto", gamma=0.5).fit(make(X)).degree_
        assert degree == least_degree(squares(X[::3])) < TaylorFeatures(degree="auto", gamma=0.5).fit(X[1:]).degree_


def test_targets_and_weights_do_not_matter():
    X, random = numbers(300), np.random.default_rng(1)
    models = [
        TaylorSVC(gamma=0.2).fit(X, X[:, 0] > 0),
        TaylorSVC(gamma=0.2, C=100.0, max_iter=2, tol=10.0).fit(X, random.integers(0, 2, 300)),
        TaylorSVC(gamma=0.2, tol=0.1).fit(X, np.array(["a", "c", "b"])[random.integers(0, 3, 300)]),
        TaylorSVC(gamma=0.2, loss="log_loss").fit(X, X[:, 0] > 0, random.uniform(0, 1, 300) * (X[:, 1] > 0)),
        TaylorSVR(gamma=0.2).fit(X, X[:, 0]),
        TaylorSVR(gamma=0.2, loss="squared_error").fit(X, X[:, :3]),
    ]
    expected = least_degree(0.4 * squares(X - models[0].shift_))
    assert [model.degree_ for model in models] == [expected] * 6 and expected > 2


def test_the_degree_depends_on_neither_free_memory_nor_threads_nor_the_seed(monkeypatch):
    X = numbers(500)
    y = X[:, 0] * X[:, 1] * X[:, 2] > 0
    degrees = set()
    for free, n_jobs, seed in ((10**12, 1, 0), (10**8, 2, 1), (None, 1, 2)):
        monkeypatch.setattr(_memory, "available_memory", lambda free=free: free)
        degrees.add(TaylorSVC(n_jobs=n_jobs, random_state=seed).fit(X, y).degree_)
    assert len(degrees) == 1


@pytest.mark.parametrize("way", ["fit", "partial_fit", "fit_stream", "cells", "axes"])
def test_equal_data_have_equal_degrees(way):
    X = numbers(300)
    y = X[:, 0] * X[:, 1] > 0
    settings = {"cells": {"n_cells": 3}, "axes": {"n_axes": 5}}.get(way, {})
    models = []
    for _ in range(2):
        model = TaylorSVC(gamma=0.3, tol=0.1, **settings)
        if way == "partial_fit":
            model.partial_fit(X.copy(), y, classes=[False, True])
        elif way == "fit_stream":
            model.fit_stream([(X.copy(), y)])
        else:
            model.fit(X.copy(), y)
        models.append(model)
    assert models[0].degree_ == models[1].degree_ > 2
    assert np.array_equal(models[0]._table, models[1]._table)


def rows_of(lengths, n_columns, seed=0):
    """CSR rows with so many nonzeros of 1."""
    random = np.random.default_rng(seed)
    indices = np.concatenate([np.sort(random.permutation(n_columns)[:m]) for m in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(lengths), n_columns))


@pytest.mark.parametrize(("median", "degree"), [(4, 9), (8, 4), (16, 3), (40, 2), (300, 2)])
def test_the_median_row_has_a_thousand_monomials_at_most(median, degree):
    """Or 2 is the degree. How long the longest are does not matter."""
    assert comb(median + degree, degree) <= _degree.MONOMIALS < comb(median + degree + 1, degree + 1) or degree == 2
    X = rows_of([median] * 51 + [min(2 * median, 400)] * 49, 400)
    model = TaylorFeatures(degree="auto", gamma=20.0, memory_limit=10**12).fit(X)
    assert model.degree_ == degree
    assert TaylorFeatures(degree="auto", gamma=1e-4, memory_limit=10**12).fit(X).degree_ == 2


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 5, 20])
def test_tables_of_few_columns_may_have_some_more_slots(make, n_columns):
    X = make(20 * np.random.default_rng(0).standard_normal((200, n_columns)))
    degree = TaylorFeatures(degree="auto", gamma=1.0).fit(X).degree_
    longest = max(_degree.SLOTS, _degree.MONOMIALS)
    if n_columns == 1:
        assert degree == 170
    elif n_columns == 20:
        assert degree == 3 and comb(23, 3) > longest - 1000 and comb(24, 4) > longest
    else:
        assert comb(n_columns + degree, degree) <= longest < comb(n_columns + degree + 1, degree + 1)


def test_two_columns_reach_more_than_degree_40():
    """A chessboard of 36 fields, at the bandwidth that suits it."""
    random = np.random.default_rng(0)
    X, new = random.uniform(-1, 1, size=(1500, 2)), random.uniform(-1, 1, size=(500, 2))
    y, y_new = (np.floor(3 * Z).sum(axis=1) % 2 for Z in (X, new))
    model = TaylorSVC(gamma=12.0, C=10.0).fit(X, y)
    assert 40 < model.degree_ == least_degree(24 * squares(X - model.shift_))
    assert model.score(new, y_new) > SVC(gamma=12.0, C=10.0).fit(X, y).score(new, y_new) - 0.02 > 0.9


@pytest.mark.parametrize(("n_columns", "degree"), [(60_000, 1), (3000, 2)])
@slow
def test_text_gets_degree_1_or_2(n_columns, degree):
    """Wide rows of norm 1 with some hundred words each: tables are at most 256 MiB unasked."""
    X = rows_of([100] * 150, n_columns)
    X.data /= 10
    y = np.arange(150) % 2
    for make in (sparse.csr_array, sparse.csr_matrix):
        model = TaylorSVC(gamma=1.0, max_iter=2, tol=10.0).fit(make(X), y)
        assert model.degree_ == degree and model.n_slots_ == comb(n_columns + degree, degree)
    # Of so many classes there are as many tables.
    assert TaylorSVC(gamma=1.0, max_iter=2, tol=10.0).fit(X, np.arange(150) % 20).degree_ == 1


@pytest.mark.parametrize("solver", ["dual", "adagrad"])
@pytest.mark.parametrize("kind", ["two", "four"])
@slow
def test_memory_limit_bounds_the_degree(solver, kind):
    """To the byte: the highest degree whose training it allows."""
    X = numbers(300, 14)
    y = np.arange(300) % (2 if kind == "two" else 4)
    settings = {"gamma": 0.3, "solver": solver, "max_iter": 1, "tol": 10.0}
    assert TaylorSVC(**settings).fit(X, y).degree_ == 3
    row = plan(X, y, degrees=[2, 3], gamma=0.3, solver=solver)
    for limit, degree in [(row[1].bytes, 3), (row[1].bytes - 1, 2), (row[0].bytes, 2), (row[0].bytes - 1, 1)]:
        assert TaylorSVC(memory_limit=limit, **settings).fit(X, y).degree_ == degree
    with pytest.raises(ValueError, match="would take"):
        TaylorSVC(memory_limit=1000, **settings).fit(X, y)
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes > 0 or None; got 'much'"):
        TaylorSVC(memory_limit="much").fit(X, y)


def test_memory_limit_bounds_the_degree_of_features():
    X = numbers(300, 20)
    assert TaylorFeatures(degree="auto", gamma=0.2).fit(X).degree_ == 3
    features = TaylorFeatures(degree="auto", gamma=0.2)
    for degree in (1, 2):
        n_bytes = TaylorFeatures(degree=degree + 1, gamma=0.2).estimate_cost(X).bytes
        assert features.set_params(memory_limit=n_bytes - 1).fit(X).degree_ == degree
        assert features.fit(X).transform(X).shape[1] == comb(20 + degree, degree)


def test_columns_too_many_for_a_high_degree_are_no_error():
    X = sparse.random(50, 10**5, density=1e-4, format="csr", random_state=0)
    assert TaylorSVC(gamma=10.0).fit(X, np.arange(50) % 2).degree_ == 1
    X = sparse.csr_array(([1.0, 1.0], [3, 2**31 - 5], [0, 1, 2]), shape=(2, 2**31 - 3))
    assert TaylorFeatures(degree="auto", gamma=10.0, memory_limit=10**30).fit(X).degree_ == 2


def test_the_degree_of_cells_is_that_of_rows_about_their_centres():
    """Of four groups of rows that lie apart."""
    X = numbers(400, 3) * 0.5 + 4 * np.repeat(np.eye(4)[:, :3], 100, axis=0)
    y = X[:, 0] * X[:, 1] > 0
    for n_partitions in (1, 2):
        model = TaylorSVC(gamma=0.3, n_cells=4, n_partitions=n_partitions, tol=0.1).fit(X, y)
        t = np.concatenate([0.6 * squares(X - part.by[part.cell(X)]) for part in model._shift.partitions])
        assert model.degree_ == least_degree(t)
    assert 2 < model.degree_ < TaylorSVC(gamma=0.3, tol=0.1).fit(X, y).degree_ - 3


@pytest.mark.filterwarnings("ignore::taylorkern.ApproximationWarning")  # at the degree that the least memory leaves
def test_the_tables_of_all_cells_have_to_fit():
    X = numbers(400, 10)
    y = X[:, 0] * X[:, 1] > 0
    settings = {"gamma": 0.3, "n_cells": 4, "max_iter": 1, "tol": 10.0}
    free = TaylorSVC(**settings).fit(X, y)
    assert free.degree_ == 4 and free.n_slots_ == 4 * comb(14, 4)
    row = plan(X, y, degrees=[3, 4], cells=[4], gamma=0.3)
    # How rows in cells are stored is only decided when the degree is known: they count as sparse ones.
    more = X.size * 4 + X.shape[0] * 8
    for limit, degree in [(row[1].bytes + more, 4), (row[1].bytes - 1, 3), (row[0].bytes + more, 3)]:
        assert TaylorSVC(memory_limit=limit, **settings).fit(X, y).degree_ == degree
    assert TaylorSVC(memory_limit=row[0].bytes - 1, **settings).fit(X, y).degree_ < 3


def test_cells_without_columns_have_a_degree():
    model = TaylorSVC(gamma=0.5, n_cells=3).fit(np.repeat([[0.0, 1.0], [5.0, 2.0]], 10, axis=0), np.arange(20) % 3 == 0)
    assert model.degree_ == 2


def test_the_degree_along_axes_is_that_of_the_coordinates():
    """What lies beyond them is cut at any degree."""
    X = numbers(300, 30) * np.where(np.arange(30) < 2, 2.0, 0.3)
    y = X[:, 0] * X[:, 1] > 0
    for make in (np.asarray, sparse.csr_array):
        model = TaylorSVC(gamma=0.2, n_axes=2).fit(make(X), y)
        along = (X - model.shift_) @ model.axes_.T
        assert model.degree_ == least_degree(0.4 * squares(along))
        assert model.degree_ > TaylorSVC(gamma=0.2, tol=0.1).fit(make(X), y).degree_ == 2  # 30 columns: 5000 monomials


@pytest.mark.parametrize(
    "estimator", [TaylorSVC(degree="auto"), TaylorSVR(degree="auto"), TaylorFeatures(degree="auto")]
)
def test_files_pickles_and_clones_keep_the_wish_and_the_degree(estimator, tmp_path):
    X = numbers()
    y = X[:, 0] * X[:, 1] > 0
    model = clone(estimator).set_params(gamma=0.3).fit(X, y)
    assert clone(model).degree == "auto"
    model.save(tmp_path / "model")
    for again in (taylorkern.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.degree == "auto" and again.degree_ == model.degree_ > 1
        assert again.fit(X, y).degree_ == model.degree_


def test_a_warm_start_goes_on_though_the_degree_is_chosen_anew():
    X = numbers()
    y = X[:, 0] * X[:, 1] > 0
    model = TaylorSVC(degree="auto", gamma=0.3, warm_start=True, random_state=0).fit(X, y)
    n_iter, degree = model.n_iter_, model.degree_
    model.fit(X, y)
    assert model.n_iter_ < n_iter and model.degree_ == degree
    model.set_params(gamma=1.0, tol=0.1).fit(X, y)
    assert model.degree_ > degree


@pytest.mark.parametrize("way", ["partial_fit", "fit_stream"])
@slow
def test_the_first_batch_decides(way):
    """Of a stream the first 8192 rows, however it comes in pieces."""
    n = 300 if way == "partial_fit" else 8192
    X = numbers(n + 500, 4)
    batches = [(Z, Z[:, :3].prod(axis=1) > 0) for Z in (X[:n], 3 * X[n:])]
    model = TaylorSVC(gamma=0.2)
    if way == "fit_stream":
        model.fit_stream(
            [(batches[0][0][:100], batches[0][1][:100]), (batches[0][0][100:], batches[0][1][100:]), batches[1]]
        )
    for Z, y in batches if way == "partial_fit" else []:
        model.partial_fit(Z, y, classes=[False, True])
    first = X[:n][:: -(-n // _degree.SAMPLE)]
    assert model.degree_ == least_degree(0.4 * squares(first - model.shift_))
    assert model.degree_ < TaylorSVC(gamma=0.2, tol=0.1).fit(*batches[1]).degree_


def test_what_is_not_cut_has_the_degree_of_its_coefficients():
    X, y = numbers(20), np.arange(20) % 2
    for estimator in (TaylorSVC, TaylorFeatures):
        assert estimator(degree="auto", kernel="polynomial").fit(X, y).degree_ == 3
        assert estimator(degree="auto", kernel="poly").fit(100 * X, y).degree_ == 3
        for kernel in ([1.0, 1.0], np.ones(2), (0.5, 1.0)):
            assert estimator(degree="auto", kernel=kernel).fit(X, y).degree_ == 1
        assert estimator(degree="auto", kernel=(1.0,) * 6).fit(X, y).degree_ == 5
        with pytest.raises(ValueError, match="degree=1 takes 2 kernel coefficients; got 1"):
            estimator(degree="auto", kernel=[1.0]).fit(X, y)
        with pytest.raises(ValueError, match="kernel must be one of .*'magic'"):
            estimator(degree="auto", kernel="magic").fit(X, y)
    with pytest.raises(ValueError, match="degree.*'most'"):
        TaylorSVC(degree="most").fit(X, y)


def test_one_row_or_one_value_is_enough():
    X = np.zeros((4, 2))
    assert TaylorSVR().fit(X, np.ones(4)).degree_ == 2
    model = TaylorSVC().partial_fit(X[:1], [1], classes=[0, 1])
    assert model.degree_ == 2
    assert TaylorSVC().fit(sparse.csr_array((4, 3)), [0, 1, 0, 1]).degree_ == 2


@pytest.mark.parametrize("size", [1e-160, 1e20, 1e150])
def test_rows_of_any_size_have_a_degree(size):
    X = size * numbers(50, 2)
    model = TaylorSVC(gamma=1.0, shift=None).fit(X, np.arange(50) % 2)
    assert model.degree_ == (2 if size < 1 else 69)
    assert np.isfinite(model.decision_function(X)).all() and np.isfinite(model.certificate_.primal)


# The table.


@pytest.mark.parametrize("rows", [numbers(700, 5), sparse_rows(), sparse_rows().astype(np.float32)])
@NORMALIZE
def test_a_line_has_the_exact_counts_and_the_kernels_errors_of_the_shifted_rows(rows, normalize):
    y = np.arange(rows.shape[0]) % 3
    gamma, C = 0.3, 2.0
    table = plan(rows, y, gamma=gamma, C=C, degrees=[3, 1], normalize=normalize)
    assert [row.degree for row in table] == [1, 3]
    for row in table:
        model = TaylorSVC(degree=row.degree, gamma=gamma, C=C, max_iter=1, tol=0.9).fit(rows, y)
        X = rows.toarray() - model.shift_ if sparse.issparse(rows) else rows - model.shift_
        X = X.astype(rows.dtype)
        counts = np.array([comb(m + row.degree, row.degree) for m in np.count_nonzero(X, axis=1)])
        assert (row.n_slots, row.n_cells) == (model.n_slots_, 1)
        assert row.monomials == pytest.approx(counts.mean())
        assert row.monomials_worst == counts.max()
        assert row.monomials_99 == np.quantile(counts, 0.99, method="inverted_cdf")
        residuals = residual(X, degree=row.degree, gamma=gamma)
        assert row.residual == pytest.approx(residuals.mean(), rel=1e-4)
        theorem1 = nan if normalize else theorem1_bound(residuals, C=C)
        assert row.theorem1 == pytest.approx(theorem1, rel=1e-4, nan_ok=True)
        error = kernel_error(X, degree=row.degree, gamma=gamma, normalize=normalize == "auto", random_state=1)
        assert row.kernel_error == pytest.approx(error.mean, abs=10 * error.stderr)
        assert row.n_fourier == int(
            counts.mean() / np.mean(np.count_nonzero(rows.toarray() if sparse.issparse(rows) else rows, axis=1))
        )
        assert row.operations >= 3 * rows.shape[0] * row.monomials * 0.999
        assert row.measured and row.epoch_seconds > 0 and row.fit_seconds > 0 and 0 < row.held_out < 1
    assert table[1].lost < table[0].lost


@pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
@slow
def test_memory_is_what_training_asks_for(solver):
    X, y = sparse_rows(), np.arange(500) % 4
    for row in plan(X, y, degrees=[1, 3], solver=solver, max_iter=2):
        model = TaylorSVC(degree=row.degree, solver=solver, max_iter=2, memory_limit=row.bytes)
        model.fit(X, y)
        with pytest.raises(ValueError, match=f"would take {row.bytes} bytes"):
            model.set_params(memory_limit=row.bytes - 1).fit(X, y)


@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_fourier_error_is_that_of_random_features(gamma):
    X = numbers(60)
    K = rbf_kernel(X, gamma=gamma)
    found = [
        np.abs(Z @ Z.T - K).mean()
        for Z in (RBFSampler(gamma=gamma, n_components=200, random_state=s).fit_transform(X) for s in range(60))
    ]
    assert fourier_error(K, 200) == pytest.approx(np.mean(found), rel=0.05)
    assert fourier_error(K, 0) == np.inf


def test_without_targets_there_is_an_epoch_but_no_fit():
    table = plan(numbers(), gamma=0.1, degrees=[1, 2], class_weight={5: 1.0})
    for row in table:
        assert row.epoch_seconds > 0 and isnan(row.fit_seconds) and isnan(row.held_out) and row.lost > 0
    assert "An epoch takes" in str(table.best())


def test_numbers_are_planned_as_regression_and_whole_ones_when_asked():
    X = numbers()
    row = plan(X, X[:, 0], degrees=[2], gamma=0.1, epsilon=0.01)[0]
    assert row.held_out < 0.1  # 1 - R^2
    assert plan(X, np.round(9 * X[:, 0]), degrees=[2], gamma=0.1, estimator=TaylorSVR, C=9.0)[0].held_out < 0.1
    with pytest.raises(ValueError, match="TaylorSVC has no parameter 'epsilon'"):
        plan(X, X[:, 0] > 0, epsilon=0.01)


def test_seconds_lie_on_the_line_through_the_largest_samples(monkeypatch):
    sizes = []

    def times(model, X, y):
        sizes.append(len(y))
        return np.array([0.02 + 1e-6 * len(y), 0.05 + 5e-6 * len(y), 0.05])

    monkeypatch.setattr(_pace, "_times", times)
    monkeypatch.setattr(TaylorSVC, "score", lambda model, X, y: 0.75)
    X = numbers(70_000, 2)
    y = X[:, 0] > 0
    pace = _pace.measure(TaylorSVC(), X, y, (X[:9], y[:9]), 10**7, 1e-6, 1)
    assert sizes == [1024, 4096, 16384, 65536]
    assert pace.epoch == pytest.approx(0.02 + 10, rel=0.01)
    assert pace.fit == pytest.approx(0.05 + 50 + 0.05 + 0.4 * 0.05 / 65536 * 10**7, rel=0.01)
    searched = _pace.measure(TaylorSVC(solver="adagrad"), X, y, (X[:9], y[:9]), 10**7, 1e-6, 1)
    assert searched.fit == pytest.approx(0.05 + 50 + 0.05 * 16384 / 8192, rel=0.01)  # rows that are searched on
    assert pace.large and pace.error == 0.25
    assert _pace.measure(TaylorSVC(), X, y, None, 10**7, 1.0, 1) is None  # too slow to be tried


def test_the_table_prints_renders_and_is_a_sequence():
    table = plan(numbers(), degrees=range(1, 4), budget="10 MB")
    text, html = str(table), table._repr_html_()
    assert len(table) == 3 and table[-1].degree == 3 and [row.degree for row in table[:2]] == [1, 2]
    assert text.splitlines()[0].split()[:3] == ["degree", "cells", "D"]
    assert len(text.splitlines()) == 6 and repr(table) == text
    assert html.count("<tr>") == 4 and "|K-K~|" in html and str(table.best()) in text


def test_the_plot_shows_errors_and_seconds():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    table = plan(numbers(), degrees=range(1, 4))
    ax = Figure().add_subplot()
    assert table.plot(ax) is ax
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [row.lost for row in table])
    beside = ax.figure.axes[1]
    assert beside.get_ylabel() == "seconds of an epoch"
    np.testing.assert_array_equal(beside.get_lines()[0].get_ydata(), [row.epoch_seconds for row in table])


# Cells and axes.


def localised(X, gamma, degree, views, unit):
    """(K, K~, mean residual) of rows in views of them: (shifted rows, |x|^2 of whole rows, cells) each."""
    exact, cut, residuals = 0, 0, 0
    for Z, norms, cell in views:
        same = cell[:, None] == cell
        series = sum((2 * gamma * Z @ Z.T) ** k / factorial(k) for k in range(degree + 1))
        K = same * series * np.exp(-gamma * (norms[:, None] + norms))
        share = np.diag(K)
        exact = exact + same * rbf_kernel(X, gamma=gamma) / len(views)
        cut = cut + (K / np.sqrt(share[:, None] * share) if unit else K) / len(views)
        residuals = residuals + (1 - share) / len(views)
    return exact, cut, residuals.mean()


def views_of(X, n_cells, n_partitions, n_axes):
    """The views of rows, by plain numpy, from the centres or axes that a plan takes."""
    if n_axes is not None:
        centred = X - X.mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:n_axes]
        return [(centred @ axes.T, (centred**2).sum(axis=1), np.zeros(len(X)))]
    cells = choose_cells(X, n_cells, n_partitions, 2, np.random.RandomState(0))
    views = []
    for partition in cells.partitions:
        assert (partition.use >= 0).all()  # the columns are continuous
        cell = np.argmin(((X[:, None] - partition.centres[:, partition.use]) ** 2).sum(axis=2), axis=1)
        Z = X - partition.by[cell]
        views.append((Z, (Z**2).sum(axis=1), cell))
    return views


@pytest.mark.parametrize(("n_cells", "n_partitions", "n_axes"), [(5, 1, None), (4, 3, None), (1, 1, 3)])
@NORMALIZE
def test_cells_and_axes_are_compared_with_the_localised_exact_kernel(n_cells, n_partitions, n_axes, normalize):
    X, gamma, C = numbers(800, 5), 1.5, 4.0
    y = X[:, 0] * X[:, 1] > 0
    settings = {"gamma": gamma, "C": C, "n_partitions": n_partitions, "normalize": normalize}
    table = plan(X, y, degrees=[1, 3], cells=[n_cells], axes=[n_axes], **settings)
    order = _plan_lost.draw(800, 800)
    X, y = X[order], _plan_lost.targets_of(y[order], True)
    views = views_of(X, n_cells, n_partitions, n_axes)
    for row in table:
        exact, cut, mean_residual = localised(X, gamma, row.degree, views, normalize == "auto")
        assert (row.n_cells, row.n_axes) == (n_cells, n_axes)
        assert row.residual == pytest.approx(mean_residual, rel=1e-9)
        assert row.kernel_error == pytest.approx(np.abs(exact - cut).mean(), rel=0.1)  # of sampled pairs
        alpha = np.linalg.solve(exact[:400, :400] + 400 / (2 * C * 800) * np.eye(400), y[:400])
        lost = (exact - cut)[400:, :400] @ alpha
        assert row.lost == pytest.approx(np.linalg.norm(lost) / np.linalg.norm(exact[400:, :400] @ alpha), rel=1e-6)
        n_columns = n_axes or 5
        assert row.n_slots == n_cells * n_partitions * comb(n_columns + row.degree, row.degree)
        assert row.monomials == row.monomials_worst == n_partitions * comb(n_columns + row.degree, row.degree)
        assert row.operations == 800 * row.monomials
    assert table[1].lost < table[0].lost


def test_cells_of_sparse_rows_have_the_monomials_that_training_walks():
    X, y = sparse_rows(600), np.arange(600) % 2
    for row in plan(X, y, degrees=[2], cells=[1, 3], axes=[None, 4]):
        model = TaylorSVC(degree=2, n_cells=row.n_cells, n_axes=row.n_axes, random_state=0)
        order = _plan_lost.draw(600, 600)
        model.fit(X[order], y[order])
        forms = list(model._shift.rows(X[order]).forms())
        counts = [comb(m + 2, 2) for form in forms for _, lengths in form.lengths() for m in lengths.tolist()]
        assert row.monomials == pytest.approx(np.mean(counts)) and row.monomials_worst == max(counts)
        assert row.n_slots == model.n_slots_


@pytest.mark.parametrize("solver", ["dual", "adagrad"])
@slow
def test_memory_with_cells_or_axes_is_what_training_asks_for(solver):
    X, y = numbers(500), np.arange(500) % 2
    table = plan(X, y, degrees=[2], cells=(1, 4), axes=(None, 3), solver=solver, max_iter=2)
    assert [(row.n_cells, row.n_axes) for row in table] == [(1, None), (1, 3), (4, None)]
    for row in table:
        chosen = {"n_cells": row.n_cells, "n_axes": row.n_axes}
        model = TaylorSVC(degree=2, solver=solver, max_iter=2, memory_limit=row.bytes, **chosen).fit(X, y)
        with pytest.raises(ValueError, match=f"would take {row.bytes} bytes"):
            model.set_params(memory_limit=row.bytes - 1).fit(X, y)


def test_seconds_are_those_of_models_with_as_many_cells_and_axes(monkeypatch):
    seen = []

    def measure(model, X, y, held_out, n_rows, guess, n_touched):
        seen.append((model.n_cells, model.n_axes, model.degree, n_touched >= 2**16))
        return _pace.Pace(1.0, 2.0, 0.25, True)

    monkeypatch.setattr(_plan, "measure", measure)
    X = numbers()
    table = plan(X, X[:, 0] > 0, degrees=[1, 2], cells=[8, 1], axes=[3, None])
    assert seen == [
        *((1, None, degree, False) for degree in (1, 2)),
        *((1, 3, degree, False) for degree in (1, 2)),
        *((8, None, degree, True) for degree in (1, 2)),
    ]
    assert all(row.fit_seconds == 2.0 and row.held_out == 0.25 for row in table)


def test_cells_are_for_when_no_degree_without_them_is_close_enough():
    X = numbers(300)
    y = X[:, 0] * X[:, 1] > 0
    table = plan(X, y, degrees=[1, 2], cells=(1, 2, 4), axes=(None, 3))

    def best(**lost):
        table.rows = tuple(
            row._replace(lost=lost.get(f"c{row.n_cells}a{row.n_axes or 0}r{row.degree}", 0.5)) for row in table.rows
        )
        return table.best()

    def chosen(**lost):
        choice = best(**lost)
        return choice.degree, choice.n_cells, choice.n_axes

    assert chosen(c1a0r2=0.1, c2a0r1=0.0) == (2, 1, None)
    assert chosen(c4a0r1=0.0, c2a0r2=0.1) == (2, 2, None)
    assert chosen(c1a3r2=0.1, c2a0r1=0.0) == (2, 1, 3)
    assert chosen(c2a0r1=0.4, c2a0r2=0.45) == (2, 2, None)  # none is enough: the one that loses least
    assert "degree 2, 2 cells" in str(table.best()) and "more cells than 4" in str(table.best())
    assert "exact within cells" in str(table.best())


def test_the_table_and_the_plot_tell_cells_and_axes_apart():
    table = plan(numbers(), degrees=[1, 2], cells=(1, 3), axes=(None, 2))
    head, *lines = str(table).splitlines()[:-2]
    assert head.split()[:4] == ["degree", "cells", "axes", "D"]
    assert [line.split()[:2] for line in lines] == [[r, n] for n in "113" for r in "12"]
    assert lines[2].split()[2] == "2"
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = table.plot(Figure().add_subplot())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == len(set(labels)) == 15
    assert "mean |K - K~|, 3 cells" in labels and "seconds of an epoch, 2 axes" in labels


# The choice.


def test_the_best_is_the_least_degree_that_loses_little():
    X = numbers(3000)
    y = X[:, 0] * X[:, 1] > 0
    table = plan(X, y, gamma=0.3)
    choice = table.best()
    assert choice.use and choice.degree == min(row.degree for row in table if row.lost <= _plan_lost.TOLERANCE) > 1
    assert f"degree {choice.degree}: the least that is close enough" in str(choice)


def test_a_small_bandwidth_is_advised_against_with_what_would_help():
    X = numbers(1000)
    X[:, 2] *= 100
    choice = plan(X, X[:, 0] * X[:, 1] > 0, gamma=1.0, degrees=range(1, 4)).best()
    assert not choice.use and "do not use taylorkern here" in choice.reason
    for help_ in ("scaling: column 2", "a smaller gamma", "sklearn.svm.SVC"):
        assert help_ in choice.reason
    smaller = float(re.search(r"a smaller gamma: (\S+),", choice.reason)[1])
    assert plan(X, degrees=[3], gamma=smaller)[0].residual == pytest.approx(0.05, rel=0.1)


def test_random_features_are_advised_where_they_come_closer():
    table = plan(numbers(1000), gamma=1.0, degrees=[2])
    assert "random Fourier features" not in str(table.best())
    table.rows = (table[0]._replace(fourier_error=0.0),)
    assert f"{table[0].n_fourier} random Fourier features" in str(table.best())


def test_a_budget_of_memory_or_time_bounds_the_choice():
    X = numbers(500, 20)
    y = X[:, :3].prod(axis=1) > 0
    free = plan(X, y, gamma=0.3, degrees=range(1, 6))
    assert free.best().degree > 2
    limit = (free[1].bytes + free[2].bytes) / 2
    for budget in (f"{limit / 1000}kB", {"bytes": limit}, {"bytes": f"{limit / 2**20} MiB", "seconds": 1e6}):
        table = plan(X, y, gamma=0.3, degrees=[1, 2, 3], budget=budget)
        assert [bool(row.problem) for row in table] == [False, False, True]
        assert "are more than" in table[2].problem
        assert table.best().degree == 2
    table = plan(X, y, gamma=0.3, degrees=[1, 2], memory_limit=free[0].bytes)
    assert [bool(row.problem) for row in table] == [False, True]
    nothing = plan(X, y, gamma=0.3, degrees=[2], budget=1e-9).best()
    assert not nothing.use and nothing.degree is None and "s are more than 1e-09 s" in nothing.reason


def test_what_cannot_be_walked_is_named_and_not_tried():
    table = plan(numbers(50, 700), degrees=[1, 4, 30])
    assert "a row has" in table[1].problem or "are more than" in table[1].problem
    assert "more than can be numbered" in table[2].problem
    assert not table[2].measured and table[2].epoch_seconds > table[0].epoch_seconds


# Input.


@pytest.mark.parametrize("make", [lambda X: X, sparse.csr_array, sparse.csr_matrix])
def test_a_plan_does_not_copy_all_rows(make, monkeypatch):
    for name, n_rows in (("LARGEST", 4096), ("LOOKED_AT", 4096), ("SAMPLE", 256)):
        monkeypatch.setattr(_plan_sample, name, n_rows)
    X = make(np.random.default_rng(0).standard_normal((400_000, 10)))
    tracemalloc.start()
    try:
        plan(X, degrees=[1, 2])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 400_000 * 10 * 8 / 2


@pytest.mark.parametrize("make", [sparse.csc_array, sparse.lil_array, sparse.coo_array, np.ndarray.tolist])
def test_any_kind_of_rows_will_do(make):
    X = sparse_rows(200).toarray()
    for row, other in zip(plan(make(X), degrees=[1, 2]), plan(X, degrees=[1, 2]), strict=True):
        assert row.monomials == other.monomials and row.lost == pytest.approx(other.lost)


def test_frames_and_labels_of_strings_will_do():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(numbers(300), columns=list("abcdef"))
    y = pandas.Series(np.where(X["a"] * X["b"] > 0, "yes", "no"))
    assert plan(X, y, degrees=[1, 2])[1].held_out < 0.5


def test_one_row_and_labels_of_which_one_is_rare():
    assert not plan([[1.0, 2.0]], degrees=[1])[0].measured
    y = np.zeros(500, dtype=int)
    y[3] = 1
    assert plan(numbers(500), y, degrees=[1])[0].epoch_seconds > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"degrees": []}, "degrees must hold at least one"),
        ({"degrees": [0]}, "degree must be an integer from 1 to 170; got 0"),
        ({"degrees": 3}, "degrees must be integers; got 3"),
        ({"budget": "2 apples"}, "budget must be .*got '2 apples'"),
        ({"budget": -1}, "budget in seconds must be a finite number > 0; got -1"),
        ({"budget": [1]}, r"budget in seconds must be a finite number > 0; got \[1\]"),
        ({"budget": {"money": 1}}, "budget must be .*'money'"),
        ({"gamma": -1}, "gamma must be a finite number > 0; got -1"),
        ({"gamma": "wide"}, "gamma must be .*'wide'"),
        ({"C": 0}, "C must be a finite number > 0; got 0"),
        ({"solver": "magic"}, "solver must be one of .*'magic'"),
        ({"shift": "far"}, "shift must be .*'far'"),
        ({"kernel": "polynomial"}, "plan is for the gaussian kernel; got kernel='polynomial'"),
        ({"degree": 3}, "no parameter 'degree'"),
        ({"n_cells": 4}, r"plan looks at several n_cells: give cells=\(4,\)"),
        ({"n_axes": 4}, r"plan looks at several n_axes: give axes=\(4,\)"),
        ({"cells": 4}, "cells and axes must be collections; got 4"),
        ({"cells": [0]}, "cells must be an integer .*0"),
        ({"axes": ["most"]}, "axes must be an integer .*'most'"),
        ({"cells": [2], "axes": [3]}, "leave nothing to look at"),
        ({"estimator": TaylorFeatures}, "estimator must be TaylorSVC or TaylorSVR"),
        ({"y": [1, 2]}, "inconsistent numbers of samples"),
        ({"X": 5}, "X must hold rows and columns; got int"),
        ({"X": np.zeros((0, 3))}, "X must hold rows and columns"),
        ({"X": np.zeros(3)}, "1D array"),
        ({"X": [[np.nan, 1.0]] * 9}, "NaN"),
        ({"X": "rows"}, "X must hold rows and columns; got 'rows'"),
    ],
)
def test_wrong_arguments_are_refused_with_cause_and_value(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(**({"X": numbers(9)} | arguments))


def test_a_broken_matrix_is_refused_before_rows_are_drawn():
    X = sparse_rows(50)
    X.indptr[5] = X.nnz + 9
    with pytest.raises(ValueError, match="X is a broken CSR matrix"):
        plan(X)
