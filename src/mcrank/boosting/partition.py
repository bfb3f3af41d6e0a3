"""Stable partition of a node's rows by a split.

Rows keep their order, so a leaf's rows are in ascending order and updating their scores walks memory
forwards. A split is a table of bins: 1 where rows of a bin go left.

Entries have room for twice the rows. A node's rows lie in one half, and as much of the other half is its own
to use: the left child stays in place, the right child goes to the other half, and nothing is copied back. How
many go left is known afterwards; then what was left free is shared out. Where threads take chunks of the
rows, each must know its places before: rows that go left are counted first, and both children go to the
other half.
"""

from __future__ import annotations

from numba import int64, njit, uint64

from mcrank.kernels import kernel, step


@njit(inline="always")
def _entry(row, gradient):  # type: ignore[no-untyped-def]
    return int64((row << uint64(32)) | (uint64(gradient) & uint64(0xFFFFFFFF)))


@step()
def scatter(column, table, entries, span, to):  # type: ignore[no-untyped-def]
    """Write entries ``span[0]`` up to ``span[1]`` that go left from ``to[0]`` on and the others from
    ``to[1]`` on, in order. Return how many went left.

    Left rows may take the places they come from.
    """
    # IN: column, table, span, to  OUT: entries
    left, right = uint64(to[0]), uint64(to[1])
    for i in range(uint64(span[0]), uint64(span[1])):
        entry = entries[i]
        goes = uint64(table[uint64(column[uint64(entry) >> uint64(32)])])
        entries[left if goes else right] = entry
        left += goes
        right += uint64(1) - goes
    return int64(left) - to[0]


@step()
def scatter_root(column, table, gradients, span, to, entries):  # type: ignore[no-untyped-def]
    """`scatter` of rows, making their entries on the way: a root whose histogram is there needs none."""
    # IN: column, table, gradients, span, to  OUT: entries
    left, right = uint64(to[0]), uint64(to[1])
    for i in range(uint64(span[0]), uint64(span[1])):
        entry = _entry(i, gradients[i])
        goes = uint64(table[uint64(column[i])])
        entries[left if goes else right] = entry
        left += goes
        right += uint64(1) - goes
    return int64(left) - to[0]


@step()
def count_left(column, table, entries, span):  # type: ignore[no-untyped-def]
    """How many of the entries go left."""
    # IN: all
    count = uint64(0)
    for i in range(uint64(span[0]), uint64(span[1])):
        count += uint64(table[uint64(column[uint64(entries[i]) >> uint64(32)])])
    return int64(count)


@step()
def count_root_left(column, table, span):  # type: ignore[no-untyped-def]
    """How many of the rows go left."""
    # IN: all
    count = uint64(0)
    for i in range(uint64(span[0]), uint64(span[1])):
        count += uint64(table[uint64(column[i])])
    return int64(count)


@kernel("void(int32[::1], int64[::1], int64, int64, int64[::1])")
def fill_entries(gradients, rows, begin, end, entries):  # type: ignore[no-untyped-def]
    """Entries ``begin`` up to ``end`` of ``rows`` (or, when that is empty, of all rows) with gradients."""
    # IN: gradients, rows, begin, end  OUT: entries
    chosen = len(rows) > 0
    for i in range(begin, end):
        row = uint64(rows[i]) if chosen else uint64(i)
        entries[i] = _entry(row, gradients[row])
