"""Measures written as their formulas, one query at a time, with no thought of speed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Ranked = Sequence[float]  # grades in ranked order


def discount(rank: int) -> float:
    return 1.0 / math.log2(1 + rank)


def dcg(ranked: Ranked, k: int | None) -> float:
    return sum((2**g - 1) * discount(r) for r, g in enumerate(ranked[:k], start=1))


def ndcg(ranked: Ranked, k: int | None) -> float:
    ideal = dcg(sorted(ranked, reverse=True), k)
    return dcg(ranked, k) / ideal if ideal > 0 else 0.0


def mean_ndcg(ranked: Ranked, k: None) -> float:
    return float(np.mean([ndcg(ranked, cut) for cut in range(1, len(ranked) + 1)]))


def precision(ranked: Ranked, k: int | None) -> float:
    return sum(g > 0 for g in ranked[:k]) / (k or len(ranked))


def recall(ranked: Ranked, k: int | None) -> float:
    relevant = sum(g > 0 for g in ranked)
    return sum(g > 0 for g in ranked[:k]) / relevant if relevant else 0.0


def relative_precision(ranked: Ranked, k: int | None) -> float:
    relevant = sum(g > 0 for g in ranked)
    return sum(g > 0 for g in ranked[:k]) / min(relevant, k or len(ranked)) if relevant else 0.0


def f_measure(ranked: Ranked, k: int | None) -> float:
    p, r = precision(ranked, k), recall(ranked, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def average_precision(ranked: Ranked, k: int | None) -> float:
    relevant = sum(g > 0 for g in ranked)
    hits = [precision(ranked, r) for r, g in enumerate(ranked[:k], start=1) if g > 0]
    return sum(hits) / relevant if relevant else 0.0


def reciprocal_rank(ranked: Ranked, k: int | None) -> float:
    return next((1 / r for r, g in enumerate(ranked[:k], start=1) if g > 0), 0.0)


def success(ranked: Ranked, k: int | None) -> float:
    return float(any(g > 0 for g in ranked[:k]))


def rbp(ranked: Ranked, k: int | None, p: float = 0.8) -> float:
    return sum((1 - p) * p ** (r - 1) for r, g in enumerate(ranked[:k], start=1) if g > 0)


def cascade(chances: Sequence[float], weights: Sequence[float]) -> float:
    total, reading = 0.0, 1.0
    for weight, chance in zip(weights, chances, strict=False):
        total += weight * reading * chance
        reading *= 1 - chance
    return total


def err(ranked: Ranked, k: int | None) -> float:
    chances = [(2**g - 1) / 16 for g in ranked[:k]]
    return cascade(chances, [1 / r for r in range(1, len(chances) + 1)])


def pfound(ranked: Ranked, k: int | None) -> float:
    return cascade(list(ranked[:k]), [0.85 ** (r - 1) for r in range(1, len(ranked) + 1)])


def best(ranked: Ranked, k: int | None) -> float:
    return max(ranked[:k], default=0.0)


def kendall(scores: Sequence[float], grades: Sequence[float]) -> float:
    """Tau-b, pair by pair."""
    pairs = list(itertools.combinations(range(len(scores)), 2))
    by_score = [np.sign(scores[i] - scores[j]) for i, j in pairs]
    by_grade = [np.sign(grades[i] - grades[j]) for i, j in pairs]
    untied = sum(map(abs, by_score)) * sum(map(abs, by_grade))
    return float(np.dot(by_score, by_grade) / math.sqrt(untied)) if untied else 0.0


# name without cut-off -> formula of (grades in ranked order, k)
FORMULAS: dict[str, Callable[[Ranked, int | None], float]] = {
    "ndcg": ndcg,
    "dcg": dcg,
    "meanndcg": mean_ndcg,
    "precision": precision,
    "recall": recall,
    "relative_p": relative_precision,
    "f": f_measure,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "success": success,
    "rbp(0.8)": rbp,
    "err": err,
    "best": best,
}


def stable_order(scores: Sequence[float]) -> list[int]:
    """Places by falling score, equal scores in their own order."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])


def tied_orders(scores: Sequence[float]) -> Iterator[list[int]]:
    """Every order that falling scores allow."""
    groups = [
        [i for i, score in enumerate(scores) if score == value] for value in sorted(set(scores), reverse=True)
    ]
    for choice in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for group in choice for i in group]


def swap_change(
    formula: Callable[[Ranked, int | None], float], ranked: Ranked, k: int | None, i: int, j: int
) -> float:
    swapped = list(ranked)
    swapped[i], swapped[j] = swapped[j], swapped[i]
    return abs(formula(swapped, k) - formula(ranked, k))
