"""Bins that several trainings share: a data set is binned once for each way of binning it.

Tuning, comparing and bagging train again and again on one data set, and a `Dataset` never changes. Its bins
are kept for as long as it lives, all data sets together up to `most_bytes`, those used last before others.
They are found by the matrix itself: whoever has the same one has the same bins, and a copy of a data set
(pickled, selected) has none yet.
"""

from __future__ import annotations

import os
import threading
import weakref
from itertools import count
from typing import Any

from mcrank.arrays import FeatureArray
from mcrank.boosting.binning import BinnedDataset, bin_dataset, find_bins
from mcrank.data.dataset import Dataset
from mcrank.errors import OptionError

VARIABLE = "MCRANK_BINS_MB"
_MEGABYTES = 1024  # by default

_Way = tuple[Any, ...]  # max_bins, binning, and which features hold how many categories


class _Shelf:
    """What is kept for one matrix. ``lock`` is held while it is binned: who wants the same bins waits."""

    def __init__(self, matrix: weakref.ref[FeatureArray]) -> None:
        self.matrix = matrix
        self.lock = threading.Lock()
        self.kept: dict[_Way, tuple[int, BinnedDataset]] = {}  # when it was last used, and the bins


class BinCache:
    """Bins by data set and way of binning; any number of threads may ask.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.boosting.bin_cache import BinCache
    >>> data, cache = Dataset([[0.0], [3.0]], y=[0, 1], qid=[1, 1]), BinCache()
    >>> cache.binned(data, 256, "adaptive") is cache.binned(data, 256, "adaptive")
    True
    """

    def __init__(self) -> None:
        self._shelves: dict[int, _Shelf] = {}
        self._lock = threading.Lock()
        self._clock = count()

    def binned(self, data: Dataset, max_bins: int, binning: str, n_jobs: int = 1) -> BinnedDataset:
        """Return the binned rows of a data set, which nobody may write to."""
        sizes = {f: len(names) for f, names in data.categories.items()}
        most, shelf, way = most_bytes(), self._shelf(data.X), (max_bins, binning, tuple(sizes.items()))
        with shelf.lock:
            _, found = shelf.kept.get(way, (0, None))
            if found is None:
                # Others make room before the new one takes memory: about two bytes a value.
                self._trim(most - 2 * data.X.size)
                bins = find_bins(data.X, max_bins, binning, n_jobs, categories=sizes)
                found = bin_dataset(data, bins, n_jobs)
            shelf.kept[way] = next(self._clock), found
        self._trim(most)
        return found

    def _shelf(self, X: FeatureArray) -> _Shelf:
        shelves, place = self._shelves, id(X)
        with self._lock:
            shelf = shelves.get(place)
            if shelf is None or shelf.matrix() is not X:
                # The call back takes no lock: it may come at any moment, also in one that holds it.
                shelf = _Shelf(weakref.ref(X, lambda _: shelves.pop(place, None)))
                shelves[place] = shelf
            return shelf

    def _trim(self, most: int) -> None:
        """Let go of bins, those used longest ago first, until no more than ``most`` bytes are kept."""
        with self._lock:
            entries = [
                (used, _bytes(binned), shelf, way)
                for shelf in list(self._shelves.values())
                for way, (used, binned) in list(shelf.kept.items())
            ]
            total = sum(size for _, size, _, _ in entries)
            for _, size, shelf, way in sorted(entries, key=lambda entry: entry[0]):
                if total <= most:
                    return
                shelf.kept.pop(way, None)
                total -= size


def _bytes(binned: BinnedDataset) -> int:
    return binned.columns.nbytes + binned.lines.nbytes + binned.wide_columns.nbytes


def most_bytes() -> int:
    """Return the memory that bins may take between trainings: ``MCRANK_BINS_MB``, or 1024 megabytes.

    Examples
    --------
    >>> from mcrank.boosting.bin_cache import most_bytes
    >>> most_bytes()
    1073741824
    """
    text = os.environ.get(VARIABLE, "") or str(_MEGABYTES)
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise OptionError(
            f"{VARIABLE} must be a whole number of megabytes, or 0 to keep no bins; got {text!r}."
        )
    return int(text) << 20


BINS = BinCache()


def _forget() -> None:
    """In a forked process: another thread of the parent may have held a lock."""
    BINS.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
