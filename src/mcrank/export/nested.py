"""What exports to search engines share: trees inside one another, linear rankers of features as they are, and
walks through what was written, with which the twins of those engines add up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mcrank.arrays import Array, FloatArray, IntArray
from mcrank.export.target import Exportable
from mcrank.export.trees import FLOAT_MAX, Tree, base_in_leaves, trees_of, with_empty_tree
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.linear import Linear

DISTIL = "distil it into one regression ensemble (--distil DATA), or export to onnx"
_DEEPEST = 400  # readers of JSON stop at 1,000 brackets, two of which are a level of a tree

T = TypeVar("T")


def nested(tree: Tree, leaf: Callable[[int], T], split: Callable[[int, T, T], T]) -> T:
    """Return a tree built from its leaves up; ``split`` is told a node and what its two sides became.

    Examples
    --------
    >>> from mcrank.export.nested import nested
    >>> from mcrank.export.trees import trees_of
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.5])
    >>> builder.append(feature=[1, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0])
    >>> (tree,) = trees_of(builder.build())
    >>> nested(tree, lambda node: str(tree.value[node]), lambda node, yes, no: f"({yes}, {no})")
    '(-1.0, 2.0)'
    """
    made: list[Any] = [None] * len(tree.feature)
    for node in reversed(range(len(made))):  # children come after their parents
        if tree.feature[node] < 0:
            made[node] = leaf(node)
        else:
            made[node] = split(node, made[tree.left[node]], made[tree.right[node]])
    found: T = made[0]
    return found


def sums(forest: Forest) -> list[list[Tree]]:
    """Return the trees of each output, at least one, in the order in which they are added; the base is in the
    first.
    """
    found: list[list[Tree]] = [[] for _ in range(forest.n_outputs)]
    *trees, empty = trees_of(with_empty_tree(base_in_leaves(forest)))
    for tree in trees:
        found[tree.output].append(tree)
    return [some or [empty] for some in found]


def depths(tree: Tree) -> IntArray:
    """Return how deep each node lies; the root lies at 0."""
    found = np.zeros(len(tree.feature), dtype=np.int64)
    for node in np.flatnonzero(tree.feature >= 0).tolist():
        found[[tree.left[node], tree.right[node]]] = found[node] + 1
    return found


def too_deep(forest: Forest) -> str | None:
    """Why trees cannot be nested in JSON, or None."""
    deepest = max((int(depths(tree).max()) for tree in trees_of(forest)), default=0)
    if deepest <= _DEEPEST:
        return None
    return f"a tree is {deepest} levels deep, and readers of JSON take at most {_DEEPEST}"


def several_outputs(model: Exportable) -> str | None:
    """Why a consumer that knows one sum of trees, and nothing behind it, cannot take a model; or None."""
    if model.head.n_outputs == 1:
        return None
    return f"its {model.head.n_outputs} outputs are not one sum of trees; {DISTIL}"


def linear_parts(scorer: Linear) -> tuple[FloatArray, float]:
    """Return weights of the features as they are, and the constant that scaling adds to the score."""
    weights = scorer.weights * scorer.scaling.factor
    return weights, -float(weights @ scorer.scaling.shift)


def linear_trouble(scorer: Linear, names: tuple[str, ...]) -> str | None:
    """Why a consumer that adds weighted features up in float cannot take a linear ranker, or None."""
    if scorer.scaling.kind == "log":
        return f"it cannot take logarithms of features; {DISTIL}"
    for name, weight in zip(names, linear_parts(scorer)[0].tolist(), strict=True):
        if abs(weight) > FLOAT_MAX:
            return f"the weight {weight:g} of feature {name!r} is beyond float; give it another unit"
    return None


def mean_values(scorer: Any) -> FloatArray:
    """Return what a missing value of each feature stands for, before scaling."""
    scaling = scorer.scaling
    back = np.divide(scaling.fill, scaling.factor, out=np.zeros_like(scaling.fill), where=scaling.factor > 0)
    return np.asarray(back + scaling.shift)


def behind(model: Exportable, raw: FloatArray) -> FloatArray:
    """Return the scores of raw outputs; a consumer that ranks by those ranks the same."""
    return model.head.rank(raw) if model.values is None else model.head.expected(raw, model.values)


def add_leaves(root: Any, read: Callable[[Any, IntArray], Any], out: Array, weight: float = 1.0) -> None:
    """Add the leaf each row falls into to ``out``, in the type of ``out``.

    ``read`` is told a node and the rows that reached it, and returns the value of a leaf, or of a split which
    rows go left, the left node and the right one.
    """
    kind = out.dtype.type
    stack = [(root, np.arange(len(out)))]
    while stack:
        node, rows = stack.pop()
        found = read(node, rows)
        if isinstance(found, tuple):
            left, yes, no = found
            stack += [(yes, rows[left]), (no, rows[~left])]
        else:
            out[rows] += kind(weight) * kind(found)
