"""exp(x) for x <= 0, the same to the last bit on every machine.

The C library's exp differs between machines and keeps a loop from running on vectors. This one is sums and
products only (relative error below 1e-14): x = n ln 2 + r, a polynomial for exp(r), and n added to the
exponent bits.
"""

from __future__ import annotations

from numba import njit

from mcrank.kernels.memory import bits_to_float, float_to_bits

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # the upper bits of ln 2: a multiple of it by n is exact
_LN2_LOW = 1.90821492927058770002e-10
# 1/3!, ..., 1/11!
_INVERSE_3, _INVERSE_4, _INVERSE_5 = 1 / 6, 1 / 24, 1 / 120
_INVERSE_6, _INVERSE_7, _INVERSE_8 = 1 / 720, 1 / 5040, 1 / 40320
_INVERSE_9, _INVERSE_10, _INVERSE_11 = 1 / 362880, 1 / 3628800, 1 / 39916800
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits


@njit(inline="always")
def exp_negative(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 0; below -700 it stays at exp(-700), which is nothing beside exp(0)."""
    x = max(x, -700.0)
    shifted = x * _LOG2E + ROUND
    n = shifted - ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # By fours (Estrin), not one power after the other (Horner): fewer steps that wait for each other.
    r2 = r * r
    r4 = r2 * r2
    low = (r * _INVERSE_3 + 0.5) * r2 + (r + 1.0)
    middle = (r * _INVERSE_7 + _INVERSE_6) * r2 + (r * _INVERSE_5 + _INVERSE_4)
    high = (r * _INVERSE_11 + _INVERSE_10) * r2 + (r * _INVERSE_9 + _INVERSE_8)
    p = (high * r4 + middle) * r4 + low
    return bits_to_float(float_to_bits(p) + (float_to_bits(shifted) << 52))
