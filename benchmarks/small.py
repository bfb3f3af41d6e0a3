"""Small data: McRank against LightGBM's multiclass on one LETOR fold, total training time.

python benchmarks/small.py --data path/to/MQ2008/Fold1 --out results/small
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np

import mcrank
from report import machine, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a fold: train.txt and test.txt")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    train, test = (mcrank.read(Path(args.data) / f"{part}.txt") for part in ("train", "test"))
    classes = int(train.y.max()) + 1
    rows = []
    for threads in (1, 2):
        clock = time.process_time if threads == 1 else time.perf_counter
        params = {
            "objective": "multiclass", "num_class": classes, "num_leaves": 10, "max_bin": 255,
            "learning_rate": 0.05, "min_data_in_leaf": 10, "num_threads": threads, "verbose": -1,
        }  # fmt: skip

        def ours(threads: int = threads) -> np.ndarray:
            ranker = mcrank.McRank(n_estimators=args.rounds, num_leaves=10, max_bins=255, n_jobs=threads)
            return ranker.fit(train).predict(test)

        def theirs(params: dict[str, object] = params) -> np.ndarray:
            data = lightgbm.Dataset(train.X, train.y, params=params)
            booster = lightgbm.train(params, data, args.rounds)
            return booster.predict(test.X) @ np.arange(classes)

        systems: dict[str, Callable[[], np.ndarray]] = {"mcrank": ours, "LightGBM multiclass": theirs}
        times: dict[str, list[float]] = {name: [] for name in systems}
        scores = {name: run() for name, run in systems.items()}  # also warms up
        for _ in range(args.turns):
            for name, run in systems.items():
                began = clock()
                run()
                times[name].append(clock() - began)
        base = float(np.median(times["mcrank"]))
        for name, taken in times.items():
            median = float(np.median(taken))
            ndcg = mcrank.evaluate(scores[name], test, ["ndcg@10"]).mean["ndcg@10"]
            rows.append(
                {
                    "threads": threads,
                    "system": name,
                    "seconds": median,
                    "ratio": median / base,
                    "NDCG@10": ndcg,
                }
            )
    verdicts = [f"{r['threads']} thread(s): {r['ratio']:.2f}x" for r in rows if r["system"] != "mcrank"]
    write(f"Small data, {train}", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
