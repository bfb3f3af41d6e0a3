"""RankBoost: sums without pairs against explicit pairs, every round against brute force, cases by hand."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Dataset, RankBoost
from mcrank.errors import OptionError
from mcrank.losses.pairwise import pair_arrays
from mcrank.rankers.rankboost import _levels, pull_rows, sum_separated
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.training.stumps import NET, ROOTS, SIZE, BinnedColumns, best_cuts, equal_width_bins, sum_bins
from tests.rankers.data import TEACH_NOTHING, dataset, few_values, interrupt_after, teaching_nothing
from tests.reference.rankboost import best_merit, good_and_bad, merit, pair_weights, pulls

SMOOTH = 1e-4


def pull(scores, layout, weight, factor):
    up, down, out = np.zeros((3, len(scores)))
    total = pull_rows(layout._replace(factor=factor), weight, scores, up, down, out)
    return total, up, down, out


@st.composite
def graded(draw):
    """Grades, offsets, scores as far apart as asked, weights and factors."""
    stream = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = stream.integers(1, 8, draw(st.integers(1, 5)))
    offsets = np.r_[0, np.cumsum(sizes)]
    rows = int(offsets[-1])
    y = stream.integers(0, draw(st.integers(1, 5)), rows) / 2
    # Whatever their distance, pairs ordered badly stay within reason, as the loss sees to.
    scores = y * draw(st.sampled_from([0.0, 1.0, 100.0, 1000.0])) + stream.normal(size=rows) + 1e4
    weight = stream.random(rows) if draw(st.booleans()) else np.ones(rows)
    return y, offsets, scores, weight, stream.random(len(sizes))


@given(graded(), st.booleans())
def test_the_pull_is_that_of_explicit_pairs(case, per_query):
    y, offsets, scores, weight, query_weight = case
    layout = pair_arrays(y, offsets, per_query)
    total, _, _, out = pull(scores, layout, weight, layout.factor * query_weight)
    weighted = pair_weights(scores, y, offsets, weight, query_weight, per_query)
    assert total == pytest.approx(sum(d for _, _, d in weighted), rel=1e-9)
    assert out == pytest.approx(pulls(weighted, len(y)), rel=1e-7, abs=1e-12)


@given(graded(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
def test_weights_of_separated_pairs_are_those_of_explicit_pairs(case, seed, missing):
    y, offsets, scores, weight, query_weight = case
    scores = np.clip(scores - 1e4, -5, 5)
    stream = np.random.default_rng(seed)
    X = stream.integers(0, 4, (len(y), 2)).astype(np.float32)
    X[stream.random(X.shape) < missing] = np.nan
    queries = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    data = Dataset(X, y, queries)
    binned = BinnedColumns.of(data, {"n_jobs": 1, "max_bins": 256, "binning": "adaptive"})
    layout = pair_arrays(y, offsets)
    factor = layout.factor * query_weight
    _, up, down, out = pull(scores, layout, weight, factor)
    net, total = binned.room(), binned.room()
    by_bin = np.array(
        [np.lexsort((-column.astype(int), queries)) for column in binned.columns], dtype=np.int32
    )
    sum_bins(binned.columns, out, binned.places, net)
    pairs = layout._replace(factor=factor)
    sum_separated(binned.columns, by_bin, _levels(layout), pairs, up, down, binned.places, total)
    weighted = pair_weights(scores, y, offsets, weight, query_weight)
    scale = max(1.0, sum(d for _, _, d in weighted))
    for f in range(2):
        for first in range(1 + int(binned.bins.missing[f]), int(binned.bins.counts[f])):
            good, bad = good_and_bad(weighted, binned.columns[f] >= first)
            part = slice(binned.places[f] + first, binned.places[f + 1])
            assert net[part].sum() == pytest.approx(good - bad, abs=1e-9 * scale)
            assert total[part].sum() == pytest.approx(good + bad, abs=1e-9 * scale)


@given(st.integers(0, 2**32 - 1), st.sampled_from([NET, SIZE, ROOTS]))
def test_the_best_cut_is_the_best_of_all(seed, rule):
    stream = np.random.default_rng(seed)
    missing = stream.integers(0, 2, 3).astype(np.uint8)
    counts = missing + stream.integers(1, 6, 3)
    places = np.r_[0, np.cumsum(counts)]
    good, bad = stream.random((2, places[-1]))
    first, found = np.zeros(3, dtype=np.int64), np.zeros((3, 3))
    best_cuts(good - bad, good + bad, places, missing, rule, first, found)
    name = {NET: "r", SIZE: "abs", ROOTS: "z"}[rule]
    for f in range(3):
        merits = {
            b: merit(
                good[places[f] + b : places[f + 1]].sum(), bad[places[f] + b : places[f + 1]].sum(), name
            )
            for b in range(1 + missing[f], counts[f])
        }
        assert found[2, f] == pytest.approx(max([*merits.values(), 0.0]))
        if found[2, f] > 0:
            assert merits[first[f]] == pytest.approx(found[2, f])


@settings(max_examples=15)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["r", "abs", "z"]), st.sampled_from(["all", "query"]),
    st.sampled_from([0.0, 0.2]), st.booleans(),
)  # fmt: skip
def test_every_round_is_the_best_over_all_thresholds(seed, criterion, pairs, missing, weighted):
    X, y, qid = few_values(seed, 40, 3, 6, 3, missing=missing)
    stream = np.random.default_rng(seed)
    weights = (stream.random(40) + 0.1, stream.random(4) + 0.1) if weighted else (None, None)
    data = Dataset(X, y, qid, *weights)
    ranker = RankBoost(n_estimators=6, criterion=criterion, pairs=pairs, n_jobs=1).fit(data)
    forest, scores, first = ranker.forest_, np.zeros(40), None
    for t in range(forest.n_trees):
        loss = pair_weights(scores, data.y, data.offsets, *weights, pairs == "query")
        z = sum(d for _, _, d in loss)
        first = z if first is None else first
        root = forest.tree_offsets[t]
        above = data.X[:, forest.feature[root]] > forest.threshold[root]
        good, bad = good_and_bad(loss, above)
        assert merit(good, bad, criterion) == pytest.approx(best_merit(loss, data.X, criterion), rel=1e-6)
        r = (good - bad) / z
        alpha = log((good + SMOOTH * z) / (bad + SMOOTH * z)) / 2 if criterion == "z" else np.arctanh(r)
        assert forest.value[root + 2] == pytest.approx(alpha, rel=1e-6)
        assert forest.value[root + 1] == 0
        assert forest.rows[root + 2] == above.sum()
        scores[above] += forest.value[root + 2]
        after = sum(d for _, _, d in pair_weights(scores, data.y, data.offsets, *weights, pairs == "query"))
        assert after < z
        assert ranker.history_["loss"][t] == pytest.approx(after / first, rel=1e-6)
    assert ranker.predict(data) == pytest.approx(scores)


def test_two_rounds_by_hand():
    # One query: grades 1, 0, 0; feature a puts the good row above one bad row, b above the other.
    data = Dataset([[2, 1], [1, 2], [2, 0]], y=[1, 0, 0], qid=[1, 1, 1])
    # Round 1: pairs (0, 1) and (0, 2) weigh 1 each, π = (2, -1, -1). Above a > 1: rows 0 and 2, r = 1/2;
    # b > 1: row 1, r = -1/2; b > 0: rows 0 and 1, r = 1/2. The first of equals is a, α = ½ ln 3.
    ranker = RankBoost(n_estimators=2, criterion="r").fit(data)
    forest = ranker.forest_
    assert (forest.feature[0], forest.threshold[0]) == (0, 1.5)
    assert forest.value[2] == pytest.approx(log(3) / 2)
    # Round 2: (0, 1) now weighs 1/√3, (0, 2) still 1: Z = 1 + 1/√3 and π = (Z, -1/√3, -1). a > 1 has
    # 1/√3, b > 0 has 1: r = 1/Z. The loss left is (1/√3 + e^-α)/2.
    r = 1 / (1 + 1 / sqrt(3))
    assert (forest.feature[3], forest.threshold[3]) == (1, 0.5)
    assert forest.value[5] == pytest.approx(log((1 + r) / (1 - r)) / 2)
    assert ranker.history_["loss"] == [
        pytest.approx((1 + 1 / sqrt(3)) / 2), pytest.approx((1 / sqrt(3) + sqrt((1 - r) / (1 + r))) / 2)
    ]  # fmt: skip
    assert ranker.score(data) == 1.0


def test_a_feature_that_points_down_needs_the_size_of_r():
    data = Dataset([[0.0], [1.0]], y=[1, 0], qid=[1, 1])
    assert RankBoost(criterion="r").fit(data).forest_.n_trees == 0
    for criterion in ("abs", "z"):
        ranker = RankBoost(criterion=criterion, n_estimators=1).fit(data)
        assert ranker.forest_.value[2] < 0
        assert ranker.score(data) == 1.0


def test_a_few_thresholds_of_equal_distance():
    X = np.array([[0.0, 5.0, np.nan], [1.0, 5.0, 3.0], [10.0, 5.0, -1.0]], dtype=np.float32)
    bins = equal_width_bins(X, 5)
    assert bins.offsets.tolist() == [0, 5, 5, 10]
    assert bins.edges[:5].tolist() == [0, 2, 4, 6, 8]
    assert bins.edges[5:] == pytest.approx([-1, -0.2, 0.6, 1.4, 2.2])
    assert bins.missing.tolist() == [0, 0, 1]
    data = mcrank.make_artificial(n_train=20, n_valid=2, n_test=2, seed=4).train
    ranker = RankBoost(n_estimators=30, thresholds=10).fit(data)
    root = ranker.forest_.tree_offsets[:-1]
    feature, threshold = ranker.forest_.feature[root], ranker.forest_.threshold[root]
    low, high = data.X.min(axis=0)[feature].astype(float), data.X.max(axis=0)[feature].astype(float)
    tenths = 10 * (threshold - low) / (high - low)
    assert tenths == pytest.approx(np.round(tenths), abs=1e-4)
    assert ranker.predict(data) != pytest.approx(RankBoost(n_estimators=30).fit(data).predict(data))


def test_all_values_as_thresholds():
    """More than 256 bins: a threshold between any two values."""
    stream = np.random.default_rng(0)
    X = stream.random((300, 1)).astype(np.float32)
    data = Dataset(X, (X[:, 0] + 0.2 * stream.normal(size=300) > 0.5).astype(float), np.arange(300) // 20)
    ranker = RankBoost(n_estimators=3, max_bins=65536).fit(data)
    root = ranker.forest_.tree_offsets[0]
    weighted = pair_weights(np.zeros(300), data.y, data.offsets)
    above = X[:, ranker.forest_.feature[root]] > ranker.forest_.threshold[root]
    assert merit(*good_and_bad(weighted, above), "abs") == pytest.approx(best_merit(weighted, X, "abs"))


def test_missing_values_are_below_every_threshold():
    nan = float("nan")
    data = Dataset([[1.0], [nan], [0.0]], y=[1, 0, 0], qid=[1, 1, 1])
    ranker = RankBoost(n_estimators=1).fit(data)
    assert ranker.predict([[5.0], [nan], [-5.0]]).tolist() == [ranker.forest_.value[2], 0.0, 0.0]


def test_the_best_round_on_validation_data_is_kept():
    train, valid, test = mcrank.make_artificial(n_train=30, n_valid=15, n_test=5, n_features=8, seed=5)
    ranker = RankBoost(n_estimators=60, measure="map").fit(train, valid=valid)
    values = ranker.history_["map"]
    assert len(values) == len(ranker.history_["loss"]) == ranker.n_rounds_ == 60
    assert ranker.best_round_ == ranker.forest_.n_trees == 1 + int(np.argmax(values)) < 60
    assert mcrank.MAP().on(valid).mean(ranker.predict(valid)) == max(values)
    again = RankBoost(n_estimators=ranker.best_round_).fit(train)
    assert np.array_equal(again.predict(test), ranker.predict(test))
    patient = RankBoost(n_estimators=60, measure="map", early_stopping_rounds=3).fit(train, valid=valid)
    assert patient.n_rounds_ == min(60, patient.best_round_ + 3)


@pytest.mark.parametrize("criterion", ["r", "abs", "z"])
def test_a_perfect_stump_again_and_again_stays_finite(criterion):
    data = Dataset([[0.0], [1.0], [2.0]] * 3, y=[0, 1, 2] * 3, qid=np.repeat([1, 2, 3], 3))
    ranker = RankBoost(n_estimators=1000, criterion=criterion).fit(data)
    assert np.isfinite(ranker.predict(data)).all()
    assert np.isfinite(ranker.history_["loss"]).all()
    assert ranker.score(data) == 1.0
    assert ranker.n_rounds_ < 1000  # it stops when nothing of the loss is left


@pytest.mark.parametrize("criterion", ["r", "abs", "z"])
@pytest.mark.parametrize("case", TEACH_NOTHING)
def test_data_that_teach_nothing(criterion, case):
    data = Dataset(*teaching_nothing(case, np.arange(8.0).reshape(4, 2), [0, 1, 0, 2], [1, 1, 2, 2]))
    ranker = RankBoost(criterion=criterion).fit(data, valid=data)
    assert (ranker.n_rounds_, ranker.best_round_, ranker.history_) == (0, 0, {})
    assert ranker.predict(data).tolist() == [0.0] * 4
    assert np.array_equal(from_bytes(to_bytes(ranker)).predict(data), ranker.predict(data))


@pytest.mark.parametrize("criterion", ["abs", "z"])
def test_the_model_is_the_same_for_any_number_of_threads(criterion):
    data = dataset(3, 300, 9, 12, 4, missing=0.1)
    files = [to_bytes(RankBoost(n_estimators=20, criterion=criterion, n_jobs=n).fit(data)) for n in (1, 2, 4)]
    assert files[0] == files[1] == files[2]


def test_the_measure_only_chooses_the_round():
    train, valid, _ = mcrank.make_artificial(n_train=20, n_valid=10, n_test=2, seed=6)
    kinds = [RankBoost(n_estimators=30, dialect=d).fit(train, valid=valid) for d in ("standard", "yahoo")]
    assert kinds[0].best_round_ == kinds[1].best_round_
    assert np.array_equal(kinds[0].predict(valid), kinds[1].predict(valid))


def test_weights_of_zero_leave_out():
    X, y, qid = few_values(9, 60, 3, 6, 3)
    kept = qid != 2
    some = RankBoost(n_estimators=10).fit(X[kept], y[kept], qid=qid[kept])
    for weights in ({"query_weight": [1, 1, 0, 1, 1, 1]}, {"weight": kept.astype(float)}):
        assert RankBoost(n_estimators=10).fit(X, y, qid=qid, **weights).predict(X) == pytest.approx(
            some.predict(X)
        )
    nothing = RankBoost(n_estimators=10).fit(X, y, qid=qid, weight=np.r_[np.ones(1), np.zeros(59)])
    assert nothing.n_rounds_ == 0


def test_bad_options_and_interruption():
    data = dataset(1, 60, 3, 6, 3)
    with pytest.raises(OptionError, match="criterion of RankBoost must be 'r' or 'abs' or 'z', got 'x'"):
        RankBoost(criterion="x").fit(data)
    with pytest.raises(OptionError, match="thresholds of RankBoost must be an integer >= 1"):
        RankBoost(thresholds=0).fit(data)

    ranker = RankBoost()
    with pytest.warns(UserWarning, match="RankBoost was interrupted; it keeps"):
        ranker.fit(data, callback=interrupt_after(3))
    kept = RankBoost(n_estimators=ranker.best_round_).fit(data)
    assert ranker.best_round_ in (2, 3)
    assert np.array_equal(ranker.predict(data), kept.predict(data))
