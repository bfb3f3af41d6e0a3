"""A forest is a function of the queries, not of where they lie: moving whole queries changes no byte."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank.rankers.registry import to_bytes

SMALL = {"n_estimators": 8, "num_leaves": 6, "n_jobs": 1}
KINDS = [
    ("McRank", {}),
    ("McRank", {"split": "newton", "init": "prior"}),
    ("McRank", {"base_class": "adaptive", "base_gap": 1, "base_search": 4}),
    ("McRank", {"subsample": 0.5, "colsample": 0.7, "init": "prior"}),
    ("OrdinalMcRank", {"init": "prior"}),
    ("RegressionRanker", {}),
    ("RegressionRanker", {"loss": "lad"}),
    ("LambdaMART", {}),
    ("LambdaMART", {"split": "mse", "norm": True}),
    ("GBRank", {}),
    ("GBRank", {"form": "average"}),
    ("FRank", {"scorer": "trees"}),
    ("McRank", {"goss": True, "learning_rate": 1.0}),
    ("McRank", {"goss": True, "learning_rate": 1.0, "base_class": "adaptive"}),
    ("LambdaMART", {"goss": True, "learning_rate": 1.0}),
]


def made(weighted: bool, queries: int, seed: int) -> mcrank.Dataset:
    stream = np.random.default_rng(seed)
    sizes = stream.integers(2, 15, queries)
    rows = int(sizes.sum())
    X = stream.normal(size=(rows, 5)).round(1)
    X[stream.random(X.shape) < 0.1] = np.nan
    y = np.clip(np.nansum(X[:, :2], axis=1) + stream.normal(size=rows), 0, 3).astype(int)
    weights = (stream.random(rows) + 0.1, stream.random(queries) + 0.1) if weighted else (None, None)
    return mcrank.Dataset(X, y, np.repeat(stream.permutation(queries), sizes), *weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_the_order_of_queries_does_not_matter(kind, options, weighted):
    train, valid = made(weighted, 40, 1), made(weighted, 15, 2)
    stream = np.random.default_rng(3)
    moved = [data.select(stream.permutation(data.n_queries)) for data in (train, valid)]
    ranker = getattr(mcrank, kind)(**SMALL, **options)
    one = to_bytes(ranker.fit(train, valid=valid))
    assert to_bytes(ranker.fit(moved[0], valid=moved[1])) == one
    assert ranker.n_rounds_ == SMALL["n_estimators"]


@pytest.mark.parametrize("kind", ["McRank", "OrdinalMcRank"])
def test_zeros_of_both_signs_are_one_grade(kind):
    data = made(False, 20, 4)
    signed = np.where((data.y == 0) & (np.arange(data.n_rows) % 2 == 0), -0.0, data.y)
    qid = np.repeat(data.qids, data.sizes)
    ranker = getattr(mcrank, kind)(**SMALL)
    one = to_bytes(ranker.fit(data))
    assert to_bytes(ranker.fit(data.X, signed, qid=qid)) == one
    assert to_bytes(ranker.fit(data.X, data.y * np.where(data.y == 0, -1.0, 1.0), qid=qid)) == one
