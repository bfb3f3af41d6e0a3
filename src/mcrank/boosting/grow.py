"""Best-first growth of one tree: always split the leaf whose split gains most, until there are J leaves.

A tree is grown inside one kernel, or, when there are fewer trees than threads, by several threads that share the
feature blocks of each histogram. Both give the same tree: histograms are exact integers.
"""

from __future__ import annotations

from concurrent.futures import Executor
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
        return self.wide_columns.shape[0] or -(-self.columns.shape[0] // BLOCK)


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
        """Return memory for trees on ``rows`` rows."""
        return cls(
            np.zeros(2 * rules.num_leaves - 1, dtype=NODE),
            np.empty(
                (max(1, rules.num_leaves - 1), int(grounds.bin_start[-1]) * rules.lanes), dtype=np.int64
            ),
            np.empty(rows, dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(2 * rows if rules.lanes == 2 else 0, dtype=np.int64),
            np.empty((4, int(grounds.n_bins.max())), dtype=np.float64),
        )


@njit(nogil=True)
def _totals(hist, n, lanes, node):  # type: ignore[no-untyped-def]
    """Sums of both lanes over a node's rows: every row is in one of the ``n`` bins of the first feature."""
    node.total = 0
    node.weight = 0
    for b in range(n):
        node.total += hist[b * lanes]
        if lanes == 2:
            node.weight += hist[b * lanes + 1]


@njit(nogil=True)
def _start_node(nodes, at, begin, end, total, weight, slot):  # type: ignore[no-untyped-def]
    node = nodes[at]
    node.begin = begin
    node.end = end
    node.total = total
    node.weight = weight
    node.slot = slot
    node.gain = 0.0
    node.feature = -1
    node.left = -1
    node.right = -1


@njit(nogil=True)
def _start_root(grounds, rules, gradients, rows, weights, ready, ws):  # type: ignore[no-untyped-def]
    """Set up the root; unless its histogram is ``ready``, also its entries and histogram."""
    n = len(rows) if len(rows) > 0 else len(gradients)
    _start_node(ws.nodes, 0, 0, n, 0, 0, 0)
    if not ready:
        fill_entries(gradients, rows, ws.entries)
        if rules.lanes == 2:
            fill_pairs(ws.entries, 0, n, rules.count_bits, weights, rules.derived_bits, ws.pairs)


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
        middle = partition_root(grounds.columns, f, node.bin, skip, gradients, ws.entries, ws.spare)
    else:
        middle = partition(
            grounds.columns,
            grounds.wide_columns,
            f,
            node.bin,
            skip,
            node.begin,
            node.end,
            ws.entries,
            ws.spare,
        )
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
def _child_histograms(grounds, rules, small, large, weights, first, last, ws):  # type: ignore[no-untyped-def]
    """Histograms of two siblings for blocks ``first`` up to ``last``: count the smaller, subtract for the larger."""
    node = ws.nodes[small]
    hist = ws.hists[node.slot]
    node_histogram(
        grounds.columns, grounds.wide_columns, grounds.blocks, grounds.bin_start, first, last, ws.entries, node.begin, node.end,
        rules.count_bits, rules.lanes, ws.pairs, hist,
    )  # fmt: skip
    step = 1 if grounds.wide_columns.shape[0] > 0 else BLOCK
    low = grounds.bin_start[first * step] * rules.lanes
    high = grounds.bin_start[min(last * step, len(grounds.missing))] * rules.lanes
    other = ws.hists[ws.nodes[large].slot]
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
    _start_root(grounds, rules, gradients, rows, weights, ready, ws)
    nodes = ws.nodes
    root = nodes[0]
    wide = grounds.wide_columns.shape[0]
    n_blocks = wide if wide > 0 else (grounds.columns.shape[0] + BLOCK - 1) // BLOCK
    if not ready:
        node_histogram(
            grounds.columns, grounds.wide_columns, grounds.blocks, grounds.bin_start, 0, n_blocks, ws.entries, 0, root.end,
            rules.count_bits, rules.lanes, ws.pairs, ws.hists[0],
        )  # fmt: skip
    _totals(ws.hists[0], grounds.n_bins[0], rules.lanes, root)
    _find_split(grounds, rules, features, 0, len(features), ws.hists[0], ws.work, root)
    n_nodes = 1
    leaves = 1
    while leaves < rules.num_leaves:
        at = _best_leaf(nodes, n_nodes)
        if at < 0:
            break
        small = _divide(grounds, rules, at, n_nodes, leaves, gradients, ready and at == 0, ws)
        large = 2 * n_nodes + 1 - small
        n_nodes += 2
        leaves += 1
        if leaves < rules.num_leaves and nodes[large].end - nodes[large].begin >= 2 * rules.min_rows:
            if rules.lanes == 2:
                fill_pairs(
                    ws.entries, nodes[small].begin, nodes[small].end, rules.count_bits, weights,
                    rules.derived_bits, ws.pairs,
                )  # fmt: skip
            _child_histograms(grounds, rules, small, large, weights, 0, n_blocks, ws)
            for child in (small, large):
                node = nodes[child]
                _find_split(grounds, rules, features, 0, len(features), ws.hists[node.slot], ws.work, node)
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes


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
        "left": nodes["left"],
        "right": nodes["right"],
        "gain": np.where(inner, nodes["gain"] * unit, 0.0),
        "rows": nodes["end"] - nodes["begin"],
    }


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
        for lo, hi in zip(cuts[:-1], cuts[1:], strict=True)
    ]
    works = [np.empty_like(ws.work) for _ in parts]

    def on_parts(task: Any) -> None:
        list(pool.map(task, range(len(parts))))

    def choose(child: int) -> None:
        """Search every part's features, then keep the best; equal gains go to the lower features."""
        found = np.repeat(ws.nodes[child : child + 1], len(parts))
        hist = ws.hists[ws.nodes[child]["slot"]]
        on_parts(
            lambda p: find_split(
                grounds, rules, features, parts[p][2], parts[p][3], hist, works[p], found[p : p + 1]
            )
        )
        ws.nodes[child] = found[int(np.argmax(found["gain"]))]

    _start_root(grounds, rules, gradients, rows, weights, ready, ws)
    if not ready:
        end = int(ws.nodes[0]["end"])
        on_parts(lambda p: _root_part(grounds, rules, parts[p][0], parts[p][1], end, ws))
    find_totals(ws.hists[0], int(grounds.n_bins[0]), rules.lanes, ws.nodes[:1])
    choose(0)
    n_nodes = leaves = 1
    while leaves < rules.num_leaves:
        at = _best_leaf(ws.nodes, n_nodes)
        if at < 0:
            break
        small = _divide(grounds, rules, at, n_nodes, leaves, gradients, ready and at == 0, ws)
        large = 2 * n_nodes + 1 - small
        n_nodes += 2
        leaves += 1
        if (
            leaves < rules.num_leaves
            and ws.nodes[large]["end"] - ws.nodes[large]["begin"] >= 2 * rules.min_rows
        ):
            if rules.lanes == 2:
                begin, end = int(ws.nodes[small]["begin"]), int(ws.nodes[small]["end"])
                fill_pairs(ws.entries, begin, end, rules.count_bits, weights, rules.derived_bits, ws.pairs)
            on_parts(
                lambda p, s=small, g=large: _child_histograms(
                    grounds, rules, s, g, weights, parts[p][0], parts[p][1], ws
                )
            )
            choose(small)
            choose(large)
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes


@njit(nogil=True)
def _root_part(grounds, rules, first, last, end, ws):  # type: ignore[no-untyped-def]
    node_histogram(
        grounds.columns, grounds.wide_columns, grounds.blocks, grounds.bin_start, first, last, ws.entries, 0, end,
        rules.count_bits, rules.lanes, ws.pairs, ws.hists[0],
    )  # fmt: skip


@njit(nogil=True)
def find_split(grounds, rules, features, first, last, hist, work, found):  # type: ignore[no-untyped-def]
    """Best split of the single node in ``found`` over ``features[first:last]``."""
    # IN: all but found  OUT: found
    _find_split(grounds, rules, features, first, last, hist, work, found[0])


@njit(nogil=True)
def find_totals(hist, n, lanes, found):  # type: ignore[no-untyped-def]
    """Totals of the single node in ``found``."""
    # IN: hist, n, lanes  OUT: found
    _totals(hist, n, lanes, found[0])
