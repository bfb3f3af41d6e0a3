"""May the mean expected grade be moved after the fact, and would that be better?

The odds of grades that have the least log loss need not have the mean grade of the rows they were fitted to.
And training rows tell of the mean as well. Every query of a set is tested once, as in `rotation.py`, in other
draws. Ways:

- least log loss: as it is, rows weighing as `likely_shares` says
- held-out mean: all cuts moved alike, so that the held-out rows, as they weigh, have their mean grade, as
  mcrank does
- half the way: all cuts moved half as far
- mean of all: all cuts moved alike, so that training and held-out rows together have theirs
- together: least log loss, but shares of the grades are those of all queries, whatever they say (no such rule
  knows of training rows that were sampled: `levels.py`)

    python benchmarks/intercepts.py --data DATA --out docs/results/intercepts

The ways were first compared on draws 201 to 204 and again on 205 to 208, of sets that shared features; then
to move cuts was chosen. The figures are those of draws 211 to 214. Of DATA only the training and validation
files are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from levels import Case, together
from mcrank.scorers.odds import Odds
from mcrank.sums import ALONE
from mcrank.training.correcting import rows_used
from mcrank.training.odds import with_mean
from mcrank.training.shares import likely_shares
from quality import ours
from report import machine, write
from rotation import SIZES, SYSTEMS, Folds, below, near, off, pooled, rms
from sets import Parts, development, outcomes, rotated, rotations, study_options

FIRST, DRAWS = 211, 4
WAYS = ("least log loss", "held-out mean", "half the way", "mean of all", "together")
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
    notes += ["to least log loss: mean difference, and its standard error over sets"]
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
    return {way: pooled([partial(told, fold, way) for fold in made], tests)["calibration"] for way in WAYS}


def told(fold: dict[str, np.ndarray], way: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grades, their probabilities, and the scores that rank: expected grades."""
    return fold["grades"], fold[way], fold[way] @ fold["grades"]


def trained(name: str, parts: Parts) -> dict[str, np.ndarray]:
    """Grades, and by each way their probabilities for the test rows (rows x grades)."""
    ranker, _ = ours(f"{name}, calibrate=False")
    ranker.fit(parts[0], valid=parts[1])
    case, grades = Case.of(ranker, parts), ranker.grades_
    with patch("mcrank.training.odds.with_mean", lambda odds, *given: odds):
        found, head = case.corrected(likely_shares)
        other, by_all = case.corrected(together)
    odds = head.odds
    assert odds is not None
    given = case.classes, len(grades), None, case.offsets, ALONE, case.training
    used, weights = rows_used(*given)

    def moved(raw: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> Odds:
        above = case.head.learned_above(found.applied(raw, case.head))
        return with_mean(odds, above, classes, weight, ALONE)

    train = parts[0]
    learned, queries = ranker.learned_.raw(train.X), np.array([train.n_queries, len(case.offsets) - 1])
    rows_of = np.array([train.n_rows, int(used.sum())])
    to_mean = moved(case.raw[:, used], case.classes[used], weights)
    ways = {
        "least log loss": odds,
        "held-out mean": to_mean,
        "half the way": replace(odds, cuts=(odds.cuts + to_mean.cuts) / 2),
        "mean of all": moved(
            np.concatenate([learned, case.raw[:, used]], axis=1),
            np.concatenate([ranker._codes(train.y), case.classes[used]]),
            np.repeat(queries / rows_of, rows_of),
        ),
    }
    shown = found.applied(case.shown, case.head)
    made = {way: replace(head, odds=one).proba(shown).T for way, one in ways.items()}
    made["together"] = by_all.proba(other.applied(case.shown, case.head)).T
    return made | {"grades": grades}


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
                "to least log loss": f"{more.mean():+.5f}, {more.std(ddof=1) / len(more) ** 0.5:.5f}",
                "below constant guess": sum(map(below, own.values())),
                "top-label error": float(np.mean([one["top_label_error"] for one in own.values()])),
                "within .02 and chance": sum(map(near, own.values())),
            }


if __name__ == "__main__":
    main()
