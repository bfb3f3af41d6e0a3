"""Where the rows are: in files that memory has no room for.

Trees of a round grow together, and a step of all of them is one pass over the rows: part after part, the next
one being read while this one is worked on, what is done with being let go. With the pages of the files in
memory nothing of this pays: then rows in files are like rows in memory, and each tree grows on its own.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mcrank.arrays import IntArray
from mcrank.boosting.binning import LINE, line_of, words_of
from mcrank.boosting.partition import LeafRows
from mcrank.boosting.rows import Bench, Job, MemoryRows
from mcrank.boosting.rules import Rules
from mcrank.boosting.workspace import BinnedArrays
from mcrank.cores import available_bytes
from mcrank.losses.quantize import Gradients
from mcrank.memory import advise, is_on_disk, let_go, private_bytes

PART_ROWS = 1 << 18  # of a part: some ten megabytes of bins
_AHEAD = getattr(mmap, "MADV_WILLNEED", 3)


def in_files(binned: BinnedArrays) -> list[npt.NDArray[Any]]:
    """Arrays of binned rows that lie in files."""
    arrays: tuple[npt.NDArray[Any], ...] = (binned.columns, binned.lines, binned.wide_columns)
    return [array for array in arrays if is_on_disk(array)]


def pays(binned: BinnedArrays, rows: int, trees: int, memory: int | None) -> bool:
    """Whether rows are in files of which memory could not keep the pages, but what `DiskRows` needs."""
    arrays = in_files(binned)
    if not arrays:
        return False
    kept, free = 24 * rows * trees, available_bytes()
    small = memory is None or private_bytes() + kept < memory
    return sum(array.nbytes for array in arrays) > free // 2 and kept < free // 2 and small


class DiskRows:
    """Rows in mapped files, in parts.

    Parameters
    ----------
    binned : BinnedArrays
        Binned rows, mapped.
    rules : Rules
        How their gradients are packed.
    gradients : Gradients
        What a loss fills each round.
    trees : int
        Trees of a round.
    """

    def __init__(self, binned: BinnedArrays, rules: Rules, gradients: Gradients, trees: int) -> None:
        self._binned, rows = binned, gradients.q.shape[1]
        self._spans = [(first, min(first + PART_ROWS, rows)) for first in range(0, rows, PART_ROWS)]
        spare: list[Bench] = []  # one for all parts, which take turns
        self._parts = [
            MemoryRows(binned, rules, gradients, trees, b - a, spare=spare) for a, b in self._spans
        ]

    def begin(self, outputs: Sequence[int], drawn: IntArray, left_out: int = 0) -> None:
        """Put the rows drawn into the root of a tree for each output: all, if none are and none left out."""
        chosen = len(drawn) > 0 or left_out > 0
        for part, span in zip(self._parts, self._spans, strict=True):
            rows = drawn[slice(*np.searchsorted(drawn, span))] if chosen else np.arange(*span)
            part.begin(outputs, rows, 1)

    def roots(self) -> IntArray:
        """Return the histograms of the roots: trees x counters."""
        return self._added(part.roots() for part in self._each())

    def divide(self, jobs: Sequence[Job], nodes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Divide leaves by the splits in ``nodes`` (of each tree); return histograms of the small sides."""
        return self._added(part.divide(jobs, nodes) for part in self._each())

    def leaves(self, tree: int, nodes: npt.NDArray[Any]) -> LeafRows:
        """Return where the rows of each leaf of a grown tree are."""
        places, found, end = np.zeros((len(nodes), 3), dtype=np.int64), [], 0
        parts = [part.leaves(tree, nodes) for part in self._parts]
        for leaf in np.flatnonzero(nodes["left"] < 0).tolist():
            own = [part.entries[slice(*part.places[leaf, :2])] for part in parts]
            begin, end = end, end + sum(map(len, own))
            places[leaf] = begin, end, end
            found += own
        return LeafRows(places, np.concatenate(found), parts[0].numbers, parts[0].taken)

    def _added(self, counted: Iterator[IntArray]) -> IntArray:
        total = next(counted)
        for hists in counted:
            total += hists
        return total

    def _each(self) -> Iterator[MemoryRows]:
        """The parts, one after the other; the first is wanted again when all are done."""
        for at, part in enumerate(self._parts):
            for pages in self._pages(self._spans[(at + 1) % len(self._parts)]):
                advise(pages, _AHEAD)
            yield part
            for pages in self._pages(self._spans[at]) if len(self._parts) > 1 else ():
                let_go(pages)

    def _pages(self, span: tuple[int, int]) -> Iterator[npt.NDArray[Any]]:
        """What the files hold of some rows."""
        first, last = span
        binned, rows, features = self._binned, self._spans[-1][1], len(self._binned.n_bins)
        for array in in_files(binned):
            if array.ndim == 2:
                yield from (column[first:last] for column in array)
                continue
            for f in range(0, 8 * words_of(features), LINE):
                begin, stride = line_of(f, features, rows)
                yield array[begin + first * stride : begin + last * stride]
