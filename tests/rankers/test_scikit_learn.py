"""scikit-learn's gradient boosting implements the same algorithms: probabilities and scores must be the same.

scikit-learn breaks ties between equal splits at random; on training rows that does not show, and on unseen
rows of the same grid it does not where leaves are so large that no two features part a node's rows alike.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from mcrank import McRank, OrdinalMcRank, RegressionRanker
from tests.rankers.data import few_values

# seed, rows, features, values per feature, grades, leaves, rows per leaf, rate, rounds
CASES = [
    (1, 400, 5, 7, 3, 6, 10, 0.1, 250),
    (2, 600, 8, 5, 5, 10, 8, 0.05, 200),
    (3, 300, 3, 12, 4, 4, 5, 0.2, 200),
    (4, 500, 6, 9, 2, 8, 10, 0.1, 300),
    (5, 250, 4, 30, 2, 3, 5, 0.3, 200),
]


def split_rows(case):
    seed, rows, features, values, n_grades = case[:5]
    X, y, qid = few_values(seed, rows + 300, features, values, n_grades)
    return X[:rows], y[:rows], qid[:rows], X[rows:]


def settings(case):
    leaves, min_rows, rate, rounds = case[5:]
    common = {"n_estimators": rounds, "learning_rate": rate, "min_samples_leaf": min_rows}
    ours = common | {"num_leaves": leaves, "n_jobs": 1}
    theirs = common | {"max_leaf_nodes": leaves, "max_depth": None, "random_state": 0}
    return ours, theirs


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_class_probabilities(case):
    X, y, qid, unseen = split_rows(case)
    ours, theirs = settings(case)
    ranker = McRank(init="zero", **ours).fit(X, y, qid=qid)
    twin = GradientBoostingClassifier(init="zero", **theirs).fit(X, y)
    assert np.array_equal(ranker.grades_, twin.classes_)
    assert np.abs(ranker.predict_proba(X) - twin.predict_proba(X)).max() < 1e-5
    assert np.abs(ranker.predict_proba(unseen) - twin.predict_proba(unseen)).max() < 1e-5


def test_class_probabilities_by_round():
    """Not only the end: every one of the first rounds is the same."""
    X, y, qid, _ = split_rows(CASES[0])
    ours, theirs = settings(CASES[0])
    twin = GradientBoostingClassifier(init="zero", **theirs).fit(X, y)
    for rounds, wanted in enumerate(twin.staged_predict_proba(X), start=1):
        if rounds in (1, 2, 10, 100):
            ranker = McRank(init="zero", **(ours | {"n_estimators": rounds})).fit(X, y, qid=qid)
            assert np.abs(ranker.predict_proba(X) - wanted).max() < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:3])
def test_ordinal_boundaries_are_binary_problems(case):
    X, y, qid, unseen = split_rows(case)
    ours, theirs = settings(case)
    ranker = OrdinalMcRank(**ours).fit(X, y, qid=qid)
    n_grades = len(ranker.grades_)
    everything = np.concatenate([X, unseen])
    total = np.zeros(len(everything))
    for k in range(n_grades - 1):
        twin = GradientBoostingClassifier(init="zero", **theirs).fit(X, y > k)
        wanted = twin.predict_proba(everything)[:, 1]
        step = [0.0] * (k + 1) + [1.0] * (n_grades - k - 1)  # T that asks for Pr(y > k) alone
        assert np.abs(ranker.predict(everything, relevance=step) - wanted).max() < 1e-5
        total += wanted
    assert np.abs(ranker.predict(everything) - total).max() < 1e-5


@pytest.mark.parametrize("target", ["gain", "grade"])
@pytest.mark.parametrize("case", CASES[:4])
def test_regression(case, target):
    X, y, qid, unseen = split_rows(case)
    ours, theirs = settings(case)
    ranker = RegressionRanker(target=target, **ours).fit(X, y, qid=qid)
    twin = GradientBoostingRegressor(**theirs).fit(X, 2**y - 1 if target == "gain" else y)
    assert np.abs(ranker.predict(X) - twin.predict(X)).max() < 1e-5
    assert np.abs(ranker.predict(unseen) - twin.predict(unseen)).max() < 1e-5


@pytest.mark.slow
def test_weighted_regression_and_classification():
    case = CASES[0]
    X, y, qid, _ = split_rows(case)
    weight = np.random.default_rng(0).uniform(0.2, 3, len(y))
    ours, theirs = settings(case)
    ranker = RegressionRanker(target="gain", **ours).fit(X, y, qid=qid, weight=weight)
    twin = GradientBoostingRegressor(init="zero", **theirs)
    start = np.average(2**y - 1, weights=weight)
    twin.fit(X, 2**y - 1 - start, sample_weight=weight)
    assert np.abs(ranker.predict(X) - start - twin.predict(X)).max() < 1e-5
    classes = GradientBoostingClassifier(init="zero", **theirs).fit(X, y, sample_weight=weight)
    ranker = McRank(init="zero", **ours).fit(X, y, qid=qid, weight=weight)
    assert np.abs(ranker.predict_proba(X) - classes.predict_proba(X)).max() < 1e-5
