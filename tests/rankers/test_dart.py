"""DART: LightGBM's rule, the naive twin, and a best round that is kept as it was."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import mcrank
from mcrank.boosting import dart
from mcrank.boosting.dart import dropped_rounds
from mcrank.errors import OptionError
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import dataset, few_values
from tests.rankers.test_determinism import noisy
from tests.rankers.test_start import KINDS
from tests.reference.boost import Tree

DART = {"dart": True, "drop_rate": 0.4, "skip_drop": 0.2, "random_state": 5}
SMALL = {"num_leaves": 5, "min_samples_leaf": 4, "n_jobs": 2, **DART}
PLAIN = [kind for kind in KINDS if kind != "adaptive"]


def test_lightgbm_drops_all_rounds_alike():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = few_values(1, 300, 4, 6, 5)
    peer = lightgbm.train(
        {
            "objective": "regression", "boosting": "dart", "drop_rate": 1.0, "skip_drop": 0.0, "max_drop": 3,
            "uniform_drop": True, "num_leaves": 5, "learning_rate": 0.3, "min_data_in_leaf": 10,
            "min_sum_hessian_in_leaf": 0, "boost_from_average": False, "verbose": -1, "num_threads": 1,
            "min_data_in_bin": 1,
        },
        lightgbm.Dataset(X.astype(float), y), 4,
    )  # fmt: skip
    ours = mcrank.RegressionRanker(
        n_estimators=4, num_leaves=5, learning_rate=0.3, target="grade", n_jobs=1, dart=True, drop_rate=1.0,
        skip_drop=0.0, max_drop=3,
    ).fit(X, y, qid=qid, init_score=np.zeros(len(y)))  # fmt: skip
    assert np.allclose(ours.predict(X), peer.predict(X.astype(float)), atol=1e-5)


def test_the_naive_twin():
    data = dataset(4, 300, 3, 6, 4)
    rounds, rate = 12, 0.3
    options = {"n_estimators": rounds, "target": "grade", "learning_rate": rate, "n_jobs": 1, **DART}
    ranker = mcrank.RegressionRanker(num_leaves=5, min_samples_leaf=4, **options).fit(data)
    base, moves, most = data.y.mean(), [], 0
    for number in range(1, rounds + 1):
        out = dropped_rounds(len(moves), number, SimpleNamespace(max_drop=50, **DART))
        most = max(most, len(out))
        residual = data.y - base - sum(m for i, m in enumerate(moves) if i not in out)
        tree = Tree(data.X, residual, np.ones(len(residual)), 5, 4)
        new, k = np.zeros(len(residual)), len(out)
        for rows in tree.leaves():
            new[rows] = rate / (1 + k) * residual[rows].mean()
        moves = [m * k / (k + 1) if i in out else m for i, m in enumerate(moves)]
        moves.append(new)
    assert most > 2
    assert np.allclose(ranker.predict(data), base + sum(moves), atol=1e-5)


def test_rounds_are_dropped_with_their_probability():
    told = SimpleNamespace(drop_rate=0.25, skip_drop=0.5, max_drop=1000, random_state=1)
    counts = np.array([len(dropped_rounds(100, number, told)) for number in range(1, 401)])
    assert 150 < (counts == 0).sum() < 250
    assert 23 < counts[counts > 0].mean() < 27
    few = SimpleNamespace(drop_rate=0.9, skip_drop=0.0, max_drop=7, random_state=1)
    assert max(len(dropped_rounds(100, number, few)) for number in range(1, 101)) == 7
    assert dropped_rounds(0, 1, few) == []
    none = SimpleNamespace(drop_rate=0.0, skip_drop=0.0, max_drop=7, random_state=1)
    assert dropped_rounds(100, 5, none) == []


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", PLAIN)
def test_threads_and_parts_change_nothing(kind, weighted):
    ranker, own = KINDS[kind]
    data = noisy(300, weighted=weighted)
    options = own | SMALL
    found = {to_bytes(ranker(n_estimators=8, **options | {"n_jobs": n}).fit(data)) for n in (1, 2, 4)}
    assert len(found) == 1
    first = ranker(n_estimators=5, **options).fit(data)
    assert {to_bytes(ranker(n_estimators=3, **options).fit(data, init_model=first))} == found
    content = found.pop()
    assert to_bytes(from_bytes(content)) == content


def test_two_parts_with_initial_scores():
    data = noisy(300)
    scores = np.linspace(-1, 1, 300)
    ranker, own = KINDS["mcrank"]
    many = np.stack([scores] * 5, axis=1)
    whole = ranker(n_estimators=8, **own | SMALL).fit(data, init_score=many)
    first = ranker(n_estimators=5, **own | SMALL).fit(data, init_score=many)
    both = ranker(n_estimators=3, **own | SMALL).fit(data, init_score=many, init_model=first)
    assert to_bytes(both) == to_bytes(whole)


@pytest.mark.parametrize("kind", ["mcrank", "l2", "lambdamart"])
def test_the_best_round_is_kept_with_its_values(kind):
    ranker, own = KINDS[kind]
    data, valid = noisy(300), noisy(60, seed=8)
    options = own | SMALL | {"learning_rate": 0.5} | ({"calibrate": False} if kind == "mcrank" else {})
    found = ranker(n_estimators=40, early_stopping_rounds=8, **options).fit(data, valid=valid)
    assert found.best_round_ < found.n_rounds_
    (history,) = found.history_.values()
    assert found.score(valid) == pytest.approx(history[found.best_round_ - 1], abs=1e-12)
    # It is the forest of a training that ends there, not a part of the longer one.
    short = ranker(n_estimators=found.best_round_, **options).fit(data)
    assert np.array_equal(found.forest_.value, short.forest_.value)
    longer = ranker(n_estimators=found.n_rounds_, **options).fit(data)
    n = len(short.forest_.value)
    assert not np.array_equal(longer.forest_.value[:n], short.forest_.value)


@pytest.mark.parametrize("seed", [8, 9])
def test_history_is_the_measure_of_the_model_kept(seed):
    # Leaves that are clipped tie rows of different leaves, and the last bit of a sum decides their order.
    options = SMALL | {
        "learning_rate": 0.1,
        "num_leaves": 4,
        "drop_rate": 0.3,
        "skip_drop": 0.1,
        "random_state": seed,
    }
    ranker = mcrank.LambdaMART(
        n_estimators=60, max_leaf_value=0.01, measure="ndcg@10[standard;ties=worst]", **options
    ).fit(noisy(300), valid=noisy(100, seed=8))
    (history,) = ranker.history_.values()
    assert ranker.score(noisy(100, seed=8)) == history[ranker.best_round_ - 1]


def test_nothing_dropped_is_plain_boosting():
    data, valid = noisy(300), noisy(60, seed=8)
    options = {"n_estimators": 6, "num_leaves": 5, "n_jobs": 2}
    for odd in ({"drop_rate": 0.0}, {"skip_drop": 1.0}):
        one = mcrank.McRank(dart=True, **odd, **options).fit(data, valid=valid)
        other = mcrank.McRank(**options).fit(data, valid=valid)
        assert np.allclose(one.forest_.value, other.forest_.value, atol=1e-12)
        assert one.history_ == other.history_


def test_an_interrupted_round_leaves_those_before_it():
    data = noisy(300)
    calls = []

    def loss(scores, grades, offsets):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return scores - grades, np.ones(len(scores))

    with pytest.warns(UserWarning, match="interrupted"):
        found = mcrank.CustomRanker(loss=loss, n_estimators=9, **SMALL).fit(data)
    calls.append(1)
    whole = mcrank.CustomRanker(loss=loss, n_estimators=4, **SMALL).fit(data)
    assert np.array_equal(found.forest_.value, whole.forest_.value)


def test_what_does_not_go_together():
    data = noisy(100)
    with pytest.raises(OptionError, match="base grades were chosen"):
        mcrank.McRank(dart=True, base_class="adaptive").fit(data)
    with pytest.raises(OptionError, match="dart of GBRank"):
        mcrank.GBRank(dart=True, form="average").fit(data)
    ranker = mcrank.RegressionRanker(n_estimators=2, **SMALL).fit(data)
    with pytest.raises(OptionError, match="is not for dart=True"):
        ranker.refit(data)
    with pytest.raises(OptionError, match="without valid only"):
        mcrank.RegressionRanker(n_estimators=2, **SMALL).fit(data, valid=data, init_model=ranker)
    for name, odd in (("drop_rate", -0.1), ("drop_rate", 1.1), ("skip_drop", "a"), ("max_drop", 0)):
        with pytest.raises(OptionError, match=f"{name} of McRank must be"):
            mcrank.McRank(**{name: odd}).checked_options()
    assert "dart" not in mcrank.McRank(n_estimators=1).fit(data).options_


@pytest.mark.filterwarnings("ignore:LambdaMART was interrupted")
@pytest.mark.parametrize("calls", [4, 5, 6, 7])
def test_an_interrupted_first_round_leaves_the_model_it_goes_on_from(calls, monkeypatch):
    data = noisy(120)
    options = {"dart": True, "drop_rate": 1.0, "skip_drop": 0.0, "num_leaves": 4, "n_jobs": 1}
    first = mcrank.LambdaMART(n_estimators=2, **options).fit(data)
    add, left = dart._add, [calls]

    def interrupted(*rest):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        add(*rest)

    # Two calls for the trees there are, two to drop them, then the new one, then both again.
    monkeypatch.setattr(dart, "_add", interrupted)
    both = mcrank.LambdaMART(n_estimators=1, **options).fit(data, init_model=first)
    assert both.n_rounds_ == 2 + (calls == 7)
    if calls < 7:
        assert np.array_equal(both.forest_.value, first.forest_.value)
