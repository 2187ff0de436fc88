"""Work that is shared out among threads: all of it is done, once, whatever happens to one of them."""

import os
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

from taylorkern._threads import MOST_REST, REST, TRIAL, Shares, Team, share_out


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
from taylorkern._threads import share_out
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
    """A step of the core whose passes are written down, and whose threads have waited all the time, or never."""

    def __init__(self, team, n_columns=5):
        team.shares = Shares(np.ones(n_columns + 1), team.n)
        self.training, self.block, self.alone, self.waits = self, 8, False, False
        self.taken = []

    def run(self, first, last, me=0):
        if me == 0:
            self.taken.append((1 if self.alone else 2, first, last))

    def take_waited(self):
        return 1e9 if self.waits else 0.0


def how_passes_are_taken(team, steps, n_passes, rows=800):
    """For each pass in how many rows of it how many threads took part."""
    passes = []
    for first in range(0, n_passes * rows, rows):
        steps.taken.clear()
        team.run(steps, first, first + rows)
        ends = [first, *(last for _, _, last in steps.taken)]
        assert [begin for _, begin, _ in steps.taken] == ends[:-1]  # all rows, in their order
        assert ends[-1] == first + rows
        assert all((end - first) % steps.block == 0 for end in ends)
        passes.append([(n, last - begin) for n, begin, last in steps.taken])
    return passes


def test_threads_that_wait_for_cores_leave_passes_to_one_until_a_trial_goes_well():
    team = Team(2)
    steps = Steps(team)
    part = -(-800 // (TRIAL * 8)) * 8
    alone, together, good, bad = [(1, 800)], [(2, 800)], [(2, part), (2, 800 - part)], [(2, part), (1, 800 - part)]
    steps.waits = True
    for rest in (REST, 2 * REST, 4 * REST, MOST_REST, MOST_REST):
        assert how_passes_are_taken(team, steps, rest) == [bad] + [alone] * (rest - 1)
    steps.waits = False
    assert how_passes_are_taken(team, steps, 3) == [good, together, together]
    steps.waits = True
    assert how_passes_are_taken(team, steps, REST + 2) == [together] + [alone] * REST + [bad]
    assert not steps.alone


def test_a_pass_that_is_all_trial_is_over_then():
    team = Team(2)
    steps = Steps(team)
    assert how_passes_are_taken(team, steps, 2, rows=8) == [[(2, 8)], [(2, 8)]]
