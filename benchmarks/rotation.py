"""What grades mean where every query is tested once: five rotating folds, their test parts pooled.

Three fifths of the queries train, one validates, one is tested, as MQ2008 is published; the one fold of
MSLR-mini is put together and cut anew. What is learned from and what is measured are then the same queries:
what the mean grade is off by is the method's, not the luck of a draw, as it is in single test parts
(`grades.py`). It is no measure of one model: where those of two folds are off to different sides, they make
up for each other, in the top-label error too. Artificial sets are of the kinds there, with 60 queries (12
validate), 100 and 250. Systems are the defaults, stopped early, and the same trees without their correction.

    python benchmarks/rotation.py --data DATA --out docs/results/rotation

Two references need no training. `truth` are the best probabilities there are of an artificial set: its
undisturbed grades follow from the features, and how often they are disturbed is known. The shares of the
grades in training and validation rows are what is right in the mean without any model. Lines are missed by
chance, too: grades are drawn anew by a ranker's own probabilities, and those of `truth` as sets are made.

Draws 351 to 354 are for the figures; what is chosen is chosen on others (`--first`). Draws 301 to 303, of
sets that shared features, were those of the figures before cuts were moved to the mean grade (one set of 116
off by more than 5 %), 311 to 314 before that was done for two grades as well (two of 154, both of two
grades, by 5.1 %), 321 to 324 before held-out queries that differ from training by chance were doubted
more (three of 154, all of 60 queries: by 7.7, 5.5 and 5.3 %), 331 to 334 before the correction left rows
of OrdinalMcRank in their order (none of 154; NDCG@10, of mean grades then, was .0010 lower with it, p .004),
and 341 to 344 before there were references (two of 154, one set of 60 queries: by 7.7 and 7.9 %; nothing was
changed in the rankers after them). 361 to 364 were run later, with nothing changed (two of 154, one set of 60
queries: by 6.5 and 7.1 %), and 371 to 374 once more (none).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import mcrank
from mcrank.metrics.calibration import calibration
from mcrank.scorers.heads import Head
from mcrank.stats import holm
from quality import Found, by_set, compared, mean_noise, ours, top_noise
from report import machine, write
from sets import PARTED, Parts, disturbed_anew, outcomes, rotations, study_options, true_chances, whole

FIRST, DRAWS, SIZES = 351, 4, (60, 100, 250)
SYSTEMS, WITHOUT = ("mcrank", "ordinal"), ", calibrate=False"
SHARES, TRUTH = "shares of the grades", "truth"
SHOWN = (*(name + how for name in SYSTEMS for how in ("", WITHOUT)), SHARES, TRUTH)
ANEW = 100  # how often grades are drawn anew
Folds = list[Parts]
Told = Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]
Anew = Callable[[np.ndarray, np.ndarray], Iterable[np.ndarray]]


def main() -> None:
    parser = study_options(__doc__, "build/rotation")
    parser.set_defaults(seeds=DRAWS)
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first draw")
    args = parser.parse_args()
    found: Found = {}
    seeds = range(args.first, args.first + args.seeds)
    for kind, number, make in rotations(args.data, SIZES, seeds):
        made = kind.split(", ")[0] in PARTED
        told = outcomes(
            args, [(f"{kind}.{number}".replace(", ", "-"), make)], (*SYSTEMS, SHARES, *[TRUTH] * made),
            lambda set_, name: f"{set_}.{name}.json".replace(" ", "_"),
            lambda _, name, folds, kind=kind, number=number: outcome(name, folds, kind, number),
        )  # fmt: skip
        for _, name, ways in told:
            for how, one in zip(("", WITHOUT), ways, strict=False):  # references have one way
                found[kind, number, name + how] = one
    notes = [
        f"draws and rotations from number {args.first} on; every query of a set is tested once",
        "off by itself: standard error of what the mean grade is off by, with queries as what was drawn",
        f"{SHARES}: every row has the shares of its fold's training and validation rows, which no model is "
        f"needed for; {TRUTH}: artificial sets only, what who made them knows of each row but not its grade",
        f"drawn anew: of {ANEW} draws of all grades of a set, those that miss the lines of top-label error "
        "(with the chance of whole queries), log loss and mean grade; row by row from the ranker's own "
        f"probabilities, which are right then, or ({TRUTH}) as the set was made",
        "in 95 %: what whole queries give by chance is at most so much in 95 % of draws",
        "early_stopping_rounds=100; all else is default",
    ]
    result = {"machine": machine(), "rows": list(rows(found)), "verdicts": [*verdicts(found), *notes]}
    write("Probabilities of grades, every query tested once", result, args.out)


def outcome(name: str, folds: Folds, kind: str, number: int) -> list[dict[str, Any]]:
    """Train a system on every fold; tell of its predictions of all test parts, and of those of the same trees
    without the correction. A reference needs no training.
    """
    tests = [parts[2] for parts in folds]
    if name == SHARES:
        return [pooled([partial(shares, parts) for parts in folds], tests)]
    if name == TRUTH:
        what, queries = kind.split(", ")
        grades, chances = true_chances(what, int(queries), number)
        return [
            pooled(
                [lambda: (grades, chances, chances @ grades)], [whole(what, int(queries), number)],
                lambda _, __: disturbed_anew(what, int(queries), number, ANEW),
            )
        ]  # fmt: skip
    made = [trained(name, parts) for parts in folds]
    return [pooled([fold[way] for fold in made], tests, None if way else drawn) for way in (0, 1)]


def shares(parts: Parts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tell the same of every test row: how frequent grades are in the rows that could be learned from."""
    train, valid, test = parts
    grades, counts = np.unique(np.concatenate([train.y, valid.y]), return_counts=True)
    chances = np.tile(counts / counts.sum(), (test.n_rows, 1))
    return grades, chances, np.zeros(test.n_rows)


def drawn(chances: np.ndarray, grades: np.ndarray) -> Iterator[np.ndarray]:
    """Draw the grade of each row by its probabilities, again and again."""
    stream, upto = np.random.default_rng(0), np.cumsum(chances, axis=1)[:, :-1]
    for _ in range(ANEW):
        yield grades[(stream.random((len(chances), 1)) >= upto).sum(axis=1)]


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


def pooled(told: list[Told], tests: list[mcrank.Dataset], anew: Anew | None = None) -> dict[str, Any]:
    """Judge probabilities of all test parts together; NDCG@10 is that of each query. Tell how often the same
    probabilities miss which line where grades are drawn anew, if it is said how.
    """
    made = [tell() for tell in told]
    grades = np.unique(np.concatenate([known for known, _, _ in made]))
    chances = np.zeros((sum(test.n_rows for test in tests), len(grades)))
    ends = np.cumsum([0, *(test.n_rows for test in tests)])
    for (known, part, _), first, last in zip(made, ends, ends[1:], strict=False):
        chances[first:last, np.searchsorted(grades, known)] = part
    sizes = np.concatenate([test.sizes for test in tests])
    y = np.concatenate([test.y for test in tests])
    pool = mcrank.Dataset(np.zeros((len(y), 1)), y, np.repeat(np.arange(len(sizes)), sizes))
    scores = np.concatenate([score for _, _, score in made])
    ndcg = mcrank.NDCG(k=10).on(pool).per_query(scores)
    found = {"ndcg": ndcg.tolist(), "calibration": judged(chances, grades, pool)}
    if anew:
        others = (mcrank.Dataset(pool.X, other, pool.qid) for other in anew(chances, grades))
        missed = [lines_missed(judged(chances, grades, other)) for other in others]
        found["missed"] = [*np.mean(missed, axis=0), np.mean(np.any(missed, axis=1))]
    return found


def judged(chances: np.ndarray, grades: np.ndarray, test: mcrank.Dataset) -> dict[str, float]:
    """Figures of probabilities (rows x grades), in the order of the test part."""
    figures = calibration(chances, grades, test.y).to_dict()
    del figures["curves"]
    figures["top_label_noise_queries"] = top_noise(chances, grades, test)
    figures["top_label_noise_95"] = top_noise(chances, grades, test, 0.95)
    figures["noise_test"] = mean_noise((test, test, test), chances @ grades)[0]
    return figures


def rows(found: Found) -> Iterator[dict[str, Any]]:
    """A row for each system and set: means over its draws."""
    for name in SHOWN:
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
                "in 95 %": mean["top_label_noise_95"],
                "log loss": mean["log_loss"],
                "constant guess": mean["constant_log_loss"],
                "below it": f"{sum(map(below, told))} of {len(told)}",
                "mean grade off": " ".join(f"{off(one):+.1%}" for one in told),
                "off by itself": f"{error:.1%}",
                "drawn anew": " ".join(f"{share:.0%}" for share in anew(found, name, kind)[:3]),
            }


def anew(found: Found, name: str, kind: str = "") -> np.ndarray:
    """Shares of grades drawn anew that miss each of the three lines, and any: the mean over sets of a kind,
    whose name ends so (none, if they were not drawn).
    """
    each = [v["missed"] for (k, _, s), v in found.items() if s == name and k.endswith(kind) and "missed" in v]
    return np.mean(each, axis=0) if each else np.zeros(0)


def near(told: dict[str, float], chance: str = "top_label_noise_queries") -> bool:
    """Whether the top-label error is at most .02 above chance."""
    return told["top_label_error"] <= 0.02 + told[chance]


def below(told: dict[str, float]) -> bool:
    """Whether the log loss is below that of the constant guess."""
    return told["log_loss"] < told["constant_log_loss"]


def off(told: dict[str, float]) -> float:
    """Share that the mean expected grade is off by."""
    return told["mean_expected_grade"] / told["mean_grade"] - 1


def lines_missed(told: dict[str, float]) -> list[bool]:
    """Whether the top-label error, the log loss and the mean grade are beyond their lines."""
    return [not near(told), not below(told), abs(off(told)) > 0.05]


def verdicts(found: Found) -> Iterator[str]:
    """Say in how many sets each aim is reached, and what the correction does to the ranking."""
    for name in SHOWN:
        told = [v["calibration"] for (_, _, s), v in found.items() if s == name]
        if not told:
            continue
        apart = np.array([off(one) for one in told])
        every = sum(not any(lines_missed(one)) for one in told)
        yield (
            f"{name}, of {len(told)} sets: top-label error at most .02 above chance in "
            f"{sum(near(one, 'top_label_noise') for one in told)}, with the chance of whole queries in "
            f"{sum(map(near, told))}, above what that is at most in 95 % in "
            f"{sum(near(one, 'top_label_noise_95') for one in told)}; log loss below the constant guess in "
            f"{sum(map(below, told))}; mean "
            f"grade within 5 % in {(abs(apart) <= 0.05).sum()} (root mean square {rms(apart):.1%}, mean "
            f"{apart.mean():+.1%}, furthest {apart[abs(apart).argmax()]:+.1%}); all three in {every}; log "
            f"loss {np.mean([one['log_loss'] for one in told]):.4f} in the mean"
        )
    for name in (*SYSTEMS, TRUTH):
        if len(anew(found, name)):
            sets = sum(key[2] == name for key in found)
            top, loss, mean, some = (f"{sets * share:.1f}" for share in anew(found, name))
            few = anew(found, name, ", 60")
            yield (
                f"{name}, grades drawn anew, of {sets} sets in the mean: top-label error beyond its line in "
                f"{top}, log loss in {loss}, mean grade in {mean}, any of them in {some}"
                + (f"; of sets of 60 queries {few[3]:.1%}" if len(few) else "")
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
