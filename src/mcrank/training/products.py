"""Rows as a linear trainer wants them: scaled, centred in their query, and multiplied in one pass.

Only differences inside a query count for pairs, so the mean of a query can be taken off before values are
rounded to float32: small numbers keep their digits, and half the bytes are half the time.
"""

from __future__ import annotations

import numpy as np
from numba import types

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.data.dataset import Dataset
from mcrank.kernels import kernel
from mcrank.kernels.memory import aligned
from mcrank.scorers.scaling import Scaling, curved_row

Rows = FeatureArray

LARGEST = 1e38  # beyond it float32 is infinite

_READ = types.Array(types.float32, 2, "C", readonly=True)
_OFFSETS = types.Array(types.int64, 1, "C", readonly=True)
_X = types.float32[:, ::1]
_F = types.float64[::1]


@kernel(types.void(_READ, types.boolean, _F, _F, _F, _OFFSETS, _X), allocates=True)
def centre_rows(X, log, shift, factor, fill, offsets, out):  # type: ignore[no-untyped-def]
    """Scale rows and take off the mean of their query."""
    # IN: X, log, shift, factor, fill, offsets  OUT: out
    n_features = X.shape[1]
    mean = np.empty(n_features)
    row = np.empty(n_features)
    for q in range(offsets.shape[0] - 1):
        mean[:] = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            curved_row(X, i, log, row)
            for f in range(n_features):
                mean[f] += (row[f] - shift[f]) * factor[f] if row[f] == row[f] else fill[f]
        for f in range(n_features):
            mean[f] /= offsets[q + 1] - offsets[q]
        for i in range(offsets[q], offsets[q + 1]):
            curved_row(X, i, log, row)
            for f in range(n_features):
                value = (row[f] - shift[f]) * factor[f] if row[f] == row[f] else fill[f]
                out[i, f] = np.float32(min(max(value - mean[f], -LARGEST), LARGEST))


@kernel(types.void(_X, _F, _F), fastmath={"reassoc", "nsz", "contract"})
def times_weights(X, weights, out):  # type: ignore[no-untyped-def]
    """Multiply every row by the weights."""
    # IN: X, weights by feature  OUT: out by row
    for i in range(X.shape[0]):
        total = 0.0
        for f in range(X.shape[1]):
            total += X[i, f] * weights[f]
        out[i] = total


@kernel(types.void(_X, _F, _F), fastmath={"nsz", "contract"})
def times_rows(X, push, out):  # type: ignore[no-untyped-def]
    """Add up all rows, each times its push."""
    # IN: X, push by row  OUT: out by feature
    out[:] = 0.0
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            out[f] += push[i] * X[i, f]


def centred_rows(data: Dataset, scaling: Scaling) -> Rows:
    """Return the rows of a data set, scaled and centred in each query.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.training.products import centred_rows
    >>> from mcrank.scorers.scaling import Scaling, curved_row
    >>> data = Dataset([[1.0], [3.0], [9.0]], y=[0, 1, 0], qid=["a", "a", "b"])
    >>> centred_rows(data, Scaling.fit(data.X, "none")).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """
    out = np.empty(data.X.shape, dtype=np.float32)
    X, log = np.ascontiguousarray(data.X), scaling.kind == "log"
    centre_rows(X, log, scaling.shift, scaling.factor, scaling.fill, data.offsets, out)
    return out


def scores_of(X: Rows, weights: FloatArray) -> FloatArray:
    """Return rows times weights, on one thread, so that threads change nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.products import scores_of
    >>> scores_of(np.ones((1, 2), dtype=np.float32), np.array([2.0, 3.0])).tolist()
    [5.0]
    """
    out = np.empty(X.shape[0])
    times_weights(X, weights, out)
    return out


def gradient_of(X: Rows, push: FloatArray) -> FloatArray:
    """Return the sum of all rows, each times its push.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.training.products import gradient_of
    >>> gradient_of(np.ones((2, 1), dtype=np.float32), np.array([2.0, 3.0])).tolist()
    [5.0]
    """
    # Every row is added to it: where its vectors straddle cache lines, that takes twice as long.
    out = aligned(X.shape[1], dtype=np.float64)
    times_rows(X, push, out)
    return out
