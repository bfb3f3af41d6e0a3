"""Histograms: for every feature and bin, the sum of gradients and the number of rows, as exact integers.

A gradient is rounded to an integer ``q`` (`mcrank.losses.quantize`), and one 64-bit counter takes
``(q << count_bits) + 1``: sum and count in one add, exact, whatever the order of rows. So a histogram, and
with it the tree, is the same for any number of threads.

Further lanes (a curvature or a row weight; counts of many rows) lie beside the first
(`mcrank.boosting.packing`). Lane ``l`` of bin ``b`` of feature ``f`` is
``hist[(bin_start[f] + b) * lanes + l]``.

Rows are counted some thousand at a time. What they add is written out, and the bins of up to 64 features,
which lie in a line of memory for each row, are gathered into the L2 cache (`mcrank.boosting.gathering`); then
eight features at a time (`mcrank.boosting.eights`), whose counters fit the L1 cache, pass over them. Each
line comes from memory once, and rows are listed once for up to three lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.boosting.binning import LINE
from mcrank.boosting.eights import (
    GROUP,
    by_feature,
    count_eight,
    count_side_by_side,
    count_two_lanes,
    counters_of,
    is_eight,
    sort_out,
)
from mcrank.boosting.gathering import GATHERED, begin_rows, gather, row_of, share_of, words_in_line
from mcrank.boosting.packing import bin_sums, chunk_rows, fill_packs, spread
from mcrank.boosting.partition import list_rows
from mcrank.boosting.wide import WORD, bits_of, clear_used, count_used, has_bits, is_wide
from mcrank.kernels import step
from mcrank.kernels.vectors import vector_add2

LINES = 3  # lines counted together: counters of their features fit the L2 cache beside what is gathered
# Rows from which on counters of a bin lie side by side: to sort them out takes as long as these gain. Of a
# thread that will count more of the node, fewer.
MANY, _MANY_OF_SOME = 3072, 512
# Rows that are counted: all of a node, the first of several runs of them, or further ones.
WHOLE, FIRST, FURTHER = range(3)


class RowRun(NamedTuple):
    """Rows to be counted.

    Attributes
    ----------
    begin, end : int
        Which of the entries; or, with a number, among which rows to look for it.
    entries : int64[]
        Rows of a listed node with their gradients.
    number : int
        What rows of this node have in ``numbers``; -1 for a listed one.
    numbers : uint8[rows]
        Numbers of the rows.
    gradients : int32[rows]
        What entries of the rows hold.
    weights : int64[]
        Second lane by row, if it is given.
    packs : int64[]
        Of rows in bins of 16 bits, what each entry from ``begin`` on adds to counters; else not used.
    """

    begin: int
    end: int
    entries: IntArray
    number: int
    numbers: ByteArray
    gradients: npt.NDArray[np.int32]
    weights: IntArray
    packs: IntArray


@step()
def _few(words, held, packs, n, lanes, hist):  # type: ignore[no-untyped-def]
    """Count the first features of a word, up to three: there is no room for what the others would count."""
    f = uint64(0)
    if held >= 2 and lanes == 1:
        for i in range(uint64(n)):
            word, pack = words[i], packs[i]
            hist[word & uint64(255)] += pack
            hist[uint64(256) + ((word >> uint64(8)) & uint64(255))] += pack
        f = uint64(2)
    while f < uint64(held):
        for i in range(uint64(n)):
            place = (f << uint64(8)) + ((words[i] >> (f << uint64(3))) & uint64(255))
            if lanes == 1:
                hist[place] += packs[i]
            else:
                vector_add2((hist,), (place << uint64(1),), packs, i << uint64(1))
        f += uint64(1)


@step()
def _one(column, entries, packs, lanes, hist):  # type: ignore[no-untyped-def]
    """Count a single feature from its column."""
    if lanes == 1:
        for i in range(uint64(len(entries))):
            hist[uint64(column[row_of(entries[i])])] += packs[i]
    else:
        for i in range(uint64(len(entries))):
            place = uint64(column[row_of(entries[i])]) << uint64(1)
            vector_add2((hist,), (place,), packs, i << uint64(1))


@step()
def _one_wide(column, entries, packs, lanes, hist):  # type: ignore[no-untyped-def]
    """Count a feature of 16-bit bins, of one to three lanes."""
    for i in range(uint64(len(entries))):
        place = uint64(lanes) * uint64(column[row_of(entries[i])])
        for lane in range(uint64(lanes)):
            hist[place + lane] += packs[uint64(lanes) * i + lane]


@step()
def _two(columns, entries, packs, hist):  # type: ignore[no-untyped-def]
    """Count two features from their columns, one lane."""
    a, b = columns[0], columns[1]
    for i in range(uint64(len(entries))):
        row = row_of(entries[i])
        pack = packs[i]
        hist[uint64(a[row])] += pack
        hist[uint64(256) + uint64(b[row])] += pack


@step()
def _some(binned, part, entries, after, side, lanes, scratch, hist):  # type: ignore[no-untyped-def]
    """Count features ``part[0]`` up to ``part[1]``, all of one line, of the rows of some entries; ``after``
    has the line and the entries that are next. ``hist`` begins with the first feature; with ``side`` counters
    of eight features lie side by side.
    """
    low, high = part
    line = words_in_line(binned, low, high)
    next_line, ahead = after
    packs, n = scratch.packs, len(entries)
    eights = line.words
    if eights > 0:
        gather(binned.lines, line, entries, scratch.words)
        if not is_eight(high - low - 8 * (eights - 1)):
            eights -= 1
    w = int64(0)
    while w < line.words:
        # Memory is slow, and counting takes no notice of it: lines of the next rows come meanwhile.
        words, place = scratch.words[(line.first + w) * GATHERED :], hist[w * GROUP * lanes :]
        if w < eights:
            asked = share_of(binned.lines, next_line, ahead, w, eights, n)
            if lanes == 2:
                count_two_lanes(words, packs, n, asked, place)
            elif side:
                count_side_by_side(words, packs, n, asked, place)
            else:
                count_eight(words, packs, n, asked, place)
        else:
            _few(words, high - low - 8 * w, packs, n, lanes, place)
        w += 1
    f = low + 8 * line.words
    while f < high:
        place = hist[(f - low) * 256 * lanes :]
        if high - f >= 2 and lanes == 1:
            _two(binned.columns[f : f + 2], entries, packs, place)
            f += 2
        else:
            _one(binned.columns[f], entries, packs, lanes, place)
            f += 1


@njit(inline="always")
def _next_rows(run, at, room):  # type: ignore[no-untyped-def]
    """Entries of some thousand rows of a run from ``at`` on, and where to go on."""
    if run.number < 0:
        end = min(at + int64(GATHERED), run.end)
        return end, run.entries[at:end]
    span = (at, run.end)
    end, n = list_rows(run.numbers, run.number, run.gradients, span, int64(GATHERED), room)
    return end, room[:n]


@step()
def _wide_histogram(columns, binned, low, high, run, lanes, hist):  # type: ignore[no-untyped-def]
    """`node_histogram` of bins of 16 bits, in ``columns``."""
    if columns is None:
        return
    bin_start, entries = binned.bin_start, run.entries[run.begin : run.end]
    noted = has_bits(binned, hist, lanes)
    if noted:
        clear_used(binned, low, high, lanes, hist)
    else:
        hist[bin_start[low] * lanes : bin_start[high] * lanes] = 0
    bits = bits_of(binned, hist, lanes)
    for f in range(low, high):
        part = hist[bin_start[f] * lanes : bin_start[f + 1] * lanes]
        if noted:
            own = bits[bin_start[f] // WORD : bin_start[f + 1] // WORD]
            count_used(columns[f], entries, run.packs, lanes, part, own)
        else:
            _one_wide(columns[f], entries, run.packs, lanes, part)


@njit(inline="always")
def _stays(binned, packing):  # type: ignore[no-untyped-def]
    """Whether counters of a chunk may be left as they are between runs: where all features have some."""
    return packing.chunk_bits > 0 and len(binned.n_bins) <= LINE * LINES


@njit(inline="always")
def _in_chunk(packing):  # type: ignore[no-untyped-def]
    """Counters of a bin in a chunk: one for a triple, or a sum with its count; two with a given lane."""
    return int64(1 if packing.bits > 0 else 1 + packing.second)


@njit(inline="always")
def _lie_side_by_side(run, which, in_chunk, scratch):  # type: ignore[no-untyped-def]
    """Whether counters of a bin of eight features lie side by side; further runs go the way of the first."""
    if which == FURTHER:
        return scratch.open[2] == 1
    # Nodes whose rows have numbers are large ones.
    many = run.number >= 0 or run.end - run.begin >= (MANY if which == WHOLE else _MANY_OF_SOME)
    return in_chunk == 1 and many


@step()
def _spread(counters, features, side, packing, add, room, hist):  # type: ignore[no-untyped-def]
    """`spread` of the counters of a chunk, which may lie side by side."""
    lanes, in_chunk = packing.lanes, _in_chunk(packing)
    f = 0
    while side and is_eight(features - f):
        group = counters[f * 256 : f * 256 + GROUP]
        by_feature(group, room)
        group[:] = 0
        spread(room[: min(features - f, 8) * 256], packing, add, hist[f * 256 * lanes :])
        f += 8
    if f < features:
        rest = counters[f * 256 * in_chunk : features * 256 * in_chunk]
        spread(rest, packing, add, hist[f * 256 * lanes :])


@step(shared=True)
def node_histogram(binned, low, high, run, packing, scratch, which, hist):  # type: ignore[no-untyped-def]
    """Fill the part of ``hist`` that belongs to features ``low`` up to ``high``.

    With the `FIRST` of several runs of rows, and `FURTHER` ones that are added to it, what is counted may
    stay in the scratch, or lie in another order, until `finish_histogram`; these must be of all features.

    ``low`` must be a multiple of eight. A last eight with four features or more is padded (its padding counts
    into the spare end of ``hist``); fewer come from their columns, since a word of a few moves as much memory
    as a full one, unless they have a word of what rows are padded with. Wide data (16-bit bins) has columns
    only, and nothing to be added to.
    """
    # IN: all but scratch and hist  OUT: hist, scratch
    lanes = packing.lanes
    if is_wide(binned.wide_columns):
        _wide_histogram(binned.wide_columns, binned, low, high, run, lanes, hist)
        return
    chunked, more = packing.chunk_bits > 0, which == FURTHER
    stays = which != WHOLE and _stays(binned, packing)
    most = chunk_rows(packing) - GATHERED if chunked else run.end
    in_chunk = _in_chunk(packing) if chunked else lanes
    side = _lie_side_by_side(run, which, in_chunk, scratch)
    scratch.open[2] = side
    for f in range(low // LINE * LINE, high, LINE * LINES):
        start, stop = max(f, low), min(f + LINE * LINES, high)
        part = hist[binned.bin_start[start] * lanes :]
        counters = scratch.chunk if chunked else part
        counted = counters[: counters_of(stop - start) * in_chunk]
        since, again, turn = int64(0), more, 0
        at, entries = _next_rows(run, run.begin, scratch.entries[0])
        if stays and more:
            since, again = scratch.open[0], scratch.open[1] == 1
        stale = counted if not more or (chunked and not stays) else counted[:0]
        first_line = words_in_line(binned, start, min(start // LINE * LINE + LINE, stop))
        begin_rows(binned.lines, first_line, entries, stale)
        if chunked and run.begin == run.end and not (more or stays):
            part[: (stop - start) * 256 * lanes] = 0
        over = run.begin == run.end
        while not over:
            over, turn = at == run.end, 1 - turn
            at, ahead = _next_rows(run, at, scratch.entries[turn])
            n = len(entries)
            fill_packs(entries, int64(0), n, packing, run.weights, scratch.packs)
            # Who lists rows and writes out what they add has it for several lines.
            first = start
            while first < stop:
                last = min(first // LINE * LINE + LINE, stop)
                if last < stop:
                    after = words_in_line(binned, last, min(last + LINE, stop)), entries
                else:
                    after = first_line, ahead
                own = counters[(first - start) * 256 * in_chunk :]
                _some(binned, (first, last), entries, after, side, in_chunk, scratch, own)
                first = last
            since += n
            if chunked and (since > most or (over and not stays)):
                _spread(counters, stop - start, side, packing, again, scratch.turned, part)
                since, again = int64(0), True
            entries = ahead
        if stays:
            scratch.open[0], scratch.open[1] = since, again
        elif side and not chunked and which == WHOLE:
            sort_out(part, stop - start, scratch.turned)


@step()
def finish_histogram(binned, packing, scratch, hist):  # type: ignore[no-untyped-def]
    """Have in ``hist`` what several runs of rows have counted, in order."""
    # IN: binned, packing  OUT: scratch, hist
    features, side = len(binned.n_bins), scratch.open[2] == 1
    if _stays(binned, packing):
        if scratch.open[0] > 0 or scratch.open[1] == 0:
            added = scratch.open[1] == 1
            _spread(scratch.chunk, features, side, packing, added, scratch.turned, hist)
    elif side and packing.chunk_bits == 0:
        sort_out(hist, features, scratch.turned)


@step()
def add_up(own, others, started, begin, end):  # type: ignore[no-untyped-def]
    """Counters ``begin`` up to ``end`` of the threads that have ``started``, of which the first has its
    ``own`` histogram and the ``others`` theirs.
    """
    # IN: others, started, begin, end  OUT: own
    there = started[0] == 1
    for other in range(1, len(started)):
        if started[other] == 1:
            add = others[other - 1]
            for i in range(uint64(begin), uint64(end)):  # unsigned: it runs on vectors
                own[i] = own[i] + add[i] if there else add[i]
            there = True


@njit(inline="always")
def sum_root(binned, packing, f, hist, root):  # type: ignore[no-untyped-def]
    """Sums of the root's rows: those of the bins of any feature."""
    root.total = 0
    root.weight = 0
    root.count = 0
    for b in range(binned.bin_start[f], binned.bin_start[f + 1]):
        total, weight, count = bin_sums(hist, b * packing.lanes, packing)
        root.total += total
        root.weight += weight
        root.count += count


@njit(inline="always")
def subtract(larger, hist, begin, end):  # type: ignore[no-untyped-def]
    """Counters of the larger sibling from those of the parent."""
    for i in range(uint64(begin), uint64(end)):  # unsigned: it runs on vectors
        larger[i] -= hist[i]
