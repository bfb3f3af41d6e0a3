"""`read`: files and tables become a `Dataset`, in the row order of the source."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from mcrank.cores import available_cores
from mcrank.data.columns import shown
from mcrank.data.dataset import Dataset
from mcrank.data.sources import find_files
from mcrank.data.table_files import common_format
from mcrank.data.table_sets import Columns, read_table, read_table_files
from mcrank.data.tables import is_sparse, is_table
from mcrank.errors import DataError, McrankError, OptionError
from mcrank.options import checked
from mcrank.threads import check_jobs


def read(
    source: Any,
    *,
    qid: Any = None,
    grade: Any = None,
    doc_id: Any = None,
    weight: Any = None,
    features: Sequence[str] | None = None,
    categorical: Sequence[str | int] | None = None,
    ignore: Sequence[str] | None = None,
    first_index: int = 1,
    n_features: int | None = None,
    max_features: int = 100_000,
    absent: Literal["zero", "missing"] = "zero",
    unjudged: Literal["error", "zero", "drop"] = "error",
    cache: bool | Literal["verify", "map"] = False,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Read ranking data as a `Dataset`.

    Parameters
    ----------
    source : path, glob pattern or sequence of them, or a table
        LETOR / SVMlight text with ``qid:``, plain or compressed (gzip, xz, bzip2, zstd); Parquet, Arrow, CSV
        or TSV files by their suffix; a frame of pandas or polars, a table of pyarrow, anything with
        ``__arrow_c_stream__``, a mapping of columns, or a scipy sparse matrix. Several files are one set.
    qid, grade : str or array, optional
        Columns of a table, or arrays with a value per row; by default found by name: ``qid`` or ``query_id``,
        ``label``, ``grade`` or ``relevance``.
    doc_id, weight : str or array, optional
        The same for document ids (found as ``doc_id`` or ``docid``) and row weights (never guessed).
    features : sequence of str, optional
        Feature columns of a table; by default all others, except those with one of the names above.
    categorical : sequence of str or int, optional
        Features, by name or number from 0, that hold categories and no numbers; in CSV they are taken as they
        are written. Columns of a table that its library calls categories, or whose values are texts that look
        like no numbers, are known without.
    ignore : sequence of str, optional
        Columns of a table that are no features, instead of naming those that are.
    first_index : {1, 0}
        Number of the first feature in LETOR text.
    n_features : int, optional
        Number of features of LETOR text; by default the largest index in the files.
    max_features : int
        Largest number of features to accept when ``n_features`` is not given.
    absent : {"zero", "missing"}
        What a feature is that a row of LETOR text does not mention.
    unjudged : {"error", "zero", "drop"}
        What to do with rows whose grade is negative, NaN or NULL.
    cache : bool, "verify" or "map"
        Keep the parsed data in a file beside the source, and read that file when it fits the source;
        ``"verify"`` hashes all of it first, which takes longer; ``"map"`` maps it, which is immediate, and is
        for files that nothing else changes: one cut short while it is mapped ends the process.
    n_jobs : int, optional
        Threads that parse LETOR text; all cores by default. The result does not depend on it.
    progress : callable, optional
        Called with bytes done and bytes in all, while LETOR text is read.

    Returns
    -------
    Dataset
        In the row order of the source, unless its queries are not contiguous. Comments of LETOR text (the id
        behind ``#docid =``, or free text) are its `doc_ids`.

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
    check_choice("cache", cache, (True, False, "verify", "map"))
    check_choice("absent", absent, ("zero", "missing"))
    check_choice("unjudged", unjudged, ("error", "zero", "drop"))
    checked(first_index, "first_index", "read", low=0, high=1)
    checked(max_features, "max_features", "read", low=1, high=1 << 24)
    checked(n_features, "n_features", "read", low=1, high=1 << 24, optional=True)
    check_jobs(n_jobs, "read")
    names = {"features": check_name_list(features, "features"), "ignore": check_name_list(ignore, "ignore")}
    columns = Columns(qid, grade, doc_id, weight, categorical=check_keys(categorical), **names)
    if not isinstance(source, (str, os.PathLike)) and (is_table(source) or is_sparse(source)):
        if cache:
            raise OptionError("cache of read needs a file; a table in memory has no place beside it.")
        return read_table(source, columns, unjudged)
    files = find_files(source)
    if common_format(files) is None:
        check_letor_columns(columns)
        options: dict[str, Any] = {
            "unjudged": unjudged,
            "first_index": first_index,
            "n_features": n_features,
            "max_features": max_features,
            "absent": absent,
        }
        letor = dict(options)
        if categorical is not None:
            options["categorical"] = columns.categorical

        def load() -> Dataset:
            from mcrank.data.alignment import learned
            from mcrank.data.letor import LetorOptions, read_letor

            found = read_letor(files, LetorOptions(**letor), threads(n_jobs, files), progress)
            return learned(found, columns.categorical, "categorical of read")
    else:
        options = {"unjudged": unjudged, **vars(columns)}
        for late in ("categorical", "ignore"):
            if options[late] is None:
                del options[late]  # as caches have it that were made before there were such

        def load() -> Dataset:
            return read_table_files(files, columns, unjudged)

    if not cache:
        return load()
    if any(not isinstance(value, (str, int, list, tuple, type(None))) for value in options.values()):
        raise OptionError("cache of read needs columns given by name, not as arrays.")
    from mcrank.data.cache import cached

    return cached(files, options, load, cache)


def check_keys(categorical: Any) -> list[str | int] | None:
    """Return names or numbers of features, or raise `OptionError`."""
    if categorical is None:
        return None
    keys = [] if isinstance(categorical, (str, bytes)) else list(categorical)
    if not keys or not all(isinstance(k, (str, numbers.Integral)) and not isinstance(k, bool) for k in keys):
        raise OptionError(
            f"categorical of read must be names or numbers of features, such as ['brand', 3], got "
            f"{categorical!r}."
        )
    return [k if isinstance(k, str) else int(k) for k in keys]


def check_name_list(
    names: Any, option: str, where: str = "read", error: type[McrankError] = DataError
) -> list[str] | None:
    """Return names of columns, which any iterable may hold; raise an error of this kind for what is none."""
    if names is None:
        return None
    found: list[Any] = [None]
    if hasattr(names, "__iter__") and not isinstance(names, (str, bytes)):
        found = list(names)
    if not all(isinstance(name, str) for name in found):
        given = f"the text {names!r}" if isinstance(names, str) else shown(names)
        raise error(f"{option} of {where} must be a sequence of names, got {given}.")
    return found


def check_letor_columns(columns: Columns, where: str = "read") -> None:
    """Raise `OptionError` where columns of a table are asked of LETOR text."""
    for name in ("qid", "grade", "doc_id", "weight", "features", "ignore"):
        if getattr(columns, name) is not None:
            raise OptionError(f"{name} of {where} is for tables; LETOR text has no named columns.")


def threads(n_jobs: int | None, files: Sequence[Path]) -> int:
    """Threads to use: no more than cores when not asked for, one for files of a few chunks."""
    if n_jobs is not None:
        return check_jobs(n_jobs, "read")
    if sum(os.path.getsize(path) for path in files) < 16 << 20:
        return 1
    return available_cores()


def check_choice(name: str, value: Any, choices: tuple[Any, ...], where: str = "read") -> None:
    """Raise `OptionError` for a value that is none of the choices."""
    if value not in choices:
        raise OptionError(f"{name} of {where} must be {' or '.join(map(repr, choices))}, got {value!r}.")
