"""How the outputs of a forest change with one feature of a row: in steps at the thresholds, all exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import Array, FeatureArray, FloatArray, IntArray
from mcrank.kernels import kernel
from mcrank.scorers.forest.block_kernels import TreeArrays, goes_left
from mcrank.scorers.forest.forest import Forest


class Steps(NamedTuple):
    """The distinct thresholds of each feature, rising: those of feature f are ``offsets[f]:offsets[f + 1]``.

    Interval j of a feature with n thresholds is what lies above its first j and not above the others.
    ``rank`` is the place of each node's threshold among those of its feature.
    """

    thresholds: FeatureArray
    offsets: IntArray
    rank: IntArray


class Ranges(NamedTuple):
    """Scratch: nodes still to visit, and the first and last interval with which they are reached."""

    node: Array
    low: Array
    high: Array
    met: Array  # by feature the last tree in which it was met


def steps_of(forest: Forest) -> Steps:
    """Return the thresholds of every feature of a forest; one of categories has none.

    Examples
    --------
    >>> from mcrank.explain.profile import steps_of
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.5])
    >>> builder.append(feature=[1, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0])
    >>> steps = steps_of(builder.build())
    >>> steps.thresholds.tolist(), steps.offsets.tolist()
    ([3.0], [0, 0, 1])
    """
    inner = np.flatnonzero((forest.feature >= 0) & (forest.category_set < 0))
    feature, threshold = forest.feature[inner].astype(np.int64), forest.threshold[inner] + np.float32(0)
    order = np.lexsort((threshold, feature))
    feature, threshold = feature[order], threshold[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (feature[1:] != feature[:-1]) | (threshold[1:] != threshold[:-1])
    offsets = np.searchsorted(feature[new], np.arange(forest.n_features + 1))
    rank = np.zeros(forest.n_nodes, dtype=np.int64)
    rank[inner[order]] = np.cumsum(new) - 1 - offsets[feature]
    return Steps(threshold[new], offsets, rank)


def forest_profiles(forest: Forest, row: FeatureArray, steps: Steps) -> FloatArray:
    """Return the change of each output (outputs x (thresholds + features)) when one feature changes alone.

    Those of feature f, one for each of its intervals, begin at ``steps.offsets[f] + f``. They are sums, true
    to rounding error.
    """
    most = int(np.diff(forest.tree_offsets).max(initial=1)) + 1
    empty = [np.zeros(most, dtype=np.int64) for _ in range(3)]
    ranges = Ranges._make([*empty, np.full(forest.n_features, -1, dtype=np.int64)])
    width = len(steps.thresholds) + forest.n_features
    jumps = np.zeros((forest.n_outputs, width + 1))
    find_jumps(row.copy(), forest.arrays, steps, ranges, jumps)
    return np.cumsum(jumps[:, :-1], axis=1)


@kernel()
def find_jumps(row: Array, trees: TreeArrays, steps: Steps, ranges: Ranges, jumps: Array) -> None:
    """Add up by how much outputs change between intervals. IN: row, trees, steps. OUT: ranges, jumps.

    Only features that are tested on the row's own path through a tree can change its leaf there.
    """
    for t in range(len(trees.tree_output)):
        first, output = trees.tree_offsets[t], trees.tree_output[t]
        leaf = first
        while trees.feature[leaf] >= 0:
            left = goes_left(row[trees.feature[leaf]], leaf, trees)
            leaf = first + (trees.left[leaf] if left else trees.right[leaf])
        n = first
        while trees.feature[n] >= 0:
            f = trees.feature[n]
            if ranges.met[f] != t and trees.category_set[n] < 0:
                ranges.met[f] = t
                last = steps.offsets[f + 1] - steps.offsets[f]
                ranges.node[0], ranges.low[0], ranges.high[0] = n, 0, last
                held = 1
                while held > 0:
                    held -= 1
                    m, low, high = ranges.node[held], ranges.low[held], ranges.high[held]
                    while trees.feature[m] >= 0:
                        left, right = first + trees.left[m], first + trees.right[m]
                        if trees.feature[m] != f:
                            m = left if goes_left(row[trees.feature[m]], m, trees) else right
                        elif high <= steps.rank[m]:
                            m = left
                        elif low > steps.rank[m]:
                            m = right
                        else:
                            ranges.node[held] = right
                            ranges.low[held], ranges.high[held] = steps.rank[m] + 1, high
                            held += 1
                            m, high = left, steps.rank[m]
                    at = steps.offsets[f] + f
                    jumps[output, at + low] += trees.value[m] - trees.value[leaf]
                    jumps[output, at + high + 1] -= trees.value[m] - trees.value[leaf]
            n = first + (trees.left[n] if goes_left(row[f], n, trees) else trees.right[n])
