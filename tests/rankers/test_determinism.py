"""The same bytes of the model file for any number of threads and for repeated runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mcrank import Dataset, McRank, OrdinalMcRank, RegressionRanker
from mcrank.rankers.registry import to_bytes
from tests.rankers.data import few_values

BASE = {"n_estimators": 6, "num_leaves": 12, "min_samples_leaf": 4}
VARIANTS = {
    "plain": {},
    "sampled": {"subsample": 0.5, "colsample": 0.4, "random_state": 3},
    "newton": {"split": "newton"},
    "wide": {"max_bins": 1000},
    "quantile": {"binning": "quantile", "max_bins": 20},
    "refined": {"binning": "adaptive-refined", "max_bins": 33},
}
KINDS = {
    "mcrank": (McRank, {}),
    "sequential": (McRank, {"sequential": True}),
    "ordinal": (OrdinalMcRank, {}),
    "l2": (RegressionRanker, {}),
    "lad": (RegressionRanker, {"loss": "lad"}),
}


def noisy(rows, *, weighted=False, missing=0.1, seed=5, features=11):
    stream = np.random.default_rng(seed)
    X = stream.normal(size=(rows, features)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 3] * X[:, 4] + 1.5 + stream.normal(size=rows)), 0, 4)
    X[stream.random(X.shape) < missing] = np.nan
    qid = np.arange(rows) // 15
    weight = stream.uniform(0, 3, rows) if weighted else None
    query_weight = stream.uniform(0, 2, qid[-1] + 1) if weighted else None
    return Dataset(X, y, qid, weight, query_weight)


def models(kind, options, data, valid=None, jobs=(1, 2, 4, 1)):
    return [to_bytes(kind(n_jobs=n, **options).fit(data, valid=valid)) for n in jobs]


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow, id="unweighted"), True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_small_data(kind, variant, weighted):
    ranker, own = KINDS[kind]
    data, valid = noisy(700, weighted=weighted), noisy(150, seed=6)
    found = models(ranker, BASE | own | VARIANTS[variant], data, valid)
    assert len(set(found)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("variant", ["plain", "sampled", "newton", "wide"])
@pytest.mark.parametrize("kind", ["mcrank", "ordinal", "l2", "sequential"])
def test_data_large_enough_to_share_a_tree(kind, variant, weighted):
    if kind == "sequential" and variant != "plain":
        variant = "newton"
    ranker, own = KINDS[kind]
    data = noisy(21_000, weighted=weighted, features=37 if variant == "plain" else 18)
    options = BASE | own | VARIANTS[variant] | {"n_estimators": 2}
    found = models(ranker, options, data, jobs=(1, 2, 4))
    assert len(set(found)) == 1


def test_the_seed_matters_only_where_something_is_sampled():
    data = noisy(500)
    plain = [McRank(random_state=s, **BASE).fit(data).predict(data) for s in (0, 1)]
    assert np.array_equal(*plain)
    drawn = [McRank(random_state=s, subsample=0.5, **BASE).fit(data).predict(data) for s in (0, 1)]
    assert not np.array_equal(*drawn)


@pytest.mark.parametrize("kind", [McRank, OrdinalMcRank, RegressionRanker])
def test_the_order_of_queries_does_not_choose_them(kind):
    """The same queries are drawn wherever they lie, so the trees are the same, and so are the scores."""
    X, y, qid = few_values(9, 600, 5, 8, 3)
    order = np.random.default_rng(1).permutation(60)
    rows = np.concatenate([np.flatnonzero(qid == q) for q in order])
    options = BASE | {"subsample": 0.4, "colsample": 0.6, "min_samples_leaf": 10}
    one = kind(**options).fit(X, y, qid=qid)
    other = kind(**options).fit(X[rows], y[rows], qid=qid[rows])
    assert np.array_equal(one.forest_.feature, other.forest_.feature)
    assert np.array_equal(one.forest_.threshold, other.forest_.threshold)
    assert one.predict(X) == pytest.approx(other.predict(X), rel=1e-12)


def test_sampling_sees_only_the_queries_drawn():
    """With one query drawn a round, a tree has the rows of that query."""
    X, y, qid = few_values(10, 300, 3, 8, 3)
    ranker = McRank(n_estimators=20, subsample=1e-6, min_samples_leaf=1, num_leaves=3).fit(X, y, qid=qid)
    roots = ranker.forest_.rows[ranker.forest_.tree_offsets[:-1]]
    assert set(roots.tolist()) == {10}
    sampled = RegressionRanker(n_estimators=4, subsample=0.5).fit(X, y, qid=qid)
    assert set(sampled.forest_.rows[sampled.forest_.tree_offsets[:-1]].tolist()) == {150}


def test_each_tree_sees_only_the_features_drawn():
    data = noisy(600, features=20)
    ranker = RegressionRanker(n_estimators=30, colsample=0.1, num_leaves=8).fit(data)
    used = [
        set(part[part >= 0].tolist())
        for part in np.split(ranker.forest_.feature, ranker.forest_.tree_offsets[1:-1])
    ]
    assert all(len(features) <= 2 for features in used)
    assert len(set.union(*used)) > 10


def test_the_trees_of_a_round_draw_their_own_features():
    ranker = OrdinalMcRank(n_estimators=10, colsample=0.1, num_leaves=4).fit(noisy(600, features=20))
    forest = ranker.forest_
    roots = forest.feature[forest.tree_offsets[:-1]].reshape(10, 4)
    assert sum(len(set(row)) > 1 for row in roots.tolist()) >= 8


def test_rows_left_out_still_move():
    """Scores of rows that a round did not see are moved too: predictions replay training."""
    data = noisy(400, missing=0.3)
    seen = []
    ranker = RegressionRanker(n_estimators=15, subsample=0.3, n_jobs=1)
    ranker.fit(data, valid=data, callback=lambda event: seen.append(event.scores["ndcg@10"]))
    half = RegressionRanker(n_estimators=15, subsample=0.3, n_jobs=1).fit(data)
    assert half.forest_.n_trees == 15
    assert max(seen) == pytest.approx(ranker.score(data), abs=1e-12)


def test_rankers_trained_at_the_same_time_do_not_meet():
    data, other = noisy(900), noisy(900, seed=8, weighted=True)
    jobs = [(McRank, data), (OrdinalMcRank, other), (RegressionRanker, data), (McRank, other)] * 2
    alone = [to_bytes(kind(n_jobs=2, **BASE).fit(d)) for kind, d in jobs[:4]]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda job: to_bytes(job[0](n_jobs=2, **BASE).fit(job[1])), jobs))
    assert together == alone * 2
