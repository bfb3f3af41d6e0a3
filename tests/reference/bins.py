"""Naive check of a file of bins: plain loops over plain lists."""

from __future__ import annotations

import math

from tests.reference.cache import _ids
from tests.reference.container import Bad


def check_bins(header, arrays):
    """Raise `Bad` where arrays are not binned rows with their bins, grades and queries."""
    wide = "wide_columns" in arrays
    columns = arrays["wide_columns" if wide else "columns"].tolist()
    y, offsets = arrays["y"].tolist(), arrays["offsets"].tolist()
    counts, missing = arrays["bin_counts"].tolist(), arrays["missing"].tolist()
    lowest, highest = arrays["lowest"].tolist(), arrays["highest"].tolist()
    if len(columns) != len(counts) or len(missing) != len(counts) or not set(missing) <= {0, 1}:
        raise Bad("features")
    if sum(counts) != len(lowest) or len(lowest) != len(highest) or min(counts) < 1:
        raise Bad("bounds")
    if (max(c + m for c, m in zip(counts, missing, strict=True)) > 256) != wide:
        raise Bad("width")
    at = 0
    for f, column in enumerate(columns):
        if len(column) != len(y) or any(place >= counts[f] + missing[f] for place in column):
            raise Bad(f"feature {f}")
        for b in range(at, at + counts[f]):
            if lowest[b] > highest[b] or (b > at and highest[b - 1] >= lowest[b]):
                raise Bad(f"bin {b}")
        at += counts[f]
    if not wide and arrays["lines"].tolist() != _lines(columns, len(y)):
        raise Bad("lines")
    if not all(math.isfinite(grade) and grade >= 0 for grade in y):
        raise Bad("y")
    if offsets[0] != 0 or offsets[-1] != len(y) or offsets != sorted(set(offsets)):
        raise Bad("offsets")
    if "source_rows" in arrays and sorted(arrays["source_rows"].tolist()) != list(range(len(y))):
        raise Bad("source_rows")
    qids = _ids(header["ids"], arrays["qids"])
    if len(qids) != len(offsets) - 1 or len(set(qids)) != len(qids):
        raise Bad("qids")


def _lines(columns, rows):
    """The bins of up to 64 features of a row side by side, row after row, in whole words of eight bytes."""
    held = 8 * words(len(columns))
    line = []
    for first in range(0, held, 64):
        for row in range(rows):
            for f in range(first, min(first + 64, held)):
                line.append(columns[f][row] if f < len(columns) else 0)
    return line


def words(features):
    """Words of a row: a whole line of eight for 64 features, and 1, 2, 4 or 8 for those of the last line.

    Fewer than four features that do not fill a word have none, but for one that is there anyway.
    """
    lines, last = divmod(features, 64)
    needed = last // 8 + (last % 8 >= 4)
    return 8 * lines + next(size for size in (0, 1, 2, 4, 8) if size >= needed)
