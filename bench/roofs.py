"""What the machine can do at best: loops of roofs.c, compiled for this machine when they are first asked for.

They need a C compiler: `$CC`, or `cc` on the path. Where there is none, scipy's product with a sparse matrix stands in
for the loop over stored pairs, and there is no rate of multiply-adds.
"""

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse

FLAGS = [
    "-O3",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
]
SUFFIX = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


@cache
def library():
    """The compiled loops, or None."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "roofs.so")
        command = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS, str(Path(__file__).with_name("roofs.c"))]
        try:
            subprocess.run([*command, "-o", target], check=True, capture_output=True, text=True)
            loops = ctypes.CDLL(target)
        except (OSError, subprocess.CalledProcessError) as problem:
            print(f"note: roofs.c could not be compiled: {getattr(problem, 'stderr', problem)}", file=sys.stderr)
            return None
    for suffix in SUFFIX.values():
        getattr(loops, f"fma_{suffix}").restype = ctypes.c_int64
    return loops


class Pairs:
    """Stored features, (slot, value) pairs in CSR, to be multiplied with a table.

    `group` rows are gone through `repeats` times before the next ones come.
    """

    def __init__(self, X, table, group=None, repeats=1):
        self.indptr, self.indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        self.data, self.table = X.data, table.astype(X.dtype)
        self.out = np.empty(X.shape[0], dtype=X.dtype)
        self.group, self.repeats = group or X.shape[0], repeats
        self._scipy = None if library() else sparse.csr_matrix((X.data, self.indices, X.indptr), shape=X.shape)

    def ways(self):
        """Ways to compute the products, by name: the quickest of them is the roof."""
        if self._scipy is not None:
            return {"scipy": self._by_scipy}
        return {way: lambda way=way: self._run(way) for way in ("plain", "gather")}

    def _run(self, way):
        arrays = (self.indptr, self.indices, self.data, self.table, self.out)
        numbers = (len(self.out), self.group, self.repeats)
        loop = getattr(library(), f"rows_{way}_{SUFFIX[self.data.dtype]}")
        loop(*(array.ctypes.data_as(ctypes.c_void_p) for array in arrays), *map(ctypes.c_int64, numbers))
        return self.out

    def _by_scipy(self):
        for first in range(0, len(self.out), self.group):
            part = self._scipy[first : first + self.group]
            for _ in range(self.repeats):
                self.out[first : first + self.group] = part @ self.table
        return self.out


def random_pairs(n_slots, dtype, n=2**21):
    """Pairs with random slots of a table of that many."""
    rng = np.random.default_rng(0)
    slots = rng.integers(0, n_slots, n).astype(np.int32)
    rows = sparse.csr_matrix((np.ones(n, dtype=dtype), slots, np.arange(0, n + 1, 2**10)), shape=(n >> 10, n_slots))
    return Pairs(rows, np.ones(n_slots, dtype=dtype))


def multiply_adds(dtype, n):
    """n rounds of independent multiply-adds; returns how many of them there were."""
    numbers = np.array([0.5, 0.25, 0.0], dtype=dtype)
    loop = getattr(library(), f"fma_{SUFFIX[np.dtype(dtype)]}")
    return loop(ctypes.c_int64(n), numbers.ctypes.data_as(ctypes.c_void_p))


def products(n_threads, n_products=16, n=512):
    """A call of some of numpy's products of matrices, each by one of so many threads; they share nothing."""
    some = [product(np.float32, n)[0] for _ in range(n_threads)]

    def run():
        with ThreadPoolExecutor(n_threads) as pool:
            for done in [pool.submit(repeat, one, n_products // n_threads) for one in some]:
                done.result()

    def repeat(one, times):
        for _ in range(times):
            one()

    return run


def product(dtype, n=1024):
    """(a call of numpy's product of n x n matrices, its multiply-adds)."""
    a, b = (np.random.default_rng(k).standard_normal((n, n)).astype(dtype) for k in (0, 1))
    out = np.empty((n, n), dtype=dtype)
    return lambda: np.matmul(a, b, out=out), n**3
