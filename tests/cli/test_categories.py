"""Categories on the command line: files with names, models that know them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import mcrank
from mcrank.cli.main import main

FEW = ["--n-estimators", "5", "--num-leaves", "4", "--min-data-per-group", "5", "--n-jobs", "1"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    stream = np.random.default_rng(2)
    shops = np.array(["amber", "birch", "NA", "dune"], dtype=object)[stream.integers(0, 4, 200)]
    codes = np.array(["007", "08", "010"], dtype=object)[stream.integers(0, 3, 200)]
    table = pd.DataFrame({
        "qid": np.repeat(range(10), 20), "label": (shops == "birch") * 2 + (codes == "08"), "shop": shops,
        "code": codes, "price": stream.normal(size=200).round(2),
    })  # fmt: skip
    table.to_csv(tmp_path / "train.csv", index=False)
    table[table["shop"] != "dune"].iloc[::-1].to_csv(tmp_path / "test.csv", index=False)
    table.assign(shop=table["shop"].replace("NA", None)).to_parquet(tmp_path / "train.parquet")
    monkeypatch.chdir(tmp_path)
    return table


def said(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_train_predict_describe_explain(files, capsys):
    said(
        capsys,
        "train",
        "train.csv",
        "--ranker",
        "lambdamart",
        "--categorical",
        "code",
        *FEW,
        "--out",
        "m.mcrank",
    )
    ranker = mcrank.load("m.mcrank")
    # NA is a missing value in CSV, and digits are as they are written.
    assert ranker.categories_ == {0: ("amber", "birch", "dune"), 1: ("007", "010", "08")}
    table = files[files["shop"] != "dune"].iloc[::-1]
    wanted = ranker.predict(table[["shop", "code", "price"]])
    scores = [float(line) for line in said(capsys, "predict", "m.mcrank", "test.csv").split()]
    assert np.array_equal(scores, wanted)
    table.drop(columns=["qid", "label"]).to_parquet("rows.parquet")
    assert [float(line) for line in said(capsys, "predict", "m.mcrank", "rows.parquet").split()] == scores
    told = json.loads(said(capsys, "describe", "m.mcrank", "--json"))
    assert told["categories"]["shop"] == ["amber", "birch", "dune"]
    assert "amber, birch, dune" in said(capsys, "describe", "m.mcrank")
    assert "against" in said(capsys, "explain", "m.mcrank", "test.csv", "--query", "3")
    said(capsys, "export", "m.mcrank", "--to", "python", "--out", "m.py", "--verify", "test.csv")
    assert "categories by name" in said(capsys, "export", "--list")


def test_files_of_all_formats_make_one_model(files, capsys):
    for name in ("train.csv", "train.parquet"):
        said(
            capsys,
            "train",
            name,
            "--ranker",
            "regression",
            "--categorical",
            '["code"]',
            *FEW,
            "--out",
            f"{name}.mcrank",
        )
    one, other = (mcrank.load(f"{name}.mcrank") for name in ("train.csv", "train.parquet"))
    assert one.categories_ == other.categories_
    assert np.array_equal(
        one.predict(files[["shop", "code", "price"]].replace("NA", None)),
        other.predict(files[["shop", "code", "price"]].replace("NA", None)),
    )
    said(capsys, "refit", "train.csv.mcrank", "test.csv", "--out", "fresh.mcrank")
    before = ["--init-model", "train.csv.mcrank", "--valid", "test.csv", "--categorical", "code"]
    said(capsys, "train", "train.csv", "--ranker", "regression", *before, *FEW, "--out", "more.mcrank")
    assert mcrank.load("more.mcrank").categories_ == one.categories_


def test_codes_of_letor_text(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = [30, 5, 12, 7] * 25
    lines = [f"{(c in (30, 5)) * 2} qid:{i // 10} 1:{c} 2:{i % 7}\n" for i, c in enumerate(codes)]
    (tmp_path / "d.txt").write_text("".join(lines))
    said(
        capsys, "train", "d.txt", "--ranker", "regression", "--categorical", "[0]", *FEW, "--out", "m.mcrank"
    )
    ranker = mcrank.load("m.mcrank")
    assert ranker.categories_ == {0: ("12", "30", "5", "7")}
    for told in ("0", "0,1", " 0 ", '"f1"'):  # one number as several: no JSON list is needed
        train = ["train", "d.txt", "--ranker", "regression", "--categorical", told, *FEW, "--out", "n.mcrank"]
        said(capsys, *train)
        assert mcrank.load("n.mcrank").categories_[0] == ranker.categories_[0]
    scores = np.array([float(line) for line in said(capsys, "predict", "m.mcrank", "d.txt").split()])
    assert np.array_equal(scores, ranker.predict(mcrank.read("d.txt")))
    assert scores[1] > scores[2]


def test_a_cache_keeps_the_names(files, capsys):
    first = mcrank.read("train.csv", cache=True, categorical=["code"])
    again = mcrank.read("train.csv", cache=True, categorical=["code"])
    assert again.categories == first.categories == {0: ("amber", "birch", "dune"), 1: ("007", "010", "08")}
    assert np.array_equal(first.X, again.X, equal_nan=True)
    other = mcrank.read("train.csv", cache=True)  # read anew, as the options are others
    assert other.categories == {0: ("amber", "birch", "dune")}


@pytest.mark.slow
def test_compare_takes_files_with_categories(files, capsys):
    entry = "regression:n_estimators=5,min_data_per_group=5"
    found = said(
        capsys,
        "compare",
        "train.csv",
        entry,
        "lambdamart:n_estimators=3",
        "--folds",
        "3",
        "--out",
        "compared",
    )
    assert "regression" in found
