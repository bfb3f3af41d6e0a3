"""`read`: a path becomes a `Dataset`."""

from __future__ import annotations

import os
from pathlib import Path

from mcrank.data.dataset import Dataset
from mcrank.errors import DataError


def read(path: str | os.PathLike[str]) -> Dataset:
    """Read LETOR / SVMlight text with ``qid:`` into a `Dataset`."""
    where = Path(path)
    rows: list[dict[int, float]] = []
    y: list[float] = []
    qid: list[str] = []
    docs: list[str] = []
    try:
        with open(where, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                body, _, comment = line.partition("#")
                words = body.split()
                if not words:
                    continue
                try:
                    if len(words) < 2 or not words[1].startswith("qid:"):
                        raise ValueError("no qid: after the grade")
                    pairs = [word.split(":", 1) for word in words[2:]]
                    row = {
                        int(index): float(value) if value not in ("", "NULL") else float("nan")
                        for index, value in pairs
                    }
                    if len(row) != len(pairs) or any(index < 1 for index in row):
                        raise ValueError("feature indices must be 1, 2, ... and differ")
                    y.append(float(words[0]))
                except ValueError as error:
                    raise DataError(f"{where}, line {number}: {error}.") from None
                rows.append(row)
                qid.append(words[1][4:])
                docs.append(comment.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{where} cannot be read: {error}.") from None
    if not rows:
        raise DataError(f"{where} has no rows.")
    import numpy as np

    X = np.zeros((len(rows), max(max(row, default=1) for row in rows)), dtype=np.float32)
    for i, row in enumerate(rows):
        X[i, [j - 1 for j in row]] = list(row.values())
    ids = [int(q) for q in qid] if all(q.isdigit() for q in qid) else qid
    return Dataset(X, y, ids, doc_ids=docs if any(docs) else None)
