"""Time and memory of training against rows, features and leaves; growth should be linear or better.

Each setting runs in a process of its own, so that its peak memory is its own.

    python benchmarks/scaling.py --out results/scaling
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import resource
import time
from typing import Any

import numpy as np

from report import machine, write

BASE = {"rows": 200_000, "features": 50, "leaves": 10}
STEPS = {
    "rows": [50_000, 100_000, 200_000, 400_000, 800_000],
    "features": [25, 50, 100, 200],
    "leaves": [5, 10, 20, 40, 80],
}


def measure(setting: dict[str, int], rounds: int, pipe: Any) -> None:
    import mcrank

    rng = np.random.default_rng(0)
    rows, features = setting["rows"], setting["features"]
    X = rng.random((rows, features), dtype=np.float32)
    score = X[:, :10].sum(axis=1) + X[:, 0] * X[:, 1]
    y = np.digitize(score, np.quantile(score, [0.3, 0.6, 0.85, 0.95]))
    data = mcrank.Dataset(X, y, np.arange(rows) // 50)
    mcrank.McRank(n_estimators=1, n_jobs=1).fit(X[:2000], y[:2000], qid=np.arange(2000) // 50)  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stamps: list[float] = []
    ranker = mcrank.McRank(n_estimators=rounds, num_leaves=setting["leaves"], n_jobs=1)
    began = time.process_time()
    ranker.fit(data, callback=lambda event: stamps.append(time.process_time()) or False)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send((float(np.median(np.diff(stamps))), stamps[0] - began, (after - before) / 1024))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    context = mp.get_context("spawn")
    rows: list[dict[str, Any]] = []
    verdicts = []
    for axis, steps in STEPS.items():
        points = []
        for value in steps:
            setting = {**BASE, axis: value}
            ours, theirs = context.Pipe()
            process = context.Process(target=measure, args=(setting, args.rounds, theirs))
            process.start()
            per_round, first, memory = ours.recv()
            process.join()
            expected = (
                2 * setting["rows"] * setting["features"] + 20 * 5 * setting["rows"]
            ) / 2**20  # engine's budget: 2 bytes per matrix entry, 20 bytes x classes per row
            points.append((value, per_round))
            rows.append(
                {"axis": axis, **setting, "ms per round": 1000 * per_round, "first round ms": 1000 * first,
                 "training MiB": memory, "budget MiB": expected}
            )  # fmt: skip
        growth = np.polyfit(np.log([p[0] for p in points]), np.log([p[1] for p in points]), 1)[0]
        verdicts.append(f"time grows with {axis} to the power {growth:.2f}")
    write(
        "Scaling of training, one thread",
        {"machine": machine(), "rows": rows, "verdicts": verdicts},
        args.out,
    )


if __name__ == "__main__":
    main()
