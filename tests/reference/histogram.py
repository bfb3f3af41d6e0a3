"""Naive twins of `mcrank.boosting.histogram`: plain sums per bin, in Python integers."""

from __future__ import annotations

import numpy as np


def histogram(column, rows, q, lane=None):
    """Sum of q, number of rows and sum of the second lane for each bin that ``rows`` meet in ``column``."""
    sums: dict[int, list[int]] = {}
    for row in rows:
        cell = sums.setdefault(int(column[row]), [0, 0, 0])
        cell[0] += int(q[row])
        cell[1] += 1
        cell[2] += 0 if lane is None else int(lane[row])
    return sums


def packed(column, rows, q, n_bins, count_bits, lane=None):
    """The same as the flat 64-bit counters the engine keeps; without ``count_bits`` counts come last."""
    out = np.zeros((n_bins, 1 + (lane is not None) + (count_bits == 0)), dtype=np.int64)
    for b, (total, count, second) in histogram(column, rows, q, lane).items():
        out[b, 0] = (total << count_bits) + (count if count_bits else 0)
        if lane is not None:
            out[b, 1] = second
        if not count_bits:
            out[b, -1] = count
    return out.ravel()
