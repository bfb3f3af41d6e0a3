"""`Layout`: the rows of all queries as the plain arrays that kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.errors import DataError, MeasureError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]


class Graded(Protocol):
    """What a measure needs to know of its data: grades, grouped by query. A `Dataset` is one."""

    @property
    def y(self) -> FloatArray:
        """Grade of each row."""

    @property
    def offsets(self) -> IntArray:
        """Query ``q`` owns rows ``offsets[q]:offsets[q + 1]``."""

    @property
    def qids(self) -> npt.NDArray[Any]:
        """Id of each query."""

    @property
    def query_weight(self) -> FloatArray | None:
        """Weight of each query in a mean."""

    @property
    def doc_ids(self) -> npt.NDArray[Any] | None:
        """Document id of each row."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Grades and query bounds, prepared once and shared by measures.

    Query ``q`` ranks the rows ``starts[q]:ends[q]``. Judged rows that a run did not retrieve follow, up to
    ``stops[q]``: they have no rank but count in the ideal ranking.
    """

    grades: FloatArray
    starts: IntArray
    ends: IntArray
    stops: IntArray
    qids: npt.NDArray[Any]
    query_weight: FloatArray | None
    doc_ids: npt.NDArray[Any] | None
    missing: BoolArray | None
    unjudged: BoolArray | None
    source_rows: IntArray | None

    @classmethod
    def of(cls, data: Graded) -> Layout:
        """Lay out a `Dataset`, or the judged queries of a TREC run."""
        # Own copies: kernels are compiled for writable arrays, and the arrays of a Dataset are read-only.
        offsets = np.array(data.offsets, dtype=np.int64)
        stops = offsets[1:].copy()
        ends = getattr(data, "ranked_ends", None)
        return cls(
            grades=np.asarray(data.y, dtype=np.float64),
            starts=offsets[:-1].copy(),
            ends=stops if ends is None else np.array(ends, dtype=np.int64),
            stops=stops,
            qids=data.qids,
            query_weight=data.query_weight,
            doc_ids=data.doc_ids,
            missing=getattr(data, "missing", None),
            unjudged=getattr(data, "unjudged", None),
            source_rows=getattr(data, "source_rows", None),
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.starts)

    @property
    def n_rows(self) -> int:
        """Number of rows, ranked or not."""
        return len(self.grades)

    @cached_property
    def sizes(self) -> IntArray:
        """Ranked rows of each query."""
        return self.ends - self.starts

    @cached_property
    def longest(self) -> int:
        """Most rows any query has, ranked or not."""
        return int((self.stops - self.starts).max(initial=0))

    @cached_property
    def levels(self) -> npt.NDArray[np.uint8] | None:
        """Grades as small integers, or None when some grade is not one."""
        if not 0.0 <= self.grades.max(initial=0.0) < 256.0:
            return None
        whole = self.grades.astype(np.uint8)
        return whole if (whole == self.grades).all() else None

    @cached_property
    def queries(self) -> npt.NDArray[np.int64]:
        """Query number of each row."""
        return np.repeat(np.arange(self.n_queries), self.stops - self.starts)

    def row_words(self, row: int) -> str:
        """Say where a row is, for an error message."""
        query = int(np.searchsorted(self.stops, row, side="right"))
        at = row if self.source_rows is None else int(self.source_rows[row])
        return f"row {at} (query {self.qids[query]})"

    @cached_property
    def _kept(self) -> dict[str, FloatArray]:
        return {}

    def by_grade(self, function: Any, key: str = "") -> FloatArray:
        """Apply an elementwise function of the grade, once per level where grades are small integers.

        Under a ``key`` the result is kept, for other measures that ask for the same.
        """
        if key in self._kept:
            return self._kept[key]
        if self.levels is None:
            values = np.array(function(self.grades), dtype=np.float64)
        else:
            table = function(np.arange(int(self.grades.max(initial=0.0)) + 1, dtype=np.float64))
            values = np.take(np.asarray(table, dtype=np.float64), self.levels)
        if key:
            self._kept[key] = values
        return values

    def query_sums(self, values: FloatArray, key: str = "") -> FloatArray:
        """Return the sum of row values of every query, ranked rows or not."""
        key = key and f"sum of {key}"
        if key not in self._kept or not key:
            # reduceat gives a query without rows its neighbour's value, so those are set aside.
            filled = self.stops > self.starts
            sums = np.zeros(self.n_queries, dtype=np.float64)
            if filled.any():
                sums[filled] = np.add.reduceat(values, self.starts[filled])
            if not key:
                return sums
            self._kept[key] = sums
        return self._kept[key]

    def refuse_grade(self, bad: Any, measure: str, because: str) -> None:
        """Raise `MeasureError` for the first row whose grade ``bad`` marks (as a function of the grade)."""
        if self.levels is not None and not bad(np.arange(self.grades.max(initial=0.0) + 1.0)).any():
            return
        marked = self.by_grade(lambda grade: bad(grade).astype(np.float64))
        if marked.any():
            row = int(np.argmax(marked))
            raise MeasureError(
                f"{measure} cannot take grade {self.grades[row]:g} at {self.row_words(row)}: {because}."
            )

    def check_ids(self, measure: str) -> None:
        """Raise `DataError` when one document id stands twice in one query."""
        if self.doc_ids is None:
            return
        order = self.id_order
        same = (self.id_codes[order][1:] == self.id_codes[order][:-1]) & (
            self.queries[order][1:] == self.queries[order][:-1]
        )
        if same.any():
            at = int(np.argmax(same))
            row = int(max(order[at], order[at + 1]))
            raise DataError(
                f"{measure} tells documents apart by id, and document {self.doc_ids[row]!r} stands twice "
                f"in one query, again at {self.row_words(row)}; remove one, or change the switch ids=any."
            )

    @cached_property
    def id_codes(self) -> npt.NDArray[np.int64]:
        """Place of each row's document id in byte order."""
        if self.doc_ids is None:
            raise MeasureError("ties by document id need doc_ids.")
        ids = np.array([str(d).encode() for d in self.doc_ids.tolist()], dtype=object)
        _, codes = np.unique(ids, return_inverse=True)
        return codes.astype(np.int64)

    @cached_property
    def id_order(self) -> npt.NDArray[np.int64]:
        """Rows sorted by document id, ascending, inside each query."""
        return np.lexsort((self.id_codes, self.queries))
