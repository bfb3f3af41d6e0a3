"""The ranking kernels against a plain stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Grades
from mcrank.metrics.layout import Layout, count_few_levels, count_levels, count_sums, level_sums
from mcrank.metrics.ranking import fill_cut_ties, rank, ties_of
from tests.reference.measures import stable_order

SCORES = {
    "few values": st.sampled_from([0.0, -0.0, 1.0, 2.0, -3.5]),
    "any": st.floats(allow_nan=False, width=64),
    "close": st.integers(0, 10**6).map(lambda i: 1.0 + i * 2.0**-52),
    "crowded": st.one_of(st.floats(0, 1e-9), st.just(1e9)),
}


def layout_of(sizes):
    return Layout.of(Grades(np.zeros(sum(sizes)), qid=np.repeat(np.arange(len(sizes)), sizes)))


@pytest.mark.parametrize("kind", SCORES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rank_is_a_stable_sort(kind, data):
    sizes = data.draw(st.lists(st.integers(1, 90), min_size=1, max_size=4))
    rows = sum(sizes)
    scores = np.array(data.draw(st.lists(SCORES[kind], min_size=rows, max_size=rows)))
    layout = layout_of(sizes)
    for depth in (1, 5, 11, layout.longest):
        order = rank(layout, scores, depth).order
        for start, stop in zip(layout.starts, layout.stops, strict=True):
            expected = [start + i for i in stable_order(scores[start:stop].tolist())]
            assert order[start : min(stop, start + depth)].tolist() == expected[:depth]


@pytest.mark.parametrize("n", [9, 33, 400])
@pytest.mark.parametrize("depth", [1, 10, 40])
def test_first_ranks_tell_no_zeros_apart_and_keep_infinities(n, depth):
    """Rows of equal score, too many to be compared with each other and few enough for it."""
    layout = layout_of([n, n, n])
    zeros = np.where(np.arange(n) % 3 == 0, -0.0, 0.0)
    ends = np.where(np.arange(n) % 2 == 0, -np.inf, np.inf)
    few = np.where(np.arange(n) % (n // 3) == 0, 1.0, -1.0)
    scores = np.concatenate([zeros, ends, few])
    order = rank(layout, scores, depth).order
    for start, stop in zip(layout.starts, layout.stops, strict=True):
        expected = [start + i for i in stable_order(scores[start:stop].tolist())]
        assert order[start : min(stop, start + depth)].tolist() == expected[:depth]


@pytest.mark.parametrize("longest", [254, 255, 256, 700])
@pytest.mark.parametrize("decimals", [0, 1, 2, 12])
def test_rank_of_queries_about_the_size_a_byte_can_count(longest, decimals):
    layout = layout_of([longest, 1, 40, longest])
    scores = np.random.default_rng(longest).normal(size=layout.n_rows).round(decimals)
    scores[-longest:-1] = scores[-longest]  # all but one in a single bucket
    order = rank(layout, scores, longest).order
    for start, stop in zip(layout.starts, layout.stops, strict=True):
        assert order[start:stop].tolist() == [start + i for i in stable_order(scores[start:stop].tolist())]


def test_rank_of_many_short_queries_of_all_sizes():
    sizes = np.random.default_rng(3).permutation(np.arange(1, 256))
    layout = layout_of(sizes)
    normal = np.random.default_rng(4).normal(size=layout.n_rows)
    for scores in (normal, np.exp(9 * normal), np.zeros(layout.n_rows), np.copysign(np.inf, normal)):
        order = rank(layout, scores, 255).order
        expected = [
            start + i
            for start, stop in zip(layout.starts, layout.stops, strict=True)
            for i in stable_order(scores[start:stop].tolist())
        ]
        assert order.tolist() == expected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), depth=st.sampled_from([1, 4, 100]))
def test_rank_respects_the_base_order(seed, depth):
    rng = np.random.default_rng(seed)
    layout = layout_of([7, 1, 60])
    scores = rng.integers(0, 5, 68).astype(float)
    base = np.concatenate(
        [rng.permutation(np.arange(a, b)) for a, b in zip(layout.starts, layout.stops, strict=True)]
    ).astype(np.int32)
    order = rank(layout, scores, depth, base).order
    for start, stop in zip(layout.starts, layout.stops, strict=True):
        rows = base[start:stop].tolist()
        expected = [rows[i] for i in stable_order([scores[row] for row in rows])]
        assert order[start : min(stop, start + depth)].tolist() == expected[:depth]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 200, 2000)
    grades = Grades(rng.integers(0, 4, sizes.sum()), qid=np.repeat(np.arange(2000), sizes))
    scores = rng.integers(0, 300, sizes.sum()).astype(float)
    names = ["ndcg@10", "ndcg", "meanndcg", "map", "mrr", "best@3", "kendall", "ndcg[sklearn;single=score]"]
    alone, together = (mcrank.evaluate(scores, grades, names, n_jobs=jobs) for jobs in (1, 3))
    for name in alone.mean:
        assert together.per_query[name].tolist() == alone.per_query[name].tolist()


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0]), min_size=1, max_size=30),
    depth=st.integers(1, 9),
    more=st.sampled_from([0, 300]),
)
def test_ties_are_found_within_the_cut_and_across_it(scores, depth, more):
    scores = scores + [-1.0 - i for i in range(more)]  # of a long query only the first ranks are found
    layout = layout_of([len(scores)])
    falling = sorted(scores, reverse=True)
    across = depth < len(scores) and falling[depth - 1] == falling[depth]
    for ranked in (depth, len(scores)):
        ranking = rank(layout, np.array(scores), max(ranked, depth))
        tied, at_cut = ties_of(layout, ranking, depth)
        alone = np.empty(1, dtype=np.bool_)
        fill_cut_ties(layout, ranking, depth, slice(0, 1), alone)
        assert at_cut[0] == alone[0] == across
        assert tied[0] == (across or len(set(falling[:depth])) < len(falling[:depth]))


def test_level_sums():
    levels = np.array([0, 2, 1, 1], dtype=np.uint8)
    out = np.empty(3)
    level_sums(levels, np.array([0, 3, 3]), np.array([3, 3, 4]), np.array([0.5, 1.0, 4.0]), out)
    assert out.tolist() == [5.5, 0.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(0, 600), min_size=1, max_size=6), seed=st.integers(0, 9), few=st.booleans())
def test_levels_are_counted_by_query(sizes, seed, few):
    n_levels = 1 + seed % 8 if few else 12
    stops = np.cumsum(sizes)
    starts = stops - sizes
    levels = np.random.default_rng(seed).integers(0, n_levels, stops[-1]).astype(np.uint8)
    levels[levels.shape[0] // 2 :] = 0  # more than a byte can count
    counts = np.zeros((len(sizes), n_levels), dtype=np.int32)
    (count_few_levels if few else count_levels)(levels, starts, stops, counts)
    naive = [np.bincount(levels[a:b], minlength=n_levels) for a, b in zip(starts, stops, strict=True)]
    assert counts.tolist() == np.array(naive).tolist()
    worth = np.arange(n_levels) ** 2 / 4.0
    sums = np.empty(len(sizes))
    count_sums(counts, worth, sums)
    assert sums.tolist() == [worth[levels[a:b]].sum() for a, b in zip(starts, stops, strict=True)]
