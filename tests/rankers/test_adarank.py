"""AdaRank: rounds worked by hand, a naive twin, its stopping rules, and what dialects change."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log

import numpy as np
import pytest

import mcrank
from mcrank import AdaRank, Dataset
from mcrank.errors import MeasureError, OptionError
from mcrank.rankers.registry import to_bytes
from mcrank.scorers.scaling import Scaling
from mcrank.training.one_feature import feature_values
from tests.rankers.data import TEACH_NOTHING, interrupt_after, teaching_nothing
from tests.reference.adarank import adarank

PUBLISHED = {"signs": False, "update": "paper", "enqueue": False, "tolerance": None, "max_select": None}
# RankLib's weights of queries and nothing else of it.
MULTIPLIED = {"signs": False, "update": "ranklib", "enqueue": False, "tolerance": None, "max_select": 10**6}


def ranked(places: list[int], size: int) -> np.ndarray:
    """One query whose features put row 0, the only relevant one, at the given places (from 1)."""
    column = np.zeros((size, len(places)))
    for f, place in enumerate(places):
        column[:, f] = [-place + 0.5, *-np.arange(1.0, size)]
    return column


def by_hand() -> Dataset:
    """Three queries with one relevant row each; MRR of feature a is 1, 1/10, 1 and of b 1/2, 1, 1/2."""
    parts = [ranked([1, 2], 2), ranked([10, 1], 10), ranked([1, 2], 2)]
    y = np.concatenate([[1.0] + [0.0] * (len(part) - 1) for part in parts])
    return Dataset(np.concatenate(parts), y, np.repeat([1, 2, 3], [2, 10, 2]))


@pytest.mark.parametrize("update", ["paper", "ranklib"])
def test_two_rounds_by_hand(update):
    # Round 1, P = 1/3 each: a has (1 + .1 + 1)/3 = .7, b has (.5 + 1 + .5)/3 = .667. Take a.
    first = log(1.7 / 0.3) / 2
    # Its ranking has E = (1, .1, 1). Published: P ∝ exp(-E). RankLib: P ∝ 1/3 · exp(-α E).
    if update == "paper":
        second_query = exp(-0.1) / (exp(-0.1) + 2 * exp(-1))
    else:
        second_query = exp(-0.1 * first) / (exp(-0.1 * first) + 2 * exp(-first))
    # Round 2, s the weight of query 2 (about .55 and .52): a has 1 - .9 s, b has .5 + .5 s, which is more.
    mean = 0.5 + 0.5 * second_query
    assert mean > 1 - 0.9 * second_query
    second = log((1 + mean) / (1 - mean)) / 2
    ranker = AdaRank(measure="mrr", n_estimators=2, **{**MULTIPLIED, "update": update}).fit(by_hand())
    assert ranker.history_["feature"] == [0, 1]
    assert ranker.history_["alpha"] == [pytest.approx(first), pytest.approx(second)]
    assert ranker.weights_ == pytest.approx([first, second])


def test_the_published_form_stops_where_it_would_repeat_itself_forever():
    # As by hand, but a puts the relevant row of query 2 second: E = (1, .5, 1), P = exp(-E) leaves a in front
    # (1 - .5 s = .774 against .5 + .5 s = .726 with s = .452), it orders as before, and P never changes.
    parts = [ranked([1, 2], 2), ranked([2, 1], 2), ranked([1, 2], 2)]
    data = Dataset(np.concatenate(parts), [1, 0] * 3, np.repeat([1, 2, 3], 2))
    ranker = AdaRank(measure="mrr", **PUBLISHED).fit(data)
    assert ranker.n_rounds_ == 1
    assert ranker.weights_ == pytest.approx([log((1 + 5 / 6) / (1 - 5 / 6)) / 2, 0])
    # With RankLib's it may go on: the weights change although the ranking does not.
    assert AdaRank(measure="mrr", n_estimators=20, **MULTIPLIED).fit(data).n_rounds_ == 20


def random_data(seed: int, queries: int = 30, features: int = 6, empty: int = 8) -> Dataset:
    stream = np.random.default_rng(seed)
    sizes = stream.integers(2, 15, queries)
    qid = np.repeat(np.arange(queries), sizes)
    X = stream.normal(size=(len(qid), features))
    y = np.clip(np.round(X[:, :3].sum(axis=1) / 2 + stream.normal(size=len(qid))), 0, 2)
    y[np.searchsorted(qid, np.arange(queries))] = 1
    y[qid < empty] = 0
    return Dataset(X, y, qid)


def twin(data: Dataset, measure: str, update: str, rounds: int, alphas=None):
    bound = mcrank.parse_measure(measure).on(data)
    table = feature_values(data, bound, Scaling.fit(data.X, "none"), False, 1)[0]
    return adarank(table.tolist(), data.X.T.astype(float).tolist(), bound.per_query, update, rounds, alphas)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("measure", ["ndcg@10", "ndcg@10[yahoo]", "ndcg@10[letor4]", "map", "err@5"])
@pytest.mark.parametrize("update", ["paper", "ranklib"])
def test_rounds_are_those_of_the_twin(seed, measure, update):
    data = random_data(seed)
    ranker = AdaRank(measure=measure, n_estimators=15, **{**MULTIPLIED, "update": update}).fit(data)
    features, alphas, weights = twin(data, measure, update, 15)
    assert ranker.history_["feature"] == features
    assert ranker.history_["alpha"] == pytest.approx(alphas)
    empty = np.maximum.reduceat(data.y, data.offsets[:-1]) == 0
    short = ~empty & (data.sizes < (mcrank.parse_measure(measure).k or 0))
    assert ranker.history_["empty"] == pytest.approx([np.array(w)[empty].sum() for w in weights])
    assert ranker.history_["short"] == pytest.approx([np.array(w)[short].sum() for w in weights])
    sums = np.sum([ranker.history_[kind] for kind in ("empty", "short", "rest")], axis=0)
    assert sums == pytest.approx(np.ones(15))
    assert ranker.history_["train"][-1] == pytest.approx(
        mcrank.parse_measure(measure).on(data).mean(data.to_grouped(ranker.predict(data)))
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("update", ["paper", "ranklib"])
def test_yahoo_and_standard_differ_only_through_alpha(seed, update):
    """Empty queries score 1 or 0 whatever the ranking: the choice does not see them, alpha does."""
    data = random_data(seed)
    options = {**MULTIPLIED, "update": update, "n_estimators": 12}
    standard = AdaRank(**options).fit(data).history_
    yahoo = AdaRank(dialect="yahoo", **options).fit(data).history_
    # The published weights exp(-E) do not know alpha, and one feature ranks alike whatever its alpha: two
    # rounds choose the same. RankLib's exp(-alpha E) differ after the first.
    same = 2 if update == "paper" else 1
    assert yahoo["feature"][:same] == standard["feature"][:same]
    assert all(a > b for a, b in zip(yahoo["alpha"][:same], standard["alpha"][:same], strict=True))
    # Given the alphas of the other dialect, each makes the other's choices to the end.
    assert twin(data, "ndcg@10", update, 12, yahoo["alpha"])[0] == yahoo["feature"]
    assert twin(data, "ndcg@10[yahoo]", update, 12, standard["alpha"])[0] == standard["feature"]


@pytest.mark.parametrize("update", ["paper", "ranklib"])
def test_under_letor_short_queries_shrink_alpha_and_gain_weight(update):
    """The comparison of tools says (section 3) that they would not touch alpha and lose their weight: with
    E = 0 they count in the denominator, and exp(-0) is the largest weight there is.
    """
    data = random_data(3, queries=60, empty=0)
    short = data.sizes < 10
    assert 5 < short.sum() < 50
    options = {**MULTIPLIED, "update": update, "n_estimators": 5, "dialect": "letor4"}
    whole = AdaRank(**options).fit(data).history_
    assert whole["short"][0] == pytest.approx(short.mean())
    # One round later: a short query weighs 1, the others exp(-E) or exp(-alpha E), all of them less.
    assert whole["short"][1] > whole["short"][0]
    assert whole["short"][1] > whole["rest"][1] * short.sum() / (~short).sum()
    if update == "ranklib":
        assert all(np.diff(whole["short"]) > 0)
    without = AdaRank(**options).fit(data.select(~short)).history_
    assert whole["feature"][0] == without["feature"][0]
    assert whole["alpha"][0] < without["alpha"][0]
    mean = np.tanh(without["alpha"][0])  # alpha = artanh of the weighted mean
    assert whole["alpha"][0] == pytest.approx(np.arctanh(mean * (~short).mean()))


def test_empty_queries_gain_weight_under_standard_and_lose_it_under_yahoo():
    data = random_data(1)
    for update in ("paper", "ranklib"):
        options = {**MULTIPLIED, "update": update, "n_estimators": 2}
        standard = AdaRank(**options).fit(data).history_["empty"]
        yahoo = AdaRank(dialect="yahoo", **options).fit(data).history_["empty"]
        assert standard[1] > standard[0] == yahoo[0] > yahoo[1]


def test_a_query_left_out_of_the_mean_has_no_weight():
    data = random_data(2)
    skipping = {**MULTIPLIED, "n_estimators": 6, "dialect": "standard;empty=skip"}
    whole = AdaRank(**skipping).fit(data)
    assert whole.history_["empty"] == [0.0] * 6
    rest = AdaRank(**skipping).fit(data.drop_empty_queries())
    assert whole.weights_ == pytest.approx(rest.weights_)


class TestRules:
    def test_a_feature_chosen_twice_in_a_row_is_undone_and_postponed(self):
        data = random_data(4)
        plain = AdaRank(n_estimators=12, **MULTIPLIED).fit(data).history_["feature"]
        assert any(a == b for a, b in pairwise(plain))
        history = AdaRank(n_estimators=40, **{**MULTIPLIED, "enqueue": True}).fit(data).history_
        most = max(history["postponed"])
        assert most >= 1
        rising = history["feature"][: history["postponed"].index(most) + 1]
        assert all(a != b for a, b in pairwise(rising))

    def test_an_undone_round_leaves_nothing_behind(self):
        data, options = random_data(4), {**MULTIPLIED, "enqueue": True}
        postponed = AdaRank(n_estimators=40, **options).fit(data).history_["postponed"]
        last = 1 + postponed.index(max(postponed))  # a round follows the undone one: the history shows it
        ranker = AdaRank(n_estimators=40, **options).fit(data, callback=lambda event: event.round == last)
        features, alphas = np.array(ranker.history_["feature"], dtype=int), np.array(ranker.history_["alpha"])
        kept = np.r_[np.diff(ranker.history_["postponed"]) == 0, True]
        assert not kept.all()
        total = np.bincount(features[kept], weights=alphas[kept], minlength=6)
        assert ranker.weights_ == pytest.approx(total)

    def test_a_fall_beyond_the_tolerance_ends_it_and_is_not_kept(self):
        data = random_data(5)
        free = AdaRank(n_estimators=30, **MULTIPLIED).fit(data).history_["train"]
        falls = [t for t in range(1, 30) if free[t] <= free[t - 1] - 0.002]
        assert falls
        bounded = AdaRank(n_estimators=30, **{**MULTIPLIED, "tolerance": 0.002}).fit(data)
        assert bounded.n_rounds_ == falls[0]
        assert bounded.history_["train"] == free[: falls[0]]
        assert bounded.score(data) == pytest.approx(free[falls[0] - 1])

    def test_a_feature_that_changes_nothing_pauses(self):
        data = Dataset([[1, 0], [0, 1], [1, 0], [0, 1], [0, 1], [1, 0]], [1, 0] * 3, np.repeat([1, 2, 3], 2))
        options = {
            "measure": "mrr",
            "update": "paper",
            "enqueue": False,
            "tolerance": None,
            "n_estimators": 9,
        }
        chosen = AdaRank(max_select=3, **options).fit(data).history_["feature"]
        assert chosen[:4] == [
            0,
            0,
            0,
            0,
        ]  # the first counts as a change: three more, then the other has its turn
        assert chosen[4] == 1

    def test_signs_let_low_values_rank_first(self):
        data = Dataset([[-1.0], [0.0], [-2.0], [5.0]], [1, 0, 1, 0], [1, 1, 2, 2])
        assert AdaRank(n_estimators=1, signs=False).fit(data).weights_[0] > 0
        ranker = AdaRank(n_estimators=1).fit(data)
        assert ranker.weights_[0] < 0
        assert ranker.history_["alpha"][0] < 0
        assert ranker.score(data) == 1.0


def test_the_best_round_on_validation_data_is_kept():
    train, valid, _ = mcrank.make_artificial(n_train=30, n_valid=15, n_test=2, n_features=8, seed=5)
    ranker = AdaRank(n_estimators=40, measure="map", **MULTIPLIED).fit(train, valid=valid)
    values = ranker.history_["map"]
    assert ranker.best_round_ == 1 + int(np.argmax(values))
    assert mcrank.MAP().on(valid).mean(ranker.predict(valid)) == max(values)
    again = AdaRank(n_estimators=ranker.best_round_, measure="map", **MULTIPLIED).fit(train)
    assert np.array_equal(again.weights_, ranker.weights_)
    patient = AdaRank(n_estimators=40, measure="map", early_stopping_rounds=2, **MULTIPLIED)
    assert patient.fit(train, valid=valid).n_rounds_ == min(40, patient.best_round_ + 2)


def test_a_measure_beyond_one_is_brought_below_it():
    data = random_data(6)
    ranker = AdaRank(measure="dcg@5", n_estimators=10, **MULTIPLIED).fit(data)
    assert np.isfinite(ranker.weights_).all()
    assert 0 < ranker.history_["alpha"][0] < 3
    assert ranker.history_["train"][-1] == pytest.approx(mcrank.DCG(k=5).on(data).mean(ranker.predict(data)))


def test_a_perfect_feature_has_a_finite_alpha():
    data = Dataset([[1.0], [0.0]], [1, 0], [1, 1])
    assert AdaRank(n_estimators=1).fit(data).weights_ == pytest.approx([np.arctanh(1 - 1e-9)])


@pytest.mark.parametrize("update", ["paper", "ranklib"])
@pytest.mark.parametrize("dialect", ["standard", "yahoo", "letor4"])
@pytest.mark.parametrize("case", TEACH_NOTHING)
def test_data_that_teach_little(update, dialect, case):
    data = Dataset(*teaching_nothing(case, np.arange(8.0).reshape(4, 2), [0, 1, 0, 2], [1, 1, 2, 2]))
    ranker = AdaRank(update=update, dialect=dialect).fit(data, valid=data)
    assert np.isfinite(ranker.predict(data)).all()
    if case in ("constant", "missing"):
        assert (ranker.n_rounds_, ranker.best_round_) == (0, 0)


def test_missing_values_count_as_the_mean():
    data = random_data(7)
    X = data.X.copy()
    X[::5, 1] = np.nan
    filled = X.astype(np.float64)
    filled[::5, 1] = np.nanmean(X[:, 1].astype(np.float64))
    gaps, full = Dataset(X, data.y, data.qid), Dataset(filled, data.y, data.qid)
    assert AdaRank(n_estimators=20).fit(gaps).weights_ == pytest.approx(
        AdaRank(n_estimators=20).fit(full).weights_
    )


def test_threads_queries_weights_and_bad_options():
    data = random_data(8, features=20)
    files = [to_bytes(AdaRank(n_estimators=10, n_jobs=n).fit(data)) for n in (1, 2, 4)]
    assert files[0] == files[1] == files[2]
    # A query of weight 2 is two queries.
    twice = Dataset.merge(
        [data, Dataset(data.X[: data.sizes[0]], data.y[: data.sizes[0]], [999] * data.sizes[0])]
    )
    weighted = Dataset(data.X, data.y, data.qid, query_weight=np.r_[2, np.ones(data.n_queries - 1)])
    options = {**MULTIPLIED, "n_estimators": 10}
    assert AdaRank(**options).fit(weighted).weights_ == pytest.approx(AdaRank(**options).fit(twice).weights_)
    with pytest.raises(OptionError, match="update of AdaRank must be 'paper' or 'ranklib', got 'x'"):
        AdaRank(update="x").fit(data)
    with pytest.raises(OptionError, match="max_select of AdaRank must be an integer >= 1 or None, got 0"):
        AdaRank(max_select=0).fit(data)
    for nothing in ("nan", "zero"):
        with pytest.raises(MeasureError, match="no value on the training data"):
            AdaRank(dialect=f"standard;empty=skip;nothing={nothing}").fit([[1.0]], [0], qid=[1])


def test_an_interrupted_training_keeps_its_rounds():
    data = random_data(9)
    ranker = AdaRank(**MULTIPLIED)
    with pytest.warns(UserWarning, match="AdaRank was interrupted; it keeps"):
        ranker.fit(data, callback=interrupt_after(3))
    assert np.array_equal(ranker.predict(data), AdaRank(n_estimators=2, **MULTIPLIED).fit(data).predict(data))
