"""Tables: the one place that knows table libraries, and the entrance of every table, array and sparse matrix.

No table library is needed to use mcrank. Frames of pandas and polars and tables of pyarrow are read through
their own columns; anything else that speaks Arrow needs pyarrow. Whatever goes wrong inside a library is
`DataError` here.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import Array, FeatureArray
from mcrank.data.categories import Categories, Keys, encode, features_of, is_category, whole_numbers
from mcrank.data.columns import Column, foreign_errors, missing_rows, object_array, refuse_masked, to_numbers
from mcrank.data.matrices import HINT, as_float32, dense, of_array
from mcrank.errors import DataError, did_you_mean

QID_NAMES = ("qid", "query_id", "queryid")
GRADE_NAMES = ("label", "grade", "relevance")
DOC_NAMES = ("doc_id", "docid", "docno", "document_id")
# Never features of a table unless they are asked for: a grade among the features leaks.
ROLE_NAMES = (*QID_NAMES, *GRADE_NAMES, *DOC_NAMES)

# As pandas calls the row labels of a frame when it writes them as a column: not one of the frame's own.
_INDEX_NAME = re.compile(r"__index_level_\d+__")

# Columns copied to the row-major matrix together: a cache line of float32.
_COLUMN_BLOCK = 16
# Values of a frame that are worth a temporary: each column taken by itself costs 50 microseconds.
_SMALL = 1 << 18
_NOTHING = frozenset([""])


class Features(NamedTuple):
    """A feature matrix (float32, C-contiguous), the names of its columns (None where they have none), the
    names of columns left aside because they are called like an id or a grade and nobody chose them, and those
    of the categories whose codes some columns hold.
    """

    values: FeatureArray
    names: tuple[str, ...] | None
    aside: tuple[str, ...] = ()
    categories: Categories = MappingProxyType({})


def as_features(
    X: Any,
    where: str,
    wanted: Sequence[str] | None = None,
    categorical: Keys | None = None,
    texts: Collection[int] = (),
) -> Features:
    """Turn a table, an array, a sparse matrix or nested lists into a feature matrix, or raise `DataError`.

    In a table whose columns have names, those named like an id or a grade (`ROLE_NAMES`) are left aside, and
    with ``wanted`` its columns are taken by these names, in this order; others are not looked at. Without
    names every column counts, in its place. The matrix may be the caller's own memory.

    Columns of a table that hold categories become codes (`mcrank.data.categories`), those named or numbered
    in ``categorical`` whatever they hold, those numbered in ``texts`` if they hold texts, also such as look
    like numbers.

    Examples
    --------
    >>> from mcrank.data.tables import as_features
    >>> as_features({"qid": ["x"], "b": [2.0], "a": [1]}, "X").names
    ('b', 'a')
    >>> as_features({"qid": ["x"], "b": [2.0], "a": [1]}, "X", wanted=["a"]).values.tolist()
    [[1.0]]
    >>> as_features([[1.0, 2.0]], "X", wanted=["a"]).names is None
    True
    """
    if isinstance(X, Features):
        return X
    if is_sparse(X):
        return _numbered(dense(X, where), where, wanted, categorical)
    if not is_table(X):
        return _numbered(of_array(X, where), where, wanted, categorical)
    table = Table(X, where)
    chosen = table.feature_columns(wanted)
    names = table.text_names(chosen)
    aside = () if wanted is not None else tuple(name for name in table.shown if name.lower() in ROLE_NAMES)
    shown = [table.shown[j] for j in chosen]
    asked = features_of(categorical or (), shown, f"categorical of {where}")
    asked += [j for j in texts if j < len(chosen) and table.column(chosen[j]).values.dtype.kind in "OUT"]
    values, categories = table.matrix(chosen, asked)
    return Features(values, names, aside, categories)


def _numbered(
    values: FeatureArray, where: str, names: Sequence[str] | None, categorical: Keys | None
) -> Features:
    """A matrix of numbers, some of which stand for categories."""
    if not categorical:  # at once: for a few rows, to make names takes longer than to score them
        return Features(values, None, (), {})
    names = [f"f{j + 1}" for j in range(values.shape[1])] if names is None else list(names)
    categories: dict[int, tuple[str, ...]] = {}
    for f in features_of(categorical, names, f"categorical of {where}"):
        values = values if categories else values.copy()
        values[:, f], categories[f] = whole_numbers(values[:, f], f"feature {f} of {where}")
    return Features(values, None, (), categories)


def is_feature_name(name: str) -> bool:
    """Whether a column called so is a feature where nobody says what is: no id, grade or row label.

    Examples
    --------
    >>> from mcrank.data.tables import is_feature_name
    >>> is_feature_name("bm25"), is_feature_name("Label")
    (True, False)
    """
    return name.lower() not in ROLE_NAMES and not _INDEX_NAME.fullmatch(name)


def is_table(source: Any) -> bool:
    """Whether ``source`` is a table in memory: a frame, an Arrow stream or a mapping of columns."""
    if isinstance(source, np.ndarray) or hasattr(source, "is_null"):  # polars' Series speaks Arrow too
        return False
    return (
        _is_lazy(source)  # first, as asking a lazy frame for its columns is costly
        or isinstance(source, Mapping)
        or (hasattr(source, "columns") and hasattr(source, "__getitem__"))
        or hasattr(source, "column_names")
        or (hasattr(source, "__arrow_c_stream__") and not hasattr(source, "to_numpy"))
    )


def is_sparse(source: Any) -> bool:
    """Whether ``source`` is a sparse matrix of scipy."""
    return hasattr(source, "tocsr") and hasattr(source, "toarray")


def _is_lazy(source: Any) -> bool:
    return (hasattr(source, "collect_schema") and hasattr(source, "collect")) or (
        hasattr(source, "npartitions") and hasattr(source, "compute")
    )


class Table:
    """One way to look at every kind of table: names, and a column by its place as a `Column`."""

    def __init__(self, table: Any, where: str, nulls: Collection[str] = _NOTHING) -> None:
        self.where = where
        self._nulls = nulls  # texts that are no categories
        if _is_lazy(table):
            raise DataError(f"{where} is a lazy frame; call its collect() first (or compute()).")
        with foreign_errors(f"{where} cannot be read as a table"):
            names, self._get, self._whole = _opened(table, where)
        if any(isinstance(name, tuple) for name in names):
            raise DataError(
                f"{where} has column names of several levels, such as {names[0]!r}; make them one text each."
            )
        self.names: list[Any] = names
        self.shown = [str(name) for name in names]
        if len(set(self.shown)) < len(names):
            twice = next(name for name in self.shown if self.shown.count(name) > 1)
            raise DataError(f"{where} has two columns {twice!r}; names must differ.")
        self._places = {name: place for place, name in enumerate(self.shown)}
        self.rows = len(self.column(0).values) if names else 0
        if self.rows == 0:
            raise DataError(f"{where} is empty: {self.rows} rows, {len(names)} columns.")

    def place(self, name: str) -> int:
        """Place of the column with this name."""
        if name not in self._places:
            has = did_you_mean(name, self.shown, "it has", written=repr)
            raise DataError(f"{self.where} has no column {name!r}; {has}")
        return self._places[name]

    def column(self, place: int) -> Column:
        """One column."""
        with foreign_errors(f"{self.title(place)} cannot be read"):
            column = self._get(place)
        if column.values.ndim != 1:
            raise DataError(f"{self.title(place)} must have one value per row, got {column.values.shape}.")
        rows = getattr(self, "rows", None)
        if rows is not None and len(column.values) != rows:
            raise DataError(f"{self.title(place)} has {len(column.values)} rows, others have {rows}.")
        return column

    def title(self, place: int) -> str:
        """How messages call a column."""
        return f"column {str(self.names[place])!r} of {self.where}"

    def feature_columns(self, wanted: Sequence[str] | None, taken: Sequence[int] = ()) -> list[int]:
        """Places of the features: those wanted, or all but ``taken`` and those named like an id or grade."""
        if wanted is not None and any(isinstance(name, str) for name in self.names):
            return [self.place(name) for name in wanted]
        chosen = [j for j, name in enumerate(self.shown) if j not in taken and is_feature_name(name)]
        if any(self.names[j] == "" for j in chosen):
            raise DataError(
                f"{self.where} has a column without a name, as to_csv of pandas writes the row numbers of a "
                "frame; leave it out (index=False), give it a name, or choose the features by name."
            )
        if not chosen:
            raise DataError(f"{self.where} has no feature columns.")
        return chosen

    def text_names(self, places: Sequence[int]) -> tuple[str, ...] | None:
        """Names of some columns, None when they have none: numbers of a frame made of an array are none."""
        names = [self.names[j] for j in places]
        texts = [isinstance(name, str) for name in names]
        if all(texts):
            return tuple(map(str, names))
        if any(texts):
            odd = next(name for name in names if not isinstance(name, str))
            raise DataError(
                f"{self.where} has column names that are text and others that are not, such as {odd!r}; "
                "make all of them text."
            )
        return None

    def matrix(
        self, places: Sequence[int], categorical: Sequence[int] = ()
    ) -> tuple[FeatureArray, dict[int, tuple[str, ...]]]:
        """Some columns as a feature matrix, and the names of its categories: those of ``categorical`` (places
        among the chosen) hold them whatever they are.
        """
        whole = None if self._whole is None or categorical else self._whole()
        if whole is not None:
            whole = whole if list(places) == list(range(len(self.names))) else whole[:, list(places)]
            return as_float32(whole, self.where, titles=[self.title(place) for place in places]), {}
        X = np.empty((self.rows, len(places)), dtype=np.float32)
        categories: dict[int, tuple[str, ...]] = {}
        for start in range(0, len(places), _COLUMN_BLOCK):
            block = range(start, min(start + _COLUMN_BLOCK, len(places)))
            found = [self._feature(places[j], j in categorical) for j in block]
            X[:, block.start : block.stop] = np.array([values for values, _ in found]).T
            categories |= {j: names for j, (_, names) in zip(block, found, strict=True) if names is not None}
        return X, categories

    def numbers(self, places: Sequence[int]) -> FeatureArray:
        """Some columns as a feature matrix, where categories cannot be told: not all rows are here."""
        X, categories = self.matrix(places)
        for j in categories:
            raise DataError(
                f"{self.title(places[j])} is not numeric: it holds categories, which a scan cannot know "
                "before it has read all of them; use mcrank.read, or leave it out."
            )
        return X

    def _feature(self, place: int, categorical: bool) -> tuple[FeatureArray, tuple[str, ...] | None]:
        """One column as numbers, or as codes of categories with the names of those."""
        title, column = self.title(place), self.column(place)
        if categorical or is_category(column, self._nulls):
            return encode(column, title, self._nulls)
        return as_float32(to_numbers(column, title, HINT), title), None


def _opened(table: Any, where: str) -> tuple[list[Any], Callable[[int], Column], Callable[[], Any] | None]:
    """Names of the columns, a way to get one by its place, and one to get all (None unless it is quick)."""
    if isinstance(table, Mapping):
        names = list(table)
        return names, lambda j: column_of(table[names[j]], f"column {str(names[j])!r} of {where}"), None
    if hasattr(table, "column_names") and hasattr(table, "column"):
        return list(table.column_names), lambda j: _of_arrow(table.column(j)), None
    if hasattr(table, "iloc") and hasattr(table, "dtypes"):
        return list(table.columns), lambda j: _of_pandas(table.iloc[:, j]), lambda: _plain(table)
    if hasattr(table, "to_series") and hasattr(table, "columns"):
        return list(table.columns), lambda j: _of_polars(table.to_series(j)), None
    if hasattr(table, "__arrow_c_stream__"):
        try:
            arrow = importlib.import_module("pyarrow")
        except ImportError:
            raise DataError(
                f"{where} is an Arrow stream, which needs pyarrow: pip install 'mcrank[tables]'."
            ) from None
        read = arrow.table(table)
        return list(read.column_names), lambda j: _of_arrow(read.column(j)), None
    names = list(table.columns)
    return names, lambda j: column_of(table[names[j]], f"column {str(names[j])!r} of {where}"), None


def _plain(frame: Any) -> Array | None:
    """A frame of NumPy's numbers at once, where that needs no large copy and rounds nothing; else None."""
    kinds = set(frame.dtypes.tolist())
    if not kinds or any(not isinstance(kind, np.dtype) or kind.kind not in "fiub" for kind in kinds):
        return None
    if len(kinds) > 1 and frame.size > _SMALL:
        return None
    values: Array = frame.to_numpy(dtype=np.result_type(*kinds))
    if len(kinds) > 1 and (np.abs(values) >= 2.0**53).any():
        return None  # an integer may have been rounded to a float, which would be rounded again
    return values


def column_of(values: Any, where: str) -> Column:
    """Any column (an array, a list, a series or Arrow array of a library) as it is, nothing converted.

    Examples
    --------
    >>> from mcrank.data.tables import column_of
    >>> column_of([2**63 + 1, None], "qid").values.tolist()
    [9223372036854775809, None]
    """
    if isinstance(values, np.ndarray):
        refuse_masked(values, where)
        return Column(np.asarray(values))
    with foreign_errors(f"{where} cannot be read"):
        if hasattr(values, "null_count") and hasattr(values, "to_numpy"):
            return _of_polars(values) if hasattr(values, "to_arrow") else _of_arrow(values)
        if hasattr(values, "isna") and hasattr(values, "dtype"):
            return _of_pandas(values)
        if hasattr(values, "__array__") and not isinstance(values, np.generic):
            return Column(np.asarray(values))
        if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
            raise DataError(f"{where} must have one value per row, got {type(values).__name__}.")
        return Column(_listed(list(values)))


def _listed(values: list[Any]) -> Array:
    """A list as an array that holds the same objects: NumPy would make floats of large integers."""
    kinds = set(map(type, values))
    if kinds == {float} or kinds == {bool}:
        return np.array(values)
    if kinds == {int}:
        with contextlib.suppress(OverflowError):
            return np.array(values, dtype=np.int64)
    return object_array(values)


def _of_arrow(column: Any) -> Column:
    # Lengths and offsets of damaged data may point anywhere: whoever follows them unseen may not come back.
    column.validate(full=True)
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    kind = str(column.type)
    categorical = kind.startswith("dictionary")
    if categorical:
        column = column.dictionary_decode()
        kind = str(column.type)
    missing = None
    if column.null_count:
        missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        if kind == "null":
            return Column(np.full(len(column), np.nan), missing)
        # Where the library would make floats of integers, the gaps are filled first.
        if kind.startswith(("int", "uint", "bool")):
            column = column.fill_null(False if kind == "bool" else 0)
    return Column(np.asarray(column.to_numpy(zero_copy_only=False)), missing, categorical)


def _of_pandas(series: Any) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        values = np.asarray(series.to_numpy())
        return Column(values, missing_rows(values) if dtype.kind == "O" else None)
    missing = np.asarray(series.isna())
    if hasattr(dtype, "categories"):
        codes = np.asarray(series.cat.codes if hasattr(series, "cat") else series.codes)
        if not len(dtype.categories):  # nor any value
            return Column(np.full(len(codes), None), missing, categorical=True)
        inner = _of_pandas(dtype.categories)
        return Column(inner.values[codes], missing if missing.any() else None, categorical=True)
    if dtype.kind in "iub" and missing.any():
        plain = np.dtype(getattr(dtype, "numpy_dtype", np.float64))
        return Column(np.asarray(series.to_numpy(dtype=plain, na_value=plain.type(0))), missing)
    if dtype.kind == "f":
        return Column(np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)))
    return Column(np.asarray(series.to_numpy()), missing if missing.any() else None)


def _of_polars(series: Any) -> Column:
    categorical = str(series.dtype).startswith(("Categorical", "Enum"))
    missing = None
    if series.null_count():
        missing = np.asarray(series.is_null().to_numpy())
        if series.dtype.is_integer():
            series = series.fill_null(0)
        elif str(series.dtype) == "Null":
            return Column(np.full(len(series), np.nan), missing)
        elif str(series.dtype) == "Boolean":
            series = series.fill_null(False)
    if str(series.dtype).endswith("Int128"):  # NumPy has no such integers
        return Column(object_array(series.to_list()), missing)
    return Column(np.asarray(series.to_numpy()), missing, categorical)
