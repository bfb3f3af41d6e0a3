"""Which options should be defaults: variants of rankers on many sets, resampled, with honest tests.

Every set is cut into five parts by query; three train, one chooses the round, one is measured on. Sets of
the directory give their training and validation files only, so that nothing is chosen on a test part. A
variant's gain is the mean over sets of its mean difference by query to the defaults; its test is over the
same queries, sets weighing equally, with Holm's correction over all variants of its ranker.

    python benchmarks/defaults.py --data ../shared/data --only mcrank,lambdamart --out docs/results/defaults
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

import mcrank
from mcrank.rankers.registry import ranker_class
from mcrank.stats import holm
from report import machine, write
from sets import development

MEASURE = "ndcg@10"
ROUNDS: dict[str, Any] = {"n_estimators": 300, "early_stopping_rounds": 60}
# What the defaults were when the study began: variants are compared with these, whatever they are now.
BASE: dict[str, dict[str, Any]] = {
    "mcrank": {**ROUNDS, "num_leaves": 10, "learning_rate": 0.05, "min_samples_leaf": 10, "split": "mse"},
    "ordinal": {**ROUNDS, "num_leaves": 10, "learning_rate": 0.05, "min_samples_leaf": 10, "split": "mse"},
    "regression": {**ROUNDS, "num_leaves": 10, "learning_rate": 0.05, "min_samples_leaf": 10, "split": "mse"},
    "lambdamart": {**ROUNDS, "num_leaves": 10, "learning_rate": 0.1, "min_samples_leaf": 10},
    "adarank": {},
}  # fmt: skip
_GRADES: list[dict[str, Any]] = [
    {"min_samples_leaf": 50},
    {"split": "newton"},
    {"min_samples_leaf": 50, "split": "newton"},
    {"min_samples_leaf": 25},
    {"min_samples_leaf": 100},
    {"min_samples_leaf": 50, "learning_rate": 0.1},
    {"min_samples_leaf": 50, "num_leaves": 6},
    {"min_samples_leaf": 50, "num_leaves": 16},
    {"init": "prior"},
]
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "mcrank": _GRADES,
    "lambdamart": [
        {"min_samples_leaf": 50},
        {"min_samples_leaf": 25},
        {"min_samples_leaf": 100},
        {"min_samples_leaf": 50, "learning_rate": 0.05},
        {"min_samples_leaf": 50, "num_leaves": 6},
        {"min_samples_leaf": 50, "num_leaves": 16},
        {"min_samples_leaf": 50, "norm": True},
        {"min_samples_leaf": 50, "truncation": 30},
        {"min_samples_leaf": 50, "l2": 1.0},
    ],
    "regression": [
        {"min_samples_leaf": 50},
        {"target": "grade"},
        {"target": "grade", "min_samples_leaf": 50},
        {"min_samples_leaf": 50, "num_leaves": 6},
        {"min_samples_leaf": 50, "learning_rate": 0.1},
        {"loss": "lad"},
    ],
    "ordinal": _GRADES[:4],
    "adarank": [
        {"signs": True},
        {"update": "paper"},
        {"tolerance": None},
        {"enqueue": False},
        {"signs": True, "tolerance": None, "enqueue": False},
    ],
}
PARTS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of data sets, each as read_folds takes it")
    parser.add_argument("--only", default=",".join(VARIANTS), help="rankers, separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="artificial sets of each kind")
    parser.add_argument("--cuts", type=int, default=3, help="parts measured on in turn, up to five")
    parser.add_argument("--work", default="build/defaults", help="folder of kept results")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    rankers = args.only.split(",")
    sets = list(development(args.data, args.seeds))
    # Cut by cut, so that a run that is stopped has seen all sets and variants equally often.
    trials = [
        (args.data, args.seeds, args.work, ranker, set_, cut)
        for cut in range(args.cuts)
        for ranker in rankers
        for set_ in sets
    ]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, *trial) for trial in trials]):
            print(done.result(), flush=True)
    rows = [row for ranker in rankers for row in summary(ranker, sets, args)]
    verdicts = [
        "difference: mean over sets of the mean difference by query to the first line of the ranker, on "
        "queries that neither trained nor chose the round; no test part of a file is among them",
        "p: over the same queries, sets weighing equally; corrected by Holm's rule over the variants",
        f"{len(sets)} sets: {', '.join(sets)}; {args.cuts} of five parts measured on in turn",
    ]
    result = {"machine": machine(), "rows": rows, "verdicts": verdicts}
    write("Options that might be defaults", result, args.out)


def variants(ranker: str) -> list[dict[str, Any]]:
    return [BASE[ranker], *({**BASE[ranker], **more} for more in VARIANTS[ranker])]


def kept(work: str, ranker: str, options: dict[str, Any], set_: str, cut: int) -> Path:
    text = json.dumps(options, sort_keys=True)
    name = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return Path(work) / f"{ranker}.{set_.replace(' ', '_')}.{cut}.{name}.json"


def run(data: str | None, seeds: int, work: str, ranker: str, set_: str, cut: int) -> str:
    """Train every variant of a ranker on one cut of one set; what is kept already is not done again."""
    todo = [o for o in variants(ranker) if not kept(work, ranker, o, set_, cut).exists()]
    if not todo:
        return f"{ranker} on {set_}, cut {cut + 1}: kept"
    whole = development(data, seeds)[set_]()
    parts = mcrank.kfold(whole, PARTS, seed=0)[cut]
    measure, began = mcrank.parse_measure(MEASURE), time.perf_counter()
    for options in todo:
        fitted = ranker_class(ranker)(**{**options, "n_jobs": 1}).fit(parts.train, valid=parts.valid)
        prepared = measure.on(parts.test)
        values = prepared.counted(prepared.per_query(parts.test.to_grouped(fitted.predict(parts.test))))
        target = kept(work, ranker, options, set_, cut)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        part.write_text(json.dumps({"values": values.tolist(), "round": fitted.best_round_}))
        part.replace(target)
    return f"{ranker} on {set_}, cut {cut + 1}: {time.perf_counter() - began:.0f} s"


def values_of(args: argparse.Namespace, ranker: str, options: dict[str, Any], set_: str) -> Any:
    """Values of all queries measured on, cuts one behind another; None where some cut is missing."""
    files = [kept(args.work, ranker, options, set_, cut) for cut in range(args.cuts)]
    found = [json.loads(file.read_text())["values"] for file in files if file.exists()]
    return np.concatenate(found) if len(found) == len(files) else None


def summary(ranker: str, sets: list[str], args: argparse.Namespace) -> list[dict[str, Any]]:
    """One line for each variant: its mean over sets, and its gain with p, on the sets that are complete."""
    options = variants(ranker)
    table = {s: [values_of(args, ranker, o, s) for o in options] for s in sets}
    table = {s: found for s, found in table.items() if all(values is not None for values in found)}
    rows: list[dict[str, Any]] = []
    for place, chosen in enumerate(options):
        means = [np.nanmean(found[place]) for found in table.values()]
        gains = [found[place] - found[0] for found in table.values()]
        errors = [np.nanstd(g, ddof=1) ** 2 / np.isfinite(g).sum() for g in gains]
        gain, error = float(np.mean([np.nanmean(g) for g in gains])), float(np.sqrt(sum(errors)) / len(gains))
        changed = {k: v for k, v in chosen.items() if BASE[ranker].get(k) != v}
        rows.append(
            {
                "ranker": ranker,
                "variant": ", ".join(f"{k}={v}" for k, v in changed.items()) or "as before",
                MEASURE: round(float(np.mean(means)), 4),
                "difference": round(gain, 4),
                "standard error": round(error, 4),
                "p": float(2 * norm.sf(abs(gain) / error)) if error > 0 else 1.0,
                "sets better": f"{sum(np.nanmean(g) > 0 for g in gains)}/{len(gains)}",
                "by set": [round(float(np.nanmean(g)), 4) for g in gains],
            }
        )
    for row, p in zip(rows[1:], holm([row["p"] for row in rows[1:]]), strict=True):
        row["corrected p"] = round(p, 3)
    rows[0] |= {"corrected p": None}
    for row in rows:
        row["p"] = round(row["p"], 4)
    return rows


if __name__ == "__main__":
    main()
