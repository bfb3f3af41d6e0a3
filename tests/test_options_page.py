"""The examples of docs/options.md run, in their order."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "options.md"


def test_the_examples_run():
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(code) > 3
    names: dict[str, object] = {}
    for number, block in enumerate(code):
        exec(compile(block, f"block {number} of options.md", "exec"), names)
