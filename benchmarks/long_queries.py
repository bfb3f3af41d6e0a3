"""One query of 1,000 to 100,000 rows: CPU time and memory of every ranker, of measures and of the doctor.

Each way runs in a child process of its own, sizes rising, each trained twice (the first time compiles). The
exponent is that of rows between the two largest sizes: 1 is linear, 2 the square. A way that refuses a query
says so, and how long it took to.

    python benchmarks/long_queries.py --out docs/results/long_queries
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mcrank
from mcrank import Dataset
from mcrank.errors import DataError, MeasureError
from report import machine, write

FEW: dict[str, Any] = {"n_jobs": 1, "n_estimators": 3, "epochs": 2, "restarts": 1, "max_sweeps": 2}
MEMBERS = [mcrank.RegressionRanker(n_estimators=3, n_jobs=1), mcrank.BestFeature(n_jobs=1)]
RANKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "McRank": ("mcrank", {}),
    "McRank, adaptive base": ("mcrank", {"base_class": "adaptive"}),
    "OrdinalMcRank": ("ordinal", {}),
    "RegressionRanker": ("regression", {}),
    "GBRank": ("gbrank", {}),
    "GBRank, as published": ("gbrank", {"form": "average"}),
    "LambdaMART, ndcg@10": ("lambdamart", {"truncation": 10, "norm": False}),
    "LambdaMART, ndcg": ("lambdamart", {"measure": "ndcg", "norm": False}),
    "LambdaMART, ndcg, truncation 100": ("lambdamart", {"measure": "ndcg", "truncation": 100, "norm": False}),
    "LambdaMART, map": ("lambdamart", {"measure": "map", "norm": False}),
    "LambdaMART, err": ("lambdamart", {"measure": "err", "norm": False}),
    "LambdaMART, kendall": ("lambdamart", {"measure": "kendall", "norm": False}),
    "LambdaMART, kendall, truncation 100": (
        "lambdamart",
        {"measure": "kendall", "truncation": 100, "norm": False},
    ),
    "LambdaMART, ndcg@10, norm": ("lambdamart", {"truncation": 10, "norm": True}),
    "LambdaRank, ndcg@10": ("lambdarank", {}),
    "LambdaRank, ndcg": ("lambdarank", {"measure": "ndcg"}),
    "RankNet": ("ranknet", {}),
    "FRank, stumps": ("frank", {"scorer": "stumps"}),
    "FRank, trees": ("frank", {"scorer": "trees"}),
    "RankBoost": ("rankboost", {}),
    "RankBoost, smallest loss": ("rankboost", {"criterion": "z"}),
    "RankSVM, squared hinge": ("ranksvm", {"C": 1.0}),
    "RankSVM, plain hinge": ("ranksvm", {"C": 1.0, "loss": "plain"}),
    "AdaRank, ndcg@10": ("adarank", {}),
    "AdaRank, map": ("adarank", {"measure": "map"}),
    "BestFeature, kendall": ("best-feature", {"measure": "kendall"}),
    "CoordinateAscent, ndcg@10": ("coordinate-ascent", {}),
    "CoordinateAscent, ndcg@100": ("coordinate-ascent", {"measure": "ndcg@100"}),
    "CoordinateAscent, ndcg": ("coordinate-ascent", {"measure": "ndcg"}),
    "CoordinateAscent, map, RankLib's steps": ("coordinate-ascent", {"measure": "map", "search": "grid"}),
    "Blend, ascent": ("blend", {"members": MEMBERS}),
    "Blend, least squares": ("blend", {"members": MEMBERS, "method": "nnls"}),
}
OTHERS = ("evaluate, all measures", "evaluate, all measures, all rows tied", "rosetta", "doctor")
MANY = (
    "GBRank",
    "RankNet",
    "FRank, stumps",
    "FRank, trees",
    "RankBoost, smallest loss",
    "RankSVM, squared hinge",
)


def one_query(rows: int, many_grades: bool) -> Dataset:
    """A query of 5 features and 5 grades, or with as many grades as rows."""
    stream = np.random.default_rng(rows)
    X = stream.normal(size=(rows, 5)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    grade = X @ [1.0, 0.5, 0.0, 0.0, 0.2] + stream.normal(size=rows)
    ranks = np.argsort(np.argsort(grade))
    return Dataset(X, ranks / rows * 4 if many_grades else ranks * 5 // rows, np.ones(rows, dtype=np.int64))


def work(way: str, data: Dataset) -> None:
    """Do one thing with the data."""
    name = way.removesuffix(", many grades")
    if name in RANKERS:
        from mcrank.rankers.registry import ranker_class

        word, options = RANKERS[name]
        kind = ranker_class(word)
        few = {key: value for key, value in FEW.items() if key in kind.declared_options}
        valid = data if word == "blend" else None
        kind(**few | options).fit(data, valid=valid)
    elif name.startswith("evaluate"):
        from mcrank.metrics.measure import MEASURES

        tied = name.endswith("tied")
        for measure in MEASURES:
            if tied:
                measure += "[standard;ties=expected]"
            try:
                mcrank.evaluate(np.zeros(len(data)) if tied else data.X[:, 0], data, [measure])
            except MeasureError:
                continue  # one that has no value for such grades
    elif name == "rosetta":
        mcrank.rosetta(data.X[:, 0], data, "ndcg@10")
    else:
        from mcrank.doctor.diagnose import diagnose

        diagnose(data)


def child(way: str, sizes: list[int]) -> None:
    """Measure one way at every size; print a line of JSON for each."""
    for rows in sizes:
        data = one_query(rows, way.endswith("many grades"))
        refused = None
        spent = math.nan
        for _ in range(2):
            began = time.process_time()
            try:
                work(way, data)
            except DataError as error:
                refused = str(error)
            spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of Linux, in kB
        print(json.dumps({"rows": rows, "seconds": spent, "peak MB": peak, "refused": refused}), flush=True)


def measured(way: str, sizes: list[int], limit: int) -> dict[str, Any]:
    """One row of the table."""
    command = [sys.executable, __file__, "--child", way, "--sizes", *map(str, sizes), "--limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    row: dict[str, Any] = {"way": way}
    for rows in sizes:
        run = next((r for r in runs if r["rows"] == rows), None)
        word: Any = "no end" if run is None else "refused" if run["refused"] else run["seconds"]
        row[f"s, {rows:,}"] = word
    trained = [r for r in runs if not r["refused"]]
    row["exponent"] = None
    if len(trained) > 1:
        small, large = trained[-2:]
        row["exponent"] = math.log(large["seconds"] / small["seconds"]) / math.log(
            large["rows"] / small["rows"]
        )
    row["peak MB"] = max((r["peak MB"] for r in runs), default=None)
    row["bytes a row more"] = None
    if len(runs) > 1:
        row["bytes a row more"] = (runs[-1]["peak MB"] - runs[0]["peak MB"]) * 2**20 / runs[-1]["rows"]
    row["runs"] = runs
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10_000, 30_000, 100_000])
    parser.add_argument("--ways", nargs="+", help="only those whose names begin so; OUT keeps its others")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds of each way")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    if args.child:
        resource.setrlimit(resource.RLIMIT_CPU, (args.limit, args.limit))
        child(args.child, args.sizes)
        return
    ways = [*RANKERS, *(f"{name}, many grades" for name in MANY), *OTHERS]
    chosen = [way for way in ways if not args.ways or way.startswith(tuple(args.ways))]
    found = {}
    if args.ways and args.out and Path(f"{args.out}.json").exists():
        found = {row["way"]: row for row in json.loads(Path(f"{args.out}.json").read_text())["rows"]}
    for way in chosen:
        found[way] = measured(way, args.sizes, args.limit)
        print({key: value for key, value in found[way].items() if key != "runs"}, flush=True)
    rows = [found[way] for way in ways if way in found]
    result = {"machine": machine(), "rows": rows, "verdicts": [], "arguments": vars(args)}
    write("One query of many rows: CPU seconds and memory", result, args.out)


if __name__ == "__main__":
    main()
