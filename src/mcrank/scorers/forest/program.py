"""The form of a forest the fold kernels read: rank tables, node programs and leaf values."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mcrank.arrays import Array
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.lazy import lazy
from mcrank.scorers.forest.block_kernels import (
    GROUP,
    LANES,
    MAX_LEAVES,
    RUN,
    TABLE,
    Program,
    Scratch,
    Tables,
    TreeArrays,
)
from mcrank.scorers.forest.forest import Forest


@dataclass(frozen=True, eq=False)
class CompiledForest:
    """Arrays for `fold_rows`, and the sizes of its scratch.

    A *table* holds up to 255 thresholds of one feature; a feature with more has several tables. A *column*
    holds the ranks of a block in one table, with NaN ranked lowest or highest: two columns where the nodes
    disagree about missing values. A *slot* holds one leaf number per row of a block; the first `GROUP` slots
    take the results of a group's trees, the next ``constants`` slots hold 0, 1, 2, ... A *group* is up to
    `GROUP` trees of one output, or one tree too big to fold.
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
        return 2 * len(program.node_rank) + LANES * (
            4 * len(self.tables.feature)
            + 3 * len(self.tables.set_feature)
            + len(program.tree_value) // 2
            + 100 * walked
        )

    def scratch(self, n_outputs: int) -> Scratch:
        """Return the scratch of the calling thread, made once."""
        kept: Scratch | None = getattr(self._kept, "scratch", None)
        if kept is None:
            ranks = aligned(self.columns * LANES, dtype=np.int8)
            slots = aligned(self.slots * LANES, dtype=np.uint8)
            numbers = np.repeat(np.arange(self.constants, dtype=np.uint8), LANES)
            slots[GROUP * LANES : (GROUP + self.constants) * LANES] = numbers
            kept = Scratch(ranks, slots, aligned(n_outputs * LANES, dtype=np.float64))
            self._kept.scratch = kept
        return kept


def compile_forest(forest: Forest) -> CompiledForest:
    """Return the compiled form of a forest."""
    sizes = np.diff(forest.tree_offsets)
    small = sizes <= 2 * MAX_LEAVES - 1
    folded = (forest.feature >= 0) & np.repeat(small, sizes)
    inner, on_sets = (
        np.flatnonzero(folded & (forest.category_set < 0)),
        np.flatnonzero(folded & (forest.category_set >= 0)),
    )
    table_feature, thresholds, table, rank = _tables(forest.feature[inner], forest.threshold[inner])
    low, high, column = _columns(table, forest.missing_left[inner], len(table_feature))
    numeric = len(np.unique(column)) + 1  # the last one takes the ranks nobody reads
    sets, set_of = _set_columns(forest, on_sets)
    columns = numeric + len(sets)
    if columns > 1 << 16:
        # Columns are numbered in 16 bits. A forest that tests so many features is walked.
        small, inner, numeric, columns = np.zeros_like(small), inner[:0], 1, 1
        on_sets, sets, set_of = on_sets[:0], sets[:0], set_of[:0]
        table_feature, thresholds, low, high = table_feature[:0], thresholds[:0], low[:0], high[:0]
        column, rank = column[:0], rank[:0]
    column_of = np.zeros(forest.n_nodes, dtype=np.int64)
    column_of[inner] = column
    column_of[on_sets] = numeric + set_of
    rank_of = np.zeros(forest.n_nodes, dtype=np.int64)
    rank_of[inner] = rank
    runs = _copied(thresholds.reshape(-1, RUN)[:, -1])
    places = ((numeric + np.arange(len(sets))) * LANES).astype(np.uint64)
    tables = Tables(
        table_feature, low, high, runs, _copied(thresholds.ravel()), _copied(sets[:, 0]),
        _copied(sets[:, 1]), _copied(sets[:, 2]), places,
    )  # fmt: skip
    program, constants, slots = _program(forest, small, column_of, rank_of)
    return CompiledForest(tables, program, columns, constants, slots)


def _tables(feature: Array, threshold: Array) -> tuple[Array, Array, Array, Array]:
    """Cut the distinct thresholds of each feature into tables.

    Returns the feature and (padded) thresholds of each table, and the table and rank of each node.
    """
    # One sortable key per node: the feature above the threshold's bits, made monotone; + 0 joins -0 and 0.
    bits = (threshold + np.float32(0)).view(np.uint32)
    ordered = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    keys, key_of = np.unique((feature.astype(np.uint64) << np.uint64(32)) | ordered, return_inverse=True)
    key_feature = (keys >> np.uint64(32)).astype(np.int64)
    place = np.arange(len(keys)) - np.searchsorted(key_feature, key_feature)
    key_table = np.cumsum(place % (TABLE - 1) == 0) - 1
    key_rank = place % (TABLE - 1)
    tables = int(key_table[-1]) + 1 if len(keys) else 0
    table_feature = np.zeros(tables, dtype=np.int64)
    table_feature[key_table] = key_feature
    thresholds = np.full((tables, TABLE), np.inf, dtype=np.float32)
    thresholds[key_table[key_of], key_rank[key_of]] = threshold
    return table_feature, thresholds, key_table[key_of], key_rank[key_of]


def _columns(table: Array, missing_left: Array, tables: int) -> tuple[Array, Array, Array]:
    """Number the columns nodes read: where each table writes its two, and the column of each node."""
    side = 2 * table + (missing_left == 0)
    used = np.zeros(2 * tables, dtype=bool)
    used[side] = True
    number = np.where(used, np.cumsum(used) - 1, np.count_nonzero(used))
    places = (number * LANES).astype(np.uint64)
    return np.ascontiguousarray(places[0::2]), np.ascontiguousarray(places[1::2]), number[side]


def _set_columns(forest: Forest, nodes: Array) -> tuple[Array, Array]:
    """Feature, set and side of NaN of the columns that nodes with sets read, and the column of each node."""
    asked = np.column_stack([forest.feature[nodes], forest.category_set[nodes], forest.missing_left[nodes]])
    columns, of_node = np.unique(asked.astype(np.int64), axis=0, return_inverse=True)
    return columns.reshape(-1, 3), of_node.reshape(-1)


def _program(forest: Forest, small: Array, column_of: Array, rank_of: Array) -> tuple[Program, int, int]:
    """Put trees into groups, lay out their nodes and leaf values; also the constants and slots they need."""
    # Trees of one output together, in their order: the sums of an output do not change, and groups are full.
    order = np.argsort(forest.tree_output, kind="stable")
    output, foldable = forest.tree_output[order], small[order]
    index = np.arange(len(order))
    new_run = np.ones(len(order), dtype=bool)
    new_run[1:] = (output[1:] != output[:-1]) | ~foldable[1:] | ~foldable[:-1]
    member = (index - np.maximum.accumulate(np.where(new_run, index, 0))) % GROUP
    first = np.flatnonzero(member == 0)
    leaves = np.where(foldable, (np.diff(forest.tree_offsets)[order] + 1) // 2, 0)
    # A tree of one leaf takes a step too, to put leaf 0 where the result is looked for.
    steps = np.where(foldable, np.maximum(leaves - 1, 1), 0)
    tree_value, tree_step = _starts(leaves), _starts(steps)
    constants = int(leaves.max(initial=1))
    leaf_value = aligned(int(tree_value[-1]), dtype=np.float64)
    n_steps = int(tree_step[-1])
    node, node_rank = aligned(4 * n_steps, dtype=np.uint16), aligned(n_steps, dtype=np.int8)
    placed = PlacedTrees(
        order[foldable], member[foldable], tree_step[:-1][foldable], tree_value[:-1][foldable]
    )
    slots = _lay_out(constants, placed, forest.arrays, column_of, rank_of, leaf_value, node, node_rank)
    ends = np.append(first, len(order))
    program = Program(
        group_tree=_starts(foldable)[ends].astype(np.uint64),
        group_node=tree_step[ends].astype(np.uint64),
        group_output=output[first].astype(np.int64),
        group_walk=np.where(foldable[first], -1, order[first]),
        tree_value=placed.value.astype(np.uint64),
        leaf_value=leaf_value,
        node=node,
        node_rank=node_rank,
    )
    return program, constants, int(slots)


class PlacedTrees(NamedTuple):
    """Trees that are folded, each with its place in its group, its first step and its first leaf value."""

    tree: Array
    member: Array
    step: Array
    value: Array


@kernel()
def _lay_out(
    constants: int, placed: PlacedTrees, trees: TreeArrays, column_of: Array, rank_of: Array,
    leaf_value: Array, node: Array, node_rank: Array,
) -> int:  # fmt: skip
    """Write the steps of every tree; return the number of slots they use.

    IN: the trees; the column and rank of each node. OUT: leaf values; per step four numbers (place of the
    left and right child's slot, column, place of its own slot) and its rank.
    """
    slot_of, free = np.empty(2 * MAX_LEAVES, np.int64), np.empty(MAX_LEAVES, np.int64)
    first_free = GROUP + constants
    most = first_free
    for t in range(placed.tree.shape[0]):
        first = trees.tree_offsets[placed.tree[t]]
        step, leaf = placed.step[t], placed.value[t]
        n_free, next_slot = 0, first_free
        last = trees.tree_offsets[placed.tree[t] + 1] - first - 1
        for i in range(last, -1, -1):  # children before their parent
            n = first + i
            from_left, from_right = GROUP, GROUP
            if trees.feature[n] < 0:
                slot_of[i] = GROUP + leaf - placed.value[t]
                leaf_value[leaf] = trees.value[n]
                leaf += 1
                if i > 0:
                    continue
            else:
                from_left, from_right = slot_of[trees.left[n]], slot_of[trees.right[n]]
            # Slots are used again as soon as they have been read: few of them, so that they stay in L1.
            if from_left >= first_free:
                free[n_free] = from_left
                n_free += 1
            if from_right >= first_free:
                free[n_free] = from_right
                n_free += 1
            if i == 0:
                slot_of[i] = placed.member[t]
            elif n_free > 0:
                n_free -= 1
                slot_of[i] = free[n_free]
            else:
                slot_of[i] = next_slot
                next_slot += 1
            node[4 * step] = from_left * LANES
            node[4 * step + 1] = from_right * LANES
            node[4 * step + 2] = column_of[n]
            node[4 * step + 3] = slot_of[i] * LANES
            node_rank[step] = rank_of[n] - 128
            step += 1
        most = max(most, next_slot)
    return most


def _starts(sizes: Array) -> Array:
    return np.concatenate(([0], np.cumsum(sizes)))


def _copied(values: Array) -> Array:
    copy = aligned(len(values), dtype=values.dtype.type)
    copy[:] = values
    return copy
