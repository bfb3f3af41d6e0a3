"""Exports of models with categories: every consumer gives the scores of mcrank, others refuse."""

from __future__ import annotations

import json
import runpy
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.cli.main import main
from mcrank.errors import OptionError
from mcrank.export.codes import on_codes
from mcrank.export.hard_rows import hard_rows
from mcrank.export.registry import TARGETS, target_class
from mcrank.export.target import ConsumerMissing

STREAM = np.random.default_rng(4)
NAMES = ["it's", 'a "b"', "back\\slash", "*/ ??/", "über", "tab\tless"[:3], "g", "h", "i"]
SHOPS = np.array(NAMES, dtype=object)[STREAM.integers(0, 9, 400)]
SHOPS[STREAM.random(400) < 0.1] = None
TABLE = pd.DataFrame({"shop": SHOPS, "price": STREAM.normal(size=400), "town": STREAM.integers(0, 3, 400)})
GRADES = np.clip(
    np.round((TABLE["shop"].isin(NAMES[::2])) * 1.5 + TABLE["price"] / 2 + TABLE["town"] % 2), 0, 3
)
DATA = mcrank.Dataset(TABLE, GRADES, np.repeat(range(20), 20), categorical=["town"])
FEW = {"n_estimators": 6, "num_leaves": 8, "min_data_per_group": 10, "n_jobs": 1}
MODELS = {
    "lambdamart": mcrank.LambdaMART(**FEW).fit(DATA),
    "mcrank": mcrank.McRank(**FEW).fit(DATA),
    "ordinal": mcrank.OrdinalMcRank(**FEW).fit(DATA),
}
pytestmark = pytest.mark.filterwarnings("ignore:categories of feature .* are texts")
TAKES = ["lightgbm", "xgboost", "c", "python", "javascript", "sql", "onnx"]


@pytest.mark.consumer
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", TAKES)
def test_the_consumer_agrees(name, kind, tmp_path):
    ranker = MODELS[kind]
    assert ranker.forest_.has_sets
    suffix = target_class(name).suffixes[0]
    try:
        (path,) = ranker.export(tmp_path / f"model{suffix}", to=name)
        found = ranker.verify(path, name, DATA)
    except ConsumerMissing as error:
        pytest.skip(str(error))
    except OptionError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))
    assert found.holds
    assert found.hard.missing > 0
    if name not in ("xgboost", "onnx"):
        assert found.data.raw in (0.0, None)
        assert found.hard.raw in (0.0, None)


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in TAKES])
def test_others_refuse(name, tmp_path):
    for ranker in MODELS.values():
        with pytest.raises(OptionError, match=r"it does not take splits on categories; .*onnx") as told:
            ranker.export(tmp_path / "model", to=name)
        assert "distil" not in str(told.value)  # that would split on them too
    assert "splits on categories" in str(_refusal(name))


def test_nothing_is_distilled_for_a_target_that_would_refuse_it(tmp_path, capsys):
    MODELS["lambdamart"].save(tmp_path / "model.mcrank")
    (tmp_path / "odd.txt").write_text("no data, which nobody looks at\n")
    line = ["export", str(tmp_path / "model.mcrank"), "--out", str(tmp_path / "out.json"), "--to", "solr"]
    assert main([*line, "--distil", str(tmp_path / "odd.txt")]) == 2
    assert "it does not take splits on categories" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def _refusal(name):
    from mcrank.export.target import takes

    return takes(target_class(name))


@pytest.mark.parametrize("kind", MODELS)
def test_thresholds_on_codes_score_the_same(kind):
    forest = MODELS[kind].forest_
    numbers = on_codes(forest)
    assert not numbers.has_sets
    for X in (DATA.X, hard_rows(forest, 2000)):
        assert np.array_equal(forest.raw(X), numbers.raw(X))


def test_python_takes_names(tmp_path):
    ranker = MODELS["mcrank"]
    (path,) = ranker.export(tmp_path / "model.py", to="python")
    model = runpy.run_path(str(path))
    rows = TABLE.astype(object).where(TABLE.notna(), None).to_dict("records")
    assert np.allclose(model["scores"](rows), ranker.predict(TABLE), rtol=1e-14)
    odd = {"shop": "nobody", "price": 0.5, "town": 99}
    assert model["score"](odd) == model["score"]({"price": 0.5})
    assert model["score"](odd | {"town": 2.0}) == model["score"](odd | {"town": "2"})


WORDS = ["null", "undefined", "NaN", "nan", "None", "True", "False"]  # of a missing value, or of none


@pytest.fixture(scope="module")
def words():
    """A ranker whose categories, and one feature, are called as languages call other things."""
    stream = np.random.default_rng(8)
    told = np.array([*WORDS, None], dtype=object)[stream.integers(0, len(WORDS) + 1, 600)]
    worth = dict(zip([*WORDS, None], stream.permutation(8), strict=True))
    found = pd.DataFrame(
        {"__proto__": pd.Categorical(told), "sure": pd.Categorical(stream.random(600) < 0.5)}
    )
    grades = np.array([worth[one] for one in told]) + found["sure"].astype(float)
    ranker = mcrank.RegressionRanker(n_estimators=30, min_samples_leaf=10, min_data_per_group=5, n_jobs=1)
    return ranker.fit(found, grades, qid=np.repeat(range(30), 20)), found


@pytest.mark.parametrize("name", ["python", "sql", pytest.param("javascript", marks=pytest.mark.consumer)])
def test_a_category_called_null_is_not_a_missing_value(name, words, tmp_path):
    ranker, table = words
    assert len(np.unique(ranker.predict(table))) > len(WORDS)
    (path,) = ranker.export(tmp_path / f"model{target_class(name).suffixes[0]}", to=name)
    data = mcrank.Dataset(table, np.zeros(600), np.repeat(range(30), 20))
    assert ranker.verify(path, name, data).holds


@pytest.mark.parametrize("name", ["python", pytest.param("javascript", marks=pytest.mark.consumer)])
def test_truth_values_are_categories_by_their_names(name, words, tmp_path):
    ranker, table = words
    path = tmp_path / f"model{target_class(name).suffixes[0]}"
    ranker.export(path, to=name)
    rows = [[None if one != one else one, bool(sure)] for one, sure in table.itertuples(index=False)]
    if name == "python":
        found = runpy.run_path(str(path))["scores"](rows)
    else:
        code = f"console.log(JSON.stringify(scores({json.dumps(rows)})));"
        (tmp_path / "run.mjs").write_text(f'import {{ scores }} from "./model.mjs";\n{code}')
        found = json.loads(subprocess.check_output(["node", tmp_path / "run.mjs"]))
    assert np.array_equal(found, ranker.predict(table))


@pytest.mark.consumer
def test_lightgbm_knows_the_names_of_a_frame(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    ranker = MODELS["lambdamart"]
    (path,) = ranker.export(tmp_path / "model.txt", to="lightgbm")
    table = TABLE.assign(
        shop=pd.Categorical(TABLE["shop"], categories=NAMES[::-1]),
        town=pd.Categorical(TABLE["town"].astype(str), categories=["2", "1", "0"]),
    )
    assert np.array_equal(lightgbm.Booster(model_file=str(path)).predict(table), ranker.predict(TABLE))
    assert json.loads(path.read_text().rsplit("pandas_categorical:", 1)[1])[1] == ["0", "1", "2"]


@pytest.fixture(scope="module")
def towns():
    """A ranker whose categories are whole numbers, and all ways to write one of them, and their score."""
    stream = np.random.default_rng(5)
    table = pd.DataFrame({"town": stream.integers(100, 104, 600) * 10, "price": stream.normal(size=600)})
    data = mcrank.Dataset(
        table,
        (table["town"] == 1010) * 2.0 + (table["price"] > 0),
        np.repeat(range(30), 20),
        categorical=["town"],
    )
    ranker = mcrank.RegressionRanker(n_estimators=5, min_samples_leaf=10, n_jobs=1).fit(data)
    ways = [1010, 1010.0, "1010", "01010", "+1010", " 1010\t"]
    scores = [ranker.predict({"town": [way], "price": [0.0]})[0] for way in ways]
    missing = ranker.predict({"town": [None], "price": [0.0]})[0]
    assert len(set(scores)) == 1
    assert scores[0] != missing
    return ranker, ways, scores[0], missing


@pytest.mark.parametrize("name", ["python", pytest.param("javascript", marks=pytest.mark.consumer)])
def test_whole_numbers_are_called_by_their_digits_there_too(name, towns, tmp_path):
    ranker, ways, score, missing = towns
    path = tmp_path / f"model{target_class(name).suffixes[0]}"
    ranker.export(path, to=name)
    rows = [{"town": way, "price": 0.0} for way in [*ways, "1010.0", "1e3", "", None]]
    if name == "python":
        found = runpy.run_path(str(path))["scores"](rows)
    else:
        code = f"console.log(JSON.stringify(scores({json.dumps(rows)})));"
        (tmp_path / "run.mjs").write_text(f'import {{ scores }} from "./model.mjs";\n{code}')
        found = json.loads(subprocess.check_output(["node", tmp_path / "run.mjs"]))
    assert found == [score] * len(ways) + [missing] * 4


@pytest.mark.parametrize("dialect", ["sqlite", pytest.param("duckdb", marks=pytest.mark.consumer)])
@pytest.mark.parametrize("kind", ["TEXT", "INTEGER", "BIGINT", "REAL", "DOUBLE"])
def test_a_database_may_have_whole_numbers_in_any_column(dialect, kind, towns, tmp_path):
    """Of doubles, which is what a table of pandas with missing values becomes, all rows were missing."""
    ranker, _, score, missing = towns
    (path,) = ranker.export(tmp_path / "model.sql", to="sql", dialect=dialect)
    engine = sqlite3 if dialect == "sqlite" else pytest.importorskip("duckdb")
    connection = engine.connect(":memory:")
    connection.execute(f"CREATE TABLE documents (id INTEGER, town {kind}, price DOUBLE)")
    connection.execute("INSERT INTO documents VALUES (1, 1010, 0), (2, NULL, 0), (3, 999, 0)")
    found = sorted(connection.execute(path.read_text()).fetchall())
    connection.close()
    assert [row[1] for row in found] == [score, missing, missing]
