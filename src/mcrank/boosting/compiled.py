"""The form of a forest the fold kernels read: rank tables, node programs and leaf values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mcrank.boosting.fold import GROUP, LANES, MAX_LEAVES, RUN, TABLE
from mcrank.boosting.trees import Forest

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class CompiledForest:
    """Arrays for `fold_rows`, in the order of its arguments, and the sizes of its scratch.

    A *table* holds up to 255 thresholds of one feature; a feature with more has several tables. A *column*
    holds the ranks of a block in one table, with NaN ranked lowest or highest: two columns where the nodes
    disagree about missing values. A *slot* holds one leaf number per row of a block; the first `GROUP` slots
    take the results of a group's trees, the next ``constants`` slots hold 0, 1, 2, ... A *group* is up to
    `GROUP` trees of one output, or one tree too big to fold.
    """

    table_feature: Array
    low: Array
    high: Array
    runs: Array
    thresholds: Array
    group_tree: Array
    group_node: Array
    group_output: Array
    group_walk: Array
    tree_value: Array
    leaf_value: Array
    node: Array
    node_rank: Array
    columns: int
    constants: int
    slots: int

    def arrays(self) -> tuple[Array, ...]:
        """Return the arrays in the order `fold_rows` takes them."""
        return (
            self.table_feature, self.low, self.high, self.runs, self.thresholds,
            self.group_tree, self.group_node, self.group_output, self.group_walk,
            self.tree_value, self.leaf_value, self.node, self.node_rank,
        )  # fmt: skip

    def scratch(self, n_outputs: int) -> tuple[Array, Array, Array]:
        """Return fresh ``ranks``, ``slots`` and ``sums`` for one thread."""
        ranks = aligned(self.columns * LANES, np.int8)
        slots = aligned(self.slots * LANES, np.uint8)
        numbers = np.repeat(np.arange(self.constants, dtype=np.uint8), LANES)
        slots[GROUP * LANES : (GROUP + self.constants) * LANES] = numbers
        return ranks, slots, aligned(n_outputs * LANES, np.float64)


def aligned(size: int, dtype: type[np.generic]) -> Array:
    """Return a zeroed array that starts on a cache line, so that a vector never crosses two."""
    raw = np.zeros(size * np.dtype(dtype).itemsize + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * np.dtype(dtype).itemsize].view(dtype)


def compile_forest(forest: Forest) -> CompiledForest:
    """Return the compiled form of a forest."""
    sizes = np.diff(forest.tree_offsets)
    small = sizes <= 2 * MAX_LEAVES - 1
    inner = np.flatnonzero((forest.feature >= 0) & np.repeat(small, sizes))
    table_feature, thresholds, table, rank = _tables(forest.feature[inner], forest.threshold[inner])
    low, high, column = _columns(table, forest.missing_left[inner], len(table_feature))
    columns = len(np.unique(column)) + 1  # the last one takes the ranks nobody reads
    if columns > 1 << 16:
        # Columns are numbered in 16 bits. A forest that tests so many features is walked.
        small, inner, columns = np.zeros_like(small), inner[:0], 1
        table_feature, thresholds, low, high = table_feature[:0], thresholds[:0], low[:0], high[:0]
        column, rank = column[:0], rank[:0]
    column_of = np.zeros(forest.n_nodes, dtype=np.int64)
    column_of[inner] = column
    rank_of = np.zeros(forest.n_nodes, dtype=np.int64)
    rank_of[inner] = rank
    program = _program(forest, small, column_of, rank_of)
    return CompiledForest(
        table_feature=table_feature,
        low=low,
        high=high,
        runs=_copied(thresholds.reshape(-1, RUN)[:, -1]),
        thresholds=_copied(thresholds.ravel()),
        columns=columns,
        **program,
    )


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


def _program(forest: Forest, small: Array, column_of: Array, rank_of: Array) -> dict[str, Any]:
    """Lay out groups, node programs and leaf values; see `_lay_out` for what they mean."""
    # Trees of one output together, in their order: sums per output do not change, and groups are full.
    order = np.argsort(forest.tree_output, kind="stable")
    trees = forest.n_trees
    leaves = (np.diff(forest.tree_offsets)[small] + 1) // 2
    steps = int(np.maximum(leaves - 1, 1).sum())
    group_tree, group_node = np.zeros(trees + 1, dtype=np.uint64), np.zeros(trees + 1, dtype=np.uint64)
    group_output, group_walk = np.zeros(trees, dtype=np.int64), np.zeros(trees, dtype=np.int64)
    tree_value = np.zeros(trees, dtype=np.uint64)
    leaf_value = aligned(int(leaves.sum()), np.float64)
    node, node_rank = aligned(4 * steps, np.uint16), aligned(steps, np.int8)
    constants = int(leaves.max(initial=1))
    groups, slots = _lay_out(
        LANES, GROUP, constants, order, small, forest.tree_output, forest.tree_offsets,
        forest.feature, forest.left, forest.right, forest.value, column_of, rank_of,
        group_tree, group_node, group_output, group_walk, tree_value, leaf_value, node, node_rank,
    )  # fmt: skip
    return {
        "group_tree": group_tree[: groups + 1],
        "group_node": group_node[: groups + 1],
        "group_output": group_output[:groups],
        "group_walk": group_walk[:groups],
        "tree_value": tree_value,
        "leaf_value": leaf_value,
        "node": node,
        "node_rank": node_rank,
        "constants": constants,
        "slots": slots,
    }


@njit(nogil=True, cache=True)
def _lay_out(
    lanes: int, group: int, constants: int, order: Array, small: Array,
    tree_output: Array, tree_offsets: Array, feature: Array, left: Array, right: Array, value: Array, column_of: Array, rank_of: Array,
    group_tree: Array, group_node: Array, group_output: Array, group_walk: Array,
    tree_value: Array, leaf_value: Array, node: Array, node_rank: Array,
) -> tuple[int, int]:  # fmt: skip
    """Write the program of every tree; return the number of groups and of slots.

    ``lanes`` and ``group`` are arguments because the on-disk cache of a kernel knows only its own file: a
    constant of another file would go stale unseen.

    IN: trees in scoring order; the column and rank of each node. OUT: groups with their first tree and node;
    where the leaf values of each tree start; per node four numbers (place of the left and right child's slot,
    column, place of its own slot) and its rank.
    """
    slot_of = np.zeros(np.max(np.diff(tree_offsets)) if len(order) else 1, dtype=np.int64)
    free = np.zeros(
        np.int64(constants) + 1, dtype=np.int64
    )  # slots that can be used again; few, so they stay in L1
    first_free = group + constants
    groups, trees, nodes, values, members, most = 0, 0, 0, 0, 0, first_free
    for t in order:
        if not small[t]:
            group_walk[groups], group_output[groups] = t, tree_output[t]
            members = 0
            groups += 1
            group_tree[groups], group_node[groups] = trees, nodes
            continue
        if members == 0 or members == group or group_output[groups - 1] != tree_output[t]:
            group_walk[groups], group_output[groups] = -1, tree_output[t]
            members = 0
            groups += 1
        first = tree_offsets[t]
        tree_value[trees] = values
        leaves, n_free, next_slot = 0, 0, first_free
        for i in range(tree_offsets[t + 1] - first - 1, -1, -1):  # children before their parent
            n = first + i
            from_left, from_right, column, rank = group, group, 0, 0
            if feature[n] < 0:
                slot_of[i] = group + leaves
                leaf_value[values] = value[n]
                leaves += 1
                values += 1
                if i > 0:
                    continue
                # A tree that is one leaf still needs a node, to put leaf 0 where the root's result goes.
            else:
                from_left, from_right, column, rank = (
                    slot_of[left[n]],
                    slot_of[right[n]],
                    column_of[n],
                    rank_of[n],
                )
            for used in (from_left, from_right):
                if used >= first_free:
                    free[n_free] = used
                    n_free += 1
            if i == 0:
                slot_of[i] = members
            elif n_free > 0:
                n_free -= 1
                slot_of[i] = free[n_free]
            else:
                slot_of[i] = next_slot
                next_slot += 1
            node[4 * nodes] = from_left * lanes
            node[4 * nodes + 1] = from_right * lanes
            node[4 * nodes + 2] = column
            node[4 * nodes + 3] = slot_of[i] * lanes
            node_rank[nodes] = rank - 128
            nodes += 1
        members += 1
        trees += 1
        most = max(most, next_slot)
        group_tree[groups], group_node[groups] = trees, nodes
    return groups, most


def _copied(values: Array) -> Array:
    copy = aligned(len(values), values.dtype.type)
    copy[:] = values
    return copy
