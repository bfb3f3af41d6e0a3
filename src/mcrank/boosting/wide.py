"""Histograms of up to 65,536 bins a feature: most bins of most nodes hold no row, and those are left alone.

Behind its counters a histogram has a bit for every bin: whether it holds rows. Clearing, subtracting and
searching go from bit to bit, so a node costs as much as it has rows, however many bins there are. Bins of a
feature begin with a word of bits. Where histograms are added up between places they come without bits, and
all bins are gone through.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit, uint64

from mcrank.boosting.packing import counted
from mcrank.kernels import step
from mcrank.kernels.memory import trailing_zeros

WORD = 64  # bins of a word of bits


@step()
def is_wide(columns):  # type: ignore[no-untyped-def]
    """Whether there are columns of 16-bit bins; where there are none at all it is known when kernels are
    compiled.
    """
    if columns is None:
        return False
    return columns.shape[0] > 0


@njit(inline="always")
def has_bits(binned, hist, lanes):  # type: ignore[no-untyped-def]
    """Whether a histogram tells which of its bins hold rows."""
    return is_wide(binned.wide_columns) and len(hist) > binned.bin_start[-1] * lanes


@njit(inline="always")
def bits_of(binned, hist, lanes):  # type: ignore[no-untyped-def]
    """The bits of a histogram."""
    return hist[binned.bin_start[-1] * lanes :].view(np.uint64)


@step()
def clear_used(binned, low, high, lanes, hist):  # type: ignore[no-untyped-def]
    """Zero the counters of features ``low`` up to ``high``."""
    # IN: binned, low, high, lanes  OUT: hist
    bits = bits_of(binned, hist, lanes)
    for w in range(binned.bin_start[low] // WORD, binned.bin_start[high] // WORD):
        word = bits[w]
        while word != uint64(0):
            at = (uint64(w * WORD) + trailing_zeros(word)) * uint64(lanes)
            for lane in range(uint64(lanes)):
                hist[at + lane] = 0
            word &= word - uint64(1)
        bits[w] = uint64(0)


@step()
def count_used(column, entries, packs, lanes, hist, bits):  # type: ignore[no-untyped-def]
    """Count the rows of some entries in the bins of one feature, and note which bins they are in."""
    # IN: column, entries, packs, lanes  OUT: hist, bits (of this feature)
    for i in range(uint64(len(entries))):
        b = uint64(column[uint64(entries[i]) >> uint64(32)])
        for lane in range(uint64(lanes)):
            hist[b * uint64(lanes) + lane] += packs[i * uint64(lanes) + lane]
        bits[b >> uint64(6)] |= uint64(1) << (b & uint64(63))


@step()
def subtract_used(columns, binned, low, high, packing, larger, hist):  # type: ignore[no-untyped-def]
    """Counters of the larger sibling, of features ``low`` up to ``high``, from those of the parent;
    ``columns`` are those of 16 bits.
    """
    # IN: columns, binned, low, high, packing, hist  OUT: larger
    if columns is None:
        return
    lanes = uint64(packing.lanes)
    bits, left = bits_of(binned, hist, packing.lanes), bits_of(binned, larger, packing.lanes)
    for w in range(binned.bin_start[low] // WORD, binned.bin_start[high] // WORD):
        word = bits[w]
        while word != uint64(0):
            bit = trailing_zeros(word)
            at = (uint64(w * WORD) + bit) * lanes
            for lane in range(lanes):
                larger[at + lane] -= hist[at + lane]
            if counted(larger, at, packing) == 0:
                left[w] &= ~(uint64(1) << bit)
            word &= word - uint64(1)


@step()
def prefix_used(columns, binned, feature, hist, packing, first, scratch):  # type: ignore[no-untyped-def]
    """Prefix sums over the bins of a feature that hold rows with known values, as `split.prefix` makes them
    of all bins; return how many there are. ``columns`` are those of 16 bits.

    Cuts between two of them part the rows alike, and of equal cuts the lowest counts.
    """
    # IN: columns, binned, feature, hist, packing, first  OUT: scratch (sums, and bins: which they are)
    if columns is None:
        return int64(0)
    words, masses, counts, bins = scratch.sums[0], scratch.sums[1], scratch.sums[2], scratch.bins
    total, mass, count = first
    lanes, n = packing.lanes, uint64(0)
    bits = bits_of(binned, hist, lanes)
    sum_ = (total << packing.count_bits) + (count if packing.count_bits > 0 else int64(0))
    start, end = binned.bin_start[feature], binned.bin_start[feature + 1]
    for w in range(start // WORD, end // WORD):
        word = bits[w]
        if w * WORD == start and binned.missing[feature]:
            word &= ~uint64(1)
        while word != uint64(0):
            b = uint64(w * WORD) + trailing_zeros(word)
            at = b * uint64(lanes)
            sum_ += hist[at]
            words[n] = sum_
            if packing.second:
                mass += hist[at + uint64(1)]
                masses[n] = mass
            if packing.count_bits == 0:
                count += hist[at + uint64(lanes - 1)]
                counts[n] = count
            bins[n] = int64(b) - start
            n += uint64(1)
            word &= word - uint64(1)
    return int64(n)
