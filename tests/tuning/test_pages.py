"""The pages say what is so: the table of ranges, and examples that run and print what is printed there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tuning.ranges_table import ranges_table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_ranges_is_what_options_declare():
    assert ranges_table() in (DOCS / "options.md").read_text(encoding="utf-8")


@pytest.mark.consumer
def test_the_examples_of_tuning_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("optuna")
    text = (DOCS / "tuning.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    printed = ""
    for kind, body in re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL):
        if kind == "python":
            exec(compile(body, "tuning.md", "exec"), names)
        else:
            printed += body
    assert capsys.readouterr().out.split() == printed.split()
