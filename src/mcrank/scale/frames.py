"""What places of a training send each other: a head that says which number it is of what, and plain numbers.

No pickle, and nothing is believed: every frame must have the turn, kind, type and length that this step of
the training asks for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from mcrank.arrays import Array

_MAGIC = b"mcr1"
# Magic, kind, type of the numbers, sender, turn, how many numbers.
_HEAD = struct.Struct("<4sBBHQQ")
HEAD_BYTES = _HEAD.size
TYPES = [
    np.dtype(name) for name in ("u1", "i4", "i8", "u8", "f4", "f8")
]  # a machine of the other byte order is refused by its magic turn number
KINDS = ("add", "most", "least", "gather", "exchange", "scatter", "agree")
MOST_NUMBERS = 2**36  # of one frame, whose length is not known beforehand


class PeerLost(ConnectionError):
    """Another place of the training is gone, silent, or sends what it should not.

    Attributes
    ----------
    rank : int
        Which place.
    """

    def __init__(self, rank: int, words: str) -> None:
        super().__init__(rank, words)
        self.rank, self.words = rank, words

    def __str__(self) -> str:
        return f"place {self.rank} {self.words}"


class Frame(NamedTuple):
    """What goes to one place: its head, and the bytes of its numbers."""

    head: bytes
    body: memoryview


# Called with a rank and the head of its frame: room for the bytes that follow, or PeerLost.
Room = Callable[[int, bytes], memoryview]


class Carrier(Protocol):
    """What brings frames to the other places.

    Attributes
    ----------
    rank, size : int
        Number of this place, and how many there are.
    waited : list of float
        Seconds in which each place was the last one waited for.
    """

    rank: int
    size: int
    waited: list[float]

    def exchange(self, frames: Sequence[Frame | None], room: Room) -> None:
        """Give each other place its frame, and take one from each."""

    def close(self) -> None:
        """Let go of the others."""


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, writable if it is."""
    return array.reshape(-1).view(np.uint8).data


def frame(kind: str, sender: int, turn: int, array: Array) -> Frame:
    """Return an array as a frame."""
    code = TYPES.index(array.dtype)
    head = _HEAD.pack(_MAGIC, KINDS.index(kind), code, sender, turn, array.size)
    return Frame(head, bytes_of(np.ascontiguousarray(array)))


def opened(
    head: bytes,
    kind: str,
    sender: int,
    turn: int,
    dtype: np.dtype[Any],
    count: int | None,
    kept: Array | None = None,
) -> Array:
    """Return room for the numbers behind a head, or raise `PeerLost` where it is not the one expected.

    ``kept`` is the room of a frame before, which is taken again where this one is as long.
    """
    magic, found_kind, code, found_sender, found_turn, found = _HEAD.unpack(head)
    expected = (_MAGIC, KINDS.index(kind), TYPES.index(dtype), sender, turn)
    if (magic, found_kind, code, found_sender, found_turn) != expected:
        raise PeerLost(
            sender,
            f"sent a frame {(magic, found_kind, code, found_sender, found_turn)} where {expected} (magic, "
            f"kind, type, sender, turn) was due",
        )
    if found != count if count is not None else found > MOST_NUMBERS:
        raise PeerLost(sender, f"sent {found} numbers in a frame of {kind}, {count or MOST_NUMBERS} were due")
    again = kept is not None and kept.dtype == dtype and len(kept) == found
    return kept if kept is not None and again else np.empty(found, dtype=dtype)
