"""The bytes of a model file: one JSON header and a few named arrays, in a form that has no second spelling.

::

    offset  bytes  what
    0       8      magic: 89 4D 43 52 0D 0A 1A 0A  (a file changed by text-mode copying shows it here)
    8       4      format version, little-endian
    12      4      length of the header in bytes, little-endian
    16      8      length of the whole file in bytes, little-endian
    24      ...    header: canonical JSON (ASCII, sorted keys, no spaces), zero bytes up to a multiple of 64
    ...     ...    each array of the header's table: little-endian, C order, zero bytes up to a multiple of 64
    end-32  32     SHA-256 of all bytes before

Nothing in the file is free: offsets follow from the table, the padding is zero and the header must be
spelled the one way `pack` spells it. So equal content means equal bytes, and whatever `unpack` accepts,
`pack` gives back.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.errors import ModelFileError

Arrays = dict[str, npt.NDArray[Any]]

MAGIC = b"\x89MCR\r\n\x1a\n"
FORMAT_VERSION = 1
PRELUDE = struct.Struct("<8sIIQ")
ALIGNMENT = 64
DIGEST_BYTES = 32
DTYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in ("uint8", "uint16", "int32", "int64", "float32", "float64")
}

# Bounds that an honest model never meets, and that keep a hostile one from costing time or memory out of
# proportion to its size: Python needs up to 24 times the bytes of JSON made of empty containers.
MAX_FILE_BYTES = 2**32
MAX_HEADER_BYTES = 2**25
MAX_DEPTH = 24
MAX_CONTAINERS = 2**17
MAX_ARRAYS = 4096
MAX_DIMENSIONS = 4
MAX_SIDE = 2**40

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def pack(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the bytes of a file that holds ``header`` (JSON values) and ``arrays`` (numbers, all finite).

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.models.container import pack, unpack
    >>> header, arrays = unpack(pack({"ranker": "x"}, {"value": np.array([1.0, 2.0])}), "a file")
    >>> header, arrays["value"].tolist()
    ({'ranker': 'x'}, [1.0, 2.0])
    """
    table, blocks = [], []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        dtype = DTYPES.get(array.dtype.name)
        if dtype is None or not 1 <= array.ndim <= MAX_DIMENSIONS:
            raise ModelFileError(
                f"array {name!r} of a model must have 1 to {MAX_DIMENSIONS} dimensions of "
                f"{' or '.join(DTYPES)}, got {array.ndim} of {array.dtype}."
            )
        _check_finite(array, name, "the model")
        table.append({"dtype": array.dtype.name, "name": name, "shape": list(array.shape)})
        blocks.append(array.astype(dtype, copy=False).tobytes())
    text = canonical({**header, "arrays": table})
    parts = [_padded(text, PRELUDE.size), *(_padded(block) for block in blocks)]
    length = PRELUDE.size + sum(map(len, parts)) + DIGEST_BYTES
    if len(text) > MAX_HEADER_BYTES or length > MAX_FILE_BYTES:
        raise ModelFileError(
            f"a model file holds at most {MAX_FILE_BYTES} bytes with {MAX_HEADER_BYTES} of header; "
            f"this model needs {length} and {len(text)}."
        )
    body = b"".join([PRELUDE.pack(MAGIC, FORMAT_VERSION, len(text), length), *parts])
    return body + hashlib.sha256(body).digest()


def unpack(content: bytes | bytearray, where: str) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a model file's content, or raise `ModelFileError` naming ``where``.

    Every byte is accounted for before anything is returned: either `pack` would write exactly ``content``, or
    it is refused. Arrays share the memory of ``content``.
    """
    text = _check_frame(content, where)
    header = _parse(text, where)
    table = header.pop("arrays", None)
    if not isinstance(table, list) or len(table) > MAX_ARRAYS:
        raise _damaged(where, f"its header must have a table of at most {MAX_ARRAYS} arrays")
    arrays: Arrays = {}
    start = _aligned(PRELUDE.size + len(text))
    _check_padding(content, PRELUDE.size + len(text), start, where)
    for entry in table:
        name, dtype, shape = _array_entry(entry, where)
        if arrays and name <= next(reversed(arrays)):
            raise _damaged(where, f"its array {name!r} is listed twice or out of order")
        count = 1
        for side in shape:
            count *= side  # Python integers: no overflow
        end = start + count * dtype.itemsize
        if end > len(content) - DIGEST_BYTES:
            raise _damaged(where, f"its array {name!r} of shape {shape} reaches past the end of the file")
        array = np.frombuffer(content, dtype=dtype, count=count, offset=start).reshape(shape)
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        _check_finite(array, name, where)
        start = _aligned(end)
        _check_padding(content, end, start, where)
    if start + DIGEST_BYTES != len(content):
        raise _damaged(
            where, f"its arrays end at byte {start}, its checksum starts at {len(content) - DIGEST_BYTES}"
        )
    return header, arrays


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return the one spelling of a JSON object.

    Examples
    --------
    >>> from mcrank.models.container import canonical
    >>> canonical({"b": 1.0, "a": [True, None]})
    b'{"a":[true,null],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _check_frame(content: bytes | bytearray, where: str) -> bytes:
    """Check magic, version, lengths and checksum; return the bytes of the header."""
    if content[: len(MAGIC)] != MAGIC[: len(content)]:
        raise ModelFileError(f"{where} is not a mcrank model file: it does not start with {MAGIC!r}.")
    if len(content) < PRELUDE.size + DIGEST_BYTES:
        raise _damaged(where, f"it has {len(content)} bytes, fewer than any model")
    _, version, header_bytes, length = PRELUDE.unpack_from(content)
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{where} has model format version {version}, this mcrank reads version {FORMAT_VERSION}; "
            "load it with the version of mcrank that wrote it, or a newer one."
        )
    if length != len(content):
        raise _damaged(where, f"it should have {length} bytes and has {len(content)}")
    body = memoryview(content)[:-DIGEST_BYTES]
    if hashlib.sha256(body).digest() != content[-DIGEST_BYTES:]:
        raise _damaged(where, "its checksum does not match its content")
    if header_bytes > min(MAX_HEADER_BYTES, len(body) - PRELUDE.size):
        raise _damaged(where, f"its header cannot have {header_bytes} bytes")
    return bytes(body[PRELUDE.size : PRELUDE.size + header_bytes])


def _parse(text: bytes, where: str) -> dict[str, Any]:
    """Read canonical JSON, after a look at its nesting so that no parser meets what could exhaust it."""
    brackets = np.frombuffer(_STRING.sub(b"", text).translate(None, _NOT_BRACKETS), dtype=np.uint8)
    opens = (brackets == ord("[")) | (brackets == ord("{"))
    depth = int(np.cumsum(np.where(opens, 1, -1)).max(initial=0))
    if depth > MAX_DEPTH or int(opens.sum()) > MAX_CONTAINERS:
        raise _damaged(where, f"its header is nested {depth} deep in {int(opens.sum())} lists and objects")
    try:
        header = json.loads(text.decode("ascii"))
        spelled_so = isinstance(header, dict) and canonical(header) == text
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"its header is not JSON ({error})") from None
    if not spelled_so:
        # Also the answer to duplicate keys, NaN, Infinity, numbers too large for a float, and spaces.
        raise _damaged(where, "its header is not a JSON object in canonical form")
    return dict(header)


def _array_entry(entry: Any, where: str) -> tuple[str, np.dtype[Any], tuple[int, ...]]:
    if not isinstance(entry, dict) or sorted(entry) != ["dtype", "name", "shape"]:
        raise _damaged(where, "its table of arrays must give each array's dtype, name and shape")
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in DTYPES:
        raise _damaged(where, f"its array {name!r} has the unknown dtype {dtype!r}")
    sides_ok = isinstance(shape, list) and all(type(side) is int and 0 <= side <= MAX_SIDE for side in shape)
    if not sides_ok or not 1 <= len(shape) <= MAX_DIMENSIONS or (0 in shape and max(shape) > 2**20):
        raise _damaged(where, f"its array {name!r} has the impossible shape {str(shape)[:80]}")
    return name, DTYPES[dtype], tuple(shape)


def _check_finite(array: npt.NDArray[Any], name: str, where: str) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = int(np.argmin(np.isfinite(array.ravel())))
        raise ModelFileError(f"{where} has {array.ravel()[at]!r} in {name} at {at}; numbers must be finite.")


def _check_padding(content: bytes | bytearray, start: int, end: int, where: str) -> None:
    if any(content[start:end]) or end > len(content) - DIGEST_BYTES:
        raise _damaged(where, f"its bytes {start} to {end} should be there and zero")


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _padded(block: bytes, position: int = 0) -> bytes:
    return block + bytes(_aligned(position + len(block)) - position - len(block))


def _damaged(where: str, how: str) -> ModelFileError:
    return ModelFileError(f"{where} is damaged: {how}. Copy or train the model again.")
