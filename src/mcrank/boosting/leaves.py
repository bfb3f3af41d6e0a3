"""What becomes of a grown tree: its arrays in the forest, leaf values, and scores moved by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int64, njit, types, uint64

from mcrank.arrays import FloatArray
from mcrank.boosting.binning import Bins
from mcrank.boosting.limits import UNLIMITED, LimitOptions, in_order
from mcrank.boosting.partition import UNLISTED, LeafRows
from mcrank.boosting.workspace import BinnedArrays
from mcrank.kernels import kernel
from mcrank.kernels.vectors import vector_add2
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.quantize import READ_ONLY, Gradients
from mcrank.losses.regression import gathered, weighted_median
from mcrank.scorers.forest.block_kernels import in_set
from mcrank.scorers.forest.sets import packed, words_of

_SCALE = types.containers.UniTuple(types.int64, 3)  # type: ignore[no-untyped-call]
_WHERE = types.NamedTuple(  # type: ignore[no-untyped-call]
    (types.int64[:, ::1], types.int64[::1], types.uint8[::1], types.int64[::1]), LeafRows
)
_TURNS = 4  # sums of a leaf that rows are added to in turns
_SUMMED_ROWS = 512  # rows whose terms are worked out together, on vectors
# Rows that all leaves have before the next ones, scores of 256 KB: few enough to stay in a cache, where a
# leaf at a time would move most of the memory again for each leaf.
_BLOCK_ROWS = 32768
FLOAT32_MAX = np.finfo(np.float32).max


def tree_arrays(
    nodes: npt.NDArray[Any], binned: BinnedArrays, edges: npt.NDArray[np.float32], unit: float
) -> dict[str, npt.NDArray[Any]]:
    """Node arrays of a grown tree as `ForestBuilder.append` takes them, all but the values.

    ``unit`` turns an integer gain into the loss's own scale.
    """
    left, feature = np.ascontiguousarray(nodes["left"]), np.ascontiguousarray(nodes["feature"])
    place = binned.value_start[feature] - feature + (nodes["bin"] - binned.missing[feature])
    # What leaves have found is overwritten in the end.
    padded = edges if len(edges) else np.zeros(1, dtype=np.float32)
    threshold = padded.take(place, mode="clip")
    # A cut after the last value bin parts known from missing values: every number is below it.
    threshold[nodes["bin"] == binned.n_bins[feature] - 1] = FLOAT32_MAX
    tree = {
        "feature": feature,
        "threshold": threshold,
        "missing_left": nodes["missing_left"].astype(np.uint8),
        "left": left,
        "right": np.ascontiguousarray(nodes["right"]),
        "gain": nodes["gain"] * unit,
        "rows": nodes["count"].copy(),
    }
    leaf = left < 0
    for name, nothing in (("feature", -1), ("threshold", 0.0), ("missing_left", 0), ("gain", 0.0)):
        tree[name][leaf] = nothing
    return tree


def add_sets(nodes: npt.NDArray[Any], bins: Bins, tree: dict[str, npt.NDArray[Any]]) -> None:
    """Add to the arrays of a tree the sets of categories of its splits, from those of bins."""
    inner = np.flatnonzero(nodes["left"] >= 0)
    of_sets = inner[bins.categorical[nodes["feature"][inner]] == 1]
    tree["category_set"] = np.full(len(nodes), -1, dtype=np.int32)
    tree["category_set"][of_sets] = np.arange(len(of_sets))
    tree["threshold"][of_sets] = 0.0
    sets = []
    for node in nodes[of_sets]:
        f = int(node["feature"])
        left = np.unpackbits(node["left_bins"].astype("<u8").view(np.uint8), bitorder="little")
        sets.append(words_of(np.flatnonzero(left[bins.bins_of_codes(f).astype(np.int64) + bins.missing[f]])))
    tree |= packed(sets)


def leaf_values(
    loss: Loss,
    gradients: Gradients,
    output: int,
    scores: FloatArray,
    nodes: npt.NDArray[Any],
    where: LeafRows,
    learning_rate: float,
    limit: float,
    limits: LimitOptions = UNLIMITED,
) -> FloatArray:
    """Value of every node of a grown tree, shrinkage included; 0 at inner nodes."""
    # On small data this takes a tenth of the time: as few steps as possible, on all nodes rather than some.
    rule = loss.rule
    leaves = (nodes["left"] < 0).nonzero()[0]
    values = np.zeros(len(nodes))
    if rule is LeafRule.MEDIAN:
        for i in leaves:
            rows = where.of(int(i))
            weight = None if len(gradients.curvature) == 0 else gradients.curvature_of(output)[rows]
            values[i] = weighted_median(*gathered(loss.residuals(scores, output, rows), weight, loss.sums))
        mass: Any = nodes["count"] * 1.0
        sums: Any = values * mass
    else:
        if rule is LeafRule.MEAN:  # which the splits know
            found = np.where(nodes["left"] < 0, nodes["total"], 0)
            mass = nodes["count"] * 1.0
        else:
            found, mass = _summed(loss, gradients, output, nodes, leaves, where)
        sums = found * gradients.unit  # 0 at inner nodes
        shrunk = sums if limits.l1 == 0 else np.sign(sums) * np.maximum(np.abs(sums) - limits.l1, 0.0)
        np.divide(shrunk, mass + (loss.least_curvature + limits.l2), out=values, where=mass > 0)
    if limits.monotone is not None:
        values = in_order(nodes, values, sums, mass, limits)
    if rule is not LeafRule.MEDIAN:
        values *= loss.leaf_factor
    np.minimum(np.maximum(values, -limit, out=values), limit, out=values)
    values *= learning_rate
    if rule is LeafRule.MEAN:
        # Whole multiples of the gradients' unit, a power of 2: see `mcrank.boosting.carried`.
        np.rint(values / gradients.unit, out=values)
        values *= gradients.unit
    return values


def _summed(
    loss: Loss,
    gradients: Gradients,
    output: int,
    nodes: npt.NDArray[Any],
    leaves: npt.NDArray[np.int64],
    where: LeafRows,
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Sums of the rounded gradients of every leaf, and of the curvatures."""
    one, drop, bernoulli = 0, 0, loss.rule is LeafRule.BERNOULLI
    if bernoulli:
        one, drop = _bernoulli_scale(gradients.unit, int(nodes["count"][0]))
    found = np.zeros((len(nodes), 2), dtype=np.int64)
    leaf_sums(
        leaves, where, (int(loss.rule), one, drop), gradients.q[output], gradients.curvature_of(output),
        gradients.curvature_unit, found,
    )  # fmt: skip
    found = loss.sums.add(found)
    if bernoulli:
        unit = gradients.unit * gradients.unit * float(1 << drop)
        return found[:, 0], np.maximum(found[:, 1], 0) * unit
    return found[:, 0], np.asarray(found[:, 1] * gradients.curvature_unit, dtype=np.float64)


def _bernoulli_scale(unit: float, rows: int) -> tuple[int, int]:
    """A gradient of 1 as an integer, and the bits its curvature loses for the sum over rows to fit."""
    one = round(1 / unit)
    bits = max(one.bit_length() - 1, 0)
    return one, max(2 * bits + max(1, rows.bit_length()) - 62, 0)


@njit(inline="always")
def _moved(scale, q, curvature, row, step):  # type: ignore[no-untyped-def]
    """What a row adds to the sums of its leaf."""
    rule, one, drop = scale
    if rule == 0:
        # |g|(1 - |g|) in integers, shifted just enough for the sum to fit: no chain of float additions to
        # wait for.
        return q, (abs(q) * (one - abs(q))) >> drop
    return q, int64(np.rint(curvature[row] / step))


@kernel(
    types.void(
        types.int64[::1], _WHERE, _SCALE, types.int32[::1], READ_ONLY, types.float64, types.int64[:, ::1]
    ),
    error_model="numpy",
    allocates=True,
)
def leaf_sums(leaves, where, scale, gradients, curvature, step, out):  # type: ignore[no-untyped-def]
    """Sums of gradients and curvatures of every leaf, in integers: the same for every order of its rows."""
    # IN: leaves, where, scale (the rule, and see _bernoulli_scale), gradients, curvature, step (in steps of
    # which curvatures are added up)  OUT: out (rows of the leaves, 0 before)
    places, entries, numbers = where.places, where.entries, where.numbers
    some = np.zeros((_TURNS, 2 * 256), np.int64)
    moved = np.empty(2 * _SUMMED_ROWS, np.int64)
    at = places[leaves, 0].copy()
    for start in range(0, len(gradients), _BLOCK_ROWS):
        stop = uint64(min(start + _BLOCK_ROWS, len(gradients)))
        if len(numbers) > 0:
            for first in range(uint64(start), stop, uint64(_SUMMED_ROWS)):
                n = min(uint64(_SUMMED_ROWS), stop - first)
                for i in range(n):
                    total, heap = _moved(scale, int64(gradients[first + i]), curvature, first + i, step)
                    moved[uint64(2) * i] = total
                    moved[uint64(2) * i + uint64(1)] = heap
                for i in range(n):
                    # In turns: rows of one leaf would wait for each other.
                    to = some[i % uint64(_TURNS)]
                    vector_add2((to,), (uint64(numbers[first + i]) << uint64(1),), moved, i << uint64(1))
        for leaf in range(len(leaves)):
            i, end = at[leaf], places[leaves[leaf], 1]
            total, heap = int64(0), int64(0)
            while 0 <= i < end and uint64(entries[i]) >> uint64(32) < stop:
                row = uint64(entries[i]) >> uint64(32)
                one_total, one_heap = _moved(scale, int64(gradients[row]), curvature, row, step)
                total += one_total
                heap += one_heap
                i += 1
            at[leaf] = i
            out[leaves[leaf], 0] += total
            out[leaves[leaf], 1] += heap
    for leaf in leaves:
        if places[leaf, 0] == UNLISTED:
            for t in range(_TURNS):
                out[leaf, 0] += some[t, 2 * places[leaf, 2]]
                out[leaf, 1] += some[t, 2 * places[leaf, 2] + 1]


@kernel(
    [
        types.void(types.int64[::1], _WHERE, types.float64[::1], types.float64[::1]),
        types.void(types.int64[::1], _WHERE, types.int64[::1], types.int32[::1]),
    ],
    allocates=True,
)
def move_rows(left, where, values, scores):  # type: ignore[no-untyped-def]
    """Add to each row's score, or rounded gradient, the value of the leaf that holds it."""
    # IN: left, where, values  OUT: scores
    leaves = np.flatnonzero(left < 0)
    places, entries, numbers = where.places, where.entries, where.numbers
    by_number = np.zeros(256, values.dtype)  # 0 for rows that are listed
    for node in leaves:
        if places[node, 0] == UNLISTED:
            by_number[places[node, 2]] = values[node]
    for row in range(uint64(len(numbers))):
        scores[row] += by_number[uint64(numbers[row])]
    at = places[leaves, 0].copy()
    for first in range(0, len(scores), _BLOCK_ROWS):  # rows of a leaf are in ascending order
        stop = uint64(first + _BLOCK_ROWS)
        for leaf in range(len(leaves)):
            value, end = values[leaves[leaf]], places[leaves[leaf], 1]
            i = at[leaf]
            while 0 <= i < end and uint64(entries[i]) >> uint64(32) < stop:
                scores[uint64(entries[i]) >> uint64(32)] += value
                i += 1
            at[leaf] = i


@njit(inline="always")
def leaf_of_row(X, row, tree):  # type: ignore[no-untyped-def]
    """The leaf of a tree (`TreeNodes`) into which a raw row falls."""
    sets = len(tree.set_offsets) > 1
    node = uint64(0)
    while tree.feature[node] >= 0:
        x = X[row, uint64(tree.feature[node])]
        if sets and x == x and tree.category_set[node] >= 0:
            goes_left = in_set(x, tree.category_set[node], tree)
        else:
            goes_left = x <= tree.threshold[node] or (x != x and tree.missing_left[node] == 1)
        node = uint64(tree.left[node]) if goes_left else uint64(tree.right[node])
    return node


@kernel()
def walk_rows(X, rows, tree, scores):  # type: ignore[no-untyped-def]
    """Send raw ``rows`` (all when empty) down a tree (`TreeNodes`) and add its values to ``scores``."""
    # IN: X, rows, tree  OUT: scores
    chosen = len(rows) > 0
    for i in range(len(rows) if chosen else X.shape[0]):
        row = uint64(rows[i]) if chosen else uint64(i)
        scores[row] += tree.value[leaf_of_row(X, row, tree)]
