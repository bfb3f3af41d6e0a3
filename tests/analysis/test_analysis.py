"""The analysis of a model: importance, effects, interactions, weak queries, against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError

import mcrank
from mcrank.analysis.analysis import analyze
from mcrank.analysis.effects import effects_of, interactions_of
from mcrank.analysis.importance import chosen_groups, permutation_importance
from mcrank.analysis.view import View
from mcrank.errors import DataError, OptionError
from tests.explain.models import NAMES, TEST, fitted


def quiet(words):
    """Nobody listens."""


def linear_view():
    """A ranker whose score is exactly 3 x1 - x2; it has four features."""
    stream = np.random.default_rng(0)
    X = stream.normal(size=(600, 4)).astype(np.float32)
    ranker = mcrank.RankSVM(scaling="none").fit(X, np.digitize(X[:, 0], [0, 1]), qid=np.arange(600) // 20)
    weights = ranker.scorer_.weights
    weights.setflags(write=True)
    weights[:] = [3.0, -1.0, 0.0, 0.0]
    return View(ranker, mcrank.Dataset(X, np.digitize(X[:, 0], [0, 1]), np.arange(600) // 20))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "blend" else ()) for name in NAMES]
)
def test_every_ranker_can_be_analysed(name):
    found = analyze(fitted(name), TEST.select(np.arange(8)))
    assert len(found.importances) == 5
    assert np.isfinite([one.loss for one in found.importances]).all()
    assert found.mean[0] == pytest.approx(fitted(name).score(TEST.select(np.arange(8))), abs=1e-12)
    assert (found.trees is None) == (not hasattr(fitted(name), "forest_"))


def test_printed_it_is_the_first_of_each_list():
    data = TEST.select(np.arange(8))
    found = analyze(fitted("mcrank"), data, groups={"both": ["f1", "f2"]})
    printed = str(found)
    assert "array(" not in printed
    assert printed.splitlines()[0] == f"mcrank on {data.n_rows} rows, 8 queries, 5 features"
    first, pair, worst = found.importances[0], found.interactions[0], found.worst[0]
    wanted = (
        f"{found.measure} {found.mean_words}",
        f"  {first.loss:+.4f}  {first.name}",
        f"  {found.groups[0].loss:+.4f}  both",
        f"  {pair.size:.4f}  {pair.first} and {pair.second}",
        f"  ({len(found.interactions) - 5} more)",
        f"  {worst.value:.4f}  {worst.query}",
    )
    assert set(wanted) <= set(printed.splitlines())


def test_what_cannot_be_analysed():
    with pytest.raises(NotFittedError, match="This McRank is not fitted yet"):
        analyze(mcrank.McRank(), TEST)
    with pytest.raises(OptionError, match="data of analyze must be a Dataset, got ndarray"):
        analyze(fitted("mcrank"), TEST.X)
    with pytest.raises(OptionError, match="seed of analyze must be an integer >= 0, got 'a'"):
        analyze(fitted("mcrank"), TEST, seed="a")


def test_importance_is_the_loss_of_the_measure():
    ranker = fitted("mcrank")
    view = View(ranker, TEST)
    column = int(ranker.feature_importances_.argmax())
    (one,) = permutation_importance(view, [("it", (column,))], 7, quiet)
    X = TEST.X.copy()
    X[:, column] = X[np.random.default_rng([7, column]).permutation(len(X)), column]
    ids = np.repeat(TEST.qids, TEST.sizes)
    lost = ranker.score(TEST) - ranker.score(mcrank.Dataset(X, TEST.y, ids))
    assert one.loss == pytest.approx(lost, abs=1e-12)
    assert one.low < one.loss < one.high


def test_a_feature_that_is_not_used_costs_exactly_nothing():
    view = linear_view()
    found = {one.name: one for one in permutation_importance(view, [("c", (2,)), ("d", (3,))], 0, quiet)}
    assert found["c"][2:] == found["d"][2:] == (0.0, 0.0, 0.0)


def test_features_whose_ranks_agree_are_a_group():
    stream = np.random.default_rng(1)
    X = stream.normal(size=(200, 3))
    X[:, 2] = np.exp(X[:, 1]) * -1
    data = mcrank.Dataset(X, np.digitize(X[:, 1], [0]), np.arange(200) // 10)
    view = View(mcrank.RankSVM().fit(data), data)
    assert chosen_groups(view, {}) == [("f2, f3", (1, 2))]
    with pytest.raises(DataError, match="group 'g' names the feature 'f9'"):
        chosen_groups(view, {"g": ["f1", "f9"]})
    with pytest.raises(DataError, match="groups must map a name to a list of features, got list"):
        chosen_groups(view, ["f1"])


def test_equal_values_share_a_rank_where_features_are_grouped():
    """In the order of the rows, rare features would agree, and a feature not with its opposite."""
    stream = np.random.default_rng(2)
    coin, rare = stream.random(2000) < 0.5, stream.random((3, 2000)) < 0.01
    some = np.where(stream.random(2000) < 0.9, np.nan, stream.normal(size=2000))
    X = np.column_stack([rare[0], rare[1], coin, ~coin, np.where(rare[2], 1.0, np.nan), some, -some])
    ranked = spearmanr(np.where(np.isnan(X), np.inf, X)).statistic
    agree = {(i + 1, j + 1) for i, j in np.argwhere(np.triu(np.abs(ranked) >= 0.9, 1)).tolist()}
    assert (3, 4) in agree
    assert (1, 2) not in agree
    data = mcrank.Dataset(X, np.arange(2000) % 3, np.arange(2000) // 10)
    view = View(mcrank.RegressionRanker(n_estimators=1, n_jobs=1).fit(data), data)
    view.used = lambda: np.ones(7, dtype=bool)
    found = {columns for _, columns in chosen_groups(view, {})}
    assert found == {(i - 1, j - 1) for i, j in agree}
    order = stream.permutation(2000)
    moved = mcrank.Dataset(data.X[order], data.y[order], np.arange(2000) // 10)
    again = View(view.ranker, moved)
    again.used = view.used
    assert {columns for _, columns in chosen_groups(again, {})} == found


def test_effects_of_a_linear_model_are_its_lines():
    view = linear_view()
    for effect, slope in zip(effects_of(view, [0, 1, 3], quiet), (3.0, -1.0, 0.0), strict=True):
        values = effect.values
        np.testing.assert_allclose(np.diff(effect.dependence), slope * np.diff(values), atol=1e-5)
        np.testing.assert_allclose(np.diff(effect.accumulated), slope * np.diff(values), atol=1e-5)
        assert abs(effect.dependence.mean()) < 1e-9
        assert effect.counts.sum() == 600


def test_what_adds_up_does_not_interact():
    assert all(one.size < 1e-5 for one in interactions_of(linear_view(), [0, 1, 3], 0, quiet))
    X = np.random.default_rng(0).normal(size=(900, 3)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(float)
    data = mcrank.Dataset(X, y, np.arange(900) // 30)
    view = View(mcrank.RegressionRanker(n_estimators=40, n_jobs=1).fit(data), data)
    found = interactions_of(view, [0, 1, 2], 0, quiet)
    assert (found[0].first, found[0].second) == ("f1", "f2")
    assert found[0].size > 3 * found[1].size


def test_missing_values_have_an_effect_of_their_own():
    found = analyze(fitted("regression"), TEST)
    for effect in found.effects:
        column = TEST.feature_names.index(effect.feature)
        assert effect.share_missing == pytest.approx(np.isnan(TEST.X[:, column]).mean())
        assert np.isfinite(effect.missing)


def test_slices_hold_every_query_once_and_the_worst_are_worst():
    found = analyze(fitted("mcrank"), TEST)
    for kind in {one.kind for one in found.slices}:
        assert sum(one.queries for one in found.slices if one.kind == kind) == TEST.n_queries
    values = [one.value for one in found.worst]
    assert values == sorted(values)
    for one in found.worst:
        assert one.below_grade >= one.above_grade
        assert one.above in one.sentence


def test_contributions_and_calibration_are_the_library_s():
    ranker = fitted("mcrank")
    found = analyze(ranker, TEST)
    size = np.abs(ranker.contributions(TEST).values).mean(axis=0)
    assert {one.feature: one.mean for one in found.swarms} == pytest.approx(
        dict(zip(TEST.feature_names, size.tolist(), strict=True)), abs=1e-12
    )
    rows = found.calibration.rows
    assert rows.sum() == 1000
    assert (found.calibration.score * rows).sum() == pytest.approx(ranker.predict(TEST).sum())
    assert (found.calibration.grade * rows).sum() == pytest.approx(TEST.y.sum())


def test_rows_of_equal_score_count_alike_in_the_calibration():
    """A feature of two values has two scores; the order of the rows must not say whose grades go where."""
    stream = np.random.default_rng(4)
    X, y = stream.integers(0, 2, size=(400, 1)).astype(float), stream.integers(0, 3, 400)
    data = mcrank.Dataset(X, y, np.arange(400) // 10)
    ranker = mcrank.RegressionRanker(n_estimators=2, n_jobs=1).fit(data)
    # Queries are the same in another order, and rows inside them, best grades first.
    turned = np.concatenate([rows[np.argsort(-y[rows])] for rows in np.arange(400).reshape(40, 10)[::-1]])
    moved = mcrank.Dataset(X[turned], y[turned], np.arange(400)[turned] // 10)
    one, other = (analyze(ranker, rows).calibration for rows in (data, moved))
    np.testing.assert_allclose(one.grade, other.grade, atol=1e-12)
    ends = [y[X[:, 0] == value].mean() for value in (0, 1)]
    assert sorted(one.grade[[0, -1]]) == pytest.approx(sorted(ends))


def test_it_tells_how_far_it_is():
    steps = []
    analyze(fitted("best-feature"), TEST.select(np.arange(5)), callback=steps.append)
    assert [step.done for step in steps] == list(range(len(steps)))
    assert steps[-1].of == len(steps)


@pytest.mark.parametrize("members", [[], (), "f1"])
def test_a_group_is_a_list_of_features(members):
    with pytest.raises(DataError, match="group 'mine' must be a list of features, at least one"):
        analyze(fitted("best-feature"), TEST.select(np.arange(5)), groups={"mine": members})


def test_queries_with_weights_are_weighed_as_the_measure_weighs_them():
    weight = np.random.default_rng(4).integers(1, 50, TEST.n_queries).astype(float)
    data = mcrank.Dataset(TEST.X, TEST.y, TEST.qid, query_weight=weight)
    ranker = fitted("regression")
    found = analyze(ranker, data)
    assert found.mean[0] == pytest.approx(ranker.score(data))
    assert found.mean[1] < found.mean[0] < found.mean[2]
    # A query that weighs three times as much is three of it: the same means, of other intervals.
    times = np.repeat(np.arange(TEST.n_queries), 1 + np.arange(TEST.n_queries) % 3)
    rows = np.concatenate([np.arange(*TEST.offsets[q : q + 2]) for q in times])
    again = np.repeat(np.arange(len(times)), TEST.sizes[times])
    repeated = analyze(ranker, mcrank.Dataset(TEST.X[rows], TEST.y[rows], again))
    once = mcrank.Dataset(TEST.X, TEST.y, TEST.qid, query_weight=1.0 + np.arange(TEST.n_queries) % 3)
    for one, other in zip(analyze(ranker, once).slices, repeated.slices, strict=True):
        if one.kind == "best grade":
            assert (one.part, one.mean) == (other.part, pytest.approx(other.mean))
