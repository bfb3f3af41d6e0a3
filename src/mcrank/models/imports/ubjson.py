"""Universal Binary JSON (draft 12), which XGBoost writes: a reader that takes no more memory than the file
has bytes to show for it.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from mcrank.errors import ModelFileError
from mcrank.models.imports.parts import Part, shown

MOST_DEPTH = 64
_TYPES = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"Z": None, "T": True, "F": False}


class _Reader:
    def __init__(self, content: bytes, where: str) -> None:
        self.content, self.where, self.at = content, where, 0

    def refuse(self, words: str) -> NoReturn:
        raise ModelFileError(f"{self.where} is not UBJSON: {words} at byte {self.at}.")

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.content) - self.at:
            self.refuse("it is cut off")
        self.at += count
        return self.content[self.at - count : self.at]

    def marker(self) -> str:
        mark = "N"
        while mark == "N":  # no-operation: skipped
            mark = self.take(1).decode("latin-1")
        return mark

    def number(self, mark: str) -> Any:
        kind = np.dtype(_TYPES[mark])
        return np.frombuffer(self.take(kind.itemsize), kind)[0].item()

    def length(self, mark: str | None = None) -> int:
        mark = self.marker() if mark is None else mark
        if mark not in _TYPES or mark in "dD":
            self.refuse(f"a length must be an integer, got the mark {shown(mark)}")
        count = int(self.number(mark))
        if not 0 <= count <= len(self.content) - self.at:
            self.refuse(f"a length of {count} is beyond the file")
        return count

    def text(self, mark: str | None = None) -> str:
        try:
            return self.take(self.length(mark)).decode()
        except UnicodeDecodeError:
            self.refuse("a text is not UTF-8")

    def value(self, mark: str, depth: int) -> Any:
        if depth > MOST_DEPTH:
            self.refuse(f"it is nested deeper than {MOST_DEPTH}")
        if mark in _TYPES:
            return self.number(mark)
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark in "SH":
            return self.text()
        if mark == "C":
            return self.take(1).decode("latin-1")
        if mark not in ("[", "{"):
            self.refuse(f"unknown mark {shown(mark)}")
        return self.array(depth) if mark == "[" else self.object(depth)

    def container(self) -> tuple[str | None, int | None, str | None]:
        """Read what may follow an opening mark: type and count of the entries; also the mark behind."""
        mark = self.marker()
        kind = None
        if mark == "$":
            kind = self.marker()
            mark = self.marker()
            if mark != "#":
                self.refuse("a typed container must have a count")
        if mark != "#":
            return None, None, mark
        return kind, self.length(), None

    def array(self, depth: int) -> Any:
        kind, count, mark = self.container()
        if count is None:
            entries = []
            while mark != "]":
                entries.append(self.value(str(mark), depth + 1))
                mark = self.marker()
            return entries
        if kind in _TYPES:
            data = np.frombuffer(self.take(count * np.dtype(_TYPES[kind]).itemsize), _TYPES[kind])
            return data.astype(data.dtype.newbyteorder("="))
        if kind is not None and kind not in "SH[{C":  # entries without bytes could be any number
            self.refuse(f"a list cannot have the type {shown(kind)}")
        return [self.value(self.marker() if kind is None else kind, depth + 1) for _ in range(count)]

    def object(self, depth: int) -> dict[str, Any]:
        kind, count, mark = self.container()
        found: dict[str, Any] = {}
        while (mark != "}") if count is None else (len(found) < count):
            key = self.text(mark)
            if key in found:
                self.refuse(f"the key {shown(key)} is there twice")
            found[key] = self.value(self.marker() if kind is None else kind, depth + 1)
            mark = self.marker() if count is None else None
        return found


def read_ubjson(content: bytes, where: str) -> Part:
    """Return what UBJSON says; typed lists of numbers become arrays.

    Examples
    --------
    >>> from mcrank.models.imports.ubjson import read_ubjson
    >>> read_ubjson(b"{i\\x01aU\\x05i\\x01b[$U#i\\x02\\x01\\x02}", "m.ubj").value
    {'a': 5, 'b': array([1, 2], dtype=uint8)}
    >>> read_ubjson(b"{i\\x01a[$Z#L\\x7f\\xff\\xff\\xff\\xff\\xff\\xff\\xff", "m.ubj")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: m.ubj is not UBJSON: a length of 9223372036854775807 is beyond the file at \
byte 17.
    """
    reader = _Reader(content, where)
    value = reader.value(reader.marker(), 0)
    if set(content[reader.at :]) - {ord("N"), 0}:
        reader.refuse("there is more behind its end")
    return Part(value, where)


def looks_like_ubjson(content: bytes) -> bool:
    """Whether content begins as an object of UBJSON does, which no JSON text does."""
    marks = (b"i", b"U", b"I", b"l", b"L", b"$", b"#")
    return len(content) > 2 and content[:1] == b"{" and content[1:2] in marks
