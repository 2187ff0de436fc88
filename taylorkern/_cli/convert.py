"""`taylorkern info` and `taylorkern convert`: model files as text, data in other forms."""

import io
import json
import os
import zipfile

import numpy as np
from scipy import sparse

from .._data.checks import check_rows
from .._model.files import load
from ..cli import Usage
from ..stream import read_svmlight
from .files import check_output, source, written
from .predict import name_of
from .train import divided, facts_of

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
ROWS_AT_ONCE = 2**12


def info(options):
    """Tell what a model file holds."""
    model = load(options.model)
    facts = _facts(options.model, model)
    print(json.dumps(facts) if options.json else "\n".join(_lines(model, facts)))


def _facts(path, model):
    parameters = {name: _plain(value) for name, value in model.get_params().items()}
    facts = {"file": path, "bytes": os.path.getsize(path), "columns": model.n_features_in_, **facts_of(model)}
    if hasattr(model, "feature_names_in_"):
        facts["names"] = model.feature_names_in_.tolist()
    if hasattr(model, "interrupted_"):
        facts["interrupted"] = model.interrupted_
    return facts | {"parameters": parameters}


def _plain(value):
    """A parameter for JSON."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in np.asarray(value).tolist()]
    return value if value is None or isinstance(value, bool | int | str) or abs(value) < np.inf else repr(value)


def _lines(model, facts):
    told = [
        ("file", f"{facts['file']}, {facts['bytes']} bytes"),
        ("estimator", facts["estimator"]),
        ("kernel", f"{facts['kernel']}, degree {facts['degree']}, gamma {facts['gamma']:g}"),
        ("columns", str(facts["columns"])),
        *divided(facts),
        ("monomials", str(facts["monomials"])),
    ]
    if "classes" in facts:
        told.append(("classes", ", ".join(map(name_of, facts["classes"]))))
    if "epochs" in facts:
        ended = ", then interrupted" if facts.get("interrupted") else ""
        told.append(("epochs", f"{facts['epochs']}{ended}"))
    told.append(("parameters", ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items())))
    width = max(len(name) for name, _ in told)
    yield from (f"{name:<{width}}  {value}" for name, value in told)
    if hasattr(model, "certificate_"):
        yield str(model.certificate_)


def convert(options):
    """Write a file in another form."""
    check_output(options.output, options.input)
    ending = os.path.splitext(options.output)[1]
    from_npz = options.input.endswith(".npz")
    if ending in (".txt", ".json") and not from_npz and options.input != "-":
        text = (_as_text if ending == ".txt" else _as_json)(options)
        with written(options.output) as file:
            file.write(text.encode())
    elif ending == ".npz" and not from_npz:
        _to_npz(options)
    elif ending in SVMLIGHT and from_npz:
        _to_svmlight(options)
    else:
        raise Usage(
            f"{options.input} to {options.output}: models become .txt or .json, svmlight rows .npz, and .npz "
            f"{', '.join(SVMLIGHT)}"
        )


# Models.


def _tables(path, k):
    """(the model, {the name of an output: its strongest monomials}); the only output has the name None."""
    model = load(path)
    if not hasattr(model, "top_monomials"):
        raise ValueError(f"{path}: it holds a {type(model).__name__}, which has no weights")
    top = model.top_monomials(k)
    if isinstance(top, dict):
        return model, {name_of(label): table for label, table in top.items()}
    if hasattr(model, "classes_") or model._one_target:
        return model, {None: top}
    return model, {str(target): table for target, table in enumerate(top)}


def _as_text(options):
    _, tables = _tables(options.input, options.top)
    parts = [f"{table}\n" if name is None else f"{name}:\n{table}\n" for name, table in tables.items()]
    return "\n".join(parts)


def _as_json(options):
    model, tables = _tables(options.input, options.top)
    named = [
        {
            "output": name,
            "monomials": [
                {
                    "name": monomial.name,
                    "weight": float(monomial.weight),
                    "share": float(monomial.share),
                    "powers": {str(column): int(power) for column, power in monomial.powers.items()},
                    **({"cell": int(monomial.cell)} if hasattr(monomial, "cell") else {}),
                }
                for monomial in table
            ],
        }
        for name, table in tables.items()
    ]
    shift = model.shift_.tolist() if isinstance(model.shift_, np.ndarray) else [by.tolist() for by in model.shift_]
    return json.dumps(_facts(options.input, model) | {"shift": shift, "strongest": named}) + "\n"


# Data.


def _to_npz(options):
    X, y = read_svmlight(source(options.input), n_features=options.features, zero_based=options.zero_based)
    with written(options.output) as file:
        np.savez(file, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, format=b"csr", y=y)


def _to_svmlight(options):
    X, y = _read_npz(options.input)
    first = 0 if options.zero_based else 1
    with written(options.output) as file:
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            some, text = X[begin : begin + ROWS_AT_ONCE], io.StringIO()
            indices, values = (some.indices + first).tolist(), some.data.tolist()
            ends = some.indptr.tolist()
            for row, label in enumerate(y[begin : begin + ROWS_AT_ONCE].tolist()):
                entries = range(ends[row], ends[row + 1])
                text.write(" ".join([name_of(label), *(f"{indices[k]}:{name_of(values[k])}" for k in entries)]) + "\n")
            file.write(text.getvalue().encode())


def _read_npz(path):
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray) or not {"data", "indices", "indptr", "shape"} <= set(found):
                raise ValueError("it has no CSR rows")
            if "y" not in found:
                raise ValueError("it has no y")
            shape = tuple(found["shape"].tolist())
            X = sparse.csr_array((found["data"], found["indices"], found["indptr"]), shape=shape)
            X, y = check_rows(X), found["y"]
    except (ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile) as problem:
        raise ValueError(f"{path}: {problem}") from problem
    if y.ndim != 1 or y.dtype.kind not in "biuf" or len(y) != X.shape[0] or not np.isfinite(y).all():
        raise ValueError(f"{path}: y is not one finite number for each of {X.shape[0]} rows")
    return X, y
