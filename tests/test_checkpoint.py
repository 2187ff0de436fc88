"""Checkpoints: a training that was killed at any moment goes on to the same bits, or says why it can't."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy import sparse

from taylorkern import TaylorSVC, TaylorSVR
from taylorkern._model import checkpoint as _checkpoint
from taylorkern._model import safetensors as _safetensors
from taylorkern._stream import chunks as _chunks

SOLVERS = ("dual", "pegasos", "adagrad")
FILE = "checkpoint.safetensors"

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """So that few rows make several chunks."""
    monkeypatch.setattr(_chunks, "CHUNK_ROWS", 256)


class Killed(Exception):
    """Stands for a sudden end."""


@pytest.fixture
def killed(monkeypatch):
    """Lets a call be killed after its n-th checkpoint, as often as it takes until it is through; returns how often."""

    def run(call, after):
        count, times = [0], 0
        save = _checkpoint.Checkpoint.save

        def counted(self, state):
            save(self, state)
            count[0] += 1
            if count[0] % after == 0:
                raise Killed

        monkeypatch.setattr(_checkpoint.Checkpoint, "save", counted)
        while True:
            try:
                call()
            except Killed:
                times += 1
                continue
            finally:
                if times > 50:
                    raise AssertionError("it makes no progress")
            monkeypatch.setattr(_checkpoint.Checkpoint, "save", save)
            return times

    return run


def data(n_rows=1000, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0, 1, -1)


def known(model):
    """All that a training has made, but for times."""
    history = {name: values.tolist() for name, values in model.history_.items() if name != "seconds"}
    return (
        model._table.tobytes(),
        repr(history),
        repr(getattr(model, "certificate_", None)),
        None if model._stream is None else [np.asarray(part).tobytes() for part in model._stream],
        model.n_iter_,
    )


CASES = {
    "two classes": (TaylorSVC, {}, lambda X, y: np.array(["no", "yes"])[(y > 0).astype(int)]),
    "three classes": (TaylorSVC, {"loss": "squared_hinge"}, lambda X, y: y + 5 * (X[:, 2] > 1)),
    "joint": (TaylorSVC, {"loss": "log_loss", "multi_class": "multinomial"}, lambda X, y: y + 5 * (X[:, 2] > 1)),
    "cells": (TaylorSVC, {"n_cells": 3, "n_partitions": 2}, lambda X, y: y),
    "axes": (TaylorSVC, {"n_axes": 2, "gamma": 0.05}, lambda X, y: y),  # what is beyond the axes is little
    "numbers": (TaylorSVR, {"loss": "squared_error"}, lambda X, y: X[:, 0] * X[:, 1] + 3),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("after", [1, 3])
def test_fit_goes_on_to_the_same_bits(tmp_path, killed, after, solver, case):
    estimator, parameters, target = CASES[case]
    X, y = data(300)
    y = target(X, y)
    model = estimator(solver=solver, C=5.0, tol=1e-7, max_iter=8, random_state=0, **parameters)
    expected = known(model.fit(X, y))
    made = []

    def call():
        fresh = estimator(**model.get_params())
        made.append(fresh.fit(X, y, checkpoint=tmp_path / "of this", checkpoint_every=0))

    assert killed(call, after) >= 2
    assert known(made[0]) == expected
    assert os.listdir(tmp_path / "of this") == []


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("after", [1, 4])
def test_fit_stream_goes_on_to_the_same_bits(tmp_path, killed, after, solver, case):
    estimator, parameters, target = CASES[case]
    X, y = data()
    batches = [(sparse.csr_array(X[i : i + 100]), target(X, y)[i : i + 100]) for i in range(0, 1000, 100)]
    model = estimator(solver=solver, C=5.0, random_state=0, **parameters)
    expected = known(model.fit_stream(batches, epochs=3))
    made = []

    def call():
        fresh = estimator(**model.get_params())
        made.append(fresh.fit_stream(batches, epochs=3, checkpoint=tmp_path, checkpoint_every=0))

    assert killed(call, after) >= 2
    assert known(made[0]) == expected
    assert os.listdir(tmp_path) == []


def test_a_stream_goes_on_between_two_steps_of_the_regulariser(tmp_path, killed):
    """With many more monomials than a chunk walks, the regulariser comes once in several chunks."""
    X = sparse.random_array((1000, 60), density=0.07, rng=np.random.default_rng(0), format="csr")
    y = np.where(X.sum(axis=1) > 2, 1, -1)
    model = TaylorSVC(solver="adagrad", gamma=0.1, C=0.01, random_state=0)
    expected, made = known(model.fit_stream([(X, y)], epochs=3)), []
    assert model._stream.n_averaged == 1  # at the end

    def call():
        fresh = TaylorSVC(**model.get_params())
        made.append(fresh.fit_stream([(X, y)], epochs=3, checkpoint=tmp_path, checkpoint_every=0))

    assert killed(call, 2) >= 2
    assert known(made[0]) == expected


@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_and_warm_starts(tmp_path, killed, solver):
    X, y = data(300)
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], size=300)

    def begun():
        model = TaylorSVC(solver=solver, warm_start=True, tol=1e-7, max_iter=3, random_state=0)
        return model.fit(X, y, weight).set_params(C=4.0, max_iter=8)

    expected, made = known(begun().fit(X, y, weight)), []

    def call():
        made.append(begun().fit(X, y, weight, checkpoint=tmp_path, checkpoint_every=0))

    assert killed(call, 2) >= 2
    assert known(made[0]) == expected


@pytest.fixture
def left(tmp_path, monkeypatch):
    """A folder with the checkpoint of a training that was killed in its third epoch, or chunk."""

    def make(method, *data, **parameters):
        save = _checkpoint.Checkpoint.save
        count = []

        def stop(self, state):
            save(self, state)
            count.append(0)
            if len(count) == 2:
                raise Killed

        model = TaylorSVC(**{"tol": 1e-7, "max_iter": 8, "random_state": 0} | parameters)
        with monkeypatch.context() as patch:
            patch.setattr(_checkpoint.Checkpoint, "save", stop)
            with pytest.raises(Killed):
                getattr(model, method)(*data, checkpoint=tmp_path, checkpoint_every=0)
        assert os.listdir(tmp_path) == [FILE]
        return tmp_path

    return make


def test_other_data_or_parameters_are_refused_and_named(left):
    X, y = data(300)
    folder = left("fit", X, y)
    before = (folder / FILE).read_bytes()

    def refused(message, X=X, y=y, sample_weight=None, **parameters):
        model = TaylorSVC(**{"tol": 1e-7, "max_iter": 8, "random_state": 0} | parameters)
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(X, y, sample_weight, checkpoint=folder)
        assert "the checkpoint of another training" in str(caught.value) and str(folder) in str(caught.value)
        assert (folder / FILE).read_bytes() == before
        return str(caught.value)

    assert "; " not in refused("C was 1 and is 2.5", C=2.5)
    refused("C was 1 and is 2; .*max_iter was 8 and is 9", C=2, max_iter=9)
    refused("solver was 'dual' and is 'adagrad'", solver="adagrad")
    refused("random_state was 0 and is 1", random_state=1)
    refused("shift was 'auto' and is an array", shift=np.zeros(4))
    other = X.copy()
    other[299, 3] = np.nextafter(other[299, 3], 9)
    assert " y was" not in refused(r"X was an array of shape \(300, 4\) with digest .* and is an array", X=other)
    refused("X was", X=sparse.csr_array(X))
    refused("X was", X=X.astype(np.float32))
    refused("y was", y=-y)
    refused(r"sample_weight was None and is an array of shape \(300,\)", sample_weight=np.ones(300))
    with pytest.raises(ValueError, match="method was fit and is fit_stream"):
        TaylorSVC(tol=1e-7, max_iter=8, random_state=0).fit_stream([(X, y)], checkpoint=folder)
    with pytest.raises(ValueError, match="estimator was TaylorSVC and is TaylorSVR"):
        TaylorSVR(tol=1e-7, max_iter=8, random_state=0).fit(X, y, checkpoint=folder)
    # What changes no bit may change.
    model = TaylorSVC(tol=1e-7, max_iter=8, random_state=0, n_jobs=2, verbose=0, memory_limit=10**9)
    expected = known(TaylorSVC(tol=1e-7, max_iter=8, random_state=0).fit(X, y))
    assert known(model.fit(X, y, checkpoint=folder)) == expected and os.listdir(folder) == []


@pytest.mark.parametrize("solver", ["dual", "adagrad"])
def test_streams_of_other_rows_are_refused(left, solver):
    X, y = data()
    folder = left("fit_stream", [(X, y)], solver=solver)

    def refused(message, X=X, y=y, **arguments):
        model = TaylorSVC(tol=1e-7, max_iter=8, random_state=0, solver=solver)
        with pytest.raises(ValueError, match=message):
            model.fit_stream([(X, y)], checkpoint=folder, **arguments)
        assert os.listdir(folder) == [FILE]

    refused("epochs was 1 and is 2", epochs=2)
    refused("classes was None and is an array", classes=[-1, 1])
    for row, words in ((0, "the first rows of the source are not those"), (400, "the first 512 rows of the source")):
        other = X.copy()
        other[row] += 1
        refused(words, X=other)
        labels = y.copy()
        labels[row] *= -1
        refused(words, y=labels)
    refused("the source gave 300 rows, and 512 were trained on", X[:300], y[:300])
    other = X.copy()
    other[999] += 1
    refused("the source gave other rows than in the pass before", X=other)


def test_leftovers_are_swept(tmp_path):
    X, y = data(100)
    (tmp_path / ".taylorkern-0123456789abcdef.tmp").write_bytes(b"half of a file")
    (tmp_path / "mine").write_bytes(b"not ours")
    TaylorSVC(random_state=0).fit(X, y, checkpoint=tmp_path)
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("method", ["fit", "fit_stream"])
def test_a_full_disk_keeps_the_old_checkpoint_and_warns(tmp_path, monkeypatch, method):
    X, y = data()
    model = TaylorSVC(tol=1e-7, max_iter=8, random_state=0)
    arguments = (X, y) if method == "fit" else ([(X, y)],)
    expected = known(getattr(model, method)(*arguments))
    kept, fsync, remove = [], os.fsync, _checkpoint.Checkpoint.remove

    def full(descriptor):
        if os.path.exists(tmp_path / FILE):
            kept.append((tmp_path / FILE).read_bytes())
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    def check(self):
        assert os.listdir(tmp_path) == [FILE] and (tmp_path / FILE).read_bytes() == kept[0]
        remove(self)

    monkeypatch.setattr(_safetensors.os, "fsync", full)
    monkeypatch.setattr(_checkpoint.Checkpoint, "remove", check)
    with pytest.warns(RuntimeWarning, match=f"{FILE} could not be written, and stays as it was: .*No space left"):
        getattr(model, method)(*arguments, checkpoint=tmp_path, checkpoint_every=0)
    assert known(model) == expected and len(kept) > 1 and len(set(kept)) == 1


def test_damaged_checkpoints_are_refused(left):
    X, y = data(300)
    folder = left("fit", X, y)
    model = TaylorSVC(tol=1e-7, max_iter=8, random_state=0)
    good = (folder / FILE).read_bytes()
    for bad in (
        good[:-1],
        good[:100],
        b"",
        good[:-200] + b"x" + good[-199:],
        good.replace(b"checkpoint", b"chequepoin"),
    ):
        (folder / FILE).write_bytes(bad)
        with pytest.raises(ValueError, match=FILE):
            model.fit(X, y, checkpoint=folder)
    model.fit(X, y).save(folder / FILE)
    with pytest.raises(ValueError, match="it is no checkpoint of taylorkern"):
        model.fit(X, y, checkpoint=folder)


def test_checkpoints_are_data_only(left):
    X, y = data(300)
    tensors = load_file(left("fit", X, y) / FILE)
    assert tensors["solver.alpha"].shape == (300, 1) and tensors["random.key"].dtype == np.uint32


def test_they_are_as_frequent_as_asked(tmp_path, monkeypatch):
    X, y = data(300)
    saved = []
    monkeypatch.setattr(_checkpoint.Checkpoint, "save", lambda self, state: saved.append(int(state["progress"][0])))
    model = TaylorSVC(tol=1e-9, max_iter=6, random_state=0)
    model.fit(X, y, checkpoint=tmp_path)
    assert saved == []
    model.fit(X, y, checkpoint=tmp_path, checkpoint_every=0)
    assert saved == [1, 2, 3, 4, 5]
    saved.clear()
    model.fit(X, y, checkpoint=tmp_path, checkpoint_every="2 epochs")
    assert saved == [2, 4]
    for wrong in (-1, "often", True, float("nan"), "0 epochs", "-1 epochs", "2.5 epochs", "epochs"):
        with pytest.raises(ValueError, match=r"checkpoint_every must be .* seconds >= 0, or .* epochs.*; got"):
            model.fit(X, y, checkpoint=tmp_path, checkpoint_every=wrong)


def test_streams_have_one_after_so_many_epochs(tmp_path, monkeypatch):
    X, y = data(700)
    saved = []
    monkeypatch.setattr(_checkpoint.Checkpoint, "save", lambda self, state: saved.append(self.epochs))
    model = TaylorSVC(solver="adagrad", random_state=0)
    model.fit_stream([(X, y)], epochs=5, checkpoint=tmp_path, checkpoint_every="2 epochs")
    assert saved == [2, 2]  # after the second and the fourth; after the last there is nothing left to do


def test_generators_of_the_caller_go_on_as_if_nothing_had_happened(tmp_path, killed):
    X, y = data(300)

    def run(random, **arguments):
        return TaylorSVC(n_cells=3, tol=1e-7, max_iter=8, random_state=random).fit(X, y, **arguments)

    random, last = np.random.RandomState(5), []
    expected = known(run(random))

    def call():
        last[:] = [np.random.RandomState(5)]
        last.append(run(last[0], checkpoint=tmp_path, checkpoint_every=0))

    assert killed(call, 3) >= 2
    assert known(last[1]) == expected
    assert np.array_equal(last[0].get_state()[1], random.get_state()[1])
    with pytest.raises(ValueError, match="MT19937 generator; got PCG64"):
        run(np.random.RandomState(np.random.PCG64(0)), checkpoint=tmp_path, checkpoint_every=0)


def test_the_generator_of_numpy_is_left_alone(left):
    X, y = data(300)
    folder = left("fit", X, y, random_state=None)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    TaylorSVC(tol=1e-7, max_iter=8, random_state=None).fit(X, y, checkpoint=folder)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


KILLER = """
import os, random, signal, sys, time, warnings
from hashlib import sha256
import numpy as np
from taylorkern import TaylorSVC
from taylorkern._stream import chunks as _chunks
from sklearn.exceptions import ConvergenceWarning

warnings.simplefilter("ignore", ConvergenceWarning)
_chunks.CHUNK_ROWS = 256
folder, n_kills = sys.argv[1], int(sys.argv[2])
X = np.random.default_rng(0).normal(size=(2000, 5))
y = X[:, 0] * X[:, 1] > 0
lots = random.Random(0)

def train(kind, where):
    solver, method = kind
    model = TaylorSVC(solver=solver, C=100.0, tol=1e-9, max_iter=12, random_state=0)
    if method == "fit":
        model.fit(X, y, checkpoint=where, checkpoint_every=0)
    else:
        model.fit_stream([(X, y)], epochs=3, checkpoint=where, checkpoint_every=0)
    return sha256(model._table.tobytes() + repr(getattr(model, "certificate_", None)).encode()).hexdigest()

def child(kind, where, out):
    pid = os.fork()
    if pid == 0:
        with open(out, "w") as file:
            file.write(train(kind, where))
        os._exit(0)
    return pid

kinds = [(solver, method) for solver in ("dual", "pegasos", "adagrad") for method in ("fit", "fit_stream")]
begin = time.perf_counter()
expected, took, resumed = {}, {}, 0
for kind in kinds:
    begin = time.perf_counter()
    expected[kind] = train(kind, None)
    train(kind, os.path.join(folder, "timed"))
    took[kind] = time.perf_counter() - begin
kills = trials = 0
while kills < n_kills:
    kind = kinds[trials % len(kinds)]
    trials += 1
    where, out = os.path.join(folder, str(trials)), os.path.join(folder, f"out-{trials}")
    for _ in range(4):
        pid = child(kind, where, out)
        time.sleep(lots.uniform(0, took[kind]))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            kills += 1
        else:
            assert status == 0, (kind, status)
            assert open(out).read() == expected[kind], (kind, "it was through")
        resumed += os.path.exists(os.path.join(where, "checkpoint.safetensors"))
    assert os.waitpid(child(kind, where, out), 0)[1] == 0, kind
    assert open(out).read() == expected[kind], kind
    assert os.listdir(where) == [], os.listdir(where)
print(kills, trials, resumed)
"""


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="kills processes made by fork")
def test_killed_at_any_moment_it_goes_on_to_the_same_bits(tmp_path):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLER, str(tmp_path), "100"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    kills, _, resumed = map(int, done.stdout.split())
    assert kills >= 100 and resumed >= 30
