"""Best-first growth of one tree: always split the leaf whose split gains most, until there are J leaves.

A tree is grown inside one kernel, or by a team of threads (`mcrank.boosting.team`). Both give the same tree:
histograms are exact integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.boosting.binning import BLOCK, BinnedDataset
from mcrank.boosting.histogram import node_histogram
from mcrank.boosting.packing import Packing, fill_packs
from mcrank.boosting.partition import fill_entries, partition, partition_root
from mcrank.boosting.split import NODE, best_split, bin_sums
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned

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


class Rules(NamedTuple):
    """Numbers that rule growth: leaves, rows per leaf, and how gradients are packed."""

    num_leaves: int
    min_rows: int
    packing: Packing


class Scratch(NamedTuple):
    """Memory one thread needs for a node: prefix sums of a feature, and the counters of a chunk of rows."""

    work: npt.NDArray[np.float64]
    chunk: npt.NDArray[np.int64]

    @classmethod
    def allocate(cls, grounds: Grounds, packing: Packing) -> Scratch:
        """Return memory for nodes on these grounds."""
        longest = int(grounds.n_bins.max())
        counters = BLOCK * 256 * packing.pack_lanes if packing.chunk_bits else 0
        return cls(np.empty((4, longest)), aligned(counters))


class Workspace(NamedTuple):
    """Memory one growing tree needs, allocated once per thread.

    ``places`` tells where the rows of each node are: entries from the first number up to the second are its
    own, and as many from the third on are room for them (`mcrank.boosting.partition`).
    """

    nodes: npt.NDArray[Any]
    places: npt.NDArray[np.int64]
    hists: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    packs: npt.NDArray[np.int64]
    scratch: Scratch

    @classmethod
    def allocate(cls, grounds: Grounds, rows: int, rules: Rules) -> Workspace:
        """Return memory for trees on ``rows`` rows."""
        packing = rules.packing
        counters = cls.counters(grounds)
        return cls(
            np.zeros(2 * rules.num_leaves - 1, dtype=NODE),
            np.zeros((2 * rules.num_leaves - 1, 3), dtype=np.int64),
            aligned(max(1, rules.num_leaves - 1), counters * packing.lanes),
            np.empty(2 * rows, dtype=np.int64),
            np.empty(packing.pack_lanes * rows, dtype=np.int64),
            Scratch.allocate(grounds, packing),
        )

    @staticmethod
    def counters(grounds: Grounds) -> int:
        """Bins of a histogram, with room for the padding of a last block."""
        return int(grounds.bin_start[-1]) + (0 if grounds.wide_columns.shape[0] else 4 * 256)


@step()
def start_node(nodes, at, total, weight, count, slot):  # type: ignore[no-untyped-def]
    """Begin the record of a node that has no split yet."""
    node = nodes[at]
    node.total = total
    node.weight = weight
    node.count = count
    node.slot = slot
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    node.left = -1
    node.right = -1


@kernel()
def start_root(rules, gradients, rows, weights, ready, ws):  # type: ignore[no-untyped-def]
    """Set up the root node; unless its histogram is ``ready``, also its entries."""
    # IN: rules, gradients, rows, weights, ready  OUT: ws
    n = len(rows) if len(rows) > 0 else len(gradients)
    none = np.int64(0)
    if not ready:
        fill_entries(gradients, rows, ws.entries)
        fill_packs(ws.entries, none, n, rules.packing, weights, ws.packs)
    ws.places[0, 0] = 0
    ws.places[0, 1] = n
    ws.places[0, 2] = n
    start_node(ws.nodes, none, none, none, n, none)


@njit(inline="always")
def sum_root(grounds, rules, f, hist, root):  # type: ignore[no-untyped-def]
    """Sums of the root's rows: those of the bins of any feature."""
    root.total = 0
    root.weight = 0
    root.count = 0
    for b in range(grounds.bin_start[f], grounds.bin_start[f + 1]):
        total, weight, count = bin_sums(hist, b * rules.packing.lanes, rules.packing)
        root.total += total
        root.weight += weight
        root.count += count


@njit(inline="always")
def best_leaf(nodes, n_nodes):  # type: ignore[no-untyped-def]
    """Leaf with the largest gain, the earliest among equals; -1 when no split is worth making."""
    best = -1
    gain = 0.0
    for i in range(n_nodes):
        if nodes[i].left < 0 and nodes[i].gain > gain:
            gain = nodes[i].gain
            best = i
    return best


# Steps with a caller or two are written into these: compiled on their own as well they would take seconds of
# a first run.


@step()
def start_children(nodes, at, n_nodes, slot):  # type: ignore[no-untyped-def]
    """Begin the records of the two sides of a split, ``n_nodes`` and the next; return the smaller of them.

    The larger child takes over the parent's histogram (from which the smaller one's is then subtracted).
    """
    node = nodes[at]
    node.left = n_nodes
    node.right = n_nodes + 1
    left_is_small = 2 * node.left_count <= node.count
    start_node(
        nodes, n_nodes, node.left_total, node.left_weight, node.left_count,
        slot if left_is_small else node.slot,
    )  # fmt: skip
    start_node(
        nodes, n_nodes + 1, node.total - node.left_total, node.weight - node.left_weight,
        node.count - node.left_count, node.slot if left_is_small else slot,
    )  # fmt: skip
    return n_nodes if left_is_small else n_nodes + 1


@njit(inline="always")
def divide_rows(grounds, node, places, at, n_nodes, gradients, from_root, entries):  # type: ignore[no-untyped-def]
    """Send the rows of leaf ``at`` to nodes ``n_nodes`` and ``n_nodes + 1``."""
    f = node.feature
    skip = 1 if grounds.missing[f] and not node.missing_left else 0
    begin, end, other = places[at, 0], places[at, 1], places[at, 2]
    if from_root:
        stay = partition_root(grounds.columns[f], node.bin, skip, gradients, other, entries)
    elif grounds.wide_columns.shape[0] > 0:
        stay = partition(grounds.wide_columns[f], node.bin, skip, begin, end, other, entries)
    else:
        stay = partition(grounds.columns[f], node.bin, skip, begin, end, other, entries)
    go = end - begin - stay
    left, right = places[n_nodes], places[n_nodes + 1]
    left[0], left[1], left[2] = begin, begin + stay, other + go
    right[0], right[1], right[2] = other, other + go, begin + stay


@njit(inline="always")
def _count(grounds, rules, at, low, high, scratch, ws):  # type: ignore[no-untyped-def]
    """Histogram of a node for features ``low`` up to ``high``."""
    node_histogram(
        grounds, low, high, ws.entries, ws.places[at, 0], ws.places[at, 1], rules.packing, ws.packs,
        scratch.chunk, ws.hists[ws.nodes[at].slot],
    )  # fmt: skip


@njit(inline="always")
def _child_histograms(grounds, rules, small, large, low, high, scratch, ws):  # type: ignore[no-untyped-def]
    """Histograms of two siblings for some features: count the smaller, subtract it for the larger."""
    _count(grounds, rules, small, low, high, scratch, ws)
    hist = ws.hists[ws.nodes[small].slot]
    other = ws.hists[ws.nodes[large].slot]
    lanes = rules.packing.lanes
    for i in range(grounds.bin_start[low] * lanes, grounds.bin_start[high] * lanes):
        other[i] -= hist[i]


@njit(inline="always")
def find_split(grounds, rules, features, first, last, hist, work, node):  # type: ignore[no-untyped-def]
    """Find the best split of a node that has the rows for one."""
    if node.count >= 2 * rules.min_rows:
        best_split(hist, grounds, features, first, last, rules, work, node)


@kernel()
def search_part(grounds, rules, features, part, small, large, ready, ws, scratch, found):  # type: ignore[no-untyped-def]
    """One thread's share of two new siblings (or of the root, when they are equal): histograms and splits.

    ``part`` is (low, high, first, last): count features ``low`` up to ``high``, among which are those of
    ``features[first:last]``, which may split. ``found`` gets a record for each of the two nodes.
    """
    # IN: all but ws, scratch and found  OUT: ws (histograms), found
    low, high, first, last = part
    if small != large:
        _child_histograms(grounds, rules, small, large, low, high, scratch, ws)
    elif not ready:
        _count(grounds, rules, small, low, high, scratch, ws)
    for i in range(1 if small == large else 2):
        child = small if i == 0 else large
        found[i] = ws.nodes[child]
        hist = ws.hists[ws.nodes[child].slot]
        if small == large:
            sum_root(grounds, rules, low, hist, found[i])
        find_split(grounds, rules, features, first, last, hist, scratch.work, found[i])


@kernel()
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
    start_root(rules, gradients, rows, weights, ready, ws)
    # Typed, not literal: Numba would compile everything below a second time for the literal's own type.
    part = (np.int64(0), len(grounds.n_bins), np.int64(0), len(features))
    found = np.empty(2, ws.nodes.dtype)
    n_nodes = np.int64(1)
    search_part(grounds, rules, features, part, n_nodes - 1, n_nodes - 1, ready, ws, ws.scratch, found)
    ws.nodes[0] = found[0]
    while True:
        small = split_best(grounds, rules, n_nodes, gradients, weights, ready, ws)
        if small < 0:
            break
        large = 2 * n_nodes + 1 - small
        n_nodes += 2
        if worth_searching(rules, n_nodes, ws.nodes[large]):
            search_part(grounds, rules, features, part, small, large, ready, ws, ws.scratch, found)
            ws.nodes[small] = found[0]
            ws.nodes[large] = found[1]
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes


@kernel()
def worth_searching(rules, n_nodes, large):  # type: ignore[no-untyped-def]
    """Whether children may be split further: there is a leaf to spend and the larger one has the rows."""
    return n_nodes < 2 * rules.num_leaves - 1 and large.count >= 2 * rules.min_rows


@kernel()
def split_best(grounds, rules, n_nodes, gradients, weights, ready, ws):  # type: ignore[no-untyped-def]
    """Split the best leaf into two new nodes; return the smaller, or -1 when the tree is done."""
    # IN: grounds, rules, n_nodes, gradients, weights, ready  OUT: ws
    if n_nodes >= 2 * rules.num_leaves - 1:
        return -1
    at = best_leaf(ws.nodes, n_nodes)
    if at < 0:
        return -1
    small = start_children(ws.nodes, at, n_nodes, (n_nodes + 1) // 2)
    divide_rows(grounds, ws.nodes[at], ws.places, at, n_nodes, gradients, ready and at == 0, ws.entries)
    fill_packs(ws.entries, ws.places[small, 0], ws.places[small, 1], rules.packing, weights, ws.packs)
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
        "rows": nodes["count"].copy(),
    }
