"""The root of the next tree from the leaves of this one, for least squares: without a pass over the rows.

The gradient of a squared error is the target minus the score, and a tree takes the same value off the
gradients of all rows of a leaf. Leaf values are whole multiples of the gradients' unit
(`mcrank.boosting.leaves`), so rounded gradients move by whole numbers, ``q' = q - v``, and the root of the
next round follows from the histograms that the leaves of this one have left behind:
``sum' = Σ over leaves of (sum - v count)``, in every bin of every feature, exactly.

Nothing has to be believed for it: what every row's gradient is expected to be is kept, and where the loss
fills another one (another unit, scores that were scaled, a sum of floats on the other side of a half), the
root is counted as always. So no bit of a forest depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from mcrank.arrays import FloatArray, IntArray
from mcrank.boosting.histogram import RowRun
from mcrank.boosting.leaves import move_rows
from mcrank.boosting.partition import LeafRows, rows_of_node
from mcrank.boosting.plain import plain_bins
from mcrank.boosting.rows import count_node
from mcrank.boosting.rules import Rules
from mcrank.boosting.workspace import BinnedArrays, Scratch, Workspace
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients, Run

# Counters that all leaves are added to before the next ones, from 64 KB of each: shorter runs of memory come
# more slowly (255 leaves, one thread: 3.6 ms with 8 KB, 2.6 with 64), and these stay in the L2 cache.
_BLOCK = 8192
_PARTS = 8  # of the counters, for threads to take
_MOST_COUNTED = 16  # leaves; where more have no histogram, the root had better be counted itself
_NONE = np.empty(0, dtype=np.int64)


class _LeftBehind(NamedTuple):
    """Where the histograms of a grown tree's leaves are.

    ``slots`` hold every row once; each of its rows loses ``moves``. Rows of ``smaller``, which have no
    histogram and are in that of the larger sibling too, lose ``more`` than that.
    """

    slots: list[int]
    moves: list[int]
    smaller: list[int]
    more: list[int]


class CarriedRoot:
    """Root histogram of the next tree on all rows, and the gradients it belongs to.

    Parameters
    ----------
    binned : BinnedArrays
        Rows with 8-bit bins.
    rules : Rules
        How gradients are packed: without a second lane.
    rows : int
        Number of rows.
    """

    def __init__(self, binned: BinnedArrays, rules: Rules, rows: int) -> None:
        # As the kernel of plain trees takes them, where it can: steps that both call are compiled once.
        self._binned, self._rules = plain_bins(binned) or binned, rules
        self._hist = aligned(binned.counters * rules.packing.lanes)
        self._small = aligned(len(self._hist))
        self._scratch = Scratch.allocate(binned, rules.packing)
        self._expected = np.empty(rows, dtype=np.int32)
        self._unit = 0.0  # of the gradients expected; 0 where none are

    @classmethod
    def of(cls, binned: BinnedArrays, rules: Rules, rows: int) -> CarriedRoot | None:
        """Return room for a root, if adding up all leaves takes less than half of what counting it does."""
        if binned.wide or rules.packing.second or 2 * 256 * rules.num_leaves > rows:
            return None
        return cls(binned, rules, rows)

    def fill(self, gradients: Gradients, parts: int, run: Run) -> bool:
        """Say whether the gradients of a round are those that were expected; the root is there already."""
        return gradients.unit == self._unit and np.array_equal(self._expected, gradients.q[0])

    def copy(self, output: int, hists: IntArray) -> int:
        """Write the root histogram into the first of ``hists``; return how many that is."""
        hists[0, : len(self._hist)] = self._hist
        return 1

    def take(
        self,
        nodes: npt.NDArray[Any],
        ws: Workspace,
        gradients: Gradients,
        values: FloatArray,
        run: Run,
        also: Callable[[], None],
    ) -> None:
        """Make the next root of what the tree of a round has left in ``ws``; its nodes have these values.

        What is ``also`` to be done with the rows is done meanwhile.
        """
        self._unit = 0.0
        moves = np.rint(values / gradients.unit).astype(np.int64)
        left = self._left_behind(nodes, ws, moves)
        if len(left.smaller) > _MOST_COUNTED:
            also()
            return
        slots, taken, packing = np.array(left.slots), np.array(left.moves), self._rules.packing
        step = -(-len(self._hist) // (_PARTS * _BLOCK)) * _BLOCK

        q = gradients.q[0]

        def add(first: int) -> None:
            span = (first, min(first + step, len(self._hist)))
            add_moved(ws.hists, slots, taken, packing, span, self._hist)

        def expect() -> None:
            self._expected[:] = q
            move_rows(nodes["left"].astype(np.int64), ws.rows, -moves, self._expected)

        # Rows are gone through while others add up histograms; of several leaves to be counted, all but one
        # are counted afterwards.
        tasks: list[Callable[[], None]] = [also, expect]
        if left.smaller:
            tasks.append(partial(self._count, left.smaller[0], ws.rows, q))
        tasks += [partial(add, first) for first in range(0, len(self._hist), step)]
        run(lambda task: tasks[task](), range(len(tasks)))
        for number, (node, more) in enumerate(zip(left.smaller, left.more, strict=True)):
            if number > 0:
                self._count(node, ws.rows, q)
            take_off(self._small, more, packing, self._hist)
        self._unit = gradients.unit

    def _count(self, node: int, where: LeafRows, q: npt.NDArray[np.int32]) -> None:
        begin, end, number = (int(part) for part in rows_of_node(where, node))
        run = RowRun(begin, end, where.entries, number, where.numbers, q, _NONE, _NONE)
        part = (0, len(self._binned.n_bins))
        count_node(self._binned, self._rules, run, part, self._scratch, self._small)

    def _left_behind(self, nodes: npt.NDArray[Any], ws: Workspace, moves: IntArray) -> _LeftBehind:
        """Say where histograms are: of the last leaves there are none, as nobody searched them."""
        left, right, slot, count = (nodes[name].tolist() for name in ("left", "right", "slot", "count"))
        there, move, drafts = self._rows_in(ws.hists, slot), moves.tolist(), ws.drafts
        if left[0] < 0:
            return _LeftBehind([slot[0]], [move[0]], [], [])
        found = _LeftBehind([], [], [], [])
        for parent in (nodes["left"] >= 0).nonzero()[0].tolist():
            pair = left[parent], right[parent]
            if there[parent] == count[parent]:  # what was the parent's, nobody has subtracted from
                # The larger child has taken over the parent's slot.
                large, small = pair if slot[pair[0]] == slot[parent] else pair[::-1]
                found.slots.append(slot[large])
                found.moves.append(move[large])
                found.smaller.append(small)
                found.more.append(move[small] - move[large])
                continue
            for child in pair:
                if left[child] >= 0:
                    continue
                found.slots.append(slot[child])
                found.moves.append(move[child])
                if there[child] != count[child]:  # of a draft whose turn never came: there is the larger side
                    sides = drafts.sides[child]["slot"].tolist()
                    found.slots.append(sides[0] if sides[1] == slot[child] else sides[1])
                    found.moves.append(move[child])
        return found

    def _rows_in(self, hists: IntArray, slots: list[int]) -> list[int]:
        """Rows that histograms have counted, by the bins of the first feature."""
        packing = self._rules.packing
        # The last of all leaves has a slot that nobody needed room for; it is not asked about.
        first = hists[np.minimum(slots, len(hists) - 1), : 256 * packing.lanes]
        if packing.count_bits > 0:
            counts = first & ((1 << packing.count_bits) - 1)
        else:
            counts = first[:, packing.lanes - 1 :: packing.lanes]
        return counts.sum(axis=1).tolist()  # type: ignore[no-any-return]


@kernel()
def add_moved(hists, slots, moves, packing, span, out):  # type: ignore[no-untyped-def]
    """Add up counters ``span[0]`` up to ``span[1]`` of histograms, each row's gradient less its move."""
    # IN: hists, slots, moves, packing, span  OUT: out
    for low in range(span[0], span[1], _BLOCK):
        some = out[low : min(low + _BLOCK, span[1])]
        some[:] = 0
        k = 0
        while packing.count_bits > 0 and k + 4 <= len(slots):
            _add_four_less(hists, slots[k : k + 4], moves[k : k + 4], packing.count_bits, low, some)
            k += 4
        while k < len(slots):
            _add_less(hists[slots[k]][low:], int64(1), moves[k], packing, some)
            k += 1


@kernel()
def take_off(hist, move, packing, out):  # type: ignore[no-untyped-def]
    """Take a move off the gradients of the rows that a histogram has counted."""
    # IN: hist, move, packing  OUT: out
    _add_less(hist, int64(0), move, packing, out)


@step()
def _add_four_less(hists, slots, moves, bits, low, out):  # type: ignore[no-untyped-def]
    """`_add_less` of four histograms at once, from ``low`` on: what they are added to is moved once."""
    mask = (int64(1) << bits) - int64(1)
    a, b, c, d = hists[slots[0]], hists[slots[1]], hists[slots[2]], hists[slots[3]]
    e, f, g, h = moves[0], moves[1], moves[2], moves[3]
    for i in range(uint64(len(out))):  # unsigned: it runs on vectors
        j = uint64(low) + i
        moved = (a[j] & mask) * e + (b[j] & mask) * f + (c[j] & mask) * g + (d[j] & mask) * h
        out[i] += a[j] + b[j] + c[j] + d[j] - (moved << bits)


@step()
def _add_less(hist, times, move, packing, out):  # type: ignore[no-untyped-def]
    """Add ``times`` a histogram, and take ``move`` off the gradient of each of its rows."""
    bits = packing.count_bits
    if bits > 0:
        mask = (int64(1) << bits) - int64(1)
        shifted = move << bits
        keep = -times  # all bits or none: a mask takes less than a product
        for i in range(uint64(len(out))):  # unsigned: it runs on vectors
            out[i] += (hist[i] & keep) - (hist[i] & mask) * shifted
    else:
        for i in range(uint64(len(out) // 2)):
            rows = hist[uint64(2) * i + uint64(1)]
            out[uint64(2) * i] += times * hist[uint64(2) * i] - rows * move
            out[uint64(2) * i + uint64(1)] += times * rows
