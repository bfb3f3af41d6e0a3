"""Training on a busy machine: several processes at once, and threads beside busy loops.

Threads cannot gain where there is no core for them, but they must not cost: CPU time and wall time are given
as ratios, of processes at once to the same one after another, and of two threads to one beside as many busy
loops as there are cores. Every process also tells what it learned: one model per job, whatever the company.

    python benchmarks/busy.py --out results/busy
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from report import machine, write

FEATURES = 64
JOBS = {
    "LambdaMART, 31 leaves": {"ranker": "LambdaMART", "rows": 30_000, "num_leaves": 31, "n_estimators": 20},
    "LambdaMART, 255 leaves": {"ranker": "LambdaMART", "rows": 30_000, "num_leaves": 255, "n_estimators": 8},
    "LambdaMART, 100,000 rows": {
        "ranker": "LambdaMART",
        "rows": 100_000,
        "num_leaves": 31,
        "n_estimators": 20,
    },
    "McRank, 10 leaves": {"ranker": "McRank", "rows": 30_000, "num_leaves": 10, "n_estimators": 20},
    "LambdaMART, small": {"ranker": "LambdaMART", "rows": 9_000, "num_leaves": 31, "n_estimators": 50},
}
# Ends when its standard input does: never left behind.
LOOP = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True: pass
"""


def serve(job: dict[str, Any]) -> None:
    """Be a process of the benchmark: train whenever told to, on so many threads, and say what it took."""
    import mcrank

    options = dict(job)
    kind, rows = getattr(mcrank, options.pop("ranker")), options.pop("rows")
    stream = np.random.default_rng(0)
    X = stream.normal(size=(rows, FEATURES)).astype(np.float32)
    grades = X[:, :20].sum(axis=1) / 4 + X[:, 0] * X[:, 1] + stream.normal(size=rows)
    data = mcrank.Dataset(X, np.clip(np.rint(grades + 1), 0, 4), np.arange(rows) // 60)
    for n_jobs in (1, 2):
        kind(**{**options, "n_estimators": 1}, n_jobs=n_jobs).fit(data)  # kernels compiled, threads started
    print("ready", flush=True)
    for line in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        ranker = kind(**options, n_jobs=int(line) or None).fit(data)
        taken = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        learned = b"".join(array.tobytes() for array in ranker.forest_.to_arrays().values())
        print(json.dumps({**taken, "model": hashlib.sha256(learned).hexdigest()}), flush=True)


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process; end it when left."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, *words], stdin=pipe, stdout=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(processes: list[subprocess.Popen[str]], n_jobs: int = 0) -> dict[str, Any]:
    """Have processes train at once; total CPU, wall time and the models."""
    began = time.perf_counter()
    for process in processes:
        process.stdin.write(f"{n_jobs}\n")
        process.stdin.flush()
    told = [json.loads(process.stdout.readline()) for process in processes]
    wall = time.perf_counter() - began
    return {"cpu": sum(one["cpu"] for one in told), "wall": wall, "models": {one["model"] for one in told}}


def add(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One after another, as one."""
    totals = {key: sum(one[key] for one in runs) for key in ("cpu", "wall")}
    return {**totals, "models": set.union(*(one["models"] for one in runs))}


def compare(name: str, turns: int, count: int, loops: int) -> list[dict[str, Any]]:
    """Rows of one job: both questions, every turn asking each side once."""
    found: dict[str, list[dict[str, Any]]] = {"in turn": [], "at once": [], "1": [], "2": []}
    with ExitStack() as stack:
        words = (__file__, "--serve", json.dumps(JOBS[name]))
        processes = [stack.enter_context(started(*words)) for _ in range(count)]
        for process in processes:
            process.stdout.readline()
        for _ in range(turns):
            found["in turn"].append(add([run([process]) for process in processes]))
            found["at once"].append(run(processes))
            with ExitStack() as busy:
                for _ in range(loops):
                    busy.enter_context(started("-S", "-c", LOOP))
                for threads in (1, 2):
                    found[str(threads)].append(run(processes[:1], threads))
    models = set.union(*(one["models"] for side in found.values() for one in side))
    rows = []
    for question, base, other in (
        (f"{count} processes at once to one after another", "in turn", "at once"),
        (f"2 threads to 1, beside {loops} busy loops", "1", "2"),
    ):
        row: dict[str, Any] = {"job": name, "ratio of": question}
        for key in ("cpu", "wall"):
            ratios = [b[key] / a[key] for a, b in zip(found[base], found[other], strict=True)]
            row[f"{key} s"] = float(np.median([a[key] for a in found[base]]))
            row |= {f"{key} ratio": float(np.median(ratios)), f"{key} worst": max(ratios)}
            row[f"{key} ratios"] = ratios
        rows.append({**row, "models": len(models)})
    return rows


def command_line(about: str, jobs: dict[str, Any], turns: int) -> argparse.ArgumentParser:
    """Options of a benchmark that trains beside busy loops."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--turns", type=int, default=turns)
    parser.add_argument("--loops", type=int, default=machine()["cores"], help="busy loops  [default: cores]")
    parser.add_argument("--job", action="append", choices=list(jobs), help="only this one; may be repeated")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = command_line(__doc__, JOBS, 5)
    parser.add_argument("--processes", type=int, default=4)
    args = parser.parse_args()
    if args.serve:
        serve(json.loads(args.serve))
        return
    before = os.getloadavg()[0]
    rows = [row for name in args.job or JOBS for row in compare(name, args.turns, args.processes, args.loops)]
    worst = max(rows, key=lambda row: row["cpu ratio"])
    verdicts = [
        f"{args.turns} turn(s); other work on the machine: a load average of {before:.1f} before",
        f"at most {worst['cpu ratio']:.2f} times the CPU time ({worst['job']}; {worst['ratio of']})",
        "one model per job in every company" if all(row["models"] == 1 for row in rows) else "MODELS DIFFER",
    ]
    write("Training on a busy machine", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
