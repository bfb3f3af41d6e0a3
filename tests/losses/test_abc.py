"""Residuals, curvatures and losses of adaptive base classes against float64 NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.losses.abc import AdaptiveLoss, class_scores
from mcrank.losses.quantize import LANE_BITS
from tests.reference import abc as naive


def run(task, items):
    for item in items:
        task(item)


CASES = st.tuples(
    st.integers(0, 10**6), st.integers(1, 300), st.integers(3, 6), st.sampled_from([0.1, 2, 30])
)


def case(seed, rows, n_classes, spread, weighted):
    stream = np.random.default_rng(seed)
    classes = stream.integers(0, n_classes, rows).astype(np.int32)
    scores = spread * stream.normal(size=(n_classes, rows))
    scores -= scores.mean(axis=0)
    weight = stream.uniform(0, 1, rows) if weighted else None
    loss = AdaptiveLoss(classes, n_classes, weight)
    loss.base_class = int(stream.integers(n_classes))
    return loss, scores, np.ones(rows) if weight is None else weight


@settings(max_examples=60)
@given(CASES, st.booleans(), st.sampled_from(["mse", "newton"]))
def test_residuals(drawn, weighted, split):
    loss, scores, weight = case(*drawn, weighted)
    gradients = loss.allocate(split)
    loss.fill(scores, gradients, run)
    r, h = naive.residuals(scores, loss.classes, loss.base_class)
    assert np.abs(gradients.q * gradients.unit - weight * r).max() <= 0.51 * gradients.unit
    np.testing.assert_allclose(gradients.curvature, weight * h, rtol=1e-9, atol=1e-12)
    if split == "newton":
        lane = gradients.weights * gradients.lane_unit
        assert np.abs(lane - weight * h).max() <= 2.0**-LANE_BITS
    elif weighted:
        assert np.abs(gradients.weights[0] * gradients.lane_unit - weight).max() <= 2.0**-LANE_BITS
    else:
        assert len(gradients.weights) == 0


@settings(max_examples=60)
@given(CASES, st.booleans())
def test_losses_before_and_after_moves(drawn, weighted):
    loss, scores, weight = case(*drawn, weighted)
    expected = naive.losses(scores, loss.classes, weight)
    np.testing.assert_allclose(loss.losses(scores, run), expected, rtol=1e-9, atol=1e-9)
    moves = np.random.default_rng(drawn[0]).normal(size=(loss.trees_per_round, drawn[1]))
    after = naive.moved(scores, moves, loss.base_class)
    expected = naive.losses(after, loss.classes, weight)
    np.testing.assert_allclose(loss.losses(scores, run, moves), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_a_tree_adds_to_its_class_and_takes_from_the_base(n_classes):
    loss = AdaptiveLoss(np.arange(n_classes, dtype=np.int32), n_classes)
    outputs = set()
    for base in range(n_classes):
        loss.base_class = base
        for tree in range(loss.trees_per_round):
            k = loss.trained_class(tree)
            raw = np.zeros((loss.n_outputs, 1))
            raw[loss.output_of(k, base)] = 1.0
            expected = np.zeros(n_classes)
            expected[k], expected[base] = 1.0, -1.0
            assert class_scores(raw).ravel().tolist() == expected.tolist()
            outputs.add(loss.output_of(k, base))
    assert outputs == set(range(loss.n_outputs))


def test_the_prior_is_a_start_that_sums_to_zero():
    classes = np.repeat(np.arange(3), [1, 3, 6]).astype(np.int32)
    loss = AdaptiveLoss(classes, 3)
    loss.start_from_prior()
    start = class_scores(loss.base[:, None]).ravel()
    assert abs(start.sum()) < 1e-12
    shares = np.exp(start) / np.exp(start).sum()
    np.testing.assert_allclose(shares, [0.1, 0.3, 0.6], rtol=1e-12)
