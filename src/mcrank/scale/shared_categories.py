"""Categories of rows that lie in several places: every place learns the names of all, and one code for each.

A code is the place of a name among those that some row has, wherever it is, so a model knows the categories
it would know of all rows together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from mcrank.data.alignment import with_parts
from mcrank.data.categories import Keys, checked_names, features_of, recoded, with_numbers
from mcrank.data.dataset import Dataset
from mcrank.errors import DataError
from mcrank.sums import Sums


def share_categories(data: Dataset, keys: Keys | None, sums: Sums) -> Dataset:
    """Return rows of one place with the categories of all; numbers of the features in ``keys`` are some too.

    It is ``data`` itself where its categories are those already.
    """
    where, names = "categorical", data.feature_names
    X, found = with_numbers(data.X, data.categories, features_of(keys or (), names, where), names, where)
    told = [_told(text) for text in sums.gather(_text({f: _used(X[:, f], found[f]) for f in found}))]
    every = sorted({f for names in told for f in names})
    if not every:
        return data
    _check_names_alone(data, every, found, sums)
    wanted = {
        f: checked_names({name for names in told for name in names.get(f, ())}, _title(data, f))
        for f in every
    }
    if wanted == data.categories:
        return data
    X = recoded(X, found, wanted, data.feature_names, "the training data", "the others")
    return with_parts(data, X=X, categories=wanted)


def _title(data: Dataset, feature: int) -> str:
    return f"column {data.feature_names[feature]!r} of the training data"


def _check_names_alone(data: Dataset, every: list[int], found: Mapping[int, Any], sums: Sums) -> None:
    """Refuse a column that holds categories at one place and numbers at another; all must learn of it."""
    numbers = [f not in found and not np.isnan(data.X[:, f]).all() for f in every]
    for f, places in zip(every, sums.add(np.array(numbers, dtype=np.int64)).tolist(), strict=True):
        if places:
            raise DataError(
                f"{_title(data, f)} holds categories in one part and numbers in another; name it in "
                "categorical= to take all as categories."
            )


def _used(codes: Any, names: tuple[str, ...]) -> list[str]:
    """Names that some row has."""
    there = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(names)) > 0
    return [name for name, used in zip(names, there.tolist(), strict=True) if used]


def _text(names: Mapping[int, list[str]]) -> Any:
    return np.frombuffer(json.dumps(list(names.items())).encode(), dtype=np.uint8)


def _told(text: Any) -> dict[int, list[str]]:
    return dict(json.loads(bytes(text)))
