"""LightGBM models: raw scores to the last bit, whatever the objective."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import ModelFileError
from mcrank.export.hard_rows import hard_rows
from tests.imports.rows import GROUP, target_of, training_data, without_tiny

pytestmark = pytest.mark.consumer
X, Y, Q = training_data()
ROUNDS = 12
OBJECTIVES = {
    "regression": {}, "l1": {"objective": "l1"}, "huber": {"objective": "huber"},
    "quantile": {"objective": "quantile", "alpha": 0.7}, "mape": {"objective": "mape"},
    "fair": {"objective": "fair"}, "lambdarank": {"objective": "lambdarank"},
    "rank_xendcg": {"objective": "rank_xendcg"}, "poisson": {"objective": "poisson"},
    "tweedie": {"objective": "tweedie"}, "gamma": {"objective": "gamma"}, "binary": {"objective": "binary"},
    "cross_entropy": {"objective": "cross_entropy"},
    "multiclass": {"objective": "multiclass", "num_class": 5},
    "multiclassova": {"objective": "multiclassova", "num_class": 5, "sigmoid": 1},
    "dart": {"boosting": "dart", "objective": "lambdarank", "drop_rate": 0.5},
    "goss": {"data_sample_strategy": "goss"}, "extra": {"extra_trees": True},
    "monotone": {"monotone_constraints": [1, 0, 0, -1, 0]},
    "deep": {"num_leaves": 400, "min_data_in_leaf": 1},
    "no missing": {"use_missing": False}, "few": {"num_leaves": 2},
}  # fmt: skip


def trained(name: str, **more):
    options = {"num_leaves": 15, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5, "seed": 1}
    options |= OBJECTIVES.get(name, {}) | more
    rows = np.nan_to_num(X) if name == "no missing" else X
    data = lightgbm.Dataset(rows, target_of(name, Y), group=np.full(len(X) // GROUP, GROUP))
    return lightgbm.train(options, data, ROUNDS)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_raw_scores_are_equal_and_predictions_follow(name, tmp_path):
    booster = trained(name)
    ranker = mcrank.from_lightgbm(booster)
    rows = without_tiny(hard_rows(ranker.scorer_, 1500))
    raw = booster.predict(rows, raw_score=True).reshape(len(rows), -1)
    np.testing.assert_array_equal(ranker.predict_raw(rows), raw)
    predicted = booster.predict(rows)
    if predicted.ndim == 2:
        proper = predicted / predicted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(ranker.predict_proba(rows), proper, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(ranker.predict(rows), proper @ np.arange(5.0), rtol=1e-13)
    else:
        np.testing.assert_allclose(ranker.predict(rows), predicted, rtol=1e-14, atol=1e-15)
    booster.save_model(tmp_path / "m.txt")
    again = mcrank.from_lightgbm(tmp_path / "m.txt")
    np.testing.assert_array_equal(again.predict_raw(rows), raw)
    np.testing.assert_allclose(again.feature_importances_.sum(), 1)


def test_values_that_lightgbm_takes_for_zero():
    booster = trained("lambdarank")
    ranker = mcrank.from_lightgbm(booster)
    rows = hard_rows(ranker.scorer_, 1500)
    raw = booster.predict(rows, raw_score=True)
    np.testing.assert_array_equal(ranker.predict_raw(without_tiny(rows))[:, 0], raw)
    tiny = ((np.abs(rows) <= np.float32(1e-35)) & (rows != 0)).any(axis=1)
    np.testing.assert_array_equal(ranker.predict_raw(rows[~tiny])[:, 0], raw[~tiny])


def test_means_and_sigmoids_are_folded_into_leaves():
    forest = trained("rf", boosting="rf", bagging_freq=1, bagging_fraction=0.6)
    ranker = mcrank.from_lightgbm(forest)
    rows = without_tiny(hard_rows(ranker.scorer_, 1500))
    np.testing.assert_allclose(ranker.predict(rows), forest.predict(rows), rtol=1e-13, atol=1e-14)
    steep = trained("binary", sigmoid=2.5)
    ranker = mcrank.from_lightgbm(steep)
    np.testing.assert_allclose(ranker.predict(rows), steep.predict(rows), rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"linear_tree": True}, "linear models"), ({"zero_as_missing": True}, "zero_as_missing")],
)
def test_what_is_not_exact_is_refused_with_its_reason(options, words):
    data = lightgbm.Dataset(np.nan_to_num(X), Y)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, **options}, data, 3)
    with pytest.raises(ModelFileError, match=words):
        mcrank.from_lightgbm(booster)


def test_estimators_of_scikit_learn_form_and_early_stopping():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    groups = np.full(20, GROUP)
    model = lightgbm.LGBMRanker(n_estimators=60, num_leaves=7, n_jobs=1, verbose=-1)
    stop = lightgbm.early_stopping(3, verbose=False)
    grades = Y.astype(int)
    model.fit(frame[:400], grades[:400], group=groups, eval_X=frame[400:], eval_y=grades[400:],
              eval_group=[np.full(10, GROUP)], callbacks=[stop])  # fmt: skip
    assert model.best_iteration_ < 60
    ranker = mcrank.from_lightgbm(model)
    assert ranker.n_rounds_ == model.best_iteration_
    np.testing.assert_array_equal(ranker.predict(frame[["e", "d", "c", "b", "a"]]), model.predict(frame))
    classifier = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame, 2 * Y.astype(int))
    ranker = mcrank.from_lightgbm(classifier)
    assert ranker.grades_.tolist() == [0, 2, 4, 6, 8]
    np.testing.assert_allclose(ranker.predict_proba(frame), classifier.predict_proba(frame), rtol=1e-13)


def test_labels_that_are_no_numbers_need_grades():
    labels = np.array(["a bad one", "good", "best", "a fair one"])[Y.astype(int) % 4]
    classifier = lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(X, labels)
    with pytest.raises(ModelFileError, match=r"'good'.*which are no grades; say what each is worth"):
        mcrank.from_lightgbm(classifier)
    ranker = mcrank.from_lightgbm(classifier, grades=[0, 1, 2, 3])
    assert np.abs(ranker.predict_proba(X) - classifier.predict_proba(X)).max() < 1e-15


def test_imported_models_serve_every_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trained("lambdarank").save_model("lgb.txt")
    trained("multiclass").save_model("classes.txt")
    mcrank.write(mcrank.Dataset(X, Y, Q), "data.txt")
    assert main(["import", "lgb.txt", "--out", "lgb.mcrank", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == "lambdarank"
    assert main(["import", "classes.txt", "--from", "lightgbm", "--out", "classes.mcrank"]) == 0
    capsys.readouterr()
    assert main(["describe", "classes.mcrank", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["trees"], facts["grades"]) == (5 * ROUNDS, [0, 1, 2, 3, 4])
    assert facts["provenance"]["source"]["objective"] == "multiclass num_class:5"
    assert main(["predict", "lgb.mcrank", "data.txt", "--out", "scores.txt"]) == 0
    np.testing.assert_array_equal(np.loadtxt("scores.txt"), lightgbm.Booster(model_file="lgb.txt").predict(X))
    assert main(["evaluate", "data.txt", "scores.txt"]) == 0
    assert main(["predict", "classes.mcrank", "data.txt", "--relevance", "gain", "--out", "gain.txt"]) == 0
    line = ["compare", "data.txt", "lgb=lgb.mcrank", "classes.mcrank", "best-feature", "--out", "c", "-q"]
    assert main([*line, "--n-jobs", "1"]) == 0
    assert main(["export", "lgb.mcrank", "--to", "lightgbm", "--out", "again.txt"]) == 0
    np.testing.assert_array_equal(
        lightgbm.Booster(model_file="again.txt").predict(X), np.loadtxt("scores.txt")
    )


def test_our_exports_come_back(tmp_path):
    data = mcrank.Dataset(X, Y, Q)
    for ranker, grades in (
        (mcrank.LambdaMART(n_estimators=5, n_jobs=1), None),
        (mcrank.McRank(n_estimators=5, n_jobs=1), None),
        (mcrank.OrdinalMcRank(n_estimators=5, n_jobs=1), [0, 1, 2, 3, 4]),
    ):
        ranker.fit(data).export(tmp_path / "m.txt", to="lightgbm")
        back = mcrank.from_lightgbm(tmp_path / "m.txt", grades=grades)
        np.testing.assert_array_equal(back.predict_raw(X).T, ranker.scorer_.raw(X))
        np.testing.assert_allclose(back.predict(X), ranker.predict(X), rtol=1e-14)
