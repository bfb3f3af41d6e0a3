"""Naive reading of a container: struct, json and hashlib, one rule after another."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np

SIZES = {"uint8": 1, "uint16": 2, "int32": 4, "int64": 8, "float32": 4, "float64": 8}


class Bad(Exception):
    """Content that must be refused."""


def read_container(content: bytes, magic: bytes, *, checksum=True, finite=True):
    """Return the header and the arrays, or raise `Bad`."""
    _require(len(content) >= 24 + 32, "short")
    mark, version, header_size, size = struct.unpack("<8sIIQ", content[:24])
    _require(mark == magic and version == 1 and size == len(content), "front")
    _require(not checksum or hashlib.sha256(content[:-32]).digest() == content[-32:], "checksum")
    _require(24 + header_size + 32 <= size and header_size <= 1 << 25, "header size")
    text = content[24 : 24 + header_size]
    header = _header(text)
    at = 24 + header_size
    arrays, last = {}, None
    table = header.pop("arrays", None)
    _require(isinstance(table, list) and len(table) <= 4096, "table")
    for entry in table:
        _require(isinstance(entry, dict) and set(entry) == {"dtype", "name", "shape"}, "entry")
        name, kind, shape = entry["name"], entry["dtype"], entry["shape"]
        _require(isinstance(name, str) and isinstance(kind, str) and kind in SIZES, "dtype")
        _require(isinstance(shape, list) and 1 <= len(shape) <= 4, "shape")
        _require(all(type(side) is int and 0 <= side <= 2**40 for side in shape), "side")
        _require(not (0 in shape and max(shape) > 2**20), "empty")
        _require(last is None or name > last, "order")
        at = _skip_padding(content, at)
        length = SIZES[kind]
        for side in shape:
            length *= side
        _require(at + length <= size - 32, "past the end")
        array = np.array(np.frombuffer(content[at : at + length], dtype=np.dtype(kind).newbyteorder("<")))
        _require(not (finite and kind.startswith("float") and not np.isfinite(array).all()), "finite")
        arrays[name] = array.astype(kind).reshape(shape)
        at, last = at + length, name
    _require(_skip_padding(content, at) == size - 32, "length")
    return header, arrays


def _header(text: bytes):
    depth = most = containers = 0
    inside = escaped = False
    for byte in text:
        if inside:
            inside = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord('"'):
            inside = True
        elif byte in b"[{":
            depth, containers = depth + 1, containers + 1
            most = max(most, depth)
        elif byte in b"]}":
            depth -= 1
    _require(most <= 24 and containers <= 1 << 17, "nesting")
    try:
        header = json.loads(text.decode("ascii"))
        spelled = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise Bad("not JSON") from None
    _require(isinstance(header, dict) and spelled == text, "spelling")
    return header


def _skip_padding(content: bytes, at: int) -> int:
    end = -(-at // 64) * 64
    _require(content[at:end] == bytes(end - at) and end <= len(content), "padding")
    return end


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise Bad(rule)
