"""Partitions are stable and send every row to the side its bin says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.partition import fill_entries
from tests.boosting.growing import CASES, NONE, plot, random_plot
from tests.reference.grow import features_of
from tests.reference.split import sides


def check_tree(p, nodes, ws, chosen):
    """Every node's rows are on the side its bins say, in order; leaves share nothing and miss nobody."""
    features = features_of(p.binned)
    rows_of = {0: list(chosen)}
    taken = []
    for i, node in enumerate(nodes):
        rows = rows_of[i]
        assert node["count"] == len(rows)
        if node["left"] >= 0:
            parts = sides(features[node["feature"]], rows, int(node["bin"]), bool(node["missing_left"]))
            rows_of[int(node["left"])], rows_of[int(node["right"])] = parts
            continue
        places = np.arange(*ws.places[i, :2])
        taken.extend(places)
        assert (ws.entries[places] >> 32).tolist() == rows  # stable all the way down: ascending rows
        assert np.array_equal(p.q[rows], ws.entries[places].astype(np.int32))
    assert len(set(taken)) == len(rows_of[0])


@settings(max_examples=80, deadline=None)
@given(CASES, st.integers(2, 9), st.booleans())
def test_partitions_keep_order_and_follow_bins(case, num_leaves, some):
    p = random_plot(*case)
    rows = np.flatnonzero(np.random.default_rng(case[0]).random(p.rows) < 0.6).astype(np.int64)
    chosen = rows if some and len(rows) else NONE
    nodes, ws, _ = p.grow(num_leaves, rows=chosen)
    check_tree(p, nodes, ws, chosen.tolist() or range(p.rows))


def test_wide_partitions():
    stream = np.random.default_rng(8)
    X = stream.normal(size=(700, 2)).astype(np.float32)
    X[::9, 0] = np.nan
    p = plot(X, stream.integers(-1000, 1000, 700), max_bins=1000)
    assert p.binned.bins.wide
    nodes, ws, _ = p.grow(20, 5)
    assert len(nodes) == 39
    check_tree(p, nodes, ws, range(p.rows))


@pytest.mark.parametrize("rows", [[], [0, 3, 4]])
def test_entries_hold_row_and_gradient(rows):
    q = np.array([-5, 2**30, -(2**31), 7, -1], dtype=np.int32)
    entries = np.zeros(len(rows) or 5, dtype=np.int64)
    fill_entries(q, np.array(rows, dtype=np.int64), 0, len(entries), entries)
    chosen = rows or range(5)
    assert (entries >> 32).tolist() == list(chosen)
    assert entries.astype(np.int32).tolist() == q[list(chosen)].tolist()
