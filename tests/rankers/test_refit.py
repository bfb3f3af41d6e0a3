"""Leaves refitted on other rows: LightGBM's rule, training's own values, and what stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.errors import DataError, ModelFileError, NotFittedError, OptionError
from mcrank.rankers.average import average_forest, fold_of
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import few_values
from tests.rankers.test_determinism import noisy
from tests.rankers.test_start import KINDS, make


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sampled"])
def test_on_the_rows_of_the_training_nothing_changes(kind, weighted):
    data = noisy(300, weighted=weighted)
    ranker = make(kind, 5).fit(data)
    again = ranker.refit(data, decay=0.0)
    assert again is not ranker
    assert np.array_equal(again.forest_.value, ranker.forest_.value)
    assert np.array_equal(ranker.refit(data, decay=1.0).forest_.value, ranker.forest_.value)


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.9])
def test_lightgbm_finds_the_same_leaves(decay):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = few_values(1, 300, 4, 6, 5)
    X2, y2, qid2 = few_values(2, 300, 4, 6, 5, noise=2.0)
    rounds, rate = 6, 0.3
    peer = lightgbm.train(
        {
            "objective": "regression", "num_leaves": 5, "learning_rate": rate, "min_data_in_leaf": 10,
            "min_sum_hessian_in_leaf": 0, "boost_from_average": False, "verbose": -1, "num_threads": 1,
            "min_data_in_bin": 1,
        },
        lightgbm.Dataset(X.astype(float), y), rounds,
    )  # fmt: skip
    ours = mcrank.RegressionRanker(
        n_estimators=rounds, num_leaves=5, learning_rate=rate, target="grade", n_jobs=1
    ).fit(X, y, qid=qid, init_score=np.zeros(len(y)))
    assert np.allclose(ours.predict(X), peer.predict(X.astype(float)), atol=1e-5)
    theirs = peer.refit(X2.astype(float), y2, decay_rate=decay).predict(X2.astype(float))
    assert np.allclose(ours.refit(X2, y2, qid=qid2, decay=decay).predict(X2), theirs, atol=1e-5)


def naive(forest, X, target, decay, rate):
    """Refit a forest of least squares, row by row."""
    scores = np.full(len(X), forest.base[0])
    values = forest.value.copy()
    for t in range(forest.n_trees):
        start = forest.tree_offsets[t]
        leaf = []
        for x in X:
            node = start
            while forest.feature[node] >= 0:
                value = x[forest.feature[node]]
                left = forest.missing_left[node] if np.isnan(value) else value <= forest.threshold[node]
                node = start + (forest.left if left else forest.right)[node]
            leaf.append(node)
        leaf = np.array(leaf)
        residual = target - scores
        for node in np.unique(leaf):
            values[node] = decay * values[node] + (1 - decay) * rate * residual[leaf == node].mean()
        scores += values[leaf]
    return values


def test_the_naive_rule_with_missing_values_and_empty_leaves():
    data, new = noisy(300), noisy(40, seed=11)
    ranker = mcrank.RegressionRanker(
        n_estimators=5, num_leaves=12, min_samples_leaf=3, target="grade", n_jobs=1
    ).fit(data)
    found = ranker.refit(new, decay=0.25).forest_
    expected = naive(ranker.forest_, new.X, new.y, 0.25, 0.05)
    assert np.allclose(found.value, expected, atol=1e-7)
    kept = (found.value == ranker.forest_.value) & (found.feature < 0)
    assert kept.sum() > 3  # leaves without a row
    for name in ("feature", "threshold", "left", "right", "gain", "rows", "base"):
        assert np.array_equal(getattr(found, name), getattr(ranker.forest_, name))


@pytest.mark.parametrize("kind", ["adaptive", "lambdamart", "lad"])
def test_threads_files_and_pickles(kind):
    data, new = noisy(300), noisy(200, seed=11)
    ranker = make(kind, 4).fit(data)
    found = {to_bytes(ranker.set_params(n_jobs=n).refit(new, decay=0.5)) for n in (1, 2, 4)}
    assert len(found) == 1
    again = from_bytes(found.pop())
    assert again.provenance_["refit_data"]["decay"] == 0.5
    assert again.provenance_["refit_data"]["rows"] == 200
    assert np.array_equal(again.predict(new), ranker.refit(new, decay=0.5).predict(new))


@pytest.mark.parametrize("kind", ["l2", "lad", "mcrank", "lambdamart"])
def test_a_leaf_whose_rows_have_no_weight_keeps_its_value(kind):
    data = noisy(300, weighted=True)
    ranker = make(kind, 4).fit(data)
    qid = np.repeat(data.qids, data.sizes)
    left = np.nan_to_num(data.X[:, 0]) < 0
    none = mcrank.Dataset(data.X, data.y, qid, np.where(left, 0.0, 1.0))
    some = mcrank.Dataset(data.X[~left], data.y[~left], qid[~left])
    if kind == "lambdamart":  # pairs are those of all rows
        assert np.isfinite(ranker.refit(none, decay=0.0).forest_.value).all()
        return
    found = [ranker.refit(rows, decay=0.0).forest_.value for rows in (none, some)]
    assert np.allclose(*found, atol=1e-6)


def test_hostile_values():
    data = noisy(300)
    with pytest.raises(NotFittedError):
        mcrank.McRank().refit(data)
    ranker = make("mcrank", 2).fit(data)
    for odd in (-0.1, 1.1, float("nan"), "0.5", None, True):
        with pytest.raises(OptionError, match=r"decay of McRank.refit must be a number >= 0 and <= 1"):
            ranker.refit(data, decay=odd)
    with pytest.raises(DataError, match="12 features"):
        ranker.refit(noisy(300, features=12))
    with pytest.raises(OptionError, match="requires y"):
        ranker.refit(data.X)
    more = mcrank.Dataset(data.X, data.y + 1, np.repeat(data.qids, data.sizes))
    with pytest.raises(DataError, match="has grade 5"):
        ranker.refit(more)
    with pytest.raises(OptionError, match="form='average'"):
        make("gbrank", 2, form="average").fit(data).refit(data)
    with pytest.raises(OptionError, match="scorer='stumps'"):
        mcrank.FRank(n_estimators=2).fit(data).refit(data)


def test_initial_scores_are_those_of_training():
    data = noisy(300)
    for kind in ("lambdamart", "mcrank", "l2"):
        shape = (len(np.unique(data.y)),) if kind == "mcrank" else ()
        given = np.random.default_rng(1).normal(size=(data.n_rows, *shape))
        ranker = make(kind, 3).fit(data, init_score=given)
        again = ranker.refit(data, decay=0.0, init_score=given)
        assert np.array_equal(again.forest_.value, ranker.forest_.value), kind
        assert not np.array_equal(ranker.refit(data, decay=0.0).forest_.value, ranker.forest_.value)
    with pytest.raises(DataError, match=r"init_score of RegressionRanker.refit must have shape \(300,\)"):
        ranker.refit(data, init_score=[1.0])


def test_a_missing_column_is_that_of_refit():
    pandas = pytest.importorskip("pandas")
    data = noisy(60)
    table = pandas.DataFrame(data.X).rename(columns=lambda j: f"x{j}")
    ranker = make("l2", 2).fit(table, data.y, qid=data.qid)
    with pytest.raises(DataError, match=r"X of RegressionRanker\.refit has no column 'x0'"):
        ranker.refit(table.drop(columns="x0"), data.y, qid=data.qid)
    with pytest.raises(DataError, match="X of valid of RegressionRanker has no column 'x0'"):
        ranker.fit(table, data.y, qid=data.qid, valid=(table.drop(columns="x0"), data.y, data.qid))


@pytest.mark.parametrize("folds", [2, 3])
@pytest.mark.parametrize("kind", ["l2", "mcrank", "adaptive", "lambdamart"])
def test_a_cross_fitted_ranker_is_refitted_fit_by_fit(kind, folds):
    data, new = noisy(300), noisy(200, seed=11)
    ranker = make(kind, 5).fit(data, folds=folds)
    old, found = ranker.forest_, ranker.refit(new, decay=0.25).forest_
    learned, refitted = (getattr(r, "learned_", r.forest_) for r in (ranker, ranker.refit(new, decay=0.25)))
    rounds = ranker.best_round_
    parts = []
    for number in range(folds):  # each fit alone, as a model of its own
        alone = make(kind, 5).fit(data)
        part = fold_of(learned, number, folds, rounds)
        alone.scorer_ = alone.learned_ = part
        alone.head_, alone.correction_, alone.best_round_ = ranker.head_.as_learned, None, rounds
        parts.append(alone.refit(new, decay=0.25).forest_)
    wanted = average_forest(parts, rounds)
    np.testing.assert_allclose(refitted.value, wanted.value, rtol=1e-12, atol=1e-15)
    assert np.array_equal(found.base, old.base)
    assert np.array_equal(ranker.refit(new, decay=1.0).forest_.value, old.value)
    assert np.array_equal(from_bytes(to_bytes(ranker)).refit(new, decay=0.25).forest_.value, found.value)


def test_a_file_with_another_number_of_fits_than_it_has_trees_for():
    data = noisy(300)
    ranker = make("l2", 5).fit(data)
    for folds in (2, "2", 0, True, 1.0):
        ranker.provenance_ = ranker.provenance_ | {"cross_fitting": {"folds": folds}}
        with pytest.raises(ModelFileError, match="given a model that says it is the mean"):
            ranker.refit(data)
