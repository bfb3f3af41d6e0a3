"""Containers (models, caches, bins) that are damaged blindly, or forged with all hashes in order."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import struct
from random import Random
from typing import Any

import numpy as np

from mcrank.container import ALIGNMENT, PRELUDE, Kind, canonical
from tests.fuzz.mutate import ODD_INTEGERS, ODD_NUMBERS, ODD_WORDS, damaged_bytes, damaged_lines
from tests.reference.container import read_container

DTYPES = ["uint8", "uint16", "int32", "int64", "float32", "float64"]


def seal(header: Any, arrays: dict[str, np.ndarray], kind: Kind) -> bytes:
    """A hostile writer: any header and any numbers, with lengths and checksum in order."""
    table = [
        {"dtype": arrays[name].dtype.name, "name": name, "shape": list(arrays[name].shape)}
        for name in sorted(arrays)
    ]
    return seal_text(
        canonical({**header, "arrays": table}), [arrays[name].tobytes() for name in sorted(arrays)], kind
    )


def seal_text(text: bytes, blocks: list[bytes], kind: Kind) -> bytes:
    """The same for any text in place of a header."""
    parts = [text + bytes(-(PRELUDE.size + len(text)) % ALIGNMENT)]
    parts += [block + bytes(-len(block) % ALIGNMENT) for block in blocks]
    length = PRELUDE.size + sum(map(len, parts)) + 32
    body = PRELUDE.pack(kind.magic, 1, len(text), length) + b"".join(parts)
    return body + hashlib.sha256(body).digest()


def odd_value(random: Random, depth: int = 0) -> Any:
    """A JSON value that nobody expects."""
    return random.choice(
        [
            lambda: random.choice([None, True, False, -1, 10**30, 1e308, 5e-324, -0.0, "\ud800", "nan"]),
            lambda: random.choice(ODD_INTEGERS), lambda: -random.choice(ODD_INTEGERS),
            lambda: random.uniform(-10, 10), lambda: random.choice(ODD_WORDS + ODD_NUMBERS),
            lambda: [odd_value(random, depth + 1) for _ in range(random.randrange(4))] if depth < 3 else [],
            lambda: {random.choice(ODD_WORDS): odd_value(random, depth + 1)} if depth < 3 else {},
        ]
    )()  # fmt: skip


def forge_header(random: Random, header: Any) -> Any:
    """A header with one to three values changed, removed, added or exchanged."""
    header = copy.deepcopy(header)
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(header))
        if not places:
            break
        parent, key = random.choice(places)
        what = random.randrange(5)
        if what == 0:
            del parent[key]
        elif what == 1:
            other, name = random.choice(places)
            with contextlib.suppress(KeyError, IndexError):  # one of them is in what the other replaced
                parent[key] = copy.deepcopy(other[name])
        elif what == 2 and isinstance(parent, dict):
            parent[random.choice(ODD_WORDS)] = odd_value(random)
        else:
            parent[key] = odd_value(random)
    return header


def _places(value: Any):
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in list(entries)[:50]:
        yield value, key
        yield from _places(entry)


def forge_arrays(random: Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays with odd numbers, other lengths, types, dimensions; missing, new or exchanged ones."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        if not arrays:
            break
        name = random.choice(sorted(arrays))
        array = arrays[name]
        what = random.randrange(10)
        if what == 0:
            arrays[name] = array[: random.randrange(len(array) + 1)]
        elif what == 1:
            arrays[name] = np.concatenate([array, array[: random.randrange(1, 4)]])
        elif what == 2:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(random.choice(DTYPES))
        elif what == 3:
            arrays[name] = random.choice([array.reshape(1, -1), array.reshape(-1), array.reshape(-1, 1)])
        elif what == 4:
            other = random.choice(sorted(arrays))
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif what == 5 and random.random() < 0.3:
            del arrays[name]
        elif what == 6 and random.random() < 0.3:
            arrays[random.choice(["zzz", "weight", "doc_ids", "a\x1b", "source_rows"])] = array
        elif array.size:
            _odd_numbers(random, array.reshape(-1))
    return arrays


def _odd_numbers(random: Random, flat: np.ndarray) -> None:
    for _ in range(random.choice((1, 1, 2, len(flat)))):
        at = random.randrange(len(flat))
        if flat.dtype.kind == "f":
            odd = [0.0, -0.0, 1e38, -1e38, 1e-45, -1.0, 0.5, float(flat[random.randrange(len(flat))])]
            odd += [float("nan"), float("inf")] if random.random() < 0.2 else []
            flat[at] = random.choice(odd)
        else:
            near = [
                int(flat[at]) + 1,
                int(flat[at]) - 1,
                int(flat[random.randrange(len(flat))]),
                -1,
                len(flat),
            ]
            value = random.choice([*near, random.choice(ODD_INTEGERS), -random.choice(ODD_INTEGERS)])
            bits = 8 * flat.dtype.itemsize
            value %= 2**bits
            flat[at] = value - 2**bits if flat.dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def resealed(random: Random, content: bytes) -> bytes:
    """Blind damage by somebody who keeps the length and the checksum right."""
    content = damaged_bytes(random, content)
    if len(content) < PRELUDE.size + 32:
        return content
    body = content[:16] + struct.pack("<Q", len(content)) + content[24:-32]
    return body + hashlib.sha256(body).digest()


def forged(random: Random, content: bytes, other: bytes, kind: Kind) -> bytes:
    """A damaged container, by one of the ways above; the header's own fields are the caller's matter."""
    header, arrays = read_container(content, kind.magic, finite=kind.finite)
    what = random.randrange(10)
    if what < 2:
        return damaged_bytes(random, content, other)
    if what < 4:
        return resealed(random, content)
    if what == 4:
        text = canonical({**header, "arrays": []}).decode()
        return seal_text(
            damaged_lines(random, text, ',:"[]').encode("utf-8", "surrogatepass"), [b"x" * 64], kind
        )
    if what < 7:
        with contextlib.suppress(ValueError):
            return seal(forge_header(random, header), arrays, kind)
    return seal(header if what < 9 else forge_header(random, header), forge_arrays(random, arrays), kind)
