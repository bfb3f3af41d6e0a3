"""RankSVM: pair-free sums against explicit pairs, and the optimum against a direct pairwise solve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

import mcrank
from mcrank import Dataset, RankSVM
from mcrank.errors import OptionError
from mcrank.rankers.ranksvm import PATH
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.training.hinge import PairedRows
from tests.rankers.data import TEACH_NOTHING, dataset, few_values, interrupt_after, teaching_nothing
from tests.reference import ranksvm as reference

WIDTHS = [(np.inf, 1.0), (1.0, 0.5), (0.125, 4.0), (1e-9, 5e8), (3.0, 1 / 6)]


def random_rows(seed, n_queries, longest, n_grades, coarse, weighted):
    stream = np.random.default_rng(seed)
    sizes = stream.integers(1, longest + 1, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    y = stream.integers(0, n_grades, len(qid)).astype(float) ** 1.5
    scores = stream.normal(size=len(qid)) * 1.5
    if coarse:  # ties, and margins of exactly 0 and 1
        scores = np.round(scores * 2) / 2
    weight = stream.integers(0, 3, len(qid)) / 2 if weighted else None
    query_weight = stream.random(n_queries) if weighted else None
    return y, qid, scores, weight, query_weight


@given(
    seed=st.integers(0, 10**6),
    n_queries=st.integers(1, 4),
    longest=st.integers(1, 12),
    n_grades=st.sampled_from([1, 2, 3, 20]),
    coarse=st.booleans(),
    weighted=st.booleans(),
    by_query=st.booleans(),
    shape=st.sampled_from(WIDTHS),
)
def test_sums_without_pairs_are_those_of_pairs(
    seed, n_queries, longest, n_grades, coarse, weighted, by_query, shape
):
    y, qid, scores, weight, query_weight = random_rows(seed, n_queries, longest, n_grades, coarse, weighted)
    if weighted and not weight.any():
        weight[0] = 1.0
    data = Dataset(np.zeros((len(y), 1)), y, qid, weight, query_weight)
    inside = np.isin(qid, [q for q in range(n_queries) if len(set(y[qid == q])) > 1])
    # Only ratios of weights count: the largest is 1.
    rows = weight[inside] / weight.max() if weighted else None
    queries = query_weight / query_weight.max() if weighted else None
    better, worse, weights = reference.pairs(y[inside], qid[inside], rows, queries, by_query)
    paired = PairedRows.of(data, by_query)
    if not weights.sum() > 0:
        assert paired is None
        return
    assert paired.total == pytest.approx(weights.sum())
    width, curve = shape
    scores = scores[inside]
    wanted, gradient, second = reference.hinge_loss(scores, better, worse, weights, width, curve)
    bend = curve * weights.sum()
    arguments = paired.order(scores), scores, width, curve
    loss, got = paired.loss(*arguments)
    assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-12 * bend)
    np.testing.assert_allclose(got, gradient, rtol=1e-9, atol=1e-11 * bend)
    if not coarse:  # on a kink there is no second derivative
        moved = np.random.default_rng(seed).normal(size=len(scores))
        got = paired.curvature(*arguments, moved)
        np.testing.assert_allclose(got, second @ moved, rtol=1e-9, atol=1e-11 * bend)


def test_gradient_and_curvature_are_derivatives():
    data = dataset(5, 40, 3, 6, 3)
    paired = PairedRows.of(data)
    stream = np.random.default_rng(0)
    scores, moved, step = stream.normal(size=40), stream.normal(size=40), 1e-6

    def at(s):
        return paired.loss(paired.order(s), s, 0.7, 1.3)

    up, down = at(scores + step * moved), at(scores - step * moved)
    assert (up[0] - down[0]) / (2 * step) == pytest.approx(at(scores)[1] @ moved, rel=1e-6)
    bent = paired.curvature(paired.order(scores), scores, 0.7, 1.3, moved)
    np.testing.assert_allclose((up[1] - down[1]) / (2 * step), bent, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize(("loss", "power"), [("squared", 2), ("plain", 1)])
@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0])
def test_the_optimum_is_that_of_liblinear_on_pairs(loss, power, C, by_query):
    X, y, qid = few_values(7, 120, 5, 9, 3)
    ranker = RankSVM(C=C, loss=loss, tol=1e-6, pairs="query" if by_query else "pair").fit(X, y, qid=qid)
    Z = ranker.scaling_.apply(X)
    better, worse, weights = reference.pairs(y, qid, by_query=by_query)
    D = Z[better] - Z[worse]
    side = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # it wants two classes
    peer = LinearSVC(
        C=C,
        loss="squared_hinge" if power == 2 else "hinge",
        fit_intercept=False,
        tol=1e-9,
        max_iter=10**6,
        dual=power == 1,
        random_state=0,
    ).fit(D * side[:, None], side, sample_weight=weights)
    ours = reference.objective(Z, better, worse, weights, ranker.weights_, C, power)
    theirs = reference.objective(Z, better, worse, weights, peer.coef_[0], C, power)
    assert ours == pytest.approx(theirs, rel=3e-6)
    assert ranker.history_["objective"][-1] == pytest.approx(ours, rel=1e-6)
    # Both objectives are within 3e-6 of the least, and curve at least as half the squared length does.
    assert np.linalg.norm(ranker.weights_ - peer.coef_[0]) <= 2 * np.sqrt(2 * 3e-6 * theirs)


@pytest.mark.parametrize("loss", ["squared", "plain"])
def test_separable_pairs_get_their_margin(loss):
    X = np.arange(6.0)[:, None]
    ranker = RankSVM(C=1e4, loss=loss, scaling="none", tol=1e-9).fit(X, [0, 0, 1, 1, 2, 2], qid=[1] * 6)
    assert ranker.weights_[0] == pytest.approx(1, rel=1e-3)


def test_the_path_of_C_is_judged_on_the_validation_data():
    data = mcrank.make_artificial(n_train=20, n_valid=10, n_test=4, docs_per_query=20, n_features=5, seed=2)
    ranker = RankSVM().fit(data.train, valid=data.valid)
    values = ranker.history_["ndcg@10"]
    assert ranker.history_["C"] == list(PATH)
    assert ranker.n_rounds_ == len(PATH) == len(values)
    assert values[ranker.best_round_ - 1] == max(values)
    assert PATH[ranker.best_round_ - 1] == ranker.C_
    assert ranker.score(data.valid) == pytest.approx(max(values))
    # Each C is solved as if alone, to the tolerance.
    alone = RankSVM(C=PATH[4], tol=1e-6).fit(data.train)
    assert alone.history_["objective"][0] == pytest.approx(ranker.history_["objective"][4], rel=2e-3)
    assert alone.history_["objective"][0] <= ranker.history_["objective"][4] * (1 + 1e-6)
    assert alone.n_rounds_ == 1


def test_a_given_C_is_used_with_and_without_validation_data():
    data = dataset(8, 80, 3, 6, 3)
    for valid in (None, data):
        ranker = RankSVM(C=0.5).fit(data, valid=valid)
        assert (ranker.C_, ranker.n_rounds_, ranker.best_round_) == (0.5, 1, 1)


def test_whole_row_weights_act_as_repeated_rows():
    X, y, qid = few_values(9, 60, 3, 6, 3)
    times = np.random.default_rng(1).integers(1, 4, 60)
    repeated = np.repeat(np.arange(60), times)
    weighted = RankSVM(C=0.9, tol=1e-9, scaling="none").fit(X, y, qid=qid, weight=times)
    # The largest weight counts 1, here 3: pairs weigh a ninth.
    twice = RankSVM(C=0.1, tol=1e-9, scaling="none").fit(X[repeated], y[repeated], qid=qid[repeated])
    np.testing.assert_allclose(weighted.weights_, twice.weights_, rtol=1e-4)


def test_the_model_file_keeps_C_and_scaling():
    data = dataset(10, 80, 4, 6, 3, missing=0.2)
    for scaling in ("zscore", "minmax", "none", "log"):
        ranker = RankSVM(scaling=scaling).fit(data, valid=data)
        again = from_bytes(to_bytes(ranker))
        assert again.C_ == ranker.C_
        np.testing.assert_array_equal(again.predict(data), ranker.predict(data))
        assert to_bytes(again) == to_bytes(ranker)


def test_all_thread_counts_give_the_same_model():
    data = dataset(11, 120, 4, 6, 3)
    models = [to_bytes(RankSVM(n_jobs=jobs).fit(data, valid=data)) for jobs in (1, 2, 4)]
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize("loss", ["squared", "plain"])
@pytest.mark.parametrize("case", TEACH_NOTHING)
def test_data_with_nothing_to_learn_gives_equal_scores(loss, case):
    X, y, qid = teaching_nothing(case, *few_values(12, 30, 3, 6, 3))
    data = Dataset(X, y, qid)
    ranker = RankSVM(loss=loss).fit(data, valid=data)
    scores = ranker.predict(data)
    assert (scores == scores[0]).all()
    assert (ranker.best_round_, ranker.weights_.tolist()) == (1, [0, 0, 0])
    assert np.array_equal(from_bytes(to_bytes(ranker)).predict(X), scores)


@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "log"])
@pytest.mark.parametrize("loss", ["squared", "plain"])
def test_huge_and_tiny_features_stay_finite(loss, scaling):
    stream = np.random.default_rng(4)
    X = stream.choice([-3e38, 3e38, 0.0, 1e-45], (40, 3)).astype(np.float32)
    X[:, 2] *= np.float32(1e-38)
    data = Dataset(X, stream.integers(0, 3, 40), np.arange(40) // 8)
    ranker = RankSVM(loss=loss, scaling=scaling).fit(data, valid=data)
    assert np.isfinite(ranker.weights_).all()
    assert np.isfinite(from_bytes(to_bytes(ranker)).predict(data)).all()


def test_a_callback_ends_the_path():
    data = dataset(13, 60, 3, 6, 3)
    ranker = RankSVM().fit(data, valid=data, callback=lambda event: event.round == 3)
    assert ranker.n_rounds_ == 3


def test_ctrl_c_keeps_what_was_found():
    data = dataset(13, 60, 3, 6, 3)

    with pytest.warns(UserWarning, match="RankSVM was interrupted"):
        ranker = RankSVM().fit(data, valid=data, callback=interrupt_after(3))
    assert 1 <= ranker.best_round_ <= ranker.n_rounds_ == 3
    assert np.isfinite(ranker.predict(data)).all()


@pytest.mark.parametrize(
    ("name", "value"), [("C", 0), ("C", -1.0), ("loss", "hinge"), ("pairs", 2), ("tol", 0), ("max_iter", 0)]
)
def test_options_out_of_bounds(name, value):
    with pytest.raises(OptionError, match=f"{name} of RankSVM must be"):
        RankSVM(**{name: value}).fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
