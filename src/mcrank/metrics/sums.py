"""Sums over the rows of each query."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def level_sums(levels, starts, stops, worth, out):  # type: ignore[no-untyped-def]
    """Sum what the levels of each query's rows are worth."""
    # IN: levels by row, starts, stops, worth by level  OUT: out
    for q in range(starts.shape[0]):
        total = 0.0
        for i in range(starts[q], stops[q]):
            total += worth[levels[i]]
        out[q] = total
