"""A request and its answer: what of HTTP the service needs beside what the server does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson

from mcrank.serve.problems import BAD, TIMEOUT, TOO_LARGE, UNAVAILABLE, UNSUPPORTED, Cut, Problem
from mcrank.serve.settings import Limits

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

JSON, PROBLEM, HTML = "application/json", "application/problem+json", "text/html; charset=utf-8"
# Whatever comes back is what it says, is shown in nobody's frame, and does not stay in a cache.
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    body: bytes
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"cache-control": "no-store"})

    async def send(self, send: Send) -> None:
        """Send it."""
        head = [(name.encode(), value.encode("latin-1", "replace")) for name, value in self.headers.items()]
        head += [(b"content-type", self.kind.encode()), (b"content-length", str(len(self.body)).encode())]
        start = {"type": "http.response.start", "status": self.status, "headers": [*head, *_ALWAYS]}
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


def json_answer(value: Any) -> Answer:
    """Return an answer in JSON; numbers in the shortest form that reads back exactly."""
    return Answer(orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY))


def problem_answer(problem: Problem) -> Answer:
    """Return an answer that says what is wrong."""
    headers = {"cache-control": "no-store", **problem.headers}
    return Answer(orjson.dumps(problem.document()), PROBLEM, problem.status, headers)


class Budget:
    """Bytes of bodies that are being received or answered, of all requests together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    def take(self, count: int) -> None:
        """Take some; a `Problem` where there are not so many left."""
        if self.used + count > self.most:
            raise Problem(
                UNAVAILABLE,
                f"The service is busy with {self.used} bytes of requests and takes {self.most} at a time; "
                "try again.",
                retry_after="1",
                connection="close",
            )
        self.used += count

    def give(self, count: int) -> None:
        """Give some back."""
        self.used -= count


class Request:
    """What was asked."""

    def __init__(self, scope: Scope, receive: Receive, budget: Budget) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.taken = 0
        self._query: bytes = scope["query_string"]
        self._receive = receive
        self._budget = budget

    @property
    def kind(self) -> str:
        """Media type of the body, without its parameters."""
        return self.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()

    def query(self, known: tuple[str, ...]) -> dict[str, str]:
        """Return the parameters behind the question mark; unknown and repeated ones are a `Problem`."""
        try:
            pairs = parse_qsl(
                self._query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
            )
        except ValueError:
            raise Problem(
                BAD, f"The parameters of {self.path} cannot be read; percent-encode UTF-8."
            ) from None
        found = dict(pairs)
        odd = next((name for name in found if name not in known), None)
        if odd is not None:
            words = f"it has {', '.join(known)}" if known else "it has none"
            raise Problem(BAD, f"{self.path} has no parameter {odd[:80]!a}; {words}.")
        if len(found) < len(pairs):
            raise Problem(BAD, f"{self.path} got a parameter twice; give each of {', '.join(found)} once.")
        return found

    async def body(self, limits: Limits) -> bytes:
        """Receive the body, within limits of size and time."""
        if self.headers.get(b"content-encoding", b"identity") != b"identity":
            raise Problem(UNSUPPORTED, f"The body of {self.path} is compressed; send it as it is.")
        declared = self.headers.get(b"content-length", b"0")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > limits.body):
            raise self._too_large(limits)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.seconds):
                more = True
                while more:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise Cut
                    part = message.get("body", b"")
                    self._budget.take(len(part))
                    self.taken += len(part)
                    if self.taken > limits.body:
                        raise self._too_large(limits)
                    parts.append(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise Problem(
                TIMEOUT,
                f"The body of {self.path} did not arrive within {limits.seconds:g} seconds; {self.taken} "
                "bytes came. Send it at once.",
                connection="close",
            ) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self, limits: Limits) -> Problem:
        return Problem(
            TOO_LARGE,
            f"The body of {self.path} has more than {limits.body} bytes; send fewer rows, or serve with a "
            "larger --max-body.",
            connection="close",
        )

    def close(self) -> None:
        """Give back what its body took."""
        self._budget.give(self.taken)
        self.taken = 0
