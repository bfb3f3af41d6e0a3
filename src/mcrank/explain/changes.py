"""The smallest change of one feature that swaps two rows.

A forest changes only at its thresholds, so the nearest value that swaps the rows is found exactly: of the two
values next to each threshold (the threshold itself, and the next float32 above it) the one nearest to the
row's own. Categories have no distance: of those that swap the rows the one is taken that moves the score
least. A linear map rises or falls with each feature, so bisection over the float32 numbers is exact too.
Nets, and blends that hold other things than forests, are searched on a grid first: a change they report swaps
the rows, but a nearer one between two values of the grid may be missed.

Every change is verified with the scorer itself before it is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray
from mcrank.explain.profile import Steps, forest_profiles, steps_of
from mcrank.scorers.base import Scorer
from mcrank.scorers.blend import WeightedSum
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.heads import Head
from mcrank.scorers.linear import Linear
from mcrank.scorers.net import Net

Score = Callable[[FeatureArray], FloatArray]
Swaps = Callable[[FeatureArray], BoolArray]

_GRID = 65  # values tried on each side, rising by a constant factor in distance
TIED = 1e-13  # share of a score by which it must be beaten: less is rounding
_CLOSE = 1e-9  # differences of scores that only the scorer itself can judge
_FURTHER = 0.01  # of a change by which a value with few digits may be further away
_CELLS = 1 << 18  # scores of whole queries held at a time
_MOST = np.float32(np.finfo(np.float32).max)


class Change(NamedTuple):
    """A change of one feature of one row.

    Attributes
    ----------
    row : str
        ``"a"`` or ``"b"``: the row that changes.
    feature : str
        Name of the feature.
    before, after : float or str
        Its value, and the nearest one with which the rows are swapped; names of categories.
    size : float
        How large the change is, to compare features: in thresholds crossed, as a share of all thresholds of
        the feature, for forests, where another category counts 1; in scaled units (standard deviations, as a
        rule) otherwise.
    exact : bool
        Whether it is certain that no smaller change of this feature does.
    """

    row: str
    feature: str
    before: float | str
    after: float | str
    size: float
    exact: bool


class Found(NamedTuple):
    """The nearest value of a feature that swaps two rows."""

    feature: int
    after: float
    size: float
    exact: bool


class Company(NamedTuple):
    """Two rows among their query, in a blend that is standardised in each query: a change of one moves the
    scale of both.
    """

    scorer: WeightedSum
    query: FeatureArray
    places: tuple[int, int]

    def score(self, changed: int, bound: float) -> Score:
        """Return what scores copies of one of the two: ``bound`` and how far it is then above the other."""
        size, (mine, other) = len(self.query), (self.places[changed], self.places[1 - changed])
        members, whole = self.scorer.members, np.array([0, size])
        as_it_is = np.array([member.score(self.query, 1, whole) for member in members])

        def score(rows: FeatureArray) -> FloatArray:
            own, ahead = np.array([member.score(rows, 1, None) for member in members]), np.empty(len(rows))
            step = max(_CELLS // size, 1)
            for start in range(0, len(rows), step):
                part = own[:, start : start + step]
                copies = part.shape[1]
                scores = np.tile(as_it_is, copies)
                scores[:, mine::size] = part
                scaled = self.scorer.standard.apply(scores, np.arange(copies + 1) * size)
                sums = (self.scorer.weights @ scaled).reshape(copies, size)
                ahead[start : start + step] = sums[:, mine] - sums[:, other]
            return ahead + bound

        return score


@dataclass(frozen=True, eq=False)
class Passing:
    """What it takes to swap two rows: the score of the one must come to lie beyond that of the other.

    With ``rises`` it must come to lie above the bound, else below. ``given`` scores copies of the row, where
    the scorer alone does not.
    """

    scorer: Scorer
    head: Head
    bound: float
    rises: bool
    given: Score | None = None

    def score(self, rows: FeatureArray) -> FloatArray:
        """Scores of copies of the row."""
        return self.head.rank(self.scorer.raw(rows)) if self.given is None else self.given(rows)

    def scores(self, scores: FloatArray) -> BoolArray:
        """Whether scores are beyond the bound."""
        slack = TIED * abs(self.bound)
        return np.asarray(scores > self.bound + slack if self.rises else scores < self.bound - slack)

    def rows(self, rows: FeatureArray) -> BoolArray:
        """Whether copies of the row are."""
        return self.scores(self.score(rows))


def in_few_digits(row: FeatureArray, f: int, change: Change, swaps: Swaps) -> float:
    """Return a value with few digits that swaps the rows too, at most a hundredth of the change further on.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.changes import Change, in_few_digits
    >>> change = Change("a", "price", 3.0, 0.99999994, 0.1, True)
    >>> in_few_digits(np.array([3.0], dtype=np.float32), 0, change, lambda rows: rows[:, 0] < 1.0)
    0.99
    """
    before, after = float(change.before), float(change.after)
    sign = 1.0 if after > before else -1.0
    beyond = after + sign * _FURTHER * abs(after - before)
    candidates = []
    for digits in range(1, 7):
        unit = 10.0 ** (math.floor(math.log10(max(abs(after), abs(beyond), 1e-30))) - digits + 1)
        away = math.ceil(sign * after / unit) * sign * unit
        value = float(f"{away:.{digits}g}")
        if 0.0 <= sign * (value - after) <= sign * (beyond - after) and abs(value) < _MOST:
            candidates.append(value)
    if not candidates:
        return after
    rows = np.repeat(row[None], len(candidates), axis=0)
    rows[:, f] = candidates
    good = np.flatnonzero(swaps(rows)).tolist()
    return candidates[good[0]] if good else after


def smallest_changes(
    passing: Passing, row: FeatureArray, categories: Mapping[int, IntArray] = MappingProxyType({})
) -> list[Found]:
    """Return for each feature that can do it the nearest value with which the score of a row passes a bound.

    A missing value has no distance from others and is left alone. ``categories`` are the codes of features
    that hold categories.
    """
    scorer, head, bound, rises = passing.scorer, passing.head, passing.bound, passing.rises
    score, passes = passing.score, passing.scores
    steps = _all_steps(scorer)
    if steps is not None:
        if isinstance(scorer, Forest):
            scores = head.rank(scorer.raw(row[None]) + forest_profiles(scorer, row, steps))
        else:
            scores = score(_inside_intervals(row, steps))
        likely = scores > bound - _CLOSE if rises else scores < bound + _CLOSE
        found = _step_changes(row, score, passes, steps, likely)
    elif isinstance(scorer, Linear):
        spread = scorer.scaling.factor * (scorer.weights != 0.0)
        found = _line_changes(row, score, passes, spread, np.array([np.inf]), True)
    else:
        near, far = 1e-3, 16.0
        grid = near * (far / near) ** np.linspace(0, 1, _GRID)
        found = _line_changes(row, score, passes, _spread(scorer), grid, False)
    found = [one for one in found if one.feature not in categories]
    for f, codes in categories.items():
        found += _category_change(row, f, codes, passing)
    return sorted(found, key=lambda one: one.feature)


def _category_change(row: FeatureArray, f: int, codes: IntArray, passing: Passing) -> list[Found]:
    """The category that passes the bound and moves the score least, if there is one."""
    codes = codes[codes != row[f]]
    if not np.isfinite(row[f]) or not len(codes):
        return []
    rows = np.repeat(row[None], len(codes) + 1, axis=0)
    rows[1:, f] = codes
    scores = passing.score(rows)
    good = np.flatnonzero(passing.scores(scores[1:]))
    if not len(good):
        return []
    moved = np.abs(scores[1:][good] - scores[0])
    return [Found(f, float(codes[good[int(np.argmin(moved))]]), 1.0, True)]


def _all_steps(scorer: Scorer) -> Steps | None:
    """Return the thresholds of a forest, or of a sum of forests; None for what does not change in steps."""
    if isinstance(scorer, Forest):
        return steps_of(scorer)
    if not isinstance(scorer, WeightedSum) or not all(isinstance(m.scorer, Forest) for m in scorer.members):
        return None
    own: list[list[FeatureArray]] = [[] for _ in range(scorer.n_features)]
    for member in scorer.members:
        steps = _all_steps(member.scorer)
        columns = range(scorer.n_features) if member.columns is None else member.columns.tolist()
        for place, column in enumerate(columns):
            if steps is not None:
                own[column].append(steps.thresholds[steps.offsets[place] : steps.offsets[place + 1]])
    parts = [np.unique(np.concatenate(lists)) for lists in own]
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
    return Steps(np.concatenate(parts), offsets, np.empty(0, dtype=np.int64))


def _inside_intervals(row: FeatureArray, steps: Steps) -> FeatureArray:
    """Copies of a row, one for each interval of each feature, with a value of that interval."""
    counts = np.diff(steps.offsets)
    rows = np.repeat(row[None], len(steps.thresholds) + len(row), axis=0)
    for f in np.flatnonzero(counts).tolist():
        own = steps.thresholds[steps.offsets[f] : steps.offsets[f + 1]]
        at = int(steps.offsets[f]) + f
        rows[at : at + len(own), f] = own
        rows[at + len(own), f] = _next(own[-1])
    return rows


def _step_changes(
    row: FeatureArray,
    score: Score,
    passes: Callable[[FloatArray], BoolArray],
    steps: Steps,
    likely: BoolArray,
) -> list[Found]:
    known = np.flatnonzero(np.isfinite(row)).tolist()
    queues = [queue for f in known for queue in _candidates(f, row[f], steps, likely)]
    best: dict[int, Found] = {}
    while queues:
        rows = np.repeat(row[None], len(queues), axis=0)
        for at, queue in enumerate(queues):
            rows[at, queue[0].feature] = queue[0].after
        swapped = passes(score(rows)).tolist()
        waiting = []
        for queue, good in zip(queues, swapped, strict=True):
            if good:
                found = queue[0]
                rival = best.get(found.feature)
                distance = abs(found.after - float(row[found.feature]))
                if rival is None or distance < abs(rival.after - float(row[found.feature])):
                    best[found.feature] = found
            elif len(queue) > 1:
                waiting.append(queue[1:])
        queues = waiting
    return [best[f] for f in sorted(best)]


def _candidates(f: int, value: np.float32, steps: Steps, likely: BoolArray) -> list[list[Found]]:
    """Values of a feature that may do, nearest first: those above its own value, and those below."""
    thresholds = steps.thresholds[steps.offsets[f] : steps.offsets[f + 1]]
    begin = int(steps.offsets[f]) + f
    inside = likely[begin : begin + len(thresholds) + 1]
    if not inside.any():
        return []
    home = int(np.searchsorted(thresholds, value, side="left"))
    count = len(thresholds)
    above = [
        Found(f, _next(thresholds[j - 1]), (j - home) / count, True)
        for j in (home + 1 + np.flatnonzero(inside[home + 1 :])).tolist()
        if thresholds[j - 1] < _MOST
    ]
    below = [
        Found(f, float(thresholds[j]), (home - j) / count, True)
        for j in np.flatnonzero(inside[:home])[::-1].tolist()
    ]
    return [queue for queue in (above, below) if queue]


def _next(threshold: np.float32) -> float:
    """The nearest number above a threshold; above the largest there is none."""
    return float(np.nextafter(threshold, np.float32(np.inf))) if threshold < _MOST else float(_MOST)


def _line_changes(
    row: FeatureArray,
    score: Score,
    passes: Callable[[FloatArray], BoolArray],
    spread: FloatArray,
    grid: FloatArray,
    exact: bool,
) -> list[Found]:
    """Search both directions of every feature along a grid of distances in scaled units, then bisect."""
    features = np.flatnonzero((spread > 0.0) & np.isfinite(row))
    best: dict[int, Found] = {}
    for sign in (1.0, -1.0):
        found = np.full(len(features), -1, dtype=np.int64)
        with np.errstate(over="ignore"):
            reach = row[features, None] + sign * grid / spread[features, None]
        values = np.clip(reach, -_MOST, _MOST).astype(np.float32)
        for at, f in enumerate(features.tolist()):
            rows = np.repeat(row[None], len(grid), axis=0)
            rows[:, f] = values[at]
            hits = np.flatnonzero(passes(score(rows)))
            found[at] = hits[0] if len(hits) else -1
        hit = np.flatnonzero(found >= 0)
        if not len(hit):
            continue
        lines = features[hit]
        outer = _ordered(values[hit, found[hit]])
        inner = _ordered(np.where(found[hit] > 0, values[hit, np.maximum(found[hit] - 1, 0)], row[lines]))
        while (apart := np.abs(outer - inner) > 1).any():
            middle = inner + (outer - inner) // 2
            rows = np.repeat(row[None], len(lines), axis=0)
            rows[np.arange(len(lines)), lines] = _numbers(middle)
            good = passes(score(rows))
            outer, inner = np.where(apart & good, middle, outer), np.where(apart & ~good, middle, inner)
        for f, after in zip(lines.tolist(), _numbers(outer).astype(np.float64).tolist(), strict=True):
            distance = abs(after - float(row[f]))
            if f not in best or distance < abs(best[f].after - float(row[f])):
                best[f] = Found(f, after, distance * float(spread[f]), exact)
    return [best[f] for f in sorted(best)]


def _ordered(values: FeatureArray) -> IntArray:
    """Float32 numbers as integers in the same order, neighbours one apart."""
    bits = (values.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _numbers(ordered: IntArray) -> FeatureArray:
    bits = np.where(ordered < 0, -ordered | 0x80000000, ordered).astype(np.uint32)
    return bits.view(np.float32)


def _spread(scorer: Scorer) -> FloatArray:
    """One over the unit of each feature, 0 where it does not matter."""
    if isinstance(scorer, Linear | Net):
        return scorer.scaling.factor
    spread = np.zeros(scorer.n_features)
    if isinstance(scorer, Forest):
        steps = steps_of(scorer)
        for f in np.flatnonzero(np.diff(steps.offsets)).tolist():
            own = steps.thresholds[steps.offsets[f] : steps.offsets[f + 1]].astype(np.float64)
            spread[f] = 1.0 / max(float(own[-1] - own[0]), 1e-3 * abs(float(own[0])), 1e-30)
    elif isinstance(scorer, WeightedSum):
        for member in scorer.members:
            columns = np.arange(scorer.n_features) if member.columns is None else member.columns
            spread[columns] = np.maximum(spread[columns], _spread(member.scorer))
    return spread
