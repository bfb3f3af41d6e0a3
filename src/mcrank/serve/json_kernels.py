"""Numbers of JSON straight into a matrix: the rows of a request, which are nearly all of its bytes.

`read_table` reads an array of arrays, an array of objects with the same keys in the same order, or an object
of arrays, all of one length, whose values are numbers, null or (beside keys) texts. It takes JSON and nothing
else, makes of each number the float32 that `float` and then NumPy would, and gives up at whatever it is not
sure of: the ordinary way reads the body then, or says what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint8, uint64

from mcrank.arrays import FeatureArray, IntArray
from mcrank.data.decimals import ASK_PYTHON, FLOAT32_MAX, ONE, add_digits, scaled
from mcrank.kernels import kernel
from mcrank.kernels.memory import load_u64

PADDING = 32  # zeros behind the text: up to 8 bytes are loaded anywhere, and no scan passes a zero
MOST_KEYS = 10_000
# Slots of `spans`: how many entries the outer array (or object) has, values each of them, keys, and texts;
# then start and stop of each key, quotes included; then number of its value, start and stop of each text.
OUTER, INNER, KEYS, TEXTS, FIRST_KEY = range(5)
FIRST_TEXT = FIRST_KEY + 2 * MOST_KEYS

_MISSING = np.float32(np.nan)
_NULL = uint64(int.from_bytes(b"null", "little"))
_FAILED = uint64(0)  # no value ends at the first byte of a body
_QUOTE, _COMMA, _COLON, _MINUS, _PLUS, _POINT, _ZERO = (uint8(ord(c)) for c in '",:-+.0')
_OPEN, _CLOSE, _OPEN_OBJECT, _CLOSE_OBJECT = (uint8(ord(c)) for c in "[]{}")
_SMALL_E, _LARGE_E, _SMALL_N = (uint8(ord(c)) for c in "eEn")


def room_for(size: int) -> tuple[FeatureArray, IntArray]:
    """Return values and spans for what ``size`` bytes hold: a value in every two, a text in every eight."""
    return (
        np.empty(size // 2 + 1, dtype=np.float32),
        np.empty(FIRST_TEXT + 3 * (size // 8 + 16), dtype=np.int64),
    )


@njit(inline="always")
def _skip(text: Any, at: Any) -> Any:
    """Place of the first character from ``at`` on that is no white space of JSON."""
    p = at
    while text[p] == uint8(32) or text[p] == uint8(10) or text[p] == uint8(13) or text[p] == uint8(9):
        p += ONE
    return p


@njit(inline="always")
def _is_digit(c: Any) -> Any:
    return uint8(c - _ZERO) <= uint8(9)


@njit(inline="always")
def _past_text(text: Any, at: Any) -> Any:
    """Place behind the text whose first quote is at ``at``; 0 where there is none, or one with an escape."""
    if text[at] != _QUOTE:
        return _FAILED
    p = at + ONE
    while text[p] != _QUOTE:
        if text[p] < uint8(32) or text[p] == uint8(92):
            return _FAILED
        p += ONE
    return p + ONE


@njit(inline="always")
def _is_same(text: Any, a: Any, b: Any, size: Any) -> Any:
    """Whether ``size`` bytes from ``a`` and from ``b`` on are the same."""
    done = uint64(0)
    while done + uint64(8) <= size:
        if load_u64(text, a + done) != load_u64(text, b + done):
            return False
        done += uint64(8)
    rest = size - done
    if rest == uint64(0):
        return True
    differs = load_u64(text, a + done) ^ load_u64(text, b + done)
    return differs << ((uint64(8) - rest) << uint64(3)) == uint64(0)


@njit(inline="always")
def _number(text: Any, at: Any) -> Any:
    """Read a number: (place behind it, value); the place is 0 where it is none, or not surely this one."""
    p = at
    negative = text[p] == _MINUS
    if negative:
        p += ONE
    first = p
    p, mantissa, digits = add_digits(text, p, uint64(0), uint64(0))
    if p == first or (text[first] == _ZERO and p - first > ONE):
        return _FAILED, 0.0
    whole = True
    fraction = uint64(0)
    if text[p] == _POINT:
        whole = False
        start = p + ONE
        p, mantissa, digits = add_digits(text, start, mantissa, digits)
        fraction = p - start
        if fraction == uint64(0):
            return _FAILED, 0.0
    power = np.int64(0)
    if text[p] == _SMALL_E or text[p] == _LARGE_E:
        whole = False
        p += ONE
        down = text[p] == _MINUS
        if down or text[p] == _PLUS:
            p += ONE
        start = p
        while _is_digit(text[p]) and p - start < uint64(5):
            power = power * 10 + np.int64(uint8(text[p] - _ZERO))
            p += ONE
        if p == start or p - start == uint64(5):
            return _FAILED, 0.0
        power = -power if down else power
    if digits > uint64(19):
        return _FAILED, 0.0
    value, certainty = scaled(mantissa, power - np.int64(fraction))
    if certainty == ASK_PYTHON or value > FLOAT32_MAX:
        return _FAILED, 0.0
    # -0 is the integer 0 to whoever reads JSON, -0.0 is not.
    return p, (-value if negative and not (whole and mantissa == uint64(0)) else value)


@njit(inline="always")
def _key(text: Any, at: Any, number: int, fresh: bool, spans: Any) -> Any:
    """Read a key, a new one or that of the row before, and its colon; place of the value, or 0."""
    place = FIRST_KEY + 2 * number
    if fresh:
        end = _past_text(text, at)
        if end == _FAILED or number >= MOST_KEYS:
            return _FAILED
        spans[place], spans[place + 1] = at, end
        spans[KEYS] = number + 1
    else:
        size = uint64(spans[place + 1] - spans[place])
        if not _is_same(text, at, uint64(spans[place]), size):
            return _FAILED
        end = at + size
    end = _skip(text, end)
    return _skip(text, end + ONE) if text[end] == _COLON else _FAILED


@njit(inline="always")
def _value(text: Any, at: Any, number: int, named: bool, values: Any, spans: Any) -> Any:
    """Read a value into its place; place behind it, or 0."""
    c = text[at]
    if c == _SMALL_N:
        if load_u64(text, at) & uint64(0xFFFFFFFF) != _NULL:
            return _FAILED
        values[number] = _MISSING
        return at + uint64(4)
    if c == _QUOTE and named:
        end = _past_text(text, at)
        place = FIRST_TEXT + 3 * spans[TEXTS]
        if end == _FAILED or place + 3 > spans.shape[0]:
            return _FAILED
        spans[place], spans[place + 1], spans[place + 2] = number, at, end
        spans[TEXTS] += 1
        values[number] = _MISSING
        return end
    end, value = _number(text, at)
    values[number] = np.float32(value)
    return end


@njit(inline="always")
def _entry(
    text: Any, at: Any, kind: Any, width: int, number: int, named: bool, values: Any, spans: Any
) -> Any:
    """Read an array or object whose bracket is at ``at`` and whose first value is ``number``; place behind it
    (or 0), and how many values it has: ``width``, but for the first of all.
    """
    by_name = kind == _OPEN_OBJECT
    end = _CLOSE_OBJECT if by_name else _CLOSE
    first = number == 0
    count = 0
    p = at
    while True:
        p = _skip(text, p + ONE)  # behind the bracket, or the comma
        if not first and count == width:
            return _FAILED, count
        if by_name:
            p = _key(text, p, count, first, spans)
            if p == _FAILED:
                return _FAILED, count
        p = _value(text, p, number + count, named, values, spans)
        if p == _FAILED:
            return _FAILED, count
        count += 1
        p = _skip(text, p)
        if text[p] == end:
            return (p + ONE if first or count == width else _FAILED), count
        if text[p] != _COMMA:
            return _FAILED, count


@kernel()
def read_table(text: Any, start: int, by_column: bool, values: FeatureArray, spans: IntArray) -> int:
    """Read what begins at ``start``; return the place behind it, or 0 where the ordinary way must read it.

    IN: ``text``, padded; whether an object of arrays is wanted, or an array of rows. OUT: ``values`` one
    behind the other, NaN for null and for texts; ``spans``, see `FIRST_KEY`.
    """
    p = _skip(text, uint64(start))
    if text[p] != (_OPEN_OBJECT if by_column else _OPEN):
        return 0
    end = _CLOSE_OBJECT if by_column else _CLOSE
    kind = _OPEN
    entries, width = 0, 0
    spans[:FIRST_KEY] = 0
    while True:
        p = _skip(text, p + ONE)  # behind the bracket, or the comma
        if by_column:
            p = _key(text, p, entries, True, spans)
            if p == _FAILED:
                return 0
        if entries == 0 and text[p] == _OPEN_OBJECT and not by_column:
            kind = _OPEN_OBJECT
        if text[p] != kind:
            return 0
        named = by_column or kind == _OPEN_OBJECT
        p, width = _entry(text, p, kind, width, entries * width, named, values, spans)
        if p == _FAILED:
            return 0
        entries += 1
        p = _skip(text, p)
        if text[p] == end:
            spans[OUTER], spans[INNER] = entries, width
            return int(np.int64(p + ONE))
        if text[p] != _COMMA:
            return 0
