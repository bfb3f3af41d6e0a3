"""`Column`: what one column of any table or array holds, and the rule by which it becomes numbers.

Whole numbers stay whole where others are missing, so that an id never passes through a float.
"""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from mcrank.arrays import Array, BoolArray
from mcrank.errors import DataError, McrankError

_WORDS = {
    "U": "text", "S": "bytes", "T": "text", "M": "times", "m": "durations", "c": "complex numbers",
    "V": "records or bytes",
}  # fmt: skip
# The missing marks of pandas, which this module must not import.
_MISSING_TYPES = ("NAType", "NaTType")


@dataclass(frozen=True)
class Column:
    """Values with nothing lost.

    Attributes
    ----------
    values : ndarray
        Of dtype object where NumPy has no dtype for them.
    missing : ndarray of bool or None
        Rows without a value (what ``values`` has there means nothing); None when every row has one.
    categorical : bool
        Whether the source calls them categories.
    """

    values: Array
    missing: BoolArray | None = None
    categorical: bool = False


def is_missing(value: Any) -> bool:
    """Tell whether one object stands for nothing: None, NaN, or a mark of pandas."""
    return (
        value is None
        or (isinstance(value, (float, np.floating)) and bool(value != value))
        or (isinstance(value, Decimal) and value.is_nan())
        or type(value).__name__ in _MISSING_TYPES
    )


def missing_rows(values: Array) -> BoolArray | None:
    """Rows of an object array that hold nothing; None when there are none."""
    maybe = (type(None), float, np.floating, Decimal)
    kinds = set(map(type, values.tolist()))
    odd = {kind for kind in kinds if issubclass(kind, maybe) or kind.__name__ in _MISSING_TYPES}
    if not odd:
        return None
    rows = np.fromiter((type(v) in odd and is_missing(v) for v in values.tolist()), np.bool_, len(values))
    return rows if rows.any() else None


def object_array(values: Iterable[Any]) -> Array:
    """The objects themselves as an array: of tuples, NumPy's own conversions would make a matrix."""
    return np.fromiter(values, dtype=object)


def refuse_masked(values: Any, where: str) -> None:
    """Raise `DataError` for the first masked entry: NumPy's conversions use it as if it were not masked."""
    # Asked this way because `numpy.ma` is not loaded unless somebody uses it.
    masked = getattr(values, "mask", False) if isinstance(values, np.ndarray) else False
    if masked is not False and np.any(masked):
        row = int(np.argwhere(np.broadcast_to(masked, values.shape))[0][0])
        raise DataError(f"{where} is masked at row {row}; give it a value there, or leave the row out.")


def to_numbers(column: Column, where: str, hint: str = "give it as numbers") -> Array:
    """Values as an array of real numbers (or booleans), NaN where they are missing; else `DataError`.

    Text is not a number even when it looks like one, nor are times, durations and categories.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.data.columns import Column, to_numbers
    >>> to_numbers(Column(np.array([1, None, True], dtype=object)), "y").tolist()
    [1.0, nan, 1.0]
    """
    values, missing = column.values, column.missing
    if column.categorical:
        raise DataError(f"{where} is not numeric: it holds categories; {hint}.")
    if values.dtype == object:
        return _object_numbers(values, missing, where, hint)
    if values.dtype.kind not in "fiub":
        word = _WORDS.get(values.dtype.kind, "values of another kind")
        raise DataError(f"{where} is not numeric: it holds {word} ({values.dtype}); {hint}.")
    if missing is not None and missing.any():
        values = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
        values[missing] = np.nan
    return values


def _object_numbers(values: Array, missing: BoolArray | None, where: str, hint: str) -> Array:
    flat = values.ravel()
    if missing is not None:
        flat = flat.copy()
        flat[missing.ravel()] = None
    listed = flat.tolist()
    real = (numbers.Real, Decimal, np.bool_, np.integer, np.floating)
    for kind in sorted(set(map(type, listed)), key=lambda kind: kind.__name__):
        # NumPy calls its durations integers.
        number = issubclass(kind, real) and not issubclass(kind, np.timedelta64)
        if not (number or kind is type(None) or kind.__name__ == "NAType"):
            places = [i for i, v in enumerate(listed) if type(v) is kind]
            # Of texts, most of which may be numbers, the one that made texts of all of them is to blame.
            first = next((i for i in places if not _is_numeral(listed[i])), places[0])
            row = int(np.unravel_index(first, values.shape)[0])
            found = f"{kind.__name__} {shown(listed[first])} at row {row}"
            raise DataError(f"{where} is not numeric: it holds {found}; {hint}.")
    out = np.empty(len(listed), dtype=np.float64)
    for i, value in enumerate(listed):
        try:
            out[i] = np.nan if is_missing(value) else float(value)
        except OverflowError:
            out[i] = np.inf if value > 0 else -np.inf
    return out.reshape(values.shape)


def _is_numeral(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str)


def shown(value: Any) -> str:
    """A value as messages show it: short, and nothing in it that a terminal would obey."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextlib.contextmanager
def foreign_errors(what: str) -> Iterator[None]:
    """Turn whatever a library raises on damaged or odd data into `DataError`."""
    try:
        yield
    except McrankError:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise DataError(f"{what}: {first.rstrip('.')[:300]}.") from None
