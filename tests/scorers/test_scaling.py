"""Scaling of inputs: what each kind promises, missing values, constant features, and its arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mcrank import Dataset
from mcrank.errors import ModelFileError
from mcrank.scorers import scaling
from mcrank.scorers.scaling import SCALINGS, Scaling
from mcrank.training.products import centred_rows, gradient_of, scores_of
from tests.reference import scaling as reference

VALUES = st.floats(width=32, allow_infinity=False)


def matrix(seed=0, rows=200, features=5):
    stream = np.random.default_rng(seed)
    X = (stream.normal(size=(rows, features)) * [1, 100, 1e-3, 1e6, 1] + [0, 5, 1, 0, -3]).astype(np.float32)
    X[stream.random(X.shape) < 0.1] = np.nan
    return X


def test_zscore_has_mean_0_and_variance_1():
    X = matrix()
    scaled = Scaling.fit(X, "zscore").apply(X)
    for j in range(X.shape[1]):
        known = scaled[~np.isnan(X[:, j]), j]
        assert known.mean() == pytest.approx(0, abs=1e-12)
        assert known.var() == pytest.approx(1)
    assert (scaled[np.isnan(X)] == 0).all()


def test_minmax_spans_0_to_1_and_missing_is_the_mean():
    X = matrix()
    scaled = Scaling.fit(X, "minmax").apply(X)
    np.testing.assert_allclose(scaled.min(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(scaled.max(axis=0), 1)
    for j in range(X.shape[1]):
        missing = np.isnan(X[:, j])
        np.testing.assert_allclose(scaled[missing, j], scaled[~missing, j].mean())


def test_none_leaves_values_alone():
    X = matrix()
    scaled = Scaling.fit(X, "none").apply(X)
    missing = np.isnan(X)
    np.testing.assert_array_equal(scaled[~missing], X[~missing])
    np.testing.assert_allclose(scaled[missing], np.nanmean(X.astype(float), axis=0)[np.nonzero(missing)[1]])


def test_log_is_the_zscore_of_signed_logarithms():
    X = matrix()
    curved = np.sign(X) * np.log1p(np.abs(X.astype(float)))
    wanted = (curved - np.nanmean(curved, axis=0)) / np.nanstd(curved, axis=0)
    scaled = Scaling.fit(X, "log").apply(X)
    np.testing.assert_allclose(scaled[~np.isnan(X)], wanted[~np.isnan(X)], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", SCALINGS)
def test_constant_and_unknown_features_become_0(kind):
    X = np.array([[7.0, np.nan, 1.0], [7.0, np.nan, 2.0], [np.nan, np.nan, 3.0]], dtype=np.float32)
    learned = Scaling.fit(X, kind)
    later = np.array([[9.0, 4.0, 1.0], [np.nan, np.nan, np.nan]], dtype=np.float32)
    for rows in (X, later):
        scaled = learned.apply(rows)
        assert (scaled[:, :2] == 0).all()
        assert np.isfinite(scaled).all()
    assert (np.diff(learned.apply(X)[:, 2]) > 0).all()


@pytest.mark.parametrize("kind", SCALINGS)
@given(X=arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=VALUES))
def test_any_matrix_stays_finite_and_keeps_its_order(kind, X):
    learned = Scaling.fit(X, kind)
    scaled = learned.apply(X)
    assert np.isfinite(scaled).all()
    assert (np.abs(scaled) <= learned.reach).all()
    for j in range(X.shape[1]):
        column, out = X[:, j], scaled[:, j]
        known = ~np.isnan(column)
        order = np.argsort(column[known])
        assert (np.diff(out[known][order]) >= 0).all()


def some_rows(seed, rows, features, missing):
    stream = np.random.default_rng(seed)
    X = (stream.normal(size=(rows, features)) * 10.0 ** stream.integers(-3, 4, features)).astype(np.float32)
    X[:, stream.random(features) < 0.2] = 7.0
    X[stream.random(X.shape) < missing] = np.nan
    return X


ROWS = {
    "seed": st.integers(0, 10**6),
    "rows": st.integers(1, 30),
    "features": st.integers(1, 9),
    "missing": st.sampled_from([0.0, 0.3, 1.0]),
}


@pytest.mark.parametrize("kind", SCALINGS)
@given(**ROWS)
def test_scaling_is_that_of_the_naive_twin(kind, seed, rows, features, missing):
    X = some_rows(seed, rows, features, missing)
    later = some_rows(seed + 1, rows, features, missing)
    learned = Scaling.fit(X, kind)
    for given_rows in (X, later):
        wanted = reference.scaled(given_rows, kind, X)
        np.testing.assert_allclose(learned.apply(given_rows), wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", SCALINGS)
@given(**ROWS)
def test_rows_centred_and_multiplied_are_those_of_the_naive_twin(kind, seed, rows, features, missing):
    X = some_rows(seed, rows, features, missing)
    stream = np.random.default_rng(seed)
    data = Dataset(X, np.zeros(rows), np.sort(stream.integers(0, 4, rows)))
    got = centred_rows(data, Scaling.fit(X, kind))
    wanted = reference.centred(reference.scaled(X, kind), data.qid)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6 * (1 + np.abs(wanted).max()))
    weights, push = stream.normal(size=features), stream.normal(size=rows)
    exact = got.astype(np.float64)
    size = 1 + np.abs(exact).sum()
    np.testing.assert_allclose(scores_of(got, weights), exact @ weights, rtol=1e-12, atol=1e-12 * size)
    np.testing.assert_allclose(gradient_of(got, push), push @ exact, rtol=1e-12, atol=1e-12 * size)


@pytest.mark.parametrize("kind", SCALINGS)
def test_blocks_change_nothing(kind, monkeypatch):
    X = matrix(1, 60, 7 - 2)
    weights = np.random.default_rng(2).normal(size=X.shape[1])
    whole = Scaling.fit(X, kind)
    scores = whole.scores(X, weights)
    np.testing.assert_allclose(scores, whole.apply(X) @ weights, rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(scaling, "_CELLS", 7)
    parts = Scaling.fit(X, kind)
    np.testing.assert_allclose(parts.factor, whole.factor, rtol=1e-12)
    np.testing.assert_array_equal(whole.scores(X, weights), scores)
    assert whole.apply(X, np.float32).dtype == np.float32


def test_a_score_does_not_depend_on_the_rows_beside_it():
    X = matrix(3, 37, 5)
    weights = np.random.default_rng(4).normal(size=5)
    learned = Scaling.fit(X, "zscore")
    alone = [learned.scores(X[i : i + 1], weights)[0] for i in range(len(X))]
    np.testing.assert_array_equal(learned.scores(X, weights), alone)


@pytest.mark.parametrize("kind", SCALINGS)
def test_arrays_come_back(kind):
    X = matrix()
    learned = Scaling.fit(X, kind)
    again = Scaling.from_arrays(kind, learned.to_arrays(), 5)
    np.testing.assert_array_equal(again.apply(X), learned.apply(X))


def test_odd_arrays_are_refused():
    good = Scaling.fit(matrix(), "zscore").to_arrays()
    for name in good:
        with pytest.raises(ModelFileError, match=name):
            Scaling.from_arrays("zscore", {**good, name: good[name][:-1]}, 5)
        with pytest.raises(ModelFileError, match=name):
            Scaling.from_arrays("zscore", {**good, name: good[name].astype(np.float32)}, 5)
    with pytest.raises(ModelFileError, match="scale_factor"):
        Scaling.from_arrays("zscore", {**good, "scale_factor": -good["scale_factor"]}, 5)
    with pytest.raises(ModelFileError, match="infinite"):
        Scaling.from_arrays("zscore", {**good, "scale_factor": np.full(5, 1e300)}, 5)
