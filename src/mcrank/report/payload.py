"""Numbers inside a page: JSON and arrays, deflated and written as base64, so that 30,000 queries stay small.

Layout before compression: the length of the JSON part (4 bytes, little end first), the JSON part, then arrays
one after another, each at a multiple of 4 bytes. The JSON part says where each array lies and of what type
it is; `templates/payload.js` reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

from mcrank.arrays import Array, Arrays, ByteArray, FloatArray, IntArray
from mcrank.texts import unshown_as_json

_TYPES = {"uint8": "u1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4", "float32": "<f4"}
NO_VALUE = 65535  # of quantized values: the dialect gives the query none


class Payload:
    """Collects what goes into a page.

    Examples
    --------
    >>> import base64, zlib
    >>> from mcrank.report.payload import Payload
    >>> zlib.decompress(base64.b64decode(Payload().text({"title": "a page"})))[4:].strip()
    b'{"facts": {"title": "a page"}, "arrays": {}}'
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}

    def add(self, name: str, array: Array) -> None:
        """Add an array of one of the types a page can read."""
        self.arrays[name] = np.ascontiguousarray(array, dtype=_TYPES[array.dtype.name])

    def text(self, facts: dict[str, Any]) -> str:
        """Return everything as base64."""
        places: dict[str, list[Any]] = {}
        blocks = []
        at = 0
        for name, array in self.arrays.items():
            content = array.tobytes()
            places[name] = [array.dtype.name, at, array.size]
            blocks.append(content + bytes(-len(content) % 4))
            at += len(blocks[-1])
        text = json.dumps({"facts": facts, "arrays": places}, ensure_ascii=False, allow_nan=False)
        head = unshown_as_json(text).encode()
        head += b" " * (-len(head) % 4)
        whole = len(head).to_bytes(4, "little") + head + b"".join(blocks)
        return base64.b64encode(zlib.compress(whole, 9)).decode("ascii")


def packed_size(array: Array) -> int:
    """Bytes an array takes in a page, about."""
    return len(zlib.compress(array.tobytes(), 9)) * 4 // 3


def decimals_for(values: FloatArray) -> int:
    """Decimals that values can keep in 16 bits: four between -1.6 and 1.6, fewer for wider ranges.

    They are negative where not even whole numbers fit, as of DCG with grades above 10: -2 for hundreds.
    """
    widest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    decimals = 4
    while widest * 10.0**decimals >= 16_000:  # a step may be twice as wide, and has a sign
        decimals -= 1
    return decimals


def quantize(values: FloatArray, decimals: int) -> ByteArray:
    """Values (systems x queries) rounded to ``decimals``, as bytes that compress well.

    Each system is stored as its difference from the one before (rankers agree on many queries), folded to
    unsigned numbers; low bytes first, then high bytes.
    """
    known = np.isfinite(values)
    rounded = _rounded(np.where(known, values, 0.0), decimals)
    last = np.zeros(values.shape[1], dtype=np.int64)
    steps = np.empty_like(rounded)
    for system, row in enumerate(rounded):
        steps[system] = row - last
        last = np.where(known[system], row, last)
    folded = np.where(steps >= 0, 2 * steps, -2 * steps - 1)
    folded[~known] = NO_VALUE
    cells = folded.astype(np.uint16).ravel()
    return np.concatenate([(cells & 255).astype(np.uint8), (cells >> 8).astype(np.uint8)])


def _rounded(values: FloatArray, decimals: int) -> IntArray:
    """Whole numbers of 10^-decimals, rounded to the very digits Python prints."""
    scaled = values * 10.0**decimals
    rounded = np.rint(scaled).astype(np.int64)
    if decimals < 0:
        return rounded  # nobody prints those in full
    # Near the middle between two numbers a product does not tell which is nearer; the printed text does.
    for place in np.argwhere(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6).tolist():
        rounded[tuple(place)] = int(f"{values[tuple(place)]:.{decimals}f}".replace(".", ""))
    return rounded
