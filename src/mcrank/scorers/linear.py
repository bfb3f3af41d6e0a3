"""The linear scorer: one weight per scaled feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mcrank.arrays import Arrays, FeatureArray, FloatArray, IntArray
from mcrank.errors import ModelFileError
from mcrank.scorers.scaling import Scaling


@dataclass(frozen=True, eq=False)
class Linear:
    """A weighted sum of scaled features.

    Attributes
    ----------
    weights : ndarray of shape (features,)
        Weight of each feature after scaling.
    scaling : Scaling
        How features are scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.scorers.linear import Linear
    >>> from mcrank.scorers.scaling import Scaling
    >>> X = np.array([[1.0, 5.0], [3.0, 2.0]], dtype=np.float32)
    >>> Linear(np.array([1.0, -3.0]), Scaling.fit(X, "none")).raw(X).tolist()
    [[-14.0, -3.0]]
    """

    weights: FloatArray
    scaling: Scaling
    n_outputs: ClassVar[int] = 1
    by_query: ClassVar[bool] = False

    @property
    def n_features(self) -> int:
        """Columns of the matrices it scores."""
        return len(self.weights)

    def raw(self, X: FeatureArray, n_jobs: int = 1, offsets: IntArray | None = None) -> FloatArray:
        """Return the score of each row, as an array of one output."""
        return self.scaling.scores(X, self.weights)[None]

    def importances(self) -> FloatArray:
        """Return the share of each feature in the sum of all absolute weights."""
        size = np.abs(self.weights)
        largest = size.max(initial=0.0)
        if largest == 0.0:
            return np.zeros_like(size)
        size = size / largest  # first, so that huge weights have a sum
        return np.asarray(size / size.sum())

    def to_arrays(self) -> Arrays:
        """Return the arrays a model file keeps; the kind of the scaling is an option of the ranker."""
        return {"weights": self.weights, **self.scaling.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, scaling: str, n_features: int) -> Self:
        """Return what `to_arrays` described, for a kind of scaling; anything wrong is a `ModelFileError`."""
        scaled = Scaling.from_arrays(scaling, arrays, n_features)
        weights = arrays["weights"]
        if weights.dtype != np.float64 or weights.shape != (n_features,):
            raise ModelFileError(f"weights must be {n_features} float64 numbers.")
        with np.errstate(over="ignore"):
            reach = np.abs(weights) @ scaled.reach
        if not np.isfinite(reach):
            raise ModelFileError("weights are so large that scores are not finite.")
        return cls(weights, scaled)
