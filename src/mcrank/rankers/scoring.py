"""The part of a fitted ranker that scores: here or on a cluster, for a prediction or for an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FeatureArray, FloatArray
from mcrank.data.alignment import aligned, check_count
from mcrank.data.categories import recoded
from mcrank.data.dataset import Dataset
from mcrank.data.grades import Grades
from mcrank.data.scan import Scan
from mcrank.data.spill import spilled
from mcrank.data.tables import as_features
from mcrank.errors import MeasureError, OptionError
from mcrank.rankers.cross_validation import query_ids_under_way
from mcrank.rankers.explainable import Explainable
from mcrank.rankers.inputs import Given, as_dataset
from mcrank.rankers.stored import measure_of
from mcrank.scorers.base import Scorer
from mcrank.scorers.forest.forest import Forest


class Scoring(Explainable):
    """What a fitted ranker makes of rows, over scorer and head, once for all rankers."""

    def predict(
        self, X: Dataset | Scan | npt.ArrayLike, *, rounds: int | None = None, cluster: Any = None
    ) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first.

        Parameters
        ----------
        X : Dataset, Scan or array-like of shape (rows, features)
            What to score; a `Scan` is read and scored in batches.
        rounds : int, optional
            Rankers of trees only: score with the first so many of the rounds kept.
        cluster : distributed.Client, str, int or Cluster, optional
            Score on a Dask cluster; ``X`` may then also be paths or a Dask dataframe or array.
        """
        if cluster is not None:
            return self._predict_on(cluster, "predict", X, rounds=rounds)
        raw = self._raw(X, "predict", rounds)  # which says so where there is no head yet
        return self.head_.rank(raw)

    def _raw(self, X: Dataset | Scan | npt.ArrayLike, what: str, rounds: int | None = None) -> FloatArray:
        """Raw outputs (outputs x rows) in the caller's row order."""
        n_jobs = self._threads()
        if isinstance(X, Scan):
            self._check_fitted()
            X = X.choosing(self.feature_names_) if self._named else X
            if not self.scorer_.by_query:
                batches = X.to_score(self.n_features_in_, n_jobs)
                return np.concatenate([self._raw(data, what, rounds) for data in batches], axis=1)
            X = spilled(X, n_jobs, purpose="score")  # rows of a query may lie in several batches
        elif (found := self._raw_at_once(X, n_jobs, rounds)) is not None:
            return found
        features = self._features(X, what)
        scorer = self.scorer_ if rounds is None else self._first_rounds(rounds, what)
        if not isinstance(X, Dataset):
            return scorer.raw(features, n_jobs)
        return X.to_caller(scorer.raw(features, n_jobs, X.offsets).T).T

    def _raw_at_once(self, X: Any, n_jobs: int, rounds: int | None) -> FloatArray | None:
        """Raw outputs of a matrix that a forest can read as it is; None where there is more to do or to say.

        To look for infinite numbers would take a fifth as long as to score: forests see them on the way.
        """
        if not (type(X) is np.ndarray and X.dtype == np.float32 and X.ndim == 2 and X.flags.c_contiguous):
            return None
        self._check_fitted()
        scorer = self.scorer_
        if rounds is not None or not isinstance(scorer, Forest) or self.categories_:
            return None
        if X.shape[0] == 0 or X.shape[1] != self.n_features_in_:
            return None
        return scorer.raw_if_finite(X, n_jobs)

    def _first_rounds(self, rounds: int, what: str) -> Scorer:
        """Return the scorer as it was after some rounds, where it is one that grows."""
        raise OptionError(
            f"{type(self).__name__}.{what} got rounds, which only rankers of boosted trees keep apart."
        )

    def _features(self, X: Dataset | npt.ArrayLike, what: str) -> FeatureArray:
        """Feature matrix of what a caller wants scored, in grouped order for a `Dataset`."""
        self._check_fitted()
        where = f"X of {(name := type(self).__name__)}.{what}"
        if isinstance(X, Dataset):
            return aligned(X, self.feature_names_, self._named, self.categories_, where, name).X
        found = as_features(X, where, self.feature_names_ if self._named else None, texts=self.categories_)
        check_count(found.values.shape[1], self.n_features_in_, where, name)
        return recoded(found.values, found.categories, self.categories_, self.feature_names_, where, name)

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature: in the gain of all splits of a forest, in the absolute weights of a linear
        scorer. Nets and blends have no such attribute.
        """
        self._check_fitted()
        shares = self.scorer_.importances()
        if shares is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'feature_importances_'")
        return shares

    def _predict_on(self, cluster: Any, method: str, X: Any, **options: Any) -> FloatArray:
        """Have workers call a method of this ranker for parts of the rows."""
        from mcrank.scale.scoring import scores_on

        self._check_fitted()
        return scores_on(cluster, self, method, X, options)

    def graded_scores(
        self, X: Dataset | Scan, *, cluster: Any = None, documents: bool = False
    ) -> tuple[FloatArray, Dataset | Grades]:
        """Return the score of every row of data with grades, and the grades: what `mcrank.evaluate` needs.

        Parameters
        ----------
        X : Dataset or Scan
            What to score.
        cluster : distributed.Client, str, int or Cluster, optional
            Score on a Dask cluster, whose workers read files themselves.
        documents : bool
            Read the ids of documents of a Scan too, for measures that go by them; not on a cluster.

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
        X = X.to_measure() if isinstance(X, Scan) else X
        if cluster is not None and isinstance(X, Scan):
            self._check_fitted()
            return graded_scores_on(cluster, self, X)
        grades = X.grades(self._threads(), documents=documents) if isinstance(X, Scan) else X
        return self.predict(X, cluster=cluster), grades

    def score(
        self,
        X: Dataset | Scan | npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        qid: npt.ArrayLike | None = None,
        *,
        query_weight: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> float:
        """Return the mean of the ranker's own measure (options ``measure`` and ``dialect``) on ``X``.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            A `Dataset`, or a matrix with ``y`` and ``qid`` beside it.
        y, qid : array-like of shape (rows,)
            Grades and query ids, when ``X`` is a matrix.
        query_weight : array-like, optional
            Weights of the queries in the mean, when ``X`` is a matrix; see `Dataset`.
        sample_weight : array-like of shape (rows,), optional
            Taken because scikit-learn passes it on; as in a `Dataset`, weights of rows act in a loss, and
            have no part in a measure.
        group, groups : array-like, optional
            Instead of ``qid``, as in `fit`.
        """
        self._check_fitted()
        options = self.checked_options()
        measure, where = measure_of(options), f"{type(self).__name__}.score"
        given = Given(y, qid, None, query_weight, sample_weight, group, groups)
        if not isinstance(X, (Dataset, Scan)) and not given.names_queries:
            given = given._replace(qid=query_ids_under_way(y))
        asked = {"wanted": self.feature_names_ if self._named else None, "one_query": options["one_query"]}
        data = as_dataset(X, given, where, **asked, texts=self.categories_)
        value = float(measure.on(data).mean(data.to_grouped(self.predict(data))))
        if np.isnan(value):
            raise MeasureError(
                f"{measure.name} of {where} has no value on this data (no query counts); choose another "
                "measure or other data."
            )
        return value
