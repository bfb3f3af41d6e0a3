"""Rows of a node counted in chunks: the counters must not show it."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from mcrank.boosting.counting import chunks_for
from tests.boosting.growing import random_plot
from tests.boosting.test_drafts import led_alone

chunks = njit(lambda rows, threads: chunks_for(rows, threads))


@pytest.mark.parametrize("features", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("derived", [False, True])
def test_counters_of_chunks_are_those_of_all_rows(features, derived):
    """Triples of several chunks stay where they are until there are too many; of more features than 192 they
    are spread after each.
    """
    p = random_plot(3, 60_000, features, values=60, missing=0.05)
    nodes, ws = led_alone(p, 6, 50, threads=2, derived=derived)
    one, alone, _ = p.grow(6, 50, derived=derived)
    assert ws.started.tolist() == [1, 0]  # it did cut
    for name in ("left", "right", "total", "weight", "count", "gain", "feature", "bin"):
        assert np.array_equal(nodes[name], one[name]), name
    counters = p.arrays.bin_start[-1] * (2 if derived else 1)
    for slot in range(5):
        assert np.array_equal(ws.hists[slot, :counters], alone.hists[slot, :counters])


def test_few_rows_are_not_cut_and_many_into_some_chunks_for_each_thread():
    assert [chunks(n, 2) for n in (0, 1023, 1024, 2048, 8191)] == [1, 1, 1, 2, 2]
    assert chunks(8192, 2) == chunks(10**6, 2) == 8
    assert chunks(3 * 1024, 16) == 3
    assert chunks(10**6, 16) == 64
