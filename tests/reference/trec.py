"""Naive reading of TREC files and of scores: one line at a time, one character at a time where it matters."""

from __future__ import annotations

import math
import re


class BadLine(Exception):
    """A line that must be refused."""


def read_number(text: str) -> float:
    """A number as C and every tool write it: ASCII, no underscores; also nan, inf and infinity."""
    if not re.fullmatch(
        r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", text, re.IGNORECASE
    ):
        raise BadLine(f"not a number: {text!r}")
    return float(text)


def lines_of(content: bytes) -> list[str]:
    """Lines of UTF-8 text, however they end; a byte order mark at the beginning is not text."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def read_pairs(content: bytes, columns: int, value_at: int, *, finite: bool):
    """Return {query: {document: value}} of qrels (4 columns) or a run (6 columns), or raise `BadLine`."""
    found: dict[str, dict[str, float]] = {}
    for line in lines_of(content):
        words, word = [], ""
        for c in line + " ":
            if c not in " \t\v\f":
                word += c
            elif word:
                words.append(word)
                word = ""
        if not words or words[0].startswith("#"):
            continue
        if len(words) != columns:
            raise BadLine("columns")
        value = read_number(words[value_at])
        if math.isnan(value) or (finite and math.isinf(value)):
            raise BadLine("value")
        documents = found.setdefault(words[0], {})
        if words[2] in documents:
            raise BadLine("twice")
        documents[words[2]] = value
    if not found:
        raise BadLine("nothing")
    return found


def read_scores(content: bytes) -> list[float]:
    """Return the number on each line, or raise `BadLine`; blank lines only at the end."""
    lines = lines_of(content)
    blanks = " \t\v\f"
    while lines and not lines[-1].strip(blanks):
        lines.pop()
    scores = [read_number(line.strip(blanks)) for line in lines]
    if any(math.isnan(score) for score in scores):
        raise BadLine("nan")
    return scores
