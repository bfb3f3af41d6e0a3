"""XGBoost models: the same trees; margins differ by the rounding of XGBoost's float32 sums."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xgboost

import mcrank
from mcrank.errors import ModelFileError, OptionError
from mcrank.export.hard_rows import hard_rows
from tests.imports.rows import GROUP, target_of, training_data

pytestmark = pytest.mark.consumer
X, Y, Q = training_data()
ROUNDS = 12
OBJECTIVES = {
    **{name: {"objective": name} for name in (
        "reg:squarederror", "rank:ndcg", "rank:pairwise", "rank:map", "binary:logistic", "reg:logistic",
        "binary:logitraw", "count:poisson", "reg:gamma", "reg:tweedie", "reg:squaredlogerror",
        "reg:pseudohubererror", "reg:absoluteerror", "survival:cox", "survival:aft",
    )},
    "quantile": {"objective": "reg:quantileerror", "quantile_alpha": 0.6},
    "multi:softprob": {"objective": "multi:softprob", "num_class": 5},
    "dart": {"booster": "dart", "rate_drop": 0.4, "objective": "rank:ndcg"},
    "parallel": {"num_parallel_tree": 3, "subsample": 0.7},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 300, "max_depth": 0, "min_child_weight": 0},
    "pruned": {"gamma": 5.0, "tree_method": "exact"}, "base": {"base_score": 0.7},
    "linear": {"booster": "gblinear"},
    "linear logistic": {"booster": "gblinear", "objective": "binary:logistic"},
}  # fmt: skip


def trained(name: str, **more):
    options = {"nthread": 1, "eta": 0.3, "seed": 1} | OBJECTIVES[name] | more
    if options.get("booster") != "gblinear":
        options.setdefault("max_depth", 4)
    target = target_of(options.get("objective", ""), Y)
    data = xgboost.DMatrix(X, target)
    if options.get("objective", "").startswith("rank"):
        data.set_group(np.full(len(X) // GROUP, GROUP))
    if name == "survival:aft":
        data.set_float_info("label_lower_bound", target)
        data.set_float_info("label_upper_bound", target)
    return xgboost.train(options, data, ROUNDS)


def leaves_alike(booster, ranker, rows):
    """Whether each row ends in leaves of the same value in each tree: what is left is how they are added."""
    found = booster.predict(xgboost.DMatrix(rows), pred_leaf=True).reshape(len(rows), -1)
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    forest = ranker.scorer_
    for number, tree in enumerate(trees):
        value = np.array(tree["split_conditions"], dtype=np.float32)[found[:, number].astype(int)]
        if not np.array_equal(forest.part(number, number + 1).raw(rows).sum(axis=0), value):
            return False
    return True


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_margins_are_equal_up_to_float32_sums(name, form, tmp_path):
    booster = trained(name)
    path = tmp_path / f"m.{form}"
    booster.save_model(path)
    ranker = mcrank.from_xgboost(path)
    rows = hard_rows(ranker.scorer_, 1500)
    if "linear" in name:
        rows = np.clip(rows, -100, 100)
    elif name != "dart":
        assert leaves_alike(booster, ranker, rows)
    data = xgboost.DMatrix(rows)
    margin = booster.predict(data, output_margin=True).reshape(len(rows), -1)
    # A float32 sum of n numbers is off by at most about n roundings of the largest part.
    bound = 3 * (ROUNDS + 5) * np.finfo(np.float32).eps * max(1.0, np.abs(margin).max())
    assert np.abs(ranker.predict_raw(rows) - margin).max() <= bound
    predicted = booster.predict(data)
    if predicted.ndim == 2:
        np.testing.assert_allclose(ranker.predict_proba(rows), predicted, atol=1e-6)
    else:
        np.testing.assert_allclose(ranker.predict(rows), predicted, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(mcrank.from_xgboost(booster).predict_raw(rows), ranker.predict_raw(rows))


def test_classes_by_softmax_are_ranked_by_expected_relevance():
    booster = trained("multi:softprob", objective="multi:softmax")
    probabilities = trained("multi:softprob").predict(xgboost.DMatrix(X))
    ranker = mcrank.from_xgboost(booster)
    np.testing.assert_allclose(ranker.predict(X), probabilities @ np.arange(5.0), atol=1e-5)


def test_estimators_of_scikit_learn_form_and_early_stopping(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    model = xgboost.XGBRanker(n_estimators=60, max_depth=3, early_stopping_rounds=2, n_jobs=1)
    model.fit(frame[:400], Y[:400], qid=Q[:400], eval_set=[(frame[400:], Y[400:])], eval_qid=[Q[400:]],
              verbose=False)  # fmt: skip
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(tmp_path / "m.ubj")
    for ranker in (mcrank.from_xgboost(model), mcrank.from_xgboost(tmp_path / "m.ubj")):
        assert ranker.n_rounds_ == model.best_iteration + 1
        assert np.abs(ranker.predict(frame[["e", "d", "c", "b", "a"]]) - model.predict(frame)).max() < 1e-5


def test_an_estimator_that_takes_a_number_for_missing_is_refused():
    zeros = np.where(np.isnan(X), 0, X)
    model = xgboost.XGBRegressor(n_estimators=3, missing=0.0, n_jobs=1).fit(zeros, Y)
    with pytest.raises(OptionError, match=r"takes 0\.0 for a missing value .* put NaN in its place"):
        mcrank.from_xgboost(model)
    expected = model.predict(zeros)
    ranker = mcrank.from_xgboost(model.set_params(missing=np.nan))
    assert np.allclose(ranker.predict(np.where(zeros == 0, np.nan, zeros)), expected, rtol=1e-5)


def test_what_is_not_exact_is_refused_with_its_reason():
    several = np.column_stack([Y, Y**2])
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        booster = xgboost.train({"nthread": 1, "tree_method": "hist", "multi_strategy": strategy},
                                xgboost.DMatrix(X, several), 2)  # fmt: skip
        with pytest.raises(ModelFileError, match="predicts 2 numbers"):
            mcrank.from_xgboost(booster)
    with pytest.raises(ModelFileError, match="linear model of 5 classes"):
        mcrank.from_xgboost(trained("multi:softprob", booster="gblinear"))
