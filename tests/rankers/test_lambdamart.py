"""LambdaMART: identities of the dialects, every measure, weights, and data with nothing to learn."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, LambdaMART
from mcrank.errors import MeasureError, OptionError
from mcrank.losses.lambdas import lambda_gradients
from mcrank.metrics.measure import MEASURES, parse_measure
from mcrank.rankers.registry import to_bytes
from tests.rankers.data import few_values
from tests.reference.forest import leaf_of

QUICK = {"n_estimators": 6, "num_leaves": 4, "min_samples_leaf": 5, "n_jobs": 1}
DATA = mcrank.make_artificial(n_train=80, n_valid=30, n_test=40, docs_per_query=30, seed=5)


def same_forest(one, other):
    left, right = one.forest_.to_arrays(), other.forest_.to_arrays()
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("split", ["mse", "newton"])
@pytest.mark.parametrize("norm", [False, True])
def test_leaves_are_newton_steps_of_the_lambdas(split, norm):
    data = Dataset(*few_values(4, 200, 3, 6, 3))
    ranker = LambdaMART(split=split, norm=norm, learning_rate=0.3, sigma=1.5, **QUICK).fit(data)
    forest = ranker.forest_
    F = np.zeros(data.n_rows)
    bound = mcrank.NDCG(k=10).on(data)
    for tree in range(forest.n_trees):
        slopes, curves = lambda_gradients(bound, F, 1.5, None, norm)
        leaves = np.array([leaf_of(forest, tree, row) for row in data.X])
        assert len(np.unique(leaves)) > 1
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            F[inside] += 0.3 * slopes[inside].sum() / curves[inside].sum()
    assert ranker.predict(data) == pytest.approx(F, abs=1e-5)


@pytest.mark.parametrize("split", ["mse", "newton"])
def test_yahoo_and_standard_train_the_same_forest(split):
    # The dialects differ in the base of the logarithm, a factor of the gain and the value of empty queries:
    # none of them changes what a swap is worth.
    empty = np.where(DATA.train.qid < DATA.train.qid[300], 0, DATA.train.y)
    train = Dataset(DATA.train.X, empty, DATA.train.qid)
    options = {"n_estimators": 60, "split": split, "n_jobs": 1}
    one, other, letor = (
        LambdaMART(**options, dialect=dialect).fit(train, valid=DATA.valid)
        for dialect in ("standard", "yahoo", "letor4;gain=exp")
    )
    assert same_forest(one, other)
    assert one.best_round_ == other.best_round_
    assert not same_forest(one, letor)


@pytest.mark.parametrize("truncation", [10, None])
def test_short_queries_teach_nothing_under_letor(truncation):
    sizes = np.r_[np.full(20, 9), np.full(20, 10)]
    qid = np.repeat(np.arange(40), sizes)
    stream = np.random.default_rng(0)
    X, y = stream.normal(size=(len(qid), 3)), stream.integers(0, 3, len(qid))
    long = qid >= 20
    options = {**QUICK, "measure": "ndcg@10", "dialect": "letor4", "truncation": truncation}
    whole = LambdaMART(**options).fit(X, y, qid=qid)
    # The same with the short queries' grades turned round: nothing in them is looked at.
    turned = LambdaMART(**options).fit(X, np.where(long, y, 2 - y), qid=qid)
    assert whole.forest_.n_trees > 0
    assert same_forest(whole, turned)
    standard = {**options, "dialect": "standard"}
    assert not same_forest(
        LambdaMART(**standard).fit(X, y, qid=qid),
        LambdaMART(**standard).fit(X, np.where(long, y, 2 - y), qid=qid),
    )
    nothing = LambdaMART(**options).fit(X[~long], y[~long], qid=qid[~long])
    assert nothing.forest_.n_trees == 0


CUT = {label: f"{label}@10" for label in ("ndcg", "dcg", "precision", "recall", "relative_p", "f")}
CUT |= {"success": "success@1", "err": "err(1)@10", "best": "best@1"}


@pytest.mark.parametrize("name", [CUT.get(label, label) for label in MEASURES])
def test_it_trains_on_every_measure(name):
    data = [Dataset(part.X, (part.y >= 2) * 0.5, part.qid) for part in DATA]  # probabilities, for pfound
    measure = parse_measure(name)
    ranker = LambdaMART(n_estimators=30, measure=name, n_jobs=2).fit(data[0], valid=data[1])
    assert ranker.options_["measure"] == measure.name
    prepared = measure.on(data[2])
    untrained = prepared.mean(np.random.default_rng(0).normal(size=data[2].n_rows))
    assert prepared.mean(data[2].to_grouped(ranker.predict(data[2]))) > untrained + 0.02


def test_training_on_a_measure_is_not_training_on_another():
    measures = (("ndcg@10", 10), ("ndcg@3", 3), ("map", None), ("err@10", None), ("mrr", None))
    forests = [LambdaMART(measure=m, truncation=ranks, **QUICK).fit(DATA.train) for m, ranks in measures]
    assert not any(same_forest(a, b) for i, a in enumerate(forests) for b in forests[:i])


def test_it_learns_and_is_the_same_on_any_number_of_threads():
    ranker = LambdaMART(n_estimators=40, n_jobs=1).fit(DATA.train, valid=DATA.valid)
    assert ranker.score(DATA.test) > mcrank.NDCG(k=10).on(DATA.test).mean(np.zeros(DATA.test.n_rows)) + 0.15
    for n_jobs in (2, 4):
        again = LambdaMART(n_estimators=40, n_jobs=n_jobs).fit(DATA.train, valid=DATA.valid)
        assert to_bytes(again) == to_bytes(ranker)


def test_whole_weights_of_queries_act_as_repeated_queries():
    X, y, qid = few_values(7, 100, 3, 6, 3)
    times = np.where(np.arange(10) < 5, 1, 2)
    repeated = np.concatenate([np.flatnonzero(qid == q) for q in range(10) for _ in range(times[q])])
    new_qid = np.repeat(np.arange(times.sum()), 10)
    options = {**QUICK, "split": "newton", "min_samples_leaf": 1}
    weighted = LambdaMART(**options).fit(X, y, qid=qid, query_weight=times.astype(float))
    copied = LambdaMART(**options).fit(X[repeated], y[repeated], qid=new_qid)
    assert weighted.predict(X) == pytest.approx(copied.predict(X), abs=1e-5)


def test_queries_without_weight_teach_nothing():
    X, y, qid = few_values(8, 200, 3, 6, 3)
    half = np.arange(20) < 10
    weighted = LambdaMART(**QUICK, split="newton").fit(X, y, qid=qid, query_weight=half.astype(float))
    turned = LambdaMART(**QUICK, split="newton").fit(
        X, np.where(half[qid], y, 2 - y), qid=qid, query_weight=half.astype(float)
    )
    assert same_forest(weighted, turned)


@pytest.mark.parametrize("options", [{}, {"split": "newton"}, {"norm": True}, {"measure": "map"}], ids=str)
def test_nothing_to_learn_gives_an_empty_forest(options):
    X, y, qid = few_values(1, 60, 3, 6, 3)
    for grades, queries in (
        (np.zeros(60), qid),  # no relevant document anywhere
        (np.full(60, 2.0), qid),  # all grades equal
        (y, np.arange(60)),  # queries of one document
    ):
        ranker = LambdaMART(**QUICK, **options).fit(X, grades, qid=queries, valid=(X, y, qid))
        assert ranker.forest_.n_trees == ranker.best_round_ == 0
        assert ranker.predict(X).tolist() == [0.0] * 60


def test_missing_and_constant_features():
    X, y, qid = few_values(6, 200, 3, 6, 3, missing=0.3)
    X = np.column_stack([X, np.zeros(200), np.full(200, np.nan)])
    ranker = LambdaMART(**QUICK).fit(X, y, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert ranker.feature_importances_[3:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("measure", ["ndcg@10", "dcg@10", "map@10", "precision@10"])
def test_truncation_keeps_pairs_of_the_first_ranks_only(measure):
    full, less = (LambdaMART(**QUICK, measure=measure, truncation=t).fit(DATA.train) for t in (10, 2))
    assert not same_forest(full, less)


def test_lambdas_of_ndcg_look_beyond_its_cut_off_unless_told_otherwise():
    default, as_told, of_30, of_10, of_40, told_40 = (
        LambdaMART(**QUICK, measure=measure, truncation=truncation).fit(DATA.train)
        for measure, truncation in (
            ("ndcg@10", None),
            ("ndcg@10", 30),
            ("ndcg@30", None),
            ("ndcg@10", 10),
            ("ndcg@40", None),
            ("ndcg@10", 40),
        )
    )
    assert same_forest(default, as_told)
    assert same_forest(default, of_30)
    assert not same_forest(default, of_10)
    assert same_forest(of_40, told_40)
    # Rounds are chosen by the measure itself.
    assert default.options_["measure"] == "ndcg@10"


@pytest.mark.parametrize("measure", ["map@10", "precision@10", "err@10", "ndcg"])
def test_other_measures_are_trained_on_as_they_are(measure):
    as_it_is = LambdaMART(**QUICK, measure=measure).fit(DATA.train)
    assert same_forest(as_it_is, LambdaMART(**QUICK, measure=measure, truncation=100).fit(DATA.train))


def test_a_query_longer_than_any_matrix_of_pairs_could_be():
    stream = np.random.default_rng(1)
    n = 200_000  # a matrix of pairs would take 320 GB
    X = stream.normal(size=(n, 2)).astype(np.float32)
    y = (X[:, 0] + stream.normal(size=n) > 3).astype(float)
    for measure in ("ndcg@10", "map@10"):
        ranker = LambdaMART(n_estimators=2, measure=measure, n_jobs=1).fit(X, y, qid=np.zeros(n))
        assert ranker.feature_importances_[0] > ranker.feature_importances_[1]


@pytest.mark.parametrize(
    "bad", [{"sigma": 0}, {"truncation": 0}, {"norm": 1}, {"learning_rate": -1}, {"truncation": 2.5}]
)
def test_options_out_of_bounds(bad):
    with pytest.raises(OptionError, match=next(iter(bad))):
        LambdaMART(**bad).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])


def test_grades_that_the_dialect_does_not_know():
    with pytest.raises(MeasureError, match="grade 5"):
        LambdaMART(dialect="letor4").fit([[0.0], [1.0]], [0, 5], qid=[1, 1])
