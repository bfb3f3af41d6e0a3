"""A training on a Dask cluster: pieces placed, one task a worker, watched; what is lost is done again.

An attempt ends with all rounds done, or with a failure. Then whoever is left gets the pieces of those who are
gone, and the next attempt goes on from the journal: integers add up to the same sums whoever has the rows, so
the model does not tell how many attempts there were.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcrank.data.dataset import Dataset
from mcrank.errors import ClusterError, DataError, McrankError
from mcrank.scale.cluster import Cluster
from mcrank.scale.frames import PeerLost
from mcrank.scale.journal import Journal
from mcrank.scale.plan import PINNED, Piece, Source, place_pieces
from mcrank.scale.sockets import LIMIT, Invitation
from mcrank.scale.tasks import Ready, Stopped, Summons, forget, get_ready, train
from mcrank.scale.worker import Facts, Job, Orders, check_versions, in_all

_BEAT = 0.05  # seconds between two looks at the tasks
_LOOK = 0.5  # between two questions who is there
_RETURN = 30.0  # for a worker to come back where none is left
_ANSWER = 10.0  # for a worker to say that it is there
_LOST_AT_ONCE = 3  # workers may be lost so often at one round


@dataclass(frozen=True)
class Whole:
    """What all workers have together.

    Attributes
    ----------
    rows, queries, features : int
        How much.
    sample : Dataset
        One query, with the columns of all.
    workers : tuple of str
        Who trains.
    """

    rows: int
    queries: int
    features: int
    sample: Dataset
    workers: tuple[str, ...]


class _Failed(Exception):
    """An attempt that came to nothing: errors by worker, and workers that are gone or silent."""

    def __init__(self, errors: Mapping[str, BaseException], gone: Sequence[str]) -> None:
        super().__init__(errors, gone)
        self.errors, self.gone = dict(errors), list(gone)

    def own_error(self) -> tuple[str, BaseException] | None:
        """Return the error of a worker that is not about the others, if there is one."""
        for worker, error in self.errors.items():
            if not isinstance(error, (PeerLost, Stopped)):
                return worker, error
        return None

    def round(self, known: int) -> int:
        """Return the number of the round it happened in, of which ``known`` are in the journal."""
        done = [getattr(error, "mcrank_rounds", 0) for error in self.errors.values()]
        return max([known, *done]) + 1


@dataclass(eq=False)
class _Store:
    """Pieces of a data set, and the futures of what workers have of it."""

    source: Source
    held: dict[str, list[tuple[list[Piece], Any]]] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    everyone: bool = False

    def spread(self, client: Any, workers: Sequence[str], everyone: bool) -> None:
        """See to it that these workers have all pieces between them, or each all of them (``everyone``)."""
        if not self.pieces:
            self.pieces = list(self.source.pieces(client, len(workers)))
        again = everyone == self.everyone
        self.everyone = everyone
        self.held = {worker: some for worker, some in self.held.items() if again and worker in workers}
        if everyone:
            for worker in workers:
                if worker not in self.held:
                    self.held[worker] = [(self.pieces, self.source.deliver(client, self.pieces, worker))]
            return
        have = {id(piece) for blocks in self.held.values() for some, _ in blocks for piece in some}
        missing = [piece for piece in self.pieces if id(piece) not in have]
        for worker, some in place_pieces(missing, self._hungriest(workers)).items():
            self.held.setdefault(worker, []).append((some, self.source.deliver(client, some, worker)))

    def _hungriest(self, workers: Sequence[str]) -> list[str]:
        """Workers, those who have least first."""
        load = {w: sum(p.weight for some, _ in self.held.get(w, []) for p in some) for w in workers}
        return sorted(workers, key=lambda w: load[w])

    def blocks(self, worker: str) -> list[Any]:
        """Futures of what a worker has."""
        return [future for _, future in self.held.get(worker, [])]


@dataclass(eq=False)
class Run:
    """A training on a cluster.

    Parameters
    ----------
    cluster : Cluster
        Where.
    client : distributed.Client
        Its client.
    rows, valid : Source
        Training data, and validation data if there is any.
    make_job : callable
        Given what all workers have, says what to train.
    journal : Journal
        What is done.
    n_jobs : int
        Threads of each worker; 0 for as many as Dask gives it.
    on_round : callable
        Called after each new round; True ends the training.
    """

    cluster: Cluster
    client: Any
    rows: Source
    valid: Source | None
    make_job: Callable[[Whole], Job]
    journal: Journal
    n_jobs: int
    on_round: Callable[[int], bool]

    def __post_init__(self) -> None:
        self._stores = [_Store(self.rows)] + ([] if self.valid is None else [_Store(self.valid)])
        self._carrier = self.cluster.carrier
        self._given_up: set[str] = set()
        self._failures: Counter[tuple[int, str]] = Counter()
        self._enough = False
        self.seconds_waited: dict[str, float] = {}
        self.whole: Whole | None = None

    def go(self) -> Whole:
        """Train until all rounds are done; return what all workers had."""
        while True:
            try:
                return self._attempt()
            except _Failed as failed:
                self._consider(failed)

    def _living(self) -> list[str]:
        there = self.client.nthreads()  # asked now: what scheduler_info gives may be of another moment
        return self.cluster.chosen([worker for worker in there if worker not in self._given_up])

    def _workers(self) -> list[str]:
        """Workers to train on; where none is left, those that come back soon."""
        deadline = time.monotonic() + _RETURN
        while not (workers := self._living()):
            if time.monotonic() > deadline:
                raise ClusterError("no worker of the cluster is left; start workers and resume.")
            time.sleep(_LOOK)
        return workers

    def _attempt(self) -> Whole:
        client, key = self.client, secrets.token_hex(8)
        workers = self._workers()
        self._stores[0].spread(client, workers, everyone=False)
        workers = [worker for worker in workers if worker in self._stores[0].held]
        split = False
        for store in self._stores[1:]:
            # Everybody measures all of it, unless there is some for each.
            store.pieces = store.pieces or list(store.source.pieces(client, len(workers)))
            split = len(workers) > 1 and len(store.pieces) >= len(workers)
            store.spread(client, workers, everyone=not split)
            if split and any(worker not in store.held for worker in workers):
                split = False
                store.spread(client, workers, everyone=True)
        blocks = {w: [store.blocks(w) for store in self._stores] + [[]] for w in workers}
        waiting = {
            w: client.submit(
                get_ready, key, blocks[w][0], max(4 * self.cluster.limit, 60.0), workers=[w], **PINNED
            )
            for w in workers
        }
        try:
            ready: dict[str, Ready] = self._watch(waiting, patience=None)
            return self._begin(key, ready, blocks, split)
        except BaseException:
            self._dismiss(key, workers)
            raise

    def _dismiss(self, key: str, workers: Sequence[str]) -> None:
        """Have workers stop listening for an attempt that came to nothing."""
        from distributed import fire_and_forget

        for worker in set(workers) & set(self._living()):
            fire_and_forget(self.client.submit(forget, key, workers=[worker], **PINNED))

    def _begin(
        self, key: str, ready: Mapping[str, Ready], blocks: Mapping[str, Sequence[Any]], split: bool
    ) -> Whole:
        """Train on workers that have their rows and listen."""
        workers = list(ready)
        whole = self.whole = agreed(ready)
        job = self.make_job(whole)
        orders = Orders(
            job,
            split,
            None if self.journal.opening is None else self.journal.opening.bins,
            [entry.trees for entry in self.journal.rounds],
            self.n_jobs,
        )
        addresses = tuple(ready[w].address for w in workers)
        limit = self.cluster.limit
        invitation = Invitation(0, addresses, secrets.token_bytes(32), limit, max(limit, LIMIT))
        summons = Summons(
            key, tuple(workers), invitation, self._carrier, orders, whole.features, self.rows.absent
        )
        self._train(key, summons, blocks)
        return whole

    def _train(self, key: str, summons: Summons, blocks: Mapping[str, Sequence[Any]]) -> None:
        client, topic = self.client, f"mcrank-{key}"
        records: list[bytes] = []
        client.subscribe_topic(topic, lambda event: records.append(event[1]))
        client.subscribe_topic("mcrank", self._note)
        try:
            tasks = {
                worker: client.submit(
                    train,
                    replace(summons, invitation=replace(summons.invitation, rank=rank)),
                    *blocks[worker][:2],
                    workers=[worker],
                    **PINNED,
                )
                for rank, worker in enumerate(summons.workers)
            }
            done = self._watch(tasks, patience=self.cluster.limit + 5, records=records)
            self._take_all(records, max((each["rounds"] for each in done.values()), default=0))
        finally:
            client.unsubscribe_topic(topic)
            client.unsubscribe_topic("mcrank")

    def _note(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict):
            for worker, seconds in dict(message.get("waited-for", {})).items():
                self.seconds_waited[worker] = max(self.seconds_waited.get(worker, 0.0), float(seconds))

    def _take_all(self, records: list[bytes], rounds: int) -> None:
        """Wait for what is still on its way: what is told and what is returned take different ways."""
        deadline = time.monotonic() + _RETURN
        self._take(records)
        while self.journal.closing is None or len(self.journal.rounds) < rounds:
            if self._enough or time.monotonic() > deadline:
                break
            time.sleep(_BEAT)
            self._take(records)

    def _take(self, records: list[bytes]) -> None:
        """Put what has come into the journal, and tell of new rounds."""
        while records and not self._enough:
            number = self.journal.take(records.pop(0))
            if number > 0:
                self._enough = self.on_round(number)

    def _watch(
        self, tasks: Mapping[str, Any], patience: float | None, records: list[bytes] | None = None
    ) -> dict[str, Any]:
        """Wait for a task of each worker; return what they gave, or raise `_Failed` with who is to blame."""
        looked, failed_at, gone = time.monotonic(), None, set[str]()
        try:
            while True:
                if records is not None:
                    self._take(records)
                    if self._enough:
                        self.client.cancel(list(tasks.values()), force=True)
                        return {}
                states = {worker: task.status for worker, task in tasks.items()}
                if all(state == "finished" for state in states.values()):
                    return dict(self.client.gather(dict(tasks)))
                now = time.monotonic()
                if now - looked > _LOOK:
                    looked = now
                    gone = set(tasks) - set(self._living())
                bad = {w for w, state in states.items() if state in ("error", "lost", "cancelled")}
                if (bad or gone) and failed_at is None:
                    failed_at = now
                open_ = [w for w, state in states.items() if state == "pending" and w not in gone]
                if failed_at is not None and (not open_ or patience is None or now - failed_at > patience):
                    break
                time.sleep(_BEAT)
            errors = {w: tasks[w].exception() for w in bad if tasks[w].status == "error"}
            silent = [] if patience is None else [w for w in open_ if not self._answers(w)]
            raise _Failed({w: e for w, e in errors.items() if e is not None}, [*sorted(gone), *silent])
        except BaseException:
            self.client.cancel(list(tasks.values()), force=True)
            raise

    def _answers(self, worker: str) -> bool:
        """Whether a worker that is not done says that it is there; else it is stopped, or cut off."""
        ask = self.client.scheduler.broadcast
        try:
            self.client.sync(ask, msg={"op": "identity"}, workers=[worker], callback_timeout=_ANSWER)
        except (OSError, TimeoutError):
            return False
        return True

    def _consider(self, failed: _Failed) -> None:
        """Decide whether to try again."""
        self._given_up |= set(failed.gone)
        at = failed.round(len(self.journal.rounds))
        own = failed.own_error()
        if own is not None:
            worker, error = own
            if isinstance(error, McrankError):
                raise error
            what = f"{type(error).__name__}: {error}"
            self._failures[at, what] += 1
            if self._failures[at, what] >= 2:
                raise ClusterError(
                    f"worker {worker} failed twice in round {at}, with {self._of(worker)}: {what}"
                ) from error
            return
        unreachable = [e for e in failed.errors.values() if "reached" in str(e) or "join" in str(e)]
        if unreachable and not failed.gone and self._carrier == "sockets":
            warnings.warn(
                f"workers cannot connect with each other ({unreachable[0]}); histograms go over Dask's own "
                "connections, which is slower.",
                stacklevel=2,
            )
            self._carrier = "dask"
            return
        words = "; ".join(str(error) for error in failed.errors.values()) or "no answer"
        self._failures[at, "lost"] += 1
        if self._failures[at, "lost"] >= _LOST_AT_ONCE:
            raise ClusterError(
                f"workers were lost {_LOST_AT_ONCE} times in round {at}, the last time "
                f"{', '.join(failed.gone) or 'none that is gone'} ({words}). Is memory short there? What is "
                "done is in the journal."
            )

    def _of(self, worker: str) -> str:
        """What a worker had, for messages."""
        pieces = [piece.name for some, _ in self._stores[0].held.get(worker, []) for piece in some]
        return f"{', '.join(pieces[:3])}{', ...' if len(pieces) > 3 else ''}" if pieces else "no rows"


def agreed(ready: Mapping[str, Ready]) -> Whole:
    """Return what all workers have together, or raise where they do not fit together."""
    check_versions({worker: (one.facts.versions, one.facts.probe) for worker, one in ready.items()})
    facts = [found.facts for found in ready.values()]
    _check_alike(facts)
    whole = in_all(facts)
    return Whole(whole.rows, whole.queries, whole.features, whole.sample, tuple(ready))


def _check_alike(facts: Sequence[Facts]) -> None:
    one = facts[0]
    for other in facts[1:]:
        if other.named != one.named or (one.named and other.names != one.names):
            differ = sorted(set(one.names) ^ set(other.names))[:5]
            raise DataError(
                f"parts of the training data have different columns: {', '.join(differ) or 'another order'}; "
                "they must be alike."
            )
        if other.weights != one.weights:
            raise DataError("some parts of the training data have weights and others have none.")
