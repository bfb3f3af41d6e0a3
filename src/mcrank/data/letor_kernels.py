"""Kernels of the LETOR text parser: bytes in, feature values, grades and text spans out.

A chunk is a run of whole lines whose last byte is a newline, followed by some readable bytes of padding.
Every scan therefore ends at a newline without asking for the length, and eight bytes can be loaded anywhere.

Numbers. Most values have at most 7 digits on each side of the point: each side is one 8-byte load, its digits
are counted and converted without a loop, and one correctly rounded division gives the double. Up to 19 digits
and moderate exponents go through `_decimal`, which knows when its result is certain. What is left (a few in
a million, and every spelling that is not a plain decimal) is handed back to Python, whose float() is the
reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint8, uint64
from numba.core import cgutils
from numba.extending import intrinsic

# What `parse_lines` reports in state[STATUS].
DONE, HARD_FULL, NO_QID, NO_COLON, BAD_INDEX, LOW_INDEX, HIGH_INDEX, TWICE = range(8)
# Slots of the state array.
STATUS, POSITION, ROWS, RUNS, HARDS, LARGEST, COMMENTS, STATE_SIZE = range(8)
# The column of a hard value that is a grade.
GRADE = -1
# How sure `_decimal` is of its value.
ASK_PYTHON, SURE_AS_FLOAT32, SURE = range(3)

# 10 ** 0 .. 10 ** 22 are exact doubles; the others are correctly rounded (Python's own literals).
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_WHOLE = np.array([10**k for k in range(8)], dtype=np.uint64)
_EXACT = uint64(1 << 53)
# Far above the error of a few roundings in double, far below the spacing of float32.
_SLACK = 2.0**-48
_FLOAT32_MAX = float(np.finfo(np.float32).max)

_ONE, _EIGHT = uint64(1), uint64(8)
_ZEROS = uint64(0x3030303030303030)
_OVER_NINE = uint64(0x7676767676767676)
_HIGH_BITS = uint64(0x8080808080808080)
_LOW_BITS = uint64(0x0101010101010101)
_NEWLINES = uint64(0x0A0A0A0A0A0A0A0A)
_LOWER_CASE = uint64(0x2020202020202020)
_PAIRS = uint64(0x000000FF000000FF)
_SCALE_HIGH = uint64(0x000F424000000064)
_SCALE_LOW = uint64(0x0000271000000001)
# Words as little-endian numbers.
_QID = uint64(int.from_bytes(b"qid:", "little"))
_NAN = uint64(int.from_bytes(b"nan", "little"))
_NULL = uint64(int.from_bytes(b"null", "little"))
_DOCID = uint64(int.from_bytes(b"docid", "little"))


def _emit_load8(typing_context: Any, text: Any, at: Any) -> Any:
    """Eight bytes of ``text`` from ``at`` on as one number, the first byte lowest; no alignment needed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(text, types.uint64), generate


def _emit_trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate


_load8: Any = intrinsic(_emit_load8)
_trailing_zeros: Any = intrinsic(_emit_trailing_zeros)


@njit(nogil=True, cache=True, inline="always")
def _digits8(word):  # type: ignore[no-untyped-def]
    """How many of the 8 characters are leading digits (8 if all), and their value when fewer than 8."""
    digits = word ^ _ZEROS
    count = _trailing_zeros(((digits + _OVER_NINE) | digits) & _HIGH_BITS) >> uint64(3)
    # Shift the digits to the top, so that zeros stand in front; in two steps, as count may be 0.
    value = (digits << ((uint64(7) - (count & uint64(7))) << uint64(3))) << _EIGHT
    value = value * uint64(10) + (value >> _EIGHT)
    value = ((value & _PAIRS) * _SCALE_HIGH + ((value >> uint64(16)) & _PAIRS) * _SCALE_LOW) >> uint64(32)
    return count, value


@njit(nogil=True, cache=True, inline="always")
def _is_blank(c):  # type: ignore[no-untyped-def]
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13) and c != uint8(10))


@njit(nogil=True, cache=True, inline="always")
def _is_space(c):  # type: ignore[no-untyped-def]
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13))


@njit(nogil=True, cache=True, inline="always")
def _ends_word(c):  # type: ignore[no-untyped-def]
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13)) or c == uint8(35)


@njit(nogil=True, cache=True, inline="always")
def _skip_blanks(text, at):  # type: ignore[no-untyped-def]
    p = at
    while _is_blank(text[p]):
        p += _ONE
    return p


@njit(nogil=True, cache=True)
def _decimal(text, at):  # type: ignore[no-untyped-def]
    """Read a plain decimal: (end, value, certainty).

    SURE: the value is the correctly rounded double. SURE_AS_FLOAT32: its rounding to float32 is right, itself
    it may be off in the last bit. The end is that of the word in any case.
    """
    p = at
    negative = text[p] == uint8(45)
    if negative or text[p] == uint8(43):
        p += _ONE
    first = p
    mantissa = uint64(0)
    while uint8(text[p] - uint8(48)) <= uint8(9):
        mantissa = mantissa * uint64(10) + uint64(uint8(text[p] - uint8(48)))
        p += _ONE
    digits = p - first
    fraction = uint64(0)
    if text[p] == uint8(46):
        p += _ONE
        first = p
        while uint8(text[p] - uint8(48)) <= uint8(9):
            mantissa = mantissa * uint64(10) + uint64(uint8(text[p] - uint8(48)))
            p += _ONE
        fraction = p - first
        digits += fraction
    plain = digits > uint64(0) and digits <= uint64(19)
    power = np.int64(0)
    if text[p] == uint8(101) or text[p] == uint8(69):
        p += _ONE
        down = text[p] == uint8(45)
        if down or text[p] == uint8(43):
            p += _ONE
        first = p
        while uint8(text[p] - uint8(48)) <= uint8(9):
            power = power * 10 + np.int64(uint8(text[p] - uint8(48)))
            p += _ONE
        plain = plain and p > first and p - first <= uint64(4)
        if down:
            power = -power
    if not _ends_word(text[p]):
        plain = False
        while not _ends_word(text[p]):
            p += _ONE
    if not plain:
        return p, 0.0, ASK_PYTHON
    value, certainty = _scaled(mantissa, power - np.int64(fraction))
    return p, (-value if negative else value), certainty


@njit(nogil=True, cache=True)
def _scaled(mantissa, power):  # type: ignore[no-untyped-def]
    """``mantissa * 10 ** power`` with its certainty, see `_decimal`."""
    if mantissa == uint64(0):
        return 0.0, SURE
    value = np.float64(mantissa)
    size = -power if power < 0 else power
    if size > 308:
        return 0.0, ASK_PYTHON
    value = value / _POWERS[size] if power < 0 else value * _POWERS[size]
    if mantissa <= _EXACT and size <= 22:
        return value, SURE
    # Rounding is monotone: if both ends of an interval round to one float32, so does the true value in it.
    if value < _FLOAT32_MAX and np.float32(value * (1.0 - _SLACK)) == np.float32(value * (1.0 + _SLACK)):
        return value, SURE_AS_FLOAT32
    return 0.0, ASK_PYTHON


@njit(nogil=True, cache=True)
def _is_missing(text, at, end):  # type: ignore[no-untyped-def]
    """Whether the word is empty, NULL or nan (any case)."""
    size = end - at
    if size == uint64(0):
        return True
    word = _load8(text, at) | _LOWER_CASE
    if size == uint64(3):
        return word & uint64(0xFFFFFF) == _NAN
    return size == uint64(4) and word & uint64(0xFFFFFFFF) == _NULL


@njit(nogil=True, cache=True)
def _index_twice(text, at, stamps, stamp):  # type: ignore[no-untyped-def]
    """Position of the first feature index that the line from ``at`` (behind its qid) holds twice, or 0."""
    p = at
    while True:
        p = _skip_blanks(text, p)
        if text[p] == uint8(10) or text[p] == uint8(35):
            return uint64(0)
        start = p
        index = uint64(0)
        while text[p] != uint8(58):
            index = index * uint64(10) + uint64(uint8(text[p] - uint8(48)))
            p += _ONE
        if stamps[index] == stamp:
            return start
        stamps[index] = stamp
        while not _ends_word(text[p]):
            p += _ONE


@njit(nogil=True, cache=True)
def _docid_span(text, start, stop):  # type: ignore[no-untyped-def]
    """The word behind ``docid =`` when the comment begins so (LETOR 3.0 and 4.0 do), else all of it."""
    if _load8(text, start) & uint64(0xFFFFFFFFFF) != _DOCID:
        return start, stop
    p = start + uint64(5)
    p = _skip_blanks(text, p)
    if text[p] != uint8(61):
        return start, stop
    p += _ONE
    p = _skip_blanks(text, p)
    after = p
    while after < stop and not _is_blank(text[after]):
        after += _ONE
    if after == p:
        return start, stop
    return p, after


@njit(nogil=True, cache=True)
def count_rows(text, stop):  # type: ignore[no-untyped-def]
    """Lines of the chunk that hold more than blanks and a comment, and all its lines."""
    rows = 0
    lines = 0
    p = uint64(0)
    end = uint64(stop)
    while p < end:
        lines += 1
        p = _skip_blanks(text, p)
        if text[p] != uint8(10) and text[p] != uint8(35):
            rows += 1
        while True:
            diff = _load8(text, p) ^ _NEWLINES
            found = (diff - _LOW_BITS) & ~diff & _HIGH_BITS
            if found != uint64(0):
                p += (_trailing_zeros(found) >> uint64(3)) + _ONE
                break
            p += _EIGHT
    return rows, lines


@njit(nogil=True, cache=True)
def _value(text, at):  # type: ignore[no-untyped-def]
    """Read any value of a feature: (end, value, certainty)."""
    p, number, certainty = _decimal(text, at)
    if certainty == ASK_PYTHON and _is_missing(text, at, p):
        return p, np.nan, SURE
    if abs(number) > _FLOAT32_MAX:
        certainty = ASK_PYTHON
    return p, number, certainty


@njit(nogil=True, cache=True)
def _features(text, at, low, high, absent, row, features, hards, hard):  # type: ignore[no-untyped-def]
    """Read the pairs of a row: (end, status, hard values so far, columns filled, whether in rising order)."""
    width = uint64(len(features))
    p = at
    filled = uint64(0)
    previous = uint64(0)
    rising = True
    while True:
        p = _skip_blanks(text, p)
        c = text[p]
        if c == uint8(10) or c == uint8(35):
            break
        start = p
        index = uint64(0)
        while uint8(c - uint8(48)) <= uint8(9):
            index = index * uint64(10) + uint64(uint8(c - uint8(48)))
            p += _ONE
            c = text[p]
        if c != uint8(58) or p == start:
            return start, BAD_INDEX if p == start or not _ends_word(c) else NO_COLON, hard, filled, rising
        if index < low or index > high or p - start > uint64(18):
            return start, LOW_INDEX if index < low else HIGH_INDEX, hard, filled, rising
        column = index - low
        rising = rising and column >= previous
        previous = column + _ONE
        # Fill the gap up to this column; in files with every feature there is none.
        while filled < column and filled < width:
            features[filled] = absent
            filled += _ONE
        filled = max(filled, previous)
        start = p + _ONE
        # The short plain decimal first.
        count, whole = _digits8(_load8(text, start))
        if count - _ONE < uint64(7):
            p = start + count
            number = np.float64(whole)
            if text[p] == uint8(46):
                count, part = _digits8(_load8(text, p + _ONE))
                p += count + _ONE
                number = np.float64(whole * _WHOLE[count & uint64(7)] + part) / _POWERS[count & uint64(7)]
            if count < _EIGHT and _is_space(text[p]):
                if column < width:
                    features[column] = np.float32(number)
                continue
        p, value, certainty = _value(text, start)
        if certainty == ASK_PYTHON:
            if hard == len(hards):
                return start, HARD_FULL, hard, filled, rising
            hards[hard, 0], hards[hard, 1], hards[hard, 2], hards[hard, 3] = row, column, start, p
            hard += 1
        if column < width:
            features[column] = np.float32(value)
    while filled < width:
        features[filled] = absent
        filled += _ONE
    return p, DONE, hard, filled, rising


@njit(nogil=True, cache=True)
def _query(text, at, id_start, id_size):  # type: ignore[no-untyped-def]
    """Read ``qid:`` and the id: (end, start of the id or 0 if there is none, whether it is the given id)."""
    if _load8(text, at) & uint64(0xFFFFFFFF) != _QID or _ends_word(text[at + uint64(4)]):
        return at, uint64(0), False
    start = at + uint64(4)
    p = start
    same = True
    while not _ends_word(text[p]):
        offset = p - start
        same = same and offset < id_size and text[p] == text[id_start + offset]
        p += _ONE
    return p, start, same and p - start == id_size


@njit(nogil=True, cache=True)
def _comment(text, at):  # type: ignore[no-untyped-def]
    """The rest of a line from its newline or '#' on: (end, start and stop of the document id)."""
    if text[at] == uint8(10):
        return at + _ONE, uint64(0), uint64(0)
    start = _skip_blanks(text, at + _ONE)
    p = start
    while text[p] != uint8(10):
        p += _ONE
    stop = p
    while stop > start and _is_blank(text[stop - _ONE]):
        stop -= _ONE
    start, stop = _docid_span(text, start, stop)
    return p + _ONE, start, stop


@njit(nogil=True, cache=True)
def parse_lines(  # type: ignore[no-untyped-def]
    text,  # IN: uint8, the chunk and its padding
    stop,  # IN: bytes of the chunk
    first_index,  # IN: number of the first feature, 1 or 0
    limit,  # IN: largest feature index allowed
    absent,  # IN: float32 value of a feature that a row does not mention
    stamps,  # IN: int64 scratch of limit + 1 zeros, to find repeated indices
    X,  # OUT: float32 (rows, width); features beyond width are only counted
    y,  # OUT: float64 grades
    runs,  # OUT: int32 (rows, 3): first row, start and stop of the id of each run of one query
    comments,  # OUT: int32 (rows, 2): start and stop of each row's document id
    hards,  # OUT: int32 (any, 4): row, column or GRADE, start and stop of the words Python must read
    state,  # OUT, and IN when resumed after HARD_FULL: see the slots
):
    """Parse lines from state[POSITION] on until the chunk's end, an error, or too many hard values."""
    p, end = uint64(state[POSITION]), uint64(stop)
    row, run, largest = state[ROWS], state[RUNS], uint64(state[LARGEST])
    hard, status = 0, DONE
    id_start, id_size = uint64(0), uint64(0)
    if run > 0:
        id_start, id_size = uint64(runs[run - 1, 1]), uint64(runs[run - 1, 2] - runs[run - 1, 1])
    while p < end:
        line = p
        p = _skip_blanks(text, p)
        if text[p] == uint8(10) or text[p] == uint8(35):
            p, _, _ = _comment(text, p)
            continue
        if hard == len(hards):
            status, p = HARD_FULL, line
            break
        hard_before = hard
        start = p
        p, y[row], certainty = _decimal(text, p)
        if certainty != SURE:
            hards[hard, 0], hards[hard, 1], hards[hard, 2], hards[hard, 3] = row, GRADE, start, p
            hard += 1
        p, start, same = _query(text, _skip_blanks(text, p), id_start, id_size)
        if start == uint64(0):
            status = NO_QID
            break
        pairs, id_stop = p, p
        p, status, hard, filled, rising = _features(
            text, p, uint64(first_index), uint64(limit), absent, row, X[row], hards, hard
        )
        if status == HARD_FULL:
            # Take the whole line again, with room.
            p, hard = line, hard_before
            break
        if status == DONE and not rising:
            twice = _index_twice(text, pairs, stamps, row + 1)
            if twice > uint64(0):
                status, p = TWICE, twice
        if status != DONE:
            break
        if not same:
            runs[run, 0], runs[run, 1], runs[run, 2] = row, start, id_stop
            run += 1
            id_start, id_size = start, id_stop - start
        largest = max(largest, filled)
        p, start, after = _comment(text, p)
        comments[row, 0], comments[row, 1] = start, after
        if after > start:
            state[COMMENTS] = 1
        row += 1
    state[STATUS], state[POSITION], state[ROWS], state[RUNS] = status, p, row, run
    state[HARDS], state[LARGEST] = hard, largest


@njit(nogil=True, cache=True)
def gather_spans(text, spans, out):  # type: ignore[no-untyped-def]
    """Copy the spans (start, stop) of ``text`` into ``out`` with a newline behind each."""
    size = 0
    for i in range(len(spans)):
        for at in range(spans[i, 0], spans[i, 1]):
            out[size] = text[at]
            size += 1
        out[size] = 10
        size += 1
