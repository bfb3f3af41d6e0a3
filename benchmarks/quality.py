"""Quality of every ranker on MQ2008: five folds, NDCG@10 (standard) over the 784 test queries.

Every ranker of the table runs with its default options, and where one setting is not enough with a small
declared grid. Rounds, C and the setting of a grid are chosen on the validation part of each fold; the test
part is scored once, by what was chosen. Results are kept per (system, setting, fold) in the folder WORK, so
that a run can be stopped and taken up again; a system whose code has changed is named with --again.

    python benchmarks/quality.py --data ../shared/data --peers --out docs/results/quality
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import mcrank
from mcrank.rankers.registry import RANKERS, ranker_class
from mcrank.stats import holm, paired_t
from report import machine, write

FOLDS = 5
# Settings tried besides the defaults; the validation part of each fold picks one.
GRIDS: dict[str, list[dict[str, Any]]] = {}
# Name in the table -> the least it should reach.
BARS = {
    "mcrank": 0.497, "ordinal": 0.497, "lambdamart": 0.497, "blend": 0.506,
    "adarank": 0.485, "ranknet": 0.485, "rankboost": 0.485, "ranksvm": 0.485, "coordinate-ascent": 0.485,
    "lambdarank": 0.485, "gbrank": 0.485, "frank": 0.485,
}  # fmt: skip
BEST_SINGLE = 0.502


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="the folder that holds MQ2008")
    parser.add_argument("--only", help="some rankers, separated by commas; otherwise all of them")
    parser.add_argument("--peers", nargs="?", const=",".join(PEERS), help="also others: all, or some by name")
    parser.add_argument("--again", default="", help="systems whose kept results are not to be used")
    parser.add_argument("--work", default="build/quality", help="folder of kept results")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes inherit it

    systems: dict[str, list[dict[str, Any]]] = {
        name: [{}, *GRIDS.get(name, [])] for name in (args.only.split(",") if args.only else RANKERS)
    }
    if args.peers:
        systems |= {name: [{}] for name in args.peers.split(",")}
    trials = [(n, o, f) for f in range(FOLDS) for n, settings in systems.items() for o in settings]
    again = args.again.split(",")
    todo = [t for t in trials if t[0] in again or not kept(args.work, *t).exists()]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run, args.data, args.work, *trial): trial for trial in todo}
        for done in as_completed(waiting):
            name, options, fold = waiting[done]
            print(f"{name} {options or 'default'} fold {fold + 1}: {done.result()}", flush=True)
    write("Quality on MQ2008, five folds", summary(args, systems), args.out)


def kept(work: str, name: str, options: dict[str, Any], fold: int) -> Path:
    """File of one result; other defaults make another file."""
    used = {} if name in PEERS else ranker_class(name)(**options).get_params()
    text = json.dumps({k: str(v) for k, v in used.items() if k != "n_jobs"} | options, sort_keys=True)
    return Path(work) / f"{name}.{fold + 1}.{hashlib.blake2b(text.encode(), digest_size=6).hexdigest()}.json"


def run(data: str, work: str, name: str, options: dict[str, Any], fold: int) -> str:
    """Train one system on one fold and keep what it reached; the process of one trial."""
    parts = mcrank.read_folds(Path(data) / "MQ2008")[fold]
    target = kept(work, name, options, fold)
    began = time.perf_counter()
    if name in PEERS:
        predict, rounds = PEERS[name](parts)
    else:
        ranker = ranker_class(name)(**{"n_jobs": 1} | options).fit(parts.train, valid=parts.valid)
        predict, rounds = ranker.predict, ranker.best_round_
    seconds = time.perf_counter() - began
    measured = {
        part: mcrank.evaluate(predict(data_), data_, ["ndcg@10"]).by_query("ndcg@10")
        for part, data_ in (("valid", parts.valid), ("test", parts.test))
    }
    result = {
        "valid": float(np.mean(list(measured["valid"].values()))),
        "test": {str(q): float(v) for q, v in measured["test"].items()},
        "rounds": rounds,
        "seconds": seconds,
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_text(json.dumps(result))
    part.replace(target)
    return f"validation {result['valid']:.4f}, {rounds} rounds, {seconds:.1f} s"


def summary(args: argparse.Namespace, systems: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Choose the setting of each fold on its validation part, pool the test queries and compare."""
    rows, pooled = [], {}
    for name, settings in systems.items():
        chosen, values, seconds = [], {}, 0.0
        for fold in range(FOLDS):
            results = [json.loads(kept(args.work, name, o, fold).read_text()) for o in settings]
            best = max(range(len(results)), key=lambda i: (results[i]["valid"], -i))
            chosen.append(results[best] | {"options": settings[best]})
            values |= results[best]["test"]
            seconds += sum(r["seconds"] for r in results)
        pooled[name] = values
        all_values = np.array(list(values.values()))
        rows.append(
            {
                "system": name,
                "NDCG@10": round(float(all_values.mean()), 4),
                "standard error": round(float(all_values.std(ddof=1) / np.sqrt(len(all_values))), 4),
                "folds": " ".join(f"{np.mean(list(c['test'].values())):.3f}" for c in chosen),
                "validation": round(float(np.mean([c["valid"] for c in chosen])), 4),
                "rounds": " ".join(str(c["rounds"]) for c in chosen),
                "seconds": round(seconds, 1),
                "settings": len(settings),
                "chosen": [c["options"] for c in chosen],
            }
        )
    rows.sort(key=lambda row: -row["NDCG@10"])
    best = rows[0]["system"]
    others = [row["system"] for row in rows[1:]]
    adjusted = holm([paired_t(pooled[best], pooled[name]).p for name in others]) if others else []
    for row, p in zip(rows[1:], adjusted, strict=True):
        row["p against best"] = round(p, 3)
    rows[0] |= {"p against best": None}
    return {"machine": machine(), "rows": rows, "verdicts": verdicts(rows), "queries": len(pooled[best])}


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Say of every bar whether it is reached."""
    reached = {row["system"]: row["NDCG@10"] for row in rows}
    lines = [
        f"{name}: {reached[name]:.4f}, bar {bar:.3f}: {'reached' if reached[name] >= bar else 'NOT reached'}"
        for name, bar in BARS.items()
        if name in reached
    ]
    single = [n for n in reached if n not in PEERS and n != "blend"]
    if single:
        best = max(single, key=reached.__getitem__)
        word = "reached" if reached[best] >= BEST_SINGLE else "NOT reached"
        lines.append(f"best single ranker, {best}: {reached[best]:.4f}, bar {BEST_SINGLE:.3f}: {word}")
    return [
        *lines,
        "default options, rounds (epochs, C, restarts) chosen on the validation part of each fold; peers: 10 "
        "leaves, rate 0.05, the best of every tenth of 1000 rounds on the same part",
        "p against best: paired t-test over queries, two-sided, Holm's correction",
    ]


Predict = Callable[[mcrank.Dataset], Any]
Raw = Callable[[mcrank.Dataset, int, int], Any]  # what trees first..last add to the scores of a data set
ROUNDS, STAGE = 1000, 10


def chosen_on_validation(parts: Any, raw: Raw, finish: Callable[[Any], Any]) -> tuple[Predict, int]:
    """Keep the rounds whose NDCG@10 on the validation part is best, as our rankers do."""
    bound = mcrank.NDCG(k=10).on(parts.valid)
    total: Any = 0.0
    values = {}
    for last in range(STAGE, ROUNDS + 1, STAGE):
        total = total + np.asarray(raw(parts.valid, last - STAGE, last), dtype=np.float64)
        values[last] = bound.mean(finish(total))
    rounds = max(values, key=values.__getitem__)
    return lambda data: finish(np.asarray(raw(data, 0, rounds), dtype=np.float64)), rounds


def lightgbm_peer(objective: str) -> Callable[[Any], tuple[Predict, int]]:
    def train(parts: Any) -> tuple[Predict, int]:
        import lightgbm

        params = {
            "objective": objective, "num_leaves": 10, "learning_rate": 0.05, "num_threads": 1, "verbose": -1,
        }  # fmt: skip
        if objective == "multiclass":
            params["num_class"] = int(parts.train.y.max()) + 1
        target = np.exp2(parts.train.y) - 1 if objective == "regression" else parts.train.y
        data = lightgbm.Dataset(parts.train.X, target, group=parts.train.sizes)
        booster = lightgbm.train(params, data, ROUNDS)

        def raw(data: mcrank.Dataset, first: int, last: int) -> Any:
            return booster.predict(
                data.X, start_iteration=first, num_iteration=last - first, raw_score=True, num_threads=1
            )

        return chosen_on_validation(parts, raw, expected_grade if objective == "multiclass" else np.asarray)

    return train


def expected_grade(raw: Any) -> Any:
    """Mean grade under the probabilities of raw multiclass scores."""
    chances = np.exp(raw - raw.max(axis=1, keepdims=True))
    return chances @ np.arange(raw.shape[1]) / chances.sum(axis=1)


def xgboost_peer(parts: Any) -> tuple[Predict, int]:
    import xgboost

    params = {
        "objective": "rank:ndcg", "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 10,
        "max_depth": 0, "eta": 0.05, "nthread": 1,
    }  # fmt: skip
    matrix = xgboost.DMatrix(parts.train.X, parts.train.y)
    matrix.set_group(parts.train.sizes)
    booster = xgboost.train(params, matrix, ROUNDS)

    def raw(data: mcrank.Dataset, first: int, last: int) -> Any:
        # The constant it adds to every sum ranks nothing.
        return booster.predict(xgboost.DMatrix(data.X), iteration_range=(first, last), output_margin=True)

    return chosen_on_validation(parts, raw, np.asarray)


def catboost_peer(parts: Any) -> tuple[Predict, int]:
    import catboost

    params = {
        "loss_function": "YetiRank", "iterations": ROUNDS, "learning_rate": 0.05, "grow_policy": "Lossguide",
        "max_leaves": 10, "thread_count": 1, "verbose": False, "allow_writing_files": False,
        "random_seed": 0,
    }  # fmt: skip
    model = catboost.CatBoost(params)
    group = np.repeat(np.arange(parts.train.n_queries), parts.train.sizes)
    model.fit(catboost.Pool(parts.train.X, parts.train.y, group_id=group))

    def raw(data: mcrank.Dataset, first: int, last: int) -> Any:
        return model.predict(data.X, ntree_start=first, ntree_end=last, thread_count=1)

    return chosen_on_validation(parts, raw, np.asarray)


PEERS: dict[str, Callable[[Any], tuple[Predict, int]]] = {
    "LightGBM lambdarank": lightgbm_peer("lambdarank"),
    "LightGBM regression": lightgbm_peer("regression"),
    "LightGBM multiclass": lightgbm_peer("multiclass"),
    "XGBoost rank:ndcg": xgboost_peer,
    "CatBoost YetiRank": catboost_peer,
}


if __name__ == "__main__":
    main()
