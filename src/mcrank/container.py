"""One container for model files, cells and caches: a JSON header and named arrays, with no second spelling.

::

    offset  bytes  what
    0       8      magic, ending in 0D 0A 1A 0A  (a file changed by text-mode copying shows it here)
    8       4      format version, little-endian
    12      4      length of the header in bytes, little-endian
    16      8      length of the whole file in bytes, little-endian
    24      ...    header: canonical JSON (ASCII, sorted keys, no spaces), zero bytes up to a multiple of 64
    ...     ...    each array of the header's table: little-endian, C order, zero bytes up to a multiple of 64
    end-32  32     SHA-256 of all bytes before

Nothing in the file is free: offsets follow from the table, the padding is zero and the header must be
spelled the one way `pack` spells it. So equal content means equal bytes, and whatever `unpack` accepts,
`pack` gives back.

A file is looked at from its front: the magic and the lengths before the header, the header before the arrays,
so that what is not one of ours, or is larger than it says, is refused before memory is spent on it. Files are
read, not mapped, unless the caller trusts them: a file that another process cuts short while it is mapped
kills the reader with a bus error.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np

from mcrank.arrays import Array, Arrays, ByteArray
from mcrank.errors import ModelFileError
from mcrank.memory import OnDisk, fresh_bytes

Content = bytes | bytearray | ByteArray

FORMAT_VERSION = 1
PRELUDE = struct.Struct("<8sIIQ")
ALIGNMENT = 64
DIGEST_BYTES = 32
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("uint8", "uint16", "int32", "int64", "float32", "float64")
}

# Bounds that an honest file never meets, and that keep a hostile one from costing time or memory out of
# proportion to its size: Python needs up to 24 times the bytes of JSON made of empty containers.
MAX_HEADER_BYTES = 2**25
MAX_DEPTH = 24
MAX_CONTAINERS = 2**17
MAX_ARRAYS = 4096
MAX_DIMENSIONS = 4
MAX_SIDE = 2**40

# Above this size a file's checksum is computed before memory for its arrays is asked for: a sparse file of
# gigabytes costs its writer nothing.
_LARGE = 64 << 20
_BLOCK = 4 << 20

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


@dataclass(frozen=True)
class Kind:
    """What a container is used for."""

    magic: bytes
    noun: str
    max_bytes: int
    finite: bool  # whether every floating-point number must be
    remedy: str


MODEL = Kind(b"\x89MCR\r\n\x1a\n", "model", 2**32, True, "Copy or train the model again.")
CACHE = Kind(b"\x89MCC\r\n\x1a\n", "cache", 2**44, False, "Remove it and read the data again.")
BINS = Kind(b"\x89MCB\r\n\x1a\n", "bins", 2**44, True, "Make it again with mcrank bin.")


class Place(NamedTuple):
    """An array in the file: its form, and where its bytes are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


def pack(header: Mapping[str, Any], arrays: Mapping[str, Array], kind: Kind = MODEL) -> bytes:
    """Return the bytes of a file that holds ``header`` (JSON values) and ``arrays`` (numbers).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.container import pack, unpack
    >>> header, arrays = unpack(pack({"ranker": "x"}, {"value": np.array([1.0, 2.0])}), "a file")
    >>> header, arrays["value"].tolist()
    ({'ranker': 'x'}, [1.0, 2.0])
    """
    return b"".join(pieces(header, arrays, kind))


def pieces(
    header: Mapping[str, Any], arrays: Mapping[str, Array], kind: Kind = MODEL
) -> Iterator[bytes | memoryview]:
    """Yield what `pack` returns piece by piece: a cache is not held in memory twice to be written."""
    table, blocks = [], []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        dtype = DTYPES.get(array.dtype.name)
        if dtype is None or not 1 <= array.ndim <= MAX_DIMENSIONS:
            raise ModelFileError(
                f"array {name!r} of a {kind.noun} must have 1 to {MAX_DIMENSIONS} dimensions of "
                f"{' or '.join(DTYPES)}, got {array.ndim} of {array.dtype}."
            )
        if kind.finite:
            _check_finite(array, name, f"the {kind.noun}")
        table.append({"dtype": array.dtype.name, "name": name, "shape": list(array.shape)})
        blocks.append(array.astype(dtype, copy=False).reshape(-1).view(np.uint8))
    text = canonical({**header, "arrays": table})
    length = _aligned(PRELUDE.size + len(text)) + sum(_aligned(len(b)) for b in blocks) + DIGEST_BYTES
    if len(text) > MAX_HEADER_BYTES or length > kind.max_bytes:
        raise ModelFileError(
            f"a {kind.noun} file holds at most {kind.max_bytes} bytes with {MAX_HEADER_BYTES} of header; "
            f"this {kind.noun} needs {length} and {len(text)}."
        )
    front = PRELUDE.pack(kind.magic, FORMAT_VERSION, len(text), length) + text
    parts = [front + bytes(-len(front) % ALIGNMENT)]
    digest = hashlib.sha256(parts[0])
    yield parts[0]
    for block in blocks:
        for piece in (block.data, bytes(-len(block) % ALIGNMENT)):
            digest.update(piece)
            yield piece
    yield digest.digest()


def unpack(content: bytes | bytearray, where: str, kind: Kind = MODEL) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a file's content, or raise `ModelFileError` naming ``where``.

    Every byte is accounted for before anything is returned: either `pack` would write exactly ``content``, or
    it is refused. Arrays share the memory of ``content``.
    """
    header_bytes = _check_prelude(content[: PRELUDE.size], len(content), where, kind)
    if hashlib.sha256(memoryview(content)[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
        raise _damaged(where, "its checksum does not match its content", kind)
    header, places = _layout(content[PRELUDE.size : PRELUDE.size + header_bytes], len(content), where, kind)
    return header, _arrays(content, places, where, kind)


def read_file(
    path: str | os.PathLike[str],
    kind: Kind = MODEL,
    *,
    wanted: Callable[[dict[str, Any], dict[str, Place]], None] | None = None,
    whole: bool = True,
    mapped: bool = False,
) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a file, or raise `ModelFileError`; its bytes are in memory once.

    ``wanted`` gets the header and the places of the arrays before memory is spent on them, and raises what it
    likes if this is not the file that the caller wants. Without ``whole`` the checksum is left out: the
    caller has a quicker one of its own. With ``mapped`` the arrays are the pages of the file, which must not
    be changed while they are used.
    """
    where = os.fspath(path)
    try:
        with open_regular(where) as file:
            size = os.fstat(file.fileno()).st_size
            front = file.read(PRELUDE.size)
            text = file.read(_check_prelude(front, size, where, kind))
            header, places = _layout(text, size, where, kind)
            if wanted is not None:
                wanted(header, places)
            if whole and size > _LARGE and not mapped:
                _check_digest(file, size, where, kind)
            content = _mapped(file) if mapped else _read_all(file, size, where, kind)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        words = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{where} cannot be read: {words}.") from None
    except MemoryError:
        raise ModelFileError(f"{where} does not fit into memory.") from None
    # What is checked are the bytes that are used, not those that were in the file a moment ago.
    if content[: PRELUDE.size + len(text)].tobytes() != front + text:
        raise _damaged(where, "it changed while it was read", kind)
    if whole and hashlib.sha256(content[:-DIGEST_BYTES].data).digest() != content[-DIGEST_BYTES:].tobytes():
        raise _damaged(where, "its checksum does not match its content", kind)
    return header, _arrays(content, places, where, kind)


def open_regular(path: str) -> IO[bytes]:
    """Open a file for reading; what is not a regular file is refused instead of waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ModelFileError(f"{path} is not a regular file.")
        return os.fdopen(handle, "rb", buffering=0)
    except BaseException:
        os.close(handle)
        raise


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return the one spelling of a JSON object.

    Examples
    --------
    >>> from mcrank.container import canonical
    >>> canonical({"b": 1.0, "a": [True, None]})
    b'{"a":[true,null],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _check_prelude(front: bytes | bytearray, size: int, where: str, kind: Kind) -> int:
    """Check magic, version and lengths by the first bytes; return the length of the header."""
    if front[: len(kind.magic)] != kind.magic[: len(front)]:
        raise ModelFileError(
            f"{where} is not a mcrank {kind.noun} file: it does not start with {kind.magic!r}."
        )
    if size < PRELUDE.size + DIGEST_BYTES or len(front) < PRELUDE.size:
        raise _damaged(where, f"it has {size} bytes, fewer than any {kind.noun}", kind)
    _, version, header_bytes, length = PRELUDE.unpack(front)
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{where} has {kind.noun} format version {version}, this mcrank reads version {FORMAT_VERSION}; "
            "load it with the version of mcrank that wrote it, or a newer one."
        )
    if length != size:
        raise _damaged(where, f"it should have {length} bytes and has {size}", kind)
    if size > kind.max_bytes:
        raise ModelFileError(f"{where} has {size} bytes; a {kind.noun} file has at most {kind.max_bytes}.")
    if header_bytes > min(MAX_HEADER_BYTES, size - DIGEST_BYTES - PRELUDE.size):
        raise _damaged(where, f"its header cannot have {header_bytes} bytes", kind)
    return int(header_bytes)


def _check_digest(file: IO[bytes], size: int, where: str, kind: Kind) -> None:
    """Compare the checksum in the file with that of its bytes, block by block."""
    digest, left = hashlib.sha256(), size - DIGEST_BYTES
    block = memoryview(bytearray(_BLOCK))
    file.seek(0)
    while left:
        got = file.readinto(block[: min(left, _BLOCK)])  # type: ignore[attr-defined]
        if not got:
            break
        digest.update(block[:got])
        left -= got
    if left or digest.digest() != file.read(DIGEST_BYTES):
        raise _damaged(where, "its checksum does not match its content", kind)


def _mapped(file: IO[bytes]) -> ByteArray:
    return np.frombuffer(OnDisk(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)


def _read_all(file: IO[bytes], size: int, where: str, kind: Kind) -> ByteArray:
    """Read the whole file into memory that starts at a multiple of the alignment, as its arrays do."""
    content = fresh_bytes(size)
    file.seek(0)
    filled = 0
    while filled < size:
        got = file.readinto(content.data[filled:])  # type: ignore[attr-defined]
        if not got:
            raise _damaged(where, f"it should have {size} bytes and has {filled}", kind)
        filled += got
    return content


def _layout(
    text: bytes | bytearray, size: int, where: str, kind: Kind
) -> tuple[dict[str, Any], dict[str, Place]]:
    """Return the header and the place of each array, which must fill the file exactly."""
    header = _parse(bytes(text), where, kind)
    table = header.pop("arrays", None)
    if not isinstance(table, list) or len(table) > MAX_ARRAYS:
        raise _damaged(where, f"its header must have a table of at most {MAX_ARRAYS} arrays", kind)
    places: dict[str, Place] = {}
    start = _aligned(PRELUDE.size + len(text))
    for entry in table:
        name, dtype, shape = _array_entry(entry, where, kind)
        if places and name <= next(reversed(places)):
            raise _damaged(where, f"its array {name!r} is listed twice or out of order", kind)
        count = 1
        for side in shape:
            count *= side  # Python integers: no overflow
        end = start + count * dtype.itemsize
        if end > size - DIGEST_BYTES:
            raise _damaged(
                where, f"its array {name!r} of shape {shape} reaches past the end of the file", kind
            )
        places[name] = Place(dtype, shape, start, end)
        start = _aligned(end)
    if start + DIGEST_BYTES != size:
        raise _damaged(
            where, f"its arrays end at byte {start}, its checksum starts at {size - DIGEST_BYTES}", kind
        )
    return header, places


def _arrays(content: Content, places: Mapping[str, Place], where: str, kind: Kind) -> Arrays:
    """Cut the arrays out of the content; they share its memory."""
    arrays: Arrays = {}
    header_bytes = int(PRELUDE.unpack(bytes(content[: PRELUDE.size]))[2])
    last = PRELUDE.size + header_bytes
    for name, (dtype, shape, start, end) in places.items():
        _check_padding(content, last, start, where, kind)
        count = (end - start) // dtype.itemsize
        array = np.frombuffer(content, dtype=dtype, count=count, offset=start).reshape(shape)
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        if kind.finite:
            _check_finite(array, name, where)
        last = end
    _check_padding(content, last, len(content) - DIGEST_BYTES, where, kind)
    return arrays


def _parse(text: bytes, where: str, kind: Kind) -> dict[str, Any]:
    """Read canonical JSON, after a look at its nesting so that no parser meets what could exhaust it."""
    brackets = np.frombuffer(_STRING.sub(b"", text).translate(None, _NOT_BRACKETS), dtype=np.uint8)
    opens = (brackets == ord("[")) | (brackets == ord("{"))
    depth = int(np.cumsum(np.where(opens, 1, -1)).max(initial=0))
    if depth > MAX_DEPTH or int(opens.sum()) > MAX_CONTAINERS:
        raise _damaged(
            where, f"its header is nested {depth} deep in {int(opens.sum())} lists and objects", kind
        )
    try:
        header = json.loads(text.decode("ascii"))
        spelled_so = isinstance(header, dict) and canonical(header) == text
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"its header is not JSON ({error})", kind) from None
    if not spelled_so:
        # Also the answer to duplicate keys, NaN, Infinity, numbers too large for a float, and spaces.
        raise _damaged(where, "its header is not a JSON object in canonical form", kind)
    return dict(header)


def _array_entry(entry: Any, where: str, kind: Kind) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    if not isinstance(entry, dict) or sorted(entry) != ["dtype", "name", "shape"]:
        raise _damaged(where, "its table of arrays must give each array's dtype, name and shape", kind)
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPES:
        raise _damaged(where, f"its array {str(name)[:80]!r} has the unknown dtype {str(dtype)[:80]!r}", kind)
    sides_ok = isinstance(shape, list) and all(type(side) is int and 0 <= side <= MAX_SIDE for side in shape)
    if not sides_ok or not 1 <= len(shape) <= MAX_DIMENSIONS or (0 in shape and max(shape) > 2**20):
        raise _damaged(where, f"its array {name!r} has the impossible shape {str(shape)[:80]}", kind)
    return name, DTYPES[dtype], tuple(shape)


def _check_finite(array: Array, name: str, where: str) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = int(np.argmin(np.isfinite(array.ravel())))
        raise ModelFileError(f"{where} has {array.ravel()[at]!r} in {name} at {at}; numbers must be finite.")


def _check_padding(content: Content, start: int, end: int, where: str, kind: Kind) -> None:
    if end - start >= ALIGNMENT or any(bytes(content[start:end])):
        raise _damaged(where, f"its bytes {start} to {end} should be there and zero", kind)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _damaged(where: str, how: str, kind: Kind) -> ModelFileError:
    return ModelFileError(f"{where} is damaged: {how}. {kind.remedy}")
