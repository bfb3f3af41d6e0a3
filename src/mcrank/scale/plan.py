"""What a training reads, cut into pieces of whole queries, and which worker has which.

Pieces are delivered by Dask: a worker reads its part of files itself, a part of a `Dataset` is sent to it,
and a partition of a Dask collection is used where it lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan

PINNED: dict[str, Any] = {"allow_other_workers": False, "pure": False, "retries": 0}
_PER_WORKER = 4  # pieces, so that those of a lost one can be shared by the others


class Piece(NamedTuple):
    """Some queries of the data.

    Attributes
    ----------
    name : str
        What messages call it.
    weight : int
        How much it is, beside the other pieces.
    content : object
        What its source makes of it.
    home : str or None
        The worker that has it already, if one does.
    """

    name: str
    weight: int
    content: Any
    home: str | None = None


class Source(Protocol):
    """Data that can be cut into pieces of whole queries.

    Attributes
    ----------
    absent : float
        Value of features that other pieces have and one does not mention.
    """

    @property
    def absent(self) -> float:
        """Value of features that other pieces have and one does not mention."""

    def pieces(self, client: Any, workers: int) -> list[Piece]:
        """Return pieces for so many workers."""

    def deliver(self, client: Any, pieces: Sequence[Piece], worker: str) -> Any:
        """Return a future of pieces as one `Dataset` at a worker."""


@dataclass(frozen=True, eq=False)
class MemorySource:
    """A data set that is where the training is started."""

    data: Dataset
    absent: float = 0.0

    def pieces(self, client: Any, workers: int) -> list[Piece]:
        """Return runs of neighbouring queries with about equal numbers of rows."""
        data, count = self.data, workers * _PER_WORKER if workers > 1 else 1
        ends = np.searchsorted(data.offsets, data.n_rows * np.arange(1, count) / count)
        cuts = np.unique(np.r_[0, ends, data.n_queries]).tolist()
        return [
            Piece(f"queries {a} to {b - 1}", int(data.offsets[b] - data.offsets[a]), range(a, b))
            for a, b in pairwise(cuts)
        ]

    def deliver(self, client: Any, pieces: Sequence[Piece], worker: str) -> Any:
        """Send queries to a worker."""
        queries = np.concatenate([np.array(piece.content) for piece in pieces])
        return client.scatter(self.data.select(queries), workers=[worker], hash=False)


@dataclass(frozen=True)
class ScanSource:
    """Files, which every worker must see under the same names."""

    scan: Scan

    @property
    def absent(self) -> float:
        """What a feature is that LETOR text does not mention."""
        return float("nan") if self.scan.letor.absent == "missing" else 0.0

    def pieces(self, client: Any, workers: int) -> list[Piece]:
        """Return parts of about equal size."""
        parts = self.scan.parts(workers * _PER_WORKER if workers > 1 else 1)
        return [Piece(part.where, 1, part) for part in parts]

    def deliver(self, client: Any, pieces: Sequence[Piece], worker: str) -> Any:
        """Have a worker read parts of files."""
        whole = replace(self.scan, pieces=tuple(p for piece in pieces for p in piece.content.pieces))
        return client.submit(Scan.read, whole, workers=[worker], **PINNED)


def place_pieces(pieces: Sequence[Piece], workers: Sequence[str]) -> dict[str, list[Piece]]:
    """Give pieces to workers: where they lie, or the largest first to who has least; some may get none.

    Examples
    --------
    >>> from mcrank.scale.plan import Piece, place_pieces
    >>> pieces = [Piece("a", 5, None), Piece("b", 3, None), Piece("c", 3, None, home="two")]
    >>> {w: [p.name for p in some] for w, some in place_pieces(pieces, ["one", "two", "three"]).items()}
    {'one': ['a'], 'two': ['c'], 'three': ['b']}
    """
    given: dict[str, list[Piece]] = {worker: [] for worker in workers}
    load = dict.fromkeys(workers, 0)
    for piece in sorted(pieces, key=lambda piece: (piece.home not in load, -piece.weight)):
        worker = piece.home if piece.home in load else min(workers, key=lambda w: load[w])
        given[worker or ""].append(piece)
        load[worker or ""] += piece.weight
    return {worker: some for worker, some in given.items() if some}
