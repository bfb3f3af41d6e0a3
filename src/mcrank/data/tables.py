"""Tables: Parquet, Arrow and CSV files, data frames, Arrow streams and mappings of columns as a `Dataset`.

No table library is needed to use mcrank. Frames of pandas and polars and tables of pyarrow are read through
their own columns; anything else that speaks Arrow, and files, need pyarrow (polars or pandas will do for
files).
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.data.dataset import Dataset
from mcrank.errors import DataError

QID_NAMES = ("qid", "query_id", "queryid")
GRADE_NAMES = ("label", "grade", "relevance")
DOC_NAMES = ("doc_id", "docid", "docno", "document_id")

_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".csv": "csv", ".tsv": "tsv",
}  # fmt: skip
# Columns copied to the row-major matrix together: a cache line of float32.
_COLUMN_BLOCK = 16


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what: names, or arrays with one value per row; None: found by name."""

    qid: Any = None
    grade: Any = None
    doc_id: Any = None
    weight: Any = None
    features: Sequence[str] | None = None


def table_format(path: Path) -> str | None:
    """Format of a file by its suffix, looking through .gz and the like; None for LETOR text."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2", ".zst", ".xz"):
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def is_table(source: Any) -> bool:
    """Whether ``source`` is a table in memory: a frame, an Arrow stream, a mapping or a sparse matrix."""
    return (
        _is_lazy(source)  # first, as asking a lazy frame for its columns is costly
        or hasattr(source, "__arrow_c_stream__")
        or isinstance(source, Mapping)
        or (hasattr(source, "columns") and hasattr(source, "__getitem__"))
        or _is_sparse(source)
    )


def _is_lazy(source: Any) -> bool:
    return hasattr(source, "collect_schema") and hasattr(source, "collect")


def _is_sparse(source: Any) -> bool:
    return hasattr(source, "tocsr") and hasattr(source, "toarray")


def read_table_files(files: Sequence[Path], columns: Columns, unjudged: str) -> Dataset:
    """Read files of one table format, with the same columns, as one data set."""
    parts = [_Table(_open(path), str(path)) for path in files]
    return _dataset(parts, columns, unjudged)


def read_table(source: Any, columns: Columns, unjudged: str) -> Dataset:
    """Read a table in memory."""
    if _is_sparse(source):
        return _read_sparse(source, columns, unjudged)
    return _dataset([_Table(source, "the table")], columns, unjudged)


def _open(path: Path) -> Any:
    form = table_format(path)
    tried = []
    for library, opener in (("pyarrow", _open_pyarrow), ("polars", _open_polars), ("pandas", _open_pandas)):
        if form == "arrow" and library == "pandas":
            continue  # it would ask for pyarrow
        try:
            importlib.import_module(library)
        except ImportError:
            tried.append(library)
            continue
        try:
            return opener(path, str(form))
        except DataError:
            raise
        except Exception as error:
            # Each library has its own errors for a damaged file; the caller needs one.
            raise DataError(f"{path} cannot be read as {form}: {str(error).splitlines()[0]}.") from None
    raise DataError(f"{path} needs a table library ({', '.join(tried)}): pip install 'mcrank[tables]'.")


def _open_pyarrow(path: Path, form: str) -> Any:
    if form == "parquet":
        return importlib.import_module("pyarrow.parquet").read_table(str(path))
    if form == "arrow":
        ipc, arrow = importlib.import_module("pyarrow.ipc"), importlib.import_module("pyarrow")
        with arrow.OSFile(str(path)) as source:
            magic = source.read(6)
        with arrow.OSFile(str(path)) as source:
            return (ipc.open_file if magic == b"ARROW1" else ipc.open_stream)(source).read_all()
    csv = importlib.import_module("pyarrow.csv")
    return csv.read_csv(str(path), parse_options=csv.ParseOptions(delimiter="\t" if form == "tsv" else ","))


def _open_polars(path: Path, form: str) -> Any:
    polars = importlib.import_module("polars")
    if form in ("parquet", "arrow"):
        return polars.read_parquet(path) if form == "parquet" else polars.read_ipc(path)
    return polars.read_csv(path, separator="\t" if form == "tsv" else ",")


def _open_pandas(path: Path, form: str) -> Any:
    pandas = importlib.import_module("pandas")
    if form == "parquet":
        return pandas.read_parquet(path)
    return pandas.read_csv(path, sep="\t" if form == "tsv" else ",")


class _Table:
    """One way to look at every kind of table: names, and a column by name as a NumPy array."""

    def __init__(self, table: Any, where: str) -> None:
        self.where = where
        get: Callable[[str], Any]
        if _is_lazy(table):
            raise DataError(f"{where} is a lazy frame; call its collect() first.")
        if isinstance(table, Mapping):
            names, get = list(table), lambda name: np.asarray(table[name])
        elif hasattr(table, "column_names") and hasattr(table, "column"):
            names, get = list(table.column_names), lambda name: _of_arrow(table.column(name))
        elif hasattr(table, "columns") and hasattr(table, "__getitem__"):
            names, get = list(table.columns), lambda name: _of_frame(table[name])
        else:
            try:
                arrow = importlib.import_module("pyarrow")
            except ImportError:
                raise DataError(
                    f"{where} is an Arrow stream, which needs pyarrow: pip install 'mcrank[tables]'."
                ) from None
            table = arrow.table(table)
            names, get = list(table.column_names), lambda name: _of_arrow(table.column(name))
        self.names = [str(name) for name in names]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise DataError(f"{where} has two columns {twice!r}; names must differ.")
        self._own, self._get = dict(zip(self.names, names, strict=True)), get
        self.rows = len(self.column(self.names[0])) if names else 0
        if self.rows == 0:
            raise DataError(f"{where} is empty: {self.rows} rows, {len(names)} columns.")

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column as an array; missing numbers are NaN, missing texts None."""
        if name not in self._own:
            raise DataError(
                f"{self.where} has no column {name!r}; it has {', '.join(map(repr, self.names[:20]))}."
            )
        values: npt.NDArray[Any] = self._get(self._own[name])
        return values

    def find(self, given: Any, known: tuple[str, ...], option: str) -> str | None:
        """Name of the column for an option: the one given, or the only one with a known name."""
        if isinstance(given, str):
            return given
        if given is not None:
            return None
        found = [name for name in self.names if name.lower() in known]
        if len(found) > 1:
            raise DataError(f"{self.where} has columns {', '.join(map(repr, found))}; choose with {option}=.")
        return found[0] if found else None


def _of_arrow(column: Any) -> Any:
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return column.to_numpy(zero_copy_only=False)


def _of_frame(series: Any) -> Any:
    kind = getattr(series.dtype, "kind", "")
    if kind in ("i", "u", "f", "b") and not isinstance(series.dtype, np.dtype):
        # A pandas column that may hold NA: its own conversion would give objects.
        return (
            series.to_numpy(dtype=np.float64, na_value=np.nan) if series.isna().any() else series.to_numpy()
        )
    return series.to_numpy()


def _dataset(parts: list[_Table], columns: Columns, unjudged: str) -> Dataset:
    first = parts[0]
    for part in parts[1:]:
        if part.names != first.names:
            raise DataError(
                f"{part.where} has other columns than {first.where}; files of one set must agree."
            )
    roles = {
        "qid": first.find(columns.qid, QID_NAMES, "qid"),
        "grade": first.find(columns.grade, GRADE_NAMES, "grade"),
        "doc_id": first.find(columns.doc_id, DOC_NAMES, "doc_id"),
        "weight": columns.weight if isinstance(columns.weight, str) else None,
    }
    for role, known in (("qid", QID_NAMES), ("grade", GRADE_NAMES)):
        if roles[role] is None and getattr(columns, role) is None:
            raise DataError(
                f"{first.where} has no column {' or '.join(map(repr, known))}; name it with {role}=."
            )
    for name in (*roles.values(), *(columns.features or ())):
        if name is not None:
            first.column(name)
    # What is named like an id or a grade is no feature, even when another column was chosen: grades leak.
    taken = {name for name in first.names if name.lower() in (*QID_NAMES, *GRADE_NAMES, *DOC_NAMES)}
    taken |= {name for name in roles.values() if name is not None}
    features = list(columns.features or [])
    if columns.features is None:
        features = [name for name in first.names if name not in taken]
    if not features:
        raise DataError(f"{first.where} has no feature columns.")

    def values(role: str) -> Any:
        name, given = roles[role], getattr(columns, role)
        return given if name is None else np.concatenate([part.column(name) for part in parts])

    X = (
        np.concatenate([_matrix(part, features) for part in parts])
        if len(parts) > 1
        else _matrix(first, features)
    )
    return judged_dataset(
        X,
        values("grade"),
        values("qid"),
        unjudged,
        values("weight"),
        values("doc_id"),
        feature_names=features,
    )


def _matrix(part: _Table, features: list[str]) -> npt.NDArray[np.float32]:
    X = np.empty((part.rows, len(features)), dtype=np.float32)
    for start in range(0, len(features), _COLUMN_BLOCK):
        names = features[start : start + _COLUMN_BLOCK]
        X[:, start : start + len(names)] = np.array([_numbers(part, name) for name in names]).T
    return X


def _numbers(part: _Table, name: str) -> npt.NDArray[np.float32]:
    column = part.column(name)
    if column.dtype == object:
        # Mixed numbers and None are numbers with gaps; texts are not.
        with contextlib.suppress(TypeError, ValueError):
            column = np.array([np.nan if v is None else v for v in column.tolist()], dtype=np.float64)
    if column.dtype.kind not in "fiub":
        raise DataError(
            f"column {name!r} of {part.where} is not numeric ({column.dtype}); "
            "choose the features with features=."
        )
    with np.errstate(over="ignore"):
        values = column.astype(np.float32)
    bad = np.isinf(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            f"column {name!r} of {part.where} has {column[row]} at row {row}; values must fit float32 "
            "(use NaN or null for a missing value)."
        )
    return values


def _read_sparse(matrix: Any, columns: Columns, unjudged: str) -> Dataset:
    for option in ("qid", "grade"):
        if getattr(columns, option) is None or isinstance(getattr(columns, option), str):
            raise DataError(
                f"a sparse matrix has no columns with names; give {option}= as an array of its rows."
            )
    names = columns.features
    return judged_dataset(
        matrix, columns.grade, columns.qid, unjudged, columns.weight, columns.doc_id, feature_names=names
    )


def judged_dataset(
    X: Any,
    grade: Any,
    qid: Any,
    unjudged: str,
    weight: Any,
    doc_ids: Any,
    *,
    feature_names: Sequence[str] | None,
) -> Dataset:
    """Make a data set whose rows without a grade (NaN or negative) are errors, count as 0, or are dropped."""
    try:
        y = np.array(grade, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"grades must be numbers: {error}.") from None
    if unjudged != "error" and y.ndim == 1:
        open_rows = ~(y >= 0)
        if unjudged == "zero":
            y[open_rows] = 0.0
        elif open_rows.all():
            raise DataError("every row is unjudged; nothing is left after dropping them.")
        elif open_rows.any():
            keep = np.flatnonzero(~open_rows)
            X = (X.tocsr() if _is_sparse(X) else X)[keep]
            y, qid = y[keep], np.asarray(qid)[keep]
            weight = None if weight is None else np.asarray(weight)[keep]
            doc_ids = None if doc_ids is None else np.asarray(doc_ids)[keep]
    return Dataset(X, y, qid, weight, feature_names=feature_names, doc_ids=doc_ids)
