"""CatBoost models: raw values to the last bit, symmetric trees or not."""

from __future__ import annotations

import catboost
import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.errors import ModelFileError
from mcrank.export.hard_rows import hard_rows
from tests.imports.rows import target_of, training_data

pytestmark = pytest.mark.consumer
X, Y, Q = training_data()
OBJECTIVES = {
    **{name: {"loss_function": name} for name in (
        "RMSE", "MAE", "QueryRMSE", "YetiRank", "PairLogit", "QuerySoftMax", "Logloss", "CrossEntropy",
        "MultiClass", "MultiClassOneVsAll", "Poisson", "Tweedie:variance_power=1.5", "Quantile:alpha=0.7",
    )},
    "lossguide": {"grow_policy": "Lossguide", "loss_function": "YetiRank"},
    "depthwise classes": {"grow_policy": "Depthwise", "loss_function": "MultiClass"},
    "missing right": {"nan_mode": "Max"}, "no missing": {}, "flat": {"depth": 1}, "deep": {"depth": 9},
}  # fmt: skip


def trained(name: str):
    options = {"depth": 4, "thread_count": 1, "iterations": 12, "verbose": 0, "allow_writing_files": False,
               "random_seed": 1, "loss_function": "RMSE"} | OBJECTIVES[name]  # fmt: skip
    rows = np.nan_to_num(X) if name == "no missing" else X
    return catboost.CatBoost(options).fit(catboost.Pool(rows, target_of(name, Y), group_id=Q))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_raw_values_are_equal_and_predictions_follow(name, tmp_path):
    model = trained(name)
    ranker = mcrank.from_catboost(model)
    rows = hard_rows(ranker.scorer_, 1500)
    if name == "no missing":
        rows = np.nan_to_num(rows)
    raw = model.predict(rows, prediction_type="RawFormulaVal", thread_count=1).reshape(len(rows), -1)
    np.testing.assert_array_equal(ranker.predict_raw(rows), raw)
    if ranker.head_.values is not None:
        predicted = model.predict(rows, prediction_type="Probability")
        proper = predicted / predicted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(ranker.predict_proba(rows), proper, rtol=1e-12, atol=1e-15)
    elif ranker.head_.kind == "exp":
        predicted = model.predict(rows, prediction_type="Exponent")
        np.testing.assert_allclose(ranker.predict(rows), predicted, rtol=1e-14)
    else:
        np.testing.assert_array_equal(ranker.predict(rows), raw[:, 0])
    for form in ("json", "cbm"):
        path = tmp_path / f"m.{form}"
        model.save_model(str(path), format=form)
        np.testing.assert_array_equal(mcrank.from_catboost(path).predict_raw(rows), raw)


def test_names_and_classes_are_carried():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    model = catboost.CatBoostClassifier(iterations=3, depth=3, verbose=0, allow_writing_files=False)
    model.fit(frame, (3 * Y).astype(int))
    ranker = mcrank.from_catboost(model)
    assert ranker.feature_names_ == ("a", "b", "c", "d", "e")
    assert ranker.grades_.tolist() == [0, 3, 6, 9, 12]
    expected = model.predict_proba(frame) @ ranker.grades_
    np.testing.assert_allclose(ranker.predict(frame[["e", "c", "d", "a", "b"]]), expected, rtol=1e-12)
    words = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False)
    words.fit(frame, np.array(["bad", "fair", "good", "very", "best"])[Y.astype(int)])
    with pytest.raises(ModelFileError, match="which are no grades"):
        mcrank.from_catboost(words)
    assert mcrank.from_catboost(words, grades=[0, 1, 2, 3, 4]).grades_.tolist() == [0, 1, 2, 3, 4]


def test_what_is_not_exact_is_refused_with_its_reason(tmp_path):
    frame = pd.DataFrame(np.nan_to_num(X)).assign(kind=np.where(Y > 1, "a", "b"))
    options = {"iterations": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**options).fit(frame, Y, cat_features=["kind"])
    with pytest.raises(ModelFileError, match="categorical_features must be empty: the file has no names"):
        mcrank.from_catboost(model)
    wide = catboost.CatBoost(options | {"loss_function": "RMSEWithUncertainty"}).fit(X, Y)
    with pytest.raises(ModelFileError, match="RMSEWithUncertainty"):
        mcrank.from_catboost(wide)
    (tmp_path / "m.cbm").write_bytes(b"CBM1" + bytes(100))
    with pytest.raises(ModelFileError, match="is not a model that CatBoost can load"):
        mcrank.from_catboost(tmp_path / "m.cbm")
