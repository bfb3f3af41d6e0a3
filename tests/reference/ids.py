"""Naive reading of ids: the csv module, Python's integers and texts, one value at a time."""

from __future__ import annotations

import csv
import io


class BadId(Exception):
    """An id that must be refused."""


def looks_like_an_integer(text):
    """Whether Python would write an integer just so."""
    try:
        return str(int(text)) == text
    except ValueError:
        return False


def of_texts(texts):
    """Ids of a text file: all integers, or all texts as written."""
    return [int(text) for text in texts] if all(map(looks_like_an_integer, texts)) else list(texts)


def read_csv_ids(contents, name, delimiter=","):
    """Ids of several CSV files read as one set."""
    texts = []
    for content in contents:
        texts += [row[name] for row in csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter)]
    if "" in texts:
        raise BadId
    return of_texts(texts)


def grouped(ids):
    """Rows of every id, in first-seen order; 7 and "7" are told apart."""
    rows = {}
    for row, value in enumerate(ids):
        rows.setdefault((type(value).__name__, value), []).append(row)
    return {value: places for (_, value), places in rows.items()}
