"""Names of any length and script: nothing is cut off, titles have the whole, tables say that they scroll."""

from __future__ import annotations

import dataclasses
import re

import pytest

from mcrank.experiments.comparison import Timing
from mcrank.report.page import write_report
from tests.experiments.made_up import made_up

LONG = "regression, least squares, twelve rounds and four leaves each (the baseline of the paper)"
KEYS = [
    "WWWWWWWWWWMMMMMMMMMM@@@@%%%%", LONG, "日本語の長い名前のランキングシステム第一号機",
    "עברית ארוכה מאוד כאן", "😀" * 30, "x" * 300,
]  # fmt: skip
FEATURES = [
    f"bm25_okapi_of_the_title_field_with_stemming_and_stopwords_removed_window_{n}" for n in range(12)
]


@pytest.fixture(scope="module")
def comparison():
    found = made_up(
        40, keys=KEYS, qids=[f"query number {n} of a long session with many words in it" for n in range(40)]
    )
    cells = [(key, "all") for key in KEYS]
    return dataclasses.replace(
        found,
        feature_names=tuple(FEATURES),
        timings={cell: Timing(9.0 - n, 0.25, None, 0.5 + n) for n, cell in enumerate(cells)},
        sizes={cell: 1000 + n for n, cell in enumerate(cells)},
    )


@pytest.fixture(scope="module")
def odd(comparison, tmp_path_factory):
    return write_report(comparison, tmp_path_factory.mktemp("odd") / "report.html")


CUT = """() => {
  const found = [];
  for (const text of document.querySelectorAll('svg.figure text')) {
    const svg = text.closest('svg').getBoundingClientRect(), box = text.getBoundingClientRect();
    if (!box.width) continue;
    if (box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1 ||
        box.bottom > svg.bottom + 1)
      found.push([text.textContent, box.left - svg.left, svg.right - box.right, svg.bottom - box.bottom]);
  }
  return found;
}"""
SHORT = """selector => [...document.querySelectorAll(selector)].filter(e => e.textContent.includes('…'))
  .map(e => [e.textContent, e.getAttribute('title') || (e.querySelector('title') || {}).textContent || ''])"""
HIDDEN = """selector => [...document.querySelectorAll(selector)]
  .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"""


@pytest.mark.parametrize(("width", "scripts"), [(1280, True), (400, True), (1280, False)])
def test_no_label_is_cut_off(visit, odd, width, scripts):
    one = visit(odd, java_script_enabled=scripts)
    one.page.set_viewport_size({"width": width, "height": 900})
    page = one.open(ready=scripts)
    assert page.evaluate(CUT) == []
    if scripts:
        for first, second in ((0, 5), (4, 2), (3, 1)):
            page.locator("#first").select_option(str(first))
            page.locator("#second").select_option(str(second))
            assert page.evaluate(CUT) == []
    one.check()


def test_what_is_shortened_has_a_title(visit, odd, comparison):
    one = visit(odd)
    page = one.open()
    page.locator(".list-row").first.click()
    labels = page.evaluate(SHORT, "svg.figure text:not(.axis-title)")
    assert len(labels) > 20
    for shown, title in labels:
        begin, _, end = shown.removeprefix(title).partition("…")
        assert title
        assert title.startswith(begin)
        assert title.endswith(end)
    names = [title for _, title in labels]
    assert set(FEATURES) <= set(names)
    shown = {text.removeprefix(title) for text, title in labels if title in FEATURES}
    assert len(shown) == 12  # they differ at their ends, which are shown
    for selector, whole in (
        (".list-row > span:first-child", comparison.qids.tolist()),
        (".differ th", FEATURES),
    ):
        found = page.evaluate(SHORT, selector)
        assert found
        assert all(title in whole for _, title in found)
        assert page.evaluate(HIDDEN, selector) == []
    for system in (KEYS[1], KEYS[5]):
        assert system in page.locator("#board").text_content()
    one.check()


def test_tables_that_scroll_say_so(visit, odd):
    one = visit(odd)
    one.page.set_viewport_size({"width": 400, "height": 800})
    page = one.open()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    hint = page.locator("#leaderboard > .hint")
    assert hint.is_visible()
    assert page.evaluate(HIDDEN, "#leaderboard > .scroll")
    caption = page.locator("#board caption .stay").bounding_box()
    assert caption["x"] + caption["width"] <= 400
    page.set_viewport_size({"width": 1900, "height": 800})
    page.wait_for_function("document.querySelector('#leaderboard > .hint').hidden")
    assert page.evaluate(HIDDEN, "#leaderboard > .scroll") == []
    one.check()


@pytest.mark.parametrize(
    ("heading", "column", "reverse"),
    [
        ("Mean", 2, True),
        ("Difference", 4, True),
        ("Train s", 7, False),
        ("CPU s", 8, False),
        ("Size", 10, False),
    ],
)
def test_the_first_click_puts_the_best_first(visit, odd, heading, column, reverse):
    one = visit(odd)
    page = one.open()
    page.locator("#board th", has_text="System").locator("button").click()
    page.locator("#board th", has_text=heading).locator("button").click()
    values = page.locator("#board tbody tr").evaluate_all(
        f"rows => rows.map(r => Number(r.children[{column}].dataset.value))"
    )
    assert len(set(values)) == len(KEYS)
    assert values == sorted(values, reverse=reverse)
    one.check()


def test_histogram_has_counts(visit, odd, comparison):
    one = visit(odd)
    page = one.open()
    for first, second in ((0, 1), (5, 2)):
        page.locator("#first").select_option(str(first))
        page.locator("#second").select_option(str(second))
        ticks = page.locator("#histogram .tick.count").all_text_contents()
        heights = page.locator("#histogram .column").evaluate_all(
            "bars => bars.map(b => Number(b.getAttribute('height')))"
        )
        pair = next(p for p in comparison.pairs() if {p.first, p.second} == {first, second})
        lines = page.locator("#histogram .tick.count").evaluate_all(
            "ticks => ticks.map(t => Number(t.getAttribute('y')) - 4)"
        )
        bottom = float(page.locator("#histogram .axis").get_attribute("y1"))
        assert ticks[0] == "0"
        assert lines[0] == pytest.approx(bottom)
        assert len(ticks) > 1
        a_query = (bottom - lines[-1]) / int(ticks[-1].replace(",", ""))
        counts = [round(height / a_query, 6) for height in heights]
        assert sum(counts) == pytest.approx(pair.wins + pair.losses)
        assert all(count == pytest.approx(round(count), abs=1e-3) for count in counts)
    assert "less than half a column apart" in page.locator("#histogram figcaption").text_content()
    one.check()


def test_names_written_from_right_to_left_keep_numbers_in_place(visit, odd):
    one = visit(odd)
    page = one.open()
    page.locator(".list-row").first.click()
    words = page.locator("#query p.quiet bdi").all_text_contents()
    assert any(re.search("[\u0590-\u05ff]", word) for word in words)
    assert page.locator("#board .name bdi").count() == len(KEYS)
    one.check()
