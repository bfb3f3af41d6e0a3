"""Words of the smaller children of five roots: fifteen sums in four 64-bit words, which one vector add takes.

As at the roots (`mcrank.boosting.five`), but rows are counted too. Gradients and curvatures that are rounded
to share a counter have 14 and 12 bits, so the sums of 255 rows of a bin fit like this, the lowest bits to the
right:

| word | fields |
|---|---|
| 0 | gradient of output 0, gradient of output 1 (22 bits), curvature of output 0 (20 bits) |
| 1 | gradient of output 2, gradient of output 3 (22 bits), curvature of output 1 (20 bits) |
| 2 | gradient of output 4, curvature of output 3 (21 bits), of output 2 (21 bits) |
| 3 | curvature of output 4, rows of outputs 4, 3, 2, 1 and 0 (8 bits each) |
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint8, uint64

from mcrank.boosting.five import OUTPUTS
from mcrank.boosting.packing import narrow
from mcrank.kernels import step

MOST = 255  # rows of a bin that fit
PIECE = 248  # rows of a chunk that fit whatever their bins
_SUMS = 3  # of an output


@njit(inline="always")
def bounds_of(cut):  # type: ignore[no-untyped-def]
    """Lowest and highest bin of a cut (`mcrank.boosting.first_children`), and whether rows with these are in
    the child.
    """
    return uint8(cut[2]), uint8(cut[3]), cut[4] == 1


@njit(inline="always")
def in_child(column, bounds, i):  # type: ignore[no-untyped-def]
    """Whether a row is in the child."""
    low, high, inside = bounds
    return ((column[i] >= low) & (column[i] <= high)) == inside


@step()
def fill_five(q, columns, span, cuts, packing, words):  # type: ignore[no-untyped-def]
    """Words of rows ``span[0]`` up to ``span[1]``."""
    # IN: q, columns, span, cuts (of five outputs), packing  OUT: words
    # Written out, two outputs at a time: with what a row adds in a function of its own, or more arrays in a
    # loop, these do not run on vectors, and take five times as long.
    low, high = span
    w, x, y, z = words[0], words[1], words[2], words[3]
    n, none = uint64(high - low), int64(0)
    first, a, of_a = q[cuts[0, 0], low:high], columns[cuts[0, 1], low:high], bounds_of(cuts[0])
    second, b, of_b = q[cuts[1, 0], low:high], columns[cuts[1, 1], low:high], bounds_of(cuts[1])
    for i in range(n):
        r, h = narrow(first[i], packing)
        s, g = narrow(second[i], packing)
        mine, other = in_child(a, of_a, i), in_child(b, of_b, i)
        r, h, s, g = r if mine else none, h if mine else none, s if other else none, g if other else none
        w[i] = (((r << int64(22)) + s) << int64(20)) + h
        x[i] = g
        z[i] = int64(mine) + (int64(other) << int64(8))
    first, a, of_a = q[cuts[2, 0], low:high], columns[cuts[2, 1], low:high], bounds_of(cuts[2])
    second, b, of_b = q[cuts[3, 0], low:high], columns[cuts[3, 1], low:high], bounds_of(cuts[3])
    for i in range(n):
        r, h = narrow(first[i], packing)
        s, g = narrow(second[i], packing)
        mine, other = in_child(a, of_a, i), in_child(b, of_b, i)
        r, h, s, g = r if mine else none, h if mine else none, s if other else none, g if other else none
        x[i] += ((r << int64(22)) + s) << int64(20)
        y[i] = h + (g << int64(21))
        z[i] += (int64(mine) << int64(16)) + (int64(other) << int64(24))
    first, a, of_a = q[cuts[4, 0], low:high], columns[cuts[4, 1], low:high], bounds_of(cuts[4])
    for i in range(n):
        r, h = narrow(first[i], packing)
        mine = in_child(a, of_a, i)
        r, h = r if mine else none, h if mine else none
        y[i] += r << int64(42)
        z[i] += (int64(mine) << int64(32)) + (h << int64(40))


@step()
def spread_five(sums, turn, packing, hists):  # type: ignore[no-untyped-def]
    """Add the fields of the counters of some features to the histograms, and zero them."""
    # IN: turn, packing  OUT: sums, hists
    lanes = packing.lanes
    shared = packing.count_bits > 0
    fields = np.empty(_SUMS * OUTPUTS, np.int64)
    for f in range(turn[0], turn[1]):
        counters = sums[f]
        for b in range(256):
            _take_apart(counters[4 * b : 4 * b + 4], fields)
            at = (256 * f + b) * lanes
            for k in range(OUTPUTS):
                rows = fields[_SUMS * k + 2]
                hists[k, at] += (fields[_SUMS * k] << packing.count_bits) + (rows if shared else int64(0))
                hists[k, at + 1] += fields[_SUMS * k + 1]
                if not shared:
                    hists[k, at + lanes - 1] += rows
        counters[:] = 0


@njit(inline="always")
def _take_apart(words, fields):  # type: ignore[no-untyped-def]
    """What four words sum to: gradient, curvature and rows of every output."""
    w, x, y, z = words[0], words[1], words[2], words[3]
    short, long, row = (int64(1) << int64(20)) - 1, (int64(1) << int64(21)) - 1, int64(255)
    both, other = w >> int64(20), x >> int64(20)
    # The lower of two signed fields has taken a bit off the upper one where it is negative.
    g1, g3 = (both << int64(42)) >> int64(42), (other << int64(42)) >> int64(42)
    fields[0], fields[1], fields[2] = (both - g1) >> int64(22), w & short, z & row
    fields[3], fields[4], fields[5] = g1, x & short, (z >> int64(8)) & row
    fields[6], fields[7], fields[8] = (other - g3) >> int64(22), y & long, (z >> int64(16)) & row
    fields[9], fields[10], fields[11] = g3, (y >> int64(21)) & long, (z >> int64(24)) & row
    fields[12], fields[13], fields[14] = y >> int64(42), z >> int64(40), (z >> int64(32)) & row
