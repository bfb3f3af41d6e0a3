"""Root histograms of five outputs with curvatures: ten sums in four 64-bit words, which one vector add takes.

Five grades are what most judgments have, and a fifth word would cost half as much as the other four.
Gradients and curvatures that are rounded to share a word (`mcrank.boosting.packing`) have 14 and 12 bits, so
the sums of 511 rows of a bin fit like this, the lowest bits to the right:

| word | fields |
|---|---|
| 0 | gradient of output 0, gradient of output 1 (32 bits) |
| 1 | gradient of output 2, gradient of output 3 (32 bits) |
| 2 | curvature of output 2, of output 1 (21 bits), of output 0 (21 bits) |
| 3 | gradient of output 4, curvature of output 4 (20 bits), of output 3 (20 bits) |

Then they are spread. Of most features no bin has so many rows before some ten thousand have passed; when that
is does not depend on gradients, so it is found out once. The fullest bin of a feature, of zeros perhaps, is
left to overflow: what it holds is what all rows sum to less what the other bins hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int32, int64, njit, uint64

from mcrank.arrays import ByteArray, IntArray
from mcrank.boosting.packing import narrow
from mcrank.kernels import kernel, step
from mcrank.kernels.memory import load_u64
from mcrank.kernels.vectors import vector_add4

CHUNK = 4096  # rows whose words stay in cache while all features pass over them
TURN = 4  # features in turn: rows of a sparse one hit one counter again and again, and would wait for it
WORDS = 4  # of a counter
OUTPUTS = 5
_MOST = 511  # rows of a bin that fit
_PIECE = 504  # rows of a chunk that fit whatever their bins
# What is to be done with a chunk of rows: add it, spread what there is before, or cut it into pieces.
_ADD, _SPREAD, _CUT = range(3)


class Plan(NamedTuple):
    """When counters are spread.

    Attributes
    ----------
    steps : uint8[turns, chunks]
        By turn of features and chunk of rows: what is to be done.
    fullest : int64[features]
        The bin of every feature that has most rows.
    """

    steps: ByteArray
    fullest: IntArray

    @classmethod
    def of(cls, columns: npt.NDArray[np.uint8], counts: IntArray, needed: bool) -> Plan:
        """Return the plan for rows; an empty one where none is needed."""
        features, rows = columns.shape
        turns, chunks = (-(-features // TURN), -(-rows // CHUNK)) if needed else (0, 0)
        plan = cls(np.zeros((turns, chunks), dtype=np.uint8), counts.argmax(axis=1))
        if needed:
            fill_plan(columns, plan)
        return plan


@kernel(allocates=True)
def fill_plan(columns, plan):  # type: ignore[no-untyped-def]
    """Find out when counters of every turn of features are full."""
    # IN: columns, plan.fullest  OUT: plan.steps
    features, rows = columns.shape
    since = np.zeros((TURN, 256), np.int64)
    now = np.zeros((TURN, 256), np.int64)
    for turn in range(plan.steps.shape[0]):
        first, last = TURN * turn, min(TURN * turn + TURN, features)
        since[:] = 0
        for chunk in range(plan.steps.shape[1]):
            now[:] = 0
            alone, together = int64(0), int64(0)
            for f in range(first, last):
                own, before = now[f - first], since[f - first]
                column = columns[f, CHUNK * chunk : min(CHUNK * chunk + CHUNK, rows)]
                for i in range(uint64(len(column))):
                    own[uint64(column[i])] += 1
                own[plan.fullest[f]] = 0
                for b in range(uint64(256)):
                    alone = max(alone, own[b])
                    together = max(together, own[b] + before[b])
            what = _CUT if alone > _MOST else _SPREAD if together > _MOST else _ADD
            plan.steps[turn, chunk] = what
            for f in range(TURN):
                for b in range(uint64(256)):
                    since[f, b] = 0 if what == _CUT else now[f, b] + (since[f, b] if what == _ADD else 0)


@step()
def five_roots(arrays, span, q, packing, hists):  # type: ignore[no-untyped-def]
    """Root histograms of five outputs: what rows ``span[0]`` up to ``span[1]`` add; the first of these begins
    a chunk.
    """
    # IN: columns, counts and plan of arrays, span, q, packing  OUT: arrays.sums, hists
    columns, sums, plan = arrays.columns, arrays.sums, arrays.plan
    features = int64(columns.shape[0])
    words = np.empty((WORDS, CHUNK), np.int64)
    vectors = np.empty(WORDS * CHUNK, np.int64)
    totals = np.zeros((OUTPUTS, 2), np.int64)
    sums[:] = 0
    _begin(arrays.counts, packing, hists)
    for low in range(span[0], span[1], CHUNK):
        high = min(low + CHUNK, span[1])
        _fill_words(q[:, low:high], packing, words, totals)
        weave(words, high - low, vectors)
        for f in range(0, features, TURN):
            turn = (f, min(f + TURN, features))
            what = plan.steps[f // TURN, low // CHUNK]
            if what != _ADD:
                _spread(sums, turn, packing, hists)
            if what != _CUT:
                add_words(columns[turn[0] : turn[1], low:high], vectors, sums[turn[0] : turn[1]])
                continue
            for start in range(low, high, _PIECE):
                piece = columns[turn[0] : turn[1], start : min(start + _PIECE, high)]
                add_words(piece, vectors[WORDS * (start - low) :], sums[turn[0] : turn[1]])
                _spread(sums, turn, packing, hists)
    _spread(sums, (int64(0), features), packing, hists)
    _fill_fullest(plan.fullest, arrays.counts, packing, totals, hists)


@njit(inline="always")
def _begin(counts, packing, hists):  # type: ignore[no-untyped-def]
    """Histograms of no sums, with the rows of every bin."""
    lanes = packing.lanes
    for k in range(OUTPUTS):
        for f in range(counts.shape[0]):
            for b in range(256):
                at = (256 * f + b) * lanes
                hists[k, at] = counts[f, b] if packing.count_bits > 0 else 0
                hists[k, at + 1] = 0
                if packing.count_bits == 0:
                    hists[k, at + lanes - 1] = counts[f, b]


@step()
def _fill_words(q, packing, words, totals):  # type: ignore[no-untyped-def]
    """Words of some rows; add to ``totals`` what they sum to."""
    a, b, c, d, e = q[0], q[1], q[2], q[3], q[4]
    w, x, y, z = words[0], words[1], words[2], words[3]
    n = uint64(len(a))
    one, fields = np.empty(WORDS, np.int64), np.empty(2 * OUTPUTS, np.int64)
    for i in range(n):
        r0, h0 = narrow(a[i], packing)
        r1, h1 = narrow(b[i], packing)
        w[i] = (r0 << int64(32)) + r1
        y[i] = h0 + (h1 << int64(21))
    for i in range(n):
        r2, h2 = narrow(c[i], packing)
        r3, h3 = narrow(d[i], packing)
        x[i] = (r2 << int64(32)) + r3
        y[i] += h2 << int64(42)
        z[i] = h3
    for i in range(n):
        r4, h4 = narrow(e[i], packing)
        z[i] += (h4 << int64(20)) + (r4 << int64(40))
    for start in range(uint64(0), n, uint64(_PIECE)):
        stop = min(start + uint64(_PIECE), n)
        for k in range(WORDS):
            word, total = words[k], int64(0)
            for i in range(start, stop):
                total += word[i]
            one[k] = total
        _take_apart(one, fields)
        for k in range(OUTPUTS):
            totals[k, 0] += fields[2 * k]
            totals[k, 1] += fields[2 * k + 1]


@njit(inline="always")
def _take_apart(words, fields):  # type: ignore[no-untyped-def]
    """What four words sum to: gradient and curvature of every output."""
    w, x, y, z = words[0], words[1], words[2], words[3]
    short, long = (int64(1) << int64(20)) - int64(1), (int64(1) << int64(21)) - int64(1)
    r1, r3 = int64(int32(w)), int64(int32(x))
    fields[0], fields[1] = (w - r1) >> int64(32), y & long
    fields[2], fields[3] = r1, (y >> int64(21)) & long
    fields[4], fields[5] = (x - r3) >> int64(32), y >> int64(42)
    fields[6], fields[7] = r3, z & short
    fields[8], fields[9] = z >> int64(40), (z >> int64(20)) & short


@njit(inline="always")
def weave(words, n, vectors):  # type: ignore[no-untyped-def]
    """Four words of each row side by side: made one word at a time, as that runs on vectors."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(n):
        vectors[4 * i] = a[i]
        vectors[4 * i + 1] = b[i]
        vectors[4 * i + 2] = c[i]
        vectors[4 * i + 3] = d[i]


@step()
def add_words(columns, vectors, sums):  # type: ignore[no-untyped-def]
    """Add vectors of four words to the bins of up to four features."""
    if len(columns) == TURN:
        _add_four(columns, vectors, sums)
        return
    for f in range(len(columns)):
        column, to = columns[f], sums[f]
        for i in range(uint64(len(column))):
            vector_add4((to,), (uint64(column[i]) << uint64(2),), vectors, i << uint64(2))


@njit(inline="always")
def _add_four(columns, vectors, sums):  # type: ignore[no-untyped-def]
    a, b, c, d = columns[0], columns[1], columns[2], columns[3]
    to = (sums[0], sums[1], sums[2], sums[3])
    n = uint64(len(a))
    whole = n & ~uint64(7)
    for i in range(uint64(0), whole, uint64(8)):
        # Bins of eight rows at a time: a load each would take as long as the adding.
        w, x, y, z = load_u64(a, i), load_u64(b, i), load_u64(c, i), load_u64(d, i)
        for j in range(uint64(8)):
            vector_add4(
                to, (_place(w, j), _place(x, j), _place(y, j), _place(z, j)), vectors, (i + j) << uint64(2)
            )
    for i in range(whole, n):
        bins = (
            uint64(a[i]) << uint64(2), uint64(b[i]) << uint64(2), uint64(c[i]) << uint64(2),
            uint64(d[i]) << uint64(2),
        )  # fmt: skip
        vector_add4(to, bins, vectors, i << uint64(2))


@njit(inline="always")
def _place(word, j):  # type: ignore[no-untyped-def]
    """Place of the counter of one of eight bins."""
    return ((word >> (j << uint64(3))) & uint64(255)) << uint64(2)


@step()
def _spread(sums, turn, packing, hists):  # type: ignore[no-untyped-def]
    """Add the fields of the counters of some features to the histograms, and zero them."""
    # IN: turn, packing  OUT: sums, hists
    lanes = packing.lanes
    fields = np.empty(2 * OUTPUTS, np.int64)
    for f in range(turn[0], turn[1]):
        counters = sums[f]
        for b in range(256):
            _take_apart(counters[4 * b : 4 * b + 4], fields)
            at = (256 * f + b) * lanes
            for k in range(OUTPUTS):
                hists[k, at] += fields[2 * k] << packing.count_bits
                hists[k, at + 1] += fields[2 * k + 1]
        counters[:] = 0


@njit(inline="always")
def _fill_fullest(fullest, counts, packing, totals, hists):  # type: ignore[no-untyped-def]
    """What the fullest bin of every feature holds: all rows but those of the other bins."""
    lanes = packing.lanes
    for k in range(OUTPUTS):
        for f in range(len(fullest)):
            first, second = totals[k, 0] << packing.count_bits, totals[k, 1]
            for b in range(256):
                at = (256 * f + b) * lanes
                if packing.count_bits > 0:
                    first += counts[f, b]
                if b != fullest[f]:
                    first -= hists[k, at]
                    second -= hists[k, at + 1]
            hists[k, (256 * f + fullest[f]) * lanes] = first
            hists[k, (256 * f + fullest[f]) * lanes + 1] = second
