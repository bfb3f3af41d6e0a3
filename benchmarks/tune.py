"""What tuning finds in a few minutes, beside Optuna driving LightGBM for as long on the same folds.

Both search on the same queries, cut into the same folds, with the same sampler, and are judged alike: by the
best common round of the mean over all held-out queries, averaged over eleven neighbouring rounds. The peer's
trials stop as ours do. Queries that took no part in either search are measured once, by what was found.

    python benchmarks/tune.py --data DATA/MSLR-mini --minutes 5 --out docs/results/tune
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

import mcrank
from mcrank.cores import available_cores
from mcrank.data.folds import find_folds
from mcrank.tuning.space import space_of
from mcrank.tuning.trial import PATIENCE, Trials, query_values, smoothed
from report import machine, write

EVERY = 10
# The peer's threads would wait busily, which a shared machine does not forgive. (Boosters grown by threads of
# our own are no way out: they get in each other's way, and measure what no single one of them does.)
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with train, vali and test files")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--rankers", default="lambdamart,mcrank")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    files = find_folds(args.data)[0]
    parts = {part: mcrank.read(path, n_features=136) for part, path in files.items()}
    data, test = mcrank.Dataset.merge([parts["train"], parts["valid"]]), parts["test"]
    rows = [ours(name, data, test, args) for name in args.rankers.split(",")]
    rows.append(theirs(data, test, args))
    best, peer = max(row["out of fold"] for row in rows[:-1]), rows[-1]["out of fold"]
    verdicts = []
    for row in rows[:-1]:
        word = "better" if row["out of fold"] > row["defaults out of fold"] else "NOT better"
        verdicts.append(
            f"{row['system']}: {row['out of fold']:.4f} out of fold, its defaults "
            f"{row['defaults out of fold']:.4f}: {word}"
        )
    verdicts += [
        f"LightGBM, tuned for as long: {peer:.4f} out of fold, {'BEATS' if peer > best else 'does not beat'} "
        "the best of ours",
        "out of fold: ndcg@10 over all held-out queries at the best common round, the best of all trials, "
        "and so too high by what that choice gains; test: queries that took no part, measured once",
        "the machine was shared while this ran: trials in the same minutes say little of speed",
    ]
    result = {"machine": machine(), "rows": rows, "verdicts": verdicts}
    write(f"Tuning for {args.minutes:g} minutes", result, args.out)


def ours(name: str, data: mcrank.Dataset, test: mcrank.Dataset, args: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()
    ranker = mcrank.tune(data, name, minutes=args.minutes, folds=args.folds, test=test, seed=args.seed)
    seconds, found = time.perf_counter() - began, ranker.tuning_
    states = [trial.state for trial in found.trials]
    return {
        "system": f"mcrank tune --ranker {name}",
        "trials": len(states),
        "stopped early": states.count("pruned"),
        "defaults out of fold": round(found.trials[0].value, 4),
        "out of fold": round(found.trials[found.best].value, 4),
        "defaults test": round(found.estimate.start.mean, 4),
        "test": round(found.estimate.tuned.mean, 4),
        "seconds": round(seconds, 1),
        "found": str(found.options),
    }


def grown(booster: Any, bound: Any) -> float:
    """Grow one round, and measure what was held out."""
    booster.update()
    told = booster.eval_valid(lambda scores, _: ("ndcg", bound.mean(scores), True))
    ((_, _, value, _),) = told
    return float(value)


class Peer:
    """LightGBM's lambdarank on the folds that our trials have."""

    def __init__(self, data: mcrank.Dataset, args: argparse.Namespace) -> None:
        import lightgbm

        space = space_of("lambdamart", {}, {})
        self.trials = Trials(data, space, args.folds, args.seed, 1)
        self.measure = self.trials.measure
        self.lightgbm = lightgbm
        self.threads = available_cores()
        self.bound = [self.measure.on(held) for _, held in self.trials.parts]

    def boosters(self, params: dict[str, Any]) -> list[Any]:
        """One booster a fold, to be grown round by round."""
        found = []
        make = self.lightgbm.Dataset
        for train, held in self.trials.parts:
            # Its own bins each time, as min_data_in_leaf has a say in them.
            rows = make(train.X, train.y, group=train.sizes, params=params, free_raw_data=False)
            booster = self.lightgbm.Booster(params, rows)
            booster.add_valid(make(held.X, held.y, group=held.sizes, reference=rows), "held")
            found.append(booster)
        return found

    def run(self, params: dict[str, Any], prune: Any, over: Any) -> tuple[float, int, str]:
        """Value, round and state of one set of parameters."""
        boosters, curve, state = self.boosters(params), [], "complete"
        for number in range(1, 1001):
            means = [grown(booster, bound) for booster, bound in zip(boosters, self.bound, strict=True)]
            curve.append(np.average(means, weights=self.trials.weights))
            if over():
                state = "cut"
                break
            smooth = smoothed(np.array(curve))
            if number % EVERY == 0 and prune(number, float(smooth.max())):
                state = "pruned"
                break
            if number - int(smooth.argmax()) - 1 >= PATIENCE:
                break
        smooth = smoothed(np.array(curve))
        return float(smooth.max()), int(smooth.argmax()) + 1, state


def theirs(data: mcrank.Dataset, test: mcrank.Dataset, args: argparse.Namespace) -> dict[str, Any]:
    import lightgbm
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    began = time.perf_counter()
    end = began + 60 * args.minutes - 5
    peer = Peer(data, args)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=args.seed, multivariate=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=19),
    )
    fixed = {
        "objective": "lambdarank",
        "metric": "none",  # else `eval_valid` tells its own ndcg@1 first
        "verbose": -1,
        "num_threads": peer.threads,
        "seed": 0,
        "bagging_freq": 1,
    }
    study.enqueue_trial(
        {"num_leaves": 31, "learning_rate": 0.1, "min_data_in_leaf": 20, "feature_fraction": 1.0,
         "bagging_fraction": 1.0, "lambda_l2": 1e-3, "lambdarank_truncation_level": 30}
    )  # fmt: skip
    best: tuple[float, int, dict[str, Any]] = (0.0, 0, {})
    first, states = None, []
    while time.perf_counter() < end:
        trial = study.ask()
        params = fixed | {
            "num_leaves": trial.suggest_int("num_leaves", 4, 64, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.3, log=True),
            "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 5, 200, log=True),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.3, 1.0),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
            "lambda_l2": trial.suggest_float("lambda_l2", 1e-3, 10.0, log=True),
            "lambdarank_truncation_level": trial.suggest_int("lambdarank_truncation_level", 10, 40),
        }

        def prune(step: int, value: float, trial: Any = trial) -> bool:
            trial.report(value, step)
            return bool(trial.should_prune())

        value, rounds, state = peer.run(params, prune, lambda: time.perf_counter() > end)
        if state == "cut":
            break
        states.append(state)
        first = value if first is None else first
        done = state == "complete"
        kind = optuna.trial.TrialState.COMPLETE if done else optuna.trial.TrialState.PRUNED
        study.tell(trial, value if done else None, state=kind)
        if done and value > best[0]:
            best = value, rounds, params
    values = {0: float("nan")}
    if best[1]:  # a busy machine may not finish one trial
        rows = lightgbm.Dataset(data.X, data.y, group=data.sizes, params=best[2])
        booster = lightgbm.train(best[2], rows, best[1])
        values = query_values(peer.measure, test, booster.predict(test.X))
    return {
        "system": f"Optuna and LightGBM {lightgbm.__version__} lambdarank",
        "trials": len(states),
        "stopped early": states.count("pruned"),
        "defaults out of fold": round(first or 0.0, 4),
        "out of fold": round(best[0], 4),
        "defaults test": None,
        "test": round(float(np.mean(list(values.values()))), 4),
        "seconds": round(time.perf_counter() - began, 1),
        "found": str(best[2]),
    }


if __name__ == "__main__":
    main()
