"""Cascade measures: a user reads down the list and stops when satisfied.

The value is the sum over ranks of weight * (not satisfied so far) * satisfied here. ERR weighs by 1/rank,
PFound by decay^(rank - 1); with satisfied = relevant it is the reciprocal rank (weight 1/rank) and
success@k (weight 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcrank.kernels import kernel
from mcrank.metrics.dialects import Dialect
from mcrank.metrics.layout import FloatArray, Layout
from mcrank.metrics.ties import Ranking


@kernel()
def cascades(order, starts, ends, levels, satisfied, rest, weight, out):  # type: ignore[no-untyped-def]
    """Sum weight * still reading * satisfied over the ranks of each query."""
    # IN: order, starts, ends, levels by row, satisfied and rest (1 - satisfied) by level, weight by rank
    # OUT: out
    for q in range(starts.shape[0]):
        s = starts[q]
        total = 0.0
        reading = 1.0
        for r in range(min(ends[q] - s, weight.shape[0])):
            level = levels[order[s + r]]
            p = satisfied[level]
            if p != 0.0:
                total += weight[r] * reading * p
                reading *= rest[level]
                if reading == 0.0:
                    break
        out[q] = total


@kernel()
def expected_cascades(scores, order, starts, ends, levels, satisfied, weight, scratch, out):  # type: ignore[no-untyped-def]
    """As `cascades`, but the mean over all orders of equal scores.

    In a tied group let m_j be the mean, over all choices of j of its rows, of the product of (1 - satisfied):
    the reader goes on after j of them with probability m_j, so rank j satisfies with m_(j-1) - m_j.
    """
    # IN: scores, order, starts, ends, levels, satisfied, weight  OUT: scratch (one longer than weight), out
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        depth = min(n, weight.shape[0])
        total = 0.0
        reading = 1.0
        a = 0
        while a < depth:
            score = scores[order[s + a]]
            b = a
            while b < n and scores[order[s + b]] == score:
                b += 1
            reach = min(b, depth) - a
            scratch[0] = 1.0
            for j in range(1, reach + 1):
                scratch[j] = 0.0
            # Add the group's rows one by one: a choice of j out of i rows has the newest with chance j / i.
            for i in range(1, b - a + 1):
                go_on = 1.0 - satisfied[levels[order[s + a + i - 1]]]
                for j in range(min(i, reach), 0, -1):
                    scratch[j] = (i - j) / i * scratch[j] + j / i * go_on * scratch[j - 1]
            for j in range(1, reach + 1):
                total += weight[a + j - 1] * reading * (scratch[j - 1] - scratch[j])
            reading *= scratch[reach]
            a = b
        out[q] = total


@kernel()
def cascade_swaps(order, start, end, levels, satisfied, weight, out):  # type: ignore[no-untyped-def]
    """Absolute change of one query when the rows at ranks i and j swap.

    With x, y their probabilities it is reading_i * (x - y) * (between + weight_j * still - weight_i), where
    ``between`` and ``still`` are the value and the chance to read on of the rows strictly between.
    """
    # IN: order, start, end, levels, satisfied, weight  OUT: out[i, j]
    n = end - start
    depth = weight.shape[0]
    reading = 1.0
    for i in range(n):
        out[i, i] = 0.0
        x = satisfied[levels[order[start + i]]]
        weight_i = weight[i] if i < depth else 0.0
        between = 0.0
        still = 1.0
        for j in range(i + 1, n):
            y = satisfied[levels[order[start + j]]]
            weight_j = weight[j] if j < depth else 0.0
            change = abs(reading * (x - y) * (between + weight_j * still - weight_i))
            out[i, j] = change
            out[j, i] = change
            between += weight_j * still * y
            still *= 1.0 - y
        reading *= 1.0 - x


@dataclass(frozen=True, eq=False)
class Cascade:
    """A cascade measure bound to data: probability of satisfaction by level, weight by rank.

    ``rest`` is the precision of 1 - probability.
    """

    worth: FloatArray
    weight: FloatArray
    rest: str = "float64"

    @property
    def depth(self) -> int:
        """Ranks that matter."""
        return len(self.weight)

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        rows = (layout.starts[part], layout.ends[part], layout.levels, self.worth)
        if expected:
            scratch = np.empty(len(self.weight) + 1, dtype=np.float64)
            expected_cascades(ranking.scores, ranking.order, *rows, self.weight, scratch, out[part])
        else:
            rest = 1.0 - self.worth.astype(self.rest)
            cascades(ranking.order, *rows, rest.astype(np.float64), self.weight, out[part])

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        cascade_swaps(ranking.order, start, end, layout.levels, self.worth, self.weight, out)


def satisfaction(dialect: Dialect, layout: Layout, max_grade: float, measure: str) -> FloatArray:
    """Return the probability that each level satisfies, or raise `MeasureError` where it would pass 1."""
    grade = layout.level_grades
    scale = float(np.exp2(max_grade))
    if dialect.err == "grade":
        chance = grade
    else:
        with np.errstate(over="ignore"):
            chance = (np.exp2(np.floor(grade) if dialect.grades == "truncate" else grade) - 1.0) / scale
    above = chance > 1.0 if dialect.err_above_one == "error" else ~np.isfinite(chance)
    if dialect.max_grade is not None:
        above = above | (grade > dialect.max_grade)
    words = f"its probability of satisfaction, {_chance_words(dialect, scale)}, must not pass 1"
    layout.refuse_levels(above, measure, words)
    return chance


def _chance_words(dialect: Dialect, scale: float) -> str:
    return "the grade itself" if dialect.err == "grade" else f"(2^grade - 1)/{scale:g}"
