"""Threads that run one pass of the C core together, and threads that share out what needs no other."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import pairwise
from math import inf
from numbers import Integral
from threading import Barrier, BrokenBarrierError, Event, Lock
from time import perf_counter

import numpy as np

LEAST_SPENT = 1e-3  # seconds of all threads from which on they tell something
# Parts of this share of a pass tell who is quicker, all threads or one alone; what they then take, if it is this many
# times what one alone took for a row, says that they were wrong.
TRIAL, MISLED = 16, 2.0
REST, MOST_REST = 8, 64  # passes until the next trial


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


class Shares:
    """Which slots each of n threads updates: those whose highest coordinate is in its range.

    Nothing but time depends on it. What slots cost is a guess at first, and is corrected by the time that they take.

    Parameters
    ----------
    cost : ndarray
        Of the slots that have each coordinate as their highest.
    n : int
        Threads.

    Attributes
    ----------
    ranges : ndarray of int32 of shape (n + 1,)
        Where they begin and end.
    spent : ndarray of shape (n, 8)
        The seconds that each has taken since they were set, in a cache line of its own.
    """

    def __init__(self, cost, n):
        self.cost = np.array(cost, dtype=np.float64)
        self.ranges = cut_evenly(self.cost, n)
        self.spent = np.zeros((n, 8))

    def adjust(self):
        """Set ranges anew when those before have been used for a while."""
        seconds = self.spent[:, 0]
        if len(seconds) == 1 or not seconds.sum() >= LEAST_SPENT or not seconds.min() > 0:
            return
        for (first, end), taken in zip(pairwise(self.ranges.tolist()), seconds.tolist(), strict=True):
            part = self.cost[first:end]
            part *= taken / max(part.sum(), np.finfo(np.float64).tiny)
        self.ranges[:] = cut_evenly(self.cost, len(seconds))
        seconds[:] = 0


class Team:
    """n threads, all of which exist: in C they wait for one another.

    None of them is the caller's, which alone is told of Ctrl-C: a thread that did not come would leave the others
    waiting.

    Attributes
    ----------
    n : int
        How many there are: those that were asked for, or one, the caller's, where the system does not give as many.
    shares : Shares
        Which slots each of them updates, for the training at hand, when there are several.
    """

    shares: Shares

    def __init__(self, n):
        self.n = 1
        self._together, self._left = True, 0  # whether all take a pass; passes until that is found out again
        self._alone, self._rest = inf, REST  # seconds a row that one took alone; passes that one will take
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
        """A pass of a step of the core over some rows; returns when it is done, also after Ctrl-C.

        One thread may take it alone, the caller's: where cores are kept busy by something else, or are far from one
        another, threads that have to wait for each other's numbers take longer than one does.
        """
        if self.n == 1:
            state.run(first, last)
            return
        if self._left == 0:
            first = self._try(state, first, last)
        else:
            self._left -= 1
        if first == last:
            return
        seconds = self._seconds(state, first, last, self._together)
        if self._together and seconds > MISLED * self._alone:
            self._leave_to_one()
        elif self._together:
            self._rest = REST

    def _try(self, state, first, last):
        """Find out by the first rows of a pass who takes the next ones; returns where the others begin."""
        block = state.training.block
        step = -(-(last - first) // (TRIAL * block)) * block
        middle, end = first + step, first + 2 * step
        if end > last:
            return first
        # One alone is first: some memory is touched for the first time then, which would be held against all of them.
        self._alone = self._seconds(state, first, middle, together=False)
        all_of_us = self._seconds(state, middle, end, together=True)
        if all_of_us > self._alone:
            self._leave_to_one()
        else:
            self._together, self._left = True, REST
        return end

    def _leave_to_one(self):
        """For some passes; for twice as many if the next trial goes no better."""
        self._together, self._left = False, self._rest
        self._rest = min(2 * self._rest, MOST_REST)

    def _seconds(self, state, first, last, together):
        """Run a part of a pass: the seconds that a row takes, once all who take part have begun."""
        if together:
            seconds = self._run(partial(state.run, first, last))
            self.shares.adjust()
        else:
            begin = perf_counter()
            state.training.alone = True
            try:
                state.run(first, last)
            finally:
                state.training.alone = False
            seconds = perf_counter() - begin
        return seconds / (last - first)

    def _run(self, work):
        """work(me) in each thread; returns the seconds from when the last of them has begun."""
        numbers, errors, interrupt, begun = list(range(self.n)), [], None, False
        times: list[tuple[float, float]] = []
        everyone = Event()

        def take():
            if not numbers:  # there may be one call too many, after Ctrl-C
                return
            me = numbers.pop()
            # Each thread wakes the next one. Were all of them woken by the caller, who is not asleep yet, two might be
            # given the same core, where one would wait for the other.
            if numbers:
                self._pool.submit(take)
            begin = perf_counter()
            try:
                work(me)
            except BaseException as error:
                errors.append(error)
            times.append((begin, perf_counter()))
            if len(times) == self.n:
                everyone.set()

        while not everyone.is_set():
            try:
                if not begun:
                    self._pool.submit(take)
                    begun = True
                everyone.wait()
            except KeyboardInterrupt as caught:
                interrupt = caught
        for error in [*errors, interrupt]:
            if error is not None:
                raise error
        begins, ends = zip(*times, strict=True)
        return max(ends) - max(begins)


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
