"""RankBoost with its pairs written out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np


def pairs_of(y, offsets) -> Iterator[tuple[int, int, int]]:
    """Every (query, i, j) with rows i and j of a query and a higher grade of i."""
    for q, (start, end) in enumerate(pairwise(offsets)):
        for i in range(start, end):
            for j in range(start, end):
                if y[i] > y[j]:
                    yield q, i, j


def pair_weights(scores, y, offsets, weight=None, query_weight=None, per_query=False) -> list:
    """(i, j, weight) of every pair under exp(H_j - H_i)."""
    pairs = list(pairs_of(y, offsets))
    count = np.bincount([q for q, _, _ in pairs], minlength=len(offsets) - 1)
    out = []
    for q, i, j in pairs:
        d = np.exp(scores[j] - scores[i])
        d *= 1.0 if weight is None else weight[i] * weight[j]
        d *= 1.0 if query_weight is None else query_weight[q]
        out.append((i, j, d / count[q] if per_query else d))
    return out


def pulls(weighted: list, rows: int) -> np.ndarray:
    pull = np.zeros(rows)
    for i, j, d in weighted:
        pull[i] += d
        pull[j] -= d
    return pull


def good_and_bad(weighted: list, above) -> tuple[float, float]:
    """Weight of the pairs whose better row alone is above a threshold, and whose worse row alone is."""
    good = sum(d for i, j, d in weighted if above[i] and not above[j])
    bad = sum(d for i, j, d in weighted if above[j] and not above[i])
    return good, bad


def merit(good: float, bad: float, criterion: str) -> float:
    if criterion == "z":
        return (np.sqrt(good) - np.sqrt(bad)) ** 2
    return abs(good - bad) if criterion == "abs" else good - bad


def best_merit(weighted: list, X, criterion: str) -> float:
    """The best merit over every threshold of every feature; missing values are below."""
    best = 0.0
    for column in X.T:
        for threshold in np.unique(column[~np.isnan(column)]):
            best = max(best, merit(*good_and_bad(weighted, column > threshold), criterion))
    return best
