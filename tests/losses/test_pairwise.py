"""Pairwise losses against finite differences of the losses themselves, and pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.losses.hinges import SquaredHinge, ViolationTargets
from mcrank.losses.pairs import make_space
from mcrank.losses.pairwise import FidelityLoss, PairwiseLogistic, logistic_query, pair_arrays
from mcrank.losses.quantize import GRADIENT_BITS
from tests.reference import pairwise as naive
from tests.reference.lambdas import better_pairs

KINDS = {"logistic": PairwiseLogistic, "fidelity": FidelityLoss}
CASES = st.tuples(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 4))


def run(task, items):
    for item in items:
        task(item)


def some_rows(seed, n, n_grades, spread=2.0):
    stream = np.random.default_rng(seed)
    cuts = np.sort(stream.integers(0, n + 1, 2))
    offsets = np.unique(np.r_[0, cuts, n])
    return stream.integers(0, n_grades, n) / 2, spread * stream.normal(size=n), offsets


def slopes_of(loss, scores):
    out = np.zeros((2, len(scores)))
    loss.slopes(scores, run, out[0], out[1])
    return out


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(
    case=CASES,
    spread=st.sampled_from([0.1, 3.0, 300.0]),
    sigma=st.sampled_from([0.5, 1.0, 2.0]),
    per_query=st.booleans(),
)
def test_slopes_are_derivatives_of_the_loss(kind, case, spread, sigma, per_query):
    grades, scores, offsets = some_rows(*case, spread)
    found = slopes_of(KINDS[kind](grades, offsets, sigma, per_query), scores)
    wanted = naive.slopes(grades, scores, offsets, kind, sigma, per_query)
    assert found[0] == pytest.approx(wanted, rel=1e-6, abs=1e-7 * spread)
    assert found[1] == pytest.approx(
        naive.curvatures(grades, scores, offsets, kind, sigma, per_query), rel=1e-9, abs=1e-12
    )


def test_the_curvature_of_fidelity_bounds_its_second_derivative():
    grades, offsets = [1.0, 0.0], [0, 2]
    for lead in np.linspace(-12, 12, 97):
        scores = np.array([lead, 0.0])
        (slope, _), (curve, _) = slopes_of(FidelityLoss(grades, offsets), scores)
        (after, _), _ = slopes_of(FidelityLoss(grades, offsets), scores + np.array([1e-5, 0.0]))
        second = (slope - after) / 1e-5  # slopes are minus the derivative
        assert curve > 0
        assert abs(second) <= curve + 1e-5 * abs(slope) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_scores_far_apart_overflow_nothing(kind):
    for size in (800.0, 1e10, 1e300):
        slopes, curves = slopes_of(KINDS[kind]([1.0, 0.0, 1.0], [0, 3]), np.array([-size, size, 0.0]))
        assert np.isfinite([slopes, curves]).all()
        # The pairs are as wrong as can be: the logistic slope is 1, that of fidelity fades.
        assert slopes == pytest.approx([1, -2, 1] if kind == "logistic" else [0, 0, 0], abs=1e-9)


@settings(max_examples=60)
@given(case=CASES, margin=st.sampled_from([0.1, 1.0, 5.0]), decimals=st.sampled_from([0, 1, 8]))
def test_the_hinge_without_pairs_equals_the_hinge_with_pairs(case, margin, decimals):
    grades, scores, offsets = some_rows(*case)
    scores = np.round(scores, decimals)  # ties, and leads of exactly the margin
    slopes, counts = slopes_of(SquaredHinge(grades, offsets, margin), scores)
    wanted = np.zeros((2, len(scores)))
    for start, end in itertools.pairwise(offsets):
        for i, j in better_pairs(grades[start:end]):
            lead = scores[start + i] - scores[start + j]
            if lead < margin:
                wanted[0, start + i] += margin - lead
                wanted[0, start + j] -= margin - lead
                wanted[1, [start + i, start + j]] += 1
    assert slopes == pytest.approx(wanted[0], abs=1e-9)
    assert counts.tolist() == wanted[1].tolist()


@settings(max_examples=30)
@given(CASES)
def test_hinge_slopes_are_derivatives_of_the_loss(case):
    grades, scores, offsets = some_rows(*case)
    slopes, _ = slopes_of(SquaredHinge(grades, offsets, 1.0), scores)
    wanted = naive.slopes(grades, scores, offsets, "hinge", 1.0, False, step=1e-6)
    assert slopes == pytest.approx(wanted, rel=1e-5, abs=1e-4)


@settings(max_examples=40)
@given(case=CASES, rounds=st.integers(0, 5), weighted=st.booleans())
def test_targets_are_means_over_violated_pairs(case, rounds, weighted):
    grades, scores, offsets = some_rows(*case)
    weight = np.random.default_rng(case[0]).uniform(0.5, 1, len(scores)) if weighted else None
    loss = ViolationTargets(grades, offsets, 1.0, weight)
    loss.round = rounds + 1
    gradients = loss.allocate("mse")
    loss.fill(scores[None], gradients, run)
    F = scores / (rounds + 1)
    asked = [[] for _ in scores]
    for start, end in itertools.pairwise(offsets):
        for i, j in better_pairs(grades[start:end]):
            if F[start + i] - F[start + j] < 1.0:
                asked[start + i].append(F[start + j] + 1.0)
                asked[start + j].append(F[start + i] - 1.0)
    w = np.ones(len(scores)) if weight is None else weight
    wanted = np.array([np.mean(a) if a else 0.0 for a in asked]) * w
    inside = np.array([1.0 if a else 0.0 for a in asked]) * w
    assert gradients.q[0] * gradients.unit == pytest.approx(wanted, abs=1e-6)
    assert gradients.curvature[0].tolist() == inside.tolist()
    assert gradients.weights[0] * gradients.lane_unit == pytest.approx(inside, abs=1e-8)


@pytest.mark.parametrize("kind", [PairwiseLogistic, FidelityLoss, SquaredHinge])
@pytest.mark.parametrize("split", ["mse", "newton"])
def test_losses_round_their_slopes_whatever_the_order_of_blocks(kind, split):
    stream = np.random.default_rng(2)
    offsets = np.r_[0, np.sort(stream.choice(np.arange(1, 20_000), 300, replace=False)), 20_000]
    grades, scores = stream.integers(0, 3, 20_000).astype(float), stream.normal(size=(1, 20_000))
    loss = kind(grades, offsets)
    one, other = loss.allocate(split), loss.allocate(split)
    loss.fill(scores, one, run)
    loss.fill(scores, other, lambda task, items: [task(i) for i in reversed(items)])
    assert np.array_equal(one.q, other.q)
    assert np.array_equal(one.weights, other.weights)
    slopes, curves = slopes_of(loss, scores[0])
    assert np.abs(one.q).max() == 2**GRADIENT_BITS
    assert np.abs(one.q[0] * one.unit - slopes).max() <= 0.5001 * one.unit
    assert np.array_equal(one.curvature[0], curves)


@pytest.mark.parametrize("kind", [PairwiseLogistic, FidelityLoss, SquaredHinge])
def test_without_pairs_there_is_nothing_to_learn(kind):
    loss = kind([1.0, 1.0, 0.0], [0, 2, 3])
    assert loss.is_empty
    gradients = loss.allocate("newton")
    loss.fill(np.zeros((1, 3)), gradients, run)
    assert not gradients.q.any()
    assert not gradients.curvature.any()


@pytest.mark.slow
def test_pairs_of_a_query_by_its_own_arrays():
    grades, scores, offsets = some_rows(5, 12, 3)
    pairs = pair_arrays(grades, offsets, per_query=True)
    whole = slopes_of(PairwiseLogistic(grades, offsets, 1.5, True), scores)
    found = np.zeros_like(whole)
    space = make_space(pairs.longest)
    for q, (s, e) in enumerate(zip(pairs.starts, pairs.ends, strict=True)):
        logistic_query(
            pairs.order[s:e], pairs.worth[s:e], scores[s:e], pairs.factor[q], 1.5, space, found[0, s:e],
            found[1, s:e],
        )  # fmt: skip
    assert np.array_equal(found, whole)
