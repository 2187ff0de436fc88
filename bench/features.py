"""The feature map and its operator beside what people use today, in one table.

    python -m bench.features --data DIR [--quick] [--only a,d] [--json FILE]

One thread; ours and the peer run in turns, on the same rows, and the least time of each counts. Every call allocates
its result anew. Fitting and construction are not timed; validation of the input is.
"""

import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from taylorkern import TaylorFeatures, TaylorOperator

from . import data
from .memory import operator_peak
from .run import run
from .table import Row
from .timing import interleave, ratio

MB = 1e6
NS = 1e9


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    output: float  # bytes of one transform: so many that malloc asks the system for new pages each time
    stored: float  # bytes of stored sparse features to multiply with
    dense_rows: int  # rows of stored dense features: 46 kB each
    repeats: int
    budget: float  # seconds of one row of the table, about


FULL = Sizes(output=240e6, stored=3e9, dense_rows=16384, repeats=9, budget=20)
QUICK = Sizes(output=150e6, stored=500e6, dense_rows=4096, repeats=3, budget=5)


class Bench:
    """The parts of the table; each yields its rows."""

    def __init__(self, directory, sizes, clock):
        self.directory = directory
        self.sizes = sizes
        self.clock = clock

    @cache  # noqa: B019 (one instance, as long as the process)
    def whole(self, name):
        """All rows of a set, in float64 (speech: float32)."""
        return data.load(name, self.directory).X

    def share(self, name, degree, n_bytes, *, again=False):
        """Random rows whose features take about n_bytes; with `again`, the same rows several times where a set has
        too few."""
        X = self.whole(name)
        cost = TaylorFeatures(degree=degree).estimate_cost(X)
        n_rows = max(1, int(X.shape[0] * n_bytes / cost.bytes))
        return data.sample(X, n_rows, again=again)

    def time(self, **work):
        """The least seconds of each."""
        return interleave(work, repeats=self.sizes.repeats, budget=self.sizes.budget, clock=self.clock)

    def transformation(self, name, degree):
        """(a call of transform, its number of nonzeros, its rows), of the usual size."""
        X = self.share(name, degree, self.sizes.output, again=True)
        features = TaylorFeatures(degree=degree).fit(X)
        return lambda: features.transform(X), features.estimate_cost(X).nonzeros, X

    def polynomial_features(self):
        """a: transform against scikit-learn's compiled expansion of sparse rows, per nonzero of each."""
        for name in ("adult", "covertype", "mnist"):
            for degree in (2, 3):
                transform, nonzeros, X = self.transformation(name, degree)
                peer = PolynomialFeatures(degree=degree, include_bias=True).fit(X)
                theirs = peer.transform(X).nnz
                times = self.time(ours=transform, peer=lambda peer=peer, X=X: peer.transform(X))
                ours, other = NS * times["ours"] / nonzeros, NS * times["peer"] / theirs
                yield Row(
                    "a",
                    f"transform, {name}, degree {degree}, {X.shape[0]} rows",
                    "PolynomialFeatures",
                    "ns a nonzero",
                    ours,
                    other,
                    other / ours,
                    at_least=3.5,
                )

    def higher_degrees(self):
        """b: transform at higher degrees against itself at degree 3, per nonzero."""
        for name, degree in (("adult", 4), ("covertype", 4), ("covertype", 5)):
            high, nonzeros, X = self.transformation(name, degree)
            low, low_nonzeros, _ = self.transformation(name, 3)
            times = self.time(ours=high, peer=low)
            ours, other = NS * times["ours"] / nonzeros, NS * times["peer"] / low_nonzeros
            yield Row(
                "b",
                f"transform, {name}, degree {degree}, {X.shape[0]} rows",
                "itself at degree 3",
                "ns a nonzero",
                ours,
                other,
                ours / other,
                at_most=1.3,
            )

    def writing(self):
        """c: transform against writing its two large arrays and nothing else."""
        works = [(name, degree) for name in ("adult", "covertype", "mnist") for degree in (2, 3)]
        for name, degree in (*works, ("adult", 4), ("covertype", 4), ("covertype", 5)):
            transform, nonzeros, X = self.transformation(name, degree)
            result = transform()
            types = result.data.dtype, result.indices.dtype
            del result
            times = self.time(ours=transform, peer=lambda types=types, n=nonzeros: [write(n, kind) for kind in types])
            yield Row(
                "c",
                f"transform, {name}, degree {degree}, {X.shape[0]} rows",
                "writing as many bytes",
                "ns a nonzero",
                NS * times["ours"] / nonzeros,
                NS * times["peer"] / nonzeros,
                ratio(times, "ours", "peer"),
                at_most=2.5,
            )

    def sparse_products(self):
        """d: products of the operator against scipy's with stored features, and the memory of both."""
        for name in ("adult", "covertype"):
            for degree in (3, 4):
                for dtype in (np.float64, np.float32):
                    yield from self.sparse_product(name, degree, dtype)

    def sparse_product(self, name, degree, dtype):
        """Both directions for one set, degree and type; the targets are for the product in float64."""
        judged = dtype == np.float64
        label = f"{name}, degree {degree}, {np.dtype(dtype).name}"
        whole = self.whole(name).astype(dtype)
        cost = TaylorFeatures(degree=degree).estimate_cost(whole)
        table = product_memory(TaylorOperator(whole, degree=degree))
        X = self.share(name, degree, self.sizes.stored).astype(dtype)
        del whole

        stored = TaylorFeatures(degree=degree).fit(X).transform(X)
        for direction, ours, peer in both_directions(TaylorOperator(X, degree=degree), stored):
            note_difference(f"{label}, {direction}", ours(), peer())
            times = self.time(ours=ours, peer=peer)
            yield Row(
                "d",
                f"{direction}, {label}, {X.shape[0]} rows",
                "scipy, stored features",
                "ns a monomial",
                NS * times["ours"] / stored.nnz,
                NS * times["peer"] / stored.nnz,
                ratio(times, "peer", "ours"),
                at_least=1.5 if judged and direction == "product" else None,
            )
        yield Row(
            "d",
            f"memory, {label}, all rows",
            "scipy, stored features",
            "MB",
            table / MB,
            cost.bytes / MB,
            cost.bytes / table,
            at_least=100 if judged else None,
        )

    def dense_products(self):
        """e: products of the operator against numpy's with stored dense features of speech-like rows."""
        X = self.whole("speech")[: self.sizes.dense_rows]
        stored = dense_features(X, degree=3)
        for direction, ours, peer in both_directions(TaylorOperator(X, degree=3), stored):
            note_difference(f"dense, {direction}", ours(), peer())
            times = self.time(ours=ours, peer=peer)
            yield Row(
                "e",
                f"{direction}, 39 columns, degree 3, float32, {len(X)} rows",
                "numpy, stored features",
                "us a row",
                1e6 * times["ours"] / len(X),
                1e6 * times["peer"] / len(X),
                ratio(times, "peer", "ours"),
                at_least=4 if direction == "product" else None,
            )

    def peak_memory(self):
        """f: the operator's peak on top of its input and D numbers; the result of the product is part of it."""
        for name, degree in (("covertype", 3), ("covertype", 4), ("adult", 4)):
            self.whole(name)  # parsed here, so that the measured process finds it in the cache
            peak = operator_peak(name, self.directory, degree)
            yield Row(
                "f",
                f"peak of TaylorOperator, {name}, degree {degree}, all rows",
                "input and D numbers",
                "MB",
                (peak.beyond_table + peak.table) / MB,
                peak.table / MB,
                peak.beyond_table / MB,
                figure_unit=" MB",
                at_most=16,
            )


PARTS = {
    "a": Bench.polynomial_features,
    "b": Bench.higher_degrees,
    "c": Bench.writing,
    "d": Bench.sparse_products,
    "e": Bench.dense_products,
    "f": Bench.peak_memory,
}


def both_directions(operator, stored):
    """(name, a product of the operator, the same with the stored features), forward and transposed."""
    rng = np.random.default_rng(0)
    v, t = (rng.standard_normal(n).astype(operator.dtype) for n in reversed(operator.shape))
    transposed = stored.T
    return (
        ("product", lambda: operator @ v, lambda: stored @ v),
        ("transposed", lambda: operator.rmatvec(t), lambda: transposed @ t),
    )


def product_memory(operator):
    """Bytes of a product beside its operands: what it allocates, and the order of rows that the operator keeps."""
    orders = (part.rows.core.order for part in operator._parts)
    return sum(order.nbytes for order in orders if order is not None) + max(map(part_memory, operator._parts))


def part_memory(part):
    """Bytes that the product of a part allocates: scratch, and a table where it makes one."""
    table = part.expansion.n_slots * part.rows.dtype.itemsize if part.weigh_apart else 0
    return table + part.rows.scratch().nbytes + (part.reordering.longest_move if part.reordering else 0)


def write(n, dtype):
    """A new array of n numbers, each written once."""
    array = np.empty(n, dtype=dtype)
    array.fill(1)
    return array


def dense_features(X, degree):
    """The features of X as a dense array, made from the sparse ones a few rows at a time."""
    features = TaylorFeatures(degree=degree).fit(X)
    stored = np.empty((len(X), features.n_features_out_), dtype=X.dtype)
    for first in range(0, len(X), 1024):
        features.transform(X[first : first + 1024]).toarray(out=stored[first : first + 1024])
    return stored


def note_difference(what, ours, peer):
    """Say so when the two sides do not compute the same."""
    tolerance = 1e-8 if ours.dtype == np.float64 else 1e-2
    error = np.linalg.norm(ours.astype(np.float64) - peer) / np.linalg.norm(peer.astype(np.float64))
    if not error <= tolerance:
        print(f"note: {what}: the results differ by {error:.1e} (relative)", file=sys.stderr)


def main(arguments=None):
    run("bench.features", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
