"""Every pair of systems: paired t tests of all of them at once, histograms, wins and losses.

`mcrank.stats.paired_t` meets queries by id, which takes too long for hundreds of pairs of systems on tens of
thousands of queries; in a comparison all systems have the same queries in the same order. The numbers are the
same (a test compares them).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from mcrank import stats
from mcrank.compare.verdict import by_query

if TYPE_CHECKING:
    from mcrank.compare.result import Comparison, FloatArray, IntArray


@dataclass(frozen=True)
class Pair:
    """Two systems: mean of the first minus that of the second, p of a paired t test, and p corrected."""

    first: int
    second: int
    difference: float
    p: float
    corrected_p: float


def counted_values(comparison: Comparison, measure: str) -> FloatArray:
    """Values (systems x queries) as they count in the mean: NaN only where a query is left out."""
    return np.array([list(one.values()) for one in by_query(comparison, measure).values()])


def win_counts(values: FloatArray) -> IntArray:
    """Wins, ties and losses of every system against every other (systems x systems x 3)."""
    counts = np.zeros((len(values), len(values), 3), dtype=np.int64)
    for a, row in enumerate(values):
        difference = row - values
        counts[a, :, 0] = (difference > 0.0).sum(axis=1)
        counts[a, :, 1] = (difference == 0.0).sum(axis=1)
        counts[a, :, 2] = (difference < 0.0).sum(axis=1)
    return counts


def all_pairs(values: FloatArray) -> list[Pair]:
    """Test every pair of systems; p-values are corrected by Holm's rule for the number of pairs."""
    places = list(combinations(range(len(values)), 2))
    found = [_paired_t(values[a] - values[b]) for a, b in places]
    corrected = stats.holm([p for _, p in found])
    return [
        Pair(a, b, difference, p, corrected_p)
        for (a, b), (difference, p), corrected_p in zip(places, found, corrected, strict=True)
    ]


def _paired_t(differences: FloatArray) -> tuple[float, float]:
    """Mean difference and p; queries without a value in one of the systems are left out."""
    from scipy.special import stdtr

    known = differences[np.isfinite(differences)]
    if len(known) < 2:
        return (float(known.mean()) if len(known) else 0.0), 1.0
    mean = float(known.mean())
    if not known.std() > 1e-12 * np.abs(known).max():
        return mean, (1.0 if mean == 0.0 else 0.0)
    statistic = mean / (known.std(ddof=1) / np.sqrt(len(known)))
    return mean, float(2.0 * stdtr(len(known) - 1, -abs(statistic)))
