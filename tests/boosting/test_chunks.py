"""Chunks of rows: together they are all rows, once each."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from mcrank.boosting import chunks

even = njit(lambda begin, end, item, items: chunks.chunk_of(begin, end, item, items))
uneven = njit(
    lambda begin, end, item, items, threads: chunks.uneven_chunk_of(begin, end, item, items, threads)
)


def check_whole(spans, begin, end):
    assert spans[0][0] == begin
    assert spans[-1][1] == end
    assert all(low <= high for low, high in spans)
    assert all(a[1] == b[0] for a, b in pairwise(spans))


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 200), st.integers(2, 64))
def test_every_row_is_in_one_chunk(begin, n, items, threads):
    check_whole([even(begin, begin + n, i, items) for i in range(items)], begin, begin + n)
    check_whole([uneven(begin, begin + n, i, items, threads) for i in range(items)], begin, begin + n)


def test_chunks_are_smallest_where_threads_meet():
    sizes = [high - low for low, high in (uneven(0, 300_000, i, 16, 2) for i in range(16))]
    assert sizes[0] > 20 * min(sizes)
    assert abs(sum(sizes[:8]) - sum(sizes[8:])) <= 16  # as much for the leader as for its helper
    assert sizes[:8] == sorted(sizes[:8], reverse=True)
    quarter = [high - low for low, high in (uneven(0, 300_000, i, 32, 4) for i in range(8))]
    assert abs(sum(quarter) - 75_000) <= 8
    assert len({high - low for low, high in (uneven(0, 70, i, 7, 2) for i in range(7))}) == 1
