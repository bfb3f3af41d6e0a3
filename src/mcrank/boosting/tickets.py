"""Work that several threads share inside compiled code: items claimed by an atomic ticket.

One thread leads. It gives out a number of items, claims items itself until none are left, and then waits for
those that others have claimed; so a helper may come late, in the middle of the items, or never, and is waited
for only while it has one. The leader claims from the front and helpers from the back: an item is about the
same features or rows as that of the same number before, whose memory is in a cache of the same core.

Items take microseconds, which is less than a thread that sleeps takes to wake up. So who has to wait looks
again and again; but a thread that looks uses a core that others may need, perhaps the very thread it waits
for: after a bounded number of looks it goes to sleep, for longer and longer. And where waiting for helpers
has taken more time than what they did is worth, as others need their cores, the leader sends them home.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.kernels.memory import aligned, cpu_pause, fetch_add, load_acquire, nap, store_release, ticks

# The board, places of different writers on cache lines of their own: the ticket; items done; helpers that
# have joined; and what only the leader writes, before it gives out items: what they are about, and its own
# account: when it gave them out, how long it has waited for others and how long it would have taken for what
# they did, and whether it has sent them home.
_TICKET, _DONE, _JOINED = uint64(0), uint64(8), uint64(16)
ABOUT = 24
_GIVEN, _WAITED, _SAVED, _ALONE = range(32, 36)
_WORDS = 40
# A ticket is one word: items claimed from the back in its lowest bits, from the front above them, then the
# number of items, then whether all is over. It tells by itself whether an item exists, so nobody can claim
# one of a lot that is done.
_BITS = 20
_MASK = (1 << _BITS) - 1
_FRONT = 1 << _BITS
_OVER = 1 << 3 * _BITS
# Looks before sleeping: 10 to 50 microseconds, by the processor.
_LOOKS = 1000
_SHORTEST_NAP, _LONGEST_NAP = 50, 1000  # microseconds
_NAPS = 1  # more of them than that, a quarter of a millisecond: whoever is waited for has lost its core


def new_board() -> npt.NDArray[np.int64]:
    """Return a board without items."""
    board: npt.NDArray[Any] = aligned(_WORDS)
    return board


def end(board: npt.NDArray[np.int64]) -> None:
    """Say that there will be no more items, from Python: whatever became of the leader."""
    board[_TICKET] = _OVER


@njit(inline="always")
def say_over(board):  # type: ignore[no-untyped-def]
    """Say that there will be no more items."""
    store_release(board, _TICKET, int64(_OVER))


@njit(inline="always")
def is_over(board):  # type: ignore[no-untyped-def]
    """Whether there will be no more items."""
    return load_acquire(board, _TICKET) >= _OVER


@njit(inline="always")
def join(board):  # type: ignore[no-untyped-def]
    """Tell the leader that there is one more helper; return its number, from 1 on."""
    return fetch_add(board, _JOINED, int64(1)) + 1


@njit(inline="always")
def threads_there(board, expected):  # type: ignore[no-untyped-def]
    """Threads to cut items for: as many as are expected, or have joined."""
    return int64(1) if board[_ALONE] else max(expected, 1 + load_acquire(board, _JOINED))


@njit(inline="always")
def give_out(board, items):  # type: ignore[no-untyped-def]
    """Offer so many items; those before must be done. False when there is nobody to offer them to."""
    if board[_ALONE]:
        return False
    board[_GIVEN] = ticks()
    store_release(board, _DONE, int64(0))
    store_release(board, _TICKET, int64(items) << int64(2 * _BITS))
    return True


@njit(inline="always")
def wait_for(board, items, share):  # type: ignore[no-untyped-def]
    """Wait until all items are done, of which the leader did a share; send helpers home who do not pay."""
    before = ticks()
    if share > 0.0:
        # What the others have done, or are doing, would have taken the leader so much longer.
        board[_SAVED] += int64((before - board[_GIVEN]) * (1.0 - share) / share)
    if load_acquire(board, _DONE) == items:
        return
    looks = 0
    while load_acquire(board, _DONE) != items:
        looks = wait_a_little(looks)
    waited = ticks() - before
    board[_WAITED] += waited
    if share == 0.0:
        board[_SAVED] += waited  # the leader would have taken as long
    if looks > _LOOKS + _NAPS and board[_WAITED] > board[_SAVED]:
        board[_ALONE] = 1
        say_over(board)


def was_alone(board: npt.NDArray[np.int64]) -> bool:
    """Whether helpers were sent home because they did not pay."""
    return bool(board[_ALONE])


@njit(inline="always")
def _exists(ticket):  # type: ignore[no-untyped-def]
    return (ticket & _MASK) + ((ticket >> _BITS) & _MASK) < (ticket >> 2 * _BITS) & _MASK


@njit(inline="always")
def claim(board, leads):  # type: ignore[no-untyped-def]
    """Claim an item; -1 when there is none."""
    # Looked at first: adding when nothing is left, again and again, would run into the bits above.
    if _exists(load_acquire(board, _TICKET)):
        ticket = fetch_add(board, _TICKET, int64(_FRONT if leads else 1))
        if _exists(ticket):
            if leads:
                return (ticket >> _BITS) & _MASK
            return ((ticket >> 2 * _BITS) & _MASK) - 1 - (ticket & _MASK)
    return int64(-1)


@njit(inline="always")
def say_done(board):  # type: ignore[no-untyped-def]
    """Say that a claimed item is done."""
    fetch_add(board, _DONE, int64(1))


@njit(inline="always")
def wait_a_little(looks):  # type: ignore[no-untyped-def]
    """Between two looks; return how many there were."""
    if looks < _LOOKS:
        cpu_pause()
    else:
        nap(min(int64(_SHORTEST_NAP) << min(int64(looks - _LOOKS), int64(9)), int64(_LONGEST_NAP)))
    return looks + 1
