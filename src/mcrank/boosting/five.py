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

Then they are spread (`mcrank.boosting.woven`).
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint64

from mcrank.boosting.packing import narrow
from mcrank.boosting.woven import ADD, CHUNK, CUT, TURN, WORDS, add_words, weave
from mcrank.kernels import step

OUTPUTS = 5
MOST = 511  # rows of a bin that fit
_PIECE = 504  # rows of a chunk that fit whatever their bins


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
        _fill_words(q, (low, high), packing, words, totals)
        weave(words, high - low, vectors)
        for f in range(0, features, TURN):
            turn = (f, min(f + TURN, features))
            what = plan.steps[f // TURN, low // CHUNK]
            if what != ADD:
                _spread(sums, turn, packing, hists)
            if what != CUT:
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
def _fill_words(q, span, packing, words, totals):  # type: ignore[no-untyped-def]
    """Words of rows ``span[0]`` up to ``span[1]``; add to ``totals`` what they sum to."""
    low, high = span
    # Row by row: a part of all rows at once would not be known to be without gaps, and not run on vectors.
    a, b, c, d, e = q[0, low:high], q[1, low:high], q[2, low:high], q[3, low:high], q[4, low:high]
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
