"""Every verb of the C core equals the reference: real types, instruction sets, kinds of rows, kernels, degrees."""

from functools import lru_cache
from itertools import pairwise
from math import comb

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from taylorkern import _core
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows

REALS = [np.float32, np.float64]
COLUMNS = {1: 37, 2: 37, 3: 21, 4: 13, 5: 9, 6: 8}  # by degree: a few thousand monomials each
WIDTHS = [1, 2, 3, 8]
KERNELS = list(reference.all_kernels(1))
# How rows lie in memory, and whether all columns are visited or the nonzeros only.
STORED = [("array", False), ("array", True), ("csr", False), ("csr", True)]


@lru_cache
def basis(n_columns, degree):
    return reference.Basis(n_columns, degree)


def expansion_of(n_columns, kernel):
    return Expansion(n_columns, **kernel.parameters)


def mixed_rows(n_columns, dtype, seed=0):
    """Empty rows, rows of one entry, short and full ones: 19 rows, which are two blocks of eight and a rest."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.5, 1.5, size=(19, n_columns))
    X[0] = 0
    X[1, 1:] = 0
    X[2, :-1] = 0
    X[3, np.arange(n_columns) != n_columns // 2] = 0
    for i in range(4, 12):
        X[i] *= random.uniform(size=n_columns) < i / 12
    X[15] = 0
    return X.astype(dtype)


def stored(X, how):
    storage, walk_dense = how
    rows = Rows(check_rows(sparse.csr_array(X) if storage == "csr" else np.ascontiguousarray(X)))
    rows.core.walk_dense = walk_dense
    return rows


def dot(rows, expansion_map, table, cuts=()):
    """The margins of all rows, computed in pieces that end at the cuts."""
    out = np.full((rows.n_rows, table.shape[1]), np.nan, dtype=table.dtype)
    scratch = rows.scratch()
    for first, last in zip([0, *cuts], [*cuts, rows.n_rows], strict=True):
        _core.dot(rows.core, expansion_map, first, last, table, out[first:last], scratch)
    return out


def add(rows, expansion_map, table, t, cuts=()):
    """table + t' Phi, computed in pieces that end at the cuts."""
    table = table.copy()
    scratch = rows.scratch()
    for first, last in zip([0, *cuts], [*cuts, rows.n_rows], strict=True):
        _core.add(rows.core, expansion_map, first, last, table, t[first:last], scratch)
    return table


def expand(rows, expansion, index=np.int64):
    """A list of (slots, values), one for each row."""
    ends = rows.ends(expansion, np.int64)
    slots = np.full(ends[-1], -1, dtype=index)
    values = np.full(ends[-1], np.nan, dtype=rows.dtype)
    _core.expand(rows.core, expansion.features, 0, rows.n_rows, slots, values, rows.scratch())
    return [(slots[a:b], values[a:b]) for a, b in pairwise(ends)]


def nonzeros(x):
    return {int(j): x[j] for j in np.flatnonzero(x)}


def assert_sums_agree(result, expected, terms, tolerance):
    """Equal up to a part of the sum of absolute terms, and to what underflows; exactly equal where that sum is zero."""
    assert np.isfinite(result).all()
    error = np.abs(result - expected)
    allowed = tolerance * terms + np.finfo(result.dtype).smallest_normal * (terms > 0)
    assert (error <= allowed).all(), f"off by {(error[error > 0] / terms[error > 0]).max()}; allowed {tolerance}"


class Case:
    """Rows and a kernel, and what the reference makes of them."""

    def __init__(self, X, kernel):
        self.X, self.kernel = X, kernel
        self.basis = basis(X.shape[1], kernel.degree)
        self.expansion = expansion_of(X.shape[1], kernel)
        self.maps = [
            (self.expansion.bare, self.basis.bare(X, kernel)),
            (self.expansion.features, self.basis.features(X, kernel)),
        ]

    def check_dot(self, width, how):
        table = np.random.default_rng(width).normal(size=(self.expansion.n_slots, width)).astype(self.X.dtype)
        tolerance = reference.rounding(self.X, self.kernel, self.expansion.n_slots)
        for expansion_map, Phi in self.maps:
            result = dot(stored(self.X, how), expansion_map, table)
            assert_sums_agree(result, Phi @ table.astype(np.float64), np.abs(Phi) @ np.abs(table), tolerance)

    def check_add(self, width, how):
        random = np.random.default_rng(width)
        table = random.normal(size=(self.expansion.n_slots, width)).astype(self.X.dtype)
        t = random.normal(size=(len(self.X), width)).astype(self.X.dtype)
        tolerance = reference.rounding(self.X, self.kernel, len(self.X))
        for expansion_map, Phi in self.maps:
            result = add(stored(self.X, how), expansion_map, table, t)
            expected = table + Phi.T @ t.astype(np.float64)
            assert_sums_agree(result, expected, np.abs(table) + np.abs(Phi).T @ np.abs(t), tolerance)

    def check_expand(self, storage, index):
        tolerance = reference.rounding(self.X, self.kernel)
        expanded = expand(stored(self.X, (storage, False)), self.expansion, index)
        Phi = self.maps[1][1]
        for x, phi, (slots, values) in zip(self.X, Phi, expanded, strict=True):
            assert len(slots) == comb(np.count_nonzero(x) + self.kernel.degree, self.kernel.degree)
            assert (np.diff(slots) > 0).all()
            assert np.array_equal(slots, self.basis.of_nonzeros(x))
            assert_sums_agree(values, phi[slots], np.abs(phi[slots]), tolerance)


@lru_cache
def mixed_case(degree, name, dtype):
    return Case(mixed_rows(COLUMNS[degree], dtype), reference.all_kernels(degree)[name])


@lru_cache
def long_case(d, degree, dtype):
    X = mixed_rows(d, dtype)
    X[4:] /= 4  # so that s(x) of the long rows is not too small to see
    return Case(X, reference.kernel_of("gaussian", degree, 0.3))


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("degree", COLUMNS)
@pytest.mark.parametrize("name", KERNELS)
class TestEveryKernelAndDegree:
    @pytest.mark.parametrize("how", STORED)
    def test_dot_equals_the_reference(self, instruction_set, dtype, degree, name, how):
        for width in WIDTHS:
            mixed_case(degree, name, dtype).check_dot(width, how)

    @pytest.mark.parametrize("how", STORED)
    def test_add_equals_the_reference(self, instruction_set, dtype, degree, name, how):
        for width in WIDTHS:
            mixed_case(degree, name, dtype).check_add(width, how)

    @pytest.mark.parametrize("storage", ["array", "csr"])
    def test_expand_equals_the_reference(self, instruction_set, dtype, degree, name, storage):
        for index in (np.int32, np.int64):
            mixed_case(degree, name, dtype).check_expand(storage, index)

    def test_weigh_equals_the_reference(self, instruction_set, dtype, degree, name):
        kernel = reference.all_kernels(degree)[name]
        d = COLUMNS[degree]
        expansion = expansion_of(d, kernel)
        scratch = np.empty(_core.weigh_scratch_bytes(expansion.features, np.dtype(dtype).itemsize), dtype=np.uint8)
        metric = basis(d, degree).metric(kernel)
        tolerance = reference.rounding(np.zeros((0, d), dtype=dtype), kernel)
        for width in WIDTHS:
            before = np.random.default_rng(width).normal(size=(expansion.n_slots, width)).astype(dtype)
            table = before.copy()
            _core.weigh(expansion.features, 0, d + 1, table, scratch)
            expected = before * metric[:, None]
            assert_sums_agree(table, expected, np.abs(expected), tolerance)
            pieces = before.copy()
            for first, last in [(0, 1), (1, 1), (1, 2), (2, d - 1), (d - 1, d + 1)]:
                _core.weigh(expansion.features, first, last, pieces, scratch)
            assert np.array_equal(pieces, table)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("d", "degree"), [(150, 2), (60, 3), (30, 4), (3, 12)])
class TestLongRows:
    """Rows whose table of pairs is beyond its limit, and degrees at which the table has many places."""

    @pytest.mark.parametrize("how", STORED)
    @pytest.mark.parametrize("width", [1, 3])
    def test_dot_and_add_equal_the_reference(self, instruction_set, dtype, d, degree, how, width):
        long_case(d, degree, dtype).check_dot(width, how)
        long_case(d, degree, dtype).check_add(width, how)

    @pytest.mark.parametrize("storage", ["array", "csr"])
    def test_expand_equals_the_reference(self, instruction_set, dtype, d, degree, storage):
        long_case(d, degree, dtype).check_expand(storage, np.int32)


@lru_cache
def short_case(d, degree, name, dtype):
    """A row of each number of nonzeros up to 18, or to d."""
    random = np.random.default_rng(0)
    X = np.zeros((min(d, 18) + 1, d))
    for m in range(len(X)):
        X[m, random.permutation(d)[:m]] = random.uniform(-1, 1, size=m)
    return Case(X.astype(dtype), reference.all_kernels(degree)[name])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("d", "degree"), [(40, 2), (30, 3), (20, 4), (10, 6)])
@pytest.mark.parametrize("name", ["gaussian", "polynomial"])
class TestShortRows:
    """Rows that are loaded by whole vectors, and those that are just too long for that."""

    def test_all_verbs_equal_the_reference(self, instruction_set, dtype, d, degree, name):
        case = short_case(d, degree, name, dtype)
        case.check_dot(1, ("csr", False))
        case.check_add(1, ("csr", False))
        case.check_expand("csr", np.int32)

    def test_how_they_are_loaded_makes_no_difference(self, instruction_set, dtype, d, degree, name):
        case, random = short_case(d, degree, name, dtype), np.random.default_rng(1)
        table = random.normal(size=(case.expansion.n_slots, 1)).astype(dtype)
        csr, array = (stored(case.X, (storage, False)) for storage in ("csr", "array"))
        for expansion_map, _ in case.maps:
            assert np.array_equal(dot(csr, expansion_map, table), dot(array, expansion_map, table))


# Several tables side by side: less than a vector of them, whole vectors, both; and more than are taken at once.
MANY = [1, 2, 3, 4, 5, 8, 26, 40, 70, 300, 600]


def coefficients(n_rows, width, dtype, share):
    """Many of them 0: so that some rows, and some vectors of tables, have none at all."""
    random = np.random.default_rng(n_rows)
    t = random.normal(size=(n_rows, width)) * (random.uniform(size=(n_rows, width)) < share)
    t[1::3] = 0
    t[0, width // 2] = 1
    return t.astype(dtype)


def guarded(table):
    """A copy with NaN before and behind it, and a function that tells whether those are still there."""
    around = np.full(table.size + 64, np.nan, dtype=table.dtype)
    inside = around[32:-32].reshape(table.shape)
    inside[:] = table
    return inside, lambda: np.isnan(around[:32]).all() and np.isnan(around[-32:]).all()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
class TestManyTables:
    @pytest.mark.parametrize(
        ("degree", "name", "widths"), [(1, "gaussian", [2, 26]), (3, "sequence", MANY), (4, "gaussian", [5, 40, 300])]
    )
    def test_dot_and_add_equal_the_reference(self, instruction_set, dtype, how, degree, name, widths):
        for width in widths:
            few_columns(degree, name, dtype).check_dot(width, how)
            few_columns(degree, name, dtype).check_add(width, how)

    def test_each_table_has_the_result_that_it_has_alone(self, instruction_set, dtype, how):
        case = few_columns(3, "gaussian", dtype)
        expansion_map, Phi = case.maps[1]
        rows, rounding = stored(case.X, how), reference.rounding(case.X, case.kernel, case.expansion.n_slots)
        for width in MANY:
            table = np.random.default_rng(width).normal(size=(case.expansion.n_slots, width)).astype(dtype)
            t = coefficients(len(case.X), width, dtype, 0.5)
            together = dot(rows, expansion_map, table), add(rows, expansion_map, table, t)
            for k in {0, width // 2, width - 1}:
                one, of_one = np.ascontiguousarray(table[:, k : k + 1]), np.ascontiguousarray(t[:, k : k + 1])
                alone = dot(rows, expansion_map, one), add(rows, expansion_map, one, of_one)
                terms = np.abs(Phi) @ np.abs(one), np.abs(one) + np.abs(Phi).T @ np.abs(of_one)
                for several, single, sums in zip(together, alone, terms, strict=True):
                    assert_sums_agree(several[:, k : k + 1], single, sums, rounding)

    @pytest.mark.parametrize("share", [0.02, 0.4])
    def test_add_equals_the_reference_where_most_coefficients_are_zero(self, instruction_set, dtype, how, share):
        case = few_columns(3, "gaussian", dtype)
        expansion_map, features = case.maps[1]
        for width in (2, 5, 8, 26, 300, 600):
            table = np.random.default_rng(width).normal(size=(case.expansion.n_slots, width)).astype(dtype)
            for n_rows in (1, 8, 45):
                t, Phi = coefficients(n_rows, width, dtype, share), features[:n_rows]
                result = add(stored(case.X[:n_rows], how), expansion_map, table, t)
                terms = np.abs(table) + np.abs(Phi).T @ np.abs(t)
                tolerance = reference.rounding(case.X, case.kernel, n_rows)
                assert_sums_agree(result, table + Phi.T @ t.astype(np.float64), terms, tolerance)
                untouched = ~t.any(axis=0)
                assert np.array_equal(result[:, untouched], table[:, untouched])

    def test_nothing_beside_the_tables_is_read_or_written(self, instruction_set, dtype, how):
        case, random = few_columns(3, "gaussian", dtype), np.random.default_rng(0)
        for width in MANY:
            for n_rows in (3, 8, 37):
                rows = stored(case.X[:n_rows], how)
                table, alone = guarded(random.normal(size=(case.expansion.n_slots, width)).astype(dtype))
                t, t_alone = guarded(random.normal(size=(n_rows, width)).astype(dtype))
                out, out_alone = guarded(t)
                _core.dot(rows.core, case.expansion.features, 0, n_rows, table, out, rows.scratch())
                _core.add(rows.core, case.expansion.features, 0, n_rows, table, t, rows.scratch())
                assert np.isfinite(out).all() and np.isfinite(table).all()
                assert alone() and t_alone() and out_alone()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("storage", ["array", "csr"])
@pytest.mark.parametrize(("d", "width"), [(270, 3), (30, 300)])
def test_so_many_slots_of_several_tables_that_they_are_taken_in_pieces(instruction_set, dtype, storage, d, width):
    long_case(d, 2, dtype).check_dot(width, (storage, True))
    long_case(d, 2, dtype).check_add(width, (storage, True))


@lru_cache
def few_columns(degree, name, dtype):
    """So many rows that several of the largest groups are walked dense, and a rest."""
    X = np.concatenate([mixed_rows({1: 13, 3: 6, 4: 5}[degree], dtype, seed) for seed in range(4)])
    return Case(X[:75], reference.all_kernels(degree)[name])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_expand_finds_slots_far_beyond_32_bits(instruction_set, dtype, degree):
    d = 100_000
    columns = [[], [0], [d - 1], [0, 1, 2, 3, 70], [5, 2000, 2900], [0, 1, 65_535, 65_536, d - 2, d - 1]]
    columns += [[1000, *range(90_000, 90_009)]]
    X = sparse.lil_array((len(columns), d), dtype=dtype)
    for i, row in enumerate(columns):
        for k, j in enumerate(row):
            X[i, j] = 0.5 + k / 8
    kernel = reference.kernel_of("gaussian", degree, 0.2)
    expansion = expansion_of(d, kernel)
    X = check_rows(X)
    tolerance = reference.rounding(X.toarray(), kernel)
    for x, (slots, values) in zip(X.toarray(), expand(Rows(X), expansion), strict=True):
        expected_slots, expected = reference.row_features(nonzeros(x), kernel)
        assert slots.tolist() == expected_slots
        assert_sums_agree(values, expected, expected, tolerance)


def test_expand_finds_the_last_slots_that_64_bits_can_number(instruction_set):
    degree = 8
    d = 100
    while comb(d + 1 + degree, degree) < 2**63:
        d += 1
    kernel = reference.kernel_of("exponential", degree, 0.5)
    x = {0: 0.5, d - 2: 1.5, d - 1: 2.0}
    X = np.zeros((1, d))
    for j, value in x.items():
        X[0, j] = value
    slots, values = expand(stored(X, ("csr", False)), expansion_of(d, kernel))[0]
    expected_slots, expected = reference.row_features(x, kernel)
    assert expected_slots[-1] == comb(d + degree, degree) - 1 > 2**62
    assert slots.tolist() == expected_slots
    assert_sums_agree(values, expected, expected, reference.rounding(X, kernel))


@pytest.mark.parametrize("degree", [40, 170])
@pytest.mark.parametrize("how", STORED)
def test_the_highest_degrees_are_exact(instruction_set, degree, how):
    case = Case(np.array([[0.0], [0.5], [-3.0], [12.0]]), reference.kernel_of("gaussian", degree, 0.5))
    case.check_dot(1, how)
    case.check_add(1, how)
    case.check_expand(how[0], np.int64)


def test_high_degrees_are_exact_in_single_precision(instruction_set):
    # 7^60 is beyond float32; the feature 7^60 / sqrt(60!) is not.
    X = np.array([[7.0, 0.0], [0.5, 3.0]], dtype=np.float32)
    Case(X, reference.kernel_of("gaussian", 60, 0.5)).check_expand("array", np.int64)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_rows_that_underflow_have_features_of_exactly_zero(instruction_set, dtype, how, degree):
    d = 6
    huge = 1e37 if dtype == np.float32 else 1e307
    X = np.zeros((10, d), dtype=dtype)
    X[0] = huge
    X[1, 2] = huge
    X[2, :3] = [-huge, huge, 1]
    X[3, 5] = 60.0
    X[4] = 1e5
    X[9, 0] = 0.5  # the only row with features
    expansion = Expansion(d, degree=degree, gamma=0.5)
    rows = stored(X, how)
    for expansion_map in (expansion.bare, expansion.features):
        table = np.ones((expansion.n_slots, 1), dtype=dtype)
        margins = dot(rows, expansion_map, table)[:, 0]
        assert (margins[:5] == 0).all()
        assert np.isfinite(margins).all() and (margins[5:] > 0).all()
        t = np.ones((10, 1), dtype=dtype)
        t[5:] = 0
        assert (add(rows, expansion_map, np.zeros_like(table), t) == 0).all()
    for i, (slots, values) in enumerate(expand(rows, expansion)):
        assert len(slots) == comb(np.count_nonzero(X[i]) + degree, degree)
        assert (values == 0).all() if i < 5 else (values > 0).all()


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("width", [1, 3, 4, 26])
def test_results_do_not_depend_on_how_rows_are_cut_into_passes(instruction_set, dtype, how, width):
    random = np.random.default_rng(1)
    X = (random.normal(size=(45, 12)) * (random.uniform(size=(45, 12)) < 0.7)).astype(dtype)
    rows, expansion = stored(X, how), Expansion(12, degree=4, gamma=0.1)
    table = random.normal(size=(expansion.n_slots, width)).astype(dtype)
    t = random.normal(size=(45, width)).astype(dtype)
    for cuts in ([8, 16, 24, 32, 40], [16], [1, 2, 3], [7, 13, 13, 44], list(range(1, 45))):
        for expansion_map in (expansion.bare, expansion.features):
            assert np.array_equal(dot(rows, expansion_map, table, cuts), dot(rows, expansion_map, table))
            whole = add(rows, expansion_map, table, t)
            assert np.array_equal(add(rows, expansion_map, table, t, cuts), whole)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("how", STORED)
@pytest.mark.parametrize("width", [1, 3])
def test_known_factors_stand_for_those_of_the_rows(instruction_set, dtype, how, width):
    """The Gaussian kernel's features without s(x) are those of the exponential kernel, which have no factor."""
    X, random = mixed_rows(9, dtype), np.random.default_rng(0)
    gaussian, exponential = (reference.all_kernels(3)[name] for name in ("gaussian", "exponential"))
    expansion, Phi = expansion_of(9, gaussian), basis(9, 3).features(X, exponential)
    rows, table = stored(X, how), random.normal(size=(Phi.shape[1], width)).astype(dtype)
    rows.know_factors(expansion)
    assert np.allclose(rows.core.factor, np.exp(-gaussian.gamma * (X.astype(np.float64) ** 2).sum(axis=1)))
    known = random.uniform(size=len(X))
    own = known.copy()
    known[7], own[7] = 0.0, rows.core.factor[7]  # computed when the row is walked
    rows.core.set_factor(known)
    tolerance = reference.rounding(X, exponential, Phi.shape[1])
    Phi = own[:, None] * Phi
    assert_sums_agree(
        dot(rows, expansion.features, table), Phi @ table.astype(np.float64), np.abs(Phi) @ np.abs(table), tolerance
    )
    assert rows.twin().factor is known
    with pytest.raises(ValueError, match="belong"):
        rows.core.set_factor(known[1:])


@pytest.mark.parametrize("dtype", REALS)
def test_renumbered_columns_are_walked_as_if_stored_so(instruction_set, dtype):
    random = np.random.default_rng(2)
    X = mixed_rows(12, dtype)
    columns, which = np.array([3, 5, 10, 0, 1, 4, 9, 11]), np.array([4, 0, 18, 7, 7, 2])
    X[:, [2, 6, 7, 8]] = 0
    expansion = Expansion(8, degree=4, gamma=0.2, kernel="polynomial", coef0=0.5)
    table, t = (random.normal(size=(n, 1)).astype(dtype) for n in (expansion.n_slots, 6))
    part = stored(X, ("csr", False)).part(which, columns, 3)
    written = stored(X[which][:, columns], ("csr", False))
    assert (part.n_rows, part.n_columns) == (6, 8)
    for expansion_map in (expansion.bare, expansion.features):
        exact = 64 * np.finfo(dtype).eps  # the norm is summed up in another order
        assert np.allclose(dot(part, expansion_map, table), dot(written, expansion_map, table), rtol=exact, atol=exact)
        back = [add(rows, expansion_map, table, t) for rows in (part, written)]
        assert np.allclose(*back, rtol=exact, atol=exact)
    for (slots, values), (expected_slots, expected) in zip(
        expand(part, expansion), expand(written, expansion), strict=True
    ):
        assert np.array_equal(slots, expected_slots)
        assert np.allclose(values, expected, rtol=exact, atol=0)


@given(st.data())
def test_slots_of_reordered_columns_are_those_of_the_same_monomials(data):
    d, degree = data.draw(st.integers(1, 7)), data.draw(st.integers(2, 5))
    columns = np.array(data.draw(st.permutations(range(d)))[: data.draw(st.integers(1, d))])
    whole, small = Expansion(d, degree=degree, gamma=1.0), Expansion(len(columns), degree=degree, gamma=1.0)
    first = data.draw(st.integers(0, len(columns)))
    last = data.draw(st.integers(first + 1, len(columns) + 1))
    begin, end = small.ranks[-1, [first, last]]
    slots = np.full(end - begin, -1)
    own = np.concatenate([[0], columns + 1]).astype(np.int32)
    _core.own_slots(small.bare, own, whole.ranks, first, last, slots)
    for slot, found in zip(range(begin, end), slots, strict=True):
        assert found == whole.slot_of({int(columns[j]): e for j, e in small.powers_of(slot).items()})


@pytest.mark.parametrize("how", STORED)
def test_matrices_without_rows_or_columns_are_walked(instruction_set, how):
    for shape in [(0, 5), (3, 0), (0, 0)]:
        rows = stored(np.zeros(shape), (how[0], how[1] and shape[1] > 0))
        expansion = Expansion(shape[1], degree=3, gamma=1.0)
        table = np.full((expansion.n_slots, 1), 2.0)
        assert np.array_equal(dot(rows, expansion.features, table), np.full((shape[0], 1), 2.0))
        t = np.ones((shape[0], 1))
        expected = table.copy()
        expected[0] += shape[0]
        assert np.array_equal(add(rows, expansion.features, table, t), expected)
        assert [(s.tolist(), v.tolist()) for s, v in expand(rows, expansion)] == [([0], [1.0])] * shape[0]


def test_tables_that_do_not_belong_to_the_rows_are_refused():
    X = np.ones((4, 3))
    rows, expansion = stored(X, ("array", False)), Expansion(3, degree=2, gamma=1.0)
    scratch = rows.scratch()
    table, out = np.zeros((10, 1)), np.zeros((4, 1))
    with pytest.raises(ValueError, match="not there"):
        _core.dot(rows.core, expansion.bare, 0, 5, table, np.zeros((5, 1)), scratch)
    with pytest.raises(ValueError, match="not there"):
        _core.dot(rows.core, expansion.bare, 0, 4, table, out[:3], scratch)
    with pytest.raises(ValueError, match="not there"):
        _core.add(rows.core, expansion.bare, -1, 2, table, out, scratch)
    with pytest.raises(ValueError, match="shape"):
        _core.dot(rows.core, expansion.bare, 0, 4, table[:9], out, scratch)
    with pytest.raises(ValueError, match="shape"):
        _core.add(rows.core, expansion.bare, 0, 4, table, np.zeros((4, 2)), scratch)
    with pytest.raises(ValueError, match="shape"):
        _core.weigh(expansion.features, 0, 5, table, scratch)
    with pytest.raises(ValueError, match="belong together"):
        _core.dot(rows.core, Expansion(4, degree=2, gamma=1.0).bare, 0, 4, np.zeros((15, 1)), out, scratch)
    with pytest.raises(ValueError, match="belong together"):
        _core.dot(rows.core, expansion.bare, 0, 4, table.astype(np.float32), out.astype(np.float32), scratch)
    with pytest.raises(ValueError, match="scratch"):
        _core.dot(rows.core, expansion.bare, 0, 4, table, out, scratch[:10])
    with pytest.raises(ValueError, match="place does not belong"):
        rows.core.set_place(np.zeros(3, np.int32), 0, 3)
    own, slots = np.arange(4, dtype=np.int32), np.zeros(10, np.int64)
    for arguments in [(own[:3], 0, 4, slots), (own, 0, 4, slots[:9]), (own, 0, 5, slots), (own, 2, 2, slots[:0])]:
        with pytest.raises(ValueError, match="slots"):
            _core.own_slots(expansion.bare, arguments[0], expansion.ranks, *arguments[1:])


def test_unknown_instruction_sets_are_refused():
    with pytest.raises(ValueError, match="'mmx' is not usable here"):
        _core.use_instruction_set("mmx")


def test_the_best_usable_instruction_set_is_in_use():
    assert _core.instruction_set() == _core.instruction_sets()[0]
    assert _core.instruction_sets()[-1] == "baseline"


@given(st.data())
def test_dot_and_add_are_adjoint(data):
    """<Phi u, t> = <u, Phi' t>."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    d, degree = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5))
    width = data.draw(st.sampled_from(WIDTHS))
    kernel = reference.all_kernels(degree)[data.draw(st.sampled_from(KERNELS))]
    random = np.random.default_rng(seed)
    X = random.normal(size=(11, d)) * (random.uniform(size=(11, d)) < data.draw(st.sampled_from([0.2, 0.6, 1.0])))
    rows = stored(X, data.draw(st.sampled_from(STORED)))
    expansion = expansion_of(d, kernel)
    expansion_map = expansion.bare if data.draw(st.booleans()) else expansion.features
    u, t = random.normal(size=(expansion.n_slots, width)), random.normal(size=(11, width))
    forward = (dot(rows, expansion_map, u) * t).sum(axis=0)
    back = (u * add(rows, expansion_map, np.zeros_like(u), t)).sum(axis=0)
    terms = (dot(stored(np.abs(X), STORED[0]), expansion_map, np.abs(u)) * np.abs(t)).sum(axis=0)
    assert_sums_agree(forward, back, terms, 2 * reference.rounding(X, kernel, 11 * expansion.n_slots))
