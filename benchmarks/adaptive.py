"""Adaptive base classes (ABC-boost) against plain McRank, at equal numbers of trees: log-loss and NDCG.

With five grades a plain round grows five trees and an adaptive one four, so 500 adaptive rounds are as large
a model as 400 plain ones. The paired test is against plain boosting with the same kind of split.

    python benchmarks/adaptive.py --out docs/results/adaptive
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import mcrank
from mcrank.metrics.dcg import NDCG
from mcrank.stats import paired_t
from report import machine, write

ADAPTIVE: dict[str, Any] = {"base_class": "adaptive"}
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "adaptive, fast search (s=2, g=5)": ADAPTIVE,
    "adaptive, worst class (s=1, g=0)": ADAPTIVE | {"base_search": 1, "base_gap": 0},
    "adaptive, exhaustive (s=5, g=0)": ADAPTIVE | {"base_search": 5, "base_gap": 0},
}


def log_loss(ranker: Any, data: mcrank.Dataset) -> float:
    """Mean of -log p[y]."""
    places = np.searchsorted(ranker.grades_, data.y)
    chances = ranker.predict_proba(data)[np.arange(len(data)), places]
    return float(-np.log(np.maximum(chances, 1e-300)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--queries", type=int, default=1000, help="training queries; twice as many are tested"
    )
    parser.add_argument("--rounds", type=int, default=400, help="of plain boosting")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    train, _, test = mcrank.make_artificial(args.queries, 1, 2 * args.queries, seed=1)
    bound = NDCG(k=10).on(test)
    rows = []
    for split in ("mse", "newton"):
        base: dict[Any, float] = {}
        for way, options in WAYS.items():
            rounds = args.rounds * 5 // 4 if options else args.rounds
            began = time.perf_counter()
            ranker = mcrank.McRank(n_estimators=rounds, split=split, n_jobs=args.jobs, **options).fit(train)
            seconds = time.perf_counter() - began
            values = bound.per_query(ranker.predict(test))
            by_query = dict(zip(test.qids.tolist(), values.tolist(), strict=True))
            base = base or by_query
            rows.append(
                {
                    "split": split,
                    "base class": way,
                    "trees": ranker.forest_.n_trees,
                    "training log-loss": log_loss(ranker, train),
                    "test log-loss": log_loss(ranker, test),
                    "NDCG@10 %": 100 * values.mean(),
                    "p against plain (two-sided, paired)": paired_t(by_query, base).p if options else None,
                    "seconds": seconds,
                }
            )
            print(rows[-1])
    result = {"machine": machine(), "rows": rows, "verdicts": [], "arguments": vars(args)}
    write("Adaptive base classes at equal numbers of trees, artificial data", result, args.out)


if __name__ == "__main__":
    main()
