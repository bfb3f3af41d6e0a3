"""G, binary G, NDCG at the relevant ranks and at R levels: measures of gain that trec_eval prints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic
from mcrank.metrics.walk import RankedQuery, Walk, WalkMeasure


@dataclass(frozen=True)
class BinaryG(WalkMeasure):
    """Mean over relevant documents of 1/log2(2 + documents above that are not relevant).

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("bing").on(Grades([0, 0, 1], qid=[1, 1, 1])).mean([3.0, 2.0, 1.0])
    0.5
    """

    label: ClassVar[str] = "bing"
    words: ClassVar[str] = "mean over relevant of 1/log2(2 + not relevant above)"

    def value(self, query: RankedQuery) -> float:
        """Return binary G of one query."""
        above = np.cumsum(~query.relevant)[query.relevant]
        return float(np.sum(1.0 / np.log2(2.0 + above))) / query.n_relevant


@dataclass(frozen=True)
class GainWalk(WalkMeasure):
    """Base of measures of gain, which is the grade itself; a query without gain scores 0.

    Examples
    --------
    >>> from mcrank.metrics.gains import G, GainWalk
    >>> issubclass(G, GainWalk)
    True
    """

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the measure as a walk by grade."""
        relevant, _ = self._relevance(layout)
        form = Walk(self.name, layout.level_grades, layout, self.value, relevant > 0.0, layout.empty)
        return Arithmetic(form, layout.empty, weighted=self._is_weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"{self.words}; gain = grade; {self._tie_words()}{self._weight_words()}"


@dataclass(frozen=True)
class G(GainWalk):
    """Sum of gain/log2(2 + cost so far - gain so far) over the ideal gain; a rank costs 1 or its ideal gain.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("g").on(Grades([2, 1], qid=[1, 1])).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "g"
    words: ClassVar[str] = "sum of gain/log2(2 + ideal gain so far, 1 a rank at least, - gain so far) / ideal"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the walk; the last gain of all costs nothing, so rising gains are not always the worst."""
        prepared = super().prepare(layout)
        differ = "where gains differ" if len(np.unique(layout.grades[layout.grades > 0.0])) > 1 else ""
        return replace(prepared, form=replace(prepared.form, no_worst=differ))  # type: ignore[type-var]

    def value(self, query: RankedQuery) -> float:
        """Return G of one query."""
        cost = np.cumsum(np.maximum(padded(query.ideal, len(query.grades)), 1.0))
        return float(np.sum(query.grades / np.log2(2.0 + cost - np.cumsum(query.grades))) / query.ideal.sum())


@dataclass(frozen=True)
class NDCGAtRelevant(GainWalk):
    """NDCG at every document with gain, averaged; those not retrieved count with the NDCG of the end.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("ndcg_rel").on(Grades([2, 1], qid=[1, 1])).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "ndcg_rel"
    words: ClassVar[str] = "mean of NDCG at the ranks of documents with gain"

    def value(self, query: RankedQuery) -> float:
        """Return the mean NDCG at relevant ranks of one query."""
        n = len(query.grades)
        dcg = discounted(query.grades)
        ideal = discounted(padded(query.ideal, max(n, len(query.ideal))))
        at = query.grades > 0.0
        rest = (len(query.ideal) - int(at.sum())) * (dcg[-1] if n else 0.0) / ideal[-1]
        return float(np.sum(dcg[at] / ideal[:n][at]) + rest) / len(query.ideal)


@dataclass(frozen=True)
class NDCGAtLevels(GainWalk):
    """NDCG where the ideal ranking steps to a lower grade, averaged, and at the end of the list.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("rndcg").on(Grades([2, 1], qid=[1, 1])).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "rndcg"
    words: ClassVar[str] = "mean of NDCG at the ranks where the ideal grade falls, and at the end"

    def value(self, query: RankedQuery) -> float:
        """Return the mean NDCG at R levels of one query."""
        n, n_ideal = len(query.grades), len(query.ideal)
        if query.n_relevant == 0:
            return 0.0
        dcg = np.r_[0.0, discounted(query.grades)]
        ideal = discounted(query.ideal)
        points = np.r_[np.flatnonzero(np.diff(query.ideal)) + 1, n_ideal]
        values = dcg[np.minimum(points, n)] / ideal[points - 1]
        if n > n_ideal + 1:  # trec_eval's end is a point of its own only two ranks beyond the last step
            values = np.r_[values, dcg[n] / ideal[-1]]
        return float(values.mean())


def discounted(gains: FloatArray) -> FloatArray:
    """Return the discounted cumulative gain at every rank."""
    return np.cumsum(gains / np.log2(np.arange(2.0, len(gains) + 2.0)))


def padded(gains: FloatArray, ranks: int) -> FloatArray:
    """Return falling gains, cut or filled with zeros to so many ranks."""
    filled = np.zeros(ranks)
    filled[: len(gains)] = gains[:ranks]
    return filled
