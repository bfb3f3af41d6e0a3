"""Rows of a request become a matrix: from JSON by name or by place, from npy, from an Arrow stream.

Columns go by name as everywhere in mcrank; null is a missing value. Rows of numbers, which is what nearly all
requests are, are put together without asking each value what it is; any other goes the way of tables, which
names what it found.
"""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.data.alignment import columns_of
from mcrank.data.categories import Categories, recoded
from mcrank.data.columns import foreign_errors, object_array
from mcrank.data.tables import DOC_NAMES, as_features
from mcrank.errors import DataError
from mcrank.serve.arrow import read_stream
from mcrank.serve.number_table import NumberTable
from mcrank.serve.problems import BAD, TOO_LARGE, UNPROCESSABLE, Problem
from mcrank.serve.settings import Limits
from mcrank.serve.strict_json import kind_of, whole

if TYPE_CHECKING:
    from mcrank.rankers.base import Ranker

ARROW, NPY = "application/vnd.apache.arrow.stream", "application/x-npy"
_MISSING = float("nan")
_COMPARED = 200
_HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class Rows(NamedTuple):
    """The rows of one query, as a ranker takes them, and what they are called (None where nobody said)."""

    values: FeatureArray
    ids: Sequence[str | int] | None = None


class Wanted(NamedTuple):
    """Who wants rows: the names of its features; for messages who it is, and where the rows are.

    A model that was trained without names has those that /models lists: f1, f2, ...
    """

    names: tuple[str, ...]
    owner: str
    where: str
    limits: Limits
    categories: Categories = MappingProxyType({})

    @classmethod
    def of(cls, ranker: Ranker, owner: str, where: str, limits: Limits) -> Wanted:
        """What a ranker wants."""
        return cls(ranker.feature_names_, owner, where, limits, ranker.categories_)

    @property
    def none(self) -> Rows:
        """No rows: a query that found nothing."""
        return Rows(np.empty((0, len(self.names)), dtype=np.float32))

    def check(self, rows: int, columns: int) -> None:
        """Raise `Problem` where there are more than the limits allow."""
        for count, most, what in (
            (rows, self.limits.rows, "rows"),
            (columns, self.limits.columns, "columns"),
        ):
            if count > most:
                raise Problem(
                    TOO_LARGE, f"{self.where} has {count} {what}; at most {most} are answered at a time."
                )

    def refuse_width(self, found: int, row: int) -> None:
        """Raise `Problem` where a row by place has too many or too few values."""
        if found != len(self.names):
            raise Problem(
                UNPROCESSABLE,
                f"row {row} of {self.where} has {found} values, but {self.owner} is expecting "
                f"{len(self.names)} features; give the columns that /models lists, in that order or by name.",
            )


def from_json(found: Mapping[str, Any], wanted: Wanted) -> Rows:
    """Return the rows under ``rows`` (arrays, or objects by name) or ``columns`` (arrays by name).

    Examples
    --------
    >>> from mcrank.serve.rows import Wanted, from_json
    >>> from mcrank.serve.settings import Limits
    >>> wanted = Wanted(("a", "b"), "the model", "rows", Limits())
    >>> from_json({"rows": [{"b": 2, "doc_id": "x", "a": None}]}, wanted)
    Rows(values=array([[nan,  2.]], dtype=float32), ids=['x'])
    """
    table = found.get("columns", found.get("rows"))
    if isinstance(table, NumberTable):
        ready = _of_table(table, wanted, "columns" in found)
        if ready is not None:
            return ready
        found = table.ordinary()
    if "columns" in found:
        return _of_columns(found["columns"], wanted)
    rows = found["rows"]
    if not isinstance(rows, list):
        raise Problem(BAD, f"{wanted.where} must be an array of rows, got {kind_of(rows)}.")
    if not rows:
        return wanted.none
    wanted.check(len(rows), 0)
    kinds = set(map(type, rows))
    if kinds == {dict}:
        return _of_objects(rows, wanted)
    if kinds - {list}:
        place = next(
            place for place, row in enumerate(rows) if type(row) not in (list, dict) or dict in kinds
        )
        raise Problem(
            BAD,
            f"{wanted.where} must be arrays of values, or objects of values by name, all alike; row {place} "
            f"is {kind_of(rows[place])}.",
        )
    for width in set(map(len, rows)):
        wanted.refuse_width(width, next(place for place, row in enumerate(rows) if len(row) == width))
    return Rows(_numbers(rows, wanted.names, wanted))


def _of_table(table: NumberTable, wanted: Wanted, by_column: bool) -> Rows | None:
    """Rows that are a matrix already; None where texts are among the features, or numbers name the rows."""
    values, names = table.values, table.names
    wanted.check(len(values), 0 if names is None else len(names))
    if wanted.categories:
        return None
    if names is None:
        wanted.refuse_width(values.shape[1], 0)
        return Rows(values)
    _check_names(names, wanted, "" if by_column else "row 0 of ")
    places = columns_of(names, wanted.names, "")
    aside = [place for place, name in enumerate(names) if name in DOC_NAMES and name not in wanted.names]
    ids = table.texts.get(aside[0]) if aside else None
    if (aside and ids is None) or not table.texts.keys().isdisjoint(places):
        return None
    chosen = values if names == wanted.names else np.take(values, places, axis=1)
    return Rows(np.ascontiguousarray(chosen), ids)


def _of_objects(rows: list[dict[str, Any]], wanted: Wanted) -> Rows:
    wanted.check(len(rows), max(map(len, rows)))
    order = tuple(rows[0])
    aside = [name for name in order if name in DOC_NAMES and name not in wanted.names]
    if len(order) <= len(wanted.names) and all(tuple(row) == order for row in rows):
        # All rows name the same columns in the same order, as one program writes them.
        _check_names(order, wanted, "row 0 of ")
        values = _numbers((row.values() for row in rows), order, wanted)
    else:
        for place, row in enumerate(rows):
            _check_names(tuple(row), wanted, f"row {place} of ")
        values = _numbers(([row[name] for name in wanted.names] for row in rows), wanted.names, wanted)
    ids = None
    if aside and all(aside[0] in row for row in rows):
        ids = check_ids([row[aside[0]] for row in rows], f"{aside[0]} of {wanted.where}")
    return Rows(values, ids)


def _check_names(found: tuple[str, ...], wanted: Wanted, which: str = "") -> None:
    """Raise `Problem` where a column that is wanted is missing."""
    known = set(found)
    if not all(name in known for name in wanted.names):
        try:
            # A stranger may send ten thousand names: only the first are compared with a missing one.
            names = dict.fromkeys((*found[:_COMPARED], *(name for name in wanted.names if name in known)))
            columns_of(list(names), wanted.names, which + wanted.where)
        except DataError as error:
            raise Problem(UNPROCESSABLE, str(error)) from None


def _of_columns(columns: Any, wanted: Wanted) -> Rows:
    where = wanted.where
    odd = [columns] if not isinstance(columns, dict) else [c for c in columns.values() if type(c) is not list]
    if odd:
        raise Problem(BAD, f"{where} must be an object of arrays by name, got {kind_of(odd[0])}.")
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise Problem(
            UNPROCESSABLE,
            f"{where} has arrays of {min(lengths)} and of {max(lengths)} values; make them one length.",
        )
    rows = max(lengths, default=0)
    wanted.check(rows, len(columns))
    _check_names(tuple(columns), wanted)
    if rows == 0:
        return wanted.none
    flat = list(chain.from_iterable(columns[name] for name in wanted.names))
    matrix = None if wanted.categories else _plain(flat, (len(wanted.names), rows))
    if matrix is None:
        values = _by_table({name: columns[name] for name in wanted.names}, wanted)
    else:
        values = np.ascontiguousarray(matrix.T)
    aside = [name for name in columns if name in DOC_NAMES and name not in wanted.names]
    ids = check_ids(columns[aside[0]], f"{aside[0]} of {where}") if aside else None
    return Rows(values, ids)


def _numbers(lines: Iterable[Iterable[Any]], names: tuple[str, ...], wanted: Wanted) -> FeatureArray:
    """Rows whose columns are called ``names``, which are those wanted in some order, as a matrix."""
    flat = list(chain.from_iterable(lines))
    matrix = None if wanted.categories else _plain(flat, (-1, len(names)))
    if matrix is None:
        columns = object_array(flat).reshape(-1, len(names)).T.tolist()
        return _by_table(dict(zip(names, columns, strict=True)), wanted)
    return matrix if names == wanted.names else np.take(matrix, columns_of(names, wanted.names, ""), axis=1)


def _plain(flat: list[Any], shape: tuple[int, int]) -> FeatureArray | None:
    """Numbers and nulls as a matrix of float32; None where anything else is among them."""
    try:
        values = array("d", flat)
    except TypeError:
        try:
            values = array("d", [_MISSING if value is None else value for value in flat])
        except TypeError:
            return None
    with np.errstate(over="ignore"):
        matrix: FeatureArray = np.frombuffer(values, dtype=np.float64).astype(np.float32).reshape(shape)
    return None if np.isinf(matrix).any() else matrix


def check_ids(ids: Any, where: str) -> list[str | int]:
    """Return names of rows as they were given: texts or whole numbers; else `Problem`."""
    if not isinstance(ids, list):
        raise Problem(BAD, f"{where} must be an array of texts or whole numbers, got {kind_of(ids)}.")
    found: list[str | int] = [whole(one) for one in ids]
    odd = [place for place, one in enumerate(found) if type(one) not in (str, int)]
    if odd:
        raise Problem(
            BAD,
            f"{where} must be texts or whole numbers of at most 64 bits; at {odd[0]} there is "
            f"{kind_of(ids[odd[0]])}.",
        )
    return found


def from_npy(body: bytes, wanted: Wanted) -> Rows:
    """Return the rows of a matrix as NumPy's `save` writes it; only numbers, and nothing is unpickled."""
    stream = io.BytesIO(body)
    try:
        with foreign_errors(f"{wanted.where} is not in the format npy"):
            version = np.lib.format.read_magic(stream)
            shape, fortran, dtype = _HEADERS[version](stream, max_header_size=4096)
    except DataError as error:
        raise Problem(BAD, str(error)) from None
    rest = memoryview(body)[stream.tell() :]
    if dtype.kind not in "fiub" or len(shape) != 2:
        raise Problem(
            BAD, f"{wanted.where} must be a matrix of numbers (rows, features), got {dtype} of shape {shape}."
        )
    wanted.check(*shape)
    if min(shape) < 0 or shape[0] * shape[1] * dtype.itemsize != len(rest):
        raise Problem(
            BAD, f"{wanted.where} says shape {shape} of {dtype}, and {len(rest)} bytes follow; send all."
        )
    wanted.refuse_width(shape[1], 0)
    if shape[0] == 0:
        return wanted.none
    values = np.frombuffer(rest, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    return Rows(_by_table(values, wanted))


def from_arrow(body: bytes, wanted: Wanted) -> Rows:
    """Return the rows of an Arrow stream, columns by name."""
    table, names = read_stream(body, wanted.where, wanted.check)
    if table.num_rows == 0:
        return wanted.none
    if len(set(names)) < len(names):
        raise Problem(BAD, f"{wanted.where} has two columns of one name; names must differ.")
    _check_names(tuple(names), wanted)
    values = _by_table(table.select(list(wanted.names)), wanted)
    aside = [name for name in names if name in DOC_NAMES and name not in wanted.names]
    ids = check_ids(table.column(aside[0]).to_pylist(), f"{aside[0]} of {wanted.where}") if aside else None
    return Rows(values, ids)


def _by_table(source: Any, wanted: Wanted) -> FeatureArray:
    """Rows through the entrance that all tables and arrays have: it says what is wrong with a value."""
    try:
        found = as_features(source, wanted.where, wanted.names, texts=wanted.categories)
        return recoded(
            found.values, found.categories, wanted.categories, wanted.names, wanted.where, wanted.owner
        )
    except DataError as error:
        raise Problem(BAD, str(error)) from None
