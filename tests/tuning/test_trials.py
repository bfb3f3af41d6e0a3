"""Trials: the pooled held-out measure by rounds, against fits made one by one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mcrank
from mcrank.data.folds import deal
from mcrank.errors import DataError, OptionError
from mcrank.tuning.space import space_of
from mcrank.tuning.trial import PATIENCE, Trials, query_values, smoothed

DATA = mcrank.make_artificial(30, 1, 1, docs_per_query=8, n_features=4, seed=3).train
SMALL = {"n_estimators": 24, "num_leaves": 4, "min_samples_leaf": 5}


def test_a_trial_is_what_separate_fits_measure():
    space = space_of("regression", SMALL, {})
    trial = Trials(DATA, space, 3, seed=1, n_jobs=2).run(0, space.start)
    part = deal(DATA, np.full(3, 1 / 3), 1)
    curves, sizes = [], []
    for fold in range(3):
        train, held = DATA.select(part != fold), DATA.select(part == fold)
        ranker = mcrank.RegressionRanker(**SMALL, n_jobs=1).fit(train, valid=held)
        curves.append(ranker.history_["ndcg@10"])
        sizes.append(held.n_queries)
    expected = np.average(curves, axis=0, weights=sizes)
    np.testing.assert_allclose(trial.curve, expected, rtol=1e-12)
    naive = [np.mean(expected[max(0, n - 5) : n + 6]) for n in range(24)]
    assert trial.rounds == int(np.argmax(naive)) + 1
    assert trial.value == pytest.approx(max(naive))
    assert trial.state == "complete"


def test_threads_change_nothing():
    space = space_of("lambdamart", SMALL, {"num_leaves": (3, 6)})
    trials = [Trials(DATA, space, 4, 0, jobs).run(0, {**space.start, "subsample": 0.7}) for jobs in (1, 2, 5)]
    assert trials[0] == trials[1] == trials[2]


def test_pruning_and_time_end_a_trial():
    space = space_of("regression", SMALL, {})
    trials = Trials(DATA, space, 2, 0, 1)
    told = []

    def prune(step, value):
        told.append((step, value))
        return step >= 20

    pruned = trials.run(0, space.start, prune=prune)
    assert pruned.state == "pruned"
    assert len(pruned.curve) == 20
    assert pruned.reported == told
    assert trials.run(0, space.start, over=lambda: True).state == "cut"


def test_training_stops_when_nothing_gets_better():
    options = {"n_estimators": 400, "num_leaves": 4, "learning_rate": 0.5}
    space = space_of("regression", options, {})
    trial = Trials(DATA, space, 2, 0, 1).run(0, space.start)
    assert len(trial.curve) < 400
    assert trial.rounds <= len(trial.curve) - PATIENCE


@pytest.mark.parametrize("name", ["ranksvm", "coordinate-ascent", "adarank", "rankboost", "ranknet"])
def test_rankers_of_other_kinds(name):
    more = {"restarts": 1} if name == "coordinate-ascent" else {"epochs": 3} if name == "ranknet" else {}
    space = space_of(name, more, {})
    trial = Trials(DATA, space, 2, 0, 2).run(0, space.start)
    assert trial.state == "complete"
    assert 0 < trial.value <= 1
    assert trial.rounds == 1 or space.rounds is not None


def test_options_that_do_not_go_together_fail_the_trial():
    space = space_of("mcrank", {**SMALL, "goss": True, "top_rate": 0.9}, {"other_rate": (0.05, 0.9)})
    trial = Trials(DATA, space, 2, 0, 1).run(0, {**space.start, "subsample": 1.0, "other_rate": 0.5})
    assert trial.state == "failed"
    assert "must add up to at most 1" in trial.error


def test_too_few_queries():
    space = space_of("regression", SMALL, {})
    with pytest.raises(DataError, match="at least two queries for each of its 4 folds"):
        Trials(DATA.select(np.arange(7)), space, 4, 0, 1)


def test_smoothing_keeps_constants_and_the_mean():
    np.testing.assert_allclose(smoothed(np.full(30, 0.4)), 0.4)
    curve = np.random.default_rng(0).random(40)
    assert smoothed(curve)[20] == pytest.approx(curve[15:26].mean())


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5, 6, 7, 12])
def test_a_curve_that_rises_is_best_at_its_end_however_short_it_is(rounds):
    curve = np.linspace(0.3, 0.6, rounds)
    assert smoothed(curve).argmax() == rounds - 1
    np.testing.assert_allclose(smoothed(np.full(rounds, 0.4)), 0.4)


def test_a_short_training_is_not_cut_to_one_round():
    space = space_of("regression", {"n_estimators": 4, "num_leaves": 6, "learning_rate": 0.3}, {})
    trial = Trials(DATA, space, 2, 0, 1).run(0, space.start)
    assert trial.rounds == int(smoothed(np.array(trial.curve)).argmax()) + 1
    assert trial.value > np.mean(trial.curve)


def test_goss_leaves_subsample_no_choice():
    space = space_of("lambdamart", {"goss": True}, {})
    assert "subsample" not in space.ranges
    assert "subsample" in space_of("lambdamart", {"goss": False}, {}).ranges
    assert "subsample" in space_of("lambdamart", {"goss": True}, {"subsample": (0.5, 0.9)}).ranges


def test_values_are_those_of_evaluate():
    scores = np.random.default_rng(1).random(DATA.n_rows)
    expected = mcrank.evaluate(scores, DATA, ["ndcg@10"]).by_query("ndcg@10", counted=True)
    assert query_values(mcrank.NDCG(k=10), DATA, scores) == pytest.approx(expected)


def weighted(queries, seed):
    stream = np.random.default_rng(seed)
    grades = stream.integers(0, 3, queries * 6) * np.repeat(stream.random(queries) < 0.9, 6)  # some are empty
    weight = stream.integers(0, 9, queries).astype(float)
    return mcrank.Dataset(
        stream.random((queries * 6, 2)), grades, np.repeat(np.arange(queries), 6), query_weight=weight
    )


@pytest.mark.parametrize("name", ["ndcg@10", "map", "map[catboost]", "ndcg@3[lightgbm]", "ndcg@3[gdeval]"])
def test_values_of_queries_with_weights_have_the_mean_and_the_spread_of_the_measure(name):
    data, measure = weighted(400, 1), mcrank.parse_measure(name)
    scores, qid = data.X[:, 0].astype(float), np.repeat(np.arange(400), 6)
    found = np.array(list(query_values(measure, data, scores).values()))
    assert found.mean() == pytest.approx(measure.on(data).mean(scores), rel=1e-12)
    stream, means = np.random.default_rng(3), []
    for _ in range(300):  # the measure of other queries, as a bootstrap draws them
        queries = stream.integers(0, 400, 400)
        rows = (6 * queries[:, None] + np.arange(6)).ravel()
        drawn = mcrank.Dataset(data.X[rows], data.y[rows], qid, query_weight=data.query_weight[queries])
        means.append(measure.on(drawn).mean(scores[rows]))
    assert found.std() / len(found) ** 0.5 == pytest.approx(np.std(means), rel=0.15)


@pytest.mark.parametrize(
    ("ranker", "options", "ranges", "words"),
    [
        ("lambdmart", {}, {}, "did you mean lambdamart"),
        (3, {}, {}, "must be a ranker, its class or its name"),
        ("mcrank", {"num_leafs": 3}, {}, "has no option 'num_leafs'"),
        ("mcrank", {}, {"leaves": (3, 4)}, "has no option 'leaves'"),
        ("mcrank", {"num_leaves": 1}, {}, "num_leaves of McRank must be"),
        ("mcrank", {}, {"num_leaves": (64, 4)}, "must rise"),
        ("mcrank", {}, {"n_estimators": (10, 20)}, "tried anyway"),
        ("mcrank", {}, {"n_jobs": (1, 2)}, "never changes the model"),
        ("best-feature", {}, {}, "no option to search"),
        ("mcrank", {}, {"measure": ["ndcg@10", "map"]}, "what trials are judged by"),
        ("mcrank", {}, {"dialect": ["yahoo", "trec"]}, "what trials are judged by"),
        ("mcrank", {}, {"early_stopping_rounds": [5, 20]}, "when a trial ends"),
        ("mcrank", {}, {"preset": ["paper", "fast"]}, "stands for other options"),
        ("mcrank", {}, {"num_leaves": np.array([4, 8])}, "num_leaves of McRank must be low..high"),
        ("ordinal", {}, {"monotone": [{"f1": 1}, {"f1": 1}]}, "at least two values"),
    ],
)
def test_wrong_searches_are_refused(ranker, options, ranges, words):
    with pytest.raises(OptionError, match=words):
        space_of(ranker, options, ranges)


def test_what_was_set_stays_and_ranges_win():
    space = space_of(mcrank.McRank(num_leaves=7, l2=0.5), {"split": "newton"}, {"l2": (0.1, 1.0)})
    assert "num_leaves" not in space.ranges
    assert "split" not in space.ranges
    assert space.start["l2"] == 0.5
    ranker = space.ranker({"l2": 0.3})
    assert (ranker.num_leaves, ranker.split, ranker.l2) == (7, "newton", 0.3)


def test_what_equals_a_default_is_searched_whichever_object_it_is():
    plain = space_of(mcrank.LambdaMART(), {}, {})
    assert {"learning_rate", "split", "colsample"} <= set(plain.ranges)
    for same in (pickle.loads(pickle.dumps(mcrank.LambdaMART())), mcrank.LambdaMART(learning_rate=1 / 10)):
        assert space_of(same, {}, {}) == plain
    listed = space_of(mcrank.LambdaMART(monotone=np.array([1, 0, -1])), {}, {})
    assert listed.ranges == plain.ranges
    assert listed.fixed["monotone"].tolist() == [1, 0, -1]


def test_what_is_said_beside_a_preset_stays_although_it_is_the_default():
    said = {"learning_rate": 0.1, "early_stopping_rounds": None}
    space = space_of(mcrank.LambdaMART(preset="fast", **said), {}, {})
    assert "learning_rate" not in space.ranges
    params = space.ranker({}).get_params()
    assert {name: params[name] for name in said} == said
    assert params["max_bins"] == 64
