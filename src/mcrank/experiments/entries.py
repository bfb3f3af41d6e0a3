"""What enters a comparison: rankers with options and grids, saved models, score files of other tools.

As text an entry is ``[title=]what``: ``mcrank``, ``lambdamart:num_leaves=4|10,learning_rate=0.1`` (values
behind ``|`` are tried on validation data), ``model.mcrank``, ``lightgbm=predictions/{fold}.txt``.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mcrank.errors import DataError, McrankError, OptionError
from mcrank.experiments.comparison import System
from mcrank.experiments.foreign import is_model
from mcrank.experiments.names import check_name, same_name
from mcrank.metrics.dialect import Dialect
from mcrank.metrics.measure import Measure, parse_measure
from mcrank.metrics.tools import find_dialect
from mcrank.rankers.base import Ranker
from mcrank.rankers.registry import ranker_class
from mcrank.rankers.stored import measure_of

_TITLED = re.compile(r"(?P<title>[^=:]+)=(?P<what>.+)", re.DOTALL)
_IN_PATHS = re.compile(r"[|\\/]")


@dataclass(frozen=True)
class Entry:
    """One entry: exactly one of ``ranker`` (a name), ``model`` and ``scores`` (files) is given.

    Parameters
    ----------
    ranker : str, optional
        Name of a ranker, to be trained with ``options``, and with the best point of ``grid`` on validation
        data.
    model : path, optional
        A saved mcrank model. ``{fold}`` in it stands for the name of a fold, ``{n}`` for its number.
    scores : path, optional
        Scores of another tool: one number per line, RankLib's scores, or a TREC run; ``{fold}`` and ``{n}``
        as above, or one file for all folds.
    title : str, optional
        What to call it.

    Examples
    --------
    >>> from mcrank.experiments.entries import Entry
    >>> Entry.parse("mcrank:num_leaves=4|10,learning_rate=0.1")
    Entry(ranker='mcrank', options={'learning_rate': 0.1}, grid={'num_leaves': [4, 10]})
    """

    ranker: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    model: str | None = None
    scores: str | None = None
    title: str | None = None

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in vars(self).items() if value not in (None, {})]
        return f"Entry({', '.join(given)})"

    @property
    def kind(self) -> str:
        """``"ranker"``, ``"model"`` or ``"scores"``."""
        return "ranker" if self.ranker is not None else "model" if self.model is not None else "scores"

    @staticmethod
    def of(what: Any, title: str | None = None) -> Entry:
        """Make an entry of a text, a path, an unfitted ranker or an `Entry`."""
        if isinstance(what, Entry):
            entry = what
        elif isinstance(what, Ranker):
            entry = _entry_of_ranker(what)
        elif isinstance(what, (str, os.PathLike)):
            entry = Entry.parse(os.fspath(what))
        else:
            raise OptionError(
                "rankers of compare must be names, paths, rankers or entries, "
                f"got {type(what).__name__}: {what!r}."
            )
        return entry.checked() if title is None else replace(entry, title=title).checked()

    @staticmethod
    def parse(text: str) -> Entry:
        """Read an entry as it is written on the command line."""
        titled = None if _is_file(text) else _TITLED.fullmatch(text)
        # A slash before the sign may be that of a path which is not there; what is entered decides.
        if titled is not None and (
            not _IN_PATHS.search(titled["title"]) or _is_known(titled["what"].strip())
        ):
            return replace(Entry.parse(titled["what"].strip()), title=titled["title"].strip())
        if _is_file(text):
            return Entry(model=text) if is_model(_first_file(text)) else Entry(scores=text)
        name, _, settings = text.partition(":")
        options, grid = _settings(ranker_named(name.strip()), settings)
        return Entry(ranker=name.strip(), options=options, grid=grid)

    def checked(self) -> Entry:
        """Return itself, or raise `OptionError` for what cannot be: before anything is trained."""
        if self.title is not None:
            check_name(self.title, "an entry")
        given = [name for name in ("ranker", "model", "scores") if getattr(self, name) is not None]
        if len(given) != 1:
            raise OptionError(
                f"an entry must have one of ranker, model and scores, got {' and '.join(given) or 'none'}."
            )
        if self.ranker is None:
            if self.options or self.grid:
                raise OptionError(f"{getattr(self, given[0])} is trained already; options are for rankers.")
            return self
        ranker = ranker_named(self.ranker)
        given_grid: Mapping[str, Any] = self.grid
        for name, values in given_grid.items():
            if name in self.options:
                raise OptionError(f"{name} of {ranker.__name__} is an option and in the grid; say it once.")
            if not isinstance(values, (list, tuple)) or not values:
                raise OptionError(
                    f"grid of {ranker.__name__} needs a list of values for {name}, got {values!r}."
                )
        plain = replace(
            self,
            options={name: _plain(value, name) for name, value in self.options.items()},
            grid={name: [_plain(value, name) for value in values] for name, values in self.grid.items()},
        )
        for point in plain.points():
            measure_of(ranker(**plain.options, **point).checked_options())
        return plain

    def points(self) -> list[dict[str, Any]]:
        """Every point of the grid, the last option running fastest; without a grid, one empty point."""
        names = list(self.grid)
        return [dict(zip(names, point, strict=True)) for point in itertools.product(*self.grid.values())]

    @property
    def default_title(self) -> str:
        """What to call it when nobody said."""
        if self.ranker is None:
            path = Path(str(self.model or self.scores))
            return (path.parent.name or path.stem) if "{" in path.stem else path.stem
        values = {**self.options, **{name: "|".join(map(str, v)) for name, v in self.grid.items()}}
        return " ".join([self.ranker, *(f"{name}={value}" for name, value in values.items())])


def ranker_named(name: str) -> type[Ranker]:
    """Return a ranker class, or say that the text is neither a ranker nor a file."""
    try:
        return ranker_class(name)
    except OptionError as error:
        if {"/", "\\", ".", "{"} & set(name):  # no ranker is called so: it is meant as a file
            raise DataError(f"{name} does not exist, and no ranker is called so.") from None
        raise OptionError(f"{name!r} is neither a file nor a ranker. {error}") from None


def entries_of(rankers: Any) -> list[Entry]:
    """Make entries of what `mcrank.compare` was given: one, several, or a mapping of titles."""
    if isinstance(rankers, Mapping):
        return [Entry.of(what, str(title)) for title, what in rankers.items()]
    if isinstance(rankers, (str, os.PathLike, Ranker, Entry)) or not isinstance(rankers, Iterable):
        rankers = [rankers]
    entries = [Entry.of(what) for what in rankers]
    if not entries:
        raise OptionError("rankers of compare is empty; name at least one.")
    return entries


def systems_of(entries: Iterable[Entry], train_dialects: Iterable[Any] | None) -> list[tuple[System, Entry]]:
    """Return each entry, rankers once per training dialect, under a unique key: its name as given."""
    dialects = [None] if train_dialects is None else [find_dialect(d).name for d in train_dialects]
    if not dialects:
        raise OptionError("train_dialects of compare is empty; name dialects, or leave it out.")
    crossed = [
        (entry, dialect)
        for entry in entries
        for dialect in (dialects if entry.ranker is not None else [None])
    ]
    # Names that were given go first: one made up here makes way for them.
    taken: set[str] = set()
    for entry, dialect in crossed:
        if entry.title is not None:
            name = _name(entry.title, dialect)
            if same_name(name) in taken:
                raise OptionError(f"two entries are called {name!r}; give each a title of its own.")
            taken.add(same_name(name))
    found = []
    for entry, dialect in crossed:
        if dialect is not None and "dialect" in entry.options:
            raise OptionError(
                f"{entry.default_title} has a dialect of its own; leave it out, or train_dialects."
            )
        own = entry if dialect is None else replace(entry, options={**entry.options, "dialect": dialect})
        if entry.title is not None:
            key = _name(entry.title, dialect)
        else:
            key = _unique(_name(entry.ranker or entry.default_title, dialect), taken)
            taken.add(same_name(key))
        title = entry.title or entry.default_title
        title = title if dialect is None else f"{title} [{dialect}]"
        found.append((_system(key, title, own, dialect), own))
    return found


def _name(words: str, dialect: str | None) -> str:
    """What a system is called: as its entry is, with the dialect it is trained towards."""
    return words if dialect is None else f"{words}-{dialect}"


def _system(key: str, title: str, entry: Entry, dialect: str | None) -> System:
    card = None if entry.ranker is None else ranker_class(entry.ranker).card._asdict()
    source = entry.model or entry.scores
    return System(key, title, entry.kind, entry.ranker, entry.options, entry.grid, dialect, card, source)


def _plain(value: Any, name: str) -> Any:
    """An option's value as a worker process can be told: measures and dialects by name."""
    if isinstance(value, (Measure, Dialect)):
        known = parse_measure(value.name) if isinstance(value, Measure) else find_dialect(value.name)
        if known != value:
            raise OptionError(f"{name} {value.name} is not known by its name; say define_dialect first.")
        return value.name
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        raise OptionError(f"{name} of an entry must be a plain value, got {value!r}.") from None


def _unique(key: str, taken: Iterable[str]) -> str:
    numbers = itertools.count(2)
    unique = key
    while same_name(unique) in taken:
        unique = f"{key}-{next(numbers)}"
    return unique


def _entry_of_ranker(ranker: Ranker) -> Entry:
    if ranker.__sklearn_is_fitted__():
        raise OptionError(
            f"{type(ranker).__name__} is fitted; save it and give its path, or give one to be trained."
        )
    if ranker_class(ranker.name) is not type(ranker):
        raise OptionError(f"{type(ranker).__name__} is not in the registry; compare trains rankers by name.")
    defaults = {name: option.default for name, option in ranker.declared_options.items()}
    changed = {name: value for name, value in ranker.get_params().items() if value != defaults[name]}
    changed.pop("preset", None)  # what it set is among them, and what was said beside it must not be set back
    return Entry(ranker=ranker.name, options=changed)


def _settings(ranker: type[Ranker], text: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Read ``option=value,option=v1|v2``."""
    options: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    for setting in _split(text):
        name, equals, values = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise OptionError(f"{setting!r} of {ranker.name} must look like option=value or option=v1|v2.")
        if name in options or name in grid:
            raise OptionError(f"{name} of {ranker.name} is given twice; separate values to try with |.")
        ranker._reject_unknown({name: None})
        found = [ranker.declared_options[name].from_text(one.strip()) for one in values.split("|")]
        if len(found) == 1:
            options[name] = found[0]
        else:
            grid[name] = found
    return options, grid


def _split(text: str) -> list[str]:
    """Split at the commas before an option: ``hidden=20,10,epochs=5`` sets two."""
    return [part.strip() for part in re.split(r",(?=\s*[\w-]+\s*=)", text) if part.strip()]


def _is_file(text: str) -> bool:
    try:
        return Path(_first_file(text)).is_file()
    except (OSError, ValueError, McrankError):
        return False


def _is_known(text: str) -> bool:
    """Whether a text begins with the name of a ranker, or is a file."""
    try:
        ranker_class(text.partition(":")[0].strip())
    except OptionError:
        return _is_file(text)
    return True


def _first_file(text: str) -> str:
    """The file a pattern with ``{fold}`` or ``{n}`` names first, or the text itself."""
    if "{fold}" not in text and "{n}" not in text:
        return text
    pattern = text.replace("{fold}", "*").replace("{n}", "*")
    root = Path(pattern).anchor or "."
    found = sorted(Path(root).glob(str(Path(pattern).relative_to(root) if Path(pattern).anchor else pattern)))
    return str(found[0]) if found else text
