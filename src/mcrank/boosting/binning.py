"""Features become small integer bins; where each is cut, `mcrank.boosting.cuts` says.

Between two bins lies one edge, a float32 midpoint: ``x <= edge`` decides the same way for a raw value and
for its bin, so a tree grown on bins predicts on raw features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit, types, uint64

from mcrank.boosting.categories import category_bins, category_column
from mcrank.boosting.cuts import MATRIX, Distinct, ValueBins, distinct, midpoints, value_bins
from mcrank.boosting.shared_cuts import shared_bins
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.kernels.vectors import count_below
from mcrank.memory import is_on_disk, let_go, slabs, zeros_beside
from mcrank.sums import ALONE, Sums
from mcrank.threads import InOrder, run_all

_SORTED = 160 << 20  # bytes of columns, of a matrix on disk, that are sorted at a time
_TOGETHER = 16  # columns of one in memory
LINE = 64  # features whose bins lie together in rows: a cache line


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
    # Features of categories: value bins of their codes, feature f's at code_offsets[f] and behind.
    code_bins: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))
    code_offsets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.missing)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Bins of each feature, the one for missing values included."""
        return np.diff(self.offsets) + 1 + self.missing.astype(np.int64)

    @property
    def categorical(self) -> npt.NDArray[np.uint8]:
        """Which features hold categories."""
        found = np.zeros(self.n_features, dtype=np.uint8)
        found[: len(self.code_offsets) - 1] = np.diff(self.code_offsets) > 0
        return found

    def bins_of_codes(self, feature: int) -> npt.NDArray[np.uint8]:
        """Value bin of each code of a feature of categories."""
        return self.code_bins[self.code_offsets[feature] : self.code_offsets[feature + 1]]

    @property
    def wide(self) -> bool:
        """Whether some feature needs 16 bits."""
        return bool(self.counts.max() > 256)


@dataclass(frozen=True)
class BinnedDataset:
    """Bins of every row, in the two layouts the engine reads.

    ``columns[f, row]`` serves partitions and root histograms; ``lines`` the histograms of gathered rows: of
    every 64 features, row after row, a word for every eight (`line_of`). Fewer than four features left over
    are in no word. Features of more than 256 bins need 16 bits: then only ``wide_columns`` is filled.
    """

    bins: Bins
    columns: npt.NDArray[np.uint8]
    lines: npt.NDArray[np.uint64]
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
    categories: Mapping[int, int] = MappingProxyType({}),
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
    categories : mapping
        Features of categories, and how many codes each has: all have bins of their own while they fit, else
        the most frequent have, and the others share one.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.binning import find_bins
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]], dtype=np.float32)
    >>> find_bins(X, max_bins=2).counts.tolist()
    [2]
    """
    found: list[ValueBins] = []
    if sums.size > 1:
        # Groups that do not hang on this place's threads: all places take the same steps.
        with InOrder[list[Distinct]](n_jobs) as sorting:
            for first in range(0, X.shape[1], _TOGETHER):
                sorting.add(partial(_sorted, X, first, min(first + _TOGETHER, X.shape[1])))
                if len(sorting) > n_jobs:
                    found += shared_bins(sorting.take(), max_bins, binning, sums)
            while len(sorting):
                found += shared_bins(sorting.take(), max_bins, binning, sums)
    else:
        with InOrder[list[ValueBins]](n_jobs) as work:
            for first, last in _groups(X, n_jobs):
                work.add(partial(_bins_of, distinct(X, first, last), max_bins, binning))
            while len(work):
                found += work.take()
    codes = [np.empty(0, dtype=np.uint8) for _ in range(X.shape[1] if categories else 0)]
    for f, n in sorted(categories.items()):
        codes[f], found[f] = category_bins(X[:, f], n, found[f][2], max_bins, sums)
    lowest = np.concatenate([low for low, _, _ in found])
    highest = np.concatenate([high for _, high, _ in found])
    offsets = np.r_[0, np.cumsum([len(low) - 1 for low, _, _ in found])].astype(np.int64)
    ends = np.cumsum([len(low) for low, _, _ in found])
    edges = np.delete(midpoints(highest[:-1], lowest[1:]), ends[:-1] - 1)  # none between two features
    for shared in (edges, offsets):  # by every ranker trained on these bins
        shared.setflags(write=False)
    missing = np.array([missing for _, _, missing in found], dtype=np.uint8)
    code_offsets = np.cumsum([0, *map(len, codes)], dtype=np.int64)
    code_bins = np.concatenate([np.empty(0, dtype=np.uint8), *codes])
    return Bins(edges, offsets, missing, lowest, highest, code_bins, code_offsets)


def _groups(X: npt.NDArray[np.float32], n_jobs: int) -> list[tuple[int, int]]:
    """Cut features into groups to sort: up to a cache line of a row, yet little memory beside the matrix."""
    features = X.shape[1]
    size = min(max(features // (4 * n_jobs), 1), _TOGETHER)
    if is_on_disk(X):
        size = min(size, max(1, _SORTED // (4 * n_jobs * len(X))))
    return [(first, min(first + size, features)) for first in range(0, features, size)]


def _sorted(X: npt.NDArray[np.float32], first: int, last: int) -> list[Distinct]:
    return list(distinct(X, first, last))


def _bins_of(columns: Iterable[Distinct], max_bins: int, binning: str) -> list[ValueBins]:
    return [value_bins(*column, max_bins, binning) for column in columns]


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
    rows, features = data.X.shape
    # Whole lines of the cache: sparse nodes take some hundredths longer where 64 features straddle two.
    words = (0 if bins.wide else rows * words_of(features),)
    on_disk = is_on_disk(data.X)
    lines = zeros_beside(data.X, words, np.uint64) if on_disk else aligned(*words, dtype=np.uint64)
    columns = bin_columns(data, bins, n_jobs, lines)
    none = np.empty((0, 0), dtype=np.uint8 if bins.wide else np.uint16)
    return BinnedDataset(bins, *((none, lines, columns) if bins.wide else (columns, lines, none)))


@step()
def words_of(features):  # type: ignore[no-untyped-def]
    """Words of a row in all lines: one for every eight features; fewer than four left over have none.

    Those of the last line are padded to a power of two, so that no row of it lies in two lines of the cache;
    where that gives another word, features left over have it.
    """
    words = (features + 4) // 8
    last = words % (LINE // 8)
    if last == 3:
        return words + 1
    return words + LINE // 8 - last if last > 4 else words


@step()
def line_of(f, features, rows):  # type: ignore[no-untyped-def]
    """Where the bins of 64 features, with feature ``f`` among them, begin, and how far apart rows are, in
    words.
    """
    first = f // LINE * (LINE // 8)
    return first * rows, min(LINE // 8, words_of(features) - first)


def bin_columns(
    data: Dataset, bins: Bins, n_jobs: int = 1, lines: npt.NDArray[np.uint64] | None = None
) -> npt.NDArray[Any]:
    """Return the bins of every row by feature, in as many bits as `Bins.wide` says; fill ``lines`` too."""
    rows, features = data.X.shape
    columns = zeros_beside(data.X, (features, rows), np.uint16 if bins.wide else np.uint8)
    in_rows = np.empty(0, dtype=np.uint8) if lines is None else lines.view(np.uint8)
    tables = SearchTables.of(bins)
    step = max(4096, -(-rows // (4 * n_jobs)))
    if is_on_disk(data.X):
        step = min(step, slabs(data.X)[0].stop)

    def fill(start: int) -> None:
        end = min(start + step, rows)
        fill_bins(data.X, tables, bins.missing, start, end, columns, in_rows)
        let_go(data.X[start:end])

    run_all(fill, range(0, rows, step), n_jobs)
    for f in np.flatnonzero(bins.categorical).tolist():
        columns[f] = category_column(data.X[:, f], bins.bins_of_codes(f), int(bins.missing[f]))
        if len(in_rows) > 0 and f // 8 < words_of(features):
            begin, stride = line_of(f, features, rows)
            in_rows[8 * begin + f % LINE : 8 * (begin + rows * stride) : 8 * stride] = columns[f]
    for array in (columns, in_rows):
        let_go(array)
    return columns


class SearchTables(NamedTuple):
    """Edges of every feature as trees of 16 branches, in one array: the bin of a value is found in
    two to four steps, each of which compares it with the 16 numbers of a cache line at once.

    Edges, padded with infinity to whole lines, are the lowest level; every level holds the last number of
    each line of the one below it, and the highest has one line.
    """

    edges: npt.NDArray[np.float32]
    starts: npt.NDArray[np.uint64]  # features x 4: where each level begins, the highest first
    depth: npt.NDArray[np.int64]  # levels of each feature

    @classmethod
    def of(cls, bins: Bins) -> SearchTables:
        """Return the tables of some bins."""
        starts = np.zeros((bins.n_features, 4), dtype=np.uint64)
        depth = np.zeros(bins.n_features, dtype=np.int64)
        parts, end = list[npt.NDArray[np.float32]](), 0
        for f, (first, last) in enumerate(pairwise(bins.offsets.tolist())):
            # One number is infinite at least: no value is above all of a level.
            levels = [_padded(bins.edges[first:last], 1)]
            while len(levels) < 2 or len(levels[0]) > _BRANCHES:
                levels.insert(0, _padded(levels[0][_BRANCHES - 1 :: _BRANCHES], 0))
            depth[f] = len(levels)
            for k, level in enumerate(levels):
                starts[f, k] = end
                end += len(level)
            parts += levels
        edges = aligned(end, dtype=np.float32)
        np.concatenate(parts, out=edges)
        return cls(edges, starts, depth)


def _padded(values: npt.NDArray[np.float32], more: int) -> npt.NDArray[np.float32]:
    """Values and ``more`` infinities, filled up with these to a multiple of a line."""
    out = np.full(-(-(len(values) + more) // _BRANCHES) * _BRANCHES, np.inf, dtype=np.float32)
    out[: len(values)] = values
    return out


_BRANCHES = 16
_ROWS = 1024  # worked on at a time: they stay in the L2 cache
_below = count_below(_BRANCHES)
_FILL = (
    MATRIX,
    types.NamedTuple(  # type: ignore[no-untyped-call]
        (types.float32[::1], types.uint64[:, ::1], types.int64[::1]), SearchTables
    ),
    types.uint8[::1],
    types.int64,
    types.int64,
)


@njit(inline="always")
def _descend(edges, start, place, x):  # type: ignore[no-untyped-def]
    """Numbers of a level, which begins at ``start``, that are below ``x``; ``place`` lines are."""
    place *= uint64(_BRANCHES)
    return place + _below(edges, start + place, x)


@njit(inline="always")
def _put(f, i, x, place, columns, line, lines):  # type: ignore[no-untyped-def]
    """Write the bin of a row: that of its value, or 0 where it has none."""
    shift, first, stride = line
    place = uint64(0) if x != x else place + shift
    columns[f, i] = place
    if stride > uint64(0):
        lines[first + i * stride] = place


@kernel(
    [
        types.void(*_FILL, types.uint8[:, ::1], types.uint8[::1]),
        types.void(*_FILL, types.uint16[:, ::1], types.uint8[::1]),
    ]
)
def fill_bins(X, tables, missing, start, end, columns, lines):  # type: ignore[no-untyped-def]
    """Bins of rows ``start`` up to ``end``, in both layouts."""
    # IN: X, tables, missing, start, end  OUT: columns, lines (none for bins of 16 bits)
    features = X.shape[1]
    for low in range(start, end, _ROWS):
        rows = range(uint64(low), uint64(min(low + _ROWS, end)))
        for f in range(features):
            begin, stride = line_of(f, features, X.shape[0])
            stride = stride if len(lines) > 0 and f // 8 < words_of(features) else 0
            line = (uint64(missing[f]), uint64(8 * begin + f % LINE), uint64(8 * stride))
            upper, lower = tables.starts[f, 0], tables.starts[f, 1]
            if tables.depth[f] == 2:  # written out: a loop of two steps takes half as long again
                for i in rows:
                    x = X[i, uint64(f)]
                    place = _descend(tables.edges, upper, uint64(0), x)
                    place = _descend(tables.edges, lower, place, x)
                    _put(f, i, x, place, columns, line, lines)
            else:
                for i in rows:
                    x = X[i, uint64(f)]
                    place = uint64(0)
                    for level in range(tables.depth[f]):
                        place = _descend(tables.edges, tables.starts[f, level], place, x)
                    _put(f, i, x, place, columns, line, lines)
