"""Speed of evaluation: NDCG@10, MAP and MRR per query, mcrank and its peers side by side.

    python benchmarks/evaluate.py [--quick] [--out benchmarks/results]

Every contestant starts from the same plain arrays (grades, scores, query of each row) and ends with the value of
every query for the three measures, as far as it has them. A peer that wants its own objects (dictionaries, sorted
lists) makes them inside the clock; the time of its bare evaluation is given too. Everything is run once before the
clock starts. The three measures' means must agree, or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import mcrank

MEASURES = ["ndcg@10", "map", "mrr"]


class Data:
    """One benchmark: grades, scores and queries as flat arrays, and as matrices where all queries are of one size."""

    def __init__(self, name: str, sizes: np.ndarray, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.name, self.sizes = name, sizes
        rows = int(sizes.sum())
        self.grades = rng.choice(5, rows, p=[0.6, 0.2, 0.1, 0.06, 0.04]).astype(np.float64)
        self.scores = self.grades * 0.3 + rng.normal(size=rows)
        self.queries = np.repeat(np.arange(len(sizes)), sizes)
        self.ends = np.cumsum(sizes)

    def parts(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self.ends[:-1])

    @property
    def even(self) -> bool:
        return bool((self.sizes == self.sizes[0]).all())


def shapes(quick: bool) -> list[Data]:
    rng = np.random.default_rng(7)
    queries, rows = (1_000, 100_000) if quick else (10_000, 1_000_000)
    sizes: list[int] = []
    while (left := rows - sum(sizes)) > 0:
        sizes.append(min(int(rng.integers(10, 1001)), left))
    return [
        Data(f"{queries:,} queries x 100 documents", np.full(queries, 100), 1),
        Data(f"{rows:,} documents in queries of 10 to 1,000", np.array(sizes), 2),
    ]


def ours(data: Data, n_jobs: int) -> Callable[[], dict[str, float]]:
    def run() -> dict[str, float]:
        grades = mcrank.Grades(data.grades, data.queries)
        return dict(mcrank.evaluate(data.scores, grades, MEASURES, n_jobs=n_jobs).mean)

    return run


def with_ranx(data: Data) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
    """ranx reads arrays of (document, value), judgments sorted by grade and the run by score."""
    import numba
    import ranx

    names = ["ndcg_burges@10", "map", "mrr"]

    def sorted_pairs(values: np.ndarray) -> Any:
        if data.even:
            table = values.reshape(len(data.sizes), -1)
            order = np.argsort(-table, axis=1)
            return np.stack([order.astype(np.float64), np.take_along_axis(table, order, 1)], axis=-1)
        lists = numba.typed.List()
        for part in data.parts(values):
            order = np.argsort(-part)
            lists.append(np.column_stack([order.astype(np.float64), part[order]]))
        return lists

    def convert() -> Any:
        return sorted_pairs(data.grades), sorted_pairs(data.scores)

    def evaluate(converted: Any) -> dict[str, float]:
        values = ranx.evaluate(*converted, names, return_mean=False)
        return {ours: float(np.mean(values[name])) for ours, name in zip(MEASURES, names, strict=True)}

    return convert, evaluate


def as_dictionaries(data: Data) -> tuple[dict[str, Any], dict[str, Any]]:
    """Judgments (2^grade - 1, for peers whose gain is the grade) and run, as {query: {document: value}}."""
    names = [f"d{i}" for i in range(int(data.sizes.max()))]
    gains = data.parts((2**data.grades - 1).astype(int))
    qrels = {f"q{q}": dict(zip(names, part.tolist(), strict=False)) for q, part in enumerate(gains)}
    run = {
        f"q{q}": dict(zip(names, part.tolist(), strict=False))
        for q, part in enumerate(data.parts(data.scores))
    }
    return qrels, run


def with_pytrec_eval(data: Data) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
    import pytrec_eval

    names = ["ndcg_cut_10", "map", "recip_rank"]

    def evaluate(converted: Any) -> dict[str, float]:
        values = pytrec_eval.RelevanceEvaluator(converted[0], set(names)).evaluate(converted[1])
        return {
            ours: float(np.mean([query[name] for query in values.values()]))
            for ours, name in zip(MEASURES, names, strict=True)
        }

    return lambda: as_dictionaries(data), evaluate


def with_ir_measures(data: Data) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
    import ir_measures
    from ir_measures import AP, RR, nDCG

    wanted = [nDCG @ 10, AP, RR]

    def evaluate(converted: Any) -> dict[str, float]:
        values: dict[Any, list[float]] = {measure: [] for measure in wanted}
        for metric in ir_measures.iter_calc(wanted, *converted):
            values[metric.measure].append(metric.value)
        return {ours: float(np.mean(values[m])) for ours, m in zip(MEASURES, wanted, strict=True)}

    return lambda: as_dictionaries(data), evaluate


def with_sklearn(data: Data) -> tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]:
    """scikit-learn has NDCG of these three, takes matrices, and a call per query where sizes differ."""
    from sklearn.metrics import ndcg_score

    def convert() -> Any:
        gains = 2**data.grades - 1
        if data.even:
            return [(gains.reshape(len(data.sizes), -1), data.scores.reshape(len(data.sizes), -1))]
        return [(g[None], s[None]) for g, s in zip(data.parts(gains), data.parts(data.scores), strict=True)]

    def evaluate(converted: Any) -> dict[str, float]:
        values = [ndcg_score(g, s, k=10, ignore_ties=True) for g, s in converted]
        return {"ndcg@10": float(np.mean(values))}

    return convert, evaluate


PEERS = {
    "ranx": ("ranx", with_ranx),
    "pytrec_eval-terrier": ("pytrec-eval-terrier", with_pytrec_eval),
    "ir_measures": ("ir-measures", with_ir_measures),
    "scikit-learn (NDCG only)": ("scikit-learn", with_sklearn),
}


def best_of(work: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def check(name: str, found: dict[str, float], expected: dict[str, float]) -> None:
    for measure, value in found.items():
        if abs(value - expected[measure]) > 1e-6:  # some peers compare scores as float32
            raise SystemExit(
                f"{name} finds {measure} = {value}, mcrank {expected[measure]}: not the same task."
            )


def measure(data: Data, rounds: int) -> dict[str, Any]:
    expected = ours(data, -1)()
    rows: dict[str, Any] = {
        "mcrank": {"seconds": best_of(ours(data, -1), 3 * rounds)},
        "mcrank, one thread": {"seconds": best_of(ours(data, 1), 3 * rounds)},
    }
    for name, (_, make) in PEERS.items():
        try:
            convert, evaluate = make(data)
        except ImportError:
            print(f"{name} is not installed; left out.", file=sys.stderr)
            continue
        converted = convert()
        check(name, evaluate(converted), expected)
        whole = best_of(lambda evaluate=evaluate, convert=convert: evaluate(convert()), rounds)
        bare = best_of(lambda evaluate=evaluate, converted=converted: evaluate(converted), rounds)
        rows[name] = {"seconds": whole, "evaluation_only": bare}
        print(f"{data.name}: {name} {whole:.4f} s ({bare:.4f} s without conversion)", file=sys.stderr)
    fastest = min((r["seconds"], n) for n, r in rows.items() if not n.startswith("mcrank"))
    return {
        "data": data.name,
        "contestants": rows,
        "fastest_peer": fastest[1],
        "times_faster": fastest[0] / rows["mcrank"]["seconds"],
    }


def cold_start() -> dict[str, float]:
    """`mcrank evaluate` of a 10,000-line file in a new process, kernels cached."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        data, scores = Path(folder, "data.txt"), Path(folder, "scores.txt")
        features = rng.random((10_000, 46)).round(6)
        lines = [
            f"{rng.integers(0, 3)} qid:{i // 40} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, start=1))
            for i, row in enumerate(features.tolist())
        ]
        data.write_text("\n".join(lines) + "\n")
        scores.write_text("\n".join(map(str, rng.normal(size=10_000).tolist())) + "\n")
        command = [
            sys.executable,
            "-m",
            "mcrank",
            "evaluate",
            str(data),
            str(scores),
            "-m",
            "ndcg@10",
            "-m",
            "map",
        ]

        def run() -> None:
            subprocess.run(command, check=True, capture_output=True)

        run()
        return {"seconds": best_of(run, 3)}


def markdown(report: dict[str, Any]) -> str:
    lines = ["# Evaluation speed", "", f"{report['machine']}; {report['versions']}", ""]
    for shape in report["shapes"]:
        lines += [f"## {shape['data']}: NDCG@10, MAP, MRR of every query", ""]
        lines += ["| tool | seconds | bare evaluation | times slower than mcrank |", "|---|---|---|---|"]
        base = shape["contestants"]["mcrank"]["seconds"]
        for name, row in shape["contestants"].items():
            bare = f"{row['evaluation_only']:.4f}" if "evaluation_only" in row else ""
            lines.append(f"| {name} | {row['seconds']:.4f} | {bare} | {row['seconds'] / base:.1f} |")
        lines += ["", f"mcrank is {shape['times_faster']:.1f} times as fast as {shape['fastest_peer']}.", ""]
    lines.append(f"Cold `mcrank evaluate` of a 10,000-line file: {report['cold']['seconds']:.2f} s.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, for a first look")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for evaluate.json and evaluate.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    report = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": ", ".join(f"{p} {version(p)}" for p in ("mcrank", *(p for p, _ in PEERS.values()))),
        "shapes": [measure(data, arguments.rounds) for data in shapes(arguments.quick)],
        "cold": cold_start(),
    }
    text = markdown(report)
    print(text)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "evaluate.json").write_text(json.dumps(report, indent=2) + "\n")
        (arguments.out / "evaluate.md").write_text(text)


if __name__ == "__main__":
    main()
