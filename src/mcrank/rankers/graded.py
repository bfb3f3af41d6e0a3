"""Rankers with probabilities of grades: their score is the Expected Relevance, and T is chosen when
predicting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.rankers.base import Ranker

Relevance = str | Sequence[float] | FloatArray


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

    def predict(self, X: Dataset | npt.ArrayLike, relevance: Relevance = "grade") -> FloatArray:
        """Return the Expected Relevance of each row, in the caller's row order.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            What to score.
        relevance : {"grade", "gain"} or sequence of numbers
            T of the paper: the grades themselves, 2^grade - 1 (the choice that is optimal for DCG if the
            probabilities are right), or one number per grade of `grades_`, not falling.
        """
        values = self._relevance(relevance)
        return self.head_.expected(self._raw(X, "predict"), values)

    def predict_proba(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return the probability of each grade (rows x grades); every row is a distribution over
        `grades_`.
        """
        raw = self._raw(X, "predict_proba")
        return np.ascontiguousarray(np.transpose(self.head_.proba(raw)))  # type: ignore[arg-type]

    def _relevance(self, relevance: Relevance) -> FloatArray:
        self._check_fitted()
        return relevance_values(relevance, self.grades_, f"{type(self).__name__}.predict")


def relevance_values(relevance: Relevance, grades: FloatArray, where: str) -> FloatArray:
    """Return T of each grade, as an option of that name says it.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.rankers.graded import relevance_values
    >>> relevance_values("gain", np.array([0.0, 1.0, 3.0]), "predict").tolist()
    [0.0, 1.0, 7.0]
    """
    if isinstance(relevance, str):
        if relevance == "grade":
            return grades
        if relevance == "gain" and grades[-1] < 1024:
            return np.asarray(np.exp2(grades) - 1)
    else:
        try:
            values = np.asarray(relevance, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape == grades.shape and np.isfinite(values).all() and (np.diff(values) >= 0).all():
            return values
    raise OptionError(
        f"relevance of {where} must be 'grade', 'gain' or {len(grades)} numbers that do not fall, "
        f"got {relevance!r}."
    )
