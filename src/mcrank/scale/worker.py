"""What runs at the places of a training: rows put together, a mesh joined, rounds told to who started it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np

import mcrank
from mcrank.arrays import FloatArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.place import Place, Round
from mcrank.boosting.sampling import query_keys
from mcrank.data.alignment import with_parts
from mcrank.data.categories import Categories, Keys
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint, summed
from mcrank.errors import ClusterError, DataError
from mcrank.scale.journal import Entry, Opening, pack_closing, pack_opening, pack_round
from mcrank.scale.shared_categories import share_categories
from mcrank.scorers.heads import Head
from mcrank.sums import ALONE, Sums

Tell = Callable[[bytes], None]


class Job(Protocol):
    """What is to be trained: given rows and a place, it trains there.

    ``categorical`` names features whose numbers are categories.
    """

    categorical: Keys | None

    def __call__(self, data: Dataset, valid: Dataset | None, place: Place, n_jobs: int) -> None:
        """Train; all that comes of it is told to the keeper of the place."""


@dataclass(frozen=True)
class Facts:
    """What a place has, before training: what all places must agree on, and how much of it.

    ``probe`` is a digest of what NumPy makes of logarithms here: processors of different kinds differ in last
    digits.
    """

    rows: int
    queries: int
    features: int
    names: tuple[str, ...]
    named: bool
    weights: tuple[bool, bool]  # of rows, of queries
    versions: tuple[str, ...]
    probe: str
    sample: Dataset


def versions() -> tuple[str, ...]:
    """Versions of what decides a model."""
    import numba

    return (
        f"mcrank {mcrank.__version__}", f"numpy {np.__version__}", f"numba {numba.__version__}",
        f"Python {'.'.join(platform.python_version_tuple()[:2])}", platform.machine(),
    )  # fmt: skip


def probe() -> str:
    """Digest of what NumPy's own functions make of some numbers here."""
    x = np.linspace(0.001, 700.0, 4099)
    found = [f(x).tobytes() for f in (np.log, np.log2, np.log1p, np.exp2)] + [np.exp(-x).tobytes()]
    return hashlib.blake2b(b"".join(found), digest_size=8).hexdigest()


def check_versions(found: Mapping[str, tuple[tuple[str, ...], str]]) -> None:
    """Raise `ClusterError` where workers (by address: versions and probe) would not all give one model."""
    here = versions()
    for worker, (there, _) in found.items():
        if there != here:
            raise ClusterError(
                f"worker {worker} has {', '.join(there)}; here are {', '.join(here)}. A model is the same "
                "only where all have the same: install them alike."
            )
    (first, (_, digits)), *others = found.items()
    for worker, (_, other) in others:
        if other != digits:
            raise ClusterError(
                f"workers {first} and {worker} differ in the last digits of logarithms, as their processors "
                "are of different kinds: leave one kind out."
            )


def facts_of(data: Dataset) -> Facts:
    """Return what a place has."""
    return Facts(
        data.n_rows,
        data.n_queries,
        data.n_features,
        data.feature_names,
        data.named,
        (data.weight is not None, data.query_weight is not None),
        versions(),
        probe(),
        data.select([0]),
    )


def in_all(facts: Iterable[Facts]) -> Facts:
    """Return what several places, or parts of one, have together; of different widths the widest."""
    found = list(facts)
    widest = max(found, key=lambda one: one.features)
    return replace(widest, rows=sum(one.rows for one in found), queries=sum(one.queries for one in found))


def together(
    parts: Sequence[Dataset], features: int, absent: float, same_query: Literal["error", "join"] = "error"
) -> Dataset:
    """Return parts of a data set as one with so many features; queries must be whole, or are joined."""
    wide = [widened(part, features, absent) for part in parts]
    if len(wide) == 1:
        return wide[0]
    if same_query == "error":
        # The parts of one place, which Dask chooses: cut queries are told as they are between places.
        keys, times = np.unique(np.concatenate([query_keys(p.qids) for p in wide]), return_counts=True)
        cut = keys[times > 1]
        named = [q for part in wide for q in part.qids[np.isin(query_keys(part.qids), cut)]]
        if named:
            raise cut_query(named[0], len(cut) - 1)
    return Dataset.merge(wide, same_query=same_query)


def widened(data: Dataset, width: int, absent: float) -> Dataset:
    """Return data with as many features as other parts of LETOR text have, by those not mentioned."""
    if data.n_features >= width or data.named:
        return data
    X = np.full((data.n_rows, width), absent, dtype=np.float32)
    X[:, : data.n_features] = data.X
    # Made up from the first number on, which may be 0.
    first = int(data.feature_names[0][1:]) if data.feature_names[0][1:].isdigit() else 1
    names = tuple(f"f{k}" for k in range(first, first + width))
    return with_parts(data, X=X, feature_names=names)


def check_queries(data: Dataset, sums: Sums) -> None:
    """Raise `DataError` where rows of one query lie at two places."""
    keys = query_keys(data.qids)
    everyones = sums.gather(keys)
    others = [theirs for rank, theirs in enumerate(everyones) if rank != sums.rank]
    twice = np.isin(keys, np.concatenate(others)) if others else np.zeros(len(keys), dtype=bool)
    if twice.any():
        at = int(np.argmax(twice))
        raise cut_query(data.qids[at], int(twice.sum()) - 1)


def cut_query(query: object, more: int) -> DataError:
    """Return what is said of queries whose rows lie in different parts of the data."""
    return DataError(
        f"query {query!s} has rows in different parts of the data, and {more} more queries have; queries "
        "must be whole: sort the data by query before it is cut, or give regroup=True."
    )


@dataclass(eq=False)
class Telling:
    """The keeper of a place: packs what is decided and sends it on; only the first place tells."""

    tell: Tell | None
    fingerprint: str
    known: int  # rounds that the other side has
    check: Callable[[], None]
    categories: Categories = field(default_factory=dict)
    last: int = 0
    found: dict[str, Any] = field(default_factory=dict)

    def begin(self, head: Head, base: FloatArray, per_round: int, bins: Bins | None) -> None:
        """Send what is decided before the first round."""
        if self.tell is not None:
            self.tell(pack_opening(Opening(head, base, per_round, bins, self.fingerprint, self.categories)))

    def round(self, number: int, trees: Round, measured: dict[str, float]) -> None:
        """Send a round."""
        self.check()
        self.last = number
        if self.tell is not None and number > self.known:
            self.tell(pack_round(number, Entry(trees, measured)))

    def finish(self, found: dict[str, Any]) -> None:
        """Take what was found when all rounds were done; `end` sends it."""
        self.found = found

    def end(self) -> None:
        """Send the last word: there will be no other."""
        if self.tell is not None:
            self.tell(pack_closing(self.found))


@dataclass(frozen=True)
class Orders:
    """What a place of a training is told.

    Attributes
    ----------
    job : Job
        What to train.
    split_valid : bool
        Whether each place has some queries of the validation data, rather than all of them.
    bins : Bins or None
        Bins that were found before.
    done : sequence
        Rounds that were done before.
    n_jobs : int
        Threads.
    """

    job: Job
    split_valid: bool
    bins: Bins | None
    done: Sequence[Round]
    n_jobs: int


def nothing_stops() -> None:
    """Ask whether to go on: yes."""


def train_place(
    orders: Orders,
    data: Dataset,
    valid: Dataset | None,
    sums: Sums = ALONE,
    tell: Tell | None = None,
    check: Callable[[], None] = nothing_stops,
) -> int:
    """Train at one place, with the others; return how many rounds there are then.

    ``tell`` gets the records of the journal; of several places the first one's is used.
    """
    check_queries(data, sums)
    data = share_categories(data, orders.job.categorical, sums)
    own = np.frombuffer(bytes.fromhex(fingerprint(data)), dtype=np.uint8)
    whole = summed(bytes(part).hex() for part in sums.gather(own))
    keeper = Telling(tell if sums.rank == 0 else None, whole, len(orders.done), check, data.categories)
    place = Place(
        sums,
        sums if orders.split_valid else ALONE,
        None if orders.bins is None else Bins(*(array.copy() for array in vars(orders.bins).values())),
        orders.done,
        keeper,
    )
    orders.job(data, valid, place, orders.n_jobs)
    keeper.end()
    return keeper.last


def with_jobs(orders: Orders, n_jobs: int) -> Orders:
    """Return orders with as many threads as a worker has, where none were asked for."""
    return orders if orders.n_jobs else replace(orders, n_jobs=n_jobs)
