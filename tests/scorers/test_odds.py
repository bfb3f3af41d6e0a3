"""Odds of grades at a score: a distribution, a higher score never a lower grade, and files that are not
believed.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank.errors import ModelFileError
from mcrank.scorers.correction import Correction, takes_odds
from mcrank.scorers.heads import Head, sigmoid
from mcrank.scorers.odds import Odds
from tests.reference import odds as naive

GRADES = np.array([0.0, 1.0, 2.5, 4.0])
STRAY = np.array([0.05, 0.02, 0.02, 0.01])
ODDS = Odds.of(1.5, np.array([2.0, 0.5, -3.0]), STRAY, GRADES)
SLOPES, KNOTS = [1.5, 0.5, 3.0], [-1.0, 0.25]
BENT = Odds.of(SLOPES, ODDS.cuts, STRAY, GRADES, knots=KNOTS)
SAID = {"slope": 1.0, "cuts": [2.0, 1.0, 0.0], "stray": [0.1, 0.1, 0.1, 0.1]}
SAID_BENT = SAID | {"slopes": [1.0, 2.0, 0.5], "knots": [-1.0, 1.0]}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-60, 60), min_size=3, max_size=3))
def test_the_twin_says_the_same(outputs):
    above = sigmoid(np.array(outputs)[:, None])
    odds = naive.log_odds(above[:, 0].tolist(), GRADES.tolist())
    for one, slopes, knots in ((ODDS, [1.5], []), (BENT, SLOPES, KNOTS)):
        wanted = naive.distribution(odds, slopes, ODDS.cuts.tolist(), STRAY.tolist(), knots)
        found = Head("cumulative", GRADES, one).proba(np.array(outputs)[:, None])[:, 0]
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert found.min() > 0
        assert found.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("odds", [ODDS, BENT])
def test_scores_are_means_in_the_order_of_what_was_learned_and_a_higher_one_never_means_a_lower_grade(odds):
    raw = np.random.default_rng(1).normal(size=(3, 500)) * 3  # boundaries that cross
    plain, head = Head("cumulative", GRADES), Head("cumulative", GRADES, odds)
    assert np.array_equal(np.argsort(plain.rank(raw)), np.argsort(head.rank(raw)))
    assert np.array_equal(head.as_learned.rank(raw), plain.rank(raw))
    for relevance in (GRADES, np.array([0.0, 0.0, 1.0, 9.0])):
        np.testing.assert_allclose(head.expected(raw, relevance), relevance @ head.proba(raw), rtol=1e-13)
    above = 1 - np.cumsum(head.proba(raw[:, np.argsort(head.rank(raw))]), axis=0)
    assert (np.diff(above, axis=1) > -1e-12).all()
    # What a grade is worth changes no probability.
    assert np.array_equal(head.revalued("gain", "x").proba(raw), head.proba(raw))


def test_saved_and_loaded():
    head = Head("cumulative", GRADES)
    correction = Correction(np.ones(3), np.zeros(3), ODDS)
    again = Correction.from_json(correction.to_json(), head)
    assert again.to_json() == correction.to_json()
    assert set(again.to_json()["odds"]) == {"slope", "cuts", "stray"}  # as in files of earlier versions
    bent = Correction.from_json(Correction(np.ones(3), np.zeros(3), BENT).to_json(), head).odds
    assert (bent.slopes.tolist(), bent.knots.tolist()) == (SLOPES, KNOTS)
    both = Correction(np.ones(4), np.zeros(4), replace(ODDS, learned=0.25))
    assert Correction.from_json(both.to_json(), Head("softmax", GRADES)).odds.learned == 0.25
    assert again.head(head).odds.steps.tolist() == ODDS.steps.tolist()
    assert Correction.from_json({"slope": 1.0, "shifts": [0.0] * 3}, head).head(head).odds is None


@pytest.mark.parametrize(
    "odds",
    [
        None, [], 3, {}, *({k: v for k, v in SAID.items() if k != name} for name in SAID),
        SAID | {"slope": 0.0}, SAID | {"slope": -1.0}, SAID | {"slope": 1}, SAID | {"slope": True},
        SAID | {"slope": 1e7}, SAID | {"slope": float("nan")}, SAID | {"slope": [1.0]},
        SAID | {"cuts": [2.0, 1.0]}, SAID | {"cuts": [2.0, 2.0, 0.0]}, SAID | {"cuts": [0.0, 1.0, 2.0]},
        SAID | {"cuts": [2e6, 1.0, 0.0]}, SAID | {"cuts": [2.0, float("nan"), 0.0]}, SAID | {"cuts": "210"},
        SAID | {"stray": [0.1, 0.1, 0.1]}, SAID | {"stray": [0.1, 0.1, 0.1, -0.1]}, SAID | {"stray": 0.1},
        SAID | {"stray": [0.8, 0.1, 0.1, 0.1]}, SAID | {"stray": [0, 0.1, 0.1, 0.1]},
        SAID | {"learned": 1.0}, SAID | {"learned": -0.1}, SAID | {"learned": 0}, SAID | {"learned": None},
        SAID | {"learned": float("nan")},
        SAID | {"knots": [-1.0, 1.0]}, SAID_BENT | {"slopes": [1.0, 2.0]}, SAID_BENT | {"slopes": 1.0},
        SAID_BENT | {"slopes": [1.0, 0.0, 2.0]}, SAID_BENT | {"knots": "ab"}, SAID_BENT | {"knots": None},
        SAID_BENT | {"knots": [1.0, 1.0]}, SAID_BENT | {"knots": [1.0, -1.0]}, SAID_BENT | {"knots": 2},
        SAID_BENT | {"knots": [float("nan"), 1.0]}, SAID_BENT | {"knots": [0.0, 2e6]},
        SAID_BENT | {"knots": np.arange(99.0).tolist(), "slopes": [1.0] * 100}, SAID_BENT | {"knots": {}},
    ],
)  # fmt: skip
def test_a_file_is_not_believed(odds):
    for good in (SAID, SAID_BENT):
        Correction.from_json({"slope": 1.0, "shifts": [0.0] * 3, "odds": good}, Head("cumulative", GRADES))
    said = {"slope": 1.0, "shifts": [0.0] * 3, "odds": odds}
    with pytest.raises(ModelFileError, match="odds"):
        Correction.from_json(said, Head("cumulative", GRADES))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-60, 60), min_size=4, max_size=4), st.sampled_from(["softmax", "one-each"]))
def test_classes_keep_their_share(outputs, kind):
    odds = replace(ODDS, learned=0.25)
    raw = np.array(outputs)[:, None]
    learned = Head(kind, GRADES).proba(raw)[:, 0]
    above = [learned[k:].sum() for k in (1, 2, 3)]
    by_score = naive.distribution(naive.log_odds(above, GRADES.tolist()), [1.5], ODDS.cuts.tolist(), STRAY)
    found = Head(kind, GRADES, odds).proba(raw)[:, 0]
    np.testing.assert_allclose(found, 0.25 * learned + 0.75 * np.array(by_score), atol=1e-12)
    assert Head(kind, GRADES, odds).rank(raw)[0] == pytest.approx(float(GRADES @ found), rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["cumulative", "softmax", "base-pairs"]),
    st.lists(st.floats(0.05, 4), min_size=4, max_size=4),
    st.floats(0.1, 3), st.integers(0, 2**32),
)  # fmt: skip
def test_rows_stay_in_order(kind, slopes, gap, seed):
    """The promise: a score that is a grade to be relied on ranks as the one that was learned."""
    stream = np.random.default_rng(seed)
    cuts, kept = stream.normal() - gap * np.arange(3), 0.0 if kind == "cumulative" else 0.25
    odds = Odds.of(slopes, cuts, STRAY, GRADES, kept, [-1.0, 0.25, 3.0])
    head = Head(kind, GRADES, odds)
    raw = stream.normal(size=(head.n_outputs, 400)) * 2
    learned, score = head.as_learned.rank(raw), head.rank(raw)
    order = np.argsort(learned)
    # Never turned round by more than rounding; equal only where a grade is all but certain.
    assert (np.diff(score[order]) >= -4 * np.finfo(float).eps * GRADES[-1]).all()
    apart = (np.diff(learned[order]) > 1e-6) & (learned[order][1:] < 3.99)
    assert (np.diff(score[order])[apart] > 0).all()


@pytest.mark.parametrize("kind", ["softmax", "cumulative"])
def test_two_grades_have_none(kind):
    head = Head(kind, np.array([0.0, 1.0]))
    n = head.n_outputs
    assert not takes_odds(head)
    with pytest.raises(ModelFileError, match="odds"):
        Correction.from_json({"slope": 1.0, "shifts": [0.0] * n, "odds": ODDS.to_json()}, head)
