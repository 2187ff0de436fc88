"""Training on streams: the model depends on the rows and their order alone, memory on neither; errors come through."""

import _thread
import gzip
import lzma
import re
import shutil
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import reference
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import taylorkern
from taylorkern import TaylorSVC, TaylorSVR, _core
from taylorkern._stream import chunks as _chunks
from taylorkern._stream.chunks import Ahead, checked, chunks
from taylorkern._train.dual import Dual
from taylorkern._train.primal import Pegasos
from taylorkern._train.problem import Problem
from taylorkern.stream import ShardFolder, SvmlightFiles, TableFiles, write_shards

SOLVERS = ("dual", "pegasos", "adagrad")
CHUNK = 256


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """So that few rows make several chunks."""
    monkeypatch.setattr(_chunks, "CHUNK_ROWS", CHUNK)


@pytest.fixture(autouse=True)
def no_reader_is_left():
    yield
    assert not readers()


def readers():
    return [thread for thread in threading.enumerate() if thread.name == "taylorkern reader"]


def data(n_rows=1000, seed=0):
    """Rows for which two columns decide together."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    X[:, 3] *= random.uniform(size=n_rows) < 0.3
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0, 1, -1)
    return X, y


def cut(X, y, *sizes):
    """Batches of these sizes, again and again."""
    batches, at = [], 0
    while at < len(y):
        size = sizes[len(batches) % len(sizes)]
        batches.append((X[at : at + size], y[at : at + size]))
        at += size
    return batches


CASES = {
    "two classes": (TaylorSVC, {}, lambda X, y: y),
    "three classes": (TaylorSVC, {"loss": "squared_hinge"}, lambda X, y: y + 5 * (X[:, 2] > 1)),
    "crammer_singer": (
        TaylorSVC,
        {"multi_class": "crammer_singer"},
        lambda X, y: np.array(["a", "b", "c"])[y + (y < 0)],
    ),
    "class weights": (TaylorSVC, {"class_weight": {1: 2.0, -1: 0.5}}, lambda X, y: y),
    "labels": (TaylorSVC, {"loss": "log_loss"}, lambda X, y: np.column_stack([y > 0, X[:, 0] > 0]).astype(int)),
    "cells": (TaylorSVC, {"n_cells": 3, "n_partitions": 2}, lambda X, y: y),
    "axes": (TaylorSVC, {"n_axes": 2}, lambda X, y: y),
    "numbers": (TaylorSVR, {}, lambda X, y: X[:, 0] * X[:, 1] + 3),
    "squared errors": (TaylorSVR, {"loss": "squared_error"}, lambda X, y: X[:, :2] * X[:, 1:3] + 3),
}


# What the model is.


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_models_do_not_depend_on_how_rows_are_cut(kind, solver, case):
    estimator, parameters, target = CASES[case]
    X, y = data()
    X, y = kind(X), target(X, y)
    model = estimator(solver=solver, gamma=0.1, random_state=0, **parameters)
    whole = model.fit_stream([(X, y)], epochs=3)
    table, certificate = whole._table.copy(), repr(getattr(whole, "certificate_", None))
    assert whole._table.any() and whole.n_iter_ == 3
    for sizes in ((1, 30, 500), (CHUNK,), (CHUNK + 1, 7)):
        again = model.fit_stream(cut(X, y, *sizes), epochs=3)
        assert np.array_equal(again._table, table)
        assert repr(getattr(again, "certificate_", None)) == certificate


class ChunkByChunk(np.random.RandomState):
    """A random generator that permutes the rows of each chunk by themselves."""

    def permutation(self, rows):
        firsts = range(0, rows, CHUNK)
        order = [first + super(ChunkByChunk, self).permutation(min(CHUNK, rows - first)) for first in firsts]
        return np.concatenate(order)


class ShuffledByChunk(Problem):
    """The same for rows that are shuffled."""

    def shuffled(self, random, rows=None):
        order = np.arange(self.n_rows, dtype=np.int32)
        for first in range(0, self.n_rows, CHUNK):
            part = order[first : first + CHUNK]
            _core.shuffle(part, random.randint(0, 2**32, len(part), dtype=np.uint32))
        return self.together(order)


class Unshrunk(Dual):
    """In memory, with all rows in every epoch, as in a stream."""

    def _choose(self, among, gap):
        pass


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("in_memory", [Unshrunk, Pegasos])
def test_epochs_over_a_stream_are_those_in_memory_in_the_same_order(in_memory, case):
    estimator, parameters, target = CASES[case]
    if case == "class weights" or (in_memory is Pegasos and "squared" in parameters.get("loss", "")):
        pytest.skip("in memory, weights are divided by their mean and first steps depend on all rows")
    X, y = data()
    y = target(X, y)
    solver = "dual" if in_memory is Unshrunk else "pegasos"
    if case in ("cells", "axes"):
        pytest.skip("rows are shifted, and the generator has drawn the cells before")
    model = estimator(solver=solver, gamma=0.1, C=3.0, shift=None, random_state=7, **parameters)
    if estimator is TaylorSVR:
        model.set_params(center=False)
    model.fit_stream(cut(X, y, 100), epochs=4)

    y = model._check_y(y)
    problem = model._problem(X, y, None, model._meaning(), model._expansion, None)
    problem.__class__ = ShuffledByChunk
    oracle = in_memory(problem, ChunkByChunk(7), 0.0)
    for _ in range(4):
        oracle.epoch()
    assert np.array_equal(model._table, model._to_model(oracle.model(), model._meaning()))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_stream_of_one_chunk_is_trained_as_rows_in_memory(solver, normalize):
    X, y = data(CHUNK)
    model = TaylorSVC(solver=solver, normalize=normalize, max_iter=1, random_state=0)
    stream = TaylorSVC(solver=solver, normalize=normalize, random_state=0).fit_stream([(X, y)])
    if solver == "adagrad":
        assert np.array_equal(stream.monomial_coef_, model.partial_fit(X, y, classes=[-1, 1]).monomial_coef_)
        return
    model.fit(X, y)
    assert np.array_equal(stream.monomial_coef_, model.monomial_coef_)
    for name in ("primal", "dual", "exact_interval", "sampled_interval", "theorem1"):
        expected = pytest.approx(getattr(model.certificate_, name), rel=1e-9, nan_ok=name == "theorem1")
        assert getattr(stream.certificate_, name) == expected
    assert np.isnan(stream.certificate_.theorem1) == normalize


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("solver", ["dual", "pegasos"])
@pytest.mark.parametrize("weights", [None, {1: 3.0, -1: 0.5}])
def test_the_certificate_is_about_all_rows(solver, weights, normalize):
    X, y = data()
    known = {"gamma": 0.1, "C": 2.0, "normalize": normalize, "class_weight": weights, "random_state": 0}
    model = TaylorSVC(solver=solver, **known)
    model.fit_stream(cut(X, y, 90), epochs=5)
    omega = np.ones(len(y)) if weights is None else np.where(y > 0, 3.0, 0.5)
    losses = omega * np.maximum(0, 1 - y * model.decision_function(X))
    primal = np.sum(model.monomial_coef_**2) / (2 * model.C * len(y)) + losses.mean()
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(primal / omega.mean(), rel=1e-9)
    optimum = TaylorSVC(**known, shift=model.shift_, tol=1e-6, max_iter=5000).fit(X, y)
    low, high = optimum.certificate_.dual, optimum.certificate_.primal
    assert certificate.dual <= high * (1 + 1e-9) and low * (1 - 1e-9) <= certificate.primal
    assert certificate.gap >= 0
    asked = reference.Asked("hinge", y[:, None].astype(np.int8), omega[:, None])
    (low,), (high,), *_ = reference.optimum(asked, reference.gaussian(X, X, 0.1), 2.0, relative=1e-6)
    assert certificate.exact_interval[0] <= certificate.sampled_interval[0] <= high / omega.sum()
    assert certificate.exact_interval[1] == certificate.sampled_interval[1] >= low / omega.sum()
    assert normalize or certificate.exact_interval[1] == certificate.primal
    assert model.history_["primal"][-1] == certificate.primal and model.history_["dual"][-1] == certificate.dual


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_rows_in_memory_have_the_same_objective(solver, case):
    estimator, parameters, target = CASES[case]
    X, y = data()
    y = target(X, y)
    model = estimator(solver=solver, gamma=0.1, random_state=0, **parameters).fit_stream(cut(X, y, 90), epochs=3)
    stream = model.certificate_
    memory = model.certify(X, y)
    assert stream.primal == pytest.approx(memory.primal, rel=1e-9)
    assert stream.theorem1 == pytest.approx(memory.theorem1, rel=1e-9, nan_ok=True)
    assert stream.dual <= memory.primal and memory.dual <= stream.primal


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_epochs_come_nearer_to_the_optimum(solver):
    X, y = data()
    few, many = (
        TaylorSVC(solver=solver, gamma=0.1, random_state=0).fit_stream([(X, y)], epochs=epochs) for epochs in (1, 30)
    )

    def objective(model):
        return np.sum(model.monomial_coef_**2) / (2 * len(y)) + np.maximum(0, 1 - y * model.decision_function(X)).mean()

    best = TaylorSVC(gamma=0.1, shift=many.shift_, tol=1e-5, random_state=0).fit(X, y).certificate_.primal
    assert best * (1 - 1e-4) <= objective(many) < objective(few)
    assert objective(many) < 1.03 * best


def test_the_history_has_a_line_for_each_epoch():
    X, y = data()
    model = TaylorSVC(random_state=0).fit_stream([(X, y)], epochs=3)
    history = model.history_
    assert history["epoch"].tolist() == [1, 2, 3] and (np.diff(history["seconds"]) > 0).all()
    assert (np.diff(history["dual"]) > 0).all() and np.isfinite(history["primal_seen"]).all()
    assert np.isnan(history["primal"][:2]).all() and history["primal"][2] >= history["dual"][2]
    assert 0 <= model.waiting_ <= 1
    assert not hasattr(model.fit(X, y), "waiting_")


def test_waiting_is_the_share_of_time_spent_so():
    X, y = data()

    def slowly():
        for batch in cut(X, y, CHUNK):
            time.sleep(0.05)
            yield batch

    assert TaylorSVC(solver="adagrad", random_state=0).fit_stream(slowly, classes=[-1, 1]).waiting_ > 0.5


def test_classes_given_only_save_a_pass():
    X, y = data()
    passes = []

    def batches():
        passes.append(0)
        return iter(cut(X, y, 100))

    model = TaylorSVC(solver="adagrad", random_state=0)
    table = model.fit_stream(batches, epochs=2)._table
    assert model.classes_.tolist() == [-1, 1] and len(passes) == 3
    assert np.array_equal(model.fit_stream(batches, epochs=2, classes=[1, -1])._table, table) and len(passes) == 5
    assert TaylorSVC(random_state=0).fit_stream(batches, epochs=2).n_iter_ == 2 and len(passes) == 9


@pytest.mark.parametrize("case", ["two classes", "crammer_singer"])
def test_threads_change_no_bit(case):
    estimator, parameters, target = CASES[case]
    X, y = data()
    one, two = (
        estimator(n_jobs=n_jobs, random_state=0, **parameters).fit_stream([(X, target(X, y))], epochs=2)
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one._table, two._table)


def test_what_comes_after_a_stream(tmp_path):
    X, y = data()
    model = TaylorSVC(solver="adagrad", random_state=0).fit_stream([(X, y)], epochs=2)
    model.save(tmp_path / "model")
    loaded = taylorkern.load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    more, again = (one.partial_fit(X, y).decision_function(X) for one in (model, loaded))
    assert np.array_equal(more, again)
    assert model.certify(X, y).gap > 0
    assert TaylorSVC(random_state=0).fit_stream([(X, y)]).set_params(warm_start=True).fit(X, y).score(X, y) > 0.8


def test_memory_does_not_grow_with_the_stream():
    X, y = np.random.default_rng(0).normal(size=(CHUNK, 300)), data(CHUNK)[1]
    n_batches = 300
    tracemalloc.start()
    model = TaylorSVC(solver="adagrad", degree=1, random_state=0)
    model.fit_stream(lambda: ((X + i, y) for i in range(n_batches)), classes=[-1, 1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model._stream.n_seen == n_batches * CHUNK
    assert peak < 60 * X.nbytes  # some chunks, with memory to work with that is large beside such small ones


def test_what_does_not_fit_is_refused():
    X, y = data()
    for parameters, n_slots in (({"degree": 3}, 35), ({}, 5)):  # the degree that is chosen is 1 where nothing fits
        with pytest.raises(ValueError, match=f"a stream with {n_slots} monomials would take .* memory_limit"):
            TaylorSVC(**parameters, memory_limit=1000).fit_stream([(X, y)])


# Where rows come from.


def svmlight(folder, X, y, pack=None):
    path = folder / "rows.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    if pack:
        packed = folder / f"rows.svm.{pack}"
        with open(path, "rb") as plain, {"gz": gzip, "xz": lzma}[pack].open(packed, "wb") as file:
            shutil.copyfileobj(plain, file)
        return packed
    return path


@pytest.fixture
def fitted():
    """A model of rows in memory, and what trains another one on a source."""
    X, y = data()
    X = X.round(3)  # svmlight files have so many digits

    def fit(source):
        return TaylorSVC(solver="adagrad", random_state=0).fit_stream(source, epochs=2)

    return X, y, fit([(X, y)]), fit


@pytest.mark.parametrize("pack", [None, "gz", "xz"])
def test_svmlight_files(tmp_path, pack, fitted):
    X, y, _, fit = fitted
    expected = fit([(sparse.csr_array(X), y)])._table
    path = svmlight(tmp_path, X, y, pack)
    for source in (path, str(path), [path], SvmlightFiles(path, n_features=4, zero_based=False, batch_rows=77)):
        assert np.array_equal(fit(source)._table, expected)


def test_many_svmlight_files_by_a_pattern(tmp_path, fitted):
    X, y, _, fit = fitted
    for number, (some, labels) in enumerate(cut(X, y, 300)):
        dump_svmlight_file(some, labels, str(tmp_path / f"part-{number}"), zero_based=False)
    assert np.array_equal(fit(str(tmp_path / "part-*"))._table, fit([(sparse.csr_array(X), y)])._table)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_shards(tmp_path, kind, fitted):
    X, y, _, fit = fitted
    expected = fit([(kind(X), y)])._table
    write_shards(tmp_path / "npz", cut(kind(X), y, 300))
    assert np.array_equal(fit(tmp_path / "npz")._table, expected)
    for folder, save in (("packed", np.savez_compressed), ("npy", None)):
        (tmp_path / folder).mkdir()
        for number, (some, labels) in enumerate(cut(kind(X), y, 300)):
            arrays = {"y": labels}
            if sparse.issparse(some):
                arrays |= {"data": some.data, "indices": some.indices, "indptr": some.indptr, "shape": some.shape}
            else:
                arrays["X"] = some
            stem = str(tmp_path / folder / f"part-{number}")
            if save:
                save(stem + ".npz", **arrays)
            for name, array in {} if save else arrays.items():
                np.save(f"{stem}.{name}.npy", array)
        assert np.array_equal(fit(tmp_path / folder)._table, expected)
        assert [len(y) for _, y in ShardFolder(tmp_path / folder, batch_rows=200)] == [200, 100] * 3 + [100]


def test_shards_are_mapped_into_memory(tmp_path):
    X, y = data()
    write_shards(tmp_path, [(X, y)])
    some, labels = next(iter(ShardFolder(tmp_path)))
    assert isinstance(some, np.memmap) and isinstance(labels, np.memmap)
    assert np.array_equal(some, X[:8192])


def test_bad_shards_are_refused(tmp_path):
    X, y = data(5)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ShardFolder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="batch_rows must be an integer > 0; got 0"):
        ShardFolder(tmp_path, batch_rows=0)
    with pytest.raises(ValueError, match="neither .npz files nor"):
        TaylorSVC().fit_stream(tmp_path)
    (tmp_path / "a.npz").write_bytes(b"what is this")
    with pytest.raises(ValueError, match="a.npz is no .npz file"):
        TaylorSVC().fit_stream(tmp_path)
    np.savez(tmp_path / "a.npz", X=X)
    with pytest.raises(ValueError, match="a.npz has no array 'y'"):
        TaylorSVC().fit_stream(tmp_path)
    np.savez(tmp_path / "a.npz", X=X, y=y[:3])
    with pytest.raises(ValueError, match="a.npz has 5 rows, and 3 targets"):
        TaylorSVC().fit_stream(tmp_path)
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["a", 1, None, 2, 3], dtype=object))
    with pytest.raises(ValueError, match="a.npz holds Python objects in y.npy"):
        TaylorSVC().fit_stream(tmp_path)
    rows = {"data": np.ones(2), "indices": np.array([0, 1]), "y": y[:2]}
    np.savez(tmp_path / "a.npz", indptr=np.array([0, 1, 7]), **rows)
    with pytest.raises(ValueError, match="an indptr from 0 to 7 for 2 entries"):
        TaylorSVC().fit_stream(tmp_path)
    np.savez(tmp_path / "a.npz", indptr=np.array([0, 1, 2]), **rows | {"indices": np.array([0, -5])})
    with pytest.raises(ValueError, match="indices|index"):
        TaylorSVC().fit_stream(tmp_path)
    with pytest.raises(ValueError, match="is not empty"):
        write_shards(tmp_path, [(X, y)])


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tables(tmp_path, ending, fitted):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    X, y, expected, fit = fitted
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"]).assign(target=y)
    for number in range(4):
        part = frame[250 * number : 250 * (number + 1)]
        if number == 2:
            part = part[["target", "d", "c", "b", "a"]]  # columns go by their names
        path = tmp_path / f"part-{number}.{ending}"
        part.to_parquet(path) if ending == "parquet" else part.to_csv(path, index=False)
    model = fit(TableFiles(str(tmp_path / f"*.{ending}"), target="target", batch_rows=60))
    assert np.array_equal(model._table, expected._table)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    some = fit(TableFiles(str(tmp_path / f"*.{ending}"), target="target", columns=["b", "d"]))
    assert some.feature_names_in_.tolist() == ["b", "d"]
    with pytest.raises(ValueError, match="has no column 'goal'; it has"):
        fit(TableFiles(str(tmp_path / f"*.{ending}"), target="goal"))
    with pytest.raises(ValueError, match="TableFiles"):
        fit(str(tmp_path / f"*.{ending}"))


def test_csv_files_without_pyarrow(tmp_path, monkeypatch, fitted):
    pandas = pytest.importorskip("pandas")
    X, y, expected, fit = fitted
    pandas.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    for module in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    source = TableFiles(tmp_path / "rows.csv", target="y", batch_rows=60)
    assert np.array_equal(fit(source)._table, expected._table)
    with pytest.raises(ImportError, match="to read .*rows.parquet taylorkern needs pyarrow"):
        fit(TableFiles(tmp_path / "rows.parquet", target="y"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to read .*rows.csv taylorkern needs pandas"):
        fit(source)


def test_anything_that_gives_batches(fitted):
    X, y, expected, fit = fitted
    batches = cut(X, y, 100)

    class Source:
        def __iter__(self):
            return iter(batches)

    lists = [[some.tolist(), labels.tolist()] for some, labels in batches]
    with_gaps = [(X[:0], y[:0]), *batches, (X[:0], y[:0])]
    for source in (batches, tuple(batches), Source(), lambda: iter(batches), lambda: batches, lists, with_gaps):
        assert np.array_equal(fit(source)._table, expected._table)


def test_kinds_of_batches_may_be_mixed(fitted):
    X, y, _, fit = fitted
    X = X.astype(np.float32).astype(np.float64)
    first, *others = cut(X, y, 100)
    mixed = [first, *((kind(some), labels) for (some, labels), kind in zip(others, KINDS * 9, strict=False))]
    assert np.array_equal(fit(mixed)._table, fit([(X, y)])._table)


KINDS = [sparse.csr_array, sparse.coo_matrix, lambda X: X.astype(np.float32)]


def test_batches_that_come_once_are_enough_for_one_pass(fitted):
    X, y, *_ = fitted
    once = TaylorSVC(solver="adagrad", random_state=0).fit_stream(iter(cut(X, y, 100)), classes=[-1, 1])
    assert np.array_equal(once._table, TaylorSVC(solver="adagrad", random_state=0).fit_stream([(X, y)])._table)
    numbers = TaylorSVR(solver="adagrad", random_state=0).fit_stream(iter(cut(X, y, 100)))
    assert numbers.n_iter_ == 1
    for solver, arguments, n in (
        ("adagrad", {}, 2),
        ("adagrad", {"classes": [-1, 1], "epochs": 2}, 2),
        ("dual", {}, 3),
    ):
        with pytest.raises(ValueError, match=f"gone through once, and this training takes {n} passes"):
            TaylorSVC(solver=solver).fit_stream(iter(cut(X, y, 100)), **arguments)


# What goes wrong.


def test_what_is_wrong_with_a_source_is_said(tmp_path):
    X, y = data()
    batches = cut(X, y, 100)
    model = TaylorSVC(solver="adagrad", random_state=0)

    def refused(source, message, error=ValueError, **arguments):
        with pytest.raises(error, match=message):
            model.fit_stream(source, **arguments)
        assert not hasattr(model, "n_features_in_") and not readers()

    refused([], "the source has no rows")
    refused([(X[:0], y[:0])], "the source has no rows")
    refused([*batches, (X[:, :3], y)], "batch 10 of the source has 3 columns; the first had 4")
    refused([*batches, X], "batch 10 of the source is not a pair")
    refused([*batches, (X, y[:5])], "inconsistent numbers of samples")
    refused([*batches, (X * np.nan, y)], "NaN")
    refused([*batches, (X, np.full(len(y), 7))], r"y has the label .*7.*, which is not one of", classes=[-1, 1])
    refused([(X, np.ones(len(y)))], "The number of classes has to be greater than one")
    refused(7, "source must be paths of files, .*; got int", TypeError)
    refused(str(tmp_path / "none-*"), "no file is named like", FileNotFoundError)
    refused(batches, "epochs must be an integer > 0; got 0", epochs=0)
    (tmp_path / "bad").write_bytes(b"1 1:2\n-1 1:x\n")
    refused(tmp_path / "bad", re.escape("bad, line 2, column 6"))
    model.set_params(class_weight="balanced")
    refused(batches, "class_weight must be a dict or None for a stream; got 'balanced'")
    model.set_params(class_weight={1: 0.0})
    refused(batches, "class_weight must be > 0 for a stream")


def test_names_of_columns_have_to_stay():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="the columns of batch 1 of the source are not named as those of the first"):
        TaylorSVC().fit_stream([(frame, y), (frame.rename(columns={"a": "e"}), y)])
    with pytest.raises(ValueError, match="not named as"):
        TaylorSVC().fit_stream([(frame, y), (X, y)])


@pytest.mark.parametrize(("solver", "which"), [("dual", 2), ("dual", 5), ("adagrad", 2), ("adagrad", 4)])
@pytest.mark.parametrize("change", [-100, 100])
def test_a_source_that_gives_other_rows_in_a_later_pass_is_refused(solver, which, change):
    X, y = data(1100)
    passes = []

    def batches():
        passes.append(0)
        return iter([(X[:1000], y[:1000])] if len(passes) < which else [(X[: 1000 + change], y[: 1000 + change])])

    with pytest.raises(ValueError, match="the source gave"):
        TaylorSVC(solver=solver).fit_stream(batches, epochs=3)


def test_errors_of_the_source_reach_the_caller():
    X, y = data()

    def batches():
        yield X, y
        raise ZeroDivisionError("in the source")

    with pytest.raises(ZeroDivisionError, match="in the source"):
        TaylorSVC(solver="adagrad").fit_stream(batches, classes=[-1, 1])


def test_the_reader_is_ahead_and_not_too_far():
    given = []

    def items():
        for i in range(100):
            given.append(i)
            yield i

    with Ahead(items) as ahead:
        assert next(ahead) == 0
        deadline = time.monotonic() + 5
        while len(given) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)
        assert len(given) == 2 + _chunks.AHEAD
    assert not readers() and len(given) == 2 + _chunks.AHEAD


def test_sources_are_closed_when_training_ends_early():
    closed = []

    def items():
        try:
            yield from range(100)
        finally:
            closed.append(threading.current_thread().name)

    with Ahead(items) as ahead:
        next(ahead)
    assert closed == ["taylorkern reader"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_keeps_the_steps_and_leaves_no_thread(solver):
    X, y = data()
    passes = []

    def batches():
        passes.append(0)
        for i in range(10**6):
            if i == 8 and len(passes) == 2:
                _thread.interrupt_main()
            if i == 12 and len(passes) == 1:
                return
            time.sleep(0.005)  # so that all that was read is trained on before
            yield X, y

    model = TaylorSVC(solver=solver, gamma=0.1, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit_stream(batches)
    assert not readers()
    assert model.interrupted_ and not hasattr(model, "certificate_")
    assert np.isfinite(model.monomial_coef_).all() and model.score(X, y) > 0.7
    assert not model.fit_stream([(X, y)]).interrupted_


def test_ctrl_c_before_the_first_step_changes_nothing():
    X, y = data()

    def batches():
        _thread.interrupt_main()
        time.sleep(0.2)
        yield X, y

    model = TaylorSVC(solver="adagrad")
    with pytest.raises(KeyboardInterrupt):
        model.fit_stream(batches, classes=[-1, 1])
    assert not hasattr(model, "n_features_in_") and not readers()


def test_chunks_have_one_size():
    X, y = data(1000)
    made = list(chunks(checked(cut(X, y, 3, 400, 1), lambda X, y: (X, y)), digests=True))
    assert [chunk.X.shape[0] for chunk in made] == [CHUNK, CHUNK, CHUNK, 1000 - 3 * CHUNK]
    assert [(chunk.first, chunk.end) for chunk in made[:2]] == [(0, CHUNK), (CHUNK, 2 * CHUNK)]
    assert np.array_equal(np.concatenate([chunk.X for chunk in made]), X)
    again = list(chunks(checked([(X, y)], lambda X, y: (X, y)), digests=True))
    assert [chunk.digest for chunk in made] == [chunk.digest for chunk in again]
    assert len({chunk.digest for chunk in made}) == 4
