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

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from mcrank.boosting.packing import chunk_rows, spread
from mcrank.kernels import step
from mcrank.kernels.memory import prefetch
from mcrank.kernels.vectors import vector_add2

AHEAD = 24  # rows between a prefetch and its use


class RowRun(NamedTuple):
    """Rows to be counted: entries ``begin`` up to ``end`` of a node whose entries start with ``first``.

    What entry ``i`` adds is ``packs[i - first]``, or as many numbers as there are lanes.
    """

    entries: npt.NDArray[np.int64]
    packs: npt.NDArray[np.int64]
    first: int
    begin: int
    end: int


@njit(inline="always")
def _row(entry):  # type: ignore[no-untyped-def]
    return uint64(entry) >> uint64(32)


@step()
def _sixteen(words, run, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a block of 16 features."""
    entries, packs, first, last = run.entries, run.packs, uint64(run.first), uint64(run.end - 1)
    for i in range(uint64(run.begin), uint64(run.end)):
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
def _eight(words, half, run, lanes, hist):  # type: ignore[no-untyped-def]
    """Count the rows of half a block, eight features: with two lanes that is what the L1 cache holds."""
    entries, packs, first, last = run.entries, run.packs, uint64(run.first), uint64(run.end - 1)
    if lanes == 1:
        for i in range(uint64(run.begin), uint64(run.end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pack = packs[i - first]
            for j in range(uint64(8)):
                hist[(j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))] += pack
    else:
        for i in range(uint64(run.begin), uint64(run.end)):
            prefetch(words, (_row(entries[min(i + uint64(AHEAD), last)]) << uint64(1)) + half)
            word = words[(_row(entries[i]) << uint64(1)) + half]
            pair = (i - first) << uint64(1)
            for j in range(uint64(8)):
                place = (j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))
                vector_add2(hist, place << uint64(1), packs, pair)


@step()
def _one(column, run, lanes, hist):  # type: ignore[no-untyped-def]
    """Count the rows of a single feature from its column."""
    entries, packs, first = run.entries, run.packs, uint64(run.first)
    if lanes == 1:
        for i in range(uint64(run.begin), uint64(run.end)):
            hist[uint64(column[_row(entries[i])])] += packs[i - first]
    else:
        for i in range(uint64(run.begin), uint64(run.end)):
            place = uint64(column[_row(entries[i])]) << uint64(1)
            vector_add2(hist, place, packs, (i - first) << uint64(1))


@step()
def _one_in_three(column, run, hist):  # type: ignore[no-untyped-def]
    """`_one` for three lanes: bins of 16 bits, and too many rows for counts to share a lane."""
    entries, packs, first = run.entries, run.packs, uint64(run.first)
    for i in range(uint64(run.begin), uint64(run.end)):
        place = uint64(3) * uint64(column[_row(entries[i])])
        pack = uint64(3) * (i - first)
        for lane in range(uint64(3)):
            hist[place + lane] += packs[pack + lane]


@step()
def _two(columns, run, hist):  # type: ignore[no-untyped-def]
    """Count the rows of two features from their columns, one lane."""
    entries, packs, first = run.entries, run.packs, uint64(run.first)
    a, b = columns[0], columns[1]
    for i in range(uint64(run.begin), uint64(run.end)):
        row = _row(entries[i])
        pack = packs[i - first]
        hist[uint64(a[row])] += pack
        hist[uint64(256) + uint64(b[row])] += pack


@step()
def _some(binned, low, high, run, lanes, hist):  # type: ignore[no-untyped-def]
    """Count the rows of features ``low`` up to ``high``, all of one block; ``hist`` begins with ``low``."""
    columns, blocks = binned.columns, binned.blocks
    if high - low >= 12 and lanes == 1:
        _sixteen(blocks[low // 16], run, hist)
        return
    f = low
    while high - f >= 4:
        _eight(blocks[f // 16], uint64(f % 16 // 8), run, lanes, hist[(f - low) * 256 * lanes :])
        f += 8
    while f < high:
        part = hist[(f - low) * 256 * lanes :]
        if high - f >= 2 and lanes == 1:
            _two(columns[f : f + 2], run, part)
            f += 2
        else:
            _one(columns[f], run, lanes, part)
            f += 1


@step()
def node_histogram(binned, low, high, run, packing, chunk, hist):  # type: ignore[no-untyped-def]
    """Fill the part of ``hist`` that belongs to features ``low`` up to ``high``.

    Blocks are read whole or by halves of eight features; ``low`` must begin a half, or be past the last
    one. A last half with four features or more is padded (its padding counts into the spare end of
    ``hist``); fewer come from their columns, since a block of a few moves as much memory as a full one.
    Wide data (16-bit bins) has no blocks. ``chunk`` is room for the counters of a block.
    """
    # IN: all but chunk and hist  OUT: hist
    lanes = packing.lanes
    bin_start = binned.bin_start
    begin, end = run.begin, run.end
    if begin == end or binned.wide_columns.shape[0] > 0:
        hist[bin_start[low] * lanes : bin_start[high] * lanes] = 0
        for f in range(low, high if begin < end else low):
            part = hist[bin_start[f] * lanes : bin_start[f + 1] * lanes]
            if lanes == 3:
                _one_in_three(binned.wide_columns[f], run, part)
            else:
                _one(binned.wide_columns[f], run, lanes, part)
        return
    # Counters of a chunk: one for a triple or a sum with its count, two with a lane that is given.
    in_chunk = np.int64(1 if packing.bits > 0 else 1 + packing.second)
    f = low
    while f < high:
        stop = min(f // 16 * 16 + 16, high)
        part = hist[bin_start[f] * lanes :]
        if packing.chunk_bits == 0:
            part[: (stop - f) * 256 * lanes] = 0
            _some(binned, f, stop, run, lanes, part)
        else:
            counters = chunk[: (stop - f) * 256 * in_chunk]
            counters[:] = 0
            step = chunk_rows(packing)
            for i in range(begin, end, step):
                some = RowRun(run.entries, run.packs, run.first, i, min(i + step, end))
                _some(binned, f, stop, some, in_chunk, chunk)
                spread(counters, packing, i > begin, part)
        f = stop
