"""Texts from outside: what a terminal would act on is written out, and nothing else changes."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcrank.cli.main import echo, json_text, print_facts
from mcrank.errors import DataError
from mcrank.texts import check_text, check_texts, printable

ANY = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\x00\x1b\x9b\n\t\r\ud800\u202e\u2066\u2028")
)
REORDERS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def acts(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in REORDERS


@given(ANY)
def test_only_what_acts_is_written_out(text):
    assert not any(map(acts, printable(text)))
    assert not any(acts(c) for c in printable(text, lines=True) if c not in "\n\t")
    assert printable("".join(c for c in text if not acts(c))) == "".join(c for c in text if not acts(c))
    printable(text, lines=True).encode("utf-8")


@given(ANY)
def test_json_says_the_same_in_characters_that_can_be_shown(text):
    written = json_text({"name": text})
    assert json.loads(written) == {"name": text}
    assert not any(acts(c) for c in written if c != "\n")


@given(ANY)
def test_what_a_name_may_have_can_be_encoded_and_moves_nothing(text):
    if any(acts(c) and c not in "\t\n\r\u2028\u2029\u061c\u200e\u200f" for c in text):
        with pytest.raises(DataError) as caught:
            check_text(text, "name")
        assert not any(map(acts, str(caught.value)))
        with pytest.raises(DataError):
            check_texts({"a": [1, [text]]}, "name")
        return
    assert check_text(text, "name") == text
    text.encode("utf-8")
    assert "\x1b" not in text
    check_texts([text, {text: None}], "name")


def test_commands_write_plain_text(capsys):
    echo("a\x1b[2Jb\nc\ud800")
    print_facts({"na\nme": "va\x1blue\n"})
    out = capsys.readouterr().out
    assert out.splitlines() == ["a\\x1b[2Jb", "c\\ud800", "na\\nme  va\\x1blue\\n"]
