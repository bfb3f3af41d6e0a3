"""Sorting inside kernels: rows by falling score, equal scores in a given order; many short lists at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.kernels.declare import step
from mcrank.kernels.largest import KEY_LANES


class SortSpace(NamedTuple):
    """Scratch to sort the rows of one query at a time in."""

    key_a: FloatArray
    key_b: FloatArray
    row_a: RowArray
    row_b: RowArray
    place: npt.NDArray[np.uint32]
    bits: IntArray  # with room for whole vectors

    @classmethod
    def allocate(cls, longest: int) -> SortSpace:
        """Return scratch for queries of up to ``longest`` rows."""
        keys, rows = np.empty((2, longest)), np.empty((2, longest), dtype=np.int32)
        bits = np.empty(-(-longest // KEY_LANES) * KEY_LANES, dtype=np.int64)
        return cls(keys[0], keys[1], rows[0], rows[1], np.empty(longest, dtype=np.uint32), bits)


@step()
def merge_rows(scores, base, s, n, space, order):  # type: ignore[no-untyped-def]
    """Sort ``n`` rows of one query by score: a stable merge sort whose inner step has no branch."""
    # IN: scores, base (empty: file order), s, n  OUT: space (such as `SortSpace`), order[s:s + n]
    key_a, key_b, row_a, row_b = space.key_a, space.key_b, space.row_a, space.row_b
    for i in range(n):
        row_a[i] = base[s + i] if base.shape[0] > 0 else s + i
        key_a[i] = scores[row_a[i]]
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            mid = min(low + width, n)
            high = min(low + 2 * width, n)
            i, j = low, mid
            for o in range(low, high):
                # Beyond an end the other side is taken; in between a tie keeps the left row first.
                left = key_a[min(i, n - 1)]
                right = key_a[min(j, n - 1)]
                later = j < high and (i >= mid or right > left)
                key_b[o] = right if later else left
                row_b[o] = row_a[min(j, n - 1)] if later else row_a[min(i, n - 1)]
                j += later
                i += not later
        key_a, key_b = key_b, key_a
        row_a, row_b = row_b, row_a
        width *= 2
    for i in range(n):
        order[s + i] = row_a[i]


@step(fastmath={"nnan", "nsz"})
def insert_rows(key, ranked):  # type: ignore[no-untyped-def]
    """Sort the rows of one query by insertion, which is quick where few are out of place; stable."""
    # IN and OUT: key (from its start), ranked
    last = key[0]
    for i in range(1, ranked.shape[0]):
        value = key[i]
        if last < value:
            row = ranked[i]
            j = i
            while j > 0 and key[j - 1] < value:
                key[j] = key[j - 1]
                ranked[j] = ranked[j - 1]
                j -= 1
            key[j] = value
            ranked[j] = row
        else:
            last = value


@step()
def sort_columns(table, n, lanes):  # type: ignore[no-untyped-def]
    """Sort each column of a table with Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M).

    Which rows are compared does not depend on what they hold, so all columns go through it together: the
    innermost loop runs along whole rows, has no branch, and becomes vector instructions.
    """
    # IN: n (rows, at least 1), lanes (columns), both unsigned  OUT: table (row after row)
    one = np.uint64(1)
    half = one
    while half + half < n:
        half += half
    p = half
    while p > np.uint64(0):
        q = half
        first = np.uint64(0)
        apart = p
        while True:
            # Of each 2 p rows, p in a row are compared with those ``apart`` below them.
            i = first
            while i + apart < n:
                gap = apart * lanes
                for at in range(i * lanes, min(i + p, n - apart) * lanes):
                    upper = table[at]
                    lower = table[at + gap]
                    table[at] = min(upper, lower)
                    table[at + gap] = max(upper, lower)
                i += p + p
            if q == p:
                break
            apart = q - p
            q >>= one
            first = p
        p >>= one
