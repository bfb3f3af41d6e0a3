"""ERR, PFound, reciprocal rank and success: a user reads down the list and stops when satisfied.

The value is the sum over ranks of weight * (not satisfied so far) * satisfied here. ERR weighs by 1/rank,
PFound by decay^(rank - 1); with satisfied = relevant it is the reciprocal rank (weight 1/rank) and
success@k (weight 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.kernels import kernel, step
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.layout import Layout
from mcrank.metrics.measure import Arithmetic, Measure
from mcrank.metrics.precision import Binary
from mcrank.metrics.ranking import RankedRows

_LONG = 512  # rows of a tied group that matter from which on they are not gone through one by one
_NOTHING = 1e-20  # a chance below this is none


@kernel()
def cascades(rows, satisfied, rest, weight, out):  # type: ignore[no-untyped-def]
    """Sum weight * still reading * satisfied over the ranks of each query."""
    # IN: rows, satisfied and rest (1 - satisfied) by level, weight by rank  OUT: out
    _, order, starts, ends, levels = rows
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


@step()
def reading_on(group, satisfied, reach, chances):  # type: ignore[no-untyped-def]
    """Fill the chance to go on after 1, 2, ... rows of a group in random order: the mean, over all choices
    of j of its rows, of the product of (1 - satisfied).
    """
    # IN: group (levels of its rows), satisfied, reach  OUT: chances (0 up to reach)
    chances[0] = 1.0
    for j in range(1, reach + 1):
        chances[j] = 0.0
    # Add the group's rows one by one: a choice of j out of i rows has the newest with chance j / i.
    for i in range(1, group.shape[0] + 1):
        go_on = 1.0 - satisfied[group[i - 1]]
        for j in range(min(i, reach), 0, -1):
            chances[j] = (i - j) / i * chances[j] + j / i * go_on * chances[j - 1]


@step()
def reading_on_for_long(group, satisfied, reach, chances):  # type: ignore[no-untyped-def]
    """As `reading_on`, for a long group whose chances to be satisfied do not pass 1.

    Rows that satisfy nobody change nothing but how many of the others are met. After h of those others the
    chance is at most the h-th power of their mean (Maclaurin's inequality), so only the first few matter;
    how many of them are among j rows is hypergeometric, narrow around its mode. For n rows, m of them
    satisfying with mean chance p, that is a time of m * min(m, 46 / p) + n * sqrt(n), not n^2.
    """
    # IN: group, satisfied (0 to 1), reach  OUT: chances
    n = group.shape[0]
    count, mean = 0, 0.0
    for i in range(n):
        if satisfied[group[i]] != 0.0:
            count += 1
            mean += 1.0 - satisfied[group[i]]
    mean = mean / count if count > 0 else 0.0
    most = np.int64(
        min(count, 1 if mean == 0.0 else np.ceil(np.log(_NOTHING) / np.log(mean)) if mean < 1.0 else n)
    )
    able = np.empty(count, dtype=group.dtype)
    k = 0
    for i in range(n):
        if satisfied[group[i]] != 0.0:
            able[k] = group[i]
            k += 1
    after = np.empty(most + 1)
    reading_on(able, satisfied, most, after)
    chances[0] = 1.0
    for j in range(1, reach + 1):
        mode = min(((j + 1) * (count + 1)) // (n + 2), min(j, count))
        others = n - count - j  # and as many of those met as of the others' places
        value = after[mode] if mode <= most else 0.0
        total, weight, h = 1.0, 1.0, mode
        while h < min(j, count) and weight > _NOTHING:
            weight *= (count - h) * (j - h) / ((h + 1) * (others + h + 1))
            h += 1
            total += weight
            value += weight * after[h] if h <= most else 0.0
        weight, h = 1.0, mode
        while h > max(0, -others) and weight > _NOTHING:
            weight *= h * (others + h) / ((count - h + 1) * (j - h + 1))
            h -= 1
            total += weight
            value += weight * after[h] if h <= most else 0.0
        chances[j] = value / total


@kernel(allocates=True)
def expected_cascades(rows, satisfied, weight, scratch, out):  # type: ignore[no-untyped-def]
    """As `cascades`, but the mean over all orders of equal scores.

    The reader goes on after j rows of a tied group with the chance m_j that `reading_on` finds, so rank j
    satisfies with m_(j-1) - m_j.
    """
    # IN: rows, satisfied, weight  OUT: scratch (one longer than weight), out
    scores, order, starts, ends, levels = rows
    longest = 0
    for q in range(starts.shape[0]):
        longest = max(longest, ends[q] - starts[q])
    group = np.empty(longest, dtype=levels.dtype)
    small = True  # no chance above 1; written out, as an array's max() takes a third of a second to compile
    for level in range(satisfied.shape[0]):
        small &= satisfied[level] <= 1.0
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
            for i in range(a, b):
                group[i] = levels[order[s + i]]
            if reach > _LONG and small:
                reading_on_for_long(group[a:b], satisfied, reach, scratch)
            else:
                reading_on(group[a:b], satisfied, reach, scratch)
            for j in range(1, reach + 1):
                total += weight[a + j - 1] * reading * (scratch[j - 1] - scratch[j])
            reading *= scratch[reach]
            a = b
        out[q] = total


@dataclass(frozen=True, eq=False)
class Cascade:
    """A cascade measure on data: probability of satisfaction by level, weight by rank.

    ``rest`` is the precision of 1 - probability.
    """

    worth: FloatArray
    weight: FloatArray
    rest: str = "float64"

    @property
    def depth(self) -> int:
        """Ranks that matter."""
        return len(self.weight)

    def fill(self, rows: RankedRows, expected: bool, part: slice, out: FloatArray) -> None:
        """Fill ``out`` with the value of every query of a part."""
        if expected:
            scratch = np.empty(len(self.weight) + 1, dtype=np.float64)
            expected_cascades(rows, self.worth, self.weight, scratch, out[part])
        else:
            rest = 1.0 - self.worth.astype(self.rest)
            cascades(rows, self.worth, rest.astype(np.float64), self.weight, out[part])


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


@dataclass(frozen=True)
class ERR(Measure):
    """Expected reciprocal rank; ``max_grade`` is the grade of a perfect document.

    Examples
    --------
    >>> from mcrank import ERR, Dataset
    >>> data = Dataset([[0.0]] * 2, y=[0, 4], qid=[1, 1])
    >>> ERR(k=10).on(data).mean([1.0, 2.0])
    0.9375
    """

    max_grade: float = 4

    label: ClassVar[str] = "err"
    parameter: ClassVar[str | None] = "max_grade"
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1000.0)

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return ERR as a cascade."""
        chance = satisfaction(self.switches, layout, self.max_grade, self.name)
        weight = 1.0 / np.arange(1, self._depth(layout) + 1)
        return Arithmetic(Cascade(chance, weight, self.switches.err_rest), layout.query_sums(chance) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        if self.switches.err == "grade":
            chance = "the grade itself"
        else:
            chance = f"(2^grade - 1)/{2.0**self.max_grade:g}"
        over = f"over {self._cut_words()}; P(satisfied) = {chance}"
        return f"sum of 1/rank * P(stop there) {over}; {self._tie_words()}"


@dataclass(frozen=True)
class PFound(Measure):
    """Probability that a reader who leaves with chance 1 - ``decay`` after each document is satisfied.

    The grade itself is the probability of satisfaction, as in CatBoost.

    Examples
    --------
    >>> from mcrank import Dataset, PFound
    >>> data = Dataset([[0.0]] * 2, y=[0.0, 0.5], qid=[1, 1])
    >>> PFound().on(data).mean([2.0, 1.0])
    0.425
    """

    decay: float = 0.85

    label: ClassVar[str] = "pfound"
    parameter: ClassVar[str | None] = "decay"
    bounds: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return PFound as a cascade."""
        chance = satisfaction(self.switches.but(err="grade"), layout, 4, self.name)
        weight = self.decay ** np.arange(self._depth(layout), dtype=np.float64)
        return Arithmetic(Cascade(chance, weight), layout.query_sums(chance) <= 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return (
            f"sum of {self.decay:g}^(rank - 1) * P(stop there) over {self._cut_words()}; "
            f"P(satisfied) = the grade itself; {self._tie_words()}"
        )


@dataclass(frozen=True)
class MRR(Binary):
    """Mean reciprocal rank of the first relevant document.

    Examples
    --------
    >>> from mcrank import MRR, Dataset
    >>> data = Dataset([[0.0]] * 3, y=[0, 1, 1], qid=[1, 1, 1])
    >>> MRR().on(data).mean([3.0, 2.0, 1.0])
    0.5
    """

    label: ClassVar[str] = "mrr"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return the reciprocal rank as a cascade that stops at the first relevant document."""
        relevant, counts = self._relevance(layout)
        weight = 1.0 / np.arange(1, self._depth(layout, self.switches.mrr_default) + 1)
        if self.switches.reciprocal == "float32":
            weight = weight.astype(np.float32).astype(np.float64)
        return Arithmetic(Cascade(relevant, weight), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        cut = self._cut_words(self.switches.mrr_default)
        return f"1/rank of the first relevant in {cut}; {self._relevant_words()}"


@dataclass(frozen=True)
class Success(Binary):
    """1 when a relevant document is among the first k.

    Examples
    --------
    >>> from mcrank import Dataset, Success
    >>> data = Dataset([[0.0]] * 2, y=[0, 1], qid=[1, 1])
    >>> Success(k=1).on(data).mean([1.0, 0.0])
    0.0
    """

    label: ClassVar[str] = "success"

    def prepare(self, layout: Layout) -> Arithmetic:
        """Return success as a cascade of weight 1."""
        relevant, counts = self._relevance(layout)
        return Arithmetic(Cascade(relevant, np.ones(self._depth(layout))), counts == 0.0)

    @property
    def definition(self) -> str:
        """The definition, in one line."""
        return f"1 if a relevant document is in {self._cut_words()}; {self._relevant_words()}"
