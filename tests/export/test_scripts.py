"""The JavaScript and Python files: one file alone, rows by position or by name, scores as mcrank's."""

from __future__ import annotations

import ast
import json
import math
import runpy
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mcrank.export.hard_rows import hard_rows
from mcrank.export.javascript import JavaScript
from mcrank.export.python import Python
from mcrank.export.write import export
from tests.export import bed

NODE = pytest.param(JavaScript, marks=pytest.mark.consumer)


def written(model, target, folder):
    return export(model, target, folder / f"model{target.suffixes[0]}")[0]


@pytest.mark.parametrize("kind", [NODE, Python])
@pytest.mark.parametrize("name", bed.FORESTS)
def test_forests_are_equal_to_the_last_bit(tmp_path, kind, name):
    model = bed.model(name)
    X = hard_rows(model.scorer, 300)
    found = kind().consume(model, written(model, kind(), tmp_path), X)
    assert np.array_equal(found.raw, model.scorer.raw(X))
    assert np.abs(found.scores - model.scores(X)).max() <= 2e-15


@pytest.mark.parametrize("kind", [NODE, Python])
@pytest.mark.parametrize("name", bed.OTHERS)
def test_linear_maps_nets_and_blends(tmp_path, kind, name):
    model = bed.model(name)
    X = hard_rows(model.scorer, 300)
    found = kind().consume(model, written(model, kind(), tmp_path), X)
    want = model.scores(X)
    for scores in (found.scores, found.raw[0]):
        assert (np.abs(scores - want) <= 1e-14 * np.maximum(1.0, np.abs(want))).all()


@pytest.mark.parametrize("name", bed.GRADED)
def test_python_has_probabilities(tmp_path, name):
    model = bed.model(name)
    X = hard_rows(model.scorer, 100)
    module = runpy.run_path(str(written(model, Python(), tmp_path)))
    found = np.array([module["probabilities"](row) for row in X.tolist()]).T
    assert np.abs(found - model.head.proba(model.scorer.raw(X))).max() <= 1e-15
    assert module["GRADES"] == tuple(model.grades)


def node(folder, code):
    (folder / "run.mjs").write_text(f'import * as model from "./model.mjs";\n{code}')
    done = subprocess.run(["node", folder / "run.mjs"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.consumer
@pytest.mark.parametrize("name", bed.GRADED)
def test_javascript_has_probabilities(tmp_path, name):
    model = bed.model(name)
    X = hard_rows(model.scorer, 100)
    written(model, JavaScript(), tmp_path)
    rows = json.dumps([[None if math.isnan(v) else v for v in row] for row in X.tolist()])
    found = node(tmp_path, f"console.log(JSON.stringify({rows}.map(model.probabilities)));")
    assert np.abs(np.array(found).T - model.head.proba(model.scorer.raw(X))).max() <= 1e-15


def test_python_takes_rows_by_name_and_needs_only_the_standard_library(tmp_path):
    model = bed.model("mcrank", "gain")
    path = written(model, Python(), tmp_path)
    source = path.read_text()
    ast.parse(source, feature_version=(3, 8))
    imports = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imports <= sys.stdlib_module_names
    code = (
        "import json, sys, model; row = dict(zip(model.FEATURES, [0.1, None, 1e-40, float('nan'), 5]));"
        "print(json.dumps([model.score(row), model.score([*row.values(), None, None, None]),"
        "model.scores([row])[0], model.RELEVANCE, 'numpy' in sys.modules]))"
    )
    line = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"]
    by_name, by_place, one, worth, numpy = json.loads(
        subprocess.run(line, capture_output=True, check=True).stdout
    )
    X = np.full((1, 8), np.nan, dtype=np.float32)
    X[0, [0, 2, 4]] = [0.1, 1e-40, 5]
    assert by_name == by_place == one == pytest.approx(model.scores(X)[0], abs=1e-14)
    assert (worth, numpy) == ([0, 1, 3, 7, 15], False)


def test_python_answers_rows_it_cannot_take(tmp_path):
    module = runpy.run_path(str(written(bed.model("gbrank"), Python(), tmp_path)))
    for row, words in (
        ([1.0], "has 1 numbers; the model takes 8"),
        ({"bm52": 1.0}, "'bm52', which is no feature"),
        ([1e39] * 8, "beyond float32"),
        ([np.inf] * 8, "beyond float32"),
        ([-np.inf] * 8, "beyond float32"),
        ([10**400] * 8, "beyond float32"),
        ("12345678", "no text"),
    ):
        with pytest.raises(ValueError, match=words):
            module["score"](row)
    with pytest.raises(ValueError, match="no grades"):
        module["probabilities"]([0.0] * 8)


def test_python_takes_rows_of_a_database_and_of_a_frame_by_name(tmp_path):
    model = bed.model("gbrank")
    module = runpy.run_path(str(written(model, Python(), tmp_path)))
    values = [0.1, 2.0, None, 1.0, 0.5, -1.0, None, 3.0]
    names = module["FEATURES"]
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    columns = ", ".join('? AS "' + name.replace('"', '""') + '"' for name in reversed(names))
    row = connection.execute(f"SELECT {columns}", values[::-1]).fetchone()
    connection.close()
    assert module["score"](row) == module["score"](values)
    series = pd.Series(values, index=names, dtype=float)
    assert module["score"](series[::-1]) == module["score"](values)
    with pytest.raises(ValueError, match="'bm52', which is no feature"):
        module["score"](pd.Series([1.0], index=["bm52"]))


@pytest.mark.consumer
def test_javascript_takes_rows_by_name_and_answers_what_it_cannot_take(tmp_path):
    model = bed.model("gbrank")
    written(model, JavaScript(), tmp_path)
    found = node(
        tmp_path,
        """const row = {"bm25": 0.1, "page rank": 2, "tiny": undefined, "quo\\"te": null};
        const told = [];
        const odd = ["n/a", " ", [5], {}].map((text) => ({"bm25": text}));
        const none = [new Map([["bm25", 0.1]]), Promise.resolve(row), 5, "12345678", null, undefined];
        for (const bad of [[1], {"bm52": 1}, new Array(8).fill(1e39), ...odd, ...none]) {
          try { model.score(bad); } catch (error) { told.push(error.message); }
        }
        try { model.probabilities(row); } catch (error) { told.push(error.message); }
        const all = [0.1, 2, NaN, NaN, NaN, NaN, NaN, NaN];
        console.log(JSON.stringify([model.score(row), model.score(all), model.scores([row])[0], told]));""",
    )
    X = np.full((1, 8), np.nan, dtype=np.float32)
    X[0, :2] = [0.1, 2]
    assert found[0] == found[1] == found[2] == model.scores(X)[0]
    assert [words.split(";")[0] for words in found[3]] == [
        "the row has 1 numbers",
        "the row has bm52, which is no feature of the model.",
        "the row has a number beyond float32 (3.4e38).",
        'the row has "n/a" for bm25, which is no number.',
        'the row has " " for bm25, which is no number.',
        "the row has [5] for bm25, which is no number.",
        "the row has {} for bm25, which is no number.",
        *(
            f"a row is an array of numbers, or an object by their names, got [object {kind}]."
            for kind in ("Map", "Promise", "Number", "String", "Null", "Undefined")
        ),
        "this model has no grades, and so no probabilities.",
    ]


@pytest.mark.consumer
def test_javascript_as_commonjs(tmp_path):
    model = bed.model("ordinal")
    X = hard_rows(model.scorer, 100)
    target = JavaScript(module="commonjs")
    path = export(model, target, tmp_path / "model.cjs")[0]
    assert np.array_equal(target.consume(model, path, X).raw, model.scorer.raw(X))
    code = f"console.log(require({json.dumps(str(path))}).FEATURES.length)"
    assert subprocess.run(["node", "-e", code], capture_output=True, text=True).stdout == "8\n"
