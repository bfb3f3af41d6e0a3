"""Rows sent down trees in bins, against walks over raw values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcrank import Dataset, LambdaMART, McRank, OrdinalMcRank, RegressionRanker
from mcrank.boosting import boost, held_out
from mcrank.boosting.binning import find_bins
from mcrank.boosting.routing import MOST_LEAVES, BinColumns, TreeNodes, route
from mcrank.boosting.start import tree_of, walk
from mcrank.rankers.registry import to_bytes


def some_data(seed, rows, features=4, holes=0.1):
    stream = np.random.default_rng(seed)
    X = np.round(stream.normal(size=(rows, features)), 1 + seed % 3)
    X[stream.random(X.shape) < holes] = np.nan
    return Dataset(X, stream.integers(0, 4, rows), np.arange(rows) // 10)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6), rows=st.integers(1, 300), leaves=st.sampled_from([2, 3, 10, MOST_LEAVES]),
    max_bins=st.sampled_from([2, 5, 100, 256]), holes=st.sampled_from([0.0, 0.1, 0.9]),
)  # fmt: skip
def test_rows_fall_into_the_leaves_of_a_walk(seed, rows, leaves, max_bins, holes):
    train, other = some_data(seed, 600, holes=holes), some_data(seed + 1, rows, holes=0.3)
    ranker = RegressionRanker(
        n_estimators=2, num_leaves=leaves, max_bins=max_bins, min_samples_leaf=1, n_jobs=1
    ).fit(train)
    columns = BinColumns.of(other, find_bins(train.X, max_bins), n_jobs=2)
    for t in range(ranker.forest_.n_trees):
        tree = tree_of(ranker.forest_, t)
        found, wanted = np.ones(rows), np.ones(rows)
        walk(other.X, tree, wanted)
        middle = rows // 3
        for start, end in ((0, middle), (middle, rows)):
            done = route(columns, TreeNodes.of(tree), start, np.empty(rows, np.uint8), found[start:end])
            assert done == (len(columns.columns) > 0)
        assert not len(columns.columns) or found.tolist() == wanted.tolist()


def test_missing_values_that_training_rows_had_none_of():
    other = Dataset([[np.nan], [3.0], [255.0], [-1.0]], [0, 1, 0, 1], [1, 1, 1, 1])
    for values, fits in ((255, True), (256, False)):  # bytes with and without one left for missing rows
        rows = np.arange(10 * values)
        train = Dataset(rows[:, None] // 10, rows % 7 % 2, rows // 10)
        tree = tree_of(RegressionRanker(n_estimators=1, num_leaves=40, n_jobs=1).fit(train).forest_, 0)
        columns = BinColumns.of(other, find_bins(train.X, 256), n_jobs=1)
        assert columns.columns.tolist() == ([[0, 4, 255, 1]] if fits else [])
        found, wanted = np.zeros(4), np.zeros(4)
        walk(other.X, tree, wanted)
        assert route(columns, TreeNodes.of(tree), 0, np.empty(4, np.uint8), found) == fits
        assert found.tolist() == (wanted.tolist() if fits else [0.0] * 4)


def test_trees_that_bins_cannot_tell_are_left_alone():
    train = some_data(0, 300)
    columns = BinColumns.of(train, find_bins(train.X, 256), n_jobs=1)
    tree = tree_of(RegressionRanker(n_estimators=1, num_leaves=6, n_jobs=1).fit(train).forest_, 0)
    deep = RegressionRanker(n_estimators=1, num_leaves=MOST_LEAVES + 9, min_samples_leaf=1, n_jobs=1)
    inner = tree["left"] >= 0
    others = {
        "a threshold between edges": {"threshold": tree["threshold"] + np.float32(1e-3) * inner},
        "a threshold above all edges": {"threshold": np.where(inner, 1e9, 0).astype(np.float32)},
        "children the other way round": {"left": tree["right"], "right": tree["left"]},
        "too many leaves": tree_of(deep.fit(some_data(1, 3000)).forest_, 0),
    }
    for words, changed in others.items():
        scores = np.zeros(300)
        nodes = TreeNodes.of(tree | changed)
        assert not route(columns, nodes, 0, np.empty(300, np.uint8), scores), words
        assert not scores.any()


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank, LambdaMART])
@pytest.mark.parametrize("leaves", [5, MOST_LEAVES + 1])
def test_the_history_is_that_of_the_trees_whatever_the_parts(kind, leaves, monkeypatch):
    """Validation in bins and (large trees) by walks, in other parts, on other threads; and by predicting."""
    train, valid = some_data(1, 900), some_data(2, 400)
    options = {"n_estimators": 4, "num_leaves": leaves, "min_samples_leaf": 1}
    if kind is not LambdaMART:  # the history is of scores as they were learned
        options["calibrate"] = False
    once = kind(**options, n_jobs=1).fit(train, valid=valid)
    for part, n_jobs in ((16384, 2), (64, 1), (64, 3)):
        monkeypatch.setattr(held_out, "PART", part)
        again = kind(**options, n_jobs=n_jobs).fit(train, valid=valid)
        assert again.history_ == once.history_
    assert once.history_["ndcg@10"][once.best_round_ - 1] == pytest.approx(once.score(valid), abs=1e-14)


@pytest.mark.parametrize("options", [{"subsample": 0.4}, {"subsample": 0.4, "max_bins": 300}, {"goss": True}])
def test_rows_left_out_of_a_round_fall_into_the_leaves_of_a_walk(options, monkeypatch):
    train = some_data(4, 1500, features=6)
    train = Dataset(train.X + np.arange(1500)[:, None] * 1e-4, train.y, train.qid)  # more than 256 values
    options = {**options, "n_estimators": 4, "num_leaves": 7, "learning_rate": 0.5, "n_jobs": 1}
    kept = to_bytes(RegressionRanker(**options).fit(train))
    calls = []
    monkeypatch.setattr(boost, "route_all", lambda *_: calls.append(1))  # None: it says that it cannot
    assert to_bytes(RegressionRanker(**options).fit(train)) == kept
    assert calls


def test_validation_goes_on_with_trees_of_other_bins():
    first, second, valid = some_data(1, 500), some_data(5, 500), some_data(3, 200)
    options = {"num_leaves": 6, "min_samples_leaf": 2, "n_jobs": 1}
    start = RegressionRanker(**options, n_estimators=3).fit(first)
    both = RegressionRanker(**options, n_estimators=6).fit(second, valid=valid, init_model=start)
    assert len(both.history_["ndcg@10"]) == 9
    assert max(both.history_["ndcg@10"]) == pytest.approx(both.score(valid), abs=1e-14)
