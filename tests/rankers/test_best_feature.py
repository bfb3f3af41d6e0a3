"""The best single feature: chosen as brute force would, on the training data alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcrank
from mcrank import BestFeature, Dataset
from mcrank.errors import MeasureError
from mcrank.metrics.measure import parse_measure
from mcrank.rankers.registry import from_bytes, to_bytes
from mcrank.scorers.scaling import Scaling
from mcrank.training.one_feature import feature_values
from tests.reference.measures import FORMULAS, stable_order


def naive_mean(column: np.ndarray, data: Dataset, label: str, k: int | None) -> float:
    """Mean measure when a column, its gaps filled with its mean, orders every query."""
    known = column[~np.isnan(column)].astype(np.float64)
    filled = np.where(np.isnan(column), known.sum() / len(known), column.astype(np.float64))
    values = []
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        order = stable_order(filled[start:end].tolist())
        values.append(FORMULAS[label](data.y[start:end][order].tolist(), k))
    return float(np.mean(values))


@st.composite
def small_data(draw):
    rows = draw(st.integers(4, 30))
    stream = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = stream.integers(0, draw(st.integers(2, 6)), (rows, 3)).astype(np.float32)
    X[stream.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    X[:2] = [[0, 1, 2], [1, 0, 3]]  # no feature is constant or wholly missing
    return Dataset(X, stream.integers(0, 3, rows), stream.integers(0, 4, rows))


@given(small_data(), st.sampled_from(["ndcg@3", "map", "mrr", "precision@2"]))
def test_it_is_what_brute_force_finds(data, measure):
    parsed = parse_measure(measure)
    means = [
        naive_mean(sign * data.X[:, f], data, parsed.label, parsed.k) for f in range(3) for sign in (1, -1)
    ]
    ranker = BestFeature(measure=measure, n_jobs=1).fit(data)
    (feature,) = np.flatnonzero(ranker.weights_)
    place = 2 * feature + (ranker.weights_[feature] < 0)
    assert abs(ranker.weights_[feature]) == 1
    assert means[place] == pytest.approx(max(means), abs=1e-12)
    assert ranker.history_["train"] == [pytest.approx(max(means), abs=1e-12)]
    first = next(i for i, mean in enumerate(means) if mean > max(means) - 1e-12)
    assert place == first


def test_validation_data_are_measured_and_decide_nothing():
    train = Dataset([[1, 0], [0, 1], [0, 0]], y=[1, 0, 0], qid=[1, 1, 1])
    valid = Dataset([[0, 1], [1, 0]], y=[1, 0], qid=[1, 1])
    ranker = BestFeature(measure="mrr").fit(train, valid=valid)
    assert ranker.weights_.tolist() == [1.0, 0.0]
    assert ranker.history_ == {"mrr": [0.5], "train": [1.0]}
    assert (ranker.n_rounds_, ranker.best_round_) == (1, 1)


def test_a_row_without_the_feature_takes_its_mean_for_either_sign():
    nan = float("nan")
    for sign in (1, -1):
        data = Dataset(sign * np.array([[4.0], [0.0], [5.0]]), y=[1, 0, 2], qid=[1, 1, 1])
        ranker = BestFeature().fit(data)
        assert ranker.predict(sign * np.array([[3.5], [nan], [2.5]])).tolist() == [3.5, 3.0, 2.5]


def test_the_order_of_the_file_is_not_the_merit_of_a_constant_feature():
    data = Dataset([[7, 1], [7, 1], [7, 2]], y=[2, 1, 0], qid=[1, 1, 1])
    assert BestFeature().fit(data).weights_.tolist() == [0.0, -1.0]
    worse = Dataset([[7, 1], [7, 2], [7, 1]], y=[2, 1, 0], qid=[1, 1, 1])
    assert BestFeature().fit(worse).weights_.tolist() != [1.0, 0.0]


@pytest.mark.parametrize(
    "data",
    [
        Dataset([[1.0], [1.0]], y=[1, 0], qid=[1, 1]),  # constant
        Dataset([[float("nan")], [float("nan")]], y=[1, 0], qid=[1, 1]),  # never there
    ],
)
def test_features_that_order_nothing(data):
    ranker = BestFeature().fit(data, valid=data)
    assert ranker.predict(data).tolist() == [0.0, 0.0]
    assert ranker.history_["train"] == ranker.history_["ndcg@10"]


def test_queries_without_a_relevant_row_and_of_one_row():
    data = Dataset([[1.0], [2.0], [3.0]], y=[0, 0, 0], qid=[1, 1, 2])
    assert BestFeature().fit(data).history_["train"] == [0.0]
    assert BestFeature(dialect="yahoo").fit(data).history_["train"] == [1.0]


def test_a_measure_without_a_value():
    data = Dataset([[1.0], [2.0]], y=[0, 0], qid=[1, 1])
    with pytest.raises(MeasureError, match="no value on the training data"):
        BestFeature(dialect="standard;empty=skip;nothing=nan").fit(data)


def test_query_weights_count():
    X, y, qid = [[1, 0], [0, 1], [0, 1], [1, 0]], [1, 0, 1, 0], [1, 1, 2, 2]
    for weights, sign in (([3, 1], 1.0), ([1, 3], -1.0)):
        ranker = BestFeature(measure="mrr").fit(X, y, qid=qid, query_weight=weights)
        assert ranker.weights_.tolist() == [sign, 0.0]
        assert ranker.history_["train"] == [(3 * 1 + 1 * 0.5) / 4]


def test_the_dialect_decides():
    """Feature 0 is right about the short query, feature 1 about the long one; LETOR 4.0 sees only that."""
    long = np.arange(10)
    X = np.c_[np.r_[1, 0, -(long == 5).astype(int)], np.r_[0, 1, long == 5]]
    y, qid = np.r_[1, 0, (long == 5)], np.r_[1, 1, [2] * 10]
    data = Dataset(X, y, qid, query_weight=[5, 1])
    assert BestFeature().fit(data).weights_.tolist() == [1.0, 0.0]
    assert BestFeature(dialect="letor4").fit(data).weights_.tolist() != [1.0, 0.0]


def test_the_table_and_the_model_are_the_same_for_any_number_of_threads():
    data = mcrank.make_artificial(n_train=20, n_valid=2, n_test=2, n_features=40, seed=2).train
    bound, scaling = mcrank.NDCG(k=5).on(data), Scaling.fit(data.X, "none")
    tables = [feature_values(data, bound, scaling, True, n_jobs) for n_jobs in (1, 2, 4)]
    assert all(np.array_equal(tables[0], other) for other in tables[1:])
    files = [to_bytes(BestFeature(n_jobs=n_jobs).fit(data)) for n_jobs in (1, 2, 4)]
    assert files[0] == files[1] == files[2]
    assert np.array_equal(from_bytes(files[0]).predict(data), BestFeature().fit(data).predict(data))
