"""Where the rows are: in the memory of one place. Growth asks for counts, and says which rows go where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting.binning import BLOCK
from mcrank.boosting.grow import place_children
from mcrank.boosting.histogram import RowRun, node_histogram
from mcrank.boosting.packing import fill_packs, round_entries
from mcrank.boosting.partition import fill_entries, scatter
from mcrank.boosting.roots import SharedRoots
from mcrank.boosting.split import fill_left_table
from mcrank.boosting.workspace import BinnedArrays, Rules, Scratch
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients
from mcrank.threads import run_all


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

    def begin(self, outputs: Sequence[int], drawn: IntArray, left_out: int = 0) -> None:
        """Put the rows drawn into the root of a tree for each output: all, if none are and none left out."""

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""

    def leaves(self, tree: int, nodes: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return where the rows of each leaf of a grown tree are in the entries, and the entries."""


class MemoryRows:
    """Rows in memory.

    Parameters
    ----------
    binned : BinnedArrays
        Binned rows.
    rules : Rules
        How their gradients are packed.
    gradients : Gradients
        What a loss fills each round.
    trees : int
        Trees of a round.
    rows : int, optional
        Most rows that trees are grown on; all by default.
    n_jobs : int
        Threads.
    shared : SharedRoots, optional
        Counts the roots of all trees at once, where they have all rows.
    """

    def __init__(
        self,
        binned: BinnedArrays,
        rules: Rules,
        gradients: Gradients,
        trees: int,
        rows: int | None = None,
        *,
        n_jobs: int = 1,
        shared: SharedRoots | None = None,
    ) -> None:
        self._binned, self._rules, self._gradients = binned, rules, gradients
        self._rows = gradients.q.shape[1] if rows is None else rows
        most = 2 * rules.num_leaves - 1
        self.places = [np.zeros((most, 3), dtype=np.int64) for _ in range(trees)]
        self.entries = [np.empty(2 * self._rows, dtype=np.int64) for _ in range(trees)]
        self._n_jobs, self._shared, self._all = n_jobs, shared, False
        self._spare: list[_Bench] = []
        self._counters = binned.counters * rules.packing.lanes
        self._outputs: Sequence[int] = ()

    def begin(self, outputs: Sequence[int], drawn: IntArray, left_out: int = 0) -> None:
        """Put the rows drawn into the root of a tree for each output: all, if none are and none left out."""
        self._outputs = outputs
        self._all = not (len(drawn) or left_out)
        n = self._rows if self._all else len(drawn)

        def fill(tree: int) -> None:
            q, weights = self._gradients.q[outputs[tree]], self._gradients.weights_of(outputs[tree])
            fill_entries(q, drawn, 0, n, self.entries[tree])
            round_entries(self.entries[tree], 0, n, self._rules.packing, weights)
            self.places[tree][0] = (0, n, n)

        run_all(fill, range(len(outputs)), self._n_jobs)

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""
        count = len(self._outputs)
        out = aligned(count, self._counters)
        if self._shared is not None and self._all and count == len(self._gradients.q):
            self._shared.fill(self._gradients.q, self._n_jobs, partial(run_all, n_jobs=self._n_jobs))
            for output in range(count):
                self._shared.copy(output, out[output])
        else:
            self._each([partial(self._count, tree, 0, out[tree]) for tree in range(count)])
        return out

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""
        out = aligned(sum(job.small >= 0 for job in jobs), self._counters)
        at = np.cumsum([job.small >= 0 for job in jobs]) - 1

        def divide(k: int, bench: _Bench, threads: int) -> None:
            job = jobs[k]
            tree = (nodes[job.tree], self.places[job.tree], self.entries[job.tree])
            divide_node(self._binned, *tree, (job.node, job.left), bench.table)
            if job.small >= 0:
                self._count(job.tree, job.small, out[at[k]], bench, threads)

        self._each([partial(divide, k) for k in range(len(jobs))])
        return out

    def _each(self, tasks: Sequence[Callable[[_Bench, int], None]]) -> None:
        """Do tasks, a thread each, or one after the other with all threads where they are too few."""
        together = len(tasks) >= self._n_jobs
        threads = 1 if together else self._n_jobs

        def work(task: Callable[[_Bench, int], None]) -> None:
            try:
                bench = self._spare.pop()  # one that another task has done with
            except IndexError:
                bench = _Bench.allocate(self._binned, self._rules, self._rows)
            task(bench, threads)
            self._spare.append(bench)

        run_all(work, tasks, self._n_jobs if together else 1)

    def leaves(self, tree: int, nodes: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
        """Return where the rows of each leaf of a grown tree are in the entries, and the entries."""
        return self.places[tree], self.entries[tree]

    def _count(self, tree: int, node: int, hist: IntArray, bench: _Bench, threads: int) -> None:
        weights = self._gradients.weights_of(self._outputs[tree])
        begin, end, _ = self.places[tree][node].tolist()
        run = RowRun(self.entries[tree], bench.packs, begin, begin, end)
        if threads == 1:
            count_node(self._binned, self._rules, run, weights, bench.scratch, hist)
            return
        fill_packs(run.entries, begin, end, self._rules.packing, weights, run.packs)
        features = len(self._binned.n_bins)

        def count(first: int) -> None:
            scratch = Scratch.allocate(self._binned, self._rules.packing)
            count_part(self._binned, self._rules, run, (first, min(first + BLOCK, features)), scratch, hist)

        run_all(count, range(0, features, BLOCK), threads)


class _Bench(NamedTuple):
    """What a thread needs to divide and count."""

    packs: IntArray
    scratch: Scratch
    table: npt.NDArray[np.uint8]

    @classmethod
    def allocate(cls, binned: BinnedArrays, rules: Rules, rows: int) -> _Bench:
        packs = np.empty(rules.packing.pack_lanes * rows, dtype=np.int64)
        table = np.zeros(max(256, binned.most_bins), dtype=np.uint8)
        return cls(packs, Scratch.allocate(binned, rules.packing), table)


@kernel()
def count_part(binned, rules, run, part, scratch, hist):  # type: ignore[no-untyped-def]
    """Histogram of the rows of a node, of some features; what they add is filled."""
    # IN: binned, rules, run, part  OUT: scratch, hist
    node_histogram(binned, np.int64(part[0]), np.int64(part[1]), run, rules.packing, scratch.chunk, hist)


@kernel()
def divide_node(binned, nodes, places, entries, pair, table):  # type: ignore[no-untyped-def]
    """Send the rows of a leaf to its two sides; ``pair`` is the leaf and the left side."""
    # IN: binned, nodes, pair  OUT: places, entries, table
    at, left = pair
    node = nodes[at]
    fill_left_table(binned, node, table)
    begin, end, room = places[at, 0], places[at, 1], places[at, 2]
    if binned.wide_columns.shape[0] > 0:
        stay = scatter(binned.wide_columns[node.feature], table, entries, (begin, end), (begin, room))
    else:
        stay = scatter(binned.columns[node.feature], table, entries, (begin, end), (begin, room))
    go = end - begin - stay
    place_children(places, left, (begin, begin + stay, room + go), (room, room + go, begin + stay))


@kernel()
def count_node(binned, rules, run, weights, scratch, hist):  # type: ignore[no-untyped-def]
    """Histogram of the rows of a node."""
    # IN: binned, rules, weights  OUT: run (its packs), scratch, hist
    fill_packs(run.entries, run.begin, run.end, rules.packing, weights, run.packs)
    node_histogram(binned, np.int64(0), len(binned.n_bins), run, rules.packing, scratch.chunk, hist)
