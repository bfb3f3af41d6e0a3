"""Rankers with probabilities of grades: their score is the Expected Relevance, and T is chosen when
predicting.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.rankers.base import Ranker
from mcrank.scorers.heads import Relevance


class GradedRanker(Ranker):
    """A ranker whose head has grades; a subclass writes ``_fit`` and ``_scorer_of``.

    Attributes
    ----------
    grades_ : ndarray of float64
        Grades seen in training, ascending; column k of `predict_proba` is the probability of ``grades_[k]``.
    classes_ : ndarray of float64
        The same, under the name that scikit-learn asks for beside `predict_proba`.
    """

    @property
    def grades_(self) -> FloatArray:
        """Grades seen in training, ascending."""
        values = self.head_.values
        if values is None:  # an imported ranker may have none
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'grades_'")
        return values

    @property
    def classes_(self) -> FloatArray:
        """Grades seen in training, ascending."""
        return self.grades_

    def predict(self, X: Dataset | Scan | npt.ArrayLike, relevance: Relevance = "grade") -> FloatArray:
        """Return the Expected Relevance of each row, in the caller's row order.

        Parameters
        ----------
        X : Dataset, Scan or array-like of shape (rows, features)
            What to score.
        relevance : {"grade", "gain"} or sequence of numbers
            T of the paper: the grades themselves, 2^grade - 1 (the choice that is optimal for DCG if the
            probabilities are right), or one number per grade of `grades_`, not falling.
        """
        self._check_fitted()
        values = self.head_.worth(relevance, f"{type(self).__name__}.predict")
        return self.head_.expected(self._raw(X, "predict"), values)

    def predict_proba(self, X: Dataset | Scan | npt.ArrayLike) -> FloatArray:
        """Return the probability of each grade (rows x grades); every row is a distribution over
        `grades_`.
        """
        raw = self._raw(X, "predict_proba")
        return np.ascontiguousarray(np.transpose(self.head_.proba(raw)))  # type: ignore[arg-type]
