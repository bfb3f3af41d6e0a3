"""Pairs of rows of one query: the compiled steps that pairwise and lambda losses share.

A pair is a better row i and a worse row j. With d = s_i - s_j its chance to stand the wrong way round is
1 / (1 + e^(sigma d)) = e_j / (e_i + e_j), where e = exp(sigma (s - highest)): one exponential a row and one
division a pair. Gradients are the direction in which a score should move (minus the derivative of the loss).
Sums run in a fixed order, so that they are the same to the last bit on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from mcrank.arrays import FloatArray, IntArray, RowArray
from mcrank.kernels import step
from mcrank.kernels.exp import exp_negative
from mcrank.kernels.lambda_block import LAMBDA_LANES
from mcrank.kernels.largest import (
    KEY_LANES,
    LOWEST,
    count_before,
    first_largest,
    largest_of,
    ordered_bits,
    take_first,
    whole_vectors,
)
from mcrank.kernels.memory import aligned
from mcrank.kernels.sort import merge_rows

_LANES = 16  # partial sums of a sum in fixed order: enough for any vector unit
_FEW = 32  # ranks up to which picking them out is quicker than sorting
_SHORT = 24  # rows up to which a rank is found quicker by counting who stands above
WIDEST = 700.0  # spread of sigma * score beyond which exp(sigma (s - highest)) leaves the range of a float


class Space(NamedTuple):
    """Scratch for the pairs of one query at a time, a thread each; made by `make_space`."""

    score: FloatArray  # in the order the pairs are worked on, as are the next six
    worth: FloatArray
    power: FloatArray
    change: FloatArray
    pair: FloatArray
    slope: FloatArray
    curve: FloatArray
    bend: FloatArray
    used: FloatArray
    key_a: FloatArray
    key_b: FloatArray
    lane: FloatArray
    key: IntArray  # scores as integers, and the highest of each eight of them
    highest: IntArray
    order: RowArray
    row_a: RowArray
    row_b: RowArray


def make_space(longest: int) -> Space:
    """Return scratch for queries of up to ``longest`` rows, with room for whole vectors.

    Examples
    --------
    >>> from mcrank.losses.pairs import make_space
    >>> make_space(100).pair.shape
    (104,)
    """
    n = -(-max(longest, 1) // LAMBDA_LANES) * LAMBDA_LANES
    reals, rows = aligned(11, n, dtype=np.float64), np.zeros((3, n), dtype=np.int32)
    return Space._make([*reals, np.zeros(max(_LANES, 3 * LAMBDA_LANES)), *aligned(2, n), *rows])


@step()
def sum_in_lanes(values, lane):  # type: ignore[no-untyped-def]
    """Sum in a fixed order that vector units can follow."""
    # IN: values  OUT: lane (scratch)
    n = len(values)
    for k in range(_LANES):
        lane[k] = 0.0
    whole = n - n % _LANES
    for low in range(0, whole, _LANES):
        block = values[low : low + _LANES]
        for k in range(_LANES):
            lane[k] += block[k]
    width = _LANES // 2
    while width > 0:
        for k in range(width):
            lane[k] += lane[k + width]
        width //= 2
    total = lane[0]
    rest = values[whole:]
    for k in range(len(rest)):
        total += rest[k]
    return total


@njit(inline="always")
def first_ranks(score, base, depth, space):  # type: ignore[no-untyped-def]
    """Put the places of the first ``depth`` ranks of a query first, in order; equal scores in base order."""
    # IN: score, base (empty: file order), depth  OUT: space.order, key, highest, key_*, row_*
    n, keys, order = uint64(len(score)), space.key, space.order
    if depth > _FEW:
        merge_rows(score, base, np.int64(0), np.int64(n), space, order)
        return
    for i in range(n):
        keys[i] = ordered_bits(score[uint64(base[i]) if len(base) > 0 else i])
    for i in range(n, whole_vectors(n)):
        keys[i] = LOWEST
    if n <= uint64(_SHORT):
        for i in range(n):
            rank = count_before(keys, i, n)
            if rank < uint64(depth):
                order[rank] = base[i] if len(base) > 0 else np.int32(i)
        return
    # As many times the largest of the highest keys of each eight, and of those eight.
    highest, blocks = space.highest, whole_vectors(n) // uint64(KEY_LANES)
    for b in range(blocks):
        highest[b] = largest_of(keys, b * uint64(KEY_LANES))
    for b in range(blocks, whole_vectors(blocks)):
        highest[b] = LOWEST
    for rank in range(depth):
        b = first_largest(highest, blocks)
        at = take_first(keys, b * uint64(KEY_LANES), highest[b])
        highest[b] = largest_of(keys, b * uint64(KEY_LANES))
        order[rank] = base[at] if len(base) > 0 else np.int32(at)


@njit(inline="always")
def rank_query(score, base, depth, space):  # type: ignore[no-untyped-def]
    """As `first_ranks`, with the places of the other rows behind them, in file order."""
    # IN: score, base (empty: file order), depth  OUT: space.order, key, highest, key_*, row_*
    n = len(score)
    first_ranks(score, base, depth, space)
    if depth > _FEW or depth == n:
        return
    order, taken = space.order[:n], space.row_a[:n]
    for i in range(n):
        taken[i] = 0
    for r in range(depth):
        taken[np.uint32(order[r])] = 1
    kept = depth
    for i in range(n):
        if taken[i] == 0:
            order[kept] = i
            kept += 1


@step()
def gather(order, scores, worth, sigma, space):  # type: ignore[no-untyped-def]
    """Lay a query's rows out in ``order`` and clear its sums; say whether its scores spread too far for
    powers.
    """
    # IN: order, scores, worth (of the query), sigma  OUT: space.score, worth, power, slope, curve
    n = len(order)
    score, value, power = space.score[:n], space.worth[:n], space.power[:n]
    slope, curve = space.slope[:n], space.curve[:n]
    highest = -np.inf
    lowest = np.inf
    for k in range(n):
        at = np.uint32(order[k])
        score[k] = scores[at]
        value[k] = worth[at]
        highest = max(highest, score[k])
        lowest = min(lowest, score[k])
        slope[k] = 0.0
        curve[k] = 0.0
    for k in range(n):
        power[k] = exp_negative(sigma * (score[k] - highest))
    return sigma * (highest - lowest) > WIDEST


@step()
def weigh_pairs(i, first, n, far, sigma, space):  # type: ignore[no-untyped-def]
    """Gradient and curvature of the pairs of place ``i`` with places ``first`` up to ``n``, each times its
    ``change``; sigma and sigma^2 are left to the end.
    """
    # IN: i, first, n, far, sigma, space.score, worth, power, change  OUT: space.pair (what i gains), bend
    own_power, own_worth, own_score = space.power[i], space.worth[i], space.score[i]
    change, worth = space.change[first:n], space.worth[first:n]
    pair, bend = space.pair[first:n], space.bend[first:n]
    if far:
        score = space.score[first:n]
        for j in range(len(pair)):
            lead = sigma * (own_score - score[j])
            lead = lead if own_worth > worth[j] else -lead
            small = exp_negative(-abs(lead))
            wrong = (small if lead > 0 else 1.0) / (1.0 + small)
            gain = change[j] * wrong
            pair[j] = gain if own_worth > worth[j] else -gain
            bend[j] = gain * (1.0 - wrong)
    else:
        power = space.power[first:n]
        for j in range(len(pair)):
            worse = power[j] if own_worth > worth[j] else own_power
            wrong = worse / (own_power + power[j])
            gain = change[j] * wrong
            pair[j] = gain if own_worth > worth[j] else -gain
            bend[j] = gain * (1.0 - wrong)


@step()
def add_pairs(i, first, n, space):  # type: ignore[no-untyped-def]
    """Add the pairs of place ``i`` with places ``first`` up to ``n`` to the sums of both rows."""
    # IN: i, first, n, space.pair, bend  OUT: space.slope, curve, lane
    pair, bend = space.pair[first:n], space.bend[first:n]
    slope, curve = space.slope[first:n], space.curve[first:n]
    for j in range(len(pair)):
        slope[j] -= pair[j]
    for j in range(len(pair)):
        curve[j] += bend[j]
    space.slope[i] += sum_in_lanes(pair, space.lane)
    space.curve[i] += sum_in_lanes(bend, space.lane)


@step()
def scatter(order, slope_factor, curve_factor, space, slopes, curves):  # type: ignore[no-untyped-def]
    """Put a query's sums back in the order of its rows."""
    # IN: order, factors, space.slope, curve  OUT: slopes, curves (of the query)
    for k in range(len(order)):
        at = np.uint32(order[k])
        slopes[at] = slope_factor * space.slope[k]
        curves[at] = curve_factor * space.curve[k]
