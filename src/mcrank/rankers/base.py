"""What every ranker is: declared options, `fit`, `predict`, `score`, and a state that a model file can
hold.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

import mcrank
from mcrank.cores import available_cores
from mcrank.data.checks import check_names
from mcrank.data.dataset import Dataset, check_features
from mcrank.errors import DataError, NotFittedError, OptionError
from mcrank.metrics.dialects import Dialect, find_dialect
from mcrank.metrics.measure import NDCG, Measure, parse_measure
from mcrank.options import Optioned, fitted, option

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


class Ranker(Optioned, ABC):
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
    n_features_in_: int = fitted()
    provenance_: dict[str, Any] = fitted()
    options_: dict[str, Any] = fitted()

    n_jobs: int | None = option(
        default=None, low=1, high=1024, help="threads; None for every core; never changes the model"
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

        Returns
        -------
        Ranker
            Itself, fitted.
        """
        options = self.checked_options()
        options["measure"] = measure_of(options)
        options["n_jobs"] = options["n_jobs"] or available_cores()
        data = as_dataset(X, y, qid, weight, query_weight, type(self).__name__)
        if callback is not None and not callable(callback):
            raise OptionError(f"callback of {type(self).__name__}.fit must be callable, got {callback!r}.")
        held_out = None if valid is None else _held_out(valid, f"valid of {type(self).__name__}")
        if held_out is not None and held_out.n_features != data.n_features:
            raise DataError(
                f"valid of {type(self).__name__} has {held_out.n_features} features, the training data "
                f"{data.n_features}; give both the same columns."
            )
        # A twin is trained and taken over when it is done, so that a failed fit leaves this ranker as it was.
        twin = type(self)(**self.get_params())
        twin._fit(data, held_out, options, callback)
        twin.feature_names_ = data.feature_names
        twin.n_features_in_ = data.n_features
        twin.provenance_ = provenance(data)
        twin.options_ = _as_trained(options)
        for name in [n for n in vars(self) if n.endswith("_")]:
            delattr(self, name)
        vars(self).update(vars(twin))
        return self

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
        self, X: Dataset | npt.ArrayLike, y: npt.ArrayLike | None = None, qid: npt.ArrayLike | None = None
    ) -> float:
        """Return the mean NDCG@10 of the ranking on ``X``."""
        self._check_fitted()
        data = as_dataset(X, y, qid, None, None, f"{type(self).__name__}.score")
        return float(NDCG(k=10).on(data).mean(data.to_grouped(self.predict(data))))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file; see `mcrank.load`."""
        from mcrank.models.file import save

        self._check_fitted()
        save(self, path)

    def _features(self, X: Dataset | npt.ArrayLike, what: str) -> npt.NDArray[np.float32]:
        """Feature matrix of what a caller wants scored, in grouped order for a `Dataset`."""
        self._check_fitted()
        where = f"X of {type(self).__name__}.{what}"
        features = X.X if isinstance(X, Dataset) else check_features(X, where)
        if features.shape[1] != self.n_features_in_:
            raise DataError(
                f"{where} has {features.shape[1]} features; this ranker was trained on {self.n_features_in_}."
            )
        return features

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True),
        )

    def _common_state(self) -> dict[str, Any]:
        """JSON part that every ranker has."""
        return {
            "feature_names": list(self.feature_names_),
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
        ranker.options_ = _as_trained(options)
        names = meta["feature_names"]
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise DataError("feature_names must be a list of texts.")
        ranker.feature_names_ = check_names(names, len(names))
        ranker.n_features_in_ = len(names)
        ranker.provenance_ = dict(meta["provenance"])
        if not all(isinstance(part, dict) for part in ranker.provenance_.values()):
            raise DataError("provenance must be an object of objects.")
        training = meta["training"]
        ranker.n_rounds_, ranker.best_round_ = int(training["rounds"]), int(training["best_round"])
        ranker.history_ = _history(training["history"])
        return ranker


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
        help=f"most {what} of one query; more are refused before training starts; never changes the model",
    )


def _as_trained(options: dict[str, Any]) -> dict[str, Any]:
    """Options as a model file keeps them; threads and limits are a matter of the machine, not the model."""
    kept = {name: value for name, value in options.items() if name not in ("n_jobs", "max_pairs")}
    dialect = options["dialect"]
    return kept | {
        "measure": options["measure"].name,
        "dialect": None if dialect is None else find_dialect(dialect).name,
    }


def measure_of(options: dict[str, Any]) -> Measure:
    """Return the measure of a ranker's options, in the dialect they ask for."""
    measure = parse_measure(options["measure"])
    return measure if options["dialect"] is None else replace(measure, dialect=options["dialect"])


def as_dataset(
    X: Any, y: Any, qid: Any, weight: Any = None, query_weight: Any = None, where: str = "fit"
) -> Dataset:
    """Return ``X`` itself when it is a `Dataset`, or one made of the parts."""
    if isinstance(X, Dataset):
        given = {"y": y, "qid": qid, "weight": weight, "query_weight": query_weight}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise OptionError(f"{where} got a Dataset and also {', '.join(extra)}; a Dataset has its own.")
        return X
    if y is None or qid is None:
        raise OptionError(f"{where} needs y and qid beside a matrix, or a Dataset.")
    return Dataset(X, y, qid, weight, query_weight)


def _held_out(valid: Any, where: str) -> Dataset:
    if isinstance(valid, Dataset):
        return valid
    if not isinstance(valid, (tuple, list)) or len(valid) != 3:
        found = (
            f"{type(valid).__name__} of {len(valid)}" if hasattr(valid, "__len__") else type(valid).__name__
        )
        raise OptionError(f"{where} must be a Dataset or a tuple (X, y, qid), got a {found}.")
    return as_dataset(valid[0], valid[1], valid[2], where=where)


def provenance(data: Dataset) -> dict[str, Any]:
    """Where a model comes from: versions and a fingerprint of its training data; no times, no places."""
    import numba

    return {
        "data": {
            "features": data.n_features,
            "fingerprint": fingerprint(data),
            "queries": data.n_queries,
            "rows": data.n_rows,
        },
        "versions": {
            "mcrank": mcrank.__version__,
            "numba": numba.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def fingerprint(data: Dataset) -> str:
    """Digest of a data set that does not depend on the order of its queries, nor on the files they came in.

    Each query has a digest of its id, rows, grades and weights, in the order of its rows; the sum of all says
    which queries there are.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.rankers.base import fingerprint
    >>> one = Dataset([[1.0], [2.0], [3.0]], y=[0, 1, 2], qid=["a", "b", "b"])
    >>> fingerprint(one) == fingerprint(one.select([1, 0])), fingerprint(one) == fingerprint(one.select([0]))
    (True, False)
    """
    total = 0
    head = str((data.n_features, data.weight is None, data.query_weight is None)).encode()
    bounds = data.offsets.tolist()
    for q, name in enumerate(data.qids.tolist()):
        rows = slice(bounds[q], bounds[q + 1])
        digest = hashlib.blake2b(f"{name}\0{rows.stop - rows.start}\0".encode(), digest_size=16)
        digest.update(head)
        digest.update(data.X[rows].data)
        digest.update(data.y[rows].data)
        if data.weight is not None:
            digest.update(data.weight[rows].data)
        if data.query_weight is not None:
            digest.update(data.query_weight[q : q + 1].data)
        total += int.from_bytes(digest.digest(), "little")
    return f"{total % 2**128:032x}"
