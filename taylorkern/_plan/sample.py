"""The rows that a plan looks at: drawn once, shifted as training would shift them."""

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.extmath import row_norms
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._data.checks import check_rows, check_sparse_structure
from .._data.expansion import Expansion, resolve_gamma
from .._place.shift import choose_shift
from ..kernel import pair_products
from .lost import SAMPLE, draw

LARGEST, SAMPLE_BYTES = 2**18, 2**27  # of the sample that is timed: rows, and bytes about
LOOKED_AT = 2**14  # rows whose monomials are counted
HELD_OUT = 2**11  # rows of the sample that are only predicted, or a fifth of it
PAIRS = 20_000


class Sample:
    """Rows that are looked at, in random order: as given, shifted, and with the exact kernel of some pairs."""

    def __init__(self, X, y, n_rows, model):
        if sparse.issparse(X):
            check_sparse_structure(X)
            X = X if X.format in ("csr", "csc", "lil") else X.tocsr()
        width = (X.nnz / n_rows if sparse.issparse(X) else X.shape[1]) if len(getattr(X, "shape", ())) == 2 else 100
        drawn = draw(n_rows, int(np.clip(SAMPLE_BYTES / (8 * max(width, 1)), SAMPLE, LARGEST)))
        self.n_rows, self.X = n_rows, check_rows(_safe_indexing(X, drawn), empty=False)
        self.y = None if y is None else y[drawn]
        self.gamma = resolve_gamma(model.gamma, self.X)
        self.expansion = Expansion(self.X.shape[1], degree=1, gamma=self.gamma, kernel=model.kernel, coef0=model.coef0)
        self.shift = choose_shift(self.X, model.shift, self.expansion)
        self.looked_at = self.moved(self.X[:LOOKED_AT])
        scale2 = self.expansion.scale**2
        self.norms = scale2 * row_norms(self.looked_at, squared=True).astype(np.float64)
        self.pairs = i, j = np.random.RandomState(0).randint(self.looked_at.shape[0], size=(2, PAIRS))
        z = scale2 * pair_products(self.looked_at, i, j)
        self.exact = np.exp(z - (self.norms[i] + self.norms[j]) / 2)
        few = draw(n_rows, SAMPLE)  # the rows that degree="auto" would take
        self.few = self.moved(check_rows(_safe_indexing(X, few)).astype(self.X.dtype, copy=False))
        self.few_y = None if y is None else y[few]
        self.parts = self._parts(model)

    def moved(self, X):
        """Rows as they are walked."""
        return X if self.shift is None else self.shift(X)

    def energy(self):
        """Each column's share of the squared distances."""
        X = self.looked_at
        spread = mean_variance_axis(X, axis=0)[1] if sparse.issparse(X) else X.var(axis=0, dtype=np.float64)
        if self.shift is not None and self.shift.place is not None:
            spread = spread[self.shift.place]
        return spread / spread.sum() if spread.sum() > 0 else spread

    def _parts(self, model):
        """(rows, targets, (rows, targets) held out) for training; each class comes early where there are classes."""
        if self.y is None:
            return self.X, None, None
        n = self.X.shape[0]
        n_held = min(HELD_OUT, n // 5)
        order = np.arange(n_held, n)
        y = self.y[order]
        if is_classifier(model) and y.ndim == 1:
            first = np.unique(y, return_index=True)[1]
            if len(first) < 2:
                return self.X, None, None
            order = np.concatenate([order[first], np.delete(order, first)])
        held = slice(0, n_held) if n_held else slice(0, n)
        return self.X[order], self.y[order], (self.X[held], self.y[held])
