"""Random forests and rows for the tests of trees and scoring."""

from __future__ import annotations

import numpy as np

from mcrank.scorers.forest.forest import Forest, ForestBuilder


def random_tree(
    rng: np.random.Generator, leaves: int, n_features: int, levels: np.ndarray, chain: bool = False
):
    """Grow a random tree by splitting random leaves (or always the newest: a chain); arrays for `append`."""
    size = 2 * leaves - 1
    tree = {
        "feature": np.full(size, -1, dtype=np.int32),
        "threshold": np.zeros(size, dtype=np.float32),
        "missing_left": np.zeros(size, dtype=np.uint8),
        "left": np.full(size, -1, dtype=np.int32),
        "right": np.full(size, -1, dtype=np.int32),
        "value": np.zeros(size),
        "gain": np.zeros(size),
        "rows": rng.integers(0, 1000, size),
    }
    open_leaves, used = [0], 1
    for _ in range(leaves - 1):
        node = open_leaves.pop(-1 if chain else int(rng.integers(len(open_leaves))))
        tree["feature"][node] = rng.integers(n_features)
        tree["threshold"][node] = rng.choice(levels)
        tree["missing_left"][node] = rng.integers(2)
        tree["gain"][node] = rng.random()
        children = [used, used + 1]
        rng.shuffle(children)
        tree["left"][node], tree["right"][node] = children
        open_leaves += children
        used += 2
    is_leaf = tree["feature"] < 0
    tree["value"][is_leaf] = rng.standard_normal(int(is_leaf.sum()))
    return tree


def random_forest(
    rng: np.random.Generator, leaves: list[int], n_features: int = 3, n_outputs: int = 1, levels: int = 20,
    chain: bool = False,
) -> Forest:  # fmt: skip
    values = np.unique(np.round(rng.standard_normal(levels), 2).astype(np.float32))
    builder = ForestBuilder(n_features, rng.standard_normal(n_outputs))
    for size in leaves:
        tree = random_tree(rng, size, n_features, values, chain)
        builder.append(**tree, output=int(rng.integers(n_outputs)))
    return builder.build()


def random_rows(rng: np.random.Generator, forest: Forest, rows: int, missing: float = 0.2) -> np.ndarray:
    """Rows with NaN, values equal to thresholds, their neighbours, and values in between."""
    X = rng.standard_normal((rows, forest.n_features)).astype(np.float32)
    inner = forest.feature >= 0
    if inner.any():
        exact = rng.choice(forest.threshold[inner], X.shape)
        nudged = np.nextafter(exact, rng.choice(np.array([-9e9, 9e9], dtype=np.float32), X.shape))
        kind = rng.integers(0, 3, X.shape)
        X = np.where(kind == 0, X, np.where(kind == 1, exact, nudged)).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return X
