"""scikit-learn's trees: boosting to the last bit, means of trees up to rounding."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model, tree
from threadpoolctl import threadpool_limits

import mcrank
from mcrank.errors import ModelFileError, OptionError
from mcrank.export.hard_rows import hard_rows
from mcrank.models.imports.read import import_file
from tests.imports.rows import training_data

X, Y, Q = training_data(rows=300)
FULL = np.nan_to_num(X)
SMALL = {"max_iter": 6, "max_leaf_nodes": 8}
FEW = {"n_estimators": 6, "max_depth": 4}
Hist, HistClasses = ensemble.HistGradientBoostingRegressor, ensemble.HistGradientBoostingClassifier
MODELS = {
    "squares": Hist(**SMALL), "poisson": Hist(loss="poisson", **SMALL), "gamma": Hist(loss="gamma", **SMALL),
    "absolute": Hist(loss="absolute_error", **SMALL),
    "bound": Hist(monotonic_cst=[1, 0, 0, -1, 0], interaction_cst="pairwise", **SMALL),
    "classes": HistClasses(**SMALL), "two": HistClasses(**SMALL),
    "boosting": ensemble.GradientBoostingRegressor(**FEW),
    "zero": ensemble.GradientBoostingRegressor(init="zero", **FEW),
    "boosted classes": ensemble.GradientBoostingClassifier(**FEW),
    "boosted two": ensemble.GradientBoostingClassifier(**FEW),
    "exponential two": ensemble.GradientBoostingClassifier(loss="exponential", **FEW),
    "forest": ensemble.RandomForestRegressor(**FEW), "extra": ensemble.ExtraTreesRegressor(**FEW),
    "forest of classes": ensemble.RandomForestClassifier(**FEW),
    "extra of classes": ensemble.ExtraTreesClassifier(**FEW),
    "forest of two": ensemble.RandomForestClassifier(**FEW),
    "tree": tree.DecisionTreeRegressor(max_depth=4),
    "tree of classes": tree.DecisionTreeClassifier(max_depth=4),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """On a busy machine scikit-learn's threads wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("name", MODELS)
def test_predictions_are_the_same(name):
    rows_without = "boost" in name or name in ("zero", "exponential two")
    target = (Y > 1).astype(int) if "two" in name else Y + 0.5 if name == "gamma" else Y
    model = MODELS[name].fit(FULL if rows_without else X, target)
    ranker = mcrank.from_sklearn(model)
    rows = hard_rows(ranker.scorer_, 800)
    rows = np.nan_to_num(rows) if rows_without else rows
    with np.errstate(all="ignore"):  # scikit-learn adds up all values to see whether one is infinite
        if hasattr(model, "decision_function"):
            raw = model.decision_function(rows).reshape(len(rows), -1)
            np.testing.assert_array_equal(ranker.predict_raw(rows), raw * (1 + ("exponential" in name)))
            expected = model.predict_proba(rows)
            np.testing.assert_allclose(ranker.predict_proba(rows), expected, rtol=1e-13, atol=1e-15)
        elif hasattr(model, "predict_proba"):
            expected = model.predict_proba(rows) @ model.classes_
            np.testing.assert_allclose(ranker.predict(rows), expected, rtol=1e-13, atol=1e-14)
        elif name in ("forest", "extra"):
            np.testing.assert_allclose(ranker.predict(rows), model.predict(rows), rtol=1e-13)
        else:
            np.testing.assert_array_equal(ranker.predict(rows), model.predict(rows))
    assert ranker.source_["class"] == type(model).__name__


def test_names_are_carried_and_classes_are_grades():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
    ranker = mcrank.from_sklearn(HistClasses(**SMALL).fit(frame, 2 * Y))
    assert ranker.grades_.tolist() == [0, 2, 4, 6, 8]
    np.testing.assert_array_equal(ranker.predict(frame[["e", "d", "c", "b", "a"]]), ranker.predict(frame))
    forest = ensemble.RandomForestClassifier(**FEW).fit(frame, Y.astype(int))
    worth = [0, 1, 3, 7, 15]
    gained = mcrank.from_sklearn(forest, grades=worth).predict(frame)
    np.testing.assert_allclose(gained, forest.predict_proba(frame) @ worth, rtol=1e-13, atol=1e-14)


def test_what_cannot_be_taken_is_refused_with_its_reason(tmp_path):
    with pytest.raises(OptionError, match=r"must be a fitted HistGradientBoosting.* got LinearRegression"):
        mcrank.from_sklearn(linear_model.LinearRegression().fit(FULL, Y))
    with pytest.raises(OptionError, match="must be a fitted"):
        mcrank.from_sklearn(Hist())
    with pytest.raises(ModelFileError, match="several targets"):
        mcrank.from_sklearn(ensemble.RandomForestRegressor(**FEW).fit(FULL, np.column_stack([Y, Y])))
    start = linear_model.LinearRegression()
    with pytest.raises(ModelFileError, match="starts from another model"):
        mcrank.from_sklearn(ensemble.GradientBoostingRegressor(init=start, **FEW).fit(FULL, Y))
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(MODELS["tree"]))
    with pytest.raises(ModelFileError, match="is a pickle, which can run anything"):
        import_file(tmp_path / "m.pkl")


def test_labels_that_are_texts_have_the_grades_they_are_given():
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    random = np.random.default_rng(0)
    X = random.standard_normal((200, 3)).astype(np.float32)
    labels = np.array(["fair", "bad", "excellent"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    worth = {"bad": 0.0, "excellent": 4.0, "fair": 1.0}
    for kind in (GradientBoostingClassifier, RandomForestClassifier):
        model = kind(n_estimators=5, max_depth=2, random_state=0).fit(X, labels)
        grades = [worth[name] for name in model.classes_]
        assert grades == [0.0, 4.0, 1.0]
        ranker = mcrank.from_sklearn(model, grades=grades)
        expected = model.predict_proba(X) @ grades
        assert np.abs(ranker.predict(X) - expected).max() < 1e-6
        if kind is GradientBoostingClassifier:
            assert ranker.grades_.tolist() == [0.0, 1.0, 4.0]
            assert np.abs(ranker.predict_proba(X) - model.predict_proba(X)[:, [0, 2, 1]]).max() < 1e-6
        with pytest.raises(mcrank.errors.OptionError, match="must differ"):
            mcrank.from_sklearn(model, grades=[1.0, 1.0, 2.0])
