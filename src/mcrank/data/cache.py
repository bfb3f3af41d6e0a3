"""The binary cache: a parsed data set in one file beside its source, read back by the next load.

It is a container (`mcrank.container`) whose header names the source files with size, time and a hash of
samples of their bytes, the options of the reading, and a hash of samples of the arrays. A cache whose source
or options changed is stale, one whose own bytes do not fit is damaged; both are rebuilt. A cache of at most
`FULL_HASH` bytes is hashed whole at every load; of larger ones evenly spaced blocks are (all of them would
take longer than the rest of the load), and ``verify`` hashes everything.

Hashes only show accidents: whoever writes a cache can make them fit. So what a cache says is checked like
what a caller says (shapes, ranges, an order of rows that is one) before a `Dataset` is made of it, and the
file is read, not mapped: one that is cut short while it is mapped ends the process with a bus error. Who asks
for a map trusts the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from mcrank.arrays import Array, Arrays, IntArray
from mcrank.container import CACHE, Place, canonical, open_regular, pieces, read_file
from mcrank.data.categories import checked_names
from mcrank.data.checks import check_features, check_grades, check_names, check_weights
from mcrank.data.dataset import Dataset, restore
from mcrank.data.ids import check_ids, id_kind, is_integer
from mcrank.data.sources import CACHE_SUFFIX, replaced_file
from mcrank.errors import DataError, McrankError, ModelFileError

# Read it; read it and hash all of it; map its features.
How = Literal[True, "verify", "map"]

FULL_HASH = 4 << 20

_BLOCK = 1 << 16
_SAMPLES = 32
_FORMS = {
    "X": ("float32", 2),
    "y": ("float64", 1),
    "offsets": ("int64", 1),
    "source_rows": ("int64", 1),
    "weight": ("float64", 1),
}
_HEADER = ("source", "ids", "features", "named", "sampled")
_INTEGERS, _LARGE = "int64", "integers"  # the second as digits: one of them does not fit 64 bits
_TEXTS = (_LARGE, "texts")


class Unusable(Exception):
    """Why a cache, or bins that are kept, cannot be used."""


class CacheNotKept(UserWarning):
    """Data was read, but its cache could not be written."""


def cache_path(files: Sequence[Path]) -> Path:
    """Where the cache of these files lies: beside the first; several files are told apart by their names."""
    if len(files) == 1:
        return files[0].with_name(files[0].name + CACHE_SUFFIX)
    names = "\n".join(str(path.resolve()) for path in files)
    mark = hashlib.sha256(os.fsencode(names)).hexdigest()[:12]
    return files[0].with_name(f"{files[0].name}+{mark}{CACHE_SUFFIX}")


def load_cache(files: Sequence[Path], options: dict[str, Any], how: How = True) -> Dataset | None:
    """Read the cache of these files, or return None when there is none that fits."""
    path = cache_path(files)
    if not os.path.exists(path):  # also where the name is too long for one, which Path.exists raises
        return None
    try:
        return _load(path, describe_source(files, options), how)
    except (Unusable, McrankError):
        # Anything odd about a cache means the same: read the source again.
        return None


def save_cache(data: Dataset, files: Sequence[Path], source: dict[str, Any]) -> Path:
    """Write the cache of a data set read from these files; ``source`` was described before reading them."""
    path = cache_path(files)
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(f"{path} cannot be written: it exists and is not a regular file.")
    arrays: Arrays = {"X": data.X, "y": data.y, "offsets": data.offsets}
    for name in ("source_rows", "weight"):
        value = getattr(data, name)
        if value is not None:
            arrays[name] = value
    header: dict[str, Any] = {"source": source, "ids": {}, "features": None, "named": data.named}
    if data.categories:
        header["categories"] = {str(f): list(names) for f, names in data.categories.items()}
    if data.feature_names != check_names(None, data.n_features):
        header["features"] = list(data.feature_names)
    for name in ("qids", "doc_ids"):
        ids = getattr(data, name)
        if ids is not None:
            header["ids"][name], arrays[name] = packed_ids(ids)
    header["sampled"] = _sampled_hash(header, arrays)
    try:
        with replaced_file(path) as stream:
            for piece in pieces(header, arrays, CACHE):
                stream.write(piece)
    except ModelFileError as error:
        raise DataError(f"{path} cannot be written: {error}") from None
    return path


def cached(
    files: Sequence[Path], options: dict[str, Any], read: Callable[[], Dataset], how: How = True
) -> Dataset:
    """Load the cache, or read the source and write the cache for next time."""
    found = load_cache(files, options, how)
    if found is not None:
        return found
    source = describe_source(files, options)
    data = read()
    if describe_source(files, options) != source:
        raise DataError(f"{files[0]} changed while it was read; read it again.")
    try:
        save_cache(data, files, source)
    except DataError as error:
        warnings.warn(f"the data was read but its cache was not kept: {error}", CacheNotKept, stacklevel=3)
    return data


def describe_source(files: Sequence[Path], options: dict[str, Any]) -> dict[str, Any]:
    """Everything that must be equal for a cache to stand for these files, as JSON values."""
    described = []
    for path in files:
        try:
            with open_regular(os.fspath(path)) as stream:
                status = os.fstat(stream.fileno())
                described.append(
                    {
                        "name": path.name,
                        "size": status.st_size,
                        "time": status.st_mtime_ns,
                        "hash": _file_hash(stream, status.st_size),
                    }
                )
        except ModelFileError as error:
            raise DataError(f"{error} A cache needs one; read it with cache=False.") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    plain: dict[str, Any] = json.loads(json.dumps({"files": described, "options": options}))
    return plain


def _sample_starts(size: int) -> list[int]:
    """Starts of the blocks to hash: all of them in small data, else the first, the last and some between."""
    if size <= FULL_HASH:
        return list(range(0, size, _BLOCK))
    return [(size - _BLOCK) * i // (_SAMPLES - 1) for i in range(_SAMPLES)]


def _file_hash(stream: IO[bytes], size: int) -> str:
    digest = hashlib.sha256(str(size).encode())
    for start in _sample_starts(size):
        stream.seek(start)
        digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


def _sampled_hash(header: dict[str, Any], arrays: Arrays) -> str:
    """Hash of the header, the forms of the arrays and samples of their bytes."""
    digest = hashlib.sha256(canonical({name: header[name] for name in header if name != "sampled"}))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.name} {array.shape}".encode())
        values = array.reshape(-1).view(np.uint8)
        for start in _sample_starts(len(values)):
            digest.update(values[start : start + _BLOCK].data)
    return digest.hexdigest()


def packed_ids(ids: Array) -> tuple[str, Array]:
    """Ids as an array of numbers: integers as they are, others as UTF-8 with a newline behind each."""
    if ids.dtype == np.int64:
        return _INTEGERS, ids
    kind = id_kind(ids)
    listed = [str(value) if isinstance(value, int) else value for value in ids.tolist()]
    for text in listed:
        if type(text) is not str or "\n" in text:
            raise DataError(
                f"id {text!r} cannot be cached; ids must be integers, or texts without line ends."
            )
    try:
        content = ("\n".join(listed) + "\n").encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"an id cannot be cached: it is not Unicode text ({error}).") from None
    return (_LARGE if kind == "integers" else "texts"), np.frombuffer(content, dtype=np.uint8)


def unpacked_ids(kind: Any, packed: Array, count: int) -> Array:
    """The ids that `packed_ids` packed, one for each of ``count``."""
    ids: Array
    if kind == _INTEGERS and packed.dtype == np.int64 and packed.ndim == 1:
        ids = packed
    elif kind in _TEXTS and packed.dtype == np.uint8 and packed.ndim == 1:
        try:
            texts: list[Any] = packed.tobytes().decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise Unusable("ids are not UTF-8") from None
        if texts.pop():
            raise Unusable("the last id has no end")
        if kind == _LARGE:
            if not all(not text or is_integer(text) for text in texts):
                raise Unusable("ids that are no integers")
            texts = [int(text) if text else text for text in texts]
        ids = check_ids(texts, "ids", blank=True)
    else:
        raise Unusable("ids of an unknown kind")
    if len(ids) != count:
        raise Unusable("wrong number of ids")
    return ids


def _load(path: Path, source: dict[str, Any], how: How) -> Dataset:
    try:
        small = path.stat().st_size <= FULL_HASH
    except OSError as error:
        raise Unusable("gone") from error

    def wanted(header: dict[str, Any], places: dict[str, Place]) -> None:
        _check_header(header, places)
        if header["source"] != source:
            raise Unusable("stale")

    whole = small or how == "verify"
    header, arrays = read_file(path, CACHE, wanted=wanted, whole=whole, mapped=how == "map")
    if header["sampled"] != _sampled_hash(header, arrays):
        raise Unusable("damaged array")
    if how == "map":
        arrays = {name: array if name == "X" else array.copy() for name, array in arrays.items()}
    return _rebuilt(header, arrays, trusted=how == "map")


def _check_header(header: dict[str, Any], places: dict[str, Place]) -> None:
    """Check what the header alone tells, before its arrays are read."""
    if sorted(header.keys() - {"categories"}) != sorted(_HEADER) or not isinstance(header["ids"], dict):
        raise Unusable("not the header of a cache")
    if not isinstance(header["named"], bool):
        raise Unusable("not the header of a cache")
    ids = header["ids"]
    for name, place in places.items():
        if name in _FORMS and (place.dtype.name, len(place.shape)) != _FORMS[name]:
            raise Unusable("an array of another form")
        if name not in _FORMS and name not in ids:
            raise Unusable("an array too many")
    if not {"X", "y", "offsets", "qids"} <= set(places) or not set(ids) <= {"qids", "doc_ids"} & set(places):
        raise Unusable("an array is missing")
    for name in ("y", "weight", "source_rows"):
        if name in places and places[name].shape[0] != places["X"].shape[0]:
            raise Unusable("arrays of different lengths")


def _rebuilt(header: dict[str, Any], arrays: Arrays, trusted: bool) -> Dataset:
    """The data set that the arrays describe, after every check that data from a caller has to pass.

    The values of a ``trusted`` matrix are not looked at: that alone would bring all of its pages into memory.
    """
    ids = header["ids"]
    X = arrays["X"] if trusted and 0 not in arrays["X"].shape else check_features(arrays["X"], "X")
    return restore(
        checked_parts(header, arrays, ids.get("qids"), X.shape[1])
        | {
            "X": X,
            "categories": _checked_categories(header.get("categories", {}), X),
            "doc_ids": unpacked_ids(ids["doc_ids"], arrays["doc_ids"], len(X)) if "doc_ids" in ids else None,
        }
    )


def checked_parts(header: dict[str, Any], arrays: Arrays, ids: Any, features: int) -> dict[str, Any]:
    """Return what a data set has beside its matrix, after the checks that data from a caller has to pass."""
    rows, names, weight = len(arrays["y"]), header["features"], arrays.get("weight")
    order = arrays.get("source_rows")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise Unusable("names that are none")
    offsets = checked_offsets(arrays["offsets"], rows)
    qids = unpacked_ids(ids, arrays["qids"], len(offsets) - 1)
    if len(set(qids.tolist())) < len(qids):
        raise Unusable("a query stands twice")
    return {
        "y": check_grades(arrays["y"], rows),
        "offsets": offsets,
        "qids": qids,
        "weight": None if weight is None else check_weights(weight, "weight", rows),
        "source_rows": None if order is None else _checked_order(order, rows),
        "feature_names": check_names(names, features),
        "named": header["named"],
    }


def _checked_categories(tables: Any, X: Array) -> dict[int, tuple[str, ...]]:
    """Names in rising order, and codes that are places among them."""
    if not isinstance(tables, dict) or not all(key.isascii() and key.isdecimal() for key in tables):
        raise Unusable("categories of no feature")
    found = {int(key): names for key, names in tables.items()}
    for f, names in found.items():
        listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if f >= X.shape[1] or not listed or checked_names(set(names), "a cache") != tuple(names):
            raise Unusable("categories of another form")
        codes = X[:, f]
        if not (np.isnan(codes) | ((codes >= 0) & (codes < len(names)) & (codes == np.floor(codes)))).all():
            raise Unusable("codes that are none")
    return {f: tuple(names) for f, names in sorted(found.items())}


def checked_offsets(offsets: IntArray, rows: int) -> IntArray:
    """Return offsets of queries of at least a row each, or raise `Unusable`."""
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != rows or not (offsets[1:] > offsets[:-1]).all():
        raise Unusable("offsets do not fit")
    return offsets


def _checked_order(order: IntArray, rows: int) -> IntArray:
    """Every row once, or what is scattered by it would leave memory unwritten."""
    if len(order) != rows or order.min() < 0 or order.max() >= rows:
        raise Unusable("row numbers out of range")
    seen = np.zeros(rows, dtype=np.bool_)
    seen[order] = True
    if not seen.all():
        raise Unusable("a row stands twice")
    return order
