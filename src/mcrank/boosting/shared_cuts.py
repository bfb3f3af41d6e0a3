"""Where features are cut whose rows lie in several places: where they would be if all rows lay in one.

Nothing is estimated. A feature with few values at every place is known to everybody after one message. Of
others, adaptive bins are laid in lockstep: a bin ends after its length, and the next begins at the smallest
value beyond that any place has, so that each bin of all features costs one message of a number per feature.
What the values of one place need is a bound of what all need, so the first length tried is nearly always the
right one. Quantile bins want the rows of every value: each feature has an owner, to whom the others send
theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, BoolArray, FloatArray, IntArray
from mcrank.boosting.cuts import (
    REFINEMENTS,
    Distinct,
    ValueBins,
    cover,
    first_length,
    fitting_power,
    merged,
    value_bins,
)
from mcrank.kernels import kernel
from mcrank.sums import Sums


def shared_bins(columns: Sequence[Distinct], max_bins: int, binning: str, sums: Sums) -> list[ValueBins]:
    """Cut features, of which each place has some rows, into at most ``max_bins`` bins.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.boosting.cuts import Distinct
    >>> from mcrank.boosting.shared_cuts import shared_bins
    >>> from mcrank.sums import ALONE
    >>> column = Distinct(np.array([0.0, 0.1, 5.0], dtype=np.float32), np.array([1, 1, 1]), False)
    >>> [low.round(1).tolist() for low, _, _ in shared_bins([column], 2, "adaptive", ALONE)]
    [[0.0, 5.0]]
    """
    own = np.array([(len(column.values), column.missing) for column in columns], dtype=np.int64)
    facts = np.stack([part.reshape(own.shape) for part in sums.gather(own.reshape(-1))])
    counts, missing = facts[:, :, 0], np.asarray(facts[:, :, 1].any(axis=0))
    room = np.asarray(max_bins - missing.astype(np.int64))
    many = (counts > room).any(axis=0)
    found: list[ValueBins] = [(np.empty(0, np.float32), np.empty(0, np.float32), False)] * len(columns)
    few = np.flatnonzero(~many)
    for f, whole in zip(few.tolist(), _everyones(columns, few, counts, sums), strict=True):
        found[f] = value_bins(*whole, max_bins, binning)
    large = np.flatnonzero(many)
    if binning == "quantile":
        bounds = _by_owners(columns, large, counts, room, sums)
    else:
        bounds = _in_lockstep(
            [columns[f].values for f in large.tolist()], room[large], "refined" in binning, sums
        )
    for f, (low, high) in zip(large.tolist(), bounds, strict=True):
        found[f] = (low, high, bool(missing[f]))
    return [(low, high, bool(has)) for (low, high, _), has in zip(found, missing, strict=True)]


def _everyones(columns: Sequence[Distinct], which: IntArray, counts: IntArray, sums: Sums) -> list[Distinct]:
    """Return some features as all places have them together."""
    if len(which) == 0:
        return []
    values = sums.gather(np.concatenate([columns[f].values for f in which]))
    rows = sums.gather(np.concatenate([columns[f].counts for f in which]))
    missing = sums.add(np.array([columns[f].missing for f in which], dtype=np.int64))
    return [
        whole._replace(missing=bool(some))
        for whole, some in zip(_joined(values, rows, counts[:, which]), missing, strict=True)
    ]


def _joined(values: Sequence[Array], rows: Sequence[IntArray], counts: IntArray) -> list[Distinct]:
    """Put together features that places sent one behind the other; ``counts`` is places x features."""
    ends = np.cumsum(counts, axis=1)
    return [
        merged(
            [
                Distinct(v[end[f] - n[f] : end[f]], r[end[f] - n[f] : end[f]], False)
                for v, r, n, end in zip(values, rows, counts, ends, strict=True)
            ]
        )
        for f in range(counts.shape[1])
    ]


_Bounds = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]  # lowest and highest value of each bin


def _by_owners(
    columns: Sequence[Distinct], which: IntArray, counts: IntArray, room: IntArray, sums: Sums
) -> list[_Bounds]:
    """Cut features by the rows of their values: each at the place that owns it."""
    if len(which) == 0:
        return []
    lots = [which[rank :: sums.size] for rank in range(sums.size)]
    empty = Distinct(np.empty(0, np.float32), np.empty(0, np.int64), False)
    sent = [[columns[f] for f in lot] or [empty] for lot in lots]
    values = sums.exchange([np.concatenate([column.values for column in lot]) for lot in sent])
    rows = sums.exchange([np.concatenate([column.counts for column in lot]) for lot in sent])
    own = lots[sums.rank]
    cut = [
        value_bins(whole.values, whole.counts, False, int(room[f]), "quantile")
        for f, whole in zip(own, _joined(values, rows, counts[:, own]), strict=True)
    ]
    sizes = sums.gather(np.array([len(low) for low, _, _ in cut], dtype=np.int64))
    none = [np.empty(0, np.float32)]
    lows = sums.gather(np.concatenate([low for low, _, _ in cut] or none))
    highs = sums.gather(np.concatenate([high for _, high, _ in cut] or none))
    bounds: dict[int, _Bounds] = {}
    for lot, size, low, high in zip(lots, sizes, lows, highs, strict=True):
        ends = np.cumsum(size)
        for f, n, end in zip(lot.tolist(), size.tolist(), ends.tolist(), strict=True):
            bounds[f] = low[end - n : end], high[end - n : end]
    return [bounds[f] for f in which.tolist()]


def _in_lockstep(
    values: Sequence[npt.NDArray[np.float32]], room: IntArray, refine: bool, sums: Sums
) -> list[_Bounds]:
    """Lay adaptive bins over features of many values."""
    if len(values) == 0:
        return []
    lowest = sums.least(np.array([v[0] if len(v) else np.inf for v in values], dtype=np.float64))
    highest = -sums.least(np.array([-v[-1] if len(v) else np.inf for v in values], dtype=np.float64))
    span = highest - lowest
    unit = np.array([first_length(s) for s in span.tolist()])
    own = [
        fitting_power(v.astype(np.float64), s, u, np.empty(r, dtype=np.int64))
        for v, s, u, r in zip(values, span.tolist(), unit.tolist(), room.tolist(), strict=True)
    ]
    # What the values of one place need, all need at least.
    power = -sums.least(-np.array(own, dtype=np.float64))
    ground = _Ground(values, lowest, room, sums)
    starts = ground.cover(np.ldexp(unit, power.astype(np.int64)), np.ones(len(values), dtype=bool))
    while missed := [f for f, found in enumerate(starts) if found is None]:
        tried = np.zeros(len(values), dtype=bool)
        tried[missed] = True
        power[tried] += 1
        again = ground.cover(np.ldexp(unit, power.astype(np.int64)), tried)
        starts = [again[f] if tried[f] else starts[f] for f in range(len(values))]
    if refine:
        starts = _refined(ground, values, np.ldexp(unit, power.astype(np.int64)), room, sums)
    laid = [found for found in starts if found is not None]
    return ground.bounds(laid)


def _refined(
    ground: _Ground, values: Sequence[npt.NDArray[np.float32]], long: FloatArray, room: IntArray, sums: Sums
) -> list[FloatArray | None]:
    """Bisect lengths to the smallest that fit; where one place alone needs too many bins, none are laid."""
    short, doubles = long / 2, [v.astype(np.float64) for v in values]
    scratch = [np.empty(r, dtype=np.int64) for r in room.tolist()]
    for _ in range(REFINEMENTS):
        length = (short + long) / 2
        fails = [cover(*each) < 0 for each in zip(doubles, length.tolist(), scratch, strict=True)]
        hopeful = sums.add(np.array(fails, dtype=np.int64)) == 0
        fits = np.array([found is not None for found in ground.cover(length, hopeful)]) & hopeful
        long, short = np.where(fits, length, long), np.where(fits, short, length)
    return ground.cover(long, np.ones(len(values), dtype=bool))


class _Ground:
    """Values of some features at this place, over which everybody lays bins."""

    def __init__(
        self, values: Sequence[npt.NDArray[np.float32]], lowest: FloatArray, room: IntArray, sums: Sums
    ) -> None:
        self._values, self._lowest, self._room, self._sums = values, lowest, room, sums
        self._flat = np.concatenate(values)
        self._offsets = np.r_[0, np.cumsum([len(v) for v in values])].astype(np.int64)

    def cover(self, lengths: FloatArray, active: BoolArray) -> list[FloatArray | None]:
        """Where bins of these lengths start, for features that are ``active``; None: more than its room."""
        starts = np.full((len(lengths), int(self._room.max())), np.inf)
        laid, fits = np.zeros(len(lengths), dtype=np.int64), np.ones(len(lengths), dtype=bool)
        active = active.copy()
        at, following = self._lowest.copy(), np.empty(len(lengths))
        while active.any():
            fits &= ~(active & (laid == self._room))
            active &= fits
            starts[active, laid[active]] = at[active]
            laid += active
            first_beyond(self._flat, self._offsets, np.where(active, at + lengths, np.inf), following)
            at = self._sums.least(following)
            active &= np.isfinite(at)
        return [row[:n] if fit else None for row, n, fit in zip(starts, laid, fits, strict=True)]

    def bounds(self, starts: Sequence[FloatArray]) -> list[_Bounds]:
        """Lowest and highest value of every bin, of all places."""
        ends = []
        for own, first in zip(self._values, starts, strict=True):
            below = np.r_[np.searchsorted(own, first[1:].astype(np.float32)), len(own)] - 1
            padded = np.r_[own, np.float32(-np.inf)]  # the last: where nothing is below
            ends.append(padded[below])
        flat = -self._sums.least(-np.concatenate(ends).astype(np.float64))
        cuts = np.cumsum([len(first) for first in starts])[:-1]
        return [
            (first.astype(np.float32), high.astype(np.float32))
            for first, high in zip(starts, np.split(flat, cuts), strict=True)
        ]


@kernel("void(float32[::1], int64[::1], float64[::1], float64[::1])")
def first_beyond(values, offsets, ends, out):  # type: ignore[no-untyped-def]
    """First value of each feature (rising) beyond its end; infinity where there is none."""
    # IN: values, offsets, ends  OUT: out
    for f in range(len(ends)):
        low, high = offsets[f], offsets[f + 1]
        while low < high:
            middle = (low + high) // 2
            if np.float64(values[middle]) <= ends[f]:
                low = middle + 1
            else:
                high = middle
        out[f] = np.float64(values[low]) if low < offsets[f + 1] else np.inf
