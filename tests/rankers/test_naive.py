"""Rankers against a naive boosting loop in float64: what scikit-learn does not have."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank import McRank, OrdinalMcRank, RegressionRanker
from tests.rankers.data import few_values
from tests.reference import boost as naive
from tests.reference.losses import sigmoid, softmax

ROUNDS = 15


def case(seed, n_grades=4):
    X, y, qid = few_values(seed, 300, 4, 8, n_grades)
    ours = {"n_estimators": ROUNDS, "num_leaves": 5, "learning_rate": 0.2, "min_samples_leaf": 7, "n_jobs": 1}
    theirs = {"num_leaves": 5, "rate": 0.2, "min_rows": 7}
    return X, y, qid, ours, theirs


WEIGHTS = {
    "none": None,
    "some": np.random.default_rng(7).uniform(0.1, 4, 300),
    "zeros": np.random.default_rng(8).integers(0, 3, 300).astype(float),
}


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("sequential", [False, True])
def test_classification(sequential, weight, split):
    X, y, qid, ours, theirs = case(11)
    ranker = McRank(init="zero", sequential=sequential, split=split, **ours).fit(X, y, qid=qid, weight=weight)
    scores = naive.classification(
        X, y, 4, ROUNDS, sequential=sequential, newton=split == "newton", weight=weight, **theirs
    )
    assert np.abs(ranker.predict_proba(X).T - softmax(scores)).max() < 1e-6


def test_refreshing_probabilities_changes_the_model():
    X, y, qid, ours, _ = case(11)
    one, other = (McRank(sequential=s, **ours).fit(X, y, qid=qid).predict_proba(X) for s in (False, True))
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_two_classes_need_one_tree(split):
    """Spec 2.7 (a): the one-tree form is two-tree Jacobi boosting."""
    X, y, qid, ours, theirs = case(12, n_grades=2)
    ranker = McRank(init="zero", split=split, **ours).fit(X, y, qid=qid)
    assert ranker.forest_.n_trees == ROUNDS
    scores = naive.classification(X, y, 2, ROUNDS, newton=split == "newton", **theirs)
    assert np.abs(ranker.predict_proba(X).T - softmax(scores)).max() < 1e-6
    # Opposite scores: F1 = -F0.
    assert np.abs(scores.sum(axis=0)).max() < 1e-9


def test_two_classes_refreshed_inside_the_round_need_two():
    X, y, qid, ours, theirs = case(12, n_grades=2)
    ranker = McRank(init="zero", sequential=True, **ours).fit(X, y, qid=qid)
    assert ranker.forest_.n_trees == 2 * ROUNDS
    scores = naive.classification(X, y, 2, ROUNDS, sequential=True, **theirs)
    assert np.abs(ranker.predict_proba(X).T - softmax(scores)).max() < 1e-6


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_ordinal(weight, split):
    X, y, qid, ours, theirs = case(13)
    ranker = OrdinalMcRank(split=split, **ours).fit(X, y, qid=qid, weight=weight)
    scores = naive.boundaries(X, y, 4, ROUNDS, newton=split == "newton", weight=weight, **theirs)
    above = sigmoid(scores)
    for k in range(3):
        step = [0.0] * (k + 1) + [1.0] * (3 - k)
        assert np.abs(ranker.predict(X, relevance=step) - above[k]).max() < 1e-6


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("loss", ["l2", "lad"])
def test_regression(loss, weight):
    X, y, qid, ours, theirs = case(14)
    ranker = RegressionRanker(loss=loss, target="gain", **ours).fit(X, y, qid=qid, weight=weight)
    scores = naive.regression(X, 2**y - 1, ROUNDS, kind=loss, weight=weight, **theirs)
    assert np.abs(ranker.predict(X) - scores).max() < 1e-6


def test_lad_over_many_rounds():
    X, y, qid, ours, theirs = case(15, n_grades=5)
    ranker = RegressionRanker(loss="lad", target="gain", **(ours | {"n_estimators": 200})).fit(X, y, qid=qid)
    scores = naive.regression(X, 2**y - 1, 200, kind="lad", **theirs)
    assert np.abs(ranker.predict(X) - scores).max() < 1e-5


def test_the_newton_split_changes_nothing_for_regression():
    X, y, qid, ours, _ = case(16)
    one, other = (RegressionRanker(split=s, **ours).fit(X, y, qid=qid).predict(X) for s in ("mse", "newton"))
    assert np.array_equal(one, other)
