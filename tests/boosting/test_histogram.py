"""Histograms against plain sums, in every layout: 8-bit blocks and their tails, 16-bit, one lane and two."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.boosting.histogram import LANES_AT_ONCE, pack_root, root_counts, root_sums
from mcrank.losses.quantize import LANE_BITS, count_bits, gradient_bits
from tests.boosting.growing import plot, random_plot
from tests.reference import histogram as naive


def check(hist, p, rules, rows, lane=None):
    """Compare counters of all features, one after the other as the engine lays them out, with plain sums."""
    columns = p.binned.wide_columns if p.binned.bins.wide else p.binned.columns
    width = np.diff(p.grounds.bin_start)
    parts = [
        naive.packed(columns[f], rows, p.q, int(width[f]), rules.count_bits, lane)
        for f in range(len(columns))
    ]
    wanted = np.concatenate(parts)
    assert np.array_equal(hist[: len(wanted)], wanted)  # what follows is padding


@pytest.mark.parametrize("features", range(1, 41))
@pytest.mark.parametrize("lanes", [1, 2])
def test_root_histograms_of_any_number_of_features(features, lanes):
    p = random_plot(features, 70, features, missing=0.1, lane=lanes == 2)
    _, ws, rules = p.grow(2, min_rows=70)
    lane = p.lane if lanes == 2 else None
    check(ws.hists[0], p, rules, range(70), lane)


@pytest.mark.parametrize("features", [3, 8, 11, 16, 20, 27])
@pytest.mark.parametrize("kind", ["plain", "lane", "derived"])
def test_histograms_of_children(features, kind):
    p = random_plot(features, 300, features, missing=0.1, lane=kind == "lane")
    lane = p.lane if kind == "lane" else None
    if kind == "derived":
        lane = naive.derived_lane(p.q, gradient_bits(300))
    nodes, ws, rules = p.grow(8, min_rows=3, derived=kind == "derived")
    made = 0
    for at in range(len(nodes)):
        # A histogram is kept in its slot until the node is split and its larger child takes it over.
        if nodes[at]["left"] < 0 and nodes[at]["gain"] > 0:
            rows = ws.entries[nodes[at]["begin"] : nodes[at]["end"]] >> 32
            check(ws.hists[nodes[at]["slot"]], p, rules, rows, lane)
            made += 1
    assert made > 1


def test_wide_histograms():
    for lane in (False, True):
        stream = np.random.default_rng(4)
        X = stream.normal(size=(900, 3)).astype(np.float32)
        X[:, 1] = np.round(X[:, 1])
        X[::5, 2] = np.nan
        q = stream.integers(-(1 << 30), 1 << 30, 900)
        p = plot(X, q, stream.integers(0, 1 << 30, 900) if lane else None, max_bins=5000)
        assert p.binned.bins.wide
        nodes, ws, rules = p.grow(5, min_rows=20)
        leaf = int(np.flatnonzero((nodes["left"] < 0) & (nodes["gain"] > 0))[0])
        rows = ws.entries[nodes[leaf]["begin"] : nodes[leaf]["end"]] >> 32
        check(ws.hists[nodes[leaf]["slot"]], p, rules, rows, p.lane if lane else None)


def test_histograms_of_some_rows():
    p = random_plot(1, 200, 9)
    rows = np.sort(np.random.default_rng(0).permutation(200)[:77]).astype(np.int64)
    _, ws, rules = p.grow(2, min_rows=200, rows=rows)
    check(ws.hists[0], p, rules, rows)


@pytest.mark.parametrize(("features", "outputs"), [(1, 1), (3, 2), (7, 4), (20, 9)])
def test_root_sums_and_packing(features, outputs):
    rows = 5000  # more than one chunk
    stream = np.random.default_rng(features)
    p = plot(stream.integers(0, 40, (rows, features)), np.zeros(rows))
    q = stream.integers(-(1 << 20), 1 << 20, (outputs, rows)).astype(np.int32)
    columns = p.binned.columns
    groups = range(0, outputs, LANES_AT_ONCE)
    sums = np.full((len(groups), features, 4 * 256), 99, dtype=np.int64)
    middle = features // 2
    for group, output in enumerate(groups):
        for first, last in ((0, middle), (middle, features)):
            root_sums(columns, first, last, q, output, min(LANES_AT_ONCE, outputs - output), sums[group])
    counts = np.empty((features, 256), dtype=np.int64)
    root_counts(columns, counts)
    bits = count_bits(rows)
    # Output -1 is the one that balances the others.
    for k, wanted in [*enumerate(q), (-1, -q.sum(axis=0, dtype=np.int64))]:
        hist = np.empty(256 * features, dtype=np.int64)
        pack_root(sums, counts, k, bits, hist)
        for f in range(features):
            total = np.zeros(256, dtype=np.int64)
            np.add.at(total, columns[f], wanted.astype(np.int64))
            packed = (total << bits) + np.bincount(columns[f], minlength=256)
            assert np.array_equal(hist[256 * f : 256 * (f + 1)], packed)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("rows", [2, 3, 65_535, 65_536, 70_001])
def test_the_largest_sums_fit(rows, sign):
    """Every row in one bin with the largest gradient, and one more per class from balancing."""
    one = sign * ((1 << gradient_bits(rows)) + 50)
    X = np.zeros((rows, 2), dtype=np.float32)
    p = plot(X, np.full(rows, one), np.full(rows, 1 << LANE_BITS))
    nodes, _, rules = p.grow(2)
    assert naive.unpack(nodes[0]["total"], rules.count_bits) == (rows * one, rows)
    assert nodes[0]["weight"] == rows << LANE_BITS
    assert nodes[0]["left"] == -1


@pytest.mark.parametrize("rows", [1, 100, 10**5, 10**6, 10**7, 10**8])
def test_bits_leave_room_for_sum_and_count(rows):
    assert rows < 1 << count_bits(rows)
    largest = rows * ((1 << gradient_bits(rows)) + 50)
    assert (largest << count_bits(rows)) + rows < 1 << 63
    assert rows << LANE_BITS < 1 << 63
