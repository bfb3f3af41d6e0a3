"""Identities of the McRank paper: hand-made leaves, falling loss, Expected Relevance, Lemma 1."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank import McRank, OrdinalMcRank, RegressionRanker
from mcrank.errors import OptionError
from mcrank.losses.quantize import GRADIENT_BITS
from tests.rankers.data import few_values

STEP = 2.0**-GRADIENT_BITS  # to which gradients are rounded, as a share of the largest: 4.25 for gains
QUICK = {"n_estimators": 12, "num_leaves": 4, "min_samples_leaf": 5, "learning_rate": 0.1, "n_jobs": 1}


def test_leaves_of_one_binary_feature_by_hand():
    """Spec 2.7 (e): J = 2, one binary feature, three classes, one round."""
    X = np.array([[0.0]] * 5 + [[1.0]] * 5)
    y = np.array([0, 0, 0, 1, 2, 0, 1, 1, 2, 2])
    ranker = McRank(n_estimators=1, num_leaves=2, learning_rate=0.3, min_samples_leaf=1, init="zero")
    ranker.fit(X, y, qid=[1] * 10)
    # All probabilities are 1/3: Σr = (rows of the class) - 5/3 and Σp(1-p) = 5 * 2/9 in both leaves.
    left, right = np.array([3, 1, 1]), np.array([1, 2, 2])
    for x, counts in ((0.0, left), (1.0, right)):
        scores = 0.3 * (2 / 3) * (counts - 5 / 3) / (10 / 9)
        expected = np.exp(scores) / np.exp(scores).sum()
        assert ranker.predict_proba([[x]])[0] == pytest.approx(expected, abs=STEP)


def test_ordinal_leaves_by_hand():
    X = np.array([[0.0]] * 4 + [[1.0]] * 4)
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    ranker = OrdinalMcRank(n_estimators=1, num_leaves=2, learning_rate=1.0, min_samples_leaf=1)
    ranker.fit(X, y, qid=[1] * 8)
    # p = 1/2: Σr = -1 or 1, Σp(1-p) = 1; the log-odds move by the quotient.
    assert ranker.predict([[0.0], [1.0]]) == pytest.approx(1 / (1 + np.exp([1.0, -1.0])), abs=1e-9)


def test_regression_leaves_by_hand():
    X = np.array([[0.0]] * 2 + [[1.0]] * 2)
    ranker = RegressionRanker(
        target="gain", n_estimators=2, num_leaves=2, learning_rate=0.5, min_samples_leaf=1
    )
    ranker.fit(X, [0, 1, 2, 3], qid=[1] * 4)  # gains 0, 1, 3, 7: means 0.5 and 5 around 2.75
    assert ranker.predict([[0.0], [1.0]]) == pytest.approx(
        [2.75 - 2.25 * 0.75, 2.75 + 2.25 * 0.75], abs=4.25 * STEP
    )


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_the_training_loss_falls_every_round(kind, rate):
    """Spec 2.7 (c)."""
    X, y, qid = few_values(3, 400, 4, 9, 4)
    losses = []
    for rounds in (1, 2, 3, 5, 10, 20, 40, 80):
        options = QUICK | {"n_estimators": rounds, "learning_rate": rate}
        ranker = kind(**options).fit(X, y, qid=qid)
        if kind is McRank:
            p = ranker.predict_proba(X)[np.arange(400), y.astype(int)]
            losses.append(-np.log(p).sum())
        else:
            above = np.stack([ranker.predict(X, relevance=[0] * (k + 1) + [1] * (3 - k)) for k in range(3)])
            hit = np.where(y > np.arange(3)[:, None], above, 1 - above)
            losses.append(-np.log(hit).sum())
    assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
def test_affine_relevance_does_not_change_the_ranking(kind):
    """Spec 2.7 (d): S for a T(k) + b is a S + b."""
    X, y, qid = few_values(4, 300, 3, 9, 5)
    ranker = kind(**QUICK).fit(X, y, qid=qid)
    plain = ranker.predict(X)
    moved = ranker.predict(X, relevance=3.5 * np.arange(5) + 7)
    assert moved == pytest.approx(3.5 * plain + 7, rel=1e-12)
    by_power = ranker.predict(X, relevance=2.0 ** np.arange(5))
    assert by_power == pytest.approx(ranker.predict(X, relevance="gain") + 1, rel=1e-12)
    assert np.array_equal(plain, ranker.predict(X, relevance="grade"))
    assert np.array_equal(plain, ranker.predict(X, relevance=[0, 1, 2, 3, 4]))


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
def test_expected_relevance_is_the_mean_of_t(kind):
    X, y, qid = few_values(5, 300, 3, 9, 4)
    ranker = kind(**QUICK).fit(X, y, qid=qid)
    p = ranker.predict_proba(X)
    if kind is McRank:
        assert ranker.predict(X) == pytest.approx(p @ ranker.grades_, rel=1e-12)
        assert ranker.predict(X, relevance="gain") == pytest.approx(p @ (2**ranker.grades_ - 1), rel=1e-12)
    assert ranker.predict(X, relevance=[2.0] * 4) == pytest.approx(np.full(300, 2.0))


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
@pytest.mark.parametrize("n_grades", [1, 2, 3, 6])
def test_probabilities_are_a_distribution(kind, n_grades):
    X, y, qid = few_values(6, 200, 3, 9, n_grades)
    # Overfit on purpose: single rows, full steps, crossing boundaries.
    ranker = kind(n_estimators=60, num_leaves=12, min_samples_leaf=1, learning_rate=1.0).fit(X, y, qid=qid)
    p = ranker.predict_proba(X)
    assert p.shape == (200, n_grades)
    assert p.flags.c_contiguous
    assert (p >= 0).all()
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12


def test_boundaries_do_cross_in_practice():
    """Otherwise the test above shows little."""
    X, y, qid = few_values(6, 200, 3, 9, 6)
    ranker = OrdinalMcRank(n_estimators=60, num_leaves=12, min_samples_leaf=1, learning_rate=1.0)
    ranker.fit(X, y, qid=qid)
    steps = [[0.0] * (k + 1) + [1.0] * (5 - k) for k in range(5)]
    noisy = np.random.default_rng(0).uniform(0, 7, (500, 3))
    above = np.stack([ranker.predict(noisy, relevance=step) for step in steps])
    assert (np.diff(above, axis=0) > 1e-6).any()
    p = ranker.predict_proba(noisy)
    assert (p >= 0).all()
    assert np.abs(p.sum(axis=1) - 1).max() < 1e-12


@pytest.mark.parametrize(
    "relevance",
    ["best", None, 3, [0, 1], [0, 1, 2, 3], [2, 1, 0], [0, 1, float("nan")], [0, 1, float("inf")],
     [[0, 1, 2]], ["a", "b", "c"], [[1], [1, 2], 3], {"a": 1}],
)  # fmt: skip
def test_bad_relevance(relevance):
    X, y, qid = few_values(7, 100, 2, 5, 3)
    ranker = McRank(**QUICK).fit(X, y, qid=qid)
    with pytest.raises(
        OptionError, match=r"relevance of McRank.predict must be 'grade', 'gain' or 3 numbers"
    ):
        ranker.predict(X, relevance=relevance)
