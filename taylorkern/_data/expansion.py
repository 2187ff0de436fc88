"""The expansion of a kernel into monomials: which ones, how many, where they lie, and with which factors."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import comb, factorial, isfinite, sqrt
from numbers import Integral, Real

import numpy as np

from .. import _core
from .memory import check_memory

# Monomials walked between two looks at Ctrl-C: about 10 ms.
PASS_MONOMIALS = 2**23
CHUNK_ROWS = 2**13  # of a stream, that are taken at once: whole blocks of every solver
BARE_TO_DEGREE = 20
MAX_DEGREE = 170  # 170! is the largest factorial that a double holds
MAX_INDEX = 2**63 - 1
MAX_COLUMNS = 2**31 - 2  # columns are numbered in 32 bits, behind the constant coordinate
# A row of this many monomials takes about a fifth of a second. Longer ones could not be interrupted in good time, and
# nobody has ever meant them: 768 nonzeros at degree 4 are 14.7 billion.
MAX_ROW_MONOMIALS = 2**28

KERNELS = ("gaussian", "exponential", "polynomial")
ALIASES = {"rbf": "gaussian", "poly": "polynomial"}  # scikit-learn's names
NAMES = ", ".join((*KERNELS, *ALIASES))


def canonical_kernel(kernel):
    """A kernel under its one name, when it has one; anything else as it is."""
    return ALIASES.get(kernel, kernel) if isinstance(kernel, str) else kernel


class TooManyMonomials(ValueError):
    """They cannot be numbered. `problem` is the message without what would help."""

    def __init__(self, problem, remedy=""):
        super().__init__(f"{problem}{remedy and '; '}{remedy}")
        self.problem = problem


class Expansion:
    """The monomials of degree <= r of d columns, and the kernel that they expand.

    K~(x, x') = s(x) s(x') sum_{k <= r} (c_k / k!) <z, z'>^k  with z = scale * x and s(x) = exp(-decay |z|^2), or, of
    unit rows, the s(x) that makes K~(x, x) = 1.

    Parameters
    ----------
    n_columns : int
        The number of columns d.
    degree : int
        The degree r.
    gamma : float
        The bandwidth parameter, with scikit-learn's meaning.
    kernel : {"gaussian", "rbf", "exponential", "polynomial", "poly"} or sequence of float
        A named kernel, or the coefficients c_0 .. c_r. The attribute has the first of two names.
    coef0 : float
        The constant of the polynomial kernel.
    weights : sequence of float, default=None
        Of the Gaussian kernel: c_0 .. c_r in place of Taylor's, which are 1. Only model files of version 2 have such.
    normalize : bool, default=False
        Whether rows are unit rows.
    """

    def __init__(self, n_columns, *, degree, gamma, kernel="gaussian", coef0=1.0, weights=None, normalize=False):
        self.n_columns = int(n_columns)
        self.degree = check_degree(degree)
        self.gamma = check_positive("gamma", gamma)
        kernel = canonical_kernel(kernel)
        self.coefficients = _coefficients(kernel, self.degree, coef0)
        self.kernel = kernel if isinstance(kernel, str) else tuple(self.coefficients)
        self.weights = None
        if weights is not None:
            if self.kernel != "gaussian":
                raise ValueError(f"weights are for the Gaussian kernel; got kernel={kernel!r}")
            self.coefficients = _coefficients(weights, self.degree, coef0)
            self.weights = tuple(self.coefficients)
        self.coef0 = coef0
        self.normalize = bool(normalize)
        if self.normalize and self.coefficients[-1] == 0:
            raise ValueError("normalize=True takes a kernel whose last coefficient is > 0; got 0")
        self.scale = sqrt(2) * sqrt(self.gamma) if self.kernel in ("gaussian", "exponential") else sqrt(self.gamma)
        self.decay = 0.5 if self.kernel == "gaussian" and not self.normalize else 0.0
        if self.n_columns > MAX_COLUMNS:
            raise ValueError(f"X has {self.n_columns} columns; at most {MAX_COLUMNS} can be numbered")
        self.n_slots = comb(self.n_columns + self.degree, self.degree)
        if self.n_slots > MAX_INDEX:
            raise TooManyMonomials(
                f"degree={self.degree} on {self.n_columns} columns makes {self.n_slots} monomials, more than a "
                f"64-bit index can number ({MAX_INDEX})",
                _degree_that_fits(self.n_columns, MAX_INDEX),
            )

    def __reduce__(self):
        return _rebuild, (self.n_columns, *self._facts)

    @property
    def _facts(self):
        return self.degree, self.gamma, self.kernel, self.coef0, self.weights, self.normalize

    def grow(self, n_columns):
        """The same with more columns."""
        return _rebuild(n_columns, *self._facts)

    def monomials(self, n_nonzeros):
        """The number of nonzero monomials of a row, exactly."""
        return comb(int(n_nonzeros) + self.degree, self.degree)

    def check_row(self, n_nonzeros):
        """Refuse rows with too many monomials to be walked in one go."""
        if self.monomials(n_nonzeros) > MAX_ROW_MONOMIALS:
            raise ValueError(
                f"a row with {n_nonzeros} nonzeros has {self.monomials(n_nonzeros)} monomials of degree <= "
                f"{self.degree}, more than the limit of {MAX_ROW_MONOMIALS} for one row; "
                f"{_degree_that_fits(n_nonzeros, MAX_ROW_MONOMIALS)}"
            )

    def series(self, z):
        """sum_k (c_k / k!) z^k, element by element, by Horner's rule. The array z is overwritten and returned."""
        terms = [c / factorial(k) for k, c in enumerate(self.coefficients)]
        total = np.full_like(z, terms[-1])
        for term in reversed(terms[:-1]):
            total *= z
            total += term
        z[...] = total
        return z

    @property
    def has_factor(self):
        """Whether s(x) is anything but 1."""
        return self.normalize or self.decay != 0

    @property
    def is_cut(self):
        """Whether it is a part of a larger kernel, and not one of its own."""
        return self.weights is None and self.kernel in ("gaussian", "exponential")

    def projected(self):
        """Of unit rows of a cut kernel, what their features are parts of: the same of the Gaussian kernel."""
        return Expansion(self.n_columns, degree=self.degree, gamma=self.gamma)

    def homogeneous(self, u, c):
        """sum_k (c_k / k!) u^k c^(r - k), element by element: the series of unit rows, at u = z / (rho rho')."""
        terms = [c / factorial(k) for k, c in enumerate(self.coefficients)]
        total, power = np.full(np.broadcast_shapes(np.shape(u), np.shape(c)), terms[-1]), 1.0
        for term in reversed(terms[:-1]):
            power = power * c
            total = total * u + term * power
        return total

    def kernel_of(self, z, t, other_t, beyond=0.0, other_beyond=0.0):
        """K~ of pairs of rows, by <x, x'>, |x|^2 and |x'|^2, and what is left out of the latter; all of them scaled."""
        if self.normalize:
            rho, other_rho = (np.maximum(np.sqrt(norms), 1.0) for norms in (t, other_t))
            c = 1 / rho / other_rho
            norms, other_norms = (
                self.homogeneous(part / by**2, 1 / by**2) for part, by in ((t, rho), (other_t, other_rho))
            )
            norms = norms * other_norms
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(norms > 0, self.homogeneous(z / rho / other_rho, c) / np.sqrt(norms), 0.0)
        exponent = -self.decay * (t + beyond + other_t + other_beyond)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(exponent < -745, 0.0, self.series(np.array(z, dtype=np.float64)) * np.exp(exponent))

    # Slots: exact integers in both directions.

    def slot_of(self, powers):
        """The slot of the monomial with these powers: {column: power}, or one power for each column."""
        multiset = _multiset(powers, self.n_columns)
        if len(multiset) > self.degree:
            raise ValueError(f"powers add up to {len(multiset)}, more than the degree {self.degree}")
        multiset = [0] * (self.degree - len(multiset)) + multiset
        return sum(comb(j + p, p + 1) for p, j in enumerate(multiset))

    def powers_of(self, slot):
        """{column: power} of the monomial in this slot, columns rising."""
        if isinstance(slot, bool) or not isinstance(slot, Integral):
            raise ValueError(f"slot must be an integer; got {slot!r}")
        rest = int(slot)
        if not 0 <= rest < self.n_slots:
            raise ValueError(f"slot {rest} is outside 0 to {self.n_slots - 1}")
        powers: dict[int, int] = {}
        highest = self.n_columns
        for p in range(self.degree, 0, -1):
            low = 0  # the largest j with C(j + p - 1, p) <= rest lies in low .. highest
            while low < highest:
                middle = (low + highest + 1) // 2
                if comb(middle + p - 1, p) <= rest:
                    low = middle
                else:
                    highest = middle - 1
            rest -= comb(low + p - 1, p)
            if low == 0:
                break
            powers[low - 1] = powers.get(low - 1, 0) + 1
            highest = low
        return dict(sorted(powers.items()))

    # What C reads.

    @cached_property
    def ranks(self):
        """[r + 1, d + 2] with C(j + p - 1, p) at [p, j]. Row p sums up row p - 1: exact, and never beyond n_slots."""
        shape = (self.degree + 1, self.n_columns + 2)
        if shape[0] * shape[1] > 2**16:  # less is always there, and it takes a while to ask how much is
            check_memory(
                shape[0] * shape[1] * 8, None, f"the ranks of {self.n_columns} columns at degree {self.degree}"
            )
        ranks = np.empty(shape, dtype=np.int64)
        ranks[0] = 1
        for p in range(1, self.degree + 1):
            ranks[p, 0] = 0
            np.cumsum(ranks[p - 1, 1:], out=ranks[p, 1:])
        return ranks

    @cached_property
    def bare(self):
        """The map of bare monomials, s(x) x^a."""
        return self._map(lambda c: 1.0, lambda e: 1.0, bare=True)

    @cached_property
    def features(self):
        """The feature map, s(x) sqrt(c_|a| / a!) x^a."""
        return self._map(sqrt, lambda e: 1 / sqrt(e))

    # A model's table. Margins are the commonest walk, and bare monomials the fastest: so a model of weights w is stored
    # as u_a = w_a sqrt(c / a!), and a row is added to it with the factors c / a!. At high degrees those are too small
    # for a float32, as bare monomials are too large, and the table holds w itself.

    @property
    def margin(self):
        """The map whose inner product with a model's table is the margin."""
        return self.bare if self.degree <= BARE_TO_DEGREE else self.features

    @cached_property
    def update(self):
        """The map of what is added to a model's table."""
        return self._map(float, lambda e: 1 / e) if self.degree <= BARE_TO_DEGREE else self.features

    def to_table(self, w, cells=None):
        """Weights of features -> a model's table, in place. With cells, the tables of each of them."""
        if self.degree <= BARE_TO_DEGREE:
            self.weigh(self.features, w, cells)
        return w

    def to_weights(self, table, cells=None):
        """A model's table -> weights of features, in place."""
        if self.degree <= BARE_TO_DEGREE:
            self.weigh(self._map(lambda c: 1 / sqrt(c) if c > 0 else 0.0, sqrt), table, cells)
        return table

    def weigh(self, metric, table, cells=None):
        """Multiply each slot of a table (or of several, side by side) by its monomial's factor in a map."""
        if table.ndim == 1:
            table = table[:, None]
        scratch = np.zeros(_core.weigh_scratch_bytes(metric, table.itemsize), dtype=np.uint8)
        for begin, n_columns in [(0, self.n_columns)] if cells is None else cells.tables():
            for first, last in passes(self.ranks[-1, : n_columns + 2]):
                _core.weigh(metric, first, last, table[begin:], scratch)

    def _map(self, of_coefficient, of_repeat, bare=False):
        r = self.degree
        constant = np.array([of_coefficient(self.coefficients[r - p]) for p in range(r + 1)])
        repeat = np.array([1.0] + [of_repeat(e) for e in range(1, r + 1)])
        series = np.array([c / factorial(k) for k, c in enumerate(self.coefficients)])
        return _core.Map(self.scale, self.decay, self.normalize, self.ranks, constant, repeat, series, bare)


def passes(ends, worth=PASS_MONOMIALS):
    """Ranges (first, last), each worth about so many monomials, of things that begin at ends[0], ends[1], ..."""
    first, n = 0, len(ends) - 1
    while first < n:
        end = ends.dtype.type(min(int(ends[first]) + worth, int(ends[-1])))
        last = min(max(first + 1, int(np.searchsorted(ends, end, side="right")) - 1), n)
        yield first, last
        first = last


def padded(n_outputs, dtype):
    """How many tables lie side by side: vectors of 32 bytes, when there are several outputs."""
    some = 32 // np.dtype(dtype).itemsize
    return 1 if n_outputs == 1 else -(-n_outputs // some) * some


def check_count(name, value):
    """Refuse what is not a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer > 0; got {value!r}")


def _rebuild(n_columns, degree, gamma, kernel, coef0, weights=None, normalize=False):
    facts = {"degree": degree, "gamma": gamma, "kernel": kernel, "coef0": coef0}
    return Expansion(n_columns, **facts, weights=weights, normalize=normalize)


def check_normalize(normalize):
    """Refuse what is neither True nor False."""
    if not isinstance(normalize, bool | np.bool_):
        raise ValueError(f"normalize must be True or False; got {normalize!r}")


def check_degree(degree):
    """The degree as an int, or a ValueError."""
    if isinstance(degree, bool) or not isinstance(degree, Integral) or not 1 <= degree <= MAX_DEGREE:
        raise ValueError(f"degree must be an integer from 1 to {MAX_DEGREE}; got {degree!r}")
    return int(degree)


def resolve_gamma(gamma, X):
    """gamma as a number: "scale" is 1 / (d * X.var()), "auto" is 1 / d, as in sklearn.svm.SVC."""
    if isinstance(gamma, str):
        n_columns = max(X.shape[1], 1)
        if gamma == "auto":
            return 1.0 / n_columns
        if gamma == "scale":
            variance = _variance(X)
            return 1.0 / (n_columns * variance) if variance > 0 else 1.0
        raise ValueError(f'gamma must be "scale", "auto" or a number > 0; got {gamma!r}')
    return check_positive("gamma", gamma)


def _variance(X):
    """The variance of all entries, without a copy of X."""
    size = X.shape[0] * X.shape[1]
    if size == 0:
        return 0.0
    values = (X.data if hasattr(X, "indptr") else X).reshape(-1)
    parts = [values[i : i + 2**18] for i in range(0, len(values), 2**18)]
    mean = sum(float(part.sum(dtype=np.float64)) for part in parts) / size
    around = sum(float(np.square(part - mean, dtype=np.float64).sum()) for part in parts)
    return (around + (size - len(values)) * mean**2) / size


def check_positive(name, value):
    if isinstance(value, bool) or not isinstance(value, Real) or not (isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0; got {value!r}")
    return float(value)


def _coefficients(kernel, degree, coef0):
    """c_0 .. c_r."""
    if isinstance(kernel, str):
        if kernel in ("gaussian", "exponential"):
            return [1.0] * (degree + 1)
        if kernel == "polynomial":
            if isinstance(coef0, bool) or not isinstance(coef0, Real) or not (isfinite(coef0) and coef0 >= 0):
                raise ValueError(f"coef0 must be a finite number >= 0; got {coef0!r}")
            coefficients = [_times_power(_falling(degree, k), float(coef0), degree - k) for k in range(degree + 1)]
            if not all(map(isfinite, coefficients)):
                raise ValueError(f"coef0={coef0!r} at degree={degree} makes coefficients beyond what a double holds")
            return coefficients
        raise ValueError(f"kernel must be one of {NAMES} or a sequence of numbers; got {kernel!r}")
    if not isinstance(kernel, Sequence | np.ndarray):
        raise ValueError(f"kernel must be one of {NAMES} or a sequence of numbers; got {kernel!r}")
    if len(kernel) != degree + 1:
        raise ValueError(f"degree={degree} takes {degree + 1} kernel coefficients; got {len(kernel)}")
    for k, c in enumerate(kernel):
        if isinstance(c, bool) or not isinstance(c, Real) or not (isfinite(c) and c >= 0):
            raise ValueError(f"kernel coefficients must be finite numbers >= 0; got {c!r} at position {k}")
    return [float(c) for c in kernel]


def _falling(r, k):
    return factorial(r) // factorial(r - k)


def _times_power(factor, base, exponent):
    try:
        return factor * base**exponent
    except OverflowError:
        return float("inf")


def _degree_that_fits(n_columns, limit):
    degree = 0
    while comb(n_columns + degree + 1, degree + 1) <= limit:
        degree += 1
    return f"the largest degree that fits is {degree}" if degree else "no degree fits"


def _multiset(powers, n_columns):
    """Powers -> the sorted coordinates (column + 1), each as often as its power says."""
    if not isinstance(powers, Mapping):
        powers = list(powers)
        if len(powers) != n_columns:
            raise ValueError(f"powers must have one entry for each of {n_columns} columns; got {len(powers)}")
        powers = {j: e for j, e in enumerate(powers) if e != 0}
    multiset = []
    for column, power in powers.items():
        if isinstance(column, bool) or not isinstance(column, Integral) or not 0 <= column < n_columns:
            raise ValueError(f"column {column!r} is not one of 0 to {n_columns - 1}")
        if isinstance(power, bool) or not isinstance(power, Integral) or not 0 <= power <= MAX_DEGREE:
            raise ValueError(f"powers must be integers from 0 to {MAX_DEGREE}; got {power!r}")
        multiset += [int(column) + 1] * int(power)
    return sorted(multiset)
