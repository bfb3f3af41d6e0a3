"""What grades mean where every query is tested once: five rotating folds, their test parts pooled.

Three fifths of the queries train, one validates, one is tested, as MQ2008 is published; the one fold of
MSLR-mini is put together and cut anew. What is learned from and what is measured are then the same queries:
what the mean grade is off by is the method's, not the luck of a draw, as it is in single test parts
(`grades.py`). It is no measure of one model: where those of two folds are off to different sides, they make
up for each other, in the top-label error too. Artificial sets are of the kinds there, with 60 queries (12
validate), 100 and 250. Systems are the defaults, stopped early, and the same trees without their correction.

    python benchmarks/rotation.py --data DATA --out docs/results/rotation

Draws 341 to 344 are for the figures; what is chosen is chosen on others (`--first`). Draws 301 to 303, of
sets that shared features, were those of the figures before cuts were moved to the mean grade (one set of 116
off by more than 5 %), 311 to 314 before that was done for two grades as well (two of 154, both of two
grades, by 5.1 %), 321 to 324 before held-out queries that differ from training by chance were doubted
more (three of 154, all of 60 queries: by 7.7, 5.5 and 5.3 %), and 331 to 334 before the correction left rows
of OrdinalMcRank in their order (none of 154; NDCG@10, of mean grades then, was .0010 lower with it, p .004).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import mcrank
from mcrank.metrics.calibration import calibration
from mcrank.scorers.heads import Head
from mcrank.stats import holm
from quality import Found, by_set, compared, mean_noise, ours, top_noise
from report import machine, write
from sets import Parts, outcomes, rotations, study_options

FIRST, DRAWS, SIZES = 341, 4, (60, 100, 250)
SYSTEMS, WITHOUT = ("mcrank", "ordinal"), ", calibrate=False"
Folds = list[Parts]
Told = Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]


def main() -> None:
    parser = study_options(__doc__, "build/rotation")
    parser.set_defaults(seeds=DRAWS)
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first draw")
    args = parser.parse_args()
    found: Found = {}
    seeds = range(args.first, args.first + args.seeds)
    for kind, number, make in rotations(args.data, SIZES, seeds):
        told = outcomes(
            args, [(f"{kind}.{number}".replace(", ", "-"), make)], SYSTEMS,
            lambda set_, name: f"{set_}.{name}.json",
            lambda _, name, folds: outcome(name, folds),
        )  # fmt: skip
        for _, name, (corrected, learned) in told:
            found[kind, number, name], found[kind, number, name + WITHOUT] = corrected, learned
    notes = [
        f"draws and rotations from number {args.first} on; every query of a set is tested once",
        "off by itself: standard error of what the mean grade is off by, with queries as what was drawn",
        "early_stopping_rounds=100; all else is default",
    ]
    result = {"machine": machine(), "rows": list(rows(found)), "verdicts": [*verdicts(found), *notes]}
    write("Probabilities of grades, every query tested once", result, args.out)


def outcome(name: str, folds: Folds) -> list[dict[str, Any]]:
    """Train a system on every fold; tell of its predictions of all test parts, and of those of the same trees
    without the correction.
    """
    made = [trained(name, parts) for parts in folds]
    return [pooled([fold[way] for fold in made], [parts[2] for parts in folds]) for way in (0, 1)]


def trained(name: str, parts: Parts) -> list[Told]:
    """Return what tells grades, their probabilities (rows x grades, in the order of the test part) and the
    scores that rank, with the correction and without.
    """
    train, valid, test = parts
    ranker, _ = ours(name)
    ranker.fit(train, valid=valid)

    def proba(head: Head, forest: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raw = forest.raw(test.X)
        return ranker.grades_, np.ascontiguousarray(head.proba(raw).T), head.rank(raw)

    ways = ((ranker.head_, ranker.forest_), (ranker.head_.as_learned, ranker.learned_))
    return [partial(proba, head, forest) for head, forest in ways]


def pooled(told: list[Told], tests: list[mcrank.Dataset]) -> dict[str, Any]:
    """Judge probabilities of all test parts together; NDCG@10 is that of each query."""
    made = [tell() for tell in told]
    grades = np.unique(np.concatenate([known for known, _, _ in made]))
    chances = np.zeros((sum(test.n_rows for test in tests), len(grades)))
    ends = np.cumsum([0, *(test.n_rows for test in tests)])
    for (known, part, _), first, last in zip(made, ends, ends[1:], strict=False):
        chances[first:last, np.searchsorted(grades, known)] = part
    sizes = np.concatenate([test.sizes for test in tests])
    y = np.concatenate([test.y for test in tests])
    whole = mcrank.Dataset(np.zeros((len(y), 1)), y, np.repeat(np.arange(len(sizes)), sizes))
    figures = {
        key: value for key, value in calibration(chances, grades, y).to_dict().items() if key != "curves"
    }
    figures["top_label_noise_queries"] = top_noise(chances, grades, whole)
    figures["noise_test"] = mean_noise((whole, whole, whole), chances @ grades)[0]
    scores = np.concatenate([score for _, _, score in made])
    ndcg = mcrank.NDCG(k=10).on(whole).per_query(scores)
    return {"ndcg": ndcg.tolist(), "calibration": figures}


def rows(found: Found) -> Iterator[dict[str, Any]]:
    """A row for each system and set: means over its draws."""
    for name in (name + how for name in SYSTEMS for how in ("", WITHOUT)):
        for kind, ndcg in by_set(found, name).items():
            told = [v["calibration"] for (k, _, s), v in found.items() if (k, s) == (kind, name)]
            mean = {field: float(np.mean([one[field] for one in told])) for field in told[0]}
            error = np.mean([one["noise_test"] / one["mean_grade"] for one in told])
            yield {
                "system": name,
                "set": kind,
                "ndcg@10": float(np.nanmean(ndcg)),
                "top-label error": mean["top_label_error"],
                "by chance": mean["top_label_noise"],
                "by chance, whole queries": mean["top_label_noise_queries"],
                "within .02 of it": f"{sum(map(near, told))} of {len(told)}",
                "log loss": mean["log_loss"],
                "constant guess": mean["constant_log_loss"],
                "below it": f"{sum(map(below, told))} of {len(told)}",
                "mean grade off": " ".join(f"{off(one):+.1%}" for one in told),
                "off by itself": f"{error:.1%}",
            }


def near(told: dict[str, float], chance: str = "top_label_noise_queries") -> bool:
    """Whether the top-label error is at most .02 above chance."""
    return told["top_label_error"] <= 0.02 + told[chance]


def below(told: dict[str, float]) -> bool:
    """Whether the log loss is below that of the constant guess."""
    return told["log_loss"] < told["constant_log_loss"]


def off(told: dict[str, float]) -> float:
    """Share that the mean expected grade is off by."""
    return told["mean_expected_grade"] / told["mean_grade"] - 1


def verdicts(found: Found) -> Iterator[str]:
    """Say in how many sets each aim is reached, and what the correction does to the ranking."""
    for name in (name + how for name in SYSTEMS for how in ("", WITHOUT)):
        told = [v["calibration"] for (_, _, s), v in found.items() if s == name]
        if not told:
            continue
        apart = np.array([off(one) for one in told])
        every = sum(near(one) and below(one) and abs(off(one)) <= 0.05 for one in told)
        yield (
            f"{name}, of {len(told)} sets: top-label error at most .02 above chance in "
            f"{sum(near(one, 'top_label_noise') for one in told)}, with the chance of whole queries in "
            f"{sum(map(near, told))}; log loss below the constant guess in {sum(map(below, told))}; mean "
            f"grade within 5 % in {(abs(apart) <= 0.05).sum()} (root mean square {rms(apart):.1%}, mean "
            f"{apart.mean():+.1%}, furthest {apart[abs(apart).argmax()]:+.1%}); all three in {every}; log "
            f"loss {np.mean([one['log_loss'] for one in told]):.4f} in the mean"
        )
    for name in SYSTEMS:
        mean, p, sets = compared(found, name, name + WITHOUT)
        each = {
            kind: compared({key: one for key, one in found.items() if key[0] == kind}, name, name + WITHOUT)
            for kind in by_set(found, name)
        }
        corrected = dict(zip(each, holm([one[1] for one in each.values()]), strict=True))
        worst = min(each, key=lambda kind: each[kind][0] if each[kind][1] < 1 else 0.0)
        lower = sum(each[kind][0] < 0 and corrected[kind] < 0.05 for kind in each)
        fell, chance, _ = each[worst]
        yield (
            f"NDCG@10 of {name} with the correction: {mean:+.4f} over {sets} kinds of sets (p {p:.2g}); "
            f"lower in {sum(one[0] < 0 for one in each.values())} of them, significantly in {lower}; lowest "
            f"{fell:+.4f}, in {worst} (p {chance:.2g}, by Holm's rule {corrected[worst]:.2g})"
        )


def rms(values: np.ndarray) -> float:
    """Root of the mean square."""
    return float(np.sqrt((values**2).mean()))


if __name__ == "__main__":
    main()
