"""The example of docs/import.md runs, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from threadpoolctl import threadpool_limits

PAGE = Path(__file__).parents[3] / "docs" / "import.md"


def test_the_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    code, printed = re.search(
        r"```python\n(.*?)```\n+```text\n(.*?)```", PAGE.read_text(), re.DOTALL
    ).groups()
    monkeypatch.chdir(tmp_path)
    with threadpool_limits(1):  # on a busy machine scikit-learn's threads wait for each other
        exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out == printed
