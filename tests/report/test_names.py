"""Names are kept as given and escaped wherever they go; files are called something else."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcrank
from mcrank.errors import OptionError
from mcrank.experiments.comparison import Comparison, System
from mcrank.experiments.names import check_name, file_stems, shortened, width
from mcrank.report.comparison_tables import all_tables
from mcrank.report.page import render_report
from mcrank.report.tables import Cell, Column, Table, csv_text, latex_text, markdown_text
from mcrank.texts import printable
from tests.experiments.made_up import made_up
from tests.reference.payload import unpack
from tests.report.page import read_page

ODD = [
    "Ä", "日本語のランカー", "😀👩‍👧", "عربي", "My best!", "a/b\\c",
    "=HYPERLINK(\"http://x\",\"y\")", "+1", "@A1",
    "-2+3", "</script><script>alert(1)</script>", "x" * 300, "mcrank", "Mcrank", "con", "..", "a|b",
    "{{ 7*7 }}",
    "'quoted'", "[x](http://y)", "*bold*", "CON.txt", "naïve" , "50% $x$ _y_ & #",
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return mcrank.make_artificial(n_train=12, n_valid=1, n_test=1, docs_per_query=8, n_features=3).train


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """A real comparison under odd names, in a folder."""
    out = tmp_path_factory.mktemp("odd") / "run"
    entries = dict.fromkeys(ODD, "best-feature")
    return mcrank.compare(entries, data, "ndcg@10", folds=3, n_jobs=1, out=out), out


def test_keys_are_the_names(run):
    found, out = run
    assert list(found.keys) == ODD
    assert list(Comparison.load(out).keys) == ODD
    assert [line.system for line in found.leaderboard(baseline="Ä") if line.mark == "baseline"] == ["Ä"]
    assert all(name in str(found) for name in ODD)


def test_model_files_have_names_of_their_own(run):
    _, out = run
    files = [path.name for path in (out / "models").glob("*.mcrank")]
    assert len(files) == 3 * len(ODD)
    assert len({name.lower() for name in files}) == len(files)
    assert all(re.fullmatch(r"[A-Za-z0-9_+~.-]{1,120}", name) for name in files)
    assert "naive" not in files
    index = json.loads((out / "models.json").read_text(encoding="utf-8"))
    assert {entry["file"] for entry in index} == set(files)
    assert {entry["system"] for entry in index} == set(ODD)
    mcrank.load(out / "models" / index[0]["file"])


def test_names_on_the_page(run):
    text = render_report(run[0])
    page = read_page(text)
    rows = page.one("table", id="board").one("tbody").all("tr")
    assert {row.attributes["data-system"] for row in rows} == set(ODD)
    names = [row.one("span", **{"class": "name"}) for row in rows]
    assert {"".join(name.texts) for name in names} == set(ODD)
    facts, _ = unpack(page.one("script", id="payload").text)
    assert facts["systems"] == ODD
    assert len(page.all("script")) == 2


def test_tables_are_safe_in_a_spreadsheet_and_keep_names(run):
    for table in all_tables(run[0]):
        rows = list(csv.reader(io.StringIO(table.to_csv())))
        assert {len(row) for row in rows} == {len(table.columns)}
        numeric = [column.numeric for column in table.columns]
        for row in rows[1:]:
            for text, is_number in zip(row, numeric, strict=True):
                if text[:1] in "=+-@\t\r" and text:
                    assert is_number
                    float(text)
    board = list(csv.DictReader(io.StringIO(all_tables(run[0])[0].to_csv())))
    back = [row["system"].removeprefix("'") for row in board]
    assert set(back) == set(ODD)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12))
def test_no_text_becomes_a_formula(text):
    table = Table("t", "c", [Column(text, numeric=False)], [[Cell(text, text)], [Cell(text)]])
    cells = [row[0] if row else "" for row in csv.reader(io.StringIO(table.to_csv(), newline=""))]
    for cell in cells:
        assert cell == csv_text(text)
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＠"))
    plain = printable(text, lines=True)
    assert cells[0] == ("'" + plain if cells[0] != plain else plain)
    assert not (cells[0] == plain and plain.startswith("'"))


def test_numbers_stay_numbers():
    values = [-0.5, 1e-30, 0, -3, float(np.float64(-1.25))]
    table = Table("t", "c", [Column("v")], [*([Cell("shown", v)] for v in values), [Cell("+1.5")]])
    assert [float(row["v"]) for row in csv.DictReader(io.StringIO(table.to_csv()))] == [*values, 1.5]


@pytest.mark.parametrize(
    ("text", "latex", "markdown"),
    [
        ("[2pt] a", r"{}[2pt] a", r"\[2pt\] a"),
        ("*", r"{}*", r"\*"),
        ("a--b ''c", r"a-{}-b '{}'c", "a--b ''c"),
        ("![i](http://x)", "![i](http://x)", r"\!\[i\](http://x)"),
        ("num_leaves", r"num\_leaves", "num_leaves"),
        ("`code` ~a~ $b$", r"`code` \textasciitilde{}a\textasciitilde{} \$b\$", r"\`code\` \~a\~ \$b\$"),
        ("a\x1b[0m", r"a\textbackslash{}x1b[0m", r"a\\x1b\[0m"),
    ],
)
def test_text_for_papers(text, latex, markdown):
    assert latex_text(text) == latex
    assert markdown_text(text) == markdown


def test_control_characters_of_data_are_shown_as_escapes(tmp_path):
    """Query and document ids, features and notes come from files."""
    found = made_up(4, systems=2, qids=["a\x00", "b\x1b[31m", "c\ud800", "d\u202e"])
    found = dataclasses.replace(
        found,
        feature_names=tuple(f"f{n}\t\n" for n in range(12)),
        notes=("said \x1b]0;x\x07",),
        folds=(dataclasses.replace(found.folds[0], name="all"),),
    )
    text = render_report(found, title="t\x08\ud912")
    assert text.encode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e]", text)
    facts, _ = unpack(read_page(text).one("script", id="payload").text)
    assert facts["qids"] == ["a\\x00", "b\\x1b[31m", "c\\ud800", "d\\u202e"]
    assert all(
        re.search("[\x00-\x08\x1b\ud800-\udfff]", table.to_csv()) is None for table in all_tables(found)
    )
    found.save(tmp_path / "run")
    again = Comparison.load(tmp_path / "run")
    assert again.qids.tolist() == found.qids.tolist()
    assert again.feature_names == found.feature_names


def test_a_saved_comparison_with_a_hostile_name_is_refused(run, tmp_path):
    made_up(4, systems=2).save(tmp_path / "run")
    path = tmp_path / "run" / "results.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"system-1"', '"\\u001b[2J"'), encoding="utf-8")
    with pytest.raises(mcrank.DataError, match="control character"):
        Comparison.load(tmp_path / "run")
    with pytest.raises(OptionError, match="control character"):
        System("a\tb", "a", "scores")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=8), max_size=8), st.lists(st.text(max_size=4), max_size=3))
def test_files_never_meet(systems, folds):
    first, second = file_stems(systems), file_stems(folds)
    names = {(a, b): f"{first[a]}.{second[b]}".lower() for a in systems for b in folds}
    assert len(set(names.values())) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_+~.-]{1,200}", name) for name in names.values())


def test_case_alone_makes_no_file_name():
    assert file_stems(["mcrank"]) == {"mcrank": "mcrank"}
    assert len({stem.lower() for stem in file_stems(["mcrank", "McRank", "MCRANK", "ſ", "s"]).values()}) == 5
    assert all(stem.lower() not in ("con", "nul") for stem in file_stems(["CON", "nul"]).values())


@given(st.text(max_size=60), st.integers(5, 40))
def test_shortened_keeps_both_ends(text, most):
    short = shortened(text, most)
    assert len(short) <= most
    if len(text) <= most:
        assert short == text
    else:
        begin, _, end = short.partition("…")
        assert text.startswith(begin)
        assert text.endswith(end)


def test_names_that_are_refused():
    for name in ("", "  ", "a\nb", "\x00", "\x9b", "a\u2028", "\ud800", "\u202eabc", "\u2066a"):
        with pytest.raises(OptionError):
            check_name(name, "an entry")
    for name in ODD:
        assert check_name(name, "an entry") == name
    assert width("日本") == 4
