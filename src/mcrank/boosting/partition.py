"""The rows of nodes, and how a split parts them: by node numbers, or by lists. A split is a set of bins.

Every row has the *number* of its node, one byte: of a large node, rows that go right get a new number, a
comparison and a choice of bytes, 32 or 64 rows an instruction. That costs as much for a small node as for a
large one, so the rows of a small one are *listed* before it is split: entries with row and gradient, which
are then parted in order. Rows of a leaf are in ascending order either way. Trees of more leaves than a byte
can number, few rows, of which lists take little memory, and rows in bins of 16 bits are listed from the root
on.

Entries have room for twice the rows. A node's rows lie in one half, and as much of the other half is its own
to use: the left child stays in place, the right child goes to the other half, and nothing is copied back. How
many go left is known afterwards; then what was left free is shared out. Where threads take chunks of the
rows, each must know its places before: rows that go left are counted first, and both children go to the
other half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, njit, uint8, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import prefetch, trailing_zeros
from mcrank.kernels.picked import pick_entries, picks_fast
from mcrank.kernels.vectors import match_byte

UNLISTED = -1  # in place of where a list begins
LEFT_OUT = 255  # number of rows that take no part
MOST_NUMBERED = 255  # leaves of a tree whose rows have numbers
NUMBERED_ROWS = 65536  # of fewer rows, lists take little memory and less time
_SMALL_PART = 32  # a node of at most this part of the rows is listed before it is split
_AHEAD = 64  # entries whose bins are on their way while others are looked at
_LATER = 1024  # rows whose gradients are on their way while others are listed
_with_number = match_byte(64)


class LeafRows(NamedTuple):
    """Where the rows of each node are.

    Attributes
    ----------
    places : int64[nodes, 3]
        Of a listed node: entries from the first number up to the second are its own, and as many from the
        third on are room for them. Of another: `UNLISTED`, nothing, and the number its rows have.
    entries : int64[]
        Rows of listed nodes with their gradients.
    numbers : uint8[rows]
        Numbers of the rows; empty where all nodes are listed.
    taken : int64[1]
        How many entries are.
    """

    places: IntArray
    entries: IntArray
    numbers: ByteArray
    taken: IntArray

    @classmethod
    def allocate(cls, num_leaves: int, rows: int, listed: bool) -> LeafRows:
        """Return memory for the nodes of a tree; memory of entries is taken where they are written."""
        return cls(
            np.zeros((2 * num_leaves - 1, 3), dtype=np.int64),
            np.empty(2 * rows, dtype=np.int64),
            np.empty(0 if listed or num_leaves > MOST_NUMBERED else rows, dtype=np.uint8),
            np.zeros(1, dtype=np.int64),
        )

    def of(self, node: int) -> IntArray:
        """Rows of a leaf, ascending."""
        begin, end, number = self.places[node].tolist()
        if begin == UNLISTED:
            return np.flatnonzero(self.numbers == number)
        return np.asarray(self.entries[begin:end] >> 32)


@njit(inline="always")
def _entry(row, gradient):  # type: ignore[no-untyped-def]
    return int64((row << uint64(32)) | (uint64(gradient) & uint64(0xFFFFFFFF)))


@step()
def place_root(where, chosen, n):  # type: ignore[no-untyped-def]
    """Begin a tree on ``n`` rows, those that are ``chosen`` or (when there are none) all or none: number
    them, or say where they will be listed.
    """
    # IN: chosen, n  OUT: where
    where.taken[0] = 0
    if len(where.numbers) > 0:
        where.numbers[:] = 0 if len(chosen) == 0 and n > 0 else LEFT_OUT
        for row in chosen:
            where.numbers[row] = 0
        place_node(where.places, 0, (UNLISTED, 0, 0))
    else:
        place_node(where.places, 0, (0, n, len(where.entries) // 2))


@step()
def place_node(places, at, place):  # type: ignore[no-untyped-def]
    """Note where the rows of a node are."""
    places[at, 0], places[at, 1], places[at, 2] = place


@step()
def rows_of_node(where, at):  # type: ignore[no-untyped-def]
    """Where the rows of a node begin and end, among entries or all rows, and their number; -1 for entries."""
    if where.places[at, 0] == UNLISTED:
        return int64(0), int64(len(where.numbers)), where.places[at, 2]
    return where.places[at, 0], where.places[at, 1], int64(-1)


@step()
def number_children(where, at, left):  # type: ignore[no-untyped-def]
    """Numbers of two children: the left one keeps its parent's. Return the old and the new one."""
    old, new = where.places[at, 2], (left + 1) // 2
    place_node(where.places, left, (UNLISTED, 0, old))
    place_node(where.places, left + 1, (UNLISTED, 0, new))
    return old, new


@njit(inline="always")
def is_small(count, held):  # type: ignore[no-untyped-def]
    """Whether a node of so many rows is listed before it is split."""
    return count * _SMALL_PART <= len(held)


@step()
def list_small(where, at, count, held):  # type: ignore[no-untyped-def]
    """List the rows of a node if they are few, and say whether they are listed; ``held`` is what entries of
    all rows hold. (Of ``count`` rows, some may be in another place.)
    """
    # IN: at, count, held  OUT: where
    if where.places[at, 0] == UNLISTED and is_small(count, held):
        n, taken, half = len(held), where.taken[0], len(where.entries) // 2
        number, entries = where.places[at, 2], where.entries[taken:half]  # others' rows are in the other half
        _, found = list_rows(where.numbers, number, held, (0, n), n + 64, entries)
        place_node(where.places, at, (taken, taken + found, half + taken))
        where.taken[0] = taken + found
    return where.places[at, 0] != UNLISTED


@step()
def renumber(column, table, numbers, span, change):  # type: ignore[no-untyped-def]
    """Rows ``span[0]`` up to ``span[1]`` with number ``change[0]`` that do not go left get ``change[1]``."""
    # IN: column, table (1 for each bin that goes left), span, change  OUT: numbers
    old, new = uint8(change[0]), uint8(change[1])
    first, last, inside = int64(256), int64(-1), int64(0)
    for b in range(256):
        if table[b]:
            first, last, inside = min(first, int64(b)), int64(b), inside + 1
    some, own = column[span[0] : span[1]], numbers[span[0] : span[1]]
    if inside == last - first + 1:  # a run of bins: as wide as a bin, comparisons run on vectors
        low, high = uint8(first), uint8(last)
        for i in range(uint64(len(own))):
            goes = (some[i] < low) | (some[i] > high)
            own[i] = new if goes & (own[i] == old) else own[i]
    else:
        for i in range(uint64(len(own))):
            own[i] = new if (own[i] == old) & (table[some[i]] == 0) else own[i]


@step()
def list_rows(numbers, number, gradients, span, most, entries):  # type: ignore[no-untyped-def]
    """Entries of the rows ``span[0]`` up to ``span[1]`` that have a number, of no more than ``most`` rows;
    return the row to go on from, and how many there are. What is behind them in ``entries`` may be written
    over.
    """
    # IN: numbers, number, gradients, span, most (64 or more)  OUT: entries
    n, row, end = uint64(0), uint64(span[0]), uint64(span[1])
    byte, stop = uint8(number), uint64(most - 64)
    while row + uint64(64) <= end and n <= stop:
        found = _with_number(numbers, row, byte)
        # Where few rows have the number the processor does not see that gradients are read in order.
        later = min(row + uint64(_LATER), end - uint64(64))
        for part in range(uint64(4)):
            prefetch(gradients, later + uint64(16) * part)
        if picks_fast() and n + uint64(64) <= uint64(len(entries)):
            if found != uint64(0):
                n = pick_entries(found, row, gradients, entries, n)
        else:
            while found != uint64(0):
                i = row + trailing_zeros(found)
                entries[n] = _entry(i, gradients[i])
                n += uint64(1)
                found &= found - uint64(1)
        row += uint64(64)
    while row < end and n <= stop:
        if numbers[row] == byte:
            entries[n] = _entry(row, gradients[row])
            n += uint64(1)
        row += uint64(1)
    return int64(row), int64(n)


@njit(inline="always")
def _ask(column, entries, i, end):  # type: ignore[no-untyped-def]
    """Ask for the bin of a row some places ahead: rows of a small node lie far apart."""
    prefetch(column, uint64(entries[min(i + uint64(_AHEAD), end - uint64(1))]) >> uint64(32))


@step()
def scatter(column, table, entries, span, to):  # type: ignore[no-untyped-def]
    """Write entries ``span[0]`` up to ``span[1]`` that go left from ``to[0]`` on and the others from
    ``to[1]`` on, in order. Return how many went left.

    Left rows may take the places they come from.
    """
    # IN: column, table, span, to  OUT: entries
    left, right, end = uint64(to[0]), uint64(to[1]), uint64(span[1])
    for i in range(uint64(span[0]), end):
        _ask(column, entries, i, end)
        entry = entries[i]
        goes = uint64(table[uint64(column[uint64(entry) >> uint64(32)])])
        entries[left if goes else right] = entry
        left += goes
        right += uint64(1) - goes
    return int64(left) - to[0]


@step()
def count_left(column, table, entries, span):  # type: ignore[no-untyped-def]
    """How many of the entries go left."""
    # IN: all
    count, end = uint64(0), uint64(span[1])
    for i in range(uint64(span[0]), end):
        _ask(column, entries, i, end)
        count += uint64(table[uint64(column[uint64(entries[i]) >> uint64(32)])])
    return int64(count)


@kernel("void(int32[::1], int64[::1], int64, int64, int64[::1])")
def fill_entries(gradients, rows, begin, end, entries):  # type: ignore[no-untyped-def]
    """Entries ``begin`` up to ``end`` of ``rows`` (or, when that is empty, of all rows) with gradients."""
    # IN: gradients, rows, begin, end  OUT: entries
    chosen = len(rows) > 0
    for i in range(begin, end):
        row = uint64(rows[i]) if chosen else uint64(i)
        entries[i] = _entry(row, gradients[row])
