"""Parquet and Arrow files in batches of rows, and places where they may be cut: between two queries."""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcrank.data.batches import Batch, Piece, Progress, between
from mcrank.data.columns import to_numbers
from mcrank.data.ids import column_ids
from mcrank.data.table_files import table_format
from mcrank.data.table_sets import Columns, chosen_features, roles_of
from mcrank.data.tables import Table, foreign_errors
from mcrank.errors import DataError

_ROWS = 16384  # of a batch: of a thousand features 64 MB
_BUFFER = 1 << 20  # of a column of Parquet that is read while it is decoded, instead of as a whole before


class Heading(NamedTuple):
    """Which columns of a file are what, by name."""

    roles: dict[str, str | None]
    features: tuple[str, ...]

    @property
    def needed(self) -> list[str]:
        """Names of all columns to read."""
        return [*self.features, *(name for name in self.roles.values() if name is not None)]


class _File:
    """An open file, its names and its rows in batches; what the library says of it is `DataError`."""

    def __init__(self, path: Path) -> None:
        self.path, self.form = path, table_format(path)
        try:
            self.arrow = importlib.import_module("pyarrow")
        except ImportError:
            raise DataError(f"{path} needs pyarrow to be scanned: pip install 'mcrank[tables]'.") from None
        with foreign_errors(f"{path} cannot be read as {self.form}"):
            if self.form == "parquet":
                parquet = importlib.import_module("pyarrow.parquet")
                self.source = parquet.ParquetFile(str(path), buffer_size=_BUFFER, pre_buffer=False)
                self.schema = self.source.schema_arrow
                self.groups = [
                    self.source.metadata.row_group(i).num_rows for i in range(self.source.num_row_groups)
                ]
            else:
                self.schema = self._ipc().schema
                self.groups = []

    def _ipc(self) -> Any:
        """Record batches of an Arrow file or stream, which know the schema."""
        ipc = importlib.import_module("pyarrow.ipc")
        with self.arrow.OSFile(str(self.path)) as source:
            is_file = source.read(6) == b"ARROW1"
        source = self.arrow.OSFile(str(self.path))
        return ipc.open_file(source) if is_file else ipc.open_stream(source)

    def table(self, rows: Any, first: int) -> Table:
        """Some rows as a table whose messages name the file."""
        where = str(self.path) if first == 0 else f"{self.path} (rows counted from {first} on)"
        return Table(self.arrow.Table.from_batches([rows]), where)

    def heading(self) -> Table:
        """A table with the columns of the file and one empty row: nothing is read."""
        with foreign_errors(f"{self.path} cannot be read as {self.form}"):
            nothing = [self.arrow.nulls(1, field.type) for field in self.schema]
            return Table(self.arrow.Table.from_arrays(nothing, names=self.schema.names), str(self.path))

    def batches(self, names: Sequence[str], start: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        """Number of the first row and the batch, of rows ``start`` up to ``stop``."""
        at, rows = 0, self._batches(names, start, stop)
        while True:
            with foreign_errors(f"{self.path} cannot be read as {self.form}"):
                item = next(rows, None)
            if item is None:
                return
            at, batch = item
            low, high = max(start - at, 0), batch.num_rows if stop is None else min(stop - at, batch.num_rows)
            if low < high:
                yield at + low, batch.slice(low, high - low)

    def _batches(self, names: Sequence[str], start: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        if self.form == "parquet":
            ends = list(accumulate(self.groups))
            first = bisect_right(ends, start)
            last = len(ends) if stop is None else 1 + next(i for i, end in enumerate(ends) if end >= stop)
            at = ends[first - 1] if first else 0
            groups = list(range(first, last))
            found = self.source.iter_batches(_ROWS, row_groups=groups, columns=list(names), use_threads=False)
            for batch in found:
                yield at, batch
                at += batch.num_rows
            return
        at, reader = 0, self._ipc()
        count = getattr(reader, "num_record_batches", None)
        whole = (reader.get_batch(i) for i in range(count)) if count is not None else iter(reader)
        for batch in whole:
            chosen = batch.select(list(names))
            for low in range(0, batch.num_rows, _ROWS):
                yield at + low, chosen.slice(low, _ROWS)
            at += batch.num_rows


def heading(path: Path, columns: Columns, score: bool = False) -> Heading:
    """Find out which columns of a file are what."""
    return _heading(_File(path), columns, score)


def _heading(file: _File, columns: Columns, score: bool) -> Heading:
    table = file.heading()
    roles = roles_of(table, columns, optional=score)
    if score:
        roles["grade"] = roles["weight"] = None
    roles["doc_id"] = None
    taken = [place for place in roles_of(table, columns, optional=score).values() if place is not None]
    features = chosen_features(table, columns.features, taken)
    return Heading(
        {role: None if place is None else table.shown[place] for role, place in roles.items()},
        tuple(table.shown[place] for place in features),
    )


def table_batches(
    pieces: Sequence[Piece], columns: Columns, progress: Progress | None, score: bool
) -> Iterator[Batch]:
    """Yield the rows of some pieces in batches of bounded size."""
    head: Heading | None = None
    names: list[str] = []
    done, total = 0, sum(_rows_of(piece) for piece in pieces)
    for piece in pieces:
        file = _File(piece.path)
        own = sorted(file.schema.names)
        if head is None:
            head, names = _heading(file, columns, score), own
        if own != names:
            odd = sorted(set(own) ^ set(names))[0]
            raise DataError(
                f"{piece.path} has other columns than {pieces[0].path} ({odd!r}); "
                "files of one set must agree."
            )
        empty = True
        for first, rows in file.batches(head.needed, piece.start, piece.stop):
            empty = False
            yield _batch(file.table(rows, first), head)
            done += rows.num_rows
            if progress is not None:
                progress(done, max(done, total))
        if empty and piece.stop is None and piece.start == 0:
            raise DataError(f"{piece.path} is empty: 0 rows, {len(names)} columns.")


def _batch(table: Table, head: Heading) -> Batch:
    def numbers(role: str, hint: str) -> Any:
        name = head.roles[role]
        if name is None:
            return None
        place = table.place(name)
        return to_numbers(table.column(place), table.title(place), hint).astype(np.float64)

    X = table.matrix([table.place(name) for name in head.features])
    y = numbers("grade", "grades must be numbers")
    qid = head.roles["qid"]
    if qid is None:  # rows to be scored that have no queries: each is one of its own
        ids = np.arange(len(X))
    else:
        ids = column_ids(table.column(table.place(qid)), table.title(table.place(qid)))
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    weight = numbers("weight", "weights must be numbers")
    return Batch(X, np.zeros(len(X)) if y is None else y, weight, starts, ids[starts])


def _rows_of(piece: Piece) -> int:
    """Rows of a piece, as far as they are known without reading it."""
    stop = piece.stop if piece.stop is not None else sum(_File(piece.path).groups)
    return max(0, stop - piece.start)


def cut_tables(pieces: Sequence[Piece], columns: Columns, count: int) -> list[list[Piece]]:
    """Cut pieces into ``count`` groups of about equal rows (some may be empty), each of whole queries."""
    if table_format(pieces[0].path) != "parquet":  # their rows are known when they are read
        cuts = [(len(pieces) * part // count, 0) for part in range(count)] + [(len(pieces), 0)]
        return [between(pieces, cuts[i], cuts[i + 1]) for i in range(count)]
    sizes = [_rows_of(piece) for piece in pieces]
    ends = list(accumulate(sizes))
    places = [(0, pieces[0].start)]
    for part in range(1, count):
        target = ends[-1] * part // count
        at = bisect_right(ends, target)
        cut = _next_query(pieces, columns, at, pieces[at].start + target - (ends[at] - sizes[at]))
        places.append(max(places[-1], cut))
    places.append((len(pieces), 0))
    return [between(pieces, places[i], places[i + 1]) for i in range(count)]


def _next_query(pieces: Sequence[Piece], columns: Columns, at: int, row: int) -> tuple[int, int]:
    """First place from ``row`` of piece ``at`` on where another query begins; only query ids are read."""
    before: Any = None
    while at < len(pieces):
        file = _File(pieces[at].path)
        name = _heading(file, columns, score=False).roles["qid"]
        for first, rows in file.batches([str(name)], max(pieces[at].start, row - 1), pieces[at].stop):
            table = file.table(rows, first)
            ids = column_ids(table.column(0), table.title(0)).tolist()
            for i, query in enumerate(ids):
                if before is not None and query != before[0]:
                    return at, first + i
                before = (query,)
        at += 1
        row = pieces[at].start if at < len(pieces) else 0
    return len(pieces), 0
