"""TaylorOperator multiplies with the features that TaylorFeatures would store."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import comb

import numpy as np
import pytest
import reference
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator, eigsh, lsmr, svds

from taylorkern import TaylorFeatures, TaylorOperator, _core
from taylorkern import operator as operator_module
from taylorkern._data import reorder as _reorder
from taylorkern._data.checks import check_rows
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows

MAKERS = [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.csc_array]


def data(n_rows=40, n_columns=7, density=0.6, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns)) * (random.uniform(size=(n_rows, n_columns)) < density)
    return X.astype(dtype)


@pytest.mark.parametrize("name", reference.all_kernels(3))
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("density", [0.2, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_equal_those_with_stored_features(name, make, density, dtype):
    for degree in (1, 2, 4):
        kernel = reference.all_kernels(degree)[name]
        X = data(density=density, dtype=dtype)
        Phi = reference.Basis(7, degree).features(X, kernel)
        op = TaylorOperator(make(X), **kernel.parameters)
        assert op.shape == Phi.shape
        assert op.dtype == dtype
        assert op.n_slots == comb(7 + degree, degree)
        random = np.random.default_rng(1)
        tolerance = 2 * reference.rounding(X, kernel, max(Phi.shape))
        for width in (None, 0, 1, 3):
            V = random.normal(size=Phi.shape[1] if width is None else (Phi.shape[1], width)).astype(dtype)
            T = random.normal(size=Phi.shape[0] if width is None else (Phi.shape[0], width)).astype(dtype)
            forward, back = op @ V, op.H @ T
            assert forward.dtype == back.dtype == dtype
            assert (np.abs(forward - Phi @ V) <= tolerance * (np.abs(Phi) @ np.abs(V))).all()
            assert (np.abs(back - Phi.T @ T) <= tolerance * (np.abs(Phi).T @ np.abs(T))).all()
            assert np.array_equal(op.T @ T, back)


def test_all_products_of_a_linear_operator_agree():
    X = data()
    op = TaylorOperator(X, degree=3, gamma=0.2)
    Phi = aslinearoperator(TaylorFeatures(degree=3, gamma=0.2).fit_transform(X))
    assert isinstance(op, LinearOperator)
    random = np.random.default_rng(2)
    v, V = random.normal(size=op.shape[1]), random.normal(size=(op.shape[1], 4))
    t, T = random.normal(size=op.shape[0]), random.normal(size=(op.shape[0], 4))
    for method, argument in [("matvec", v), ("rmatvec", t), ("matmat", V), ("rmatmat", T), ("matvec", v[:, None])]:
        result, expected = getattr(op, method)(argument), getattr(Phi, method)(argument)
        assert result.shape == expected.shape
        assert np.allclose(result, expected, rtol=1e-11, atol=1e-12)
    assert np.allclose((op @ op.H) @ t, Phi @ (Phi.H @ t), rtol=1e-11, atol=1e-12)


def test_products_with_complex_vectors_are_complex():
    X = data()
    op = TaylorOperator(X, degree=2, gamma=0.2)
    random = np.random.default_rng(3)
    v = random.normal(size=op.shape[1]) + 1j * random.normal(size=op.shape[1])
    t = random.normal(size=op.shape[0]) + 1j * random.normal(size=op.shape[0])
    assert np.allclose(op @ v, op @ v.real + 1j * (op @ v.imag), rtol=1e-13, atol=0)
    assert np.allclose(op.H @ t, op.H @ t.real + 1j * (op.H @ t.imag), rtol=1e-13, atol=0)
    assert np.iscomplexobj(op @ v) and np.iscomplexobj(op.H @ t)


def test_products_take_vectors_of_any_layout_and_leave_them_alone():
    X = data()
    op = TaylorOperator(X, degree=2, gamma=0.2)
    v = np.arange(op.shape[1])
    expected = op @ v.astype(np.float64)
    assert np.array_equal(op @ v, expected)
    assert np.array_equal(op @ v.astype(np.float32), expected)
    assert np.array_equal(op @ np.repeat(v, 2)[::2], expected)
    fixed = v.astype(np.float64)
    fixed.flags.writeable = False
    assert np.array_equal(op @ fixed, expected)
    V = np.asfortranarray(np.random.default_rng(0).normal(size=(op.shape[0], 3)))
    V.flags.writeable = False
    assert np.allclose(op.H @ V, np.stack([op.H @ column for column in V.T], axis=1), rtol=1e-12, atol=1e-13)
    V = np.random.default_rng(0).normal(size=(op.shape[0], 3))
    before = V.copy()
    op.H @ V
    assert np.array_equal(V, before)


def test_vectors_of_the_wrong_length_are_refused():
    op = TaylorOperator(data(), degree=2)
    with pytest.raises(ValueError, match="dimension mismatch|mismatch"):
        op @ np.ones(op.shape[1] + 1)
    with pytest.raises(ValueError, match="dimension mismatch|mismatch"):
        op.H @ np.ones(op.shape[0] - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [40, 60])
def test_high_degrees_neither_overflow_nor_vanish(dtype, degree):
    """7^60 is beyond float32 and 1 / sqrt(60!) below it; their product, the feature, is neither."""
    kernel = reference.kernel_of("gaussian", degree, 0.5)
    X = np.array([[7.0], [-6.0], [0.5], [0.0]], dtype=dtype)
    Phi = reference.Basis(1, degree).features(X, kernel)
    op = TaylorOperator(X, **kernel.parameters)
    v, t = np.ones(op.shape[1], dtype=dtype), np.ones(op.shape[0], dtype=dtype)
    tolerance = 2 * reference.rounding(X, kernel, degree)
    assert (np.abs(op @ v - Phi @ v) <= tolerance * np.abs(Phi).sum(axis=1)).all()
    smallest = np.finfo(dtype).smallest_normal
    assert (np.abs(op.H @ t - Phi.T @ t) <= tolerance * np.abs(Phi).sum(axis=0) + smallest).all()


# scipy's solvers.


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_lsmr_solves_least_squares(make):
    X = data(n_rows=120, n_columns=4)
    target = np.sin(X.sum(axis=1))
    Phi = TaylorFeatures(degree=2, gamma=0.2).fit_transform(X).toarray()
    solution = lsmr(TaylorOperator(make(X), degree=2, gamma=0.2), target, atol=1e-13, btol=1e-13, maxiter=2000)[0]
    expected = np.linalg.lstsq(Phi, target, rcond=None)[0]
    assert np.allclose(Phi @ solution, Phi @ expected, rtol=0, atol=1e-8)


def test_svds_finds_the_singular_values():
    X = data()
    Phi = TaylorFeatures(degree=3, gamma=0.2).fit_transform(X).toarray()
    u, s, vt = svds(TaylorOperator(X, degree=3, gamma=0.2), k=4, random_state=0)
    expected = np.linalg.svd(Phi, compute_uv=False)[:4]
    assert np.allclose(np.sort(s)[::-1], expected, rtol=1e-9, atol=0)
    assert np.allclose(Phi @ vt.T, u * s, rtol=0, atol=1e-8)


def test_eigsh_finds_the_eigenvalues_of_the_kernel():
    X = data()
    op = TaylorOperator(X, degree=3, gamma=0.2)
    found = eigsh(op @ op.H, k=4, return_eigenvectors=False, v0=np.ones(len(X)))
    K = reference.kernel_matrix(X, X, reference.kernel_of("gaussian", 3, 0.2))
    assert np.allclose(np.sort(found), np.linalg.eigvalsh(K)[-4:], rtol=1e-9, atol=0)


# Small and empty data.


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_matrices_without_rows_or_columns_have_products(make):
    op = TaylorOperator(make(np.zeros((0, 3))), degree=2)
    assert op.shape == (0, 10)
    assert (op @ np.ones(10)).shape == (0,)
    assert np.array_equal(op.H @ np.ones(0), np.zeros(10))
    op = TaylorOperator(make(np.zeros((3, 0))), degree=2)
    assert op.shape == (3, 1)
    assert np.array_equal(op @ np.array([2.0]), [2.0, 2.0, 2.0])
    assert np.array_equal(op.H @ np.ones(3), [3.0])
    op = TaylorOperator(make(np.zeros((0, 0))), degree=2)
    assert op.shape == (0, 1)
    assert np.array_equal(op.H @ np.ones(0), [0.0])


def test_one_column_is_enough():
    op = TaylorOperator([[2.0]], degree=2, gamma=0.5)
    assert np.allclose(op.H @ np.ones(1), np.exp(-2) * np.array([1, 2, 4 / np.sqrt(2)]), rtol=1e-14, atol=0)


# Memory.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_in_c_order_and_canonical_csr_are_not_copied(dtype):
    X = data(dtype=dtype)
    op = TaylorOperator(X)
    assert np.shares_memory(op._parts[0].rows.core.data, X)
    for index in (np.int32, np.int64):
        S = sparse.csr_array(X)
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
        op = TaylorOperator(S)
        assert np.shares_memory(op._parts[0].rows.core.data, S.data)
        if index == np.int32:
            assert np.shares_memory(op._parts[0].rows.core.indices, S.indices)
        else:
            assert np.shares_memory(op._parts[0].rows.core.indptr, S.indptr)


@pytest.mark.parametrize("make", MAKERS)
def test_the_data_is_not_changed(make):
    X = make(data())
    before = X.copy()
    op = TaylorOperator(X)
    op @ np.ones(op.shape[1])
    op.H @ np.ones(op.shape[0])
    for name in ("data", "indices", "indptr") if sparse.issparse(X) else ("real",):
        assert np.array_equal(getattr(X, name), getattr(before, name))


@pytest.mark.parametrize("storage", ["csr", "dense", "unsorted csr"])
def test_a_product_needs_little_more_than_the_table(storage):
    """Input, one table of n_slots numbers, and no more than 16 MB."""
    n, d = 100_000, 60
    random = np.random.default_rng(0)
    if storage == "dense":
        X = random.normal(size=(n, 20))
        copied = 0
    else:
        indices = np.sort(random.integers(0, d // 8, size=(n, 8)) + np.arange(8) * (d // 8), axis=1).astype(np.int32)
        X = sparse.csr_array((random.normal(size=8 * n), indices.ravel(), 8 * np.arange(n + 1)), shape=(n, d))
        copied = 0
        if storage != "csr":
            X.indices[:2] = X.indices[1::-1]
            copied = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    v, t = np.ones(comb(X.shape[1] + 3, 3)), np.ones(n)
    tracemalloc.start()
    try:
        op = TaylorOperator(X, degree=3, gamma=0.1)
        table = op.n_slots * 8
        assert tracemalloc.get_traced_memory()[1] <= copied + 16e6
        tracemalloc.reset_peak()
        op @ v
        assert tracemalloc.get_traced_memory()[1] <= copied + table + 16e6
        tracemalloc.reset_peak()
        op.H @ t
        assert tracemalloc.get_traced_memory()[1] <= copied + table + 16e6
    finally:
        tracemalloc.stop()


def test_products_beyond_memory_limit_are_refused_before_they_are_allocated():
    op = TaylorOperator(data(), degree=3, memory_limit=1000)
    assert (op @ np.ones((120, 2))).shape == (40, 2)
    assert (op.H @ np.ones(40)).shape == (120,)
    with pytest.raises(ValueError, match="an array of 120 x 2 numbers would take 1920 bytes .* by memory_limit"):
        op.H @ np.ones((40, 2))
    with pytest.raises(ValueError, match="an array of 40 x 4 numbers would take 1280 bytes .* by memory_limit"):
        op @ np.ones((120, 4))


def test_products_beyond_free_memory_are_refused():
    X = sparse.csr_array(([1.0], ([0], [5])), shape=(1, 20_000))
    op = TaylorOperator(X, degree=3)
    with pytest.raises(
        ValueError, match=f"an array of {comb(20_003, 3)} x 1 numbers would take .* free on this machine"
    ):
        op.H @ np.ones(1)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_products_do_not_depend_on_the_order_in_which_rows_are_visited(make):
    X = data(n_rows=300, n_columns=9)
    op = TaylorOperator(make(X), degree=3, gamma=0.1)
    v, t = np.random.default_rng(1).normal(size=220), np.random.default_rng(2).normal(size=(300, 2))
    before, before_transposed = op @ v, op.H @ t
    op._parts[0].rows.core.set_order(np.random.default_rng(3).permutation(300).astype(np.int32))
    assert np.array_equal(op @ v, before)
    assert np.allclose(op.H @ t, before_transposed, rtol=1e-12, atol=1e-14)
    for walk_dense in (False, True):
        op._parts[0].rows.core.walk_dense = walk_dense
        assert np.allclose(op @ v, before, rtol=1e-12, atol=1e-14)
        assert np.allclose(op.H @ t, before_transposed, rtol=1e-12, atol=1e-14)


def test_rows_are_sorted_by_their_last_columns_when_the_table_is_large(monkeypatch):
    X = sparse.random_array((200, 60), density=0.1, rng=np.random.default_rng(0), format="csr")
    assert TaylorOperator(X, degree=3)._parts[0].rows.core.order is None
    monkeypatch.setattr(operator_module, "SORT_FROM", 1000)
    order = TaylorOperator(X, degree=3)._parts[0].rows.core.order
    assert sorted(order) == list(range(200))
    last = [(*X[[i]].indices[::-1], -1, -1, -1)[:3] for i in order]
    assert all(tuple(a) <= tuple(b) for a, b in pairwise(last))


def one_hot(n_rows, sizes, dtype, seed=0):
    """Groups of columns of which each row has one, the last of each group most often; a few rows are empty."""
    random = np.random.default_rng(seed)
    groups = [np.eye(n)[n - 1 - np.minimum(random.geometric(0.6, n_rows) - 1, n - 1)] for n in sizes]
    X = np.hstack(groups) * random.uniform(0.5, 1.5, size=(n_rows, 1))
    X[::50] = 0
    return sparse.csr_array(X.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("sort_from", [0, 2**40])
def test_frequent_columns_have_a_table_of_their_own(monkeypatch, dtype, degree, sort_from):
    X = one_hot(800, [9, 5, 8, 7], dtype)
    plain = TaylorOperator(X, degree=degree, gamma=0.3)
    assert [part.reordering for part in plain._parts] == [None]
    monkeypatch.setattr(operator_module, "REORDER_FROM", 0)
    monkeypatch.setattr(operator_module, "SORT_FROM", sort_from)
    monkeypatch.setattr(_reorder, "SLOT_MONOMIALS", 1)
    monkeypatch.setattr(_reorder, "SLOT_COST", 0.5)
    monkeypatch.setattr(_reorder, "STEP", 50)
    op = TaylorOperator(X, degree=degree, gamma=0.3)
    frequent, *rest = op._parts
    assert frequent.reordering and frequent.rows.n_rows > 600
    assert [part.reordering for part in rest] == ([None] if degree > 2 else [])
    stored = np.concatenate([np.arange(800)[part.rows.stored(0, part.rows.n_rows)] for part in op._parts])
    assert sorted(stored) == list(range(800))
    random = np.random.default_rng(1)
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    for width in (1, 3):
        V, T = (random.normal(size=(n, width)).astype(dtype) for n in reversed(op.shape))
        assert np.allclose(op @ V, plain @ V, rtol=tolerance, atol=tolerance)
        assert np.array_equal(op @ np.asfortranarray(V), op @ V)
        assert np.allclose(op.H @ T, plain.H @ T, rtol=tolerance, atol=tolerance)
        threads = TaylorOperator(X, degree=degree, gamma=0.3, n_jobs=3)
        assert np.array_equal(threads @ V, op @ V)
        assert np.array_equal(threads.H @ T, op.H @ T)


def test_columns_stay_where_they_are_when_another_order_gains_nothing(monkeypatch):
    monkeypatch.setattr(operator_module, "REORDER_FROM", 0)
    X = one_hot(800, [9, 5, 8, 7], np.float64)
    ordered = X[:, np.argsort(-X.count_nonzero(axis=0), kind="stable")]
    for given, degree in [(X[:20], 3), (X[:0], 3), (X, 1), (X.toarray(), 3), (ordered.tocsr(), 2)]:
        assert [part.reordering for part in TaylorOperator(given, degree=degree)._parts] == [None]


def test_rows_with_too_many_monomials_are_refused():
    with pytest.raises(ValueError, match=f"a row with 768 nonzeros has {comb(772, 4)} monomials"):
        TaylorOperator(sparse.csr_array(np.ones((1, 768))), degree=4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 0}, "degree must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"kernel": "cubic"}, "kernel must be"),
        ({"kernel": "polynomial", "coef0": -2.0}, "coef0 must be"),
        ({"n_jobs": "two"}, "n_jobs must be an integer or None; got 'two'"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TaylorOperator(data(), **parameters)


@pytest.mark.parametrize("memory_limit", [0, -5, "1 GB", True])
def test_wrong_memory_limits_are_refused(memory_limit):
    with pytest.raises(ValueError, match="memory_limit must be"):
        TaylorOperator(data(), memory_limit=memory_limit) @ np.ones(120)


# Threads.


def half_done(start, result, attempts=20):
    """Whether this thread sees the result of another one between its first and its last entry.

    `start` runs in the other thread as a single call into C, which fills the result in order. If that call kept the
    interpreter's lock, this thread could only look before the first entry was written or after the last one was.
    """

    def begun():
        return result[0] != 0

    def ended():
        return result[-1] != 0

    for _ in range(attempts):
        result[...] = 0
        worker = threading.Thread(target=start)
        worker.start()
        seen = False
        while worker.is_alive() and not seen:
            seen = begun() and not ended()
        worker.join()
        assert begun() and ended()
        if seen:
            return True
    return False


@pytest.fixture(params=[False, True], ids=["sparse walk", "dense walk"])
def long_work(request):
    """Rows that take a good part of a second."""
    X = np.abs(data(n_rows=3000, n_columns=60, density=1.0)) / 10 + 0.1
    rows = Rows(check_rows(X))
    rows.core.walk_dense = request.param
    return rows, Expansion(60, degree=3, gamma=0.01)


def test_dot_releases_the_interpreter(long_work):
    rows, expansion = long_work
    table, out = np.ones((expansion.n_slots, 1)), np.empty((rows.n_rows, 1))
    scratch = rows.scratch()
    assert half_done(lambda: _core.dot(rows.core, expansion.bare, 0, rows.n_rows, table, out, scratch), out[:, 0])


def test_add_releases_the_interpreter(long_work):
    rows, expansion = long_work
    X = rows.X
    X[:-1, -1] = 0  # only the last row has the last slot
    rows = Rows(X)
    rows.core.walk_dense = long_work[0].core.walk_dense
    table, t = np.empty((expansion.n_slots, 1)), np.ones((rows.n_rows, 1))
    scratch = rows.scratch()
    assert half_done(lambda: _core.add(rows.core, expansion.bare, 0, rows.n_rows, table, t, scratch), table[:, 0])


def test_expand_releases_the_interpreter():
    rows, expansion = Rows(np.full((400, 60), 0.1)), Expansion(60, degree=3, gamma=0.01)
    ends = rows.ends(expansion, np.int64)
    slots, values = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1])
    scratch = rows.scratch()
    assert half_done(
        lambda: _core.expand(rows.core, expansion.features, 0, rows.n_rows, slots, values, scratch), values
    )


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_one_operator_serves_several_threads(make):
    X = make(data(n_rows=500, n_columns=15))
    op = TaylorOperator(X, degree=3, gamma=0.1)
    random = np.random.default_rng(0)
    vectors = [random.normal(size=op.shape[1]) for _ in range(16)]
    targets = [random.normal(size=op.shape[0]) for _ in range(16)]
    fresh = TaylorOperator(X, degree=3, gamma=0.1)
    with ThreadPoolExecutor(8) as pool:
        forward = list(pool.map(lambda v: fresh @ v, vectors))
        back = list(pool.map(lambda t: fresh.H @ t, targets))
    assert all(np.array_equal(a, op @ v) for a, v in zip(forward, vectors, strict=True))
    assert all(np.array_equal(a, op.H @ t) for a, t in zip(back, targets, strict=True))


def test_results_do_not_depend_on_the_length_of_a_pass(monkeypatch):
    for make in (np.asarray, sparse.csr_array):
        op = TaylorOperator(make(data(n_rows=400)), degree=3, gamma=0.1)
        v, t = np.linspace(-1, 1, op.shape[1]), np.linspace(-1, 1, op.shape[0])
        forward, back = op @ v, op.H @ t
        with monkeypatch.context() as patch:
            patch.setattr("taylorkern._data.rows.PASS_MONOMIALS", 300)
            op = TaylorOperator(make(data(n_rows=400)), degree=3, gamma=0.1)
            assert len(op._parts[0].passes) > 10
            assert np.array_equal(op @ v, forward)
            assert np.array_equal(op.H @ t, back)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_rows", [1, 400])
def test_n_jobs_does_not_change_a_bit(monkeypatch, make, n_rows):
    monkeypatch.setattr("taylorkern._data.rows.PASS_MONOMIALS", 300)
    X = make(data(n_rows=n_rows))
    one, *others = (TaylorOperator(X, degree=3, gamma=0.1, n_jobs=n_jobs) for n_jobs in (None, 2, 5, -1))
    random = np.random.default_rng(0)
    for width in (1, 4):
        V, T = (random.normal(size=(n, width)) for n in reversed(one.shape))
        for other in others:
            assert np.array_equal(other @ V, one @ V)
            assert np.array_equal(other.H @ T, one.H @ T)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_threads_share_the_monomials_evenly(make):
    random = np.random.default_rng(0)
    rare = random.uniform(size=(1500, 60)) < np.linspace(1, 0.02, 60) ** 2  # the last columns are mostly empty
    rows, expansion = Rows(make(random.normal(size=(1500, 60)) * rare)), Expansion(60, degree=3, gamma=0.1)
    rows.choose_walk(expansion, dense=False)
    features = TaylorFeatures(degree=3, gamma=0.1).fit_transform(rows.X)
    highest = np.searchsorted(expansion.ranks[3], features.indices, side="right") - 1
    for n in (1, 2, 5):
        shares = rows.shares(expansion, n)
        assert shares[0] == 0 and shares[-1] == 61 and len(shares) == n + 1
        if sparse.issparse(rows.X):
            parts = [np.mean((first <= highest) & (highest < end)) for first, end in pairwise(shares)]
            assert max(parts) < 1.5 / n
