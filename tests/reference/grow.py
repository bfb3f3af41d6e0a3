"""Naive twin of `mcrank.boosting.grow`: a best-first tree whose every node sums its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.reference.split import Feature, Split, best_split


@dataclass
class Node:
    """A node of the tree and, once split, its children's numbers."""

    rows: list[int]
    split: Split | None
    left: int = -1
    right: int = -1


def features_of(binned):
    """Features of a `BinnedDataset`, as the naive twins take them."""
    bins = binned.bins
    columns = binned.wide_columns if bins.wide else binned.columns
    out = []
    for f in range(bins.n_features):
        start, end = bins.offsets[f] + f, bins.offsets[f + 1] + f + 1
        out.append(
            Feature(
                columns[f],
                int(bins.counts[f]),
                bool(bins.missing[f]),
                bins.lowest[start:end].tolist(),
                bins.highest[start:end].tolist(),
            )
        )
    return out


def grow(features, q, num_leaves, min_rows, rows=None, lane=None, allowed=None):
    """Split the leaf of largest gain (the earliest among equals) until there are ``num_leaves``."""
    rows = list(range(len(q))) if rows is None else list(rows)

    def node(its_rows):
        possible = len(its_rows) >= 2 * min_rows
        return Node(
            its_rows, best_split(features, its_rows, q, min_rows, lane, allowed) if possible else None
        )

    nodes = [node(rows)]
    for _ in range(num_leaves - 1):
        open_leaves = [
            i for i, n in enumerate(nodes) if n.left < 0 and n.split is not None and n.split.gain > 0
        ]
        if not open_leaves:
            break
        at = max(open_leaves, key=lambda i: (nodes[i].split.gain, -i))
        nodes[at].left, nodes[at].right = len(nodes), len(nodes) + 1
        nodes += [node(nodes[at].split.left), node(nodes[at].split.right)]
    return nodes


def leaf_of(nodes, rows):
    """Leaf that holds each row."""
    out = np.full(rows, -1)
    for i, n in enumerate(nodes):
        if n.left < 0:
            out[n.rows] = i
    return out
