"""Scaling of inputs for linear and neural rankers; what was learned from the training rows goes into the
model file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mcrank.errors import ModelFileError

FloatArray = npt.NDArray[np.float64]

SCALINGS = ("none", "zscore", "minmax", "log")
_CELLS = 1 << 22  # feature values worked on at a time: the whole matrix in float64 may not fit
_ARRAYS = ("scale_shift", "scale_factor", "scale_fill")


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
    >>> from mcrank.rankers.scaling import Scaling
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]], dtype=np.float32)
    >>> Scaling.fit(X, "zscore").apply(X).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """

    kind: str
    shift: FloatArray
    factor: FloatArray
    fill: FloatArray

    @classmethod
    def fit(cls, X: npt.NDArray[np.float32], kind: str) -> Self:
        """Learn the scaling from training rows."""
        n_features = X.shape[1]
        shift, factor, fill = np.zeros((3, n_features))
        for columns in _blocks(n_features, X.shape[0]):
            values = _curved(X[:, columns], kind)
            missing = np.isnan(values)
            count = len(values) - missing.sum(axis=0)
            known: Any = ~missing if missing.any() else True  # True is much quicker
            low = np.min(values, axis=0, where=known, initial=np.inf)
            high = np.max(values, axis=0, where=known, initial=-np.inf)
            mean = np.sum(values, axis=0, where=known) / np.maximum(count, 1)
            varies = (count > 0) & (low < high)
            spread = np.ones(len(count))
            if kind == "minmax":
                np.subtract(high, low, out=spread, where=varies)
            elif kind != "none":
                np.subtract(values, mean, out=values, where=known)
                square = np.sum(np.square(values, out=values, where=known), axis=0, where=known)
                np.sqrt(square / np.maximum(count, 1), out=spread, where=varies)
            centre = {"none": np.zeros(len(count)), "minmax": low}.get(kind, mean)
            shift[columns] = np.where(varies, centre, 0.0)
            factor[columns] = np.where(varies, 1.0 / spread, 0.0)
            fill[columns] = (np.where(varies, mean, 0.0) - shift[columns]) * factor[columns]
        return cls(kind, shift, factor, fill)

    def apply(self, X: npt.NDArray[np.float32], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
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

    def scores(self, X: npt.NDArray[np.float32], weights: FloatArray) -> FloatArray:
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
    def from_arrays(cls, kind: str, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> Self:
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


def _curved(X: npt.NDArray[np.float32], kind: str) -> FloatArray:
    values = X.astype(np.float64)
    return np.copysign(np.log1p(np.abs(values)), values) if kind == "log" else values
