"""Coordinate ascent: weights moved one at a time to where a measure is highest, until that gains little."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from mcrank.arrays import FloatArray, IntArray
from mcrank.losses.pair_limit import refuse_pairs
from mcrank.metrics.layout import Graded
from mcrank.metrics.measure import Measure
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.training.line_search import ExactSearch

SMALLEST_STEP = 0.001
MOST_PAIRS = 20_000_000  # of one query along a line, unless told otherwise: 640 MB and a second a thread
_CELLS = 1 << 22  # scores worked on at a time
_DIGITS = 10  # of a mean; beyond them rounding decides


class Search(Protocol):
    """What coordinate ascent asks of a line search."""

    rows: IntArray
    share: float

    def value(self, scores: FloatArray) -> Any:
        """Return the value of the rows' scores; higher is better."""

    def space(self) -> Any:
        """Return memory for one thread."""

    def step(self, scores: FloatArray, x: FloatArray, weight: float, value: Any, space: Any) -> float:
        """Return a step along ``x`` to a value above ``value``, or 0."""


class GridSearch:
    """Line search for any measure: steps of RankLib, doubling in both directions, all scored at once."""

    share = 1.0

    def __init__(self, measure: Measure, data: Graded, doublings: int) -> None:
        self.rows = np.arange(len(data.y))
        self._grown = np.exp2(np.arange(1, doublings + 1)) - 1.0
        candidates = 2 * doublings + 1
        self._at_once = max(1, min(candidates, _CELLS // max(len(self.rows), 1)))
        self._one = measure.on(data)
        self._many = measure.on(Tiled(data, self._at_once))
        weight = self._one.weights
        # Decided queries add a constant, and rounding it in might break ties between steps.
        self._weight = np.where(self._one.decided, 0.0, weight) / weight.sum()

    def value(self, scores: FloatArray) -> float:
        """Return the mean of the measure, without the queries that no ranking can change."""
        return float(self._means(self._one, scores)[0])

    def _means(self, prepared: PreparedMeasure, scores: FloatArray) -> FloatArray:
        values = prepared.per_query(scores).reshape(-1, len(self._weight))
        return np.asarray(np.round(np.nan_to_num(values) @ self._weight, _DIGITS))

    def space(self) -> FloatArray:
        """Return memory for one thread."""
        return np.empty((self._at_once, len(self.rows)))

    def step(
        self, scores: FloatArray, x: FloatArray, weight: float, value: float, space: FloatArray
    ) -> float:
        """Return the step to the highest value among the candidates if it is above ``value``, else 0."""
        tiny = 0.0 < abs(weight) < 2 * SMALLEST_STEP
        first = 0.05 * abs(weight) if tiny else SMALLEST_STEP
        steps = np.concatenate([first * self._grown, -first * self._grown, [-weight]])
        best = 0.0
        for start in range(0, len(steps), self._at_once):
            part = np.zeros(self._at_once)
            part[: len(steps) - start] = steps[start : start + self._at_once]
            np.multiply(part[:, None], x, out=space)
            space += scores
            means = self._means(self._many, space.ravel())
            if means.max() > value:
                value, best = float(means.max()), float(part[np.argmax(means)])
        return best


class Tiled:
    """The grades of a data set several times over, so that one call ranks several candidates."""

    def __init__(self, data: Graded, times: int) -> None:
        self.y = np.tile(data.y, times)
        starts = np.arange(times)[:, None] * len(data.y) + data.offsets[:-1]
        self.offsets = np.append(starts.ravel(), times * len(data.y))
        self.qids = np.arange(times * len(data.qids))
        self.query_weight = None if data.query_weight is None else np.tile(data.query_weight, times)
        self.doc_ids = None if data.doc_ids is None else np.tile(data.doc_ids, times)


def line_search(
    measure: Measure,
    data: Graded,
    kind: str,
    doublings: int,
    most: int = MOST_PAIRS,
    owner: str | None = None,
) -> Search:
    """Return the search asked for; the exact one only where the measure is a discounted sum.

    A query in which the exact one would compare more than ``most`` pairs of rows is refused in the name of
    ``owner``, or without one searched by the grid.
    """
    prepared = measure.on(data)
    if kind == "exact" and ExactSearch.fits(prepared):
        search = ExactSearch(prepared)
        if owner is None and search.pairs.max(initial=0) > most:
            return GridSearch(measure, data, doublings)
        if owner is not None:
            searched = search.searched
            refuse_pairs(
                owner,
                "compares every relevant row of a query with all others along each line",
                "take a measure with a lower cut-off (such as ndcg@10), set search='grid'",
                search.pairs,
                np.diff(data.offsets)[searched],
                np.asarray(data.qids)[searched],
                most,
            )
        return search
    return GridSearch(measure, data, doublings)


def ascend(
    search: Search,
    columns: FloatArray,
    weights: FloatArray,
    stream: np.random.Generator,
    tol: float,
    sweeps: int,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[FloatArray, Any]:
    """Return weights from which no single change gains, and their value.

    Parameters
    ----------
    search : Search
        Line search on some rows.
    columns : ndarray of shape (features, rows)
        Features of the rows searched.
    weights : ndarray of shape (features,)
        Where to start.
    stream : Generator
        Decides the order of the features in each sweep.
    tol : float
        Stop when a sweep over all features adds less to the mean of the measure.
    sweeps : int
        Most sweeps.
    stopped : callable
        Asked before each line whether to stop.
    """
    useful = np.flatnonzero(columns.min(axis=1, initial=np.inf) < columns.max(axis=1, initial=-np.inf))
    weights = unit_length(np.where(np.isin(np.arange(len(weights)), useful), weights, 0.0))
    space = search.space()
    scores = np.einsum("f,fr->r", weights, columns)
    value = search.value(scores)
    for _ in range(sweeps):
        before = value
        for f in stream.permutation(useful):
            if stopped():
                return weights, value
            step = search.step(scores, columns[f], float(weights[f]), value, space)
            if step == 0.0:
                continue
            moved = weights.copy()
            moved[f] += step
            moved = unit_length(moved)
            # Scored anew: sums along the line are rounded, and a step must be worth it.
            moved_scores = np.einsum("f,fr->r", moved, columns)
            moved_value = search.value(moved_scores)
            if moved_value > value and moved.any():
                weights, scores, value = moved, moved_scores, moved_value
        if (value - before) * search.share < tol:
            break
    return weights, value


def unit_length(weights: FloatArray) -> FloatArray:
    """Return weights whose absolute values add up to 1 (all 0 stay so)."""
    total = np.abs(weights).sum()
    return weights / total if total > 0 else weights
