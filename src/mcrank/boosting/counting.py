"""The rows of a node counted by several threads: chunks of them, each thread with counters of its own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from mcrank.boosting.chunks import uneven_chunk_of
from mcrank.boosting.histogram import FIRST, FURTHER, WHOLE, RowRun, finish_histogram, node_histogram
from mcrank.boosting.partition import rows_of_node
from mcrank.boosting.slim import rules_of
from mcrank.kernels import step
from mcrank.kernels.handed import taken

# Chunks of a thread, smaller where threads will meet; the least rows of a thread that are cut so; and the
# least that are worth a thread of their own: with fewer adding up would take longer. A chunk costs some
# microseconds.
_CHUNKS = 4
_UNEVEN_ROWS = 4096
_FEWEST_ROWS = 1024


class Lot(NamedTuple):
    """Chunks of the rows of a node.

    Attributes
    ----------
    node : int
        The node.
    chunks : int
        Into how many chunks its rows are cut.
    threads : int
        For how many threads.
    held : int32[rows]
        What entries of the rows hold.
    """

    node: Any
    chunks: Any
    threads: Any
    held: npt.NDArray[np.int32]


@njit(inline="always")
def chunks_for(rows, threads):  # type: ignore[no-untyped-def]
    """Into how many chunks so many rows are cut."""
    if rows >= _UNEVEN_ROWS * threads:
        return int64(_CHUNKS) * threads
    return max(min(rows // _FEWEST_ROWS, threads), int64(1))


@step(shared=True, outer=True)
def _count(g, lot, item, part, which, hist):  # type: ignore[no-untyped-def]
    ws = g.ws
    begin, end, number = rows_of_node(ws.rows, lot.node)
    low, high = uneven_chunk_of(begin, end, item, lot.chunks, lot.threads)
    run = RowRun(low, high, ws.rows.entries, number, ws.rows.numbers, lot.held, g.tree.weights, ws.packs)
    packing = rules_of(g.rules, ws.nodes[lot.node]).packing
    node_histogram(taken(g.binned), part[0], part[1], run, packing, taken(g.scratch), which, hist)


@njit(inline="always")
def count_whole(g, lot, part, hist):  # type: ignore[no-untyped-def]
    """Count all rows of a node: features ``part[0]`` up to ``part[1]``."""
    # IN: g, lot (of one chunk), part  OUT: g.scratch, hist
    _count(g, lot, int64(0), part, int64(WHOLE), hist)


@njit(inline="always")
def _own(g, lot):  # type: ignore[no-untyped-def]
    """Where a thread counts: the leader where all will be added up."""
    return g.ws.partial_hists[g.me - 1] if g.me > 0 else g.ws.hists[g.ws.nodes[lot.node].slot]


@njit(inline="always")
def count_chunk(g, lot, item):  # type: ignore[no-untyped-def]
    """Count a chunk. Each thread adds whichever chunks it takes to counters of its own; after the last one it
    must say so: `finish_chunks`.
    """
    # IN: g, lot, item  OUT: g.ws (counters of this thread, started), g.scratch
    which = int64(FURTHER if g.ws.started[g.me] == 1 else FIRST)
    g.ws.started[g.me] = 1
    _count(g, lot, item, (int64(0), len(g.binned.n_bins)), which, _own(g, lot))


@njit(inline="always")
def finish_chunks(g, lot):  # type: ignore[no-untyped-def]
    """Have in a thread's counters all that it has counted."""
    # IN: g, lot  OUT: g.ws (counters of this thread), g.scratch
    packing = rules_of(g.rules, g.ws.nodes[lot.node]).packing
    finish_histogram(taken(g.binned), packing, taken(g.scratch), _own(g, lot))
