"""TaylorSVC beside the exact kernel, random features and stored features, in one table.

    python -m bench.svm --data DIR [--quick] [--only a,e] [--json FILE]

One thread. Ours is timed several times and the least counts; peers that take minutes are timed once, in the same run.
Fitting is timed from the call to the fitted model: validation, shift and certificate included.

Parts a to e have unit rows, the default: the stored features of e, too. The objectives of b and c are those that our
model has in the exact kernel's problem, the upper end of the certificate's interval. Parts f to h have the features of
the paper, normalize=False, for they have its settings; f also has what unit rows make of the same rows.
"""

import sys
import warnings
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC

from taylorkern import ApproximationWarning, TaylorFeatures, TaylorSVC

from . import data
from .run import Timed, run
from .table import Row

EXACT = 0.35104  # the optimum of the exact kernel on Adult: C = 1, gamma = 1/80, without a bias
ADULT = {"C": 1.0, "gamma": 1 / 80}
PAPER = {"loss": "hinge", "normalize": False}


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    rows: int  # of each training set, at most
    repeats: int


FULL = Sizes(rows=10**9, repeats=7)
QUICK = Sizes(rows=4000, repeats=3)


class Bench(Timed):
    """The parts of the table; each yields its rows."""

    @cache  # noqa: B019 (one instance, as long as the process)
    def load(self, name):
        """(X, y) of a set, or of as many of its rows as there are to be."""
        X, y = data.load(name, self.directory)
        n_rows = min(self.sizes.rows, X.shape[0])
        return data.sample(X, n_rows), data.sample(y, n_rows)

    @cached_property
    def ours(self):
        """Our model of Adult, and its seconds."""
        X, y = self.load("adult")
        model = TaylorSVC(**ADULT, degree=3, tol=1e-3, random_state=0)
        return model.fit(X, y), self.seconds(fit=lambda: model.fit(X, y))["fit"]

    @cached_property
    def peers(self):
        """The exact kernel's models of Adult and their seconds, by name."""
        X, y = self.load("adult")
        found = {"SVC": self.once(lambda: SVC(**ADULT, cache_size=1000).fit(X, y))}
        try:
            from sklearnex.svm import SVC as IntelSVC
        except ImportError:
            print("note: scikit-learn-intelex is not installed", file=sys.stderr)
        else:
            found["intelex SVC"] = self.once(lambda: IntelSVC(**ADULT, cache_size=1000).fit(X, y))
        return found

    def exact_fit(self):
        """a: Adult, degree 3, to a relative gap of 1e-3, against the exact kernel."""
        _, ours = self.ours
        for name, (_, seconds) in self.peers.items():
            yield Row("a", "fit Adult", name, "s", ours, seconds, seconds / ours, at_least=TARGETS[name])

    def objective(self):
        """b: the objective of that model against the exact kernel's optimum."""
        primal = exact_objective(self.ours[0])
        X, _ = self.load("adult")
        whole = X.shape[0] == 32561
        yield Row(
            "b", "objective, Adult", "the exact optimum", "", primal, EXACT if whole else None,
            100 * abs(primal / EXACT - 1) if whole else float("nan"), " %", at_most=0.5 if whole else None,
        )  # fmt: skip

    def random_features(self):
        """c: the same against random features and a linear SVM; the fastest one within 0.5 % of that objective."""
        X, y = self.load("adult")
        model, ours = self.ours
        best, best_name = float("inf"), "none of them"
        for make in (RBFSampler, Nystroem):
            for n_components in (512, 1024, 2048):
                for learn in (linear_svc, sgd):
                    name = f"{make.__name__} {n_components} + {learn.__name__}"
                    Z, made = self.once(
                        lambda make=make, n=n_components: make(
                            gamma=ADULT["gamma"], n_components=n, random_state=0
                        ).fit_transform(X)
                    )
                    w, learned = self.once(lambda Z=Z, learn=learn: learn(Z, y))
                    primal = objective(w, (Z @ w) * y, ADULT["C"])
                    near = primal <= 1.005 * exact_objective(model)
                    print(f"   {name}: {made + learned:.2f} s, objective {primal:.5f}{'' if near else ', not near'}")
                    if near and made + learned < best:
                        best, best_name = made + learned, name
        yield Row("c", "fit Adult", best_name, "s", ours, best, best / ours, at_least=8)

    def prediction(self):
        """d: prediction, Adult's test rows."""
        model, _ = self.ours
        X, _ = self.load("adult-test")
        ours = X.shape[0] / self.seconds(predict=lambda: model.predict(X))["predict"]
        for name, (peer, _) in self.peers.items():
            theirs = X.shape[0] / self.once(lambda peer=peer: peer.predict(X))[1]
            yield Row(
                "d",
                "predict, Adult",
                name,
                "rows a second",
                ours,
                theirs,
                ours / theirs,
                at_least=TARGETS_PREDICT[name],
            )

    def stored_features(self):
        """e: to within 0.1 % of the optimum, against LinearSVC on stored features, which are not timed."""
        X, y = self.load("adult")
        optimum = TaylorSVC(**ADULT, degree=3, tol=1e-5, random_state=0).fit(X, y)
        enough = 1.001 * optimum.certificate_.primal
        model = next(m for m in with_tolerances() if m.fit(X, y).certificate_.primal <= enough)
        ours = self.seconds(fit=lambda: model.fit(X, y))["fit"]
        # Rows as they are given, as TaylorFeatures takes them; and, for information, the shifted ones, which have fewer
        # nonzeros.
        for what, Z, judged in (("rows as given", X, True), ("our shifted rows", X.toarray() - optimum.shift_, False)):
            Z = TaylorFeatures(degree=3, gamma=ADULT["gamma"], normalize=True).fit(Z).transform(Z)
            seconds, epochs = self.liblinear(Z, y)
            yield Row(
                "e",
                f"fit Adult to 0.1 % (tol {model.tol:g}, {model.n_iter_} epochs), {what}",
                f"LinearSVC, {epochs} epochs",
                "s",
                ours,
                seconds,
                seconds / ours,
                at_least=5 if judged else None,
            )

    def liblinear(self, Z, y):
        """(seconds, epochs) that LIBLINEAR takes to within 0.1 % of the optimum on stored features."""
        best = quietly(liblinear(1000).fit, Z, y).coef_[0]
        enough = 1.001 * objective(best, (Z @ best) * y, ADULT["C"])
        for epochs in (5, 7, 10, 12, 14, 17, 20, 24, 28, 34, 40, 60, 80, 120, 200):
            w = quietly(liblinear(epochs).fit, Z, y).coef_[0]
            if objective(w, (Z @ w) * y, ADULT["C"]) <= enough:
                break
        return self.seconds(fit=lambda: quietly(liblinear(epochs).fit, Z, y))["fit"], epochs

    def covertype(self):
        """f: covertype, class 1 against the rest, C = 128, degree 4: test error after 8 epochs of adagrad."""
        X, y, X_test, y_test = data.covertype_split(self.directory)
        n_rows = min(self.sizes.rows, X.shape[0])
        X, y = X[:n_rows], y[:n_rows]
        whole = n_rows == 522911
        for what, settings, at_most in (
            ("gamma 1", PAPER | {"gamma": 1.0}, 12.3), ("gamma 8, unit rows", {"gamma": 8.0}, 12),
        ):  # fmt: skip
            model = TaylorSVC(C=128.0, degree=4, solver="adagrad", max_iter=8, random_state=0, **settings)
            _, seconds = self.once(lambda model=model: quietly(model.fit, X, y))
            error = 100 * np.mean(model.predict(X_test) != y_test)
            yield Row(
                "f", f"covertype, {what}, {model.n_iter_} epochs, {seconds:.1f} s", "the paper, 100 epochs",
                "% test error", error, 12.3, error, " %", at_most=at_most if whole else None,
            )  # fmt: skip

    def mnist(self):
        """g: MNIST, 8 against the rest, gamma = 1/400, degree 2: test error."""
        X, y = self.load("mnist")
        X_test, y_test = data.load("mnist-test", self.directory)
        model = TaylorSVC(**MNIST, **PAPER, shift=data.mnist_shift(X), random_state=0)
        _, seconds = self.once(lambda: quietly(model.fit, X, y == 8))
        error = 100 * np.mean(model.predict(X_test) != (y_test == 8))
        whole = X.shape[0] == 60000
        yield Row(
            "g", f"MNIST, {model.solver}, {model.n_iter_} epochs, {seconds:.1f} s", "the paper, 100 epochs",
            "% test error", error, 0.54, error, " %", at_most=0.6 if whole else None,
        )  # fmt: skip

    def large_C(self):
        """h: large C, covertype, gamma = 1 as in f: objective and test error of each solver by epochs (no targets)."""
        X, y, X_test, y_test = data.covertype_split(self.directory)
        n_rows = min(self.sizes.rows, 100_000)
        X, y = X[:n_rows], y[:n_rows]
        for solver, loss in (
            ("dual", "hinge"),
            ("dual", "squared_hinge"),
            ("pegasos", "hinge"),
            ("adagrad", "hinge"),
            ("adagrad", "squared_hinge"),
        ):
            for epochs in (1, 4, 16):
                settings = PAPER | {"solver": solver, "loss": loss, "max_iter": epochs}
                model = TaylorSVC(C=128.0, gamma=1.0, degree=4, tol=1e-9, random_state=0, **settings)
                _, seconds = self.once(lambda model=model: quietly(model.fit, X, y))
                certificate = model.certificate_
                error = 100 * np.mean(model.predict(X_test) != y_test)
                yield Row(
                    "h", f"{solver}, {loss}, {epochs} epochs, {seconds:.1f} s, {n_rows} rows", "the dual bound",
                    "objective", certificate.primal, certificate.dual, error, " %",
                )  # fmt: skip


TARGETS = {"SVC": 150, "intelex SVC": 30}
TARGETS_PREDICT = {"SVC": 1000, "intelex SVC": 100}
MNIST = {"C": 2048.0, "gamma": 1 / 400, "degree": 2, "solver": "adagrad", "max_iter": 32, "tol": 1e-9}

PARTS = {
    "a": Bench.exact_fit,
    "b": Bench.objective,
    "c": Bench.random_features,
    "d": Bench.prediction,
    "e": Bench.stored_features,
    "f": Bench.covertype,
    "g": Bench.mnist,
    "h": Bench.large_C,
}


def with_tolerances():
    """Our models of Adult, with ever smaller tolerances."""
    for tol in (4e-3, 3e-3, 2e-3, 1.5e-3, 1e-3, 7e-4, 5e-4, 3e-4):
        yield TaylorSVC(**ADULT, degree=3, tol=tol, random_state=0)


def exact_objective(model):
    """Of our model, in the exact kernel's problem: with unit rows its own objective is that of another kernel."""
    return model.certificate_.exact_interval[1]


def liblinear(epochs):
    """LIBLINEAR's dual coordinate descent, for a given number of epochs."""
    return LinearSVC(loss="hinge", C=ADULT["C"], fit_intercept=False, max_iter=epochs, tol=1e-9, random_state=0)


def linear_svc(Z, y):
    """LIBLINEAR, to about our accuracy."""
    model = LinearSVC(loss="hinge", C=ADULT["C"], fit_intercept=False, tol=1e-2, max_iter=100, random_state=0)
    return quietly(model.fit, Z, y).coef_[0]


def sgd(Z, y):
    """Stochastic gradient descent with averaging."""
    model = SGDClassifier(
        alpha=1 / (ADULT["C"] * len(y)), fit_intercept=False, average=True, max_iter=20, tol=None, random_state=0
    )
    return model.fit(Z, y).coef_[0]


def objective(w, margins, C):
    """lambda/2 |w|^2 + mean hinge loss."""
    return (w @ w) / (2 * C * len(margins)) + np.maximum(0, 1 - margins).mean()


def quietly(call, *arguments):
    """Without the warnings that it did not converge, and that much of the kernel was cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ApproximationWarning)
        return call(*arguments)


def main(arguments=None):
    run("bench.svm", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
