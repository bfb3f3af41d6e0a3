"""Which rounds to keep, and whether a second head pays: rules and heads on many sets, with honest tests.

Each ranker is trained once on each set for ROUNDS rounds; every rule then says which rounds (or which mean of
rounds, which is a forest too) the validation part asks for, and is measured on the test part. The heads are
LambdaMART going on from the expected grades of McRank, and McRank from the scores of LambdaMART, each with
the round that the validation part chooses. Sets are artificial ones and parts of the training queries of the
directory's sets: no test file is looked at. The unit of the tests is the set; p-values are corrected by
Holm's rule.

    python benchmarks/rounds.py --data DATA --out docs/results/rounds
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mcrank
from mcrank.stats import holm, paired_t
from mcrank.tuning.trial import smoothed
from report import machine, write
from sets import PARTED, Parts, development, outcomes, parted, study_options

ROUNDS, BOOTSTRAPS = 200, 200
RANKERS = {"mcrank": mcrank.McRank, "ordinal": mcrank.OrdinalMcRank, "lambdamart": mcrank.LambdaMART}


def sets(directory: str | None, seeds: int, first: int = 1) -> Iterator[tuple[str, Callable[[], Parts]]]:
    """Yield sets of three parts: artificial ones, and training and validation files cut at random."""
    for seed in range(first, first + seeds):
        for kind in PARTED:
            yield f"{kind} {seed}", lambda kind=kind, seed=seed: parted(kind, seed)
        for name, make in development(directory, 0).items():
            yield f"{name} {seed}", lambda make=make, seed=seed: _cut(make(), seed)


def _cut(data: mcrank.Dataset, seed: int) -> Parts:
    """As much validation data as is usual there, and the rest in halves."""
    train, valid, test = mcrank.split(data, 0.45, 0.1, 0.45, seed=seed)
    return train, valid, test


def weights_of(values: np.ndarray, rule: str, seed: int) -> np.ndarray:
    """Weight of each round by a rule; ``values`` are those of the validation queries (rounds x queries)."""
    mean, n = values.mean(axis=1), values.shape[1]
    best = int(mean.argmax())
    rounds = np.arange(len(mean))
    if rule == "best":
        return (rounds == best).astype(float)
    if rule == "best of eleven together":
        return (rounds == int(smoothed(mean).argmax())).astype(float)
    if rule == "eleven around the best":
        return (abs(rounds - best) <= 5).astype(float)
    error = (values - values[best]).std(axis=1, ddof=1) / np.sqrt(n)
    near = mean >= mean[best] - error
    if rule == "first within an error":
        return (rounds == int(near.argmax())).astype(float)
    if rule == "mean of all within an error":
        return near.astype(float)
    if rule == "mean of the second half":
        return (rounds >= len(mean) // 2).astype(float)
    # How often each round would be the best, were the queries drawn again.
    stream = np.random.default_rng(seed)
    draws = stream.multinomial(n, np.full(n, 1 / n), size=BOOTSTRAPS)
    return np.bincount((draws @ values.T).argmax(axis=1), minlength=len(mean)).astype(float)


RULES = (
    "best", "best of eleven together", "eleven around the best", "first within an error",
    "mean of all within an error", "mean of the second half", "mean by bootstrap",
)  # fmt: skip


def staged(ranker: Any, data: mcrank.Dataset) -> np.ndarray:
    """Raw outputs after each round: rounds x outputs x rows, in float32."""
    return np.array([raw.astype(np.float32) for raw in ranker._staged_raw(data, "rounds")])


def rules_on(kind: str, parts: Parts, seed: int) -> dict[str, float]:
    """NDCG@10 of the test part by each rule."""
    train, valid, test = parts
    ranker = RANKERS[kind](n_estimators=ROUNDS, n_jobs=1).fit(train)
    measure, head = mcrank.NDCG(k=10), ranker.head_
    bound = measure.on(valid)
    values = np.array([bound.per_query(head.rank(raw.astype(float))) for raw in staged(ranker, valid)])
    values = values[:, ~np.isnan(values).any(axis=0)]
    weights = np.array([weights_of(values, rule, seed) for rule in RULES])
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.tensordot(weights, staged(ranker, test), 1)
    return dict(zip(RULES, (float(measure.on(test).mean(head.rank(raw))) for raw in mean), strict=True))


def heads_on(parts: Parts) -> dict[str, float]:
    """NDCG@10 of the test part by single rankers, one going on from the other, and both together."""
    train, valid, test = parts
    options = {"n_jobs": 1, "n_estimators": 300, "early_stopping_rounds": 50}
    graded = mcrank.McRank(**options).fit(train, valid=valid)
    listed = mcrank.LambdaMART(**options).fit(train, valid=valid)
    grades, scores = ([one.predict(part) for part in parts] for one in (graded, listed))
    lambdas = mcrank.LambdaMART(**options).fit(
        train, valid=valid, init_score=grades[0], valid_init_score=grades[1]
    )
    steps = graded.grades_ - graded.grades_.mean()
    scale = 1.0 / max(float(scores[1].std()), 1e-9)
    prior = np.log([(train.y == grade).mean() for grade in graded.grades_])
    starts = [prior + scale * np.outer(one, steps) for one in scores]
    probable = mcrank.McRank(**options, init="zero", calibrate=False)
    if len(prior) > 2:
        probable.fit(train, valid=valid, init_score=starts[0], valid_init_score=starts[1])
        back = probable.head_.rank(probable._raw(test, "x") + starts[2].T)
    else:  # one output: the log-odds of the higher grade
        starts = [one[:, 1] - one[:, 0] for one in starts]
        probable.fit(train, valid=valid, init_score=starts[0], valid_init_score=starts[1])
        back = probable.head_.rank(probable._raw(test, "x") + starts[2])
    bound = mcrank.NDCG(k=10).on(test)
    onward = grades[2] + lambdas.predict(test)
    both = grades[2] / grades[2].std() + scores[2] / max(float(scores[2].std()), 1e-9)
    return {
        "mcrank": bound.mean(grades[2]),
        "lambdamart": bound.mean(scores[2]),
        "lambdamart from mcrank": bound.mean(onward),
        "mcrank from lambdamart": bound.mean(back),
        "sum of both": bound.mean(both),
        "mean off, mcrank": float(grades[2].mean() / test.y.mean() - 1),
        "mean off, lambdamart from mcrank": float(onward.mean() / test.y.mean() - 1),
        "further rounds": float(lambdas.best_round_),
    }


def main() -> None:
    args = study_options(__doc__, "build/rounds").parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {kind: {} for kind in (*RANKERS, "heads")}

    def outcome(name: str, kind: str, parts: Parts) -> dict[str, float]:
        seed = int(name.split()[-1])
        told = heads_on(parts) if kind == "heads" else rules_on(kind, parts, seed)
        return {k: float(v) for k, v in told.items()}

    every = sets(args.data, args.seeds)
    for name, kind, told in outcomes(
        args, every, found, lambda name, kind: f"{kind}.{name.replace(' ', '_')}.json", outcome
    ):
        found[kind][name] = told
    rows = [row for kind, told in found.items() if told for row in lines(kind, told)]
    result = {"machine": machine(), "rows": rows, "verdicts": [*verdicts(found["heads"]), *NOTES]}
    write("Which rounds to keep, and a second head", result, args.out)


def verdicts(heads: dict[str, dict[str, float]]) -> Iterator[str]:
    """Say what going on with another loss does to the mean grade."""
    for name in ("mcrank", "lambdamart from mcrank") if heads else ():
        off = np.array([one[f"mean off, {name}"] for one in heads.values()])
        yield f"mean score of {name} against the mean grade: off by {np.sqrt((off**2).mean()):.0%} (rms)"


NOTES = [
    "rule `best` is what `fit(valid=)` does; a mean is one of raw outputs over rounds, each with the weight "
    "that the rule gives it, and so one forest",
    "ndcg@10: mean over sets of the test part; difference to the first line; p: paired t test over sets, "
    "two-sided, corrected by Holm's rule over the lines of the ranker",
    "heads: LambdaMART going on from the expected grade of McRank (`init_score`), McRank from the scores of "
    "LambdaMART, and the sum of both, standardised",
]


def lines(kind: str, told: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """A line for each rule or head."""
    systems = [
        name for name in next(iter(told.values())) if "mean off" not in name and name != "further rounds"
    ]
    values = {system: {name: one[system] for name, one in told.items()} for system in systems}
    tests = [paired_t(values[system], values[systems[0]]) for system in systems[1:]]
    rows = []
    for at, system in enumerate(systems):
        row: dict[str, Any] = {
            "of": kind,
            "way": system,
            "ndcg@10": round(float(np.mean(list(values[system].values()))), 4),
        }
        if at:
            better = sum(values[system][name] > values[systems[0]][name] for name in told)
            row |= {
                "difference": round(tests[at - 1].difference, 4),
                "p": float(f"{tests[at - 1].p:.2g}"),
                "corrected p": float(f"{holm([test.p for test in tests])[at - 1]:.2g}"),
                "sets better": f"{better}/{len(told)}",
            }
        else:
            row |= {"difference": 0.0, "p": None, "corrected p": None, "sets better": ""}
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
