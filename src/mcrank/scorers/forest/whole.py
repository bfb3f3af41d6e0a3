"""Trees that are folded in one step: those no deeper than `DEPTH`, filled up to have all leaves that deep.

A leaf that is higher up takes the place of a node that sends all rows to one and the same leaf below. Such
places cost as much as nodes, so trees with many of them are better folded node by node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import Array
from mcrank.kernels.memory import aligned
from mcrank.scorers.forest.block_kernels import DEPTH, WHOLE
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.rank_kernels import LANES
from mcrank.scorers.forest.tables import Ranked

# Nanoseconds that a block takes for a whole tree, for three nodes above four leaves, for another node.
COSTS = 52.0, 2.9, 2.5


class Wholes(NamedTuple):
    """Whole trees: `WHOLE` places of each, the columns of its nodes and last the slot of its result;
    `WHOLE` numbers just above the ranks that go left; and as many leaf values, from the left.
    """

    whole: Array
    whole_number: Array
    leaf_value: Array


def are_whole(forest: Forest, fours: Array, others: Array) -> Array:
    """Which trees are better folded whole than by so many steps of three nodes and of one."""
    whole, four, other = COSTS
    wanted = four * fours + other * others > whole
    inner = forest.tree_offsets[:-1][wanted]
    tree = np.flatnonzero(wanted)
    for _ in range(DEPTH):  # the nodes of a level, in the trees that are wanted
        has_below = forest.feature[inner] >= 0
        inner, tree = inner[has_below], tree[has_below]
        first = forest.tree_offsets[tree]
        inner = np.concatenate([first + forest.left[inner], first + forest.right[inner]])
        tree = np.concatenate([tree, tree])
    wanted[tree[forest.feature[inner] >= 0]] = False
    return np.asarray(wanted)


def lay_wholes(forest: Forest, trees: Array, members: Array, seen: Ranked) -> Wholes:
    """Return the places, numbers and leaf values of some trees, which have places in their groups."""
    first = forest.tree_offsets[trees]
    nodes = np.empty((2 * WHOLE - 1, len(trees)), dtype=np.int64)  # by their places in the complete tree
    nodes[0] = first
    for place in range(WHOLE - 1):
        above = nodes[place]
        is_leaf = forest.feature[above] < 0
        nodes[2 * place + 1] = np.where(is_leaf, above, first + forest.left[above])
        nodes[2 * place + 2] = np.where(is_leaf, above, first + forest.right[above])
    inner, leaves = nodes[: WHOLE - 1].T, nodes[WHOLE - 1 :].T
    whole = aligned(len(trees), WHOLE, dtype=np.uint16)
    number = aligned(len(trees), WHOLE, dtype=np.uint32)
    whole[:, :-1], whole[:, -1] = seen.column_of[inner], members * LANES
    number[:, :-1] = (seen.rank_of[inner] - 127 & 255) * 0x01010101  # of leaves any: both sides are the same
    return Wholes(whole.reshape(-1), number.reshape(-1), forest.value[leaves].reshape(-1))
