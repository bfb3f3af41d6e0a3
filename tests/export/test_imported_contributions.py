"""Contributions of imported models against those of the libraries that trained them."""

from __future__ import annotations

import numpy as np
import pytest

import mcrank

# shap, when it is imported, uses what matplotlib is about to drop.
pytestmark = [pytest.mark.consumer, pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]

STREAM = np.random.default_rng(0)
X = STREAM.normal(size=(400, 5)).astype(np.float32)
X[STREAM.random(X.shape) < 0.1] = np.nan
Y = np.digitize(np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2]), [-0.5, 0.5])


def checked(ranker, expected, rows, atol):
    """Values and baselines (outputs, rows, features + 1) against an imported ranker's raw contributions."""
    found = ranker.contributions(rows, output="raw")
    values = found.values if found.values.ndim == 3 else found.values[None]
    np.testing.assert_allclose(values, expected[..., :-1], rtol=0, atol=atol)
    np.testing.assert_allclose(np.ravel(found.baseline), expected[:, 0, -1], rtol=0, atol=atol)
    np.testing.assert_allclose(
        ranker.contributions(rows).scores, ranker.predict(rows), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("classes", [1, 3])
def test_lightgbm(classes):
    import lightgbm

    options = {"num_leaves": 12, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    options |= {"objective": "multiclass", "num_class": 3} if classes > 1 else {"objective": "regression"}
    booster = lightgbm.train(options, lightgbm.Dataset(X, Y), 8)
    expected = booster.predict(X[:50], pred_contrib=True).reshape(50, classes, -1).transpose(1, 0, 2)
    checked(mcrank.from_lightgbm(booster), expected, X[:50], 1e-9)


@pytest.mark.parametrize("classes", [1, 3])
def test_xgboost(classes):
    import xgboost

    options = {"max_depth": 4, "nthread": 1, "base_score": 0.5}
    options |= {"objective": "multi:softprob", "num_class": 3} if classes > 1 else {}
    booster = xgboost.train(options, xgboost.DMatrix(X, Y), 8)
    expected = booster.predict(xgboost.DMatrix(X[:50]), pred_contribs=True)
    expected = expected.reshape(50, classes, -1).transpose(1, 0, 2)
    checked(mcrank.from_xgboost(booster), expected, X[:50], 1e-4)  # it computes in float32


def test_sklearn_random_forest():
    from sklearn import ensemble

    known = np.nan_to_num(X)
    model = ensemble.RandomForestRegressor(10, max_depth=5, bootstrap=False, random_state=0).fit(known, Y)
    import shap

    explainer = shap.TreeExplainer(model)
    values = explainer.shap_values(known[:50])
    base = np.full((50, 1), np.ravel(explainer.expected_value)[0])
    checked(mcrank.from_sklearn(model), np.concatenate([values, base], axis=1)[None], known[:50], 1e-9)


def test_catboost():
    import catboost

    model = catboost.CatBoostRegressor(
        iterations=8, depth=4, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(X, Y)
    ranker = mcrank.from_catboost(model)
    found = ranker.contributions(X[:50])
    np.testing.assert_allclose(found.scores, ranker.predict(X[:50]), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.scores, model.predict(X[:50]), rtol=0, atol=1e-6)
