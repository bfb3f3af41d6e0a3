"""Gradients as integers: how many bits they get, and the arrays a loss fills.

A gradient ``g`` becomes ``q = rint(g / unit)``, where the unit is 2^-24 of the largest gradient there can be,
however many rows there are (`mcrank.boosting.packing` tells how their sums fit). Far below what one boosting
step decides: with 4 bits rare grades begin to vanish, 8 do no visible harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import types

from mcrank.arrays import Array, FloatArray, IntArray, RowArray
from mcrank.kernels import kernel

# How the engine runs a task over items, perhaps on several threads.
Run = Callable[[Callable[[int], Any], Sequence[int]], None]

# Weights and targets of a Dataset are frozen; a kernel must say that it only reads them.
READ_ONLY = types.Array(types.float64, 1, "C", readonly=True)
GRADIENT_BITS = 24  # of the largest gradient
MOST_ROWS = 2**31  # a sum of gradients or lanes of so many fits 64 bits; rows have 32 bits in an entry
LANE_BITS = 30  # of the second lane, which shares its counter with nothing
ROWS_PER_TASK = 65536


@dataclass
class Gradients:
    """What a loss fills each round, one row of arrays per output.

    ``q * unit`` is the gradient. ``weights`` is the second lane (empty: none, or derived from q),
    ``lane_unit`` its scale; ``curvature`` is what leaf values divide by (empty: as the loss's leaf rule
    says), added up in steps of ``curvature_unit``, and ``lane_is_curvature`` says that the second lane is it,
    rounded.
    """

    q: RowArray
    unit: float = 1.0
    weights: IntArray = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    lane_unit: float = 1.0
    lane_is_curvature: bool = False
    curvature: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    curvature_unit: float = 1.0

    def begin_lane(self, split: str, unit: float, weight: FloatArray | None) -> None:
        """Make room for curvature, in steps of ``unit``; the second lane is that (``split="newton"``), or the
        weight of each row where rows have weights.
        """
        self.curvature = np.zeros(self.q.shape)
        self.lane_unit = self.curvature_unit = unit
        self.lane_is_curvature = split == "newton"
        if self.lane_is_curvature:
            self.weights = np.empty(self.q.shape, dtype=np.int64)
        elif weight is not None:
            self.round_weight(weight)

    def round_weight(self, weight: FloatArray) -> None:
        """Make the weight of each row the second lane, in steps of ``lane_unit``."""
        self.weights = np.empty((1, len(weight)), dtype=np.int64)
        round_lane(weight, self.lane_unit, self.weights[0])

    def round_curvature(self, run: Run) -> None:
        """Fill the second lane, where it is curvature, one output at a time."""

        def lane(output: int) -> None:
            round_lane(self.curvature[output], self.lane_unit, self.weights[output])

        if self.lane_is_curvature:
            run(lane, range(len(self.curvature)))

    def weights_of(self, output: int) -> IntArray:
        """Second lane of one output; outputs may share a row."""
        return _row_of(self.weights, output)

    def curvature_of(self, output: int) -> FloatArray:
        """Curvature of one output; outputs may share a row."""
        return _row_of(self.curvature, output)


def _row_of(array: Array, output: int) -> Array:
    if len(array) == 0:
        return array.reshape(-1)
    return array[output if len(array) > 1 else 0]  # type: ignore[no-any-return]


@kernel(types.void(READ_ONLY, types.float64, types.int32[::1]))
def round_gradients(g, unit, q):  # type: ignore[no-untyped-def]
    """``q = rint(g / unit)``."""
    # IN: g, unit  OUT: q
    for i in range(len(g)):
        q[i] = np.int32(np.rint(g[i] / unit))


@kernel(types.void(READ_ONLY, types.float64, types.int64[::1]))
def round_lane(h, unit, lane):  # type: ignore[no-untyped-def]
    """``lane = rint(h / unit)``."""
    # IN: h, unit  OUT: lane
    for i in range(len(h)):
        lane[i] = np.int64(np.rint(h[i] / unit))


def starts(rows: int) -> range:
    """First row of each task of a row-wise loss."""
    return range(0, rows, ROWS_PER_TASK)


def round_rows(rounding: Callable[..., Any], values: FloatArray, unit: float, out: Array, run: Run) -> None:
    """Round values by one of the kernels above, some rows at a time."""
    step = ROWS_PER_TASK
    run(lambda s: rounding(values[s : s + step], unit, out[s : s + step]), starts(len(values)))
