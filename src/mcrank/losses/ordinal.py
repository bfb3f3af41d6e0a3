"""Multiple ordinal classification (section 4 of the McRank paper): one binary problem per grade boundary.

Output k models the log-odds of y > k, k = 0..K-2, with a logistic loss; the problems share nothing but the
rows. This is Algorithm 1 with K = 2: there both class trees have the same splits and opposite leaves, so
one tree whose leaf moves the log-odds by Σg / Σp(1-p) is the same model. McRank itself uses it when there
are two grades.
"""

from __future__ import annotations

import numpy as np
from numba import int32

from mcrank.kernels import kernel
from mcrank.kernels.exp import ROUND, exp_negative
from mcrank.kernels.memory import float_to_bits
from mcrank.losses.classes import PLAIN, SMALLEST_SHARE, WEIGHTED, ClassLoss


@kernel(PLAIN, error_model="numpy")
def logistic_residuals(scores, classes, start, end, scale, q):  # type: ignore[no-untyped-def]
    """``q[k] = rint(scale * (1[y > k] - sigmoid(scores[k])))`` for rows ``start`` up to ``end``."""
    # IN: scores, classes, start, end, scale  OUT: q
    own = classes[start:end]
    for k in range(scores.shape[0]):
        score = scores[k, start:end]
        out = q[k, start:end]
        for i in range(len(own)):
            small = exp_negative(-abs(score[i]))  # never overflows
            p = (1.0 if score[i] >= 0 else small) / (1.0 + small)
            target = 1.0 if own[i] > k else 0.0
            out[i] = int32(float_to_bits(scale * (target - p) + ROUND))


@kernel(WEIGHTED, error_model="numpy")
def weighted_logistic_residuals(scores, classes, weight, start, end, unit, q, curvature):  # type: ignore[no-untyped-def]
    """The same with row weights, and the curvatures w p (1 - p)."""
    # IN: scores, classes, weight, start, end, unit  OUT: q, curvature
    own, mass = classes[start:end], weight[start:end]
    for k in range(scores.shape[0]):
        score, curve, out = scores[k, start:end], curvature[k, start:end], q[k, start:end]
        for i in range(len(own)):
            small = exp_negative(-abs(score[i]))
            p = (1.0 if score[i] >= 0 else small) / (1.0 + small)
            curve[i] = mass[i] * p * (1 - p)
            target = 1.0 if own[i] > k else 0.0
            out[i] = int32(float_to_bits(mass[i] * (target - p) / unit + ROUND))


class OrdinalLoss(ClassLoss):
    """Logistic losses of y > k for class codes 0..K-1.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.losses.ordinal import OrdinalLoss
    >>> OrdinalLoss(np.array([0, 1, 2], dtype=np.int32), 3).n_outputs
    2
    """

    plain_kernel = staticmethod(logistic_residuals)
    weighted_kernel = staticmethod(weighted_logistic_residuals)
    fewer = 1

    def start_from_prior(self) -> None:
        """Start from the log-odds of the share above each boundary."""
        above = np.cumsum(self.shares(self.n_outputs + 1)[:0:-1])[::-1]
        above = np.clip(above, SMALLEST_SHARE, 1 - SMALLEST_SHARE)
        self.base = np.log(above / (1 - above))
