"""The report in a real browser: everything that can be chosen works, by mouse and by keyboard."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import mcrank
from mcrank import stats
from mcrank.report.drilldown import choose_documents
from mcrank.report.page import write_report
from tests.experiments.made_up import made_up


def board(page):
    """System and mean of each line of the leaderboard, from top to bottom."""
    rows = page.locator("#board tbody tr")
    return rows.evaluate_all("rows => rows.map(r => [r.dataset.system, Number(r.children[2].dataset.value)])")


def means(comparison, measure):
    return {
        key: mcrank.evaluate(scores, comparison.rows, measure).mean[measure]
        for key, scores in zip(comparison.keys, comparison.scores, strict=True)
    }


def listed(page):
    """Query, two values and difference of the rows in sight."""
    rows = page.locator(".list-row")
    cells = rows.evaluate_all("rows => rows.map(r => [...r.children].map(c => c.textContent))")
    return [(c[0], *(float(text.replace("−", "-")) for text in c[2:])) for c in cells]


def choose(page, identity, label):
    page.locator(f"#{identity}").select_option(label=label)


def test_sorting(page):
    systems = board(page)
    assert [mean for _, mean in systems] == sorted((mean for _, mean in systems), reverse=True)
    header = page.locator("#board th", has_text="Mean")
    page.locator("#board th", has_text="Size").locator("button").click()
    header.locator("button").click()  # the best first
    assert header.get_attribute("aria-sort") == "descending"
    assert board(page) == systems
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert [mean for _, mean in board(page)] == sorted(mean for _, mean in systems)
    name = page.locator("#board th", has_text="System").locator("button")
    name.focus()
    page.keyboard.press("Enter")
    assert [system for system, _ in board(page)] == sorted(system for system, _ in systems)
    assert page.locator("#board th[aria-sort]").count() == 1


def test_switching_measure_and_dialect(page, comparison):
    for measure, dialect, name in (
        ("map", "standard", "map"),
        ("map", "trec", "map[trec]"),
        ("ndcg@10", "trec", "ndcg@10[trec]"),
        ("ndcg@10", "yahoo", "ndcg@10[yahoo]"),
    ):
        choose(page, "measure", measure)
        choose(page, "dialect", dialect)
        assert dict(board(page)) == pytest.approx(means(comparison, name), rel=1e-12)
        assert page.locator("#verdict").text_content() == comparison.verdict(name)
        assert page.locator("#board-measure").text_content() == name
        values = comparison.per_query(name)
        first, second = (int(page.locator(f"#{which}").input_value()) for which in ("first", "second"))
        query, a, b, difference = listed(page)[0]
        at = comparison.qids.tolist().index(int(query))
        assert (a, b) == pytest.approx((values[first, at], values[second, at]), abs=5.1e-5)
        assert abs(difference) == pytest.approx(np.abs(values[first] - values[second]).max(), abs=1.1e-4)


def test_switching_the_pair(page, comparison):
    choose(page, "first", "system-3")
    choose(page, "second", "system-1")
    values = {
        key: mcrank.evaluate(comparison.scores[comparison.place(key)], comparison.rows).by_query("ndcg@10")
        for key in comparison.keys
    }
    test = stats.paired_t(values["system-3"], values["system-1"])
    words = page.locator("#pair-words").text_content()
    assert words.startswith("system-3 minus system-1: ")
    assert float(re.search(r": ([+−][\d.]+) ndcg@10", words)[1].replace("−", "-")) == pytest.approx(
        test.difference, abs=5.1e-5
    )
    pairs = [(values["system-3"][q], values["system-1"][q]) for q in values["system-3"]]
    wins, losses = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    assert f"It wins {wins}, ties {len(pairs) - wins - losses} and loses {losses} of 120 queries." in words
    heights = page.locator("#histogram .column").evaluate_all(
        "bars => bars.map(b => Number(b.getAttribute('height')))"
    )
    left, right = sum(heights[:20]), sum(heights[21:])
    assert (left > right) == (losses > wins)
    page.locator("#swap").click()
    assert page.locator("#pair-words").text_content().startswith("system-1 minus system-3: ")
    swapped = page.locator("#histogram .column").evaluate_all(
        "bars => bars.map(b => Number(b.getAttribute('height')))"
    )
    assert swapped == pytest.approx(heights[::-1])
    assert page.locator("#head-first").text_content() == "system-1"


def test_filtering_and_ordering_queries(page):
    differences = [abs(row[3]) for row in listed(page)]
    assert differences == sorted(differences, reverse=True)
    page.locator("#show").select_option("second")
    assert all(row[3] < 0 for row in listed(page))
    page.locator("#show").select_option("first")
    assert all(row[3] > 0 for row in listed(page))
    page.locator("#show").select_option("all")
    page.locator("#order").select_option("file")
    assert [row[0] for row in listed(page)][:3] == ["10000", "10001", "10002"]
    page.locator("#find").fill("10077")
    assert [row[0] for row in listed(page)] == ["10077"]
    assert page.locator("#shown").text_content() == "1 of 120 queries"
    page.locator("#find").fill("no such query")
    assert listed(page) == []
    page.locator("#find").fill("")
    assert page.locator("#shown").text_content() == "120 of 120 queries"


def test_opening_a_query(page, comparison):
    page.locator("#show").select_option("documents")
    assert page.locator("#shown").text_content() == "60 of 120 queries"
    choose(page, "first", "system-0")
    choose(page, "second", "system-2")
    row = page.locator(".list-row").first
    query = row.get_attribute("data-query")
    row.click()
    assert page.locator("#query h3").first.text_content() == f"Query {query}"
    at = comparison.qids.tolist().index(int(query))
    start, stop = comparison.offsets[at : at + 2]
    tables = page.locator(".rankings table")
    assert tables.count() == 2
    for number, system in enumerate((0, 2)):
        order = np.argsort(-comparison.scores[system, start:stop], kind="stable")[:10]
        shown = (
            tables.nth(number)
            .locator("tbody tr")
            .evaluate_all("rows => rows.map(r => [...r.children].map(c => c.textContent))")
        )
        assert [cells[0] for cells in shown] == [str(n) for n in range(1, 11)]
        assert [cells[1] for cells in shown] == [comparison.doc_ids[start + row] for row in order]
        assert [float(cells[2]) for cells in shown] == comparison.grades[start:stop][order].tolist()
        scores = comparison.scores[system, start:stop][order]
        assert [float(cells[3].replace("−", "-")) for cells in shown] == pytest.approx(
            scores, rel=1e-3, abs=1e-3
        )
        assert len(shown[0]) == (6 if system == 0 else 5)
    share = [
        int(part) for part in tables.first.locator("tbody tr").first.locator("td").last.text_content().split()
    ]
    best = np.argsort(-comparison.scores[0, start:stop], kind="stable")[0]
    assert share == pytest.approx(100 * comparison.probabilities["system-0"][start + best], abs=0.6)
    assert page.locator(".differ tbody tr").count() == 6
    tables.first.locator("tbody tr").first.hover()
    document = tables.first.locator("tbody tr.same th").text_content()
    assert document == comparison.doc_ids[start + best]


def test_a_query_without_documents_says_so(page, comparison):
    kept = choose_documents(comparison, "ndcg@10", 60, 1_800).queries.tolist()
    assert len(kept) == 60
    for at in (next(q for q in range(120) if q not in kept), kept[0]):
        page.locator("#find").fill(str(comparison.qids[at]))
        page.locator(".list-row").click()
        assert ("not in this page" in page.locator("#query").text_content()) == (at not in kept)
        assert page.locator(".rankings").count() == (at in kept)


def test_by_keyboard_alone(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        if seen[-1] == "list":
            break
    controls = ["measure", "dialect", "theme", "first", "swap", "second", "find", "show", "order", "list"]
    assert [name for name in seen if name in controls] == controls
    assert seen.count("sort") == page.locator("#board thead th").count()
    first = page.locator(".list-row.active").get_attribute("data-query")
    page.keyboard.press("ArrowDown")
    second = page.locator(".list-row.active").get_attribute("data-query")
    assert second != first
    assert page.locator("#list").get_attribute("aria-activedescendant") == "q1"
    page.keyboard.press("Enter")
    assert page.locator("#query h3").first.text_content() == f"Query {second}"
    assert page.locator(".list-row.open").get_attribute("aria-selected") == "true"
    page.keyboard.press("End")
    assert page.locator(".list-row.active").get_attribute("aria-rowindex") == "121"
    page.keyboard.press("Home")
    assert page.locator(".list-row.active").get_attribute("data-query") == first


CONTRAST = """() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue('--' + name).trim();
    const parts = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16) / 255);
    const linear = parts.map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const text = ['fg', 'muted', 'accent', 'plus', 'minus'].flatMap(n => [ratio(n, 'bg'), ratio(n, 'soft')]);
  const lines = [...Array(8).keys()].map(n => ratio('c' + n, 'bg'));
  return [Math.min(...text), Math.min(...lines), getComputedStyle(document.body).backgroundColor];
}"""


def test_light_and_dark(visit, report):
    light, dark = visit(report, color_scheme="light"), visit(report, color_scheme="dark")
    first, second = light.open().evaluate(CONTRAST), dark.open().evaluate(CONTRAST)
    assert first[2] == "rgb(255, 255, 255)"
    assert second[2] != first[2]
    for text, lines, _ in (first, second):
        assert text >= 4.5  # WCAG AA, text
        assert lines >= 3.0  # and graphics
    button = dark.page.locator("#theme")
    button.click()
    assert dark.page.evaluate(CONTRAST) == first
    button.click()
    assert dark.page.evaluate(CONTRAST) == second
    assert button.get_attribute("aria-label") == "Colours: dark"
    light.check()
    dark.check()


def test_narrow_and_on_paper(visit, report):
    phone = visit(report)
    phone.page.set_viewport_size({"width": 400, "height": 800})
    phone.open()
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 400
    phone.page.set_viewport_size({"width": 720, "height": 1000})  # A4 between its margins
    phone.page.emulate_media(media="print")
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 720
    assert not phone.page.locator(".topbar").is_visible()
    assert phone.page.locator("#board").is_visible()
    assert phone.page.pdf(format="A4").startswith(b"%PDF")
    phone.check()


def test_without_scripts(visit, report, comparison):
    one = visit(report, java_script_enabled=False)
    page = one.open(ready=False)
    assert page.locator("#verdict").text_content() == comparison.verdict()
    assert page.locator("#board tbody tr").count() == 4
    assert page.locator("svg.figure").count() > 6
    assert not page.locator("#measure").is_visible()
    assert page.locator("noscript").text_content().startswith("Scripts are off")
    one.check()


def test_without_decompression(visit, report):
    one = visit(report)
    one.page.add_init_script("delete window.DecompressionStream")
    page = one.open(ready=False)
    page.locator("#failed").wait_for()
    assert not page.locator("#measure").is_visible()
    header = page.locator("#board th", has_text="Mean")
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    one.check()


def test_hostile_names(visit, tmp_path):
    names = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<b>bold</b>"]
    comparison = made_up(
        12, keys=names, qids=[f"{n}{names[n % 3]}" for n in range(12)], measures=("ndcg@10", "map")
    )
    one = visit(write_report(comparison, tmp_path / "report.html", title=names[1]))
    page = one.open()
    choose(page, "measure", "map")
    page.locator("#first").select_option("1")
    page.locator("#second").select_option("2")
    page.locator(".list-row").first.click()
    page.wait_for_timeout(100)
    assert page.locator("img").count() == 0
    assert page.locator("#pair-words b").first.text_content() in names
    assert page.locator("#query h3").first.text_content().removeprefix("Query ") in comparison.qids.tolist()
    one.check()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    comparison = made_up(30_000, systems=3, rows=5)
    return write_report(comparison, tmp_path_factory.mktemp("large") / "report.html")


def seconds_to_open(visit, path):
    one = visit(path)
    begin = time.perf_counter()
    one.open()
    return time.perf_counter() - begin, one


def test_thirty_thousand_queries(visit, large):
    # The fastest of three: a machine that is busy with something else says nothing about the page.
    seconds, one = min((seconds_to_open(visit, large) for _ in range(3)), key=lambda found: found[0])
    assert seconds < 3.0
    page = one.page
    assert page.locator("#shown").text_content() == "30,000 of 30,000 queries"
    assert page.locator(".list-row").count() < 60
    page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight / 2; }")
    page.locator(".list-row[aria-rowindex='15000']").wait_for()
    page.locator("#order").select_option("file")
    page.locator("#list").focus()
    page.keyboard.press("End")
    assert page.locator(".list-row.active").get_attribute("data-query") == "39999"
    begin = time.perf_counter()
    page.locator("#find").fill("3999")
    assert page.locator("#shown").text_content() == "13 of 30,000 queries"
    assert time.perf_counter() - begin < 1.0
    one.check()


def test_a_query_says_why_a_document_is_above_a_better_one(visit, tmp_path):
    data = mcrank.make_artificial(n_train=24, n_valid=1, n_test=1, docs_per_query=12, n_features=9).train
    scores = tmp_path / "scores.txt"
    scores.write_text("\n".join(map(str, np.random.default_rng(0).normal(size=data.n_rows))) + "\n")
    found = mcrank.compare(["mcrank:n_estimators=4", f"other={scores}"], data, folds=3, n_jobs=1)
    opened = visit(write_report(found, tmp_path / "report.html"))
    page = opened.open()
    has = dict(zip(found.swaps.queries.tolist(), (found.swaps.rows[:, 0, 0] >= 0).tolist(), strict=True))
    listed_rows = page.locator(".list-row")
    ids = listed_rows.evaluate_all("rows => rows.map(r => r.dataset.query)")
    queries = [[str(qid) for qid in found.qids.tolist()].index(qid) for qid in ids]
    at, query = next((at, query) for at, query in enumerate(queries) if has[query])
    listed_rows.nth(at).click()
    text = page.locator("#query").inner_text()
    assert "has a document above a better one" in text
    assert "what they were made of cannot be explained" in text
    place = int(np.flatnonzero(found.swaps.queries == query)[0])
    largest = found.feature_names[found.swaps.features[place, 0, 0]]
    rows = page.locator("#query > .differ tbody tr")
    assert rows.first.locator("th").inner_text() == largest
    opened.check()


def test_a_query_says_why_two_systems_disagree(visit, tmp_path):
    data = mcrank.make_artificial(n_train=24, n_valid=1, n_test=1, docs_per_query=12, n_features=9).train
    found = mcrank.compare(
        ["mcrank:n_estimators=4", "ranksvm", "lambdamart:n_estimators=4"], data, folds=3, n_jobs=1
    )
    opened = visit(write_report(found, tmp_path / "report.html"))
    page, swaps = opened.open(), found.swaps
    ids, told = [str(qid) for qid in found.qids.tolist()], 0
    for first, second in ((0, 1), (1, 2), (2, 0)):
        page.locator("#first").select_option(str(first))
        page.locator("#second").select_option(str(second))
        for at in range(4):
            row = page.locator(".list-row").nth(at)
            query = ids.index(row.get_attribute("data-query"))
            row.click()
            (place,) = np.flatnonzero(swaps.queries == query)
            pairs = [number for number, pair in enumerate(swaps.apart_rows[place].tolist()) if pair[0] >= 0]
            signs = {n: np.sign(swaps.apart_parts[place, n, [first, second]].sum(axis=1)) for n in pairs}
            apart = [n for n in pairs if signs[n][0] != signs[n][1]]
            text = page.locator("#query").inner_text()
            assert ("Why the two disagree" in text) == bool(apart)
            if not apart:
                continue
            told += 1
            sides = page.locator(".sides > div")
            for side, system in enumerate((first, second)):
                shown = sides.nth(side).locator("tbody tr")
                names = shown.locator("th").all_inner_texts()
                wanted = swaps.apart_features[place, apart[0], system]
                wanted = [found.feature_names[f] for f in wanted[wanted >= 0].tolist()]
                assert [name for name in names if name != "all others"] == wanted
                numbers = shown.locator("td.number").all_inner_texts()
                total = sum(float(number.replace("\u2212", "-")) for number in numbers)
                parts = swaps.apart_parts[place, apart[0], system]
                assert total == pytest.approx(parts.sum(), abs=0.0006 * len(numbers))
    assert told > 3
    opened.check()
