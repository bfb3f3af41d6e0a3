"""docs/papers.md: every place it names is there, and nothing is left blank."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from mcrank.cli.main import group
from mcrank.papers.outcome import VERDICTS
from mcrank.papers.reproduce import TARGETS
from mcrank.rankers.registry import ranker_class

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "papers.md"


PLACES = re.compile(r"`((?:tests/)?[a-z0-9_]+(?:/[a-z0-9_]+)*(?:\.py|/))`")


def lines():
    rows = [line.strip().strip("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.split("|")] for row in rows if not row.startswith(" section")]


def test_nothing_is_left_blank_and_verdicts_are_the_defined_words():
    found = lines()
    assert len(found) > 90
    words = (*VERDICTS, "built", "differs")
    for cells in found:
        assert len(cells) == 5
        assert all(cells), cells
        assert cells[-1].startswith(words), cells


def test_every_command_of_mcrank_is_one_that_it_takes():
    """Names of commands, options and rankers; the data are whatever the reader has."""
    commands = {text for line in lines() for text in re.findall(r"`(mcrank [^`]*)`", line[3])}
    assert len(commands) > 30
    for text in commands:
        words = shlex.split(text)[1:]
        command = group.get_command(click.Context(group), words[0])
        assert command is not None, text
        if words[0] in ("train", "compare"):
            continue  # options of rankers are declared with them: see the next test
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= known, text


def test_every_training_that_is_named_has_options_of_its_ranker():
    for line in lines():
        for text in re.findall(r"`mcrank train DATA ([^`]*)`", line[3]):
            words = shlex.split(text)
            declared = ranker_class(words[1]).declared_options
            for word in words[2:]:
                if word.startswith("--"):
                    assert word.removeprefix("--").removeprefix("no-").replace("-", "_") in declared, text


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
