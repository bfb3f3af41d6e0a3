"""The odds of grades at a score that held-out rows ask for: least log loss of the grades themselves.

The log loss of cumulative logits is convex in slopes and cuts. Where A and B are the log-odds of the
boundaries below and above a grade, its probability is s(A) - s(B) = s(A) s(-B) (1 - exp(B - A)): two logistic
losses, and a term of the gap between two cuts alone. All sums are exact, as in `correcting`.

How many rows stray is found by turns (the EM algorithm): how likely is each row to be one that does not, what
are the odds of the rows if so much of each counts, and how many stray then?

At last all cuts are moved alike, so that the rows have their own mean grade: the least log loss need not have
it, and of rows that most have the lowest grade it says about a hundredth too much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.scorers.heads import Head, sigmoid, weighted
from mcrank.scorers.odds import LARGEST, Odds
from mcrank.sums import ALONE, Sums, exact_sum
from mcrank.training.correcting import EQUAL, LEAST_SLOPE, PULL, STEPS, least, on_grid, rows_used
from mcrank.training.levels import FARTHEST, GRID, steps_to
from mcrank.training.shares import Shares

# Where the line may bend: standard deviations of the log-odds from their mean, so that sums are all it takes.
KNOTS = np.array([-0.7, 0.0, 0.7])
BENDABLE = 1e-6  # variance of log-odds above which knots are apart on their grid
BENT = 10.0  # times the pull of slopes to 1: against slopes that differ
LEARNED = 0.25  # of probabilities that were learned together, as those of a softmax are
STRAY = 0.05  # share of rows that stray, ...
SAID = 10.0  # ... as so many rows would say it
MOST_STRAY = 0.95  # a score says something, or the model would not be one
_TURNS = 200
# Of a step: where rows are all but sure, the loss is so flat that one of Newton's leads to where it is flat
# to the last digit, and there is no next one.
_LONGEST = 3.0
_NEAR = 1e-5


@dataclass(frozen=True, eq=False)
class _Cumulative:
    """Slopes and cuts ``at``, of rows with these classes and ``parts`` (segments x rows) of their log-odds:
    how much lies in each segment between knots, less its mean.

    One row at the mean that may have any grade is added: it keeps a grade that no row has from being called
    impossible. Slopes are pulled to 1 as lightly, and by `BENT` to each other.
    """

    parts: FloatArray
    classes: RowArray
    weight: FloatArray
    pull: FloatArray  # half of its square form in slopes less 1 is added to the loss
    of_grades: FloatArray  # weight of each grade, that row's share included
    sums: Sums

    def line(self, at: FloatArray) -> FloatArray:
        """Return what slopes ``at`` make of the parts: row by row the same sum."""
        made = np.zeros(self.parts.shape[1])
        for slope, part in zip(at.tolist(), self.parts, strict=False):
            made += slope * part
        return made

    def value(self, at: FloatArray) -> float:
        """Return the log loss with slopes and cuts ``at``, and the pull."""
        n, slopes = len(self.of_grades), at[: len(self.parts)] - 1
        cuts = at[len(self.parts) :, None]
        gaps = -np.diff(cuts[:, 0])
        if (gaps <= 0).any():
            return np.inf
        loss = exact_sum(self.weight * self._losses(self.line(at) + cuts, self.classes), self.sums)
        every = np.arange(n, dtype=np.int32)
        loss += PULL / n * float(self._losses(np.broadcast_to(cuts, (len(cuts), n)), every).sum())
        loss -= float(self.of_grades[1:-1] @ np.log(-np.expm1(-gaps)))
        return float(loss + 0.5 * slopes @ self.pull @ slopes)

    def _losses(self, logits: FloatArray, classes: RowArray) -> FloatArray:
        """Logistic losses of the boundaries next to each row's grade."""
        above, near = _sides(len(logits), classes)
        return np.asarray((near * np.logaddexp(0.0, np.where(above, -logits, logits))).sum(axis=0))

    def derivatives(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return first and second derivatives by slopes and cuts."""
        first, second = np.zeros(len(at)), np.zeros((len(at), len(at)))
        bent = len(self.parts)
        cuts = np.arange(bent, len(at))
        p = sigmoid(self.line(at) + at[cuts, None])
        above, near = _sides(len(p), self.classes)
        off, curve = near * (p - above), near * p * (1 - p)

        def total(values: FloatArray) -> float:
            return exact_sum(self.weight * values, self.sums)

        every_off, every_curve = off.sum(axis=0), curve.sum(axis=0)
        for i, part in enumerate(self.parts):
            first[i] = total(every_off * part)
            for j, other in enumerate(self.parts[: i + 1]):
                second[i, j] = second[j, i] = total(every_curve * part * other)
            second[i, cuts] = second[cuts, i] = [total(row * part) for row in curve]
        first[:bent] += self.pull @ (at[:bent] - 1)
        second[:bent, :bent] += self.pull
        first[cuts] = [total(row) for row in off]
        second[cuts, cuts] = [total(row) for row in curve]
        # The row that may have any grade: at every boundary one of them is above it, and one below.
        n = len(self.of_grades)
        p = sigmoid(at[cuts])
        first[cuts] += PULL / n * (2 * p - 1)
        second[cuts, cuts] += PULL / n * 2 * p * (1 - p)
        gaps = -np.diff(at[cuts])
        push = self.of_grades[1:-1] / np.expm1(gaps)
        bend = push / -np.expm1(-gaps)
        upper, lower = cuts[:-1], cuts[1:]
        first[upper] -= push
        first[lower] += push
        second[upper, upper] += bend
        second[lower, lower] += bend
        second[upper, lower] -= bend
        second[lower, upper] -= bend
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
    above, known, total = head.learned_above(raw[:, used]), classes[used], exact_sum(weights, sums)
    z = start.log_odds(above)
    mean = exact_sum(weights * z, sums) / total
    spread = exact_sum(weights * (z - mean) ** 2, sums) / total
    knots = on_grid(mean + spread**0.5 * KNOTS) if spread > BENDABLE else np.empty(0)
    parts = _parts(z, knots)
    means = np.array([exact_sum(weights * part, sums) for part in parts]) / total
    parts -= means[:, None]
    filled = np.array([exact_sum(weights * part**2, sums) for part in parts]) / total > EQUAL
    apart = np.diff(np.eye(len(parts)), axis=0)
    pull = PULL * spread * (np.eye(len(parts)) / len(parts) + BENT * apart.T @ apart)
    of_grades = _of_grades(known, weights, n, sums)
    higher = np.cumsum(of_grades[::-1])[-2::-1]
    at = np.append(np.ones(len(parts)), np.log(higher / (of_grades.sum() - higher)))
    free = np.append(filled, np.full(n - 1, True))
    whole = _Cumulative(parts, known, weights, pull, of_grades, sums)  # as if no row strayed
    at = _least_rising(whole, at, free)
    shares, stray = of_grades / of_grades.sum(), STRAY
    for _ in range(_TURNS if filled.any() else 0):
        p = _own_chance(whole.line(at) + at[len(parts) :, None], known)
        mixed = stray * shares[known] + (1 - stray) * p
        stays = weights * (1 - stray) * p / mixed
        staying = replace(whole, weight=stays, of_grades=_of_grades(known, stays, n, sums))
        moved = _least_rising(staying, at, free, steps=1)
        share = _strayed(stray, (shares[known] - p) / mixed, weights, sums)
        near = abs(share - stray) < _NEAR and np.abs(moved - at).max() < _NEAR
        at, stray = moved, share
        if near:
            break
    slopes = on_grid(at[: len(parts)])
    # Parts are less their means, which are in the cuts.
    cuts = on_grid(at[len(parts) :] - float(slopes @ means))
    for k in range(1, len(cuts)):  # of a grade that hardly any row has, the grid may know nothing
        cuts[k] = min(cuts[k], cuts[k - 1] - GRID)
    learned = 0.0 if head.kind == "cumulative" else LEARNED
    strayed = np.maximum(on_grid(stray * shares), GRID)
    found = Odds.of(slopes, cuts, strayed, head.values, learned, knots)
    return with_mean(found, above, known, weights, sums)


def with_mean(odds: Odds, above: FloatArray, classes: RowArray, weight: FloatArray, sums: Sums) -> Odds:
    """Return the odds with their cuts moved alike, by `FARTHEST` at most, to where the expected grades of
    these rows, which were learned to be above grades with chances ``above``, have the mean of their grades.
    """
    way = np.append(0.0, np.cumsum(odds.steps))  # from the lowest grade to each

    def moved(steps: int) -> Odds:
        return replace(odds, cuts=odds.cuts + steps * GRID)

    def mean(steps: int) -> float:
        return exact_sum(weight * weighted(odds.steps, moved(steps).above(above)), sums)

    lowest = -int(min(FARTHEST, LARGEST + odds.cuts[-1]) / GRID)
    highest = int(min(FARTHEST, LARGEST - odds.cuts[0]) / GRID)
    return moved(steps_to(exact_sum(weight * way[classes], sums), mean, lowest, highest))


def _parts(z: FloatArray, knots: FloatArray) -> FloatArray:
    """How much of log-odds lies before the first knot, between each two, and behind the last."""
    if len(knots) == 0:
        return z[None].copy()
    between = [np.clip(z - a, 0.0, b - a) for a, b in pairwise(knots.tolist())]
    return np.array([np.minimum(z, knots[0]), *between, np.maximum(z - knots[-1], 0.0)])


def _least_rising(problem: _Cumulative, at: FloatArray, free: BoolArray, steps: int = STEPS) -> FloatArray:
    """Return where the loss is least with no slope below `LEAST_SLOPE`, or nearer to it by so many steps."""
    free, slopes = free.copy(), slice(len(problem.parts))
    at = least(problem, at, free, steps, _LONGEST)
    while (low := at[slopes] < LEAST_SLOPE).any():
        at[slopes][low], free[slopes][low] = LEAST_SLOPE, False
        at = least(problem, at, free, steps, _LONGEST)
    return at


def _own_chance(logits: FloatArray, classes: RowArray) -> FloatArray:
    """Probability of each row's grade, if it does not stray, by log-odds of the boundaries."""
    ends = np.full((1, len(classes)), np.inf)
    above = sigmoid(np.concatenate([ends, logits, -ends]))
    each = np.arange(len(classes))
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
