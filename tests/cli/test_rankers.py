"""`mcrank rankers`: every ranker with its card and options, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcrank.cli.rankers import option_groups, table
from mcrank.rankers.registry import RANKERS, ranker_class

CLASSES = [ranker_class(name) for name in RANKERS]


def told_options(ranker):
    """Options that are not for callers in Python alone."""
    return {name: o for name, o in ranker.declared_options.items() if o.scope != "python"}


def test_json_has_every_ranker_and_every_option(mcrank_cli):
    code, printed, err = mcrank_cli("rankers", "--json")
    assert (code, err) == (0, "")
    listed = json.loads(printed)
    assert [entry["name"] for entry in listed] == list(RANKERS)
    for entry, ranker in zip(listed, CLASSES, strict=True):
        assert entry["class"] == ranker.__name__
        assert entry["family"] in ("pointwise", "pairwise", "listwise", "baseline", "mixture")
        assert entry["trains_on_measure"] is ranker.card.trains_on_measure
        assert list(entry["options"]) == list(told_options(ranker))
        for name, declared in told_options(ranker).items():
            assert entry["options"][name]["help"] == declared.help
            if isinstance(declared.default, (int, float, str, type(None))):
                assert entry["options"][name]["default"] == declared.default


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_fits_its_terminal(mcrank_cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, printed, _ = mcrank_cli("rankers")
    assert code == 0
    assert max(map(len, printed.splitlines())) <= width
    for ranker in CLASSES:
        assert ranker.name in printed
        assert ranker.__name__ in printed
        words = " ".join(printed.split())
        assert ranker.card.scorer in words


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", RANKERS)
def test_one_ranker(mcrank_cli, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    code, printed, _ = mcrank_cli("rankers", name)
    assert code == 0
    assert max(map(len, printed.splitlines())) <= width
    words = " ".join(printed.split())
    ranker = ranker_class(name)
    assert f"class mcrank.{ranker.__name__}" in words
    assert ranker.card.loss in words
    assert all(option in printed for option in told_options(ranker))
    code, printed, _ = mcrank_cli("rankers", name, "--json")
    assert json.loads(printed)["name"] == name


def test_an_unknown_ranker(mcrank_cli):
    code, printed, err = mcrank_cli("rankers", "lambdamarrt")
    assert (code, printed) == (2, "")
    assert "did you mean lambdamart?" in err


def test_options_stand_where_they_are_declared():
    groups = option_groups(CLASSES)
    assert next(iter(groups)) == "all"
    assert "measure=ndcg@10" in groups["all"]
    trees = next(title for title in groups if title.startswith("mcrank, ordinal, regression"))
    assert "num_leaves=10" in groups[trees]
    assert not any(o.startswith("num_leaves") for o in groups["regression"])
    for ranker in CLASSES:
        told = {
            option.split("=")[0]
            for title, options in groups.items()
            if title == "all" or ranker.name in title.split(", ")
            for option in options
        }
        assert told >= set(told_options(ranker))


def test_the_last_column_is_wrapped():
    lines = list(table([["a", "b"], ["x\ny", "one two three four five six"]], 24))
    assert lines[2:] == ["x  one two three four", "y  five six"]


def test_the_page_of_rankers_has_every_one():
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "rankers.md").read_text(encoding="utf-8")
    for ranker in CLASSES:
        card = ranker.card
        row = next(line for line in page.splitlines() if line.startswith(f"| `{ranker.name}` |"))
        assert f"`{ranker.__name__}` | {card.family} |" in row
        assert row.endswith("| trains |" if card.trains_on_measure else "| picks |")
