"""Sums over all pairs of one long query, without the pairs: time near-linear in its rows.

What a pair adds to a loss is a smooth function of d = (score of the better row) - (score of the worse row).
Scores are cut into boxes of width 2. Inside a box such a function is a polynomial of degree 17 to 13 digits,
so that the rows of a box act as weights at 18 nodes, and two boxes act on each other through a table of
18 x 18 numbers that depends on their distance alone. Far boxes act through the limit of the function.

Grades order the sums: going through the grades, each group of rows meets the boxes of all rows of other
grades. A group is one grade, or several small ones, whose own pairs are taken one by one.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.kernels import kernel, step
from mcrank.kernels.exp import exp_negative

LONG = 4096  # rows from which the pairs of a query are summed in boxes
GROUP = 256  # rows up to which small grades are taken together
NODES = 18
WIDTH = 2.0
BELOW, ABOVE = 64, 32  # boxes the worse row may be above the better one, and the other way round
# What a pair adds, two functions each: RankNet's slope and curvature; FRank's, for trees; pull and loss, for
# stumps. P is the chance that the better row is ahead.
LOGISTIC, FIDELITY, PULL = 0, 1, 2
_LIMITS = ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0))  # of the functions where the worse row is far ahead


class Tables(NamedTuple):
    """What boxes do to each other; made by `pair_tables`."""

    kind: int
    nodes: FloatArray
    divisor: FloatArray  # of each node's polynomial
    act: FloatArray  # direction (on the better row, on the worse), function, distance, node from, node to
    limit: FloatArray


class Boxed(NamedTuple):
    """Rows of one query, by falling grade, laid out in boxes; made by `lay_out`."""

    score: FloatArray  # times sigma
    level: IntArray  # 0 is the highest grade
    groups: IntArray  # where each group begins, and the end of the last
    box: IntArray  # of each row, among the boxes that hold any
    place: FloatArray  # of each such box: how many widths it is from the lowest
    share: FloatArray  # of each row at each node, times its weight
    weight: FloatArray


@njit(inline="always")
def of_pair(kind, d):  # type: ignore[no-untyped-def]
    """Return the two functions of a pair whose better row leads by ``d``."""
    small = exp_negative(-abs(d))
    right = (1.0 if d > 0.0 else small) / (1.0 + small)
    wrong = (small if d > 0.0 else 1.0) / (1.0 + small)
    if kind == LOGISTIC:
        return wrong, right * wrong
    root = np.sqrt(right)
    if kind == FIDELITY:
        return 0.5 * root * wrong, 0.25 * root * wrong * (1.0 + right)
    return root * wrong, wrong / (1.0 + root)  # 1 - root, without losing its digits


@kernel()
def fill_tables(kind, nodes, act):  # type: ignore[no-untyped-def]
    """Fill what boxes at each distance do to each other."""
    # IN: kind, nodes  OUT: act
    for distance in range(act.shape[2]):
        for a in range(NODES):
            for b in range(NODES):
                first, second = of_pair(kind, (distance - BELOW) * WIDTH + nodes[a] - nodes[b])
                act[0, 0, distance, b, a] = act[1, 0, distance, a, b] = first
                act[0, 1, distance, b, a] = act[1, 1, distance, a, b] = second


@cache
def pair_tables(kind: int) -> Tables:
    """Return the tables of one kind of loss.

    Examples
    --------
    >>> from mcrank.losses.boxes import LOGISTIC, pair_tables
    >>> pair_tables(LOGISTIC).act.shape
    (2, 2, 97, 18, 18)
    """
    # Rounded: the last digits of a cosine differ between machines, and any points nearby do as well.
    steps = 2.0**40
    nodes = np.array(
        [round(math.cos((2 * a + 1) * math.pi / (2 * NODES)) * steps) / steps for a in range(NODES)]
    )
    apart = nodes[:, None] - nodes
    np.fill_diagonal(apart, 1.0)
    act = np.empty((2, 2, BELOW + ABOVE + 1, NODES, NODES))
    fill_tables(kind, nodes, act)
    return Tables(kind, nodes, apart.prod(axis=1), act, np.array(_LIMITS[kind]))


@kernel()
def fill_shares(score, place, box, weight, tables, share):  # type: ignore[no-untyped-def]
    """Share of each row at the nodes of its box: the polynomials that are 1 at one node, 0 at the others."""
    # IN: score (from the lowest), place by box, box, weight, tables  OUT: share
    for i in range(len(score)):
        x = min(max(score[i] - WIDTH * place[box[i]] - 0.5 * WIDTH, -0.5 * WIDTH), 0.5 * WIDTH)
        before = weight[i]
        for a in range(NODES):
            share[i, a] = before / tables.divisor[a]
            before *= x - tables.nodes[a]
        behind = 1.0
        for a in range(NODES - 1, -1, -1):
            share[i, a] *= behind
            behind *= x - tables.nodes[a]


def lay_out(
    order: RowArray, worth: FloatArray, scores: FloatArray, weight: FloatArray | None, tables: Tables
) -> Boxed:
    """Lay the rows of one query out; ``order`` has its places by falling ``worth``, scores are times sigma.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.boxes import LOGISTIC, lay_out, pair_tables
    >>> order = np.array([1, 0, 2], dtype=np.int32)
    >>> scores = np.array([0.0, 5.0, 1.0])
    >>> boxed = lay_out(order, np.array([1.0, 2.0, 0.0]), scores, None, pair_tables(LOGISTIC))
    >>> boxed.box.tolist(), boxed.place.tolist(), boxed.groups.tolist()
    ([1, 0, 0], [0.0, 2.0], [0, 3])
    """
    ranked = worth[order]
    score = scores[order] - scores.min()
    place, box = np.unique(np.floor(score / WIDTH), return_inverse=True)
    level = np.append(0, np.cumsum(ranked[1:] != ranked[:-1]))
    row_weight = np.ones(len(order)) if weight is None else weight[order]
    share = np.empty((len(order), NODES))
    fill_shares(score, place, box, row_weight, tables, share)
    return Boxed(score, level, _groups(level), box.astype(np.int64), place, share, row_weight)


def _groups(level: IntArray) -> IntArray:
    """Where groups begin: a large grade alone, small ones together up to `GROUP` rows."""
    starts = np.append(np.flatnonzero(np.append(True, level[1:] != level[:-1])), len(level)).tolist()
    groups = [0]
    for k in range(1, len(starts) - 1):
        if starts[k + 1] - groups[-1] > GROUP:
            groups.append(starts[k])
    return np.array([*groups, len(level)], dtype=np.int64)


@step()
def add_potential(side, function, target, moments, place, tables, out):  # type: ignore[no-untyped-def]
    """Add what all boxes do to the nodes of box ``target``; on better rows (side 0) or worse ones (1)."""
    # IN: side, function, target, moments by box and node, place, tables  OUT: out by node, added to
    far = 0.0
    for source in range(len(place)):
        distance = place[target] - place[source] if side == 0 else place[source] - place[target]
        if distance > ABOVE:
            continue
        if distance < -BELOW:
            for b in range(NODES):
                far += moments[source, b]
            continue
        act = tables.act[side, function, int(distance) + BELOW]
        for b in range(NODES):
            moment = moments[source, b]
            if moment != 0.0:
                for a in range(NODES):
                    out[a] += moment * act[b, a]
    far *= tables.limit[function]
    for a in range(NODES):
        out[a] += far


@njit(inline="always")
def meet_group(side, g, boxed, moments, tables, seen, potential, out):  # type: ignore[no-untyped-def]
    """Add to the sums of the rows of a group what the rows in ``moments`` do to them; then let them join."""
    # IN: side, g, boxed, tables  OUT: moments, seen, potential (scratch), out
    first, end = boxed.groups[g], boxed.groups[g + 1]
    for k in range(first, end):
        t = boxed.box[k]
        if not seen[t]:
            seen[t] = True
            for function in range(2):
                potential[function, t] = 0.0
                add_potential(side, function, t, moments, boxed.place, tables, potential[function, t])
    for k in range(first, end):
        for function in range(2):
            total = 0.0
            here = potential[function, boxed.box[k]]
            for a in range(NODES):
                total += boxed.share[k, a] * here[a]
            out[2 * side + function, k] += total
    for k in range(first, end):
        seen[boxed.box[k]] = False
        for a in range(NODES):
            moments[boxed.box[k], a] += boxed.share[k, a]


@kernel()
def boxed_sums(boxed, tables, moments, seen, potential, out):  # type: ignore[no-untyped-def]
    """For every row: both functions summed over its pairs with worse rows, then over those with better ones.

    Each is times the weights of both rows.
    """
    # IN: boxed, tables  OUT: moments, seen, potential (scratch), out
    out[:] = 0.0
    n_groups = len(boxed.groups) - 1
    moments[:] = 0.0
    seen[:] = False
    for g in range(n_groups - 1, -1, -1):
        meet_group(np.int64(0), g, boxed, moments, tables, seen, potential, out)
    moments[:] = 0.0
    for g in range(n_groups):
        meet_group(np.int64(1), g, boxed, moments, tables, seen, potential, out)
    for g in range(n_groups):
        end = boxed.groups[g + 1]
        if boxed.level[boxed.groups[g]] == boxed.level[end - 1]:
            continue  # one grade, however large: no pairs
        for i in range(boxed.groups[g], end):
            for j in range(i + 1, end):
                if boxed.level[i] != boxed.level[j]:
                    first, second = of_pair(tables.kind, boxed.score[i] - boxed.score[j])
                    weight = boxed.weight[i] * boxed.weight[j]
                    out[0, i] += weight * first
                    out[1, i] += weight * second
                    out[2, j] += weight * first
                    out[3, j] += weight * second
    # Interpolation may leave a digit below nothing.
    for side in range(4):
        for k in range(out.shape[1]):
            out[side, k] = max(out[side, k], 0.0)


def pair_sums(boxed: Boxed, tables: Tables) -> FloatArray:
    """Return `boxed_sums` of a query laid out, 4 x rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.boxes import LOGISTIC, lay_out, pair_sums, pair_tables
    >>> order, tables = np.array([1, 0], dtype=np.int32), pair_tables(LOGISTIC)
    >>> boxed = lay_out(order, np.array([0.0, 1.0]), np.array([3.0, 3.0]), None, tables)
    >>> pair_sums(boxed, tables).tolist()
    [[0.5, 0.0], [0.25, 0.0], [0.0, 0.5], [0.0, 0.25]]
    """
    count = len(boxed.place)
    out = np.empty((4, len(boxed.score)))
    moments, potential = np.empty((count, NODES)), np.empty((2, count, NODES))
    boxed_sums(boxed, tables, moments, np.empty(count, dtype=np.bool_), potential, out)
    return out
