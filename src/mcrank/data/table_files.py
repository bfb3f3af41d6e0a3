"""Table files (Parquet, Arrow, CSV, TSV) opened with pyarrow, polars or pandas, whichever is there."""

from __future__ import annotations

import csv
import importlib
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from mcrank.data.columns import foreign_errors, shown
from mcrank.data.compressed import SUFFIXES, open_bytes
from mcrank.data.sources import StrPath, as_plain, find_files, open_text
from mcrank.data.tables import Table
from mcrank.errors import DataError

_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".csv": "csv", ".tsv": "tsv",
}  # fmt: skip
# Cells of CSV that mean "nothing", except among ids; the libraries' own lists differ.
_NULLS = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
_HEXADECIMAL = re.compile(r"\s*[+-]?0[xX]")
_SEPARATORS = {"csv": ",", "tsv": "\t"}


def table_format(path: Path) -> str | None:
    """Format of a file by its suffix, looking through .gz and the like; None for LETOR text."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in SUFFIXES:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def common_format(files: Sequence[Path]) -> str | None:
    """Return the `table_format` of all files of a set, which must agree."""
    forms = {table_format(path) for path in files}
    if len(forms) > 1:
        raise DataError(
            f"{files[0]} and the other files have different formats; files of one set must agree."
        )
    return forms.pop()


def format_of(source: StrPath) -> str | None:
    """Return the `table_format` of the files that a path or a pattern names: ``days/*`` itself has no suffix.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mcrank.data.table_files import format_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "monday.csv").write_text("qid,label,price\\n1,0,3\\n")
    ...     format_of(f"{folder}/*")
    'csv'
    """
    return common_format(find_files(source))


def is_text(path: Path) -> bool:
    """Whether the format has only text, so that a reader must say what is a number."""
    return table_format(path) in _SEPARATORS


def open_table(path: Path, ids: Callable[[Sequence[str], str], Collection[str]]) -> Table:
    """Open a file; ``ids`` tells which of the names in a text file are read as the texts they are."""
    form = str(table_format(path))
    tried = []
    names: Sequence[str] = ()
    as_text: Collection[str] = ()
    for library, opener in (("pyarrow", _open_pyarrow), ("polars", _open_polars), ("pandas", _open_pandas)):
        if form == "arrow" and library == "pandas":
            continue  # it would ask for pyarrow
        try:
            importlib.import_module(library)
        except ImportError:
            tried.append(library)
            continue
        if form in _SEPARATORS:
            names = _header(path, _SEPARATORS[form])
            as_text = ids(names, str(path))
        # Each library has its own errors for a damaged file; the caller needs one.
        with foreign_errors(f"{path} cannot be read as {form}"):
            nulls = _NULLS if form in _SEPARATORS else _NULLS[:1]
            return Table(opener(path, form, {name: name in as_text for name in names}), str(path), nulls)
    raise DataError(f"{path} needs a table library ({', '.join(tried)}): pip install 'mcrank[tables]'.")


def _header(path: Path, separator: str) -> list[str]:
    """Names in the first line; the libraries rename a name that stands there twice, each in its own way."""
    try:
        with open_text(path) as lines:
            names = next((row for row in csv.reader(lines, delimiter=separator) if row), [])
    except csv.Error as error:
        raise DataError(
            f"{path} cannot be read as text with {separator!r} between columns: {error}."
        ) from None
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path} has two columns {name!r}; names must differ.")
    return names


def _open_pyarrow(path: Path, form: str, columns: dict[str, bool]) -> Any:
    arrow = importlib.import_module("pyarrow")
    if form == "parquet":
        table = importlib.import_module("pyarrow.parquet").ParquetFile(str(path)).read()
    elif form == "arrow":
        ipc = importlib.import_module("pyarrow.ipc")
        with arrow.OSFile(str(path)) as source:
            magic = source.read(6)
        with arrow.OSFile(str(path)) as source:
            table = (ipc.open_file if magic == b"ARROW1" else ipc.open_stream)(source).read_all()
    else:
        reader = importlib.import_module("pyarrow.csv")
        parse = reader.ParseOptions(delimiter=_SEPARATORS[form], newlines_in_values=True)
        convert = reader.ConvertOptions(
            column_types={name: arrow.string() for name, as_text in columns.items() if as_text},
            null_values=list(_NULLS),
            # Words alone: by default 1 and 0 beside them are truth values too.
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )
        with as_plain(path) as content:
            table = reader.read_csv(content, parse_options=parse, convert_options=convert)
        times = {field.name for field in table.schema if arrow.types.is_temporal(field.type)}
        if times:  # text, as to the other libraries: of a file nobody has said that these are points in time
            convert.column_types = {**convert.column_types, **dict.fromkeys(times, arrow.string())}
            with as_plain(path) as content:
                table = reader.read_csv(content, parse_options=parse, convert_options=convert)
        whole = [field.name for field in table.schema if arrow.types.is_integer(field.type)]
        if whole and _mentions(path, (b"0x", b"0X")):
            as_texts = dict.fromkeys(whole, arrow.string())
            convert = reader.ConvertOptions(include_columns=whole, column_types=as_texts)
            with as_plain(path) as content:
                texts = reader.read_csv(content, parse_options=parse, convert_options=convert)
            _refuse_hexadecimal(path, texts)
    return table


def _mentions(path: Path, words: Sequence[bytes]) -> bool:
    """Whether any of some words of two bytes stands anywhere in a file, plain or compressed."""
    with open(path, "rb") as raw:
        stream, before = open_bytes(path, raw), b""
        while block := stream.read(1 << 20):
            if any(word in before + block for word in words):
                return True
            before = block[-1:]
    return False


def _refuse_hexadecimal(path: Path, texts: Any) -> None:
    """Raise `DataError` for 0x10: pyarrow reads it as 16, in a column of whole numbers and nowhere else."""
    for name in texts.column_names:
        for row, text in enumerate(texts.column(name).to_pylist()):
            if text is not None and _HEXADECIMAL.match(text):
                raise DataError(
                    f"column {name!r} of {path} is not numeric: it holds text {shown(text)} at row {row}; "
                    "write numbers in decimal."
                )


def _open_polars(path: Path, form: str, columns: dict[str, bool]) -> Any:
    polars = importlib.import_module("polars")
    if form in ("parquet", "arrow"):
        return polars.read_parquet(path) if form == "parquet" else polars.read_ipc(path)
    ids = [name for name, as_text in columns.items() if as_text]
    options = {"separator": _SEPARATORS[form], "schema_overrides": dict.fromkeys(ids, polars.String)}
    with as_plain(path) as content:
        frame = polars.read_csv(content, null_values=list(_NULLS), infer_schema_length=None, **options)
    if not ids:
        return frame
    # Words for "nothing" go for all columns there, so the ids are read once more without them.
    with as_plain(path) as content:
        texts = polars.read_csv(content, columns=ids, **options)
    return frame.with_columns(texts[name].fill_null("") for name in ids)


def _open_pandas(path: Path, form: str, columns: dict[str, bool]) -> Any:
    pandas = importlib.import_module("pandas")
    if form == "parquet":
        return pandas.read_parquet(path)
    with as_plain(path) as content:
        return pandas.read_csv(
            content,
            sep=_SEPARATORS[form],
            dtype={name: object for name, as_text in columns.items() if as_text},
            na_values={name: list(_NULLS) for name, as_text in columns.items() if not as_text},
            keep_default_na=False,
            index_col=False,
        )
