"""Discounted sums: DCG, NDCG, and everything else that is a sum over ranks of gain times discount.

Precision, recall and rank-biased precision have this form too, with their own gain, discount and divisor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mcrank.errors import MeasureError
from mcrank.metrics.dialects import Dialect
from mcrank.metrics.layout import BoolArray, FloatArray, Layout
from mcrank.metrics.ties import Ranking, rank


@njit(nogil=True, cache=True)
def discounted_sums(order, starts, ends, gain, discount, own_discount, divisor, out):  # type: ignore[no-untyped-def]
    """Sum gain times discount over the ranks of each query, divided (0 where the divisor is 0)."""
    # IN: order, starts, ends, gain by row, discount by rank (or like rows: own_discount), divisor  OUT: out
    for q in range(starts.shape[0]):
        s = starts[q]
        first = s if own_discount else 0
        n = min(ends[q] - s, discount.shape[0] - first)
        total = 0.0
        for r in range(n):
            total += gain[order[s + r]] * discount[first + r]
        out[q] = total / divisor[q] if divisor[q] > 0.0 else 0.0


@njit(nogil=True, cache=True)
def expected_discounted_sums(scores, order, starts, ends, gain, discount, own_discount, divisor, out):  # type: ignore[no-untyped-def]
    """As `discounted_sums`, but the mean over all orders of equal scores (McSherry and Najork 2008).

    Rows tied at ranks a+1..a+t share their mean gain over the discounts of those ranks.
    """
    # IN: scores, order, starts, ends, gain, discount, own_discount, divisor  OUT: out
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
                group_gain += gain[order[s + b]]
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


@njit(nogil=True, cache=True)
def discounted_swaps(order, start, end, gain, discount, first, divisor, out):  # type: ignore[no-untyped-def]
    """Absolute change of one query when the rows at ranks i and j swap places."""
    # IN: order, start, end, gain by row, discount by rank from ``first``, divisor  OUT: out[i, j]
    n = end - start
    depth = discount.shape[0] - first
    for i in range(n):
        out[i, i] = 0.0
        discount_i = discount[first + i] if i < depth else 0.0
        gain_i = gain[order[start + i]]
        for j in range(i + 1, n):
            discount_j = discount[first + j] if j < depth else 0.0
            change = 0.0
            if divisor > 0.0:
                change = abs(gain_i - gain[order[start + j]]) * abs(discount_i - discount_j) / divisor
            out[i, j] = change
            out[j, i] = change


@dataclass(frozen=True, eq=False)
class DiscountedSum:
    """A measure bound to data: sum over ranks of gain times discount, divided per query.

    With ``own_discount`` every query has its own discounts, laid out like its rows.
    """

    gain: FloatArray
    discount: FloatArray
    divisor: FloatArray
    own_discount: bool = False

    @property
    def depth(self) -> int:
        """Ranks that matter."""
        return len(self.discount)

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query."""
        rest = (layout.starts, layout.ends, self.gain, self.discount, self.own_discount, self.divisor, out)
        if expected:
            expected_discounted_sums(ranking.scores, ranking.order, *rest)
        else:
            discounted_sums(ranking.order, *rest)

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        first = start if self.own_discount else 0
        divisor = float(self.divisor[query])
        discounted_swaps(ranking.order, start, end, self.gain, self.discount, first, divisor, out)


def gains(dialect: Dialect, layout: Layout, measure: str) -> FloatArray:
    """Return the gain of every row, or raise `MeasureError` for a grade the dialect does not know."""
    if dialect.grades == "integer":
        layout.refuse_grade(lambda g: g != np.floor(g), measure, "the tool takes integer grades only")
    if isinstance(dialect.gain, tuple):
        return _table_gains(dialect, dialect.gain, layout, measure)
    known_end = np.inf if dialect.max_grade is None else dialect.max_grade
    if dialect.outside == "error":
        layout.refuse_grade(
            lambda g: g > known_end,
            measure,
            f"the highest grade of this dialect is {known_end:g}; {_ask_zero(dialect)}",
        )

    def gain(grade: FloatArray) -> FloatArray:
        whole = np.floor(grade) if dialect.grades == "truncate" else grade
        inside = np.where(grade > known_end, 0.0, whole)
        if dialect.gain == "linear":
            return inside
        with np.errstate(over="ignore"):
            return (np.exp2(inside) - 1.0) / (16.0 if dialect.gain == "exp/16" else 1.0)

    value = layout.by_grade(gain)
    if value.max(initial=0.0) > 1e300:
        row = int(np.argmax(value))
        raise MeasureError(
            f"{measure} cannot take grade {layout.grades[row]:g} at {layout.row_words(row)}: 2^grade is too "
            "large for a gain; use a linear gain."
        )
    return value


def _table_gains(dialect: Dialect, table: tuple[float, ...], layout: Layout, measure: str) -> FloatArray:
    values = np.array([*table, 0.0])

    def outside(grade: FloatArray) -> BoolArray:
        return np.asarray((grade != np.floor(grade)) | (grade >= len(table)))

    if dialect.outside == "error":
        layout.refuse_grade(
            outside, measure, f"its gain table ends at grade {len(table) - 1}; {_ask_zero(dialect)}"
        )
    return layout.by_grade(
        lambda grade: values[
            np.where(outside(grade), len(table), np.minimum(grade, len(table))).astype(np.int64)
        ]
    )


def _ask_zero(dialect: Dialect) -> str:
    return f"to count such a row as the tool does (gain 0), say [{dialect.but(outside='zero').name}]"


def discounts(dialect: Dialect, depth: int) -> FloatArray:
    """Return the discount of ranks 1 to ``depth``.

    Examples
    --------
    >>> from mcrank.metrics.dcg import discounts
    >>> from mcrank.metrics.dialects import find_dialect
    >>> discounts(find_dialect("letor4"), 4).tolist()
    [1.0, 1.0, 0.6309297535714575, 0.5]
    """
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    if dialect.discount == "letor":
        return 1.0 / np.log2(np.maximum(ranks, 2.0))
    if dialect.discount == "position":
        return 1.0 / ranks
    return 1.0 / (np.log(ranks + 1.0) if dialect.discount == "ln" else np.log2(ranks + 1.0))


def ideal_sums(layout: Layout, gain: FloatArray, discount: FloatArray) -> FloatArray:
    """Return the ideal DCG of every query, over all its judged rows."""
    whole = _all_judged(layout)
    ranking = rank(whole, gain, len(discount))
    out = np.empty(layout.n_queries, dtype=np.float64)
    ones = np.ones(layout.n_queries, dtype=np.float64)
    discounted_sums(ranking.order, whole.starts, whole.stops, gain, discount, False, ones, out)
    return out


def mean_ndcg_form(
    layout: Layout, gain: FloatArray, discount: FloatArray
) -> tuple[DiscountedSum, FloatArray]:
    """Return MeanNDCG, the mean of NDCG@1..NDCG@n, as one discounted sum, and the ideal DCG at full depth.

    The gain at rank r counts in NDCG@r..NDCG@n, so its discount is c_r / n * sum over k >= r of 1 / ideal@k.
    """
    whole = _all_judged(layout)
    order = rank(whole, gain, layout.longest).order
    own = np.zeros(layout.n_rows, dtype=np.float64)
    ideal = np.zeros(layout.n_queries, dtype=np.float64)
    for q in range(layout.n_queries):
        start, stop = int(layout.starts[q]), int(layout.stops[q])
        n = int(layout.sizes[q])
        ideals = np.cumsum(gain[order[start:stop]] * discount[: stop - start])
        if n == 0 or ideals[0] <= 0.0:
            continue
        ideal[q] = ideals[-1]
        tail = np.cumsum((1.0 / ideals[:n])[::-1])[::-1]
        own[start : start + n] = discount[:n] * tail / n
    ones = np.ones(layout.n_queries, dtype=np.float64)
    return DiscountedSum(gain, own, ones, own_discount=True), ideal


def _all_judged(layout: Layout) -> Layout:
    if layout.ends is layout.stops:
        return layout
    return Layout(
        layout.grades, layout.starts, layout.stops, layout.stops, layout.qids,
        layout.query_weight, layout.doc_ids, layout.missing, layout.unjudged, layout.source_rows,
    )  # fmt: skip
