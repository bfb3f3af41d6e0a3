"""The binary cache: a parsed data set in one file beside its source, mapped into memory by the next load.

Layout: magic, length and checksum of a JSON header, the header, then arrays at multiples of a page. The
header names the source files with size, time and a hash of samples of their bytes, the options of the
reading, and each array with its place and hashes. A cache whose source or options changed is stale, one whose
own bytes do not fit is damaged; both are rebuilt. What is at most `FULL_HASH` bytes is hashed whole at every
load; of larger arrays and files, evenly spaced blocks (all of them would take longer than the load that the
cache is for), and ``verify`` hashes everything.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.data.dataset import Dataset, restore
from mcrank.data.ids import check_ids, id_kind
from mcrank.data.sources import replaced_file
from mcrank.errors import DataError

SUFFIX = ".mcrank-cache"
FULL_HASH = 4 << 20

_MAGIC = b"mcrank-cache-1\n\x00"
_HEAD = struct.Struct("<16sQ32s")
_PAGE = 4096
_BLOCK = 1 << 16
_SAMPLES = 32
_DTYPES = {"X": "<f4", "y": "<f8", "offsets": "<i8", "source_rows": "<i8", "weight": "<f8"}


class _Unusable(Exception):
    """Why a cache cannot be used; it never reaches the caller."""


def cache_path(files: Sequence[Path]) -> Path:
    """Where the cache of these files lies: beside the first; several files are told apart by their names."""
    if len(files) == 1:
        return files[0].with_name(files[0].name + SUFFIX)
    names = "\n".join(str(path.resolve()) for path in files)
    return files[0].with_name(f"{files[0].name}+{hashlib.sha256(names.encode()).hexdigest()[:12]}{SUFFIX}")


def load_cache(files: Sequence[Path], options: dict[str, Any], *, verify: bool = False) -> Dataset | None:
    """Map the cache of these files, or return None when there is none that fits."""
    try:
        return _load(cache_path(files), describe_source(files, options), verify)
    except (_Unusable, OSError, ValueError, KeyError, TypeError, struct.error):
        # Anything odd about a cache means the same: read the source again.
        return None


def save_cache(data: Dataset, files: Sequence[Path], source: dict[str, Any]) -> Path:
    """Write the cache of a data set read from these files; ``source`` was described before reading them."""
    path = cache_path(files)
    arrays: dict[str, npt.NDArray[Any]] = {"X": data.X, "y": data.y, "offsets": data.offsets}
    for name in ("source_rows", "weight"):
        value = getattr(data, name)
        if value is not None:
            arrays[name] = value
    if data.qids.dtype == np.int64:
        arrays["qids"] = data.qids
    else:
        arrays["qid_texts"] = _packed(data.qids)
    if data.doc_ids is not None:
        arrays["doc_texts"] = _packed(data.doc_ids)
    table: dict[str, Any] = {}
    at = 0
    for name, array in arrays.items():
        values = array.reshape(-1).view(np.uint8)
        hashes = {"sampled": _sampled_hash(values), "whole": _whole_hash(values)}
        table[name] = {"at": at, "shape": list(array.shape), **hashes}
        at += -(-array.nbytes // _PAGE) * _PAGE
    header = {
        "source": source,
        "arrays": table,
        "payload": at,
        "features": list(data.feature_names),
        "named": data.named,
        "integer_qids": id_kind(data.qids) == "integers",
        "integer_docs": data.doc_ids is not None and id_kind(data.doc_ids) == "integers",
    }
    text = json.dumps(header).encode()
    with replaced_file(path) as stream:
        stream.write(_HEAD.pack(_MAGIC, len(text), hashlib.sha256(text).digest()) + text)
        stream.write(b"\x00" * (-(_HEAD.size + len(text)) % _PAGE))
        for array in arrays.values():
            stream.write(np.ascontiguousarray(array).data)
            stream.write(b"\x00" * (-array.nbytes % _PAGE))
    return path


def cached(
    files: Sequence[Path], options: dict[str, Any], read: Callable[[], Dataset], *, verify: bool
) -> Dataset:
    """Load the cache, or read the source and write the cache for next time."""
    found = load_cache(files, options, verify=verify)
    if found is not None:
        return found
    source = describe_source(files, options)
    data = read()
    if describe_source(files, options) != source:
        raise DataError(f"{files[0]} changed while it was read; read it again.")
    try:
        save_cache(data, files, source)
    except DataError as error:
        warnings.warn(f"the data was read but its cache was not kept: {error}", stacklevel=3)
    return data


def describe_source(files: Sequence[Path], options: dict[str, Any]) -> dict[str, Any]:
    """Everything that must be equal for a cache to stand for these files."""
    described = []
    for path in files:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            described.append(
                {
                    "name": path.name,
                    "size": status.st_size,
                    "time": status.st_mtime_ns,
                    "hash": _hash_file(stream, status.st_size),
                }
            )
    return {"files": described, "options": options}


def _sample_starts(size: int) -> list[int]:
    """Starts of the blocks to hash: all of them in small data, else the first, the last and some between."""
    if size <= FULL_HASH:
        return list(range(0, size, _BLOCK))
    return [(size - _BLOCK) * i // (_SAMPLES - 1) for i in range(_SAMPLES)]


def _hash_file(stream: Any, size: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    for start in _sample_starts(size):
        stream.seek(start)
        digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


def _sampled_hash(values: npt.NDArray[np.uint8]) -> str:
    digest = hashlib.sha256(str(len(values)).encode())
    for start in _sample_starts(len(values)):
        digest.update(values[start : start + _BLOCK].data)
    return digest.hexdigest()


def _whole_hash(values: npt.NDArray[np.uint8]) -> str:
    return hashlib.sha256(values.data).hexdigest()


def _packed(ids: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Texts (of integers, their digits) as UTF-8 with a newline behind each."""
    listed = [str(value) if isinstance(value, int) else value for value in ids.tolist()]
    for text in listed:
        if not isinstance(text, str) or "\n" in text:
            raise DataError(
                f"id {text!r} cannot be cached; ids must be integers, or texts without line ends."
            )
    return np.frombuffer(("\n".join(listed) + "\n").encode("utf-8"), dtype=np.uint8)


def _unpacked(packed: npt.NDArray[np.uint8], integers: bool) -> npt.NDArray[Any]:
    texts: list[Any] = packed.tobytes().decode("utf-8").split("\n")[:-1]
    return check_ids([int(t) if t else t for t in texts] if integers else texts, "ids", blank=True)


def _load(path: Path, source: dict[str, Any], verify: bool) -> Dataset:
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        magic, length, checksum = _HEAD.unpack(stream.read(_HEAD.size))
        if magic != _MAGIC or length > size:
            raise _Unusable("not a cache")
        text = stream.read(length)
        if hashlib.sha256(text).digest() != checksum:
            raise _Unusable("damaged header")
        header = json.loads(text)
        if header["source"] != json.loads(json.dumps(source)):
            raise _Unusable("stale")
        start = -(-(_HEAD.size + length) // _PAGE) * _PAGE
        if size != start + header["payload"]:
            raise _Unusable("wrong length")
        mapped = np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    arrays = {name: _array(mapped, start, name, entry, verify) for name, entry in header["arrays"].items()}
    return _rebuilt(arrays, header)


def _array(
    mapped: npt.NDArray[np.uint8], start: int, name: str, entry: dict[str, Any], verify: bool
) -> npt.NDArray[Any]:
    dtype = np.dtype(_DTYPES.get(name, "<i8" if name == "qids" else "u1"))
    begin = start + entry["at"]
    size = int(np.prod(entry["shape"])) * dtype.itemsize
    values = mapped[begin : begin + size]
    if len(values) != size or _sampled_hash(values) != entry["sampled"]:
        raise _Unusable("damaged array")
    if verify and _whole_hash(values) != entry["whole"]:
        raise _Unusable("damaged array")
    return values.view(dtype).reshape(entry["shape"])


def _rebuilt(arrays: dict[str, npt.NDArray[Any]], header: dict[str, Any]) -> Dataset:
    X, offsets = arrays["X"], arrays["offsets"]
    qids = arrays["qids"] if "qids" in arrays else _unpacked(arrays["qid_texts"], header["integer_qids"])
    if (
        offsets[0] != 0
        or offsets[-1] != len(X)
        or (np.diff(offsets) <= 0).any()
        or len(qids) != len(offsets) - 1
    ):
        raise _Unusable("offsets do not fit")
    return restore(
        {
            "X": X,
            "y": arrays["y"],
            "offsets": offsets,
            "qids": qids,
            "weight": arrays.get("weight"),
            "source_rows": arrays.get("source_rows"),
            "feature_names": tuple(header["features"]),
            "named": bool(header["named"]),
            "doc_ids": _unpacked(arrays["doc_texts"], header["integer_docs"])
            if "doc_texts" in arrays
            else None,
        }
    )
