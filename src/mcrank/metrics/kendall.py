"""Kendall's tau-b between scores and grades: agreement over all pairs of a query, ties set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mcrank.metrics.layout import FloatArray, Layout
from mcrank.metrics.ties import Ranking


@njit(nogil=True, cache=True)
def tied_pairs(sorted_values):  # type: ignore[no-untyped-def]
    """Count the pairs of equal values among sorted values."""
    # IN: sorted_values
    pairs = 0.0
    run = 0.0
    for i in range(1, sorted_values.shape[0]):
        run = run + 1.0 if sorted_values[i] == sorted_values[i - 1] else 0.0
        pairs += run
    return pairs


@njit(nogil=True, cache=True)
def kendall_taus(scores, order, starts, ends, levels, grade, out):  # type: ignore[no-untyped-def]
    """Kendall's tau-b of each query; 0 where all scores or all grades are equal.

    Knight's way: in ranked order a discordant pair is an inversion of grades, counted while merge sorting.
    """
    # IN: scores, order, starts, ends, levels, grade by level  OUT: out
    for q in range(starts.shape[0]):
        s = starts[q]
        n = ends[q] - s
        ranked_score = np.empty(n, dtype=np.float64)
        values = np.empty(n, dtype=np.float64)
        for r in range(n):
            ranked_score[r] = scores[order[s + r]]
        # Inside equal scores grades stand highest first, so that pairs tied in score make no inversion.
        a = 0
        tied_both = 0.0
        while a < n:
            b = a
            while b < n and ranked_score[b] == ranked_score[a]:
                values[b] = grade[levels[order[s + b]]]
                b += 1
            values[a:b] = np.sort(values[a:b])[::-1]
            tied_both += tied_pairs(values[a:b])
            a = b
        spare = np.empty(n, dtype=np.float64)
        discordant = 0.0
        width = 1
        while width < n:
            for low in range(0, n, 2 * width):
                mid = min(low + width, n)
                high = min(low + 2 * width, n)
                i, j = low, mid
                for o in range(low, high):
                    if j >= high or (i < mid and values[i] >= values[j]):
                        spare[o] = values[i]
                        i += 1
                    else:
                        spare[o] = values[j]
                        discordant += mid - i
                        j += 1
            values, spare = spare, values
            width *= 2
        pairs = n * (n - 1.0) / 2.0
        score_ties = tied_pairs(ranked_score)
        grade_ties = tied_pairs(values)
        scale = np.sqrt((pairs - score_ties) * (pairs - grade_ties))
        agreement = pairs - score_ties - grade_ties + tied_both - 2.0 * discordant
        out[q] = agreement / scale if scale > 0.0 else 0.0


@njit(nogil=True, cache=True)
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
    pairs = n * (n - 1.0) / 2.0
    scale = np.sqrt((pairs - tied_pairs(ranked_score)) * (pairs - tied_pairs(np.sort(ranked_grade))))
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

    def fill(self, layout: Layout, ranking: Ranking, expected: bool, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query."""
        kendall_taus(
            ranking.scores, ranking.order, layout.starts, layout.ends, layout.levels, self.worth, out
        )

    def fill_swaps(self, layout: Layout, ranking: Ranking, query: int, out: FloatArray) -> None:
        """Fill ``out[i, j]`` with the change when ranks i and j of one query swap."""
        start, end = int(layout.starts[query]), int(layout.ends[query])
        kendall_swaps(ranking.scores, ranking.order, start, end, layout.levels, self.worth, out)
