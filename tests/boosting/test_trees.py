"""The trees of a round on any number of threads: the same trees, errors told, nobody waited for in vain."""

from __future__ import annotations

import itertools
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import mcrank.threads
from mcrank.boosting import trees
from mcrank.boosting.packing import Packing
from mcrank.boosting.rules import Rules
from mcrank.boosting.trees import TreeGrower
from mcrank.boosting.workspace import TreeInput
from tests.boosting.growing import NONE, random_plot

ROWS = 21_000  # enough for trees to be shared


@pytest.fixture(scope="module")
def ground():
    return random_plot(3, ROWS, 20, values=40, missing=0.1)


def forest(p, count, n_jobs, cores, monkeypatch, rounds=2, fail=None):
    """Nodes of the trees of some rounds; output ``k`` learns from gradients divided by k + 1."""
    monkeypatch.setattr(trees, "available_cores", lambda: cores)
    rules = p.rules(12, 20)
    grower = TreeGrower(p.arrays, rules, ROWS, count, n_jobs)
    q = [(p.q // (k + 1)).astype(np.int32) for k in range(count)]
    grown = {}

    def begin(k, ws, threads):
        if fail is not None:
            fail(k)
        return TreeInput.of(p.arrays, q[k], NONE, p.lane, p.chosen(), False, threads)

    def finish(k, nodes, ws):
        grown[k] = nodes

    for _ in range(rounds):
        grown.clear()
        grower.trees(count, begin, finish)
    assert len(grower.spaces) == min(n_jobs, count)
    return [grown[k] for k in range(count)]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_any_number_of_threads_grows_the_same_trees(ground, count, monkeypatch):
    wanted = forest(ground, count, 1, 1, monkeypatch)
    for n_jobs, cores in ((2, 2), (3, 8), (4, 2), (4, 4), (7, 7)):
        for one, other in zip(wanted, forest(ground, count, n_jobs, cores, monkeypatch), strict=True):
            for name in ("left", "total", "count", "gain"):
                assert np.array_equal(one[name], other[name]), (name, n_jobs, cores)


def test_no_helper_ever_comes(ground, monkeypatch):
    wanted = forest(ground, 3, 1, 1, monkeypatch)
    monkeypatch.setattr(trees, "call_helpers", lambda *_: None)
    found = forest(ground, 3, 4, 4, monkeypatch)
    assert all(np.array_equal(a["gain"], b["gain"]) for a, b in zip(wanted, found, strict=True))


@pytest.mark.parametrize("error", [MemoryError("no room"), KeyboardInterrupt()])
@pytest.mark.parametrize("bad", [0, 3])
def test_errors_of_any_tree_are_raised_when_all_are_done(ground, bad, error, monkeypatch):
    under_way = []

    def fail(k):
        under_way.append(k)
        if k == bad:
            raise error

    with pytest.raises(type(error)):
        forest(ground, 5, 3, 3, monkeypatch, fail=fail)
    assert bad in under_way
    # The kept threads are idle again, and of use.
    done = threading.Event()
    mcrank.threads.call_helpers(done.set, 1, 3)
    assert done.wait(60)


def clocks(own):
    """Clocks by which the thread that asks has had a core for that share of its time."""
    ticks = itertools.count()
    return SimpleNamespace(perf_counter=lambda: float(next(ticks)), thread_time=lambda: own * next(ticks))


def test_helpers_that_do_not_pay_are_not_called_for_some_rounds(ground, monkeypatch):
    called = []
    monkeypatch.setattr(trees, "call_helpers", lambda work, count, n_jobs: called.append(count))
    monkeypatch.setattr(trees, "time", clocks(1.0))
    monkeypatch.setattr(trees.tickets, "was_alone", lambda board: True)
    forest(ground, 1, 2, 2, monkeypatch, rounds=8)
    assert called == [1, 1, 0, 1, 0, 0, 1, 0]  # the first time may be chance
    called.clear()
    monkeypatch.setattr(trees.tickets, "was_alone", lambda board: False)
    forest(ground, 1, 2, 2, monkeypatch, rounds=3)
    assert called == [1, 1, 1]


def test_trees_are_not_shared_where_others_need_the_cores(ground, monkeypatch):
    called = []
    monkeypatch.setattr(trees, "call_helpers", lambda work, count, n_jobs: called.append(count))
    monkeypatch.setattr(trees, "time", clocks(0.7))
    forest(ground, 1, 2, 2, monkeypatch, rounds=8)
    assert called == [1, 1, 0, 1, 0, 0, 1, 0]  # the first time may be chance
    called.clear()
    monkeypatch.setattr(trees, "time", clocks(0.8))
    forest(ground, 1, 2, 2, monkeypatch, rounds=3)
    assert called == [1, 1, 1]


def test_a_helper_that_comes_late_finds_nothing_to_do(ground, monkeypatch):
    late = []
    monkeypatch.setattr(trees, "call_helpers", lambda work, count, n_jobs: late.append(work))
    forest(ground, 2, 2, 2, monkeypatch, rounds=1)
    began = time.thread_time()
    for work in late:
        work()
    assert time.thread_time() - began < 5


def test_trees_of_little_work_keep_to_one_thread(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(trees, "available_cores", lambda: 2)
    rules = Rules(4, 5, Packing.of(ROWS))
    for features, sharing in ((3, 1), (143, 2)):  # 21,000 rows: 63,000 and 3,003,000 bins
        binned = random_plot(1, 50, features).arrays
        assert TreeGrower(binned, rules, ROWS, 1, n_jobs=2).sharing == sharing
    assert TreeGrower(binned, rules, 19_999, 1, n_jobs=2).sharing == 1
