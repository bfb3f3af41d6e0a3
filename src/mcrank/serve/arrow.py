"""Arrow streams from strangers: nothing is unpacked before it is known how much it will be.

A compressed batch of a few kilobytes may say that it holds gigabytes, and a column of nulls needs no bytes at
all. So the description of each batch (a flatbuffer) is looked at first: how many rows it says it has, and
whether it is compressed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from mcrank.data.columns import foreign_errors
from mcrank.errors import DataError
from mcrank.serve.problems import BAD, UNSUPPORTED, Problem

_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def read_stream(body: bytes, where: str, check: Callable[[int, int], None]) -> tuple[Any, list[str]]:
    """Return the table of an Arrow stream, and the names of its columns; ``check`` is told rows and columns
    before they cost memory.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise Problem(
            UNSUPPORTED,
            f"{where} is an Arrow stream, for which the service needs pyarrow: pip install 'mcrank[tables]'.",
        ) from None
    try:
        with foreign_errors(f"{where} is not an Arrow stream"):
            rows = 0
            for kind, length, compressed in _batches(pa, body):
                if compressed or kind == _DICTIONARY_BATCH:
                    what = "compressed" if compressed else "dictionaries"
                    raise DataError(f"{where} has {what}; send plain columns of numbers or texts.")
                rows += length
                check(rows, 0)
            with pa.ipc.open_stream(pa.BufferReader(body)) as reader:
                check(rows, len(reader.schema))
                table = reader.read_all()
            table.validate(full=True)
            return table, table.column_names  # which older libraries decode only now
    except DataError as error:
        raise Problem(BAD, str(error)) from None


def _batches(pa: Any, body: bytes) -> Any:
    """Kind, rows and compression of every message of a stream but its schema."""
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.type != "schema":
            yield _described(message.metadata.to_pybytes())


def _described(buffer: bytes) -> tuple[int, int, bool]:
    """Read the few fields needed of a Message: the table at the root, its header's kind, and the header."""
    try:
        root = _u32(buffer, 0)
        kind = buffer[root + _field(buffer, root, 1)]
        place = root + _field(buffer, root, 2)
        header = place + _u32(buffer, place)
        if kind == _DICTIONARY_BATCH:
            return kind, 0, False
        at = _field(buffer, header, 0)
        length = struct.unpack_from("<q", buffer, header + at)[0] if at else 0
        if kind != _RECORD_BATCH or length < 0:
            raise DataError("the message is no batch of rows.")
        return kind, length, bool(_field(buffer, header, 3))
    except (struct.error, IndexError):
        raise DataError("the description of a batch is damaged.") from None


def _u32(buffer: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", buffer, place)[0])


def _field(buffer: bytes, table: int, number: int) -> int:
    """Where in a flatbuffer's table a field is; 0 for one that is not there."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    size = struct.unpack_from("<H", buffer, vtable)[0]
    entry = 4 + 2 * number
    return int(struct.unpack_from("<H", buffer, vtable + entry)[0]) if entry + 2 <= size else 0
