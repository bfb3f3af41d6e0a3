"""Known data sets, read from the directories they are distributed in, their counts checked.

The data itself is not part of mcrank: get it from its publishers, unpack it, and name the directory::

    folds = mcrank.datasets.load("MSLR-WEB10K")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcrank.data.dataset import Dataset
from mcrank.data.folds import Fold, Folds, find_folds, same_width
from mcrank.data.sources import StrPath
from mcrank.errors import DataError, OptionError

Counts = tuple[int, int]  # queries and rows


@dataclass(frozen=True)
class KnownSet:
    """What a data set is known to hold. Without ``files`` it comes as directories Fold1, Fold2, ..."""

    name: str
    features: int
    grades: int
    queries: int
    rows: int
    folds: int = 1
    # Part -> its file and its own counts, for sets that are not distributed as folds.
    files: Mapping[str, tuple[str, Counts]] = field(default_factory=dict)


def _yahoo(number: int, train: Counts, valid: Counts, test: Counts) -> KnownSet:
    parts = {"train": train, "valid": valid, "test": test}
    files = {part: (f"set{number}.{part}.txt", counts) for part, counts in parts.items()}
    queries, rows = (sum(counts[i] for counts in parts.values()) for i in (0, 1))
    return KnownSet(f"yahoo-set{number}", 700, 5, queries, rows, files=files)


KNOWN: dict[str, KnownSet] = {
    known.name: known
    for known in (
        KnownSet("mq2007", 46, 3, 1_692, 69_623, folds=5),
        KnownSet("mq2008", 46, 3, 784, 15_211, folds=5),
        KnownSet("ohsumed", 45, 3, 106, 16_140, folds=5),
        KnownSet("mslr-web10k", 136, 5, 10_000, 1_200_192, folds=5),
        KnownSet("mslr-web30k", 136, 5, 31_531, 3_771_125, folds=5),
        _yahoo(1, (19_944, 473_134), (2_994, 71_083), (6_983, 165_660)),
        _yahoo(2, (1_266, 34_815), (1_266, 34_881), (3_798, 103_174)),
        KnownSet(
            "istella-s", 220, 5, 33_018, 3_408_630,
            files={
                "train": ("train.txt", (19_245, 2_043_304)),
                "valid": ("vali.txt", (7_211, 684_076)),
                "test": ("test.txt", (6_562, 681_250)),
            },
        ),
        KnownSet(
            "istella", 220, 5, 33_018, 10_454_629,
            files={"train": ("train.txt", (23_219, 7_325_625)), "test": ("test.txt", (9_799, 3_129_004))},
        ),
    )
}  # fmt: skip


def load(directory: StrPath, name: str | None = None, *, check: bool = True, **options: Any) -> Folds:
    """Load a known data set from its directory.

    Parameters
    ----------
    directory : path
        Where the data set was unpacked.
    name : str, optional
        One of `KNOWN`; by default recognised by the files and the names of the directories.
    check : bool
        Compare counts of queries, rows and features with the published ones.
    **options
        Passed to `mcrank.read`; ``cache=True`` makes every later load immediate.

    Returns
    -------
    Folds
        Five folds, or one where the set comes with one split. Istella (full) has no validation part: a
        fifth of its training queries, always the same, takes its place.

    Examples
    --------
    >>> from mcrank import datasets
    >>> datasets.KNOWN["mq2008"].queries
    784
    """
    root = Path(directory)
    if not root.is_dir():
        raise DataError(f"{root} is not a directory; name the one that the data set was unpacked to.")
    if name is None:
        name = recognise(root)
    if name not in KNOWN:
        raise OptionError(f"name of load must be one of {', '.join(KNOWN)}, got {name!r}.")
    known = KNOWN[name]
    options = {"n_features": known.features, **options}
    if known.files:
        return Folds([_single(known, root, check, options)])
    folds = find_folds(root)
    if check and len(folds) != known.folds:
        raise DataError(f"{root} has {len(folds)} folds, {known.name} has {known.folds}.")
    return Folds([_fold(known, files, check, options) for files in folds])


def recognise(root: Path) -> str:
    """Name of the known set in a directory, by file names first and directory names second."""
    for known in KNOWN.values():
        if known.name.startswith("yahoo") and all(_find(root, file) for file, _ in known.files.values()):
            return known.name
    words = [part.lower().replace("_", "-") for part in root.resolve().parts[::-1][:3]]
    words += [path.name.lower().replace("_", "-") for path in root.iterdir()]
    for word in words:
        for name in sorted(KNOWN, key=len, reverse=True):
            if name in word or name.replace("mslr-", "") in word:
                return "istella-s" if name == "istella" and _find(root, "vali.txt") else name
    raise DataError(f"{root} holds no data set known by its names; say which with name=: {', '.join(KNOWN)}.")


def _find(root: Path, file: str) -> Path | None:
    """The file in the directory or below it, plain or compressed."""
    found = sorted(
        path for suffix in ("", ".gz", ".xz", ".bz2", ".zst") for path in root.rglob(file + suffix)
    )
    return found[0] if found else None


def _fold(
    known: KnownSet, files: dict[str, Path], check: bool, options: dict[str, Any]
) -> Callable[[], Fold[Dataset]]:
    def make() -> Fold[Dataset]:
        fold = Fold(**same_width(files, options))
        if check:
            # Every fold holds the whole set, cut differently.
            counts = (sum(part.n_queries for part in fold), sum(part.n_rows for part in fold))
            _check(known, str(files["train"].parent), counts, (known.queries, known.rows))
        return fold

    return make


def _single(known: KnownSet, root: Path, check: bool, options: dict[str, Any]) -> Callable[[], Fold[Dataset]]:
    files = {}
    for part, (file, _) in known.files.items():
        path = _find(root, file)
        if path is None:
            raise DataError(f"{root} has no {file}; {known.name} has one.")
        files[part] = path

    def make() -> Fold[Dataset]:
        from mcrank.data.folds import split
        from mcrank.data.read import read

        parts = {}
        for part, path in files.items():
            parts[part] = read(path, **options)
            if check:
                found = (parts[part].n_queries, parts[part].n_rows)
                _check(known, str(path), found, known.files[part][1])
        if "valid" not in parts:
            parts["train"], parts["valid"] = split(parts["train"], 0.8, 0.2, seed=0)
        return Fold(**parts)

    return make


def _check(known: KnownSet, where: str, found: Counts, expected: Counts) -> None:
    if found != expected:
        raise DataError(
            f"{where} has {found[0]} queries and {found[1]} rows, {known.name} has {expected[0]} and "
            f"{expected[1]}; get the files again, or use check=False for a changed set."
        )
