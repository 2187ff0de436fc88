"""Our models beside SVC and SVR on the sets of `bench.tables`: a record for each set and setting.

    from bench.compare import compare, variant
    for record in compare(["moons", "letter"], ["default", "C10"], variant(degree=4), directory=DIR):
        print(record.table, record.points)

The exact models' scores and times are kept in the cache of `bench.data`, by the content of the rows, the parameters and
scikit-learn's version.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import NamedTuple

import numpy as np
import sklearn
from sklearn.metrics import r2_score
from sklearn.svm import SVC, SVR

import taylorkern
from taylorkern import TaylorSVC, TaylorSVR

from . import data
from .tables import TABLES, Sizes, Split
from .timing import CLOCKS, STEADY, one_thread

# Until there is such a warning, nothing is one.
ApproximationWarning: type = getattr(taylorkern, "ApproximationWarning", type("Never", (Warning,), {}))


class Setting(NamedTuple):
    """What both models are given; else they have their defaults."""

    times_gamma: float = 1  # of "scale", or of the set's own gamma
    C: float | None = None


SETTINGS = {"default": Setting(), "4x": Setting(4), "16x": Setting(16), "C10": Setting(C=10)}
FULL, QUICK = Sizes(rows=20_000, test_rows=10_000), Sizes(rows=3000, test_rows=5000)


@dataclass(frozen=True)
class Record:
    """Both models on one set in one setting; scores are shares of 1, times are those of one fit."""

    table: str
    setting: str
    task: str  # what a score is: "accuracy" or "R2"
    exact: float
    ours: float  # not a number where there is no model
    exact_seconds: float
    seconds: float
    degree: int = 0
    epochs: int = 0
    warning: str = ""  # the ApproximationWarning
    problem: str = ""  # the error, or that it did not converge

    @property
    def points(self) -> float:
        """How much better ours is, in points."""
        return 100 * (self.ours - self.exact)


def compare(
    names: Iterable[str] = tuple(TABLES),
    settings: Iterable[str] = tuple(SETTINGS),
    make_model: Callable | None = None,
    *,
    directory: str | None = None,
    sizes: Sizes = FULL,
) -> Iterator[Record]:
    """A record for each set in each setting.

    Parameters
    ----------
    names, settings : iterable of str
        Of TABLES and SETTINGS.
    make_model : callable, default=None
        Called with `regression`, True or False, and with C and gamma where the setting has them; returns the model that
        is compared with the exact one. By default, TaylorSVR or TaylorSVC.
    directory : str, default=None
        The directory of the data.
    sizes : Sizes
        Rows of each set, at most.
    """
    for setting in settings:
        for name in names:
            exact = exact_model(name, setting, directory, sizes)
            ours = our_model(name, setting, make_model or variant(), directory, sizes)
            yield Record(name, setting, "R2" if TABLES[name].regression else "accuracy", **exact, **ours)


def variant(**parameters) -> Callable:
    """A factory of our models with these parameters; "svc.loss" or "svr.loss" is for one of them only.

    A parameter without a prefix is for those that have it, but `loss` for TaylorSVC.
    """
    known = {"svc": signature(TaylorSVC).parameters, "svr": signature(TaylorSVR).parameters}
    for key in parameters:
        if not any(key.removeprefix(f"{kind}.") in known[kind] for kind in known):
            raise ValueError(f"no parameter {key!r}")

    def make(*, regression, **given):
        kind, other, model = ("svr", "svc", TaylorSVR) if regression else ("svc", "svr", TaylorSVC)
        for key, value in parameters.items():
            parameter = key.removeprefix(f"{kind}.")
            mine = not key.startswith(f"{other}.") and not (regression and key == "loss")
            if mine and parameter in known[kind]:
                given[parameter] = value
        return model(**given)

    return make


@lru_cache(maxsize=64)
def splits(name: str, directory: str | None, sizes: Sizes) -> list[Split]:
    """The rows of a set."""
    return TABLES[name].splits(directory, sizes)


def parameters_of(name: str, setting: str, X) -> dict[str, float]:
    """What both models are given on these rows."""
    times_gamma, C = SETTINGS[setting]
    found = {} if C is None else {"C": float(C)}
    if TABLES[name].gamma is not None:
        found["gamma"] = times_gamma * TABLES[name].gamma
    elif times_gamma != 1:
        variance = X.var() if isinstance(X, np.ndarray) else X.multiply(X).mean() - X.mean() ** 2
        found["gamma"] = times_gamma / (X.shape[1] * variance)
    return found


def measure(model, rows: Split) -> tuple[float, float]:
    """(test score, seconds of the fit)."""
    clock = CLOCKS[STEADY]
    start = clock()
    model.fit(rows.X, rows.y)
    seconds = clock() - start
    found = model.predict(rows.X_test)
    return (r2_score if isinstance(model, SVR | TaylorSVR) else share_equal)(rows.y_test, found), seconds


def share_equal(y, found) -> float:
    """Accuracy."""
    return float(np.mean(y == found))


def exact_model(name, setting, directory, sizes) -> dict[str, float]:
    """Score and seconds of SVC or SVR, from the cache where equal rows and parameters have been there."""
    given, found = splits(name, directory, sizes), []
    make = SVR if TABLES[name].regression else SVC
    for rows in given:
        parameters = parameters_of(name, setting, rows.X)
        content = [data.fingerprint(array) for array in rows]

        def work(rows=rows, parameters=parameters):
            with one_thread():
                return dict(zip(("score", "seconds"), measure(make(cache_size=1000, **parameters), rows), strict=True))

        key = (make.__name__, sorted(parameters.items()), content, sklearn.__version__)
        found.append(data.remember(f"exact-{name}-{setting}", key, work))
    return {
        "exact": float(np.mean([each["score"] for each in found])),
        "exact_seconds": float(np.mean([each["seconds"] for each in found])),
    }


def our_model(name, setting, make_model, directory, sizes) -> dict[str, object]:
    """The fields of a record that are about our model: means over the splits, the most of degrees and epochs."""
    scores, seconds, degrees, epochs, told, problem = [], [], [0], [0], [], ""
    for rows in splits(name, directory, sizes):
        model = make_model(regression=TABLES[name].regression, **parameters_of(name, setting, rows.X))
        with warnings.catch_warnings(record=True) as caught, one_thread():
            warnings.simplefilter("always")
            try:
                score, took = measure(model, rows)
            except (ValueError, MemoryError) as error:
                return {"ours": float("nan"), "seconds": float("nan"), "problem": f"{type(error).__name__}: {error}"}
        scores.append(score)
        seconds.append(took)
        degrees.append(int(getattr(model, "degree_", model.degree)))
        epochs.append(int(np.max(model.n_iter_)))
        told += [str(w.message) for w in caught if issubclass(w.category, ApproximationWarning)]
        others = [str(w.message) for w in caught if not issubclass(w.category, ApproximationWarning)]
        problem = problem or next(iter(others), "")
    return {
        "ours": float(np.mean(scores)), "seconds": float(np.mean(seconds)), "degree": max(degrees),
        "epochs": max(epochs), "warning": next(iter(told), ""), "problem": problem,
    }  # fmt: skip
