"""The numbers of docs/concepts/dialects.md are the tools' and ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mcrank
from tests.metrics import goldens

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "dialects.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+?) \| ([\d.]+) \| `(ndcg@10\[[^`]+)` ([\d.]+) \|", PAGE, flags=re.MULTILINE)


def test_there_are_seventeen_tools_and_some_options():
    assert len(ROWS) == 20


@pytest.mark.parametrize(("tool", "printed", "measure", "ours"), ROWS)
def test_row(tool, printed, measure, ours):
    data, scores = goldens.dataset(goldens.cases()["mixed6"])
    value = mcrank.evaluate(scores, data, measure).mean[mcrank.parse_measure(measure).name]
    assert f"{value:.4f}" == ours
    if tool != "RankEval":  # its order among ties is not defined
        digits = 5e-6 if tool in ("allRank", "torchmetrics") or "gdeval" in tool else 1e-9
        assert abs(float(printed) - value) <= (5.1e-5 if len(printed) == 6 else digits)


def test_the_band():
    data, scores = goldens.dataset(goldens.cases()["mixed6"])
    worst, best = mcrank.evaluate(scores, data, "ndcg@10", band=True).band["ndcg@10"]
    assert f"{worst:.4f} to {best:.4f}" in PAGE.replace("\n", " ")


def test_every_switch_is_in_the_docstring_that_the_reference_shows():
    from dataclasses import fields

    for switch in (f.name for f in fields(mcrank.Dialect)):
        assert re.search(rf"^\s*(\w+, )*{switch}(, \w+)* : ", mcrank.Dialect.__doc__, re.MULTILINE), switch
