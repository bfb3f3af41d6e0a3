"""Training from disk under a limit of memory against training in memory: model files, CPU a round, peaks.

The limit is one of private memory (RLIMIT_DATA); pages of files, which the system can drop, do not count. CPU
seconds of a round are the median of differences, so that reading and binning are told apart.

    python benchmarks/disk.py --rows 900000 --features 136 --limit 450MiB --out results/disk
    python benchmarks/disk.py --rows 10000000 --features 50 --limit 2GB --disk-only
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from report import machine, write

_PART = 100_000  # rows made and written at a time


def make(path: Path, rows: int, features: int) -> None:
    """Write a Parquet file of random rows, some values missing, as one row group for each million."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [("qid", pa.int64()), ("label", pa.int8())] + [(f"x{j}", pa.float32()) for j in range(features)]
    )
    with pq.ParquetWriter(path, schema, compression="snappy") as out:
        for first in range(0, rows, _PART):
            rng, n = np.random.default_rng(first), min(_PART, rows - first)
            X = rng.random((n, features), dtype=np.float32)
            score = X[:, :10].sum(axis=1) + X[:, 0] * X[:, 1]
            y = np.digitize(score, [4.5, 5.3, 6.1, 6.9]).astype(np.int8)
            X[rng.random(X.shape) < 0.01] = np.nan
            columns = [np.arange(first, first + n) // 50, y, *np.ascontiguousarray(X.T)]
            out.write_table(pa.table(columns, schema=schema), row_group_size=1 << 20)


def status() -> dict[str, float]:
    """Memory of this process in MB: private now, and the peak of all."""
    text = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return {name: int(fields[name].split()[0]) / 1024 for name in ("RssAnon", "VmHWM", "VmData")}


def train(path: str, where: str, rounds: int, threads: int, memory: str | None) -> dict[str, Any]:
    """Train in this process; return what it took."""
    import mcrank
    from mcrank.rankers.registry import to_bytes

    stamps: list[tuple[float, float]] = []
    most = {"RssAnon": 0.0, "VmData": 0.0}

    def after(event: Any) -> bool:
        stamps.append((time.process_time(), time.perf_counter()))
        now = status()
        most.update({name: max(most[name], now[name]) for name in most})
        print(f"\r{where}: round {event.round} of {rounds}", end="", file=sys.stderr, flush=True)
        return False

    began = time.process_time()
    source: Any = mcrank.scan(path) if where == "disk" else mcrank.read(path)
    ranker = mcrank.McRank(n_estimators=rounds, n_jobs=threads)
    ranker.fit(source, callback=after, memory=memory if where == "disk" else None)
    print(file=sys.stderr)
    cpu = [b[0] - a[0] for a, b in pairwise(stamps)]
    wall = [b[1] - a[1] for a, b in pairwise(stamps)]
    return {
        "where": where,
        "model": hashlib.sha256(to_bytes(ranker)).hexdigest()[:16],
        "CPU s a round": float(np.median(cpu)),
        "least": float(np.min(cpu)),
        "wall s a round": float(np.median(wall)),
        "CPU s before": stamps[0][0] - began - float(np.median(cpu)),
        "private MB": most["RssAnon"],
        "peak MB": status()["VmHWM"],
    }


def child(args: argparse.Namespace, path: str, where: str) -> dict[str, Any]:
    """Train in a process of its own, from disk under the limit."""
    command = [sys.executable, __file__, "--child", where, path, "--rounds", str(args.rounds)]
    command += ["--threads", str(args.threads), "--limit", args.limit]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        return {"where": where, "model": f"failed ({done.returncode})"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=900_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", default="450MiB")
    parser.add_argument("--disk-only", action="store_true")
    parser.add_argument("--data", help="keep the data in this file, and use it if it is there")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    if args.child:
        from mcrank.memory import bytes_of

        where, path = args.child
        if where == "disk":
            limit = bytes_of(args.limit, "--limit")
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        print(json.dumps(train(path, where, args.rounds, args.threads, args.limit)))
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        path = Path(args.data or Path(folder, "train.parquet"))
        if not path.exists():
            make(path, args.rows, args.features)
        found = [
            child(args, str(path), where) for where in (["disk"] if args.disk_only else ["memory", "disk"])
        ]
    verdicts = []
    if len(found) == 2 and "least" in found[1]:
        same = found[0]["model"] == found[1]["model"]
        verdicts.append(f"model files are {'equal' if same else 'NOT equal'}")
        verdicts.append(f"CPU of a round: {found[1]['least'] / found[0]['least']:.2f} times that in memory")
    title = f"From disk: {args.rows} rows of {args.features} features, {args.limit} of private memory"
    write(title, {"machine": machine(), "rows": found, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
