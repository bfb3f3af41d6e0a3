"""Threads that are kept, and columns checked in parts."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.data import grades as module
from mcrank.errors import OptionError
from mcrank.threads import check_jobs, run_all


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
        time.sleep(0.02)

    run_all(wait, range(20), 2)
    assert len(seen) == 2
    assert here in seen


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
