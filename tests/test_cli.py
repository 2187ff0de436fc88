"""The command line and its demo."""

import io
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from taylorkern import __version__, cli
from taylorkern import demo as demo_module
from taylorkern.cli import main
from taylorkern.demo import COLUMNS, demo, garden

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
    assert taylor == pytest.approx(lambda_ / 2 * np.sum(model.coef_**2) + losses.mean(), rel=1e-9)

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
    monkeypatch.setattr(cli, "demo", lambda *_: pytest.fail("the demo ran"))
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
