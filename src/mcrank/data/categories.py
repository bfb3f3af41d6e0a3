"""Categories: columns whose values are names, not numbers.

In a matrix a category is its code, the place of its name among those of the feature in rising order; a row
without one has NaN. Codes mean nothing by themselves: wherever two tables meet they are matched by name, and
a name the other side does not know is as good as none. Whole numbers are called by their digits, so that 7,
7.0 and "7" are one category.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mcrank.arrays import Array, FeatureArray
from mcrank.data.columns import Column, is_missing, missing_rows, shown
from mcrank.errors import DataError, OptionError, did_you_mean
from mcrank.memory import copied
from mcrank.texts import check_texts

Categories = Mapping[int, tuple[str, ...]]  # names by feature, rising
Keys = Sequence[str | int]  # features by name, or by number from 0
MOST = 1 << 16  # categories of one feature: more are ids, which tell nothing about other rows
_FEW = 100  # categories that any feature may have without looking like ids
_EXACT = 1 << 24  # whole numbers below it are exact in float32
WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
# Numbers as people write them: 2,5 and 1'000.50 and 10 % and $3.
_BY_HAND = re.compile(r"[$€£]? ?[+-]? ?(\d{1,3}([ ,.'’]\d{3})+([.,]\d+)?|\d+([.,]\d+)?|[.,]\d+) ?[%$€£]?")
_NONE = frozenset([""])


def is_category(column: Column, nulls: Collection[str] = _NONE) -> bool:
    """Whether a column holds categories without being asked: those of its library, or texts none of which
    looks like a number (one that does is more likely a number gone wrong), unless all of them are numbers as
    people write them. What ``nulls`` has, such as nan, stands for no value, and looks like none.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import is_category
    >>> from mcrank.data.columns import Column
    >>> columns = (["red", "blue"], ["1", "x"], [1, 2], ["2,5", "10 %"])
    >>> [is_category(Column(np.array(values))) for values in columns]
    [True, False, False, False]
    """
    if column.categorical:
        return True
    if column.values.dtype.kind not in "OUT" or column.values.ndim != 1:
        return False
    missing = column.missing
    if missing is None and column.values.dtype == object:
        missing = missing_rows(column.values)
    values = (column.values if missing is None else column.values[~missing]).tolist()
    if not values or any(not issubclass(kind, str) for kind in set(map(type, values))):
        return False
    told = set(values).difference(nulls)
    return not (
        any(map(_looks_like_number, told))
        or (told and all(_BY_HAND.fullmatch(text.strip()) for text in told))
    )


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return re.match(r"\s*[+-]?0[xX]", text) is not None
    return True


def encode(
    column: Column, where: str, nulls: Collection[str] = _NONE
) -> tuple[FeatureArray, tuple[str, ...]]:
    """Return the codes of a column and the names they stand for; texts in ``nulls`` are no categories.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import encode
    >>> from mcrank.data.columns import Column
    >>> codes, names = encode(Column(np.array(["red", "blue", "red", ""])), "column 'colour'")
    >>> codes.tolist(), names
    ([1.0, 0.0, 1.0, nan], ('blue', 'red'))
    """
    values = column.values.tolist()
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):  # NumPy's own among objects
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
    seen: dict[Any, int] = {}
    try:
        at = np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64, len(values))
    except TypeError:
        raise DataError(
            f"{where} is not numeric, and holds no categories but {type(values[0]).__name__}."
        ) from None
    if (
        0 in seen or 1 in seen
    ):  # to Python True is 1: which of the two a category is called, the first row said
        kinds = set(map(type, values))
        if bool in kinds and not kinds.isdisjoint((int, float)) and _numbers_beside(values):
            raise DataError(f"{where} mixes truth values and numbers; give one of them, or texts.")
    used = np.ones(len(seen), dtype=bool)
    if column.missing is not None:
        used = np.bincount(at[~column.missing], minlength=len(seen)) > 0
    named: list[str | None] = []
    for value, is_used in zip(seen, used.tolist(), strict=True):
        name = _name(value, where) if is_used and not is_missing(value) else None
        named.append(None if name in nulls else name)
    names = checked_names({name for name in named if name is not None}, where)
    places = {name: place for place, name in enumerate(names)}
    codes = np.array([np.nan if name is None else places[name] for name in named], dtype=np.float32)[at]
    if column.missing is not None:
        codes[column.missing] = np.nan
    return codes, names


def _numbers_beside(values: list[Any]) -> bool:
    """Whether some value is a number, neither missing nor a truth value."""
    return any(type(value) in (int, float) and not is_missing(value) for value in values)


def _name(value: Any, where: str) -> str:
    """What a category is called."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float) and np.isfinite(value):
        return str(int(value)) if value == int(value) else repr(value)
    raise DataError(
        f"{where} is not numeric, and holds {type(value).__name__} {shown(value)}; categories are texts or "
        "numbers."
    )


def checked_names(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Return names of categories in rising order; too many, or one that is no proper text, is `DataError`."""
    found = tuple(sorted(names))
    if len(found) > MOST:
        raise DataError(
            f"{where} has {len(found)} categories; a feature may have {MOST}. An id is no feature: leave it "
            "out, or pool rare ones."
        )
    check_texts(found, "category")
    return found


def whole_numbers(values: Array, where: str) -> tuple[FeatureArray, tuple[str, ...]]:
    """`encode` of numbers that stand for categories: whole ones, NaN where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import whole_numbers
    >>> whole_numbers(np.array([30.0, 7.0, np.nan]), "feature 3")[1]
    ('30', '7')
    """
    known = ~np.isnan(values)
    bad = known & ((values != np.floor(values)) | (np.abs(values) >= _EXACT))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"{where} has {float(values[row])!r} at row {row}; categories in a matrix are whole numbers "
            f"below {_EXACT} (in a table they may be texts)."
        )
    return encode(Column(values.astype(np.float64), None if known.all() else ~known), where)


def with_numbers(
    X: FeatureArray, categories: Categories, features: Iterable[int], names: Sequence[str], where: str
) -> tuple[FeatureArray, dict[int, tuple[str, ...]]]:
    """Return a matrix and its categories with ``features``, which ``where`` names, among them: where they are
    numbers, the whole numbers they have are their categories.
    """
    found = dict(categories)
    new = [f for f in features if f not in found]
    if new:
        X = copied(X)
    for f in new:
        X[:, f], found[f] = whole_numbers(X[:, f], f"feature {names[f]!r}, which {where} names,")
    return X, found


def recoded(
    X: FeatureArray, found: Categories, wanted: Categories, names: Sequence[str], where: str, owner: str
) -> FeatureArray:
    """Return ``X``, whose categories are ``found``, with the codes of ``wanted``: matched by name, NaN for a
    category unknown there. It is ``X`` itself where they are the same already.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import recoded
    >>> X = np.array([[0.0], [1.0]], dtype=np.float32)
    >>> recoded(X, {0: ("blue", "green")}, {0: ("black", "blue")}, ["colour"], "X", "the ranker").tolist()
    [[1.0], [nan]]
    """
    for f in found:
        if f not in wanted:
            some = f", such as {found[f][0]!r}" if found[f] else ""
            raise DataError(
                f"column {names[f]!r} of {where} is not numeric: it holds categories{some}; to {owner} it "
                "holds numbers."
            )
    changed = [f for f in wanted if found.get(f) != wanted[f]]
    if changed:
        X = copied(X)
    for f in changed:
        if f not in found and wanted[f] and not all(map(WHOLE.fullmatch, wanted[f])):
            if not np.isnan(X[:, f]).all():
                raise DataError(
                    f"column {names[f]!r} of {where} holds numbers; to {owner} it holds categories, such as "
                    f"{wanted[f][0]!r}, which are matched by name: give names, not codes."
                )
            continue
        known = int((~np.isnan(X[:, f])).sum())
        X[:, f] = _matched(X[:, f], found.get(f), wanted[f])
        if known > 1 and len(found.get(f, "ab")) > 1 and np.isnan(X[:, f]).all():
            warnings.warn(
                f"no category of column {names[f]!r} of {where} is known to {owner}, which has such as "
                f"{wanted[f][:3]!r}; all count as missing.",
                stacklevel=2,
            )
    return X


def _matched(values: Array, own: tuple[str, ...] | None, wanted: tuple[str, ...]) -> FeatureArray:
    """Codes among ``wanted`` of what is called ``own`` (None: numbers, called by their digits)."""
    places = {name: place for place, name in enumerate(wanted)}
    if own is None:
        levels, at = np.unique(values, return_inverse=True)
        own = tuple(str(int(v)) if v == np.floor(v) and np.isfinite(v) else "" for v in levels.tolist())
    else:
        at = np.where(np.isnan(values), len(own), values).astype(np.int64)
    digits = all(map(WHOLE.fullmatch, wanted))  # then 007 is 7
    found = [places.get(_digits(name) if digits else name, np.nan) for name in own]
    return np.array([*found, np.nan], dtype=np.float32)[at]


def _digits(name: str) -> str:
    return str(int(name)) if re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", name, re.ASCII) else name


def joined(
    parts: Sequence[tuple[FeatureArray, Categories]], names: Sequence[str], where: str
) -> tuple[list[FeatureArray], Categories]:
    """Return matrices with one table of names for all, and that table.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import joined
    >>> one = np.zeros((1, 1), dtype=np.float32)
    >>> joined([(one, {0: ("b",)}), (one, {0: ("a",)})], ["colour"], "the files")[1]
    {0: ('a', 'b')}
    """
    every = sorted({f for _, categories in parts for f in categories})
    for f in every:
        for X, categories in parts:
            if f not in categories and not np.isnan(X[:, f]).all():
                raise DataError(
                    f"column {names[f]!r} of {where} holds categories in one part and numbers in another; "
                    "name it in categorical= to take all as categories."
                )
    tables = {
        f: checked_names({name for _, c in parts for name in c.get(f, ())}, f"column {names[f]!r} of {where}")
        for f in every
    }
    return [recoded(X, c, tables, names, where, "the others") for X, c in parts], tables


def present(X: FeatureArray, categories: Categories) -> tuple[FeatureArray, Categories]:
    """Return a matrix and its categories without those that no row has: to whoever learns from it they are
    unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import present
    >>> X, left = present(np.array([[2.0], [0.0]], dtype=np.float32), {0: ("a", "b", "c")})
    >>> X.tolist(), left
    ([[1.0], [0.0]], {0: ('a', 'c')})
    """
    kept: dict[int, tuple[str, ...]] = {}
    for f, names in categories.items():
        codes = X[:, f]
        used = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=len(names)) > 0
        kept[f] = names if used.all() else tuple(np.array(names, dtype=object)[used])
    return recoded(X, categories, kept, [""] * X.shape[1], "X", ""), kept


def id_like(X: FeatureArray, categories: Categories) -> list[int]:
    """Return the features whose categories are ids, more likely than not: there are many, and hardly two rows
    share one, so that it tells nothing about other rows. Whole numbers are meant: someone named them.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.categories import id_like
    >>> X = np.column_stack([np.arange(200), np.arange(200) % 5]).astype(np.float32)
    >>> id_like(X, {0: tuple(f"d{k:03}" for k in range(200)), 1: ("a", "b", "c", "d", "e")})
    [0]
    """
    many = [f for f, n in categories.items() if len(n) > _FEW and not all(map(WHOLE.fullmatch, n))]
    return [f for f in many if 2 * len(categories[f]) > int((~np.isnan(X[:, f])).sum())]


def features_of(keys: Keys, names: Sequence[str], where: str) -> list[int]:
    """Return the features that are named or numbered, rising; what there is not is `OptionError`.

    Examples
    --------
    >>> from mcrank.data.categories import features_of
    >>> features_of(["price", 0], ["age", "price"], "categorical")
    [0, 1]
    """
    return sorted({feature_of(key, names, where) for key in keys})


def feature_of(key: str | int, names: Sequence[str], where: str) -> int:
    """Return the feature called so, or of that number (from 0), which may be a text as in JSON."""
    if isinstance(key, str) and key in names:
        return names.index(key)
    number = int(key) if isinstance(key, int) or (key.isascii() and key.isdecimal()) else -1
    if 0 <= number < len(names):
        return number
    if isinstance(key, int) or key.isdecimal():
        raise OptionError(f"{where} has feature {key}; the data has 0 to {len(names) - 1}.")
    hint = did_you_mean(key, names, "the data has", written=repr)
    raise OptionError(f"{where} has feature {key!r}; {hint}")
