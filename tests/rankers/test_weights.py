"""Row and query weights in loss and measure."""

from __future__ import annotations

import numpy as np
import pytest

from mcrank import NDCG, Dataset, McRank, OrdinalMcRank, RegressionRanker
from mcrank.errors import DataError
from tests.rankers.data import few_values

KINDS = {
    "mcrank": (McRank, {}),
    "binary": (McRank, {}),
    "sequential": (McRank, {"sequential": True}),
    "ordinal": (OrdinalMcRank, {}),
    "l2": (RegressionRanker, {}),
    "lad": (RegressionRanker, {"loss": "lad"}),
}
QUICK = {"n_estimators": 10, "num_leaves": 5, "min_samples_leaf": 1, "learning_rate": 0.2, "n_jobs": 1}


def case(kind, rows=240):
    X, y, qid = few_values(21, rows, 4, 9, 2 if kind == "binary" else 4)
    return X, y, qid


@pytest.mark.parametrize("kind", KINDS)
def test_integer_weights_are_repeated_rows(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = ranker(**QUICK, **own).fit(X, y, qid=qid, weight=weight)
    repeated = ranker(**QUICK, **own).fit(X[rows], y[rows], qid=qid[rows])
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_one_change_nothing(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    plain = ranker(**QUICK, **own).fit(X, y, qid=qid)
    ones = ranker(**QUICK, **own).fit(X, y, qid=qid, weight=np.ones(len(y)))
    assert ones.predict(X) == pytest.approx(plain.predict(X), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_scale_of_weights_does_not_matter(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    weight = np.random.default_rng(1).uniform(0.1, 2, len(y))
    one, big, small = (
        ranker(**QUICK, **own).fit(X, y, qid=qid, weight=scale * weight).predict(X)
        for scale in (1, 1e9, 2.0**-40)
    )
    assert big == pytest.approx(one, abs=1e-6)
    assert small == pytest.approx(one, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_weight_are_not_learned(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    wrong = np.where(weight > 0, y, y.max() - y)
    weighted = ranker(**QUICK, **own).fit(X, wrong, qid=qid, weight=weight)
    kept = weight > 0
    alone = ranker(**QUICK, **own).fit(X[kept], y[kept], qid=qid[kept])
    assert weighted.predict(X[kept]) == pytest.approx(alone.predict(X[kept]), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_query_weights_multiply_row_weights(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    stream = np.random.default_rng(2)
    weight, query_weight = stream.uniform(0.1, 2, len(y)), stream.uniform(0.1, 2, 24)
    both = ranker(**QUICK, **own).fit(X, y, qid=qid, weight=weight, query_weight=query_weight)
    product = ranker(**QUICK, **own).fit(X, y, qid=qid, weight=weight * query_weight[qid])
    assert np.array_equal(both.predict(X), product.predict(X))
    only = ranker(**QUICK, **own).fit(X, y, qid=qid, query_weight=query_weight)
    assert not np.array_equal(only.predict(X), both.predict(X))


def test_query_weights_act_in_the_validation_mean():
    X, y, qid = case("mcrank")
    query_weight = np.where(np.arange(24) < 4, 5.0, 0.25)
    valid = Dataset(X, y, qid, query_weight=query_weight)
    ranker = McRank(calibrate=False, **QUICK).fit(
        X[:, ::-1], y, qid=qid, valid=Dataset(X[:, ::-1], y, qid, query_weight=query_weight)
    )
    assert len(ranker.history_["ndcg@10"]) == 10
    last = McRank(calibrate=False, **QUICK).fit(X, y, qid=qid, valid=valid)
    per_query = NDCG(k=10).on(valid).per_query(last.predict(X))
    assert max(last.history_["ndcg@10"]) == pytest.approx(
        np.average(per_query, weights=query_weight), abs=1e-12
    )
    assert last.score(valid) == pytest.approx(np.average(per_query, weights=query_weight), abs=1e-12)
    assert np.average(per_query, weights=query_weight) != pytest.approx(per_query.mean(), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_huge_and_tiny_weights(kind):
    ranker, own = KINDS[kind]
    X, y, qid = case(kind)
    for size in (1e150, 1e-150):
        weight = np.full(len(y), size)
        scores = ranker(**QUICK, **own).fit(X, y, qid=qid, weight=weight).predict(X)
        assert scores == pytest.approx(ranker(**QUICK, **own).fit(X, y, qid=qid).predict(X), abs=1e-5)


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank, RegressionRanker])
def test_weights_that_leave_nothing_are_refused(kind):
    X, y, qid = case("mcrank")
    weight = (qid < 12).astype(float)
    with pytest.raises(DataError, match="weight"):
        kind(**QUICK).fit(X, y, qid=qid, weight=weight, query_weight=(np.arange(24) >= 12).astype(float))
    with pytest.raises(DataError, match="weight"):
        kind(**QUICK).fit(X, y, qid=qid, weight=np.full(240, 1e200), query_weight=np.full(24, 1e200))
