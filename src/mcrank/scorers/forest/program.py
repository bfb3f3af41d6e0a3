"""The form of a forest the fold kernels read: rank tables, node programs and leaf values."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import Array
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.kernels.planes import ROWS, looks_up_fast, planes_of
from mcrank.kernels.search import TURNED
from mcrank.lazy import lazy
from mcrank.scorers.forest.block_kernels import GROUP, MAX_LEAVES, WHOLE, Program, Scratch, TreeArrays
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.rank_kernels import LANES, Tables
from mcrank.scorers.forest.tables import Ranked, ranked
from mcrank.scorers.forest.whole import COSTS, are_whole, lay_wholes

LEAF, NODE, FOUR, INSIDE = range(4)
_MOST_SLOTS = (1 << 16) // LANES  # places of slots are kept in 16 bits


@dataclass(frozen=True, eq=False)
class CompiledForest:
    """Arrays for `fold_rows`, and the sizes of its scratch.

    A *table* holds up to 255 thresholds of one feature; a feature with more has several tables. A *column*
    holds the ranks of a block in one table, with NaN ranked lowest or highest: two columns where the nodes
    disagree about missing values. A *slot* holds one leaf number per row of a block; the first `GROUP` slots
    take the results of a group's trees, the next ``constants`` slots hold 0, 1, 2, ... A *group* is up to
    `GROUP` trees of one output, or one tree too big to fold. A *four* is three nodes above four leaves, or
    two above three, of which one then has two numbers.
    """

    tables: Tables
    program: Program
    columns: int
    constants: int
    slots: int
    _kept: threading.local = field(default_factory=threading.local)

    @lazy
    def block_nanoseconds(self) -> int:
        """Roughly how long a block of rows takes, to judge whether threads are worth starting."""
        program = self.program
        walked = int(np.count_nonzero(program.group_walk >= 0))
        wholes = len(program.whole) // WHOLE * int(COSTS[0])
        return (
            wholes
            + 2 * (len(program.node_number) + len(program.four) // 4)
            + LANES
            * (
                2 * len(self.tables.feature)
                + 3 * len(self.tables.set_feature)
                + len(program.tree_value) // 2
                + 100 * walked
            )
        )

    def scratch(self, n_outputs: int) -> Scratch:
        """Return the scratch of the calling thread, made once."""
        kept: Scratch | None = getattr(self._kept, "scratch", None)
        if kept is None:
            places = aligned(LANES, dtype=np.int32)
            values = aligned(TURNED * LANES, dtype=np.float32)
            ranks = aligned(self.columns * LANES, dtype=np.int8)
            slots = aligned(self.slots * LANES, dtype=np.uint8)
            numbers = np.repeat(np.arange(self.constants, dtype=np.uint8), LANES)
            slots[GROUP * LANES : (GROUP + self.constants) * LANES] = numbers
            sums = aligned(n_outputs * LANES, dtype=np.float64)
            kept = Scratch(places, values, ranks, slots, sums)
            self._kept.scratch = kept
        return kept


def compile_forest(forest: Forest) -> CompiledForest:
    """Return the compiled form of a forest."""
    sizes = np.diff(forest.tree_offsets)
    small = sizes <= 2 * MAX_LEAVES - 1
    found = ranked(forest, (forest.feature >= 0) & np.repeat(small, sizes))
    if found is None:  # a forest that tests so many features is walked
        small = np.zeros_like(small)
        found = ranked(forest, np.zeros(forest.n_nodes, dtype=bool))
        assert found is not None  # of no nodes
    program, constants, slots = _program(forest, small, found)
    return CompiledForest(found.tables, program, found.columns, constants, slots)


def _program(forest: Forest, small: Array, seen: Ranked, together: int = GROUP) -> tuple[Program, int, int]:
    """Put up to ``together`` trees into a group, lay out their nodes and leaf values; also the constants and
    slots they need.
    """
    # Trees of one output together, in their order: the sums of an output do not change, and groups are full.
    order = np.argsort(forest.tree_output, kind="stable")
    output, foldable = forest.tree_output[order], small[order]
    index = np.arange(len(order))
    new_run = np.ones(len(order), dtype=bool)
    new_run[1:] = (output[1:] != output[:-1]) | ~foldable[1:] | ~foldable[:-1]
    member = (index - np.maximum.accumulate(np.where(new_run, index, 0))) % together
    first = np.flatnonzero(member == 0)
    ends = np.append(first, len(order))
    nodes = Nodes(_kinds(forest), seen.column_of, seen.rank_of)
    counts = [_by_tree(forest, nodes.kind == kind) for kind in (FOUR, NODE, LEAF)]
    whole = foldable & are_whole(forest, counts[0], counts[1])[order]
    stepped = foldable & ~whole
    fours, others, leaves = (np.where(stepped, count[order], 0) for count in counts)
    leaves += 4 * fours  # their numbers: some have two
    constants = int(leaves.max(initial=1))
    # A tree of one leaf takes a step too, to put leaf 0 where the result is looked for.
    others = np.where(leaves == 1, 1, others)
    tree_four, tree_step, tree_value = map(_starts, (fours, others, np.where(whole, WHOLE, leaves)))
    # Trees of a group are folded beside each other, so each has slots of its own.
    tree_slot = _starts(
        fours + np.where(stepped, _by_tree(forest, _lone_pairs(forest, nodes.kind))[order], 0)
    )
    before = tree_slot[:-1] - np.repeat(tree_slot[first], np.diff(ends))
    if GROUP + constants + np.diff(tree_slot[ends]).max(initial=0) > _MOST_SLOTS:
        return _program(forest, small, seen, together // 2)
    steps = Steps(
        leaf_value=aligned(int(tree_value[-1]), dtype=np.float64),
        four=aligned(4 * int(tree_four[-1]), dtype=np.uint16),
        four_number=aligned(4 * int(tree_four[-1]), dtype=np.uint32),
        node=aligned(4 * int(tree_step[-1]), dtype=np.uint16),
        node_number=aligned(int(tree_step[-1]), dtype=np.uint32),
    )
    placed = PlacedTrees(
        order[stepped], member[stepped], tree_four[:-1][stepped], tree_step[:-1][stepped],
        tree_value[:-1][stepped], (GROUP + constants + before)[stepped],
    )  # fmt: skip
    slots = _lay_out(constants, placed, forest.arrays, nodes, steps)
    wholes = lay_wholes(forest, order[whole], member[whole], seen)
    steps.leaf_value[(tree_value[:-1][whole, None] + np.arange(WHOLE)).ravel()] = wholes.leaf_value
    steps = _side_by_side(steps, np.repeat(np.arange(len(first)), np.diff(tree_step[ends])), others)
    program = Program(
        group_tree=_starts(foldable)[ends].astype(np.uint64),
        group_whole=_starts(whole)[ends].astype(np.uint64),
        group_four=tree_four[ends].astype(np.uint64),
        group_node=tree_step[ends].astype(np.uint64),
        group_output=output[first].astype(np.int64),
        group_walk=np.where(foldable[first], -1, order[first]),
        tree_value=tree_value[:-1][foldable].astype(np.uint64),
        planes=_planes(steps.leaf_value, tree_value[:-1][foldable], np.diff(tree_value)[foldable]),
        whole=wholes.whole,
        whole_number=wholes.whole_number,
        **steps._asdict(),
    )
    return program, constants, int(slots)


def _planes(values: Array, first: Array, counts: Array) -> Array:
    """Leaf values of each tree as planes; none where a tree has too many, or the processor is no faster."""
    if counts.max(initial=0) > ROWS or not looks_up_fast():
        return np.empty(0, dtype=np.uint8)
    number = np.arange(ROWS)
    places = first[:, None] + np.minimum(number, counts[:, None] - 1)  # to fill up, any
    return planes_of(values[places])


def _kinds(forest: Forest) -> Array:
    """What each node is: `LEAF`, a `NODE` of its own, the top of a `FOUR`, a node or leaf `INSIDE` one."""
    leaf = forest.feature < 0
    sizes = np.diff(forest.tree_offsets)
    start = np.repeat(forest.tree_offsets[:-1], sizes)
    left, right = (np.where(leaf, 0, start + child) for child in (forest.left, forest.right))
    pair = ~leaf & leaf[left] & leaf[right]
    four = ~leaf & (leaf[left] | pair[left]) & (leaf[right] | pair[right]) & (pair[left] | pair[right])
    # Of three leaves one gets two numbers, and a tree may have no more of these than leaves.
    three = four & (leaf[left] | leaf[right])
    numbers = _by_tree(forest, leaf) + _by_tree(forest, three)
    four &= ~(three & np.repeat(numbers > MAX_LEAVES, sizes))
    kind = np.where(leaf, LEAF, np.where(four, FOUR, NODE)).astype(np.int8)
    for child in (left[four], right[four]):
        kind[child] = INSIDE
        below = child[~leaf[child]]
        kind[left[below]] = kind[right[below]] = INSIDE
    return kind


def _by_tree(forest: Forest, nodes: Array) -> Array:
    """How many of some nodes each tree has."""
    return np.diff(_starts(nodes)[forest.tree_offsets])


class PlacedTrees(NamedTuple):
    """Trees that are folded: places in their groups, and their first fours, steps, leaf values and slots."""

    tree: Array
    member: Array
    four: Array
    step: Array
    value: Array
    slot: Array


class Nodes(NamedTuple):
    """What each node is, the column it reads and its rank there."""

    kind: Array
    column: Array
    rank: Array


class Steps(NamedTuple):
    """Leaf values and steps of all trees; see `Program`."""

    leaf_value: Array
    four: Array
    four_number: Array
    node: Array
    node_number: Array


@kernel(allocates=True)
def _lay_out(constants: int, placed: PlacedTrees, trees: TreeArrays, nodes: Nodes, steps: Steps) -> int:
    """Write the steps of every tree; return the number of slots they use. IN: all others. OUT: ``steps``."""
    slot_of = np.empty(2 * MAX_LEAVES, np.int64)
    most = GROUP + constants
    for t in range(placed.tree.shape[0]):
        fours = _lay_fours(t, placed, trees, nodes, steps, slot_of)
        most = max(most, _lay_nodes(constants, t, fours, placed, trees, nodes, steps, slot_of))
    return most


@njit(nogil=True)
def _four_times(number: int) -> int:
    """A byte in each of four."""
    return (number & 255) * 0x01010101


@njit(nogil=True)
def _number(rank: int) -> int:
    """The number just above a rank, which are kept less 128; ranks end at 254."""
    return _four_times(rank - 127)


@njit(inline="always")
def _lay_fours(
    t: int, placed: PlacedTrees, trees: TreeArrays, nodes: Nodes, steps: Steps, slot_of: Array
) -> int:
    """Write the fours of a tree, and their leaf values; return how many there are."""
    first, end = trees.tree_offsets[placed.tree[t]], trees.tree_offsets[placed.tree[t] + 1]
    done = 0
    for n in range(end - 1, first - 1, -1):
        if nodes.kind[n] != FOUR:
            continue
        at, values = 4 * (placed.four[t] + done), placed.value[t] + 4 * done
        steps.four[at], steps.four_number[at] = nodes.column[n], _number(nodes.rank[n])
        for side in range(2):
            child = first + (trees.right[n] if side else trees.left[n])
            a, b, column, rank = child, child, nodes.column[n], 0  # a leaf alone: whichever side, the same
            if trees.feature[child] >= 0:
                a, b = first + trees.left[child], first + trees.right[child]
                column, rank = nodes.column[child], nodes.rank[child]
            steps.four[at + 1 + side], steps.four_number[at + 1 + side] = column, _number(rank)
            steps.leaf_value[values + 2 * side] = trees.value[a]
            steps.leaf_value[values + 2 * side + 1] = trees.value[b]
        slot_of[n - first] = placed.slot[t] + done if n > first else placed.member[t]
        steps.four[at + 3], steps.four_number[at + 3] = slot_of[n - first] * LANES, _four_times(4 * done)
        done += 1
    return done


@njit(inline="always")
def _lay_nodes(
    constants: int, t: int, fours: int, placed: PlacedTrees, trees: TreeArrays, nodes: Nodes, steps: Steps,
    slot_of: Array,
) -> int:  # fmt: skip
    """Write the other steps of a tree, and the values of its other leaves; return the first slot that none of
    its steps uses.
    """
    first, end = trees.tree_offsets[placed.tree[t]], trees.tree_offsets[placed.tree[t] + 1]
    step, next_slot, leaf = placed.step[t], placed.slot[t] + fours, 4 * fours
    for n in range(end - 1, first - 1, -1):  # children before their parent
        if nodes.kind[n] == FOUR or nodes.kind[n] == INSIDE:
            continue
        from_left, from_right = GROUP, GROUP
        if nodes.kind[n] == LEAF:
            slot_of[n - first] = GROUP + leaf
            steps.leaf_value[placed.value[t] + leaf] = trees.value[n]
            leaf += 1
            if n > first:
                continue
        else:
            from_left, from_right = slot_of[trees.left[n]], slot_of[trees.right[n]]
        if n == first:
            slot_of[0] = placed.member[t]
        elif max(from_left, from_right) >= GROUP + constants:
            slot_of[n - first] = max(from_left, from_right)  # that of a child, which nobody else reads
        else:
            slot_of[n - first] = next_slot
            next_slot += 1
        steps.node[4 * step], steps.node[4 * step + 1] = from_left * LANES, from_right * LANES
        steps.node[4 * step + 2], steps.node[4 * step + 3] = nodes.column[n], slot_of[n - first] * LANES
        steps.node_number[step] = _number(nodes.rank[n])
        step += 1
    return int(next_slot)


def _side_by_side(steps: Steps, group: Array, counts: Array) -> Steps:
    """Let the trees of a group take turns, so that no step waits for the one before it; roots come last."""
    left = np.repeat(np.cumsum(counts), counts) - np.arange(len(group))
    order = np.lexsort((-left, group))
    node, node_number = aligned(4 * len(group), dtype=np.uint16), aligned(len(group), dtype=np.uint32)
    node[:], node_number[:] = steps.node.reshape(-1, 4)[order].ravel(), steps.node_number[order]
    return steps._replace(node=node, node_number=node_number)


def _lone_pairs(forest: Forest, kind: Array) -> Array:
    """Nodes of their own whose children are leaves: they need a slot, others write into that of a child."""
    start = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))
    own = kind == NODE
    left, right = (np.where(own, start + child, 0) for child in (forest.left, forest.right))
    return np.asarray(own & (kind[left] == LEAF) & (kind[right] == LEAF))


def _starts(sizes: Array) -> Array:
    return np.concatenate(([0], np.cumsum(sizes)))
