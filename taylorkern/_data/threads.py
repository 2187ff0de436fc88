"""Threads that run one pass of the C core together, and threads that share out what needs no other."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from numbers import Integral
from threading import Barrier, BrokenBarrierError, Event, Lock

import numpy as np


def check_jobs(n_jobs):
    """The number of threads that n_jobs stands for, as joblib has it."""
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be an integer or None; got {n_jobs!r}")
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)


def cut_evenly(cost, n):
    """Where to cut a line of things into n pieces that cost about the same: [n + 1] from 0 to its end."""
    sums = np.cumsum(cost)
    cuts = np.searchsorted(sums - cost / 2, sums[-1] * np.arange(1, n) / n)
    return np.array([0, *np.minimum(cuts, len(cost)), len(cost)], dtype=np.int32)


class Team:
    """n threads, all of which exist: in C they wait for one another.

    None of them is the caller's, which alone is told of Ctrl-C: a thread that did not come would leave the others
    waiting.

    Attributes
    ----------
    n : int
        How many there are: those that were asked for, or one, the caller's, where the system does not give as many.
    """

    def __init__(self, n):
        self.n = 1
        if n == 1:
            return
        pool = ThreadPoolExecutor(n, thread_name_prefix="taylorkern")
        everyone = Barrier(n + 1)
        try:
            for _ in range(n):
                pool.submit(everyone.wait)
            everyone.wait(timeout=5)
        except (RuntimeError, BrokenBarrierError):  # there are no more threads to be had
            everyone.abort()
            pool.shutdown()
            return
        self.n, self._pool = n, pool

    def run(self, state, first, last):
        """A pass of a step of the core over some rows; returns when it is done, also after Ctrl-C."""
        if self.n == 1:
            state.run(first, last)
            return
        numbers, errors, ended = list(range(self.n)), [], []
        everyone = Event()

        def take():
            if not numbers:  # there may be one call too many, after Ctrl-C
                return
            me = numbers.pop()
            if numbers:  # each thread wakes the next one: in the caller, Ctrl-C might come between two
                self._pool.submit(take)
            try:
                state.run(first, last, me)
            except BaseException as error:
                errors.append(error)
            ended.append(me)
            if len(ended) == self.n:
                everyone.set()

        begun, interrupt = False, []
        while True:
            try:
                if not begun:
                    self._pool.submit(take)
                    begun = True
                everyone.wait()
                break
            except KeyboardInterrupt as caught:
                interrupt.append(caught)
        for error in errors + interrupt:
            raise error


@cache
def _helpers(n):
    """At most n threads for `share_out`, whoever calls it: to wake one is quicker than to begin one."""
    return ThreadPoolExecutor(n, thread_name_prefix="taylorkern-helper")


if hasattr(os, "register_at_fork"):  # threads do not come along
    os.register_at_fork(after_in_child=_helpers.cache_clear)


def share_out(take, passes, n_jobs):
    """take(passes) in each of n_jobs threads, which get passes as they come: nothing may depend on who takes which.

    The caller's is one of them.
    """
    if n_jobs == 1:
        take(passes)
        return
    in_turn = _InTurn(passes)
    others = []
    try:
        for _ in range(n_jobs - 1):
            others.append(_helpers(n_jobs - 1).submit(take, in_turn))
        take(in_turn)
    except BaseException:
        in_turn.stopped = True
        raise
    finally:
        # Who has not begun by now is not needed. The others are waited for, after Ctrl-C, too.
        begun = [future for future in others if not future.cancel()]
        wait(begun)
    for future in begun:
        future.result()


class _InTurn:
    """An iterator that several threads may ask."""

    def __init__(self, iterator):
        self.iterator, self.lock, self.stopped = iterator, Lock(), False

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            if self.stopped:
                raise StopIteration
            return next(self.iterator)
