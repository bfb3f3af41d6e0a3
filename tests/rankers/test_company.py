"""A row has the same score, to the last bit, alone and in any company: a service that scores ten documents
and a batch that scores them all must not disagree about ties.
"""

from __future__ import annotations

import numpy as np
import pytest

from mcrank.scorers.heads import Head
from mcrank.scorers.odds import Odds
from tests.export import bed


@pytest.mark.parametrize("name", sorted(bed._RANKERS))
def test_rankers(name):
    ranker, X = bed.ranker(name), np.asarray(bed.data(20, seed=3).X)
    whole = ranker.predict(X)
    alone = np.concatenate([ranker.predict(X[i : i + 1]) for i in range(len(X))])
    assert np.array_equal(alone, whole)
    parts = [ranker.predict(X[:7]), ranker.predict(np.asfortranarray(X[7:100])), ranker.predict(X[100:])]
    assert np.array_equal(np.concatenate(parts), whole)
    order = np.random.default_rng(0).permutation(len(X))
    assert np.array_equal(ranker.predict(X[order]), whole[order])


@pytest.mark.parametrize("grades", [2, 3, 5, 8, 9, 17, 33])
@pytest.mark.parametrize("kind", ["softmax", "one-each", "base-pairs", "cumulative"])
def test_heads(kind, grades):
    """Sums of eight and more are added up otherwise by NumPy, depending on what lies beside them."""
    values = np.arange(float(grades))
    kept = 0.0 if kind == "cumulative" else 0.25
    odds = Odds.of([1.5, 0.5], -np.arange(grades - 1.0), np.full(grades, 0.01), values, kept, [0.5])
    for head in (Head(kind, values), Head(kind, values, odds)):
        raw = np.random.default_rng(grades).normal(size=(100, head.n_outputs)).T * 3
        for made in (head.rank, head.proba):
            columns = [made(raw[:, i : i + 1]) for i in range(100)]
            assert np.array_equal(np.concatenate(columns, axis=-1), made(raw))
            assert np.array_equal(made(np.ascontiguousarray(raw)), made(raw))
