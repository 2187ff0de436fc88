"""The steps of the solvers, and what they are made of, equal the reference: gram, adapt, shift, and the passes."""

import subprocess
import sys
from functools import cache, lru_cache
from itertools import chain, pairwise, product
from threading import Thread
from time import sleep

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from scipy.optimize import minimize_scalar

from taylorkern import _core
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows
from taylorkern._place.shift import Shift
from taylorkern._train.problem import padded

REALS = [np.float32, np.float64]
KERNELS = list(reference.all_kernels(1))
CUBIC = [(3, name) for name in KERNELS]
COLUMNS = {1: 37, 2: 21, 3: 9, 5: 5}  # by degree
# How rows lie in memory, and whether all columns are visited or the nonzeros only.
STORED = [("array", False), ("array", True), ("csr", False), ("csr", True)]
TOGETHER = 8  # rows of a dense walk whose gradients AdaGrad sums up
# Tables side by side: less than a vector of them, whole vectors, both; and more than are taken at once.
MANY = [1, 2, 3, 4, 5, 8, 26, 40, 70, 300, 600]


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
    def test_unit_rows_of_any_size_have_products(self, instruction_set, dtype, how):
        huge = 1e37 if dtype == np.float32 else 1e300
        X = np.array([[huge, -huge, huge], [0, 60, 0], [0.5, 0, 1], [0, 0, 0], [0, huge, 0], [1e5, 1e5, 1e5]], dtype)
        for gamma in (0.5, 50.0):
            kernel = reference.kernel_of("gaussian", 3, gamma, unit=True)
            nearer = np.clip(X, -1e12, 1e12).astype(np.float64)  # in the same direction, which is all that counts there
            expected = reference.kernel_matrix(nearer, nearer, kernel)
            result = gram(stored(X, how), Expansion(3, **kernel.parameters))
            assert np.allclose(result, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-11)

    @pytest.mark.parametrize("unit", [False, True])
    @pytest.mark.parametrize("how", STORED)
    @pytest.mark.parametrize("size", [1e-25, 1e25])
    def test_gram_knows_rows_of_any_size_that_gamma_goes_with(self, instruction_set, dtype, how, size, unit):
        X = (size * mixed_rows(9)).astype(dtype)
        kernel = reference.kernel_of("gaussian", 3, 0.3 / size**2, unit=unit)
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


def adapt_start(expansion, n_rows, dtype, width=1):
    random = np.random.default_rng(3)
    values = random.normal(size=(expansion.n_slots, width)).astype(dtype)
    squares = random.uniform(0.01, 1, size=(expansion.n_slots, width)).astype(dtype)
    t = random.normal(size=(n_rows, width)).astype(dtype)
    t[4] = 0
    return values, squares, t


def assert_adapts(X, kernel, expansion, Phi, how, start, order=None, eta=0.3):
    """One call for all rows equals the formula, and changes nothing where there is no gradient."""
    values, squares, t = start
    new, grown = adapt(stored(X, how, order), expansion, t, values, squares, eta)
    together = TOGETHER if how[1] else 1
    expected, expected_squares = reference.adapt(Phi, t.astype(np.float64), values, squares, eta, together)
    moves = np.abs(Phi).T @ np.abs(t)  # how far w goes, but for eta and the step sizes
    tolerance = 2 * reference.rounding(X, kernel, len(Phi))
    assert_sums_agree(new, expected, np.abs(values) + eta * moves / np.sqrt(squares), tolerance)
    assert_sums_agree(grown, expected_squares, squares + moves**2, tolerance)
    assert (grown >= squares).all()
    assert np.array_equal(new[moves == 0], values[moves == 0])
    assert np.array_equal(grown[moves == 0], squares[moves == 0])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestAdapt:
    @pytest.mark.parametrize("degree", COLUMNS)
    @pytest.mark.parametrize("name", KERNELS)
    def test_adapt_equals_the_formula_row_after_row(self, instruction_set, dtype, degree, name, how):
        X, kernel, expansion, features = mixed_case(degree, name, dtype)
        for order in orders(len(X)):
            Phi = features if order is None else features[order]
            for width in (1, 3):
                start = adapt_start(expansion, len(Phi), dtype, width)
                assert_adapts(X, kernel, expansion, Phi, how, start, order)

    def test_several_tables_equal_the_formula(self, instruction_set, dtype, how):
        X, kernel = mixed_rows(5, dtype), reference.kernel_of("gaussian", 3, 0.3)
        expansion, Phi = Expansion(5, **kernel.parameters), basis(5, 3).features(X, kernel)
        for width in MANY:
            for n_rows, share in [(len(X), 1.0), (13, 0.4), (8, 0.02), (3, 0.4)]:
                values, squares, t = adapt_start(expansion, len(X), dtype, width)
                t *= np.random.default_rng(width).uniform(size=t.shape) < share
                start = values, squares, np.ascontiguousarray(t[:n_rows])
                assert_adapts(X[:n_rows], kernel, expansion, Phi[:n_rows], how, start)

    @pytest.mark.parametrize("width", [1, 5])
    def test_eta_0_changes_the_squares_only(self, instruction_set, dtype, how, width):
        X, _, expansion, _ = mixed_case(3, "gaussian", dtype)
        values, squares, t = adapt_start(expansion, len(X), dtype, width)
        _, grown = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        same, also_grown = adapt(stored(X, how), expansion, t, values, squares, 0.0)
        assert np.array_equal(same, values)
        assert np.array_equal(also_grown, grown)
        assert (grown > squares).any()

    @pytest.mark.parametrize("width", [1, 5])
    def test_rows_that_underflow_change_nothing(self, instruction_set, dtype, how, width):
        X = np.full((9, 5), 1e37 if dtype == np.float32 else 1e307, dtype=dtype)
        X[1] = 100
        expansion = Expansion(5, degree=3, gamma=0.5)
        values, squares, t = adapt_start(expansion, len(X), dtype, width)
        new, grown = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        assert np.array_equal(new, values)
        assert np.array_equal(grown, squares)

    @pytest.mark.parametrize("width", [1, 5])
    def test_unit_rows_that_are_far_equal_the_formula(self, instruction_set, dtype, how, width):
        huge = 1e37 if dtype == np.float32 else 1e150
        X = (huge * np.sign(mixed_rows(5, dtype))).astype(dtype)
        X[1] = 100
        kernel = reference.kernel_of("gaussian", 3, 0.5, unit=True)
        expansion = Expansion(5, **kernel.parameters)
        # In the same direction, which is all that counts there: lower degrees are lost beside the highest one.
        Phi = basis(5, 3).features(np.clip(X.astype(np.float64), -1e50, 1e50), kernel)
        assert_adapts(X, kernel, expansion, Phi, how, adapt_start(expansion, len(X), dtype, width))

    @pytest.mark.parametrize("width", [1, 5])
    def test_results_do_not_depend_on_how_rows_are_cut_into_passes(self, instruction_set, dtype, how, width):
        X, _, expansion, _ = mixed_case(3, "gaussian", dtype)
        values, squares, t = adapt_start(expansion, len(X), dtype, width)
        whole = adapt(stored(X, how), expansion, t, values, squares, 0.5)
        for cuts in [[8], [8, 8, 16]] if how[1] else [[1], [7, 7, 12], list(range(1, len(X)))]:
            assert np.array_equal(adapt(stored(X, how), expansion, t, values, squares, 0.5, cuts), whole)

    @pytest.mark.parametrize("unit", [False, True])
    @pytest.mark.parametrize(("d", "width"), [(70, 1), (150, 1), (300, 3)])
    def test_long_rows_equal_the_formula(self, instruction_set, dtype, how, d, width, unit):
        X = mixed_rows(d, dtype) / 4
        kernel = reference.kernel_of("gaussian", 2, 0.3, unit=unit)
        expansion, Phi = Expansion(d, **kernel.parameters), basis(d, 2).features(X, kernel)
        assert_adapts(X, kernel, expansion, Phi, how, adapt_start(expansion, len(X), dtype, width))


# Shifted rows.


def shift(X, storage, by, place, cuts=(), order=None):
    """(indptr, indices, data) of X - by with its columns renumbered; counted and filled in pieces."""
    rows = stored(X, (storage, False), order)
    pieces = list(pairwise([0, *cuts, rows.n_rows]))
    by, place = by.astype(X.dtype)[None], np.asarray(place, dtype=np.int32)[None]
    moved = np.flatnonzero(by).astype(np.int32)
    parts = by, place, moved, np.array([0, len(moved)]), None
    indptr = np.zeros(rows.n_rows + 1, dtype=np.int64)
    for first, last in pieces:
        _core.shift_rows(rows, first, last, *parts, indptr, None, None, None)
    np.cumsum(indptr, out=indptr)
    counted, n = indptr.copy(), indptr[-1]
    indices, data = np.full(n + 3, -7, dtype=np.int32), np.full(n + 3, np.nan, dtype=X.dtype)
    for first, last in reversed(pieces):
        _core.shift_rows(rows, first, last, *parts, indptr, indices, data, None)
    assert np.array_equal(indptr, counted)
    assert (indices[n:] == -7).all() and np.isnan(data[n:]).all()
    if order is None:  # the same without having counted
        room = rows.data.size + (rows.n_rows * len(moved) if storage == "csr" else 0)
        indptr, more, values = np.zeros_like(counted), np.empty(room, dtype=np.int32), np.empty(room, dtype=X.dtype)
        for first, last in pieces:
            _core.shift_rows(rows, first, last, *parts, indptr, more, values, None, True)
        assert np.array_equal(indptr, counted)
        assert np.array_equal(more[:n], indices[:n]) and np.array_equal(values[:n], data[:n])
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

    @pytest.mark.parametrize("d", [63, 64, 65, 127, 128, 129, 257, 2500, 70_000])
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


# What is asked of rows: labels, numbers or classes, with weights.

EPSILON = 0.3


def ask(loss, n_rows, n_outputs, seed=0, weighted=True, favoured=True):
    """(for the reference, for the package): random targets."""
    random = np.random.default_rng(seed)
    weight = random.uniform(0.3, 2.5, size=n_rows) if weighted else None
    favour = random.uniform(0.5, 2, size=n_outputs) if favoured and loss not in reference.NUMBER_LOSSES else None
    y = reference.targets(loss, random.normal(size=(n_rows, n_outputs)))
    omega = reference.weights(loss, y, weight, favour)
    labels, numbers = (None, y) if loss in reference.NUMBER_LOSSES else (y, None)
    return reference.Asked(loss, y, omega, EPSILON), _core.Targets(loss, labels, numbers, weight, favour, EPSILON)


def feasible_alpha(asked, seed=0):
    """Random dual points, many of which lie at bounds."""
    random = np.random.default_rng(seed)
    if asked.joint:
        n_rows, n_outputs = asked.y.shape
        q = random.dirichlet(np.full(n_outputs, 0.3), size=n_rows)
        at_bounds = random.uniform(size=n_rows) < 0.5
        q[at_bounds] = np.eye(n_outputs)[random.integers(n_outputs, size=at_bounds.sum())]
        return asked.omega * ((asked.y > 0) - q)
    low, high = np.clip(reference.domain(asked.loss), -3, 3)
    p = np.clip(random.uniform(2 * low - 0.5, 2 * high + 0.5, size=asked.y.shape), low, high)
    p[random.uniform(size=p.shape) < 0.3] = 0
    return asked.omega * p


def add_terms(targets, margin, alpha=None, which=None, live=None, near=None, cuts=()):
    """(sums, active or None), added up in pieces that end at the cuts."""
    sums = np.zeros((4, 1 if targets.joint else targets.n_outputs))
    active = None if near is None else np.full(targets.n_rows, 7, dtype=np.uint8)
    which = None if which is None else np.asarray(which, dtype=np.int32)
    live = None if live is None else np.asarray(live, dtype=np.uint8)
    n = targets.n_rows if which is None else len(which)
    for first, last in pairwise([0, *cuts, n]):
        targets.add_terms(margin, alpha, which, first, last, live, sums, active, near)
    return sums, active


# (loss, outputs)
ONE_OUTPUT = [(loss, 1) for loss in reference.SINGLE_LOSSES]
SEVERAL = [
    ("hinge", 3),
    ("squared_hinge", 5),
    ("log_loss", 2),
    ("epsilon_insensitive", 4),
    ("squared_epsilon_insensitive", 3),
    ("crammer_singer", 2),
    ("crammer_singer", 5),
    ("multinomial", 2),
    ("multinomial", 9),
]


ENTROPIES = ("log_loss", "multinomial")  # alphas that never reach a bound
N_ROWS = 60


def some_outputs(n_outputs):
    """Random ones, near and far."""
    random = np.random.default_rng(n_outputs)
    return random.normal(size=(N_ROWS, n_outputs)) * random.choice([0.3, 2, 30], size=(N_ROWS, 1))


@pytest.mark.parametrize(("loss", "n_outputs"), ONE_OUTPUT + SEVERAL)
class TestTerms:
    def expected(self, asked, f, alpha, which):
        some, f, alpha = asked.rows(which), f[which], alpha[which]
        products = some.per_problem((alpha * some.signs * f).sum(axis=0))
        losses, dual_terms = some.losses(f).sum(axis=0), some.dual_terms(alpha).sum(axis=0)
        return np.array([losses, dual_terms, losses - dual_terms + products, products])

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("favoured", [False, True])
    def test_sums_equal_the_reference(self, loss, n_outputs, weighted, favoured):
        asked, targets = ask(loss, N_ROWS, n_outputs, weighted=weighted, favoured=favoured)
        f, alpha = some_outputs(n_outputs), feasible_alpha(asked)
        v, zero = asked.margins(f), np.zeros_like(alpha)
        some = np.array([3, 59, 8, 8, 0])
        for which, rows in [(None, np.arange(N_ROWS)), (some, some), (some[:0], some[:0])]:
            expected = self.expected(asked, f, alpha, rows)
            scale = np.abs(expected).max() + 1
            assert np.allclose(add_terms(targets, v, alpha, which)[0], expected, rtol=0, atol=1e-13 * scale)
            assert np.allclose(add_terms(targets, v, None, which)[0], self.expected(asked, f, zero, rows), atol=1e-11)
        whole = add_terms(targets, v, alpha, some)[0]
        assert np.array_equal(add_terms(targets, v, alpha, some, cuts=[1, 1, 4])[0], whole)

    def test_outputs_that_are_not_live_add_nothing(self, loss, n_outputs):
        asked, targets = ask(loss, N_ROWS, n_outputs)
        v, alpha, live = asked.margins(some_outputs(n_outputs)), feasible_alpha(asked), np.arange(n_outputs) % 2
        every, some = add_terms(targets, v, alpha)[0], add_terms(targets, v, alpha, live=live)[0]
        assert np.array_equal(some, every if asked.joint else every * live)

    def test_a_gap_is_never_negative_and_zero_at_the_slopes(self, loss, n_outputs):
        asked, targets = ask(loss, N_ROWS, n_outputs)
        for size in (1e-3, 1.0, 30.0):
            v = asked.margins(size * some_outputs(n_outputs))
            for row in range(N_ROWS):
                for seed in range(3):
                    sums, _ = add_terms(targets, v, feasible_alpha(asked, seed), [row])
                    assert (sums[2] >= -1e-13 * (1 + np.abs(v[row]).max())).all()
            alpha = np.full_like(v, np.nan)
            targets.slopes(v, alpha)
            assert asked.feasible(alpha, 1e-14)
            sums, _ = add_terms(targets, v, alpha)
            assert np.allclose(sums[2], 0, rtol=0, atol=1e-13 * np.abs(sums[:2]).sum())

    @pytest.mark.parametrize("weighted", [False, True])
    def test_slopes_equal_the_reference(self, loss, n_outputs, weighted):
        asked, targets = ask(loss, N_ROWS, n_outputs, weighted=weighted, favoured=weighted)
        for f in (some_outputs(n_outputs), np.zeros((N_ROWS, n_outputs))):
            alpha = np.full_like(f, np.nan)
            targets.slopes(asked.margins(f), alpha)
            assert np.allclose(alpha, asked.slopes(f), rtol=1e-13, atol=1e-13)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_margins_equal_the_reference(self, loss, n_outputs, dtype):
        asked, targets = ask(loss, N_ROWS, n_outputs)
        f = np.hstack([some_outputs(n_outputs), np.full((N_ROWS, 3), np.nan)]).astype(dtype)  # what follows is padding
        margins = np.full((N_ROWS, n_outputs), np.nan)
        for first, last in [(20, N_ROWS), (0, 0), (0, 20)]:
            targets.margins(f[first:last], first, margins)
        assert np.array_equal(margins, asked.margins(f[:, :n_outputs].astype(np.float64)))

    def test_far_margins_have_finite_terms(self, loss, n_outputs):
        asked, targets = ask(loss, N_ROWS, n_outputs)
        f = 1000 * some_outputs(n_outputs)
        alpha = np.full_like(f, np.nan)
        targets.slopes(asked.margins(f), alpha)
        assert np.allclose(alpha, asked.slopes(f), rtol=1e-12, atol=1e-12)
        sums, _ = add_terms(targets, asked.margins(f), alpha)
        expected = self.expected(asked, f, alpha, np.arange(N_ROWS))
        assert np.allclose(sums, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def would_move(asked, v, alpha, i, k):
    """Whether a step would change the alphas of row i, when its margins are v."""
    omega = asked.omega[i, k]
    if asked.joint:
        best = reference.best_alphas(asked.loss, alpha[i], omega, v, 1.0, asked.y[i].argmax())
        return np.abs(best - alpha[i]).max() > 1e-12
    return abs(reference.best_alpha(asked.loss, alpha[i, k], omega, v[k], 1.0, EPSILON) - alpha[i, k]) > 1e-12


@pytest.mark.parametrize(("loss", "n_outputs"), [case for case in ONE_OUTPUT + SEVERAL if case[0] not in ENTROPIES])
def test_rows_are_active_when_a_small_change_of_a_margin_would_move_them(loss, n_outputs):
    asked, targets = ask(loss, N_ROWS, n_outputs)
    slack = np.linspace(0.05, 0.2, 1 if asked.joint else n_outputs)
    f, alpha = some_outputs(n_outputs), feasible_alpha(asked)
    v = asked.margins(f)
    sums, active = add_terms(targets, v, alpha, near=np.array([slack, np.zeros_like(slack)]))
    assert np.array_equal(sums, add_terms(targets, v, alpha, np.flatnonzero(active))[0])
    moves = np.zeros((N_ROWS, len(slack)), dtype=bool)
    for i in range(N_ROWS):
        for k in range(n_outputs):
            problem = 0 if asked.joint else k
            for change in (-slack[problem], slack[problem]):
                changed = v[i] + change * (np.arange(n_outputs) == k)
                moves[i, problem] |= would_move(asked, changed, alpha, i, k)
    assert np.array_equal(active > 0, moves.any(axis=1))
    assert 0.01 < moves.mean() < 0.99
    for problem, live in enumerate(np.eye(n_outputs)[: len(slack)]):
        _, active = add_terms(targets, v, alpha, live=live, near=np.array([slack, np.zeros_like(slack)]))
        assert np.array_equal(active > 0, moves[:, problem])
    _, active = add_terms(targets, v, alpha, [4, 9], near=np.array([slack, np.zeros_like(slack)]))
    assert np.array_equal(active[[4, 9]] > 0, moves[[4, 9]].any(axis=1))
    assert (np.delete(active, [4, 9]) == 7).all()


@pytest.mark.parametrize(("loss", "n_outputs"), [case for case in ONE_OUTPUT + SEVERAL if case[0] in ENTROPIES])
def test_probabilities_are_active_unless_they_are_near_their_place(loss, n_outputs):
    asked, targets = ask(loss, N_ROWS, n_outputs)
    f = some_outputs(n_outputs)
    p = asked.slopes(f) / asked.omega
    random = np.random.default_rng(5)
    # Some as they should be, others off by more or less.
    off = random.choice([0, 1e-3, 3e-2, 0.3], size=(N_ROWS, 1))
    if asked.joint:
        p = (1 - off) * p + off * feasible_alpha(asked) / asked.omega
        distance, room = np.abs(p - asked.slopes(f) / asked.omega).max(axis=1), 1 - ((asked.y > 0) - p).max(axis=1)
        near = np.array([0.04])
        expected = ~(distance < near * room)
    else:
        p = (1 - off) * p + off * 0.5
        near = np.linspace(0.02, 0.04, n_outputs)
        expected = ~(np.abs(p - asked.slopes(f) / asked.omega) < near * p * (1 - p)).all(axis=1)
    alpha = asked.omega * p
    _, active = add_terms(targets, asked.margins(f), alpha, near=np.array([np.zeros_like(near), near]))
    assert np.array_equal(active > 0, expected)
    assert 0.1 < expected.mean() < 0.9


# Training.


def new_training(X, how, maps, targets, block=1, width=None, n_threads=1):
    """A training from w = 0, its rows as they come, margins in two parts; maps are (margin, update)."""
    rows, n_outputs = stored(X, how), targets.n_outputs
    width = n_outputs if width is None else width
    w = np.zeros((maps[0].n_slots, width), dtype=X.dtype)
    scratch = np.zeros(_core.training_scratch_bytes(rows, block, n_outputs, width, 2, n_threads), dtype=np.uint8)
    shares, parts = (np.linspace(0, X.shape[1] + 1, n + 1).astype(np.int32) for n in (n_threads, 2))
    training = _core.Training(rows, *maps, w, targets, block, scratch, shares, parts)
    rows.set_order(np.arange(len(X), dtype=np.int32))
    return training


class Problem:
    """Rows with targets and weights, and a kernel; passes over them by the package and by the reference."""

    N_ROWS, C = 37, 1.7

    def __init__(self, dtype, loss, n_outputs=1, degree=3, name="gaussian"):
        random = np.random.default_rng(degree)
        self.n_outputs = n_outputs
        self.kernel = reference.all_kernels(degree)[name]
        self.X = mixed_rows(COLUMNS[degree], dtype, self.N_ROWS, seed=degree)
        self.expansion = Expansion(self.X.shape[1], **self.kernel.parameters)
        self.Phi = basis(self.X.shape[1], degree).features(self.X, self.kernel)
        self.K = self.Phi @ self.Phi.T
        self.asked, self.targets = ask(loss, self.N_ROWS, n_outputs, seed=degree)
        # A row that was moved last is at its best: were it the first to come again, rounding would tell if it can move.
        self.orders = [random.permutation(self.N_ROWS)]
        while len(self.orders) < 3:
            order = random.permutation(self.N_ROWS)
            if not set(self.orders[-1][-8:]) & set(order[:8]):
                self.orders.append(order)

    def training(self, how, block=1, table="weights", width=None, targets=None, n_threads=1):
        features, margin, update = (getattr(self.expansion, name) for name in ("features", "margin", "update"))
        maps = (features, features) if table == "weights" else (margin, update)
        return new_training(self.X, how, maps, targets or self.targets, block, width, n_threads)

    def dual(self, how, block=1, sweeps=1, live=None, **given):
        alpha, margin = np.zeros(self.asked.y.shape), np.full(self.asked.y.shape, np.nan)
        live = None if live is None else np.asarray(live, dtype=np.uint8)
        training = self.training(how, block, **given)
        return _core.Dual(training, self.C, alpha, margin, np.zeros(self.n_outputs), live, sweeps)

    def table_of(self, w, table):
        """Weights of features; or those of bare monomials, which make the same margins."""
        return w if table == "weights" else w * basis(self.X.shape[1], self.kernel.degree).metric(self.kernel)[:, None]

    def w_of(self, alpha):
        """w_k = C sum_i alpha_ik signs_ik phi(x_i)."""
        return self.C * self.Phi.T @ (np.asarray(alpha) * self.asked.signs)

    def dual_objective(self, alpha):
        return reference.objectives(self.asked, self.K, self.C, np.asarray(alpha))[1]

    @cache  # noqa: B019
    def dual_reference(self, block, sweeps, live=None):
        """(alpha, margins) after each pass."""
        alpha, after = np.zeros(self.asked.y.shape), []
        for order in self.orders:
            alpha, margins = reference.dual_pass(self.asked, self.K, self.C, alpha, order, block, sweeps, live)
            after.append((alpha, margins))
        return after

    def batches(self, block):
        """Those of each pass, the last one shorter."""
        return [[order[i : i + block] for i in range(0, self.N_ROWS, block)] for order in self.orders]

    def share(self, block):
        """Of a row in a step of Pegasos."""
        return -(-self.N_ROWS // block) / self.N_ROWS

    @cache  # noqa: B019
    def pegasos_reference(self, lam, block, projected):
        """(radius, iterates of all passes); the radius is one that some of the iterates leave, or None."""
        given = self.asked, self.Phi, lam, list(chain(*self.batches(block))), self.share(block)
        iterates = reference.pegasos(*given)
        if not projected:
            return None, iterates
        norms = [self.asked.per_problem((w**2).sum(axis=0)) for w, _ in iterates]
        radius = np.sqrt(np.max(norms, axis=0)) / 2
        return radius, reference.pegasos(*given, radius)


problem_of = cache(Problem)


def run_pass(state, order, cuts=()):
    """One pass in this order, in pieces that end at the cuts."""
    state.training.rows.set_order(np.asarray(order, dtype=np.int32))
    for first, last in pairwise([0, *cuts, len(order)]):
        state.run(first, last)


def run_in_threads(state, order, n, late=0.0):
    """One pass in this order, by n threads, of which the last one comes late."""
    state.training.rows.set_order(order.astype(np.int32))
    threads = [Thread(target=state.run, args=(0, len(order), me)) for me in range(n)]
    for thread in threads:
        if thread is threads[-1]:
            sleep(late)
        thread.start()
    for thread in threads:
        thread.join()


def close(dtype, result, expected):
    """Equal but for rounding errors, which steps may make a little larger."""
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    return np.allclose(result, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def outputs_of(table, problem):
    """The tables of outputs; those beyond are padding, and have to be 0."""
    table = np.asarray(table, dtype=np.float64)
    assert not table[:, problem.n_outputs :].any()
    return table[:, : problem.n_outputs]


def test_a_thread_that_comes_late_is_waited_for():
    problem = problem_of(np.float64, "hinge")
    alone, together = (problem.dual(("csr", False), 16, 3, n_threads=n) for n in (1, 2))
    run_pass(alone, problem.orders[0])
    run_in_threads(together, problem.orders[0], 2, late=0.1)
    assert np.array_equal(alone.alpha, together.alpha)
    assert np.array_equal(alone.training.w, together.training.w)


# One step of dual coordinate ascent, on an empty row: its kernel is 1, and each w a number.


@lru_cache
def one_row(loss, n_outputs=1, of_class=0):
    """(training, the row's weight)."""
    features, omega = Expansion(1, degree=1, gamma=1.0, kernel="exponential").features, np.ones(1)
    y = np.where(np.arange(n_outputs) == of_class, 1, -1)[None].astype(np.int8)
    numbers = np.zeros((1, n_outputs))
    labels, numbers = (None, numbers) if loss in reference.NUMBER_LOSSES else (y, None)
    targets = _core.Targets(loss, labels, numbers, omega, None, EPSILON)
    return new_training(np.zeros((1, 1)), ("csr", False), (features, features), targets), omega


def dual_step(loss, alpha, omega, margin, q, of_class=0):
    """The alpha after one step on a row with this margin, where q = C K~(x, x); joint losses: alphas and margins."""
    margins = np.atleast_1d(margin)
    n_outputs = len(margins)
    training, weight = one_row(loss, n_outputs, of_class)
    training.w[0], weight[0] = margins, omega
    new = np.array(alpha, dtype=np.float64, ndmin=2)
    _core.Dual(training, q, new, np.zeros((1, n_outputs)), np.zeros(n_outputs), None, 1).run(0, 1)
    return new[0] if np.ndim(margin) else new[0, 0]


def in_domain(loss, alpha, omega):
    low, high = (omega * np.array(reference.domain(loss))).tolist()
    return low <= alpha <= high


def gain(loss, alpha, omega, margin, q, a):
    """What the dual objective gains when alpha becomes a."""
    terms = (reference.dual_term(loss, p / omega, EPSILON) for p in (a, alpha))
    change = omega * (next(terms) - next(terms))
    return change - (a - alpha) * margin - q / 2 * (a - alpha) ** 2


def shares(loss):
    """Of omega: dual points at and between bounds."""
    some = np.array([0, 1e-6, 0.5, 0.9999, 1])
    return np.concatenate([some, -some[1:]]) if loss in reference.NUMBER_LOSSES else some


@pytest.mark.parametrize("loss", reference.SINGLE_LOSSES)
class TestDualStep:
    @given(
        share=st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-1, 1)),
        omega=st.floats(0.01, 100),
        margin=st.floats(-50, 50),
        q=st.floats(1e-3, 1e3),
    )
    def test_a_step_maximises_the_dual_objective(self, loss, share, omega, margin, q):
        alpha = (share if loss in reference.NUMBER_LOSSES else abs(share)) * omega
        stepped = dual_step(loss, alpha, omega, margin, q)
        assert in_domain(loss, stepped, omega)
        reach = abs(alpha) + 2 * omega * (1 + abs(margin))  # beyond which no best alpha is
        low, high = np.clip(omega * np.array(reference.domain(loss)), -reach, reach)
        best = max(
            -minimize_scalar(lambda a: -gain(loss, alpha, omega, margin, q, a), bounds=ends, method="bounded").fun
            for ends in ((low, min(0, high)), (max(0, low), high))
            if ends[0] < ends[1]
        )
        rounding = 1e-13 * (1 + reach) * (1 + abs(margin) + q * reach)
        assert gain(loss, alpha, omega, margin, q, stepped) >= max(best, 0) - rounding

    @pytest.mark.parametrize("q", [1e-3, 1.0, 20.0, 1e3])
    def test_a_step_equals_the_reference_and_a_second_one_changes_nothing(self, loss, q):
        for omega in (1.0, 0.3):
            for alpha in omega * shares(loss):
                for margin in [*np.linspace(-40, 40, 17), -0.31, -0.29, 0.29, 0.31]:
                    stepped = dual_step(loss, alpha, omega, margin, q)
                    again = dual_step(loss, stepped, omega, margin + q * (stepped - alpha), q)
                    best = reference.best_alpha(loss, alpha, omega, margin, q, EPSILON)
                    assert np.allclose([stepped, again], best, rtol=1e-9, atol=1e-11), f"{alpha=} {omega=} {margin=}"

    @pytest.mark.parametrize("q", [1e-300, 1e-3, 1.0, 1e3, 1e10, 1e20, 1e30, 1e300])
    def test_extreme_steps_stay_in_the_domain_and_never_lower_the_objective(self, loss, q):
        for omega in (1.0, 7.0, 1e-8):
            for alpha in omega * np.array([0, 1e-300, 0.5, 1 - 1e-16, 1]) * (-1 if shares(loss)[-1] < 0 else 1):
                for margin in (0.0, 1.0, -1.0, -40.0, 40.0, -800.0, 800.0, -1e100, 1e100):
                    stepped = dual_step(loss, alpha, omega, margin, q)
                    case = f"alpha {alpha}, omega {omega}, margin {margin}: {stepped}"
                    assert np.isfinite(stepped), case
                    assert in_domain(loss, stepped, omega), case
                    moved = abs(stepped - alpha)
                    rounding = 1e-15 * (omega + moved) * (1 + abs(margin) + q * moved)
                    assert gain(loss, alpha, omega, margin, q, stepped) >= -rounding, case


# The same for losses that look at all outputs together.


def joint_gain(loss, alpha, omega, f, q, of_class, a):
    """What the dual objective gains when the alphas of a row become a."""
    terms = (reference.joint_dual_term(loss, p / omega, of_class) for p in (a, alpha))
    change = omega * (next(terms) - next(terms))
    return change - (a - alpha) @ f - q / 2 * (a - alpha) @ (a - alpha)


def joint_alpha(random, n_outputs, of_class, omega, kind):
    """A feasible one: at a corner, near corners, or anywhere."""
    if kind == "corner":
        q = np.eye(n_outputs)[random.integers(n_outputs)]
    else:
        q = random.dirichlet(np.full(n_outputs, {"sparse": 0.05, "even": 20.0, "any": 1.0}[kind]))
    alpha = -omega * q
    alpha[of_class] = 0
    alpha[of_class] = -alpha.sum()
    return alpha


def assert_feasible(alpha, omega, of_class):
    """sum alpha = 0, alpha_k <= 0 for other classes, alpha_k <= omega for the row's; but for the rounding of a sum."""
    rounding = 1e-13 * omega
    assert np.isfinite(alpha).all()
    assert abs(alpha.sum()) <= rounding
    assert (np.delete(alpha, of_class) <= 0).all()
    assert 0 <= alpha[of_class] <= omega + rounding


@pytest.mark.parametrize("loss", reference.JOINT_LOSSES)
class TestJointStep:
    KINDS = ("corner", "sparse", "even", "any")

    @given(
        n_outputs=st.integers(2, 50),
        kind=st.sampled_from(KINDS),
        omega=st.floats(0.01, 100),
        size=st.sampled_from([0.0, 1.0, 10.0, 50.0]),
        q=st.floats(1e-3, 1e3),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_no_feasible_point_is_better_than_that_of_a_step(self, loss, n_outputs, kind, omega, size, q, seed):
        random = np.random.default_rng(seed)
        of_class, f = int(random.integers(n_outputs)), size * random.normal(size=n_outputs)
        alpha = joint_alpha(random, n_outputs, of_class, omega, kind)
        stepped = dual_step(loss, alpha, omega, f, q, of_class)
        assert_feasible(stepped, omega, of_class)
        reached = joint_gain(loss, alpha, omega, f, q, of_class, stepped)
        rounding = 1e-14 * n_outputs * omega * (1 + np.abs(f).max() + q * omega)
        others = [joint_alpha(random, n_outputs, of_class, omega, k) for k in self.KINDS * 5]
        others += [0.999 * stepped + 0.001 * other for other in others]
        others += [alpha, reference.best_alphas(loss, alpha, omega, f, q, of_class)]
        for other in others:
            assert reached >= joint_gain(loss, alpha, omega, f, q, of_class, other) - rounding

    @pytest.mark.parametrize("n_outputs", [2, 3, 10, 50])
    @pytest.mark.parametrize("s", [1e-3, 1.0, 20.0, 100.0, 1e3, 1e4])
    def test_a_step_equals_the_reference_and_a_second_one_changes_nothing(self, loss, n_outputs, s):
        """s is omega q, on which the shape of the problem depends."""
        random = np.random.default_rng(n_outputs)
        for omega in (1.0, 0.3):
            for kind in self.KINDS:
                for size in (0.0, 0.5, 5.0, 40.0):
                    of_class, f, q = int(random.integers(n_outputs)), size * random.normal(size=n_outputs), s / omega
                    alpha = joint_alpha(random, n_outputs, of_class, omega, kind)
                    stepped = dual_step(loss, alpha, omega, f, q, of_class)
                    again = dual_step(loss, stepped, omega, f + q * (stepped - alpha), q, of_class)
                    best = reference.best_alphas(loss, alpha, omega, f, q, of_class)
                    case = f"{omega=} {kind=} {size=}: off by {np.abs(stepped - best).max()}"
                    assert np.allclose(stepped, best, rtol=0, atol=1e-10 * omega * (1 + size / s)), case
                    assert np.allclose(again, best, rtol=0, atol=1e-10 * omega * (1 + size / s)), case

    @pytest.mark.parametrize("q", [1e-300, 1e-15, 1e-9, 1e-3, 1.0, 1e3, 1e10, 1e20, 1e300])
    def test_extreme_steps_stay_feasible_and_never_lower_the_objective(self, loss, q):
        random = np.random.default_rng(0)
        for n_outputs in (2, 7, 50):
            for omega in (1.0, 7.0, 1e-8):
                for size in (0.0, 1.0, 40.0, 800.0, 1e6, 1e100):
                    for kind in self.KINDS:
                        of_class, f = int(random.integers(n_outputs)), size * random.normal(size=n_outputs)
                        alpha = joint_alpha(random, n_outputs, of_class, omega, kind)
                        stepped = dual_step(loss, alpha, omega, f, q, of_class)
                        assert_feasible(stepped, omega, of_class)
                        rounding = 1e-14 * n_outputs * omega * (1 + np.abs(f).max() + q * omega)
                        reached = joint_gain(loss, alpha, omega, f, q, of_class, stepped)
                        assert reached >= -rounding, f"{n_outputs=} {omega=} {size=} {kind=}"


# Passes of dual coordinate ascent.

ALL_CASES = ONE_OUTPUT + SEVERAL
FEW = [(loss, 1) for loss in (*reference.LABEL_LOSSES, "squared_epsilon_insensitive")]
FEW += [("hinge", 3), ("epsilon_insensitive", 4), ("crammer_singer", 5), ("multinomial", 9)]


def widths(dtype, n_outputs):
    """Of the tables: without padding, as the package pads them, and with some."""
    return sorted({n_outputs, padded(n_outputs, dtype), n_outputs + 1})


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestDualPass:
    @pytest.mark.parametrize(
        ("loss", "n_outputs", "degree", "name"),
        [(loss, 1, degree, name) for loss in reference.LABEL_LOSSES for degree, name in [(2, "gaussian"), *CUBIC]]
        + [(loss, 1, 3, name) for loss in reference.NUMBER_LOSSES for name in ("gaussian", "homogeneous")]
        + [(*case, 3, "gaussian") for case in SEVERAL]
        + [(loss, 3, 3, "homogeneous") for loss in ("epsilon_insensitive", *reference.JOINT_LOSSES)],
    )
    def test_passes_equal_coordinate_ascent_on_the_kernel_matrix(
        self, instruction_set, dtype, how, loss, n_outputs, degree, name
    ):
        problem = problem_of(dtype, loss, n_outputs, degree, name)
        width = widths(dtype, n_outputs)
        passes = [(1, 1, "weights"), (1, 1, "of bare monomials"), (7, 5, "of bare monomials"), (40, 2, "weights")]
        for block, sweeps, table in passes:
            state = problem.dual(how, block, sweeps, table=table, width=width[block % len(width)])
            expected = list(zip(problem.orders, problem.dual_reference(block, sweeps), strict=True))
            # In a block of all rows, rounding would tell if the row that was moved last can move; see orders.
            for order, (alpha, margins) in expected[: 1 if block == 40 else None]:
                run_pass(state, order)
                w = problem.w_of(state.alpha)
                assert close(dtype, state.alpha, alpha)
                assert close(dtype, state.margin, margins)
                assert close(dtype, outputs_of(state.training.w, problem), problem.table_of(w, table))
                assert close(dtype, state.norm2, (w**2).sum(axis=0))
                assert problem.asked.feasible(np.asarray(state.alpha), 1e-14)

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_the_dual_objective_never_falls(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        state = problem.dual(how, 5, 4, table="of bare monomials")
        objective = problem.dual_objective(state.alpha)
        rounding = 1e-12 if dtype == np.float64 else 1e-5
        for order in problem.orders:
            for first in range(0, len(order), 5):
                changed, before = state.changed, np.array(state.alpha)
                run_pass(state, order[first : first + 5])
                assert state.changed - changed == np.count_nonzero((np.asarray(state.alpha) != before).any(axis=1))
                assert problem.asked.feasible(np.asarray(state.alpha), 1e-14)
                previous, objective = objective, problem.dual_objective(state.alpha)
                assert (objective >= previous - rounding * np.abs(previous)).all()

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        results = []
        for cuts in ([], [4], [8, 8, 20, 36], range(4, problem.N_ROWS, 4)):
            state = problem.dual(how, 4, 2)
            for order in problem.orders:
                run_pass(state, order, cuts)
            results.append([state.training.w, state.alpha, state.margin, state.norm2, state.changed])
        for result in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(result, results[0], strict=True))

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_rows_that_are_not_in_the_order_stay_as_they_are(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        state = problem.dual(how, 6, 2)
        run_pass(state, problem.orders[0])
        before, visited = np.array(state.alpha), problem.orders[1][:10]
        others = np.setdiff1d(np.arange(problem.N_ROWS), visited)
        np.asarray(state.margin)[:] = np.nan
        run_pass(state, visited)
        assert np.array_equal(np.asarray(state.alpha)[others], before[others])
        assert np.isnan(np.asarray(state.margin)[others]).all()
        assert np.isfinite(np.asarray(state.margin)[visited]).all()
        assert close(dtype, state.training.w, problem.w_of(state.alpha))

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_without_weights_all_of_them_are_1(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        y = problem.asked.y
        labels, numbers = (None, y) if loss in reference.NUMBER_LOSSES else (y, None)
        ones = np.ones(problem.N_ROWS), None if labels is None else np.ones(n_outputs)
        states = []
        for weight, favour in [ones, (None, None)]:
            targets = _core.Targets(loss, labels, numbers, weight, favour, EPSILON)
            states.append(problem.dual(how, 4, targets=targets))
            run_pass(states[-1], problem.orders[0])
        assert np.array_equal(states[0].alpha, states[1].alpha)
        assert problem.asked._replace(omega=np.ones(y.shape)).feasible(np.asarray(states[1].alpha), 1e-14)

    @pytest.mark.parametrize("n_threads", [2, 3, 4])
    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_several_threads_do_not_change_a_bit(self, dtype, how, loss, n_outputs, n_threads):
        problem = problem_of(dtype, loss, n_outputs)
        results = []
        for n in (1, n_threads):
            state = problem.dual(how, 16, 3, n_threads=n)
            for order in problem.orders:
                run_in_threads(state, order, n)
            results.append([state.training.w, state.alpha, state.margin, state.norm2, state.changed])
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))

    @pytest.mark.parametrize(("loss", "n_outputs"), [case for case in SEVERAL if case[0] in reference.SINGLE_LOSSES])
    def test_outputs_that_are_not_live_stay_bit_for_bit(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        live = (np.arange(n_outputs) + 1) % 2
        state = problem.dual(how, 7, 3, width=n_outputs + 1)
        for order in problem.orders[:2]:
            run_pass(state, order)
        kept = state.training, problem.C, state.alpha, state.margin, state.norm2
        state = _core.Dual(*kept, live.astype(np.uint8), 3)
        before = [np.array(a)[..., :n_outputs] for a in (state.alpha, state.norm2, state.training.w)]
        run_pass(state, problem.orders[2])
        after = [np.array(a)[..., :n_outputs] for a in (state.alpha, state.norm2, state.training.w)]
        for old, new in zip(before, after, strict=True):
            assert np.array_equal(old[..., live == 0], new[..., live == 0])
            assert (old[..., live == 1] != new[..., live == 1]).any(axis=tuple(range(old.ndim - 1))).all()
        alpha, margins = reference.dual_pass(
            problem.asked, problem.K, problem.C, before[0], problem.orders[2], 7, 3, live
        )
        assert close(dtype, after[0], alpha)
        assert close(dtype, state.margin, margins)


@pytest.mark.parametrize(("loss", "n_outputs"), ALL_CASES)
def test_many_passes_reach_the_optimum(loss, n_outputs):
    problem = problem_of(np.float64, loss, n_outputs)
    state = problem.dual(("csr", False), 8, 3)
    for k in range(400):
        run_pass(state, np.random.default_rng(k).permutation(problem.N_ROWS))
    primal, dual = reference.objectives(problem.asked, problem.K, problem.C, np.asarray(state.alpha))
    lower, upper, *_ = reference.optimum(problem.asked, problem.K, problem.C)
    assert (dual <= upper * (1 + 1e-12)).all() and (primal >= lower * (1 - 1e-12)).all()
    assert (primal - dual <= 1e-7).all()


def test_many_passes_of_the_squared_error_solve_ridge_regression():
    """max alpha' y - sum_i alpha_i^2 / (4 omega_i) - C/2 alpha' K alpha: a linear system."""
    problem = problem_of(np.float64, "squared_epsilon_insensitive", 3)
    targets = _core.Targets("squared_epsilon_insensitive", None, problem.asked.y, None, None, 0.0)
    state = problem.dual(("csr", False), 8, 3, targets=targets)
    for k in range(400):
        run_pass(state, np.random.default_rng(k).permutation(problem.N_ROWS))
    expected = np.linalg.solve(problem.C * problem.K + np.eye(problem.N_ROWS) / 2, problem.asked.y)
    assert close(np.float64, state.alpha, expected)


# Passes of Pegasos.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestPegasosPass:
    BLOCK = 5  # of 37 rows: the last one is short
    LAMBDA = 2.0  # so that even the first steps do not make rounding errors much larger

    def start(self, problem, how, radius, block=BLOCK, **given):
        training, n_outputs = problem.training(how, block, **given), problem.n_outputs
        alpha, scale, norm2 = np.zeros(problem.asked.y.shape), np.ones(n_outputs), np.zeros(n_outputs)
        return _core.Pegasos(training, self.LAMBDA, problem.share(block), radius, alpha, scale, norm2)

    def begin_average(self, state):
        """(average, shift)."""
        average, shift = np.zeros_like(state.training.w), np.zeros_like(state.scale)
        state.begin_average(average, shift)
        return average, shift

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize("n_threads", [2, 3, 4])
    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_several_threads_do_not_change_a_bit(self, dtype, how, loss, n_outputs, n_threads, projected):
        problem = problem_of(dtype, loss, n_outputs)
        radius, _ = problem.pegasos_reference(self.LAMBDA, 16, projected)
        results = []
        for n in (1, n_threads):
            state = self.start(problem, how, radius, 16, n_threads=n)
            average, shift = self.begin_average(state)
            for order in problem.orders:
                run_in_threads(state, order, n)
            results.append([state.training.w, average, shift, state.alpha, state.scale, state.norm2, state.n_averaged])
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize(
        ("loss", "n_outputs", "degree", "name", "table"),
        [
            (loss, 1, *kernel, table)
            for loss in reference.LABEL_LOSSES
            for kernel in [(2, "gaussian"), (3, "odd sequence")]
            for table in ("weights", "of bare monomials")
        ]
        + [(loss, 1, 3, "homogeneous", "of bare monomials") for loss in reference.NUMBER_LOSSES]
        + [(*case, 3, "sequence", "weights") for case in SEVERAL],
    )
    def test_passes_equal_the_textbook(
        self, instruction_set, dtype, how, loss, projected, n_outputs, degree, name, table
    ):
        problem = problem_of(dtype, loss, n_outputs, degree, name)
        radius, iterates = problem.pegasos_reference(self.LAMBDA, self.BLOCK, projected)
        state = self.start(problem, how, radius, table=table, width=widths(dtype, n_outputs)[-1])
        n_blocks = len(iterates) // len(problem.orders)
        for k, order in enumerate(problem.orders):
            if k < 2:  # the first average is over one pass, the second over two
                (average, shift), begun = self.begin_average(state), k * n_blocks
            run_pass(state, order, cuts=[10, 15])
            done = (k + 1) * n_blocks
            w, alpha = iterates[done - 1]
            values, scale = outputs_of(state.training.w, problem), np.asarray(state.scale)
            assert close(dtype, scale * values, problem.table_of(w, table))
            assert close(dtype, scale * np.asarray(state.alpha), alpha)
            assert radius is None or close(dtype, state.norm2, (w**2).sum(axis=0))
            assert state.n_averaged == done - begun
            mean = np.mean([w for w, _ in iterates[begun:done]], axis=0)
            averaged = (outputs_of(average, problem) + shift * values) / state.n_averaged
            assert close(dtype, averaged, problem.table_of(mean, table))

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how, loss, n_outputs, projected):
        problem = problem_of(dtype, loss, n_outputs)
        radius = np.ones(len(problem.asked.problems)) if projected else None
        results = []
        for cuts in ([], [5], [10, 10, 35], range(5, problem.N_ROWS, 5)):
            state = self.start(problem, how, radius)
            self.begin_average(state)
            for order in problem.orders:
                run_pass(state, order, cuts)
            arrays_of = (state.training.w, state.alpha, state.average, state.scale, state.norm2, state.shift)
            results.append([*arrays_of, state.n_averaged])
        for result in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(result, results[0], strict=True))

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_a_state_goes_on_from_an_iterate(self, instruction_set, dtype, how, loss, n_outputs, projected):
        problem = problem_of(dtype, loss, n_outputs)
        radius, iterates = problem.pegasos_reference(self.LAMBDA, self.BLOCK, projected)
        done = len(iterates) // len(problem.orders)
        w, alpha = iterates[done - 1]
        training = problem.training(how, self.BLOCK)
        training.w[:] = w
        share, norm2 = problem.share(self.BLOCK), (w**2).sum(axis=0)
        state = _core.Pegasos(training, self.LAMBDA, share, radius, alpha.copy(), np.ones(n_outputs), norm2, t=done)
        run_pass(state, problem.orders[1])
        w, alpha = iterates[2 * done - 1]
        assert close(dtype, np.asarray(state.scale) * outputs_of(training.w, problem), w)
        assert close(dtype, np.asarray(state.scale) * np.asarray(state.alpha), alpha)

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_averaging_does_not_change_the_iterates(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        radius = np.ones(len(problem.asked.problems))
        plain, averaged = (self.start(problem, how, radius, block) for block in (7, 7))
        self.begin_average(averaged)
        for state in (plain, averaged):
            run_pass(state, problem.orders[0])
        assert np.array_equal(plain.training.w, averaged.training.w)
        assert np.array_equal(plain.scale, averaged.scale)

    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_the_last_iterate_of_whole_epochs_has_a_feasible_alpha(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        state = self.start(problem, how, None, block=1)
        for order in problem.orders:
            run_pass(state, order)
        # In the letters of the dual, C alpha of which lambda n C = 1.
        alpha = np.asarray(state.scale) * np.asarray(state.alpha) * self.LAMBDA * problem.N_ROWS
        assert problem.asked.feasible(alpha, 1e-12)


# Passes of AdaGrad.


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestAdagradPass:
    ETA = 0.3

    def start(self, problem, how, block, floor, rate=None, **given):
        training = problem.training(how, block, **given)
        return _core.Adagrad(training, np.full_like(training.w, floor), self.ETA, rate)

    @pytest.mark.parametrize("n_threads", [2, 3, 4])
    @pytest.mark.parametrize("block", [1, 16])
    @pytest.mark.parametrize(("loss", "n_outputs"), FEW)
    def test_several_threads_do_not_change_a_bit(self, dtype, how, loss, n_outputs, n_threads, block):
        problem = problem_of(dtype, loss, n_outputs)
        results = []
        for n in (1, n_threads):
            state = self.start(problem, how, block, 1e-2, n_threads=n)
            for order in problem.orders:
                run_in_threads(state, order, n)
            results.append([state.training.w, state.squares])
        assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))

    @pytest.mark.parametrize(
        ("loss", "n_outputs", "degree", "name"),
        [(loss, 1, *kernel) for loss in reference.LABEL_LOSSES for kernel in [(2, "gaussian"), (3, "homogeneous")]]
        + [(loss, 1, 2, "gaussian") for loss in reference.NUMBER_LOSSES]
        + [(*case, 3, "gaussian") for case in SEVERAL],
    )
    @pytest.mark.parametrize("block", [1, 20])
    def test_passes_equal_the_formula(self, instruction_set, dtype, how, loss, n_outputs, block, degree, name):
        problem = problem_of(dtype, loss, n_outputs, degree, name)
        floor = 1e-2 if dtype == np.float32 else 1e-8
        width = widths(dtype, n_outputs)[-1]
        rate = np.linspace(0.5, 1.5, width).astype(dtype) if block > 1 else None  # or all alike
        state = self.start(problem, how, block, floor, rate, width=width)
        eta = self.ETA * (1.0 if rate is None else rate[:n_outputs].astype(np.float64))
        w = np.zeros((problem.Phi.shape[1], n_outputs))
        squares, together = np.full_like(w, floor), TOGETHER if how[1] else 1
        for order, batches in zip(problem.orders, problem.batches(block), strict=True):
            run_pass(state, order)
            w, squares = reference.adagrad(problem.asked, problem.Phi, w, squares, eta, batches, together)
            assert close(dtype, outputs_of(state.training.w, problem), w)
            assert close(dtype, state.squares[:, :n_outputs], squares)
            assert (state.squares[:, n_outputs:] == dtype(floor)).all()

    @pytest.mark.parametrize(("loss", "n_outputs"), [("log_loss", 1), ("log_loss", 2), ("multinomial", 9)])
    def test_passes_do_not_depend_on_where_they_are_cut(self, instruction_set, dtype, how, loss, n_outputs):
        problem = problem_of(dtype, loss, n_outputs)
        results = []
        for cuts in ([], [8], [16, 16, 32]):
            state = self.start(problem, how, 8, 1e-4)
            for order in problem.orders:
                run_pass(state, order, cuts)
            results.append((np.array(state.training.w), np.array(state.squares)))
        assert all(np.array_equal(result, results[0]) for result in results[1:])

    @pytest.mark.parametrize("rate", [None, [0.7], [0.7, 1.0, 2.5]])
    def test_shrink_divides_each_entry_by_its_own_number(self, instruction_set, dtype, how, rate):
        n_outputs = 1 if rate is None else len(rate)
        problem = problem_of(dtype, "hinge", n_outputs)
        rates = np.ones(n_outputs) if rate is None else np.array(rate)
        state = self.start(problem, how, 1, 1e-4, None if rate is None else rates.astype(dtype))
        run_pass(state, problem.orders[0])
        w, squares = state.training.w.copy(), state.squares.copy()
        state.shrink(0.7, 3, 50)
        expected = w.astype(np.float64).ravel()
        factors = 0.7 * np.tile(rates, len(w))[3:50]
        expected[3:50] /= 1 + factors / np.sqrt(squares.ravel()[3:50].astype(np.float64))
        result = state.training.w.ravel()
        assert np.allclose(result, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
        assert np.array_equal(result[:3], w.ravel()[:3]) and np.array_equal(result[50:], w.ravel()[50:])
        assert np.array_equal(state.squares, squares)
        before = state.training.w.copy()
        state.shrink(0.0, 0, w.size)
        state.shrink(0.7, 9, 9)
        assert np.array_equal(state.training.w, before)


# What the boundary to C refuses.


class TestBoundary:
    """Four rows of three columns, of degree 2: ten slots."""

    X, expansion = np.ones((4, 3)), Expansion(3, degree=2, gamma=1.0)
    other = Expansion(4, degree=2, gamma=1.0)

    def rows(self):
        return stored(self.X, ("csr", False))

    def targets(self, loss="hinge", **changed):
        """Of two outputs."""
        numbers = loss in reference.NUMBER_LOSSES
        arguments = {
            "y": None if numbers else np.array([[1, -1]] * 4, dtype=np.int8),
            "target": np.zeros((4, 2)) if numbers else None,
            "weight": np.ones(4),
            "favour": None if numbers else np.ones(2),
            "epsilon": 0.1,
        }
        return _core.Targets(loss, *(arguments | changed).values())

    def training(self, rows=None, block=2, loss="hinge", **changed):
        rows = self.rows() if rows is None else rows
        arguments = {
            "margin": self.expansion.features,
            "update": self.expansion.features,
            "w": np.zeros((10, 3)),
            "targets": self.targets(loss),
            "block": block,
            "scratch": np.zeros(_core.training_scratch_bytes(rows, block, 2, 3), dtype=np.uint8),
            "shares": np.array([0, 4], dtype=np.int32),
        }
        return _core.Training(rows, *(arguments | changed).values())

    def in_order(self):
        training = self.training()
        training.rows.set_order(np.arange(4, dtype=np.int32))
        return training

    def dual(self, training, **changed):
        arguments = {
            "alpha": np.zeros((4, 2)),
            "margin": np.zeros((4, 2)),
            "norm2": np.zeros(2),
            "live": np.ones(2, dtype=np.uint8),
        }
        return _core.Dual(training, 1.0, *(arguments | changed).values(), 1)

    def pegasos(self, training, **changed):
        arguments = {
            "radius": np.ones(1 if training.targets.joint else 2),
            "alpha": np.zeros((4, 2)),
            "scale": np.ones(2),
            "norm2": np.zeros(2),
        }
        return _core.Pegasos(training, 1.0, 1.0, *(arguments | changed).values())

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
        table, t = np.ones((10, 2)), np.ones((4, 2))
        _core.adapt(rows, features, 0, 4, table, table.copy(), 1.0, t, scratch)
        for first, last in [(0, 5), (-1, 3), (3, 2)]:
            with pytest.raises(ValueError, match="not there"):
                _core.adapt(rows, features, first, last, table, table, 1.0, np.ones((9, 2)), scratch)
        with pytest.raises(ValueError, match="not there"):
            _core.adapt(rows, features, 0, 4, table, table, 1.0, t[:3], scratch)
        for wrong in (table[:9], np.ones((11, 2)), np.ones((10, 1))):
            for values, squares in [(table, wrong), (wrong, table)]:
                with pytest.raises(ValueError, match="shape"):
                    _core.adapt(rows, features, 0, 4, values, squares, 1.0, t, scratch)
        with pytest.raises(ValueError, match="shape"):
            _core.adapt(rows, features, 0, 4, table, table, 1.0, np.ones((4, 3)), scratch)
        with pytest.raises(ValueError, match="scratch"):
            _core.adapt(rows, features, 0, 4, table, table, 1.0, t, scratch[:-1])
        with pytest.raises(ValueError, match="belong together"):
            _core.adapt(rows, self.other.features, 0, 4, np.ones((15, 2)), np.ones((15, 2)), 1.0, t, scratch)
        with pytest.raises(ValueError, match="dtype"):
            _core.adapt(rows, features, 0, 4, table, table.astype(np.float32), 1.0, t, scratch)
        single = table.astype(np.float32)
        with pytest.raises(ValueError, match="belong together"):
            _core.adapt(rows, features, 0, 4, single, single, 1.0, t.astype(np.float32), scratch)
        table.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            _core.adapt(rows, features, 0, 4, table, np.ones((10, 2)), 1.0, t, scratch)

    def test_shift_rows(self):
        good = {
            "by": np.zeros((1, 3)),
            "place": np.arange(3, dtype=np.int32)[None],
            "moved": np.zeros(0, dtype=np.int32),
            "moved_ptr": np.array([0, 0]),
            "cell": None,
            "indptr": np.array([0, 3, 6, 9, 12]),
            "indices": np.zeros(12, dtype=np.int32),
            "data": np.zeros(12),
            "beyond": None,
        }

        def refused(message, first=0, last=4, **changed):
            with pytest.raises(ValueError, match=message):
                _core.shift_rows(self.rows(), first, last, *(good | changed).values())

        _core.shift_rows(self.rows(), 0, 4, *good.values())
        refused("belong together", by=np.zeros((1, 2)))
        refused("belong together", place=np.arange(4, dtype=np.int32)[None])
        refused("belong together", by=np.zeros((1, 3), dtype=np.float32), data=np.zeros(12, dtype=np.float32))
        refused("belong together", by=np.zeros((2, 3)))
        refused("moved_ptr", moved_ptr=np.array([0, 1]))
        refused("moved_ptr", moved_ptr=np.array([1, 0]))
        refused("cell", cell=np.zeros(3, dtype=np.int32))
        refused("no cell 1", cell=np.ones(4, dtype=np.int32))
        refused("no cell -1", cell=-np.ones(4, dtype=np.int32))
        refused("beyond", beyond=np.zeros(3))
        refused("dtype", data=np.zeros(12, dtype=np.float32))
        refused("dtype", indices=np.zeros(12, dtype=np.int64))
        refused("dtype", moved=np.zeros(0, dtype=np.int64))
        refused("not there", last=5)
        refused("not there", first=-1)
        refused("not there", indptr=np.zeros(4, dtype=np.int64))
        refused("room", indices=np.zeros(11, dtype=np.int32))
        refused("room", data=np.zeros(11))
        refused("room", data=None)

    def test_targets(self):
        for loss in reference.LOSSES:
            targets = self.targets(loss)
            assert (targets.n_rows, targets.n_outputs) == (4, 2)
            assert targets.of_labels == (loss not in reference.NUMBER_LOSSES)
            assert targets.joint == (loss in reference.JOINT_LOSSES)
        labels, numbers = np.ones((4, 2), dtype=np.int8), np.ones((4, 2))

        def refused(message, loss="hinge", **changed):
            with pytest.raises(ValueError, match=message):
                self.targets(loss, **changed)

        refused("labels", y=None)
        refused("labels", target=numbers)
        refused("labels", y=None, target=numbers)
        refused("labels", "epsilon_insensitive", target=None)
        refused("labels", "epsilon_insensitive", y=labels)
        refused("labels", "epsilon_insensitive", y=labels, target=None)
        refused("labels", "multinomial", y=None, target=numbers)
        refused("no rows", y=labels[:0])
        refused("too few outputs", y=labels[:, :0].copy(), favour=None)
        refused("too few outputs", "crammer_singer", y=labels[:, :1].copy(), favour=None)
        refused("weights", weight=np.ones(3))
        refused("weights", "squared_epsilon_insensitive", weight=np.ones(5))
        refused("favour", favour=np.ones(1))
        refused("favour", "epsilon_insensitive", favour=np.ones(2))
        refused("dtype", y=numbers)
        refused("dtype", weight=np.ones(4, dtype=np.float32))
        refused("dtype", "epsilon_insensitive", target=numbers.astype(np.float32))
        refused("dimensions", y=np.ones(4, dtype=np.int8))
        refused("contiguous", y=np.ones((2, 4), dtype=np.int8).T)
        with pytest.raises((ValueError, KeyError)):
            self.targets("hinges")

    @pytest.mark.parametrize("loss", ["hinge", "crammer_singer"])
    def test_terms(self, loss):
        n_problems = 1 if loss in reference.JOINT_LOSSES else 2
        good = {
            "margin": np.zeros((4, 2)),
            "alpha": np.zeros((4, 2)),
            "which": np.arange(4, dtype=np.int32),
            "first": 0,
            "last": 4,
            "live": np.ones(2, dtype=np.uint8),
            "sums": np.zeros((4, n_problems)),
            "active": np.zeros(4, dtype=np.uint8),
            "near": np.zeros((2, n_problems)),
        }

        def refused(message, **changed):
            with pytest.raises(ValueError, match=message):
                self.targets(loss).add_terms(*(good | changed).values())

        self.targets(loss).add_terms(*good.values())
        for name in ("margin", "alpha"):
            refused("shape", **{name: np.zeros((3, 2))})
            refused("shape", **{name: np.zeros((4, 3))})
        refused("sums", sums=np.zeros((3, n_problems)))
        refused("sums", sums=np.zeros((4, 3)))
        refused("live", live=np.ones(3, dtype=np.uint8))
        refused("active", active=np.zeros(3, dtype=np.uint8))
        refused("near", near=np.zeros((2, 3)))
        refused("near", near=np.zeros((1, n_problems)))
        refused("no alpha", alpha=None)
        refused("not there", last=5)
        refused("not there", which=None, last=5)
        refused("not there", first=-1)
        refused("not there", first=3, last=2)
        refused("not there", which=np.array([0, 1, 2, 4], dtype=np.int32))
        refused("not there", which=np.array([0, -1, 2, 3], dtype=np.int32))
        refused("dtype", which=np.arange(4))
        refused("dtype", alpha=np.zeros((4, 2), dtype=np.float32))

    def test_margins(self):
        targets = self.targets()
        good = np.zeros((targets.n_rows, targets.n_outputs))
        targets.margins(good, 0, good.copy())
        for f, first, margin in [(good, 1, good), (good, -1, good), (good[:, :-1].copy(), 0, good)]:
            with pytest.raises(ValueError, match="not there, or have too few outputs"):
                targets.margins(f, first, margin)
        with pytest.raises(ValueError, match="wrong shape"):
            targets.margins(good, 0, good[:-1])

    def test_slopes(self):
        targets, good = self.targets(), np.zeros((4, 2))
        targets.slopes(good, good.copy())
        for wrong in (np.zeros((3, 2)), np.zeros((4, 1))):
            with pytest.raises(ValueError, match="shape"):
                targets.slopes(wrong, good)
            with pytest.raises(ValueError, match="shape"):
                targets.slopes(good, wrong)
        good.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            targets.slopes(np.zeros((4, 2)), good)

    def test_training(self):
        def refused(message, **changed):
            with pytest.raises(ValueError, match=message):
                self.training(**changed)

        refused("belong together", w=np.zeros((9, 3)))
        refused("belong together", w=np.zeros(10))
        refused("belong together", w=np.zeros((10, 3), dtype=np.float32))
        refused("belong together", margin=self.other.features)
        refused("belong together", update=self.other.features)
        refused("targets", w=np.zeros((10, 1)))
        refused("targets", targets=self.targets(y=np.ones((3, 2), dtype=np.int8), weight=None))
        refused("scratch", scratch=np.zeros(_core.training_scratch_bytes(self.rows(), 2, 2, 3) - 1, dtype=np.uint8))
        refused("scratch", w=np.zeros((10, 300)))
        refused("scratch|block", block=0)
        refused("scratch|block", block=-1)
        for shares in ([], [0], [4], [0, 3], [1, 4], [0, 3, 2, 4], [0, 5], [-1, 4]):
            refused("shares", shares=np.array(shares, dtype=np.int32))
        refused("scratch", shares=np.array([0, 2, 4], dtype=np.int32))
        for parts in ([], [0], [0, 3], [0, 3, 2, 4], [0, 5], [-1, 4]):
            refused("parts", parts=np.array(parts, dtype=np.int32))
        refused("scratch", parts=np.array([0, 2, 4], dtype=np.int32))
        with pytest.raises((ValueError, TypeError)):
            self.training(w=np.zeros((10, 6))[:, ::2])
        with pytest.raises((ValueError, TypeError)):
            self.training(w=np.zeros((3, 10)).T)
        with pytest.raises(TypeError):
            self.training(targets=None)
        rows = self.rows()
        rows.set_order(np.arange(4, dtype=np.int32))
        refused("order already", rows=rows)

    @pytest.mark.parametrize("dtype", [np.int64, np.complex64, "S8"])
    def test_tables_of_another_kind_of_number(self, dtype):
        with pytest.raises((ValueError, TypeError)):
            self.training(w=np.zeros((10, 3), dtype=dtype))

    def test_tables_that_may_not_be_written(self):
        table = np.ones((10, 3))
        table.flags.writeable = False
        with pytest.raises((ValueError, TypeError)):
            self.training(w=table)
        with pytest.raises((ValueError, TypeError)):
            _core.Adagrad(self.training(), table, 1.0)
        with pytest.raises((ValueError, TypeError)):
            self.pegasos(self.training()).begin_average(table, np.zeros(2))

    def test_states_of_the_solvers(self):
        for loss in ("hinge", "multinomial"):
            training, wrong_rows = self.training(loss=loss), (np.zeros((3, 2)), np.zeros((4, 1)), np.zeros((4, 3)))
            for start, names, per_output in [
                (self.dual, ("alpha", "margin"), ("norm2",)),
                (self.pegasos, ("alpha",), ("scale", "norm2")),
            ]:
                start(training)
                for name, wrong in chain(product(names, wrong_rows), product(per_output, [np.zeros(1), np.zeros(3)])):
                    with pytest.raises(ValueError, match="shape"):
                        start(training, **{name: wrong})
                for name in (*names, *per_output):
                    with pytest.raises(ValueError, match="dtype"):
                        start(training, **{name: np.zeros((4, 2)[-1 if name in per_output else slice(2)], np.float32)})
        for thread in (-1, 1):
            with pytest.raises(ValueError, match="no thread"):
                self.dual(self.in_order()).run(0, 4, thread)
        with pytest.raises(ValueError, match="live"):
            self.dual(self.training(), live=np.ones(3, dtype=np.uint8))
        for radius, loss in [(np.ones(1), "hinge"), (np.ones(3), "hinge"), (np.ones(2), "crammer_singer")]:
            with pytest.raises(ValueError, match="radius"):
                self.pegasos(self.training(loss=loss), radius=radius)
        pegasos, table = self.pegasos(self.training()), np.ones((10, 3))
        for wrong in (table[:9], table.astype(np.float32), table[:, :2].copy(), table.ravel()):
            with pytest.raises(ValueError, match="shape"):
                pegasos.begin_average(wrong, np.zeros(2))
            with pytest.raises(ValueError, match="shape"):
                _core.Adagrad(self.training(), wrong, 1.0)
        with pytest.raises(ValueError, match="shape"):
            pegasos.begin_average(table, np.zeros(3))
        for wrong in (np.ones(2), np.ones(3, dtype=np.float32), np.ones((3, 1))):
            with pytest.raises(ValueError, match="rate"):
                _core.Adagrad(self.training(), table, 1.0, wrong)
        for first, last in [(0, 31), (-1, 3), (4, 3)]:
            with pytest.raises(ValueError, match="not there"):
                _core.Adagrad(self.training(), table, 1.0).shrink(0.1, first, last)

    @pytest.mark.parametrize("solver", ["dual", "pegasos", "adagrad"])
    def test_passes_over_rows_that_are_not_there(self, solver):
        def start(training):
            if solver == "adagrad":
                return _core.Adagrad(training, np.ones((10, 3)), 1.0)
            return self.dual(training) if solver == "dual" else self.pegasos(training)

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
from taylorkern._data.expansion import Expansion

features = Expansion(3, degree=2, gamma=1.0).features
rows = _core.Rows(np.ones(12), np.tile(np.arange(3, dtype=np.int32), 4), np.arange(0, 15, 3), 3, 3)
scratch = np.zeros(_core.training_scratch_bytes(rows, 2, 2, 2), dtype=np.uint8)
targets = _core.Targets("hinge", np.ones((4, 2), dtype=np.int8))
shares = np.array([0, 4], dtype=np.int32)
training = _core.Training(rows, features, features, np.zeros((10, 2)), targets, 2, scratch, shares)

def refused(what, training, order, walk_dense):
    try:
        rows.set_order(np.array(order, dtype=np.int32))
        rows.walk_dense = walk_dense
        _core.Dual(training, 1.0, np.zeros((4, 2)), np.zeros((4, 2)), np.zeros(2), None, 1).run(0, 4)
    except (ValueError, TypeError):
        print(what, flush=True)

refused("nothing: this is all right", training, [3, 1, 0, 2], False)
refused("no training", None, [3, 1, 0, 2], False)
refused("a row that is not there", training, [3, 1, 10**8, 2], False)
refused("a walk that takes more scratch", training, [3, 1, 0, 2], True)
"""
