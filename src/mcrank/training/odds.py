"""The odds of grades at a score that held-out rows ask for: least log loss of the grades themselves.

The log loss of cumulative logits is convex in slope and cuts. Where A and B are the log-odds of the
boundaries below and above a grade, its probability is s(A) - s(B) = s(A) s(-B) (1 - exp(B - A)): two logistic
losses, and a term of the gap between two cuts alone. All sums are exact, as in `correcting`.

How many rows stray is found by turns (the EM algorithm): how likely is each row to be one that does not, what
are the odds of the rows if so much of each counts, and how many stray then?
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.scorers.heads import Head, sigmoid
from mcrank.scorers.odds import Odds
from mcrank.sums import ALONE, Sums, exact_sum
from mcrank.training.correcting import EQUAL, GRID, LEAST_SLOPE, PULL, least, on_grid, rows_used
from mcrank.training.shares import Shares

LEARNED = 0.25  # of probabilities that were learned together, as those of a softmax are
STRAY = 0.05  # share of rows that stray, ...
SAID = 10.0  # ... as so many rows would say it
MOST_STRAY = 0.95  # a score says something, or the model would not be one
_TURNS = 200
_NEAR = 1e-5


@dataclass(frozen=True, eq=False)
class _Cumulative:
    """Slope and cuts ``at``, of rows with log-odds ``z`` (less their mean) and these classes.

    One row at the mean that may have any grade is added: it keeps a grade that no row has from being called
    impossible. The slope is pulled to 1 as lightly.
    """

    z: FloatArray
    classes: RowArray
    weight: FloatArray
    spread: float  # variance of z
    of_grades: FloatArray  # weight of each grade, that row's share included
    sums: Sums

    def value(self, at: FloatArray) -> float:
        """Return the log loss with slope and cuts ``at``, and the pull."""
        gaps = at[1:-1] - at[2:]
        if (gaps <= 0).any():
            return np.inf
        cuts = at[1:, None]
        loss = exact_sum(self.weight * self._losses(at[0] * self.z + cuts, self.classes), self.sums)
        every = np.arange(len(at), dtype=np.int32)
        loss += PULL / len(at) * float(self._losses(np.broadcast_to(cuts, (len(cuts), len(at))), every).sum())
        loss -= float(self.of_grades[1:-1] @ np.log(-np.expm1(-gaps)))
        return float(loss + 0.5 * PULL * self.spread * (at[0] - 1) ** 2)

    def _losses(self, logits: FloatArray, classes: RowArray) -> FloatArray:
        """Logistic losses of the boundaries next to each row's grade."""
        above, near = _sides(len(logits), classes)
        return np.asarray((near * np.logaddexp(0.0, np.where(above, -logits, logits))).sum(axis=0))

    def derivatives(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return first and second derivatives by slope and cuts."""
        first, second = np.zeros(len(at)), np.zeros((len(at), len(at)))
        cuts = np.arange(1, len(at))
        p = sigmoid(at[0] * self.z + at[1:, None])
        above, near = _sides(len(p), self.classes)
        off, curve = near * (p - above), near * p * (1 - p)

        def total(values: FloatArray) -> float:
            return exact_sum(self.weight * values, self.sums)

        first[0] = total((off * self.z).sum(axis=0)) + PULL * self.spread * (at[0] - 1)
        second[0, 0] = total((curve * self.z**2).sum(axis=0)) + PULL * self.spread
        first[1:] = [total(row) for row in off]
        second[0, 1:] = second[1:, 0] = [total(row * self.z) for row in curve]
        second[cuts, cuts] = [total(row) for row in curve]
        # The row that may have any grade: at every boundary one of them is above it, and one below.
        p = sigmoid(at[1:])
        first[1:] += PULL / len(at) * (2 * p - 1)
        second[cuts, cuts] += PULL / len(at) * 2 * p * (1 - p)
        gaps = at[1:-1] - at[2:]
        push = self.of_grades[1:-1] / np.expm1(gaps)
        bend = push / -np.expm1(-gaps)
        first[1:-1] -= push
        first[2:] += push
        second[cuts[:-1], cuts[:-1]] += bend
        second[cuts[1:], cuts[1:]] += bend
        second[cuts[:-1], cuts[1:]] -= bend
        second[cuts[1:], cuts[:-1]] -= bend
        return first, second


def _sides(n: int, classes: RowArray) -> tuple[BoolArray, BoolArray]:
    """Whether each row is above each of n boundaries, and whether that boundary is next to its grade."""
    boundaries = np.arange(n)[:, None]
    return np.asarray(classes > boundaries), np.asarray((classes - boundaries) // 2 == 0)


def fit_odds(
    raw: FloatArray,
    classes: RowArray,
    head: Head,
    weight: FloatArray | None = None,
    offsets: IntArray | None = None,
    sums: Sums = ALONE,
    training: Shares | None = None,
) -> Odds:
    """Return the odds of grades of rows by their score; arguments as in `fit_correction`, which has found
    something on the same rows, and whose correction ``raw`` has.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.heads import Head
    >>> from mcrank.training.odds import fit_odds
    >>> classes = np.repeat(np.arange(3, dtype=np.int32), [60, 30, 10])
    >>> found = fit_odds(np.zeros((2, 100)), classes, Head("cumulative", np.arange(3.0)))
    >>> found.proba(np.full((2, 1), 0.5)).ravel().round(2).tolist()
    [0.6, 0.3, 0.1]
    """
    assert head.values is not None
    n = len(head.values)
    used, weights = rows_used(classes, n, weight, offsets, sums, training)
    start = Odds.of(1.0, np.zeros(n - 1), np.zeros(n), head.values)
    z, known, total = start.log_odds(head.above(raw[:, used])), classes[used], exact_sum(weights, sums)
    mean = exact_sum(weights * z, sums) / total
    z = z - mean
    spread = exact_sum(weights * z**2, sums) / total
    of_grades = _of_grades(known, weights, n, sums)
    higher = np.cumsum(of_grades[::-1])[-2::-1]
    at = np.append(1.0, np.log(higher / (of_grades.sum() - higher)))
    free = np.full(n, True)
    free[0] = spread > EQUAL
    at = least(_Cumulative(z, known, weights, spread, of_grades, sums), at, free)
    shares, stray = of_grades / of_grades.sum(), STRAY
    for _ in range(_TURNS if free[0] else 0):
        p = _own_chance(at, z, known)
        mixed = stray * shares[known] + (1 - stray) * p
        stays = weights * (1 - stray) * p / mixed
        problem = _Cumulative(z, known, stays, spread, _of_grades(known, stays, n, sums), sums)
        moved = least(problem, at, free, steps=1)
        if moved[0] < LEAST_SLOPE:
            moved[0], free[0] = LEAST_SLOPE, False
            moved = least(problem, moved, free)
        share = _strayed(stray, (shares[known] - p) / mixed, weights, sums)
        near = abs(share - stray) < _NEAR and np.abs(moved - at).max() < _NEAR
        at, stray = moved, share
        if near:
            break
    slope = float(on_grid(at[:1])[0])
    cuts = on_grid(at[1:] - slope * mean)
    for k in range(1, len(cuts)):  # of a grade that hardly any row has, the grid may know nothing
        cuts[k] = min(cuts[k], cuts[k - 1] - GRID)
    learned = 0.0 if head.kind == "cumulative" else LEARNED
    return Odds.of(slope, cuts, np.maximum(on_grid(stray * shares), GRID), head.values, learned)


def _own_chance(at: FloatArray, z: FloatArray, classes: RowArray) -> FloatArray:
    """Probability of each row's grade, if it does not stray."""
    ends = np.full((1, len(z)), np.inf)
    above = sigmoid(np.concatenate([ends, at[0] * z + at[1:, None], -ends]))
    each = np.arange(len(z))
    return np.asarray(above[classes, each] - above[classes + 1, each])


def _strayed(share: float, gain: FloatArray, weight: FloatArray, sums: Sums) -> float:
    """Return a better share of rows that stray: a step of Newton's, as the loss is convex in it.

    ``gain`` is by how much the probability of each row's grade grows with the share, over what it is. Ten
    rows say that it is `STRAY`.
    """
    first = SAID * ((1 - STRAY) / (1 - share) - STRAY / share) - exact_sum(weight * gain, sums)
    second = SAID * ((1 - STRAY) / (1 - share) ** 2 + STRAY / share**2)
    second += exact_sum(weight * gain**2, sums)
    return float(np.clip(share - first / second, share / 4, min(1 - (1 - share) / 4, MOST_STRAY)))


def _of_grades(classes: RowArray, weight: FloatArray, n: int, sums: Sums) -> FloatArray:
    """Weight of each grade, with the share of the row that may have any."""
    return np.array([exact_sum(weight * (classes == k), sums) for k in range(n)]) + PULL / n
