"""Evaluation on several threads: the same values, also in a process forked from one that has such threads."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import warnings

import numpy as np
import pytest

import mcrank

ROWS = 400_000  # enough to be shared
MEASURES = ["ndcg@10", "map"]


def values(n_jobs):
    stream = np.random.default_rng(5)
    grades = mcrank.Grades(stream.integers(0, 3, ROWS), np.arange(ROWS) // 40)
    result = mcrank.evaluate(stream.normal(size=ROWS), grades, MEASURES, n_jobs=n_jobs)
    return np.array([result.per_query[name] for name in MEASURES])


def test_values_do_not_depend_on_threads():
    assert np.array_equal(values(1), values(3))


def test_threads_are_kept():
    values(2)
    before = threading.active_count()
    values(2)
    assert threading.active_count() == before


def send(pipe):
    pipe.send(values(2))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_process_has_threads_of_its_own():
    wanted = values(2)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=send, args=(theirs,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        child.start()
    try:
        assert ours.poll(60)
        assert np.array_equal(ours.recv(), wanted)
    finally:
        child.kill()
        child.join()
