"""Timing on a machine that does other things too: in turns, and the quickest of several runs counts."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from time import perf_counter, process_time

from threadpoolctl import threadpool_limits

# "cpu" is the time that this process was given: the same as "wall" for one thread on an idle machine, and nearer to it
# than "wall" on a busy one. Work on several threads is for "wall".
CLOCKS = {"wall": perf_counter, "cpu": process_time}
STEADY = "wall" if sys.platform == "win32" else "cpu"  # Windows counts CPU time in steps of 16 ms


def interleave(work: Mapping[str, Callable[[], object]], *, repeats=7, budget=None, clock="wall") -> dict[str, float]:
    """The least seconds of each callable, by its name.

    They run in turns, every other round in reverse, so that a slow minute of the machine meets all of them. What a call
    returns is freed outside the clock, and before the next call: each call allocates its result anew.

    Parameters
    ----------
    work : mapping of str to callable
        What to time, without arguments.
    repeats : int
        Rounds.
    budget : float, default=None
        Seconds after which no further round begins; two rounds are run in any case.
    clock : {"wall", "cpu"}
        See `CLOCKS`.
    """
    names = list(work)
    best = dict.fromkeys(names, float("inf"))
    begin = perf_counter()
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for done in range(repeats):
            if budget is not None and done >= 2 and perf_counter() - begin > budget:
                break
            for name in names if done % 2 == 0 else reversed(names):
                best[name] = min(best[name], _seconds(work[name], CLOCKS[clock]))
    finally:
        if was_enabled:
            gc.enable()
    return best


def _seconds(call, clock):
    start = clock()
    result = call()
    seconds = clock() - start
    del result
    return seconds


def ratio(times: Mapping[str, float], slow: str, fast: str) -> float:
    """How many times longer `slow` took than `fast`."""
    return times[slow] / times[fast]


@contextmanager
def one_thread():
    """One thread for BLAS and OpenMP, whoever loaded them."""
    with threadpool_limits(limits=1):
        yield


@contextmanager
def busy_cores():
    """Another process keeps each core busy."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
