"""Where a feature is cut: its distinct values, and adaptive quantization (Appendix I of the McRank paper).

A feature's distinct values are sorted once. Bins of one length ``h`` are laid only where data are, each
starting at the first value the previous one does not cover; ``h`` starts tiny and doubles until at most
``max_bins`` are needed. Laying bins greedily uses the fewest bins of that length, so the number needed
never grows with ``h`` and every candidate costs one binary search per bin, not a pass over the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types, uint64

from mcrank.kernels import kernel
from mcrank.memory import is_on_disk, let_go, slabs

START_LENGTH = 1e-8  # the paper's initial bin length
REFINEMENTS = 50  # bisections of a length: as many as a float has digits
BINNINGS = ("adaptive", "adaptive-refined", "quantile")
MATRIX = types.Array(types.float32, 2, "C", readonly=True)  # the matrix of a Dataset is frozen

# Lowest and highest value of each value bin of one feature, and whether it has missing values.
ValueBins = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], bool]


class Distinct(NamedTuple):
    """Values of a feature, rising, the rows that have each, and whether others have none."""

    values: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]
    missing: bool


def distinct(X: npt.NDArray[np.float32], first: int, last: int) -> Iterator[Distinct]:
    """Distinct values of features ``first`` up to ``last``, one after the other."""
    columns = np.empty((last - first, len(X)), dtype=np.float32)
    if is_on_disk(X):
        for part in slabs(X):
            some = np.empty((last - first, part.stop - part.start), dtype=np.float32)
            take_columns(X[part], first, some)
            columns[:, part] = some
            let_go(X[part])
    else:
        take_columns(X, first, columns)
    for column in columns:
        column.sort()  # NaN last
        counts = np.empty(len(column), dtype=np.int64)
        found, known = count_distinct(column, counts)
        yield Distinct(column[:found], counts[:found], known < len(column))


@kernel(types.void(MATRIX, types.int64, types.float32[:, ::1]))
def take_columns(X, first, columns):  # type: ignore[no-untyped-def]
    """Copy neighbouring columns, a few rows at a time, whose cache lines are then read once."""
    # IN: X, first  OUT: columns
    for low in range(0, X.shape[0], 64):
        rows = range(uint64(low), uint64(min(low + 64, X.shape[0])))
        for j in range(columns.shape[0]):
            for i in rows:
                columns[j, i] = X[i, first + j]


@kernel("UniTuple(int64, 2)(float32[::1], int64[::1])")
def count_distinct(ordered, counts):  # type: ignore[no-untyped-def]
    """Move the distinct values of a sorted column to its front and count each.

    Returns how many there are, and how many rows are not missing (NaN, last).
    """
    # IN: ordered  OUT: ordered (its front), counts
    known, end = 0, len(ordered)
    while known < end:
        middle = (known + end) // 2
        if ordered[middle] == ordered[middle]:
            known = middle + 1
        else:
            end = middle
    # Where each run of equals ends, without a branch that would be wrong half of the time.
    found = uint64(0)
    for i in range(uint64(1), uint64(known)):
        counts[found] = i
        found += uint64(ordered[i] != ordered[i - uint64(1)])
    begin = 0
    if known > 0:
        counts[found] = known
        found += uint64(1)
    for k in range(found):
        # 0 is added so that of -0.0 and 0.0, which are equal, it does not matter which comes first.
        ordered[k] = ordered[begin] + np.float32(0)
        last, counts[k] = counts[k], counts[k] - begin
        begin = last
    return found, known


def merged(parts: list[Distinct]) -> Distinct:
    """What all parts of a feature's rows have together."""
    if len(parts) == 1:
        return parts[0]
    values, at = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, at, np.concatenate([part.counts for part in parts]))
    return Distinct(values, counts, any(part.missing for part in parts))


def value_bins(
    values: npt.NDArray[np.float32], counts: npt.NDArray[np.int64], missing: bool, max_bins: int, binning: str
) -> ValueBins:
    """Cut one feature, given as `Distinct`, into at most ``max_bins`` bins."""
    room = max_bins - missing
    if len(values) == 0:
        return np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32), missing
    if len(values) <= room:
        values = values.copy()  # lets go of the column
        return values, values, missing  # a bin per value loses nothing, whatever their distances
    if binning == "quantile":
        starts = quantile_starts(counts, room)
    else:
        starts = adaptive_starts(values.astype(np.float64), room, refine=binning == "adaptive-refined")
    return values[starts], values[np.r_[starts[1:], len(values)] - 1], missing


def midpoints(below: npt.NDArray[np.float32], above: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Largest float32 not above the middle of each gap: ``below <= edge < above`` always holds."""
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    edges = middle.astype(np.float32)
    high = edges.astype(np.float64) > middle
    edges[high] = np.nextafter(edges[high], np.float32(-np.inf))
    return edges


def adaptive_starts(
    values: npt.NDArray[np.float64], max_bins: int, refine: bool = False
) -> npt.NDArray[np.int64]:
    """Where each adaptive bin starts in the sorted distinct ``values``.

    The length doubles on the grid 1e-8, 2e-8, ... of the paper, continued downwards to 1e-12 of the range, so
    that a feature of tiny values is not merged into one bin; where 1e-8 needs too many bins, as for ordinary
    features, the outcome is the paper's.
    """
    span = float(values[-1] - values[0])
    unit, starts = first_length(span), np.empty(max_bins, dtype=np.int64)
    length = math.ldexp(unit, fitting_power(values, span, unit, starts))
    count = cover(values, length, starts)
    if refine:
        short, long = length / 2, length
        for _ in range(REFINEMENTS):
            length = (short + long) / 2
            if cover(values, length, starts) < 0:
                short = length
            else:
                long = length
        count = cover(values, long, starts)
    return starts[:count].copy()


def first_length(span: float) -> float:
    """Shortest length of a bin to try, for values so far apart."""
    length = START_LENGTH
    while length > span * 1e-12 > 0:
        length /= 2
    return length


def fitting_power(
    values: npt.NDArray[np.float64], span: float, unit: float, starts: npt.NDArray[np.int64]
) -> int:
    """How often ``unit`` doubles until bins of that length fit ``starts``."""
    # Longer bins are never more: the first doubling that fits is found by bisection.
    low, high = -1, max(0, math.frexp(span / unit)[1])
    while cover(values, math.ldexp(unit, high), starts) < 0:
        low, high = high, high + 1
    while high - low > 1:
        middle = (low + high) // 2
        if cover(values, math.ldexp(unit, middle), starts) < 0:
            low = middle
        else:
            high = middle
    return high


@kernel("int64(float64[::1], float64, int64[::1])")
def cover(values, length, starts):  # type: ignore[no-untyped-def]
    """Lay bins of ``length`` over sorted values; the number laid, or -1 when ``starts`` is too short."""
    # IN: values, length  OUT: starts
    n = len(values)
    count = 0
    i = 0
    while i < n:
        if count == len(starts):
            return -1
        starts[count] = i
        count += 1
        end = values[i] + length
        # Gallop, then bisect: the first value beyond the bin.
        step = 1
        low = i + 1
        while low + step <= n and values[low + step - 1] <= end:
            low += step
            step *= 2
        high = min(low + step - 1, n)
        while low < high:
            middle = (low + high) // 2
            if values[middle] <= end:
                low = middle + 1
            else:
                high = middle
        i = low
    return count


@kernel("int64[::1](int64[::1], int64)", allocates=True)
def quantile_starts(counts, max_bins):  # type: ignore[no-untyped-def]
    """Starts of at most ``max_bins`` bins of about equal row counts over distinct values.

    The fair share is worked out anew after each bin, so values with many rows of their own do not starve
    the rest.
    """
    # IN: counts, max_bins  OUT: starts (returned)
    starts = np.empty(max_bins, np.int64)
    rows = counts.sum()
    share = rows / max_bins
    starts[0] = 0
    bins = 1
    filled = 0
    for i in range(len(counts)):
        # Close the bin before a value that would overshoot the share by more than stopping falls short of it.
        if (
            filled > 0
            and bins < max_bins
            and (filled >= share or filled + counts[i] - share > share - filled)
        ):
            starts[bins] = i
            bins += 1
            rows -= filled
            filled = 0
            share = rows / (max_bins - bins + 1)
        filled += counts[i]
    return starts[:bins].copy()
