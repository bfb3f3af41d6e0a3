"""Where the rows are: in the memory of one place. Growth asks for counts, and says which rows go where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting.histogram import WHOLE, RowRun, node_histogram
from mcrank.boosting.packing import fill_packs, round_entries, round_rows
from mcrank.boosting.partition import (
    NUMBERED_ROWS,
    LeafRows,
    fill_entries,
    list_small,
    number_children,
    place_node,
    place_root,
    renumber,
    rows_of_node,
    scatter,
)
from mcrank.boosting.roots import SharedRoots
from mcrank.boosting.rules import Rules
from mcrank.boosting.split import fill_left_table
from mcrank.boosting.workspace import BinnedArrays, Scratch
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients
from mcrank.threads import run_all

_FEATURES = 16  # counted by a thread at a time


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

    def leaves(self, tree: int, nodes: npt.NDArray[Any]) -> LeafRows:
        """Return where the rows of each leaf of a grown tree are."""


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
        Most rows that trees are grown on, all of which are then listed; all by default.
    n_jobs : int
        Threads.
    shared : SharedRoots, optional
        Counts the roots of all trees at once, where they have all rows.
    spare : list of Bench, optional
        What threads work with and others may use too.
    share : float
        Part of everybody's rows that is here: of a node's rows, about so many are.
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
        spare: list[Bench] | None = None,
        share: float = 1.0,
    ) -> None:
        self._binned, self._rules, self._gradients, self._share = binned, rules, gradients, share
        self._rows = gradients.q.shape[1] if rows is None else rows
        listed = binned.wide or rows is not None or self._rows < NUMBERED_ROWS
        self._where = [LeafRows.allocate(rules.num_leaves, self._rows, listed) for _ in range(trees)]
        held = len(self._where[0].numbers) if rules.packing.lane_drop else 0
        self._rounded = np.empty((trees, held), dtype=np.int32)
        self._n_jobs, self._shared, self._all = n_jobs, shared, False
        self._spare: list[Bench] = [] if spare is None else spare
        self._counters = binned.counters * rules.packing.lanes
        # Histograms of a step, which are read before the next; the many parts of rows on disk keep none.
        self._counted = aligned(trees if rows is None else 0, self._counters)
        self._outputs: Sequence[int] = ()

    def begin(self, outputs: Sequence[int], drawn: IntArray, left_out: int = 0) -> None:
        """Put the rows drawn into the root of a tree for each output: all, if none are and none left out."""
        self._outputs = outputs
        self._all = not (len(drawn) or left_out)
        n = self._rows if self._all else len(drawn)

        def fill(tree: int) -> None:
            q, weights = self._gradients.q[outputs[tree]], self._gradients.weights_of(outputs[tree])
            begin_tree(self._where[tree], q, weights, drawn, n, self._rules.packing, self._rounded[tree])

        run_all(fill, range(len(outputs)), self._n_jobs)

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""
        count = len(self._outputs)
        out = aligned(count, self._counters)
        if self._shared is not None and self._all and count == len(self._gradients.q):
            self._shared.fill(self._gradients, self._n_jobs, partial(run_all, n_jobs=self._n_jobs))
            for output in range(count):
                self._shared.copy(output, out[output : output + 1])
        else:
            self._each([partial(self._count, tree, 0, out[tree]) for tree in range(count)])
        return out

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""
        wanted = sum(job.small >= 0 for job in jobs)
        out = self._counted[:wanted] if len(self._counted) else aligned(wanted, self._counters)
        at = np.cumsum([job.small >= 0 for job in jobs]) - 1

        def divide(k: int, bench: Bench, threads: int) -> None:
            job = jobs[k]
            own = (nodes[job.tree], self._where[job.tree], self._held(job.tree))
            pair = (job.node, job.left)
            if job.small < 0 or threads > 1:
                divide_node(self._binned, *own, pair, self._share, bench.table)
                if job.small >= 0:
                    self._count(job.tree, job.small, out[at[k]], bench, threads)
                return
            # One call: of small nodes, to make it costs as much as what it does.
            tree = (*own, self._gradients.weights_of(self._outputs[job.tree]))
            about = (*pair, job.small, self._share)
            divide_and_count(self._binned, self._rules, tree, about, bench, out[at[k]])

        self._each([partial(divide, k) for k in range(len(jobs))])
        return out

    def _each(self, tasks: Sequence[Callable[[Bench, int], None]]) -> None:
        """Do tasks, a thread each, or one after the other with all threads where they are too few."""
        together = len(tasks) >= self._n_jobs
        threads = 1 if together else self._n_jobs

        def work(task: Callable[[Bench, int], None]) -> None:
            try:
                bench = self._spare.pop()  # one that another task has done with
            except IndexError:
                bench = Bench.allocate(self._binned, self._rules, self._rows)
            task(bench, threads)
            self._spare.append(bench)

        run_all(work, tasks, self._n_jobs if together else 1)

    def leaves(self, tree: int, nodes: npt.NDArray[Any]) -> LeafRows:
        """Return where the rows of each leaf of a grown tree are."""
        return self._where[tree]

    def _held(self, tree: int) -> npt.NDArray[np.int32]:
        """What entries of the rows hold."""
        q: npt.NDArray[np.int32] = self._gradients.q[self._outputs[tree]]
        return self._rounded[tree] if self._rounded.size else q

    def _count(self, tree: int, node: int, hist: IntArray, bench: Bench, threads: int) -> None:
        where, weights = self._where[tree], self._gradients.weights_of(self._outputs[tree])
        begin, end, number = (int(part) for part in rows_of_node(where, node))
        held = self._held(tree)
        run = RowRun(begin, end, where.entries, number, where.numbers, held, weights, bench.packs)
        if self._binned.wide:
            fill_packs(run.entries, begin, end, self._rules.packing, weights, run.packs)
        features = len(self._binned.n_bins)
        if threads == 1:
            count_node(self._binned, self._rules, run, (0, features), bench.scratch, hist)
            return

        def count(first: int) -> None:
            scratch = Scratch.allocate(self._binned, self._rules.packing)
            part = (first, min(first + _FEATURES, features))
            count_node(self._binned, self._rules, run, part, scratch, hist)

        run_all(count, range(0, features, _FEATURES), threads)


class Bench(NamedTuple):
    """What a thread needs to divide and count."""

    packs: IntArray
    scratch: Scratch
    table: npt.NDArray[np.uint8]

    @classmethod
    def allocate(cls, binned: BinnedArrays, rules: Rules, rows: int) -> Bench:
        """Return what a thread needs for so many rows."""
        packs = np.empty(rules.packing.pack_lanes * rows if binned.wide else 0, dtype=np.int64)
        table = np.zeros(max(256, binned.most_bins), dtype=np.uint8)
        return cls(packs, Scratch.allocate(binned, rules.packing), table)


@kernel()
def begin_tree(where, gradients, weights, drawn, n, packing, rounded):  # type: ignore[no-untyped-def]
    """Put ``n`` rows, those drawn or (when there are none) all or none, into the root of a tree."""
    # IN: gradients, weights, drawn, n, packing  OUT: where, rounded
    place_root(where, drawn, n)
    if len(where.numbers) == 0:
        fill_entries(gradients, drawn, np.int64(0), n, where.entries)
        round_entries(where.entries, np.int64(0), n, packing, weights)
    elif len(rounded) > 0:
        round_rows(gradients, np.int64(0), len(gradients), packing, weights, rounded)


@kernel()
def divide_and_count(binned, rules, tree, job, bench, hist):  # type: ignore[no-untyped-def]
    """Send the rows of a leaf to its two sides, and count those of the smaller; ``job`` is the leaf, the left
    side, the smaller one, and the part of all rows that is here.
    """
    # IN: binned, rules, tree (nodes, held, weights), job  OUT: tree (where), bench, hist
    nodes, where, held, weights = tree
    at, left, small, share = job
    send_rows(binned, nodes, where, held, (at, left), share, bench.table)
    begin, end, number = rows_of_node(where, small)
    run = RowRun(begin, end, where.entries, number, where.numbers, held, weights, bench.packs)
    if binned.wide_columns.shape[0] > 0:
        fill_packs(run.entries, begin, end, rules.packing, weights, run.packs)
    features = np.int64(len(binned.n_bins))
    node_histogram(binned, np.int64(0), features, run, rules.packing, bench.scratch, np.int64(WHOLE), hist)


@kernel()
def divide_node(binned, nodes, where, held, pair, share, table):  # type: ignore[no-untyped-def]
    """Send the rows of a leaf to its two sides; ``pair`` is the leaf and the left side."""
    # IN: binned, nodes, held, pair, share  OUT: where, table
    send_rows(binned, nodes, where, held, pair, share, table)


@step()
def send_rows(binned, nodes, where, held, pair, share, table):  # type: ignore[no-untyped-def]
    """`divide_node`, for kernels."""
    # IN: binned, nodes, held, pair, share  OUT: where, table
    at, left = pair
    node, places, entries = nodes[at], where.places, where.entries
    fill_left_table(binned, node, table)
    if not list_small(where, at, np.int64(node.count * share), held):
        change = number_children(where, at, left)
        renumber(binned.columns[node.feature], table, where.numbers, (0, len(where.numbers)), change)
        return
    begin, end, room = places[at, 0], places[at, 1], places[at, 2]
    if binned.wide_columns.shape[0] > 0:
        stay = scatter(binned.wide_columns[node.feature], table, entries, (begin, end), (begin, room))
    else:
        stay = scatter(binned.columns[node.feature], table, entries, (begin, end), (begin, room))
    go = end - begin - stay
    place_node(places, left, (begin, begin + stay, room + go))
    place_node(places, left + 1, (room, room + go, begin + stay))


@kernel()
def count_node(binned, rules, run, part, scratch, hist):  # type: ignore[no-untyped-def]
    """Histogram of the rows of a node, of features ``part[0]`` up to ``part[1]``."""
    # IN: binned, rules, run, part  OUT: scratch, hist
    low, high = np.int64(part[0]), np.int64(part[1])
    node_histogram(binned, low, high, run, rules.packing, scratch, np.int64(WHOLE), hist)
