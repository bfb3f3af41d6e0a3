"""The page of a certificate in a real browser: nothing asked for, nothing wrong, nothing cut off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcrank.export.certificate import certify
from mcrank.export.ranklib import RankLib
from mcrank.report.certificate import render_certificate
from tests.export import bed

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    model, target = bed.model("regression"), RankLib(missing_as_zero=True)
    (folder / "m.txt").write_bytes(target.content(model))
    found = certify(model, target, folder / "m.txt", bed.data(), n_hard=200)
    swaps = replace(found.swaps, most=[(HOSTILE, 3, 66), *found.swaps.most])
    found = replace(found, swaps=swaps, ranker=HOSTILE, notes=[HOSTILE])
    (folder / "page.html").write_text(render_certificate(found), encoding="utf-8")
    return folder / "page.html"


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_there_at_any_width(visit, page, width, scheme):
    one = visit(page, color_scheme=scheme)
    one.page.set_viewport_size({"width": width, "height": 800})
    opened = one.open(ready=False)
    assert opened.evaluate("document.documentElement.scrollWidth") == width
    assert "The export holds: a twin of RankLib" in opened.inner_text("#verdict")
    assert opened.locator("#differences tbody tr").count() == 2
    assert HOSTILE in opened.inner_text("#order")
    background = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}[scheme]
    one.check()


def test_bars_are_as_long_as_their_rows_are_many(visit, page):
    opened = visit(page).open(ready=False)
    shown = opened.evaluate(
        """[...document.querySelectorAll("figure")[0].querySelectorAll(".bars div")].map(bar =>
           [bar.querySelector("i").getBoundingClientRect().width, +bar.querySelector("b").textContent])"""
    )
    widths, rows = zip(*shown, strict=True)
    longest = max(range(len(rows)), key=rows.__getitem__)
    assert widths[longest] == max(widths)
    assert all(abs(w / widths[longest] - n / rows[longest]) < 0.02 for w, n in shown)
