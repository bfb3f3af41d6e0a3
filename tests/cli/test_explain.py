"""`mcrank explain`: pairs of the library, as text and as JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank


@pytest.fixture
def model(mcrank_cli, tmp_path):
    path = tmp_path / "m.mcrank"
    options = ("--ranker", "mcrank", "--n-estimators", "5", "--out", str(path))
    assert mcrank_cli("train", "train.txt", *options)[0] == 0
    return str(path)


def query_of(data):
    """The first query with three rows or more, and its id."""
    number = int(np.argmax(data.sizes >= 3))
    return data.select([number]), str(data.qids[number])


def test_the_pairs_are_the_library_s(mcrank_cli, files, model):
    rows, query = query_of(mcrank.read(files / "valid.txt"))
    code, printed, err = mcrank_cli("explain", model, "valid.txt", "--query", query, "--top", "3", "--json")
    assert (code, err) == (0, "")
    ranker = mcrank.load(model)
    order = np.argsort(-ranker.predict(rows), kind="stable")
    pairs = json.loads(printed)["pairs"]
    assert len(pairs) == 2
    for pair, a, b in zip(pairs, order, order[1:], strict=False):
        expected = ranker.explain_pair(rows.X[a], rows.X[b])
        assert {e["feature"]: e["contribution"] for e in pair["contributions"]} == expected.contributions
        assert pair["difference"] == expected.difference
        assert len(pair["changes"]) == len(expected.changes)


def test_two_documents_by_number(mcrank_cli, files, model):
    rows, query = query_of(mcrank.read(files / "valid.txt"))
    code, printed, err = mcrank_cli(
        "explain", model, "valid.txt", "--query", query, "--above", "1", "--below", "3", "--features", "1"
    )
    assert (code, err) == (0, "")
    why = mcrank.load(model).explain_pair(rows.X[0], rows.X[2])
    assert f"{why.difference:+.4g}" in printed
    assert next(iter(why.contributions)) in printed
    assert " other " in printed


def test_what_is_not_there_is_named(mcrank_cli, files, model):
    _, query = query_of(mcrank.read(files / "valid.txt"))
    code, _, err = mcrank_cli("explain", model, "valid.txt", "--query", "no-such-query")
    assert (code, "there is no query 'no-such-query'" in err) == (3, True)
    code, _, err = mcrank_cli("explain", model, "valid.txt", "--query", query, "--above", "1")
    assert (code, "--above and --below go together" in err) == (2, True)
    code, _, err = mcrank_cli(
        "explain", model, "valid.txt", "--query", query, "--above", "1", "--below", "999999"
    )
    assert (code, "--below names '999999', which is no document of the query" in err) == (3, True)


def test_documents_of_one_name_are_told_apart(mcrank_cli, model, files, tmp_path):
    width = mcrank.read(files / "valid.txt").n_features
    lines = [
        f"0 qid:q 1:{v} {width}:1 # {doc}\n" for v, doc in ((0.9, "2"), (0.1, "B"), (0.5, "2"), (0.7, "C"))
    ]
    (tmp_path / "twins.txt").write_text("".join(lines))
    line = ("explain", model, str(tmp_path / "twins.txt"), "--query", "q", "--below", "B", "--json")
    code, _, err = mcrank_cli(*line, "--above", "2")
    assert (code, "several documents: say 2 (row 1) or 2 (row 3)." in err) == (3, True)
    code, printed, _ = mcrank_cli(*line, "--above", "2 (row 3)")
    (pair,) = json.loads(printed)["pairs"]
    assert (code, pair["names"]) == (0, ["2 (row 3)", "B"])
    assert {e["feature"]: e["values"] for e in pair["contributions"]}["f1"][0] == 0.5


def test_scores_cannot_be_explained(mcrank_cli, tmp_path, files):
    (tmp_path / "scores.txt").write_text("1.0\n2.0\n")
    code, _, err = mcrank_cli("explain", str(tmp_path / "scores.txt"), "valid.txt", "--query", "1")
    assert code != 0
    assert "Only models can be explained: scores alone do not say what they were made of." in err
