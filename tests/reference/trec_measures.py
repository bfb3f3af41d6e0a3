"""trec_eval's other measures, one document at a time, as their definitions read.

A query is its ranked documents, each a grade, None (outside the judgments) or -1 (drawn, not judged), and the
grades of the judged documents that were not retrieved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Ranked = Sequence[int | None]


def is_relevant(grade: int | None) -> bool:
    return grade is not None and grade > 0


def known(grade: int | None) -> bool:
    return grade is not None and grade >= 0


def grades_to_find(ranked: Ranked, missed: Sequence[int]) -> list[int]:
    return sorted((g for g in [*ranked, *missed] if is_relevant(g)), reverse=True)


def bpref(ranked: Ranked, missed: Sequence[int]) -> float:
    relevant = len(grades_to_find(ranked, missed))
    others = sum(known(g) and not is_relevant(g) for g in [*ranked, *missed])
    total, worse = 0.0, 0
    for grade in ranked:
        if is_relevant(grade):
            total += 1 - min(worse, relevant) / min(relevant, others) if worse else 1
        elif known(grade):
            worse += 1
    return total / relevant if relevant else 0.0


def infap(ranked: Ranked, missed: Sequence[int]) -> float:
    total = 0.0
    for rank, grade in enumerate(ranked, start=1):
        if is_relevant(grade):
            above = ranked[: rank - 1]
            hits, judged = sum(map(is_relevant, above)), sum(map(known, above))
            pooled = sum(g is not None for g in above)
            expected = (hits + 0.00001) / (judged + 0.00002)
            total += 1 / rank + (rank - 1) / rank * (pooled / (rank - 1) * expected) if rank > 1 else 1
    relevant = len(grades_to_find(ranked, missed))
    return total / relevant if relevant else 0.0


def rprec(ranked: Ranked, missed: Sequence[int], times: float = 1.0) -> float:
    cut = int(times * len(grades_to_find(ranked, missed)) + 0.9)
    return sum(map(is_relevant, ranked[:cut])) / cut if cut else 0.0


def iprec(ranked: Ranked, missed: Sequence[int], recall: float) -> float:
    needed = int(recall * len(grades_to_find(ranked, missed)) + 0.9)
    hits = [sum(map(is_relevant, ranked[:r])) for r in range(1, len(ranked) + 1)]
    return max((h / r for r, h in enumerate(hits, start=1) if h >= needed), default=0.0)


def eleven_points(ranked: Ranked, missed: Sequence[int]) -> float:
    return sum(iprec(ranked, missed, i / 10) for i in range(11)) / 11


def binary_g(ranked: Ranked, missed: Sequence[int]) -> float:
    total, others = 0.0, 0
    for grade in ranked:
        if is_relevant(grade):
            total += 1 / math.log2(2 + others)
        else:
            others += 1
    relevant = len(grades_to_find(ranked, missed))
    return total / relevant if relevant else 0.0


def dcg(gains: Sequence[int]) -> float:
    return sum(g / math.log2(r + 1) for r, g in enumerate(gains, start=1))


def gains_of(ranked: Ranked) -> list[int]:
    return [max(g or 0, 0) for g in ranked]


def g(ranked: Ranked, missed: Sequence[int]) -> float:
    ideal = grades_to_find(ranked, missed)
    gains, total = gains_of(ranked), 0.0
    for rank in range(1, len(gains) + 1):
        cost = sum(ideal[:rank]) + max(rank - len(ideal), 0)
        total += gains[rank - 1] / math.log2(2 + cost - sum(gains[:rank]))
    return total / sum(ideal) if ideal else 0.0


def ndcg_rel(ranked: Ranked, missed: Sequence[int]) -> float:
    ideal, gains = grades_to_find(ranked, missed), gains_of(ranked)
    ranks = [r for r, gain in enumerate(gains, start=1) if gain]
    values = [dcg(gains[:r]) / dcg(ideal[:r]) for r in ranks]
    values += [dcg(gains) / dcg(ideal) for _ in range(len(ideal) - len(ranks))]
    return sum(values) / len(ideal) if ideal else 0.0


def rndcg(ranked: Ranked, missed: Sequence[int]) -> float:
    ideal, gains = grades_to_find(ranked, missed), gains_of(ranked)
    points = [r for r in range(1, len(ideal) + 1) if r == len(ideal) or ideal[r] < ideal[r - 1]]
    values = [dcg(gains[:r]) / dcg(ideal[:r]) for r in points]
    if ideal and len(ranked) > len(ideal) + 1:
        values.append(dcg(gains) / dcg(ideal))
    return sum(values) / len(values) if values else 0.0


def judged_share(ranked: Ranked, missed: Sequence[int]) -> float:
    return sum(map(known, ranked[:3])) / 3


FORMULAS = {
    "bpref": bpref,
    "infap": infap,
    "rprec": rprec,
    "rprec(0.2)": lambda ranked, missed: rprec(ranked, missed, 0.2),
    "rprec(1.8)": lambda ranked, missed: rprec(ranked, missed, 1.8),
    "iprec": lambda ranked, missed: iprec(ranked, missed, 0.0),
    "iprec(0.3)": lambda ranked, missed: iprec(ranked, missed, 0.3),
    "iprec(1)": lambda ranked, missed: iprec(ranked, missed, 1.0),
    "11pt_avg": eleven_points,
    "bing": binary_g,
    "g": g,
    "ndcg_rel": ndcg_rel,
    "rndcg": rndcg,
    "judged@3": judged_share,
    "utility": lambda ranked, missed: sum(1 if is_relevant(g) else -1 for g in ranked),
    "num_q": lambda ranked, missed: 1,
    "num_ret": lambda ranked, missed: len(ranked),
    "num_rel": lambda ranked, missed: len(grades_to_find(ranked, missed)),
    "num_rel_ret": lambda ranked, missed: sum(map(is_relevant, ranked)),
    "num_nonrel_judged_ret": lambda ranked, missed: sum(known(g) and not is_relevant(g) for g in ranked),
    "num_unjudged_ret": lambda ranked, missed: sum(not known(g) for g in ranked),
}


def overlap(first: Sequence[str], second: Sequence[str], p: float) -> float:
    """Rank-biased overlap, extrapolated: sums over depths of the overlap of two sets."""
    short, long = sorted((first, second), key=len)
    s, n = len(short), len(long)
    x = [len(set(short[:d]) & set(long[:d])) for d in range(n + 1)]
    total = sum(x[d] / d * p**d for d in range(1, n + 1))
    total += sum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * total + ((x[n] - x[s]) / n + x[s] / s) * p**n
