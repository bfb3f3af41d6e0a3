"""Precision, recall, average precision and rank-biased precision: measures of binary relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.kernels import kernel
from mcrank.metrics.dcg import DiscountedSum
from mcrank.metrics.dialect import relevant_bounds
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.ranking import RankedRows


@kernel()
def average_precisions(rows, relevant, depth, share, product, divisor, hit, out):  # type: ignore[no-untyped-def]
    """Sum precision at the relevant ranks of each query, divided (0 where the divisor is 0).

    Divisions are what takes time here, so four ranks share one; see `fours`.
    """
    # IN: rows, relevant (1 or 0 by level), depth, share, product, divisor
    # OUT: hit (scratch by rank, up to a multiple of four), out
    _, order, starts, ends, levels = rows
    for q in range(starts.shape[0]):
        s = starts[q]
        n = min(ends[q] - s, depth)
        ranked = order[s : s + n]
        hits = np.int32(0)
        for r in range(n):
            is_relevant = relevant[levels[np.uint32(ranked[r])]]
            hits += is_relevant
            hit[r] = hits & -is_relevant  # 0 where not relevant: a branch would be wrong half of the time
        many = (n + 3) // 4
        for r in range(n, 4 * many):
            hit[r] = 0
        total = 0.0
        for four in range(many):
            part = hit[4 * four : 4 * four + 4]
            of = share[4 * four : 4 * four + 4]
            total += (part[0] * of[0] + part[1] * of[1] + part[2] * of[2] + part[3] * of[3]) / product[four]
        out[q] = total / divisor[q] if divisor[q] > 0.0 else 0.0


@kernel()
def expected_average_precisions(rows, relevant, depth, divisor, out):  # type: ignore[no-untyped-def]
    """As `average_precisions`, but the mean over all orders of equal scores.

    The j-th of t tied rows, m of them relevant, is relevant with chance m/t; then (j-1)(m-1)/(t-1) relevant
    rows are expected before it in its group.
    """
    # IN: rows, relevant, depth, divisor  OUT: out
    scores, order, starts, ends, levels = rows
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        deep = min(n, depth)
        hits = 0.0
        total = 0.0
        a = 0
        while a < deep:
            score = scores[order[s + a]]
            among = 0.0
            b = a
            while b < n and scores[order[s + b]] == score:
                among += relevant[levels[order[s + b]]]
                b += 1
            t = b - a
            before = (among - 1.0) / (t - 1) if t > 1 else 0.0
            if among > 0.0:
                for r in range(a, min(b, deep)):
                    total += among / t * (hits + 1.0 + (r - a) * before) / (r + 1)
            hits += among
            a = b
        out[q] = total / divisor[q] if divisor[q] > 0.0 else 0.0


def fours(depth: int) -> tuple[FloatArray, FloatArray]:
    """Return what puts the fractions hits/rank of four ranks on one denominator, their product.

    A rank's share is the product of the other three: whole numbers, so nothing is lost to rank 8,000 or so.

    Examples
    --------
    >>> from mcrank.metrics.precision import fours
    >>> share, product = fours(4)
    >>> share.tolist(), product.tolist()
    ([24.0, 12.0, 8.0, 6.0], [24.0])
    """
    ranks = np.arange(1.0, 4 * (-(-depth // 4)) + 1.0).reshape(-1, 4)
    product = ranks.prod(axis=1)
    return (product[:, None] / ranks).ravel(), product


@dataclass(frozen=True, eq=False)
class AveragePrecision:
    """Average precision on data: relevance by level, ranks that count, divisor by query."""

    worth: FloatArray
    depth: int
    divisor: FloatArray

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        if expected:
            expected_average_precisions(rows, self.worth, self.depth, self.divisor[part], out[part])
            return
        share, product = fours(self.depth)
        hit = np.empty(len(share), dtype=np.int32)
        relevant = self.worth.astype(np.int32)
        average_precisions(rows, relevant, self.depth, share, product, self.divisor[part], hit, out[part])


@dataclass(frozen=True)
class Binary(Measure):
    """Base of measures that know only relevant and not relevant.

    Examples
    --------
    >>> from mcrank.metrics.precision import Binary, Recall
    >>> issubclass(Recall, Binary)
    True
    """

    def _relevance(self, layout: Layout) -> tuple[FloatArray, FloatArray]:
        """Return 1.0 for relevant levels, 0.0 for others, and the number of relevant rows of each query."""
        grade = layout.level_grades
        if self.switches.binary == "only":
            other = (grade != 0.0) & (grade != 1.0)
            layout.refuse_levels(other, self.name, "the tool takes grades 0 and 1 only")
        low, high = relevant_bounds(self.switches)
        relevant = ((grade >= low) & (grade <= high)).astype(np.float64)
        return relevant, layout.query_sums(relevant)

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

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return precision as a sum of relevance over k (or over the list, where it is shorter)."""
        relevant, counts = self._relevance(layout)
        sizes = layout.sizes.astype(np.float64)
        cut = self._cut(self.switches.precision_default)
        asked = sizes if cut is None else np.full(layout.n_queries, float(cut))
        divisor = np.minimum(asked, sizes) if self.switches.precision_short == "n" else asked
        form = DiscountedSum(relevant, np.ones(self._depth(layout, cut)), divisor)
        short = layout.shorter_than(self.k) if self.k and self.switches.precision_short == "missing" else None
        weighted = self._is_weighted
        return Arithmetic(form, counts == 0.0, short=short, short_value=float("nan"), weighted=weighted)

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

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return recall as a sum of relevance over the number of relevant documents."""
        relevant, counts = self._relevance(layout)
        form = DiscountedSum(relevant, np.ones(self._depth(layout)), counts)
        empty = float(self.switches.recall_empty)
        return Arithmetic(form, counts == 0.0, empty_value=empty, weighted=self._is_weighted)

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

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return average precision with its divisor."""
        relevant, counts = self._relevance(layout)
        cut = self._average_cut
        divisor = counts
        if self.switches.map_divisor == "reachable" and cut is not None:
            divisor = np.minimum(counts, float(cut))
        depth = layout.longest if cut is None else min(cut, layout.longest)
        form = AveragePrecision(relevant, depth, divisor)
        empty = float(self.switches.map_empty)
        return Arithmetic(form, counts == 0.0, empty_value=empty, weighted=self._is_weighted)

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
class RelativePrecision(Binary):
    """Precision relative to the best there can be: relevant among the first k over min(k, relevant).

    Examples
    --------
    >>> from mcrank import Dataset, parse_measure
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 0], qid=[1, 1, 1])
    >>> parse_measure("relative_p@2").on(data).mean([3.0, 2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "relative_p"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return relative precision as a sum of relevance."""
        relevant, counts = self._relevance(layout)
        asked = layout.sizes.astype(np.float64) if self.k is None else float(self.k)
        form = DiscountedSum(relevant, np.ones(self._depth(layout)), np.minimum(asked, counts))
        return Arithmetic(form, counts == 0.0, weighted=self._is_weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        over = f"min({'n' if self.k is None else self.k}, relevant)"
        return f"relevant among {self._cut_words()} / {over}; {self._relevant_words()}{self._weight_words()}"


@dataclass(frozen=True)
class FMeasure(Binary):
    """Weighted harmonic mean of precision and recall; ``x`` is how much recall counts, beside precision.

    Examples
    --------
    >>> from mcrank import Dataset, parse_measure
    >>> data = Dataset([[0.0]] * 3, y=[1, 0, 0], qid=[1, 1, 1])
    >>> parse_measure("f").on(data).mean([3.0, 2.0, 1.0])
    0.5
    """

    x: float = 1.0

    label: ClassVar[str] = "f"
    parameter: ClassVar[str | None] = "x"
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1e6)

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return F, (x + 1) hits / (x relevant + k), as a sum of relevance."""
        relevant, counts = self._relevance(layout)
        asked = layout.sizes.astype(np.float64) if self.k is None else float(self.k)
        form = DiscountedSum(
            relevant, np.ones(self._depth(layout)), (self.x * counts + asked) / (self.x + 1.0)
        )
        return Arithmetic(form, counts == 0.0, weighted=self._is_weighted)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        over = "n" if self.k is None else f"{self.k}"
        formula = f"({self.x:g} + 1) * relevant among {self._cut_words()} / ({self.x:g} * relevant + {over})"
        return f"{formula}; {self._relevant_words()}{self._weight_words()}"


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
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return rank-biased precision as a discounted sum."""
        relevant, counts = self._relevance(layout)
        if self.switches.rbp == "grade":
            relevant = relevant * layout.level_grades
        discount = (1.0 - self.p) * self.p ** np.arange(self._depth(layout), dtype=np.float64)
        return Arithmetic(DiscountedSum(relevant, discount, np.ones(layout.n_queries)), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        times = " * grade" if self.switches.rbp == "grade" else ""
        over = f"p = {self.p:g}, over {self._cut_words()}"
        return f"(1 - p) * sum of p^(rank - 1){times}, {over}; {self._relevant_words()}"
