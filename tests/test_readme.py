"""The README's example runs, and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
NUMBER = re.compile(r"-?\d+(?:\.\d*)?")


def test_the_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    text = README.read_text(encoding="utf-8")
    code, printed = re.search(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})
    shown = capsys.readouterr().out
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    numbers = [float(word) for word in NUMBER.findall(shown)]
    # The data come from sums in floating point, whose last bits are the machine's own.
    assert numbers == pytest.approx([float(word) for word in NUMBER.findall(printed)], rel=0.02, abs=0.02)


def test_every_relative_link_leads_somewhere():
    for page in [*README.parent.glob("*.md"), *README.parent.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
