"""Parsed files, asked part by part: every answer is checked, and every refusal names the file and the key."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray
from mcrank.errors import ModelFileError

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
MOST_FEATURES = 1 << 17  # more than data files may have; names are made for all of them
MOST_OUTPUTS = 1000
_NUMBERS = {"int": (int, bool), "float": (int, float)}


class Part:
    """A value of a parsed JSON (or UBJSON) file, and its place there.

    Examples
    --------
    >>> from mcrank.models.imports.parts import Part
    >>> part = Part({"trees": [{"size": "3"}]}, "m.json")
    >>> part["trees"].entries()[0]["size"].integer(0, 9)
    3
    >>> part["trees"].entries()[0]["depth"]
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: m.json: trees[0] has no 'depth'.
    """

    def __init__(self, value: Any, where: str, path: str = "") -> None:
        self.value = value
        self.where = where
        self.path = path

    @property
    def place(self) -> str:
        """File and key, as messages say them."""
        return f"{self.where}: {self.path or 'the file'}"

    def refuse(self, must: str) -> NoReturn:
        """Raise `ModelFileError`: this value must be something else."""
        raise ModelFileError(f"{self.place} must be {must}, got {shown(self.value)}.")

    def get(self, key: str) -> Part | None:
        """Return the value under a key of this object; None where there is none."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        if key not in self.value:
            return None
        return Part(self.value[key], self.where, f"{self.path}.{key}" if self.path else key)

    def __getitem__(self, key: str) -> Part:
        found = self.get(key)
        if found is None:
            raise ModelFileError(f"{self.place} has no {key!r}.")
        return found

    def entries(self) -> list[Part]:
        """Return the entries of this list."""
        if isinstance(self.value, np.ndarray):
            return [Part(v, self.where, f"{self.path}[{i}]") for i, v in enumerate(self.value.tolist())]
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [Part(v, self.where, f"{self.path}[{i}]") for i, v in enumerate(self.value)]

    def text(self) -> str:
        """Return this text."""
        if not isinstance(self.value, str):
            self.refuse("a text")
        return str(self.value)

    def integer(self, low: int, high: int) -> int:
        """Return this integer, also where the file has it as a text."""
        value = self.value
        if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
            value = int(value)
        if type(value) is not int or not low <= value <= high:
            self.refuse(f"an integer from {low} to {high}")
        return int(value)

    def number(self) -> float:
        """Return this finite number, also where the file has it as a text."""
        value = self.value
        if isinstance(value, str):
            value = number_of(value)
        if type(value) not in (int, float) or abs(value) > _LARGEST or value != value:
            self.refuse("a finite number")
        return float(value)

    def integers(self, length: int | None = None) -> IntArray:
        """Return this list of integers."""
        return self._array("int", np.int64, length)

    def numbers(self, length: int | None = None) -> FloatArray:
        """Return this list of numbers, NaN and infinities among them where the file has such."""
        return self._array("float", np.float64, length)

    def _array(self, kind: str, dtype: Any, length: int | None) -> npt.NDArray[Any]:
        what = f"a list of {'integers' if kind == 'int' else 'numbers'}"
        value = self.value
        if isinstance(value, np.ndarray):
            good = value.dtype.kind in ("iu" if kind == "int" else "iuf")
        else:
            # Looked at before NumPy does: it would cut fractions off, and make numbers of texts.
            good = isinstance(value, list) and set(map(type, value)) <= set(_NUMBERS[kind])
        if not good:
            self.refuse(what)
        try:
            array = np.array(value, dtype=dtype)
        except (OverflowError, ValueError):
            self.refuse(f"{what} within bounds")
        if length is not None and len(array) != length:
            raise ModelFileError(f"{self.place} must have {length} entries, got {len(array)}.")
        return array


_LARGEST = int(np.finfo(np.float64).max)  # an integer beyond becomes no float


def number_of(text: str) -> float:
    """Return the number a text says; NaN where it says none.

    Examples
    --------
    >>> from mcrank.models.imports.parts import number_of
    >>> number_of("5E-1"), number_of("1_0")
    (0.5, nan)
    """
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def shown(value: Any) -> str:
    """Return a value as a message shows it: short, and in ASCII.

    Examples
    --------
    >>> from mcrank.models.imports.parts import shown
    >>> shown([1] * 1000)
    'a list of 1000'
    """
    if isinstance(value, (list, np.ndarray)):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "an integer beyond 64 bits"
    words = ascii(value)
    return words if len(words) <= 60 else f"{words[:60]}..."


def read_json(content: bytes, where: str) -> Part:
    """Return what JSON text says; text that is none is a `ModelFileError` with its line.

    Examples
    --------
    >>> from mcrank.models.imports.parts import read_json
    >>> read_json(b'{"a": 1,\\n "a": 2}', "m.json")
    Traceback (most recent call last):
    mcrank.errors.ModelFileError: m.json has the key 'a' twice in one object.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
            raise ModelFileError(f"{where} has the key {shown(twice)} twice in one object.")
        return found

    try:
        return Part(json.loads(content, object_pairs_hook=unique), where)
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{where} is not JSON: line {error.lineno}: {error.msg}.") from None
    except RecursionError:
        raise ModelFileError(f"{where} is nested too deeply for a model.") from None
    except ValueError as error:  # not UTF-8, or an integer of thousands of digits
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{where} is not JSON: {error}.") from None


def lines_of(content: bytes, where: str) -> list[str]:
    """Return the lines of a text file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelFileError(f"{where} is not text: line {line} is not UTF-8.") from None
    control = _CONTROL.search(text)
    if control:
        line = text.count("\n", 0, control.start()) + 1
        raise ModelFileError(f"{where} is not text: line {line} has the character {control[0]!a}.")
    # Not `splitlines`, to which a name may have line ends.
    return [line.removesuffix("\r") for line in text.split("\n")]
