"""Histograms against plain sums, in every layout: 8-bit blocks and their tails, 16-bit, one lane and two."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.boosting.gathering import GATHERED
from mcrank.boosting.histogram import LINES, MANY
from mcrank.boosting.packing import Packing
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS
from tests.boosting.growing import plot, random_plot, rows_of
from tests.reference import histogram as naive


def check(hist, p, rules, rows, lane=None, q=None):
    """Compare counters of all features, one after the other as the engine lays them out, with plain sums."""
    columns = p.binned.wide_columns if p.binned.bins.wide else p.binned.columns
    width = np.diff(p.arrays.bin_start)
    parts = [
        naive.packed(columns[f], rows, p.q if q is None else q, int(width[f]), rules.packing.count_bits, lane)
        for f in range(len(columns))
    ]
    wanted = np.concatenate(parts)
    assert np.array_equal(hist[: len(wanted)], wanted)  # what follows is padding


@pytest.mark.parametrize("features", range(1, 66))
@pytest.mark.parametrize("lanes", [1, 2])
def test_root_histograms_of_any_number_of_features(features, lanes):
    p = random_plot(features, 70, features, missing=0.1, lane=lanes == 2)
    _, ws, rules = p.grow(2, min_rows=70)
    lane = p.lane if lanes == 2 else None
    check(ws.hists[0], p, rules, range(70), lane)


@pytest.mark.parametrize("features", [3, 8, 11, 16, 20, 25, 26, 27, 40, 41, 50, 59, 115])
@pytest.mark.parametrize("kind", ["plain", "lane", "derived"])
def test_histograms_of_children(features, kind):
    p = random_plot(features, 300, features, missing=0.1, lane=kind == "lane")
    q, lane = p.derived() if kind == "derived" else (p.q, p.lane if kind == "lane" else None)
    nodes, ws, rules = p.grow(6, min_rows=3, derived=kind == "derived")
    made = 0
    for at in range(len(nodes)):
        # A histogram is kept in its slot until the node is split and its larger child takes it over.
        if nodes[at]["left"] < 0 and nodes[at]["gain"] > 0:
            rows = rows_of(ws, at)
            check(ws.hists[nodes[at]["slot"]], p, rules, rows, lane, q)
            made += 1
    assert made > 1


@pytest.mark.parametrize(
    "features", [67, 200, *(pytest.param(n, marks=pytest.mark.slow) for n in (61, 64, 136, 192, 195, 259))]
)
@pytest.mark.parametrize("kind", ["plain", "lane", "derived"])
def test_several_lines_and_more_rows_than_are_gathered_at_a_time(features, kind):
    """Lines of 64 features are counted three at a time, rows some at a time: the last of each are fewer."""
    assert LINES == 3
    rows = 2 * GATHERED + 77
    p = random_plot(features, rows, features, missing=0.1, lane=kind == "lane")
    q, lane = p.derived() if kind == "derived" else (p.q, p.lane if kind == "lane" else None)
    _, ws, rules = p.grow(2, min_rows=rows, derived=kind == "derived")
    check(ws.hists[0], p, rules, range(rows), lane, q)


@pytest.mark.parametrize("features", [3, 4, 7, 8, 11, 13, 20, 27, 60])
@pytest.mark.parametrize("kind", ["plain", "derived"])
@pytest.mark.parametrize("rows", [MANY - 1, MANY, MANY + 5])
def test_counters_side_by_side_of_many_rows(features, kind, rows):
    """From so many rows on the counters of eight features lie side by side until all rows are counted; most
    rows have the same bin of several features, as rows full of zeros do.
    """
    stream = np.random.default_rng(features)
    X = stream.normal(size=(rows, features)).round(1).astype(np.float32)
    X[stream.random(X.shape) < 0.6] = 0
    p = plot(X, stream.integers(-(1 << GRADIENT_BITS), 1 << GRADIENT_BITS, rows))
    q, lane = p.derived() if kind == "derived" else (p.q, None)
    _, ws, rules = p.grow(2, min_rows=rows, derived=kind == "derived")
    check(ws.hists[0], p, rules, range(rows), lane, q)


def test_wide_histograms():
    for kind in ("plain", "lane", "derived"):
        stream = np.random.default_rng(4)
        X = stream.normal(size=(900, 3)).astype(np.float32)
        X[:, 1] = np.round(X[:, 1])
        X[::5, 2] = np.nan
        q = stream.integers(-(1 << GRADIENT_BITS), 1 << GRADIENT_BITS, 900)
        p = plot(X, q, stream.integers(0, 1 << 30, 900) if kind == "lane" else None, max_bins=5000)
        assert p.binned.bins.wide
        nodes, ws, rules = p.grow(5, min_rows=20, derived=kind == "derived")
        leaf = int(np.flatnonzero((nodes["left"] < 0) & (nodes["gain"] > 0))[0])
        rows = rows_of(ws, leaf)
        q, lane = p.derived() if kind == "derived" else (p.q, p.lane if kind == "lane" else None)
        check(ws.hists[nodes[leaf]["slot"]], p, rules, rows, lane, q)


def test_histograms_of_some_rows():
    p = random_plot(1, 200, 9)
    rows = np.sort(np.random.default_rng(0).permutation(200)[:77]).astype(np.int64)
    _, ws, rules = p.grow(2, min_rows=200, rows=rows)
    check(ws.hists[0], p, rules, rows)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("rows", [2, 3, 65_535, 65_536, 70_001])
def test_the_largest_sums_fit(rows, sign):
    """Every row in one bin with the largest gradient, and one more per class from balancing."""
    one = sign * ((1 << GRADIENT_BITS) + 50)
    X = np.zeros((rows, 2), dtype=np.float32)
    p = plot(X, np.full(rows, one), np.full(rows, 1 << LANE_BITS))
    nodes, _, _ = p.grow(2)
    assert (nodes[0]["total"], nodes[0]["count"]) == (rows * one, rows)
    assert nodes[0]["weight"] == rows << LANE_BITS
    assert nodes[0]["left"] == -1


def test_triples_are_spread_before_they_overflow():
    """More rows than a triple counts, all in one bin, with the largest gradient or curvature."""
    rows = 20_001
    one = 1 << GRADIENT_BITS
    for q in (one + 50, -one - 50, one // 2, -one // 2):
        p = plot(np.zeros((rows, 18), dtype=np.float32), np.full(rows, q))
        nodes, ws, rules = p.grow(2, derived=True)
        assert rules.packing.chunk < rows // 2
        r, h = (int(v[0]) for v in p.derived())
        assert (nodes[0]["total"], nodes[0]["count"]) == (rows * r, rows)
        assert nodes[0]["weight"] == rows * h
        filled = ws.hists[0][: 18 * 512].reshape(18, 512)
        assert (filled[:, :2] == [(rows * r << rules.packing.count_bits) + rows, rows * h]).all()
        assert (filled[:, 2:] == 0).all()


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("rows", [1, 100, 10**5, 2**19 - 1, 2**19, 10**6, 2**24 - 1, 10**8, 2**31])
def test_bits_leave_room_for_sum_and_count(rows, derived):
    packing = Packing.of(rows, derived=derived)
    largest = rows * ((1 << (packing.bits or GRADIENT_BITS)) + 50)
    if packing.count_bits:
        assert rows < 1 << packing.count_bits
        assert (largest << packing.count_bits) + rows < 1 << 63
    else:
        assert largest < 1 << 63
        one = (1 << GRADIENT_BITS) + 50
        assert derived or (packing.chunk * one << packing.chunk_bits) + packing.chunk < 1 << 63
    assert rows << LANE_BITS < 1 << 63
