"""Root histograms of all outputs at once: every tree of a round starts from the same rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, njit, uint64

from mcrank.arrays import IntArray
from mcrank.boosting.first_children import FirstChildren
from mcrank.boosting.five import MOST, OUTPUTS, five_roots
from mcrank.boosting.packing import Packing, narrow
from mcrank.boosting.rules import Rules
from mcrank.boosting.workspace import BinnedArrays
from mcrank.boosting.woven import CHUNK, TURN, WORDS, Plan, add_words, weave
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import aligned
from mcrank.losses.quantize import Gradients, Run

NO_WEIGHTS: IntArray = np.empty(0, dtype=np.int64)


class RootArrays(NamedTuple):
    """What root histograms are summed from and into.

    ``counts`` are the rows of every bin of every feature, or 0, and ``masses`` what they weigh (empty without
    weights); ``sums`` room for the sums of outputs under way, and ``plan`` says when it is full where five
    outputs share it.
    """

    columns: npt.NDArray[np.uint8]
    counts: IntArray
    masses: IntArray
    sums: IntArray
    plan: Plan
    hists: IntArray


class SharedRoots:
    """Root histograms of several outputs, four of them summed at once, or five that have curvatures.

    Parameters
    ----------
    columns : uint8[features, rows]
        Bins of the rows.
    packing : Packing
        How gradients are packed; a second lane must be a derived one, or weights.
    outputs : int
        Outputs of the loss.
    balanced : bool
        Whether a row's rounded gradients sum to zero: then, with one lane, the last output's sums are minus
        the others'.
    weights : int64[rows], optional
        A second lane that never changes.

    Their smaller children may be counted with them: `count_children`.
    """

    def __init__(
        self,
        columns: npt.NDArray[np.uint8],
        packing: Packing,
        outputs: int,
        balanced: bool,
        weights: IntArray = NO_WEIGHTS,
    ) -> None:
        self._packing = packing
        self._balanced = balanced and packing.bits == 0
        counts = np.empty((len(columns), 256), dtype=np.int64)
        root_counts(columns, counts)  # which never change
        masses = np.zeros((len(columns) if len(weights) else 0, 256), dtype=np.int64)
        root_masses(columns, weights, masses)
        five = packing.bits > 0 and outputs % WORDS == OUTPUTS % WORDS
        self.plan = Plan.of(columns, counts, MOST if five else columns.shape[1])
        self._children: FirstChildren | None = None
        self._columns, self._outputs = columns, outputs
        self._parts = [self._part(counts, masses)]

    def count_children(self, binned: BinnedArrays, rules: Rules) -> None:
        """Count the smaller children of the roots, too, where that pays: of trees without limits that may
        split by every feature.
        """
        self._children = FirstChildren.of(binned, rules, self._outputs, self._parts[0].counts)

    def _part(self, counts: IntArray, masses: IntArray) -> RootArrays:
        """Room for the sums of some rows."""
        features, lanes = len(self._columns), self._packing.lanes
        return RootArrays(
            self._columns,
            counts,
            masses,
            aligned(features, WORDS * 256),
            self.plan,
            aligned(self._outputs, features * 256 * lanes),
        )

    def fill(self, gradients: Gradients, parts: int, run: Run) -> bool:
        """Sum the rounded gradients of a round, the rows cut into ``parts``; return True: it is done."""
        rows = self._columns.shape[1]
        chunks = max(1, -(-rows // CHUNK))
        parts = min(parts, chunks)
        while len(self._parts) < parts:  # rows of bins are counted once
            known = self._parts[0]
            self._parts.append(self._part(np.zeros_like(known.counts), np.zeros_like(known.masses)))

        def fill_part(part: int) -> None:
            first, last = (CHUNK * (chunks * number // parts) for number in (part, part + 1))
            span = (first, min(last, rows))
            root_histograms(self._parts[part], span, gradients.q, self._packing, self._balanced)

        run(fill_part, range(parts))
        for part in self._parts[1:parts]:
            np.add(self._parts[0].hists, part.hists, out=self._parts[0].hists)
        if self._children is not None:
            room = [part.sums for part in self._parts[:parts]]
            self._children.fill(gradients, self._parts[0].hists, room, run)
        return True

    def copy(self, output: int, hists: IntArray) -> int:
        """Write the root histogram of one output into the first of ``hists``, and that of its smaller child,
        if it is there, into the second; return how many.
        """
        root = self._parts[0].hists[output]
        hists[0, : len(root)] = root
        return 2 if self._children is not None and self._children.copy(output, hists[1]) else 1


@kernel("void(uint8[:, ::1], int64[:, ::1])")
def root_counts(columns, counts):  # type: ignore[no-untyped-def]
    """Rows in every bin of every feature."""
    # IN: columns  OUT: counts
    counts[:] = 0
    for f in range(columns.shape[0]):
        column = columns[f]
        for i in range(uint64(columns.shape[1])):
            counts[f, uint64(column[i])] += 1


@kernel("void(uint8[:, ::1], int64[::1], int64[:, ::1])")
def root_masses(columns, weights, masses):  # type: ignore[no-untyped-def]
    """What the rows in every bin of every feature weigh."""
    # IN: columns, weights  OUT: masses
    masses[:] = 0
    for f in range(masses.shape[0]):
        column = columns[f]
        for i in range(uint64(columns.shape[1])):
            masses[f, uint64(column[i])] += weights[i]


@kernel(allocates=True)
def root_histograms(arrays, span, q, packing, balanced):  # type: ignore[no-untyped-def]
    """Root histograms of all outputs: what rows ``span[0]`` up to ``span[1]`` add to them.

    Every output's tree starts from the same rows, so four of their sums share one vector add and counts and
    weights need none: they never change. With a derived second lane one 64-bit word holds both lanes,
    gradient in the upper half, for as many rows as fit; and of five outputs that are left, four words hold
    them all.
    """
    # IN: columns, counts, masses and plan of arrays, span, q, packing, balanced  OUT: the other arrays
    counts, masses, sums, hists = arrays.counts, arrays.masses, arrays.sums, arrays.hists
    features = arrays.columns.shape[0]
    outputs = q.shape[0] - (1 if balanced else 0)
    start, end = span
    lanes = packing.lanes
    step = max(end - start, int64(1)) if packing.bits == 0 else int64(1) << int64(30 - packing.bits)
    output = int64(0)  # typed: Numba would compile again for a literal's own type
    while output < outputs:
        if packing.bits > 0 and outputs - output == OUTPUTS:
            five_roots(arrays, span, q[output:outputs], packing, hists[output:outputs])
            break
        n = min(outputs - output, int64(WORDS))
        for low in range(start, end, step):
            sums[:] = 0
            _sum_rows(arrays, (low, min(low + step, end)), q[output : output + n], packing)
            for k in range(n):
                hist = hists[output + k]
                for f in range(features):
                    for b in range(256):
                        word = sums[f, 4 * b + k]
                        at = (256 * f + b) * lanes
                        # Rows that share a counter are there once; else the shift and this are nothing.
                        rows_there = counts[f, b] if packing.count_bits > 0 else 0
                        if packing.bits == 0:
                            hist[at] = (word << packing.count_bits) + rows_there
                            if packing.second:
                                hist[at + 1] = masses[f, b]
                        elif low == start:
                            hist[at] = ((word >> 32) << packing.count_bits) + rows_there
                            hist[at + 1] = word & 0xFFFFFFFF
                        else:
                            hist[at] += (word >> 32) << packing.count_bits
                            hist[at + 1] += word & 0xFFFFFFFF
                        if packing.count_bits == 0:
                            hist[at + lanes - 1] = counts[f, b]
        output += n
    if balanced:
        for f in range(features):
            for b in range(256):
                at = (256 * f + b) * lanes
                # Minus the sum of all others, counts aside.
                rows_there = counts[f, b] if packing.count_bits > 0 else 0
                total = outputs * rows_there
                for k in range(outputs):
                    total -= hists[k, at]
                hists[outputs, at] = total + rows_there
                if packing.second:
                    hists[outputs, at + 1] = masses[f, b]
                if packing.count_bits == 0:
                    hists[outputs, at + lanes - 1] = counts[f, b]


@njit(inline="always")
def _sum_rows(arrays, span, q, packing):  # type: ignore[no-untyped-def]
    """Add the words of rows ``span[0]`` up to ``span[1]``; lane k of a bin is for row k of ``q``."""
    columns, sums = arrays.columns, arrays.sums
    features = columns.shape[0]
    words = np.zeros((WORDS, CHUNK), np.int64)
    vectors = np.empty(WORDS * CHUNK, np.int64)
    for low in range(span[0], span[1], CHUNK):
        high = min(low + CHUNK, span[1])
        for k in range(len(q)):
            _fill_words(q[k, low:high], packing, words[k])
        weave(words, high - low, vectors)
        for f in range(0, features, TURN):
            stop = min(f + TURN, features)
            add_words(columns[f:stop, low:high], vectors, sums[f:stop])


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
