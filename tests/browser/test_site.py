"""The site in a real browser, from the disk: wide, narrow, in the dark, by keyboard, and its search."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.docs.site import build

pytest.importorskip("mkdocs", reason="make browser-test installs it")
# One page of each kind, and those with the widest tables and figures.
PAGES = [
    "index", "tutorials/first_ranker", "howto/from_lightgbm", "concepts/dialects", "reference/measures",
    "reference/python/index", "reference/rankers/mcrank", "reference/commands/train", "results/train",
    "results/grades", "results/apples", "engineering/architecture", "results/index", "howto/read_data",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def axe() -> str:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("make browser-test installs axe")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_wide_and_narrow(visit, site, axe, name, scheme):
    opened = visit(site / f"{name}.html", color_scheme=scheme, bypass_csp=True)
    page = opened.open(ready=False)
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (
            "the page is wider than the window"
        )
        assert page.evaluate(_CLIPPED) == []
        assert page.evaluate(_BROKEN) == []
        page.evaluate(axe)
        found = page.evaluate(f"axe.run({{preload: false, rules: {_RULES}}})")["violations"]
        told = [
            f"{v['id']}: {n['html'][:120]} {n['failureSummary'][:200]}" for v in found for n in v["nodes"]
        ]
        assert told == []
    outside = [url for url in opened.requests if not url.startswith(("file:", "data:"))]
    assert (outside, opened.complaints) == ([], [])


# Each block of code has a navigation of its own, and so have sections of one title: the theme gives no names.
_RULES = "{'landmark-unique': {enabled: false}}"
# Letters that stick out of a table, a code block or a figure that cannot be scrolled.
_CLIPPED = """() => [...document.querySelectorAll('.md-content :is(p, li, td, th, dd, h1, h2, figcaption)')]
    .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1
        && getComputedStyle(e).display !== 'inline'
        && !e.closest('.md-typeset__scrollwrap, pre, .md-typeset__table'))
    .map(e => e.outerHTML.slice(0, 160))"""


# Names in tables that go on in a second line: the table scrolls instead.
_BROKEN = """() => [...document.querySelectorAll('.md-content td code')]
    .filter(e => e.offsetParent && !/[\\s-]/.test(e.textContent) && e.getClientRects().length > 1)
    .map(e => e.textContent)"""


def test_the_colours_are_those_of_the_scheme(visit, site):
    grounds = {}
    for scheme in ("light", "dark"):
        page = visit(site / "index.html", color_scheme=scheme).open(ready=False)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds[scheme] = [int(part) for part in colour[4:-1].split(",")][:3]
    assert min(grounds["light"]) > 240
    assert max(grounds["dark"]) < 60


def test_a_keyboard_is_enough(visit, site):
    page = visit(site / "howto" / "weights.html").open(ready=False)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className").startswith("md-skip")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className").startswith("md-search__input")
    page.keyboard.type("exit codes")
    page.wait_for_selector(".md-search-result__link")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/reference/**")


# What strangers ask, and the page that answers: the first ten kinds, then the same and others in other words.
QUESTIONS = {
    "how do I weight queries": "howto/weights",
    "why is my NDCG 1.0": "howto/ndcg_is_one",
    "what goes into Elasticsearch": "howto/export/elasticsearch",
    "can I trust this probability": "howto/thresholds",
    "how do I continue training": "howto/continue_training",
    "how much memory do I need": "howto/beyond_memory",
    "why do two tools disagree": "howto/tools_disagree",
    "how many queries do I need": "howto/how_many_queries",
    "how do I serve in a container": "howto/deploy",
    "what does exit code 4 mean": "reference/errors",
    "sample weights": "howto/weights",
    "ndcg is perfect": "howto/ndcg_is_one",
    "learning to rank plugin opensearch": "howto/export/elasticsearch",
    "are the probabilities calibrated": "concepts/grades",
    "warm start from an old model": "howto/continue_training",
    "out of memory": "howto/beyond_memory",
    "trec_eval gives a different number": "howto/tools_disagree",
    "sample size of a test set": "howto/how_many_queries",
    "docker container read-only": "howto/deploy",
    "fail the build when the model is worse": "howto/ci",
    "is the difference real": "concepts/significance",
    "which ranker should I use": "howto/compare",
    "why is A above B": "howto/explain",
    "use a LightGBM model": "howto/from_lightgbm",
    "same model on any number of threads": "concepts/same_everywhere",
    "few queries": "howto/small_data",
    "categorical features": "howto/categories",
    "custom loss": "howto/custom_loss",
    "hyperparameter search optuna": "howto/tune",
    "which NDCG should I report": "howto/choose_ndcg",
    "train on several machines": "howto/cluster",
    "price must not raise the score": "howto/constraints",
    "early stopping": "howto/train",
    "predict one document": "howto/predict",
    "missing values": "howto/train",
    "feature importance": "howto/explain",
    "how many judgments do I need": "howto/how_many_queries",
    "exit code 4": "reference/errors",
    "group parameter like lightgbm": "howto/from_lightgbm",
    "save and load model": "howto/train",
    "pandas": "howto/read_data",
    "polars": "howto/read_data",
    "docker": "howto/deploy",
    "can I use a GPU": "howto/install",
    "how do I cite mcrank": "reference/project",
    "license": "reference/project",
    "report a bug": "reference/project",
    "python 3.13": "howto/install",
    "windows": "howto/install",
    "what is a qid": "howto/read_data",
    "what is NDCG": "concepts/ndcg",
    "mean reciprocal rank": "concepts/ndcg",
    "clicks as grades": "howto/read_data",
    "train test split": "howto/read_data",
    "read a csv file": "howto/read_data",
    "overfitting": "howto/train",
    "random seed": "howto/train",
    "training is slow": "howto/train",
    "first call is slow": "howto/install",
    "latency": "howto/predict",
    "hyperparameters": "howto/train",
    "shap values": "howto/explain",
    "is it safe to load a model from someone else": "howto/train",
    "deprecation": "concepts/promises",
}


# The words above the results, and results where there are some.
_SHOWN = """shown => {
    const words = document.querySelector('.md-search-result__meta').textContent;
    const results = document.querySelectorAll('.md-search-result__item').length;
    return words.includes(shown) && (results > 0) === /^[1-9]/.test(words.trim());
}"""


@pytest.fixture(scope="module")
def searching(browser: Any, site: Path) -> Any:
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto((site / "index.html").as_uri())
    yield page
    page.context.close()


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_search_answers_in_two_clicks(searching, question, answer):
    """The page that answers is among the first three that are found."""
    box = searching.locator(".md-search__input")
    box.click()
    # Nothing is left of the question before when the next is asked.
    for words, shown in (("", "Type to start"), (question, "matching")):
        box.fill(words)
        box.press("End")  # the search listens to keys
        searching.wait_for_function(_SHOWN, arg=shown)
    found = searching.eval_on_selector_all(
        ".md-search-result__item > a.md-search-result__link",
        "links => links.map(a => a.getAttribute('href'))",
    )
    pages = [link.partition("#")[0].partition("?")[0].removesuffix(".html") for link in found]
    assert any(page.endswith(answer) for page in pages[:3]), pages[:6]
