"""Multiple classification (section 3.4 of the McRank paper): softmax over one score per class.

Loss (7) is -log p[y]; its gradient for class k is 1[y = k] - p[k], and p(1 - p) = |g|(1 - |g|) needs no
array of its own. The gradients of a row sum to zero over the classes; the last one is *defined* as minus
the sum of the others after rounding, so its root histogram is minus the sum of theirs, exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32

from mcrank.arrays import RowArray
from mcrank.kernels import kernel, step
from mcrank.kernels.exp import ROUND, exp_negative
from mcrank.kernels.memory import float_to_bits
from mcrank.losses.classes import PLAIN, SMALLEST_SHARE, WEIGHTED, ClassLoss

_CHUNK = 512  # rows worked on together: K x 512 floats stay in L1


@kernel(PLAIN, error_model="numpy", allocates=True)
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
                rounded = int32(float_to_bits(target - power[i] * total[i] + ROUND))
                out[i] = rounded
                balance[i] += rounded
        out = q[n_classes - 1, low : low + n]
        for i in range(n):
            out[i] = -balance[i]


@step()
def softmax_powers(scores, i, powers):  # type: ignore[no-untyped-def]
    """Exponentials of the scores of row ``i``, the largest being 1; returns their sum."""
    # IN: scores, i  OUT: powers by class
    top = scores[0, i]
    for k in range(1, len(powers)):
        top = max(top, scores[k, i])
    total = 0.0
    for k in range(len(powers)):
        powers[k] = exp_negative(scores[k, i] - top)
        total += powers[k]
    return total


@kernel(WEIGHTED, error_model="numpy", allocates=True)
def weighted_softmax_residuals(scores, classes, weight, start, end, unit, q, curvature):  # type: ignore[no-untyped-def]
    """The same with row weights, and the curvatures w p (1 - p)."""
    # IN: scores, classes, weight, start, end, unit  OUT: q, curvature
    n_classes = scores.shape[0]
    powers = np.empty(n_classes)
    for i in range(start, end):
        total = softmax_powers(scores, i, powers)
        balance = int32(0)
        for k in range(n_classes):
            p = powers[k] / total
            curvature[k, i] = weight[i] * p * (1 - p)
            target = 1.0 if classes[i] == k else 0.0
            if k < n_classes - 1:
                q[k, i] = int32(np.rint(weight[i] * (target - p) / unit))
                balance += q[k, i]
            else:
                q[k, i] = -balance


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
