"""TREC judgments, runs and features brought together."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, Qrels, Run, join_trec
from mcrank.errors import DataError

QRELS = mcrank.Qrels(["1", "1", "2", "2"], ["a", "b", "a", "c"], [2, 0, 1, -1])


@pytest.fixture
def features():
    return mcrank.Dataset(
        [[1.0], [2.0], [3.0], [4.0], [5.0]], [0] * 5, [1, 1, 2, 2, 3], doc_ids=["a", "z", "a", "c", "a"],
        feature_names=["length"],
    )  # fmt: skip


def test_features_alone(features):
    data = mcrank.join_trec(QRELS, features)
    assert list(zip(data.qid, data.doc_ids, data.y, data.X[:, 0], strict=True)) == [
        ("1", "a", 2, 1), ("1", "z", 0, 2), ("2", "a", 1, 3), ("2", "c", 0, 4),
    ]  # fmt: skip
    judged = mcrank.join_trec(QRELS, features, unjudged="drop")
    assert judged.doc_ids.tolist() == ["a", "a"]


def test_runs_are_features(features):
    runs = {
        "bm25": mcrank.Run(["1", "1", "9"], ["b", "a", "x"], [9.0, 8.0, 1.0]),
        "dense": mcrank.Run(["2", "1"], ["a", "b"], [0.5, 0.25]),
    }
    data = mcrank.join_trec(QRELS, features, runs)
    assert data.feature_names == ("length", "bm25", "dense")
    assert list(zip(data.qid, data.doc_ids, data.y, strict=True)) == [
        ("1", "b", 0),
        ("1", "a", 2),
        ("2", "a", 1),
    ]
    np.testing.assert_array_equal(data.X, np.float32([[np.nan, 9, 0.25], [1, 8, np.nan], [3, np.nan, 0.5]]))
    alone = mcrank.join_trec(QRELS, runs=runs["bm25"])
    assert alone.feature_names == ("run",)


def test_categories_stay_categories():
    """Their codes mean nothing by themselves: as numbers they would be ordered by name."""
    table = {"brand": ["oak", "elm", "oak"], "length": [1.0, 2.0, 3.0], "qid": [1, 1, 2], "doc_id": [*"aza"]}
    features = mcrank.read(table | {"label": [0, 0, 0]})
    runs = {"bm25": mcrank.Run(["1", "1"], ["b", "a"], [9.0, 8.0])}
    for data, brands in (
        (mcrank.join_trec(QRELS, features), ["oak", "elm", "oak"]),
        (mcrank.join_trec(QRELS, features, runs), [None, "oak"]),
    ):
        assert data.categories == {0: ("elm", "oak")}
        codes = data.X[:, 0].tolist()
        assert [None if c != c else data.categories[0][int(c)] for c in codes] == brands
    ranker = mcrank.McRank(n_estimators=1, n_jobs=1).fit(mcrank.join_trec(QRELS, features))
    assert ranker.categories_ == {0: ("elm", "oak")}


def test_what_cannot_be_joined(features):
    with pytest.raises(mcrank.DataError, match="needs features or runs"):
        mcrank.join_trec(QRELS)
    with pytest.raises(mcrank.DataError, match="no document ids"):
        mcrank.join_trec(QRELS, mcrank.Dataset([[1.0]], [0], [1]))
    with pytest.raises(mcrank.DataError, match="document 'a' of query 1 twice"):
        mcrank.join_trec(QRELS, mcrank.Dataset([[1.0], [2.0]], [0, 0], [1, 1], doc_ids=["a", "a"]))
    with pytest.raises(mcrank.DataError, match="no pair of query and document is left"):
        mcrank.join_trec(QRELS, runs=mcrank.Run(["q1"], ["a"], [1.0]))
    with pytest.raises(mcrank.OptionError, match="unjudged of join_trec"):
        mcrank.join_trec(QRELS, features, unjudged="error")
    runs = {"bm25": mcrank.Run(["1"], ["a"], [1e39])}
    with pytest.raises(mcrank.DataError, match="feature 'bm25' of join_trec has inf at row 0"):
        mcrank.join_trec(QRELS, runs=runs)
    with pytest.raises(mcrank.DataError, match="runs of join_trec must be a Run, or a mapping"):
        mcrank.join_trec(QRELS, runs=[*runs.values()])
    with pytest.raises(mcrank.DataError, match="run 'bm25' of join_trec must be a Run, got 5"):
        mcrank.join_trec(QRELS, runs={"bm25": 5})


@pytest.mark.parametrize("unjudged", ["zero", "drop"])
def test_weights_come_with_the_features(unjudged):
    qrels = Qrels([1, 1, 2], ["a", "b", "c"], [1, 0, 2])
    given = {"weight": [4.0, 1.0, 2.0, 3.0], "query_weight": {2: 7.0, 1: 5.0}}
    features = Dataset(
        [[1.0], [2.0], [3.0], [4.0]], [0] * 4, [2, 1, 1, 1], doc_ids=["c", "a", "b", "u"], **given
    )
    found = join_trec(qrels, features, unjudged=unjudged)
    weights = dict(zip(found.doc_ids.tolist(), found.weight.tolist(), strict=True))
    assert weights == {"c": 4.0, "a": 1.0, "b": 2.0} | ({"u": 3.0} if unjudged == "zero" else {})
    assert dict(zip(found.qids.tolist(), found.query_weight.tolist(), strict=True)) == {"2": 7.0, "1": 5.0}


def test_what_a_run_adds_has_no_weight():
    qrels = Qrels([1, 2], ["a", "b"], [1, 0])
    run = Run([1, 2], ["a", "b"], [1.0, 2.0])
    rows = {"X": [[1.0]], "y": [0], "qid": [1], "doc_ids": ["a"]}
    with pytest.raises(DataError, match="document 'b' of query '2'"):
        join_trec(qrels, Dataset(**rows, weight=[2.0]), run)
    with pytest.raises(DataError, match="not query '2'"):
        join_trec(qrels, Dataset(**rows, query_weight=[2.0]), run)
    assert join_trec(qrels, Dataset(**rows), run).weight is None
