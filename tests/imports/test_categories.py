"""Models with categories: scores are those of the library, also of missing, unseen and negative ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.errors import ModelFileError
from mcrank.export.registry import target_class
from mcrank.export.target import ConsumerMissing

pytestmark = [pytest.mark.consumer, pytest.mark.filterwarnings("ignore:categories of feature")]
STREAM = np.random.default_rng(7)
ROWS = 900
SHOPS = np.array(["north", "south", "it's", 'a "b"', "über", "x y", "7"], dtype=object)
CODES = STREAM.integers(0, 7, ROWS)
TOWNS = STREAM.choice([0, 3, 40, 70, 1000, 12], ROWS)
NUMBERS = STREAM.normal(size=(ROWS, 2)).astype(np.float32)
GRADES = np.clip(np.round(np.isin(CODES, [0, 2, 5]) * 2.0 + (TOWNS % 7 == 0) + NUMBERS[:, 0] / 2), 0, 4)
MATRIX = np.column_stack([NUMBERS[:, 0], CODES, NUMBERS[:, 1], TOWNS]).astype(np.float32)
MATRIX[STREAM.random(ROWS) < 0.1, 1] = np.nan
MATRIX[STREAM.random(ROWS) < 0.1, 0] = np.nan


def hard_codes(rows: int = 2000) -> np.ndarray:
    """Rows whose categories are seen, unseen, negative or missing."""
    X = np.repeat(MATRIX, 3, axis=0)[:rows].copy()
    odd = np.array([np.nan, -1, -7, 8, 31, 32, 33, 63, 64, 65, 999, 1001, 70000, 5, 0], dtype=np.float32)
    for column in (1, 3):
        at = STREAM.random(rows) < 0.5
        X[at, column] = STREAM.choice(odd, int(at.sum()))
    return X


def frame(codes=CODES, categories=SHOPS) -> pd.DataFrame:
    shop = pd.Categorical.from_codes(np.where(np.isnan(MATRIX[:, 1]), -1, codes).astype(int), categories)
    town = pd.Categorical(TOWNS)
    return pd.DataFrame({"price": MATRIX[:, 0], "shop": shop, "size": MATRIX[:, 2], "town": town})


def in_every_form(ranker, expected, X, tmp_path):
    """Saved and loaded it scores the same, and so does what it exports; explanations add up."""
    ranker.save(tmp_path / "m.mcrank")
    again = mcrank.load(tmp_path / "m.mcrank")
    np.testing.assert_array_equal(again.predict_raw(X), expected)
    few = X[:60]
    np.testing.assert_allclose(again.contributions(few).scores, again.predict(few), atol=1e-9)


LIGHTGBM = {
    "sets": {},
    "one against all": {"max_cat_to_onehot": 50},
    "classes": {"objective": "multiclass", "num_class": 5},
    "lambdarank": {"objective": "lambdarank"},
    "no missing": {"use_missing": False},
    "forest": {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
}


def by_lightgbm(name, data):
    lightgbm = pytest.importorskip("lightgbm")
    options = {"verbose": -1, "num_threads": 1, "min_data_per_group": 5, "cat_smooth": 1, "num_leaves": 12}
    return lightgbm.train(options | LIGHTGBM[name], data, 8)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm_codes(name, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(MATRIX, GRADES, group=[30] * 30, categorical_feature=[1, 3])
    booster = by_lightgbm(name, data)
    ranker = mcrank.from_lightgbm(booster)
    assert ranker.scorer_.has_sets
    X = hard_codes()
    expected = booster.predict(X, raw_score=True).reshape(len(X), -1)
    if name == "forest":  # whose raw scores are not means
        np.testing.assert_allclose(ranker.predict(X), booster.predict(X), rtol=1e-14, atol=1e-15)
        return
    np.testing.assert_array_equal(ranker.predict_raw(X), expected)
    booster.save_model(tmp_path / "m.txt")
    np.testing.assert_array_equal(mcrank.from_lightgbm(tmp_path / "m.txt").predict_raw(X), expected)
    if ranker.scorer_.n_outputs == 1:
        in_every_form(ranker, expected, X, tmp_path)


def test_lightgbm_frames_go_by_name():
    lightgbm = pytest.importorskip("lightgbm")
    table = frame()
    booster = by_lightgbm("sets", lightgbm.Dataset(table, GRADES))
    ranker = mcrank.from_lightgbm(booster)
    assert ranker.categories_[1] == tuple(sorted(SHOPS))
    other = table.assign(
        shop=pd.Categorical(table["shop"].astype(object), categories=["new", *SHOPS[::-1]]),
        town=pd.Categorical(TOWNS, categories=[5, *sorted(set(TOWNS.tolist()), reverse=True)]),
    )
    other.loc[other.index[::7], "shop"] = "new"
    for rows in (table, other):
        np.testing.assert_array_equal(ranker.predict(rows), booster.predict(rows))


def test_lightgbm_frames_whose_columns_cannot_be_told_are_refused():
    lightgbm = pytest.importorskip("lightgbm")
    table = frame().assign(same=pd.Categorical(["one"] * ROWS))
    booster = by_lightgbm("sets", lightgbm.Dataset(table, GRADES))
    with pytest.raises(ModelFileError, match="3 columns of categories, of which 2 can be told"):
        mcrank.from_lightgbm(booster)


XGBOOST = {
    "sets": {"max_cat_to_onehot": 1},
    "one against all": {"max_cat_to_onehot": 5000},
    "classes": {"objective": "multi:softprob", "num_class": 5, "max_cat_to_onehot": 1},
    "dart": {"booster": "dart", "rate_drop": 0.3},
}


@pytest.mark.parametrize("name", XGBOOST)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_xgboost_codes(name, suffix, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    types = ["float", "c", "float", "c"]
    data = xgboost.DMatrix(MATRIX, GRADES, feature_types=types, enable_categorical=True)
    options = {"max_depth": 5, "nthread": 1, "seed": 1, **XGBOOST[name]}
    booster = xgboost.train(options, data, 8)
    X = hard_codes()
    rows = xgboost.DMatrix(X, feature_types=types, enable_categorical=True)
    leaves = booster.predict(rows, output_margin=True).reshape(len(X), -1)
    booster.save_model(tmp_path / f"m.{suffix}")
    for ranker in (mcrank.from_xgboost(booster), mcrank.from_xgboost(tmp_path / f"m.{suffix}")):
        assert ranker.scorer_.has_sets
        np.testing.assert_allclose(ranker.predict_raw(X), leaves, atol=2e-6)
    if name in ("sets", "one against all"):
        in_every_form(ranker, ranker.predict_raw(X), X, tmp_path)


@pytest.mark.parametrize("to", ["lightgbm", "xgboost", "c", "python", "javascript", "sql", "onnx"])
@pytest.mark.parametrize("kind", ["lightgbm", "xgboost"])
def test_exports_of_imported_categories(kind, to, tmp_path):
    library = pytest.importorskip(kind)
    if kind == "lightgbm":
        data = library.Dataset(MATRIX, GRADES, group=[30] * 30, categorical_feature=[1, 3])
        ranker = mcrank.from_lightgbm(by_lightgbm("sets", data))
    else:
        types = ["float", "c", "float", "c"]
        data = library.DMatrix(MATRIX, GRADES, feature_types=types, enable_categorical=True)
        ranker = mcrank.from_xgboost(library.train({"max_depth": 3, "max_cat_to_onehot": 1}, data, 4))
    X = np.where(np.isnan(MATRIX), np.nan, np.where(np.arange(ROWS)[:, None] % 5, MATRIX, np.abs(MATRIX)))
    if kind == "xgboost":
        X[::9, 1] = -1.0
        X[::11, 3] = 2000.0
    rows = mcrank.Dataset(
        X, GRADES, np.arange(ROWS) // 30, categorical=[1, 3] if kind == "lightgbm" else None
    )
    try:
        (path,) = ranker.export(tmp_path / f"model{target_class(to).suffixes[0]}", to=to)
        found = ranker.verify(path, to, rows)
    except ConsumerMissing as error:
        pytest.skip(str(error))
    assert found.holds
    if to not in ("xgboost", "onnx"):
        assert found.data.raw in (0.0, None)


def test_a_lightgbm_model_with_names_comes_back(tmp_path):
    table = frame().assign(town=TOWNS)
    data = mcrank.Dataset(table, GRADES, np.arange(ROWS) // 30, categorical=["town"])
    ours = mcrank.LambdaMART(n_estimators=5, num_leaves=8, min_data_per_group=10, n_jobs=1).fit(data)
    (path,) = ours.export(tmp_path / "m.txt", to="lightgbm")
    back = mcrank.from_lightgbm(path)
    assert back.categories_ == ours.categories_
    np.testing.assert_array_equal(back.predict(table), ours.predict(table))


def test_a_model_comes_back_though_no_tree_asks_for_one_of_its_categories(tmp_path):
    table = frame().assign(same=pd.Categorical(["one"] * ROWS))
    data = mcrank.Dataset(table, GRADES, np.arange(ROWS) // 30)
    ours = mcrank.LambdaMART(n_estimators=5, num_leaves=8, min_data_per_group=10, n_jobs=1).fit(data)
    assert "same" in [ours.feature_names_[f] for f in ours.categories_]
    with pytest.warns(UserWarning, match="categories of feature 'town' are texts in the file"):
        (path,) = ours.export(tmp_path / "m.txt", to="lightgbm")
    again = mcrank.from_lightgbm(path)
    assert again.categories_ == ours.categories_
    np.testing.assert_array_equal(again.predict(table), ours.predict(table))
    lightgbm = pytest.importorskip("lightgbm")
    texts = table.assign(town=table["town"].astype(str).astype("category"))
    np.testing.assert_array_equal(lightgbm.Booster(model_file=path).predict(texts), ours.predict(table))


def test_the_empty_text_as_a_category_is_refused():
    from sklearn.ensemble import HistGradientBoostingRegressor

    lightgbm = pytest.importorskip("lightgbm")
    names = np.array(["", *SHOPS[1:]], dtype=object)
    table = frame(categories=names)[["price", "shop"]]
    target = np.where(CODES == 0, 5.0, GRADES)
    told = "feature [01] has the empty text among its categories"
    with pytest.raises(ModelFileError, match=told):
        mcrank.from_lightgbm(by_lightgbm("one against all", lightgbm.Dataset(table, target)))
    made = HistGradientBoostingRegressor(max_iter=3, categorical_features="from_dtype")
    with pytest.raises(ModelFileError, match=told):
        mcrank.from_sklearn(made.fit(table, target))


@pytest.mark.parametrize("classes", [False, True])
def test_scikit_learn_categories(classes):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    made = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = made(max_iter=6, categorical_features=[1, 3], max_leaf_nodes=12, random_state=0)
    model.fit(MATRIX, GRADES)
    ranker = mcrank.from_sklearn(model)
    assert ranker.scorer_.has_sets
    X = hard_codes().astype(np.float64)
    raw = model._raw_predict(X) if classes else model.predict(X)
    np.testing.assert_array_equal(ranker.predict_raw(X), np.reshape(raw, (len(X), -1)))


def test_scikit_learn_categories_of_a_frame():
    from sklearn.ensemble import HistGradientBoostingRegressor

    table = frame()[["size", "town", "price", "shop"]]
    model = HistGradientBoostingRegressor(max_iter=6, categorical_features="from_dtype").fit(table, GRADES)
    ranker = mcrank.from_sklearn(model)
    assert ranker.scorer_.has_sets
    np.testing.assert_array_equal(ranker.predict(table), model.predict(table))
    other = table.assign(shop=pd.Categorical(table["shop"].astype(object), categories=["new", *SHOPS[::-1]]))
    other.loc[other.index[::5], "shop"] = "new"
    np.testing.assert_array_equal(ranker.predict(other), model.predict(other))


def test_two_classes_whose_first_is_worth_more():
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )

    X, labels = np.nan_to_num(MATRIX), np.where(GRADES > 1, "good", "poor")
    for made in (GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier):
        model = made(random_state=0).fit(X, labels)
        good = model.predict_proba(X)[:, 0]
        ranker = mcrank.from_sklearn(model, grades=[1, 0])
        np.testing.assert_allclose(ranker.predict(X), good, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(mcrank.from_sklearn(model).predict(X), 1 - good, atol=1e-12)


def explained_by_codes(ranker, word):
    """Pairs are told by codes; another category that is told swaps them, and none that moves less does."""
    told = 0
    known = MATRIX[~np.isnan(MATRIX).any(axis=1)]
    for a, b in zip(known[:40], known[40:80], strict=True):
        why = ranker.explain_pair(a, b)
        assert sum(why.contributions.values()) == pytest.approx(why.difference, abs=1e-9)
        name = ranker.feature_names_[1]
        assert why.values[name] == (f"{word}{a[1]:g}", f"{word}{b[1]:g}")
        for change in why.changes:
            if change.feature != name:
                continue
            rows = np.stack([a, b])
            at = "ab".index(change.row)
            rows[at, 1] = float(change.after.removeprefix(word))
            first, second = ranker.predict(rows)
            assert (first - second) * why.difference < 0
            every = np.repeat(rows[at][None], 7, axis=0)
            every[:, 1] = np.arange(7)
            scores, other = ranker.predict(every), why.scores[1 - at]
            swapping = scores[(scores - other) * (why.scores[at] - other) < 0]
            nearest = np.abs(swapping - why.scores[at]).min()
            assert abs((first, second)[at] - why.scores[at]) == pytest.approx(nearest, abs=1e-12)
            told += 1
    assert told > 3


def test_pairs_of_lightgbm_are_explained_by_codes():
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(MATRIX, GRADES, categorical_feature=[1, 3])
    explained_by_codes(mcrank.from_lightgbm(by_lightgbm("sets", data)), "")


def test_pairs_of_xgboost_are_explained_by_codes():
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(MATRIX, GRADES, feature_types=["q", "c", "q", "q"], enable_categorical=True)
    booster = xgboost.train({"nthread": 1, "max_depth": 5}, data, 20)
    explained_by_codes(mcrank.from_xgboost(booster), "category ")


def test_odd_codes_are_explained_too():
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(MATRIX, GRADES, categorical_feature=[1, 3])
    ranker, rows = mcrank.from_lightgbm(by_lightgbm("sets", data)), hard_codes(80)
    for a, b in zip(rows[:40], rows[40:], strict=True):
        why = ranker.explain_pair(a, b)
        assert sum(why.contributions.values()) == pytest.approx(why.difference, abs=1e-9)
        assert why.sentence().isprintable()
