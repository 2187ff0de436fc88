"""TaylorFeatures keeps the contract of scikit-learn's transformers, and its features are the kernel's."""

import pickle
from functools import partial
from math import comb, inf, nan

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from taylorkern import TaylorFeatures, taylor_kernel
from taylorkern._data import memory as _memory
from taylorkern._data.expansion import passes


@parametrize_with_checks(
    [
        TaylorFeatures(),
        TaylorFeatures(degree=2, gamma="auto"),
        TaylorFeatures(degree=1, kernel="polynomial", coef0=0.5),
        TaylorFeatures(degree=2, kernel=[1.0, 0.0, 2.0], gamma=0.1),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


def sparse_data(n_rows=12, n_columns=8, density=0.4, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_columns)) * (random.uniform(size=(n_rows, n_columns)) < density)
    return X.astype(dtype)


# The features.


@pytest.mark.parametrize("name", reference.all_kernels(3))
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_equals_the_reference(name, degree, dtype):
    kernel = reference.all_kernels(degree)[name]
    X = sparse_data(n_columns=6, dtype=dtype)
    Phi = TaylorFeatures(**kernel.parameters).fit_transform(X)
    expected = reference.Basis(6, degree).features(X, kernel)
    assert Phi.dtype == dtype
    assert Phi.shape == expected.shape
    assert (np.abs(Phi.toarray() - expected) <= reference.rounding(X, kernel) * np.abs(expected)).all()


values = st.floats(-3, 3, width=32)


@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=values),
    degree=st.integers(1, 5),
    name=st.sampled_from(list(reference.all_kernels(1))),
    as_sparse=st.booleans(),
)
def test_inner_products_of_features_are_the_kernel(X, degree, name, as_sparse):
    """Phi Phi' = K~."""
    kernel = reference.all_kernels(degree)[name]
    rows = sparse.csr_array(X) if as_sparse else X
    Phi = TaylorFeatures(**kernel.parameters).fit_transform(rows)
    K = taylor_kernel(rows, **kernel.parameters)
    tolerance = 3 * reference.rounding(X, kernel, Phi.shape[1])
    assert (np.abs((Phi @ Phi.T).toarray() - K) <= tolerance * reference.kernel_terms(X, X, kernel)).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_slots_of_a_row_do_not_depend_on_the_columns_behind_it(seed, degree):
    X = sparse_data(seed=seed)
    wider = np.hstack([X, np.zeros((len(X), 7))])
    Phi = TaylorFeatures(degree=degree, gamma=0.4).fit_transform(X)
    Phi_wider = TaylorFeatures(degree=degree, gamma=0.4).fit_transform(wider)
    assert Phi_wider.shape[1] > Phi.shape[1]
    assert np.array_equal(Phi.indices, Phi_wider.indices)
    assert np.array_equal(Phi.indptr, Phi_wider.indptr)
    assert np.array_equal(Phi.data, Phi_wider.data)


def test_output_is_csr_with_sorted_indices_and_the_promised_number_of_entries():
    X = sparse_data()
    Phi = TaylorFeatures(degree=3).fit_transform(X)
    assert Phi.format == "csr"
    assert np.diff(Phi.indptr).tolist() == [comb(m + 3, 3) for m in (X != 0).sum(axis=1)]
    for row in Phi:
        assert (np.diff(row.indices) > 0).all()
    assert Phi.has_sorted_indices and Phi.has_canonical_format


@given(st.integers(0, 2**32 - 1))
def test_duplicate_and_unsorted_entries_give_the_dense_result(seed):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 7, size=5)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices, data = random.integers(0, 6, size=indptr[-1]), random.normal(size=indptr[-1])
    X = sparse.csr_array((data, indices, indptr), shape=(5, 6))
    dense = np.zeros((5, 6))
    np.add.at(dense, (np.repeat(np.arange(5), counts), indices), data)
    features = TaylorFeatures(degree=3, gamma=0.2).fit(dense)
    assert np.allclose(features.transform(X).toarray(), features.transform(dense).toarray(), rtol=1e-13, atol=0)
    assert np.array_equal(X.data, data) and np.array_equal(X.indices, indices) and np.array_equal(X.indptr, indptr)


def test_rows_that_underflow_become_zeros():
    X = np.array([[1e5, 1.0], [0.5, 0.0]])
    Phi = TaylorFeatures(degree=3, gamma=1.0).fit_transform(X).toarray()
    assert (Phi[0] == 0).all()
    assert Phi[1, 0] == pytest.approx(np.exp(-0.25), rel=1e-14)


# Slots, names, costs.


def test_attributes_say_what_was_fitted():
    features = TaylorFeatures(degree=4, gamma="auto").fit(np.ones((3, 5)))
    assert features.n_features_in_ == 5
    assert features.n_features_out_ == comb(9, 4)
    assert features.degree_ == 4
    assert features.gamma_ == 1 / 5
    assert not hasattr(features, "feature_names_in_")


def test_gamma_has_the_meaning_of_svc():
    X = sparse_data()
    expected = 1 / (X.shape[1] * X.var())
    assert TaylorFeatures(gamma="scale").fit(X).gamma_ == pytest.approx(expected, rel=1e-14)
    assert TaylorFeatures(gamma="scale").fit(sparse.csr_array(X)).gamma_ == pytest.approx(expected, rel=1e-12)
    assert TaylorFeatures(gamma="scale").fit(np.ones((3, 4))).gamma_ == 1.0
    assert TaylorFeatures(gamma="scale").fit(sparse.csr_array(np.ones((3, 4)))).gamma_ == 1.0
    assert TaylorFeatures(gamma="scale").fit(sparse.csr_array((3, 4))).gamma_ == 1.0
    assert TaylorFeatures(gamma="auto").fit(X).gamma_ == 1 / 8
    assert TaylorFeatures(gamma=0.25).fit(X).gamma_ == 0.25


def test_gamma_scale_is_the_same_for_dense_and_sparse_data_far_from_zero():
    # The variance is a millionth of a millionth of the mean square: their difference would be mostly rounding.
    X = 1000 + 0.001 * np.random.default_rng(0).normal(size=(50, 4))
    dense, as_csr = (TaylorFeatures(gamma="scale").fit(A).gamma_ for A in (X, sparse.csr_array(X)))
    assert as_csr == pytest.approx(dense, rel=1e-6)


def test_names_are_monomials_of_x0_x1():
    names = TaylorFeatures(degree=2).fit(np.eye(2)).get_feature_names_out()
    assert names.tolist() == ["1", "x0", "x0^2", "x1", "x0 x1", "x1^2"]
    assert names.dtype == object
    features = TaylorFeatures(degree=3).fit(np.eye(4))
    assert features.get_feature_names_out()[features.slot_of({0: 2, 3: 1})] == "x0^2 x3"


def test_names_use_the_columns_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"age": [1.0, 2.0], "height": [0.5, 0.0]})
    features = TaylorFeatures(degree=2).fit(X)
    expected = ["1", "age", "age^2", "height", "age height", "height^2"]
    assert features.get_feature_names_out().tolist() == expected
    assert features.get_feature_names_out(["age", "height"]).tolist() == expected
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        features.get_feature_names_out(["height", "age"])


def test_names_take_names_of_columns():
    features = TaylorFeatures(degree=1).fit(np.eye(2))
    assert features.get_feature_names_out(["a", "b"]).tolist() == ["1", "a", "b"]
    with pytest.raises(ValueError, match=r"number of features \(2\), got 3"):
        features.get_feature_names_out(["a", "b", "c"])


def test_names_are_refused_when_they_would_not_fit_and_never_made_by_themselves():
    X = sparse.csr_array(([1.0], ([0], [5])), shape=(1, 100_000))
    features = TaylorFeatures(degree=3).fit(X)
    assert features.transform(X).shape == (1, comb(100_003, 3))
    with pytest.raises(ValueError, match=f"{comb(100_003, 3)} feature names would take"):
        features.get_feature_names_out()
    small = TaylorFeatures(degree=2, memory_limit=1000).fit(np.eye(10))
    with pytest.raises(ValueError, match="66 feature names would take .* allowed by memory_limit"):
        small.get_feature_names_out()


def test_slot_of_and_powers_of_name_the_columns_of_the_output():
    X = np.array([[0.5, 2.0, -1.5]])
    features = TaylorFeatures(degree=3, gamma=0.5).fit(X)
    Phi = features.transform(X).toarray()[0]
    s = np.exp(-0.5 * (X**2).sum())
    for slot in range(features.n_features_out_):
        powers = features.powers_of(slot)
        assert features.slot_of(powers) == slot
        expected = s * np.prod([X[0, j] ** e / np.sqrt([1, 1, 2, 6][e]) for j, e in powers.items()])
        assert Phi[slot] == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match="more than the degree 3"):
        features.slot_of({0: 4})
    with pytest.raises(ValueError, match="slot 20 is outside 0 to 19"):
        features.powers_of(20)


def test_everything_asks_for_fit_first():
    for call in (
        lambda f: f.transform([[1.0]]),
        lambda f: f.get_feature_names_out(),
        lambda f: f.slot_of({0: 1}),
        lambda f: f.powers_of(0),
    ):
        with pytest.raises(NotFittedError):
            call(TaylorFeatures())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("degree", [1, 3])
def test_estimate_cost_is_what_transform_builds(dtype, make, degree):
    X = make(sparse_data(dtype=dtype))
    features = TaylorFeatures(degree=degree, memory_limit=10**9)
    before_fit = features.estimate_cost(X)
    Phi = features.fit(X).transform(X)
    cost = features.estimate_cost(X)
    assert cost == before_fit
    assert cost.n_slots == Phi.shape[1]
    assert cost.nonzeros == cost.operations == Phi.nnz
    assert cost.longest_row == np.diff(Phi.indptr).max()
    assert cost.bytes == Phi.data.nbytes + Phi.indices.nbytes + Phi.indptr.nbytes


def test_estimate_cost_builds_nothing():
    X = sparse.csr_array(np.ones((50, 300)))
    cost = TaylorFeatures(degree=8).estimate_cost(X)
    assert cost.nonzeros == 50 * comb(308, 8)
    assert cost.bytes == cost.nonzeros * 16 + 51 * 8


def test_estimate_cost_checks_what_transform_checks():
    features = TaylorFeatures().fit(np.ones((2, 3)))
    with pytest.raises(ValueError, match="X has 4 features, but TaylorFeatures is expecting 3"):
        features.estimate_cost(np.ones((2, 4)))
    with pytest.raises(ValueError, match="degree must be"):
        TaylorFeatures(degree=0).estimate_cost(np.ones((2, 4)))


@pytest.mark.parametrize(("d", "index"), [(2000, np.int32), (3000, np.int64)])
def test_indices_have_32_bits_where_that_is_enough(d, index):
    X = sparse.random_array((4, d), density=6 / d, rng=np.random.default_rng(0), format="lil")
    X[0, d - 1] = 1.0
    features = TaylorFeatures(degree=3).fit(X)
    assert (features.n_features_out_ < 2**31) == (index == np.int32)
    Phi = features.transform(X)
    assert Phi.indices.dtype == Phi.indptr.dtype == index
    assert Phi[[0]].indices.max() == features.n_features_out_ - 1
    for row in Phi:
        assert (np.diff(row.indices) > 0).all()
    present, columns = np.unique(Phi.indices, return_inverse=True)
    compact = sparse.csr_array((Phi.data, columns, Phi.indptr), shape=(4, len(present)))
    K = taylor_kernel(X, degree=3, gamma=features.gamma_)
    assert np.allclose((compact @ compact.T).toarray(), K, rtol=1e-12, atol=0)


# Types in, types out.


def test_sparse_matrices_become_matrices_and_sparse_arrays_become_arrays():
    X = sparse_data()
    features = TaylorFeatures(degree=2).fit(X)
    for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        for kind in ("matrix", "array"):
            given = getattr(sparse, f"{name}_{kind}")(X)
            out = features.transform(given)
            assert type(out) is getattr(sparse, f"csr_{kind}")
            assert np.array_equal(out.toarray(), features.transform(X).toarray())


def test_dense_input_gives_the_sparse_interface_that_scikit_learn_is_set_to():
    X = sparse_data()
    features = TaylorFeatures(degree=2).fit(X)
    assert sparse.issparse(features.transform(X))
    if "sparse_interface" in get_config():
        with config_context(sparse_interface="sparray"):
            assert type(features.transform(X)) is sparse.csr_array
        with config_context(sparse_interface="spmatrix"):
            assert type(features.transform(X)) is sparse.csr_matrix
    else:
        assert type(features.transform(X)) is sparse.csr_matrix


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, bool, np.float16, ">f8", ">f4", np.longdouble])
def test_other_numbers_are_computed_in_double_precision(dtype):
    X = np.array([[0, 1, 2], [1, 0, 1], [3, 1, 0]]).astype(dtype)
    features = TaylorFeatures(degree=2, gamma=0.1).fit(X)
    out = features.transform(X)
    assert out.dtype == np.float64
    assert np.array_equal(out.toarray(), features.transform(X.astype(np.float64)).toarray())


def test_single_precision_stays_single():
    X = sparse_data(dtype=np.float32)
    features = TaylorFeatures(degree=2).fit(X)
    assert features.transform(X).dtype == np.float32
    assert features.transform(sparse.csr_matrix(X)).dtype == np.float32
    assert features.transform(X.astype(np.float64)).dtype == np.float64


def test_scikit_learn_is_told_that_both_real_types_are_preserved():
    assert set(get_tags(TaylorFeatures()).transformer_tags.preserves_dtype) == {"float32", "float64"}
    assert get_tags(TaylorFeatures()).input_tags.sparse


def test_lists_and_data_frames_are_rows():
    X = sparse_data(n_rows=4, n_columns=3)
    features = TaylorFeatures(degree=2, gamma=0.5)
    expected = features.fit_transform(X).toarray()
    assert np.array_equal(features.fit_transform(X.tolist()).toarray(), expected)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(features.fit_transform(frame).toarray(), expected)
    assert features.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        features.transform(frame[["c", "b", "a"]])
    for rows in (X[:, :2], sparse.csr_array(X[:, :2])):  # names are forgotten with the columns that they were of
        features.fit(frame).fit(rows)
        assert not hasattr(features, "feature_names_in_") and features.n_features_in_ == 2


def test_polars_frames_are_rows():
    polars = pytest.importorskip("polars")
    X = sparse_data(n_rows=4, n_columns=3)
    features = TaylorFeatures(degree=2, gamma=0.5)
    expected = features.fit_transform(X).toarray()
    assert np.array_equal(features.fit_transform(polars.DataFrame(X, schema=["a", "b", "c"])).toarray(), expected)
    assert features.feature_names_in_.tolist() == ["a", "b", "c"]


def test_data_frames_of_integers_and_booleans_are_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 0, 2], "b": [True, False, True]})
    out = TaylorFeatures(degree=2, gamma=0.5).fit_transform(frame)
    expected = TaylorFeatures(degree=2, gamma=0.5).fit_transform(frame.to_numpy(dtype=float))
    assert np.array_equal(out.toarray(), expected.toarray())


@pytest.mark.parametrize("layout", ["fortran", "strided", "read-only", "misaligned"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_in_memory_gives_the_same_features(layout, dtype):
    X = sparse_data(dtype=dtype)
    given = X.copy()
    if layout == "fortran":
        given = np.asfortranarray(X)
    elif layout == "strided":
        given = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "read-only":
        given.flags.writeable = False
    else:
        given = np.frombuffer(b"x" + X.tobytes(), dtype=dtype, offset=1).reshape(X.shape)
    features = TaylorFeatures(degree=3).fit(X)
    assert np.array_equal(features.transform(given).toarray(), features.transform(X).toarray())


def test_read_only_sparse_matrices_are_rows():
    X = sparse.csr_array(sparse_data())
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    expected = TaylorFeatures().fit_transform(X.toarray())
    assert np.array_equal(TaylorFeatures(gamma="scale").fit(X.toarray()).transform(X).toarray(), expected.toarray())


# What scikit-learn does with estimators.


def test_pickled_and_cloned_estimators_do_the_same():
    X = sparse_data()
    features = TaylorFeatures(degree=2, gamma=0.3, kernel=[1.0, 2.0, 0.5]).fit(X)
    expected = features.transform(X).toarray()
    assert np.array_equal(pickle.loads(pickle.dumps(features)).transform(X).toarray(), expected)
    fresh = clone(features)
    assert fresh.get_params() == features.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    assert np.array_equal(fresh.fit_transform(X).toarray(), expected)


def test_fitting_again_forgets_the_first_data():
    features = TaylorFeatures(degree=2).fit(np.eye(2))
    features.set_params(degree=3).fit(np.eye(4))
    assert features.n_features_out_ == comb(7, 3) == features.transform(np.eye(4)).shape[1]


def test_a_failed_fit_changes_nothing():
    X = sparse_data()
    features = TaylorFeatures(degree=2, gamma=0.5).fit(X)
    expected = features.transform(X).toarray()
    with pytest.raises(ValueError, match="NaN"):
        features.fit(np.full((3, 5), nan))
    assert np.array_equal(features.transform(X).toarray(), expected)
    features.set_params(degree=0)
    with pytest.raises(ValueError, match="degree"):
        features.fit(np.ones((3, 5)))
    assert features.n_features_in_ == 8
    assert np.array_equal(features.transform(X).toarray(), expected)


def test_features_work_in_a_pipeline():
    X = np.random.default_rng(0).normal(size=(20, 3))
    pipeline = make_pipeline(StandardScaler(), TaylorFeatures(degree=2)).fit(X)
    assert pipeline.transform(X).shape == (20, 10)
    assert pipeline.get_feature_names_out()[4] == "x0 x1"


def test_pandas_output_is_refused_as_for_every_sparse_transformer():
    pytest.importorskip("pandas")
    features = TaylorFeatures(degree=2).set_output(transform="pandas")
    with pytest.raises(ValueError, match="sparse"):
        features.fit_transform(np.eye(3))


# Small and empty data.


def test_one_column_is_enough():
    X = np.array([[0.0], [2.0]])
    Phi = TaylorFeatures(degree=2, gamma=0.5).fit_transform(X).toarray()
    expected = [[1, 0, 0], np.exp(-2) * np.array([1, 2, 2**2 / np.sqrt(2)])]
    assert np.allclose(Phi, expected, rtol=1e-14, atol=0)


def test_empty_rows_have_the_constant_only():
    X = sparse.csr_array((3, 5))
    Phi = TaylorFeatures(degree=3).fit_transform(X)
    assert Phi.indptr.tolist() == [0, 1, 2, 3]
    assert Phi.indices.tolist() == [0, 0, 0]
    assert Phi.data.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("empty", [np.zeros((0, 4)), sparse.csr_array((0, 4)), sparse.csc_matrix((0, 4))])
def test_no_rows_give_no_features(empty):
    features = TaylorFeatures(degree=2).fit(np.eye(4))
    assert features.transform(empty).shape == (0, 15)
    assert features.transform(empty).nnz == 0
    assert features.estimate_cost(empty)[:3] == (15, 0, 0)


# What is refused.


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_nan_and_infinity_are_refused(bad, make):
    X = sparse_data()
    X[3, 2] = bad
    features = TaylorFeatures().fit(np.ones((2, 8)))
    with pytest.raises(ValueError, match="NaN|infinity"):
        TaylorFeatures().fit(make(X))
    with pytest.raises(ValueError, match="NaN|infinity"):
        features.transform(make(X))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 3)])
def test_other_than_two_dimensions_are_refused(shape):
    with pytest.raises(ValueError, match="[Ee]xpected 2D array|dim"):
        TaylorFeatures().fit(np.ones(shape))
    with pytest.raises(ValueError, match="[Ee]xpected 2D array|dim"):
        TaylorFeatures().fit(np.ones((2, 3))).transform(np.ones(shape))


def test_sparse_vectors_are_refused():
    with pytest.raises(ValueError, match="2 dimensions; got a sparse array of 1"):
        TaylorFeatures().fit(sparse.coo_array(np.ones(3)))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_another_number_of_columns_is_refused(make):
    features = TaylorFeatures().fit(np.ones((2, 3)))
    for n in (2, 4):
        with pytest.raises(ValueError, match=f"X has {n} features, but TaylorFeatures is expecting 3"):
            features.transform(make(np.ones((2, n))))


def test_nothing_to_fit_is_refused_as_in_scikit_learn():
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        TaylorFeatures().fit(np.ones((0, 3)))
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        TaylorFeatures().fit(np.ones((3, 0)))


def test_complex_numbers_and_words_are_refused():
    with pytest.raises(ValueError, match="Complex data not supported"):
        TaylorFeatures().fit(np.ones((2, 2)) * 1j)
    with pytest.raises(ValueError, match="could not convert"):
        TaylorFeatures().fit([["a", "b"]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"degree": 0}, "degree must be an integer from 1 to 170; got 0"),
        ({"degree": -1}, "got -1"),
        ({"degree": 2.5}, "got 2.5"),
        ({"degree": True}, "got True"),
        ({"degree": "3"}, "got '3'"),
        ({"degree": 171}, "got 171"),
        ({"gamma": 0}, "gamma must be a finite number > 0; got 0"),
        ({"gamma": -1}, "got -1"),
        ({"gamma": nan}, "got nan"),
        ({"gamma": inf}, "got inf"),
        ({"gamma": "foo"}, 'gamma must be "scale", "auto" or a number > 0; got \'foo\''),
        ({"gamma": None}, "got None"),
        ({"kernel": "cubic"}, "got 'cubic'"),
        ({"kernel": [1.0]}, "takes 4 kernel coefficients; got 1"),
        ({"kernel": [1.0, -1.0, 0.0, 0.0]}, "got -1.0 at position 1"),
        ({"kernel": "polynomial", "coef0": -1}, "coef0 must be a finite number >= 0; got -1"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        TaylorFeatures(**parameters).fit(np.eye(3))


def test_too_many_monomials_for_64_bits_are_refused_by_fit():
    X = sparse.csr_array((1, 100_000))
    with pytest.raises(ValueError, match=f"degree=5 on 100000 columns makes {comb(100_005, 5)} monomials"):
        TaylorFeatures(degree=5).fit(X)


def forbid_allocation(monkeypatch):
    """From now on large arrays of features cannot be made."""
    allocate = np.empty

    def small_only(shape, *args, **kwargs):
        assert np.prod(shape) < 10**6, "memory was asked for before the refusal"
        return allocate(shape, *args, **kwargs)

    monkeypatch.setattr(np, "empty", small_only)


def test_output_beyond_memory_limit_is_refused_before_it_is_allocated(monkeypatch):
    X = np.ones((1000, 30))
    features = TaylorFeatures(degree=3, memory_limit=1_000_000).fit(X)
    cost = features.estimate_cost(X)
    forbid_allocation(monkeypatch)
    message = (
        f"{cost.nonzeros} features of 1000 rows would take {cost.bytes} bytes .* 976.6 KiB allowed by memory_limit"
    )
    with pytest.raises(ValueError, match=message):
        features.transform(X)


def test_memory_limit_allows_exactly_what_the_estimate_says():
    X = sparse_data()
    cost = TaylorFeatures().estimate_cost(X)
    assert TaylorFeatures(memory_limit=cost.bytes).fit_transform(X).nnz == cost.nonzeros
    with pytest.raises(ValueError, match="allowed by memory_limit"):
        TaylorFeatures(memory_limit=cost.bytes - 1).fit_transform(X)


def test_output_beyond_free_memory_is_refused_before_it_is_allocated(monkeypatch):
    X = np.ones((1000, 30))
    features = TaylorFeatures(degree=3).fit(X)
    monkeypatch.setattr(_memory, "available_memory", lambda: 1_000_000)
    forbid_allocation(monkeypatch)
    with pytest.raises(ValueError, match="free on this machine"):
        features.transform(X)


def test_tables_of_ranks_beyond_free_memory_are_refused_too(monkeypatch):
    # One entry in one of many columns: the output is tiny, but the walk's table of ranks is not.
    X = sparse.csr_array(([1.0], ([0], [5])), shape=(1, 2_000_000))
    features = TaylorFeatures(degree=2).fit(X)
    monkeypatch.setattr(_memory, "available_memory", lambda: 1_000_000)
    forbid_allocation(monkeypatch)
    with pytest.raises(ValueError, match="free on this machine"):
        features.transform(X)


@pytest.mark.parametrize("limit", [0, -1, "1 GB", True, nan])
def test_wrong_memory_limits_are_refused(limit):
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes > 0 or None; got"):
        TaylorFeatures(memory_limit=limit).fit_transform(np.eye(3))


def test_rows_with_too_many_monomials_are_refused_with_the_numbers(monkeypatch):
    X = np.ones((2, 768))
    features = TaylorFeatures(degree=4, memory_limit=10**15).fit(X)
    forbid_allocation(monkeypatch)
    message = f"a row with 768 nonzeros has {comb(772, 4)} monomials of degree <= 4, more than the limit of {2**28}"
    with pytest.raises(ValueError, match=message + ".*the largest degree that fits is 3"):
        features.transform(X)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_n_jobs_does_not_change_a_bit(monkeypatch, make):
    monkeypatch.setattr("taylorkern.features.passes", partial(passes, worth=300))
    X = make(np.random.default_rng(0).normal(size=(200, 6)))
    one, *others = (TaylorFeatures(degree=3, n_jobs=n_jobs).fit_transform(X) for n_jobs in (None, 2, 5, -1))
    for other in others:
        assert np.array_equal(one.indptr, other.indptr)
        assert np.array_equal(one.indices, other.indices)
        assert np.array_equal(one.data, other.data)
    with pytest.raises(ValueError, match="n_jobs must be an integer or None; got 1.5"):
        TaylorFeatures(n_jobs=1.5).fit(X).transform(X)
