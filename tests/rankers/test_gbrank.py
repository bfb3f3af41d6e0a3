"""GBRank: the published running average against explicit pairs, and the gradient form."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, GBRank
from mcrank.errors import OptionError
from mcrank.rankers.registry import to_bytes
from tests.rankers.data import few_values
from tests.reference.forest import leaf_of
from tests.reference.lambdas import better_pairs

QUICK = {"n_estimators": 6, "num_leaves": 4, "min_samples_leaf": 5, "n_jobs": 1}


def violated(data, F, margin):
    """Pairs (better row, worse row) that do not lead by the margin."""
    for start, end in itertools.pairwise(data.offsets):
        for i, j in better_pairs(data.y[start:end]):
            if F[start + i] < F[start + j] + margin:
                yield start + i, start + j


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_the_running_average_is_the_published_one(rate):
    data = Dataset(*few_values(3, 200, 3, 6, 3))
    ranker = GBRank(form="average", learning_rate=rate, margin=0.7, **QUICK).fit(data)
    forest = ranker.forest_
    F = np.zeros(data.n_rows)
    for t in range(1, forest.n_trees + 1):
        asked = [[] for _ in range(data.n_rows)]
        for i, j in violated(data, F, 0.7):
            asked[i].append(F[j] + 0.7)
            asked[j].append(F[i] - 0.7)
        leaves = np.array([leaf_of(forest, t - 1, row) for row in data.X])
        g = np.empty(data.n_rows)
        for leaf in np.unique(leaves):
            targets = [np.mean(asked[i]) for i in np.flatnonzero(leaves == leaf) if asked[i]]
            g[leaves == leaf] = np.mean(targets)
        assert len(np.unique(leaves)) > 1
        F = (t * F + rate * g) / (t + 1)
    assert ranker.predict(data) == pytest.approx(F, abs=1e-6)


def test_the_gradient_form_takes_newton_steps_of_the_squared_hinge():
    data = Dataset(*few_values(4, 200, 3, 6, 3))
    ranker = GBRank(learning_rate=0.3, **QUICK).fit(data)
    forest = ranker.forest_
    F = np.zeros(data.n_rows)
    for tree in range(forest.n_trees):
        slopes, counts = np.zeros(data.n_rows), np.zeros(data.n_rows)
        for i, j in violated(data, F, 1.0):
            slopes[i] += 1.0 - F[i] + F[j]
            slopes[j] -= 1.0 - F[i] + F[j]
            counts[[i, j]] += 1
        leaves = np.array([leaf_of(forest, tree, row) for row in data.X])
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            F[inside] += 0.3 * slopes[inside].sum() / counts[inside].sum()
    assert ranker.predict(data) == pytest.approx(F, abs=1e-5)


@pytest.mark.parametrize("form", ["gradient", "average"])
def test_the_margin_is_only_a_unit(form):
    # With another margin all scores scale, so the ranking is the same; there is no measure to tune it by.
    train, _, test = mcrank.make_artificial(n_train=30, n_valid=2, n_test=10, docs_per_query=20, seed=2)
    one, two = (GBRank(form=form, margin=m, **QUICK).fit(train).predict(test) for m in (1.0, 4.0))
    assert two == pytest.approx(4 * one, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("form", ["gradient", "average"])
@pytest.mark.parametrize("split", ["mse", "newton"])
def test_it_learns_and_is_the_same_on_any_number_of_threads(form, split):
    train, valid, test = mcrank.make_artificial(n_train=80, n_valid=20, n_test=40, docs_per_query=30, seed=5)
    options = {"form": form, "split": split, "n_estimators": 40}
    ranker = GBRank(**options, n_jobs=1).fit(train, valid=valid)
    lead = {"gradient": 0.15, "average": 0.05}[form]  # an average moves slowly
    assert ranker.score(test) > mcrank.NDCG(k=10).on(test).mean(np.zeros(test.n_rows)) + lead
    for n_jobs in (2, 4):
        assert to_bytes(GBRank(**options, n_jobs=n_jobs).fit(train, valid=valid)) == to_bytes(ranker)


@pytest.mark.parametrize("form", ["gradient", "average"])
def test_nothing_to_learn_gives_an_empty_forest(form):
    X, y, qid = few_values(1, 60, 3, 6, 3)
    for grades, queries in ((np.full(60, 2.0), qid), (y, np.arange(60))):
        ranker = GBRank(form=form, **QUICK).fit(X, grades, qid=queries, valid=(X, y, qid))
        assert ranker.forest_.n_trees == ranker.best_round_ == 0
        assert ranker.predict(X).tolist() == [0.0] * 60


@pytest.mark.parametrize("form", ["gradient", "average"])
def test_missing_and_constant_features(form):
    X, y, qid = few_values(6, 200, 3, 6, 3, missing=0.3)
    X = np.column_stack([X, np.zeros(200), np.full(200, np.nan)])
    ranker = GBRank(form=form, **QUICK).fit(X, y, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert ranker.feature_importances_[3:].tolist() == [0.0, 0.0]


def test_the_rate_follows_the_form():
    data = Dataset(*few_values(4, 100, 3, 6, 3))
    for form, rate in (("gradient", 0.1), ("average", 1.0)):
        scores = [
            GBRank(form=form, **QUICK, **given).fit(data).predict(data)
            for given in ({}, {"learning_rate": rate})
        ]
        np.testing.assert_array_equal(scores[0], scores[1])


@pytest.mark.parametrize(
    "bad", [{"margin": 0}, {"form": "mean"}, {"learning_rate": 0}, {"learning_rate": 11}]
)
def test_options_out_of_bounds(bad):
    with pytest.raises(OptionError, match=next(iter(bad))):
        GBRank(**bad).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
