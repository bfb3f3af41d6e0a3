"""Ids of queries and documents are identities: integers or texts, taken exactly, never through floats.

The rule, which docs/reference/data.md tells users:

- the ids of one column (of all files read together) are of one kind: integers of any size, texts, or tuples
  of these; kinds are never mixed, as 7 and "7" would be two queries to some and one to others;
- where a file has only text (CSV, TSV, LETOR), the ids are integers when every one is written as Python
  writes an integer, else texts, just as they stand there: 007, 1e5, +7 and 12:30 make texts;
- a column of floats or decimals is one of integers if all of them are whole and exact; a column of bytes is
  the text they encode;
- a missing id, a truth value, a time and anything else is an error that names the row.

In memory integers are an int64 array, or Python integers in an object array where one does not fit; texts and
tuples are objects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from mcrank.arrays import Array
from mcrank.data.columns import Column, is_missing, missing_rows, object_array, shown
from mcrank.data.tables import column_of
from mcrank.errors import DataError

IdArray = Array

# Python converts texts of at least so many digits, whatever its limit is set to.
_CANONICAL = re.compile(r"0|-?[1-9][0-9]{0,639}")
_INT64 = np.iinfo(np.int64)
_KINDS = {int: "integers", str: "texts", tuple: "tuples"}


def check_ids(
    values: Any, where: str, rows: int | None = None, *, blank: bool = False, copy: bool = True
) -> IdArray:
    """Return ids by the rule above, or raise `DataError`.

    Parameters
    ----------
    values : array-like, series or Arrow array
        One id per row.
    where : str
        What messages call them.
    rows : int, optional
        How many there must be.
    blank : bool
        Whether an empty text means "no id", beside ids of any kind; otherwise it is a missing one.
    copy : bool
        Whether the result must not be the caller's own array.

    Examples
    --------
    >>> from mcrank.data.ids import check_ids
    >>> check_ids([2**63 + 1, 2**63, -1], "qid").tolist()
    [9223372036854775809, 9223372036854775808, -1]
    >>> check_ids([7, "7"], "qid")
    Traceback (most recent call last):
    mcrank.errors.DataError: qid has integers (7 at row 0) and texts ('7' at row 1); make all ids one kind.
    """
    column = column_of(values, where)
    found = column.values
    if found.ndim != 1 or (rows is not None and len(found) != rows):
        wanted = "" if rows is None else f": {rows} rows"
        raise DataError(f"{where} must have one value per row{wanted}, got shape {found.shape}.")
    return column_ids(column, where, blank=blank, copy=copy)


def column_ids(column: Column, where: str, *, blank: bool = False, copy: bool = True) -> IdArray:
    """Ids of a column, as `check_ids` gives them."""
    values, missing = column.values, column.missing
    kind = values.dtype.kind
    if kind in "TU":
        values = values.astype(object)
    elif kind == "O" and missing is None:
        missing = missing_rows(values)
    elif kind == "f" and missing is None:
        missing = np.isnan(values)
    if missing is not None and missing.any():
        raise _missing(where, int(np.argmax(missing)), blank)
    if kind == "i":
        return values.astype(np.int64, copy=copy)
    if kind == "u":
        return _integers(values)
    if kind == "f":
        return _of_floats(values, where)
    if kind == "S":
        return _of_bytes(values.tolist(), where)
    if values.dtype != object:
        raise _refused(where, f"{values.dtype} values", "")
    return _of_objects(values, where, blank)


def ids_of_texts(texts: Sequence[str]) -> IdArray:
    """Ids of a file that has only text: integers when every one is written as an integer would be.

    Examples
    --------
    >>> from mcrank.data.ids import ids_of_texts
    >>> ids_of_texts(["7", "18446744073709551615"]).tolist(), ids_of_texts(["7", "007"]).tolist()
    ([7, 18446744073709551615], ['7', '007'])
    """
    match = _CANONICAL.fullmatch
    if all(match(text) for text in set(texts)):
        return _integers(list(map(int, texts)))
    return object_array(texts)


def is_integer(text: str) -> bool:
    """Whether a text is an integer as Python writes it, and an id therefore one.

    Examples
    --------
    >>> from mcrank.data.ids import is_integer
    >>> is_integer("-7"), is_integer("007")
    (True, False)
    """
    return _CANONICAL.fullmatch(text) is not None


def join_ids(parts: Sequence[tuple[str, IdArray]], what: str) -> IdArray:
    """Put ids of several sources one behind the other; ``parts`` have the name of each, for messages."""
    kinds: dict[str, tuple[str, Any]] = {}
    for where, ids in parts:
        if kind := id_kind(ids):
            kinds.setdefault(kind, (where, _first(ids)))
    if len(kinds) > 1:
        (one, (where, a)), (other, (elsewhere, b)) = list(kinds.items())[:2]
        raise DataError(
            f"{what} are {one} in {where} ({a!r}) and {other} in {elsewhere} ({b!r}); "
            "ids of one set must be of one kind."
        )
    arrays = [ids for _, ids in parts]
    if len({ids.dtype for ids in arrays}) > 1:
        # NumPy itself would make floats of integers of two types.
        return object_array([value for ids in arrays for value in ids.tolist()])
    return np.concatenate(arrays)


def plain_ids(parts: Sequence[IdArray]) -> list[IdArray]:
    """Ids of several sets as all of them can be stored and shown: int64 everywhere, or texts everywhere.

    Where one fold's file has only integers and another's has texts, 7 of the one was written as the other's
    "7": they are one id, and meet here as such.
    """
    if all(ids.dtype == np.int64 for ids in parts):
        return list(parts)
    return [object_array(map(str, ids.tolist())) for ids in parts]


def id_kind(ids: IdArray) -> str:
    """What ids are: integers, texts or tuples; an empty text where no row has any."""
    if ids.dtype != object:
        return "integers"
    first = _first(ids)
    return "" if first is None else _KINDS[type(first)]


def id_texts(values: Any, where: str) -> list[str]:
    """Ids as the texts that TREC files know them by: 7 is "7" there."""
    ids = check_ids(values, where)
    if id_kind(ids) == "tuples":
        raise DataError(
            f"{where} has tuples, such as {_first(ids)!r}; ids of TREC data are texts or integers."
        )
    return list(map(str, ids.tolist()))


def _first(ids: IdArray) -> Any:
    """First id that is not blank."""
    return next((value for value in ids.tolist() if value != ""), None)


def _of_objects(values: Array, where: str, blank: bool) -> IdArray:
    listed = values.tolist()
    found = set(map(type, listed))
    kinds = {_kind_of(kind) for kind in found}
    if blank and str in kinds and len(kinds) > 1:
        known = [value for value in listed if value != ""]
        if known and not any(isinstance(value, str) for value in known):
            ids = iter(_of_objects(object_array(known), where, blank=False).tolist())
            return object_array([value if value == "" else next(ids) for value in listed])
    if len(kinds) > 1:
        raise _mixed(listed, where)
    kind = next(iter(kinds), str)
    if kind is int:
        return _integers([int(value) for value in listed])
    if kind is str:
        if not blank and "" in listed:
            raise _missing(where, listed.index(""), blank)
        return values.copy() if found == {str} else object_array(map(str, listed))
    if kind is float:
        return _of_floats(np.array(listed, dtype=np.float64), where)
    if kind is bytes:
        return _of_bytes(listed, where)
    if kind is Decimal:
        return _of_decimals(listed, where)
    if kind is tuple:
        return _of_tuples(listed, where)
    raise _refused(where, f"{kind.__name__} {shown(listed[0])}", " at row 0")


def _kind_of(kind: type) -> type:
    if issubclass(kind, (bool, np.bool_)):
        return bool
    if kind is np.timedelta64:  # NumPy calls it an integer
        return kind
    for known, kinds in _FAMILIES:
        if issubclass(kind, kinds):
            return known
    return kind


_FAMILIES: tuple[tuple[type, tuple[type, ...]], ...] = (
    (int, (int, np.integer)), (str, (str,)), (float, (float, np.floating)), (bytes, (bytes,)),
    (Decimal, (Decimal,)), (tuple, (tuple,)),
)  # fmt: skip


def _mixed(listed: list[Any], where: str) -> DataError:
    one = _kind_of(type(listed[0]))
    row, other = next((i, k) for i, v in enumerate(listed) if (k := _kind_of(type(v))) is not one)
    return DataError(
        f"{where} has {_word(one)} ({shown(listed[0])} at row 0) and {_word(other)} "
        f"({shown(listed[row])} at row {row}); make all ids one kind."
    )


def _integers(values: Any) -> IdArray:
    """Integers as int64, or as Python's own where one does not fit."""
    if isinstance(values, np.ndarray):
        if not len(values) or values.max() <= _INT64.max:
            return values.astype(np.int64)
        return object_array(values.tolist())
    if not values or (min(values) >= _INT64.min and max(values) <= _INT64.max):
        return np.array(values, dtype=np.int64)
    return object_array(values)


def _of_floats(values: Array, where: str) -> IdArray:
    # Beyond this, neighbouring integers are one float: what the id was is not known any more.
    limit = 2.0 ** min(np.finfo(values.dtype).nmant + 1, 53)
    bad = ~((np.abs(values) < limit) & (values == np.trunc(values)))
    if bad.any():
        row = int(np.argmax(bad))
        raise _refused(where, f"the float {float(values[row])!r}", f" at row {row}")
    return values.astype(np.int64)


def _of_decimals(values: list[Decimal], where: str) -> IdArray:
    for row, value in enumerate(values):
        if not value.is_finite() or value != value.to_integral_value() or value.adjusted() >= 640:
            raise _refused(where, f"the decimal {value}", f" at row {row}")
    return _integers([int(value) for value in values])


def _of_bytes(values: list[bytes], where: str) -> IdArray:
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(value.decode("utf-8"))
        except UnicodeDecodeError:
            raise _refused(
                where, f"bytes that are not UTF-8 text ({shown(value)})", f" at row {row}"
            ) from None
    return _of_objects(object_array(texts), where, blank=False) if texts else object_array(texts)


def _of_tuples(values: list[tuple[Any, ...]], where: str) -> IdArray:
    """Tuples of integers and texts, each place of one kind, so that (7,) and ("7",) do not meet."""
    shape: list[type] | None = None
    plain = []
    for row, value in enumerate(values):
        kinds = [_kind_of(type(item)) for item in value]
        shape = kinds if shape is None else shape
        if not value or kinds != shape or not set(kinds) <= {int, str} or any(map(is_missing, value)):
            raise _refused(
                where, f"the tuple {shown(value)}", f" at row {row} (row 0 has {shown(values[0])})"
            )
        plain.append(tuple(int(v) if k is int else str(v) for k, v in zip(kinds, value, strict=True)))
    return object_array(plain)


def _word(kind: type) -> str:
    return _KINDS.get(kind, f"values of type {kind.__name__}")


def _missing(where: str, row: int, blank: bool) -> DataError:
    hint = "use an empty text where there is none" if blank else "every row needs one"
    return DataError(f"{where} is missing at row {row}; {hint}.")


def _refused(where: str, what: str, at: str) -> DataError:
    return DataError(f"{where} has {what}{at}; ids are integers, texts, or tuples of these all of one form.")
