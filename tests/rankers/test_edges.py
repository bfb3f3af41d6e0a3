"""Data at the edge: few grades, few rows, features that say nothing, missing and extreme values."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank
from mcrank import Dataset, McRank, OrdinalMcRank, RegressionRanker
from mcrank.errors import DataError, McrankError
from mcrank.rankers.registry import from_bytes, to_bytes
from tests.rankers.data import few_values

KINDS = [McRank, OrdinalMcRank, RegressionRanker]
GRADED = [McRank, OrdinalMcRank]
QUICK = {"n_estimators": 8, "num_leaves": 4, "min_samples_leaf": 1, "n_jobs": 1}


@pytest.mark.parametrize("kind", GRADED)
def test_one_grade(kind):
    X, _, qid = few_values(1, 50, 3, 5, 3)
    ranker = kind(**QUICK).fit(X, np.full(50, 2.0), qid=qid, valid=(X, np.full(50, 2.0), qid))
    assert ranker.grades_.tolist() == [2.0]
    assert ranker.predict(X).tolist() == [2.0] * 50
    assert ranker.predict(X, relevance="gain").tolist() == [3.0] * 50
    assert ranker.predict(X, relevance=[7]).tolist() == [7.0] * 50
    assert ranker.predict_proba(X).tolist() == [[1.0]] * 50
    assert (ranker.forest_.n_trees, ranker.best_round_) == (0, 0)
    again = from_bytes(to_bytes(ranker))
    assert again.predict(X).tolist() == [2.0] * 50
    assert ranker.feature_importances_.tolist() == [0.0] * 3


def test_one_grade_in_regression():
    X, _, qid = few_values(1, 50, 3, 5, 3)
    for loss in ("l2", "lad"):
        for target, value in (("grade", 0.7), ("gain", 2**0.7 - 1)):
            ranker = RegressionRanker(loss=loss, target=target, **QUICK).fit(X, np.full(50, 0.7), qid=qid)
            assert ranker.predict(X) == pytest.approx(np.full(50, value), abs=1e-12)


@pytest.mark.parametrize("kind", GRADED)
@pytest.mark.parametrize(
    "values", [[0, 1], [0, 4], [1, 2], [0, 2, 4], [0.0, 0.5, 1.0, 1.5], [0, 1, 7, 100], [3, 1e-3]], ids=str
)
def test_grades_are_mapped_to_classes_and_back(kind, values):
    X, y, qid = few_values(2, 300, 3, 6, len(values))
    grades = np.sort(np.array(values, dtype=float))
    plain = kind(**QUICK).fit(X, y, qid=qid)
    mapped = kind(**QUICK).fit(X, grades[y.astype(int)], qid=qid)
    assert mapped.grades_.tolist() == grades.tolist()
    p = plain.predict_proba(X)
    assert np.array_equal(mapped.predict_proba(X), p)
    if kind is McRank:
        assert mapped.predict(X) == pytest.approx(p @ grades, rel=1e-12)
    assert np.array_equal(mapped.predict(X), plain.predict(X, relevance=grades))
    assert np.array_equal(mapped.predict(X, relevance="gain"), plain.predict(X, relevance=2**grades - 1))


@pytest.mark.parametrize("kind", KINDS)
def test_one_row(kind):
    ranker = kind(**QUICK).fit([[1.0, 2.0]], [3], qid=["a"])
    assert ranker.predict([[1.0, 2.0], [np.nan, 9.0]]).tolist() == [3.0] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_queries_of_one_row(kind):
    X, y, _ = few_values(3, 80, 3, 6, 3)
    one = kind(**QUICK).fit(X, y, qid=np.arange(80))
    together = kind(**QUICK).fit(X, y, qid=np.zeros(80))
    assert np.array_equal(one.predict(X), together.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_rows_to_split(kind):
    X, y, qid = few_values(4, 30, 3, 6, 3)
    ranker = kind(**(QUICK | {"min_samples_leaf": 16})).fit(X, y, qid=qid)
    assert ranker.forest_.n_nodes == ranker.forest_.n_trees > 0
    assert len(set(ranker.predict(X).tolist())) == 1
    exact = kind(**(QUICK | {"min_samples_leaf": 15})).fit(X, y, qid=qid)
    assert exact.forest_.rows.min() >= 15


@pytest.mark.parametrize("kind", KINDS)
def test_constant_features_are_never_split(kind):
    X, y, qid = few_values(5, 100, 3, 6, 3)
    alone = kind(**QUICK).fit(X, y, qid=qid)
    flat = np.column_stack([np.full(100, 4.0), X, np.zeros(100)])
    ranker = kind(**QUICK).fit(flat, y, qid=qid)
    assert np.array_equal(ranker.predict(flat), alone.predict(X))
    assert ranker.feature_importances_[[0, 4]].tolist() == [0, 0]
    nothing = kind(**QUICK).fit(flat[:, [0, 4]], y, qid=qid)
    assert len(set(nothing.predict(flat[:, [0, 4]]).tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_feature_that_is_always_missing(kind):
    X, y, qid = few_values(6, 100, 3, 6, 3)
    alone = kind(**QUICK).fit(X, y, qid=qid)
    X2 = np.column_stack([np.full(100, np.nan), X])
    ranker = kind(**QUICK).fit(X2, y, qid=qid)
    assert np.array_equal(ranker.predict(X2), alone.predict(X))
    only = kind(**QUICK).fit(X2[:, :1], y, qid=qid)
    assert len(set(only.predict(np.array([[1.0], [np.nan]])).tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_feature(kind):
    X, y, qid = few_values(7, 100, 1, 30, 3)
    ranker = kind(**QUICK).fit(X, y, qid=qid)
    assert ranker.feature_importances_.tolist() == [1.0]
    assert len(set(ranker.predict(X).tolist())) > 3


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_carry_information(kind):
    stream = np.random.default_rng(8)
    y = stream.integers(0, 3, 300)
    X = stream.normal(size=(300, 2))
    X[y == 2, 1] = np.nan
    ranker = kind(**QUICK).fit(X, y, qid=np.arange(300) // 10)
    scores = ranker.predict(X)
    assert scores[y == 2].min() > scores[y < 2].max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("binning", ["adaptive", "adaptive-refined", "quantile"])
@pytest.mark.parametrize("max_bins", [2, 3, 16, 256, 1000])
def test_training_scores_are_the_predictions(kind, binning, max_bins):
    """Rows are routed by bins in training and by raw values afterwards; validation walks raw values too."""
    stream = np.random.default_rng(9)
    X = np.exp(3 * stream.normal(size=(400, 3))).astype(np.float32)
    X[stream.random(X.shape) < 0.15] = np.nan
    X[:20, 0] = [1e-45, -1e-45, 0, -0.0, 1e-38, 3.4e38, -3.4e38, 1e30, -1e30, 1] * 2
    y = stream.integers(0, 3, 400)
    data = Dataset(X, y, np.arange(400) // 20)
    # A round that believed other scores than predict gives would show in the next one.
    own = {} if kind is RegressionRanker else {"calibrate": False}
    ranker = kind(binning=binning, max_bins=max_bins, **QUICK, **own).fit(data, valid=data)
    assert max(ranker.history_["ndcg@10"]) == pytest.approx(ranker.score(data), abs=1e-12)
    leaves = ranker.forest_.feature < 0
    counted = np.zeros(ranker.forest_.n_nodes, dtype=np.int64)
    for t in range(ranker.forest_.n_trees):
        start = ranker.forest_.tree_offsets[t]
        for row in data.X:
            at = start
            while ranker.forest_.feature[at] >= 0:
                x = row[ranker.forest_.feature[at]]
                missing = ranker.forest_.missing_left[at] == 1
                left = missing if np.isnan(x) else x <= ranker.forest_.threshold[at]
                at = start + (ranker.forest_.left[at] if left else ranker.forest_.right[at])
            counted[at] += 1
    assert np.array_equal(counted[leaves], ranker.forest_.rows[leaves])


@pytest.mark.parametrize("kind", KINDS)
def test_memory_layouts_of_the_matrix(kind):
    X, y, qid = few_values(10, 120, 4, 6, 3)
    wanted = kind(**QUICK).fit(X, y, qid=qid).predict(X)
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    for other in (np.asfortranarray(X), X.astype(np.float64), strided, X.tolist(), X.astype(">f4")):
        ranker = kind(**QUICK).fit(other, y, qid=qid)
        assert np.array_equal(ranker.predict(other), wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_queries_that_come_apart(kind):
    """fit and predict take rows in any order and answer in the caller's."""
    X, y, qid = few_values(11, 200, 4, 6, 3)
    order = np.random.default_rng(0).permutation(200)
    names = np.array([f"q{q}" for q in qid])
    mixed = kind(**QUICK).fit(X[order], y[order], qid=names[order])
    data = Dataset(X[order], y[order], names[order])
    assert data.source_rows is not None
    assert np.array_equal(mixed.predict(data), mixed.predict(X[order]))
    assert mixed.predict(data) == pytest.approx(kind(**QUICK).fit(X, y, qid=qid).predict(X)[order], abs=1e-9)
    if kind is not RegressionRanker:
        assert np.array_equal(mixed.predict_proba(data), mixed.predict_proba(X[order]))
    assert mixed.score(data) == mixed.score(X[order], y[order], names[order])


@pytest.mark.parametrize("kind", KINDS)
def test_many_more_leaves_than_rows(kind):
    X, y, qid = few_values(12, 60, 3, 6, 3)
    all_leaves = kind(**(QUICK | {"num_leaves": 60})).fit(X, y, qid=qid).predict(X)
    for leaves in (10**6, 2**31 - 1):
        ranker = kind(**(QUICK | {"num_leaves": leaves})).fit(X, y, qid=qid)
        assert np.array_equal(ranker.predict(X), all_leaves)


@pytest.mark.parametrize("learning_rate", [1e-300, 1e-3, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_any_length_stay_finite(kind, learning_rate):
    X, y, qid = few_values(13, 100, 3, 6, 3)
    options = QUICK | {"learning_rate": learning_rate, "n_estimators": 300}
    ranker = kind(**options).fit(X, y, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert np.isfinite(ranker.forest_.value).all()


@pytest.mark.parametrize("target", ["gain", "grade"])
def test_grades_too_large_for_regression(target):
    X, y, qid = few_values(14, 60, 3, 6, 3)
    for size in (600, 1e5, 1e155, 1e300, 1e308 / 2):
        ranker = RegressionRanker(target=target, **QUICK)
        try:
            ranker.fit(X, y * size, qid=qid)
        except DataError as error:
            assert "grade" in str(error)  # noqa: PT017 - refusing is fine, if it says what is wrong
        else:
            assert np.isfinite(ranker.predict(X)).all()


@pytest.mark.parametrize("kind", GRADED)
def test_gains_of_large_grades(kind):
    X, y, qid = few_values(14, 60, 3, 6, 3)
    ranker = kind(**QUICK).fit(X, y * 2000, qid=qid)
    assert np.isfinite(ranker.predict(X)).all()
    with pytest.raises(McrankError, match="relevance"):
        ranker.predict(X, relevance="gain")


def test_tiny_grades():
    X, y, qid = few_values(15, 60, 3, 6, 3)
    plain = RegressionRanker(target="grade", **QUICK).fit(X, y, qid=qid).predict(X)
    for size in (1e-100, 1e-250):
        scores = RegressionRanker(target="grade", **QUICK).fit(X, y * size, qid=qid).predict(X)
        assert scores / size == pytest.approx(plain, abs=1e-6)
    # Far below that there is nothing to divide by; the answer stays a number.
    for size in (1e-300, 1e-320):
        scores = RegressionRanker(target="grade", **QUICK).fit(X, y * size, qid=qid).predict(X)
        assert np.isfinite(scores).all()


def test_many_grades():
    X, _, qid = few_values(16, 300, 3, 20, 3)
    y = np.arange(300) % 90
    for kind in GRADED:
        ranker = kind(n_estimators=2, n_jobs=2).fit(X, y, qid=qid)
        assert ranker.predict_proba(X).shape == (300, 90)


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_odd_data_are_saved_and_loaded(kind, tmp_path):
    X, y, qid = few_values(17, 150, 4, 9, 3, missing=0.3)
    X[:, 0] = np.nan
    X[:, 1] = 5
    ranker = kind(max_bins=300, **QUICK).fit(X, y / 2, qid=qid, valid=(X, y / 2, qid))
    ranker.save(tmp_path / "m")
    again = mcrank.load(tmp_path / "m")
    assert np.array_equal(again.predict(X), ranker.predict(X))
    assert to_bytes(again) == to_bytes(ranker)
