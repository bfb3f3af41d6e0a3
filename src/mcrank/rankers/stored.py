"""The part of a ranker that goes into a model file: what it learned, under which options, from what."""

from __future__ import annotations

import hashlib
import math
import os
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

import mcrank
from mcrank.arrays import Arrays, FloatArray
from mcrank.data.alignment import aligned, names_look_made_up
from mcrank.data.categories import Categories, checked_names
from mcrank.data.checks import check_names
from mcrank.errors import DataError, ModelFileError
from mcrank.functions import hashes_in
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.tools import find_dialect
from mcrank.options import Optioned, Options, fitted
from mcrank.rankers.estimator import Estimator
from mcrank.rankers.registry import to_bytes
from mcrank.scorers.base import Scorer
from mcrank.scorers.heads import Head, Relevance
from mcrank.writing import check_suffix, replace_file

if TYPE_CHECKING:
    from mcrank.data.dataset import Dataset
    from mcrank.export.certificate import Certificate
    from mcrank.export.target import Exportable


class Stored(Optioned, Estimator, ABC):
    """What a fitted ranker holds; `state` says it and `from_state` takes it back, written once for all.

    A subclass writes ``_scorer_of``, and ``_head_of`` where its head is not the identity; what it keeps
    beside scorer and head goes through ``_own_state`` and ``_restore``.
    """

    name: ClassVar[str]

    scorer_: Scorer = fitted()
    head_: Head = fitted()
    best_round_: int = fitted()
    n_rounds_: int = fitted()
    history_: dict[str, list[float]] = fitted()
    feature_names_: tuple[str, ...] = fitted()
    feature_names_in_: npt.NDArray[np.object_] = fitted()
    n_features_in_: int = fitted()
    categories_: dict[int, tuple[str, ...]] = fitted()
    interrupted_: bool = fitted()
    oof_scores_: FloatArray = fitted()
    _oof_learned: FloatArray = fitted()  # the same without odds, query by query: what blends add up
    provenance_: dict[str, Any] = fitted()
    options_: dict[str, Any] = fitted()

    def _take_names(self, names: tuple[str, ...], named: bool, categories: Categories) -> None:
        self.feature_names_ = names
        self.categories_ = dict(categories)
        self.n_features_in_ = len(names)
        if named:
            self.feature_names_in_ = np.array(names, dtype=object)

    @property
    def _named(self) -> bool:
        """Whether the names of the features were given, so that columns go by them."""
        return hasattr(self, "feature_names_in_")

    @abstractmethod
    def _scorer_of(self, arrays: Arrays) -> Scorer:
        """Return the scorer in the arrays of a model file, checked; options and feature names are set."""

    def _head_of(self, meta: dict[str, Any]) -> Head:
        """Return the head that the header of a model file describes, checked; options are set."""
        return Head()

    def _takes_categories(self, options: dict[str, Any]) -> bool:
        """Whether it learns from features that hold categories."""
        return False

    def _own_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a model file needs beside options, scorer and head: JSON values and arrays."""
        return {}, {}

    def _restore(self, meta: dict[str, Any], arrays: Arrays) -> None:
        """Take back what `_own_state` gave, checked."""

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return everything a model file needs: JSON values and arrays."""
        meta, arrays = self._own_state()
        if self.head_.values is not None:
            meta["grades"] = self.head_.values.tolist()
        return self._common_state() | meta, self.scorer_.to_arrays() | arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: Arrays) -> Self:
        """Return the fitted ranker that `state` described; what does not fit together is a
        `ModelFileError`.
        """
        ranker = cls._from_common_state(meta)
        ranker.head_ = ranker._head_of(meta)
        ranker._restore(meta, arrays)
        ranker.scorer_ = ranker._scorer_of(arrays)
        found = (ranker.scorer_.n_features, ranker.scorer_.n_outputs)
        needed = (ranker.n_features_in_, ranker.head_.n_outputs)
        if found != needed:
            raise ModelFileError(
                f"the scorer has {found[0]} features and {found[1]} outputs; "
                f"it must have {needed[0]} and {needed[1]}."
            )
        return ranker

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as one file, which `mcrank.load` loads; the same model always gives the same bytes.

        The file appears under its name only when it is complete, so an interrupted save leaves the old file.

        Parameters
        ----------
        path : path
            Where to write; an existing file is replaced. A name that promises a format of somebody else, such
            as ``m.onnx`` or ``m.json``, is an `OptionError`.

        Examples
        --------
        >>> import tempfile, mcrank
        >>> ranker = mcrank.RegressionRanker(n_estimators=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40).save(f"{folder}/model.mcrank")
        ...     mcrank.load(f"{folder}/model.mcrank")
        RegressionRanker(n_estimators=2)
        """
        self._check_fitted()
        check_suffix(path)
        replace_file(path, to_bytes(self))

    def export(
        self, path: str | os.PathLike[str], to: str, *, relevance: Relevance | None = None, **options: Any
    ) -> list[Path]:
        """Write the model as somebody else scores with it; `mcrank export --list` tells all targets.

        Parameters
        ----------
        path : path
            Where to write: a file, or a folder for targets of several files.
        to : str
            The target, such as ``"lightgbm"`` or ``"c"``.
        relevance : {"grade", "gain"} or sequence of numbers, optional
            What a grade is worth in the exported score, as in ``predict``; only for rankers with
            probabilities, where it is "grade" if not given.
        **options
            Options of the target.

        Returns
        -------
        list of Path
            Files written.

        Examples
        --------
        >>> import tempfile, mcrank
        >>> ranker = mcrank.RegressionRanker(n_estimators=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ranker.fit([[0.0], [1.0]] * 20, [0, 1] * 20, qid=[1] * 40)
        ...     [path.name for path in ranker.export(f"{folder}/model.txt", to="lightgbm")]
        RegressionRanker(n_estimators=2)
        ['model.txt']
        """
        from mcrank.export.registry import target_class
        from mcrank.export.write import export

        target = target_class(to)(**options)
        return export(self.exportable(relevance), target, path)

    def verify(
        self,
        path: str | os.PathLike[str],
        to: str,
        data: Dataset,
        *,
        relevance: Relevance | None = None,
        **options: Any,
    ) -> Certificate:
        """Let the consumer of an export of this model score rows, and compare.

        Parameters
        ----------
        path, to, relevance, **options
            As `export` was given them.
        data : Dataset
            Rows to score, with the features of the model; hard rows are tried beside.

        Returns
        -------
        Certificate
            What was found, and whether it `holds`; ``to_json`` keeps it.

        Examples
        --------
        >>> import tempfile, mcrank
        >>> train, _, test = mcrank.make_artificial(n_train=20, n_valid=1, n_test=10, seed=1)
        >>> ranker = mcrank.LambdaMART(n_estimators=3).fit(train)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (path,) = ranker.export(f"{folder}/model.py", to="python")
        ...     found = ranker.verify(path, "python", test)
        >>> found.holds, found.data.largest, found.swaps.swapped
        (True, 0.0, 0)
        """
        from mcrank.export.certificate import certify
        from mcrank.export.registry import target_class

        model = self.exportable(relevance)
        where, name = f"data of {type(self).__name__}.verify", type(self).__name__
        rows = aligned(data, self.feature_names_, self._named, self.categories_, where, name)
        return certify(model, target_class(to)(**options), Path(path), rows)

    def exportable(self, relevance: Relevance | None = None) -> Exportable:
        """Return what an export is made of; ``relevance`` as in `export`."""
        from mcrank.export.target import Exportable
        from mcrank.export.trees import settled

        self._check_fitted()
        values = self.head_.values
        if relevance is not None:
            values = self.head_.worth(relevance, f"{type(self).__name__}.export")
        scorer, head = settled(self.scorer_, self.head_, values)
        fingerprint = hashlib.sha256(to_bytes(self)).hexdigest()
        values = None if head.values is None else values
        return Exportable(
            scorer,
            head,
            values,
            self.feature_names_,
            self.name,
            mcrank.__version__,
            fingerprint,
            self.categories_,
        )

    def _common_state(self) -> dict[str, Any]:
        """JSON part that every ranker has."""
        names = self.feature_names_
        # Whether names were given is written only where they do not tell by themselves, so that models say
        # the same bytes as they did before it could be written.
        told: dict[str, Any] = {} if self._named != names_look_made_up(names) else {"named": self._named}
        if self.categories_:
            told["categories"] = {names[f]: list(found) for f, found in self.categories_.items()}
        return told | {
            "feature_names": list(names),
            "options": self.options_,
            "provenance": self.provenance_,
            "training": {"best_round": self.best_round_, "history": self.history_, "rounds": self.n_rounds_},
        }

    @classmethod
    def _from_common_state(cls, meta: dict[str, Any]) -> Self:
        ranker = cls(**meta["options"])
        ranker.options_ = cls._as_trained(ranker._training_options())
        names = meta["feature_names"]
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise DataError("feature_names must be a list of texts.")
        named = meta.get("named", not names_look_made_up(names))
        if not isinstance(named, bool):
            raise DataError("named must be true or false.")
        ranker._take_names(
            check_names(names, len(names)), named, _categories(meta.get("categories", {}), names)
        )
        ranker.provenance_ = dict(meta["provenance"])
        if not all(isinstance(part, dict) for part in ranker.provenance_.values()):
            raise DataError("provenance must be an object of objects.")
        training = meta["training"]
        ranker.n_rounds_, ranker.best_round_ = int(training["rounds"]), int(training["best_round"])
        ranker.history_ = _history(training["history"])
        ranker.interrupted_ = False
        return ranker

    def _training_options(self) -> Options:
        """Return the options checked, with the measure itself in place of its name."""
        options = self.checked_options()
        options["measure"] = measure_of(options)
        return options

    @classmethod
    def _as_trained(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Options as a model file keeps them: those of the model, not those of the run."""
        declared = cls.declared_options
        kept = {n: options[n] for n, o in declared.items() if o.scope == "model" and o.written(options[n])}
        dialect = options["dialect"]
        return kept | {
            "measure": options["measure"].name,
            "dialect": None if dialect is None else find_dialect(dialect).name,
        }

    @classmethod
    def _identity(cls, options: dict[str, Any]) -> dict[str, Any]:
        """What a journal knows a training by: the ranker, its options as text, and what functions do."""
        functions = hashes_in({n: options[n] for n, o in cls.declared_options.items() if o.scope == "model"})
        identity = {"ranker": cls.name, "options": {k: repr(v) for k, v in cls._as_trained(options).items()}}
        return identity | ({"functions": functions} if functions else {})


def _categories(tables: Any, names: list[str]) -> dict[int, tuple[str, ...]]:
    """Return the categories of a file: rising names by feature."""
    if not isinstance(tables, dict) or not set(tables) <= set(names):
        raise DataError("categories must be lists of names by feature.")
    found: dict[int, tuple[str, ...]] = {}
    for name, listed in tables.items():
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise DataError(f"categories of {name!r} must be a list of texts.")
        if checked_names(set(listed), f"feature {name!r}") != tuple(listed):
            raise DataError(f"categories of {name!r} must rise.")
        found[names.index(name)] = tuple(listed)
    return dict(sorted(found.items()))


def _history(values: dict[str, Any]) -> dict[str, list[float]]:
    """Return a history as a file has it: a list of finite numbers under each name."""
    for name, rounds in values.items():
        if not isinstance(rounds, list) or not all(type(v) is float and math.isfinite(v) for v in rounds):
            raise DataError(f"the history of {name!r} must be a list of finite numbers.")
    return dict(values)


def measure_of(options: dict[str, Any]) -> Measure:
    """Return the measure of a ranker's options, in the dialect they ask for."""
    measure = parse_measure(options["measure"])
    return measure if options["dialect"] is None else replace(measure, dialect=options["dialect"])
