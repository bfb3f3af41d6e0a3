"""One tree grown by several threads, which share the features of every node.

The features are cut into items: blocks as histograms count them, or halves of blocks. Whoever is free claims
the next item of the node with an atomic ticket, counts and searches its features, and says that it is done.
The thread that leads claims items like the others and then splits the next leaf, so it needs nobody: a helper
may come late, in the middle of a node, or never, and is waited for only while it has an item.

A node is done in a millisecond or less, which is what a thread that sleeps takes to wake up. So who has to
wait looks at the board for some microseconds first. But a thread that looks uses a core that others may need,
perhaps the very thread it waits for: after a bounded number of looks it goes to sleep, for longer and longer.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.boosting.binning import BLOCK, bin_dataset, find_bins
from mcrank.boosting.grow import (
    Grounds,
    Rules,
    Scratch,
    Workspace,
    search_part,
    split_best,
    start_root,
    worth_searching,
)
from mcrank.boosting.packing import Packing
from mcrank.boosting.partition import fill_entries
from mcrank.boosting.split import NODE
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned, cpu_pause, fetch_add, load_acquire, store_release

# The board, places of different writers on cache lines of their own: the ticket; items done; and what only
# the leader writes, before it gives out tickets: the node and its sibling, and the nodes so far.
_TICKET, _DONE, _SMALL, _LARGE, _NODES = (uint64(place) for place in (0, 8, 16, 17, 18))
_BOARD = 24
# A ticket holds the next item in its low bits and the number of items above them; then comes the end of the
# tree. One word tells whether an item exists, so nobody can take one of a node that is over.
_BITS = 20
_MASK = (1 << _BITS) - 1
_OVER = 1 << 2 * _BITS
# Looks before a thread sleeps: 20 to 100 microseconds, by the processor.
_LOOKS = 2000
_SHORTEST_SLEEP, _LONGEST_SLEEP = 5e-5, 1e-3


@njit(inline="always")
def _claim(board):  # type: ignore[no-untyped-def]
    """The next item of the node on the board, or -1 when all are claimed."""
    ticket = load_acquire(board, _TICKET)
    if ticket & _MASK < (ticket >> _BITS) & _MASK:
        ticket = fetch_add(board, _TICKET, int64(1))
        if ticket & _MASK < (ticket >> _BITS) & _MASK:
            return ticket & _MASK
    return int64(-1)


@njit(nogil=True)
def _search(grounds, rules, features, items, item, ready, ws, scratch, found, board):  # type: ignore[no-untyped-def]
    """Do an item that was claimed."""
    part = (items[item, 0], items[item, 1], items[item, 2], items[item, 3])
    search_part(
        grounds, rules, features, part, board[_SMALL], board[_LARGE], ready, ws, scratch, found[item]
    )  # fmt: skip
    fetch_add(board, _DONE, int64(1))


@kernel()
def follow(grounds, rules, features, items, ready, ws, scratch, found, board):  # type: ignore[no-untyped-def]
    """Do items as long as there are any; return how many, or -1 when the tree is over."""
    # IN: grounds, rules, features, items, ready  OUT: ws (histograms), scratch, found, board
    done = int64(0)
    looks = 0
    while looks < _LOOKS:
        item = _claim(board)
        if item >= 0:
            _search(grounds, rules, features, items, item, ready, ws, scratch, found, board)
            done += 1
            looks = 0
        elif load_acquire(board, _TICKET) >= _OVER:
            return int64(-1)
        else:
            cpu_pause()
            looks += 1
    return done


@njit(inline="always")
def _give_out(board, small, large, items):  # type: ignore[no-untyped-def]
    """Leave a node on the board."""
    board[_SMALL] = small
    board[_LARGE] = large
    store_release(board, _DONE, int64(0))
    store_release(board, _TICKET, int64(items << _BITS))


@kernel()
def lead(grounds, rules, gradients, rows, weights, features, items, ready, ws, found, board):  # type: ignore[no-untyped-def]
    """Grow a tree, with whoever follows; False when one of them keeps us waiting: then call it again."""
    # IN: grounds, rules, gradients, rows, weights, features, items, ready  OUT: ws, found, board
    n = len(items)
    if board[_NODES] == 0:
        start_root(rules, gradients, rows, weights, ready, ws)
        board[_NODES] = 1
        _give_out(board, int64(0), int64(0), n)
    while True:
        item = _claim(board)
        while item >= 0:
            _search(grounds, rules, features, items, item, ready, ws, ws.scratch, found, board)
            item = _claim(board)
        looks = 0
        while load_acquire(board, _DONE) != n:
            if looks == _LOOKS:
                return False
            cpu_pause()
            looks += 1
        small, large = board[_SMALL], board[_LARGE]
        for i in range(1 if small == large else 2):
            best = 0
            for other in range(1, n):
                if found[other, i].terms > found[best, i].terms:  # of equals the lower features
                    best = other
            ws.nodes[small if i == 0 else large] = found[best, i]
        while True:
            nodes = board[_NODES]
            small = split_best(grounds, rules, nodes, gradients, weights, ready, ws)
            if small < 0:
                store_release(board, _TICKET, int64(_OVER))
                return True
            large = 2 * nodes + 1 - small
            board[_NODES] = nodes + 2
            if worth_searching(rules, nodes + 2, ws.nodes[large]):
                break
        _give_out(board, small, large, n)


class Team:
    """A tree that several threads grow: one calls `lead`, any others `help`, at any time.

    Parameters
    ----------
    threads : int
        How many are expected; more of them get smaller items.
    grounds, rules, gradients, rows, weights, features, ready, ws
        As `grow` takes them.
    """

    def __init__(
        self,
        threads: int,
        grounds: Grounds,
        rules: Rules,
        gradients: npt.NDArray[np.int32],
        rows: npt.NDArray[np.int64],
        weights: npt.NDArray[np.int64],
        features: npt.NDArray[np.int32],
        ready: bool,
        ws: Workspace,
    ) -> None:
        self._gradients, self._rows, self._weights = gradients, rows, weights
        self._grown = (grounds, rules)
        self._items = _items(grounds, features, threads)
        self._shared = (features, self._items, ready, ws)
        # Records of an item begin with a cache line: another thread writes those of the next.
        size = len(self._items) * 2 * NODE.itemsize
        self._found = aligned(size // 8).view(NODE).reshape(-1, 2)
        self._board = aligned(_BOARD)

    def lead(self) -> int:
        """Grow the tree; return its number of nodes."""
        features, items, ready, ws = self._shared
        nap = _SHORTEST_SLEEP
        while not lead(
            *self._grown, self._gradients, self._rows, self._weights, features, items, ready, ws,
            self._found, self._board,
        ):  # fmt: skip
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_SLEEP)
        n_nodes = int(self._board[_NODES])
        if n_nodes == 1 and ready:
            fill_entries(self._gradients, self._rows, ws.entries)
        return n_nodes

    def end(self) -> None:
        """Send the helpers home, whatever became of the leader."""
        self._board[_TICKET] = _OVER

    def help(self, scratch: Scratch) -> None:
        """Do items until the tree is grown; ``scratch`` is this thread's own."""
        features, items, ready, ws = self._shared
        nap = _SHORTEST_SLEEP
        while True:
            done = follow(*self._grown, features, items, ready, ws, scratch, self._found, self._board)
            if done < 0:
                return
            nap = _SHORTEST_SLEEP if done else min(2 * nap, _LONGEST_SLEEP)
            time.sleep(nap)


def _items(grounds: Grounds, features: npt.NDArray[np.int32], threads: int) -> npt.NDArray[np.int64]:
    """Parts of the features as `search_part` takes them, for this many threads.

    Whole blocks are quicker to count than halves. The last blocks are halved: who is done first then does
    not wait for long. Wide bins have no blocks; their features are counted one by one.
    """
    n = len(grounds.n_bins)
    if grounds.wide_columns.shape[0]:
        size = max(1, n // (4 * threads))
        cuts = np.r_[np.arange(0, n, size), n]
    else:
        halved = max(0, n // BLOCK + 1 - threads) * BLOCK
        cuts = np.r_[np.arange(0, halved, BLOCK), np.arange(halved, n, BLOCK // 2), n]
    return np.column_stack((cuts[:-1], cuts[1:], *np.searchsorted(features, (cuts[:-1], cuts[1:]))))


def compile_helpers(data: Dataset) -> None:
    """Compile what helpers run; in a small training none of them may come to it."""
    binned = bin_dataset(data, find_bins(data.X, max_bins=256))
    grounds = Grounds.of(binned)
    rules = Rules(2, 1, Packing.of(data.n_rows))
    ws = Workspace.allocate(grounds, data.n_rows, rules)
    features = np.arange(data.n_features, dtype=np.int32)
    none = np.empty(0, dtype=np.int64)
    team = Team(2, grounds, rules, np.zeros(data.n_rows, np.int32), none, none, features, False, ws)
    team.lead()
    team.help(ws.scratch)
