"""Multiple classification (section 3.4 of the McRank paper): softmax over one score per class.

Loss (7) is -log p[y]; its gradient for class k is 1[y = k] - p[k], and p(1 - p) = |g|(1 - |g|) needs no
array of its own. The gradients of a row sum to zero over the classes; the last one is *defined* as minus
the sum of the others after rounding, so its root histogram is minus the sum of theirs, exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, njit

from mcrank.arrays import RowArray
from mcrank.kernels import kernel
from mcrank.kernels.exp import ROUND, exp_negative
from mcrank.kernels.memory import float_to_bits
from mcrank.losses.classes import PLAIN, SMALLEST_SHARE, WEIGHTED, ClassLoss

CHUNK = 512  # rows worked on together: K x 512 floats stay in L1


@njit(inline="always")
def fill_powers(scores, low, n, top, powers, total):  # type: ignore[no-untyped-def]
    """Exponentials of the scores of ``n`` rows from ``low`` on, a row's largest being 1, and their sums."""
    # IN: scores, low, n  OUT: top (scratch), powers by class, total
    first = scores[0, low : low + n]
    for i in range(n):
        top[i] = first[i]
        total[i] = 0.0
    for k in range(1, len(powers)):
        score = scores[k, low : low + n]
        for i in range(n):
            top[i] = max(top[i], score[i])
    for k in range(len(powers)):
        score = scores[k, low : low + n]
        power = powers[k]
        for i in range(n):
            power[i] = exp_negative(score[i] - top[i])
        for i in range(n):
            total[i] += power[i]


@kernel(PLAIN, error_model="numpy", allocates=True)
def softmax_residuals(scores, classes, start, end, scale, q):  # type: ignore[no-untyped-def]
    """``q[k] = rint(scale * (1[y = k] - softmax(scores)[k]))`` for rows ``start`` up to ``end``; the last
    balances.
    """
    # IN: scores, classes, start, end, scale  OUT: q
    n_classes = scores.shape[0]
    powers = np.empty((n_classes, CHUNK))
    top, total = np.empty((2, CHUNK))
    balance = np.empty(CHUNK, np.int32)
    for low in range(start, end, CHUNK):
        n = min(CHUNK, end - low)
        own = classes[low : low + n]
        fill_powers(scores, low, n, top, powers, total)
        for i in range(n):
            total[i] = scale / total[i]
            balance[i] = 0
        for k in range(n_classes - 1):
            power = powers[k]
            out = q[k, low : low + n]
            for i in range(n):
                target = scale if own[i] == k else 0.0
                rounded = int32(float_to_bits(target - power[i] * total[i] + ROUND))
                out[i] = rounded
                balance[i] += rounded
        out = q[n_classes - 1, low : low + n]
        for i in range(n):
            out[i] = -balance[i]


@kernel(WEIGHTED, error_model="numpy", allocates=True)
def weighted_softmax_residuals(scores, classes, weight, start, end, unit, q, curvature):  # type: ignore[no-untyped-def]
    """The same with row weights, and the curvatures w p (1 - p)."""
    # IN: scores, classes, weight, start, end, unit  OUT: q, curvature
    n_classes = scores.shape[0]
    powers = np.empty((n_classes, CHUNK))
    top, total = np.empty((2, CHUNK))
    balance = np.empty(CHUNK, np.int32)
    for low in range(start, end, CHUNK):
        n = min(CHUNK, end - low)
        own, mass = classes[low : low + n], weight[low : low + n]
        fill_powers(scores, low, n, top, powers, total)
        for i in range(n):
            balance[i] = 0
        for k in range(n_classes):
            power, curve, out = powers[k], curvature[k, low : low + n], q[k, low : low + n]
            for i in range(n):
                power[i] /= total[i]
                curve[i] = mass[i] * power[i] * (1 - power[i])
            if k == n_classes - 1:
                break
            for i in range(n):
                target = 1.0 if own[i] == k else 0.0
                rounded = int32(float_to_bits(mass[i] * (target - power[i]) / unit + ROUND))
                out[i] = rounded
                balance[i] += rounded
        out = q[n_classes - 1, low : low + n]
        for i in range(n):
            out[i] = -balance[i]


class MulticlassLoss(ClassLoss):
    """Softmax loss of class codes 0..K-1.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.multiclass import MulticlassLoss
    >>> MulticlassLoss(np.array([0, 1, 2], dtype=np.int32), 3).n_outputs
    3
    """

    plain_kernel = staticmethod(softmax_residuals)
    weighted_kernel = staticmethod(weighted_softmax_residuals)

    balanced = True

    def __init__(self, classes: RowArray, n_classes: int, *rest: Any, **named: Any) -> None:
        super().__init__(classes, n_classes, *rest, **named)
        self.leaf_factor = (n_classes - 1) / n_classes

    def start_from_prior(self) -> None:
        """Start from the logarithms of the shares; a class of no weight stays at what rounding calls none."""
        self.base = np.log(np.maximum(self.shares(self.n_outputs), SMALLEST_SHARE))
