"""Gradients and curvatures of every loss against float64 NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.losses.base import LeafRule
from mcrank.losses.multiclass import MulticlassLoss
from mcrank.losses.ordinal import OrdinalLoss
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS
from mcrank.losses.regression import RegressionLoss, weighted_median
from tests.reference import losses as naive

KINDS = {MulticlassLoss: naive.multiclass, OrdinalLoss: naive.ordinal}


def run(task, items):
    for item in items:
        task(item)


SCORES = st.tuples(
    st.integers(0, 10**6), st.integers(1, 700), st.integers(2, 7), st.sampled_from([0.1, 2, 50, 900])
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_gradients_equal_numpy(kind, case):
    seed, rows, n_classes, spread = case
    stream = np.random.default_rng(seed)
    classes = stream.integers(0, n_classes, rows).astype(np.int32)
    loss = kind(classes, n_classes)
    scores = spread * stream.normal(size=(loss.n_outputs, rows))
    gradients = loss.allocate("mse")
    loss.fill(scores, gradients, run)
    g, _ = KINDS[kind](scores, classes)
    one = 2.0**GRADIENT_BITS
    assert gradients.unit == 1 / one
    # Half a unit of rounding each; the last class balances the roundings of all the others.
    allowed = 0.5 * n_classes + 1e-3 if kind is MulticlassLoss else 0.5 + 1e-3
    assert np.abs(gradients.q - g * one).max() <= allowed
    if kind is MulticlassLoss:
        assert np.abs(gradients.q[:-1] - g[:-1] * one).max() <= 0.5 + 1e-3
        assert not gradients.q.sum(axis=0).any()
    assert np.abs(gradients.q.astype(np.int64)).max() <= one + n_classes


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(case=SCORES, scale=st.sampled_from([1e-12, 1.0, 1e12]))
def test_weighted_gradients_equal_numpy(kind, split, case, scale):
    seed, rows, n_classes, spread = case
    stream = np.random.default_rng(seed)
    classes = stream.integers(0, n_classes, rows).astype(np.int32)
    weight = scale * (stream.uniform(0, 3, rows) * (stream.random(rows) < 0.8) + (np.arange(rows) == 0))
    weight.setflags(write=False)  # as a Dataset's are
    loss = kind(classes, n_classes, weight)
    assert loss.rule is LeafRule.CURVATURE
    scores = spread * stream.normal(size=(loss.n_outputs, rows))
    gradients = loss.allocate(split)
    loss.fill(scores, gradients, run)
    g, h = KINDS[kind](scores, classes)
    assert np.abs(gradients.q * gradients.unit - weight * g).max() <= gradients.unit * (
        0.5 * n_classes + 1e-3
    )
    assert gradients.curvature == pytest.approx(weight * h, rel=1e-9, abs=1e-12 * weight.max())
    assert np.abs(gradients.q.astype(np.int64)).max() <= 2**GRADIENT_BITS + n_classes
    for k in range(loss.n_outputs):
        lane = gradients.weights_of(k)
        wanted = weight if split == "mse" else gradients.curvature[k]
        assert np.abs(lane * gradients.lane_unit - wanted).max() <= gradients.lane_unit * 0.51
        assert lane.min() >= 0
        assert lane.max() <= 1 << LANE_BITS
    if kind is MulticlassLoss:
        assert not gradients.q.sum(axis=0).any()


@pytest.mark.parametrize("kind", KINDS)
def test_certain_scores_overflow_nothing(kind):
    classes = np.array([0, 1, 2, 0, 1, 2], dtype=np.int32)
    loss = kind(classes, 3)
    for size in (1e3, 1e10, 1e300):
        scores = np.zeros((loss.n_outputs, 6))
        scores[0] = [size, -size, size, -size, 0, 0]
        scores[1] = [-size, size, size, -size, size, -size]
        gradients = loss.allocate("mse")
        loss.fill(scores, gradients, run)
        g, _ = KINDS[kind](scores, classes)
        assert np.abs(gradients.q * gradients.unit - g).max() < 1e-6


@pytest.mark.parametrize("kind", ["l2", "lad"])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 300), scale=st.sampled_from([1e-20, 1.0, 1e20]))
def test_regression_gradients(kind, weighted, seed, rows, scale):
    stream = np.random.default_rng(seed)
    target = scale * stream.integers(0, 5, rows).astype(float)
    weight = stream.uniform(0.1, 2, rows) if weighted else None
    if weighted:
        weight.setflags(write=False)
    loss = RegressionLoss(target, kind, weight)
    scores = scale * stream.normal(size=(1, rows)) * 3
    gradients = loss.allocate("mse")
    loss.fill(scores, gradients, run)
    g = target - scores[0] if kind == "l2" else np.sign(target - scores[0])
    g = g if weight is None else weight * g
    assert np.abs(gradients.q[0] * gradients.unit - g).max() <= 0.5001 * gradients.unit
    assert np.abs(gradients.q.astype(np.int64)).max() <= 2**GRADIENT_BITS
    rows_of = np.arange(rows)
    assert np.array_equal(loss.residuals(scores, 0, rows_of), target - scores[0])


def test_regression_without_residuals_has_no_gradients():
    loss = RegressionLoss(np.full(5, 2.5), "l2")
    gradients = loss.allocate("mse")
    loss.fill(np.full((1, 5), 2.5), gradients, run)
    assert not gradients.q.any()
    assert gradients.unit > 0


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=30))
def test_weighted_median_is_the_median_of_repeated_values(pairs):
    values, weight = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    repeated = np.repeat(values, weight.astype(int))
    assert weighted_median(values, weight) == np.median(repeated) == naive.weighted_median(values, weight)
    assert (
        weighted_median(repeated, np.ones(len(repeated))) == np.median(repeated) == weighted_median(repeated)
    )


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(0, 4)), min_size=1, max_size=30))
def test_weighted_median_has_half_of_the_weight_on_either_side(pairs):
    values, weight = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    if weight.sum() > 1e-6:
        found = weighted_median(values, weight)
        half = weight.sum() / 2
        assert weight[values < found].sum() <= half * (1 + 1e-12)
        assert weight[values > found].sum() <= half * (1 + 1e-12)


def test_starting_scores():
    target = np.array([0.0, 1.0, 3.0, 8.0])
    assert RegressionLoss(target, "l2").base.tolist() == [3.0]
    assert RegressionLoss(target, "l2", np.array([1.0, 0, 0, 3.0])).base.tolist() == [6.0]
    assert RegressionLoss(target, "lad").base.tolist() == [2.0]
    classes = np.array([0, 1, 2, 3], dtype=np.int32)
    assert MulticlassLoss(classes, 4).base.tolist() == [0.0] * 4
    assert OrdinalLoss(classes, 4).base.tolist() == [0.0] * 3
