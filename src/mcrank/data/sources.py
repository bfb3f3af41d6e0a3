"""Byte sources: plain and compressed files as chunks of whole lines, and files written whole or not at all.

Chunks are read into buffers of our own. A memory map would save one copy, a small part of the parsing time,
but a file that another process cuts short while it is mapped kills the reader with a bus error, which no
Python code can turn into a message.
"""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mcrank.arrays import ByteArray
from mcrank.atomic import written_whole
from mcrank.container import BINS, CACHE, MODEL
from mcrank.data.compressed import DECODING_ERRORS, SUFFIXES, open_bytes, zstandard_of
from mcrank.errors import DataError

StrPath = str | os.PathLike[str]

CHUNK_BYTES = 4 << 20
# Longer than any honest line (16 million features), short enough to hold a few of them.
LONGEST_LINE = 256 << 20
# Kernels may load 8 bytes anywhere in a chunk, and a last line may need a newline.
PADDING = 64

# Some editors put it before UTF-8 text; to the kernels it would be part of the first grade.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# What a cache is called after its source; a pattern that matches the source may match it too.
CACHE_SUFFIX = ".mcrank-cache"
# Files of ours that are no data, by their first bytes: what they hold, and what to give instead.
_NO_DATA = {
    BINS.magic: "bins, to train on (mcrank.open_bins, mcrank train), and no values; give the files it was "
    "made of",
    CACHE.magic: "the cache of a data file; give that file, whose cache is then read",
    MODEL.magic: "a model, and no data",
}


@dataclass
class Chunk:
    """Whole lines of a file: ``text[:size]`` ends with a newline and is followed by padding."""

    path: Path
    text: ByteArray
    size: int
    first_line: int  # number of the first line of the chunk, from 1
    rows: int = 0  # lines that hold more than blanks and a comment

    def line_at(self, position: int) -> int:
        """Number of the line that holds the byte at ``position``."""
        return self.first_line + int(np.count_nonzero(self.text[:position] == 10))


def find_files(source: Any, who: str = "read") -> list[Path]:
    """Files named by a path, a glob pattern or a sequence of them; patterns give sorted names, and no caches.

    Examples
    --------
    >>> from mcrank.data.sources import find_files
    >>> find_files(["no/such/file.txt"])
    Traceback (most recent call last):
    mcrank.errors.DataError: no/such/file.txt does not exist.
    """
    given: list[Any] = []
    if isinstance(source, (str, os.PathLike)):
        given = [source]
    elif isinstance(source, Iterable):
        given = list(source)
    if not given:
        raise DataError(f"{who} was given no file; name at least one, got {type(source).__name__}.")
    for one in given:
        if not isinstance(one, (str, os.PathLike)):
            takes = f"{who} takes paths" + " and tables" * (who == "read")
            raise DataError(f"{takes}, got {type(one).__name__} in {type(source).__name__}.")
    files: list[Path] = []
    for one in given:
        path = Path(one)
        if path.exists():
            files.append(path)
        elif glob.has_magic(str(one)):
            names = glob.glob(str(one), recursive=True)
            found = sorted(Path(name) for name in names if not name.endswith(CACHE_SUFFIX))
            if not found:
                raise DataError(f"{one} matches no file.")
            files.extend(found)
        else:
            raise DataError(f"{one} does not exist.")
    for path in files:
        if path.is_dir():
            raise DataError(
                f"{path} is a directory; name its files, or load its folds with mcrank.read_folds or "
                "a known set with mcrank.datasets."
            )
        held = _NO_DATA.get(_first_bytes(path))
        if held is not None:
            raise DataError(f"{path} holds {held}.")
    return files


def _first_bytes(path: Path) -> bytes:
    if path.is_file():
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read(len(BINS.magic))
    return b""


@contextlib.contextmanager
def open_text(path: StrPath) -> Iterator[IO[str]]:
    """Open a plain or compressed UTF-8 file as lines of text; what goes wrong on the way is `DataError`.

    Examples
    --------
    >>> import gzip, pathlib, tempfile
    >>> from mcrank.data.sources import open_text
    >>> path = pathlib.Path(tempfile.mkdtemp(), "scores.gz")
    >>> _ = path.write_bytes(gzip.compress(b"0.5\\r\\n"))
    >>> with open_text(path) as lines:
    ...     list(lines)
    ['0.5\\n']
    """
    where = Path(path)
    try:
        with open(where, "rb") as raw:
            start = _buffered(where, raw).read(3)
            raw.seek(0)
            if start != _BYTE_ORDER_MARK and start and _BYTE_ORDER_MARK.startswith(start):
                raise DataError(f"{where} cannot be read: it ends inside a byte order mark.")
            with io.TextIOWrapper(_buffered(where, raw), "utf-8-sig") as text:
                yield text
    except UnicodeDecodeError:
        try:
            line = _first_undecodable(where)
        except Exception as error:  # the second look goes further than the first, and may meet other damage
            raise _unreadable(where, error) or error from None
        raise DataError(f"{where}, line {line} cannot be read: the text is not UTF-8.") from None
    except Exception as error:
        raise _unreadable(where, error) or error from None


def _unreadable(where: Path, error: Exception, after: str = "") -> DataError | None:
    """Return the error to raise when bytes could not be had from a file, None for errors of another kind."""
    if isinstance(error, DECODING_ERRORS):
        return DataError(f"{where} is damaged or cut off{after}: {error}.")
    if isinstance(error, OSError):
        return DataError(f"{where} cannot be read: {error.strerror or error}.")
    if isinstance(error, MemoryError):  # damage may ask for a dictionary of gigabytes
        return DataError(f"{where} cannot be read: it needs more memory than there is.")
    return None


def _buffered(path: Path, raw: IO[bytes]) -> Any:
    stream = open_bytes(path, raw)
    return io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream


@contextlib.contextmanager
def as_plain(path: Path) -> Iterator[Any]:
    """What a library of tables may be given for a text file: its path, or its plain bytes as an open file.

    The libraries know fewer kinds of compression, and them by a suffix.
    """
    with open(path, "rb") as raw:
        stream = _buffered(path, raw)
        yield str(path) if stream is raw and path.suffix.lower() not in SUFFIXES else stream


def _first_undecodable(path: Path) -> int:
    readable = 0
    with open(path, "rb") as raw:
        for line in _buffered(path, raw):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
            readable += 1
    return readable + 1


class Buffers:
    """A few chunk buffers used over and over, so that their pages are faulted in once."""

    def __init__(self) -> None:
        self._free: list[ByteArray] = []

    def take(self) -> ByteArray:
        """Return a buffer of at least `CHUNK_BYTES` plus padding."""
        return self._free.pop() if self._free else np.zeros(CHUNK_BYTES + PADDING, dtype=np.uint8)

    def give(self, text: ByteArray) -> None:
        """Take a buffer back."""
        self._free.append(text)


class _Some(io.RawIOBase):
    """Bytes of an open file up to a place."""

    def __init__(self, raw: IO[bytes], stop: int) -> None:
        self._raw, self._stop = raw, stop

    def readinto(self, target: Any) -> int:
        got = self._raw.readinto(target[: max(0, self._stop - self._raw.tell())])  # type: ignore[attr-defined]
        return int(got)


def read_chunks(
    path: Path, buffers: Buffers, consumed: list[int], first: int = 0, stop: int | None = None
) -> Iterator[Chunk]:
    """Cut a file into chunks of whole lines; ``consumed[0]`` grows by the bytes read from disk.

    Of a plain file the bytes from ``first`` up to ``stop``, which must begin and end a line, are enough; the
    numbers of lines then count from there.
    """
    from mcrank.data.letor_kernels import count_rows

    line = 1
    try:
        with open(path, "rb", buffering=0) as raw:
            before, start = os.fstat(raw.fileno()), consumed[0]
            stream = open_bytes(path, raw)
            if first or stop is not None:
                raw.seek(first)
                stream = _Some(raw, before.st_size if stop is None else stop)
                path, start = Path(f"{path} from byte {first} on"), start - first
            text, filled = buffers.take(), 0
            while True:
                got = _fill(stream, text, filled)
                if line == 1 and text[:3].tobytes() == _BYTE_ORDER_MARK:
                    text[:3] = 32
                consumed[0] = start + raw.tell()
                at_end = got < len(text) - PADDING
                size = _close_last_line(path, text, got, line) if at_end else _last_newline(text, got)
                if size == 0 and not at_end:
                    text, filled = _grown(path, text, line), got
                    continue
                rest = text[size:got].copy()
                if size:
                    rows, lines = count_rows(text, size)
                    line += lines
                    yield Chunk(path, text, size, line - lines, rows)
                if at_end:
                    break
                text, filled = buffers.take(), len(rest)
                text = _grown(path, text, line, filled) if filled > len(text) - PADDING else text
                text[:filled] = rest
            _check_unchanged(path, before, raw, stream)
    except Exception as error:
        raise _unreadable(path, error, f" after line {line - 1}") or error from None


def _fill(stream: Any, text: ByteArray, filled: int) -> int:
    view = text.data[: len(text) - PADDING]
    while filled < len(view):
        got = stream.readinto(view[filled:])
        if not got:
            break
        filled += got
    return filled


def _last_newline(text: ByteArray, size: int) -> int:
    """Bytes up to and with the last newline, 0 if there is none."""
    stop = size
    while stop > 0:
        start = max(0, stop - 65536)
        at = text[start:stop].tobytes().rfind(b"\n")
        if at >= 0:
            return start + at + 1
        stop = start
    return 0


def _close_last_line(path: Path, text: ByteArray, size: int, line: int) -> int:
    if size == 0 or text[size - 1] == 10:
        return size
    if text[size - 1] == ord(":") and b"#" not in text[_last_newline(text, size) : size].tobytes():
        number = line + int(np.count_nonzero(text[:size] == 10))
        raise DataError(f"{path}, line {number}: the file ends in the middle of a feature; it seems cut off.")
    text[size] = 10
    return size + 1


def _grown(path: Path, text: ByteArray, line: int, need: int = 0) -> ByteArray:
    if len(text) > LONGEST_LINE:
        raise DataError(
            f"{path}, line {line} is longer than {LONGEST_LINE >> 20} MiB; this is not LETOR text."
        )
    larger = np.zeros(max(2 * len(text), need + CHUNK_BYTES), dtype=np.uint8)
    larger[: len(text)] = text
    return larger


def _check_unchanged(path: Path, before: os.stat_result, raw: IO[bytes], stream: Any) -> None:
    after = os.fstat(raw.fileno())
    whole = stream is not raw or raw.tell() == before.st_size
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or not whole:
        raise DataError(
            f"{path} changed while it was read ({before.st_size} bytes before, {after.st_size} after); "
            "read it again."
        )


_COMPRESSORS: dict[str, Callable[[Any, Path], Any]] = {
    # No time and no name inside: the same data gives the same bytes.
    ".gz": lambda raw, path: gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0),
    ".xz": lambda raw, path: lzma.LZMAFile(raw, "wb"),  # noqa: SIM115 - closed by its user
    ".bz2": lambda raw, path: bz2.BZ2File(raw, "wb"),
    ".zst": lambda raw, path: zstandard_of(path).ZstdCompressor().stream_writer(raw, closefd=False),
}


@contextlib.contextmanager
def replaced_file(path: StrPath, compress: bool = False) -> Iterator[Any]:
    """Open a temporary file beside ``path`` for writing bytes; it takes the name only when all went well.

    With ``compress`` the suffix (.gz, .xz, .bz2, .zst) chooses the format.
    """
    target = Path(path)
    try:
        with written_whole(target) as raw:
            stream: Any = raw
            if compress and target.suffix in _COMPRESSORS:
                stream = _COMPRESSORS[target.suffix](raw, target)
            yield stream
            if stream is not raw:
                stream.close()
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}.") from error
