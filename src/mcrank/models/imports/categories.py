"""Categories of other libraries' models: their codes become places among names, as everywhere in mcrank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import IntArray
from mcrank.data.categories import MOST, checked_names
from mcrank.errors import DataError, ModelFileError
from mcrank.models.imports.planting import LooseTree


class Named(NamedTuple):
    """The categories of a feature: names, rising; codes, rising; the place of each code among the names."""

    names: tuple[str, ...]
    codes: IntArray
    places: IntArray

    def placed(self, codes: IntArray) -> IntArray:
        """Return the places of some codes, all of them known."""
        return self.places[np.searchsorted(self.codes, codes)]


def named(codes: IntArray, values: Iterable[Any], where: str) -> Named:
    """Return categories by their codes, rising, and the texts or numbers a library has for them.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.models.imports.categories import named
    >>> named(np.array([0, 1]), ["red", "blue"], "m.txt").places.tolist()
    [1, 0]
    >>> named(np.array([7, 30]), [7, 30.0], "m.txt").names
    ('30', '7')
    """
    if len(codes) > MOST:
        raise ModelFileError(f"{where} has {len(codes)} categories; a feature may have {MOST}.")
    called = [name_of(value, where) for value in values]
    try:
        names = checked_names(set(called), where)
    except DataError as error:
        raise ModelFileError(str(error)) from None
    if len(names) < len(called):
        raise ModelFileError(f"{where} has two categories of one name; names must differ.")
    place = {name: place for place, name in enumerate(names)}
    return Named(names, codes, np.array([place[name] for name in called], dtype=np.int64))


def name_of(value: Any, where: str) -> str:
    """Return what a category is called in mcrank: a text itself, a whole number by its digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.number)) and np.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    raise ModelFileError(f"{where} has a category that is neither text nor number: {value!a:.60}.")


def codes_of(trees: Iterable[LooseTree]) -> dict[int, IntArray]:
    """Return the codes that trees ask for, rising, by feature."""
    found: dict[int, list[IntArray]] = {}
    for tree in trees:
        if tree.sets:
            for feature, s in zip(tree.feature.tolist(), tree.category_set.tolist(), strict=True):
                if s >= 0:
                    found.setdefault(feature, []).append(tree.sets[s])
    return {feature: np.unique(np.concatenate(sets)) for feature, sets in found.items()}


def refuse_empty(names: Iterable[str], where: str) -> None:
    """Raise `ModelFileError` where the empty text is among categories that a library tells from missing."""
    if "" in names:
        raise ModelFileError(
            f"{where} has the empty text among its categories, which is a missing value in mcrank; call it "
            "by another name and train again."
        )


def placed(trees: Sequence[LooseTree], tables: Mapping[int, Named], where: str) -> list[LooseTree]:
    """Return trees whose sets hold places among names in place of codes."""
    return [_placed(tree, tables, where) if tree.sets else tree for tree in trees]


def _placed(tree: LooseTree, tables: Mapping[int, Named], where: str) -> LooseTree:
    numbers = np.array(tree.category_set)
    sets: list[IntArray] = []
    for node in np.flatnonzero(numbers >= 0).tolist():
        table = tables[feature := int(tree.feature[node])]
        sets.append(table.placed(tree.sets[numbers[node]]))
        refuse_empty([table.names[place] for place in sets[-1]], f"{where}: feature {feature}")
        numbers[node] = len(sets) - 1
    return tree._replace(category_set=numbers, sets=tuple(sets))
