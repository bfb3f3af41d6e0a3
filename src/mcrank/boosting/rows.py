"""Where the rows are: in the memory of one place. Growth asks for counts, and says which rows go where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting.grow import Grounds, Rules, Scratch, Workspace, divide_rows
from mcrank.boosting.histogram import node_histogram
from mcrank.boosting.packing import fill_packs
from mcrank.boosting.partition import fill_entries
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients


class Job(NamedTuple):
    """A leaf to divide: ``node`` of a tree into nodes ``left`` and the next, of which ``small`` is to be
    counted (-1: neither, as no more will be divided).
    """

    tree: int
    node: int
    left: int
    small: int


class Rows(Protocol):
    """Rows that trees are grown on, wherever they lie; all trees of a round at once."""

    def begin(self, outputs: Sequence[int], drawn: IntArray) -> None:
        """Put the rows drawn (none: all) into the root of a tree for each output."""

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""


class MemoryRows:
    """Rows in memory.

    Parameters
    ----------
    grounds : Grounds
        Binned rows.
    rules : Rules
        How their gradients are packed.
    gradients : Gradients
        What a loss fills each round.
    trees : int
        Trees of a round.
    """

    def __init__(self, grounds: Grounds, rules: Rules, gradients: Gradients, trees: int) -> None:
        self._grounds, self._rules, self._gradients = grounds, rules, gradients
        self._rows = gradients.q.shape[1]
        most = 2 * rules.num_leaves - 1
        self.places = [np.zeros((most, 3), dtype=np.int64) for _ in range(trees)]
        self.entries = [np.empty(2 * self._rows, dtype=np.int64) for _ in range(trees)]
        self._packs = np.empty(rules.packing.pack_lanes * self._rows, dtype=np.int64)
        self._scratch = Scratch.allocate(grounds, rules.packing)
        self._counters = Workspace.counters(grounds) * rules.packing.lanes
        self._outputs: Sequence[int] = ()

    def begin(self, outputs: Sequence[int], drawn: IntArray) -> None:
        """Put the rows drawn (none: all) into the root of a tree for each output."""
        self._outputs = outputs
        n = len(drawn) if len(drawn) else self._rows
        for tree, output in enumerate(outputs):
            fill_entries(self._gradients.q[output], drawn, self.entries[tree])
            self.places[tree][0] = (0, n, n)

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""
        out = aligned(len(self._outputs), self._counters)
        for tree in range(len(self._outputs)):
            self._count(tree, 0, out[tree])
        return out

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""
        out = aligned(sum(job.small >= 0 for job in jobs), self._counters)
        at = 0
        for job in jobs:
            places, entries = self.places[job.tree], self.entries[job.tree]
            divide_node(self._grounds, nodes[job.tree], places, job.node, job.left, entries)
            if job.small >= 0:
                self._count(job.tree, job.small, out[at])
                at += 1
        return out

    def _count(self, tree: int, node: int, hist: IntArray) -> None:
        weights = self._gradients.weights_of(self._outputs[tree])
        begin, end, _ = self.places[tree][node].tolist()
        count_node(
            self._grounds,
            self._rules,
            self.entries[tree],
            (begin, end),
            weights,
            self._packs,
            self._scratch,
            hist,
        )


@kernel()
def divide_node(grounds, nodes, places, at, left, entries):  # type: ignore[no-untyped-def]
    """Send the rows of a leaf to its two sides."""
    # IN: grounds, nodes, at, left  OUT: places, entries
    none = np.empty(0, np.int32)
    divide_rows(grounds, nodes[at], places, at, left, none, False, entries)


@kernel()
def count_node(grounds, rules, entries, span, weights, packs, scratch, hist):  # type: ignore[no-untyped-def]
    """Histogram of the rows of a node."""
    # IN: grounds, rules, entries, span, weights  OUT: packs, scratch, hist
    begin, end = span
    fill_packs(entries, begin, end, rules.packing, weights, packs)
    features = len(grounds.n_bins)
    node_histogram(
        grounds, np.int64(0), features, entries, begin, end, rules.packing, packs, scratch.chunk, hist
    )
