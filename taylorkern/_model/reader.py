"""From the facts and tensors of a model file to an estimator. Nothing is believed: see docs/model-file.md."""

from dataclasses import replace

import numpy as np

from .. import _core
from .._data.expansion import Expansion, padded
from .._data.memory import check_memory
from .._place.cells import Cells, Partition, Sample
from .._place.rotation import Rotation
from .._place.shift import Shift
from .._train.certificate import Certificate
from .._train.primal import FLOOR, Stream
from .safetensors import CHUNK, DTYPES, parse

FORMAT, FORMAT_VERSION = "taylorkern model", 3
# Parameters that files before some version of the format may lack, {name: version}: they have their defaults then.
LATER: dict[str, int] = {"n_cells": 2, "n_partitions": 2, "n_axes": 2, "n_jobs": 2, "normalize": 3}
BEFORE = {"normalize": False}  # what some of them stood for then, where that is not the default
# Parameters that are gone, {name: the last version of the format with it}: what it did is in the facts and tensors.
GONE: dict[str, int] = {"weights": 2}
HISTORY = ("epoch", "seconds", "primal", "dual", "active", "primal_seen")
N_CERTIFICATE = 11  # numbers of a certificate
MAX_FLOAT = float(np.finfo(np.float64).max)  # Python's, with which integers of any size compare
STREAM_TABLES = {"w": 0.0, "squares": FLOOR, "average": 0.0}  # and what their padding holds


def check_format(metadata):
    """Refuse what is not a model file, or comes from a later version."""
    if metadata.get("format") != FORMAT:
        raise ValueError("it is a safetensors file, but no model of taylorkern")
    if metadata.get("version") not in map(str, range(1, FORMAT_VERSION + 1)):
        raise ValueError(
            f"it has version {metadata.get('version')!r} of the format, written by {metadata.get('writer')!r}; this "
            f"taylorkern reads versions up to {FORMAT_VERSION}"
        )


def check_classes(classes):
    """Refuse labels that `np.unique` would not give."""
    if classes.ndim != 1 or len(classes) < 2 or not (classes[1:] > classes[:-1]).all():
        raise ValueError("the classes are fewer than two, or do not rise")


def decode(reader, parameters, to_predict=False):
    """What a file holds.

    Parameters
    ----------
    reader : Reader
        The file.
    parameters : dict of str to list of str
        The classes that it may hold, and the parameters of each; None: any.
    to_predict : bool, default=False
        Whether to leave out what prediction does not need and scipy does: the sampled rows.

    Returns
    -------
    name : str
        The class.
    parameters, attributes : dict
        Of the estimator.
    """
    try:
        return _Decoder(reader, to_predict).estimator(parameters)
    except RecursionError:
        raise ValueError("the metadata are nested too deeply") from None


class _Decoder:
    """Takes facts and tensors out of a file, until nothing is left."""

    def __init__(self, reader, to_predict=False):
        self.to_predict = to_predict
        self.facts, self.tensors, self.n_bytes = dict(reader.metadata), dict(reader.tensors), reader.n_bytes

    def estimator(self, known):
        del self.facts["format"]
        version, name = int(self.facts.pop("version")), self.facts.pop("estimator", None)
        if self.facts.pop("writer", None) is None:
            raise ValueError("the metadata do not have 'writer'")
        if name not in known:
            raise ValueError(f"it holds a {name!r}, which is none of {', '.join(known)}")
        parameters = self._parameters(known[name], version)
        expansion = self._expansion()
        attributes = {
            "n_features_in_": expansion.n_columns,
            "degree_": expansion.degree,
            "gamma_": expansion.gamma,
            "_expansion": expansion,
        }
        if "n_features" in self.facts and name != "TaylorFeatures":
            attributes["n_features_in_"] = self._count("n_features", 1)
        if "names.ends" in self.tensors:
            attributes["feature_names_in_"] = self._strings("names", attributes["n_features_in_"])
        if name == "TaylorFeatures":
            attributes["n_features_out_"] = expansion.n_slots
            self._check_empty()
        else:
            attributes |= self._model(expansion, attributes["n_features_in_"], of_classes=name == "TaylorSVC")
        return name, parameters, attributes

    # Facts and tensors.

    def _fact(self, name, *types):
        """The value of a fact, of one of these types."""
        if name not in self.facts:
            raise ValueError(f"the metadata do not have {name!r}")
        value = parse(self.facts.pop(name), name)
        if type(value) not in types:
            raise ValueError(f"{name} is of the wrong type, {type(value).__name__}")
        return value

    def _count(self, name, least):
        value = self._fact(name, int)
        if value < least:
            raise ValueError(f"{name} is {value}, less than {least}")
        return value

    def _take(self, name, dtypes, *shape):
        """A tensor, to be read, of one of these types and of this shape, where None is any number."""
        if name not in self.tensors:
            raise ValueError(f"there is no tensor {name}")
        found = self.tensors.pop(name)
        if found.dtype not in [DTYPES[dtype] for dtype in dtypes]:
            raise ValueError(f"{name} has numbers of the wrong type, {found.dtype}; right: {', '.join(dtypes)}")
        if len(found.shape) != len(shape) or any(n not in (None, m) for n, m in zip(shape, found.shape, strict=True)):
            expected = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(f"{name} has the shape {found.shape}; it should be ({expected})")
        return found

    def _strings(self, name, count):
        """An array of strings: so many, or any number for None."""
        ends = self._take(f"{name}.ends", ("I64",), count).read()
        text = self._take(f"{name}.text", ("U8",), None).read().tobytes()
        if (np.diff(ends, prepend=0) < 0).any() or (ends[-1] if len(ends) else 0) != len(text):
            raise ValueError(f"{name}.ends does not rise from 0 to {len(text)}")
        strings, begin = np.empty(len(ends), dtype=object), 0
        try:
            for k, end in enumerate(ends):
                strings[k] = text[begin:end].decode("utf-8", "surrogatepass")
                begin = end
        except UnicodeDecodeError as problem:
            raise ValueError(f"{name}.text is not UTF-8: {problem}") from None
        return strings

    def _check_empty(self):
        for what, left in (("fact", self.facts), ("tensor", self.tensors)):
            if left:
                raise ValueError(f"it has the {what} {next(iter(left))!r}, which does not belong there")

    # What every estimator has.

    def _parameters(self, known, version):
        given = self._fact("parameters", dict)
        given = {name: value for name, value in given.items() if version > GONE.get(name, 0)}
        known = given if known is None else known
        for name in given:
            if name not in known:
                raise ValueError(f"it has the parameter {name!r}, which is not known")
        for name in known:
            if name not in given and version >= LATER.get(name, 1):
                raise ValueError(f"the parameter {name!r} is missing")
        earlier = {name: value for name, value in BEFORE.items() if name in known and version < LATER[name]}
        return earlier | {name: self._value(value, name) for name, value in given.items()}

    def _value(self, value, name):
        """A parameter's value, from what `model_file._to_json` makes of it."""
        if isinstance(value, list):
            return [self._value(entry, name) for entry in value]
        if not isinstance(value, dict):
            return value
        tag, content = next(iter(value.items())) if len(value) == 1 else (None, None)
        if tag == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if tag == "tuple" and isinstance(content, list):
            return tuple(self._value(content, name))
        if tag == "array" and str(content).startswith("parameters.") and content in self.tensors:
            return self.tensors.pop(content).read()
        if tag == "dict" and isinstance(content, list) and all(isinstance(e, list) and len(e) == 2 for e in content):
            keys, values = ([self._value(item[end], name) for item in content] for end in (0, 1))
            if all(key is None or isinstance(key, bool | int | float | str) for key in keys):
                found = dict(zip(keys, values, strict=True))
                if len(found) == len(keys):
                    return found
        raise ValueError(f"{name} has a value that no estimator has")

    def _expansion(self):
        # All cells may be without columns that vary.
        n_columns = self._count("n_columns", 0 if "n_partitions" in self.facts else 1)
        n_slots = self._count("n_slots", 1)
        degree, gamma, kernel = self._fact("degree", int), self._fact("gamma", float), self._fact("kernel", str, list)
        coef0 = self._value(self._fact("coef0", float, int, bool, str, list, dict, type(None)), "coef0")
        try:
            weights = self._fact("weights", list) if "weights" in self.facts else None
            normalize = self._fact("normalize", bool) if "normalize" in self.facts else False
            settings = {"degree": degree, "gamma": gamma, "kernel": kernel, "coef0": coef0, "weights": weights}
            expansion = Expansion(n_columns, **settings, normalize=normalize)
        except OverflowError:
            raise ValueError("kernel or coef0 has a number beyond what a double holds") from None
        if expansion.n_slots != n_slots:
            raise ValueError(
                f"n_slots is {n_slots}, but {n_columns} columns have {expansion.n_slots} monomials of degree <= "
                f"{expansion.degree}"
            )
        return expansion

    # What trained models have.

    def _model(self, expansion, n_features, of_classes):
        d = expansion.n_columns
        meaning, n_outputs = self._classes() if of_classes else self._targets()
        walk_dense = self._fact("walk_dense", bool)
        if walk_dense and d > _core.MAX_DENSE_COLUMNS:  # C relies on it
            raise ValueError(f"walk_dense is true for {d} columns; it can be for up to {_core.MAX_DENSE_COLUMNS}")
        shift, n_slots, sample = None, expansion.n_slots, self._sample(d)
        if "n_partitions" in self.facts:
            shift = self._cells(n_features, expansion, walk_dense)
            n_slots, sample = shift.n_slots, self._sample_in_cells(sample, shift)
        elif "rotation.mean" in self.tensors:
            shift = self._rotation(n_features, expansion)
        elif n_features != d:
            raise ValueError(f"n_features is {n_features}, but n_columns {d}")
        else:
            shift = self._shift(d, expansion.kernel)
        attributes = {
            **meaning,
            "n_slots_": n_slots,
            "n_iter_": self._count("n_iter", 1),
            "_shift": shift,
            "_walk_dense": walk_dense,
            "_sample": sample,
            "_alpha": None,
            "_support": None,
            "_stream": None,
        }
        if "interrupted" in self.facts:
            attributes["interrupted_"] = self._fact("interrupted", bool)
        if "history" in self.tensors:
            attributes["history_"] = self._history()
        if "certificate" in self.tensors:
            attributes["certificate_"] = self._certificate(shift)
        # Two classes may have been trained together, with an output for each.
        widths = (1, 2) if of_classes and n_outputs == 1 else (n_outputs,)
        if "alpha" in self.tensors:
            alpha = self._take("alpha", ("F64",), None, None)
            if alpha.shape[1] not in widths:
                raise ValueError(f"alpha has the shape {alpha.shape}, for {n_outputs} outputs")
            attributes["_alpha"] = alpha.read()
        if "support" in self.tensors:
            classes = meaning["classes_"] if of_classes else [None]
            attributes["_support"] = self._support(len(classes), shared=meaning.get("_multilabel", False))
        tables = {"table": (n_outputs, 0.0)}
        if "stream" in self.facts:
            numbers = self._stream_numbers()
            n_trained = self._fact("stream_outputs", int)
            if n_trained not in widths:
                raise ValueError(f"stream_outputs is {n_trained}, for {n_outputs} outputs")
            tables |= {f"stream.{name}": (n_trained, padding) for name, padding in STREAM_TABLES.items()}
            units = self._take("stream.unit", (self._real(),), n_trained).read()
            if (units < 0).any():
                raise ValueError("stream.unit has negative numbers")
        read = self._tables(tables, n_slots)
        attributes["_table"] = read.pop("table")
        if isinstance(shift, Cells):
            attributes["shift_"] = [partition.by for partition in shift.partitions]
        else:  # this late, when d is known to be no mere claim
            attributes["shift_"] = np.zeros(d) if shift is None else shift.by
        if read:
            w, squares, average = read.values()
            n_averaged, n_seen, n_restarted, eta = numbers
            unit = np.ones(w.shape[1], dtype=w.dtype)
            unit[: len(units)] = units
            attributes["_stream"] = Stream(w, squares, average, n_averaged, n_seen, n_restarted, eta, unit)
        return attributes

    def _classes(self):
        """(attributes, the number of outputs)."""
        if "classes.points" in self.tensors:
            found = self._take("classes.points", ("U32",), None, None)
            if found.shape[1] < 1:
                raise ValueError(f"classes.points has the shape {found.shape}")
            points = found.read()
            if points.size and points.max() > 0x10FFFF:
                raise ValueError("classes.points has numbers that stand for no character")
            classes = points.view(f"U{points.shape[1]}")[:, 0]
        elif "classes.ends" in self.tensors:
            classes = self._strings("classes", None)
        else:
            classes = self._take("classes", DTYPES, None).read()
        check_classes(classes)
        multilabel = self._fact("multilabel", bool)
        n_outputs = 1 if len(classes) == 2 and not multilabel else len(classes)
        return {"classes_": classes, "_multilabel": multilabel}, n_outputs

    def _targets(self):
        """(attributes, the number of outputs)."""
        offset, one_target = self._take("offset", ("F64",), None).read(), self._fact("one_target", bool)
        if len(offset) < 1 or (one_target and len(offset) > 1):
            raise ValueError(f"offset has {len(offset)} numbers")
        meaning = {"_one_target": one_target, "_n_tables": len(offset), "offset_": offset}
        if one_target:
            meaning["offset_"] = float(offset[0])
        return meaning, len(offset)

    def _shift(self, d, kernel):
        if "shift" not in self.tensors:
            return None  # a place without it is refused as left over
        by, nonzeros = self._take("shift", ("F64",), d).read(), self._fact("nonzeros", float)
        if by.any() and kernel != "gaussian":
            raise ValueError("there is a shift, which only the gaussian kernel allows")
        if nonzeros < 0:
            raise ValueError(f"nonzeros is {nonzeros}")
        if "place" not in self.tensors:
            return Shift(by, None, nonzeros)
        place = self._take("place", ("I32",), d).read()
        seen = np.zeros(d, dtype=bool)
        if place.min() >= 0 and place.max() < d:
            seen[place] = True
        if not seen.all():
            raise ValueError(f"place does not have each of 0 to {d - 1} once")
        return Shift(by, place, nonzeros)

    def _rotation(self, n_features, expansion):
        if expansion.kernel != "gaussian":
            raise ValueError("there are principal axes, which only the gaussian kernel allows")
        mean = self._take("rotation.mean", ("F64",), n_features)
        axes = self._take("rotation.axes", ("F64",), n_features, expansion.n_columns)
        return Rotation(mean.read(), axes.read())

    def _cells(self, d, expansion, walk_dense):
        if expansion.kernel != "gaussian":
            raise ValueError("there are cells, which only the gaussian kernel allows")
        use = self._take("cells.use", ("I32",), d).read()
        n_used = int((use >= 0).sum())
        _check_places(use[None], "cells.use")
        partitions = []
        for p in range(self._count("n_partitions", 1)):
            centres = self._take(f"cells.{p}.centres", ("F64",), None, n_used)
            if centres.shape[0] < 1:
                raise ValueError(f"cells.{p}.centres has no rows")
            by, place = self._take(f"cells.{p}.shift", ("F64",), centres.shape[0], d), None
            if f"cells.{p}.place" in self.tensors:
                place = self._take(f"cells.{p}.place", ("I32",), centres.shape[0], d).read()
                _check_places(place, f"cells.{p}.place")
            partitions.append(Partition(use, centres.read(), by.read(), place))
        if len({partition.place is None for partition in partitions}) > 1:  # C relies on it
            raise ValueError("some partitions have a place, and others have none")
        cells = Cells(partitions, expansion.degree)
        if cells.n_columns != expansion.n_columns:
            raise ValueError(f"n_columns is {expansion.n_columns}, but cells have up to {cells.n_columns}")
        if walk_dense and not cells.alike:  # C relies on it
            raise ValueError("walk_dense is true, but some cells have fewer columns than others")
        return cells

    def _sample_in_cells(self, filled, cells):
        n_rows = None if filled is None else filled.shape[0]  # who only predicts does without the sample
        base = self._take("sample.base", ("I64",), n_rows).read()
        if len(base) % len(cells.partitions) or not np.isin(base, np.concatenate(cells.bases)).all():
            raise ValueError("sample.base has slots at which no cell begins")
        return Sample(filled, base)

    def _sample(self, d):
        """Where some training rows are not zero: CSR, or an array of bool."""
        if "sample.bits" in self.tensors:
            bits = self._take("sample.bits", ("U8",), None, -(-d // 8))
            if bits.shape[0] < 1:
                raise ValueError("sample.bits has no rows")
            check_memory(bits.shape[0] * d, None, f"{bits.shape[0]} sampled rows of {d} columns")
            return np.unpackbits(bits.read(), axis=1, count=d).view(bool)
        ends = self._take("sample.ends", ("I64",), None).read()
        columns = self._take("sample.columns", ("I32",), None).read()
        if len(ends) < 2:
            raise ValueError("sample.ends has no rows")
        if ends.min() < 0 or ends.max() != ends[-1] or ends[-1] != len(columns):
            raise ValueError(f"sample.ends does not rise from 0 to {len(columns)}")
        if len(columns) <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)
        else:
            columns = columns.astype(np.int64)
        problem, canonical = _core.check_structure(ends, columns, d, len(columns))
        if problem or not canonical:
            raise ValueError(f"sample.ends and sample.columns are no rows: {problem or 'columns do not rise'}")
        if self.to_predict:
            return None
        from scipy import sparse

        return sparse.csr_array((np.ones(len(columns), dtype=bool), columns, ends), shape=(len(ends) - 1, d))

    def _history(self):
        table = self._take("history", ("F64",), None, len(HISTORY)).read(any_number=True)
        history = dict(zip(HISTORY, table.T.copy(), strict=True))
        for name in ("epoch", "active"):
            history[name] = _whole(history[name], f"history, {name}")
        return history

    def _certificate(self, shift):
        whole, *parts = self._certificates("certificate", None)
        cells = []
        if "certificate.cells" in self.tensors and isinstance(shift, Cells) and len(shift.partitions) == 1:
            cells = self._certificates("certificate.cells", len(shift.bases[0]))  # elsewhere refused as left over
        return replace(whole, parts=tuple(parts), cells=tuple(cells))

    def _certificates(self, name, n):
        table = self._take(name, ("F64",), n, N_CERTIFICATE).read(any_number=True)
        if len(table) < 1:
            raise ValueError(f"{name} has no rows")
        underflowed = _whole(table[:, -1], f"{name}, n_underflowed").tolist()
        return [_certificate(row, n) for row, n in zip(table.tolist(), underflowed, strict=True)]

    def _support(self, n_counts, shared):
        """(the numbers of the support vectors, how many each class has); shared: one may have several labels."""
        rows = self._take("support", ("I32",), None).read()
        counts = self._take("n_support", ("I32",), n_counts).read()
        if (np.diff(rows, prepend=-1) <= 0).any():
            raise ValueError("support does not rise from 0")
        total = int(counts.sum(dtype=np.int64))
        if counts.min() < 0 or counts.max() > len(rows) or total < len(rows) or not (shared or total == len(rows)):
            raise ValueError(f"n_support does not count the {len(rows)} rows of support")
        return rows, counts

    def _stream_numbers(self):
        numbers = self._fact("stream", list)
        kinds = ((int,), (int, float), (int, float), (float,))
        if len(numbers) != 4 or any(type(n) not in kind for n, kind in zip(numbers, kinds, strict=True)):
            raise ValueError("stream is not an integer and three numbers")
        if not all(0 <= n <= MAX_FLOAT for n in numbers) or numbers[0] >= 2**53:
            raise ValueError("stream has numbers that are negative or too large")
        return numbers

    def _real(self):
        """The type of all tables."""
        first = self.tensors.get("table") or self.tensors.get("table.values")
        if first is None:
            raise ValueError("there is no tensor table, and no table.values")
        return "F32" if first.dtype == DTYPES["F32"] else "F64"

    def _tables(self, tables, n_slots):
        """The tables, {name: (outputs, what padding holds)}, all of the same type."""
        real = self._real()
        dtype, stored, n_bytes = DTYPES[real], {}, self.n_bytes  # of all tensors, with the tables as they will be
        for name, (n_outputs, _) in tables.items():
            n_numbers = n_slots * n_outputs
            fill = 0.0
            if name in self.tensors:
                bits, values = None, self._take(name, (real,), n_slots, n_outputs)
            else:
                bits = self._take(f"{name}.bits", ("U8",), -(-n_numbers // 8))
                values = self._take(f"{name}.values", (real,), None)
                if f"{name}.fill" in self.tensors:
                    fill = self._take(f"{name}.fill", (real,), n_outputs).read()
            stored[name] = bits, values, fill
            n_bytes += n_slots * padded(n_outputs, dtype) * dtype.itemsize - values.n_bytes
        self._check_empty()
        check_memory(n_bytes, None, f"a model of {n_slots} monomials")
        return {name: _table(*stored[name], n_slots, *tables[name]) for name in tables}


def _table(bits, values, fill, n_slots, n_outputs, padding):
    """Tables [n_slots, width], from all of their numbers; or from those that are not `fill`, and where they lie."""
    dtype = values.dtype.newbyteorder("=")
    table = np.zeros((n_slots, padded(n_outputs, dtype)), dtype=dtype)  # of memory that is not used until it is touched
    if padding:
        table[:, n_outputs:] = padding
    if np.any(fill):
        table[:, :n_outputs] = fill
    step = max(8, CHUNK // n_outputs // dtype.itemsize // 8 * 8)  # slots; of whole bytes of bits
    for first in range(0, n_slots, step):
        part = table[first : first + step, :n_outputs]
        if bits is None:
            part[:] = values.take(part.size).reshape(part.shape)
            continue
        here = np.unpackbits(bits.take(-(-part.size // 8))).view(bool)
        if here[part.size :].any():
            raise ValueError(f"{bits.name} has bits behind the last number")
        part[here[: part.size].reshape(part.shape)] = values.take(int(np.count_nonzero(here)))
    values.check_end()
    return table


def _check_places(place, what):
    """In each row the numbers that are not -1 are 0, 1, ... in some order."""
    in_order = np.sort(place, axis=1)
    n_left_out = np.count_nonzero(place < 0, axis=1)[:, None]
    if not np.array_equal(in_order, np.maximum(np.arange(place.shape[1]) - n_left_out, -1)):
        raise ValueError(f"{what} does not number some columns 0, 1, ... and the others -1")


def _whole(numbers, what):
    """Numbers that have to be integers, as such."""
    if not (np.abs(numbers) < 2**53).all() or not (numbers == np.floor(numbers)).all():
        raise ValueError(f"{what}: these are no integers")
    return numbers.astype(np.int64)


def _certificate(row, n_underflowed):
    primal, dual, gap, relative_gap, low, high, sampled_low, sampled_high, stderr, theorem1, _ = row
    exact, sampled = (low, high), (sampled_low, sampled_high)
    return Certificate(primal, dual, gap, relative_gap, exact, sampled, stderr, theorem1, n_underflowed)
