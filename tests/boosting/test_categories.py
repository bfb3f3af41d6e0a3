"""Splits on categories: the naive twin, bins of many categories, the same tree wherever rows are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import Dataset
from mcrank.boosting.binning import bin_dataset, find_bins
from mcrank.boosting.limits import LimitOptions, Limits
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import BinnedArrays, Scratch, Workspace
from mcrank.losses.quantize import Gradients
from tests.boosting.growing import Plot, rows_under
from tests.reference.categories import best_set

NONE = np.empty(0, dtype=np.int64)


def ground(seed, rows, codes, share_missing=0.0, features=2, lane=False, max_bins=256):
    """Features of categories with gradients that hang on them, and a number as the last feature."""
    stream = np.random.default_rng(seed)
    X = stream.integers(0, codes, (rows, features)).astype(np.float32)
    X[stream.random(X.shape) < share_missing] = np.nan
    X[:, -1] = stream.integers(0, 4, rows)
    effect = stream.integers(-(1 << 20), 1 << 20, codes)
    q = effect[np.nan_to_num(X[:, 0]).astype(int)] + stream.integers(-(1 << 20), 1 << 20, rows)
    weights = stream.integers(1, 1 << 20, rows) if lane else NONE
    data = Dataset(X, np.zeros(rows), np.zeros(rows))
    bins = find_bins(data.X, max_bins, categories=dict.fromkeys(range(features - 1), codes))
    binned = bin_dataset(data, bins)
    return Plot(data.X, binned, BinnedArrays.of(binned), q.astype(np.int32), weights.astype(np.int64))


def grown(p, leaves, options, min_rows=1, threads=1):
    rules = p.rules(leaves, min_rows)
    ws = Workspace.allocate(p.arrays, p.rows, rules)
    tree = p.input(threads=threads)
    gradients = Gradients(p.q[None])
    shape = (2 * leaves - 1, p.X.shape[1])
    tree = tree._replace(limits=Limits.of(options, rules.packing, gradients, tree.features, shape, (0, 1, 1)))
    from mcrank.boosting.grow import grow

    n = grow(p.arrays, rules, tree, ws, Scratch.allocate(p.arrays, rules.packing), new_board(), 1)
    return ws.nodes[:n], ws


def bins_left(node):
    return {b for b in range(256) if int(node["left_bins"][b >> 6]) >> (b & 63) & 1}


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(2, 80), st.integers(1, 12), st.sampled_from([0.0, 0.2]), st.booleans(),
    st.integers(1, 3), st.sampled_from([(0.0, 0.0, 1, 32), (1.5, 3.0, 3, 2), (0.5, 1.0, 6, 4)]),
)  # fmt: skip
def test_every_split_is_the_naive_twins(seed, rows, codes, missing, lane, min_rows, smoothing):
    smooth, l2, group, most = smoothing
    p = ground(seed, rows, codes, missing, lane=lane)
    options = LimitOptions(cat_smooth=smooth, cat_l2=l2, min_data_per_group=group, max_cat_threshold=most)
    nodes, ws = grown(p, 4, options, min_rows)
    unit = p.packing().mass_unit(1.0)
    rules = {
        "cat_smooth": smooth, "cat_l2": l2, "min_data_per_group": group, "max_cat_threshold": most,
        "max_cat_to_onehot": 4, "min_rows": min_rows,
    }  # fmt: skip
    assert unit == 1.0
    for at, node in enumerate(nodes):
        if node["left"] < 0 or node["feature"] != 0:
            continue
        inside = rows_under(nodes, ws, at)
        column = p.binned.columns[0].astype(int)
        wanted = best_set(
            column,
            inside,
            p.q,
            p.lane if lane else None,
            p.binned.bins.missing[0],
            p.binned.bins.counts[0],
            rules,
        )
        assert wanted is not None
        assert node["terms"] == pytest.approx(wanted[0], rel=1e-12)
        known = {b for b in bins_left(node) if b > 0 or not p.binned.bins.missing[0]}
        assert (known, bool(node["missing_left"])) == (wanted[1], wanted[2])
        left = [r for r in inside if column[r] in bins_left(node)]
        assert sorted(left) == rows_under(nodes, ws, node["left"])


def test_a_set_of_categories_beats_the_order_of_their_codes():
    """Three of six categories are alike: one split tells them apart, where codes would need many."""
    codes = np.tile(np.arange(6), 50)
    X = np.column_stack([codes, codes]).astype(np.float32)
    data = Dataset(X, np.zeros(300), np.zeros(300))
    binned = bin_dataset(data, find_bins(data.X, 256, categories={1: 6}))
    p = Plot(data.X, binned, BinnedArrays.of(binned), np.where(codes % 2, 1000, -1000).astype(np.int32), NONE)
    nodes, _ = grown(p, 2, LimitOptions(cat_l2=0.0, min_data_per_group=1))
    assert nodes[0]["feature"] == 1
    assert bins_left(nodes[0]) in ({0, 2, 4}, {1, 3, 5})


@pytest.mark.parametrize(
    ("codes", "max_bins", "counts"), [(300, 256, 256), (300, 20, 20), (10, 256, 10), (1, 256, 1)]
)
def test_rare_categories_share_a_bin(codes, max_bins, counts):
    stream = np.random.default_rng(1)
    column = np.concatenate([np.arange(codes), stream.integers(0, max(codes // 2, 1), 2000)]).astype(
        np.float32
    )
    bins = find_bins(column[:, None], max_bins, categories={0: codes})
    assert bins.counts.tolist() == [counts]
    own = bins.bins_of_codes(0)
    if codes > max_bins:
        frequency = np.bincount(column.astype(int))
        shared = np.flatnonzero(own == counts - 1)
        assert len(shared) == codes - counts + 1
        assert frequency[shared].max() <= frequency[np.setdiff1d(np.arange(codes), shared)].min()
    alone = own[own < counts - 1]
    assert (np.diff(alone.astype(int)) > 0).all()  # in the order of codes


def test_lines_and_columns_of_categories_agree():
    stream = np.random.default_rng(2)
    X = stream.integers(0, 9, (100, 20)).astype(np.float32)
    X[stream.random(X.shape) < 0.1] = np.nan
    data = Dataset(X, np.zeros(100), np.zeros(100))
    binned = bin_dataset(data, find_bins(data.X, 256, categories={3: 9, 18: 9}))
    rows = binned.lines.view(np.uint8).reshape(100, 32)
    for f in (3, 18):
        assert np.array_equal(rows[:, f], binned.columns[f])
        assert np.array_equal(binned.columns[f] == 0, np.isnan(X[:, f]))
        assert np.array_equal(binned.columns[f][~np.isnan(X[:, f])], X[:, f][~np.isnan(X[:, f])] + 1)
