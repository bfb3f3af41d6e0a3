"""What a row adds to a counter: gradient, perhaps a second lane, and the count of one row, as integers.

With one lane a counter takes ``(q << count_bits) + 1``. A second lane that is given (row weights, curvatures
of any size) has a counter of its own beside the first.

The curvature p(1 - p) of ``split="newton"`` follows from the gradient and is below 1, so gradient, curvature
and count of a row fit one counter, a *triple*, as long as few rows are added: chunks of some thousand rows
are counted as triples and then spread over the two lanes. One add instead of two; for half a million rows
it costs half as much as two lanes (docs/engine.md). The gradient is rounded to fewer bits for it, 13 for all
but small data; leaf values keep all bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int32, int64, njit, uint32, uint64

from mcrank.kernels import kernel, step
from mcrank.losses.quantize import count_bits, gradient_bits

_MOST_CHUNK_BITS = 13  # chunks of 7,168 rows: spreading costs a tenth of counting


class Packing(NamedTuple):
    """Layout of counters; a field that does not apply is 0.

    Attributes
    ----------
    count_bits : int
        Bits of a count in the first lane.
    lanes : int
        64-bit counters per bin of a histogram.
    drop : int
        Bits a gradient q loses when the second lane is derived from it.
    bits : int
        Bits it has then: r = q >> drop is 2**bits where the gradient is 1, and so is the curvature's unit.
    chunk_bits : int
        Bits of a count in a triple; 0 where there are none.
    """

    count_bits: int
    lanes: int
    drop: int
    bits: int
    chunk_bits: int

    @classmethod
    def of(cls, rows: int, *, given: bool = False, derived: bool = False, wide: bool = False) -> Packing:
        """Return the layout for so many rows, with a second lane that is given, derived or absent.

        Examples
        --------
        >>> from mcrank.boosting.packing import Packing
        >>> Packing.of(500_000)
        Packing(count_bits=19, lanes=1, drop=0, bits=0, chunk_bits=0)
        >>> Packing.of(500_000, derived=True)
        Packing(count_bits=19, lanes=2, drop=11, bits=13, chunk_bits=13)
        """
        if not derived:
            return cls(count_bits(rows), 2 if given else 1, 0, 0, 0)
        chunk = min(_MOST_CHUNK_BITS, count_bits(rows) + 1)
        whole = gradient_bits(rows)
        # Three sums of a chunk and a sign in 64 bits; a curvature, at most 1/4, takes two bits less than a
        # gradient.
        bits = min((63 - 3 * chunk - 2) // 2 + 2, whole - 1)
        return cls(count_bits(rows), 2, whole - bits, bits, 0 if wide else chunk)

    @property
    def chunk(self) -> int:
        """Rows a triple may count: an eighth below its bits, as rounding can make gradients larger than 1."""
        return 7 << self.chunk_bits >> 3

    @property
    def pack_lanes(self) -> int:
        """64-bit numbers per row that are added to counters."""
        return 1 if self.chunk_bits else self.lanes

    def gain_unit(self, unit: float, lane_unit: float) -> float:
        """Factor from an integer gain to the loss's own scale, for the units of gradient and given lane."""
        if self.bits:
            return 2.0**-self.bits
        return unit * unit / (lane_unit if self.lanes == 2 else 1.0)


def aligned(*shape: int) -> npt.NDArray[np.int64]:
    """Zeros that begin with a cache line: vectors of counters that straddle two lines cost two accesses."""
    size = 8 * int(np.prod(shape))
    raw = np.zeros(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(np.int64).reshape(shape)


@njit(inline="always")
def chunk_rows(chunk_bits):  # type: ignore[no-untyped-def]
    """`Packing.chunk`, for kernels."""
    return 7 << chunk_bits >> 3


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
def fill_packs(entries, begin, end, packing, weights, packs):  # type: ignore[no-untyped-def]
    """What every entry adds to a counter; one number, or a pair with the given lane ``weights[row]``."""
    # IN: entries, begin, end, packing, weights  OUT: packs
    if packing.chunk_bits > 0:
        for i in range(begin, end):
            r, h = narrow(int32(entries[i]), packing)
            packs[i - begin] = triple(r, h, packing)
    elif packing.lanes == 1:
        for i in range(begin, end):
            packs[i - begin] = (int64(int32(entries[i])) << packing.count_bits) + int64(1)
    elif packing.bits > 0:
        for i in range(begin, end):
            r, h = narrow(int32(entries[i]), packing)
            packs[2 * (i - begin)] = (r << packing.count_bits) + int64(1)
            packs[2 * (i - begin) + 1] = h
    else:
        for i in range(begin, end):
            packs[2 * (i - begin)] = (int64(int32(entries[i])) << packing.count_bits) + int64(1)
            packs[2 * (i - begin) + 1] = weights[uint64(entries[i]) >> uint64(32)]


@njit(inline="always")
def triple(r, h, packing):  # type: ignore[no-untyped-def]
    """Count in the low bits, curvature above it, gradient on top with the sign."""
    h_at = int64(packing.chunk_bits)
    r_at = int64(2 * packing.chunk_bits + packing.bits - 2)
    return (r << r_at) + (h << h_at) + int64(1)


@step()
def spread(triples, packing, add, hist):  # type: ignore[no-untyped-def]
    """Write counters of triples, or add them, to the two lanes of a histogram, and zero them."""
    # IN: packing, add  OUT: triples, hist
    h_at = int64(packing.chunk_bits)
    r_at = int64(2 * packing.chunk_bits + packing.bits - 2)
    counts = (int64(1) << h_at) - int64(1)
    curvatures = (int64(1) << (r_at - h_at)) - int64(1)
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
