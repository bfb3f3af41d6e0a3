"""Root histograms of all outputs at once: every tree of a round starts from the same rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.arrays import IntArray
from mcrank.boosting.packing import Packing, narrow
from mcrank.boosting.workspace import BinnedArrays
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.kernels.vectors import vector_add4
from mcrank.losses.quantize import Gradients, Run

_CHUNK = 4096  # rows whose gradients stay in cache while all features pass over them
_TOGETHER = 4  # outputs that share one vector add


class RootArrays(NamedTuple):
    """What root histograms are summed from and into.

    ``counts`` are the rows of every bin of every feature; ``sums`` and ``fifth`` room for the sums of outputs
    under way.
    """

    columns: npt.NDArray[np.uint8]
    counts: IntArray
    sums: IntArray
    fifth: IntArray
    hists: IntArray


class SharedRoots:
    """Root histograms of several outputs, four or five outputs summed at once.

    Parameters
    ----------
    binned : BinnedArrays
        Rows with 8-bit bins.
    packing : Packing
        How gradients are packed; a second lane must be a derived one.
    outputs : int
        Outputs of the loss.
    balanced : bool
        Whether a row's rounded gradients sum to zero: then, with one lane, the last output's sums are minus
        the others'.
    """

    def __init__(self, binned: BinnedArrays, packing: Packing, outputs: int, balanced: bool) -> None:
        self._packing = packing
        self._balanced = balanced and not packing.second
        # Features the kernel takes in turn: with a fifth output two.
        self._turn = 2 if (outputs - self._balanced) % _TOGETHER == 1 else 4
        features = len(binned.columns)
        self._arrays = RootArrays(
            binned.columns,
            np.empty((features, 256), dtype=np.int64),
            aligned(features, _TOGETHER * 256),
            aligned(features, 256),
            aligned(outputs, features * 256 * packing.lanes),
        )
        root_counts(binned.columns, self._arrays.counts)  # which never change

    def fill(self, gradients: Gradients, parts: int, run: Run) -> bool:
        """Sum the rounded gradients of a round, the features cut into ``parts``; return True: it is done."""
        features = len(self._arrays.columns)
        step = -(-features // (self._turn * parts)) * self._turn

        def fill_part(first: int) -> None:
            part = (first, min(first + step, features))
            root_histograms(self._arrays, part, gradients.q, self._packing, self._balanced)

        run(fill_part, range(0, features, step))
        return True

    def copy(self, output: int, hist: npt.NDArray[np.int64]) -> None:
        """Write the root histogram of one output."""
        hists = self._arrays.hists
        hist[: hists.shape[1]] = hists[output]

    def take(self, *left: Any) -> None:
        """Take what trees have left: nothing, as the next roots have gradients of their own."""


@kernel("void(uint8[:, ::1], int64[:, ::1])")
def root_counts(columns, counts):  # type: ignore[no-untyped-def]
    """Rows in every bin of every feature."""
    # IN: columns  OUT: counts
    counts[:] = 0
    for f in range(columns.shape[0]):
        column = columns[f]
        for i in range(uint64(columns.shape[1])):
            counts[f, uint64(column[i])] += 1


@kernel(allocates=True)
def root_histograms(arrays, part, q, packing, balanced):  # type: ignore[no-untyped-def]
    """Root histograms of all outputs, for features ``part[0]`` up to ``part[1]``.

    Every output's tree starts from the same rows, so four of their sums share one vector add and the counts
    need none: they never change. A fifth output is added beside them, rather than in a pass of its own. With
    a derived second lane one 64-bit word holds both lanes, gradient in the upper half, for as many rows as
    fit.
    """
    # IN: columns and counts of arrays, part, q, packing, balanced  OUT: the other arrays
    counts, sums, fifth, hists = arrays.counts, arrays.sums, arrays.fifth, arrays.hists
    first, last = part
    outputs = q.shape[0] - (1 if balanced else 0)
    rows = arrays.columns.shape[1]
    lanes = packing.lanes
    step = rows if packing.bits == 0 else int64(1) << int64(30 - packing.bits)
    output = int64(0)  # typed: Numba would compile again for a literal's own type
    while output < outputs:
        n = outputs - output
        n = n if n <= _TOGETHER + 1 else _TOGETHER
        for low in range(0, rows, step):
            sums[first:last] = 0
            fifth[first:last] = 0
            _sum_rows(arrays, part, (low, min(low + step, rows)), q[output : output + n], packing)
            for k in range(n):
                hist = hists[output + k]
                for f in range(first, last):
                    for b in range(256):
                        word = sums[f, 4 * b + k] if k < _TOGETHER else fifth[f, b]
                        at = (256 * f + b) * lanes
                        # Rows that share a counter are there once; else the shift and this are nothing.
                        rows_there = counts[f, b] if packing.count_bits > 0 else 0
                        if not packing.second:
                            hist[at] = (word << packing.count_bits) + rows_there
                        elif low == 0:
                            hist[at] = ((word >> 32) << packing.count_bits) + rows_there
                            hist[at + 1] = word & 0xFFFFFFFF
                        else:
                            hist[at] += (word >> 32) << packing.count_bits
                            hist[at + 1] += word & 0xFFFFFFFF
                        if packing.count_bits == 0:
                            hist[at + lanes - 1] = counts[f, b]
        output += n
    if balanced:
        for f in range(first, last):
            for b in range(256):
                at = (256 * f + b) * lanes
                # Minus the sum of all others, counts aside.
                rows_there = counts[f, b] if packing.count_bits > 0 else 0
                total = outputs * rows_there
                for k in range(outputs):
                    total -= hists[k, at]
                hists[outputs, at] = total + rows_there
                if packing.count_bits == 0:
                    hists[outputs, at + lanes - 1] = counts[f, b]


@njit(inline="always")
def _sum_rows(arrays, part, span, q, packing):  # type: ignore[no-untyped-def]
    """Add the words of rows ``span[0]`` up to ``span[1]``; lane k of a bin is for row k of ``q``.

    Features take turns: rows of a sparse feature hit one counter again and again, and each add would wait
    for the one before it. Four fit the L1 cache, or two with a fifth output.
    """
    columns, sums, fifth = arrays.columns, arrays.sums, arrays.fifth
    first, last = part
    start, end = span
    n = len(q)
    words = np.zeros((_TOGETHER + 1, _CHUNK), np.int64)
    vectors = np.empty(_TOGETHER * _CHUNK, np.int64)
    singles = words[_TOGETHER]
    for low in range(start, end, _CHUNK):
        high = min(low + _CHUNK, end)
        for k in range(n):
            _fill_words(q[k, low:high], packing, words[k])
        _weave(words, high - low, vectors)
        f = first
        while f + 4 <= last and n <= _TOGETHER:
            _four(columns[f : f + 4, low:high], vectors, sums[f : f + 4])
            f += 4
        while f + 2 <= last and n > _TOGETHER:
            _pair(columns[f : f + 2, low:high], vectors, singles, sums[f : f + 2], fifth[f : f + 2])
            f += 2
        while f < last:
            _pair(columns[f : f + 1, low:high], vectors, singles, sums[f : f + 1], fifth[f : f + 1])
            f += 1


@step()
def _fill_words(row, packing, words):  # type: ignore[no-untyped-def]
    """Words of one output's gradients."""
    if packing.bits == 0:
        for i in range(len(row)):
            words[i] = row[i]
    else:
        for i in range(len(row)):
            r, h = narrow(row[i], packing)
            words[i] = (r << int64(32)) + h


@njit(inline="always")
def _weave(words, n, vectors):  # type: ignore[no-untyped-def]
    """Words of four outputs side by side: made one output at a time, as that runs on vectors."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(n):
        vectors[4 * i] = a[i]
        vectors[4 * i + 1] = b[i]
        vectors[4 * i + 2] = c[i]
        vectors[4 * i + 3] = d[i]


@step()
def _four(columns, vectors, sums):  # type: ignore[no-untyped-def]
    """Add vectors of four outputs to the bins of four features."""
    a, b, c, d = columns[0], columns[1], columns[2], columns[3]
    to_a, to_b, to_c, to_d = sums[0], sums[1], sums[2], sums[3]
    for i in range(uint64(len(a))):
        at = i << uint64(2)
        vector_add4(to_a, uint64(a[i]) << uint64(2), vectors, at)
        vector_add4(to_b, uint64(b[i]) << uint64(2), vectors, at)
        vector_add4(to_c, uint64(c[i]) << uint64(2), vectors, at)
        vector_add4(to_d, uint64(d[i]) << uint64(2), vectors, at)


@step()
def _pair(columns, vectors, singles, sums, fifth):  # type: ignore[no-untyped-def]
    """Add vectors of four outputs, and those of a fifth, to the bins of two features (or of one)."""
    a, to_a, fifth_a = columns[0], sums[0], fifth[0]
    if len(columns) == 1:
        for i in range(uint64(len(a))):
            x = uint64(a[i])
            vector_add4(to_a, x << uint64(2), vectors, i << uint64(2))
            fifth_a[x] += singles[i]
        return
    b, to_b, fifth_b = columns[1], sums[1], fifth[1]
    for i in range(uint64(len(a))):
        x = uint64(a[i])
        y = uint64(b[i])
        vector_add4(to_a, x << uint64(2), vectors, i << uint64(2))
        fifth_a[x] += singles[i]
        vector_add4(to_b, y << uint64(2), vectors, i << uint64(2))
        fifth_b[y] += singles[i]
