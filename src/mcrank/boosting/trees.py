"""The trees of a round on the threads of a training.

Trees are independent, so threads take one each. A thread that finds no tree left helps with those that are
under way: with the last ones of a round, when they do not fill a turn of all threads, and with the only one
of a loss that has one output. Helpers are kept threads (`mcrank.threads`): they sleep between rounds, and
nobody waits for one that has not begun with a tree or an item of one. Where they do not pay, because others
need the cores, the next rounds share no tree.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting import tickets
from mcrank.boosting.grow import grow
from mcrank.boosting.plain import plain_bins, plain_tree
from mcrank.boosting.rules import Rules
from mcrank.boosting.workspace import BinnedArrays, Scratch, TreeInput, Workspace
from mcrank.cores import available_cores
from mcrank.threads import call_helpers

# Below this many rows a node is done before a second thread has woken up; and a tree of fewer bins has so
# little work that a helper mostly waits: 30,000 x 64 took 1.4 times the CPU time for 1.23 times the speed.
_SHARED_ROWS = 20_000
_SHARED_BINS = 3_000_000
_MOST_ROUNDS_ALONE = 64  # in a row, after helpers did not pay
# Of its time, what the thread that asks may have been without a core before cores count as others' own: with
# helpers a tree then ends a little sooner, for a fifth more CPU time.
_MOST_LOST = 1 / 4

# What a tree learns from, given its number, room for its root's histogram, and the threads that may share it.
Begin = Callable[[int, Workspace, int], TreeInput]
# What becomes of a grown tree: its number, nodes and workspace.
Finish = Callable[[int, npt.NDArray[Any], Workspace], None]


class TreeGrower:
    """Grows the trees of a round.

    Parameters
    ----------
    binned : BinnedArrays
        Binned rows.
    rules : Rules
        Leaves, rows of a leaf, and how gradients are packed.
    rows : int
        Most rows a tree may be grown on.
    trees : int
        Most trees of a round.
    n_jobs : int
        Threads.
    """

    def __init__(self, binned: BinnedArrays, rules: Rules, rows: int, trees: int, n_jobs: int) -> None:
        self._binned, self._rules, self._n_jobs = binned, rules, n_jobs
        self._plain = plain_bins(binned)
        # No more threads than cores share a tree, as they look for items before they sleep.
        large = rows >= _SHARED_ROWS and rows * len(binned.n_bins) >= _SHARED_BINS
        self.sharing = min(n_jobs, available_cores()) if large else 1
        leading = min(n_jobs, max(1, trees))
        self.spaces = [Workspace.allocate(binned, rows, rules, self.sharing) for _ in range(leading)]
        self._scratch = Scratch.allocate(binned, rules.packing)  # of the thread that asks
        self.scratches = [
            Scratch.allocate(binned, rules.packing) for _ in range(max(leading, self.sharing) - 1)
        ]
        self._alone = RoundsAlone()

    def trees(self, count: int, begin: Begin, finish: Finish) -> None:
        """Grow so many trees."""
        round_ = _Round(self, count, begin, finish, 1 if self._alone.now else self.sharing)
        call_helpers(round_.help, max(min(self._n_jobs, count), round_.sharing) - 1, self._n_jobs)
        wall, own = time.perf_counter(), time.thread_time()
        try:
            round_.work(self._scratch)
            wall, own = time.perf_counter() - wall, time.thread_time() - own
        finally:
            round_.end()
        if round_.errors:
            raise round_.errors[0]
        self._alone.after(not round_.in_vain and wall - own <= _MOST_LOST * wall)

    def grow(self, tree: TreeInput, ws: Workspace, scratch: Scratch, board: IntArray, threads: int) -> int:
        """Grow a tree, or help with it when ``threads`` is 0; return its number of nodes."""
        plain = plain_tree(tree) if self._plain is not None else None
        if plain is not None:
            return int(grow(self._plain, self._rules, plain, ws, scratch, board, threads))
        return int(grow(self._binned, self._rules, tree, ws, scratch, board, threads))


class RoundsAlone:
    """Which rounds do without helpers: after a round in which they did not pay none, as anybody loses a core
    now and then; if it happens again, the next one, then twice as many each time.

    Examples
    --------
    >>> from mcrank.boosting.trees import RoundsAlone
    >>> alone = RoundsAlone()
    >>> went = []
    >>> for _ in range(9):
    ...     went.append(alone.now)
    ...     alone.after(paid=False)
    >>> "".join("-+"[one] for one in went)
    '--+-++-++'
    """

    def __init__(self) -> None:
        self._left = 0  # rounds still to go
        self._next = 0

    @property
    def now(self) -> bool:
        """Whether the round that begins is one of them."""
        return self._left > 0

    def after(self, paid: bool) -> None:
        """Take note of a round: whether helpers paid, if there were any."""
        if self._left > 0:
            self._left -= 1
        elif paid:  # not forgotten at once: on a busy machine some rounds are lucky
            self._next //= 2
        else:
            self._left = self._next
            self._next = min(max(1, 2 * self._next), _MOST_ROUNDS_ALONE)


class _Tree:
    """A tree under way."""

    def __init__(self, tree: TreeInput, ws: Workspace) -> None:
        self.tree, self.ws = tree, ws
        self.board = tickets.new_board()
        self.helpers = 0


class _Round:
    """Trees that wait, those under way, and who is at work."""

    def __init__(self, grower: TreeGrower, count: int, begin: Begin, finish: Finish, sharing: int) -> None:
        self._grower, self._count, self._begin, self._finish = grower, count, begin, finish
        self.sharing = sharing  # threads that may share a tree
        self.in_vain = False  # whether helpers were sent home because they did not pay
        self._next = 0
        self._led = 0  # trees that a thread has taken and not finished
        self._prepared = 0  # of those, the ones that are not under way yet
        self._under_way: list[_Tree] = []
        self._changed = threading.Condition(threading.Lock())
        self.errors: list[BaseException] = []

    def help(self) -> None:
        """Work as a helper."""
        scratches = self._grower.scratches
        try:
            scratch = scratches.pop()
        except IndexError:  # helpers of the round before are still on their way home
            return
        try:
            self.work(scratch)
        finally:
            scratches.append(scratch)

    def work(self, scratch: Scratch) -> None:
        """Grow trees as long as any wait; then help with those under way."""
        while self._lead(scratch):
            pass
        if self.sharing > 1:
            while (tree := self._least_helped()) is not None:
                self._grower.grow(tree.tree, tree.ws, scratch, tree.board, 0)

    def _lead(self, scratch: Scratch) -> bool:
        """Grow the next tree, if there is one."""
        grower = self._grower
        with self._changed:
            number = self._next
            if number >= self._count:
                return False
            self._next += 1
            self._led += 1
            self._prepared += 1
            left = self._count - number
        ws = grower.spaces.pop()
        tree = None
        try:
            # While every thread has a tree of its own, none is cut into items.
            threads = self.sharing if left < self.sharing else 1
            tree = _Tree(self._begin(number, ws, self.sharing), ws)
            with self._changed:
                self._under_way.append(tree)
                self._prepared -= 1
                self._changed.notify_all()
            n = grower.grow(tree.tree, ws, scratch, tree.board, threads)
            with self._changed:
                self._under_way.remove(tree)
                self.in_vain |= tickets.was_alone(tree.board)
            self._finish(number, ws.nodes[:n].copy(), ws)
        except BaseException as error:  # raised by the thread that asked, when nobody is at work any more
            self._next = self._count
            self.errors.append(error)
        finally:
            if tree is not None:
                tickets.end(tree.board)  # whatever happened: nobody is to look at it for ever
            grower.spaces.append(ws)
            with self._changed:
                if tree in self._under_way:
                    self._under_way.remove(tree)
                if tree is None:
                    self._prepared -= 1
                self._led -= 1
                self._changed.notify_all()
        return True

    def _least_helped(self) -> _Tree | None:
        """A tree under way, of several the one with the fewest helpers; one that is being prepared is worth
        waiting for, as helpers who are awake are there before it.
        """
        with self._changed:
            while not (trees := [tree for tree in self._under_way if tree.helpers < self.sharing - 1]):
                if not self._prepared:
                    break
                self._changed.wait()
            tree = min(trees, key=lambda tree: tree.helpers, default=None)
            if tree is not None:
                tree.helpers += 1
            return tree

    def end(self) -> None:
        """Give out no more trees, and wait for those that others have taken."""
        with self._changed:
            self._next = self._count
            while self._led:
                self._changed.wait()
