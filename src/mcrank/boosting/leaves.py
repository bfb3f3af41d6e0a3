"""Leaf values, and scores moved by a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import int32, int64, types, uint64

from mcrank.kernels import kernel
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.quantize import READ_ONLY, FloatArray, Gradients
from mcrank.losses.regression import weighted_median

# Added to a leaf's curvature, so that a leaf of certain rows (p = 0 or 1) divides by something.
_TINY = 1e-12


def leaf_values(
    loss: Loss,
    gradients: Gradients,
    output: int,
    scores: FloatArray,
    nodes: npt.NDArray[Any],
    places: npt.NDArray[np.int64],
    entries: npt.NDArray[np.int64],
    learning_rate: float,
    limit: float,
) -> FloatArray:
    """Value of every node of a grown tree, shrinkage included; 0 at inner nodes."""
    values = np.zeros(len(nodes))
    if loss.rule is LeafRule.MEDIAN:
        for i in np.flatnonzero(nodes["left"] < 0):
            rows = entries[places[i, 0] : places[i, 1]] >> 32
            weight = None if len(gradients.curvature) == 0 else gradients.curvature_of(output)[rows]
            values[i] = weighted_median(loss.residuals(scores, output, rows), weight)
    else:
        newton_values(
            nodes["left"].astype(np.int64), places, entries,
            gradients.unit, int(loss.rule), gradients.curvature_of(output), gradients.curvature_unit, values,
        )  # fmt: skip
        values *= loss.leaf_factor
    np.clip(values, -limit, limit, out=values)
    values *= learning_rate
    return values


@kernel(
    types.void(
        types.int64[::1], types.int64[:, ::1], types.int64[::1],
        types.float64, types.int64, READ_ONLY, types.float64, types.float64[::1],
    ),
    error_model="numpy",
)  # fmt: skip
def newton_values(left, places, entries, unit, rule, curvature, step, values):  # type: ignore[no-untyped-def]
    """Σg / Σh of every leaf, from sums of integers: the same for every order of its rows."""
    # IN: left, places, entries, unit, rule, curvature, step (curvatures are added up in steps of it)
    # OUT: values
    one = int64(np.rint(1 / unit)) if rule == 0 else int64(0)
    bits = 0
    while one >> bits > 1:
        bits += 1
    rows = int64(0)
    for node in range(len(left)):
        rows += places[node, 1] - places[node, 0] if left[node] < 0 else int64(0)
    count_bits = 1
    while rows >> count_bits > 0:
        count_bits += 1
    drop = max(2 * bits + count_bits - 62, 0)
    for node in range(len(left)):
        if left[node] >= 0:
            continue
        begin, end = places[node, 0], places[node, 1]
        total = int64(0)
        mass = 0.0
        if rule == 0:
            # |g|(1 - |g|) in integers, shifted just enough for the sum to fit: no chain of float additions
            # to wait for.
            heap = int64(0)
            for i in range(begin, end):
                q = int64(int32(entries[i]))
                total += q
                heap += (abs(q) * (one - abs(q))) >> drop
            mass = max(heap, 0) * (unit * unit * float(int64(1) << drop))
        elif rule == 1:
            heap = int64(0)
            for i in range(begin, end):
                total += int64(int32(entries[i]))
                heap += int64(np.rint(curvature[uint64(entries[i]) >> uint64(32)] / step))
            mass = heap * step
        else:
            for i in range(begin, end):
                total += int64(int32(entries[i]))
            mass = float(end - begin)
        if mass > 0:
            values[node] = total * unit / (mass + _TINY)
        else:
            values[node] = 0.0


@kernel("void(int64[::1], int64[:, ::1], int64[::1], float64[::1], float64[::1])")
def move_rows(left, places, entries, values, scores):  # type: ignore[no-untyped-def]
    """Add to each row's score the value of the leaf that holds it."""
    # IN: left, places, entries, values  OUT: scores
    for node in range(len(left)):
        if left[node] < 0:
            value = values[node]
            for i in range(places[node, 0], places[node, 1]):
                scores[uint64(entries[i]) >> uint64(32)] += value


_WALK = types.void(
    types.Array(types.float32, 2, "C", readonly=True), types.int64[::1], types.int32[::1], types.float32[::1],
    types.uint8[::1], types.int32[::1], types.int32[::1], types.float64[::1], types.float64[::1],
)  # fmt: skip


@kernel(_WALK)
def walk_rows(X, rows, feature, threshold, missing_left, left, right, values, scores):  # type: ignore[no-untyped-def]
    """Send raw ``rows`` (all when empty) down a tree and add the values of their leaves to ``scores``."""
    # IN: X, rows, feature, threshold, missing_left, left, right, values  OUT: scores
    chosen = len(rows) > 0
    for i in range(len(rows) if chosen else X.shape[0]):
        row = uint64(rows[i]) if chosen else uint64(i)
        node = uint64(0)
        while feature[node] >= 0:
            x = X[row, uint64(feature[node])]
            goes_left = x <= threshold[node] or (x != x and missing_left[node] == 1)
            node = uint64(left[node]) if goes_left else uint64(right[node])
        scores[row] += values[node]
