"""What was retrieved, as a set: counts, set average precision and utility. No order changes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.errors import MeasureError
from mcrank.metrics.layout import Layout, level_sums
from mcrank.metrics.measure import Arithmetic
from mcrank.metrics.precision import Binary
from mcrank.metrics.ranking import RankedRows


class Retrieved(NamedTuple):
    """Documents of each query: retrieved, relevant, both; and judged among the retrieved."""

    n: FloatArray
    relevant: FloatArray
    found: FloatArray
    judged: FloatArray


@dataclass(frozen=True, eq=False)
class Fixed:
    """A value of each query that its ranking does not change."""

    worth: FloatArray
    value: FloatArray
    depth: int = 1

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        out[part] = self.value[part]


@dataclass(frozen=True)
class SetMeasure(Binary):
    """Base of measures of the retrieved set; a count sums up over queries.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> data = Grades([1, 0, 1], qid=[1, 1, 2])
    >>> parse_measure("num_rel_ret").on(data).mean([3.0, 2.0, 1.0])
    2.0
    """

    words: ClassVar[str] = ""
    summary: ClassVar[str] = "sum"
    terms: ClassVar[Mapping[str, float]] = {}  # counts of `Retrieved`, and how often each is added
    whole: ClassVar[str] = "sees the retrieved as a set"

    def values(self, of: Retrieved) -> FloatArray:
        """Return the value of every query."""
        if not self.terms:
            raise MeasureError(f"{type(self).__name__} is not a measure that can be computed.")
        return sum((times * getattr(of, name) for name, times in self.terms.items()), np.zeros_like(of.n))

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the values of queries, which no ranking changes; no query is empty."""
        relevant, counts = self._relevance(layout)
        found = np.empty(layout.n_queries)
        level_sums(layout.levels, layout.starts, layout.ends, relevant, found)
        # Unjudged documents have grade 0, which a dialect may call relevant; a sum over ranked rows.
        judged = np.r_[0, np.cumsum(layout.judged)]
        known = (judged[layout.ends] - judged[layout.starts]).astype(np.float64)
        of = Retrieved(layout.sizes.astype(np.float64), counts, found, known)
        nothing = np.zeros(layout.n_queries, dtype=np.bool_)
        return Arithmetic(Fixed(relevant, self.values(of)), nothing, weighted=False, summary=self.summary)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        how = ", summed over queries" if self.summary == "sum" else ""
        return f"{self.words}{how}; relevant = grade {self.switches.relevant}"


@dataclass(frozen=True)
class NumQueries(SetMeasure):
    """Number of queries that count."""

    label: ClassVar[str] = "num_q"
    words: ClassVar[str] = "queries"

    def values(self, of: Retrieved) -> FloatArray:
        """Return 1 for every query."""
        return np.ones_like(of.n)


@dataclass(frozen=True)
class NumRetrieved(SetMeasure):
    """Number of retrieved documents."""

    label: ClassVar[str] = "num_ret"
    words: ClassVar[str] = "documents retrieved"
    terms: ClassVar[Mapping[str, float]] = {"n": 1.0}


@dataclass(frozen=True)
class NumRelevant(SetMeasure):
    """Number of relevant documents, retrieved or not."""

    label: ClassVar[str] = "num_rel"
    words: ClassVar[str] = "relevant documents"
    terms: ClassVar[Mapping[str, float]] = {"relevant": 1.0}


@dataclass(frozen=True)
class NumRelevantRetrieved(SetMeasure):
    """Number of relevant documents retrieved."""

    label: ClassVar[str] = "num_rel_ret"
    words: ClassVar[str] = "relevant documents retrieved"
    terms: ClassVar[Mapping[str, float]] = {"found": 1.0}


@dataclass(frozen=True)
class NumNonrelevantRetrieved(SetMeasure):
    """Number of retrieved documents judged not relevant."""

    label: ClassVar[str] = "num_nonrel_judged_ret"
    words: ClassVar[str] = "documents retrieved that were judged not relevant"
    terms: ClassVar[Mapping[str, float]] = {"judged": 1.0, "found": -1.0}


@dataclass(frozen=True)
class NumUnjudgedRetrieved(SetMeasure):
    """Number of retrieved documents that nobody judged."""

    label: ClassVar[str] = "num_unjudged_ret"
    words: ClassVar[str] = "documents retrieved that were not judged"
    terms: ClassVar[Mapping[str, float]] = {"n": 1.0, "judged": -1.0}


@dataclass(frozen=True)
class SetMAP(SetMeasure):
    """Average precision of a set: precision times recall."""

    label: ClassVar[str] = "set_map"
    words: ClassVar[str] = "(relevant retrieved)^2 / (retrieved * relevant)"
    summary: ClassVar[str] = "mean"

    def values(self, of: Retrieved) -> FloatArray:
        """Return precision times recall of every query."""
        product = of.n * of.relevant
        return np.divide(of.found**2, product, out=np.zeros_like(product), where=product > 0.0)


@dataclass(frozen=True)
class Utility(SetMeasure):
    """Relevant documents retrieved minus the others retrieved."""

    label: ClassVar[str] = "utility"
    words: ClassVar[str] = "relevant retrieved - others retrieved"
    summary: ClassVar[str] = "mean"
    terms: ClassVar[Mapping[str, float]] = {"found": 2.0, "n": -1.0}
