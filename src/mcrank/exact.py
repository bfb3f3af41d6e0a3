"""Sums that do not depend on the order of what is summed.

A float sum changes in its last digits with the order of its terms, and with it whatever is decided by it.
Here terms become integers of one scale (a power of two, from the largest term), whose sum is exact: the same
for every order of rows and queries, and for every way of cutting them into parts.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def exact_sum(values: FloatArray) -> float:
    """Return the sum of finite values, the same for any order of them.

    Two integers a term keep 2 (62 - b) bits below the largest one, b the bits of their number: 84 for a
    million terms, where a float has 53. What is smaller is rounded away, each term for itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.exact import exact_sum
    >>> values = np.array([1e16, 1.0, -1e16])
    >>> exact_sum(values), exact_sum(values[::-1]), exact_sum(values[[0, 2, 1]])
    (1.0, 1.0, 1.0)
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return float(values.sum())
    exponent, bits = math.frexp(largest)[1], _bits(len(values))
    scaled = np.ldexp(values, bits - exponent)
    upper = np.rint(scaled)
    lower = np.rint(np.ldexp(scaled - upper, bits))
    total = (int(upper.astype(np.int64).sum()) << bits) + int(lower.astype(np.int64).sum())
    return _scaled(total, exponent - 2 * bits)


def as_integers(weights: FloatArray) -> npt.NDArray[np.int64]:
    """Return weights (not negative) times a power of two, rounded: as large as their sum allows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.exact import as_integers
    >>> whole = as_integers(np.array([0.5, 1.5, 1.0]))
    >>> (whole // whole[0]).tolist()
    [1, 3, 2]
    """
    exponent = math.frexp(float(weights.max(initial=0.0)))[1]
    return np.rint(np.ldexp(weights, _bits(len(weights)) - exponent)).astype(np.int64)


def _bits(terms: int) -> int:
    """Bits a term may have for the sum of all to fit 63."""
    return 62 - max(1, terms.bit_length())


def _scaled(total: int, exponent: int) -> float:
    """``total * 2**exponent``, rounded once."""
    try:
        return math.ldexp(float(total), exponent)
    except OverflowError:
        return math.copysign(math.inf, total)


def exact_mean(values: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the (weighted) mean of finite values, the same for any order of them.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.exact import exact_mean
    >>> exact_mean(np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 2.0]))
    2.75
    """
    if weight is None:
        return exact_sum(values) / len(values)
    return exact_sum(values * weight) / exact_sum(weight)


def exact_sums_by(classes: npt.NDArray[np.integer], n_classes: int, weight: FloatArray | None) -> FloatArray:
    """Return the number of rows of each class, or the sum of their weights, the same for any order of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mcrank.exact import exact_sums_by
    >>> exact_sums_by(np.array([0, 1, 1]), 3, np.array([0.5, 0.25, 0.5])).tolist()
    [0.5, 0.75, 0.0]
    """
    if weight is None:
        return np.bincount(classes, minlength=n_classes).astype(np.float64)
    return np.array([exact_sum(weight[classes == k]) for k in range(n_classes)])
