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
from mcrank.training.correcting import GRID, LEAST_SLOPE, PULL, fit_correction


def rows(seed, grades=3, n=300, slope=2.0):
    """Outputs whose grades follow them with another slope and shifts."""
    stream = np.random.default_rng(seed)
    raw = stream.normal(size=(grades, n))
    p = np.exp(slope * raw + np.linspace(1.0, -1.0, grades)[:, None])
    p /= p.sum(axis=0)
    classes = (stream.random(n) > np.cumsum(p, axis=0)).sum(axis=0).clip(0, grades - 1)
    return raw, classes.astype(np.int32)


def objective(at, raw, classes, weight, cumulative):
    means = (weight * raw).sum(axis=1) / weight.sum()
    spread = (weight * ((raw - means[:, None]) ** 2).sum(axis=0)).sum() / weight.sum()
    logits = at[0] * (raw - means[:, None]) + (means + at[1:])[:, None]
    if cumulative:
        above = classes > np.arange(len(raw))[:, None]
        losses = -np.log(np.where(above, expit(logits), expit(-logits))).sum(axis=0)
    else:
        losses = -log_softmax(logits, axis=0)[classes, np.arange(len(classes))]
    return (weight * losses).sum() + PULL / 2 * (spread * (at[0] - 1) ** 2 + (at[1:] ** 2).sum())


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["softmax", "cumulative"]), st.booleans())
def test_it_is_the_minimum(seed, kind, weighted):
    raw, classes = rows(seed)
    cumulative = kind == "cumulative"
    raw = raw[:2] if cumulative else raw
    weight = np.random.default_rng(seed).random(300) if weighted else np.ones(300)
    found = fit_correction(raw, classes, Head(kind, np.arange(3.0)), weight if weighted else None)
    best = minimize(objective, [1.0, *np.zeros(len(raw))], (raw, classes, weight, cumulative), tol=1e-12).x
    means = (weight * raw).sum(axis=1) / weight.sum()
    wanted = [best[0], *(best[1:] + (1 - best[0]) * means)]
    mine = np.array([found.slope, *found.shifts])
    if not cumulative:  # what all grades have in common changes no probability
        mine[1:] -= mine[1:].mean()
        wanted = [wanted[0], *(np.array(wanted[1:]) - np.mean(wanted[1:]))]
    if wanted[0] > LEAST_SLOPE:
        np.testing.assert_allclose(mine, wanted, atol=2e-4)


def test_the_order_of_rows_changes_nothing():
    raw, classes = rows(1)
    order = np.random.default_rng(2).permutation(300)
    one, other = (
        fit_correction(raw[:, o], classes[o], Head("softmax", np.arange(3.0))) for o in (slice(None), order)
    )
    assert one.slope == other.slope
    assert one.shifts.tobytes() == other.shifts.tobytes()
    assert (one.slope / GRID).is_integer()


def test_a_ranking_is_never_turned_round():
    raw, classes = rows(3, slope=-3.0)
    assert fit_correction(raw, classes, Head("softmax", np.arange(3.0))).slope == pytest.approx(
        LEAST_SLOPE, abs=GRID
    )


def test_rows_of_unknown_grades_and_of_no_weight_take_no_part():
    raw, classes = rows(4)
    head = Head("softmax", np.arange(3.0))
    some = fit_correction(raw[:, :200], classes[:200], head)
    unknown, weight = classes.copy(), np.ones(300)
    unknown[200:], weight[200:] = -1, 0.0
    for other in (fit_correction(raw, unknown, head), fit_correction(raw, classes, head, weight)):
        assert (other.slope, other.shifts.tolist()) == (some.slope, some.shifts.tolist())
    assert fit_correction(raw, np.full(300, -1, np.int32), head) is None


def test_outputs_that_do_not_vary_keep_their_slope():
    _, classes = rows(5)
    found = fit_correction(np.zeros((3, 300)), classes, Head("softmax", np.arange(3.0)))
    assert found.slope == 1.0
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
    correction = Correction(2.0, np.linspace(-1.0, 1.0, 2 if kind == "cumulative" else 3))
    made, raw = correction.of(forest, head).raw(X), forest.raw(X)
    np.testing.assert_allclose(made, correction.applied(raw, head), atol=1e-12)
    if kind == "base-pairs":
        made, raw = class_scores(made), class_scores(raw)
    np.testing.assert_allclose(made, 2.0 * raw + correction.shifts[:, None], atol=1e-12)


def test_what_queries_do_not_agree_on_is_not_corrected():
    raw, classes = rows(6, n=400, slope=1.0)
    raw = raw + np.linspace(1.0, -1.0, 3)[:, None]  # right already, but for chance
    head, offsets = Head("softmax", np.arange(3.0)), np.arange(0, 401, 20)
    whole, part = fit_correction(raw, classes, head), fit_correction(raw, classes, head, None, offsets)
    assert abs(part.slope - 1) <= abs(whole.slope - 1) + GRID
    assert np.abs(part.shifts).sum() < 0.7 * np.abs(whole.shifts).sum()
    far = fit_correction(raw / 5 + np.array([[2.0], [0.0], [0.0]]), classes, head, None, offsets)
    near = fit_correction(raw / 5 + np.array([[2.0], [0.0], [0.0]]), classes, head)
    assert far.slope == pytest.approx(near.slope, rel=0.1)


def test_queries_that_differ_say_less_than_rows_that_do():
    raw, classes = np.zeros((1, 400)), np.repeat([0, 1, 1, 1, 0, 1, 0, 1], 50).astype(np.int32)
    head = Head("cumulative", np.array([0.0, 1.0]))
    apart = fit_correction(raw, classes, head, None, np.arange(0, 401, 1))
    alike = fit_correction(raw, classes, head, None, np.arange(0, 401, 50))
    assert 0 <= alike.shifts[0] < 0.5 * apart.shifts[0]


@pytest.mark.parametrize("kind", ["softmax", "cumulative"])
def test_one_grade_alone_corrects_nothing(kind):
    raw, classes = rows(3)
    head = Head(kind, np.arange(3.0 if kind == "softmax" else 4.0))
    assert fit_correction(raw, np.full_like(classes, 1), head) is None
    assert fit_correction(raw, np.where(classes == 1, 1, -1), head) is None
    assert fit_correction(raw, classes, head, (classes == 1).astype(float)) is None
    assert fit_correction(raw, classes, head) is not None
