"""`read`: files and tables become a `Dataset`, in the row order of the source."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from mcrank.data.dataset import Dataset
from mcrank.data.sources import StrPath, find_files
from mcrank.errors import OptionError


def read(
    source: StrPath | Sequence[StrPath],
    *,
    first_index: int = 1,
    n_features: int | None = None,
    max_features: int = 100_000,
    absent: Literal["zero", "missing"] = "zero",
    unjudged: Literal["error", "zero", "drop"] = "error",
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Read ranking data as a `Dataset`.

    Parameters
    ----------
    source : path, glob pattern or sequence of them
        LETOR / SVMlight text with ``qid:``, plain or compressed (gzip, xz, bzip2, zstd); several files are
        one set.
    first_index : {1, 0}
        Number of the first feature in LETOR text.
    n_features : int, optional
        Number of features; by default the largest index in the files.
    max_features : int
        Largest number of features to accept when ``n_features`` is not given.
    absent : {"zero", "missing"}
        What a feature is that a row does not mention.
    unjudged : {"error", "zero", "drop"}
        What to do with rows whose grade is negative, NaN or NULL.
    n_jobs : int, optional
        Threads that parse; all cores by default. The result does not depend on it.
    progress : callable, optional
        Called with bytes done and bytes in all.

    Returns
    -------
    Dataset
        Comments of LETOR text (the id behind ``#docid =``, or free text) are its `doc_ids`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank import read
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tiny.txt")
    >>> _ = path.write_text("2 qid:7 1:0.5 3:1e-3 #docid = A\\n0 qid:7 2:NULL #docid = B\\n")
    >>> data = read(path)
    >>> data.X.tolist(), data.doc_ids.tolist()
    ([[0.5, 0.0, 0.0010000000474974513], [0.0, nan, 0.0]], ['A', 'B'])
    """
    from mcrank.data.letor import LetorOptions, read_letor

    _check_choice("absent", absent, ("zero", "missing"))
    _check_choice("unjudged", unjudged, ("error", "zero", "drop"))
    _check_number("first_index", first_index, 0, 1)
    _check_number("max_features", max_features, 1, 1 << 24)
    if n_features is not None:
        _check_number("n_features", n_features, 1, 1 << 24)
    if n_jobs is not None:
        _check_number("n_jobs", n_jobs, 1, 1024)
    files = find_files(source)
    options = LetorOptions(first_index, n_features, max_features, absent, unjudged)
    return read_letor(files, options, threads(n_jobs, files), progress)


def threads(n_jobs: int | None, files: Sequence[Path]) -> int:
    """Threads to use: no more than cores when not asked for, one for files of a few chunks."""
    if n_jobs is not None:
        return n_jobs
    if sum(os.path.getsize(path) for path in files) < 16 << 20:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise OptionError(f"{name} of read must be {' or '.join(map(repr, choices))}, got {value!r}.")


def _check_number(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not low <= int(value) <= high:
        raise OptionError(f"{name} of read must be an integer from {low} to {high}, got {value!r}.")
