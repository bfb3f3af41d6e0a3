"""Violated pairs (GBRank, Zheng et al. 2007): squared hinge loss of pairs of rows of a query.

A pair of a better row i and a worse row j is violated when s_i < s_j + margin; it costs half of
(margin - s_i + s_j)^2. Pairs are never listed: with the rows in order of score, the rows that a row does not
beat by the margin are a run at one end, so running counts and sums give every row its share in one walk for
each grade of the query.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.kernels import kernel
from mcrank.losses.pairs import FloatArray, IntArray, Space
from mcrank.losses.pairwise import PairArrays, QueryLoss, pair_arrays
from mcrank.losses.quantize import Gradients, Run
from mcrank.metrics.sorting import merge_rows


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


@njit(inline="always")
def hinge_query(worth, scores, factor, margin, space, slopes, counts):  # type: ignore[no-untyped-def]
    """Gradients of one query under the squared hinge loss, and the violated pairs each row is in.

    All arrays are the query's own part; both results are times ``factor``.
    """
    # IN: worth, scores, factor, margin  OUT: space, slopes, counts
    n = len(worth)
    file_order = space.row_a[:0]
    merge_rows(
        scores, file_order, np.int64(0), n, space.key_a, space.key_b, space.row_a, space.row_b, space.order
    )
    order, score, ranked = space.order[:n], space.score[:n], space.worth[:n]
    slope, count = space.slope[:n], space.curve[:n]
    level = np.inf
    for r in range(n):
        score[r] = scores[order[r]]
        ranked[r] = worth[order[r]]
        slope[r] = 0.0
        count[r] = 0.0
        level = min(level, ranked[r])
    while factor > 0.0:
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


@kernel()
def fill_hinge(pairs, scores, queries, margin, space, slopes, counts):  # type: ignore[no-untyped-def]
    """`hinge_query` for some queries."""
    # IN: pairs, scores, queries, margin  OUT: space, slopes, counts
    for q in queries:
        s, e = pairs.starts[q], pairs.ends[q]
        hinge_query(pairs.worth[s:e], scores[s:e], pairs.factor[q], margin, space, slopes[s:e], counts[s:e])


class SquaredHinge(QueryLoss):
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
    ) -> None:
        self.pairs: PairArrays = pair_arrays(grades, offsets)
        self.margin = float(margin)
        super().__init__(self.pairs.ends, self.pairs.longest, weight)

    @property
    def is_empty(self) -> bool:
        """Whether no query has two different grades."""
        return not self.pairs.factor.any()

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

    rounds = 0

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes; the second lane says which rows take part."""
        return super().allocate("newton")

    def slopes(self, scores: FloatArray, run: Run, slopes: FloatArray, curves: FloatArray) -> None:
        """Write the target of every row that is in a violated pair, and 1 for those rows."""
        mean = scores / (self.rounds + 1)
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
        self.rounds += 1
