"""Work that is shared out among threads: all of it is done, once, whatever happens to one of them."""

import os
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest

from taylorkern._data.threads import MOST_REST, REST, TRIAL, Shares, Team, share_out


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
    """A step of the core whose passes are written down, on a clock that stands still but for the rows that are taken.

    A row takes so many seconds: of one thread, and of several, where that may be a function of how many rows there are.
    """

    def __init__(self, team, monkeypatch, n_columns=5):
        team.shares = Shares(np.ones(n_columns + 1), team.n)
        self.training, self.block, self.alone = self, 8, False
        self.seconds_alone, self.seconds_together = 1.0, lambda n: 0.6
        self.taken, self.now, self.everyone = [], 0.0, threading.Barrier(team.n, timeout=10)
        monkeypatch.setattr("taylorkern._data.threads.perf_counter", lambda: self.now)

    def run(self, first, last, me=0):
        if not self.alone:
            self.everyone.wait()
        if me == 0:
            n = last - first
            self.taken.append((1 if self.alone else 2, first, last))
            self.now += n * (self.seconds_alone if self.alone else self.seconds_together(n))
        if not self.alone:
            self.everyone.wait()


ROWS, PART = 800, -(-800 // (TRIAL * 8)) * 8
ALONE, TOGETHER = [(1, ROWS)], [(2, ROWS)]
GOOD, BAD = ([(1, PART), (2, PART), (n, ROWS - 2 * PART)] for n in (2, 1))


def how_passes_are_taken(team, steps, n_passes, rows=ROWS):
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
        assert not steps.alone
    return passes


def test_threads_that_are_slower_than_one_leave_passes_to_it_until_a_trial_goes_well(monkeypatch):
    team = Team(2)
    steps = Steps(team, monkeypatch)
    for _ in range(3):
        assert how_passes_are_taken(team, steps, REST + 1) == [GOOD] + [TOGETHER] * REST
    steps.seconds_together = lambda n: 1.01
    for rest in (REST, 2 * REST, 4 * REST, MOST_REST, MOST_REST):
        assert how_passes_are_taken(team, steps, rest + 1) == [BAD] + [ALONE] * rest
    steps.seconds_together = lambda n: 0.99
    assert how_passes_are_taken(team, steps, REST + 1) == [GOOD] + [TOGETHER] * REST
    steps.seconds_together = lambda n: 1.01
    assert how_passes_are_taken(team, steps, REST + 2) == [BAD] + [ALONE] * REST + [BAD]


def test_threads_that_get_slow_leave_passes_to_one_at_once(monkeypatch):
    team = Team(2)
    steps = Steps(team, monkeypatch)
    assert how_passes_are_taken(team, steps, 3) == [GOOD, TOGETHER, TOGETHER]
    steps.seconds_together = lambda n: 1.9
    assert how_passes_are_taken(team, steps, 2) == [TOGETHER, TOGETHER]
    steps.seconds_together = lambda n: 2.1
    assert how_passes_are_taken(team, steps, 2) == [TOGETHER, ALONE]


def test_short_trials_that_mislead_come_less_and_less_often(monkeypatch):
    team = Team(2)
    steps = Steps(team, monkeypatch)
    steps.seconds_together = lambda n: 0.6 if n == PART else 20.0
    for rest in (REST, 2 * REST, 4 * REST, MOST_REST, MOST_REST):
        assert how_passes_are_taken(team, steps, rest + 1) == [GOOD] + [ALONE] * rest
    steps.seconds_together = lambda n: 0.6
    assert how_passes_are_taken(team, steps, 1) == [GOOD]
    steps.seconds_together = lambda n: 20.0
    assert how_passes_are_taken(team, steps, REST + 2) == [TOGETHER] + [ALONE] * REST + [BAD]


@pytest.mark.parametrize(("n_blocks", "pieces"), [(1, [2]), (2, [1, 2]), (3, [1, 2, 2])])
def test_a_pass_of_few_blocks_is_taken_whole_or_is_all_trial(n_blocks, pieces, monkeypatch):
    team = Team(2)
    steps = Steps(team, monkeypatch)
    (taken,) = how_passes_are_taken(team, steps, 1, rows=8 * n_blocks)
    assert [n for n, _ in taken] == pieces
