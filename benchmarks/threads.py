"""What a second thread gains on an idle machine, and what it costs on a busy one.

One process trains again and again, with 1 thread and with 2 in turn, first with the machine to itself, then
beside as many busy loops as there are cores. Figures are medians over all rounds of all turns; the first
round of a training, which has the bins in it, is left out. Both must learn the same model.

    python benchmarks/threads.py --out results/threads
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import ExitStack
from typing import Any

import numpy as np

from busy import LOOP, command_line, started
from report import machine, write

JOBS = {
    "regression, 31 leaves": {"ranker": "RegressionRanker", "num_leaves": 31},
    "regression, 255 leaves": {"ranker": "RegressionRanker", "num_leaves": 255},
    "LambdaMART, 31 leaves": {"ranker": "LambdaMART", "num_leaves": 31},
    "LambdaMART, 255 leaves": {"ranker": "LambdaMART", "num_leaves": 255},
    "McRank, 10 leaves": {"ranker": "McRank", "num_leaves": 10, "rows": 500_000, "features": 50},
}
SHAPE = {"rows": 300_000, "features": 136}


def serve(job: dict[str, Any], rounds: int) -> None:
    """Be the process that trains: on so many threads as each line says."""
    import mcrank

    options = {**SHAPE, **job}
    kind, rows, features = (options.pop(key) for key in ("ranker", "rows", "features"))
    stream = np.random.default_rng(0)
    X = stream.normal(size=(rows, features)).astype(np.float32)
    X[:, ::3] = np.round(4 * X[:, ::3])
    grades = X[:, :20].sum(axis=1) / 4 + X[:, 0] * X[:, 1] + stream.normal(size=rows)
    data = mcrank.Dataset(X, np.clip(np.rint(grades + 1), 0, 4), np.arange(rows) // 120)
    fixed = {"min_samples_leaf": 20, "binning": "quantile", **options}

    def train(n_jobs: int, rounds: int) -> dict[str, Any]:
        marks: list[tuple[float, float]] = []

        def mark(_: Any) -> None:
            marks.append((time.process_time(), time.perf_counter()))

        ranker = getattr(mcrank, kind)(n_estimators=rounds, n_jobs=n_jobs, **fixed).fit(data, callback=mark)
        learned = b"".join(array.tobytes() for array in ranker.forest_.to_arrays().values())
        cpu, wall = (1000 * np.diff(np.array(marks), axis=0)).T.tolist()
        return {"cpu": cpu, "wall": wall, "model": hashlib.sha256(learned).hexdigest()}

    for n_jobs in (1, 2):
        train(n_jobs, 2)  # kernels compiled, threads started
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(train(int(line), rounds)), flush=True)


def measure(name: str, turns: int, rounds: int, loops: int) -> list[dict[str, Any]]:
    """Rows of one job: alone and beside busy loops."""
    rows = []
    with started(__file__, "--serve", name, "--rounds", str(rounds)) as process:
        process.stdout.readline()
        for beside in (0, loops):
            found: dict[int, dict[str, list[float]]] = {n: {"cpu": [], "wall": []} for n in (1, 2)}
            models = set()
            with ExitStack() as busy:
                for _ in range(beside):
                    busy.enter_context(started("-S", "-c", LOOP))
                for _ in range(turns):
                    for threads, times in found.items():
                        process.stdin.write(f"{threads}\n")
                        process.stdin.flush()
                        told = json.loads(process.stdout.readline())
                        models.add(told["model"])
                        for key, values in times.items():
                            values += told[key]
            one, two = ({key: float(np.median(v)) for key, v in times.items()} for times in found.values())
            rows.append(
                {
                    "job": name,
                    "busy loops": beside,
                    "ms, 1 thread": one["wall"],
                    "ms, 2 threads": two["wall"],
                    "speed-up": one["wall"] / two["wall"],
                    "CPU of 2 to 1": two["cpu"] / one["cpu"],
                    "models": len(models),
                    "turns": [found[1], found[2]],
                }
            )
    return rows


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = command_line(__doc__, JOBS, 7)
    parser.add_argument("--rounds", type=int, default=8)
    args = parser.parse_args()
    if args.serve:
        serve(JOBS[args.serve], args.rounds)
        return
    load = os.getloadavg()[0]
    rows = [row for name in args.job or JOBS for row in measure(name, args.turns, args.rounds, args.loops)]
    alone, beside = ([row for row in rows if bool(row["busy loops"]) is busy] for busy in (False, True))
    verdicts = [
        f"{args.turns} turns of {args.rounds} rounds; load average before: {load:.1f}",
        f"idle: a speed-up of at least {min(row['speed-up'] for row in alone):.2f}",
        f"busy: at most {max(row['CPU of 2 to 1'] for row in beside):.2f} times the CPU time and "
        f"{max(1 / row['speed-up'] for row in beside):.2f} times the wall time of 1 thread",
        "one model per job" if all(row["models"] == 1 for row in rows) else "MODELS DIFFER",
    ]
    result = {"machine": machine(), "rows": rows, "verdicts": verdicts}
    write("What a second thread gains, and costs", result, args.out)


if __name__ == "__main__":
    main()
