"""What every ranker is: declared options, `fit`, `predict`, `score`, and a state that a model file can
hold.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from mcrank.cores import available_cores
from mcrank.data.alignment import aligned, check_count, names_look_made_up
from mcrank.data.checks import check_names
from mcrank.data.dataset import Dataset
from mcrank.data.tables import as_features
from mcrank.errors import DataError, MeasureError, OptionError
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.tools import find_dialect
from mcrank.options import Optioned, fitted, option
from mcrank.rankers.cross_validation import query_ids_under_way
from mcrank.rankers.estimator import Estimator
from mcrank.rankers.inputs import Given, as_dataset, held_out
from mcrank.rankers.progress import Lines
from mcrank.rankers.provenance import provenance

FloatArray = npt.NDArray[np.float64]


class Card(NamedTuple):
    """What kind of ranker a class is, as `mcrank rankers` lists it.

    Attributes
    ----------
    family : str
        pointwise, pairwise, listwise, baseline or mixture.
    loss : str
        What it makes small, in a few words.
    scorer : str
        What gives a row its score: trees, stumps, linear, net, one feature or rankers.
    trains_on_measure : bool
        Whether the measure enters training itself, not only the choice of a round.
    """

    family: str
    loss: str
    scorer: str
    trains_on_measure: bool


def stopping_option(default: int | None = None, rounds: str = "rounds") -> Any:
    """Declare ``early_stopping_rounds``, which rankers with rounds (nets call them epochs) share."""
    return option(
        default=default,
        low=1,
        high=2**31 - 1,
        help=f"stop after so many {rounds} without a better validation measure",
    )


class Ranker(Optioned, Estimator, ABC):
    """Base of all rankers, following scikit-learn's conventions.

    A subclass declares its options, sets `name` (its word on the command line and in model files) and `card`,
    and writes ``_fit``, ``predict``, ``state`` and ``from_state``.

    Attributes
    ----------
    best_round_ : int
        Rounds kept: the best on the validation data, or all.
    n_rounds_ : int
        Rounds trained.
    history_ : dict of list
        Value of each measure on the validation data after each round.
    feature_names_ : tuple of str
        One name per feature, made up (f1, f2, ...) where none were given.
    feature_names_in_ : ndarray of str
        The names that were given, as in scikit-learn; only there if they were.
    """

    name: ClassVar[str]
    card: ClassVar[Card]

    measure: str | Measure = option(
        default="ndcg@10",
        help="measure trained towards (where a ranker can) and watched on validation data, such as ndcg@10, "
        "map or ndcg@10[yahoo]",
    )
    dialect: str | Dialect | None = option(
        default=None, help="dialect of the measure, such as yahoo or letor4; None for the measure's own"
    )
    best_round_: int = fitted()
    n_rounds_: int = fitted()
    history_: dict[str, list[float]] = fitted()
    feature_names_: tuple[str, ...] = fitted()
    feature_names_in_: npt.NDArray[np.object_] = fitted()
    n_features_in_: int = fitted()
    provenance_: dict[str, Any] = fitted()
    options_: dict[str, Any] = fitted()

    n_jobs: int | None = option(
        default=None,
        low=1,
        high=1024,
        scope="run",
        help="threads; None for every core; never changes the model",
    )
    verbose: int | bool = option(
        default=0,
        low=0,
        scope="python",
        help="write a line to standard error every so many rounds; True is 1, 0 is silent",
    )
    one_query: bool = option(
        default=False,
        scope="python",
        help="take rows without query ids as one single query, where fit and score would refuse them",
    )

    def fit(
        self,
        X: Dataset | npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        valid: Dataset | tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
        weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        callback: Callable[[Any], Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        verbose: int | bool | None = None,
    ) -> Self:
        """Train on rows grouped by query.

        Parameters
        ----------
        X : Dataset or array-like of shape (rows, features)
            A `Dataset`, or a matrix with ``y`` and ``qid`` beside it.
        y, qid : array-like of shape (rows,)
            Grades and query ids, when ``X`` is a matrix.
        valid : Dataset or (X, y, qid), optional
            Held-out data: the measure is taken on it each round and the best round is kept.
        weight, query_weight : array-like, optional
            Row and query weights, when ``X`` is a matrix; see `Dataset`.
        callback : callable, optional
            Called after each round with a `RoundEvent`; a true answer ends training.
        sample_weight : array-like of shape (rows,), optional
            scikit-learn's word for ``weight``.
        group : array-like of shape (queries,), optional
            Instead of ``qid``, as in LightGBM: rows of each query, queries lying one behind another.
        groups : array-like of shape (rows,), optional
            scikit-learn's word for ``qid``.
        verbose : int or bool, optional
            For this call instead of the option ``verbose``.

        Returns
        -------
        Ranker
            Itself, fitted.
        """
        options = self.checked_options()
        options["measure"] = measure_of(options)
        options["n_jobs"] = options["n_jobs"] or available_cores()
        name = type(self).__name__
        one_query = options["one_query"]
        given = Given(y, qid, weight, query_weight, sample_weight, group, groups)
        data = as_dataset(X, given, name, one_query=one_query)
        if callback is not None and not callable(callback):
            raise OptionError(f"callback of {name}.fit must be callable, got {callback!r}.")
        watched = None if valid is None else held_out(valid, data, f"valid of {name}", one_query)
        if verbose is not None:
            options["verbose"] = self.declared_options["verbose"].check(verbose, f"{name}.fit")
        if options["verbose"]:
            callback = Lines(name, options["verbose"], callback)
        # A twin is trained and taken over when it is done, so that a failed fit leaves this ranker as it was.
        twin = type(self)(**self.get_params())
        twin._fit(data, watched, options, callback)
        twin._take_names(data.feature_names, data.named)
        twin.provenance_ = provenance(data)
        twin.options_ = self._as_trained(options)
        for name in [n for n in vars(self) if n.endswith("_")]:
            delattr(self, name)
        vars(self).update(vars(twin))
        return self

    def _take_names(self, names: tuple[str, ...], named: bool) -> None:
        self.feature_names_ = names
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)

    @property
    def _named(self) -> bool:
        """Whether the names of the features were given, so that columns go by them."""
        return hasattr(self, "feature_names_in_")

    @abstractmethod
    def _fit(
        self,
        data: Dataset,
        valid: Dataset | None,
        options: dict[str, Any],
        callback: Callable[[Any], Any] | None,
    ) -> None:
        """Train; ``options`` are checked, with the measure parsed and ``n_jobs`` a number."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return everything a model file needs: JSON values and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Return the fitted ranker that `state` described, checked."""

    @abstractmethod
    def predict(self, X: Dataset | npt.ArrayLike) -> FloatArray:
        """Return one score per row, in the caller's row order; within a query, higher ranks first."""

    def score(
        self,
        X: Dataset | npt.ArrayLike,
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
        if not isinstance(X, Dataset) and not given.names_queries:
            given = given._replace(qid=query_ids_under_way(y))
        wanted = self.feature_names_ if self._named else None
        data = as_dataset(X, given, where, wanted=wanted, one_query=options["one_query"])
        value = float(measure.on(data).mean(data.to_grouped(self.predict(data))))
        if np.isnan(value):
            raise MeasureError(
                f"{measure.name} of {where} has no value on this data (no query counts); choose another "
                "measure or other data."
            )
        return value

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file; see `mcrank.load`."""
        from mcrank.models.file import save

        self._check_fitted()
        save(self, path)

    def _features(self, X: Dataset | npt.ArrayLike, what: str) -> npt.NDArray[np.float32]:
        """Feature matrix of what a caller wants scored, in grouped order for a `Dataset`."""
        self._check_fitted()
        name = type(self).__name__
        where = f"X of {name}.{what}"
        if isinstance(X, Dataset):
            return aligned(X, self.feature_names_, self._named, where, name).X
        features = as_features(X, where, self.feature_names_ if self._named else None).values
        check_count(features.shape[1], self.n_features_in_, where, name)
        return features

    def _common_state(self) -> dict[str, Any]:
        """JSON part that every ranker has."""
        names = self.feature_names_
        # Whether names were given is written only where they do not tell by themselves, so that models say
        # the same bytes as they did before it could be written.
        told = {} if self._named != names_look_made_up(names) else {"named": self._named}
        return told | {
            "feature_names": list(names),
            "options": self.options_,
            "provenance": self.provenance_,
            "training": {
                "best_round": self.best_round_,
                "history": self.history_,
                "rounds": self.n_rounds_,
            },
        }

    @classmethod
    def _from_common_state(cls, meta: dict[str, Any]) -> Self:
        ranker = cls(**meta["options"])
        options = ranker.checked_options()
        options["measure"] = measure_of(options)
        ranker.options_ = cls._as_trained(options)
        names = meta["feature_names"]
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise DataError("feature_names must be a list of texts.")
        named = meta.get("named", not names_look_made_up(names))
        if not isinstance(named, bool):
            raise DataError("named must be true or false.")
        ranker._take_names(check_names(names, len(names)), named)
        ranker.provenance_ = dict(meta["provenance"])
        if not all(isinstance(part, dict) for part in ranker.provenance_.values()):
            raise DataError("provenance must be an object of objects.")
        training = meta["training"]
        ranker.n_rounds_, ranker.best_round_ = int(training["rounds"]), int(training["best_round"])
        ranker.history_ = _history(training["history"])
        return ranker

    @classmethod
    def _as_trained(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Options as a model file keeps them: those of the model, not those of the run."""
        kept = {n: value for n, value in options.items() if cls.declared_options[n].scope == "model"}
        dialect = options["dialect"]
        return kept | {
            "measure": options["measure"].name,
            "dialect": None if dialect is None else find_dialect(dialect).name,
        }


def _history(values: dict[str, Any]) -> dict[str, list[float]]:
    """Return a history as a file has it: a list of finite numbers under each name."""
    for name, rounds in values.items():
        if not isinstance(rounds, list) or not all(type(v) is float and math.isfinite(v) for v in rounds):
            raise DataError(f"the history of {name!r} must be a list of finite numbers.")
    return dict(values)


def pairs_option(default: int, what: str) -> Any:
    """Declare ``max_pairs``, the most pairs of one query a ranker takes on."""
    return option(
        default=default,
        low=1,
        high=2**62,
        scope="run",
        help=f"most {what} of one query; more are refused before training starts; never changes the model",
    )


def measure_of(options: dict[str, Any]) -> Measure:
    """Return the measure of a ranker's options, in the dialect they ask for."""
    measure = parse_measure(options["measure"])
    return measure if options["dialect"] is None else replace(measure, dialect=options["dialect"])
