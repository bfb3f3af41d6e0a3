"""Folds that train side by side: the pooled curve, who ends it, and what goes wrong."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcrank.rounds import RoundEvent
from mcrank.tuning.lockstep import EVERY, Lockstep


def telling(values, rounds=None, pause=0.0, seen=None):
    """A training that measures these values, round by round."""

    def job(tell):
        for number, value in enumerate(values, 1):
            time.sleep(pause)
            if seen is not None:
                seen.append(number)
            if tell(RoundEvent(number, rounds or len(values), {"ndcg@10": value}, 0.0)):
                return

    return job


def test_the_curve_is_the_weighted_mean_of_all_folds():
    rng = np.random.default_rng(0)
    values, weights = rng.random((3, 25)), np.array([5.0, 1.0, 2.0])
    for slots in (1, 2, 3):
        folds = Lockstep(weights, slots, judge=lambda curve: False)
        folds.run([telling(list(row), pause=0.0005 * n) for n, row in enumerate(values)])
        np.testing.assert_allclose(folds.curve(), weights @ values / weights.sum(), rtol=1e-12)


@given(st.lists(st.integers(1, 35), min_size=2, max_size=4), st.integers(1, 4))
def test_folds_that_end_early_stay_as_they_are(lengths, slots):
    values = [[n + 0.5 * fold for n in range(length)] for fold, length in enumerate(lengths)]
    folds = Lockstep([1.0] * len(lengths), slots, judge=lambda curve: False)
    folds.run([telling(row, rounds=40) for row in values])
    longest = max(lengths)
    padded = [row + row[-1:] * (longest - len(row)) for row in values]
    np.testing.assert_allclose(folds.curve(), np.mean(padded, axis=0))


def test_they_meet_every_few_rounds_and_a_judge_ends_them_there():
    lengths: list[int] = []

    def judge(curve):
        lengths.append(len(curve))
        return len(curve) >= 2 * EVERY

    seen: list[int] = []
    folds = Lockstep([1.0, 1.0], 2, judge)
    folds.run([telling([0.1] * 100, seen=seen), telling([0.2] * 100, pause=0.0005)])
    assert lengths == [EVERY, 2 * EVERY]
    assert max(seen) == 2 * EVERY
    assert len(folds.curve()) == 2 * EVERY
    assert not folds.stopped


def test_time_ends_them_at_once():
    asked = iter([False] * 5 + [True] * 100)
    folds = Lockstep([1.0, 1.0], 1, judge=lambda curve: False, over=lambda: next(asked))
    folds.run([telling([0.1] * 100), telling([0.2] * 100)])
    assert folds.stopped
    assert len(folds.curve()) <= EVERY


@pytest.mark.parametrize("slots", [1, 3])
def test_no_more_than_slots_train_at_a_time(slots):
    at_work, most, lock = 0, 0, threading.Lock()

    def job(tell):
        nonlocal at_work, most
        for number in range(1, 31):
            with lock:
                at_work += 1
                most = max(most, at_work)
            time.sleep(0.0005)
            with lock:
                at_work -= 1
            tell(RoundEvent(number, 30, {"m": 0.0}, 0.0))

    Lockstep([1.0] * 4, slots, judge=lambda curve: False).run([job] * 4)
    assert most <= slots


@pytest.mark.parametrize("where", ["job", "judge", "watch"])
def test_what_goes_wrong_ends_all_and_is_raised(where):
    def wrong(*_):
        raise ZeroDivisionError(where)

    judge = wrong if where == "judge" else lambda curve: False
    seen = []
    jobs = [
        wrong if where == "job" else telling([0.1] * 5000, pause=0.001, seen=seen),
        telling([0.1] * 5000, pause=0.001, seen=seen),
    ]
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match=where):
        Lockstep([1.0, 1.0], 2, judge).run(jobs, wrong if where == "watch" else lambda: None)
    assert 5000 not in seen
    assert threading.active_count() <= before
