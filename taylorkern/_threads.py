"""Threads that run one pass of the C core together."""

from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from threading import Barrier, BrokenBarrierError, Event


def check_jobs(n_jobs):
    """The number of threads that n_jobs stands for, as joblib has it."""
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be an integer or None; got {n_jobs!r}")
    from joblib import effective_n_jobs

    return effective_n_jobs(n_jobs)


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

    def run(self, work):
        """work(me) in each thread; returns when all are done, also after Ctrl-C."""
        if self.n == 1:
            work(0)
            return
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
