"""Leaves divided before their turn, so that threads have a node each.

Small nodes are done in some ten microseconds. Cut into parts of the features, a node is mostly beginnings and
ends: lines of memory that two threads fetch, and waiting for each other. But best-first growth will sooner or
later divide most of the leaves whose splits gain much, and what comes of it does not depend on when. So
threads take whole leaves, those that gain most, divide their rows and search both sides; this is a *draft*.
When its turn comes, the draft becomes two nodes. The order of turns, and with it the tree, is the same as
if nothing had been drafted. Drafts whose turn never came are undone in the end: some hundredths of the work.

Limits that depend on the numbers of nodes (`mcrank.boosting.limits`) leave no room for drafts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit

from mcrank.arrays import IntArray
from mcrank.boosting.histogram import WHOLE, RowRun, node_histogram
from mcrank.boosting.limits import is_ruled
from mcrank.boosting.nodes import NODE, slot_of, start_sides
from mcrank.boosting.partition import UNLISTED, is_small, list_rows, place_node, scatter
from mcrank.boosting.slim import part_siblings, rules_of
from mcrank.boosting.split import best_split, fill_left_table, finish_split
from mcrank.kernels import step
from mcrank.kernels.handed import taken

_PER_THREAD = 4  # leaves drafted at a time: who is done first then waits for a small part of the whole
_LEAVES = 8  # one of so many may be drafted at a time: few trees end with more work than they need
_MOST_ROWS = 16384  # of a leaf; with more it pays to share it


class Drafts(NamedTuple):
    """Drafts of leaves, by the number of the leaf.

    Attributes
    ----------
    sides : NODE[nodes, 2]
        Records of the sides.
    places : int64[nodes, 2, 3]
        Where their rows are, as in `LeafRows`; before, in place of the first, the number of the leaf's rows
        if they are still to be listed, or -1.
    state : int64[nodes]
        1 for a leaf that has one.
    batch : int64[]
        Leaves that are drafted together.
    free : int64[1 + slots]
        How many slots for histograms are free, and which.
    """

    sides: npt.NDArray[Any]
    places: IntArray
    state: IntArray
    batch: IntArray
    free: IntArray

    @classmethod
    def allocate(cls, num_leaves: int, threads: int) -> Drafts:
        """Return memory for the drafts of a tree; none where there can be none."""
        most = min(_PER_THREAD * threads, num_leaves // _LEAVES) if threads > 1 else 0
        most = most if most > 1 else 0
        nodes = 2 * num_leaves - 1 if most else 0
        return cls(
            np.zeros((nodes, 2), dtype=NODE),
            np.zeros((nodes, 2, 3), dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
            np.zeros(most, dtype=np.int64),
            np.zeros(1 + 2 * most, dtype=np.int64),
        )

    @property
    def slots(self) -> int:
        """Histograms they need beside those of the tree."""
        return len(self.free) - 1


@step()
def begin_drafts(drafts, first):  # type: ignore[no-untyped-def]
    """Begin a tree without drafts; their histograms are from slot ``first`` on."""
    # IN: first  OUT: drafts
    drafts.state[:] = 0
    drafts.free[0] = len(drafts.free) - 1
    for i in range(1, len(drafts.free)):
        drafts.free[i] = first + i - 1


@njit(inline="always")
def is_drafted(drafts, at):  # type: ignore[no-untyped-def]
    """Whether a leaf has a draft."""
    return len(drafts.state) > 0 and drafts.state[at] == 1


@njit(inline="always")
def _can_be_drafted(ws, at, held):  # type: ignore[no-untyped-def]
    """Whether a leaf is small, and its rows are listed or will be."""
    count = ws.nodes[at].count
    return count < _MOST_ROWS and (ws.rows.places[at, 0] != UNLISTED or is_small(count, held))


@step()
def choose_drafts(g, at, n_nodes, held):  # type: ignore[no-untyped-def]
    """Choose leaves to be drafted now, first ``at``, whose turn it is, then by what they gain, and begin
    their drafts; return how many. One alone is none: all threads had better share it.
    """
    # IN: g, at, n_nodes, held  OUT: g.ws
    ws, drafts = g.ws, g.ws.drafts
    if len(drafts.batch) == 0 or is_ruled(g.tree.limits) or not _can_be_drafted(ws, at, held):
        return int64(0)
    # Not more than there will be turns, with those that have a draft already.
    outstanding = len(drafts.free) - 1 - drafts.free[0]
    turns = int64(g.rules.num_leaves) - (n_nodes + 1) // 2
    most = min(int64(len(drafts.batch)), drafts.free[0], turns - outstanding)
    chosen = int64(0)
    best = at
    while best >= 0 and chosen < most:
        drafts.batch[chosen] = best
        drafts.state[best] = 1
        chosen += 1
        best = int64(-1)
        gain = 0.0
        for i in range(n_nodes):
            leaf = ws.nodes[i].left < 0 and drafts.state[i] == 0
            if leaf and ws.nodes[i].gain > gain and _can_be_drafted(ws, i, held):
                gain = ws.nodes[i].gain
                best = int64(i)
    if chosen < 2:
        drafts.state[at] = 0
        return int64(0)
    for i in range(chosen):
        _begin_draft(ws, drafts.batch[i])
    _largest_outside(ws.nodes, drafts.batch[:chosen])
    return chosen


@njit(inline="always")
def _largest_outside(nodes, batch):  # type: ignore[no-untyped-def]
    """Order leaves so that the largest are at both ends, where threads begin, and the smallest between: who
    is done first then waits for one of those.
    """
    # IN: nodes  OUT: batch
    front, back = int64(0), int64(len(batch))
    while back - front > 1:
        _put_largest(nodes, batch, (front, back), front)
        front += 1
        _put_largest(nodes, batch, (front, back), back - 1)
        back -= 1


@njit(inline="always")
def _put_largest(nodes, batch, span, to):  # type: ignore[no-untyped-def]
    """Exchange the leaf of most rows in a part of the batch with the one at place ``to``."""
    best = span[0]
    for i in range(span[0], span[1]):
        if nodes[batch[i]].count > nodes[batch[best]].count:
            best = int64(i)
    batch[best], batch[to] = batch[to], batch[best]


@njit(inline="always")
def _begin_draft(ws, at):  # type: ignore[no-untyped-def]
    """A slot for the smaller side, records of both, and places for rows that are still to be listed."""
    drafts, where, node = ws.drafts, ws.rows, ws.nodes[at]
    slot = drafts.free[drafts.free[0]]
    drafts.free[0] -= 1
    start_sides(node, slot, drafts.sides[at], int64(0))
    drafts.places[at, 0, 0] = -1
    if where.places[at, 0] == UNLISTED:
        drafts.places[at, 0, 0] = where.places[at, 2]
        taken = where.taken[0]
        place_node(where.places, at, (taken, taken + node.count, len(where.entries) // 2 + taken))
        where.taken[0] += node.count


@step(shared=True, outer=True)
def draft(g, item, held):  # type: ignore[no-untyped-def]
    """Draft one of the leaves chosen: divide its rows, count the smaller side and search both."""
    # IN: g, item, held  OUT: g.ws (the leaf's own), g.scratch
    ws, drafts, where = g.ws, g.ws.drafts, g.ws.rows
    at = drafts.batch[item]
    node, sides, places = ws.nodes[at], drafts.sides[at], drafts.places[at]
    begin, end, room = where.places[at, 0], where.places[at, 1], where.places[at, 2]
    n = len(where.numbers)
    if places[0, 0] >= 0:
        own_rows = where.entries[begin:end]  # behind them are those of other threads
        list_rows(where.numbers, places[0, 0], held, (int64(0), n), n + 64, own_rows)
    binned, scratch, limits = taken(g.binned), taken(g.scratch), taken(g.tree.limits)
    fill_left_table(binned, node, scratch.table)
    column = binned.columns[node.feature]
    stay = scatter(column, scratch.table, where.entries, (begin, end), (begin, room))
    go = end - begin - stay
    place_node(places, int64(0), (begin, begin + stay, room + go))
    place_node(places, int64(1), (room, room + go, begin + stay))
    small = 0 if 2 * node.left_count <= node.count else 1
    large = sides[1 - small]
    if large.count < 2 * g.rules.min_rows or large.depth >= g.rules.max_depth:
        return
    span: Any = (places[small, 0], places[small, 1], int64(-1))
    run = RowRun(span[0], span[1], where.entries, span[2], where.numbers, held, g.tree.weights, ws.packs)
    hist = ws.hists[sides[small].slot]
    features = len(binned.n_bins)
    packing = rules_of(g.rules, sides[small]).packing
    node_histogram(binned, int64(0), features, run, packing, scratch, int64(WHOLE), hist)
    every_bin = (int64(0), binned.bin_start[features])
    part_siblings(g.rules, sides[small], large, hist, ws.hists[large.slot], every_bin)
    every = (int64(0), len(g.tree.features))
    for i in range(2):
        own, rules = ws.hists[sides[i].slot], rules_of(g.rules, sides[i])
        best_split(own, binned, g.tree.features, every, rules, limits, scratch, sides[i])
        finish_split(own, binned, rules.packing, sides[i])


@step()
def take_draft(ws, at, n_nodes, last):  # type: ignore[no-untyped-def]
    """Make nodes ``n_nodes`` and the next, perhaps the last, of the draft of leaf ``at``."""
    # IN: at, n_nodes, last  OUT: ws
    drafts = ws.drafts
    ws.nodes[at].left = n_nodes
    ws.nodes[at].right = n_nodes + 1
    for i in range(2):
        ws.nodes[n_nodes + i] = drafts.sides[at, i]
        ws.nodes[n_nodes + i].number = n_nodes + i
        if last:  # nobody would have searched these
            ws.nodes[n_nodes + i].gain = 0.0
        for j in range(3):
            ws.rows.places[n_nodes + i, j] = drafts.places[at, i, j]
    drafts.state[at] = 0
    # The slot that would have been its own is free instead of the one it took.
    drafts.free[0] += 1
    drafts.free[drafts.free[0]] = slot_of(n_nodes)


@step()
def undo_drafts(ws, n_nodes):  # type: ignore[no-untyped-def]
    """Put the rows of leaves that have a draft together again, in ascending order."""
    # IN: n_nodes  OUT: ws
    drafts, entries = ws.drafts, ws.rows.entries
    for at in range(min(n_nodes, len(drafts.state))):
        if drafts.state[at] == 1:
            left, right = drafts.places[at, 0], drafts.places[at, 1]
            i, j, to = left[1] - 1, right[1] - 1, ws.rows.places[at, 1] - 1
            while j >= right[0]:  # from behind: left rows are where all will be
                if i >= left[0] and entries[i] > entries[j]:
                    entries[to] = entries[i]
                    i -= 1
                else:
                    entries[to] = entries[j]
                    j -= 1
                to -= 1
