"""TaylorSVC beside other programs, each in a process of its own: time, test error, objective and memory.

    python -m bench.peers --data DIR [--quick] [--only adult,passes] [--limit SECONDS] [--clock cpu] [--json FILE]

Prints a table for each data set, in Markdown, and then the comparisons that have targets. One thread each, but for the
part "threads", where each has two. A program that takes longer than the limit, or is not installed, is a line that says
so. `bench/peer.py` has the programs and their settings.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from taylorkern._data.expansion import Expansion

from . import data
from .peer import PEERS, SETS
from .run import Timed
from .table import Row, dump, print_header, print_machine, print_row
from .timing import CLOCKS, one_thread
from .verbs import shifted, solver_of
from .vowpal import Vowpal

OURS = "taylorkern"
LINE = "| {:<24} | {:<29} | {:>10} | {:>10} | {:>9} | {:>8} | {:>8} |"
HEAD = ("settings", "fit", "test error", "objective", "memory", "factor")


class Peers(Timed):
    """The parts: a table for each data set, and rows with targets."""

    def __init__(self, options):
        super().__init__(options.data, None, options.clock)
        self.quick, self.limit = options.quick, options.limit

    def child(self, name, peer, threads=1):
        """What `bench.peer` prints, or {"missing": why there is nothing}."""
        command = [sys.executable, "-m", "bench.peer", name, peer, "--threads", str(threads), *["--quick"] * self.quick]
        if self.directory:
            command += ["--data", os.path.abspath(self.directory)]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        where = Path(__file__).resolve().parents[1]
        process = subprocess.Popen(
            command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            out, problems = process.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            stop(process)
            return {"missing": f"more than {self.limit:g} s"}
        if process.returncode:
            return {"missing": (problems.strip().splitlines() or ["failed"])[-1]}
        return json.loads(out)

    def table(self, name):
        """Print a line for each program; returns what they told."""
        told = {}
        head = LINE.format(name, *HEAD)
        print("\n" + head)
        print("|" + "|".join("-" * len(cell) for cell in head.split("|")[1:-1]) + "|", flush=True)
        for peer in PEERS:
            told[peer] = self.child(name, peer)
            print(self.line(peer, told[peer], told[OURS]), flush=True)
        return told

    def line(self, peer, told, ours):
        """A line of the table."""
        if "missing" in told:
            return f"| {peer:<24} | {told['missing']} |"
        seconds = told["seconds"][self.clock]
        times = "" if "missing" in ours or peer == OURS else f"{seconds / ours['seconds'][self.clock]:.3g}"
        objective = "" if told["objective"] is None else f"{told['objective']:.5f}"
        memory = "" if told["memory"] is None else f"{told['memory'] / 1e6:.0f} MB"
        return LINE.format(peer, told["note"], f"{seconds:.3g} s", f"{told['error']:.2f} %", objective, memory, times)

    def passes(self):
        """A training pass of AdaGrad against one of Vowpal Wabbit from its cache, for each monomial that is visited."""
        sets = (("adult", 3, 10**9, 5), ("covertype", 3, 100_000, 5), ("mnist", 2, 6000, 1.5))
        for name, degree, n_rows, target in sets:
            X, y = data.load(name, self.directory)
            n_rows = 2000 if self.quick else min(n_rows, X.shape[0])
            X, y = data.sample(X, n_rows).astype(np.float32), data.sample(y, n_rows)
            y = np.where(y == {"adult": 1, "covertype": 1, "mnist": 8}[name], 1, -1).astype(np.int8)
            try:
                theirs = {"defaults": Vowpal(X, y, degree), "--adaptive": Vowpal(X, y, degree, ["--adaptive"])}
            except ImportError:
                print("note: Vowpal Wabbit is not installed (pip install vowpalwabbit)", file=sys.stderr)
                return
            # The rows as given have the monomials that Vowpal Wabbit visits. Shifted ones have fewer, in shorter runs.
            ours = {"": X, ", shifted": shifted(X, degree, 1 / 80)[0]}
            ours = {note: pass_cost(self, rows, y, degree) for note, rows in ours.items()}
            for how, vowpal in theirs.items():
                seconds, features = vowpal.pass_seconds(self.clock)
                for note, cost in ours.items():
                    yield Row(
                        "pass", f"adagrad, {name}, degree {degree}, float32{note}", f"Vowpal Wabbit, {how}",
                        "ns a monomial", 1e9 * cost, 1e9 * seconds / features, seconds / features / cost,
                        at_least=target if how == "defaults" and not note else None,
                    )  # fmt: skip

    def threads(self):
        """Adult to a gap of 1e-3 on two threads, against scikit-learn-intelex on two threads: wall time."""
        peer = "scikit-learn-intelex SVC"
        told = {name: self.child("adult", name, threads=2) for name in (OURS, peer)}
        missing = [f"{name}: {found['missing']}" for name, found in told.items() if "missing" in found]
        if missing:
            print(f"note: {'; '.join(missing)}", file=sys.stderr)
            return
        ours, theirs = (found["seconds"]["wall"] for found in told.values())
        yield Row("thr", "fit Adult, 2 threads", peer, "s", ours, theirs, theirs / ours, at_least=50)


def stop(process):
    """End a process and what it has started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def pass_cost(timed, X, y, degree):
    """Seconds of ours for each monomial of a training pass over rows as they are walked: the best of passes 2 to 5."""
    best = np.inf
    for _ in range(5):
        solver = solver_of("adagrad", X, y, degree, 1 / 80)
        timed.once(solver.take_batch)
        best = min(best, *(timed.once(solver.take_batch)[1] for _ in range(4)))
    return best / sum(Expansion.monomials(solver.problem.expansion, m) for m in np.diff(X.indptr))


TARGETS = {"passes": Peers.passes, "threads": Peers.threads}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__.splitlines()[0])
    data.add_argument(parser)
    parser.add_argument("--quick", action="store_true", help="some thousand rows of each set: rough figures")
    parser.add_argument("--only", metavar="NAMES", default=",".join([*SETS, *TARGETS]), help="for example adult,passes")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each program (default: 300)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what to time by (default: wall)")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    unknown = [name for name in chosen if name not in SETS and name not in TARGETS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; parts are {', '.join([*SETS, *TARGETS])}")

    peers, rows = Peers(options), []
    print_machine()
    print(f"{'quick run' if options.quick else 'full run'}, one thread each, {options.clock} time")
    told = {name: peers.table(name) for name in SETS if name in chosen}
    if any(name in chosen for name in TARGETS):
        print()
        print_header()
    try:
        with one_thread():
            for name in TARGETS:
                for row in TARGETS[name](peers) if name in chosen else ():
                    print_row(row)
                    rows.append(row)
    except data.MissingData as problem:
        sys.exit(f"bench.peers: {problem}")
    finally:
        if options.json:
            dump(rows, options.json, sets=told)


if __name__ == "__main__":
    main()
