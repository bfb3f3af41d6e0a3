"""Speed of evaluation: NDCG@10, MAP and MRR of every query, mcrank and its peers side by side.

    python benchmarks/evaluate.py                                 # Markdown on stdout
    python benchmarks/evaluate.py --out docs/results/evaluate     # and evaluate.json, evaluate.md

Every contestant starts from the same plain arrays (grades, scores, query of each row) and ends with the value
of every query for the three measures. A peer that wants objects of its own (dictionaries, sorted lists) makes
them inside the clock; its evaluation alone is timed too. scikit-learn has only NDCG of the three, and its
public function only the mean over the rows of a matrix: that is timed as it is, though less than the task.
Contestants take turns after a first run. A turn is the same for everyone: calls one after the other until
there are five or a quarter of a second has passed. The best call counts; the median is shown beside it. The
means must agree, or the run fails.
"""

from __future__ import annotations

import argparse
import os
import statistics
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
import report

MEASURES = ["ndcg@10", "map", "mrr"]
CALLS, SECONDS = 5, 0.25  # of a turn, whichever is reached first


class Data:
    """Grades, scores and queries of one benchmark, as flat arrays."""

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
        grades = mcrank.Grades(data.grades, data.queries, n_jobs=n_jobs)
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


def one_turn(work: Callable[[], Any]) -> list[float]:
    """Seconds of each call of a turn: one call alone would measure what the contestant before left behind."""
    times: list[float] = []
    while len(times) < CALLS and sum(times) < SECONDS:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def check(name: str, found: dict[str, float], expected: dict[str, float]) -> None:
    for measure, value in found.items():
        if abs(value - expected[measure]) > 1e-6:  # some peers compare scores as float32
            raise SystemExit(f"{name} finds {measure} = {value}, mcrank {expected[measure]}: another task.")


def contestants(data: Data) -> dict[str, tuple[Callable[[], Any], Callable[[], Any] | None]]:
    """Name -> (from arrays to values, evaluation alone)."""
    found: dict[str, Any] = {"mcrank": (ours(data, -1), None), "mcrank, one thread": (ours(data, 1), None)}
    expected = ours(data, -1)()
    for name, (_, make) in PEERS.items():
        try:
            convert, evaluate = make(data)
        except ImportError:
            print(f"{name} is not installed; left out.", file=sys.stderr)
            continue
        converted = convert()
        check(name, evaluate(converted), expected)
        found[name] = (
            lambda evaluate=evaluate, convert=convert: evaluate(convert()),
            lambda evaluate=evaluate, converted=converted: evaluate(converted),
        )
    return found


def measure(data: Data, turns: int) -> list[dict[str, Any]]:
    runners = contestants(data)
    whole: dict[str, list[float]] = {name: [] for name in runners}
    bare: dict[str, list[float]] = {name: [] for name in runners}
    for turn in range(turns):
        for name, (from_arrays, evaluation) in runners.items():
            whole[name] += one_turn(from_arrays)
            bare[name] += [] if evaluation is None else one_turn(evaluation)
        print(f"{data.name}: turn {turn + 1} of {turns}", file=sys.stderr)
    base = min(whole["mcrank"])
    return [
        {
            "data": data.name,
            "tool": name,
            "ms": 1e3 * min(whole[name]),
            "median, ms": 1e3 * statistics.median(whole[name]),
            "evaluation alone, ms": 1e3 * min(bare[name]) if bare[name] else None,
            "times mcrank": min(whole[name]) / base,
        }
        for name in runners
    ]


def cold_start() -> dict[str, float]:
    """`mcrank evaluate` of a 10,000-line file in a new process, kernels cached: wall and processor time."""
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
        wall, processor = [], []
        for _ in range(8):
            before = os.times()
            start = time.perf_counter()
            run()
            wall.append(time.perf_counter() - start)
            after = os.times()
            started = before.children_user + before.children_system
            processor.append(after.children_user + after.children_system - started)
        return {"seconds": min(wall), "processor_seconds": min(processor)}


def verdicts(rows: list[dict[str, Any]], cold: dict[str, float]) -> list[str]:
    words = []
    for data in dict.fromkeys(row["data"] for row in rows):
        peers = [r for r in rows if r["data"] == data and not r["tool"].startswith("mcrank")]
        for what, those in (
            ("the three measures", [r for r in peers if "NDCG only" not in r["tool"]]),
            ("anything", peers),
        ):
            fastest = min(those, key=lambda r: r["ms"])
            words.append(
                f"{data}: {fastest['times mcrank']:.1f} times as fast as {fastest['tool']}, the fastest peer "
                f"at {what} (bar: 10)"
            )
    waited, worked = cold["seconds"], cold["processor_seconds"]
    words.append(
        f"cold `mcrank evaluate` of 10,000 lines: {waited:.2f} s, of which {worked:.2f} s work (bar: 2 s)"
    )
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, for a first look")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for data in shapes(arguments.quick) for row in measure(data, arguments.turns)]
    cold = cold_start()
    about = report.machine()
    about["versions"] |= {package: version(package) for package, _ in PEERS.values()}
    result = {"machine": about, "rows": rows, "cold": cold, "verdicts": verdicts(rows, cold)}
    report.write("Evaluation speed: NDCG@10, MAP and MRR of every query", result, arguments.out)


if __name__ == "__main__":
    main()
