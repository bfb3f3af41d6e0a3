"""What `fit` may begin with: the trees of a fitted ranker, or scores of the rows; and leaves refitted."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from mcrank.arrays import FloatArray
from mcrank.boosting.limits import LimitOptions
from mcrank.boosting.refit import refit_leaves
from mcrank.boosting.start import Start
from mcrank.cores import available_cores
from mcrank.data.alignment import aligned, learned
from mcrank.data.categories import Categories, checked_names
from mcrank.data.checks import check_numbers
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.losses.base import Loss
from mcrank.options import checked
from mcrank.rankers.average import average_forest, fold_of
from mcrank.rankers.inputs import Given, as_dataset
from mcrank.rankers.provenance import provenance
from mcrank.rankers.registry import from_file
from mcrank.rankers.stored import Stored
from mcrank.scorers.forest.forest import Forest
from mcrank.scorers.forest.sets import with_categories
from mcrank.threads import run_all
from mcrank.training.weights import relative_weight

if TYPE_CHECKING:
    from mcrank.rankers.trees import TreeRanker

R = TypeVar("R", bound="TreeRanker")
LARGEST = 1e100  # of an initial score: its square is still a number


def forest_of(model: Any, where: str) -> Stored:
    """Return the fitted ranker that ``model`` is, or whose file it names; its scorer must be a forest."""
    if isinstance(model, (str, os.PathLike)):
        model = from_file(model)
    if not isinstance(model, Stored):
        raise OptionError(f"{where} must be a fitted ranker or the path of a model file, got {model!r}.")
    model._check_fitted()
    if not isinstance(model.scorer_, Forest):
        raise OptionError(f"{where} must be a ranker of boosted trees, got a {type(model).__name__}.")
    return model


def learned_forest(model: Stored) -> Forest:
    """Return the trees of a model as boosting left them, before any correction."""
    found: Any = getattr(model, "learned_", model.scorer_)
    forest: Forest = found
    return forest


@dataclass(frozen=True, eq=False)
class Beginning:
    """What a call of `fit` begins with; ``owner`` is the class that is fitted, for messages.

    ``in_all`` says that ``n_estimators`` counts the rounds of the model too (``warm_start``).
    """

    owner: str
    model: Stored | None
    in_all: bool
    init_score: Any
    valid_init_score: Any
    part: tuple[int, int] | None = None  # of so many fits of a cross-fitting, which one begins

    def forest(self, categories: Categories) -> Forest | None:
        """Trees to go on from, with the codes of these categories: what was unknown to them goes the way of
        missing values.
        """
        if self.model is None:
            return None
        forest = learned_forest(self.model)
        if self.part is not None:
            forest = fold_of(forest, *self.part, self.model.best_round_)
        return with_categories(forest, self.model.categories_, categories)

    def check_folds(self, folds: Any) -> None:
        """Raise `OptionError` where a cross-fitting cannot begin with this."""
        if self.init_score is not None or self.valid_init_score is not None:
            raise OptionError(f"{self.owner}.fit got folds and init_score, which do not go together.")
        told = {} if self.model is None else self.model.provenance_.get("cross_fitting", {})
        if told.get("folds") != folds:
            raise OptionError(
                f"init_model of {self.owner}.fit with folds={folds} must be fitted with as many folds, got "
                f"{told.get('folds', 'none')}."
            )

    def align(self, data: Dataset) -> Dataset:
        """Return the training data with the columns of the model."""
        if self.model is None:
            return data
        names, named = self.model.feature_names_, self.model._named
        where, known = f"X of {self.owner}.fit", self.model.categories_
        data = aligned(data, names, named, None, where, "init_model")
        if not (known or data.categories):
            return data
        data = learned(data, list(known), f"init_model of {self.owner}.fit")
        both = {f: checked_names({*known[f], *data.categories[f]}, f"feature {names[f]!r}") for f in known}
        return aligned(data, names, named, both, where, "init_model")

    def rounds(self, asked: int) -> int:
        """Rounds in all, where so many were asked for."""
        there = 0 if self.model is None else self.model.best_round_
        if not self.in_all:
            return there + asked
        if asked < there:
            raise OptionError(
                f"n_estimators of {self.owner} must be at least {there}, the rounds it has, with "
                f"warm_start=True; got {asked}."
            )
        return asked

    def on(self, data: Dataset, valid: Dataset | None, loss: Loss) -> Start:
        """Return the start of boosting on this data with this loss."""
        forest, per_round = self.forest(data.categories), loss.trees_per_round
        if forest is not None and self.part is not None:
            forest = replace(forest, base=loss.base)  # what the fit on this part began with
        if forest is not None and self.model is not None:
            rounds = self.model.best_round_
            outputs = np.tile(np.arange(per_round), rounds)
            fits = forest.n_outputs == loss.n_outputs and forest.n_trees == rounds * per_round
            if not fits or not (loss.adaptive or np.array_equal(forest.tree_output, outputs)):
                self._check_whole()
                raise OptionError(
                    f"init_model of {self.owner}.fit has {forest.n_trees} trees for {forest.n_outputs} "
                    f"outputs in {rounds} rounds; {self.owner} grows {per_round} a round for "
                    f"{loss.n_outputs} outputs, in their order."
                )
        return Start(forest, *self.scores(data, valid, loss.n_scores))

    def _check_whole(self) -> None:
        """Raise `OptionError` where one training would go on from the mean of several."""
        told = {} if self.model is None else self.model.provenance_.get("cross_fitting", {})
        if told and self.part is None:
            what = "the ranker, with warm_start=True," if self.in_all else "init_model"
            raise OptionError(
                f"{what} of {self.owner}.fit is the mean of {told.get('folds')} fits, which one cannot go "
                f"on from; give folds={told.get('folds')}, or train from the start."
            )

    def scores(
        self, data: Dataset, valid: Dataset | None, columns: int
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the initial scores of the rows of training and validation, checked."""
        if (self.init_score is None) != (self.valid_init_score is None) and valid is not None:
            raise OptionError(
                f"{self.owner}.fit needs init_score and valid_init_score, or neither, when it is given "
                "valid: a measure without the initial scores would choose the wrong round."
            )
        if valid is None and self.valid_init_score is not None:
            raise OptionError(f"{self.owner}.fit got valid_init_score, but no valid.")
        return (
            _score_rows(self.init_score, data, columns, f"init_score of {self.owner}.fit"),
            _score_rows(self.valid_init_score, valid, columns, f"valid_init_score of {self.owner}.fit"),
        )

    def provenance(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return where a model comes from, with the data of earlier rounds if they were others."""
        if self.model is None:
            return found
        before = self.model.provenance_
        earlier = {k: v for k, v in before.items() if k.startswith("earlier_data")}
        if before.get("data") not in (found["data"], None):
            earlier[f"earlier_data_{len(earlier) + 1}"] = before["data"] | {"rounds": self.model.best_round_}
        return found | earlier


def refitted(ranker: R, X: Any, given: Given, decay: Any, init_score: Any = None) -> R:
    """Return a ranker with the leaves of another one, found anew; see `TreeRanker.refit`."""
    name = type(ranker).__name__
    where = f"{name}.refit"
    decay = checked(decay, "decay", where, float, low=0, high=1)
    # As it was trained; how many threads may be told since.
    trained = type(ranker)(**ranker.options_, n_jobs=ranker.n_jobs)
    options = trained._training_options()
    n_jobs = options["n_jobs"] or available_cores()
    ranker._check_continued(options, where)
    if options["dart"]:
        raise OptionError(f"{where} is not for dart=True: its leaves were shrunk after they were found.")
    if options["monotone"] is not None:
        raise OptionError(f"{where} is not for monotone constraints, which new values would not keep.")
    wanted = ranker.feature_names_ if ranker._named else None
    data = as_dataset(X, given, where, wanted=wanted, texts=ranker.categories_)
    data = aligned(data, ranker.feature_names_, ranker._named, ranker.categories_, f"X of {where}", name)
    twin = copy.copy(ranker)
    twin.provenance_ = ranker.provenance_ | {"refit_data": provenance(data)["data"] | {"decay": decay}}
    loss = ranker._loss(data, options)
    start = _score_rows(init_score, data, 1 if loss is None else loss.n_scores, f"init_score of {where}")
    if loss is not None:
        fresh = _refit_each(
            learned_forest(ranker),
            _folds_of(ranker, where),
            ranker.best_round_,
            lambda forest: refit_leaves(
                forest,
                data.X,
                loss,
                lambda task, items: run_all(task, items, n_jobs),
                start=start,
                weight=relative_weight(data),
                decay=decay,
                learning_rate=ranker._rate(options),
                limit=options["max_leaf_value"],
                sequential=options.get("sequential", False),
                limits=LimitOptions(l1=options["l1"], l2=options["l2"]),
            ),
        )
        twin.scorer_ = twin._corrected(fresh)
    return twin


def _folds_of(ranker: Stored, where: str) -> int:
    """Fits whose mean the trees of a ranker are; 1 of a ranker that was not cross-fitted."""
    folds = ranker.provenance_.get("cross_fitting", {}).get("folds", 1)
    trees, rounds = learned_forest(ranker).n_trees, ranker.best_round_
    if type(folds) is not int or folds < 1 or trees % (folds * max(rounds, 1)):
        raise ModelFileError(
            f"{where} was given a model that says it is the mean of {folds!r} fits of {rounds} rounds, and "
            f"has {trees} trees; train it again."
        )
    return folds


def _refit_each(forest: Forest, folds: int, rounds: int, refit: Callable[[Forest], Forest]) -> Forest:
    """Return a forest refitted; the mean of several fits fit by fit, as each was boosted from the start and
    only their mean is the model.
    """
    if folds == 1:
        return refit(forest)
    parts = [fold_of(forest, number, folds, rounds) for number in range(folds)]
    before = average_forest(parts, rounds).value
    after = average_forest([refit(part) for part in parts], rounds).value
    # What stays is not to move by the rounding of the way there and back.
    return replace(forest, value=np.where(after == before, forest.value, after))


def _score_rows(
    given: npt.ArrayLike | None, data: Dataset | None, columns: int, where: str
) -> FloatArray | None:
    """Return initial scores as columns x rows in grouped order, checked."""
    if given is None or data is None:
        return None
    values = np.asarray(check_numbers(given, where), dtype=np.float64)
    if values.ndim == 1 and columns == 1:
        values = values[:, None]
    if values.shape != (data.n_rows, columns):
        shape = f"({data.n_rows},)" if columns == 1 else f"({data.n_rows}, {columns})"
        raise DataError(f"{where} must have shape {shape}, got {np.shape(given)}.")
    good = (np.abs(values) <= LARGEST).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        raise DataError(
            f"{where} must be finite and at most {LARGEST:g}, got {values[row].tolist()} at row {row}."
        )
    return np.ascontiguousarray(data.to_grouped(values).T)
