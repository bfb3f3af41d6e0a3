"""Multiple classification (section 3.4 of the McRank paper): softmax over one score per class.

Loss (7) is -log p[y]; its gradient for class k is 1[y = k] - p[k], and p(1 - p) = |g|(1 - |g|) needs no
array of its own. The gradients of a row sum to zero over the classes; the last one is *defined* as minus
the sum of the others after rounding, so its root histogram is minus the sum of theirs, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from numba import int32, njit, types

from mcrank.losses.base import LeafRule, Loss
from mcrank.losses.exponential import ROUND, as_bits, exp_negative
from mcrank.losses.quantize import (
    LANE_BITS,
    READ_ONLY,
    ROWS_PER_TASK,
    FloatArray,
    Gradients,
    Run,
    gradient_bits,
    round_lane,
    starts,
)

WEIGHTED = types.void(
    types.float64[:, ::1], types.int32[::1], READ_ONLY, types.int64, types.int64, types.float64,
    types.int32[:, ::1], types.float64[:, ::1],
)  # fmt: skip
_CHUNK = 512  # rows worked on together: K x 512 floats stay in L1


class MulticlassLoss(Loss):
    """Softmax loss of class codes 0..K-1.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.multiclass import MulticlassLoss
    >>> MulticlassLoss(np.array([0, 1, 2], dtype=np.int32), 3).n_outputs
    3
    """

    leaf_rule: ClassVar[LeafRule] = LeafRule.BERNOULLI

    def __init__(
        self, classes: npt.NDArray[np.int32], n_classes: int, weight: FloatArray | None = None
    ) -> None:
        self.classes = classes
        self.weight = weight
        self.base = np.zeros(n_classes)
        self.leaf_factor = (n_classes - 1) / n_classes
        self.derived_curvature = weight is None

    @property
    def rule(self) -> LeafRule:
        """Bernoulli, or explicit curvature when rows have weights."""
        return self.leaf_rule if self.weight is None else LeafRule.CURVATURE

    def allocate(self, split: str) -> Gradients:
        """Return the arrays `fill` writes."""
        n, k = len(self.classes), self.n_outputs
        gradients = Gradients(np.empty((k, n), dtype=np.int32))
        return allocate_weighted(gradients, self.weight, split)

    def fill(self, scores: FloatArray, gradients: Gradients, run: Run) -> None:
        """Write 1[y = k] - p[k] of every row and class."""
        n = scores.shape[1]
        if self.weight is None:
            scale = float(1 << gradient_bits(n))
            gradients.unit = 1 / scale
            run(
                lambda s: softmax_residuals(
                    scores, self.classes, s, min(s + ROWS_PER_TASK, n), scale, gradients.q
                ),
                starts(n),
            )
            return
        fill_weighted(
            gradients,
            self.weight,
            run,
            lambda s, e, unit: weighted_softmax_residuals(
                scores, self.classes, self.weight, s, e, unit, gradients.q, gradients.curvature
            ),
        )


def allocate_weighted(gradients: Gradients, weight: FloatArray | None, split: str) -> Gradients:
    """Add what row weights need: a curvature per output and row, and a second lane.

    The second lane of ``split="mse"`` is the row weight itself, shared by all outputs.
    """
    if weight is None:
        return gradients
    k, n = gradients.q.shape
    gradients.curvature = np.empty((k, n))
    gradients.weights = np.empty((k if split == "newton" else 1, n), dtype=np.int64)
    gradients.lane_unit = float(weight.max()) / (1 << LANE_BITS)
    gradients.lane_is_curvature = split == "newton"
    if not gradients.lane_is_curvature:
        round_lane(weight, gradients.lane_unit, gradients.weights[0])
    return gradients


def fill_weighted(
    gradients: Gradients, weight: FloatArray, run: Run, residuals: Callable[[int, int, float], None]
) -> None:
    """Fill weighted gradients and curvatures by ``residuals(start, end, unit)``, then the lane they make."""
    k, n = gradients.q.shape
    gradients.unit = float(weight.max()) / (1 << gradient_bits(n))
    run(lambda s: residuals(s, min(s + ROWS_PER_TASK, n), gradients.unit), starts(n))
    if gradients.lane_is_curvature:
        run(
            lambda j: round_lane(gradients.curvature[j], gradients.lane_unit, gradients.weights[j]),
            range(k),
        )


@njit(
    "void(float64[:,::1], int32[::1], int64, int64, float64, int32[:,::1])",
    nogil=True,
    cache=True,
    error_model="numpy",
)
def softmax_residuals(scores, classes, start, end, scale, q):  # type: ignore[no-untyped-def]
    """``q[k] = rint(scale * (1[y = k] - softmax(scores)[k]))`` for rows ``start`` up to ``end``; the last
    balances.
    """
    # IN: scores, classes, start, end, scale  OUT: q
    n_classes = scores.shape[0]
    powers = np.empty((n_classes, _CHUNK))
    top = np.empty(_CHUNK)
    total = np.empty(_CHUNK)
    balance = np.empty(_CHUNK, np.int32)
    for low in range(start, end, _CHUNK):
        n = min(_CHUNK, end - low)
        own = classes[low : low + n]
        first = scores[0, low : low + n]
        for i in range(n):
            top[i] = first[i]
            total[i] = 0.0
            balance[i] = 0
        for k in range(1, n_classes):
            score = scores[k, low : low + n]
            for i in range(n):
                top[i] = max(top[i], score[i])
        for k in range(n_classes):
            score = scores[k, low : low + n]
            power = powers[k]
            for i in range(n):
                power[i] = exp_negative(score[i] - top[i])
            for i in range(n):
                total[i] += power[i]
        for i in range(n):
            total[i] = scale / total[i]
        for k in range(n_classes - 1):
            power = powers[k]
            out = q[k, low : low + n]
            for i in range(n):
                target = scale if own[i] == k else 0.0
                rounded = int32(as_bits(target - power[i] * total[i] + ROUND))
                out[i] = rounded
                balance[i] += rounded
        out = q[n_classes - 1, low : low + n]
        for i in range(n):
            out[i] = -balance[i]


@njit(WEIGHTED, nogil=True, cache=True, error_model="numpy")
def weighted_softmax_residuals(scores, classes, weight, start, end, unit, q, curvature):  # type: ignore[no-untyped-def]
    """The same with row weights, and the curvatures w p (1 - p)."""
    # IN: scores, classes, weight, start, end, unit  OUT: q, curvature
    n_classes = scores.shape[0]
    for i in range(start, end):
        top = scores[0, i]
        for k in range(1, n_classes):
            top = max(top, scores[k, i])
        total = 0.0
        for k in range(n_classes):
            total += exp_negative(scores[k, i] - top)
        balance = int32(0)
        for k in range(n_classes):
            p = exp_negative(scores[k, i] - top) / total
            curvature[k, i] = weight[i] * p * (1 - p)
            target = 1.0 if classes[i] == k else 0.0
            if k < n_classes - 1:
                q[k, i] = int32(np.rint(weight[i] * (target - p) / unit))
                balance += q[k, i]
            else:
                q[k, i] = -balance
