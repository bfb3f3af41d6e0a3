"""Adaptive quantization (Appendix I of the McRank paper): features become small integer bins.

A feature's distinct values are sorted once. Bins of one length ``h`` are laid only where data are, each
starting at the first value the previous one does not cover; ``h`` starts tiny and doubles until at most
``max_bins`` are needed. Laying bins greedily uses the fewest bins of that length, so the number needed
never grows with ``h`` and every candidate costs one binary search per bin, not a pass over the rows.

Between two bins lies one edge, a float32 midpoint: ``x <= edge`` decides the same way for a raw value and
for its bin, so a tree grown on bins predicts on raw features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types, uint64

from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel
from mcrank.sums import ALONE, Sums
from mcrank.threads import InOrder, run_all

BLOCK = 16  # features per block: their one-lane counters (16 x 256 x 8 bytes) just fill a 32 KB L1 cache
START_LENGTH = 1e-8  # the paper's initial bin length
BINNINGS = ("adaptive", "adaptive-refined", "quantile")
_MATRIX = types.Array(types.float32, 2, "C", readonly=True)  # the matrix of a Dataset is frozen


@dataclass(frozen=True)
class Bins:
    """Edges of every feature, flat: feature ``f`` owns ``edges[offsets[f]:offsets[f + 1]]``.

    A feature with missing values keeps bin 0 for them; its value bins then start at 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.binning import find_bins
    >>> bins = find_bins(np.array([[0.0], [1.0], [np.nan]], dtype=np.float32), max_bins=256)
    >>> bins.edges.tolist(), bins.missing.tolist(), bins.counts.tolist()
    ([0.5], [1], [3])
    """

    edges: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    missing: npt.NDArray[np.uint8]
    lowest: npt.NDArray[np.float32]  # of each value bin; feature f's first is at offsets[f] + f
    highest: npt.NDArray[np.float32]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.missing)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Bins of each feature, the one for missing values included."""
        return np.diff(self.offsets) + 1 + self.missing.astype(np.int64)

    @property
    def wide(self) -> bool:
        """Whether some feature needs 16 bits."""
        return bool(self.counts.max() > 256)


@dataclass(frozen=True)
class BinnedDataset:
    """Bins of every row, in the two layouts the engine reads.

    ``columns[f, row]`` serves partitions and root histograms; ``blocks[b, 2 * row:2 * row + 2]`` holds 16
    features of one row as two 64-bit words and serves the histograms of gathered rows; fewer than four
    features left over have no block. Features of more than 256 bins need 16 bits: then only
    ``wide_columns`` is filled.
    """

    bins: Bins
    columns: npt.NDArray[np.uint8]
    blocks: npt.NDArray[np.uint64]
    wide_columns: npt.NDArray[np.uint16]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.wide_columns.shape[1] if self.bins.wide else self.columns.shape[1])


def find_bins(
    X: npt.NDArray[np.float32],
    max_bins: int,
    binning: str = "adaptive",
    n_jobs: int = 1,
    sums: Sums = ALONE,
) -> Bins:
    """Find the bins of every feature of ``X``.

    Parameters
    ----------
    X : ndarray of float32, shape (rows, features)
        NaN is a missing value.
    max_bins : int
        Most bins a feature may use, the one for missing values included (B of the paper).
    binning : {"adaptive", "adaptive-refined", "quantile"}
        Bins of one length found by doubling, the same with the length then bisected to the smallest that
        fits, or bins of about equal row counts.
    n_jobs : int
        Threads.
    sums : Sums
        Who adds up, where ``X`` has only some of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.binning import find_bins
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]], dtype=np.float32)
    >>> find_bins(X, max_bins=2).counts.tolist()
    [2]
    """
    with InOrder[_ValueBins](n_jobs) as work:
        for f in range(X.shape[1]):
            # Alone, a feature's values are gone before the next one's are sorted.
            values = _merged(sums.gather(_distinct(X[:, f]))) if sums.size > 1 else None
            work.add(partial(_value_bins, X[:, f] if values is None else values, max_bins, binning))
        found = [work.take() for _ in range(X.shape[1])]
    lowest = np.concatenate([low for low, _, _ in found])
    highest = np.concatenate([high for _, high, _ in found])
    offsets = np.r_[0, np.cumsum([len(low) - 1 for low, _, _ in found])].astype(np.int64)
    ends = np.cumsum([len(low) for low, _, _ in found])
    edges = np.delete(midpoints(highest[:-1], lowest[1:]), ends[:-1] - 1)  # none between two features
    return Bins(
        edges, offsets, np.array([missing for _, _, missing in found], dtype=np.uint8), lowest, highest
    )


# Lowest and highest value of each value bin of one feature, and whether it has missing values.
_ValueBins = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], bool]


class _Distinct(NamedTuple):
    """Values of a feature, rising, the rows that have each, and whether others have none."""

    values: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]
    missing: bool


def _distinct(column: npt.NDArray[np.float32]) -> _Distinct:
    ordered = np.sort(column)  # NaN last
    known = int(np.searchsorted(ordered, np.nan)) if len(ordered) and np.isnan(ordered[-1]) else len(ordered)
    first_of = np.flatnonzero(np.r_[known > 0, ordered[1:known] != ordered[: max(known - 1, 0)]])
    # 0 is added so that of -0.0 and 0.0, which are equal, it does not matter which comes first.
    values = ordered[first_of] + np.float32(0)
    return _Distinct(values, np.diff(np.r_[first_of, known]), known < len(ordered))


def _merged(parts: list[_Distinct]) -> _Distinct:
    """What all parts of a feature's rows have together."""
    if len(parts) == 1:
        return parts[0]
    values, at = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.zeros(len(values), dtype=np.int64)
    np.add.at(counts, at, np.concatenate([part.counts for part in parts]))
    return _Distinct(values, counts, any(part.missing for part in parts))


def _value_bins(column: npt.NDArray[np.float32] | _Distinct, max_bins: int, binning: str) -> _ValueBins:
    """Lowest and highest value of each value bin of one feature, and whether it has missing values."""
    values, counts, missing = column if isinstance(column, _Distinct) else _distinct(column)
    room = max_bins - missing
    if len(values) == 0:
        return np.zeros(1, dtype=np.float32), np.zeros(1, dtype=np.float32), missing
    if len(values) <= room:
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
    length = START_LENGTH
    smallest = (values[-1] - values[0]) * 1e-12
    while length > smallest > 0:
        length /= 2
    starts = np.empty(max_bins, dtype=np.int64)
    count = cover(values, length, starts)
    while count < 0:
        length *= 2
        count = cover(values, length, starts)
    if refine:
        low, high = length / 2, length
        for _ in range(50):
            middle = (low + high) / 2
            if cover(values, middle, starts) < 0:
                low = middle
            else:
                high = middle
        count = cover(values, high, starts)
    return starts[:count].copy()


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


@kernel("int64[::1](int64[::1], int64)")
def quantile_starts(counts, max_bins):  # type: ignore[no-untyped-def]
    """Starts of at most ``max_bins`` bins of about equal row counts over distinct values.

    The fair share is worked out anew after each bin, so values with many rows of their own do not starve
    the rest.
    """
    # IN: counts, max_bins  OUT: starts (returned)
    starts = np.empty(max_bins, np.int64)
    rows = counts.sum()
    starts[0] = 0
    bins = 1
    filled = 0
    for i in range(len(counts)):
        share = (rows + filled) / (max_bins - bins + 1)
        # Close the bin before a value that would overshoot the share by more than stopping falls short of it.
        if (
            filled > 0
            and bins < max_bins
            and (filled >= share or filled + counts[i] - share > share - filled)
        ):
            starts[bins] = i
            bins += 1
            filled = 0
        filled += counts[i]
        rows -= counts[i]
    return starts[:bins].copy()


def bin_dataset(data: Dataset, bins: Bins, n_jobs: int = 1) -> BinnedDataset:
    """Map every row of ``data`` to its bins.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.boosting.binning import bin_dataset, find_bins
    >>> data = Dataset([[0.0], [3.0], [1.0]], y=[0, 1, 0], qid=[1, 1, 1])
    >>> bin_dataset(data, find_bins(data.X, max_bins=256)).columns.tolist()
    [[0, 2, 1]]
    """
    X = data.X
    rows, features = X.shape
    wide = bins.wide
    n_blocks = (features + BLOCK - 4) // BLOCK  # fewer than 4 left over are read from their columns
    columns = np.empty((0, 0) if wide else (features, rows), dtype=np.uint8)
    blocks = np.zeros((0, 0) if wide else (n_blocks, 2 * rows), dtype=np.uint64)
    wide_columns = np.empty((features, rows) if wide else (0, 0), dtype=np.uint16)
    block_bytes = blocks.view(np.uint8)
    step = max(4096, -(-rows // (4 * n_jobs)))

    def fill(start: int) -> None:
        end = min(start + step, rows)
        if wide:
            _fill_wide(X, bins.edges, bins.offsets, bins.missing, start, end, wide_columns)
        else:
            _fill(X, bins.edges, bins.offsets, bins.missing, start, end, columns, block_bytes)

    run_all(fill, range(0, rows, step), n_jobs)
    return BinnedDataset(bins, columns, blocks, wide_columns)


_CHUNK = 1024  # rows searched together


@njit(inline="always")
def _search(X, f, low, n, edges, first, last, values, places):  # type: ignore[no-untyped-def]
    """Edges of feature ``f`` below each of ``n`` values from row ``low``, into ``places``.

    All rows take each step of the binary search together: the steps of different rows do not wait for each
    other, and nothing depends on a branch that is wrong half of the time.
    """
    for i in range(n):
        values[i] = X[low + i, f]
        places[i] = first
    size = uint64(last - first)
    while size > uint64(1):
        half = size >> uint64(1)
        for i in range(n):
            at = places[i]
            places[i] = at + half * uint64(edges[at + half - uint64(1)] < values[i])
        size -= half
    for i in range(n):
        at = places[i]
        if size == uint64(1):
            at += uint64(edges[at] < values[i])
        places[i] = at - uint64(first)


_FILL = (_MATRIX, types.float32[::1], types.int64[::1], types.uint8[::1], types.int64, types.int64)


@kernel(types.void(*_FILL, types.uint8[:, ::1], types.uint8[:, ::1]))
def _fill(X, edges, offsets, missing, start, end, columns, blocks):  # type: ignore[no-untyped-def]
    # IN: X, edges, offsets, missing, start, end  OUT: columns, blocks
    values = np.empty(_CHUNK, np.float32)
    places = np.empty(_CHUNK, np.uint64)
    for low in range(start, end, _CHUNK):
        n = min(_CHUNK, end - low)
        for f in range(X.shape[1]):
            _search(X, f, low, n, edges, offsets[f], offsets[f + 1], values, places)
            in_block = f // BLOCK < len(blocks)
            lane = f % BLOCK
            shift = uint64(missing[f])
            for i in range(n):
                b = places[i] + shift
                if values[i] != values[i]:
                    b = uint64(0)
                columns[f, low + i] = b
                if in_block:
                    blocks[f // BLOCK, (low + i) * BLOCK + lane] = b


@kernel(types.void(*_FILL, types.uint16[:, ::1]))
def _fill_wide(X, edges, offsets, missing, start, end, columns):  # type: ignore[no-untyped-def]
    # IN: X, edges, offsets, missing, start, end  OUT: columns
    values = np.empty(_CHUNK, np.float32)
    places = np.empty(_CHUNK, np.uint64)
    for low in range(start, end, _CHUNK):
        n = min(_CHUNK, end - low)
        for f in range(X.shape[1]):
            _search(X, f, low, n, edges, offsets[f], offsets[f + 1], values, places)
            for i in range(n):
                b = places[i] + uint64(missing[f])
                columns[f, low + i] = uint64(0) if values[i] != values[i] else b
