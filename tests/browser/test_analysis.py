"""The page of an analysis in a real browser: wide, on a phone, in the dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcrank.report.analysis_page import write_analysis
from tests.report.test_analysis_page import FOUND


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_analysis(FOUND, tmp_path_factory.mktemp("analysis") / "page.html")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_is_readable(visit, page_file, width, scheme):
    opened = visit(page_file, color_scheme=scheme)
    page = opened.open(ready=False)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    dots = page.locator("#rows circle")
    assert dots.count() > 100
    colours = {dots.nth(i).evaluate("e => getComputedStyle(e).fill") for i in range(0, dots.count(), 37)}
    assert len(colours) > 2
    opened.check()


def test_sections_tables_and_figures_are_there(visit, page_file):
    opened = visit(page_file)
    page = opened.open(ready=False)
    for section in ("matters", "rows", "effects", "together", "calibration", "weak", "trees"):
        assert page.locator(f"#{section} h2").is_visible()
        assert page.locator(f"#{section} svg").count() > 0
    page.locator("#matters summary").first.click()
    rows = page.locator("#importances-table tbody tr")
    assert rows.count() == len(FOUND.importances)
    assert rows.first.locator("th").inner_text() == FOUND.importances[0].name
    opened.check()
