"""Best-first growth of all trees of a round together, wherever their rows are.

Growth knows no rows: it asks `Rows` to divide leaves and count the smaller sides, `Sums` to add up what the
places of a training counted, and chooses splits from the sums. All places do so alike and keep the same
records of nodes. Each searches some of the features; of the splits found the best is taken, of equals that of
the lowest feature, so nothing hangs on who searched what.

With all rows in one place and memory, `grow` does the same in one compiled call; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting.grow import sum_root
from mcrank.boosting.histogram import subtract
from mcrank.boosting.limits import Limits, begin_children, begin_root
from mcrank.boosting.nodes import NODE, best_leaf, start_children, start_node, worth_searching
from mcrank.boosting.rows import Job, Rows
from mcrank.boosting.split import best_split, finish_split
from mcrank.boosting.workspace import BinnedArrays, Rules, Scratch
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.sums import Sums


class GrowingTree(NamedTuple):
    """A tree under way: the same at every place."""

    nodes: npt.NDArray[Any]
    hists: IntArray
    features: npt.NDArray[np.int32]
    limits: Limits


class Growth:
    """Grows trees on rows that may be anywhere.

    Parameters
    ----------
    binned : BinnedArrays
        The bins of the features; growth reads no rows.
    rules : Rules
        Leaves, rows of a leaf, and how gradients are packed.
    sums : Sums
        Who adds up.
    """

    def __init__(self, binned: BinnedArrays, rules: Rules, sums: Sums) -> None:
        self._binned, self._rules, self._sums = binned, rules, sums
        self._scratch = Scratch.allocate(binned, rules.packing)
        lanes = rules.packing.lanes
        self._hists: list[IntArray] = []  # by tree, for all rounds: new pages cost more than the counters
        features = len(binned.n_bins)
        # Everybody searches a run of the features; the first runs of more places than features are not empty.
        self._owned = [min(features, -(-features * r // sums.size)) for r in range(sums.size + 1)]
        self._cuts = [int(binned.bin_start[f]) * lanes for f in self._owned]

    def trees(
        self, rows: Rows, features: Sequence[npt.NDArray[np.int32]], limits: Sequence[Limits]
    ) -> list[npt.NDArray[Any]]:
        """Grow a tree for each of the features that may split it, within its limits; return their nodes.

        ``rows`` must have begun.
        """
        trees = [self._start(t, *own) for t, own in enumerate(zip(features, limits, strict=True))]
        roots = rows.roots()
        for tree, hist in zip(trees, self._sums.add(self._root_sums(roots)), strict=True):
            start_root_node(tree, *hist.tolist())
        self._settle(trees, [(t, 0, 0) for t in range(len(trees))], roots)
        sizes = [1] * len(trees)
        while jobs := self._next(trees, sizes):
            counted = rows.divide(jobs, [tree.nodes for tree in trees])
            found = [(job.tree, job.small, 2 * job.left + 1 - job.small) for job in jobs if job.small >= 0]
            if found:
                self._settle(trees, found, counted)
        return [tree.nodes[:size].copy() for tree, size in zip(trees, sizes, strict=True)]

    def _start(self, tree: int, features: npt.NDArray[np.int32], limits: Limits) -> GrowingTree:
        leaves = self._rules.num_leaves
        counters = self._binned.counters * self._rules.packing.lanes
        if tree == len(self._hists):
            self._hists.append(aligned(max(1, leaves - 1), counters))
        return GrowingTree(np.zeros(2 * leaves - 1, dtype=NODE), self._hists[tree], features, limits)

    def _root_sums(self, hists: IntArray) -> IntArray:
        out = np.zeros((len(hists), 3), dtype=np.int64)
        for hist, sums in zip(hists, out, strict=True):
            root_sums(self._binned, self._rules, hist, sums)
        return out

    def _next(self, trees: Sequence[GrowingTree], sizes: list[int]) -> list[Job]:
        """Choose the best leaf of each tree that is not done, and begin the records of its two sides."""
        jobs = []
        for t, tree in enumerate(trees):
            if sizes[t] >= 2 * self._rules.num_leaves - 1:
                continue
            at = int(next_leaf(tree.nodes, sizes[t]))
            if at < 0:
                continue
            left = sizes[t]
            small, worth = split_records(self._rules, tree, at, left)
            sizes[t] += 2
            jobs.append(Job(t, at, left, small if worth else -1))
        return jobs

    def _settle(
        self, trees: Sequence[GrowingTree], jobs: Sequence[tuple[int, int, int]], counted: IntArray
    ) -> None:
        """Add up histograms of small sides, search both sides (or the root), and agree on the best splits."""
        totals = self._sums.scatter(counted, self._cuts)
        found = self._search(trees, jobs, totals)
        agreed = self._sums.agree(found.reshape(-1)).reshape(found.shape)
        for (t, small, large), records in zip(jobs, agreed, strict=True):
            for node, record in zip((small, large) if small != large else (small,), records, strict=False):
                trees[t].nodes[node] = record

    def _search(
        self, trees: Sequence[GrowingTree], jobs: Sequence[tuple[int, int, int]], totals: IntArray
    ) -> npt.NDArray[Any]:
        """Records of both sides, with the best splits by the features that are this place's own."""
        found = np.zeros((len(jobs), 2), dtype=NODE)
        rank = self._sums.rank
        part = (self._owned[rank], self._owned[rank + 1])
        for (t, small, large), hist, records in zip(jobs, totals, found, strict=True):
            tree = trees[t]
            first, last = np.searchsorted(tree.features, part).tolist()
            search_owned(
                self._binned, self._rules, (*part, first, last), hist, (small, large), tree,
                self._scratch, records,
            )  # fmt: skip
        return found


@kernel()
def root_sums(binned, rules, hist, out):  # type: ignore[no-untyped-def]
    """Sums of gradients, second lane and rows of a root, from the bins of its first feature."""
    # IN: binned, rules, hist  OUT: out
    root = np.zeros(1, NODE)
    sum_root(binned, rules.packing, np.int64(0), hist, root[0])
    out[0], out[1], out[2] = root[0].total, root[0].weight, root[0].count


@kernel()
def start_root_node(tree, total, weight, count):  # type: ignore[no-untyped-def]
    """Begin the record of a root."""
    # IN: total, weight, count  OUT: tree
    start_node(tree.nodes, np.int64(0), total, weight, count, np.int64(0))
    begin_root(tree.limits, tree.features)


@kernel()
def next_leaf(nodes, n_nodes):  # type: ignore[no-untyped-def]
    """The leaf to divide next, or -1."""
    # IN: nodes, n_nodes
    return best_leaf(nodes, n_nodes)


@kernel()
def split_records(rules, tree, at, n_nodes):  # type: ignore[no-untyped-def]
    """Begin the records of the two sides of a leaf; return the smaller, and whether to search them."""
    # IN: rules, at, n_nodes  OUT: tree
    small = start_children(tree.nodes, at, n_nodes)
    worth = worth_searching(rules, tree.limits, n_nodes + 2, tree.nodes[2 * n_nodes + 1 - small])
    if worth:
        begin_children(tree.limits, tree.features, rules.packing, tree.nodes[at])
    return small, worth


@kernel()
def search_owned(binned, rules, part, hist, pair, tree, scratch, found):  # type: ignore[no-untyped-def]
    """Histograms of two sides (or of a root) from that of the smaller, and their best splits."""
    # IN: binned, rules, part (low, high, first, last), hist, pair
    # OUT: tree (histograms), scratch, found
    low, high, first, last = part
    small, large = pair
    lanes = rules.packing.lanes
    begin, end = binned.bin_start[low] * lanes, binned.bin_start[high] * lanes
    own = tree.hists[tree.nodes[small].slot]
    for i in range(begin, end):
        own[i] = hist[i]
    if small != large:
        subtract(tree.hists[tree.nodes[large].slot], hist, begin, end)
    for i in range(1 if small == large else 2):
        child = small if i == 0 else large
        found[i] = tree.nodes[child]
        own = tree.hists[tree.nodes[child].slot]
        best_split(own, binned, tree.features, (first, last), rules, tree.limits, scratch, found[i])
        finish_split(own, binned, rules.packing, found[i])
