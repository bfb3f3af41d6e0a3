"""What every scorer promises, whichever it is: one prediction, one description in arrays, checked again."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net

TRAIN, VALID, TEST = mcrank.make_artificial(n_train=12, n_valid=6, n_test=6, seed=4)
MEMBERS = [mcrank.BestFeature(n_jobs=1), mcrank.McRank(n_estimators=2, num_leaves=3, n_jobs=1)]
RANKERS = {
    "forest": mcrank.McRank(n_estimators=3, num_leaves=4, n_jobs=1),
    "linear": mcrank.AdaRank(n_estimators=3, n_jobs=1),
    "net": mcrank.RankNet(hidden="3", epochs=1, n_jobs=1),
    "sum": mcrank.Blend(members=MEMBERS, method="equal", n_jobs=1),
}
CLASSES = {"forest": Forest, "linear": Linear, "net": Net, "sum": WeightedSum}


@pytest.fixture(scope="module", params=sorted(RANKERS))
def fitted(request):
    return request.param, RANKERS[request.param].fit(TRAIN, valid=VALID)


def test_a_ranker_is_its_scorer_and_its_head(fitted):
    kind, ranker = fitted
    scorer, head = ranker.scorer_, ranker.head_
    assert isinstance(scorer, CLASSES[kind])
    assert (scorer.n_features, scorer.n_outputs) == (TRAIN.n_features, head.n_outputs)
    raw = scorer.raw(TEST.X, 1, TEST.offsets)
    assert raw.shape == (head.n_outputs, TEST.n_rows)
    assert raw.dtype == np.float64
    np.testing.assert_array_equal(ranker.predict(TEST), TEST.to_caller(head.rank(raw)))
    np.testing.assert_array_equal(ranker.predict(TEST.X), head.rank(raw))


def test_threads_and_company_change_nothing(fitted):
    _, ranker = fitted
    whole = ranker.scorer_.raw(TEST.X)
    np.testing.assert_array_equal(ranker.scorer_.raw(TEST.X, n_jobs=3), whole)
    np.testing.assert_array_equal(ranker.scorer_.raw(TEST.X[5:6]), whole[:, 5:6])


def test_state_is_options_scorer_and_head(fitted):
    _, ranker = fitted
    meta, arrays = ranker.state()
    for name, array in getattr(ranker, "learned_", ranker.scorer_).to_arrays().items():
        np.testing.assert_array_equal(arrays[name], array)
    again = type(ranker).from_state(json.loads(json.dumps(meta)), arrays)
    np.testing.assert_array_equal(again.predict(TEST), ranker.predict(TEST))
    assert (meta.get("grades") is None) == (ranker.head_.values is None)


def test_importances_are_shares_or_no_attribute(fitted):
    kind, ranker = fitted
    shares = ranker.scorer_.importances()
    assert (shares is None) == (kind in ("net", "sum")) == (not hasattr(ranker, "feature_importances_"))
    if shares is not None:
        np.testing.assert_array_equal(ranker.feature_importances_, shares)
        assert shares.sum() == pytest.approx(1)


def test_a_sum_in_each_query_needs_the_queries():
    ranker = mcrank.Blend(members=MEMBERS, method="equal", standard="query", n_jobs=1)
    ranker.fit(TRAIN, valid=VALID)
    assert ranker.predict(TEST).shape == (TEST.n_rows,)
    with pytest.raises(mcrank.DataError, match="needs to know the queries"):
        ranker.predict(TEST.X)


def test_outputs_that_do_not_fit_the_head_are_refused():
    ranker = RANKERS["forest"].fit(TRAIN)
    meta, arrays = ranker.state()
    fewer = meta | {"grades": meta["grades"][:-1]}
    with pytest.raises(mcrank.ModelFileError, match="outputs"):
        type(ranker).from_state(fewer, arrays)
