"""Frames over sockets: every place has one to every other, all served by one thread.

A place listens at one address, never at all of them, for as long as it takes the others to join. Both sides
prove with an HMAC that they know the token of this training before anything else is read; whoever does not
is dropped, and the place goes on waiting for the right one. With TLS the proof goes through the encrypted
connection, whose certificates are checked as well.
"""

from __future__ import annotations

import hmac
import os
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from mcrank.scale.frames import HEAD_BYTES, Frame, PeerLost, Room

_HELLO = struct.Struct("<8sII16s")  # magic, rank, size, nonce
_MAGIC = b"mcrank1\n"
_PROOF_BYTES = 32
_PATIENCE = 5.0  # seconds for the hello of a caller, who may be a stranger
_COMPUTING = 10  # limits that a place which answers otherwise may be at work between two frames
_SMALL = 1 << 15  # a head and so few bytes go out in one call
LIMIT = 60.0  # seconds in which nothing comes from a place before it is given up


@dataclass(frozen=True)
class Encryption:
    """Contexts of TLS for connections this place accepts, and for those it makes."""

    accepting: ssl.SSLContext
    calling: ssl.SSLContext


def listen(host: str) -> socket.socket:
    """Return a socket that listens at one address, at a port that was free."""
    family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, 0), family=family, backlog=128)


def nobody_stops() -> None:
    """Ask whether to go on: yes."""


def nobody_answers(rank: int) -> bool:
    """Ask whether a place that sends nothing is there: who knows."""
    return False


class Sockets:
    """A carrier over sockets that are connected and authenticated; see `join`, `pairs`.

    Parameters
    ----------
    rank : int
        Number of this place.
    peers : dict
        Socket of every other place.
    limit : float
        Seconds in which nothing comes from a place before it is given up.
    check : callable
        Asked every second of waiting; raises to stop.
    answers : callable
        Asked about a silent place: one that answers otherwise computes, and has ten limits of time.
    """

    def __init__(
        self,
        rank: int,
        peers: dict[int, socket.socket],
        limit: float = LIMIT,
        check: Callable[[], None] = nobody_stops,
        answers: Callable[[int], bool] = nobody_answers,
    ) -> None:
        self.rank, self.size = rank, len(peers) + 1
        self.waited = [0.0] * self.size
        self._limit, self._check, self._answers = limit, check, answers
        # From the next rank on, so that not everybody sends to the first one first.
        order = sorted(peers, key=lambda r: (r - rank) % self.size)
        self._peers = [_Peer(r, peers[r]) for r in order]

    def exchange(self, frames: Sequence[Frame | None], room: Room) -> None:
        """Give each other place its frame, and take one from each."""
        began = time.perf_counter()
        heard = asked = began
        for peer in self._peers:
            peer.begin(frames[peer.rank])
        busy = self._peers
        last = self.rank
        while True:
            moved = False
            for peer in busy:
                moved |= peer.push() | peer.pull(room)
            left = [peer for peer in busy if not peer.done]
            if len(left) < len(busy):
                last = next(peer for peer in reversed(busy) if peer.done).rank
            busy = left
            if not busy:
                break
            if moved:
                heard = asked = time.perf_counter()
            elif time.perf_counter() - asked > self._limit:
                give_up_silent([peer.rank for peer in busy], heard, self._limit, self._answers)
                asked = time.perf_counter()
            if not _wait(busy):
                self._check()
        self.waited[last] += time.perf_counter() - began

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers:
            peer.close()


def give_up_silent(ranks: Sequence[int], heard: float, limit: float, answers: Callable[[int], bool]) -> None:
    """Raise `PeerLost` for one of these places, silent since ``heard``, that does not answer otherwise."""
    for rank in ranks:
        if not answers(rank):
            raise PeerLost(rank, f"sent nothing for {limit:g} seconds")
    if time.perf_counter() - heard > _COMPUTING * limit:
        raise PeerLost(ranks[0], f"sent nothing for {_COMPUTING * limit:g} seconds, although it answers")


class _Peer:
    """A socket, and how far this exchange has come on it."""

    def __init__(self, rank: int, sock: socket.socket) -> None:
        self.rank, self.socket = rank, sock
        sock.setblocking(False)
        if sock.family != getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.out: list[memoryview] = []
        self._head = bytearray(HEAD_BYTES)
        self._into: memoryview | None = None
        self._in_head = False

    @property
    def reading(self) -> bool:
        return self._into is not None

    @property
    def done(self) -> bool:
        return not self.out and self._into is None

    def begin(self, frame: Frame | None) -> None:
        """Start an exchange."""
        if frame is None:
            raise PeerLost(self.rank, "has no frame to be sent")
        head, body = frame
        self.out = [memoryview(head + body)] if len(body) < _SMALL else [memoryview(head), body]
        self._into, self._in_head = memoryview(self._head), True

    def push(self) -> bool:
        """Send what the connection takes; True when it took something."""
        moved = False
        while self.out:
            try:
                sent = self.socket.send(self.out[0])
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return moved
            except OSError as error:
                raise PeerLost(self.rank, f"is gone ({error})") from None
            moved = True
            self.out[0] = self.out[0][sent:]
            if len(self.out[0]) == 0:
                del self.out[0]
        return moved

    def pull(self, room: Room) -> bool:
        """Take what has come; True when something had."""
        moved = False
        while self._into is not None:
            if len(self._into) == 0:
                # Never a byte beyond this frame: the next one belongs to the next exchange.
                self._into = room(self.rank, bytes(self._head)) if self._in_head else None
                self._in_head = False
                continue
            try:
                got = self.socket.recv_into(self._into)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return moved
            except OSError as error:
                raise PeerLost(self.rank, f"is gone ({error})") from None
            if got == 0:
                raise PeerLost(self.rank, "closed its connection")
            moved = True
            self._into = self._into[got:]
        return moved

    def close(self) -> None:
        """Close the connection, at once."""
        with suppress(OSError):  # it may be gone already
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def _wait(peers: Sequence[_Peer]) -> bool:
    """Wait up to a second until something can be sent or has come."""
    if hasattr(select, "poll"):
        poll = select.poll()
        for peer in peers:
            poll.register(
                peer.socket, (select.POLLIN if peer.reading else 0) | (select.POLLOUT if peer.out else 0)
            )
        return bool(poll.poll(1000))
    readers = [peer.socket for peer in peers if peer.reading]
    writers = [peer.socket for peer in peers if peer.out]
    return any(select.select(readers, writers, [], 1.0))


def pairs(count: int, limit: float = LIMIT) -> list[Sockets]:
    """Return the carriers of so many places in one process.

    Examples
    --------
    >>> from mcrank.scale.sockets import pairs
    >>> carriers = pairs(3)
    >>> [carrier.rank for carrier in carriers]
    [0, 1, 2]
    >>> for carrier in carriers:
    ...     carrier.close()
    """
    ends: list[dict[int, socket.socket]] = [{} for _ in range(count)]
    for a, b in combinations(range(count), 2):
        ends[a][b], ends[b][a] = socket.socketpair()
    return [Sockets(rank, peers, limit) for rank, peers in enumerate(ends)]


@dataclass(frozen=True)
class Invitation:
    """What a place must know to join the others.

    Attributes
    ----------
    rank : int
        Its number.
    addresses : tuple
        Host and port at which each place listens.
    token : bytes
        The secret of this training.
    limit : float
        Seconds in which nothing comes from a place before it is given up.
    joining : float
        Seconds within which all must have joined: tasks of a busy cluster do not begin at once.
    """

    rank: int
    addresses: tuple[tuple[str, int], ...]
    token: bytes
    limit: float = LIMIT
    joining: float = LIMIT


def join(
    invitation: Invitation,
    listener: socket.socket,
    encryption: Encryption | None = None,
    check: Callable[[], None] = nobody_stops,
    answers: Callable[[int], bool] = nobody_answers,
) -> Sockets:
    """Connect with all other places: call those of lower rank, wait for those of higher; then stop listening.

    Raises `PeerLost` when one does not join, or does not know the token.
    """
    deadline = time.monotonic() + invitation.joining
    peers: dict[int, socket.socket] = {}
    size = len(invitation.addresses)
    try:
        for rank in range(invitation.rank):
            peers[rank] = _call(invitation, rank, encryption)
        while missing := set(range(invitation.rank + 1, size)) - set(peers):
            check()
            left = deadline - time.monotonic()
            if left <= 0:
                raise PeerLost(min(missing), f"did not join within {invitation.joining:g} seconds")
            listener.settimeout(min(left, 1.0))
            try:
                caller, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:
                raise PeerLost(invitation.rank, f"cannot listen ({error})") from None
            found = _welcome(invitation, caller, missing, encryption)
            if found is not None:
                rank, peers[rank] = found[0], found[1]
    except BaseException:
        for sock in peers.values():
            sock.close()
        raise
    finally:
        listener.close()
    return Sockets(invitation.rank, peers, invitation.limit, check, answers)


def _call(invitation: Invitation, rank: int, encryption: Encryption | None) -> socket.socket:
    """Connect with a place that listens, which proves itself first."""
    try:
        sock = socket.create_connection(invitation.addresses[rank], timeout=invitation.joining)
    except OSError as error:
        raise PeerLost(rank, f"cannot be reached at {invitation.addresses[rank]} ({error})") from None
    try:
        if encryption is not None:
            sock = encryption.calling.wrap_socket(sock, server_hostname=invitation.addresses[rank][0])
        hello = _HELLO.pack(_MAGIC, invitation.rank, len(invitation.addresses), os.urandom(16))
        sock.sendall(hello)
        answer = _exactly(sock, 16 + _PROOF_BYTES)
        if not hmac.compare_digest(answer[16:], _proof(invitation.token, b"listener", hello, answer[:16])):
            raise PeerLost(rank, "does not know the token of this training")
        sock.sendall(_proof(invitation.token, b"caller", hello, answer[:16]))
    except (OSError, EOFError) as error:
        sock.close()
        if isinstance(error, PeerLost):
            raise
        raise PeerLost(rank, f"did not let this place join ({error})") from None
    return sock


def _welcome(
    invitation: Invitation, caller: socket.socket, missing: set[int], encryption: Encryption | None
) -> tuple[int, socket.socket] | None:
    """Return the rank and the connection of a caller who knows the token; None for a stranger."""
    try:
        caller.settimeout(_PATIENCE)
        if encryption is not None:
            caller = encryption.accepting.wrap_socket(caller, server_side=True)
        hello = _exactly(caller, _HELLO.size)
        magic, rank, size, _ = _HELLO.unpack(hello)
        if magic == _MAGIC and size == len(invitation.addresses) and rank in missing:
            nonce = os.urandom(16)
            caller.sendall(nonce + _proof(invitation.token, b"listener", hello, nonce))
            expected = _proof(invitation.token, b"caller", hello, nonce)
            if hmac.compare_digest(_exactly(caller, _PROOF_BYTES), expected):
                return rank, caller
    except (OSError, EOFError):
        pass
    caller.close()
    return None


def _proof(token: bytes, role: bytes, hello: bytes, nonce: bytes) -> bytes:
    return hmac.digest(token, role + hello + nonce, "sha256")


def _exactly(sock: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        piece = sock.recv(count - len(got))
        if not piece:
            raise EOFError("it closed the connection")
        got += piece
    return got
