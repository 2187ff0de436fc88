"""The steps of the solvers, and what they are made of, equal the reference: gram, adapt, shift, and the passes."""

import subprocess
import sys
from functools import lru_cache
from itertools import chain, pairwise

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from scipy.optimize import minimize_scalar

from taylorkern import _core
from taylorkern._expansion import Expansion
from taylorkern._rows import Rows, check_rows
from taylorkern._shift import Shift

REALS = [np.float32, np.float64]
KERNELS = list(reference.all_kernels(1))
LOSSES = reference.LOSSES
COLUMNS = {1: 37, 2: 21, 3: 9, 5: 5}  # by degree
# How rows lie in memory, and whether all columns are visited or the nonzeros only.
STORED = [("array", False), ("array", True), ("csr", False), ("csr", True)]
TOGETHER = 8  # rows of a dense walk whose gradients AdaGrad sums up


def mixed_rows(n_columns, dtype=np.float64, n_rows=19, seed=0):
    """Empty rows, rows of one entry, short and full ones."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.5, 1.5, size=(n_rows, n_columns))
    X[3:-5] *= random.uniform(size=(n_rows - 8, n_columns)) < 0.4
    X[0] = X[15] = 0
    X[1, 1:] = 0
    X[2, :-1] = 0
    return X.astype(dtype)


def stored(X, how, order=None):
    """C's view of the rows."""
    storage, walk_dense = how
    rows = Rows(check_rows(sparse.csr_array(X) if storage == "csr" else np.ascontiguousarray(X))).core
    rows.walk_dense = walk_dense
    if order is not None:
        rows.set_order(np.asarray(order, dtype=np.int32))
    return rows


def orders(n_rows):
    """The rows as they are; and some of them, some twice, in another order."""
    return [None, np.random.default_rng(7).permutation(np.arange(2 * n_rows) // 2)[: n_rows + 3]]


@lru_cache
def basis(n_columns, degree):
    return reference.Basis(n_columns, degree)


@lru_cache
def mixed_case(degree, name, dtype):
    """(rows, kernel, expansion, features)."""
    X, kernel = mixed_rows(COLUMNS[degree], dtype), reference.all_kernels(degree)[name]
    features = basis(X.shape[1], degree).features(X, kernel)
    return X, kernel, Expansion(X.shape[1], **kernel.parameters), features


def assert_sums_agree(result, expected, terms, tolerance):
    """Equal up to a part of the sum of absolute terms, and to what underflows; exactly equal where that sum is zero."""
    assert np.isfinite(result).all()
    error = np.abs(result - expected)
    allowed = tolerance * terms + np.finfo(result.dtype).smallest_normal * (terms > 0)
    assert (error <= allowed).all(), f"off by {(error[error > 0] / terms[error > 0]).max()}; allowed {tolerance}"


# Inner products of features.


def gram(rows, expansion, first=0, last=None, scratch=None):
    last = rows.n_rows if last is None else last
    out = np.full((last - first, last - first), np.nan)
    if scratch is None:
        scratch = np.zeros(_core.gram_scratch_bytes(rows, last - first), dtype=np.uint8)
    _core.gram(rows, expansion.features, first, last, out, scratch)
    return out


def gram_rounding(X, kernel):
    """A product of two rows is off by about sqrt(d) roundings; its highest power by r times, s(x) by its exponent."""
    exponent = kernel.decay * kernel.scale**2 * (X.astype(np.float64) ** 2).sum(axis=1).max()
    return reference.rounding(X, kernel, X.shape[1]) * (1 + kernel.degree + exponent)


@pytest.mark.parametrize("dtype", REALS)
class TestGram:
    @pytest.mark.parametrize("degree", COLUMNS)
    @pytest.mark.parametrize("name", KERNELS)
    def test_gram_is_the_inner_product_of_features(self, instruction_set, dtype, degree, name):
        X, kernel, expansion, features = mixed_case(degree, name, dtype)
        for how in STORED:
            for order in orders(len(X)):
                result = gram(stored(X, how, order), expansion)
                Phi = features if order is None else features[order]
                assert np.array_equal(result, result.T)
                assert_sums_agree(result, Phi @ Phi.T, np.abs(Phi) @ np.abs(Phi).T, gram_rounding(X, kernel))

    @pytest.mark.parametrize("how", STORED)
    def test_rows_that_underflow_have_products_of_exactly_zero(self, instruction_set, dtype, how):
        huge = 1e37 if dtype == np.float32 else 1e307
        X = np.array([[huge, -huge, huge], [0, 60, 0], [0.5, 0, 1], [0, 0, 0], [0, huge, 0], [1e5, 1e5, 1e5]], dtype)
        there = np.ix_([2, 3], [2, 3])
        for gamma in (0.5, 50.0):
            kernel = reference.kernel_of("gaussian", 3, gamma)
            expected = np.zeros((6, 6))
            expected[there] = reference.kernel_matrix(X[2:4], X[2:4], kernel)
            result = gram(stored(X, how), Expansion(3, **kernel.parameters))
            assert np.allclose(result, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=0)

    @pytest.mark.parametrize("how", STORED)
    @pytest.mark.parametrize("size", [1e-25, 1e25])
    def test_gram_knows_rows_of_any_size_that_gamma_goes_with(self, instruction_set, dtype, how, size):
        X = (size * mixed_rows(9)).astype(dtype)
        kernel = reference.kernel_of("gaussian", 3, 0.3 / size**2)
        result = gram(stored(X, how), Expansion(9, **kernel.parameters))
        terms = reference.kernel_terms(X, X, kernel)
        assert_sums_agree(result, reference.kernel_matrix(X, X, kernel), terms, gram_rounding(X, kernel))

    @pytest.mark.parametrize("how", STORED)
    def test_scratch_serves_blocks_of_any_size_one_after_the_other(self, instruction_set, dtype, how):
        X, _, expansion, _ = mixed_case(2, "gaussian", dtype)
        for order in orders(len(X)):
            rows = stored(X, how, order)
            whole = gram(rows, expansion)
            scratch = np.zeros(_core.gram_scratch_bytes(rows, 5), dtype=np.uint8)
            for first, last in [(0, 5), (12, 15), (5, 10), (18, 19), (3, 8)]:
                part = slice(first, last)
                assert np.array_equal(gram(rows, expansion, first, last, scratch), whole[part, part])


# AdaGrad's steps.


def adapt(rows, expansion, t, values, squares, eta, cuts=()):
    """(values, squares) after the steps of all rows, in pieces that end at the cuts."""
    values, squares = values.copy(), squares.copy()
    scratch = np.full(_core.scratch_bytes(rows), 255, dtype=np.uint8)
    for first, last in pairwise([0, *cuts, rows.n_rows]):
        _core.adapt(rows, expansion.features, first, last, values, squares, eta, t[first:last], scratch)
    return values, squares


def adapt_start(expansion, n_rows, dtype):
    random = np.random.default_rng(3)
    values = random.normal(size=expansion.n_slots).astype(dtype)
    squares = random.uniform(0.01, 1, size=expansion.n_slots).astype(dtype)
    t = random.normal(size=n_rows).astype(dtype)
    t[4] = 0
    return values, squares, t


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestAdapt:
    @pytest.mark.parametrize("degree", COLUMNS)
    @pytest.mark.parametrize("name", KERNELS)
    def test_adapt_equals_the_formula_row_after_row(self, instruction_set, dtype, degree, name, how):
        X, kernel, expansion, features = mixed_case(degree, name, dtype)
        eta, together = 0.3, TOGETHER if how[1] else 1
        for order in orders(len(X)):
            Phi = features if order is None else features[order]
            values, squares, t = adapt_start(expansion, len(Phi), dtype)
            new, grown = adapt(stored(X, how, order), expansion, t, values, squares, eta)
            expected, expected_squares = reference.adapt(Phi, t.astype(np.float64), values, squares, eta, together)
            moves = np.abs(t) @ np.abs(Phi)  # how far w goes, but for eta and the step sizes
            tolerance = 2 * reference.rounding(X, kernel, len(Phi))
            assert_sums_agree(new, expected, np.abs(values) + eta * moves / np.sqrt(squares), tolerance)
            assert_sums_agree(grown, expected_squares, squares + moves**2, tolerance)
            assert (grown >= squares).all()
            assert np.array_equal(new[moves == 0], values[moves == 0])
            assert np.array_equal(grown[moves == 0], squares[moves == 0])

    def test_eta_0_changes_the_squares_only(self, instruction_set, dtype, how):
        X, _, expansion, _ = mixed_case(3, "gaussian", dtype)
        values, squares, t = adapt_start(expansion, len(X), dtype)
        _, grown = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        same, also_grown = adapt(stored(X, how), expansion, t, values, squares, 0.0)
        assert np.array_equal(same, values)
        assert np.array_equal(also_grown, grown)
        assert (grown > squares).any()

    def test_rows_that_underflow_change_nothing(self, instruction_set, dtype, how):
        X = np.full((9, 5), 1e37 if dtype == np.float32 else 1e307, dtype=dtype)
        X[1] = 100
        expansion = Expansion(5, degree=3, gamma=0.5)
        values, squares, t = adapt_start(expansion, len(X), dtype)
        new, grown = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        assert np.array_equal(new, values)
        assert np.array_equal(grown, squares)

    def test_results_do_not_depend_on_how_rows_are_cut_into_passes(self, instruction_set, dtype, how):
        X, _, expansion, _ = mixed_case(3, "gaussian", dtype)
        values, squares, t = adapt_start(expansion, len(X), dtype)
        whole = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        for cuts in [[8], [8, 8, 16]] if how[1] else [[1], [7, 7, 12], list(range(1, len(X)))]:
            assert np.array_equal(adapt(stored(X, how), expansion, t, values, squares, 0.5, cuts), whole)

    @pytest.mark.parametrize("d", [70, 150])
    def test_long_rows_equal_the_formula(self, instruction_set, dtype, how, d):
        X = mixed_rows(d, dtype) / 4
        kernel = reference.kernel_of("gaussian", 2, 0.3)
        expansion, Phi = Expansion(d, **kernel.parameters), basis(d, 2).features(X, kernel)
        values, squares, t = adapt_start(expansion, len(X), dtype)
        new, _ = adapt(stored(X, how), expansion, t, values, squares, 0.3)
        expected, _ = reference.adapt(Phi, t.astype(np.float64), values, squares, 0.3, TOGETHER if how[1] else 1)
        terms = np.abs(values) + 0.3 * np.abs(t) @ np.abs(Phi) / np.sqrt(squares)
        assert_sums_agree(new, expected, terms, 2 * reference.rounding(X, kernel, len(X)))


# Shifted rows.


def shift(X, storage, by, place, cuts=(), order=None):
    """(indptr, indices, data) of X - by with its columns renumbered; counted and filled in pieces."""
    rows = stored(X, (storage, False), order)
    pieces = list(pairwise([0, *cuts, rows.n_rows]))
    by, place = by.astype(X.dtype), np.asarray(place, dtype=np.int32)
    moved = np.flatnonzero(by).astype(np.int32)
    indptr = np.zeros(rows.n_rows + 1, dtype=np.int64)
    for first, last in pieces:
        _core.shift_rows(rows, first, last, by, moved, place, indptr, None, None)
    counted, n = indptr.copy(), indptr[-1]
    indices, data = np.full(n + 3, -7, dtype=np.int32), np.full(n + 3, np.nan, dtype=X.dtype)
    for first, last in reversed(pieces):
        _core.shift_rows(rows, first, last, by, moved, place, indptr, indices, data)
    assert np.array_equal(indptr, counted)
    assert (indices[n:] == -7).all() and np.isnan(data[n:]).all()
    return indptr, indices[:n], data[:n]


def assert_is_shifted(result, X, by, place):
    indptr, indices, data = result
    expected = reference.shifted(X, by, place)
    assert np.array_equal(np.diff(indptr), np.count_nonzero(expected, axis=1))
    for i, (begin, end) in enumerate(pairwise(indptr)):
        assert (np.diff(indices[begin:end]) > 0).all()
        assert np.array_equal(indices[begin:end], np.flatnonzero(expected[i]))
        assert np.array_equal(data[begin:end], expected[i, indices[begin:end]])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("storage", ["array", "csr"])
class TestShift:
    @pytest.mark.parametrize("moved", [0.0, 0.3, 1.0])
    def test_rows_are_shifted_and_their_columns_renumbered(self, instruction_set, dtype, storage, moved):
        random = np.random.default_rng(5)
        X = mixed_rows(21, dtype)
        by = random.normal(size=21).astype(dtype) * (random.uniform(size=21) < moved)
        X[4:9, 7] = by[7]  # these entries vanish
        X[6] = by
        for place in (np.arange(21), np.arange(21)[::-1], random.permutation(21)):
            for cuts in ([], [1, 1, 8], range(1, len(X))):
                assert_is_shifted(shift(X, storage, by, place, cuts), X, by, place)

    def test_rows_in_an_order_are_those_of_the_order(self, dtype, storage):
        X, by, place = mixed_rows(9, dtype), np.linspace(-1, 1, 9).astype(dtype), np.arange(9)[::-1]
        order = np.array([3, 18, 0, 7])
        assert_is_shifted(shift(X, storage, by, place, order=order), X[order], by, place)

    @pytest.mark.parametrize("d", [200, 257, 2500])
    @pytest.mark.parametrize("numbering", ["same", "reversed", "random", "interleaved"])
    def test_long_rows_come_out_sorted(self, dtype, storage, d, numbering):
        random = np.random.default_rng(d)
        place = {
            "same": np.arange(d),
            "reversed": np.arange(d)[::-1],
            "random": random.permutation(d),
            "interleaved": np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)]),
        }[numbering]
        X = random.normal(size=(3, d)).astype(dtype)
        X[1] *= random.uniform(size=d) < 0.5
        by = np.where(random.uniform(size=d) < 0.2, 0.5, 0.0)
        assert_is_shifted(shift(X, storage, by, place), X, by, place)

    def test_matrices_without_rows_or_columns_have_no_entries(self, dtype, storage):
        for shape in [(0, 5), (3, 0), (0, 0)]:
            X = np.zeros(shape, dtype=dtype)
            indptr, indices, _ = shift(X, storage, np.ones(shape[1]), np.arange(shape[1]))
            assert indptr.tolist() == [0] * (shape[0] + 1)
            assert len(indices) == 0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_shifts_that_the_type_of_the_rows_cannot_hold_are_none(make):
    X, by, place = mixed_rows(9, np.float32), np.where(np.arange(9) % 2, 1e-60, 0.5), np.arange(9, dtype=np.int32)[::-1]
    shifted = Shift(by, place.copy(), nonzeros=9.0)(check_rows(make(X)))
    assert_is_shifted((shifted.indptr, shifted.indices, shifted.data), X, by, place)


@given(st.data())
def test_any_rows_are_shifted(data):
    dtype, storage = data.draw(st.sampled_from(REALS)), data.draw(st.sampled_from(["array", "csr"]))
    n_rows, d = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 12))
    # Few values, so that many entries vanish; and differences that are less than the smallest normal number.
    tiny = np.finfo(dtype).smallest_normal
    values = st.sampled_from([0.0, -0.0, 1.0, 0.5, -2.0, 3e30, float(tiny), float(tiny * dtype(1.25))])
    X = data.draw(arrays.arrays(dtype, (n_rows, d), elements=values.map(lambda v: float(dtype(v)))))
    by = data.draw(arrays.arrays(dtype, d, elements=values.map(lambda v: float(dtype(v)))))
    place = np.array(data.draw(st.permutations(range(d))))
    assert_is_shifted(shift(X, storage, by, place), X, by, place)


# Training.


def new_training(X, how, maps, loss, y, omega=None, block=1):
    """A training from w = 0, its rows as they come; maps are (margin, update)."""
    rows = stored(X, how)
    w = np.zeros(maps[0].n_slots, dtype=X.dtype)
    scratch = np.zeros(_core.training_scratch_bytes(rows, block), dtype=np.uint8)
    training = _core.Training(rows, *maps, w, loss, y, omega, block, scratch)
    rows.set_order(np.arange(len(X), dtype=np.int32))
    return training


class Problem:
    """Rows with labels and weights, and a kernel; passes over them by the package and by the reference."""

    N_ROWS, C = 37, 1.7

    def __init__(self, dtype, degree=3, name="gaussian"):
        random = np.random.default_rng(degree)
        self.kernel = reference.all_kernels(degree)[name]
        self.X = mixed_rows(COLUMNS[degree], dtype, self.N_ROWS, seed=degree)
        self.expansion = Expansion(self.X.shape[1], **self.kernel.parameters)
        self.Phi = basis(self.X.shape[1], degree).features(self.X, self.kernel)
        self.K = self.Phi @ self.Phi.T
        self.y = random.choice(np.array([-1, 1], dtype=np.int8), size=self.N_ROWS)
        self.omega = random.uniform(0.3, 2.5, size=self.N_ROWS)
        self.orders = [random.permutation(self.N_ROWS) for _ in range(3)]

    def training(self, how, loss, block=1, table="weights", omega="random"):
        features, margin, update = (getattr(self.expansion, name) for name in ("features", "margin", "update"))
        maps = (features, features) if table == "weights" else (margin, update)
        return new_training(self.X, how, maps, loss, self.y, self.omega if isinstance(omega, str) else omega, block)

    def dual(self, how, loss, block=1, sweeps=1, table="weights", omega="random"):
        training = self.training(how, loss, block, table, omega)
        return _core.Dual(training, self.C, np.zeros(self.N_ROWS), np.full(self.N_ROWS, np.nan), sweeps)

    def table_of(self, w, table):
        """Weights of features; or those of bare monomials, which make the same margins."""
        return w if table == "weights" else w * basis(self.X.shape[1], self.kernel.degree).metric(self.kernel)

    def w_of(self, alpha):
        """w = C sum_i alpha_i y_i phi(x_i)."""
        return self.C * (alpha * self.y) @ self.Phi

    def dual_objective(self, loss, alpha):
        return reference.dual_objective(loss, self.K, self.y, self.omega, self.C, alpha)

    @lru_cache  # noqa: B019
    def dual_reference(self, loss, block, sweeps):
        """(alpha, margins) after each pass."""
        alpha, after = np.zeros(self.N_ROWS), []
        for order in self.orders:
            alpha, margins = reference.dual_pass(loss, self.K, self.y, self.omega, self.C, alpha, order, block, sweeps)
            after.append((alpha, margins))
        return after

    def batches(self, block):
        """Those of each pass, the last one shorter."""
        return [[order[i : i + block] for i in range(0, self.N_ROWS, block)] for order in self.orders]

    def share(self, block):
        """Of a row in a step of Pegasos."""
        return -(-self.N_ROWS // block) / self.N_ROWS

    @lru_cache  # noqa: B019
    def pegasos_reference(self, loss, lam, block, projected):
        """(radius, iterates of all passes); the radius is one that some of the iterates leave, or 0."""
        given = loss, self.Phi, self.y, self.omega, lam, list(chain(*self.batches(block))), self.share(block)
        iterates = reference.pegasos(*given)
        if not projected:
            return 0.0, iterates
        radius = max(np.linalg.norm(w) for w, _ in iterates) / 2
        return radius, reference.pegasos(*given, radius)


problem_of = lru_cache(Problem)


def run_pass(state, order, cuts=()):
    """One pass in this order, in pieces that end at the cuts."""
    state.training.rows.set_order(np.asarray(order, dtype=np.int32))
    for first, last in pairwise([0, *cuts, len(order)]):
        state.run(first, last)


def close(dtype, result, expected):
    """Equal but for rounding errors, which steps may make a little larger."""
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    return np.allclose(result, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def in_domain(loss, alpha, omega):
    return (alpha >= 0).all() and (loss == "squared_hinge" or (alpha <= omega).all())


# One step of dual coordinate ascent, on an empty row: its kernel is 1, and w a number.


@lru_cache
def one_row(loss):
    """(training, the row's weight)."""
    features, omega = Expansion(1, degree=1, gamma=1.0, kernel="exponential").features, np.ones(1)
    y = np.ones(1, dtype=np.int8)
    return new_training(np.zeros((1, 1)), ("csr", False), (features, features), loss, y, omega), omega


def dual_step(loss, alpha, omega, margin, q):
    """The alpha after one step on a row with this margin, where q = C K~(x, x)."""
    training, weight = one_row(loss)
    training.w[0], weight[0] = margin, omega
    state = _core.Dual(training, q, np.array([alpha]), np.zeros(1), 1)
    state.run(0, 1)
    return np.asarray(state.alpha)[0]


def gain(loss, alpha, omega, margin, q, a):
    """What the dual objective gains when alpha becomes a."""
    change = omega * (reference.dual_term(loss, a / omega) - reference.dual_term(loss, alpha / omega))
    return change - (a - alpha) * margin - q / 2 * (a - alpha) ** 2


@pytest.mark.parametrize("loss", LOSSES)
class TestDualStep:
    @given(
        share=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
        omega=st.floats(0.01, 100),
        margin=st.floats(-50, 50),
        q=st.floats(1e-3, 1e3),
    )
    def test_a_step_maximises_the_dual_objective(self, loss, share, omega, margin, q):
        alpha = share * omega
        stepped = dual_step(loss, alpha, omega, margin, q)
        assert in_domain(loss, stepped, omega)
        highest = omega if loss != "squared_hinge" else alpha + 2 * omega * (1 + abs(margin))
        best = minimize_scalar(lambda a: -gain(loss, alpha, omega, margin, q, a), bounds=(0, highest), method="bounded")
        rounding = 1e-13 * (1 + highest) * (1 + abs(margin) + q * highest)
        assert gain(loss, alpha, omega, margin, q, stepped) >= max(-best.fun, 0) - rounding

    @pytest.mark.parametrize("q", [1e-3, 1.0, 20.0, 1e3])
    def test_a_step_equals_the_reference_and_a_second_one_changes_nothing(self, loss, q):
        for omega in (1.0, 0.3):
            for alpha in omega * np.array([0, 1e-6, 0.5, 0.9999, 1]):
                for margin in np.linspace(-40, 40, 17):
                    stepped = dual_step(loss, alpha, omega, margin, q)
                    again = dual_step(loss, stepped, omega, margin + q * (stepped - alpha), q)
                    best = reference.best_alpha(loss, alpha, omega, margin, q)
                    assert np.allclose([stepped, again], best, rtol=1e-9, atol=1e-11), f"{alpha=} {omega=} {margin=}"

    @pytest.mark.parametrize("q", [1e-300, 1e-3, 1.0, 1e3, 1e10, 1e20, 1e30, 1e300])
    def test_extreme_steps_stay_in_the_domain_and_never_lower_the_objective(self, loss, q):
        for omega in (1.0, 7.0):
            for alpha in omega * np.array([0, 1e-300, 0.5, 1 - 1e-16, 1]):
                for margin in (0.0, 1.0, -1.0, -40.0, 40.0, -800.0, 800.0, -1e100, 1e100):
                    stepped = dual_step(loss, alpha, omega, margin, q)
                    case = f"alpha {alpha}, omega {omega}, margin {margin}: {stepped}"
                    assert np.isfinite(stepped), case
                    assert in_domain(loss, stepped, omega), case
                    moved = abs(stepped - alpha)
                    rounding = 1e-15 * (omega + moved) * (1 + abs(margin) + q * moved)
                    assert gain(loss, alpha, omega, margin, q, stepped) >= -rounding, case


# Passes of dual coordinate ascent.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("loss", LOSSES)
class TestDualPass:
    @pytest.mark.parametrize(("degree", "name"), [(2, "gaussian"), *((3, name) for name in KERNELS)])
    def test_passes_equal_coordinate_ascent_on_the_kernel_matrix(self, instruction_set, dtype, how, loss, degree, name):
        problem = problem_of(dtype, degree, name)
        for block, sweeps, table in [(1, 1, "weights"), (1, 1, "of bare monomials"), (7, 3, "of bare monomials")]:
            state = problem.dual(how, loss, block, sweeps, table)
            expected = problem.dual_reference(loss, block, sweeps)
            for order, (alpha, margins) in zip(problem.orders, expected, strict=True):
                run_pass(state, order)
                w = problem.w_of(np.asarray(state.alpha))
                assert close(dtype, state.alpha, alpha)
                assert close(dtype, state.margin, margins)
                assert close(dtype, state.training.w, problem.table_of(w, table))
                assert close(dtype, state.norm2, w @ w)
                assert in_domain(loss, np.asarray(state.alpha), problem.omega)

    def test_the_dual_objective_never_falls(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        state = problem.dual(how, loss, 5, 4, "of bare monomials")
        objective = problem.dual_objective(loss, np.zeros(problem.N_ROWS))
        rounding = 1e-12 if dtype == np.float64 else 1e-5
        for order in problem.orders * 2:
            for first in range(0, len(order), 5):
                changed, before = state.changed, np.array(state.alpha)
                run_pass(state, order[first : first + 5])
                assert in_domain(loss, np.asarray(state.alpha), problem.omega)
                assert state.changed - changed == np.count_nonzero(np.asarray(state.alpha) != before)
                previous, objective = objective, problem.dual_objective(loss, np.asarray(state.alpha))
                assert objective >= previous - rounding * abs(previous)

    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        results = []
        for cuts in ([], [4], [8, 8, 20, 36], range(4, problem.N_ROWS, 4)):
            state = problem.dual(how, loss, 4, 2)
            for order in problem.orders:
                run_pass(state, order, cuts)
            results.append([state.training.w, state.alpha, state.margin, state.norm2, state.changed])
        for result in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(result, results[0], strict=True))

    def test_rows_that_are_not_in_the_order_stay_as_they_are(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        state = problem.dual(how, loss, 6, 2)
        run_pass(state, problem.orders[0])
        before, visited = np.array(state.alpha), problem.orders[1][:10]
        others = np.setdiff1d(np.arange(problem.N_ROWS), visited)
        np.asarray(state.margin)[:] = np.nan
        run_pass(state, visited)
        assert np.array_equal(np.asarray(state.alpha)[others], before[others])
        assert np.isnan(np.asarray(state.margin)[others]).all()
        assert np.isfinite(np.asarray(state.margin)[visited]).all()
        assert close(dtype, state.training.w, problem.w_of(np.asarray(state.alpha)))

    def test_without_weights_all_of_them_are_1(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        ones, none = (problem.dual(how, loss, 4, omega=omega) for omega in (np.ones(problem.N_ROWS), None))
        for state in (ones, none):
            run_pass(state, problem.orders[0])
        assert np.array_equal(ones.alpha, none.alpha)
        assert in_domain(loss, np.asarray(none.alpha), 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_many_passes_reach_the_optimum(loss):
    problem = problem_of(np.float64, 3, "gaussian")
    state = problem.dual(("csr", False), loss, 8, 3)
    for k in range(400):
        run_pass(state, np.random.default_rng(k).permutation(problem.N_ROWS))
    alpha = np.asarray(state.alpha)
    p, v = alpha / problem.omega, problem.y * (problem.Phi @ problem.w_of(alpha))
    value = {"hinge": np.maximum(0, 1 - v), "squared_hinge": np.maximum(0, 1 - v) ** 2, "log_loss": np.logaddexp(0, -v)}
    gap = problem.omega @ (value[loss] + p * v - reference.dual_term(loss, p))
    assert 0 <= gap + 1e-10 <= 1e-7


# Passes of Pegasos.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("loss", LOSSES)
class TestPegasosPass:
    BLOCK = 5  # of 37 rows: the last one is short
    LAMBDA = 2.0  # so that even the first steps do not make rounding errors much larger

    def start(self, problem, how, loss, radius, block=BLOCK, table="weights"):
        training = problem.training(how, loss, block, table)
        return _core.Pegasos(training, self.LAMBDA, problem.share(block), radius, np.zeros(problem.N_ROWS))

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize("table", ["weights", "of bare monomials"])
    @pytest.mark.parametrize(("degree", "name"), [(2, "gaussian"), (3, "odd sequence")])
    def test_passes_equal_the_textbook(self, instruction_set, dtype, how, loss, projected, table, degree, name):
        problem = problem_of(dtype, degree, name)
        radius, iterates = problem.pegasos_reference(loss, self.LAMBDA, self.BLOCK, projected)
        state = self.start(problem, how, loss, radius, table=table)
        n_blocks = len(iterates) // len(problem.orders)
        for k, order in enumerate(problem.orders):
            if k < 2:  # the first average is over one pass, the second over two
                average, begun = np.zeros_like(state.training.w), k * n_blocks
                state.begin_average(average)
            run_pass(state, order, cuts=[10, 15])
            done = (k + 1) * n_blocks
            w, alpha = iterates[done - 1]
            result = state.scale * np.asarray(state.training.w, dtype=np.float64)
            assert close(dtype, result, problem.table_of(w, table))
            assert close(dtype, state.scale * np.asarray(state.alpha), alpha)
            a, b = state.averaging
            mean = np.mean([w for w, _ in iterates[begun:done]], axis=0)
            averaged = a * average.astype(np.float64) + b * np.asarray(state.training.w, dtype=np.float64)
            assert close(dtype, averaged, problem.table_of(mean, table))

    @pytest.mark.parametrize("radius", [0.0, 1.0])
    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how, loss, radius):
        problem = problem_of(dtype, 3, "gaussian")
        results = []
        for cuts in ([], [5], [10, 10, 35], range(5, problem.N_ROWS, 5)):
            state = self.start(problem, how, loss, radius)
            state.begin_average(np.zeros_like(state.training.w))
            for order in problem.orders:
                run_pass(state, order, cuts)
            results.append([state.training.w, state.alpha, state.average, state.scale, *state.averaging])
        for result in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(result, results[0], strict=True))

    @pytest.mark.parametrize("projected", [False, True])
    def test_a_state_goes_on_from_an_iterate(self, instruction_set, dtype, how, loss, projected):
        problem = problem_of(dtype, 3, "gaussian")
        radius, iterates = problem.pegasos_reference(loss, self.LAMBDA, self.BLOCK, projected)
        done = len(iterates) // len(problem.orders)
        w, alpha = iterates[done - 1]
        training = problem.training(how, loss, self.BLOCK)
        training.w[:] = w
        share = problem.share(self.BLOCK)
        state = _core.Pegasos(training, self.LAMBDA, share, radius, alpha.copy(), t=done, norm2=w @ w)
        run_pass(state, problem.orders[1])
        w, alpha = iterates[2 * done - 1]
        assert close(dtype, state.scale * np.asarray(training.w, dtype=np.float64), w)
        assert close(dtype, state.scale * np.asarray(state.alpha), alpha)

    def test_averaging_does_not_change_the_iterates(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        plain, averaged = (self.start(problem, how, loss, 1.0, block) for block in (7, 7))
        averaged.begin_average(np.zeros_like(averaged.training.w))
        for state in (plain, averaged):
            run_pass(state, problem.orders[0])
        assert np.array_equal(plain.training.w, averaged.training.w)
        assert plain.scale == averaged.scale

    def test_the_last_iterate_of_whole_epochs_has_a_feasible_alpha(self, instruction_set, dtype, how, loss):
        problem = problem_of(dtype, 3, "gaussian")
        state = self.start(problem, how, loss, 0.0, block=1)
        for order in problem.orders:
            run_pass(state, order)
        # In the letters of the dual, C alpha of which lambda n C = 1.
        alpha = state.scale * np.asarray(state.alpha) * self.LAMBDA * problem.N_ROWS
        limit = problem.omega * (1 + 1e-12) if loss != "squared_hinge" else np.inf
        assert (alpha >= 0).all() and (alpha <= limit).all()


# Passes of AdaGrad.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestAdagradPass:
    ETA = 0.3

    def start(self, problem, how, loss, block, floor):
        training = problem.training(how, loss, block)
        return _core.Adagrad(training, np.full_like(training.w, floor), self.ETA)

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("block", [1, 20])
    @pytest.mark.parametrize(("degree", "name"), [(2, "gaussian"), (3, "homogeneous")])
    def test_passes_equal_the_formula(self, instruction_set, dtype, how, loss, block, degree, name):
        problem = problem_of(dtype, degree, name)
        floor = 1e-2 if dtype == np.float32 else 1e-8
        state = self.start(problem, how, loss, block, floor)
        w, squares = np.zeros(problem.Phi.shape[1]), np.full(problem.Phi.shape[1], floor)
        together = TOGETHER if how[1] else 1
        for order, batches in zip(problem.orders, problem.batches(block), strict=True):
            run_pass(state, order)
            w, squares = reference.adagrad(
                loss, problem.Phi, problem.y, problem.omega, w, squares, self.ETA, batches, together
            )
            assert close(dtype, state.training.w, w)
            assert close(dtype, state.squares, squares)

    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how):
        problem = problem_of(dtype, 3, "gaussian")
        results = []
        for cuts in ([], [8], [16, 16, 32]):
            state = self.start(problem, how, "log_loss", 8, 1e-4)
            for order in problem.orders:
                run_pass(state, order, cuts)
            results.append((np.array(state.training.w), np.array(state.squares)))
        assert all(np.array_equal(result, results[0]) for result in results[1:])

    def test_shrink_divides_each_slot_by_its_own_number(self, instruction_set, dtype, how):
        problem = problem_of(dtype, 3, "gaussian")
        state = self.start(problem, how, "hinge", 1, 1e-4)
        run_pass(state, problem.orders[0])
        w, squares = state.training.w.copy(), state.squares.copy()
        state.shrink(0.7, 3, 50)
        expected = w.astype(np.float64)
        expected[3:50] /= 1 + 0.7 / np.sqrt(squares[3:50].astype(np.float64))
        assert np.allclose(state.training.w, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
        assert np.array_equal(state.training.w[:3], w[:3]) and np.array_equal(state.training.w[50:], w[50:])
        assert np.array_equal(state.squares, squares)
        before = state.training.w.copy()
        state.shrink(0.0, 0, len(w))
        state.shrink(0.7, 9, 9)
        assert np.array_equal(state.training.w, before)


# What the boundary to C refuses.


class TestBoundary:
    """Four rows of three columns, of degree 2: ten slots."""

    X, expansion = np.ones((4, 3)), Expansion(3, degree=2, gamma=1.0)
    other = Expansion(4, degree=2, gamma=1.0)

    def rows(self):
        return stored(self.X, ("csr", False))

    def training(self, rows=None, block=2, **changed):
        rows = self.rows() if rows is None else rows
        arguments = {
            "margin": self.expansion.features,
            "update": self.expansion.features,
            "w": np.zeros(10),
            "loss": "hinge",
            "y": np.ones(4, dtype=np.int8),
            "weight": None,
            "block": block,
            "scratch": np.zeros(_core.training_scratch_bytes(rows, block), dtype=np.uint8),
        }
        return _core.Training(rows, *(arguments | changed).values())

    def in_order(self):
        training = self.training()
        training.rows.set_order(np.arange(4, dtype=np.int32))
        return training

    def test_gram(self):
        rows, features, out, scratch = self.rows(), self.expansion.features, np.zeros((4, 4)), np.zeros(1000, np.uint8)
        needed = _core.gram_scratch_bytes(rows, 4)
        _core.gram(rows, features, 0, 4, out, scratch[:needed])
        for first, last, shape in [(0, 4, (4, 3)), (0, 4, (5, 4)), (0, 5, (5, 5)), (-1, 3, (4, 4)), (2, 2, (0, 0))]:
            with pytest.raises(ValueError, match="shape"):
                _core.gram(rows, features, first, last, np.zeros(shape), scratch)
        with pytest.raises(ValueError, match="scratch"):
            _core.gram(rows, features, 0, 4, out, scratch[: needed - 1])
        with pytest.raises(ValueError, match="belong together"):
            _core.gram(rows, self.other.features, 0, 4, out, scratch)
        with pytest.raises(ValueError, match="dtype"):
            _core.gram(rows, features, 0, 4, out.astype(np.float32), scratch)

    def test_adapt(self):
        rows, features, scratch = (
            self.rows(),
            self.expansion.features,
            np.zeros(_core.scratch_bytes(self.rows()), np.uint8),
        )
        table, t = np.ones(10), np.ones(4)
        _core.adapt(rows, features, 0, 4, table, table.copy(), 1.0, t, scratch)
        for first, last in [(0, 5), (-1, 3), (3, 2)]:
            with pytest.raises(ValueError, match="not there"):
                _core.adapt(rows, features, first, last, table, table, 1.0, np.ones(9), scratch)
        with pytest.raises(ValueError, match="not there"):
            _core.adapt(rows, features, 0, 4, table, table, 1.0, t[:3], scratch)
        for values, squares in [(table, table[:9]), (table[:9], table), (np.ones(11), table)]:
            with pytest.raises(ValueError, match="shape"):
                _core.adapt(rows, features, 0, 4, values, squares, 1.0, t, scratch)
        with pytest.raises(ValueError, match="scratch"):
            _core.adapt(rows, features, 0, 4, table, table, 1.0, t, scratch[:-1])
        with pytest.raises(ValueError, match="belong together"):
            _core.adapt(rows, self.other.features, 0, 4, np.ones(15), np.ones(15), 1.0, t, scratch)
        with pytest.raises(ValueError, match="dtype"):
            _core.adapt(rows, features, 0, 4, table, table.astype(np.float32), 1.0, t, scratch)
        single = table.astype(np.float32)
        with pytest.raises(ValueError, match="belong together"):
            _core.adapt(rows, features, 0, 4, single, single, 1.0, t.astype(np.float32), scratch)
        table.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            _core.adapt(rows, features, 0, 4, table, np.ones(10), 1.0, t, scratch)

    def test_shift_rows(self):
        good = {
            "by": np.zeros(3),
            "moved": np.zeros(0, dtype=np.int32),
            "place": np.arange(3, dtype=np.int32),
            "indptr": np.array([0, 3, 6, 9, 12]),
            "indices": np.zeros(12, dtype=np.int32),
            "data": np.zeros(12),
        }

        def refused(message, first=0, last=4, **changed):
            with pytest.raises(ValueError, match=message):
                _core.shift_rows(self.rows(), first, last, *(good | changed).values())

        _core.shift_rows(self.rows(), 0, 4, *good.values())
        refused("belong together", by=np.zeros(2))
        refused("belong together", place=np.arange(4, dtype=np.int32))
        refused("belong together", by=np.zeros(3, dtype=np.float32), data=np.zeros(12, dtype=np.float32))
        refused("dtype", data=np.zeros(12, dtype=np.float32))
        refused("dtype", indices=np.zeros(12, dtype=np.int64))
        refused("dtype", moved=np.zeros(0, dtype=np.int64))
        refused("not there", last=5)
        refused("not there", first=-1)
        refused("not there", indptr=np.zeros(4, dtype=np.int64))
        refused("room", indices=np.zeros(11, dtype=np.int32))
        refused("room", data=np.zeros(11))
        refused("room", data=None)

    def test_training(self):
        def refused(message, **changed):
            with pytest.raises(ValueError, match=message):
                self.training(**changed)

        refused("belong together", w=np.zeros(9))
        refused("belong together", w=np.zeros((10, 1)))
        refused("belong together", w=np.zeros(10, dtype=np.float32))
        refused("belong together", margin=self.other.features)
        refused("belong together", update=self.other.features)
        refused("wrong shape", y=np.ones(3, dtype=np.int8))
        refused("wrong shape", weight=np.ones(5))
        refused("dtype", y=np.ones(4))
        refused("dtype", weight=np.ones(4, dtype=np.float32))
        refused("scratch", scratch=np.zeros(_core.training_scratch_bytes(self.rows(), 2) - 1, dtype=np.uint8))
        refused("scratch|block", block=0)
        refused("scratch|block", block=-1)
        with pytest.raises((ValueError, TypeError)):
            self.training(w=np.zeros(20)[::2])
        with pytest.raises((ValueError, KeyError)):
            self.training(loss="hinges")
        rows = self.rows()
        rows.set_order(np.arange(4, dtype=np.int32))
        refused("order already", rows=rows)

    @pytest.mark.parametrize("dtype", [np.int64, np.complex64, "S8"])
    def test_tables_of_another_kind_of_number(self, dtype):
        with pytest.raises((ValueError, TypeError)):
            self.training(w=np.zeros(10, dtype=dtype))

    def test_tables_that_may_not_be_written(self):
        table = np.ones(10)
        table.flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            self.training(w=table)
        with pytest.raises((ValueError, TypeError)):
            _core.Adagrad(self.training(), table, 1.0)
        with pytest.raises((ValueError, TypeError)):
            _core.Pegasos(self.training(), 1.0, 1.0, 0.0, np.zeros(4)).begin_average(table)

    def test_states_of_the_solvers(self):
        numbers, table = np.zeros(4), np.ones(10)
        for alpha, margin in [(numbers[:3], numbers), (numbers, np.zeros(5))]:
            with pytest.raises(ValueError, match="shape"):
                _core.Dual(self.training(), 1.0, alpha, margin, 1)
        with pytest.raises(ValueError, match="dtype"):
            _core.Dual(self.training(), 1.0, numbers.astype(np.float32), numbers, 1)
        with pytest.raises(ValueError, match="shape"):
            _core.Pegasos(self.training(), 1.0, 1.0, 0.0, numbers[:3])
        pegasos = _core.Pegasos(self.training(), 1.0, 1.0, 0.0, numbers)
        for wrong in (table[:9], table.astype(np.float32), table[:, None]):
            with pytest.raises(ValueError, match="shape"):
                pegasos.begin_average(wrong)
            with pytest.raises(ValueError, match="shape"):
                _core.Adagrad(self.training(), wrong, 1.0)
        for first, last in [(0, 11), (-1, 3), (4, 3)]:
            with pytest.raises(ValueError, match="not there"):
                _core.Adagrad(self.training(), table, 1.0).shrink(0.1, first, last)

    @pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
    def test_passes_over_rows_that_are_not_there(self, solver):
        def start(training):
            if solver == "dual":
                return _core.Dual(training, 1.0, np.zeros(4), np.zeros(4), 1)
            if solver == "pegasos":
                return _core.Pegasos(training, 1.0, 1.0, 0.0, np.zeros(4))
            return _core.Adagrad(training, np.ones(10), 1.0)

        with pytest.raises(ValueError, match="not there"):
            start(self.training()).run(0, 4)  # no order
        state = start(self.in_order())
        for first, last in [(0, 5), (-1, 4), (3, 2)]:
            with pytest.raises(ValueError, match="not there"):
                state.run(first, last)
        state.training.rows.set_order(np.array([2, 0], dtype=np.int32))
        with pytest.raises(ValueError, match="not there"):
            state.run(0, 3)
        state.run(0, 2)
        state.run(1, 1)
        with pytest.raises(ValueError, match="dtype"):
            state.training.rows.set_order(np.arange(4))

    def test_misuse_that_would_lead_out_of_memory(self):
        """In a process of its own, which may crash."""
        done = subprocess.run([sys.executable, "-P", "-c", MISUSE], capture_output=True, text=True, check=False)
        expected = ["no training", "a row that is not there", "a walk that takes more scratch"]
        assert (done.stdout.splitlines(), done.returncode) == (expected, 0), done.stderr


MISUSE = """
import numpy as np
from taylorkern import _core
from taylorkern._expansion import Expansion

features = Expansion(3, degree=2, gamma=1.0).features
rows = _core.Rows(np.ones(12), np.tile(np.arange(3, dtype=np.int32), 4), np.arange(0, 15, 3), 3, 3)
scratch, y = np.zeros(_core.training_scratch_bytes(rows, 2), dtype=np.uint8), np.ones(4, dtype=np.int8)
training = _core.Training(rows, features, features, np.zeros(10), "hinge", y, None, 2, scratch)

def refused(what, training, order, walk_dense):
    try:
        rows.set_order(np.array(order, dtype=np.int32))
        rows.walk_dense = walk_dense
        _core.Dual(training, 1.0, np.zeros(4), np.zeros(4), 1).run(0, 4)
    except (ValueError, TypeError):
        print(what, flush=True)

refused("nothing: this is all right", training, [3, 1, 0, 2], False)
refused("no training", None, [3, 1, 0, 2], False)
refused("a row that is not there", training, [3, 1, 10**8, 2], False)
refused("a walk that takes more scratch", training, [3, 1, 0, 2], True)
"""
