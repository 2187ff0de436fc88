"""Microbenchmarks: the walk's verbs, and what stands on them. An asv suite that also runs as a plain script.

    python -m bench.micro [PATTERN]                          # at the top of the project: ns per monomial, in tables
    asv run --python=same --launch-method=forkserver         # in this folder: seconds

The classes follow asv's rules: `params` are combined, `setup` prepares one combination (NotImplementedError skips it),
methods called time_... are timed, and `number = 1` asks for a setup before each call. For the script, `setup` also sets
`self.size`, the number of monomials (or kernel values, rows, bytes) that one call computes, and `clock` says what to
time by. Made-up data: no files are needed.
"""

import argparse
import re
import sys
from itertools import product
from math import comb
from time import perf_counter

import numpy as np
from scipy import sparse

from taylorkern import TaylorFeatures, TaylorOperator, TaylorSVC, _core, taylor_kernel
from taylorkern._data.expansion import Expansion
from taylorkern._data.rows import Rows, dot_rows

from . import roofs
from .svm import quietly
from .timing import CLOCKS, STEADY, interleave, one_thread
from .verbs import plane_labels, solver_of

MAX_TABLE = 2**25  # slots; larger tables are skipped
CALL_MONOMIALS = 2**21  # that one call walks, about
MOST_ROWS = 4096

# Nonzeros of how many columns, and how they are walked. The first three are covertype, Adult and MNIST in miniature,
# the fourth is short rows over many columns (a table beyond the caches), the rest is speech, or half of it.
SHAPES = {
    "12 of 54": (12, 54, "sparse"),
    "14 of 123": (14, 123, "sparse"),
    "150 of 784": (150, 784, "sparse"),
    "12 of 400": (12, 400, "sparse"),
    "39 of 39": (39, 39, "sparse"),
    "39 of 39, dense walk": (39, 39, "dense"),
    "20 of 39": (20, 39, "sparse"),
    "20 of 39, dense walk": (20, 39, "dense"),
}
TYPES = ["float64", "float32"]
SOLVERS = ["dual", "pegasos", "adagrad"]
THREADS = [1, 2]
# Shapes of the rows that models are trained on, and how many of them there are.
MODELS = ["12 of 54", "150 of 784", "39 of 39, dense walk"]
MODEL_ROWS = {"worth": 2**23, "most_rows": 2**14}


def rows_of(shape, degree, dtype, worth=CALL_MONOMIALS, most_rows=MOST_ROWS):
    """Rows with a fixed number of nonzeros in random columns: CSR, or an array for shapes that are walked densely."""
    nonzeros, columns, walk = SHAPES[shape]
    if comb(columns + degree, degree) > MAX_TABLE:
        raise NotImplementedError
    n_rows = min(most_rows, max(8, worth // comb(nonzeros + degree, degree)))
    rng = np.random.default_rng(0)
    X = np.zeros((n_rows, columns), dtype=dtype)
    where = np.argsort(rng.random((n_rows, columns)), axis=1)[:, :nonzeros]
    np.put_along_axis(X, where, rng.uniform(0.5, 1.5, (n_rows, nonzeros)).astype(dtype), axis=1)
    return X if walk == "dense" else sparse.csr_matrix(X)


def monomials(shape, degree, n_rows):
    """The number of nonzero monomials of all rows together."""
    return n_rows * comb(SHAPES[shape][0] + degree, degree)


class Walk:
    """The verbs of the core, by degree, row length, density, type and instruction set; without Python's overhead."""

    param_names = ["degree", "nonzeros", "type", "instructions"]
    params = [[2, 3, 4], list(SHAPES), TYPES, _core.instruction_sets()]

    def setup(self, degree, shape, dtype, instructions):
        X = rows_of(shape, degree, dtype)
        expansion = Expansion(X.shape[1], degree=degree, gamma=1 / X.shape[1])
        self.rows = Rows(X)
        self.rows.core.walk_dense = SHAPES[shape][2] == "dense"
        self.bare, self.features = expansion.bare, expansion.features
        self.table = np.ones((expansion.n_slots, 1), dtype=dtype)
        self.per_row = np.ones((X.shape[0], 1), dtype=dtype)
        self.out = np.ones((X.shape[0], 1), dtype=dtype)
        self.size = monomials(shape, degree, X.shape[0])
        self.slots = np.zeros(self.size, dtype=np.int32)
        self.values = np.zeros(self.size, dtype=dtype)
        self.scratch = np.empty(_core.scratch_bytes(self.rows.core), dtype=np.uint8)
        self.instructions, self.usual = instructions, _core.instruction_set()

    def teardown(self, *_):
        if hasattr(self, "usual"):
            _core.use_instruction_set(self.usual)

    def time_dot(self, *_):
        _core.use_instruction_set(self.instructions)
        _core.dot(self.rows.core, self.bare, 0, self.rows.n_rows, self.table, self.out, self.scratch)

    def time_add(self, *_):
        _core.use_instruction_set(self.instructions)
        _core.add(self.rows.core, self.bare, 0, self.rows.n_rows, self.table, self.per_row, self.scratch)

    def time_expand(self, *_):
        """Into memory that was written before."""
        _core.use_instruction_set(self.instructions)
        _core.expand(self.rows.core, self.features, 0, self.rows.n_rows, self.slots, self.values, self.scratch)


class WalkOnThreads:
    """The inner products of all rows with a table, by the number of threads."""

    param_names = ["degree", "nonzeros", "type", "threads"]
    params = [[2, 3], ["12 of 54", "12 of 400", "150 of 784", "39 of 39, dense walk"], TYPES, THREADS]
    clock = "wall"

    def setup(self, degree, shape, dtype, threads):
        X = rows_of(shape, degree, dtype)
        self.expansion = Expansion(X.shape[1], degree=degree, gamma=1 / X.shape[1])
        self.rows = Rows(X)
        self.rows.core.walk_dense = SHAPES[shape][2] == "dense"
        self.table = np.ones((self.expansion.n_slots, 1), dtype=dtype)
        self.threads, self.size = threads, monomials(shape, degree, X.shape[0])

    def time_dot(self, *_):
        dot_rows(self.rows, self.expansion, self.expansion.margin, self.table, self.threads)


class Transform:
    """TaylorFeatures.transform with all that it does."""

    param_names = ["degree", "nonzeros", "type"]
    params = [[2, 3, 4], ["12 of 54", "14 of 123", "150 of 784", "39 of 39"], TYPES]

    def setup(self, degree, shape, dtype):
        self.X = rows_of(shape, degree, dtype)
        self.features = TaylorFeatures(degree=degree).fit(self.X)
        self.size = monomials(shape, degree, self.X.shape[0])

    def time_transform(self, *_):
        self.features.transform(self.X)


class Operator:
    """TaylorOperator: products both ways, with one vector or eight; the walk is its own choice.

    Each product also passes over the table of D numbers, which for these few rows is most of it at degree 4.
    """

    param_names = ["degree", "nonzeros", "vectors", "type"]
    params = [[2, 3, 4], ["12 of 54", "14 of 123", "150 of 784", "39 of 39, dense walk", "20 of 39"], [1, 8], TYPES]

    def setup(self, degree, shape, vectors, dtype):
        X = rows_of(shape, degree, dtype)
        self.operator = TaylorOperator(X, degree=degree)
        if self.operator.n_slots * vectors > MAX_TABLE:
            raise NotImplementedError
        self.V = np.ones((self.operator.n_slots, vectors), dtype=dtype)
        self.T = np.ones((X.shape[0], vectors), dtype=dtype)
        self.size = monomials(shape, degree, X.shape[0])

    def time_product(self, *_):
        self.operator.matmat(self.V)

    def time_transposed(self, *_):
        self.operator.rmatmat(self.T)


class Kernel:
    """taylor_kernel: a thousand rows against a thousand, in closed form; per kernel value."""

    param_names = ["degree", "nonzeros", "type"]
    params = [[3, 6], ["14 of 123", "150 of 784", "39 of 39, dense walk"], TYPES]

    def setup(self, degree, shape, dtype):
        X = rows_of(shape, 1, dtype)[:1000]
        self.X, self.degree = X, degree
        self.size = X.shape[0] ** 2

    def time_kernel(self, *_):
        taylor_kernel(self.X, degree=self.degree, gamma=0.01)


class Epoch:
    """The first epoch of each solver, with what it does to know the objective; for each monomial of the rows."""

    param_names = ["solver", "nonzeros", "type", "threads"]
    params = [SOLVERS, MODELS, TYPES, THREADS]
    number, clock = 1, "wall"

    def setup(self, solver, shape, dtype, threads):
        degree = 2 if shape == "150 of 784" else 3
        X = rows_of(shape, degree, dtype, **MODEL_ROWS)
        self.solver = solver_of(solver, X, plane_labels(X), degree, 0.5 / SHAPES[shape][0], n_jobs=threads)
        self.size = monomials(shape, degree, X.shape[0])

    def time_epoch(self, *_):
        self.solver.epoch()


class Model:
    """TaylorSVC from the call to the result: two epochs, and the prediction of the same rows; for each row."""

    param_names = ["solver", "nonzeros", "type", "threads"]
    params = [SOLVERS, MODELS, ["float64"], THREADS]
    number, clock = 1, "wall"

    def setup(self, solver, shape, dtype, threads):
        degree = 2 if shape == "150 of 784" else 3
        self.X = rows_of(shape, degree, dtype, **MODEL_ROWS)
        self.y = plane_labels(self.X)
        self.size = self.X.shape[0]
        gamma = 0.5 / SHAPES[shape][0]
        self.model = TaylorSVC(degree=degree, gamma=gamma, solver=solver, max_iter=2, n_jobs=threads, random_state=0)
        quietly(self.model.fit, self.X[:500], self.y[:500])

    def time_fit(self, *_):
        quietly(self.model.fit, self.X, self.y)

    def time_predict(self, *_):
        self.model.predict(self.X)


class PredictOne:
    """TaylorSVC.predict of one row: nearly all of it is what surrounds the walk."""

    param_names = ["nonzeros", "type"]
    params = [MODELS, TYPES]

    def setup(self, shape, dtype):
        X = rows_of(shape, 2, dtype)[:500]
        self.model = quietly(TaylorSVC(degree=2, gamma=0.01, max_iter=2, random_state=0).fit, X, plane_labels(X))
        self.x, self.size = X[:1], 1

    def time_predict(self, *_):
        self.model.predict(self.x)


class Roofs:
    """What the machine can do at best: bytes read and written, multiply-adds in registers and in matrix products."""

    param_names = ["type", "of"]
    params = [TYPES, ["copy", "multiply-adds", "product"]]

    def setup(self, dtype, of):
        self.size = 2**27  # bytes or multiply-adds
        if of == "copy":
            source, target = np.ones(2**26, dtype=np.uint8), np.empty(2**26, dtype=np.uint8)
            self.work = lambda: np.copyto(target, source)
        elif of == "product":
            self.work, self.size = roofs.product(np.dtype(dtype), 512)
        elif roofs.library():
            rounds = self.size // roofs.multiply_adds(np.dtype(dtype), 1)
            self.work = lambda: roofs.multiply_adds(np.dtype(dtype), rounds)
        else:
            raise NotImplementedError

    def time_roof(self, *_):
        self.work()


class Gather:
    """A table's numbers at random slots, multiplied with stored values: by size of the table, for each pair."""

    param_names = ["slots", "type", "way"]
    params = [[2**12, 2**17, 10_334_625], TYPES, ["plain", "gather"]]

    def setup(self, n_slots, dtype, way):
        self.pairs = roofs.random_pairs(n_slots, np.dtype(dtype), n=2**20)
        self.work = self.pairs.ways().get(way)
        if self.work is None:  # there is no compiler
            raise NotImplementedError
        self.size = 2**20

    def time_pairs(self, *_):
        self.work()


SUITE = (Walk, WalkOnThreads, Transform, Operator, Kernel, Epoch, Model, PredictOne, Roofs, Gather)


def cases(suite, method, chosen):
    """The combinations of a class, the last parameter's values side by side: (the others, the values)."""
    *others, last = suite.params
    for case in product(*others):
        values = [value for value in last if chosen(f"{suite.__name__}.{method}({describe((*case, value))})")]
        if values:
            yield case, values


def describe(case):
    """(3, "12 of 54") -> "3, 12 of 54"."""
    return ", ".join(str(value) for value in case)


def measure(suite, method, case, values, seconds):
    """ns per monomial for each of the last parameter's values, in turns; those that are skipped are left out."""
    ready = {}
    for value in values:
        bench = suite()
        try:
            bench.setup(*case, value)
        except NotImplementedError:
            continue
        ready[value] = bench
    try:
        work = {value: getattr(bench, method) for value, bench in ready.items()}
        clock, budget = getattr(suite, "clock", STEADY), seconds * len(work)
        if getattr(suite, "number", None) == 1:
            times = each_anew(ready, method, case, budget, CLOCKS[clock])
        else:
            times = interleave(work, repeats=1000, budget=budget, clock=clock) if work else {}
    finally:
        for bench in ready.values():
            getattr(bench, "teardown", lambda: None)()
    return {value: 1e9 * times[value] / ready[value].size for value in times}


def each_anew(ready, method, case, budget, clock):
    """The least seconds of each, with a setup before each call."""
    best, begin, rounds = dict.fromkeys(ready, float("inf")), perf_counter(), 0
    while rounds < 3 or perf_counter() - begin < budget:
        for value, bench in ready.items():
            bench.setup(*case, value)
            start = clock()
            getattr(bench, method)()
            best[value] = min(best[value], clock() - start)
        rounds += 1
    return best


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=__doc__.splitlines()[0])
    parser.add_argument(
        "pattern", nargs="?", default="", help="a regular expression on names such as 'Walk.time_dot(3, 12 of 54, ...)'"
    )
    parser.add_argument("--seconds", type=float, default=0.1, help="time for each figure (default: 0.1)")
    options = parser.parse_args(arguments)
    found = False
    with one_thread():
        for suite in SUITE:
            for method in (name for name in vars(suite) if name.startswith("time_")):
                width = 14
                head = None
                for case, values in cases(suite, method, re.compile(options.pattern).search):
                    figures = measure(suite, method, case, values, options.seconds)
                    if not figures:
                        continue
                    if head is None:
                        head = f"\n{suite.__name__}.{method}, ns ({describe(suite.param_names)})"
                        columns = "".join(f"{value!s:>{width}}" for value in suite.params[-1])
                        print(f"{head}\n{'':<40}{columns}")
                    cells = (f"{figures[value]:.3g}" if value in figures else "" for value in suite.params[-1])
                    print(f"{describe(case):<40}" + "".join(f"{cell:>{width}}" for cell in cells), flush=True)
                    found = True
    if not found:
        sys.exit(f"nothing matches {options.pattern!r}")


if __name__ == "__main__":
    main()
