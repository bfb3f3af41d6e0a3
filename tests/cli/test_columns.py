"""Columns of a table named on the command line, wherever a command reads one; a model instead of scores."""

from __future__ import annotations

import csv

import click
import numpy as np
import pytest

import mcrank
from mcrank.cli.main import group

FEW = ("--n-estimators", "3", "--num-leaves", "4", "--min-samples-leaf", "3", "--n-jobs", "1")
NAMES = ("--qid", "search", "--grade", "judgment", "--doc-id", "url")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same rows twice: under names that are known, and under others with a column that is no feature."""
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(5)
    X = random.normal(size=(120, 2)).round(3)
    grades = np.digitize(X[:, 0] + random.normal(size=120), [0.0, 1.0])
    known = [
        {"qid": i // 10, "label": g, "doc_id": f"d{i}", "a": a, "b": b}
        for i, ((a, b), g) in enumerate(zip(X.tolist(), grades.tolist(), strict=True))
    ]
    others = [
        {
            "b": r["b"], "search": r["qid"], "judgment": r["label"], "leak": r["label"], "url": r["doc_id"],
            "a": r["a"],
        }
        for r in known
    ]  # fmt: skip
    for name, rows in (("known.csv", known), ("others.csv", others)):
        with open(folder / name, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


@pytest.fixture
def run(mcrank_cli, tables):
    def call(*words):
        return mcrank_cli(
            *(str(tables / word) if word.endswith((".csv", ".mcrank")) else word for word in words)
        )

    return call


def test_named_columns_give_the_model_and_the_scores_of_known_names(run, tables):
    assert run("train", "known.csv", "--out", "known.mcrank", *FEW)[0] == 0
    code, _, err = run("train", "others.csv", "--out", "others.mcrank", *NAMES, "--ignore", "leak", *FEW)
    assert (code, err) == (0, "")
    model = mcrank.load(tables / "others.mcrank")
    assert model.feature_names_ == ("b", "a")
    scored = [run("predict", "known.mcrank", name)[1] for name in ("known.csv", "others.csv")]
    assert scored[0] == scored[1] != ""
    evaluated = run("evaluate", "known.csv", "known.mcrank", "--json")
    assert evaluated[0] == 0
    assert run("evaluate", "others.csv", "known.mcrank", "--json", *NAMES) == evaluated


def test_a_model_in_place_of_scores_is_its_scores(run, tables, tmp_path):
    assert run("train", "known.csv", "--out", "known.mcrank", *FEW)[0] == 0
    assert run("predict", "known.mcrank", "known.csv", "--out", str(tmp_path / "s.txt"))[0] == 0
    for command in ("evaluate", "rosetta"):
        by_model = run(command, "known.csv", "known.mcrank", "--json")
        assert by_model[0] == 0
        assert by_model == run(command, "known.csv", str(tmp_path / "s.txt"), "--json")
    code, _, err = run("evaluate", "known.mcrank", "known.csv")
    assert code != 0
    assert "is a model, not data" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ignore", "leek"), "did you mean 'leak'?"),
        (("--ignore", "leak,judgment,a,b,url"), "no feature columns"),
        (("--grade", "search_"), "did you mean 'search'?"),
        ((), "--qid"),
    ],
)
def test_wrong_columns_are_named(words, said, run):
    base = () if not words else ("--qid", "search", "--grade", "judgment")
    code, _, err = run("train", "others.csv", "--out", "none.mcrank", *base, *words, *FEW)
    assert code != 0
    assert said in err


def test_text_and_judgments_have_no_named_columns(run, mcrank_cli, tmp_path):
    code, _, err = mcrank_cli(
        "train", "train.txt", "--out", str(tmp_path / "m.mcrank"), "--ignore", "f1", *FEW
    )
    assert code != 0
    assert "LETOR text has no named columns" in err
    (tmp_path / "qrels.txt").write_text("1 0 d1 1\n1 0 d2 0\n")
    (tmp_path / "run.txt").write_text("1 Q0 d1 1 2.0 x\n1 Q0 d2 2 1.0 x\n")
    files = (str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt"))
    assert mcrank_cli("evaluate", *files)[0] == 0
    code, _, err = mcrank_cli("evaluate", *files, "--qid", "q")
    assert code != 0
    assert "have no named columns" in err


def test_commands_that_read_tables_take_the_options():
    listed = {
        "analyze", "bin", "cache", "compare", "doctor", "evaluate", "explain", "export", "learning-curve",
        "predict", "refit", "rosetta", "significance", "train", "tune",
    }  # fmt: skip
    for name in listed:
        command = group.get_command(click.Context(group), name)
        flags = {flag for option in command.params for flag in getattr(option, "opts", ())}
        assert {"--qid", "--grade", "--doc-id", "--weight", "--ignore"} <= flags, name


def test_columns_that_look_like_ids_are_told(tables):
    data = mcrank.read(tables / "others.csv", qid="search", grade="judgment", ignore=["leak"])
    assert data.feature_names == ("b", "url", "a")
    assert [f.check for f in mcrank.diagnose(data).findings if f.check == "id-features"] == ["id-features"]
    few = mcrank.McRank(n_estimators=2, n_jobs=1)
    with pytest.warns(UserWarning, match="column 'url' has 120 categories in 120 rows: it looks like an id"):
        few.fit(data)
    meant = mcrank.read(tables / "others.csv", qid="search", grade="judgment", ignore=["leak", "url"])
    few.fit(meant)  # warnings are errors here


def test_features_and_ignore_are_one_or_the_other(tables):
    named = {"qid": "search", "grade": "judgment"}
    with pytest.raises(mcrank.DataError, match="do not go together"):
        mcrank.read(tables / "others.csv", features=["a"], ignore=["leak"], **named)
    with pytest.raises(mcrank.DataError, match="sequence of names"):
        mcrank.read(tables / "others.csv", ignore="leak", **named)
