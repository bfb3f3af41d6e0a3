"""Slim histograms: of small nodes, with gradient, curvature and count of a bin in one counter.

Triples (`mcrank.boosting.packing`) hold the sums of some thousand rows. A node with no more of them needs no
second lane: its histogram is half as long, is counted where it will stay, and its prefix sums are added up as
one. In a tree of many leaves most nodes are so small, and what is done for every node, whatever its rows
(clearing, subtracting, searching), takes half the memory and less time. The sums, and so the tree, are the
same.
"""

from __future__ import annotations

from numba import int64, njit, uint64

from mcrank.boosting.histogram import subtract
from mcrank.boosting.packing import Packing, places, slim
from mcrank.boosting.rules import Rules
from mcrank.kernels import step


def slim_rows(packing: Packing, leaves: int, rows: int) -> int:
    """Return up to how many rows the histogram of a node is slim; 0 for none: where counters cannot be
    triples, or few nodes of a tree of so many leaves would be so small.

    Examples
    --------
    >>> from mcrank.boosting.packing import Packing
    >>> from mcrank.boosting.slim import slim_rows
    >>> layout = Packing.of(300_000, derived=True)
    >>> slim_rows(layout, 255, 300_000), slim_rows(layout, 31, 300_000), slim_rows(Packing.of(9), 4, 9)
    (7168, 0, 0)
    """
    triples = packing.bits > 0 and packing.chunk_bits > 0 and packing.count_bits > 0
    return packing.chunk if triples and 2 * rows < leaves * packing.chunk else 0


@njit(inline="always")
def is_slim(rules, node):  # type: ignore[no-untyped-def]
    """Whether a node's histogram is slim; that of a root, which may come from elsewhere, never is."""
    return rules.slim > 0 and node.depth > 0 and node.count <= rules.slim


@njit(inline="always")
def rules_of(rules, node):  # type: ignore[no-untyped-def]
    """Rules, with the layout of the node's histogram."""
    if not is_slim(rules, node):
        return rules
    return Rules(rules.num_leaves, rules.min_rows, slim(rules.packing), rules.slim, rules.max_depth)


@step(shared=True)
def part_siblings(rules, small, large, own, larger, bins):  # type: ignore[no-untyped-def]
    """Make of the parent's histogram, in ``larger``, that of the larger of two siblings, of bins from
    ``bins[0]`` up to ``bins[1]``; ``own`` is the smaller one's. Of a larger one that becomes slim all bins
    must be made at once.
    """
    # IN: rules, small, large (nodes), own, bins  OUT: larger
    begin, end = bins
    if rules.slim > 0 and large.depth > 1 and small.count + large.count <= rules.slim:
        subtract(larger, own, begin, end)
    elif not is_slim(rules, small):
        subtract(larger, own, begin * rules.packing.lanes, end * rules.packing.lanes)
    else:
        _subtract_slim(larger, own, rules.packing, bins)
        if is_slim(rules, large):
            _press(larger, rules.packing, end)


@njit(inline="always")
def _subtract_slim(larger, own, packing, bins):  # type: ignore[no-untyped-def]
    """Triples from two lanes."""
    h_at, r_at, counts, curvatures = places(packing)
    for i in range(uint64(bins[0]), uint64(bins[1])):
        t = own[i]
        larger[uint64(2) * i] -= ((t >> r_at) << packing.count_bits) + (t & counts)
        larger[uint64(2) * i + uint64(1)] -= (t >> h_at) & curvatures


@njit(inline="always")
def _press(hist, packing, bins):  # type: ignore[no-untyped-def]
    """Two lanes into triples, from the front: none is read after it was written over."""
    h_at, r_at, _, _ = places(packing)
    counts = (int64(1) << int64(packing.count_bits)) - int64(1)
    for i in range(uint64(bins)):
        word, mass = hist[uint64(2) * i], hist[uint64(2) * i + uint64(1)]
        hist[i] = ((word >> packing.count_bits) << r_at) + (mass << h_at) + (word & counts)
