"""Threads that are kept, and columns checked in parts."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import threads
from mcrank.data import grades as module
from mcrank.errors import OptionError
from mcrank.threads import InOrder, check_jobs, run_all


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    data = mcrank.make_artificial(40, 1, 1, docs_per_query=5, n_features=3, seed=1).train
    path = tmp_path_factory.mktemp("few") / "few.txt"
    mcrank.write(data, path)
    return data, path


ASKED = {
    "read": lambda data, path, n_jobs: mcrank.read(path, n_jobs=n_jobs),
    "write_bins": lambda data, path, n_jobs: mcrank.write_bins(
        data, path.with_suffix(".bins"), n_jobs=n_jobs
    ),
    "compare": lambda data, path, n_jobs: mcrank.compare("best-feature", data, folds=3, n_jobs=n_jobs),
    "learning_curve": lambda data, path, n_jobs: mcrank.learning_curve(
        data, "regression", shares=(0.5, 1.0), repeats=1, options={"n_estimators": 2}, n_jobs=n_jobs
    ),
    "distil": lambda data, path, n_jobs: mcrank.distil(
        mcrank.RegressionRanker(n_estimators=2).fit(data), data, n_estimators=2, n_jobs=n_jobs
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_all_functions_take_the_same_numbers_of_threads(name, few):
    ASKED[name](*few, -1)
    for bad in (0, -2, True, 1.5):
        with pytest.raises(
            OptionError, match=f"n_jobs of {name} must be an integer >= 1, or -1 for all cores"
        ):
            ASKED[name](*few, bad)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_every_item_is_done_once(n_jobs):
    done = []
    run_all(done.append, range(40), n_jobs)
    assert sorted(done) == list(range(40))
    run_all(done.append, [], n_jobs)
    assert len(done) == 40


def test_threads_share_the_items():
    here = threading.get_ident()
    seen = set()

    def wait(_):
        seen.add(threading.get_ident())
        time.sleep(0.05 if len(seen) < 2 else 0)

    run_all(wait, range(60), 2)
    assert len(seen) == 2
    assert here in seen


@pytest.mark.parametrize("comes", [True, False])
def test_nobody_waits_for_a_thread_that_has_not_begun(monkeypatch, comes):
    """Threads that were called, and that a busy machine lets begin only when all is over, or none at all."""
    late = []

    def call(work, most):
        late.append(work)
        return comes

    monkeypatch.setattr(threads._kept, "call", call)
    done = []
    run_all(done.append, range(9), 4)
    with InOrder(4) as work:
        for i in range(5):
            work.add(lambda i=i: i)
        assert [work.take() for _ in range(5)] == list(range(5))
    assert done == list(range(9))
    for begin in late:
        begin()
    assert len(done) == 9
    # Three helpers each time; or one is asked for whenever there is work for it.
    assert len(late) == 6 if comes else len(late) > 14


def test_a_thread_that_becomes_free_later_helps(monkeypatch):
    calls = []
    ask = threads._kept.call

    def call(work, most):
        calls.append(work)
        return len(calls) > 95 and ask(work, most)

    monkeypatch.setattr(threads._kept, "call", call)
    seen = set()

    def task(_):
        seen.add(threading.get_ident())
        time.sleep(0.05 if len(seen) < 2 else 0)

    run_all(task, range(90), 2)
    assert len(calls) > 95
    assert len(seen) == 2


def test_work_goes_on_without_new_threads(monkeypatch):
    """As under a limit of processes, or while the interpreter ends."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_kept", threads._Kept())
    monkeypatch.setattr(threads._Worker, "start", refuse)
    done = []
    run_all(done.append, range(9), 4)
    assert done == list(range(9))


def test_threads_are_kept_and_no_more_than_asked_for(monkeypatch):
    monkeypatch.setattr(threads, "_kept", threads._Kept())
    before = set(threading.enumerate())
    for _ in range(50):
        run_all(lambda _: time.sleep(1e-4), range(6), 3)
    cores = threads.available_cores()
    assert 1 <= len(set(threading.enumerate()) - before) <= max(2, cores - 1)


def test_tasks_within_tasks():
    done = []
    run_all(lambda i: run_all(lambda j: done.append((i, j)), range(5), 3), range(5), 3)
    assert sorted(done) == [(i, j) for i in range(5) for j in range(5)]


def test_results_come_in_order_and_the_first_error_first():
    def task(i):
        time.sleep(0.002 * (5 - i))
        if i >= 3:
            raise ValueError(f"task {i}")
        return i

    for n_jobs in (1, 3):
        with InOrder(n_jobs) as work:
            for i in range(5):
                work.add(lambda i=i: task(i))
            assert [work.take() for _ in range(3)] == [0, 1, 2]
            with pytest.raises(ValueError, match="task 3"):
                work.take()
            assert len(work) == 1


def test_the_end_drops_what_has_not_begun_and_waits_for_the_rest():
    begun, done = [], []
    first = threading.Event()

    def task(i):
        begun.append(i)
        first.set()
        time.sleep(0.05)
        done.append(i)

    with InOrder(2) as work:
        for i in range(200):
            work.add(lambda i=i: task(i))
        assert first.wait(5)
    assert sorted(begun) == sorted(done)
    assert len(done) < 200


def test_an_interrupt_ends_it_at_once():
    done = []

    def task(i):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        run_all(task, range(1000), 2)
    assert len(done) < 900


def test_a_kept_thread_keeps_nothing_alive():
    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    run_all(lambda _, thing=thing: time.sleep(0.01), range(4), 2)
    del thing
    deadline = time.monotonic() + 60
    while gone() is not None and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_gets_threads_of_its_own():
    """Forked while another thread keeps all kept threads, and their locks, busy."""
    code = """
import os, threading, time, warnings
warnings.simplefilter("ignore")
from mcrank.threads import run_all
def busy():
    while True:
        run_all(lambda i: sum(range(100)), range(20), 3)
threading.Thread(target=busy, daemon=True).start()
time.sleep(0.1)
for _ in range(30):
    child = os.fork()
    if child == 0:
        seen = set()
        run_all(lambda i: (seen.add(threading.get_ident()), time.sleep(0.002)), range(20), 2)
        os._exit(0 if len(seen) == 2 else 1)
    _, status = os.waitpid(child, 0)
    print(status)
os._exit(0)
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert child.stdout.split() == ["0"] * 30, child.stderr


@pytest.mark.parametrize("place", [0, 7])
def test_what_a_task_raises_is_raised(place):
    def fail(item):
        time.sleep(0.005)
        if item == place:
            raise ValueError(f"item {item}")

    for n_jobs in (1, 3):
        with pytest.raises(ValueError, match=f"item {place}"):
            run_all(fail, range(8), n_jobs)


def test_jobs_are_checked():
    assert check_jobs(None, "predict") == check_jobs(-1, "predict") >= 1
    assert check_jobs(np.int64(2), "predict") == 2
    for bad in (0, -2, 1.5, True, "two"):
        with pytest.raises(OptionError, match="n_jobs of Grades must be an integer >= 1"):
            mcrank.Grades([1.0], [1], n_jobs=bad)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([1.0, 0.5, 300.0]),
)
def test_grades_do_not_depend_on_threads(ids, jobs, rising, unit):
    qid = np.array(sorted(ids) if rising else ids, dtype=np.int64)
    y = np.arange(len(qid)) % 4 * unit
    alone = mcrank.Grades(y, qid, n_jobs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS_PER_THREAD", 3)
        shared = mcrank.Grades(y, qid, n_jobs=jobs)
    for name in ("y", "qids", "offsets", "small", "source_rows"):
        one, many = getattr(alone, name), getattr(shared, name)
        assert (one is None) == (many is None)
        assert one is None or np.array_equal(one, many)


def test_helpers_that_are_busy_come_later(monkeypatch):
    kept = threads._Kept()
    monkeypatch.setattr(threads, "_kept", kept)
    monkeypatch.setattr(threads, "available_cores", lambda: 2)
    go, came, order = threading.Event(), threading.Event(), []
    threads.call_helpers(lambda: go.wait(60) and order.append("first"), 1, n_jobs=2)
    threads.call_helpers(lambda: order.append("second"), 1, n_jobs=2)
    threads.call_helpers(came.set, 1, n_jobs=2)
    assert not came.wait(0.05)  # one thread, and it is busy
    go.set()
    assert came.wait(60)
    assert order == ["first", "second"]
    again = threading.Event()
    threads.call_helpers(again.set, 1, n_jobs=2)
    assert again.wait(60)
    assert kept._count == 1


def test_calls_that_nobody_answers_are_forgotten(monkeypatch):
    kept = threads._Kept()
    monkeypatch.setattr(threads, "_kept", kept)
    monkeypatch.setattr(
        threads._Worker, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no thread"))
    )
    threads.call_helpers(lambda: None, 3, n_jobs=4)
    assert len(kept._later) == 0
