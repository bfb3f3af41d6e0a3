"""Texts that come from outside: which characters a name may have, and how any text is shown on a terminal.

A name from a stranger's file may hold more than letters: an escape sequence that recolours or clears the
terminal, a character that turns the line around, half of a character that no file can hold. Names are
checked where data is made and where a model is read; whatever else is printed passes `printable`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mcrank.errors import DataError

# Control characters but for tab and line ends (spreadsheets have those in their headings), halves of
# characters, and the marks that reorder the text around them. Patterns are compiled where they are first
# used (`re` keeps them): a millisecond of every start of the command line otherwise.
_REFUSED = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
_NOT_SHOWN = "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
_NOT_SHOWN_IN_LINES = _NOT_SHOWN.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")


def check_text(text: str, what: str) -> str:
    """Return ``text``, or raise `DataError` when it has a character that no honest name has.

    Examples
    --------
    >>> from mcrank.texts import check_text
    >>> check_text("prix (€)", "the feature name")
    'prix (€)'
    >>> check_text("\\x1b[2Jbm25", "the feature name")
    Traceback (most recent call last):
    mcrank.errors.DataError: the feature name '\\x1b[2Jbm25' has the character '\\x1b'; rename it.
    """
    found = re.search(_REFUSED, text)
    if found:
        shown = ascii(text if len(text) <= 80 else text[: max(40, found.end())][-80:])
        raise DataError(f"{what} {shown} has the character {found[0]!a}; rename it.")
    return text


def check_texts(value: Any, what: str) -> None:
    """Check every text in nested lists and objects, keys as well.

    Examples
    --------
    >>> from mcrank.texts import check_texts
    >>> check_texts({"names": ["a", "b\\x00"]}, "the text")
    Traceback (most recent call last):
    mcrank.errors.DataError: the text 'b\\x00' has the character '\\x00'; rename it.
    """
    if isinstance(value, str):
        check_text(value, what)
    elif isinstance(value, dict):
        for key, entry in value.items():
            check_texts(key, what)
            check_texts(entry, what)
    elif isinstance(value, (list, tuple)):
        if all(type(entry) is str for entry in value) and not re.search(_REFUSED, "\n".join(value)):
            return  # thousands of feature names in one look
        for entry in value:
            check_texts(entry, what)


def printable(text: str, *, lines: bool = False) -> str:
    """Return ``text`` with what a terminal would act on, or could not show, written out as an escape.

    With ``lines`` it may have line ends and tabs: it is a page of our own, not a value in a line of it.

    Examples
    --------
    >>> from mcrank.texts import printable
    >>> print(printable("a\\x1b[31mb\\n"), printable("two\\nlines", lines=True))
    a\\x1b[31mb\\n two
    lines
    """
    pattern = _NOT_SHOWN_IN_LINES if lines else _NOT_SHOWN
    return re.sub(pattern, lambda match: ascii(match[0])[1:-1], text)


def unshown_as_json(text: str) -> str:
    """Return JSON text with the characters that `printable` escapes in JSON's own spelling; it says the same.

    Examples
    --------
    >>> from mcrank.texts import unshown_as_json
    >>> print(unshown_as_json('["\u202e"]'))
    ["\\u202e"]
    """
    return re.sub(_NOT_SHOWN_IN_LINES, lambda match: f"\\u{ord(match[0]):04x}", text)


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: arrays as lists, NaN and infinities as null, others as their text.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.texts import plain
    >>> plain({1: np.array([0.5, np.nan]), "kind": int})
    {'1': [0.5, None], 'kind': "<class 'int'>"}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
