"""First ranks of a query, and the largest of integers on vectors that they are found with."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit, uint64

from mcrank.kernels import largest
from mcrank.losses import pairs
from tests.reference import ranks as naive


@njit
def first_ranks(score, base, depth, space):
    pairs.first_ranks(score, base, depth, space)


@njit
def rank_query(score, base, depth, space):
    pairs.rank_query(score, base, depth, space)


@njit
def find(keys, n):
    return largest.first_largest(keys, uint64(n))


@njit
def take(keys, at, key):
    return largest.take_first(keys, uint64(at), key), largest.largest_of(keys, uint64(at))


@njit
def count(keys, i, n):
    return largest.count_before(keys, uint64(i), uint64(n))


TINY, HUGE = 5e-324, sys.float_info.max
ODD = st.sampled_from([-np.inf, -HUGE, -1.0, -TINY, -0.0, 0.0, TINY, 1.0, 1.0 + 2.0**-52, HUGE, np.inf])
SCORES = st.one_of(st.just(0.0), ODD, st.integers(-3, 3).map(float), st.floats(allow_nan=False))


@st.composite
def queries(draw):
    """Scores of a query with many ties, in file order or in another; and a depth, perhaps beyond its end."""
    n = draw(st.one_of(st.integers(1, 9), st.integers(20, 30), st.integers(1, 700)))
    some = draw(st.lists(SCORES, min_size=1, max_size=40))
    stream = np.random.default_rng(draw(st.integers(0, 2**32)))
    scores = np.array(some)[stream.integers(0, len(some), n)]
    base = stream.permutation(n).astype(np.int32) if draw(st.booleans()) else np.empty(0, np.int32)
    return scores, base, draw(st.integers(1, 60))


def in_base(scores, base):
    return base.tolist() if len(base) else range(len(scores))


@settings(max_examples=400, deadline=None)
@given(queries())
def test_first_ranks_are_those_of_rows_put_in_one_by_one(query):
    scores, base, depth = query
    depth = min(depth, len(scores))
    space = pairs.make_space(len(scores))
    for left in (space.key, space.highest):  # by the query before
        left[:] = 2**63 - 1
    first_ranks(scores, base, depth, space)
    assert space.order[:depth].tolist() == naive.first_ranks(scores.tolist(), in_base(scores, base), depth)


@settings(max_examples=100, deadline=None)
@given(queries())
def test_ranks_have_the_other_rows_behind_them_in_file_order(query):
    scores, base, depth = query
    depth = min(depth, len(scores))
    space = pairs.make_space(len(scores))
    rank_query(scores, base, depth, space)
    first = naive.first_ranks(scores.tolist(), in_base(scores, base), depth)
    found = space.order[: len(scores)].tolist()
    assert found[:depth] == first
    if depth <= 32:  # beyond that all are sorted
        assert found[depth:] == [i for i in range(len(scores)) if i not in set(first)]


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40))
def test_the_first_of_the_largest(some):
    keys = np.full(40, largest.LOWEST)
    keys[: len(some)] = some
    assert find(keys, len(some)) == some.index(max(some))
    assert [count(keys, i, len(some)) for i in range(len(some))] == [
        sum(key > own or (key == own and j < i) for j, key in enumerate(some)) for i, own in enumerate(some)
    ]


@pytest.mark.parametrize("at", [0, 3, 8])
def test_one_of_eight_is_taken_and_nothing_else(at):
    keys = np.array([5, 7, 2, 7, 7, 9, 3, 1, 7, 7, 4, 4, 4, 4, 4, 4])
    eight = keys[at : at + 8].tolist()
    first = eight.index(7)
    wanted = keys.copy()
    wanted[at + first] = largest.LOWEST
    assert take(keys, at, 7) == (at + first, max(eight[:first] + eight[first + 1 :]))
    assert keys.tolist() == wanted.tolist()


def test_the_ends_of_integers_are_keys_too():
    keys = np.array([largest.LOWEST, -1, 2**63 - 1, 0] + 4 * [largest.LOWEST])
    assert find(keys, 4) == 2
    assert [count(keys, i, 4) for i in range(4)] == [3, 2, 0, 1]
