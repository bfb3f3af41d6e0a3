"""The end of a connection, such that the last answer arrives.

A socket closed while bytes of the other side are unread is reset by the system, and the reset can overtake
the answer: whoever sent too long a head or body then sees a broken connection instead of what was wrong. So
where a request has not been read to its end, only our side is ended, what still comes is dropped, and all is
closed when the other side has ended too, or after some seconds.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable
from typing import Any

SECONDS = 5.0  # for the other side to read the answer and end


class ClosingTransport:
    """A transport that asks on ``close`` whether ``unread`` bytes may follow, and if so ends in two steps."""

    def __init__(self, transport: Transport, loop: AbstractEventLoop, unread: Callable[[], bool]) -> None:
        self._transport = transport
        self._loop = loop
        self._unread = unread
        self.dropping = False
        self.write = transport.write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether nothing more is to be written."""
        return self.dropping or self._transport.is_closing()

    def close(self) -> None:
        """End our side, and the other one when it may be ended."""
        if self.is_closing():
            return
        if not (self._unread() and self._transport.can_write_eof()):
            self._transport.close()
            return
        self.dropping = True
        self._transport.write_eof()
        self._loop.call_later(SECONDS, self._transport.close)

    def finish(self) -> None:
        """End both sides now."""
        self._transport.close()
