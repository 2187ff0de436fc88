"""Work that is shared out among threads: all of it is done, once, whatever happens to one of them."""

import os
import subprocess
import sys
import threading
from collections import Counter

import pytest

from taylorkern._data.threads import Team, share_out


def all_taken(n_jobs, n=200):
    """Share out n things."""
    counts: Counter[int] = Counter()

    def take(passes):
        for i in passes:
            counts[i] += 1

    share_out(take, iter(range(n)), n_jobs)
    assert counts == Counter(range(n))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_each_thing_is_taken_once(n_jobs):
    for n in (0, 1, 3, 200):
        all_taken(n_jobs, n)


def test_threads_are_used_again():
    before = threading.active_count()
    for _ in range(50):
        all_taken(3)
    assert threading.active_count() <= before + 2


def test_more_than_one_thread_takes_part():
    both = threading.Barrier(2, timeout=10)
    share_out(lambda passes: [both.wait() for _ in passes], iter(range(2)), 2)


def test_what_is_shared_out_may_share_out_itself():
    done = []

    def outer(passes):
        for i in passes:
            share_out(lambda inner, i=i: done.extend((i, j) for j in inner), iter(range(5)), 4)

    share_out(outer, iter(range(30)), 4)
    assert sorted(done) == [(i, j) for i in range(30) for j in range(5)]


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_an_error_in_any_thread_reaches_the_caller_when_all_have_stopped(where):
    caller, busy = threading.get_ident(), []
    both = threading.Barrier(2, timeout=10)

    def take(passes):
        for i in passes:
            busy.append(i)
            if i < 2:
                both.wait()
            if i < 2 and (threading.get_ident() == caller) == (where == "caller"):
                raise ValueError(where)
            busy.remove(i)

    with pytest.raises(ValueError, match=where):
        share_out(take, iter(range(1000)), 2)
    assert len(busy) == 1  # that of the error
    all_taken(2)


FORKED = """
import os, sys
from taylorkern._data.threads import share_out
done = []
share_out(done.extend, iter(range(100)), 3)
pid = os.fork()
if pid == 0:
    share_out(done.extend, iter(range(100)), 3)
    os._exit(0 if sorted(done) == sorted(2 * list(range(100))) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_threads_of_its_own():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-P", "-c", FORKED]
    subprocess.run(command, check=True, timeout=60)


class Steps:
    """A step of the core whose passes are written down, and may fail in one thread."""

    def __init__(self, n, fails_in=None):
        self.taken, self.everyone, self.fails_in = [], threading.Barrier(n, timeout=10), fails_in

    def run(self, first, last, me=0):
        self.everyone.wait()
        self.taken.append((me, first, last))
        self.everyone.wait()
        if me == self.fails_in:
            raise ValueError("a bug")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_threads_of_a_team_take_each_pass(n):
    team, steps = Team(n), Steps(n)
    assert team.n == n
    for first in range(0, 40, 8):
        steps.taken.clear()
        team.run(steps, first, first + 8)
        assert sorted(steps.taken) == [(me, first, first + 8) for me in range(n)]


@pytest.mark.parametrize("n", [1, 3])
def test_an_error_in_a_team_reaches_the_caller_when_all_have_ended(n):
    team, steps = Team(n), Steps(n, fails_in=n - 1)
    for _ in range(2):
        with pytest.raises(ValueError, match="a bug"):
            team.run(steps, 0, 8)
    assert len(steps.taken) == 2 * n
