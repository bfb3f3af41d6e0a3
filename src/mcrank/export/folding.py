"""A forest as bytes that are folded together: no branch a row takes alone, so many rows go at once.

Each value is ranked once among the thresholds of its feature (tables of at most 255 of them, so that a rank
is a byte). A node then asks whether a rank is above its cut, and a tree is folded from its leaves to its
root: an operation takes the numbers of the leaves that two subtrees end in and keeps one. Operations stand in
an order that needs a stack of at most nine entries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.export.trees import Tree, trees_of
from mcrank.scorers.forest.forest import Forest

MOST_LEAVES = 256  # the number of a leaf is a byte
_TABLE = 255  # thresholds; a rank among them is a byte
MOST_COLUMNS = 16384  # of ranks; a forest that needs more is walked
# What an operation finds: both subtrees are leaves; one is, and the other is on the stack; both are there.
LEAVES, LEFT_LEAF, RIGHT_LEAF, LEFT_BELOW, RIGHT_BELOW = range(5)


class Operation(NamedTuple):
    """One node: the leaf of its right subtree is kept where the rank in ``column`` is above ``cut``."""

    column: int
    cut: int
    kind: int
    left: int
    right: int


class Table(NamedTuple):
    """Thresholds of a feature, rising, and the columns of their ranks: missing values low, missing high."""

    feature: int
    thresholds: npt.NDArray[np.float32]
    low: int
    high: int


class Folded(NamedTuple):
    """A forest as tables and operations.

    Attributes
    ----------
    tables : list of Table
        How values become ranks.
    n_columns : int
        Columns of ranks.
    trees : list of lists of Operation, or None
        Operations of each tree, none for a single leaf; None where the tree has too many leaves to be folded.
    leaves : list of ndarray
        Nodes that are the leaves of each tree, by number.
    depth : int
        Entries the stack needs.
    """

    tables: list[Table]
    n_columns: int
    trees: list[list[Operation] | None]
    leaves: list[IntArray]
    depth: int


def fold(forest: Forest) -> Folded:
    """Return the forest as tables and operations.

    Examples
    --------
    >>> from mcrank.export.folding import fold
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.0])
    >>> builder.append(feature=[0, -1, 0, -1, -1], threshold=[1.0, 0, 2.0, 0, 0], left=[1, -1, 3, -1, -1],
    ...                right=[2, -1, 4, -1, -1], value=[0, 1.0, 0, 2.0, 3.0])
    >>> [tuple(operation) for operation in fold(builder.build()).trees[0]]
    [(0, 1, 0, 1, 2), (0, 0, 1, 0, 0)]
    """
    trees = list(trees_of(forest))
    small = np.array([(tree.feature < 0).sum() <= MOST_LEAVES for tree in trees], dtype=bool)
    tables, columns, cuts = _tables(forest, np.repeat(small, np.diff(forest.tree_offsets)))
    n_columns = sum((table.low >= 0) + (table.high >= 0) for table in tables)
    if n_columns > MOST_COLUMNS:
        tables, n_columns, small = [], 0, np.zeros_like(small)
    found: list[list[Operation] | None] = []
    depth = 1
    bounds = forest.tree_offsets.tolist()
    for tree, start, end, folds in zip(trees, bounds, bounds[1:], small.tolist(), strict=False):
        if folds:
            folder = _Folder(tree, columns[start:end], cuts[start:end])
            folder.emit(0)
            depth = max(depth, int(folder.needs[0]))
            found.append(folder.operations)
        else:
            found.append(None)
    return Folded(tables, n_columns, found, [np.flatnonzero(tree.feature < 0) for tree in trees], depth)


def _tables(forest: Forest, folded: npt.NDArray[np.bool_]) -> tuple[list[Table], list[int], list[int]]:
    """Return tables of thresholds, and the column and cut of each node."""
    tables: list[Table] = []
    columns, cuts = np.zeros(forest.n_nodes, dtype=np.int64), np.zeros(forest.n_nodes, dtype=np.int64)
    inner = np.flatnonzero(folded & (forest.feature >= 0))
    inner = inner[np.argsort(forest.feature[inner], kind="stable")]
    next_column = 0
    for nodes in np.split(inner, np.flatnonzero(np.diff(forest.feature[inner])) + 1):
        if len(nodes) == 0:
            continue
        known, place = np.unique(forest.threshold[nodes], return_inverse=True)
        for first in range(0, len(known), _TABLE):
            here = (place >= first) & (place < first + _TABLE)
            sides = []
            for missing_left in (1, 0):
                own = nodes[here & (forest.missing_left[nodes] == missing_left)]
                sides.append(next_column if len(own) else -1)
                columns[own] = next_column
                next_column += len(own) > 0
            cuts[nodes[here]] = place[here] - first
            tables.append(Table(int(forest.feature[nodes[0]]), known[first : first + _TABLE], *sides))
    return tables, columns.tolist(), cuts.tolist()


class _Folder:
    """Writes the operations of one tree, of two subtrees first the one that needs more of the stack."""

    def __init__(self, tree: Tree, columns: list[int], cuts: list[int]) -> None:
        self.operations: list[Operation] = []
        self._columns, self._cuts = columns, cuts
        self._left, self._right = tree.left.tolist(), tree.right.tolist()
        leaf = tree.feature < 0
        self._number = np.where(leaf, np.cumsum(leaf) - 1, -1).tolist()  # of a leaf; -1: inner node
        self.needs = [0] * len(leaf)
        for node in range(len(leaf) - 1, -1, -1):  # children come after their parents
            if not leaf[node]:
                a, b = self.needs[self._left[node]], self.needs[self._right[node]]
                self.needs[node] = max(a, b, 1) if a != b else a + 1

    def emit(self, node: int) -> None:
        left, right = self._left[node], self._right[node]
        if self._number[node] >= 0:
            return
        a, b = self._number[left], self._number[right]
        if a >= 0 and b >= 0:
            kind = LEAVES
        elif a >= 0:
            kind = LEFT_LEAF
        elif b >= 0:
            kind = RIGHT_LEAF
        else:
            kind = LEFT_BELOW if self.needs[left] >= self.needs[right] else RIGHT_BELOW
        for child in (right, left) if kind == RIGHT_BELOW else (left, right):
            self.emit(child)
        self.operations.append(Operation(self._columns[node], self._cuts[node], kind, max(a, 0), max(b, 0)))
