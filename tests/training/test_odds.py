"""Odds of grades at a score: against a general minimiser, and what they promise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from mcrank.metrics.calibration import calibration
from mcrank.scorers.heads import Head
from mcrank.scorers.odds import Odds
from mcrank.training.correcting import GRID, LEAST_SLOPE, PULL, fit_correction
from mcrank.training.levels import FARTHEST
from mcrank.training.odds import BENT, MOST_STRAY, SAID, STRAY, fit_odds
from mcrank.training.shares import Shares
from tests.reference import odds as naive


def rows(seed, n=200, grades=4, noise=0.5):
    """Boundaries of one hidden number, each with noise of its own, and grades that follow the number."""
    stream = np.random.default_rng(seed)
    hidden, cuts = 2 * stream.normal(size=n), np.linspace(1.5, -2.5, grades - 1)[:, None]
    classes = (stream.random(n) < expit(hidden + cuts)).sum(axis=0).astype(np.int32)
    return hidden + cuts + noise * stream.normal(size=(grades - 1, n)), classes


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([[0.0, 1.0, 2.0], [0.0, 1.0, 3.0, 7.0]]), st.booleans())
def test_it_is_the_minimum(seed, values, weighted):
    grades = np.array(values)
    stream = np.random.default_rng(seed)
    hidden = stream.normal(size=60)
    raw = hidden + np.linspace(1.0, -1.0, len(grades) - 1)[:, None]
    classes = np.searchsorted([-0.5, 0.5, 1.2][: len(grades) - 1], hidden + stream.normal(size=60))
    weight = 0.1 + stream.random(60) if weighted else np.ones(60)
    found = fit_odds(raw, classes.astype(np.int32), Head("cumulative", grades), weight if weighted else None)
    odds = [naive.log_odds(above, values) for above in expit(raw).T]

    def objective(at):
        stray, first, *gaps = at[4:]
        cuts = np.append(first, first - np.cumsum(np.exp(gaps)))  # gaps as powers, so that they fall
        slopes, knots = at[:4].tolist(), found.knots.tolist()
        return naive.loss(odds, classes, weight, slopes, knots, cuts, expit(stray), PULL, BENT, STRAY, SAID)

    def moved(by):
        """What the mean grade is off by where cuts are moved from the least loss."""
        cuts, stray = best.x[5] - np.append(0.0, np.cumsum(np.exp(best.x[6:]))) + by, found.stray.tolist()
        told = [naive.distribution(one, best.x[:4], cuts, stray, found.knots.tolist()) for one in odds]
        return weight @ (np.array(told) @ grades - grades[classes])

    gaps = np.log(-np.diff(found.cuts))
    start = np.array([*found.slopes, logit(found.stray.sum()), found.cuts[0], *gaps])
    best = minimize(objective, start, tol=1e-10)
    assert found.slopes.min() > LEAST_SLOPE
    wanted = best.x.copy()
    wanted[5] += brentq(moved, -FARTHEST, FARTHEST)
    assert objective(start) == pytest.approx(objective(wanted), abs=1e-4)
    np.testing.assert_allclose(start, wanted, atol=0.02)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["cumulative", "softmax", "base-pairs"]),
    st.sampled_from([[0.0, 1.0, 2.0], [0.0, 1.0, 3.0, 7.0], [0.0, 0.25, 5.0]]),
    st.booleans(),
)
def test_the_rows_have_their_mean_grade(seed, kind, values, weighted):
    """The promise: of the rows it was learned from, the mean expected grade is the mean grade."""
    stream, head = np.random.default_rng(seed), Head(kind, np.array(values))
    hidden = stream.normal(size=80)
    raw = hidden * np.linspace(0.2, 1.0, head.n_outputs)[:, None] + 0.3 * stream.normal(
        size=(head.n_outputs, 80)
    )
    shares = np.cumsum(stream.dirichlet(np.ones(len(values))))[:-1]
    classes = np.searchsorted(np.quantile(hidden, shares), hidden + 0.5 * stream.normal(size=80))
    weight = 0.1 + stream.random(80) if weighted else None
    correction = fit_correction(raw, classes.astype(np.int32), head, weight)
    assume(correction is not None)  # of one grade alone there is none
    raw = correction.applied(raw, head)
    found = fit_odds(raw, classes.astype(np.int32), head, weight)
    expected = head.values @ replace(head, odds=found).proba(raw)
    at = (np.average(mean, weights=weight) for mean in (expected, head.values[classes]))
    assert next(at) == pytest.approx(next(at), abs=2 * GRID * np.ptp(head.values))


def test_cuts_are_not_moved_beyond_what_they_may_be(monkeypatch):
    """What was learned says the lowest grade of all rows, and a quarter of it is kept: no cuts at all would
    give these rows their mean grade."""
    raw = np.vstack([np.full(40, 50.0), np.zeros((2, 40))])
    classes, head = np.repeat(np.array([1, 2], dtype=np.int32), [1, 39]), Head("softmax", np.arange(3.0))
    found = fit_odds(raw, classes, head)
    monkeypatch.setattr("mcrank.training.odds.with_mean", lambda odds, *given: odds)
    least = fit_odds(raw, classes, head)
    assert found.cuts == pytest.approx(least.cuts + FARTHEST, abs=GRID)
    assert found.slopes == least.slopes


def test_boundaries_learned_apart_are_too_sure_of_grades_and_their_score_is_not():
    """The promise: each boundary is right, the grades between them are not, and by the score they are."""
    head = Head("cumulative", np.arange(5.0))
    raw, classes = rows(1, 20_000, 5, noise=1.5)
    other, true = rows(2, 20_000, 5, noise=1.5)
    found = fit_correction(raw, classes, head)
    corrected, shown = found.applied(raw, head), found.applied(other, head)
    for above, k in zip(expit(shown), range(4), strict=True):
        assert above.mean() == pytest.approx((true > k).mean(), abs=0.01)
    before = calibration(head.proba(shown).T, head.values, head.values[true])
    odds = fit_odds(corrected, classes, head)
    after = calibration(odds.proba(expit(shown)).T, head.values, head.values[true])
    assert before.top.error > 0.05
    assert after.top.error < 0.02
    assert after.log_loss < before.log_loss - 0.05
    assert after.mean_expected == pytest.approx(after.mean_grade, rel=0.02)


def test_grades_given_by_mistake_do_not_make_the_others_unsure():
    head = Head("cumulative", np.arange(4.0))
    raw, classes = rows(8, 20_000, noise=0.0)
    raw, mistaken = 4 * raw, np.random.default_rng(9).random(20_000) < 0.2
    classes = (np.random.default_rng(10).random(20_000) < expit(raw)).sum(axis=0)
    classes = np.where(mistaken, np.random.default_rng(11).permutation(classes), classes).astype(np.int32)
    odds = fit_odds(raw, classes, head)
    assert odds.stray.sum() == pytest.approx(0.2, abs=0.03)
    assert calibration(odds.proba(expit(raw)).T, head.values, head.values[classes]).top.error < 0.03


def test_the_order_of_rows_changes_nothing():
    raw, classes = rows(3)
    order = np.random.default_rng(2).permutation(200)
    head = Head("cumulative", np.arange(4.0))
    one, other = (fit_odds(raw[:, o], classes[o], head) for o in (slice(None), order))
    assert one.to_json() == other.to_json()
    assert (np.concatenate([one.cuts, one.slopes, one.knots]) / GRID % 1 == 0).all()


def test_a_grade_that_no_row_has_stays_possible():
    raw, classes = rows(4)
    for missing in range(4):
        known = np.where(classes == missing, (missing + 1) % 4, classes)
        odds = fit_odds(raw, known.astype(np.int32), Head("cumulative", np.arange(4.0)))
        assert (np.diff(odds.cuts) < 0).all()
        assert 0 < odds.proba(np.full((3, 1), 0.5))[missing, 0] < 0.05


def test_a_ranking_is_never_turned_round():
    raw, classes = rows(5)
    odds = fit_odds(raw, (3 - classes).astype(np.int32), Head("cumulative", np.arange(4.0)))
    assert odds.slopes == pytest.approx(np.full(4, LEAST_SLOPE), abs=GRID)
    random = fit_odds(raw, np.random.default_rng(1).permutation(classes), Head("cumulative", np.arange(4.0)))
    assert random.slopes.min() >= LEAST_SLOPE - GRID
    assert random.stray.sum() <= MOST_STRAY + GRID
    flat = fit_odds(np.zeros_like(raw), classes, Head("cumulative", np.arange(4.0)))
    assert flat.slopes.tolist() == [1.0]
    assert flat.proba(np.full((3, 1), 0.5))[:, 0] == pytest.approx(np.bincount(classes) / 200, abs=0.01)


def test_rows_of_unknown_grades_and_of_no_weight_take_no_part():
    raw, classes = rows(6)
    head = Head("cumulative", np.arange(4.0))
    some = fit_odds(raw[:, :150], classes[:150], head)
    unknown, weight = classes.copy(), np.ones(200)
    unknown[150:], weight[150:] = -1, 0.0
    for other in (fit_odds(raw, unknown, head), fit_odds(raw, classes, head, weight)):
        assert other.to_json() == some.to_json()


def test_shares_of_training_count():
    raw, classes = rows(7)
    head, offsets = Head("cumulative", np.arange(4.0)), np.arange(0, 201, 20)
    share = np.bincount(classes, minlength=4) / 200
    moved = share + np.array([-0.04, 0.0, 0.0, 0.04])
    training = Shares(moved, np.eye(4) * 1e-5, 1000)
    found = fit_odds(raw, classes, head, None, offsets, training=training)
    alone = fit_odds(raw, classes, head, None, offsets)
    highest = [one.proba(expit(raw))[-1].mean() for one in (found, alone)]
    assert highest[0] == pytest.approx(moved[-1], abs=0.015)
    assert highest[1] == pytest.approx(share[-1], abs=0.015)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 60),
    st.integers(-12, 4),
    st.sampled_from(["cumulative", "softmax", "one-each"]),
)
def test_whatever_the_rows_are_a_file_can_hold_it(seed, n, power, kind):
    stream = np.random.default_rng(seed)
    grades = np.sort(stream.choice(20, size=stream.integers(3, 6), replace=False)).astype(float)
    head = Head(kind, grades)
    raw = 10.0**power * stream.normal(size=(head.n_outputs, n)) * (stream.random(n) < 0.8)
    classes = stream.integers(0, len(grades), n).astype(np.int32)
    found = fit_odds(raw, classes, head)
    again = Odds.from_json(found.to_json(), grades)
    p = replace(head, odds=again).proba(raw)
    assert np.array_equal(p, replace(head, odds=found).proba(raw))
    assert np.isfinite(p).all()
    assert p.min() > 0
    assert p.sum(axis=0) == pytest.approx(np.ones(n), abs=1e-12)


def test_where_the_true_line_is_bent_so_is_the_one_found():
    """The promise: expected grades are right at every score, not only in the mean."""
    stream = np.random.default_rng(9)
    hidden = 1.5 * stream.normal(size=40_000)
    true = np.where(hidden > 0, 3.0, 0.6) * hidden  # nothing that one slope could say
    cuts = np.array([1.5, 0.0, -2.0])[:, None]
    classes = (stream.random(len(hidden)) < expit(true + cuts)).sum(axis=0).astype(np.int32)
    raw = hidden + np.zeros((3, 1))
    head = Head("cumulative", np.arange(4.0))
    some, others = slice(0, 20_000), slice(20_000, None)
    odds = fit_odds(raw[:, some], classes[some], head)
    assert odds.slopes[0] < 0.8 < 2.2 < odds.slopes[-1]
    found = calibration(odds.proba(expit(raw[:, others])).T, head.values, classes[others].astype(float))
    assert found.expected.error < 0.03
    straight = Odds.of(1.0, odds.cuts, odds.stray, head.values)
    assert calibration(
        straight.proba(expit(raw[:, others])).T, head.values, classes[others].astype(float)
    ).expected.error > 0.1  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_all_but_sure(seed):
    """The loss is flat then, and a whole step of Newton's leads to where no other can be made."""
    stream = np.random.default_rng(seed)
    raw = 1e5 * stream.normal(size=(5, 150))
    classes = 2 * (raw[0] > 0).astype(np.int32)
    found = fit_odds(raw, classes, Head("softmax", np.array([2.0, 4.0, 6.0, 10.0, 15.0])))
    assert np.abs(np.concatenate([found.slopes, found.cuts])).max() < 50
