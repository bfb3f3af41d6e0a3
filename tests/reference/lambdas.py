"""Naive twins of `mcrank.losses.lambdas` and `mcrank.losses.pairwise`: explicit pairs in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tests.reference import measures


def chance(d: float) -> float:
    """1 / (1 + e^d) without overflow."""
    return 1 / (1 + math.exp(d)) if d < 700 else 0.0


def better_pairs(grades: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Places (i, j) of one query with grade i above grade j."""
    for i, high in enumerate(grades):
        for j, low in enumerate(grades):
            if high > low:
                yield i, j


def lambdas(
    grades: Sequence[float],
    scores: Sequence[float],
    swap_change: Callable[[list[int], int, int], float],
    sigma: float,
    truncation: int | None,
    norm: bool = False,
    order: Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Lambdas and curvatures of one query; ``swap_change(order, a, b)`` is the change when ranks swap.

    ``order`` has the places by rank; by default equal scores stand as they are.
    """
    n = len(grades)
    order = measures.stable_order(scores) if order is None else list(order)
    rank = {place: r for r, place in enumerate(order)}
    slopes, curves, total = np.zeros(n), np.zeros(n), 0.0
    for i, j in better_pairs(grades):
        if min(rank[i], rank[j]) >= (truncation or n):
            continue
        change = swap_change(order, rank[i], rank[j])
        if norm and max(scores) != min(scores):
            change /= 0.01 + abs(scores[i] - scores[j])
        rho = chance(sigma * (scores[i] - scores[j]))
        slopes[i] += sigma * rho * change
        slopes[j] -= sigma * rho * change
        total += 2 * sigma * rho * change
        for k in (i, j):
            curves[k] += sigma**2 * rho * (1 - rho) * change
    if norm and total > 0:
        slopes *= math.log2(1 + total) / total
        curves *= math.log2(1 + total) / total
    return slopes, curves


def measure_change(grades: Sequence[float], label: str, k: int | None):
    """Change of a measure by its formula."""

    def change(order: list[int], a: int, b: int) -> float:
        ranked = [grades[i] for i in order]
        if label == "kendall":
            falling = list(range(len(order), 0, -1))  # ties stand in the order of their ranks
            swapped = list(ranked)
            swapped[a], swapped[b] = swapped[b], swapped[a]
            return abs(measures.kendall(falling, swapped) - measures.kendall(falling, ranked))
        return measures.swap_change(measures.FORMULAS[label], ranked, k, a, b)

    return change


def tied_order(prepared, scores: np.ndarray, data) -> np.ndarray:
    """Rows of every query by falling score as the dialect holds it, equal scores by its tie rule."""
    rounded = np.float32(scores) if prepared.precision == "float32" else scores
    worth = prepared.form.worth[prepared.layout.levels]
    ties = {
        "file": lambda row: 0,
        "expected": lambda row: 0,
        "worst": lambda row: worth[row],
        "id-descending": lambda row: [-byte for byte in data.doc_ids[row].encode()] + [0],
    }[prepared.rule]
    return np.array(
        sorted(range(len(scores)), key=lambda row: (data.qid[row], -rounded[row], ties(row), row))
    )


def change_of_values(prepared, order: np.ndarray, a: int, b: int) -> float:
    """Change of a measure when the rows at two places of an order swap, by measuring both orders."""
    swapped = order.copy()
    swapped[[a, b]] = swapped[[b, a]]
    values = []
    for rows in (order, swapped):
        falling = np.empty(len(rows))
        falling[rows] = -np.arange(len(rows))
        values.append(np.nan_to_num(prepared.per_query(falling)))
    return float(np.abs(values[1] - values[0]).sum())
