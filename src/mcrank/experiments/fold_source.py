"""Where the folds of a comparison come from, as something a worker process can be told in JSON.

A directory of folds, files for train, valid and test, or one file cut into folds by query; data in memory go
through temporary files.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mcrank.data.dataset import Dataset
from mcrank.data.folds import Fold, Folds, find_folds, kfold, same_width
from mcrank.data.read import read
from mcrank.errors import DataError, OptionError

PARTS = ("train", "valid", "test")
KEPT_BYTES = 1 << 28  # of folds kept between looking at them and training on them, at most
READ_OPTIONS = (
    "absent", "doc_id", "features", "first_index", "grade", "ignore", "n_features", "qid", "unjudged",
    "weight",
)  # fmt: skip


Parts = Fold[Dataset | None]  # a part may be missing where nothing needs it


class View(NamedTuple):
    """What of every fold is used."""

    drop_empty: bool = False  # queries without a relevant document take no part
    without_valid: bool = False  # nothing is chosen

    def of(self, parts: Parts) -> Parts:
        """Return the parts of a fold as this view has them."""
        if self.without_valid:
            parts = parts._replace(valid=None)
        if self.drop_empty:
            kept: list[Any] = [part if part is None else part.drop_empty_queries() for part in parts]
            parts = Fold(*kept)
        return parts


NO_VIEW = View()


class KeptFolds:
    """Folds made when they are asked for, and kept while they fit into ``room``: a file is not read again.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.experiments.fold_source import KeptFolds, Source
    >>> source = Source.of(mcrank.make_artificial(10, 1, 1).train, folds=5)
    >>> folds = KeptFolds(source.fold)
    >>> folds[3] is folds[3], KeptFolds(source.fold, room=0)[3].test.n_queries
    (True, 2)
    """

    def __init__(self, make: Callable[[int], Parts], room: int = KEPT_BYTES) -> None:
        self._make = make
        self._room = room
        self._kept: dict[int, Parts] = {}
        self._largest = 0

    def __getitem__(self, number: int) -> Parts:
        if number not in self._kept:
            # Let go of old ones before the new one takes memory; it will be about as large as they are.
            while (
                self._kept and self._largest + sum(fold.nbytes for fold in self._kept.values()) > self._room
            ):
                del self._kept[next(iter(self._kept))]
            self._kept[number] = self._make(number)
            self._largest = max(self._largest, self._kept[number].nbytes)
        return self._kept[number]

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Let go of all."""
        self._kept.clear()


@dataclass(frozen=True, eq=False)
class Source:
    """Folds by name. ``recipe`` says in JSON how to make them; ``memory`` has them when there is none.

    Examples
    --------
    >>> import mcrank
    >>> from mcrank.experiments.fold_source import Source
    >>> source = Source.of(mcrank.make_artificial(10, 1, 1).train, folds=5)
    >>> source.names, source.fold(0).test.n_queries
    (('Fold1', 'Fold2', 'Fold3', 'Fold4', 'Fold5'), 2)
    """

    names: tuple[str, ...]
    recipe: Mapping[str, Any] | None = None
    memory: tuple[Parts, ...] | Folds = ()
    description: Mapping[str, Any] = field(default_factory=dict)
    view: View = NO_VIEW
    given: Dataset | None = None  # what was cut into the folds in memory

    def uncut(self) -> Dataset | None:
        """Return the data that were cut into these folds, in whose row order the caller thinks; None for
        folds that were given as such.
        """
        if self.recipe is not None and self.recipe["form"] == "kfold":
            return _whole_file(self.recipe["path"], _as_key(self.recipe["read"]))
        return self.given

    def seen(self, *, drop_empty: bool = False, without_valid: bool = False) -> Source:
        """The same folds without empty queries, or without their validation parts."""
        view = View(drop_empty, without_valid)
        told = {name: True for name, on in view._asdict().items() if on}
        recipe = None if self.recipe is None else {**self.recipe, "view": view._asdict()}
        return replace(self, recipe=recipe, description={**self.description, **told}, view=view)

    @staticmethod
    def of(
        data: Any, *, folds: int = 5, seed: int = 0, read_options: Mapping[str, Any] | None = None
    ) -> Source:
        """Understand what `mcrank.compare` was given as ``data``."""
        options = _read_options(read_options or {})
        if isinstance(data, Source):
            return data
        if isinstance(data, (str, os.PathLike)):
            return _of_path(Path(data), folds, seed, options)
        if isinstance(data, Dataset):
            made = kfold(data, folds, seed=seed)
            return Source(
                _numbered(len(made)),
                memory=made,
                description={"form": "Dataset", "kfold": folds, "seed": seed},
                given=data,
            )
        if isinstance(data, Mapping):
            return _of_mapping(data, options)
        if isinstance(data, Folds):
            return Source(_numbered(len(data)), memory=data, description={"form": "folds in memory"})
        if isinstance(data, Iterable):
            return _of_sequence(list(data))
        raise OptionError(
            "data of compare must be a directory of folds, a file, a mapping of train, valid and test, a "
            f"Dataset or folds, got {type(data).__name__}."
        )

    def fold(self, number: int) -> Parts:
        """Return the data of a fold, counted from 0."""
        if self.recipe is not None:
            return make_fold(self.recipe, number)
        return self.view.of(Fold(*self.memory[number]))

    def handed_over(self, folder: str, folds: KeptFolds) -> dict[str, Any]:
        """Return a recipe for worker processes; folds in memory are put into ``folder`` for them.

        Folds that are too large to be kept are read again by each worker that needs them.
        """
        if self.recipe is not None and len(folds) < len(self.names):
            return dict(self.recipe)
        paths = [os.path.join(folder, f"{number}.pickle") for number in range(len(self.names))]
        try:
            for number, path in enumerate(paths):
                with open(path, "wb") as file:
                    pickle.dump(tuple(folds[number]), file, protocol=5)
        except OSError:  # no space
            if self.recipe is None:
                raise
            return dict(self.recipe)
        return {"form": "pickles", "paths": paths}


def make_fold(recipe: Mapping[str, Any], number: int) -> Parts:
    """Make a fold as a recipe says."""
    return View(**recipe.get("view", {})).of(_whole_fold(recipe, number))


def _whole_fold(recipe: Mapping[str, Any], number: int) -> Parts:
    if recipe["form"] == "files":
        files = {part: path for part, path in recipe["folds"][number].items() if path is not None}
        parts = same_width(files, recipe["read"])
        return Fold(parts.get("train"), parts.get("valid"), parts["test"])
    if recipe["form"] == "kfold":
        return Fold(*_cut(recipe["path"], recipe["folds"], recipe["seed"], _as_key(recipe["read"]))[number])
    with open(recipe["paths"][number], "rb") as file:  # written by `Source.handed_over` a moment ago
        return Fold(*pickle.load(file))


def _as_key(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value) for name, value in options.items()
    )


@lru_cache(maxsize=1)
def _cut(path: str, folds: int, seed: int, options: tuple[tuple[str, Any], ...]) -> Folds:
    return kfold(_whole_file(path, options), folds, seed=seed)


@lru_cache(maxsize=1)
def _whole_file(path: str, options: tuple[tuple[str, Any], ...]) -> Dataset:
    return read(path, **dict(options))


def _read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in READ_OPTIONS:
            raise OptionError(
                f"read_options of compare has no {name!r}; there are {', '.join(READ_OPTIONS)}."
            )
    return dict(options)


def _of_path(path: Path, folds: int, seed: int, options: dict[str, Any]) -> Source:
    if path.is_dir():
        files = find_folds(path)
        names = tuple(fold["test"].parent.name or "test" for fold in files)
        listed: dict[str, Any] = {
            "form": "files",
            "folds": [{part: str(fold[part]) for part in PARTS} for fold in files],
            "read": options,
        }
        return Source(names, listed, description={"directory": str(path), **options})
    if not path.is_file():
        raise DataError(f"{path} does not exist; name a directory of folds or a data file.")
    if folds < 3:
        raise OptionError(f"folds of compare must be an integer >= 3, got {folds!r}.")
    recipe: dict[str, Any] = {
        "form": "kfold",
        "path": str(path),
        "folds": folds,
        "seed": seed,
        "read": options,
    }
    return Source(
        _numbered(folds), recipe, description={"file": str(path), "kfold": folds, "seed": seed, **options}
    )


def _of_mapping(data: Mapping[str, Any], options: dict[str, Any]) -> Source:
    unknown = [part for part in data if part not in PARTS]
    if unknown or data.get("test") is None:
        what = f"got {unknown[0]!r}" if unknown else "there is no test"
        raise OptionError(f"data of compare must be a mapping of train, valid and test; {what}.")
    given = {part: data.get(part) for part in PARTS}
    if all(value is None or isinstance(value, (str, os.PathLike)) for value in given.values()):
        files = {part: None if value is None else str(value) for part, value in given.items()}
        for part, path in files.items():
            if path is not None and not Path(path).is_file():
                raise DataError(f"{path}, the {part} part of the data, does not exist.")
        recipe = {"form": "files", "folds": [files], "read": options}
        named = {part: path for part, path in files.items() if path is not None}
        return Source(("test",), recipe, description={**named, **options})
    return Source(
        ("test",),
        memory=(_parts(tuple(given.values()), "data of compare"),),
        description={"form": "one fold in memory"},
    )


def _of_sequence(folds: list[Any]) -> Source:
    if len(folds) == 3 and all(isinstance(part, Dataset) or part is None for part in folds):
        folds = [tuple(folds)]
    if not folds:
        raise OptionError("data of compare is empty; there must be at least one fold.")
    parts = tuple(_parts(fold, f"fold {number} of compare") for number, fold in enumerate(folds, start=1))
    names = ("test",) if len(parts) == 1 else _numbered(len(parts))
    return Source(names, memory=parts, description={"form": "folds in memory"})


def _parts(fold: Any, where: str) -> Parts:
    good = isinstance(fold, (tuple, list)) and len(fold) == 3 and isinstance(fold[2], Dataset)
    if not good or not all(part is None or isinstance(part, Dataset) for part in fold):
        raise OptionError(f"{where} must be train, valid and test as Dataset (train and valid may be None).")
    return Fold(*fold)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"Fold{number}" for number in range(1, count + 1))
