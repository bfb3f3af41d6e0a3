"""Work that a cluster does a piece at a time: cells of a comparison, folds of a search or of a cross-fitting.

Each piece is a task of one worker, which may ask whoever sent it and wait for the answer: whether a trial
is to stop, what the pooled measure of a round is. So decisions are made, and files written, in one place
only: here. A piece whose worker is gone is done again by another from its start, and gets the same answers.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcrank.errors import ClusterError
from mcrank.scale.cluster import Cluster
from mcrank.scale.plan import PINNED
from mcrank.scale.tasks import still_wanted
from mcrank.scale.worker import check_versions, probe, versions

_HANDLER = "mcrank_next"
_BEAT = 0.05  # seconds between two looks at work that has not begun, or is about to end
_HOLD = 2.0  # seconds a worker holds a question of ours before it says that there is nothing
_RETURN = 30.0  # for a worker to come back where none is left
_TRIES = 3  # of a piece of work whose worker is lost
_lines: dict[str, Line] = {}

# Called with what a worker asks or tells; what it returns is the answer.
Reply = Callable[[Any], Any]


class Line:
    """A worker's end of a conversation with whoever sent it work.

    Attributes
    ----------
    threads : int
        That Dask gives the worker.
    """

    def __init__(self, worker: Any) -> None:
        self.threads = int(worker.state.nthreads)
        self._loop, self._check = worker.loop.asyncio_loop, still_wanted(worker, worker.get_current_task())
        self._said = asyncio.Queue[Any]()
        self._answered, self._answers = threading.Condition(), list[Any]()
        self._asked = 0

    def ask(self, what: Any) -> Any:
        """Ask, and wait for the answer; raise `Stopped` once nobody waits for this work any more."""
        self._say({"asked": what})
        self._asked += 1
        with self._answered:
            while len(self._answers) < self._asked:
                self._check()
                self._answered.wait(1.0)
            return self._answers[self._asked - 1]

    def tell(self, what: Any) -> None:
        """Tell, and go on; raise `Stopped` once nobody waits for this work any more."""
        self._check()
        self._say({"told": what})

    def end(self) -> None:
        """Say that the work is done."""
        self._say({"done": True})

    def _say(self, message: dict[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._said.put_nowait, message)

    async def next(self, answer: Any) -> dict[str, Any]:
        """In the loop of the worker: take the answer to what was asked last; return what is said next."""
        if answer is not None:
            with self._answered:
                self._answers.append(answer["answer"])
                self._answered.notify_all()
        try:
            return await asyncio.wait_for(self._said.get(), _HOLD)
        except TimeoutError:
            return {}


async def _next(comm: Any = None, *, key: str, answer: Any) -> dict[str, Any]:
    """Answer whoever sent the work of this key; nothing while it has not begun."""
    line = _lines.get(key)
    if line is None:
        await asyncio.sleep(_BEAT)
        return {}
    return await line.next(answer)


def _about(dask_worker: Any) -> tuple[tuple[str, ...], str]:
    """At a worker: make ready to be asked; tell what it is."""
    dask_worker.handlers[_HANDLER] = _next
    return versions(), probe()


def _do(key: str, work: Callable[..., Any], data: Any, args: tuple[Any, ...]) -> Any:
    """The task at a worker."""
    from distributed import get_worker, secede

    worker = get_worker()
    line = _lines[key] = Line(worker)
    secede()  # others of the same work wait for this one's answers
    try:
        return work(line, data, *args)
    finally:
        line.end()
        worker.loop.add_callback(worker.loop.call_later, 4 * _HOLD, _lines.pop, key, None)


class _Gone(Exception):
    """A worker is lost, or does not answer."""


class Desk:
    """Sends pieces of work to the workers of a cluster, and answers what they ask.

    Parameters
    ----------
    cluster : Cluster
        Which workers, and how long one may be silent.
    client : distributed.Client
        Its client.
    room : int
        Pieces of data that are left with each worker between pieces of work.
    """

    def __init__(self, cluster: Cluster, client: Any, room: int) -> None:
        self._cluster, self._client, self._room = cluster, client, room
        self._sent: dict[str, OrderedDict[Any, Any]] = {}
        self._known: dict[str, tuple[tuple[str, ...], str]] = {}
        self._lock, self._closed = threading.Lock(), False
        self.size = len(self._workers())

    def close(self) -> None:
        """End all conversations: nobody waits for what comes of them."""
        self._closed = True

    def run(
        self,
        number: int,
        work: Callable[..., Any],
        data: tuple[Any, Callable[[], Any]],
        *args: Any,
        reply: Reply,
    ) -> Any:
        """Have a worker call ``work(line, data, *args)``; return what it returned.

        ``data`` is a name and what makes it: it is sent to a worker that does not have it. Pieces of
        different ``number`` go to different workers as far as there are any.
        """
        answers: list[Any] = []
        for _ in range(_TRIES):
            workers = self._workers()
            worker = workers[number % len(workers)]
            try:
                return self._converse(worker, work, data, args, _Remembering(reply, answers))
            except _Gone:
                continue
        raise ClusterError(
            f"the worker of a piece of work was lost {_TRIES} times, the last one {worker}. Is memory short "
            "there?"
        )

    def _converse(
        self, worker: str, work: Any, data: tuple[Any, Callable[[], Any]], args: Any, reply: _Remembering
    ) -> Any:
        key, answer = secrets.token_hex(16), None
        task = self._client.submit(
            _do, key, work, self._delivered(worker, *data), args, workers=[worker], **PINNED
        )
        try:
            while not self._closed:
                said = self._next(worker, key, answer)
                answer = None
                if "asked" in said:
                    answer = {"answer": reply.ask(said["asked"])}
                elif "told" in said:
                    reply.tell(said["told"])
                elif "done" in said or task.status != "pending":
                    return self._result(worker, task)
                elif worker not in self._client.nthreads():
                    raise _Gone
            raise ClusterError("work on the cluster was given up.")
        finally:
            if task.status == "pending":
                self._client.cancel([task], force=True)

    def _result(self, worker: str, task: Any) -> Any:
        """What a task that has ended gave, once it is known."""
        while task.status == "pending":
            if worker not in self._client.nthreads():
                raise _Gone
            time.sleep(_BEAT)
        if task.status not in ("finished", "error"):
            raise _Gone
        return task.result()

    def _next(self, worker: str, key: str, answer: Any) -> Mapping[str, Any]:
        message = {"op": _HANDLER, "key": key, "answer": answer}
        limit = max(self._cluster.limit, 5 * _HOLD)
        try:
            found = self._client.sync(
                self._client.scheduler.broadcast, msg=message, workers=[worker], callback_timeout=limit
            )
        except (OSError, TimeoutError):
            raise _Gone from None
        return dict(found[worker])

    def _delivered(self, worker: str, name: Any, make: Callable[[], Any]) -> Any:
        """A future of data at a worker."""
        with self._lock:
            there = self._sent.setdefault(worker, OrderedDict())
            if name not in there or there[name].status != "finished":
                (there[name],) = self._client.scatter([make()], workers=[worker], hash=False)
            there.move_to_end(name)
            while len(there) > self._room:
                there.popitem(last=False)
            return there[name]

    def _workers(self) -> list[str]:
        deadline = time.monotonic() + _RETURN
        while not (found := self._cluster.chosen(self._client.nthreads())):
            if time.monotonic() > deadline:
                raise ClusterError("no worker of the cluster is there; start workers.")
            time.sleep(0.5)
        with self._lock:
            new = [worker for worker in found if worker not in self._known]
            if new:
                self._known |= self._client.run(_about, workers=new)
                check_versions(self._known)
        return found


class _Remembering:
    """Answers what is asked, and what was asked before as it was answered then."""

    def __init__(self, reply: Reply, answers: list[Any]) -> None:
        self._reply, self._answers, self._asked = reply, answers, 0

    def ask(self, what: Any) -> Any:
        if self._asked == len(self._answers):
            self._answers.append(self._reply(what))
        self._asked += 1
        return self._answers[self._asked - 1]

    def tell(self, what: Any) -> None:
        self._reply(what)


@contextmanager
def desk_of(cluster: Any, room: int = 1) -> Iterator[Desk | None]:
    """Give a desk at what a caller gave as a cluster; None where that is None."""
    if cluster is None:
        yield None
        return
    checked = Cluster.of(cluster)
    with checked.client() as client:
        desk = Desk(checked, client, room)
        try:
            yield desk
        finally:
            desk.close()
