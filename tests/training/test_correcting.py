"""The correction of raw outputs on held-out rows: against a general minimiser, and what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from mcrank.losses.abc import class_scores
from mcrank.scorers.correction import Correction
from mcrank.scorers.forest.forest import ForestBuilder
from mcrank.scorers.heads import Head
from mcrank.training.correcting import (
    ALIKE,
    GRID,
    LEAST_SLOPE,
    MOST_SLOPES,
    PULL,
    fit_correction,
    mean_spread,
    with_mean,
)
from mcrank.training.levels import FARTHEST
from mcrank.training.shares import Shares


def rows(seed, grades=3, n=300, slope=2.0):
    """Outputs whose grades follow them with another slope and shifts."""
    stream = np.random.default_rng(seed)
    raw = stream.normal(size=(grades, n))
    p = np.exp(slope * raw + np.linspace(1.0, -1.0, grades)[:, None])
    p /= p.sum(axis=0)
    classes = (stream.random(n) > np.cumsum(p, axis=0)).sum(axis=0).clip(0, grades - 1)
    return raw, classes.astype(np.int32)


def objective(at, raw, classes, weight, kind):
    means = (weight * raw).sum(axis=1) / weight.sum()
    spread = (weight * (raw - means[:, None]) ** 2).sum(axis=1) / weight.sum()
    slopes, shifts = at[: -len(raw)], at[-len(raw) :]
    logits = np.reshape(slopes, (-1, 1)) * (raw - means[:, None]) + (means + shifts)[:, None]
    cumulative = kind == "cumulative"
    if cumulative:
        above = classes > np.arange(len(raw))[:, None]
        losses = -np.log(np.where(above, expit(logits), expit(-logits))).sum(axis=0)
    else:
        losses = -log_softmax(logits, axis=0)[classes, np.arange(len(classes))]
    pull = (spread * (slopes - 1) ** 2).sum() + (shifts**2).sum()
    apart = (spread * (slopes - np.average(np.ones(len(raw)) * slopes, weights=spread)) ** 2).sum()
    return (weight * losses).sum() + PULL / 2 * (pull + (ALIKE - 1) * apart)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["softmax", "cumulative", "base-pairs"]), st.booleans())
def test_it_is_the_minimum(seed, kind, weighted):
    """Slopes are one for all, but of a softmax: there every grade has its own."""
    raw, classes = rows(seed)
    given_ = pairs(raw) if kind == "base-pairs" else raw[: 2 if kind == "cumulative" else 3]
    raw = class_scores(given_) if kind == "base-pairs" else given_
    weight = np.random.default_rng(seed).random(300) if weighted else np.ones(300)
    found = fit_correction(given_, classes, Head(kind, np.arange(3.0)), weight if weighted else None)
    start = [*np.ones(3 if kind == "softmax" else 1), *np.zeros(len(raw))]
    best = minimize(objective, start, (raw, classes, weight, kind), tol=1e-12).x
    slopes = best[: -len(raw)] * np.ones(len(raw))
    shifts = best[-len(raw) :] + (1 - slopes) * (weight * raw).sum(axis=1) / weight.sum()
    if kind != "cumulative":  # what all grades have in common changes no probability
        shifts -= shifts.mean()
    if slopes.min() > LEAST_SLOPE:
        np.testing.assert_allclose(found.slopes, slopes, atol=2e-4)
        np.testing.assert_allclose(found.shifts, shifts, atol=2e-4)


def pairs(raw):
    """Outputs of grades against base grades, some of them in every output."""
    return np.random.default_rng(0).normal(size=(6, 3)) @ raw


def test_grades_that_are_surer_than_others_get_slopes_of_their_own():
    stream = np.random.default_rng(1)
    raw = stream.normal(size=(3, 6000)) * 2
    p = np.exp(np.array([1.0, 0.4, 0.7])[:, None] * raw)
    classes = (stream.random(6000) > np.cumsum(p / p.sum(axis=0), axis=0)).sum(axis=0).clip(0, 2)
    found = fit_correction(raw, classes.astype(np.int32), Head("softmax", np.arange(3.0)))
    np.testing.assert_allclose(found.slopes, [1.0, 0.4, 0.7], atol=0.06)
    # More grades than that share one.
    many = np.vstack([raw, np.full((MOST_SLOPES - 2, 6000), -9.0)])
    found = fit_correction(many, classes.astype(np.int32), Head("softmax", np.arange(MOST_SLOPES + 1.0)))
    assert len(set(found.slopes.tolist())) == 1


def test_the_order_of_rows_changes_nothing():
    raw, classes = rows(1)
    order = np.random.default_rng(2).permutation(300)
    one, other = (
        fit_correction(raw[:, o], classes[o], Head("softmax", np.arange(3.0))) for o in (slice(None), order)
    )
    assert one.slopes.tobytes() == other.slopes.tobytes()
    assert one.shifts.tobytes() == other.shifts.tobytes()
    assert (one.slopes / GRID % 1 == 0).all()


def test_a_ranking_is_never_turned_round():
    raw, classes = rows(3, slope=-3.0)
    found = fit_correction(raw, classes, Head("softmax", np.arange(3.0))).slopes
    assert found == pytest.approx(np.full(3, LEAST_SLOPE), abs=GRID)


def test_rows_of_unknown_grades_and_of_no_weight_take_no_part():
    raw, classes = rows(4)
    head = Head("softmax", np.arange(3.0))
    some = fit_correction(raw[:, :200], classes[:200], head)
    unknown, weight = classes.copy(), np.ones(300)
    unknown[200:], weight[200:] = -1, 0.0
    for other in (fit_correction(raw, unknown, head), fit_correction(raw, classes, head, weight)):
        assert other.to_json() == some.to_json()
    assert fit_correction(raw, np.full(300, -1, np.int32), head) is None


def test_outputs_that_do_not_vary_keep_their_slope():
    _, classes = rows(5)
    found = fit_correction(np.zeros((3, 300)), classes, Head("softmax", np.arange(3.0)))
    assert (found.slopes == 1.0).all()
    p = np.exp(found.shifts) / np.exp(found.shifts).sum()
    np.testing.assert_allclose(p, np.bincount(classes, minlength=3) / 300, atol=0.01)


@pytest.mark.parametrize("kind", ["softmax", "cumulative", "base-pairs"])
def test_a_corrected_forest_has_corrected_outputs(kind):
    head = Head(kind, np.arange(3.0))
    builder = ForestBuilder(n_features=1, base=np.linspace(0.5, 1.5, head.n_outputs))
    for output in range(head.n_outputs):
        builder.append(feature=[0, -1, -1], threshold=[0.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
                       value=[0.0, -1.0, output], output=output)  # fmt: skip
    forest, X = builder.build(), np.array([[-1.0], [1.0]], dtype=np.float32)
    shifts = np.linspace(-1.0, 1.0, 2 if kind == "cumulative" else 3)
    slopes = np.full(3, 2.0) if kind == "base-pairs" else 2.0 + shifts / 2
    correction = Correction(slopes, shifts)
    made, raw = correction.of(forest, head).raw(X), forest.raw(X)
    np.testing.assert_allclose(made, correction.applied(raw, head), atol=1e-12)
    if kind == "base-pairs":
        made, raw = class_scores(made), class_scores(raw)
    np.testing.assert_allclose(made, slopes[:, None] * raw + shifts[:, None], atol=1e-12)


@pytest.mark.parametrize("kind", ["softmax", "cumulative"])
def test_mean_probabilities_are_the_shares(kind):
    raw, classes = rows(6, n=400, slope=1.0)
    raw = raw[:2] if kind == "cumulative" else raw
    head, offsets = Head(kind, np.arange(3.0)), np.arange(0, 401, 20)
    logits = fit_correction(raw, classes, head, None, offsets).applied(raw, head)
    if kind == "cumulative":
        shown, true = expit(logits), (classes > np.arange(2)[:, None]).mean(axis=1)
    else:
        shown, true = np.exp(log_softmax(logits, axis=0)), np.bincount(classes, minlength=3) / 400
    np.testing.assert_allclose(shown.mean(axis=1), true, atol=0.01)


def test_shares_of_training_count_where_held_out_queries_are_few():
    raw, classes = rows(7, grades=2, n=200, slope=1.0)
    head, offsets = Head("softmax", np.arange(2.0)), np.arange(0, 201, 20)
    held = (classes == 1).mean()
    for known, moves in ((held + 0.05, True), (0.95, False)):
        training = Shares(np.array([1 - known, known]), np.eye(2) * 1e-5, 1000)
        found = fit_correction(raw, classes, head, None, offsets, training=training)
        alone = fit_correction(raw, classes, head, None, offsets)
        more = [np.exp(log_softmax(c.applied(raw, head), axis=0))[1].mean() for c in (found, alone)]
        assert more[1] == pytest.approx(held, abs=0.01)
        # What training says counts, unless the queries held out contradict it.
        assert bool(more[0] - more[1] > 0.02) is moves


def test_the_mean_of_fits_has_the_right_mean_probability():
    """Fits that differ: their mean says less extreme things, and more of them right, than each alone."""
    stream = np.random.default_rng(8)
    n, folds, head = 20000, 4, Head("cumulative", np.array([0.0, 1.0]))
    signal = stream.normal(size=n) * 1.5
    true = (stream.random(n) < expit(signal - 2.0)).astype(np.int32)
    own, offsets = np.arange(n) // 20 % folds, np.arange(0, n + 1, 20)
    fits = signal - 2.0 + stream.normal(size=(folds, 1, n))
    held = fits[own, :, np.arange(n)].T
    spread = mean_spread(fits, own, held, head)
    assert spread == pytest.approx(np.sqrt((1.5**2 + 1 / 4) / (1.5**2 + 1)), abs=0.01)
    means = held.mean(axis=1, keepdims=True)
    found = fit_correction(means + spread * (held - means), true, head, None, offsets)
    plain = fit_correction(held, true, head, None, offsets)
    fresh = signal - 2.0 + stream.normal(size=(folds, n)).mean(axis=0)  # rows that no fit has seen
    shown = [expit(one.applied(fresh[None], head))[0] for one in (found, plain)]
    assert abs(shown[0].mean() / true.mean() - 1) < 0.02 < abs(shown[1].mean() / true.mean() - 1)
    losses = [-np.log(np.where(true == 1, p, 1 - p)).mean() for p in shown]
    assert losses[0] < losses[1]
    assert mean_spread(fits[:2], own % 2, held, head) == 1.0


@pytest.mark.parametrize("kind", ["softmax", "cumulative"])
def test_one_grade_alone_corrects_nothing(kind):
    raw, classes = rows(3)
    head = Head(kind, np.arange(3.0 if kind == "softmax" else 4.0))
    assert fit_correction(raw, np.full_like(classes, 1), head) is None
    assert fit_correction(raw, np.where(classes == 1, 1, -1), head) is None
    assert fit_correction(raw, classes, head, (classes == 1).astype(float)) is None
    assert fit_correction(raw, classes, head) is not None


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["softmax", "cumulative", "base-pairs"]), st.booleans())
def test_rows_of_two_grades_have_their_mean_grade(seed, kind, weighted):
    """The promise: of the rows it was learned from, the mean expected grade is the mean grade."""
    stream, head = np.random.default_rng(seed), Head(kind, np.array([0.0, 1.0]))
    raw = stream.normal(size=(head.n_outputs, 90))
    classes = (stream.random(90) < expit(raw[-1] - 1.5)).astype(np.int32)
    classes[:2] = 0, 1
    weight = 0.1 + stream.random(90) if weighted else None
    found = fit_correction(raw, classes, head, weight)
    kept = with_mean(found, raw, classes, head, weight)
    p = head.proba(kept.applied(raw, head))[1]
    assert np.average(p, weights=weight) == pytest.approx(np.average(classes, weights=weight), abs=2 * GRID)
    assert (kept.slopes == found.slopes).all()
    before = head.proba(found.applied(raw, head))[1]
    assert (np.argsort(p, kind="stable") == np.argsort(before, kind="stable")).all()
    order = stream.permutation(90)
    again = with_mean(found, raw[:, order], classes[order], head, None if weight is None else weight[order])
    assert again.to_json() == kept.to_json()


def test_shifts_are_not_moved_beyond_what_they_may_be():
    head, classes = Head("cumulative", np.array([0.0, 1.0])), np.array([0, 1, 1, 1], dtype=np.int32)
    kept = with_mean(Correction(np.ones(1), np.zeros(1)), np.full((1, 4), -9.0), classes, head)
    assert kept.shifts == pytest.approx(FARTHEST)
