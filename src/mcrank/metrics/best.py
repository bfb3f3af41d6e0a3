"""The best grade within reach, as RankLib prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.kernels import kernel
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.ranking import RankedRows


@kernel()
def best_grades(rows, grade, depth, expected, held, out):  # type: ignore[no-untyped-def]
    """Find the highest grade within ``depth`` ranks of each query.

    Expected over ties: of t rows tied across the cut c get in, and the i-th best of them (from 0) is the best
    that got in with chance C(t-1-i, c-1) / C(t, c).
    """
    # IN: rows, grade by level, depth, expected  OUT: held (scratch by level), out
    scores, order, starts, ends, levels = rows
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


@dataclass(frozen=True, eq=False)
class BestGrade:
    """The highest grade within reach, on data."""

    worth: FloatArray
    depth: int

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        held = np.empty(len(self.worth), dtype=np.int64)
        best_grades(rows, self.worth, self.depth, expected, held, out[part])


@dataclass(frozen=True)
class Best(Measure):
    """Highest grade among the first k, as RankLib prints it.

    Examples
    --------
    >>> from mcrank import Best, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[1, 2], qid=[1, 1])
    >>> Best(k=1).on(data).mean([2.0, 1.0])
    1.0
    """

    label: ClassVar[str] = "best"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the best grade within reach."""
        grade = layout.level_grades
        if self.switches.grades == "truncate":
            grade = np.floor(grade)
        return Arithmetic(BestGrade(grade, self._depth(layout)), layout.query_sums(grade) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"highest grade in {self._cut_words()}; {self._tie_words()}"
