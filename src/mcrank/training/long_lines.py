"""Meeting points of a long query along a line, for a measure that looks at the first ranks only.

Among n rows there are n²/2 meeting points, but few of them change the first k ranks. Of rows with equal x
only the first k count, ever. Between two steps a and b a row counts only if the higher of its scores at both
ends reaches the k-th highest of the lower ones; where that leaves few rows they are compared one by one, and
elsewhere the interval is cut in two. The steps found, and the changes of value there, are those that
`mcrank.training.line_search.meetings` finds by comparing every relevant row with all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, types

from mcrank.arrays import FloatArray, IntArray
from mcrank.kernels import kernel

ENOUGH = 64  # rows compared one by one, beside twice the ranks that count
_SLACK = 2.0**-46  # share of a score that rounding may move it
_NARROW = 2.0**-40  # relative width below which nothing is decided inside an interval
_LEAST = 2.0**-60
_DEEPEST = 256  # intervals waiting


class Line(NamedTuple):
    """Rows of a query and the direction their scores move in."""

    scores: FloatArray
    x: FloatArray
    unit: IntArray  # value of each row at the first rank; 0: not relevant
    ratio: IntArray  # share of that by rank


class LineSpace(NamedTuple):
    """Memory for the meeting points of one line: scratch, and the steps found with their changes of value."""

    low: FloatArray
    pool: IntArray
    ends: FloatArray
    lists: IntArray
    met: FloatArray
    sign: IntArray
    step: FloatArray
    change: IntArray


_F, _I = types.float64[::1], types.int64[::1]
_TWO = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
_LINE = types.NamedTuple((_F, _F, _I, _I), Line)  # type: ignore[no-untyped-call]
_PAIRS = (types.float64[:, ::1], types.int64[:, ::1])
_SPACE = types.NamedTuple((_F, _I, *_PAIRS, _F, _I, _F, _I), LineSpace)  # type: ignore[no-untyped-call]


@njit(inline="always")
def kth_highest(value, n, k):  # type: ignore[no-untyped-def]
    """The k-th highest (from 1) of the first ``n`` numbers, which lose their order (Hoare's selection)."""
    # IN and OUT: value  IN: n, k (at most n)
    low, high = np.int64(0), np.int64(n - 1)
    while low < high:
        pivot = value[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while value[i] > pivot:
                i += 1
            while value[j] < pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    return value[k - 1]


@njit(inline="always")
def cut_point(a, b):  # type: ignore[no-untyped-def]
    """Where to cut an interval: at 0, by sizes where its ends differ much in size, else in the middle."""
    # IN: a, b
    if a < 0.0 < b:
        return 0.0
    near, far = min(abs(a), abs(b)), max(abs(a), abs(b))
    if far <= 2.0 * near:
        return 0.5 * (a + b)
    size = np.sqrt(max(near, _LEAST * 0.25)) * np.sqrt(far)
    return size if b > 0.0 else -size


@njit(inline="always")
def reaching(line, rows, n, a, b, k, low, out):  # type: ignore[no-untyped-def]
    """Keep the rows that may be among the first ``k`` anywhere between ``a`` and ``b``; return how many."""
    # IN: line, rows, n, a, b, k  OUT: low (scratch), out
    scores, x = line.scores, line.x
    middle = 0.5 * a + 0.5 * b
    best = rows[0]
    for r in range(1, n):
        j = rows[r]
        if scores[j] + middle * x[j] > scores[best] + middle * x[best]:
            best = j
    # Measured from one row, so that rows of equal x differ by their scores however far the step.
    far = max(abs(a), abs(b))
    for r in range(n):
        j = rows[r]
        score, slope = scores[j] - scores[best], x[j] - x[best]
        off = _SLACK * (abs(score) + abs(slope) * far)
        low[r] = min(score + slope * a, score + slope * b) - off
    bar = kth_highest(low, n, k)
    kept = 0
    for r in range(n):
        j = rows[r]
        score, slope = scores[j] - scores[best], x[j] - x[best]
        off = _SLACK * (abs(score) + abs(slope) * far)
        if max(score + slope * a, score + slope * b) + off >= bar:
            out[kept] = j
            kept += 1
    return kept


@njit(nogil=True)
def sort_with(key, moved, n):  # type: ignore[no-untyped-def]
    """Sort the first ``n`` steps, moving a second array along (Shell's sort: they are few)."""
    # IN and OUT: key, moved  IN: n
    gap = 1
    while gap * 9 < n * 4:
        gap = (gap * 9 + 3) // 4
    while gap > 0:
        for i in range(gap, n):
            held, held_moved = key[i], moved[i]
            j = i
            while j >= gap and key[j - gap] > held:
                key[j], moved[j] = key[j - gap], moved[j - gap]
                j -= gap
            key[j], moved[j] = held, held_moved
        gap = gap * 4 // 9


@njit(inline="always")
def value_at(unit, ratio, rank):  # type: ignore[no-untyped-def]
    """Value of a row at a rank: nothing behind those that count."""
    # IN: unit, ratio, rank
    return unit * ratio[rank] if rank < ratio.shape[0] else np.int64(0)


@njit(inline="always")
def note_step(steps, change, n, at, by):  # type: ignore[no-untyped-def]
    """Note that the value changes at a step, if it does; return how many steps there are."""
    # IN: n, at, by  OUT: steps, change
    if by != 0:
        steps[n] = at
        change[n] = by
        n += 1
    return n


@njit(inline="always")
def compare_rows(line, rows, n, a, b, n_steps, space):  # type: ignore[no-untyped-def]
    """Steps from ``a`` (not included) to ``b`` where a relevant row changes rank among ``rows``.

    Returns the number of steps so far, and the value just behind ``a`` and at the end.
    """
    # IN: line, rows, n, a, b, n_steps  OUT: space.met, sign, step, change
    scores, x, unit, ratio = line
    met, sign, step, change = space.met, space.sign, space.step, space.change
    start = np.int64(0)
    value = np.int64(0)
    for r in range(n):
        i = rows[r]
        if unit[i] == 0:
            continue
        rank = np.int64(0)
        n_met = np.int64(0)
        for p in range(n):
            j = rows[p]
            ahead = x[j] - x[i]
            gap = scores[i] - scores[j]
            if ahead == 0.0:
                rank += gap < 0.0 or (gap == 0.0 and j < i)
                continue
            at = gap / ahead
            rank += (at <= a) == (ahead > 0.0)
            if a < at <= b:
                met[n_met] = at
                sign[n_met] = 1 if ahead > 0.0 else -1
                n_met += 1
        sort_with(met, sign, n_met)
        was = value_at(unit[i], ratio, rank)
        start += was
        p = 0
        while p < n_met:
            at = met[p]
            while p < n_met and met[p] == at:
                rank += sign[p]
                p += 1
            now = value_at(unit[i], ratio, rank)
            n_steps = note_step(step, change, n_steps, at, now - was)
            was = now
        value += was
    return n_steps, start, value


@kernel(_TWO(_LINE, _I, types.float64, _SPACE))
def long_meetings(line, first, farthest, space):  # type: ignore[no-untyped-def]
    """Find where the value of one query changes along ``scores + step * x``, and by how much.

    Returns the number of steps (-1 where there is no room for them) and the value before the first.
    """
    # IN: line, first (rows that may count, rising), farthest  OUT: space
    pool, ends, lists, step, change = space.pool, space.ends, space.lists, space.step, space.change
    k = np.int64(min(line.ratio.shape[0], first.shape[0]))
    for i in range(first.shape[0]):
        pool[i] = first[i]
    ends[0, 0], ends[0, 1] = np.nextafter(-farthest, -np.inf), farthest
    lists[0, 0], lists[0, 1] = 0, first.shape[0]
    depth = 1
    n_steps = np.int64(0)
    before = np.int64(0)
    value = np.int64(0)
    began = False
    while depth > 0:
        depth -= 1
        a, b = ends[depth, 0], ends[depth, 1]
        at, n = lists[depth, 0], lists[depth, 1]
        top = at + n
        far = max(abs(a), abs(b))
        # What happens in a narrow interval happens, to all digits that count, where the next one begins.
        narrow = b - a <= _NARROW * far or far <= _LEAST or depth + 2 > ends.shape[0]
        if narrow and began:
            continue
        kept = reaching(line, pool[at:], n, a, b, k, space.low, pool[top:])
        if kept <= 0.75 * n:
            at, n = top, kept
        if kept <= ENOUGH + 2 * k or narrow:
            if not narrow and n_steps + 1 + kept * kept > step.shape[0]:
                return np.int64(-1), before
            until = a if narrow else b
            here, start, end = compare_rows(line, pool[top:], kept, a, until, n_steps + 1, space)
            if began and start != value:
                step[n_steps] = a
                change[n_steps] = start - value
            elif here > n_steps + 1:
                # The place for a change at ``a`` is not needed: the last step takes it.
                here -= 1
                step[n_steps] = step[here]
                change[n_steps] = change[here]
            else:
                here -= 1
            if not began:
                before = start
                began = True
            n_steps, value = here, end
            continue
        middle = cut_point(a, b)
        ends[depth, 0], ends[depth, 1] = middle, b
        ends[depth + 1, 0], ends[depth + 1, 1] = a, middle
        for d in range(depth, depth + 2):
            lists[d, 0], lists[d, 1] = at, n
        depth += 2
    return n_steps, before


class LongLines:
    """Meeting points of one query: rows ``start`` up to ``end`` of those searched.

    Parameters
    ----------
    start, end : int
        Its rows, in the order in which ties stand.
    unit : ndarray of int64
        Value of each of its rows at the first rank, 0 for rows that are not relevant.
    ratio : ndarray of int64
        Share of that at each rank.
    """

    def __init__(self, start: int, end: int, unit: IntArray, ratio: IntArray) -> None:
        self._rows, self._unit, self._ratio = slice(start, end), unit, ratio

    def value(self, scores: FloatArray) -> int:
        """Return the value of the query; equal scores stand in row order."""
        order = np.argsort(-scores[self._rows], kind="stable")[: len(self._ratio)]
        return int((self._unit[order] * self._ratio[: len(order)]).sum())

    def meetings(
        self, scores: FloatArray, x: FloatArray, farthest: float
    ) -> tuple[FloatArray, IntArray, int]:
        """Return steps, the change of value at each, and the value before the first; arrays have all rows."""
        line = Line(scores[self._rows], x[self._rows], self._unit, self._ratio)
        first = _first_of_equals(line.scores, line.x, len(self._ratio))
        n, most = len(first), ENOUGH + 2 * min(len(self._ratio), len(first))
        room = 8 * n + 2 * most * most
        low, met, sign = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        # A list of rows is at most three quarters of the one it comes from: five times n holds all that wait.
        pool, lists = np.empty(5 * n + 1, dtype=np.int64), np.empty((_DEEPEST, 2), dtype=np.int64)
        while True:
            step, change = np.empty(room), np.empty(room, dtype=np.int64)
            space = LineSpace(low, pool, np.empty((_DEEPEST, 2)), lists, met, sign, step, change)
            count, before = long_meetings(line, first, farthest, space)
            if count >= 0:
                return step[:count].copy(), change[:count].copy(), int(before)
            room *= 2


def _first_of_equals(scores: FloatArray, x: FloatArray, k: int) -> IntArray:
    """Rows, rising, that are among the first ``k`` of those with equal x, whatever the step."""
    order = np.lexsort((-scores, x))  # stable: equal scores stay in row order
    new = np.append(True, x[order][1:] != x[order][:-1])
    starts = np.flatnonzero(new)
    place = np.arange(len(x)) - starts[np.cumsum(new) - 1]
    return np.sort(order[place < k])
