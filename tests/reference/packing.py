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
