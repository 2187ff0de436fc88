"""`taylorkern train`: svmlight rows -> a model file."""

import json
import os
import sys
from math import isfinite
from time import perf_counter

import numpy as np

from ._cli_files import check_output, is_plain, source
from ._cli_predict import name_of
from .cli import Usage, say
from .stream import read_svmlight
from .svm import TaylorSVC, TaylorSVR

REGRESSION = 3  # LIBSVM's number for it


def train(options):
    """Read, train, write, and tell what came out."""
    path = _model_path(options)
    check_output(path, options.data)
    if not is_plain(path):
        raise Usage(f"{path} is not an ordinary file, which a model has to be in")
    model = _estimator(options)
    progress = (lambda text: None) if options.quiet else say
    begin = perf_counter()
    X, y = read_svmlight(
        source(options.data),
        n_features=options.features,
        dtype=np.float32 if options.float32 else np.float64,
        zero_based=options.zero_based,
    )
    if not X.shape[0]:
        raise ValueError(f"{options.data}: it has no rows")
    read = perf_counter() - begin
    progress(f"read {X.shape[0]} rows of {X.shape[1]} columns in {read:.2f} s")
    if options.machine != REGRESSION and (y == np.floor(y)).all() and np.abs(y).max() < 2**53:
        y = y.astype(np.int64)  # so that a label of 1 is 1, not 1.0
    begin = perf_counter()
    interrupted = not _fit(model, X, y)
    if interrupted and not (options.keep and hasattr(model, "n_iter_")):
        raise KeyboardInterrupt(_so_far(model, "; nothing was written"))
    trained = perf_counter() - begin
    begin = perf_counter()
    model.save(path)
    if interrupted:
        raise KeyboardInterrupt(_so_far(model, f"; the model of the last whole epoch is in {path}"))
    progress(f"trained for {model.n_iter_} epochs in {trained:.2f} s")
    if options.json:
        facts = {"model": path, "rows": X.shape[0], "columns": X.shape[1], **facts_of(model)}
        seconds = {"read": read, "train": trained, "write": perf_counter() - begin}
        print(json.dumps(facts | {"bytes": os.path.getsize(path), "seconds": seconds}))
    elif not options.quiet:
        print("\n".join(_summary(model, X, path)))


def _model_path(options):
    if options.model is not None:
        if options.model == "-":
            raise Usage("a model cannot be written to the standard output; name a file for it")
        return options.model
    if options.data == "-":
        raise Usage("name a file for the model: rows from the standard input have no name to take")
    return f"{os.path.basename(options.data)}.model"


def _estimator(options):
    """The estimator that the options describe, with parameters that go together."""
    regression = options.machine == REGRESSION
    names = ("degree", "gamma", "kernel", "coef0", "C", "solver", "tol", "max_iter")
    parameters = {name: getattr(options, name) for name in names}
    parameters |= {"n_jobs": options.jobs, "random_state": options.seed}
    parameters |= {"shift": None if options.no_shift else "auto"}
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


def _fit(model, X, y):
    """Whether training came to its end; not so after Ctrl-C."""
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        return False
    finally:
        model.verbose = 0  # which the file need not know
    return True


def _so_far(model, outcome):
    epochs = getattr(model, "n_iter_", 0)
    return f" after {epochs} epoch{'' if epochs == 1 else 's'} of training{outcome}"


def facts_of(model):
    """What a trained model is, for machines: numbers that JSON does not have are None."""
    certificate = getattr(model, "certificate_", None)
    facts = {
        "estimator": type(model).__name__,
        "degree": model.degree_,
        "gamma": model.gamma_,
        "kernel": model._expansion.kernel,
        "monomials": model._expansion.n_slots,
    }
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    if hasattr(model, "n_iter_"):
        facts["epochs"] = model.n_iter_
    if certificate is not None:
        names = ("primal", "dual", "relative_gap", "exact_interval", "sampled_interval", "theorem1", "n_underflowed")
        facts["certificate"] = {name: _or_none(getattr(certificate, name)) for name in names}
    return facts


def _or_none(value):
    if isinstance(value, tuple):
        return [_or_none(number) for number in value]
    return value if isfinite(value) else None


def _summary(model, X, path):
    kinds = ""
    if hasattr(model, "classes_"):
        labels = ", ".join(map(name_of, model.classes_[:10]))
        kinds = f", classes {labels}{', ...' if len(model.classes_) > 10 else ''}"
    yield f"{X.shape[0]} rows of {X.shape[1]} columns, {X.nnz / X.shape[0]:.1f} nonzeros a row{kinds}"
    yield (
        f"{type(model).__name__}: {model.kernel} kernel, degree {model.degree_}, gamma {model.gamma_:g}, C {model.C:g}"
        f", {model.n_slots_} monomials, {model.n_iter_} epochs"
    )
    yield str(model.certificate_)
    yield f"{path}: {os.path.getsize(path)} bytes"
