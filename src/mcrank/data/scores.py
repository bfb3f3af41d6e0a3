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


def read_probabilities(path: str | os.PathLike[str], rows: int) -> FloatArray:
    """Read a file of probabilities, as ``mcrank predict --proba`` writes it: a line a row, a number a grade,
    lowest grade first; each line adds up to 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank.data.scores import read_probabilities
    >>> path = pathlib.Path(tempfile.mkdtemp(), "proba.txt")
    >>> _ = path.write_text("0.5\\t0.5\\n0.25\\t0.75\\n")
    >>> read_probabilities(path, rows=2).tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    where = Path(path)
    with open_text(where) as text:
        lines = text.read().rstrip("\n \t").split("\n")
    found = []
    for at, line in enumerate(lines, start=1):
        row = [_score(word, f"{where}, line {at}") for word in line.split()]
        found.append(row)
        if len(row) != len(found[0]) or len(row) < 2:
            raise DataError(
                f"{where}, line {at} has {len(row)} numbers; it must have a probability for each grade."
            )
        if min(row) < 0 or abs(sum(row) - 1) > 1e-3:
            raise DataError(
                f"{where}, line {at} is no distribution: it has {min(row):g} and adds up to {sum(row):g}."
            )
    if len(found) != rows:
        raise DataError(f"{where} has {len(found)} lines for {rows} rows; it must have one line per row.")
    return np.array(found)


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
