"""Binning: from a matrix to bins, mcrank against LightGBM's Dataset, in turns.

Rows are shaped like MSLR-WEB, 255 bins, nothing but binning is timed: `find_bins` and `bin_dataset` here,
`Dataset.construct` there (which looks for bins in a sample of 200,000 rows). CPU time with one thread, wall
time with more; the least of the turns counts.

    python benchmarks/binning.py --out results/binning
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import lightgbm
import numpy as np

from mcrank.boosting.binning import bin_dataset, find_bins
from rankers import web_like
from report import machine, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--max-bins", type=int, default=255)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    data = web_like(args.rows, 1, args.features)
    grades = data.y.astype(np.float32)
    rows, verdicts = [], []
    for threads in args.threads:
        clock = time.process_time if threads == 1 else time.perf_counter
        params = {"max_bin": args.max_bins, "num_threads": threads, "verbose": -1}

        def ours(binning: str, threads: int = threads) -> None:
            bin_dataset(data, find_bins(data.X, args.max_bins, binning, threads), threads)

        def theirs(params: dict[str, object] = params) -> None:
            lightgbm.Dataset(data.X, grades, params=params).construct()

        systems: dict[str, Callable[[], None]] = {
            "mcrank, quantile": lambda ours=ours: ours("quantile"),
            "mcrank, adaptive": lambda ours=ours: ours("adaptive"),
            "LightGBM": theirs,
        }
        times: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(args.turns):
            for name, run in systems.items():
                began = clock()
                run()
                times[name].append(clock() - began)
        least = {name: min(taken) for name, taken in times.items()}
        for name, seconds in least.items():
            rows.append(
                {"threads": threads, "system": name, "seconds": seconds,
                 "ns a value": 1e9 * seconds / data.X.size, "ratio": least["LightGBM"] / seconds}
            )  # fmt: skip
        slowest = max(seconds for name, seconds in least.items() if name != "LightGBM")
        verdicts.append(f"{threads} thread(s): {least['LightGBM'] / slowest:.1f}x LightGBM; the bar is 4x")
    write(f"Binning, {data}", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
