"""Exact line search for a linear ranker: the best weight of one feature, all others held.

Along a line every score is ``score + step * x``, and a relevant row changes its rank only where it meets
another row of its query. Those meeting points, with what each does to the measure, decide the value between
any two of them; the best interval is found without trying steps. Values are integers (a fixed share of the
largest possible sum), so sums do not depend on their order and equal rankings have equal values.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit, types

from mcrank.arrays import BoolArray, FloatArray, IntArray
from mcrank.kernels import kernel, step
from mcrank.metrics.dcg import DiscountedSum
from mcrank.metrics.prepared import PreparedMeasure
from mcrank.training.long_lines import LongLines, note_step, sort_with, value_at

_F = types.float64[::1]
_I = types.int64[::1]

FARTHEST = 2.0**50  # no step goes farther
FEW = 24  # numbers up to which insertion keeps the least of many quickly
LONG = 2048  # rows of a query from which no relevant row is compared with all others, where ranks are cut
_CUT_SHARE = 8  # and of which the ranks that count are at most one in so many
_LEAST_EXPONENT = 1023 - 50  # steps below 2^-50 share the bin of 0
_BIN_BITS = 47  # bits dropped of a float to get its bin: 32 bins for each power of 2
_SIDE = 100 * 32  # bins on either side of 0
N_BINS = 2 * _SIDE + 1
_NARROW = 1e-9  # relative width below which rounding decides who is ahead
_UNIT_BITS, _RATIO_BITS = 38, 24  # of row values and discounts: all sums stay below 2^62


class SearchedRows(NamedTuple):
    """Rows of the queries searched, as kernels take them."""

    offsets: IntArray
    relevant: IntArray  # rows
    relevant_offsets: IntArray  # by query
    unit: IntArray  # value at the first rank, by relevant row
    ratio: IntArray  # share of that by rank


class Space(NamedTuple):
    """Memory of one thread that searches lines."""

    up: FloatArray
    down: FloatArray
    steps: FloatArray
    change: IntArray
    kept: FloatArray
    kept_at: IntArray
    total: IntArray
    rise: IntArray
    low: FloatArray
    high: FloatArray
    ends: FloatArray

    @classmethod
    def allocate(cls, longest: int, most: int) -> Space:
        """Return memory for queries of up to ``longest`` rows and up to ``most`` meetings."""
        up, down = np.empty((2, longest + 1))
        step, kept, change, kept_at = np.empty((4, most))
        total, rise, low, high = np.empty((4, N_BINS))
        whole = np.int64  # the memory of a float holds an integer just as well
        return cls(
            up, down, step, change.view(whole), kept, kept_at.view(whole),
            total.view(whole), rise.view(whole), low, high, np.zeros(2),
        )  # fmt: skip


_TWO = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
_ROWS = types.NamedUniTuple(_I, 5, SearchedRows)  # type: ignore[no-untyped-call]
_SPACE = types.NamedTuple((_F, _F, _F, _I, _F, _I, _I, _I, _F, _F, _F), Space)  # type: ignore[no-untyped-call]


@step()
def sort_floats(key, n):  # type: ignore[no-untyped-def]
    """Sort the first ``n`` numbers (Shell's sort: they are few, and it compiles in no time)."""
    # IN and OUT: key  IN: n
    gap = 1
    while gap * 9 < n * 4:
        gap = (gap * 9 + 3) // 4
    while gap > 0:
        for i in range(gap, n):
            held = key[i]
            j = i
            while j >= gap and key[j - gap] > held:
                key[j] = key[j - gap]
                j -= gap
            key[j] = held
        gap = gap * 4 // 9


@kernel(types.int64(_F, _ROWS))
def value_of(scores, rows):  # type: ignore[no-untyped-def]
    """Sum the values of all relevant rows at their ranks; equal scores stand in row order."""
    # IN: scores, rows
    offsets, relevant, relevant_offsets, unit, ratio = rows
    total = np.int64(0)
    for q in range(offsets.shape[0] - 1):
        for t in range(relevant_offsets[q], relevant_offsets[q + 1]):
            i = relevant[t]
            rank = 0
            for j in range(offsets[q], offsets[q + 1]):
                rank += scores[j] > scores[i] or (scores[j] == scores[i] and j < i)
            if rank < ratio.shape[0]:
                total += unit[t] * ratio[rank]
    return total


@step()
def keep_least(kept, n, most, value):  # type: ignore[no-untyped-def]
    """Put a number among the least ``most`` so far, which stand in order; return how many there are."""
    # IN and OUT: kept  IN: n (numbers in it), most, value
    if n == most:
        if value >= kept[n - 1]:
            return n
        n -= 1
    j = n
    while j > 0 and kept[j - 1] > value:
        kept[j] = kept[j - 1]
        j -= 1
    kept[j] = value
    return n + 1


@kernel(_TWO(_F, _F, _ROWS, _SPACE))
def meetings(scores, x, rows, space):  # type: ignore[no-untyped-def]
    """Find where relevant rows change rank along ``scores + step * x``, and the change of value there.

    Returns the number of such steps (in no order) and the value before the first.
    """
    # IN: scores, x, rows  OUT: space.up, down (scratch), steps, change
    offsets, relevant, relevant_offsets, unit, ratio = rows
    up, down, steps, change = space.up, space.down, space.steps, space.change
    n_steps = np.int64(0)
    value = np.int64(0)
    cut = np.int64(ratio.shape[0])
    # Behind ``cut`` others a row has no value, so no more of those it meets need to be known; sorting them
    # all is quicker where that is many.
    few = cut <= FEW
    for q in range(offsets.shape[0] - 1):
        first, end = offsets[q], offsets[q + 1]
        for t in range(relevant_offsets[q], relevant_offsets[q + 1]):
            i = relevant[t]
            n_up = np.int64(0)
            n_down = np.int64(0)
            rank = np.int64(0)
            # Rows of higher x come ahead at some step, those of lower x (negated here) fall behind.
            for j in range(first, end):
                ahead = x[j] - x[i]
                gap = scores[i] - scores[j]
                if ahead > 0.0:
                    if few:
                        n_up = keep_least(up, n_up, cut, gap / ahead)
                    else:
                        up[n_up] = gap / ahead
                        n_up += 1
                elif ahead < 0.0:
                    if few:
                        n_down = keep_least(down, n_down, cut, -gap / ahead)
                    else:
                        down[n_down] = -gap / ahead
                        n_down += 1
                else:
                    rank += gap < 0.0 or (gap == 0.0 and j < i)
            if not few:
                sort_floats(up, n_up)
                sort_floats(down, n_down)
            rank += n_down
            up[n_up] = np.inf
            a = np.int64(0)
            b = n_down - 1
            while up[a] < -FARTHEST:
                a += 1
            while b >= 0 and -down[b] < -FARTHEST:
                b -= 1
            rank += a - (n_down - 1 - b)
            was = value_at(unit[t], ratio, rank)
            value += was
            while True:
                at = up[a] if b < 0 else min(up[a], -down[b])
                if at > FARTHEST:
                    break
                while up[a] == at:
                    a += 1
                    rank += 1
                while b >= 0 and -down[b] == at:
                    b -= 1
                    rank -= 1
                now = value_at(unit[t], ratio, rank)
                n_steps = note_step(steps, change, n_steps, at, now - was)
                was = now
    return n_steps, value


@njit(inline="always")
def bin_of(bits):  # type: ignore[no-untyped-def]
    """Bin of a step, given the bits of its float: rising with the step, finest around 0."""
    # IN: bits
    size = ((bits & np.int64(0x7FFFFFFFFFFFFFFF)) >> _BIN_BITS) - np.int64(_LEAST_EXPONENT * 32)
    size = min(max(size, np.int64(0)), np.int64(_SIDE))
    return _SIDE + size if bits >= 0 else _SIDE - size


@njit(inline="always")
def wide(left, right):  # type: ignore[no-untyped-def]
    """Whether an interval is wide enough for a step inside it to be on one side for certain."""
    # IN: left, right
    if left == -np.inf or right == np.inf:
        return True
    return right - left > _NARROW * max(abs(left), abs(right))


@kernel(types.int64(_F, _I, _I, types.int64, types.int64, _SPACE))
def best_interval(step, bits, change, start, at_least, space):  # type: ignore[no-untyped-def]
    """Return the largest value of any interval between steps if it is above ``at_least``, else that.

    ``space.ends`` gets the ends of the first interval with it (infinite at either end). Steps are counted by
    bins; only bins that could hold something better are sorted.
    """
    # IN: step, bits (the same as integers), change, start (value before all steps), at_least
    # OUT: space.total, rise, low, high by bin, kept, kept_at (scratch), ends
    total, rise, low, high = space.total, space.rise, space.low, space.high
    kept, kept_at, out = space.kept, space.kept_at, space.ends
    n = step.shape[0]
    for b in range(N_BINS):
        total[b] = 0
        rise[b] = 0
        low[b] = np.inf
        high[b] = -np.inf
    for e in range(n):
        b = bin_of(bits[e])
        total[b] += change[e]
        rise[b] += max(change[e], np.int64(0))
        low[b] = min(low[b], step[e])
        high[b] = max(high[b], step[e])
    best = at_least
    value = start
    left = -np.inf
    for b in range(N_BINS):  # the intervals between bins
        if low[b] < np.inf:
            if value > best and wide(left, low[b]):
                best = value
                out[0], out[1] = left, low[b]
            value += total[b]
            left = high[b]
    if value > best:
        best = value
        out[0], out[1] = left, np.inf
    value = start
    for b in range(N_BINS):  # mark the bins that may hold more; ``total`` becomes the value before each
        held = total[b]
        total[b] = value
        if value + rise[b] <= best:
            rise[b] = 0
        value += held
    n_kept = np.int64(0)
    for e in range(n):
        if rise[bin_of(bits[e])] > 0:
            kept[n_kept] = step[e]
            kept_at[n_kept] = e
            n_kept += 1
    if n_kept == 0:
        return best
    sort_with(kept, kept_at, n_kept)
    last = np.int64(-1)
    value = np.int64(0)
    for k in range(n_kept):
        b = bin_of(bits[kept_at[k]])
        if b != last:
            value = total[b]
            last = b
        value += change[kept_at[k]]
        inside = k + 1 < n_kept and bin_of(bits[kept_at[k + 1]]) == b
        if value > best and inside and wide(kept[k], kept[k + 1]):
            best = value
            out[0], out[1] = kept[k], kept[k + 1]
    return best


class ExactSearch:
    """Line search for a measure that is a discounted sum (NDCG, DCG, precision, ...).

    Attributes
    ----------
    rows : ndarray of int64
        The rows searched: those of queries whose value can change, in the order in which ties stand.
    share : float
        What one unit of a value adds to the mean of the measure.
    pairs : ndarray of int64
        Rows each query compares along a line; 0 for a long query whose measure is cut, which compares few.
    searched : ndarray of bool
        The queries of the data that have such rows.
    """

    def __init__(self, prepared: PreparedMeasure) -> None:
        training, layout = prepared.training(), prepared.layout
        weight = prepared.weights
        worth = training.norm * weight * training.discount[0]
        self.searched = worth > 0
        able = np.repeat(self.searched, layout.stops - layout.starts)
        order: IntArray = np.arange(layout.n_rows)
        if prepared.rule != "file" and (layout.doc_ids is not None or not prepared.rule.startswith("id-")):
            order = prepared.tie_order.astype(np.int64)
        self.rows = order[able]  # a query keeps its place, whatever the order of its rows
        sizes = (layout.stops - layout.starts)[self.searched]
        gain = training.gain[self.rows]
        unit = gain * worth[layout.queries[self.rows]]
        total = float(unit[gain > 0].sum()) or 1.0
        # Rounded, so that tools which differ by a constant factor (logarithms of another base) agree.
        whole = np.rint(unit / total * 2.0**_UNIT_BITS).astype(np.int64)
        self._ratio = np.rint(training.discount / training.discount[0] * 2.0**_RATIO_BITS).astype(np.int64)
        self.share = total / (2.0 ** (_UNIT_BITS + _RATIO_BITS) * float(weight.sum()))
        self._lay_out(sizes, whole, gain > 0)

    def _lay_out(self, sizes: IntArray, unit: IntArray, relevant: BoolArray) -> None:
        """Set long queries apart; the rows of the others come first."""
        cut = len(self._ratio)
        long = (sizes >= LONG) & (sizes >= _CUT_SHARE * cut)
        order = np.argsort(np.repeat(long, sizes), kind="stable")
        self.rows, unit, relevant = self.rows[order], unit[order], relevant[order]
        bounds = np.append(0, np.cumsum(np.r_[sizes[~long], sizes[long]])).astype(np.int64)
        count = int((~long).sum())
        self.offsets = bounds[: count + 1]
        self._long = [
            LongLines(start, end, unit[start:end], self._ratio)
            for start, end in pairwise(bounds[count:].tolist())
        ]
        places = np.flatnonzero(relevant[: self.offsets[-1]])
        by_query = np.searchsorted(places, self.offsets).astype(np.int64)
        self._searched = SearchedRows(self.offsets, places, by_query, unit[places], self._ratio)
        self._longest = int(sizes[~long].max(initial=0))
        # A row has no value behind ``cut`` others, so it changes it at most so often going up and down.
        met = np.minimum(sizes[~long], 2 * cut) if cut <= FEW else sizes[~long]
        self._most = int((np.diff(by_query) * met).sum())
        self.pairs = np.zeros(len(sizes), dtype=np.int64)
        self.pairs[~long] = np.diff(by_query) * sizes[~long]

    @staticmethod
    def fits(prepared: PreparedMeasure) -> bool:
        """Whether a measure can be searched exactly."""
        form = prepared.form
        return isinstance(form, DiscountedSum) and not form.own_discount and prepared.rule != "expected"

    def value(self, scores: FloatArray) -> int:
        """Return the value of the rows' scores."""
        short = value_of(scores, self._searched)
        return int(short) + sum(query.value(scores) for query in self._long)

    def space(self) -> Space:
        """Return memory for one thread."""
        return Space.allocate(self._longest, self._most)

    def step(self, scores: FloatArray, x: FloatArray, weight: float, value: int, space: Space) -> float:
        """Return the step along ``x`` to the highest value if it is above ``value``, else 0."""
        n, start = meetings(scores, x, self._searched, space)
        found = (space.steps[:n], space.change[:n])
        if self._long:
            parts = [query.meetings(scores, x, FARTHEST) for query in self._long]
            found = (
                np.concatenate([found[0], *(part[0] for part in parts)]),
                np.concatenate([found[1], *(part[1] for part in parts)]),
            )
            start += sum(part[2] for part in parts)
        if len(space.kept) < len(found[0]):
            n = len(found[0])
            space = space._replace(kept=np.empty(n), kept_at=np.empty(n, dtype=np.int64))
        best = best_interval(found[0], found[0].view(np.int64), found[1], start, value, space)
        return middle(float(space.ends[0]), float(space.ends[1])) if best > value else 0.0


def middle(left: float, right: float) -> float:
    """Return a step well inside an interval, one end of which may be infinite.

    Examples
    --------
    >>> import math
    >>> from mcrank.training.line_search import middle
    >>> middle(1.0, 2.0), middle(-math.inf, 0.5), middle(8.0, math.inf)
    (1.5, -0.5, 16.0)
    """
    if math.isinf(left):
        return right - max(1.0, abs(right)) if math.isfinite(right) else 0.0
    return left + max(1.0, abs(left)) if math.isinf(right) else 0.5 * (left + right)
