"""New values for the leaves of a forest, from other rows: its splits stay as they are.

Rounds are gone through as in training: gradients at the scores of the rounds before, already refitted; the
value training would give a leaf from the rows that fall into it now; then scores move. On the rows it was
trained on, all values taken anew, a forest stays the same to the last bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import uint64

from mcrank.arrays import BoolArray, FeatureArray, FloatArray, IntArray, RowArray
from mcrank.boosting.leaves import leaf_of_row, leaf_values
from mcrank.boosting.limits import UNLIMITED, LimitOptions
from mcrank.boosting.partition import LeafRows
from mcrank.boosting.routing import TreeNodes
from mcrank.boosting.start import Tree, tree_of
from mcrank.kernels import kernel
from mcrank.losses.base import Loss
from mcrank.losses.quantize import ROWS_PER_TASK as STEP
from mcrank.losses.quantize import Gradients, Run, starts
from mcrank.scorers.forest.forest import Forest


def refit_leaves(
    forest: Forest,
    X: FeatureArray,
    loss: Loss,
    run: Run,
    *,
    start: FloatArray | None = None,
    weight: FloatArray | None,
    decay: float,
    learning_rate: float,
    limit: float,
    sequential: bool = False,
    limits: LimitOptions = UNLIMITED,
) -> Forest:
    """Return the forest with leaf values ``decay`` x old + (1 - decay) x new; a leaf into which no row falls
    that has a weight keeps its value. ``start`` is added to the scores (`Loss.n_scores` x rows) before the
    first tree.
    """
    counted = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    loss.base = np.array(forest.base)
    gradients = loss.allocate("mse")
    scores = np.repeat(loss.scores_of(loss.base[:, None]), len(X), axis=1)
    if start is not None:
        scores += start
    value = np.array(forest.value)
    per_round = loss.trees_per_round
    for t in range(forest.n_trees):
        k = t % per_round
        if k == 0:
            loss.begin_round(forest.tree_output[t : t + per_round].tolist())
        if k == 0 or sequential:
            loss.fill(scores, gradients, run)
        tree = tree_of(forest, t)
        leaf = fallen(X, tree, run)
        fresh, there = _values(
            loss, gradients, k, scores, leaf, counted, tree, (learning_rate, limit, limits)
        )
        value[forest.tree_offsets[t] : forest.tree_offsets[t + 1]] = np.where(
            there, decay * tree["value"] + (1 - decay) * fresh, tree["value"]
        )
        loss.add_moves(k, value[forest.tree_offsets[t] + leaf], scores)
    return replace(forest, value=value)


def fallen(X: FeatureArray, tree: Tree, run: Run) -> RowArray:
    """Return the number of the leaf each row falls into."""
    leaf = np.empty(len(X), dtype=np.int32)

    nodes = TreeNodes.of(tree)

    def part(s: int) -> None:
        leaf_of_rows(X[s : s + STEP], nodes, leaf[s : s + STEP])

    run(part, starts(len(X)))
    return leaf


def _values(
    loss: Loss,
    gradients: Gradients,
    output: int,
    scores: FloatArray,
    leaf: RowArray,
    rows: IntArray,
    tree: Tree,
    scale: tuple[float, float, LimitOptions],
) -> tuple[FloatArray, BoolArray]:
    """Values training would give the leaves that rows fell into, and which leaves those are."""
    leaf, q = leaf[rows], gradients.q[output, rows]
    counts = np.bincount(leaf, minlength=len(tree["left"]))
    ends = np.cumsum(counts)
    places = np.stack([ends - counts, ends, ends], axis=1)
    rows = rows[np.argsort(leaf, kind="stable")]
    entries = (rows << 32) | (gradients.q[output, rows].astype(np.int64) & 0xFFFFFFFF)
    nodes = np.zeros(len(counts), dtype=[("left", np.int32), ("count", np.int64), ("total", np.int64)])
    nodes["left"], nodes["count"] = np.where(counts > 0, tree["left"], 0), counts  # what is empty is no leaf
    nodes["count"][0] = len(leaf)
    np.add.at(nodes["total"], leaf, q)
    where = LeafRows(places, entries, np.empty(0, dtype=np.uint8), counts[:1])
    values = leaf_values(loss, gradients, output, scores, nodes, where, *scale)
    return values, counts > 0


@kernel()
def leaf_of_rows(X, tree, leaf):  # type: ignore[no-untyped-def]
    """Number of the leaf each raw row falls into."""
    # IN: X, tree  OUT: leaf
    for i in range(uint64(X.shape[0])):
        leaf[i] = leaf_of_row(X, i, tree)
