"""Prediction, with numpy alone: scikit-learn takes ten times longer to import than a model file to predict."""

import os

import numpy as np

from .._data.rows import SORT_FROM, Csr, Rows, dot_rows, is_csr
from .._data.threads import share_out
from .._place.shift import CHUNK
from .reader import check_format, decode
from .safetensors import Reader


class NotPlain(Exception):
    """Rows are not as they were taken for."""


def outputs(X, model, n_outputs, n_jobs=1, look=None):
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
    look : callable, default=None
        See `look_at`: rows that have not been checked yet. NotPlain is raised where they would have to be.
    """
    n_rows = X.shape[0]
    if is_csr(X):
        X = Csr(X.data, X.indices, X.indptr, X.shape)

    def outputs_of(first, last):
        if look is not None and not look(first, last):
            raise NotPlain
        if first == 0 and last == n_rows:
            return _outputs_of(X, model, 0)[:, :n_outputs]
        part = X[first:last] if isinstance(X, np.ndarray) else X.part(first, last)
        return _outputs_of(part, model, first)[:, :n_outputs]

    parts = list(_parts(n_rows, CHUNK if model._table.nbytes <= SORT_FROM else SORTED_CHUNK, n_jobs))
    if len(parts) <= 1:
        return outputs_of(0, n_rows)
    values = np.empty((n_rows, n_outputs), dtype=model._table.dtype)

    def take(parts):
        for first, last in parts:
            values[first:last] = outputs_of(first, last)

    share_out(take, iter(parts), n_jobs)
    return values


def _parts(n_rows, most, n_jobs):
    """Ranges of rows (first, last). For several threads, smaller ones at the end: so that none waits long for another.

    The more rows a part has, the less there is to do beside them; and the more of a large table they have in common,
    where they are sorted.
    """
    least, first = max(n_rows // (n_jobs * FINEST), LEAST), 0
    while first < n_rows:
        size = most if n_jobs == 1 else min(max((n_rows - first) // (2 * n_jobs), least), most)
        last = min(first + size, n_rows)
        yield first, last
        first = last


def _outputs_of(X, model, first):
    """The same of all tables, for rows that are taken at once by one thread; the first of them has that number."""
    expansion, table, shift = model._expansion, model._table, model._shift
    if X.dtype != table.dtype:
        X = X.astype(table.dtype)
    rows = Rows(X) if shift is None else shift.rows(X)
    if rows.core.indptr is not None:
        expansion.check_row(rows.core.max_nonzeros)
    rows.check_reach(expansion, first)
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


SORTED_CHUNK = 4 * CHUNK  # rows of a part, where they are sorted
FINEST = 64  # parts for each thread, at most, were they all as small as the last
LEAST = 64  # rows that are worth the while of a thread
