"""The best split of a node, from its histogram.

The paper's criterion is the drop in squared error of a least-squares fit, ``S_L²/n_L + S_R²/n_R - S²/n``
with ``S`` the sum of gradients; with a second lane ``n`` gives way to the sum of that lane (curvatures:
the robust LogitBoost gain; row weights: weighted least squares). Sums are exact integers; only the gain is
a float, so equal histograms give equal splits. Ties go to the lowest feature, then the lowest bin.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mcrank.boosting.packing import counted
from mcrank.kernels import step

# One record per node while its tree grows, the same wherever its rows lie: `total`, `weight` and `count` are
# the sums of gradients and of the second lane over the node's rows, and their number; `left_*` those of its
# best split's left side. `gain` is 0 when no split is worth making; `terms` is the gain before the node's own
# S²/n is taken off: what two splits of one node are compared by. `slot` is where its histogram is.
_FIELDS = np.dtype(
    [
        ("total", np.int64),
        ("weight", np.int64),
        ("count", np.int64),
        ("left_total", np.int64),
        ("left_weight", np.int64),
        ("left_count", np.int64),
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
# Two of them fill whole cache lines: threads that write neighbours do not wait for each other.
NODE = np.dtype(
    {
        "names": list(_FIELDS.names or ()),
        "formats": [_FIELDS[name] for name in _FIELDS.names or ()],
        "itemsize": 96,
    },
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
def _prefix(hist, low, high, packing, first, sums, masses, rows):  # type: ignore[no-untyped-def]
    """Prefix sums over bins ``low`` up to ``high``, as floats, starting from ``first`` (three sums)."""
    total, mass, count = first
    lanes = packing.lanes
    if packing.count_bits > 0:
        mask = (np.int64(1) << packing.count_bits) - 1
        packed = (total << packing.count_bits) + count
        for b in range(low, high):
            packed += hist[b * lanes]
            i = b - low
            rows[i] = packed & mask
            sums[i] = packed >> packing.count_bits
            if lanes == 2:
                mass += hist[b * 2 + 1]
                masses[i] = mass
            else:
                masses[i] = rows[i]
        return
    for b in range(low, high):
        i = b - low
        total += hist[b * lanes]
        count += hist[b * lanes + lanes - 1]
        sums[i] = total
        rows[i] = count
        if packing.second:
            mass += hist[b * lanes + 1]
            masses[i] = mass
        else:
            masses[i] = count


@njit(inline="always")
def bin_sums(hist, at, packing):  # type: ignore[no-untyped-def]
    """Sum of gradients, of the second lane, and number of rows of a bin; ``at`` is its first lane's place."""
    second = hist[at + 1] if packing.second else np.int64(0)
    if packing.count_bits > 0:
        mask = (np.int64(1) << packing.count_bits) - 1
        return hist[at] >> packing.count_bits, second, hist[at] & mask
    return hist[at], second, hist[at + packing.lanes - 1]


@step(error_model="numpy")
def best_split(hist, grounds, features, first, last, rules, work, node):  # type: ignore[no-untyped-def]
    """Put the best split over ``features[first:last]`` into the record ``node``.

    ``work`` has four rows of scratch as long as the longest feature.
    """
    # IN: all but node (its total, weight and count are read)  OUT: node's gain, feature, bin, missing_left,
    # left sums
    packing = rules.packing
    bin_start, n_bins, missing = grounds.bin_start, grounds.n_bins, grounds.missing
    count = float(node.count)
    total = float(node.total)
    mass = float(node.weight) if packing.second else count
    sums = work[0]
    masses = work[1]
    rows = work[2]
    gains = work[3]
    none = (np.int64(0), np.int64(0), np.int64(0))
    own = total * total / mass if mass > 0 else 0.0
    best = own * (1 + _NOISE)
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    for j in range(first, last):
        f = features[j]
        start = bin_start[f] + missing[f]
        stop = bin_start[f] + n_bins[f]
        gone = bin_sums(hist, bin_start[f] * packing.lanes, packing) if missing[f] else none
        some_missing = gone[2] != 0
        # Missing rows on the right first; there a cut after the last bin parts known from missing.
        for side in range(2 if some_missing else 1):
            n = stop - start - (0 if some_missing and side == 0 else 1)
            if n <= 0:
                continue
            _prefix(hist, start, start + n, packing, gone if side == 1 else none, sums, masses, rows)
            _fill_gains(sums, masses, rows, n, total, mass, count, rules.min_rows, gains)
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
                # Missing values never seen here follow the larger side.
                node.missing_left = side if some_missing else np.int32(2 * rows[cut] >= count)
    if node.feature >= 0:
        _sum_left(hist, grounds, packing, node)
        _centre_cut(hist, grounds, packing, node)


@njit(inline="always")
def _sum_left(hist, grounds, packing, node):  # type: ignore[no-untyped-def]
    """Sums of the left side, in integers again: floats hold no more than 53 bits of them."""
    f = node.feature
    node.left_total = 0
    node.left_weight = 0
    node.left_count = 0
    for b in range(node.bin + 1):
        if b > 0 or not grounds.missing[f] or node.missing_left:
            total, weight, count = bin_sums(hist, (grounds.bin_start[f] + b) * packing.lanes, packing)
            node.left_total += total
            node.left_weight += weight
            node.left_count += count


@njit(inline="always")
def _centre_cut(hist, grounds, packing, node):  # type: ignore[no-untyped-def]
    """Move the cut to the middle of the raw gap when bins after it hold no row of this node."""
    f = node.feature
    base = grounds.bin_start[f]
    following = node.bin + 1
    while following < grounds.n_bins[f] and counted(hist, (base + following) * packing.lanes, packing) == 0:
        following += 1
    if following == grounds.n_bins[f]:
        node.bin = grounds.n_bins[f] - 1  # known values left, missing ones right
        return
    at = grounds.value_start[f] - grounds.missing[f]
    middle = (np.float64(grounds.highest[at + node.bin]) + np.float64(grounds.lowest[at + following])) / 2
    while node.bin + 1 < following and np.float64(grounds.highest[at + node.bin + 1]) <= middle:
        node.bin += 1
