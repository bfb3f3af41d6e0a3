"""bpref, inferred average precision and judged@k: measures that tell unjudged from not relevant.

TREC judges a pool of documents. One outside it was never looked at; one in the pool with a grade below 0 was
drawn but not judged. Data without qrels is judged throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic
from mcrank.metrics.walk import RankedQuery, Walk, WalkMeasure

_EPSILON = 0.00001  # trec_eval's, in inferred average precision


@dataclass(frozen=True)
class Bpref(WalkMeasure):
    """Binary preference: share of relevant documents ranked above the judged ones that are not relevant.

    Examples
    --------
    >>> from mcrank import Qrels, Run, evaluate
    >>> qrels = Qrels([1, 1, 1], ["a", "b", "c"], [1, 1, 0])
    >>> evaluate(Run([1, 1, 1, 1], ["u", "a", "c", "b"], [4.0, 3.0, 2.0, 1.0]), qrels, "bpref").mean["bpref"]
    0.5
    """

    label: ClassVar[str] = "bpref"
    words: ClassVar[str] = "mean over relevant of 1 - (judged not relevant above, up to R) / min(R, N)"

    def value(self, query: RankedQuery) -> float:
        """Return bpref of one query."""
        worse = np.cumsum(query.judged & ~query.relevant)[query.relevant]
        most = max(min(query.n_nonrelevant, query.n_relevant), 1)
        return float(np.sum(1.0 - np.minimum(worse, query.n_relevant) / most)) / query.n_relevant


@dataclass(frozen=True)
class GeometricBpref(Bpref):
    """bpref with a geometric mean over queries."""

    label: ClassVar[str] = "gm_bpref"
    summary: ClassVar[str] = "geometric"


@dataclass(frozen=True)
class InferredAP(WalkMeasure):
    """Average precision estimated from a pool that was judged in part (Yilmaz and Aslam, 2006).

    Examples
    --------
    >>> from mcrank import Grades, parse_measure
    >>> round(parse_measure("infap").on(Grades([0, 1], qid=[1, 1])).mean([2.0, 1.0]), 4)
    0.5
    """

    label: ClassVar[str] = "infap"
    words: ClassVar[str] = (
        "average precision, precision above a rank inferred from the judged part of the pool"
    )

    def value(self, query: RankedQuery) -> float:
        """Return inferred average precision of one query."""
        above = np.flatnonzero(query.relevant)  # ranks above each relevant one
        relevant = np.arange(float(len(above)))
        judged = (np.cumsum(query.judged) - 1.0)[above]
        pooled = (np.cumsum(query.pooled) - 1.0)[above]
        inferred = pooled * (relevant + _EPSILON) / (judged + 2 * _EPSILON)
        return float(np.sum((1.0 + inferred) / (above + 1.0))) / query.n_relevant

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the walk; documents of the pool that nobody judged help or harm, as others stand."""
        prepared = super().prepare(layout)
        unjudged = "where a part of the pool is not judged" if (layout.pooled & ~layout.judged).any() else ""
        return replace(prepared, form=replace(prepared.form, no_worst=unjudged))  # type: ignore[type-var]


@dataclass(frozen=True)
class Judged(WalkMeasure):
    """Share of judged documents among the first k: how far other measures can be believed.

    Examples
    --------
    >>> from mcrank import Qrels, Run, evaluate
    >>> run = Run([1, 1], ["a", "u"], [2.0, 1.0])
    >>> evaluate(run, Qrels([1], ["a"], [0]), "judged@2").mean["judged@2"]
    0.5
    """

    label: ClassVar[str] = "judged"
    whole: ClassVar[str] = ""

    def value(self, query: RankedQuery) -> float:
        """Return the share of judged documents of one query."""
        cut = self.k or len(query.judged)
        return float(query.judged[:cut].sum()) / cut if cut else 0.0

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the share of judged documents; no query is empty."""
        relevant, _ = self._relevance(layout)
        known = layout.judged.astype(np.float64)
        empty = np.zeros(layout.n_queries, dtype=np.bool_)
        form = Walk(self.name, relevant, layout, self.value, relevant > 0.0, empty, known)
        return Arithmetic(form, empty, weighted=self._is_weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"judged among {self._cut_words()} / {'k' if self.k else 'n'}; {self._tie_words()}"
