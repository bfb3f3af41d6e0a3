"""Who adds up, and sums that do not depend on the order of what is summed.

Rows may lie in one place or in several (threads of a test, workers of a cluster), each with some of the
queries. What is decided from all rows (bins, units, splits, leaves) is then decided from sums over all
places, which a `Sums` gives to everyone: `Alone` returns what it is given.

Whether they come out the same must not hang on the order of rows. A float sum changes in its last digits with
the order of its terms, and with it whatever is decided by it. Here terms become integers of one scale (a
power of two, from the largest term), whose sum is exact: the same for every order of rows and queries, and
for every way of cutting them into parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mcrank.arrays import Array, FloatArray, IntArray


class Sums(Protocol):
    """What the places of a training tell each other; all of them call the same methods in the same order.

    Attributes
    ----------
    rank, size : int
        Number of this place, and how many there are.
    """

    rank: int
    size: int

    def add(self, values: IntArray) -> IntArray:
        """Return the sum of everybody's integers."""

    def most(self, value: float) -> float:
        """Return the largest of everybody's numbers."""

    def least(self, values: FloatArray) -> FloatArray:
        """Return, place by place, the smallest of everybody's numbers, none of which is NaN."""

    def gather(self, values: Array) -> list[Array]:
        """Return everybody's numbers (one dimension, one type, any length), in the order of their ranks."""

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        """Give ``parts[r]`` to each rank ``r``; return what everybody gave this one."""

    def scatter(self, hists: IntArray, cuts: list[int]) -> IntArray:
        """Return sums of everybody's histograms, where counters ``cuts[rank]:cuts[rank + 1]`` are wanted."""

    def agree(self, found: Array) -> Array:
        """Return, for each node, the record of the best split anybody found; of equals the lowest rank's."""


class Alone:
    """All rows are here: nobody else to ask.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import ALONE
    >>> ALONE.add(np.array([3, 4])).tolist(), ALONE.most(0.5), ALONE.gather(np.array([7]))
    ([3, 4], 0.5, [array([7])])
    """

    rank = 0
    size = 1

    def add(self, values: IntArray) -> IntArray:
        """Return them."""
        return values

    def most(self, value: float) -> float:
        """Return it."""
        return value

    def least(self, values: FloatArray) -> FloatArray:
        """Return them."""
        return values

    def gather(self, values: Array) -> list[Array]:
        """Return them, alone."""
        return [values]

    def exchange(self, parts: Sequence[Array]) -> list[Array]:
        """Return them."""
        return list(parts)

    def scatter(self, hists: IntArray, cuts: list[int]) -> IntArray:
        """Return them."""
        return hists

    def agree(self, found: Array) -> Array:
        """Return them."""
        return found


ALONE = Alone()


def count_all(count: int, sums: Sums) -> int:
    """Return everybody's count together."""
    return int(sums.add(np.array([count], dtype=np.int64))[0])


def exact_sum(values: FloatArray, sums: Sums = ALONE) -> float:
    """Return the sum of finite values, the same for any order of them.

    Two integers a term keep 2 (62 - b) bits below the largest one, b the bits of their number: 84 for a
    million terms, where a float has 53. What is smaller is rounded away, each term for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import exact_sum
    >>> values = np.array([1e16, 1.0, -1e16])
    >>> exact_sum(values), exact_sum(values[::-1]), exact_sum(values[[0, 2, 1]])
    (1.0, 1.0, 1.0)
    """
    largest = sums.most(float(np.abs(values).max(initial=0.0)))
    if largest == 0.0 or not math.isfinite(largest):
        return float(sum(part[0] for part in sums.gather(np.array([values.sum()], dtype=np.float64))))
    exponent, bits = math.frexp(largest)[1], _bits(count_all(len(values), sums))
    scaled = _times_power(values, bits - exponent)
    upper = np.rint(scaled)
    lower = np.rint(_times_power(scaled - upper, bits))
    both = sums.add(np.array([upper.astype(np.int64).sum(), lower.astype(np.int64).sum()]))
    return _scaled((int(both[0]) << bits) + int(both[1]), exponent - 2 * bits)


def as_integers(weights: FloatArray) -> IntArray:
    """Return weights (not negative) times a power of two, rounded: as large as their sum allows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import as_integers
    >>> whole = as_integers(np.array([0.5, 1.5, 1.0]))
    >>> (whole // whole[0]).tolist()
    [1, 3, 2]
    """
    exponent = math.frexp(float(weights.max(initial=0.0)))[1]
    return np.rint(_times_power(weights, _bits(len(weights)) - exponent)).astype(np.int64)


def _times_power(values: FloatArray, exponent: int) -> FloatArray:
    """``values * 2**exponent``: a product, ten times as fast as NumPy's ldexp and as exact, where the power
    is a number.
    """
    if abs(exponent) < 1022:
        return np.asarray(values * math.ldexp(1.0, exponent))
    return np.ldexp(values, exponent)


def _bits(terms: int) -> int:
    """Bits a term may have for the sum of all to fit 63."""
    return 62 - max(1, terms.bit_length())


def _scaled(total: int, exponent: int) -> float:
    """``total * 2**exponent``, rounded once."""
    try:
        return math.ldexp(float(total), exponent)
    except OverflowError:
        return math.copysign(math.inf, total)


def exact_mean(values: FloatArray, weight: FloatArray | None = None, sums: Sums = ALONE) -> float:
    """Return the (weighted) mean of finite values, the same for any order of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import exact_mean
    >>> exact_mean(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 2.0]))
    2.75
    """
    if weight is None:
        return exact_sum(values, sums) / count_all(len(values), sums)
    return exact_sum(values * weight, sums) / exact_sum(weight, sums)


def exact_sums_by(
    classes: npt.NDArray[np.integer], n_classes: int, weight: FloatArray | None, sums: Sums = ALONE
) -> FloatArray:
    """Return the number of rows of each class, or the sum of their weights, the same for any order of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.sums import exact_sums_by
    >>> exact_sums_by(np.array([0, 1, 1]), 3, np.array([0.5, 0.25, 0.5])).tolist()
    [0.5, 0.75, 0.0]
    """
    if weight is None:
        return sums.add(np.bincount(classes, minlength=n_classes).astype(np.int64)).astype(np.float64)
    return np.array([exact_sum(weight[classes == k], sums) for k in range(n_classes)])
