"""Trees with vector leaves: one structure a round for all outputs, chosen by the sum of their gains.

The trees of a round are grown in step, each on the gradients of its output. All take the same splits: those
whose gains, added up over the outputs, are largest. A forest keeps them as a tree for each output, so
whatever reads a forest reads them; each tree carries an equal share of a split's gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from mcrank.arrays import FloatArray, IntArray
from mcrank.boosting.growth import GrowingTrees, Growth
from mcrank.boosting.histogram import subtract
from mcrank.boosting.limits import NOISE, Limits, best_ruled, fill_ruled_gains, own_terms
from mcrank.boosting.nodes import NODE
from mcrank.boosting.packing import bin_sums
from mcrank.boosting.rows import Rows
from mcrank.boosting.rules import Rules
from mcrank.boosting.split import fill_gains, finish_split, largest, prefix, rows_at
from mcrank.boosting.workspace import BinnedArrays
from mcrank.kernels import kernel, step
from mcrank.sums import Sums


class Together(NamedTuple):
    """The trees of a round, in step; the first of each array's axes is the output."""

    nodes: npt.NDArray[Any]
    hists: IntArray
    features: npt.NDArray[np.int32]
    limits: Limits
    terms: FloatArray  # by cut: what its gain is made of, summed over outputs


class VectorGrowth(Growth):
    """`Growth` of trees that share their splits: those of the first tree's features and limits."""

    def __init__(self, binned: BinnedArrays, rules: Rules, sums: Sums) -> None:
        super().__init__(binned, rules, sums)
        self._terms = np.empty(-(-binned.most_bins // 8) * 8)

    def trees(
        self, rows: Rows, features: Sequence[npt.NDArray[np.int32]], limits: Sequence[Limits]
    ) -> list[npt.NDArray[Any]]:
        """Grow a tree for each output; return their nodes."""
        outputs = len(features)
        grown = super().trees(rows, [features[0]] * outputs, [limits[0]] * outputs)
        for nodes in grown:
            nodes["gain"] /= outputs
        return grown

    def _search(self, trees: Sequence[GrowingTrees], jobs: IntArray, totals: IntArray) -> npt.NDArray[Any]:
        found = np.zeros((len(jobs), 2), dtype=NODE)
        rank, (_, small, large) = self._sums.rank, jobs[0].tolist()
        part, shared = (self._owned[rank], self._owned[rank + 1]), trees[0]
        first, last = np.searchsorted(shared.features, part).tolist()
        together = Together(shared.nodes, shared.hists, shared.features, shared.limits, self._terms)
        search_together(
            self._binned, self._rules, (*part, first, last), totals, (small, large), together,
            self._scratch, found,
        )  # fmt: skip
        return found


@kernel()
def search_together(binned, rules, part, hists, pair, trees, scratch, found):  # type: ignore[no-untyped-def]
    """Histograms of two sides (or of a root) from those of the smaller, and the splits they share."""
    # IN: binned, rules, part (low, high, first, last), hists, pair
    # OUT: trees (histograms), scratch, found (outputs x 2)
    low, high, first, last = part
    small, large = pair
    lanes = rules.packing.lanes
    begin, end = binned.bin_start[low] * lanes, binned.bin_start[high] * lanes
    for k in range(len(hists)):
        own = trees.hists[k, trees.nodes[k, small].slot]
        for i in range(begin, end):
            own[i] = hists[k, i]
        if small != large:
            subtract(trees.hists[k, trees.nodes[k, large].slot], hists[k], begin, end)
    for i in range(1 if small == large else 2):
        child = small if i == 0 else large
        slot = trees.nodes[0, child].slot
        best = found[0, i]
        found[0, i] = trees.nodes[0, child]
        _best_shared(binned, (first, last), rules, trees, slot, scratch, best)
        for k in range(len(hists)):
            node = found[k, i]
            if k > 0:
                found[k, i] = trees.nodes[k, child]
                node.gain, node.terms, node.feature = best.gain, best.terms, best.feature
                node.bin, node.missing_left = best.bin, best.missing_left
        for k in range(len(hists)):
            finish_split(trees.hists[k, slot], binned, rules.packing, found[k, i])


@step(shared=True, error_model="numpy")
def _best_shared(binned, span, rules, trees, slot, scratch, node):  # type: ignore[no-untyped-def]
    """Put the split with the largest sum of gains into the record ``node`` (of the first output)."""
    # IN: all but scratch and node  OUT: node's gain, terms, feature, bin, missing_left
    packing, limits, at = rules.packing, trees.limits, node.number
    node.gain, node.terms, node.feature = 0.0, 0.0, -1
    if node.count < 2 * rules.min_rows or node.depth >= rules.max_depth:
        return
    own = 0.0
    for k in range(len(trees.nodes)):
        own += _own(trees.nodes[k, at], packing, limits)
    best = own * (1 + NOISE)
    for j in range(span[0], span[1]):
        f = trees.features[j]
        if limits.allowed.shape[0] > 0 and limits.allowed[at, f] == 0:
            continue
        base = binned.bin_start[f]
        gone = int64(0)
        if binned.missing[f]:
            gone = bin_sums(trees.hists[0, slot], base * packing.lanes, packing)[2]
        # Missing rows on the right first, as in `best_split`.
        for side in range(2 if gone != 0 else 1):
            n = binned.n_bins[f] - binned.missing[f] - (0 if gone != 0 and side == 0 else 1)
            if n <= 0:
                continue
            _fill_terms(binned, (f, n, side), rules, trees, slot, scratch, at)
            cut = int64(0)
            if limits.ruled:
                known = (gone, node.count) if side == 1 else (int64(0), node.count - gone)
                about = (f, own, known)
                found, cut = best_ruled(scratch.sums, n, about, packing, limits, node, trees.terms)
            else:
                found = largest(trees.terms, n)
            if found > best:
                best = found
                while not limits.ruled and trees.terms[cut] != found:
                    cut += 1
                node.gain, node.terms, node.feature = found - own, found, f
                node.bin = binned.missing[f] + cut
                seen = rows_at(scratch.sums, cut, packing)
                node.missing_left = side if gone != 0 else np.int32(2 * seen >= node.count)


@njit(inline="always")
def _own(node, packing, limits):  # type: ignore[no-untyped-def]
    """Gain terms of one output where a node is not split."""
    mass = float(node.weight) if packing.second else float(node.count)
    return own_terms((float(node.total), mass), limits)


@njit(inline="always")
def _fill_terms(binned, about, rules, trees, slot, scratch, at):  # type: ignore[no-untyped-def]
    """Gain terms of every cut of a feature, summed over outputs; -1 where a side has too few rows.

    An output without mass on one side (its curvatures there are 0) gains nothing by a cut. Prefix sums of
    the last output stay in the scratch: rows are those of all.
    """
    f, n, side = about
    packing, limits, terms = rules.packing, trees.limits, trees.terms
    start = binned.bin_start[f] + binned.missing[f]
    terms[:n] = 0.0
    count = trees.nodes[0, at].count
    for k in range(len(trees.nodes)):
        node, hist = trees.nodes[k, at], trees.hists[k, slot]
        before = (int64(0), int64(0), int64(0))
        if side == 1:
            before = bin_sums(hist, binned.bin_start[f] * packing.lanes, packing)
        prefix(hist, start, start + n, packing, before, scratch.sums)
        mass = float(node.weight) if packing.second else float(count)
        whole = (float(node.total), mass, float(count))
        if limits.ruled:
            fill_ruled_gains(scratch.sums, n, whole, rules, limits, node, f, scratch.gains)
        else:
            fill_gains(scratch.sums, n, whole, rules, scratch.gains)
        own = _own(node, packing, limits)
        for i in range(n):
            terms[i] += scratch.gains[i] if scratch.gains[i] >= 0 else own
    for i in range(n):
        rows = rows_at(scratch.sums, i, packing)
        if rows < rules.min_rows or count - rows < rules.min_rows:
            terms[i] = -1.0
