"""Which column is which feature: by name where both sides have names, else by position.

Names count where they were given: the column names of a table, or ``feature_names``. Those of arrays and
LETOR text are made up (f1, f2, ...) and say nothing. Where both sides have names, the order of columns does
not matter, others beside the wanted ones are not looked at, and a missing one is an error. Elsewhere position
counts, and the number of columns must fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mcrank.arrays import FeatureArray
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


def aligned(data: Dataset, names: Sequence[str], named: bool, where: str, owner: str) -> Dataset:
    """Return data whose columns are those called ``names`` (which count if ``named``), in that order.

    It is ``data`` itself where that is so already. ``owner`` says in messages who wants them.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.alignment import aligned
    >>> data = Dataset({"b": [2.0], "c": [3.0], "a": [1.0]}, y=[0], qid=[1])
    >>> aligned(data, ["a", "b"], True, "valid", "the training data").X.tolist()
    [[1.0, 2.0]]
    """
    names = tuple(names)
    if not (named and data.named):
        check_count(data.n_features, len(names), where, owner)
        # What goes by its place has no names from here on: to a ranker inside a ranker they would count.
        return data if data.named == named else _with(data, data.X, names, named)
    if data.feature_names == names:
        return data
    # `take` leaves rows one behind the other in memory; indexing would not.
    return _with(data, np.take(data.X, columns_of(data.feature_names, names, where), axis=1), names, True)


def _with(data: Dataset, X: FeatureArray, names: tuple[str, ...], named: bool) -> Dataset:
    slots = {slot: getattr(data, slot) for slot in Dataset.__slots__}
    return restore(slots | {"X": X, "feature_names": names, "named": named})


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
