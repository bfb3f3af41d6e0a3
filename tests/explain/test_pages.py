"""Examples on the pages run, and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e-?\d+)?")


@pytest.mark.parametrize("page", ["explain.md", "tutorial_bad_ranking.md"])
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = shown = ""
    for kind, body in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(compile(body, page, "exec"), names)
            shown += capsys.readouterr().out
        else:
            printed += body
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    numbers = [float(word) for word in NUMBER.findall(shown)]
    # The data come from sums in floating point, whose last bits are the machine's own.
    assert numbers == pytest.approx([float(word) for word in NUMBER.findall(printed)], rel=0.02, abs=0.02)
