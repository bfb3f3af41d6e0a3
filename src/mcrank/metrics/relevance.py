"""Measures of binary relevance: precision, recall, average precision, reciprocal rank, success, RBP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mcrank.metrics.layout import FloatArray, Layout
from mcrank.metrics.value import Measure, checked_number

if TYPE_CHECKING:
    from mcrank.metrics.bound import Prepared


@dataclass(frozen=True)
class Binary(Measure):
    """Base of measures that know only relevant and not relevant.

    Examples
    --------
    >>> from mcrank.metrics.relevance import Binary, Recall
    >>> issubclass(Recall, Binary)
    True
    """

    def _relevance(self, layout: Layout) -> tuple[FloatArray, FloatArray]:
        from mcrank.metrics.binary import relevance

        return relevance(self.switches, layout, self.name)

    def _relevant_words(self) -> str:
        return f"relevant = grade {self.switches.relevant}; {self._tie_words()}"

    @property
    def _is_weighted(self) -> bool:
        return self.switches.precision_weight == "own"

    def _weight_words(self) -> str:
        return "" if self._is_weighted else "; weights of queries do not count"


@dataclass(frozen=True)
class Precision(Binary):
    """Share of relevant documents among the first k.

    Examples
    --------
    >>> from mcrank import Dataset, Precision
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> Precision(k=4).on(data).mean([1.0, 0.0])
    0.25
    """

    label: ClassVar[str] = "precision"

    def prepare(self, layout: Layout) -> Prepared:
        """Return precision as a sum of relevance over k (or over the list, where it is shorter)."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.dcg import DiscountedSum

        relevant, counts = self._relevance(layout)
        sizes = layout.sizes.astype(np.float64)
        cut = self._cut(self.switches.precision_default)
        asked = sizes if cut is None else np.full(layout.n_queries, float(cut))
        divisor = np.minimum(asked, sizes) if self.switches.precision_short == "n" else asked
        form = DiscountedSum(relevant, np.ones(self._depth(layout, cut)), divisor)
        short = layout.shorter_than(self.k) if self.k and self.switches.precision_short == "missing" else None
        weighted = self._is_weighted
        return Prepared(form, counts == 0.0, short=short, short_value=float("nan"), weighted=weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        over = {"k": "k", "n": "min(k, n)", "missing": "k, no value where n < k"}[
            self.switches.precision_short
        ]
        cut = self._cut_words(self.switches.precision_default)
        return f"relevant among {cut} / {over}; {self._relevant_words()}{self._weight_words()}"


@dataclass(frozen=True)
class Recall(Binary):
    """Share of the relevant documents found among the first k.

    Examples
    --------
    >>> from mcrank import Dataset, Recall
    >>> data = Dataset([[0.0]] * 3, y=[1, 1, 0], qid=[1, 1, 1])
    >>> Recall(k=1).on(data).mean([3.0, 2.0, 1.0])
    0.5
    """

    label: ClassVar[str] = "recall"

    def prepare(self, layout: Layout) -> Prepared:
        """Return recall as a sum of relevance over the number of relevant documents."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.dcg import DiscountedSum

        relevant, counts = self._relevance(layout)
        form = DiscountedSum(relevant, np.ones(self._depth(layout)), counts)
        empty = float(self.switches.recall_empty)
        return Prepared(form, counts == 0.0, empty_value=empty, weighted=self._is_weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        among = f"relevant among {self._cut_words()} / all relevant"
        return f"{among}; {self._relevant_words()}{self._weight_words()}"


@dataclass(frozen=True)
class MAP(Binary):
    """Mean average precision.

    Examples
    --------
    >>> from mcrank import MAP, Dataset
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 1], qid=[1, 1, 1])
    >>> round(MAP().on(data).mean([3.0, 2.0, 1.0]), 4)
    0.5833
    """

    label: ClassVar[str] = "map"

    def prepare(self, layout: Layout) -> Prepared:
        """Return average precision with its divisor."""
        from mcrank.metrics.binary import AveragePrecision
        from mcrank.metrics.bound import Prepared

        relevant, counts = self._relevance(layout)
        cut = self._average_cut
        divisor = counts
        if self.switches.map_divisor == "reachable" and cut is not None:
            divisor = np.minimum(counts, float(cut))
        depth = layout.longest if cut is None else min(cut, layout.longest)
        form = AveragePrecision(relevant, depth, divisor)
        empty = float(self.switches.map_empty)
        return Prepared(form, counts == 0.0, empty_value=empty, weighted=self._is_weighted)

    @property
    def _average_cut(self) -> int | None:
        return None if self.switches.map_cut == "ignored" else self._cut(self.switches.map_default)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        over = "relevant" if self.switches.map_divisor == "relevant" else "min(relevant, k)"
        cut = self._average_cut
        ranks = "the whole list" if cut is None else f"the first {cut} ranks"
        if self.k is not None and cut is None:
            ranks += " (the tool ignores k)"
        return (
            f"sum of precision at the relevant of {ranks} / {over}; "
            f"empty query scores {self.switches.map_empty:g}; {self._relevant_words()}{self._weight_words()}"
        )


@dataclass(frozen=True)
class MRR(Binary):
    """Mean reciprocal rank of the first relevant document.

    Examples
    --------
    >>> from mcrank import MRR, Dataset
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 1], qid=[1, 1, 1])
    >>> MRR().on(data).mean([3.0, 2.0, 1.0])
    0.5
    """

    label: ClassVar[str] = "mrr"

    def prepare(self, layout: Layout) -> Prepared:
        """Return the reciprocal rank as a cascade that stops at the first relevant document."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.cascade import Cascade

        relevant, counts = self._relevance(layout)
        weight = 1.0 / np.arange(1, self._depth(layout, self.switches.mrr_default) + 1)
        if self.switches.reciprocal == "float32":
            weight = weight.astype(np.float32).astype(np.float64)
        return Prepared(Cascade(relevant, weight), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        cut = self._cut_words(self.switches.mrr_default)
        return f"1/rank of the first relevant in {cut}; {self._relevant_words()}"


@dataclass(frozen=True)
class Success(Binary):
    """1 when a relevant document is among the first k.

    Examples
    --------
    >>> from mcrank import Dataset, Success
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> Success(k=1).on(data).mean([1.0, 0.0])
    0.0
    """

    label: ClassVar[str] = "success"

    def prepare(self, layout: Layout) -> Prepared:
        """Return success as a cascade of weight 1."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.cascade import Cascade

        relevant, counts = self._relevance(layout)
        return Prepared(Cascade(relevant, np.ones(self._depth(layout))), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"1 if a relevant document is in {self._cut_words()}; {self._relevant_words()}"


@dataclass(frozen=True)
class RBP(Binary):
    """Rank-biased precision of a user who reads on with probability ``p``.

    Examples
    --------
    >>> from mcrank import RBP, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[1, 1], qid=[1, 1])
    >>> round(RBP(p=0.5).on(data).mean([1.0, 0.0]), 4)
    0.75
    """

    p: float = 0.8

    label: ClassVar[str] = "rbp"
    parameter: ClassVar[str | None] = "p"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p", checked_number(self.p, "p of RBP", 0.0, 1.0))

    def prepare(self, layout: Layout) -> Prepared:
        """Return rank-biased precision as a discounted sum."""
        from mcrank.metrics.bound import Prepared
        from mcrank.metrics.dcg import DiscountedSum

        relevant, counts = self._relevance(layout)
        if self.switches.rbp == "grade":
            relevant = relevant * layout.level_grades
        discount = (1.0 - self.p) * self.p ** np.arange(self._depth(layout), dtype=np.float64)
        return Prepared(DiscountedSum(relevant, discount, np.ones(layout.n_queries)), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        times = " * grade" if self.switches.rbp == "grade" else ""
        over = f"p = {self.p:g}, over {self._cut_words()}"
        return f"(1 - p) * sum of p^(rank - 1){times}, {over}; {self._relevant_words()}"
