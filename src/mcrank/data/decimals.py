"""Words and numbers in bytes: the reading kernels that know nothing of LETOR.

They are compiled into the kernels that call them, and cached with those. They rely on text that ends with a
newline and some readable bytes of padding: every scan ends by itself, and up to 32 bytes can be loaded
anywhere.

The marks (`ends16` and the like) are one load and one comparison of many characters: where a word ends is
known before its number is, so the processor reads the next words while it still converts this one.
`digits8` counts and converts up to 7 digits of one 8-byte load without a loop, enough for each side of the
point of most values. `read_decimal` takes up to 19 digits and an exponent, and knows when its result is sure.
What is left (a few in a million, and every spelling that is not a plain decimal) is handed back to Python,
whose float() is the reference.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uint8, uint64

from mcrank.kernels import step
from mcrank.kernels.memory import load_u64, trailing_zeros
from mcrank.kernels.vectors import match_any, match_range

# How sure `read_decimal` is of its value.
ASK_PYTHON, SURE_AS_FLOAT32, SURE = range(3)

# 10 ** 0 .. 10 ** 22 are exact doubles; the others are correctly rounded (Python's own literals).
POWERS = np.array([float(f"1e{k}") for k in range(309)])
WHOLE_POWERS = np.array([10**k for k in range(9)], dtype=np.uint64)
_EXACT = uint64(1 << 53)
# Far above the error of a few roundings in double, far below the spacing of float32.
_SLACK = 2.0**-48
FLOAT32_MAX = float(np.finfo(np.float32).max)

ONE, EIGHT = uint64(1), uint64(8)
_ZEROS = uint64(0x3030303030303030)
_ALL = uint64(0xFFFFFFFFFFFFFFFF)
_OVER_NINE = uint64(0x7676767676767676)
HIGH_BITS = uint64(0x8080808080808080)
_LOWER_CASE = uint64(0x2020202020202020)
_PAIRS = uint64(0x000000FF000000FF)
_SCALE_HIGH = uint64(0x000F424000000064)
_SCALE_LOW = uint64(0x0000271000000001)
_NAN = uint64(int.from_bytes(b"nan", "little"))
_NULL = uint64(int.from_bytes(b"null", "little"))


# Spaces and newlines, points, digits among 16 characters; newlines among 32.
ends16 = match_any(16, b" \n")
points16 = match_any(16, b".")
digits16 = match_range(16, ord("0"), ord("9"))
newlines32 = match_any(32, b"\n")


@njit(nogil=True, inline="always")
def _number8(digits):  # type: ignore[no-untyped-def]
    """Value of eight digits, one in each byte, the first in the lowest: pairs, then all."""
    pairs = digits * uint64(10) + (digits >> EIGHT)
    return ((pairs & _PAIRS) * _SCALE_HIGH + ((pairs >> uint64(16)) & _PAIRS) * _SCALE_LOW) >> uint64(32)


@njit(nogil=True, inline="always")
def digits8(word):  # type: ignore[no-untyped-def]
    """How many of the 8 characters are leading digits (8 if all), and their value when fewer than 8."""
    digits = word ^ _ZEROS
    count = trailing_zeros(((digits + _OVER_NINE) | digits) & HIGH_BITS) >> uint64(3)
    # Shift the digits to the top, so that zeros stand in front; in two steps, as count may be 0.
    return count, _number8((digits << ((uint64(7) - (count & uint64(7))) << uint64(3))) << EIGHT)


@njit(nogil=True, inline="always")
def plain_decimal(front, back, whole, part):  # type: ignore[no-untyped-def]
    """The decimal whose first ``whole`` (1 to 7) characters of ``front`` are the digits before the point and
    whose last ``part`` (0 to 7) of ``back`` are those behind it.

    At most 14 digits and a power of ten are both exact, so the one division rounds correctly.
    """
    before = (front ^ _ZEROS) << ((EIGHT - whole) << uint64(3))
    # In two steps, as part may be 0.
    kept = (_ALL << ((uint64(7) - part) << uint64(3))) << EIGHT
    behind = (back ^ _ZEROS) & kept
    if whole + part <= EIGHT:
        # Nearly always: all digits fit one word.
        mantissa = _number8(before >> (part << uint64(3)) | behind)
    else:
        mantissa = _number8(before) * WHOLE_POWERS[part] + _number8(behind)
    return np.float64(np.int64(mantissa)) / POWERS[part]


@njit(nogil=True, inline="always")
def is_blank(c):  # type: ignore[no-untyped-def]
    """Whether the character separates words inside a line (what Python's bytes.split() splits at)."""
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13) and c != uint8(10))


@njit(nogil=True, inline="always")
def is_space(c):  # type: ignore[no-untyped-def]
    """Whether the character is a blank or a newline."""
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13))


@njit(nogil=True, inline="always")
def ends_word(c):  # type: ignore[no-untyped-def]
    """Whether a word cannot hold the character: a blank, a newline or the '#' of a comment."""
    return c == uint8(32) or (c >= uint8(9) and c <= uint8(13)) or c == uint8(35)


@njit(nogil=True, inline="always")
def skip_blanks(text, at):  # type: ignore[no-untyped-def]
    """Position of the first character from ``at`` on that is no blank."""
    p = at
    while is_blank(text[p]):
        p += ONE
    return p


@step(shared=True)
def add_digits(text, at, mantissa, digits):  # type: ignore[no-untyped-def]
    """Append a run of digits to a mantissa: (end, mantissa, its digits without leading zeros)."""
    p = at
    if mantissa == uint64(0):
        while text[p] == uint8(48):
            p += ONE
    while True:
        word = load_u64(text, p) ^ _ZEROS
        if ((word + _OVER_NINE) | word) & HIGH_BITS != uint64(0):
            break
        mantissa = mantissa * uint64(100_000_000) + _number8(word)
        digits += EIGHT
        p += EIGHT
    count, value = digits8(load_u64(text, p))
    return p + count, mantissa * WHOLE_POWERS[count] + value, digits + count


@step(shared=True)
def read_decimal(text, at):  # type: ignore[no-untyped-def]
    """Read a plain decimal: (end, value, certainty).

    SURE: the value is the correctly rounded double. SURE_AS_FLOAT32: its rounding to float32 is right, itself
    it may be off in the last bit. The end is that of the word in any case.
    """
    p = at
    negative = text[p] == uint8(45)
    if negative or text[p] == uint8(43):
        p += ONE
    start = p
    p, mantissa, digits = add_digits(text, p, uint64(0), uint64(0))
    any_digit = p > start
    fraction = uint64(0)
    if text[p] == uint8(46):
        p += ONE
        start = p
        p, mantissa, digits = add_digits(text, p, mantissa, digits)
        fraction = p - start
        any_digit |= fraction > uint64(0)
    plain = any_digit and digits <= uint64(19)
    power = np.int64(0)
    if text[p] == uint8(101) or text[p] == uint8(69):
        p += ONE
        down = text[p] == uint8(45)
        if down or text[p] == uint8(43):
            p += ONE
        first = p
        while uint8(text[p] - uint8(48)) <= uint8(9):
            power = power * 10 + np.int64(uint8(text[p] - uint8(48)))
            p += ONE
        plain = plain and p > first and p - first <= uint64(4)
        if down:
            power = -power
    if not ends_word(text[p]):
        plain = False
        while not ends_word(text[p]):
            p += ONE
    if not plain:
        return p, 0.0, ASK_PYTHON
    value, certainty = scaled(mantissa, power - np.int64(fraction))
    return p, (-value if negative else value), certainty


@njit(inline="always")
def scaled(mantissa, power):  # type: ignore[no-untyped-def]
    """``mantissa * 10 ** power`` with its certainty, see `read_decimal`."""
    if mantissa == uint64(0):
        return 0.0, SURE
    value = np.float64(mantissa)
    size = -power if power < 0 else power
    if size > 308:
        return 0.0, ASK_PYTHON
    value = value / POWERS[size] if power < 0 else value * POWERS[size]
    if mantissa <= _EXACT and size <= 22:
        return value, SURE
    # Rounding is monotone: if both ends of an interval round to one float32, so does the true value in it.
    if value < FLOAT32_MAX and np.float32(value * (1.0 - _SLACK)) == np.float32(value * (1.0 + _SLACK)):
        return value, SURE_AS_FLOAT32
    return 0.0, ASK_PYTHON


@njit(inline="always")
def is_missing(text, at, end):  # type: ignore[no-untyped-def]
    """Whether the word is empty, NULL or nan (any case)."""
    size = end - at
    if size == uint64(0):
        return True
    word = load_u64(text, at) | _LOWER_CASE
    if size == uint64(3):
        return word & uint64(0xFFFFFF) == _NAN
    return size == uint64(4) and word & uint64(0xFFFFFFFF) == _NULL
