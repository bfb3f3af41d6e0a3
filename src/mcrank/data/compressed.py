"""Compressed files as plain bytes: gzip, xz, bzip2 and Zstandard, known by their first bytes.

One rule for all of them: streams one behind the other are one file, with the zeros that a format allows
between and behind them (gzip: any number, xz: multiples of four). Any other byte behind a stream is damage.
The readers of Python's own lzma and bz2 pass over such bytes, and with them over what may be the rest of the
data.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mcrank.errors import DataError

SUFFIXES = (".gz", ".bz2", ".zst", ".xz")
# Of compressed bytes read at a time; a Zstandard block of four bytes may hold 128 KiB.
BLOCK_BYTES = 1 << 14


class Damaged(Exception):
    """Bytes that are no compressed stream."""


# What reading may raise when the content is to blame.
DECODING_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error, Damaged)


def open_bytes(path: Path, raw: IO[bytes]) -> Any:
    """Wrap an open file so that ``readinto`` gives plain bytes; what is not compressed is returned itself."""
    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if magic.startswith(b"\xfd7zXZ\x00"):
        return _Streams(raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=4)
    if magic.startswith(b"BZh"):
        return _Streams(raw, bz2.BZ2Decompressor)
    if magic.startswith(b"\x28\xb5\x2f\xfd") or _is_skippable(magic):
        return _Streams(raw, lambda: _Frame(zstandard_of(path)))
    return raw


def zstandard_of(path: Path) -> Any:
    """Return the library for a Zstandard file, or raise `DataError`."""
    try:
        import zstandard
    except ImportError:
        raise DataError(
            f"{path} is compressed with Zstandard, which needs the package zstandard: pip install zstandard."
        ) from None
    return zstandard


def _is_skippable(magic: bytes) -> bool:
    """Whether a Zstandard frame without data begins here; compressors in several threads write it first."""
    return magic[1:4] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F


class _Frame:
    """A Zstandard frame, asked as the decompressors of bz2 and lzma are; it gives all there is at once."""

    needs_input = True

    def __init__(self, library: Any) -> None:
        self._frame = library.ZstdDecompressor().decompressobj()

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._frame.decompress(data))

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)


class _Streams(io.RawIOBase):
    """Plain bytes of compressed streams one behind the other, with zeros in multiples of ``padding``."""

    def __init__(self, raw: IO[bytes], new: Callable[[], Any], padding: int = 0) -> None:
        self._raw, self._new, self._padding = raw, new, padding
        self._stream, self._place = new(), ""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        block = b""
        while not self._ready:
            if self._stream.eof:
                block = self._behind()
                if not block:
                    return 0
                self._stream, self._place = self._new(), " (behind the end of another stream)"
            elif self._stream.needs_input and not (block := self._raw.read(BLOCK_BYTES)):
                raise EOFError(f"a compressed stream without an end{self._place}")
            self._ready = memoryview(self._decompressed(block, len(target)))
            block = b""
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _behind(self) -> bytes:
        """Return bytes that begin a next stream, none at the end of the file."""
        block, zeros = self._stream.unused_data or self._raw.read(BLOCK_BYTES), 0
        while block and self._padding:
            rest = block.lstrip(b"\0")
            zeros += len(block) - len(rest)
            block = rest or self._raw.read(BLOCK_BYTES)
            if rest:
                break
        if zeros and zeros % self._padding:
            raise Damaged(f"{zeros} zeros behind a stream, no multiple of {self._padding}")
        return bytes(block)

    def _decompressed(self, block: bytes, room: int) -> bytes:
        try:
            return bytes(self._stream.decompress(block, room))
        except MemoryError:
            raise
        except Exception as error:  # each library has its own
            raise Damaged(f"{error}{self._place}") from None
