"""Records of the nodes of a growing tree: the same wherever its rows lie."""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from mcrank.kernels import step

# `total`, `weight` and `count` are the sums of gradients and of the second lane over the node's rows, and
# their number; `left_*` those of its best split's left side. `gain` is 0 when no split is worth making;
# `terms` is the gain before the node's own S²/n is taken off: what two splits of one node are compared by.
# A split is a set of bins of a feature, `left_bins`: a bit for each of the first 256; bins beyond, which only
# numbers have, go left up to `bin`. For a numeric feature `bin` is the last that goes left, and missing
# values go where `missing_left` says; the set says the same. `slot` is where the node's histogram is,
# `number` its place among the nodes and `depth` how many splits are above it.
_FIELDS = np.dtype(
    [
        ("total", np.int64),
        ("weight", np.int64),
        ("count", np.int64),
        ("left_total", np.int64),
        ("left_weight", np.int64),
        ("left_count", np.int64),
        ("gain", np.float64),
        ("terms", np.float64),
        ("left_bins", np.uint64, (4,)),
        ("slot", np.int32),
        ("feature", np.int32),
        ("bin", np.int32),
        ("missing_left", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("number", np.int32),
        ("depth", np.int32),
    ],
    align=True,
)
# Whole cache lines: threads that write neighbours do not wait for each other.
NODE = np.dtype(
    {
        "names": list(_FIELDS.names or ()),
        "formats": [_FIELDS[name] for name in _FIELDS.names or ()],
        "itemsize": 128,
    },
    align=True,
)


@step()
def start_node(nodes, at, total, weight, count, slot):  # type: ignore[no-untyped-def]
    """Begin the record of a node that has no split yet."""
    node = nodes[at]
    node.total = total
    node.weight = weight
    node.count = count
    node.slot = slot
    node.gain = 0.0
    node.terms = 0.0
    node.feature = -1
    node.left = -1
    node.right = -1
    node.number = at
    node.depth = 0


@step()
def start_sides(node, slot, sides, at):  # type: ignore[no-untyped-def]
    """Begin the records of the two sides of a node's split, ``sides[at]`` and the next; return where the
    smaller of them is.

    Its histogram will be in ``slot``; the larger one takes over the node's (from which the smaller one's is
    then subtracted).
    """
    # IN: node, slot, at  OUT: sides
    left_is_small = 2 * node.left_count <= node.count
    start_node(
        sides, at, node.left_total, node.left_weight, node.left_count, slot if left_is_small else node.slot
    )
    start_node(
        sides, at + 1, node.total - node.left_total, node.weight - node.left_weight,
        node.count - node.left_count, node.slot if left_is_small else slot,
    )  # fmt: skip
    sides[at].depth = node.depth + 1
    sides[at + 1].depth = node.depth + 1
    return at if left_is_small else at + 1


@njit(inline="always")
def slot_of(n_nodes):  # type: ignore[no-untyped-def]
    """Where the histogram of the smaller of two new nodes is, ``n_nodes`` and the next."""
    return (n_nodes + 1) // 2


@step()
def start_children(nodes, at, n_nodes):  # type: ignore[no-untyped-def]
    """Begin the records of the two sides of a split, ``n_nodes`` and the next; return the smaller of them."""
    nodes[at].left = n_nodes
    nodes[at].right = n_nodes + 1
    return start_sides(nodes[at], slot_of(n_nodes), nodes, n_nodes)


@njit(inline="always")
def best_leaf(nodes, n_nodes):  # type: ignore[no-untyped-def]
    """Leaf with the largest gain, the earliest among equals; -1 when no split is worth making."""
    best = int64(-1)  # typed: else what is called with it is compiled for the number -1 as well
    gain = 0.0
    for i in range(n_nodes):
        if nodes[i].left < 0 and nodes[i].gain > gain:
            gain = nodes[i].gain
            best = int64(i)
    return best


@njit(inline="always")
def worth_searching(rules, n_nodes, large):  # type: ignore[no-untyped-def]
    """Whether children may be split further: there is a leaf to spend, the larger one has the rows, and they
    are not too deep.
    """
    spent = n_nodes >= 2 * rules.num_leaves - 1
    return not spent and large.count >= 2 * rules.min_rows and large.depth < rules.max_depth
