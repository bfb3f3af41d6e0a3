"""Kendall's tau-b between scores and grades: agreement over all pairs of a query, ties set aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.kernels import kernel
from mcrank.kernels.fenwick import add_at, sum_upto
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.ranking import RankedRows


@kernel()
def kendall_taus(rows, tree, held, out):  # type: ignore[no-untyped-def]
    """Kendall's tau-b of each query; 0 where all scores or all grades are equal.

    Going down the ranking, each row meets the rows of higher score, kept as counts by level in a Fenwick
    tree: those of higher level agree with it, those of lower level do not.
    """
    # IN: rows  OUT: tree, held (scratch by level, zeros before and after), out
    scores, order, starts, ends, levels = rows
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
                lower = sum_upto(tree, level - 1)
                agreement += (a - lower - held[level]) - lower
                b += 1
            for r in range(a, b):
                score_ties += r - a
                level = np.int64(levels[order[s + r]])
                grade_ties += held[level]
                held[level] += 1
                add_at(tree, level, np.int64(1))
            # Rows of the group were not yet counted when its own members looked, so ties add nothing.
            a = b
        for r in range(n):
            level = np.int64(levels[order[s + r]])
            held[level] -= 1
            add_at(tree, level, np.int64(-1))
        pairs = n * (n - 1.0) / 2.0
        scale = np.sqrt((pairs - score_ties) * (pairs - grade_ties))
        out[q] = agreement / scale if scale > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class KendallTau:
    """Kendall's tau-b on data. Ties are part of its definition, so no tie rule changes it."""

    worth: FloatArray
    depth: int

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        tree = np.zeros(len(self.worth), dtype=np.int64)
        held = np.zeros(len(self.worth), dtype=np.int64)
        kendall_taus(rows, tree, held, out[part])


@dataclass(frozen=True)
class Kendall(Measure):
    """Kendall's tau-b between scores and grades; 0 where all scores or all grades are equal.

    Examples
    --------
    >>> from mcrank import Dataset, Kendall
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 2], qid=[1, 1, 1])
    >>> Kendall().on(data).mean([1.0, 2.0, 3.0])
    1.0
    """

    label: ClassVar[str] = "kendall"
    whole: ClassVar[str] = "compares whole lists"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return Kendall's tau."""
        form = KendallTau(layout.level_grades, layout.longest)
        return Arithmetic(form, np.zeros(layout.n_queries, dtype=np.bool_))

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return "(concordant - discordant)/sqrt(pairs untied in score * pairs untied in grade)"
