"""What is the score of McRank and OrdinalMcRank worth as a grade, and does making it one change the ranking?

The score is the mean of the probabilities, which go by the grades that held-out rows of such a score had.
Beside it: the mean of the probabilities as they were learned, which was the score before. Artificial sets of
the kinds of `grades.py`, but other draws, and cuts of the training and validation files of DATA.

    python benchmarks/expected_grades.py --data DATA --out docs/results/expected_grades
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import Any

import numpy as np

import mcrank
from odds import RANKERS, sets
from report import machine, write
from sets import Parts

FIRST, DRAWS = 81, 8
TENTHS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", help="folder of data sets; their test files are not looked at")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each kind")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # that validation parts are small is what this is about
    rows, swapped = [], 0
    for kind, draws in sets(args.data, range(FIRST, FIRST + args.draws)):
        told = [outcome(name, draw()) for draw in draws for name in RANKERS]
        swapped += sum(one["swapped"] for one in told)
        for name in RANKERS:
            own = [one for one in told if one["ranker"] == name and one["odds"]]
            if own:
                means = {key: float(np.mean([one[key] for one in own])) for key in own[0] if "," in key}
                rows.append({"ranker": name, "set": kind, "draws": len(own)} | means)
    verdicts = [
        f"{args.draws} draws of each kind from number {FIRST} on; two grades need no odds and are left out",
        f"rows of a query that are in another order than by what was learned: {swapped} pairs",
        "off by tenths: rows cut into tenths by the score, mean distance of mean score and mean grade",
    ]
    for name in RANKERS:
        own = [row for row in rows if row["ranker"] == name]
        better = sum(row["off, by tenths"] < row["off, as learned"] for row in own)
        gain = np.mean([row["NDCG@10, of gains"] - row["NDCG@10, of gains as learned"] for row in own])
        verdicts.append(
            f"{name}: nearer to the grades than as learned on {better} of {len(own)} kinds; relevance='gain' "
            f"changes NDCG@10 by {gain:+.4f}, mean over kinds"
        )
    write("The score as a grade", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


def outcome(name: str, parts: Parts) -> dict[str, Any]:
    """Train on a draw; tell how far both scores are off, and how they rank."""
    train, valid, test = parts
    ranker = RANKERS[name](early_stopping_rounds=100).fit(train, valid=valid)
    head, raw, grades = ranker.head_, ranker.scorer_.raw(test.X), test.y
    learned = head.as_learned
    gains = head.worth("gain", "this")
    ndcg = mcrank.NDCG(k=10).on(test)
    score, before = head.rank(raw), learned.rank(raw)
    return {
        "ranker": name,
        "odds": head.odds is not None,
        "swapped": swapped(score, before, test.offsets),
        "off, by tenths": off(score, grades),
        "off, as learned": off(before, grades),
        "NDCG@10, of grades": ndcg.mean(score),
        "NDCG@10, of gains": ndcg.mean(np.ascontiguousarray(head.expected(raw, gains))),
        "NDCG@10, of gains as learned": ndcg.mean(np.ascontiguousarray(learned.expected(raw, gains))),
    }


def off(scores: np.ndarray, grades: np.ndarray) -> float:
    """Mean distance of mean score and mean grade, over tenths of the rows."""
    parts = np.array_split(np.argsort(scores, kind="stable"), TENTHS)
    return float(np.mean([abs(scores[part].mean() - grades[part].mean()) for part in parts]))


def swapped(scores: np.ndarray, others: np.ndarray, offsets: np.ndarray) -> int:
    """Pairs of rows of a query that two scores order otherwise; equal scores keep the order of the file."""
    count = 0
    for start, end in itertools.pairwise(offsets):
        first = np.argsort(-scores[start:end], kind="stable")
        rank = np.argsort(np.argsort(-others[start:end], kind="stable"))[first]
        count += int((rank[:, None] > rank[None, :])[np.triu_indices(len(rank), 1)].sum())
    return count


if __name__ == "__main__":
    main()
