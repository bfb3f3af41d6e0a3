"""XGBoost scores alike within float32 sums."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mcrank.errors import OptionError
from mcrank.export.hard_rows import hard_rows
from mcrank.export.write import export
from mcrank.export.xgboost import XGBoost
from mcrank.losses.abc import class_scores
from mcrank.scorers.forest.forest import ForestBuilder
from tests.export import bed


@pytest.mark.consumer
@pytest.mark.parametrize("name", bed.FORESTS)
def test_xgboost_scores_alike(tmp_path, name):
    model = bed.model(name)
    X = hard_rows(model.scorer)
    path, model = export(model, XGBoost(), tmp_path / "m.json")[0], XGBoost().comparable(model)
    found = XGBoost().consume(model, path, X)
    raw = model.scorer.raw(X)
    raw = class_scores(raw) if name == "abc" else raw
    assert np.abs(found.raw - raw).max() <= 4e-7 * max(1.0, np.abs(raw).max())
    want = model.scores(X)
    assert np.abs(found.scores - want).max() <= 2e-6 * max(1.0, np.abs(want).max())


@pytest.mark.consumer
def test_xgboost_saves_and_contributes(tmp_path):
    import xgboost

    model = bed.model("mcrank prior")
    X = hard_rows(model.scorer, 300)
    booster = xgboost.Booster(model_file=export(model, XGBoost(), tmp_path / "m.json")[0])
    assert booster.feature_names[5] == "a,b_0_"
    assert json.loads(booster.attr("mcrank_relevance").join("[]")) == [0, 1, 2, 3, 4]
    booster.save_model(tmp_path / "m.ubj")
    rows = xgboost.DMatrix(X, feature_names=booster.feature_names, feature_types=booster.feature_types)
    again = xgboost.Booster(model_file=tmp_path / "m.ubj").predict(rows, output_margin=True)
    assert np.array_equal(again, booster.predict(rows, output_margin=True))
    parts = booster.predict(rows, pred_contribs=True)
    assert np.abs(parts.sum(axis=2).T - model.scorer.raw(X)).max() < 5e-6


def test_leaves_beyond_float32_are_refused(tmp_path):
    builder = ForestBuilder(1, [0.0])
    builder.append(feature=[-1], value=[1e39])
    with pytest.raises(OptionError, match="leaves beyond float32"):
        export(bed.exportable(builder.build()), XGBoost(), tmp_path / "m.json")
