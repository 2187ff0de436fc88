"""What is measured: one function for each kind of work, from a problem and settings to numbers.

All of it runs on one thread and is timed by the CPU time of the process. Errors are in percent. Objectives are the
paper's, lambda/2 |w|^2 + mean hinge loss with lambda = 1/(C n); gamma = 1/(2 sigma^2). Costs are the paper's operations
a row: one for each nonzero Taylor feature, and for each random Fourier feature one for each nonzero of the row.

Taylor features are the paper's, `normalize=False`, unless a job asks for unit rows.
"""

from math import comb

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import RBFSampler
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from taylorkern import TaylorSVC
from taylorkern.kernel import (
    cauchy_schwarz_bound,
    fourier_bound,
    fourier_operations,
    kernel_error,
    residual,
    taylor_bound,
    taylor_operations,
    theorem1_bound,
)

from .. import data
from ..multiclass import TIMIT, synthetic_phonemes
from ..svm import objective, quietly
from . import sets

BATCH = 10_000  # rows that are made dense, or made into random features, at once


class Work:
    """The kinds of work, by their names; `once` calls something and times it."""

    def __init__(self, directory, once):
        self.directory, self.once = directory, once

    def __call__(self, job):
        """The result of a job."""
        settings = dict(job)
        name = settings.pop("work")
        result = getattr(self, name)(**settings)
        return {key: value.item() if isinstance(value, np.generic) else value for key, value in result.items()}

    def problem(self, name, rows=None, test_rows=None, **how):
        return sets.load(name, self.directory, rows, test_rows, **how)

    def sizes(self, set):
        """The size of a set: rows, columns, nonzeros a row."""
        X, _, X_test, _ = self.problem(set)
        return {
            "train": X.shape[0], "test": X_test.shape[0], "columns": X.shape[1],
            "nonzeros": fourier_operations(X, 1), "squared_norm": sets.squared_norms(X).mean(),
        }  # fmt: skip

    def taylor(
        self, set, rows=None, test_rows=None, sigma2=None, shift=None, unit=False, scaling=sets.SCALING,
        normalize=False, **settings,
    ):  # fmt: skip
        """Our model; without sigma2 that of the polynomial kernel (<x, x'> + 1)^degree."""
        X, y, X_test, y_test = self.problem(set, rows, test_rows, unit=unit, scaling=scaling)
        kernel = {"kernel": "polynomial", "gamma": 1.0} if sigma2 is None else {"gamma": 1 / (2 * sigma2)}
        paper = {"loss": "hinge", "normalize": normalize}
        model = TaylorSVC(**kernel, **paper, shift=shift, random_state=0, **settings)
        _, seconds = self.once(lambda: quietly(model.fit, X, y))
        labels, predicting = self.once(lambda: model.predict(X_test))
        known = model.certificate_
        # The objective of unit rows is that of their own kernel; of the exact one it is the upper end of the interval.
        high = {"high": known.exact_interval[1]} if normalize else {}
        return high | {
            "primal": known.primal, "dual": known.dual, "error": percent(labels != y_test), "cost": walked(model, X),
            "features": model.n_slots_, "seconds": seconds, "predict": predicting, "epochs": model.n_iter_,
            "low": known.exact_interval[0], "sampled_low": known.sampled_interval[0], "theorem1": known.theorem1,
        }  # fmt: skip

    def fourier(self, set, C, sigma2, n_components, rows=None, test_rows=None, seed=0, tol=1e-2, max_iter=500):
        """Random Fourier features and LIBLINEAR on them, without a bias, as the paper's objective has none."""
        X, y, X_test, y_test = self.problem(set, rows, test_rows)
        maker = RBFSampler(gamma=1 / (2 * sigma2), n_components=n_components, random_state=seed)
        Z, making = self.once(lambda: maker.fit_transform(X))
        model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=tol, max_iter=max_iter, random_state=0)
        _, seconds = self.once(lambda: quietly(model.fit, Z, y))
        w = model.coef_[0]
        labels, predicting = self.once(lambda: in_batches(lambda part: maker.transform(part) @ w > 0, X_test))
        return {
            "primal": objective(w, (Z @ w) * y, C), "error": percent(labels != (y_test > 0)),
            "cost": fourier_operations(X, n_components), "features": n_components, "seconds": making + seconds,
            "predict": predicting, "epochs": int(model.n_iter_),
        }  # fmt: skip

    def exact(self, set, C, sigma2, rows=None, test_rows=None, scaling=sets.SCALING):
        """The Gaussian kernel itself; it has a bias that is not regularised. The objective is with that bias."""
        X, y, X_test, y_test = self.problem(set, rows, test_rows, scaling=scaling)
        X = dense(X)
        model = exact_svc()(C=C, gamma=1 / (2 * sigma2), cache_size=2000)
        _, seconds = self.once(lambda: model.fit(X, y))
        values, predicting = self.once(lambda: in_batches(lambda part: model.decision_function(dense(part)), X_test))
        margins = y * in_batches(model.decision_function, X)
        without_bias = model.decision_function(model.support_vectors_) - model.intercept_[0]
        norm2 = float(model.dual_coef_[0] @ without_bias)
        return {
            "primal": norm2 / (2 * C * len(y)) + np.maximum(0, 1 - margins).mean(),
            "error": percent((values > 0) != (y_test > 0)), "seconds": seconds, "predict": predicting,
            "features": len(model.support_), "cost": len(model.support_) * fourier_operations(X, 1),
        }  # fmt: skip

    def linear(self, set, C, rows=None, scaling=sets.SCALING, max_iter=1000):
        """LIBLINEAR on the columns themselves, with a bias."""
        X, y, X_test, y_test = self.problem(set, rows, scaling=scaling)
        model = LinearSVC(loss="hinge", C=C, max_iter=max_iter, tol=1e-3, random_state=0)
        _, seconds = self.once(lambda: quietly(model.fit, X, y))
        return {"error": percent(model.predict(X_test) != y_test), "seconds": seconds, "epochs": int(model.n_iter_)}

    def neighbour(self, set, rows=None, test_rows=None):
        """The label of the nearest row."""
        X, y, X_test, y_test = self.problem(set, rows, test_rows)
        model = KNeighborsClassifier(1, algorithm="kd_tree").fit(dense(X), y)
        labels, seconds = self.once(lambda: model.predict(dense(X_test)))
        return {"error": percent(labels != y_test), "predict": seconds}

    def pairs(self, set, sigma2, pairs, degree=None, n_components=None, rows=None):
        """Mean and largest |K - K~| over random pairs of training rows."""
        X = self.problem(set, rows).X
        gamma = 1 / (2 * sigma2)
        if degree is not None:
            error = kernel_error(X, degree=degree, gamma=gamma, n_pairs=pairs, random_state=0)
            features, cost = comb(X.shape[1] + degree, degree), taylor_operations(X, degree)
            return {"mean": error.mean, "largest": error.maximum, "cost": cost, "features": features}
        maker = RBFSampler(gamma=gamma, n_components=n_components, random_state=0).fit(X)
        errors = in_batches(
            lambda both: np.abs(
                np.exp(-gamma * sets.squared_norms(X[both[:, 0]] - X[both[:, 1]]))
                - np.einsum("ij,ij->i", maker.transform(X[both[:, 0]]), maker.transform(X[both[:, 1]]))
            ),
            drawn(X, pairs),
        )
        cost = fourier_operations(X, n_components)
        return {"mean": errors.mean(), "largest": errors.max(), "cost": cost, "features": n_components}

    def bounds(self, set, degree, C, sigma2, pairs, rows=None):
        """What the theory promises for rows as they are, at one degree; random Fourier features at the same cost."""
        X = self.problem(set, rows).X
        gamma = 1 / (2 * sigma2)
        norms = np.sqrt(sets.squared_norms(X))
        left, right = drawn(X, pairs).T
        residuals = residual(X, degree=degree, gamma=gamma)
        cost = taylor_operations(X, degree)
        n_components = max(1, round(cost / fourier_operations(X, 1)))
        radius = norms.max()
        return {
            "cost": cost, "n_components": n_components, "theorem1": theorem1_bound(residuals, C=C),
            "taylor_radius": taylor_bound(radius, radius, degree=degree, gamma=gamma),
            "taylor_mean": taylor_bound(norms[left], norms[right], degree=degree, gamma=gamma).mean(),
            "cauchy_schwarz_mean": cauchy_schwarz_bound(residuals[left], residuals[right]).mean(),
            "claim1": fourier_bound(n_components=n_components, n_columns=X.shape[1], radius=radius, gamma=gamma),
        }  # fmt: skip

    def phonemes(self, set, kernel, rows=None):
        """39 phonemes by frame: the exact kernel, one class against one, or ours, each against the rest."""
        X, y, X_test, y_test = data.timit_split(self.directory)
        X, y = (data.sample(part, rows or len(y)) for part in (X, y))
        if kernel == "exact":
            model = exact_svc()(C=TIMIT["C"], gamma=TIMIT["gamma"], cache_size=2000)
        else:
            model = TaylorSVC(**TIMIT | {"normalize": False})
        _, seconds = self.once(lambda: quietly(model.fit, X, y))
        labels, predicting = self.once(lambda: model.predict(X_test))
        epochs = model.n_iter_ if kernel == "taylor" else None
        return {
            "train": len(y), "test": len(y_test), "error": percent(labels != y_test), "seconds": seconds,
            "predict": predicting, "epochs": epochs,
        }  # fmt: skip

    def synthetic(self, set, rows):
        """Our training on made-up rows in the shape of the paper's TIMIT; degree 3."""
        X, y = synthetic_phonemes(rows)
        model = TaylorSVC(**TIMIT | {"normalize": False, "max_iter": 20})
        _, seconds = self.once(lambda: quietly(model.fit, X, y))
        gap = max(part.relative_gap for part in model.certificate_.parts)
        return {"seconds": seconds, "epochs": model.n_iter_, "gap": gap, "classes": len(model.classes_)}


def walked(model, X):
    """Operations a row of our model, all that happens to a row before the weights counted.

    With cells it is an upper bound: that of the rows as they are, and the distances to all centres. Along axes, the
    projection counts.
    """
    nonzeros = fourier_operations(X, 1)
    if model.n_axes is not None:
        return nonzeros * model.n_axes + comb(model.n_axes + model.degree, model.degree)
    if model.n_cells != 1:
        return model.n_partitions * (taylor_operations(X, model.degree) + model.n_cells * nonzeros)
    if np.any(model.shift_):
        X = sparse.vstack(
            [sparse.csr_matrix(dense(X[k : k + BATCH]) - model.shift_) for k in range(0, X.shape[0], BATCH)]
        )
    return taylor_operations(X, model.degree)


def exact_svc():
    """The class of scikit-learn-intelex, on one thread; that of scikit-learn where it is missing."""
    try:
        import daal4py
        from sklearnex.svm import SVC
    except ImportError:
        from sklearn.svm import SVC
    else:
        daal4py.daalinit(1)
    return SVC


def percent(wrong):
    """The share of rows, in percent."""
    return 100 * float(np.mean(wrong))


def dense(X):
    """As an array."""
    return X.toarray() if sparse.issparse(X) else X


def drawn(X, pairs):
    """Random pairs of rows."""
    return np.random.RandomState(0).randint(X.shape[0], size=(pairs, 2))


def in_batches(call, X):
    """What it returns for all rows, some at a time."""
    return np.concatenate([call(X[k : k + BATCH]) for k in range(0, X.shape[0], BATCH)])
