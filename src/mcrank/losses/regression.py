"""Regression on gains (section 5 of the McRank paper): least squares, or least absolute deviation.

Least squares is Algorithm 2. LAD is Friedman's LAD_TreeBoost, which the paper tried and found considerably
worse: its trees fit the signs of the residuals, its leaves take their median.
"""

from __future__ import annotations

import math

import numpy as np
from numba import int64, types, uint64

from mcrank.arrays import FloatArray, IntArray
from mcrank.kernels import kernel
from mcrank.kernels.memory import bits_to_float, float_to_bits
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.quantize import (
    GRADIENT_BITS,
    LANE_BITS,
    READ_ONLY,
    Gradients,
    Run,
    round_gradients,
    round_rows,
    starts,
)
from mcrank.losses.quantize import ROWS_PER_TASK as STEP
from mcrank.sums import ALONE, Sums, as_integers, exact_mean

SMALLEST = 1e-305  # of a residual that can be divided into integer steps

_ROUNDING = 1.5 * 2.0**52
_SAME = 1e-12  # sums of weights this close are equal but for rounding


class RegressionLoss(Loss):
    """Squared (``"l2"``) or absolute (``"lad"``) error against a target.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.regression import RegressionLoss
    >>> RegressionLoss(np.array([0.0, 1.0, 5.0]), "l2").base.tolist()
    [2.0]
    >>> RegressionLoss(np.array([0.0, 1.0, 5.0]), "lad").base.tolist()
    [1.0]
    """

    def __init__(
        self, target: FloatArray, kind: str = "l2", weight: FloatArray | None = None, sums: Sums = ALONE
    ) -> None:
        self.target = target
        self.kind = kind
        self.weight = weight
        self.sums = sums
        if kind == "l2":
            start = exact_mean(target, weight, sums)
        else:
            start = weighted_median(*gathered(target, weight, sums))
        self.base = np.array([start], dtype=np.float64)
        self._residuals = np.empty(0)

    @property
    def rule(self) -> LeafRule:
        """Mean or median of the residuals."""
        if self.kind == "lad":
            return LeafRule.MEDIAN
        return LeafRule.MEAN if self.weight is None else LeafRule.CURVATURE

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes; second derivatives are 1, so ``split`` changes nothing."""
        gradients = Gradients(np.empty((1, len(self.target)), dtype=np.int32))
        if self.weight is not None:
            unit = self.sums.most(float(self.weight.max(initial=0.0))) / (1 << LANE_BITS)
            gradients.lane_unit = gradients.curvature_unit = unit
            gradients.round_weight(self.weight)
            gradients.curvature = self.weight.reshape(1, -1)
        return gradients

    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write the residuals, or their signs."""
        if self.kind == "l2" and self.weight is None:
            self._fill_plain(scores[0], gradients, run)
            return
        n, g, found = len(self.target), self._residuals, [0.0]
        if len(g) != n:
            # Kept for all rounds: taking pages of memory anew took eight times as long as writing to them.
            g = self._residuals = np.empty(n)

        def subtract(s: int) -> None:
            part = g[s : s + STEP]
            np.subtract(self.target[s : s + STEP], scores[0, s : s + STEP], out=part)
            if self.kind == "lad":
                np.sign(part, out=part)
            if self.weight is not None:
                part *= self.weight[s : s + STEP]
            found.append(max(float(part.max()), -float(part.min())))

        run(subtract, starts(n))
        gradients.unit = _unit(self.sums.most(max(found)))
        round_rows(round_gradients, g, gradients.unit, gradients.q[0], run)

    def _fill_plain(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write residuals in the unit of the round before; if it turns out to be another one, once more."""
        found = [0.0]

        def subtract(s: int) -> None:
            part = slice(s, s + STEP)
            found.append(
                round_residuals(self.target[part], scores[part], gradients.unit, gradients.q[0][part])
            )

        run(subtract, starts(len(self.target)))
        unit = _unit(self.sums.most(max(found)))
        if unit != gradients.unit:
            gradients.unit = unit
            run(subtract, starts(len(self.target)))

    def residuals(self, scores: FloatArray, output: int, rows: IntArray) -> FloatArray:
        """Target minus score of some rows."""
        return np.asarray(self.target[rows] - scores[output, rows])


def _unit(largest: float) -> float:
    """Unit of residuals of which this is the largest.

    Residuals too small to divide by are nothing to learn from: they round to 0. A power of 2, which is the
    same for many rounds: leaf values, multiples of it, then move rounded residuals by integers.
    """
    exponent = math.frexp(largest if largest > SMALLEST else 1.0)[1]
    return math.ldexp(1.0, exponent - GRADIENT_BITS)


@kernel(types.float64(READ_ONLY, types.float64[::1], types.float64, types.int32[::1]), error_model="numpy")
def round_residuals(target, scores, unit, q):  # type: ignore[no-untyped-def]
    """``q = rint((target - scores) / unit)`` where that has 31 bits; return the largest residual."""
    # IN: target, scores, unit  OUT: q
    largest = int64(0)
    for i in range(uint64(len(q))):
        residual = target[i] - scores[i]
        # By bits, which are in the order of the floats: integers are compared on vectors.
        largest = max(largest, float_to_bits(abs(residual)))
        # Beside so large a number nothing is left below 1: its low bits are the nearest integer.
        q[i] = np.int32(float_to_bits(residual / unit + _ROUNDING))
    return bits_to_float(largest)


def gathered(
    values: FloatArray, weight: FloatArray | None, sums: Sums
) -> tuple[FloatArray, FloatArray | None]:
    """Return everybody's values, with their weights if there are any."""
    everything = np.concatenate(sums.gather(values))
    return everything, None if weight is None else np.concatenate(sums.gather(weight))


def weighted_median(values: FloatArray, weight: FloatArray | None = None) -> float:
    """Median, or the value where half of the weight is reached; whole weights act as repeated values.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.regression import weighted_median
    >>> weighted_median(np.array([1.0, 2.0, 10.0]), np.array([1.0, 1.0, 5.0]))
    10.0
    """
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(as_integers(weight)[order])  # exact: equal values may stand in any order
    half = float(reached[-1]) / 2
    at = int(np.searchsorted(reached, half * (1 - _SAME)))
    if reached[at] <= half * (1 + _SAME):
        return float(values[order[at : at + 2]].mean())  # half on each side: the middle, as without weights
    return float(values[order[at]])
