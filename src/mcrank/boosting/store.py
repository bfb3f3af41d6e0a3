"""Bins that are kept in a file: data binned once, trained on as often as one likes, never whole in memory.

The file is a container (`mcrank.container`) with the binned rows as the engine reads them, the bounds of the
bins, grades, queries and weights. It is mapped, not read. Hashes only show accidents, so whatever a file says
is checked like what a caller says before anybody trains on it: every bin is one of its feature, and both
layouts of the rows say the same.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import numpy as np
from numba import uint64

from mcrank.arrays import Array, Arrays, FeatureArray
from mcrank.boosting.binning import LINE, BinnedDataset, Bins, bin_dataset, find_bins, line_of, words_of
from mcrank.boosting.cuts import BINNINGS, midpoints
from mcrank.container import BINS, Place, open_regular, pieces, read_file
from mcrank.data.batches import Progress
from mcrank.data.cache import Unusable, checked_parts, packed_ids
from mcrank.data.checks import check_names
from mcrank.data.dataset import Dataset
from mcrank.data.fingerprint import fingerprint
from mcrank.data.scan import Scan
from mcrank.data.sources import StrPath, replaced_file
from mcrank.data.spill import spilled
from mcrank.errors import DataError, McrankError, OptionError
from mcrank.kernels import kernel
from mcrank.memory import for_kernels
from mcrank.options import checked
from mcrank.threads import check_jobs
from mcrank.writing import check_apart

LAYOUT = 4  # of the file and its binned rows: a file with another one is made again
_HEADER = ("binning", "features", "fingerprint", "ids", "layout", "max_bins", "named")
_FORMS = {
    "lines": ("uint8", 1),
    "columns": ("uint8", 2),
    "wide_columns": ("uint16", 2),
    "lowest": ("float32", 1),
    "highest": ("float32", 1),
    "bin_counts": ("int64", 1),
    "missing": ("uint8", 1),
    "y": ("float64", 1),
    "offsets": ("int64", 1),
    "weight": ("float64", 1),
    "source_rows": ("int64", 1),
}
_MORE = {"weight", "source_rows"}  # that not all files have
_NEEDED = {"lowest", "highest", "bin_counts", "missing", "y", "offsets", "qids"}


class BinnedData(Dataset):
    """A `Dataset` whose features are bins in a file; `open_bins` makes it.

    It stands wherever boosted trees take a `Dataset` to train on. The values of its features are gone: what
    needs ``X`` is refused.

    Attributes
    ----------
    binned : BinnedDataset
        The binned rows, mapped.
    max_bins, binning : int, str
        How they were binned.
    fingerprint : str
        Of the data they were made of.
    """

    __slots__ = ("_shape", "binned", "binning", "fingerprint", "max_bins", "path")

    binned: BinnedDataset
    max_bins: int
    binning: str
    fingerprint: str
    path: str
    _shape: tuple[int, int]

    def __init__(self, path: str, header: dict[str, Any], arrays: Arrays, binned: BinnedDataset) -> None:
        rows, features = len(arrays["y"]), binned.bins.n_features
        values = checked_parts(header, arrays, header["ids"], features)
        values |= {"dropped_queries": 0, "categories": {}}
        for name in Dataset.__slots__:
            if name == "X":
                continue
            value = values.get(name)
            if isinstance(value, np.ndarray):
                value = value.copy()
                value.setflags(write=False)
            object.__setattr__(self, name, value)
        own = {name: header[name] for name in ("max_bins", "binning", "fingerprint")}
        for name, value in (own | {"path": path, "binned": binned, "_shape": (rows, features)}).items():
            object.__setattr__(self, name, value)

    @property
    def X(self) -> FeatureArray:  # type: ignore[override]
        """Refuse: the values are not there."""
        raise DataError(
            f"{self.path} holds bins, not the values of features, which this needs; give mcrank.scan of the "
            "files it was made of, or read them."
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._shape[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return open_bins, (self.path,)

    def binned_by(self, max_bins: int, binning: str) -> BinnedDataset:
        """Return the binned rows, if they were binned this way."""
        if (max_bins, binning) != (self.max_bins, self.binning):
            raise OptionError(
                f"{self.path} was binned with max_bins={self.max_bins} and binning={self.binning!r}, the "
                f"ranker has {max_bins} and {binning!r}; train with those, or make the bins again."
            )
        return self.binned


def write_bins(
    source: Dataset | Scan,
    path: StrPath,
    *,
    max_bins: int = 256,
    binning: str = "adaptive",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Bin data and keep the bins in a file, which `open_bins` opens to train on.

    A scan is read once, in batches of bounded size, into scratch files; bins are those that training in
    memory would find. The file is written whole or not at all.

    Parameters
    ----------
    source : Scan or Dataset
        What to bin.
    path : path
        The file to write, such as ``train.bins``.
    max_bins, binning : int, str
        As of the rankers that will be trained on it.
    n_jobs : int, optional
        Threads; all cores by default.
    progress : callable, optional
        Told what is read and what there is in all: bytes of text, rows of tables.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mcrank
    >>> train, *_ = mcrank.make_artificial(n_train=20, n_valid=1, n_test=1, seed=1)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.bins")
    >>> mcrank.write_bins(train, path)
    >>> mcrank.LambdaMART(n_estimators=2).fit(mcrank.open_bins(path)).forest_.n_trees
    2
    """
    if binning not in BINNINGS:
        raise OptionError(f"binning of write_bins must be {' or '.join(BINNINGS)}, got {binning!r}.")
    checked(max_bins, "max_bins", "write_bins", low=2, high=65536)
    threads = check_jobs(n_jobs, "write_bins")
    if isinstance(source, Scan):
        check_apart(path, [piece.path for piece in source.pieces], "path of write_bins")
    data = spilled(source, threads, progress) if isinstance(source, Scan) else source
    if data.categories:
        names = ", ".join(repr(data.feature_names[f]) for f in data.categories)
        raise DataError(f"bins are kept of numbers alone, and this data has categories: {names}.")
    binned = bin_dataset(data, find_bins(data.X, max_bins, binning, threads), threads)
    bins = binned.bins
    kind, qids = packed_ids(data.qids)
    plain = check_names(None, data.n_features)
    header: dict[str, Any] = {
        "binning": binning,
        "features": None if data.feature_names == plain else list(data.feature_names),
        "fingerprint": fingerprint(data),
        "ids": kind,
        "layout": LAYOUT,
        "max_bins": max_bins,
        "named": data.named,
    }
    arrays: Arrays = {
        "lowest": bins.lowest,
        "highest": bins.highest,
        "bin_counts": np.diff(bins.offsets) + 1,
        "missing": bins.missing,
        "y": data.y,
        "offsets": data.offsets,
        "qids": qids,
    }
    if data.row_weight is not None:
        if data.query_weight is not None:
            raise DataError("bins keep weights of rows; give weights of queries as those of their rows.")
        arrays["weight"] = data.row_weight
    if data.source_rows is not None:  # rows of a query lay apart: scores to start from come as they lay
        arrays["source_rows"] = data.source_rows
    if bins.wide:
        arrays["wide_columns"] = binned.wide_columns
    else:
        arrays |= {"columns": binned.columns, "lines": binned.lines.view(np.uint8)}
    with replaced_file(path) as stream:
        for piece in pieces(header, arrays, BINS):
            stream.write(piece)


def are_bins(path: StrPath) -> bool:
    """Whether a file begins as one of bins does.

    Examples
    --------
    >>> from mcrank.boosting.store import are_bins
    >>> are_bins("no/such/file")
    False
    """
    try:
        with open_regular(os.fspath(path)) as file:
            return file.read(len(BINS.magic)) == BINS.magic
    except (OSError, McrankError):
        return False


def open_bins(path: StrPath) -> BinnedData:
    """Open a file of bins (`write_bins`, ``mcrank bin``) to train boosted trees on.

    All of it is checked, the rows stay on disk. It must not be changed while it is used: a file that is cut
    short while it is mapped ends the process.

    Examples
    --------
    >>> import mcrank
    >>> mcrank.open_bins("no/such.bins")
    Traceback (most recent call last):
    mcrank.errors.DataError: no/such.bins cannot be read: No such file or directory.
    """
    where = os.fspath(path)
    try:
        header, arrays = read_file(where, BINS, wanted=_check_header, mapped=True)
        binned = BinnedDataset(*_binned(arrays))
        return BinnedData(where, header, arrays, binned)
    except (Unusable, McrankError) as error:
        text = str(error)
        if isinstance(error, Unusable) or not text.startswith(where):
            text = f"{where} is no file of bins that can be used: {text.rstrip('.')}. {BINS.remedy}"
        raise DataError(text) from None


def _unusable(why: str) -> NoReturn:
    raise Unusable(why)


def _check_header(header: dict[str, Any], places: dict[str, Place]) -> None:
    """Check what the header alone tells, before anything is mapped."""
    if sorted(header) != sorted(_HEADER):
        _unusable("it has another header")
    if header["layout"] != LAYOUT:
        _unusable(f"its rows have layout {header['layout']!r}, this mcrank reads {LAYOUT}")
    if not isinstance(header["named"], bool) or header["binning"] not in BINNINGS:
        _unusable("its header is not one of bins")
    if type(header["max_bins"]) is not int or not isinstance(header["fingerprint"], str):
        _unusable("its header is not one of bins")
    rows = {"columns", "lines"} if "columns" in places else {"wide_columns"}
    if set(places) - _MORE != _NEEDED | rows:
        _unusable("its arrays are not those of bins")
    for name, place in places.items():
        if name in _FORMS and (place.dtype.name, len(place.shape)) != _FORMS[name]:
            _unusable(f"{name} has another form")


def _binned(arrays: Arrays) -> tuple[Bins, Array, Array, Array]:
    """Bins and binned rows, checked."""
    bins = _checked_bins(arrays)
    rows, features, wide = len(arrays["y"]), bins.n_features, bins.wide
    if wide == ("columns" in arrays) or rows == 0:
        _unusable("its rows do not fit its bins")
    columns = for_kernels(arrays["wide_columns" if wide else "columns"])
    lines = np.empty(0, dtype=np.uint8) if wide else for_kernels(arrays["lines"])
    if columns.shape != (features, rows):
        _unusable("its rows do not fit its bins")
    if not wide and len(lines) != 8 * words_of(features) * rows:
        _unusable("its rows do not fit its bins")
    if not same_bins(columns, lines, bins.counts):
        _unusable("it has bins that no feature has, or that differ between its layouts")
    none = np.empty((0, 0), dtype=np.uint8 if wide else np.uint16)
    return (
        (bins, none, lines.view(np.uint64), columns) if wide else (bins, columns, lines.view(np.uint64), none)
    )


def _checked_bins(arrays: Arrays) -> Bins:
    lowest, highest, counts, missing = (
        arrays[name].copy() for name in ("lowest", "highest", "bin_counts", "missing")
    )
    if len(counts) == 0 or len(missing) != len(counts) or missing.max() > 1:
        _unusable("its bins do not fit together")
    if counts.min() < 1 or counts.max() > 65536 or not int(counts.sum()) == len(lowest) == len(highest):
        _unusable("its bins do not fit together")
    inner = np.ones(len(lowest), dtype=bool)
    ends = np.cumsum(counts)
    inner[ends - 1] = False  # behind the last bin of a feature another one begins
    inner = inner[:-1]
    apart = (highest[:-1] < lowest[1:])[inner]
    if not ((lowest <= highest).all() and apart.all()):
        _unusable("its bins do not rise")
    edges = midpoints(highest[:-1], lowest[1:])[inner]
    offsets = np.r_[0, np.cumsum(counts - 1)].astype(np.int64)
    for shared in (edges, offsets):
        shared.setflags(write=False)
    return Bins(edges, offsets, missing, lowest, highest)


@kernel()
def same_bins(columns, lines, counts):  # type: ignore[no-untyped-def]
    """Whether every bin is one of its feature, and lines, where there are any, hold the same as columns."""
    # IN: all
    bad = 0
    features, rows = columns.shape
    held = 8 * words_of(features) if len(lines) > 0 else 0
    for low in range(0, rows, 1024):
        some = range(uint64(low), uint64(min(low + 1024, rows)))
        for f in range(features):
            most = counts[f]
            for i in some:
                bad += columns[f, i] >= most
        for f in range(held):
            begin, stride = line_of(f, features, rows)
            first, apart = uint64(8 * begin + f % LINE), uint64(8 * stride)
            for i in some:
                there = columns[f, i] if f < features else columns[0, 0] * 0
                bad += lines[first + i * apart] != there
    return bad == 0
