"""`taylorkern train`: svmlight rows -> a model file."""

import json
import os
import sys
from math import isfinite
from time import perf_counter

import numpy as np

from .._data.expansion import canonical_kernel
from ..cli import Usage, say
from ..stream import SvmlightFiles, files, read_svmlight
from ..svc import TaylorSVC
from ..svr import TaylorSVR
from .files import check_output, is_plain, source
from .predict import name_of

REGRESSION = 3  # LIBSVM's number for it


def train(options):
    """Read, train, write, and tell what came out."""
    path = _model_path(options)
    check_output(path, *(files(options.data) if options.stream else [options.data]))
    if not is_plain(path):
        raise Usage(f"{path} is not an ordinary file, which a model has to be in")
    model = _estimator(options)
    _check_folder(options)
    progress = (lambda text: None) if options.quiet else say
    begin = perf_counter()
    rows = _Stream(options) if options.stream else read_rows(options, progress)
    read = perf_counter() - begin
    begin = perf_counter()
    interrupted = not _fit(model, rows, options)
    if interrupted and not (options.keep and hasattr(model, "n_iter_")):
        raise KeyboardInterrupt(_so_far(model, _nothing(options)))
    trained = perf_counter() - begin
    begin = perf_counter()
    model.save(path)
    if interrupted:
        raise KeyboardInterrupt(_so_far(model, f"; the model so far is in {path}"))
    progress(f"trained for {model.n_iter_} epochs in {trained:.2f} s")
    if options.json:
        facts = {"model": path, "rows": rows.n_rows, "columns": model.n_features_in_, **facts_of(model)}
        seconds = {"read": read, "train": trained, "write": perf_counter() - begin}
        print(json.dumps(facts | {"bytes": os.path.getsize(path), "seconds": seconds}))
    elif not options.quiet:
        print("\n".join(_summary(model, rows, path)))


class Table:
    """All rows of a file, and their labels or numbers."""

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.n_rows, self.n_stored = X.shape[0], X.nnz


def read_rows(options, progress):
    """The rows of the file that options name."""
    begin = perf_counter()
    X, y = read_svmlight(
        source(options.data),
        n_features=options.features,
        dtype=np.float32 if options.float32 else np.float64,
        zero_based=options.zero_based,
    )
    if not X.shape[0]:
        raise ValueError(f"{options.data}: it has no rows")
    progress(f"read {X.shape[0]} rows of {X.shape[1]} columns in {perf_counter() - begin:.2f} s")
    return Table(X, _labels(y, options))


class _Stream:
    """Rows that pass, as often as they are asked for; of the last time it is known how many there were."""

    def __init__(self, options):
        self.options, self.n_rows, self.n_stored = options, 0, 0
        dtype = np.float32 if options.float32 else np.float64
        self.files = SvmlightFiles(
            options.data, n_features=options.features, dtype=dtype, zero_based=options.zero_based
        )

    def __iter__(self):
        self.n_rows = self.n_stored = 0
        for X, y in self.files:
            self.n_rows, self.n_stored = self.n_rows + X.shape[0], self.n_stored + X.nnz
            yield X, _labels(y, self.options)


def _labels(y, options):
    """Labels as integers where they are whole, so that a label of 1 is 1, not 1.0."""
    whole = options.machine != REGRESSION and (y == np.floor(y)).all() and np.abs(y).max() < 2**53
    return y.astype(np.int64) if whole else y


def _model_path(options):
    if options.model is not None:
        if options.model == "-":
            raise Usage("a model cannot be written to the standard output; name a file for it")
        return options.model
    if options.data == "-" and not options.stream:
        raise Usage("name a file for the model: rows from the standard input have no name to take")
    return f"{os.path.basename(options.data)}.model"


def _estimator(options):
    """The estimator that the options describe, with parameters that go together."""
    regression = options.machine == REGRESSION
    _check_together(options)
    names = ("degree", "gamma", "kernel", "coef0", "C", "solver", "tol", "max_iter")
    parameters = {name: getattr(options, name) for name in names}
    parameters |= {"n_jobs": options.jobs, "random_state": options.seed}
    parameters |= {"shift": None if options.no_shift else "auto"}
    parameters |= {"normalize": False if options.no_normalize else "auto"}
    parameters |= {"n_cells": options.cells, "n_partitions": options.partitions, "n_axes": options.axes}
    if options.loss is not None:
        parameters["loss"] = options.loss
    if regression:
        if options.weight or options.multi_class != "ovr":
            raise Usage("--weight and --multi-class are for classes; -s 3 is a regression")
        model = TaylorSVR(epsilon=options.epsilon, **parameters)
    else:
        model = TaylorSVC(class_weight=_weights(options.weight), multi_class=options.multi_class, **parameters)
    model.verbose = int(options.verbose or (sys.stderr.isatty() and not options.quiet))
    try:
        model._check_parameters()
    except ValueError as problem:
        raise Usage(str(problem)) from None
    return model


def _check_together(options):
    """Refuse options that do not go together, before anything is read."""
    used = {"--cells": options.cells > 1, "--axes": options.axes}
    given = [name for name in used if used[name]]
    if len(given) > 1:
        raise Usage(f"{' and '.join(given)} do not go together")
    if options.partitions > 1 and options.cells == 1:
        raise Usage("--partitions says how often rows are divided into cells: give --cells too")
    kernel = canonical_kernel(options.kernel)
    if (options.cells > 1 or options.axes) and (kernel != "gaussian" or options.no_shift):
        raise Usage(f"{given[0]} takes the gaussian kernel, and rows that are shifted")
    if options.epochs and not options.stream:
        raise Usage("--epochs goes with --stream; without, --max-iter bounds them")
    if options.stream and options.data == "-":
        raise Usage("--stream reads its rows several times, which the standard input cannot be: name a file")
    if options.stream and options.weight == ["balanced"]:
        raise Usage(
            "--weight balanced takes the counts of all classes, which --stream does not know: give LABEL:WEIGHT"
        )


def _check_folder(options):
    folder = options.checkpoint
    if folder is not None and os.path.exists(folder) and not os.path.isdir(folder):
        raise Usage(f"{folder} is not a folder, which checkpoints have to be in")


def _weights(given):
    if given == ["balanced"]:
        return "balanced"
    weights = {}
    for text in given:
        label, _, weight = text.rpartition(":")
        try:
            label, weight = float(label), float(weight)
        except ValueError:
            raise Usage(f"--weight takes LABEL:WEIGHT or balanced; got {text}") from None
        weights[int(label) if label == int(label) else label] = weight
    return weights or None


def _fit(model, rows, options):
    """Whether training came to its end; not so after Ctrl-C."""
    saved = {"checkpoint": options.checkpoint, "checkpoint_every": options.checkpoint_every}
    try:
        if options.stream:
            model.fit_stream(rows, epochs=options.epochs or 1, **saved)
        else:
            model.fit(rows.X, rows.y, **saved)
    except KeyboardInterrupt:
        return False
    finally:
        model.verbose = 0  # which the file need not know
    return True


def _so_far(model, outcome):
    epochs = getattr(model, "n_iter_", 0)  # the last one may have ended just before history was told of it
    return f" after {epochs} epoch{'' if epochs == 1 else 's'} of training{outcome}"


def _nothing(options):
    folder = options.checkpoint
    if folder is not None and os.path.isdir(folder) and os.listdir(folder):
        return f"; no model was written, but the same command goes on from {folder}"
    return "; nothing was written"


def facts_of(model):
    """What a trained model is, for machines: numbers that JSON does not have are None."""
    certificate = getattr(model, "certificate_", None)
    facts = {
        "estimator": type(model).__name__,
        "degree": model.degree_,
        "gamma": model.gamma_,
        "kernel": model._expansion.kernel,
        "monomials": getattr(model, "n_slots_", model._expansion.n_slots),
    }
    if getattr(model, "_cells", None) is not None:
        facts["cells"] = [len(partition.centres) for partition in model._cells.partitions]
    if hasattr(model, "axes_"):
        facts["axes"] = len(model.axes_)
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    if hasattr(model, "n_iter_"):
        facts["epochs"] = model.n_iter_
    if certificate is not None:
        names = ("primal", "dual", "relative_gap", "exact_interval", "sampled_interval", "theorem1", "n_underflowed")
        facts["certificate"] = {name: _or_none(getattr(certificate, name)) for name in names}
        facts["certificate"]["verdict"] = certificate.verdict
    return facts


def _or_none(value):
    if isinstance(value, tuple):
        return [_or_none(number) for number in value]
    return value if isfinite(value) else None


def divided(facts):
    """How rows are divided or rotated before they are expanded: (name, text) for each."""
    if "cells" in facts:
        n_partitions, cells = len(facts["cells"]), sum(facts["cells"])
        often = f" in {n_partitions} partitions" if n_partitions > 1 else ""
        yield "cells", f"{cells}{often}"
    if "axes" in facts:
        yield "axes", str(facts["axes"])


def _summary(model, rows, path):
    kinds = ""
    if hasattr(model, "classes_"):
        labels = ", ".join(map(name_of, model.classes_[:10]))
        kinds = f", classes {labels}{', ...' if len(model.classes_) > 10 else ''}"
    nonzeros = f"{rows.n_stored / rows.n_rows:.1f} nonzeros a row"
    yield f"{rows.n_rows} rows of {model.n_features_in_} columns, {nonzeros}{kinds}"
    parts = "".join(f", {name} {text}" for name, text in divided(facts_of(model)))
    yield (
        f"{type(model).__name__}: {model.kernel} kernel, degree {model.degree_}, gamma {model.gamma_:g}, C {model.C:g}"
        f"{parts}, {model.n_slots_} monomials, {model.n_iter_} epochs"
    )
    if hasattr(model, "certificate_"):
        yield str(model.certificate_)
    yield f"{path}: {os.path.getsize(path)} bytes"
