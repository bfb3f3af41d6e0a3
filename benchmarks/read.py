"""Reading speed: LETOR text of the shape of MSLR-WEB, read by mcrank and by the readers of its peers.

Every reader runs in a process of its own, on a file that lies in the page cache, on one thread, in CPU time
(other work on the machine then disturbs less); mcrank on more threads too, in wall time. Readers take turns
and the median of the turns counts; scikit-learn, the slowest by far, has one turn. Memory is the peak of the
process over its size just before the reading. LightGBM refuses ``qid:``, so it gets the file without, and its
time holds the binning that it does not separate from reading.

    python benchmarks/read.py                          # 1 GB, Markdown on stdout
    python benchmarks/read.py --megabytes 100 --out docs/results/read
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import report

FEATURES = 136
BAR_RATIO, BAR_SPEED, BAR_MEMORY, BAR_CACHED = 5.0, 300e6, 1.3, 0.05
PEERS = ("scikit-learn", "XGBoost", "LightGBM", "CatBoost")


def make_rows(rows: int, rng: np.random.Generator) -> list[str]:
    """Feature parts of rows, with the shares, lengths and signs of MSLR-WEB's values.

    Its features come in groups of five streams (body, anchor, title, url, whole document): counts, ratios,
    scores, and language-model scores, which are negative. A stream that lacks the query's words is 0 in most
    groups.
    """
    lacking = rng.random((rows, 5)) < (0.1, 0.75, 0.3, 0.5, 0.08)
    columns = []
    for j in range(FEATURES):
        group, stream = divmod(j, 5)
        zero = rng.random(rows) < np.where(lacking[:, stream], 0.95, 0.08)
        if group in (22, 23, 24):
            texts = [f"-{v:.6f}" for v in rng.gamma(4.0, 4.0, rows)]
            zero[:] = False
        elif group in (3, 20, 21):
            texts = [f"{v:.6f}" for v in rng.gamma(4.0, 4.0, rows)]
        elif 8 <= group <= 18:
            texts = [f"{v:.6f}".rstrip("0") for v in rng.gamma(1.0, 0.8, rows)]
        elif group in (4, 25):
            texts = [str(v) for v in rng.geometric(0.002, rows)]
        else:
            texts = [str(v) for v in rng.geometric(0.25, rows)]
        columns.append([f"{j + 1}:{'0' if z else text}" for z, text in zip(zero, texts, strict=True)])
    return [" ".join(row) for row in zip(*columns, strict=True)]


def make_file(path: Path, size: int) -> None:
    """Write about ``size`` bytes: queries of about 120 rows, new query ids and grades all through."""
    rng = np.random.default_rng(2007)
    rows = make_rows(20_000, rng)
    written, query, left = 0, 0, 0
    with open(path, "w") as out:
        while written < size:
            lines = []
            for features in rows:
                if left == 0:
                    query, left = query + 1, int(rng.integers(40, 200))
                left -= 1
                lines.append(f"{rng.integers(0, 5)} qid:{query} {features} \n")
            written += out.write("".join(lines))


def strip_qid(path: Path, target: Path) -> None:
    pattern = re.compile(r" qid:\d+")
    with open(path) as lines, open(target, "w") as out:
        out.writelines(pattern.sub("", line, count=1) for line in lines)


def read_with(name: str, path: str, threads: int) -> Any:
    if name.startswith("mcrank"):
        import mcrank

        return mcrank.read(path, n_jobs=threads, cache="map" if "cached" in name else False)
    if name == "scikit-learn":
        from sklearn.datasets import load_svmlight_file

        return load_svmlight_file(path, dtype=np.float32, query_id=True)
    if name == "XGBoost":
        import xgboost

        return xgboost.DMatrix(f"{path}?format=libsvm", nthread=threads)
    if name == "LightGBM":
        import lightgbm

        parameters = {"num_threads": threads, "verbosity": -1}
        return lightgbm.Dataset(f"{path}.noqid", params=parameters).construct()
    import catboost

    return catboost.Pool(f"libsvm://{path}", thread_count=threads)


def memory(field: str) -> int:
    """Resident bytes now (VmRSS) or at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def child(name: str, path: str, small: str, threads: int) -> dict[str, Any]:
    """Read the small file to load and compile everything, then the large one with the clock on."""
    read_with(name, small, threads)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of importing and compiling
    resident = memory("VmRSS")
    start, start_cpu = time.perf_counter(), time.process_time()
    data = read_with(name, path, threads)
    wall, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    out = {"wall": wall, "cpu": cpu, "peak": memory("VmHWM") - resident}
    if name.startswith("mcrank"):
        out["matrix"] = data.X.nbytes
        # A fingerprint that the parent compares with a slow and simple reading of the same lines.
        out["sum"] = float(data.X[:1000].astype(np.float64).sum())
    return out


def run_child(name: str, path: Path, small: Path, threads: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", name, str(path), str(small), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def expected_sum(path: Path) -> float:
    total = 0.0
    with open(path) as lines:
        for _, line in zip(range(1000), lines, strict=False):
            total += sum(float(np.float32(word.split(":")[1])) for word in line.split()[2:])
    return total


def measure(folder: Path, megabytes: int, turns: int, threads: int, peers: list[str]) -> dict[str, Any]:
    path, small = folder / "large.txt", folder / "small.txt"
    make_file(path, megabytes * 10**6)
    make_file(small, 1000)
    for one in (path, small):
        strip_qid(one, Path(f"{one}.noqid"))
    size = path.stat().st_size
    jobs = [("mcrank", 1), ("mcrank", threads), *((peer, 1) for peer in peers)]
    results: dict[tuple[str, int], list[dict[str, Any]]] = {job: [] for job in jobs}
    for turn in range(turns):
        for name, used in jobs:
            if turn == 0 or name != "scikit-learn":
                into_page_cache(Path(f"{path}.noqid") if name == "LightGBM" else path)
                results[name, used].append(run_child(name, path, small, used))
    rows = []
    for (name, used), turned in results.items():
        key = "cpu" if used == 1 else "wall"
        seconds = statistics.median(r[key] for r in turned)
        row = {
            "reader": name,
            "threads": used,
            "clock": key,
            "seconds": seconds,
            "MB/s": size / seconds / 1e6,
        }
        row |= {"peak memory MB": max(r["peak"] for r in turned) / 1e6, "turns": [r[key] for r in turned]}
        rows.append(row)
    first = results["mcrank", 1][0]
    if abs(first["sum"] - expected_sum(path)) > 1e-6 * abs(first["sum"]):
        raise SystemExit("mcrank read other numbers than are in the file")
    run_child("mcrank cached", path, small, 1)
    cached = [run_child("mcrank cached", path, small, 1)["wall"] for _ in range(max(3, turns))]
    row = {
        "reader": "mcrank, cache mapped",
        "threads": 1,
        "clock": "wall",
        "seconds": statistics.median(cached),
    }
    rows.append({**row, "MB/s": None, "peak memory MB": None, "turns": cached})
    return {"bytes": size, "matrix": first["matrix"], "rows": rows, "machine": report.machine()}


def into_page_cache(path: Path) -> None:
    with open(path, "rb", buffering=0) as stream:
        while stream.read(1 << 24):
            pass


def verdicts(result: dict[str, Any], chunk: int) -> list[str]:
    one, many = result["rows"][0], result["rows"][1]
    fastest = max((row for row in result["rows"] if row["reader"] in PEERS), key=lambda row: row["MB/s"])
    cached = result["rows"][-1]["seconds"]
    ratio = one["MB/s"] / fastest["MB/s"]
    used = [
        (row["peak memory MB"] * 1e6 - (row["threads"] + 2) * chunk) / result["matrix"] for row in (one, many)
    ]

    def word(ok: bool) -> str:
        return "met" if ok else "MISSED"

    speed, top = one["MB/s"], fastest["reader"]
    return [
        f"file of {result['bytes'] / 1e6:.0f} MB, matrix of {result['matrix'] / 1e6:.0f} MB",
        f"{word(ratio >= BAR_RATIO)}: {ratio:.1f}x the fastest peer ({top}), bar {BAR_RATIO:g}x",
        f"{word(speed * 1e6 >= BAR_SPEED)}: {speed:.0f} MB/s on one thread, bar {BAR_SPEED / 1e6:.0f}",
        f"{word(max(used) <= BAR_MEMORY)}: peak memory less chunk buffers {max(used):.2f}x the float32 "
        f"matrix, bar {BAR_MEMORY:g}x",
        f"{word(cached < BAR_CACHED)}: cached load {cached * 1e3:.1f} ms, bar {BAR_CACHED * 1e3:.0f} ms",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument(
        "--turns", type=int, default=3, help="times that each reader reads; the median counts"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--folder", help="where to put the files for a while; default: the temporary folder")
    parser.add_argument("--out", help="also write OUT.json and OUT.md")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, path, small, threads = arguments.child
        print(json.dumps(child(name, path, small, int(threads))))
        return
    from mcrank.data.sources import CHUNK_BYTES

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        result = measure(
            Path(folder), arguments.megabytes, arguments.turns, arguments.threads, arguments.peers
        )
    result["verdicts"] = verdicts(result, CHUNK_BYTES)
    report.write("Reading LETOR text", result, arguments.out)


if __name__ == "__main__":
    main()
