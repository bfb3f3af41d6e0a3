"""exp(x) for x <= 0, the same to the last bit on every machine.

The C library's exp differs between machines and keeps a loop from running on vectors. This one is sums and
products only (relative error below 1e-14): x = n ln 2 + r, a polynomial for exp(r), and n added to the
exponent bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # the upper bits of ln 2: a multiple of it by n is exact
_LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits


@intrinsic
def _as_bits(typingctx: Any, x: Any) -> Any:
    """Bits of a float64 as an int64."""
    return types.int64(types.float64), lambda c, builder, s, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _as_float(typingctx: Any, bits: Any) -> Any:
    """Float64 with the bits of an int64."""
    return types.float64(types.int64), lambda c, builder, s, args: builder.bitcast(args[0], ir.DoubleType())


# Kernels call these without the typing context; Any says so.
as_bits: Any = _as_bits
as_float: Any = _as_float


@njit(inline="always")
def exp_negative(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0; below -700 it stays at exp(-700), which is nothing beside exp(0)."""
    x = max(x, -700.0)
    shifted = x * _LOG2E + ROUND
    n = shifted - ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r * r + r + 1.0
    return as_float(as_bits(p) + (as_bits(shifted) << 52))
