"""FRank's stumps on one long query: pull of its pairs, pairs a threshold separates, the loss along a stump.

The same sums that `mcrank.rankers.frank` takes pair by pair, in boxes (`mcrank.losses.boxes`): their time
does not grow with the square of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from mcrank.arrays import BoolArray, FloatArray, IntArray, RowArray
from mcrank.kernels import kernel, step
from mcrank.losses.boxes import (
    ABOVE,
    BELOW,
    NODES,
    PULL,
    WIDTH,
    add_potential,
    lay_out,
    of_pair,
    pair_sums,
    pair_tables,
)


class Along(NamedTuple):
    """A stump on one long query, to be asked for the loss at any alpha; made by `LongQuery.along`."""

    above: BoolArray  # by falling grade
    near: (
        FloatArray  # pairs by who is above (the better row, the worse one), distance of boxes, nodes of both
    )


class LongQuery:
    """One query: some ``rows`` of the training data, ``order`` its places by falling grade."""

    def __init__(
        self, rows: slice, order: RowArray, worth: FloatArray, weight: FloatArray, factor: float
    ) -> None:
        self.rows, self.factor = rows, factor
        self._order, self._worth, self._weight = order, worth, weight
        self._tables = pair_tables(PULL)

    def pull(self, scores: FloatArray, out: FloatArray) -> float:
        """Fill the pull of all pairs on every row (of all data); return the loss of the query."""
        boxed = lay_out(self._order, self._worth, scores[self.rows], self._weight, self._tables)
        slope, loss, slope_back, _ = pair_sums(boxed, self._tables)
        out[self.rows][self._order] = self.factor * (slope - slope_back)
        self._boxed = boxed
        # Rows side by side that stand in one group and one box: they meet the others together.
        group = np.repeat(np.arange(len(boxed.groups) - 1), np.diff(boxed.groups))
        self._group = group
        self._together = np.lexsort((boxed.box, group))
        return self.factor * float(loss.sum())

    def add_separated(self, columns: npt.NDArray[np.uint16], places: IntArray, out: FloatArray) -> None:
        """As `sum_separated_pairs`, added to ``out``."""
        mine = np.ascontiguousarray(columns[:, self.rows][:, self._order])
        together, tables = self._together, self._tables
        add_separated(mine, self._boxed, tables, self._group, together, self.factor, places, out)

    def along(self, above: BoolArray) -> Along:
        """Return a stump ready for `change`; ``above`` has all rows."""
        boxed = self._boxed
        near = np.zeros((2, BELOW + ABOVE + 1, NODES, NODES))
        mine = above[self.rows][self._order]
        fill_near(mine, boxed, self._together, np.zeros((2, len(boxed.place), NODES)), near)
        return Along(mine, near)

    def change(self, along: Along, alpha: float) -> FloatArray:
        """As `try_fidelity`: change of the loss, its slope, its curvature and a bound of that."""
        out = np.zeros(4)
        sum_along(along, self._boxed, self._tables.nodes, alpha, out)
        return self.factor * out


@njit(inline="always")
def join(tree, group, box, share, sign):  # type: ignore[no-untyped-def]
    """Add a row to a Fenwick tree of moments over groups."""
    # IN: group, box, share, sign  OUT: tree
    g = group + 1
    while g < tree.shape[0]:
        for a in range(NODES):
            tree[g, box, a] += sign * share[a]
        g += g & -g


@step()
def add_before(tree, group, out):  # type: ignore[no-untyped-def]
    """Add the moments of all groups before ``group``."""
    # IN: tree, group  OUT: out (added to)
    g = group
    while g > 0:
        out += tree[g]
        g -= g & -g


@kernel(allocates=True)
def add_separated(columns, boxed, tables, group, together, factor, places, out):  # type: ignore[no-untyped-def]
    """Change of the weight of all pairs a threshold separates when it falls below each bin, by feature.

    A row takes part with + its pairs with rows of lower bins and - those with rows of higher bins.
    """
    # IN: columns (features x rows by falling grade), boxed, tables, group, together, factor, places
    # OUT: out (added to)
    n = columns.shape[1]
    n_groups = len(boxed.groups) - 1
    tree = np.empty((n_groups + 1, len(boxed.place), NODES))
    higher, upto = np.empty((2, len(boxed.place), NODES))
    held, potential = np.empty((2, NODES))
    sequence = np.empty(n, np.int64)
    for f in range(columns.shape[0]):
        bins = columns[f]
        starts = np.zeros(places[f + 1] - places[f] + 1, np.int64)
        for k in range(n):
            starts[bins[k] + 1] += 1
        for b in range(len(starts) - 1):
            starts[b + 1] += starts[b]
        fill = starts.copy()
        for k in together:
            sequence[fill[bins[k]]] = k
            fill[bins[k]] += 1
        tree[:] = 0.0  # rows of lower bins minus those of higher bins
        for k in range(n):
            join(tree, group[k], boxed.box[k], boxed.share[k], -1.0)
        for b in range(len(starts) - 1):
            for at in range(starts[b], starts[b + 1]):
                k = sequence[at]
                join(tree, group[k], boxed.box[k], boxed.share[k], 1.0)
            total = 0.0
            last = -1
            at = starts[b]
            while at < starts[b + 1]:
                g, t = group[sequence[at]], boxed.box[sequence[at]]
                if g != last:
                    higher[:], upto[:] = 0.0, 0.0
                    add_before(tree, g, higher)
                    add_before(tree, g + 1, upto)
                    lower = upto  # of all groups behind this one
                    for s in range(len(boxed.place)):
                        for a in range(NODES):
                            lower[s, a] = -upto[s, a]
                    add_before(tree, n_groups, lower)
                    last = g
                held[:] = 0.0
                while at < starts[b + 1] and group[sequence[at]] == g and boxed.box[sequence[at]] == t:
                    for a in range(NODES):
                        held[a] += boxed.share[sequence[at], a]
                    at += 1
                potential[:] = 0.0
                add_potential(int64(0), int64(0), t, lower, boxed.place, tables, potential)
                add_potential(int64(1), int64(0), t, higher, boxed.place, tables, potential)
                for a in range(NODES):
                    total += held[a] * potential[a]
            out[places[f] + b] += factor * total
            for at in range(starts[b], starts[b + 1]):
                k = sequence[at]
                join(tree, group[k], boxed.box[k], boxed.share[k], 1.0)
    for g in range(n_groups):
        first, end = boxed.groups[g], boxed.groups[g + 1]
        if boxed.level[first] == boxed.level[end - 1]:
            continue
        for i in range(first, end):
            for j in range(i + 1, end):
                if boxed.level[i] == boxed.level[j]:
                    continue
                weighs = factor * boxed.weight[i] * boxed.weight[j]
                weighs *= of_pair(tables.kind, boxed.score[i] - boxed.score[j])[0]
                for f in range(columns.shape[0]):
                    mine, theirs = columns[f, i], columns[f, j]
                    if mine != theirs:
                        out[places[f] + max(mine, theirs)] += weighs
                        out[places[f] + min(mine, theirs)] -= weighs


@kernel(allocates=True)
def fill_near(above, boxed, together, moments, near):  # type: ignore[no-untyped-def]
    """Pairs of two groups with one row above a stump's threshold, by the distance of their boxes."""
    # IN: above, boxed, together  OUT: moments (of rows below and above, zeros before), near
    held = np.empty((2, NODES))
    for g in range(len(boxed.groups) - 2, -1, -1):
        first, end = boxed.groups[g], boxed.groups[g + 1]
        at = first
        while at < end:
            t = boxed.box[together[at]]
            held[:] = 0.0
            while at < end and boxed.box[together[at]] == t:
                k = together[at]
                for a in range(NODES):
                    held[np.int64(above[k]), a] += boxed.share[k, a]
                at += 1
            for s in range(len(boxed.place)):
                distance = boxed.place[t] - boxed.place[s]
                if distance < -BELOW or distance > ABOVE:
                    continue  # so far apart, no alpha moves the loss
                here = near[:, np.int64(distance) + BELOW]
                for a in range(NODES):
                    for b in range(NODES):
                        here[0, a, b] += held[1, a] * moments[0, s, b]
                        here[1, a, b] += held[0, a] * moments[1, s, b]
        for k in range(first, end):
            for a in range(NODES):
                moments[np.int64(above[k]), boxed.box[k], a] += boxed.share[k, a]


@njit(inline="always")
def add_along(lead, rise, weighs, out):  # type: ignore[no-untyped-def]
    """Add a pair whose better row leads by ``lead``, and by ``rise`` more with the stump."""
    # IN: lead, rise, weighs  OUT: out (change, slope by the rise, curvature, bound), added to
    g, lost = of_pair(PULL, lead + rise)
    p = (1.0 - lost) * (1.0 - lost)
    out[0] += weighs * (lost - of_pair(PULL, lead)[1])
    out[1] -= 0.5 * weighs * g
    out[2] += 0.25 * weighs * g * (3.0 * p - 1.0)
    out[3] += 0.25 * weighs * g * (1.0 + p)


@kernel(allocates=True)
def sum_along(along, boxed, nodes, alpha, out):  # type: ignore[no-untyped-def]
    """Change of the loss when the rows above a stump's threshold rise by ``alpha``, and its derivatives."""
    # IN: along, boxed, nodes, alpha  OUT: out (added to)
    parts = np.zeros((2, 4))  # the better row above, the worse one
    rise = (alpha, -alpha)
    for who in range(2):
        for distance in range(along.near.shape[1]):
            for a in range(NODES):
                for b in range(NODES):
                    weighs = along.near[who, distance, a, b]
                    if weighs != 0.0:
                        lead = (distance - BELOW) * WIDTH + nodes[a] - nodes[b]
                        add_along(lead, rise[who], weighs, parts[who])
    for g in range(len(boxed.groups) - 1):
        first, end = boxed.groups[g], boxed.groups[g + 1]
        if boxed.level[first] == boxed.level[end - 1]:
            continue
        for i in range(first, end):
            who = 0 if along.above[i] else 1
            for j in range(i + 1, end):
                if boxed.level[i] != boxed.level[j] and along.above[i] != along.above[j]:
                    weighs = boxed.weight[i] * boxed.weight[j]
                    add_along(boxed.score[i] - boxed.score[j], rise[who], weighs, parts[who])
    for k in range(4):
        out[k] += parts[0, k] + (-parts[1, k] if k == 1 else parts[1, k])
