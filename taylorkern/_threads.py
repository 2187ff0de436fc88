"""Threads that run one pass of the C core together."""

from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from threading import Barrier, BrokenBarrierError


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
        numbers, interrupt = list(range(self.n)), None
        futures: list[Future] = []

        def take():
            if numbers:  # there may be one call too many, after Ctrl-C
                work(numbers.pop())

        while len(futures) < self.n or not all(future.done() for future in futures):
            try:
                while len(futures) < self.n:
                    futures.append(self._pool.submit(take))
                for future in futures:
                    future.exception()
            except KeyboardInterrupt as caught:
                interrupt = caught
        for future in futures:
            future.result()
        if interrupt is not None:
            raise interrupt
