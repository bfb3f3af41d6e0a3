"""Kernels that score a forest: fold whole trees over blocks of rows, or walk one row at a time.

A block of `LANES` rows goes through a forest in two steps:

1. *Rank* (`mcrank.scorers.forest.rank_kernels`). Each value becomes one byte: how many of the (at most 255)
   thresholds of its table lie below it. ``x > threshold`` is then a comparison of bytes, and the side NaN
   takes is settled here once. For a set of categories the byte is the lowest or the highest.
2. *Fold.* A tree is evaluated from its leaves to its root for all rows at once: an inner node is one
   comparison and one selection between the leaf numbers its two children arrived at; three nodes with
   nothing but leaves below are one step, whose leaf numbers are counted, not loaded, and so are whole trees
   that are not deep (`mcrank.scorers.forest.whole`). There are no branches
   and no loads that depend on data, and a node costs about a tenth of a cycle per row, so visiting every node
   of a tree of up to `MAX_LEAVES` leaves is cheaper than walking one path through it.

Both steps are a few vector instructions of fixed width (`mcrank.kernels.vectors`), because LLVM does not
vectorize the same loop over slots that may overlap; it maps them to whatever the processor has.

Trees with more leaves, and batches of a few rows, are walked on the raw values instead. All ways add the leaf
values of an output in tree order in float64, so they agree to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import Array
from mcrank.kernels import kernel, step
from mcrank.kernels.choose import leaf_of_tree, one_of_four, select_below
from mcrank.kernels.planes import PLANES, ROWS, add_numbers
from mcrank.scorers.forest.rank_kernels import (
    LANES,
    RANKED_LEFT,
    RANKED_RIGHT,
    Tables,
    has_infinite,
    rank_rows,
)

MIDDLE, NARROW = 64, 16  # rows up to which a block is folded in fewer lanes instead
MAX_LEAVES = 256  # a leaf number is one byte
GROUP = 8  # trees folded before their leaf values are added up
DEPTH = 6  # of trees that are folded in one step, where they are no deeper
WHOLE = 1 << DEPTH  # leaves of such a tree

Index = Any  # unsigned in kernels: a signed index costs a test for counting from the end


# In every lane: slots[out] = slots[left] if number > ranks[column] else slots[right].
_fold_node = select_below(LANES)
_fold_node_middle, _fold_node_narrow = select_below(MIDDLE), select_below(NARROW)
_fold_four = one_of_four(LANES)
_fold_four_middle, _fold_four_narrow = one_of_four(MIDDLE), one_of_four(NARROW)
_fold_whole = leaf_of_tree(LANES, DEPTH, LANES)
_fold_whole_middle, _fold_whole_narrow = (leaf_of_tree(n, DEPTH, LANES) for n in (MIDDLE, NARROW))
_add_planes = add_numbers(GROUP, LANES)


class TreeArrays(NamedTuple):
    """The arrays of a `Forest` as kernels take them."""

    n_features: int
    base: Array
    tree_offsets: Array
    tree_output: Array
    feature: Array
    threshold: Array
    missing_left: Array
    left: Array
    right: Array
    value: Array
    category_set: Array
    set_offsets: Array
    set_words: Array


class Program(NamedTuple):
    """Trees in the order they are folded.

    By group its first tree, whole tree, four and node (one more than there are groups), its output and, where
    it is one tree too big to fold, its number, else -1; by tree its first leaf value; then the leaf values,
    and those of each tree as `mcrank.kernels.planes`, where all trees have few enough (else none). A *four*
    is three nodes whose four ends are leaves, folded before the nodes of its group. Of each there are four
    places (three columns and a slot) and four numbers (above the ranks that go left, and the first leaf); of
    each other node four places (two slots, column, slot) and the number (`mcrank.scorers.forest.program`); of
    each tree that is folded whole, `WHOLE` places and numbers (`mcrank.scorers.forest.whole`).
    """

    group_tree: Array
    group_whole: Array
    group_four: Array
    group_node: Array
    group_output: Array
    group_walk: Array
    tree_value: Array
    leaf_value: Array
    planes: Array
    four: Array
    four_number: Array
    node: Array
    node_number: Array
    whole: Array
    whole_number: Array


class Scratch(NamedTuple):
    """Memory of one thread that folds blocks: where rows begin, values of a few columns, ranks by column,
    leaf numbers by slot, sums by output.
    """

    places: Array
    values: Array
    ranks: Array
    slots: Array
    sums: Array


@njit(inline="always")
def in_set(x: Any, s: Index, trees: Any) -> Any:
    """Whether a set of categories of a forest, or of one tree, has a code."""
    first = trees.set_offsets[s]
    if not (x >= 0 and x < 64 * (trees.set_offsets[s + 1] - first)):
        return False
    code = np.uint64(x)
    word = trees.set_words[np.uint64(first) + (code >> np.uint64(6))]
    return (word >> (code & np.uint64(63))) & np.uint64(1) == np.uint64(1)


@step()
def goes_left(x: Any, node: Index, trees: TreeArrays) -> Any:
    """Whether a node, of either kind, sends a value left."""
    if x != x:
        return trees.missing_left[node] == 1
    if trees.category_set[node] >= 0:
        return in_set(x, trees.category_set[node], trees)
    return x <= trees.threshold[node]


@njit(inline="always")
def rank_sets(X: Array, row: int, rows: int, tables: Tables, trees: TreeArrays, ranks: Array) -> None:
    """Rank the codes of a block of rows by every set of categories: lowest where they go left, else highest.

    IN: ``X`` flat, tables, trees. OUT: ``ranks``.
    """
    step = np.uint64(trees.n_features)
    for c in range(tables.set_feature.shape[0]):
        at = np.uint64(row) * step + np.uint64(tables.set_feature[c])
        to = tables.set_column[c]
        s = tables.set_number[c]
        for i in range(np.uint64(rows)):
            x = X[at]
            at += step
            left = tables.set_missing[c] == 1 if x != x else in_set(x, s, trees)
            ranks[to + i] = RANKED_LEFT if left else RANKED_RIGHT


@kernel(often=True)
def fold_rows(
    X: Array, start: int, end: int, tables: Tables, program: Program, trees: TreeArrays, scratch: Scratch,
    out: Array,
) -> Any:  # fmt: skip
    """Score rows ``start:end``, and return whether they hold an infinite number.

    IN: ``X`` flat, tables, program, trees. OUT: ``scratch``, ``out``.
    """
    width, base = trees.n_features, trees.base
    places, values, ranks = scratch.places, scratch.values, scratch.ranks
    slots, sums = scratch.slots, scratch.sums
    tree_value, leaf_value, planes = program.tree_value, program.leaf_value, program.planes
    group_tree, group_four, group_node = program.group_tree, program.group_four, program.group_node
    four, four_number, node, node_number = (
        program.four,
        program.four_number,
        program.node,
        program.node_number,
    )
    group_whole, whole, whole_number = program.group_whole, program.whole, program.whole_number
    group_output, group_walk = program.group_output, program.group_walk
    lanes = np.uint64(LANES)
    infinite = False
    for row in range(start, end, LANES):
        rows = min(LANES, end - row)
        used = np.uint64(LANES if rows > MIDDLE else MIDDLE if rows > NARROW else NARROW)
        for i in range(LANES):
            places[i] = min(i, rows - 1) * width
        infinite |= has_infinite(X, row * width, (row + rows) * width)
        rank_rows(X, row * width, rows, places, tables, values, ranks)
        rank_sets(X, row, rows, tables, trees, ranks)
        for k in range(np.uint64(base.shape[0])):
            for i in range(used):
                sums[k * lanes + i] = base[k]
        for group in range(np.uint64(group_output.shape[0])):
            sums_at = np.uint64(group_output[group]) * lanes
            if group_walk[group] >= 0:
                first = np.uint64(trees.tree_offsets[group_walk[group]])
                for i in range(rows):
                    leaf = _leaf(X, np.uint64((row + i) * width), first, trees)
                    sums[sums_at + np.uint64(i)] += trees.value[leaf]
                continue
            following = group + np.uint64(1)
            _fold_wholes(group_whole[group], group_whole[following], whole, whole_number, ranks, used, slots)
            _fold_fours(group_four[group], group_four[following], four, four_number, ranks, used, slots)
            _fold_nodes(group_node[group], group_node[following], node, node_number, ranks, used, slots)
            tree = group_tree[group]
            full = group_tree[following] - tree == np.uint64(GROUP)
            if full and planes.shape[0] > 0 and used > np.uint64(NARROW):
                for i in range(np.uint64(0), used, np.uint64(ROWS)):
                    _add_planes(planes, tree * np.uint64(PLANES), slots, i, sums, sums_at + i)
            elif full:
                _add_group(tree, tree_value, leaf_value, slots, sums_at, used, sums)
            else:
                for t in range(tree, group_tree[following]):
                    root = (t - tree) * lanes
                    first_value = tree_value[t]
                    for i in range(used):
                        sums[sums_at + i] += leaf_value[first_value + slots[root + i]]
        for k in range(base.shape[0]):
            for i in range(rows):
                out[row + i, k] = sums[k * LANES + i]
    return infinite


@step()
def _fold_wholes(
    start: Index, end: Index, whole: Array, number: Array, ranks: Array, used: Index, slots: Array
) -> None:
    """Fold whole trees ``start:end`` of the program."""
    for t in range(start, end):
        at = t * np.uint64(WHOLE)
        to = np.uint64(whole[at + np.uint64(WHOLE - 1)])
        if used == np.uint64(LANES):
            _fold_whole(slots, ranks, whole, number, at, to)
        elif used == np.uint64(MIDDLE):
            _fold_whole_middle(slots, ranks, whole, number, at, to)
        else:
            _fold_whole_narrow(slots, ranks, whole, number, at, to)


@step()
def _fold_fours(
    start: Index, end: Index, four: Array, number: Array, ranks: Array, used: Index, slots: Array
) -> None:
    """Fold fours ``start:end`` of the program."""
    lanes = np.uint64(LANES)
    for f in range(start, end):
        at = f << np.uint64(2)
        columns = (
            np.uint64(four[at]) * lanes,
            np.uint64(four[at + np.uint64(1)]) * lanes,
            np.uint64(four[at + np.uint64(2)]) * lanes,
        )
        to = np.uint64(four[at + np.uint64(3)])
        if used == lanes:  # the same all the way: the compiler makes three loops of it
            _fold_four(slots, ranks, columns, number, at, to)
        elif used == np.uint64(MIDDLE):
            _fold_four_middle(slots, ranks, columns, number, at, to)
        else:
            _fold_four_narrow(slots, ranks, columns, number, at, to)


@step()
def _fold_nodes(
    start: Index, end: Index, node: Array, node_number: Array, ranks: Array, used: Index, slots: Array
) -> None:
    """Fold nodes ``start:end`` of the program; the results of the trees end up in the first slots."""
    for n in range(start, end):
        at = n << np.uint64(2)
        from_left, from_right = np.uint64(node[at]), np.uint64(node[at + np.uint64(1)])
        column = np.uint64(node[at + np.uint64(2)]) * np.uint64(LANES)
        to = np.uint64(node[at + np.uint64(3)])
        if used == np.uint64(LANES):
            _fold_node(slots, ranks, from_left, from_right, column, node_number[n], to)
        elif used == np.uint64(MIDDLE):
            _fold_node_middle(slots, ranks, from_left, from_right, column, node_number[n], to)
        else:
            _fold_node_narrow(slots, ranks, from_left, from_right, column, node_number[n], to)


@step()
def _add_group(
    tree: Index, tree_value: Array, leaf_value: Array, slots: Array, sums_at: Index, used: Index, sums: Array
) -> None:
    """Add the leaf values of `GROUP` trees to the sum of every lane, kept in a register meanwhile."""
    v0, v1 = tree_value[tree], tree_value[tree + np.uint64(1)]
    v2, v3 = tree_value[tree + np.uint64(2)], tree_value[tree + np.uint64(3)]
    v4, v5 = tree_value[tree + np.uint64(4)], tree_value[tree + np.uint64(5)]
    v6, v7 = tree_value[tree + np.uint64(6)], tree_value[tree + np.uint64(7)]
    for i in range(used):
        total = sums[sums_at + i]
        total += leaf_value[v0 + slots[np.uint64(0 * LANES) + i]]
        total += leaf_value[v1 + slots[np.uint64(1 * LANES) + i]]
        total += leaf_value[v2 + slots[np.uint64(2 * LANES) + i]]
        total += leaf_value[v3 + slots[np.uint64(3 * LANES) + i]]
        total += leaf_value[v4 + slots[np.uint64(4 * LANES) + i]]
        total += leaf_value[v5 + slots[np.uint64(5 * LANES) + i]]
        total += leaf_value[v6 + slots[np.uint64(6 * LANES) + i]]
        total += leaf_value[v7 + slots[np.uint64(7 * LANES) + i]]
        sums[sums_at + i] = total


@step()
def _step(X: Array, x_at: Index, first: Index, n: Index, f: Index, trees: TreeArrays) -> Index:
    """Return where node ``n`` (testing feature ``f``) sends a row; a leaf sends it to itself."""
    # Arithmetic instead of branches: the side a row takes is close to a coin toss, and a wrong guess of the
    # processor costs more than the node.
    at = first + n
    in_leaf = np.int64(f) >> np.int64(63)  # all ones in a leaf
    x = X[x_at + np.uint64(np.int64(f) & ~in_leaf)]
    goes_left = np.int64(x <= trees.threshold[at]) | (np.int64(x != x) & np.int64(trees.missing_left[at]))
    to_left, to_right = np.int64(trees.left[at]), np.int64(trees.right[at])
    child = to_right ^ ((to_left ^ to_right) & -goes_left)
    return np.uint64(child ^ ((child ^ np.int64(n)) & in_leaf))


@step()
def _leaf_of(X: Array, x_at: Index, first: Index, trees: TreeArrays) -> Index:
    """Return the leaf of one row (its values from ``x_at`` on) in the tree whose root is node ``first``."""
    n = np.uint64(0)
    f = trees.feature[first]
    while f >= 0:
        n = _step(X, x_at, first, n, f, trees)
        f = trees.feature[first + n]
    return first + n


@step()
def _leaf_by_sets(X: Array, x_at: Index, first: Index, trees: TreeArrays) -> Index:
    """`_leaf_of` in a tree that splits on categories."""
    n = first
    while trees.feature[n] >= 0:
        left = goes_left(X[x_at + np.uint64(trees.feature[n])], n, trees)
        n = first + np.uint64(trees.left[n] if left else trees.right[n])
    return n


@njit(inline="always")
def _leaf(X: Array, x_at: Index, first: Index, trees: TreeArrays) -> Index:
    """The leaf of one row in any tree."""
    if trees.set_offsets.shape[0] > 1:
        return _leaf_by_sets(X, x_at, first, trees)
    return _leaf_of(X, x_at, first, trees)


@kernel(often=True)
def walk_rows(X: Array, start: int, end: int, trees: TreeArrays, out: Array) -> Any:
    """Score rows ``start:end`` on the raw values, and return whether they hold an infinite number.

    IN: ``X`` flat, trees. OUT: ``out``. A step must wait for the one before it, so four trees are walked
    abreast to fill the time.
    """
    base, feature, value = trees.base, trees.feature, trees.value
    tree_offsets, tree_output = trees.tree_offsets, trees.tree_output
    n_trees = tree_output.shape[0]
    for row in range(start, end):
        x_at = np.uint64(row * trees.n_features)
        for k in range(base.shape[0]):
            out[row, k] = base[k]
        abreast = n_trees - n_trees % 4 if trees.set_offsets.shape[0] == 1 else 0
        for t in range(0, abreast, 4):
            r0, r1 = np.uint64(tree_offsets[t]), np.uint64(tree_offsets[t + 1])
            r2, r3 = np.uint64(tree_offsets[t + 2]), np.uint64(tree_offsets[t + 3])
            n0, n1, n2, n3 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            f0, f1, f2, f3 = feature[r0], feature[r1], feature[r2], feature[r3]
            while (f0 & f1 & f2 & f3) != -1:  # until all four are in leaves
                n0 = _step(X, x_at, r0, n0, f0, trees)
                n1 = _step(X, x_at, r1, n1, f1, trees)
                n2 = _step(X, x_at, r2, n2, f2, trees)
                n3 = _step(X, x_at, r3, n3, f3, trees)
                f0, f1, f2, f3 = feature[r0 + n0], feature[r1 + n1], feature[r2 + n2], feature[r3 + n3]
            out[row, tree_output[t]] += value[r0 + n0]
            out[row, tree_output[t + 1]] += value[r1 + n1]
            out[row, tree_output[t + 2]] += value[r2 + n2]
            out[row, tree_output[t + 3]] += value[r3 + n3]
        for t in range(abreast, n_trees):
            root = np.uint64(tree_offsets[t])
            leaf = _leaf(X, x_at, root, trees)
            out[row, tree_output[t]] += value[leaf]
    return has_infinite(X, start * trees.n_features, end * trees.n_features)
