"""Wins, ties and losses of every system against every other, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mcrank.experiments.comparison import Comparison, IntArray


def win_counts(comparison: Comparison, measure: str) -> IntArray:
    """Queries won, tied and lost by the row against the column (systems x systems x 3)."""
    n = len(comparison.keys)
    counts = np.zeros((n, n, 3), dtype=np.int64)
    for pair in comparison.pairs(measure):
        counts[pair.first, pair.second] = pair.wins, pair.ties, pair.losses
        counts[pair.second, pair.first] = pair.losses, pair.ties, pair.wins
    return counts
