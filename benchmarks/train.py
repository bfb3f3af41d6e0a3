"""Training speed against LightGBM, XGBoost, scikit-learn and CatBoost, side by side in one run.

The job is the artificial set of the McRank paper: 500,000 rows x 50 features, five grades, 10 leaves, 255
bins, learning rate 0.05. Each system trains in a process of its own; they take turns, and the median per
round over the turns counts (CPU time with one thread, wall time with more). Afterwards each trains the
same number of rounds once and its Expected Relevance is scored by NDCG@10 on test queries.

    python benchmarks/train.py --out results/train
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import mcrank
from mcrank.metrics.dcg import NDCG
from mcrank.stats.paired import t_test
from peers import SYSTEMS, Job, Worker
from report import machine, write

FULL = [s for s in SYSTEMS if s not in ("mcrank", "LightGBM quantized")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000, help="training queries of 50 rows")
    parser.add_argument("--turns", type=int, default=5, help="turns each system takes")
    parser.add_argument("--rounds", type=int, default=12, help="rounds per turn")
    parser.add_argument(
        "--quality-rounds", type=int, default=100, help="rounds of the NDCG comparison; 0: none"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        train, _, test = mcrank.make_artificial(n_train=args.queries, n_valid=1, n_test=2000, seed=1)
        for name, array in (("train_X", train.X), ("train_y", train.y.astype(np.int32)), ("test_X", test.X)):
            np.save(Path(folder) / f"{name}.npy", array)
        rows = []
        bound = NDCG(k=10).on(test)
        quality: dict[str, np.ndarray] = {}
        for threads in args.threads:
            job = Job(folder, threads)
            workers = {name: Worker(name, job) for name in args.systems}
            times: dict[str, list[float]] = {name: [] for name in workers}
            for _ in range(args.turns):
                for name, worker in workers.items():
                    times[name].append(worker.run(args.rounds)[0])
            if args.quality_rounds and threads == max(args.threads):
                for name, worker in workers.items():
                    _, proba = worker.run(args.quality_rounds, True)
                    scores = np.asarray(proba, dtype=np.float64) @ np.arange(5)
                    quality[name] = bound.per_query(scores)
            for worker in workers.values():
                worker.stop()
            ours = float(np.median(times["mcrank"]))
            for name, taken in times.items():
                median = float(np.median(taken))
                rows.append(
                    {"threads": threads, "system": name, "ms per round": 1000 * median, "ratio": median /
                    ours,
                     "turns": [round(1000 * t, 1) for t in taken]}
                )  # fmt: skip
    for row in rows:
        if (theirs := quality.get(str(row["system"]))) is not None:
            row[f"NDCG@10 after {args.quality_rounds}"] = float(theirs.mean())
            # Two-sided, paired by query: whether the gap to mcrank is more than luck.
            same = row["system"] == "mcrank"
            row["p of gap"] = None if same else t_test(theirs, quality["mcrank"]).p
    verdicts = []
    for threads in args.threads:
        ratio = {r["system"]: r["ratio"] for r in rows if r["threads"] == threads}
        beside = [(ratio[s], s, f"the fastest full-precision peer ({s})") for s in FULL if s in ratio]
        told = [min(beside)] if beside else []
        told += [(ratio[s], s, s) for s in ("LightGBM quantized",) if s in ratio]
        if told:
            verdicts.append(f"{threads} thread(s): " + ", ".join(f"{of:.2f}x {what}" for of, _, what in told))
    write("Training speed", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
