"""Rankers whose scorer is a forest, however it was made, and their part of a model file."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mcrank.cores import available_cores
from mcrank.data.dataset import Dataset
from mcrank.errors import ModelFileError
from mcrank.options import fitted
from mcrank.rankers.base import FloatArray, Ranker
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.predict import predict_raw


class ForestRanker(Ranker):
    """A ranker that scores with a forest; a subclass writes ``_fit``, which sets `forest_`.

    Attributes
    ----------
    forest_ : Forest
        The trees kept.
    """

    forest_: Forest = fitted()

    def _rank(self, raw: FloatArray) -> FloatArray:
        """Ranking scores of raw scores (outputs x rows)."""
        return np.asarray(raw[0])

    def _raw(self, X: Dataset | npt.ArrayLike, what: str) -> FloatArray:
        """Raw scores (outputs x rows) in the caller's row order."""
        features = self._features(X, what)
        n_jobs = self.declared_options["n_jobs"].check(self.n_jobs, type(self).__name__) or available_cores()
        raw = predict_raw(self.forest_, features, n_jobs=n_jobs)
        return (X.to_caller(raw) if isinstance(X, Dataset) else raw).T

    def predict(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first."""
        return self._rank(self._raw(X, "predict"))

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the total gain of all splits."""
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
        ranker._restore(meta, arrays)
        found = (ranker.forest_.n_features, ranker.forest_.n_outputs)
        needed = (ranker.n_features_in_, ranker._outputs())
        if found != needed:
            raise ModelFileError(
                f"the forest has {found[0]} features and {found[1]} outputs; "
                f"it must have {needed[0]} and {needed[1]}."
            )
        return ranker

    def _restore(self, meta: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take what a subclass added to the state, checked."""

    def _outputs(self) -> int:
        """Outputs the forest of a fitted ranker must have."""
        return 1
