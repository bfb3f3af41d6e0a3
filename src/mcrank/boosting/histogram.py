"""Histograms: for every feature and bin, the sum of gradients and the number of rows, as exact integers.

A gradient is rounded to an integer ``q`` (`mcrank.losses.quantize`), and one 64-bit counter takes
``(q << count_bits) + 1``: sum and count in one add, exact, whatever the order of rows. So a histogram, and
with it the tree, is the same for any number of threads.

A second lane (a curvature or a row weight) lies beside the first; both take one vector add. Lane ``l`` of
bin ``b`` of feature ``f`` is ``hist[(bin_start[f] + b) * lanes + l]``.

The rows of a node are *entries*: 64-bit integers with the row in the upper half and ``q`` in the lower.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint64

from mcrank.boosting.intrinsics import add2, add4, prefetch
from mcrank.losses.quantize import LANE_BITS

AHEAD = 24  # rows between a prefetch and its use
_ROOT_CHUNK = 4096  # rows whose four gradients stay in cache while all features pass over them
LANES_AT_ONCE = 4  # outputs whose root histograms are made together


@njit(inline="always")
def _row(entry):  # type: ignore[no-untyped-def]
    return uint64(entry) >> uint64(32)


@njit(inline="always")
def _gradient(entry):  # type: ignore[no-untyped-def]
    return int64(int32(entry))


@njit(nogil=True)
def _sixteen(words, entries, begin, end, count_bits, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a block of 16 features, one lane."""
    last = uint64(end - 1)
    for i in range(uint64(begin), uint64(end)):
        prefetch(words, _row(entries[min(i + uint64(AHEAD), last)]) << uint64(1))
        at = _row(entries[i]) << uint64(1)
        packed = (_gradient(entries[i]) << count_bits) + int64(1)
        low = words[at]
        high = words[at + uint64(1)]
        for j in range(uint64(8)):
            hist[(j << uint64(8)) + ((low >> (j << uint64(3))) & uint64(255))] += packed
        for j in range(uint64(8)):
            hist[uint64(2048) + (j << uint64(8)) + ((high >> (j << uint64(3))) & uint64(255))] += packed


@njit(nogil=True)
def _eight(words, half, entries, begin, end, count_bits, lanes, pairs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of half a block, eight features: with two lanes that is what the L1 cache holds."""
    last = uint64(end - 1)
    if lanes == 1:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            packed = (_gradient(entries[i]) << count_bits) + int64(1)
            for j in range(uint64(8)):
                hist[(j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))] += packed
    else:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pair = (i - uint64(begin)) << uint64(1)
            for j in range(uint64(8)):
                place = (j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))
                add2(hist, place << uint64(1), pairs, pair)


@njit(nogil=True)
def _one(column, entries, begin, end, count_bits, lanes, pairs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a single feature from its column."""
    if lanes == 1:
        for i in range(uint64(begin), uint64(end)):
            hist[uint64(column[_row(entries[i])])] += (_gradient(entries[i]) << count_bits) + int64(1)
    else:
        for i in range(uint64(begin), uint64(end)):
            place = uint64(column[_row(entries[i])]) << uint64(1)
            add2(hist, place, pairs, (i - uint64(begin)) << uint64(1))


@njit(nogil=True, cache=True)
def fill_pairs(entries, begin, end, count_bits, weights, derived_bits, pairs):  # type: ignore[no-untyped-def]
    """Both lanes of every entry in order; the second is ``weights[row]``, or q(1-q) when ``weights`` is
    empty.
    """
    # IN: entries, begin, end, count_bits, weights, derived_bits  OUT: pairs
    one = int64(1) << int64(derived_bits)
    drop = max(2 * derived_bits - LANE_BITS, 0)  # leaves at most LANE_BITS bits, as many as a given lane has
    for i in range(begin, end):
        q = _gradient(entries[i])
        at = 2 * (i - begin)
        pairs[at] = (q << count_bits) + 1
        if len(weights) > 0:
            pairs[at + 1] = weights[_row(entries[i])]
        else:
            # |r| (1 - |r|) = p (1 - p), whichever side of the class the row is on.
            size = abs(q)
            pairs[at + 1] = max((size * (one - size)) >> int64(drop), 0)


@njit(nogil=True)
def node_histogram(  # type: ignore[no-untyped-def]
    columns, wide_columns, blocks, bin_start, first_block, last_block, entries, begin, end, count_bits,
    lanes, pairs, hist,
):  # fmt: skip
    """Zero and fill the part of ``hist`` that belongs to blocks ``first_block`` up to ``last_block``.

    Blocks are read whole or by halves of eight features. A last half with four features or more is padded
    (its padding counts into the spare end of ``hist``); fewer come from their columns, since a block of a
    few moves as much memory as a full one. Wide data (16-bit bins) has one feature per block.
    """
    # IN: all but hist  OUT: hist
    if wide_columns.shape[0] > 0:
        for f in range(first_block, last_block):
            part = hist[bin_start[f] * lanes : bin_start[f + 1] * lanes]
            part[:] = 0
            _one(wide_columns[f], entries, begin, end, count_bits, lanes, pairs, part)
        return
    n_features = len(bin_start) - 1
    for b in range(first_block, last_block):
        done = 16 * b
        stop = min(done + 16, n_features)
        hist[bin_start[done] * lanes : bin_start[stop] * lanes] = 0
        if stop - done >= 12 and lanes == 1:
            _sixteen(blocks[b], entries, begin, end, count_bits, hist[bin_start[done] :])
            continue
        half = uint64(0)
        while stop - done >= 4:
            part = hist[bin_start[done] * lanes :]
            _eight(blocks[b], half, entries, begin, end, count_bits, lanes, pairs, part)
            done += 8
            half += uint64(1)
        for f in range(done, stop):
            part = hist[bin_start[f] * lanes : bin_start[f + 1] * lanes]
            _one(columns[f], entries, begin, end, count_bits, lanes, pairs, part)


_ROOT = types.void(
    types.uint8[:, ::1],
    types.int64,
    types.int64,
    types.int32[:, ::1],
    types.int64,
    types.int64,
    types.int64[:, ::1],
)


@njit(_ROOT, nogil=True, cache=True)
def root_sums(columns, first, last, gradients, output, outputs, sums):  # type: ignore[no-untyped-def]
    """Gradient sums over all rows of up to four outputs at once, for features ``first`` up to ``last``.

    Every output's tree starts from the same rows, so four of their sums share one vector add and the
    counts need none: they never change (`root_counts`). ``sums[f, 4 * bin + lane]`` belongs to output
    ``output + lane``.
    """
    # IN: columns, first, last, gradients, output, outputs  OUT: sums
    rows = columns.shape[1]
    lanes = np.zeros(4 * _ROOT_CHUNK, np.int64)
    sums[first:last] = 0
    for low in range(0, rows, _ROOT_CHUNK):
        n = min(_ROOT_CHUNK, rows - low)
        for k in range(outputs):
            row = gradients[output + k]
            for i in range(n):
                lanes[4 * i + k] = row[low + i]
        f = first
        # Four features in turn: rows of a sparse feature hit one counter again and again, and each add
        # would wait for the one before it.
        while f + 4 <= last:
            a, b, c, d = columns[f], columns[f + 1], columns[f + 2], columns[f + 3]
            to_a, to_b, to_c, to_d = sums[f], sums[f + 1], sums[f + 2], sums[f + 3]
            for i in range(uint64(n)):
                at = i << uint64(2)
                add4(to_a, uint64(a[uint64(low) + i]) << uint64(2), lanes, at)
                add4(to_b, uint64(b[uint64(low) + i]) << uint64(2), lanes, at)
                add4(to_c, uint64(c[uint64(low) + i]) << uint64(2), lanes, at)
                add4(to_d, uint64(d[uint64(low) + i]) << uint64(2), lanes, at)
            f += 4
        while f < last:
            a, to_a = columns[f], sums[f]
            for i in range(uint64(n)):
                add4(to_a, uint64(a[uint64(low) + i]) << uint64(2), lanes, i << uint64(2))
            f += 1


@njit("void(uint8[:, ::1], int64[:, ::1])", nogil=True, cache=True)
def root_counts(columns, counts):  # type: ignore[no-untyped-def]
    """Rows in every bin of every feature."""
    # IN: columns  OUT: counts
    counts[:] = 0
    for f in range(columns.shape[0]):
        column = columns[f]
        for i in range(uint64(columns.shape[1])):
            counts[f, uint64(column[i])] += 1


@njit("void(int64[:, :, ::1], int64[:, ::1], int64, int64, int64[::1])", nogil=True, cache=True)
def pack_root(sums, counts, output, count_bits, hist):  # type: ignore[no-untyped-def]
    """Histogram of one output's root from the shared sums and counts; output -1 is minus the sum of all
    others.
    """
    # IN: sums, counts, output, count_bits  OUT: hist
    for f in range(counts.shape[0]):
        for b in range(256):
            if output >= 0:
                total = sums[output // 4, f, 4 * b + output % 4]
            else:
                total = 0
                for group in range(sums.shape[0]):
                    for lane in range(4):
                        total -= sums[group, f, 4 * b + lane]
            hist[256 * f + b] = (total << count_bits) + counts[f, b]
