"""Folds: the Fold1..Fold5 directories of LETOR, and splits of one data set by query.

Random splits keep whole queries together and deal them out by strata of best grade, share of relevant rows
and size, so that every part sees the same mix.
"""

from __future__ import annotations

import hashlib
import numbers
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np

from mcrank.arrays import Array, FloatArray, IntArray
from mcrank.data.dataset import Dataset
from mcrank.data.read import read
from mcrank.data.sources import CACHE_SUFFIX, StrPath
from mcrank.errors import DataError, OptionError
from mcrank.options import checked

_PARTS = {"train": ("train",), "valid": ("vali", "valid", "validation", "dev"), "test": ("test",)}
_FOLD_NAME = re.compile(r"(?i)^fold[-_ ]?(\d+)$")


Part = TypeVar("Part", bound=Dataset | None)


class Fold(NamedTuple, Generic[Part]):
    """Training, validation and test data; of ``Fold[Dataset | None]`` only the test data must be there."""

    train: Part
    valid: Part
    test: Dataset

    @property
    def nbytes(self) -> int:
        """Memory of the features, which is nearly all of it."""
        return sum(part.X.nbytes for part in self if part is not None)


class Folds(Sequence[Fold[Dataset]]):
    """Folds made when asked for: ``folds[0].train``, ``for fold in folds``. Nothing is kept in memory here.

    Examples
    --------
    >>> from mcrank import Dataset, kfold
    >>> data = Dataset([[float(i)] for i in range(6)], y=[0, 1] * 3, qid=[1, 1, 2, 2, 3, 3])
    >>> [fold.test.n_queries for fold in kfold(data, 3)]
    [1, 1, 1]
    """

    def __init__(self, makers: Sequence[Callable[[], Fold[Dataset]]]) -> None:
        self._makers = list(makers)

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, index: int) -> Fold[Dataset]: ...
    @overload
    def __getitem__(self, index: slice) -> Folds: ...
    def __getitem__(self, index: int | slice) -> Fold[Dataset] | Folds:
        if isinstance(index, slice):
            return Folds(self._makers[index])
        return self._makers[index]()

    def __iter__(self) -> Iterator[Fold[Dataset]]:
        for maker in self._makers:
            yield maker()

    def __repr__(self) -> str:
        return f"Folds({len(self)} folds)"


def read_folds(directory: StrPath, **options: Any) -> Folds:
    """Find the folds of a LETOR-style directory: Fold1, Fold2, ..., each with train, vali and test files.

    Parameters
    ----------
    directory : path
        The directory that holds the folds (or one that holds it alone), or one with train, vali and test
        itself, which is then the only fold.
    **options
        Passed to `read`, as is ``cache=True``.

    Returns
    -------
    Folds
        Read one by one when asked for. The parts of a fold have the same number of features.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mcrank import read_folds
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for number in (1, 2):
    ...     (root / f"Fold{number}").mkdir()
    ...     for part in ("train", "vali", "test"):
    ...         _ = (root / f"Fold{number}" / f"{part}.txt").write_text(f"1 qid:{part}{number} 1:0.5\\n")
    >>> folds = read_folds(root)
    >>> len(folds), folds[1].test.qids.tolist()
    (2, ['test2'])
    """
    return Folds([_reader(files, options) for files in find_folds(directory)])


def find_folds(directory: StrPath) -> list[dict[str, Path]]:
    """Files of each fold by part: ``[{"train": ..., "valid": ..., "test": ...}, ...]``."""
    root = Path(directory)
    if not root.is_dir():
        raise DataError(f"{root} is not a directory; read_folds needs one with Fold1, Fold2, ...")
    numbered = sorted(
        (int(found.group(1)), path)
        for path in root.iterdir()
        if path.is_dir() and (found := _FOLD_NAME.match(path.name))
    )
    if numbered:
        return [_parts(path) for _, path in numbered]
    inside = [path for path in root.iterdir() if path.is_dir()]
    if len(inside) == 1 and not any(path.is_file() for path in root.iterdir()):
        return find_folds(inside[0])
    return [_parts(root)]


def _parts(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for part, names in _PARTS.items():
        found = [
            path
            for path in sorted(folder.iterdir())
            if path.is_file()
            and path.name.lower().split(".")[0] in names
            and not path.name.endswith((CACHE_SUFFIX, ".npz"))
        ]
        if len(found) != 1:
            what = "no file" if not found else " and ".join(path.name for path in found)
            raise DataError(
                f"{folder} has {what} for the {part} part; there must be one, named {names[0]}.txt."
            )
        files[part] = found[0]
    return files


def _reader(files: dict[str, Path], options: dict[str, Any]) -> Callable[[], Fold[Dataset]]:
    return lambda: Fold(**same_width(files, options))


def same_width(files: Mapping[str, StrPath], options: Mapping[str, Any]) -> dict[str, Dataset]:
    """Read the parts; sparse text may not mention the last features everywhere, then all get the widest."""
    parts = {part: read(path, **options) for part, path in files.items()}
    width = max(data.n_features for data in parts.values())
    for part, path in files.items():
        if parts[part].n_features < width and not parts[part].named:
            parts[part] = read(path, **{**options, "n_features": width})
    return parts


def split(data: Dataset, *shares: float, seed: int = 0) -> tuple[Dataset, ...]:
    """Split a data set at random by query, every part with the same mix of sizes and grades.

    Parameters
    ----------
    data : Dataset
        What to split.
    *shares : float
        Share of the queries in each part; they must sum to 1 (up to rounding). Default 0.6, 0.2, 0.2.
    seed : int
        The same seed gives the same parts.

    Examples
    --------
    >>> from mcrank import make_artificial, split
    >>> train, test = split(make_artificial(10, 1, 1).train, 0.8, 0.2)
    >>> train.n_queries, test.n_queries
    (8, 2)
    """
    seed = checked(seed, "seed", "split", low=0)
    if not all(isinstance(share, numbers.Real) for share in shares):
        raise OptionError(f"shares of split must be numbers, got {shares!r}.")
    wanted = np.array(shares or (0.6, 0.2, 0.2), dtype=np.float64)
    if not ((wanted > 0).all() and abs(wanted.sum() - 1.0) < 1e-6):
        raise OptionError(f"shares of split must be positive and sum to 1, got {tuple(wanted.tolist())}.")
    if data.n_queries < len(wanted):
        raise DataError(f"split into {len(wanted)} parts needs as many queries, got {data.n_queries}.")
    part = deal(data, wanted, seed)
    return tuple(data.select(np.flatnonzero(part == i)) for i in range(len(wanted)))


def kfold(data: Dataset, k: int = 5, *, seed: int = 0) -> Folds:
    """Cut a data set into ``k`` parts by query; fold i tests on part i and validates on the next.

    These are LETOR's folds. The rest trains, so ``k`` must be at least 3.

    Examples
    --------
    >>> from mcrank import kfold, make_artificial
    >>> folds = kfold(make_artificial(10, 1, 1).train, 5, seed=1)
    >>> [len(part.qids) for part in folds[0]]
    [6, 2, 2]
    """
    k, seed = checked(k, "k", "kfold", low=3), checked(seed, "seed", "kfold", low=0)
    if data.n_queries < k:
        raise DataError(f"kfold with k={k} needs as many queries, got {data.n_queries}.")
    part = deal(data, np.full(k, 1.0 / k), seed)

    def maker(fold: int) -> Callable[[], Fold[Dataset]]:
        def make() -> Fold[Dataset]:
            test, valid = part == fold, part == (fold + 1) % k
            return Fold(data.select(~(test | valid)), data.select(valid), data.select(test))

        return make

    return Folds([maker(fold) for fold in range(k)])


def parts_by_id(data: Dataset, count: int) -> IntArray:
    """Return the part (0 to ``count`` - 1) of each query, by its id and best grade alone.

    Queries with the same best grade are dealt out in the order of a digest of their ids, so that parts have
    the same mix of grades, and neither the order of the queries nor a seed has a say.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.folds import parts_by_id
    >>> data = Dataset([[0.0]] * 4, y=[0, 1, 0, 1], qid=["a", "b", "c", "d"])
    >>> part = parts_by_id(data, 2)
    >>> sorted(part.tolist()), part.tolist() == parts_by_id(data.select([3, 2, 1, 0]), 2)[::-1].tolist()
    ([0, 0, 1, 1], True)
    """
    best = np.maximum.reduceat(data.y, data.offsets[:-1])
    digests = [hashlib.blake2b(str(q).encode(), digest_size=16).digest() for q in data.qids.tolist()]
    order = sorted(range(data.n_queries), key=lambda q: (best[q], digests[q]))
    part = np.empty(data.n_queries, dtype=np.int64)
    part[order] = np.arange(data.n_queries) % count
    return part


def deal(data: Dataset, shares: FloatArray, seed: int) -> IntArray:
    """Return the part of each query: in order of their strata, each goes to the part that lags most behind
    its share.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank import make_artificial
    >>> from mcrank.data.folds import deal
    >>> np.bincount(deal(make_artificial(9, 1, 1).train, np.full(3, 1 / 3), seed=0)).tolist()
    [3, 3, 3]
    """
    stream = np.random.Generator(np.random.PCG64(seed))
    starts = data.offsets[:-1]
    best = np.maximum.reduceat(data.y, starts)
    relevant = np.add.reduceat((data.y > 0).astype(np.float64), starts) / data.sizes
    shuffled = stream.permutation(data.n_queries)
    keys = (_fifths(data.sizes[shuffled]), _fifths(relevant[shuffled]), best[shuffled])
    order = shuffled[np.lexsort(keys)]
    part = np.empty(data.n_queries, dtype=np.int64)
    # A random start inside each share, so that the first query of a stratum is not always the first part's.
    lag = stream.random(len(shares)) * shares
    for query in order.tolist():
        lag += shares
        chosen = int(np.argmax(lag))
        lag[chosen] -= 1.0
        part[query] = chosen
    return _none_empty(part, len(shares))


def _fifths(values: Array) -> IntArray:
    """Coarse strata: which fifth of the queries a value falls into."""
    edges = np.quantile(values, (0.2, 0.4, 0.6, 0.8))
    return np.searchsorted(edges, values, side="left").astype(np.int64)


def _none_empty(part: IntArray, count: int) -> IntArray:
    """A tiny share of few queries may get none; it then takes one from the largest part."""
    for i in range(count):
        if not (part == i).any():
            largest = int(np.bincount(part, minlength=count).argmax())
            part[np.flatnonzero(part == largest)[0]] = i
    return part
