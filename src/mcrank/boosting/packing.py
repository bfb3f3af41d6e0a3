"""What a row adds to a counter: gradient, perhaps a second lane, and the count of one row, as integers.

A gradient has 24 bits, so up to half a million rows a sum and a count share one 64-bit counter: a row adds
``(q << count_bits) + 1``. A second lane that is given (row weights, curvatures of any size) has a counter of
its own beside the first. Where there are more rows, counts get a last lane of their own, and rows are counted
in chunks: the counters of a chunk are shared as before, and are then *spread* over the lanes.

The curvature p(1 - p) of ``split="newton"`` follows from the gradient and is below 1, so gradient, curvature
and count of a row fit one counter, a *triple*, as long as few rows are added: chunks of some thousand rows
are counted as triples and then spread. One add instead of two; for half a million rows it costs half as much
as two lanes (docs/engineering/engine.md). The gradient is rounded to 13 bits for it; leaf values keep all.

Curvatures that are given, of lambda gradients, fit a triple as well, in 11 bits of the largest. Most are much
smaller, and to the nearest they would vanish together: so gradient and curvature are rounded up or down at
random, up as often as what is cut off says, and sums come out right. The chance is a hash of the two: the
same row is rounded alike in every node, wherever it lies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import int32, int64, njit, uint32, uint64

from mcrank.kernels import kernel, step
from mcrank.losses.quantize import GRADIENT_BITS, LANE_BITS

# Bits of a count that shares a counter with a sum: what 62 leave when the sum needs as many beyond its terms.
_PAIR_BITS = (62 - GRADIENT_BITS) // 2
_DERIVED_BITS = 13  # of a gradient that shares a triple
_TRIPLE_BITS = 13  # of the count there: chunks of 7,168 rows; spreading costs a tenth of counting
_DERIVED_PAIR_BITS = (62 - _DERIVED_BITS) // 2
# Of an entry's lower half, the bits of a rounded lane: one more than it has, as the largest is 1 itself.
_LANE_ROOM = _DERIVED_BITS - 1
_LANE_MASK = (1 << _LANE_ROOM) - 1


class Packing(NamedTuple):
    """Layout of counters; a field that does not apply is 0.

    Attributes
    ----------
    lanes : int
        64-bit counters per bin of a histogram: sums of gradients, perhaps of a second lane, perhaps counts.
    second : int
        1 where the second lane is a sum of its own (what gains divide by); else they divide by counts.
    count_bits : int
        Bits of a count in the first lane; 0 where counts have the last lane.
    drop : int
        Bits a gradient q loses when the second lane is derived from it.
    bits : int
        Bits it has then: r = q >> drop is 2**bits where the gradient is 1, and so is the curvature's unit.
    chunk_bits : int
        Bits of a count in the counters of a chunk; 0 where rows are counted straight into the histogram.
    lane_drop : int
        Bits a given second lane loses where it shares a triple; its entries hold both, rounded
        (`round_entries`).
    top : int
        Where the gradient begins in a counter of all three sums (`slim`); 0 in others.
    """

    lanes: int
    second: int
    count_bits: int
    drop: int
    bits: int
    chunk_bits: int
    lane_drop: int = 0
    top: int = 0

    @classmethod
    def of(
        cls,
        rows: int,
        *,
        given: bool = False,
        derived: bool = False,
        wide: bool = False,
        rounded: bool = False,
    ) -> Packing:
        """Return the layout for so many rows, with a second lane that is given, derived or absent.

        With ``rounded`` a lane that is given may be rounded to share a triple.

        Examples
        --------
        >>> from mcrank.boosting.packing import Packing
        >>> Packing.of(500_000)
        Packing(lanes=1, second=0, count_bits=19, drop=0, bits=0, chunk_bits=0, lane_drop=0, top=0)
        >>> Packing.of(5_000_000)
        Packing(lanes=2, second=0, count_bits=0, drop=0, bits=0, chunk_bits=19, lane_drop=0, top=0)
        >>> Packing.of(500_000, derived=True)
        Packing(lanes=2, second=1, count_bits=24, drop=11, bits=13, chunk_bits=13, lane_drop=0, top=0)
        """
        lane_drop = LANE_BITS - (_DERIVED_BITS - 2) if given and rounded and not wide else 0
        derived = derived or lane_drop > 0
        shared = _DERIVED_PAIR_BITS if derived else _PAIR_BITS
        apart = rows >= 1 << shared
        second = given or derived
        chunk = 0 if wide else _TRIPLE_BITS if derived else _PAIR_BITS if apart else 0
        bits = _DERIVED_BITS if derived else 0
        drop = GRADIENT_BITS - bits if derived else 0
        return cls(1 + second + apart, int(second), 0 if apart else shared, drop, bits, chunk, lane_drop)

    @property
    def chunk(self) -> int:
        """Rows that counters of a chunk may count.

        An eighth below the bits of a triple's count, as rounding can make gradients larger than 1.
        """
        return 7 << self.chunk_bits >> 3 if self.bits else (1 << self.chunk_bits) - 1

    @property
    def pack_lanes(self) -> int:
        """64-bit numbers per row that are added to counters."""
        if self.chunk_bits:
            return 1 if self.bits else 1 + self.second
        return self.lanes

    def gradient_unit(self, unit: float) -> float:
        """Unit of the sums of gradients in a histogram, for that of the gradients."""
        return 2.0**-self.bits if self.bits else unit

    def mass_unit(self, lane_unit: float) -> float:
        """Unit of what gains divide by, for that of a given lane."""
        if self.bits:
            return 2.0**-self.bits
        return lane_unit if self.second else 1.0

    def gain_unit(self, unit: float, lane_unit: float) -> float:
        """Factor from an integer gain to the loss's own scale, for the units of gradient and given lane."""
        if self.lane_drop:
            return unit * unit / lane_unit * 2.0 ** (2 * self.drop - self.lane_drop)
        if self.bits:
            return 2.0**-self.bits
        return unit * unit / (lane_unit if self.second else 1.0)


@njit(inline="always")
def chunk_rows(packing):  # type: ignore[no-untyped-def]
    """`Packing.chunk`, for kernels."""
    if packing.bits > 0:
        return 7 << packing.chunk_bits >> 3
    return (1 << packing.chunk_bits) - 1


@njit(inline="always")
def pack_lanes(packing):  # type: ignore[no-untyped-def]
    """`Packing.pack_lanes`, for kernels."""
    if packing.chunk_bits > 0:
        return 1 if packing.bits > 0 else 1 + packing.second
    return packing.lanes


@njit(inline="always")
def narrow(q, packing):  # type: ignore[no-untyped-def]
    """Gradient q in fewer bits, and its curvature |r|(1 - |r|) = p(1 - p), whichever side of the class."""
    one = int32(1) << int32(packing.bits)
    r = (q + (int32(1) << int32(packing.drop) >> int32(1))) >> int32(packing.drop)
    size = abs(r)
    rest = max(int32(one - size), int32(0))  # a balancing gradient may round to more than 1
    # Unsigned halves of 64 bits: the product and the shift run on vectors.
    h = uint64(uint32(size)) * uint64(uint32(rest)) + uint64(uint32(one >> int32(1)))
    return int64(r), int64(h >> uint64(packing.bits))


@kernel()
def round_entries(entries, begin, end, packing, weights):  # type: ignore[no-untyped-def]
    """Put gradients and given lane, both rounded, in place of the gradients; where they share a triple."""
    # IN: begin, end, packing, weights  OUT: entries
    if packing.lane_drop == 0:
        return
    for i in range(begin, end):
        row = uint64(entries[i]) >> uint64(32)
        both = _rounded(int64(int32(entries[i])), weights[row], packing)
        entries[i] = int64((row << uint64(32)) | (uint64(both) & uint64(0xFFFFFFFF)))


@step()
def round_rows(gradients, begin, end, packing, weights, rounded):  # type: ignore[no-untyped-def]
    """What `round_entries` puts into entries of the rows from ``begin`` to ``end``."""
    # IN: gradients, begin, end, packing, weights  OUT: rounded
    for i in range(uint64(begin), uint64(end)):
        rounded[i] = int32(_rounded(int64(gradients[i]), weights[i], packing))


@njit(inline="always")
def mix(key):  # type: ignore[no-untyped-def]
    """Finaliser of splitmix64: every bit of the key reaches every bit of the result."""
    key = (key ^ (key >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> uint64(27))) * uint64(0x94D049BB133111EB)
    return key ^ (key >> uint64(31))


@njit(inline="always")
def _rounded(q, w, packing):  # type: ignore[no-untyped-def]
    """A gradient and its lane, both rounded at random, in one number."""
    drop, lane_drop = uint64(packing.drop), uint64(packing.lane_drop)
    chance = mix((uint64(q) << uint64(LANE_BITS + 1)) ^ uint64(w))
    r = (q + int64(chance & ((uint64(1) << drop) - uint64(1)))) >> int64(drop)
    h = (w + int64(chance >> (uint64(64) - lane_drop))) >> int64(lane_drop)
    return (r << int64(_LANE_ROOM)) | h


@kernel()
def fill_packs(entries, begin, end, packing, weights, packs):  # type: ignore[no-untyped-def]
    """What every entry adds to counters: one number, or one for each lane, with ``weights[row]`` if given."""
    # IN: entries, begin, end, packing, weights  OUT: packs
    lanes = packing.lanes
    first, n = uint64(begin), uint64(end - begin)  # unsigned: loops of one lane run on vectors
    if packing.bits > 0 and (packing.chunk_bits > 0 or packing.top > 0):
        if packing.lane_drop > 0:
            for i in range(n):
                both = int64(int32(entries[first + i]))
                packs[i] = triple(both >> int64(_LANE_ROOM), both & int64(_LANE_MASK), packing)
        else:
            for i in range(n):
                r, h = narrow(int32(entries[first + i]), packing)
                packs[i] = triple(r, h, packing)
    elif packing.chunk_bits == 0 and packing.count_bits == 0:
        for i in range(begin, end):
            at = lanes * (i - begin)
            packs[at] = int64(int32(entries[i]))
            if packing.bits > 0:
                packs[at], packs[at + 1] = narrow(int32(entries[i]), packing)
            elif packing.second:
                packs[at + 1] = weights[uint64(entries[i]) >> uint64(32)]
            packs[at + lanes - 1] = 1
    elif packing.bits > 0:
        for i in range(begin, end):
            r, h = narrow(int32(entries[i]), packing)
            packs[2 * (i - begin)] = (r << packing.count_bits) + int64(1)
            packs[2 * (i - begin) + 1] = h
    else:
        bits = packing.count_bits if packing.count_bits > 0 else packing.chunk_bits
        if packing.second:
            for i in range(begin, end):
                packs[2 * (i - begin)] = (int64(int32(entries[i])) << bits) + int64(1)
                packs[2 * (i - begin) + 1] = weights[uint64(entries[i]) >> uint64(32)]
        else:
            for i in range(n):
                packs[i] = (int64(int32(entries[first + i])) << bits) + int64(1)


@njit(inline="always")
def triple(r, h, packing):  # type: ignore[no-untyped-def]
    """Count in the low bits, curvature above it, gradient on top with the sign."""
    h_at, r_at, _, _ = places(packing)
    return (r << r_at) + (h << h_at) + int64(1)


@njit(inline="always")
def places(packing):  # type: ignore[no-untyped-def]
    """Where curvature and gradient begin in a triple; masks of its count, and of a curvature moved down."""
    if packing.top > 0:
        h_at, r_at = int64(packing.count_bits), int64(packing.top)
    else:
        h_at, r_at = int64(packing.chunk_bits), int64(2 * packing.chunk_bits + packing.bits - 2)
    return h_at, r_at, (int64(1) << h_at) - int64(1), (int64(1) << (r_at - h_at)) - int64(1)


@njit(inline="always")
def slim(packing):  # type: ignore[no-untyped-def]
    """The layout of histograms whose counters are triples: of nodes with no more rows than a chunk."""
    h_at, r_at, _, _ = places(packing)
    one: Any = int64(1)
    return Packing(one, packing.second, h_at, packing.drop, packing.bits, one - one, packing.lane_drop, r_at)


@step()
def spread(counters, packing, add, hist):  # type: ignore[no-untyped-def]
    """Write the counters of a chunk, or add them, to the lanes of a histogram, and zero them."""
    # IN: packing, add  OUT: counters, hist
    if packing.bits > 0 and packing.count_bits > 0:
        _spread_triples(counters, packing, add, hist)
        return
    if not add:
        hist[: len(counters) // (1 + (packing.second if packing.bits == 0 else 0)) * packing.lanes] = 0
    h_at, r_at, counts, curvatures = places(packing)
    lanes = packing.lanes
    if packing.bits > 0:
        for i in range(len(counters)):
            t = counters[i]
            hist[3 * i] += t >> r_at
            hist[3 * i + 1] += (t >> h_at) & curvatures
            hist[3 * i + 2] += t & counts
    elif packing.second:
        for i in range(len(counters) // 2):
            t = counters[2 * i]
            hist[3 * i] += t >> h_at
            hist[3 * i + 1] += counters[2 * i + 1]
            hist[3 * i + 2] += t & counts
    else:
        for i in range(len(counters)):
            t = counters[i]
            hist[lanes * i] += t >> h_at
            hist[lanes * i + 1] += t & counts
    counters[:] = 0


@njit(inline="always")
def _spread_triples(triples, packing, add, hist):  # type: ignore[no-untyped-def]
    """`spread` for two lanes, the first with the count: of all cases the one that runs most often."""
    h_at, r_at, counts, curvatures = places(packing)
    if add:
        for i in range(len(triples)):
            t = triples[i]
            hist[2 * i] += ((t >> r_at) << packing.count_bits) + (t & counts)
            hist[2 * i + 1] += (t >> h_at) & curvatures
            triples[i] = 0
    else:
        for i in range(len(triples)):
            t = triples[i]
            hist[2 * i] = ((t >> r_at) << packing.count_bits) + (t & counts)
            hist[2 * i + 1] = (t >> h_at) & curvatures
            triples[i] = 0


@njit(inline="always")
def counted(hist, at, packing):  # type: ignore[no-untyped-def]
    """Rows in a bin; ``at`` is the place of its first lane."""
    if packing.count_bits > 0:
        return hist[at] & ((int64(1) << packing.count_bits) - int64(1))
    return hist[at + packing.lanes - 1]


@njit(inline="always")
def bin_sums(hist, at, packing):  # type: ignore[no-untyped-def]
    """Sum of gradients, of the second lane, and number of rows of a bin; ``at`` is its first lane's place."""
    if packing.top > 0:
        h_at, word = packing.count_bits, hist[at]
        curvatures = (int64(1) << (packing.top - h_at)) - int64(1)
        return word >> packing.top, (word >> h_at) & curvatures, word & ((int64(1) << h_at) - int64(1))
    second = hist[at + 1] if packing.second else int64(0)
    if packing.count_bits > 0:
        mask = (int64(1) << packing.count_bits) - int64(1)
        return hist[at] >> packing.count_bits, second, hist[at] & mask
    return hist[at], second, hist[at + packing.lanes - 1]
