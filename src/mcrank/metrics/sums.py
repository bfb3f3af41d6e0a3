"""Single passes over rows: sums by query, grades as levels, scores that are not numbers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz"})
def level_sums(levels, starts, stops, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the levels of each query's rows are worth, in whatever order is quickest."""
    # IN: levels by row, starts, stops, worth by level  OUT: out
    for q in range(starts.shape[0]):
        total = 0.0
        for i in range(starts[q], stops[q]):
            total += worth[levels[i]]
        out[q] = total


@njit(nogil=True, cache=True)
def level_rows(grades, out):  # type: ignore[no-untyped-def]
    """Write grades below 256 as bytes; return how many are not integers."""
    # IN: grades  OUT: out
    odd = 0
    for i in range(grades.shape[0]):
        whole = np.int32(grades[i])
        out[i] = np.uint8(whole)
        odd += np.float64(whole) != grades[i]
    return odd


@njit(nogil=True, cache=True)
def count_nan(values):  # type: ignore[no-untyped-def]
    """Count the values that are NaN."""
    # IN: values
    missing = 0
    for i in range(values.shape[0]):
        missing += values[i] != values[i]
    return missing
