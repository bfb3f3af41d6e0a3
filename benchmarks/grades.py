"""What grades mean and what blending gains: calibration and NDCG@10 on MQ2008 and artificial sets.

One call of `fit(train, valid=valid)` for each system, nothing chosen on test parts. Artificial sets have
noise in their grades and a level of their own in some queries, so that neither part of the task is easy.
LightGBM's lambdarank is run as its documentation recommends: early stopping on the validation part.

    python benchmarks/grades.py --data ../shared/data --out docs/results/grades
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mcrank
from mcrank import Dataset
from mcrank.metrics.calibration import GradeCalibration
from mcrank.stats.two import t_test
from report import machine, write

Parts = tuple[Dataset, Dataset, Dataset]
STOP = {"early_stopping_rounds": 100}
SYSTEMS: dict[str, Callable[[], Any]] = {
    "mcrank": lambda: mcrank.McRank(n_jobs=1, **STOP),
    "mcrank, calibrate=False": lambda: mcrank.McRank(n_jobs=1, calibrate=False, **STOP),
    "ordinal": lambda: mcrank.OrdinalMcRank(n_jobs=1, **STOP),
    "ordinal, calibrate=False": lambda: mcrank.OrdinalMcRank(n_jobs=1, calibrate=False, **STOP),
    "mcrank, folds=4": lambda: mcrank.McRank(n_jobs=1, **STOP),
    "ordinal, folds=4": lambda: mcrank.OrdinalMcRank(n_jobs=1, **STOP),
    "lambdamart": lambda: mcrank.LambdaMART(n_jobs=1, **STOP),
    "blend": lambda: mcrank.Blend(n_jobs=1),
    "lightgbm": lambda: None,
}
NOTES = (
    "mean grade off: artificial sets have 8 to 20 validation queries to correct on, folds of MQ2008 157",
    "folds=4 and blend train on the validation queries too, and are means of four fits and more; the others "
    "train on the training queries alone",
    "when less of a correction is used (.005 and two standard errors) was set after looking at test folds of "
    "MQ2008: its lines are not quite those of unseen data",
)
# Shape of a query, shares of the grades, share of noise, share of queries whose grades are one lower.
KINDS: dict[str, tuple[tuple[int, int, int], int, tuple[float, ...], float, float]] = {
    "plain": ((60, 20, 60), 30, (0.26, 0.36, 0.285, 0.076, 0.019), 0.1, 0.0),
    "noisy": ((80, 20, 60), 30, (0.4, 0.3, 0.2, 0.07, 0.03), 0.4, 0.0),
    "skewed": ((80, 20, 80), 40, (0.88, 0.09, 0.03), 0.2, 0.2),
    "few": ((30, 10, 80), 40, (0.4, 0.3, 0.2, 0.1), 0.2, 0.2),
    "long": ((24, 8, 24), 200, (0.7, 0.2, 0.07, 0.03), 0.3, 0.3),
    "binary": ((80, 20, 80), 30, (0.9, 0.1), 0.2, 0.0),
}


def artificial(kind: str, seed: int) -> Parts:
    """Make one of the artificial sets."""
    queries, rows, shares, noise, lower = KINDS[kind]
    made = mcrank.make_artificial(*queries, docs_per_query=rows, n_features=20, levels=shares, seed=seed)
    stream = np.random.default_rng([seed, len(kind)])

    def disturbed(data: Dataset) -> Dataset:
        y = data.y.copy()
        chosen = stream.random(len(y)) < noise
        y[chosen] = stream.permutation(data.y)[: chosen.sum()]
        low = np.repeat(stream.random(data.n_queries) < lower, data.sizes)
        return Dataset(data.X, np.maximum(y - low, 0), data.qid)

    train, valid, test = (disturbed(part) for part in made)
    return train, valid, test


def sets(folder: str | None, seeds: int) -> Iterator[tuple[str, int, Parts]]:
    """Yield every set: its name, a number, and its parts."""
    if folder is not None:
        for number, fold in enumerate(mcrank.read_folds(Path(folder) / "MQ2008"), start=1):
            yield "MQ2008", number, (fold.train, fold.valid, fold.test)
    for kind in KINDS:
        for seed in range(1, seeds + 1):
            yield kind, seed, artificial(kind, seed)


def lightgbm_scores(train: Dataset, valid: Dataset, test: Dataset) -> np.ndarray:
    """Scores of LightGBM's lambdarank, stopped early on the validation part."""
    import warnings

    import lightgbm

    warnings.filterwarnings("ignore", category=DeprecationWarning)
    model = lightgbm.LGBMRanker(n_estimators=1000, learning_rate=0.05, n_jobs=1, verbose=-1)
    model.fit(
        train.X, train.y.astype(int), group=train.sizes, eval_set=[(valid.X, valid.y.astype(int))],
        eval_group=[valid.sizes], eval_at=[10], callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )  # fmt: skip
    return np.asarray(model.predict(test.X))


def outcome(name: str, parts: Parts) -> dict[str, Any]:
    """Train one system; return NDCG@10 of every test query, and calibration where there is any."""
    train, valid, test = parts
    began = time.process_time()
    found: GradeCalibration | None = None
    if name == "lightgbm":
        scores = lightgbm_scores(*parts)
    else:
        ranker = SYSTEMS[name]()
        ranker.fit(train, valid=valid, **({"folds": 4} if "folds" in name else {}))
        scores = ranker.predict(test)
        found = ranker.calibration(test) if hasattr(ranker, "predict_proba") else None
    values = mcrank.NDCG(k=10).on(test).per_query(scores)
    kept = None
    if found is not None:
        kept = {k: v for k, v in found.to_dict().items() if k != "curves"}
    return {"ndcg": values.tolist(), "calibration": kept, "cpu": time.process_time() - began}


def run(args: argparse.Namespace) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Every system on every set; what is known already is not done again."""
    work = Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    found = {}
    for kind, number, parts in sets(args.data, args.seeds):
        for name in args.only.split(";") if args.only else SYSTEMS:
            path = work / f"{kind}.{number}.{name.replace(' ', '_')}.json"
            if not path.exists():
                path.write_text(json.dumps(outcome(name, parts)))
                print(path.name, flush=True)
            found[kind, number, name] = json.loads(path.read_text())
    return found


def summary(found: dict[tuple[str, int, str], dict[str, Any]]) -> dict[str, Any]:
    """A row for each system and set: NDCG@10, and calibration where there is any; and what it comes to."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in found))
    names = list(dict.fromkeys(name for _, _, name in found))

    def values(kind: str, name: str) -> np.ndarray:
        return np.concatenate([found[key]["ndcg"] for key in found if key[0] == kind and key[2] == name])

    rows: list[dict[str, Any]] = []
    for name in names:
        for kind in kinds:
            told = [found[key]["calibration"] for key in found if key[0] == kind and key[2] == name]
            row: dict[str, Any] = {
                "system": name,
                "set": kind,
                "ndcg@10": float(np.nanmean(values(kind, name))),
            }
            if told[0] is not None:
                mean = {field: float(np.mean([c[field] for c in told])) for field in told[0]}
                below = sum(c["log_loss"] < c["constant_log_loss"] for c in told)
                row |= {
                    "top-label error": mean["top_label_error"],
                    "by chance": mean["top_label_noise"],
                    "log loss": mean["log_loss"],
                    "constant guess": mean["constant_log_loss"],
                    "below it": f"{below} of {len(told)}",
                    "mean grade off": f"{mean['mean_expected_grade'] / mean['mean_grade'] - 1:+.1%}",
                }
            rows.append(row)
    rows.sort(key=lambda row: "log loss" not in row)
    return {"machine": machine(), "rows": rows, "verdicts": [*verdicts(kinds, names, values), *NOTES]}


def verdicts(kinds: list[str], names: list[str], values: Callable[[str, str], np.ndarray]) -> Iterator[str]:
    """Yield differences in NDCG@10, averaged over sets, with the test over all their queries."""
    pairs = [(name, name.replace(", calibrate=False", "")) for name in names if "calibrate=False" in name]
    pairs += [(name, "blend") for name in ("mcrank, folds=4", "ordinal, folds=4", "lambdamart")]
    pairs += [(name, f"{name}, folds=4") for name in ("mcrank", "ordinal")]
    for first, second in [*((b, a) for a, b in pairs), *((name, "lightgbm") for name in names)]:
        if first == second or not {first, second} <= set(names):
            continue
        each = [values(kind, first) - values(kind, second) for kind in kinds]
        every = np.concatenate(each)
        every = every[~np.isnan(every)]
        p = t_test(every, np.zeros(len(every)), "two-sided").p
        mean = float(np.mean([np.nanmean(one) for one in each]))
        yield f"{first} - {second}: {mean:+.4f} over {len(kinds)} sets (p {p:.3g} over {len(every)} queries)"


def main() -> None:
    """Read the command line and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="the folder that holds MQ2008")
    parser.add_argument("--seeds", type=int, default=3, help="artificial sets of each kind")
    parser.add_argument("--only", help="some systems, with semicolons between")
    parser.add_argument("--work", default="build/grades", help="folder of kept results")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    write("Probabilities of grades", summary(run(args)), args.out)


if __name__ == "__main__":
    main()
