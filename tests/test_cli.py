"""The command line."""

import re
import subprocess
import sys

import numpy as np
import pytest

from taylorkern import __version__
from taylorkern.cli import main


def table(text):
    """The rows of numbers of the demo's table."""
    lines = [
        line.replace("|", " ").split() for line in text.splitlines() if re.match(r"^ *\d+ +\d+ +\d+ +0\.\d+", line)
    ]
    return np.array(lines, dtype=float)


def test_demo_shows_taylor_features_ahead_of_fourier_features(capsys):
    assert main(["demo"]) == 0
    text = capsys.readouterr().out
    degree, n_slots, operations, taylor, residual, n_fourier, fourier = table(text).T
    assert degree.tolist() == [1, 2, 3, 4]
    assert (np.diff(taylor) < 0).all()
    assert (taylor[degree >= 2] < fourier[degree >= 2]).all()
    assert (taylor <= residual).all()
    assert (operations <= n_slots).all()
    assert (n_fourier >= 1).all()
    assert "Taylor" in text and "Fourier" in text and "gamma" in text


def test_the_command_runs_in_a_process_of_its_own():
    code = "import sys; from taylorkern.cli import main; sys.exit(main())"
    # -P: the installed package, not the source folder that the tests may be run in.
    done = subprocess.run([sys.executable, "-P", "-c", code, "demo"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(table(done.stdout)) == 4
    assert done.stderr == ""


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["demo", "more"], ["--degree", "3"]])
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
