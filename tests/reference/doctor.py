"""Figures of the doctor, by loops over lists: what is counted is what the words say, and nothing else."""

from __future__ import annotations

import math
from collections import Counter, defaultdict


def same(a, b):
    return a == b or (a != a and b != b)


def naive_figures(X, y, qid):
    """Return the figures of one data set by the name of their check, of lists in the caller's order."""
    rows = defaultdict(list)
    for row, query in enumerate(qid):
        rows[query].append(row)
    queries = list(rows.values())
    graded = [[y[i] for i in of] for of in queries]
    found = {
        "empty-queries": sum(max(grades) == 0 for grades in graded),
        "one-row-queries": sum(len(grades) == 1 for grades in graded),
        "short-queries": sum(len(grades) < 10 for grades in graded),
        "single-grade-queries": sum(len(set(grades)) == 1 and grades[0] > 0 for grades in graded),
        "large-queries": sum(len(grades) > 10_000 for grades in graded),
    }
    repeats, torn = 0, []
    for of in queries:
        for place, i in enumerate(of):
            twins = [j for j in of if j != i and all(map(same, X[i], X[j]))]
            repeats += any(j in twins for j in of[:place])
            if any(y[j] != y[i] for j in twins):
                torn.append(i)
    found["duplicate-rows"] = repeats
    found["contradicting-rows"] = sorted(torn)
    columns = list(zip(*X, strict=True))
    kinds = [{str(value) for value in column} for column in columns]
    found["constant-features"] = [j for j, kind in enumerate(kinds) if len(kind) == 1]
    found["missing-values"] = {j: share for j, c in enumerate(columns) if (share := _missing(c) / len(y))}
    return found


def naive_summary(X, y, qid):
    """Return what stands above the findings."""
    sizes = sorted(Counter(qid).values())
    middle = len(sizes) // 2
    median = sizes[middle] if len(sizes) % 2 else (sizes[middle - 1] + sizes[middle]) / 2
    return {
        "rows": len(y),
        "queries": len(sizes),
        "features": len(X[0]),
        "grade_rows": dict(sorted(Counter(y).items())),
        "rows_per_query": {"min": sizes[0], "median": median, "mean": len(y) / len(sizes), "max": sizes[-1]},
        "missing": sum(_missing(row) for row in X),
    }


def naive_feature_ndcg(X, y, qid, feature, falling):
    """NDCG@10 of one feature over queries of several grades; ties in the worst order, missing values last."""
    queries = defaultdict(list)
    for row, query in enumerate(qid):
        queries[query].append(row)
    values = []
    for of in queries.values():
        if len({y[i] for i in of}) == 1:
            continue

        def place(i):
            x = X[i][feature]
            return (math.inf if x != x else x if falling else -x, y[i])

        ranked = [y[i] for i in sorted(of, key=place)]
        values.append(_dcg(ranked) / _dcg(sorted(ranked, reverse=True)))
    return sum(values) / len(values)


def naive_shared(a, b, qid_a, qid_b):
    """Query ids in both splits; rows of the second with features of the first, under those ids and not."""
    known = {tuple("nan" if x != x else x + 0.0 for x in row) for row in a}
    common = {str(q) for q in qid_a} & {str(q) for q in qid_b}
    counts = [0, 0]
    for row, query in zip(b, qid_b, strict=True):
        telling = sum(x == x and x != 0 for x in row) >= min(3, len(row))
        if telling and tuple("nan" if x != x else x + 0.0 for x in row) in known:
            counts[str(query) not in common] += 1
    return len(common), *counts


def _dcg(grades):
    return sum((2**grade - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades[:10]))


def _missing(values):
    return sum(value != value for value in values)
