"""`Mesh`: the `Sums` of places that send each other frames; what carries them is another's business."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mcrank.arrays import Array, FloatArray, IntArray
from mcrank.scale.frames import Carrier, frame, opened


class Mesh:
    """Adds up what several places of a training have; every place has one, over a carrier of its own.

    Histograms are reduced where they are wanted: each place gets the counters of the features it searches,
    adds them up, and only the records of the best splits go to everybody.

    Parameters
    ----------
    carrier : Carrier
        Brings frames to the others.

    Attributes
    ----------
    cpu : float
        Processor seconds that sending, taking and adding up have cost.

    Examples
    --------
    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from mcrank.scale.mesh import Mesh
    >>> from mcrank.scale.sockets import pairs
    >>> with ThreadPoolExecutor(3) as pool:
    ...     meshes = [Mesh(carrier) for carrier in pairs(3)]
    ...     found = list(pool.map(lambda mesh: mesh.add(np.array([mesh.rank, 1])), meshes))
    >>> [each.tolist() for each in found]
    [[3, 3], [3, 3], [3, 3]]
    >>> for mesh in meshes:
    ...     mesh.close()
    """

    def __init__(self, carrier: Carrier) -> None:
        self.rank, self.size = carrier.rank, carrier.size
        self._carrier = carrier
        self._turn, self.cpu = 0, 0.0
        # Room for histograms from each rank, and to it: new pages cost more than bytes.
        self._kept: dict[int, Array] = {}
        self._leaving: dict[int, Array] = {}

    @property
    def waited(self) -> list[float]:
        """Seconds in which each place was the last one waited for."""
        return self._carrier.waited

    def close(self) -> None:
        """Let go of the others."""
        self._carrier.close()

    def add(self, values: IntArray) -> IntArray:
        """Return the sum of everybody's integers."""
        found = self._everyones("add", np.asarray(values, dtype=np.int64), same=True)
        return np.asarray(sum(found[1:], start=found[0])).reshape(np.shape(values))

    def most(self, value: float) -> float:
        """Return the largest of everybody's numbers."""
        return max(float(x[0]) for x in self._everyones("most", np.array([value], np.float64), same=True))

    def least(self, values: FloatArray) -> FloatArray:
        """Return, place by place, the smallest of everybody's numbers, none of which is NaN."""
        found = self._everyones("least", np.asarray(values, dtype=np.float64), same=True)
        return np.asarray(np.minimum.reduce(found))

    def gather(self, values: Array) -> list[Array]:
        """Return everybody's numbers (one dimension, one type, any length), in the order of their ranks."""
        return self._everyones("gather", values, same=False)

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        """Give ``parts[r]`` to each rank ``r``; return what everybody gave this one."""
        return self._exchange("exchange", parts, None)

    def scatter(self, hists: IntArray, cuts: list[int]) -> IntArray:
        """Return sums of everybody's histograms, where counters ``cuts[rank]:cuts[rank + 1]`` are wanted."""
        began = time.thread_time()
        runs = [
            self._copied(rank, hists[:, a:b]) if rank != self.rank else hists[:0]  # what is here stays
            for rank, (a, b) in enumerate(pairwise(cuts))
        ]
        own = hists[:, cuts[self.rank] : cuts[self.rank + 1]]
        found = self._exchange("scatter", runs, own.size)
        for rank, part in enumerate(found):
            if rank != self.rank:
                own += part.reshape(own.shape)
        self.cpu += time.thread_time() - began
        return hists

    def _copied(self, rank: int, part: Array) -> Array:
        """What goes to a rank, in one piece; the room is free again when the exchange is over."""
        room = self._leaving.get(rank)
        if room is None or room.dtype != part.dtype or room.size < part.size:
            room = self._leaving[rank] = np.empty(part.size, dtype=part.dtype)
        copied = room[: part.size].reshape(part.shape)
        np.copyto(copied, part)
        return copied

    def agree(self, found: Array) -> Array:
        """Return, for each node, the record of the best split anybody found; of equals the lowest rank's."""
        everyones = self._everyones("agree", found.view(np.uint8), same=True)
        # Rows of bytes: to stack or choose records, NumPy goes through their fields, which takes longer than
        # the frames do.
        records = [part.reshape(len(found), -1) for part in everyones]
        first, *others = [part.view(found.dtype)["terms"] for part in everyones]
        best, most = records[0].copy(), first.copy()
        for theirs, terms in zip(records[1:], others, strict=True):
            better = terms > most
            if better.any():
                best[better] = theirs[better]
                most[better] = terms[better]
        return best.reshape(-1).view(found.dtype)

    def _everyones(self, kind: str, values: Array, *, same: bool) -> list[Array]:
        began, flat = time.thread_time(), np.ascontiguousarray(values).reshape(-1)
        found = self._exchange(kind, [flat] * self.size, flat.size if same else None)
        self.cpu += time.thread_time() - began
        return found

    def _exchange(self, kind: str, parts: Sequence[Array], count: int | None) -> list[Array]:
        """Send ``parts[r]`` to each rank; frames must have so many numbers (None: any) of the same type."""
        self._turn += 1
        found: list[Any] = [None] * self.size
        found[self.rank] = parts[self.rank]
        dtype = found[self.rank].dtype

        def room(rank: int, head: bytes) -> memoryview:
            kept = self._kept.get(rank) if kind == "scatter" else None
            found[rank] = opened(head, kind, rank, self._turn, dtype, count, kept)
            if kind == "scatter":
                self._kept[rank] = found[rank]
            return found[rank].view(np.uint8).data  # type: ignore[no-any-return]

        frames = [
            None if rank == self.rank else frame(kind, self.rank, self._turn, part)
            for rank, part in enumerate(parts)
        ]
        self._carrier.exchange(frames, room)
        return found
