"""DCG, NDCG, MeanNDCG, and the form they have: a sum over ranks of gain times discount.

Precision, recall and rank-biased precision have this form too, with their own gain, discount and divisor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mcrank.arrays import BoolArray, FloatArray
from mcrank.kernels import kernel
from mcrank.metrics.dialect import Dialect, switch_words
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.ranking import RankedRows, rank


@kernel()
def discounted_sums(rows, worth, discount, own_discount, divisor, out):  # type: ignore[no-untyped-def]
    """Sum gain times discount over the ranks of each query, divided (0 where the divisor is 0)."""
    # IN: rows, worth by level, discount by rank (or row), divisor  OUT: out
    _, order, starts, ends, levels = rows
    for q in range(starts.shape[0]):
        s = starts[q]
        first = s if own_discount else 0
        n = min(ends[q] - s, discount.shape[0] - first)
        total = 0.0
        for r in range(n):
            total += worth[levels[order[s + r]]] * discount[first + r]
        out[q] = total / divisor[q] if divisor[q] > 0.0 else 0.0


@kernel()
def expected_discounted_sums(rows, worth, discount, own_discount, divisor, out):  # type: ignore[no-untyped-def]
    """As `discounted_sums`, but the mean over all orders of equal scores (McSherry and Najork 2008).

    Rows tied at ranks a+1..a+t share their mean gain over the discounts of those ranks.
    """
    # IN: rows, worth, discount, own_discount, divisor  OUT: out
    scores, order, starts, ends, levels = rows
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        first = s if own_discount else 0
        depth = min(n, discount.shape[0] - first)
        total = 0.0
        a = 0
        while a < depth:
            score = scores[order[s + a]]
            group_gain = 0.0
            b = a
            while b < n and scores[order[s + b]] == score:
                group_gain += worth[levels[order[s + b]]]
                b += 1
            if b == a + 1:
                total += group_gain * discount[first + a]
            else:
                weight = 0.0
                for r in range(a, min(b, depth)):
                    weight += discount[first + r]
                total += group_gain / (b - a) * weight
            a = b
        out[q] = total / divisor[q] if divisor[q] > 0.0 else 0.0


@kernel()
def ideal_count_sums(counts, best_first, worth, discount, out):  # type: ignore[no-untyped-def]
    """Ideal discounted sum of each query from its rows of each level: nothing is sorted."""
    # IN: counts[query, level], best_first (levels by falling worth), worth by level, discount  OUT: out
    for q in range(counts.shape[0]):
        total = 0.0
        rank = 0
        for level in best_first:
            if rank >= discount.shape[0] or worth[level] <= 0.0:
                break
            until = min(rank + counts[q, level], discount.shape[0])
            for r in range(rank, until):
                total += worth[level] * discount[r]
            rank = until
        out[q] = total


@kernel()
def mean_ndcg_discounts(rows, ends, worth, discount, own, ideal):  # type: ignore[no-untyped-def]
    """Discounts of each query that make MeanNDCG one discounted sum; see `mean_ndcg_form`."""
    # IN: rows (by worth, unranked ones too), ends, worth, discount  OUT: own (zeros before), ideal
    _, order, starts, stops, levels = rows
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        total = 0.0
        for r in range(stops[q] - s):
            total += worth[levels[order[s + r]]] * discount[r]
            if r < n and total > 0.0:
                own[s + r] = 1.0 / total
        ideal[q] = total
        tail = 0.0
        for r in range(n - 1, -1, -1):
            tail += own[s + r]
            own[s + r] = discount[r] * tail / n


@dataclass(frozen=True, eq=False)
class DiscountedSum:
    """A measure on data: sum over ranks of gain times discount, divided per query.

    With ``own_discount`` every query has its own discounts, laid out like its rows.
    """

    worth: FloatArray
    discount: FloatArray
    divisor: FloatArray
    own_discount: bool = False

    @property
    def depth(self) -> int:
        """Ranks that matter."""
        return len(self.discount)

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        compute = expected_discounted_sums if expected else discounted_sums
        compute(rows, self.worth, self.discount, self.own_discount, self.divisor[part], out[part])


def gain_function(dialect: Dialect) -> Callable[[FloatArray], FloatArray]:
    """Return the dialect's gain as a function of the grade; 0 for grades it does not know.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.metrics.dcg import gain_function
    >>> from mcrank.metrics.tools import find_dialect
    >>> gain_function(find_dialect("letor4"))(np.array([0.0, 1.0, 2.0, 3.0])).tolist()
    [0.0, 1.0, 3.0, 0.0]
    """
    if isinstance(dialect.gain, tuple):
        table = np.array([*dialect.gain, 0.0])

        def gain(grade: FloatArray) -> FloatArray:
            place = np.where(_unknown(dialect, grade), len(table) - 1, grade)
            return np.asarray(table[place.astype(np.int64)])

    else:

        def gain(grade: FloatArray) -> FloatArray:
            whole = np.floor(grade) if dialect.grades == "truncate" else grade
            known = np.where(_unknown(dialect, grade), 0.0, whole)
            if dialect.gain == "linear":
                return known
            with np.errstate(over="ignore"):
                return (np.exp2(known) - 1.0) / (16.0 if dialect.gain == "exp/16" else 1.0)

    return gain


def _unknown(dialect: Dialect, grade: FloatArray) -> BoolArray:
    if isinstance(dialect.gain, tuple):
        return np.asarray((grade != np.floor(grade)) | (grade >= len(dialect.gain)))
    if dialect.max_grade is None or (dialect.grades == "exp-integer" and dialect.gain == "linear"):
        return np.zeros(len(grade), dtype=np.bool_)
    return np.asarray(grade > dialect.max_grade)


def refuse_fractions(layout: Layout, measure: str) -> None:
    """Raise `MeasureError` for the first row whose grade is no integer."""
    grade = layout.level_grades
    layout.refuse_levels(grade != np.floor(grade), measure, "the tool takes integer grades only")


def gains(dialect: Dialect, layout: Layout, measure: str) -> FloatArray:
    """Return the gain of every level, or raise `MeasureError` for a grade the dialect does not know."""
    grade = layout.level_grades
    gain = gain_function(dialect)(grade)
    if dialect.grades == "gain-integer" or (dialect.grades == "exp-integer" and dialect.gain != "linear"):
        refuse_fractions(layout, measure)
    unknown = _unknown(dialect, grade)
    if dialect.outside == "error" and unknown.any():
        table = isinstance(dialect.gain, tuple)
        top = len(dialect.gain) - 1 if table else dialect.max_grade
        whole = table or dialect.grades.endswith("integer")
        layout.refuse_levels(
            unknown,
            measure,
            f"it knows {'integer ' * whole}grades up to {top:g}; to count such a row as the tool does "
            f"(gain 0), say [{dialect.but(outside='zero').name}]",
        )
    instead = "" if dialect.gain == "linear" else "; use gain=linear"
    layout.refuse_levels(gain > 1e300, measure, f"its gain is too large{instead}")
    return gain


def discounts(dialect: Dialect, depth: int) -> FloatArray:
    """Return the discount of ranks 1 to ``depth``.

    Examples
    --------
    >>> from mcrank.metrics.dcg import discounts
    >>> from mcrank.metrics.tools import find_dialect
    >>> discounts(find_dialect("letor4"), 4).tolist()
    [1.0, 1.0, 0.6309297535714575, 0.5]
    """
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    if dialect.discount == "letor":
        return 1.0 / np.log2(np.maximum(ranks, 2.0))
    if dialect.discount == "position":
        return 1.0 / ranks
    return 1.0 / (np.log(ranks + 1.0) if dialect.discount == "ln" else np.log2(ranks + 1.0))


def ideal_sums(layout: Layout, worth: FloatArray, discount: FloatArray) -> FloatArray:
    """Return the ideal DCG of every query, over all its judged rows."""
    out = np.empty(layout.n_queries, dtype=np.float64)
    counts = layout.level_counts
    if counts is not None:
        best_first = np.argsort(-worth, kind="stable")
        ideal_count_sums(counts, best_first, worth, discount, out)
        return out
    rows = _ideal_rows(layout, worth, len(discount))
    ones = np.ones(layout.n_queries, dtype=np.float64)
    discounted_sums(rows, worth, discount, False, ones, out)
    return out


def mean_ndcg_form(
    layout: Layout, worth: FloatArray, discount: FloatArray
) -> tuple[DiscountedSum, FloatArray]:
    """Return MeanNDCG, the mean of NDCG@1..NDCG@n, as one discounted sum, and the ideal DCG at full depth.

    The gain at rank r counts in NDCG@r..NDCG@n, so its discount is c_r / n * sum over k >= r of 1 / ideal@k.
    """
    rows = _ideal_rows(layout, worth, layout.longest)
    own = np.zeros(layout.n_rows, dtype=np.float64)
    ideal = np.zeros(layout.n_queries, dtype=np.float64)
    mean_ndcg_discounts(rows, layout.ends, worth, discount, own, ideal)
    ones = np.ones(layout.n_queries, dtype=np.float64)
    return DiscountedSum(worth, own, ones, own_discount=True), ideal


def _ideal_rows(layout: Layout, worth: FloatArray, depth: int) -> RankedRows:
    """Rank all judged rows of every query by what they are worth."""
    ranking = rank(replace(layout, ends=layout.stops), np.take(worth, layout.levels), depth)
    return ranking.rows(layout, slice(0, layout.n_queries))._replace(ends=layout.stops)


@dataclass(frozen=True)
class DCG(Measure):
    """Discounted cumulative gain.

    Examples
    --------
    >>> from mcrank import DCG, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[2, 1], qid=[1, 1])
    >>> round(DCG(k=1).on(data).mean([1.0, 0.0]), 4)
    3.0
    """

    label: ClassVar[str] = "dcg"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return DCG as a discounted sum."""
        gain = gains(self.switches, layout, self.name)
        discount = discounts(self.switches, self._depth(layout, self.switches.ndcg_default))
        ones = np.ones(layout.n_queries)
        empty = ideal_sums(layout, gain, discount) <= 0.0
        short, short_value = self._short(layout)
        return Arithmetic(DiscountedSum(gain, discount, ones), empty, short=short, short_value=short_value)

    def _short(self, layout: Layout) -> tuple[BoolArray | None, float]:
        rule = self.switches.short
        short = layout.shorter_than(self.k) if self.k is not None and rule != "cut" else None
        return short, float("nan") if rule == "missing" else 0.0

    def _sum_words(self) -> str:
        """Say what is summed."""
        words = [switch_words(self.switches, switch) for switch in ("gain", "discount")]
        return f"{', '.join(words)}; {self._tie_words()}"

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        cut = self._cut_words(self.switches.ndcg_default)
        return f"sum over {cut}: {self._sum_words()}"


@dataclass(frozen=True)
class NDCG(DCG):
    """Normalized discounted cumulative gain: DCG over the DCG of the ideal order.

    Examples
    --------
    >>> from mcrank import NDCG, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> round(NDCG(k=10).on(data).mean([1.0, 0.0]), 4)
    0.6309
    >>> NDCG(k=10, dialect="letor4;short=cut").on(data).mean([1.0, 0.0])
    1.0
    """

    label: ClassVar[str] = "ndcg"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return NDCG as a discounted sum over the ideal."""
        gain = gains(self.switches, layout, self.name)
        discount = discounts(self.switches, self._depth(layout, self.switches.ndcg_default))
        ideal = ideal_sums(layout, gain, discount)
        short, short_value = self._short(layout)
        return Arithmetic(
            DiscountedSum(gain, discount, ideal),
            empty=ideal <= 0.0,
            empty_value=_empty_value(self.switches),
            short=short,
            short_value=short_value,
            normalized=True,
        )

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        empty = self.switches.empty
        words = "is left out" if empty == "skip" else f"scores {empty:g}"
        short = {"cut": "", "zero": "; shorter than k scores 0", "missing": "; shorter than k counts 0"}
        return f"DCG/ideal, {DCG.definition.fget(self)}; empty query {words}{short[self.switches.short]}"  # type: ignore[attr-defined]


def _empty_value(dialect: Dialect) -> float:
    return 0.0 if isinstance(dialect.empty, str) else float(dialect.empty)


@dataclass(frozen=True)
class MeanNDCG(DCG):
    """Mean of NDCG@1 to NDCG@n of each query, as LETOR 4.0 and the MSLR script print it.

    Examples
    --------
    >>> from mcrank import Dataset, MeanNDCG
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> MeanNDCG(dialect="letor4").on(data).mean([1.0, 0.0])
    0.5
    """

    label: ClassVar[str] = "meanndcg"
    whole: ClassVar[str] = "runs over every cut-off"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return MeanNDCG as a discounted sum with discounts of each query's own."""
        gain = gains(self.switches, layout, self.name)
        form, ideal = mean_ndcg_form(layout, gain, discounts(self.switches, layout.longest))
        return Arithmetic(form, ideal <= 0.0, _empty_value(self.switches), normalized=True)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"mean of NDCG@1..NDCG@n: {self._sum_words()}"
