"""Forests made ready for other formats: still forests, so that each step can follow any other.

Formats have no base score, or want trees of all outputs in turn, or know classes only and no pairs of them.
Every step here keeps the order in which the trees of one output are added, so raw scores stay the same to the
last bit, but for pairs of classes, whose sum is another sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray, IntArray
from mcrank.scorers.base import Scorer
from mcrank.scorers.forest.forest import NODE_DTYPES, Forest, ForestBuilder
from mcrank.scorers.heads import Head

_NONE_IN_LEAVES = ("feature", "left", "right", "category_set")
FLOAT_MAX = float(np.finfo(np.float32).max)


class Tree(NamedTuple):
    """One tree of a forest, as views of its arrays."""

    output: int
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    missing_left: npt.NDArray[np.uint8]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: FloatArray
    gain: FloatArray
    rows: npt.NDArray[np.int64]
    category_set: npt.NDArray[np.int32]


def trees_of(forest: Forest) -> Iterator[Tree]:
    """Yield the trees of a forest in order."""
    arrays = [getattr(forest, name) for name in Tree._fields[1:]]
    bounds = forest.tree_offsets.tolist()
    for output, first, last in zip(forest.tree_output.tolist(), bounds, bounds[1:], strict=False):
        yield Tree(output, *(array[first:last] for array in arrays))


def breadth_first(tree: Tree) -> Tree:
    """Return the tree numbered level by level: a right child is the left one plus 1, as walkers like it.

    Examples
    --------
    >>> from mcrank.export.trees import breadth_first, trees_of
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=1, base=[0.0])
    >>> builder.append(feature=[0, -1, 0, -1, -1], threshold=[2.0, 0, 1.0, 0, 0], left=[2, -1, 4, -1, -1],
    ...                right=[1, -1, 3, -1, -1], value=[0, 7.0, 0, 5.0, 3.0])
    >>> made = breadth_first(next(trees_of(builder.build())))
    >>> made.left.tolist(), made.right.tolist(), made.value.tolist()
    ([1, 3, -1, -1, -1], [2, 4, -1, -1, -1], [0.0, 0.0, 7.0, 3.0, 5.0])
    """
    order = [0]
    for node in order:  # grows while it is walked
        if tree.feature[node] >= 0:
            order += [int(tree.left[node]), int(tree.right[node])]
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    arrays: dict[str, Any] = {name: getattr(tree, name)[order] for name in Tree._fields[1:]}
    for side in ("left", "right"):
        arrays[side] = np.where(arrays["feature"] >= 0, place[arrays[side]], np.int32(-1))
    return Tree(tree.output, **arrays)


def row_counts(tree: Tree) -> IntArray:
    """Return training rows of each node as explanations need them: none is 0, and children add up to parents.

    Where a model does not say them (imported ones may not), every leaf counts 1.
    """
    counts = np.maximum(tree.rows, 1)
    for node in np.flatnonzero(tree.feature >= 0)[::-1].tolist():  # children come after their parents
        counts[node] = counts[tree.left[node]] + counts[tree.right[node]]
    return counts


def select_trees(forest: Forest, trees: npt.ArrayLike, outputs: npt.ArrayLike, base: npt.ArrayLike) -> Forest:
    """Return the forest of the trees numbered ``trees``, in that order, each adding to its output."""
    chosen = np.asarray(trees, dtype=np.int64)
    sizes = np.diff(forest.tree_offsets)[chosen]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    nodes = np.repeat(forest.tree_offsets[:-1][chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Forest(
        tree_offsets=offsets,
        tree_output=np.asarray(outputs, dtype=np.int32),
        base=np.asarray(base, dtype=np.float64),
        n_features=forest.n_features,
        **{name: getattr(forest, name)[nodes] for name in NODE_DTYPES},
        **forest.sets,
    )


def with_empty_tree(forest: Forest) -> Forest:
    """Return the forest with one more tree: a leaf that adds 0 to output 0."""
    arrays: dict[str, Any] = {
        name: np.append(getattr(forest, name), np.array([-1 if name in _NONE_IN_LEAVES else 0]))
        for name in NODE_DTYPES
    }
    return Forest(
        tree_offsets=np.append(forest.tree_offsets, forest.n_nodes + 1),
        tree_output=np.append(forest.tree_output, 0),
        base=forest.base,
        n_features=forest.n_features,
        **{name: array.astype(NODE_DTYPES[name]) for name, array in arrays.items()},
        **forest.sets,
    )


def class_outputs(forest: Forest, head: Head) -> tuple[Forest, Head]:
    """Return forest and head with one output for each grade, where there was one for each pair of them.

    The tree of a pair adds to one grade and takes from another, so it is there twice, once with negated
    leaves. Class scores differ from mcrank's by rounding, as they are added up in another order.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.trees import class_outputs
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> from mcrank.scorers.heads import Head
    >>> builder = ForestBuilder(n_features=1, base=np.zeros(6))
    >>> builder.append(feature=[-1], value=[0.25], output=3)  # grade 1 against grade 2
    >>> forest, head = class_outputs(builder.build(), Head("base-pairs", np.arange(3.0)))
    >>> forest.tree_output.tolist(), forest.value.tolist(), head.kind
    ([1, 2], [0.25, -0.25], 'softmax')
    """
    if head.kind != "base-pairs" or head.values is None:
        return forest, head
    n = len(head.values)
    pair = np.arange(n * (n - 1))
    added, column = np.divmod(pair, n - 1)
    taken = column + (column >= added)
    base = np.bincount(added, forest.base, n) - np.bincount(taken, forest.base, n)
    outputs = np.stack([added[forest.tree_output], taken[forest.tree_output]], axis=1).ravel()
    doubled = select_trees(forest, np.repeat(np.arange(forest.n_trees), 2), outputs, base)
    sign = np.tile([1.0, -1.0], forest.n_trees)
    value = doubled.value * np.repeat(sign, np.diff(doubled.tree_offsets)) + 0.0  # no -0.0 in inner nodes
    return _replaced(doubled, value=value), replace(head, kind="softmax")


def in_turn(forest: Forest) -> Forest:
    """Return the forest with tree i adding to output i modulo the outputs, empty trees where some are short.

    There is at least one tree for each output. Trees of one output keep their order.
    """
    n = forest.n_outputs
    counts = np.bincount(forest.tree_output, minlength=n)
    rounds = max(int(counts.max()), 1)
    order = np.argsort(forest.tree_output, kind="stable")
    number = np.arange(forest.n_trees) - np.repeat(np.cumsum(counts) - counts, counts)
    trees = np.full((rounds, n), forest.n_trees)
    trees[number, forest.tree_output[order]] = order
    return select_trees(with_empty_tree(forest), trees.ravel(), np.tile(np.arange(n), rounds), forest.base)


def base_in_leaves(forest: Forest) -> Forest:
    """Return the forest with base 0: what it was is in every leaf of the first tree of its output.

    ``base + first leaf`` is the first sum mcrank makes, so nothing changes but where it is made. An output
    without trees gets one, of one leaf.
    """
    lacking = np.flatnonzero(np.bincount(forest.tree_output, minlength=forest.n_outputs) == 0)
    lacking = lacking[forest.base[lacking] != 0]
    if len(lacking):
        trees = [*range(forest.n_trees), *[forest.n_trees] * len(lacking)]
        outputs = np.append(forest.tree_output, lacking)
        forest = select_trees(with_empty_tree(forest), trees, outputs, forest.base)
    value = forest.value.copy()
    for output in np.flatnonzero(forest.base).tolist():
        tree = int(np.argmax(forest.tree_output == output))
        nodes = np.arange(forest.tree_offsets[tree], forest.tree_offsets[tree + 1])
        nodes = nodes[forest.feature[nodes] < 0]
        value[nodes] = forest.base[output] + value[nodes]
    return _replaced(forest, value=value, base=np.zeros(forest.n_outputs))


def _replaced(forest: Forest, **arrays: Any) -> Forest:
    return Forest.from_arrays(forest.to_arrays() | arrays)


def settled(scorer: Scorer, head: Head, values: FloatArray | None = None) -> tuple[Scorer, Head]:
    """Return scorer and head; of a model with one grade only, a forest without trees that says its worth."""
    if head.values is None or len(head.values) > 1:
        return scorer, head
    worth = head.values if values is None else values
    return ForestBuilder(scorer.n_features, worth).build(), Head()


def next_float32(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the next float32 above each: ``x <= t`` is ``x < next_float32(t)``; infinity above the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.export.trees import next_float32
    >>> next_float32(np.array([1.0, 3.4028234663852886e38], dtype=np.float32)).tolist()
    [1.0000001192092896, inf]
    """
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(values, dtype=np.float32), np.float32(np.inf))
