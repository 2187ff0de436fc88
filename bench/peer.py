"""One program that trains on one data set, in a process of its own: a line of the tables of `bench.peers`.

    python -m bench.peer --data DIR [--quick] [--threads N] SET PEER

prints seconds of the fit, test error in percent, the objective where it is defined, and the peak of resident memory on
top of what was there before, as JSON; or what to install. What takes less than two seconds is done several times, and
the least time counts.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from taylorkern import TaylorSVC

from . import cells, data, svm
from .memory import _forget_peak, _resident
from .timing import CLOCKS
from .vowpal import Vowpal

QUICK_ROWS = 3000


@dataclass
class Task:
    """Rows to train on and to test with, and what each kind of program is told."""

    X: Any
    y: np.ndarray  # -1 and 1
    X_test: Any
    y_test: np.ndarray
    ours: dict[str, Any]
    exact: dict[str, float]  # C and gamma of the exact kernel, and of random features
    linear: float  # C of linear models
    vowpal: tuple[int, int]  # degree and passes
    exact_rows: (
        int  # that programs of the exact kernel can take within a minute; the quickest of them, three times that
    )
    random_rows: int  # the same, of random features
    dense: bool = True  # whether programs of the exact kernel are quicker on dense rows
    shared: bool = False  # whether all kernel programs have the same C, gamma and loss, so that objectives compare
    threads: int = 1

    def first(self, n_rows):
        """The first of the training rows: they are in random order."""
        return self.X[:n_rows], self.y[:n_rows]


class Work(NamedTuple):
    """What is timed, what the model then says of rows, and its objective."""

    fit: Callable[[], object]
    predict: Callable[[Any], np.ndarray]
    objective: Callable[[], float] | None = None
    note: str = ""
    memory: Callable[[], int] | None = None  # where the work is done in another process


def adult(directory):
    (X, y), (X_test, y_test) = data.load("adult", directory), data.load("adult-test", directory)
    ours = svm.ADULT | {"degree": 3, "tol": 1e-3}
    return Task(X, y, X_test, y_test, ours, svm.ADULT, 1.0, (3, 2), 10**9, 10**9, dense=False, shared=True)


def covertype(directory):
    ours = cells.COVERTYPE | cells.QUICK_CELLS
    return Task(*data.covertype_split(directory), ours, cells.EXACT, 1.0, (3, 5), 10_000, 50_000)


def mnist(directory):
    (X, y), (X_test, y_test) = data.load("mnist", directory), data.load("mnist-test", directory)
    ours, exact = cells.MNIST | {"degree": 3, "n_axes": 40}, {"C": 10.0, "gamma": 1 / 50}
    X, y = X.astype(np.float32), np.where(y == 8, 1, -1)
    return Task(X, y, X_test.astype(np.float32), np.where(y_test == 8, 1, -1), ours, exact, 1.0, (2, 5), 20_000, 60_000)


def ijcnn1(directory):
    (X, y), (X_test, y_test) = data.load("ijcnn1", directory), data.load("ijcnn1-test", directory)
    ours = {"C": 64.0, "gamma": 1.0, "degree": 4, "n_cells": 4, "solver": "adagrad", "max_iter": 8, "tol": 1e-9}
    return Task(X, y, X_test, y_test, ours, {"C": 16.0, "gamma": 2.0}, 1.0, (3, 5), 10**9, 10**9)


SETS = {"adult": adult, "covertype": covertype, "mnist": mnist, "ijcnn1": ijcnn1}


# The programs.


def taylorkern(task):
    model = TaylorSVC(**{"random_state": 0, **task.ours}, n_jobs=task.threads)
    return Work(
        lambda: svm.quietly(model.fit, task.X, task.y),
        model.predict,
        lambda: svm.exact_objective(model),
        _told(task.ours),
    )


def exact_svc(task, make=SVC, times=1):
    model = make(**task.exact, cache_size=1000)
    X, y = task.first(times * task.exact_rows)
    X = X.toarray() if task.dense else X
    return Work(
        lambda: model.fit(X, y),
        lambda X: model.predict(X.toarray() if task.dense else X),
        lambda: _exact_objective(task, model),
        _rows(X, task),
    )


def intelex(task):
    import daal4py
    from sklearnex.svm import SVC as IntelSVC

    daal4py.daalinit(task.threads)
    return exact_svc(task, IntelSVC, times=3)


def libsvm(task):
    from libsvm.svmutil import svm_predict, svm_train

    X, y = task.first(task.exact_rows)
    options = f"-q -m 1000 -c {task.exact['C']} -g {task.exact['gamma']}"
    return _official(lambda: svm_train(y.astype(float), X.astype(np.float64), options), svm_predict, _rows(X, task))


def liblinear(task):
    from liblinear.liblinearutil import predict, train

    options = f"-q -s 3 -B 1 -c {task.linear}"
    return _official(lambda: train(task.y.astype(float), task.X.astype(np.float64), options), predict, "linear")


def _official(train, predict, note):
    """LIBSVM and LIBLINEAR, by their own interface."""
    kept = {}

    def fit():
        kept["model"] = train()

    return Work(fit, lambda X: np.array(predict([], X.astype(np.float64), kept["model"], "-q")[0]), None, note)


def linear_svc(task):
    model = LinearSVC(C=task.linear, random_state=0)
    return Work(lambda: svm.quietly(model.fit, task.X, task.y), model.predict, None, "linear")


def random_fourier(task, make=RBFSampler, n_components=1024):
    transformer = make(gamma=task.exact["gamma"], n_components=n_components, random_state=0)
    model = LinearSVC(loss="hinge", C=task.exact["C"], fit_intercept=False, tol=1e-2, max_iter=100, random_state=0)
    X, y = task.first(task.random_rows)

    def objective():
        margins = y * model.decision_function(transformer.transform(X))
        return svm.objective(model.coef_[0], margins, task.exact["C"])

    return Work(
        lambda: svm.quietly(model.fit, transformer.fit_transform(X), y),
        lambda X: model.predict(transformer.transform(X)),
        objective,
        f"{n_components} features" + _rows(X, task, ", "),
    )


def nystroem(task):
    return random_fourier(task, Nystroem)


def snapml(task):
    from snapml import SnapSVMClassifier

    X, y = task.first(task.random_rows)
    X = X.toarray()
    model = SnapSVMClassifier(
        kernel="rbf", gamma=task.exact["gamma"], n_components=1024, regularizer=1 / task.exact["C"], loss="hinge",
        normalize=False, max_iter=1000, n_jobs=task.threads,
    )  # fmt: skip
    note = "1024 features" + _rows(X, task, ", ")
    return Work(lambda: model.fit(X, y), lambda X: model.predict(X.toarray()), None, note)


def vowpal(task):
    degree, passes = task.vowpal
    model = Vowpal(task.X, task.y, degree)
    return Work(lambda: model.train(passes), model.predict, None, f"degree {degree}, {passes} passes", model.memory)


PEERS = {
    "taylorkern": (taylorkern, ""),
    "scikit-learn SVC": (exact_svc, ""),
    "scikit-learn-intelex SVC": (intelex, "scikit-learn-intelex"),
    "LIBSVM": (libsvm, "libsvm-official"),
    "RBFSampler + LinearSVC": (random_fourier, ""),
    "Nystroem + LinearSVC": (nystroem, ""),
    "snapml SVM, rbf": (snapml, "snapml"),
    "Vowpal Wabbit": (vowpal, "vowpalwabbit"),
    "LIBLINEAR": (liblinear, "liblinear-official"),
    "LinearSVC": (linear_svc, ""),
}


def _told(parameters):
    shown = {key: parameters[key] for key in ("degree", "n_cells", "n_axes", "max_iter") if key in parameters}
    names = {"degree": "degree {}", "n_cells": "{} cells", "n_axes": "{} axes", "max_iter": "{} epochs"}
    return ", ".join(names[key].format(value) for key, value in shown.items())


def _rows(X, task, before=""):
    return f"{before}{X.shape[0]} rows" if X.shape[0] < task.X.shape[0] else ""


def _exact_objective(task, model):
    """lambda/2 |w|^2 + mean loss of a model of the exact kernel, its bias among the outputs alone."""
    coefficients = np.asarray(model.dual_coef_.todense() if hasattr(model.dual_coef_, "todense") else model.dual_coef_)
    vectors = task.X[np.asarray(model.support_)].astype(np.float32)
    outputs = [
        rbf_kernel(task.X[first : first + 2000].astype(np.float32), vectors, gamma=task.exact["gamma"])
        @ coefficients.ravel()
        for first in range(0, task.X.shape[0], 2000)
    ]
    values = np.concatenate(outputs)
    norm2 = coefficients.ravel() @ values[np.asarray(model.support_)]
    losses = np.maximum(0, 1 - task.y * (values + model.intercept_[0]))
    return float(norm2 / (2 * task.exact["C"] * len(losses)) + losses.mean())


def measure(work, task):
    """What is printed."""
    before = _forget_peak()
    best = {clock: float("inf") for clock in CLOCKS}
    for repeat in range(5):
        start = {clock: read() for clock, read in CLOCKS.items()}
        told = work.fit()
        taken = {clock: read() - start[clock] for clock, read in CLOCKS.items()}
        if isinstance(told, dict):  # the seconds of another process
            taken = told
        if repeat == 0:
            peak = None if before is None else _resident("VmHWM") - before
        best = {clock: min(best[clock], taken[clock]) for clock in CLOCKS}
        if taken["wall"] > 2:
            break
    error = 100 * float(np.mean(work.predict(task.X_test) != task.y_test))
    objective = float(work.objective()) if task.shared and work.objective else None
    memory = work.memory() if work.memory else peak
    return {"seconds": best, "error": error, "objective": objective, "memory": memory, "note": work.note}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description=__doc__.splitlines()[0])
    data.add_argument(parser)
    parser.add_argument("set", choices=SETS)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--quick", action="store_true", help=f"no more than {QUICK_ROWS} rows")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    make, package = PEERS[options.peer]
    try:
        task = SETS[options.set](options.data)
    except data.MissingData as problem:
        sys.exit(str(problem))
    task.threads = options.threads
    order = np.random.RandomState(0).permutation(len(task.y))[: QUICK_ROWS if options.quick else None]
    task.X, task.y = task.X[order], task.y[order]
    if options.quick:
        task.X_test, task.y_test = task.X_test[:QUICK_ROWS], task.y_test[:QUICK_ROWS]
    with threadpool_limits(limits=options.threads):
        try:
            work = make(task)
        except ImportError as problem:
            json.dump({"missing": f"not installed (pip install {package})", "why": str(problem)}, sys.stdout)
            return
        json.dump(measure(work, task), sys.stdout)


if __name__ == "__main__":
    main()
