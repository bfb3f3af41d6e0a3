"""docs/papers.md: every place it names is there, and nothing is left blank."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcrank.papers.outcome import VERDICTS
from mcrank.papers.reproduce import TARGETS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"


PLACES = re.compile(r"`((?:tests/)?[a-z0-9_]+(?:/[a-z0-9_]+)*(?:\.py|/))`")


def lines():
    rows = [line.strip().strip("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.split("|")] for row in rows if not row.startswith(" section")]


def test_every_line_has_a_section_a_subject_and_a_verdict():
    found = lines()
    assert len(found) > 60
    for section, what, where, tried, verdict in found:
        assert all((section, what, verdict, where or tried))


@pytest.mark.parametrize(
    "place", sorted(set(re.findall(r"`((?:tests/)?[a-z0-9_]+(?:/[a-z0-9_]+)*(?:\.py|/))`", PAGE.read_text())))
)
def test_places_are_there(place):
    root = ROOT if place.startswith("tests/") else ROOT / "src" / "mcrank"
    assert (root / place).exists()


def test_commands_name_targets_that_exist():
    for target in re.findall(r"mcrank reproduce ([a-z0-9]+)", PAGE.read_text()):
        assert target in TARGETS


def test_reproduce_page_defines_the_verdicts_as_the_code_does():
    page = (ROOT / "docs" / "reference" / "reproduce.md").read_text()
    for word, meaning in VERDICTS.items():
        assert f"| {word} | {meaning} |" in page
