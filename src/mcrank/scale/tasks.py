"""The tasks that Dask starts on a worker for a training: to tell what it has and listen, and to train."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcrank.data.dataset import Dataset
from mcrank.scale.frames import PeerLost
from mcrank.scale.mesh import Mesh
from mcrank.scale.sockets import Encryption, Invitation, join, listen
from mcrank.scale.worker import Facts, Orders, facts_of, in_all, together, train_place, with_jobs
from mcrank.sums import ALONE, Sums

TOPIC = "mcrank"  # of what people and dashboards read; records of a journal have one of their own
_PAUSE = 1.0  # seconds between two notes of a worker about itself
_ANSWER = 10.0  # for a worker that sends nothing to say that it is there

_listeners: dict[str, socket.socket] = {}


class Stopped(ConnectionError):
    """Nobody waits for this training any more."""


@dataclass(frozen=True)
class Ready:
    """A worker that has its rows and listens."""

    facts: Facts
    address: tuple[str, int]
    threads: int


def get_ready(key: str, rows: Sequence[Dataset], limit: float) -> Ready:
    """Tell what this worker has, and listen for the others."""
    from distributed import get_worker
    from distributed.comm import get_address_host

    worker = get_worker()
    scheme = worker.address.partition("://")[0]
    host = "127.0.0.1" if scheme == "inproc" else get_address_host(worker.address)
    listener = listen(host)
    _listeners[key] = listener
    _let_go(key, limit, still_wanted(worker, worker.get_current_task()))
    return Ready(in_all(map(facts_of, rows)), listener.getsockname()[:2], worker.state.nthreads)


def _let_go(key: str, seconds: float, check: Callable[[], None]) -> None:
    """Stop listening once nobody wants it: who started this may be gone, or waits for others' rows."""

    def look() -> None:
        try:
            check()
        except Stopped:
            forget(key)
        if key in _listeners:
            _let_go(key, seconds, check)

    timer = threading.Timer(seconds, look)
    timer.daemon = True
    timer.start()


def forget(key: str) -> None:
    """Stop listening."""
    listener = _listeners.pop(key, None)
    if listener is not None:
        listener.close()


@dataclass(frozen=True)
class Summons:
    """What a worker is told when training begins.

    Attributes
    ----------
    key : str
        Of this attempt.
    workers : tuple of str
        Addresses of all workers, by rank.
    invitation : Invitation
        To the mesh.
    carrier : str
        ``sockets`` or ``dask``.
    orders : Orders
        What to train.
    features : int
        Of all workers together.
    absent : float
        Value of features that a row of LETOR text does not mention.
    """

    key: str
    workers: tuple[str, ...]
    invitation: Invitation
    carrier: str
    orders: Orders
    features: int
    absent: float


def train(summons: Summons, rows: Sequence[Dataset], valid: Sequence[Dataset]) -> dict[str, Any]:
    """Train with the other workers; return how many rounds there are, and for whom it waited."""
    from distributed import get_worker, secede

    worker, rank = get_worker(), summons.invitation.rank
    check = still_wanted(worker, worker.get_current_task())
    secede()  # two trainings on the same workers must not wait for each other's threads
    sums: Sums = ALONE
    if len(summons.workers) > 1:
        sums = _mesh(summons, worker, check)
    else:
        forget(summons.key)
    notes = _Notes(worker, summons, sums)
    try:
        data = together(rows, summons.features, summons.absent)
        held_out = together(valid, summons.features, summons.absent) if valid else None
        orders = with_jobs(summons.orders, worker.state.nthreads)
        rounds = train_place(orders, data, held_out, sums, notes.tell, notes.checked(check))
        return {"rank": rank, "rounds": rounds, "waited": list(notes.waited), "rows": data.n_rows}
    except Exception as error:
        # What is told takes another way than what is raised: the rounds told of may not be there yet.
        error.mcrank_rounds = notes.rounds  # type: ignore[attr-defined]
        raise
    finally:
        notes.end()
        if isinstance(sums, Mesh):
            sums.close()


def _mesh(summons: Summons, worker: Any, check: Callable[[], None]) -> Mesh:
    answers = _answering(worker, summons.workers)
    if summons.carrier == "dask":
        from mcrank.scale.streams import Streams

        forget(summons.key)
        return Mesh(Streams(worker, summons.workers, summons.invitation, check, answers))
    listener = _listeners.pop(summons.key, None)
    if listener is None:
        raise PeerLost(summons.invitation.rank, "does not listen any more: training began too late")
    encryption = None
    if worker.address.startswith("tls://"):
        accepting = worker.security.get_listen_args("worker")["ssl_context"]
        calling = worker.security.get_connection_args("worker")["ssl_context"]
        encryption = Encryption(accepting, calling)
    return Mesh(join(summons.invitation, listener, encryption, check, answers))


def _answering(worker: Any, workers: Sequence[str]) -> Callable[[int], bool]:
    """Return what asks a worker by rank whether it is there: its loop answers while it computes."""

    async def ask(rank: int) -> None:
        await asyncio.wait_for(worker.rpc(workers[rank]).identity(), _ANSWER)

    def answers(rank: int) -> bool:
        try:
            asyncio.run_coroutine_threadsafe(ask(rank), worker.loop.asyncio_loop).result(2 * _ANSWER)
        except (OSError, TimeoutError):
            return False
        return True

    return answers


def still_wanted(worker: Any, task: str) -> Callable[[], None]:
    """Return a function that raises once Dask forgot the task: it was cancelled, or its client died."""

    def check() -> None:
        state = worker.state.tasks.get(task)
        if state is None or state.state in ("cancelled", "released", "forgotten"):
            raise Stopped("nobody waits for this training any more")
        if worker.status.name not in ("running", "paused"):
            raise Stopped("the worker is closing")

    return check


class _Notes:
    """What a worker tells while it trains: records of the journal, and how it gets on."""

    def __init__(self, worker: Any, summons: Summons, sums: Sums) -> None:
        self._worker, self._summons, self._sums = worker, summons, sums
        self.rounds, self._told, self._name = 0, 0.0, f"mcrank-{summons.key}"
        # Dask walks through its metrics in the thread of its loop.
        worker.loop.add_callback(worker.metrics.__setitem__, self._name, self._metric)

    @property
    def waited(self) -> list[float]:
        """Seconds in which each worker was the last one waited for."""
        return self._sums.waited if isinstance(self._sums, Mesh) else [0.0]

    def tell(self, record: bytes) -> None:
        """Send a record of the journal."""
        self._worker.log_event(self._name, record)

    def checked(self, check: Callable[[], None]) -> Callable[[], None]:
        """Return what to call after each round: it also sends a note now and then."""

        def after_round() -> None:
            self.rounds += 1
            now = time.monotonic()
            if now - self._told > _PAUSE:
                self._told = now
                check()
                self._worker.log_event(TOPIC, self._metric())

        return after_round

    def _metric(self, *_: Any) -> dict[str, Any]:
        """Rounds and seconds waited, as Dask keeps it with a worker."""
        waited = dict(zip(self._summons.workers, self.waited, strict=False))
        return {
            "training": self._summons.key, "worker": self._worker.address, "process": os.getpid(),
            "rounds": self.rounds, "exchange-seconds": round(sum(self.waited), 3),
            "exchange-cpu-seconds": round(getattr(self._sums, "cpu", 0.0), 6),
            "waited-for": {address: round(seconds, 3) for address, seconds in waited.items()},
        }  # fmt: skip

    def end(self) -> None:
        """Tell for the last time."""
        self._worker.log_event(TOPIC, self._metric())
        self._worker.loop.add_callback(self._worker.metrics.pop, self._name, None)
