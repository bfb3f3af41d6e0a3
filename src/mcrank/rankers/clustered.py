"""The part of a fitted ranker that scores on a cluster, and data with grades for an evaluation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.data.scan import Scan
from mcrank.errors import OptionError
from mcrank.rankers.explainable import Explainable


class Clustered(Explainable):
    """What the workers of a cluster do for a fitted ranker."""

    @abstractmethod
    def predict(
        self, X: Dataset | Scan | npt.ArrayLike, *, rounds: int | None = None, cluster: Any = None
    ) -> FloatArray:
        """Return one score per row."""

    def _predict_on(self, cluster: Any, method: str, X: Any, **options: Any) -> FloatArray:
        """Have workers call a method of this ranker for parts of the rows."""
        from mcrank.scale.scoring import scores_on

        self._check_fitted()
        return scores_on(cluster, self, method, X, options)

    def graded_scores(self, X: Dataset | Scan, *, cluster: Any = None) -> tuple[FloatArray, Dataset | Grades]:
        """Return the score of every row of data with grades, and the grades: what `mcrank.evaluate` needs.

        Parameters
        ----------
        X : Dataset or Scan
            What to score.
        cluster : distributed.Client, str, int or Cluster, optional
            Score on a Dask cluster, whose workers read files themselves.

        Returns
        -------
        ndarray, Dataset or Grades
            Scores in the caller's row order, and the grades.

        Examples
        --------
        >>> import mcrank
        >>> train, valid, test = mcrank.make_artificial(n_train=20, n_valid=1, n_test=5, seed=1)
        >>> model = mcrank.RegressionRanker(n_estimators=3).fit(train)
        >>> mcrank.evaluate(model, test).mean == mcrank.evaluate(*model.graded_scores(test)).mean
        True
        """
        from mcrank.scale.scoring import graded_scores_on

        if not isinstance(X, (Dataset, Scan)):
            raise OptionError(
                f"{type(self).__name__} is evaluated on a Dataset or a Scan, got {type(X).__name__}; of "
                "anything else take predict, and evaluate its scores."
            )
        if cluster is not None and isinstance(X, Scan):
            self._check_fitted()
            return graded_scores_on(cluster, self, X)
        return self.predict(X, cluster=cluster), X.grades(self._threads()) if isinstance(X, Scan) else X
