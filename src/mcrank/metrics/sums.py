"""Single passes over rows: sums and counts by query, scores that are not numbers."""

from __future__ import annotations

import numpy as np
from numba import types

from mcrank.kernels import kernel

# Grades and scores may be read-only arrays of the caller's; this takes writable ones too.
_READ = types.Array(types.float64, 1, "C", readonly=True)


@kernel(fastmath={"reassoc", "nsz"})
def level_sums(levels, starts, stops, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the levels of each query's rows are worth, in whatever order is quickest."""
    # IN: levels by row, starts, stops, worth by level  OUT: out
    for q in range(starts.shape[0]):
        total = 0.0
        for i in range(starts[q], stops[q]):
            total += worth[levels[i]]
        out[q] = total


@kernel()
def count_levels(levels, starts, stops, out):  # type: ignore[no-untyped-def]
    """Count the rows of each level in each query."""
    # IN: levels by row, starts, stops  OUT: out[query, level] (zeros before)
    for q in range(starts.shape[0]):
        held = out[q]
        for i in range(starts[q], stops[q]):
            held[levels[i]] += 1


@kernel()
def count_few_levels(levels, starts, stops, out):  # type: ignore[no-untyped-def]
    """As `count_levels`, for up to 8 levels: their counts are the bytes of one number, emptied in time."""
    # IN: levels by row, starts, stops  OUT: out[query, level] (zeros before)
    for q in range(starts.shape[0]):
        for first in range(starts[q], stops[q], 255):
            packed = np.uint64(0)
            for level in levels[first : min(first + 255, stops[q])]:
                packed += np.uint64(1) << (np.uint64(level) * np.uint64(8))
            for level in range(out.shape[1]):
                out[q, level] += (packed >> np.uint64(8 * level)) & np.uint64(255)


@kernel()
def count_sums(counts, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the rows of each query are worth, from how many there are of each level."""
    # IN: counts[query, level], worth by level  OUT: out
    for q in range(counts.shape[0]):
        total = 0.0
        for level in range(counts.shape[1]):
            if counts[q, level] > 0:
                total += counts[q, level] * worth[level]
        out[q] = total


@kernel(types.int64(_READ))
def count_nan(values):  # type: ignore[no-untyped-def]
    """Count the values that are NaN."""
    # IN: values
    missing = 0
    for i in range(values.shape[0]):
        missing += values[i] != values[i]
    return missing
