"""Numbers, words and encodings of text files: what Python alone takes for a number or a blank is neither."""

from __future__ import annotations

import gzip

import pytest

import mcrank
from mcrank.data.numbers import read_number
from mcrank.data.scores import read_scores

ODD = ["１２", "٣", "1e٣", "1_000", "\u00a01", "\x1f1", "", " ", "0x10", "1,5", "--1", "1 2", "one"]


@pytest.mark.parametrize("text", ODD)
def test_odd_numbers_are_refused_everywhere(text, tmp_path):
    with pytest.raises(ValueError, match=r"number|convert"):
        read_number(text)
    (path := tmp_path / "file").write_text(f"{text}\n1\n", encoding="utf-8")
    with pytest.raises(mcrank.DataError, match="line 1"):
        read_scores(path)
    for reader, line in ((mcrank.Qrels, "q 0 d {}"), (mcrank.Run, "q Q0 d 1 {} run")):
        path.write_text(line.format(text) + "\n", encoding="utf-8")
        with pytest.raises(mcrank.DataError, match="line 1"):
            reader.read(path)


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1.0), (" -1e-3\t", -0.001), ("+.5", 0.5), ("Infinity", float("inf"))]
)
def test_plain_numbers(text, value):
    assert read_number(text) == value


@pytest.mark.parametrize("separator", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u00a0", "\u2003"])
def test_only_blanks_of_c_end_a_column(separator, tmp_path):
    (path := tmp_path / "qrels").write_text(f"q{separator}1 0 d{separator}1 2\n", encoding="utf-8")
    assert mcrank.Qrels.read(path).queries == {f"q{separator}1": {f"d{separator}1": 2.0}}


def test_text_that_is_not_utf_8_in_a_damaged_archive(tmp_path):
    """The search for the line goes on where the first reading stopped, and meets the wrong checksum."""
    packed = bytearray(gzip.compress(b"q 0 d\xff 1\n" + b"q 0 d 1\n" * 20000))
    packed[-8] ^= 1
    (path := tmp_path / "qrels.gz").write_bytes(packed)
    with pytest.raises(mcrank.DataError):
        mcrank.Qrels.read(path)


@pytest.mark.parametrize("content", [b"\xef", b"\xef\xbb"])
def test_half_a_byte_order_mark_is_not_an_empty_file(content, tmp_path):
    (path := tmp_path / "scores").write_bytes(content)
    with pytest.raises(mcrank.DataError, match="cannot be read"):
        read_scores(path)
