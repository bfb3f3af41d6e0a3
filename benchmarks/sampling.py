"""What share of the queries each round should see, for each ranker, on sets made for choosing.

Each variant is one `fit(train, valid=valid)` with the round that the validation part chooses, measured on the
third part, or with ``folds=4`` one `fit` of both. Sets are those of `lambdas.py` of other seeds: no test file
is looked at, so that defaults may be chosen here. The unit of the tests is the set; p-values are corrected by
Holm's rule over the shares of a ranker.

    python benchmarks/sampling.py --data DATA --seeds 3 --out docs/results/sampling
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mcrank
from lambdas import compared
from mcrank.rankers.registry import ranker_class
from quality import STOP
from report import machine, write
from rounds import sets
from sets import Parts, outcomes, study_options

FIRST = 201  # seed of the first sets; `lambdas.py` begins with 101
SHARES = (1.0, 0.5, 0.7, 0.8)
SYSTEMS = [
    *(f"{name}, {share}" for name in ("mcrank", "ordinal", "regression", "lambdamart") for share in SHARES),
    *(f"{name}, folds=4, {share}" for name in ("mcrank", "ordinal") for share in (1.0, 0.8)),
]


def main() -> None:
    args = study_options(__doc__, "build/sampling").parse_args()
    found: dict[str, dict[str, float]] = {system: {} for system in SYSTEMS}
    told = outcomes(
        args,
        sets(args.data, args.seeds, FIRST),
        SYSTEMS,
        lambda set_, system: f"{set_}.{system}.json".replace(" ", "_"),
        lambda _, system, parts: value(system, parts),
    )
    for set_, system, one in told:
        found[system][set_] = one
    write("How many queries a round should see", summary(found), args.out)


def value(system: str, parts: Parts) -> float:
    """NDCG@10 of the third part."""
    train, valid, test = parts
    name, *folds, share = system.split(", ")
    ranker = ranker_class(name)(early_stopping_rounds=STOP, n_jobs=1, subsample=float(share))
    if folds:
        ranker.fit(mcrank.Dataset.merge(parts[:2]), folds=4)
    else:
        ranker.fit(train, valid=valid)
    scores = np.asarray(ranker.predict(test), dtype=np.float64)
    return float(mcrank.NDCG(k=10).on(test).mean(test.to_grouped(scores)))


def summary(found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A line for each share of each ranker, compared with all queries."""
    rows: list[dict[str, Any]] = []
    for ranker in dict.fromkeys(system.rpartition(", ")[0] for system in SYSTEMS):
        values = {s.rpartition(", ")[2]: v for s, v in found.items() if s.rpartition(", ")[0] == ranker}
        rows += [{"ranker": ranker, **row} for row in compared(values, "subsample")]
    whole = sorted(found[SYSTEMS[0]])
    verdicts = [
        f"ndcg@10: mean of the third part over {len(whole)} sets ({', '.join(whole)}); difference to the "
        "first line of the ranker; p: paired t test over sets, two-sided, corrected over its lines",
        f"early_stopping_rounds={STOP}; all else but what is named is default",
    ]
    return {"machine": machine(), "rows": rows, "verdicts": verdicts}


if __name__ == "__main__":
    main()
