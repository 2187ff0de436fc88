"""What we reach beside what the machine can do: one table of our work, its roof and the ratio.

    python -m bench.roofline [--data DIR] [--quick] [--only a,c] [--json FILE]

Ours and its roof run in turns, and the least time of each counts. One thread and CPU time, but for parts e and f, which
compare two threads with one by the clock on the wall: for those the machine should have nothing else to do. Parts that
need a data set which is not there are left out.
"""

import sys
import tracemalloc
from copy import copy
from dataclasses import dataclass
from functools import wraps

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC, LinearSVC

from taylorkern import TaylorFeatures, TaylorSVC
from taylorkern._data.expansion import Expansion
from taylorkern._data.memory import available_memory

from . import data, roofs
from .edges import metered
from .features import note_difference
from .run import Timed, run
from .svm import quietly
from .table import Row
from .timing import CLOCKS, busy_cores, interleave
from .verbs import Verbs, dense_rows, shifted, short_rows, solver_of

L2_SHARE = 2**19  # bytes of pairs that stay in the second-level cache, beside what they are multiplied with
NS = 1e9
AGAIN = 200


@dataclass(frozen=True)
class Sizes:
    """How much work is timed."""

    repeats: int
    rows: int  # of each set, at most
    multiply_adds: float  # of one dense measurement
    epoch_rows: int  # of the largest epoch
    edge_rows: int  # of the largest fit whose edges are looked at
    batch: int  # rows that are predicted at once


FULL = Sizes(15, 10**9, 2e9, 10**7, 500_000, 10**6)
QUICK = Sizes(5, 30_000, 5e8, 10**6, 100_000, 10**5)


def with_data(part):
    """Left out, with a note, when the data set is not there."""

    @wraps(part)
    def rows(self):
        try:
            yield from part(self)
        except data.MissingData as problem:
            print(f"note: {problem}", file=sys.stderr)

    return rows


class Bench(Timed):
    """The parts of the table; each yields its rows."""

    def load(self, name, dtype=np.float64):
        """(X, y) of a set in random order, or of as many of its rows as there are to be."""
        X, y = data.load(name, self.directory)
        n_rows = min(self.sizes.rows, X.shape[0])
        return data.sample(X, n_rows).astype(dtype), data.sample(y, n_rows)

    def dense(self):
        """a: dense blocks, 39 columns, degree 3, against numpy's matrix product: multiply-adds a second."""
        yield from self.dense_block("a", np.float32, 3, 1, 45)
        yield from self.dense_block("a", np.float64, 3, 1)
        yield from self.dense_block("a", np.float32, 3, 39)
        yield from self.dense_block("a", np.float64, 3, 39)

    def dense_higher(self):
        """b: the same at degree 4, 123,410 slots."""
        yield from self.dense_block("b", np.float32, 4, 1, 35)
        yield from self.dense_block("b", np.float64, 4, 1)

    def dense_block(self, part, dtype, degree, n_outputs, target=None):
        """Margins and update of blocks of dense rows."""
        expansion = Expansion(39, degree=degree, gamma=1 / 78)
        n_blocks = max(1, int(self.sizes.multiply_adds / expansion.n_slots / n_outputs / 256))
        X, _ = dense_rows(256 * n_blocks, dtype)
        verbs = Verbs(X, expansion, n_outputs)
        product, counted = roofs.product(dtype)
        times = self.seconds(margins=verbs.margins, update=verbs.update, product=product)
        roof = counted / times["product"]
        name = np.dtype(dtype).name
        for verb in ("margins", "update"):
            rate = len(X) * expansion.n_slots * n_outputs / times[verb]
            outputs = f", {n_outputs} outputs" if n_outputs > 1 else ""
            yield Row(
                part, f"block {verb}, dense, degree {degree}, {name}{outputs}", "numpy's matrix product", "1e9 FMA/s",
                rate / NS, roof / NS, 100 * rate / roof, " %", at_least=target,
            )  # fmt: skip

    @with_data
    def sparse_cached(self):
        """c: margins of sparse rows against their stored pairs, which are in the second-level cache."""
        for name, degree in (("covertype", 4), ("mnist", 2)):
            for dtype in (np.float32, np.float64):
                yield from self.sparse_rows("c", name, degree, dtype, 1.3, cached=True)
            yield from self.sparse_rows("c", name, degree, np.float64, None, cached=True, given=True)

    @with_data
    def sparse_streamed(self):
        """d: margins of sparse rows against their stored pairs, streamed from memory."""
        yield from self.sparse_rows("d", "adult", 4, np.float32, 1.5)
        yield from self.sparse_rows("d", "adult", 4, np.float64, None)
        yield from self.sparse_rows("d", "adult", 4, np.float64, None, given=True)

    def sparse_rows(self, part, name, degree, dtype, target, cached=False, given=False):
        """Rows as training walks them (or as they are given), and their stored features."""
        X, _ = self.load(name, dtype)
        X, expansion = (X, Expansion(X.shape[1], degree=degree, gamma=1 / 80)) if given else shifted(X, degree, 1 / 80)
        features = TaylorFeatures(degree=degree, gamma=1 / 80)
        cost = features.estimate_cost(X)
        room = 2**20 if cached else 2**26  # pairs in all
        X = X[: max(1, int(X.shape[0] * min(1, room / cost.nonzeros)))]
        Z = features.fit(X).transform(X)
        group, repeats, order = None, 1, np.arange(X.shape[0])
        if cached:
            group = max(1, int(X.shape[0] * L2_SHARE / (Z.nnz * (4 + Z.dtype.itemsize))))
            repeats = 16
            order = order[: len(order) // group * group]
            Z, order = Z[order], np.tile(order.reshape(-1, 1, group), (repeats, 1)).ravel()
        verbs = Verbs(X[order], expansion, block=0)
        pairs = roofs.Pairs(Z, verbs.weights[:, 0], group, repeats)
        ours = verbs.margins()[_first(order, Z.shape[0]), 0]
        for way, call in pairs.ways().items():
            note_difference(f"{name}, {way}", ours, call())
        times = self.seconds(ours=verbs.margins, **pairs.ways())
        count = Z.nnz * repeats
        way, best = min(((way, times[way]) for way in pairs.ways()), key=lambda pair: pair[1])
        what = f"{name}, degree {degree}, {Z.dtype}{', rows as given' if given else ''}"
        yield Row(
            part, f"margins, {what}", f"pairs {'in L2' if cached else 'streamed'} ({way})",
            "ns a monomial", NS * times["ours"] / count, NS * best / count, best / times["ours"],
            at_least=target if roofs.library() else None,
        )  # fmt: skip

    @with_data
    def fit_threads(self):
        """e: a fit by the dual on two threads against one, wall time; the same bits."""
        X, y = self.load("adult")
        yield from self.two_threads("adult, degree 4", TaylorSVC(degree=4, gamma=1 / 80, random_state=0), X, y)
        X, y = self.load("covertype")
        for degree, target in ((3, None), (4, 1.6)):  # at degree 3 rows are too little work for a second thread
            model = TaylorSVC(degree=degree, gamma=1.0, max_iter=3, random_state=0)
            yield from self.two_threads(f"covertype, degree {degree}, 3 epochs", model, X, y == 1, target)
        model = TaylorSVC(degree=4, gamma=1.0, max_iter=1, random_state=0)
        yield from self.two_threads("covertype, degree 4, 7 classes, 1 epoch", model, X, y)
        X, y = self.load("mnist")
        model = TaylorSVC(degree=2, gamma=1 / 400, tol=1e-2, random_state=0)
        yield from self.two_threads("mnist, degree 2", model, X, y == 8)
        X, y = self.load("timit", np.float32)
        model = TaylorSVC(degree=3, gamma=1 / 78, loss="squared_hinge", max_iter=3, random_state=0)
        yield from self.two_threads("timit, degree 3, 39 phonemes, 3 epochs", model, X, y)
        for degree, n_rows in ((4, 40_000), (3, 100_000)):
            X, y = dense_rows(min(self.sizes.rows, n_rows))
            model = TaylorSVC(degree=degree, gamma=1 / 78, max_iter=3, random_state=0)
            yield from self.two_threads(f"dense, degree {degree}, float32, 3 epochs", model, X, y)
        with busy_cores():
            yield from self.two_threads(f"dense, degree {degree}, cores busy", model, X, y, None)

    def two_threads(self, name, model, X, y, target=1.6):
        """The rows of part e on one model."""
        models = {n: clone(model).set_params(n_jobs=n) for n in (1, 2)}
        work = {n: lambda model=model: quietly(model.fit, X, y) for n, model in models.items()}
        yield from self.on_two("e", f"fit, {name}", work, min(9, self.sizes.repeats), target)
        if not np.array_equal(models[1].monomial_coef_, models[2].monomial_coef_):
            print(f"note: {name}: two threads make another model", file=sys.stderr)

    def on_two(self, part, name, work, repeats, target):
        """Work on two threads against one; and what two threads get of this machine meanwhile."""
        roof = {f"products {n}": roofs.products(n) for n in (1, 2)}
        times = interleave({**{str(n): call for n, call in work.items()}, **roof}, repeats=repeats, clock="wall")
        for what, key, at_least in ((name, "", target), ("  products of matrices meanwhile", "products ", None)):
            one, two = times[f"{key}1"], times[f"{key}2"]
            yield Row(part, f"{what}, 2 threads", "1 thread", "s", two, one, one / two, at_least=at_least)

    @with_data
    def predict_threads(self):
        """f: prediction on two threads against one, wall time."""
        X, y = self.load("covertype")
        sets = {
            "covertype, degree 4": (TaylorSVC(degree=4, gamma=1.0, max_iter=1, random_state=0), X, y == 1),
            "dense, degree 3, float32": (TaylorSVC(degree=3, gamma=1 / 78, max_iter=1), *dense_rows(200_000)),
        }
        for name, (model, X, y) in sets.items():
            quietly(model.fit, X[:5000], y[:5000])
            models = {n: copy(model).set_params(n_jobs=n) for n in (1, 2)}
            work = {n: lambda model=model, X=X: model.predict(X) for n, model in models.items()}
            yield from self.on_two("f", f"predict, {name}", work, self.sizes.repeats, 1.85)

    def epochs(self):
        """g: an epoch of made-up rows of 12 nonzeros, degree 3, against the same on 10^5 rows, for each row."""
        for name in ("dual", "adagrad"):
            cost = {}
            for n_rows in (10**5, 10**4, 10**6, 10**7):
                free = available_memory()
                if n_rows > self.sizes.epoch_rows or (free is not None and 400 * n_rows > free):
                    continue
                X, y = short_rows(n_rows)
                cost[n_rows] = min(self.epoch(name, X, y) for _ in range(max(2, min(7, 10**7 // n_rows // 2)))) / n_rows
                yield Row(
                    "g", f"epoch of {name}, {n_rows:.0e} rows", "itself, 1e+05 rows", "ns a row", NS * cost[n_rows],
                    NS * cost[10**5], cost[n_rows] / cost[10**5], at_most=1.25,
                )  # fmt: skip

    def epoch(self, name, X, y):
        """Seconds of a solver's first epoch."""
        solver = solver_of(name, X, y, 3, 1 / 24)
        return self.once(solver.epoch)[1]

    @with_data
    def edges(self):
        """h: what is not walk, step, objective or certificate in a fit: validation, conversion, shift, Python."""
        X, y = self.load("adult")
        some = TaylorSVC(degree=3, gamma=1 / 80, random_state=0)
        yield from self.edge("adult, degree 3", some, X[:30_000], y[:30_000])
        for n_rows in (30_000, self.sizes.edge_rows):
            X, y = dense_rows(n_rows)
            yield from self.edge("dense, degree 3", TaylorSVC(degree=3, gamma=1 / 78, random_state=0), X, y)
        X, y = self.load("covertype")
        X, y = X[: self.sizes.edge_rows], y[: self.sizes.edge_rows] == 1
        yield from self.edge("covertype, degree 3", TaylorSVC(degree=3, gamma=1.0, random_state=0), X, y)

    def edge(self, name, model, X, y):
        """The rows of part h on one model."""
        best = None
        for _ in range(min(15 if X.shape[0] <= 30_000 else 3, self.sizes.repeats)):
            with metered(CLOCKS[self.clock]) as meter:
                _, total = self.once(lambda: quietly(model.fit, X, y))
            if best is None or total < best[0]:
                best = total, meter.seconds
        total, seconds = best
        certificate = seconds.pop("certificate")
        around = total - seconds.pop("work") - certificate
        yield Row(
            "h", f"fit {X.shape[0]} rows, {name}: all but work and certificate", "the fit", "s", around, total,
            100 * around / total, " %", at_most=10 if X.shape[0] <= 30_000 else 5,
        )  # fmt: skip
        parts = {f"of that, {kind}": taken for kind, taken in seconds.items()}
        parts["of that, the rest, in Python"] = around - sum(seconds.values())
        parts["beside that, the certificate"] = certificate
        for kind, taken in parts.items():
            yield Row("h", f"  {kind}", "the fit", "s", taken, total, 100 * taken / total, " %")

    @with_data
    def prediction(self):
        """i: prediction of one row, all in all; and what a large batch takes beside its rows and its labels."""
        X, y = self.load("adult")
        y = y[:4000]
        for name, rows in {"CSR": X[:4000], "dense": X[:4000].toarray()}.items():
            ours, linear = TaylorSVC(degree=3, gamma=1 / 80).fit(rows, y), quietly(LinearSVC().fit, rows, y)
            models = {"ours": ours, "LinearSVC": linear, "SVC": SVC(gamma=1 / 80).fit(rows[:200], y[:200])}
            work = {key: lambda model=model, x=rows[:1]: again(model.predict, x) for key, model in models.items()}
            times = {key: 1e6 * taken / AGAIN for key, taken in self.seconds(**work).items()}
            for peer in ("LinearSVC", "SVC"):
                yield Row(
                    "i", f"predict one row, {name}, adult, degree 3", peer, "us", times["ours"], times[peer],
                    times["ours"], " us", at_most=50 if peer == "LinearSVC" else None,
                )  # fmt: skip
        for name, (X, y) in {"dense": dense_rows(self.sizes.batch), "CSR": short_rows(self.sizes.batch)}.items():
            model = quietly(TaylorSVC(degree=2, gamma=0.01, max_iter=1).fit, X[:2000], y[:2000])
            tracemalloc.start()
            labels = model.predict(X)
            peak = tracemalloc.get_traced_memory()[1] - labels.nbytes
            tracemalloc.stop()
            size = X.nbytes if name == "dense" else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
            yield Row(
                "i", f"predict {X.shape[0]} rows, {name}: memory beside the labels", "the rows", "MB", peak / 1e6,
                size / 1e6, 100 * peak / size, " %", at_most=20,
            )  # fmt: skip

    def roofs(self):
        """j: the roofs by themselves."""

        def row(what, unit, rate):
            return Row("j", what, "", unit, rate / NS, None, rate / NS, "")

        source, target = np.ones(2**25), np.empty(2**25)
        taken = self.seconds(copy=lambda: np.copyto(target, source))["copy"]
        yield row("memcpy of 256 MB: read and written", "GB/s", 2 * source.nbytes / taken)
        for dtype in (np.float32, np.float64):
            name = np.dtype(dtype).name
            product, counted = roofs.product(dtype)
            yield row(f"numpy's matrix product, {name}", "1e9 FMA/s", counted / self.seconds(it=product)["it"])
            if roofs.library():
                counted = roofs.multiply_adds(dtype, 10**6)
                taken = self.seconds(it=lambda dtype=dtype: roofs.multiply_adds(dtype, 10**6))["it"]
                yield row(f"multiply-adds in registers, {name}", "1e9 FMA/s", counted / taken)
            for n_slots in (2**12, 2**17, 10_334_625):
                pairs = roofs.random_pairs(n_slots, dtype)
                taken = min(self.seconds(**pairs.ways()).values())
                size = pairs.table.nbytes / 1e6
                yield row(f"pairs, random slots of {size:.2g} MB, {name}", "1e9 pairs/s", len(pairs.data) / taken)


def again(call, argument):
    """AGAIN times the same."""
    for _ in range(AGAIN):
        call(argument)


def _first(order, n):
    """Where each of n rows comes first in an order."""
    where = np.empty(n, dtype=np.int64)
    where[order[::-1]] = np.arange(len(order))[::-1]
    return where


PARTS = {
    "a": Bench.dense,
    "b": Bench.dense_higher,
    "c": Bench.sparse_cached,
    "d": Bench.sparse_streamed,
    "e": Bench.fit_threads,
    "f": Bench.predict_threads,
    "g": Bench.epochs,
    "h": Bench.edges,
    "i": Bench.prediction,
    "j": Bench.roofs,
}


def main(arguments=None):
    run("bench.roofline", __doc__, PARTS, Bench, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
