"""AdaRank as its formulas read, query by query, with no rule but the published one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence


def adarank(
    table: Sequence[Sequence[float]],
    columns: Sequence[Sequence[float]],
    measure: Callable[[list[float]], Sequence[float]],
    update: str,
    rounds: int,
    alphas: Sequence[float] | None = None,
) -> tuple[list[int], list[float], list[list[float]]]:
    """Features, alphas and query weights of each round.

    ``table[k][q]`` is E of query q ordered by feature k, ``measure`` gives E of every query for any scores;
    ``alphas``, if given, take the place of the formula for alpha.
    """
    queries = range(len(table[0]))
    weights = [1 / len(queries)] * len(queries)
    scores = [0.0] * len(columns[0])
    chosen, used, seen = [], [], []
    for t in range(rounds):
        seen.append(weights)
        means = [sum(weights[q] * row[q] for q in queries) for row in table]
        k = means.index(max(means))
        above = sum(weights[q] * (1 + table[k][q]) for q in queries)
        below = sum(weights[q] * (1 - table[k][q]) for q in queries)
        alpha = 0.5 * math.log(above / below) if alphas is None else alphas[t]
        scores = [s + alpha * x for s, x in zip(scores, columns[k], strict=True)]
        values = measure(scores)
        if update == "paper":
            weights = [math.exp(-values[q]) for q in queries]
        else:
            weights = [weights[q] * math.exp(-alpha * values[q]) for q in queries]
        total = sum(weights)
        weights = [w / total for w in weights]
        chosen.append(k)
        used.append(alpha)
    return chosen, used, seen
