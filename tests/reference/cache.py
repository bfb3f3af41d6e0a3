"""Naive reading of the arrays of a cache: plain loops over plain lists."""

from __future__ import annotations

import math
import re

from tests.reference.container import Bad


def read_cache(header, arrays):
    """Return X, y, offsets, qids, weight, source rows, names and document ids as lists, or raise `Bad`."""
    if set(header) != {"features", "ids", "named", "sampled", "source"} or type(header["ids"]) is not dict:
        raise Bad("header")
    if type(header["named"]) is not bool:
        raise Bad("header")
    kinds = header["ids"]
    known = {"X": "float32", "y": "float64", "offsets": "int64", "source_rows": "int64", "weight": "float64"}
    for name, array in arrays.items():
        if name in known:
            if array.dtype.name != known[name] or array.ndim != (2 if name == "X" else 1):
                raise Bad(name)
        elif name not in kinds:
            raise Bad("stranger")
    if any(name not in arrays for name in ("X", "y", "offsets", "qids")):
        raise Bad("missing")
    if any(name not in ("qids", "doc_ids") or name not in arrays for name in kinds):
        raise Bad("ids")
    X, y, offsets = (arrays[name].tolist() for name in ("X", "y", "offsets"))
    rows, columns = arrays["X"].shape
    if rows < 1 or columns < 1 or any(math.isinf(value) for row in X for value in row):
        raise Bad("X")
    if len(y) != rows or not all(math.isfinite(grade) and grade >= 0 for grade in y):
        raise Bad("y")
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != rows or offsets != sorted(set(offsets)):
        raise Bad("offsets")
    qids = _ids(kinds.get("qids"), arrays["qids"])
    if len(qids) != len(offsets) - 1 or len(set(qids)) != len(qids):
        raise Bad("qids")
    docs = _ids(kinds["doc_ids"], arrays["doc_ids"]) if "doc_ids" in kinds else None
    if docs is not None and len(docs) != rows:
        raise Bad("docs")
    weight = arrays["weight"].tolist() if "weight" in arrays else None
    if weight is not None and not (
        len(weight) == rows and all(math.isfinite(w) and w >= 0 for w in weight) and any(weight)
    ):
        raise Bad("weight")
    order = arrays["source_rows"].tolist() if "source_rows" in arrays else None
    if order is not None and sorted(order) != list(range(rows)):
        raise Bad("order")
    y = [grade + 0.0 for grade in y]  # -0 is 0
    return X, y, offsets, qids, weight, order, _names(header["features"], columns), docs


def _names(names, columns):
    if names is None:
        return [f"f{j + 1}" for j in range(columns)]
    if type(names) is not list or not all(type(name) is str for name in names):
        raise Bad("names")
    if len(names) != columns or len(set(names)) != columns:
        raise Bad("names")
    for name in names:
        for c in name:
            odd = ord(c) < 32 and c not in "\t\n\r"
            if odd or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000:
                raise Bad("names")
            if 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069:
                raise Bad("names")
    return names


def _ids(kind, array):
    if array.ndim != 1:
        raise Bad("ids")
    if kind == "int64" and array.dtype.name == "int64":
        return array.tolist()
    if kind in ("integers", "texts") and array.dtype.name == "uint8":
        try:
            text = bytes(array.tolist()).decode("utf-8")
        except UnicodeDecodeError:
            raise Bad("utf-8") from None
        if text and not text.endswith("\n"):
            raise Bad("end")
        words = text.split("\n")[:-1]
        if kind == "texts":
            return words
        for word in words:
            digits = re.fullmatch("-?([0-9]{1,640})", word)
            if word and not (digits and str(int(word)) == word):
                raise Bad("integers")
        return [int(word) if word else word for word in words]
    raise Bad("kind")
