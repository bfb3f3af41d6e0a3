"""Whether one checkout of mcrank is slower than another: the same work, in turns, in one sitting.

    python benchmarks/checkouts.py OLD/src src --turns 7 --out docs/results/checkouts

Every piece of work runs in a process of its own under the one source and then under the other, turn by turn,
so that a busy minute falls on both. A process makes the data, does the work once (compiling what is to be
compiled) and then times it; the least of its repeats counts, and over the turns the median of the ratios
new / old, with the least and the largest. What runs on one thread is told in CPU time, all else in wall time.
A cold `warmup` compiles every kernel into an empty folder, once a side for every `--cold` turn.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

COMMANDS = {
    "import mcrank": ["-c", "import mcrank"],
    "mcrank --help": ["-m", "mcrank", "--help"],
    "mcrank warmup (warm)": ["-m", "mcrank", "warmup"],
}
COMMAND_RUNS = 5  # of a turn


def dataset(rows: int, features: int, per_query: int):
    """Return a made-up data set: five grades that follow two of the features."""
    import numpy as np

    import mcrank

    random = np.random.default_rng(0)
    X = random.normal(size=(rows, features)).astype(np.float32)
    grades = np.digitize(X[:, 0] + 0.5 * X[:, 1] + random.normal(size=rows), [-0.5, 0.5, 1.5, 2.5])
    return mcrank.Dataset(X, grades.astype(np.float64), np.arange(rows) // per_query)


def training(kind: str, rows: int, features: int, rounds: int, **options):
    """Return a job: the median time from the end of a round to the end of the next (no binning in it)."""
    import mcrank

    data = dataset(rows, features, 100)
    ranker = getattr(mcrank, kind)

    def job(clock: Callable[[], float]) -> float:
        ends: list[float] = []
        ranker(n_estimators=1 + rounds, **options).fit(data, callback=lambda event: ends.append(clock()))
        return median(after - before for before, after in pairwise(ends))

    return job


def whole_fit(kind: str, **options):
    """Return a job: a whole fit on data of the size of a fold of MQ2008."""
    import mcrank

    data = dataset(9_600, 46, 20)
    return timed(lambda: getattr(mcrank, kind)(**options).fit(data))


def scoring(kind: str, rows: int, **options):
    """Return a job: scores of `rows` rows."""
    import mcrank

    data = dataset(20_000, 46, 100)
    ranker = getattr(mcrank, kind)(n_estimators=100, **options).fit(data)
    ranker.n_jobs = 1
    X = data.X[:rows] if rows > 1 else data.X[:1]
    repeats = max(1, 20_000 // rows // 4)
    return timed(lambda: [ranker.predict(X) for _ in range(repeats)], repeats)


def evaluating(queries: int, documents: int):
    """Return a job: NDCG@10 of every query."""
    import numpy as np

    import mcrank

    data = dataset(queries * documents, 2, documents)
    scores = np.random.default_rng(1).normal(size=queries * documents)
    return timed(lambda: mcrank.evaluate(scores, data, measures=["ndcg@10"]))


def timed(work: Callable[[], object], repeats: int = 1):
    """Return a job that times this work."""

    def job(clock: Callable[[], float]) -> float:
        began = clock()
        work()
        return (clock() - began) / repeats

    return job


def _jobs() -> Iterator[tuple[str, str, Callable[[], Callable]]]:
    """Yield the name of each piece of work, its clock and what makes it ready."""
    few, many, ten = {"num_leaves": 31}, {"num_leaves": 255}, {"num_leaves": 10}
    engine = [
        ("RegressionRanker", few),
        ("RegressionRanker", many),
        ("LambdaMART", few),
        ("LambdaMART", many),
    ]
    engine += [("McRank", ten), ("McRank", ten | {"split": "newton"}), ("OrdinalMcRank", ten)]
    for threads, clock in ((1, "cpu"), (2, "wall")):
        for kind, options in engine:
            make = partial(training, kind, 200_000, 64, 15, n_jobs=threads, **options)
            yield f"round of {kind} {_text(options)}, threads {threads}", clock, make
        for kind in ("McRank", "LambdaMART", "RegressionRanker"):
            make = partial(whole_fit, kind, n_estimators=60, n_jobs=threads)
            yield f"small fit of {kind}, threads {threads}", clock, make
    others = {"GBRank": 20, "AdaRank": 50, "RankBoost": 50, "FRank": 20}
    fits = {kind: {"n_estimators": rounds} for kind, rounds in others.items()}
    fits |= {"RankSVM": {}, "RankNet": {"epochs": 5}, "LambdaRank": {"epochs": 5}}
    fits |= {"CoordinateAscent": {"restarts": 1, "max_sweeps": 3}}
    for kind, options in fits.items():
        yield f"small fit of {kind}", "cpu", partial(whole_fit, kind, **options)
    for kind, options in (("RegressionRanker", few), ("RegressionRanker", many), ("McRank", ten)):
        for rows in (1, 500, 20_000):
            make = partial(scoring, kind, rows, n_jobs=1, **options)
            yield f"score {rows} rows, {kind} {_text(options)}", "cpu", make
    for queries, documents in ((10_000, 100), (50_000, 8)):
        yield f"evaluate {queries} x {documents}", "wall", partial(evaluating, queries, documents)


def _text(options: dict) -> str:
    return " ".join(f"{key}={value}" for key, value in options.items())


JOBS = {name: (clock, make) for name, clock, make in _jobs()}


def child(name: str, repeats: int) -> None:
    """Do one piece of work in this process and print its least time."""
    clock, make = JOBS[name]
    job = make()
    job(time.perf_counter)
    measure = time.process_time if clock == "cpu" else time.perf_counter
    print(json.dumps(min(job(measure) for _ in range(repeats))))


def environment(source: Path, cache: Path | None = None) -> dict[str, str]:
    """Return the environment in which this source is the one imported."""
    more = {"PYTHONPATH": str(source)} | ({"MCRANK_CACHE_DIR": str(cache)} if cache else {})
    return {key: value for key, value in os.environ.items() if key != "MCRANK_CACHE_DIR"} | more


def run(source: Path, name: str, repeats: int) -> float:
    """Return the seconds of one piece of work under this source."""
    if name in COMMANDS:
        return min(_command(COMMANDS[name], environment(source)) for _ in range(COMMAND_RUNS))
    command = [sys.executable, str(Path(__file__).resolve()), "--child", name, "--repeats", str(repeats)]
    found = subprocess.run(command, env=environment(source), capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{name} failed under {source}:\n{found.stderr[-2000:]}")
    return float(json.loads(found.stdout.splitlines()[-1]))


def _command(arguments: list[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def cold(source: Path) -> float:
    """Return the seconds of `mcrank warmup` with nothing compiled before, on a copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        return _command(["-m", "mcrank", "warmup"], environment(copy, Path(folder) / "kernels"))


def measure(old: Path, new: Path, wanted: list[str], arguments: argparse.Namespace) -> Iterator[dict]:
    """Yield, for each piece of work, its times on both sides and what they come to."""
    for name in wanted:
        turns = arguments.cold if name == "mcrank warmup (cold)" else arguments.turns
        pairs = []
        for turn in range(turns):
            sides = [("old", old), ("new", new)][:: 1 if turn % 2 == 0 else -1]
            found = {
                side: cold(source) if name == "mcrank warmup (cold)" else run(source, name, arguments.repeats)
                for side, source in sides
            }
            pairs.append((found["old"], found["new"]))
        ratios = [new / old for old, new in pairs]
        yield {
            "work": name,
            "old": median(pair[0] for pair in pairs),
            "new": median(pair[1] for pair in pairs),
            "ratio": median(ratios),
            "least": min(ratios),
            "largest": max(ratios),
            "of_minima": min(pair[1] for pair in pairs) / min(pair[0] for pair in pairs),
            "pairs": pairs,
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?")
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cold", type=int, default=1)
    parser.add_argument("--only", help="only work with this in its name")
    parser.add_argument("--out", type=Path, help="results as OUT.json")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.repeats)
        return
    names = [*JOBS, *COMMANDS, "mcrank warmup (cold)"]
    wanted = [name for name in names if not arguments.only or arguments.only in name]
    results = []
    print(f"load {os.getloadavg()[0]:.2f}; ratio new / old, median (least to largest) [of minima]")
    for result in measure(arguments.old.resolve(), arguments.new.resolve(), wanted, arguments):
        results.append(result)
        times = f"{result['old'] * 1e3:10.2f} ms {result['new'] * 1e3:10.2f} ms"
        spread = f"({result['least']:.2f} to {result['largest']:.2f}) [{result['of_minima']:.3f}]"
        print(f"{result['work']:<52} {times}  {result['ratio']:.3f} {spread}", flush=True)
    if arguments.out:
        written = {"turns": arguments.turns, "load_at_end": os.getloadavg(), "results": results}
        arguments.out.with_suffix(".json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
