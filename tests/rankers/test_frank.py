"""FRank: sums against explicit pairs, derivatives against differences, rounds against brute force."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank import Dataset, FRank
from mcrank.errors import OptionError
from mcrank.losses.pairwise import pair_arrays
from mcrank.rankers.frank import pull_fidelity, sum_separated_pairs, try_fidelity
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.training.stumps import BinnedColumns
from tests.rankers.data import TEACH_NOTHING, dataset, few_values, interrupt_after, teaching_nothing
from tests.reference import frank as naive
from tests.reference.rankboost import good_and_bad, merit, pulls

SMOOTH = 1e-4


@st.composite
def graded(draw):
    """Grades, offsets, scores, row weights and query weights."""
    stream = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = stream.integers(1, 8, draw(st.integers(1, 5)))
    offsets = np.r_[0, np.cumsum(sizes)]
    rows = int(offsets[-1])
    y = stream.integers(0, draw(st.integers(1, 5)), rows) / 2
    scores = stream.normal(size=rows) * draw(st.sampled_from([0.0, 1.0, 30.0])) + 1e3
    weight = stream.random(rows) + 0.1 if draw(st.booleans()) else np.ones(rows)
    return y, offsets, scores, weight, stream.random(len(sizes)) + 0.1


def laid_out(case, per_query=True):
    y, offsets, scores, weight, query_weight = case
    layout = pair_arrays(y, offsets, per_query)
    factor = layout.factor * query_weight
    factor /= max(factor.max(), 1e-300)
    weight = weight / weight.max()
    up, pull = np.zeros((2, len(y)))
    layout = layout._replace(factor=factor)
    total = pull_fidelity(layout, weight, scores, up, pull)
    pairs = naive.weighted_pairs(y, offsets, weight, query_weight, per_query)
    return layout, weight, up, pull, total, pairs


@given(graded(), st.booleans())
def test_loss_and_pull_are_those_of_explicit_pairs(case, per_query):
    scores = case[2]
    *_, pull, total, pairs = laid_out(case, per_query)
    assert total == pytest.approx(naive.loss(scores, pairs), rel=1e-9, abs=1e-12)
    assert pull == pytest.approx(pulls(naive.slopes(scores, pairs), len(scores)), rel=1e-7, abs=1e-12)


@given(graded())
def test_the_pull_is_twice_the_slope_of_the_loss(case):
    scores = case[2]
    *_, pull, _, pairs = laid_out(case)
    for row in range(len(scores)):
        step = np.zeros(len(scores))
        step[row] = 1e-4
        difference = (naive.loss(scores - step, pairs) - naive.loss(scores + step, pairs)) / 2e-4
        assert pull[row] / 2 == pytest.approx(difference, abs=1e-6)


@given(graded(), st.integers(0, 2**32 - 1), st.floats(-4, 4))
def test_trying_a_step(case, seed, alpha):
    scores = case[2]
    layout, weight, up, _, _, pairs = laid_out(case)
    above = np.random.default_rng(seed).random(len(scores)) < 0.5

    def at(value):
        out = np.zeros(4)
        try_fidelity(above, layout, weight, up, value, out)
        return out

    change, slope, curve, bound = at(alpha)
    expected = naive.loss(scores + alpha * above, pairs) - naive.loss(scores, pairs)
    assert change == pytest.approx(expected, abs=1e-9)
    assert slope == pytest.approx((at(alpha + 1e-5)[0] - at(alpha - 1e-5)[0]) / 2e-5, abs=1e-5)
    assert curve == pytest.approx((at(alpha + 1e-5)[1] - at(alpha - 1e-5)[1]) / 2e-5, abs=1e-5)
    assert bound >= abs(curve) - 1e-12


@given(graded(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
def test_weights_of_separated_pairs_are_those_of_explicit_pairs(case, seed, missing):
    y, offsets, scores, *_ = case
    layout, weight, up, _, _, pairs = laid_out(case)
    stream = np.random.default_rng(seed)
    X = stream.integers(0, 4, (len(y), 3)).astype(np.float32)
    X[stream.random(X.shape) < missing] = np.nan
    data = Dataset(X, y, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)))
    binned = BinnedColumns.of(data, {"n_jobs": 1, "max_bins": 256, "binning": "adaptive"})
    total = binned.room()
    for first, end in ((0, 1), (1, 3)):
        places = binned.places[first : end + 1]
        sum_separated_pairs(binned.columns[first:end], layout, weight, up, places, total)
    weighted = naive.slopes(scores, pairs)
    for f in range(3):
        for first in range(1 + int(binned.bins.missing[f]), int(binned.bins.counts[f])):
            good, bad = good_and_bad(weighted, binned.columns[f] >= first)
            found = total[binned.places[f] + first : binned.places[f + 1]].sum()
            assert found == pytest.approx(good + bad, abs=1e-9)


@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["all", "query"]), st.sampled_from([0.0, 0.2]), st.booleans()
)
def test_every_round_is_what_brute_force_would_do(seed, pairs, missing, weighted):
    X, y, qid = few_values(seed, 40, 3, 6, 3, missing=missing)
    stream = np.random.default_rng(seed)
    weights = (stream.random(40) + 0.1, stream.random(4) + 0.1) if weighted else (None, None)
    data = Dataset(X, y, qid, *weights)
    ranker = FRank(n_estimators=4, pairs=pairs, learning_rate=0.5, n_jobs=1).fit(data)
    everything = naive.weighted_pairs(data.y, data.offsets, *weights, pairs == "query")
    forest, scores = ranker.forest_, np.zeros(40)
    begin = naive.loss(scores, everything)
    for t in range(forest.n_trees):
        now, slopes = naive.loss(scores, everything), naive.slopes(scores, everything)
        # The best threshold of each feature by the closed form, then the loss with its first alpha.
        found = []
        for f in range(3):
            column = data.X[:, f]
            cuts = [column > v for v in np.unique(column[~np.isnan(column)])[:-1]]
            above = max(cuts, key=lambda cut: merit(*good_and_bad(slopes, cut), "z"))
            alpha = naive.first_alpha(*good_and_bad(slopes, above), SMOOTH)
            found.append(naive.loss(scores + alpha * above, everything) - now)
        root = forest.tree_offsets[t]
        above = data.X[:, forest.feature[root]] > forest.threshold[root]
        alpha = naive.first_alpha(*good_and_bad(slopes, above), SMOOTH)
        assert naive.loss(scores + alpha * above, everything) - now == pytest.approx(min(found), abs=1e-9)
        # Newton's method made it better still, and ended where the loss is level (or at the bound).
        alpha = forest.value[root + 2] / 0.5
        assert naive.loss(scores + alpha * above, everything) - now <= min(found) + 1e-9
        assert forest.gain[root] == pytest.approx(
            now - naive.loss(scores + alpha * above, everything), abs=1e-9
        )
        ahead, behind = (naive.loss(scores + (alpha + d) * above, everything) for d in (1e-4, -1e-4))
        assert abs(ahead - behind) / 2e-4 < 1e-3 * begin or abs(alpha) > 3
        scores[above] += forest.value[root + 2]
        after = naive.loss(scores, everything)
        assert after < now
        assert ranker.history_["loss"][t] == pytest.approx(after / begin, rel=1e-9)
    assert ranker.predict(data) == pytest.approx(scores)


def test_a_round_by_hand():
    # Three queries of one pair each; the only stump orders two well and one badly. With P the chance of a
    # pair ordered well, and 1 - P of the other, 2(1 - √P) + 1 - √(1 - P) is level where
    # 2 √P (1 - P) = √(1 - P) P, that is 4 (1 - P) = P: P = .8, alpha = ln(P / (1 - P)) = ln 4.
    data = Dataset([[1], [0], [1], [0], [0], [1]], y=[1, 0] * 3, qid=[1, 1, 2, 2, 3, 3])
    ranker = FRank(n_estimators=1, learning_rate=1).fit(data)
    assert (ranker.forest_.feature[0], ranker.forest_.threshold[0]) == (0, 0.5)
    assert ranker.forest_.value[2] == pytest.approx(log(4), abs=1e-4)
    after = 2 * (1 - sqrt(0.8)) + 1 - sqrt(0.2)
    assert ranker.history_["loss"] == [pytest.approx(after / (3 * (1 - sqrt(0.5))))]


def test_queries_or_pairs_have_equal_weight():
    # Query 1 has two pairs that want feature up, query 2 one pair that wants it down.
    data = Dataset([[1], [0], [0], [0], [1]], y=[1, 0, 0, 1, 0], qid=[1, 1, 1, 2, 2])
    by_pair = FRank(n_estimators=1, learning_rate=1, pairs="all").fit(data).forest_.value[2]
    assert by_pair == pytest.approx(log(4), abs=1e-4)
    assert FRank(n_estimators=1, pairs="query").fit(data).forest_.n_trees == 0  # one each: they cancel out


def test_trees_by_hand():
    # Twenty queries of one pair; at score 0, P = 1/2: slope ½ √P (1 - P), bound √P (1 - P)(1 + P)/4, and a
    # leaf gets their quotient 2/(1 + P) = 4/3, times the rate.
    data = Dataset([[1.0], [0.0]] * 20, y=[1, 0] * 20, qid=np.repeat(np.arange(20), 2))
    ranker = FRank(scorer="trees", n_estimators=1, learning_rate=0.1).fit(data)
    assert ranker.predict([[1.0], [0.0]]) == pytest.approx([0.4 / 3, -0.4 / 3], rel=1e-5)
    assert "loss" not in ranker.history_


@pytest.mark.parametrize("scorer", ["stumps", "trees"])
def test_the_best_round_on_validation_data_is_kept(scorer):
    train, valid, test = mcrank.make_artificial(
        n_train=20, n_valid=15, n_test=5, docs_per_query=20, n_features=8, seed=5
    )
    ranker = FRank(n_estimators=40, scorer=scorer, measure="map").fit(train, valid=valid)
    values = ranker.history_["map"]
    assert ranker.best_round_ == ranker.forest_.n_trees == 1 + int(np.argmax(values))
    assert mcrank.MAP().on(valid).mean(ranker.predict(valid)) == max(values)
    again = FRank(n_estimators=ranker.best_round_, scorer=scorer).fit(train)
    assert np.array_equal(again.predict(test), ranker.predict(test))
    assert np.array_equal(from_bytes(to_bytes(ranker)).predict(test), ranker.predict(test))
    yahoo = FRank(n_estimators=40, scorer=scorer, measure="map", dialect="yahoo").fit(train, valid=valid)
    assert np.array_equal(yahoo.predict(test), ranker.predict(test))


def test_a_perfect_stump_again_and_again_stays_finite():
    data = Dataset([[0.0], [1.0], [2.0]] * 3, y=[0, 1, 2] * 3, qid=np.repeat([1, 2, 3], 3))
    ranker = FRank(n_estimators=300, learning_rate=1).fit(data)
    assert np.isfinite(ranker.predict(data)).all()
    assert ranker.score(data) == 1.0
    assert ranker.n_rounds_ < 300


@pytest.mark.parametrize("scorer", ["stumps", "trees"])
@pytest.mark.parametrize("case", TEACH_NOTHING)
def test_data_that_teach_nothing(scorer, case):
    data = Dataset(*teaching_nothing(case, np.arange(8.0).reshape(4, 2), [0, 1, 0, 2], [1, 1, 2, 2]))
    ranker = FRank(scorer=scorer, n_estimators=5).fit(data, valid=data)
    assert np.ptp(ranker.predict(data)) == 0
    assert np.array_equal(from_bytes(to_bytes(ranker)).predict(data), ranker.predict(data))


def test_missing_values_are_below_every_threshold():
    nan = float("nan")
    data = Dataset([[1.0], [nan], [0.0]], y=[1, 0, 0], qid=[1, 1, 1])
    ranker = FRank(n_estimators=1).fit(data)
    assert ranker.predict([[5.0], [nan], [-5.0]]).tolist() == [ranker.forest_.value[2], 0.0, 0.0]


@pytest.mark.parametrize("max_bins", [256, 300])
def test_the_model_is_the_same_for_any_number_of_threads(max_bins):
    stream = np.random.default_rng(0)
    X = stream.random((600, 5))
    y = np.round(X[:, 0] + X[:, 1] + 0.3 * stream.normal(size=600)).clip(0, 2)
    data = Dataset(X, y, np.arange(600) // 20)
    files = [to_bytes(FRank(n_estimators=5, max_bins=max_bins, n_jobs=n).fit(data)) for n in (1, 2, 4)]
    assert files[0] == files[1] == files[2]


def test_weights_of_zero_leave_out():
    X, y, qid = few_values(9, 60, 3, 6, 3)
    kept = qid != 2
    some = FRank(n_estimators=10).fit(X[kept], y[kept], qid=qid[kept])
    for weights in ({"query_weight": [1, 1, 0, 1, 1, 1]}, {"weight": kept.astype(float)}):
        again = FRank(n_estimators=10).fit(X, y, qid=qid, **weights)
        assert again.predict(X) == pytest.approx(some.predict(X), abs=1e-9)


def test_bad_options_and_interruption():
    data = dataset(1, 60, 3, 6, 3)
    with pytest.raises(OptionError, match="scorer of FRank must be 'stumps' or 'trees', got 'net'"):
        FRank(scorer="net").fit(data)
    with pytest.raises(OptionError, match="candidates of FRank must be an integer >= 1"):
        FRank(candidates=0).fit(data)

    ranker = FRank()
    with pytest.warns(UserWarning, match="FRank was interrupted; it keeps round 3 of"):
        ranker.fit(data, callback=interrupt_after(3))
    assert np.array_equal(ranker.predict(data), FRank(n_estimators=3).fit(data).predict(data))
