"""The README is short, and what it and the other pages link to is there."""

from __future__ import annotations

import re
from pathlib import Path

from mcrank.rankers.registry import RANKERS

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)")


def test_it_is_two_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 75


def headings(page):
    """What the headings of a page are linked by, in the site and where Markdown is shown as it is."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_every_relative_link_leads_somewhere():
    """Also in Markdown as it is, without the pages of the reference that are made with the site."""
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        source = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target, heading in LINK.findall(source):
            place = (page.parent / target).resolve() if target else page
            assert place.exists(), f"{page.relative_to(ROOT)} links to {target}"
            if heading:
                assert heading in headings(place), f"{page.relative_to(ROOT)} links to {target}#{heading}"


NUMBER = re.compile(r"(?<![\w@.])\d[\d,]*(?:\.\d+)?(?!\w)")


def numbers(text, digits=None):
    found = [float(word.replace(",", "")) for word in NUMBER.findall(text)]
    return found if digits is None else [round(one, digits) for one in found]


def test_every_fact_has_a_page_with_its_numbers_and_a_command():
    """What the README says was measured is on the page it links to, in at least as many digits."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    facts = text.partition("Measured beside its peers")[2].partition("\n## ")[0].split("\n- ")[1:]
    assert len(facts) == 3
    for fact in facts:
        (page,) = re.findall(r"\]\((docs/results/.+?)\)", fact)
        (script,) = re.findall(r"`python (\S+?\.py)", fact)
        assert (ROOT / script).exists()
        shown = (ROOT / page).read_text(encoding="utf-8")
        for word in NUMBER.findall(fact.partition("([")[0]):
            (value,), digits = numbers(word), len(word.partition(".")[2])
            assert value in numbers(shown, digits), f"{word} is not on {page}"


def test_it_counts_the_rankers():
    words = {14: "fourteen", 15: "fifteen", 16: "sixteen"}
    assert f"{words[len(RANKERS) - 1]} other rankers" in (ROOT / "README.md").read_text(encoding="utf-8")
