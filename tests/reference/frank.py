"""The fidelity loss with its pairs written out."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.rankboost import pairs_of


def weighted_pairs(y, offsets, weight=None, query_weight=None, per_query=True) -> list:
    """(i, j, weight) of every pair, the largest weight of rows and of queries' pairs being 1."""
    pairs = list(pairs_of(y, offsets))
    count = np.bincount([q for q, _, _ in pairs], minlength=len(offsets) - 1)
    share = np.where(count > 0, 1 / np.maximum(count, 1) if per_query else 1.0, 0.0)
    share = share * (1.0 if query_weight is None else query_weight)
    share = share / max(share.max(), 1e-300)
    row = np.ones(len(y)) if weight is None else np.asarray(weight) / max(weight)
    return [(i, j, share[q] * row[i] * row[j]) for q, i, j in pairs]


def chance(lead: float) -> float:
    return 1 / (1 + math.exp(-lead)) if lead > -700 else 0.0


def loss(scores, pairs: list) -> float:
    return sum(w * (1 - math.sqrt(chance(scores[i] - scores[j]))) for i, j, w in pairs)


def slopes(scores, pairs: list) -> list:
    """Pairs with w √P (1 - P), twice the slope of their loss, in place of their weight."""
    out = []
    for i, j, w in pairs:
        p = chance(scores[i] - scores[j])
        out.append((i, j, w * math.sqrt(p) * (1 - p)))
    return out


def first_alpha(good: float, bad: float, smooth: float) -> float:
    small = smooth * (good + bad)
    return math.log((good + small) / (bad + small)) / 2
