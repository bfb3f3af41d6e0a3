"""Linear rankers: one weight per scaled feature, and their part of a model file."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mcrank.data.dataset import Dataset
from mcrank.errors import ModelFileError
from mcrank.options import fitted, option
from mcrank.rankers.base import FloatArray, Ranker
from mcrank.scorers.scaling import SCALINGS, Scaling


class LinearRanker(Ranker):
    """A ranker whose score is a weighted sum of scaled features.

    A subclass writes ``_fit``, which sets `scaling_` and `weights_` (and what every ranker sets).

    Attributes
    ----------
    weights_ : ndarray of shape (features,)
        Weight of each feature after scaling.
    scaling_ : Scaling
        How features were scaled, learned from the training rows.
    """

    scaling: str = option(
        default="zscore",
        choices=SCALINGS,
        help="how features are scaled: not, to variance 1, to 0..1, or log(1 + |x|) to variance 1",
    )
    weights_: FloatArray = fitted()
    scaling_: Scaling = fitted()

    def predict(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first."""
        features = self._features(X, "predict")
        scores = self.scaling_.scores(features, self.weights_)
        return np.asarray(X.to_caller(scores)) if isinstance(X, Dataset) else scores

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the sum of all absolute weights."""
        self._check_fitted()
        size = np.abs(self.weights_)
        largest = size.max(initial=0.0)
        if largest == 0.0:
            return np.zeros_like(size)
        size = size / largest  # first, so that huge weights have a sum
        return np.asarray(size / size.sum())

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return everything a model file needs: JSON values and arrays."""
        return self._common_state(), {"weights": self.weights_, **self.scaling_.to_arrays()}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Return the fitted ranker that `state` described; what does not fit together is a
        `ModelFileError`.
        """
        ranker = cls._from_common_state(meta)
        n_features = ranker.n_features_in_
        ranker.scaling_ = Scaling.from_arrays(ranker.options_["scaling"], arrays, n_features)
        weights = arrays["weights"]
        if weights.dtype != np.float64 or weights.shape != (n_features,):
            raise ModelFileError(f"weights must be {n_features} float64 numbers.")
        with np.errstate(over="ignore"):
            reach = np.abs(weights) @ ranker.scaling_.reach
        if not np.isfinite(reach):
            raise ModelFileError("weights are so large that scores are not finite.")
        ranker.weights_ = weights
        ranker._restore(meta)
        return ranker

    def _restore(self, meta: dict[str, Any]) -> None:
        """Take what a subclass added to the state, checked."""
