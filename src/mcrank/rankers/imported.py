"""Models that other libraries trained: a forest or a linear map with its head, which predicts like any
ranker's, and cannot be trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

import mcrank
from mcrank.arrays import Arrays, FloatArray
from mcrank.data.categories import Categories
from mcrank.data.checks import check_names
from mcrank.data.dataset import Dataset
from mcrank.data.scan import Scan
from mcrank.errors import ModelFileError, OptionError
from mcrank.options import fitted
from mcrank.rankers.base import Card
from mcrank.rankers.graded import GradedRanker
from mcrank.scorers.base import Scorer
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import checked_sets
from mcrank.scorers.heads import Head, Relevance
from mcrank.scorers.linear import Linear


class ImportedRanker(GradedRanker):
    """A model of LightGBM, XGBoost, CatBoost, scikit-learn or RankLib, as `mcrank.from_lightgbm` and its
    sisters make it.

    It predicts, is evaluated, compared, exported and saved like any other ranker. Models of classes have
    `predict_proba`, `grades_` and the argument ``relevance`` of `predict`; others have not.

    Attributes
    ----------
    source_ : dict
        Where it comes from: library, format, objective and what else the file said.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.ImportedRanker().fit([[1.0]], [1], qid=[1])
    Traceback (most recent call last):
    mcrank.errors.OptionError: ImportedRanker cannot be trained: it holds what another library trained. \
Train with that library and import again, or train a ranker of mcrank.
    """

    name: ClassVar[str] = "imported"
    card: ClassVar[Card] = Card("imported", "that of the library it comes from", "trees or linear", False)

    scorer_: Forest | Linear = fitted()

    @classmethod
    def of(
        cls,
        scorer: Forest | Linear,
        head: Head,
        source: Mapping[str, Any],
        names: tuple[str, ...] | None = None,
        rounds: int = 0,
        categories: Categories = MappingProxyType({}),
    ) -> Self:
        """Return the fitted ranker of a scorer and a head; without ``names`` features go by position.

        ``categories`` are names by feature; features that are split by sets without being there hold codes.
        """
        ranker = cls()
        ranker.scorer_, ranker.head_ = scorer, head
        ranker._take_names(check_names(names, scorer.n_features), names is not None, categories)
        ranker.n_rounds_ = ranker.best_round_ = rounds
        ranker.history_ = {}
        ranker.provenance_ = {"source": dict(source), "versions": {"mcrank": mcrank.__version__}}
        ranker.options_ = cls._as_trained(ranker._training_options())
        return ranker

    @property
    def source_(self) -> dict[str, Any]:
        """Where it comes from."""
        source: dict[str, Any] = self.provenance_.get("source", {})
        return source

    def fit(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise `OptionError`: what another library trained cannot be trained here."""
        raise OptionError(
            "ImportedRanker cannot be trained: it holds what another library trained. Train with that "
            "library and import again, or train a ranker of mcrank."
        )

    def _fit(self, *args: Any) -> NoReturn:
        self.fit()

    def predict(
        self,
        X: Dataset | Scan | npt.ArrayLike,
        relevance: Relevance = "grade",
        *,
        rounds: int | None = None,
        cluster: Any = None,
    ) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first.

        Parameters
        ----------
        X : Dataset, Scan or array-like of shape (rows, features)
            What to score.
        relevance : {"grade", "gain"} or sequence of numbers
            What each grade is worth, for models of classes; see `mcrank.McRank.predict`.
        rounds : int, optional
            Not for imported models, which need not know their rounds.
        cluster : distributed.Client, str, int or Cluster, optional
            Score on a Dask cluster, as in `Ranker.predict`.
        """
        self._check_fitted()
        if cluster is not None or self.head_.values is not None:
            return super().predict(X, relevance, rounds=rounds, cluster=cluster)
        if isinstance(relevance, str) and relevance == "grade":
            return self.head_.rank(self._raw(X, "predict", rounds))
        raise OptionError(
            f"relevance of ImportedRanker.predict is for models of classes; this one "
            f"({self.source_.get('objective', 'without an objective')}) has one score, got {relevance!r}."
        )

    def predict_raw(self, X: Dataset | Scan | npt.ArrayLike) -> FloatArray:
        """Return the raw outputs (rows x outputs): what the original calls raw scores or margins."""
        return np.ascontiguousarray(self._raw(X, "predict_raw").T)

    @property
    def predict_proba(self) -> Callable[..., FloatArray]:
        """Return the probability of each grade (rows x grades); only models of classes have it."""
        if self.__sklearn_is_fitted__() and self.head_.values is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'predict_proba'")
        return super().predict_proba

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        return {"head": self.head_.kind}, {}

    def _head_of(self, meta: dict[str, Any]) -> Head:
        grades = meta.get("grades")
        kind = meta["head"]
        if not isinstance(kind, str):
            raise ModelFileError("head must be a text.")
        return Head(kind, None if grades is None else np.array(grades, dtype=np.float64))

    def _scorer_of(self, arrays: Arrays) -> Scorer:
        if "tree_offsets" in arrays:
            forest = Forest.from_arrays(arrays)
            return checked_sets(forest, self.categories_, self.feature_names_) if self.categories_ else forest
        return Linear.from_arrays(arrays, "none", self.n_features_in_)
