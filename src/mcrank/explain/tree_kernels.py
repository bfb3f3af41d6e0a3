"""Kernels for the Shapley values of a forest.

Let a path to a leaf test d features. Feature i has the cover z, the product of the shares of training rows
that its tests let pass, and o, 1 where the row passes all of its tests and 0 otherwise. The leaf with value v
adds to feature i

    v (o_i - z_i) ∫ Π_{j != i} (t o_j + (1 - t) z_j) dt   over 0 <= t <= 1,

which is the sum over all subsets of features with Shapley's weights, each of which is such an integral of
powers of t and 1 - t. The integrand is a polynomial of degree d - 1: Gauss's quadrature with half as many
points is exact. All factors are positive, so nothing is lost by cancelling.

At each point, a walk down the edges of a piece multiplies factors, and a walk up sums leaf values times their
products and gives every feature its part. An edge whose feature was tested above replaces a factor: on the
way down by a quotient, on the way up by the difference of what the two edges give. A row has three states
there: it passed all tests of the feature, it fails this one, it failed before; what is multiplied in each is
a constant of edge and point, and `LANES` rows go through the piece side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mcrank.arrays import Array
from mcrank.explain.pieces import Pieces
from mcrank.kernels import kernel, step
from mcrank.kernels.vectors import product_of_chosen
from mcrank.scorers.forest.block_kernels import TreeArrays, goes_left

LANES = 16  # rows, or cells of a table, that go through a piece side by side

_multiply = product_of_chosen(LANES, add=False)
_multiply_add = product_of_chosen(LANES, add=True)


class Quadrature(NamedTuple):
    """Points and weights on 0..1 by number of points: those of n points begin at n (n - 1) / 2."""

    points: Array
    weights: Array


class PieceScratch(NamedTuple):
    """Memory of one thread: sides by node, passing by edge, products by edge and point, values by feature."""

    sides: Array
    passes: Array
    products: Array
    factors: Array
    values: Array


class Tables(NamedTuple):
    """By piece where its table begins, or -1 where it has none; and the tables, feature by feature."""

    start: Array
    cells: Array


class Plan(NamedTuple):
    """What is the same for all rows."""

    trees: TreeArrays
    pieces: Pieces
    quadrature: Quadrature
    tables: Tables


class Block(NamedTuple):
    """Rows that are worked on together: their values by feature, and by row the weight of each output."""

    columns: Array  # features x rows
    weights: Array  # outputs x rows
    planes: Array  # by output the plane of the result it is added to
    codes: Array  # by row, scratch
    sums: Array  # features x rows, scratch


@njit(inline="always")
def _line(number: int) -> Any:
    """Where a line of lanes begins; unsigned: a signed index costs a test for counting from the end."""
    return np.uint64(number * LANES)


@step(shared=True)
def _pass_tests(piece: int, pieces: Pieces, sides: Array, passes: Array) -> None:
    """Whether each lane passes all tests of an edge's feature down to it; line 0 is that of no edge."""
    first = pieces.edge_start[piece]
    passes[:LANES] = 1
    for e in range(pieces.edge_start[piece + 1] - first):
        at, side = _line(pieces.edge_node[first + e]), np.int64(pieces.right[first + e])
        now, was = _line(e + 1), _line(pieces.before[first + e] + 1)
        for i in range(np.uint64(LANES)):
            passes[now + i] = passes[was + i] & np.int64(sides[at + i] == side)


@step(shared=True)
def _find_factors(piece: int, pieces: Pieces, quadrature: Quadrature, factors: Array) -> None:
    """What products are multiplied with on the way down (3 numbers by point and edge) and up (3 more)."""
    n, first = pieces.points[piece], pieces.edge_start[piece]
    at = 3
    for q in range(n * (n - 1) // 2, n * (n + 1) // 2):
        t = quadrature.points[q]
        s = 1.0 - t
        for e in range(first, pieces.edge_start[piece + 1]):
            cover, before = pieces.cover[e], pieces.before[e]
            old = pieces.cover[first + before] if before >= 0 else 1.0
            factors[at] = (t + s * cover) / (t + s * old)
            factors[at + 1] = s * cover / (t + s * old)
            factors[at + 2] = pieces.share[e]
            base = (1.0 - old) / (t + s * old)
            factors[at + 3] = (1.0 - cover) / (t + s * cover) - base
            factors[at + 4] = -1.0 / s - base
            factors[at + 5] = 0.0
            at += 6
    factors[0] = 1.0


@step(shared=True)
def _piece_values(piece: int, pieces: Pieces, quadrature: Quadrature, scratch: PieceScratch) -> None:
    """Shapley values of the leaves of a piece for every lane. IN: sides, factors. OUT: values, by feature."""
    passes, products, factors, values = scratch.passes, scratch.products, scratch.factors, scratch.values
    n, first = pieces.points[piece], pieces.edge_start[piece]
    edges = pieces.edge_start[piece + 1] - first
    ones, one = np.uint64(0), np.uint64(0)  # the line where all pass, the factor 1
    values[: (pieces.feature_start[piece + 1] - pieces.feature_start[piece]) * LANES] = 0.0
    _pass_tests(piece, pieces, scratch.sides, passes)
    for q in range(n):
        place = np.uint64(3 + 6 * edges * q)
        products[:LANES] = quadrature.weights[n * (n - 1) // 2 + q]
        for e in range(edges):
            now, was = _line(e + 1), _line(pieces.before[first + e] + 1)
            up = _line(pieces.parent[first + e] + 1)
            _multiply(products, passes, up, (now, was), factors, place, products, now)
            place += np.uint64(6)
        for e in range(edges - 1, -1, -1):
            place -= np.uint64(6)
            now, was = _line(e + 1), _line(pieces.before[first + e] + 1)
            up, to = _line(pieces.parent[first + e] + 1), _line(pieces.edge_feature[first + e])
            if pieces.leaf[first + e]:
                at = np.uint64(first + e)
                _multiply(products, passes, now, (ones, ones), pieces.value, at, products, now)
            _multiply_add(products, passes, now, (now, was), factors, place + np.uint64(3), values, to)
            if pieces.last[first + e]:
                _multiply(products, passes, now, (ones, ones), factors, one, products, up)
            else:
                _multiply_add(products, passes, now, (ones, ones), factors, one, products, up)


@kernel()
def fill_tables(
    begin: int, end: int, pieces: Pieces, quadrature: Quadrature, tables: Tables, scratch: PieceScratch
) -> None:
    """Fill the tables of pieces ``begin:end``: the values of every pattern of sides. OUT: scratch, tables."""
    for piece in range(begin, end):
        start = tables.start[piece]
        if start < 0:
            continue
        nodes = pieces.node_start[piece + 1] - pieces.node_start[piece]
        features = pieces.feature_start[piece + 1] - pieces.feature_start[piece]
        size = 1 << nodes
        _find_factors(piece, pieces, quadrature, scratch.factors)
        for cell in range(0, size, LANES):
            lanes = min(LANES, size - cell)
            for b in range(nodes):
                for i in range(lanes):
                    scratch.sides[b * LANES + i] = ((cell + i) >> b) & 1
            _piece_values(piece, pieces, quadrature, scratch)
            for f in range(features):
                for i in range(lanes):
                    tables.cells[start + f * size + cell + i] = scratch.values[f * LANES + i]


@kernel()
def add_pieces(
    begin: int, end: int, start: int, plan: Plan, scratch: PieceScratch, block: Block, out: Array
) -> None:
    """Add pieces ``begin:end`` to the values of a block of rows, the first of which is row ``start``.

    IN: plan, rows of the block. OUT: scratch, sums and codes of the block, ``out`` (planes, rows, features).
    """
    trees, pieces, tables = plan.trees, plan.pieces, plan.tables
    sums = block.sums
    rows = block.columns.shape[1]
    sums[:] = 0.0
    for piece in range(begin, end):
        if tables.start[piece] >= 0:
            _look_up(piece, trees, pieces, tables, block)
        else:
            _compute(piece, trees, pieces, plan.quadrature, scratch, block)
        output = pieces.output[piece]
        if piece == end - 1 or pieces.output[piece + 1] != output:
            plane, weights = block.planes[output], block.weights[output]
            for row in range(rows):
                for f in range(sums.shape[0]):
                    out[plane, start + row, f] += weights[row] * sums[f, row]
            sums[:] = 0.0


@step(shared=True)
def _look_up(piece: int, trees: TreeArrays, pieces: Pieces, tables: Tables, block: Block) -> None:
    """Add the table of a piece."""
    codes = block.codes
    rows = block.columns.shape[1]
    first = pieces.node_start[piece]
    nodes = pieces.node_start[piece + 1] - first
    codes[:rows] = 0
    for b in range(nodes):
        node = pieces.node[first + b]
        values, threshold = block.columns[trees.feature[node]], trees.threshold[node]
        bit = np.int32(1 << b)
        if trees.category_set[node] >= 0:
            for i in range(rows):
                codes[i] |= np.int32(0) if goes_left(values[i], node, trees) else bit
        elif trees.missing_left[node]:
            for i in range(rows):
                codes[i] |= bit if values[i] > threshold else np.int32(0)
        else:
            for i in range(rows):
                codes[i] |= np.int32(0) if values[i] <= threshold else bit
    at = tables.start[piece]
    for f in range(pieces.feature_start[piece], pieces.feature_start[piece + 1]):
        sums = block.sums[pieces.feature[f]]
        cells = tables.cells[at : at + (1 << nodes)]
        for i in range(rows):
            sums[i] += cells[np.uint32(codes[i])]
        at += 1 << nodes


@step(shared=True)
def _compute(
    piece: int, trees: TreeArrays, pieces: Pieces, quadrature: Quadrature, scratch: PieceScratch, block: Block
) -> None:
    """Add a piece that has no table, `LANES` rows at a time."""
    rows = block.columns.shape[1]
    first = pieces.node_start[piece]
    _find_factors(piece, pieces, quadrature, scratch.factors)
    for row in range(0, rows, LANES):
        lanes = min(LANES, rows - row)
        for b in range(pieces.node_start[piece + 1] - first):
            node = pieces.node[first + b]
            values = block.columns[trees.feature[node]]
            for i in range(lanes):
                left = goes_left(values[row + i], node, trees)
                scratch.sides[b * LANES + i] = 0 if left else 1
        _piece_values(piece, pieces, quadrature, scratch)
        at = pieces.feature_start[piece]
        for f in range(pieces.feature_start[piece + 1] - at):
            sums = block.sums[pieces.feature[at + f]]
            for i in range(lanes):
                sums[row + i] += scratch.values[f * LANES + i]
