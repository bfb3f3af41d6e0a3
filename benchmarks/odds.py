"""Should probabilities of grades be those of the score, or those learned, and how far can either get?

Artificial sets of the kinds of `grades.py`, but other draws, and cuts of the training and validation files of
DATA: what is chosen here is measured there. "Fitted to the test rows" is no method: it
tells what would be left with held-out rows without end; all else is few held-out queries.

    python benchmarks/odds.py --data DATA --out docs/results/odds

Shares of both ways were compared on draws 41 to 48 (`--first 41`), and a quarter as learned looked at again
on draws 51 to 58, before the figures of `grades.py` were made with it. Where the line may bend, and the pull
against it, were chosen on draws 41 to 44 and three larger sets. "James and Stein's rule" is how held-out
queries were believed about the shares of grades before `levels.py` looked at it again.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import mcrank
from mcrank.metrics.calibration import calibration
from mcrank.sums import ALONE
from mcrank.training import odds
from mcrank.training.correcting import fit_correction
from mcrank.training.shares import Shares, grade_shares
from quality import top_noise
from report import machine, write
from sets import PARTED, Parts, development, parted

FIRST, DRAWS = 21, 8
WAYS = ("as learned", "by the score", "by the score, not bent", "by the score, none stray")
BEFORE = "by the score, James and Stein's rule"
SHARES = {"a quarter as learned": 0.25, "half as learned": 0.5}  # the rest by the score
BEST = ("as learned, fitted to the test rows", "by the score, fitted to the test rows")
RANKERS = {"mcrank": mcrank.McRank, "ordinal": mcrank.OrdinalMcRank}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", help="folder of data sets; their test files are not looked at")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first draw and cut")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # that validation parts are small is what this is about
    seeds = range(args.first, args.first + DRAWS)
    rows = [row for kind, draws in sets(args.data, seeds) for row in measured(kind, draws)]
    notes = [
        f"{DRAWS} draws of each artificial kind, {DRAWS} cuts of each set of files, from number {args.first} "
        "on: half of the queries to train, a sixth to validate, a third to test",
        "above the line: top-label error less .02 and less what whole queries give by chance, mean of draws",
    ]
    write("Probabilities by the score", {"machine": machine(), "rows": rows, "verdicts": notes}, args.out)


def sets(directory: str | None, seeds: range) -> Iterator[tuple[str, list[Callable[[], Parts]]]]:
    """Kinds of sets, and how each draw of them is made."""
    for kind, (_, _, shares, *_) in PARTED.items():
        if len(shares) > 2:  # of two grades both ways are one
            yield kind, [lambda kind=kind, seed=seed: parted(kind, seed) for seed in seeds]
    yield "large", [partial(mcrank.make_artificial, 300, 120, 240, seed=seed) for seed in seeds[:3]]
    for name, make in development(directory, 0).items():
        yield name, [lambda make=make, seed=seed: cut(make(), seed) for seed in seeds]


def cut(data: mcrank.Dataset, seed: int) -> Parts:
    """Half of the queries to train, a sixth to validate, a third to test."""
    place = np.random.default_rng(seed).permutation(data.n_queries) / data.n_queries
    train, valid, test = (
        data.select((place >= a) & (place < b)) for a, b in ((0, 1 / 2), (1 / 2, 2 / 3), (2 / 3, 1))
    )
    return train, valid, test


def measured(kind: str, draws: list[Callable[[], Parts]]) -> Iterator[dict[str, Any]]:
    """A row for each ranker and way: means over the draws of one kind."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for make in draws:
        parts = make()
        for name, ranker in RANKERS.items():
            grades, ways = told(ranker, parts)
            for way, chances in ways.items():
                found.setdefault((name, way), []).append(figures(chances, grades, parts[2]))
    for (name, way), values in sorted(found.items(), key=lambda item: item[0][0]):
        error, chance, loss, off, expected = np.array(values).T
        yield {
            "system": name,
            "set": kind,
            "probabilities": way,
            "top-label error": error.mean(),
            "above the line": (error - 0.02 - chance).mean(),
            "draws within it": f"{(error <= 0.02 + chance).sum()} of {len(error)}",
            "log loss": loss.mean(),
            "expected-grade error": expected.mean(),
            "mean grade off (rms)": np.sqrt((off**2).mean()),
        }


def told(kind: Any, parts: Parts) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Grades, and the probabilities of them of the test rows (rows x grades), by each way."""
    train, valid, test = parts
    ranker = kind(early_stopping_rounds=100, n_jobs=1, calibrate=False).fit(train, valid=valid)
    head, made = ranker.head_, {}
    shares = grade_shares(ranker._codes(train.y), len(head.values), None, train.offsets, ALONE)
    shown = ranker.learned_.raw(test.X)
    for ways, part, known in ((WAYS, valid, shares), (BEST, test, None)):
        raw, classes = ranker.learned_.raw(part.X), ranker._codes(part.y)
        found = fit_correction(raw, classes, head, None, part.offsets, ALONE, known)
        corrected = found.applied(shown, head)
        made[ways[0]] = head.proba(corrected)
        for way in ways[1:]:
            usual = odds.STRAY, odds._TURNS, odds.KNOTS
            if "none" in way:
                odds.STRAY, odds._TURNS = 0.0, 0
            if "not" in way:
                odds.KNOTS = np.empty(0)
            fitted = odds.fit_odds(found.applied(raw, head), classes, head, None, part.offsets, ALONE, known)
            odds.STRAY, odds._TURNS, odds.KNOTS = usual
            made[way] = fitted.proba(head.above(corrected))
    with patch("mcrank.training.correcting.likely_shares", james_stein):
        given = ranker._codes(valid.y), head, None, valid.offsets, ALONE, shares
        raw = ranker.learned_.raw(valid.X)
        found = fit_correction(raw, *given)
        fitted = odds.fit_odds(found.applied(raw, head), *given)
        made[BEFORE] = fitted.proba(head.above(found.applied(shown, head)))
    learned, by_score = made[WAYS[0]], made[WAYS[1]]
    shared = {way: share * learned + (1 - share) * by_score for way, share in SHARES.items()}
    made = {**{way: made[way] for way in (*WAYS, BEFORE)}, **shared, **{way: made[way] for way in BEST}}
    return head.values, {way: chances.T for way, chances in made.items()}


def james_stein(held_out: Shares, training: Shares) -> np.ndarray:
    """Shares of the grades as `likely_shares` had them before: a difference is believed as far as it is more
    than chance, and held-out queries tell themselves how much they vary.
    """
    queries = held_out.queries + training.queries
    both = (held_out.queries * held_out.share + training.queries * training.share) / queries
    apart, varies = held_out.share - training.share, held_out.varies + training.varies
    rank = np.linalg.matrix_rank(varies, tol=1e-9 * np.trace(varies))
    size = float(apart @ np.linalg.pinv(varies, rcond=1e-9) @ apart)
    chance = rank * held_out.queries / max(held_out.queries - rank, 1)
    believed = max(0.0, 1 - chance / size) if size > 0 else 0.0
    return np.asarray(both + believed * (held_out.share - both))


def figures(chances: np.ndarray, grades: np.ndarray, test: mcrank.Dataset) -> list[float]:
    """Top-label error, what of it whole queries give by chance, log loss, share the mean grade is off, and
    how far expected grades are off by tenths of the rows.
    """
    found = calibration(chances, grades, test.y)
    off = found.mean_expected / found.mean_grade - 1
    noise = top_noise(chances, grades, test)
    return [found.top.error, noise, found.log_loss, off, found.expected.error]


if __name__ == "__main__":
    main()
