"""One epoch of AdaGrad over an svmlight file, or over its rows in memory, in a process of its own.

    python -m bench.epoch FILE COLUMNS [--memory]

prints rows, seconds and the peak of resident memory as JSON; `bench.stream` runs it so for its part d.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter

from sklearn.exceptions import ConvergenceWarning

from taylorkern import TaylorSVC
from taylorkern.stream import SvmlightFiles, read_svmlight

from .memory import _resident
from .timing import one_thread


def measure(path, columns, memory=False):
    """What the process prints."""
    command = [sys.executable, "-m", "bench.epoch", os.path.abspath(path), str(columns), *["--memory"] * memory]
    where = Path(__file__).resolve().parents[1]
    return json.loads(subprocess.run(command, cwd=where, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.epoch", description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("columns", type=int)
    parser.add_argument("--memory", action="store_true", help="read the file first")
    options = parser.parse_args(arguments)
    model = TaylorSVC(solver="adagrad", degree=3, gamma=0.01, max_iter=1, random_state=0)
    form = {"n_features": options.columns, "zero_based": False}
    with one_thread():
        if options.memory:
            warnings.simplefilter("ignore", ConvergenceWarning)
            X, y = read_svmlight(options.file, **form)
            seconds = float(model.fit(X, y).history_["seconds"][0])
            source = [(X, y)]
        else:
            seconds, source = None, SvmlightFiles(options.file, **form)
        begin = perf_counter()
        model.fit_stream(source, classes=[-1, 1])
        stream = perf_counter() - begin
    figures = {
        "rows": int(model._stream.n_seen),
        "stream": stream,
        "fit": seconds,
        "waiting": model.waiting_,
        "peak": _resident("VmHWM"),
    }
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main()
