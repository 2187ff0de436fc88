"""Makes the golden files: small models that every later version has to load, each with what it says, in a JSON file.

    python tests/golden/make.py

Files that are there already stay as they are: they are what the promise of docs/model-file.md is kept by. A new version
of the format adds files of its own. v2-fitted-weights*, trained with a parameter that is gone, cannot be made again.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from taylorkern import TaylorFeatures, TaylorSVC, TaylorSVR

FOLDER = Path(__file__).parent
VERSION = 3


def rows(n_rows=24, n_columns=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns)).round(3)


def flags(n_rows=24, n_columns=5, seed=0):
    """CSR rows of 0 and 1."""
    return sparse.csr_array((np.random.default_rng(seed).uniform(size=(n_rows, n_columns)) < 0.3).astype(np.float32))


def two_classes():
    X = pd.DataFrame(rows(), columns=["sun", "water", "Säure"])
    y = np.where(X["sun"] + X["water"] ** 2 > 1, "grows", "dies")
    return TaylorSVC(degree=2, gamma=0.2, random_state=0).fit(X, y), X


def classes_with_stream():
    X = flags()
    y = (X @ [1, 2, 1, 0, 0]).astype(int) % 3
    return TaylorSVC(degree=2, gamma=0.3, solver="adagrad", max_iter=3, warm_start=True, random_state=0).fit(X, y), X


def labels():
    X = rows(16)
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0]).astype(int)
    settings = {"loss": "log_loss", "solver": "pegasos", "max_iter": 6, "warm_start": True, "tol": 0.5}
    return TaylorSVC(degree=2, gamma=0.2, shift=np.array([0.5, 0.0, -0.25]), **settings, random_state=0).fit(X, Y), X


def batches():
    X = rows(20, 2)
    y = X[:, 0] > X[:, 1]
    settings = {"kernel": (1.0, 1.0, 0.5), "multi_class": "multinomial", "loss": "log_loss"}
    model = TaylorSVC(degree=2, gamma=0.4, **settings, class_weight={False: 2.0, True: 1.0}, random_state=0)
    for part in (slice(0, 10), slice(10, 20)):
        model.partial_fit(X[part], y[part], classes=[False, True])
    return model, X


def regression_few_slots():
    X = np.zeros((12, 9))
    X[np.arange(12), np.arange(12) % 3] = rows(12, 1)[:, 0]
    y = np.sin(X.sum(axis=1)) + 3
    return TaylorSVR(degree=2, gamma=0.5, epsilon=0.02, random_state=0).fit(sparse.csr_array(X), y), X


def regression_two_targets():
    X = rows(16)
    Y = np.column_stack([X[:, 0] * X[:, 1], X[:, 2]])
    settings = {"kernel": "polynomial", "coef0": 0.5, "loss": "squared_error", "center": False}
    return TaylorSVR(degree=2, gamma=0.5, **settings, memory_limit=float("inf"), random_state=0).fit(X, Y), X


def features():
    X = rows(8)
    return TaylorFeatures(degree=3, kernel=[1.0, 1.0, 0.5, 0.25]).fit(X), X


def cells():
    X = np.hstack([rows(20, 1), flags(20, 3).toarray()])
    model = TaylorSVC(degree=2, gamma=0.5, solver="adagrad", max_iter=3, n_cells=2, n_partitions=2, random_state=0)
    return model.fit(X, X[:, 0] * (X[:, 2] - 0.5) > 0), X


def dense_cells():
    X = rows(40)
    return TaylorSVR(degree=2, gamma=0.5, n_cells=4, max_iter=5, tol=0.1, random_state=0).fit(X, X[:, 0] * X[:, 1]), X


def axes():
    X = rows(20, 4)
    model = TaylorSVC(degree=2, gamma=0.2, n_axes=2, max_iter=5, tol=0.1, random_state=0)
    return model.fit(X, X[:, 0] > X[:, 1]), X


def not_unit_rows():
    X = rows()
    return TaylorSVC(degree=2, gamma=0.2, normalize=False, random_state=0).fit(X, X[:, 0] > X[:, 1] ** 2), X


def unit_polynomial():
    X = flags()
    settings = {"kernel": "poly", "coef0": 2.0, "normalize": True, "solver": "pegasos", "max_iter": 6, "tol": 0.5}
    return TaylorSVC(degree=2, gamma=0.3, **settings, random_state=0).fit(X, (X @ [1, 2, 1, 0, 0]).astype(int) % 3), X


def all_by_itself():
    X = rows(24, 2)
    return TaylorSVC(gamma=0.1, kernel="rbf", max_iter=-1).fit(X, X[:, 0] * X[:, 1] > 0), X


def cells_of_unit_rows():
    X = flags(24, 4)
    X.data[::3] = 2.5
    y = np.asarray(X.sum(axis=1)).ravel()
    return TaylorSVR(degree=2, gamma=0.3, n_cells=3, max_iter=5, tol=0.1, warm_start=True, random_state=0).fit(X, y), X


def stream_along_axes():
    X = rows(24, 4)
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + X[:, 1] ** 2, [0, 1])]
    model = TaylorSVC(degree=2, gamma=0.2, n_axes=2, multi_class="crammer_singer", random_state=0)
    return model.fit_stream([(X[:14], y[:14]), (X[14:], y[14:])], epochs=4), X


def unit_features():
    X = rows(8)
    return TaylorFeatures(degree="auto", gamma=0.05, normalize=True, memory_limit=1000).fit(X), X


MODELS = (
    two_classes,
    classes_with_stream,
    labels,
    batches,
    regression_few_slots,
    regression_two_targets,
    features,
    cells,
    dense_cells,
    axes,
    not_unit_rows,
    unit_polynomial,
    all_by_itself,
    cells_of_unit_rows,
    stream_along_axes,
    unit_features,
)


def outputs(model, X):
    """What the model makes of rows."""
    if isinstance(model, TaylorFeatures):
        return model.transform(X).toarray()
    return (model.predict if isinstance(model, TaylorSVR) else model.decision_function)(X)


def said(model, X):
    """What has to be the same whoever loads it: JSON."""
    out = {
        "estimator": type(model).__name__,
        "parameters": {name: repr(value) for name, value in model.get_params().items()},
        "names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "rows": np.asarray(X.toarray() if sparse.issparse(X) else X).tolist(),
        "real": str(X.dtype) if hasattr(X, "dtype") else "float64",
        "outputs": outputs(model, X).tolist(),
    }
    if isinstance(model, TaylorFeatures):
        return out
    out["predictions"] = model.predict(X).tolist()
    out["history"] = {name: repr(values.tolist()) for name, values in getattr(model, "history_", {}).items()}
    out["certificate"] = str(model.certificate_) if hasattr(model, "certificate_") else None
    out["monomials"] = str(model.top_monomials(3))
    out["support"] = None if model._support is None else [part.tolist() for part in model._support]
    out["degree"] = model.degree_
    out["classes"] = model.classes_.tolist() if isinstance(model, TaylorSVC) else None
    return out


def main():
    for make in MODELS:
        path = FOLDER / f"v{VERSION}-{make.__name__.replace('_', '-')}.safetensors"
        if path.exists():
            print(f"{path.name} is there already")
            continue
        model, X = make()
        model.save(path)
        path.with_suffix(".json").write_text(json.dumps(said(model, X[:6]), indent=1) + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
