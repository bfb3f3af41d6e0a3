"""`Grades`: grades by query, without features: all that an evaluation needs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, ByteArray, FloatArray, IntArray
from mcrank.data.checks import check_grades, check_numbers, check_query_weights, group_rows
from mcrank.data.ids import check_ids
from mcrank.errors import DataError
from mcrank.threads import check_jobs, run_all

_ROWS_PER_THREAD = 200_000  # checked in a tenth of a millisecond, which is what waking a thread up takes


class Grades:
    """Grades of rows, grouped by query; what `mcrank.evaluate` needs when there are no features.

    Parameters
    ----------
    y : array-like of shape (rows,)
        Grades: finite and not negative.
    qid : array-like of shape (rows,)
        Query id of each row, in any order.
    doc_ids : sequence, optional
        One document id per row.
    query_weight : array-like or mapping, optional
        Weights of queries in a mean, in first-seen order or by query id.
    n_jobs : int, optional
        Threads that check the columns of large data; all cores by default.

    Examples
    --------
    >>> import mcrank
    >>> grades = mcrank.Grades([0, 1, 2], qid=["b", "a", "b"])
    >>> mcrank.evaluate([0.3, 0.1, 0.9], grades, "ndcg@10").mean["ndcg@10"]
    1.0
    """

    __slots__ = ("_y", "doc_ids", "offsets", "qids", "query_weight", "small", "source_rows")

    def __init__(
        self,
        y: npt.ArrayLike,
        qid: npt.ArrayLike,
        doc_ids: Any = None,
        query_weight: npt.ArrayLike | Mapping[Any, float] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> None:
        jobs = check_jobs(n_jobs, "Grades")
        given = np.atleast_1d(check_numbers(y, "y of Grades"))
        rows = len(given)
        if rows == 0:
            raise DataError("y of Grades is empty; there must be at least one row.")
        small = _small_grades(given, jobs)
        documents = None if doc_ids is None else check_ids(doc_ids, "doc_ids of Grades", rows, blank=True)
        order, self.offsets, self.qids = _grouped(check_ids(qid, "qid of Grades", rows, copy=False), jobs)
        self.source_rows: IntArray | None = order
        # The grades as bytes where that is exact: kernels read them instead, and nothing is checked twice.
        self.small = small if small is None or order is None else small[order]
        self._y: FloatArray | None = None
        if small is None:
            # A copy: the caller may go on to change the array.
            grades = np.array(given) if _are_grades(given) else check_grades(given, rows, "y of Grades")
            self._y = grades if order is None else grades[order]
        self.doc_ids = documents if documents is None or order is None else documents[order]
        self.query_weight = check_query_weights(query_weight, self.qids)

    @property
    def y(self) -> FloatArray:
        """Grade of each row, in grouped order."""
        if self._y is None:
            assert self.small is not None  # one of the two is there
            self._y = self.small.astype(np.float64)
        return self._y

    def to_grouped(self, values: Array) -> Array:
        """Bring per-row values from the caller's row order into the grouped order."""
        return values if self.source_rows is None else values[self.source_rows]

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def __repr__(self) -> str:
        return f"Grades({len(self)} rows, {len(self.qids)} queries)"


def _parts(rows: int, jobs: int) -> list[tuple[int, int]]:
    """Rows cut in parts, one a thread, where they are worth waking a thread up."""
    cuts = np.linspace(0, rows, max(1, min(jobs, rows // _ROWS_PER_THREAD)) + 1).astype(np.int64).tolist()
    return list(itertools.pairwise(cuts))


def _small_grades(given: Array, jobs: int) -> ByteArray | None:
    """Return the grades as bytes, or None where they are not integers from 0 to 255 (or not float64)."""
    if not _is_column(given):
        return None
    from mcrank.data.passes import whole_grades

    small = np.empty(len(given), dtype=np.uint8)
    whole = []

    def check(part: tuple[int, int]) -> None:
        whole.append(whole_grades(given[slice(*part)], small[slice(*part)]))

    run_all(check, _parts(len(given), jobs), jobs)
    return small if all(whole) else None


def _are_grades(given: Array) -> bool:
    if not _is_column(given):
        return False
    from mcrank.data.passes import are_grades

    return bool(are_grades(given))


def _is_column(given: Array) -> bool:
    return given.dtype == np.float64 and given.ndim == 1 and given.flags.c_contiguous


def _grouped(qid: Array, jobs: int) -> tuple[IntArray | None, IntArray, Array]:
    """As `group_rows`; integer ids that rise from query to query, as in most evaluations, in quick passes."""
    if qid.dtype == np.int64 and qid.flags.c_contiguous:
        from mcrank.data.passes import find_runs

        parts = _parts(len(qid), jobs)
        starts = np.empty(len(qid) + len(parts), dtype=np.int64)
        runs = [0] * len(parts)

        def find(part: int) -> None:
            low, high = parts[part]
            before = max(low - 1, 0)  # the row before tells whether a run goes on
            runs[part] = find_runs(qid[before:high], starts[low + part : high + part + 1])

        run_all(find, range(len(parts)), jobs)
        if all(runs):
            found = [
                starts[low + part + (part > 0) : low + part + runs[part]] + max(low - 1, 0)
                for part, (low, _) in enumerate(parts)
            ]
            first = np.concatenate(found)
            return None, np.append(first, len(qid)), qid[first]
    return group_rows(qid)
