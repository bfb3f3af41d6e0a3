"""Pairs of long queries: sums in boxes against all pairs, and how time and memory grow."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.losses import boxes, pairwise
from mcrank.losses.boxes import FIDELITY, LOGISTIC, PULL, lay_out, pair_sums, pair_tables
from mcrank.losses.hinges import SquaredHinge
from mcrank.losses.pairwise import FidelityLoss, PairwiseLogistic
from tests.reference import boxes as naive

pytestmark = pytest.mark.slow


def run(task, items):
    for item in items:
        task(item)


def slopes_of(loss, scores):
    out = np.full((2, len(scores)), np.nan)
    loss.slopes(scores, run, out[0], out[1])
    return out


@settings(max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.sampled_from([1, 2, 5, 10**6]),
    st.sampled_from([0.0, 1e-3, 1.0, 10.0, 100.0]),
    st.sampled_from([LOGISTIC, FIDELITY, PULL]),
    st.sampled_from([2, 7, 256]),
)
def test_sums_in_boxes_are_those_of_all_pairs(seed, n, n_grades, spread, kind, group):
    stream = np.random.default_rng(seed)
    worth = stream.integers(0, n_grades, n) / 2
    scores = spread * (stream.normal(size=n) + stream.choice([0, 3], n)) + stream.choice([0.0, 1e3])
    weight = stream.random(n) + 0.1
    order = np.argsort(-worth, kind="stable").astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "GROUP", group)
        found = pair_sums(lay_out(order, worth, scores, weight, pair_tables(kind)), pair_tables(kind))
    wanted = naive.pair_sums(order, worth, scores, weight, kind)
    # Scores around 1000 have lost 3 digits before anyone has touched them.
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-17)


@pytest.mark.parametrize("kind", [LOGISTIC, FIDELITY, PULL])
def test_scores_too_far_apart_for_a_table(kind):
    order = np.arange(4, dtype=np.int32)
    worth, scores = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 1e4, -1e15, 1e300])
    found = pair_sums(lay_out(order, worth, scores, None, pair_tables(kind)), pair_tables(kind))
    assert found == pytest.approx(naive.pair_sums(order, worth, scores, np.ones(4), kind), abs=1e-12)


@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize("kind", [PairwiseLogistic, FidelityLoss])
def test_long_queries_have_the_slopes_of_short_ones(kind, per_query, monkeypatch):
    stream = np.random.default_rng(3)
    grades, offsets = stream.integers(0, 4, 300).astype(float), [0, 5, 120, 180, 300]
    grades[120:180] = 1.0  # a long query without pairs
    scores, weight = 3 * stream.normal(size=300), stream.random(300)
    wanted = slopes_of(kind(grades, offsets, 1.5, per_query, weight), scores)
    monkeypatch.setattr(pairwise, "LONG", 60)
    found = slopes_of(kind(grades, offsets, 1.5, per_query, weight), scores)
    assert found == pytest.approx(wanted, rel=1e-11, abs=1e-13)


def test_the_hinges_of_many_grades_are_those_of_all_pairs():
    n, margin = 2200, 0.7  # rows times grades beyond which grades are no longer walked one by one
    stream = np.random.default_rng(4)
    grades, scores = stream.permutation(n).astype(float), np.round(stream.normal(size=n), 2)
    slopes, counts = slopes_of(SquaredHinge(grades, [0, n], margin), scores)
    lead = scores[:, None] - scores
    violated = (grades[:, None] > grades) & (lead < margin)
    short = np.where(violated, margin - lead, 0.0)
    assert counts.tolist() == (violated.sum(axis=1) + violated.sum(axis=0)).tolist()
    assert slopes == pytest.approx(short.sum(axis=1) - short.sum(axis=0), abs=1e-8)


def cpu_of(task):
    """CPU seconds of the quickest of three runs, the first of all being for compilation."""
    task()
    times = []
    for _ in range(3):
        began = time.thread_time()
        task()
        times.append(time.thread_time() - began)
    return min(times)


@pytest.mark.parametrize("n_grades", [5, 10**6])
@pytest.mark.parametrize("kind", [PairwiseLogistic, FidelityLoss, SquaredHinge])
def test_eight_times_the_rows_take_nowhere_near_the_square_of_that(kind, n_grades):
    spent = []
    for n in (8192, 65536):
        stream = np.random.default_rng(n)
        loss = kind(stream.integers(0, n_grades, n).astype(float), [0, n])
        scores = stream.normal(size=n)
        spent.append(cpu_of(lambda loss=loss, scores=scores: slopes_of(loss, scores)))
    assert spent[1] < 24 * spent[0]  # the square is 64


def test_memory_of_long_queries_is_a_few_numbers_a_row():
    n = 50_000
    stream = np.random.default_rng(5)
    loss = PairwiseLogistic(stream.integers(0, 5, n).astype(float), [0, n])
    scores = stream.normal(size=n)
    slopes_of(loss, scores[:n])
    tracemalloc.start()
    slopes_of(loss, scores)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * n  # 18 nodes, sums, order and scores
