"""Rankers with probabilities of grades: their score is the Expected Relevance, and T is chosen when
predicting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.rankers.base import Ranker
from mcrank.rankers.inputs import Given, as_dataset
from mcrank.scorers.heads import Relevance

if TYPE_CHECKING:
    from mcrank.metrics.calibration import GradeCalibration


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

    def predict(
        self,
        X: Dataset | Scan | npt.ArrayLike,
        relevance: Relevance = "grade",
        *,
        rounds: int | None = None,
        cluster: Any = None,
    ) -> FloatArray:
        """Return the Expected Relevance of each row, in the caller's row order.

        Parameters
        ----------
        X : Dataset, Scan or array-like of shape (rows, features)
            What to score.
        relevance : {"grade", "gain"} or sequence of numbers
            T of the paper: the grades themselves, 2^grade - 1 (the choice that is optimal for DCG if the
            probabilities are right), or one number per grade of `grades_`, not falling.
        rounds : int, optional
            Score with the first so many of the rounds kept.
        cluster : distributed.Client, str, int or Cluster, optional
            Score on a Dask cluster, as in `Ranker.predict`.
        """
        self._check_fitted()
        if cluster is not None:
            return self._predict_on(cluster, "predict", X, relevance=relevance, rounds=rounds)
        values = self.head_.worth(relevance, f"{type(self).__name__}.predict")
        return self.head_.expected(self._raw(X, "predict", rounds), values)

    def predict_proba(
        self, X: Dataset | Scan | npt.ArrayLike, *, rounds: int | None = None, cluster: Any = None
    ) -> FloatArray:
        """Return the probability of each grade (rows x grades); every row is a distribution over
        `grades_`. ``rounds`` and ``cluster`` as in `predict`.
        """
        if cluster is not None:
            return self._predict_on(cluster, "predict_proba", X, rounds=rounds)
        raw = self._raw(X, "predict_proba", rounds)
        return np.ascontiguousarray(np.transpose(self.head_.proba(raw)))  # type: ignore[arg-type]

    def calibration(
        self, X: Dataset | npt.ArrayLike, y: npt.ArrayLike | None = None, qid: npt.ArrayLike | None = None
    ) -> GradeCalibration:
        """Tell how right `predict_proba` is on rows with grades, best ones that training has not seen.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            A `Dataset`, or a matrix with ``y`` beside it.
        y : array-like of shape (rows,)
            Grades, when ``X`` is a matrix.
        qid : array-like of shape (rows,), optional
            Query ids; calibration is a matter of rows, so they may be left out.

        Returns
        -------
        GradeCalibration
            Calibration errors, reliability curves with intervals, log loss and Brier score beside those of a
            constant guess; ``str`` shows them, ``to_dict`` gives JSON.

        Examples
        --------
        >>> import mcrank
        >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
        >>> ranker = mcrank.McRank(n_estimators=20, num_leaves=6).fit(train, valid=valid)
        >>> found = ranker.calibration(test)
        >>> found.log_loss < found.constant_log_loss, found.top.error < 0.1
        (True, True)
        """
        from mcrank.metrics.calibration import calibration

        self._check_fitted()
        where = f"{type(self).__name__}.calibration"
        wanted = self.feature_names_ if self._named else None
        data = as_dataset(X, Given(y, qid), where, wanted=wanted, one_query=True, texts=self.categories_)
        return calibration(self.predict_proba(data), self.grades_, data.to_caller(data.y))
