"""The page of the service in a real browser: a query chosen, T moved, two documents explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mcrank
from tests.serve.process import Serving

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "x" * 300,
    "‮evil",
    "日本語の文書",
]
NAMES = ["bm25", "<b onclick=alert(3)>clicks</b>", "age in days", "prix (€) " + "long " * 20]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A service with two models, and data whose names are hostile."""
    folder = tmp_path_factory.mktemp("serve")
    train, _, test = mcrank.make_artificial(30, 1, 5, docs_per_query=15, n_features=4, seed=4)
    named = mcrank.Dataset(dict(zip(NAMES, train.X.T, strict=True)), y=train.y, qid=train.qid)
    small = {"n_estimators": 10, "num_leaves": 5, "n_jobs": 1}
    rankers = {"web": mcrank.McRank(**small).fit(named), "lambda": mcrank.LambdaMART(**small).fit(named)}
    for name, ranker in rankers.items():
        ranker.save(folder / f"{name}.mcrank")
    docs = [HOSTILE[row] if row < len(HOSTILE) else f"D{row}" for row in range(test.n_rows)]
    lines = ["\t".join(["qid", "label", "doc_id", *NAMES])]
    for row in range(test.n_rows):
        values = [str(test.qid[row]), f"{test.y[row]:.0f}", docs[row], *map(repr, test.X[row].tolist())]
        lines.append("\t".join(values))
    (folder / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    X = {str(q): test.X[test.qid == q] for q in np.unique(test.qid)}
    ids = {str(q): [docs[row] for row in np.flatnonzero(test.qid == q)] for q in np.unique(test.qid)}
    models = [folder / f"{name}.mcrank" for name in rankers]
    with Serving(*models, "--data", folder / "test.tsv") as one:
        yield one, rankers, X, ids


@pytest.fixture
def opened(visit, served):
    """Open the page; check at the end that it asked nobody else and complained of nothing."""
    visits = []

    def start(width=1280, **options):
        one = visit(Path("/"), **options)
        one.page.set_viewport_size({"width": width, "height": 900})
        visits.append(one)
        one.page.goto(f"http://127.0.0.1:{served[0].port}/")
        one.page.wait_for_selector("html[data-ready]")
        one.page.wait_for_selector("html[data-pair]")
        return one.page

    yield start
    for one in visits:
        assert one.complaints == []
        host = f"http://127.0.0.1:{served[0].port}/"
        assert all(url.startswith((host, "data:")) for url in one.requests)


def order(page, model="web"):
    return page.locator(f"table[data-model={model}] .pick bdi").all_inner_texts()


def expected(served, query, relevance="grade", model="web"):
    ranker, X = served[1][model], served[2][query]
    scores = ranker.predict(X) if model == "lambda" else ranker.predict(X, relevance=relevance)
    return [served[3][query][row] for row in np.argsort(-scores, kind="stable")]


def shows(page, names, model="web"):
    """Wait until the ranking is this one: names with odd characters are compared as they are in the page."""
    page.wait_for_function(
        """([model, names]) => {
          const found = [...document.querySelectorAll(`table[data-model=${model}] .pick bdi`)];
          return JSON.stringify(found.map(e => e.textContent)) === JSON.stringify(names);
        }""",
        arg=[model, names],
    )


def test_rankings_are_those_of_predict_and_follow_t(opened, served):
    page = opened()
    query = page.locator("#list [aria-selected=true]").get_attribute("data-query")
    shows(page, expected(served, query))
    shows(page, expected(served, query, model="lambda"), "lambda")
    page.click("#as-gain")
    shows(page, expected(served, query, "gain"))
    assert page.locator("#as-gain").get_attribute("aria-pressed") == "true"
    exact = page.locator("#sliders input[type=number]")
    exact.nth(1).fill("7")
    exact.nth(1).press("Enter")
    worth = [float(exact.nth(k).input_value()) for k in range(5)]
    assert worth == [0, 7, 7, 7, 15]
    shows(page, expected(served, query, worth))
    slider = page.locator("#sliders input[type=range]").nth(4)
    slider.focus()
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    worth = page.evaluate(
        "[...document.querySelectorAll('#sliders input[type=number]')].map(e => Number(e.value))"
    )
    assert worth[4] < 15
    page.wait_for_timeout(300)
    worth = page.evaluate(
        "[...document.querySelectorAll('#sliders input[type=range]')].map(e => Number(e.value))"
    )
    shows(page, expected(served, query, worth))
    assert page.locator("table[data-model=web] .up, table[data-model=web] .down").count() > 0
    page.click("#as-grade")
    shows(page, expected(served, query))
    assert page.locator("table[data-model=web] .up").count() == 0


def test_queries_are_found_and_walked_with_keys(opened, served):
    page = opened()
    options = page.locator("#list [role=option]")
    assert options.count() == 5
    page.locator("#list").focus()
    page.keyboard.press("ArrowDown")
    query = page.locator("#list [aria-selected=true]").get_attribute("data-query")
    assert query == options.nth(1).get_attribute("data-query")
    shows(page, expected(served, query))
    page.fill("#find", query)
    page.wait_for_function("() => document.querySelectorAll('#list [role=option]').length === 1")
    page.fill("#find", "no such query")
    page.wait_for_function("() => document.querySelectorAll('#list [role=option]').length === 0")


def test_two_documents_are_explained_and_it_adds_up(opened, served):
    page = opened()
    query = page.locator("#list [aria-selected=true]").get_attribute("data-query")
    rows = page.locator("table[data-model=web] tr[data-row]")
    rows.nth(2).locator(".pick").focus()
    page.keyboard.press("Enter")
    rows.nth(6).locator(".pick").click()
    pair = [int(rows.nth(n).get_attribute("data-row")) for n in (2, 6)]
    page.wait_for_selector(f'html[data-pair="{pair[0]} {pair[1]}"]')
    for at, model in enumerate(("web", "lambda")):
        table = page.locator("#pairs table").nth(at)
        scores = served[1][model].predict(served[2][query])
        difference = float(table.get_attribute("data-difference"))
        assert difference == scores[pair[0]] - scores[pair[1]]
        assert float(table.get_attribute("data-sum")) == pytest.approx(difference, abs=1e-12)
    assert page.locator("table[data-model=lambda] tr.a").get_attribute("data-row") == str(pair[0])
    assert page.locator("table[data-model=lambda] tr.b").get_attribute("data-row") == str(pair[1])
    page.click("#as-gain")
    page.wait_for_function("() => document.querySelector('#pairs thead').textContent.includes('score')")
    scores = served[1]["web"].predict(served[2][query], relevance="gain")
    table = page.locator("#pairs table").first
    assert float(table.get_attribute("data-difference")) == scores[pair[0]] - scores[pair[1]]


def test_hostile_names_are_shown_as_they_are(opened, served):
    page = opened()
    texts = page.evaluate(
        "[...document.querySelectorAll('table[data-model=web] .pick bdi')].map(e => e.textContent)"
    )
    assert set(HOSTILE) <= set(texts)
    assert page.locator("#rankings img, #rankings script, #pairs b[onclick], main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_fits_and_is_readable(opened, width, scheme):
    page = opened(width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    bars = page.locator("table[data-model=web] tr[data-row]").first.locator(".stack i")
    colours = {bars.nth(k).evaluate("e => getComputedStyle(e).backgroundColor") for k in range(5)}
    assert len(colours) == 5
    page.goto(page.url + "docs")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".operation").count() >= 8


def test_a_token_is_asked_for(visit, served, tmp_path):
    model = tmp_path / "web.mcrank"
    served[1]["web"].save(model)
    token = "a-token-of-twenty-letters-and-more"
    with Serving(model, MCRANK_SERVE_TOKEN=token) as one:
        page = visit(Path("/")).page
        page.goto(f"http://127.0.0.1:{one.port}/")
        page.fill("#token", "wrong-token-of-twenty-letters")
        page.keyboard.press("Enter")
        page.wait_for_function(
            "() => document.getElementById('problem').textContent.includes('needs a token')"
        )
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-ready]")
        assert "start it with --data" in page.locator("#verdict").inner_text()
        assert page.locator("#model-rows tr").count() == 1
