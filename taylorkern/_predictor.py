"""Prediction, with numpy alone: scikit-learn takes ten times longer to import than a model file to predict."""

import os

import numpy as np

from ._model_reader import check_format, decode
from ._rows import SORT_FROM, Csr, Rows, dot_rows, is_csr, share_out
from ._safetensors import Reader
from ._shift import CHUNK


def outputs(X, model, n_outputs, n_jobs=1):
    """f_k(x) of each row, [n_rows, n_outputs].

    Rows pass by in parts, each of which is shifted and walked by one thread: what does not depend on the other rows.

    Parameters
    ----------
    X : ndarray, CSR or Csr
        As `check_rows` returns it, in any real type.
    model : estimator or Predictor
        It has _expansion, _table, _shift and _walk_dense.
    n_outputs : int
        How many there are of the tables' columns; the others are padding.
    n_jobs : int, default=1
        Threads.
    """
    n_rows = X.shape[0]
    parts, step = (PARTS, CHUNK) if model._table.nbytes <= SORT_FROM else (SORTED_PARTS, SORTED_CHUNK)
    if n_jobs > 1:
        step = int(np.clip(-(-n_rows // (parts * n_jobs)), LEAST, step))
    if is_csr(X):
        X = Csr(X.data, X.indices, X.indptr, X.shape)
    if n_rows <= step:
        return _outputs_of(X, model)[:, :n_outputs]
    values = np.empty((n_rows, n_outputs), dtype=model._table.dtype)

    def take(starts):
        for first in starts:
            last = min(first + step, n_rows)
            part = X[first:last] if isinstance(X, np.ndarray) else X.part(first, last)
            values[first:last] = _outputs_of(part, model)[:, :n_outputs]

    starts = range(0, n_rows, step)
    share_out(take, iter(starts), min(n_jobs, len(starts)))
    return values


def _outputs_of(X, model):
    """The same of all tables, for rows that are taken at once by one thread."""
    expansion, table, shift = model._expansion, model._table, model._shift
    if X.dtype != table.dtype:
        X = X.astype(table.dtype)
    rows = Rows(X) if shift is None else shift.rows(X)
    if rows.core.indptr is not None:
        expansion.check_row(rows.core.max_nonzeros)
    rows.walk_dense(model._walk_dense)  # as in training: a row's value does not depend on those beside it
    return dot_rows(rows, expansion, expansion.margin, table)


class Predictor:
    """A trained model, for prediction only; its values are those of the estimator that `taylorkern.load` makes.

    Parameters
    ----------
    path : str or path-like
        A model file.
    n_jobs : int, default=1
        Threads.

    Attributes
    ----------
    classes : ndarray, or None
        The labels; None for a regression.
    n_columns, n_outputs : int
        Of a row, and of what is told of it.
    dtype : dtype
        In which rows are to come.
    """

    def __init__(self, path, n_jobs=1):
        with open(path, "rb") as stream:
            try:
                reader = Reader(stream, os.fstat(stream.fileno()).st_size, check_format)
                _, _, model = decode(reader, {"TaylorSVC": None, "TaylorSVR": None}, to_predict=True)
            except ValueError as problem:
                raise ValueError(f"{os.fspath(path)}: {problem}") from problem
        self.n_jobs = n_jobs
        self.classes = model.get("classes_")
        if model.get("_multilabel"):
            raise ValueError(f"{os.fspath(path)}: it tells any number of labels for a row; use it from Python")
        self.n_columns, self._expansion = model["n_features_in_"], model["_expansion"]
        self._table, self._shift, self._walk_dense = model["_table"], model["_shift"], model["_walk_dense"]
        self._offset = model.get("offset_", 0.0)
        self.dtype = self._table.dtype
        if self.classes is None:
            self.n_outputs = np.size(self._offset)
        else:
            self.n_outputs = 1 if len(self.classes) == 2 else len(self.classes)

    def __call__(self, data, indices, indptr):
        """Rows in CSR -> the number of each one's class, or its values: an array [n_rows] or [n_rows, n_outputs]."""
        rows = Csr(data, indices, indptr, (len(indptr) - 1, self.n_columns))
        values = outputs(rows, self, self.n_outputs, self.n_jobs)
        if self.classes is None:
            values = values + self._offset
            return values[:, 0] if self.n_outputs == 1 else values
        return (values[:, 0] > 0).astype(np.intp) if self.n_outputs == 1 else values.argmax(axis=1)


PARTS = 8  # of the rows, for each thread: so that none waits long for another;
SORTED_PARTS, SORTED_CHUNK = 2, 4 * CHUNK  # the more rows are sorted, the more of a table they have in common
LEAST = 64  # rows that are worth the while of a thread
