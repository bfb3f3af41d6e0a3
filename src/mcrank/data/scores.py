"""Score files: one number per line, in the row order of the data file."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np

from mcrank.arrays import FloatArray
from mcrank.data.numbers import read_number
from mcrank.data.sources import open_text
from mcrank.errors import DataError

_ODD = re.compile(r"[^ \t\v\f+\-.0-9A-Za-z]")


def read_scores(path: str | os.PathLike[str], rows: int | None = None) -> FloatArray:
    """Read a score file, plain or compressed; ``rows`` is the number of scores it must have.

    Anything but one number on every line is an error that names the line: a score that is silently read as
    0, or a line that is silently skipped, ranks the wrong documents.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank.data.scores import read_scores
    >>> path = pathlib.Path(tempfile.mkdtemp(), "scores.txt")
    >>> _ = path.write_text("0.5\\n-1e-3\\n")
    >>> read_scores(path, rows=2).tolist()
    [0.5, -0.001]
    """
    where = Path(path)
    with open_text(where) as text:
        lines = text.read().split("\n")
    while lines and not lines[-1].strip(" \t\v\f"):
        lines.pop()
    scores = _quickly(lines)
    if scores is None:
        scores = np.array([_score(line, f"{where}, line {at}") for at, line in enumerate(lines, start=1)])
    if rows is not None and len(scores) != rows:
        end = "is missing" if len(scores) < rows else "is one too many"
        raise DataError(
            f"{where} has {len(scores)} scores for {rows} rows: line {min(len(scores), rows) + 1} {end}; "
            "it must have one score per row, in the same order."
        )
    return scores


def _quickly(lines: list[str]) -> FloatArray | None:
    """Convert good lines at once; None when some line needs a word said about it, or a closer look."""
    try:
        scores = np.array(lines, dtype=np.float64)
    except ValueError:
        return None
    # Digits of other scripts, odd blanks and 1_000 are numbers to Python, and to no one else.
    if any(map(_ODD.search, lines)):
        return None
    return None if np.isnan(scores).any() else scores


def _score(line: str, where: str) -> float:
    try:
        score = read_number(line)
    except ValueError:
        raise DataError(f"{where}: must be one number, got {line.strip()!r}.") from None
    if math.isnan(score):
        raise DataError(f"{where}: the score is NaN; every row needs a score.")
    return score
