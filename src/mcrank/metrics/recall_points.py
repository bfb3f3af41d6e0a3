"""Precision at points of recall: R-precision, interpolated precision, its 11-point mean; geometric MAP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic
from mcrank.metrics.precision import MAP
from mcrank.metrics.walk import RankedQuery, WalkMeasure


@dataclass(frozen=True)
class RPrecision(WalkMeasure):
    """Precision at rank R, the number of relevant documents, or at a multiple of it.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("rprec").on(Grades([1, 0, 1], qid=[1, 1, 1])).mean([3.0, 2.0, 1.0])
    0.5
    """

    times: float = 1.0

    label: ClassVar[str] = "rprec"
    parameter: ClassVar[str | None] = "times"
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1e6)

    def value(self, query: RankedQuery) -> float:
        """Return precision at the multiple of R."""
        cut = int(self.times * query.n_relevant + 0.9)
        return float(query.relevant[:cut].sum()) / cut if cut else 0.0

    @property
    def words(self) -> str:  # type: ignore[override]
        """The definition's own words."""
        return f"relevant among the first {self.times:g} R ranks / {self.times:g} R, R = number of relevant"


def interpolated(query: RankedQuery, points: FloatArray, rounded: bool) -> FloatArray:
    """Return the highest precision at or beyond each point of recall; 0 for points that are not reached.

    A point, a share of the relevant documents, is a number of them: rounded, or upwards as in trec_eval 9.
    """
    share = points * query.n_relevant
    needed = np.floor(share + 0.5 if rounded else share + 0.9).astype(np.int64)
    hits = np.cumsum(query.relevant)
    found = int(hits[-1]) if len(hits) else 0
    highest = np.maximum.accumulate((hits / np.arange(1.0, len(hits) + 1.0))[::-1])[::-1]
    at = np.searchsorted(hits, needed)  # the first rank with so many
    reached = (needed <= found) & (at < len(hits))
    return np.where(reached, highest[np.minimum(at, len(hits) - 1)] if len(hits) else 0.0, 0.0)


@dataclass(frozen=True)
class InterpolatedPrecision(WalkMeasure):
    """Highest precision at or beyond a share ``recall`` of the relevant documents.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("iprec(0.5)").on(Grades([0, 1, 1], qid=[1, 1, 1])).mean([3.0, 2.0, 1.0])
    0.6666666666666666
    """

    recall: float = 0.0

    label: ClassVar[str] = "iprec"
    parameter: ClassVar[str | None] = "recall"
    bounds: ClassVar[tuple[float, float] | None] = (-1e-300, 1.0)

    def value(self, query: RankedQuery) -> float:
        """Return interpolated precision of one query."""
        rounded = self.switches.recall_points == "round"
        return float(interpolated(query, np.array([self.recall]), rounded)[0])

    @property
    def words(self) -> str:  # type: ignore[override]
        """The definition's own words."""
        return f"highest precision at or beyond {self.recall:g} of the relevant"


@dataclass(frozen=True)
class ElevenPoint(WalkMeasure):
    """Mean of interpolated precision at recall 0, 0.1 ... 1.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> parse_measure("11pt_avg").on(Grades([1, 0], qid=[1, 1])).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "11pt_avg"
    words: ClassVar[str] = "mean of interpolated precision at recall 0, 0.1 ... 1"

    def value(self, query: RankedQuery) -> float:
        """Return the 11-point mean of one query."""
        points = np.arange(11.0) / 10.0
        return float(interpolated(query, points, self.switches.recall_points == "round").mean())


@dataclass(frozen=True)
class GeometricMAP(MAP):
    """Average precision with a geometric mean over queries, none below 0.00001.

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> data = Grades([1, 0, 0, 1], qid=[1, 1, 2, 2])
    >>> round(parse_measure("gm_map").on(data).mean([2.0, 1.0, 2.0, 1.0]), 4)
    0.7071
    """

    label: ClassVar[str] = "gm_map"
    summary: ClassVar[str] = "geometric"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return average precision, to be summed up by a geometric mean."""
        plain = super().prepare(layout)
        return Arithmetic(
            plain.form, plain.empty, plain.empty_value, weighted=plain.weighted, summary=self.summary
        )

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"geometric mean of max(value, 0.00001); {super().definition}"
