"""Naive reading of tables: the csv module and Python's numbers; ids by the rule in tests/reference/ids.py."""

from __future__ import annotations

import csv
import io
import math
import re

import numpy as np

from tests.reference.ids import of_texts
from tests.reference.trec import BadLine, read_number

NULLS = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
}  # fmt: skip


# Tabs and line ends may be; what turns the direction of writing may not.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Bad(Exception):
    """Content that must be refused."""


def read_csv(content: bytes, delimiter: str, categories: bool = True):
    """Return X, y, query ids and document ids (or None) of a CSV file, or raise `Bad`; without ``categories``
    features are numbers.
    """
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise Bad(str(error)) from None
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise Bad("rows of other lengths")
    names = rows[0]
    if len(set(names)) < len(names):
        raise Bad("a name twice")
    columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(names)}
    return roles(columns, feature if categories else numbers)


def roles(columns, values):
    """Take texts by column apart into X, y, query ids and document ids."""
    qid = _only(columns, ("qid", "query_id", "queryid"))
    label = _only(columns, ("label", "grade", "relevance"))
    doc = _only(columns, ("doc_id", "docid", "docno", "document_id"), optional=True)
    features = [name for name in columns if name.lower() not in _ROLES]
    if not features or "" in columns[qid]:
        raise Bad("features or ids")
    y = numbers(columns[label])
    if not all(math.isfinite(grade) and grade >= 0 for grade in y):
        raise Bad("grades")
    with np.errstate(over="ignore"):
        X = np.array([values(columns[name]) for name in features], dtype=np.float64).T.astype(np.float32)
    if np.isinf(X).any():
        raise Bad("infinite")
    return X, y, of_texts(columns[qid]), None if doc is None else _documents(columns[doc])


_ROLES = {
    "qid", "query_id", "queryid", "label", "grade", "relevance", "doc_id", "docid", "docno", "document_id",
}  # fmt: skip


def _only(columns, known, optional=False):
    found = [name for name in columns if name.lower() in known]
    if len(found) > 1 or (not found and not optional):
        raise Bad("roles")
    return found[0] if found else None


def _documents(texts):
    """An empty text means no id, beside ids of any kind."""
    given = iter(of_texts([text for text in texts if text]))
    return [next(given) if text else "" for text in texts]


def feature(texts):
    """Values of a feature: numbers, or codes of categories where no text could be meant as a number."""
    try:
        return numbers(texts)
    except Bad:
        given = {text for text in texts if text not in NULLS}
        if any(map(could_be_number, given)):
            raise
        if any(map(CONTROL.search, given)):
            raise Bad("a control character in a category") from None
        places = {name: code for code, name in enumerate(sorted(given))}
        return [places.get(text, math.nan) for text in texts]


def could_be_number(text):
    """Whether Python reads a text as a number, or it begins like a hexadecimal one."""
    try:
        float(text)
    except ValueError:
        return text.lstrip().lstrip("+-").lower().startswith("0x")
    return True


def numbers(texts):
    """Numbers of a column: all of them numbers or nothing, or all of them true or false."""
    given = [text for text in texts if text not in NULLS]
    if given and all(text.lower() in ("true", "false") for text in given):
        return [math.nan if text in NULLS else float(text.lower() == "true") for text in texts]
    # C writes some NaN with a word in brackets.
    brackets = re.compile(r"(?<=nan)\(\w*\)$", re.IGNORECASE)
    try:
        return [
            math.nan if text in NULLS else read_number(brackets.sub("", text.strip(" \t"))) for text in texts
        ]
    except BadLine as error:
        raise Bad(str(error)) from None
