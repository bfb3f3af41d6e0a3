"""TREC files: judgments (qrels) and runs, and how they meet by query and document id."""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from mcrank.arrays import Array, BoolArray, FloatArray, IntArray
from mcrank.data.checks import check_numbers
from mcrank.data.ids import id_texts
from mcrank.data.numbers import read_number
from mcrank.data.sources import open_text
from mcrank.errors import DataError

# An id may hold blanks of other scripts and old separators; columns end at the blanks of C, as in the tools.
_WORD = re.compile(r"[^ \t\n\r\v\f]+")
_SPLIT_DIFFERS = re.compile(r"[\x1c-\x1f]|[^\x00-\x7f]")

PREFERENCES = (
    "Five columns are preferences (query, judge, group, document, level), which measures here do not take; "
    "give judgments of four columns."
)


class _Pairs:
    """Values by query and document: ``{query: {document: value}}``, in first-seen order.

    ``rows`` has the place of each of them among the caller's rows, or the lines of the file, from 0.
    """

    _value = ""
    _finite = False

    def __init__(
        self, qid: Iterable[Any], doc_id: Iterable[Any], values: Iterable[float], *, where: str = ""
    ) -> None:
        # As in the tools, ids are texts: query 7 of a data frame is query "7" of a file.
        name = type(self).__name__
        columns = [id_texts(qid, f"qid of {name}"), id_texts(doc_id, f"doc_id of {name}")]
        numbers = check_numbers(values, f"{self._value} of {name}").astype(np.float64)
        if numbers.ndim != 1 or not len(columns[0]) == len(columns[1]) == len(numbers):
            raise DataError(f"{type(self).__name__} needs columns of one length.")
        self.queries: dict[str, dict[str, float]] = {}
        self.rows: dict[str, array[int]] = {}
        for place, (query, document, value) in enumerate(zip(*columns, numbers.tolist(), strict=True)):
            self._add(query, document, value, place, f"{where}row {place}")
        self._check_some(where)

    def _check_some(self, where: str) -> None:
        if not self.queries:
            raise DataError(f"{where or type(self).__name__} has no rows.")

    def _add(self, query: str, document: str, value: float, row: int, where: str) -> None:
        if value != value:
            raise DataError(f"{where}: {self._value} of document {document!r} in query {query!r} is NaN.")
        if self._finite and math.isinf(value):
            raise DataError(f"{where}: {self._value} of document {document!r} must be finite, got {value}.")
        documents = self.queries.setdefault(query, {})
        if document in documents:
            raise DataError(
                f"{where}: document {document!r} stands twice in query {query!r}; remove one of the lines."
            )
        documents[document] = value
        self.rows.setdefault(query, array("q")).append(row)

    @classmethod
    def _read(cls, path: str | os.PathLike[str], columns: int, value_at: int, form: str) -> Self:
        where = Path(path)
        pairs = cls.__new__(cls)
        pairs.queries, pairs.rows = {}, {}
        row = 0
        with open_text(where) as lines:
            for number, line in enumerate(lines, start=1):
                words = _WORD.findall(line) if _SPLIT_DIFFERS.search(line) else line.split()
                if not words or words[0].startswith("#"):
                    continue
                pairs._add_line(words, columns, value_at, form, row, f"{where}, line {number}")
                row += 1
        pairs._check_some(str(where))
        return pairs

    def _add_line(
        self, words: Sequence[str], columns: int, value_at: int, form: str, row: int, where: str
    ) -> None:
        if len(words) != columns:
            raise DataError(f"{where}: {len(words)} columns, must be {columns}: {form}.{self._hint(words)}")
        try:
            value = read_number(words[value_at])
        except ValueError:
            raise DataError(f"{where}: {self._value} must be a number, got {words[value_at]!r}.") from None
        self._add(words[0], words[2], value, row, where)
        if columns == 6:
            self.tag = words[5]

    def _hint(self, words: Sequence[str]) -> str:
        return ""

    def __len__(self) -> int:
        return sum(len(documents) for documents in self.queries.values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.queries)} queries, {len(self)} rows)"


class Qrels(_Pairs):
    """Judgments: a grade for each judged document of each query. A grade below 0 counts as unjudged.

    Parameters
    ----------
    qid, doc_id : iterable
        Query and document of each row, compared as texts: 7 is "7".
    grade : iterable of float
        Grade of each row.

    Examples
    --------
    >>> from mcrank import Qrels
    >>> Qrels(["q1", "q1"], ["a", "b"], [1, 0])
    Qrels(1 queries, 2 rows)
    """

    _value = "grade"
    _finite = True

    def __init__(self, qid: Iterable[Any], doc_id: Iterable[Any], grade: Iterable[float]) -> None:
        super().__init__(qid, doc_id, grade)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read lines of query, iteration, document, grade."""
        return cls._read(path, 4, 3, "query iteration document grade")

    def _hint(self, words: Sequence[str]) -> str:
        return f" {PREFERENCES}" if len(words) == 5 else ""


class Run(_Pairs):
    """Scores a system gave to documents of queries. The rank column of a run file is not read.

    Parameters
    ----------
    qid, doc_id : iterable
        Query and document of each row, compared as texts: 7 is "7".
    score : iterable of float
        Score of each row.

    Examples
    --------
    >>> import mcrank
    >>> qrels = mcrank.Qrels(["q1", "q1"], ["a", "b"], [1, 0])
    >>> run = mcrank.Run(["q1", "q1"], ["b", "a"], [2.0, 1.0])
    >>> mcrank.evaluate(run, qrels, "mrr").mean["mrr"]
    0.5
    """

    _value = "score"

    def __init__(self, qid: Iterable[Any], doc_id: Iterable[Any], score: Iterable[float]) -> None:
        super().__init__(qid, doc_id, score)

    tag = ""  # what the last column of the file's last line calls the run

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read lines of query, Q0, document, rank, score, run name."""
        return cls._read(path, 6, 4, "query Q0 document rank score run")


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged queries and what a run ranked for them, as flat rows.

    Query ``q`` owns the rows ``offsets[q]:offsets[q + 1]``: first the documents the run ranked, up to
    ``ranked_ends[q]``, then those judged but not ranked. Unjudged documents have grade 0 and keep their rank.
    ``source_rows`` are the rows' places in the judgments, -1 for documents outside them: `outside` has those,
    ``unjudged_rows`` also the ones judged below 0.
    """

    y: FloatArray
    scores: FloatArray
    offsets: IntArray
    ranked_ends: IntArray
    qids: Array
    doc_ids: Array
    missing: BoolArray
    absent: BoolArray
    unjudged: BoolArray
    only_in_run: int
    source_rows: IntArray
    unjudged_rows: BoolArray
    query_weight: FloatArray | None = None

    @property
    def outside(self) -> BoolArray:
        """Documents that the judgments do not have at all."""
        return self.source_rows < 0


def judge(qrels: Qrels, run: Run, *, complete: bool = False, judged_only: bool = False) -> Judged:
    """Bring judgments and a run together by query and document id.

    Parameters
    ----------
    qrels : Qrels
        Judgments; their queries, in their order, are the queries of the result.
    run : Run
        Scores. Its queries without judgments are counted and left out.
    complete : bool
        Treat judged queries the run misses as ranked with nothing, instead of as missing.
    judged_only : bool
        Leave unjudged documents out.

    Examples
    --------
    >>> from mcrank.data.trec import Qrels, Run, judge
    >>> judged = judge(Qrels([1, 1], ["a", "b"], [1, 0]), Run([1, 1], ["u", "a"], [2.0, 1.0]))
    >>> judged.doc_ids.tolist(), judged.y.tolist(), judged.ranked_ends.tolist()
    (['u', 'a', 'b'], [0.0, 1.0, 0.0], [2])
    """
    grades: list[float] = []
    scores: list[float] = []
    documents: list[str] = []
    source: list[int] = []
    unjudged: list[bool] = []
    ends: list[int] = []
    offsets = [0]
    for query, all_judgments in qrels.queries.items():
        judgments = {document: grade for document, grade in all_judgments.items() if grade >= 0.0}
        ranked = run.queries.get(query, {})
        if judged_only:
            ranked = {document: score for document, score in ranked.items() if document in judgments}
        documents.extend(ranked)
        scores.extend(ranked.values())
        grades.extend(judgments.get(document, 0.0) for document in ranked)
        unjudged.extend(document not in judgments for document in ranked)
        ends.append(len(documents))
        rest = [document for document in judgments if document not in ranked]
        documents.extend(rest)
        scores.extend([-np.inf] * len(rest))
        grades.extend(judgments[document] for document in rest)
        unjudged.extend([False] * len(rest))
        places = dict(zip(all_judgments, qrels.rows[query], strict=True))
        source.extend(places.get(document, -1) for document in documents[offsets[-1] :])
        offsets.append(len(documents))
    absent = np.array([query not in run.queries for query in qrels.queries], dtype=np.bool_)
    return Judged(
        y=np.array(grades, dtype=np.float64),
        scores=np.array(scores, dtype=np.float64),
        offsets=np.array(offsets, dtype=np.int64),
        ranked_ends=np.array(ends, dtype=np.int64),
        qids=np.array(list(qrels.queries), dtype=object),
        doc_ids=np.array(documents, dtype=object),
        missing=np.zeros_like(absent) if complete else absent,
        absent=absent,
        unjudged=np.array([max(g.values()) < 0.0 for g in qrels.queries.values()], dtype=np.bool_),
        only_in_run=sum(query not in qrels.queries for query in run.queries),
        source_rows=np.array(source, dtype=np.int64),
        unjudged_rows=np.array(unjudged, dtype=np.bool_),
    )
