"""Some rows at a time: what a scan reads from, what it gives, and where it may be cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

from mcrank.arrays import FeatureArray, FloatArray, IntArray
from mcrank.data.ids import IdArray

# Called with what is done and what there is in all: bytes of text, rows of tables.
Progress = Callable[[int, int], None]
Purpose = Literal["train", "score", "grade", "documents"]


class Piece(NamedTuple):
    """Some of a file: from byte (LETOR text) or row (Parquet) ``start`` up to ``stop``; None for its end."""

    path: Path
    start: int = 0
    stop: int | None = None


class Batch(NamedTuple):
    """Some rows, in the order of the source.

    Attributes
    ----------
    X, y : ndarray
        Features (float32) and grades (float64). In LETOR text whose width nobody gave, batches differ in it:
        `Scan.widened` adds features that a batch does not mention.
    weight : ndarray or None
        Row weights.
    run_rows : ndarray of int64
        Rows with which a run of one query begins; the first is 0.
    run_ids : ndarray
        Query id of each run: texts as they are written where a file has nothing but text.
    doc_ids : ndarray or None
        Document id of each row, where they were asked for and there are any.
    """

    X: FeatureArray
    y: FloatArray
    weight: FloatArray | None
    run_rows: IntArray
    run_ids: IdArray
    doc_ids: IdArray | None = None


def between(pieces: Sequence[Piece], first: tuple[int, int], last: tuple[int, int]) -> list[Piece]:
    """What lies between two places: number of a piece, and byte or row in its file."""
    found = []
    for at in range(first[0], min(last[0] + 1, len(pieces))):
        piece = pieces[at]
        start = first[1] if at == first[0] else piece.start
        stop = last[1] if at == last[0] else piece.stop
        if stop is None or start < stop:
            found.append(piece._replace(start=start, stop=stop))
    return found


def cut_evenly(
    pieces: Sequence[Piece],
    sizes: Sequence[int],
    count: int,
    next_query: Callable[[int, int], tuple[int, int]],
) -> list[list[Piece]]:
    """Cut pieces into ``count`` groups of about equal size (some may be empty), each of whole queries.

    ``next_query`` returns the first place from a piece and a byte or row in it on where a query begins.
    """
    ends = list(accumulate(sizes))
    cuts = [(0, pieces[0].start)]
    for part in range(1, count):
        target = ends[-1] * part // count
        at = bisect_right(ends, target)
        cuts.append(max(cuts[-1], next_query(at, pieces[at].start + target - (ends[at] - sizes[at]))))
    cuts.append((len(pieces), 0))
    return [between(pieces, cuts[i], cuts[i + 1]) for i in range(count)]
