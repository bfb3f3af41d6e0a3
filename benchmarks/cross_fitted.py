"""Cross-fitted forests score at the speed of one forest of that many trees: CPU time of both, in turns.

The other one is trained without held-out queries, so its probabilities are not corrected, which takes a
little time; forests are timed by themselves, too.

python benchmarks/cross_fitted.py --out docs/results/cross_fitted
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import mcrank
from report import machine, write

FOLDS = 4
KINDS: dict[str, type[Any]] = {"lambdamart": mcrank.LambdaMART, "mcrank": mcrank.McRank}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50, help="rounds of the cross-fitted ranker")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    train, _, _ = mcrank.make_artificial(200, 1, 1, docs_per_query=25, n_features=50, seed=1)
    X = np.random.default_rng(1).uniform(-1, 1, size=(args.rows, 50)).astype(np.float32)
    rows = [measured(name, train, X, args) for name in KINDS]
    verdicts = [
        f"{row['ranker']}: {row['ratio']:.3f} of the time of one forest of as many trees, "
        f"without what is made of their sums {row['ratio, forests alone']:.3f}"
        for row in rows
    ] + [f"smallest of {args.turns} turns of each, taken alternately; one thread, {args.rows:,} rows"]
    write(
        "Scoring a cross-fitted forest", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out
    )


def measured(name: str, train: mcrank.Dataset, X: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    """Score with a cross-fitted ranker, and with one that was trained once for as many trees."""
    # The held-out queries choose its rounds; the other one has four times as many.
    parted = KINDS[name](n_estimators=args.rounds, n_jobs=1).fit(train, folds=FOLDS)
    single = KINDS[name](n_estimators=FOLDS * parted.best_round_, n_jobs=1).fit(train)
    if parted.forest_.n_trees != single.forest_.n_trees:
        raise SystemExit(f"{parted.forest_.n_trees} and {single.forest_.n_trees} trees")
    best: dict[tuple[str, str], float] = {}
    for _ in range(args.turns):
        for way, ranker in (("cross-fitted", parted), ("single", single)):
            for what, score in (("predict", ranker.predict), ("forest", ranker.scorer_.raw)):
                began = time.process_time()
                score(X)
                best[way, what] = min(best.get((way, what), np.inf), time.process_time() - began)
    return {
        "ranker": name,
        "trees": parted.forest_.n_trees,
        "leaves, cross-fitted": int((parted.forest_.feature < 0).sum()),
        "leaves, single": int((single.forest_.feature < 0).sum()),
        "ms, cross-fitted": round(1000 * best["cross-fitted", "predict"], 1),
        "ms, single": round(1000 * best["single", "predict"], 1),
        "ratio": round(best["cross-fitted", "predict"] / best["single", "predict"], 3),
        "ratio, forests alone": round(best["cross-fitted", "forest"] / best["single", "forest"], 3),
    }


if __name__ == "__main__":
    main()
