"""One tree grown by several threads: each counts and searches some of the features of every node.

A node is done in a millisecond or less, and a thread that sleeps takes half of that to wake up. So threads
that help do not sleep between nodes: they look at a board in memory until the one that leads leaves them the
next node there. They never leave compiled code, nor ask for Python's lock, during a tree.

Nobody waits for a thread that is still busy with something else: one that has not joined yet is left out, and
joins at the next node after it has become free.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from mcrank.boosting.binning import bin_dataset, find_bins
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
from mcrank.boosting.intrinsics import leave, look, pause
from mcrank.boosting.packing import Packing
from mcrank.boosting.partition import fill_entries
from mcrank.boosting.split import NODE
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel

# A helper's board: has it joined; the number of the last node left for it (or _STOP), that node and its
# sibling; and the number of the last node it has done.
_JOINED, _TURN, _SMALL, _LARGE, _DONE = (uint64(place) for place in range(5))
_STOP = -1


@kernel()
def follow(grounds, rules, features, part, ready, ws, scratch, found, board):  # type: ignore[no-untyped-def]
    """Search a part of the features of every node left on the board, until there is a stop."""
    # IN: grounds, rules, features, part, ready  OUT: ws (histograms), scratch, found, board
    seen = look(board, _TURN)
    leave(board, _JOINED, int64(1))
    while seen != _STOP:
        turn = look(board, _TURN)
        if turn == seen:
            pause()
            continue
        seen = turn
        if turn != _STOP:
            search_part(
                grounds, rules, features, part, board[_SMALL], board[_LARGE], ready, ws, scratch, found
            )  # fmt: skip
            leave(board, _DONE, turn)


@kernel("void(int64[::1], int64, int64, int64)")
def call_on(board, turn, small, large):  # type: ignore[no-untyped-def]
    """Leave a node for a helper."""
    # IN: turn, small, large  OUT: board
    board[_SMALL] = small
    board[_LARGE] = large
    leave(board, _TURN, turn)


@kernel("void(int64[::1], int64)")
def wait_for(board, turn):  # type: ignore[no-untyped-def]
    """Wait until a helper has done its part of a node."""
    # IN: board, turn
    while look(board, _DONE) != turn:
        pause()


class Team:
    """Threads that grow one tree together: this one leads, those of the pool help as they become free."""

    def __init__(
        self,
        grounds: Grounds,
        rules: Rules,
        features: npt.NDArray[np.int32],
        ready: bool,
        ws: Workspace,
        pool: Executor,
        n_jobs: int,
    ) -> None:
        parts = [
            (low, high, *np.searchsorted(features, (low, high)).tolist())
            for low, high in pairwise(grounds.cut(n_jobs))
        ]
        self._found = np.zeros((len(parts), 2), dtype=NODE)
        self._nodes = ws.nodes
        self._shares = [
            (grounds, rules, features, part, ready, ws, Scratch.allocate(grounds, rules.packing), found)
            for part, found in zip(parts, self._found, strict=True)
        ]
        self._boards = np.zeros((len(parts), 8), dtype=np.int64)  # a cache line each; the leader's is unused
        self._turn = 0
        self._pool = pool
        self._helpers: list[Future[None]] = []

    def search(self, small: int, large: int) -> None:
        """Let everybody search their features of two siblings; equal gains go to the lower features."""
        if self._turn == 0:  # not before, so that an interrupt always finds the way to send them home
            helpers = zip(self._shares[1:], self._boards[1:], strict=True)
            self._helpers = [self._pool.submit(partial(follow, *share, board)) for share, board in helpers]
        self._turn += 1
        called = [p for p in range(1, len(self._boards)) if self._boards[p, _JOINED]]
        for p in called:
            call_on(self._boards[p], self._turn, small, large)
        for p, (grounds, rules, features, part, ready, ws, scratch, found) in enumerate(self._shares):
            if p not in called:
                search_part(grounds, rules, features, part, small, large, ready, ws, scratch, found)
        for p in called:
            wait_for(self._boards[p], self._turn)
        for i, child in enumerate((small, large) if small != large else (small,)):
            self._nodes[child] = self._found[int(np.argmax(self._found["terms"][:, i])), i]

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *error: Any) -> None:
        """Send the helpers home, whatever happened."""
        for board in self._boards[1:]:
            call_on(board, _STOP, 0, 0)
        for helper in self._helpers:
            if not helper.cancel():
                helper.result()


def compile_helpers(data: Dataset) -> None:
    """Compile what helpers run; in a small training none of them may come to it."""
    binned = bin_dataset(data, find_bins(data.X, max_bins=256))
    grounds = Grounds.of(binned)
    rules = Rules(2, 1, Packing.of(data.n_rows))
    ws = Workspace.allocate(grounds, data.n_rows, rules)
    features = np.arange(data.n_features, dtype=np.int32)
    part = (0, data.n_features, 0, data.n_features)
    stopped = np.full(8, _STOP, dtype=np.int64)
    follow(grounds, rules, features, part, False, ws, ws.scratch, np.zeros(2, dtype=NODE), stopped)


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
    start_root(rules, gradients, rows, weights, ready, ws)
    with Team(grounds, rules, features, ready, ws, pool, n_jobs) as team:
        team.search(0, 0)
        n_nodes = 1
        while (small := split_best(grounds, rules, n_nodes, gradients, weights, ready, ws)) >= 0:
            large = 2 * n_nodes + 1 - small
            n_nodes += 2
            if worth_searching(rules, n_nodes, ws.nodes[large]):
                team.search(small, large)
    if n_nodes == 1 and ready:
        fill_entries(gradients, rows, ws.entries)
    return n_nodes
