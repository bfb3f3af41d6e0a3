"""Binary relevance: which rows are relevant, average precision, and the best grade in reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcrank.kernels import kernel
from mcrank.metrics.dialects import Dialect, relevant_bounds
from mcrank.metrics.layout import FloatArray, Layout
from mcrank.metrics.ties import Ranking


@kernel()
def average_precisions(order, starts, ends, levels, relevant, depth, share, product, divisor, hit, out):  # type: ignore[no-untyped-def]
    """Sum precision at the relevant ranks of each query, divided (0 where the divisor is 0).

    Divisions are what takes time here, so four ranks share one; see `fours`.
    """
    # IN: order, starts, ends, levels, relevant (1 or 0 by level), depth, share, product, divisor
    # OUT: hit (scratch by rank, up to a multiple of four), out
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
def expected_average_precisions(scores, order, starts, ends, levels, relevant, depth, divisor, out):  # type: ignore[no-untyped-def]
    """As `average_precisions`, but the mean over all orders of equal scores.

    The j-th of t tied rows, m of them relevant, is relevant with chance m/t; then (j-1)(m-1)/(t-1) relevant
    rows are expected before it in its group.
    """
    # IN: scores, order, starts, ends, levels, relevant, depth, divisor  OUT: out
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


@kernel()
def average_precision_swaps(order, start, end, levels, relevant, depth, divisor, out):  # type: ignore[no-untyped-def]
    """Absolute change of one query when the rows at ranks i < j swap.

    Only a relevant row and another one matter: the hit moves, and every hit between gains or loses one.
    """
    # IN: order, start, end, levels, relevant, depth, divisor  OUT: out[i, j]
    n = end - start
    hits_i = 0.0
    for i in range(n):
        out[i, i] = 0.0
        is_i = relevant[levels[order[start + i]]]
        hits_i += is_i
        hits_j = hits_i
        between = 0.0
        for j in range(i + 1, n):
            is_j = relevant[levels[order[start + j]]]
            hits_j += is_j
            change = 0.0
            if is_i != is_j and divisor > 0.0:
                hits_at_i = hits_i if is_i > 0.0 else hits_i + 1.0
                upper = hits_at_i / (i + 1) if i < depth else 0.0
                lower = hits_j / (j + 1) if j < depth else 0.0
                change = abs(upper + between - lower) / divisor
            out[i, j] = change
            out[j, i] = change
            if j < depth:
                between += is_j / (j + 1)


@kernel()
def best_grades(scores, order, starts, ends, levels, grade, depth, expected, held, out):  # type: ignore[no-untyped-def]
    """Find the highest grade within ``depth`` ranks of each query.

    Expected over ties: of t rows tied across the cut c get in, and the i-th best of them (from 0) is the best
    that got in with chance C(t-1-i, c-1) / C(t, c).
    """
    # IN: scores, order, starts, ends, levels, grade by level, depth, expected
    # OUT: held (scratch by level), out
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        deep = min(n, depth)
        best = 0.0
        sure = deep
        last = deep
        if expected and deep > 0:
            score = scores[order[s + deep - 1]]
            while sure > 0 and scores[order[s + sure - 1]] == score:
                sure -= 1
            while last < n and scores[order[s + last]] == score:
                last += 1
            if last == deep:
                sure = deep
        for r in range(sure):
            best = max(best, grade[levels[order[s + r]]])
        if sure < deep:
            for level in range(held.shape[0]):
                held[level] = 0
            for r in range(sure, last):
                held[levels[order[s + r]]] += 1
            t, c = last - sure, deep - sure
            chance = c / t
            value = 0.0
            i = 0
            for level in range(held.shape[0] - 1, -1, -1):
                for _ in range(held[level]):
                    value += chance * max(best, grade[level])
                    i += 1
                    chance *= (t - i + 1 - c) / (t - i) if i < t else 0.0
            best = value
        out[q] = best


@kernel()
def best_grade_swaps(order, start, end, levels, grade, depth, out):  # type: ignore[no-untyped-def]
    """Absolute change of the best grade within ``depth`` ranks when ranks i and j swap."""
    # IN: order, start, end, levels, grade, depth  OUT: out[i, j]
    n = end - start
    deep = min(n, depth)
    first = 0.0
    second = 0.0
    at = -1
    for r in range(deep):
        g = grade[levels[order[start + r]]]
        if at < 0 or g > first:
            second, first, at = first, g, r
        elif g > second:
            second = g
    for i in range(n):
        for j in range(i, n):
            change = 0.0
            if i < deep <= j:
                others = second if i == at else first
                change = abs(max(others, grade[levels[order[start + j]]]) - first)
            out[i, j] = change
            out[j, i] = change


def fours(depth: int) -> tuple[FloatArray, FloatArray]:
    """Return what puts the fractions hits/rank of four ranks on one denominator, their product.

    A rank's share is the product of the other three: whole numbers, so nothing is lost to rank 8,000 or so.

    Examples
    --------
    >>> from mcrank.metrics.binary import fours
    >>> share, product = fours(4)
    >>> share.tolist(), product.tolist()
    ([24.0, 12.0, 8.0, 6.0], [24.0])
    """
    ranks = np.arange(1.0, 4 * (-(-depth // 4)) + 1.0).reshape(-1, 4)
    product = ranks.prod(axis=1)
    return (product[:, None] / ranks).ravel(), product


@dataclass(frozen=True, eq=False)
class AveragePrecision:
    """Average precision bound to data: relevance by level, ranks that count, divisor by query."""

    worth: FloatArray
    depth: int
    divisor: FloatArray

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        rows = (layout.starts[part], layout.ends[part], layout.levels)
        if expected:
            both = (ranking.scores, ranking.order)
            expected_average_precisions(*both, *rows, self.worth, self.depth, self.divisor[part], out[part])
            return
        share, product = fours(self.depth)
        hit = np.empty(len(share), dtype=np.int32)
        relevant = self.worth.astype(np.int32)
        average_precisions(
            ranking.order, *rows, relevant, self.depth, share, product, self.divisor[part], hit, out[part]
        )

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        average_precision_swaps(
            ranking.order, start, end, layout.levels, self.worth, self.depth, float(self.divisor[query]), out
        )


@dataclass(frozen=True, eq=False)
class BestGrade:
    """The highest grade within reach, bound to data."""

    worth: FloatArray
    depth: int

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        held = np.empty(len(self.worth), dtype=np.int64)
        rows = (layout.starts[part], layout.ends[part], layout.levels, self.worth)
        best_grades(ranking.scores, ranking.order, *rows, self.depth, expected, held, out[part])

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        best_grade_swaps(ranking.order, start, end, layout.levels, self.worth, self.depth, out)


def relevance(dialect: Dialect, layout: Layout, measure: str) -> tuple[FloatArray, FloatArray]:
    """Return 1.0 for relevant levels and 0.0 for others, and the number of relevant rows of every query."""
    grade = layout.level_grades
    if dialect.binary == "only":
        other = (grade != 0.0) & (grade != 1.0)
        layout.refuse_levels(other, measure, "the tool takes grades 0 and 1 only")
    low, high = relevant_bounds(dialect)
    relevant = ((grade >= low) & (grade <= high)).astype(np.float64)
    return relevant, layout.query_sums(relevant)
