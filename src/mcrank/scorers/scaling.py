"""Scaling of inputs for linear and neural rankers; what was learned from the training rows goes into the
model file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from numba import njit, types

from mcrank.arrays import Array, Arrays, FeatureArray, FloatArray
from mcrank.errors import ModelFileError
from mcrank.kernels import kernel

SCALINGS = ("none", "zscore", "minmax", "log")
_CELLS = 1 << 22  # feature values worked on at a time: the whole matrix in float64 may not fit
_ARRAYS = ("scale_shift", "scale_factor", "scale_fill")


_READ = types.Array(types.float32, 2, "C", readonly=True)
_F = types.float64[::1]


@njit(inline="always")
def curved_row(X, i, log, row):  # type: ignore[no-untyped-def]
    """The values of a row, or sign(x) log(1 + |x|) of each."""
    # IN: X, i, log  OUT: row
    for f in range(X.shape[1]):
        row[f] = X[i, f]
    if log:
        for f in range(X.shape[1]):
            row[f] = np.copysign(np.log1p(abs(row[f])), row[f])


@kernel(types.void(_READ, types.boolean, _F, _F, _F, types.int64[::1]), allocates=True)
def feature_sums(X, log, total, low, high, count):  # type: ignore[no-untyped-def]
    """Sum, least, largest and number of the known values of each feature."""
    # IN: X, log  OUT: total, low, high, count
    total[:] = 0.0
    low[:] = np.inf
    high[:] = -np.inf
    count[:] = 0
    row = np.empty(X.shape[1])
    for i in range(X.shape[0]):
        curved_row(X, i, log, row)
        for f in range(X.shape[1]):
            known = row[f] == row[f]
            total[f] += row[f] if known else 0.0
            low[f] = row[f] if row[f] < low[f] else low[f]
            high[f] = row[f] if row[f] > high[f] else high[f]
            count[f] += known


@kernel(types.void(_READ, types.boolean, _F, _F), allocates=True)
def feature_squares(X, log, mean, out):  # type: ignore[no-untyped-def]
    """Sum of the squared distances of the known values of each feature from its mean."""
    # IN: X, log, mean  OUT: out
    out[:] = 0.0
    row = np.empty(X.shape[1])
    for i in range(X.shape[0]):
        curved_row(X, i, log, row)
        for f in range(X.shape[1]):
            off = row[f] - mean[f]
            out[f] += off * off if off == off else 0.0


@dataclass(frozen=True, eq=False)
class Scaling:
    """Maps a value ``x`` of a feature to ``(x - shift) * factor``, and a missing one to ``fill``.

    ``"zscore"`` gives every feature mean 0 and variance 1, ``"minmax"`` the range 0 to 1, ``"log"`` z-scores
    of sign(x) log(1 + |x|), ``"none"`` leaves values alone. A missing value becomes the mean of the training
    rows. A feature that is constant in training says nothing: it becomes 0, whatever its value later.

    Attributes
    ----------
    kind : str
        One of `SCALINGS`.
    shift, factor, fill : ndarray of shape (features,)
        What the training rows decided.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]], dtype=np.float32)
    >>> Scaling.fit(X, "zscore").apply(X).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """

    kind: str
    shift: FloatArray
    factor: FloatArray
    fill: FloatArray

    @classmethod
    def fit(cls, X: FeatureArray, kind: str) -> Self:
        """Learn the scaling from training rows."""
        n_features = X.shape[1]
        rows, log = np.ascontiguousarray(X), kind == "log"
        total, low, high, mean, square = np.zeros((5, n_features))
        count = np.zeros(n_features, dtype=np.int64)
        feature_sums(rows, log, total, low, high, count)
        np.divide(total, count, out=mean, where=count > 0)
        varies = (count > 0) & (low < high)
        spread = np.ones(n_features)
        if kind == "minmax":
            np.subtract(high, low, out=spread, where=varies)
        elif kind != "none":
            feature_squares(rows, log, mean, square)
            np.sqrt(np.divide(square, count, where=count > 0, out=square), out=spread, where=varies)
        shift = np.where(varies, {"none": np.zeros(n_features), "minmax": low}.get(kind, mean), 0.0)
        factor = np.where(varies, 1.0 / spread, 0.0)
        return cls(kind, shift, factor, (np.where(varies, mean, 0.0) - shift) * factor)

    def apply(self, X: FeatureArray, dtype: npt.DTypeLike = np.float64) -> Array:
        """Return scaled rows (C order, no NaN)."""
        out = np.empty(X.shape, dtype=dtype)
        for rows in _blocks(*X.shape):
            values = _curved(X[rows], self.kind)
            missing = np.isnan(values)
            values -= self.shift
            values *= self.factor
            if missing.any():
                np.copyto(values, self.fill, where=missing)
            out[rows] = values
        return out

    def scores(self, X: FeatureArray, weights: FloatArray) -> FloatArray:
        """Return scaled rows times ``weights``, without holding all scaled rows at once."""
        out = np.empty(X.shape[0], dtype=np.float64)
        for rows in _blocks(*X.shape):
            # Added feature by feature: a score must not depend on which rows are scored together.
            out[rows] = np.einsum("ij,j->i", self.apply(X[rows]), weights)
        return out

    def to_arrays(self) -> dict[str, FloatArray]:
        """Return the arrays a model file keeps; the kind is an option of the ranker."""
        return dict(zip(_ARRAYS, (self.shift, self.factor, self.fill), strict=True))

    @classmethod
    def from_arrays(cls, kind: str, arrays: Arrays, n_features: int) -> Self:
        """Return the scaling that `to_arrays` described; what cannot be one is a `ModelFileError`."""
        for name in _ARRAYS:
            array = arrays[name]
            if array.dtype != np.float64 or array.shape != (n_features,):
                raise ModelFileError(f"{name} must be {n_features} float64 numbers.")
        shift, factor, fill = (arrays[name] for name in _ARRAYS)
        if not (factor >= 0).all() or not np.isfinite(_reach(shift, factor, fill)).all():
            raise ModelFileError("scale_factor must not be negative, nor scaled values infinite.")
        return cls(kind, shift, factor, fill)

    @property
    def reach(self) -> FloatArray:
        """Largest size any value of each feature can have after scaling."""
        return _reach(self.shift, self.factor, self.fill)


def _reach(shift: FloatArray, factor: FloatArray, fill: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return (float(np.finfo(np.float32).max) + np.abs(shift)) * factor + np.abs(fill)


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Yield slices of ``count`` items so that each holds about `_CELLS` values."""
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, start + step)


def _curved(X: FeatureArray, kind: str) -> FloatArray:
    values = X.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values) if kind == "log" else values
