"""A comparison described in a TOML file; unknown keys are errors that name the nearest one.

::

    measures = ["ndcg@10", "map"]      # the first is the main one
    dialects = ["yahoo", "letor4"]
    train_dialects = ["standard"]      # optional: train every ranker towards each
    seed = 0
    out = "run"                        # paths are relative to the TOML file
    baseline = "lambdamart"            # for fail_if; the first entry by default
    fail_if = ["ndcg@10 < -0.002"]

    [data]
    folds = "MQ2008"                   # a directory of folds; or train, valid, test; or file and kfold

    [[entry]]
    ranker = "lambdamart"
    title = "LambdaMART"
    options = { learning_rate = 0.1 }
    grid = { num_leaves = [4, 10] }    # tried on validation data

    [[entry]]
    scores = "lightgbm/{fold}.txt"     # or model = "model.mcrank"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcrank.errors import DataError, OptionError, did_you_mean
from mcrank.experiments.entries import Entry
from mcrank.experiments.fold_source import READ_OPTIONS

_TOP = {
    "measures": list, "dialects": list, "train_dialects": list, "seed": int, "n_jobs": int, "out": str,
    "baseline": str, "fail_if": list, "data": dict, "entry": list,
}  # fmt: skip
_DATA = {
    "folds": str, "train": str, "valid": str, "test": str, "file": str, "kfold": int,
    "absent": str, "first_index": int, "n_features": int, "unjudged": str, "drop_empty": bool,
    "qid": str, "grade": str, "doc_id": str, "weight": str, "features": list, "ignore": list,
}  # fmt: skip
_ENTRY = {"ranker": str, "model": str, "scores": str, "title": str, "options": dict, "grid": dict}
_WORDS = {list: "a list", int: "an integer", str: "a text", dict: "a table", bool: "true or false"}


@dataclass(frozen=True)
class Plan:
    """What a TOML file says; ``arguments`` are those of `mcrank.compare`.

    Examples
    --------
    >>> from mcrank.experiments.plan import Plan
    >>> plan = Plan.parse({"data": {"folds": "MQ2008"}, "entry": [{"ranker": "mcrank"}]}, "plan.toml")
    >>> plan.arguments["rankers"], str(plan.arguments["data"])
    ([Entry(ranker='mcrank')], 'MQ2008')
    >>> Plan.parse({"mesures": ["map"]}, "plan.toml")
    Traceback (most recent call last):
    mcrank.errors.OptionError: plan.toml has no key 'mesures'; did you mean measures?
    """

    arguments: Mapping[str, Any]
    baseline: str | None = None
    fail_if: tuple[str, ...] = field(default=())

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Plan:
        """Read a TOML file; the paths in it are relative to its folder."""
        where = Path(path)
        try:
            with open(where, "rb") as file:
                content = tomllib.load(file)
        except OSError as error:
            raise DataError(f"{where} cannot be read: {error.strerror or error}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{where} is not TOML: {error}.") from None
        return Plan.parse(content, str(where), where.parent)

    @staticmethod
    def parse(content: Mapping[str, Any], where: str, folder: Path = Path()) -> Plan:
        """Understand the content of a TOML file named ``where``."""
        _check(content, _TOP, where)
        if not content.get("entry"):
            raise OptionError(f"{where} has no [[entry]]; there must be at least one.")
        if "data" not in content:
            raise OptionError(f"{where} has no [data]; say where the data are.")
        passed_on = ("measures", "dialects", "train_dialects", "seed", "n_jobs")
        arguments = {name: content[name] for name in passed_on if name in content}
        if "out" in content:
            arguments["out"] = _path(content["out"], folder)
        arguments |= _data(content["data"], f"[data] of {where}", folder)
        arguments["rankers"] = [
            _entry(entry, f"[[entry]] {number} of {where}", folder)
            for number, entry in enumerate(content["entry"], start=1)
        ]
        fail_if = content.get("fail_if", [])
        return Plan(arguments, content.get("baseline"), tuple(map(str, fail_if)))


def _check(table: Any, known: Mapping[str, type], where: str) -> None:
    if not isinstance(table, Mapping):
        raise OptionError(f"{where} must be a table, got {table!r}.")
    for key, value in table.items():
        if key not in known:
            raise OptionError(f"{where} has no key {key!r}; {did_you_mean(key, known, 'keys:')}")
        if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            raise OptionError(f"{key} of {where} must be {_WORDS[known[key]]}, got {value!r}.")


def _data(table: Any, where: str, folder: Path) -> dict[str, Any]:
    _check(table, _DATA, where)
    parts = [part for part in ("train", "valid", "test") if part in table]
    ways = [way for way in ("folds", "file") if way in table] + (["train, valid, test"] if parts else [])
    if len(ways) != 1:
        raise OptionError(
            f"{where} must have folds, or file, or train, valid and test; got {ways or 'none'}."
        )
    if "kfold" in table and "file" not in table:
        raise OptionError(f"kfold of {where} is for a single file; leave it out.")
    arguments: dict[str, Any] = {}
    if parts:
        arguments["data"] = {part: _path(table[part], folder) for part in parts}
    else:
        arguments["data"] = _path(table[ways[0]], folder)
    if ways == ["folds"] and not Path(arguments["data"]).is_dir() and Path(arguments["data"]).exists():
        raise OptionError(f"folds of {where} must be a directory; say file for a single file.")
    if "kfold" in table:
        arguments["folds"] = table["kfold"]
    if table.get("drop_empty"):
        arguments["drop_empty"] = True
    options = {name: table[name] for name in READ_OPTIONS if name in table}
    return arguments | ({"read_options": options} if options else {})


def _entry(table: Any, where: str, folder: Path) -> Entry:
    _check(table, _ENTRY, where)
    fields = dict(table)
    for name in ("model", "scores"):
        if name in fields:
            fields[name] = _path(fields[name], folder)
    try:
        return Entry(**fields).checked()
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from None


def _path(text: Any, folder: Path) -> str:
    return str(folder / text)
