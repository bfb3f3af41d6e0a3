"""Starting from the shares of the grades instead of from zero."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from mcrank import McRank, OrdinalMcRank
from tests.rankers.data import few_values

QUICK = {"num_leaves": 6, "learning_rate": 0.1, "min_samples_leaf": 5, "init": "prior", "n_jobs": 1}


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_start_is_scikit_learns(n_classes):
    """Its own default start is the classes' shares, too."""
    X, y, qid = few_values(3, 600, 4, 9, n_classes)
    theirs = GradientBoostingClassifier(
        n_estimators=60,
        learning_rate=0.1,
        max_depth=None,
        max_leaf_nodes=6,
        min_samples_leaf=5,
        random_state=0,
    ).fit(X, y)
    ours = McRank(n_estimators=60, **QUICK).fit(X, y, qid=qid)
    assert np.abs(ours.predict_proba(X) - theirs.predict_proba(X)).max() < 1e-5


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_features_the_prediction_is_the_shares(kind, weighted):
    _, y, qid = few_values(4, 300, 4, 9, 4)
    weight = np.random.default_rng(0).random(300) + 0.5 if weighted else None
    ranker = kind(n_estimators=3, **QUICK).fit(np.zeros((300, 1)), y, qid=qid, weight=weight)
    shares = np.bincount(y.astype(int), weights=weight) / (300 if weight is None else weight.sum())
    assert ranker.predict_proba(np.zeros((2, 1))) == pytest.approx(np.array([shares, shares]), abs=1e-9)


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank])
def test_a_grade_of_no_weight(kind):
    X, y, qid = few_values(5, 200, 3, 7, 3)
    ranker = kind(n_estimators=3, **QUICK).fit(X, y, qid=qid, weight=(y != 1).astype(float))
    assert ranker.predict_proba(X)[:, 1].max() < 1e-3
