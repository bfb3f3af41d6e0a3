"""Naive twins of `mcrank.boosting.packing`, in Python integers and fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np


def narrow(q, bits, kept):
    """Gradients of scale ``2**bits`` rounded to ``kept`` bits, halves up, and their curvatures |r|(1-|r|)."""
    one = 1 << kept
    r = [floor(Fraction(int(v), 1 << (bits - kept)) + Fraction(1, 2)) for v in q]
    h = [max(floor(Fraction(abs(v) * (one - abs(v)), one) + Fraction(1, 2)), 0) for v in r]
    return np.array(r, dtype=np.int64), np.array(h, dtype=np.int64)


def rounded(q, lane, drop, lane_drop):
    """Gradients and a lane without their lowest bits, up as often as these say: by a hash of the two."""
    word = (1 << 64) - 1
    r, h = [], []
    for g, w in zip(map(int, q), map(int, lane), strict=True):
        x = ((g << 31) & word) ^ w
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        x ^= x >> 31
        r.append((g + x % (1 << drop)) // (1 << drop))
        h.append((w + (x >> (64 - lane_drop))) // (1 << lane_drop))
    return np.array(r, dtype=np.int64), np.array(h, dtype=np.int64)
