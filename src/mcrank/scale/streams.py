"""Frames over Dask's own connections between workers, where no other ports are open: slower, as safe as Dask.

A frame costs some half a millisecond against some hundredths over sockets of its own
(docs/results/cluster.md).
"""

from __future__ import annotations

import asyncio
import hmac
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from mcrank.scale.frames import HEAD_BYTES, Frame, PeerLost, Room
from mcrank.scale.sockets import Invitation, give_up_silent, nobody_answers

_HANDLER = "mcrank_frame"
_boxes: dict[str, _Box] = {}


class _Box:
    """Frames that have come for one training."""

    def __init__(self) -> None:
        self.frames: dict[tuple[int, int], bytes] = {}
        self.arrived = threading.Condition()

    def put(self, sender: int, number: int, frame: bytes) -> None:
        with self.arrived:
            self.frames[sender, number] = frame
            self.arrived.notify_all()

    def take(self, sender: int, number: int, seconds: float) -> bytes | None:
        with self.arrived:
            self.arrived.wait_for(lambda: (sender, number) in self.frames, seconds)
            return self.frames.pop((sender, number), None)


def _arrive(comm: Any = None, *, name: str, sender: int, number: int, frame: bytes) -> str:
    """Take a frame, in the loop of a worker; the name is a secret of the training."""
    box = _boxes.get(name)
    if box is None:
        return "unknown"
    box.put(int(sender), int(number), bytes(frame))
    return "taken"


class Streams:
    """A carrier over Dask's connections.

    Parameters
    ----------
    worker : distributed.Worker
        This place.
    workers : sequence of str
        Addresses of all places, by rank.
    invitation : Invitation
        Rank, token and limit.
    check : callable
        Asked every second of waiting; raises to stop.
    answers : callable
        Asked about a silent place, as in `Sockets`.
    """

    def __init__(
        self,
        worker: Any,
        workers: Sequence[str],
        invitation: Invitation,
        check: Callable[[], None],
        answers: Callable[[int], bool] = nobody_answers,
    ) -> None:
        self.rank, self.size = invitation.rank, len(workers)
        self.waited = [0.0] * self.size
        self._worker, self._workers, self._limit, self._check = worker, workers, invitation.limit, check
        self._joining, self._answers = invitation.joining, answers
        self._name = hmac.digest(invitation.token, b"streams", "sha256").hex()
        self._number, self._box = 0, _Box()
        _boxes[self._name] = self._box
        worker.handlers[_HANDLER] = _arrive

    def exchange(self, frames: Sequence[Frame | None], room: Room) -> None:
        """Give each other place its frame, and take one from each."""
        began = time.perf_counter()
        self._number += 1
        loop = self._worker.loop.asyncio_loop
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        sending = [asyncio.run_coroutine_threadsafe(self._send(r, frames[r]), loop) for r in others]
        for rank in others:
            frame = self._take(rank, began)
            into = room(rank, frame[:HEAD_BYTES])
            if len(frame) - HEAD_BYTES != len(into):
                raise PeerLost(rank, f"sent {len(frame)} bytes in a frame of {HEAD_BYTES + len(into)}")
            into[:] = frame[HEAD_BYTES:]
        for rank, sent in zip(others, sending, strict=True):
            try:
                sent.result(max(self._limit, self._joining))
            except (OSError, TimeoutError) as error:
                raise PeerLost(rank, f"is gone ({error})") from None
        self.waited[others[-1]] += time.perf_counter() - began

    def _take(self, rank: int, began: float) -> bytes:
        asked = began
        while True:
            frame = self._box.take(rank, self._number, 1.0)
            if frame is not None and len(frame) >= HEAD_BYTES:
                return frame
            if frame is not None:
                raise PeerLost(rank, "sent a frame without a head")
            self._check()
            # The first frame waits for the other's task to begin.
            if time.perf_counter() - asked > (self._limit if self._number > 1 else self._joining):
                give_up_silent([rank], began, self._limit, self._answers)
                asked = time.perf_counter()

    async def _send(self, rank: int, frame: Frame | None) -> None:
        """Send a frame; who has not begun yet is asked again."""
        if frame is None:
            return
        content, deadline = frame.head + frame.body, time.monotonic() + self._joining
        while time.monotonic() < deadline:
            peer = self._worker.rpc(self._workers[rank])
            try:
                handle = getattr(peer, _HANDLER)
                answer = await handle(name=self._name, sender=self.rank, number=self._number, frame=content)
                if answer == "taken":
                    return
            except (KeyError, AttributeError):
                pass  # it has no such handler before it has begun
            await asyncio.sleep(0.05)
        raise PeerLost(rank, f"did not join within {self._joining:g} seconds")

    def close(self) -> None:
        """Forget what has come."""
        _boxes.pop(self._name, None)
