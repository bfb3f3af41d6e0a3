"""Which column is which feature: by name where both sides have names, else by position.

Names count where they were given: the column names of a table, or ``feature_names``. Those of arrays and
LETOR text are made up (f1, f2, ...) and say nothing. Where both sides have names, the order of columns does
not matter, others beside the wanted ones are not looked at, and a missing one is an error. Elsewhere position
counts, and the number of columns must fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mcrank.data.categories import Categories, Keys, features_of, id_like, present, recoded, with_numbers
from mcrank.data.dataset import Dataset, restore
from mcrank.errors import DataError, did_you_mean


def columns_of(names: Sequence[str], wanted: Sequence[str], where: str) -> list[int]:
    """Return the place in ``names`` of each wanted name; one that is missing is `DataError`.

    Examples
    --------
    >>> from mcrank.data.alignment import columns_of
    >>> columns_of(["b", "x", "a"], ["a", "b"], "X")
    [2, 0]
    >>> columns_of(["price", "age"], ["prize", "age"], "X")
    Traceback (most recent call last):
    mcrank.errors.DataError: X has no column 'prize'; did you mean 'price'?
    """
    places = {name: place for place, name in enumerate(names)}
    missing = [name for name in wanted if name not in places]
    if not missing:
        return [places[name] for name in wanted]
    more = f" and {len(missing) - 1} more of those wanted" if len(missing) > 1 else ""
    hint = did_you_mean(missing[0], names, "it has", written=repr)
    raise DataError(f"{where} has no column {missing[0]!r}{more}; {hint}")


def aligned(
    data: Dataset, names: Sequence[str], named: bool, categories: Categories | None, where: str, owner: str
) -> Dataset:
    """Return data whose columns are those called ``names`` (which count if ``named``), in that order, their
    codes those of ``categories`` (None: whatever they are).

    It is ``data`` itself where that is so already. ``owner`` says in messages who wants them.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.alignment import aligned
    >>> data = Dataset({"b": [2.0], "c": [3.0], "a": [1.0]}, y=[0], qid=[1])
    >>> aligned(data, ["a", "b"], True, {}, "valid", "the training data").X.tolist()
    [[1.0, 2.0]]
    """
    names = tuple(names)
    X, found = data.X, data.categories
    if not (named and data.named):
        check_count(data.n_features, len(names), where, owner)
    elif data.feature_names != names:
        # `take` leaves rows one behind the other in memory; indexing would not.
        places = columns_of(data.feature_names, names, where)
        X, found = np.take(X, places, axis=1), {j: found[f] for j, f in enumerate(places) if f in found}
    if categories is not None and (found or categories):
        X, found = recoded(X, found, categories, names, where, owner), dict(categories)
    # What goes by its place has no names from here on: to a ranker inside a ranker they would count.
    same = X is data.X and data.named == named
    return data if same else with_parts(data, X=X, feature_names=names, named=named, categories=dict(found))


def with_parts(data: Dataset, **others: Any) -> Dataset:
    """Return a data set with other attributes in place of some; they are not checked."""
    return restore({slot: getattr(data, slot) for slot in Dataset.__slots__} | others)


def learned(data: Dataset, categorical: Keys | None, where: str) -> Dataset:
    """Return training data whose categories are those its rows have, with the features named or numbered in
    ``categorical`` among them. It is ``data`` itself where that is so already.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.alignment import learned
    >>> learned(Dataset([[30.0], [7.0]], y=[0, 1], qid=[1, 1]), [0], "categorical").categories
    {0: ('30', '7')}
    """
    asked = features_of(categorical or (), data.feature_names, where)
    if not asked and not data.categories:
        return data
    X, categories = present(*with_numbers(data.X, data.categories, asked, data.feature_names, where))
    for f in set(id_like(X, categories)).difference(asked):
        warnings.warn(
            f"column {data.feature_names[f]!r} has {len(categories[f]):,} categories in {data.n_rows:,} "
            "rows: it looks like an id, which tells nothing about other rows. Leave it out (ignore=), "
            "call it the document id (doc_id=), or name it in categorical= of the ranker if it is meant.",
            stacklevel=2,
        )
    same = X is data.X and categories == data.categories
    return data if same else with_parts(data, X=X, categories=dict(categories))


def check_count(found: int, wanted: int, where: str, owner: str) -> None:
    """Raise `DataError` where columns go by position and their number does not fit."""
    if found != wanted:
        # Of X these are scikit-learn's own words, which its users search for.
        subject, which = ("X", f" ({where})") if where.startswith("X of ") else (where, "")
        raise DataError(
            f"{subject} has {found} features, but {owner} is expecting {wanted} features as input{which}; "
            "give the same columns."
        )


def names_look_made_up(names: Sequence[str]) -> bool:
    """Whether names are those that arrays and LETOR text get: f1, f2, ... (or f0, f1, ...).

    Examples
    --------
    >>> from mcrank.data.alignment import names_look_made_up
    >>> names_look_made_up(["f1", "f2"]), names_look_made_up(["f2", "f1"])
    (True, False)
    """
    first = names[0].removeprefix("f")
    if not (first.isascii() and first.isdecimal()):
        return False
    return all(name == f"f{number}" for number, name in enumerate(names, start=int(first)))
