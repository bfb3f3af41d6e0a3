"""Which options should be defaults: variants of rankers on many sets, with honest tests.

A variant's value on a set is what tuning goes by: four folds by query train side by side, and the measure of
all held-out queries together, averaged over neighbouring rounds, is taken at the best common round; the round
is none of the variant's doing, so its choice adds no noise. Sets of the directory give their training and
validation files only: nothing is chosen on a test part. The unit of the tests is the set, as defaults are for
sets nobody has seen: paired t tests over sets, corrected by Holm's rule over the variants of a ranker.

    python benchmarks/defaults.py --data DATA --only 'mcrank;ordinal' --out docs/results/defaults
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

from mcrank.stats import holm, paired_t
from mcrank.tuning.space import space_of
from mcrank.tuning.trial import Trials
from report import machine, write
from sets import development

FOLDS = 4
ROUNDS = {"n_estimators": 300}
# What the defaults were when the study began: variants are compared with these, whatever they are now.
TREES = {**ROUNDS, "num_leaves": 10, "learning_rate": 0.05, "min_samples_leaf": 10, "split": "mse"}
BASE: dict[str, dict[str, Any]] = {
    "mcrank": {**TREES, "init": "zero"},
    "lambdamart": {**TREES, "learning_rate": 0.1, "split": "newton", "truncation": 10, "norm": False},
    # A second study, when test parts had shown LambdaMART behind LightGBM's lambdarank: from the defaults of
    # then, one thing after the other as LightGBM has it.
    "lambdamart, again": {
        **TREES,
        "learning_rate": 0.1,
        "split": "newton",
        "min_samples_leaf": 50,
        "truncation": 10,
        "norm": False,
    },
    "ordinal": {**TREES, "init": "zero"},
    "regression": {**TREES, "target": "gain"},
    "adarank": {"signs": False, "update": "ranklib"},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "mcrank": [
        {"min_samples_leaf": 50},
        {"split": "newton"},
        {"min_samples_leaf": 50, "split": "newton"},
        {"min_samples_leaf": 100},
        {"min_samples_leaf": 50, "num_leaves": 16},
    ],
    "lambdamart": [
        {"min_samples_leaf": 50},
        {"min_samples_leaf": 50, "num_leaves": 6},
        {"min_samples_leaf": 50, "learning_rate": 0.05},
        {"min_samples_leaf": 50, "norm": True},
    ],
    "lambdamart, again": [
        {"truncation": 30},
        {"truncation": 30, "norm": True},
        {"truncation": 30, "norm": True, "num_leaves": 31},
    ],
    "ordinal": [{"min_samples_leaf": 50}, {"min_samples_leaf": 50, "split": "newton"}],
    "regression": [
        {"min_samples_leaf": 50},
        {"target": "grade"},
        {"target": "grade", "min_samples_leaf": 50},
    ],
    "adarank": [{"signs": True}, {"update": "paper"}, {"enqueue": False}],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of data sets, each as read_folds takes it")
    parser.add_argument("--only", default=";".join(VARIANTS), help="rankers, with semicolons between")
    parser.add_argument("--seeds", type=int, default=2, help="artificial sets of each kind")
    parser.add_argument("--work", default="build/defaults", help="folder of kept results")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    rankers = [name.strip() for name in args.only.split(";")]
    sets = list(development(args.data, args.seeds))
    trials = [(args.data, args.seeds, args.work, ranker, set_) for set_ in sets for ranker in rankers]
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, *trial) for trial in trials]):
            print(done.result(), flush=True)
    rows = [row for ranker in rankers for row in summary(ranker, sets, args.work)]
    verdicts = [
        "ndcg@10: mean over sets of the out-of-fold value at the best common round; difference to the first "
        "line of the ranker; no test part of a file is in any set",
        "p: paired t test over sets, two-sided; corrected by Holm's rule over the variants of the ranker",
        f"{len(sets)} sets: {', '.join(sets)}",
    ]
    result = {"machine": machine(), "rows": rows, "verdicts": verdicts}
    write("Options that might be defaults", result, args.out)


def variants(ranker: str) -> list[dict[str, Any]]:
    return [BASE[ranker], *({**BASE[ranker], **more} for more in VARIANTS[ranker])]


def kept(work: str, ranker: str, options: dict[str, Any], set_: str) -> Path:
    name = hashlib.blake2b(json.dumps(options, sort_keys=True).encode(), digest_size=6).hexdigest()
    return Path(work) / f"{ranker}.{set_.replace(' ', '_')}.{name}.json"


def run(data: str | None, seeds: int, work: str, ranker: str, set_: str) -> str:
    """Train every variant of a ranker on one set; what is kept already is not done again."""
    todo = [o for o in variants(ranker) if not kept(work, ranker, o, set_).exists()]
    if not todo:
        return f"{ranker} on {set_}: kept"
    whole, began = development(data, seeds)[set_](), time.perf_counter()
    for options in todo:
        trial = Trials(whole, space_of(ranker.split(",")[0], options, {}), FOLDS, 0, 1).run(0, {})
        target = kept(work, ranker, options, set_)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        part.write_text(json.dumps({"value": trial.value, "round": trial.rounds, "error": trial.error}))
        part.replace(target)
    return f"{ranker} on {set_}: {time.perf_counter() - began:.0f} s"


def summary(ranker: str, sets: list[str], work: str) -> list[dict[str, Any]]:
    """One line for each variant: its mean over sets and its gain with p, on the sets that are complete."""
    options = variants(ranker)
    whole = [s for s in sets if all(kept(work, ranker, o, s).exists() for o in options)]
    table = [{s: json.loads(kept(work, ranker, o, s).read_text())["value"] for s in whole} for o in options]
    rows: list[dict[str, Any]] = []
    for chosen, values in zip(options, table, strict=True):
        gains = np.array([values[s] - table[0][s] for s in whole])
        changed = {k: v for k, v in chosen.items() if k not in BASE[ranker] or BASE[ranker][k] != v}
        rows.append(
            {
                "ranker": ranker,
                "variant": ", ".join(f"{k}={v}" for k, v in changed.items()) or "as before",
                "ndcg@10": round(float(np.mean(list(values.values()))), 4),
                "difference": round(float(gains.mean()), 4),
                "standard error": round(float(gains.std(ddof=1) / np.sqrt(len(gains))), 4),
                "p": round(paired_t(values, table[0]).p, 4),
                "sets better": f"{int((gains > 0).sum())}/{len(gains)}",
                "by set": [round(float(gain), 4) for gain in gains],
            }
        )
    for row, p in zip(rows[1:], holm([row["p"] for row in rows[1:]]), strict=True):
        row["corrected p"] = round(p, 3)
    rows[0] |= {"p": None, "corrected p": None}
    return rows


if __name__ == "__main__":
    main()
