"""Everything that scikit-learn takes for rows becomes checked rows; what is broken never gets further."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taylorkern import (
    TaylorFeatures,
    TaylorOperator,
    TaylorSVC,
    _core,
    taylor_kernel,
)
from taylorkern._data import checks as _check
from taylorkern._data import memory as _memory
from taylorkern._data import rows as _rows
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.memory import available_memory, check_memory
from taylorkern._data.rows import Rows, dot_rows
from taylorkern._data.threads import cut_evenly
from taylorkern._model import predictor as _predictor
from taylorkern.kernel import kernel_error, residual, taylor_operations

X0 = np.zeros((4, 5))
X0[[0, 0, 0, 2, 2, 3, 3], [0, 2, 4, 1, 3, 0, 4]] = [1.0, 2.0, 0.5, 3.0, 0.25, 1.5, 1.0]  # 3, 0, 2 and 2 nonzeros
FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


def every_way_in():
    """Everything public that takes rows."""
    fitted = TaylorFeatures(degree=2).fit(X0)
    return {
        "fit": TaylorFeatures(degree=2).fit,
        "transform": fitted.transform,
        "estimate_cost": fitted.estimate_cost,
        "TaylorOperator": lambda X: TaylorOperator(X, degree=2),
        "taylor_kernel": lambda X: taylor_kernel(X, degree=2),
        "taylor_kernel, second": lambda X: taylor_kernel(X0, X, degree=2),
        "residual": lambda X: residual(X, degree=2, gamma=1.0),
        "kernel_error": lambda X: kernel_error(X, degree=2, gamma=1.0),
        "taylor_operations": lambda X: taylor_operations(X, 2),
        "decision_function": TaylorSVC(degree=2).fit(X0, [0, 1, 0, 1]).decision_function,
    }


def compressed(X, fmt, index=np.int32, kind="array"):
    """A sparse matrix with arrays of its own that can be spoiled."""
    S = getattr(sparse, f"{fmt}_{kind}")(X)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    return S


# Broken matrices.


def spoil(S, **arrays):
    """Replace arrays, or single entries of them (a dict of position to value)."""
    for name, new in arrays.items():
        if isinstance(new, dict):
            array = getattr(S, name).copy()
            for position, value in new.items():
                array[position] = value
            setattr(S, name, array)
        else:
            setattr(S, name, new(getattr(S, name)))
    return S


BROKEN = [
    ({"indptr": {0: 1}}, r"indptr\[0\] is 1, not 0"),
    ({"indptr": {0: -1}}, r"indptr\[0\] is -1, not 0"),
    ({"indptr": {2: 1}}, "indptr falls from 3 at position 1 to 1"),
    ({"indptr": {1: 2**31 - 1}}, rf"indptr\[1\] is {2**31 - 1}, but only 7 entries are stored"),
    ({"indptr": {3: -(2**31)}}, rf"indptr falls from 3 at position 2 to {-(2**31)}"),
    ({"indptr": {4: 100}}, r"indptr\[4\] is 100, but only 7 entries are stored"),
    ({"indices": {0: -1}}, r"indices\[0\] is -1, outside 0 to 4"),
    ({"indices": {6: 5}}, r"indices\[6\] is 5, outside 0 to 4"),
    ({"indices": {3: 2**31 - 1}}, rf"indices\[3\] is {2**31 - 1}, outside 0 to 4"),
    ({"indices": {3: -(2**31)}}, rf"indices\[3\] is {-(2**31)}, outside 0 to 4"),
    ({"data": lambda a: a[:6]}, r"indptr\[4\] is 7, but only 6 entries are stored"),
    ({"data": lambda a: a[:0]}, r"indptr\[1\] is 3, but only 0 entries are stored"),
    ({"indices": lambda a: a[:2]}, r"indptr\[1\] is 3, but only 2 entries are stored"),
    ({"indptr": lambda a: a[:-1]}, "indptr has 4 entries, not 5"),
    ({"indptr": lambda a: np.append(a, a[-1])}, "indptr has 6 entries, not 5"),
    ({"indptr": lambda a: a[:0]}, "indptr has 0 entries, not 5"),
]


@pytest.mark.parametrize("way", every_way_in())
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize(("arrays", "message"), BROKEN)
def test_broken_csr_is_refused_with_the_cause_and_the_value(way, index, kind, arrays, message):
    S = spoil(compressed(X0, "csr", index, kind), **arrays)
    with pytest.raises(ValueError, match="X is a broken CSR matrix: " + message):
        every_way_in()[way](S)


@pytest.mark.parametrize("way", every_way_in())
@pytest.mark.parametrize(("arrays", "message"), BROKEN)
def test_broken_csc_is_refused_with_the_cause_and_the_value(way, arrays, message):
    # The transpose of CSR is CSC with the same arrays.
    S = spoil(compressed(X0.T.copy(), "csc"), **arrays)
    with pytest.raises(ValueError, match="X is a broken CSC matrix: " + message):
        every_way_in()[way](S)


@pytest.mark.parametrize("value", [2**40, -(2**40), 2**62])
def test_indices_beyond_32_bits_are_refused(value):
    for arrays in ({"indices": {2: value}}, {"indptr": {1: value}}):
        for fmt in ("csr", "csc"):
            S = spoil(compressed(X0, fmt, np.int64), **arrays)
            for way in every_way_in().values():
                with pytest.raises(ValueError, match=f"broken {fmt.upper()} matrix.*{value}"):
                    way(S)


@pytest.mark.parametrize("way", every_way_in())
@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"indptr": {0: 1}}, r"indptr\[0\] is 1, not 0"),
        ({"indptr": {1: 9}}, r"indptr\[1\] is 9, but only 4 entries are stored"),
        ({"indptr": lambda a: a[:-1]}, "indptr has 2 entries, not 3"),
        ({"indices": {1: 2}}, r"indices\[1\] is 2, outside 0 to 1"),
        ({"indices": {0: -7}}, r"indices\[0\] is -7, outside 0 to 1"),
        ({"data": lambda a: a[:1]}, "only 1 entries are stored"),
    ],
)
def test_broken_bsr_is_refused_with_the_cause_and_the_value(way, arrays, message):
    S = spoil(sparse.bsr_array(np.ones((4, 6)), blocksize=(2, 3)), **arrays)
    with pytest.raises(ValueError, match="X is a broken BSR matrix: .*" + message):
        every_way_in()[way](S)


@pytest.mark.parametrize("way", every_way_in())
@pytest.mark.parametrize(
    ("row", "col", "n", "message"),
    [
        ([0, -1], [0, 1], 2, "row indices reach from -1 to 0, outside 0 to 3"),
        ([0, 4], [0, 1], 2, "row indices reach from 0 to 4, outside 0 to 3"),
        ([0, 1], [0, 5], 2, "col indices reach from 0 to 5, outside 0 to 4"),
        ([0, 1], [-3, 1], 2, "col indices reach from -3 to 1, outside 0 to 4"),
        ([0, 1, 2], [0, 1, 2], 2, "row, col and data have lengths 3, 3 and 2"),
        ([0, 1, 2], [0, 1], 3, "row, col and data have lengths 3, 2 and 3"),
    ],
)
def test_broken_coo_is_refused_with_the_cause_and_the_value(way, row, col, n, message):
    S = sparse.coo_array((4, 5))
    S.coords = (np.array(row, dtype=np.int32), np.array(col, dtype=np.int32))
    S.data = np.ones(n)
    with pytest.raises(ValueError, match="X is a broken COO matrix: " + message):
        every_way_in()[way](S)


def test_lists_of_rows_with_columns_out_of_range_are_refused():
    for column in (5, -1, 10**9):
        S = sparse.lil_array(X0)
        S.rows[0] = [0, 2, column]
        with pytest.raises(ValueError, match=f"broken .*{column}, outside 0 to 4"):
            TaylorFeatures().fit(S)


@pytest.mark.parametrize("shape", [(7, 2), (7, 0), (7, 1)])
def test_values_of_more_than_one_dimension_are_refused(shape):
    S = compressed(X0, "csr")
    S.data = np.ones(shape)
    for way in every_way_in().values():
        with pytest.raises(ValueError, match="data"):
            way(S)


@pytest.mark.parametrize("name", ["indptr", "indices"])
@pytest.mark.parametrize("change", [lambda a: a + 0.5, lambda a: a[:, None]])
def test_index_arrays_that_are_not_rows_of_integers_are_refused(name, change):
    with pytest.raises(ValueError, match=f"broken CSR matrix.*{name}"):
        TaylorFeatures().fit(spoil(compressed(X0, "csr"), **{name: change}))


@pytest.mark.parametrize("shape", [(4, 0, 3), (4, 2, 0), (4, 6), (4, 2, 4)])
def test_broken_blocks_are_refused(shape):
    S = sparse.bsr_array(np.ones((4, 6)), blocksize=(2, 3))
    S.data = np.ones(shape)
    S.indices = np.zeros_like(S.indices)
    with pytest.raises(ValueError, match="broken BSR matrix"):
        TaylorFeatures().fit(S)


@pytest.mark.parametrize(("offsets", "shape"), [([0, 1, 2, 3], (1, 5)), ([0], (2, 5)), ([0], (5,))])
def test_broken_dia_is_refused(offsets, shape):
    S = sparse.dia_array(np.eye(4, 5))
    S.offsets, S.data = np.array(offsets, dtype=np.int32), np.ones(shape)
    with pytest.raises(ValueError, match="broken DIA matrix"):
        TaylorFeatures().fit(S)


@pytest.mark.parametrize("which", ["rows", "data"])
@pytest.mark.parametrize("at", [0, None])
def test_broken_lil_is_refused(which, at):
    """A list that is shorter than its partner, within a row or altogether: scipy would read what nobody wrote."""
    S = sparse.lil_array(X0)
    if at is None:
        setattr(S, which, getattr(S, which)[:2])
    else:
        getattr(S, which)[at] = getattr(S, which)[at][:1]
    with pytest.raises(ValueError, match="broken LIL matrix"):
        TaylorFeatures().fit(S)


@settings(max_examples=300)
@given(
    fmt=st.sampled_from(["csr", "csc"]),
    index=st.sampled_from([np.int32, np.int64]),
    indptr=st.one_of(
        st.lists(st.integers(-1, 6), min_size=3, max_size=5),
        st.lists(st.integers(0, 6), min_size=3, max_size=3).map(lambda ends: [0, *sorted(ends)]),
    ),
    indices=st.lists(st.one_of(st.integers(0, 2), st.integers(-1, 5)), max_size=7),
    n_values=st.integers(0, 7),
)
def test_any_index_arrays_are_either_refused_or_right(fmt, index, indptr, indices, n_values):
    data = np.arange(1.0, n_values + 1)
    S = getattr(sparse, f"{fmt}_array")((3, 3))
    S.indptr, S.indices, S.data = np.array(indptr, dtype=index), np.array(indices, dtype=index), data
    stored = min(len(indices), n_values)
    legal = (
        len(indptr) == 4
        and indptr[0] == 0
        and indptr == sorted(indptr)
        and indptr[-1] <= stored
        and all(0 <= j < 3 for j in indices[: indptr[-1]])
    )
    if not legal:
        with pytest.raises(ValueError, match=f"broken {fmt.upper()} matrix"):
            TaylorOperator(S, degree=2, gamma=0.01)
        return
    dense = np.zeros((3, 3))
    for i in range(3):
        for k in range(indptr[i], indptr[i + 1]):
            dense[i, indices[k]] += data[k]
    dense = dense if fmt == "csr" else dense.T
    parameters = {"degree": 2, "gamma": 0.01}
    expected = TaylorOperator(dense, **parameters) @ np.ones(10)
    assert np.allclose(TaylorOperator(S, **parameters) @ np.ones(10), expected, rtol=1e-13, atol=0)
    assert S.indices.tolist() == indices and S.indptr.tolist() == indptr and S.data.tolist() == data.tolist()


def test_too_many_columns_to_number_are_refused():
    with pytest.raises(ValueError, match=f"X has {2**31} columns; at most {2**31 - 2} can be numbered"):
        TaylorFeatures(degree=1).fit(sparse.csr_array((1, 2**31)))


# Legal matrices of all kinds.


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64, bool])
def test_every_sparse_format_gives_the_dense_rows(fmt, kind, dtype):
    X = X0.astype(dtype)
    S = check_rows(getattr(sparse, f"{fmt}_{kind}")(X))
    assert S.format == "csr"
    assert S.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert np.array_equal(S.toarray(), X.astype(np.float64))
    assert S.nnz == np.count_nonzero(X)
    core = Rows(S).core
    assert core.indices.dtype == np.int32 and core.indptr.dtype == np.int64


def test_rows_in_the_layout_of_c_are_not_copied():
    for dtype in (np.float32, np.float64):
        X = X0.astype(dtype)
        assert np.shares_memory(check_rows(X), X)
        S = sparse.csr_array(X)
        checked = check_rows(S)
        assert np.shares_memory(checked.data, S.data) and np.shares_memory(checked.indices, S.indices)


@pytest.mark.parametrize("way", ["fit", "transform", "TaylorOperator", "taylor_kernel"])
@pytest.mark.parametrize("kind", ["duplicate", "unsorted", "explicit zeros", "spare room", "64-bit indices", "strided"])
def test_untidy_csr_gives_the_dense_result_and_is_left_alone(way, kind):
    S = compressed(X0, "csr", np.int64 if kind == "64-bit indices" else np.int32)
    if kind == "duplicate":
        S.data = np.array([0.25, 2.0, 0.75, 0.5, 3.0, 0.25, 1.5, 1.0])
        S.indices = np.array([0, 2, 0, 4, 1, 3, 0, 4], dtype=np.int32)
        S.indptr = np.array([0, 4, 4, 6, 8], dtype=np.int32)
    elif kind == "unsorted":
        S.data, S.indices = S.data.copy(), S.indices.copy()
        S.data[:3], S.indices[:3] = S.data[2::-1].copy(), S.indices[2::-1].copy()
    elif kind == "explicit zeros":
        S.data, S.indices = np.append(S.data, [0.0, -0.0]), np.append(S.indices, [1, 2]).astype(np.int32)
        S.indptr = S.indptr + np.array([0, 0, 0, 0, 2], dtype=np.int32)
    elif kind == "spare room":
        S.data, S.indices = np.append(S.data, [9.0, 9.0]), np.append(S.indices, [-5, 77]).astype(np.int32)
    elif kind == "strided":
        S.data, S.indices = np.repeat(S.data, 2)[::2], np.repeat(S.indices, 3)[::3]
    before = [a.copy() for a in (S.data, S.indices, S.indptr)]
    v = np.arange(21.0)
    results = {
        "fit": lambda X: TaylorFeatures(degree=2, gamma="scale").fit(X).gamma_,
        "transform": lambda X: TaylorFeatures(degree=2, gamma=0.3).fit(X0).transform(X).toarray(),
        "TaylorOperator": lambda X: TaylorOperator(X, degree=2, gamma=0.3) @ v,
        "taylor_kernel": lambda X: taylor_kernel(X, degree=2, gamma=0.3),
    }
    assert np.allclose(results[way](S), results[way](X0), rtol=1e-12, atol=0)
    for array, copy in zip((S.data, S.indices, S.indptr), before, strict=True):
        assert np.array_equal(array, copy)
    # An explicit zero is no nonzero: it costs nothing.
    assert TaylorFeatures(degree=2).fit(X0).transform(S).nnz == TaylorFeatures(degree=2).fit(X0).transform(X0).nnz


def test_repeated_entries_that_overflow_are_refused():
    S = sparse.csr_array((np.array([1.5e308, 1.5e308]), np.array([2, 2]), np.array([0, 2])), shape=(1, 3))
    with pytest.raises(ValueError, match="repeated entries that add up to infinity"):
        TaylorOperator(S)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_shapes_without_rows_or_columns_are_rows(make):
    for shape in [(0, 3), (3, 0), (0, 0)]:
        rows = Rows(check_rows(make(np.zeros(shape))))
        assert (rows.n_rows, rows.n_columns) == shape
        expansion = Expansion(shape[1], degree=2, gamma=1.0)
        assert rows.monomials(expansion) == (shape[0], 1 if shape[0] else 0)
        assert list(rows.passes(expansion)) == ([(0, 3)] if shape[0] else [])
        assert rows.ends(expansion, np.int64).tolist() == list(range(shape[0] + 1))


# Counting and cutting.


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_monomials_are_counted_exactly(make):
    rows, expansion = Rows(check_rows(make(X0))), Expansion(5, degree=3, gamma=1.0)
    assert rows.histogram[:4].tolist() == [1, 0, 2, 1]
    assert rows.monomials(expansion) == (1 + 2 * 10 + 20, 20)
    assert rows.ends(expansion, np.int32).tolist() == [0, 20, 21, 31, 41]
    # Beyond 64 bits: Python's integers do not wrap around.
    wide = Rows(check_rows(make(np.ones((3, 400)))))
    assert wide.monomials(Expansion(400, degree=8, gamma=1.0))[0] == 3 * Expansion(400, degree=8, gamma=1.0).n_slots


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_are_surveyed_as_numpy_does_it(make, dtype):
    random = np.random.default_rng(0)
    for n, d in [(1, 1), (7, 5), (50, 8), (61, 39)]:
        X = (random.normal(size=(n, d)) * (random.uniform(size=(n, d)) < 0.6)).round(1).astype(dtype)
        rows, order = Rows(check_rows(make(X))), random.permutation(n).astype(np.int32)
        lengths = np.count_nonzero(X, axis=1)
        assert np.array_equal(rows.histogram, np.bincount(lengths, minlength=len(rows.histogram)))
        assert np.allclose(rows.squares()[0], (X.astype(np.float64) ** 2).sum(axis=1), rtol=1e-14)
        part, squares = rows.twin(), np.empty(n - n // 2)
        part.set_order(order)
        _core.squares(part, n // 2, n, squares)
        assert np.allclose(squares, (X[order[n // 2 :]].astype(np.float64) ** 2).sum(axis=1), rtol=1e-14)
        by, line = X[0].copy(), np.where(np.arange(d) % 3 == 0, -1, np.arange(d)).astype(np.int32)
        for step in (1, 3):
            some, (stored, equal), values = X[::step], np.zeros((2, d), np.int32), np.zeros((d, -(-n // step)), dtype)
            _core.count_columns(rows.core, step, by, stored, equal)
            there = some != 0 if make is sparse.csr_array else np.ones_like(some, dtype=bool)
            assert np.array_equal(stored, there.sum(axis=0)) and np.array_equal(
                equal, (there & (some == by)).sum(axis=0)
            )
            _core.take_columns(rows.core, step, line, values)
            assert np.array_equal(values, np.where(line < 0, 0, some).T)
    with pytest.raises(ValueError, match="not there"):
        _core.squares(rows.core, 0, 62, np.empty(62))
    with pytest.raises(ValueError, match="too few entries"):
        _core.count_nonzeros(rows.core, 0, 61, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="wrong length"):
        _core.count_columns(rows.core, 1, by, stored, equal[1:])
    with pytest.raises(ValueError, match="no line 38"):
        _core.take_columns(rows.core, 1, line, np.zeros((38, 61), dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_found_wherever_they_are(dtype):
    for n in (0, 1, 8, 21, 700):
        values = np.full(n, np.finfo(dtype).smallest_subnormal)
        assert _core.all_finite(values) and _core.all_finite(values, True)
        for at in range(0, n, 1 if n < 100 else 13):
            for odd in (np.nan, np.inf, -np.inf):
                values[at] = odd
                assert not _core.all_finite(values) and not _core.all_finite(values, True)
            values[at] = -0.0
            assert _core.all_finite(values) and not _core.all_finite(values, True)
            values[at] = np.finfo(dtype).max


def test_active_rows_are_kept_in_their_order():
    active = np.array([1, 0, 0, 7, 1], dtype=np.uint8)
    for rows in (None, np.array([4, 1, 3, 3, 0], np.int32), np.array([1, 2], np.int32), np.array([], np.int32)):
        given = np.arange(5) if rows is None else rows
        kept = np.empty(len(given), np.int32)
        n = _core.active_rows(rows, active, kept)
        assert kept[:n].tolist() == [i for i in given.tolist() if active[i]]
        if rows is not None:
            n = _core.active_rows(rows, active, rows)
            assert rows[:n].tolist() == kept[:n].tolist()
    for wrong in (5, -1):
        with pytest.raises(ValueError, match=f"no row {wrong}"):
            _core.active_rows(np.array([wrong], np.int32), active, np.empty(1, np.int32))
    with pytest.raises(ValueError, match="kept"):
        _core.active_rows(None, active, np.empty(4, np.int32))


def test_shuffled_rows_are_each_order_equally_often():
    random, seen = np.random.RandomState(0), {}
    for _ in range(2400):
        rows = np.arange(4, dtype=np.int32)
        _core.shuffle(rows, random.randint(0, 2**32, 4, dtype=np.uint32))
        seen[tuple(rows)] = seen.get(tuple(rows), 0) + 1
    assert len(seen) == 24 and sum((count - 100) ** 2 / 100 for count in seen.values()) < 50
    with pytest.raises(ValueError, match="more or fewer draws"):
        _core.shuffle(rows, np.zeros(3, np.uint32))


@settings(max_examples=300)
@given(
    st.lists(st.lists(st.integers(-1, 6), max_size=9), max_size=6),
    st.booleans(),
    st.sampled_from([np.int32, np.int64]),
)
def test_a_structure_is_judged_row_by_row(rows, rising, index):
    rows = [sorted(set(row)) for row in rows] if rising else rows
    indptr = np.cumsum([0, *map(len, rows)]).astype(index)
    indices = np.array([j for row in rows for j in row], dtype=index)
    problem, canonical = _core.check_structure(indptr, indices, 6, len(indices))
    outside = [k for k, j in enumerate(indices) if not 0 <= j < 6]
    assert problem == (f"indices[{outside[0]}] is {indices[outside[0]]}, outside 0 to 5" if outside else None)
    assert canonical == (not outside and all(row == sorted(set(row)) for row in rows))
    ends = [0, len(rows) // 3, len(rows) // 2, len(rows)]
    parts = [_core.check_structure(indptr, indices, 6, len(indices), *ends_of) for ends_of in pairwise(ends)]
    assert problem == next((told for told, _ in parts if told), None)
    assert canonical == all(rises for _, rises in parts)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_long_row_is_judged_to_its_end(index):
    n = 2**20 + 3  # some more than are counted at a time
    indptr, rising = np.array([0, n], dtype=index), np.arange(n, dtype=index)
    assert _core.check_structure(indptr, rising, n, n) == (None, True)
    for at in (1, 2**20 - 1, 2**20, 2**20 + 1, n - 1):
        indices = rising.copy()
        indices[at] -= 1
        assert _core.check_structure(indptr, indices, n, n) == (None, False)


@pytest.mark.parametrize("start", [-1, 4, 1])
def test_rows_of_a_structure_that_begin_anywhere_are_not_followed(start):
    indptr, indices = np.array([0, start, 3], dtype=np.int64), np.array([0, 1, 2])
    problem, _ = _core.check_structure(indptr, indices, 3, 3, 1, 2)
    told = {-1: "indptr falls from 0 at position 0 to -1", 4: "indptr[1] is 4, but only 3 entries are stored", 1: None}
    assert problem == told[start]
    with pytest.raises(ValueError, match="rows 1 to 3 are not there"):
        _core.check_structure(indptr, indices, 3, 3, 1, 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("at", [0, 500, 999])
def test_what_is_wrong_in_any_part_of_the_rows_is_found(at, n_jobs, monkeypatch):
    monkeypatch.setattr(_check, "LOOKED_AT", 64)
    monkeypatch.setattr(_predictor, "CHUNK", 100)
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 5)) * (random.uniform(size=(1000, 5)) < [1, 0.5, 0.5, 0.5, 1])
    X = sparse.csr_array(X)
    y, model = np.arange(1000) % 2, TaylorSVC(degree=2, tol=1.0, n_jobs=n_jobs)
    values = model.fit(X, y).decision_function(X)
    first, last = X.indptr[at], X.indptr[at + 1] - 1
    for name, change, told in (
        ("data", {first: np.nan}, "NaN"),
        ("data", {last: -np.inf}, "infinity"),
        ("indices", {last: 5}, "is 5, outside 0 to 4"),
        ("indptr", {at + 1: first - 1}, "indptr falls|but only|is -1"),
    ):
        for use in (model.decision_function, lambda X: model.fit(X, y)):
            with pytest.raises(ValueError, match=told):
                use(spoil(X.copy(), **{name: change}))
    unsorted = spoil(X.copy(), indices={first: 4, last: 0}, data={first: X.data[last], last: X.data[first]})
    assert np.array_equal(model.decision_function(unsorted), values)
    zero = X.copy()
    zero.data[last] = 0
    dense = zero.toarray()
    assert np.array_equal(model.decision_function(zero), model.decision_function(sparse.csr_array(dense)))
    dense[at, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.decision_function(dense)


@settings(max_examples=100)
@given(st.data())
def test_passes_cover_every_row_exactly_once(data):
    n = data.draw(st.integers(0, 60))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = random.normal(size=(n, 6)) * (random.uniform(size=(n, 6)) < random.uniform(size=(n, 1)))
    rows = Rows(check_rows(sparse.csr_array(X) if data.draw(st.booleans()) else X))
    rows.core.walk_dense = data.draw(st.booleans())
    expansion = Expansion(6, degree=data.draw(st.integers(1, 5)), gamma=1.0)
    budget = data.draw(st.sampled_from([1, 10, 100, 1000, 2**23]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_rows, "PASS_MONOMIALS", budget)
        passes = list(rows.passes(expansion))
    assert [first for first, _ in passes] == [0, *(last for _, last in passes)][: len(passes)]
    assert all(first < last for first, last in passes)
    assert (passes[-1][1] if passes else 0) == n
    costs = [expansion.monomials(m) for m in (X != 0).sum(axis=1)]
    for first, last in passes:
        if rows.core.walk_dense:
            assert first % 8 == 0
        else:
            assert last - first == 1 or sum(costs[first:last]) <= budget


@settings(max_examples=100)
@given(st.data())
def test_sorted_rows_have_their_last_columns_in_common(data):
    n, d = data.draw(st.integers(1, 80)), data.draw(st.sampled_from([1, 3, 20, 4095, 5000, 2**20]))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    some = np.sort(random.choice(d, min(d, 6), replace=False))
    X = sparse.csr_array(random.uniform(size=(n, len(some))) < random.uniform(size=(n, 1))).astype(np.float64)
    indptr = X.indptr.astype(np.int64)
    core = Rows(_rows.Csr(X.data, some.astype(np.int32)[X.indices], indptr, (n, d))).core
    columns = [core.indices[begin:end].tolist() for begin, end in pairwise(indptr)]
    rows = np.arange(n)
    if data.draw(st.booleans()):  # of some rows, in an order of their own
        rows = random.permutation(n)[: random.integers(1, n + 1)]
        core.set_order(rows.astype(np.int32))
    if data.draw(st.booleans()) and d < 100:  # of columns with new numbers, some of which are in front
        front = random.uniform(size=d) < 0.5
        place = np.argsort(np.argsort(~front, kind="stable")).astype(np.int32)
        core.set_place(place, int(front.sum()), d)
        columns = [sorted(place[row].tolist()) for row in columns]
    first, last = sorted(random.integers(0, len(rows) + 1, size=2).tolist())
    order = np.empty(last - first, dtype=np.int32)
    _core.sort_rows(core, first, last, order, np.empty((2, last - first), dtype=np.uint64))
    assert sorted(order) == sorted(rows[first:last])
    bits = d.bit_length()  # a column's number has at most 12 bits, and a key 24
    keys = [[(c + 1) >> max(bits - 12, 0) for c in columns[i][::-1]] for i in order]
    keys = [(*key, *(24 * [0]))[: 24 // min(bits, 12)] for key in keys]
    assert keys == sorted(keys)
    place_of = {row: i for i, row in enumerate(rows.tolist())}
    for (key, i), (other, j) in pairwise(zip(keys, order, strict=True)):
        assert key < other or place_of[i] < place_of[j]


def test_rows_that_cannot_be_sorted_are_refused():
    order, scratch = np.empty(4, dtype=np.int32), np.empty((2, 4), dtype=np.uint64)
    rows = Rows(check_rows(sparse.csr_array(X0))).core
    _core.sort_rows(rows, 0, 4, order, scratch)
    for first, last in [(-1, 3), (0, 5), (3, 2)]:
        with pytest.raises(ValueError, match=f"rows {first} to {last} are not there"):
            _core.sort_rows(rows, first, last, order, scratch)
    with pytest.raises(ValueError, match="not stored as they have to be"):
        _core.sort_rows(Rows(X0).core, 0, 4, order, scratch)
    for some, of in [(order[:3], scratch), (order, scratch[:1]), (order, scratch[:, :3].copy())]:
        with pytest.raises(ValueError, match="room"):
            _core.sort_rows(rows, 0, 4, some, of)


def test_orders_that_do_not_belong_to_the_rows_are_refused():
    rows, expansion = Rows(check_rows(sparse.csr_array(X0))), Expansion(5, degree=2, gamma=1.0)
    table, out, scratch = np.ones((expansion.n_slots, 1)), np.empty((2, 1)), rows.scratch()

    def dot(first, order, table=table, out=out, core=rows.core):
        _core.dot_in_order(core, expansion.features, first, np.array(order, dtype=np.int32), table, out, scratch)

    dot(1, [2, 1])
    for first, order, message in [(1, [3, 1], "row 3, outside 1 to 2"), (1, [0, 1], "row 0"), (3, [3, 4], "not there")]:
        with pytest.raises(ValueError, match=message):
            dot(first, order)
    with pytest.raises(ValueError, match="wrong shape"):
        dot(1, [2, 1], table=np.ones((3, 1)))
    with pytest.raises(ValueError, match="not there"):
        dot(1, [2, 1], out=np.empty((1, 1)))
    twin = rows.twin()
    twin.set_order(np.arange(4, dtype=np.int32))
    with pytest.raises(ValueError, match="in an order already"):
        dot(1, [2, 1], core=twin)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("width", [1, 3])
def test_products_are_the_same_when_rows_are_sorted(monkeypatch, dtype, n_jobs, width):
    random = np.random.default_rng(0)
    X = sparse.random_array((500, 40), density=0.2, rng=random, format="csr", dtype=dtype)
    rows, expansion = Rows(check_rows(X)), Expansion(40, degree=3, gamma=0.1)
    table = random.normal(size=(expansion.n_slots, width)).astype(dtype)
    plain = dot_rows(rows, expansion, expansion.features, table)
    monkeypatch.setattr(_rows, "SORT_FROM", 0)
    monkeypatch.setattr(_rows, "PASS_MONOMIALS", 300)
    visited = []
    monkeypatch.setattr(
        Rows, "sorted", lambda self, *which, found=Rows.sorted: visited.append(which) or found(self, *which)
    )
    assert np.array_equal(dot_rows(rows, expansion, expansion.features, table, n_jobs), plain)
    delivered = np.zeros_like(plain)

    def deliver(first, last, products):
        delivered[first:last] += products

    dot_rows(rows, expansion, expansion.features, table, n_jobs, deliver)
    assert np.array_equal(delivered, plain)
    assert len(visited) > 10 and sorted(visited)[0][0] == 0


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_cheaper_walk_is_chosen(make):
    for density, dense in [(0.05, False), (1.0, True)]:
        X = np.random.default_rng(0).uniform(0.1, 1, size=(20, 30))
        X[np.random.default_rng(1).uniform(size=X.shape) > density] = 0
        rows = Rows(check_rows(make(X)))
        rows.choose_walk(Expansion(30, degree=3, gamma=1.0))
        assert rows.core.walk_dense == dense


# Threads.


@settings(max_examples=100)
@given(st.data())
def test_a_line_is_cut_into_pieces_of_about_the_same_cost(data):
    cost = np.array(data.draw(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=30)))
    n = data.draw(st.integers(1, 5))
    cuts = cut_evenly(cost, n)
    assert cuts.dtype == np.int32 and len(cuts) == n + 1 and cuts[0] == 0 and cuts[-1] == len(cost)
    assert (np.diff(cuts) >= 0).all()
    for first, end in pairwise(cuts):  # one thing at most lies across a border
        assert cost[first:end].sum() <= cost.sum() / n + cost.max() + 1e-9


# Memory.


def test_free_memory_is_a_plausible_number_of_bytes():
    free = available_memory()
    if free is None:
        assert not os.path.exists("/proc/meminfo")
    else:
        assert isinstance(free, int)
        assert 2**20 < free < 2**50


def test_what_does_not_fit_is_refused_with_the_numbers(monkeypatch):
    with pytest.raises(ValueError, match=r"^it would take 2048 bytes \(2 KiB\), more than the 1000 B allowed by"):
        check_memory(2048, 1000, "it")
    monkeypatch.setattr(_memory, "available_memory", lambda: 5 * 2**30)
    with pytest.raises(ValueError, match="more than the 5 GiB free on this machine"):
        check_memory(5 * 2**30 + 1, None, "it")
    check_memory(5 * 2**30, None, "it")
    check_memory(10**30, 1e31, "it")
    monkeypatch.setattr(_memory, "available_memory", lambda: None)
    check_memory(2**62, None, "it")
