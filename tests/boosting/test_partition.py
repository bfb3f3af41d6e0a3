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


def check_tree(p, nodes, entries):
    """Every inner node's rows are its children's, in order, each on the side its bin says."""
    features = features_of(p.binned)
    assert np.array_equal(p.q[entries >> 32], entries.astype(np.int32))
    for node in nodes[nodes["left"] >= 0]:
        left, right = nodes[node["left"]], nodes[node["right"]]
        assert (left["begin"], left["end"], right["end"]) == (node["begin"], right["begin"], node["end"])
        rows = np.sort(entries[node["begin"] : node["end"]] >> 32).tolist()
        expected = sides(features[node["feature"]], rows, int(node["bin"]), bool(node["missing_left"]))
        for child, side in zip((left, right), expected, strict=True):
            assert np.sort(entries[child["begin"] : child["end"]] >> 32).tolist() == side
    for leaf in nodes[nodes["left"] < 0]:
        rows = entries[leaf["begin"] : leaf["end"]] >> 32
        assert (np.diff(rows) > 0).all()  # stable all the way down: ascending rows


@settings(max_examples=80, deadline=None)
@given(CASES, st.integers(2, 9), st.booleans())
def test_partitions_keep_order_and_follow_bins(case, num_leaves, some):
    p = random_plot(*case)
    rows = np.flatnonzero(np.random.default_rng(case[0]).random(p.rows) < 0.6).astype(np.int64)
    chosen = rows if some and len(rows) else NONE
    nodes, ws, _ = p.grow(num_leaves, rows=chosen)
    n = len(chosen) or p.rows
    assert sorted((ws.entries[:n] >> 32).tolist()) == (chosen.tolist() or list(range(p.rows)))
    check_tree(p, nodes, ws.entries[:n])


def test_wide_partitions():
    stream = np.random.default_rng(8)
    X = stream.normal(size=(700, 2)).astype(np.float32)
    X[::9, 0] = np.nan
    p = plot(X, stream.integers(-1000, 1000, 700), max_bins=1000)
    assert p.binned.bins.wide
    nodes, ws, _ = p.grow(20, 5)
    assert len(nodes) == 39
    check_tree(p, nodes, ws.entries)


@pytest.mark.parametrize("rows", [[], [0, 3, 4]])
def test_entries_hold_row_and_gradient(rows):
    q = np.array([-5, 2**30, -(2**31), 7, -1], dtype=np.int32)
    entries = np.zeros(len(rows) or 5, dtype=np.int64)
    fill_entries(q, np.array(rows, dtype=np.int64), entries)
    chosen = rows or range(5)
    assert (entries >> 32).tolist() == list(chosen)
    assert entries.astype(np.int32).tolist() == q[list(chosen)].tolist()
