"""Naive reading of LETOR text: Python's split, int and float, one line at a time."""

from __future__ import annotations

import math

import numpy as np


class BadLine(Exception):
    """A line that must be refused; its number is the argument."""


def read_text(content: bytes, *, first_index=1, limit=100_000, absent=0.0):
    """Return X (float32), y, query ids and document ids of LETOR text, or raise `BadLine`."""
    rows, grades, ids, docs = [], [], [], []
    content = content.removeprefix(b"\xef\xbb\xbf")
    last = content.split(b"\n")[-1]
    if last.endswith(b":") and b"#" not in last:
        raise BadLine(content.count(b"\n") + 1)  # the file ends in the middle of a feature
    for number, line in enumerate(content.split(b"\n"), start=1):
        body, _, comment = line.partition(b"#")
        words = body.split()
        if not words:
            continue
        try:
            rows.append(_row(words, first_index, limit))
            grades.append(_grade(words[0]))
            ids.append(words[1][4:].decode("utf-8"))
        except ValueError as error:
            raise BadLine(number) from error
        docs.append(_docid(comment.strip(b" \t\r\v\f").decode("utf-8", "backslashreplace")))
    width = max((max(row, default=-1) + 1 for row in rows), default=0)
    X = np.full((len(rows), width), absent, dtype=np.float32)
    for i, row in enumerate(rows):
        for column, value in row.items():
            X[i, column] = value
    return X, np.array(grades), ids, docs


def _row(words, first_index, limit):
    if len(words) < 2 or not words[1].startswith(b"qid:") or len(words[1]) == 4:
        raise ValueError("no qid")
    row = {}
    for word in words[2:]:
        index_text, colon, text = word.partition(b":")
        if not colon or not index_text.isdigit():
            raise ValueError("no index")
        index = int(index_text)
        if not first_index <= index <= limit or len(index_text) > 18 or index - first_index in row:
            raise ValueError("bad index")
        row[index - first_index] = read_number(text)
    return row


def read_number(text: bytes) -> np.float32:
    """float32 of a value's text; ValueError when it is no number or does not fit."""
    if text.upper() in (b"", b"NULL"):
        return np.float32(np.nan)
    with np.errstate(over="ignore"):
        value = np.float32(float(text))
    if np.isinf(value):
        raise ValueError("infinite")
    return value


def _grade(text):
    grade = float(text)
    if not (math.isfinite(grade) and grade >= 0):
        raise ValueError("bad grade")
    return grade


def _docid(comment):
    """LETOR writes '#docid = X ...'; any other comment is kept whole."""
    name, equals, rest = comment.partition("=")
    blanks = " \t\r\v\f"
    if equals and comment.startswith("docid") and not name[5:].strip(blanks):
        words = rest.strip(blanks)
        for i, c in enumerate(words):
            if c in blanks:
                return words[:i]
        return words or comment
    return comment


def count_rows(content: bytes):
    """Lines that hold more than blanks and a comment, and all lines."""
    lines = content.split(b"\n")[:-1]
    return sum(bool(line.split(b"#")[0].split()) for line in lines), len(lines)


def gather_spans(content: bytes, spans) -> bytes:
    """The spans with a newline behind each."""
    return b"".join(content[start:stop] + b"\n" for start, stop in spans)
