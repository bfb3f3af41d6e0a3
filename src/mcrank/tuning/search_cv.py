"""Tuning as scikit-learn has it: an estimator that searches when it is fitted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if

from mcrank.arrays import FloatArray
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.errors import OptionError
from mcrank.rankers.base import Ranker
from mcrank.rankers.estimator import FIT_WORDS, SCORE_WORDS, not_fitted
from mcrank.rankers.inputs import Given, as_dataset
from mcrank.tuning.tune import tune


class TuneSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """`mcrank.tune` as an estimator, with the words of scikit-learn's searches.

    Rankers are estimators, so `GridSearchCV` and the like take them as they are; this search also stops bad
    trials after few rounds, chooses the round, bins once and knows the ranges.

    Parameters
    ----------
    estimator : Ranker
        Not fitted; options it has that are not the defaults stay as they are.
    param_distributions : mapping, optional
        Ranges instead of the declared ones, as ``ranges`` of `mcrank.tune`.
    n_iter : int, optional
        Trials; None for as many as ``minutes`` allow.
    minutes : float, optional
        Time budget of `fit`.
    cv : int
        Folds, by query.
    random_state : int
        Seed of the cut and of the search.
    n_jobs : int, optional
        Threads; every core by default.
    out : path, optional
        Folder of the study: a search that was killed goes on from there.

    Attributes
    ----------
    best_estimator_ : Ranker
        Fitted on all of the data with the options found.
    best_params_ : dict
        Those options, the number of rounds included.
    best_score_ : float
        Out-of-fold measure of the best trial: chosen for being high, so too high by that choice.
    best_index_ : int
        Number of that trial.
    cv_results_ : dict of array
        ``params``, ``mean_test_score``, ``rank_test_score``, ``rounds`` and ``state`` of every trial.
    tuning_ : mcrank.tuning.result.Tuning
        All that was found.
    classes_, n_features_in_, feature_names_in_
        Those of the ranker found, where it has them.

    Examples
    --------
    >>> import mcrank
    >>> search = mcrank.TuneSearchCV(mcrank.LambdaMART(n_estimators=50), n_iter=10, cv=3)
    >>> search.get_params()["n_iter"]
    10
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = FIT_WORDS
    __metadata_request__score: ClassVar[dict[str, bool]] = SCORE_WORDS

    def __init__(
        self,
        estimator: Ranker,
        param_distributions: Mapping[str, Any] | None = None,
        *,
        n_iter: int | None = None,
        minutes: float | None = None,
        cv: int = 4,
        random_state: int = 0,
        n_jobs: int | None = None,
        out: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.minutes = minutes
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.out = out

    def fit(
        self,
        X: Dataset | Scan | npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        callback: Callable[[Any], Any] | None = None,
    ) -> Self:
        """Search, and fit the ranker with the options found on all of the data; words as in `Ranker.fit`."""
        given = Given(y, qid, weight, query_weight, sample_weight, group, groups)
        if not isinstance(self.estimator, Ranker):
            raise OptionError(
                f"estimator of TuneSearchCV must be a ranker, such as LambdaMART(), got {self.estimator!r}."
            )
        own = self.estimator.get_params()
        data = as_dataset(
            X,
            given,
            "TuneSearchCV.fit",
            one_query=own.get("one_query", False),
            categorical=own.get("categorical"),
        )
        ranker = tune(
            data,
            self.estimator,
            trials=self.n_iter,
            minutes=self.minutes,
            folds=self.cv,
            holdout=0.0,
            ranges=self.param_distributions,
            out=self.out,
            seed=self.random_state,
            n_jobs=self.n_jobs,
            callback=callback,
        )
        found = ranker.tuning_
        self.best_estimator_, self.tuning_, self.best_index_ = ranker, found, found.best
        self.best_params_ = {
            name: value
            for name, value in found.options.items()
            if name in found.ranges or name in ("n_estimators", "epochs")
        }
        self.best_score_ = found.trials[found.best].value
        # Trials that failed or were stopped have the value they had reached, or none, and rank last.
        values = np.array([np.nan if t.value is None else t.value for t in found.trials], dtype=np.float64)
        ended = np.array([t.state == "complete" for t in found.trials])
        order = np.lexsort((-np.nan_to_num(values, nan=-np.inf), ~ended))
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        self.cv_results_ = {
            "params": [dict(t.options) for t in found.trials],
            "mean_test_score": values,
            "rank_test_score": ranks,
            "rounds": np.array([t.rounds for t in found.trials]),
            "state": np.array([t.state for t in found.trials]),
        }
        return self

    @property
    def n_features_in_(self) -> int:
        """Features of the data."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> Any:
        """Names of the features that were given, if they were."""
        return self._fitted().feature_names_in_

    @property
    def classes_(self) -> Any:
        """Grades, ascending, of a ranker with probabilities."""
        return self._fitted().classes_  # type: ignore[attr-defined]

    def _fitted(self) -> Ranker:
        if not hasattr(self, "best_estimator_"):
            raise not_fitted("This TuneSearchCV is not fitted yet; call fit first.")
        ranker: Ranker = self.best_estimator_
        return ranker

    def predict(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return one score per row, by the ranker found."""
        return self._fitted().predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return the probability of each grade, by the ranker found, if it is one with probabilities."""
        found: FloatArray = self._fitted().predict_proba(X)  # type: ignore[attr-defined]
        return found

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
        """Return the mean of the ranker's own measure on ``X``; words as in `Ranker.score`."""
        return self._fitted().score(
            X,
            y,
            qid,
            query_weight=query_weight,
            sample_weight=sample_weight,
            group=group,
            groups=groups,
        )
