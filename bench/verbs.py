"""The core's verbs on rows as training and prediction call them, and made-up rows to call them on."""

import numpy as np
from scipy import sparse

from taylorkern import _core
from taylorkern._data.expansion import Expansion, padded
from taylorkern._data.rows import Rows, dot_rows
from taylorkern._place.shift import choose_shift
from taylorkern._train.loop import SOLVERS
from taylorkern._train.loss import LABEL_LOSSES
from taylorkern._train.problem import Problem

BLOCK = 256  # dense rows whose margins are taken together


class Verbs:
    """Rows, and K tables of random weights.

    Parameters
    ----------
    X : ndarray or CSR
        The rows as they are walked.
    expansion : Expansion
        Its monomials.
    n_outputs : int
        K.
    block : int
        Rows of one call, as in training; 0: all of them, as in prediction and objectives.
    """

    def __init__(self, X, expansion, n_outputs=1, block=BLOCK):
        self.rows, self.expansion = Rows(X), expansion
        self.rows.core.walk_dense = isinstance(X, np.ndarray)
        self.rows.know_factors(expansion)
        n_rows = self.rows.n_rows
        rng = np.random.default_rng(0)
        width = padded(n_outputs, X.dtype)
        self.weights = rng.standard_normal((expansion.n_slots, width)).astype(X.dtype)
        self.weights[:, n_outputs:] = 0
        self.table = expansion.to_table(self.weights.copy())
        self.t = (1e-3 * rng.standard_normal((n_rows, width))).astype(X.dtype)
        self.out = np.empty((n_rows, width), dtype=X.dtype)
        self.scratch = self.rows.scratch()
        self.blocks = [(i, min(i + block, n_rows)) for i in range(0, n_rows, block)] if block else []

    def margins(self):
        """Of all rows, block after block."""
        if not self.blocks:
            return dot_rows(self.rows, self.expansion, self.expansion.margin, self.table)
        for first, last in self.blocks:
            part = self.out[first:last]
            _core.dot(self.rows.core, self.expansion.margin, first, last, self.table, part, self.scratch)
        return self.out

    def update(self):
        """Add all rows to the table, block after block."""
        for first, last in self.blocks:
            part = self.t[first:last]
            _core.add(self.rows.core, self.expansion.update, first, last, self.table, part, self.scratch)


def shifted(X, degree, gamma):
    """(rows as training walks them: shifted, columns renumbered, CSR; their expansion)."""
    expansion = Expansion(X.shape[1], degree=degree, gamma=gamma)
    return sparse.csr_matrix(choose_shift(X, "auto", expansion)(X)), expansion


def short_rows(n_rows, dtype=np.float32, seed=0):
    """CSR rows of 12 nonzeros in 96 columns, one in each eight of them; and labels that a plane tells to 80 %."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(0, 8, (n_rows, 12), dtype=np.int32)
    indices += np.arange(0, 96, 8, dtype=np.int32)
    values = rng.random((n_rows, 12), dtype=np.float32).astype(dtype, copy=False)
    values += 0.5
    indptr = np.arange(0, 12 * n_rows + 1, 12, dtype=np.int64)
    X = sparse.csr_matrix((values.ravel(), indices.ravel(), indptr), shape=(n_rows, 96))
    return X, plane_labels(X, seed)


def plane_labels(X, seed=0):
    """Labels, -1 and 1, that a plane tells to 80 %."""
    rng = np.random.default_rng(seed)
    y = np.where(X @ rng.standard_normal(X.shape[1]).astype(X.dtype) > 0, 1, -1).astype(np.int8)
    y[rng.random(len(y)) < 0.2] *= -1
    return y


def dense_rows(n_rows, dtype=np.float32, seed=0):
    """Dense rows of 39 normal numbers; and labels that a quadric tells to 90 %."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 39), dtype=np.float32).astype(dtype, copy=False)
    quadric = rng.standard_normal((39, 39)).astype(dtype)
    y = np.where(np.einsum("ij,ij->i", X @ quadric, X) > 0, 1, -1).astype(np.int8)
    y[rng.random(n_rows) < 0.1] *= -1
    return X, y


def solver_of(name, X, y, degree, gamma, C=1.0, n_jobs=1):
    """A solver before its first epoch, on rows as they are walked."""
    expansion = Expansion(X.shape[1], degree=degree, gamma=gamma)
    problem = Problem(X, y[:, None], None, expansion, LABEL_LOSSES["hinge"], C, n_jobs)
    return SOLVERS[name](problem, np.random.RandomState(0), 1e-9)
