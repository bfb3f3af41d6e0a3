"""Features of categories: their bins, and the best set of them to send left.

A set is found as LightGBM finds it. Of few categories one stands against the rest. Of many, those with
enough rows are put in order by S / (M + smooth), S the sum of their gradients and M their mass, and the first
ones of that order, from either end, go left. Sums are exact integers and equals stay in the order of their
bins, which is that of their names, so the set does not hang on how categories are numbered elsewhere. Missing
values are tried on both sides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from mcrank.boosting.cuts import ValueBins
from mcrank.boosting.limits import NOISE, lot, penalised
from mcrank.boosting.packing import bin_sums
from mcrank.kernels import step
from mcrank.sums import Sums

MOST_BINS = 256  # a split is a set of so many bins


def category_bins(
    column: npt.NDArray[np.float32], codes: int, missing: bool, max_bins: int, sums: Sums
) -> tuple[npt.NDArray[np.uint8], ValueBins]:
    """Return the value bin of each of so many codes, and the bins: of more categories than fit, the most
    frequent have their own (of equals those of the lower codes), and the last is that of all others.
    """
    counts = sums.add(np.bincount(column[~np.isnan(column)].astype(np.int64), minlength=codes))
    room = min(max_bins, MOST_BINS) - missing
    bins = np.arange(codes)
    if codes > room:
        own = np.sort(np.argsort(-counts, kind="stable")[: room - 1])
        bins = np.full(codes, len(own))
        bins[own] = np.arange(len(own))
    values = np.arange(max(1, int(bins.max(initial=0)) + 1), dtype=np.float32)
    return bins.astype(np.uint8), (values, values, missing)


def category_column(
    column: npt.NDArray[np.float32], bins: npt.NDArray[np.uint8], missing: int
) -> npt.NDArray[np.uint8]:
    """Return the bins of a column of codes."""
    table = np.concatenate([[0], bins.astype(np.int64) + missing]).astype(np.uint8)
    return table[np.where(np.isnan(column), -1, column).astype(np.int64) + 1]


class Ground(NamedTuple):
    """A node's rows by categories: what is the same for every set tried.

    ``used`` bins may go left, all of them (``few``) one at a time; ``gone`` and ``whole`` are gradients, mass
    and rows of missing values and of the node. Sets must have terms above ``least``; ``own`` are the node's
    own, beyond which a set counts ``weight`` times. ``l2`` is added to masses, and outputs are held in
    ``bounds``.
    """

    feature: Any
    shift: Any
    used: Any
    few: bool
    gone: Any
    whole: Any
    own: float
    least: float
    weight: float
    l2: float
    bounds: tuple[float, float]


@njit(inline="always")
def _terms(ground, left, rules, limits):  # type: ignore[no-untyped-def]
    """What a split with ``left`` (gradients, mass, rows) is worth; -1 where it is refused."""
    whole, bounds = ground.whole, ground.bounds
    right = (whole[0] - left[0], whole[1] - left[1], whole[2] - left[2])
    if left[2] < rules.min_rows or right[2] < rules.min_rows or left[1] <= 0 or right[1] <= 0:
        return -1.0
    mass, other = float(left[1]), float(right[1])
    if mass < limits.min_mass or other < limits.min_mass:
        return -1.0
    here, there = penalised(float(left[0]), limits.l1), penalised(float(right[0]), limits.l1)
    mass, other = mass + ground.l2, other + ground.l2
    terms = here * here / mass + there * there / other
    if limits.bounds.shape[0] > 0:
        a, b = min(max(here / mass, bounds[0]), bounds[1]), min(max(there / other, bounds[0]), bounds[1])
        terms = 2 * here * a - mass * a * a + 2 * there * b - other * b * b
    return ground.own + ground.weight * (terms - ground.own) if terms > ground.least else -1.0


@njit(inline="always")
def _plus(a, b):  # type: ignore[no-untyped-def]
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@step()
def _sort(keys, n, order):  # type: ignore[no-untyped-def]
    """Put the bins ``order[0, :n]`` in rising order of their keys, equals as they are: a merge sort."""
    # IN: keys (by bin), n  OUT: order (the first row)
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for to in range(low, high):
                later = j < high and (i >= middle or keys[order[0, j]] < keys[order[0, i]])
                order[1, to] = order[0, j] if later else order[0, i]
                j += later
                i += not later
        for i in range(n):  # one by one: Numba's assignment of arrays brings code for messages with it
            order[0, i] = order[1, i]
        width *= 2


@step(error_model="numpy")
def _fill_order(hist, start, n, few, packing, subsets, scratch):  # type: ignore[no-untyped-def]
    """Sums of each of ``n`` bins from ``start`` on, and those that may go left, in order; return how many."""
    # IN: hist, start, n, few, packing, subsets  OUT: scratch (sums, gains, order)
    sums, keys, order = scratch.sums, scratch.gains, scratch.order
    used = 0
    for b in range(n):
        total, weight, rows = bin_sums(hist, (start + b) * packing.lanes, packing)
        mass = weight if packing.second else rows
        sums[0, b], sums[1, b], sums[2, b] = total, mass, rows
        if rows > 0 and (few or rows >= subsets.rows):
            keys[b] = float(total) / (float(mass) + subsets.smooth)
            order[0, used] = b
            used += 1
    if not few:
        _sort(keys, used, order)
    return used


@step(shared=True, error_model="numpy")
def best_subset(hist, binned, f, rules, limits, scratch, node, found):  # type: ignore[no-untyped-def]
    """Put the best set of a feature of categories into the record ``node``, if it is better than the best of
    ``found`` (the node's own terms, and the best so far); return the best so far.
    """
    # IN: all but node  OUT: scratch, node's gain, feature, left_bins, missing_left
    packing, subsets = rules.packing, limits.subsets
    own, best = found
    shift = np.int64(binned.missing[f])
    start, n = binned.bin_start[f] + shift, binned.n_bins[f] - shift
    few = n <= subsets.onehot
    used = _fill_order(hist, start, n, few, packing, subsets, scratch)
    gone = (np.int64(0), np.int64(0), np.int64(0))
    if shift == 1:
        total, weight, rows = bin_sums(hist, binned.bin_start[f] * packing.lanes, packing)
        gone = (total, weight if packing.second else rows, rows)
    whole = (node.total, node.weight if packing.second else node.count, node.count)
    bounds = (-np.inf, np.inf)
    if limits.bounds.shape[0] > 0:
        bounds = (limits.bounds[node.number, 0], limits.bounds[node.number, 1])
    factor = limits.weights[f] if limits.weights.shape[0] > 0 else 1.0
    least, l2 = own * (1 + NOISE) + limits.min_gain, limits.l2 + (0.0 if few else subsets.l2)
    ground = Ground(np.int64(f), shift, used, few, gone, whole, own, least, factor, l2, bounds)
    for side in range(2 if gone[2] > 0 else 1):
        if side == 1 and not limits.extra:  # the missing ones alone
            best = _try(ground, gone, (0, 0, 0, side), rules, limits, scratch, node, best)
        for end in range(1 if few else 2):
            best = _scan(ground, side, end, rules, limits, scratch, node, best)
    return best


@njit(inline="always")
def _scan(ground, side, end, rules, limits, scratch, node, best):  # type: ignore[no-untyped-def]
    """Try the sets of the first categories from one end of the order, or of single ones; return the best."""
    few, used, subsets = ground.few, ground.used, limits.subsets
    most = used if few else min(subsets.most, (used + 1) // 2)
    drawn = np.int64(-1)
    if limits.extra:
        ticket = lot(limits.salts[1], node.number, ground.feature)
        drawn = np.int64(ticket % uint64(max(most, 1)))
        if not few and end != np.int64((ticket >> uint64(32)) & uint64(1)):
            return best
    none = (np.int64(0), np.int64(0), np.int64(0))
    begin = ground.gone if side == 1 else none
    left, group = begin, np.int64(0)
    for i in range(most):
        b = scratch.order[0, i if end == 0 else used - 1 - i]
        added = (scratch.sums[0, b], scratch.sums[1, b], scratch.sums[2, b])
        left = _plus(begin, added) if few else _plus(left, added)
        group += added[2]
        if drawn >= 0 and i != drawn:
            continue
        if not few and drawn < 0:
            # There are rows of a whole group between two sets tried, and on the other side of the last.
            if left[2] < rules.min_rows or float(left[1]) < limits.min_mass:
                continue
            if ground.whole[2] - left[2] < max(rules.min_rows, subsets.group):
                break
            if group < subsets.group:
                continue
            group = np.int64(0)
        at = (i, i + 1, 0, side) if few else (0, i + 1, used if end == 1 else 0, side)
        best = _try(ground, left, at, rules, limits, scratch, node, best)
    return best


@step()
def _try(ground, left, at, rules, limits, scratch, node, best):  # type: ignore[no-untyped-def]
    """Write a set into a record if it is better than the best so far; return what is.

    It has bins ``at[0]`` up to ``at[1]`` of the order, counted from place ``at[2]`` backwards unless that is
    0, and the missing values if ``at[3]`` is 1.
    """
    terms = _terms(ground, left, rules, limits)
    if not terms > best:
        return best
    node.gain, node.terms = terms - ground.own, terms
    node.feature = ground.feature
    node.bin = 0
    for word in range(4):
        node.left_bins[word] = uint64(0)
    for i in range(at[0], at[1]):
        b = uint64(scratch.order[0, i if at[2] == 0 else at[2] - 1 - i] + ground.shift)
        node.left_bins[b >> uint64(6)] |= uint64(1) << (b & uint64(63))
    # Missing values never seen here follow the larger side.
    node.missing_left = at[3] if ground.gone[2] > 0 else np.int64(2 * left[2] >= ground.whole[2])
    if ground.shift == 1 and node.missing_left == 1:
        node.left_bins[0] |= uint64(1)
    return terms


@step()
def is_category(categorical, feature):  # type: ignore[no-untyped-def]
    """Whether a feature has categories; where none has it is known when kernels are compiled."""
    if categorical is None:
        return False
    return categorical[feature] != 0


@step()
def sum_subset(categorical, hist, binned, packing, node):  # type: ignore[no-untyped-def]
    """Sums of the left side of a split by a set of bins; ``categorical`` are the features that have any."""
    # IN: categorical, hist, binned, packing  OUT: node
    if categorical is None:
        return
    node.left_total = 0
    node.left_weight = 0
    node.left_count = 0
    start = binned.bin_start[node.feature]
    for b in range(binned.n_bins[node.feature]):
        if (node.left_bins[b >> 6] >> uint64(b & 63)) & uint64(1):
            total, weight, count = bin_sums(hist, (start + b) * packing.lanes, packing)
            node.left_total += total
            node.left_weight += weight
            node.left_count += count
