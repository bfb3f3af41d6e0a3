"""The tutorial from a laptop to a cluster prints what it says."""

from __future__ import annotations

from tests.docs.pages import ROOT, differs
from tests.docs.run import run_page

PAGE = ROOT / "docs" / "tutorials" / "cluster.md"


def test_the_tutorial(tmp_path):
    told = 0
    for block, outputs in run_page(PAGE.read_text(encoding="utf-8"), "tutorials/cluster.md", tmp_path):
        if block.printed is not None:
            told += 1
            assert None in [differs(block.printed, output) for output in outputs], outputs
    assert told == 1
