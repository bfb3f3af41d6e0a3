"""Naive twins of `mcrank.losses.pairwise` and `mcrank.losses.hinges`: the losses themselves, pair by pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tests.reference.lambdas import better_pairs


def logistic(d: float) -> float:
    """log(1 + e^-d)."""
    return math.log1p(math.exp(-d)) if d > -700 else -d


def fidelity(d: float) -> float:
    """1 - sqrt(1 / (1 + e^-d))."""
    return 1 - math.sqrt(1 / (1 + math.exp(-d))) if d > -700 else 1.0


def squared_hinge(d: float) -> float:
    """Half of max(0, 1 - d)^2."""
    return max(0.0, 1 - d) ** 2 / 2


CURVES = {"logistic": logistic, "fidelity": fidelity, "hinge": squared_hinge}


def pairwise_loss(
    grades: Sequence[float],
    scores: Sequence[float],
    offsets: Sequence[int],
    kind: str,
    sigma: float,
    per_query: bool,
) -> float:
    """The loss of all pairs of different grades."""
    total = 0.0
    for start, end in itertools.pairwise(offsets):
        pairs = list(better_pairs(grades[start:end]))
        values = [CURVES[kind](sigma * (scores[start + i] - scores[start + j])) for i, j in pairs]
        total += math.fsum(values) / (len(pairs) if per_query and pairs else 1)
    return total


def slopes(grades, scores, offsets, kind, sigma, per_query, step=1e-4):
    """Minus the derivative of the loss by central differences of the fourth order."""
    out = np.zeros(len(scores))
    for i in range(len(scores)):

        def at(x, i=i):
            moved = np.array(scores, dtype=float)
            moved[i] += x
            return pairwise_loss(grades, moved, offsets, kind, sigma, per_query)

        near, wide = at(step) - at(-step), at(2 * step) - at(-2 * step)
        out[i] = -(8 * near - wide) / (12 * step)
    return out


def curvatures(grades, scores, offsets, kind, sigma, per_query):
    """Curvature of every row, pair by pair."""
    out = np.zeros(len(scores))
    for start, end in itertools.pairwise(offsets):
        pairs = list(better_pairs(grades[start:end]))
        for i, j in pairs:
            d = sigma * (scores[start + i] - scores[start + j])
            p = 1 / (1 + math.exp(-d)) if d > -700 else 0.0
            bend = p * (1 - p) if kind == "logistic" else math.sqrt(p) * (1 - p) * (1 + p) / 4
            for k in (i, j):
                out[start + k] += sigma**2 * bend / (len(pairs) if per_query else 1)
    return out
