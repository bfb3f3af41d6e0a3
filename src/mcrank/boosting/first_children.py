"""The smaller children of roots, those of four or five trees counted in one pass over the rows.

To count a row takes a store for each feature, and a store of four counters takes no longer than one of a
single counter. Trees of a round begin with the same rows, and the smaller child of a root has some two fifths
of them. So all rows are passed over once, as for the roots (`mcrank.boosting.roots`): each adds to the
counters of four trees, and adds nothing where it is not in the child. That is a store where passes over the
rows of each child would take one and a half. Children of children are smaller: their rows are counted alone.
With curvatures the sums of five trees fit four words as well (`mcrank.boosting.five_children`).

Counters hold what they hold in other nodes (`mcrank.boosting.packing`), so the histograms are the same. Where
gradient, curvature and count share one, it is full when a bin has some thousand rows, and has to be spread
before; when that is does not depend on gradients, and is found out once. The fullest bin of a feature is left
to overflow: what it holds is what the child's rows sum to less what the other bins hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.boosting.five import OUTPUTS
from mcrank.boosting.five_children import MOST, PIECE, bounds_of, fill_five, in_child, spread_five
from mcrank.boosting.histogram import sum_root
from mcrank.boosting.nodes import NODE, start_node, start_sides
from mcrank.boosting.packing import Packing, narrow, spread, triple
from mcrank.boosting.plain import plain_bins
from mcrank.boosting.rules import Rules
from mcrank.boosting.split import best_split, finish_split
from mcrank.boosting.workspace import BinnedArrays, Scratch
from mcrank.boosting.woven import ADD, CHUNK, CUT, TURN, WORDS, Plan, add_words, weave
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients, Run

# A pass over all rows takes as long as counting so many times as many of children, and what it does beside as
# long as counting so many rows.
_PASS, _BESIDE = 1.3, 70_000


class _Cut(NamedTuple):
    """Which rows are in a child: of its output, those whose bin of a feature is from ``low`` to ``high``, or
    (where ``inside`` is 0) is not.
    """

    output: int
    feature: int
    low: int
    high: int
    inside: int


class _Group(NamedTuple):
    """Room for the children of a pass: sums under way, their histograms, and when sums are spread."""

    columns: npt.NDArray[np.uint8]
    steps: ByteArray
    sums: IntArray
    hists: IntArray


class FirstChildren:
    """Histograms of the smaller children of the roots of a round.

    Parameters
    ----------
    binned : BinnedArrays
        Binned rows, of numbers in bins of 8 bits.
    rules : Rules
        Of the trees, which must have no limits and may split by every feature.
    outputs : int
        Trees of a round.
    counts : int64[features, 256]
        Rows of every bin.
    """

    def __init__(self, binned: BinnedArrays, rules: Rules, outputs: int, counts: IntArray) -> None:
        self._binned, self._plain, self._rules = binned, plain_bins(binned), rules
        self._features = np.arange(len(binned.n_bins), dtype=np.int32)
        self._scratch = Scratch.allocate(binned, rules.packing)
        self._roots, self._children = np.zeros(outputs, dtype=NODE), np.zeros(outputs, dtype=NODE)
        self._plans = {WORDS: Plan.of(binned.columns, counts, _most(rules.packing))}
        if rules.packing.bits > 0 and outputs >= OUTPUTS:
            self._plans[OUTPUTS] = Plan.of(binned.columns, counts, MOST)
        self._rooms: list[list[IntArray]] = []  # by pass and part of the rows
        self._found: dict[int, IntArray] = {}

    @classmethod
    def of(cls, binned: BinnedArrays, rules: Rules, outputs: int, counts: IntArray) -> FirstChildren | None:
        """Return room for them, or None where there are too few trees, children or rows."""
        if outputs < WORDS or rules.num_leaves < 3 or rules.max_depth < 2:
            return None
        rows = binned.columns.shape[1]
        if not _pays(min(outputs, OUTPUTS) * rows // 2, rows):  # even if they had half of the rows each
            return None
        return cls(binned, rules, outputs, counts)

    def fill(self, gradients: Gradients, roots: IntArray, sums: list[IntArray], run: Run) -> None:
        """Count the children of these roots (outputs x counters), where that pays; each of ``sums`` is room
        for the sums of a part of the rows.
        """
        found = (self._roots, self._children)
        first_splits(self._plain, self._features, self._rules, self._scratch, roots, found)
        self._found = {}
        sizes = self._children["count"]
        # A child of few rows has another layout of counters, and one that is not there has none.
        large = np.flatnonzero(sizes > self._rules.slim)
        by_size = large[np.argsort(-sizes[large], kind="stable")].tolist()
        rows = self._binned.columns.shape[1]
        for number, group in enumerate(self._groups(by_size)):
            if _pays(int(sizes[group].sum()), rows):
                self._count(number, group, gradients.q, sums, run)

    def _groups(self, outputs: list[int]) -> list[list[int]]:
        """Those counted in one pass each: four, or five if that leaves none over."""
        five = OUTPUTS in self._plans and len(outputs) % WORDS == OUTPUTS % WORDS and len(outputs) >= OUTPUTS
        whole = len(outputs) // WORDS * WORDS
        groups = [outputs[first : first + WORDS] for first in range(0, whole, WORDS)]
        return [*groups[:-1], outputs[whole - WORDS :]] if five else groups

    def _count(
        self, number: int, group: list[int], q: npt.NDArray[np.int32], sums: list[IntArray], run: Run
    ) -> None:
        """Count the children of some outputs."""
        binned, packing = self._binned, self._rules.packing
        features, rows = binned.columns.shape
        if number == len(self._rooms):
            self._rooms.append([])
        room, parts = self._rooms[number], len(sums)
        while len(room) < parts:
            room.append(aligned(max(self._plans), features * 256 * packing.lanes))
        plan, held = self._plans[len(group)], [some[: len(group)] for some in room[:parts]]
        cuts = np.zeros((len(group), len(_Cut._fields)), np.int64)
        totals = np.zeros((len(group), packing.lanes), np.int64)
        for k, output in enumerate(group):
            child = self._children[output]
            cuts[k] = _cut(binned, self._roots[output], output, child["number"] == 0)
            totals[k] = _lanes(packing, *(int(child[name]) for name in ("total", "weight", "count")))
        chunks = max(1, -(-rows // CHUNK))

        def fill_part(part: int) -> None:
            first, last = (CHUNK * (chunks * at // parts) for at in (part, part + 1))
            some = _Group(binned.columns, plan.steps, sums[part], held[part])
            first_histograms(some, (first, min(last, rows)), q, cuts, packing)

        run(fill_part, range(parts))
        for some in held[1:]:
            np.add(held[0], some, out=held[0])
        fill_fullest(plan.fullest, totals, held[0])
        self._found |= dict(zip(group, held[0], strict=True))

    def copy(self, output: int, hist: IntArray) -> bool:
        """Write the histogram of an output's child; return whether it is there."""
        found = self._found.get(output)
        if found is not None:
            hist[: len(found)] = found
        return found is not None


def _pays(children: int, rows: int) -> bool:
    """Whether a pass over all rows takes less time than counting the rows of its children."""
    return children >= _PASS * rows + _BESIDE


def _most(packing: Packing) -> int:
    """Rows of a bin that counters of a pass can take."""
    return packing.chunk if packing.chunk_bits else 1 << packing.count_bits


def _cut(binned: BinnedArrays, node: Any, output: int, left: bool) -> _Cut:
    """Which rows go to one side of a root's split: a run of bins goes left."""
    f = int(node["feature"])
    first = 1 if binned.missing[f] and not node["missing_left"] else 0
    return _Cut(output, f, first, int(node["bin"]), int(left))


def _lanes(packing: Packing, total: int, weight: int, count: int) -> list[int]:
    """What the bins of a feature sum to, by lane."""
    shared = packing.count_bits > 0
    lanes = [(total << packing.count_bits) + (count if shared else 0)]
    return lanes + [weight] * packing.second + [count] * (not shared)


@kernel(allocates=True)
def first_splits(binned, features, rules, scratch, hists, found):  # type: ignore[no-untyped-def]
    """Find the best splits of roots, from their histograms, and the smaller side of each: its ``number`` is 0
    if that is the left one, its ``count`` 0 if there is no split.
    """
    # IN: binned, features, rules, hists (by output)  OUT: scratch, found (two nodes of each output)
    nodes, children = found
    sides = np.zeros(2, NODE)
    zero = int64(0)  # typed: Numba would compile again for a literal's own type
    for k in range(len(nodes)):
        node = nodes[k]
        start_node(nodes, k, zero, zero, zero, zero)
        sum_root(binned, rules.packing, zero, hists[k], node)
        best_split(hists[k], binned, features, (zero, len(features)), rules, None, scratch, node)
        finish_split(hists[k], binned, rules.packing, node)
        if node.gain > 0:
            children[k] = sides[start_sides(node, zero, sides, zero)]
        else:
            start_node(children, k, zero, zero, zero, zero)


@kernel(allocates=True)
def first_histograms(group, span, q, cuts, packing):  # type: ignore[no-untyped-def]
    """Histograms of four or five children: what rows ``span[0]`` up to ``span[1]`` add; the first of these
    begins a chunk. Fullest bins are left to `fill_fullest`.
    """
    # IN: columns and steps of group, span, q, cuts, packing  OUT: sums and hists of group
    columns, sums = group.columns, group.sums
    features, five = int64(columns.shape[0]), len(cuts) == OUTPUTS
    words, vectors = np.empty((WORDS, CHUNK), np.int64), np.empty(WORDS * CHUNK, np.int64)
    sums[:] = 0
    group.hists[:] = 0
    for low in range(span[0], span[1], CHUNK):
        high = min(low + CHUNK, span[1])
        if five:
            fill_five(q, columns, (low, high), cuts, packing, words)
        else:
            for k in range(WORDS):
                row, column = q[cuts[k, 0], low:high], columns[cuts[k, 1], low:high]
                _fill_words(row, column, cuts[k], packing, words[k])
        weave(words, high - low, vectors)
        for f in range(0, features, TURN):
            turn = (f, min(f + TURN, features))
            what = group.steps[f // TURN, low // CHUNK]
            if what != ADD:
                _spread_all(sums, turn, packing, five, group.hists)
            some, to = columns[turn[0] : turn[1]], sums[turn[0] : turn[1]]
            if what != CUT:
                add_words(some[:, low:high], vectors, to)
                continue
            for start in range(low, high, PIECE):
                add_words(some[:, start : min(start + PIECE, high)], vectors[WORDS * (start - low) :], to)
                _spread_all(sums, turn, packing, five, group.hists)
    _spread_all(sums, (int64(0), features), packing, five, group.hists)


@step()
def _spread_all(sums, turn, packing, five, hists):  # type: ignore[no-untyped-def]
    """Add the counters of some features to the histograms of all children, and zero them."""
    if five:
        spread_five(sums, turn, packing, hists)
    else:
        _spread(sums, turn, packing, hists)


@step()
def _fill_words(row, column, cut, packing, words):  # type: ignore[no-untyped-def]
    """What rows add to one output's counters: nothing if they are not in its child."""
    bounds, n = bounds_of(cut), uint64(len(row))
    if packing.bits > 0:
        for i in range(n):
            r, h = narrow(row[i], packing)
            words[i] = triple(r, h, packing) if in_child(column, bounds, i) else int64(0)
    else:
        bits = packing.count_bits if packing.count_bits > 0 else packing.chunk_bits
        for i in range(n):
            words[i] = (int64(row[i]) << bits) + int64(1) if in_child(column, bounds, i) else int64(0)


@step()
def _spread(sums, turn, packing, hists):  # type: ignore[no-untyped-def]
    """`_spread_all` of four children."""
    # IN: turn, packing  OUT: sums, hists
    lanes = packing.lanes
    counters, add = np.empty(256, np.int64), lanes > 0
    for f in range(turn[0], turn[1]):
        for k in range(WORDS):
            part = hists[k, 256 * f * lanes : 256 * (f + 1) * lanes]
            for b in range(256):
                counters[b] = sums[f, WORDS * b + k]
            if packing.chunk_bits > 0:
                spread(counters, packing, add, part)
            else:
                for b in range(256):
                    part[b] += counters[b]
        sums[f] = 0


@kernel("void(int64[::1], int64[:, ::1], int64[:, ::1])")
def fill_fullest(fullest, totals, hists):  # type: ignore[no-untyped-def]
    """What the fullest bin of every feature holds: all of ``totals`` (by child and lane) but what the others
    hold.
    """
    # IN: fullest, totals  OUT: hists
    lanes = totals.shape[1]
    for k in range(len(hists)):
        for f in range(len(fullest)):
            part = hists[k, 256 * f * lanes : 256 * (f + 1) * lanes]
            for lane in range(lanes):
                rest = totals[k, lane]
                for b in range(256):
                    if b != fullest[f]:
                        rest -= part[b * lanes + lane]
                part[fullest[f] * lanes + lane] = rest
