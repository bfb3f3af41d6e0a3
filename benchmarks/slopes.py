"""How far slopes of single grades should be pulled together when McRank's probabilities are corrected.

Artificial sets of the kinds of `grades.py`, but other draws: what is chosen here is measured there.

    python benchmarks/slopes.py --out build/slopes
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import mcrank
from mcrank.training import correcting
from report import machine, write
from sets import PARTED, parted

SEEDS = range(11, 15)
PULLS = (1.0, 10.0, 20.0, 30.0, 100.0, 300.0, None)  # None: one slope for all grades


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # that validation parts are small is what this is about
    rows = [row for kind in PARTED for row in measured(kind)]
    write("Slopes of grades, pulled together", {"machine": machine(), "rows": rows, "verdicts": []}, args.out)


def measured(kind: str) -> list[dict[str, Any]]:
    """A row for each strength of the pull: means over the draws of one kind."""
    found: dict[float | None, list[tuple[float, float, float]]] = {pull: [] for pull in PULLS}
    for seed in SEEDS:
        train, valid, test = parted(kind, seed)
        for pull in PULLS:
            correcting.MOST_SLOPES = 0 if pull is None else 10
            correcting.ALIKE = pull or 1.0
            ranker = mcrank.McRank(early_stopping_rounds=100, n_jobs=1).fit(train, valid=valid)
            told = ranker.calibration(test)
            found[pull].append((told.top.error, told.log_loss, ranker.score(test)))
    names = ("top-label error", "log loss", "ndcg@10")
    return [
        {"set": kind, "pull": "one slope" if pull is None else pull}
        | dict(zip(names, np.mean(values, axis=0).tolist(), strict=True))
        for pull, values in found.items()
    ]


if __name__ == "__main__":
    main()
