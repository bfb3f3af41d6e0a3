"""The hinge loss of all pairs of a query, without pairs.

With the rows of a query sorted by score, the rows that a row has to beat by a margin but does not are a run
at one end. A tree of sums over grade levels (Fenwick's), fed while walking down the scores, counts those of
lower grade: O(n log n) for any number of grades, where pairs would be O(n^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel, step
from mcrank.metrics.layout import Layout
from mcrank.metrics.ranking import rank
from mcrank.training.weights import relative

_F = types.float64[::1]
_I = types.int64[::1]
_ORDER = types.int32[::1]


class HingeRows(NamedTuple):
    """Rows that have pairs, as kernels take them; see `PairedRows`."""

    offsets: IntArray
    levels: IntArray  # place of each row's grade among the grades of its query
    n_levels: IntArray  # of each query
    weight: FloatArray  # of rows; a pair weighs their product, so that a weight of 2 acts as two equal rows
    pair_weight: FloatArray  # of the pairs of each query


_ROWS = types.NamedTuple((_I, _I, _I, _F, _F), HingeRows)  # type: ignore[no-untyped-call]


@njit(inline="always")
def put(level, once, times, n_levels, steps, trees):  # type: ignore[no-untyped-def]
    """Add a row to the sums over all levels from its own."""
    # IN: level, once, times, n_levels, steps  OUT: trees
    k = level + 1
    for _ in range(steps):
        k = min(k, n_levels)
        trees[0, k] += once
        trees[1, k] += times
        k += k & -k


@step()
def sums_above(key, level, weight, value, between, n_levels, trees, sums):  # type: ignore[no-untyped-def]
    """For each row, count rows of lower level and a key beyond its own minus ``high``, not minus ``low``.

    ``sums`` has that, and the same sum with each row's ``value`` as a factor. Walks in the trees take as many
    steps for every row, the spare ones at 0, which adds nothing, or behind the last place, which is not read:
    they cost less than ends that a processor cannot foresee.
    """
    # IN: key (falling), level, weight, value, between (low, high), n_levels
    # OUT: trees (scratch; two of each, in one array), sums
    low, high = between
    n = key.shape[0]
    steps = 0
    while n_levels - 1 >> steps:
        steps += 1
    for k in range(n_levels + 1):
        trees[0, k] = 0.0
        trees[1, k] = 0.0
    enter = 0
    leave = 0
    for i in range(n):
        while enter < n and key[enter] > key[i] - high:
            put(level[enter], weight[enter], weight[enter] * value[enter], n_levels, steps, trees)
            enter += 1
        while leave < enter and key[leave] > key[i] - low:
            put(level[leave], -weight[leave], -weight[leave] * value[leave], n_levels, steps, trees)
            leave += 1
        sum_n = 0.0
        sum_v = 0.0
        k = level[i]
        for _ in range(steps):
            sum_n += trees[0, k]
            sum_v += trees[1, k]
            k -= k & -k
        sums[0, i] = sum_n
        sums[1, i] = sum_v


@njit(inline="always")
def room_for(rows):  # type: ignore[no-untyped-def]
    """Most rows and most levels of any query."""
    longest, most = 0, 0
    for q in range(rows.offsets.shape[0] - 1):
        longest = max(longest, rows.offsets[q + 1] - rows.offsets[q])
        most = max(most, rows.n_levels[q])
    return longest, most


@njit(inline="always")
def face(side, q, order, rows, scores, key, level, weight):  # type: ignore[no-untyped-def]
    """Lay out a query as its rows are met; from below (side 1) the world is the same, turned round."""
    # IN: side, q, order, rows, scores  OUT: key (falling), level, weight
    s, n = rows.offsets[q], rows.offsets[q + 1] - rows.offsets[q]
    for i in range(n):
        row = order[s + i] if side == 0 else order[s + n - 1 - i]
        key[i] = scores[row] if side == 0 else -scores[row]
        level[i] = rows.levels[row] if side == 0 else rows.n_levels[q] - 1 - rows.levels[row]
        weight[i] = rows.weight[row]


@kernel(types.float64(_ORDER, _ROWS, _F, types.float64, types.float64, _F), allocates=True)
def hinge(order, rows, scores, width, curve, gradient):  # type: ignore[no-untyped-def]
    """Return the loss of all pairs and fill its derivative by each score.

    A pair whose margin is m costs ``curve * (1 - m)^2`` where ``1 - width < m < 1`` and, from there on, the
    line that continues it.
    """
    # IN: order (rows by falling score), rows, scores, width, curve  OUT: gradient
    offsets, _, n_levels, _, pair_weight = rows
    longest, most = room_for(rows)
    key_, weight_ = np.empty(longest), np.empty(longest)
    level_ = np.empty(longest, np.int64)
    near, far_off = np.empty((2, longest)), np.empty((2, longest))
    trees = np.empty((2, most + 1))
    loss = 0.0
    slope = 2.0 * curve * width if width < np.inf else 0.0
    for q in range(offsets.shape[0] - 1):
        s = offsets[q]
        n = offsets[q + 1] - s
        K = n_levels[q]
        for side in range(2):
            face(side, q, order, rows, scores, key_, level_, weight_)
            key, level, wt = key_[:n], level_[:n], weight_[:n]
            sums_above(key, level, wt, key, (1.0 - width, 1.0), K, trees, near)
            if slope > 0.0:
                sums_above(key, level, wt, key, (-np.inf, 1.0 - width), K, trees, far_off)
            for i in range(n):
                row = order[s + i] if side == 0 else order[s + n - 1 - i]
                short = near[0, i] * (1.0 - key[i]) + near[1, i]  # sum of 1 - m
                push = 2.0 * curve * short
                # (1 - m)^2 = (1 - m) - m (1 - m), and m (1 - m) adds up from both sides of each pair.
                cost = -0.5 * push * key[i]
                if side == 0:
                    cost += curve * short
                if slope > 0.0:
                    push += slope * far_off[0, i]
                    if side == 0:
                        far = far_off[0, i] * (1.0 - key[i]) + far_off[1, i]
                        cost += slope * (far - 0.5 * width * far_off[0, i])
                loss += pair_weight[q] * wt[i] * cost
                push *= pair_weight[q] * wt[i]
                gradient[row] = -push if side == 0 else gradient[row] + push
    return loss


@kernel(types.void(_ORDER, _ROWS, _F, types.float64, types.float64, _F, _F), allocates=True)
def hinge_curvature(order, rows, scores, width, curve, moved, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the second derivative of `hinge` by the scores, times the vector ``moved``."""
    # IN: as `hinge`, and moved  OUT: out
    offsets, _, n_levels, _, pair_weight = rows
    longest, most = room_for(rows)
    key_ = np.empty(longest)
    level_ = np.empty(longest, np.int64)
    values, sums = np.empty((2, longest)), np.empty((2, longest))
    trees = np.empty((2, most + 1))
    for q in range(offsets.shape[0] - 1):
        s = offsets[q]
        n = offsets[q + 1] - s
        K = n_levels[q]
        for side in range(2):
            face(side, q, order, rows, scores, key_, level_, values[0])
            for i in range(n):
                values[1, i] = moved[order[s + i] if side == 0 else order[s + n - 1 - i]]
            wt, move = values[0, :n], values[1, :n]
            sums_above(key_[:n], level_[:n], wt, move, (1.0 - width, 1.0), K, trees, sums)
            for i in range(n):
                row = order[s + i] if side == 0 else order[s + n - 1 - i]
                change = 2.0 * curve * pair_weight[q] * wt[i] * (sums[0, i] * move[i] - sums[1, i])
                out[row] = change if side == 0 else out[row] + change


@dataclass(frozen=True, eq=False)
class PairedRows:
    """The rows of all queries that have pairs (rows of different grade), as `hinge` wants them.

    Attributes
    ----------
    queries : ndarray of bool
        Which queries of the data those are.
    layout, rows : Layout, HingeRows
        Their rows.
    total : float
        Weight of all pairs: the loss when all scores are equal.
    """

    queries: BoolArray
    layout: Layout
    rows: HingeRows
    total: float

    @classmethod
    def of(cls, data: Dataset, by_query: bool = False) -> PairedRows | None:
        """Find them; None when there is no pair. ``by_query``: the pairs of a query weigh 1 together."""
        starts = data.offsets[:-1]
        queries = np.maximum.reduceat(data.y, starts) > np.minimum.reduceat(data.y, starts)
        if not queries.any():
            return None
        chosen = data.select(queries)
        weight = relative(data.weight, data.n_rows)[np.repeat(queries, data.sizes)]
        pair_weight = relative(data.query_weight, data.n_queries)[queries]
        levels, n_levels, pairs = _levels(chosen, weight)
        if by_query:
            np.divide(pair_weight, pairs, out=pair_weight, where=pairs > 0)
        total = float(pairs @ pair_weight)
        if not total > 0:
            return None
        rows = HingeRows(np.array(chosen.offsets), levels, n_levels, weight, pair_weight)
        return cls(queries, Layout.of(chosen), rows, total)

    def order(self, scores: FloatArray) -> RowArray:
        """Rows of each query by falling score."""
        return rank(self.layout, scores, self.layout.longest).order

    def loss(
        self, order: RowArray, scores: FloatArray, width: float, curve: float
    ) -> tuple[float, FloatArray]:
        """Return the loss of all pairs (see `hinge`) and its derivative by each score."""
        out = np.empty_like(scores)
        value = hinge(order, self.rows, scores, width, curve, out)
        return float(value), out

    def curvature(
        self, order: RowArray, scores: FloatArray, width: float, curve: float, moved: FloatArray
    ) -> FloatArray:
        """Return the second derivative of `loss` by the scores, times ``moved``."""
        out = np.empty_like(scores)
        hinge_curvature(order, self.rows, scores, width, curve, moved, out)
        return out


def _levels(data: Dataset, weight: FloatArray) -> tuple[Any, Any, FloatArray]:
    """Level of each row inside its query, levels of each query, and the weight of its pairs."""
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    order = np.lexsort((data.y, query))
    new = np.ones(data.n_rows, dtype=bool)
    new[1:] = (np.diff(data.y[order]) > 0) | (np.diff(query[order]) > 0)
    group = np.cumsum(new) - 1
    first = group[data.offsets[:-1]]
    levels = np.empty(data.n_rows, dtype=np.int64)
    levels[order] = group - first[query]
    n_levels = np.diff(np.append(first, group[-1] + 1))
    by_level = np.bincount(group, weights=weight[order])
    below = np.cumsum(by_level) - by_level  # of all queries; what lies before the own query is taken off
    below -= np.repeat(below[first], n_levels)
    pairs = np.add.reduceat(by_level * below, first)
    return levels, n_levels.astype(np.int64), pairs
