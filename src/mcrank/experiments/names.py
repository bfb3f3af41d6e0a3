"""Names as people give them: checked once, shown whole or shortened in the middle, never used as file names.

A system is called what its entry calls it, in any script, with any sign a terminal and a page can show. Files
get names of their own (`file_stems`), which every file system takes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from mcrank.errors import OptionError
from mcrank.texts import printable

_PLAIN_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,79}")
_RESERVED = re.compile(r"(?i)con|prn|aux|nul|com\d|lpt\d")  # devices, to Windows
_MARKS = "\u061c\u200e\u200f"  # of direction: they show nothing, and turn nothing around


def check_name(name: str, what: str) -> str:
    r"""Return a name as it is, or raise `OptionError` for one that is blank or has control characters.

    Examples
    --------
    >>> from mcrank.experiments.names import check_name
    >>> check_name("Größe ½ (v2/β)", "an entry")
    'Größe ½ (v2/β)'
    >>> check_name("a\nb", "an entry")
    Traceback (most recent call last):
    mcrank.errors.OptionError: the name 'a\nb' of an entry has the control character '\n'; choose another.
    """
    found = next((sign for sign in name if sign not in _MARKS and printable(sign) != sign), None)
    if found is not None:
        raise OptionError(f"the name {name!a} of {what} has the control character {found!a}; choose another.")
    if not name.strip():
        raise OptionError(f"the name {name!r} of {what} is blank; choose another.")
    return name


def same_name(name: str) -> str:
    """Return what two names that look the same have in common (Unicode's normal form C)."""
    return unicodedata.normalize("NFC", name)


def width(text: str) -> int:
    """Return the columns a text takes in a terminal: two for wide characters, none for marks.

    Examples
    --------
    >>> from mcrank.experiments.names import width
    >>> width("abc"), width("日本"), width("e\u0301")
    (3, 4, 1)
    """
    total = 0
    for character in text:
        if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
            continue
        total += 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
    return total


def padded(text: str, columns: int) -> str:
    """Return text filled with spaces to a number of columns."""
    return text + " " * max(0, columns - width(text))


def shortened(text: str, most: int) -> str:
    """Return text of at most ``most`` characters, its middle left out: names differ at their ends.

    Examples
    --------
    >>> from mcrank.experiments.names import shortened
    >>> shortened("a_long_feature_name_7", 11), shortened("short", 11)
    ('a_lon…ame_7', 'short')
    """
    if len(text) <= most:
        return text
    left = (most - 1) // 2
    # A mark belongs to the letter before it, which would be cut off.
    end = text[len(text) - (most - 1 - left) :].lstrip("".join(_marks(text)))
    return text[:left].rstrip() + "…" + end.lstrip()


def fitted(text: str, pixels: float, bold: bool = False) -> str:
    """Return text shortened in its middle until it takes at most ``pixels`` in a figure's 11 px letters.

    Examples
    --------
    >>> from mcrank.experiments.names import fitted
    >>> fitted("mean_of_many_features_7", 80.0), fitted("f7", 80.0)
    ('mean…res_7', 'f7')
    """
    most = len(text)
    short = text
    while most > 1 and pixels_of(short, bold) > pixels:
        most -= 1
        short = shortened(text, most)
    return short


def pixels_of(text: str, bold: bool = False) -> float:
    """Return how wide a text is at most in 11 px letters of the usual fonts (the widest is DejaVu Sans).

    Examples
    --------
    >>> from mcrank.experiments.names import pixels_of
    >>> pixels_of("iii") < pixels_of("aaa") < pixels_of("WWW") < pixels_of("日本語")
    True
    """
    return sum(_pixels(character) for character in text) * (1.13 if bold else 1.0)


def _pixels(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(character) in ("W", "F") or ord(character) > 0xFFFF:
        return 16.0
    if character in "ijlI.,:;'|! ()[]/\\-ft\"r":
        return 5.1
    return 11.2 if character in "mwMW@%…—" or ord(character) > 0x2FF else 8.7 if character.isupper() else 7.4


def _marks(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) in ("Mn", "Me", "Cf")}


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """Return a file name (without ending) for each name: one that every file system takes, never twice.

    A short name of ASCII letters and digits is its own file name. Any other, and names that differ in case
    alone, get their ASCII letters, ``~`` and a hash.

    Examples
    --------
    >>> from mcrank.experiments.names import file_stems
    >>> list(file_stems(["mcrank", "Größe (v2)", "日本"]).values())
    ['mcrank', 'gr-e-v2~f92b8bd56df68765', 'name~e83335cfe1549b3a']
    """
    given = list(dict.fromkeys(names))
    folded = [name.casefold() for name in given]
    return {
        name: name
        if _PLAIN_FILE.fullmatch(name)
        and not _RESERVED.fullmatch(name)
        and folded.count(name.casefold()) == 1
        else _hashed(name)
        for name in given
    }


def _hashed(name: str) -> str:
    slug = re.sub(r"[^a-z0-9_+]+", "-", name.lower())[:40].strip("-") or "name"
    return f"{slug}~{hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
