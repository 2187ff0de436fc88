"""More than two classes beside separate binary fits, the exact kernel and matrix products, in one table.

    python -m bench.multiclass --data DIR [--quick] [--only a,c] [--json FILE]

One thread and CPU time, but for part d: two threads and wall time, of the epoch alone. Else fitting is timed from the
call to the fitted model: validation, shift and certificate included. Ours is timed several times and the least counts;
the exact kernel, which takes longer, is timed once, in the same run. Ours has unit rows, the default, and a named loss:
"auto" is another one for two classes than for more.
"""

import os
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from taylorkern import TaylorSVC

from . import data
from .run import Timed, run
from .svm import quietly
from .table import Row
from .timing import interleave


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    rows: int  # of each training set, at most
    synthetic: int  # rows of the synthetic set
    repeats: int


FULL = Sizes(rows=10**9, synthetic=1_100_000, repeats=5)
QUICK = Sizes(rows=3000, synthetic=50_000, repeats=2)

# Of the exact kernel on letter, by validation.
GRID_C, GRID_GAMMA = (1.0, 4.0, 16.0, 64.0), (0.25, 1.0, 4.0)
LETTER = {"degree": 4, "gamma": 4.0, "C": 16.0, "loss": "squared_hinge", "tol": 0.2, "random_state": 0}
TIMIT = {"degree": 3, "gamma": 1 / 78, "C": 1.0, "loss": "squared_hinge", "tol": 0.1, "random_state": 0}


class Bench(Timed):
    """The parts of the table; each yields its rows."""

    @cache  # noqa: B019 (one instance, as long as the process)
    def load(self, name):
        """(X, y) of a set as dense float32, or of as many of its rows as there are to be."""
        X, y = data.load(name, self.directory)
        X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float32)
        n_rows = X.shape[0] if name.endswith("-test") else min(self.sizes.rows, X.shape[0])
        return data.sample(X, n_rows), data.sample(y, n_rows)

    def one_pass(self):
        """a: letter, one epoch of all 26 classes, against 26 binary fits of ours of one epoch."""
        X, y = self.load("letter")
        X = X.astype(np.float64)
        for degree in (3, 4):
            # With a gamma that little is cut with: else each fit also looks at what an exact model would do, which is
            # no part of an epoch.
            model = TaylorSVC(degree=degree, gamma=0.25, C=16.0, loss="squared_hinge", max_iter=1, random_state=0)
            binary = clone(model)
            classes = np.unique(y)

            def each(model=binary, classes=classes):
                for label in classes:
                    quietly(model.fit, X, y == label)

            times = self.seconds(ours=lambda model=model: quietly(model.fit, X, y), each=each)
            yield Row(
                "a", f"letter, one epoch, degree {degree}", f"{len(classes)} binary fits", "s", times["ours"],
                times["each"], times["each"] / times["ours"], at_least=4 if degree == 3 else None,
            )  # fmt: skip

    @cached_property
    def exact_letter(self):
        """The exact kernel's best model of letter, and its seconds."""
        X, y = self.load("letter")
        third = len(y) // 3
        errors = {
            (C, gamma): 1
            - SVC(C=C, gamma=gamma).fit(X[third : 2 * third], y[third : 2 * third]).score(X[:third], y[:third])
            for C, gamma in product(GRID_C, GRID_GAMMA)
        }
        C, gamma = min(errors, key=lambda pair: errors[pair])
        print(
            f"   letter, exact kernel: C = {C:g}, gamma = {gamma:g} (validation error {100 * errors[C, gamma]:.2f} %)"
        )
        return self.once(lambda: SVC(C=C, gamma=gamma, cache_size=1000).fit(X, y))

    def letter(self):
        """b: letter: fit, test error and prediction against the exact kernel, the best of a coarse grid."""
        exact, exact_seconds = self.exact_letter
        model = TaylorSVC(**LETTER)
        yield from self.beside("b", "letter", model, exact, exact_seconds, points=1.0, fit=None, predict=20)

    def timit(self):
        """c: TIMIT sample, 39 phonemes by frame, degree 3, against the exact kernel with the same C and gamma."""
        X, y = self.load("timit")
        exact, seconds = self.once(lambda: SVC(C=TIMIT["C"], gamma=TIMIT["gamma"], cache_size=2000).fit(X, y))
        model = TaylorSVC(**TIMIT)
        yield from self.beside("c", "timit", model, exact, seconds, points=0.5, fit=10, predict=50)

    def beside(self, part, name, model, exact, exact_seconds, points, fit, predict):
        """Errors and times of our model and the exact kernel's."""
        X, y = self.load(name)
        X_test, y_test = self.load(f"{name}-test")
        judged = len(y) == {"letter": 15000, "timit": 35557}[name]
        seconds = self.seconds(fit=lambda: quietly(model.fit, X, y))["fit"]
        what = f"{name}, degree {model.degree}, {model.n_iter_} epochs"
        yield Row(
            part, f"{what}: fit", "SVC", "s", seconds, exact_seconds, exact_seconds / seconds,
            at_least=fit if judged else None,
        )  # fmt: skip
        ours = self.seconds(predict=lambda: model.predict(X_test))["predict"]
        labels, theirs = self.once(lambda: exact.predict(X_test))
        yield Row(
            part, f"{name}: predict {len(y_test)} rows", "SVC", "s", ours, theirs, theirs / ours,
            at_least=predict if judged else None,
        )  # fmt: skip
        error, exact_error = (100 * np.mean(found != y_test) for found in (model.predict(X_test), labels))
        yield Row(
            part, f"{name}: test error", "SVC", "%", error, exact_error, error - exact_error, " pts",
            at_most=points if judged else None,
        )  # fmt: skip

    def synthetic(self):
        """d: a set of the size of the paper's TIMIT (1.1 million x 39, 39 classes), degree 3, one epoch, 2 threads."""
        X, y = synthetic_phonemes(self.sizes.synthetic)
        n_threads = min(2, os.cpu_count() or 1)
        threads = {"n_jobs": n_threads, "warm_start": True}
        model = TaylorSVC(degree=3, gamma=1 / 78, loss="hinge", max_iter=1, random_state=0, **threads)
        with threadpool_limits(limits=n_threads):
            peak = product_rate()
            quietly(model.fit, X, y)
            seconds = model.history_["seconds"][-1]  # of the epoch, with the objective at its end
            peak = max(peak, product_rate())
        # The margins of the epoch, those of the objective at its end, and what was added for each alpha that is not 0.
        done = model.n_slots_ * (2 * len(y) * len(model.classes_) + np.count_nonzero(model._alpha))
        rate = done / seconds
        yield Row(
            "d", f"synthetic, {len(y)} rows, one epoch, {seconds:.1f} s", f"numpy's product, {n_threads} threads",
            "1e9 FMA/s", rate / 1e9, peak / 1e9, 100 * rate / peak, " %",
            at_least=25 if len(y) >= FULL.synthetic else None,
        )  # fmt: skip


def synthetic_phonemes(n_rows, seed=0):
    """Dense float32 rows of 39 columns in 39 classes that overlap, as frames of speech do."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((39, 39), dtype=np.float32)
    y = random.integers(0, 39, n_rows)
    X = random.standard_normal((n_rows, 39), dtype=np.float32)
    X += 0.6 * centres[y]
    return X, y


def product_rate(n=2048, repeats=5):
    """Multiply-adds a second of numpy's product of float32 matrices."""
    a, b = (np.random.default_rng(k).standard_normal((n, n), dtype=np.float32) for k in (0, 1))
    return n**3 / interleave({"product": lambda: a @ b}, repeats=repeats)["product"]


PARTS = {"a": Bench.one_pass, "b": Bench.letter, "c": Bench.timit, "d": Bench.synthetic}


def main(arguments=None):
    run("bench.multiclass", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
