"""Rounding of gradients: units, bits and lanes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mcrank.losses.quantize import (
    Gradients,
    round_gradients,
    round_lane,
    starts,
)

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


HALVES = st.lists(st.integers(-50, 50).map(lambda i: i / 8), min_size=1, max_size=50)


@given(VALUES | HALVES, st.sampled_from([1.0, 0.25, 3e-3]))
def test_rounding_to_a_unit(values, unit):
    g = np.array(values)
    q = np.empty(len(g), dtype=np.int32)
    round_gradients(g, unit, q)
    assert np.array_equal(q, np.rint(g / unit).astype(np.int32))
    lane = np.empty(len(g), dtype=np.int64)
    round_lane(g, unit, lane)
    assert np.array_equal(lane, q)


@given(st.integers(1, 200_000))
def test_tasks_cover_all_rows(rows):
    tasks = starts(rows)
    assert tasks[0] == 0
    assert tasks[-1] < rows
    assert rows - tasks[-1] <= tasks.step


def test_outputs_may_share_a_row():
    shared = Gradients(
        np.zeros((3, 2), dtype=np.int32), weights=np.array([[4, 5]]), curvature=np.ones((3, 2))
    )
    assert shared.weights_of(2).tolist() == [4, 5]
    shared.curvature[1] = 7
    assert shared.curvature_of(1).tolist() == [7, 7]
    plain = Gradients(np.zeros((3, 2), dtype=np.int32))
    assert plain.weights_of(1).shape == plain.curvature_of(1).shape == (0,)
