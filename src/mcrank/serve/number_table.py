"""A body of JSON whose rows are a table of numbers: those by a kernel, what stands around them by orjson.

Making an object of every number and asking each what it is takes more time than ranking the rows. So what
``rows`` or ``columns`` holds is read straight into a matrix (`mcrank.serve.json_kernels`), and a mark takes
its place in the body that is then read as any other. What JSON allows does not depend on which value stands
at a key; that the mark comes back under it says that it was a key of the body itself.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from mcrank.arrays import FeatureArray, IntArray
from mcrank.serve.json_kernels import FIRST_KEY, FIRST_TEXT, PADDING, read_table, room_for
from mcrank.serve.problems import Problem
from mcrank.serve.strict_json import read_object

_WORTH = 2048  # bytes below which orjson is as quick
_PART = re.compile(rb'"(rows|columns)"[ \t\r\n]*:')
_MARK = secrets.token_hex(16)  # a text that nobody sends


@dataclass(frozen=True)
class NumberTable:
    """Rows of numbers.

    Attributes
    ----------
    values : ndarray of float32, shape (rows, columns)
        NaN for null, and for texts.
    names : tuple of str or None
        What columns are called; None where they go by place.
    texts : dict
        The texts of columns that have some, by column; None for a column of which only some values are texts.
    body, where : bytes, str
        The body as it came, and what messages call it.
    """

    values: FeatureArray
    names: tuple[str, ...] | None
    texts: dict[int, list[str] | None]
    body: bytes
    where: str

    def ordinary(self) -> dict[str, Any]:
        """The body as Python's own values."""
        return read_object(self.body, self.where)


def read_parts(body: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in a body as `read_object` does, but for a table of numbers in it.

    Examples
    --------
    >>> from mcrank.serve.number_table import read_parts
    >>> body = b'{"model": "web", "rows": [' + b"[1.5, null]," * 1000 + b"[2, 3]]}"
    >>> parts = read_parts(body, "/rank")
    >>> parts["model"], parts["rows"].values.shape, parts["rows"].values[-1].tolist()
    ('web', (1001, 2), [2.0, 3.0])
    """
    found = _with_table(body, where) if len(body) >= _WORTH else None
    return read_object(body, where) if found is None else found


def _with_table(body: bytes, where: str) -> dict[str, Any] | None:
    part = _PART.search(body)
    # Without a backslash before it, it is no part of a text.
    if part is None or b"\\" in body[: part.start()]:
        return None
    size = len(body)
    text = np.empty(size + PADDING, dtype=np.uint8)
    text[:size] = np.frombuffer(body, dtype=np.uint8)
    text[size:] = 0
    values, spans = room_for(size)
    word = part[1].decode()
    end = read_table(text, part.end(), word == "columns", values, spans)
    if not end:
        return None
    try:
        parts = read_object(body[: part.end()] + f'"{_MARK}"'.encode() + body[end:], where)
        found = _named(values, spans, word == "columns", body, where)
    except (Problem, orjson.JSONDecodeError):
        return None  # told by whoever reads all of it
    return parts | {word: found} if parts.get(word) == _MARK else None


def _named(found: FeatureArray, spans: IntArray, by_column: bool, body: bytes, where: str) -> NumberTable:
    """What the kernel found, with its names and texts read by orjson."""
    entries, width, keys, texts = spans[:FIRST_KEY].tolist()
    values = found[: entries * width].reshape(entries, width)
    names = tuple(_texts(body, spans[FIRST_KEY:][: 2 * keys].reshape(-1, 2))) if keys else None
    if names is not None and len(set(names)) < len(names):
        read_object(body, where)  # says so
    listed = spans[FIRST_TEXT:][: 3 * texts].reshape(-1, 3)
    place, words = listed[:, 0], _texts(body, listed[:, 1:])
    column = place // width if by_column else place % width
    rows = width if by_column else entries
    of_columns: dict[int, list[str] | None] = {}
    for one in np.unique(column).tolist():
        own = np.flatnonzero(column == one).tolist()
        of_columns[one] = [words[at] for at in own] if len(own) == rows else None
    return NumberTable(values.T if by_column else values, names, of_columns, body, where)


def _texts(body: bytes, spans: IntArray) -> list[str]:
    found: list[str] = orjson.loads(b"[%b]" % b",".join([body[start:stop] for start, stop in spans.tolist()]))
    return found
