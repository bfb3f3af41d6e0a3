"""Histograms: for every feature and bin, the sum of gradients and the number of rows, as exact integers.

A gradient is rounded to an integer ``q`` (`mcrank.losses.quantize`), and one 64-bit counter takes
``(q << count_bits) + 1``: sum and count in one add, exact, whatever the order of rows. So a histogram, and with it
the tree, is the same for any number of threads.

A second lane (a curvature or a row weight) lies beside the first; both take one vector add. Lane ``l`` of bin ``b``
of feature ``f`` is ``hist[(bin_start[f] + b) * lanes + l]``.

The rows of a node are *entries*: 64-bit integers with the row in the upper half and ``q`` in the lower.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, types, uint64

from mcrank.boosting.intrinsics import add2, add4, prefetch
from mcrank.losses.quantize import LANE_BITS

AHEAD = 24  # rows between a prefetch and its use
_ROOT_CHUNK = 2048  # rows whose four gradients stay in cache while all features pass over them
LANES_AT_ONCE = 4  # outputs whose root histograms are made together


@njit(inline="always")
def _row(entry):  # type: ignore[no-untyped-def]
    return uint64(entry) >> uint64(32)


@njit(inline="always")
def _gradient(entry):  # type: ignore[no-untyped-def]
    return int64(int32(entry))


@njit(nogil=True)
def _block_one_lane(words, entries, begin, end, count_bits, width, hist):  # type: ignore[no-untyped-def]
    """Count the rows of one 16-feature block; ``width`` is its number of real features."""
    byte = uint64(255)
    last = uint64(end - 1)
    if width == 16:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, _row(entries[min(i + uint64(AHEAD), last)]) << uint64(1))
            at = _row(entries[i]) << uint64(1)
            packed = (_gradient(entries[i]) << count_bits) + int64(1)
            low = words[at]
            high = words[at + uint64(1)]
            for j in range(uint64(8)):
                hist[(j << uint64(8)) + ((low >> (j << uint64(3))) & byte)] += packed
            for j in range(uint64(8)):
                hist[uint64(2048) + (j << uint64(8)) + ((high >> (j << uint64(3))) & byte)] += packed
    else:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, _row(entries[min(i + uint64(AHEAD), last)]) << uint64(1))
            at = _row(entries[i]) << uint64(1)
            packed = (_gradient(entries[i]) << count_bits) + int64(1)
            for j in range(uint64(width)):
                word = words[at + (j >> uint64(3))]
                hist[(j << uint64(8)) + ((word >> ((j & uint64(7)) << uint64(3))) & byte)] += packed


@njit(nogil=True)
def _block_two_lanes(words, entries, begin, end, pairs, width, hist):  # type: ignore[no-untyped-def]
    """The same with two lanes: ``pairs`` holds (packed gradient, second lane) of each entry in order."""
    byte = uint64(255)
    last = uint64(end - 1)
    # Half a block at a time: 8 features x 256 bins x 2 lanes fill the L1 cache.
    for half in range(uint64(2)):
        inside = min(max(width - 8 * int64(half), 0), 8)
        base = half << uint64(11)
        if inside == 0:
            continue
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pair = (i - uint64(begin)) << uint64(1)
            if inside == 8:
                for j in range(uint64(8)):
                    place = base + (j << uint64(8)) + ((word >> (j << uint64(3))) & byte)
                    add2(hist, place << uint64(1), pairs, pair)
            else:
                for j in range(uint64(inside)):
                    place = base + (j << uint64(8)) + ((word >> (j << uint64(3))) & byte)
                    add2(hist, place << uint64(1), pairs, pair)


@njit(nogil=True)
def fill_pairs(entries, begin, end, count_bits, weights, derived_bits, pairs):  # type: ignore[no-untyped-def]
    """Both lanes of every entry in order; the second is ``weights[row]``, or q(1-q) when ``weights`` is empty."""
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
    blocks, wide_columns, bin_start, first_block, last_block, entries, begin, end, count_bits, lanes, pairs, hist
):
    """Zero and fill the part of ``hist`` that belongs to blocks ``first_block`` up to ``last_block``.

    Wide data (16-bit bins) has one feature per block.
    """
    # IN: all but hist  OUT: hist
    if wide_columns.shape[0] > 0:
        for f in range(first_block, last_block):
            low = bin_start[f] * lanes
            hist[low : bin_start[f + 1] * lanes] = 0
            column = wide_columns[f]
            for i in range(uint64(begin), uint64(end)):
                place = uint64(column[_row(entries[i])])
                if lanes == 1:
                    hist[uint64(low) + place] += (_gradient(entries[i]) << count_bits) + int64(1)
                else:
                    add2(hist, uint64(low) + (place << uint64(1)), pairs, (i - uint64(begin)) << uint64(1))
        return
    n_features = len(bin_start) - 1
    for b in range(first_block, last_block):
        width = min(16, n_features - 16 * b)
        part = hist[bin_start[16 * b] * lanes : bin_start[16 * b + width] * lanes]
        part[:] = 0
        if lanes == 1:
            _block_one_lane(blocks[b], entries, begin, end, count_bits, width, part)
        else:
            _block_two_lanes(blocks[b], entries, begin, end, pairs, width, part)


_ROOT = types.void(
    types.uint8[:, ::1], types.int64, types.int64, types.int32[:, ::1], types.int64, types.int64, types.int64[:, ::1]
)


@njit(_ROOT, nogil=True, cache=True)
def root_sums(columns, first, last, gradients, output, outputs, sums):  # type: ignore[no-untyped-def]
    """Gradient sums over all rows of up to four outputs at once, for features ``first`` up to ``last``.

    Every output's tree starts from the same rows, so four of their sums share one vector add and the counts need
    none: they never change (`root_counts`). ``sums[f, 4 * bin + lane]`` belongs to output ``output + lane``.
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
        while f + 4 <= last:
            a = columns[f]
            b = columns[f + 1]
            c = columns[f + 2]
            d = columns[f + 3]
            sa = sums[f]
            sb = sums[f + 1]
            sc = sums[f + 2]
            sd = sums[f + 3]
            for i in range(uint64(n)):
                at = i << uint64(2)
                row = uint64(low) + i
                add4(sa, uint64(a[row]) << uint64(2), lanes, at)
                add4(sb, uint64(b[row]) << uint64(2), lanes, at)
                add4(sc, uint64(c[row]) << uint64(2), lanes, at)
                add4(sd, uint64(d[row]) << uint64(2), lanes, at)
            f += 4
        while f < last:
            a = columns[f]
            sa = sums[f]
            for i in range(uint64(n)):
                add4(sa, uint64(a[uint64(low) + i]) << uint64(2), lanes, i << uint64(2))
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


@njit("void(int64[:, ::1], int64[:, ::1], int64, int64, int64[::1])", nogil=True, cache=True)
def pack_root(sums, counts, lane, count_bits, hist):  # type: ignore[no-untyped-def]
    """Histogram of one output's root from the shared sums and counts."""
    # IN: sums, counts, lane, count_bits  OUT: hist
    for f in range(counts.shape[0]):
        for b in range(256):
            hist[256 * f + b] = (sums[f, 4 * b + lane] << count_bits) + counts[f, b]
