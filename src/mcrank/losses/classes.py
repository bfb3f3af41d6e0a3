"""What losses of class codes share: gradients 1[.] - p, rounded, with or without row weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numba import types

from mcrank.arrays import FloatArray, RowArray
from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS, READ_ONLY, ROWS_PER_TASK, Gradients, Run, starts
from mcrank.sums import ALONE, Sums, exact_sum, exact_sums_by

# (scores, classes, start, end, scale) -> q
PLAIN = types.void(
    types.float64[:, ::1], types.int32[::1], types.int64, types.int64, types.float64, types.int32[:, ::1]
)
# (scores, classes, weight, start, end, unit) -> q, curvature
WEIGHTED = types.void(
    types.float64[:, ::1], types.int32[::1], READ_ONLY, types.int64, types.int64, types.float64,
    types.int32[:, ::1], types.float64[:, ::1],
)  # fmt: skip

SMALLEST_SHARE = 1e-12  # of a class that has rows but no weight


class ClassLoss(Loss):
    """A loss whose gradients are 1[.] - p of class codes 0..K-1.

    A subclass gives its two kernels. Without weights p(1 - p) = |g|(1 - |g|) needs no
    array; with them, curvatures w p(1 - p) are kept, and the second lane is the weight (``split="mse"``,
    shared by all outputs) or the curvature (``"newton"``).
    """

    plain_kernel: ClassVar[Callable[..., Any]]
    weighted_kernel: ClassVar[Callable[..., Any]]
    fewer: ClassVar[int] = 0  # outputs than classes

    def __init__(
        self, classes: RowArray, n_classes: int, weight: FloatArray | None = None, sums: Sums = ALONE
    ) -> None:
        self.classes = classes
        self.weight = weight
        self.sums = sums
        self._largest = 1.0 if weight is None else sums.most(float(weight.max(initial=0.0)))
        self.base = np.zeros(n_classes - self.fewer)
        self.derived_curvature = weight is None

    def shares(self, n_classes: int) -> FloatArray:
        """Share of each class in the (weighted) rows."""
        counts = exact_sums_by(self.classes, n_classes, self.weight, self.sums)
        return np.asarray(counts / exact_sum(counts))

    @abstractmethod
    def start_from_prior(self) -> None:
        """Start from the scores that give every row the classes' shares, rather than from 0."""

    @property
    def rule(self) -> LeafRule:
        """Bernoulli, or explicit curvature when rows have weights."""
        return LeafRule.BERNOULLI if self.weight is None else LeafRule.CURVATURE

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes."""
        gradients = Gradients(np.empty((self.n_outputs, len(self.classes)), dtype=np.int32))
        if self.weight is not None:  # w p(1 - p) is below w
            gradients.begin_lane(split, self._largest / (1 << LANE_BITS), self.weight)
        return gradients

    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write the gradients of every row and output."""
        n = len(self.classes)
        gradients.unit = self._largest / (1 << GRADIENT_BITS)

        def part(start: int) -> None:
            end = min(start + ROWS_PER_TASK, n)
            if self.weight is None:
                self.plain_kernel(scores, self.classes, start, end, 1 / gradients.unit, gradients.q)
            else:
                self.weighted_kernel(
                    scores, self.classes, self.weight, start, end, gradients.unit, gradients.q,
                    gradients.curvature,
                )  # fmt: skip

        run(part, starts(n))
        gradients.round_curvature(run)
