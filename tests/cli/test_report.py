"""`mcrank report`: the page of a saved comparison, made again; its tables and figures as files."""

from __future__ import annotations

import json

import pytest

from mcrank.report.page import render_report
from tests.experiments.made_up import made_up


@pytest.fixture(scope="module")
def comparison():
    return made_up(12, systems=3)


@pytest.fixture
def folder(comparison, tmp_path):
    comparison.save(tmp_path / "saved")
    return tmp_path / "saved"


def test_the_page_is_made_again(mcrank_cli, folder, comparison):
    code, printed, err = mcrank_cli("report", str(folder))
    assert (code, err) == (0, "")
    assert printed.splitlines()[0] == comparison.verdict()
    assert (folder / "report.html").read_text(encoding="utf-8") == render_report(comparison)


def test_options_reach_the_page(mcrank_cli, folder, tmp_path):
    page = tmp_path / "page.html"
    arguments = ["--out", str(page), "--title", "A & B", "--no-times", "--documents", "2", "--json"]
    code, printed, _ = mcrank_cli("report", str(folder), *arguments, "--tables", str(tmp_path / "tables"))
    assert code == 0
    said = json.loads(printed)
    text = page.read_text(encoding="utf-8")
    assert said["report"] == str(page)
    assert said["bytes"] == len(text.encode())
    assert '<h1 id="title">A &amp; B</h1>' in text
    assert "of 2 of 12 queries" in text
    assert "Train s" not in text
    assert {path.rpartition(".")[2] for path in said["files"]} == {"md", "tex", "csv"}


@pytest.mark.slow
def test_figures_as_files(mcrank_cli, folder, tmp_path):
    pytest.importorskip("matplotlib")
    code, printed, _ = mcrank_cli(
        "report", str(folder), "--figures", str(tmp_path / "f"), "--format", "svg", "--json"
    )
    assert code == 0
    names = {path.rpartition("/")[2] for path in json.loads(printed)["files"]}
    assert names >= {"leaderboard.svg", "cutoffs.svg", "dialects.svg", "differences.svg", "wins.svg"}


def test_no_comparison_there(mcrank_cli, tmp_path):
    code, printed, err = mcrank_cli("report", str(tmp_path))
    assert (code, printed) == (3, "")
    assert "holds no comparison" in err
    assert not (tmp_path / "report.html").exists()
