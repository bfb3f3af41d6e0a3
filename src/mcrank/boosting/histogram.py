"""Histograms: for every feature and bin, the sum of gradients and the number of rows, as exact integers.

A gradient is rounded to an integer ``q`` (`mcrank.losses.quantize`), and one 64-bit counter takes
``(q << count_bits) + 1``: sum and count in one add, exact, whatever the order of rows. So a histogram, and
with it the tree, is the same for any number of threads.

Further lanes (a curvature or a row weight; counts of many rows) lie beside the first
(`mcrank.boosting.packing`). Lane ``l`` of bin ``b`` of feature ``f`` is
``hist[(bin_start[f] + b) * lanes + l]``.

The rows of a node are *entries*: 64-bit integers with the row in the upper half and ``q`` in the lower.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint64

from mcrank.boosting.packing import chunk_rows, spread
from mcrank.kernels import step
from mcrank.kernels.memory import prefetch, vector_add2

AHEAD = 24  # rows between a prefetch and its use


@njit(inline="always")
def _row(entry):  # type: ignore[no-untyped-def]
    return uint64(entry) >> uint64(32)


@step()
def _sixteen(words, entries, begin, end, span, packs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a block of 16 features.

    ``span`` is the node's first entry and its last: what entry ``i`` adds is ``packs[i - span[0]]``, and
    entries up to the last are worth a prefetch.
    """
    first, last = uint64(span[0]), uint64(span[1])
    for i in range(uint64(begin), uint64(end)):
        prefetch(words, _row(entries[min(i + uint64(AHEAD), last)]) << uint64(1))
        at = _row(entries[i]) << uint64(1)
        pack = packs[i - first]
        low = words[at]
        high = words[at + uint64(1)]
        for j in range(uint64(8)):
            hist[(j << uint64(8)) + ((low >> (j << uint64(3))) & uint64(255))] += pack
        for j in range(uint64(8)):
            hist[uint64(2048) + (j << uint64(8)) + ((high >> (j << uint64(3))) & uint64(255))] += pack


@step()
def _eight(words, half, entries, begin, end, span, lanes, packs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of half a block, eight features: with two lanes that is what the L1 cache holds."""
    first, last = uint64(span[0]), uint64(span[1])
    if lanes == 1:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pack = packs[i - first]
            for j in range(uint64(8)):
                hist[(j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))] += pack
    else:
        for i in range(uint64(begin), uint64(end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pair = (i - first) << uint64(1)
            for j in range(uint64(8)):
                place = (j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))
                vector_add2(hist, place << uint64(1), packs, pair)


@step()
def _one(column, entries, begin, end, first, lanes, packs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a single feature from its column."""
    first = uint64(first)
    if lanes == 1:
        for i in range(uint64(begin), uint64(end)):
            hist[uint64(column[_row(entries[i])])] += packs[i - first]
    else:
        for i in range(uint64(begin), uint64(end)):
            place = uint64(column[_row(entries[i])]) << uint64(1)
            vector_add2(hist, place, packs, (i - first) << uint64(1))


@step()
def _one_in_three(column, entries, begin, end, packs, hist):  # type: ignore[no-untyped-def]
    """`_one` for three lanes: bins of 16 bits, and too many rows for counts to share a lane."""
    for i in range(uint64(begin), uint64(end)):
        place = uint64(3) * uint64(column[_row(entries[i])])
        pack = uint64(3) * (i - uint64(begin))
        for lane in range(uint64(3)):
            hist[place + lane] += packs[pack + lane]


@step()
def _two(columns, entries, begin, end, first, packs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of two features from their columns, one lane."""
    a, b = columns[0], columns[1]
    first = uint64(first)
    for i in range(uint64(begin), uint64(end)):
        row = _row(entries[i])
        pack = packs[i - first]
        hist[uint64(a[row])] += pack
        hist[uint64(256) + uint64(b[row])] += pack


@step()
def _some(columns, blocks, low, high, entries, begin, end, span, lanes, packs, hist):  # type: ignore[no-untyped-def]
    """Count the rows of features ``low`` up to ``high``, all of one block; ``hist`` begins with ``low``."""
    if high - low >= 12 and lanes == 1:
        _sixteen(blocks[low // 16], entries, begin, end, span, packs, hist)
        return
    f = low
    while high - f >= 4:
        part = hist[(f - low) * 256 * lanes :]
        _eight(blocks[f // 16], uint64(f % 16 // 8), entries, begin, end, span, lanes, packs, part)
        f += 8
    while f < high:
        part = hist[(f - low) * 256 * lanes :]
        if high - f >= 2 and lanes == 1:
            _two(columns[f : f + 2], entries, begin, end, span[0], packs, part)
            f += 2
        else:
            _one(columns[f], entries, begin, end, span[0], lanes, packs, part)
            f += 1


@step()
def node_histogram(grounds, low, high, entries, begin, end, packing, packs, chunk, hist):  # type: ignore[no-untyped-def]
    """Fill the part of ``hist`` that belongs to features ``low`` up to ``high``.

    Blocks are read whole or by halves of eight features; ``low`` must begin a half, or be past the last
    one. A last half with four features or more is padded (its padding counts into the spare end of
    ``hist``); fewer come from their columns, since a block of a few moves as much memory as a full one.
    Wide data (16-bit bins) has no blocks.

    ``packs`` holds what each entry from ``begin`` on adds; ``chunk`` is room for the counters of a block.
    """
    # IN: all but chunk and hist  OUT: hist
    lanes = packing.lanes
    columns, blocks, bin_start = grounds.columns, grounds.blocks, grounds.bin_start
    if begin == end or grounds.wide_columns.shape[0] > 0:
        hist[bin_start[low] * lanes : bin_start[high] * lanes] = 0
        for f in range(low, high if begin < end else low):
            part = hist[bin_start[f] * lanes : bin_start[f + 1] * lanes]
            if lanes == 3:
                _one_in_three(grounds.wide_columns[f], entries, begin, end, packs, part)
            else:
                _one(grounds.wide_columns[f], entries, begin, end, begin, lanes, packs, part)
        return
    span = (begin, end - 1)
    # Counters of a chunk: one for a triple or a sum with its count, two with a lane that is given.
    in_chunk = np.int64(1 if packing.bits > 0 else 1 + packing.second)
    f = low
    while f < high:
        stop = min(f // 16 * 16 + 16, high)
        part = hist[bin_start[f] * lanes :]
        if packing.chunk_bits == 0:
            part[: (stop - f) * 256 * lanes] = 0
            _some(columns, blocks, f, stop, entries, begin, end, span, lanes, packs, part)
        else:
            counters = chunk[: (stop - f) * 256 * in_chunk]
            counters[:] = 0
            step = chunk_rows(packing)
            for i in range(begin, end, step):
                _some(columns, blocks, f, stop, entries, i, min(i + step, end), span, in_chunk, packs, chunk)
                spread(counters, packing, i > begin, part)
        f = stop
