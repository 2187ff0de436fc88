"""Peak memory of work on a data set, measured in a process of its own.

    python -m bench.memory --data DIR covertype 3

prints bytes as JSON; `bench.features` runs it so for its part f.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tracemalloc
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np

from taylorkern import TaylorOperator

from . import data
from .timing import one_thread


class Peak(NamedTuple):
    """Bytes on top of what there was before, at the highest point."""

    allocated: int
    """As Python's allocators and numpy counted them."""
    resident: int | None
    """As the system counted them; None where it cannot be asked."""
    table: int
    """Those of D numbers, which are part of both."""

    @property
    def beyond_table(self) -> int:
        """The larger of the two counts, less D numbers."""
        return max(self.allocated, self.resident or 0) - self.table


def operator_peak(name, directory, degree) -> Peak:
    """The peak of a TaylorOperator on the whole set: it is made, then a product, then a transposed one.

    The data and the two vectors to multiply with are there before; both results are kept.
    """
    command = [sys.executable, "-m", "bench.memory", "--data", os.path.abspath(directory), name, str(degree)]
    where = Path(__file__).resolve().parents[1]
    allocated = _child([*command, "--traced"], where)
    resident = _child(command, where)
    return Peak(allocated["peak"], resident["peak"], allocated["table"])


def _child(command, where):
    done = subprocess.run(command, cwd=where, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def use_operator(X, degree, v, t):
    """Make an operator and multiply with it, both ways."""
    operator = TaylorOperator(X, degree=degree)
    return operator.matvec(v), operator.rmatvec(t)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description="Peak memory of a TaylorOperator.")
    data.add_argument(parser)
    parser.add_argument("name", choices=[*data.SOURCES, "speech"])
    parser.add_argument("degree", type=int)
    parser.add_argument("--traced", action="store_true", help="count allocations, not resident pages")
    options = parser.parse_args(arguments)

    X, y = data.load(options.name, options.data)
    del y
    n_rows, n_columns = X.shape
    n_slots = comb(n_columns + options.degree, options.degree)
    v, t = np.ones(n_slots, dtype=X.dtype), np.ones(n_rows, dtype=X.dtype)
    use_operator(X[:8], 1, v[: n_columns + 1], t[:8])  # what is imported or built on first use is not counted
    gc.collect()

    with one_thread():
        if options.traced:
            tracemalloc.start()
            kept = use_operator(X, options.degree, v, t)
            peak = tracemalloc.get_traced_memory()[1]
        else:
            before = _forget_peak()
            kept = use_operator(X, options.degree, v, t)
            peak = None if before is None else _resident("VmHWM") - before
    del kept
    json.dump({"peak": peak, "table": n_slots * X.dtype.itemsize}, sys.stdout)


def _resident(field):
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in /proc/self/status")


def _forget_peak():
    """Set the system's record of the peak back to what is resident now; that, or None where it cannot be done."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return _resident("VmHWM")
    except OSError:
        return None


if __name__ == "__main__":
    main()
