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
from mcrank.boosting.histogram import subtract, sum_root
from mcrank.boosting.limits import Limits, begin_children, begin_root
from mcrank.boosting.nodes import NODE, best_leaf, start_children, start_node, worth_searching
from mcrank.boosting.rows import Job, Rows
from mcrank.boosting.rules import Rules
from mcrank.boosting.split import best_split, finish_split
from mcrank.boosting.workspace import BinnedArrays, Scratch
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.sums import Sums


class GrowingTrees(NamedTuple):
    """Trees under way that have features and limits in common: the same at every place.

    Attributes
    ----------
    first : int
        Number of the first one.
    nodes : NODE[trees, nodes]
        Their nodes.
    hists : int64[trees, slots, counters]
        Histograms, as far as this place searches.
    features : int32[]
        What may split them.
    limits : Limits
        What rules their splits.
    """

    first: Any
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
        self._nodes = np.zeros((0, 0), dtype=NODE)
        self._hists = aligned(0, 0, 0)  # for all rounds: new pages cost more than the counters
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
        self._begin(len(features))
        trees = self._alike(features, limits)
        roots = rows.roots()
        totals = self._sums.add(self._root_sums(roots))
        for some in trees:
            start_roots(some, totals)
        count = len(features)
        self._settle(trees, np.array([(t, 0, 0) for t in range(count)], dtype=np.int64), roots)
        sizes = np.ones(count, dtype=np.int64)
        while len(jobs := self._next(trees, sizes)):
            counted = rows.divide([Job(*job) for job in jobs.tolist()], list(self._nodes))
            found = jobs[jobs[:, 3] >= 0]
            if len(found):
                small = found[:, 3]
                self._settle(trees, np.stack([found[:, 0], small, 2 * found[:, 2] + 1 - small], 1), counted)
        return [nodes[:size].copy() for nodes, size in zip(self._nodes, sizes.tolist(), strict=True)]

    def _begin(self, count: int) -> None:
        """Make room for so many trees."""
        leaves = self._rules.num_leaves
        counters = self._binned.counters * self._rules.packing.lanes
        self._nodes = np.zeros((count, 2 * leaves - 1), dtype=NODE)
        if count > len(self._hists):
            self._hists = aligned(count, max(1, leaves - 1), counters)

    def _alike(
        self, features: Sequence[npt.NDArray[np.int32]], limits: Sequence[Limits]
    ) -> list[GrowingTrees]:
        """Trees by features and limits: all of them together, as long as nothing is drawn or ruled for each.

        A kernel then takes a step of all: on small nodes, calls cost more than what they do.
        """
        own = list(zip(features, limits, strict=True))
        if all(some is own[0][0] and rule is own[0][1] for some, rule in own):
            return [GrowingTrees(0, self._nodes, self._hists, *own[0])]
        return [
            GrowingTrees(t, self._nodes[t : t + 1], self._hists[t : t + 1], *each)
            for t, each in enumerate(own)
        ]

    def _root_sums(self, hists: IntArray) -> IntArray:
        out = np.zeros((len(hists), 3), dtype=np.int64)
        for hist, sums in zip(hists, out, strict=True):
            root_sums(self._binned, self._rules, hist, sums)
        return out

    def _next(self, trees: Sequence[GrowingTrees], sizes: IntArray) -> IntArray:
        """Choose the best leaf of each tree that is not done, and begin the records of its two sides."""
        jobs = np.empty((len(sizes), 4), dtype=np.int64)
        found = 0
        for some in trees:
            found = split_best(self._rules, some, sizes, found, jobs)
        return jobs[:found]

    def _settle(self, trees: Sequence[GrowingTrees], jobs: IntArray, counted: IntArray) -> None:
        """Add up histograms of small sides, search both sides (or the root), and agree on the best splits.

        ``jobs`` are trees with the numbers of both sides, the smaller one first.
        """
        totals = self._sums.scatter(counted, self._cuts)
        found = self._search(trees, jobs, totals)
        agreed = self._sums.agree(found.reshape(-1)).reshape(found.shape)
        for (t, small, large), records in zip(jobs.tolist(), agreed, strict=True):
            self._nodes[t, small] = records[0]
            if small != large:
                self._nodes[t, large] = records[1]

    def _search(self, trees: Sequence[GrowingTrees], jobs: IntArray, totals: IntArray) -> npt.NDArray[Any]:
        """Records of both sides, with the best splits by the features that are this place's own."""
        found = np.zeros((len(jobs), 2), dtype=NODE)
        rank = self._sums.rank
        part = (self._owned[rank], self._owned[rank + 1])
        for some in trees:
            own = slice(*np.searchsorted(jobs[:, 0], (some.first, some.first + len(some.nodes))).tolist())
            first, last = np.searchsorted(some.features, part).tolist()
            search_owned(
                self._binned, self._rules, (*part, first, last), totals[own], jobs[own], some,
                self._scratch, found[own],
            )  # fmt: skip
        return found


@kernel(allocates=True)
def root_sums(binned, rules, hist, out):  # type: ignore[no-untyped-def]
    """Sums of gradients, second lane and rows of a root, from the bins of its first feature."""
    # IN: binned, rules, hist  OUT: out
    root = np.zeros(1, NODE)
    sum_root(binned, rules.packing, np.int64(0), hist, root[0])
    out[0], out[1], out[2] = root[0].total, root[0].weight, root[0].count


@kernel()
def start_roots(trees, totals):  # type: ignore[no-untyped-def]
    """Begin the records of roots, from sums of gradients, second lane and rows."""
    # IN: totals (of all trees)  OUT: trees
    for t in range(len(trees.nodes)):
        total = totals[trees.first + t]
        start_node(trees.nodes[t], np.int64(0), total[0], total[1], total[2], np.int64(0))
    begin_root(trees.limits, trees.features)


@kernel()
def split_best(rules, trees, sizes, found, jobs):  # type: ignore[no-untyped-def]
    """Begin the records of the two sides of the leaf to divide next, of each tree that is not done.

    Jobs, from ``found`` on, are a tree, the leaf, its left side, and the smaller side (-1: not to be
    searched); return how many there are then.
    """
    # IN: rules, found  OUT: trees, sizes, jobs
    for t in range(len(trees.nodes)):
        nodes, n_nodes = trees.nodes[t], sizes[trees.first + t]
        if n_nodes >= 2 * rules.num_leaves - 1:
            continue
        at = best_leaf(nodes, n_nodes)
        if at < 0:
            continue
        small = start_children(nodes, at, n_nodes)
        worth = worth_searching(rules, n_nodes + 2, nodes[2 * n_nodes + 1 - small])
        if worth:
            begin_children(trees.limits, trees.features, rules.packing, nodes[at])
        jobs[found, 0], jobs[found, 1], jobs[found, 2] = trees.first + t, at, n_nodes
        jobs[found, 3] = small if worth else -1
        sizes[trees.first + t] = n_nodes + 2
        found += 1
    return found


@kernel()
def search_owned(binned, rules, part, hists, jobs, trees, scratch, found):  # type: ignore[no-untyped-def]
    """Histograms of two sides (or of a root) from that of the smaller, and their best splits, for each job: a
    tree and both sides.
    """
    # IN: binned, rules, part (low, high, first, last), hists, jobs
    # OUT: trees (histograms), scratch, found (jobs x 2)
    low, high, first, last = part
    lanes = rules.packing.lanes
    begin, end = binned.bin_start[low] * lanes, binned.bin_start[high] * lanes
    for k in range(len(jobs)):
        t, small, large = jobs[k, 0] - trees.first, jobs[k, 1], jobs[k, 2]
        nodes, hist = trees.nodes[t], hists[k]
        own = trees.hists[t, nodes[small].slot]
        for i in range(begin, end):
            own[i] = hist[i]
        if small != large:
            subtract(trees.hists[t, nodes[large].slot], hist, begin, end)
        for i in range(1 if small == large else 2):
            child = small if i == 0 else large
            found[k, i] = nodes[child]
            record, own = found[k, i], trees.hists[t, nodes[child].slot]
            best_split(own, binned, trees.features, (first, last), rules, trees.limits, scratch, record)
            finish_split(own, binned, rules.packing, record)
