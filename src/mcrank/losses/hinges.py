"""Violated pairs (GBRank, Zheng et al. 2007): squared hinge loss of pairs of rows of a query.

A pair of a better row i and a worse row j is violated when s_i < s_j + margin; it costs half of
(margin - s_i + s_j)^2. Pairs are never listed: with the rows in order of score, the rows that a row does not
beat by the margin are a run at one end, so running counts and sums give every row its share in one walk for
each grade of the query. Where a long query has many grades, one walk with a tree of sums over the grades
(Fenwick's) does the same in O(n log n).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.arrays import FloatArray, IntArray
from mcrank.kernels import step
from mcrank.kernels.fenwick import add_at, sum_upto
from mcrank.kernels.sort import merge_rows
from mcrank.losses.pairs import Space
from mcrank.losses.pairwise import PairsLoss, over_queries, pair_arrays
from mcrank.losses.quantize import Gradients, Run
from mcrank.sums import ALONE, Sums

_MANY = 1 << 22  # rows times grades of a query up to which every grade has a walk of its own


@njit(inline="always")
def add_violations(level, margin, score, worth, slope, count):  # type: ignore[no-untyped-def]
    """Add the violated pairs of rows of one grade with all rows of lower grade."""
    # IN: level, margin, score (falling), worth by rank  OUT: slope, count by rank
    n = len(score)
    top = score[0]
    reached = 0
    rows = 0.0
    total = 0.0
    for i in range(n):
        if worth[i] != level:
            continue
        while reached < n and score[i] - score[reached] < margin:
            if worth[reached] < level:
                rows += 1.0
                total += score[reached] - top  # measured from the top: the scores may be far from 0
            reached += 1
        slope[i] += rows * (margin - (score[i] - top)) + total
        count[i] += rows
    reached = n - 1
    rows = 0.0
    total = 0.0
    for j in range(n - 1, -1, -1):
        if worth[j] >= level:
            continue
        while reached >= 0 and score[reached] - score[j] < margin:
            if worth[reached] == level:
                rows += 1.0
                total += score[reached] - top
            reached -= 1
        slope[j] -= rows * (margin + (score[j] - top)) - total
        count[j] += rows


@step()
def add_all_violations(n_levels, margin, score, place, rows, total, slope, count):  # type: ignore[no-untyped-def]
    """As `add_violations`, for every grade at once; ``place`` counts grades from the lowest, 0."""
    # IN: n_levels, margin, score (falling), place by rank  OUT: rows, total (scratch), slope, count by rank
    n = len(score)
    top = score[0]
    rows, total = rows[:n_levels], total[:n_levels]
    rows[:] = 0.0
    total[:] = 0.0
    reached = 0
    for i in range(n):
        while reached < n and score[i] - score[reached] < margin:
            level = np.int64(place[reached])
            add_at(rows, level, 1.0)
            add_at(total, level, score[reached] - top)
            reached += 1
        lower = np.int64(place[i]) - 1
        below = sum_upto(rows, lower)
        slope[i] += below * (margin - (score[i] - top)) + sum_upto(total, lower)
        count[i] += below
    rows[:] = 0.0
    total[:] = 0.0
    reached = n - 1
    for j in range(n - 1, -1, -1):
        while reached >= 0 and score[reached] - score[j] < margin:
            # Grades turned round: those above are then below.
            level = n_levels - 1 - np.int64(place[reached])
            add_at(rows, level, 1.0)
            add_at(total, level, score[reached] - top)
            reached -= 1
        higher = n_levels - 2 - np.int64(place[j])
        above = sum_upto(rows, higher)
        slope[j] -= above * (margin + (score[j] - top)) - sum_upto(total, higher)
        count[j] += above


@njit(inline="always")
def hinge_query(order_by_worth, worth, scores, factor, margin, space, slopes, counts):  # type: ignore[no-untyped-def]
    """Gradients of one query under the squared hinge loss, and the violated pairs each row is in.

    All arrays are the query's own part; both results are times ``factor``.
    """
    # IN: order_by_worth (falling), worth, scores, factor, margin  OUT: space, slopes, counts
    n = len(worth)
    n_levels = np.int64(1)
    for k in range(1, n):
        n_levels += worth[order_by_worth[k]] != worth[order_by_worth[k - 1]]
    file_order = space.row_a[:0]
    merge_rows(scores, file_order, np.int64(0), n, space, space.order)
    order, score, ranked = space.order[:n], space.score[:n], space.worth[:n]
    slope, count = space.slope[:n], space.curve[:n]
    level = np.inf
    for r in range(n):
        score[r] = scores[order[r]]
        ranked[r] = worth[order[r]]
        slope[r] = 0.0
        count[r] = 0.0
        level = min(level, ranked[r])
    many = n * n_levels > _MANY
    if many and factor > 0.0:
        place, by_rank = space.change[:n], space.used[:n]
        level_of = n_levels - 1
        for k in range(n):
            level_of -= k > 0 and worth[order_by_worth[k]] != worth[order_by_worth[k - 1]]
            place[order_by_worth[k]] = level_of
        for r in range(n):
            by_rank[r] = place[order[r]]
        add_all_violations(n_levels, margin, score, by_rank, space.key_a, space.key_b, slope, count)
    while factor > 0.0 and not many:
        above = np.inf
        for r in range(n):
            if level < ranked[r] < above:
                above = ranked[r]
        if above == np.inf:
            break
        level = above
        add_violations(level, margin, score, ranked, slope, count)
    for r in range(n):
        slopes[order[r]] = factor * slope[r]
        counts[order[r]] = factor * count[r]


fill_hinge = over_queries(hinge_query)


class SquaredHinge(PairsLoss):
    """Squared hinge loss of pairs; its curvature is the number of violated pairs a row is in.

    Parameters
    ----------
    grades, offsets : array-like
        Grade of each row; query ``q`` owns rows ``offsets[q]:offsets[q + 1]``.
    margin : float
        By how much the better row of a pair has to lead.
    weight : ndarray or None
        Row weights.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.hinges import SquaredHinge
    >>> loss = SquaredHinge([0.0, 1.0, 1.0], [0, 3], margin=1.0)
    >>> slopes, counts = np.zeros(3), np.zeros(3)
    >>> loss.slopes(np.array([0.0, 0.5, 2.0]), lambda task, items: [task(i) for i in items], slopes, counts)
    >>> slopes.tolist(), counts.tolist()
    ([-0.5, 0.5, 0.0], [1.0, 1.0, 0.0])
    """

    def __init__(
        self,
        grades: npt.ArrayLike,
        offsets: npt.ArrayLike,
        margin: float = 1.0,
        weight: FloatArray | None = None,
        sums: Sums = ALONE,
    ) -> None:
        super().__init__(pair_arrays(grades, offsets), weight, sums)
        self.margin = float(margin)

    def fill_queries(
        self, scores: FloatArray, queries: IntArray, space: Space, slopes: FloatArray, curves: FloatArray
    ) -> None:
        """Write the gradients and the numbers of violated pairs of some queries."""
        fill_hinge(self.pairs, scores, queries, self.margin, space, slopes, curves)


class ViolationTargets(SquaredHinge):
    """The published GBRank: each tree g_t regresses on targets, and F_t = (t F_{t-1} + rate g_t) / (t + 1).

    For a violated pair the better row is to reach F_j + margin, the worse one F_i - margin; a row's target
    is the mean over its violated pairs, and rows without any take no part. (t + 1) F_t is a plain sum of
    trees, so that is what the engine keeps as score; F_t is the score divided by t + 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.hinges import ViolationTargets
    >>> loss = ViolationTargets([0.0, 1.0, 1.0], [0, 3], margin=1.0)
    >>> gradients = loss.allocate("mse")
    >>> loss.fill(np.array([[0.0, 0.5, 2.0]]), gradients, lambda task, items: [task(i) for i in items])
    >>> (gradients.q[0] * gradients.unit).round(6).tolist(), gradients.curvature[0].tolist()
    ([-0.5, 1.0, 0.0], [1.0, 1.0, 0.0])
    """

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes; the second lane says which rows take part."""
        return super().allocate("newton")

    def slopes(self, scores: FloatArray, run: Run, slopes: FloatArray, curves: FloatArray) -> None:
        """Write the target of every row that is in a violated pair, and 1 for those rows."""
        mean = scores / max(self.round, 1)
        weight, self.weight = self.weight, None
        super().slopes(mean, run, slopes, curves)
        self.weight = weight
        inside = curves > 0.0
        np.divide(slopes, curves, out=slopes, where=inside)
        slopes += np.where(inside, mean, 0.0)
        np.copyto(curves, inside)
        if weight is not None:
            slopes *= weight
            curves *= weight
