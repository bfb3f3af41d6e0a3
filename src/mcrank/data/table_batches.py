"""Parquet and Arrow files in batches of rows, and places where they may be cut: between two queries."""

from __future__ import annotations

import importlib
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcrank.arrays import FeatureArray
from mcrank.data.batches import Batch, Piece, Progress, Purpose, between, cut_evenly
from mcrank.data.columns import foreign_errors, to_numbers
from mcrank.data.ids import column_ids
from mcrank.data.table_files import table_format
from mcrank.data.table_sets import Columns, chosen_features, roles_of
from mcrank.data.tables import Table
from mcrank.errors import DataError
from mcrank.memory import scratch_array

_ROWS = 16384  # of a batch: of a thousand features 64 MB
_COLUMNS = 16  # of Parquet that are open at a time
_IN_MEMORY = 32 << 20  # bytes of a row group of which there need be no scratch file
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
        if "pyarrow" not in sys.modules:
            # The allocator it would choose takes a gigabyte of addresses, or what a limit leaves of it.
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
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

    def release(self) -> None:
        """Let the library give back what it keeps for later."""
        self.arrow.default_memory_pool().release_unused()

    def table(self, rows: Any, first: int) -> Table:
        """Some rows as a table whose messages name the file."""
        where = str(self.path) if first == 0 else f"{self.path} (rows counted from {first} on)"
        return Table(self.arrow.Table.from_batches([rows]), where)

    def heading(self) -> Table:
        """A table with the columns of the file and one empty row: nothing is read."""
        with foreign_errors(f"{self.path} cannot be read as {self.form}"):
            nothing = [self.arrow.nulls(1, field.type) for field in self.schema]
            return Table(self.arrow.Table.from_arrays(nothing, names=self.schema.names), str(self.path))

    def rows(self, names: Sequence[str], start: int, stop: int | None) -> Iterator[Table]:
        """Some columns of rows ``start`` up to ``stop``, some thousand rows at a time."""
        found = self._batches(names, start, stop)
        while True:
            with foreign_errors(f"{self.path} cannot be read as {self.form}"):
                item = next(found, None)
            if item is None:
                return
            at, batch = item
            low, high = max(start - at, 0), batch.num_rows if stop is None else min(stop - at, batch.num_rows)
            if low < high:
                yield self.table(batch.slice(low, high - low), at + low)

    def _batches(self, names: Sequence[str], start: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        if self.form == "parquet":
            ends = list(accumulate(self.groups))
            first = bisect_right(ends, start)
            last = len(ends) if stop is None else 1 + next(i for i, end in enumerate(ends) if end >= stop)
            at, groups = ends[first - 1] if first else 0, list(range(first, last))
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

    def spans(self, start: int, stop: int | None) -> list[tuple[int, int]]:
        """Rows ``start`` up to ``stop``, by row groups."""
        ends = list(accumulate(self.groups))
        last = ends[-1] if stop is None and ends else stop or 0
        cut = [(max(start, end - n), min(last, end)) for n, end in zip(self.groups, ends, strict=True)]
        return [(low, high) for low, high in cut if low < high]


def heading(path: Path, columns: Columns) -> Heading:
    """Find out which columns of a file are what."""
    return _heading(_File(path), columns, "score")


def _heading(file: _File, columns: Columns, purpose: Purpose) -> Heading:
    table = file.heading()
    roles = roles_of(table, columns, optional=purpose == "score")
    taken = [place for place in roles.values() if place is not None]
    features = [] if purpose in ("grade", "documents") else chosen_features(table, columns, taken)
    unread = {
        "train": ("doc_id",),
        "score": ("doc_id", "grade", "weight"),
        "grade": ("doc_id", "weight"),
        "documents": ("weight",),
    }
    return Heading(
        {
            role: None if place is None or role in unread[purpose] else table.shown[place]
            for role, place in roles.items()
        },
        tuple(table.shown[place] for place in features),
    )


def table_batches(
    pieces: Sequence[Piece], columns: Columns, progress: Progress | None, purpose: Purpose
) -> Iterator[Batch]:
    """Yield the rows of some pieces in batches of bounded size."""
    head: Heading | None = None
    names: list[str] = []
    done, total = 0, sum(rows_of(piece) for piece in pieces)
    for piece in pieces:
        file = _File(piece.path)
        own = sorted(file.schema.names)
        if head is None:
            head, names = _heading(file, columns, purpose), own
        if own != names:
            odd = sorted(set(own) ^ set(names))[0]
            raise DataError(
                f"{piece.path} has other columns than {pieces[0].path} ({odd!r}); "
                "files of one set must agree."
            )
        empty = True
        for batch in _parquet(file, head, piece) if file.form == "parquet" else _arrow(file, head, piece):
            empty = False
            yield batch
            done += len(batch.y)
            if progress is not None:
                progress(done, max(done, total))
        if empty and piece.stop is None and piece.start == 0:
            raise DataError(f"{piece.path} is empty: 0 rows, {len(names)} columns.")
        file.release()


def _arrow(file: _File, head: Heading, piece: Piece) -> Iterator[Batch]:
    for table in file.rows(head.needed, piece.start, piece.stop):
        X = table.numbers([table.place(name) for name in head.features])
        yield _batch(X, *_roles(table, head, len(X)))


def _parquet(file: _File, head: Heading, piece: Piece) -> Iterator[Batch]:
    """A row group at a time, and of its columns a few: each that is open takes some megabytes."""
    for low, high in file.spans(piece.start, piece.stop):
        shape = (high - low, len(head.features))
        large = 4 * shape[0] * shape[1] > _IN_MEMORY
        X = scratch_array(shape, np.float32) if large else np.empty(shape, dtype=np.float32)
        for first in range(0, X.shape[1], _COLUMNS):
            names, at = head.features[first : first + _COLUMNS], 0
            for table in file.rows(names, low, high):
                part = table.numbers([table.place(name) for name in names])
                X[at : at + len(part), first : first + len(names)] = part
                at += len(part)
        named = [name for name in head.roles.values() if name is not None]
        found = [_roles(table, head, table.rows) for table in file.rows(named, low, high)] if named else []
        at = 0
        for roles in found or [(None, None, np.arange(high - low), None)]:
            rows = len(roles[2])
            yield _batch(X[at : at + rows], *roles)
            at += rows


def _roles(table: Table, head: Heading, rows: int) -> tuple[Any, Any, Any, Any]:
    """Grades, weights, query ids and document ids of a table; None for what is not there."""

    def numbers(role: str, hint: str) -> Any:
        name = head.roles[role]
        if name is None:
            return None
        place = table.place(name)
        return to_numbers(table.column(place), table.title(place), hint).astype(np.float64)

    def ids(role: str, blank: bool) -> Any:
        name = head.roles[role]
        if name is None:
            return None
        place = table.place(name)
        return column_ids(table.column(place), table.title(place), blank=blank)

    queries = ids("qid", False)
    if queries is None:  # rows to be scored that have no queries: each is one of its own
        queries = np.arange(rows)
    grades, weights = numbers("grade", "grades must be numbers"), numbers("weight", "weights must be numbers")
    return grades, weights, queries, ids("doc_id", True)


def _batch(X: FeatureArray, y: Any, weight: Any, ids: Any, doc_ids: Any) -> Batch:
    starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    return Batch(X, np.zeros(len(X)) if y is None else y, weight, starts, ids[starts], doc_ids)


def rows_of(piece: Piece) -> int:
    """Rows of a piece, as far as they are known without reading it."""
    stop = piece.stop if piece.stop is not None else sum(_File(piece.path).groups)
    return max(0, stop - piece.start)


def cut_tables(pieces: Sequence[Piece], columns: Columns, count: int) -> list[list[Piece]]:
    """Cut pieces into ``count`` groups of about equal rows (some may be empty), each of whole queries."""
    if table_format(pieces[0].path) != "parquet":  # their rows are known when they are read
        cuts = [(len(pieces) * part // count, 0) for part in range(count)] + [(len(pieces), 0)]
        return [between(pieces, cuts[i], cuts[i + 1]) for i in range(count)]
    sizes = [rows_of(piece) for piece in pieces]
    return cut_evenly(pieces, sizes, count, partial(_next_query, pieces, columns))


def _next_query(pieces: Sequence[Piece], columns: Columns, at: int, row: int) -> tuple[int, int]:
    """First place from ``row`` of piece ``at`` on where another query begins; only query ids are read."""
    before: Any = None
    while at < len(pieces):
        file = _File(pieces[at].path)
        name = _heading(file, columns, "grade").roles["qid"]
        first = max(pieces[at].start, row - 1)
        for table in file.rows([str(name)], first, pieces[at].stop):
            ids = column_ids(table.column(0), table.title(0)).tolist()
            for i, query in enumerate(ids):
                if before is not None and query != before[0]:
                    return at, first + i
                before = (query,)
            first += len(ids)
        at += 1
        row = pieces[at].start if at < len(pieces) else 0
    return len(pieces), 0
