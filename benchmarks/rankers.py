"""Speed of the rankers against what else there is, side by side in one run.

- lambdamart: LambdaMART against LightGBM lambdarank and XGBoost rank:ndcg on rows shaped like MSLR-WEB (136
  features, about 120 documents a query, five grades), 255 bins, 31 and 255 leaves. Each system trains in a
  process of its own; they take turns, and the median over the turns of the time a round counts (CPU time with
  one thread, wall time with more). NDCG@10 on test queries after equal rounds says that all do the same work.
- regression: squared errors of the grades on the same rows, against LightGBM, XGBoost, scikit-learn and
  CatBoost.
- ranksvm: RankSVM against scikit-learn's LinearSVC (liblinear) on explicit pairs, the same objective.
- coordinate-ascent: 30 restarts on a fold of MQ2008.
- nets: an epoch of RankNet and LambdaRank over MSLR-mini, 32 hidden units.

    python benchmarks/rankers.py --data DATA --out docs/results/rankers
    python benchmarks/rankers.py --only regression lambdamart --leaves 31 255 --turns 5
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mcrank
from peers import Worker
from ranking_peers import LAMBDA, SQUARES, RankingJob, Run
from report import machine, write

SHARES = [0.52, 0.32, 0.135, 0.018, 0.007]  # of the grades in MSLR-WEB30K
_DOCUMENTS = 120  # a query


def web_like(rows: int, seed: int, features: int = 136) -> mcrank.Dataset:
    """Rows shaped like MSLR-WEB: counts with many zeros, ratios, real numbers, few of them telling."""
    stream = np.random.default_rng(seed)
    sizes = np.maximum(stream.gamma(4.0, _DOCUMENTS / 4.0, size=2 * rows // _DOCUMENTS + 10), 1).astype(int)
    sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), rows)) + 1]
    qid = np.repeat(np.arange(len(sizes)), sizes)[:rows]
    by_query = np.random.default_rng(seed).normal(size=len(sizes))[qid]
    hidden = stream.normal(size=(rows, 6)).astype(np.float32)
    mixing = np.random.default_rng(0).normal(size=(6, features)).astype(np.float32)  # the same for any seed
    X = hidden @ mixing + 1.5 * stream.normal(size=(rows, features)).astype(np.float32)
    X[:, ::3] = np.floor(np.exp(np.clip(X[:, ::3], -4, 8)))  # counts
    X[:, 1::6] = np.round(1 / (1 + np.exp(-X[:, 1::6])), 2)  # ratios
    worth = hidden[:, 0] + np.sin(2 * hidden[:, 1]) + hidden[:, 2] * hidden[:, 3]
    worth += 0.5 * by_query + stream.normal(size=rows)
    cuts = np.quantile(worth, np.cumsum(SHARES)[:-1])
    return mcrank.Dataset(X, np.searchsorted(cuts, worth), qid)


class Boosted(NamedTuple):
    """A job for boosted trees: its systems, ours first, and the bars for one thread and for more."""

    name: str
    squares: bool
    systems: dict[str, Callable[[RankingJob], Run]]
    bars: tuple[float, float]


LAMBDAMART = Boosted("lambdamart", False, LAMBDA, (2.8, 3.0))
REGRESSION = Boosted("regression", True, SQUARES, (3.5, 3.5))


def boosted(what: Boosted, args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Time a round of every system: each number of leaves, each number of threads."""
    rows: list[dict[str, Any]] = []
    verdicts = []
    with tempfile.TemporaryDirectory() as folder:
        train, test = web_like(args.rows, 1), web_like(60_000, 2)
        parts = {"train_X": train.X, "train_y": train.y.astype(np.int32), "train_offsets": train.offsets}
        for name, array in (parts | {"test_X": test.X}).items():
            np.save(Path(folder) / f"{name}.npy", array)
        bound = mcrank.NDCG(k=10).on(test)
        own = next(iter(what.systems))
        for leaves, threads in itertools.product(args.leaves, args.threads):
            job = RankingJob(folder, threads, leaves=leaves, squares=what.squares)
            names = [n for n in what.systems if n == own or n in (args.systems or what.systems)]
            # Of one number of threads only: the models are the same, and 255 leaves take their time.
            rounds = args.quality_rounds if threads == max(args.threads) else 0
            times, scores = take_turns({n: what.systems[n] for n in names}, job, args, rounds)
            medians = {name: float(np.median(taken)) for name, taken in times.items()}
            for name, taken in times.items():
                rows.append(
                    {"job": what.name, "leaves": leaves, "threads": threads, "system": name,
                     "ms": 1000 * medians[name], "ratio": medians[name] / medians[own],
                     "turns": [round(1000 * t, 1) for t in taken],
                     "NDCG@10": float(bound.mean(scores[name])) if name in scores else None}
                )  # fmt: skip
            bar = what.bars[threads > 1]
            verdicts += _verdicts(f"{own}, {leaves} leaves, {threads} thread(s)", own, medians, bar)
    return rows, verdicts


def take_turns(
    systems: dict[str, Callable[[RankingJob], Run]], job: RankingJob, args: argparse.Namespace, rounds: int
) -> tuple[dict[str, list[float]], dict[str, np.ndarray]]:
    """Seconds a round of every turn of every system, and its scores of the test rows after ``rounds``."""
    workers = {name: Worker(system, job) for name, system in systems.items()}
    times: dict[str, list[float]] = {name: [] for name in workers}
    scores = {}
    for _ in range(args.turns):
        for name, worker in workers.items():
            times[name].append(worker.run(args.rounds)[0])
    for name, worker in workers.items():
        if rounds:
            scores[name] = np.asarray(worker.run(rounds, True)[1], dtype=np.float64)
        worker.stop()
    return times, scores


def _verdicts(about: str, own: str, medians: dict[str, float], bar: float) -> list[str]:
    """What to say of the fastest peer, and of the fastest that rounds gradients to a few levels."""
    said = []
    peers = {name: taken for name, taken in medians.items() if not name.startswith("mcrank")}
    for rounded in (False, True):
        some = {name: taken for name, taken in peers.items() if name.endswith("quantized") is rounded}
        if some:
            fastest = min(some, key=lambda name: some[name])
            goal = "" if rounded else f"; the bar is {bar}x"
            said.append(f"{about}: {some[fastest] / medians[own]:.2f}x {fastest}{goal}")
    return said


def explicit_pairs(data: mcrank.Dataset) -> np.ndarray:
    """Better row minus worse row, for every pair of different grades."""
    found = []
    for start, end in itertools.pairwise(data.offsets):
        y = data.y[start:end]
        better, worse = np.nonzero(y[:, None] > y[None, :])
        found.append(data.X[start + better] - data.X[start + worse])
    return np.concatenate(found).astype(np.float64)


def ranksvm(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Fit the same objective with and without pairs; compare the times and the objectives reached."""
    from sklearn.svm import LinearSVC

    data = mcrank.make_artificial(n_train=1150, n_valid=1, n_test=1, seed=3).train
    pairs = explicit_pairs(data)
    C = 1e-3
    signs = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)  # liblinear wants two classes

    def objective(w: np.ndarray) -> float:
        return float(0.5 * w @ w + C * np.sum(np.maximum(0.0, 1.0 - pairs @ w) ** 2))

    mcrank.RankSVM(C=C, scaling="none", n_jobs=1).fit(data)  # compile
    rows = []
    turned = pairs * signs[:, None]
    for _ in range(args.turns):
        began = time.process_time()
        ours = mcrank.RankSVM(C=C, scaling="none", n_jobs=1).fit(data)
        middle = time.process_time()
        theirs = LinearSVC(C=C, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-3).fit(
            turned, signs
        )
        rows.append((middle - began, time.process_time() - middle))
    seconds = np.median(np.array(rows), axis=0)
    reached = [objective(np.asarray(w, dtype=np.float64).ravel()) for w in (ours.weights_, theirs.coef_)]
    names = ("mcrank RankSVM", f"LinearSVC on {len(pairs):,} pairs")
    table = [
        {"job": "ranksvm", "threads": 1, "system": name, "ms": 1000 * float(s),
         "ratio": float(s / seconds[0]), "turns": [round(1000 * r[i], 1) for r in rows]}
        for i, (name, s) in enumerate(zip(names, seconds, strict=True))
    ]  # fmt: skip
    return table, [
        f"RankSVM: {seconds[1] / seconds[0]:.0f}x LinearSVC on {len(pairs):,} explicit pairs (building "
        f"them not counted), objective {reached[0]:.6g} against {reached[1]:.6g}; the bar is 20x"
    ]


def coordinate_ascent(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Time 30 restarts on the first fold of MQ2008."""
    fold = Path(args.data) / "MQ2008" / "Fold1"
    train, valid = (mcrank.read(fold / f"{part}.txt") for part in ("train", "vali"))
    mcrank.CoordinateAscent(restarts=1).fit(train, valid=valid)  # compile
    began, cpu = time.perf_counter(), time.process_time()
    ranker = mcrank.CoordinateAscent(restarts=30).fit(train, valid=valid)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    row = {"job": "coordinate-ascent", "threads": "all", "system": "mcrank CoordinateAscent, 30 restarts",
           "ms": 1000 * seconds, "ratio": 1.0, "CPU s": cpu}  # fmt: skip
    value = ranker.score(valid)
    return [row], [
        f"CoordinateAscent: 30 restarts in {seconds:.1f} s (CPU {cpu:.1f} s), validation NDCG@10 "
        f"{value:.4f}; the bar is 20 s"
    ]


def nets(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """Time an epoch of both nets over MSLR-mini."""
    train = mcrank.read(Path(args.data) / "MSLR-mini" / "train.txt")
    rows, verdicts = [], []
    for kind in (mcrank.RankNet, mcrank.LambdaRank):
        kind(hidden="32", epochs=1).fit(train)  # compile
        stamps: list[float] = []
        kind(hidden="32", epochs=6).fit(train, callback=lambda event, s=stamps: s.append(time.perf_counter()))
        epoch = float(np.median(np.diff(stamps)))
        rows.append(
            {"job": "nets", "threads": "all", "system": f"mcrank {kind.__name__}", "ms": 1000 * epoch,
             "ratio": 1.0}
        )  # fmt: skip
        verdicts.append(
            f"{kind.__name__}: an epoch over MSLR-mini ({train.n_rows} rows) in {epoch:.3f} s; the bar is 3 s"
        )
    return rows, verdicts


SECTIONS: dict[str, Callable[[argparse.Namespace], tuple[list[dict[str, Any]], list[str]]]] = {
    "lambdamart": partial(boosted, LAMBDAMART),
    "regression": partial(boosted, REGRESSION),
    "ranksvm": ranksvm,
    "coordinate-ascent": coordinate_ascent,
    "nets": nets,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(SECTIONS), choices=list(SECTIONS))
    parser.add_argument(
        "--data", help="folder with MQ2008 and MSLR-mini; without it those parts are left out"
    )
    parser.add_argument("--rows", type=int, default=300_000, help="training rows of boosted trees")
    parser.add_argument("--leaves", type=int, nargs="+", default=[31, 255], help="leaves of boosted trees")
    parser.add_argument("--turns", type=int, default=5, help="turns each system takes")
    parser.add_argument("--rounds", type=int, default=12, help="rounds a turn")
    parser.add_argument(
        "--quality-rounds", type=int, default=50, help="rounds of the NDCG comparison; 0: none"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--systems", nargs="+", choices=[*LAMBDA, *SQUARES], help="only these peers of boosted trees"
    )
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    verdicts: list[str] = []
    for name in args.only:
        if name in ("coordinate-ascent", "nets") and args.data is None:
            verdicts.append(f"{name}: left out, no --data")
            continue
        more, said = SECTIONS[name](args)
        rows += more
        verdicts += said
    if rows:
        write("Speed of the rankers", {"machine": machine(), "rows": rows, "verdicts": verdicts}, args.out)


if __name__ == "__main__":
    main()
