"""What a model file predicts, with numpy alone: scikit-learn takes ten times longer to import than this to predict."""

import os

import numpy as np

from ._model_reader import check_format, decode
from ._rows import Csr, Rows, dot_rows
from ._safetensors import Reader
from ._shift import CHUNK


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
        values = np.empty((rows.shape[0], self.n_outputs), dtype=self.dtype)
        for first in range(0, rows.shape[0], CHUNK):
            last = min(first + CHUNK, rows.shape[0])
            values[first:last] = self._values(rows.part(first, last))
        if self.classes is None:
            values = values + self._offset
            return values[:, 0] if self.n_outputs == 1 else values
        return (values[:, 0] > 0).astype(np.intp) if self.n_outputs == 1 else values.argmax(axis=1)

    def _values(self, X):
        rows = Rows(X) if self._shift is None else self._shift.rows(X, self.n_jobs)
        rows.check_longest(self._expansion)
        rows.walk_dense(self._walk_dense)
        return dot_rows(rows, self._expansion, self._expansion.margin, self._table, self.n_jobs)[:, : self.n_outputs]
