"""Kendall's tau-b between scores and grades: agreement over all pairs of a query, ties set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcrank.kernels import kernel, step
from mcrank.metrics.layout import FloatArray, Layout
from mcrank.metrics.ties import Ranking


@kernel()
def kendall_taus(scores, order, starts, ends, levels, tree, held, out):  # type: ignore[no-untyped-def]
    """Kendall's tau-b of each query; 0 where all scores or all grades are equal.

    Going down the ranking, each row meets the rows of higher score, kept as counts by level in a Fenwick
    tree: those of higher level agree with it, those of lower level do not.
    """
    # IN: scores, order, starts, ends, levels  OUT: tree, held (scratch by level, zeros before and after), out
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        agreement = 0.0
        score_ties = 0.0
        grade_ties = 0.0
        a = 0
        while a < n:
            b = a
            while b < n and scores[order[s + b]] == scores[order[s + a]]:
                level = np.int64(levels[order[s + b]])
                lower = 0
                i = level
                while i > 0:
                    lower += tree[i]
                    i -= i & -i
                agreement += (a - lower - held[level]) - lower
                b += 1
            for r in range(a, b):
                score_ties += r - a
                level = np.int64(levels[order[s + r]])
                grade_ties += counted(tree, held, level, 1)
            # Rows of the group were not yet counted when its own members looked, so ties add nothing.
            a = b
        for r in range(n):
            counted(tree, held, np.int64(levels[order[s + r]]), -1)
        pairs = n * (n - 1.0) / 2.0
        scale = np.sqrt((pairs - score_ties) * (pairs - grade_ties))
        out[q] = agreement / scale if scale > 0.0 else 0.0


@step()
def counted(tree, held, level, step):  # type: ignore[no-untyped-def]
    """Add ``step`` rows of one level to the counts; return how many there were."""
    # IN: level, step  OUT: tree, held
    before = held[level]
    held[level] += step
    i = level + 1
    while i < tree.shape[0]:
        tree[i] += step
        i += i & -i
    return before


@kernel()
def kendall_swaps(scores, order, start, end, levels, grade, out):  # type: ignore[no-untyped-def]
    """Absolute change of tau-b when the rows at ranks i and j swap scores.

    Scores and grades stay the same numbers, so only the agreement changes: of the pair, and with rows between
    them or tied with one of them.
    """
    # IN: scores, order, start, end, levels, grade  OUT: out[i, j]
    n = end - start
    ranked_score = np.empty(n, dtype=np.float64)
    ranked_grade = np.empty(n, dtype=np.float64)
    for r in range(n):
        ranked_score[r] = scores[order[start + r]]
        ranked_grade[r] = grade[levels[order[start + r]]]
    untied_score = 0.0
    untied_grade = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            untied_score += ranked_score[i] != ranked_score[j]
            untied_grade += ranked_grade[i] != ranked_grade[j]
    scale = np.sqrt(untied_score * untied_grade)
    for i in range(n):
        out[i, i] = 0.0
        first = i
        while first > 0 and ranked_score[first - 1] == ranked_score[i]:
            first -= 1
        last = i
        for j in range(i + 1, n):
            last = max(last, j)
            while last + 1 < n and ranked_score[last + 1] == ranked_score[j]:
                last += 1
            change = 0.0
            for m in range(first, last + 1):
                with_i = np.sign(ranked_grade[i] - ranked_grade[m])
                with_j = np.sign(ranked_grade[j] - ranked_grade[m])
                above = np.sign(ranked_score[i] - ranked_score[m])
                below = np.sign(ranked_score[j] - ranked_score[m])
                change += (with_i - with_j) * (below - above)  # at m = i and m = j: the pair itself
            out[i, j] = abs(change) / scale if scale > 0.0 else 0.0
            out[j, i] = out[i, j]


@dataclass(frozen=True, eq=False)
class KendallTau:
    """Kendall's tau-b bound to data. Ties are part of its definition, so no tie rule changes it."""

    worth: FloatArray
    depth: int

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        tree = np.zeros(len(self.worth) + 1, dtype=np.int64)
        held = np.zeros(len(self.worth), dtype=np.int64)
        bounds = (layout.starts[part], layout.ends[part])
        kendall_taus(ranking.scores, ranking.order, *bounds, layout.levels, tree, held, out[part])

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        kendall_swaps(ranking.scores, ranking.order, start, end, layout.levels, self.worth, out)
