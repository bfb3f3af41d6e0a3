"""Options that are about single features: constraints, weights of features, features that hold categories.

Features are named or numbered (from 0); on the command line JSON says the same. A model file has their names.
"""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import ByteArray, FloatArray
from mcrank.boosting.limits import LimitOptions
from mcrank.data.categories import feature_of
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError
from mcrank.options import Options, option

Feature = str | int


def _by_feature(values: Any, good: Callable[[Any], Any], words: str) -> Any:
    """Return numbers by feature: a dict, or a list of one number for each feature."""
    if isinstance(values, Mapping):
        pairs = [(_feature(key, words), good(value)) for key, value in values.items()]
        if len(dict(pairs)) < len(pairs) or any(value is None for _, value in pairs):
            raise ValueError(words)
        return dict(pairs)
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(words)
    found = [good(value) for value in values]
    if any(value is None for value in found):
        raise ValueError(words)
    return found


def _feature(key: Any, words: str) -> Feature:
    if isinstance(key, str):
        return key
    if isinstance(key, (bool, np.bool_)) or not isinstance(key, numbers.Integral):
        raise ValueError(words)
    return int(key)


def _order(value: Any) -> int | None:
    whole = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return int(value) if whole and value in (-1, 0, 1) else None


def _weight(value: Any) -> float | None:
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return float(value) if real and 0 <= value <= 1e9 and math.isfinite(value) else None


def _judge_monotone(values: Any) -> Any:
    return _by_feature(values, _order, "-1, 0 or 1 by feature, such as {'price': -1, 3: 1}, or None")


def _judge_weights(values: Any) -> Any:
    return _by_feature(values, _weight, "numbers from 0 to 1e9 by feature, such as {'price': 0.5}, or None")


def _judge_interaction(values: Any) -> Any:
    words = "sets of features that may meet on a path, such as [['price', 'age'], [3, 4]], or None"
    return [_several(group, words) for group in _listed(values, words)]


def _judge_categorical(values: Any) -> Any:
    return _several(values, "features that hold categories, such as ['brand', 3], or None")


def _several(values: Any, words: str) -> list[Feature]:
    return [_feature(key, words) for key in _listed(values, words)]


def _listed(values: Any, words: str) -> list[Any]:
    """What a list, or what is like one, holds; at least one thing."""
    plain = isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable)
    if plain or not (found := list(values)):
        raise ValueError(words)
    return found


def categorical_option() -> Any:
    """Declare ``categorical``."""
    return option(
        default=None,
        tacit=True,
        judge=_judge_categorical,
        help="features, by name or number, that hold categories and no numbers, beside those whose columns "
        "say so themselves; on the command line JSON, or names with commas between",
        parse=_keys_of_text,
    )


def _keys_of_text(text: str) -> Any:
    try:
        found = json.loads(text)
        return (
            found if isinstance(found, (list, dict)) else [found if isinstance(found, str) else text.strip()]
        )
    except ValueError:
        return [word.strip() for word in text.split(",") if word.strip()]


# Default, bounds, and what each is for: those of LightGBM, under its names.
_SUBSETS: dict[str, tuple[float, float, float, str]] = {
    "cat_smooth": (10.0, 0, 1e9, "added to what sums of gradients are divided by where categories are put in "
                   "order; a category of fewer rows goes right"),
    "cat_l2": (10.0, 0, 1e9, "added to l2 in the gain of sets of several categories"),
    "max_cat_to_onehot": (4, 1, 256, "up to so many categories one stands against the rest"),
    "max_cat_threshold": (32, 1, 256, "most categories that go left"),
    "min_data_per_group": (100, 1, 2**31 - 1, "rows between two sets of categories that are tried"),
}  # fmt: skip
SUBSET_OPTIONS = tuple(_SUBSETS)


def subset_option(name: str) -> Any:
    """Declare one of the options of splits on categories."""
    default, low, high, words = _SUBSETS[name]
    return option(default=default, low=low, high=high, tacit=True, help=words)


def check_numeric(options: Options, data: Dataset, owner: str) -> None:
    """Raise `OptionError` where an order is asked of categories, which have none."""
    for name in options["monotone"] or ():
        if data.feature_names.index(name) in data.categories:
            raise OptionError(
                f"monotone of {owner} has feature {name!r}, which holds categories: these have no order."
            )


def monotone_option() -> Any:
    """Declare ``monotone``."""
    return option(
        default=None,
        tacit=True,
        judge=_judge_monotone,
        help="features along which scores never fall (1) or never rise (-1), by name or number: a dict, or "
        "a list for all features; on the command line JSON",
    )


def interaction_option() -> Any:
    """Declare ``interaction``."""
    return option(
        default=None,
        tacit=True,
        judge=_judge_interaction,
        help="sets of features, by name or number, that may meet on a path of a tree; one in no set stays "
        "alone; on the command line JSON",
    )


def feature_weights_option() -> Any:
    """Declare ``feature_weights``."""
    return option(
        default=None,
        tacit=True,
        judge=_judge_weights,
        help="factors of the gain of splits, by name or number of the feature, 1 for the others: a dict, or "
        "a list for all features; on the command line JSON",
    )


def named(options: Options, data: Dataset, owner: str) -> Options:
    """Return these options by names of features, as a model file has them."""
    found: Options = {}
    for name in ("monotone", "feature_weights"):
        values = options[name]
        if isinstance(values, list):
            if len(values) != data.n_features:
                raise OptionError(
                    f"{name} of {owner} must have one number for each of {data.n_features} features, "
                    f"got {len(values)}."
                )
            values = dict(enumerate(values))
        if values is not None:
            pairs = [(_name(key, data, f"{name} of {owner}"), value) for key, value in values.items()]
            if len(dict(pairs)) < len(pairs):
                raise OptionError(f"{name} of {owner} has a feature by name and by number: {values!r}.")
            usual = 0 if name == "monotone" else 1.0
            values = {key: value for key, value in pairs if value != usual} or None
        found[name] = values
    if options["categorical"] is not None:
        keys = (_name(key, data, f"categorical of {owner}") for key in options["categorical"])
        found["categorical"] = list(dict.fromkeys(keys))
    groups = options["interaction"]
    if groups is not None:
        where = f"interaction of {owner}"
        groups = [list(dict.fromkeys(_name(key, data, where) for key in group)) for group in groups]
    return found | {"interaction": groups}


def _name(key: Feature, data: Dataset, where: str) -> str:
    return data.feature_names[feature_of(key, data.feature_names, where)]


def orders(values: Mapping[str, int] | None, names: Sequence[str]) -> npt.NDArray[np.int8] | None:
    """Orders as an array by feature, from `named`."""
    return None if values is None else np.array([values.get(name, 0) for name in names], dtype=np.int8)


def factors(values: Mapping[str, float] | None, names: Sequence[str]) -> FloatArray | None:
    """Factors as an array by feature, from `named`."""
    return None if values is None else np.array([values.get(name, 1.0) for name in names])


def together(groups: Sequence[Sequence[str]] | None, names: Sequence[str]) -> ByteArray | None:
    """Sets of features as 0 or 1 (sets x features), from `named`; a feature in none has one of its own."""
    if groups is None:
        return None
    listed = {name for group in groups for name in group}
    every = [*map(set, groups), *({name} for name in names if name not in listed)]
    return np.array([[name in group for name in names] for group in every], dtype=np.uint8)


def limits_of(options: Options, data: Dataset) -> LimitOptions:
    """Return what a ranker's options ask of splits and leaves, features by their numbers in this data."""
    names = data.feature_names
    numbers = ("l1", "l2", "min_sum_hessian", "min_gain", "max_depth", "colsample_node", "extra_trees")
    return LimitOptions(
        **{name: options[name] for name in (*numbers, *SUBSET_OPTIONS)},
        feature_weights=factors(options["feature_weights"], names),
        monotone=orders(options["monotone"], names),
        interaction=together(options["interaction"], names),
    )
