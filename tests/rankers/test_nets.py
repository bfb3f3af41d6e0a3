"""RankNet and LambdaRank: against matrices and finite differences, on any threads, on odd data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Dataset, LambdaRank, RankNet
from mcrank.errors import OptionError
from mcrank.losses.lambdas import LambdaLoss, lambda_gradients
from mcrank.losses.pairwise import PairwiseLogistic
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.scorers.net import Net
from mcrank.scorers.scaling import Scaling
from mcrank.training.backpropagation import first_weights
from mcrank.training.descent import Descent
from tests.rankers.data import dataset, few_values, interrupt_after
from tests.reference import mlp as naive

KINDS = [RankNet, LambdaRank]
QUICK = {"epochs": 4, "hidden": "5", "n_jobs": 1}
WHOLE = {"optimizer": "sgd", "learning_rate": 1.0, "batch_queries": 2, "l2": 0.0}
PARTS = mcrank.make_artificial(n_train=40, n_valid=15, n_test=15, docs_per_query=12, n_features=6, seed=4)


def small_net(draw):
    hidden = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    sizes = np.array([draw(st.integers(1, 9)), *hidden, 1])
    activation = draw(st.sampled_from(["tanh", "relu", "sigmoid"]))
    stream = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = first_weights(sizes, activation, stream)
    weights += 0.1 * stream.standard_normal(len(weights))  # biases too
    zeros, ones = np.zeros(sizes[0]), np.ones(sizes[0])
    return Net(sizes, activation, weights, Scaling("none", zeros, ones, zeros)), stream


@settings(max_examples=60)
@given(st.data())
def test_scores_are_those_of_matrices(data):
    net, stream = small_net(data.draw)
    X = stream.standard_normal((data.draw(st.integers(1, 600)), net.n_features)).astype(np.float32)
    X[0] *= 1e6  # saturated units, too
    wanted = naive.scores(X, net.sizes, net.weights, net.activation)
    np.testing.assert_allclose(net.raw(X, 2), wanted[None], rtol=1e-12, atol=1e-12)


def options_of(kind, activation="tanh", **given):
    ranker = kind(activation=activation, **given)
    return ranker.checked_options() | {"measure": mcrank.parse_measure(ranker.measure)}


def descent_on(data, loss, sizes, weights, **options):
    descent = Descent(data, np.array(data.X), loss, np.asarray(sizes), options)
    descent.course.weights[:] = weights
    return descent


def found_gradient(descent):
    """The gradient that a step over all queries takes: a plain step of rate 1 is the gradient itself."""
    before = descent.course.weights.copy()
    assert descent.epoch()
    return before - descent.course.weights


def finite_differences(loss, weights, step=1e-5):
    out = np.zeros_like(weights)
    for w in range(len(weights)):
        up, down = weights.copy(), weights.copy()
        up[w] += step
        down[w] -= step
        out[w] = (loss(up) - loss(down)) / (2 * step)
    return out


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
@pytest.mark.parametrize("hidden", [[4], [3, 5], [4, 3, 2]])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_ranknet_is_that_of_its_loss(activation, hidden, weighted):
    """Every weight of every layer against a finite difference of the loss of two whole queries."""
    stream = np.random.default_rng(7)
    query_weight = np.array([1.0, 0.25]) if weighted else None
    data = Dataset(
        stream.standard_normal((11, 3)), stream.integers(0, 3, 11), [0] * 7 + [1] * 4, None, query_weight
    )
    sizes = np.array([3, *hidden, 1])
    weights = first_weights(sizes, activation, stream) + 0.1
    sigma = 1.7
    loss = PairwiseLogistic(data.y, data.offsets, sigma, weight=data.row_weight)
    descent = descent_on(data, loss, sizes, weights, **options_of(RankNet, activation, sigma=sigma, **WHOLE))

    def whole(weights):
        scores = naive.scores(data.X, sizes, weights, activation)
        per_query = [naive.logistic_loss(scores[a:b], data.y[a:b], sigma) for a, b in ((0, 7), (7, 11))]
        return np.mean(np.array(per_query) * ([1, 1] if query_weight is None else query_weight))

    np.testing.assert_allclose(
        found_gradient(descent), finite_differences(whole, weights), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("measure", ["ndcg@3", "map", "err", "mrr", "ndcg@10[letor4]"])
def test_the_gradient_of_lambdarank_is_that_of_its_lambdas(measure):
    """With the lambdas held fixed, minus their product with the scores is what descends."""
    stream = np.random.default_rng(8)
    data = Dataset(stream.standard_normal((24, 3)), stream.integers(0, 3, 24), [0] * 12 + [1] * 12)
    sizes = np.array([3, 4, 2, 1])
    weights = first_weights(sizes, "tanh", stream) + 0.1
    bound = mcrank.parse_measure(measure).on(data)
    loss = LambdaLoss(bound)
    descent = descent_on(data, loss, sizes, weights, **options_of(LambdaRank, **WHOLE))
    lambdas, _ = lambda_gradients(bound, naive.scores(data.X, sizes, weights, "tanh"))
    assert np.abs(lambdas).max() > 0.01
    wanted = finite_differences(lambda w: -lambdas @ naive.scores(data.X, sizes, w, "tanh") / 2, weights)
    np.testing.assert_allclose(found_gradient(descent), wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_an_epoch_is_that_of_the_naive_loop(data):
    net, stream = small_net(data.draw)
    sizes, activation, weights = net.sizes, net.activation, net.weights
    kind, optimizer = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(["adam", "sgd"]))
    counts = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=7))
    rows = sum(counts)
    train = Dataset(
        stream.standard_normal((rows, sizes[0])),
        stream.integers(0, 3, rows),
        np.repeat(np.arange(len(counts)), counts),
        stream.random(rows) if data.draw(st.booleans()) else None,
    )
    batch = data.draw(st.integers(1, 3))
    given_options = {
        "batch_queries": batch, "optimizer": optimizer, "learning_rate": 0.01, "l2": 0.1, "sigma": 0.8,
        "random_state": 5,
    }  # fmt: skip
    options = options_of(kind, activation, **given_options)
    bound = mcrank.NDCG(k=3).on(train)
    if kind is RankNet:
        loss = PairwiseLogistic(train.y, train.offsets, 0.8, weight=train.row_weight)
    else:
        loss = LambdaLoss(bound, 0.8, weight=train.row_weight)
    descent = descent_on(train, loss, sizes, weights, **options)
    order = np.random.Generator(np.random.PCG64(5))
    first_weights(sizes, activation, order)
    order = order.permutation(len(counts))

    def gradient_of(queries):
        def at(weights):
            scores = naive.scores(train.X, sizes, weights, activation)
            lambdas, _ = lambda_gradients(bound, scores, 0.8)
            total = np.zeros_like(weights)
            for q in queries:
                own = slice(train.offsets[q], train.offsets[q + 1])
                slopes = (
                    naive.logistic_slopes(scores[own], train.y[own], 0.8) if kind is RankNet else lambdas[own]
                )
                if train.weight is not None:
                    slopes = slopes * train.weight[own]
                total += naive.gradient(train.X[own], sizes, weights, activation, -slopes)
            return total / len(queries)

        return at

    steps = [gradient_of(order[a : a + batch]) for a in range(0, len(order), batch)]
    walk = naive.adam if optimizer == "adam" else naive.plain
    assert descent.epoch()
    # Adam divides by the gradient's own size: where that is nothing but rounding, so is the step.
    atol = 1e-6 if optimizer == "adam" else 1e-12
    wanted = walk(steps, weights, 0.01, 0.1)
    np.testing.assert_allclose(descent.course.weights, wanted, rtol=1e-9, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", ["5", "7,3"])
def test_the_model_does_not_depend_on_threads_or_runs(kind, hidden):
    options = {"epochs": 3, "hidden": hidden, "batch_queries": 3}
    first = to_bytes(kind(n_jobs=1, **options).fit(PARTS.train, valid=PARTS.valid))
    for n_jobs in (1, 2, 4):
        assert to_bytes(kind(n_jobs=n_jobs, **options).fit(PARTS.train, valid=PARTS.valid)) == first
    assert to_bytes(kind(random_state=1, **options).fit(PARTS.train, valid=PARTS.valid)) != first


@pytest.mark.parametrize("kind", KINDS)
def test_scores_do_not_depend_on_the_rows_scored_together(kind):
    ranker = kind(**QUICK).fit(PARTS.train)
    X = np.random.default_rng(0).standard_normal((20_000, 6)).astype(np.float32)
    many = kind.predict(ranker.set_params(n_jobs=3), X)
    alone = [ranker.predict(X[i : i + 1])[0] for i in range(0, 20_000, 1999)]
    assert many[::1999].tolist() == alone


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_epoch_is_kept(kind):
    ranker = kind(epochs=30, learning_rate=0.01, early_stopping_rounds=5).fit(PARTS.train, valid=PARTS.valid)
    history = ranker.history_["ndcg@10"]
    assert ranker.score(PARTS.valid) == history[ranker.best_round_ - 1] == max(history)
    assert ranker.n_rounds_ == len(history) <= ranker.best_round_ + 5
    alone = kind(epochs=ranker.best_round_, learning_rate=0.01).fit(PARTS.train)
    assert np.array_equal(alone.weights_, ranker.weights_)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_a_net_learns_what_no_line_can(kind, optimizer, activation):
    """The product of two signs: every linear score is as good as chance."""
    stream = np.random.default_rng(3)
    X = stream.choice([-1.0, 1.0], (600, 2))
    data = Dataset(X, X[:, 0] * X[:, 1] > 0, np.arange(600) // 10)
    rate = 0.02 if optimizer == "adam" else 0.1
    options = {
        "hidden": "8", "epochs": 60, "learning_rate": rate, "optimizer": optimizer, "measure": "map",
        "batch_queries": 1, "l2": 0.0,
    }  # fmt: skip
    ranker = kind(activation=activation, **options).fit(data)
    bound = mcrank.MAP().on(data)
    assert bound.mean(ranker.predict(data)) > 0.99 * bound.mean(data.y) > 0.9


def test_yahoo_and_standard_train_the_same_net():
    nets = [
        LambdaRank(dialect=dialect, **QUICK).fit(PARTS.train, valid=PARTS.valid)
        for dialect in ("standard", "yahoo")
    ]
    assert np.array_equal(nets[0].weights_, nets[1].weights_)
    assert nets[0].best_round_ == nets[1].best_round_


def test_short_queries_teach_nothing_under_letor4():
    short = PARTS.train.X[:90]
    data = Dataset(short, np.minimum(PARTS.train.y[:90], 2), np.arange(90) // 9)
    ranker = LambdaRank(dialect="letor4", **QUICK).fit(data)
    assert ranker.predict(data).tolist() == [0.0] * 90
    assert (ranker.best_round_, ranker.n_rounds_, ranker.history_) == (0, 0, {})
    assert len(set(LambdaRank(**QUICK).fit(data).predict(data).tolist())) > 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grade", [0.0, 2.0])
def test_nothing_to_learn(kind, grade):
    X, _, qid = few_values(1, 60, 3, 5, 3)
    y = np.full(60, grade)
    for queries in (qid, np.arange(60)):
        ranker = kind(**QUICK).fit(X, y, qid=queries, valid=(X, y, queries))
        assert ranker.predict(X).tolist() == [0.0] * 60
        again = from_bytes(to_bytes(ranker))
        assert again.predict(X).tolist() == [0.0] * 60
    one_each = kind(**QUICK).fit(X, np.arange(60) % 3, qid=np.arange(60))
    assert one_each.predict(X).tolist() == [0.0] * 60


@pytest.mark.parametrize("kind", KINDS)
def test_queries_without_pairs_change_nothing_but_the_shuffling(kind):
    X, y, qid = few_values(2, 100, 3, 9, 3)
    y[:10] = 0
    qid = qid.astype(float)
    qid[10:15] = [100, 101, 102, 103, 104]  # queries of one row
    ranker = kind(epochs=20, n_jobs=1).fit(X, y, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert ranker.score(X, y, qid) > kind(epochs=1, n_jobs=1).fit(X, y, qid=qid).score(X, y, qid)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "log"])
def test_missing_constant_and_extreme_features(kind, scaling, tmp_path):
    X, y, qid = few_values(3, 120, 6, 9, 3, missing=0.3)
    X[:, 0] = np.nan
    X[:, 1] = 5
    X[:, 2] *= 1e30
    X[3, 3] = 3.4e38
    ranker = kind(scaling=scaling, **QUICK).fit(X, y, qid=qid, valid=(X, y, qid))
    odd = np.array([[np.nan] * 6, [3.4e38] * 6, [-3.4e38] * 6, [0.0] * 6], dtype=np.float32)
    assert np.isfinite(ranker.predict(odd)).all()
    ranker.save(tmp_path / "m")
    again = mcrank.load(tmp_path / "m")
    assert np.array_equal(again.predict(X), ranker.predict(X))
    assert to_bytes(again) == to_bytes(ranker)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_feature_says_nothing(kind):
    X, y, qid = few_values(4, 60, 3, 6, 3)
    ranker = kind(**QUICK).fit(np.column_stack([X, np.full(60, 4.0)]), y, qid=qid)
    changed = np.column_stack([X, np.arange(60.0)])
    assert np.array_equal(ranker.predict(changed), ranker.predict(np.column_stack([X, np.full(60, 4.0)])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("scaling", ["none", "zscore"])
def test_steps_that_are_too_long_end_in_a_net_or_in_an_error(kind, activation, optimizer, scaling):
    X, y, qid = few_values(5, 100, 3, 9, 3)
    options = {"learning_rate": 10.0, "epochs": 30, "hidden": "6,6,6", "n_jobs": 1, "sigma": 5.0}
    ranker = kind(activation=activation, optimizer=optimizer, scaling=scaling, **options)
    try:
        ranker.fit(1e4 * X, y, qid=qid)
    except OptionError as error:
        assert "learning_rate" in str(error)  # noqa: PT017 - refusing is fine, if it says what is wrong
    else:
        assert np.isfinite(ranker.predict(1e4 * X)).all()


def test_weights_that_run_away_are_put_back_and_the_rate_is_halved():
    data = dataset(6, 60, 3, 9, 3)
    loss = PairwiseLogistic(data.y, data.offsets)
    sizes = np.array([3, 4, 1])
    options = options_of(RankNet, "relu", optimizer="sgd", learning_rate=10.0)
    descent = Descent(data, np.full((60, 3), 1e9, dtype=np.float32) * data.X, loss, sizes, options)
    before = descent.course.weights.copy()
    assert not descent.epoch()
    assert np.array_equal(descent.course.weights, before)
    assert descent.rate == 5.0


def test_plain_steps_are_halved_when_the_training_measure_falls():
    rates = []

    class Watched(Descent):
        def epoch(self):
            rates.append(self.rate)
            return super().epoch()

    ranker = RankNet(optimizer="sgd", learning_rate=1.0, epochs=12, batch_queries=1, n_jobs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcrank.rankers.nets.Descent", Watched)
        ranker.fit(PARTS.train)
    values = ranker.history_["training kendall"]
    wanted = [1.0, 1.0]
    for before, now in itertools.pairwise(values):
        wanted.append(wanted[-1] / 2 if now < before else wanted[-1])
    assert rates == wanted[:-1]
    assert rates[-1] < 1.0


def test_weights_of_rows_and_queries_matter_only_by_their_ratios():
    X, y, qid = few_values(7, 100, 3, 9, 3)
    plain = RankNet(**QUICK).fit(X, y, qid=qid).weights_
    assert np.array_equal(RankNet(**QUICK).fit(X, y, qid=qid, weight=np.full(100, 8.0)).weights_, plain)
    uneven = RankNet(**QUICK).fit(X, y, qid=qid, query_weight=np.arange(10) + 1.0).weights_
    assert not np.array_equal(uneven, plain)
    by_row = RankNet(**QUICK).fit(X, y, qid=qid, weight=np.repeat(np.arange(10) + 1.0, 10)).weights_
    assert np.array_equal(by_row, uneven)


def test_pairs_may_share_the_weight_of_their_query():
    """Where every query has eight pairs, sharing is the same as steps of an eighth."""
    stream = np.random.default_rng(9)
    data = Dataset(stream.standard_normal((60, 3)), [0, 0, 1, 1, 2] * 12, np.arange(60) // 5)
    options = QUICK | {"optimizer": "sgd", "l2": 0.0}
    shared = RankNet(pairs="query", learning_rate=0.8, **options).fit(data)
    alone = RankNet(pairs="pair", learning_rate=0.1, **options).fit(data)
    np.testing.assert_allclose(shared.weights_, alone.weights_, rtol=1e-10, atol=1e-12)


def test_an_interrupted_net_keeps_what_it_has():
    with pytest.warns(UserWarning, match="RankNet was interrupted; it keeps round 3 of"):
        ranker = RankNet(**QUICK).fit(PARTS.train, callback=interrupt_after(3))
    assert ranker.n_rounds_ == 3
    assert np.array_equal(ranker.weights_, RankNet(**(QUICK | {"epochs": 3})).fit(PARTS.train).weights_)
