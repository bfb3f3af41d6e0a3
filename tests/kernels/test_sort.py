"""Sorting steps and the Fenwick tree against plain Python, each compiled once on its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from mcrank.kernels import fenwick, sort
from tests.reference.measures import stable_order

SORT_COLUMNS = njit(sort.sort_columns)
MERGE_ROWS = njit(sort.merge_rows)
INSERT_ROWS = njit(sort.insert_rows)
SCORES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0, np.inf]), min_size=1, max_size=40)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 70), lanes=st.integers(1, 40), top=st.sampled_from([2, 50, 2**31 - 1]))
def test_columns_are_sorted(n, lanes, top):
    table = np.random.default_rng(n).integers(0, top, (n, lanes)).astype(np.int32)
    flat = table.ravel().copy()
    SORT_COLUMNS(flat, np.uint64(n), np.uint64(lanes))
    assert flat.reshape(n, lanes).tolist() == np.sort(table, axis=0).tolist()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(scores=SCORES, before=st.integers(0, 3), seed=st.none() | st.integers(0, 99))
def test_rows_are_merged_in_base_order(scores, before, seed):
    n = len(scores)
    base = np.empty(0, dtype=np.int32)
    places = list(range(n))
    if seed is not None:
        places = np.random.default_rng(seed).permutation(n).tolist()
        base = np.array([*range(before), *(before + i for i in places)], dtype=np.int32)
    order = np.full(before + n, -1, dtype=np.int32)
    every = np.array([0.0] * before + scores)
    MERGE_ROWS(every, base, np.int64(before), np.int64(n), sort.SortSpace.allocate(n), order)
    wanted = [places[i] for i in stable_order([scores[i] for i in places])]
    assert order[before:].tolist() == [before + i for i in wanted]
    assert (order[:before] == -1).all()


@settings(max_examples=60, deadline=None)
@given(scores=SCORES)
def test_rows_are_inserted_in_order(scores):
    key, ranked = np.array(scores), np.arange(len(scores), dtype=np.int32)
    INSERT_ROWS(key, ranked)
    assert ranked.tolist() == stable_order(scores)
    assert key.tolist() == sorted(scores, reverse=True)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_sums_of_a_tree_are_sums(dtype):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 33):
        tree, plain = np.zeros(n, dtype=dtype), np.zeros(n, dtype=dtype)
        for place, value in zip(rng.integers(0, n, 50), rng.integers(-9, 9, 50), strict=True):
            fenwick.add_at(tree, place, dtype(value))
            plain[place] += value
        found = [fenwick.sum_upto(tree, place) for place in range(-1, n)]
        assert found == [0, *np.cumsum(plain)]
