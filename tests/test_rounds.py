"""Rounds of rankers with loops of their own, and the dialect every ranker takes."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import NDCG, Dataset, RegressionRanker
from mcrank.errors import MeasureError, OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.rounds import Rounds
from tests.rankers.data import dataset

VALID = Dataset([[0.0]] * 3, [0, 1, 2], [1, 1, 1])
GOOD, FAIR, BAD = [1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0]


def rounds(valid=VALID, callback=None, patience=None):
    return Rounds(valid, NDCG(k=10), 10, callback, patience)


def test_the_best_round_is_the_first_of_equals():
    kept = rounds()
    improved = []
    for scores in (BAD, FAIR, GOOD, BAD, GOOD):
        assert not kept.after(scores)
        improved.append(kept.improved)
    assert improved == [True, True, True, False, False]
    assert (kept.best_round, kept.n_rounds) == (3, 5)
    assert kept.history["ndcg@10"] == [NDCG(k=10).on(VALID).mean(s) for s in (BAD, FAIR, GOOD, BAD, GOOD)]


def test_patience_counts_rounds_since_the_best():
    kept = rounds(patience=2)
    assert [kept.after(s) for s in (FAIR, BAD, GOOD, BAD, FAIR)] == [False, False, False, False, True]


def test_without_validation_data_the_last_round_is_kept_and_patience_means_nothing():
    kept = rounds(valid=None, patience=1)
    assert [kept.after(None, loss=1.0 / r) for r in (1, 2)] == [False, False]
    assert kept.best_round == 2
    assert kept.history == {"loss": [1.0, 0.5]}


def test_the_callback_sees_each_round_and_may_stop():
    seen = []

    def callback(event):
        seen.append((event.round, event.rounds, event.scores))
        return event.round == 2

    kept = rounds(callback=callback)
    assert [kept.after(GOOD), kept.after(GOOD)] == [False, True]
    assert seen == [(1, 10, {"ndcg@10": 1.0}), (2, 10, {"ndcg@10": 1.0})]


def test_a_measure_without_a_value_is_an_error():
    empty = Dataset([[0.0]], [0], [1])
    with pytest.raises(MeasureError, match="has no value on the validation data"):
        Rounds(empty, mcrank.parse_measure("ndcg@10[standard;empty=skip;nothing=nan]"), 1)


def test_an_interruption_keeps_the_rounds_done():
    kept = rounds()
    with kept.until_interrupted():
        kept.after(GOOD)
        kept.after(BAD)
        raise KeyboardInterrupt
    assert kept.interrupted
    assert (kept.best_round, kept.n_rounds) == (1, 2)


def test_an_interruption_before_the_first_round_is_passed_on():
    kept = rounds()
    with pytest.raises(KeyboardInterrupt), kept.until_interrupted():
        raise KeyboardInterrupt
    assert not kept.interrupted


def test_a_round_interrupted_while_it_is_measured_leaves_no_trace():
    kept = rounds()
    with kept.until_interrupted():
        kept.after(BAD, loss=1.0)
        kept.history["loss"].append(0.5)  # as if Ctrl-C came when half of the second round was noted
        raise KeyboardInterrupt
    assert kept.history == {"ndcg@10": kept.history["ndcg@10"][:1], "loss": [1.0]}


QUICK = {"n_estimators": 3, "n_jobs": 1}


@pytest.mark.parametrize("dialect", ["yahoo", mcrank.parse_measure("ndcg[yahoo]").switches])
def test_a_dialect_is_the_one_in_brackets(dialect):
    train, valid = dataset(1, 20, 2, 6, 3), dataset(2, 20, 2, 6, 3)
    apart = RegressionRanker(measure="ndcg@5", dialect=dialect, **QUICK).fit(train, valid=valid)
    together = RegressionRanker(measure="ndcg@5[yahoo]", **QUICK).fit(train, valid=valid)
    assert apart.history_ == together.history_
    assert list(apart.history_) == ["ndcg@5[yahoo]"]
    again = from_bytes(to_bytes(apart))
    assert again.options_ == apart.options_
    assert to_bytes(again) == to_bytes(apart)


def test_an_unknown_dialect_is_named_with_the_nearest():
    with pytest.raises(MeasureError, match="yahoo"):
        RegressionRanker(dialect="yahooo", **QUICK).fit(dataset(1, 20, 2, 6, 3))


@pytest.mark.parametrize("answer", [np.zeros(2), np.ma.masked_array([1, 2])])
def test_a_callback_that_answers_with_an_array_is_told_so(answer):
    data = mcrank.make_artificial(4, 1, 1, docs_per_query=5, n_features=3).train
    with pytest.raises(OptionError, match="the callback must return True to stop"):
        mcrank.RegressionRanker(n_estimators=2, n_jobs=1).fit(data, callback=lambda event: answer)
