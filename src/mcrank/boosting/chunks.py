"""Rows cut into chunks, for threads to take: of equal size, or smaller where threads will be done."""

from __future__ import annotations

from numba import int64, njit

_UNEVEN = 4  # chunks a thread may expect; where there are fewer, they are equal


@njit(inline="always")
def chunk_of(begin, end, item, items):  # type: ignore[no-untyped-def]
    """Where one of several chunks of rows begins and ends."""
    n = end - begin
    return begin + n * item // items, begin + n * (item + 1) // items


@njit(inline="always")
def uneven_chunk_of(begin, end, item, items, threads):  # type: ignore[no-untyped-def]
    """Where one of several chunks begins and ends, of which the leader takes the first ones and its helpers
    the last: the nearer to where they will meet, the smaller they are. So who is done first waits for little.
    """
    if items < _UNEVEN * threads:
        return chunk_of(begin, end, item, items)
    n = end - begin
    low, high = _share(item, items, threads), _share(item + 1, items, threads)
    return begin + int64(n * low), end if item + 1 == items else begin + int64(n * high)


@njit(inline="always")
def part_before(item, items, threads):  # type: ignore[no-untyped-def]
    """Part of the rows in the chunks before one of `uneven_chunk_of`."""
    if items < _UNEVEN * threads:
        return float(item) / items
    return _share(item, items, threads)


@njit(inline="always")
def _share(item, items, threads):  # type: ignore[no-untyped-def]
    """Part of the rows before an item: distances from the meeting point, cubed, on both sides of it."""
    meeting = float(items) / threads
    if item <= meeting:
        return (1.0 - ((meeting - item) / meeting) ** 3) / threads
    return (1.0 + (threads - 1) * ((item - meeting) / (items - meeting)) ** 3) / threads
