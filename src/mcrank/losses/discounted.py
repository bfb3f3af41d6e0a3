"""Lambda gradients of sums over ranks (NDCG, DCG, precision), the quick way: rows stay in file order.

Every row gets the discount of its rank, 0 beyond the depth of the measure. For a row i within the first ranks
and any other row j of the query, (worth_i - worth_j) max(discount_i - discount_j, 0) is then the change of
the measure when the two swap, with its sign, and 0 where j stands above i: going through all rows j for each
row i of the first ranks meets every pair once, and nothing has to be sorted, gathered or put back. Pairs are
weighed eight at a time (`mcrank.kernels.lambda_block.lambda_blocks`) and summed in a fixed order.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from mcrank.kernels import kernel
from mcrank.kernels.exp import exp_negative
from mcrank.kernels.lambda_block import LAMBDA_LANES, lambda_blocks, lambda_blocks_norm
from mcrank.losses.pairs import WIDEST, first_ranks

NEAR = 0.01  # added to the distance of two scores by which ``norm`` divides, as LightGBM does


@kernel()
def fill_discounted(measure, scores, queries, given, space, slopes, curves, far):  # type: ignore[no-untyped-def]
    """Lambdas and their curvatures of some queries, as `lambda_query` has them but for rounding; given are
    sigma and ``norm``.

    Discounts must not rise. Queries whose scores lie too far apart for powers are left out: they are put into
    ``far``, which has room for all, and counted. (A kernel that made ``far`` itself would count references,
    .7 us a query: more than a short one takes.)
    """
    # IN: measure, scores, queries, given  OUT: space, slopes, curves, far; returns how many are far
    sigma, norm = given
    found = 0
    for q in queries:
        low, high = np.inf, -np.inf
        for i in range(measure.starts[q], measure.ends[q]):
            low = min(low, scores[i])
            high = max(high, scores[i])
            slopes[i] = 0.0
            curves[i] = 0.0
        if sigma * (high - low) > WIDEST:
            far[found] = q
            found += 1
        elif measure.norm[q] != 0.0 and measure.ends[q] - measure.starts[q] > 1:
            near = 0.0 if not norm else NEAR if high > low else 1.0
            discounted_query(measure, q, scores, (high, sigma, near), space, slopes, curves)
    return found


@njit(inline="always")
def discounted_query(measure, q, scores, given, space, slopes, curves):  # type: ignore[no-untyped-def]
    """Lambdas and their curvatures of one query; given are its highest score, sigma, and what ``norm`` adds
    to distances: 0 for no ``norm``, 1 where all distances are 0 and nothing is to be divided.
    """
    # IN: measure, q, scores, given  OUT: space, slopes, curves
    high, sigma, near = given
    start, n = uint64(measure.starts[q]), uint64(measure.ends[q] - measure.starts[q])
    scores = scores[start : start + n]
    used = space.used[:n]
    for i in range(n):
        used[i] = np.float64(np.float32(scores[i])) if measure.single else scores[i]
    base = measure.base[start : start + n] if len(measure.base) > 0 else measure.base
    first_ranks(used, base, min(measure.depth, np.int64(n)), space)
    lay_out(measure, start, scores, high, sigma, space)
    rows = (space.worth, space.change, space.power, space.slope, space.curve)
    scored = (space.worth, space.change, space.power, space.slope, space.curve, space.score)
    lane, total = space.lane, 0.0
    for r in range(min(measure.top, np.int64(n) - 1)):
        i = uint64(space.order[r])
        own = (space.worth[i], space.change[i], space.power[i])
        if near > 0.0:
            both = (space.worth[i], space.change[i], space.power[i], space.score[i], near)
            lambda_blocks_norm(scored, both, n, lane)
            total += fold(lane, 2 * LAMBDA_LANES)
        else:
            lambda_blocks(rows, own, n, lane)
        space.slope[i] += fold(lane, 0)
        space.curve[i] += fold(lane, LAMBDA_LANES)
    factor = measure.norm[q] * sigma
    total *= 2.0 * factor
    factor *= np.log2(1.0 + total) / total if total > 0.0 else 1.0
    for i in range(n):
        slopes[start + i] = factor * space.slope[i]
    for i in range(n):
        curves[start + i] = factor * sigma * space.curve[i]


@njit(inline="always")
def lay_out(measure, start, scores, high, sigma, space):  # type: ignore[no-untyped-def]
    """Lay out worth, discount and power of a query's rows, and clear their sums.

    Rows that fill up the last vector have an endless discount: they stand above everyone.
    """
    # IN: measure, start, scores (of the query), high, sigma, space.order
    # OUT: space.worth, change (discounts), power, score, slope, curve
    worth, discount, power, score = space.worth, space.change, space.power, space.score
    n = uint64(len(scores))
    for i in range(n):
        worth[i] = measure.worth[start + i]
    for i in range(n):
        power[i] = exp_negative(sigma * (scores[i] - high))
    for i in range(n):
        discount[i] = 0.0
        score[i] = scores[i]
    whole = (n + uint64(LAMBDA_LANES - 1)) // uint64(LAMBDA_LANES) * uint64(LAMBDA_LANES)
    for i in range(n, whole):
        worth[i] = 0.0
        discount[i] = np.inf
        power[i] = 1.0
        score[i] = 0.0
    for r in range(min(measure.depth, np.int64(n))):
        discount[uint64(space.order[r])] = measure.discount[r]
    for i in range(whole):
        space.slope[i] = 0.0
        space.curve[i] = 0.0


@njit(inline="always")
def fold(lanes, at):  # type: ignore[no-untyped-def]
    """Sum of eight numbers from ``at`` on, in a fixed order."""
    even = (lanes[at] + lanes[at + 4]) + (lanes[at + 2] + lanes[at + 6])
    return even + ((lanes[at + 1] + lanes[at + 5]) + (lanes[at + 3] + lanes[at + 7]))
