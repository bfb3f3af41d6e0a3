"""What of the difference between two rows each feature makes in a forest: exact, and it needs no counts.

The game of Shapley has two players' hands: a set of features takes its values from row A, the others from row
B. A feature that is equal in both, or that sends both rows the same way everywhere, gets exactly 0. On the
way to a leaf a feature that separates the rows is followed to A's side and to B's side; a leaf reached with
the sides of p features of A and of q features of B has a closed weight for each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import Array, FeatureArray, FloatArray
from mcrank.kernels import kernel
from mcrank.scorers.forest.block_kernels import TreeArrays, goes_left
from mcrank.scorers.forest.forest import Forest


class Walk(NamedTuple):
    """Scratch of a walk: nodes to visit with the length of their path and who chose its last step; the path
    as features and owners (1 for A, 2 for B); the owner of each feature, 0 for none.
    """

    node: Array
    length: Array
    owner: Array
    path: Array
    owner_of: Array


def forest_between(forest: Forest, X: FeatureArray, reference: FeatureArray) -> FloatArray:
    """Return what each feature adds to a row's outputs compared with a reference row's.

    Returns an array of shape (outputs, rows, features), whose sums over features are differences of outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.explain.between import forest_between
    >>> from mcrank.scorers.forest.forest import ForestBuilder
    >>> builder = ForestBuilder(n_features=2, base=[0.5])
    >>> builder.append(feature=[0, -1, -1], threshold=[3.0, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
    ...                value=[0, -1.0, 2.0])
    >>> rows = np.array([[9.0, 5.0], [1.0, 5.0]], dtype=np.float32)
    >>> forest_between(builder.build(), rows[:1], rows[1]).tolist()
    [[[3.0, 0.0]]]
    """
    deepest = int(np.diff(forest.tree_offsets).max(initial=1))
    longest = min(deepest, forest.n_features) + 1
    empty = [np.zeros(deepest + 1, dtype=np.int64) for _ in range(4)]
    walk = Walk._make([*empty, np.zeros(forest.n_features, dtype=np.int64)])
    out = np.zeros((forest.n_outputs, *X.shape))
    rows, other = (np.array(part, dtype=np.float32, order="C") for part in (X, reference))
    compare_rows(rows, other, forest.arrays, _weights(longest), walk, out)
    return out


def _weights(longest: int) -> FloatArray:
    """p! q! / (p + q + 1)! for p, q = 0, 1, ...: Shapley's weight of a set of p of p + q + 1 players."""
    out = np.empty((longest, longest))
    out[:, 0] = out[0] = 1.0 / np.arange(1.0, longest + 1.0)
    for p in range(1, longest):
        for q in range(1, longest):
            out[p, q] = out[p, q - 1] * q / (p + q + 1.0)
    return out


@kernel()
def compare_rows(
    X: Array, reference: Array, trees: TreeArrays, weights: Array, walk: Walk, out: Array
) -> None:
    """Compare rows with a reference row. IN: rows, trees, weights by sizes of sets. OUT: walk, ``out``."""
    owner_of, path = walk.owner_of, walk.path
    for row in range(X.shape[0]):
        for t in range(len(trees.tree_output)):
            first = trees.tree_offsets[t]
            sums = out[trees.tree_output[t], row]
            walk.node[0], walk.length[0], walk.owner[0] = 0, 0, 0
            held, length = 1, 0
            while held > 0:
                held -= 1
                wanted = walk.length[held]
                while length > max(wanted - 1, 0):  # steps of the branch that was left
                    length -= 1
                    owner_of[path[length]] = 0
                if wanted > 0:
                    feature = walk.owner[held] >> 2
                    path[length] = feature
                    owner_of[feature] = walk.owner[held] & 3
                    length = wanted
                n = first + walk.node[held]
                while trees.feature[n] >= 0:
                    f = trees.feature[n]
                    mine, other = goes_left(X[row, f], n, trees), goes_left(reference[f], n, trees)
                    left = other if owner_of[f] == 2 else mine
                    if mine != other and owner_of[f] == 0:
                        walk.node[held] = trees.left[n] if other else trees.right[n]
                        walk.length[held] = length + 1
                        walk.owner[held] = 4 * f + 2
                        held += 1
                        path[length] = f
                        owner_of[f] = 1
                        length += 1
                    n = first + (trees.left[n] if left else trees.right[n])
                p = 0
                for i in range(length):
                    p += owner_of[path[i]] == 1
                q = length - p
                for i in range(length):
                    f = path[i]
                    if owner_of[f] == 1:
                        sums[f] += trees.value[n] * weights[p - 1, q]
                    else:
                        sums[f] -= trees.value[n] * weights[p, q - 1]
            while length > 0:
                length -= 1
                owner_of[path[length]] = 0
