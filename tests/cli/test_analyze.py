"""`mcrank analyze`: the page and files of the library."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mcrank
from mcrank.analysis.analysis import analyze
from mcrank.report.analysis_page import render_analysis


@pytest.fixture
def model(mcrank_cli, tmp_path):
    path = tmp_path / "m.mcrank"
    options = ("--ranker", "mcrank", "--n-estimators", "3", "--out", str(path))
    assert mcrank_cli("train", "train.txt", *options)[0] == 0
    return str(path)


def test_the_page_is_the_library_s(mcrank_cli, files, model, tmp_path):
    page, folder = tmp_path / "page.html", tmp_path / "files"
    code, printed, err = mcrank_cli(
        "analyze",
        model,
        "valid.txt",
        "--out",
        str(page),
        "--files",
        str(folder),
        "--group",
        "g=f1,f2",
        "--json",
    )
    assert (code, err) == (0, "")
    found = analyze(mcrank.load(model), mcrank.read(files / "valid.txt"), groups={"g": ["f1", "f2"]})
    assert page.read_text(encoding="utf-8") == render_analysis(found)
    facts = json.loads(printed)
    assert facts["mean"] == found.mean[0]
    assert len(facts["files"]) == len(list(folder.iterdir())) > 10


def test_what_is_wrong_is_named(mcrank_cli, model, tmp_path):
    page = str(tmp_path / "page.html")
    code, _, err = mcrank_cli("analyze", model, "valid.txt", "--out", page, "--group", "g")
    assert (code, "must be like NAME=F1,F2, got 'g'" in err) == (2, True)
    code, _, err = mcrank_cli("analyze", model, "valid.txt", "--out", page, "--group", "g=nothing")
    assert (code, "group 'g' names the feature 'nothing'" in err) == (3, True)
    code, _, err = mcrank_cli(
        "analyze", model, "valid.txt", "--out", page, "--group", "g=f1", "--group", "g=f2"
    )
    assert (code, "'g' is the name of two groups" in err) == (2, True)
    assert not (tmp_path / "page.html").exists()


def test_one_query_has_no_interval(mcrank_cli, files, model, tmp_path):
    data = mcrank.read(files / "valid.txt")
    mcrank.write(data.select([int(np.argmax(data.sizes >= 3))]), tmp_path / "one.txt")
    code, printed, _ = mcrank_cli(
        "analyze", model, str(tmp_path / "one.txt"), "--out", str(tmp_path / "p.html")
    )
    assert (code, "nan" in printed.lower()) == (0, False)
    assert "nan to nan" not in (tmp_path / "p.html").read_text(encoding="utf-8")
