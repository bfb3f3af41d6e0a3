"""Stable partition of a node's rows by a split.

Rows keep their order, so a leaf's rows are in ascending order and updating their scores walks memory
forwards.

Entries have room for twice the rows. A node's rows lie in one half, and as much of the other half is its own
to use: the left child stays in place, the right child goes to the other half, and nothing is copied back. How
many go left is known afterwards; then what was left free is shared out.
"""

from __future__ import annotations

from numba import int64, njit, uint64

from mcrank.kernels import kernel, step


@njit(inline="always")
def _goes_left(label, cut, skip):  # type: ignore[no-untyped-def]
    return uint64(uint64(label) - uint64(skip) <= uint64(cut - skip))


@njit(inline="always")
def _entry(row, gradient):  # type: ignore[no-untyped-def]
    return int64((row << uint64(32)) | (uint64(gradient) & uint64(0xFFFFFFFF)))


@step()
def partition(column, cut, skip, begin, end, right, entries):  # type: ignore[no-untyped-def]
    """Keep entries whose bin is in ``skip..cut`` at the front, in order; write the others from ``right`` on.
    Return how many were kept.

    ``skip`` is 1 when bin 0 holds missing values that go right: subtracting it in unsigned arithmetic moves
    bin 0 past every other, so one comparison decides.
    """
    # IN: column, cut, skip, begin, end, right  OUT: entries
    left = uint64(begin)
    right = uint64(right)
    for i in range(uint64(begin), uint64(end)):
        entry = entries[i]
        goes = _goes_left(column[uint64(entry) >> uint64(32)], cut, skip)
        entries[left if goes else right] = entry
        left += goes
        right += uint64(1) - goes
    return int64(left) - begin


@njit(inline="always")
def partition_root(column, cut, skip, gradients, right, entries):  # type: ignore[no-untyped-def]
    """`partition` of all rows, making their entries on the way: the root itself needs none."""
    # IN: column, cut, skip, gradients, right  OUT: entries
    left = uint64(0)
    right = uint64(right)
    for i in range(uint64(len(gradients))):
        entry = _entry(i, gradients[i])
        goes = _goes_left(column[i], cut, skip)
        entries[left if goes else right] = entry
        left += goes
        right += uint64(1) - goes
    return int64(left)


@kernel("void(int32[::1], int64[::1], int64[::1])")
def fill_entries(gradients, rows, entries):  # type: ignore[no-untyped-def]
    """Entries of ``rows`` (or, when that is empty, of all rows) from an output's gradients."""
    # IN: gradients, rows  OUT: entries
    chosen = len(rows) > 0
    for i in range(len(rows) if chosen else len(gradients)):
        row = uint64(rows[i]) if chosen else uint64(i)
        entries[i] = _entry(row, gradients[row])
