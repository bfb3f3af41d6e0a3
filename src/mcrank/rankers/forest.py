"""Rankers whose scorer is a forest with one output, however it was made, and their part of a model file."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mcrank.boosting.predict import predict_raw
from mcrank.boosting.trees import Forest
from mcrank.data.dataset import Dataset
from mcrank.errors import ModelFileError
from mcrank.options import fitted
from mcrank.rankers.base import FloatArray, Ranker, available_cores


class ForestRanker(Ranker):
    """A ranker that scores with a forest; a subclass writes ``_fit``, which sets `forest_`.

    Attributes
    ----------
    forest_ : Forest
        The trees kept.
    """

    forest_: Forest = fitted()

    def predict(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first."""
        features = self._features(X, "predict")
        n_jobs = self.declared_options["n_jobs"].check(self.n_jobs, type(self).__name__) or available_cores()
        scores = predict_raw(self.forest_, features, n_jobs=n_jobs)[:, 0]
        return np.asarray(X.to_caller(scores)) if isinstance(X, Dataset) else scores

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the total merit of all trees."""
        self._check_fitted()
        return self.forest_.feature_importances()

    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return everything a model file needs: JSON values and arrays."""
        return self._common_state(), self.forest_.to_arrays()

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Return the fitted ranker that `state` described; what does not fit together is a
        `ModelFileError`.
        """
        ranker = cls._from_common_state(meta)
        ranker.forest_ = Forest.from_arrays(arrays)
        forest = ranker.forest_
        if (forest.n_features, forest.n_outputs) != (ranker.n_features_in_, 1):
            raise ModelFileError(
                f"the forest has {forest.n_features} features and {forest.n_outputs} outputs; "
                f"it must have {ranker.n_features_in_} and 1."
            )
        return ranker
