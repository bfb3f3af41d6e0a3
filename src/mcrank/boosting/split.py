"""The best split of a node, from its histogram.

The paper's criterion is the drop in squared error of a least-squares fit, ``S_L²/n_L + S_R²/n_R - S²/n``
with ``S`` the sum of gradients; with a second lane ``n`` gives way to the sum of that lane (curvatures:
the robust LogitBoost gain; row weights: weighted least squares). Sums are exact integers; only the gain is
a float, so equal histograms give equal splits. Ties go to the lowest feature, then the lowest bin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mcrank.kernels import step

# One record per node while its tree grows. Its entries are `begin` up to `end`, and as many from `other` on
# are room of its own (`mcrank.boosting.partition`). `total` and `weight` are the sums of the two lanes over
# the node's rows and `left_*` those of its best split's left side. `gain` is 0 when no split is worth making;
# `terms` is the gain before the node's own S²/n is taken off: what two splits of one node are compared by.
NODE = np.dtype(
    [
        ("begin", np.int64),
        ("end", np.int64),
        ("other", np.int64),
        ("total", np.int64),
        ("weight", np.int64),
        ("left_total", np.int64),
        ("left_weight", np.int64),
        ("gain", np.float64),
        ("terms", np.float64),
        ("slot", np.int32),
        ("feature", np.int32),
        ("bin", np.int32),
        ("missing_left", np.int32),
        ("left", np.int32),
        ("right", np.int32),
    ],
    align=True,
)

# Gains below this share of the node's own S²/n are rounding, not signal.
_NOISE = 1e-12


@step(error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def _largest(gains, n):  # type: ignore[no-untyped-def]
    """Largest of the first ``n`` gains; they are never NaN, which lets the loop run on vectors."""
    best = -1.0
    for i in range(n):
        best = max(best, gains[i])
    return best


@step(error_model="numpy")
def _fill_gains(sums, masses, rows, n, total, mass, count, min_rows, gains):  # type: ignore[no-untyped-def]
    """Gain terms of cutting after each of ``n`` bins, from prefix sums; -1 where a side is too small."""
    for i in range(n):
        left = masses[i]
        right = mass - left
        rest = total - sums[i]
        good = (rows[i] >= min_rows) & (count - rows[i] >= min_rows) & (left > 0) & (right > 0)
        left = left if good else 1.0
        right = right if good else 1.0
        gain = sums[i] * sums[i] / left + rest * rest / right
        gains[i] = gain if good else -1.0


@step()
def _prefix(hist, low, high, lanes, count_bits, packed, second, sums, masses, rows):  # type: ignore[no-untyped-def]
    """Prefix sums over bins ``low`` up to ``high``, starting from ``packed`` and ``second``, as floats."""
    mask = (np.int64(1) << count_bits) - 1
    for b in range(low, high):
        packed += hist[b * lanes]
        i = b - low
        rows[i] = packed & mask
        sums[i] = packed >> count_bits
        if lanes == 2:
            second += hist[b * 2 + 1]
            masses[i] = second
        else:
            masses[i] = rows[i]


@step(error_model="numpy")
def best_split(  # type: ignore[no-untyped-def]
    hist, bin_start, n_bins, missing, features, first, last, lowest, highest, value_start,
    lanes, count_bits, min_rows, work, node,
):  # fmt: skip
    """Put the best split over ``features[first:last]`` into the record ``node``.

    ``work`` has four rows of scratch as long as the longest feature.
    """
    # IN: all but node (its total and weight are read)  OUT: node's gain, feature, bin, missing_left, left
    # sums
    mask = (np.int64(1) << count_bits) - 1
    count = float(node.total & mask)
    total = float(node.total >> count_bits)
    mass = float(node.weight) if lanes == 2 else count
    sums = work[0]
    masses = work[1]
    rows = work[2]
    gains = work[3]
    own = total * total / mass if mass > 0 else 0.0
    best = own * (1 + _NOISE)
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    for j in range(first, last):
        f = features[j]
        start = bin_start[f] + missing[f]
        stop = bin_start[f] + n_bins[f]
        gone = hist[bin_start[f] * lanes] if missing[f] else np.int64(0)
        gone_mass = hist[bin_start[f] * lanes + 1] if missing[f] and lanes == 2 else np.int64(0)
        some_missing = gone & mask != 0
        # Missing rows on the right first; there a cut after the last bin parts known from missing.
        for side in range(2 if some_missing else 1):
            n = stop - start - (0 if some_missing and side == 0 else 1)
            if n <= 0:
                continue
            _prefix(
                hist, start, start + n, lanes, count_bits,
                gone if side == 1 else np.int64(0), gone_mass if side == 1 else np.int64(0), sums, masses,
                rows,
            )  # fmt: skip
            _fill_gains(sums, masses, rows, n, total, mass, count, min_rows, gains)
            found = _largest(gains, n)
            if found > best:
                best = found
                cut = 0
                while gains[cut] != found:
                    cut += 1
                node.gain = found - own
                node.terms = found
                node.feature = f
                node.bin = start - bin_start[f] + cut
                node.left_total = (np.int64(sums[cut]) << count_bits) + np.int64(rows[cut])
                node.left_weight = np.int64(masses[cut]) if lanes == 2 else np.int64(0)
                # Missing values never seen here follow the larger side.
                node.missing_left = side if some_missing else np.int32(2 * rows[cut] >= count)
    if node.feature >= 0:
        _centre_cut(hist, bin_start, n_bins, missing, lowest, highest, value_start, lanes, mask, node)


@njit(inline="always")
def _centre_cut(hist, bin_start, n_bins, missing, lowest, highest, value_start, lanes, mask, node):  # type: ignore[no-untyped-def]
    """Move the cut to the middle of the raw gap when bins after it hold no row of this node."""
    f = node.feature
    base = bin_start[f]
    following = node.bin + 1
    while following < n_bins[f] and hist[(base + following) * lanes] & mask == 0:
        following += 1
    if following == n_bins[f]:
        node.bin = n_bins[f] - 1  # known values left, missing ones right
        return
    at = value_start[f] - missing[f]
    middle = (np.float64(highest[at + node.bin]) + np.float64(lowest[at + following])) / 2
    while node.bin + 1 < following and np.float64(highest[at + node.bin + 1]) <= middle:
        node.bin += 1
