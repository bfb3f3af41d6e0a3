"""Dask dataframes and arrays as training data: partitions stay where they lie, or rows change places.

A partition has whole queries, or `Regrouped` brings them together: every partition is dealt out by a hash of
the query id, and what belongs together is put together in the order of the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcrank.data.dataset import Dataset
from mcrank.data.ids import check_ids
from mcrank.errors import DataError, OptionError
from mcrank.scale.plan import PINNED, Piece, Source
from mcrank.scale.worker import together

# Makes a `Dataset` of the columns of one partition: X, and what belongs to its rows by name.
Make = Callable[[Any, Mapping[str, Any]], Dataset]


def is_collection(X: Any) -> bool:
    """Whether it is a dataframe or an array of Dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def partitions(X: Any, beside: Mapping[str, Any], where: str) -> list[tuple[Any, dict[str, Any]]]:
    """Return the partitions of a collection, each with what belongs to its rows.

    A text names a column of a dataframe, and is taken out of each partition. Anything else must be cut as
    ``X`` is.
    """
    frame = hasattr(X, "npartitions") and hasattr(X, "columns")
    if not frame and (getattr(X, "ndim", 0) != 2 or X.numblocks[1] != 1):
        raise DataError(f"X of {where} must be a Dask array of rows, each with all its columns in one chunk.")
    parts = np.asarray(X.to_delayed()).reshape(-1).tolist()
    given: dict[str, list[Any]] = {}
    for name, value in beside.items():
        if value is None or (frame and isinstance(value, str)):
            given[name] = [value] * len(parts)
            continue
        if not is_collection(value):
            raise OptionError(
                f"{name} of {where} must be a Dask collection as X is"
                f"{', or the name of a column' if frame else ''}, got {type(value).__name__}."
            )
        cut = np.asarray(value.to_delayed()).reshape(-1).tolist()
        if len(cut) != len(parts):
            raise DataError(f"{name} of {where} has {len(cut)} partitions and X has {len(parts)}.")
        given[name] = cut
    return [(part, {name: given[name][k] for name in given}) for k, part in enumerate(parts)]


@dataclass(eq=False)
class CollectionSource:
    """A Dask dataframe or array."""

    parts: Sequence[tuple[Any, dict[str, Any]]]
    make: Make
    absent: float = 0.0
    _futures: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)

    def pieces(self, client: Any, workers: int) -> list[Piece]:
        """Return the partitions, computed where Dask puts them."""
        if not self._futures:
            self._futures = [_computed(client, part, beside) for part, beside in self.parts]
            for part, _ in self._futures:
                if (error := part.exception()) is not None:  # waits for it
                    raise error
        homes = client.who_has([part for part, _ in self._futures])
        found = []
        for k, (part, beside) in enumerate(self._futures):
            at = list(homes.get(part.key, ()))
            found.append(Piece(f"partition {k}", 1, (part, beside), at[0] if at else None))
        return found

    def deliver(self, client: Any, pieces: Sequence[Piece], worker: str) -> Any:
        """Have a worker make a data set of partitions; those that lie elsewhere come to it."""
        contents = [piece.content for piece in pieces]
        return client.submit(_made, self.make, contents, workers=[worker], **PINNED)


def _computed(client: Any, part: Any, beside: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    given = {k: client.compute(v) if hasattr(v, "__dask_graph__") else v for k, v in beside.items()}
    return client.compute(part), given


def _made(make: Make, contents: Sequence[tuple[Any, Mapping[str, Any]]]) -> Dataset:
    """At a worker: make one data set of partitions."""
    found = [make(part, beside) for part, beside in contents if len(part)]
    if not found:
        raise DataError("a worker got partitions without a single row; repartition the data.")
    return together(found, max(part.n_features for part in found), 0.0)


@dataclass(eq=False)
class Regrouped:
    """Data whose queries may be cut: rows change places so that each query is whole."""

    source: Source

    @property
    def absent(self) -> float:
        """Value of features that other pieces have and one does not mention."""
        return self.source.absent

    def pieces(self, client: Any, workers: int) -> list[Piece]:
        """Deal out every piece by query, and put together what belongs together."""
        there = sorted(client.nthreads())
        whole = []
        for k, piece in enumerate(self.source.pieces(client, workers)):
            at = piece.home or there[k % len(there)]
            whole.append(self.source.deliver(client, [piece], at))
        lots = [client.submit(_dealt, data, workers, pure=False) for data in whole]
        return [Piece(f"lot {n} of the regrouped data", 1, (lots, n)) for n in range(workers)]

    def deliver(self, client: Any, pieces: Sequence[Piece], worker: str) -> Any:
        """Have a worker put lots together."""
        lots, numbers = pieces[0].content[0], [piece.content[1] for piece in pieces]
        return client.submit(_picked, lots, numbers, self.absent, workers=[worker], **PINNED)


def _dealt(data: Dataset, count: int) -> list[Dataset | None]:
    """At a worker: cut a data set by the hash of its query ids."""
    from mcrank.boosting.sampling import query_keys

    lot = query_keys(data.qids) % np.uint64(count)
    found: list[Dataset | None] = []
    for n in range(count):
        own = np.flatnonzero(lot == n)
        found.append(data.select(own) if len(own) else None)
    return found


def _picked(lots: Sequence[Sequence[Dataset | None]], numbers: Sequence[int], absent: float) -> Dataset:
    """At a worker: put lots together; rows of a query stand in the order of the pieces they came from."""
    parts = [lot[n] for n in numbers for lot in lots if lot[n] is not None]
    found = [part for part in parts if part is not None]
    if not found:
        raise DataError("there are fewer queries than workers; use fewer workers.")
    return together(found, max(part.n_features for part in found), absent, same_query="join")


def rows_of_part(where: str, part: Any, beside: Mapping[str, Any]) -> Dataset:
    """At a worker: make a data set of a partition of a dataframe or an array."""
    named = {k: v for k, v in beside.items() if isinstance(v, str)}
    columns = {k: part[v] if k in named else v for k, v in beside.items()}
    if columns.get("qid") is None or columns.get("y") is None:
        raise OptionError(
            f"{where} needs y and qid beside a Dask collection: names of its columns, or others cut as it is."
        )
    rest = part.drop(columns=list(named.values())) if named else part
    qid = check_ids(np.asarray(columns["qid"]), f"qid of {where}", len(part))
    return Dataset(rest, columns["y"], qid, columns.get("weight"))
