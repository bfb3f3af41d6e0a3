"""The best split of a node, from its histogram.

The paper's criterion is the drop in squared error of a least-squares fit, ``S_L²/n_L + S_R²/n_R - S²/n``
with ``S`` the sum of gradients; with a second lane ``n`` gives way to the sum of that lane (curvatures:
the robust LogitBoost gain; row weights: weighted least squares). Sums are exact integers; only the gain is
a float, so equal histograms give equal splits. Ties go to the lowest feature, then the lowest bin.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from mcrank.boosting.categories import best_subset, is_category, sum_subset
from mcrank.boosting.limits import NOISE, best_ruled, fill_ruled_gains, is_ruled, own_terms
from mcrank.boosting.packing import bin_sums, counted
from mcrank.boosting.wide import has_bits, prefix_used
from mcrank.kernels import step
from mcrank.kernels.memory import bits_to_float
from mcrank.kernels.running import SCANNED, scan_block, scan_pairs


@step()
def prefix(hist, low, high, packing, first, sums):  # type: ignore[no-untyped-def]
    """Prefix sums over bins ``low`` up to ``high``, from ``first`` (three sums) on, as their counters are.

    Rows of ``sums``: gradients (with the count below them, where they share a counter), second lane, counts.
    """
    words, masses, counts = sums[0], sums[1], sums[2]
    total, mass, count = first
    lanes, n = uint64(packing.lanes), uint64(high - low)
    word = (total << packing.count_bits) + (count if packing.count_bits > 0 else np.int64(0))
    if packing.top > 0:
        word = (total << packing.top) + (mass << packing.count_bits) + count
    at, i = uint64(low) * lanes, uint64(0)
    if lanes == uint64(1):
        while i + uint64(SCANNED) <= n:
            word = scan_block(hist, at + i, words, i, word)
            i += uint64(SCANNED)
    elif packing.second and packing.count_bits > 0:
        while i + uint64(SCANNED) <= n:
            word, mass = scan_pairs(hist, at + uint64(2) * i, (words, masses), i, (word, mass))
            i += uint64(SCANNED)
    while i < n:
        place = at + i * lanes
        word += hist[place]
        words[i] = word
        if packing.second and packing.top == 0:
            mass += hist[place + uint64(1)]
            masses[i] = mass
        if packing.count_bits == 0:
            count += hist[place + lanes - uint64(1)]
            counts[i] = count
        i += uint64(1)


@njit(inline="always")
def _lanes(sums, packing):  # type: ignore[no-untyped-def]
    """Prefix sums by lane: each an array, and what of its words is this lane's. One loop then does for all
    layouts: where a lane is part of another it is cut out of it.
    """
    words, bits, shift = sums[0], packing.count_bits, np.int64(0)
    all_bits = np.int64(-1)
    mask = (np.int64(1) << bits) - 1 if bits > 0 else all_bits
    counts = words if bits > 0 else sums[2]
    masses, mass_mask = (sums[1], all_bits) if packing.second else (counts, mask)
    if packing.top > 0:
        masses, shift, bits = words, bits, packing.top
        mass_mask = (np.int64(1) << (bits - shift)) - 1
    return words, bits, counts, mask, masses, shift, mass_mask


@njit(inline="always")
def _sides(i, lanes, whole, min_rows):  # type: ignore[no-untyped-def]
    """Whether both sides of a cut after bin ``i`` are large enough; their masses and sums of gradients."""
    words, bits, counts, mask, masses, shift, mass_mask = lanes
    total, mass, count = whole
    rows = counts[i] & mask
    left = float((masses[i] >> shift) & mass_mask)
    right = mass - left
    sum_left = float(words[i] >> bits)
    good = (rows >= min_rows) & (rows <= np.int64(count) - min_rows) & (left > 0) & (right > 0)
    return good, left, right, sum_left, total - sum_left


# These three loops run on vectors. As one they would not.
@step(error_model="numpy")
def may_gain(sums, n, whole, rules, best):  # type: ignore[no-untyped-def]
    """Whether gain terms of cutting after any of ``n`` bins may be above ``best``, told without a division.

    On the safe side: terms are quotients of what is compared here, to within some rounding.
    """
    # IN: all
    lanes = _lanes(sums, rules.packing)
    level = best * (1 - NOISE)
    found = np.int64(0)
    for i in range(n):
        good, left, right, sum_left, sum_right = _sides(i, lanes, whole, rules.min_rows)
        above = sum_left * sum_left * right + sum_right * sum_right * left > level * (left * right)
        found += np.int64(good & above)
    return found > 0


@step(error_model="numpy")
def fill_gains(sums, n, whole, rules, gains):  # type: ignore[no-untyped-def]
    """Gain terms of cutting after each of ``n`` bins, from prefix sums; -1 where a side is too small.

    ``whole`` has the node's sums: gradients, mass (what is divided by) and rows.
    """
    # IN: sums, n, whole, rules  OUT: gains
    lanes = _lanes(sums, rules.packing)
    for i in range(n):
        good, left, right, sum_left, sum_right = _sides(i, lanes, whole, rules.min_rows)
        left = left if good else 1.0
        right = right if good else 1.0
        # S_L²/n_L + S_R²/n_R by one division, which is what takes longest.
        terms = (sum_left * sum_left * right + sum_right * sum_right * left) / (left * right)
        gains[i] = terms if good else -1.0


@step()
def largest(gains, n):  # type: ignore[no-untyped-def]
    """Largest of the first ``n`` gains, by their bits: integers are compared on vectors, and floats from 0 on
    are in the order of their bits, above those below 0.
    """
    bits = gains.view(np.int64)
    best = bits[0]
    for i in range(n):
        best = max(best, bits[i])
    return bits_to_float(best)


@step(shared=True, error_model="numpy")
def best_split(hist, binned, features, span, rules, limits, scratch, node):  # type: ignore[no-untyped-def]
    """Put the best split over ``features[span[0]:span[1]]`` into the record ``node``, as far as its feature
    and cut; `finish_split` does the rest for the best of all features.
    """
    # IN: all but node (its total, weight and count are read)  OUT: node's gain, feature, bin, missing_left
    packing = rules.packing
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    if node.count < 2 * rules.min_rows or node.depth >= rules.max_depth:
        return
    bin_start, n_bins, missing = binned.bin_start, binned.n_bins, binned.missing
    count = float(node.count)
    total = float(node.total)
    mass = float(node.weight) if packing.second else count
    sums, gains = scratch.sums, scratch.gains
    none = (np.int64(0), np.int64(0), np.int64(0))
    own = total * total / mass if mass > 0 else 0.0
    ruled = is_ruled(limits)
    if limits is not None:  # noqa: SIM102 - types decide a test of its own
        if ruled:
            own = own_terms((total, mass, count), limits)
    best = own * (1 + NOISE)
    cut = int64(0)
    sparse = has_bits(binned, hist, packing.lanes) and not ruled
    for j in range(span[0], span[1]):
        f = features[j]
        if limits is not None:
            if limits.allowed.shape[0] > 0 and limits.allowed[node.number, f] == 0:
                continue
            if binned.categorical[f]:
                best = best_subset(hist, binned, f, rules, limits, scratch, node, (own, best))
                continue
        start = bin_start[f] + missing[f]
        stop = bin_start[f] + n_bins[f]
        gone = bin_sums(hist, bin_start[f] * packing.lanes, packing) if missing[f] else none
        some_missing = gone[2] != 0
        # Missing rows on the right first; there a cut after the last bin parts known from missing.
        for side in range(2 if some_missing else 1):
            n = stop - start - (0 if some_missing and side == 0 else 1)
            if sparse:
                first = gone if side == 1 else none
                n = prefix_used(binned.wide_columns, binned, f, hist, packing, first, scratch)
            elif n > 0:
                prefix(hist, start, start + n, packing, gone if side == 1 else none, sums)
            if n <= 0:
                continue
            whole = (total, mass, count)
            found = -1.0
            if limits is not None:  # noqa: SIM102 - types decide a test of its own
                if ruled:
                    known = (gone[2], node.count) if side == 1 else (none[2], node.count - gone[2])
                    fill_ruled_gains(sums, n, whole, rules, limits, node, f, gains)
                    found, cut = best_ruled(sums, n, (f, own, known), packing, limits, node, gains)
            if not ruled:
                if not may_gain(sums, n, whole, rules, best):
                    continue  # most features, after the first few
                fill_gains(sums, n, whole, rules, gains)
                found = largest(gains, n)
            if found > best:
                best = found
                if not ruled:
                    cut = int64(0)
                    while gains[cut] != found:
                        cut += 1
                node.gain = found - own
                node.terms = found
                node.feature = f
                node.bin = scratch.bins[cut] if sparse else start - bin_start[f] + cut
                # Missing values never seen here follow the larger side.
                seen = rows_at(sums, cut, packing)
                node.missing_left = side if some_missing else np.int32(2 * seen >= count)


@njit(inline="always")
def rows_at(sums, cut, packing):  # type: ignore[no-untyped-def]
    """Rows up to a cut."""
    if packing.count_bits > 0:
        return sums[0, cut] & ((np.int64(1) << packing.count_bits) - 1)
    return sums[2, cut]


@step(shared=True)
def finish_split(hist, binned, packing, node):  # type: ignore[no-untyped-def]
    """The rest of a split that was found: sums of its left side, the place of its cut, its set of bins."""
    # IN: hist, binned, packing  OUT: node
    if node.feature < 0:
        return
    if is_category(binned.categorical, node.feature):
        sum_subset(binned.categorical, hist, binned, packing, node)
        return
    _sum_left(hist, binned, packing, node)
    _centre_cut(hist, binned, packing, node)
    _fill_left_bins(binned, node)


@njit(inline="always")
def _sum_left(hist, binned, packing, node):  # type: ignore[no-untyped-def]
    """Sums of the left side, in integers again: floats hold no more than 53 bits of them."""
    f = node.feature
    node.left_total = 0
    node.left_weight = 0
    node.left_count = 0
    for b in range(node.bin + 1):
        if b > 0 or not binned.missing[f] or node.missing_left:
            total, weight, count = bin_sums(hist, (binned.bin_start[f] + b) * packing.lanes, packing)
            node.left_total += total
            node.left_weight += weight
            node.left_count += count


@njit(inline="always")
def _centre_cut(hist, binned, packing, node):  # type: ignore[no-untyped-def]
    """Move the cut to the middle of the raw gap when bins after it hold no row of this node."""
    f = node.feature
    base = binned.bin_start[f]
    following = node.bin + 1
    while following < binned.n_bins[f] and counted(hist, (base + following) * packing.lanes, packing) == 0:
        following += 1
    if following == binned.n_bins[f]:
        node.bin = binned.n_bins[f] - 1  # known values left, missing ones right
        return
    at = binned.value_start[f] - binned.missing[f]
    middle = (np.float64(binned.highest[at + node.bin]) + np.float64(binned.lowest[at + following])) / 2
    while node.bin + 1 < following and np.float64(binned.highest[at + node.bin + 1]) <= middle:
        node.bin += 1


@njit(inline="always")
def _fill_left_bins(binned, node):  # type: ignore[no-untyped-def]
    """The set of bins of a cut: those up to it, but for that of missing values if they go right."""
    for word in range(4):
        node.left_bins[word] = uint64(0)
    first = 1 if binned.missing[node.feature] and not node.missing_left else 0
    for b in range(first, min(node.bin + 1, 256)):
        node.left_bins[b >> 6] |= uint64(1) << uint64(b & 63)


@step(shared=True)
def fill_left_table(binned, node, table):  # type: ignore[no-untyped-def]
    """The set of bins of a node's split as a table: 1 for each bin that goes left."""
    # IN: binned, node  OUT: table (the bins of the split's feature)
    n = binned.n_bins[node.feature]
    for b in range(min(n, 256)):
        table[b] = (node.left_bins[b >> 6] >> uint64(b & 63)) & uint64(1)
    for b in range(256, n):
        table[b] = b <= node.bin
