"""`Walk`: measures that look at one ranked query at a time, with what the judges said of every document.

They describe a finished ranking (a run and its qrels) and have no gradient; NumPy is quick enough for that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, RowArray
from mcrank.errors import MeasureError
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic
from mcrank.metrics.precision import Binary
from mcrank.metrics.ranking import RankedRows


class RankedQuery(NamedTuple):
    """One query: arrays by rank, and what there is to find.

    ``grades`` and ``relevant`` are 0 and False for documents that nobody judged; ``ideal`` has the grades
    above 0 of all judged documents, falling.
    """

    grades: FloatArray
    relevant: BoolArray
    judged: BoolArray
    pooled: BoolArray
    n_relevant: int
    n_nonrelevant: int
    ideal: FloatArray


@dataclass(frozen=True, eq=False)
class OneByOne(ABC):
    """A form that takes one ranked query after the other."""

    name: str
    worth: FloatArray
    layout: Layout

    @property
    def depth(self) -> int:
        """Every rank may matter."""
        return self.layout.longest

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        if expected:
            raise MeasureError(
                f"{self.name} has no mean over tied orders, which its dialect asks for: it is a function of "
                "one order; choose another rule, such as ties=file."
            )
        for q, (start, end) in enumerate(zip(rows.starts.tolist(), rows.ends.tolist(), strict=True)):
            out[part.start + q] = self._value(part.start + q, rows.order[start:end], rows.scores)

    @abstractmethod
    def _value(self, query: int, ranked: RowArray, scores: FloatArray) -> float:
        """Return the value of a query, from its rows by rank and the scores of all rows."""


@dataclass(frozen=True, eq=False)
class Walk(OneByOne):
    """A function of each ranked query, on data."""

    function: Callable[[RankedQuery], float]
    relevant: BoolArray
    empty: BoolArray  # queries that need no walk: nothing is there to find
    row_worth: FloatArray | None = None  # by row, where levels do not tell the worst order of ties
    no_worst: str = ""  # where nothing tells the worst and the best order of ties

    def _value(self, query: int, ranked: RowArray, scores: FloatArray) -> float:
        if self.empty[query]:
            return 0.0
        layout = self.layout
        every = slice(layout.starts[query], layout.stops[query])
        judged, pooled = layout.judged, layout.pooled
        relevant = self.relevant[layout.levels[every]]
        grades = layout.grades[every]
        n_relevant = int(relevant.sum())
        found = RankedQuery(
            grades=layout.grades[ranked],
            relevant=self.relevant[layout.levels[ranked]],
            judged=judged[ranked],
            pooled=pooled[ranked],
            n_relevant=n_relevant,
            n_nonrelevant=int(judged[every].sum()) - n_relevant,
            ideal=np.sort(grades[grades > 0.0])[::-1],
        )
        return self.function(found)


@dataclass(frozen=True)
class WalkMeasure(Binary):
    """Base of measures that are a function of one ranked query, `value`.

    Examples
    --------
    >>> from mcrank.metrics.pool import Bpref
    >>> from mcrank.metrics.walk import WalkMeasure
    >>> issubclass(Bpref, WalkMeasure)
    True
    """

    words: ClassVar[str] = ""
    whole: ClassVar[str] = "looks at the whole list"

    def value(self, query: RankedQuery) -> float:
        """Return the value of one query."""
        raise MeasureError(f"{type(self).__name__} is not a measure that can be computed.")

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the measure as a walk; a query without a relevant document scores 0."""
        relevant, counts = self._relevance(layout)
        form = Walk(self.name, relevant, layout, self.value, relevant > 0.0, counts == 0.0)
        return Arithmetic(form, form.empty, weighted=self._is_weighted, summary=self.summary)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        how = {"mean": "", "geometric": "; geometric mean of max(value, 0.00001)"}[self.summary]
        return f"{self.words}{how}; {self._relevant_words()}{self._weight_words()}"
