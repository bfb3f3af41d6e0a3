"""JSON from strangers: every value counts, none is read in two ways.

orjson refuses what JSON is not (NaN, halves of characters, numbers beyond float64, nesting beyond 1,024), and
lets the last of two equal keys win without a word. A key that was dropped is a text that is missing among
those read: counting quotes finds out, in a tenth of the time that reading takes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson

from mcrank.serve.problems import BAD, Problem


def read_object(body: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object in a body, or raise `Problem`.

    Examples
    --------
    >>> from mcrank.serve.strict_json import read_object
    >>> read_object(b'{"rows": [[1, null]]}', "/rank")
    {'rows': [[1, None]]}
    >>> read_object(b'{"rows": [{"a": 1, "a": 2}]}', "/rank")
    Traceback (most recent call last):
    mcrank.serve.problems.Problem: The body of /rank has the key 'a' twice in one object; leave one out.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(BAD, f"The body of {where} is not JSON: {error}; mend it there.") from None
    if not isinstance(found, dict):
        raise Problem(BAD, f"The body of {where} must be an object, got {kind_of(found)}.")
    quotes = np.count_nonzero(np.frombuffer(body, dtype=np.uint8) == ord('"'))
    if b"\\" in body or (quotes != 2 * _keys(found) and quotes != 2 * _texts(found)):
        _refuse_twins(body, where)
    return found


def _keys(found: dict[str, Any]) -> int:
    """Keys and texts of an object and of its lists, and keys of objects in them: all texts there are, where
    rows hold numbers.
    """
    count = len(found)
    for value in found.values():
        if type(value) is list:
            kinds = list(map(type, value))
            count += kinds.count(str)
            count += sum(map(len, value)) if kinds.count(dict) == len(kinds) else 0
        else:
            count += 1 if type(value) is str else len(value) if type(value) is dict else 0
    return count


def _texts(value: Any) -> int:
    """Keys and texts in a value."""
    if isinstance(value, str):
        return 1
    if isinstance(value, dict):
        return len(value) + sum(_texts(entry) for entry in value.values() if type(entry) in _DEEPER)
    if isinstance(value, list):
        return sum(_texts(entry) for entry in value if type(entry) in _DEEPER)
    return 0


_DEEPER = (str, dict, list)


def _refuse_twins(body: bytes, where: str) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twin = next(name for name in names if names.count(name) > 1)
            raise Problem(
                BAD, f"The body of {where} has the key {twin[:80]!a} twice in one object; leave one out."
            )

    try:
        json.loads(body, object_pairs_hook=check)
    except RecursionError:
        raise Problem(BAD, f"The body of {where} is nested too deeply; make it flat.") from None


def whole(value: Any) -> Any:
    """Return a whole number as an integer, however it was written (2.0 is one in JSON); others as they are.

    So are those beyond 2^53: an integer beyond 64 bits comes as the double nearest to it, which is
    another number.

    Examples
    --------
    >>> from mcrank.serve.strict_json import whole
    >>> whole(2.0), whole(2.5), whole("x"), whole(1e22)
    (2, 2.5, 'x', 1e+22)
    """
    exact = type(value) is float and value.is_integer() and abs(value) <= 2**53
    return int(value) if exact else value


def kind_of(value: Any) -> str:
    """What JSON calls a value, for messages.

    Examples
    --------
    >>> from mcrank.serve.strict_json import kind_of
    >>> kind_of(None), kind_of([1, 2]), kind_of("x")
    ('null', 'an array of 2', "the text 'x'")
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return f"the text {value[:60]!a}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    return "an object" if isinstance(value, dict) else f"the number {value!r}"
