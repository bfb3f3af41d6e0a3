"""Why LambdaMART was behind LightGBM's lambdarank: one option after the other, on sets made for choosing.

Each variant is one `fit(train, valid=valid)` with the round that the validation part chooses, measured on the
third part. Sets are artificial ones of other seeds than those of `quality.py`, and training and validation
files of the directory's sets cut at random: no test file is looked at, so that defaults may be chosen here.
`defaults.py` asks the same at the best common round of four folds, where no round is chosen by few queries.
The unit of the tests is the set; p-values are corrected by Holm's rule.

    python benchmarks/lambdas.py --data DATA --out docs/results/lambdas
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mcrank
from mcrank.stats import holm, paired_t
from quality import PEER, STOP, lightgbm_peer
from report import machine, write
from rounds import sets
from sets import Parts, outcomes, study_options

FIRST = 101  # seed of the first sets; `quality.py` and `rounds.py` begin with 1
BEFORE = {"truncation": 10, "norm": False}
VARIANTS: list[dict[str, Any]] = [
    BEFORE,
    {"truncation": 30, "norm": False},
    {"truncation": 10, "norm": True},
    {"truncation": 30, "norm": True},
    {"truncation": 30, "norm": False, "learning_rate": 0.05},
    {"truncation": 30, "norm": False, "num_leaves": 31},
    {"truncation": 30, "norm": True, "num_leaves": 31},
]


def named(options: dict[str, Any]) -> str:
    changed = {k: v for k, v in options.items() if BEFORE.get(k) != v}
    return ", ".join(f"{k}={v}" for k, v in changed.items()) or "as before"


SYSTEMS = {named(options): options for options in VARIANTS} | {PEER: {}}


def main() -> None:
    args = study_options(__doc__, "build/lambdas").parse_args()
    found: dict[str, dict[str, float]] = {name: {} for name in SYSTEMS}
    told = outcomes(
        args, sets(args.data, args.seeds, FIRST), SYSTEMS,
        lambda set_, name: f"{set_}.{name}.json".replace(" ", "_"), lambda _, name, parts: value(name, parts),
    )  # fmt: skip
    for set_, name, one in told:
        found[name][set_] = one
    write("Lambdas that might be defaults", summary(found), args.out)


def value(name: str, parts: Parts) -> float:
    """NDCG@10 of the third part."""
    train, valid, test = parts
    if name == PEER:
        scores = lightgbm_peer(parts)(test)
    else:
        ranker = mcrank.LambdaMART(early_stopping_rounds=STOP, n_jobs=1, **SYSTEMS[name])
        scores = ranker.fit(train, valid=valid).predict(test)
    return float(mcrank.NDCG(k=10).on(test).mean(test.to_grouped(np.asarray(scores, dtype=np.float64))))


def summary(found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A line for each variant, on the sets that all have been tried on."""
    whole = sorted(set.intersection(*(set(values) for values in found.values())))
    verdicts = [
        f"ndcg@10: mean of the third part over {len(whole)} sets ({', '.join(whole)}); difference to the "
        "first line; p: paired t test over sets, two-sided, corrected by Holm's rule over the lines",
        f"early_stopping_rounds={STOP}, all else but what is named is default; {PEER} as in quality.py",
    ]
    return {"machine": machine(), "rows": compared(found, "variant"), "verdicts": verdicts}


def compared(found: dict[str, dict[str, float]], what: str) -> list[dict[str, Any]]:
    """A line for each of some variants, by name and set, compared with the first of them."""
    whole = sorted(set.intersection(*(set(values) for values in found.values())))
    first, *others = ({set_: values[set_] for set_ in whole} for values in found.values())
    tests = [paired_t(values, first) for values in others]
    rows: list[dict[str, Any]] = []
    for name, values in zip(found, [first, *others], strict=True):
        gains = np.array([values[set_] - first[set_] for set_ in whole])
        rows.append(
            {
                what: name,
                "ndcg@10": round(float(np.mean(list(values.values()))), 4),
                "difference": round(float(gains.mean()), 4),
                "p": None,
                "corrected p": None,
                "sets better": f"{int((gains > 0).sum())}/{len(gains)}",
                "by set": [round(float(gain), 4) for gain in gains],
            }
        )
    for row, test, p in zip(rows[1:], tests, holm([test.p for test in tests]), strict=True):
        row |= {"p": float(f"{test.p:.2g}"), "corrected p": float(f"{p:.2g}")}
    return rows


if __name__ == "__main__":
    main()
