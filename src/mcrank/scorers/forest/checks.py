"""What must hold of a forest before any kernel may touch it.

Kernels follow children and read features without bounds checks, so a forest from a damaged or hostile file is
stopped here: the checks are whole-array operations, and each failure names the tree and the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mcrank.arrays import Array, BoolArray, IntArray
from mcrank.errors import ModelFileError

if TYPE_CHECKING:
    from mcrank.scorers.forest.forest import Forest

_PER_NODE = ("feature", "threshold", "missing_left", "left", "right", "value", "gain", "rows", "category_set")
MOST_WORDS = 1 << 10  # of a set of categories


def check_forest(forest: Forest) -> None:
    """Raise `ModelFileError` unless every walk through the forest is safe and ends in a leaf."""
    _check_shapes(forest)
    _check_offsets(forest)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_offsets))
    node = np.arange(forest.n_nodes, dtype=np.int64) - forest.tree_offsets[tree]
    _check_nodes(forest, tree, node)
    if forest.has_sets:
        _check_sets(forest, tree, node)
    _check_children(forest, tree, node)


def _check_shapes(forest: Forest) -> None:
    for name in (*_PER_NODE, "tree_offsets", "tree_output", "base", "set_offsets", "set_words"):
        shape = getattr(forest, name).shape
        if len(shape) != 1:
            raise ModelFileError(f"{name} of the forest must have 1 dimension, got shape {shape}.")
    for name in _PER_NODE:
        if len(getattr(forest, name)) != forest.n_nodes:
            raise ModelFileError(
                f"{name} of the forest must have one entry per node: {forest.n_nodes} nodes, "
                f"got {len(getattr(forest, name))}."
            )
    if len(forest.set_offsets) == 0:
        raise ModelFileError("set_offsets of the forest must have one entry more than there are sets.")
    if len(forest.tree_offsets) != forest.n_trees + 1:
        raise ModelFileError(
            f"tree_offsets of the forest must have one entry more than tree_output ({forest.n_trees}), "
            f"got {len(forest.tree_offsets)}."
        )
    if not 1 <= forest.n_features < 1 << 31:
        raise ModelFileError(f"n_features of the forest must be in 1..2^31 - 1, got {forest.n_features}.")
    if forest.n_outputs < 1:
        raise ModelFileError("base of the forest must have one entry per output, got none.")
    if not np.isfinite(forest.base).all():
        raise ModelFileError(f"base of the forest must be finite, got {forest.base.tolist()}.")


def _check_offsets(forest: Forest) -> None:
    offsets = forest.tree_offsets
    if offsets[0] != 0 or offsets[-1] != forest.n_nodes:
        raise ModelFileError(
            f"tree_offsets of the forest must run from 0 to {forest.n_nodes} nodes, "
            f"got {offsets[0]} to {offsets[-1]}."
        )
    # Compared, not subtracted: the difference of hostile offsets may overflow.
    empty = offsets[1:] <= offsets[:-1]
    if empty.any():
        tree = int(np.argmax(empty))
        raise ModelFileError(
            f"Tree {tree} of the forest has no nodes: it runs from {offsets[tree]} to {offsets[tree + 1]}."
        )
    bad = (forest.tree_output < 0) | (forest.tree_output >= forest.n_outputs)
    if bad.any():
        tree = int(np.argmax(bad))
        raise ModelFileError(
            f"Tree {tree} of the forest adds to output {forest.tree_output[tree]}; "
            f"the forest has {forest.n_outputs} outputs."
        )


def _fail(bad: BoolArray, tree: Any, node: Any, values: Array, must: str) -> NoReturn:
    at = int(np.argmax(bad))
    raise ModelFileError(f"Node {node[at]} of tree {tree[at]}: {must}, got {values[at]}.")


def _check_nodes(forest: Forest, tree: IntArray, node: IntArray) -> None:
    bad = (forest.feature < -1) | (forest.feature >= forest.n_features)
    if bad.any():
        _fail(
            bad, tree, node, forest.feature, f"feature must be in 0..{forest.n_features - 1}, or -1 in a leaf"
        )
    bad = forest.missing_left > 1
    if bad.any():
        _fail(bad, tree, node, forest.missing_left, "missing_left must be 0 or 1")
    for name in ("threshold", "value", "gain"):
        values = getattr(forest, name)
        bad = ~np.isfinite(values)
        if bad.any():
            _fail(bad, tree, node, values, f"{name} must be finite")
    bad = (forest.feature >= 0) & (forest.value != 0)
    if bad.any():
        _fail(bad, tree, node, forest.value, "value of an inner node must be 0")
    last = len(forest.set_offsets) - 2
    bad = (forest.category_set < -1) | (forest.category_set > last)
    if bad.any():
        _fail(bad, tree, node, forest.category_set, f"category_set must be in -1..{last}")
    bad = forest.rows < 0
    if bad.any():
        _fail(bad, tree, node, forest.rows, "rows must be >= 0")


def _check_sets(forest: Forest, tree: IntArray, node: IntArray) -> None:
    offsets, words = forest.set_offsets, forest.set_words
    if offsets[0] != 0 or offsets[-1] != len(words) or (offsets[1:] < offsets[:-1]).any():
        raise ModelFileError(f"set_offsets of the forest must rise from 0 to {len(words)} words.")
    if (np.diff(offsets) > MOST_WORDS).any():
        raise ModelFileError(f"a set of categories of the forest may have {MOST_WORDS} words.")
    ends = offsets[1:][np.diff(offsets) > 0]
    if (words[ends - 1] == 0).any():
        raise ModelFileError("the last word of a set of categories of the forest must not be 0.")
    splits = forest.category_set >= 0
    bad = splits & (forest.feature < 0)
    if bad.any():
        _fail(bad, tree, node, forest.category_set, "category_set of a leaf must be -1")
    bad = splits & (forest.threshold != 0)
    if bad.any():
        _fail(bad, tree, node, forest.threshold, "threshold of a node with a set of categories must be 0")
    categorical = np.zeros(forest.n_features + 1, dtype=bool)  # the last for leaves
    categorical[forest.feature[splits]] = True
    bad = categorical[forest.feature] & ~splits
    if bad.any():
        _fail(bad, tree, node, forest.feature, "a feature must have sets of categories everywhere or nowhere")


def _check_children(forest: Forest, tree: IntArray, node: IntArray) -> None:
    leaf = forest.feature < 0
    size = np.diff(forest.tree_offsets)[tree]
    parents = np.zeros(forest.n_nodes, dtype=np.int64)
    inner = np.flatnonzero(~leaf)
    for name in ("left", "right"):
        child = getattr(forest, name)
        bad = leaf & (child != -1)
        if bad.any():
            _fail(bad, tree, node, child, f"{name} child of a leaf must be -1")
        bad = ~leaf & ((child <= node) | (child >= size))
        if bad.any():
            _fail(bad, tree, node, child, f"{name} child must come after its parent, inside the tree")
        starts = forest.tree_offsets[tree[inner]]
        parents += np.bincount(starts + child[inner], minlength=forest.n_nodes)
    # With every child after its parent, one parent for each node but the root means: reached exactly once.
    bad = parents != (node != 0)
    if bad.any():
        _fail(bad, tree, node, parents, "every node but the root must have exactly 1 parent")
