"""A number in a text file, as every tool would read it."""

from __future__ import annotations

import re

# Python's float() also takes digits of other scripts, underscores, and blanks of Unicode around them.
_PLAIN = re.compile(r"[ \t\v\f]*([+\-.0-9A-Za-z]+)[ \t\v\f]*")


def read_number(text: str) -> float:
    """Return the number that ``text`` spells in ASCII; ValueError when it does not.

    Examples
    --------
    >>> from mcrank.data.numbers import read_number
    >>> read_number(" -1e-3")
    -0.001
    >>> read_number("1_000")
    Traceback (most recent call last):
    ValueError: not a number: '1_000'
    """
    found = _PLAIN.fullmatch(text)
    if found is None:
        raise ValueError(f"not a number: {text!r}")
    return float(found[1])
