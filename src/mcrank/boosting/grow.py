"""Best-first growth of one tree: always split the leaf whose split gains most, until there are J leaves.

A tree is grown inside one kernel, or, when there are fewer trees than threads, by several threads that
share the feature blocks of each histogram. Both give the same tree: histograms are exact integers.
"""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.boosting.binning import BLOCK, BinnedDataset
from mcrank.boosting.histogram import fill_pairs, node_histogram
from mcrank.boosting.partition import fill_entries, partition, partition_root
from mcrank.boosting.split import NODE, best_split

FLOAT32_MAX = np.finfo(np.float32).max


class Grounds(NamedTuple):
    """What a tree grows on: the binned rows and the bins, as the kernels take them."""

    columns: npt.NDArray[np.uint8]
    wide_columns: npt.NDArray[np.uint16]
    blocks: npt.NDArray[np.uint64]
    bin_start: npt.NDArray[np.int64]
    n_bins: npt.NDArray[np.int64]
    missing: npt.NDArray[np.uint8]
    lowest: npt.NDArray[np.float32]
    highest: npt.NDArray[np.float32]
    value_start: npt.NDArray[np.int64]

    @classmethod
    def of(cls, binned: BinnedDataset) -> Grounds:
        """Return the grounds of a binned dataset."""
        bins = binned.bins
        counts = bins.counts
        # 8-bit features get 256 counters each, so that a kernel knows their places at compile time.
        width = counts if bins.wide else np.full(bins.n_features, 256)
        return cls(
            binned.columns,
            binned.wide_columns,
            binned.blocks,
            np.r_[0, np.cumsum(width)].astype(np.int64),
            counts.astype(np.int64),
            bins.missing,
            bins.lowest,
            bins.highest,
            bins.offsets[:-1] + np.arange(bins.n_features),
        )

    @property
    def n_blocks(self) -> int:
        """Number of histogram blocks: 16 features each, or one when bins are wide."""
        return int(self.wide_columns.shape[0] or -(-self.columns.shape[0] // BLOCK))


class Rules(NamedTuple):
    """Numbers that rule growth: leaves, rows per leaf, and how gradients are packed."""

    num_leaves: int
    min_rows: int
    count_bits: int
    lanes: int
    derived_bits: int  # scale of q when the second lane is |q|(1 - |q|)


class Workspace(NamedTuple):
    """Memory one growing tree needs, allocated once per thread."""

    nodes: npt.NDArray[Any]
    hists: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    spare: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int64]
    work: npt.NDArray[np.float64]

    @classmethod
    def allocate(cls, grounds: Grounds, rows: int, rules: Rules) -> Workspace:
        """Return memory for trees on ``rows`` rows; histograms end in room for a last block's padding."""
        counters = int(grounds.bin_start[-1]) + (0 if grounds.wide_columns.shape[0] else 4 * 256)
        return cls(
            np.zeros(2 * rules.num_leaves - 1, dtype=NODE),
            np.empty((max(1, rules.num_leaves - 1), counters * rules.lanes), dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(2 * rows if rules.lanes == 2 else 0, dtype=np.int64),
            np.empty((4, int(grounds.n_bins.max())), dtype=np.float64),
        )


@njit(nogil=True)
def _start_node(nodes, at, begin, end, total, weight, slot):  # type: ignore[no-untyped-def]
    node = nodes[at]
    node.begin = begin
    node.end = end
    node.total = total
    node.weight = weight
    node.slot = slot
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    node.left = -1
    node.right = -1


@njit(nogil=True, cache=True)
def start_root(grounds, rules, gradients, rows, weights, ready, ws):  # type: ignore[no-untyped-def]
    """Set up the root node; unless its histogram is ``ready``, also its entries."""
    # IN: grounds, rules, gradients, rows, weights, ready  OUT: ws
    n = len(rows) if len(rows) > 0 else len(gradients)
    total = np.int64(0)
    weight = np.int64(0)
    if len(rows) > 0:
        for i in range(n):
            total += np.int64(gradients[rows[i]])
    else:
        for i in range(n):
            total += np.int64(gradients[i])
    if not ready:
        fill_entries(gradients, rows, ws.entries)
        if rules.lanes == 2:
            fill_pairs(ws.entries, 0, n, rules.count_bits, weights, rules.derived_bits, ws.pairs)
            for i in range(n):
                weight += ws.pairs[2 * i + 1]
    _start_node(ws.nodes, 0, 0, n, (total << rules.count_bits) + n, weight, 0)


@njit(nogil=True)
def _best_leaf(nodes, n_nodes):  # type: ignore[no-untyped-def]
    """Leaf with the largest gain, the earliest among equals; -1 when no split is worth making."""
    best = -1
    gain = 0.0
    for i in range(n_nodes):
        if nodes[i].left < 0 and nodes[i].gain > gain:
            gain = nodes[i].gain
            best = i
    return best


@njit(nogil=True)
def _divide(grounds, rules, at, n_nodes, slot, gradients, from_root, ws):  # type: ignore[no-untyped-def]
    """Split leaf ``at`` into nodes ``n_nodes`` and ``n_nodes + 1``; return the smaller of the two.

    The larger child takes over the parent's histogram (from which the smaller one's is then subtracted).
    """
    node = ws.nodes[at]
    f = node.feature
    skip = 1 if grounds.missing[f] and not node.missing_left else 0
    if from_root:
        middle = partition_root(grounds.columns[f], node.bin, skip, gradients, ws.entries, ws.spare)
    elif grounds.wide_columns.shape[0] > 0:
        middle = partition(
            grounds.wide_columns[f], node.bin, skip, node.begin, node.end, ws.entries, ws.spare
        )
    else:
        middle = partition(grounds.columns[f], node.bin, skip, node.begin, node.end, ws.entries, ws.spare)
    node.left = n_nodes
    node.right = n_nodes + 1
    left_is_small = middle - node.begin <= node.end - middle
    _start_node(
        ws.nodes, n_nodes, node.begin, middle, node.left_total, node.left_weight,
        slot if left_is_small else node.slot,
    )  # fmt: skip
    _start_node(
        ws.nodes, n_nodes + 1, middle, node.end, node.total - node.left_total, node.weight - node.left_weight,
        node.slot if left_is_small else slot,
    )  # fmt: skip
    return n_nodes if left_is_small else n_nodes + 1


@njit(nogil=True)
def _count(grounds, rules, node, first, last, ws):  # type: ignore[no-untyped-def]
    """Histogram of a node for blocks ``first`` up to ``last``."""
    node_histogram(
        grounds.columns, grounds.wide_columns, grounds.blocks, grounds.bin_start, first, last,
        ws.entries, node.begin, node.end, rules.count_bits, rules.lanes, ws.pairs, ws.hists[node.slot],
    )  # fmt: skip


@njit(nogil=True)
def _child_histograms(grounds, rules, small, large, first, last, ws):  # type: ignore[no-untyped-def]
    """Histograms of two siblings for some blocks: count the smaller, subtract it for the larger."""
    _count(grounds, rules, ws.nodes[small], first, last, ws)
    hist = ws.hists[ws.nodes[small].slot]
    other = ws.hists[ws.nodes[large].slot]
    step = 1 if grounds.wide_columns.shape[0] > 0 else BLOCK
    low = grounds.bin_start[first * step] * rules.lanes
    high = grounds.bin_start[min(last * step, len(grounds.missing))] * rules.lanes
    for i in range(low, high):
        other[i] -= hist[i]


@njit(nogil=True)
def _find_split(grounds, rules, features, first, last, hist, work, node):  # type: ignore[no-untyped-def]
    if node.end - node.begin >= 2 * rules.min_rows:
        best_split(
            hist, grounds.bin_start, grounds.n_bins, grounds.missing, features, first, last, grounds.lowest,
            grounds.highest, grounds.value_start, rules.lanes, rules.count_bits, rules.min_rows, work, node,
        )  # fmt: skip


@njit(nogil=True, cache=True)
def grow(grounds, rules, gradients, rows, weights, features, ready, ws):  # type: ignore[no-untyped-def]
    """Grow a whole tree; return its number of nodes.

    Parameters
    ----------
    gradients : int32[rows of the data]
        Rounded gradients q of this output.
    rows : int64[]
        Rows to grow on, ascending; empty for all.
    weights : int64[]
        Second lane by row; empty when there is none or it is derived from q.
    features : int32[]
        Features that may split, ascending.
    ready : bool
        Whether ``ws.hists[0]`` already holds the root's histogram; then ``rows`` must be empty.
    """
    # IN: grounds, rules, gradients, rows, weights, features, ready  OUT: ws
    start_root(grounds, rules, gradients, rows, weights, ready, ws)
    nodes = ws.nodes
    wide = grounds.wide_columns.shape[0]
    n_blocks = wide if wide > 0 else (grounds.columns.shape[0] + BLOCK - 1) // BLOCK
    # Typed, not literal: Numba would compile everything below a second time for the literal's own type.
    none = np.int64(0)
    n_nodes = np.int64(1)
    if not ready:
        _count(grounds, rules, nodes[0], none, n_blocks, ws)
    _find_split(grounds, rules, features, none, len(features), ws.hists[0], ws.work, nodes[0])
    while True:
        small = split_best(grounds, rules, n_nodes, gradients, weights, ready, ws)
        if small < 0:
            break
        large = 2 * n_nodes + 1 - small
        n_nodes += 2
        if _worth_searching(rules, n_nodes, nodes[large]):
            _child_histograms(grounds, rules, small, large, none, n_blocks, ws)
            for child in (small, large):
                hist = ws.hists[nodes[child].slot]
                _find_split(grounds, rules, features, none, len(features), hist, ws.work, nodes[child])
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes


@njit(nogil=True, cache=True)
def _worth_searching(rules, n_nodes, large):  # type: ignore[no-untyped-def]
    """Whether children may be split further: there is a leaf to spend and the larger one has the rows."""
    return n_nodes < 2 * rules.num_leaves - 1 and large.end - large.begin >= 2 * rules.min_rows


@njit(nogil=True, cache=True)
def split_best(grounds, rules, n_nodes, gradients, weights, ready, ws):  # type: ignore[no-untyped-def]
    """Split the best leaf into two new nodes; return the smaller, or -1 when the tree is done."""
    # IN: grounds, rules, n_nodes, gradients, weights, ready  OUT: ws
    if n_nodes >= 2 * rules.num_leaves - 1:
        return -1
    at = _best_leaf(ws.nodes, n_nodes)
    if at < 0:
        return -1
    slot = (n_nodes + 1) // 2
    small = _divide(grounds, rules, at, n_nodes, slot, gradients, ready and at == 0, ws)
    node = ws.nodes[small]
    if rules.lanes == 2:
        fill_pairs(ws.entries, node.begin, node.end, rules.count_bits, weights, rules.derived_bits, ws.pairs)
    return small


def tree_arrays(
    nodes: npt.NDArray[Any], grounds: Grounds, edges: npt.NDArray[np.float32], unit: float
) -> dict[str, npt.NDArray[Any]]:
    """Node arrays of a grown tree as `ForestBuilder.append` takes them, all but the values.

    ``unit`` turns an integer gain into the loss's own scale.
    """
    inner = nodes["left"] >= 0
    feature = np.where(inner, nodes["feature"], -1).astype(np.int32)
    threshold = np.zeros(len(nodes), dtype=np.float32)
    f = feature[inner]
    value_bin = nodes["bin"][inner] - grounds.missing[f]
    last = value_bin == grounds.n_bins[f] - 1 - grounds.missing[f]
    place = grounds.value_start[f] - f + np.where(last, 0, value_bin)
    # A cut after the last value bin parts known from missing values: every number is below it.
    padded = edges if len(edges) else np.zeros(1, dtype=np.float32)
    threshold[inner] = np.where(last, FLOAT32_MAX, padded[np.minimum(place, len(padded) - 1)])
    return {
        "feature": feature,
        "threshold": threshold,
        "missing_left": np.where(inner, nodes["missing_left"], 0).astype(np.uint8),
        "left": np.ascontiguousarray(nodes["left"]),
        "right": np.ascontiguousarray(nodes["right"]),
        "gain": np.where(inner, nodes["gain"] * unit, 0.0),
        "rows": nodes["end"] - nodes["begin"],
    }


@njit(nogil=True, cache=True)
def search_part(grounds, rules, features, part, small, large, ready, ws, work, found):  # type: ignore[no-untyped-def]
    """One thread's share of two new siblings (or of the root, when they are equal): histograms and best
    splits.

    ``part`` is (first block, last block, first feature, last feature); ``found`` gets a record for each of
    the two.
    """
    # IN: all but ws and found  OUT: ws (histograms), found
    if small != large:
        _child_histograms(grounds, rules, small, large, part[0], part[1], ws)
    elif not ready:
        _count(grounds, rules, ws.nodes[small], part[0], part[1], ws)
    for i in range(2):
        child = small if i == 0 else large
        found[i] = ws.nodes[child]
        hist = ws.hists[ws.nodes[child].slot]
        _find_split(grounds, rules, features, part[2], part[3], hist, work, found[i])


def grow_shared(
    grounds: Grounds,
    rules: Rules,
    gradients: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    weights: npt.NDArray[np.int64],
    features: npt.NDArray[np.int32],
    ready: bool,
    ws: Workspace,
    pool: Executor,
    n_jobs: int,
) -> int:
    """`grow` with the histograms and split searches of each node shared by ``n_jobs`` threads."""
    step = 1 if grounds.wide_columns.shape[0] else BLOCK
    cuts = np.linspace(0, grounds.n_blocks, min(n_jobs, grounds.n_blocks) + 1).astype(np.int64)
    parts = [
        (int(lo), int(hi), *np.searchsorted(features, (lo * step, hi * step)).tolist())
        for lo, hi in pairwise(cuts.tolist())
    ]
    works = [np.empty_like(ws.work) for _ in parts]
    found = np.zeros((len(parts), 2), dtype=NODE)

    def search(small: int, large: int) -> None:
        """Let every thread search its features, then keep the best; equal gains go to the lower features."""

        def one(p: int) -> None:
            search_part(grounds, rules, features, parts[p], small, large, ready, ws, works[p], found[p])

        waiting = [pool.submit(one, p) for p in range(1, len(parts))]
        one(0)
        for future in waiting:
            future.result()
        for i, child in enumerate((small, large)):
            ws.nodes[child] = found[int(np.argmax(found["terms"][:, i])), i]

    start_root(grounds, rules, gradients, rows, weights, ready, ws)
    search(0, 0)
    n_nodes = 1
    while (small := split_best(grounds, rules, n_nodes, gradients, weights, ready, ws)) >= 0:
        large = 2 * n_nodes + 1 - small
        n_nodes += 2
        if _worth_searching(rules, n_nodes, ws.nodes[large]):
            search(small, large)
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes
