"""Rows sent down trees in bins: those held out, whose scores every round moves.

A tree is built again split by split, on all rows of a chunk at once: rows of the leaf that was split whose
bin is beyond the cut change to the new leaf. That is a comparison and a choice of bytes, 32 or 64 rows an
instruction, where a walk from the root waits for memory and for branches that go wrong: 1 to 10 ns a row and
tree instead of 30 to 70. Bins decide as raw values do (`mcrank.boosting.binning`), so scores are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.arrays import ByteArray, FeatureArray, FloatArray, IntArray, RowArray
from mcrank.boosting.binning import BinnedDataset, Bins, bin_columns
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel
from mcrank.losses.quantize import ROWS_PER_TASK as STEP
from mcrank.losses.quantize import Run, starts
from mcrank.scorers.forest.block_kernels import in_set

_ABOVE_ALL = np.finfo(np.float32).max  # a cut with this threshold parts known from missing values
PART = 16384  # rows worked on at a time
MOST_LEAVES = 256  # a leaf's number is a byte; larger trees are quicker walked


class BinColumns(NamedTuple):
    """Bins of some rows, by feature, and the edges between them."""

    columns: ByteArray
    edges: FeatureArray
    offsets: IntArray
    missing: ByteArray
    code_bins: ByteArray
    code_offsets: IntArray

    @classmethod
    def own(cls, columns: ByteArray, bins: Bins) -> BinColumns:
        """Return rows that are in these bins."""
        return cls(columns, bins.edges, bins.offsets, bins.missing, bins.code_bins, bins.code_offsets)

    @classmethod
    def of(cls, data: Dataset, bins: Bins, n_jobs: int) -> BinColumns:
        """Return the rows of a data set in bins of another; none at all where a bin does not fit a byte.

        A feature that has missing values here and not there gets a bin for them.
        """
        missing = bins.missing | np.isnan(data.X.min(axis=0))
        own = replace(bins, missing=missing)
        columns = np.empty((0, 0), np.uint8) if own.wide else bin_columns(data, own, n_jobs)
        return cls.own(columns, own)


_NO_SETS: dict[str, Any] = {
    "category_set": np.empty(0, dtype=np.int32),
    "set_offsets": np.zeros(1, dtype=np.int64),
    "set_words": np.empty(0, dtype=np.uint64),
}


class TreeNodes(NamedTuple):
    """Nodes of a tree."""

    feature: RowArray
    threshold: FeatureArray
    missing_left: ByteArray
    left: RowArray
    right: RowArray
    value: FloatArray
    category_set: RowArray
    set_offsets: IntArray
    set_words: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, tree: dict[str, Any]) -> TreeNodes:
        """Return the nodes of a tree given by name."""
        return cls(*((_NO_SETS | tree)[name] for name in cls._fields))


@njit(inline="always")
def _parents(tree, parent):  # type: ignore[no-untyped-def]
    """Find the parent of each left child; False unless children are numbered as splits were made."""
    for at in range(len(tree.left)):
        child = tree.left[at]
        if child >= 0:
            if child <= at or child % 2 == 0 or tree.right[at] != child + 1:
                return False
            parent[child] = at
    return True


@njit(inline="always")
def _last_left(rows, f, threshold):  # type: ignore[no-untyped-def]
    """Last bin left of a threshold; -1 where bins cannot tell."""
    first, last = rows.offsets[f], rows.offsets[f + 1]
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if rows.edges[middle] < threshold:
            low = middle + 1
        else:
            high = middle
    known = rows.edges[low] == threshold if low < last else threshold == _ABOVE_ALL
    return low - first + rows.missing[f] if known else -1


@njit(inline="always")
def _fill_sides(rows, f, tree, at, sides):  # type: ignore[no-untyped-def]
    """Which bins of a feature of categories go right; False where categories of one bin go different ways."""
    first, n = rows.code_offsets[f], rows.code_offsets[f + 1] - rows.code_offsets[f]
    sides[:] = 2
    for code in range(n):
        b = rows.code_bins[first + code] + rows.missing[f]
        side = 0 if in_set(np.float32(code), tree.category_set[at], tree) else 1
        if sides[b] == 1 - side:
            return False
        sides[b] = side
    if rows.missing[f] == 1:
        sides[0] = 1 - tree.missing_left[at]
    return True


@kernel(allocates=True)
def route(rows, tree, start, leaf, scores):  # type: ignore[no-untyped-def]
    """Add to the scores of rows from ``start`` on the values of the leaves they fall into.

    False, and nothing done, where that cannot be told from bytes: for a tree that was not grown on these
    bins or has too many leaves, and for bins of 16 bits.
    """
    # IN: rows, tree, start  OUT: leaf (scratch, as long as scores), scores (of these rows)
    n = np.uint64(len(scores))
    for i in range(n):
        leaf[i] = 0
    nodes = len(tree.left)
    parent = np.zeros(nodes, np.int64)
    if len(rows.columns) == 0 or nodes >= 2 * MOST_LEAVES or not _parents(tree, parent):
        return False
    number = np.zeros(nodes, np.uint8)  # of each node while it is a leaf
    sides = np.zeros(256, np.uint8)
    value = np.zeros(MOST_LEAVES)
    value[0] = tree.value[0]
    for child in range(1, nodes, 2):
        at = parent[child]
        f = tree.feature[at]
        by_set = len(tree.set_offsets) > 1 and tree.category_set[at] >= 0
        cut = -1
        if by_set and not _fill_sides(rows, f, tree, at, sides):
            return False
        if not by_set:
            cut = _last_left(rows, f, tree.threshold[at])
            if cut < 0:
                return False
        last = np.uint8(cut)  # as wide as a bin: the comparison runs on vectors of that width
        old, new = number[at], np.uint8((child + 1) // 2)
        number[child], number[child + 1] = old, new
        value[old], value[new] = tree.value[child], tree.value[child + 1]
        column = rows.columns[f, start : start + len(scores)]
        if by_set:
            for i in range(n):
                leaf[i] = new if (sides[column[i]] == 1) & (leaf[i] == old) else leaf[i]
        elif rows.missing[f] == 1 and tree.missing_left[at] == 0:
            for i in range(n):
                goes = (column[i] > last) | (column[i] == 0)
                leaf[i] = new if goes & (leaf[i] == old) else leaf[i]
        else:
            for i in range(n):
                leaf[i] = new if (column[i] > last) & (leaf[i] == old) else leaf[i]
    for i in range(n):
        scores[i] += value[leaf[i]]
    return True


def route_all(rows: BinColumns, tree: dict[str, Any], scores: FloatArray) -> bool:
    """`route` for all rows, in parts that stay in the caches."""
    nodes, leaf = TreeNodes.of(tree), np.empty(PART, dtype=np.uint8)
    return all(route(rows, nodes, s, leaf, scores[s : s + PART]) for s in range(0, len(scores), PART))


def fallen_in_bins(binned: BinnedDataset, tree: dict[str, Any], run: Run) -> RowArray:
    """Return the number of the leaf each row falls into, of a tree grown on these bins."""
    bins, nodes = binned.bins, TreeNodes.of(tree)
    cuts = np.zeros(len(nodes.feature), dtype=np.int64)
    for at in np.flatnonzero(nodes.feature >= 0):
        f, threshold = nodes.feature[at], nodes.threshold[at]
        edges = bins.edges[bins.offsets[f] : bins.offsets[f + 1]]
        cuts[at] = np.searchsorted(edges, threshold) + bins.missing[f]
    columns = binned.wide_columns if bins.wide else binned.columns
    leaf = np.empty(binned.n_rows, dtype=np.int32)
    run(lambda s: leaf_in_bins(columns, bins.missing, nodes, cuts, s, leaf[s : s + STEP]), starts(len(leaf)))
    return leaf


@kernel()
def leaf_in_bins(columns, missing, tree, cuts, start, leaf):  # type: ignore[no-untyped-def]
    """Number of the leaf that rows from ``start`` on fall into; ``cuts`` are the last bins that go left."""
    # IN: columns, missing, tree, cuts, start  OUT: leaf
    for i in range(len(leaf)):
        node = 0
        while tree.feature[node] >= 0:
            f = tree.feature[node]
            place = columns[f, start + i]
            if missing[f] == 1 and place == 0:
                goes_left = tree.missing_left[node] == 1
            else:
                goes_left = place <= cuts[node]
            node = tree.left[node] if goes_left else tree.right[node]
        leaf[i] = node
