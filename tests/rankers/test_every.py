"""What holds for every ranker of the registry, whatever its family."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import mcrank
from mcrank import Dataset
from mcrank.errors import DataError, McrankError, MeasureError, NotFittedError, OptionError
from mcrank.rankers.registry import RANKERS, from_bytes, ranker_class, to_bytes
from tests.rankers.data import few_values

SMALL = {
    "n_estimators": 4,
    "num_leaves": 4,
    "min_samples_leaf": 3,
    "epochs": 3,
    "restarts": 2,
    "max_sweeps": 3,
    "members": "ranksvm,best-feature",
}
FAMILIES = {"pointwise", "pairwise", "listwise", "baseline", "mixture"}


def make(name, **options):
    kind = ranker_class(name)
    small = {option: value for option, value in SMALL.items() if option in kind.declared_options}
    return kind(**(small | {"n_jobs": 1} | options))


def data(seed=5, missing=0.1):
    X, y, qid = few_values(seed, 120, 4, 8, 3, missing=missing)
    return Dataset(X, y, qid)


TRAIN, VALID = data(5), data(6)
FITTED = {name: make(name).fit(TRAIN, valid=VALID) for name in RANKERS}


@pytest.mark.parametrize("name", RANKERS)
def test_scores_are_finite_one_per_row_and_beat_nothing_learned(name):
    ranker = FITTED[name]
    scores = ranker.predict(TRAIN)
    assert scores.shape == (TRAIN.n_rows,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    rng = np.random.default_rng(0)
    bound = mcrank.NDCG(k=10).on(TRAIN)
    by_chance = np.mean([bound.mean(rng.random(TRAIN.n_rows)) for _ in range(50)])
    assert ranker.score(TRAIN) > by_chance


@pytest.mark.parametrize("name", RANKERS)
def test_the_card_and_the_facts_of_training(name):
    ranker = FITTED[name]
    assert ranker.card.family in FAMILIES
    assert ranker.card.loss
    assert ranker.card.scorer
    assert 1 <= ranker.best_round_ <= ranker.n_rounds_
    for values in ranker.history_.values():
        assert len(values) == ranker.n_rounds_


@pytest.mark.parametrize("name", RANKERS)
def test_threads_and_repeats_change_nothing(name):
    content = to_bytes(FITTED[name])
    assert to_bytes(make(name, n_jobs=2).fit(TRAIN, valid=VALID)) == content
    assert to_bytes(from_bytes(content)) == content


@pytest.mark.parametrize("name", RANKERS)
def test_copies_and_clones(name):
    ranker = FITTED[name]
    again = pickle.loads(pickle.dumps(ranker))
    assert np.array_equal(again.predict(VALID), ranker.predict(VALID))
    twin = clone(ranker)
    assert twin.get_params() == ranker.get_params()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        twin.predict(VALID)


@pytest.mark.parametrize("name", RANKERS)
def test_scores_come_back_in_the_caller_s_order(name):
    X, y, qid = few_values(8, 60, 4, 6, 3)
    shuffled = np.random.default_rng(1).permutation(60)
    mixed = Dataset(X[shuffled], y[shuffled], qid[shuffled])
    assert np.array_equal(FITTED[name].predict(mixed), FITTED[name].predict(X)[shuffled])


@pytest.mark.parametrize("name", RANKERS)
def test_bad_input_is_named(name):
    ranker = FITTED[name]
    with pytest.raises(DataError, match=r"X has 2 features, but .* is expecting 4"):
        ranker.predict(np.zeros((3, 2)))
    with pytest.raises(OptionError, match="has no option"):
        make(name, no_such_option=1)
    with pytest.raises(OptionError, match=r"n_jobs of .* must be an integer >= 1"):
        make(name, n_jobs=0).fit(TRAIN, valid=VALID)
    assert make(name, n_jobs=-1).checked_options()["n_jobs"] is None
    with pytest.raises(MeasureError, match="unknown measure"):
        make(name, measure="ndgc@10").fit(TRAIN, valid=VALID)
    with pytest.raises(MeasureError, match="unknown dialect"):
        make(name, dialect="yahooo").fit(TRAIN, valid=VALID)


@pytest.mark.parametrize("dialect", ["yahoo", "letor4", "lightgbm", "trec"])
@pytest.mark.parametrize("name", RANKERS)
def test_any_dialect_can_be_trained_towards(name, dialect):
    ids = [f"d{i}" for i in range(TRAIN.n_rows)]
    parts = [Dataset(d.X, d.y, d.qid, doc_ids=ids) for d in (TRAIN, VALID)]
    ranker = make(name, measure="ndcg@5", dialect=dialect).fit(parts[0], valid=parts[1])
    assert ranker.options_["measure"] == f"ndcg@5[{dialect}]"
    assert np.isfinite(ranker.predict(parts[1])).all()


@pytest.mark.parametrize("measure", ["map", "err@5", "mrr"])
@pytest.mark.parametrize("name", RANKERS)
def test_any_measure_can_be_trained_towards(name, measure):
    ranker = make(name, measure=measure).fit(TRAIN, valid=VALID)
    assert np.isfinite(ranker.predict(VALID)).all()


X, Y, QID = few_values(9, 40, 4, 5, 3)
ODD = {
    "all grades equal": (X, np.ones(40), QID),
    "no relevant document": (X, np.zeros(40), QID),
    "one document a query": (X, Y, np.arange(40)),
    "constant features": (np.ones((40, 4), dtype=np.float32), Y, QID),
    "missing features": (np.full((40, 4), np.nan, dtype=np.float32), Y, QID),
    "one query with grades": (X, Y * np.equal(QID, QID[0]), QID),
    "two rows": (X[:2], np.array([0.0, 1.0]), np.array([1, 1])),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", RANKERS)
def test_odd_data_train_to_finite_scores_or_say_why_not(name, odd):
    features, grades, queries = ODD[odd]
    try:
        ranker = make(name).fit(features, grades, qid=queries, valid=(X, Y, QID))
    except McrankError:  # any other exception, or a warning, fails
        return
    assert np.isfinite(ranker.predict(X)).all()
    again = from_bytes(to_bytes(ranker))
    assert np.array_equal(again.predict(X), ranker.predict(X))
