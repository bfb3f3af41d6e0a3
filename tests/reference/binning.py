"""Naive twins of `mcrank.boosting.binning`: each candidate length lays its bins value by value."""

from __future__ import annotations

import math

import numpy as np


def lay(values, length):
    """Starts of bins of ``length`` over sorted distinct values: each covers [start, start + length]."""
    starts = []
    for i, value in enumerate(values):
        if not starts or value > values[starts[-1]] + length:
            starts.append(i)
    return starts


def adaptive(values, max_bins):
    """Redo the laying for doubled lengths until at most ``max_bins`` are needed.

    Lengths are 1e-8 times a power of two; the first is the largest not above 1e-12 of the range (or 1e-8).
    """
    length = 1e-8
    span = values[-1] - values[0]
    while length > span * 1e-12:
        length /= 2
    while len(lay(values, length)) > max_bins:
        length *= 2
    return lay(values, length)


def widths(values, starts):
    """Last minus first value of each bin."""
    ends = [*starts[1:], len(values)]
    return [values[end - 1] - values[start] for start, end in zip(starts, ends, strict=True)]


def smallest_width(values, max_bins):
    """Smallest largest-width over all partitions into at most ``max_bins`` runs, by dynamic programming."""
    n = len(values)
    best = [0.0] + [math.inf] * n  # best[i]: first i values, with the bins used so far
    for _ in range(max_bins):
        best = [0.0] + [
            min(max(best[j], values[i - 1] - values[j]) for j in range(i)) for i in range(1, n + 1)
        ]
    return best[n]


def quantile(counts, max_bins):
    """Close a bin that has its fair share of the rows left, or would overshoot it by more than it lacks."""
    starts, filled = [0], 0
    for i, count in enumerate(counts):
        left = sum(counts[i:]) + filled
        share = left / (max_bins - len(starts) + 1)
        overshoot, lack = filled + count - share, share - filled
        if filled and len(starts) < max_bins and (lack <= 0 or overshoot > lack):
            starts.append(i)
            filled = 0
        filled += count
    return starts


def bin_of(x, edges, missing):
    """Bin of one raw value: how many edges lie below it; NaN is in bin 0."""
    if np.isnan(x):
        return 0
    return int(missing) + sum(bool(edge < x) for edge in edges)
