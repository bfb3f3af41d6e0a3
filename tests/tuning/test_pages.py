"""The page of ranges has those that are declared."""

from __future__ import annotations

from pathlib import Path

from tests.tuning.ranges_table import ranges_table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_ranges_is_what_options_declare():
    assert ranges_table() in (DOCS / "reference" / "ranges.md").read_text(encoding="utf-8")
