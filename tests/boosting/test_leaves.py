"""Leaf values by every rule, and scores moved by a tree, against plain sums over rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.boosting.leaves import leaf_sums, leaf_values, move_rows, tree_arrays, walk_rows
from mcrank.boosting.partition import LEFT_OUT, UNLISTED, LeafRows
from mcrank.boosting.routing import TreeNodes
from mcrank.losses.base import LeafRule
from mcrank.losses.multiclass import MulticlassLoss
from mcrank.losses.ordinal import OrdinalLoss
from mcrank.losses.regression import RegressionLoss
from tests.boosting.growing import CASES, NONE, plot, random_plot, rows_of
from tests.reference import losses as naive


def run(task, items):
    for item in items:
        task(item)


def grown(seed, loss, scores, rows=300, split="mse"):
    """Gradients of ``loss`` and a tree grown on those of its first output."""
    stream = np.random.default_rng(seed)
    gradients = loss.allocate(split)
    loss.fill(scores, gradients, run)
    X = stream.integers(0, 7, (rows, 4))
    lane = gradients.weights_of(0) if len(gradients.weights) else None
    p = plot(X, gradients.q[0], lane)
    nodes, ws, _ = p.grow(8, 5)
    return gradients, nodes, ws


def walked(tree, values):
    return TreeNodes.of({**tree, "value": values})


def leaves_of(nodes, ws):
    for i in np.flatnonzero(nodes["left"] < 0):
        yield i, rows_of(ws, i)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [MulticlassLoss, OrdinalLoss])
def test_newton_leaves(kind, weighted):
    stream = np.random.default_rng(1)
    classes = stream.integers(0, 4, 300).astype(np.int32)
    weight = stream.uniform(0.1, 5, 300) if weighted else None
    loss = kind(classes, 4, weight)
    scores = stream.normal(size=(loss.n_outputs, 300))
    gradients, nodes, ws = grown(2, loss, scores)
    values = leaf_values(loss, gradients, 0, scores, nodes, ws.rows, 0.1, 1e4)
    g, h = (naive.multiclass if kind is MulticlassLoss else naive.ordinal)(scores, classes)
    w = np.ones(300) if weight is None else weight
    factor = 3 / 4 if kind is MulticlassLoss else 1.0
    for i, rows in leaves_of(nodes, ws):
        wanted = 0.1 * factor * (w[rows] * g[0, rows]).sum() / (w[rows] * h[0, rows]).sum()
        assert values[i] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert (values[nodes["left"] >= 0] == 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["l2", "lad"])
def test_regression_leaves(kind, weighted):
    stream = np.random.default_rng(1)
    target = stream.normal(size=301)
    weight = stream.integers(1, 5, 301).astype(float) if weighted else None
    loss = RegressionLoss(target, kind, weight)
    scores = stream.normal(size=(1, 301))
    gradients, nodes, ws = grown(2, loss, scores, rows=301)
    values = leaf_values(loss, gradients, 0, scores, nodes, ws.rows, 0.5, 1e4)
    w = np.ones(301) if weight is None else weight
    for i, rows in leaves_of(nodes, ws):
        residual = target[rows] - scores[0, rows]
        if kind == "l2":
            wanted = np.average(residual, weights=w[rows])
        else:
            wanted = naive.weighted_median(residual, w[rows])
        assert values[i] == pytest.approx(wanted / 2, rel=1e-6, abs=1e-9)


def test_leaf_values_are_limited_before_shrinkage():
    classes = np.zeros(40, dtype=np.int32)
    classes[:20] = 1
    loss = OrdinalLoss(classes, 2)
    scores = np.where(classes == 1, -9.0, 9.0)[None, :]  # sure, and wrong
    gradients = loss.allocate("mse")
    loss.fill(scores, gradients, run)
    p = plot(classes[:, None], gradients.q[0])
    nodes, ws, _ = p.grow(2)
    values = leaf_values(loss, gradients, 0, scores, nodes, ws.rows, 0.5, 50.0)
    assert sorted(values.tolist()) == [-25.0, 0.0, 25.0]


def test_leaves_of_certain_rows_stay_finite():
    classes = np.repeat([0, 1], 20).astype(np.int32)
    loss = OrdinalLoss(classes, 2)
    scores = np.where(classes == 1, 800.0, -800.0)[None, :]  # sure, and right: p(1 - p) is 0
    gradients = loss.allocate("mse")
    loss.fill(scores, gradients, run)
    assert not gradients.q.any()
    nodes, ws, _ = plot(classes[:, None], gradients.q[0]).grow(2)
    values = leaf_values(loss, gradients, 0, scores, nodes, ws.rows, 1.0, 1e4)
    assert values.tolist() == [0.0]


def test_only_the_median_asks_for_residuals():
    loss = OrdinalLoss(np.array([0, 1], dtype=np.int32), 2)
    assert loss.rule is LeafRule.BERNOULLI
    with pytest.raises(TypeError, match="OrdinalLoss has no residuals"):
        loss.residuals(np.zeros((1, 2)), 0, np.arange(2))


@settings(max_examples=60, deadline=None)
@given(CASES, st.integers(2, 9))
def test_walking_raw_rows_moves_scores_as_partitions_do(case, num_leaves):
    p = random_plot(*case)
    stream = np.random.default_rng(case[0])
    nodes, ws, _ = p.grow(num_leaves)
    values = np.where(nodes["left"] < 0, stream.normal(size=len(nodes)), 0.0)
    by_partition = np.full(p.rows, 0.5)
    left = nodes["left"].astype(np.int64)
    move_rows(left, ws.rows, values, by_partition)
    for i, rows in leaves_of(nodes, ws):
        assert (by_partition[rows] == 0.5 + values[i]).all()
    tree = tree_arrays(nodes, p.arrays, p.binned.bins.edges, 1.0)

    def walk(rows):
        scores = np.full(p.rows, 0.5)
        walk_rows(p.X, rows, walked(tree, values), scores)
        return scores

    assert np.array_equal(walk(NONE), by_partition)
    some = np.flatnonzero(stream.random(p.rows) < 0.5).astype(np.int64)
    if len(some):
        moved = walk(some)
        assert np.array_equal(moved[some], by_partition[some])
        assert (np.delete(moved, some) == 0.5).all()


def test_a_value_equal_to_the_threshold_goes_left():
    """Between neighbouring floats lies no other: the edge is the lower one itself."""
    low = np.float32(1)
    X = np.repeat([low, np.nextafter(low, np.float32(2))], 3)[:, None]
    p = plot(X, [5, 5, 5, -5, -5, -5])
    nodes, ws, _ = p.grow(2)
    tree = tree_arrays(nodes, p.arrays, p.binned.bins.edges, 1.0)
    assert tree["threshold"][0] == low
    scores = np.zeros(6)
    walk_rows(p.X, NONE, walked(tree, np.array([0.0, 1.0, 2.0])), scores)
    assert scores.tolist() == [1, 1, 1, 2, 2, 2]
    assert np.sort(rows_of(ws, 1)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("numbered", [0, 3, 6])
def test_sums_of_leaves_whose_rows_are_listed_or_numbered(numbered):
    """More rows than are gone through at a time; some take no part."""
    rows, nodes, stream = 70_000, 13, np.random.default_rng(numbered)
    leaves = np.arange(0, nodes, 2)
    leaf = stream.choice(np.r_[leaves, -1], rows)
    numbers = np.full(rows if numbered else 0, LEFT_OUT, dtype=np.uint8)
    places, entries, taken = np.zeros((nodes, 3), dtype=np.int64), [], 0
    for number, node in enumerate(leaves.tolist()):
        own = np.flatnonzero(leaf == node)
        if number < numbered:
            numbers[own] = number
            places[node] = UNLISTED, 0, number
        else:
            entries.append(own << 32)
            places[node] = taken, taken + len(own), 0
            taken += len(own)
    where = LeafRows(places, np.concatenate(entries), numbers, np.array([taken]))
    q = stream.integers(-(2**23), 2**23, rows).astype(np.int32)
    steps = stream.integers(0, 2**20, rows)
    found = np.zeros((nodes, 2), dtype=np.int64)
    leaf_sums(leaves, where, (int(LeafRule.CURVATURE), 0, 0), q, 0.25 * steps, 0.25, found)
    wanted = [[q[leaf == n].sum(dtype=np.int64), steps[leaf == n].sum()] for n in range(nodes)]
    assert found.tolist() == np.array(wanted).tolist()
