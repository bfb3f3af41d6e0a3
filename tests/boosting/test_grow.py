"""Whole trees against the naive best-first tree, and one thread against several."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.grow import grow
from mcrank.boosting.leaves import tree_arrays
from mcrank.boosting.tickets import new_board
from mcrank.boosting.workspace import Scratch, Workspace
from tests.boosting.growing import CASES, NONE, plot, random_plot, rows_of, rows_under
from tests.reference import grow as naive


def left_bins(node):
    """The set of bins that go left, of the first 256."""
    bits = node["left_bins"].astype("<u8").view(np.uint8)
    return set(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())


def check_nodes(nodes, wanted, ws):
    """Same nodes, in the same order, with the same rows, splits and gains."""
    assert len(nodes) == len(wanted)
    for at, (node, twin) in enumerate(zip(nodes, wanted, strict=True)):
        assert (node["left"], node["right"]) == (twin.left, twin.right)
        assert rows_under(nodes, ws, at) == sorted(twin.rows)
        assert node["count"] == len(twin.rows)
        if twin.left >= 0:
            split = twin.split
            assert (node["feature"], node["bin"]) == (split.feature, split.bin)
            assert bool(node["missing_left"]) == split.missing_left
            assert left_bins(node) == {b for b in split.left_bins if b < 256}  # what a record has of them
            assert node["gain"] == split.gain


@settings(max_examples=120, deadline=None)
@given(CASES, st.integers(2, 12), st.integers(1, 6), st.sampled_from([None, None, 2]))
def test_trees_equal_the_naive_best_first_tree(case, num_leaves, min_rows, grain):
    p = random_plot(*case, grain=grain)
    nodes, ws, _ = p.grow(num_leaves, min_rows)
    check_nodes(nodes, naive.grow(naive.features_of(p.binned), p.q, num_leaves, min_rows), ws)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 8), st.integers(1, 4))
def test_trees_with_a_second_lane(case, num_leaves, min_rows):
    p = random_plot(*case, lane=True)
    nodes, ws, _ = p.grow(num_leaves, min_rows)
    wanted = naive.grow(naive.features_of(p.binned), p.q, num_leaves, min_rows, lane=p.lane)
    check_nodes(nodes, wanted, ws)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 8), st.integers(1, 4))
def test_trees_by_the_newton_gain(case, num_leaves, min_rows):
    p = random_plot(*case)
    nodes, ws, _ = p.grow(num_leaves, min_rows, derived=True)
    q, lane = p.derived()
    wanted = naive.grow(naive.features_of(p.binned), q, num_leaves, min_rows, lane=lane)
    check_nodes(nodes, wanted, ws)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 8), st.integers(1, 4), st.booleans())
def test_trees_with_a_rounded_lane(case, num_leaves, min_rows, many):
    p = random_plot(*case, lane=True)
    p.rounded = True
    nodes, ws, rules = p.grow(num_leaves, min_rows, many=many)
    assert rules.packing.lane_drop > 0
    q, lane = p.derived()
    wanted = naive.grow(naive.features_of(p.binned), q, num_leaves, min_rows, lane=lane)
    check_nodes(nodes, wanted, ws)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 8), st.sampled_from(["plain", "lane", "derived"]), st.booleans())
def test_counts_in_a_lane_of_their_own_change_nothing(case, num_leaves, kind, wide):
    p = random_plot(*case, lane=kind == "lane")
    if wide:  # one feature of 300 distinct values makes all of them wide
        X = np.column_stack([np.resize(p.X, (300, p.X.shape[1])), np.arange(300) * 7 % 300])
        p = plot(X, np.resize(p.q, 300), np.resize(p.lane, 300) if kind == "lane" else None, max_bins=400)
    one, few, _ = p.grow(num_leaves, 2, derived=kind == "derived")
    other, many, rules = p.grow(num_leaves, 2, derived=kind == "derived", many=True)
    assert rules.packing.count_bits == 0
    assert len(one) == len(other)
    for name in ("total", "weight", "count", "gain", "feature", "left", "right"):
        assert np.array_equal(one[name], other[name]), name
    for leaf in np.flatnonzero(one["left"] < 0):
        assert rows_under(one, few, leaf) == rows_under(other, many, leaf)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 8), st.integers(1, 4))
def test_trees_on_some_rows_and_features(case, num_leaves, min_rows):
    p = random_plot(*case)
    stream = np.random.default_rng(case[0])
    rows = np.flatnonzero(stream.random(p.rows) < 0.7).astype(np.int64)
    features = np.flatnonzero(stream.random(p.X.shape[1]) < 0.6)
    if len(rows):
        nodes, ws, _ = p.grow(num_leaves, min_rows, rows=rows, features=features)
        twin = naive.features_of(p.binned)
        wanted = naive.grow(twin, p.q, num_leaves, min_rows, rows=rows.tolist(), allowed=features.tolist())
        check_nodes(nodes, wanted, ws)


def same_trees(
    p, num_leaves, min_rows, *, rows=NONE, features=None, derived=False, many=False, ready=False, n_jobs=3,
    general=False,
):  # fmt: skip
    rules = p.rules(num_leaves, min_rows, derived, many)
    spaces = [Workspace.allocate(p.arrays, p.rows, rules, threads) for threads in (1, n_jobs)]
    if ready:
        root, made, _ = p.grow(2, p.rows, derived=derived, many=many)
        assert len(root) == 1
        for ws in spaces:
            ws.hists[0] = made.hists[0]
    n = p.grow_in(spaces[0], rules, p.input(rows, features, ready))
    tree, board = p.input(rows, features, ready, n_jobs), new_board()
    bins, tree = (p.arrays, tree) if general else p.simplest(tree)

    def work(threads):
        return grow(bins, rules, tree, spaces[1], Scratch.allocate(p.arrays, rules.packing), board, threads)

    helpers = [Thread(target=work, args=[0]) for _ in range(n_jobs - 1)]
    for helper in helpers:
        helper.start()
    assert work(n_jobs) == n
    for helper in helpers:
        helper.join()
    one, others = (ws.nodes[:n] for ws in spaces)
    for name in ("left", "right", "total", "weight", "count", "gain"):
        assert np.array_equal(one[name], others[name]), name
    inner = one["left"] >= 0
    for name in ("feature", "bin", "missing_left", "left_bins"):
        assert np.array_equal(one[name][inner], others[name][inner]), name
    for leaf in np.flatnonzero(~inner):
        assert np.array_equal(rows_of(spaces[0], leaf), rows_of(spaces[1], leaf))
    return n


@pytest.mark.parametrize("features", [1, 16, 17, 40])
def test_shared_growth_gives_the_same_tree(features):
    plain = random_plot(features, 800, features, missing=0.1)
    assert same_trees(plain, 16, 5) == (31 if features > 1 else 13)  # one feature has seven bins
    assert same_trees(plain, 16, 5, general=True) == (31 if features > 1 else 13)
    same_trees(plain, 16, 5, ready=True)
    same_trees(plain, 16, 5, derived=True)
    same_trees(random_plot(features, 800, features, lane=True), 16, 5)
    same_trees(random_plot(features, 800, features, values=2, grain=1), 16, 1, n_jobs=2)
    some = np.arange(0, 800, 3)
    same_trees(plain, 16, 5, rows=some, features=np.arange(0, features, 5))


@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize("features", [1, 6, 35])
def test_large_nodes_are_cut_into_chunks_of_rows(features, n_jobs):
    """Rows enough for several chunks, in partitions and in histograms."""
    plain = random_plot(features, 70_000, features, values=90, missing=0.05)
    for ready in (False, True):
        assert same_trees(plain, 8, 50, ready=ready, n_jobs=n_jobs) == 15
        same_trees(plain, 8, 50, ready=ready, derived=True, n_jobs=n_jobs)
    same_trees(plain, 6, 50, rows=np.flatnonzero(np.arange(70_000) % 7), many=True, n_jobs=n_jobs)
    weighted = random_plot(features + 1, 70_000, features, values=90, lane=True)
    same_trees(weighted, 6, 50, n_jobs=n_jobs)
    same_trees(weighted, 6, 50, many=True, n_jobs=n_jobs)
    weighted.rounded = True
    same_trees(weighted, 6, 50, n_jobs=n_jobs)


def test_large_nodes_of_wide_bins():
    stream = np.random.default_rng(2)
    p = plot(stream.normal(size=(40_000, 3)), stream.integers(-999, 999, 40_000), max_bins=500)
    assert p.binned.bins.wide
    same_trees(p, 6, 50, n_jobs=4)


def test_nodes_that_lack_a_feature_with_many_bins():
    """All values of a feature missing in a node: it has no bin there to cut after."""
    stream = np.random.default_rng(3)
    X = stream.normal(size=(600, 3)).astype(np.float32)
    X[X[:, 0] > 0, 1:] = np.nan
    p = plot(X, 4_000_000 * (X[:, 0] > 0) + stream.integers(-(10**6), 10**6, 600), max_bins=2000)
    assert p.binned.bins.wide
    for kind in (False, True):
        nodes, ws, _ = p.grow(12, 2, derived=kind)
        q, lane = p.derived() if kind else (p.q, None)
        check_nodes(nodes, naive.grow(naive.features_of(p.binned), q, 12, 2, lane=lane), ws)
        children = nodes["count"][1:]
        assert len(nodes) == 23
        assert (children >= 2).all()


def test_shared_growth_on_wide_bins():
    stream = np.random.default_rng(1)
    p = plot(stream.normal(size=(1000, 5)), stream.integers(-999, 999, 1000), max_bins=2000)
    assert p.binned.bins.wide
    same_trees(p, 12, 5)


def test_shared_growth_without_a_split():
    same_trees(random_plot(3, 30, 20, values=1), 8, 1, ready=True)
    same_trees(random_plot(3, 30, 20), 8, 16)


def test_a_root_histogram_made_before_gives_the_same_tree():
    p = random_plot(2, 500, 19, missing=0.2)
    rules = p.rules(12, 4)
    nodes, made, _ = p.grow(12, 4)
    ws = Workspace.allocate(p.arrays, p.rows, rules)
    ws.hists[0] = p.grow(2, p.rows)[1].hists[0]
    n = p.grow_in(ws, rules, p.input(ready=True))
    assert np.array_equal(ws.nodes[:n], nodes)
    for leaf in np.flatnonzero(nodes["left"] < 0):
        assert rows_under(nodes, ws, leaf) == rows_under(nodes, made, leaf)


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 10))
def test_tree_arrays_send_raw_rows_where_bins_go(case, num_leaves):
    p = random_plot(*case)
    nodes, ws, _ = p.grow(num_leaves)
    tree = tree_arrays(nodes, p.arrays, p.binned.bins.edges, 0.5)
    for leaf in np.flatnonzero(nodes["left"] < 0):
        for row in rows_of(ws, leaf):
            at = 0
            while tree["feature"][at] >= 0:
                x = p.X[row, tree["feature"][at]]
                left = tree["missing_left"][at] == 1 if np.isnan(x) else x <= tree["threshold"][at]
                at = tree["left" if left else "right"][at]
            assert at == leaf
    inner = nodes["left"] >= 0
    assert np.array_equal(tree["gain"], np.where(inner, nodes["gain"] / 2, 0))
    assert np.array_equal(tree["rows"], nodes["count"])
    assert (tree["feature"][~inner] == -1).all()


def test_a_cut_between_known_and_missing_sends_every_number_left():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    p = plot(X, [5, 5, -5, -5])
    nodes, _, _ = p.grow(2)
    tree = tree_arrays(nodes, p.arrays, p.binned.bins.edges, 1.0)
    assert tree["threshold"][0] == np.finfo(np.float32).max
    assert tree["missing_left"][0] == 0
