"""`mcrank predict`: the library's scores, one a line, in the order of the file."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mcrank


@pytest.fixture
def ranker(files):
    return mcrank.load(files / "model.mcrank")


@pytest.fixture
def test_data(files):
    return mcrank.read(files / "test.txt")


def test_scores_read_back_exactly(mcrank_cli, ranker, test_data):
    code, printed, err = mcrank_cli("predict", "model.mcrank", "test.txt")
    assert (code, err) == (0, "")
    assert [float(line) for line in printed.splitlines()] == ranker.predict(test_data).tolist()


def test_scores_come_in_the_order_of_the_file_even_when_queries_are_scattered(
    mcrank_cli, files, ranker, tmp_path
):
    lines = (files / "test.txt").read_text().splitlines(keepends=True)
    order = np.random.default_rng(0).permutation(len(lines))
    (tmp_path / "mixed.txt").write_text("".join(lines[i] for i in order))
    _, straight, _ = mcrank_cli("predict", "model.mcrank", "test.txt")
    code, mixed, _ = mcrank_cli("predict", "model.mcrank", str(tmp_path / "mixed.txt"))
    assert code == 0
    straight_lines = straight.splitlines()
    assert mixed.splitlines() == [straight_lines[i] for i in order]


def test_out_writes_the_same_to_a_file(mcrank_cli, tmp_path):
    _, printed, _ = mcrank_cli("predict", "model.mcrank", "test.txt")
    code, nothing, _ = mcrank_cli(
        "predict", "model.mcrank", "test.txt", "--out", str(tmp_path / "scores.txt")
    )
    assert (code, nothing) == (0, "")
    assert (tmp_path / "scores.txt").read_text() == printed
    arguments = ["predict", "model.mcrank", "test.txt", "--json"]
    _, printed, _ = mcrank_cli(*arguments)
    code, nothing, _ = mcrank_cli(*arguments, "--out", str(tmp_path / "scores.json"))
    assert (code, nothing) == (0, "")
    assert (tmp_path / "scores.json").read_text() == printed


@pytest.mark.parametrize(
    ("given", "meant"), [("grade", "grade"), ("gain", "gain"), ("0,1,3,7,15", [0.0, 1.0, 3.0, 7.0, 15.0])]
)
def test_relevance(mcrank_cli, ranker, test_data, given, meant):
    assert len(ranker.grades_) == 5
    code, printed, _ = mcrank_cli("predict", "model.mcrank", "test.txt", "--relevance", given, "--json")
    assert code == 0
    assert json.loads(printed)["scores"] == ranker.predict(test_data, relevance=meant).tolist()


def test_probabilities(mcrank_cli, ranker, test_data):
    code, printed, _ = mcrank_cli("predict", "model.mcrank", "test.txt", "--proba")
    assert code == 0
    table = [[float(word) for word in line.split("\t")] for line in printed.splitlines()]
    assert table == ranker.predict_proba(test_data).tolist()
    code, printed, _ = mcrank_cli("predict", "model.mcrank", "test.txt", "--proba", "--json")
    assert json.loads(printed)["probabilities"] == table


def test_threads_change_nothing(mcrank_cli):
    outputs = {mcrank_cli("predict", "model.mcrank", "test.txt", "--n-jobs", str(n)) for n in (1, 2)}
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["test.txt", "test.txt"], 3, "test.txt is not a mcrank model file"),
        (["missing.mcrank", "test.txt"], 3, "missing.mcrank does not exist"),
        (["model.mcrank", "missing.txt"], 3, "missing.txt"),
        (["model.mcrank", "test.txt", "--relevance", "high"], 2, "must be grade, gain or numbers"),
        (["model.mcrank", "test.txt", "--relevance", "1,2"], 2, "relevance of McRank.predict must be"),
        (["model.mcrank", "test.txt", "--proba", "--relevance", "gain"], 2, "do not go together"),
        (["model.mcrank", "test.txt", "--n-jobs", "0"], 2, "--n-jobs"),
        (["model.mcrank", "test.txt", "--out", "no/such/scores.txt"], 2, "does not exist"),
    ],
)
def test_what_is_wrong_is_said(mcrank_cli, arguments, code, words):
    got, printed, err = mcrank_cli("predict", *arguments)
    assert (got, printed) == (code, "")
    assert words in err


def test_a_ranker_without_probabilities_says_so(mcrank_cli, tmp_path):
    model = str(tmp_path / "r.mcrank")
    assert (
        mcrank_cli("train", "train.txt", "--ranker", "regression", "--n-estimators", "2", "--out", model)[0]
        == 0
    )
    code, _, err = mcrank_cli("predict", model, "test.txt", "--proba")
    assert code == 2
    assert "regression has none" in err


def test_too_many_features_are_named(mcrank_cli, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 1:0.5 9:2\n0 qid:1 1:0.25\n")
    code, _, err = mcrank_cli("predict", "model.mcrank", str(tmp_path / "wide.txt"))
    assert code == 3
    assert "9 features" in err


def test_rows_that_leave_out_their_last_features_are_scored_as_the_text_means(mcrank_cli, ranker, tmp_path):
    (tmp_path / "narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 2:0.25\n")
    code, printed, _ = mcrank_cli("predict", "model.mcrank", str(tmp_path / "narrow.txt"))
    assert code == 0
    rows = np.array([[0.5, 0, 0, 0, 0], [0, 0.25, 0, 0, 0]])
    assert [float(line) for line in printed.splitlines()] == ranker.predict(rows).tolist()


@pytest.mark.parametrize("left_out", [["grade"], ["grade", "qid"]])
def test_a_table_needs_no_grades_to_be_scored(mcrank_cli, ranker, test_data, tmp_path, left_out):
    columns = {"qid": test_data.qid, "grade": ["?"] * test_data.n_rows}  # grades are not looked at either
    columns |= dict(zip(test_data.feature_names, test_data.X.T.tolist(), strict=True))
    wanted = ranker.predict(test_data).tolist()
    for names in (list(columns), [name for name in columns if name not in left_out]):
        path = tmp_path / "rows.csv"
        rows = zip(*(columns[name] for name in names), strict=True)
        path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]))
        code, printed, err = mcrank_cli("predict", "model.mcrank", str(path))
        assert (code, err) == (0, "")
        assert [float(line) for line in printed.splitlines()] == wanted


def test_a_blend_by_query_still_asks_for_query_ids(mcrank_cli, files, tmp_path):
    train = mcrank.read(files / "train.txt")
    blend = mcrank.Blend(members="best-feature", standard="query", method="equal")
    blend.fit(train, valid=mcrank.read(files / "valid.txt")).save(tmp_path / "blend.mcrank")
    path = tmp_path / "rows.csv"
    path.write_text("f1,f2,f3,f4,f5\n1,2,3,4,5\n")
    code, printed, err = mcrank_cli("predict", str(tmp_path / "blend.mcrank"), str(path))
    assert code != 0
    assert printed == ""
    assert "quer" in err


def test_scores_never_take_the_place_of_what_is_read(mcrank_cli, files, tmp_path):
    rows, model = tmp_path / "rows.txt", tmp_path / "model.mcrank"
    rows.write_bytes((files / "test.txt").read_bytes())
    model.write_bytes((files / "model.mcrank").read_bytes())
    (tmp_path / "link.txt").symlink_to(rows)
    for out in (rows, model, tmp_path / "link.txt"):
        code, _, err = mcrank_cli("predict", str(model), str(rows), "--out", str(out))
        assert code == 2
        assert "would be lost" in err
    assert rows.read_bytes() == (files / "test.txt").read_bytes()
    assert model.read_bytes() == (files / "model.mcrank").read_bytes()


def test_a_pattern_without_a_suffix_is_as_good_as_the_files_it_names(mcrank_cli, test_data, tmp_path):
    names = [f"f{n}" for n in range(1, test_data.n_features + 1)]
    columns = {**dict(zip(names, test_data.X.T, strict=True)), "qid": test_data.qid, "grade": test_data.y}
    frame = pd.DataFrame(columns).assign(seen="2024-05-01")  # of no use to the model
    for part, folder in enumerate(("csv", "csv", "parquet", "parquet")):
        (tmp_path / folder).mkdir(exist_ok=True)
        rows = (
            frame[test_data.qid <= test_data.qids[5]]
            if part % 2 == 0
            else frame[test_data.qid > test_data.qids[5]]
        )
        getattr(rows, f"to_{folder}")(tmp_path / folder / f"{part}.{folder}", index=False)
    named = str(tmp_path / "named.mcrank")
    mcrank.RegressionRanker(n_estimators=3).fit(mcrank.read(frame, ignore=["seen"])).save(named)
    whole = str(tmp_path / "whole.parquet")
    frame.assign(seen=pd.Timestamp("2024-05-01")).to_parquet(whole, index=False)
    for command in (
        ["predict", named, "{}"],
        ["evaluate", "{}", named],
        ["explain", named, "{}", "--query", "{q}"],
    ):
        told = {}
        for path in (whole, str(tmp_path / "csv" / "*"), str(tmp_path / "parquet" / "*")):
            words = [
                word.format(path) if word == "{}" else word.format(q=test_data.qids[0]) for word in command
            ]
            code, told[path], err = mcrank_cli(*words, "--json")
            assert code == 0, err
        assert len(set(told.values())) == 1
