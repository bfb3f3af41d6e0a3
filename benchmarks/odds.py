"""Should probabilities of grades be those of the score, or those learned, and how far can either get?

Artificial sets of the kinds of `grades.py`, but other draws, and cuts of the training and validation files of
DATA: what is chosen here is measured there. "Fitted to the test rows" is no method: it
tells what would be left with held-out rows without end; all else is few held-out queries.

    python benchmarks/odds.py --data DATA --out docs/results/odds
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import mcrank
from mcrank.metrics.calibration import calibration
from mcrank.scorers.heads import Head
from mcrank.sums import ALONE
from mcrank.training import odds
from mcrank.training.correcting import fit_correction
from mcrank.training.shares import grade_shares
from quality import top_noise
from report import machine, write
from sets import PARTED, Parts, development, parted

SEEDS, CUTS = range(21, 29), range(21, 29)
WAYS = ("as learned", "by the score", "by the score, none stray")
BEST = ("as learned, fitted to the test rows", "by the score, fitted to the test rows")
RANKERS = {"mcrank": mcrank.McRank, "ordinal": mcrank.OrdinalMcRank}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", help="folder of data sets; their test files are not looked at")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # that validation parts are small is what this is about
    rows = [row for kind, draws in sets(args.data) for row in measured(kind, draws)]
    notes = [
        f"{len(SEEDS)} draws of each artificial kind, {len(CUTS)} cuts of each set of files: half of the "
        "queries to train, a sixth to validate, a third to test",
        "above the line: top-label error less .02 and less what whole queries give by chance, mean of draws",
    ]
    write("Probabilities by the score", {"machine": machine(), "rows": rows, "verdicts": notes}, args.out)


def sets(directory: str | None) -> Iterator[tuple[str, list[Callable[[], Parts]]]]:
    """Kinds of sets, and how each draw of them is made."""
    for kind, (_, _, shares, *_) in PARTED.items():
        if len(shares) > 2:  # of two grades both ways are one
            yield kind, [lambda kind=kind, seed=seed: parted(kind, seed) for seed in SEEDS]
    for name, make in development(directory, 0).items():
        yield name, [lambda make=make, seed=seed: cut(make(), seed) for seed in CUTS]


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
        error, chance, loss, off = np.array(values).T
        yield {
            "system": name,
            "set": kind,
            "probabilities": way,
            "top-label error": error.mean(),
            "above the line": (error - 0.02 - chance).mean(),
            "draws within it": f"{(error <= 0.02 + chance).sum()} of {len(error)}",
            "log loss": loss.mean(),
            "mean grade off (rms)": np.sqrt((off**2).mean()),
        }


def told(kind: Any, parts: Parts) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Grades, and the probabilities of them of the test rows (rows x grades), by each way."""
    train, valid, test = parts
    ranker = kind(early_stopping_rounds=100, n_jobs=1, calibrate=False).fit(train, valid=valid)
    head, made = ranker.head_, {}
    shares = grade_shares(ranker._codes(train.y), len(head.values), None, train.offsets, ALONE)
    score = Head("cumulative", head.values)
    shown = ranker.learned_.raw(test.X)
    for ways, part, known in ((WAYS, valid, shares), (BEST, test, None)):
        raw, classes = ranker.learned_.raw(part.X), ranker._codes(part.y)
        found = fit_correction(raw, classes, head, None, part.offsets, ALONE, known)
        corrected = found.applied(shown, head)
        made[ways[0]] = head.proba(corrected)
        for way in ways[1:]:
            usual = odds.STRAY, odds._TURNS
            if "none" in way:
                odds.STRAY, odds._TURNS = 0.0, 0
            fitted = odds.fit_odds(
                boundaries(head, found.applied(raw, head)), classes, score, None, part.offsets, ALONE, known
            )
            odds.STRAY, odds._TURNS = usual
            made[way] = replace(score, odds=fitted).proba(boundaries(head, corrected))
    return head.values, {way: made[way].T for way in (*WAYS, *BEST)}


def boundaries(head: Head, raw: np.ndarray) -> np.ndarray:
    """Log-odds of being above each grade but the highest, whatever the head is."""
    n = len(head.values)  # type: ignore[arg-type]
    above = np.array([head.expected(raw, np.arange(n) > k) for k in range(n - 1)])
    above = np.clip(above, 1e-12, 1 - 1e-12)
    return np.log(above / (1 - above))


def figures(chances: np.ndarray, grades: np.ndarray, test: mcrank.Dataset) -> list[float]:
    """Top-label error, what of it whole queries give by chance, log loss, share the mean grade is off."""
    found = calibration(chances, grades, test.y)
    off = found.mean_expected / found.mean_grade - 1
    return [found.top.error, top_noise(chances, grades, test), found.log_loss, off]


if __name__ == "__main__":
    main()
