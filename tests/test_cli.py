"""The command line and its demo."""

import doctest
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from taylorkern import TaylorFeatures, TaylorSVC, TaylorSVR, __version__, load
from taylorkern import plan as make_plan
from taylorkern._cli import demo as demo_module
from taylorkern._cli.demo import COLUMNS, demo, garden
from taylorkern._model.predictor import Predictor
from taylorkern.cli import main
from taylorkern.stream import read_svmlight

needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs matplotlib")
N_TRAIN = 1500


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What a small demo printed and returned."""
    out, picture = io.StringIO(), tmp_path_factory.mktemp("demo") / "picture.png"
    outcome = demo(picture, n_train=N_TRAIN, out=out)
    text = out.getvalue()
    return SimpleNamespace(text=text, words=" ".join(text.split()), picture=picture, outcome=outcome)


@pytest.fixture
def without_matplotlib(monkeypatch):
    for name in ["matplotlib", "matplotlib.figure"]:
        monkeypatch.setitem(sys.modules, name, None)


def kernel_table(text):
    """The rows of numbers of the table of approximations."""
    lines = [
        line.replace("|", " ").split() for line in text.splitlines() if re.match(r"^ *\d+ +\d+ +\d+ +0\.\d+", line)
    ]
    return np.array(lines, dtype=float)


def model_table(text):
    """{name: [objective, test error in percent, training and prediction seconds]}."""
    found = re.findall(r"^(\S+(?: \+ \S+)?) +(\d+\.\d+) +(\d+\.\d+)% +(\d+\.\d+) +(\d+\.\d+)$", text, re.MULTILINE)
    return {name: [float(number) for number in numbers] for name, *numbers in found}


def test_demo_shows_taylor_features_ahead_of_fourier_features(shown):
    degree, n_slots, operations, taylor, residual, n_fourier, fourier = kernel_table(shown.text).T
    assert degree.tolist() == [1, 2, 3, 4]
    assert (np.diff(taylor) < 0).all()
    assert (taylor[degree >= 2] < fourier[degree >= 2]).all()
    assert (taylor <= residual).all()
    assert (operations <= n_slots).all()
    assert (n_fourier >= 1).all()
    assert "Taylor" in shown.text and "Fourier" in shown.text and "gamma" in shown.text


def test_demo_shows_that_taylor_svc_predicts_as_well_as_the_exact_svc(shown):
    table = model_table(shown.text)
    assert list(table) == ["SVC", "TaylorSVC", "RBFSampler + LinearSVC"]
    error = {name: numbers[1] for name, numbers in table.items()}
    assert abs(error["TaylorSVC"] - error["SVC"]) <= 2
    assert error["SVC"] < error["RBFSampler + LinearSVC"]
    linear = float(re.search(r"a linear SVM errs on (\d+\.\d+)%", shown.words)[1])
    assert max(error.values()) < linear
    assert all(seconds >= 0 for numbers in table.values() for seconds in numbers[2:])
    for result in shown.outcome.results:
        expected = [result.objective, 100 * result.test_error, result.train_seconds, result.predict_seconds]
        np.testing.assert_allclose(table[result.name], expected, atol=0.006)


def test_demo_tells_the_objective_of_the_paper(shown):
    X, y = garden(N_TRAIN + demo_module.N_TEST, np.random.default_rng(0))
    X, y = X[:N_TRAIN], y[:N_TRAIN]
    exact, taylor, _ = (result.objective for result in shown.outcome.results)
    lambda_ = 1 / (demo_module.C * N_TRAIN)

    model = shown.outcome.taylor
    losses = np.maximum(0, 1 - y * model.decision_function(X))
    assert taylor == pytest.approx(lambda_ / 2 * np.sum(model.monomial_coef_**2) + losses.mean(), rel=1e-9)

    svc = SVC(C=demo_module.C, gamma=demo_module.GAMMA).fit(X, y)
    K = rbf_kernel(X[svc.support_], gamma=demo_module.GAMMA)
    losses = np.maximum(0, 1 - y * svc.decision_function(X))
    norm2 = svc.dual_coef_[0] @ K @ svc.dual_coef_[0]
    assert exact == pytest.approx(lambda_ / 2 * norm2 + losses.mean(), abs=1e-4)
    assert exact <= taylor + 1e-3  # its bias is free


def test_demo_shows_the_certificate_and_its_interval_holds_the_objective(shown):
    certificate = shown.outcome.taylor.certificate_
    assert str(certificate) in shown.text
    objective = shown.outcome.results[1].objective
    for low, high in [certificate.exact_interval, certificate.sampled_interval]:
        assert 0 < low <= objective <= high
    proven = float(re.search(r"more than (\d+\.\d+)% below TaylorSVC's", shown.words)[1])
    low, high = certificate.exact_interval
    assert proven == pytest.approx(100 * (1 - low / high), abs=0.1)


def test_demo_names_the_interactions_that_the_labels_were_made_from(shown):
    number = r"\d\.\d+"
    for pattern in [
        rf"\(sun - {number}\) \* \(water - {number}\) ",
        rf"\(water - {number}\) \* \(drained - 1\) ",
        rf"\(acid - {number}\) \* heather ",
    ]:
        assert re.search(pattern, shown.text)
    top = [set(monomial.powers) for monomial in shown.outcome.taylor.top_monomials(3)]
    sun, water, acid, drained, heather = map(COLUMNS.index, ["sun", "water", "acid", "drained", "heather"])
    assert sorted(map(sorted, top)) == sorted(map(sorted, [{sun, water}, {water, drained}, {acid, heather}]))


def test_demo_fits_a_terminal(shown):
    text = shown.text.replace(str(shown.picture), "FILE")
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 120
    assert not re.search(r"\b(nan|inf)\b", text)


@needs_matplotlib
def test_the_picture_is_written_where_asked(shown):
    assert shown.picture.read_bytes().startswith(b"\x89PNG")
    assert shown.picture.stat().st_size > 10_000
    assert shown.outcome.picture == shown.picture
    assert str(shown.picture) in shown.text


def test_demo_without_matplotlib_says_what_to_install(without_matplotlib, monkeypatch):
    monkeypatch.setattr(demo_module, "show_approximation", lambda out: None)
    out = io.StringIO()
    outcome = demo(n_train=100, out=out)
    assert outcome.picture is None
    assert out.getvalue().endswith('pip install "taylorkern[plot]"\n')
    assert len(model_table(out.getvalue())) == 3


def test_a_picture_that_cannot_be_drawn_is_refused_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo_module, "demo", lambda *_: pytest.fail("the demo ran"))
    wrong = {tmp_path / "picture.txt": "must end with .png", tmp_path / "nowhere" / "picture.png": "no folder"}
    if find_spec("matplotlib") is None:
        wrong = {tmp_path / "picture.png": "taylorkern[plot]"}
    for picture, message in wrong.items():
        with pytest.raises(SystemExit) as stop:
            main(["demo", "--picture", str(picture)])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_asking_for_a_picture_without_matplotlib_is_refused(without_matplotlib, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--picture", str(tmp_path / "picture.png")])
    assert stop.value.code == 2
    assert "taylorkern[plot]" in capsys.readouterr().err


def test_the_command_runs_in_a_process_of_its_own(tmp_path):
    code = (
        "import sys; from taylorkern.cli import main; code = main();"
        "assert 'matplotlib.pyplot' not in sys.modules; sys.exit(code)"
    )
    # -P: the installed package, not the source folder that the tests may be run in.
    command = [sys.executable, "-P", "-W", "error", "-c", code, "demo"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(kernel_table(done.stdout)) == 4
    assert len(model_table(done.stdout)) == 3
    assert done.stderr == ""
    pictures = [str(path) for path in tmp_path.glob("taylorkern-demo-*.png")]
    if find_spec("matplotlib"):
        assert done.stdout.endswith(f"{pictures[0]}\n") and len(pictures) == 1
    else:
        assert not pictures


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["demo", "more"], ["demo", "--picture"], ["--degree", "3"]])
def test_wrong_arguments_exit_with_2_and_a_usage_line(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: taylorkern" in capsys.readouterr().err


def test_version_and_help_are_told(capsys):
    for argument, expected in [("--version", f"taylorkern {__version__}"), ("--help", "demo")]:
        with pytest.raises(SystemExit) as stop:
            main([argument])
        assert stop.value.code == 0
        assert expected in capsys.readouterr().out


def test_the_package_imports_its_parts_when_they_are_asked_for():
    code = (
        "import sys, taylorkern; assert 'sklearn' not in sys.modules and 'numpy' not in sys.modules;"
        "assert {*taylorkern.__all__, 'kernel', 'stream', '__version__'} <= set(dir(taylorkern));"
        "from taylorkern import *; assert TaylorSVC is taylorkern.TaylorSVC and callable(load);"
        "assert taylorkern.kernel.taylor_kernel is taylor_kernel and taylorkern.stream.read_svmlight;"
        "assert taylorkern.__version__; taylorkern.nonsense"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("AttributeError: module 'taylorkern' has no attribute 'nonsense'\n"), done.stderr


# Commands on svmlight files.

RUN = [sys.executable, "-P", "-c", "from taylorkern.cli import run; run()"]
posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")


def command(*arguments, **options):
    """Run the command line in a process of its own."""
    options = {"capture_output": True, "text": True, "check": False, "timeout": 60} | options
    return subprocess.run([*RUN, *map(str, arguments)], **options)


def write_rows(path, n_classes=2, n_rows=300, seed=0):
    """Rows of 12 columns, half of them 0, whose label depends on products of columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 12)) * (rng.random((n_rows, 12)) < 0.5)
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.01 * rng.standard_normal(n_rows)
    y = score if n_classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    dump_svmlight_file(X, 2 * y - 1 if n_classes == 2 else y, str(path), zero_based=False)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows for each kind of task, and a model of each that the command line trained."""
    folder = tmp_path_factory.mktemp("files")
    for name, n_classes, options in [("two", 2, []), ("five", 5, []), ("numbers", 0, ["-s", "3"])]:
        write_rows(folder / name, n_classes)
        assert main(["train", "-q", "-g", "0.1", *options, str(folder / name), str(folder / f"{name}.model")]) == 0
    (folder / "empty").touch()
    (folder / "nonsense").write_text("1 1:1\nnonsense\n")
    return folder


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".taylorkern")]


@pytest.mark.filterwarnings("ignore:Training stopped")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["-c", "10", "-g", "0.5", "-d", "2"], {"C": 10.0, "gamma": 0.5, "degree": 2}),
        (["-g", "auto", "-e", "0.1", "--max-iter", "7"], {"gamma": "auto", "tol": 0.1, "max_iter": 7}),
        (["-t", "1", "-r", "2", "-g", "0.2"], {"kernel": "polynomial", "coef0": 2.0, "gamma": 0.2}),
        (["-t", "2", "--no-shift"], {"kernel": "gaussian", "shift": None}),
        (["--kernel", "exponential", "-g", "0.1"], {"kernel": "exponential", "gamma": 0.1}),
        (["--kernel", "rbf", "--axes", "5", "--max-iter", "-1"], {"kernel": "rbf", "n_axes": 5, "max_iter": -1}),
        (["-w1", "2", "-w-1", "0.5"], {"class_weight": {1: 2.0, -1: 0.5}}),
        (["--weight", "balanced"], {"class_weight": "balanced"}),
        (["--weight", "1:3", "--jobs", "2"], {"class_weight": {1: 3.0}, "n_jobs": 2}),
        (["--loss", "squared_hinge", "--seed", "5"], {"loss": "squared_hinge", "random_state": 5}),
        (["--loss", "log_loss", "--multi-class", "multinomial"], {"loss": "log_loss", "multi_class": "multinomial"}),
        (["--multi-class", "crammer_singer"], {"multi_class": "crammer_singer"}),
        (["--solver", "pegasos", "--max-iter", "3"], {"solver": "pegasos", "max_iter": 3}),
        (["--solver", "adagrad"], {"solver": "adagrad"}),
        (["-d", "auto", "-g", "0.1"], {"degree": "auto", "gamma": 0.1}),
        (
            ["-d", "auto", "-t", "1", "--multi-class", "multinomial"],
            {"kernel": "polynomial", "multi_class": "multinomial"},
        ),
        (["--no-normalize", "-g", "0.1"], {"normalize": False, "gamma": 0.1}),
        (["--cells", "4", "--partitions", "2"], {"n_cells": 4, "n_partitions": 2}),
        (["--cells", "3", "-d", "auto", "--no-normalize"], {"n_cells": 3, "normalize": False}),
        (["--axes", "5"], {"n_axes": 5}),
    ],
)
def test_train_makes_the_model_that_the_estimator_makes(files, tmp_path, arguments, expected):
    assert main(["train", "-q", *arguments, str(files / "two"), str(tmp_path / "model")]) == 0
    model = load(tmp_path / "model")
    X, y = read_svmlight(files / "two", zero_based=False)
    same = TaylorSVC(**({"random_state": 0, "n_jobs": 1} | expected)).fit(X, y)
    assert model.get_params() == same.get_params()
    assert model._table.tobytes() == same._table.tobytes()
    assert model.classes_.tolist() == [-1, 1] and model.classes_.dtype.kind == "i"


@pytest.mark.parametrize(
    ("data", "epochs", "arguments", "expected"),
    [
        ("two", 1, [], {}),
        ("five", 3, ["--epochs", "3", "--solver", "adagrad", "--float32"], {"solver": "adagrad"}),
        (
            "two",
            2,
            ["--epochs", "2", "--solver", "pegasos", "-w1", "2"],
            {"solver": "pegasos", "class_weight": {1: 2.0}},
        ),
        ("two", 1, ["--cells", "3", "--features", "14"], {"n_cells": 3}),
        ("numbers", 1, ["-s", "3", "-d", "auto"], {"degree": "auto"}),
    ],
)
def test_train_with_stream_makes_the_model_that_fit_stream_makes(files, tmp_path, data, epochs, arguments, expected):
    assert main(["train", "-q", "--stream", "-g", "0.1", *arguments, str(files / data), str(tmp_path / "model")]) == 0
    model = load(tmp_path / "model")
    dtype = np.float32 if "--float32" in arguments else np.float64
    n_features = 14 if "--features" in arguments else 12
    X, y = read_svmlight(files / data, zero_based=False, n_features=n_features, dtype=dtype)
    estimator = TaylorSVR if data == "numbers" else TaylorSVC
    same = estimator(**({"random_state": 0, "n_jobs": 1, "gamma": 0.1} | expected))
    same.fit_stream([(X, y if data == "numbers" else y.astype(int))], epochs=epochs)
    assert model.get_params() == same.get_params() and model.n_features_in_ == n_features
    assert model._table.tobytes() == same._table.tobytes() and model._table.dtype == dtype
    assert model.n_iter_ == epochs
    if data == "five":
        assert model.classes_.tolist() == [0, 1, 2, 3, 4] and model.classes_.dtype.kind == "i"


def test_a_stream_may_be_of_several_files_and_tells_how_many_rows_there_were(files, tmp_path, capsys):
    lines = (files / "two").read_text().splitlines(keepends=True)
    for part, begin in enumerate((0, 100, 250)):
        (tmp_path / f"part-{part}").write_text("".join(lines[begin : (100, 250, 300)[part]]))
    assert main(["train", "-g", "0.1", "--stream", str(files / "two"), str(tmp_path / "whole")]) == 0
    told = capsys.readouterr().out
    assert "300 rows of 12 columns" in told and "certificate" not in told and "objective of this model" in told
    arguments = ["--stream", "--json", str(tmp_path / "part-*"), str(tmp_path / "parts")]
    assert main(["train", "-g", "0.1", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 300
    assert load(tmp_path / "whole")._table.tobytes() == load(tmp_path / "parts")._table.tobytes()
    assert main(["train", "--stream", "--solver", "adagrad", str(files / "two"), str(tmp_path / "model")]) == 0
    assert "objective of this model" not in capsys.readouterr().out  # there is no certificate
    with pytest.raises(SystemExit):
        main(["train", "--stream", str(tmp_path / "part-*"), str(tmp_path / "part-1")])
    assert "would be written over" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell the peak memory")
def test_train_with_stream_takes_the_same_memory_for_a_file_of_any_size(files, tmp_path):
    text = (files / "two").read_bytes()
    code = (
        "import re, sys; from taylorkern.cli import main; code = main(sys.argv[1:], own_process=True);"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]); sys.exit(code)"
    )
    peaks = []
    for copies in (300, 2100):  # 10 and 70 MB
        (tmp_path / "rows").write_bytes(text * copies)
        arguments = ["train", "-q", "--stream", "-d", "1", "--solver", "adagrad", tmp_path / "rows", tmp_path / "model"]
        done = subprocess.run([sys.executable, "-P", "-c", code, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) / 2**10)
    assert peaks[1] - peaks[0] < 10


@pytest.mark.filterwarnings("ignore:Training stopped")
@pytest.mark.parametrize("stream", [False, True])
def test_a_training_that_was_stopped_goes_on_from_its_checkpoint(files, tmp_path, monkeypatch, capsys, stream):
    arguments = [
        "train",
        "-g",
        "0.1",
        "-c",
        "9",
        "-e",
        "1e-6",
        "--max-iter",
        "30",
        *["--stream", "--epochs", "30"] * stream,
    ]
    arguments += [str(files / "two")]
    assert main([*arguments, str(tmp_path / "whole")]) == 0
    from taylorkern._model.observe import Observer

    end_epoch, epochs = Observer.end_epoch, []

    def stop(observer, epoch, *rest):
        epochs.append(epoch)
        if len(epochs) == 5:
            raise KeyboardInterrupt
        return end_epoch(observer, epoch, *rest)

    monkeypatch.setattr(Observer, "end_epoch", stop)
    arguments += [str(tmp_path / "model"), "--checkpoint", str(tmp_path / "ck"), "--checkpoint-every", "0"]
    assert main(arguments) == 130
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(f"epochs of training; no model was written, but the same command goes on from {tmp_path / 'ck'}")
    )
    assert not (tmp_path / "model").exists() and os.listdir(tmp_path / "ck") == ["checkpoint.safetensors"]
    assert main([*arguments, "-d", "2"]) == 1
    assert "degree was 'auto' and is 2" in capsys.readouterr().err
    assert main(arguments) == 0
    assert epochs[5] == 5  # the one that was not whole, and no earlier one
    assert load(tmp_path / "model")._table.tobytes() == load(tmp_path / "whole")._table.tobytes()
    assert not os.listdir(tmp_path / "ck")


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "squared_error"])
def test_train_with_s_3_is_a_regression(files, tmp_path, loss):
    options = ["-s", "3", "-p", "0.2", "--loss", loss, "--float32", "--features", "15"]
    assert main(["train", "-q", *options, str(files / "numbers"), str(tmp_path / "model")]) == 0
    X, y = read_svmlight(files / "numbers", zero_based=False, n_features=15, dtype=np.float32)
    same = TaylorSVR(epsilon=0.2, loss=loss, n_jobs=1, random_state=0).fit(X, y)
    assert load(tmp_path / "model")._table.tobytes() == same._table.tobytes()


def test_train_names_the_model_after_the_data_and_tells_what_came_out(files, tmp_path):
    done = command("train", files / "two", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = load(tmp_path / "two.model")
    assert str(model.certificate_) in done.stdout
    assert "300 rows of 12 columns" in done.stdout and "classes -1, 1" in done.stdout
    assert re.search(r"two\.model: \d+ bytes", done.stdout)
    assert re.fullmatch(r"read 300 rows .*\ntrained for \d+ epochs in .* s\n", done.stderr)

    done = command("train", "--json", files / "two", cwd=tmp_path)
    facts = json.loads(done.stdout)
    assert facts["rows"] == 300 and facts["columns"] == 12 and facts["classes"] == [-1, 1]
    assert facts["model"] == "two.model" and facts["bytes"] == (tmp_path / "two.model").stat().st_size
    assert facts["certificate"]["primal"] == model.certificate_.primal
    assert facts["certificate"]["exact_interval"] == list(model.certificate_.exact_interval)
    assert set(facts["seconds"]) == {"read", "train", "write"}

    done = command("train", "-q", files / "two", cwd=tmp_path)
    assert done.stdout == done.stderr == ""


def test_train_shows_epochs_when_asked(files, tmp_path):
    done = command("train", "--verbose", files / "two", tmp_path / "model")
    assert done.returncode == 0 and "objective" in done.stderr
    assert load(tmp_path / "model").verbose == 0


def test_warnings_are_one_line_each(files, tmp_path):
    done = command("train", "--max-iter", "1", "-e", "1e-9", "-c", "100", files / "two", tmp_path / "model")
    assert done.returncode == 0
    warned = [
        line for line in done.stderr.splitlines() if line.startswith("taylorkern train: warning: Training stopped")
    ]
    assert len(warned) == 1 and "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("name", ["two", "five", "numbers"])
def test_predict_writes_what_the_estimator_predicts(files, tmp_path, name):
    done = command("predict", files / name, files / f"{name}.model", tmp_path / "output")
    assert done.returncode == 0 and done.stderr == ""
    X, y = read_svmlight(files / name, zero_based=False)
    expected = load(files / f"{name}.model").predict(X)
    told = np.array((tmp_path / "output").read_text().split(), dtype=np.float64)
    assert np.array_equal(told, expected)
    if name == "numbers":
        error, correlation = np.mean((told - y) ** 2), np.corrcoef(told, y)[0, 1] ** 2
        lines = [f"Mean squared error = {error:g} (regression)"]
        lines += [f"Squared correlation coefficient = {correlation:g} (regression)"]
        facts = {"mean_squared_error": error, "squared_correlation": correlation}
    else:
        right = int(np.sum(told == y))
        lines = [f"Accuracy = {right / 3:g}% ({right}/300) (classification)"]
        facts = {"accuracy": right / 300, "correct": right}
        assert (tmp_path / "output").read_text().split()[0] == str(int(expected[0]))
    assert done.stdout.splitlines() == lines
    done = command("predict", "--json", "--jobs", "2", files / name, files / f"{name}.model", tmp_path / "again")
    assert json.loads(done.stdout) == pytest.approx({"rows": 300} | facts)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "output").read_bytes()


def test_predict_reads_standard_input_and_writes_standard_output(files):
    text = (files / "two").read_text()
    done = command("predict", "-", files / "two.model", input=text)
    labels = load(files / "two.model").predict(read_svmlight(files / "two", zero_based=False)[0])
    assert done.stdout == "".join(f"{label}\n" for label in labels)
    assert done.stderr.startswith("Accuracy = ")
    assert command("predict", "-q", "-", files / "two.model", "-", input=text).stderr == ""


def test_train_reads_standard_input(files, tmp_path):
    done = command("train", "-q", "-g", "0.1", "-", tmp_path / "model", input=(files / "two").read_text())
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "model")._table.tobytes() == load(files / "two.model")._table.tobytes()


def test_predict_tells_probabilities_as_libsvm_does(files, tmp_path):
    assert main(["train", "-q", "--loss", "log_loss", str(files / "five"), str(tmp_path / "model")]) == 0
    arguments = ["predict", "-b", "1", str(files / "five"), str(tmp_path / "model"), str(tmp_path / "output")]
    assert main(arguments) == 0
    head, *lines = (tmp_path / "output").read_text().splitlines()
    assert head == "labels 0 1 2 3 4"
    model, X = load(tmp_path / "model"), read_svmlight(files / "five", zero_based=False)[0]
    table = np.array([line.split() for line in lines], dtype=float)
    assert np.array_equal(table[:, 0], model.predict(X))
    np.testing.assert_allclose(table[:, 1:], model.predict_proba(X), rtol=1e-5)


def test_probabilities_of_a_model_without_any_are_refused(files, tmp_path, capsys):
    for name in ("two", "numbers"):
        assert main(["predict", "-b", "1", str(files / name), str(files / f"{name}.model"), str(tmp_path / "o")]) == 1
        assert "it has no probabilities" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", ["auto", None])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("task", [2, 5, 0])
def test_the_predictor_has_the_bits_of_the_estimator(tmp_path, dtype, shift, dense, task):
    rng = np.random.default_rng(1)
    X = (rng.standard_normal((9000, 6)) * (rng.random((9000, 6)) < 0.7)).astype(dtype)
    y = X[:, 0] * X[:, 1] if task == 0 else rng.integers(task, size=9000)
    model = (TaylorSVR if task == 0 else TaylorSVC)(shift=shift, max_iter=2, tol=1, degree=2)
    model.fit(X[:500] if dense else sparse.csr_array(X[:500]), y[:500]).save(tmp_path / "model")
    rows = sparse.csr_array(X)
    for n_jobs in (1, 2):
        predictor = Predictor(tmp_path / "model", n_jobs)
        told = predictor(rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64))
        expected = model.predict(rows)
        assert predictor.dtype == dtype
        assert np.array_equal(told if task == 0 else predictor.classes[told], expected)


def test_models_that_the_command_line_cannot_predict_with_are_refused(files, tmp_path, capsys):
    X = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    TaylorFeatures().fit(X).save(tmp_path / "features")
    TaylorSVC().fit(X, [[0, 1], [1, 0], [1, 1]]).save(tmp_path / "labels")
    for name, message in [("features", "it holds a 'TaylorFeatures'"), ("labels", "any number of labels for a row")]:
        assert main(["predict", str(files / "two"), str(tmp_path / name)]) == 1
        assert message in capsys.readouterr().err


def test_labels_that_are_words_are_written_and_no_accuracy_told(files, tmp_path, capsys):
    X, y = read_svmlight(files / "two", zero_based=False)
    TaylorSVC().fit(X, np.where(y > 0, "yes", "no")).save(tmp_path / "model")
    assert main(["predict", str(files / "two"), str(tmp_path / "model"), str(tmp_path / "output")]) == 0
    assert set((tmp_path / "output").read_text().split()) == {"yes", "no"}
    assert capsys.readouterr().out == "300 rows\n"


def test_predict_imports_neither_scipy_nor_sklearn(files, tmp_path):
    code = (
        "import sys; from taylorkern.cli import main; code = main(sys.argv[1:], own_process=True);"
        "print([name for name in ('scipy', 'sklearn', 'joblib', 'pandas') if name in sys.modules]); sys.exit(code)"
    )
    arguments = ["predict", "-q", files / "five", files / "five.model", tmp_path / "output"]
    done = subprocess.run([sys.executable, "-P", "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_train_leaves_out_what_takes_long_to_import_and_puts_it_back(files, tmp_path):
    code = (
        "import sys; from taylorkern.cli import main; code = main(sys.argv[1:], own_process=True);"
        "print([name for name in ('scipy.stats', 'pandas') if name in sys.modules]);"
        "import scipy.stats; print(scipy.stats.norm.cdf(0)); sys.exit(code)"
    )
    arguments = ["train", "-q", files / "five", tmp_path / "model"]
    done = subprocess.run([sys.executable, "-P", "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n0.5\n", "")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell the peak memory")
def test_predict_takes_the_same_memory_for_a_file_of_any_size(files, tmp_path):
    text = (files / "two").read_bytes()
    code = (
        "import re, sys; from taylorkern.cli import main; code = main(sys.argv[1:], own_process=True);"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]); sys.exit(code)"
    )
    peaks = []
    for copies in (1500, 6000):  # 50 and 200 MB
        (tmp_path / "rows").write_bytes(text * copies)
        arguments = ["predict", "-q", tmp_path / "rows", files / "two.model", tmp_path / "output"]
        done = subprocess.run([sys.executable, "-P", "-c", code, *map(str, arguments)], capture_output=True, text=True)
        assert (tmp_path / "output").read_bytes().count(b"\n") == 300 * copies
        peaks.append(int(done.stdout) / 2**10)
    assert peaks[1] - peaks[0] < 10 and peaks[1] < 200


def test_info_tells_what_a_model_file_holds(files):
    done = command("info", files / "five.model")
    assert done.returncode == 0 and done.stderr == ""
    model = load(files / "five.model")
    told = dict(line.split(None, 1) for line in done.stdout.splitlines()[:8])
    assert told["estimator"] == "TaylorSVC" and told["classes"] == "0, 1, 2, 3, 4"
    assert told["columns"] == "12" and told["monomials"] == str(model.n_slots_) and told["epochs"] == str(model.n_iter_)
    assert told["kernel"] == f"gaussian, degree {model.degree_}, gamma 0.1" and "C=1.0" in told["parameters"]
    assert told["file"].endswith(f"{(files / 'five.model').stat().st_size} bytes")
    assert str(model.certificate_) in done.stdout

    facts = json.loads(command("info", "--json", files / "five.model").stdout)
    assert facts["classes"] == [0, 1, 2, 3, 4] and facts["parameters"]["degree"] == "auto"
    assert facts["certificate"]["dual"] == model.certificate_.dual and not facts["interrupted"]


def test_info_knows_every_kind_of_model(tmp_path, capsys):
    X = np.random.default_rng(0).standard_normal((30, 3))
    TaylorFeatures(kernel=(1.0, 0.5), degree=1).fit(X).save(tmp_path / "features")
    svr = TaylorSVR(solver="adagrad", shift=np.ones(3), tol=0.1)
    svr.fit(X, X[:, :2]).save(tmp_path / "targets")
    for name in ("features", "targets"):
        assert main(["info", str(tmp_path / name)]) == 0
        assert main(["info", "--json", str(tmp_path / name)]) == 0
        facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["certificate"]["dual"] is None  # NaN, which JSON does not have
    assert facts["parameters"]["shift"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "line", "fact"),
    [
        (["--cells", "4", "--partitions", "2"], "cells 8 in 2 partitions", {"cells": [4, 4]}),
        (["--cells", "3"], "cells 3", {"cells": [3]}),
        (["--axes", "4"], "axes 4", {"axes": 4}),
    ],
)
def test_models_with_cells_or_axes_are_predicted_with_told_and_converted(files, tmp_path, options, line, fact):
    model = tmp_path / "model"
    done = command("train", *options, "-d", "2", files / "five", model)
    assert done.returncode == 0 and f", {line}, " in done.stdout
    told = [" ".join(line.split()) for line in command("info", model).stdout.splitlines()]
    assert line in told and f"monomials {load(model).n_slots_}" in told
    facts = json.loads(command("info", "--json", model).stdout)
    assert {name: facts[name] for name in ("cells", "axes") if name in facts} == fact
    assert command("predict", files / "five", model, tmp_path / "labels").returncode == 0
    expected = load(model).predict(read_svmlight(files / "five", zero_based=False)[0])
    assert (tmp_path / "labels").read_text().split() == [str(label) for label in expected]
    for ending in ("txt", "json"):
        assert command("convert", "--top", "3", model, tmp_path / f"m.{ending}").returncode == 0
    strongest = json.loads((tmp_path / "m.json").read_text())["strongest"][0]["monomials"]
    top = load(model).top_monomials(3)[0]
    assert [entry["name"] for entry in strongest] == [monomial.name for monomial in top]
    assert [entry.get("cell") for entry in strongest] == [getattr(monomial, "cell", None) for monomial in top]


def test_convert_writes_the_strongest_monomials_of_a_model(files, tmp_path):
    for name in ("two", "five", "numbers"):
        top = load(files / f"{name}.model").top_monomials(4)
        assert command("convert", "--top", "4", files / f"{name}.model", tmp_path / "m.txt").returncode == 0
        text = (tmp_path / "m.txt").read_text()
        assert command("convert", "--top", "4", files / f"{name}.model", tmp_path / "m.json").returncode == 0
        facts = json.loads((tmp_path / "m.json").read_text())
        outputs = top if name == "five" else {None: top}
        assert [part["output"] for part in facts["strongest"]] == [k if k is None else str(k) for k in outputs]
        for part, monomials in zip(facts["strongest"], outputs.values(), strict=True):
            assert str(monomials) in text
            assert [entry["name"] for entry in part["monomials"]] == [monomial.name for monomial in monomials]
            assert [entry["weight"] for entry in part["monomials"]] == [monomial.weight for monomial in monomials]
        assert facts["columns"] == 12 and len(facts["shift"]) == 12


@pytest.mark.parametrize("options", [[], ["--zero-based"]])
def test_convert_takes_rows_to_arrays_and_back_without_loss(files, tmp_path, options):
    rows = tmp_path / "rows.svm"
    X, y = read_svmlight(files / "numbers", zero_based=False)
    dump_svmlight_file(X, y, str(rows), zero_based=bool(options))
    assert command("convert", *options, rows, tmp_path / "rows.npz").returncode == 0
    arrays, labels = sparse.load_npz(tmp_path / "rows.npz"), np.load(tmp_path / "rows.npz")["y"]
    expected, y = read_svmlight(rows, zero_based=bool(options))
    assert arrays.shape == expected.shape and (arrays != expected).nnz == 0 and np.array_equal(labels, y)
    assert command("convert", *options, tmp_path / "rows.npz", tmp_path / "again.svm").returncode == 0
    again, y_again = read_svmlight(tmp_path / "again.svm", zero_based=bool(options))
    assert again.data.tobytes() == expected.data.tobytes() and np.array_equal(again.indices, expected.indices)
    assert np.array_equal(y_again, y)


# plan.


def test_plan_prints_the_table_and_what_is_best(files):
    done = command("plan", "-g", "0.1", "--degrees", "1-2,4", files / "two")
    assert done.returncode == 0
    head, *lines, about, best = done.stdout.splitlines()
    assert head.split()[:3] == ["degree", "cells", "D"]
    assert [line.split()[0] for line in lines] == ["1", "2", "4"]
    assert about == "300 rows, gamma 0.1" and re.match(r"degree \d: the least that is close enough", best)
    said = done.stderr.splitlines()
    assert said[0].startswith("read 300 rows of 12 columns")
    assert [line.split(":")[0] for line in said[1:]] == ["degree 1", "degree 2", "degree 4"]
    quiet = command("plan", "-q", "-g", "0.1", "--degrees", "1", files / "two")
    assert quiet.stderr == "" and quiet.stdout.startswith("degree")


def test_plan_tells_machines_what_it_tells_in_python(files, capsys):
    options = ["-s", "3", "-c", "2", "--solver", "adagrad", "--loss", "squared_error", "--features", "14"]
    assert main(["plan", "-q", "--json", "--degrees", "1,3", *options, str(files / "numbers")]) == 0
    facts = json.loads(capsys.readouterr().out)
    X, y = read_svmlight(files / "numbers", zero_based=False, n_features=14)
    same = make_plan(X, y, C=2.0, degrees=[1, 3], estimator=TaylorSVR, solver="adagrad", loss="squared_error")
    assert (facts["rows"], facts["columns"], facts["gamma"]) == (300, 14, same.gamma)
    for line, row in zip(facts["table"], same, strict=True):
        for name in ("degree", "n_slots", "monomials", "bytes", "residual", "kernel_error", "lost", "held_out"):
            told = getattr(row, name)
            assert line[name] == (None if told != told else told)  # NaN, on a machine that has too much else to do
        assert set(line) == set(row._fields)
    assert facts["best"]["degree"] == same.best().degree


def test_plan_looks_at_cells_and_axes(files, capsys):
    arguments = ["--degrees", "1-2", "--cells", "1,4", "--axes", "all,3", str(files / "two")]
    assert main(["plan", "--json", *arguments]) == 0
    told = capsys.readouterr()
    table = json.loads(told.out)["table"]
    found = [(row["n_cells"], row["n_axes"], row["degree"]) for row in table]
    assert found == [(1, None, 1), (1, None, 2), (1, 3, 1), (1, 3, 2), (4, None, 1), (4, None, 2)]
    assert "degree 1, 3 axes: a fit takes" in told.err and "degree 2, 4 cells: a fit takes" in told.err


def test_plan_ends_well_where_it_advises_against_taylorkern(files, tmp_path):
    X = np.random.default_rng(0).uniform(-1, 1, size=(1000, 6)) * [1, 1, 100, 1, 1, 1]
    dump_svmlight_file(X, X[:, 0] * X[:, 1] > 0, str(tmp_path / "wide"), zero_based=False)
    done = command("plan", "-q", "-g", "1", "--degrees", "1-3", tmp_path / "wide")
    assert done.returncode == 0 and "do not use taylorkern here" in done.stdout
    for budget in (["--budget-seconds", "1e-9"], ["--budget-memory", "1kB"]):
        done = command("plan", "-q", "--json", "--degrees", "1", *budget, files / "two")
        best = json.loads(done.stdout)["best"]
        assert done.returncode == 0 and not best["use"] and "are more than" in best["reason"]


@needs_matplotlib
def test_plan_draws_its_plot(files, tmp_path):
    done = command("plan", "-q", "--degrees", "1-2", "--plot", tmp_path / "plan.png", files / "two")
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.png"]


# What is wrong.


@pytest.mark.parametrize("name", ["plan", "train", "predict", "info", "convert"])
def test_what_is_wrong_is_told_in_one_line(files, tmp_path, name):
    """No file, a file in another format, an empty one; exit code 1 and nothing written."""
    output = tmp_path / "output.npz"
    for wrong, message in [("nowhere", "No such file"), ("nonsense", ""), ("empty", "")]:
        arguments = {
            "plan": [files / wrong],
            "train": [files / wrong, output],
            "predict": [files / wrong, files / "two.model", output],
            "info": [files / wrong],
            "convert": [files / wrong, output],
        }[name]
        done = command(name, *arguments)
        if wrong == "empty" and name in ("predict", "convert"):  # no rows in, no rows out
            assert done.returncode == 0 and done.stderr == ""
            continue
        assert done.returncode == 1 and done.stdout == ""
        assert re.fullmatch(rf"taylorkern {name}: .*{wrong}.*{message}.*\n", done.stderr)
        if wrong == "nonsense" and name != "info":
            assert "line 2, column 1: the label 'nonsense' is not a number" in done.stderr
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["plan", "train", "predict", "info", "convert", "demo"])
def test_a_wrong_option_exits_with_2(tmp_path, name):
    done = command(name, "--nonsense", "a", "b", "c", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("usage: taylorkern")
    assert "Traceback" not in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "-c", "0", "two"], "-c: 0 is not above 0"),
        (["train", "-c", "nan", "two"], "nan is not a finite number"),
        (["train", "-g", "wide", "two"], "-g: invalid"),
        (["train", "-d", "0", "two"], "-d: 0 is less than 1"),
        (["train", "-s", "1", "two"], "-s: invalid choice: 1"),
        (["train", "-t", "3", "two"], "3 is not 1 (polynomial) or 2 (gaussian)"),
        (["train", "--seed", "-1", "two"], "-1 is not one of 0 to"),
        (["train", "--weight", "heavy", "two"], "--weight takes LABEL:WEIGHT or balanced; got heavy"),
        (["train", "two", "-w1"], "--weight takes LABEL:WEIGHT or balanced; got 1:"),
        (["train", "-s", "3", "-w1", "2", "numbers"], "--weight and --multi-class are for classes"),
        (["train", "-s", "3", "--loss", "hinge", "numbers"], "loss must be one of epsilon_insensitive"),
        (["train", "--loss", "squared_error", "two"], "loss must be one of auto, hinge"),
        (["train", "--multi-class", "multinomial", "--loss", "hinge", "two"], "goes with loss='log_loss'"),
        (["train", "--cells", "2", "--axes", "3", "two"], "--cells and --axes do not go together"),
        (["train", "--partitions", "2", "two"], "give --cells too"),
        (["train", "--axes", "2", "-t", "1", "two"], "--axes takes the gaussian kernel"),
        (
            ["train", "--cells", "2", "--no-shift", "two"],
            "--cells takes the gaussian kernel, and rows that are shifted",
        ),
        (["train", "-d", "most", "two"], "-d: invalid"),
        (["train", "--epochs", "2", "two"], "--epochs goes with --stream"),
        (["train", "--stream", "-", "model"], "--stream reads its rows several times"),
        (["train", "--stream", "--weight", "balanced", "two"], "give LABEL:WEIGHT"),
        (["train", "--checkpoint", "two", "five"], "two is not a folder"),
        (["train", "--checkpoint-every", "-1", "two"], "-1 is less than 0"),
        (["plan", "--degrees", "0-3", "two"], "0-3 is not degrees from 1 to 170"),
        (["plan", "--degrees", "3-1", "two"], "3-1 is not degrees"),
        (["plan", "--degrees", "1-999999999", "two"], "is not degrees from 1 to 170"),
        (["plan", "--degrees", "two", "two"], "two is not degrees"),
        (["plan", "--budget-memory", "2 apples", "two"], "got {'seconds': None, 'bytes': '2 apples'}"),
        (["plan", "--budget-seconds", "0", "two"], "0 is not above 0"),
        (["plan", "--cells", "1,0", "two"], "--cells: 0 is less than 1"),
        (["plan", "--axes", "most", "two"], "--axes: invalid"),
        (["plan", "--cells", "2", "--axes", "3", "two"], "leave nothing to look at"),
        (["plan", "-s", "3", "--loss", "hinge", "numbers"], "loss must be one of epsilon_insensitive"),
        (
            ["plan", "--plot", "plan.txt", "two"],
            "must end with .png" if find_spec("matplotlib") else "needs matplotlib",
        ),
        (["train", "-"], "name a file for the model"),
        (["train", "two", "-"], "cannot be written to the standard output"),
        (["train", "two", "two"], "would be written over while it is read"),
        (["train", "two", "."], "is a folder"),
        (["train", "two", "nowhere/model"], "there is no folder"),
        (["predict", "two"], "the following arguments are required: MODEL"),
        (["predict", "two", "two.model", "two"], "would be written over while it is read"),
        (["predict", "two", "two.model", "two.model"], "would be written over while it is read"),
        (["predict", "--json", "two", "two.model"], "--json goes to the standard output"),
        (["predict", "-b", "2", "two", "two.model"], "-b: invalid choice"),
        (["predict", "--jobs", "0", "two", "two.model"], "0 is less than 1"),
        (["info"], "required: MODEL"),
        (["convert", "two", "two.xml"], "models become .txt or .json"),
        (["convert", "-", "model.txt"], "models become .txt or .json"),
        (["convert", "two.npz", "two.txt"], "models become .txt or .json"),
        (["convert", "--top", "0", "two.model", "two.txt"], "--top: 0 is less than 1"),
    ],
)
def test_a_command_line_that_makes_no_sense_exits_with_2(files, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(files)
    before = {path: path.stat().st_mtime_ns for path in files.iterdir()}
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith(f"usage: taylorkern {arguments[0]}")
    assert message in told.err.splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in files.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["train", "rows", "m"], "1 1:1\n1 2:1\n", "got 1 class"),
        (["train", "rows", "m"], "0.5 1:1\n1.5 2:1\n0.2 3:1\n", "Unknown label type"),
        (["train", "rows", "m"], "1 0:1\n-1 2:1\n", "rows, line 1, column 3: the index of '0:1' is 0"),
        (["train", "--features", "2", "rows", "m"], "1 3:1\n", "'3:1' is too high for 2 columns"),
        (["train", "-d", "100", "rows", "m"], "1 9999:1\n-1 1:1\n", "more than a 64-bit index can number"),
        (["train", "-s", "3", "rows", "m"], "1e400 1:1\n", "'1e400' is too large"),
        (["predict", "rows", "two.model", "m"], "1 1:1\n1 13:1\n", "line 2, column 3: the index of '13:1' is too high"),
        (["predict", "rows", "rows", "m"], "1 1:1\n", "too few for a model file"),
        (["convert", "rows", "m.npz"], "1 2:1 1:1\n", "is not above the one before"),
        (["convert", "rows", "m.txt"], "1 2:1\n", "too few for a model file"),
    ],
)
def test_wrong_data_exit_with_1_and_a_sentence(files, tmp_path, monkeypatch, capsys, arguments, text, message):
    (tmp_path / "rows").write_text(text)
    (tmp_path / "two.model").write_bytes((files / "two.model").read_bytes())
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    assert main(arguments) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(f"taylorkern {arguments[0]}: ") and message in told[-1]
    assert set(tmp_path.iterdir()) == before


def test_npz_files_that_hold_no_rows_are_refused(tmp_path, capsys):
    good = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1], "y": [1.0]}
    wrong = [
        ({"y": None}, "it has no y"),
        ({"data": None}, "it has no CSR rows"),
        ({"indices": [5]}, "broken CSR"),
        ({"y": [1.0, 2.0]}, "y is not one finite number for each of 1 rows"),
        ({"y": [np.nan]}, "y is not one finite number"),
        ({"y": np.array([{}], dtype=object)}, "Object arrays cannot be loaded"),
    ]
    for change, message in wrong:
        arrays = {name: array for name, array in (good | change).items() if array is not None}
        np.savez(tmp_path / "rows.npz", **arrays)
        assert main(["convert", str(tmp_path / "rows.npz"), str(tmp_path / "rows.svm")]) == 1
        assert message in capsys.readouterr().err
    for content in (b"", b"PK nonsense", (tmp_path / "rows.npz").read_bytes()[:100]):
        (tmp_path / "rows.npz").write_bytes(content)
        assert main(["convert", str(tmp_path / "rows.npz"), str(tmp_path / "rows.svm")]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npz"]


def test_mutated_files_end_in_no_traceback(files, tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name in ("two", "two.model"):
        good = bytearray((files / name).read_bytes())
        for _ in range(150):
            text = good.copy()
            for at in rng.integers(len(text), size=rng.integers(1, 4)):
                text[at] = rng.choice(list(b"\x00 :-+.e,#\n19z\xff"))
            (tmp_path / name).write_bytes(text[: rng.integers(len(text))] if rng.random() < 0.3 else text)
            data, model = (tmp_path / name, files / "two.model") if name == "two" else (files / "two", tmp_path / name)
            assert main(["predict", "-q", str(data), str(model), str(tmp_path / "output")]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


@posix
def test_a_named_pipe_is_written_to_and_never_replaced(files, tmp_path, capsys):
    pipe = tmp_path / "pipe"  # as devices are, of which none is put at risk here
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["predict", "-q", str(files / "two"), str(files / "two.model"), str(pipe)]) == 0
        assert os.read(reader, 2**16).count(b"\n") == 300
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(SystemExit):
        main(["train", str(files / "two"), str(pipe)])
    assert "is not an ordinary file" in capsys.readouterr().err
    assert pipe.is_fifo()


def test_an_output_that_is_there_is_replaced_only_by_a_whole_one(files, tmp_path, capsys):
    output = tmp_path / "output"
    output.write_text("before")
    (tmp_path / "rows").write_bytes((files / "two").read_bytes() * 3000 + b"nonsense\n")  # wrong after many batches
    assert main(["predict", str(tmp_path / "rows"), str(files / "two.model"), str(output)]) == 1
    assert "line 900001" in capsys.readouterr().err
    assert output.read_text() == "before" and not leftovers(tmp_path)


# Pipes and Ctrl-C.


@posix
@pytest.mark.parametrize("name", ["train", "predict", "info", "--help"])
def test_a_closed_pipe_is_no_error_to_speak_of(files, tmp_path, name):
    arguments = {
        "train": ["train", "-q", "--json", files / "two", tmp_path / "model"],
        "predict": ["predict", "-q", files / "two", files / "two.model"],
        "info": ["info", files / "two.model"],
        "--help": ["--help"],
    }[name]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*RUN, *map(str, arguments)], **pipes, text=True, env=buffered)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 1
    process.stderr.close()


def interrupt(process, ready):
    """Ctrl-C as soon as a process is ready; returns what it said, and the seconds that it took to end."""
    deadline = time.monotonic() + 60
    while not ready():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    return said, time.monotonic() - begin


@posix
@pytest.mark.parametrize("name", ["plan", "train", "predict", "convert"])
def test_ctrl_c_while_reading_ends_at_once_and_leaves_nothing(files, tmp_path, name):
    arguments = {
        "plan": ["plan", "-"],
        "train": ["train", "-", tmp_path / "model"],
        "predict": ["predict", "-", files / "two.model", tmp_path / "output"],
        "convert": ["convert", "-", tmp_path / "rows.npz"],
    }[name]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*RUN, *map(str, arguments)], **streams) as process:
        process.stdin.write((files / "two").read_bytes() * 200)  # far more than a pipe holds: it has begun to read
        process.stdin.flush()
        said, seconds = interrupt(process, lambda: True)
    assert process.returncode == 130 and seconds < 1
    assert said == b"interrupted\n"
    assert not list(tmp_path.iterdir())


@posix
@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c_while_training_says_after_how_many_epochs(tmp_path, keep):
    rng = np.random.default_rng(0)
    dump_svmlight_file(
        rng.standard_normal((3000, 20)), rng.integers(2, size=3000), str(tmp_path / "rows"), zero_based=False
    )
    arguments = ["train", "--verbose", "-c", "1e6", "-e", "1e-12", "--max-iter", "100000"]
    arguments += ["--keep"] * keep + [tmp_path / "rows", tmp_path / "model"]
    seen = tmp_path / "seen"
    with seen.open("wb") as stderr, subprocess.Popen([*RUN, *map(str, arguments)], stderr=stderr) as process:
        _, seconds = interrupt(process, lambda: seen.read_bytes().count(b"objective") >= 3)
    assert process.returncode == 130 and seconds < 1
    last = seen.read_text().splitlines()[-1]
    assert re.match(r"interrupted after [1-9]\d* epochs of training; ", last)
    seen.unlink()
    if keep:
        assert last.endswith(f"the model so far is in {tmp_path / 'model'}")
        model = load(tmp_path / "model")
        assert model.interrupted_ and f"after {model.n_iter_} epochs" in last
        (tmp_path / "model").unlink()
    else:
        assert last.endswith("nothing was written")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@posix
@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c_while_a_stream_is_trained_on_ends_within_a_second(files, tmp_path, keep):
    (tmp_path / "rows").write_bytes((files / "two").read_bytes() * 500)
    arguments = ["train", "--verbose", "--stream", "--epochs", "100000", "--checkpoint", tmp_path / "ck"]
    arguments += ["--checkpoint-every", "0"] + ["--keep"] * keep + [tmp_path / "rows", tmp_path / "model"]
    seen = tmp_path / "seen"
    with seen.open("wb") as stderr, subprocess.Popen([*RUN, *map(str, arguments)], stderr=stderr) as process:
        _, seconds = interrupt(process, lambda: seen.read_bytes().count(b"objective") >= 2)
    assert process.returncode == 130 and seconds < 1
    last = seen.read_text().splitlines()[-1]
    n_epochs = int(re.match(r"interrupted after (\d+) epochs? of training; ", last)[1])
    assert n_epochs >= 1
    assert os.listdir(tmp_path / "ck") == ["checkpoint.safetensors"]
    if keep:
        assert last.endswith(f"the model so far is in {tmp_path / 'model'}")
        assert load(tmp_path / "model").interrupted_
    else:
        assert last.endswith(f"no model was written, but the same command goes on from {tmp_path / 'ck'}")
        assert not (tmp_path / "model").exists()
    assert not leftovers(tmp_path)


@posix
def test_ctrl_c_while_planning_ends_within_a_second(tmp_path):
    rng = np.random.default_rng(0)
    rows = tmp_path / "rows"
    dump_svmlight_file(rng.standard_normal((20_000, 12)), rng.integers(2, size=20_000), str(rows), zero_based=False)
    seen = tmp_path / "seen"
    arguments = (
        ["plan", "-c", "1e6", "--plot", tmp_path / "plan.png"] if find_spec("matplotlib") else ["plan", "-c", "1e6"]
    )
    with seen.open("wb") as stderr, subprocess.Popen([*RUN, *map(str, arguments), str(rows)], stderr=stderr) as process:
        _, seconds = interrupt(process, lambda: b"degree 1:" in seen.read_bytes())
    assert process.returncode == 130 and seconds < 1
    assert seen.read_text().splitlines()[-1] == "interrupted"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", "seen"]


@pytest.mark.parametrize("arguments", [["info", "model"], ["demo"], ["train", "two", "model"]])
def test_ctrl_c_has_the_exit_code_130(files, monkeypatch, capsys, arguments):
    def stop(*_, **__):
        raise KeyboardInterrupt

    import taylorkern._cli.convert
    import taylorkern._cli.train

    monkeypatch.chdir(files)
    monkeypatch.setattr(demo_module, "demo", stop)
    monkeypatch.setattr(taylorkern._cli.convert, "load", stop)
    monkeypatch.setattr(TaylorSVC, "fit", stop)
    assert main(arguments) == 130
    assert capsys.readouterr().err.splitlines()[-1].startswith("interrupted")
    assert not (files / "model").exists()


# What the documentation says.

ROOT = Path(__file__).parents[1]


def sessions(path):
    """(command, output) of each $ line in the console blocks of a document."""
    for block in re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield part.split("\n", 1)


@posix
@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="needs the source folder")
@pytest.mark.parametrize("name", ["docs/command-line.md", "README.md"])
def test_the_documented_commands_print_what_is_printed_there(tmp_path, name):
    programs = tmp_path / "bin"
    programs.mkdir()
    for program, prefix in [("taylorkern", RUN), ("python", [sys.executable, "-P"])]:
        (programs / program).write_text(f'#!/bin/sh\nexec {shlex.join(prefix)} "$@"\n')
        (programs / program).chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    found = list(sessions(ROOT / name))
    assert found
    for line, expected in found:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, env=environment)
        told = done.stderr + done.stdout
        alike = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # the width of a column depends on the digits
        assert doctest.OutputChecker().check_output(expected, told, alike), f"$ {line}\n{told}"
