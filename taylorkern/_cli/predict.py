"""`taylorkern predict`: batch by batch, with numpy alone unless probabilities are asked for."""

import json
import sys
from time import perf_counter

import numpy as np

from ..cli import Usage, say
from ..stream import iter_arrays
from .files import check_output, source, written


def predict(options):
    """Write the prediction for each row, and tell how many are right."""
    if options.json and options.output == "-":
        raise Usage("--json goes to the standard output, where the predictions are: name a file for these")
    check_output(options.output, options.data, options.model)
    teller = (_Probabilities if options.probabilities else _Labels)(options.model, options.jobs)
    score = _Numbers() if teller.classes is None else _Classes(teller.classes)
    rows = iter_arrays(
        source(options.data), n_features=teller.n_columns, dtype=teller.dtype, zero_based=options.zero_based
    )
    progress = _Progress(sys.stderr.isatty() and not options.quiet)
    with written(options.output) as file:
        file.write(teller.head)
        for entries, y in rows:
            told, text = teller(entries)
            file.write(text)
            score.add(told, y)
            progress.add(len(y))
    if options.json:
        print(json.dumps(score.facts()))
    elif not options.quiet:
        print("\n".join(score.lines()), file=sys.stderr if options.output == "-" else sys.stdout)


class _Labels:
    """(what is predicted, its lines) of a batch."""

    head = b""

    def __init__(self, path, n_jobs):
        from .._model.predictor import Predictor

        self.predict = Predictor(path, _threads(n_jobs))
        self.classes, self.n_columns, self.dtype = self.predict.classes, self.predict.n_columns, self.predict.dtype
        self.names = None if self.classes is None else [f"{name_of(label)}\n".encode() for label in self.classes]

    def __call__(self, entries):
        """Predict."""
        told = self.predict(*entries)
        if self.names is not None:
            return told, b"".join(map(self.names.__getitem__, told.tolist()))
        lines = map(repr, told.tolist()) if told.ndim == 1 else (" ".join(map(repr, row)) for row in told.tolist())
        return told, "".join(f"{line}\n" for line in lines).encode()


class _Probabilities:
    """The same with the probability of each class behind its label, below a line of all labels, as LIBSVM has it."""

    def __init__(self, path, n_jobs):
        from .._model.files import load

        self.model = load(path)
        if not hasattr(self.model, "predict_proba") or getattr(self.model, "_multilabel", False):
            raise ValueError(f"{path}: it has no probabilities; models of two or more classes with loss=log_loss do")
        self.model.n_jobs = n_jobs
        self.classes, self.n_columns = self.model.classes_, self.model.n_features_in_
        self.dtype = self.model._table.dtype
        self.names = [name_of(label) for label in self.classes]
        self.head = f"labels {' '.join(self.names)}\n".encode()

    def __call__(self, entries):
        from scipy import sparse

        X = sparse.csr_array(entries, shape=(len(entries[2]) - 1, self.n_columns))
        probabilities = self.model.predict_proba(X)
        told = np.searchsorted(self.classes, self.model.predict(X))
        lines = (
            " ".join([self.names[k], *(f"{p:.6g}" for p in row)])
            for k, row in zip(told.tolist(), probabilities.tolist(), strict=True)
        )
        return told, "".join(f"{line}\n" for line in lines).encode()


class _Classes:
    """How many labels are right."""

    def __init__(self, classes):
        self.n_rows = self.n_right = 0
        self.classes = classes.astype(np.float64) if classes.dtype.kind in "biuf" else None

    def add(self, told, y):
        self.n_rows += len(y)
        if self.classes is not None:
            self.n_right += int(np.count_nonzero(self.classes[told] == y))

    def facts(self):
        if self.classes is None or not self.n_rows:  # nothing that the labels of svmlight rows, numbers, could equal
            return {"rows": self.n_rows, "correct": None, "accuracy": None}
        return {"rows": self.n_rows, "correct": self.n_right, "accuracy": self.n_right / self.n_rows}

    def lines(self):
        if self.facts()["accuracy"] is None:
            yield f"{self.n_rows} rows"
            return
        share = 100 * self.n_right / self.n_rows
        yield f"Accuracy = {share:g}% ({self.n_right}/{self.n_rows}) (classification)"


class _Numbers:
    """How far numbers are off."""

    def __init__(self):
        self.n_rows, self.one_target, self.sums = 0, True, np.zeros(6)

    def add(self, told, y):
        self.n_rows += len(y)
        self.one_target = told.ndim == 1
        if self.one_target:
            v = told.astype(np.float64)
            self.sums += [((v - y) ** 2).sum(), v.sum(), y.sum(), (v * v).sum(), (y * y).sum(), (v * y).sum()]

    def facts(self):
        facts: dict[str, float | None] = {"rows": self.n_rows, "mean_squared_error": None, "squared_correlation": None}
        if not self.n_rows or not self.one_target:
            return facts
        n, (off, v, y, vv, yy, vy) = self.n_rows, self.sums.tolist()
        spread = (n * vv - v * v) * (n * yy - y * y)
        facts["mean_squared_error"] = off / n
        facts["squared_correlation"] = (n * vy - v * y) ** 2 / spread if spread > 0 else None
        return facts

    def lines(self):
        facts = self.facts()
        if facts["mean_squared_error"] is None:
            yield f"{self.n_rows} rows"
            return
        correlation = float("nan") if facts["squared_correlation"] is None else facts["squared_correlation"]
        yield f"Mean squared error = {facts['mean_squared_error']:g} (regression)"
        yield f"Squared correlation coefficient = {correlation:g} (regression)"


class _Progress:
    """A line a second."""

    def __init__(self, shown):
        self.shown, self.n_rows, self.told = shown, 0, perf_counter()

    def add(self, n_rows):
        self.n_rows += n_rows
        if self.shown and perf_counter() - self.told >= 1:
            say(f"{self.n_rows} rows")
            self.told = perf_counter()


def name_of(label):
    """A label as it is written in svmlight files: 1.0 is 1."""
    if isinstance(label, float | np.floating):
        return str(int(label)) if label == int(label) else repr(float(label))
    return str(int(label)) if isinstance(label, bool | np.bool_) else str(label)


def _threads(n_jobs):
    if n_jobs > 0:
        return n_jobs
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)
