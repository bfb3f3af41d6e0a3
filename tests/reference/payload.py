"""What is inside a page, as `templates/payload.js` of the report reads it."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np

TYPES = {"uint8": "u1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4", "float32": "<f4"}
NO_VALUE = 65535


def unpack(text):
    """Facts and arrays of a payload."""
    whole = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(whole[:4], "little")
    head = json.loads(whole[4 : 4 + length])
    arrays = {
        name: np.frombuffer(whole, dtype=TYPES[kind], count=count, offset=4 + length + at)
        for name, (kind, at, count) in head["arrays"].items()
    }
    return head["facts"], arrays


def restore(cells, systems, decimals):
    """Values (systems x queries), rounded, of what `quantize` wrote."""
    half = len(cells) // 2
    folded = (cells[:half].astype(np.int64) | cells[half:].astype(np.int64) << 8).reshape(systems, -1)
    steps = np.where(folded % 2 == 0, folded // 2, -(folded + 1) // 2)
    known = folded != NO_VALUE
    total = np.cumsum(np.where(known, steps, 0), axis=0)
    return np.where(known, total / 10.0**decimals, np.nan)
