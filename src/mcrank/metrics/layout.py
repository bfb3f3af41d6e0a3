"""`Layout`: the rows of all queries as the plain arrays that kernels take, and single passes over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numba import types

from mcrank.arrays import Array, BoolArray, ByteArray, FloatArray, IntArray, RowArray
from mcrank.errors import DataError, McrankError, MeasureError
from mcrank.kernels import kernel
from mcrank.lazy import lazy
from mcrank.threads import run_all

LevelArray = ByteArray | RowArray
_ROWS_PER_THREAD = 100_000  # ranked in half a millisecond; waking a thread up takes a tenth
_PARTS = 2  # for each thread


class Graded(Protocol):
    """What a measure needs to know of its data: grades, grouped by query. A `Dataset` is one."""

    @property
    def y(self) -> FloatArray:
        """Grade of each row."""

    @property
    def offsets(self) -> IntArray:
        """Query ``q`` owns rows ``offsets[q]:offsets[q + 1]``."""

    @property
    def qids(self) -> Array:
        """Id of each query."""

    @property
    def query_weight(self) -> FloatArray | None:
        """Weight of each query in a mean."""

    @property
    def doc_ids(self) -> Array | None:
        """Document id of each row."""


def at_row(error: McrankError, row: int) -> McrankError:
    """Note on an error which of the caller's rows it is about; the command line makes a line number of it."""
    error.row = row  # type: ignore[attr-defined]
    return error


@dataclass(frozen=True, eq=False)
class Layout:
    """Grades and query bounds, prepared once and shared by measures.

    Query ``q`` ranks the rows ``starts[q]:ends[q]``. Judged rows that a run did not retrieve follow, up to
    ``stops[q]``: they have no rank but count in the ideal ranking.
    """

    given: FloatArray | None  # grades; None where ``small`` has them
    starts: IntArray
    ends: IntArray
    stops: IntArray
    qids: Array
    query_weight: FloatArray | None
    doc_ids: Array | None
    missing: BoolArray | None
    unjudged: BoolArray | None
    source_rows: IntArray | None
    small: ByteArray | None = None
    unjudged_rows: BoolArray | None = None  # retrieved without a judgment; None: all are judged
    outside: BoolArray | None = None  # and not even drawn to be judged
    jobs: int = 1

    @classmethod
    def of(cls, data: Graded, jobs: int = 1) -> Layout:
        """Lay out a `Dataset`, `Grades` or the judged queries of a TREC run."""
        # Own copies: kernels are compiled for writable arrays, and the arrays of a Dataset are read-only.
        offsets = np.array(data.offsets, dtype=np.int64)
        stops = offsets[1:].copy()
        ends = getattr(data, "ranked_ends", None)
        small = getattr(data, "small", None)
        return cls(
            given=np.ascontiguousarray(data.y, dtype=np.float64) if small is None else None,
            starts=offsets[:-1].copy(),
            ends=stops if ends is None else np.array(ends, dtype=np.int64),
            stops=stops,
            qids=data.qids,
            query_weight=data.query_weight,
            doc_ids=_named(data.doc_ids),
            missing=getattr(data, "missing", None),
            unjudged=getattr(data, "unjudged", None),
            source_rows=getattr(data, "source_rows", None),
            small=small,
            unjudged_rows=getattr(data, "unjudged_rows", None),
            outside=getattr(data, "outside", None),
            jobs=jobs,
        )

    def in_parts(self, work: Callable[[slice], None], ranks: int | None = None) -> None:
        """Run kernels over parts of the queries on threads, where there is work enough to pay for it.

        ``ranks`` is how many the kernel looks at, when it does not look at every row.
        """
        threads = min(self.jobs, (self.n_rows if ranks is None else ranks) // _ROWS_PER_THREAD)
        if threads < 2:
            work(slice(0, self.n_queries))
            return
        # More parts than threads: a thread that woke up late or runs on a busy processor takes fewer.
        shares = np.arange(1, _PARTS * threads) * (self.n_rows // (_PARTS * threads))
        cuts = [0, *np.searchsorted(self.stops, shares).tolist(), self.n_queries]
        run_all(work, [slice(a, b) for a, b in itertools.pairwise(cuts) if a < b], threads)

    def rows_of(self, part: slice) -> slice:
        """Return the rows, ranked or not, of a part of the queries."""
        if part.start == part.stop:
            return slice(0, 0)
        return slice(int(self.starts[part.start]), int(self.stops[part.stop - 1]))

    @lazy
    def judged(self) -> BoolArray:
        """Whether each row was judged."""
        return np.ones(self.n_rows, dtype=np.bool_) if self.unjudged_rows is None else ~self.unjudged_rows

    @lazy
    def pooled(self) -> BoolArray:
        """Whether each row was judged, or drawn to be (a grade below 0 in the qrels)."""
        return np.ones(self.n_rows, dtype=np.bool_) if self.outside is None else ~self.outside

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.starts)

    @property
    def n_rows(self) -> int:
        """Number of rows, ranked or not."""
        return int(self.stops[-1]) if len(self.stops) else 0

    @lazy
    def grades(self) -> FloatArray:
        """Grade of each row."""
        if self.given is not None:
            return self.given
        assert self.small is not None  # one of the two is there
        return self.small.astype(np.float64)

    @lazy
    def sizes(self) -> IntArray:
        """Ranked rows of each query."""
        return self.ends - self.starts

    @lazy
    def empty(self) -> BoolArray:
        """Whether each query is without a grade above 0, which NDCG has no value for."""
        return self.query_sums((self.level_grades > 0.0).astype(np.float64)) <= 0.0

    def shorter_than(self, k: int) -> BoolArray:
        """Whether each query ranks fewer than ``k`` rows, whatever their grades."""
        return self.sizes < k

    @lazy
    def longest(self) -> int:
        """Most rows any query has, ranked or not."""
        return int((self.stops - self.starts).max(initial=0))

    @lazy
    def _leveled(self) -> tuple[LevelArray, FloatArray]:
        from mcrank.data.passes import whole_grades

        whole = self.small
        if whole is None:
            whole = np.empty(self.n_rows, dtype=np.uint8)
            if not whole_grades(self.grades, whole):
                whole = None
        if whole is not None:
            return whole, np.arange(int(whole.max(initial=0)) + 1.0)
        level_grades, levels = np.unique(self.grades, return_inverse=True)
        few = len(level_grades) <= 256
        return (levels.astype(np.uint8) if few else levels.astype(np.int32)), level_grades

    @property
    def levels(self) -> LevelArray:
        """Level of each row: small integers are their own level, other grades are numbered upwards.

        Kernels read what a level is worth from a table; the rows themselves stay one byte each.
        """
        return self._leveled[0]

    @property
    def level_grades(self) -> FloatArray:
        """Grade of each level."""
        return self._leveled[1]

    @lazy
    def in_float32(self) -> Layout:
        """The same rows with grades rounded to float32; itself where that changes none."""
        with np.errstate(over="ignore"):
            rounded = self.level_grades.astype(np.float32).astype(np.float64)
        if np.array_equal(rounded, self.level_grades):
            return self
        return replace(self, given=np.take(rounded, self.levels), small=None)

    @lazy
    def queries(self) -> IntArray:
        """Query number of each row."""
        return np.repeat(np.arange(self.n_queries), self.stops - self.starts)

    def source_row(self, row: int) -> int:
        """Return a row's place in the caller's order."""
        return row if self.source_rows is None else int(self.source_rows[row])

    def row_words(self, row: int) -> str:
        """Say where a row is, for an error message."""
        query = int(np.searchsorted(self.stops, row, side="right"))
        return f"row {self.source_row(row)} (query {self.qids[query]})"

    @lazy
    def level_counts(self) -> RowArray | None:
        """Rows of each query (first axis), ranked or not, at each level; None for a large table.

        What does not depend on the ranking, such as ideal sums and numbers of relevant rows, follows from it.
        """
        n_levels = len(self.level_grades)
        if n_levels > 256 or self.n_queries * n_levels > max(8 * self.n_rows, 4096):
            return None
        count = count_few_levels if n_levels <= 8 else count_levels
        out = np.zeros((self.n_queries, n_levels), dtype=np.int32)
        levels = self.levels  # made once, before threads ask for it
        count(levels, self.starts, self.stops, out)
        return out

    @lazy
    def _sums(self) -> dict[bytes, FloatArray]:
        return {}

    def query_sums(self, worth: FloatArray) -> FloatArray:
        """Return the sum over every query's rows, ranked or not, of what their levels are worth."""
        key = worth.tobytes()
        if key not in self._sums:
            out = np.empty(self.n_queries, dtype=np.float64)
            levels, counts = self.levels, self.level_counts
            if counts is not None:
                count_sums(counts, worth, out)
            else:
                self.in_parts(lambda p: level_sums(levels, self.starts[p], self.stops[p], worth, out[p]))
            self._sums[key] = out
        return self._sums[key]

    def refuse_levels(self, bad: BoolArray, measure: str, because: str) -> None:
        """Raise `MeasureError` for the first row of a level that ``bad`` marks."""
        if not bad.any():
            return
        marked = bad[self.levels]
        if marked.any():
            row = int(np.argmax(marked))
            raise at_row(
                MeasureError(
                    f"{measure} cannot take grade {self.grades[row]:g} at {self.row_words(row)}: {because}."
                ),
                self.source_row(row),
            )

    def check_ids(self, measure: str) -> None:
        """Raise `DataError` when one document id stands twice in one query."""
        if self.doc_ids is None:
            return
        ids = self.doc_ids.tolist()
        for start, stop in zip(self.starts.tolist(), self.stops.tolist(), strict=True):
            if len(set(ids[start:stop])) == stop - start:
                continue
            row = next(i for i in range(start + 1, stop) if ids[i] in ids[start:i])
            raise at_row(
                DataError(
                    f"{measure} tells documents apart by id, and document {str(ids[row])!r} stands twice in "
                    f"one query, again at {self.row_words(row)}; remove one, or say ids=any."
                ),
                self.source_row(row),
            )

    @lazy
    def id_codes(self) -> IntArray:
        """Place of each row's document id in byte order."""
        if self.doc_ids is None:
            raise MeasureError("ties by document id need doc_ids.")
        # Half a surrogate pair, which Python may hold, has no place in UTF-8 unless it is let pass.
        ids = np.array([str(d).encode(errors="surrogatepass") for d in self.doc_ids.tolist()], dtype=object)
        _, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.int64)

    @lazy
    def id_order(self) -> IntArray:
        """Rows sorted by document id, ascending, inside each query."""
        return np.lexsort((self.id_codes, self.queries))


def _named(doc_ids: Array | None) -> Array | None:
    """Return document ids, or None where rows have none to speak of."""
    if doc_ids is None or (len(doc_ids) and doc_ids[0] == "" and set(doc_ids.tolist()) == {""}):
        return None
    return doc_ids


# Grades and scores may be read-only arrays of the caller's; this takes writable ones too.
_READ = types.Array(types.float64, 1, "C", readonly=True)


@kernel(fastmath={"reassoc", "nsz"})
def level_sums(levels, starts, stops, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the levels of each query's rows are worth, in whatever order is quickest."""
    # IN: levels by row, starts, stops, worth by level  OUT: out
    for q in range(starts.shape[0]):
        total = 0.0
        for i in range(starts[q], stops[q]):
            total += worth[levels[i]]
        out[q] = total


@kernel()
def count_levels(levels, starts, stops, out):  # type: ignore[no-untyped-def]
    """Count the rows of each level in each query."""
    # IN: levels by row, starts, stops  OUT: out[query, level] (zeros before)
    for q in range(starts.shape[0]):
        held = out[q]
        for i in range(starts[q], stops[q]):
            held[levels[i]] += 1


@kernel()
def count_few_levels(levels, starts, stops, out):  # type: ignore[no-untyped-def]
    """As `count_levels`, for up to 8 levels: their counts are the bytes of one number, emptied in time."""
    # IN: levels by row, starts, stops  OUT: out[query, level] (zeros before)
    for q in range(starts.shape[0]):
        for first in range(starts[q], stops[q], 255):
            packed = np.uint64(0)
            for level in levels[first : min(first + 255, stops[q])]:
                packed += np.uint64(1) << (np.uint64(level) * np.uint64(8))
            for level in range(out.shape[1]):
                out[q, level] += (packed >> np.uint64(8 * level)) & np.uint64(255)


@kernel()
def count_sums(counts, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the rows of each query are worth, from how many there are of each level."""
    # IN: counts[query, level], worth by level  OUT: out
    for q in range(counts.shape[0]):
        total = 0.0
        for level in range(counts.shape[1]):
            if counts[q, level] > 0:
                total += counts[q, level] * worth[level]
        out[q] = total


@kernel(types.int64(_READ))
def count_nan(values):  # type: ignore[no-untyped-def]
    """Count the values that are NaN."""
    # IN: values
    missing = 0
    for i in range(values.shape[0]):
        missing += values[i] != values[i]
    return missing
