"""Microbenchmarks: the walk's verbs, and what stands on them. An asv suite that also runs as a plain script.

    python -m bench.micro [PATTERN]                          # at the top of the project: ns per monomial, in tables
    asv run --python=same --launch-method=forkserver         # in this folder: seconds

The classes follow asv's rules: `params` are combined, `setup` prepares one combination (NotImplementedError skips it),
and methods called time_... are timed. For the script, `setup` also sets `self.size`, the number of monomials (or kernel
values) that one call computes. Made-up data: no files are needed.
"""

import argparse
import re
import sys
from itertools import product
from math import comb

import numpy as np
from scipy import sparse

from taylorkern import TaylorFeatures, TaylorOperator, _core, taylor_kernel
from taylorkern._expansion import Expansion
from taylorkern._rows import Rows

from .timing import STEADY, interleave, one_thread

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


def rows_of(shape, degree, dtype):
    """Rows with a fixed number of nonzeros in random columns: CSR, or an array for shapes that are walked densely."""
    nonzeros, columns, walk = SHAPES[shape]
    if comb(columns + degree, degree) > MAX_TABLE:
        raise NotImplementedError
    n_rows = min(MOST_ROWS, max(8, CALL_MONOMIALS // comb(nonzeros + degree, degree)))
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


SUITE = (Walk, Transform, Operator, Kernel)


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
        times = interleave(work, repeats=1000, budget=seconds * len(work), clock=STEADY) if work else {}
    finally:
        for bench in ready.values():
            getattr(bench, "teardown", lambda: None)()
    return {value: 1e9 * times[value] / ready[value].size for value in times}


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
