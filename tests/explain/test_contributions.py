"""Contributions of every ranker: they add up, in any form the rows come in, against any background."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mcrank
from mcrank.errors import DataError, OptionError
from mcrank.explain.gradients import net_contributions
from tests.explain.models import NAMES, TEST, TRAIN, fitted
from tests.reference.shapley import rows_shapley


@pytest.mark.parametrize("name", NAMES)
def test_they_add_up_to_the_score_of_a_thousand_rows(name):
    ranker = fitted(name)
    found = ranker.contributions(TEST)
    assert found.values.shape == (1000, 5)
    assert found.feature_names == TEST.feature_names
    np.testing.assert_allclose(
        found.baseline + found.values.sum(axis=1), ranker.predict(TEST), rtol=1e-12, atol=1e-9
    )


@pytest.mark.parametrize("name", NAMES)
def test_raw_ones_add_up_to_the_raw_outputs(name):
    ranker = fitted(name)
    found = ranker.contributions(TEST, output="raw")
    raw = ranker.scorer_.raw(TEST.X, 1, TEST.offsets)
    np.testing.assert_allclose(found.scores, raw[0] if len(raw) == 1 else raw, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_against_a_background_they_add_up_too(name):
    ranker = fitted(name)
    found = ranker.contributions(TEST.X[:40], background=TRAIN.X[:3])
    np.testing.assert_allclose(found.scores, ranker.predict(TEST.X[:40]), rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(found.baseline, ranker.predict(TRAIN.X[:3]).mean(), rtol=1e-12, atol=1e-9)


def test_linear_contributions_are_weights_times_distances_from_the_training_mean():
    ranker = fitted("ranksvm")
    mean = np.nanmean(TRAIN.X.astype(np.float64), axis=0)
    scale = np.nanstd(TRAIN.X.astype(np.float64), axis=0)
    known = np.where(np.isnan(TEST.X), mean, TEST.X)
    np.testing.assert_allclose(
        ranker.contributions(TEST).values, (known - mean) / scale * ranker.weights_, atol=1e-9
    )


def test_a_missing_value_adds_nothing_to_a_linear_score():
    values = fitted("ranksvm").contributions(TEST).values
    assert (np.abs(values[np.isnan(TEST.X)]) < 1e-12).all()


def test_scores_whose_logs_are_added_up_share_their_rise_as_the_logs_do():
    from sklearn.ensemble import HistGradientBoostingRegressor

    ranker = mcrank.from_sklearn(
        HistGradientBoostingRegressor(loss="poisson", max_iter=8).fit(TRAIN.X, TRAIN.y)
    )
    assert ranker.head_.kind == "exp"
    rows = TEST.X[:60]
    scores = ranker.predict(rows)
    found, raw = ranker.contributions(rows), ranker.contributions(rows, output="raw")
    assert found.baseline == pytest.approx(np.exp(raw.baseline))
    # One output has one slope, which all features share.
    slope = (scores - found.baseline) / (raw.scores - raw.baseline)
    np.testing.assert_allclose(found.values, slope[:, None] * raw.values, rtol=1e-9, atol=1e-12)
    for a, b in itertools.pairwise(rows):
        why = ranker.explain_pair(a, b)
        assert sum(why.contributions.values()) == pytest.approx(why.difference, abs=1e-12)
    assert not any(ranker.explain_pair(rows[0], rows[0]).contributions.values())


def test_raw_contributions_to_several_outputs():
    ranker = fitted("mcrank")
    found = ranker.contributions(TEST.X[:7], output="raw")
    outputs = len(ranker.grades_)
    assert found.values.shape == (outputs, 7, 5)
    assert found.baseline.shape == (outputs, 1)
    assert len(found) == 7


@pytest.mark.parametrize("name", ["mcrank", "ranknet", "ranksvm"])
def test_threads_do_not_change_them(name):
    ranker = fitted(name)
    once = ranker.contributions(TEST).values
    np.testing.assert_array_equal(once, ranker.contributions(TEST).values)
    twin = mcrank.rankers.registry.from_bytes(mcrank.rankers.registry.to_bytes(ranker), "twin")
    twin.set_params(n_jobs=3)
    np.testing.assert_array_equal(once, twin.contributions(TEST).values)


def test_rows_come_back_in_the_callers_order():
    ranker = fitted("mcrank")
    mixed = np.random.default_rng(1).permutation(len(TEST.y))
    ids = np.repeat(TEST.qids, TEST.sizes)[mixed]
    data = mcrank.Dataset(TEST.X[mixed], TEST.y[mixed], ids)
    expected = ranker.contributions(TEST.X[mixed]).values
    np.testing.assert_array_equal(ranker.contributions(data).values, expected)


def test_one_row_as_background_is_the_game_between_two_rows():
    ranker = fitted("regression")
    found = ranker.contributions(TEST.X[:3], background=TEST.X[9:10])
    for row in range(3):
        expected = rows_shapley(ranker.predict, TEST.X[row], TEST.X[9])
        np.testing.assert_allclose(found.values[row], expected, rtol=0, atol=1e-12)


def test_net_contributions_are_the_integral_of_the_gradient():
    net = fitted("ranknet").scorer_
    start, end = (net.scaling.apply(TEST.X[row][None])[0] for row in (1, 2))
    steps, total = 2000, np.zeros(5)
    for i in range(steps):
        at = start + (end - start) * (i + 0.5) / steps
        for f in range(5):
            low, high = at.copy(), at.copy()
            low[f], high[f] = low[f] - 1e-5, high[f] + 1e-5
            rows = np.stack([low, high]) / net.scaling.factor + net.scaling.shift
            # Scored in float64: a step of 1e-5 is lost in float32.
            from mcrank.explain.gradients import _gradient

            scores = _gradient(net, (rows - net.scaling.shift) * net.scaling.factor)[0]
            total[f] += (scores[1] - scores[0]) / 2e-5 * (end - start)[f] / steps
    np.testing.assert_allclose(net_contributions(net, TEST.X[2:3], TEST.X[1])[0], total, atol=1e-6)


@pytest.mark.slow
def test_a_blend_standardised_in_each_query_needs_them():
    ranker = fitted("blend", standard="query")
    found = ranker.contributions(TEST)
    assert found.baseline.shape == (1000,)
    np.testing.assert_allclose(found.scores, ranker.predict(TEST), atol=1e-9)
    with pytest.raises(DataError, match=r"give a Dataset"):
        ranker.contributions(TEST.X)


def test_bad_arguments_are_named():
    ranker = fitted("regression")
    with pytest.raises(OptionError, match=r"output of RegressionRanker.contributions must be .* got 'odds'"):
        ranker.contributions(TEST, output="odds")
    with pytest.raises(DataError, match=r"RegressionRanker.contributions \(background\) is empty"):
        ranker.contributions(TEST, background=TEST.X[:0])
    with pytest.raises(DataError, match=r"\b5\b"):
        ranker.contributions(TEST.X[:, :3])


def test_a_scorer_that_only_scores_says_so():
    from mcrank.explain.contributions import Setting, raw_contributions

    class Opaque:
        n_features = n_outputs = 1

    with pytest.raises(DataError, match="Opaque gives scores and nothing else"):
        raw_contributions(Opaque(), TEST.X, Setting())
