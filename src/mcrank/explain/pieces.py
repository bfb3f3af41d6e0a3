"""Trees cut into pieces, the form in which Shapley values of a forest are computed.

What a leaf adds to a Shapley value depends on a row only through the side the row takes at each node above
the leaf. Leaves whose nodes together are at most `TESTS` form a *piece*: their sum has 2^TESTS different
values at most, which can be tabled once and then looked up for every row. Leaves deeper than that form one
piece of the tree, which is computed for every row anew.

A piece is the tree with the branches that lead to no leaf of it cut off, as a list of *edges* (a node and the
side taken there) in which children come after their parent. Of each edge we keep the edge above it that tests
the same feature, because a row that fails any test of a feature on the way to a leaf fails all of that
feature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mcrank.arrays import Array, FloatArray
from mcrank.kernels import kernel, step
from mcrank.scorers.forest.block_kernels import TreeArrays
from mcrank.scorers.forest.forest import Forest

TESTS = 9  # a table of 512 numbers of a feature lies in the first cache


class Pieces(NamedTuple):
    """All pieces of a forest, those of one output together.

    By piece its output, and where its edges, nodes and features begin (one more than there are pieces); by
    node its place in the forest; by feature its column. By edge the edge it hangs from, the last edge above
    it with the same feature (both counted in the piece, -1 for none), its node and its feature (likewise),
    the side taken (1 for right), whether it is the last one of its parent, whether it ends in a leaf and with
    which value, the share of the parent's rows that take it, and the product of the shares of all edges with
    its feature down to it.
    """

    output: Array
    edge_start: Array
    node_start: Array
    feature_start: Array
    points: Array  # of the quadrature that is exact for the longest path
    node: Array
    feature: Array
    parent: Array
    before: Array
    edge_node: Array
    edge_feature: Array
    right: Array
    last: Array
    leaf: Array
    value: Array
    share: Array
    cover: Array


class TreeScratch(NamedTuple):
    """What is known of the nodes of one tree while it is cut; the ends of what has been written."""

    parent: Array
    depth: Array
    share: Array
    preorder: Array
    member: Array  # the piece a node belongs to
    number: Array  # of a node among those of its piece
    edge: Array  # that leads to a node
    local: Array  # by feature of the forest: the piece it was last met in, and its number there
    ends: Array  # pieces, edges, nodes, features


def shares(forest: Forest) -> FloatArray:
    """Return the share of its parent's training rows that went to each node; a root has 1.

    Where a node has none, half of them go either way.
    """
    out = np.ones(forest.n_nodes)
    inner = np.flatnonzero(forest.feature >= 0)
    first = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))[inner]
    left, right = first + forest.left[inner], first + forest.right[inner]
    rows = forest.rows.astype(np.float64)
    total = rows[left] + rows[right]
    known = total > 0
    total[~known] = 1.0
    out[left] = np.where(known, rows[left] / total, 0.5)
    out[right] = np.where(known, rows[right] / total, 0.5)
    return out


def cut_forest(forest: Forest, tests: int = TESTS) -> Pieces:
    """Cut every tree of a forest into pieces of at most ``tests`` nodes, and one for its deeper leaves."""
    order = np.argsort(forest.tree_output, kind="stable").astype(np.int64)
    sizes = np.diff(forest.tree_offsets)
    most = int(sizes.max(initial=1))
    share, depth = shares(forest), np.empty(forest.n_nodes, dtype=np.int64)
    descend(forest.arrays, share, depth, np.empty(forest.n_nodes))
    leaf = forest.feature < 0
    edges, pieces = int(depth[leaf].sum()), int(leaf.sum())
    integer, real = np.int64, np.float64
    out = Pieces._make(
        [
            np.empty(pieces, integer),
            *(np.zeros(pieces + 1, integer) for _ in range(3)),
            np.empty(pieces, integer),
            *(np.empty(edges, integer) for _ in range(6)),
            *(np.empty(edges, np.uint8) for _ in range(3)),
            *(np.empty(edges, real) for _ in range(3)),
        ]
    )
    scratch = TreeScratch._make(
        [
            *(np.empty(most, integer) for _ in range(2)),
            share,
            np.empty(most, integer),
            *(np.full(most, -1, integer) for _ in range(3)),
            np.full((forest.n_features, 2), -1, integer),
            np.zeros(4, integer),
        ]
    )
    cut_trees(order, tests, forest.arrays, scratch, out)
    return _trimmed(out, *scratch.ends.tolist())


def _trimmed(pieces: Pieces, n: int, edges: int, nodes: int, features: int) -> Pieces:
    length = {"output": n, "points": n, "edge_start": n + 1, "node_start": n + 1, "feature_start": n + 1}
    length |= {"node": nodes, "feature": features}
    return Pieces(
        **{
            name: array[: length.get(name, edges)].copy()
            for name, array in zip(Pieces._fields, pieces, strict=True)
        }
    )


@kernel()
def descend(trees: TreeArrays, share: Array, depth: Array, reach: Array) -> None:
    """Depth of every node, and the share of all training rows in it. IN: trees, shares. OUT: depth, reach."""
    for t in range(len(trees.tree_output)):
        first = trees.tree_offsets[t]
        depth[first], reach[first] = 0, 1.0
        for n in range(first, trees.tree_offsets[t + 1]):
            if trees.feature[n] >= 0:
                for child in (first + trees.left[n], first + trees.right[n]):
                    depth[child], reach[child] = depth[n] + 1, reach[n] * share[child]


@kernel(allocates=True)
def cut_trees(order: Array, tests: int, trees: TreeArrays, scratch: TreeScratch, out: Pieces) -> None:
    """Cut trees. IN: their order, most tests of a tabled piece, the trees. OUT: scratch, ``out``."""
    ends = scratch.ends
    for t in order:
        first = trees.tree_offsets[t]
        size = trees.tree_offsets[t + 1] - first
        _survey(first, size, trees, scratch)
        scratch.member[:size] = -1
        # Two passes over the leaves from left to right: those that can be tabled, then those that cannot.
        for deep in range(2):
            nodes = 0
            piece = np.int64(-1)
            for at in range(size):
                n = scratch.preorder[at]
                if trees.feature[first + n] >= 0 or n == 0 or (scratch.depth[n] > tests) != (deep == 1):
                    continue
                more = _unmarked(n, piece, scratch)
                if piece < 0 or (deep == 0 and nodes + more > tests):
                    if piece >= 0:
                        _emit(piece, t, size, trees, scratch, out)
                    piece = ends[0]
                    nodes = 0
                    more = scratch.depth[n]
                nodes += more
                while n >= 0 and scratch.member[n] != piece:
                    scratch.member[n] = piece
                    n = scratch.parent[n]
            if piece >= 0:
                _emit(piece, t, size, trees, scratch, out)


@step(shared=True, allocates=True)
def _survey(first: int, size: int, trees: TreeArrays, scratch: TreeScratch) -> None:
    """Find parents and depths of a tree, and its nodes from left to right, each before its children."""
    parent, depth, preorder = scratch.parent, scratch.depth, scratch.preorder
    parent[0] = -1
    depth[0] = 0
    stack = np.empty(size, np.int64)
    stack[0] = 0
    held, done = 1, 0
    while held > 0:
        held -= 1
        n = stack[held]
        preorder[done] = n
        done += 1
        if trees.feature[first + n] >= 0:
            left, right = trees.left[first + n], trees.right[first + n]
            parent[left] = parent[right] = n
            depth[left] = depth[right] = depth[n] + 1
            stack[held], stack[held + 1] = right, left
            held += 2


@step(shared=True)
def _unmarked(n: int, piece: int, scratch: TreeScratch) -> int:
    """Count the nodes above a leaf that are not in a piece yet."""
    count = 0
    n = scratch.parent[n]
    while n >= 0 and scratch.member[n] != piece:
        count += 1
        n = scratch.parent[n]
    return count


@step(shared=True, allocates=True)
def _emit(piece: int, t: int, size: int, trees: TreeArrays, scratch: TreeScratch, out: Pieces) -> None:
    """Write the edges of the nodes that are marked as members of a piece."""
    first = trees.tree_offsets[t]
    edge0, node0, feature0 = scratch.ends[1], scratch.ends[2], scratch.ends[3]
    e, b, f = edge0, node0, feature0
    distinct = np.zeros(size, np.int64)  # features on the way to a node
    longest = 1
    for at in range(size):
        n = scratch.preorder[at]
        if scratch.member[n] != piece:
            continue
        if trees.feature[first + n] >= 0:
            scratch.number[n] = b - node0
            out.node[b] = first + n
            b += 1
        if n == 0:
            scratch.edge[0] = -1
            continue
        above = scratch.parent[n]
        tested = trees.feature[first + above]
        if scratch.local[tested, 0] != piece:
            scratch.local[tested, 0] = piece
            scratch.local[tested, 1] = f - feature0
            out.feature[f] = tested
            f += 1
        hangs = scratch.edge[above]
        before = hangs
        while before >= 0 and out.edge_feature[edge0 + before] != scratch.local[tested, 1]:
            before = out.parent[edge0 + before]
        share = scratch.share[first + n]
        out.parent[e] = hangs
        out.before[e] = before
        out.edge_node[e] = scratch.number[above]
        out.edge_feature[e] = scratch.local[tested, 1]
        out.right[e] = trees.right[first + above] == n
        out.leaf[e] = trees.feature[first + n] < 0
        out.value[e] = trees.value[first + n]
        out.share[e] = share
        out.cover[e] = share * (out.cover[edge0 + before] if before >= 0 else 1.0)
        # The left child comes first; it is the last one of its parent where the right one is cut off.
        out.last[e] = out.right[e] == 1 or scratch.member[trees.right[first + above]] != piece
        distinct[n] = distinct[above] + (before < 0)
        longest = max(longest, distinct[n])
        scratch.edge[n] = e - edge0
        e += 1
    out.output[piece] = trees.tree_output[t]
    out.points[piece] = (longest + 1) // 2
    scratch.ends[0] = piece + 1
    scratch.ends[1], scratch.ends[2], scratch.ends[3] = e, b, f
    out.edge_start[piece + 1], out.node_start[piece + 1], out.feature_start[piece + 1] = e, b, f
