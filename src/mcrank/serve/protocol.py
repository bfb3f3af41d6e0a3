"""HTTP on a connection: uvicorn's own, which waits for ever for the lines before a body and takes any number
of them, with limits on both.
"""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any, cast

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from mcrank.serve.closing import ClosingTransport
from mcrank.serve.http import PROBLEM
from mcrank.serve.problems import BAD, TIMEOUT, TOO_LONG_HEADER, Problem
from mcrank.serve.settings import Limits


class LimitedProtocol(HttpToolsProtocol):
    """One connection; ``limits`` is set by whoever starts the server."""

    limits = Limits()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._late: TimerHandle | None = None
        self._head = 0  # bytes that came while a head was awaited
        self._lines = 0  # bytes of its lines that are whole
        self._in_head = True
        self._refused = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to wait for a first request."""
        self._closing = ClosingTransport(transport, self.loop, self._unread)
        super().connection_made(cast(Transport, self._closing))
        self._wait()

    def _unread(self) -> bool:
        """Whether more of a request may come, now that the connection ends; it is to be read, and dropped."""
        if self._in_head and not self._refused:
            return False
        self.flow.resume_reading()  # it may wait until the body so far is taken, which nobody will do
        return True

    def shutdown(self) -> None:
        """End with the service."""
        super().shutdown()
        if self._closing.dropping:
            self._closing.finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes; a head that is too long ends the connection."""
        if self._closing.dropping:
            return
        if self._in_head:
            self._head += len(data)
        if self._in_head and self._late is None and not self._busy():
            self._wait()
        super().data_received(data)
        if self._in_head and self._head > self.limits.header_bytes and not self.transport.is_closing():
            self._refuse(self._too_long())

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._lines = 0

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a line of the head."""
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def _count(self, more: int) -> None:
        self._lines += more
        if self._lines > self.limits.header_bytes:
            raise ValueError("too long a head")  # what the parser then raises, `send_400_response` answers

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._arrived()
        self._in_head = False
        self._head = 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What follows is another request's head."""
        super().on_message_complete()
        self._in_head = True
        self._head = 0

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or has too long a head."""
        self._arrived()
        if self._lines > self.limits.header_bytes:
            self._refuse(self._too_long())
        else:
            self._refuse(Problem(BAD, "This is not a request of HTTP/1.1; mend its first lines."))

    def _too_long(self) -> Problem:
        most = self.limits.header_bytes
        return Problem(TOO_LONG_HEADER, f"The head of the request has more than {most} bytes; shorten it.")

    def _busy(self) -> bool:
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.limits.header_seconds, self._give_up)

    def _arrived(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if self.transport.is_closing() or self._busy():
            return
        if not self._head:
            self.transport.close()
            return
        seconds = self.limits.header_seconds
        self._refuse(
            Problem(
                TIMEOUT,
                f"The head of the request did not arrive within {seconds:g} seconds; send it at once.",
            )
        )

    def _refuse(self, problem: Problem) -> None:
        """Answer with a problem and end; after the answers that are still to come, where there are any."""
        if self._busy():
            cycle = self.cycle
            if self.pipeline or cycle.response_started or not cycle.more_body:
                cycle.keep_alive = False
                return
            cycle.disconnected = True  # the rest of its body will not come
            cycle.message_event.set()
        body = orjson.dumps(problem.document())
        head = f"content-type: {PROBLEM}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[problem.status] + head.encode() + body)
        self._refused = True
        self.transport.close()
