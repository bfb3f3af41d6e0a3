"""Bins of the rows that are counted, taken from memory some thousand rows at a time.

The bins of up to 64 features lie in a line of memory for each row. What is counted next is asked for while
others are counted, and then copied, eight rows at a time, so that the words of each eight features lie behind
one another: in the L2 cache, from which counting reads them in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from mcrank.arrays import IntArray
from mcrank.boosting.binning import LINE, line_of, words_of
from mcrank.kernels import step
from mcrank.kernels.memory import prefetch
from mcrank.kernels.turned import turn

GATHERED = 1792  # rows gathered at a time: a quarter of what triples count before they are spread
_ASKED = 16  # rows whose words are asked for at a time, between counters that are cleared
WORDS = LINE // 8  # of a row in a line

_turn8, _turn4, _turn2 = (turn(width, GATHERED) for width in (8, 4, 2))


class Line(NamedTuple):
    """Words of some features of one line.

    Attributes
    ----------
    begin : int
        Where the line of the first row begins, in words.
    stride : int
        How far apart rows are: 8, in the last line as many words as these have there, a power of 2.
    first, words : int
        The first word of these features in a row, and how many; 0 for none.
    """

    begin: Any
    stride: Any
    first: Any
    words: Any


class Asked(NamedTuple):
    """Rows to be asked of memory while others are counted: of those in ``entries``, from ``first`` on,
    ``each`` for every eight that are counted.
    """

    lines: npt.NDArray[np.uint64]
    line: Line
    entries: IntArray
    first: Any
    each: Any


@njit(inline="always")
def row_of(entry):  # type: ignore[no-untyped-def]
    """Row of an entry."""
    return uint64(entry) >> uint64(32)


@njit(inline="always")
def words_in_line(binned, low, high):  # type: ignore[no-untyped-def]
    """The `Line` of features ``low`` up to ``high``."""
    features = len(binned.n_bins)
    n_words = max(min((high + 7) // 8, words_of(features)) - low // 8, 0)
    begin, stride = line_of(low, features, binned.columns.shape[1])
    return Line(begin, stride, low % LINE // 8, n_words)


@njit(inline="always")
def _fetch(lines, line, entry):  # type: ignore[no-untyped-def]
    """Ask for the words of a row: none lies in two lines of the cache."""
    prefetch(lines, uint64(line.begin) + row_of(entry) * uint64(line.stride))


@njit(inline="always")
def fetch_some(asked, turn):  # type: ignore[no-untyped-def]
    """Ask for the rows of one turn: a few at a time, as memory takes no more without waiting."""
    if asked.each == uint64(1):
        _fetch(asked.lines, asked.line, asked.entries[asked.first + turn])
    else:
        first = asked.first + turn * asked.each
        for k in range(first, first + asked.each):
            _fetch(asked.lines, asked.line, asked.entries[k])


@njit(inline="always")
def share_of(lines, line, entries, word, words, n):  # type: ignore[no-untyped-def]
    """What is asked for while one of some words of ``n`` rows is counted; ask at once for what does not come
    out even.
    """
    if line.words == 0:
        return Asked(lines, line, entries, uint64(0), uint64(0))
    most, turns = uint64(len(entries)), uint64(n) >> uint64(3)
    first, end = most * uint64(word) // uint64(words), most * uint64(word + 1) // uint64(words)
    each = (end - first) // max(turns, uint64(1)) if turns > uint64(0) else uint64(0)
    for k in range(first, end - each * turns):
        _fetch(lines, line, entries[k])
    return Asked(lines, line, entries, end - each * turns, each)


@step()
def begin_rows(lines, line, entries, counters):  # type: ignore[no-untyped-def]
    """Clear the counters, and meanwhile ask for the words of the first rows, which nobody has asked for."""
    # IN: lines, line, entries  OUT: counters
    n = uint64(len(entries))
    each = uint64(len(counters)) * uint64(_ASKED) // max(n, uint64(1)) + uint64(1)
    cleared = uint64(0)
    for i in range(uint64(0), n, uint64(_ASKED)):
        if line.words > 0:
            for k in range(i, min(i + uint64(_ASKED), n)):
                _fetch(lines, line, entries[k])
        counters[cleared : cleared + each] = 0
        cleared += each
    counters[cleared:] = 0


@step()
def gather(lines, line, entries, words):  # type: ignore[no-untyped-def]
    """Copy the words of a line of some rows: word k of entry i to ``words[k * GATHERED + i]``."""
    # IN: lines, line, entries  OUT: words
    base, stride, n = uint64(line.begin), uint64(line.stride), uint64(len(entries))
    i, e = uint64(0), entries
    if stride == uint64(8):
        while i + uint64(8) <= n:
            _turn8(
                lines,
                (
                    base + row_of(e[i]) * uint64(8),
                    base + row_of(e[i + uint64(1)]) * uint64(8),
                    base + row_of(e[i + uint64(2)]) * uint64(8),
                    base + row_of(e[i + uint64(3)]) * uint64(8),
                    base + row_of(e[i + uint64(4)]) * uint64(8),
                    base + row_of(e[i + uint64(5)]) * uint64(8),
                    base + row_of(e[i + uint64(6)]) * uint64(8),
                    base + row_of(e[i + uint64(7)]) * uint64(8),
                ),
                words,
                i,
            )
            i += uint64(8)
    elif stride == uint64(4):
        while i + uint64(4) <= n:
            _turn4(
                lines,
                (
                    base + row_of(e[i]) * uint64(4),
                    base + row_of(e[i + uint64(1)]) * uint64(4),
                    base + row_of(e[i + uint64(2)]) * uint64(4),
                    base + row_of(e[i + uint64(3)]) * uint64(4),
                ),
                words,
                i,
            )
            i += uint64(4)
    elif stride == uint64(2):
        while i + uint64(2) <= n:
            at = base + row_of(e[i]) * uint64(2), base + row_of(e[i + uint64(1)]) * uint64(2)
            _turn2(lines, at, words, i)
            i += uint64(2)
    while i < n:  # rows left over, and lines of one word
        at = base + row_of(e[i]) * stride
        for k in range(stride):
            words[k * uint64(GATHERED) + i] = lines[at + k]
        i += uint64(1)
