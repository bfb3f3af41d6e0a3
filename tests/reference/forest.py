"""Naive twins of the scoring kernels: one row, one tree, one node at a time."""

from __future__ import annotations

import math

import numpy as np

from mcrank.scorers.forest.forest import Forest


def leaf_of(forest: Forest, tree: int, row: np.ndarray) -> int:
    """Return the node (counted over the whole forest) of the leaf a row falls into."""
    first = int(forest.tree_offsets[tree])
    node = first
    while forest.feature[node] >= 0:
        x = row[forest.feature[node]]
        goes_left = forest.missing_left[node] == 1 if math.isnan(x) else x <= forest.threshold[node]
        node = first + int(forest.left[node] if goes_left else forest.right[node])
    return node


def predict_raw(forest: Forest, X: np.ndarray) -> np.ndarray:
    """Return base plus the leaf values of all trees, added in order, for every row and output."""
    out = np.tile(forest.base, (len(X), 1))
    for i, row in enumerate(X):
        for tree in range(forest.n_trees):
            out[i, forest.tree_output[tree]] += forest.value[leaf_of(forest, tree, row)]
    return out


def rank(thresholds: np.ndarray, x: float) -> int:
    """Return how many thresholds a value lies above; none for NaN."""
    return int(sum(1 for t in thresholds if x > t))


def is_sound(forest_arrays: dict[str, np.ndarray]) -> bool:
    """Return whether following children from every root reaches every node of its tree exactly once."""
    offsets = forest_arrays["tree_offsets"]
    for tree in range(len(offsets) - 1):
        first, size = int(offsets[tree]), int(offsets[tree + 1] - offsets[tree])
        seen = [0] * size
        stack = [0]
        while stack:
            node = stack.pop()
            if not 0 <= node < size or seen[node]:
                return False
            seen[node] = 1
            if forest_arrays["feature"][first + node] >= 0:
                stack.append(int(forest_arrays["left"][first + node]))
                stack.append(int(forest_arrays["right"][first + node]))
        if not all(seen):
            return False
    return True
