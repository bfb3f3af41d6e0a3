"""May the mean expected grade be moved after the fact, and would that be better?

The odds of grades are those of the least log loss, which need not have the mean grade of the rows they were
fitted to. And training rows tell of the mean as well. Every query of a set is tested once, as in
`rotation.py`, in other draws. Ways:

- as it is: the least log loss, rows weighing as `likely_shares` says
- held-out mean: all cuts moved alike, so that the held-out rows, as they weigh, have their mean grade
- mean of all: all cuts moved alike, so that training and held-out rows together have theirs
- together: as it is, but shares of the grades are those of all queries, whatever they say (no such rule
  knows of training rows that were sampled: `levels.py`)

    python benchmarks/intercepts.py --data DATA --out docs/results/intercepts

The ways were first compared on draws 201 to 204; the figures are those of draws 205 to 208. Of DATA only the
training and validation files are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from levels import Case, together
from mcrank.scorers.correction import Correction
from mcrank.scorers.heads import Head
from mcrank.sums import ALONE
from mcrank.training.correcting import rows_used
from mcrank.training.shares import likely_shares
from quality import ours
from report import machine, write
from rotation import SHARED, SIZES, SYSTEMS, Folds, below, near, off, pooled, rms
from sets import Parts, development, outcomes, rotated, rotations, study_options

FIRST, DRAWS = 205, 4
WAYS = ("as it is", "held-out mean", "mean of all", "together")
FARTHEST = 4.0  # that cuts are moved
Judged = dict[str, float]


def main() -> None:
    parser = study_options(__doc__, "build/intercepts")
    parser.set_defaults(seeds=DRAWS)
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first draw")
    args = parser.parse_args()
    found: dict[tuple[str, str, str, int], Judged] = {}
    for kind, number, make in sets(args.data, range(args.first, args.first + args.seeds)):
        told = outcomes(
            args, [(f"{kind}.{number}".replace(", ", "-"), make)], SYSTEMS,
            lambda set_, name: f"{set_}.{name}.json",
            lambda _, name, folds: outcome(name, folds),
        )  # fmt: skip
        for _, name, ways in told:
            found |= {(name, way, kind, number): judged for way, judged in ways.items()}
    notes = [
        f"draws from number {args.first} on",
        "mean grade off: of the whole set, every query tested once",
    ]
    notes += ["log loss to as it is: mean difference, and its standard error over sets", SHARED]
    result = {"machine": machine(), "rows": list(rows(found)), "verdicts": notes}
    write("Moving the mean grade", result, args.out)


def sets(directory: str | None, seeds: range) -> Iterator[tuple[str, int, Callable[[], Folds]]]:
    """Artificial sets of more than two grades, and cuts of the training and validation files."""
    for name, make in development(directory, 0).items():
        for seed in seeds:
            yield name, seed, lambda make=make, seed=seed: rotated(make(), seed)
    yield from (one for one in rotations(None, SIZES, seeds) if "binary" not in one[0])


def outcome(name: str, folds: Folds) -> dict[str, Judged]:
    """Figures of all test parts together, by each way."""
    made = [trained(name, parts) for parts in folds]
    tests = [parts[2] for parts in folds]
    return {
        way: pooled([lambda fold=fold, way=way: (fold["grades"], fold[way]) for fold in made], tests)[
            "calibration"
        ]
        for way in WAYS
    }


def trained(name: str, parts: Parts) -> dict[str, np.ndarray]:
    """Grades, and by each way their probabilities for the test rows (rows x grades)."""
    ranker, _ = ours(f"{name}, calibrate=False")
    ranker.fit(parts[0], valid=parts[1])
    case, grades = Case.of(ranker, parts), ranker.grades_
    found, head = case.corrected(likely_shares)
    given = case.classes, len(grades), None, case.offsets, ALONE, case.training
    used, weights = rows_used(*given)

    def moved(raw: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> Head:
        corrected = found.applied(raw, case.head)
        aim = np.average(grades[classes], weights=weight)
        return matched(head, lambda one: np.average(grades @ one.proba(corrected), weights=weight) - aim)

    train = parts[0]
    learned, queries = ranker.learned_.raw(train.X), np.array([train.n_queries, len(case.offsets) - 1])
    rows_of = np.array([train.n_rows, int(used.sum())])
    heads = {
        "as it is": head,
        "held-out mean": moved(case.raw[:, used], case.classes[used], weights),
        "mean of all": moved(
            np.concatenate([learned, case.raw[:, used]], axis=1),
            np.concatenate([ranker._codes(train.y), case.classes[used]]),
            np.repeat(queries / rows_of, rows_of),
        ),
    }
    made = {way: one.proba(found.applied(case.shown, case.head)).T for way, one in heads.items()}
    found, head = case.corrected(together)
    made["together"] = head.proba(found.applied(case.shown, case.head)).T
    return made | {"grades": grades}


def matched(head: Head, apart: Callable[[Head], float]) -> Head:
    """Return the head with its cuts moved alike, to where what rises with them is 0."""
    odds = head.odds
    assert odds is not None

    def with_cuts(by: float) -> Head:
        return Correction(np.ones(1), np.zeros(1), replace(odds, cuts=odds.cuts + by)).head(head)

    low, high = -FARTHEST, FARTHEST
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if apart(with_cuts(middle)) < 0 else (low, middle)
    return with_cuts((low + high) / 2)


def rows(found: dict[tuple[str, str, str, int], Judged]) -> Iterator[dict[str, Any]]:
    """A row for each system and way."""
    for name in SYSTEMS:
        usual = {key[2:]: one for key, one in found.items() if key[:2] == (name, WAYS[0])}
        for way in WAYS:
            own = {key[2:]: one for key, one in found.items() if key[:2] == (name, way)}
            apart = np.array([off(one) for one in own.values()])
            more = np.array([one["log_loss"] - usual[key]["log_loss"] for key, one in own.items()])
            yield {
                "system": name,
                "way": way,
                "sets": len(own),
                "mean grade off, rms": f"{rms(apart):.2%}",
                "mean": f"{apart.mean():+.2%}",
                "furthest": f"{apart[abs(apart).argmax()]:+.1%}",
                "within 5 %": int((abs(apart) <= 0.05).sum()),
                "log loss": round(float(np.mean([one["log_loss"] for one in own.values()])), 5),
                "to as it is": f"{more.mean():+.5f}, {more.std(ddof=1) / len(more) ** 0.5:.5f}",
                "below constant guess": sum(map(below, own.values())),
                "top-label error": float(np.mean([one["top_label_error"] for one in own.values()])),
                "within .02 and chance": sum(map(near, own.values())),
            }


if __name__ == "__main__":
    main()
