"""Threads that run one pass of the C core together, and threads that share out what needs no other."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from itertools import pairwise
from numbers import Integral
from threading import Barrier, BrokenBarrierError, Event, Lock
from time import perf_counter

import numpy as np

LEAST_SPENT = 1e-3  # seconds of all threads from which on they tell something
# Threads that wait for cores for more than this share of the time gain less from one another than that, and one of them
# alone would wait half as long.
MOST_WAITED = 0.4
TRIAL = 8  # this part of a pass tells it
REST, MOST_REST = 8, 64  # passes that one thread takes then


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
        self._on_trial, self._alone, self._rest = True, 0, REST  # see _judge
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

        One thread may take it alone, the caller's: when something else keeps cores busy, threads that have to wait for
        one another take several times as long as one does.
        """
        if self.n > 1 and self._alone == 0 and self._on_trial:
            block = state.training.block
            middle = min(first + -(-(last - first) // (TRIAL * block)) * block, last)
            self._run_together(state, first, middle)
            first = middle
        if first == last:
            return
        if self.n == 1:
            state.run(first, last)
        elif self._alone > 0:
            self._alone -= 1
            self._run_alone(state, first, last)
        else:
            self._run_together(state, first, last)

    def _judge(self, seconds, waited):
        """Have the next passes run by one thread when those of a team have waited for cores for most of the time.

        Then a small part of a pass is for all threads again; and if that is no better, one thread takes twice as many.
        """
        self._on_trial = waited > MOST_WAITED * (self.n - 1) * seconds
        if self._on_trial:
            self._alone, self._rest = self._rest, min(2 * self._rest, MOST_REST)
        else:
            self._rest = REST

    def _run_alone(self, state, first, last):
        state.training.alone = True
        try:
            state.run(first, last)
        finally:
            state.training.alone = False

    def _run_together(self, state, first, last):
        begin = perf_counter()
        self._run(partial(state.run, first, last))
        self.shares.adjust()
        self._judge(perf_counter() - begin, state.training.take_waited())

    def _run(self, work):
        """work(me) in each thread."""
        numbers, errors, interrupt, begun = list(range(self.n)), [], None, False
        finished: list[int] = []
        everyone = Event()

        def take():
            if not numbers:  # there may be one call too many, after Ctrl-C
                return
            me = numbers.pop()
            # Each thread wakes the next one. Were all of them woken by the caller, who is not asleep yet, two might be
            # given the same core, where one would wait for the other.
            if numbers:
                self._pool.submit(take)
            try:
                work(me)
            except BaseException as error:
                errors.append(error)
            finished.append(me)
            if len(finished) == self.n:
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
