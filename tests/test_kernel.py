"""Closed forms, bounds and costs hold what their formulas say."""

from math import comb, exp, factorial, inf, nan, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from taylorkern import taylor_kernel
from taylorkern.kernel import (
    bounds_at_budget,
    cauchy_schwarz_bound,
    components_within,
    degree_within,
    fourier_bound,
    fourier_failure,
    fourier_operations,
    kernel_error,
    residual,
    taylor_bound,
    taylor_operations,
    theorem1_bound,
)

MAKERS = [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.csc_array]


def data(n_rows=15, n_columns=6, density=0.7, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns)) * (random.uniform(size=(n_rows, n_columns)) < density)
    return X.astype(dtype)


def closed_form_rounding(X, Y, kernel):
    """As `reference.rounding`, for a scalar product and a polynomial of it, with s(x) in the same precision."""
    largest = max((kernel.scale**2 * (A.astype(np.float64) ** 2).sum(axis=1)).max(initial=0) for A in (X, Y))
    eps = np.finfo(np.result_type(X, Y)).eps
    return eps * (10 * kernel.degree + 12 + (1 + kernel.decay * largest) * (4 + 4 * sqrt(X.shape[1])))


# The kernel.


@pytest.mark.parametrize("name", reference.all_kernels(3))
@pytest.mark.parametrize("make_x", MAKERS)
@pytest.mark.parametrize("make_y", MAKERS)
@pytest.mark.parametrize("dtypes", [(np.float64, np.float64), (np.float32, np.float32), (np.float32, np.float64)])
def test_taylor_kernel_equals_the_reference(name, make_x, make_y, dtypes):
    X, Y = data(dtype=dtypes[0]), data(n_rows=9, dtype=dtypes[1], seed=1)
    for degree in (1, 2, 3, 6):
        kernel = reference.all_kernels(degree)[name]
        K = taylor_kernel(make_x(X), make_y(Y), **kernel.parameters)
        assert type(K) is np.ndarray
        assert K.dtype == np.result_type(X, Y)
        tolerance = reference.kernel_terms(X, Y, kernel) * closed_form_rounding(X, Y, kernel)
        assert (np.abs(K - reference.kernel_matrix(X, Y, kernel)) <= tolerance).all()


def test_taylor_kernel_of_one_argument_is_symmetric():
    X = data()
    for make in MAKERS:
        K = taylor_kernel(make(X), degree=3, gamma=0.2)
        assert np.allclose(K, taylor_kernel(X, X, degree=3, gamma=0.2), rtol=1e-13, atol=0)
        assert np.allclose(K, K.T, rtol=1e-14, atol=0)


def test_the_kernels_are_those_of_scikit_learn():
    X, Y = data(), data(n_rows=4, seed=1)
    K = taylor_kernel(X, Y, degree=40, gamma=0.2)
    assert np.allclose(K, rbf_kernel(X, Y, gamma=0.2), rtol=0, atol=1e-12)
    K = taylor_kernel(X, Y, degree=3, gamma=0.2, kernel="polynomial", coef0=0.7)
    assert np.allclose(K, polynomial_kernel(X, Y, degree=3, gamma=0.2, coef0=0.7), rtol=1e-12, atol=1e-13)
    K = taylor_kernel(X, Y, degree=60, gamma=0.2, kernel="exponential")
    assert np.allclose(K, np.exp(0.4 * X @ Y.T), rtol=1e-11, atol=0)


def test_gamma_is_computed_on_x():
    X, Y = data(), 5 * data(seed=1)
    for make in MAKERS:
        K = taylor_kernel(make(X), Y)
        assert np.allclose(K, taylor_kernel(X, Y, gamma=1 / (6 * X.var())), rtol=1e-10, atol=1e-300)
    assert np.allclose(taylor_kernel(X, Y, gamma="auto"), taylor_kernel(X, Y, gamma=1 / 6), rtol=1e-14, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_kernel_of_high_degrees_is_exact(dtype):
    """1 / 60! is below float32 and 49^60 beyond it; with e^-49 their product is most of the kernel."""
    kernel = reference.kernel_of("gaussian", 60, 0.5)
    X = np.array([[7.0], [-6.0], [0.5], [12.0]], dtype=dtype)
    K = taylor_kernel(X, **kernel.parameters)
    tolerance = closed_form_rounding(X, X, kernel) * reference.kernel_terms(X, X, kernel)
    assert (np.abs(K - reference.kernel_matrix(X, X, kernel)) <= tolerance).all()


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("dtype", "huge"), [(np.float32, 3e38), (np.float32, 1e20), (np.float64, 1.7e308), (np.float64, 1e5)]
)
def test_rows_that_underflow_have_kernel_values_of_exactly_zero(make, dtype, huge):
    X = np.array([[huge, 0.0], [0.5, 0.25]], dtype=dtype)
    K = taylor_kernel(make(X), degree=3, gamma=2.0)
    assert K[0, 0] == K[0, 1] == K[1, 0] == 0
    assert K[1, 1] == pytest.approx(
        reference.kernel_matrix(X[1:], X[1:], reference.kernel_of("gaussian", 3, 2.0))[0, 0]
    )


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_kernels_of_empty_matrices_are_empty_or_constant(make):
    assert taylor_kernel(make(np.zeros((0, 3))), make(np.ones((2, 3)))).shape == (0, 2)
    assert taylor_kernel(make(np.zeros((0, 3)))).shape == (0, 0)
    assert np.array_equal(taylor_kernel(make(np.zeros((2, 0)))), np.ones((2, 2)))
    assert np.array_equal(taylor_kernel(make(np.zeros((2, 3)))), np.ones((2, 2)))


def test_taylor_kernel_does_not_change_its_arguments():
    for make in MAKERS:
        X, Y = make(data()), make(data(seed=1))
        before = X.copy(), Y.copy()
        taylor_kernel(X, Y)
        taylor_kernel(X)
        assert (abs(X - before[0])).max() == 0 and (abs(Y - before[1])).max() == 0


def test_taylor_kernel_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="X has 3 columns, but Y has 4"):
        taylor_kernel(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="100 x 200 kernel values would take .* allowed by memory_limit"):
        taylor_kernel(np.ones((100, 2)), np.ones((200, 2)), memory_limit=100_000)
    with pytest.raises(ValueError, match="kernel values would take .* free on this machine"):
        taylor_kernel(sparse.csr_array((10**7, 2)))
    for parameters in ({"degree": 0}, {"gamma": -1.0}, {"kernel": "cubic"}, {"kernel": "polynomial", "coef0": -1.0}):
        with pytest.raises(ValueError, match=f"{list(parameters)[-1]} must be"):
            taylor_kernel(np.ones((2, 3)), **parameters)
    for bad in (nan, inf):
        with pytest.raises(ValueError, match="NaN|infinity"):
            taylor_kernel(np.ones((2, 3)), np.full((2, 3), bad))


# The residual and the bounds.


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("degree", [1, 2, 5, 20])
def test_residual_is_what_the_kernel_of_a_row_with_itself_lacks(make, degree):
    X = data()
    result = residual(make(X), degree=degree, gamma=0.4)
    assert np.allclose(result, reference.residual(X, degree, 0.4), rtol=1e-11, atol=0)
    assert np.allclose(result, 1 - np.diag(taylor_kernel(X, degree=degree, gamma=0.4)), rtol=0, atol=1e-14)
    assert ((result >= 0) & (result <= 1)).all()


def test_residual_of_small_and_large_rows_is_exact():
    # 1 - K~ would be rounded to zero here: the residual of a small row is a^2 / 2 with a = |x|^2.
    assert residual([[1e-5]], degree=1, gamma=0.5) == pytest.approx(0.5e-20, rel=1e-9)
    assert residual([[0.0], [1e4]], degree=3, gamma=1.0).tolist() == [0.0, 1.0]


norms = st.floats(0, 6)


@given(norms, norms, st.integers(1, 30), st.floats(0.01, 3))
def test_cauchy_schwarz_is_never_worse_than_the_taylor_bound(a, b, degree, gamma):
    sharper = cauchy_schwarz_bound(*residual([[a], [b]], degree=degree, gamma=gamma))
    assert sharper <= taylor_bound(a, b, degree=degree, gamma=gamma) * (1 + 1e-12) + 1e-300


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(0.01, 2))
def test_both_bounds_hold(seed, degree, gamma):
    X = data(n_rows=12, n_columns=3, seed=seed)
    error = np.abs(taylor_kernel(X, degree=degree, gamma=gamma) - reference.gaussian(X, X, gamma))
    lengths, lost = np.linalg.norm(X, axis=1), residual(X, degree=degree, gamma=gamma)
    assert (error <= cauchy_schwarz_bound(lost[:, None], lost) + 1e-14).all()
    assert (error <= taylor_bound(lengths[:, None], lengths, degree=degree, gamma=gamma) + 1e-14).all()


def test_bounds_are_those_of_the_formulas():
    assert taylor_bound(2.0, 3.0, degree=2, gamma=0.5) == pytest.approx(6.0**3 / factorial(3), rel=1e-13)
    assert taylor_bound(0.0, 3.0, degree=2, gamma=0.5) == 0
    assert taylor_bound(1e200, 1e-3, degree=170, gamma=0.5) == inf
    assert np.allclose(taylor_bound(np.array([1.0, 2.0]), 1.0, degree=1, gamma=0.5), [0.5, 2.0])
    assert cauchy_schwarz_bound(0.25, 0.04) == pytest.approx(0.1)
    assert np.allclose(cauchy_schwarz_bound(np.array([0.25, 1.0]), 0.04), [0.1, 0.2])
    assert theorem1_bound([0.25, 0.01], C=2.0) == pytest.approx(sqrt(2.0 * 2) * (0.5 + 0.1) / 2)
    assert theorem1_bound([]) == 0
    with pytest.raises(ValueError, match="C must be"):
        theorem1_bound([0.1], C=0)
    with pytest.raises(ValueError, match="degree must be"):
        taylor_bound(1.0, 1.0, degree=0, gamma=1.0)
    with pytest.raises(ValueError, match="gamma must be"):
        taylor_bound(1.0, 1.0, degree=1, gamma=0)
    with pytest.raises(ValueError, match="gamma must be"):
        residual([[1.0]], degree=1, gamma="scale")


@pytest.mark.parametrize("degree", [1, 2, 4])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_theorem_1_holds_for_svms_solved_exactly(degree, C):
    """p* <= p~* <= p* + bound, without a bias, lambda = 1 / (C n)."""
    n, gamma = 40, 0.4
    random = np.random.default_rng(degree)
    X = random.normal(size=(n, 3))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n) > 0, 1.0, -1.0)
    lam = 1 / (C * n)
    low, high = reference.svm_optimum(reference.gaussian(X, X, gamma), y, lam)
    K = reference.kernel_matrix(X, X, reference.kernel_of("gaussian", degree, gamma))
    low_cut, high_cut = reference.svm_optimum(K, y, lam)
    assert high - low < 1e-9 and high_cut - low_cut < 1e-9
    assert low <= high_cut
    assert low_cut <= high + theorem1_bound(residual(X, degree=degree, gamma=gamma), C=C)


def test_theorem_1_says_something_for_small_rows():
    X = 0.3 * data()
    assert theorem1_bound(residual(X, degree=4, gamma=0.2)) < 0.1


# Random Fourier features.


def test_fourier_failure_is_claim_1():
    # 2^8 d / epsilon^2 (R / sigma)^2 exp(-D epsilon^2 / (4 (d + 2))), with sigma = 1 at gamma = 1/2
    expected = 256 * 3 / 0.25 * 4.0 * exp(-1000 * 0.25 / 20)
    result = fourier_failure(0.5, n_components=1000, n_columns=3, radius=2.0, gamma=0.5)
    assert result == pytest.approx(expected, rel=1e-12)
    assert fourier_failure(0.01, n_components=10, n_columns=3, radius=2.0, gamma=0.5) == 1.0


@given(st.integers(1, 10**7), st.integers(1, 1000), st.floats(0.1, 100), st.floats(0.01, 10), st.floats(1e-6, 0.5))
def test_fourier_bound_and_failure_are_inverse(n_components, n_columns, radius, gamma, delta):
    case = {"n_components": n_components, "n_columns": n_columns, "radius": radius, "gamma": gamma}
    epsilon = fourier_bound(**case, delta=delta)
    assert fourier_failure(epsilon, **case) == pytest.approx(delta, rel=1e-6)


def test_fourier_bound_shrinks_with_more_features():
    bounds = [fourier_bound(n_components=n, n_columns=5, radius=1.0, gamma=0.5) for n in (100, 10_000, 1_000_000)]
    assert bounds[0] > bounds[1] > bounds[2] > 0
    assert fourier_bound(n_components=100, n_columns=5, radius=0.0, gamma=0.5) == 0


@pytest.mark.parametrize("delta", [0, 1, -0.1, nan, 2])
def test_wrong_probabilities_are_refused(delta):
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        fourier_bound(n_components=100, n_columns=5, radius=1.0, gamma=0.5, delta=delta)


@pytest.mark.parametrize("epsilon", [0, -0.5, nan])
def test_wrong_errors_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        fourier_failure(epsilon, n_components=100, n_columns=5, radius=1.0, gamma=0.5)


@pytest.mark.parametrize("n_components", [0, -3])
def test_wrong_numbers_of_fourier_features_are_refused(n_components):
    with pytest.raises(ValueError, match="n_components must be"):
        fourier_bound(n_components=n_components, n_columns=5, radius=1.0, gamma=0.5)


# The error over sampled pairs.


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_error_estimates_the_mean_over_all_pairs(make, kernel, dtype):
    X = 0.6 * data(n_rows=30, dtype=dtype)
    X64 = X.astype(np.float64)
    K = reference.kernel_matrix(X64, X64, reference.kernel_of(kernel, 2, 0.3))
    exact = reference.gaussian(X64, X64, 0.3) if kernel == "gaussian" else np.exp(0.6 * X64 @ X64.T)
    errors = np.abs(K - exact)
    found = kernel_error(make(X), degree=2, gamma=0.3, kernel=kernel, n_pairs=20_000, random_state=0)
    assert found.n_pairs == 20_000
    assert abs(found.mean - errors.mean()) < 5 * found.stderr
    assert found.stderr == pytest.approx(errors.std() / sqrt(20_000), rel=0.1)
    assert found.maximum <= errors.max() * (1 + 1e-5)
    assert found.maximum == pytest.approx(errors.max(), rel=1e-5)  # 20,000 draws of 900 pairs meet them all


def test_kernel_error_is_repeatable():
    X = data()
    first = kernel_error(X, degree=2, gamma="scale", n_pairs=100, random_state=3)
    assert kernel_error(X, degree=2, gamma="scale", n_pairs=100, random_state=3) == first
    assert kernel_error(X, degree=2, gamma="scale", n_pairs=100, random_state=4) != first


def test_kernel_error_of_rows_that_underflow_is_the_exact_kernel():
    X = np.array([[1e3, 0.0]])
    assert kernel_error(X, degree=3, gamma=1.0, n_pairs=10, random_state=0)[:3] == (1.0, 0.0, 1.0)


def test_kernel_error_refuses_what_has_no_pairs_or_no_error():
    with pytest.raises(ValueError, match="no rows"):
        kernel_error(np.zeros((0, 3)), degree=2, gamma=1.0)
    with pytest.raises(ValueError, match="gaussian or exponential"):
        kernel_error(np.ones((2, 3)), degree=2, gamma=1.0, kernel="polynomial")
    with pytest.raises(ValueError, match="degree must be"):
        kernel_error(np.ones((2, 3)), degree=0, gamma=1.0)
    for n_pairs in (0, -1):
        with pytest.raises(ValueError, match="n_pairs must be"):
            kernel_error(np.ones((2, 3)), degree=2, gamma=1.0, n_pairs=n_pairs)


# The cost model.

FOUR_ROWS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 3.0], [1.0, 1.0, 1.0]])  # 0, 1, 2, 3 nonzeros


@pytest.mark.parametrize("make", MAKERS)
def test_costs_are_counts_of_nonzeros(make):
    X = make(FOUR_ROWS)
    assert taylor_operations(X, 1) == (1 + 2 + 3 + 4) / 4
    assert taylor_operations(X, 2) == (1 + 3 + 6 + 10) / 4
    assert taylor_operations(X, 3) == (1 + 4 + 10 + 20) / 4
    assert fourier_operations(X, 100) == 100 * 1.5
    assert [degree_within(X, budget) for budget in (2, 2.5, 4.9, 5, 8.75, 10)] == [0, 1, 1, 2, 3, 3]
    assert [components_within(X, budget) for budget in (1, 1.5, 3, 4.4, 150)] == [0, 1, 2, 2, 100]


@given(st.integers(0, 2**32 - 1), st.floats(1, 10_000))
def test_a_budget_buys_as_much_as_it_can(seed, budget):
    X = data(seed=seed)
    degree, n = degree_within(X, budget), components_within(X, budget)
    assert degree == 0 or taylor_operations(X, degree) <= budget
    assert taylor_operations(X, degree + 1) > budget
    assert fourier_operations(X, n) <= budget * (1 + 1e-12)
    assert fourier_operations(X, n + 1) > budget * (1 - 1e-12)


def test_costs_of_data_without_nonzeros_or_rows():
    assert taylor_operations(np.zeros((3, 2)), 4) == 1
    assert components_within(np.zeros((3, 2)), 100) == 0
    assert taylor_operations(np.zeros((0, 2)), 4) == 0
    assert fourier_operations(np.zeros((0, 2)), 4) == 0
    with pytest.raises(ValueError, match="degree must be"):
        taylor_operations(FOUR_ROWS, 0)


def test_costs_of_large_rows_are_exact():
    X = sparse.csr_array(np.ones((1, 500)))
    assert taylor_operations(X, 20) == float(comb(520, 20))


def test_bounds_at_a_budget_are_those_of_what_it_buys():
    radius = sqrt(13.0)
    bounds = bounds_at_budget(FOUR_ROWS, 9.0, gamma=0.1)
    assert (bounds.degree, bounds.n_components) == (3, 6)
    assert bounds.taylor == pytest.approx((0.2 * 13) ** 4 / 24, rel=1e-12)
    assert bounds.fourier == fourier_bound(n_components=6, n_columns=3, radius=radius, gamma=0.1, delta=0.05)
    nothing = bounds_at_budget(FOUR_ROWS, 1.0, gamma=0.1)
    assert nothing == (0, inf, 0, inf)
