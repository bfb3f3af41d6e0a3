"""Blend: a weighted sum of rankers, as in the winning entries of the Yahoo challenge, which mixed LambdaMART,
nets and McRank-type classifiers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mcrank.arrays import Arrays, FloatArray
from mcrank.container import unpack
from mcrank.data.alignment import columns_of
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError, ModelFileError, OptionError
from mcrank.options import Options, fitted, option
from mcrank.ranges import Between
from mcrank.rankers.base import Card, Ranker, Trained
from mcrank.rankers.cross_fitting import Pooled
from mcrank.rankers.few import silently
from mcrank.rankers.provenance import provenance
from mcrank.rankers.registry import RANKERS, from_bytes, from_file, ranker_class, to_bytes
from mcrank.rounds import Callback, Rounds
from mcrank.scorers.blend import STANDARDS, Member, Standard, WeightedSum
from mcrank.scorers.heads import weighted
from mcrank.training.mixing import mixing_weights

DEFAULT = "mcrank,ordinal,lambdamart,ranksvm"
PATIENCE = 50  # early_stopping_rounds of members named by a text


class Blend(Ranker):
    """Weighted sum of the standardised scores of several rankers.

    Members are cross-fitted (``fit(..., folds=)``): their weights are found on the scores of all rows by fits
    that have not seen them, and queries of validation data take part like others. With ``folds=None``, or
    where a member is fitted already, members are trained on the training data and weighted on the validation
    data. Members named by a text stop early. A blend out of a file, fitted again, trains its members with the
    options they had.

    Attributes
    ----------
    members_ : list of Ranker
        Fitted rankers.
    weights_ : ndarray of shape (members,)
        Weight of each, none negative, adding up to 1.

    Examples
    --------
    >>> import mcrank
    >>> train, valid, test = mcrank.make_artificial(n_train=40, n_valid=20, n_test=20, seed=1)
    >>> members = [mcrank.RegressionRanker(n_estimators=30), "ranksvm"]
    >>> ranker = mcrank.Blend(members=members).fit(train, valid=valid)
    >>> bool(ranker.score(test) > 0.4), round(float(ranker.weights_.sum()), 6)
    (True, 1.0)
    """

    name: ClassVar[str] = "blend"
    card: ClassVar[Card] = Card("mixture", "the measure itself, or squares", "rankers", True)

    members: str | Sequence[Any] = option(
        default=DEFAULT,
        help="what is mixed: names of rankers and model files, with commas between (in Python also rankers)",
    )
    method: str = option(
        default="ascent",
        choices=("ascent", "nnls", "equal"),
        help="weights by coordinate ascent on the measure, by non-negative least squares of gains, or equal",
    )
    shrink: float = option(
        default=0.5,
        low=0,
        high=1,
        search=Between(0.0, 1.0),
        help="share of equal weights in the weights, against chance in small data",
    )
    standard: str = option(
        default="global",
        choices=STANDARDS,
        help="scores of each member have variance 1 over all rows, or in each query (which needs a Dataset)",
    )
    folds: int | None = option(
        default=4,
        low=2,
        high=1000,
        help="parts of the queries held out in turn; None: members are weighted on validation data",
    )
    random_state: int = option(default=0, low=0, high=2**63 - 1, help="seed of folds, ascent and members")
    members_: list[Ranker] = fitted()
    scorer_: WeightedSum = fitted()

    @property
    def weights_(self) -> FloatArray:
        """Weight of each member, none negative, adding up to 1."""
        return self.scorer_.weights

    @property
    def standard_(self) -> Standard:
        """How scores of members come to one scale."""
        return self.scorer_.standard

    def _fit(self, data: Dataset, valid: Dataset | None, options: Options, callback: Callback) -> Trained:
        kinds = [_member(entry, options) for entry in _entries(options["members"])]
        _check_members(kinds, data, valid, options["folds"])
        options["members"] = ",".join(kind.name for kind in kinds)  # what a model file can say
        pooled = None
        if options["folds"] is not None and not any(kind.__sklearn_is_fitted__() for kind in kinds):
            queries = data.n_queries + (0 if valid is None else valid.n_queries)
            pooled = Pooled(data, valid, min(options["folds"], queries), "Blend.fit")
        held_out = pooled.data if pooled is not None else data if valid is None else valid
        rounds = Rounds(held_out, options["measure"], len(kinds) + 1)
        stop = _Stop(callback)
        trained: list[Ranker] = []
        columns: list[FloatArray] = []
        with rounds.until_interrupted():
            for kind in kinds:
                ranker = stop.fit(kind, data, valid, None if pooled is None else pooled.count)
                scores = (
                    held_out.to_grouped(ranker.head_.as_learned.rank(ranker._raw(held_out, "predict")))
                    if pooled is None
                    else ranker._oof_learned
                )
                trained.append(ranker)
                columns.append(scores)
                rounds.after(scores)
                if stop.asked:
                    break
        rounds.interrupted |= stop.interrupted
        scores_of = np.array(columns[: rounds.n_rounds])
        standard = Standard.fit(scores_of, options["standard"])
        scaled = standard.apply(scores_of, held_out.offsets)
        weights = mixing_weights(scaled, held_out, options)
        rounds.after(weighted(weights, scaled))
        self.members_ = trained[: len(weights)]
        # The last round is the blend itself; those before it are what its members reach alone.
        rounds.best_round = rounds.n_rounds
        own = data.feature_names if data.named else None
        members = tuple(_as_member(ranker, own, to_bytes(ranker)) for ranker in self.members_)
        return Trained(WeightedSum(members, weights, standard, data.n_features), rounds)

    def _cross_fit(
        self, data: Dataset, valid: Dataset | None, folds: int, options: Options, callback: Callback
    ) -> tuple[Trained, dict[str, Any]]:
        if "desk" in options:
            raise OptionError("Blend.fit with folds trains on one machine; leave cluster out.")
        options["folds"] = self.declared_options["folds"].check(folds, "Blend.fit")
        return self._fit(data, valid, options, callback), provenance(data)

    def _scorer_of(self, arrays: Arrays) -> WeightedSum:
        if not isinstance(self.options_["members"], str):
            raise ModelFileError("members must be a text.")
        self.members_ = []

        def unpack(packed: bytes, number: int) -> Member:
            self.members_.append(_unpacked(packed, number, self))
            return _as_member(self.members_[-1], self.feature_names_ if self._named else None, packed)

        scorer = WeightedSum.from_arrays(arrays, self.options_["standard"], self.n_features_in_, unpack)
        self.members = self._members_again()
        return scorer

    def _members_again(self) -> str | list[Any]:
        """Return ``members`` of a blend out of a file, such that `fit` trains what it trained before: names
        where they say it all, else rankers with the options that theirs had.
        """
        options = self._training_options()
        again: list[Any] = []
        for ranker in self.members_:
            kind = type(ranker)
            if kind.name not in RANKERS:
                again.append(ranker)  # what another library trained stays as it is
                continue
            plain = _member(kind.name, options)
            asked, found = (kind._as_trained(one._training_options()) for one in (plain, ranker))
            again.append(kind.name if asked == found else kind(**ranker.get_params()))
        # Members that a training which was stopped did not come to.
        again += self.options_["members"].split(",")[len(again) :]
        names = [entry for entry in again if isinstance(entry, str)]
        return ",".join(names) if len(names) == len(again) else again


def _as_member(ranker: Ranker, names: tuple[str, ...] | None, packed: bytes) -> Member:
    """Return what a fitted ranker is to a blend whose columns have these names (None: go by position)."""
    columns = None
    if names is not None and ranker._named and ranker.feature_names_ != names:
        columns = np.array(columns_of(names, ranker.feature_names_, "a member of Blend"), dtype=np.int64)
    # Scores as they were learned: odds bend each member's in its own way, and no sum of them is a grade.
    return Member(ranker.scorer_, ranker.head_.as_learned, columns, packed)


def _unpacked(packed: bytes, number: int, blend: Blend) -> Ranker:
    """Return the member in the bytes of a model file."""
    where = f"member {number}"
    # Asked before anything is made of it: files inside files inside files would have no end.
    if unpack(packed, where)[0].get("ranker") == Blend.name:
        raise ModelFileError(f"{where} is a blend itself.")
    member = from_bytes(packed, where)
    if member.categories_:
        raise ModelFileError(f"{where} has categories, which a blend does not take.")
    if member._named and blend._named:
        columns_of(blend.feature_names_, member.feature_names_, f"the blend of {where}")
    elif member.n_features_in_ != blend.n_features_in_:
        raise ModelFileError(
            f"{where} takes {member.n_features_in_} features, the blend {blend.n_features_in_}."
        )
    return member


class _Stop:
    """Passes rounds of members on to the caller's callback, and remembers when it is time to stop."""

    def __init__(self, callback: Callback) -> None:
        self.asked = self.interrupted = False
        self._callback = callback

    def __call__(self, event: Any) -> bool:
        if self._callback is not None and self._callback(event):
            self.asked = True
        return self.asked

    def fit(self, ranker: Ranker, data: Dataset, valid: Dataset | None, folds: int | None) -> Ranker:
        """Train a member, if it is not fitted. One that Ctrl-C has ended keeps its rounds and warns: that
        ends the blend too.
        """
        if ranker.__sklearn_is_fitted__():
            return ranker
        with silently():  # the blend speaks for all
            ranker.fit(data, valid=valid, callback=self, folds=folds)
        self.interrupted |= ranker.interrupted_
        self.asked |= self.interrupted
        return ranker


def _entries(members: Any) -> list[Any]:
    """Split the option ``members`` into single ones."""
    if isinstance(members, str):
        entries: list[Any] = [entry.strip() for entry in members.split(",") if entry.strip()]
    elif isinstance(members, (list, tuple)):
        entries = list(members)
    else:
        entries = [members]
    for entry in entries:
        if not isinstance(entry, (str, os.PathLike, Ranker)):
            raise OptionError(
                f"members of Blend must be names of rankers, model files or rankers, got {entry!r}."
            )
    if not entries:
        raise OptionError("members of Blend names no ranker; give at least one.")
    return entries


def _member(entry: Any, options: dict[str, Any]) -> Ranker:
    """Return a ranker for one entry: fitted, or ready to be trained."""
    if isinstance(entry, Ranker):
        ranker = entry if entry.__sklearn_is_fitted__() else type(entry)(**entry.get_params())
    elif entry not in RANKERS and os.path.exists(entry):
        ranker = from_file(entry)
    elif isinstance(entry, str):
        kind = ranker_class(entry)
        common = {name: options[name] for name in ("measure", "n_jobs", "random_state")}
        common["early_stopping_rounds"] = PATIENCE
        ranker = kind(**{name: value for name, value in common.items() if name in kind.declared_options})
    else:
        raise OptionError(f"members of Blend names the file {os.fspath(entry)!r}, which does not exist.")
    if isinstance(ranker, Blend):
        raise OptionError("members of Blend has a Blend; name the members of that one instead.")
    return ranker


def _check_members(kinds: list[Ranker], data: Dataset, valid: Dataset | None, folds: int | None) -> None:
    for kind in kinds:
        fitted = kind.__sklearn_is_fitted__()
        # A member scores the blend's own columns: where it expects codes, numbers would be other categories.
        if kind.categories_ if fitted else kind.checked_options().get("categorical"):
            raise OptionError(
                f"members of Blend has a {type(kind).__name__} with categories, which a Blend does not take; "
                "leave categorical out of it, or give those features as numbers."
            )
        if not fitted:
            continue
        if valid is None:
            raise OptionError(
                f"members of Blend has a fitted {type(kind).__name__}, and there is no valid to weigh it on; "
                "give valid, or name members that are not fitted."
            )
        if kind._named and data.named:
            columns_of(data.feature_names, kind.feature_names_, "The training data of Blend")
        elif kind.n_features_in_ != data.n_features:
            raise DataError(
                f"members of Blend has a {type(kind).__name__} of {kind.n_features_in_} features, the "
                f"training data {data.n_features}."
            )
    if valid is None and folds is None:
        raise OptionError("folds of Blend is None, and there is no valid to weigh members on; give one.")
    if valid is None and data.n_queries < 2:
        raise DataError("The training data of Blend has one query, which cannot be cut in folds; give valid.")
