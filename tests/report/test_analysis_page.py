"""The page of an analysis: numbers of the library, hostile names, size, files."""

from __future__ import annotations

import csv
import io
import re

import numpy as np

import mcrank
from mcrank.analysis.analysis import analyze
from mcrank.report.analysis_page import render_analysis, write_analysis_files

HOSTILE = ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "a\u202eb", "x" * 200]


def found():
    stream = np.random.default_rng(0)
    X = stream.normal(size=(300, 4))
    X[stream.random(X.shape) < 0.1] = np.nan
    names = [HOSTILE[0], HOSTILE[1], "plain", HOSTILE[3]]
    y = np.digitize(np.nan_to_num(X[:, 0] + X[:, 1]), [-0.5, 0.5])
    ids = np.repeat([f"<b>{n}" for n in range(15)], 20)
    data = mcrank.Dataset(X, y, ids, feature_names=names)
    return analyze(mcrank.McRank(n_estimators=4, n_jobs=1).fit(data), data)


FOUND = found()
PAGE = render_analysis(FOUND)


def test_hostile_names_stay_text():
    assert "<script" not in PAGE
    assert "&lt;script&gt;alert(1)" in PAGE
    assert "<b>0" not in PAGE
    assert re.findall(r'(?:src|href)="(?!#|data:,)', PAGE) == []


def test_numbers_are_those_of_the_analysis():
    assert f"{FOUND.mean[0]:.4f}" in PAGE
    table = PAGE.split('id="importances-table"')[1].split("</table>")[0]
    shown = [cell.replace("−", "-") for cell in re.findall(r'<td class="number">([^<]*)</td>', table)]
    expected = [f"{value:.4f}" for one in FOUND.importances for value in one[2:]]
    assert [float(cell) for cell in shown] == [float(cell) for cell in expected]


def test_a_page_is_small_and_always_the_same():
    assert len(PAGE.encode()) < 1_000_000
    assert render_analysis(FOUND) == PAGE


def test_tables_and_figures_as_files(tmp_path):
    paths = write_analysis_files(FOUND, tmp_path)
    assert {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    rows = list(csv.reader(io.StringIO((tmp_path / "importances.csv").read_text(encoding="utf-8"))))
    assert [float(row[1]) for row in rows[1:]] == [one.loss for one in FOUND.importances]
    assert all(not row[0].startswith("=") for row in rows)
    for path in tmp_path.glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("<svg xmlns=")
        assert "<script" not in text
