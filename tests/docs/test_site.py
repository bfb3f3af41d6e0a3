"""The site builds without a complaint, asks nobody for anything, and its reference is what the code says."""

from __future__ import annotations

import inspect
import json
import re
from types import ModuleType

import pytest
from click.testing import CliRunner
from tools.site.reference import HEADINGS

import mcrank
from mcrank.cli.exits import MEANINGS
from mcrank.cli.main import COMMANDS, group
from mcrank.metrics.measure import EVALUATED, MEASURES
from mcrank.metrics.tools import DIALECTS
from mcrank.rankers.registry import RANKERS, ranker_class
from tests.docs.pages import ROOT
from tests.docs.site import build, squeezed, words_of

pytest.importorskip("mkdocs", reason="make docs-test installs it")
pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def python_words(site):
    pages = [
        *site.glob("reference/python/*.html"),
        *site.glob("reference/rankers/*.html"),
        site / "reference/dialects.html",
    ]
    return "".join(words_of(page) for page in pages)


def test_nothing_is_fetched_from_elsewhere(site):
    loads = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//|<link[^>]+rel=[\"']?(?:stylesheet|preconnect|icon)[^>]+href=[\"']?(?:https?:)?//"
    )
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", style.read_text(encoding="utf-8")), style


def test_links_into_the_index_of_the_reference_lead_to_its_pages(site):
    """In Markdown they lead to a heading that says how to have the same at a terminal."""
    words = (site / "index.html").read_text(encoding="utf-8")
    for page in HEADINGS.values():
        assert (site / page).with_suffix(".html").is_file()
    assert 'href="reference/measures.html"' in words
    assert "reference/index.html#" not in words


def test_results_say_when_and_where_they_were_measured():
    measured = {path: json.loads(path.read_text()) for path in ROOT.glob("docs/results/*.json")}
    machines = {path.name: found["machine"] for path, found in measured.items() if "machine" in found}
    assert len(machines) >= 10
    for name, machine in machines.items():
        assert machine.keys() >= {"cores", "cpu", "date", "python", "versions"}, name


def test_it_opens_from_the_disk(site):
    """Links lead to files, not to folders that a server would have to complete."""
    for page in set(site.rglob("*.html")) - {site / "404.html"}:  # which only servers show
        for link in re.findall(r'<a [^>]*href="([^"#:]+)"', page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page} links to {link}"


@pytest.mark.parametrize("name", [name for name in mcrank.__all__ if name != "__version__"])
def test_help_of_every_public_name_is_on_a_page(name, python_words):
    found = getattr(mcrank, name)
    assert squeezed(f"mcrank.{name}") in python_words
    documented = [found]
    if isinstance(found, ModuleType):
        documented = [found, *(getattr(found, each) for each in getattr(found, "__all__", ()))]
    for each in documented:
        if not inspect.isroutine(each) and not isinstance(each, (type, ModuleType)):
            continue  # a type that others are told by
        first = (inspect.getdoc(each) or "").split("\n\n")[0]
        assert squeezed(first) in python_words, f"{name}: {first}"


def test_every_public_name_has_an_example():
    """Which is run with the docstrings (make test)."""
    found = {name: getattr(mcrank, name) for name in mcrank.__all__}
    for name, module in list(found.items()):
        if isinstance(module, ModuleType):
            found |= {f"{name}.{each}": getattr(module, each) for each in getattr(module, "__all__", ())}
    named = {name: each for name, each in found.items() if inspect.isroutine(each) or isinstance(each, type)}
    assert len(named) > 90
    assert [name for name, each in named.items() if ">>>" not in (inspect.getdoc(each) or "")] == []


def test_marks_of_markdown_are_not_shown(site):
    """Such as a backslash before a bar of a table or before an angle of a range."""
    for page in site.glob("reference/**/*.html"):
        told = re.sub(r"<(script|style|pre).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert re.findall(r".{20}\\(?:[|*\[\]]|&lt;)", told) == [], page


@pytest.mark.parametrize("name", RANKERS)
def test_every_option_of_a_ranker_is_told_as_help_tells_it(name, site):
    words = words_of(site / "reference" / "rankers" / f"{name}.html")
    for option in ranker_class(name).declared_options.values():
        head, _, about = option.words.partition("\n")
        assert squeezed(about) in words, option.words
        assert squeezed(option.name) in words
        assert squeezed(head.rpartition("default ")[2]) in words


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_told_as_its_help_tells_it(name, site):
    words = words_of(site / "reference" / "commands" / f"{name}.html")
    printed = (
        CliRunner()
        .invoke(group, [name, "--help"], prog_name="mcrank", terminal_width=10_000, max_content_width=10_000)
        .output
    )
    own = printed.partition("\nOptions of ")[0]
    for line in own.splitlines():
        for part in re.split(r"\s{2,}", line.strip()):
            if part not in ("", "Options:"):
                assert squeezed(part.replace("Usage: ", "")) in words, part


@pytest.mark.parametrize(
    ("page", "names"),
    [("measures", [*MEASURES, *EVALUATED]), ("dialects", [*DIALECTS]), ("errors", [*map(str, MEANINGS)])],
)
def test_tables_are_whole(page, names, site):
    cells = re.findall(
        r"<td[^>]*>(?:<code>)?([^<]+)", (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
    )
    firsts = {re.match(r"(?:11)?[\w-]+", cell)[0] for cell in cells if re.match(r"(?:11)?[\w-]+", cell)}
    assert set(names) <= firsts
