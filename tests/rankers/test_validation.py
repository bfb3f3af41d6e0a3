"""Held-out data: history, best round, early stopping, callbacks and Ctrl-C."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import mcrank
from mcrank import NDCG, Dataset, McRank, OrdinalMcRank, RegressionRanker, parse_measure
from mcrank.errors import DataError, MeasureError, OptionError
from mcrank.rankers.registry import to_bytes
from mcrank.scorers.heads import Head
from tests.rankers.data import dataset, few_values, interrupt_after

KINDS = [McRank, OrdinalMcRank, RegressionRanker]
QUICK = {"n_estimators": 25, "num_leaves": 6, "min_samples_leaf": 5, "learning_rate": 0.3, "n_jobs": 1}


def plain(kind):
    """Options of a ranker whose scores are those that rounds were measured with."""
    return QUICK if kind is RegressionRanker else QUICK | {"calibrate": False}


def overfitting():
    """Training data of noise only: validation is best early."""
    train = dataset(31, 200, 4, 9, 3, noise=6.0)
    valid = dataset(32, 200, 4, 9, 3, noise=6.0)
    return train, valid


@pytest.mark.parametrize("kind", KINDS)
def test_history_has_the_measure_of_every_round(kind):
    train, valid = overfitting()
    ranker = kind(**plain(kind)).fit(train, valid=valid)
    history = ranker.history_["ndcg@10"]
    assert list(ranker.history_) == ["ndcg@10"]
    assert len(history) == ranker.n_rounds_ == 25
    for rounds in (1, 7, 25):
        part = kind(**(plain(kind) | {"n_estimators": rounds})).fit(train)
        value = NDCG(k=10).on(valid).mean(part.predict(valid))
        assert history[rounds - 1] == pytest.approx(value, abs=1e-12)
    assert ranker.best_round_ == int(np.argmax(history)) + 1
    assert ranker.score(valid) == pytest.approx(max(history), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_round_is_restored(kind):
    train, valid = overfitting()
    ranker = kind(**(plain(kind) | {"n_estimators": 50})).fit(train, valid=valid)
    assert ranker.best_round_ < ranker.n_rounds_ == 50  # or this test shows nothing
    shorter = kind(**(plain(kind) | {"n_estimators": ranker.best_round_})).fit(train)
    assert ranker.forest_.n_trees == shorter.forest_.n_trees
    for name, array in ranker.forest_.to_arrays().items():
        assert np.array_equal(array, shorter.forest_.to_arrays()[name]), name
    assert np.array_equal(ranker.predict(valid), shorter.predict(valid))


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping(kind):
    train, valid = overfitting()
    full = kind(**(QUICK | {"n_estimators": 60})).fit(train, valid=valid)
    history = full.history_["ndcg@10"]
    patience = 4
    best, stop = 0, len(history)
    for i, value in enumerate(history):
        if value > history[best]:
            best = i
        elif i - best >= patience:
            stop = i + 1
            break
    stopped = kind(early_stopping_rounds=patience, **(QUICK | {"n_estimators": 60})).fit(train, valid=valid)
    assert stopped.n_rounds_ == stop < 60
    assert stopped.best_round_ == best + 1
    assert stopped.history_["ndcg@10"] == history[:stop]


def test_patience_without_validation_does_nothing():
    train, _ = overfitting()
    ranker = McRank(early_stopping_rounds=1, **QUICK).fit(train)
    assert (ranker.n_rounds_, ranker.best_round_, ranker.history_) == (25, 25, {})


@pytest.mark.parametrize(
    "measure",
    ["map", "ndcg@3[yahoo]", "err", "p@5", "ndcg@10[lightgbm]", NDCG(k=4), NDCG(k=10, dialect="letor4")],
)
def test_any_measure_in_any_dialect(measure):
    train, valid = overfitting()
    ranker = RegressionRanker(measure=measure, **QUICK).fit(train, valid=valid)
    parsed = parse_measure(measure)
    assert list(ranker.history_) == [parsed.name]
    assert max(ranker.history_[parsed.name]) == pytest.approx(
        parsed.on(valid).mean(ranker.predict(valid)), abs=1e-12
    )


def test_a_measure_that_does_not_exist():
    train, valid = overfitting()
    with pytest.raises(MeasureError, match="unknown measure"):
        McRank(measure="ndgc", **QUICK).fit(train, valid=valid)
    with pytest.raises(MeasureError, match="measure must be a name"):
        McRank(measure=7, **QUICK).fit(train)


def test_validation_rows_in_any_order():
    train, valid = overfitting()
    order = np.random.default_rng(0).permutation(valid.n_rows)
    # By rows: queries come apart; inside a query rows that tie may change places, so compare without ties.
    mixed = Dataset(valid.X[order], valid.y[order], valid.qid[order])
    assert mixed.source_rows is not None
    measure = "ndcg@10[sklearn]"  # averages over ties
    one, other = (
        RegressionRanker(measure=measure, **QUICK).fit(train, valid=v).history_[measure]
        for v in (valid, mixed)
    )
    assert one == pytest.approx(other, abs=1e-12)


def test_validation_as_arrays():
    train, valid = overfitting()
    one = McRank(**QUICK).fit(train, valid=valid)
    other = McRank(**QUICK).fit(train, valid=(valid.X, valid.y, valid.qid))
    assert to_bytes(one) == to_bytes(other)


def test_grades_only_validation_has():
    train, valid = overfitting()
    higher = Dataset(valid.X, valid.y + 2, valid.qid)
    ranker = McRank(**QUICK).fit(train, valid=higher)
    assert ranker.grades_.tolist() == [0, 1, 2]
    assert len(ranker.history_["ndcg@10"]) == 25


def test_validation_without_anything_relevant_keeps_a_usable_model():
    train, valid = overfitting()
    empty = Dataset(valid.X, np.zeros(valid.n_rows), valid.qid)
    for measure in ("ndcg@10", "ndcg@10[yahoo]", "map"):
        ranker = McRank(measure=measure, **QUICK).fit(train, valid=empty)
        assert len(set(ranker.history_[measure])) == 1
        assert ranker.best_round_ == 1  # the earliest among equals
        assert ranker.forest_.n_trees == 3


def test_a_measure_without_a_value_on_the_validation_data():
    """Where every query is skipped there is no best round: better to say so than to keep nothing."""
    train, valid = overfitting()
    for held_out in (
        Dataset(valid.X, np.zeros(valid.n_rows), valid.qid),
        Dataset(valid.X, np.where(valid.qid == 0, 0, valid.y), valid.qid, query_weight=[1.0] + [0.0] * 19),
    ):
        for measure in ("ndcg@10[standard;empty=skip]", "map[standard;empty=skip]"):
            with pytest.raises((MeasureError, DataError), match="valid"):
                McRank(measure=measure, **QUICK).fit(train, valid=held_out)


@pytest.mark.parametrize("valid", [5, "abc", (1, 2), (1, 2, 3, 4), ([[1.0]], [1])])
def test_validation_that_is_no_data(valid):
    train, _ = overfitting()
    with pytest.raises((DataError, OptionError), match="valid of McRank"):
        McRank(**QUICK).fit(train, valid=valid)


def test_validation_with_other_columns():
    train, valid = overfitting()
    other = Dataset(valid.X[:, :2], valid.y, valid.qid)
    with pytest.raises(DataError, match="valid of McRank has 2 features, but the ranker is expecting 4"):
        McRank(**QUICK).fit(train, valid=other)


@pytest.mark.parametrize("kind", KINDS)
def test_callback_events(kind):
    train, valid = overfitting()
    events = []
    ranker = kind(**QUICK).fit(train, valid=valid, callback=events.append)
    assert [event.round for event in events] == list(range(1, 26))
    assert {event.rounds for event in events} == {25}
    assert [event.scores["ndcg@10"] for event in events] == ranker.history_["ndcg@10"]
    seconds = [event.seconds for event in events]
    assert seconds[0] > 0
    assert seconds == sorted(seconds)
    without = []
    kind(**QUICK).fit(train, callback=without.append)
    assert all(event.scores == {} for event in without)


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_can_stop_training(kind):
    train, valid = overfitting()
    stopped = kind(**QUICK).fit(train, callback=lambda event: event.round == 6)
    assert (stopped.n_rounds_, stopped.best_round_) == (6, 6)
    wanted = kind(**(QUICK | {"n_estimators": 6})).fit(train)
    assert np.array_equal(stopped.predict(valid), wanted.predict(valid))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c_leaves_a_usable_model(kind, n_jobs, tmp_path):
    train, valid = overfitting()
    ranker = kind(**(QUICK | {"n_jobs": n_jobs}))
    with pytest.warns(UserWarning, match=f"{kind.__name__} was interrupted; it keeps round 5 of the 5 done"):
        ranker.fit(train, callback=interrupt_after(5))
    wanted = kind(**(QUICK | {"n_estimators": 5})).fit(train)
    assert np.array_equal(ranker.predict(valid), wanted.predict(valid))
    ranker.save(tmp_path / "model")
    assert np.array_equal(mcrank.load(tmp_path / "model").predict(valid), wanted.predict(valid))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_real_signal(n_jobs):
    train, valid = overfitting()
    ranker = McRank(**(QUICK | {"n_jobs": n_jobs}))

    def callback(event):
        if event.round == 9:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(UserWarning, match="McRank was interrupted; it keeps round 9 of the 9 done"):
        ranker.fit(train, callback=callback)
    wanted = McRank(**(QUICK | {"n_estimators": 9})).fit(train)
    assert np.array_equal(ranker.predict(valid), wanted.predict(valid))


def test_ctrl_c_keeps_the_best_of_the_rounds_done():
    train, valid = overfitting()
    ranker = McRank(**QUICK)
    with pytest.warns(UserWarning, match="was interrupted"):
        ranker.fit(train, valid=valid, callback=interrupt_after(12))
    history = ranker.history_["ndcg@10"]
    assert len(history) == ranker.n_rounds_ == 12
    assert ranker.best_round_ == int(np.argmax(history)) + 1


@pytest.mark.parametrize("when", [1, 2, 5])
def test_ctrl_c_while_validating(when, monkeypatch):
    """The round whose measure was not taken does not count, or counts wholly: nothing in between."""
    train, valid = overfitting()
    calls = []
    rank = Head.rank

    def interrupted(self, raw):
        if raw.any():  # not the scores before the first round
            calls.append(1)
            if len(calls) == when:
                raise KeyboardInterrupt
        return rank(self, raw)

    monkeypatch.setattr(Head, "rank", interrupted)
    ranker = McRank(**QUICK)
    if when == 1:
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(train, valid=valid)
    else:
        with pytest.warns(UserWarning, match="was interrupted"):
            ranker.fit(train, valid=valid)
        assert len(ranker.history_["ndcg@10"]) == ranker.n_rounds_ == when - 1
        assert 1 <= ranker.best_round_ < when
        assert ranker.forest_.n_trees == 3 * ranker.best_round_


@pytest.mark.parametrize("kind", KINDS)
def test_ctrl_c_before_the_first_round_is_passed_on(kind, monkeypatch):
    train, _ = overfitting()
    ranker = kind(**QUICK)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mcrank.boosting.boost.Booster.round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(train)
    assert not ranker.__sklearn_is_fitted__()


@pytest.mark.parametrize("kind", KINDS)
def test_a_failed_refit_leaves_the_old_model(kind):
    train, valid = overfitting()
    ranker = kind(**QUICK).fit(train)
    before, content = ranker.predict(valid), to_bytes(ranker)
    X, y, qid = few_values(35, 200, 3, 9, 5)

    def failing(event):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ranker.fit(X, y, qid=qid, callback=failing)
    assert np.array_equal(ranker.predict(valid), before)
    assert to_bytes(ranker) == content


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_of_a_callback_are_passed_on(n_jobs):
    train, _ = overfitting()

    def failing(event):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        McRank(**(QUICK | {"n_jobs": n_jobs})).fit(train, callback=failing)
