"""Partitions are stable and send every row to the side its bin says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from mcrank.boosting.partition import MOST_NUMBERED, UNLISTED, fill_entries
from mcrank.boosting.partition import list_rows as list_step
from mcrank.boosting.partition import renumber as renumber_step
from tests.boosting.growing import CASES, NONE, plot, random_plot
from tests.reference.grow import features_of
from tests.reference.split import sides

list_rows, renumber = njit(list_step), njit(renumber_step)


def check_tree(p, nodes, ws, chosen):
    """Every node's rows are on the side its bins say, in order; leaves share nothing and miss nobody."""
    features = features_of(p.binned)
    rows_of = {0: list(chosen)}
    taken = set()
    for i, node in enumerate(nodes):
        rows = rows_of[i]
        assert node["count"] == len(rows)
        if node["left"] >= 0:
            parts = sides(features[node["feature"]], rows, int(node["bin"]), bool(node["missing_left"]))
            rows_of[int(node["left"])], rows_of[int(node["right"])] = parts
            continue
        taken.update(rows)
        assert ws.rows.of(i).tolist() == rows  # stable all the way down: ascending rows
        begin, end, _ = ws.rows.places[i]
        if begin != UNLISTED:
            assert np.array_equal(p.q[rows], ws.rows.entries[begin:end].astype(np.int32))
    assert len(taken) == len(rows_of[0])


@settings(max_examples=80, deadline=None)
@given(CASES, st.integers(2, 9), st.booleans(), st.booleans())
def test_partitions_keep_order_and_follow_bins(case, num_leaves, some, listed):
    p = random_plot(*case)
    rows = np.flatnonzero(np.random.default_rng(case[0]).random(p.rows) < 0.6).astype(np.int64)
    chosen = rows if some and len(rows) else NONE
    nodes, ws, _ = p.grow(num_leaves, rows=chosen, listed=listed)
    check_tree(p, nodes, ws, chosen.tolist() or range(p.rows))


@pytest.mark.parametrize("num_leaves", [40, 255, 256])
@pytest.mark.parametrize("some", [False, True])
def test_small_nodes_are_listed(num_leaves, some):
    """Numbers for large nodes, lists for small ones, and lists alone grow the same tree."""
    p = random_plot(5, 1500, 9, values=30, missing=0.1)
    chosen = np.flatnonzero(np.arange(p.rows) % 3).astype(np.int64) if some else NONE
    nodes, ws, _ = p.grow(num_leaves, rows=chosen)
    check_tree(p, nodes, ws, chosen.tolist() or range(p.rows))
    listed = [ws.rows.places[i, 0] != UNLISTED for i in np.flatnonzero(nodes["left"] < 0)]
    assert any(listed)
    assert all(listed) == (num_leaves > MOST_NUMBERED)
    assert np.array_equal(nodes, p.grow(num_leaves, rows=chosen, listed=True)[0])


def test_sets_of_bins_with_gaps_are_parted_by_number():
    stream = np.random.default_rng(2)
    column = stream.integers(0, 256, 999).astype(np.uint8)
    for table in (stream.random(256) < 0.5, np.arange(256) < 9, np.arange(256) == 255, np.zeros(256)):
        numbers = stream.integers(0, 4, 999).astype(np.uint8)
        wanted = np.where((numbers == 2) & (table[column] == 0), 7, numbers)
        wanted[:100], wanted[900:] = numbers[:100], numbers[900:]
        renumber(column, table.astype(np.uint8), numbers, (100, 900), (2, 7))
        assert np.array_equal(numbers, wanted)


@given(st.lists(st.integers(0, 3), max_size=400), st.integers(64, 130))
def test_rows_with_a_number_are_listed_in_parts(numbers, most):
    numbers = np.array(numbers, dtype=np.uint8)
    q = np.arange(len(numbers), dtype=np.int32) - 30
    at, found = 0, []
    while at < len(numbers):
        entries = np.zeros(most, dtype=np.int64)
        at, n = list_rows(numbers, 1, q, (at, len(numbers)), most, entries)
        assert n <= most
        found += entries[:n].tolist()
    assert [e >> 32 for e in found] == np.flatnonzero(numbers == 1).tolist()
    assert np.array_equal(np.array(found, dtype=np.int64).astype(np.int32), q[numbers == 1])


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
