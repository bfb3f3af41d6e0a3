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
    """The same as the flat 64-bit counters the engine keeps."""
    lanes = 1 if lane is None else 2
    out = np.zeros((n_bins, lanes), dtype=np.int64)
    for b, (total, count, second) in histogram(column, rows, q, lane).items():
        out[b, 0] = (total << count_bits) + count
        if lane is not None:
            out[b, 1] = second
    return out.ravel()


def unpack(counter, count_bits):
    """Sum and count of one counter."""
    return int(counter) >> count_bits, int(counter) & ((1 << count_bits) - 1)
