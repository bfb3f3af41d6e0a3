"""Kernels of the LETOR text parser: bytes in, feature values, grades and text spans out.

A chunk is a run of whole lines whose last byte is a newline, followed by some readable bytes of padding; see
`mcrank.data.decimals` for what that makes possible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint8, uint64

from mcrank.arrays import FeatureArray, FloatArray, RowArray
from mcrank.data.decimals import (
    ASK_PYTHON,
    EIGHT,
    FLOAT32_MAX,
    ONE,
    POWERS,
    SURE,
    WHOLE_POWERS,
    digits8,
    digits16,
    ends16,
    ends_word,
    is_blank,
    is_missing,
    is_space,
    newlines32,
    plain_decimal,
    points16,
    read_decimal,
    skip_blanks,
)
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import load_u64, trailing_zeros

# What `parse_lines` reports in state[STATUS].
DONE, HARD_FULL, NO_QID, NO_COLON, BAD_INDEX, LOW_INDEX, HIGH_INDEX, TWICE = range(8)
# Slots of the state array.
STATUS, POSITION, ROWS, RUNS, HARDS, LARGEST, COMMENTS, STATE_SIZE = range(8)
# The column of a hard value that is a grade.
GRADE = -1


class Form(NamedTuple):
    """How the text is to be understood."""

    first_index: int  # number of the first feature, 1 or 0
    limit: int  # largest feature index allowed
    absent: np.float32  # value of a feature that a row does not mention
    words: npt.NDArray[np.uint64]  # the text " index:" of each column in the highest bytes
    sizes: npt.NDArray[np.uint64]  # characters of each


class Rows(NamedTuple):
    """What is read from the lines."""

    X: FeatureArray  # (rows, width); features beyond width are only counted
    y: FloatArray  # grades
    runs: RowArray  # (rows, 3): first row, start and stop of the id of each run of one query
    comments: RowArray  # (rows, 2): start and stop of each row's document id
    hards: RowArray  # (any, 4): row, column or GRADE, start and stop of the words Python must read


# Words as little-endian numbers.
_QID = uint64(int.from_bytes(b"qid:", "little"))
_DOCID = uint64(int.from_bytes(b"docid", "little"))


@step()
def _index_twice(text, at, stamps, stamp):  # type: ignore[no-untyped-def]
    """Position of the first feature index that the line from ``at`` (behind its qid) holds twice, or 0."""
    p = at
    while True:
        p = skip_blanks(text, p)
        if text[p] == uint8(10) or text[p] == uint8(35):
            return uint64(0)
        start = p
        index = uint64(0)
        while text[p] != uint8(58):
            index = index * uint64(10) + uint64(uint8(text[p] - uint8(48)))
            p += ONE
        if stamps[index] == stamp:
            return start
        stamps[index] = stamp
        while not ends_word(text[p]):
            p += ONE


@step()
def _docid_span(text, start, stop):  # type: ignore[no-untyped-def]
    """The word behind ``docid =`` when the comment begins so (LETOR 3.0 and 4.0 do), else all of it."""
    if load_u64(text, start) & uint64(0xFFFFFFFFFF) != _DOCID:
        return start, stop
    p = start + uint64(5)
    p = skip_blanks(text, p)
    if text[p] != uint8(61):
        return start, stop
    p += ONE
    p = skip_blanks(text, p)
    after = p
    while after < stop and not is_blank(text[after]):
        after += ONE
    if after == p:
        return start, stop
    return p, after


@kernel()
def count_rows(text, stop):  # type: ignore[no-untyped-def]
    """Lines of the chunk that hold more than blanks and a comment, and all its lines."""
    rows = 0
    lines = 0
    p = uint64(0)
    end = uint64(stop)
    while p < end:
        lines += 1
        p = skip_blanks(text, p)
        if text[p] != uint8(10) and text[p] != uint8(35):
            rows += 1
        while True:
            found = newlines32(text, p)
            if found != uint64(0):
                p += trailing_zeros(found) + ONE
                break
            p += uint64(32)
    return rows, lines


@njit(nogil=True, inline="always")
def _short_decimal(text, at):  # type: ignore[no-untyped-def]
    """Read a plain decimal of at most 7 digits on each side of the point: (end or 0, value)."""
    first = uint8(text[at] - uint8(48))
    if text[at + ONE] == uint8(32) and first <= uint8(9):
        # One digit: about half of all values.
        return at + ONE, np.float64(np.int64(first))
    negative = text[at] == uint8(45)
    p = at + uint64(negative)
    count, whole = digits8(load_u64(text, p))
    plain = count - ONE < uint64(7)
    p += count
    number = np.float64(np.int64(whole))
    if text[p] == uint8(46):
        count, part = digits8(load_u64(text, p + ONE))
        p += count + ONE
        mantissa = np.int64(whole * WHOLE_POWERS[count] + part)
        number = np.float64(mantissa) / POWERS[count]
    if plain and count < EIGHT and is_space(text[p]):
        return p, -number if negative else number
    return uint64(0), 0.0


@step()
def _value(text, at):  # type: ignore[no-untyped-def]
    """Read any value of a feature: (end, value, certainty)."""
    p, number = _short_decimal(text, at)
    if p != uint64(0):
        return p, number, SURE
    p, number, certainty = read_decimal(text, at)
    if certainty == ASK_PYTHON and is_missing(text, at, p):
        return p, np.nan, SURE
    if abs(number) > FLOAT32_MAX:
        certainty = ASK_PYTHON
    return p, number, certainty


@step()
def _next_columns(text, at, words, sizes, first, features):  # type: ignore[no-untyped-def]
    """Read pairs for as long as they are those of the next columns, from ``first`` on: (end, columns so far).

    Files with every feature are read here: one comparison with the text that must come takes the place of
    reading an index, and plain decimals are converted without a branch on their length. Any other value ends
    it. No array is passed on inside the loop, not even to an inlined function that returns
    early: counting the references to it would cost as much as the rest.
    """
    p = at
    column = first
    while column < uint64(len(words)):
        size = sizes[column]
        if load_u64(text, p) << (uint64(64) - (size << uint64(3))) != words[column]:
            break
        start = p + size
        ends = ends16(text, start)
        count = trailing_zeros(ends)
        digit = uint8(text[start] - uint8(48))
        if count == ONE and digit <= uint8(9):
            # One digit: about half of all values.
            features[column] = np.float32(digit)
            p = start + ONE
            column += ONE
            continue
        # Of the 16 bits, the one of the end and those of the characters before it.
        end_bit = ends & (~ends + ONE)
        inside = end_bit - ONE
        negative = uint64(text[start] == uint8(45))
        points = points16(text, start) & inside
        strange = (inside & ~(digits16(text, start) | points | negative)) | (points & (points - ONE))
        if ends == uint64(0) or strange != uint64(0):
            break
        point = trailing_zeros(points | end_bit)
        whole = point - negative
        part = count - point - uint64(points != uint64(0))
        if whole - ONE > uint64(6) or part > uint64(7):
            break
        end = start + count
        number = plain_decimal(load_u64(text, start + negative), load_u64(text, end - EIGHT), whole, part)
        features[column] = np.float32(-number if negative != uint64(0) else number)
        p = end
        column += ONE
    return p, column


@step()
def _features(text, at, form, row, features, hards, hard):  # type: ignore[no-untyped-def]
    """Read the pairs of a row: (end, status, hard values so far, columns filled, whether in rising order)."""
    first_index, limit, absent, words, sizes = form
    low, high = uint64(first_index), uint64(limit)
    width = uint64(len(features))
    p, filled = _next_columns(text, at, words, sizes, uint64(0), features)
    previous = filled
    rising = True
    while True:
        p = skip_blanks(text, p)
        c = text[p]
        if c == uint8(10) or c == uint8(35):
            break
        start = p
        index = uint64(0)
        while uint8(c - uint8(48)) <= uint8(9):
            index = index * uint64(10) + uint64(uint8(c - uint8(48)))
            p += ONE
            c = text[p]
        if c != uint8(58) or p == start:
            return start, BAD_INDEX if p == start or not ends_word(c) else NO_COLON, hard, filled, rising
        if index < low or index > high or p - start > uint64(18):
            return start, LOW_INDEX if index < low else HIGH_INDEX, hard, filled, rising
        column = index - low
        rising = rising and column >= previous
        previous = column + ONE
        while filled < column and filled < width:
            features[filled] = absent
            filled += ONE
        filled = max(filled, previous)
        start = p + ONE
        p, value, certainty = _value(text, start)
        if certainty == ASK_PYTHON:
            if hard == len(hards):
                return start, HARD_FULL, hard, filled, rising
            hards[hard, 0], hards[hard, 1], hards[hard, 2], hards[hard, 3] = row, column, start, p
            hard += 1
        if column < width:
            features[column] = np.float32(value)
        if not rising or filled >= uint64(len(words)):
            continue
        if load_u64(text, p) << (uint64(64) - (sizes[filled] << uint64(3))) == words[filled]:
            p, filled = _next_columns(text, p, words, sizes, filled, features)
            previous = filled
    while filled < width:
        features[filled] = absent
        filled += ONE
    return p, DONE, hard, filled, rising


@step()
def _query(text, at, id_start, id_size):  # type: ignore[no-untyped-def]
    """Read ``qid:`` and the id: (end, start of the id or 0 if there is none, whether it is the given id)."""
    if load_u64(text, at) & uint64(0xFFFFFFFF) != _QID or ends_word(text[at + uint64(4)]):
        return at, uint64(0), False
    start = at + uint64(4)
    p = start
    same = True
    while not ends_word(text[p]):
        offset = p - start
        same = same and offset < id_size and text[p] == text[id_start + offset]
        p += ONE
    return p, start, same and p - start == id_size


@step()
def _comment(text, at):  # type: ignore[no-untyped-def]
    """The rest of a line from its newline or '#' on: (end, start and stop of the document id)."""
    if text[at] == uint8(10):
        return at + ONE, uint64(0), uint64(0)
    start = skip_blanks(text, at + ONE)
    p = start
    while text[p] != uint8(10):
        p += ONE
    stop = p
    while stop > start and is_blank(text[stop - ONE]):
        stop -= ONE
    start, stop = _docid_span(text, start, stop)
    return p + ONE, start, stop


@kernel()
def parse_lines(text, stop, form, stamps, rows, state):  # type: ignore[no-untyped-def]
    """Parse lines from state[POSITION] on until the chunk's end, an error, or too many hard values."""
    # IN: text (uint8, the chunk and its padding), stop (bytes of the chunk), form, stamps (int64 scratch of
    #     limit + 1 zeros, to find repeated indices)
    # OUT: rows; state, which is also IN when resumed after HARD_FULL: see the slots
    X, y, runs, comments, hards = rows
    p, end = uint64(state[POSITION]), uint64(stop)
    row, run, largest = state[ROWS], state[RUNS], uint64(state[LARGEST])
    hard, status = 0, DONE
    id_start, id_size = uint64(0), uint64(0)
    if run > 0:
        id_start, id_size = uint64(runs[run - 1, 1]), uint64(runs[run - 1, 2] - runs[run - 1, 1])
    while p < end:
        line = p
        p = skip_blanks(text, p)
        if text[p] == uint8(10) or text[p] == uint8(35):
            p, _, _ = _comment(text, p)
            continue
        if hard == len(hards):
            status, p = HARD_FULL, line
            break
        hard_before = hard
        start = p
        p, y[row], certainty = read_decimal(text, p)
        if certainty != SURE:
            hards[hard, 0], hards[hard, 1], hards[hard, 2], hards[hard, 3] = row, GRADE, start, p
            hard += 1
        p, start, same = _query(text, skip_blanks(text, p), id_start, id_size)
        if start == uint64(0):
            status = NO_QID
            break
        pairs, id_stop = p, p
        p, status, hard, filled, rising = _features(text, p, form, row, X[row], hards, hard)
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


@kernel()
def gather_spans(text, spans, out):  # type: ignore[no-untyped-def]
    """Copy the spans (start, stop) of ``text`` into ``out`` with a newline behind each."""
    size = 0
    for i in range(len(spans)):
        for at in range(spans[i, 0], spans[i, 1]):
            out[size] = text[at]
            size += 1
        out[size] = 10
        size += 1
