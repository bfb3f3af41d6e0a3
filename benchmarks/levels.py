"""How far may held-out queries contradict training queries about how frequent each grade is?

Probabilities of grades are corrected as if rows had the grades' shares of training and held-out queries
together, and more of those held out the less chance explains that both differ (`likely_shares`). What is
measured is the price of believing too soon, where both are parts of one draw, and of believing too late,
where rows of the lowest grade were sampled in training alone. Rules:

- held out: the held-out queries alone
- together: all queries, whatever they say
- James and Stein: believes what is more than chance, as mcrank did before
- twice chance: believes what is more than twice chance, as mcrank did next
- BIC: the probability that both differ, by Schwarz's criterion
- by chance: believes what chance hardly ever gives, as mcrank does
- by residuals: the level of the model as learned, moved by James and Stein's rule, in which what queries are
  off by varies, to that of all queries (less what the model explains of how queries differ)

    python benchmarks/levels.py --data DATA --out docs/results/levels

The rule was chosen on draws 61 to 68 and 101 to 116 (`--first`), after the figures of `grades.py` with James
and Stein's rule had been seen for MQ2008 and MSLR-mini; draws 71 to 78 were looked at afterwards. That was
twice chance; by chance was added later, chosen on draws 201 to 208 of `rotation.py`'s sets.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import mcrank
from mcrank.scorers.correction import Correction
from mcrank.scorers.heads import Head, sigmoid
from mcrank.sums import ALONE
from mcrank.training.correcting import fit_correction, with_mean
from mcrank.training.odds import fit_odds
from mcrank.training.shares import Shares, grade_shares, likely_shares
from odds import DRAWS, RANKERS, cut, figures, james_stein
from report import machine, write
from sets import PARTED, Parts, development, parted

FIRST = 71
KEPT = {"": 1.0, ", 3/4 kept": 0.75, ", 1/2 kept": 0.5, ", 1/5 kept": 0.2}  # of the lowest grade, in training
SAMPLED = ("plain", "skewed", "long", "MQ2008", "MSLR-mini")
Rule = Callable[[Shares, Shares], np.ndarray]


def bic(held_out: Shares, training: Shares) -> np.ndarray:
    """Shares by the probability that both differ, by Schwarz's criterion."""
    queries = held_out.queries + training.queries
    both = (held_out.queries * held_out.share + training.queries * training.share) / queries
    each = (held_out.queries**2 * held_out.varies + training.queries**2 * training.varies) / queries
    varies = each * (1 / held_out.queries + 1 / training.queries)
    apart, directions = held_out.share - training.share, len(both) - 1
    size = float(apart @ np.linalg.pinv(varies, rcond=1e-9) @ apart)
    gained = queries * np.log1p(size / (queries - 2)) - directions * np.log(queries)
    return np.asarray(both + sigmoid(np.array([gained / 2])) * (held_out.share - both))


def twice_chance(held_out: Shares, training: Shares) -> np.ndarray:
    """Shares as `likely_shares` had them before: what is more than twice chance is believed."""

    def twice(size: float, directions: int, queries: int) -> float:
        chance = directions * queries / max(queries - directions, 1)
        return max(0.0, 1.0 - (2 * chance / size) ** 2) if size > 0 else 0.0

    with patch("mcrank.training.shares.agreement", twice):
        return likely_shares(held_out, training)


def together(held_out: Shares, training: Shares) -> np.ndarray:
    """Shares of all queries."""
    queries = held_out.queries + training.queries
    return np.asarray((held_out.queries * held_out.share + training.queries * training.share) / queries)


RULES: dict[str, Rule] = {
    "held out": lambda held_out, training: held_out.share,
    "together": together,
    "James and Stein": james_stein,
    "twice chance": twice_chance,
    "BIC": bic,
    "by chance": likely_shares,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--data", help="folder of data sets; their test files are not looked at")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first draw and cut")
    parser.add_argument("--work", default="build/levels", help="folder of kept results")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # that validation parts are small is what this is about
    seeds = range(args.first, args.first + DRAWS)
    rows = [row for kind, make in sets(args.data) for row in kept(Path(args.work), kind, make, seeds)]
    notes = [
        f"{DRAWS} draws of each artificial kind, {DRAWS} cuts of each set of files, from number {args.first} "
        "on, as in odds.py; '1/2 kept': of the training rows of the lowest grade, half were left out",
        "above the line: top-label error less .02 and less what whole queries give by chance, mean of draws",
        *verdicts(rows),
    ]
    write("How frequent grades are", {"machine": machine(), "rows": rows, "verdicts": notes}, args.out)


def sets(directory: str | None) -> Iterator[tuple[str, Callable[[int], Parts]]]:
    """Kinds of sets, and how a draw of them is made."""
    files = {name: make() for name, make in development(directory, 0).items()}
    for kept, share in KEPT.items():
        for kind in [*PARTED, *files]:
            if share < 1 and kind not in SAMPLED:
                continue

            def make(seed: int, kind: str = kind, share: float = share) -> Parts:
                train, valid, test = cut(files[kind], seed) if kind in files else parted(kind, seed)
                return sampled(train, share, seed), valid, test

            yield f"{kind}{kept}", make


def sampled(data: mcrank.Dataset, share: float, seed: int) -> mcrank.Dataset:
    """Leave out rows of the lowest grade, but for a share of them."""
    if share == 1:
        return data
    kept = (data.y > data.y.min()) | (np.random.default_rng(seed).random(data.n_rows) < share)
    queries = np.repeat(np.arange(data.n_queries), data.sizes)
    return mcrank.Dataset(np.asarray(data.X)[kept], data.y[kept], queries[kept])


def kept(work: Path, kind: str, make: Callable[[int], Parts], seeds: range) -> list[dict[str, Any]]:
    """Rows of one kind, measured once."""
    path = work / f"{kind.replace('/', '-')}.{seeds[0]}.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(list(measured(kind, make, seeds))))
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return rows


def measured(kind: str, make: Callable[[int], Parts], seeds: range) -> Iterator[dict[str, Any]]:
    """A row for each ranker and rule: means over the draws of one kind."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for seed in seeds:
        parts = make(seed)
        for name, ranker in RANKERS.items():
            fit = ranker(early_stopping_rounds=100, n_jobs=1, calibrate=False).fit(parts[0], valid=parts[1])
            for rule, chances in told(Case.of(fit, parts)).items():
                found.setdefault((name, rule), []).append(figures(chances.T, fit.grades_, parts[2]))
    for (name, rule), values in sorted(found.items(), key=lambda item: item[0][0]):
        error, chance, loss, off, expected = np.array(values).T
        yield {
            "system": name,
            "set": kind,
            "rule": rule,
            "mean grade off (rms)": np.sqrt((off**2).mean()),
            "top-label error": error.mean(),
            "above the line": (error - 0.02 - chance).mean(),
            "draws within it": f"{(error <= 0.02 + chance).sum()} of {len(error)}",
            "log loss": loss.mean(),
            "expected-grade error": expected.mean(),
        }


class Case(NamedTuple):
    """What a correction is learned from and tried on."""

    head: Head
    raw: np.ndarray  # outputs of held-out rows, and what follows of them
    classes: np.ndarray
    offsets: np.ndarray
    training: Shares
    shown: np.ndarray  # outputs of test rows

    @classmethod
    def of(cls, ranker: Any, parts: Parts) -> Case:
        """Return that of a ranker which is not corrected."""
        train, valid, test = parts
        shares = grade_shares(ranker._codes(train.y), len(ranker.grades_), None, train.offsets, ALONE)
        assert shares is not None
        raw, shown = (ranker.learned_.raw(part.X) for part in (valid, test))
        return cls(ranker.head_, raw, ranker._codes(valid.y), valid.offsets, shares, shown)

    def corrected(self, rule: Rule | None) -> tuple[Correction, Head]:
        """Return the correction by a rule, or with held-out rows as they are, and the head with its odds."""
        known = self.training if rule else None
        with patch("mcrank.training.correcting.likely_shares", rule):
            given = self.classes, self.head, None, self.offsets, ALONE, known
            found = fit_correction(self.raw, *given)
            assert found is not None
            if len(self.training.share) == 2:
                return with_mean(found, self.raw, *given), self.head
            odds = fit_odds(found.applied(self.raw, self.head), *given)
        return found, Correction(found.slopes, found.shifts, odds).head(self.head)


def told(case: Case) -> dict[str, np.ndarray]:
    """Probabilities of the test rows (grades x rows), by each rule."""
    made = {}
    for name, rule in RULES.items():
        found, head = case.corrected(rule)
        made[name] = head.proba(found.applied(case.shown, case.head))
    return made | {"by residuals": by_residuals(case)}


def by_residuals(case: Case) -> np.ndarray:
    """Probabilities whose level is that of the model as learned, but for what is more than chance.

    What queries are off by is what the corrected model leaves of them. The level it is moved to is that of
    all queries together, of which only as much counts as the model leaves: where held-out queries differ from
    training queries and their features tell it, nothing needs to be moved.
    """
    found, head = case.corrected(None)
    of_query = np.repeat(np.arange(len(case.offsets) - 1), np.diff(case.offsets))
    every = np.arange(len(case.training.share))
    known = case.classes == every[:, None]
    said = head.proba(found.applied(case.raw, case.head))
    level = case.head.proba(case.raw).mean(axis=1)

    def by_query(values: np.ndarray) -> np.ndarray:
        sums = np.array([np.bincount(of_query, weights=row) for row in values])
        return np.asarray(sums - np.bincount(of_query) * values.mean(axis=1)[:, None])

    share, left, differ = known.mean(axis=1), by_query(known - said), by_query(known)
    queries = left.shape[1]
    open_ = np.clip((left * differ).sum() / (differ**2).sum(), 0, 1)
    apart = case.training.share - share
    aim = share + open_ * case.training.queries / (case.training.queries + queries) * apart
    varies = left @ left.T * queries / (queries - 1) / len(of_query) ** 2
    size = float((aim - level) @ np.linalg.pinv(varies, rcond=1e-9) @ (aim - level))
    chance = (len(every) - 1) * queries / max(queries - len(every) + 1, 1)
    aim = level + max(0.0, 1 - chance / size) * (aim - level) if size > 0 else level
    return moved(head.proba(found.applied(case.shown, case.head)), said, aim)


def moved(chances: np.ndarray, said: np.ndarray, aim: np.ndarray) -> np.ndarray:
    """Multiply the odds of each grade so that those ``said`` of held-out rows come to the shares aimed at."""
    factor = np.ones(len(aim))
    for _ in range(200):
        made = said * factor[:, None]
        factor *= np.maximum(aim, 1e-6) / (made / made.sum(axis=0)).mean(axis=1)
    made = chances * factor[:, None]
    return np.asarray(made / made.sum(axis=0))


def verdicts(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Say what each rule comes to over sets of the same place, and over sampled ones."""
    for name in RANKERS:
        for words, inside in (("one draw", False), ("sampled", True)):
            for rule in [*RULES, "by residuals"]:
                of = [
                    row
                    for row in rows
                    if (row["system"], row["rule"], "kept" in row["set"]) == (name, rule, inside)
                ]
                off = np.sqrt(np.mean([row["mean grade off (rms)"] ** 2 for row in of]))
                within = sum(int(row["draws within it"].split()[0]) for row in of)
                above = np.mean([row["above the line"] for row in of])
                yield (
                    f"{name}, {words}, {rule}: mean grade off by {off:.1%} (rms), {within} of "
                    f"{len(of) * DRAWS} within the line, {above:+.4f} above it in the mean, log loss "
                    f"{np.mean([row['log loss'] for row in of]):.4f}"
                )


if __name__ == "__main__":
    main()
