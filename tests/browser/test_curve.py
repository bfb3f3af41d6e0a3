"""The page of a learning curve in a real browser: wide, and on a phone."""

from __future__ import annotations

import pytest

import mcrank
from mcrank.report.curve_page import curve_page


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    data = mcrank.make_artificial(60, 1, 1, docs_per_query=12, n_features=4, seed=3).train
    options = {"n_estimators": 10, "num_leaves": 4}
    found = mcrank.learning_curve(
        data, "regression", shares=(0.25, 0.5, 1.0), repeats=2, options=options, n_jobs=1
    )
    return curve_page(found).write(tmp_path_factory.mktemp("curve") / "report.html")


@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_says_which_line_is_which(visit, page_file, width):
    opened = visit(page_file)
    page = opened.open(ready=False)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    names = page.locator("#curve .end-label").all_text_contents()
    assert {"more queries", "more rows of each"} <= set(names)
    opened.check()
