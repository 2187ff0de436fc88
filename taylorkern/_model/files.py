"""Model files: an estimator as data only, in a safetensors file. The format is written down in docs/model-file.md."""

import io
import json
import os
from importlib.metadata import version
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._data.rows import Csr
from .._place.rotation import Rotation
from .reader import FORMAT, FORMAT_VERSION, HISTORY, STREAM_TABLES, check_classes, check_format, decode
from .safetensors import DTYPES, Reader, Tensor, pieces, tensor, write, write_atomically

# Attributes that a file holds, besides the parameters.
ATTRIBUTES = {
    *("n_features_in_", "feature_names_in_", "degree_", "gamma_", "n_slots_", "n_features_out_", "shift_", "n_iter_"),
    *("classes_", "offset_", "_multilabel", "_one_target", "_n_tables", "history_", "certificate_", "interrupted_"),
    *("_expansion", "_table", "_shift", "_walk_dense", "_sample", "_alpha", "_support", "_stream"),
}
ANY_NUMBER = ("history", "certificate", "certificate.cells")  # may hold infinity and NaN
KEY = "_model_file"  # of the bytes in a pickle


class ModelFileMixin(BaseEstimator):
    """`save` for an estimator, and pickles that hold the same bytes."""

    def save(self, path):
        """Write the model to a file that `taylorkern.load` reads, in this and in every later version.

        The file is a safetensors file: data only, nothing in it is ever run. It holds the parameters and what was
        learned, with what `partial_fit` and `warm_start` need to go on; of the training rows only which entries were
        zero, for some of them. Callbacks, metadata routing and attributes of your own are left out. It is written
        under another name first, so that no half of a file ever stands at `path`.

        Parameters
        ----------
        path : str or path-like
            Where to. A file that is there already is replaced.

        Raises
        ------
        ValueError
            When a parameter is neither None nor made of numbers, strings, lists, tuples, dicts and numpy arrays: a
            RandomState, for example; when a number of the model is not finite; for a subclass of your own, of which
            the file could not tell how it predicts. Pickle takes all of them.

        Examples
        --------
        >>> import os, tempfile
        >>> import taylorkern
        >>> features = taylorkern.TaylorFeatures(degree=2, gamma=0.5).fit([[1.0, 0.0], [0.5, 2.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     features.save(os.path.join(folder, "features.safetensors"))
        ...     again = taylorkern.load(os.path.join(folder, "features.safetensors"))
        >>> again
        TaylorFeatures(degree=2, gamma=0.5)
        """
        check_is_fitted(self)
        if type(self) not in _estimators().values():
            raise ValueError(
                f"a model file holds one of {', '.join(_estimators())}; got {type(self).__name__}, a subclass. Pickle "
                "keeps it"
            )
        metadata, tensors = _encode(self)
        write_atomically(path, lambda stream: write(stream, metadata, tensors, ANY_NUMBER))

    def __getstate__(self):
        state = super().__getstate__()
        if "_expansion" not in state:
            return state
        stream = io.BytesIO()
        try:
            metadata, tensors = _encode(self, or_none=True)
            write(stream, metadata, tensors, ANY_NUMBER)
        except (ValueError, TypeError, AttributeError, KeyError):
            # A file cannot hold it: a number is not finite, labels are of an unusual type, or somebody has put other
            # things into its attributes. A pickle can.
            return state
        return {name: value for name, value in state.items() if name not in ATTRIBUTES} | {KEY: stream.getvalue()}

    def __setstate__(self, state):
        if KEY not in state:
            super().__setstate__(state)
            return
        data = state[KEY]
        attributes = _read(io.BytesIO(data), len(data))[2]
        super().__setstate__({name: value for name, value in state.items() if name != KEY} | attributes)

    def __copy__(self):
        """A shallow copy, which shares the tables."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


def load(path):
    """Read a model that `save` wrote, with this version of taylorkern or an earlier one.

    Everything is checked before memory is taken, and nothing in the file is ever run: files from strangers are safe to
    load. Besides the model itself it takes a few megabytes.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : TaylorSVC, TaylorSVR or TaylorFeatures
        Fitted; it predicts, prints and trains on as the one that was saved.

    Raises
    ------
    ValueError
        When the file is no model file, is damaged, or comes from a later version; or when the model does not fit into
        memory. The message says which.
    """
    with open(path, "rb") as stream:
        try:
            name, parameters, attributes = _read(stream, os.fstat(stream.fileno()).st_size)
        except ValueError as problem:
            raise ValueError(f"{os.fspath(path)}: {problem}") from problem
    model = _estimators()[name](**parameters)
    model.__dict__.update(attributes)
    return model


def _estimators():
    from ..features import TaylorFeatures  # here, since they are made with the class above
    from ..svc import TaylorSVC
    from ..svr import TaylorSVR

    return {"TaylorFeatures": TaylorFeatures, "TaylorSVC": TaylorSVC, "TaylorSVR": TaylorSVR}


def _read(stream, size):
    """(the estimator's name, its parameters, its attributes)."""
    known = {name: kind._get_param_names() for name, kind in _estimators().items()}
    return decode(Reader(stream, size, check_format), known)


# From an estimator to metadata and tensors.


def _encode(model, or_none=False):
    """(metadata, tensors) of a fitted estimator. With or_none, parameters that a file cannot hold become None."""
    name, kind = next((name, kind) for name, kind in _estimators().items() if isinstance(model, kind))
    tensors: dict[str, Tensor] = {}
    parameters: dict[str, Any] = {}
    for parameter in kind._get_param_names():
        more = tensors.copy()
        try:
            parameters[parameter] = _to_json(getattr(model, parameter, None), more)
            tensors = more
        except ValueError as problem:
            if not or_none:
                raise ValueError(f"a file cannot keep the parameter {parameter}: {problem}") from None
            parameters[parameter] = None
    expansion = model._expansion
    facts = {
        "parameters": parameters,
        "n_columns": expansion.n_columns,
        "degree": expansion.degree,
        "n_slots": expansion.n_slots,
        "gamma": expansion.gamma,
        "kernel": expansion.kernel if isinstance(expansion.kernel, str) else list(expansion.kernel),
        "coef0": _to_json(expansion.coef0, tensors),
    }
    if expansion.normalize:
        facts["normalize"] = True
    if expansion.weights is not None:
        facts["weights"] = list(expansion.weights)
    if hasattr(model, "feature_names_in_"):
        _put_strings(tensors, "names", model.feature_names_in_)
    if name != "TaylorFeatures":
        facts |= _encode_model(model, tensors, of_classes=name == "TaylorSVC")
    metadata = {fact: json.dumps(value, separators=(",", ":"), allow_nan=False) for fact, value in facts.items()}
    about = {"format": FORMAT, "version": str(FORMAT_VERSION), "writer": f"taylorkern {version('taylorkern')}"}
    return about | {"estimator": name} | metadata, tensors


def _encode_model(model, tensors, of_classes):
    """The facts that only a trained model has; its tensors are added to those that there are."""
    facts: dict[str, Any] = {"walk_dense": bool(model._walk_dense), "n_iter": int(model.n_iter_)}
    if of_classes:
        facts["multilabel"] = bool(model._multilabel)
        check_classes(model.classes_)
        _put_classes(tensors, model.classes_)
    else:
        facts["one_target"] = bool(model._one_target)
        tensors["offset"] = tensor(np.atleast_1d(np.asarray(model.offset_, dtype=np.float64)))
    n_outputs = model._n_tables
    _put_table(tensors, "table", model._table[:, :n_outputs])
    if model._cells is not None:
        facts |= _put_cells(tensors, model._cells, model._sample)
    elif isinstance(model._shift, Rotation):
        facts["n_features"] = model._shift.n_features
        tensors |= {"rotation.mean": tensor(model._shift.mean), "rotation.axes": tensor(model._shift.axes)}
    elif model._shift is not None:
        facts["nonzeros"] = float(model._shift.nonzeros)
        tensors["shift"] = tensor(model._shift.by)
        if model._shift.place is not None:
            tensors["place"] = tensor(model._shift.place)
    _put_sample(tensors, model._sample if model._cells is None else model._sample.filled)
    if hasattr(model, "interrupted_"):
        facts["interrupted"] = bool(model.interrupted_)
    if hasattr(model, "history_"):
        tensors["history"] = tensor(np.column_stack([model.history_[name] for name in HISTORY]).astype(np.float64))
    if hasattr(model, "certificate_"):
        whole = model.certificate_
        tensors["certificate"] = tensor(np.array([_numbers(part) for part in (whole, *whole.parts)]))
        if whole.cells:
            tensors["certificate.cells"] = tensor(np.array([_numbers(cell) for cell in whole.cells]))
    if model._alpha is not None:
        tensors["alpha"] = tensor(model._alpha)
    if model._support is not None:
        tensors |= {"support": tensor(model._support[0]), "n_support": tensor(model._support[1])}
    if model._stream is not None:
        stream = model._stream
        n_trained = 1 if stream.w.shape[1] == 1 else max(n_outputs, 2)
        facts |= {"stream": [_to_json(number, tensors) for number in stream[3:7]], "stream_outputs": n_trained}
        for name in STREAM_TABLES:
            _put_table(tensors, f"stream.{name}", getattr(stream, name)[:, :n_trained], least=name == "squares")
        tensors["stream.unit"] = tensor(stream.unit[:n_trained])
    return facts


def _put_classes(tensors, classes):
    if classes.dtype.kind in "biuf":
        tensors["classes"] = tensor(classes)
    elif classes.dtype.kind == "U":
        points = np.ascontiguousarray(classes, dtype=classes.dtype.newbyteorder("<")).view("<u4")
        tensors["classes.points"] = tensor(points.reshape(len(classes), -1))
    else:
        _put_strings(tensors, "classes", classes)


def _put_table(tensors, name, table, least=False):
    """A table whole; or, when that is smaller, a bit for each number that is not 0, and those numbers.

    With `least`, not the least number of its column, where sums of squares begin.
    """
    fill = table.min(axis=0) if least else np.zeros(table.shape[1], dtype=table.dtype)

    def parts():
        return map(np.ascontiguousarray, pieces(table))

    def touched(part):
        bits = f"u{part.itemsize}"  # so that -0 is not 0
        return part.view(bits) != fill.view(bits)

    n_touched, n_bits = sum(int(np.count_nonzero(touched(part))) for part in parts()), -(-table.size // 8)
    if n_bits + n_touched * table.itemsize >= table.nbytes:
        tensors[name] = Tensor(table.dtype, table.shape, parts)
        return
    tensors[f"{name}.bits"] = Tensor(DTYPES["U8"], (n_bits,), lambda: (np.packbits(touched(part)) for part in parts()))
    tensors[f"{name}.values"] = Tensor(table.dtype, (n_touched,), lambda: (part[touched(part)] for part in parts()))
    if least:
        tensors[f"{name}.fill"] = tensor(fill)


def _put_cells(tensors, cells, sample):
    """Centres and shifts of all cells; returns the facts on them."""
    tensors["cells.use"] = tensor(cells.partitions[0].use)
    for p, partition in enumerate(cells.partitions):
        tensors[f"cells.{p}.centres"] = tensor(partition.centres)
        tensors[f"cells.{p}.shift"] = tensor(partition.by)
        if partition.place is not None:
            tensors[f"cells.{p}.place"] = tensor(partition.place)
    tensors["sample.base"] = tensor(sample.base)
    return {"n_features": cells.n_features, "n_partitions": len(cells.partitions)}


def _put_sample(tensors, sample):
    """Where the sampled rows are not zero: all that `top_monomials` asks of them."""
    sample = sample.to_scipy() if isinstance(sample, Csr) else sample
    if not sparse.issparse(sample):
        tensors["sample.bits"] = tensor(np.packbits(sample != 0, axis=1))
        return
    filled = sparse.csr_array(sample != 0)
    filled.sort_indices()
    tensors["sample.ends"] = tensor(filled.indptr.astype(np.int64))
    tensors["sample.columns"] = tensor(filled.indices.astype(np.int32))


def _numbers(part):
    """A certificate as a row of numbers."""
    bounds = [part.primal, part.dual, part.gap, part.relative_gap, *part.exact_interval, *part.sampled_interval]
    return [*bounds, part.sampled_stderr, part.theorem1, float(part.n_underflowed)]


def _put_strings(tensors, name, strings):
    """An array of strings: UTF-8, and where each of them ends."""
    if not all(isinstance(string, str) for string in strings):
        raise ValueError(f"{name} holds other things than numbers, truth values and strings")
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    tensors[f"{name}.ends"] = tensor(np.cumsum([len(text) for text in encoded], dtype=np.int64))
    tensors[f"{name}.text"] = tensor(np.frombuffer(b"".join(encoded), dtype=np.uint8))


def _to_json(value, tensors):
    """A parameter's value; arrays are added to the tensors. Dicts stand for what JSON does not have."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list):
        return [_to_json(entry, tensors) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [_to_json(entry, tensors) for entry in value]}
    if isinstance(value, dict) and not any(isinstance(key, tuple) for key in value):
        return {"dict": [[_to_json(entry, tensors) for entry in item] for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        name = f"parameters.{sum(name.startswith('parameters.') for name in tensors)}"
        tensors[name] = tensor(value)
        return {"array": name}
    raise ValueError(f"{value!r} is not made of numbers, strings, lists, tuples, dicts and numpy arrays")
