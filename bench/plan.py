"""What `plan` says beside what is then measured: seconds of an epoch and of a fit, and the test error of its choice.

    python -m bench.plan --data DIR [--quick] [--only a,d] [--json FILE]

One thread. `plan` tells wall time; with --clock cpu, the default, both sides count CPU time instead, so that others who
use the machine show less. Each degree that may be within the budget, because the plan says no more than twice the
seconds, is trained on all rows. Plans and fits are made in turns, and of each the least seconds count: how fast the
machine is changes from one minute to the next. The degrees that turn out to be within the budget are what the choice of
the first plan has to compete with.
"""

from dataclasses import dataclass
from functools import partial
from math import nan
from unittest.mock import patch

import numpy as np

from taylorkern import TaylorSVC, plan

from . import data
from .run import run
from .svm import quietly
from .table import Row
from .timing import CLOCKS

WITHIN, WORSE = 30, 10  # %: what the targets allow
SECONDS, BYTES = 30, 10**9  # the budget
SHORT = 5  # seconds of a fit that is made several times


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    rows: int  # of each training set, at most
    rounds: int  # of a plan and fits
    repeats: int  # of short fits, in each round


FULL = Sizes(rows=10**9, rounds=3, repeats=3)
QUICK = Sizes(rows=20_000, rounds=2, repeats=2)


class Bench:
    """The parts of the table; each yields its rows."""

    def __init__(self, directory, sizes, clock):
        self.directory, self.sizes, self.clock = directory, sizes, CLOCKS[clock]

    def adult(self):
        """a: Adult, C = 1, gamma = 1/80, dual, within 30 s and 1 GB."""
        sets = (*data.load("adult", self.directory), *data.load("adult-test", self.directory))
        yield from self.beside("a", "Adult", sets, gamma=1 / 80, C=1.0)

    def covertype(self):
        """b: covertype, class 1 against the rest, C = 1, gamma = 1, dual to a gap of 1e-2, within 30 s and 1 GB."""
        sets = data.covertype_split(self.directory)
        yield from self.beside("b", "covertype", sets, gamma=1.0, C=1.0, tol=1e-2)

    def large_C(self):
        """c: the same with C = 128 and 4 epochs of adagrad."""
        sets = data.covertype_split(self.directory)
        yield from self.beside("c", "covertype", sets, gamma=1.0, C=128.0, solver="adagrad", max_iter=4, tol=1e-9)

    def mnist(self):
        """d: MNIST, 8 against the rest, C = 1, gamma = 1/400, dual to a gap of 1e-2, within 30 s and 1 GB."""
        X, y = data.load("mnist", self.directory)
        X_test, y_test = data.load("mnist-test", self.directory)
        yield from self.beside("d", "MNIST", (X, y == 8, X_test, y_test == 8), gamma=1 / 400, C=1.0, tol=1e-2)

    def timit(self):
        """e: TIMIT sample, 39 phonemes, squared hinge, C = 1, gamma = 1/78, dual to a gap of 0.1, 30 s and 1 GB."""
        sets = data.timit_split(self.directory)
        yield from self.beside("e", "TIMIT", sets, gamma=1 / 78, C=1.0, loss="squared_hinge", tol=0.1)

    def beside(self, part, name, sets, **parameters):
        """The plan of a set, and what is measured."""
        with (
            patch("taylorkern._plan.pace.perf_counter", self.clock),
            patch("taylorkern._train.loop.perf_counter", self.clock),
        ):
            yield from self._beside(part, name, sets, **parameters)

    def _beside(self, part, name, sets, **parameters):
        X, y, X_test, y_test = sets
        n_rows = min(self.sizes.rows, X.shape[0])
        X, y = data.sample(X, n_rows), data.sample(y, n_rows)
        start = self.clock()
        table = plan(X, y, budget={"seconds": SECONDS, "bytes": BYTES}, **parameters)
        yield Row(part, f"{name}: plan of {len(table)} degrees", "", "s", self.clock() - start, None, nan, "")
        print("   " + str(table).replace("\n", "\n   "))
        lines = [line for line in table if line.bytes <= BYTES and line.fit_seconds <= 2 * SECONDS]
        models = [TaylorSVC(degree=line.degree, random_state=0, **parameters) for line in lines]
        said = [(line.epoch_seconds, line.fit_seconds) for line in lines]
        took = [self.measured(model, X, y) for model in models]
        for _ in range(self.sizes.rounds - 1):
            again = plan(X, y, degrees=[line.degree for line in lines], **parameters)
            said = np.minimum(said, [(line.epoch_seconds, line.fit_seconds) for line in again])
            took = np.minimum(took, [self.measured(model, X, y) for model in models])
        errors, judged = {}, n_rows == sets[0].shape[0]
        for at, (line, model) in enumerate(zip(lines, models, strict=True)):
            if took[at][1] <= SECONDS or line.degree == table.best().degree:
                errors[line.degree] = 100 * (1 - float(model.score(X_test, y_test)))
            for what, planned, measured in zip(("epoch", "fit"), said[at], took[at], strict=True):
                yield Row(
                    part, f"{name}, degree {line.degree}: {what}, {'' if line.measured else 'not timed, '}as planned",
                    "as measured", "s", planned, measured, 100 * abs(planned / measured - 1), " %",
                    at_most=WITHIN if judged and line.measured else None,
                )  # fmt: skip
        chosen, best = table.best().degree, min(errors.values())
        yield Row(
            part, f"{name}: test error at best(), degree {chosen}", f"the best of {min(errors)} to {max(errors)}", "%",
            errors[chosen], best, 100 * (errors[chosen] / best - 1), " %", at_most=WORSE if judged else None,
        )  # fmt: skip

    def measured(self, model, X, y):
        """Seconds of the first epoch and of the fit."""
        best = np.full(2, np.inf)
        for _ in range(self.sizes.repeats):
            start = self.clock()
            quietly(partial(model.fit, X), y)
            fit = self.clock() - start
            best = np.minimum(best, [model.history_["seconds"][0], fit])
            if fit > SHORT:
                break
        return best.tolist()


PARTS = {"a": Bench.adult, "b": Bench.covertype, "c": Bench.large_C, "d": Bench.mnist, "e": Bench.timit}


def main(arguments=None):
    run("bench.plan", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
