"""Histograms: for every feature and bin, the sum of gradients and the number of rows, as exact integers.

A gradient is rounded to an integer ``q`` (`mcrank.losses.quantize`), and one 64-bit counter takes
``(q << count_bits) + 1``: sum and count in one add, exact, whatever the order of rows. So a histogram, and
with it the tree, is the same for any number of threads.

Further lanes (a curvature or a row weight; counts of many rows) lie beside the first
(`mcrank.boosting.packing`). Lane ``l`` of bin ``b`` of feature ``f`` is
``hist[(bin_start[f] + b) * lanes + l]``.

Rows are counted some thousand at a time. What they add is written out, and the bins of up to 64 features,
which lie in a line or two of memory for each row, are gathered into the L2 cache; then eight features at a
time, whose counters fit the L1 cache, pass over them. Each line comes from memory once, and rows are listed
once for up to three lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.boosting.binning import LINE, line_of, words_of
from mcrank.boosting.packing import bin_sums, chunk_rows, fill_packs, spread
from mcrank.boosting.partition import list_rows
from mcrank.boosting.wide import WORD, bits_of, clear_used, count_used, has_bits, is_wide
from mcrank.kernels import step
from mcrank.kernels.memory import prefetch
from mcrank.kernels.vectors import vector_add2, vector_copy2

GATHERED = 1792  # rows gathered at a time: a quarter of what triples count before they are spread
_ASKED = 16  # rows whose words are asked for at a time, between counters that are cleared
LINES = 3  # lines counted together: counters of their features fit the L2 cache beside what is gathered
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


@njit(inline="always")
def _row(entry):  # type: ignore[no-untyped-def]
    return uint64(entry) >> uint64(32)


@njit(inline="always")
def _fetch(lines, line, ahead, i):  # type: ignore[no-untyped-def]
    """Ask for the words of row ``i`` of those that are counted next."""
    at = uint64(line[0]) + _row(ahead[min(i, uint64(len(ahead) - 1))]) * uint64(line[1])
    prefetch(lines, at)
    if line[1] < LINE // 8:  # rows of a whole line begin with one
        prefetch(lines, at + uint64(line[2]) - uint64(1))


@step()
def _begin(lines, line, entries, counters):  # type: ignore[no-untyped-def]
    """Clear the counters, and meanwhile ask for the words of the first rows, which nobody has asked for."""
    # IN: lines, line, entries  OUT: counters
    n = uint64(len(entries))
    each = uint64(len(counters)) * uint64(_ASKED) // max(n, uint64(1)) + uint64(1)
    cleared = uint64(0)
    for i in range(uint64(0), n, uint64(_ASKED)):
        if line[2] > 0:
            for k in range(i, min(i + uint64(_ASKED), n)):
                _fetch(lines, line, entries, k)
        counters[cleared : cleared + each] = 0
        cleared += each
    counters[cleared:] = 0


@step()
def _gather(lines, line, entries, words):  # type: ignore[no-untyped-def]
    """Copy words of the rows of some entries: ``line`` has where the first row's are, how far apart rows
    are, and how many words.
    """
    # IN: lines, line, entries  OUT: words (by pair, then row; the last of an odd number alone)
    base, stride, n = uint64(line[0]), uint64(line[1]), uint64(line[2])
    pairs = n >> uint64(1)
    odd = words[min(pairs, uint64(3))]
    for i in range(uint64(len(entries))):
        at = base + _row(entries[i]) * stride
        # Written out: a loop of four steps takes a third longer.
        if pairs > uint64(0):
            vector_copy2(lines, at, words[0], i << uint64(1))
        if pairs > uint64(1):
            vector_copy2(lines, at + uint64(2), words[1], i << uint64(1))
        if pairs > uint64(2):
            vector_copy2(lines, at + uint64(4), words[2], i << uint64(1))
        if pairs > uint64(3):
            vector_copy2(lines, at + uint64(6), words[3], i << uint64(1))
        if n & uint64(1):
            odd[i] = lines[at + n - uint64(1)]


@step()
def _eight(words, apart, packs, n, lanes, next_rows, hist):  # type: ignore[no-untyped-def]
    """Count the bins of eight features: with two lanes that is what the L1 cache holds, with one it leaves
    room for words and packs, which sixteen would not.
    """
    lines, line, ahead = next_rows
    for i in range(uint64(n)):
        if len(ahead) > 0:
            _fetch(lines, line, ahead, i)
        word = words[i * uint64(apart)]
        if lanes == 1:
            pack = packs[i]
            for j in range(uint64(8)):
                hist[(j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))] += pack
        else:
            for j in range(uint64(8)):
                place = (j << uint64(8)) + ((word >> (j << uint64(3))) & uint64(255))
                vector_add2((hist,), (place << uint64(1),), packs, i << uint64(1))


@step()
def _few(words, apart, held, packs, n, lanes, hist):  # type: ignore[no-untyped-def]
    """Count the first features of a word, up to three: there is no room for what the others would count."""
    f = uint64(0)
    if held >= 2 and lanes == 1:
        for i in range(uint64(n)):
            word, pack = words[i * uint64(apart)], packs[i]
            hist[word & uint64(255)] += pack
            hist[uint64(256) + ((word >> uint64(8)) & uint64(255))] += pack
        f = uint64(2)
    while f < uint64(held):
        for i in range(uint64(n)):
            place = (f << uint64(8)) + ((words[i * uint64(apart)] >> (f << uint64(3))) & uint64(255))
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
            hist[uint64(column[_row(entries[i])])] += packs[i]
    else:
        for i in range(uint64(len(entries))):
            place = uint64(column[_row(entries[i])]) << uint64(1)
            vector_add2((hist,), (place,), packs, i << uint64(1))


@step()
def _one_wide(column, entries, packs, lanes, hist):  # type: ignore[no-untyped-def]
    """Count a feature of 16-bit bins, of one to three lanes."""
    for i in range(uint64(len(entries))):
        place = uint64(lanes) * uint64(column[_row(entries[i])])
        for lane in range(uint64(lanes)):
            hist[place + lane] += packs[uint64(lanes) * i + lane]


@step()
def _two(columns, entries, packs, hist):  # type: ignore[no-untyped-def]
    """Count two features from their columns, one lane."""
    a, b = columns[0], columns[1]
    for i in range(uint64(len(entries))):
        row = _row(entries[i])
        pack = packs[i]
        hist[uint64(a[row])] += pack
        hist[uint64(256) + uint64(b[row])] += pack


@njit(inline="always")
def _line(binned, low, high):  # type: ignore[no-untyped-def]
    """Words of features ``low`` up to ``high``, all of one line: where those of the first row are, how far
    apart rows are, and how many words.
    """
    features = len(binned.n_bins)
    n_words = max(min((high + 7) // 8, words_of(features)) - low // 8, 0)
    begin, stride = line_of(low, features, binned.columns.shape[1])
    return begin + low % LINE // 8, stride, n_words


@step()
def _some(binned, part, entries, after, lanes, scratch, hist):  # type: ignore[no-untyped-def]
    """Count features ``part[0]`` up to ``part[1]``, all of one line, of the rows of some entries; ``after``
    has the line and the entries that are next. ``hist`` begins with the first feature.
    """
    low, high = part
    line = _line(binned, low, high)
    next_line, ahead = after
    n_words = line[2]
    words, packs, n = scratch.words, scratch.packs, len(entries)
    if n_words > 0:
        _gather(binned.lines, line, entries, words)
    w = int64(0)
    while w < n_words:
        # Memory is slow, and counting takes no notice of it: lines of the next rows come meanwhile.
        fetched = ahead if w == 0 and next_line[2] > 0 else ahead[:0]
        next_rows = (binned.lines, next_line, fetched)
        apart = int64(1 if w == n_words - 1 and w % 2 == 0 else 2)
        place = hist[w * 8 * 256 * lanes :]
        held = high - low - 8 * w
        if held >= 4:
            _eight(words[w // 2][w % 2 :], apart, packs, n, lanes, next_rows, place)
        else:
            _few(words[w // 2][w % 2 :], apart, held, packs, n, lanes, place)
        w += 1
    f = low + 8 * n_words
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


@step(shared=True)
def node_histogram(binned, low, high, run, packing, scratch, which, hist):  # type: ignore[no-untyped-def]
    """Fill the part of ``hist`` that belongs to features ``low`` up to ``high``.

    With the `FIRST` of several runs of rows, and `FURTHER` ones that are added to it, what is counted may
    stay in the scratch, until `finish_histogram`; these must be of all features.

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
    for f in range(low // LINE * LINE, high, LINE * LINES):
        start, stop = max(f, low), min(f + LINE * LINES, high)
        part = hist[binned.bin_start[start] * lanes :]
        counters = scratch.chunk if chunked else part
        counted = counters[: (stop - start) * 256 * in_chunk]
        since, again, turn = int64(0), more, 0
        at, entries = _next_rows(run, run.begin, scratch.entries[0])
        if stays and more:
            since, again = scratch.open[0], scratch.open[1] == 1
        stale = counted if not more or (chunked and not stays) else counted[:0]
        first_line = _line(binned, start, min(start // LINE * LINE + LINE, stop))
        _begin(binned.lines, first_line, entries, stale)
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
                    after = _line(binned, last, min(last + LINE, stop)), entries
                else:
                    after = first_line, ahead
                own = counters[(first - start) * 256 * in_chunk :]
                _some(binned, (first, last), entries, after, in_chunk, scratch, own)
                first = last
            since += n
            if chunked and (since > most or (over and not stays)):
                spread(counted, packing, again, part)
                since, again = int64(0), True
            entries = ahead
        if stays:
            scratch.open[0], scratch.open[1] = since, again


@step()
def finish_histogram(binned, packing, scratch, hist):  # type: ignore[no-untyped-def]
    """Add to ``hist`` what runs of rows have left in the scratch."""
    # IN: binned, packing  OUT: scratch, hist
    if _stays(binned, packing) and (scratch.open[0] > 0 or scratch.open[1] == 0):
        counted = scratch.chunk[: len(binned.n_bins) * 256 * _in_chunk(packing)]
        spread(counted, packing, scratch.open[1] == 1, hist)


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
