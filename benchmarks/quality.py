"""Quality of rankers and peers over many sets: NDCG@10 of test parts, by one call of `fit` each.

Sets are those of a directory (each as read_folds takes it) and six kinds of artificial ones. Systems have
default options and the round that the validation part chooses; nothing is chosen on a test part. With
``folds=4``, or a blend, the validation queries are trained on too. LightGBM's lambdarank is run as its
documentation recommends, stopped early on the validation part, and cross-fitted as ours are. What is compared
is the mean over sets of the mean over queries, by a paired test whose error is that of the queries of each
set; p-values are corrected by Holm's rule over all systems. Results are kept in the folder WORK, so that a
run can be stopped and taken up again.

    python benchmarks/quality.py --data DATA --out docs/results/quality
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import mcrank
from mcrank.data.folds import parts_by_id
from mcrank.metrics.calibration import BINS
from mcrank.rankers.registry import RANKERS, ranker_class
from mcrank.stats import holm
from report import machine, write
from sets import Parts, measured, outcomes, study_options

STOP, FOLDS, PEER = 100, 4, "LightGBM lambdarank"
MORE = [f"{name}, folds=4" for name in ("mcrank", "ordinal", "lambdamart")]
MORE += [f"{name}, preset={word}" for name in ("mcrank", "lambdamart") for word in ("fast", "best")]
Found = dict[tuple[str, int, str], dict[str, Any]]


def main() -> None:
    parser = study_options(__doc__, "build/quality")
    parser.add_argument("--only", help="systems, with semicolons between, such as 'mcrank; mcrank, folds=4'")
    parser.add_argument("--update", help="JSON of an earlier run: systems that are not run now are its rows")
    args = parser.parse_args()
    default = [*(name for name in RANKERS if name != "custom"), *PEERS, *MORE]
    names = [name.strip() for name in args.only.split(";")] if args.only else default
    result = summary(run(names, args))
    if args.update:
        result = updated(json.loads(Path(args.update).read_text()), result)
    write("Quality over many sets", result, args.out)


def run(names: list[str], args: argparse.Namespace) -> Found:
    """Every system on every set."""
    found = {}
    for kind, number, make in measured(args.data, args.seeds):
        told = outcomes(
            args, [(f"{kind}.{number}", make)], names,
            lambda set_, name: f"{set_}.{name.replace(' ', '_')}.json",
            lambda _, name, parts: outcome(name, parts),
        )  # fmt: skip
        found |= {(kind, number, name): one for _, name, one in told}
    return found


def outcome(name: str, parts: Parts) -> dict[str, Any]:
    """Train one system; return NDCG@10 of every test query, seconds of training, and calibration if any."""
    train, valid, test = parts
    began, told = time.process_time(), None
    if name in PEERS:
        scores, seconds = PEERS[name](parts)(test), time.process_time() - began
    else:
        ranker, fit = ours(name)
        ranker.fit(train, valid=valid, **fit)
        seconds = time.process_time() - began
        scores = ranker.predict(test)
        if hasattr(ranker, "calibration"):
            told = {k: v for k, v in ranker.calibration(test).to_dict().items() if k != "curves"}
            told["noise_test"], told["noise_learned"] = mean_noise(parts, scores)
            chances = test.to_grouped(ranker.predict_proba(test))
            told["top_label_noise_queries"] = top_noise(chances, ranker.grades_, test)
    values = mcrank.NDCG(k=10).on(test).per_query(test.to_grouped(np.asarray(scores, dtype=np.float64)))
    return {"ndcg": values.tolist(), "calibration": told, "cpu": seconds}


def ours(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the ranker that a name such as "mcrank, preset=fast, folds=4" means, and what `fit` is told."""
    kind, *said = name.split(", ")
    given = dict(word.split("=") for word in said)
    fit = {"folds": int(given.pop("folds"))} if "folds" in given else {}
    words: dict[str, Any] = {"True": True, "False": False}
    options = {k: int(v) if v.isdecimal() else words.get(v, v) for k, v in given.items()}
    declared = ranker_class(kind).declared_options
    if "early_stopping_rounds" in declared and "preset" not in options:
        options["early_stopping_rounds"] = STOP
    return ranker_class(kind)(n_jobs=1, **options), fit


def mean_noise(parts: Parts, expected: np.ndarray) -> tuple[float, float]:
    """Standard errors over queries: of the difference of mean expected and true grade of the test part, and
    of the mean grade of the queries that could be learned from.
    """
    train, valid, test = parts
    sizes = np.concatenate([train.sizes, valid.sizes])
    sums = np.concatenate([np.add.reduceat(part.y, part.offsets[:-1]) for part in (train, valid)])
    off = np.add.reduceat(test.to_grouped(expected) - test.y, test.offsets[:-1])
    return _error(off, test.sizes), _error(sums, sizes)


def top_noise(
    chances: np.ndarray, grades: np.ndarray, test: mcrank.Dataset, share: float | None = None
) -> float:
    """Top-label error that a perfect ranker would show by the draw of the test queries, each drawn whole: the
    mean, or what it is at most in this share of the draws.

    Rows of a query are right or wrong together, so that this is more than rows drawn one by one would give.
    What a bin is off by over all queries is taken away first: that is the ranker's. Probabilities (rows x
    grades) are in the order of the test part.
    """
    sure, queries = chances.max(axis=1), np.repeat(np.arange(test.n_queries), test.sizes)
    place = np.unique(np.minimum((sure * BINS).astype(np.int64), BINS - 1), return_inverse=True)[1]
    off = (grades[chances.argmax(axis=1)] == test.y) - sure
    off -= (np.bincount(place, weights=off) / np.bincount(place))[place]
    sums = np.zeros((test.n_queries, place.max() + 1))
    np.add.at(sums, (queries, place), off)
    times = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=200)
    errors = np.abs(times @ sums).sum(axis=1) / test.n_rows
    return float(errors.mean() if share is None else np.quantile(errors, share))


def _error(sums: np.ndarray, sizes: np.ndarray) -> float:
    """Standard error of a mean over rows, queries being what was drawn."""
    n, rows = len(sums), sizes.sum()
    return float(np.sqrt(((sums - sizes * sums.sum() / rows) ** 2).sum() * n / (n - 1)) / rows)


def by_set(found: Found, name: str) -> dict[str, np.ndarray]:
    """Values of the test queries of each set, all folds or draws together."""
    sets = dict.fromkeys(kind for kind, _, system in found if system == name)
    return {
        kind: np.concatenate([v["ndcg"] for (k, _, s), v in found.items() if (k, s) == (kind, name)])
        for kind in sets
    }


def compared(found: Found, first: str, second: str) -> tuple[float, float, int]:
    """Mean over sets of the difference of two systems, its p by the queries of each set, and the sets."""
    both = {key[:2] for key in found if key[2] == first} & {key[:2] for key in found if key[2] == second}
    same = {key: value for key, value in found.items() if key[:2] in both}
    one, other = by_set(same, first), by_set(same, second)
    means, errors = [], []
    for kind in one:
        apart = one[kind] - other[kind]
        apart = apart[~np.isnan(apart)]
        means.append(apart.mean())
        errors.append(apart.var(ddof=1) / len(apart))
    if not means or not sum(errors) > 0:  # no query differs
        return (float(np.mean(means)) if means else float("nan")), 1.0, len(means)
    mean, error = float(np.mean(means)), math.sqrt(sum(errors)) / len(errors)
    return mean, math.erfc(abs(mean) / error / math.sqrt(2)), len(means)


def summary(found: Found) -> dict[str, Any]:
    """A row for each system: means over the sets, and the difference to the peer and to the best."""
    names = list(dict.fromkeys(name for _, _, name in found))
    kinds = list(dict.fromkeys(kind for kind, _, _ in found))
    rows = []
    for name in names:
        each = {kind: float(np.nanmean(values)) for kind, values in by_set(found, name).items()}
        cpu = [v["cpu"] for (_, _, s), v in found.items() if s == name]
        row: dict[str, Any] = {"system": name, "NDCG@10": float(np.mean(list(each.values())))}
        row |= {kind: each.get(kind) for kind in kinds}
        rows.append(row | {"sets": len(each), "seconds": round(float(np.mean(cpu)), 1)})
    others = [name for name in names if name != PEER] if PEER in names else []
    tests = [compared(found, name, PEER) for name in others]
    for name, (mean, p, _), adjusted in zip(others, tests, holm([p for _, p, _ in tests]), strict=True):
        row = next(row for row in rows if row["system"] == name)
        row |= {f"to {PEER}": f"{mean:+.4f}", "p": float(f"{p:.2g}"), "corrected p": float(f"{adjusted:.2g}")}
    rows.sort(key=lambda row: (-row["sets"], -row["NDCG@10"]))
    return {"machine": machine(), "rows": rows, "verdicts": [*differences(found, names), *NOTES]}


def updated(earlier: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the rows and comparisons of an earlier run, those of systems run again as they are now.

    The peer must be what it was, to the last digit that was kept: only then do the differences of rows that
    are not run again still hold.
    """
    rows = {row["system"]: row for row in earlier["rows"]}
    peers = [{k: v for k, v in each.items() if k not in ("seconds", "system")}
             for each in (rows[PEER], next(row for row in new["rows"] if row["system"] == PEER))]  # fmt: skip
    if peers[0] != peers[1]:
        raise SystemExit(f"{PEER} is not what it was: {peers[0]} and {peers[1]}; run all systems again.")
    again = {row["system"] for row in new["rows"]} - {PEER}
    rows |= {row["system"]: row for row in new["rows"] if row["system"] != PEER}
    others = [row for row in rows.values() if row["system"] != PEER]
    for row, p in zip(others, holm([row["p"] for row in others]), strict=True):
        row["corrected p"] = float(f"{p:.2g}")
    columns = dict.fromkeys([*new["rows"][0], f"to {PEER}", "p", "corrected p"])
    ordered = [columns | row for row in rows.values()]
    ordered.sort(key=lambda row: (-row["sets"], -row["NDCG@10"]))
    said = {pair: words for pair, _, words in (line.partition(": ") for line in earlier["verdicts"]) if words}
    stale = [pair for pair in said if again & set(pair.split(" - "))]
    fresh = dict(line.split(": ", 1) for line in new["verdicts"] if ": " in line and " - " in line)
    missing = [pair for pair in stale if pair not in fresh]
    if missing:
        raise SystemExit(f"These were compared before and are not now: {'; '.join(missing)}.")
    pairs = [f"{pair}: {words}" for pair, words in (said | fresh).items() if " - " in pair]
    later = f"run later than the rest, on {new['machine']['cpu']}: {'; '.join(sorted(again))}"
    later += f" ({PEER} was the same there, to the last digit)"
    return {"machine": earlier["machine"], "rows": ordered, "verdicts": [*pairs, *NOTES, later]}


NOTES = (
    "NDCG@10 of the test parts; the first figure is the mean over sets, seconds are CPU time of one `fit`",
    f"early_stopping_rounds={STOP} where a ranker has it (presets have their own); all else is default",
    "differences are means over sets, paired by query, with the queries of each set as what was drawn; "
    "corrected by Holm's rule over all systems; folds and blends train on the validation queries too",
)


def differences(found: Found, names: list[str]) -> Iterable[str]:
    """Say how systems compare that should be compared with others than the peer."""
    pairs = [("blend", f"{PEER}, folds=4")]
    pairs += [("blend", f"{name}, folds=4") for name in ("mcrank", "ordinal", "lambdamart")]
    pairs += [(f"{name}, folds=4", name) for name in ("mcrank", "ordinal", "lambdamart", PEER)]
    pairs += [(name, name.split(", ")[0]) for name in names if "preset" in name]
    for first, second in pairs:
        if {first, second} <= set(names):
            mean, p, sets = compared(found, first, second)
            yield f"{first} - {second}: {mean:+.4f} over {sets} sets (p {p:.2g})"


Predict = Callable[[mcrank.Dataset], Any]


def lightgbm_peer(parts: Parts) -> Predict:
    """LightGBM's lambdarank, stopped early on the validation part."""
    import lightgbm

    train, valid, _ = parts
    model = lightgbm.LGBMRanker(n_estimators=1000, learning_rate=0.05, n_jobs=1, verbose=-1)
    model.fit(
        train.X, train.y.astype(int), group=train.sizes, eval_set=[(valid.X, valid.y.astype(int))],
        eval_group=[valid.sizes], eval_at=[10], callbacks=[lightgbm.early_stopping(STOP, verbose=False)],
    )  # fmt: skip
    return lambda data: data.to_caller(np.asarray(model.predict(data.X)))


def lightgbm_cross_fitted(parts: Parts) -> Predict:
    """The same on all queries but one of four parts in turn: one round for all by all that was held out."""
    import lightgbm

    params = {"objective": "lambdarank", "learning_rate": 0.05, "num_threads": 1, "verbose": -1}
    whole = mcrank.Dataset.merge(list(parts[:2]))
    part = parts_by_id(whole, FOLDS)
    rows, bound = np.repeat(part, whole.sizes), mcrank.NDCG(k=10).on(whole)
    boosters, held = [], []
    for number in range(FOLDS):
        train = whole.select(part != number)
        data = lightgbm.Dataset(train.X, train.y.astype(int), group=train.sizes, free_raw_data=False)
        boosters.append(lightgbm.Booster(params, data))
        held.append(whole.select(part == number).X)
    scores, best, best_round = np.zeros(whole.n_rows), -1.0, 0
    for at in range(1000):
        for number, booster in enumerate(boosters):
            booster.update()
            scores[rows == number] += booster.predict(held[number], start_iteration=at, num_iteration=1)
        value = bound.mean(scores)
        if value > best:
            best, best_round = value, at + 1
        elif at + 1 - best_round >= STOP:
            break
    return lambda data: data.to_caller(
        np.mean([booster.predict(data.X, num_iteration=best_round) for booster in boosters], axis=0)
    )


def xgboost_peer(parts: Parts) -> Predict:
    """XGBoost's rank:ndcg, stopped early on the validation part."""
    import xgboost

    train, valid, _ = parts
    model = xgboost.XGBRanker(
        objective="rank:ndcg", tree_method="hist", n_estimators=1000, learning_rate=0.05, n_jobs=1,
        eval_metric="ndcg@10", early_stopping_rounds=STOP,
    )  # fmt: skip
    model.fit(train.X, train.y, group=train.sizes, eval_set=[(valid.X, valid.y)], eval_group=[valid.sizes],
              verbose=False)  # fmt: skip
    return lambda data: data.to_caller(np.asarray(model.predict(data.X), dtype=np.float64))


PEERS: dict[str, Callable[[Parts], Predict]] = {
    PEER: lightgbm_peer,
    f"{PEER}, folds=4": lightgbm_cross_fitted,
    "XGBoost rank:ndcg": xgboost_peer,
}


if __name__ == "__main__":
    main()
