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
    slopes, curves, total = np.zeros(len(grades)), np.zeros(len(grades)), 0.0
    for i, j, change, rho in weighed_pairs(grades, scores, swap_change, sigma, truncation, norm, order):
        slopes[i] += sigma * rho * change
        slopes[j] -= sigma * rho * change
        total += 2 * sigma * rho * change
        for k in (i, j):
            curves[k] += sigma**2 * rho * (1 - rho) * change
    if norm and total > 0:
        slopes *= math.log2(1 + total) / total
        curves *= math.log2(1 + total) / total
    return slopes, curves


def weighed_pairs(
    grades: Sequence[float],
    scores: Sequence[float],
    swap_change: Callable[[list[int], int, int], float],
    sigma: float,
    truncation: int | None,
    norm: bool = False,
    order: Sequence[int] | None = None,
) -> Iterator[tuple[int, int, float, float]]:
    """Better row, worse row, change when they swap and chance to stand the wrong way round; see `lambdas`."""
    n = len(grades)
    order = measures.stable_order(scores) if order is None else list(order)
    rank = {place: r for r, place in enumerate(order)}
    for i, j in better_pairs(grades):
        if min(rank[i], rank[j]) >= (truncation or n):
            continue
        change = swap_change(order, rank[i], rank[j])
        if norm and max(scores) != min(scores):
            change /= 0.01 + abs(scores[i] - scores[j])
        yield i, j, change, chance(sigma * (scores[i] - scores[j]))


def rounding_of_lambdas(
    grades: Sequence[float],
    scores: Sequence[float],
    swap_change: Callable[[list[int], int, int], float],
    sigma: float,
    truncation: int | None,
    order: Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How far rounding may set two ways of computing `lambdas` (without ``norm``) apart, row by row.

    With u = 2^-53, to first order, a row of p pairs whose scores lie sigma (s - s') <= W apart:

    * An exponential is wrong by what its argument is wrong by, absolutely: a difference of scores times sigma
      is rounded twice, 2 u W. A chance is made of two powers, each with such an argument and wrong by another
      1e-14 (`mcrank.kernels.exp`), or, here, of one by the C library: 6 u W + 2e-14 + u for both together.
      Beyond W = 700 no power is looked at: the chance is 0 on one side and exp(-700), rounded, on the other,
      or 1 within u.
    * A change, a chance of powers and their product with norm and sigma are fewer than 12 operations on
      either side, each wrong by u: 24 u.
    * Adding up p terms on either side, in any order: 2 p u.

    All of it is relative to the sum of the sizes of the terms, since slopes may cancel. Curvatures have a
    second chance as a factor, which as 1 - rho is wrong by what rho is wrong by and u, absolutely: they are
    wrong by at most twice as much, relative to the sum without that factor.
    """
    n = len(grades)
    pairs, sizes, nothing = np.zeros(n), np.zeros(n), np.zeros(n)
    for i, j, change, rho in weighed_pairs(grades, scores, swap_change, sigma, truncation, order=order):
        for k in (i, j):
            pairs[k] += 1
            sizes[k] += sigma * change * rho
            nothing[k] += sigma * change * math.exp(-700)
    width = min(sigma * (max(scores) - min(scores)), 700.0)
    share = 2.0**-53 * (6 * width + 25 + 2 * pairs) + 2e-14
    slopes = share * (sizes + nothing) + nothing
    return slopes, 2 * sigma * slopes


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
